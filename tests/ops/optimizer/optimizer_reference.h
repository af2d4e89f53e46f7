/* tests/ops/optimizer/optimizer_reference.h - optimizers in float64, as their authors write them,
   and tensors to try them on. */
#ifndef CLB_TESTS_OPS_OPTIMIZER_OPTIMIZER_REFERENCE_H
#define CLB_TESTS_OPS_OPTIMIZER_OPTIMIZER_REFERENCE_H

#include <math.h>

#include "tests/fakes/simulated_devices.h"

/* ---- the reference ---- */

/* What one element has; t: steps before this one. */
typedef struct {
  double p, m, v, largest, z, average;
} element;

typedef struct {
  double lr_max, weight_sum; /* of schedule-free rules */
} memory_of_group;

static inline double lerp(double a, double b, double w) { return a + w * (b - a); }

static inline void reference_adam(const clb_optimizer_group *g, int t, double grad, element *e) {
  const double first = 1 - pow(g->beta1, t + 1), second = 1 - pow(g->beta2, t + 1);
  if (g->rule == CLB_ADAM) grad += g->weight_decay * e->p;
  else e->p -= g->lr * g->weight_decay * e->p;
  e->m = g->beta1 * e->m + (1 - g->beta1) * grad;
  e->v = g->beta2 * e->v + (1 - g->beta2) * grad * grad;
  e->largest = fmax(e->largest, e->v);
  const double ahead = g->beta1 * e->m / (1 - pow(g->beta1, t + 2)) + (1 - g->beta1) * grad / first,
               mean = g->nesterov ? ahead : e->m / first;
  e->p -= g->lr * mean / (sqrt((g->amsgrad ? e->largest : e->v) / second) + g->epsilon);
}

static inline void reference_sgd(const clb_optimizer_group *g, int t, double grad, element *e) {
  grad += g->weight_decay * e->p;
  double d = grad;
  if (g->momentum != 0) {
    e->m = t ? g->momentum * e->m + (1 - g->dampening) * grad : grad;
    d = g->nesterov ? grad + g->momentum * e->m : e->m;
  }
  e->p -= g->lr * d;
}

static inline void reference_schedule_free(const clb_optimizer_group *g, int t, double grad,
                                           const memory_of_group *all, double rate, element *e) {
  if (!t) e->z = e->p;
  e->v = g->beta2 * e->v + (1 - g->beta2) * grad * grad;
  const double c = all->weight_sum > 0 ? all->lr_max * all->lr_max / all->weight_sum : 0,
               d = grad / (sqrt(e->v / (1 - pow(g->beta2, t + 1))) + g->epsilon) +
                   g->weight_decay * e->p;
  e->p = lerp(e->p, e->z, c) + rate * (g->beta1 * (1 - c) - 1) * d;
  e->z -= rate * d;
}

/* The rate of this step; once for each group and step. */
static inline double reference_rate(const clb_optimizer_group *g, int t, memory_of_group *all) {
  const double rate = t < g->warm_up_steps ? g->lr * (t + 1) / (double)g->warm_up_steps : g->lr;
  all->lr_max = fmax(all->lr_max, rate);
  all->weight_sum += all->lr_max * all->lr_max;
  return rate;
}

static inline void reference_average(const clb_optimizer_desc *d, int t, double before,
                                     element *e) {
  const double k = d->ema == CLB_EMA_WARM_UP_FROM_0 ? t : t + 1,
               decay = d->ema == CLB_EMA_CONSTANT ? d->ema_decay
                                                  : fmin(d->ema_decay, (1 + k) / (10 + k));
  if (!t) e->average = before;
  e->average = decay * e->average + (1 - decay) * e->p;
}

static inline double reference_factor(const clb_optimizer_desc *d, double norm) {
  if (d->clip == CLB_CLIP_TORCH) return fmin(1, d->max_norm / (norm + 1e-6));
  return d->clip == CLB_CLIP_OPTAX && norm >= d->max_norm ? d->max_norm / norm : 1;
}

/* ---- tensors ---- */

static const int64_t shapes[][2] = {{7, 3},   {1, 1},  {0, 5},   {129, 8}, {1000, 1},
                                    {64, 64}, {3, 37}, {2, 700}, {1, 4},   {5, 5}};
enum { TENSORS = sizeof shapes / sizeof *shapes };

typedef enum { PACKED, ALIGNED_16, SCATTERED } manner;

__extension__ typedef _Float16 test_half;

static inline double test_get(clb_dtype type, const void *from, int64_t i) {
  uint32_t bits;
  float f;
  if (type == CLB_F64) return ((const double *)from)[i];
  if (type == CLB_F32) return ((const float *)from)[i];
  if (type == CLB_F16) return (double)((const test_half *)from)[i];
  bits = (uint32_t)((const uint16_t *)from)[i] << 16;
  memcpy(&f, &bits, sizeof f);
  return (double)f;
}

static inline void test_put(clb_dtype type, void *to, int64_t i, double x) {
  const float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (type == CLB_F64) ((double *)to)[i] = x;
  else if (type == CLB_F32) ((float *)to)[i] = f;
  else if (type == CLB_F16) ((test_half *)to)[i] = (test_half)x;
  else ((uint16_t *)to)[i] = (uint16_t)(bits >> 16); /* of numbers that bf16 holds */
}

/* One array of all tensors, in one buffer or in one each, surrounded by numbers that must stay. */
typedef struct {
  clb_dtype type;
  clb_buffer *buffer[TENSORS];
  int64_t offset[TENSORS], length[TENSORS]; /* of the buffer */
} test_array;

enum { GAP = 5 };

static inline test_array array_make(clb_context *ctx, clb_dtype type, manner how) {
  test_array a = {.type = type};
  int64_t at = how == ALIGNED_16 ? 8 : 3;
  for (int i = 0; i < TENSORS; i++) {
    const int64_t n = shapes[i][0] * shapes[i][1];
    a.offset[i] = how == SCATTERED ? 4 * (i % 2) + i % 3 : at;
    at += n + (how == ALIGNED_16 ? (8 - n % 8) : GAP);
    a.length[i] = a.offset[i] + n + GAP;
  }
  for (int i = 0; i < TENSORS; i++)
    if (how == SCATTERED)
      OK(ctx,
         clb_buffer_create(ctx, (uint64_t)(a.length[i] * clb_dtype_bytes(type)), &a.buffer[i]));
    else if (i) a.buffer[i] = a.buffer[0];
    else OK(ctx, clb_buffer_create(ctx, (uint64_t)(at * clb_dtype_bytes(type)), &a.buffer[0]));
  for (int i = 0; i < TENSORS && how != SCATTERED; i++) a.length[i] = at;
  return a;
}

static inline void array_free(test_array *a) {
  for (int i = TENSORS - 1; i >= 0; i--)
    if (!i || a->buffer[i] != a->buffer[0]) clb_buffer_destroy(&a->buffer[i]);
}

/* All numbers of tensor after tensor, and BETWEEN around them. */
#define BETWEEN 77.0
static inline void array_write(clb_context *ctx, const test_array *a, const double *x) {
  for (int i = 0; i < TENSORS; i++) {
    const bool one = i && a->buffer[i] == a->buffer[0];
    const int64_t n = shapes[i][0] * shapes[i][1], bytes = clb_dtype_bytes((int32_t)a->type);
    char *host = malloc((size_t)(a->length[i] * bytes));
    for (int64_t k = 0; k < a->length[i]; k++) test_put(a->type, host, k, BETWEEN);
    if (!one) OK(ctx, clb_buffer_write(a->buffer[i], 0, host, (uint64_t)(a->length[i] * bytes)));
    for (int64_t k = 0; k < n; k++) test_put(a->type, host, k, x[k]);
    if (n)
      OK(ctx, clb_buffer_write(a->buffer[i], (uint64_t)(a->offset[i] * bytes), host,
                               (uint64_t)(n * bytes)));
    x += n;
    free(host);
  }
}

static inline void array_read(clb_context *ctx, const test_array *a, double *x) {
  for (int i = 0; i < TENSORS; i++) {
    const int64_t n = shapes[i][0] * shapes[i][1], bytes = clb_dtype_bytes((int32_t)a->type);
    char *host = malloc((size_t)(a->length[i] * bytes));
    OK(ctx, clb_buffer_read(a->buffer[i], 0, host, (uint64_t)(a->length[i] * bytes)));
    for (int64_t k = 0; k < n; k++) *x++ = test_get(a->type, host, a->offset[i] + k);
    if (a->offset[i] && test_get(a->type, host, a->offset[i] - 1) != BETWEEN)
      fail_msg("the number before tensor %d was written", i);
    if (test_get(a->type, host, a->offset[i] + n) != BETWEEN)
      fail_msg("the number behind tensor %d was written", i);
    free(host);
  }
}

static inline clb_place array_place(const test_array *a, int i) {
  return (clb_place){a->buffer[i], a->offset[i]};
}

static inline int64_t all_elements(void) {
  int64_t n = 0;
  for (int i = 0; i < TENSORS; i++) n += shapes[i][0] * shapes[i][1];
  return n;
}

/* Gradients x that halves hold exactly, with a mean, so that parameters go somewhere; returns their
   norm. */
static inline double write_gradients(clb_context *ctx, const test_array *a, int step, double mean,
                                     double *x) {
  uint64_t seed = 1000 + (uint64_t)step;
  double squares = 0;
  for (int64_t i = 0, n = all_elements(); i < n; i++) {
    x[i] = round(64 * (test_random(&seed) + mean)) / 64;
    squares += x[i] * x[i];
  }
  array_write(ctx, a, x);
  return sqrt(squares);
}

/* What the array has must be e's parameters or averages: the norm of the error is at most `most` of
   the norm of how far they have come. x: memory for all elements. */
static inline void expect_way(clb_context *ctx, const test_array *a, const element *e,
                              const double *first, bool average, double most, int training,
                              const char *what, double *x) {
  double error = 0, way = 0;
  array_read(ctx, a, x);
  for (int64_t i = 0, n = all_elements(); i < n; i++) {
    const double wanted = average ? e[i].average : e[i].p;
    error += pow(x[i] - wanted, 2);
    way += pow(wanted - first[i], 2);
  }
  if (!(sqrt(error) <= most * sqrt(way)))
    fail_msg("training %d: %s are off by %g of their way of %g", training, what, sqrt(error / way),
             sqrt(way));
}

#endif
