/* models/layers/linear.c - a map between features: matrix products, or with matrices by species an
   op of its own. */
#include <stdlib.h>
#include <string.h>

#include "models/layers/kinds.h"

clb_status clb_linear_add(clb_network *n, clb_linear *p, int from, int to, int64_t weights) {
  if (p->n == CLB_MAX_TERMS)
    return clb_fail(n->error, CLB_ERROR_ARGUMENT, "a linear map has more than %d matrices",
                    CLB_MAX_TERMS);
  p->block[p->n++] = (clb_block){from, to, weights};
  return CLB_OK;
}

static int64_t matrices(const clb_network *n, const clb_linear *p) {
  return p->by_species ? n->n_species : 1;
}

/* ---- ops ---- */

/* The op's weights are contiguous blocks. */
static clb_status create_by_species(clb_network *n, const clb_layer *y, clb_linear *p) {
  const clb_irreps *in = &n->array[y->in[0]]->irreps, *out = &n->array[y->out[0]]->irreps;
  clb_text text[2] = {{0}};
  int64_t size = 0, at = 0;
  for (int b = 0; b < p->n; b++)
    size += (int64_t)in->term[p->block[b].from].mul * n->n_species * out->term[p->block[b].to].mul;
  double *w = malloc((size_t)(size ? size : 1) * sizeof *w);
  const char *from = clb_irreps_text(in, &text[0]), *to = clb_irreps_text(out, &text[1]);
  clb_status s = w && from && to ? CLB_OK : clb_network_no_memory(n);
  for (int b = 0; b < p->n && !s; b++) {
    const clb_block *k = &p->block[b];
    const int64_t count = (int64_t)in->term[k->from].mul * n->n_species * out->term[k->to].mul;
    memcpy(w + at, n->weights + k->weights, (size_t)count * sizeof *w);
    at += count;
  }
  if (!s) s = clb_species_linear_create(n->ctx, n->type, from, to, n->n_species, w, &p->op);
  free(w);
  for (int i = 0; i < 2; i++) clb_text_free(&text[i]);
  return s;
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_linear *p = y->parameters;
  return p->by_species ? create_by_species(n, y, p) : clb_network_product(n);
}

typedef struct {
  clb_rows rows;
  const clb_irreps *irreps;
} features;

/* One block for all rows and components; k NULL: zeros. */
static clb_status run_block(clb_network *n, const clb_block *k, bool backward, int64_t rows,
                            features from, features to, int c, bool add) {
  const clb_term *out = &to.irreps->term[c];
  clb_gemm_step p = {.rows = rows,
                     .columns = out->mul,
                     .count = 2 * out->l + 1,
                     .transposed = backward && k,
                     .add = add,
                     .a = from.rows,
                     .c = to.rows};
  if (k) {
    const clb_term *in = &from.irreps->term[backward ? k->to : k->from];
    p.inner = in->mul;
    p.weights = k->weights;
    p.a.offset += in->at;
  }
  p.c.offset += out->at;
  return clb_network_multiply(n, &p);
}

/* to (= or +=) the map of `from`, or backward: the gradient by its input from that by its
   output. */
static clb_status run_blocks(clb_network *n, const clb_linear *p, bool backward, int64_t rows,
                             features from, features to, bool add) {
  clb_status s = CLB_OK;
  for (int c = 0; c < to.irreps->n && !s; c++) {
    bool some = add;
    for (int i = 0; i < p->n && !s; i++) {
      const clb_block *k = &p->block[i];
      if ((backward ? k->from : k->to) != c) continue;
      s = run_block(n, k, backward, rows, from, to, c, some);
      some = true;
    }
    if (!some && !s) s = run_block(n, NULL, backward, rows, from, to, c, false);
  }
  return s;
}

/* Ghosts have no input; `exchange` sets their rows of the output. */
static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_rows in = clb_value(n, y->in[0]), out = clb_value(n, y->out[0]);
  if (p->op) return clb_species_linear_forward(p->op, rows, n->species, in, out, adds & 1);
  return run_blocks(n, p, false, rows, (features){in, &n->array[y->in[0]]->irreps},
                    (features){out, &n->array[y->out[0]]->irreps}, adds & 1);
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_rows g_in = clb_gradient(n, y->in[0]), g_out = clb_gradient(n, y->out[0]);
  if (p->op) return clb_species_linear_backward(p->op, rows, n->species, g_out, g_in, adds & 1);
  return run_blocks(n, p, true, rows, (features){g_out, &n->array[y->out[0]]->irreps},
                    (features){g_in, &n->array[y->in[0]]->irreps}, adds & 1);
}

/* ---- pruning ---- */

static void need(const clb_network *n, const clb_layer *y, clb_needed needed) {
  const clb_linear *p = y->parameters;
  for (int b = 0; b < p->n; b++)
    if (clb_needed_in(n, y->out[0], needed, p->block[b].to))
      clb_need(n, y->in[0], needed, p->block[b].from);
}

/* Drops rows and columns of a matrix; the others go to an offset at or before it. Returns the end
   of what it was. */
static int64_t shrink(clb_network *n, const clb_layer *y, clb_needed needed, const clb_block *k,
                      int64_t *to) {
  const clb_irreps *in = &n->array[y->in[0]]->irreps, *out = &n->array[y->out[0]]->irreps;
  const bool *rows = needed[y->in[0]] + clb_first_channel(in, k->from),
             *columns = needed[y->out[0]] + clb_first_channel(out, k->to);
  int64_t from = k->weights;
  for (int i = 0; i < in->term[k->from].mul; i++)
    for (int64_t s = 0; s < matrices(n, y->parameters); s++)
      for (int c = 0; c < out->term[k->to].mul; c++, from++)
        if (rows[i] && columns[c]) n->weights[(*to)++] = n->weights[from];
  return from;
}

/* Matrices that follow each other do so afterwards, so that they can still be merged. */
static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  clb_linear *p = y->parameters;
  int64_t end = -1, to = 0;
  int count = 0;
  for (int b = 0; b < p->n; b++) {
    clb_block k = p->block[b];
    if (k.weights != end) to = k.weights;
    const int64_t at = to;
    end = shrink(n, y, needed, &k, &to);
    k = (clb_block){clb_needed_term(n, y->in[0], needed, k.from),
                    clb_needed_term(n, y->out[0], needed, k.to), at};
    if (k.from >= 0 && k.to >= 0) p->block[count++] = k;
  }
  p->n = count;
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_linear *)parameters)->op); }

const clb_layer_kind clb_linear_kind = {.sums = true,
                                        .build = build,
                                        .forward = forward,
                                        .backward = backward,
                                        .need = need,
                                        .keep = keep,
                                        .free_ops = free_ops};
