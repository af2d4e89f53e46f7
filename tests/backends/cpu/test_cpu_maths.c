/* tests/backends/cpu/test_cpu_maths.c - exp, sin and cos of vectors of any width, on the cpu
   backend: accurate to 4 units in the last place, independently of the other lanes. */
#include "tests/build_kernel.h"
#include "tests/test.h"

#include <float.h>
#include <math.h>

#include "backends/backend.h"

enum { N = 4096, FUNCTIONS = 3 };
static const ir_op functions[FUNCTIONS] = {IR_EXP, IR_SIN, IR_COS};
static const char *const names[FUNCTIONS] = {"exp", "sin", "cos"};

typedef struct {
  ir_type type;
  int lanes;
} shape;

static double get(ir_type type, const void *x, int i) {
  return type == IR_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* out[f][i] = function f of x[i] */
static void run(clb_device *d, const shape *s, const void *x, void *out) {
  ir_kernel k;
  clb_text binary = {0};
  clb_module *m = NULL;
  ir_begin(&k, "maths", s->lanes, 1, s->lanes);
  ir_val from = ir_buffer(&k, s->type, false), to = ir_buffer(&k, s->type, true);
  ir_val row =
             ir_add(&k, ir_mul(&k, ir_cast(&k, IR_I64, ir_group(&k)), ir_int(&k, IR_I64, s->lanes)),
                    ir_cast(&k, IR_I64, ir_lane(&k))),
         v = ir_load(&k, from, row, IR_NONE);
  for (int f = 0; f < FUNCTIONS; f++)
    ir_store(&k, to, ir_add(&k, row, ir_int(&k, IR_I64, (int64_t)f * N)), IR_NONE,
             ir_1(&k, functions[f], v));
  assert_true(ir_finish(&k));
  uint64_t bytes = (uint64_t)N * (uint64_t)ir_type_bytes(s->type);
  clb_memory memory[2];
  clb_status status = d->backend->alloc(d, bytes, &memory[0]);
  if (!status) status = d->backend->alloc(d, FUNCTIONS * bytes, &memory[1]);
  if (!status) status = d->backend->write(d, &memory[0], 0, x, bytes);
  if (!status) status = build_kernel(d, &k, &binary);
  if (!status) status = d->backend->load(d, &k, binary.s, binary.n, &m);
  const clb_arg args[2] = {{.type = IR_VOID, .memory = &memory[0]},
                           {.type = IR_VOID, .memory = &memory[1]}};
  if (!status) status = d->backend->launch(d, m, N / s->lanes, args, 2);
  if (!status) status = d->backend->read(d, &memory[1], 0, out, FUNCTIONS * bytes);
  if (status) fail_msg("%s", d->error->text.s);
  d->backend->unload(d, m);
  for (int i = 0; i < 2; i++) d->backend->free(d, &memory[i]);
  clb_text_free(&binary);
  ir_free(&k);
}

static long double exact(int f, double x) { return f == 0 ? expl(x) : f == 1 ? sinl(x) : cosl(x); }

/* Subnormal numbers may be flushed to zero. */
static void expect(const shape *s, int f, double x, double got) {
  const bool single = s->type == IR_F32;
  const long double want = exact(f, x), max = single ? FLT_MAX : DBL_MAX,
                    min = single ? FLT_MIN : DBL_MIN;
  if (isnan(want)         ? isnan(got)
      : fabsl(want) > max ? isinf(got) && got > 0
                          : fabsl(want) < min && fabs(got) <= 2 * min)
    return;
  const long double ulp = ldexpl(1, ilogbl(want) - (single ? 23 : 52));
  if (!(fabsl(got - want) <= 4 * ulp))
    fail_msg("%s(%.17g) of %d lanes in %s: %.17g, off by %Lg ulp", names[f], x, s->lanes,
             single ? "f32" : "f64", got, fabsl(got - want) / ulp);
}

/* Small and large, of both signs; libraries' special cases stand among ordinary numbers. */
static double number(bool single, int i, uint64_t *seed) {
  static const double special[] = {0,
                                   -0.0,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   1e-30,
                                   89,
                                   -88,
                                   -104,
                                   710,
                                   -709,
                                   -746,
                                   1e5,
                                   1e10,
                                   3e38,
                                   -1e30,
                                   3.14159265358979323846,
                                   1.57079632679489661923,
                                   355,
                                   0x1p-149};
  const double x = test_random(seed), range = single ? 87 : 700;
  double y = i % 4 == 0   ? x
             : i % 4 == 1 ? range * x
             : i % 4 == 2 ? 1e4 * x
                          : ldexp(x, (int)(30 * test_random(seed)));
  if (i % 23 == 0) y = special[i / 23 % (sizeof special / sizeof *special)];
  return single ? (double)(float)y : y;
}

static void maths(void **state) {
  const shape *s = *state;
  const bool single = s->type == IR_F32;
  static double x[2][N], out[2][FUNCTIONS * N]; /* or floats */
  clb_error_sink sink = {0};
  clb_device *d;
  uint64_t seed = 47;
  assert_int_equal(clb_backend_cpu.open("cpu", "", NULL, &sink, &d), CLB_OK);
  if (d->dialect.language != CLB_LANGUAGE_CPU) {
    clb_backend_cpu.close(d);
    skip_because("no C compiler");
  }
  for (int i = 0; i < N; i++) {
    const double y = number(single, i, &seed);
    for (int turn = 0; turn < 2; turn++) { /* the second time each has other neighbours */
      const int at = (i + turn) % N;
      if (single) ((float *)x[turn])[at] = (float)y;
      else x[turn][at] = y;
    }
  }
  for (int turn = 0; turn < 2; turn++) run(d, s, x[turn], out[turn]);
  for (int f = 0; f < FUNCTIONS; f++)
    for (int i = 0; i < N; i++) {
      const double got = get(s->type, out[0], f * N + i),
                   again = get(s->type, out[1], f * N + (i + 1) % N), from = get(s->type, x[0], i);
      expect(s, f, from, got);
      if (got != again && !(isnan(got) && isnan(again)))
        fail_msg("%s(%.17g) of %d lanes: %.17g, but %.17g among others", names[f], from, s->lanes,
                 got, again);
    }
  clb_backend_cpu.close(d);
  clb_text_free(&sink.text);
}

int main(void) {
  static shape shapes[] = {{IR_F32, 1}, {IR_F32, 4}, {IR_F32, 8}, {IR_F32, 16}, {IR_F64, 1},
                           {IR_F64, 2}, {IR_F64, 4}, {IR_F64, 8}, {IR_F64, 16}};
  static const char *const labels[] = {"f32x1", "f32x4", "f32x8", "f32x16", "f64x1",
                                       "f64x2", "f64x4", "f64x8", "f64x16"};
  enum { SHAPES = sizeof shapes / sizeof *shapes };
  struct CMUnitTest tests[SHAPES];
  for (int i = 0; i < SHAPES; i++)
    tests[i] = (struct CMUnitTest){labels[i], maths, NULL, NULL, &shapes[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
