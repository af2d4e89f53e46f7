/* models/passes/frames.c - convolutions in the frames of edges, which a layer before
   them makes. */
#include <stdlib.h>
#include <string.h>

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

/* A layer that makes them, before the first convolution. */
static clb_status make_frames(clb_network *n, int vectors, int frames, int torques) {
  clb_layer *y;
  int l = 0;
  while (n->layer[l]->kind != &clb_convolution_kind) l++;
  const clb_status s = clb_network_layer(n, &clb_frames_kind, "frames", sizeof(clb_frames), &y);
  if (s) return s;
  y->in[0] = vectors;
  y->out[CLB_FRAMES_FRAMES] = frames;
  y->out[CLB_FRAMES_TORQUES] = torques;
  y->gradients = 1;
  memmove(n->layer + l + 1, n->layer + l, (size_t)(n->n_layers - 1 - l) * sizeof *n->layer);
  n->layer[l] = y;
  return CLB_OK;
}

static void use_frames(clb_layer *y, int frames, int torques) {
  clb_convolution_layer *p = y->parameters;
  p->framed = true;
  y->in[CLB_CONVOLUTION_TORQUES] = torques;
  y->in[CLB_CONVOLUTION_FRAMES] = frames;
  y->gradients =
      1U << CLB_CONVOLUTION_X | 1U << CLB_CONVOLUTION_TORQUES | 1U << CLB_CONVOLUTION_WEIGHTS;
}

clb_status clb_pass_frames(clb_network *n) {
  int64_t columns = -1;
  int tables = -1;
  int frames, torques, vectors = CLB_VECTORS;
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && columns && !s; l++) {
    const clb_layer *y = n->layer[l];
    int64_t own = columns;
    if (y->kind == &clb_edges_kind) vectors = y->in[CLB_EDGES_VECTORS];
    if (y->kind == &clb_edges_kind && ((clb_edges *)y->parameters)->solid) own = 0;
    if (y->kind == &clb_convolution_kind) {
      s = find_columns(n, y, &own);
      if (tables >= 0 && tables != (y->in[CLB_CONVOLUTION_LENGTHS] >= 0)) own = 0;
      tables = y->in[CLB_CONVOLUTION_LENGTHS] >= 0;
    }
    columns = columns >= 0 && own != columns ? 0 : own;
  }
  if (s || columns <= 0) return s;
  const clb_irreps irreps = clb_scalars(columns);
  s = clb_network_array(n, CLB_PER_EDGE, false, &irreps, &frames);
  if (!s) s = clb_network_array(n, CLB_PER_EDGE, false, &irreps, &torques);
  if (!s) s = make_frames(n, vectors, frames, torques);
  if (!s) n->array[torques]->moves = n->array[torques]->gradient_alone = true;
  for (int l = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind == &clb_convolution_kind) use_frames(n->layer[l], frames, torques);
  return s;
}
