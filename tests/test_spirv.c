/* test_spirv.c - SPIR-V words: spirv-val and Intel's compiler accept them, and two drivers that run them get the interpreter's numbers. */
#include <math.h>
#include <unistd.h>

#include "../kernels/kernels.h"
#include "../src/print.h"
#include "opencl_runner.h"
#include "random_kernel.h"
#include "test.h"

enum { ELEMENTS = 20000, GROUPS = 3, MAX_PARAMETERS = 16, WIDTH = 16 };

__extension__ typedef _Float16 f16;

/* ---- kernels: one for each kind of instruction ---- */

/* What the builders share: the number of this lane in the whole launch, its place in output arrays, and the mask of the tail. */
typedef struct {
  ir_kernel *k;
  ir_val lane, row, inside;
} builder;

static builder start(ir_kernel *k, const char *name, int lanes, int subgroups) {
  builder b = {.k = k};
  ir_begin(k, name, lanes, subgroups, lanes * subgroups);
  b.lane = ir_lane(k);
  ir_val first = ir_mul(k, ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, subgroups)), ir_subgroup(k)), ir_int(k, IR_I32, lanes));
  b.row = ir_add(k, first, b.lane);
  b.inside = ir_2(k, IR_LT, b.row, ir_int(k, IR_I32, GROUPS * subgroups * lanes - 3));
  return b;
}

static ir_val place(const builder *b, int columns, int column) {
  return ir_add(b->k, ir_mul(b->k, b->row, ir_int(b->k, IR_I32, columns)), ir_int(b->k, IR_I32, column));
}

static void put(const builder *b, ir_val out, int column, ir_val value) { ir_store(b->k, out, place(b, WIDTH, column), b->inside, value); }

static ir_val get(const builder *b, ir_val in, int column) { return ir_load(b->k, in, place(b, WIDTH, column), IR_NONE); }

static void floats(const builder *b, ir_type t) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, t, false), out = ir_buffer(k, t, true), s = ir_scalar(k, t), x = get(b, in, 0), y = get(b, in, 1), z = get(b, in, 2);
  static const ir_op two[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_MIN, IR_MAX};
  for (int i = 0; i < 6; i++) put(b, out, i, ir_2(k, two[i], x, y));
  put(b, out, 6, ir_1(k, IR_NEG, x));
  put(b, out, 7, ir_1(k, IR_ABS, x));
  put(b, out, 8, ir_fma(k, x, y, z));
  put(b, out, 9, ir_1(k, IR_SQRT, ir_1(k, IR_ABS, x)));
  put(b, out, 10, ir_sub(k, ir_mul(k, x, y), z)); /* must not be contracted */
  put(b, out, 11, ir_add(k, ir_sub(k, x, y), y)); /* must not be reassociated */
  put(b, out, 12, ir_select(k, ir_2(k, IR_LT, x, y), x, s));
  put(b, out, 13, ir_select(k, ir_2(k, IR_AND, ir_2(k, IR_LE, x, y), ir_1(k, IR_NOT, ir_2(k, IR_EQ, x, z))), y, z));
  put(b, out, 14, ir_select(k, ir_2(k, IR_OR, ir_2(k, IR_EQ, x, y), ir_2(k, IR_LE, z, x)), ir_real(k, t, 0x1.99999ap-4), ir_real(k, t, -INFINITY)));
  put(b, out, 15, ir_2(k, IR_DIV, ir_real(k, t, 1), x));
}
static void f32(const builder *b) { floats(b, IR_F32); }
static void f64(const builder *b) { floats(b, IR_F64); }

static void functions(const builder *b) {
  ir_kernel *k = b->k;
  static const ir_op op[] = {IR_EXP, IR_SIN, IR_COS};
  static const ir_type type[] = {IR_F32, IR_F64};
  for (int t = 0; t < 2; t++) {
    ir_val in = ir_buffer(k, type[t], false), out = ir_buffer(k, type[t], true);
    for (int i = 0; i < WIDTH; i++) put(b, out, i, ir_1(k, op[i % 3], get(b, in, i)));
  }
}

static void integers(const builder *b, ir_type t) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, t, false), out = ir_buffer(k, t, true), s = ir_scalar(k, t), x = get(b, in, 0), y = get(b, in, 1), one = ir_int(k, t, 1);
  static const ir_op two[] = {IR_ADD, IR_SUB, IR_MUL, IR_MIN, IR_MAX};
  for (int i = 0; i < 5; i++) put(b, out, i, ir_2(k, two[i], x, y));
  put(b, out, 5, ir_2(k, IR_DIV, x, ir_add(k, y, one)));
  put(b, out, 6, ir_2(k, IR_MOD, x, ir_add(k, y, one)));
  put(b, out, 7, ir_2(k, IR_MIN, ir_sub(k, x, y), ir_int(k, t, -3)));
  put(b, out, 8, ir_2(k, IR_MAX, ir_sub(k, x, y), s));
  put(b, out, 9, ir_mul(k, ir_mul(k, x, ir_int(k, t, 0x7fffffff)), y)); /* i32 wraps */
  put(b, out, 10, ir_select(k, ir_2(k, IR_LT, x, y), x, one));
  put(b, out, 11, ir_select(k, ir_2(k, IR_LE, ir_sub(k, x, y), ir_sub(k, y, x)), y, one));
  put(b, out, 12, ir_select(k, ir_2(k, IR_EQ, x, y), s, x));
  put(b, out, 13, ir_select(k, ir_int(k, IR_BOOL, 1), x, s));
  put(b, out, 14, ir_2(k, IR_MOD, x, ir_int(k, t, 7)));
  put(b, out, 15, t == IR_I32 ? b->row : ir_cast(k, t, b->row));
}
static void i32(const builder *b) { integers(b, IR_I32); }
static void i64(const builder *b) { integers(b, IR_I64); }

static void casts(const builder *b) {
  ir_kernel *k = b->k;
  static const ir_type type[] = {IR_I32, IR_I64, IR_F32, IR_F64};
  ir_val in[4], out[4];
  for (int t = 0; t < 4; t++) in[t] = get(b, ir_buffer(k, type[t], false), 0), out[t] = ir_buffer(k, type[t], true);
  in[0] = ir_sub(k, in[0], ir_mul(k, b->row, ir_int(k, IR_I32, 0x10003)));
  in[1] = ir_mul(k, in[1], ir_int(k, IR_I64, -0x123456789abcdef));
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      if (from < 2 || to > 1) put(b, out[to], from, ir_cast(k, type[to], in[from]));
}

static void memory(const builder *b, ir_type t) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, t, false), out = ir_buffer(k, t, true), wide = ir_buffer(k, t, true), v[WIDTH];
  ir_val far = ir_select(k, b->inside, ir_cast(k, IR_I64, place(b, WIDTH, 0)), ir_int(k, IR_I64, INT64_C(1) << 60)); /* never touched */
  ir_load_wide(k, in, far, b->inside, WIDTH, v);
  ir_store_wide(k, out, far, b->inside, WIDTH, v);
  for (int j = 0; j < 3; j++) v[j] = ir_is_float(ir_register_type(t)) ? ir_1(k, IR_NEG, v[15 - j]) : ir_add(k, v[15 - j], v[j]);
  ir_store_wide(k, wide, place(b, WIDTH, 0), IR_NONE, 3, v);
  ir_load_wide(k, in, place(b, WIDTH, 1), IR_NONE, 3, v);
  ir_store_wide(k, wide, place(b, WIDTH, 3), IR_NONE, 3, v);
  put(b, wide, 6, ir_load(k, in, place(b, WIDTH, 5), ir_2(k, IR_EQ, ir_2(k, IR_MOD, b->row, ir_int(k, IR_I32, 3)), ir_int(k, IR_I32, 1))));
  put(b, wide, 7, ir_load(k, in, ir_group(k), IR_NONE));
}
static void memory_f32(const builder *b) { memory(b, IR_F32), memory(b, IR_I32); }
static void memory_f64(const builder *b) { memory(b, IR_F64), memory(b, IR_I64); }
static void memory_f16(const builder *b) { memory(b, IR_F16), memory(b, IR_BF16); }

/* Rounding of what lies between two numbers of 16 bits, and beyond them. */
static void narrow(const builder *b) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, IR_F32, false), half = ir_buffer(k, IR_F16, true), brain = ir_buffer(k, IR_BF16, true);
  ir_val x = get(b, in, 0), values[WIDTH];
  for (int j = 0; j < WIDTH; j++) values[j] = j < 8 ? get(b, in, j) : ir_mul(k, x, ir_real(k, IR_F32, ldexp(j & 1 ? 1 : 1.0009765625, 3 * j - 30)));
  ir_store_wide(k, half, place(b, WIDTH, 0), b->inside, WIDTH, values);
  ir_store_wide(k, brain, place(b, WIDTH, 0), b->inside, WIDTH, values);
}

/* Each lane reads what its neighbours wrote. */
static void locals(const builder *b, bool group) {
  ir_kernel *k = b->k;
  static const ir_type type[] = {IR_I32, IR_I64, IR_F32, IR_F64, IR_F16, IR_BF16};
  int32_t n = k->lanes * k->subgroups;
  ir_val in_group = ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, k->lanes)), b->lane);
  ir_val other = group ? ir_sub(k, ir_int(k, IR_I32, n - 1), in_group)
                       : ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, k->lanes)), ir_sub(k, ir_int(k, IR_I32, k->lanes - 1), b->lane));
  for (int t = 0; t < 6; t++) {
    ir_val in = ir_buffer(k, type[t], false), out = ir_buffer(k, type[t], true), one = ir_local(k, type[t], n), many = ir_local(k, type[t], 3 * n);
    ir_store(k, one, in_group, IR_NONE, get(b, in, t));
    ir_copy(k, many, ir_mul(k, in_group, ir_int(k, IR_I32, 3)), in, place(b, WIDTH, 2), t & 1 ? b->inside : IR_NONE, 3);
    ir_copy_commit(k);
    ir_copy_wait(k, 0);
    ir_barrier(k, group);
    put(b, out, 0, ir_load(k, one, other, IR_NONE));
    ir_val v[3];
    ir_load_wide(k, many, ir_mul(k, other, ir_int(k, IR_I32, 3)), b->inside, 3, v);
    for (int j = 0; j < 3; j++) put(b, out, 1 + j, t & 1 ? ir_select(k, ir_2(k, IR_LT, ir_add(k, b->row, ir_int(k, IR_I32, 8)), ir_int(k, IR_I32, 2 * n)), v[j], get(b, in, j)) : v[j]);
    ir_barrier(k, group);
  }
}
static void meet_group(const builder *b) { locals(b, true); }
static void meet_subgroup(const builder *b) { locals(b, false); }

static void control(const builder *b) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, IR_F32, false), out = ir_buffer(k, IR_F32, true), count = ir_scalar(k, IR_I32), zero = ir_int(k, IR_I32, 0), one = ir_int(k, IR_I32, 1);
  ir_val sum = ir_var(k, ir_real(k, IR_F32, 0), false), odd = ir_var(k, ir_int(k, IR_BOOL, 0), true), turns = ir_var(k, ir_int(k, IR_I64, 0), true);
  ir_val i = ir_loop(k, ir_group(k), count, ir_int(k, IR_I32, 2));
  ir_val x = ir_load(k, in, ir_add(k, b->row, i), b->inside);
  ir_if(k, ir_2(k, IR_EQ, ir_2(k, IR_MOD, i, ir_int(k, IR_I32, 3)), zero));
  ir_set(k, sum, ir_fma(k, x, x, ir_get(k, sum)));
  ir_if(k, ir_get(k, odd));
  ir_set(k, sum, ir_sub(k, ir_get(k, sum), ir_real(k, IR_F32, 1)));
  ir_end(k);
  ir_else(k);
  ir_val j = ir_loop(k, ir_int(k, IR_I64, 1), ir_cast(k, IR_I64, i), ir_int(k, IR_I64, 3));
  ir_set(k, sum, ir_add(k, ir_get(k, sum), ir_load(k, in, ir_add(k, j, ir_cast(k, IR_I64, b->row)), IR_NONE)));
  ir_set(k, turns, ir_add(k, ir_get(k, turns), j));
  ir_end(k);
  ir_end(k);
  ir_set(k, odd, ir_1(k, IR_NOT, ir_get(k, odd)));
  ir_end(k);
  ir_loop(k, zero, zero, one); /* never */
  ir_set(k, sum, ir_real(k, IR_F32, NAN));
  ir_end(k);
  put(b, out, 0, ir_get(k, sum));
  put(b, out, 1, ir_cast(k, IR_F32, ir_get(k, turns)));
  put(b, out, 2, ir_select(k, ir_get(k, odd), ir_real(k, IR_F32, 1), ir_real(k, IR_F32, -0.0)));
}

/* Sums of small integers: exact in any order. */
static void atomics(const builder *b) {
  ir_kernel *k = b->k;
  static const ir_type type[] = {IR_F32, IR_F64};
  for (int t = 0; t < 2; t++) {
    ir_val sums = ir_buffer(k, IR_I32, false), out = ir_buffer(k, type[t], true), inner = ir_local(k, type[t], 4), total = ir_buffer(k, type[t], true);
    ir_val bin = ir_2(k, IR_MOD, get(b, sums, 0), ir_int(k, IR_I32, 4)), first = ir_2(k, IR_LT, b->lane, ir_int(k, IR_I32, 4));
    ir_val mine = ir_2(k, IR_MIN, b->lane, ir_int(k, IR_I32, 3)), leader = ir_2(k, IR_AND, first, ir_2(k, IR_EQ, ir_subgroup(k), ir_int(k, IR_I32, 0)));
    ir_store(k, inner, mine, leader, ir_real(k, type[t], 1));
    ir_barrier(k, true);
    ir_atomic_add(k, inner, bin, b->inside, ir_cast(k, type[t], b->row));
    ir_atomic_add(k, total, bin, IR_NONE, ir_real(k, type[t], 2));
    ir_barrier(k, true);
    ir_store(k, out, ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, 4)), mine), leader, ir_load(k, inner, mine, IR_NONE));
  }
}

static void shuffles(const builder *b) {
  ir_kernel *k = b->k;
  static const ir_type type[] = {IR_I32, IR_I64, IR_F32, IR_F64};
  ir_val from = ir_sub(k, ir_int(k, IR_I32, k->lanes - 1), b->lane);
  for (int t = 0; t < 4; t++) {
    ir_val in = ir_buffer(k, type[t], false), out = ir_buffer(k, type[t], true), x = get(b, in, 0);
    put(b, out, 0, ir_shuffle(k, x, from));
    put(b, out, 1, ir_shuffle(k, x, ir_int(k, IR_I32, k->lanes / 2)));
    for (int with = 1, j = 2; with < k->lanes; with *= 2, j++) put(b, out, j, ir_shuffle_xor(k, x, with));
    put(b, out, 8, ir_shuffle_xor(k, ir_add(k, x, x), k->lanes - 1));
    if (ir_is_float(type[t])) put(b, out, 9, ir_reduce_add(k, x));
  }
}

typedef struct {
  const char *name;
  void (*build)(const builder *b);
  bool crosses;   /* between lanes */
  bool special;   /* NaN, infinities and zeros among the inputs */
  double ulp;     /* allowed */
} test_case;

static const test_case cases[] = {
    {"f32", f32, false, true, 0}, {"f64", f64, false, true, 0}, {"functions", functions, false, false, 4}, {"i32", i32, false, false, 0},
    {"i64", i64, false, false, 0}, {"casts", casts, false, true, 0}, {"memory_f32", memory_f32, false, true, 0}, {"memory_f64", memory_f64, false, true, 0},
    {"memory_f16", memory_f16, false, true, 0}, {"narrow", narrow, false, true, 0}, {"meet_group", meet_group, false, false, 0},
    {"meet_subgroup", meet_subgroup, false, false, 0}, {"control", control, false, false, 0}, {"atomics", atomics, false, false, 0},
    {"shuffles", shuffles, true, false, 0}};
enum { CASES = sizeof cases / sizeof *cases };

static void build(const test_case *c, int lanes, int subgroups, ir_kernel *k) {
  char error[300];
  builder b = start(k, c->name, lanes, subgroups);
  c->build(&b);
  if (!ir_finish(k)) fail_msg("%s: %s", c->name, k->error);
  if (!ir_verify(k, error, sizeof error)) fail_msg("%s: %s", c->name, error);
}

static void print(const ir_kernel *k, bool subgroups, bool float_atomics, clb_text *words) {
  char error[300] = "";
  clb_dialect dialect = {CLB_LANGUAGE_SPIRV, subgroups, float_atomics};
  if (!clb_print_spirv(k, &dialect, words, error, sizeof error)) fail_msg("%s: %s", k->name, error);
}

/* ---- arguments ---- */

typedef struct {
  int n;
  ir_type type[MAX_PARAMETERS]; /* of the elements or of the scalar */
  runner_argument arg[MAX_PARAMETERS];
} arguments;

static void set_number(void *at, ir_type t, double x) {
  float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  static const uint32_t full_nan = 0x7fffffff; /* rounding its upper half up would overflow */
  if (isnan(f)) memcpy(&f, &full_nan, sizeof f);
  uint16_t brain = (uint16_t)(bits >> 16);
  f16 half = (f16)f;
  int32_t i = (int32_t)fmin(fmax(fabs(x) * 20, 0), 60);
  int64_t l = i;
  const void *from[] = {[IR_I32] = &i, [IR_I64] = &l, [IR_F32] = &f, [IR_F64] = &x, [IR_F16] = &half, [IR_BF16] = &brain};
  memcpy(at, from[t], (size_t)ir_type_bytes(t));
}

static void fill(const ir_kernel *k, bool special, arguments *a) {
  /* among them halfway between two numbers of bf16 and of f16, and next to their largest and smallest */
  static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e30, -1e-30, 65519, 65520, 0x1.ffp-15, 0x1.01p3, 0x1.03p3, 0x1.002p3, 0x1.006p3};
  enum { ODD = sizeof odd / sizeof *odd };
  uint64_t seed = 1;
  a->n = 0;
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    if (i->op != IR_BUFFER && i->op != IR_SCALAR) continue;
    size_t count = i->op == IR_BUFFER ? ELEMENTS : 1;
    ir_type t = a->type[a->n] = (ir_type)(i->op == IR_BUFFER ? i->element : i->type);
    runner_argument *to = &a->arg[a->n++];
    *to = (runner_argument){calloc(count, (size_t)ir_type_bytes(t)), count * (size_t)ir_type_bytes(t), i->op == IR_BUFFER};
    assert_non_null(to->data);
    for (size_t j = 0; j < count; j++) {
      double x = 3 * test_random(&seed), pick = 10 * (test_random(&seed) + 1);
      if (i->op == IR_BUFFER && i->imm) x = (double)(j % 5); /* what is added to, or must stay */
      else if (special && pick < 4) x = odd[(int)(pick / 4 * ODD)];
      set_number((char *)to->data + j * (size_t)ir_type_bytes(t), t, x);
    }
  }
}

static void drop(arguments *a) {
  for (int i = 0; i < a->n; i++) free(a->arg[i].data);
}

static void interpret(const ir_kernel *k, arguments *a) {
  char error[300] = "";
  ir_arg arg[MAX_PARAMETERS] = {{0}};
  for (int i = 0; i < a->n; i++) {
    if (a->arg[i].is_buffer) arg[i].p = a->arg[i].data;
    else memcpy(&arg[i], a->arg[i].data, a->arg[i].bytes);
  }
  if (!ir_run(k, arg, 0, GROUPS, error, sizeof error)) fail_msg("%s: %s", k->name, error);
}

static double number(const void *at, ir_type t) {
  float f;
  double d;
  f16 half;
  uint16_t u;
  if (t == IR_F64) return memcpy(&d, at, sizeof d), d;
  if (t == IR_F32) return memcpy(&f, at, sizeof f), (double)f;
  if (t == IR_F16) return memcpy(&half, at, sizeof half), (double)half;
  memcpy(&u, at, sizeof u);
  uint32_t bits = (uint32_t)u << 16;
  return memcpy(&f, &bits, sizeof f), (double)f;
}

static bool near(const void *x, const void *y, ir_type t, double ulp) {
  if (!memcmp(x, y, (size_t)ir_type_bytes(t))) return true;
  if (ir_is_int(t)) return false;
  double a = number(x, t), b = number(y, t), eps = t == IR_F64 ? 0x1p-52 : 0x1p-23;
  if (isnan(a) && isnan(b)) return true;
  if (fabs(a) < 0x1p-126 && fabs(b) < 0x1p-126) return true; /* subnormals may be flushed; the sign of zero is free in MIN and MAX */
  return fabs(a - b) <= ulp * eps * fabs(b);
}

static void compare(const ir_kernel *k, const char *where, const arguments *got, const arguments *wanted, double ulp) {
  for (int i = 0; i < got->n; i++) {
    size_t size = (size_t)ir_type_bytes(got->type[i]);
    for (size_t j = 0; j < got->arg[i].bytes / size; j++) {
      const char *x = (char *)got->arg[i].data + j * size, *y = (char *)wanted->arg[i].data + j * size;
      if (near(x, y, got->type[i], ulp)) continue;
      uint64_t bits[2] = {0, 0};
      memcpy(&bits[0], x, size);
      memcpy(&bits[1], y, size);
      fail_msg("%s %s, %d x %d lanes: argument %d [%zu] (row %zu, column %zu): %#llx, wanted %#llx", where, k->name, (int)k->subgroups, (int)k->lanes, i, j, j / WIDTH,
               j % WIDTH, (unsigned long long)bits[0], (unsigned long long)bits[1]);
    }
  }
}

/* ---- tools ---- */

static bool has_tool(const char *name) {
  char command[200];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
  return system(command) == 0;
}

static char folder[64];

static void write_file(const char *name, const char *bytes, size_t n) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static char *read_file(const char *name, size_t *n) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  char *bytes = malloc(1 << 20);
  assert_non_null(f);
  assert_non_null(bytes);
  *n = fread(bytes, 1, 1 << 20, f);
  fclose(f);
  return bytes;
}

/* Runs a command in the folder; its output is shown only on failure. */
static void command(const char *what, const char *line) {
  char all[600];
  snprintf(all, sizeof all, "cd %s && { %s; } >log 2>&1 || { cat log >&2; exit 1; }", folder, line);
  if (system(all) != 0) fail_msg("%s: '%s' failed", what, line);
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/clebsch_spirv_XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char line[100];
  snprintf(line, sizeof line, "rm -r %s", folder);
  return system(line);
}

/* ---- tests ---- */

static void words_are_valid(void **state) {
  (void)state;
  if (!has_tool("spirv-val")) skip_because("spirv-val is not installed");
  for (int c = 0; c < CASES; c++)
    for (int dialect = 0; dialect < 4; dialect++) {
      bool subgroups = dialect & 1, float_atomics = dialect & 2;
      if (cases[c].crosses && !subgroups) continue;
      ir_kernel k;
      clb_text words = {0};
      build(&cases[c], 16, 1 + (c & 1), &k);
      print(&k, subgroups, float_atomics, &words);
      write_file("k.spv", words.s, words.n);
      command(cases[c].name, "spirv-val --target-env spv1.2 k.spv");
      clb_text_free(&words);
      ir_free(&k);
    }
}

static void intel_gpu_compiler_accepts(void **state) {
  (void)state;
  if (!has_tool("ocloc")) skip_because("ocloc is not installed");
  for (int c = 0; c < CASES; c++) {
    ir_kernel k;
    clb_text words = {0};
    build(&cases[c], c & 1 ? 32 : 16, 2, &k);
    print(&k, true, c & 1, &words);
    write_file("k.spv", words.s, words.n);
    command(cases[c].name, "ocloc compile -spirv_input -file k.spv -device pvc -options '-cl-fp32-correctly-rounded-divide-sqrt'");
    clb_text_free(&words);
    ir_free(&k);
  }
}

/* is_il: for a consumer of SPIR-V with sub-groups; else through LLVM's own form, without. */
static void words_for(const ir_kernel *k, bool is_il, bool float_atomics, clb_text *words) {
  print(k, is_il, float_atomics, words);
  if (is_il) return;
  write_file("k.spv", words->s, words->n);
  clb_text_free(words);
  command(k->name, "llvm-spirv-15 -r k.spv -o k.bc");
  words->s = read_file("k.bc", &words->n);
}

static void run_case(const test_case *c, opencl_runner *r, const char *where, bool is_il, int lanes, int subgroups, bool float_atomics) {
  ir_kernel k, legal;
  clb_text words = {0};
  arguments got, wanted;
  char log[4000];
  bool legalise = c->crosses && !is_il;
  build(c, lanes, subgroups, &k);
  if (legalise && !clb_legalise(&k, &legal)) fail_msg("%s: %s", c->name, legal.error);
  words_for(legalise ? &legal : &k, is_il, float_atomics, &words);
  fill(&k, c->special, &got);
  fill(&k, c->special, &wanted);
  interpret(&k, &wanted);
  if (!runner_run(r, is_il, words.s, words.n, c->name, GROUPS, (size_t)(lanes * subgroups), got.arg, got.n, log, sizeof log)) fail_msg("%s %s: %s", where, c->name, log);
  compare(&k, where, &got, &wanted, c->ulp);
  drop(&got);
  drop(&wanted);
  clb_text_free(&words);
  if (legalise) ir_free(&legal);
  ir_free(&k);
}

static void pocl_runs_them(void **state) {
  (void)state;
  opencl_runner r;
  if (!has_tool("llvm-spirv-15")) skip_because("llvm-spirv-15 is not installed");
  if (!runner_open(&r, "Portable Computing Language", "")) skip_because("PoCL is not installed");
  for (int c = 0; c < CASES; c++) run_case(&cases[c], &r, "PoCL", false, 8, cases[c].crosses ? 1 : 1 + (c & 1), false);
  runner_close(&r);
}

static void intel_cpu_runs_them(void **state) {
  (void)state;
  opencl_runner r;
  if (!runner_open(&r, "Intel(R) OpenCL", "")) skip_because("Intel's OpenCL driver for CPUs is not installed");
  for (int c = 0; c < CASES; c++)
    for (int lanes = 8; lanes <= 32; lanes *= 2) run_case(&cases[c], &r, "Intel CPU", true, lanes, lanes == 16 ? 1 : 2, lanes == 32);
  runner_close(&r);
}

/* ---- random kernels ---- */

enum { RANDOM_KERNELS = 40 };

static void take_data(const random_kernel *r, void **data, runner_argument *arg) {
  for (int i = 0; i < r->n; i++) {
    data[i] = random_kernel_data(r, i);
    bool buffer = r->parameter[i].type == IR_VOID;
    if (buffer) arg[i] = (runner_argument){data[i], random_kernel_bytes(r, i), true};
    else arg[i] = (runner_argument){(void *)&r->parameter[i].scalar, (size_t)ir_type_bytes(r->parameter[i].type), false};
  }
}

static void drop_data(const random_kernel *r, void **data) {
  for (int i = 0; i < r->n; i++) free(data[i]);
}

static void run_random(uint64_t seed, opencl_runner *r, const char *where, bool is_il, int lanes, int subgroups) {
  random_kernel random;
  ir_kernel legal;
  clb_text words = {0};
  void *wanted[RANDOM_PARAMETERS], *got[RANDOM_PARAMETERS];
  runner_argument arg[RANDOM_PARAMETERS];
  char log[4000];
  bool legalise = !is_il && subgroups == 1;
  random_kernel_make(&random, seed, lanes, subgroups, legalise || is_il ? RANDOM_ALL : RANDOM_ALL & ~RANDOM_SHUFFLES);
  if (random.k.error[0]) fail_msg("seed %d: %s", (int)seed, random.k.error);
  if (legalise && !clb_legalise(&random.k, &legal)) fail_msg("seed %d: %s", (int)seed, legal.error);
  words_for(legalise ? &legal : &random.k, is_il, seed & 1, &words);
  take_data(&random, wanted, arg);
  if (!random_kernel_run(&random, &random.k, wanted, log, sizeof log)) fail_msg("seed %d: %s", (int)seed, log);
  take_data(&random, got, arg);
  if (!runner_run(r, is_il, words.s, words.n, random.k.name, (size_t)random.groups, (size_t)(lanes * subgroups), arg, random.n, log, sizeof log))
    fail_msg("%s, seed %d: %s", where, (int)seed, log);
  if (!random_kernel_agree(&random, wanted, got, log, sizeof log)) fail_msg("%s, seed %d, %d x %d lanes: %s", where, (int)seed, subgroups, lanes, log);
  drop_data(&random, wanted);
  drop_data(&random, got);
  clb_text_free(&words);
  if (legalise) ir_free(&legal);
  random_kernel_free(&random);
}

static void pocl_runs_random_kernels(void **state) {
  (void)state;
  opencl_runner r;
  if (!has_tool("llvm-spirv-15")) skip_because("llvm-spirv-15 is not installed");
  if (!runner_open(&r, "Portable Computing Language", "")) skip_because("PoCL is not installed");
  for (uint64_t seed = 0; seed < RANDOM_KERNELS / 4; seed++) run_random(seed, &r, "PoCL", false, 4 << seed % 3, seed & 1 ? 2 : 1);
  runner_close(&r);
}

static void intel_cpu_runs_random_kernels(void **state) {
  (void)state;
  opencl_runner r;
  if (!runner_open(&r, "Intel(R) OpenCL", "")) skip_because("Intel's OpenCL driver for CPUs is not installed");
  for (uint64_t seed = 0; seed < RANDOM_KERNELS; seed++) run_random(seed, &r, "Intel CPU", true, 8 << seed % 3, 1 + (int)(seed / 3 % 3));
  runner_close(&r);
}

static void random_words_are_valid(void **state) {
  (void)state;
  if (!has_tool("spirv-val")) skip_because("spirv-val is not installed");
  for (uint64_t seed = 0; seed < RANDOM_KERNELS; seed++) {
    random_kernel random;
    clb_text words = {0};
    char what[40];
    random_kernel_make(&random, seed, 16, 2, RANDOM_ALL);
    print(&random.k, true, seed & 1, &words);
    write_file("k.spv", words.s, words.n);
    snprintf(what, sizeof what, "random kernel of seed %d", (int)seed);
    command(what, "spirv-val --target-env spv1.2 k.spv");
    if (seed % 8 == 0 && has_tool("ocloc")) command(what, "ocloc compile -spirv_input -file k.spv -device pvc");
    clb_text_free(&words);
    random_kernel_free(&random);
  }
}

/* ---- the kernels of ops ---- */

/* The passes of spherical harmonics up to l = 4, as a GPU with these sub-groups would run them: through local memory. */
static void lower(int pass, clb_dtype storage, int normalize, int lanes, ir_kernel *k) {
  clb_problem problem;
  clb_limits limits = {.lanes = {lanes, lanes}, .max_subgroups = 8, .local_bytes = 65536, .registers = 128, .units = 64, .subgroups = true, .f64 = true};
  clb_schedule schedule;
  char error[300];
  memset(&problem, 0, sizeof problem);
  problem.pass = pass;
  problem.storage = (int32_t)storage;
  problem.arithmetic = storage == CLB_F64 ? CLB_F64 : CLB_F32;
  problem.spherical_harmonics = (clb_spherical_harmonics_problem){.n_degrees = 5, .normalize = normalize, .degrees = {0, 1, 2, 3, 4}};
  clb_kernel_kinds[CLB_SPHERICAL_HARMONICS]->schedule(&problem, &limits, &schedule);
  clb_kernel_kinds[CLB_SPHERICAL_HARMONICS]->lower(&problem, &schedule, k);
  if (!ir_verify(k, error, sizeof error)) fail_msg("%s: %s", k->name, error);
}

/* n rows, back to back. */
static void fill_rows(const ir_kernel *k, int pass, int64_t n, arguments *a) {
  static const int64_t columns[3][5] = {{3, 25}, {3, 25, 3}, {3, 25, 3, 3, 25}};
  fill(k, false, a);
  memcpy(a->arg[0].data, &n, sizeof n);
  for (int i = 1; i < a->n; i += 3) {
    memset(a->arg[i + 1].data, 0, sizeof n);
    memcpy(a->arg[i + 2].data, &columns[pass][i / 3], sizeof n);
  }
}

static void run_rows(opencl_runner *r, int pass, clb_dtype storage, int normalize, int lanes) {
  ir_kernel k;
  clb_text words = {0};
  arguments got, wanted;
  char log[4000];
  lower(pass, storage, normalize, lanes, &k);
  int64_t n = 2 * k.rows + 5;
  print(&k, true, false, &words);
  fill_rows(&k, pass, n, &got);
  fill_rows(&k, pass, n, &wanted);
  interpret(&k, &wanted);
  if (!runner_run(r, true, words.s, words.n, k.name, GROUPS, (size_t)(k.lanes * k.subgroups), got.arg, got.n, log, sizeof log)) fail_msg("%s: %s", k.name, log);
  compare(&k, "Intel CPU", &got, &wanted, 0);
  drop(&got);
  drop(&wanted);
  clb_text_free(&words);
  ir_free(&k);
}

static void intel_cpu_runs_spherical_harmonics(void **state) {
  (void)state;
  opencl_runner r;
  if (!runner_open(&r, "Intel(R) OpenCL", "")) skip_because("Intel's OpenCL driver for CPUs is not installed");
  for (int pass = 0; pass < 3; pass++)
    for (int storage = 0; storage < 4; storage++) run_rows(&r, pass, (clb_dtype)storage, storage & 1, 8 << storage % 3);
  runner_close(&r);
}

/* ---- words ---- */

/* The scope of the only OpControlBarrier. */
static uint32_t barrier_scope(const clb_text *words) {
  uint32_t word[3], id = 0, scope = 0;
  for (int round = 0; round < 2; round++)
    for (size_t at = 20; at < words->n; at += 4 * (size_t)(word[0] >> 16)) {
      memcpy(word, words->s + at, sizeof word);
      if ((word[0] & 0xffff) == 224) id = word[1];                          /* OpControlBarrier scope ... */
      if ((word[0] & 0xffff) == 43 && word[2] == id) memcpy(&scope, words->s + at + 12, sizeof scope); /* OpConstant type id value */
    }
  return scope;
}

/* A sub-group meets alone only where the device has sub-groups. */
static void barriers_have_their_scope(void **state) {
  (void)state;
  for (int group = 0; group < 2; group++)
    for (int subgroups = 0; subgroups < 2; subgroups++) {
      ir_kernel k;
      clb_text words = {0};
      ir_begin(&k, "barriers", 16, 2, 32);
      ir_barrier(&k, group);
      assert_true(ir_finish(&k));
      print(&k, subgroups, false, &words);
      assert_int_equal(barrier_scope(&words), subgroups && !group ? 3 : 2);
      clb_text_free(&words);
      ir_free(&k);
    }
}

/* What cannot be said is refused with a sentence. */
static void refusals(void **state) {
  (void)state;
  ir_kernel k;
  clb_text words = {0};
  char error[300] = "";
  clb_dialect dialect = {.language = CLB_LANGUAGE_SPIRV};
  build(&cases[CASES - 1], 16, 1, &k);
  assert_false(clb_print_spirv(&k, &dialect, &words, error, sizeof error));
  assert_non_null(strstr(error, "legalise"));
  assert_int_equal(words.n, 0);
  ir_free(&k);
  ir_begin(&k, "many", 16, 1, 16);
  for (int i = 0; i < 129; i++) ir_scalar(&k, IR_I32);
  assert_true(ir_finish(&k));
  assert_false(clb_print_spirv(&k, &dialect, &words, error, sizeof error));
  assert_non_null(strstr(error, "128 parameters"));
  ir_free(&k);
  clb_text_free(&words);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_valid), cmocka_unit_test(intel_gpu_compiler_accepts), cmocka_unit_test(pocl_runs_them),
                                     cmocka_unit_test(intel_cpu_runs_them), cmocka_unit_test(random_words_are_valid),
                                     cmocka_unit_test(pocl_runs_random_kernels), cmocka_unit_test(intel_cpu_runs_random_kernels), cmocka_unit_test(intel_cpu_runs_spherical_harmonics), cmocka_unit_test(barriers_have_their_scope),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
