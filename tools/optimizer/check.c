/* tools/optimizer/check.c - optimizers against a float64 reference, for `clebsch check`. */
#include "tools/optimizer/optimizer_tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"
#include "tools/common/random.h"

enum { STEPS = 100, TENSORS = 5 };
static const int64_t shapes[TENSORS][2] = {{33, 31}, {1, 1}, {64, 16}, {7, 1}, {0, 3}};
enum { ELEMENTS = 33 * 31 + 1 + 64 * 16 + 7 };

#define ADAM(...)                                                                                  \
  { .rule = CLB_ADAM, .lr = 0.01, __VA_ARGS__ }
#define ADAMW(...)                                                                                 \
  { .rule = CLB_ADAMW, .lr = 0.01, .weight_decay = 0.1, __VA_ARGS__ }
#define MUON(whose)                                                                                \
  { .rule = CLB_MUON, .muon = CLB_MUON_##whose, .lr = 0.02, .weight_decay = 0.1 }
#define SOAP                                                                                       \
  { .rule = CLB_SOAP, .lr = 0.01, .weight_decay = 0.1, .longest_side = SOAP_LONGEST }
#define F32_ONLY .parameters = CLB_F32, .gradients = CLB_F32
#define F64_ONLY .parameters = CLB_F64, .gradients = CLB_F64
const tool_training optimizer_checks[] = {
    {.name = "sgd", .group = {.rule = CLB_SGD, .lr = 0.02}, F32_ONLY},
    {.name = "sgd momentum nesterov",
     .group = {.rule = CLB_SGD, .lr = 0.02, .momentum = 0.9, .nesterov = 1},
     F32_ONLY},
    {.name = "adam", .group = ADAM(.beta1 = 0.8), F32_ONLY},
    {.name = "adam amsgrad", .group = ADAM(.amsgrad = 1), F64_ONLY},
    {.name = "adam nesterov", .group = ADAM(.nesterov = 1), F32_ONLY},
    {.name = "adamw, clip, ema",
     .group = ADAMW(.amsgrad = 0),
     F32_ONLY,
     .clip = CLB_CLIP_TORCH,
     .max_norm = 20,
     .ema = CLB_EMA_WARM_UP,
     .ema_decay = 0.99},
    {.name = "adamw, gradients and a copy in bf16",
     .group = ADAMW(.amsgrad = 1),
     .parameters = CLB_F32,
     .gradients = CLB_BF16,
     .copies = true,
     .copy = CLB_BF16},
    {.name = "adamw, gradients in f16",
     .group = ADAMW(.amsgrad = 0),
     .parameters = CLB_F32,
     .gradients = CLB_F16},
    {.name = "muon of optax", .group = MUON(OPTAX), F32_ONLY},
    {.name = "muon of Nequix in torch", .group = MUON(NEQUIX), F64_ONLY},
    {.name = "muon of torch", .group = MUON(TORCH_RMS), F32_ONLY},
    {.name = "soap", .group = SOAP, F32_ONLY},
    {.name = "soap", .group = SOAP, F64_ONLY},
    {.name = "schedule-free adamw",
     .group = {.rule = CLB_SCHEDULE_FREE_ADAMW, .lr = 0.01, .warm_up_steps = 10},
     F32_ONLY},
    {.name = "schedule-free adamw",
     .group = {.rule = CLB_SCHEDULE_FREE_ADAMW, .lr = 0.01, .weight_decay = 0.1},
     F64_ONLY},
};
const int n_optimizer_checks = sizeof optimizer_checks / sizeof *optimizer_checks;

double optimizer_tolerance(const tool_training *t) {
  if (t->group.rule == CLB_SOAP) return t->parameters == CLB_F64 ? 1e-12 : 5e-5;
  if (t->group.rule != CLB_MUON) return t->parameters == CLB_F64 ? 1e-13 : 2e-6;
  if (t->group.muon >= CLB_MUON_NEQUIP) return 0.02; /* in bf16 */
  return t->parameters == CLB_F64 ? 1e-12 : 2e-5;
}

/* ---- the reference ---- */

typedef struct {
  double p[ELEMENTS], m[ELEMENTS], v[ELEMENTS], z[ELEMENTS], average[ELEMENTS];
  double largest_rate, weights;
  soap_side side[TENSORS];
} reference;

static int64_t elements(int64_t tensor) { return shapes[tensor][0] * shapes[tensor][1]; }

static double or_default(double x, double otherwise) { return x == 0 ? otherwise : fmax(x, 0); }

static void reference_step(const tool_training *t, int step, const double *gradients,
                           reference *r) {
  const clb_optimizer_group *g = &t->group;
  const double b1 = or_default(g->beta1, 0.9), b2 = or_default(g->beta2, 0.999), eps = 1e-8,
               k = step, wd = g->weight_decay, second = 1 - pow(b2, k);
  double squares = 0, clip = 1, rate = g->lr;
  for (int i = 0; i < ELEMENTS; i++) squares += gradients[i] * gradients[i];
  if (t->clip) clip = fmin(1, t->max_norm / (sqrt(squares) + 1e-6));
  if (step < g->warm_up_steps) rate *= k / (double)g->warm_up_steps;
  r->largest_rate = fmax(r->largest_rate, rate);
  r->weights += r->largest_rate * r->largest_rate;
  const double c = r->largest_rate * r->largest_rate / r->weights,
               follow = 1 - fmin(t->ema_decay, (1 + k) / (10 + k));
  const bool matrices = g->rule == CLB_MUON || g->rule == CLB_SOAP;
  for (int64_t i = 0, at = 0; i < TENSORS && matrices; at += elements(i), i++)
    if (g->rule == CLB_MUON)
      reference_muon(g, step, shapes[i][0], shapes[i][1], gradients + at, r->m + at, r->p + at);
    else
      reference_soap(g, step, shapes[i][0], shapes[i][1], gradients + at, &r->side[i], r->m + at,
                     r->v + at, r->p + at);
  for (int i = 0; i < ELEMENTS && !matrices; i++) {
    double grad = gradients[i] * clip, p = r->p[i], before = p;
    if (g->rule == CLB_SGD) {
      r->m[i] = step == 1 ? grad : g->momentum * r->m[i] + grad;
      p -= g->lr * (g->nesterov ? grad + g->momentum * r->m[i] : r->m[i]);
    } else if (g->rule == CLB_SCHEDULE_FREE_ADAMW) {
      if (step == 1) r->z[i] = p;
      r->v[i] += (1 - b2) * (grad * grad - r->v[i]);
      const double d = grad / (sqrt(r->v[i] / second) + eps) + wd * p;
      p += c * (r->z[i] - p) + rate * (b1 * (1 - c) - 1) * d;
      r->z[i] -= rate * d;
    } else {
      if (g->rule == CLB_ADAM) grad += wd * p;
      else p *= 1 - g->lr * wd;
      r->m[i] += (1 - b1) * (grad - r->m[i]);
      r->v[i] += (1 - b2) * (grad * grad - r->v[i]);
      r->z[i] = fmax(r->z[i], r->v[i]); /* the largest v */
      double mean = r->m[i] / (1 - pow(b1, k));
      if (g->nesterov)
        mean = b1 * r->m[i] / (1 - pow(b1, k + 1)) + (1 - b1) * grad / (1 - pow(b1, k));
      p -= g->lr * mean / (sqrt((g->amsgrad ? r->z[i] : r->v[i]) / second) + eps);
    }
    r->average[i] = step == 1 ? before : r->average[i];
    r->average[i] += follow * (p - r->average[i]);
    r->p[i] = p;
  }
}

/* ---- the device ---- */

enum { PARAMETERS, GRADIENTS, COPY, AVERAGE, ARRAYS };
typedef struct {
  clb_context *ctx;
  const tool_training *what;
  clb_dtype type[ARRAYS];
  clb_buffer *buffer[ARRAYS];
  clb_optimizer *optimizer;
} training;

static clb_status write_array(const training *t, int array, const double *x) {
  double numbers[ELEMENTS]; /* or smaller ones, in a part of it */
  encode(t->type[array], x, numbers, ELEMENTS);
  return clb_buffer_write(t->buffer[array], 0, numbers, ELEMENTS * dtype_bytes(t->type[array]));
}

static clb_status read_array(const training *t, int array, double *x) {
  double numbers[ELEMENTS];
  const clb_status s =
      clb_buffer_read(t->buffer[array], 0, numbers, ELEMENTS * dtype_bytes(t->type[array]));
  if (!s) decode(t->type[array], numbers, x, ELEMENTS);
  return s;
}

static clb_status create(training *t) {
  const tool_training *w = t->what;
  clb_optimizer_tensor tensor[TENSORS] = {{0}};
  const bool has[ARRAYS] = {true, true, w->copies, w->ema != CLB_EMA_NONE};
  const clb_dtype types[ARRAYS] = {w->parameters, w->gradients, w->copy, w->parameters};
  clb_status s = CLB_OK;
  int64_t at = 0;
  memcpy(t->type, types, sizeof types);
  for (int a = 0; a < ARRAYS && !s; a++)
    if (has[a]) s = clb_buffer_create(t->ctx, ELEMENTS * dtype_bytes(types[a]), &t->buffer[a]);
  for (int i = 0; i < TENSORS; at += shapes[i][0] * shapes[i][1], i++)
    tensor[i] = (clb_optimizer_tensor){.rows = shapes[i][0],
                                       .columns = shapes[i][1],
                                       .parameters = {t->buffer[PARAMETERS], at},
                                       .gradients = {t->buffer[GRADIENTS], at},
                                       .copy = {t->buffer[COPY], at},
                                       .average = {t->buffer[AVERAGE], at}};
  clb_optimizer_desc desc = training_desc(w);
  desc.tensors = tensor, desc.n_tensors = TENSORS;
  desc.groups = &w->group, desc.n_groups = 1;
  return s ? s : clb_optimizer_create(t->ctx, &desc, &t->optimizer);
}

/* Of numbers x that should be `wanted`, beside the way from `first`. */
static double error_of(const double *x, const double *wanted, const double *first) {
  double off = 0, way = 0;
  for (int i = 0; i < ELEMENTS; i++) {
    off += (x[i] - wanted[i]) * (x[i] - wanted[i]);
    way += (wanted[i] - first[i]) * (wanted[i] - first[i]);
  }
  const double error = sqrt(off / way);
  return isfinite(error) ? error : INFINITY;
}

static clb_status compare(const training *t, const reference *r, const double *first,
                          double *error) {
  double x[ELEMENTS];
  clb_status s = read_array(t, PARAMETERS, x);
  if (!s) *error = error_of(x, r->p, first);
  if (!s && t->what->ema) s = read_array(t, AVERAGE, x);
  if (!s && t->what->ema) *error = fmax(*error, error_of(x, r->average, first));
  if (s || !t->what->copies) return s;
  double copy[ELEMENTS], rounded[ELEMENTS];
  s = read_array(t, PARAMETERS, x);
  if (!s) s = read_array(t, COPY, copy);
  if (s) return s;
  encode(t->what->copy, x, rounded, ELEMENTS);
  decode(t->what->copy, rounded, x, ELEMENTS);
  for (int i = 0; i < ELEMENTS; i++)
    if (copy[i] != x[i]) *error = INFINITY; /* a copy is the rounded parameter */
  return s;
}

clb_status optimizer_check(clb_context *ctx, const tool_training *what, double *error) {
  training t = {.ctx = ctx, .what = what};
  reference *r = allocate(1, sizeof *r);
  double first[ELEMENTS], g[ELEMENTS];
  uint64_t seed = 3;
  clb_status s = create(&t);
  for (int i = 0; i < ELEMENTS; i++)
    r->p[i] = first[i] = (double)(float)(0.1 * random_number(&seed));
  if (!s) s = write_array(&t, PARAMETERS, first);
  for (int step = 1; step <= STEPS && !s; step++) {
    for (int i = 0; i < ELEMENTS; i++) g[i] = round(64 * (random_number(&seed) + 0.5)) / 64;
    s = write_array(&t, GRADIENTS, g);
    if (!s) s = clb_optimizer_step(t.optimizer);
    reference_step(what, step, g, r);
  }
  if (!s) s = compare(&t, r, first, error);
  clb_optimizer_destroy(&t.optimizer);
  for (int a = 0; a < ARRAYS; a++) clb_buffer_destroy(&t.buffer[a]);
  free(r);
  return s;
}
