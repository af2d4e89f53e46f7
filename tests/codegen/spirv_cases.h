/* tests/codegen/spirv_cases.h - one hand-built kernel for each kind of instruction. */
#ifndef CLB_TESTS_CODEGEN_SPIRV_CASES_H
#define CLB_TESTS_CODEGEN_SPIRV_CASES_H

#include <math.h>

#include "src/ir/ir.h"

enum { GROUPS = 3, WIDTH = 16 }; /* launched; columns of an output row */

/* What the builders share: the number of this lane in the whole launch, its place in output arrays,
   and the mask of the tail. */
typedef struct {
  ir_kernel *k;
  ir_val lane, row, inside;
} builder;

static builder start(ir_kernel *k, const char *name, int lanes, int subgroups) {
  builder b = {.k = k};
  ir_begin(k, name, lanes, subgroups, lanes * subgroups);
  b.lane = ir_lane(k);
  ir_val first =
      ir_mul(k, ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, subgroups)), ir_subgroup(k)),
             ir_int(k, IR_I32, lanes));
  b.row = ir_add(k, first, b.lane);
  b.inside = ir_2(k, IR_LT, b.row, ir_int(k, IR_I32, GROUPS * subgroups * lanes - 3));
  return b;
}

static ir_val place(const builder *b, int columns, int column) {
  return ir_add(b->k, ir_mul(b->k, b->row, ir_int(b->k, IR_I32, columns)),
                ir_int(b->k, IR_I32, column));
}

static void put(const builder *b, ir_val out, int column, ir_val value) {
  ir_store(b->k, out, place(b, WIDTH, column), b->inside, value);
}

static ir_val get(const builder *b, ir_val in, int column) {
  return ir_load(b->k, in, place(b, WIDTH, column), IR_NONE);
}

static void floats(const builder *b, ir_type t) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, t, false), out = ir_buffer(k, t, true), s = ir_scalar(k, t),
         x = get(b, in, 0), y = get(b, in, 1), z = get(b, in, 2);
  static const ir_op two[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_MIN, IR_MAX};
  for (int i = 0; i < 6; i++) put(b, out, i, ir_2(k, two[i], x, y));
  put(b, out, 6, ir_1(k, IR_NEG, x));
  put(b, out, 7, ir_1(k, IR_ABS, x));
  put(b, out, 8, ir_fma(k, x, y, z));
  put(b, out, 9, ir_1(k, IR_SQRT, ir_1(k, IR_ABS, x)));
  put(b, out, 10, ir_sub(k, ir_mul(k, x, y), z)); /* must not be contracted */
  put(b, out, 11, ir_add(k, ir_sub(k, x, y), y)); /* must not be reassociated */
  put(b, out, 12, ir_select(k, ir_2(k, IR_LT, x, y), x, s));
  put(b, out, 13,
      ir_select(k, ir_2(k, IR_AND, ir_2(k, IR_LE, x, y), ir_1(k, IR_NOT, ir_2(k, IR_EQ, x, z))), y,
                z));
  put(b, out, 14,
      ir_select(k, ir_2(k, IR_OR, ir_2(k, IR_EQ, x, y), ir_2(k, IR_LE, z, x)),
                ir_real(k, t, 0x1.99999ap-4), ir_real(k, t, -INFINITY)));
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
  ir_val in = ir_buffer(k, t, false), out = ir_buffer(k, t, true), s = ir_scalar(k, t),
         x = get(b, in, 0), y = get(b, in, 1), one = ir_int(k, t, 1);
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
/* Of negative numbers, too. */
static void bits(const builder *b) {
  ir_kernel *k = b->k;
  ir_val in[] = {ir_buffer(k, IR_I32, false), ir_buffer(k, IR_I64, false)},
         out[] = {ir_buffer(k, IR_I32, true), ir_buffer(k, IR_I64, true)};
  for (int t = 0; t < 2; t++)
    for (int i = 0; i < WIDTH; i++) {
      const ir_type type = t ? IR_I64 : IR_I32;
      const bool high = !t && i % 2;
      ir_val x = ir_mul(k, get(b, in[t], i), ir_int(k, type, 0x5851f42d - 0x10000001L * (i - 3))),
             y = ir_mul(k, get(b, in[t], 15 - i), ir_int(k, type, 0x9e3779b9 - (1 << i)));
      put(b, out[t], i, ir_2(k, high ? IR_MUL_HIGH : IR_XOR, x, y));
    }
}
static void i32(const builder *b) { integers(b, IR_I32); }
static void i64(const builder *b) { integers(b, IR_I64); }

/* -most ... most, halves among them. */
static ir_val within(ir_kernel *k, ir_val v, double max) {
  ir_type t = (ir_type)k->ins[v].type;
  ir_val x = ir_mul(k, v, ir_real(k, t, 0x1.8p5));
  return ir_2(k, IR_MIN, ir_2(k, IR_MAX, x, ir_real(k, t, -max)), ir_real(k, t, max));
}

static void casts(const builder *b) {
  ir_kernel *k = b->k;
  static const ir_type type[] = {IR_I32, IR_I64, IR_F32, IR_F64};
  ir_val in[4], out[4];
  for (int t = 0; t < 4; t++)
    in[t] = get(b, ir_buffer(k, type[t], false), 0), out[t] = ir_buffer(k, type[t], true);
  in[0] = ir_sub(k, in[0], ir_mul(k, b->row, ir_int(k, IR_I32, 0x10003)));
  in[1] = ir_mul(k, in[1], ir_int(k, IR_I64, -0x123456789abcdef));
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      if (from < 2 || to > 1) put(b, out[to], from, ir_cast(k, type[to], in[from]));
      else
        put(b, out[to], from, ir_cast(k, type[to], within(k, in[from], to == 1 ? 0x1p61 : 0x1p30)));
}

static void memory(const builder *b, ir_type t) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, t, false), out = ir_buffer(k, t, true), wide = ir_buffer(k, t, true),
         v[WIDTH];
  ir_val far = ir_select(k, b->inside, ir_cast(k, IR_I64, place(b, WIDTH, 0)),
                         ir_int(k, IR_I64, INT64_C(1) << 60)); /* never touched */
  ir_load_wide(k, in, far, b->inside, WIDTH, v);
  ir_store_wide(k, out, far, b->inside, WIDTH, v);
  for (int j = 0; j < 3; j++)
    v[j] =
        ir_is_float(ir_register_type(t)) ? ir_1(k, IR_NEG, v[15 - j]) : ir_add(k, v[15 - j], v[j]);
  ir_store_wide(k, wide, place(b, WIDTH, 0), IR_NONE, 3, v);
  ir_load_wide(k, in, place(b, WIDTH, 1), IR_NONE, 3, v);
  ir_store_wide(k, wide, place(b, WIDTH, 3), IR_NONE, 3, v);
  put(b, wide, 6,
      ir_load(k, in, place(b, WIDTH, 5),
              ir_2(k, IR_EQ, ir_2(k, IR_MOD, b->row, ir_int(k, IR_I32, 3)), ir_int(k, IR_I32, 1))));
  put(b, wide, 7, ir_load(k, in, ir_group(k), IR_NONE));
}
static void memory_f32(const builder *b) { memory(b, IR_F32), memory(b, IR_I32); }
static void memory_f64(const builder *b) { memory(b, IR_F64), memory(b, IR_I64); }
static void memory_f16(const builder *b) { memory(b, IR_F16), memory(b, IR_BF16); }

/* Rounding of what lies between two numbers of 16 bits, and beyond them. */
static void narrow(const builder *b) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, IR_F32, false), half = ir_buffer(k, IR_F16, true),
         brain = ir_buffer(k, IR_BF16, true);
  ir_val x = get(b, in, 0), values[WIDTH];
  for (int j = 0; j < WIDTH; j++)
    values[j] = j < 8
                    ? get(b, in, j)
                    : ir_mul(k, x, ir_real(k, IR_F32, ldexp(j & 1 ? 1 : 1.0009765625, 3 * j - 30)));
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
                       : ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, k->lanes)),
                                ir_sub(k, ir_int(k, IR_I32, k->lanes - 1), b->lane));
  for (int t = 0; t < 6; t++) {
    ir_val in = ir_buffer(k, type[t], false), out = ir_buffer(k, type[t], true),
           one = ir_local(k, type[t], n), many = ir_local(k, type[t], 3 * n);
    ir_store(k, one, in_group, IR_NONE, get(b, in, t));
    ir_val kept = get(b, in, 5); /* across the barriers, negated */
    if (ir_is_float(ir_register_type(type[t]))) kept = ir_1(k, IR_NEG, kept);
    ir_copy(k, many, ir_mul(k, in_group, ir_int(k, IR_I32, 3)), in, place(b, WIDTH, 2),
            t & 1 ? b->inside : IR_NONE, 3);
    ir_copy_commit(k);
    ir_copy_wait(k, 0);
    ir_barrier(k, group);
    put(b, out, 0, ir_load(k, one, other, IR_NONE));
    ir_val v[3],
        copied = ir_2(k, IR_LT, ir_add(k, b->row, ir_int(k, IR_I32, 8)), ir_int(k, IR_I32, 2 * n));
    ir_load_wide(k, many, ir_mul(k, other, ir_int(k, IR_I32, 3)),
                 t & 1 ? ir_2(k, IR_AND, b->inside, copied) : b->inside, 3, v);
    for (int j = 0; j < 3; j++)
      put(b, out, 1 + j, t & 1 ? ir_select(k, copied, v[j], get(b, in, j)) : v[j]);
    ir_barrier(k, group);
    put(b, out, 4, kept);
  }
}
static void meet_group(const builder *b) { locals(b, true); }
static void meet_subgroup(const builder *b) { locals(b, false); }

static void control(const builder *b) {
  ir_kernel *k = b->k;
  ir_val in = ir_buffer(k, IR_F32, false), out = ir_buffer(k, IR_F32, true),
         count = ir_scalar(k, IR_I32), zero = ir_int(k, IR_I32, 0), one = ir_int(k, IR_I32, 1);
  ir_val sum = ir_var(k, ir_real(k, IR_F32, 0), false),
         odd = ir_var(k, ir_int(k, IR_BOOL, 0), true),
         turns = ir_var(k, ir_int(k, IR_I64, 0), true);
  ir_val i = ir_loop(k, ir_group(k), count, ir_int(k, IR_I32, 2));
  ir_val x = ir_load(k, in, ir_add(k, b->row, i), b->inside);
  ir_if(k, ir_2(k, IR_EQ, ir_2(k, IR_MOD, i, ir_int(k, IR_I32, 3)), zero));
  ir_set(k, sum, ir_fma(k, x, x, ir_get(k, sum)));
  ir_if(k, ir_get(k, odd));
  ir_set(k, sum, ir_sub(k, ir_get(k, sum), ir_real(k, IR_F32, 1)));
  ir_end(k);
  ir_else(k);
  ir_val j = ir_loop(k, ir_int(k, IR_I64, 1), ir_cast(k, IR_I64, i), ir_int(k, IR_I64, 3));
  ir_set(
      k, sum,
      ir_add(k, ir_get(k, sum), ir_load(k, in, ir_add(k, j, ir_cast(k, IR_I64, b->row)), IR_NONE)));
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
    ir_val sums = ir_buffer(k, IR_I32, false), out = ir_buffer(k, type[t], true),
           inner = ir_local(k, type[t], 4), total = ir_buffer(k, type[t], true);
    ir_val bin = ir_2(k, IR_MOD, get(b, sums, 0), ir_int(k, IR_I32, 4)),
           first = ir_2(k, IR_LT, b->lane, ir_int(k, IR_I32, 4));
    ir_val mine = ir_2(k, IR_MIN, b->lane, ir_int(k, IR_I32, 3)),
           leader = ir_2(k, IR_AND, first, ir_2(k, IR_EQ, ir_subgroup(k), ir_int(k, IR_I32, 0)));
    ir_store(k, inner, mine, leader, ir_real(k, type[t], 1));
    ir_barrier(k, true);
    ir_atomic_add(k, inner, bin, b->inside, ir_cast(k, type[t], b->row));
    ir_loop(k, ir_int(k, IR_I32, 0), ir_int(k, IR_I32, 50),
            ir_int(k, IR_I32, 1)); /* others add meanwhile */
    ir_atomic_add(k, total, bin, IR_NONE, ir_real(k, type[t], 2));
    ir_end(k);
    ir_barrier(k, true);
    ir_store(k, out, ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, 4)), mine), leader,
             ir_load(k, inner, mine, IR_NONE));
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
    for (int with = 1, j = 2; with < k->lanes; with *= 2, j++)
      put(b, out, j, ir_shuffle_xor(k, x, with));
    put(b, out, 8, ir_shuffle_xor(k, ir_add(k, x, x), k->lanes - 1));
    if (ir_is_float(type[t])) put(b, out, 9, ir_reduce_add(k, x));
  }
}

typedef struct {
  const char *name;
  void (*build)(const builder *b);
  bool crosses;  /* between lanes: tried with every sub-group size */
  bool shuffles; /* needs sub-groups, or must be lowered */
  bool special;  /* NaN, infinities and zeros among the inputs */
  double ulp;    /* allowed */
} test_case;

static const test_case cases[] = {{"f32", f32, false, false, true, 0},
                                  {"f64", f64, false, false, true, 0},
                                  {"functions", functions, false, false, false, 4},
                                  {"i32", i32, false, false, false, 0},
                                  {"i64", i64, false, false, false, 0},
                                  {"bits", bits, false, false, false, 0},
                                  {"casts", casts, false, false, true, 0},
                                  {"memory_f32", memory_f32, false, false, true, 0},
                                  {"memory_f64", memory_f64, false, false, true, 0},
                                  {"memory_f16", memory_f16, false, false, true, 0},
                                  {"narrow", narrow, false, false, true, 0},
                                  {"meet_group", meet_group, true, false, false, 0},
                                  {"meet_subgroup", meet_subgroup, true, false, false, 0},
                                  {"control", control, false, false, false, 0},
                                  {"atomics", atomics, true, false, false, 0},
                                  {"shuffles", shuffles, true, true, false, 0}};
enum { CASES = sizeof cases / sizeof *cases };

#endif
