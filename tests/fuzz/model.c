/* tests/fuzz/model.c - what fuzzers of models share: a check that a model, read or converted, is
   consistent. */
#include "tests/fuzz/fuzz_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/convert/convert.h"

static void check_weights(const clb_model_file *f, int64_t at, int64_t n) {
  FUZZ_CHECK(n >= 0 && at >= 0 && at <= f->n_all_weights && n <= f->n_all_weights - at);
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

static void check_map(const clb_model_file *f, const clb_model_map *map, const clb_irreps *from,
                      const clb_irreps *to, int64_t species) {
  FUZZ_CHECK(map->n >= 0 && map->n <= CLB_MAX_TERMS);
  for (int b = 0; b < map->n; b++) {
    const clb_model_block *k = &map->block[b];
    FUZZ_CHECK(k->from >= 0 && k->from < from->n && k->to >= 0 && k->to < to->n);
    check_weights(f, k->weights, species * from->term[k->from].mul * to->term[k->to].mul);
  }
}

static void check_layer(const clb_model_file *f, const clb_model_layer *y, int number) {
  const clb_irreps *all[] = {&y->gathered, &y->in,    &y->message, &y->scalars,
                             &y->gates,    &y->gated, &y->out};
  int64_t channels = 0, n_weights = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_irreps(all[i]);
  FUZZ_CHECK(y->gathered.dim == y->message.dim);
  for (int t = 0; t < y->linear.n; t++) channels += y->linear.term[t].mul;
  FUZZ_CHECK(y->n_paths >= 1 && y->n_paths <= CLB_MAX_PATHS);
  for (int p = 0; p < y->n_paths; p++) {
    const clb_instruction *q = &y->path[p];
    FUZZ_CHECK(q->in1 >= 0 && q->in1 < y->in.n && q->in2 >= 0 && q->in2 <= f->l_max &&
               q->out >= 0 && q->out < y->message.n);
    n_weights += y->in.term[q->in1].mul;
  }
  FUZZ_CHECK(y->n_weights == n_weights && y->radial_width[0] == f->n_basis &&
             y->radial_width[f->n_radial] == n_weights);
  for (int k = 0; k < f->n_radial; k++)
    check_weights(f, y->radial[k], y->radial_width[k] * y->radial_width[k + 1]);
  check_map(f, &y->linear_1, &y->in, &y->in, 1);
  check_map(f, &y->linear_2, y->merged ? &y->gathered : &y->message, &y->linear, 1);
  check_map(f, &y->self, &y->in, &y->linear, f->species_self ? f->n_species : 1);
  if (f->rms) check_weights(f, y->norm, channels);
  if (number) return;
  check_weights(f, y->first_x, (int64_t)f->n_species * y->in.dim);
  check_weights(f, y->first_o, (int64_t)f->n_species * y->linear.dim);
}

static void check(const clb_model_file *f) {
  FUZZ_CHECK(f->n_species >= 1 && f->n_species <= CLB_ELEMENTS && f->n_layers >= 1 &&
             f->n_layers <= CLB_MODEL_LAYERS);
  FUZZ_CHECK(f->l_max >= 0 && f->l_max <= CLB_MAX_L && f->n_radial >= 1 &&
             f->n_radial <= CLB_MODEL_RADIAL && f->n_basis >= 1);
  FUZZ_CHECK(isfinite(f->r_max) && f->r_max > 0 && f->neighbours > 0 && f->architecture);
  fuzz_sentence(f->architecture);
  bool known[CLB_ELEMENTS + 1] = {false};
  for (int s = 0; s < f->n_species; s++) {
    const int z = f->atomic_number[s];
    FUZZ_CHECK(z >= 1 && z <= CLB_ELEMENTS && !known[z] &&
               !strcmp(f->symbol[s], clb_element_symbols[z]));
    known[z] = true;
  }
  for (int64_t i = 0; i < f->n_all_weights; i++) FUZZ_CHECK(isfinite(f->weights[i]));
  check_weights(f, f->frequencies, f->n_basis);
  for (int k = 0; k < f->n_basis; k++) FUZZ_CHECK(f->weights[f->frequencies + k] != 0);
  check_weights(f, f->scale, f->n_species);
  check_weights(f, f->shift, f->n_species);
  for (int n = 0; n < f->n_layers; n++) {
    check_layer(f, &f->layer[n], n);
    FUZZ_CHECK(!n || f->layer[n].in.dim == f->layer[n - 1].out.dim);
  }
  int64_t scalars = 0;
  const clb_irreps *last = &f->layer[f->n_layers - 1].scalars;
  for (int t = 0; t < last->n; t++) scalars += last->term[t].parity > 0 ? last->term[t].mul : 0;
  check_weights(f, f->readout, scalars);
}

typedef struct {
  const char *path;
  clb_error_sink error;
  clb_model_file file;
  clb_status status;
} input;

static bool read_model(void *user) {
  input *in = user;
  return !(in->status = clb_model_file_read(&in->error, in->path, &in->file));
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
  clb_model_file_free(&in.file);
  clb_text_free(&in.error.text);
  return good;
}

typedef struct {
  const char *from, *to;
} paths;

static bool convert(void *user) {
  const paths *p = user;
  convert_file(p->from, &(model_choice){0}, p->to);
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
