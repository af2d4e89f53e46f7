/* tests/backends/cpu/test_cpu.c - kernels printed as C and compiled by the system's compiler give
   the interpreter's numbers; the backend's failures. */
#include "tests/backends/cpu/cpu_device.h"
#include "tests/build_kernel.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/codegen/vector/vector.h"

enum { MAX_BUFFERS = 12 };

/* ---- one kernel twice ---- */

/* The arguments of a run, in the order of the kernel's parameters. */
typedef struct {
  clb_arg arg[24];
  ir_arg plain[24];
  clb_memory memory[MAX_BUFFERS];
  size_t bytes[MAX_BUFFERS];
  void *ours[MAX_BUFFERS], *theirs[MAX_BUFFERS];
  ir_type element[MAX_BUFFERS];
  int n, n_buffers;
} run;

enum { PAGE = 1 << 16 };
static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

/* Memory whose end lies against a page that faults on access. */
static void *guarded(size_t bytes) {
  char *p =
      mmap(NULL, pages(bytes) + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(p != MAP_FAILED && !mprotect(p + pages(bytes), PAGE, PROT_NONE));
  return p + pages(bytes) - bytes;
}

static void free_guarded(void *p, size_t bytes) {
  munmap((char *)p + bytes - pages(bytes), pages(bytes) + PAGE);
}

static void give_buffer(run *r, ir_type element, const void *from, size_t elements) {
  int b = r->n_buffers++;
  r->bytes[b] = elements * (size_t)ir_type_bytes(element);
  r->element[b] = element;
  r->ours[b] = guarded(r->bytes[b]);
  r->theirs[b] = malloc(r->bytes[b]);
  assert_non_null(r->theirs[b]);
  if (from) memcpy(r->ours[b], from, r->bytes[b]);
  else memset(r->ours[b], 0xcd, r->bytes[b]);
  memcpy(r->theirs[b], r->ours[b], r->bytes[b]);
  r->memory[b] = (clb_memory){r->ours[b], CLB_POINTER, r->bytes[b], NULL};
  r->arg[r->n] = (clb_arg){.type = IR_VOID, .memory = &r->memory[b]};
  r->plain[r->n++].p = r->theirs[b];
}

static void give_i64(run *r, int64_t x) {
  r->arg[r->n] = (clb_arg){.type = IR_I64, .i64 = x};
  r->plain[r->n++].i64 = x;
}

static void give_f64(run *r, double x) {
  r->arg[r->n] = (clb_arg){.type = IR_F64, .f64 = x};
  r->plain[r->n++].f64 = x;
}

static void give_f32(run *r, float x) {
  r->arg[r->n] = (clb_arg){.type = IR_F32, .f32 = x};
  r->plain[r->n++].f32 = x;
}

static bool same_element(ir_type t, const char *a, const char *b) {
  float f[2];
  double d[2];
  uint16_t h[2];
  if (!memcmp(a, b, (size_t)ir_type_bytes(t))) return true;
  memcpy(f, a, t == IR_F32 ? 4 : 0), memcpy(f + 1, b, t == IR_F32 ? 4 : 0);
  memcpy(d, a, t == IR_F64 ? 8 : 0), memcpy(d + 1, b, t == IR_F64 ? 8 : 0);
  memcpy(h, a, 2), memcpy(h + 1, b, 2);
  if (t == IR_F32) return isnan(f[0]) && isnan(f[1]);
  if (t == IR_F64) return isnan(d[0]) && isnan(d[1]);
  uint16_t infinity = t == IR_F16 ? 0x7c00 : 0x7f80;
  return (t == IR_F16 || t == IR_BF16) && (h[0] & 0x7fff) > infinity && (h[1] & 0x7fff) > infinity;
}

static void end_run(run *r) {
  for (int b = 0; b < r->n_buffers; b++) free_guarded(r->ours[b], r->bytes[b]), free(r->theirs[b]);
  *r = (run){0};
}

static clb_module *built(ir_kernel *k) {
  clb_text binary = {0};
  clb_module *m = NULL;
  char mistake[256] = "";
  if (k->error[0]) fail_msg("%s", k->error);
  if (!ir_verify(k, mistake, sizeof mistake)) fail_msg("%s", mistake);
  if (build_kernel(device, k, &binary) || clb_backend_cpu.load(device, k, binary.s, binary.n, &m))
    fail_msg("%s", sink.text.s);
  clb_text_free(&binary);
  return m;
}

/* Launches and interprets; every buffer must be the same afterwards.  Ends the run. */
static void compare(ir_kernel *k, clb_module *m, run *r, int64_t groups) {
  char mistake[256] = "";
  assert_int_equal(clb_backend_cpu.launch(device, m, groups, r->arg, r->n), CLB_OK);
  if (!ir_run(k, r->plain, NULL, 0, groups, mistake, sizeof mistake)) fail_msg("%s", mistake);
  for (int b = 0; b < r->n_buffers; b++) {
    size_t size = (size_t)ir_type_bytes(r->element[b]);
    for (size_t i = 0; i < r->bytes[b]; i += size)
      if (!same_element(r->element[b], (char *)r->ours[b] + i, (char *)r->theirs[b] + i))
        fail_msg("%s: element %zu of buffer %d", k->name, i / size, b);
  }
  end_run(r);
}

static void once(ir_kernel *k, run *r, int64_t groups) {
  assert_true(ir_finish(k) || k->error[0]);
  clb_module *m = built(k);
  compare(k, m, r, groups);
  clb_backend_cpu.unload(device, m);
  ir_free(k);
}

static int f32_lanes(void) { return device->limits.lanes[CLB_F32]; }

/* Index of the row of this lane, i64. */
static ir_val row_of(ir_kernel *k) {
  ir_val first = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, k->rows));
  return ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k)));
}

/* ---- numbers ---- */

static double number(uint64_t *seed, int i) {
  static const double special[] = {0,         -0.0,  1,      -1,          INFINITY,
                                   -INFINITY, NAN,   1e-310, 0x1p-149,    -0x1p-140,
                                   3.4e38,    1e300, 0.5,    1 + 0x1p-23, 1 + 0x1p-24};
  int n = sizeof special / sizeof *special;
  return i % 3 == 0   ? special[i / 3 % n]
         : i % 3 == 1 ? special[i / 3 / n % n]
                      : ldexp(test_random(seed), (int)(30 * test_random(seed)));
}

static void *numbers(ir_type t, int n, uint64_t seed) {
  char *all = malloc((size_t)n * 8);
  assert_non_null(all);
  for (int i = 0; i < n; i++) {
    double x = number(&seed, i + (int)(seed & 63));
    float f = (float)x;
    int64_t whole =
        (int64_t)(ldexp(test_random(&seed), 62)) * (i & 1 ? 1 : 2) + (i & 3 ? 0 : i - n / 2);
    int32_t half = i & 4 ? (int32_t)whole : i % 7 - 3;
    if (t == IR_F64) memcpy(all + 8 * i, &x, 8);
    if (t == IR_F32) memcpy(all + 4 * i, &f, 4);
    if (t == IR_I64) memcpy(all + 8 * i, &whole, 8);
    if (t == IR_I32) memcpy(all + 4 * i, &half, 4);
  }
  return all;
}

/* Stores v into array column by column: out[column * 1000 + row]. */
typedef struct {
  ir_kernel k;
  ir_val out, row, mask;
  ir_type type;
  int columns;
} table;

static void put(table *t, ir_val v) {
  ir_kernel *k = &t->k;
  ir_type type = (ir_type)k->ins[v].type;
  if (type == IR_BOOL)
    v = ir_select(k, v, ir_int(k, IR_I32, 1), ir_int(k, IR_I32, 0)), type = IR_I32;
  if (type != t->type && !(ir_is_float(type) && ir_is_int(t->type)) &&
      !(t->type == IR_I32 && type == IR_I64))
    v = ir_cast(k, t->type, v), type = t->type;
  assert_int_equal(type, t->type);
  ir_store(k, t->out, ir_add(k, t->row, ir_int(k, IR_I64, 1000 * t->columns++)), t->mask, v);
}

static void say_arithmetic(table *t, ir_val a, ir_val b, ir_val c) {
  static const ir_op two[] = {IR_ADD, IR_SUB, IR_MUL, IR_MIN, IR_MAX, IR_LT, IR_LE, IR_EQ},
                     one[] = {IR_NEG, IR_ABS, IR_SQRT};
  ir_kernel *k = &t->k;
  for (size_t i = 0; i < sizeof two / sizeof *two; i++) put(t, ir_2(k, two[i], a, b));
  put(t, ir_add(k, ir_mul(k, b, c),
                a)); /* must not be contracted, although the product has no other use */
  put(t, ir_select(k, ir_2(k, IR_LT, a, c), b, c));
  put(t, ir_select(k, ir_1(k, IR_NOT, ir_2(k, IR_OR, ir_2(k, IR_LT, a, c), ir_2(k, IR_EQ, b, c))),
                   a, b));
  if (ir_is_float(t->type)) {
    put(t, ir_2(k, IR_DIV, a, b));
    put(t, ir_fma(k, a, b, c));
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) put(t, ir_1(k, one[i], a));
    put(t, ir_cast(k, t->type, ir_cast(k, t->type == IR_F32 ? IR_F64 : IR_F32, a)));
  } else {
    ir_val low = ir_int(k, t->type, 1), high = ir_int(k, t->type, 1 << 20);
    ir_val x = ir_2(k, IR_MAX, a, ir_int(k, t->type, 0)),
           y = ir_2(k, IR_MAX, low, ir_2(k, IR_MIN, b, high));
    put(t, ir_2(k, IR_DIV, x, y));
    put(t, ir_2(k, IR_MOD, x, y));
    put(t, ir_2(k, IR_XOR, a, b));
    if (t->type == IR_I32) put(t, ir_2(k, IR_MUL_HIGH, a, b));
    put(t, ir_cast(k, t->type, ir_cast(k, t->type == IR_I32 ? IR_I64 : IR_I32, a)));
  }
}

static void arithmetic_of(ir_type type, int lanes) {
  table t = {.type = type};
  ir_kernel *k = &t.k;
  run r = {0};
  int n = 903;
  ir_begin(k, "arithmetic", lanes, 1, lanes);
  ir_val in[3], value[3], still[3], rows = ir_scalar(k, IR_I64);
  for (int i = 0; i < 3; i++) in[i] = ir_buffer(k, type, false);
  t.out = ir_buffer(k, type, true);
  t.row = row_of(k);
  t.mask = ir_2(k, IR_LT, t.row, rows);
  for (int i = 0; i < 3; i++) value[i] = ir_load(k, in[i], t.row, t.mask);
  for (int i = 0; i < 3; i++)
    still[i] = ir_load(k, in[i], ir_add(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, i)),
                       IR_NONE);
  say_arithmetic(&t, value[0], value[1], value[2]);
  say_arithmetic(&t, still[0], still[1], still[2]);
  say_arithmetic(&t, still[0], value[1], value[2]);
  say_arithmetic(&t, value[0], value[1], still[2]);
  give_i64(&r, n);
  for (uint64_t i = 0; i < 3; i++) {
    void *x = numbers(type, 1000, 17 * i + 3);
    give_buffer(&r, type, x, 1000);
    free(x);
  }
  give_buffer(&r, type, NULL, (size_t)t.columns * 1000);
  once(k, &r, (n - 1) / lanes + 1);
}

static void arithmetic(void **state) {
  static const ir_type types[] = {IR_I32, IR_I64, IR_F32, IR_F64};
  (void)state;
  need_compiler();
  for (int t = 0; t < 4; t++)
    arithmetic_of(types[t],
                  types[t] == IR_F64 || types[t] == IR_I64 ? f32_lanes() / 2 : f32_lanes());
  arithmetic_of(IR_F32, 1);
  arithmetic_of(IR_F32, 8);
  arithmetic_of(IR_F64, 2);
  arithmetic_of(IR_F64, 32);
}

/* Constants, casts to float and the scalar parameters. */
static void constants(void **state) {
  static const double all[] = {0,         -0.0,   1.5,      -1e-3,           INFINITY,
                               -INFINITY, NAN,    0x1p-149, 0x1.fffffep+127, -0x1p-126,
                               1e300,     5e-324, 1 / 3.0};
  (void)state;
  need_compiler();
  for (int type = IR_F32; type <= IR_F64; type++) {
    table t = {.type = (ir_type)type};
    ir_kernel *k = &t.k;
    run r = {0};
    ir_begin(k, "constants", 4, 1, 4);
    t.out = ir_buffer(k, t.type, true);
    t.row = row_of(k);
    t.mask = IR_NONE;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) put(&t, ir_real(k, t.type, all[i]));
    put(&t, ir_cast(k, t.type, ir_int(k, IR_I64, INT64_MAX - 511)));
    put(&t, ir_cast(k, t.type, ir_int(k, IR_I32, INT32_MIN)));
    put(&t, ir_cast(k, t.type, ir_add(k, t.row, ir_int(k, IR_I64, (1LL << 53) + 1))));
    put(&t, ir_cast(k, t.type, ir_scalar(k, IR_F64)));
    put(&t, ir_cast(k, t.type, ir_scalar(k, IR_F32)));
    give_buffer(&r, t.type, NULL, (size_t)t.columns * 1000);
    give_f64(&r, 1 / 3.0);
    give_f32(&r, -0.0f);
    once(k, &r, 3);
  }
}

/* exp, sin, cos of the device, accurate to 4 units in the last place. */
static void functions(void **state) {
  static const ir_op ops[] = {IR_EXP, IR_SIN, IR_COS};
  ir_kernel k;
  run r = {0};
  double x[32];
  char mistake[256];
  (void)state;
  need_compiler();
  ir_begin(&k, "functions", 8, 1, 8);
  ir_val in = ir_buffer(&k, IR_F64, false), out = ir_buffer(&k, IR_F64, true), row = row_of(&k),
         v = ir_load(&k, in, row, IR_NONE);
  for (int i = 0; i < 3; i++)
    ir_store(&k, out, ir_add(&k, row, ir_int(&k, IR_I64, 32 * i)), IR_NONE, ir_1(&k, ops[i], v));
  assert_true(ir_finish(&k));
  for (int i = 0; i < 32; i++) x[i] = i / 3.0 - 5;
  give_buffer(&r, IR_F64, x, 32);
  give_buffer(&r, IR_F64, NULL, 96);
  clb_module *m = built(&k);
  assert_int_equal(clb_backend_cpu.launch(device, m, 4, r.arg, r.n), CLB_OK);
  assert_true(ir_run(&k, r.plain, NULL, 0, 4, mistake, sizeof mistake));
  for (int i = 0; i < 96; i++) {
    double a = ((double *)r.ours[1])[i], b = ((double *)r.theirs[1])[i];
    assert_true(fabs(a - b) <= 0x1p-50 * fabs(b));
  }
  clb_backend_cpu.unload(device, m);
  end_run(&r);
  ir_free(&k);
}

/* ---- memory ---- */

/* Pieces of each kind of width, each reversed within itself; rows that are 3 elements longer than
   all pieces, or not. */
static const int some_widths[] = {1, 2, 3, 4, 5, 7, 8, 11, 16};

static void widths_of(ir_type element, int lanes, const int64_t *sizes, int n_sizes) {
  ir_kernel k;
  int columns = 0;
  ir_begin(&k, "widths", lanes, 1, lanes);
  ir_val n = ir_scalar(&k, IR_I64), in = ir_buffer(&k, element, false),
         in_stride = ir_scalar(&k, IR_I64), out = ir_buffer(&k, element, true),
         out_stride = ir_scalar(&k, IR_I64);
  ir_val row = row_of(&k), mask = ir_2(&k, IR_LT, row, n);
  for (size_t piece = 0; piece < sizeof some_widths / sizeof *some_widths; piece++) {
    int w = some_widths[piece];
    ir_val v[16], back[16], column = ir_int(&k, IR_I64, columns);
    ir_load_wide(&k, in, ir_add(&k, ir_mul(&k, row, in_stride), column), mask, w, v);
    for (int i = 0; i < w; i++) back[i] = v[w - 1 - i];
    ir_store_wide(&k, out, ir_add(&k, ir_mul(&k, row, out_stride), column), mask, w, back);
    columns += w;
  }
  assert_true(ir_finish(&k));
  clb_module *m = built(&k);
  for (int s = 0; s < n_sizes; s++) {
    size_t rows = (size_t)sizes[s] + 1;
    run r = {0};
    uint16_t *x = malloc(rows * (size_t)(columns + 3) * 8);
    assert_non_null(x);
    uint64_t seed = 5;
    for (size_t i = 0; i < rows * (size_t)(columns + 3) * 4; i++)
      x[i] = (uint16_t)((uint64_t)(test_random(&seed) * 0x1p40) & 0xbfff); /* no infinity, no NaN */
    give_i64(&r, sizes[s]);
    give_buffer(&r, element, x, rows * (size_t)(columns + 3));
    give_i64(&r, columns + 3);
    give_buffer(&r, element, NULL, rows * (size_t)columns);
    give_i64(&r, columns);
    compare(&k, m, &r, sizes[s] / lanes + 1);
    free(x);
  }
  clb_backend_cpu.unload(device, m);
  ir_free(&k);
}

static void widths(void **state) {
  static const int64_t sizes[] = {0, 1, 15, 16, 17, 1003};
  (void)state;
  need_compiler();
  for (int e = IR_I32; e <= IR_BF16; e++)
    widths_of((ir_type)e, ir_type_bytes((ir_type)e) == 8 ? f32_lanes() / 2 : f32_lanes(), sizes, 6);
  for (int lanes = 1; lanes <= 8; lanes *= 2) widths_of(IR_F32, lanes, sizes + 4, 1);
  widths_of(IR_F64, 2, sizes + 4, 1);
  widths_of(IR_F16, 8, sizes + 4, 1);
}

/* Rows of 1 and 3 elements, back to back and not, and more rows than one thread takes at a time. */
static void narrow_rows(void **state) {
  static const int64_t sizes[] = {1, 16, 17, 100003};
  (void)state;
  need_compiler();
  for (int e = IR_F32; e <= IR_F16; e++) {
    ir_kernel k;
    int lanes = e == IR_F64 ? f32_lanes() / 2 : f32_lanes();
    ir_begin(&k, "narrow", lanes, 1, lanes);
    ir_val n = ir_scalar(&k, IR_I64), stride[2], in[2], out[2], v[3], row = row_of(&k),
           mask = ir_2(&k, IR_LT, row, n);
    for (int i = 0; i < 2; i++) {
      in[i] = ir_buffer(&k, (ir_type)e, false);
      out[i] = ir_buffer(&k, (ir_type)e, true);
      stride[i] = ir_scalar(&k, IR_I64);
      ir_load_wide(&k, in[i], ir_mul(&k, row, stride[i]), mask, 1 + 2 * i, v);
      ir_store_wide(&k, out[i], ir_mul(&k, row, stride[i]), mask, 1 + 2 * i, v);
    }
    assert_true(ir_finish(&k));
    clb_module *m = built(&k);
    for (int s = 0; s < 4; s++) {
      for (int gap = 0; gap < 2; gap++) {
        run r = {0};
        give_i64(&r, sizes[s]);
        for (int i = 0; i < 2; i++) {
          size_t elements = (size_t)(sizes[s] * (1 + 2 * i + gap));
          uint16_t *x = malloc(elements * 8);
          assert_non_null(x);
          for (size_t j = 0; j < elements * 4; j++) x[j] = (uint16_t)(j * 40503 & 0xbfff);
          give_buffer(&r, (ir_type)e, x, elements);
          give_buffer(&r, (ir_type)e, NULL, elements);
          give_i64(&r, 1 + 2 * i + gap);
          free(x);
        }
        compare(&k, m, &r, (sizes[s] - 1) / lanes + 1);
      }
    }
    clb_backend_cpu.unload(device, m);
    ir_free(&k);
  }
}

/* An output so large that it is made block by block and copied: 16 columns, 64 MiB and more; rows
   at a multiple of 64 bytes or not. */
static void large_output(void **state) {
  enum { ROWS = (1 << 20) + 35, COLUMNS = 16 };
  ir_kernel k;
  (void)state;
  need_compiler();
  int lanes = f32_lanes();
  ir_begin(&k, "large", lanes, 1, lanes);
  ir_val n = ir_scalar(&k, IR_I64), offset = ir_scalar(&k, IR_I64),
         in = ir_buffer(&k, IR_F32, false), out = ir_buffer(&k, IR_F32, true),
         stride = ir_scalar(&k, IR_I64);
  ir_val row = row_of(&k), mask = ir_2(&k, IR_LT, row, n), v[COLUMNS],
         to = ir_add(&k, ir_mul(&k, row, stride), offset);
  v[0] = ir_load(&k, in, row, mask);
  for (int c = 1; c < COLUMNS; c++) v[c] = ir_add(&k, v[c - 1], ir_real(&k, IR_F32, c));
  ir_store_wide(&k, out, ir_add(&k, to, ir_int(&k, IR_I64, 8)), mask, 8, v + 8);
  ir_store_wide(&k, out, to, mask, 5, v);
  ir_store_wide(&k, out, ir_add(&k, to, ir_int(&k, IR_I64, 5)), mask, 3, v + 5);
  assert_true(ir_finish(&k));
  clb_module *m = built(&k);
  float *x = malloc(ROWS * sizeof *x);
  assert_non_null(x);
  for (int i = 0; i < ROWS; i++) x[i] = (float)(i % 65521);
  for (int first = 0; first < 2; first++) {
    run r = {0};
    give_i64(&r, ROWS);
    give_i64(&r, first);
    give_buffer(&r, IR_F32, x, ROWS);
    give_buffer(&r, IR_F32, NULL, (size_t)ROWS * COLUMNS + 2 * (size_t)first);
    give_i64(&r, COLUMNS);
    compare(&k, m, &r, (ROWS - 1) / lanes + 1);
  }
  free(x);
  clb_backend_cpu.unload(device, m);
  ir_free(&k);
}

/* Every f16 and bf16, and numbers at and around the middle of each two. */
static void short_floats(void **state) {
  (void)state;
  need_compiler();
  for (int e = IR_F16; e <= IR_BF16; e++) {
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
      ir_kernel k;
      run r = {0};
      uint16_t all[65536];
      ir_begin(&k, "shorts", lanes, 1, lanes);
      ir_val in = ir_buffer(&k, (ir_type)e, false), wide = ir_buffer(&k, IR_F32, true),
             out = ir_buffer(&k, (ir_type)e, true), row = row_of(&k);
      ir_val v = ir_load(&k, in, row, IR_NONE),
             scale[] = {ir_real(&k, IR_F32, 1), ir_real(&k, IR_F32, 1 + 0x1p-11),
                        ir_real(&k, IR_F32, 1 + 0x1p-8), ir_real(&k, IR_F32, 0x1p-7 + 0x1p-20)};
      ir_store(&k, wide, row, IR_NONE, v);
      for (int i = 0; i < 4; i++)
        ir_store(&k, out, ir_add(&k, row, ir_int(&k, IR_I64, 65536 * i)), IR_NONE,
                 ir_mul(&k, v, scale[i]));
      for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
      give_buffer(&r, (ir_type)e, all, 65536);
      give_buffer(&r, IR_F32, NULL, 65536);
      give_buffer(&r, (ir_type)e, NULL, 4 * 65536);
      once(&k, &r, 65536 / lanes);
    }
  }
}

/* One value of each mask and index shape; out[column * 1000 + place]. */
static void masks(void **state) {
  table t = {.type = IR_F32};
  ir_kernel *k = &t.k;
  run r = {0};
  int lanes, n = 501;
  (void)state;
  need_compiler();
  lanes = f32_lanes();
  ir_begin(k, "masks", lanes, 1, lanes);
  ir_val rows = ir_scalar(k, IR_I64), in = ir_buffer(k, IR_F32, false);
  t.out = ir_buffer(k, IR_F32, true);
  t.row = row_of(k);
  ir_val lane = ir_lane(k), group = ir_group(k), two = ir_int(k, IR_I32, 2),
         row = ir_cast(k, IR_I32, t.row), prefix = ir_2(k, IR_LT, t.row, rows);
  ir_val short_prefix = ir_2(k, IR_LT, lane, group),
         odd = ir_2(k, IR_EQ, ir_2(k, IR_MOD, row, two), ir_int(k, IR_I32, 1));
  ir_val even_group = ir_2(k, IR_EQ, ir_2(k, IR_MOD, group, two), ir_int(k, IR_I32, 0)),
         suffix = ir_2(k, IR_LT, ir_int(k, IR_I32, 3), lane);
  ir_val mask[] = {prefix,
                   short_prefix,
                   odd,
                   even_group,
                   suffix,
                   ir_2(k, IR_AND, prefix, short_prefix),
                   ir_2(k, IR_AND, prefix, even_group),
                   ir_2(k, IR_AND, odd, prefix),
                   ir_1(k, IR_NOT, prefix),
                   ir_2(k, IR_OR, short_prefix, odd),
                   ir_2(k, IR_OR, short_prefix, prefix),
                   ir_2(k, IR_LE, t.row, rows),
                   IR_NONE};
  ir_val far = ir_2(k, IR_MOD, ir_mul(k, row, ir_int(k, IR_I32, 37)), ir_int(k, IR_I32, 251)),
         back = ir_sub(k, ir_int(k, IR_I64, 995), t.row);
  ir_val index[] = {t.row, row, far, ir_cast(k, IR_I64, far), back, ir_mul(k, lane, two), group};
  for (size_t m = 0; m < sizeof mask / sizeof *mask; m++) {
    for (size_t i = 0; i < sizeof index / sizeof *index; i++) {
      ir_val v[3];
      t.mask = IR_NONE;
      ir_load_wide(k, in, index[i], mask[m], m % 2 ? 3 : 1, v);
      put(&t, m % 2 ? ir_fma(k, v[0], v[1], v[2]) : v[0]);
    }
    t.mask = mask[m];
    put(&t, ir_cast(k, IR_F32, row));
    put(&t, ir_select(k, mask[m] == IR_NONE ? odd : mask[m], ir_cast(k, IR_F32, lane),
                      ir_real(k, IR_F32, -1)));
    ir_store(k, t.out, ir_add(k, back, ir_int(k, IR_I64, 1000 * t.columns++)), mask[m],
             ir_cast(k, IR_F32, row));
    ir_val pair[2] = {ir_cast(k, IR_F32, row), ir_real(k, IR_F32, 7)},
           two_far = ir_mul(
               k, ir_2(k, IR_MOD, ir_mul(k, row, ir_int(k, IR_I32, 37)), ir_int(k, IR_I32, 521)),
               two);
    ir_store_wide(k, t.out, ir_add(k, two_far, ir_int(k, IR_I32, 1000 * t.columns)), mask[m], 2,
                  pair); /* no two of 512 rows overlap */
    t.columns += 2;
  }
  ir_store(k, t.out, ir_add(k, group, ir_int(k, IR_I32, 1000 * t.columns++)), even_group,
           ir_cast(k, IR_F32, group)); /* one number for all lanes */
  ir_val last = ir_2(k, IR_EQ, lane, ir_int(k, IR_I32, lanes - 1));
  ir_store(k, t.out, ir_add(k, group, ir_int(k, IR_I32, 1000 * t.columns++)), last,
           ir_cast(k, IR_F32, lane)); /* the last lane's */
  void *x = numbers(IR_F32, 3000, 9);
  give_i64(&r, n);
  give_buffer(&r, IR_F32, x, 3000);
  give_buffer(&r, IR_F32, NULL, (size_t)(t.columns + 1) * 1000);
  free(x);
  once(k, &r, 32 * 16 / lanes);
}

/* ---- lanes, local arrays, control ---- */

static void between_lanes_of(ir_type type, int lanes) {
  table t = {.type = type, .mask = IR_NONE};
  ir_kernel *k = &t.k;
  run r = {0};
  ir_begin(k, "between", lanes, 1, lanes);
  ir_val in = ir_buffer(k, type, false);
  t.out = ir_buffer(k, type, true);
  t.row = row_of(k);
  ir_val lane = ir_lane(k), v = ir_load(k, in, t.row, IR_NONE), last = ir_int(k, IR_I32, lanes - 1);
  for (int d = 0; d < lanes; d++) put(&t, ir_shuffle_xor(k, v, d));
  put(&t, ir_shuffle(k, v, ir_sub(k, last, lane)));
  put(&t,
      ir_shuffle(k, v,
                 ir_2(k, IR_MOD, ir_mul(k, lane, ir_int(k, IR_I32, 5)), ir_int(k, IR_I32, lanes))));
  put(&t, ir_shuffle(k, v, last));
  put(&t, ir_cast(k, type,
                  ir_shuffle(k, lane, ir_2(k, IR_MOD, ir_group(k), ir_int(k, IR_I32, lanes)))));
  if (ir_is_float(type))
    put(&t, ir_reduce_add(k, v)), put(&t, ir_reduce_add(k, ir_real(k, type, 0.1)));
  ir_val local = ir_local(k, type, 3 * lanes);
  ir_copy(k, local, ir_mul(k, lane, ir_int(k, IR_I32, 2)), in, t.row, IR_NONE, 2);
  ir_copy_commit(k);
  ir_copy_wait(k, 0);
  ir_store(k, local, ir_add(k, lane, ir_int(k, IR_I32, 2 * lanes)), IR_NONE, v);
  ir_barrier(k, true);
  put(&t, ir_load(k, local, ir_add(k, lane, ir_int(k, IR_I32, lanes)), IR_NONE));
  put(&t, ir_load(k, local, ir_sub(k, ir_int(k, IR_I32, 3 * lanes - 1), lane), IR_NONE));
  put(&t, ir_load(k, local, ir_2(k, IR_MOD, ir_group(k), ir_int(k, IR_I32, 2 * lanes)), IR_NONE));
  void *x = numbers(type, 1000, 4);
  give_buffer(&r, type, x, 1000);
  give_buffer(&r, type, NULL, (size_t)t.columns * 1000);
  free(x);
  once(k, &r, 300 / lanes);
}

static void between_lanes(void **state) {
  (void)state;
  need_compiler();
  for (int lanes = 1; lanes <= 32; lanes *= 4) between_lanes_of(IR_F32, lanes);
  between_lanes_of(IR_F64, f32_lanes() / 2);
  between_lanes_of(IR_I32, f32_lanes());
  between_lanes_of(IR_I64, 8);
}

static void control(void **state) {
  table t = {.type = IR_F64, .mask = IR_NONE};
  ir_kernel *k = &t.k;
  run r = {0};
  (void)state;
  need_compiler();
  ir_begin(k, "control", 8, 1, 8);
  ir_val in = ir_buffer(k, IR_F64, false), start = ir_buffer(k, IR_I32, false),
         sums = ir_buffer(k, IR_F64, true);
  t.out = ir_buffer(k, IR_F64, true);
  t.row = row_of(k);
  ir_val group = ir_group(k), lane = ir_lane(k), one = ir_int(k, IR_I32, 1),
         v = ir_load(k, in, t.row, IR_NONE);
  ir_val sum = ir_var(k, v, false), count = ir_var(k, ir_int(k, IR_I32, 0), true),
         flag = ir_var(k, ir_2(k, IR_LT, lane, ir_int(k, IR_I32, 3)), false);
  ir_val i = ir_loop(k, ir_load(k, start, group, IR_NONE),
                     ir_load(k, start, ir_add(k, group, one), IR_NONE), ir_int(k, IR_I32, 2));
  ir_set(k, sum,
         ir_fma(k, ir_get(k, sum), ir_real(k, IR_F64, 0.5),
                ir_load(k, in, ir_add(k, i, lane), IR_NONE)));
  ir_if(k, ir_2(k, IR_EQ, ir_2(k, IR_MOD, i, ir_int(k, IR_I32, 3)), one));
  ir_set(k, count, ir_add(k, ir_get(k, count), i));
  ir_set(k, flag, ir_1(k, IR_NOT, ir_get(k, flag)));
  ir_else(k);
  ir_set(k, sum, ir_cast(k, IR_F64, ir_get(k, count)));
  ir_end(k);
  ir_end(k);
  put(&t, ir_get(k, sum));
  put(&t, ir_cast(k, IR_F64, ir_get(k, count)));
  put(&t, ir_select(k, ir_get(k, flag), ir_get(k, sum), v));
  ir_atomic_add(k, sums, ir_2(k, IR_MOD, lane, ir_int(k, IR_I32, 3)),
                ir_2(k, IR_LT, lane, ir_int(k, IR_I32, 7)), v);
  ir_atomic_add(k, sums, ir_add(k, lane, ir_int(k, IR_I32, 4)), IR_NONE, ir_real(k, IR_F64, 1));
  double x[400], zero[16] = {0};
  int32_t starts[41];
  for (int j = 0; j < 400; j++) x[j] = j * 0.7 - 100;
  for (int j = 0; j <= 40; j++) starts[j] = 7 * j + j % 5;
  give_buffer(&r, IR_F64, x, 400);
  give_buffer(&r, IR_I32, starts, 41);
  give_buffer(&r, IR_F64, zero, 16);
  give_buffer(&r, IR_F64, NULL, (size_t)t.columns * 1000);
  once(k, &r, 40);
}

/* Which stores make whole rows of an array that is only written. */
static void blocks(void **state) {
  enum { GOOD, OVERLAP, GAP, TWO_ROOTS, TWO_MASKS, READ, IN_LOOP, CASES };
  (void)state;
  for (int which = 0; which < CASES; which++) {
    ir_kernel k;
    clb_vector_block block;
    ir_begin(&k, "blocks", 16, 1, 16);
    ir_val out = ir_buffer(&k, IR_F32, true), stride = ir_scalar(&k, IR_I64), row = row_of(&k),
           v[8], root = ir_mul(&k, row, stride), other = ir_mul(&k, root, stride);
    ir_val mask = ir_2(&k, IR_LT, row, stride), zero = ir_int(&k, IR_I32, 0),
           one = ir_int(&k, IR_I32, 1);
    for (int i = 0; i < 8; i++) v[i] = ir_real(&k, IR_F32, i);
    if (which == READ) v[0] = ir_load(&k, out, root, mask);
    if (which == IN_LOOP) ir_loop(&k, zero, one, one);
    ir_store_wide(&k, out,
                  ir_add(&k, root,
                         ir_int(&k, IR_I64,
                                which == OVERLAP ? 8
                                : which == GAP   ? 10
                                                 : 9)),
                  mask, 8, v);
    if (which == IN_LOOP) ir_end(&k);
    ir_store_wide(&k, out, ir_add(&k, which == TWO_ROOTS ? other : root, ir_int(&k, IR_I64, 1)),
                  which == TWO_MASKS ? IR_NONE : mask, 8, v);
    bool found = clb_vector_find_block(&k, out, &block);
    assert_int_equal(found, which == GOOD);
    if (found)
      assert_true(block.root == root && block.mask == mask && block.first == 1 &&
                  block.columns == 16);
    ir_free(&k);
  }
}

/* ---- the backend ---- */

static _Atomic int64_t groups_done;
static void slow_groups(const ir_arg *arg, int64_t first, int64_t last) {
  (void)arg;
  usleep(2000);
  groups_done += last - first;
}

/* A launch is over when its last group is, whichever thread runs it. */
static void threads(void **state) {
  clb_cpu_threads *t = clb_cpu_threads_create(4);
  (void)state;
  assert_non_null(t);
  for (int64_t groups = 1; groups < 20; groups++) {
    groups_done = 0;
    clb_cpu_threads_run(t, slow_groups, NULL, groups, groups % 3 + 1);
    assert_int_equal(groups_done, groups);
  }
  clb_cpu_threads_destroy(t);
  clb_cpu_threads_destroy(NULL);
}

/* y = 2 x + 1, row by row. */
static void simple_kernel(ir_kernel *k, int lanes) {
  ir_begin(k, "simple", lanes, 1, lanes);
  ir_val n = ir_scalar(k, IR_I64), in = ir_buffer(k, IR_F32, false),
         out = ir_buffer(k, IR_F32, true), row = row_of(k), mask = ir_2(k, IR_LT, row, n);
  ir_store(k, out, row, mask,
           ir_fma(k, ir_load(k, in, row, mask), ir_real(k, IR_F32, 2), ir_real(k, IR_F32, 1)));
  assert_true(ir_finish(k));
}

/* One context in a thread of its own, with its own kernel: the whole way, many times. Returns NULL
   on success. */
static void *own_context(void *device_rest) {
  enum { N = 300000 };
  clb_error_sink error = {0};
  clb_device *d = NULL;
  clb_module *m = NULL;
  clb_text binary = {0};
  clb_memory x = {0}, y = {0};
  ir_kernel k;
  const char *wrong = "could not";
  float *values = calloc(N, sizeof *values);
  simple_kernel(&k, 8);
  if (!values || clb_backend_cpu.open("cpu", device_rest, NULL, &error, &d) ||
      build_kernel(d, &k, &binary) || clb_backend_cpu.load(d, &k, binary.s, binary.n, &m) ||
      clb_backend_cpu.alloc(d, N * 4, &x) || clb_backend_cpu.alloc(d, N * 4, &y))
    goto end;
  for (int i = 0; i < N; i++) values[i] = (float)i;
  clb_backend_cpu.write(d, &x, 0, values, N * 4);
  clb_arg args[] = {
      {.type = IR_I64, .i64 = N}, {.type = IR_VOID, .memory = &x}, {.type = IR_VOID, .memory = &y}};
  wrong = NULL;
  for (int turn = 0; turn < 30 && !wrong; turn++) {
    memset(y.handle, 0, N * 4);
    if (clb_backend_cpu.launch(d, m, (N + 7) / 8, args, 3) || clb_backend_cpu.wait(d) ||
        clb_backend_cpu.read(d, &y, 0, values, N * 4))
      wrong = "launch";
    for (int i = 0; i < N && !wrong; i++)
      if (values[i] != 2 * (float)i + 1) wrong = "a number";
  }
end:
  if (d) {
    clb_backend_cpu.free(d, &x);
    clb_backend_cpu.free(d, &y);
    if (m) clb_backend_cpu.unload(d, m);
    clb_backend_cpu.close(d);
  }
  clb_text_free(&binary);
  clb_text_free(&error.text);
  ir_free(&k);
  free(values);
  return (void *)(uintptr_t)wrong;
}

static void two_contexts(void **state) {
  static char compiled[] = "", interpreted[] = ":interpreter";
  pthread_t thread[3];
  (void)state;
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, own_context, i < 2 ? compiled : interpreted),
                     0);
  for (int i = 0; i < 3; i++) {
    void *wrong;
    pthread_join(thread[i], &wrong);
    if (wrong) fail_msg("context %d: %s", i, (char *)wrong);
  }
}

static void damaged_binaries(void **state) {
  static const char *const rests[] = {"", ":interpreter"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    clb_error_sink error = {0};
    clb_device *d;
    clb_text binary = {0};
    clb_module *m = NULL;
    ir_kernel k;
    simple_kernel(&k, 8);
    assert_int_equal(clb_backend_cpu.open("cpu", rests[i], NULL, &error, &d), CLB_OK);
    assert_int_equal(build_kernel(d, &k, &binary), CLB_OK);
    for (size_t n = 0; n < binary.n; n += binary.n / 13 + 1) {
      assert_int_equal(clb_backend_cpu.load(d, &k, binary.s, n, &m), CLB_ERROR_DRIVER);
      assert_non_null(strstr(error.text.s, "simple"));
    }
    memset(binary.s, 'x', binary.n < 64 ? binary.n : 64);
    assert_int_equal(clb_backend_cpu.load(d, &k, binary.s, binary.n, &m), CLB_ERROR_DRIVER);
    clb_text_free(&binary);
    clb_backend_cpu.close(d);
    clb_text_free(&error.text);
    ir_free(&k);
  }
}

static void what_it_refuses(void **state) {
  clb_error_sink error = {0};
  clb_device *d = NULL;
  clb_text binary = {0};
  clb_native native = {0};
  ir_kernel k;
  (void)state;
  need_compiler();
  assert_int_equal(clb_backend_cpu.open("cpu:7", ":7", NULL, &error, &d), CLB_ERROR_DEVICE);
  assert_non_null(strstr(error.text.s, "cpu:7"));
  static const char *const bad[] = {":threads=",   ":threads=0",     ":threads=-1", ":threads=4x",
                                    ":threads=02", ":threads=99999", ":threads= 4", ":thread=4"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(clb_backend_cpu.open("cpu", bad[i], NULL, &error, &d), CLB_ERROR_DEVICE);
  assert_int_equal(clb_backend_cpu.open("cpu", ":threads=3", NULL, &error, &d), CLB_OK);
  assert_int_equal(d->limits.units, 3);
  assert_string_equal(d->info.name, "cpu:threads=3");
  clb_backend_cpu.close(d);
  assert_int_equal(clb_backend_cpu.open("cpu", "", &native, &error, &d), CLB_ERROR_ARGUMENT);
  clb_text_free(&error.text);
  ir_begin(&k, "two", 8, 2, 8);
  assert_true(ir_finish(&k));
  assert_int_equal(build_kernel(device, &k, &binary), CLB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(sink.text.s, "two"));
  clb_text_free(&binary);
  ir_free(&k);
}

/* ---- compilers that are not what they should be ---- */

static char folder[64], *path_before;

/* A PATH with only this cc in it; NULL: an empty one. */
static void set_compiler(const char *script) {
  char file[96];
  const char *path = getenv("PATH");
  path_before = path ? strdup(path) : NULL;
  snprintf(folder, sizeof folder, "/tmp/clebsch-test-XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/cc", folder);
  if (script) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(file, 0755), 0);
  }
  setenv("PATH", folder, 1);
}

static void restore_compiler(void) {
  char file[96];
  snprintf(file, sizeof file, "%s/cc", folder);
  unlink(file);
  rmdir(folder);
  if (path_before) setenv("PATH", path_before, 1);
  else unsetenv("PATH");
  free(path_before);
}

#define NAMES                                                                                      \
  "case \"$*\" in *-dM*) echo '#define __GNUC__ 12'; echo '#define __VERSION__ \"of the test\"'; " \
  "exit 0;; esac\n"
/* It also links the program that tries it. */
#define ANSWER                                                                                     \
  NAMES "for a in \"$@\"; do case $a in *.c) read -r line <$a;; *.so) to=$a;; esac; done; case "   \
        "$line in *clb_links*) echo linked >$to; exit 0;; esac\n"

static void compiler_that_fails(void **state) {
  static const char *const scripts[] = {
      ANSWER "echo 'kernel.c:1: no luck today' >&2; exit 1", ANSWER "echo 'no luck today'",
      ANSWER "echo 'no luck today'; kill -9 $$",
      ANSWER "echo 'no luck today'; while [ $# -gt 1 ]; do [ \"$1\" = -o ] && echo 'half a "
             "library' >\"$2\"; shift; done; exit 1"};
  (void)state;
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
    clb_error_sink error = {0};
    clb_device *d;
    clb_text binary = {0};
    ir_kernel k;
    simple_kernel(&k, 4);
    set_compiler(scripts[i]);
    clb_status opened = clb_backend_cpu.open("cpu", "", NULL, &error, &d);
    clb_status built_it = opened ? opened : build_kernel(d, &k, &binary);
    restore_compiler();
    assert_int_equal(opened, CLB_OK);
    assert_int_equal(built_it, CLB_ERROR_COMPILE);
    assert_non_null(strstr(error.text.s, "no luck today"));
    assert_non_null(strstr(error.text.s, "simple"));
    assert_non_null(strstr(d->info.driver, "of the test"));
    assert_int_equal(binary.n, 0);
    clb_backend_cpu.close(d);
    clb_text_free(&error.text);
    clb_text_free(&binary);
    ir_free(&k);
  }
}

static void no_compiler(void **state) {
  static const char *const scripts[] = {NULL, "exit 1", "echo 'a program of another kind'"};
  (void)state;
  for (int i = 0; i < 3; i++) {
    clb_error_sink error = {0};
    clb_device *d;
    set_compiler(scripts[i]);
    clb_status opened = clb_backend_cpu.open("cpu", "", NULL, &error, &d);
    restore_compiler();
    assert_int_equal(opened, CLB_OK);
    assert_non_null(strstr(d->info.description, "interpreter only"));
    assert_int_equal(d->dialect.language, CLB_LANGUAGE_IR);
    clb_backend_cpu.close(d);
    clb_text_free(&error.text);
  }
}

/* It compiles, but has no linker, so it counts as no compiler. */
static void compiler_without_linker(void **state) {
  clb_error_sink error = {0};
  clb_device *d;
  clb_text binary = {0};
  ir_kernel k;
  (void)state;
  simple_kernel(&k, 4);
  set_compiler(NAMES "echo \"collect2: fatal error: cannot find 'ld'\" >&2; exit 1");
  clb_status opened = clb_backend_cpu.open("cpu", "", NULL, &error, &d);
  clb_status built_it = opened ? opened : build_kernel(d, &k, &binary);
  restore_compiler();
  assert_int_equal(opened, CLB_OK);
  assert_non_null(strstr(d->info.description,
                         "interpreter only (cc: collect2: fatal error: cannot find 'ld')"));
  assert_int_equal(d->dialect.language, CLB_LANGUAGE_IR);
  assert_int_equal(built_it, CLB_OK);
  clb_backend_cpu.close(d);
  clb_text_free(&error.text);
  clb_text_free(&binary);
  ir_free(&k);
}

static void no_temporary_folder(void **state) {
  clb_text binary = {0};
  ir_kernel k;
  const char *old = getenv("TMPDIR");
  char *before = old ? strdup(old) : NULL;
  (void)state;
  need_compiler();
  simple_kernel(&k, 4);
  setenv("TMPDIR", "/nowhere/at/all", 1);
  clb_status s = build_kernel(device, &k, &binary);
  if (before) setenv("TMPDIR", before, 1);
  else unsetenv("TMPDIR");
  free(before);
  assert_int_equal(s, CLB_ERROR_DRIVER);
  assert_non_null(strstr(sink.text.s, "/nowhere/at/all"));
  ir_free(&k);
}

static void count_device(const clb_device_info *info, void *user) {
  assert_string_equal(info->backend, "cpu");
  assert_true(info->runs && info->f64 && *info->vendor && *info->description && *info->driver);
  ++*(int *)user;
}

static void listed(void **state) {
  int n = 0;
  (void)state;
  clb_backend_cpu.list(count_device, &n);
  assert_int_equal(n, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arithmetic),
                                     cmocka_unit_test(constants),
                                     cmocka_unit_test(functions),
                                     cmocka_unit_test(widths),
                                     cmocka_unit_test(narrow_rows),
                                     cmocka_unit_test(large_output),
                                     cmocka_unit_test(short_floats),
                                     cmocka_unit_test(masks),
                                     cmocka_unit_test(between_lanes),
                                     cmocka_unit_test(control),
                                     cmocka_unit_test(blocks),
                                     cmocka_unit_test(threads),
                                     cmocka_unit_test(two_contexts),
                                     cmocka_unit_test(damaged_binaries),
                                     cmocka_unit_test(what_it_refuses),
                                     cmocka_unit_test(compiler_that_fails),
                                     cmocka_unit_test(no_compiler),
                                     cmocka_unit_test(compiler_without_linker),
                                     cmocka_unit_test(no_temporary_folder),
                                     cmocka_unit_test(listed)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
