/* tests/backends/test_opencl_barriers.c - values that a lane keeps across barriers, on every OpenCL
   device here. */
#include "tests/backends/opencl_devices.h"

/* Negations, and near negations. */
static ir_val made_of(ir_kernel *k, ir_type t, ir_val a, int how) {
  ir_val one = ir_real(k, t, -1);
  switch (how) {
    case 0: return ir_1(k, IR_NEG, a);
    case 1: return ir_mul(k, a, one);
    case 2: return ir_2(k, IR_DIV, a, one);
    case 3: return ir_sub(k, ir_real(k, t, -0.0), a);
    case 4: return ir_fma(k, ir_1(k, IR_NEG, a), ir_real(k, t, 1.5), a);
    case 5: return ir_1(k, IR_ABS, a);
    case 6: return ir_sub(k, ir_real(k, t, 0), a);
    default: return ir_2(k, IR_MAX, a, ir_real(k, t, 0));
  }
}

/* Each lane makes numbers of its own, before a loop and in it, and needs them in each iteration,
   with barriers in between. */
static void kept(kernel_case *c, ir_type t, int lanes, int subgroups) {
  enum { WAYS = 8, TURNS = 3, GROUPS = 2 };
  ir_kernel *k = &c->k;
  ir_begin(k, "kept", lanes, subgroups, lanes * subgroups);
  const int rows = GROUPS * lanes * subgroups;
  ir_val n = case_i64(c, rows), turns = case_i64(c, TURNS), mask, ahead[WAYS];
  ir_val x = case_array(c, t, (size_t)rows, false, 0),
         y = case_array(c, t, (size_t)(2 * WAYS * TURNS * rows), true, 0),
         row = case_row(c, n, &mask), a = ir_load(k, x, row, mask);
  for (int i = 0; i < WAYS; i++) ahead[i] = made_of(k, t, ir_add(k, a, ir_real(k, t, i)), i);
  ir_val turn = ir_loop(k, ir_int(k, IR_I64, 0), turns, ir_int(k, IR_I64, 1)),
         at = ir_add(k, ir_mul(k, turn, ir_int(k, IR_I64, 2 * WAYS * rows)), row);
  for (int i = 0; i < 2 * WAYS; i++)
    ir_store(k, y, ir_add(k, at, ir_int(k, IR_I64, i * rows)), mask,
             i < WAYS ? ahead[i] : made_of(k, t, a, i - WAYS));
  ir_barrier(k, true);
  ir_end(k);
  c->groups = GROUPS;
  assert_true(ir_finish(k));
}

static void negations(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_device *d = open_named(found.name[i], NULL, &error);
    for (int wide = 0; wide <= d->limits.f64; wide++) {
      void *arrays[CASE_PARAMETERS] = {0};
      kernel_case c = {.n = 0};
      kept(&c, wide ? IR_F64 : IR_F32, d->limits.lanes[wide ? CLB_F64 : CLB_F32],
           d->limits.max_subgroups < 3 ? d->limits.max_subgroups : 3);
      case_copies(&c, arrays);
      if (case_run(d, &c, arrays)) fail_msg("%s on %s: %s", c.k.name, d->info.name, error.text.s);
      case_expect(&c, d->info.name, arrays);
      case_free_copies(arrays);
      case_free(&c);
    }
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(negations)};
  opencl->list(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
