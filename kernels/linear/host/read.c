/* kernels/linear/host/read.c - from the description of a linear map to its problem: paths, their
   coefficients as e3nn's, and where weights and biases lie. */
#include "kernels/linear/host/linear.h"
#include "src/problem/irreps.h"

#include <math.h>

static bool same_irrep(const clb_term *a, const clb_term *b) {
  return a->l == b->l && a->parity == b->parity;
}

/* ---- instructions ---- */

static clb_status add_path(clb_linear_problem *p, int in, int out, clb_error_sink *error) {
  if (p->n_paths == CLB_MAX_PATHS)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "there are more than %d instructions",
                    CLB_MAX_PATHS);
  p->path[p->n_paths++] = (clb_linear_path){.in = in, .out = out};
  return CLB_OK;
}

static clb_status all_paths(clb_linear_problem *p, clb_error_sink *error) {
  clb_status s = CLB_OK;
  for (int i = 0; i < p->in.n; i++)
    for (int k = 0; k < p->out.n && !s; k++)
      if (same_irrep(&p->in.term[i], &p->out.term[k])) s = add_path(p, i, k, error);
  return s;
}

static clb_status given_paths(const clb_linear_desc *d, clb_linear_problem *p,
                              clb_error_sink *error) {
  clb_status s = CLB_OK;
  if (d->n_instructions < 0 || d->n_instructions > CLB_MAX_PATHS)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_instructions is %d; it must be 0 ... %d",
                    d->n_instructions, CLB_MAX_PATHS);
  for (int i = 0; i < d->n_instructions && !s; i++) {
    const clb_linear_instruction *k = &d->instructions[i];
    if (k->in < 0 || k->in >= p->in.n || k->out < 0 || k->out >= p->out.n)
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "instruction %d is of terms %d and %d; irreps_in has %d terms and irreps_out "
                      "has %d, counted from 0",
                      i, k->in, k->out, (int)p->in.n, (int)p->out.n);
    const clb_term *in = &p->in.term[k->in], *out = &p->out.term[k->out];
    if (!same_irrep(in, out))
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "instruction %d joins %d%c of term %d with %d%c of term %d; they must be one "
                      "irrep",
                      i, (int)in->l, in->parity > 0 ? 'e' : 'o', k->in, (int)out->l,
                      out->parity > 0 ? 'e' : 'o', k->out);
    s = add_path(p, k->in, k->out, error);
  }
  return s;
}

/* Terms without channels count as e3nn counts them. */
static double coefficient(const clb_linear_problem *p, const clb_linear_path *path,
                          clb_path_normalization normalization) {
  double channels = 0;
  for (int i = 0; i < p->n_paths; i++)
    if (p->path[i].out == path->out)
      channels += p->in.term[normalization == CLB_PATH_PATH ? path->in : p->path[i].in].mul;
  return normalization == CLB_PATH_NONE || channels == 0 ? 1 : 1 / sqrt(channels);
}

/* Gives paths their coefficients and weights, and drops those without weights. */
static int64_t place_weights(clb_linear_problem *p, clb_path_normalization normalization) {
  int64_t at = 0;
  int n = 0;
  for (int i = 0; i < p->n_paths; i++)
    p->path[i].coefficient = coefficient(p, &p->path[i], normalization);
  for (int i = 0; i < p->n_paths; i++) {
    clb_linear_path path = p->path[i];
    const int64_t count = (int64_t)p->in.term[path.in].mul * p->out.term[path.out].mul;
    path.weight_at = (int32_t)at;
    if (!count) continue;
    if ((at += count) > INT32_MAX) return at;
    p->path[n++] = path;
  }
  for (int i = n; i < p->n_paths; i++) p->path[i] = (clb_linear_path){0};
  p->n_paths = n;
  return at;
}

/* ---- biases ---- */

static clb_status place_biases(const clb_linear_desc *d, clb_linear_problem *p, int64_t *at,
                               clb_error_sink *error) {
  if (!d->biases && d->n_biases)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "biases is NULL and n_biases is %d", d->n_biases);
  if (d->biases && d->bias)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "bias is %d; it must be 0 where biases is given",
                    d->bias);
  if (d->biases && d->n_biases != p->out.n)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_biases is %d; irreps_out has %d terms",
                    d->n_biases, (int)p->out.n);
  for (int i = 0; i < p->out.n && *at <= INT32_MAX; i++) {
    const clb_term *t = &p->out.term[i];
    const bool even = t->l == 0 && t->parity > 0;
    if (d->biases && d->biases[i] && !even)
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "biases has term %d of irreps_out, %d%c; only 0e can have biases", i,
                      (int)t->l, t->parity > 0 ? 'e' : 'o');
    if (!even || !t->mul || !(d->biases ? d->biases[i] : d->bias)) continue;
    *at += t->mul;
    if (*at <= INT32_MAX) p->bias[i] = (int32_t)(*at - t->mul) + 1;
  }
  return CLB_OK;
}

/* ---- the description ---- */

static unsigned bits_of(const char *name, unsigned bits, unsigned all, clb_status *s,
                        clb_error_sink *error) {
  if (!*s && bits & ~all)
    *s = clb_fail(error, CLB_ERROR_ARGUMENT, "%s is %#x; of a linear map it is a sum of %s", name,
                  bits,
                  all & CLB_OPERAND_Z ? "CLB_OPERAND_X, CLB_OPERAND_W and CLB_OPERAND_Z"
                                      : "CLB_OPERAND_X and CLB_OPERAND_W");
  return bits ? bits : all;
}

static clb_status read_weights(const clb_linear_desc *d, clb_linear_problem *p,
                               clb_error_sink *error) {
  if (d->n_species < 0)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_species is %d; it must be at least 0",
                    d->n_species);
  if (d->n_species && d->weights_per_row)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_species is %d; with weights_per_row it must be 0",
                    d->n_species);
  p->weights = d->weights_per_row ? CLB_LINEAR_PER_ROW
               : d->n_species     ? CLB_LINEAR_BY_SPECIES
                                  : CLB_LINEAR_ONE_ROW;
  p->n_species = d->n_species ? d->n_species : 1;
  return CLB_OK;
}

clb_status clb_linear_read(const clb_linear_desc *d, clb_linear_problem *p, clb_error_sink *error) {
  int64_t weights = 0;
  clb_status s = clb_irreps_read(d->irreps_in, "irreps_in", &p->in, error);
  if (!s) s = clb_irreps_read(d->irreps_out, "irreps_out", &p->out, error);
  if (!s && ((unsigned)d->path_normalization > CLB_PATH_NONE))
    s = clb_fail(error, CLB_ERROR_ARGUMENT,
                 "path_normalization is %d; it must be CLB_PATH_ELEMENT, CLB_PATH_PATH or "
                 "CLB_PATH_NONE",
                 (int)d->path_normalization);
  if (!s && !d->instructions && d->n_instructions)
    s = clb_fail(error, CLB_ERROR_ARGUMENT, "instructions is NULL and n_instructions is %d",
                 d->n_instructions);
  if (!s) s = d->instructions ? given_paths(d, p, error) : all_paths(p, error);
  if (!s) weights = place_weights(p, d->path_normalization);
  if (!s) s = place_biases(d, p, &weights, error);
  if (!s && weights > INT32_MAX)
    s = clb_fail(error, CLB_ERROR_ARGUMENT, "there are more than 2^31 - 1 weights");
  if (!s) s = read_weights(d, p, error);
  p->n_weights = (int32_t)weights;
  p->layout_in = (int32_t)d->layout_in;
  p->layout_out = (int32_t)d->layout_out;
  p->gradients = (int32_t)bits_of("gradients", d->gradients,
                                  CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z, &s, error);
  p->incoming = (int32_t)bits_of("incoming", d->incoming, CLB_OPERAND_X | CLB_OPERAND_W, &s, error);
  return s;
}
