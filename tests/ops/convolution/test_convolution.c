/* tests/ops/convolution/test_convolution.c - the graph convolution against plain sums over the
   edges; wherever it runs. */
#define _GNU_SOURCE
#include <sched.h>

#include "tests/ops/convolution/convolution_problems.h"

static const manner plain = {DENSE, MAX}, loose = {APART, MAX};

/* Runs these passes of a description. */
static void passes_agree(place *at, const clb_convolution_desc *desc, int passes,
                         const edge_list *e, manner m) {
  convolution *c = convolution_create(context_at(at), desc);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
    if (passes >> pass & 1) convolve_and_compare(c, pass, e, graph_at(at, e), m, 7);
  convolution_destroy(c);
}

/* ---- products, graphs ---- */

static void products(void **state) {
  place *at = *state;
  edge_list e = random_edges(11, 13, SANITIZED ? 14 : 40, 1);
  static const int which[] = {KNOTTED,     COUNTS,   EVEN,         MIXED,       BARE,
                              EVEN_MUL_IR, PARITIES, GAPS,         TINY,        HIGH,
                              SCALARS,     SHORT,    SHORT_MUL_IR, MACE_MEDIUM, NEQUIX_MAIN};
  for (int i = 0; i < many(&at->device, 0, SANITIZED ? 13 : 5, sizeof which / sizeof *which); i++) {
    convolution *c = get(at, which[i]);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      for (int spacing = DENSE; spacing <= APART; spacing++)
        convolve_and_compare(c, pass, &e, graph_at(at, &e), (manner){spacing, MAX}, 3);
  }
  edges_destroy(&e);
}

static void all_graphs(void **state) {
  place *at = *state;
  convolution *c = get(at, SMALL);
  for (int i = 0; i < GRAPHS; i++) {
    edge_list e = edges_of(i);
    for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      convolve_and_compare(c, pass, &e, graph_at(at, &e), i % 2 ? plain : loose, (uint64_t)i);
    edges_destroy(&e);
  }
}

/* Results, and their gradients, with neighbours of one irrep side by side. */
static void merged(void **state) {
  static const int which[] = {COUNTS, EVEN, MIXED, PARITIES};
  place *at = *state;
  edge_list e = random_edges(11, 9, SANITIZED ? 14 : 40, 1);
  for (int i = 0; i < many(&at->device, 0, 2, sizeof which / sizeof *which); i++) {
    clb_convolution_desc desc = describe(at, which[i]);
    desc.product.layout_z = CLB_MERGED;
    for (int spacing = DENSE; spacing <= APART; spacing++)
      passes_agree(at, &desc, 1 << CLB_FORWARD | 1 << CLB_BACKWARD | 1 << CLB_DOUBLE_BACKWARD, &e,
                   (manner){spacing, MAX});
  }
  edges_destroy(&e);
}

/* ---- types, adding to what is there, rows that are all the same ---- */

enum { F = 1 << CLB_FORWARD, B = 1 << CLB_BACKWARD, D = 1 << CLB_DOUBLE_BACKWARD };

static void types(void **state) {
  static const struct {
    clb_dtype storage, arithmetic;
    int product, passes;
  } cases[] = {{CLB_BF16, CLB_F32, SMALL, F | B},       {CLB_F32, CLB_F32, EVEN, F | B | D},
               {CLB_F16, CLB_F32, PARITIES, F | B},     {CLB_F32, CLB_F32, KNOTTED, F | B | D},
               {CLB_F32, CLB_F64, GAPS, F | B | D},     {CLB_BF16, CLB_F32, COUNTS, F | B},
               {CLB_F16, CLB_F32, MIXED, F | B | D},    {CLB_F32, CLB_F32, MIXED, F | B | D},
               {CLB_F32, CLB_F32, COUNTS, F | B | D},   {CLB_F32, CLB_F32, SCALARS, F | B | D},
               {CLB_F32, CLB_F32, PARITIES, F | B | D}, {CLB_F16, CLB_F32, KNOTTED, F | B},
               {CLB_BF16, CLB_F32, PARITIES, F | B},    {CLB_F32, CLB_F32, EVEN_MUL_IR, F | B | D},
               {CLB_F16, CLB_F32, EVEN, F | B | D},     {CLB_F32, CLB_F32, NEQUIX_MAIN, F | B | D}};
  place *at = *state;
  edge_list e = random_edges(11, 9, SANITIZED ? 14 : 40, 1);
  for (int i = 0; i < many(&at->device, 1, SANITIZED ? 15 : 4, sizeof cases / sizeof *cases); i++) {
    clb_convolution_desc desc = describe(at, cases[i].product);
    desc.product.storage = cases[i].storage;
    desc.product.arithmetic = cases[i].arithmetic;
    for (int spacing = SANITIZED ? APART : DENSE; spacing <= APART; spacing++)
      passes_agree(at, &desc, cases[i].passes, &e, (manner){spacing, MAX});
  }
  edges_destroy(&e);
}

/* Rows cut in pieces, which are kept in the storage type. */
static void types_of_hubs(void **state) {
  place *at = *state;
  edge_list e = hub_edges(50, 40, 2300, 2000, 4);
  for (int type = CLB_F32; type <= CLB_BF16; type++) {
    if (type == CLB_F64) continue;
    clb_convolution_desc desc = describe(at, SMALL);
    desc.product.storage = (clb_dtype)type;
    desc.product.arithmetic = CLB_F32;
    passes_agree(at, &desc, type == CLB_F32 ? F | B | D : F | B, &e, plain);
  }
  edges_destroy(&e);
}

static void accumulation(void **state) {
  place *at = *state;
  edge_list some = edges_of(SQUARE), hub = hub_edges(20, 30, 1200, 900, 4);
  for (int atomics = 0; atomics < many(&at->device, 1, 2, 2); atomics++)
    for (int i = 0; i < many(&at->device, 1, 2, 2); i++) {
      clb_convolution_desc desc = describe(at, i ? KNOTTED : SMALL);
      desc.product.accumulate = 1;
      desc.atomics = atomics;
      passes_agree(at, &desc, many(&at->device, F | B, F | B | D, F | B | D), i ? &some : &hub,
                   i ? loose : plain);
    }
  edges_destroy(&some);
  edges_destroy(&hub);
}

static void atomics(void **state) {
  place *at = *state;
  edge_list some = edges_of(SQUARE), hub = hub_edges(20, 30, 1200, 900, 4);
  static const clb_dtype types[] = {CLB_F64, CLB_F32};
  for (int t = 0; t < many(&at->device, 1, 2, 2); t++)
    for (int i = 0; i < many(&at->device, 1, 2, 2); i++) {
      clb_convolution_desc desc = describe(at, i ? MIXED : SMALL);
      desc.atomics = 1;
      desc.product.storage = desc.product.arithmetic = types[t];
      passes_agree(at, &desc, many(&at->device, B, B | D, B | D), i ? &some : &hub,
                   i ? loose : plain);
    }
  edges_destroy(&some);
  edges_destroy(&hub);
}

/* One row of x, y, w or g for all nodes or edges. */
static void one_row_for_all(void **state) {
  place *at = *state;
  convolution *c = get(at, SMALL);
  edge_list e = edges_of(SQUARE);
  clb_graph *g = graph_at(at, &e);
  for (int same = 0; same < 4; same++) {
    arrays a = convolution_arrays(c, &e, 5);
    clb_rows in[CONVOLUTION_IN] = {{0}}, out[CONVOLUTION_OUT] = {{0}};
    clb_buffer *workspace = workspace_of(c, CLB_BACKWARD, g, MAX);
    size_t width = (size_t)c->product.width[same];
    for (size_t j = 0; j < count_of(c, &e, same); j++) a.in[same][j] = (double)(j % width + 1) / 8;
    for (int i = 0; i < 4; i++) in[i] = rows_of(c, &e, i, i, a.in[i], false, &plain);
    for (int o = 0; o < 3; o++) out[o] = rows_of(c, &e, o, o, NULL, true, &plain);
    clb_buffer_destroy(&in[same].buffer);
    in[same] = (clb_rows){.buffer = buffer_of(&c->product, a.in[same], width, width),
                          .stride = CLB_SAME_ROW};
    OK(c->product.ctx, clb_convolution_backward(convolution_op(c, CLB_BACKWARD), g, in[0], in[1],
                                                in[2], in[3], out[0], out[1], out[2], workspace));
    for (int o = 0; o < 3; o++) take_rows(c, &e, o, CLB_BACKWARD, &out[o], &plain, a.out[o]);
    compare_convolution(c, CLB_BACKWARD, &e, &a, NULL);
    for (int i = 0; i < 4; i++)
      clb_buffer_destroy(&in[i].buffer), clb_buffer_destroy(&out[i].buffer);
    clb_buffer_destroy(&workspace);
    arrays_destroy(&a);
  }
  edges_destroy(&e);
}

/* ---- workspace, bits ---- */

/* Edges in parts: 8192 at a time, some more, and all at once; also rows of nodes that are split. */
static void workspaces(void **state) {
  place *at = *state;
  clb_convolution_desc desc = describe(at, TINY);
  for (int i = at->gpu >= 0; i < 2; i++) {
    edge_list e = i ? hub_edges(200, 300, 9500, 6000, 6)
                    : random_edges(900, 1100, few_cases() ? 8500 : 17000, 5);
    clb_graph *g = graph_at(at, &e);
    desc.product.accumulate = i;
    convolution *c = convolution_create(context_at(at), &desc);
    for (int pass = CLB_FORWARD;
         pass <= many(&at->device, CLB_BACKWARD, CLB_DOUBLE_BACKWARD, CLB_DOUBLE_BACKWARD);
         pass++) {
      uint64_t min, max;
      OK(c->product.ctx,
         clb_convolution_workspace(convolution_op(c, pass), (clb_pass)pass, g, &min, &max));
      assert_true(pass == CLB_FORWARD ? min == max : min < max);
      for (int r = MIN; r <= (pass == CLB_FORWARD ? MIN : MAX); r += few_cases() ? 2 : 1)
        convolve_and_compare(c, pass, &e, g, (manner){DENSE, (capacity)r}, 9);
    }
    convolution_destroy(c);
    edges_destroy(&e);
  }
}

/* Equal calls give equal bits, with any number of threads. */
static void equal_bits(void **state) {
  place *at = *state;
  convolution *c = get(at, SMALL);
  edge_list e = hub_edges(40, 50, 1500, 700, 6);
  clb_convolution_desc desc = c->desc;
  place alone = {.device.effort = at->device.effort, .gpu = at->gpu};
  cpu_set_t all, one;
  CPU_ZERO(&one);
  memcpy(alone.device.name, at->device.name, sizeof alone.device.name);
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  for (int i = CPU_SETSIZE - 1; i >= 0 && !CPU_COUNT(&one); i--)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one),
                   0); /* a CPU device has as many threads as there are cores */
  convolution *second = convolution_create(context_at(&alone), &desc);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  for (int pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    arrays a = convolution_arrays(c, &e, 5), again = convolution_arrays(c, &e, 5),
           other = convolution_arrays(c, &e, 5);
    run_convolution(c, pass, &e, graph_at(at, &e), plain, &a);
    run_convolution(c, pass, &e, graph_at(at, &e), loose, &again);
    run_convolution(second, pass, &e, graph_at(&alone, &e), plain, &other);
    expect_same_bits(c, pass, &e, &a, &again);
    expect_same_bits(c, pass, &e, &a, &other);
    arrays_destroy(&a);
    arrays_destroy(&again);
    arrays_destroy(&other);
  }
  convolution_destroy(second);
  clb_graph_destroy(&alone.graph);
  clb_context_destroy(&alone.device.ctx);
  edges_destroy(&e);
}

int main(void) {
  static const place_test tests[] = {{"products", products, BRISK},
                                     {"graphs", all_graphs, SLOW},
                                     {"types", types, SLOW},
                                     {"types_of_hubs", types_of_hubs, BRISK},
                                     {"accumulation", accumulation, SLOW},
                                     {"atomics", atomics, SLOW},
                                     {"one_row_for_all", one_row_for_all, SLOW},
                                     {"workspaces", workspaces, SLOW},
                                     {"same_bits", equal_bits, SLOW},
                                     {"merged", merged, BRISK}};
  return run_at_places("convolution", tests, sizeof tests / sizeof *tests);
}
