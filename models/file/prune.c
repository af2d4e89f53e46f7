/* models/file/prune.c - drops what the energy does not need: everything but the even scalars in the
   last layer, unless a norm depends on the rest. */
#include <stdlib.h>
#include <string.h>

#include "models/file/file.h"

static bool even_scalar(const clb_term *t) { return !t->l && t->parity > 0; }

/* Shortens rows of `from` columns to their first `to` columns. */
static void narrow(double *w, int64_t rows, int64_t from, int64_t to) {
  for (int64_t i = 0; i < rows; i++) memmove(w + i * to, w + i * from, (size_t)to * sizeof *w);
}

/* Keeps the marked terms; `number` receives the new index of each, -1 for those dropped. */
static void keep_terms(clb_irreps *irreps, int *number) {
  clb_irreps kept = {0};
  for (int t = 0; t < irreps->n; t++) {
    number[t] = even_scalar(&irreps->term[t]) ? kept.n : -1;
    if (number[t] < 0) continue;
    kept.term[kept.n] = irreps->term[t];
    kept.term[kept.n++].at = kept.dim;
    kept.dim += irreps->term[t].mul;
  }
  *irreps = kept;
}

/* Keeps the paths to the remaining messages, and their columns of the last matrix of the radial
   network. */
static void keep_paths(clb_model_file *f, clb_model_layer *y, const int *message) {
  double *w = f->weights + y->radial[f->n_radial - 1];
  const int64_t rows = y->radial_width[f->n_radial - 1], before = y->n_weights;
  int64_t from = 0, to = 0;
  int n = 0;
  for (int q = 0; q < y->n_paths; q++) {
    const int64_t mul = y->in.term[y->path[q].in1].mul;
    if (message[y->path[q].out] >= 0) {
      for (int64_t i = 0; i < rows; i++)
        memmove(w + i * before + to, w + i * before + from, (size_t)mul * sizeof *w);
      y->path[n] = y->path[q];
      y->path[n++].out = message[y->path[q].out];
      to += mul;
    }
    from += mul;
  }
  narrow(w, rows, before, to);
  y->n_paths = n;
  y->n_weights = y->radial_width[f->n_radial] = to;
}

/* Keeps the first columns of the blocks to `scalars` (previously a term of `linear`). */
static void keep_blocks(clb_model_file *f, clb_model_map *m, const clb_irreps *from,
                        const int *number, int scalars, int64_t copies, int64_t before,
                        int64_t after) {
  int n = 0;
  for (int b = 0; b < m->n; b++) {
    clb_model_block k = m->block[b];
    if (k.to != scalars) continue;
    narrow(f->weights + k.weights, copies * from->term[k.from].mul, before, after);
    m->block[n++] = (clb_model_block){number ? number[k.from] : k.from, 0, k.weights};
  }
  m->n = n;
}

clb_status clb_model_file_prune(clb_error_sink *error, clb_model_file *f) {
  clb_model_layer *y = &f->layer[f->n_layers - 1];
  int message[CLB_MAX_TERMS], linear = 0;
  int64_t wanted = 0;
  clb_irreps *before = f->rms || f->n_layers == 1 ? NULL : malloc(sizeof *before);
  if (f->rms || f->n_layers == 1) return CLB_OK;
  if (!before) return clb_fail(error, CLB_ERROR_MEMORY, "no memory");
  while (linear < y->linear.n && !even_scalar(&y->linear.term[linear])) linear++;
  for (int t = 0; t < y->scalars.n; t++)
    wanted += even_scalar(&y->scalars.term[t]) ? y->scalars.term[t].mul : 0;
  *before = y->message;
  keep_terms(&y->message, message);
  if (y->message.n) {
    const int64_t width = y->linear.term[linear].mul;
    keep_paths(f, y, message);
    keep_blocks(f, &y->linear_2, before, message, linear, 1, width, wanted);
    if (y->bias_2)
      for (int64_t s = 0; s < f->n_species; s++)
        memmove(f->weights + y->bias_2 + s * wanted,
                f->weights + y->bias_2 + s * y->linear.dim + y->linear.term[linear].at,
                (size_t)wanted * sizeof *f->weights);
    keep_blocks(f, &y->self, &y->in, NULL, linear, f->species_self ? f->n_species : 1, width,
                wanted);
    y->linear = y->scalars = y->out = (clb_irreps){
        .n = 1, .dim = (int32_t)wanted, .term = {{.mul = (int32_t)wanted, .parity = 1}}};
    y->gates = y->gated = (clb_irreps){0};
  } else {
    y->message = *before; /* no message reaches them; dropping is not worthwhile */
  }
  free(before);
  return CLB_OK;
}
