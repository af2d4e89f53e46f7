/* tests/fuzz/model.c - what fuzzers of models share: a check that a model, read or converted, is
   consistent. */
#include "tests/fuzz/fuzz_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/layers/kinds.h"
#include "tools/convert/convert.h"

static void check_weights(const clb_network *f, int64_t at, int64_t n) {
  FUZZ_CHECK(n >= 0 && at >= 0 && at <= f->n_weights && n <= f->n_weights - at);
}

static void check_irreps(const clb_irreps *x) {
  int64_t at = 0;
  FUZZ_CHECK(x->n >= 0 && x->n <= CLB_MAX_TERMS);
  for (int t = 0; t < x->n; t++) {
    const clb_term *term = &x->term[t];
    FUZZ_CHECK(term->mul >= 1 && term->l >= 0 && term->l <= CLB_MAX_L &&
               (term->parity == 1 || term->parity == -1));
    FUZZ_CHECK(term->at == at);
    at += (int64_t)term->mul * (2 * term->l + 1);
  }
  FUZZ_CHECK(x->dim == at);
}

static void check_linear(const clb_network *f, const clb_layer *y) {
  const clb_linear *p = y->parameters;
  const clb_irreps *from = &f->array[y->in[0]]->irreps, *to = &f->array[y->out[0]]->irreps;
  FUZZ_CHECK(p->n >= 0 && p->n <= CLB_MAX_TERMS);
  for (int b = 0; b < p->n; b++) {
    const clb_block *k = &p->block[b];
    FUZZ_CHECK(k->from >= 0 && k->from < from->n && k->to >= 0 && k->to < to->n);
    FUZZ_CHECK(clb_same_irrep(&from->term[k->from], &to->term[k->to]));
    check_weights(f, k->weights,
                  (p->by_species ? clb_species_count(f, y->in[CLB_LINEAR_PAIRS]) : 1) *
                      from->term[k->from].mul * to->term[k->to].mul);
  }
}

static void check_radial(const clb_network *f, const clb_layer *y) {
  const clb_radial *p = y->parameters;
  FUZZ_CHECK(p->n >= 1 && p->n <= CLB_RADIAL_MATRICES);
  FUZZ_CHECK(p->width[0] == f->array[y->in[0]]->irreps.dim &&
             p->width[p->n] == f->array[y->out[CLB_RADIAL_WEIGHTS]]->irreps.dim);
  for (int k = 0; k < p->n; k++) check_weights(f, p->matrix[k], p->width[k] * p->width[k + 1]);
}

static void check_convolution(const clb_network *f, const clb_layer *y) {
  const clb_convolution_layer *p = y->parameters;
  const bool features = y->in[CLB_CONVOLUTION_X] >= 0;
  const clb_irreps *x = features ? &f->array[y->in[CLB_CONVOLUTION_X]]->irreps : &p->ones,
                   *harmonics = &f->array[y->in[CLB_CONVOLUTION_HARMONICS]]->irreps;
  int64_t n_weights = 0;
  if (!features) check_weights(f, p->ones_at, p->ones.dim);
  check_irreps(&p->message);
  FUZZ_CHECK(p->message.dim == f->array[y->out[CLB_CONVOLUTION_MESSAGE]]->irreps.dim);
  FUZZ_CHECK(p->n_paths >= 1 && p->n_paths <= CLB_MAX_PATHS && p->scale > 0);
  for (int i = 0; i < p->n_paths; i++) {
    const clb_instruction *q = &p->path[i];
    FUZZ_CHECK(q->in1 >= 0 && q->in1 < x->n && q->in2 >= 0 && q->in2 < harmonics->n &&
               q->out >= 0 && q->out < p->message.n);
    n_weights += x->term[q->in1].mul;
  }
  FUZZ_CHECK(p->n_weights == n_weights &&
             n_weights == f->array[y->in[CLB_CONVOLUTION_WEIGHTS]]->irreps.dim);
}

static void check_edge_product(const clb_network *f, const clb_layer *y) {
  const clb_product_layer *p = y->parameters;
  const clb_irreps *as_y = &f->array[y->in[CLB_PRODUCT_Y]]->irreps,
                   *as_out = &f->array[y->out[0]]->irreps, *other = p->y.n ? &p->y : as_y,
                   *out = p->z.n ? &p->z : as_out;
  int64_t n_weights = 0;
  check_irreps(&p->x);
  check_irreps(&p->y);
  check_irreps(&p->z);
  FUZZ_CHECK(other->dim == as_y->dim && out->dim == as_out->dim);
  FUZZ_CHECK(p->x.dim == f->array[y->in[CLB_PRODUCT_X]]->irreps.dim);
  FUZZ_CHECK(p->n_paths >= 1 && p->n_paths <= CLB_MAX_PATHS);
  for (int i = 0; i < p->n_paths; i++) {
    const clb_instruction *q = &p->path[i];
    FUZZ_CHECK(q->in1 >= 0 && q->in1 < p->x.n && q->in2 >= 0 && q->in2 < other->n && q->out >= 0 &&
               q->out < out->n && q->has_weight == p->path[0].has_weight);
    FUZZ_CHECK(p->x.term[q->in1].mul == out->term[q->out].mul);
    n_weights += q->has_weight ? p->x.term[q->in1].mul : 0;
  }
  check_weights(f, p->weights, n_weights);
}

static void check_bilinear(const clb_network *f, const clb_layer *y) {
  const clb_bilinear *p = y->parameters;
  const clb_irreps *out = &f->array[y->out[0]]->irreps;
  int64_t n_weights = 0;
  check_irreps(&p->first);
  check_irreps(&p->second);
  FUZZ_CHECK(p->first.dim + p->second.dim == f->array[y->in[CLB_BILINEAR_PARTS]]->irreps.dim);
  FUZZ_CHECK(p->n_paths >= 1 && p->n_paths <= CLB_MAX_PATHS);
  for (int i = 0; i < p->n_paths; i++) {
    const clb_instruction *q = &p->path[i];
    FUZZ_CHECK(q->in1 >= 0 && q->in1 < p->first.n && q->in2 >= 0 && q->in2 < p->second.n &&
               q->out >= 0 && q->out < out->n);
    FUZZ_CHECK(p->first.term[q->in1].mul == out->term[q->out].mul &&
               p->second.term[q->in2].mul == out->term[q->out].mul);
    n_weights += out->term[q->out].mul;
  }
  FUZZ_CHECK(n_weights == f->array[y->in[CLB_BILINEAR_WEIGHTS]]->irreps.dim);
}

static void check_gate(const clb_network *f, const clb_layer *y) {
  const clb_gate *p = y->parameters;
  const clb_irreps *parts[] = {&p->scalars, &p->gates, &p->gated};
  int64_t channels = 0;
  for (int i = 0; i < 3; i++) check_irreps(parts[i]), channels += clb_channels(parts[i], NULL);
  FUZZ_CHECK(channels == clb_channels(&f->array[y->in[0]]->irreps, NULL));
  FUZZ_CHECK(clb_channels(&p->gates, NULL) == clb_channels(&p->gated, NULL));
  FUZZ_CHECK(p->scalars.dim + p->gated.dim == f->array[y->out[0]]->irreps.dim);
}

static void check_basis(const clb_network *f, const clb_layer *y) {
  const clb_basis *p = y->parameters;
  FUZZ_CHECK(p->n == (y->out[0] < 0 ? 0 : f->array[y->out[0]]->irreps.dim));
  if (p->width) return;
  check_weights(f, p->frequencies, p->n);
  for (int k = 0; k < p->n; k++) FUZZ_CHECK(f->weights[p->frequencies + k] != 0);
  if (!p->transformed) return;
  check_weights(f, p->radii, f->n_species);
  for (int s = 0; s < f->n_species; s++) FUZZ_CHECK(f->weights[p->radii + s] > 0);
}

static void check_scale(const clb_network *f, const clb_layer *y) {
  FUZZ_CHECK(f->array[y->in[CLB_SCALE_ROWS]]->irreps.dim == f->array[y->out[0]]->irreps.dim);
  FUZZ_CHECK(f->array[y->in[CLB_SCALE_NUMBERS]]->irreps.dim == 1);
}

static void check_density(const clb_network *f, const clb_layer *y) {
  const clb_density *p = y->parameters;
  check_weights(f, p->weights, f->array[y->in[CLB_DENSITY_FUNCTIONS]]->irreps.dim);
}

static void check_product(const clb_network *f, const clb_layer *y) {
  const clb_product_basis *p = y->parameters;
  const clb_irreps *in = &f->array[y->in[0]]->irreps, *out = &f->array[y->out[0]]->irreps;
  FUZZ_CHECK(p->correlation >= 1 && p->correlation <= CLB_MAX_CORRELATION &&
             in->n <= CLB_MAX_ELL + 1);
  for (int t = 0; t < in->n; t++) FUZZ_CHECK(in->term[t].mul == out->term[0].mul);
  check_weights(f, p->weights,
                f->n_species * clb_product_basis_paths(p, in, out) * in->term[0].mul);
}

static void check_repulsion(const clb_network *f, const clb_layer *y) {
  const clb_repulsion *p = y->parameters;
  const int64_t pairs = (int64_t)f->n_species * f->n_species;
  check_weights(f, p->charges, f->n_species);
  check_weights(f, p->screening, f->n_species);
  check_weights(f, p->reach, pairs);
  for (int64_t i = 0; i < pairs; i++) FUZZ_CHECK(f->weights[p->reach + i] > 0);
}

static void check_stretch(const clb_network *f, const clb_layer *y) {
  const clb_stretch *p = y->parameters;
  const int64_t pairs = (int64_t)f->n_species * f->n_species;
  check_weights(f, p->factors, pairs);
  for (int64_t i = 0; i < pairs; i++) FUZZ_CHECK(f->weights[p->factors + i] > 0);
}

static void check_gaussians(const clb_network *f, const clb_layer *y) {
  const clb_gaussians *p = y->parameters;
  FUZZ_CHECK(f->array[y->in[0]]->irreps.dim == 1 && f->array[y->out[0]]->irreps.dim > 1);
  FUZZ_CHECK(p->r_max > 0 && p->width > 0);
}

static void check_grid(const clb_network *f, const clb_layer *y) {
  const clb_grid *p = y->parameters;
  const clb_irreps *in = &f->array[y->in[0]]->irreps, *out = &f->array[y->out[0]]->irreps,
                   *degrees = p->back ? out : in, *points = p->back ? in : out;
  FUZZ_CHECK(p->points >= 1 && p->points == points->n && degrees->n >= 1 &&
             p->points <= CLB_MAX_PATHS / degrees->n);
  for (int l = 0; l < degrees->n; l++)
    FUZZ_CHECK(degrees->term[l].l == l && degrees->term[l].mul == points->term[0].mul);
  check_weights(f, p->row, (int64_t)p->points * degrees->n * degrees->n);
}

static void check_rotation(const clb_network *f, const clb_layer *y) {
  const clb_rotation *p = y->parameters;
  FUZZ_CHECK(p->l >= 0 && p->l <= CLB_MAX_EDGE_ROTATION_L && p->m >= 0 && p->m <= p->l);
  FUZZ_CHECK(f->array[y->out[0]]->irreps.dim == clb_edge_rotation_columns(p->l, p->m));
}

static void check_states(const clb_network *f, const clb_layer *y) {
  const clb_states *p = y->parameters;
  for (int k = 0; k < 2; k++)
    check_weights(f, p->table[k], p->count[k] * f->array[y->out[0]]->irreps.dim);
}

static void check_embedding(const clb_network *f, const clb_layer *y) {
  const clb_embedding *p = y->parameters;
  check_weights(f, p->table,
                clb_species_count(f, y->in[CLB_EMBEDDING_PAIRS]) * f->array[y->out[0]]->irreps.dim);
}

static void check_norm(const clb_network *f, const clb_layer *y) {
  const clb_norm *p = y->parameters;
  const clb_irreps *irreps = &f->array[y->in[0]]->irreps;
  const clb_term even = {.l = 0, .parity = 1};
  check_weights(f, p->weights,
                clb_channels(irreps, NULL) + (p->centred ? clb_channels(irreps, &even) : 0));
}

static void check_energy(const clb_network *f, const clb_layer *y) {
  const clb_energy *p = y->parameters;
  FUZZ_CHECK(f->array[y->in[0]]->irreps.dim == 1);
  check_weights(f, p->scale, f->n_species);
  check_weights(f, p->shift, f->n_species);
}

static void check_layer(const clb_network *f, const clb_layer *y) {
  static const struct {
    const clb_layer_kind *kind;
    void (*check)(const clb_network *f, const clb_layer *y);
  } kinds[] = {{&clb_edges_kind, NULL},
               {&clb_exchange_kind, NULL},
               {&clb_basis_kind, check_basis},
               {&clb_radial_kind, check_radial},
               {&clb_embedding_kind, check_embedding},
               {&clb_linear_kind, check_linear},
               {&clb_convolution_kind, check_convolution},
               {&clb_product_kind, check_edge_product},
               {&clb_sender_product_kind, check_edge_product},
               {&clb_gaussians_kind, check_gaussians},
               {&clb_rotation_kind, check_rotation},
               {&clb_grid_kind, check_grid},
               {&clb_states_kind, check_states},
               {&clb_pairs_kind, NULL},
               {&clb_bilinear_kind, check_bilinear},
               {&clb_norm_kind, check_norm},
               {&clb_gate_kind, check_gate},
               {&clb_scale_kind, check_scale},
               {&clb_density_kind, check_density},
               {&clb_product_basis_kind, check_product},
               {&clb_repulsion_kind, check_repulsion},
               {&clb_stretch_kind, check_stretch},
               {&clb_energy_kind, check_energy}};
  size_t k = 0;
  for (int i = 0; i < CLB_LAYER_INS; i++) FUZZ_CHECK(y->in[i] >= -1 && y->in[i] < f->n_arrays);
  for (int i = 0; i < CLB_LAYER_OUTS; i++) FUZZ_CHECK(y->out[i] >= -1 && y->out[i] < f->n_arrays);
  FUZZ_CHECK(y->work >= -1 && y->work < f->n_arrays);
  while (k < sizeof kinds / sizeof *kinds && kinds[k].kind != y->kind) k++;
  FUZZ_CHECK(k < sizeof kinds / sizeof *kinds);
  if (kinds[k].check) kinds[k].check(f, y);
}

static void check(const clb_network *f) {
  FUZZ_CHECK(f->n_species >= 1 && f->n_species <= CLB_ELEMENTS && f->n_blocks >= 1);
  FUZZ_CHECK(f->l_max >= 0 && f->l_max <= CLB_MAX_L);
  FUZZ_CHECK(isfinite(f->r_max) && f->r_max > 0 && f->architecture);
  fuzz_sentence(f->architecture);
  bool known[CLB_ELEMENTS + 1] = {false};
  for (int s = 0; s < f->n_species; s++) {
    const int z = f->atomic_number[s];
    FUZZ_CHECK(z >= 1 && z <= CLB_ELEMENTS && !known[z] &&
               !strcmp(f->symbol[s], clb_element_symbols[z]));
    known[z] = true;
  }
  for (int64_t i = 0; i < f->n_weights; i++) FUZZ_CHECK(isfinite(f->weights[i]));
  for (int i = 0; i < f->n_arrays; i++) check_irreps(&f->array[i]->irreps);
  for (int l = 0; l < f->n_layers; l++) check_layer(f, f->layer[l]);
  FUZZ_CHECK(f->n_layers && f->layer[f->n_layers - 1]->kind->ends);
}

typedef struct {
  const char *path;
  clb_error_sink error;
  clb_network file;
  clb_status status;
} input;

static bool read_model(void *user) {
  input *in = user;
  return !(in->status = clb_model_read(&in->error, in->path, 0, false, &in->file));
}

bool fuzz_model(const char *path, size_t n) {
  static const fuzz_bounds bounds = {16 << 20, 256, true};
  input in = {.path = path};
  const bool good = fuzz_run(&bounds, n, read_model, &in);
  if (good) check(&in.file);
  else {
    fuzz_sentence(in.error.text.s);
    FUZZ_CHECK(in.status == CLB_ERROR_ARGUMENT);
  }
  clb_network_free(&in.file);
  clb_text_free(&in.error.text);
  return good;
}

typedef struct {
  const char *from, *to;
} paths;

static bool convert(void *user) {
  const paths *p = user;
  model_free(convert_file(p->from, &(model_choice){0}, p->to));
  return true;
}

void fuzz_convert(const char *path, size_t n) {
  static const fuzz_bounds bounds = {4 << 20, 256, false};
  paths p = {path, fuzz_path(".safetensors")};
  if (fuzz_run(&bounds, n, convert, &p)) fuzz_model(p.to, n), unlink(p.to);
  else FUZZ_CHECK(access(p.to, F_OK));
}

uint8_t *fuzz_corpus(const char *name, size_t *n) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", FUZZ_CORPUS, name);
  FILE *f = fopen(path, "rb");
  uint8_t *bytes = malloc(1 << 20);
  if (!f || !bytes) fuzz_fail("%s: cannot be read", path);
  *n = fread(bytes, 1, 1 << 20, f);
  fclose(f);
  return bytes;
}
