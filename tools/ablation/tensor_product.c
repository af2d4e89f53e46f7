/* tools/ablation/tensor_product.c - a tensor product of independent rows, and a short sequence of
   calls on few rows. */
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/ops/tensor_product_tool.h"

ablation_product_desc *ablation_describe(work *w, const ablation_case *c) {
  ablation_product_desc *d = allocate(1, sizeof *d);
  int i = 0;
  while (i < STANDARD && strcmp(standard[i].name, c->problem)) i++;
  if (i == STANDARD) fatal("ablation: there is no problem '%s'", c->problem);
  clb_layout layout = strcmp(c->layout, "mul_ir") ? CLB_IR_MUL : CLB_MUL_IR;
  d->desc = (clb_tensor_product_desc){.irreps_x = d->found.irreps_x,
                                      .irreps_y = d->found.irreps_y,
                                      .irreps_z = d->found.irreps_z,
                                      .instructions = d->found.instructions,
                                      .layout_x = layout,
                                      .layout_y = layout,
                                      .layout_z = layout,
                                      .storage = CLB_F32,
                                      .arithmetic = CLB_F32};
  d->y = standard[i].y;
  if (!w->status)
    w->status = clb_channel_wise(w->ctx, standard[i].x, standard[i].y, standard[i].filter,
                                 CLB_SORTED, &d->found);
  d->desc.n_instructions = d->found.n_instructions;
  if (!w->status) w->status = clb_tensor_product_measure(w->ctx, &d->desc, &d->sizes);
  return d;
}

int ablation_degrees(const ablation_product_desc *d, int *degrees) {
  int n = 0;
  for (const char *s = d->y; s; s = strchr(s, '+') ? strchr(s, '+') + 1 : NULL)
    degrees[n++] = atoi(s);
  return n;
}

/* ---- one pass of a product ---- */

static clb_op *product(work *w, const ablation_product_desc *d, unsigned passes, unsigned without) {
  clb_tensor_product_desc desc = d->desc;
  desc.passes = passes;
  work_disable(w, without);
  clb_op *op = work_product(w, &desc);
  work_disable(w, 0);
  return op;
}

/* Operands and results in the order of the call: the one of x, y, w, z whose shape each has. */
static const char *const letters[] = {
    [CLB_FORWARD] = "xyw>z", [CLB_BACKWARD] = "xywz>xyw", [CLB_DOUBLE_BACKWARD] = "xywzxyw>xywz"};

static int64_t width_of(const ablation_product_desc *d, char letter) {
  const clb_tensor_product_sizes *s = &d->sizes;
  return letter == 'x' ? s->x : letter == 'y' ? s->y : letter == 'w' ? s->w : s->z;
}

static void make_operands(work *w, const ablation_product_desc *d, const ablation_case *c,
                          clb_rows *rows) {
  bool results = false;
  for (const char *s = letters[c->pass]; *s; s++) {
    if (*s == '>') {
      results = true;
      continue;
    }
    int64_t width = width_of(d, *s);
    *rows = work_rows(w, c->rows, width, NULL);
    if (results) work_output(w, *rows, c->rows, width);
    rows++;
  }
}

const ablation_switch ablation_switches[SWITCHES] = {{ABLATIONS, 0},
                                                     {NO_WIDE_ACCESSES, CLB_WIDE_ACCESSES},
                                                     {NO_REGISTER_SUMS, CLB_REGISTER_SUMS},
                                                     {NO_OPTIMISATION, ALL_OF_CONTEXT}};

static void add_naive(work *w, const ablation_product_desc *d, const op_call *call) {
  static const naive_kernel kernels[][4] = {
      [CLB_FORWARD] = {NAIVE_product_z},
      [CLB_BACKWARD] = {NAIVE_product_g_x, NAIVE_product_g_y, NAIVE_product_g_w},
      [CLB_DOUBLE_BACKWARD] = {NAIVE_product_d_x, NAIVE_product_d_y, NAIVE_product_d_w,
                               NAIVE_product_d_g}};
  const char *inputs = letters[call->pass], *outputs = strchr(inputs, '>') + 1;
  const int n_inputs = (int)(outputs - inputs) - 1;
  const float *in[7] = {0};
  way *y = work_naive(w);
  naive_arguments a = ablation_naive_product(w, d, d->sizes.y);
  for (int i = 0; i < n_inputs; i++) in[i] = work_address(w, call->rows[i].buffer);
  a.x = in[0], a.y = in[1], a.w = in[2], a.g = in[3], a.a = in[4], a.b = in[5], a.c = in[6];
  for (int i = 0; outputs[i]; i++)
    way_add_naive_sum(w, y, kernels[call->pass][i], a, call->rows[n_inputs + i], call->n,
                      width_of(d, outputs[i]), call->n);
}

void ablation_product(work *w, ablation_case *c) {
  ablation_product_desc *d = ablation_describe(w, c);
  op_call call = {.kind = CALL_PRODUCT, .pass = c->pass, .n = c->rows};
  if (!w->status) make_operands(w, d, c, call.rows);
  for (int i = 0; i < SWITCHES; i++) {
    call.op = product(w, d, CLB_PASS_BIT(c->pass), ablation_switches[i].without);
    way_add(w, work_way(w, ablation_switches[i].way, 0, false), call);
  }
  if (w->naive) add_naive(w, d, &call);
  free(d);
}

/* ---- a sequence: harmonics, a product, and back ---- */

typedef struct {
  clb_rows v, x, y, w, z, g, g_x, g_y, g_w, g_v;
} layer;

static void add_sequence(work *w, way *y, const ablation_product_desc *d, const layer *l, int64_t n,
                         unsigned without) {
  int degrees[16];
  const clb_spherical_harmonics_desc h = {.degrees = degrees,
                                          .n_degrees = ablation_degrees(d, degrees),
                                          .normalize = 1,
                                          .storage = CLB_F32,
                                          .arithmetic = CLB_F32,
                                          .passes = 3};
  clb_op *of_product = product(w, d, 3, without);
  work_disable(w, without);
  clb_op *of_harmonics = work_harmonics(w, &h);
  work_disable(w, 0);
  way_add(w, y,
          (op_call){.kind = CALL_HARMONICS,
                    .op = of_harmonics,
                    .pass = CLB_FORWARD,
                    .n = n,
                    .rows = {l->v, l->y}});
  way_add(w, y,
          (op_call){.kind = CALL_PRODUCT,
                    .op = of_product,
                    .pass = CLB_FORWARD,
                    .n = n,
                    .rows = {l->x, l->y, l->w, l->z}});
  way_add(w, y,
          (op_call){.kind = CALL_PRODUCT,
                    .op = of_product,
                    .pass = CLB_BACKWARD,
                    .n = n,
                    .rows = {l->x, l->y, l->w, l->g, l->g_x, l->g_y, l->g_w}});
  way_add(w, y,
          (op_call){.kind = CALL_HARMONICS,
                    .op = of_harmonics,
                    .pass = CLB_BACKWARD,
                    .n = n,
                    .rows = {l->v, l->g_y, l->g_v}});
}

void ablation_sequence(work *w, ablation_case *c) {
  ablation_product_desc *d = ablation_describe(w, c);
  const clb_tensor_product_sizes *s = &d->sizes;
  int64_t n = c->rows;
  layer l = {work_rows(w, n, 3, NULL),    work_rows(w, n, s->x, NULL), work_rows(w, n, s->y, NULL),
             work_rows(w, n, s->w, NULL), work_rows(w, n, s->z, NULL), work_rows(w, n, s->z, NULL),
             work_rows(w, n, s->x, NULL), work_rows(w, n, s->y, NULL), work_rows(w, n, s->w, NULL),
             work_rows(w, n, 3, NULL)};
  work_output(w, l.z, n, s->z);
  work_output(w, l.g_x, n, s->x);
  work_output(w, l.g_w, n, s->w);
  work_output(w, l.g_v, n, 3);
  for (int i = 0; i < SWITCHES; i++)
    add_sequence(
        w, work_way(w, ablation_switches[i].way, 0, ablation_switches[i].way != NO_OPTIMISATION), d,
        &l, n, ablation_switches[i].without);
  add_sequence(w, work_way(w, NO_REPLAY, 0, false), d, &l, n, 0);
  free(d);
}
