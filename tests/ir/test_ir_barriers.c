/* tests/ir/test_ir_barriers.c - what lanes read of each other, barriers, and what the interpreter
 * reports. */
#include <float.h>
#include <math.h>

#include "src/ir/interpreter/interpret_values.h"
#include "src/codegen/codegen.h"
#include "tests/ir/ir_runs.h"

/* A store and a load of a LOCAL array, `apart` elements from lane to lane, and what may stand
   between. */
static void test_loads_across_lanes(void **state) {
  static const struct {
    int64_t at; /* of the load from the store */
    int64_t apart;
    bool barrier, masked, in_loop, refused;
  } cases[] = {{1, 1, false, false, false, true}, {0, 1, false, false, false, false},
               {1, 1, true, false, false, false}, {1, 2, false, false, false, false},
               {2, 2, false, false, false, true}, {1, 1, false, true, false, false},
               {1, 1, false, false, true, false}, {-3, 1, false, false, false, true},
               {9, 1, false, false, false, false}};
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ir_kernel k;
    char error[300];
    ir_begin(&k, "k", 8, 1, 8);
    ir_val to = ir_buffer(&k, IR_I32, true), local = ir_local(&k, IR_I32, 64),
           four = ir_int(&k, IR_I32, 4);
    ir_val at = ir_add(&k, ir_mul(&k, ir_lane(&k), ir_int(&k, IR_I32, cases[c].apart)), four);
    ir_store(&k, local, at, cases[c].masked ? ir_2(&k, IR_LT, ir_lane(&k), four) : IR_NONE,
             ir_lane(&k));
    if (cases[c].barrier) ir_barrier(&k, false);
    if (cases[c].in_loop) ir_loop(&k, ir_int(&k, IR_I32, 0), ir_group(&k), four);
    ir_store(&k, to, ir_lane(&k), IR_NONE,
             ir_load(&k, local, ir_add(&k, at, ir_int(&k, IR_I32, cases[c].at)), IR_NONE));
    if (cases[c].in_loop) ir_end(&k);
    assert_true(ir_finish(&k));
    if (cases[c].refused)
      refuse(&k, "LOAD: it reads what another lane stores in instruction",
             "with no BARRIER between");
    else if (!ir_verify(&k, error, sizeof error)) fail_msg("case %d: %s", (int)c, error);
    ir_free(&k);
  }
}

/* A letter is an instruction: s and l store to and load from one array, S and L another, c copies
   to it, w waits for that; b, g, p are barriers of the sub-group, of the group and for pace; ( ) a
   loop, [ | ] an if with its else. */
static void build_letters(ir_kernel *k, const char *letters, int lanes, int subgroups) {
  ir_begin(k, "k", lanes, subgroups, lanes * subgroups);
  ir_val n = ir_scalar(k, IR_I32), to = ir_buffer(k, IR_I32, true),
         from = ir_buffer(k, IR_I32, false), one = ir_int(k, IR_I32, 1);
  ir_val local[2] = {ir_local(k, IR_I32, 64), ir_local(k, IR_I32, 64)}, lane = ir_lane(k);
  for (const char *c = letters; *c; c++) {
    if (*c == 's' || *c == 'S') ir_store(k, local[*c == 'S'], lane, IR_NONE, n);
    if (*c == 'l' || *c == 'L')
      ir_store(k, to, lane, IR_NONE, ir_load(k, local[*c == 'L'], lane, IR_NONE));
    if (*c == 'c') ir_copy(k, local[0], lane, from, lane, IR_NONE, 1), ir_copy_commit(k);
    if (*c == 'w') ir_copy_wait(k, 0);
    if (*c == 'b' || *c == 'g') ir_barrier(k, *c == 'g');
    if (*c == 'p') ir_rendezvous(k);
    if (*c == '(') ir_loop(k, one, n, one);
    if (*c == '[') ir_if(k, ir_2(k, IR_LT, n, one));
    if (*c == '|') ir_else(k);
    if (*c == ')' || *c == ']') ir_end(k);
  }
  assert_true(ir_finish(k));
}

static void test_idle_barriers(void **state) {
  static const struct {
    const char *before, *after;
    int lanes, subgroups;
  } cases[] = {{"bsblb", "sbl", 8, 1},        {"sbblbs", "sblbs", 8, 1},
               {"sbL", "sL", 8, 1},           {"lbl", "ll", 8, 1},
               {"sbs", "sbs", 8, 1},          {"(sbl)", "(sbl)", 8, 1},
               {"(sblb)", "(sblb)", 8, 1},    {"(bsbl)", "(bsbl)", 8, 1},
               {"(bl)", "(l)", 8, 1},         {"(s)b(l)", "(s)b(l)", 8, 1},
               {"[s|S]bl", "[s|S]bl", 8, 1},  {"[s|bl]", "[s|l]", 8, 1},
               {"[sb|S]bl", "[s|S]bl", 8, 1}, {"[sb]l", "[sb]l", 8, 1},
               {"(sbSb)", "(sSb)", 8, 1},     {"sgbl", "sgl", 8, 2},
               {"sbgl", "sgl", 8, 2},         {"sbl", "sl", 1, 2},
               {"sgl", "sgl", 1, 2},          {"sgl", "sl", 1, 1},
               {"spl", "spl", 8, 2},          {"pp", "pp", 8, 2},
               {"spbl", "spl", 8, 2},         {"cwbl", "cwbl", 8, 1},
               {"cbw", "cbw", 8, 1},          {"cbwbl", "cbwbl", 8, 1},
               {"lbc", "lbc", 8, 1},          {"Lbcw", "Lcw", 8, 1},
               {"((sb)l)", "((sb)l)", 8, 1},  {"([bs|b]l)", "([bs|b]l)", 8, 1}};
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ir_kernel k, wanted;
    char error[300];
    build_letters(&k, cases[c].before, cases[c].lanes, cases[c].subgroups);
    build_letters(&wanted, cases[c].after, cases[c].lanes, cases[c].subgroups);
    assert_true(ir_drop_barriers(&k));
    if (!ir_verify(&k, error, sizeof error)) fail_msg("%s: %s", cases[c].before, error);
    bool same = k.n == wanted.n;
    for (int32_t v = 0; v < k.n && same; v++)
      same = k.ins[v].op == wanted.ins[v].op && k.ins[v].imm == wanted.ins[v].imm &&
             k.ins[v].scope == wanted.ins[v].scope;
    if (!same) {
      char left[64] = "";
      int at = 0;
      for (int32_t v = 0; v < k.n; v++)
        if (k.ins[v].op == IR_BARRIER)
          at += snprintf(left + at, sizeof left - (size_t)at, " %d", (int)v);
      fail_msg("%s should become %s; the barriers left are%s", cases[c].before, cases[c].after,
               left);
    }
    ir_free(&k);
    ir_free(&wanted);
  }
}

static void test_barriers(void **state) {
  ir_kernel k;
  int32_t y[64];
  char error[300];
  (void)state;
  ir_begin(&k, "k", 8, 4,
           32); /* in each iteration every sub-group takes the number of the next one */
  ir_val to = ir_buffer(&k, IR_I32, true), local = ir_local(&k, IR_I32, 4), s = ir_subgroup(&k),
         g = ir_group(&k);
  ir_val mine = ir_var(&k, ir_mul(&k, s, s), true), four = ir_int(&k, IR_I32, 4),
         one = ir_int(&k, IR_I32, 1);
  ir_loop(&k, ir_int(&k, IR_I32, 0), ir_add(&k, g, one), one);
  ir_store(&k, local, s, IR_NONE, ir_get(&k, mine));
  ir_barrier(&k, true);
  ir_set(&k, mine, ir_load(&k, local, ir_2(&k, IR_MOD, ir_add(&k, s, one), four), IR_NONE));
  ir_barrier(&k, true);
  ir_end(&k);
  ir_val row = ir_add(&k, ir_mul(&k, ir_add(&k, ir_mul(&k, g, four), s), ir_int(&k, IR_I32, 8)),
                      ir_lane(&k));
  ir_store(&k, to, row, IR_NONE, ir_get(&k, mine));
  finish(&k);
  run(&k, (ir_arg[]){{.p = y}}, 2);
  for (int j = 0; j < 64; j++) {
    int group = j / 32, from = (j / 8 + group + 1) % 4;
    assert_int_equal(y[j], from * from);
  }
  ir_free(&k);
  ir_begin(&k, "k", 8, 2, 16);
  ir_if(&k, ir_2(&k, IR_EQ, ir_subgroup(&k), ir_int(&k, IR_I32, 1)));
  ir_barrier(&k, true);
  ir_end(&k);
  assert_true(ir_finish(&k));
  assert_false(ir_verify(&k, error, sizeof error));
  assert_non_null(strstr(error, "BARRIER: it is the group's, under instruction"));
  assert_false(ir_run(&k, NULL, NULL, 0, 1, error, sizeof error));
  assert_non_null(strstr(error, "do not meet at the same BARRIER"));
  ir_free(&k);
}

/* Must be reported: y[lane] = one value of x, i64. */
static void misbehave(int what, int64_t x0, const char *word) {
  ir_kernel k;
  int64_t x[4] = {x0, x0, x0, x0}, y[4];
  char error[300];
  ir_begin(&k, "k", 4, 1, 4);
  ir_val from = ir_buffer(&k, IR_I64, false), to = ir_buffer(&k, IR_I64, true),
         local = ir_local(&k, IR_I64, 5), lane = ir_lane(&k);
  for (int l = 0; l < 5; l++)
    ir_store(&k, local, ir_int(&k, IR_I32, l), IR_NONE, ir_int(&k, IR_I64, l));
  ir_barrier(&k, false);
  ir_val a = ir_load(&k, from, lane, IR_NONE), b = a, values[2];
  ir_val i = ir_cast(&k, IR_I32, a), x32 = ir_cast(&k, IR_F32, a), x64 = ir_cast(&k, IR_F64, a),
         mask = ir_2(&k, IR_LT, lane, ir_int(&k, IR_I32, 1));
  if (what == 0) b = ir_2(&k, IR_DIV, a, a);
  if (what == 1) b = ir_2(&k, IR_MOD, i, i), b = ir_cast(&k, IR_I64, b);
  if (what == 2) b = ir_load(&k, local, a, mask);
  if (what == 3) ir_load_wide(&k, local, a, IR_NONE, 2, values), b = values[1];
  if (what == 4) ir_store(&k, local, a, mask, a);
  if (what == 5) ir_copy(&k, local, a, from, lane, mask, 1);
  if (what == 6) b = ir_shuffle(&k, a, i);
  if (what == 7)
    ir_loop(&k, ir_int(&k, IR_I64, 0), ir_int(&k, IR_I64, 4),
            ir_shuffle(&k, a, ir_int(&k, IR_I32, 0))),
        ir_end(&k);
  if (what == 8) ir_load_aligned(&k, local, a, mask, 2, values), b = values[1];
  if (what == 14) ir_store_aligned(&k, local, a, mask, 2, (const ir_val[]){a, a});
  if (what == 9) b = ir_cast(&k, IR_I64, ir_cast(&k, IR_I32, x32));
  if (what == 10)
    b = ir_cast(&k, IR_I64,
                ir_cast(&k, IR_I32, ir_add(&k, x64, ir_real(&k, IR_F64, x0 < 0 ? -0.5 : 0.5))));
  if (what == 11) b = ir_cast(&k, IR_I64, x32);
  if (what == 12) b = ir_cast(&k, IR_I64, x64);
  if (what == 13) b = ir_cast(&k, IR_I64, ir_2(&k, IR_DIV, x32, x32));
  ir_store(&k, to, lane, IR_NONE, b);
  finish(&k);
  bool ok = ir_run(&k, (ir_arg[]){{.p = x}, {.p = y}}, NULL, 0, 1, error, sizeof error);
  if (ok != !word) fail_msg("case %d with %lld: %s", what, (long long)x0, ok ? "ran" : error);
  if (word && !strstr(error, word))
    fail_msg("case %d: says '%s', should say '%s'", what, error, word);
  ir_free(&k);
}

static void test_what_is_reported(void **state) {
  (void)state;
  misbehave(0, 0, "DIV: the divisor of lane 0 is not positive");
  misbehave(1, 0, "MOD: the divisor of lane 0 is not positive");
  misbehave(0, 1, NULL);
  misbehave(2, 5, "LOAD: index 5 of lane 0 leaves the array");
  misbehave(2, -1, "LOAD: index -1");
  misbehave(2, 4, NULL);
  misbehave(3, 4, "LOAD: index 4");
  misbehave(3, 3, NULL);
  misbehave(4, 5, "STORE: index 5");
  misbehave(4, INT64_MAX, "STORE: index 9223372036854775807");
  misbehave(4, 0, NULL);
  misbehave(5, 5, "COPY: index 5");
  misbehave(5, 4, NULL);
  misbehave(6, 4, "SHUFFLE: lane 4 of 4 does not exist");
  misbehave(6, -1, "SHUFFLE: lane -1");
  misbehave(6, 3, NULL);
  misbehave(7, 0, "LOOP: step 0 is not positive");
  misbehave(7, INT64_MAX, NULL);
  misbehave(8, 3, "LOAD: index 3 of lane 0 is not a multiple of the aligned load's width");
  misbehave(8, 4, "LOAD: index 4 of lane 0 leaves the array");
  misbehave(8, 2, NULL);
  misbehave(14, 3, "STORE: index 3 of lane 0 is not a multiple of the aligned store's width");
  misbehave(14, 4, "STORE: index 4 of lane 0 leaves the array");
  misbehave(14, 2, NULL);
  misbehave(9, INT64_C(1) << 31, "CAST: 2147483648 of lane 0 does not fit into i32");
  misbehave(9, (INT64_C(1) << 31) - 128, NULL);
  misbehave(9, -(INT64_C(1) << 31), NULL);
  misbehave(9, -(INT64_C(1) << 31) - 256, "CAST: -2147483904");
  misbehave(10, INT32_MAX, NULL); /* with a half more */
  misbehave(10, INT64_C(1) << 31, "CAST: 2147483648.5");
  misbehave(10, INT32_MIN, NULL);
  misbehave(10, INT32_MIN - INT64_C(1), "CAST: -2147483649.5");
  misbehave(11, INT64_MAX, "CAST: 9.2233720368547758e+18 of lane 0 does not fit into i64");
  misbehave(11, INT64_MIN, NULL);
  misbehave(12, INT64_MAX, "CAST: 9.2233720368547758e+18");
  misbehave(12, INT64_MIN, NULL);
  misbehave(13, 0, "nan of lane 0 does not fit into i64");
  misbehave(13, 1, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_barriers), cmocka_unit_test(test_loads_across_lanes),
      cmocka_unit_test(test_idle_barriers), cmocka_unit_test(test_what_is_reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
