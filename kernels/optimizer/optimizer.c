/* kernels/optimizer/optimizer.c - the kind `optimizer`: its four kernels. */
#include "kernels/optimizer/chunks.h"

enum { MANY_REGISTERS = 200 }; /* Intel's GPUs have fewer */
enum { SUBGROUPS = 4, SUM_SUBGROUPS = 8, GPU_CHUNK = 2048, CPU_CHUNK = 4096 };
/* Sub-groups that each multiprocessor should have, and groups of SUMS. */
enum { SUBGROUPS_PER_UNIT = 16, SUMS_PER_UNIT = 4 };

int64_t clb_optimizer_chunk(const clb_limits *limits, int32_t type, int64_t elements) {
  const int64_t units = (int64_t)limits->units * (limits->simd ? 1 : SUBGROUPS_PER_UNIT),
                most = limits->simd ? CPU_CHUNK : GPU_CHUNK;
  int64_t chunk = 2 * (int64_t)limits->lanes[type] * clb_optimizer_width(type);
  while (2 * chunk <= most && 2 * chunk * (units > 0 ? units : 1) <= elements) chunk *= 2;
  return chunk;
}

int64_t clb_optimizer_sum_groups(const clb_limits *limits) {
  const int64_t units = limits->units > 0 ? limits->units : 1;
  return limits->simd ? units : units * SUMS_PER_UNIT;
}

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  return p->storage == CLB_F32 || p->storage == CLB_F64
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_INTERNAL, "optimizer: parameters of type %d", p->storage);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const int wanted = p->pass == CLB_OPTIMIZER_SUMS ? SUM_SUBGROUPS : SUBGROUPS;
  *s = (clb_schedule){.lanes = limits->lanes[p->storage], .subgroups = 1};
  if (limits->subgroups && !limits->simd)
    s->subgroups = wanted < limits->max_subgroups ? wanted : limits->max_subgroups;
  s->optimizer.wide = !limits->simd && p->optimizer.wide;
  s->optimizer.load_first = !limits->simd && limits->registers >= MANY_REGISTERS;
  s->optimizer.whole_steps = limits->simd;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static void (*const lowers[CLB_OPTIMIZER_KERNELS])(const clb_problem *, const clb_schedule *,
                                                     ir_kernel *) = {
      [CLB_OPTIMIZER_UPDATE] = clb_optimizer_lower_update,
      [CLB_OPTIMIZER_SUMS] = clb_optimizer_lower_sums,
      [CLB_OPTIMIZER_AVERAGE] = clb_optimizer_lower_average,
      [CLB_OPTIMIZER_CLEAR] = clb_optimizer_lower_clear,
      [CLB_OPTIMIZER_GATHER] = clb_optimizer_lower_gather,
      [CLB_OPTIMIZER_MOMENTS] = clb_optimizer_lower_moments,
  };
  lowers[p->pass](p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d rules", (int)p->optimizer.n_rules);
}

const clb_kernel_kind clb_kind_optimizer = {.name = "optimizer",
                                            .check = check,
                                            .schedule = schedule,
                                            .lower = lower,
                                            .print = print,
                                            .passes = CLB_OPTIMIZER_KERNELS};
