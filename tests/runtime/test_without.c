/* tests/runtime/test_without.c - clb_context_disable: results stay right without each optimisation,
   on the devices that run here and with the limits of GPUs, and kernels change. */
#include "tests/ops/convolution/convolution_problems.h"

enum { ALL = CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS | CLB_SPLIT_ROWS };
static const unsigned without[] = {CLB_WIDE_ACCESSES, CLB_REGISTER_SUMS, CLB_SPLIT_ROWS, ALL};
enum { WITHOUT = sizeof without / sizeof *without };

/* ---- results ---- */

static clb_graph *graph_of(clb_context *ctx, const edge_list *e) {
  clb_graph *g;
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  OK(ctx, clb_graph_update(g, e->rows[LIKE_X], e->rows[LIKE_Z], e->rows[LIKE_Y], CLB_I32,
                           (clb_index_list){.host = e->senders},
                           (clb_index_list){.host = e->receivers}));
  return g;
}

/* Ops and graphs that were created without, used when all are enabled again. */
static void convolutions(void **state) {
  static const int which[] = {KNOTTED, EVEN_MUL_IR, GAPS};
  place *at = *state;
  clb_context *ctx = context_at(at);
  edge_list edges[] = {edges_of(10), edges_of(SQUARE)};
  for (int i = 0; i < WITHOUT; i++)
    for (int k = 0;
         k < many(&at->device, 1, SANITIZED ? 1 : 2, SANITIZED ? 2 : sizeof which / sizeof *which);
         k++) {
      if (at->device.effort == SLOW && without[i] != ALL) continue;
      clb_convolution_desc d = describe(at, which[k]);
      edge_list *e = &edges[(i + k) % 2];
      d.product.accumulate = k % 2;
      d.atomics = k == 1;
      OK(ctx, clb_context_disable(ctx, without[i]));
      convolution *c = convolution_create(ctx, &d);
      clb_graph *g = graph_of(ctx, e);
      for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) convolution_op(c, pass);
      OK(ctx, clb_context_disable(ctx, 0));
      for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++)
        convolve_and_compare(
            c, pass, e, g,
            (manner){pass % 2 ? APART : ALIGNED, pass == CLB_DOUBLE_BACKWARD ? MIN : MAX}, 3);
      clb_graph_destroy(&g);
      convolution_destroy(c);
    }
  for (int i = 0; i < 2; i++) edges_destroy(&edges[i]);
}

static void products(void **state) {
  static const int which[] = {PARITIES, KNOTTED, MIXED};
  place *at = *state;
  clb_context *ctx = context_at(at);
  for (int i = 0; i < WITHOUT; i++)
    for (int k = 0; k < many(&at->device, 1, 1, SANITIZED ? 2 : sizeof which / sizeof *which);
         k++) {
      if (without[i] & CLB_SPLIT_ROWS && without[i] != ALL) continue; /* products have no graph */
      if (at->device.effort == SLOW && without[i] != ALL) continue;
      clb_tensor_product_desc d = describe(at, which[k]).product;
      d.accumulate = k % 2;
      OK(ctx, clb_context_disable(ctx, without[i]));
      test_product *p = product_create(ctx, &d, dense_golden_3j);
      for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) op_of(p, pass);
      OK(ctx, clb_context_disable(ctx, 0));
      for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) run_and_compare(p, pass, 37, 5);
      product_destroy(p);
    }
}

/* ---- kernels ---- */

/* Accesses to several real numbers in memory, and copies of them. */
static int wide_accesses(const ir_kernel *k) {
  int n = 0;
  for (int i = 0; i < k->n; i++) {
    const ir_ins *in = &k->ins[i];
    if ((in->op != IR_LOAD && in->op != IR_STORE && in->op != IR_COPY) || in->width < 2) continue;
    const ir_ins *array = &k->ins[in->arg[in->op == IR_COPY ? 2 : 0]];
    n += array->op == IR_BUFFER && !ir_is_int((ir_type)array->element);
  }
  return n;
}

static clb_op *convolution_without(place *at, int which, unsigned what) {
  clb_context *ctx = context_at(at);
  clb_convolution_desc d = describe(at, which);
  clb_op *op;
  d.product.storage = d.product.arithmetic = CLB_F32;
  d.product.passes = 3;
  OK(ctx, clb_context_disable(ctx, what));
  OK(ctx, clb_convolution_create(ctx, &d, &op));
  OK(ctx, clb_context_disable(ctx, 0));
  return op;
}

static void kernels(void **state) {
  place *at = *state;
  clb_op *all = convolution_without(at, EVEN_MUL_IR, 0),
         *narrow = convolution_without(at, EVEN_MUL_IR, CLB_WIDE_ACCESSES);
  clb_op *in_memory = convolution_without(at, EVEN_MUL_IR, CLB_REGISTER_SUMS),
         *split = convolution_without(at, EVEN_MUL_IR, CLB_SPLIT_ROWS);
  for (int pass = CLB_FORWARD; pass <= CLB_BACKWARD; pass++) {
    clb_counts with, other;
    clb_tuning t;
    OK(all->ctx, clb_op_tuning(all, (clb_pass)pass, &t));
    bool slices =
        strstr(t.schedule, "edges_per_subgroup="); /* whose counts are of one iteration, of several
                                                      edges; sums in memory have none */
    OK(all->ctx, clb_op_counts(all, (clb_pass)pass, &with));
    OK(all->ctx, clb_op_counts(in_memory, (clb_pass)pass, &other));
    if (slices) assert_ptr_not_equal(all->kernel[pass], in_memory->kernel[pass]);
    else if (pass == CLB_BACKWARD) assert_true(other.loads > with.loads);
    else if (all->ctx->device->limits.simd)
      assert_ptr_not_equal(all->kernel[pass],
                           in_memory->kernel[pass]); /* sums are in local memory */
    else assert_true(other.stores > with.stores);
    assert_true(wide_accesses(&all->kernel[pass]->ir) > 0);
    assert_int_equal(wide_accesses(&narrow->kernel[pass]->ir), 0);
    assert_ptr_equal(split->kernel[pass], all->kernel[pass]); /* that is up to the graph */
    OK(all->ctx, clb_op_tuning(in_memory, (clb_pass)pass, &t));
    assert_non_null(strstr(t.schedule, "accumulate_in_memory=1"));
    OK(all->ctx, clb_op_tuning(narrow, (clb_pass)pass, &t));
    assert_non_null(strstr(t.schedule, "scalar_access=1"));
  }
  clb_op **const ops[] = {&all, &narrow, &in_memory, &split};
  for (int i = 0; i < 4; i++) clb_op_destroy(ops[i]);
}

/* Long rows have no pieces, and need no memory for their sums. */
static void graphs_without(void **state) {
  place *at = *state;
  clb_context *ctx = context_at(at);
  edge_list e = edges_of(11);
  clb_op *op = convolution_without(at, SMALL, 0);
  uint64_t min, max[2];
  for (int i = 0; i < 2; i++) {
    OK(ctx, clb_context_disable(ctx, i ? CLB_SPLIT_ROWS : 0));
    clb_graph *g = graph_of(ctx, &e);
    OK(ctx, clb_convolution_workspace(op, CLB_FORWARD, g, &min, &max[i]));
    clb_graph_destroy(&g);
  }
  OK(ctx, clb_context_disable(ctx, 0));
  assert_true(max[0] > 0);
  assert_int_equal(max[1], 0);
  clb_op_destroy(&op);
  edges_destroy(&e);
}

/* A long row whose edges are processed in two parts: each finds its own edges among all of the
   row's. */
static void parts(void **state) {
  place *at = *state;
  clb_context *ctx = context_at(at);
  edge_list e = hub_edges(20, 12, 9000, 8500, 1);
  clb_convolution_desc d = describe(at, TINY);
  convolution *c = convolution_create(ctx, &d);
  OK(ctx, clb_context_disable(ctx, CLB_SPLIT_ROWS));
  clb_graph *g = graph_of(ctx, &e);
  OK(ctx, clb_context_disable(ctx, 0));
  convolve_and_compare(c, CLB_BACKWARD, &e, g, (manner){DENSE, MIN}, 3);
  clb_graph_destroy(&g);
  convolution_destroy(c);
  edges_destroy(&e);
}

static void refusals(void **state) {
  clb_context *ctx = context_at(*state);
  assert_int_equal(clb_context_disable(NULL, 0), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_context_disable(ctx, ALL + 1), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "clb_context_disable: optimisations is 0x8"));
}

int main(void) {
  static const place_test tests[] = {
      {"convolutions", convolutions, 0}, {"products", products, 0}, {"kernels", kernels, THOROUGH},
      {"graphs", graphs_without, BRISK}, {"parts", parts, BRISK},   {"refusals", refusals, 0}};
  return run_at_places("without", tests, sizeof tests / sizeof *tests);
}
