/* tests/ir/ir_runs.h - kernels that tests build by hand. */
#ifndef CLB_TESTS_IR_IR_RUNS_H
#define CLB_TESTS_IR_IR_RUNS_H

#include "src/ir/interpreter/interpret_values.h"
#include "tests/test.h"

static inline void finish(ir_kernel *k) {
  char error[300];
  if (!ir_finish(k)) fail_msg("not built: %s", k->error);
  if (!ir_verify(k, error, sizeof error)) fail_msg("not valid: %s", error);
}

static inline void run(const ir_kernel *k, const ir_arg *arg, int64_t groups) {
  char error[300];
  if (!ir_run(k, arg, NULL, 0, groups, error, sizeof error)) fail_msg("%s", error);
}

static inline int count_op(const ir_kernel *k, ir_op op) {
  int n = 0;
  for (int32_t v = 0; v < k->n; v++) n += k->ins[v].op == op;
  return n;
}

/* Nearly every op; at[op] is the index of its first instruction. */
static inline void good(ir_kernel *k, ir_val *at) {
  ir_val e[4], m;
  ir_begin(k, "good", 8, 2, 16);
  ir_val x = ir_buffer(k, IR_F32, false), y = ir_buffer(k, IR_F32, true), n = ir_scalar(k, IR_I32),
         local = ir_local(k, IR_F32, 64);
  ir_val lane = ir_lane(k), i = ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, 8)), lane);
  m = ir_2(k, IR_LT, i, n);
  ir_val a = ir_load(k, x, i, m);
  ir_load_wide(k, x, ir_mul(k, i, ir_int(k, IR_I32, 4)), m, 4, e);
  ir_val sum = ir_var(k, ir_real(k, IR_F32, 0.5), true);
  ir_val r = ir_reduce_add(k, a), loop = ir_loop(k, ir_int(k, IR_I32, 0), n, ir_int(k, IR_I32, 2));
  ir_val inner = ir_fma(k, a, e[0], e[1]);
  ir_if(k, ir_2(k, IR_LT, loop, ir_subgroup(k)));
  ir_set(k, sum, r);
  ir_else(k);
  ir_atomic_add(k, y, i, m, inner);
  ir_end(k);
  ir_end(k);
  ir_copy(k, local, lane, x, i, m, 1);
  ir_copy_commit(k);
  ir_copy_wait(k, 0);
  ir_prefetch(k, x, i, 1);
  ir_barrier(k, true);
  ir_val s = ir_shuffle(k, a, ir_int(k, IR_I32, 3)), t = ir_shuffle_xor(k, e[3], 4);
  ir_val c = ir_select(k, ir_1(k, IR_NOT, m), s, ir_1(k, IR_SQRT, t)), d = ir_cast(k, IR_I64, i),
         q = ir_2(k, IR_MOD, n, ir_int(k, IR_I32, 5));
  ir_store(k, y, d, ir_2(k, IR_AND, m, ir_2(k, IR_EQ, q, n)), c);
  ir_store_wide(k, y, i, m, 2, (ir_val[]){ir_get(k, sum), ir_load(k, local, lane, IR_NONE)});
  finish(k);
  for (int op = 0; op < IR_OP_COUNT; op++) at[op] = IR_NONE;
  for (int32_t v = k->n - 1; v >= 0; v--) at[k->ins[v].op] = v; /* the first of each */
}

/* The verifier must refuse k with all these words. */
static inline void refuse(ir_kernel *k, const char *word, const char *more) {
  char error[300];
  if (ir_verify(k, error, sizeof error)) fail_msg("accepted; should say '%s'", word);
  if (!strstr(error, word) || !strstr(error, more))
    fail_msg("says '%s', should say '%s' and '%s'", error, word, more);
}

#endif
