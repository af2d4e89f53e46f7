/* tests/ops/convolution/convolution_problems.h - the products that the tests convolve, and the
   graphs. */
#ifndef CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_PROBLEMS_H
#define CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_PROBLEMS_H

#include "tests/ops/convolution/convolution_arrays.h"

#include "tools/ops/tensor_product_problems.h"

/* ---- products ---- */

/* Several paths into one term of z from one term of x and from others, some without weights, some
   of weight 0 or without channels; terms of z that nothing or only a path of weight 0 reaches,
   terms of x and y that nothing uses. */
#define KNOTTED_X "5x0e+5x1o+0x2e+5x1o+2x3o+5x2e+9x0e"
#define KNOTTED_Y "0e+1o+3x1o+2e+3o"
#define KNOTTED_Z "5x0e+5x1o+3x2e+5x3o+0x1e+9x2e+9x1o"
static const clb_instruction knotted[] = {
    {0, 0, 0, CLB_UVU, 0, 1},   {1, 1, 0, CLB_UVU, 1, 2}, {3, 1, 0, CLB_UVU, 1, 0.7},
    {1, 0, 1, CLB_UVU, 1, 1},   {0, 1, 1, CLB_UVU, 1, 1}, {1, 3, 1, CLB_UVU, 0, 1.5},
    {3, 3, 1, CLB_UVU, 1, 0.5}, {6, 3, 5, CLB_UVU, 1, 1}, {1, 3, 3, CLB_UVU, 1, 1},
    {5, 4, 1, CLB_UVU, 1, 1},   {2, 3, 4, CLB_UVU, 1, 1}, {5, 3, 0, CLB_UVU, 1, 0},
    {6, 1, 6, CLB_UVU, 1, 0},   {1, 3, 1, CLB_UVU, 1, 1}, {5, 4, 3, CLB_UVU, 0, 1}};
static const clb_instruction bare[] = {{0, 0, 0, CLB_UVU, 0, 1},
                                       {0, 1, 1, CLB_UVU, 0, 1},
                                       {1, 1, 0, CLB_UVU, 0, 1},
                                       {1, 2, 1, CLB_UVU, 0, 1}};

/* A filter: channel-wise, in that order of paths. */
#define LIST(i) i, sizeof i / sizeof *i
static const struct {
  const char *x, *y, *z, *filter;
  const clb_instruction *instructions;
  size_t n;
  clb_layout layout_x, layout_y, layout_z;
  double scale;
} convolved[] = {
    {"3x0e+2x1o", SH1, NULL, SH1, NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"1x0e+3x1o+5x0e+7x1o+13x0e+33x1o+89x0e+123x1o", SH1, NULL, SH1, NULL, CLB_SORTED, CLB_MUL_IR,
     CLB_IR_MUL, CLB_IR_MUL, 0.25},
    {"5x0e+3x1o+13x2e", SH3, NULL, SH3, NULL, CLB_AS_FOUND, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR, 1},
    {BOTH1("7"), SH1, NULL, BOTH1("1"), NULL, CLB_AS_FOUND, CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR,
     1e-3},
    {"4x0e+6x2e+3x3o", "3o+0e+2e+2e", NULL, "0e+1o+2e+3o", NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR,
     CLB_IR_MUL, 7},
    {KNOTTED_X, KNOTTED_Y, KNOTTED_Z, NULL, LIST(knotted), CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL,
     -0.5},
    {"7x0e+7x1o", SH2, "7x0e+7x1o", NULL, LIST(bare), CLB_IR_MUL, CLB_IR_MUL, CLB_MUL_IR, 0},
    {"89x0e", SH3, NULL, SH3, NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {NEQUIX, SH3, NULL, SH3, NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0.2},
    {"128x0e+128x1o", SH3, NULL, SH3, NULL, CLB_SORTED, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR, 0},
    {"64x0e+32x1o", SH1, NULL, SH1, NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"32x0e+64x1o", SH3, NULL, SH1, NULL, CLB_SORTED, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR, 0},
    {"2x0e", "1o", NULL, "1o", NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"2x3o+2x4e", "4e", NULL, "4e+3o+1o", NULL, CLB_SORTED, CLB_MUL_IR, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"16x0e+8x1o+4x2e", SH1, NULL, SH1, NULL, CLB_SORTED, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL, 0},
    {"16x0e+4x1o", SH1, NULL, SH1, NULL, CLB_SORTED, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR, 3},
};
enum {
  SMALL,
  COUNTS,
  MIXED,
  PARITIES,
  GAPS,
  KNOTTED,
  BARE,
  SCALARS,
  NEQUIX_MAIN,
  MACE_MEDIUM,
  EVEN,
  EVEN_MUL_IR,
  TINY,
  HIGH,
  SHORT,
  SHORT_MUL_IR,
  CONVOLVED
};

/* In f64. */
static inline clb_convolution_desc describe(place *at, int i) {
  static clb_instructions found[CONVOLVED];
  clb_convolution_desc d = {.scale = convolved[i].scale};
  clb_instructions *f = &found[i];
  clb_tensor_product_desc *p = &d.product;
  *p = (clb_tensor_product_desc){.irreps_x = convolved[i].x,
                                 .irreps_y = convolved[i].y,
                                 .irreps_z = convolved[i].z,
                                 .instructions = convolved[i].instructions,
                                 .n_instructions = (int)convolved[i].n,
                                 .layout_x = convolved[i].layout_x,
                                 .layout_y = convolved[i].layout_y,
                                 .layout_z = convolved[i].layout_z,
                                 .storage = CLB_F64,
                                 .arithmetic = CLB_F64};
  p->path_normalization = i == KNOTTED ? CLB_PATH_PATH : CLB_PATH_ELEMENT;
  p->irrep_normalization = i == MIXED  ? CLB_IRREP_NORM
                           : i == BARE ? CLB_IRREP_NONE
                                       : CLB_IRREP_COMPONENT;
  if (!convolved[i].filter) return d;
  OK(at->device.ctx, clb_channel_wise(context_at(at), convolved[i].x, convolved[i].y,
                                      convolved[i].filter, (clb_path_order)convolved[i].n, f));
  p->irreps_x = f->irreps_x;
  p->irreps_y = f->irreps_y;
  p->irreps_z = f->irreps_z;
  p->instructions = f->instructions;
  p->n_instructions = f->n_instructions;
  return d;
}

static inline convolution *get(place *at, int i) {
  clb_convolution_desc d = describe(at, i);
  if (!at->made[i]) at->made[i] = convolution_create(context_at(at), &d);
  return at->made[i];
}

/* ---- graphs ---- */

static inline int below(int n, uint64_t *seed) {
  int i = (int)((test_random(seed) + 1) / 2 * n);
  return i < n ? i : n - 1;
}

/* Unsorted; every fifth node has no edge, one edge in six repeats the one before, one in eight is a
   self-loop. */
static inline edge_list random_edges(int n_senders, int n_receivers, int n, uint64_t seed) {
  edge_list e = edges_create(n_senders, n_receivers, n);
  int min = n_senders < n_receivers ? n_senders : n_receivers;
  for (int i = 0; i < n; i++) {
    int s = below(n_senders, &seed), r = below(n_receivers, &seed), luck = below(24, &seed);
    if (luck < 3) s = r = below(min, &seed);
    if (s % 5 == 2) s--;
    if (r % 5 == 2) r--;
    if (luck > 19 && i) s = e.senders[i - 1], r = e.receivers[i - 1];
    e.senders[i] = s;
    e.receivers[i] = r;
  }
  return e;
}

/* Most edges end at one node, and a third of all start at one. */
static inline edge_list hub_edges(int n_senders, int n_receivers, int n, int at_hub,
                                  uint64_t seed) {
  edge_list e = random_edges(n_senders, n_receivers, n, seed);
  for (int left = at_hub, i = 0; i < n; i++) {
    bool moves = below(n - i, &seed) < left;
    if (moves) e.receivers[i] = n_receivers / 2;
    else if (e.receivers[i] == n_receivers / 2) e.receivers[i] = 0;
    if (i % 3 == 1) e.senders[i] = n_senders / 3;
    left -= moves;
  }
  return e;
}

static const struct {
  int n_senders, n_receivers, n,
      at_hub; /* at_hub: edges into one node; 0: no more there than elsewhere */
} graphs[] = {{17, 17, 61, 0},      {6, 4, 0, 0},     {3, 2, 1, 0},     {5, 0, 0, 0},
              {0, 5, 0, 0},         {0, 0, 0, 0},     {1, 1, 9, 0},     {2, 40, 50, 0},
              {70, 3, 90, 0},       {9, 7, 256, 256}, {9, 7, 257, 257}, {40, 30, 700, 513},
              {50, 40, 3600, 3000}, {3, 1000, 40, 0}, {2, 2, 772, 386}};
enum { SQUARE, GRAPHS = sizeof graphs / sizeof *graphs };

static inline edge_list edges_of(int i) {
  if (!graphs[i].at_hub)
    return random_edges(graphs[i].n_senders, graphs[i].n_receivers, graphs[i].n, 40 + (uint64_t)i);
  return hub_edges(graphs[i].n_senders, graphs[i].n_receivers, graphs[i].n, graphs[i].at_hub,
                   40 + (uint64_t)i);
}

#endif
