/* tests/ops/tensor_product/product_arrays.h - tensor products on the devices that run here: their
   operands as host arrays of f64, and one pass run on them. */
#ifndef CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_ARRAYS_H
#define CLB_TESTS_OPS_TENSOR_PRODUCT_PRODUCT_ARRAYS_H

#include "tests/ops/stored.h"
#include "tests/ops/tensor_product/product_dense.h"

/* ---- products ---- */

typedef struct {
  clb_context *ctx;
  clb_op *op[PASSES]; /* made when first run, since compiling takes the time, */
  int together;       /* unless one op has all passes */
  clb_tensor_product_desc desc;
  dense_product *dense;
  int width[4];
} test_product;

static inline test_product *product_create(clb_context *ctx, const clb_tensor_product_desc *desc,
                                           dense_symbols symbols) {
  test_product *p = calloc(1, sizeof *p);
  clb_tensor_product_sizes sizes;
  assert_non_null(p);
  p->ctx = ctx;
  p->desc = *desc;
  OK(ctx, clb_tensor_product_measure(ctx, desc, &sizes));
  p->dense = dense_create(desc, symbols);
  memcpy(p->width, p->dense->width, sizeof p->width);
  assert_true(sizes.x == p->width[LIKE_X] && sizes.y == p->width[LIKE_Y] &&
              sizes.w == p->width[LIKE_W] && sizes.z == p->width[LIKE_Z]);
  return p;
}

static inline clb_op *op_of(test_product *p, int pass) {
  int slot = p->together ? 0 : pass;
  p->desc.passes = p->together ? 15 : CLB_PASS_BIT(pass);
  if (!p->op[slot]) OK(p->ctx, clb_tensor_product_create(p->ctx, &p->desc, &p->op[slot]));
  return p->op[slot];
}

static inline void product_destroy(test_product *p) {
  if (!p) return;
  for (int pass = 0; pass < PASSES; pass++) clb_op_destroy(&p->op[pass]);
  dense_destroy(p->dense);
  free(p);
}

static inline int rows_like(test_product *p, int like, int rows) {
  return like == LIKE_W && p->desc.shared_weights ? 1 : rows;
}
static inline size_t count_like(test_product *p, int like, int rows) {
  return (size_t)(rows_like(p, like, rows) * p->width[like]);
}

/* Whether a pass gives result o, and reads operand i. */
static inline int gives(test_product *p, int pass, int o) {
  return pass == CLB_FORWARD || !p->desc.gradients || p->desc.gradients >> output_like(pass, o) & 1;
}
static inline int reads(test_product *p, int i) {
  return i < 4 || i > 6 || !p->desc.incoming || p->desc.incoming >> input_like[i] & 1;
}

/* ---- arrays ---- */

typedef struct {
  int rows;
  double *in[MAX_IN], *out[MAX_OUT];
} arrays;

static inline double *numbers(size_t n) {
  double *x = calloc(n + 1, sizeof *x);
  assert_non_null(x);
  return x;
}

/* Random numbers in [-1, 1) that the type holds exactly. */
static inline void random_fill(clb_dtype type, double *x, size_t n, uint64_t *seed) {
  for (size_t i = 0; i < n; i++) {
    x[i] = test_random(seed);
    if (type == CLB_F32) x[i] = (float)x[i];
    if (type >= CLB_F16) x[i] = floor(64 * x[i]) / 64;
  }
}

/* Random inputs, and outputs for the case that results are added to them. */
static inline arrays arrays_create(test_product *p, int rows, uint64_t seed) {
  arrays a = {.rows = rows};
  for (int i = 0; i < MAX_IN; i++)
    random_fill(p->desc.storage, a.in[i] = numbers(count_like(p, input_like[i], rows)),
                count_like(p, input_like[i], rows), &seed);
  for (int i = 0; i < MAX_OUT; i++) { /* one wide enough for z in forward and g_x */
    size_t n = count_like(p, input_like[i], rows), z = count_like(p, LIKE_Z, rows);
    random_fill(p->desc.storage, a.out[i] = numbers(n > z ? n : z), n > z ? n : z, &seed);
  }
  return a;
}

static inline void arrays_destroy(arrays *a) {
  for (int i = 0; i < MAX_IN; i++) free(a->in[i]);
  for (int i = 0; i < MAX_OUT; i++) free(a->out[i]);
}

/* ---- running ---- */

typedef struct {
  clb_rows in[MAX_IN], out[MAX_OUT];
} operands;

/* A buffer of that many elements: numbers from `from` (NULL: NaN), then NaN. */
static inline clb_buffer *buffer_of(test_product *p, const double *from, size_t n, size_t all) {
  clb_buffer *b = NULL;
  char *bytes = calloc(all + 1, 8);
  assert_non_null(bytes);
  for (size_t i = 0; i < all; i++)
    put(p->desc.storage, bytes, (int64_t)i, from && i < n ? from[i] : NAN);
  OK(p->ctx, clb_buffer_create(p->ctx, all * dtype_bytes(p->desc.storage), &b));
  OK(p->ctx, clb_buffer_write(b, 0, bytes, all * dtype_bytes(p->desc.storage)));
  free(bytes);
  return b;
}

static inline double *read_buffer(test_product *p, clb_buffer *b, size_t n) {
  double *x = numbers(n);
  char *bytes = calloc(n + 1, 8);
  assert_non_null(bytes);
  if (n) OK(p->ctx, clb_buffer_read(b, 0, bytes, n * dtype_bytes(p->desc.storage)));
  decode(p->desc.storage, bytes, x, (int64_t)n);
  free(bytes);
  return x;
}

/* Dense rows on the device, followed by one more row of NaN; outputs hold NaN unless results are
   added to them. Operands without columns, and those that the pass does not read, have no buffer.
   */
static inline operands operands_create(test_product *p, int pass, const arrays *a) {
  operands o = {0};
  for (int i = 0; i < n_inputs[pass]; i++) {
    size_t n = count_like(p, input_like[i], a->rows), width = (size_t)p->width[input_like[i]];
    o.in[i] = (clb_rows){0};
    if (width && reads(p, i)) o.in[i].buffer = buffer_of(p, a->in[i], n, n + width);
  }
  for (int i = 0; i < n_outputs[pass]; i++) {
    size_t n = count_like(p, output_like(pass, i), a->rows),
           width = (size_t)p->width[output_like(pass, i)];
    o.out[i] = (clb_rows){0};
    if (width)
      o.out[i].buffer =
          buffer_of(p, p->desc.accumulate && gives(p, pass, i) ? a->out[i] : NULL, n, n + width);
  }
  return o;
}

/* Rows `width` long, `stride` apart from `offset` on; n of them, NaN between. */
static inline clb_rows lay_out(test_product *p, const double *from, int n, int width, int offset,
                               int stride) {
  size_t all = (size_t)(offset + n * stride + width);
  double *x = numbers(all);
  for (size_t i = 0; i < all; i++) x[i] = NAN;
  for (int r = 0; r < n && from; r++)
    memcpy(x + offset + r * stride, from + r * width, sizeof(double) * (size_t)width);
  clb_rows rows = {.buffer = buffer_of(p, x, all, all), .offset = offset, .stride = stride};
  free(x);
  return rows;
}

static inline void operands_destroy(operands *o) {
  for (int i = 0; i < MAX_IN; i++)
    clb_buffer_destroy(&o->in[i].buffer), clb_buffer_destroy(&o->in[i].index);
  for (int i = 0; i < MAX_OUT; i++) clb_buffer_destroy(&o->out[i].buffer);
}

static inline clb_status call(test_product *p, int pass, int64_t n, const operands *o) {
  clb_op *op = op_of(p, pass);
  const clb_rows *i = o->in, *out = o->out;
  const clb_triple_operands all = {i[0],   i[1],   i[2],   i[3],   i[4],   i[5],
                                   i[6],   i[7],   i[8],   i[9],   i[10],  out[0],
                                   out[1], out[2], out[3], out[4], out[5], out[6]};
  if (pass == CLB_FORWARD) return clb_tensor_product_forward(op, n, i[0], i[1], i[2], out[0]);
  if (pass == CLB_BACKWARD)
    return clb_tensor_product_backward(op, n, i[0], i[1], i[2], i[3], out[0], out[1], out[2]);
  if (pass == CLB_DOUBLE_BACKWARD)
    return clb_tensor_product_double_backward(op, n, i[0], i[1], i[2], i[3], i[4], i[5], i[6],
                                              out[0], out[1], out[2], out[3]);
  return clb_tensor_product_triple_backward(op, n, &all);
}

/* Reads dense outputs back to a->out; those that were not asked for, and the row after the others,
   must still be NaN. */
static inline void operands_take(test_product *p, int pass, const operands *o, arrays *a) {
  for (int i = 0; i < n_outputs[pass]; i++) {
    size_t width = (size_t)p->width[output_like(pass, i)],
           n = count_like(p, output_like(pass, i), a->rows), given = gives(p, pass, i) ? n : 0;
    if (!width || !o->out[i].buffer) continue;
    double *all = read_buffer(p, o->out[i].buffer, n + width);
    memcpy(a->out[i], all, given * sizeof *all);
    for (size_t j = given; j < n + width; j++)
      if (!isnan(all[j]))
        fail_msg("pass %d wrote element %zu of result %d, which is not its own", pass, j, i);
    free(all);
  }
}

static inline void run_pass(test_product *p, int pass, arrays *a) {
  operands o = operands_create(p, pass, a);
  OK(p->ctx, call(p, pass, a->rows, &o));
  operands_take(p, pass, &o, a);
  operands_destroy(&o);
}

/* ---- comparing ---- */

/* How far results may be from the plain sums: relative to the sum of the absolute values of their
   terms, and the least step of f16. */
static inline double tolerance(test_product *p) {
  return (const double[]){2e-6, 1e-12, 2e-3, 1.6e-2}[p->desc.storage];
}

/* Compares the results of a pass with the plain sums, plus the contents `before` if results are
   added. */
static inline void compare(test_product *p, int pass, const arrays *a, const arrays *before) {
  double *want[MAX_OUT] = {NULL}, *scale[MAX_OUT] = {NULL}, nonzero = 0;
  for (int o = 0; o < n_outputs[pass]; o++) {
    want[o] = numbers(count_like(p, output_like(pass, o), a->rows));
    scale[o] = numbers(count_like(p, output_like(pass, o), a->rows));
  }
  dense_run(p->dense, pass, a->rows, a->in, want, scale);
  for (int o = 0; o < n_outputs[pass]; o++)
    for (size_t j = 0; j < count_like(p, output_like(pass, o), a->rows) && gives(p, pass, o); j++) {
      double old = before ? before->out[o][j] : 0, wanted = want[o][j] + old,
             size = scale[o][j] + fabs(old);
      nonzero += size;
      if (!(fabs(a->out[o][j] - wanted) <=
            tolerance(p) * size + (p->desc.storage == CLB_F16) * 0x1p-24))
        fail_msg("%s (x) %s -> %s, pass %d, %d rows, result %d, element %zu: %.17g, not %.17g",
                 p->desc.irreps_x, p->desc.irreps_y, p->desc.irreps_z, pass, a->rows, o, j,
                 a->out[o][j], wanted);
    }
  assert_true(nonzero > 0 || a->rows == 0 ||
              (pass == CLB_BACKWARD && p->desc.gradients == CLB_OPERAND_Z));
  for (int o = 0; o < n_outputs[pass]; o++) free(want[o]), free(scale[o]);
}

/* Runs a pass on random rows and compares it. */
static inline void run_and_compare(test_product *p, int pass, int rows, uint64_t seed) {
  arrays a = arrays_create(p, rows, seed), before = arrays_create(p, rows, seed);
  run_pass(p, pass, &a);
  compare(p, pass, &a, p->desc.accumulate ? &before : NULL);
  arrays_destroy(&a);
  arrays_destroy(&before);
}

static inline void same_bits(test_product *p, int pass, const arrays *a, const arrays *b) {
  for (int o = 0; o < n_outputs[pass]; o++)
    if (gives(p, pass, o))
      assert_memory_equal(a->out[o], b->out[o],
                          sizeof(double) * count_like(p, output_like(pass, o), a->rows));
}

/* Runs a pass on random rows, compares it, and runs it again: not a bit may differ. */
static inline void run_twice(test_product *p, int pass, int rows, uint64_t seed) {
  arrays a = arrays_create(p, rows, seed), again = arrays_create(p, rows, seed);
  run_pass(p, pass, &a);
  compare(p, pass, &a, NULL);
  run_pass(p, pass, &again);
  same_bits(p, pass, &a, &again);
  arrays_destroy(&a);
  arrays_destroy(&again);
}

/* ---- one test for each device that runs here, or $CLB_DEVICE alone ---- */

/* Sanitizers check accesses to memory, whatever the numbers are, so one case of each kind, on few
   rows, is enough. The released build runs all of them, as does the sanitized one in `ci/test.sh
   --long`. */
static inline bool few_cases(void) { return SANITIZED && !long_tests(); }

enum { MAX_DEVICES = 16, MAX_MADE = 24, MAX_TESTS = 16 };
typedef struct {
  char name[64];
  enum {
    SLOW,
    BRISK,
    THOROUGH
  } effort; /* OpenCL on a CPU takes seconds to compile a kernel that the interpreter runs at once
             */
  int turn; /* of the SLOW ones, in short runs */
  clb_context *ctx;
  test_product *made[MAX_MADE];
} device;

/* HOST: only where a pointer of the host is one of the device. */
typedef struct {
  char name[32];
  void (*run)(void **device);
  enum { EVERYWHERE, HOST, WHERE_THOROUGH } where;
} device_test;

static int n_slow; /* devices */

static inline device *all_devices(void) {
  static device devices[MAX_DEVICES];
  return devices;
}

static inline void add_device(const clb_device_info *info, void *user) {
  int *n = user;
  device *d = &all_devices()[*n];
  if (!info->runs || !info->f64 || *n == MAX_DEVICES) return;
  snprintf(d->name, sizeof d->name, "%s", info->name);
  d->effort = !strcmp(info->name, "cpu:interpreter") ? THOROUGH
              : !strcmp(info->backend, "opencl")     ? SLOW
                                                     : BRISK;
  if (d->effort == SLOW) d->turn = n_slow++;
  ++*n;
}

static inline bool waits_its_turn(const device *d, int test) {
  return d->effort == SLOW && leaves_to_another(d->turn, n_slow, test);
}

static inline clb_context *context_of(device *d) {
  if (!d->ctx) OK(d->ctx, clb_context_create(d->name, &d->ctx));
  return d->ctx;
}

static inline test_product *made_product(device *d, int slot, const clb_tensor_product_desc *desc) {
  if (!d->made[slot]) d->made[slot] = product_create(context_of(d), desc, dense_golden_3j);
  return d->made[slot];
}

/* How many of a list to try; on slow devices only the first ones. */
static inline int many(const device *d, int slow, int brisk, int all) {
  return (const int[]){slow, brisk, all}[d->effort];
}
/* The last pass to try. */
static inline int last_pass(const device *d) {
  return many(d, CLB_BACKWARD, CLB_TRIPLE_BACKWARD, CLB_TRIPLE_BACKWARD);
}

static inline int forget_all(void **state) {
  (void)state;
  for (device *d = all_devices(); d < all_devices() + MAX_DEVICES; d++) {
    for (int i = 0; i < MAX_MADE; i++) product_destroy(d->made[i]);
    clb_context_destroy(&d->ctx);
  }
  return 0;
}

static inline int runs_on(const device_test *t, const device *d) {
  if (t->where == HOST) return !strncmp(d->name, "cpu", 3);
  return t->where == EVERYWHERE || d->effort == THOROUGH;
}

static inline int run_on_devices(const char *group, const device_test *tests, int n_tests) {
  static struct CMUnitTest all[MAX_DEVICES * MAX_TESTS];
  static char labels[MAX_DEVICES * MAX_TESTS][128];
  const char *asked = getenv("CLB_DEVICE");
  int n_devices = 0, n = 0;
  if (!asked || !*asked) clb_devices(add_device, &n_devices);
  else {
    snprintf(all_devices()->name, sizeof all_devices()->name, "%s", asked);
    all_devices()->effort = SANITIZED ? BRISK : THOROUGH;
    n_devices = 1;
  }
  for (int d = 0; d < n_devices; d++)
    for (int t = 0; t < n_tests; t++) {
      if (!runs_on(&tests[t], &all_devices()[d]) || waits_its_turn(&all_devices()[d], t)) continue;
      snprintf(labels[n], sizeof labels[n], "%s_%s[%s]", group, tests[t].name,
               all_devices()[d].name);
      all[n] = (struct CMUnitTest){labels[n], tests[t].run, NULL, NULL, &all_devices()[d]};
      n++;
    }
  return _cmocka_run_group_tests(group, all, (size_t)n, NULL, forget_all);
}

#endif
