/* tests/backends/cpu/test_cpu_stream.c - non-temporal stores give the same bytes, stay in bounds
   and are chosen where they should be; so do prefetches of rows. */
#include "tests/backends/cpu/cpu_device.h"
#include "tests/build_kernel.h"

#include "src/codegen/codegen.h"

enum {
  BLOCKS = 4,
  GROUPS = 300,
  LINE = 64,
  SLACK = 16,
  BYTES = 1 << 20
}; /* SLACK: elements before and after */

/* ---- kernels ---- */

/* Lanes whose elements fill a memory line, on any machine. */
static int lanes_of(ir_type e) { return LINE / ir_type_bytes(e); }

/* to[offset + row width + c] = 3 from[offset + row width + c] (add: 2 of it, and what is there),
   row < rows; BLOCKS lanes' rows per group. Parameters: from, to, offset, rows. */
static void twice(ir_kernel *k, ir_type e, int width, bool add) {
  int lanes = lanes_of(e);
  ir_val from, to, offset, rows, x[IR_MAX_WIDTH], old[IR_MAX_WIDTH];
  ir_begin(k, "twice", lanes, 1, BLOCKS * lanes);
  from = ir_buffer(k, e, false), to = ir_buffer(k, e, true), offset = ir_scalar(k, IR_I64),
  rows = ir_scalar(k, IR_I64);
  ir_val first = ir_add(k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, k->rows)),
                        ir_cast(k, IR_I64, ir_lane(k)));
  for (int b = 0; b < BLOCKS; b++) {
    ir_val row = ir_add(k, first, ir_int(k, IR_I64, (int64_t)b * lanes)),
           mask = ir_2(k, IR_LT, row, rows);
    ir_val at = ir_add(k, offset, ir_mul(k, row, ir_int(k, IR_I64, width)));
    ir_load_wide(k, from, at, mask, width, x);
    if (add) ir_load_wide(k, to, at, mask, width, old);
    for (int c = 0; c < width; c++) x[c] = ir_add(k, ir_add(k, x[c], x[c]), add ? old[c] : x[c]);
    ir_store_wide(k, to, at, mask, width, x);
  }
  if (!ir_finish(k)) fail_msg("%s", k->error);
}

/* Row by row as channel-wise products go: to[row columns + c] = 3 from[row stride + c], in blocks
   of lanes.  from, to, stride, columns. */
static void by_rows(ir_kernel *k) {
  int lanes = lanes_of(IR_F32);
  ir_begin(k, "by_rows", lanes, 1, 1);
  ir_val from = ir_buffer(k, IR_F32, false), to = ir_buffer(k, IR_F32, true),
         stride = ir_scalar(k, IR_I64), columns = ir_scalar(k, IR_I64);
  ir_val row = ir_cast(k, IR_I64, ir_group(k)), zero = ir_int(k, IR_I64, 0);
  ir_val block = ir_loop(k, zero, columns, ir_int(k, IR_I64, lanes)),
         column = ir_add(k, block, ir_cast(k, IR_I64, ir_lane(k)));
  ir_val mask = ir_2(k, IR_LT, column, columns),
         x = ir_load(k, from, ir_add(k, ir_mul(k, stride, row), column), mask);
  ir_store(k, to, ir_add(k, ir_mul(k, columns, row), column), mask,
           ir_mul(k, x, ir_real(k, IR_F32, 3)));
  ir_end(k);
  if (!ir_finish(k)) fail_msg("%s", k->error);
}

/* Rows of five columns, whole: made in a local array where they are large.  to. */
static void whole_rows(ir_kernel *k) {
  int lanes = lanes_of(IR_F32);
  ir_begin(k, "whole_rows", lanes, 1, lanes);
  ir_val to = ir_buffer(k, IR_F32, true);
  ir_val row = ir_add(k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, lanes)),
                      ir_cast(k, IR_I64, ir_lane(k)));
  ir_val root = ir_mul(k, row, ir_int(k, IR_I64, 5)), x = ir_cast(k, IR_F32, row);
  for (int c = 0; c < 5; c++)
    ir_store(k, to, ir_add(k, root, ir_int(k, IR_I64, c)), IR_NONE,
             ir_add(k, x, ir_real(k, IR_F32, c)));
  if (!ir_finish(k)) fail_msg("%s", k->error);
}

static clb_module *built(const ir_kernel *k) {
  clb_text binary = {0};
  clb_module *m = NULL;
  if (build_kernel(device, k, &binary) || clb_backend_cpu.load(device, k, binary.s, binary.n, &m))
    fail_msg("%s", sink.text.s);
  clb_text_free(&binary);
  return m;
}

/* ---- the same bytes ---- */

static void *aligned(size_t bytes) {
  void *p = NULL;
  assert_int_equal(posix_memalign(&p, LINE, bytes), 0);
  return p;
}

static void fill(ir_type e, char *p, uint64_t seed) {
  for (int i = 0; i < BYTES / ir_type_bytes(e); i++) {
    double x = 1 + test_random(&seed) / 2;
    float f = (float)x;
    int32_t n = (int32_t)(1000 * x);
    if (e == IR_F64) memcpy(p + 8 * i, &x, 8);
    else if (e == IR_F32) memcpy(p + 4 * i, &f, 4);
    else if (e == IR_I32) memcpy(p + 4 * i, &n, 4);
    else memcpy(p + 2 * i, (char *)&f + 2, 2); /* bf16 */
  }
}

/* One launch writes, the next reads what it wrote: to = 3 from, last = 3 to. */
static void two_launches(clb_module *m, clb_cpu_stream when, char *from, char *to, char *last,
                         int64_t offset, int64_t rows, int64_t groups) {
  clb_memory memory[] = {{from, CLB_POINTER, BYTES, NULL},
                         {to, CLB_POINTER, BYTES, NULL},
                         {last, CLB_POINTER, BYTES, NULL}};
  clb_cpu_set_stream(device, when);
  memset(to, 0x3f, BYTES);
  memset(last, 0x3f, BYTES);
  for (int i = 0; i < 2; i++) {
    clb_arg arg[] = {{.type = IR_VOID, .memory = &memory[i]},
                     {.type = IR_VOID, .memory = &memory[i + 1]},
                     {.type = IR_I64, .i64 = offset},
                     {.type = IR_I64, .i64 = rows}};
    assert_int_equal(clb_backend_cpu.launch(device, m, groups, arg, 4), CLB_OK);
  }
}

static void same_bytes(ir_type e, int width, bool add) {
  char *from = aligned(BYTES), *to[2] = {aligned(BYTES), aligned(BYTES)},
       *last[2] = {aligned(BYTES), aligned(BYTES)};
  ir_kernel k;
  fill(e, from, 7);
  twice(&k, e, width, add);
  clb_module *m = built(&k);
  int64_t max = BYTES / ir_type_bytes(e) / width - 2 * SLACK,
          full = (int64_t)GROUPS * k.rows < max ? (int64_t)GROUPS * k.rows : max / k.rows * k.rows;
  for (int64_t offset = 0; offset <= SLACK; offset += offset < 2 ? 1 : 7)
    for (int64_t left = 0; left < 3; left++) {
      int64_t rows = full - (left == 2 ? k.rows - 1 : left);
      for (int i = 0; i < 2; i++)
        two_launches(m, i ? CLB_CPU_STREAM_ALWAYS : CLB_CPU_STREAM_NEVER, from, to[i], last[i],
                     offset, rows, full / k.rows);
      if (memcmp(to[0], to[1], BYTES) || memcmp(last[0], last[1], BYTES))
        fail_msg("%s, width %d, offset %d, %d left out", ir_type_name(e), width, (int)offset,
                 (int)left);
      assert_true(memcmp(to[0] + LINE * SLACK, from + LINE * SLACK, BYTES / 4));
    }
  clb_backend_cpu.unload(device, m);
  ir_free(&k);
  for (int i = 0; i < 2; i++) free(to[i]), free(last[i]);
  free(from);
}

static void elements(void **state) {
  static const ir_type types[] = {IR_F32, IR_F64, IR_I32, IR_BF16};
  (void)state;
  need_compiler();
  for (int t = 0; t < 4; t++)
    for (int width = 1; width <= 3; width++) same_bytes(types[t], width, false);
}

static void accumulated(void **state) {
  (void)state;
  need_compiler();
  same_bytes(IR_F32, 1, true);
}

static void large_rows(void **state) {
  enum { FLOATS = 17 << 20 };
  (void)state;
  need_compiler();
  ir_kernel k;
  whole_rows(&k);
  clb_module *m = built(&k);
  int64_t groups = FLOATS / 5 / k.rows;
  float *to = aligned((size_t)FLOATS * sizeof *to);
  clb_memory memory = {to, CLB_POINTER, (uint64_t)FLOATS * sizeof *to, NULL};
  clb_arg arg = {.type = IR_VOID, .memory = &memory};
  for (int when = CLB_CPU_STREAM_NEVER; when <= CLB_CPU_STREAM_ALWAYS; when++) {
    memset(to, 0, (size_t)FLOATS * sizeof *to);
    clb_cpu_set_stream(device, (clb_cpu_stream)when);
    assert_int_equal(clb_backend_cpu.launch(device, m, groups, &arg, 1), CLB_OK);
    for (int64_t i = 0; i < groups * k.rows * 5; i++)
      if (to[i] != (float)(i / 5) + (float)(i % 5))
        fail_msg("element %lld: %g", (long long)i, (double)to[i]);
    for (int64_t i = groups * k.rows * 5; i < FLOATS; i++) assert_true(to[i] == 0);
  }
  free(to);
  clb_backend_cpu.unload(device, m);
  ir_free(&k);
}

/* ---- when ---- */

static void when(void **state) {
  (void)state;
  ir_kernel k;
  twice(&k, IR_F32, 1, false);
  if (device->dialect.language == CLB_LANGUAGE_CPU) {
    clb_module *m = built(&k);
    clb_cpu_set_stream(device, CLB_CPU_STREAM_AUTO);
    assert_false(clb_cpu_streams(device, m, 1));
    assert_false(clb_cpu_streams(
        device, m, (1 << 19) / (k.rows * 4))); /* half a MiB fits in any last-level cache */
    assert_true(clb_cpu_streams(
        device, m,
        INT64_C(1) +
            (INT64_C(64) << 20) / (k.rows * 4))); /* above the largest cache that it assumes */
    clb_cpu_set_stream(device, CLB_CPU_STREAM_NEVER);
    assert_false(clb_cpu_streams(device, m, INT64_C(1) << 40));
    clb_cpu_set_stream(device, CLB_CPU_STREAM_ALWAYS);
    assert_true(clb_cpu_streams(device, m, 1));
    clb_backend_cpu.unload(device, m);
  }
  ir_free(&k);
}

/* ---- the text ---- */

static int count(const ir_kernel *k, const char *what) {
  static const clb_dialect cpu = {.language = CLB_LANGUAGE_CPU};
  clb_text text = {0};
  char error[200] = "";
  int n = 0;
  if (!clb_print(k, &cpu, &text, error, sizeof error)) fail_msg("%s", error);
  const char *body = strstr(text.s, "\nvoid ");
  assert_non_null(body);
  for (const char *s = body; (s = strstr(s, what)); s += strlen(what)) n++;
  clb_text_free(&text);
  return n;
}

/* A line that is also read is in the caches, so its stores are ordinary ones. A kernel that streams
   ends with a fence that makes its stores visible. */
static void text(void **state) {
  (void)state;
  ir_kernel k;
  twice(&k, IR_F32, 1, false);
  assert_int_equal(count(&k, ", stream, "), BLOCKS);
  assert_int_equal(count(&k, "if (stream) FENCE();\n}"), 1);
  assert_int_equal(count(&k, "FETCH("), 0);
  ir_free(&k);
  twice(&k, IR_F32, 1, true);
  assert_int_equal(count(&k, ", stream, "), 0);
  ir_free(&k);
  whole_rows(&k);
  assert_int_equal(count(&k, ", stream, "), 0);
  assert_int_equal(count(&k, ", stream);"), 1);
  ir_free(&k);
  by_rows(&k);
  assert_int_equal(count(&k, "FETCH(n0, 64);"), 1);
  assert_int_equal(count(&k, "u64 n0 = (u64)b0 + sizeof *b0 * ((u64)v2 * (u64)(group + 1));"), 1);
  ir_free(&k);
}

/* Prefetching never changes a result, nor does it fault at the end of memory. */
static void rows_ahead(void **state) {
  enum { ROWS = 500, COLUMNS = 89 };
  (void)state;
  need_compiler();
  ir_kernel k;
  by_rows(&k);
  clb_module *m = built(&k);
  for (int64_t stride = 0; stride <= COLUMNS; stride += COLUMNS) {
    float *from = malloc(sizeof *from * ROWS * COLUMNS), *to = malloc(sizeof *to * ROWS * COLUMNS);
    assert_true(from && to);
    clb_memory a = {from, CLB_POINTER, sizeof *from * ROWS * COLUMNS, NULL},
               b = {to, CLB_POINTER, sizeof *to * ROWS * COLUMNS, NULL};
    clb_arg arg[] = {{.type = IR_VOID, .memory = &a},
                     {.type = IR_VOID, .memory = &b},
                     {.type = IR_I64, .i64 = stride},
                     {.type = IR_I64, .i64 = COLUMNS}};
    for (int i = 0; i < ROWS * COLUMNS; i++) from[i] = (float)i;
    assert_int_equal(clb_backend_cpu.launch(device, m, ROWS, arg, 4), CLB_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
      assert_true(to[i] == 3 * from[i / COLUMNS * stride + i % COLUMNS]);
    free(from);
    free(to);
  }
  clb_backend_cpu.unload(device, m);
  ir_free(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elements),   cmocka_unit_test(accumulated),
                                     cmocka_unit_test(large_rows), cmocka_unit_test(when),
                                     cmocka_unit_test(text),       cmocka_unit_test(rows_ahead)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
