/* tests/ops/convolution/test_convolution_calls.c - what the calls of a graph convolution accept,
   and how much workspace they ask for. */
#include "tests/test.h"

#include <math.h>

#include "src/base/signature.h"
#include "src/runtime/context.h"
#include "tools/reference/reference_spline.h"

static const clb_instruction two_paths[] = {{0, 0, 0, CLB_UVU, 1, 1}, {0, 1, 1, CLB_UVU, 1, 1}};
#define PLAIN_PRODUCT                                                                              \
  .irreps_x = "4x0e", .irreps_y = "0e+1o", .irreps_z = "4x0e+4x1o", .instructions = two_paths,     \
  .n_instructions = 2, .storage = CLB_F32, .arithmetic = CLB_F32

enum { SENDERS = 5, RECEIVERS = 2, EDGES = 3, MAX = 11, PASSES = 3, LONG = 700, ROOM = 1 << 18 };

static const clb_convolution_desc plain = {.product = {PLAIN_PRODUCT, .passes = 7}};

typedef struct {
  clb_context *ctx, *other;
  clb_op *op;
  clb_graph *graph;
  clb_buffer *buffer, *workspace, *foreign;
  clb_rows rows[MAX];
} fixture;

static void update(fixture *f, int n_senders, int n_receivers, int n) {
  int32_t *list = calloc((size_t)n + 1, sizeof *list);
  assert_non_null(list);
  for (int i = 0; i < n; i++) list[i] = i % (n_senders < n_receivers ? n_senders : n_receivers);
  assert_int_equal(clb_graph_update(f->graph, n_senders, n_receivers, n, CLB_I32,
                                    (clb_index_list){.host = list}, (clb_index_list){.host = list}),
                   CLB_OK);
  free(list);
}

static void create(fixture *f, const clb_convolution_desc *desc) {
  clb_op_destroy(&f->op);
  if (clb_convolution_create(f->ctx, desc, &f->op)) fail_msg("%s", clb_error(f->ctx));
}

static fixture begin(void) {
  static const char zeros[ROOM];
  fixture f = {0};
  assert_int_equal(clb_context_create("cpu:interpreter", &f.ctx), CLB_OK);
  assert_int_equal(clb_context_create("cpu:interpreter", &f.other), CLB_OK);
  assert_int_equal(clb_buffer_create(f.ctx, ROOM, &f.buffer), CLB_OK);
  assert_int_equal(clb_buffer_write(f.buffer, 0, zeros, ROOM), CLB_OK);
  assert_int_equal(clb_buffer_create(f.ctx, ROOM, &f.workspace), CLB_OK);
  assert_int_equal(clb_buffer_create(f.other, ROOM, &f.foreign), CLB_OK);
  assert_int_equal(clb_graph_create(f.ctx, 10, 10, &f.graph), CLB_OK);
  update(&f, SENDERS, RECEIVERS, EDGES);
  for (int i = 0; i < MAX; i++) f.rows[i] = (clb_rows){.buffer = f.buffer, .offset = 100 * i};
  create(&f, &plain);
  return f;
}

/* No operand shares an element with another, with up to LONG edges. */
static void part_rows(fixture *f) {
  for (int i = 0; i < MAX; i++) f->rows[i].offset = (int64_t)i * LONG * 8;
}

static void end(fixture *f) {
  clb_buffer_destroy(&f->buffer);
  clb_buffer_destroy(&f->workspace);
  clb_buffer_destroy(&f->foreign);
  clb_graph_destroy(&f->graph);
  clb_op_destroy(&f->op);
  clb_context_destroy(&f->other);
  clb_context_destroy(&f->ctx);
}

static clb_status call(clb_op *op, int pass, clb_graph *g, const clb_rows *o,
                       clb_buffer *workspace) {
  if (pass == CLB_FORWARD) return clb_convolution_forward(op, g, o[0], o[1], o[2], o[3], workspace);
  if (pass == CLB_BACKWARD)
    return clb_convolution_backward(op, g, o[0], o[1], o[2], o[3], o[4], o[5], o[6], workspace);
  return clb_convolution_double_backward(op, g, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7],
                                         o[8], o[9], o[10], workspace);
}

static void says(clb_context *ctx, const char *words) {
  if (!strstr(clb_error(ctx), words)) fail_msg("instead of \"%s\": %s", words, clb_error(ctx));
}

static void refuses(fixture *f, int pass, const char *words) {
  assert_int_equal(call(f->op, pass, f->graph, f->rows, f->workspace), CLB_ERROR_ARGUMENT);
  says(f->ctx, words);
}

static void accepts(fixture *f, int pass) {
  if (call(f->op, pass, f->graph, f->rows, f->workspace))
    fail_msg("pass %d: %s", pass, clb_error(f->ctx));
}

/* ---- operands ---- */

/* Operands without rows, where there are no nodes or edges. */
static void no_rows(void **state) {
  static const int sizes[][3] = {
      {SENDERS, RECEIVERS, 0}, {0, RECEIVERS, 0}, {SENDERS, 0, 0}, {0, 0, 0}};
  clb_signature_operand operand[CLB_SIGNATURE_OPERANDS];
  (void)state;
  fixture f = begin();
  for (int k = 0; k < 4; k++) {
    const int n[] = {[CLB_OPERAND_X] = sizes[k][0],
                     [CLB_OPERAND_Y] = 0,
                     [CLB_OPERAND_W] = 0,
                     [CLB_OPERAND_Z] = sizes[k][1]};
    update(&f, sizes[k][0], sizes[k][1], 0);
    for (int pass = 0; pass < PASSES; pass++)
      for (int i = 0; i < clb_signature_operands(&clb_signature_tensor_product, pass, operand);
           i++) {
        clb_rows good = f.rows[i];
        f.rows[i] = (clb_rows){.offset = -1, .stride = -7};
        if (n[operand[i].of]) refuses(&f, pass, operand[i].name);
        else accepts(&f, pass);
        f.rows[i] = good;
      }
  }
  end(&f);
}

/* ---- descriptions ---- */

static void descriptions(void **state) {
  static const clb_instruction uuu[] = {{0, 0, 0, CLB_UUU, 1, 1}},
                               wide[] = {{0, 0, 0, CLB_UVU, 1, 1}},
                               impossible[] = {{0, 1, 0, CLB_UVU, 1, 1}};
  (void)state;
  fixture f = begin();
  clb_op *op = f.op;
#define REFUSED(status, words, ...)                                                                \
  do {                                                                                             \
    clb_convolution_desc d = plain;                                                                \
    clb_op *none = op;                                                                             \
    __VA_ARGS__;                                                                                   \
    assert_int_equal(clb_convolution_create(f.ctx, &d, &none), status);                            \
    assert_null(none);                                                                             \
    says(f.ctx, words);                                                                            \
  } while (0)
  REFUSED(CLB_ERROR_ARGUMENT, "mode CLB_UVU",
          (d.product.irreps_x = "1x0e", d.product.irreps_z = "1x0e", d.product.instructions = uuu,
           d.product.n_instructions = 1, d.atomics = 1));
  REFUSED(CLB_ERROR_ARGUMENT, "one channel of y",
          (d.product.irreps_y = "2x0e", d.product.irreps_z = "4x0e", d.product.instructions = wide,
           d.product.n_instructions = 1, d.atomics = 1));
  REFUSED(
      CLB_ERROR_ARGUMENT, "y have 1024 elements at most",
      (d.product.irreps_y = "0e+1o+1021x0e", d.knots = 4, d.last_knot = 1, d.product.passes = 1));
  REFUSED(CLB_ERROR_ARGUMENT, "knots are set; every path",
          (d.product.irreps_y = "2x0e", d.product.irreps_z = "4x0e", d.product.instructions = wide,
           d.product.n_instructions = 1, d.knots = 4, d.last_knot = 1));
  REFUSED(CLB_ERROR_ARGUMENT, "term 0 of irreps_y is 2x0e; with vectors its multiplicity must be 1",
          (d.product.irreps_y = "2x0e", d.product.irreps_z = "4x0e", d.product.instructions = wide,
           d.product.n_instructions = 1, d.vectors = 1));
  REFUSED(CLB_ERROR_ARGUMENT, "normalization is 3",
          (d.vectors = 1, d.normalization = (clb_normalization)3));
  REFUSED(CLB_ERROR_ARGUMENT, "instructions[0]", d.product.instructions = impossible);
  REFUSED(CLB_ERROR_ARGUMENT, "irreps_x", d.product.irreps_x = "4y0");
  REFUSED(CLB_ERROR_ARGUMENT, "instructions is NULL", d.product.instructions = NULL);
  REFUSED(CLB_ERROR_ARGUMENT, "layout_x is 2", d.product.layout_x = (clb_layout)2);
  REFUSED(CLB_ERROR_ARGUMENT, "indexed is 0x1", d.product.indexed = CLB_OPERAND_X);
  REFUSED(CLB_ERROR_ARGUMENT, "gradients is 0x10", d.product.gradients = 16);
  REFUSED(CLB_ERROR_ARGUMENT, "incoming is 0x8", d.product.incoming = 8);
  REFUSED(CLB_ERROR_ARGUMENT, "scale is", d.scale = NAN);
  REFUSED(CLB_ERROR_ARGUMENT, "scale is", d.scale = INFINITY);
  REFUSED(CLB_ERROR_ARGUMENT, "shared_weights",
          (d.product.shared_weights = 1, d.knots = 4, d.last_knot = 1));
  REFUSED(CLB_ERROR_ARGUMENT, "knots is -1", d.knots = -1);
  REFUSED(CLB_ERROR_ARGUMENT, "knots is 3;", d.knots = 3);
  REFUSED(CLB_ERROR_ARGUMENT, "knots is 1048577", (d.knots = (1 << 20) + 1, d.last_knot = 1));
  static const double grids[][2] = {
      {0, 0}, {1, 0.5}, {NAN, 1}, {0, NAN}, {0, INFINITY}, {-INFINITY, 0}, {-INFINITY, INFINITY}};
  for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
    REFUSED(
        CLB_ERROR_ARGUMENT, "the first below the last",
        (d.knots = 4, d.product.passes = 3, d.first_knot = grids[i][0], d.last_knot = grids[i][1]));
  REFUSED(CLB_ERROR_ARGUMENT, "atomics go with storage CLB_F64 or CLB_F32",
          (d.atomics = 1, d.product.storage = CLB_F16));
  REFUSED(CLB_ERROR_ARGUMENT, "atomics go with storage CLB_F64 or CLB_F32",
          (d.atomics = 1, d.product.storage = CLB_BF16));
  REFUSED(CLB_ERROR_ARGUMENT, "arithmetic", d.product.storage = CLB_F64);
  REFUSED(CLB_ERROR_ARGUMENT, "passes is 0", d.product.passes = 0);
  REFUSED(CLB_ERROR_ARGUMENT, "passes is 0x10", d.product.passes = 16);
  REFUSED(CLB_ERROR_UNSUPPORTED, "convolution has passes up to double backward only",
          d.product.passes = 15);
  assert_int_equal(clb_convolution_create(NULL, &plain, &op), CLB_ERROR_ARGUMENT);
  assert_null(op);
  assert_int_equal(clb_convolution_create(f.ctx, NULL, &op), CLB_ERROR_ARGUMENT);
  says(f.ctx, "desc is NULL");
  assert_int_equal(clb_convolution_create(f.ctx, &plain, NULL), CLB_ERROR_ARGUMENT);
  says(f.ctx, "op is NULL");
  clb_op_destroy(NULL);
  clb_op_destroy(&op);
  end(&f);
}

/* What may be done with knots, and when. */
static void tables(void **state) {
  enum { KNOTS = 4 };
  static const reference_grid grid = {KNOTS, 0.3, 4.1, 8, 0, 0};
  fixture f = begin();
  clb_convolution_desc d = plain;
  clb_op *plain_op = f.op;
  double r[KNOTS + 2] = {0}, zeros[KNOTS * 8] = {0};
  (void)state;
  d.product.passes = 1, d.knots = KNOTS, d.first_knot = grid.first, d.last_knot = grid.last;
  f.op = NULL;
  create(&f, &d);
#define NO(words, call) NOT_OK(f.ctx, CLB_ERROR_ARGUMENT, words, call)
  refuses(&f, CLB_FORWARD, "call clb_convolution_set_table first");
  assert_int_equal(clb_convolution_set_table(NULL, zeros), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_convolution_knots(NULL, r), CLB_ERROR_ARGUMENT);
  NO("created without knots", clb_convolution_set_table(plain_op, zeros));
  NO("created without knots", clb_convolution_knots(plain_op, r));
  NO("the host pointer is NULL", clb_convolution_set_table(f.op, NULL));
  NO("the host pointer is NULL", clb_convolution_knots(f.op, NULL));
  refuses(&f, CLB_FORWARD, "call clb_convolution_set_table first");
  OK(f.ctx, clb_convolution_knots(f.op, r));
  for (int i = 0; i < KNOTS; i++)
    if (fabs(r[i] - reference_knot(&grid, i)) > 1e-15) fail_msg("knot %d is at %.17g", i, r[i]);
  assert_true(r[0] == grid.first && r[KNOTS - 1] == grid.last && r[KNOTS] == 0);
  OK(f.ctx, clb_convolution_set_table(f.op, zeros));
  accepts(&f, CLB_FORWARD);
  clb_op_destroy(&plain_op);
  end(&f);
}

/* ---- handles ---- */

static void handles(void **state) {
  static const int degree = 1;
  (void)state;
  fixture f = begin();
  clb_op *op = f.op, *product, *harmonics;
  clb_graph *graph = f.graph, *foreign;
  uint64_t min, max;
  clb_spherical_harmonics_desc sh = {
      .degrees = &degree, .n_degrees = 1, .storage = CLB_F32, .arithmetic = CLB_F32, .passes = 7};
  assert_int_equal(clb_graph_create(f.other, 1, 1, &foreign), CLB_OK);
  assert_int_equal(clb_tensor_product_create(f.ctx, &plain.product, &product), CLB_OK);
  assert_int_equal(clb_spherical_harmonics_create(f.ctx, &sh, &harmonics), CLB_OK);
  for (int pass = 0; pass < PASSES; pass++) {
#define MEASURE_REFUSES(words)                                                                     \
  do {                                                                                             \
    assert_int_equal(clb_convolution_workspace(f.op, (clb_pass)pass, f.graph, &min, &max),         \
                     CLB_ERROR_ARGUMENT);                                                          \
    says(f.ctx, words);                                                                            \
  } while (0)
    assert_int_equal(call(NULL, pass, graph, f.rows, f.workspace), CLB_ERROR_ARGUMENT);
    assert_int_equal(clb_convolution_workspace(NULL, (clb_pass)pass, graph, &min, &max),
                     CLB_ERROR_ARGUMENT);
    f.graph = NULL;
    refuses(&f, pass, "graph is NULL");
    MEASURE_REFUSES("graph is NULL");
    f.graph = foreign;
    refuses(&f, pass, "graph belongs to another context");
    MEASURE_REFUSES("graph belongs to another context");
    f.graph = graph;
    f.op = product;
    refuses(&f, pass, "this op is tensor_product, not convolution");
    MEASURE_REFUSES("this op is tensor_product, not convolution");
    f.op = harmonics;
    refuses(&f, pass, "this op is spherical_harmonics, not convolution");
    f.op = op;
    assert_int_equal(clb_convolution_workspace(op, (clb_pass)pass, graph, NULL, &max),
                     CLB_ERROR_ARGUMENT);
    says(f.ctx, "min_bytes is NULL");
    assert_int_equal(clb_convolution_workspace(op, (clb_pass)pass, graph, &min, NULL),
                     CLB_ERROR_ARGUMENT);
    says(f.ctx, "max_bytes is NULL");
  }
  assert_int_equal(clb_tensor_product_forward(op, 1, f.rows[0], f.rows[1], f.rows[2], f.rows[3]),
                   CLB_ERROR_ARGUMENT);
  says(f.ctx, "this op is convolution, not tensor_product");
  assert_int_equal(clb_convolution_workspace(op, CLB_TRIPLE_BACKWARD, graph, &min, &max),
                   CLB_ERROR_ARGUMENT);
  says(f.ctx, "without its triple backward pass");
  assert_int_equal(clb_convolution_workspace(op, (clb_pass)4, graph, &min, &max),
                   CLB_ERROR_ARGUMENT);
  for (int missing = 0; missing < PASSES; missing++) {
    static const char *const words[] = {"without its forward pass", "without its backward pass",
                                        "without its double backward pass"};
    clb_convolution_desc d = plain;
    d.product.passes &= ~CLB_PASS_BIT(missing);
    create(&f, &d);
    refuses(&f, missing, words[missing]);
    for (int pass = 0; pass < PASSES; pass++)
      if (pass != missing) accepts(&f, pass);
  }
  clb_op_destroy(&product);
  clb_op_destroy(&harmonics);
  clb_graph_destroy(&foreign);
  end(&f);
}

/* ---- workspace ---- */

typedef struct {
  uint64_t min, max;
} bytes;

static bytes measure(fixture *f, int pass) {
  bytes b;
  assert_int_equal(clb_convolution_workspace(f->op, (clb_pass)pass, f->graph, &b.min, &b.max),
                   CLB_OK);
  return b;
}

/* For n edges: a row for each piece of 256 edges, and gradients of x of 8192 edges at least, of all
   at most. */
static void numbers(void **state) {
  static const int sizes[] = {0, 1, 256, 257, 8192, 8193, 30000};
  (void)state;
  fixture f = begin();
  for (int type = CLB_F32; type <= CLB_BF16; type++)
    for (int k = 0; k < 7; k++) {
      int n = sizes[k];
      uint64_t element = type == CLB_F64 ? 8 : 4,
               stored = type == CLB_F64   ? 8
                        : type == CLB_F32 ? 4
                                          : 2,
               pieces = n ? (uint64_t)(n - 1) / 256 : 0, x = 4 * element;
      clb_convolution_desc d = plain;
      d.product.storage = (clb_dtype)type;
      d.product.arithmetic = type == CLB_F64 ? CLB_F64 : CLB_F32;
      create(&f, &d);
      update(&f, SENDERS, RECEIVERS, n);
      bytes z = measure(&f, CLB_FORWARD), g = measure(&f, CLB_BACKWARD),
            h = measure(&f, CLB_DOUBLE_BACKWARD);
      assert_true(z.min == z.max && z.max == pieces * 16 * stored);
      assert_true(g.max - g.min == (n > 8192 ? (uint64_t)n - 8192 : 0) * x);
      assert_true(g.max >= (uint64_t)n * x && g.max <= (uint64_t)n * x + pieces * 4 * stored + 255);
      assert_true(h.min == (g.min > z.min ? g.min : z.min) &&
                  h.max == (g.max > z.max ? g.max : z.max));
      d.product.gradients = CLB_OPERAND_Y | CLB_OPERAND_W;
      create(&f, &d);
      g = measure(&f, CLB_BACKWARD), h = measure(&f, CLB_DOUBLE_BACKWARD);
      assert_true(!g.max && !h.max);
      if (type >= CLB_F16) continue;
      d.product.gradients = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
      d.atomics = 1;
      create(&f, &d);
      g = measure(&f, CLB_BACKWARD), h = measure(&f, CLB_DOUBLE_BACKWARD);
      assert_true(!g.max && !h.max);
    }
  end(&f);
}

/* Enough workspace, too little, none, another context's; more edges than it is enough for. */
static void workspace(void **state) {
  (void)state;
  fixture f = begin();
  clb_buffer *roomy = f.workspace, *exact, *short_of_it;
  part_rows(&f);
  for (int k = 0; k < 2; k++) {
    update(&f, SENDERS, RECEIVERS, k ? 300 : EDGES);
    for (int pass = 0; pass < PASSES; pass++) {
      bytes b = measure(&f, pass);
      f.workspace = f.foreign;
      refuses(&f, pass, "workspace belongs to another context");
      f.workspace = NULL;
      if (!b.min) {
        accepts(&f, pass);
        continue;
      }
      refuses(&f, pass, "workspace has 0 bytes");
      assert_int_equal(clb_buffer_create(f.ctx, b.min, &exact), CLB_OK);
      assert_int_equal(clb_buffer_create(f.ctx, b.min - 1, &short_of_it), CLB_OK);
      f.workspace = exact;
      accepts(&f, pass);
      f.workspace = short_of_it;
      refuses(&f, pass, "at least");
      clb_buffer_destroy(&exact);
      clb_buffer_destroy(&short_of_it);
    }
  }
  f.workspace = roomy;
  end(&f);
}

/* ---- a backend on which that many launches succeed, but not the next ---- */

static const clb_backend *genuine;
static int launches_left;

static clb_status launch_or_not(clb_device *d, clb_module *m, int64_t groups, const clb_arg *args,
                                int n) {
  if (!launches_left--) return clb_fail(d->error, CLB_ERROR_DRIVER, "not today");
  return genuine->launch(d, m, groups, args, n);
}

static void failing_launches(void **state) {
  static const int min[PASSES] = {3, 3, 6}; /* launches of a pass with long rows */
  (void)state;
  fixture f = begin();
  clb_backend poor = *(genuine = f.ctx->device->backend);
  part_rows(&f);
  update(&f, SENDERS, RECEIVERS, LONG);
  poor.launch = launch_or_not;
  f.ctx->device->backend = &poor;
  for (int pass = 0; pass < PASSES; pass++) {
    int n = 0;
    for (clb_status s = CLB_ERROR_DRIVER; s; n++) {
      launches_left = n;
      s = call(f.op, pass, f.graph, f.rows, f.workspace);
      if (s) assert_int_equal(s, CLB_ERROR_DRIVER), says(f.ctx, "not today");
    }
    assert_true(n > min[pass]);
  }
  f.ctx->device->backend = genuine;
  end(&f);
}

/* Work on edges grows with them; both kernels of double backward count. */
static void test_flops(void **state) {
  fixture f = begin();
  double flops[PASSES], more, nothing;
  (void)state;
  for (int pass = 0; pass < PASSES; pass++) {
    assert_int_equal(clb_convolution_flops(f.op, (clb_pass)pass, 10, 100, &flops[pass]), CLB_OK);
    assert_int_equal(clb_convolution_flops(f.op, (clb_pass)pass, 10, 200, &more), CLB_OK);
    assert_int_equal(clb_convolution_flops(f.op, (clb_pass)pass, 10, 0, &nothing), CLB_OK);
    assert_true(more > 1.5 * flops[pass] && more <= 2 * flops[pass]);
    assert_true(nothing < 0.5 * flops[pass]);
  }
  assert_true(flops[CLB_DOUBLE_BACKWARD] > flops[CLB_FORWARD] + flops[CLB_BACKWARD]);
  assert_int_equal(clb_convolution_flops(f.op, CLB_FORWARD, -1, 3, &more), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_convolution_flops(f.op, CLB_FORWARD, 3, -1, &more), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_convolution_flops(f.op, CLB_FORWARD, 3, 3, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_convolution_flops(f.op, (clb_pass)3, 3, 3, &more), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_convolution_flops(NULL, CLB_FORWARD, 3, 3, &more), CLB_ERROR_ARGUMENT);
  end(&f);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_flops),   cmocka_unit_test(no_rows),
      cmocka_unit_test(descriptions), cmocka_unit_test(tables),
      cmocka_unit_test(handles),      cmocka_unit_test(numbers),
      cmocka_unit_test(workspace),    cmocka_unit_test(failing_launches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
