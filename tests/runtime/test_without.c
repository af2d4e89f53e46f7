/* tests/runtime/test_without.c - clb_context_disable: results stay right without each optimisation,
   on the devices that run here and with the limits of GPUs, and kernels change. */
#include "tests/ops/convolution/convolution_problems.h"

enum { ALL = CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS | CLB_SPLIT_ROWS };
static const unsigned without[] = {CLB_WIDE_ACCESSES, CLB_REGISTER_SUMS, CLB_SPLIT_ROWS, ALL};
enum { WITHOUT = sizeof without / sizeof *without };

/* ---- results ---- */

/* Ops that were created without, used when all are enabled again; each pass. */
static void stays_right(place *at, const tool_op *op, const tool_kernel *kernel, unsigned what,
                        tool_data data) {
  clb_context *ctx = context_of(at);
  OK(ctx, clb_context_disable(ctx, what));
  clb_op *handle[] = {op_with(ctx, op, kernel, F), op_with(ctx, op, kernel, B),
                      op_with(ctx, op, kernel, D)};
  for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    test_run t;
    test_run_set set;
    double error = INFINITY;
    if (op->on_graph) data.layout = pass % 2 ? LAYOUT_PADDED : LAYOUT_ALIGNED;
    test_run_make(&t, op, kernel, (clb_pass)pass, &data, data.rows);
    test_run_answer(&t);
    OK(ctx, clb_context_disable(ctx, what));
    OK(ctx, test_run_set_make(&t, ctx, handle[pass], &set)); /* and its graph */
    OK(ctx, clb_context_disable(ctx, 0));
    OK(ctx, test_run_once(&t, handle[pass], &set));
    OK(ctx, test_run_error(&t, &set, &error));
    expect_error_within(op, kernel, t.pass, &data, error);
    test_run_set_free(&t, &set);
    test_run_free(&t);
    clb_op_destroy(&handle[pass]);
  }
}

static void convolutions(void **state) {
  static const int which[] = {KNOTTED, EVEN_MUL_IR, GAPS};
  place *at = *state;
  convolution_graph edges[] = {edges_of(10), edges_of(SQUARE)};
  for (int i = 0; i < WITHOUT; i++)
    for (int k = 0;
         k < many(at, 1, SANITIZED ? 1 : 2, SANITIZED ? 2 : sizeof which / sizeof *which); k++) {
      if (at->effort == SLOW && without[i] != ALL) continue;
      convolution_problem p = convolution_by(AS_GIVEN, which[k], 0);
      p.edges = &edges[(i + k) % 2];
      p.atomics = k == 1;
      p.workspace = k == 2 ? MIN_WORKSPACE : MAX_WORKSPACE;
      stays_right(at, &tool_op_convolution, &(tool_kernel){&p, F64, k % 2}, without[i],
                  (tool_data){.rows = p.edges->n_edges, .hard = true});
    }
  for (int i = 0; i < 2; i++) convolution_graph_free(&edges[i]);
}

static void products(void **state) {
  static const int which[] = {PARITIES, KNOTTED, UNEVEN};
  place *at = *state;
  for (int i = 0; i < WITHOUT; i++)
    for (int k = 0; k < many(at, 1, 1, SANITIZED ? 2 : sizeof which / sizeof *which); k++) {
      if (without[i] & CLB_SPLIT_ROWS && without[i] != ALL) continue; /* products have no graph */
      if (at->effort == SLOW && without[i] != ALL) continue;
      stays_right(at, &tool_op_tensor_product,
                  &(tool_kernel){&convolution_list[which[k]].product, F64, k % 2}, without[i],
                  (tool_data){.rows = 37});
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
  clb_context *ctx = context_of(at);
  OK(ctx, clb_context_disable(ctx, what));
  clb_op *op = op_with(ctx, &tool_op_convolution,
                       &(tool_kernel){&convolution_list[which], F32, false}, F | B);
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
  clb_context *ctx = context_of(*state);
  convolution_graph e = edges_of(11);
  clb_op *op = convolution_without(*state, SMALL, 0);
  uint64_t min, max[2];
  for (int i = 0; i < 2; i++) {
    clb_graph *g = NULL;
    OK(ctx, clb_context_disable(ctx, i ? CLB_SPLIT_ROWS : 0));
    OK(ctx, clb_graph_create(ctx, 0, 0, &g));
    OK(ctx, clb_graph_update(g, e.n_senders, e.n_receivers, e.n_edges, CLB_I32,
                             (clb_index_list){.host = e.senders},
                             (clb_index_list){.host = e.receivers}));
    OK(ctx, clb_convolution_workspace(op, CLB_FORWARD, g, &min, &max[i]));
    clb_graph_destroy(&g);
  }
  OK(ctx, clb_context_disable(ctx, 0));
  assert_true(max[0] > 0);
  assert_int_equal(max[1], 0);
  clb_op_destroy(&op);
  convolution_graph_free(&e);
}

/* A long row whose edges are processed in two parts: each finds its own edges among all of the
   row's. */
static void parts(void **state) {
  convolution_graph e = hub_edges(20, 12, 9000, 8500, 1);
  convolution_problem p = convolution_by(AS_GIVEN, TINY, 0);
  p.edges = &e, p.workspace = MIN_WORKSPACE;
  stays_right(*state, &tool_op_convolution, &(tool_kernel){&p, F64, false}, CLB_SPLIT_ROWS,
              (tool_data){.rows = e.n_edges});
  convolution_graph_free(&e);
}

static void refusals(void **state) {
  clb_context *ctx = context_of(*state);
  assert_int_equal(clb_context_disable(NULL, 0), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_context_disable(ctx, ALL + 1), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "clb_context_disable: optimisations is 0x8"));
}

int main(void) {
  static const place_test tests[] = {
      {"convolutions", convolutions, 0}, {"products", products, 0}, {"kernels", kernels, THOROUGH},
      {"graphs", graphs_without, BRISK}, {"parts", parts, BRISK},   {"refusals", refusals, 0}};
  return RUN_CONVOLUTIONS("without", tests);
}
