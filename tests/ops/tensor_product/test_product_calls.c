/* tests/ops/tensor_product/test_product_calls.c - which operands the calls of a tensor product
   accept. */
#include "tests/ops/call_operands.h"
#include "tests/test.h"

enum { N = 3, BYTES = 4096, PASSES = 4, MAX = sizeof(clb_triple_operands) / sizeof(clb_rows) };

static const clb_tensor_product_desc plain = {PLAIN_PRODUCT, .passes = 15};

typedef struct {
  clb_context *ctx;
  clb_op *op;
  clb_buffer *buffer;
  clb_rows rows[MAX];
} fixture;

/* Operands back to back in one buffer of zeros. */
static fixture begin(const clb_tensor_product_desc *desc) {
  static const char zeros[BYTES];
  fixture f = {0};
  assert_int_equal(clb_context_create("cpu:interpreter", &f.ctx), CLB_OK);
  if (clb_tensor_product_create(f.ctx, desc, &f.op)) fail_msg("%s", clb_error(f.ctx));
  assert_int_equal(clb_buffer_create(f.ctx, BYTES, &f.buffer), CLB_OK);
  assert_int_equal(clb_buffer_write(f.buffer, 0, zeros, BYTES), CLB_OK);
  for (int i = 0; i < MAX; i++) f.rows[i] = (clb_rows){.buffer = f.buffer, .offset = i * 16 * N};
  return f;
}

static void end(fixture *f) {
  clb_buffer_destroy(&f->buffer);
  clb_op_destroy(&f->op);
  clb_context_destroy(&f->ctx);
}

static clb_status call(clb_op *op, int pass, const clb_rows *o) {
  clb_triple_operands all;
  memcpy(&all, o, sizeof all);
  switch (pass) {
    case CLB_FORWARD: return clb_tensor_product_forward(op, N, o[0], o[1], o[2], o[3]);
    case CLB_BACKWARD:
      return clb_tensor_product_backward(op, N, o[0], o[1], o[2], o[3], o[4], o[5], o[6]);
    case CLB_DOUBLE_BACKWARD:
      return clb_tensor_product_double_backward(op, N, o[0], o[1], o[2], o[3], o[4], o[5], o[6],
                                                o[7], o[8], o[9], o[10]);
    default: return clb_tensor_product_triple_backward(op, N, &all);
  }
}

static void refuses(fixture *f, int pass, const char *says) {
  assert_int_equal(call(f->op, pass, f->rows), CLB_ERROR_ARGUMENT);
  if (!strstr(clb_error(f->ctx), says)) fail_msg("instead of \"%s\": %s", says, clb_error(f->ctx));
}

static void accepts(fixture *f, int pass) {
  if (call(f->op, pass, f->rows)) fail_msg("%s", clb_error(f->ctx));
}

/* Each operand is checked, under its own name and with its own columns. */
static void each_operand(void **state) {
  (void)state;
  fixture f = begin(&plain);
  char says[96];
  for (int pass = 0; pass < PASSES; pass++) {
    accepts(&f, pass);
    for (int i = 0; i < n_operands[pass]; i++) {
      clb_rows good = f.rows[i];
      f.rows[i].buffer = NULL;
      snprintf(says, sizeof says, "the buffer of %s is NULL", operand(pass, i).name);
      refuses(&f, pass, says);
      f.rows[i] = good;
      f.rows[i].index = f.buffer;
      snprintf(says, sizeof says, "the index of %s must be NULL", operand(pass, i).name);
      refuses(&f, pass, says);
      f.rows[i] = good;
      f.rows[i].offset = BYTES / 4 - N * columns[operand(pass, i).of];
      accepts(&f, pass);
      f.rows[i].offset++;
      snprintf(says, sizeof says, "%d rows of %d elements", N, (int)columns[operand(pass, i).of]);
      refuses(&f, pass, says);
      snprintf(says, sizeof says, "bytes of %s", operand(pass, i).name);
      refuses(&f, pass, says);
      f.rows[i] = good;
    }
  }
  end(&f);
}

/* An operand that is not asked for needs no buffer, and its rows are ignored; all others need one.
 */
static void absent_operands(void **state) {
  (void)state;
  for (int wanted = 1; wanted < 16; wanted++) {
    clb_tensor_product_desc desc = plain;
    desc.gradients = (unsigned)wanted;
    desc.incoming = (unsigned)wanted % 7 + 1;
    if (wanted == CLB_OPERAND_Z) desc.passes &= ~CLB_PASS_BIT(CLB_BACKWARD);
    fixture f = begin(&desc);
    for (int pass = CLB_BACKWARD; pass < PASSES; pass++)
      for (int i = 0; i < n_operands[pass] && desc.passes & CLB_PASS_BIT(pass); i++) {
        clb_rows good = f.rows[i];
        f.rows[i] = (clb_rows){.offset = -1, .stride = -7};
        if (is_absent(pass, i, desc.gradients, desc.incoming)) accepts(&f, pass);
        else refuses(&f, pass, operand(pass, i).name);
        f.rows[i] = good;
      }
    end(&f);
  }
}

static void row_numbers(void **state) {
  (void)state;
  static const char *const missing[] = {"the index of x is NULL", "the index of y is NULL",
                                        "the index of w is NULL"};
  static const char *const foreign[] = {"the index of x belongs", "the index of y belongs",
                                        "the index of w belongs"};
  clb_context *other;
  clb_buffer *small, *elsewhere;
  assert_int_equal(clb_context_create("cpu:interpreter", &other), CLB_OK);
  assert_int_equal(clb_buffer_create(other, BYTES, &elsewhere), CLB_OK);
  for (int i = 0; i < 3; i++) {
    clb_tensor_product_desc desc = plain;
    desc.indexed = 1u << i;
    fixture f = begin(&desc);
    assert_int_equal(clb_buffer_create(f.ctx, 4 * N - 1, &small), CLB_OK);
    for (int pass = 0; pass < PASSES; pass++) {
      f.rows[i].index = NULL;
      refuses(&f, pass, missing[i]);
      f.rows[i].index = elsewhere;
      refuses(&f, pass, foreign[i]);
      f.rows[i].index = small;
      refuses(&f, pass, "3 row numbers of 4 bytes do not fit in the 11 bytes of the index");
      f.rows[i].index = f.buffer; /* of zeros */
      accepts(&f, pass);
      f.rows[i].offset =
          BYTES / 4 - columns[1 << i]; /* room for row 0; no other row number is known */
      accepts(&f, pass);
      f.rows[i].offset++;
      refuses(&f, pass, "do not fit");
      f.rows[i].offset = 0;
      f.rows[(i + 1) % 3].index = f.buffer; /* the others are not */
      refuses(&f, pass, "must be NULL");
      f.rows[(i + 1) % 3].index = NULL;
      if (pass >= CLB_DOUBLE_BACKWARD) { /* nor are incoming gradients of its shape indexed */
        f.rows[4 + i].index = f.buffer;
        refuses(&f, pass, "must be NULL");
        f.rows[4 + i].index = NULL;
      }
    }
    clb_buffer_destroy(&small);
    end(&f);
  }
  clb_buffer_destroy(&elsewhere);
  clb_context_destroy(&other);
}

/* Of shared weights only buffer and offset matter. */
static void shared_weights(void **state) {
  (void)state;
  clb_tensor_product_desc desc = plain;
  desc.shared_weights = 1;
  desc.passes = CLB_PASS_BIT(CLB_FORWARD);
  fixture f = begin(&desc);
  f.rows[2] =
      (clb_rows){.buffer = f.buffer, .offset = BYTES / 4 - 8, .stride = 1000, .index = f.buffer};
  accepts(&f, CLB_FORWARD);
  f.rows[2].offset++;
  refuses(&f, CLB_FORWARD, "bytes of w");
  end(&f);
}

static void other_mistakes(void **state) {
  (void)state;
  static const int degree = 1;
  clb_tensor_product_desc desc = plain;
  desc.passes = CLB_PASS_BIT(CLB_FORWARD);
  fixture f = begin(&desc);
  refuses(&f, CLB_BACKWARD, "without its backward pass");
  refuses(&f, CLB_TRIPLE_BACKWARD, "without its triple backward pass");
  assert_int_equal(clb_tensor_product_triple_backward(f.op, N, NULL), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(f.ctx), "operands is NULL"));
  for (int pass = 0; pass < PASSES; pass++)
    assert_int_equal(call(NULL, pass, f.rows), CLB_ERROR_ARGUMENT);
  clb_op *op = f.op;
  clb_spherical_harmonics_desc harmonics = {.degrees = &degree,
                                            .n_degrees = 1,
                                            .storage = CLB_F32,
                                            .arithmetic = CLB_F32,
                                            .passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD) | 1u};
  assert_int_equal(clb_spherical_harmonics_create(f.ctx, &harmonics, &f.op), CLB_ERROR_UNSUPPORTED);
  assert_non_null(
      strstr(clb_error(f.ctx), "spherical_harmonics has passes up to double backward only"));
  harmonics.passes = 16;
  assert_int_equal(clb_spherical_harmonics_create(f.ctx, &harmonics, &f.op), CLB_ERROR_ARGUMENT);
  harmonics.passes = 7;
  assert_int_equal(clb_spherical_harmonics_create(f.ctx, &harmonics, &f.op), CLB_OK);
  for (int pass = 0; pass < PASSES; pass++)
    refuses(&f, pass, "this op is spherical_harmonics, not tensor_product");
  f.rows[0].index = f.buffer;
  assert_int_equal(clb_spherical_harmonics_forward(f.op, N, f.rows[0], f.rows[1]),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(f.ctx), "the index of x must be NULL"));
  clb_op_destroy(&op);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_operand), cmocka_unit_test(absent_operands),
      cmocka_unit_test(row_numbers), cmocka_unit_test(shared_weights),
      cmocka_unit_test(other_mistakes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
