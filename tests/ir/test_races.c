/* tests/ir/test_races.c - what the interpreter reports as a race, and what it accepts. */
#include "src/ir/ir.h"
#include "tests/test.h"

enum { LANES = 4 };

typedef struct {
  ir_kernel k;
  ir_val in, out, local, lane, subgroup, own, next, thread,
      zero; /* own, next: this thread's place in the group, another's */
} kernel;

static kernel begin(int subgroups) {
  kernel t;
  ir_kernel *k = &t.k;
  ir_begin(k, "k", LANES, subgroups, 1);
  t.in = ir_buffer(k, IR_I32, false), t.out = ir_buffer(k, IR_I32, true);
  t.local = ir_local(k, IR_I32, LANES * subgroups);
  t.lane = ir_lane(k), t.subgroup = ir_subgroup(k), t.zero = ir_int(k, IR_I32, 0);
  t.own = ir_add(k, ir_mul(k, t.subgroup, ir_int(k, IR_I32, LANES)), t.lane);
  t.next =
      ir_2(k, IR_MOD, ir_add(k, t.own, ir_int(k, IR_I32, 1)), ir_int(k, IR_I32, LANES * subgroups));
  t.thread = ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, LANES * subgroups)), t.own);
  return t;
}

/* Runs two groups; says: NULL, or words that the error must contain. */
static void expect(kernel *t, const char *const *says) {
  int32_t in[64] = {0}, out[64] = {0};
  char error[1000];
  if (!ir_finish(&t->k)) fail_msg("not built: %s", t->k.error);
  bool ok = ir_run(&t->k, (ir_arg[]){{.p = in}, {.p = out}}, NULL, 0, 2, error, sizeof error);
  if (!ok != (says != NULL)) fail_msg("%s", ok ? "it ran" : error);
  for (; says && *says; says++)
    if (!strstr(error, *says)) fail_msg("'%s' should say '%s'", error, *says);
  ir_free(&t->k);
}
#define RACES(t, ...) expect(t, (const char *const[]){"race", __VA_ARGS__, NULL})
#define RUNS(t) expect(t, NULL)

enum { NONE, SUBGROUP, GROUP };
static void meet(kernel *t, int barrier) {
  if (barrier != NONE) ir_barrier(&t->k, barrier == GROUP);
}

/* Every lane gives a number to the lane before it; the last lane of a sub-group to the first of the
   next. */
static void shown(void **state) {
  (void)state;
  for (int subgroups = 1; subgroups <= 2; subgroups++)
    for (int barrier = NONE; barrier <= GROUP; barrier++) {
      kernel t = begin(subgroups);
      ir_store(&t.k, t.local, t.own, IR_NONE, t.lane);
      meet(&t, barrier);
      ir_store(&t.k, t.out, t.thread, IR_NONE, ir_load(&t.k, t.local, t.next, IR_NONE));
      if (barrier == GROUP || (barrier == SUBGROUP && subgroups == 1)) RUNS(&t);
      else if (barrier == NONE)
        RACES(&t, " LOAD i32 varying %2 ", "STORE %2 ",
              "of lane 0 of sub-group 0 of group 0 reads element 1 of %2", "of lane 1 of",
              "wrote, with no BARRIER between");
      else
        RACES(&t, "lane 3 of sub-group 0 of group 0 reads element 4 of %2",
              "of lane 0 of sub-group 1 of group 0 wrote");
    }
}

/* Overwrites what others have read. */
static void overwritten(void **state) {
  (void)state;
  for (int barrier = NONE; barrier <= GROUP; barrier++) {
    kernel t = begin(2);
    ir_store(&t.k, t.local, t.own, IR_NONE, t.lane);
    ir_barrier(&t.k, true);
    ir_store(&t.k, t.out, t.thread, IR_NONE, ir_load(&t.k, t.local, t.next, IR_NONE));
    meet(&t, barrier);
    ir_store(&t.k, t.local, t.own, IR_NONE, t.zero);
    if (barrier == GROUP) RUNS(&t);
    else RACES(&t, " STORE %2 ", "writes element", " LOAD ", " read, with no BARRIER between");
  }
}

/* In the next iteration of a loop, and where many lanes have read. */
static void turns(void **state) {
  (void)state;
  for (int barrier = NONE; barrier <= SUBGROUP; barrier++)
    for (int all = 0; all < 2; all++) {
      kernel t = begin(1);
      ir_val one = ir_int(&t.k, IR_I32, 1);
      ir_loop(&t.k, t.zero, ir_int(&t.k, IR_I32, 2), one);
      ir_store(&t.k, t.local, t.own, IR_NONE, t.lane);
      ir_barrier(&t.k, false);
      ir_store(&t.k, t.out, t.thread, IR_NONE, ir_load(&t.k, t.local, all ? one : t.next, IR_NONE));
      meet(&t, barrier);
      ir_end(&t.k);
      if (barrier) RUNS(&t);
      else
        RACES(&t, "writes element",
              all ? "of lanes of sub-group 0 of group 0 read" : "read, with no BARRIER");
    }
}

/* A value that all lanes store alike they may load and store again, unless one of them stores
   another value. */
static void alike(void **state) {
  (void)state;
  for (int what = 0; what < 3; what++) {
    kernel t = begin(1);
    ir_store(&t.k, t.local, t.zero, IR_NONE, t.zero);
    if (what == 0) ir_store(&t.k, t.local, t.zero, IR_NONE, ir_int(&t.k, IR_I32, 1));
    if (what == 1) ir_store(&t.k, t.local, t.zero, IR_NONE, t.lane);
    ir_store(&t.k, t.out, t.thread, IR_NONE, ir_load(&t.k, t.local, t.zero, IR_NONE));
    if (what == 2) ir_store(&t.k, t.local, t.zero, IR_NONE, ir_int(&t.k, IR_I32, 1));
    if (what == 0) RUNS(&t);
    else RACES(&t, "element 0 of %2");
  }
}

/* A barrier does not order accesses to a buffer. */
static void buffers(void **state) {
  (void)state;
  for (int what = 0; what < 4; what++) {
    kernel t = begin(2);
    ir_val place = what == 0   ? t.thread
                   : what == 1 ? t.own
                               : ir_add(&t.k, t.thread, ir_int(&t.k, IR_I32, 1));
    ir_store(&t.k, t.out, t.thread, IR_NONE, t.lane);
    ir_barrier(&t.k, true);
    if (what == 3) ir_store(&t.k, t.out, place, IR_NONE, t.lane);
    else ir_store(&t.k, t.local, t.own, IR_NONE, ir_load(&t.k, t.out, place, IR_NONE));
    ir_store(&t.k, t.out, t.thread, IR_NONE, ir_load(&t.k, t.local, t.own, IR_NONE));
    if (what == 3)
      RACES(&t, "writes element 1 of %1",
            "lane 1 of sub-group 0 of group 0 wrote, and nothing orders them in one launch");
    else if (what == 0) RUNS(&t);
    else RACES(&t, "element", "%1", "nothing orders them in one launch");
  }
}

/* Buffers that start at the same address are one. */
static void twice_the_same(void **state) {
  int32_t x[16] = {0};
  char error[1000];
  (void)state;
  for (int shift = 0; shift < 2; shift++) {
    kernel t = begin(1);
    ir_store(&t.k, t.out, t.thread, IR_NONE,
             ir_load(&t.k, t.in, ir_add(&t.k, t.thread, ir_int(&t.k, IR_I32, shift)), IR_NONE));
    assert_true(ir_finish(&t.k));
    bool ok = ir_run(&t.k, (ir_arg[]){{.p = x}, {.p = x}}, NULL, 0, 2, error, sizeof error);
    assert_int_equal(ok, !shift);
    if (shift)
      assert_non_null(strstr(
          error, "of lane 1 of sub-group 0 of group 0 writes element 1 of %1, which instruction"));
    ir_free(&t.k);
  }
}

/* All lanes may add to an atomic sum; reading or setting it at the same time is a race. */
static void atomics(void **state) {
  (void)state;
  for (int what = 0; what < 4; what++) {
    ir_kernel k;
    float x[64] = {0}, y[64] = {0};
    char error[1000];
    ir_begin(&k, "k", LANES, 2, 1);
    ir_val in = ir_buffer(&k, IR_F32, false), out = ir_buffer(&k, IR_F32, true),
           local = ir_local(&k, IR_F32, 2), lane = ir_lane(&k), zero = ir_int(&k, IR_I32, 0);
    ir_val one = ir_real(&k, IR_F32, 1),
           first = ir_2(&k, IR_EQ, ir_add(&k, ir_subgroup(&k), lane), zero);
    ir_store(&k, local, zero, first, ir_load(&k, in, zero, IR_NONE));
    if (what != 1) ir_barrier(&k, true);
    ir_atomic_add(&k, local, zero, IR_NONE, one);
    if (what != 2) ir_barrier(&k, true);
    ir_atomic_add(&k, out, zero, IR_NONE, ir_load(&k, local, zero, IR_NONE));
    if (what == 3) ir_store(&k, out, zero, first, one);
    assert_true(ir_finish(&k));
    bool ok = ir_run(&k, (ir_arg[]){{.p = x}, {.p = y}}, NULL, 0, 2, error, sizeof error);
    if (ok != (what == 0)) fail_msg("case %d: %s", what, ok ? "it ran" : error);
    if (ok) assert_true(y[0] == 2 * (2 * LANES) * (2 * LANES));
    else
      assert_non_null(strstr(error, what == 1   ? "adds to element 0 of %2"
                                    : what == 2 ? "LOAD"
                                                : "writes element 0 of %1"));
    ir_free(&k);
  }
}

/* A copy is visible after a wait, and to other lanes after a barrier that follows. */
static void copies(void **state) {
  (void)state;
  for (int what = 0; what < 4; what++) {
    kernel t = begin(1);
    ir_copy(&t.k, t.local, t.own, t.in, t.thread, IR_NONE, 1);
    ir_copy_commit(&t.k);
    if (what == 3) ir_barrier(&t.k, true);
    if (what != 0 && what != 3) ir_copy_wait(&t.k, 0);
    if (what == 2) ir_barrier(&t.k, false);
    ir_store(&t.k, t.out, t.thread, IR_NONE,
             ir_load(&t.k, t.local, what == 0 ? t.own : t.next, IR_NONE));
    if (what == 2) RUNS(&t);
    else
      RACES(&t, "COPY",
            what == 1 ? "wrote, with no BARRIER between"
                      : "is still writing: a COPY_WAIT must come first");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shown),   cmocka_unit_test(overwritten),
                                     cmocka_unit_test(turns),   cmocka_unit_test(alike),
                                     cmocka_unit_test(buffers), cmocka_unit_test(twice_the_same),
                                     cmocka_unit_test(atomics), cmocka_unit_test(copies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
