/* kernels/convolution/host/vector_passes.c - passes of convolutions with edge vectors in place of a
   convolution's y and, where weights are splines, of lengths.

   With y = Y(v / |v|), r = |v| and J = dY/dv:
     backward         g_v = J^T g_y + g_r v / |v|
     double backward  b = J h, q = h . v / r, h the incoming gradient of g_v, and
                      d_v = J^T d_y + (dJ/dv h)^T g_y + d_r v / |v| + g_r dq/dv;
                      for this g_y and g_r are recomputed. Rows of y, b, r, q and their gradients
   lie at the end of the caller's workspace, in the storage type: some hundred bytes per edge.
   Passes that work in the edge's frame have rows of frames and tangents there instead, of
   arithmetic precision (kernels/convolution/frame.h). */
#include "kernels/convolution/host/vectors.h"

#include <stdlib.h>

#include "kernels/convolution/frame.h"
#include "kernels/convolution/host/frames.h"
#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"
#include "kernels/host/operand_lists.h"

static const clb_convolution_shared *shared_in(const clb_convolution_vectors *v, clb_pass pass) {
  return pass <= CLB_BACKWARD ? v->shared : NULL;
}

/* ---- workspace ---- */

/* Offsets of rows in bytes. */
typedef struct {
  int64_t y, g_y, b, r, g_r, q, end;
} places;

static places places_of(const clb_convolution_vectors *v, clb_pass pass, int64_t n) {
  int64_t rows = clb_align_256(n * v->stride * v->bytes),
          numbers = v->lengths ? clb_align_256(n * v->bytes) : 0;
  places at = {0};
  if (shared_in(v, pass)) return at;
  if (clb_convolution_in_frame(v->op, pass)) {
    const int64_t wide = clb_dtype_bytes(v->op->problem.arithmetic);
    at.b = clb_align_256(n * clb_convolution_frames_columns(v->frames) * wide);
    at.r = at.b + (pass == CLB_DOUBLE_BACKWARD ? clb_align_256(n * CLB_TANGENT_SIZE * wide) : 0);
    at.end = at.r + numbers;
    return at;
  }
  at.g_y = rows;
  at.b = at.g_y + (pass != CLB_FORWARD ? rows : 0);
  at.r = at.b + (pass == CLB_DOUBLE_BACKWARD ? rows : 0);
  at.g_r = at.r + numbers;
  at.q = at.g_r + (pass != CLB_FORWARD ? numbers : 0);
  at.end = at.q + (pass == CLB_DOUBLE_BACKWARD ? numbers : 0);
  return at;
}

int64_t clb_convolution_vectors_bytes(const clb_convolution_vectors *v, clb_pass pass,
                                      int64_t n_edges) {
  return places_of(v, pass, n_edges).end;
}

int64_t clb_convolution_vectors_bytes_before(const clb_convolution_vectors *v, clb_pass pass,
                                             const clb_graph *graph, int64_t edges) {
  return pass == CLB_DOUBLE_BACKWARD && v->first
             ? clb_convolution_bytes(v->first, CLB_BACKWARD, graph, edges)
             : 0;
}

/* ---- passes ---- */

enum { X_AT, Y_AT, W_AT, G_AT, B_AT = 5, C_AT }; /* position of an operand in its call */
static int y_gradient(clb_pass pass) { return pass == CLB_BACKWARD ? 5 : 8; }

typedef struct {
  clb_rows y, g_y, b, r, g_r, q;
} scratch;

static scratch scratch_of(const clb_convolution_vectors *v, const clb_convolution_call *c,
                          const clb_convolution_vector_rows *kept) {
  places at = places_of(v, c->pass, c->graph->n_edges);
  int64_t start = (int64_t)c->workspace.bytes;
  clb_buffer *b = (clb_buffer *)&kept->rows;
  return (scratch){{b, (start + at.y) / v->bytes, v->stride, NULL},
                   {b, (start + at.g_y) / v->bytes, v->stride, NULL},
                   {b, (start + at.b) / v->bytes, v->stride, NULL},
                   {b, (start + at.r) / v->bytes, CLB_DENSE, NULL},
                   {b, (start + at.g_r) / v->bytes, CLB_DENSE, NULL},
                   {b, (start + at.q) / v->bytes, CLB_DENSE, NULL}};
}

static void put(clb_operand *o, clb_rows rows, int64_t columns) {
  o->rows = rows;
  o->columns = columns;
}

/* Does not use clb_public_op_run, because its table of all public ops also refers to the
   convolution. */
static clb_status run_harmonics(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows) {
  clb_operand operands[CLB_MAX_OPERANDS];
  const int count = clb_spherical_harmonics_operands(&op->problem, pass, rows, operands);
  return clb_op_run_rows(op, CLB_SPHERICAL_HARMONICS, pass, n, operands, count);
}

/* Computes b = J h and q, and, if requested, the part of d_v that does not come from d_y and
   d_r. */
static clb_status go_along(const clb_convolution_vectors *v, const clb_convolution_call *c,
                           const clb_convolution_vector_rows *kept, const scratch *at) {
  const clb_operand *o = c->operand;
  clb_buffer workspace = {.ctx = c->op->ctx, .memory = c->workspace};
  bool bends = kept->gradient.buffer;
  clb_status s = CLB_OK;
  if (bends)
    s = clb_convolution_run(
        v->first, CLB_BACKWARD, c->graph,
        (const clb_rows[]){o[X_AT].rows, at->y, o[W_AT].rows, o[G_AT].rows, {0}, at->g_y, at->g_r},
        &workspace);
  if (s) return s;
  clb_rows g_y = bends ? at->g_y : at->y, g_r = bends ? at->g_r : at->r,
           d_v = bends ? kept->gradient : at->g_y; /* otherwise unused */
  s = run_harmonics(v->harmonics, CLB_DOUBLE_BACKWARD, c->graph->n_edges,
                    (const clb_rows[]){kept->vector, g_y, kept->along, d_v, at->b});
  return s || !v->lengths ? s
                          : clb_lengths_along_run(v->lengths_along, c->graph->n_edges, kept->vector,
                                                  kept->along, g_r, at->q, d_v);
}

/* Rows of arithmetic precision from byte `at` of those in the workspace on. */
static clb_rows wide_rows(const clb_convolution_call *c, const clb_convolution_vector_rows *kept,
                          int64_t at, int64_t columns) {
  return (clb_rows){(clb_buffer *)&kept->rows,
                    ((int64_t)c->workspace.bytes + at) / clb_dtype_bytes(c->op->problem.arithmetic),
                    columns, NULL};
}

static void put_wide(clb_operand *o, clb_rows rows, int64_t columns) {
  put(o, rows, columns);
  o->wide = true;
}

/* Tangents in the place of what comes in along vectors and lengths. */
static clb_status make_tangents(const clb_convolution_vectors *v, clb_convolution_call *c,
                                const clb_convolution_vector_rows *kept) {
  const int64_t n = c->graph->n_edges, at = places_of(v, c->pass, n).b;
  clb_operand *o = c->operand;
  clb_rows rows = wide_rows(c, kept, at, CLB_TANGENT_SIZE), q = rows;
  clb_status s = clb_convolution_frames_tangents(v->frames, n, &kept->vector, &o[B_AT].rows, &rows);
  q.offset += CLB_TANGENT_Y;
  put_wide(&o[B_AT], rows, CLB_TANGENT_SIZE);
  if (v->lengths) put_wide(&o[C_AT], q, 1);
  return s;
}

/* Frames, and lengths, in the places of vectors and weights; gradients are torques first. */
static clb_status make_frames(const clb_convolution_vectors *v, clb_convolution_call *c,
                              clb_convolution_vector_rows *kept, const clb_operand *gradient) {
  const int64_t n = c->graph->n_edges, columns = clb_convolution_frames_columns(v->frames);
  const clb_convolution_shared *shared = shared_in(v, c->pass);
  const clb_rows rows = shared ? shared->frames : wide_rows(c, kept, 0, columns),
                 r = shared ? shared->lengths : scratch_of(v, c, kept).r;
  clb_operand *o = c->operand;
  clb_status s = CLB_OK;
  if (gradient && gradient->columns) *(shared ? &kept->torques : &kept->gradient) = gradient->rows;
  if (!shared) s = clb_convolution_frames_run(v->frames, n, &kept->vector, &rows, NULL, NULL);
  if (!s && v->lengths && !shared)
    s = clb_radial_forward(v->lengths, n, kept->vector, r, (clb_rows){0});
  put_wide(&o[Y_AT], rows, columns);
  if (v->lengths) put(&o[W_AT], r, 1);
  return s || c->pass != CLB_DOUBLE_BACKWARD || !o[B_AT].columns ? s : make_tangents(v, c, kept);
}

bool clb_convolution_vectors_leaves(const clb_convolution_vectors *v, clb_pass pass) {
  return v && shared_in(v, pass) && pass == CLB_BACKWARD;
}

clb_status clb_convolution_vectors_torques(const clb_convolution_vectors *v,
                                           const clb_convolution_vector_rows *kept, int64_t e0,
                                           int64_t e1, const clb_torques *torques) {
  return kept->gradient.buffer ? clb_convolution_frames_torques(v->frames, e0, e1, &kept->vector,
                                                                torques, &kept->gradient)
                               : CLB_OK;
}

clb_status clb_convolution_vectors_before(const clb_convolution_vectors *v, clb_convolution_call *c,
                                          clb_convolution_vector_rows *kept) {
  int64_t n = c->graph->n_edges, bytes = clb_convolution_vectors_bytes(v, c->pass, n);
  clb_operand *o = c->operand, *g = c->pass == CLB_FORWARD ? NULL : &o[y_gradient(c->pass)];
  *kept = (clb_convolution_vector_rows){.vector = o[Y_AT].rows,
                                        .rows = {.ctx = c->op->ctx, .memory = c->workspace}};
  if (!n) return CLB_OK;
  if (bytes) /* rows that start at a multiple of CLB_LINE */
    c->workspace.bytes = (c->workspace.bytes - (uint64_t)bytes) / CLB_LINE * CLB_LINE;
  if (clb_convolution_in_frame(v->op, c->pass)) return make_frames(v, c, kept, g);
  if (shared_in(v, c->pass)) { /* forward */
    put(&o[Y_AT], v->shared->harmonics, v->dim);
    if (v->lengths) put(&o[W_AT], v->shared->lengths, 1);
    return CLB_OK;
  }
  scratch at = scratch_of(v, c, kept);
  clb_status s =
      run_harmonics(v->harmonics, CLB_FORWARD, n, (const clb_rows[]){kept->vector, at.y});
  if (!s && v->lengths) s = clb_radial_forward(v->lengths, n, kept->vector, at.r, (clb_rows){0});
  put(&o[Y_AT], at.y, v->dim);
  if (v->lengths) put(&o[W_AT], at.r, 1);
  if (g && g->columns) {
    kept->gradient = g->rows;
    put(g, at.g_y, v->dim);
    if (v->lengths) put(g + 1, at.g_r, 1);
  }
  if (s || c->pass != CLB_DOUBLE_BACKWARD || !o[B_AT].columns) return s;
  kept->along = o[B_AT].rows;
  put(&o[B_AT], at.b, v->dim);
  if (v->lengths) put(&o[C_AT], at.q, 1);
  return go_along(v, c, kept, &at);
}

clb_status clb_convolution_vectors_after(const clb_convolution_vectors *v,
                                         const clb_convolution_call *c,
                                         const clb_convolution_vector_rows *kept) {
  int64_t n = c->graph->n_edges;
  if (!kept->gradient.buffer || clb_convolution_in_frame(v->op, c->pass)) return CLB_OK;
  scratch at = scratch_of(v, c, kept);
  clb_status s = run_harmonics(kept->along.buffer ? v->adding : v->harmonics, CLB_BACKWARD, n,
                               (const clb_rows[]){kept->vector, at.g_y, kept->gradient});
  return s || !v->lengths ? s
                          : clb_radial_backward_distance(v->lengths, n, kept->vector, at.g_r,
                                                         kept->gradient, true);
}
