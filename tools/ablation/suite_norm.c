/* tools/ablation/suite_norm.c - an RMS norm of plain rows ("512x0e"), or of irreps as Nequix has
   them. */
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/reference/reference_irreps.h"

static bool is_plain(const char *irreps) { return !strchr(irreps, '+'); }

/* What irreps are made of, in layout mul_ir: for each element what its square weighs and the number
   of its weight, and for each weight its first element. */
static void describe(work *w, const char *text, naive_arguments *a) {
  reference_irreps *irreps = allocate(1, sizeof *irreps);
  if (!reference_irreps_read(text, irreps)) fatal("ablation: '%s' are no irreps", text);
  float *square = allocate((size_t)irreps->dim, sizeof *square);
  int32_t *weight = allocate((size_t)irreps->dim, sizeof *weight),
          *start = allocate((size_t)irreps->dim + 1, sizeof *start), weights = 0, at = 0;
  for (int t = 0; t < irreps->n; t++) {
    const int width = 2 * irreps->term[t].l + 1;
    for (int u = 0; u < irreps->term[t].mul; u++, weights++) {
      start[weights] = at;
      for (int m = 0; m < width; m++, at++)
        square[at] = 1.0F / (float)(irreps->n * width * width), weight[at] = weights;
    }
  }
  start[weights] = at;
  a->coefficient = work_address(w, work_rows(w, at, 1, square).buffer);
  a->channel = work_address(w, work_ints(w, at, weight));
  a->start = work_address(w, work_ints(w, weights + 1, start));
  free(square), free(weight), free(start), free(irreps);
}

static void add_naive(work *w, const ablation_case *c, const clb_rms_norm_desc *d,
                      const clb_rms_norm_sizes *sizes, const clb_rows *rows) {
  const bool plain = is_plain(d->irreps);
  way *y = work_naive(w);
  naive_arguments a = {.x = work_address(w, rows[0].buffer),
                       .w = work_address(w, rows[1].buffer),
                       .n = c->rows,
                       .rows = c->rows,
                       .X = sizes->x,
                       .epsilon = (float)d->epsilon};
  if (!plain) describe(w, d->irreps, &a);
  if (c->pass == CLB_FORWARD) {
    a.out = work_address(w, rows[2].buffer);
    way_add_naive(w, y, plain ? NAIVE_norm_y : NAIVE_irreps_norm_y, &a);
    return;
  }
  a.g = work_address(w, rows[2].buffer);
  a.scale = work_address(w, work_rows(w, c->rows, 1, NULL).buffer);
  a.out = work_address(w, rows[3].buffer);
  way_add_naive(w, y, plain ? NAIVE_norm_g_x : NAIVE_irreps_norm_g_x, &a);
  a.out = work_address(w, rows[4].buffer);
  a.n = sizes->w;
  way_add_naive(w, y, plain ? NAIVE_norm_g_w : NAIVE_irreps_norm_g_w, &a);
}

/* Rows are x, w, y or x, w, g, g_x, g_w. */
static void make_operands(work *w, const ablation_case *c, const clb_rms_norm_sizes *sizes,
                          clb_rows *rows) {
  const char *shapes = c->pass == CLB_FORWARD ? "xwx" : "xwxxw";
  const int results = c->pass == CLB_FORWARD ? 2 : 3, n = (int)strlen(shapes);
  for (int i = 0; i < n; i++) {
    const int64_t of = shapes[i] == 'w' ? 1 : c->rows,
                  width = shapes[i] == 'w' ? sizes->w : sizes->x;
    rows[i] = work_rows(w, of, width, NULL);
    if (i >= results) work_output(w, rows[i], of, width);
  }
}

void ablation_norm(work *w, ablation_case *c) {
  const clb_rms_norm_desc d = {.irreps = c->problem,
                               .variant = is_plain(c->problem) ? CLB_RMS_PLAIN : CLB_RMS_NEQUIX,
                               .epsilon = is_plain(c->problem) ? 1e-6 : 1e-12,
                               .storage = CLB_F32,
                               .arithmetic = CLB_F32,
                               .passes = CLB_PASS_BIT(c->pass)};
  op_call call = {.kind = CALL_NORM, .pass = c->pass, .n = c->rows};
  clb_rms_norm_sizes sizes = {0};
  w->status = clb_rms_norm_measure(w->ctx, &d, &sizes);
  if (w->status) return;
  make_operands(w, c, &sizes, call.rows);
  for (int i = 0; i < SUITE_SWITCHES; i++) {
    work_disable(w, suite_switches[i].without);
    call.op = work_norm(w, &d);
    work_disable(w, 0);
    way *y = work_way(w, suite_switches[i].way, 0, false);
    y->apart = c->pass != CLB_FORWARD && suite_switches[i].without & CLB_SPLIT_ROWS;
    way_add(w, y, call);
  }
  if (w->naive) add_naive(w, c, &d, &sizes, call.rows);
}
