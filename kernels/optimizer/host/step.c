/* kernels/optimizer/host/step.c - the launches of a step. */
#include "kernels/optimizer/host/optimizer.h"

#include "src/runtime/call.h"

/* Chunks, sub-groups and the table; returns the groups of a launch that goes over all chunks. */
static int64_t begin(clb_call *c, clb_optimizer *o, const clb_kernel *kernel, int64_t units) {
  const int64_t groups = clb_divide_up(units, kernel->ir.subgroups);
  *c = clb_call_start(o->ctx);
  clb_call_i32(c, o->n_chunks);
  clb_call_i32(c, groups * kernel->ir.subgroups);
  clb_call_memory(c, &o->table);
  return groups;
}

/* Where no tensor has elements, nothing of the array is touched. */
static void add_array(clb_call *c, const clb_optimizer *o, int array) {
  clb_call_memory(c, o->array[array].handle ? &o->array[array] : NULL);
}

static void add_sums(clb_call *c, const clb_optimizer *o) {
  if (!o->kernel[CLB_OPTIMIZER_SUMS]) return;
  clb_call_real(c, o->problem.storage, o->desc.max_norm);
  clb_call_memory(c, &o->sums);
  clb_call_i32(c, o->n_sums);
}

static clb_status sum_squares(clb_optimizer *o) {
  clb_call c;
  const clb_kernel *kernel = o->kernel[CLB_OPTIMIZER_SUMS];
  if (!kernel) return CLB_OK;
  const int64_t groups = begin(&c, o, kernel, o->n_sums * kernel->ir.subgroups);
  add_array(&c, o, CLB_GRADIENTS);
  clb_call_memory(&c, &o->sums);
  clb_call_i32(&c, o->n_sums);
  return clb_call_launch(&c, kernel, groups);
}

static clb_status gather(clb_optimizer *o) {
  clb_call c;
  const clb_kernel *kernel = o->kernel[CLB_OPTIMIZER_GATHER];
  if (!kernel) return CLB_OK;
  const int64_t groups = begin(&c, o, kernel, o->n_units);
  clb_call_memory(&c, &o->numbers);
  clb_call_memory(&c, &o->powers);
  clb_call_memory(&c, &o->counts);
  add_array(&c, o, CLB_GRADIENTS);
  clb_call_memory(&c, &o->state[0]);
  clb_call_memory(&c, &o->matrix);
  if (o->soap) clb_call_memory(&c, &o->gates);
  add_sums(&c, o);
  return clb_call_launch(&c, kernel, groups);
}

static clb_status moments(clb_optimizer *o) {
  clb_call c;
  const clb_kernel *kernel = o->kernel[CLB_OPTIMIZER_MOMENTS];
  if (!kernel) return CLB_OK;
  const int64_t groups = begin(&c, o, kernel, o->n_units);
  clb_call_memory(&c, &o->numbers);
  clb_call_memory(&c, &o->gates);
  clb_call_memory(&c, &o->state[1]);
  clb_call_memory(&c, &o->matrix);
  return clb_call_launch(&c, kernel, groups);
}

static clb_status update(clb_optimizer *o) {
  clb_call c;
  const clb_optimizer_problem *p = &o->problem.optimizer;
  const clb_kernel *kernel = o->kernel[CLB_OPTIMIZER_UPDATE];
  const int32_t type = o->problem.storage;
  const int64_t groups = begin(&c, o, kernel, o->n_units);
  clb_call_memory(&c, &o->numbers);
  clb_call_memory(&c, &o->powers);
  clb_call_memory(&c, &o->counts);
  add_array(&c, o, CLB_PARAMETERS);
  add_array(&c, o, CLB_GRADIENTS);
  if (p->copies) add_array(&c, o, CLB_COPY);
  if (p->ema) add_array(&c, o, CLB_AVERAGE);
  for (int i = 0; i < o->n_states; i++) clb_call_memory(&c, &o->state[i]);
  if (p->gathers) clb_call_memory(&c, &o->matrix);
  if (p->ema) {
    clb_call_real(&c, type, o->desc.ema_decay);
    clb_call_real(&c, type, 1 - o->desc.ema_decay);
  }
  add_sums(&c, o);
  if (clb_optimizer_sums(p)) clb_call_memory(&c, &o->norms);
  return clb_call_launch(&c, kernel, groups);
}

clb_status clb_optimizer_step(clb_optimizer *o) {
  if (!o) return clb_null(__func__, "optimizer");
  clb_status s = clb_check_runs(o->ctx);
  if (!s) s = sum_squares(o);
  if (!s) s = gather(o);
  if (!s) s = clb_optimizer_rotate(o);
  if (!s) s = moments(o);
  if (!s) s = clb_optimizer_run_matrices(o);
  return s ? s : update(o);
}

clb_status clb_optimizer_average(clb_optimizer *o) {
  clb_call c;
  if (!o) return clb_null(__func__, "optimizer");
  const clb_kernel *kernel = o->kernel[CLB_OPTIMIZER_AVERAGE];
  if (!kernel)
    return clb_fail(&o->ctx->error, CLB_ERROR_ARGUMENT, "clb_optimizer_average: %s",
                    o->desc.ema ? "the moving average is already where it should be"
                                : "no rule is schedule-free, or tensors have no buffer of average");
  const int64_t groups = begin(&c, o, kernel, o->n_chunks);
  clb_call_memory(&c, &o->numbers);
  clb_call_memory(&c, &o->counts);
  add_array(&c, o, CLB_PARAMETERS);
  add_array(&c, o, CLB_AVERAGE);
  clb_call_memory(&c, &o->state[1]);
  return clb_call_launch(&c, kernel, groups);
}
