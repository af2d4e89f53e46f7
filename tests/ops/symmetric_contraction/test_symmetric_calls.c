/* tests/ops/symmetric_contraction/test_symmetric_calls.c - what symmetric contractions
   refuse. */
#include "tests/ops/symmetric_contraction/contraction_arrays.h"

static const int degrees[] = {0, 1, 2, 3};
enum { ROWS = 5, MAX_WIDTH = 9 };

static clb_symmetric_contraction_desc describe(int ell, int correlation) {
  return (clb_symmetric_contraction_desc){.ell = ell,
                                          .correlation = correlation,
                                          .degrees = degrees,
                                          .n_degrees = 3,
                                          .channels = 3,
                                          .n_species = 2,
                                          .layout_x = CLB_IR_MUL,
                                          .layout_z = CLB_IR_MUL,
                                          .storage = CLB_F64,
                                          .arithmetic = CLB_F64};
}

static void refused(clb_context *ctx, clb_symmetric_contraction_desc d, const char *message) {
  clb_op *op;
  if (!d.passes) d.passes = 1;
  assert_int_equal(clb_symmetric_contraction_create(ctx, &d, &op), CLB_ERROR_ARGUMENT);
  assert_null(op);
  if (!strstr(clb_error(ctx), message)) fail_msg("%s: not %s", clb_error(ctx), message);
}

static void descriptions(void **state) {
  static const int twice[] = {1, 0, 1}, high[] = {5};
  clb_context *ctx = context_of(*state);
  clb_symmetric_contraction_desc good = describe(2, 2), d;
  clb_symmetric_paths paths;
  double u[4];
  clb_op *op;
#define WITH(member, value, message) d = good, d.member = value, refused(ctx, d, message)
  WITH(ell, -1, "ell is -1; it must be 0 ... 4");
  WITH(ell, 5, "ell is 5");
  WITH(correlation, 0, "correlation is 0; it must be 1 ... 4");
  WITH(correlation, 5, "correlation is 5");
  WITH(channels, 0, "channels is 0");
  WITH(n_species, 0, "n_species is 0");
  WITH(n_degrees, 0, "n_degrees is 0");
  WITH(n_degrees, 6, "n_degrees is 6");
  WITH(degrees, NULL, "degrees is NULL");
  WITH(degrees, twice, "degrees names 1 twice");
  d = good, d.degrees = high, d.n_degrees = 1, refused(ctx, d, "one of degrees is 5");
  WITH(layout_x, CLB_MERGED, "layout_x is 2");
  WITH(layout_z, (clb_layout)7, "layout_z is 7");
  WITH(gradients, CLB_OPERAND_Y, "gradients is 0x2");
  WITH(incoming, CLB_OPERAND_Z, "incoming is 0x8");
  WITH(storage, CLB_F16, "CLB_F64 goes with storage");
  d = good, d.n_species = 1 << 20, d.channels = 1000;
  refused(ctx, d, "11 paths of 1000 channels and 1048576 species are more than 2^31 - 1 weights");
#undef WITH
  good.passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD);
  assert_int_equal(clb_symmetric_contraction_create(ctx, &good, &op), CLB_ERROR_UNSUPPORTED);
  assert_int_equal(clb_symmetric_contraction_create(ctx, NULL, &op), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_create(ctx, &good, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_paths(ctx, &good, 3, 1, &paths), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "degree is 3 and nu is 1"));
  assert_int_equal(clb_symmetric_contraction_paths(ctx, &good, 0, 3, &paths), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, -1, u, 4), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, 0, u, 4), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "U of path 0 has 9 numbers"));
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, 0, NULL, 9), CLB_ERROR_ARGUMENT);
}

/* What is wrong with the operands of a call. */
static void calls(void **state) {
  clb_context *ctx = context_of(*state);
  clb_symmetric_contraction_desc d = describe(1, 2);
  test_contraction *t = contraction_create(ctx, &d);
  contraction_data data = data_create(t, ROWS, SORTED, 7);
  int x = t->width[CLB_OPERAND_X], w = t->width[CLB_OPERAND_W], z = t->width[CLB_OPERAND_Z];
  clb_rows rx = spread(t, data.in[0], ROWS, x, 0, 0), rw = spread(t, data.in[1], 2, w, 0, 0),
           rz = spread(t, NULL, ROWS, z, 0, 0), rg = spread(t, data.in[2], ROWS, z, 0, 0),
           r_x = spread(t, NULL, ROWS, x, 0, 0), r_w = spread(t, NULL, 1, w / 2, 0, 0);
  clb_buffer *species;
  OK(ctx, clb_buffer_create(ctx, 4 * ROWS, &species));
  OK(ctx, clb_buffer_write(species, 0, data.species, 4 * ROWS));
  assert_int_equal(clb_symmetric_contraction_forward(t->op, ROWS, rx, rw, rz), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "the index of w is NULL"));
  rw.index = species;
  OK(ctx, clb_symmetric_contraction_forward(t->op, ROWS, rx, rw, rz));
  assert_int_equal(clb_symmetric_contraction_forward(t->op, 2 * ROWS, rx, rw, rz),
                   CLB_ERROR_ARGUMENT);
  clb_rows few = rw;
  few.offset = 2 * w; /* one row too few */
  assert_int_equal(clb_symmetric_contraction_forward(t->op, ROWS, rx, few, rz), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "of w"));
  assert_int_equal(clb_symmetric_contraction_backward(t->op, ROWS, rx, rw, rg, r_x, r_w),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "of g_w"));
  clb_rows indexed = rz;
  indexed.buffer = rw.buffer, indexed.index = species;
  assert_int_equal(clb_symmetric_contraction_backward(t->op, ROWS, rx, rw, rg, r_x, indexed),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "the index of g_w must be NULL"));
  assert_int_equal(clb_symmetric_contraction_forward(NULL, ROWS, rx, rw, rz), CLB_ERROR_ARGUMENT);
  clb_rows *all[] = {&rx, &rw, &rz, &rg, &r_x, &r_w};
  for (int i = 0; i < 6; i++) clb_buffer_destroy(&all[i]->buffer);
  clb_buffer_destroy(&species);
  data_destroy(&data);
  contraction_destroy(t);
}

int main(void) {
  static const device_test tests[] = {{"descriptions", descriptions, WHERE_THOROUGH},
                                      {"calls", calls, WHERE_THOROUGH}};
  return run_on_devices("symmetric_properties", tests, sizeof tests / sizeof *tests);
}
