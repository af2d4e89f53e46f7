/* tests/ir/test_unwritten.c - kernels that read what nothing has written, or outside their arrays:
   the interpreter names instruction, lane, buffer and place. */
#include "src/ir/ir.h"
#include "tests/test.h"

enum { LANES = 4, FLOATS = 16 };

/* A kernel with an input, an output and a local array, and what it runs on. */
typedef struct {
  ir_kernel k;
  ir_val in, out, local, lane, zero, one;
  float x[FLOATS], y[FLOATS];
  unsigned char x_written[4 * FLOATS], y_written[4 * FLOATS];
} planted;

/* All of x is written but its element 6, and nothing of y. */
static planted *begin(void) {
  planted *p = calloc(1, sizeof *p);
  assert_non_null(p);
  ir_begin(&p->k, "k", LANES, 1, 1);
  p->in = ir_buffer(&p->k, IR_F32, false), p->out = ir_buffer(&p->k, IR_F32, true);
  p->local = ir_local(&p->k, IR_F32, LANES), p->lane = ir_lane(&p->k);
  p->zero = ir_int(&p->k, IR_I32, 0), p->one = ir_real(&p->k, IR_F32, 1);
  memset(p->x_written, 1, sizeof p->x_written);
  memset(p->x_written + 24, 0, 4);
  return p;
}

/* Runs one group; says: words that the error must contain; NULL: there must be none. Frees p. */
static void expect(planted *p, const char *const *says) {
  const ir_memory memory[] = {{sizeof p->x, p->x_written}, {sizeof p->y, p->y_written}};
  char error[1000];
  if (!ir_finish(&p->k)) fail_msg("not built: %s", p->k.error);
  const bool ok =
      ir_run(&p->k, (ir_arg[]){{.p = p->x}, {.p = p->y}}, memory, 0, 1, error, sizeof error);
  if (ok != !says) fail_msg("%s", ok ? "it ran" : error);
  for (; says && *says; says++)
    if (!strstr(error, *says)) fail_msg("'%s' should say '%s'", error, *says);
  ir_free(&p->k);
  free(p);
}
#define FAULT(p, ...) expect(p, (const char *const[]){__VA_ARGS__, NULL})
#define RUNS(p) expect(p, NULL)

/* x[lane + from], masked where lane + from >= end. */
static ir_val loaded(planted *p, int from, int end) {
  ir_kernel *k = &p->k;
  const ir_val at = ir_add(k, p->lane, ir_int(k, IR_I32, from));
  return ir_load(k, p->in, at, ir_2(k, IR_LT, at, ir_int(k, IR_I32, end)));
}

/* The lane that reads element 6; not where it is masked. */
static void loads(void **state) {
  (void)state;
  for (int end = 6; end <= 7; end++) {
    planted *p = begin();
    ir_store(&p->k, p->out, p->lane, IR_NONE, loaded(p, 3, end));
    if (end == 6) RUNS(p);
    else
      FAULT(p, "unwritten: instruction", " LOAD f32 varying %0 ",
            "lane 3 of sub-group 0 of group 0", "reads element 6 of %0",
            "byte 24 of 64 of argument 0");
  }
}

/* Two elements a lane, of which the second may be the unwritten one; all lanes alike. */
static void wide_loads(void **state) {
  (void)state;
  for (int at = 5; at <= 7; at++)
    for (int aligned = 0; aligned < 1 + (at % 2 == 0); aligned++) {
      planted *p = begin();
      ir_val value[2];
      (aligned ? ir_load_aligned : ir_load_wide)(&p->k, p->in, ir_int(&p->k, IR_I32, at), IR_NONE,
                                                 2, value);
      ir_store(&p->k, p->out, p->lane, IR_NONE, ir_add(&p->k, value[0], value[1]));
      if (at == 7) RUNS(p);
      else FAULT(p, "lanes of sub-group 0", "reads element 6 of %0, which nothing has written");
    }
}

/* y must be written before something is added to it; the sum then is. */
static void atomics(void **state) {
  (void)state;
  for (int stored = 0; stored < 2; stored++) {
    planted *p = begin();
    if (stored) ir_store(&p->k, p->out, p->lane, IR_NONE, p->one);
    ir_atomic_add(&p->k, p->out, p->lane, IR_NONE, p->one);
    ir_atomic_add(&p->k, p->out, p->lane, IR_NONE, p->one);
    if (stored) RUNS(p);
    else FAULT(p, "ATOMIC_ADD", "lane 0 of", "reads element 0 of %1", "argument 1");
  }
}

static void copies(void **state) {
  (void)state;
  for (int from = 2; from <= 3; from++) {
    planted *p = begin();
    ir_copy(&p->k, p->local, p->lane, p->in, ir_add(&p->k, p->lane, ir_int(&p->k, IR_I32, from)),
            IR_NONE, 1);
    ir_copy_commit(&p->k);
    ir_copy_wait(&p->k, 0);
    ir_store(&p->k, p->out, p->lane, IR_NONE, ir_load(&p->k, p->local, p->lane, IR_NONE));
    if (from == 2) RUNS(p);
    else FAULT(p, "COPY", "lane 3", "reads element 6 of %0");
  }
}

/* A group's own array: of three lanes that write, the fourth's element is not written; nor is it
   in the next group, which has an array of its own. */
static void local_memory(void **state) {
  (void)state;
  for (int what = 0; what < 3; what++) {
    planted *p = begin();
    ir_kernel *k = &p->k;
    const ir_val some = ir_2(k, IR_LT, p->lane, ir_int(k, IR_I32, what == 0 ? 4 : 3));
    ir_store(k, p->local, p->lane, some, p->one);
    ir_barrier(k, false);
    if (what == 2) ir_atomic_add(k, p->local, p->lane, IR_NONE, p->one);
    ir_store(k, p->out, p->lane, IR_NONE, ir_load(k, p->local, p->lane, IR_NONE));
    if (what == 0) RUNS(p);
    else
      FAULT(p, what == 1 ? "LOAD" : "ATOMIC_ADD", "lane 3", "reads element 3 of %2",
            "which its group has not written");
  }
}

static void other_groups(void **state) {
  ir_kernel k;
  float y[2 * LANES] = {0};
  char error[1000];
  (void)state;
  ir_begin(&k, "k", LANES, 1, 1);
  const ir_val out = ir_buffer(&k, IR_F32, true), local = ir_local(&k, IR_F32, LANES),
               lane = ir_lane(&k), group = ir_group(&k), zero = ir_int(&k, IR_I32, 0);
  const ir_val at = ir_add(&k, ir_mul(&k, group, ir_int(&k, IR_I32, LANES)), lane);
  ir_store(&k, local, lane, ir_2(&k, IR_EQ, group, zero), ir_real(&k, IR_F32, 1));
  ir_store(&k, out, at, IR_NONE, ir_load(&k, local, lane, IR_NONE));
  assert_true(ir_finish(&k));
  assert_true(ir_run(&k, (ir_arg[]){{.p = y}}, NULL, 0, 1, error, sizeof error));
  assert_false(ir_run(&k, (ir_arg[]){{.p = y}}, NULL, 0, 2, error, sizeof error));
  assert_non_null(strstr(error, "lane 0 of sub-group 0 of group 1 reads element 0 of %1"));
  ir_free(&k);
}

/* Accesses one element behind the buffers, and before them. */
static void outside(void **state) {
  (void)state;
  for (int what = 0; what < 4; what++) {
    planted *p = begin();
    ir_kernel *k = &p->k;
    const ir_val at = ir_add(k, p->lane, ir_int(k, IR_I32, what == 3 ? -1 : FLOATS - LANES + 1));
    ir_store(k, p->out, p->lane, IR_NONE, p->one);
    if (what == 0) ir_store(k, p->out, at, IR_NONE, p->one);
    if (what == 1) ir_store(k, p->out, p->lane, IR_NONE, ir_load(k, p->in, at, IR_NONE));
    if (what == 2) ir_atomic_add(k, p->out, at, IR_NONE, p->one);
    if (what == 3) ir_store(k, p->out, at, IR_NONE, p->one);
    FAULT(p,
          what == 3 ? "index -1 of lane 0 leaves the array" : "index 16 of lane 3 leaves the array",
          what == 1   ? "LOAD"
          : what == 2 ? "ATOMIC_ADD"
                      : "STORE");
  }
}

/* What a kernel has stored, it may read; f16 has two bytes. */
static void written_by_the_kernel(void **state) {
  ir_kernel k;
  uint16_t y[FLOATS];
  unsigned char written[2 * FLOATS] = {0};
  char error[1000];
  (void)state;
  ir_begin(&k, "k", LANES, 1, 1);
  const ir_val out = ir_buffer(&k, IR_F16, true), lane = ir_lane(&k);
  ir_store(&k, out, lane, IR_NONE, ir_real(&k, IR_F32, 2));
  ir_store(&k, out, lane, IR_NONE, ir_load(&k, out, lane, IR_NONE));
  assert_true(ir_finish(&k));
  if (!ir_run(&k, (ir_arg[]){{.p = y}}, &(ir_memory){sizeof y, written}, 0, 1, error, sizeof error))
    fail_msg("%s", error);
  for (int i = 0; i < 2 * FLOATS; i++) assert_int_equal(written[i], i < 2 * LANES);
  ir_free(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loads),        cmocka_unit_test(wide_loads),
      cmocka_unit_test(atomics),      cmocka_unit_test(copies),
      cmocka_unit_test(local_memory), cmocka_unit_test(other_groups),
      cmocka_unit_test(outside),      cmocka_unit_test(written_by_the_kernel)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
