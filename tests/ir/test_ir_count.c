/* tests/ir/test_ir_count.c - counts per row where sub-groups and lanes do different work. */
#include "src/ir/ir.h"
#include "tests/test.h"

enum { LANES = 8, SUBGROUPS = 4 };

static ir_kernel k;
static ir_val x, y, n; /* f32, read; f32, written; i32: unknown */

static ir_val number(int64_t i) { return ir_int(&k, IR_I32, i); }
static ir_val less(ir_val a, ir_val b) { return ir_2(&k, IR_LT, a, b); }
static ir_val and (ir_val a, ir_val b) { return ir_2(&k, IR_AND, a, b); }
static ir_val loop(int64_t first, int64_t last, int64_t step) {
  return ir_loop(&k, number(first), number(last), number(step));
}

static void begin(int rows) {
  ir_begin(&k, "k", LANES, SUBGROUPS, rows);
  x = ir_buffer(&k, IR_F32, false);
  y = ir_buffer(&k, IR_F32, true);
  n = ir_scalar(&k, IR_I32);
}

/* A store by each lane of the mask. */
static void store(ir_val mask) { ir_store(&k, y, ir_lane(&k), mask, ir_real(&k, IR_F32, 1)); }

static ir_counts counts(void) {
  char error[300];
  if (!ir_finish(&k)) fail_msg("not built: %s", k.error);
  if (!ir_verify(&k, error, sizeof error)) fail_msg("not valid: %s", error);
  return ir_count(&k);
}

static void expect(double loads, double stores, double flops) {
  ir_counts c = counts();
  if (c.loads != loads || c.stores != stores || c.flops != flops || c.bytes_loaded != 4 * loads ||
      c.bytes_stored != 4 * stores)
    fail_msg("%.17g loads (%.17g bytes), %.17g stores (%.17g bytes), %.17g flops; not %.17g, "
             "%.17g, %.17g",
             c.loads, c.bytes_loaded, c.stores, c.bytes_stored, c.flops, loads, stores, flops);
  ir_free(&k);
}

/* ---- by hand ---- */

/* Units of a row take blocks of 32, 16 and then 13 channels, the last block with a tail. */
static void test_units(void **state) {
  static const struct { int mul, first; } parts[] = {{32, 0}, {16, 0}, {13, 2}};
  (void)state;
  for (int rows = 1; rows <= 2; rows++) { /* of 4 and 2 units */
    begin(rows);
    int units = SUBGROUPS / rows;
    ir_val in_group = ir_2(&k, IR_DIV, ir_subgroup(&k), number(units)),
           unit = ir_sub(&k, ir_subgroup(&k), ir_mul(&k, in_group, number(units)));
    ir_if(&k, less(ir_add(&k, ir_mul(&k, ir_group(&k), number(rows)), in_group), n));
    for (int p = rows - 1; p < 3; p++) {
      ir_val block = ir_sub(&k, unit, number(rows == 1 ? parts[p].first : 0)),
             first = ir_mul(&k, block, number(LANES));
      ir_if(&k, and(ir_2(&k, IR_LE, number(0), block),
                    less(block, number((parts[p].mul + LANES - 1) / LANES))));
      ir_val at = ir_add(&k, first, ir_lane(&k)),
             mask = parts[p].mul % LANES
                        ? less(ir_lane(&k), ir_sub(&k, number(parts[p].mul), first))
                        : IR_NONE;
      ir_val v = ir_load(&k, x, at, mask);
      ir_store(&k, y, at, mask, ir_mul(&k, v, v));
      ir_end(&k);
    }
    ir_end(&k);
    if (rows == 1)
      expect(32 + 16 + 13, 32 + 16 + 13, (4 + 2 + 2) * LANES); /* arithmetic is done in all lanes */
    else expect(16 + 13, 16 + 13, (2 + 2) * LANES);
  }
}

/* Only the first unit stores, if there is a row: "unknown and false" is false. */
static void test_first_unit(void **state) {
  (void)state;
  begin(1);
  ir_if(&k, and(less(ir_group(&k), n), ir_2(&k, IR_EQ, ir_subgroup(&k), number(0))));
  store(less(ir_lane(&k), number(5)));
  ir_end(&k);
  expect(0, 5, 0);
}

/* A block of channels per iteration; the last has a tail. */
static void test_loops_with_tails(void **state) {
  (void)state;
  begin(SUBGROUPS);
  ir_val block = loop(0, 3, 1), first = ir_mul(&k, block, number(LANES));
  store(less(ir_lane(&k), ir_sub(&k, number(21), first)));
  ir_if(&k, ir_2(&k, IR_EQ, block, number(1)));
  ir_val inner = loop(0, 4, 1);
  store(less(ir_lane(&k), ir_add(&k, block, inner))); /* 1 + 2 + 3 + 4 */
  ir_end(&k);
  ir_end(&k);
  ir_end(&k);
  expect(0, 21 + 10, 0);
  begin(SUBGROUPS); /* columns that the sub-groups share out: 10 in all */
  ir_loop(&k, ir_subgroup(&k), number(10), number(SUBGROUPS));
  store(IR_NONE);
  ir_end(&k);
  expect(0, 10.0 * LANES / SUBGROUPS, 0);
}

/* Loops of unknown bounds go through a range in steps, and those within them through a step. */
static void test_ranges(void **state) {
  (void)state;
  begin(1);
  ir_val first = ir_loop(&k, number(0), n, number(8)), v = ir_load(&k, x, ir_lane(&k), IR_NONE);
  store(less(v, ir_add(&k, v, v)));
  ir_loop(&k, first, ir_2(&k, IR_MIN, n, ir_add(&k, first, number(8))), number(1));
  ir_store(&k, y, ir_lane(&k), IR_NONE, ir_mul(&k, v, v));
  ir_end(&k);
  ir_end(&k);
  assert_true(counts().flops == 2 * LANES * SUBGROUPS);
  assert_true(ir_count_ranges(&k, 20).flops == 2.5 * (1 + 8) * LANES * SUBGROUPS);
  assert_true(ir_count_ranges(&k, 3).flops == (1 + 3) * LANES * SUBGROUPS);
  assert_true(ir_count_ranges(&k, 3).loads == LANES * SUBGROUPS);
  ir_free(&k);
}

/* A known condition selects the branch; otherwise each count takes the larger branch. */
static void test_branches(void **state) {
  (void)state;
  for (int known = 0; known < 2; known++) {
    begin(1);
    ir_if(&k, less(known ? ir_subgroup(&k) : n, number(1)));
    store(IR_NONE);
    store(IR_NONE);
    ir_else(&k);
    ir_val v = ir_load(&k, x, ir_lane(&k), IR_NONE);
    ir_store(&k, y, ir_lane(&k), IR_NONE, ir_add(&k, v, v));
    ir_end(&k);
    if (known) expect(3 * LANES, (2 + 3) * LANES, 3 * LANES);
    else expect(4 * LANES, 4 * 2 * LANES, 4 * LANES);
  }
  begin(SUBGROUPS);
  ir_if(&k, less(number(0), n));               /* unknown, without ELSE: taken */
  ir_if(&k, less(ir_subgroup(&k), number(0))); /* never */
  store(IR_NONE);
  ir_end(&k);
  store(IR_NONE);
  ir_end(&k);
  expect(0, LANES, 0);
}

/* An unknown condition counts as true, and what is computed from it is unknown too. */
static void test_unknown(void **state) {
  (void)state;
  for (int i = 0; i < 10; i++) {
    static const int lanes[] = {5, LANES, 5, LANES, 5, LANES, LANES, 0, LANES, 3};
    begin(SUBGROUPS);
    ir_val lane = ir_lane(&k), tail = less(lane, number(5)), unknown = less(lane, n),
           yes = less(number(0), ir_add(&k, lane, number(1))), mask = tail;
    if (i == 1) mask = unknown;
    if (i == 2) mask = and(unknown, tail);
    if (i == 3) mask = ir_2(&k, IR_OR, unknown, tail);
    if (i == 4) mask = ir_select(&k, yes, tail, unknown);
    if (i == 5) mask = ir_select(&k, unknown, tail, ir_1(&k, IR_NOT, yes));
    if (i == 6)
      mask = less(lane, ir_2(&k, IR_DIV, number(5), ir_sub(&k, lane, lane))); /* no divisor */
    if (i == 7) mask = and(unknown, ir_1(&k, IR_NOT, yes));
    if (i == 8) mask = less(ir_load(&k, x, lane, IR_NONE), ir_real(&k, IR_F32, 5));
    if (i == 9) mask = ir_1(&k, IR_NOT, ir_2(&k, IR_OR, unknown, tail));
    store(mask);
    expect(i == 8 ? LANES : 0, lanes[i], 0);
  }
}

/* One element per sub-group, unless a varying mask makes it each lane's own. */
static void test_uniform(void **state) {
  (void)state;
  begin(1);
  ir_val at = ir_mul(&k, ir_group(&k), number(4)),
         own = ir_2(&k, IR_EQ, ir_subgroup(&k), number(2)), sum, v[4];
  ir_load_wide(&k, x, at, IR_NONE, 4, v); /* 4 by each */
  sum = ir_add(&k, v[0], v[3]);           /* once by each */
  sum = ir_add(
      &k, sum,
      ir_load(&k, x, ir_add(&k, at, number(7)), own)); /* by one of them, and added by each */
  sum = ir_add(&k, sum,
               ir_load(&k, x, ir_add(&k, at, number(8)),
                       less(ir_lane(&k), number(3)))); /* 3 lanes of each */
  ir_store(&k, y, at, own, v[1]);
  ir_store(&k, y, ir_lane(&k), own, sum);
  expect(4 * 4 + 1 + 4 * 3, 1 + LANES, 4 * 2 + 4 * LANES);
}

static void test_copies_and_atomics(void **state) {
  (void)state;
  begin(SUBGROUPS);
  ir_val local = ir_local(&k, IR_F32, 2 * LANES), lane = ir_lane(&k), tail = less(lane, number(5));
  ir_copy(&k, local, lane, x, lane, tail, 2);
  ir_store(&k, local, lane, tail, ir_real(&k, IR_F32, 1)); /* local memory is not counted */
  ir_atomic_add(&k, y, number(0), tail, ir_real(&k, IR_F32, 1));
  expect(2 * 5 + 5, 5, 5);
}

/* Constants, as folded by the builders. */
static void test_constant_masks(void **state) {
  (void)state;
  for (int on = 0; on < 2; on++) {
    begin(SUBGROUPS);
    store(ir_int(&k, IR_BOOL, on));
    expect(0, on * LANES, 0);
    begin(SUBGROUPS);
    ir_if(&k, ir_int(&k, IR_BOOL, on));
    store(IR_NONE);
    ir_end(&k);
    expect(0, on * LANES, 0);
  }
}

/* Loops too long to be walked: all lanes, once per iteration; exact where nothing depends on the
   variable. */
static void test_long_loops(void **state) {
  ir_val outer, inner;
  (void)state;
  begin(SUBGROUPS);
  outer = loop(0, 1000000000, 1);
  store(less(ir_lane(&k), outer));
  store(less(ir_lane(&k), number(3)));
  ir_end(&k);
  expect(0, 1e9 * (LANES + 3), 0);
  begin(SUBGROUPS);
  outer = loop(0, 100, 1);
  inner = loop(0, 1000000, 1);
  loop(0, 1000000, 1);
  store(less(ir_lane(&k), ir_add(&k, outer, inner)));
  ir_end(&k);
  ir_end(&k);
  ir_end(&k);
  expect(0, 1e14 * LANES, 0);
  begin(SUBGROUPS); /* each is short */
  for (int i = 0; i < 7; i++) outer = i ? ir_add(&k, outer, loop(0, 100, 1)) : loop(0, 100, 1);
  store(ir_2(&k, IR_LE, ir_lane(&k), ir_add(&k, outer, number(LANES))));
  for (int i = 0; i < 7; i++) ir_end(&k);
  expect(0, 1e14 * LANES, 0);
  begin(SUBGROUPS);
  ir_loop(&k, ir_int(&k, IR_I64, INT64_MIN), ir_int(&k, IR_I64, INT64_MAX),
          ir_int(&k, IR_I64, INT64_MAX)); /* 3 turns */
  store(IR_NONE);
  ir_end(&k);
  ir_loop(&k, ir_int(&k, IR_I64, INT64_MIN), ir_int(&k, IR_I64, INT64_MAX), ir_int(&k, IR_I64, 1));
  ir_store(&k, y, number(0), IR_NONE, ir_real(&k, IR_F32, 1));
  ir_end(&k);
  expect(0, 3 * LANES + 0x1p64, 0);
}

/* ---- against the interpreter, which counts 1 for each lane that acts ---- */

static int dice(uint64_t *seed, int sides) { return (int)((test_random(seed) + 1) / 2 * sides); }

/* An i32 made of the leaves. */
static ir_val expression(uint64_t *seed, const ir_val *leaf, int leaves, int depth) {
  static const ir_op ops[] = {IR_ADD, IR_SUB, IR_MUL, IR_MIN, IR_MAX, IR_DIV, IR_MOD};
  if (!depth) return dice(seed, 4) ? leaf[dice(seed, leaves)] : number(dice(seed, 9));
  int op = dice(seed, 8);
  ir_val a = expression(seed, leaf, leaves, depth - 1),
         b = expression(seed, leaf, leaves, depth - 1);
  if (op == 7)
    return ir_cast(&k, IR_I32,
                   ir_add(&k, ir_cast(&k, IR_I64, a),
                          ir_int(&k, IR_I64, INT64_C(0x7fffffff0) + dice(seed, 32))));
  if (op >= 5)
    a = ir_2(&k, IR_MAX, a, number(0)),
    b = ir_2(&k, IR_MAX, b, number(1 + dice(seed, 4))); /* what the operands must be */
  return ir_2(&k, ops[op], a, b);
}

static ir_val condition(uint64_t *seed, const ir_val *leaf, int leaves, int depth) {
  static const ir_op compare[] = {IR_LT, IR_LE, IR_EQ}, join[] = {IR_AND, IR_OR};
  if (!depth || !dice(seed, 3))
    return ir_2(&k, compare[dice(seed, 3)], expression(seed, leaf, leaves, dice(seed, 3)),
                expression(seed, leaf, leaves, dice(seed, 2)));
  ir_val a = condition(seed, leaf, leaves, depth - 1), b = condition(seed, leaf, leaves, depth - 1);
  int op = dice(seed, 4);
  return op < 2    ? ir_2(&k, join[op], a, b)
         : op == 2 ? ir_1(&k, IR_NOT, a)
                   : ir_select(&k, a, b, condition(seed, leaf, leaves, depth - 1));
}

/* leaf[0]: LANE; the others are uniform. */
static void statements(uint64_t *seed, ir_val *leaf, int leaves, int depth) {
  for (int i = 0; i < 3; i++) {
    int what = depth ? dice(seed, 4) : 0;
    if (what < 2)
      ir_atomic_add(&k, y, number(0), condition(seed, leaf, leaves, 2), ir_real(&k, IR_F32, 1));
    if (what == 2) {
      ir_if(&k, condition(seed, leaf + 1, leaves - 1, 2));
      statements(seed, leaf, leaves, depth - 1);
      if (dice(seed, 2)) ir_else(&k), statements(seed, leaf, leaves, depth - 1);
      ir_end(&k);
    }
    if (what == 3) {
      leaf[leaves] =
          ir_loop(&k, ir_2(&k, IR_MAX, expression(seed, leaf + 1, leaves - 1, 1), number(-3)),
                  number(dice(seed, 6)), number(1 + dice(seed, 3)));
      statements(seed, leaf, leaves + 1, depth - 1);
      ir_end(&k);
    }
  }
}

static void test_against_the_interpreter(void **state) {
  uint64_t seed = 1;
  int acted = 0;
  (void)state;
  for (int i = 0; i < 400; i++) {
    ir_val leaf[8];
    char error[300];
    float sum[1] = {0};
    begin(3);
    leaf[0] = ir_lane(&k), leaf[1] = ir_subgroup(&k);
    statements(&seed, leaf, 2, 3);
    ir_counts c = counts();
    if (!ir_run(&k, (ir_arg[]){{.p = sum}, {.p = sum}, {.i32 = 0}}, NULL, 0, 1, error,
                sizeof error))
      fail_msg("kernel %d: %s", i, error);
    assert_true(sum[0] < 0x1p24f);
    if (c.stores != (double)sum[0] / 3 || c.loads != c.stores || c.flops != c.stores)
      fail_msg("kernel %d: %.17g stores, not %g / 3", i, c.stores, (double)sum[0]);
    acted += sum[0] > 0;
    ir_free(&k);
  }
  assert_true(acted > 300);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_units),
      cmocka_unit_test(test_first_unit),
      cmocka_unit_test(test_loops_with_tails),
      cmocka_unit_test(test_ranges),
      cmocka_unit_test(test_branches),
      cmocka_unit_test(test_unknown),
      cmocka_unit_test(test_uniform),
      cmocka_unit_test(test_copies_and_atomics),
      cmocka_unit_test(test_constant_masks),
      cmocka_unit_test(test_long_loops),
      cmocka_unit_test(test_against_the_interpreter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
