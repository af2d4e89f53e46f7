/* models/read.c - reads a model's file: what all architectures have, and then the rest as its
   architecture does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/arch/arch.h"
#include "models/read.h"
#include "models/passes/passes.h"

typedef clb_model_reader reader;
static const double min_r_max = 0.01, largest_r_max = 1000;

static void read_species(reader *r) {
  clb_network *f = r->out;
  const char *text = clb_model_text(r, "species");
  if (r->status) return;
  if (!(f->symbols = strdup(text))) clb_model_no_memory(r);
  for (char *s = f->symbols; s && *s;) {
    size_t n = strcspn(s, " ");
    if (f->n_species == CLB_ELEMENTS)
      clb_model_refuse(r, "'species' are more than %d", CLB_ELEMENTS);
    if (r->status) return;
    f->symbol[f->n_species] = s;
    const int element = f->atomic_number[f->n_species] = clb_element(s, n);
    if (!element)
      clb_model_refuse(r, "'species' has \"%.*s\", which is not an element", (int)(n < 60 ? n : 60),
                       s);
    for (int i = 0; i < f->n_species; i++)
      if (f->atomic_number[i] == element)
        clb_model_refuse(r, "'species' has %.*s twice, as species %d and %d", (int)n, s, i,
                         f->n_species);
    f->n_species++;
    if (!s[n]) break;
    s[n] = 0;
    s += n + 1;
  }
  if (!f->n_species) clb_model_refuse(r, "'species' is empty");
}

static void read_header(reader *r) {
  clb_network *n = r->out;
  clb_model_choice(r, "format", "clebsch model", NULL);
  clb_model_choice(r, "format_version", "1", NULL);
  read_species(r);
  n->r_max = clb_model_number(r, "r_max");
  if (!(n->r_max >= min_r_max && n->r_max <= largest_r_max))
    clb_model_refuse(r, "'r_max' is %g; it must be from %g to %g Angstrom", n->r_max, min_r_max,
                     largest_r_max);
}

static void read_architecture(reader *r) {
  const char *name = clb_model_text(r, "architecture");
  const clb_irreps vector = clb_scalars(3);
  clb_text known = {0};
  int i = 0;
  while (i < CLB_ARCHS && strcmp(clb_archs[i].name, name) != 0) i++;
  for (int k = 0; k < CLB_ARCHS; k++)
    clb_text_add(&known, "%s%s", !k ? "" : k == CLB_ARCHS - 1 ? " and " : ", ", clb_archs[k].name);
  if (i == CLB_ARCHS && !known.failed)
    clb_model_refuse(r, "'architecture' is \"%.60s\"; only %s are known", name, known.s);
  if (known.failed || (!r->status && !(r->out->architecture = strdup(name))))
    clb_model_no_memory(r);
  clb_text_free(&known);
  clb_model_array(r, CLB_PER_EDGE, true, &vector); /* CLB_VECTORS */
  if (!r->status) clb_archs[i].read(r);
}

/* Unused tensors are an error: the file would hold a different model from the one that its metadata
 describe. */
static void check_all_used(reader *r) {
  for (int i = 0; i < clb_safetensors_size(r->file); i++)
    if (!r->used[i])
      clb_model_refuse(r, "tensor '%.60s' has no place in the model that the metadata describe",
                       clb_safetensors_at(r->file, i)->name);
}

/* Checks that all weights are finite, including products of tensors. */
static void check_weights(reader *r) {
  for (int64_t i = 0; i < r->out->n_weights; i++)
    if (!isfinite(r->out->weights[i]))
      clb_model_refuse(r, "its matrices multiply to numbers that are not finite");
}

/* Lists the file's tensors as parameters. */
static void list_parameters(reader *r) {
  for (int i = 0; i < clb_safetensors_size(r->file) && !r->status; i++) {
    const clb_tensor *t = clb_safetensors_at(r->file, i);
    if (!clb_parameters_add(&r->out->parameter, t->name, t->rank, t->shape)) clb_model_no_memory(r);
  }
}

/* Networks that train keep what the file has: each weight is one of its numbers times a factor. */
static void rewrite(reader *r) {
  if (!r->status) r->status = clb_pass_fold(r->out);
  check_weights(r);
  if (!r->status) r->status = clb_pass_prune(r->out);
}

static void read_all(reader *r) {
  if (r->out->trains) list_parameters(r);
  read_header(r);
  read_architecture(r);
  check_all_used(r);
  for (int i = 0; i < clb_safetensors_size(r->file) && !r->status; i++)
    r->out->parameters += clb_safetensors_at(r->file, i)->count;
  if (!r->out->trains) rewrite(r);
  if (!r->status) clb_pass_merge(r->out);
  if (r->out->grid.r_max == 0) r->out->grid.intervals = 0; /* no radial network can have it */
}

clb_status clb_model_read(clb_error_sink *error, const char *path, int knots, bool trains,
                          clb_network *out) {
  reader r = {.error = error, .path = path, .out = out};
  *out = (clb_network){.error = error,
                       .trains = trains,
                       .knots = trains ? 0 : knots,
                       .grid = {.intervals = trains ? knots : 0}};
  r.status = clb_safetensors_open(error, path, &r.file);
  if (!r.status && !(r.used = calloc((size_t)clb_safetensors_size(r.file) + 1, sizeof *r.used)))
    clb_model_no_memory(&r);
  if (!r.status) read_all(&r);
  free(r.used);
  clb_safetensors_close(&r.file);
  return r.status;
}
