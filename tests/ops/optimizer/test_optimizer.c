/* tests/ops/optimizer/test_optimizer.c - a hundred steps of each rule against float64, on every
   device that runs here, and on the interpreter with a GPU's limits. */
#include "kernels/optimizer/host/optimizer.h"
#include "tests/ops/optimizer/optimizer_reference.h"

enum { STEPS = 100 };

typedef struct {
  clb_dtype parameters, gradients;
  manner how;
  int n_groups;
  clb_optimizer_group group[3];
  int copies; /* 1: of type `copy` */
  clb_dtype copy;
  clb_clip clip;
  double max_norm;
  clb_ema ema;
  double decay;
} training;

#define SGD(...)                                                                                   \
  { .rule = CLB_SGD, .lr = 0.02, __VA_ARGS__ }
#define ADAM(...)                                                                                  \
  { .rule = CLB_ADAM, .lr = 0.01, __VA_ARGS__ }
#define ADAMW(...)                                                                                 \
  { .rule = CLB_ADAMW, .lr = 0.01, __VA_ARGS__ }
#define FREE(...)                                                                                  \
  { .rule = CLB_SCHEDULE_FREE_ADAMW, .lr = 0.01, __VA_ARGS__ }

#define TYPES(p, g, manner) .parameters = p, .gradients = g, .how = manner
#define ONE(...) .n_groups = 1, .group = {__VA_ARGS__}
#define COPY(type) .copies = 1, .copy = type
static const training trainings[] = {
    {TYPES(CLB_F32, CLB_F32, PACKED), ONE(SGD(.momentum = 0))},
    {TYPES(CLB_F32, CLB_F32, ALIGNED_16),
     ONE(SGD(.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1))},
    {TYPES(CLB_F64, CLB_F32, PACKED), ONE(SGD(.momentum = 0.8, .nesterov = 1))},
    {TYPES(CLB_F32, CLB_F32, PACKED), ONE(ADAM(.weight_decay = 0.01))},
    {TYPES(CLB_F32, CLB_F32, ALIGNED_16), ONE(ADAM(.amsgrad = 1))},
    {TYPES(CLB_F64, CLB_F64, ALIGNED_16), ONE(ADAM(.nesterov = 1))},
    {TYPES(CLB_F32, CLB_F32, ALIGNED_16), ONE(ADAMW(.weight_decay = 0.1))},
    {TYPES(CLB_F32, CLB_BF16, ALIGNED_16), ONE(ADAMW(.beta1 = -1)), COPY(CLB_BF16)},
    {TYPES(CLB_F32, CLB_F16, PACKED), ONE(ADAMW(.amsgrad = 1, .beta2 = 0.99)), COPY(CLB_F16)},
    {TYPES(CLB_F64, CLB_F64, PACKED), ONE(ADAMW(.amsgrad = 1)), COPY(CLB_F32)},
    {TYPES(CLB_F32, CLB_F32, ALIGNED_16), ONE(FREE(.warm_up_steps = 12, .weight_decay = 0.1))},
    {TYPES(CLB_F64, CLB_F64, ALIGNED_16), ONE(FREE(.beta1 = 0.8))},
    {TYPES(CLB_F32, CLB_F32, ALIGNED_16), .n_groups = 3,
     .group = {ADAMW(.weight_decay = 0.1), SGD(.momentum = 0.9), ADAM(.amsgrad = 1)}},
    {TYPES(CLB_F64, CLB_F64, PACKED), .n_groups = 3,
     .group = {FREE(.beta2 = 0.99), SGD(.momentum = 0), ADAMW(.nesterov = 1)}},
    {TYPES(CLB_F32, CLB_F32, ALIGNED_16), ONE(SGD(.momentum = 0.9)), .clip = CLB_CLIP_TORCH,
     .max_norm = 50},
    {TYPES(CLB_F32, CLB_BF16, PACKED), ONE(SGD(.momentum = 0.9)), .clip = CLB_CLIP_OPTAX,
     .max_norm = 60},
    {TYPES(CLB_F32, CLB_F32, ALIGNED_16), ONE(ADAM(.amsgrad = 1)), COPY(CLB_BF16),
     .clip = CLB_CLIP_TORCH, .max_norm = 60, .ema = CLB_EMA_WARM_UP, .decay = 0.9},
    {TYPES(CLB_F64, CLB_F64, PACKED), ONE(ADAM(.epsilon = 1e-3)), .clip = CLB_CLIP_TORCH,
     .max_norm = 1e9, .ema = CLB_EMA_WARM_UP_FROM_0, .decay = 0.95},
    {TYPES(CLB_F32, CLB_F32, PACKED), ONE(ADAM(.epsilon = 1e-3)), .ema = CLB_EMA_CONSTANT,
     .decay = 0.9},
};
enum { TRAININGS = sizeof trainings / sizeof *trainings };

typedef struct {
  clb_context *ctx;
  const training *what;
  test_array parameters, gradients, copy, average;
  clb_optimizer_tensor tensor[TENSORS];
  clb_optimizer_desc desc;
  clb_optimizer *optimizer;
  element *e;
  memory_of_group all[3];
  double *x, *first; /* numbers in a list; the parameters before the first step */
} trainer;

/* The description points into what it returns. */
static void describe(trainer *t, clb_context *ctx, const training *what, manner how) {
  *t = (trainer){.ctx = ctx, .what = what};
  t->parameters = array_make(ctx, what->parameters, how);
  t->gradients = array_make(ctx, what->gradients, how);
  if (what->copies) t->copy = array_make(ctx, what->copy, how);
  if (what->ema) t->average = array_make(ctx, what->parameters, how);
  for (int i = 0; i < TENSORS; i++)
    t->tensor[i] = (clb_optimizer_tensor){.rows = shapes[i][0],
                                          .columns = shapes[i][1],
                                          .group = i % what->n_groups,
                                          .parameters = array_place(&t->parameters, i),
                                          .gradients = array_place(&t->gradients, i),
                                          .copy = array_place(&t->copy, i),
                                          .average = array_place(&t->average, i)};
  t->desc = (clb_optimizer_desc){.tensors = t->tensor,
                                 .n_tensors = TENSORS,
                                 .groups = what->group,
                                 .n_groups = what->n_groups,
                                 .parameters = what->parameters,
                                 .gradients = what->gradients,
                                 .copy = what->copy,
                                 .clip = what->clip,
                                 .max_norm = what->max_norm,
                                 .ema = what->ema,
                                 .ema_decay = what->decay};
}

/* Parameters are written before the optimizer is made or after, which must be the same. */
static void begin(trainer *t, clb_context *ctx, const training *what, manner how) {
  const int64_t n = all_elements();
  const bool before = what->clip != CLB_CLIP_NONE;
  uint64_t seed = 5;
  describe(t, ctx, what, how);
  t->x = malloc((size_t)n * sizeof *t->x);
  t->first = malloc((size_t)n * sizeof *t->x);
  t->e = calloc((size_t)n, sizeof *t->e);
  for (int64_t i = 0; i < n; i++) {
    t->first[i] = t->e[i].p = (double)(float)(0.1 * test_random(&seed));
    t->x[i] = NAN;
  }
  if (before) OK(ctx, clb_optimizer_create(ctx, &t->desc, &t->optimizer));
  array_write(ctx, &t->parameters, t->first);
  if (what->copies) array_write(ctx, &t->copy, t->x);
  if (what->ema) array_write(ctx, &t->average, t->x);
  if (!before) OK(ctx, clb_optimizer_create(ctx, &t->desc, &t->optimizer));
}

static void end(trainer *t) {
  clb_optimizer_destroy(&t->optimizer);
  array_free(&t->parameters);
  array_free(&t->gradients);
  if (t->what->copies) array_free(&t->copy);
  if (t->what->ema) array_free(&t->average);
  free(t->x);
  free(t->first);
  free(t->e);
}

static double new_gradients(trainer *t, int step) {
  return write_gradients(t->ctx, &t->gradients, step, 0.5, t->x);
}

static void set_defaults(clb_optimizer_group *g) {
  g->beta1 = g->beta1 == 0 ? 0.9 : fmax(g->beta1, 0);
  g->beta2 = g->beta2 == 0 ? 0.999 : g->beta2;
  g->epsilon = g->epsilon == 0 ? 1e-8 : g->epsilon;
}

static void reference_step(trainer *t, int step, double norm) {
  const double factor = reference_factor(&t->desc, norm);
  double rate[3];
  clb_optimizer_group group[3];
  int64_t at = 0;
  for (int g = 0; g < t->what->n_groups; g++) {
    group[g] = t->what->group[g];
    set_defaults(&group[g]);
    rate[g] = reference_rate(&group[g], step, &t->all[g]);
  }
  for (int i = 0; i < TENSORS; i++)
    for (int64_t k = 0; k < shapes[i][0] * shapes[i][1]; k++, at++) {
      const int g = i % t->what->n_groups;
      element *e = &t->e[at];
      const double before = e->p, grad = t->x[at] * factor;
      if (group[g].rule == CLB_SGD) reference_sgd(&group[g], step, grad, e);
      else if (group[g].rule == CLB_SCHEDULE_FREE_ADAMW)
        reference_schedule_free(&group[g], step, grad, &t->all[g], rate[g], e);
      else reference_adam(&group[g], step, grad, e);
      if (t->desc.ema) reference_average(&t->desc, step, before, e);
    }
}

static void expect(trainer *t, const test_array *a, bool average, double most, const char *what) {
  expect_way(t->ctx, a, t->e, t->first, average, most, (int)(t->what - trainings), what, t->x);
}

static void train(clb_context *ctx, const training *what, manner how, int steps) {
  const double most = what->parameters == CLB_F64 ? 1e-13 : 2e-6;
  static const double halves[] = {[CLB_F32] = 1e-6, [CLB_F16] = 1e-3, [CLB_BF16] = 1e-2};
  trainer t;
  begin(&t, ctx, what, how);
  for (int step = 0; step < steps; step++) {
    const double norm = new_gradients(&t, step);
    OK(ctx, clb_optimizer_step(t.optimizer));
    reference_step(&t, step, norm);
  }
  expect(&t, &t.parameters, false, most, "parameters");
  if (what->ema) expect(&t, &t.average, true, most, "averages");
  if (what->copies) expect(&t, &t.copy, false, halves[what->copy], "copies");
  end(&t);
}

static bool can(void **state, const training *what) {
  return ((struct device *)*state)->f64 || what->parameters != CLB_F64;
}

static void trains(void **state) {
  const bool slow = strstr(((struct device *)*state)->name, "interpreter");
  clb_context *ctx = context(state);
  for (int i = 0; i < TRAININGS; i++)
    if (can(state, &trainings[i]))
      train(ctx, &trainings[i], trainings[i].how, slow && !long_tests() ? 10 : STEPS);
}

static void scattered(void **state) {
  clb_context *ctx = context(state);
  for (int i = 0; i < TRAININGS; i += long_tests() ? 1 : 4)
    if (can(state, &trainings[i])) train(ctx, &trainings[i], SCATTERED, 3);
}

/* Registers hold all that a kernel needs, where the compiler tells. */
static void spills_nothing(const clb_optimizer *o) {
  clb_device *d = o->ctx->device;
  for (int i = 0; i < CLB_OPTIMIZER_KERNELS && d->backend->report; i++) {
    const clb_kernel *k = o->kernel[i];
    clb_report r;
    if (!k) continue;
    OK(o->ctx, d->backend->report(d, &k->ir, k->binary.s, k->binary.n, &r));
    if (r.spill_bytes > 0)
      fail_msg("%s on %s spills %d bytes", k->ir.name, d->info.name, r.spill_bytes);
  }
}

/* Kernels compile for the targets that only compile, where a step is refused. */
static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  static const int some[] = {10, 12, 16};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    trainer t;
    describe(&t, ctx, &trainings[some[i]], ALIGNED_16);
    OK(ctx, clb_optimizer_create(ctx, &t.desc, &t.optimizer));
    assert_int_equal(clb_optimizer_step(t.optimizer), CLB_ERROR_UNSUPPORTED);
    spills_nothing(t.optimizer);
    end(&t);
  }
}

int main(void) {
  static const named_test tests[] = {{"trains", trains, false}, {"scattered", scattered, true}};
  return run_on_all("optimizer", tests, sizeof tests / sizeof *tests, compiles);
}
