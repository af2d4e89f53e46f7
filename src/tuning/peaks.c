/* src/tuning/peaks.c - peak rates of a device, measured with two generated kernels: a copy, and
   chains of multiply-adds. */

#include "src/runtime/call.h"

enum { IN_FLIGHT = 8, CHAINS = 16, TURNS = 256, SAMPLES = 7 };

/* A group has 256 lanes if possible. */
static int subgroups_of(const clb_limits *limits, int lanes) {
  int n = limits->simd ? 1 : 256 / lanes;
  if (n > limits->max_subgroups) n = limits->max_subgroups;
  return n < 1 ? 1 : n;
}

/* to[start + i] = from[start + i], in elements as wide as the device has; every lane has IN_FLIGHT
 loads in flight. */
static void copy_kernel(ir_kernel *k, const clb_limits *limits) {
  ir_type t = limits->f64 ? IR_F64 : IR_F32;
  int lanes = limits->lanes[limits->f64 ? CLB_F64 : CLB_F32],
      subgroups = subgroups_of(limits, lanes);
  int64_t block = (int64_t)lanes * IN_FLIGHT;
  ir_val v[IN_FLIGHT];
  ir_begin(k, "peak_copy", lanes, subgroups, (int)(block * subgroups * ir_type_bytes(t)));
  ir_val from = ir_buffer(k, t, false), to = ir_buffer(k, t, true), start = ir_scalar(k, IR_I64);
  ir_val group = ir_add(k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, subgroups)),
                        ir_cast(k, IR_I64, ir_subgroup(k)));
  ir_val first = ir_add(k, ir_add(k, ir_mul(k, group, ir_int(k, IR_I64, block)), start),
                        ir_cast(k, IR_I64, ir_lane(k)));
  for (int i = 0; i < IN_FLIGHT; i++)
    v[i] = ir_load(k, from, ir_add(k, first, ir_int(k, IR_I64, (int64_t)i * lanes)), IR_NONE);
  for (int i = 0; i < IN_FLIGHT; i++)
    ir_store(k, to, ir_add(k, first, ir_int(k, IR_I64, (int64_t)i * lanes)), IR_NONE, v[i]);
  ir_finish(k);
}

/* CHAINS independent chains of TURNS multiply-adds in every lane; their sum is stored so that none
   can be eliminated. */
static void fma_kernel(ir_kernel *k, const clb_limits *limits, clb_dtype type) {
  int lanes = limits->lanes[type], subgroups = subgroups_of(limits, lanes);
  ir_type t = type == CLB_F64 ? IR_F64 : IR_F32;
  ir_val var[CHAINS], sum = IR_NONE;
  ir_begin(k, type == CLB_F64 ? "peak_fma_f64" : "peak_fma_f32", lanes, subgroups,
           lanes * subgroups);
  ir_val to = ir_buffer(k, t, true), seed = ir_scalar(k, t),
         one = ir_int(k, IR_I32, 1); /* lanes start at 1: from 0 they would decay to slow
                                        subnormals */
  ir_val at = ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, lanes)), ir_lane(k));
  ir_val rows =
      ir_int(k, IR_I64, (int64_t)lanes * subgroups); /* each group writes its own elements */
  ir_val place =
      ir_add(k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), rows), ir_cast(k, IR_I64, at));
  ir_val start = ir_cast(k, t, ir_add(k, at, one)), scale = ir_mul(k, seed, ir_real(k, t, 0.5));
  for (int c = 0; c < CHAINS; c++) var[c] = ir_var(k, ir_add(k, start, ir_real(k, t, c)), false);
  ir_loop(k, ir_int(k, IR_I32, 0), ir_int(k, IR_I32, TURNS), one);
  for (int c = 0; c < CHAINS; c++) ir_set(k, var[c], ir_fma(k, ir_get(k, var[c]), scale, start));
  ir_end(k);
  for (int c = 0; c < CHAINS; c++)
    sum = sum == IR_NONE ? ir_get(k, var[c]) : ir_add(k, sum, ir_get(k, var[c]));
  ir_store(k, to, place, IR_NONE, sum);
  ir_finish(k);
}

typedef struct {
  clb_context *ctx;
  const clb_kernel *kernel;
  const clb_arg *args;
  int n_args;
} work;

/* Seconds of `batch` launches; s: an earlier error, or a new one. */
static double seconds_of(const work *w, int64_t groups, int batch, clb_status *s) {
  clb_device *d = w->ctx->device;
  const double start = clb_seconds_now();
  for (int i = 0; i < batch && !*s; i++)
    *s = clb_launch(w->ctx, w->kernel, groups, w->args, w->n_args);
  if (!*s) *s = d->backend->wait(d);
  return clb_seconds_now() - start;
}

/* The number of groups for a launch of LONGEST seconds, at most `most`: interpreters are slow. The
   first launch may compile, so the second one is timed. */
static int64_t groups_in_time(const work *w, int64_t most, clb_status *s) {
  static const double LONGEST = 0.05;
  const int64_t few = most < 256 ? 1 : most / 256;
  seconds_of(w, few, 1, s);
  const double t = seconds_of(w, few, 1, s), can = LONGEST / t * (double)few;
  return can >= (double)most ? most : can < 1 ? 1 : (int64_t)can;
}

/* Groups per second: the best of several sufficiently long batches. */
static clb_status best_rate(const work *w, int64_t most, double *rate) {
  clb_status s = CLB_OK;
  const int64_t groups = groups_in_time(w, most, &s);
  int batch = 1;
  *rate = 0;
  for (int sample = 0; sample < SAMPLES && !s; sample++) {
    const double t = seconds_of(w, groups, batch, &s) / batch;
    if (sample && (double)groups / t > *rate) *rate = (double)groups / t;
    if (t * batch < 5e-3) batch = (int)(5e-3 / t) + 1;
  }
  return s;
}

/* Writes random words: pages that are never written would all map to one page of zeros. */
static clb_status fill(clb_device *d, const clb_memory *m) {
  uint32_t piece[1 << 14], x = 1;
  clb_status s = CLB_OK;
  for (size_t i = 0; i < sizeof piece / sizeof *piece; i++)
    piece[i] = (x = x * 1664525u + 1013904223u) >> 9 | 0x3f800000u; /* floats in 1 ... 2 */
  for (uint64_t at = 0; at < m->bytes && !s; at += sizeof piece)
    s = d->backend->write(d, m, at, piece,
                          m->bytes - at < sizeof piece ? m->bytes - at : sizeof piece);
  return s;
}

/* Two arrays of so many bytes, and the kernel that copies one to the other. */
typedef struct {
  clb_context *ctx;
  clb_memory from, to;
  clb_kernel *kernel;
} copies;

static clb_status copies_make(copies *c, clb_context *ctx, uint64_t bytes) {
  clb_device *d = ctx->device;
  ir_kernel k;
  *c = (copies){.ctx = ctx};
  copy_kernel(&k, &d->limits);
  clb_status s = clb_kernel_get(ctx, &k, &c->kernel);
  if (!s) s = clb_device_alloc(d, bytes, &c->from);
  if (!s) s = clb_device_alloc(d, bytes, &c->to);
  return s ? s : fill(d, &c->from);
}

static void copies_free(copies *c) {
  clb_device *d = c->ctx->device;
  if (c->to.handle) clb_device_free(d, &c->to);
  if (c->from.handle) clb_device_free(d, &c->from);
}

/* Far more than any cache: 1 GiB on a GPU, 256 MiB through a CPU. */
static uint64_t beyond_caches(const clb_device *d) {
  const uint64_t bytes = d->limits.units > 64 || !d->limits.simd ? 1u << 29 : 1u << 27,
                 most = d->info.memory_bytes / 8;
  return most && bytes > most ? most : bytes;
}

static clb_status measure_copy(clb_context *ctx, double *rate) {
  const uint64_t bytes = beyond_caches(ctx->device);
  copies c;
  clb_status s = copies_make(&c, ctx, bytes);
  if (!s) {
    const clb_arg args[] = {clb_memory_arg(&c.from), clb_memory_arg(&c.to), clb_i64_arg(0)};
    const int rows = c.kernel->ir.rows; /* bytes per group of this kernel */
    s = best_rate(&(work){ctx, c.kernel, args, 3}, (int64_t)bytes / rows, rate);
    *rate *= 2.0 * rows;
  }
  copies_free(&c);
  return s;
}

/* Seconds of each of n copies, which follow each other through the arrays. */
static double one_after_the_other(const copies *c, int64_t groups, int n, clb_status *s) {
  clb_device *d = c->ctx->device;
  const int64_t element = d->limits.f64 ? 8 : 4, each = groups * c->kernel->ir.rows / element;
  const double start = clb_seconds_now();
  for (int i = 0; i < n && !*s; i++) {
    const clb_arg args[] = {clb_memory_arg(&c->from), clb_memory_arg(&c->to),
                            clb_i64_arg(i * each)};
    *s = clb_launch(c->ctx, c->kernel, groups, args, 3);
  }
  if (!*s) *s = d->backend->wait(d);
  return (clb_seconds_now() - start) / n;
}

clb_status clb_measure_copy(clb_context *ctx, uint64_t bytes, double *seconds) {
  clb_status s = clb_context_check(ctx, __func__);
  if (!s) s = clb_not_recording(ctx, __func__);
  if (s) return s;
  if (!seconds || bytes < 2 || bytes > INT64_MAX / 4)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_measure_copy: bytes is %llu, seconds %s; there must be 2 bytes, and a "
                    "place for the seconds",
                    (unsigned long long)bytes, seconds ? "is there" : "is NULL");
  if ((s = clb_check_runs(ctx))) return s;
  const int64_t around = (int64_t)beyond_caches(ctx->device) / 2;
  copies c;
  const int64_t half = (int64_t)(bytes / 2), times = half < around ? around / half : 1;
  const int n = times < 64 ? (int)times : 64;
  s = copies_make(&c, ctx, (uint64_t)(n * (half + (1 << 20))));
  const int64_t groups = s ? 1 : (half + c.kernel->ir.rows - 1) / c.kernel->ir.rows;
  *seconds = 0;
  for (int sample = 0; sample < SAMPLES && !s; sample++) {
    const double t = one_after_the_other(&c, groups, n, &s);
    if (sample && (sample == 1 || t < *seconds)) *seconds = t;
  }
  copies_free(&c);
  return s;
}

static clb_status measure_fma(clb_context *ctx, clb_dtype type, double *rate) {
  clb_device *d = ctx->device;
  clb_kernel *kernel;
  ir_kernel k;
  clb_memory to = {0};
  fma_kernel(&k, &d->limits, type);
  clb_status s = clb_kernel_get(ctx, &k, &kernel);
  const int64_t groups = (int64_t)d->limits.units * 256;
  if (!s)
    s = clb_device_alloc(d, (uint64_t)(groups * kernel->ir.rows * clb_dtype_bytes((int32_t)type)),
                         &to);
  if (!s) {
    clb_arg args[] = {clb_memory_arg(&to), {.type = type == CLB_F64 ? IR_F64 : IR_F32}};
    if (type == CLB_F64) args[1].f64 = 1;
    else args[1].f32 = 1;
    s = best_rate(&(work){ctx, kernel, args, 2}, groups, rate);
    *rate *= 2.0 * CHAINS * TURNS * kernel->ir.rows;
  }
  if (to.handle) clb_device_free(d, &to);
  return s;
}

clb_status clb_measure_peaks(clb_context *ctx, double *copy, double *f32, double *f64) {
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  if (!copy || !f32 || !f64)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_measure_peaks: %s is NULL",
                    !copy  ? "copy_bytes_per_second"
                    : !f32 ? "f32_per_second"
                           : "f64_per_second");
  if ((s = clb_check_runs(ctx))) return s;
  *copy = *f32 = *f64 = 0;
  s = measure_copy(ctx, copy);
  if (!s) s = measure_fma(ctx, CLB_F32, f32);
  if (!s && ctx->device->limits.f64) s = measure_fma(ctx, CLB_F64, f64);
  return s;
}
