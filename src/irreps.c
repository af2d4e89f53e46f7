/* irreps.c - "32x0e+16x1o" <-> terms, and what a tensor product's description says of its paths. */
#include "irreps.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static const char *skip_space(const char *s) {
  while (isspace((unsigned char)*s)) s++;
  return s;
}

/* A whole number that fits in 31 bits, and white space around it. */
static bool read_number(const char **s, int64_t *n) {
  const char *c = skip_space(*s);
  if (!isdigit((unsigned char)*c)) return false;
  for (*n = 0; isdigit((unsigned char)*c); c++)
    if ((*n = 10 * *n + (*c - '0')) > INT32_MAX) return false;
  *s = skip_space(c);
  return true;
}

/* [mul "x"] l ("e" | "o" | "y") */
static bool read_term(const char **s, clb_term *term) {
  int64_t mul = 1, l;
  if (!read_number(s, &l)) return false;
  if (**s == 'x') {
    ++*s;
    mul = l;
    if (!read_number(s, &l)) return false;
  }
  char p = **s;
  if (p != 'e' && p != 'o' && p != 'y') return false;
  *s = skip_space(*s + 1);
  term->mul = (int32_t)mul;
  term->l = (int32_t)l;
  term->parity = p == 'e' || (p == 'y' && l % 2 == 0) ? 1 : -1;
  return true;
}

clb_status clb_irreps_read(const char *text, const char *name, clb_irreps *irreps, clb_error_sink *error) {
  memset(irreps, 0, sizeof *irreps);
  if (!text) return clb_fail(error, CLB_ERROR_ARGUMENT, "%s is NULL", name);
  for (const char *s = skip_space(text); *s || irreps->n;) {
    clb_term term = {0};
    const char *start = s;
    if (!read_term(&s, &term) || (*s && *s != '+'))
      return clb_fail(error, CLB_ERROR_ARGUMENT, "%s is \"%s\"; a term such as 16x1o must stand where it says \"%s\"", name, text, start);
    if (term.l > CLB_MAX_L) return clb_fail(error, CLB_ERROR_ARGUMENT, "%s is \"%s\"; l is at most %d", name, text, CLB_MAX_L);
    if (irreps->n == CLB_MAX_TERMS) return clb_fail(error, CLB_ERROR_ARGUMENT, "%s has more than %d terms", name, CLB_MAX_TERMS);
    int64_t dim = irreps->dim + (int64_t)term.mul * (2 * term.l + 1);
    if (dim > INT32_MAX) return clb_fail(error, CLB_ERROR_ARGUMENT, "%s is \"%s\"; its dimension is more than 2^31 - 1", name, text);
    term.at = irreps->dim;
    irreps->dim = (int32_t)dim;
    irreps->term[irreps->n++] = term;
    if (!*s) break;
    s++;
  }
  return CLB_OK;
}

void clb_irreps_print(const clb_irreps *irreps, clb_text *out) {
  clb_text_bytes(out, "", 0); /* no terms: an empty string, not none */
  for (int i = 0; i < irreps->n; i++) {
    const clb_term *t = &irreps->term[i];
    clb_text_add(out, "%s%dx%d%c", i ? "+" : "", (int)t->mul, (int)t->l, t->parity > 0 ? 'e' : 'o');
  }
}

/* ---- descriptions ---- */

static clb_status check_choice(const char *name, int value, int choices, clb_error_sink *error) {
  return value >= 0 && value < choices ? CLB_OK : clb_fail(error, CLB_ERROR_ARGUMENT, "%s is %d; it must be 0 ... %d", name, value, choices - 1);
}

static clb_status check_choices(const clb_tensor_product_desc *desc, clb_error_sink *error) {
  clb_status s = check_choice("irrep_normalization", (int)desc->irrep_normalization, 3, error);
  if (!s) s = check_choice("path_normalization", (int)desc->path_normalization, 3, error);
  if (!s) s = check_choice("layout_x", (int)desc->layout_x, 2, error);
  if (!s) s = check_choice("layout_y", (int)desc->layout_y, 2, error);
  if (!s) s = check_choice("layout_z", (int)desc->layout_z, 2, error);
  if (s) return s;
  if (!desc->instructions) return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions is NULL");
  if (desc->n_instructions < 1 || desc->n_instructions > CLB_MAX_PATHS)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_instructions is %d; it must be 1 ... %d", desc->n_instructions, CLB_MAX_PATHS);
  return CLB_OK;
}

static clb_status check_term(int i, const char *member, int term, const char *name, const clb_irreps *irreps, clb_error_sink *error) {
  if (term >= 0 && term < irreps->n) return CLB_OK;
  return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions[%d].%s is %d; %s has %d terms", i, member, term, name, (int)irreps->n);
}

static char letter(const clb_term *t) { return t->parity > 0 ? 'e' : 'o'; }

static clb_status check_instruction(const clb_tensor_product_problem *p, const clb_instruction *q, int i, clb_error_sink *error) {
  static const char *const modes[] = {"uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw"};
  clb_status s = check_term(i, "in1", q->in1, "irreps_x", &p->x, error);
  if (!s) s = check_term(i, "in2", q->in2, "irreps_y", &p->y, error);
  if (!s) s = check_term(i, "out", q->out, "irreps_z", &p->z, error);
  if (!s) s = check_choice("the mode of an instruction", (int)q->mode, 8, error);
  if (s) return s;
  const clb_term *x = &p->x.term[q->in1], *y = &p->y.term[q->in2], *z = &p->z.term[q->out];
  if (x->parity * y->parity != z->parity || z->l < abs(x->l - y->l) || z->l > x->l + y->l)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions[%d]: %d%c times %d%c holds no %d%c; parities multiply, and |l1 - l2| <= l3 <= l1 + l2", i, (int)x->l,
                    letter(x), (int)y->l, letter(y), (int)z->l, letter(z));
  if (!(q->path_weight >= 0 && q->path_weight < INFINITY))
    return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions[%d].path_weight is %g; it must be 0 or more, and finite", i, q->path_weight);
  if (q->mode != CLB_UVU)
    return clb_fail(error, CLB_ERROR_UNSUPPORTED, "instructions[%d].mode is %s; only uvu is supported so far", i, modes[q->mode]);
  if (z->mul != x->mul)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions[%d]: mode uvu needs as many channels in the output term (%d) as in the term of x (%d)", i, (int)z->mul,
                    (int)x->mul);
  if (y->mul != 1)
    return clb_fail(error, CLB_ERROR_UNSUPPORTED, "instructions[%d]: the term of y has multiplicity %d; only 1 is supported so far", i, (int)y->mul);
  return CLB_OK;
}

/* Elements summed in one output element of a path, times the variances of its inputs, which are 1. */
static double fan_in(const clb_tensor_product_problem *p, const clb_instruction *q) {
  return p->y.term[q->in2].mul; /* mode uvu sums over v */
}

/* sqrt(alpha path_weight / x), as e3nn defines alpha and x. */
static double coefficient(const clb_tensor_product_problem *p, const clb_tensor_product_desc *desc, int i) {
  const clb_instruction *all = desc->instructions, *q = &all[i];
  double n1 = 2 * p->x.term[q->in1].l + 1, n2 = 2 * p->y.term[q->in2].l + 1, n3 = 2 * p->z.term[q->out].l + 1;
  double alpha = desc->irrep_normalization == CLB_IRREP_COMPONENT ? n3 : desc->irrep_normalization == CLB_IRREP_NORM ? n1 * n2 : 1;
  double elements = 0, paths = 0, x = 1;
  for (int j = 0; j < desc->n_instructions; j++)
    if (all[j].out == q->out) elements += fan_in(p, &all[j]), paths++;
  if (desc->path_normalization == CLB_PATH_ELEMENT) x = elements;
  if (desc->path_normalization == CLB_PATH_PATH) x = fan_in(p, q) * paths;
  return sqrt(alpha * q->path_weight / x);
}

static clb_status add_path(clb_tensor_product_problem *p, const clb_tensor_product_desc *desc, int i, clb_error_sink *error) {
  const clb_instruction *q = &desc->instructions[i];
  int64_t weights = q->has_weight ? (int64_t)p->x.term[q->in1].mul * p->y.term[q->in2].mul : 0;
  if (p->n_weights + weights > INT32_MAX) return clb_fail(error, CLB_ERROR_ARGUMENT, "there are more than 2^31 - 1 weights");
  if (!p->x.term[q->in1].mul) return CLB_OK; /* nothing to compute */
  clb_path *path = &p->path[p->n_paths++];
  path->in1 = q->in1;
  path->in2 = q->in2;
  path->out = q->out;
  path->mode = (int32_t)q->mode;
  path->has_weight = q->has_weight != 0;
  path->weight_at = weights ? p->n_weights : 0;
  path->coefficient = coefficient(p, desc, i);
  p->n_weights += (int32_t)weights;
  return CLB_OK;
}

clb_status clb_tensor_product_read(const clb_tensor_product_desc *desc, clb_tensor_product_problem *p, clb_error_sink *error) {
  clb_status s = check_choices(desc, error);
  if (!s) s = clb_irreps_read(desc->irreps_x, "irreps_x", &p->x, error);
  if (!s) s = clb_irreps_read(desc->irreps_y, "irreps_y", &p->y, error);
  if (!s) s = clb_irreps_read(desc->irreps_z, "irreps_z", &p->z, error);
  for (int i = 0; i < desc->n_instructions && !s; i++) s = check_instruction(p, &desc->instructions[i], i, error);
  for (int i = 0; i < desc->n_instructions && !s; i++) s = add_path(p, desc, i, error);
  p->layout_x = (int32_t)desc->layout_x;
  p->layout_y = (int32_t)desc->layout_y;
  p->layout_z = (int32_t)desc->layout_z;
  return s;
}
