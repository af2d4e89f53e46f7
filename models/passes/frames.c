/* models/passes/frames.c - convolutions in the frames of edges, which the first one makes. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

/* Elements of an edge's frame; 0: the convolution does not work there. */
static clb_status find_columns(clb_network *n, const clb_layer *y, int64_t *columns) {
  clb_text text[CLB_CONVOLUTION_TEXTS] = {{0}};
  clb_convolution_desc d;
  const clb_status s = clb_convolution_describe(n, y, text, &d);
  d.vectors = 1;
  *columns = s ? 0 : clb_convolution_frame_columns(n->ctx, &d);
  for (int i = 0; i < CLB_CONVOLUTION_TEXTS; i++) clb_text_free(&text[i]);
  return s;
}

static void use_frames(clb_layer *y, int frames, bool first) {
  clb_convolution_layer *p = y->parameters;
  p->framed = true;
  y->in[CLB_CONVOLUTION_VECTORS] = CLB_VECTORS;
  *(first ? &y->out[CLB_CONVOLUTION_MADE] : &y->in[CLB_CONVOLUTION_FRAMES]) = frames;
  y->gradients =
      1U << CLB_CONVOLUTION_X | 1U << CLB_CONVOLUTION_VECTORS | 1U << CLB_CONVOLUTION_WEIGHTS;
}

clb_status clb_pass_frames(clb_network *n) {
  int64_t columns = -1;
  int frames;
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && columns && !s; l++) {
    const clb_layer *y = n->layer[l];
    int64_t own = columns;
    if (y->kind == &clb_edges_kind && ((clb_edges *)y->parameters)->solid) own = 0;
    if (y->kind == &clb_convolution_kind) s = find_columns(n, y, &own);
    columns = columns >= 0 && own != columns ? 0 : own;
  }
  if (s || columns <= 0) return s;
  const clb_irreps irreps = clb_scalars(columns);
  s = clb_network_array(n, CLB_PER_EDGE, false, &irreps, &frames);
  for (int l = 0, found = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind == &clb_convolution_kind) use_frames(n->layer[l], frames, !found++);
  return s;
}
