/* models/passes/frames.c - convolutions in the frames of edges, which the layer that makes
   harmonics makes, too. */
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "models/passes/passes.h"

/* Elements of an edge's frame; 0: the convolution does not work there. */
static clb_status find_columns(clb_network *n, const clb_layer *y, int64_t *columns) {
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_network_no_memory(n);
  const clb_status s = clb_convolution_describe(n, y, true, p);
  *columns = s ? 0 : clb_convolution_frame_columns(n->ctx, p);
  free(p);
  return s;
}

static void use_frames(clb_layer *y, int frames) {
  clb_convolution_layer *p = y->parameters;
  p->framed = true;
  y->in[CLB_CONVOLUTION_FRAMES] = frames;
  y->gradients =
      1U << CLB_CONVOLUTION_X | 1U << CLB_CONVOLUTION_FRAMES | 1U << CLB_CONVOLUTION_WEIGHTS;
}

static bool reads_harmonics(const clb_layer *edges, const clb_layer *y) {
  return edges && y->in[CLB_CONVOLUTION_HARMONICS] == edges->out[CLB_EDGES_HARMONICS];
}

clb_status clb_pass_frames(clb_network *n) {
  int64_t columns = -1;
  int frames, tables = -1;
  clb_layer *edges = NULL;
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && columns && !s; l++) {
    clb_layer *y = n->layer[l];
    int64_t own = columns;
    if (y->kind == &clb_edges_kind) edges = y;
    if (y->kind == &clb_edges_kind && ((clb_edges *)y->parameters)->solid) own = 0;
    if (y->kind == &clb_convolution_kind && !reads_harmonics(edges, y)) own = 0;
    else if (y->kind == &clb_convolution_kind) {
      s = find_columns(n, y, &own);
      if (tables >= 0 && tables != (y->in[CLB_CONVOLUTION_LENGTHS] >= 0)) own = 0;
      tables = y->in[CLB_CONVOLUTION_LENGTHS] >= 0;
    }
    columns = columns >= 0 && own != columns ? 0 : own;
  }
  if (s || columns <= 0 || !edges) return s;
  const clb_irreps irreps = clb_scalars(columns);
  s = clb_network_array(n, CLB_PER_EDGE, false, &irreps, &frames);
  if (s) return s;
  edges->out[CLB_EDGES_FRAMES] = frames;
  n->array[frames]->moves = true;
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->kind == &clb_convolution_kind) use_frames(n->layer[l], frames);
  return CLB_OK;
}
