/* tools/ablation/sequence.c - named products, and a short sequence of calls on few rows: harmonics,
   a product, and back. */
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"

ablation_product_desc *ablation_describe(work *w, const ablation_case *c) {
  ablation_product_desc *d = allocate(1, sizeof *d);
  tensor_problem *p =
      problem_of(&tool_op_tensor_product, "--problem %s --layout %s", c->problem, c->layout);
  const clb_status s = tensor_problem_describe(w->ctx, p, &d->made);
  if (!w->status) w->status = s;
  d->y = p->y;
  free(p);
  d->desc = d->made->desc;
  if (!w->status) w->status = clb_tensor_product_measure(w->ctx, &d->desc, &d->sizes);
  return d;
}

void ablation_product_free(ablation_product_desc *d) {
  free(d->made);
  free(d);
}

int ablation_degrees(const ablation_product_desc *d, int *degrees) {
  int n = 0;
  for (const char *s = d->y; s; s = strchr(s, '+') ? strchr(s, '+') + 1 : NULL)
    degrees[n++] = atoi(s);
  return n;
}

static clb_op *product(work *w, const ablation_product_desc *d, unsigned passes) {
  clb_tensor_product_desc desc = d->desc;
  desc.passes = passes;
  return work_product(w, &desc);
}

/* ---- the sequence ---- */

typedef struct {
  clb_rows v, x, y, w, z, g, g_x, g_y, g_w, g_v;
} layer;

static void add_sequence(work *w, variant *y, const ablation_product_desc *d, const layer *l,
                         int64_t n, unsigned without) {
  int degrees[16];
  const clb_spherical_harmonics_desc h = {.degrees = degrees,
                                          .n_degrees = ablation_degrees(d, degrees),
                                          .normalize = 1,
                                          .storage = CLB_F32,
                                          .arithmetic = CLB_F32,
                                          .passes = 3};
  work_disable(w, without);
  clb_op *of_product = product(w, d, 3), *of_harmonics = work_harmonics(w, &h);
  work_disable(w, 0);
  const op_call calls[] = {
      {.tool = &tool_op_spherical_harmonics, .op = of_harmonics, .rows = {l->v, l->y}},
      {.tool = &tool_op_tensor_product, .op = of_product, .rows = {l->x, l->y, l->w, l->z}},
      {.tool = &tool_op_tensor_product,
       .op = of_product,
       .pass = CLB_BACKWARD,
       .rows = {l->x, l->y, l->w, l->g, l->g_x, l->g_y, l->g_w}},
      {.tool = &tool_op_spherical_harmonics,
       .op = of_harmonics,
       .pass = CLB_BACKWARD,
       .rows = {l->v, l->g_y, l->g_v}}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    op_call c = calls[i];
    c.n = n;
    variant_add(w, y, c);
  }
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
  for (int i = 0; i < SWITCHES; i++) {
    const ablation_switch *off = &ablation_switches[i];
    if (!work_wants(w, off->variant) || off->variant == NO_SPLIT_ROWS) continue;
    add_sequence(w, work_variant(w, off->variant, 0, off->variant != NO_OPTIMISATION), d, &l, n,
                 off->without);
  }
  if (work_wants(w, NO_REPLAY)) add_sequence(w, work_variant(w, NO_REPLAY, 0, false), d, &l, n, 0);
  ablation_product_free(d);
}
