/* kernels/optimizer/host/create.c - an optimizer's kernels and memory. */
#include "kernels/optimizer/host/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "src/runtime/call.h"

enum {
  UNITS_PER_UNIT = 32
}; /* sub-groups of a multiprocessor, where each of them adds up the sums
      of all */

static clb_status no_memory(clb_context *ctx) {
  return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_optimizer_create: no memory");
}

/* ---- kernels ---- */

static bool needs(const clb_optimizer *o, int kernel) {
  bool free = false;
  for (int i = 0; i < o->problem.optimizer.n_rules; i++)
    free |= o->problem.optimizer.rule[i].rule == CLB_SCHEDULE_FREE_ADAMW;
  const bool needed[CLB_OPTIMIZER_KERNELS] = {
      [CLB_OPTIMIZER_UPDATE] = true,
      [CLB_OPTIMIZER_SUMS] = clb_optimizer_sums(&o->problem.optimizer),
      [CLB_OPTIMIZER_AVERAGE] = free && clb_optimizer_has(o, CLB_AVERAGE),
      [CLB_OPTIMIZER_CLEAR] = o->n_states > 0,
      [CLB_OPTIMIZER_GATHER] = o->problem.optimizer.gathers,
      [CLB_OPTIMIZER_MOMENTS] = o->problem.optimizer.soap};
  return needed[kernel];
}

static clb_status compile(clb_optimizer *o) {
  const clb_kernel_kind *kind = clb_kernel_kinds[CLB_OPTIMIZER];
  const clb_limits *limits = &o->ctx->device->limits;
  clb_status s = CLB_OK;
  for (int i = 0; i < CLB_OPTIMIZER_KERNELS && !s; i++) {
    clb_schedule schedule;
    ir_kernel k;
    if (!needs(o, i)) continue;
    o->problem.pass = i;
    s = kind->check(&o->problem, limits, &o->ctx->error);
    if (s) break;
    kind->schedule(&o->problem, limits, &schedule);
    schedule.scalar_access = (o->ctx->disabled & CLB_WIDE_ACCESSES) != 0;
    kind->lower(&o->problem, &schedule, &k);
    s = clb_kernel_get(o->ctx, &k, &o->kernel[i]);
  }
  return s;
}

/* ---- memory ---- */

static clb_status upload(clb_optimizer *o, const void *from, uint64_t bytes, clb_memory *to) {
  clb_device *d = o->ctx->device;
  const clb_status s = clb_device_alloc(d, bytes, to);
  return s ? s : d->backend->write(d, to, 0, from, bytes);
}

static void put(int32_t type, void *to, int64_t i, double x) {
  if (type == CLB_F64) ((double *)to)[i] = x;
  else ((float *)to)[i] = (float)x;
}

/* What every chunk keeps, before the first step. */
static clb_status make_kept(clb_optimizer *o) {
  const int32_t type = o->problem.storage;
  const uint64_t bytes = (uint64_t)clb_dtype_bytes(type) * CLB_POWERS, n = (uint64_t)o->n_chunks;
  void *powers = calloc(n, bytes);
  int32_t *counts = calloc(n, CLB_COUNTS * sizeof *counts);
  clb_status s = powers && counts ? CLB_OK : no_memory(o->ctx);
  for (int64_t i = 0; i < o->n_chunks && !s; i++)
    for (int p = CLB_POWER_BETA1; p <= CLB_POWER_BETA2; p += CLB_POWER_BETA2 - CLB_POWER_BETA1)
      put(type, powers, i * CLB_POWERS + p, 1);
  if (!s) s = upload(o, powers, n * bytes, &o->powers);
  if (!s) s = upload(o, counts, n * CLB_COUNTS * sizeof *counts, &o->counts);
  free(powers);
  free(counts);
  return s;
}

static clb_status clear(clb_optimizer *o, const clb_memory *m, int64_t elements) {
  const clb_kernel *kernel = o->kernel[CLB_OPTIMIZER_CLEAR];
  clb_call c = clb_call_start(o->ctx);
  clb_call_i64(&c, elements);
  clb_call_memory(&c, m);
  return clb_call_launch(&c, kernel, clb_divide_up(elements, kernel->ir.rows));
}

static clb_status make_states(clb_optimizer *o) {
  const uint64_t bytes = (uint64_t)clb_dtype_bytes(o->problem.storage);
  clb_status s = CLB_OK;
  for (int i = 0; i < o->n_states && !s; i++) {
    const int64_t n = o->state_elements[i] ? o->state_elements[i] : 1;
    s = clb_device_alloc(o->ctx->device, (uint64_t)n * bytes, &o->state[i]);
    if (!s) s = clear(o, &o->state[i], n);
  }
  return s;
}

/* 0, so that nothing is read that nobody has written, where the first gradients are left out. */
static clb_status make_matrices(clb_optimizer *o) {
  const uint64_t bytes = clb_optimizer_matrix_bytes(o);
  if (!o->problem.optimizer.gathers) return CLB_OK;
  clb_status s = clb_device_alloc(o->ctx->device, bytes, &o->matrix);
  if (!s && o->soap)
    s = clb_device_alloc(o->ctx->device, (uint64_t)o->n_chunks * sizeof(int32_t), &o->gates);
  return s ? s : clear(o, &o->matrix, (int64_t)bytes / clb_dtype_bytes(o->problem.storage));
}

/* Lists of partial sums: those of squares, and of what tells whether numbers are finite. */
static clb_status make_sums(clb_optimizer *o) {
  const uint64_t bytes = (uint64_t)clb_dtype_bytes(o->problem.storage);
  const double none[CLB_NORMS] = {0};
  if (!o->kernel[CLB_OPTIMIZER_SUMS]) return CLB_OK;
  const clb_limits *limits = &o->ctx->device->limits;
  const int64_t per = o->kernel[CLB_OPTIMIZER_SUMS]->ir.subgroups,
                most = clb_optimizer_sum_groups(limits), wanted = clb_divide_up(o->n_chunks, per);
  o->n_sums = wanted < most ? wanted : most;
  clb_status s = clb_device_alloc(o->ctx->device, 2 * (uint64_t)o->n_sums * bytes, &o->sums);
  return s ? s : upload(o, none, CLB_NORMS * bytes, &o->norms);
}

/* Which group each chunk is of. */
static clb_status note_groups(clb_optimizer *o, const int64_t *table) {
  o->group_of_chunk = malloc((size_t)o->n_chunks * sizeof *o->group_of_chunk);
  o->chunk_of_group = malloc((size_t)o->desc.n_groups * sizeof *o->chunk_of_group);
  if (!o->group_of_chunk || !o->chunk_of_group) return no_memory(o->ctx);
  for (int i = 0; i < o->desc.n_groups; i++) o->chunk_of_group[i] = -1;
  for (int64_t i = o->n_chunks - 1; i >= 0; i--) {
    const int64_t group = table[i * CLB_CHUNK_COLUMNS + CLB_CHUNK_GROUP];
    o->group_of_chunk[i] = (int32_t)group;
    o->chunk_of_group[group] = i;
  }
  return CLB_OK;
}

static clb_status make_table(clb_optimizer *o) {
  int64_t *table = clb_optimizer_make_table(o);
  clb_status s = table ? CLB_OK : no_memory(o->ctx);
  if (!s && o->n_chunks > INT32_MAX / 16)
    s = clb_fail(&o->ctx->error, CLB_ERROR_UNSUPPORTED,
                 "clb_optimizer_create: %lld chunks of tensors are too many",
                 (long long)o->n_chunks);
  if (!s)
    s = upload(o, table, (uint64_t)o->n_chunks * CLB_CHUNK_COLUMNS * sizeof *table, &o->table);
  if (!s) s = note_groups(o, table);
  free(table);
  return s;
}

static clb_status allocate(clb_optimizer *o) {
  const uint64_t numbers =
      (uint64_t)clb_dtype_bytes(o->problem.storage) * CLB_NUMBERS * (uint64_t)o->desc.n_groups;
  clb_status s = make_table(o);
  if (!s) s = make_kept(o);
  if (!s) s = make_states(o);
  if (!s) s = make_matrices(o);
  if (!s) s = make_sums(o);
  if (!s) s = clb_device_alloc(o->ctx->device, numbers, &o->numbers);
  for (int i = 0; i < o->desc.n_groups && !s; i++) s = clb_optimizer_write_group(o, i);
  const int64_t most = (int64_t)o->ctx->device->limits.units * UNITS_PER_UNIT;
  o->n_units = o->n_sums && most > 0 && most < o->n_chunks ? most : o->n_chunks;
  return s;
}

/* ---- numbers of a group ---- */

clb_status clb_optimizer_write_group(clb_optimizer *o, int i) {
  const clb_optimizer_group *g = &o->groups[i];
  const bool momentum = g->rule == CLB_SGD || g->rule == CLB_MUON,
             single = o->problem.storage == CLB_F32;
  const int32_t type = o->problem.storage;
  double x[CLB_NUMBERS] = {[CLB_NUMBER_LR] = g->lr,
                           [CLB_NUMBER_BETA1] = momentum ? g->momentum : g->beta1,
                           [CLB_NUMBER_BETA2] = g->beta2,
                           [CLB_NUMBER_ONE_MINUS_BETA1] = 1 - (g->rule == CLB_SGD    ? g->dampening
                                                               : g->rule == CLB_MUON ? g->momentum
                                                                                     : g->beta1),
                           [CLB_NUMBER_ONE_MINUS_BETA2] = 1 - g->beta2,
                           [CLB_NUMBER_EPSILON] = g->epsilon,
                           [CLB_NUMBER_WEIGHT_DECAY] = g->weight_decay,
                           [CLB_NUMBER_KEPT] = 1 - g->lr * g->weight_decay,
                           [CLB_NUMBER_WARM_UP] = (double)g->warm_up_steps,
                           [CLB_NUMBER_TO_AVERAGE] = g->beta1 > 0 ? 1 - 1 / g->beta1 : 0,
                           [CLB_NUMBER_REFRESH] = (double)g->refresh_steps};
  double in_type[CLB_NUMBERS]; /* or floats, in half of it */
  for (int n = CLB_NUMBER_LR; n <= CLB_NUMBER_BETA2 && single; n += 2)
    x[n + 1] = x[n] - (double)(float)x[n];
  for (int n = 0; n < CLB_NUMBERS; n++) put(type, in_type, n, x[n]);
  const uint64_t bytes = (uint64_t)clb_dtype_bytes(type) * CLB_NUMBERS;
  return clb_post(o->ctx, &o->numbers, (uint64_t)i * bytes, in_type, bytes);
}

/* ---- create, destroy ---- */

static clb_status copy_description(clb_optimizer *o, const clb_optimizer_desc *d) {
  const size_t tensors = (size_t)d->n_tensors * sizeof *o->tensors,
               groups = (size_t)d->n_groups * sizeof *o->groups;
  o->tensors = malloc(tensors);
  o->groups = malloc(groups);
  if (!o->tensors || !o->groups) return no_memory(o->ctx);
  memcpy(o->tensors, d->tensors, tensors);
  memcpy(o->groups, d->groups, groups);
  o->desc = *d;
  o->desc.tensors = o->tensors;
  o->desc.groups = o->groups;
  for (int i = 0; i < d->n_groups; i++) clb_optimizer_fill_group(&o->groups[i]);
  o->problem.kind = CLB_OPTIMIZER;
  o->problem.storage = o->problem.arithmetic = (int32_t)d->parameters;
  o->problem.optimizer = (clb_optimizer_problem){.gradients = (int32_t)d->gradients,
                                                 .copy = (int32_t)d->copy,
                                                 .clip = (int32_t)d->clip,
                                                 .check_finite = d->check_finite != 0,
                                                 .ema = (int32_t)d->ema};
  return CLB_OK;
}

clb_status clb_optimizer_make(clb_context *ctx, const clb_optimizer_desc *d,
                              clb_optimizer **optimizer) {
  clb_optimizer *o = *optimizer = calloc(1, sizeof *o);
  if (!o) return no_memory(ctx);
  o->ctx = clb_context_hold(ctx);
  clb_status s = copy_description(o, d);
  if (!s) s = clb_optimizer_find_arrays(o);
  if (!s) s = clb_optimizer_plan_matrices(o);
  if (!s) s = compile(o);
  if (!s && ctx->device->info.runs) s = allocate(o);
  if (s) clb_optimizer_destroy(optimizer);
  return s;
}

void clb_optimizer_destroy(clb_optimizer **optimizer) {
  if (!optimizer || !*optimizer) return;
  clb_optimizer *o = *optimizer;
  clb_context *ctx = o->ctx;
  clb_memory *own[] = {&o->table, &o->numbers,  &o->powers,   &o->counts,  &o->sums,
                       &o->norms, &o->state[0], &o->state[1], &o->state[2]};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i]->handle) clb_memory_free(ctx, own[i]);
  clb_optimizer_free_matrices(o);
  free(o->tensors);
  free(o->groups);
  free(o->group_of_chunk);
  free(o->chunk_of_group);
  free(o);
  *optimizer = NULL;
  clb_context_release(ctx);
}
