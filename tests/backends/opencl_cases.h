/* tests/backends/opencl_cases.h - small kernels, and running one through a backend beside the
   interpreter. */
#ifndef CLB_TESTS_BACKENDS_OPENCL_CASES_H
#define CLB_TESTS_BACKENDS_OPENCL_CASES_H

#include <math.h>

#include "backends/backend.h"
#include "tests/build_kernel.h"
#include "tests/test.h"

enum { CASE_PARAMETERS = 8 };

typedef struct {
  ir_type element; /* of an array, else IR_VOID */
  size_t count;
  double tolerance; /* relative; 0: the same bits */
  clb_arg scalar;
  void *first; /* initial contents of the array */
} case_parameter;

typedef struct {
  ir_kernel k;
  int64_t groups;
  int n;
  case_parameter parameter[CASE_PARAMETERS];
} kernel_case;

static size_t parameter_bytes(const case_parameter *p) {
  return p->count * (size_t)ir_type_bytes(p->element);
}

/* Declares an array and fills it: floats in [-4, 4), integers in 0 ... 63, halves as small
   integers. */
static ir_val case_array(kernel_case *c, ir_type element, size_t count, bool written,
                         double tolerance) {
  case_parameter *p = &c->parameter[c->n];
  uint64_t seed = 77u + (unsigned)c->n++;
  *p = (case_parameter){.element = element, .count = count, .tolerance = tolerance};
  p->first = calloc(count, (size_t)ir_type_bytes(element));
  assert_non_null(p->first);
  for (size_t i = 0; i < count; i++) {
    double x = 4 * test_random(&seed);
    if (element == IR_F64) ((double *)p->first)[i] = x;
    if (element == IR_F32) ((float *)p->first)[i] = (float)x;
    if (element == IR_I32) ((int32_t *)p->first)[i] = (int32_t)(8 * (x + 4));
    if (element == IR_F16) ((uint16_t *)p->first)[i] = (uint16_t)(0x3c00 + 37 * (i % 64));
    if (element == IR_BF16) ((uint16_t *)p->first)[i] = (uint16_t)(0x3f80 + 3 * (i % 64));
  }
  return ir_buffer(&c->k, element, written);
}

static ir_val case_i64(kernel_case *c, int64_t value) {
  c->parameter[c->n++] =
      (case_parameter){.element = IR_VOID, .scalar = {.type = IR_I64, .i64 = value}};
  return ir_scalar(&c->k, IR_I64);
}

static void case_free(kernel_case *c) {
  for (int i = 0; i < c->n; i++) free(c->parameter[i].first);
  ir_free(&c->k);
  *c = (kernel_case){.n = 0};
}

/* The row of this lane (i64) and whether there is one. */
static ir_val case_row(kernel_case *c, ir_val n, ir_val *mask) {
  ir_kernel *k = &c->k;
  ir_val group =
      ir_add(k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, k->subgroups)),
             ir_cast(k, IR_I64, ir_subgroup(k)));
  ir_val row =
      ir_add(k, ir_mul(k, group, ir_int(k, IR_I64, k->lanes)), ir_cast(k, IR_I64, ir_lane(k)));
  *mask = ir_2(k, IR_LT, row, n);
  return row;
}

/* y = arithmetic on x; lanes past the last row are masked. */
static void case_arithmetic(kernel_case *c, const clb_limits *limits, bool rounds_division) {
  enum { N = 203 };
  ir_kernel *k = &c->k;
  int subgroups = limits->max_subgroups < 2 ? 1 : 2;
  double inexact = rounds_division ? 0 : 4e-7;
  ir_begin(k, "arithmetic", limits->lanes[CLB_F32], subgroups, limits->lanes[CLB_F32] * subgroups);
  ir_val n = case_i64(c, N), mask;
  ir_val x = case_array(c, IR_F32, N, false, 0), i = case_array(c, IR_I32, N, false, 0);
  ir_val exact = case_array(c, IR_F32, 4 * N, true, 0),
         close = case_array(c, IR_F32, 3 * N, true, 4e-7),
         ratio = case_array(c, IR_F32, 2 * N, true, inexact);
  ir_val half = case_array(c, IR_F16, N, true, 0), brain = case_array(c, IR_BF16, N, true, 0);
  ir_val row = case_row(c, n, &mask), four = ir_mul(k, row, ir_int(k, IR_I64, 4)),
         two = ir_mul(k, row, ir_int(k, IR_I64, 2)), three = ir_add(k, two, row);
  ir_val a = ir_load(k, x, row, mask), b = ir_load(k, i, row, mask), f = ir_cast(k, IR_F32, b);
  ir_val square = ir_mul(k, a, a), fused = ir_fma(k, a, f, ir_real(k, IR_F32, 0.1));
  ir_val out[4] = {
      ir_add(k, square, f), fused,
      ir_select(k, ir_2(k, IR_LT, a, f), ir_2(k, IR_MIN, a, fused), ir_1(k, IR_NEG, a)),
      ir_cast(k, IR_F32, ir_2(k, IR_MOD, b, ir_int(k, IR_I32, 7)))};
  ir_store_wide(k, exact, four, mask, 4, out);
  ir_val op[3] = {ir_1(k, IR_EXP, a), ir_1(k, IR_SIN, a), ir_1(k, IR_COS, a)};
  ir_store_wide(k, close, three, mask, 3, op);
  ir_val root[2] = {ir_1(k, IR_SQRT, square),
                    ir_2(k, IR_DIV, a, ir_add(k, square, ir_real(k, IR_F32, 1)))};
  ir_store_wide(k, ratio, two, mask, 2, root);
  ir_store(k, half, row, mask, ir_add(k, ir_load(k, half, row, mask), a));
  ir_store(k, brain, row, mask, ir_add(k, ir_load(k, brain, row, mask), a));
  c->groups = (N + k->rows - 1) / k->rows;
}

/* Lanes exchange values in a loop; one sub-group per group, so that every device can express it. */
static void case_shuffles(kernel_case *c, const clb_limits *limits, bool unused) {
  enum { GROUPS = 5 };
  ir_kernel *k = &c->k;
  int lanes = limits->lanes[CLB_F32];
  (void)unused;
  ir_begin(k, "shuffles", lanes, 1, lanes);
  size_t rows = (size_t)(GROUPS * lanes);
  ir_val n = case_i64(c, (int64_t)rows), mask;
  ir_val x = case_array(c, IR_F32, rows, false, 0), y = case_array(c, IR_F32, rows, true, 0),
         z = case_array(c, IR_I32, rows, true, 0);
  ir_val row = case_row(c, n, &mask), a = ir_load(k, x, row, mask), b = ir_load(k, z, row, mask),
         last = ir_int(k, IR_I32, lanes - 1);
  ir_val sum = ir_var(k, a, false);
  ir_loop(k, ir_int(k, IR_I32, 0), ir_int(k, IR_I32, 3), ir_int(k, IR_I32, 1));
  ir_set(k, sum, ir_add(k, ir_get(k, sum), ir_shuffle_xor(k, ir_get(k, sum), lanes / 2)));
  ir_end(k);
  ir_val total = ir_reduce_add(k, a);
  ir_store(k, y, row, mask,
           ir_add(k, ir_shuffle(k, ir_get(k, sum), ir_sub(k, last, ir_lane(k))), total));
  ir_store(k, z, row, mask,
           ir_add(k, ir_shuffle(k, b, ir_int(k, IR_I32, 1)), ir_shuffle_xor(k, b, 1)));
  c->groups = GROUPS;
}

/* Every row adds a whole number to one of 64 sums, so that the order does not matter. */
static void case_atomics(kernel_case *c, const clb_limits *limits, bool unused) {
  enum { N = 500, SUMS = 64 };
  ir_kernel *k = &c->k;
  ir_type wide = limits->f64 ? IR_F64 : IR_F32;
  int lanes = limits->lanes[CLB_F32];
  (void)unused;
  ir_begin(k, "atomics", lanes, 1, lanes);
  ir_val n = case_i64(c, N), mask;
  ir_val to = case_array(c, IR_I32, N, false, 0), f = case_array(c, IR_F32, SUMS, true, 0),
         d = case_array(c, wide, SUMS, true, 0);
  for (int i = 0; i < SUMS; i++) ((float *)c->parameter[2].first)[i] = (float)i;
  memset(c->parameter[3].first, 0, parameter_bytes(&c->parameter[3]));
  ir_val row = case_row(c, n, &mask), at = ir_load(k, to, row, mask);
  ir_atomic_add(k, f, at, mask, ir_cast(k, IR_F32, ir_lane(k)));
  ir_atomic_add(k, d, at, mask, ir_real(k, wide, 3));
  c->groups = (N + lanes - 1) / lanes;
}

/* Rows go through local memory backwards, copied asynchronously; the sub-groups of a group meet at
   a barrier. */
static void case_staged(kernel_case *c, const clb_limits *limits, bool unused) {
  enum { GROUPS = 3, WIDTH = 2 };
  ir_kernel *k = &c->k;
  int lanes = limits->lanes[CLB_F32], subgroups = limits->max_subgroups < 4 ? 1 : 4,
      size = lanes * subgroups;
  (void)unused;
  ir_begin(k, "staged", lanes, subgroups, size);
  size_t rows = (size_t)(GROUPS * size);
  ir_val n = case_i64(c, (int64_t)rows), mask;
  ir_val x = case_array(c, IR_F32, WIDTH * rows, false, 0),
         y = case_array(c, IR_F32, WIDTH * rows, true, 0);
  ir_val stage = ir_local(k, IR_F32, (int64_t)WIDTH * size), row = case_row(c, n, &mask),
         from = ir_mul(k, row, ir_int(k, IR_I64, WIDTH));
  ir_val mine = ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, lanes)), ir_lane(k)),
         v[WIDTH];
  ir_copy(k, stage, ir_mul(k, mine, ir_int(k, IR_I32, WIDTH)), x, from, mask, WIDTH);
  ir_copy_commit(k);
  ir_copy_wait(k, 0);
  ir_barrier(k, true);
  ir_load_wide(k, stage,
               ir_mul(k, ir_sub(k, ir_int(k, IR_I32, size - 1), mine), ir_int(k, IR_I32, WIDTH)),
               IR_NONE, WIDTH, v);
  ir_if(k, ir_2(k, IR_LT, ir_group(k), ir_int(k, IR_I32, 2)));
  ir_store_wide(k, y, from, mask, WIDTH, v);
  ir_end(k);
  c->groups = GROUPS;
}

/* Double precision, or next to nothing on devices without it. */
static void case_double(kernel_case *c, const clb_limits *limits, bool unused) {
  enum { N = 77 };
  ir_kernel *k = &c->k;
  ir_type t = limits->f64 ? IR_F64 : IR_F32;
  int lanes = limits->lanes[limits->f64 ? CLB_F64 : CLB_F32];
  (void)unused;
  ir_begin(k, "double_precision", lanes, 1, lanes);
  ir_val n = case_i64(c, N), mask, x = case_array(c, t, N, false, 0),
         y = case_array(c, t, N, true, limits->f64 ? 0 : 4e-7);
  ir_val row = case_row(c, n, &mask), a = ir_load(k, x, row, mask);
  ir_val root = ir_1(k, IR_SQRT, ir_fma(k, a, a, ir_real(k, t, 0.3)));
  ir_store(k, y, row, mask,
           ir_2(k, IR_DIV, ir_add(k, ir_reduce_add(k, a), root),
                ir_add(k, ir_1(k, IR_ABS, a), ir_real(k, t, 1))));
  c->groups = (N + lanes - 1) / lanes;
}

typedef void (*case_builder)(kernel_case *c, const clb_limits *limits, bool rounds_division);
static const case_builder case_builders[] = {case_arithmetic, case_shuffles, case_atomics,
                                             case_staged, case_double};
enum { CASES = sizeof case_builders / sizeof *case_builders };

static void case_begin(kernel_case *c, int which, const clb_limits *limits, bool rounds_division) {
  char mistake[200] = "";
  *c = (kernel_case){.n = 0};
  case_builders[which](c, limits, rounds_division);
  if (!ir_finish(&c->k)) fail_msg("%s: %s", c->k.name, c->k.error);
  if (!ir_verify(&c->k, mistake, sizeof mistake)) fail_msg("%s: %s", c->k.name, mistake);
}

/* Arrays as the case starts, to be freed; 0 for scalars. */
static void case_copies(const kernel_case *c, void *copies[CASE_PARAMETERS]) {
  for (int i = 0; i < c->n; i++) {
    size_t bytes = parameter_bytes(&c->parameter[i]);
    copies[i] = bytes ? malloc(bytes) : NULL;
    if (bytes) memcpy(copies[i], c->parameter[i].first, bytes);
  }
}

/* From the first allocation to the last read; `arrays` are written to the device and read back. */
static clb_status case_run(clb_device *d, const kernel_case *c, void *arrays[CASE_PARAMETERS]) {
  const clb_backend *b = d->backend;
  clb_memory memory[CASE_PARAMETERS] = {0};
  clb_arg args[CASE_PARAMETERS];
  clb_text binary = {0};
  clb_module *module = NULL;
  clb_report report;
  clb_status s = CLB_OK;
  for (int i = 0; i < c->n && !s; i++) {
    size_t bytes = parameter_bytes(&c->parameter[i]);
    args[i] = bytes ? (clb_arg){.type = IR_VOID, .memory = &memory[i]} : c->parameter[i].scalar;
    if (bytes) s = b->alloc(d, bytes, &memory[i]);
    if (bytes && !s && b->wrap) s = b->wrap(d, &memory[i]);
    if (bytes && !s) s = b->write(d, &memory[i], 0, arrays[i], bytes);
  }
  if (!s) s = build_kernel(d, &c->k, &binary);
  if (!s) s = b->load(d, &c->k, binary.s, binary.n, &module);
  if (!s) s = b->report(d, &c->k, binary.s, binary.n, &report);
  if (!s) s = b->launch(d, module, c->groups, args, c->n);
  if (!s) s = b->wait(d);
  for (int i = 0; i < c->n && !s; i++)
    if (arrays[i]) s = b->read(d, &memory[i], 0, arrays[i], parameter_bytes(&c->parameter[i]));
  b->unload(d, module);
  for (int i = 0; i < c->n; i++)
    if (memory[i].handle) b->free(d, &memory[i]);
  clb_text_free(&binary);
  return s;
}

static double case_element(ir_type t, const void *array, size_t i) {
  return t == IR_F64   ? ((const double *)array)[i]
         : t == IR_F32 ? (double)((const float *)array)[i]
         : t == IR_I32 ? (double)((const int32_t *)array)[i]
                       : (double)((const uint16_t *)array)[i];
}

/* What the arrays must be, according to the interpreter. */
static void case_expect(const kernel_case *c, const char *device,
                        void *const arrays[CASE_PARAMETERS]) {
  void *wanted[CASE_PARAMETERS];
  ir_arg args[CASE_PARAMETERS];
  char mistake[200] = "";
  case_copies(c, wanted);
  for (int i = 0; i < c->n; i++)
    args[i] = wanted[i] ? (ir_arg){.p = wanted[i]} : (ir_arg){.i64 = c->parameter[i].scalar.i64};
  if (!ir_run(&c->k, args, NULL, 0, c->groups, mistake, sizeof mistake))
    fail_msg("%s: %s", c->k.name, mistake);
  for (int i = 0; i < c->n; i++)
    for (size_t j = 0; j < c->parameter[i].count; j++) {
      double a = case_element(c->parameter[i].element, arrays[i], j),
             b = case_element(c->parameter[i].element, wanted[i], j);
      if (!(fabs(a - b) <= c->parameter[i].tolerance * (fabs(b) > 1 ? fabs(b) : 1)))
        fail_msg("%s on %s: parameter %d, element %zu is %.17g, not %.17g", c->k.name, device, i, j,
                 a, b);
    }
  for (int i = 0; i < c->n; i++) free(wanted[i]);
}

static void case_free_copies(void *copies[CASE_PARAMETERS]) {
  for (int i = 0; i < CASE_PARAMETERS; i++) free(copies[i]);
}

#endif
