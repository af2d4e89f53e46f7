/* kernels/optimizer/host/check.c - whether the description of an optimizer makes sense. */
#include "kernels/optimizer/host/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

const char *const clb_tensor_arrays[CLB_TENSOR_ARRAYS] = {"parameters", "gradients", "copy",
                                                          "average"};

const clb_place *clb_tensor_place(const clb_optimizer_tensor *t, int array) {
  const clb_place *const places[] = {&t->parameters, &t->gradients, &t->copy, &t->average};
  return places[array];
}

int32_t clb_optimizer_type(const clb_optimizer_desc *d, int array) {
  return (int32_t)(array == CLB_GRADIENTS ? d->gradients
                   : array == CLB_COPY    ? d->copy
                                          : d->parameters);
}

/* ---- groups ---- */

void clb_optimizer_fill_group(clb_optimizer_group *g) {
  double *const numbers[] = {&g->beta1, &g->beta2, &g->epsilon};
  const double given = g->epsilon;
  const bool soap = g->rule == CLB_SOAP;
  const double defaults[] = {soap ? 0.95 : 0.9, soap ? 0.95 : 0.999, 1e-8};
  for (int i = 0; i < 3; i++)
    *numbers[i] = *numbers[i] == 0 ? defaults[i] : *numbers[i] < 0 ? 0 : *numbers[i];
  if (soap && !g->refresh_steps) g->refresh_steps = 10;
  if (soap && !g->longest_side) g->longest_side = 1024;
  if (g->rule != CLB_MUON) return;
  if (given == 0) g->epsilon = clb_optimizer_muon_epsilon(g->muon);
  if (g->momentum == 0) g->momentum = 0.95;
}

clb_optimizer_rule clb_optimizer_rule_of(const clb_optimizer_group *g) {
  return (clb_optimizer_rule){(int32_t)g->rule, g->rule == CLB_SGD && g->momentum != 0,
                              g->nesterov != 0, g->amsgrad != 0,
                              (int32_t)g->muon, (int32_t)g->longest_side};
}

/* What numbers must be: below `end`, and at least 0. */
static clb_status check_numbers(clb_context *ctx, const char *call, int i,
                                const clb_optimizer_group *g) {
  const struct {
    const char *name;
    double x, end;
  } numbers[] = {{"lr", g->lr, INFINITY},
                 {"weight_decay", g->weight_decay, INFINITY},
                 {"beta1", g->beta1 < 0 ? 0 : g->beta1, 1},
                 {"beta2", g->beta2 < 0 ? 0 : g->beta2, 1},
                 {"epsilon", g->epsilon < 0 ? 0 : g->epsilon, INFINITY},
                 {"momentum", g->momentum, g->rule == CLB_MUON ? 1 : INFINITY},
                 {"dampening", g->dampening, INFINITY}};
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    const double x = numbers[k].x, end = numbers[k].end;
    if (x >= 0 && x < end) continue;
    return end < INFINITY
               ? OPTIMIZER_FAIL(ctx, "%s: %s of group %d is %g; it must be at least 0 and below %g",
                                call, numbers[k].name, i, x, end)
               : OPTIMIZER_FAIL(ctx, "%s: %s of group %d is %g; it must be finite and at least 0",
                                call, numbers[k].name, i, x);
  }
  return CLB_OK;
}

/* What only SOAP has. */
static clb_status check_counts(clb_context *ctx, const char *call, int i,
                               const clb_optimizer_group *g) {
  enum { MOST = 1000000 };
  const struct {
    const char *name;
    int64_t x;
  } counts[] = {{"refresh_steps", g->refresh_steps}, {"longest_side", g->longest_side}};
  for (int k = 0; k < 2; k++)
    if (counts[k].x < 0 || counts[k].x > (g->rule == CLB_SOAP ? MOST : 0))
      return OPTIMIZER_FAIL(ctx, "%s: %s of group %d is %" PRId64 "; it must be 0%s", call,
                            counts[k].name, i, counts[k].x,
                            g->rule == CLB_SOAP ? " ... 1000000" : ", as only CLB_SOAP has it");
  return CLB_OK;
}

static clb_status check_rule(clb_context *ctx, const char *call, int i,
                             const clb_optimizer_group *g) {
  const bool adam = g->rule == CLB_ADAM || g->rule == CLB_ADAMW;
  if ((unsigned)g->rule > CLB_SOAP)
    return OPTIMIZER_FAIL(ctx, "%s: rule of group %d is %d; it must be CLB_SGD ... CLB_SOAP", call,
                          i, (int)g->rule);
  if (g->rule == CLB_MUON ? (unsigned)g->muon > CLB_MUON_TORCH_RMS : g->muon != CLB_MUON_OPTAX)
    return OPTIMIZER_FAIL(ctx, "%s: muon of group %d is %d; it must be %s", call, i, (int)g->muon,
                          g->rule == CLB_MUON ? "CLB_MUON_OPTAX ... CLB_MUON_TORCH_RMS"
                                              : "0, as its rule is another");
  if (g->nesterov && g->rule == CLB_MUON)
    return OPTIMIZER_FAIL(ctx, "%s: nesterov of group %d: CLB_MUON always has it; it must be 0",
                          call, i);
  if (g->amsgrad && !adam)
    return OPTIMIZER_FAIL(ctx, "%s: amsgrad of group %d: only CLB_ADAM and CLB_ADAMW have it", call,
                          i);
  if (g->amsgrad && g->nesterov)
    return OPTIMIZER_FAIL(ctx, "%s: group %d has amsgrad and nesterov; it can have one", call, i);
  if (g->nesterov && !adam && g->rule != CLB_SGD)
    return OPTIMIZER_FAIL(ctx, "%s: nesterov of group %d: its rule has none", call, i);
  if (g->nesterov && g->rule == CLB_SGD && (!(g->momentum > 0) || g->dampening != 0))
    return OPTIMIZER_FAIL(ctx,
                          "%s: nesterov of group %d needs momentum, which is %g, and no dampening, "
                          "which is %g",
                          call, i, g->momentum, g->dampening);
  if ((g->momentum != 0 && g->rule != CLB_SGD && g->rule != CLB_MUON) ||
      (g->dampening != 0 && g->rule != CLB_SGD))
    return OPTIMIZER_FAIL(ctx,
                          "%s: momentum (of CLB_SGD and CLB_MUON) and dampening (of CLB_SGD) of "
                          "group %d: its rule has none",
                          call, i);
  if (g->rule == CLB_SCHEDULE_FREE_ADAMW && g->beta1 < 0)
    return OPTIMIZER_FAIL(ctx, "%s: beta1 of group %d: a schedule-free rule cannot do without it",
                          call, i);
  if (g->warm_up_steps < 0 || (g->warm_up_steps && g->rule != CLB_SCHEDULE_FREE_ADAMW))
    return OPTIMIZER_FAIL(ctx, "%s: warm_up_steps of group %d is %" PRId64 "; it must be %s", call,
                          i, g->warm_up_steps,
                          g->rule == CLB_SCHEDULE_FREE_ADAMW ? "at least 0"
                                                             : "0, as the rule has none");
  return CLB_OK;
}

clb_status clb_optimizer_check_group(clb_context *ctx, const char *call, int i,
                                     const clb_optimizer_group *g) {
  clb_status s = check_rule(ctx, call, i, g);
  if (!s) s = check_counts(ctx, call, i, g);
  return s ? s : check_numbers(ctx, call, i, g);
}

/* ---- tensors ---- */

#define FAIL(...) OPTIMIZER_FAIL(ctx, "clb_optimizer_create: " __VA_ARGS__)

static clb_status check_place(clb_context *ctx, const clb_optimizer_desc *d, int64_t i, int array) {
  const clb_optimizer_tensor *t = &d->tensors[i];
  const clb_place *p = clb_tensor_place(t, array);
  const char *name = clb_tensor_arrays[array];
  const int64_t n = clb_tensor_elements(t), bytes = clb_dtype_bytes(clb_optimizer_type(d, array));
  if (p->buffer->ctx != ctx)
    return FAIL("the buffer of the %s of tensor %" PRId64 " belongs to another context", name, i);
  const clb_memory *m = &p->buffer->memory;
  if (p->offset < 0 || (uint64_t)p->offset > m->bytes / (uint64_t)bytes ||
      (uint64_t)n > m->bytes / (uint64_t)bytes - (uint64_t)p->offset)
    return FAIL("the %s of tensor %" PRId64 ", %" PRId64 " x %" PRId64 " elements of %d bytes from "
                "number %" PRId64 " on, are not inside its buffer of %" PRIu64 " bytes",
                name, i, t->rows, t->columns, (int)bytes, p->offset, m->bytes);
  if (m->kind == CLB_POINTER && (uintptr_t)m->handle % (uintptr_t)bytes)
    return FAIL("the buffer of the %s of tensor %" PRId64 " starts at %p, which is not a multiple "
                "of an element's %d bytes",
                name, i, m->handle, (int)bytes);
  return CLB_OK;
}

/* Whether tensors have a place in this array: those with elements all have, or none has. */
static clb_status check_presence(clb_context *ctx, const clb_optimizer_desc *d, int64_t i,
                                 int array, bool wanted) {
  const bool has = clb_tensor_place(&d->tensors[i], array)->buffer;
  if (has == wanted) return CLB_OK;
  if (array <= CLB_GRADIENTS || (array == CLB_AVERAGE && d->ema))
    return FAIL("tensor %" PRId64 " has no buffer of %s%s", i, clb_tensor_arrays[array],
                array == CLB_AVERAGE ? ", which ema asks for" : "");
  return FAIL("tensor %" PRId64 " has %s buffer of %s, unlike others before; all must be alike", i,
              has ? "a" : "no", clb_tensor_arrays[array]);
}

static clb_status check_tensor(clb_context *ctx, const clb_optimizer_desc *d, int64_t i,
                               const bool *wanted) {
  const clb_optimizer_tensor *t = &d->tensors[i];
  int64_t n;
  clb_status s = CLB_OK;
  if (t->rows < 0 || t->columns < 0 || __builtin_mul_overflow(t->rows, t->columns, &n) ||
      n > INT64_MAX / 16)
    return FAIL("tensor %" PRId64 " has %" PRId64 " x %" PRId64
                " elements; both must be at least 0, and their product a size of memory",
                i, t->rows, t->columns);
  if (t->group < 0 || t->group >= d->n_groups)
    return FAIL("tensor %" PRId64 " is of group %d; there are groups 0 ... %d", i, t->group,
                d->n_groups - 1);
  for (int a = 0; a < CLB_TENSOR_ARRAYS && n && !s; a++) {
    s = check_presence(ctx, d, i, a, wanted[a]);
    if (!s && wanted[a]) s = check_place(ctx, d, i, a);
  }
  return s;
}

/* ---- tensors that overlap ---- */

typedef struct {
  uintptr_t memory;    /* a cl_mem, or a buffer without memory; 0: places are addresses */
  uint64_t first, end; /* bytes */
  int64_t tensor;
  int array;
} range;

static int by_place(const void *a, const void *b) {
  const range *x = a, *y = b;
  if (x->memory != y->memory) return x->memory < y->memory ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

static range range_of(const clb_optimizer_desc *d, int64_t i, int array) {
  const clb_optimizer_tensor *t = &d->tensors[i];
  const clb_place *p = clb_tensor_place(t, array);
  const clb_memory *m = &p->buffer->memory;
  const bool address = m->handle && m->kind == CLB_POINTER;
  const uint64_t bytes = (uint64_t)clb_dtype_bytes(clb_optimizer_type(d, array)),
                 start = address ? (uint64_t)(uintptr_t)m->handle : 0,
                 first = start + bytes * (uint64_t)p->offset;
  return (range){.memory = address ? 0 : (uintptr_t)(m->handle ? m->handle : (void *)p->buffer),
                 .first = first,
                 .end = first + bytes * (uint64_t)clb_tensor_elements(t),
                 .tensor = i,
                 .array = array};
}

/* Nothing that is written may be in two places; of the ranges before, the one that ends last tells.
 */
static clb_status check_ranges(clb_context *ctx, const range *r, int64_t n) {
  const range *last[2] = {NULL, NULL}; /* of the written, of all */
  for (int64_t i = 0; i < n; i++) {
    const bool writes = r[i].array != CLB_GRADIENTS;
    const range *x = last[writes];
    if (x && x->memory == r[i].memory && x->end > r[i].first)
      return FAIL("the %s of tensor %" PRId64 " and the %s of tensor %" PRId64 " overlap",
                  clb_tensor_arrays[x->array], x->tensor, clb_tensor_arrays[r[i].array],
                  r[i].tensor);
    for (int k = writes ? 0 : 1; k < 2; k++)
      if (!last[k] || last[k]->memory != r[i].memory || r[i].end > last[k]->end) last[k] = &r[i];
  }
  return CLB_OK;
}

static clb_status check_overlaps(clb_context *ctx, const clb_optimizer_desc *d) {
  range *r = malloc((size_t)d->n_tensors * CLB_TENSOR_ARRAYS * sizeof *r);
  int64_t n = 0;
  if (!r) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_optimizer_create: no memory");
  for (int64_t i = 0; i < d->n_tensors; i++)
    for (int a = 0; a < CLB_TENSOR_ARRAYS; a++)
      if (clb_tensor_elements(&d->tensors[i]) && clb_tensor_place(&d->tensors[i], a)->buffer)
        r[n++] = range_of(d, i, a);
  qsort(r, (size_t)n, sizeof *r, by_place);
  const clb_status s = check_ranges(ctx, r, n);
  free(r);
  return s;
}

/* ---- all of it ---- */

static clb_status check_types(clb_context *ctx, const clb_optimizer_desc *d) {
  if (d->parameters != CLB_F32 && d->parameters != CLB_F64)
    return FAIL("parameters is %d; it must be CLB_F32 or CLB_F64", (int)d->parameters);
  if (d->parameters == CLB_F64 && !ctx->device->limits.f64)
    return clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                    "clb_optimizer_create: parameters: %s has no double precision",
                    ctx->device->info.name);
  const struct {
    const char *name;
    clb_dtype type;
  } others[] = {{"gradients", d->gradients}, {"copy", d->copy}};
  for (int i = 0; i < 2; i++) {
    if ((unsigned)others[i].type > CLB_BF16)
      return FAIL("%s is %d; it must be CLB_F32, CLB_F64, CLB_F16 or CLB_BF16", others[i].name,
                  (int)others[i].type);
    if (others[i].type == CLB_F64 && d->parameters == CLB_F32)
      return FAIL("%s is CLB_F64, which is wider than the parameters' CLB_F32", others[i].name);
  }
  return CLB_OK;
}

static clb_status check_options(clb_context *ctx, const clb_optimizer_desc *d) {
  if ((unsigned)d->clip > CLB_CLIP_OPTAX)
    return FAIL("clip is %d; it must be CLB_CLIP_NONE ... CLB_CLIP_OPTAX", (int)d->clip);
  if (d->clip ? !(d->max_norm > 0) : d->max_norm != 0)
    return FAIL("max_norm is %g; it must be %s", d->max_norm,
                d->clip ? "above 0" : "0 without clipping");
  if ((unsigned)d->ema > CLB_EMA_CONSTANT)
    return FAIL("ema is %d; it must be CLB_EMA_NONE ... CLB_EMA_CONSTANT", (int)d->ema);
  if (d->ema ? !(d->ema_decay >= 0 && d->ema_decay < 1) : d->ema_decay != 0)
    return FAIL("ema_decay is %g; it must be %s", d->ema_decay,
                d->ema ? "at least 0 and below 1" : "0 without a moving average");
  return CLB_OK;
}

/* Averages are of ema, or of schedule-free rules. */
static clb_status check_averages(clb_context *ctx, const clb_optimizer_desc *d, bool averages) {
  bool free = false;
  for (int i = 0; i < d->n_groups; i++) free |= d->groups[i].rule == CLB_SCHEDULE_FREE_ADAMW;
  if (free && d->ema)
    return FAIL("ema: a schedule-free rule has averages of its own; ema must be CLB_EMA_NONE");
  if (averages && !free && !d->ema)
    return FAIL("tensors have a buffer of average, but ema is CLB_EMA_NONE and no rule is "
                "schedule-free");
  return CLB_OK;
}

clb_status clb_optimizer_check(clb_context *ctx, const clb_optimizer_desc *d) {
  bool wanted[CLB_TENSOR_ARRAYS] = {true, true, false, d->ema != CLB_EMA_NONE};
  clb_status s = check_types(ctx, d);
  if (!s) s = check_options(ctx, d);
  for (int i = 0; i < d->n_groups && !s; i++)
    s = clb_optimizer_check_group(ctx, "clb_optimizer_create", i, &d->groups[i]);
  for (int64_t i = d->n_tensors - 1; i >= 0; i--) { /* the first with elements decides */
    if (!d->tensors[i].rows || !d->tensors[i].columns) continue;
    wanted[CLB_COPY] = d->tensors[i].copy.buffer;
    if (!d->ema) wanted[CLB_AVERAGE] = d->tensors[i].average.buffer;
  }
  if (!s) s = check_averages(ctx, d, wanted[CLB_AVERAGE]);
  for (int64_t i = 0; i < d->n_tensors && !s; i++) s = check_tensor(ctx, d, i, wanted);
  if (!s) s = clb_optimizer_check_matrices(ctx, d);
  return s ? s : check_overlaps(ctx, d);
}
