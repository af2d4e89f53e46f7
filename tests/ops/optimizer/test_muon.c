/* tests/ops/optimizer/test_muon.c - Muon beside Adam: a hundred steps against float64, on every
   device that runs here, and on the interpreter with a GPU's limits. */
#include "tests/ops/matrices/matrices_reference.h"
#include "tests/ops/optimizer/optimizer_reference.h"

enum { STEPS = 100 };

typedef struct {
  clb_muon variant;
  clb_dtype parameters, gradients;
  manner how;
  double beta, weight_decay, epsilon; /* 0: the default */
  clb_clip clip;
  double max_norm;
  clb_ema ema;
  double error; /* of parameters, beside their way */
} training;

static const training trainings[] = {
    {CLB_MUON_OPTAX, CLB_F32, CLB_F32, ALIGNED_16, 0, 0.1, 0, 0, 0, 0, 2e-5},
    {CLB_MUON_OPTAX, CLB_F64, CLB_F64, PACKED, 0.8, 0, 1e-3, 0, 0, CLB_EMA_CONSTANT, 1e-12},
    {CLB_MUON_NEQUIX, CLB_F32, CLB_BF16, PACKED, 0, 0.1, 0, CLB_CLIP_TORCH, 60, CLB_EMA_WARM_UP,
     2e-5},
    {CLB_MUON_NEQUIX, CLB_F64, CLB_F32, ALIGNED_16, 0, 0, 0, CLB_CLIP_OPTAX, 50, 0, 1e-12},
    {CLB_MUON_NEQUIP, CLB_F32, CLB_F32, ALIGNED_16, 0, 0, 0, 0, 0, 0, 0.02},
    {CLB_MUON_TORCH, CLB_F32, CLB_F16, PACKED, 0.9, 0.1, 0, 0, 0, 0, 0.02},
    {CLB_MUON_TORCH_RMS, CLB_F64, CLB_F64, PACKED, 0, 0.1, 40, 0, 0, 0, 0.02},
};
enum { TRAININGS = sizeof trainings / sizeof *trainings };

/* ---- the reference ---- */

static double beta_of(const training *w) { return w->beta == 0 ? 0.95 : w->beta; }

static double factor_of(clb_muon variant, double rows, double columns) {
  if (variant == CLB_MUON_TORCH_RMS) return 0.2 * sqrt(fmax(rows, columns));
  return sqrt(fmax(1, variant == CLB_MUON_OPTAX ? columns / rows : rows / columns));
}

static void reference_matrix_step(const training *w, int t, int64_t rows, int64_t columns,
                                  const double *grad, double lr, element *e, double *u) {
  const double b = beta_of(w);
  const bool optax = w->variant == CLB_MUON_OPTAX, torch = w->variant >= CLB_MUON_TORCH;
  const double epsilon = w->epsilon != 0 ? w->epsilon : optax ? 1e-8 : 1e-7;
  for (int64_t i = 0; i < rows * columns; i++) {
    e[i].m = b * e[i].m + (1 - b) * grad[i];
    u[i] = optax ? b * e[i].m / (1 - pow(b, t + 2)) + (1 - b) * grad[i] / (1 - pow(b, t + 1))
                 : (1 - b) * grad[i] + b * e[i].m;
  }
  reference_newton_schulz(u, rows, columns, torch ? epsilon : 0, torch ? 0 : epsilon);
  for (int64_t i = 0; i < rows * columns; i++)
    e[i].p -= lr * (factor_of(w->variant, (double)rows, (double)columns) * u[i] +
                    w->weight_decay * e[i].p);
}

/* ---- one training; every third tensor has Adam with Nesterov's momentum ---- */

static const clb_optimizer_group adam = {
    .rule = CLB_ADAM, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .nesterov = 1};
static const double lr = 0.02;
static bool is_matrix(int tensor) { return tensor % 3 != 1; }

typedef struct {
  clb_context *ctx;
  const training *what;
  test_array parameters, gradients, average;
  clb_optimizer *optimizer;
  element *e;
  double *x, *u, *first;
} trainer;

static clb_optimizer *create(trainer *t, clb_clip clip) {
  const training *w = t->what;
  const clb_optimizer_group groups[] = {{.rule = CLB_MUON,
                                         .muon = w->variant,
                                         .lr = lr,
                                         .momentum = w->beta,
                                         .epsilon = w->epsilon,
                                         .weight_decay = w->weight_decay},
                                        adam};
  clb_optimizer_tensor tensor[TENSORS];
  clb_optimizer *o;
  for (int i = 0; i < TENSORS; i++)
    tensor[i] = (clb_optimizer_tensor){.rows = shapes[i][0],
                                       .columns = shapes[i][1],
                                       .group = !is_matrix(i),
                                       .parameters = array_place(&t->parameters, i),
                                       .gradients = array_place(&t->gradients, i),
                                       .average = array_place(&t->average, i)};
  const clb_optimizer_desc desc = {.tensors = tensor,
                                   .n_tensors = TENSORS,
                                   .groups = groups,
                                   .n_groups = 2,
                                   .parameters = w->parameters,
                                   .gradients = w->gradients,
                                   .clip = clip,
                                   .max_norm = w->max_norm,
                                   .check_finite = w->ema == CLB_EMA_CONSTANT,
                                   .ema = w->ema,
                                   .ema_decay = w->ema ? 0.9 : 0};
  OK(t->ctx, clb_optimizer_create(t->ctx, &desc, &o));
  return o;
}

static trainer begin(clb_context *ctx, const training *what, bool runs) {
  const int64_t n = all_elements();
  trainer t = {.ctx = ctx, .what = what};
  uint64_t seed = 5;
  t.parameters = array_make(ctx, what->parameters, what->how);
  t.gradients = array_make(ctx, what->gradients, what->how);
  if (what->ema) t.average = array_make(ctx, what->parameters, what->how);
  t.x = malloc((size_t)n * sizeof *t.x);
  t.u = malloc((size_t)n * sizeof *t.u);
  t.first = malloc((size_t)n * sizeof *t.first);
  t.e = calloc((size_t)n, sizeof *t.e);
  for (int64_t i = 0; i < n; i++) {
    t.first[i] = t.e[i].p = (double)(float)(0.1 * test_random(&seed));
    t.x[i] = NAN;
  }
  if (runs) array_write(ctx, &t.parameters, t.first);
  if (runs && what->ema) array_write(ctx, &t.average, t.x);
  t.optimizer = create(&t, what->clip);
  return t;
}

static void end(trainer *t) {
  clb_optimizer_destroy(&t->optimizer);
  array_free(&t->parameters);
  array_free(&t->gradients);
  if (t->what->ema) array_free(&t->average);
  free(t->x);
  free(t->u);
  free(t->first);
  free(t->e);
}

static double new_gradients(trainer *t, int step) {
  return write_gradients(t->ctx, &t->gradients, step, 0.2, t->x);
}

static void reference_step(trainer *t, int step, double norm) {
  const clb_optimizer_desc d = {
      .clip = t->what->clip, .max_norm = t->what->max_norm, .ema = t->what->ema, .ema_decay = 0.9};
  const double factor = reference_factor(&d, norm);
  int64_t at = 0;
  for (int i = 0; i < TENSORS; i++) {
    const int64_t n = shapes[i][0] * shapes[i][1];
    double *grad = t->x + at, *before = t->u + at;
    element *e = t->e + at;
    for (int64_t k = 0; k < n; k++) grad[k] *= factor;
    if (!is_matrix(i))
      for (int64_t k = 0; k < n; k++) reference_adam(&adam, step, grad[k], &e[k]);
    else if (n)
      reference_matrix_step(t->what, step, shapes[i][0], shapes[i][1], grad, lr, e, before);
    for (int64_t k = 0; k < n && t->what->ema; k++)
      reference_average(&d, step, step ? 0 : t->first[at + k], &e[k]);
    at += n;
  }
}

static void expect(trainer *t, const test_array *a, bool average, const char *what) {
  expect_way(t->ctx, a, t->e, t->first, average, t->what->error, (int)(t->what - trainings), what,
             t->x);
}

static void trains(void **state) {
  const struct device *d = *state;
  const bool slow = strstr(d->name, "interpreter");
  clb_context *ctx = context(state);
  for (int i = 0; i < TRAININGS; i++) {
    if (trainings[i].parameters == CLB_F64 && !d->f64) continue;
    if (SANITIZED && !long_tests() && i % 3) continue;
    trainer t = begin(ctx, &trainings[i], true);
    for (int step = 0; step < (slow && !long_tests() ? 3 : STEPS); step++) {
      const double norm = new_gradients(&t, step);
      OK(ctx, clb_optimizer_step(t.optimizer));
      reference_step(&t, step, norm);
    }
    expect(&t, &t.parameters, false, "parameters");
    if (trainings[i].ema) expect(&t, &t.average, true, "averages");
    end(&t);
  }
}

/* Gradients that are not finite change nothing, also in the first step; a state goes on bit by bit;
   and a recorded step is the next one at each replay. */
static void goes_on(void **state) {
  clb_context *ctx = context(state);
  const training what = {CLB_MUON_NEQUIX,  CLB_F32, CLB_F32, ALIGNED_16, 0, 0.1, 0, 0, 0,
                         CLB_EMA_CONSTANT, 1e-5};
  trainer t = begin(ctx, &what, true);
  const int64_t n = all_elements();
  double *other = malloc((size_t)n * sizeof *other);
  uint64_t bytes;
  clb_recording *recording;
  new_gradients(&t, 0);
  t.x[n / 2] = NAN;
  array_write(ctx, &t.gradients, t.x);
  OK(ctx, clb_optimizer_step(t.optimizer));
  array_read(ctx, &t.parameters, t.x);
  for (int64_t i = 0; i < n; i++) assert_true(t.x[i] == t.first[i]);
  new_gradients(&t, 1);
  OK(ctx, clb_optimizer_step(t.optimizer));
  OK(ctx, clb_optimizer_state_bytes(t.optimizer, &bytes));
  void *kept = malloc(bytes);
  OK(ctx, clb_optimizer_state_read(t.optimizer, kept, bytes));
  array_read(ctx, &t.parameters, other);
  for (int i = 0; i < 2; i++) OK(ctx, clb_optimizer_step(t.optimizer));
  array_read(ctx, &t.parameters, t.x);
  clb_optimizer_destroy(&t.optimizer);
  array_write(ctx, &t.parameters, other);
  t.optimizer = create(&t, CLB_CLIP_NONE);
  OK(ctx, clb_optimizer_state_write(t.optimizer, kept, bytes));
  OK(ctx, clb_record_begin(ctx));
  OK(ctx, clb_optimizer_step(t.optimizer));
  OK(ctx, clb_record_end(ctx, &recording));
  for (int i = 0; i < 2; i++) OK(ctx, clb_replay(recording));
  array_read(ctx, &t.parameters, other);
  assert_memory_equal(t.x, other, (size_t)n * sizeof *other);
  clb_recording_destroy(&recording);
  free(kept);
  free(other);
  end(&t);
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_buffer *b;
  clb_optimizer *o;
  OK(ctx, clb_buffer_create(ctx, 4000, &b));
  const clb_optimizer_group good = {.rule = CLB_MUON, .lr = 0.1, .muon = CLB_MUON_NEQUIX};
  clb_optimizer_group g[2] = {good, good};
  const clb_optimizer_tensor tensor = {
      .rows = 5, .columns = 7, .parameters = {b, 0}, .gradients = {b, 100}};
  const clb_optimizer_desc d = {.tensors = &tensor, .n_tensors = 1, .groups = g, .n_groups = 2};
#define WRONG(word) NOT_OK(ctx, CLB_ERROR_ARGUMENT, word, clb_optimizer_create(ctx, &d, &o))
  g[0].muon = (clb_muon)9;
  WRONG("muon of group 0 is 9; it must be CLB_MUON_OPTAX ... CLB_MUON_TORCH_RMS");
  g[0] = good, g[0].nesterov = 1;
  WRONG("CLB_MUON always has it; it must be 0");
  g[0] = good, g[0].momentum = 1;
  WRONG("momentum of group 0 is 1; it must be at least 0 and below 1");
  g[0] = good, g[0].dampening = 0.1;
  WRONG("its rule has none");
  g[0] = good, g[0].rule = CLB_ADAM;
  WRONG("muon of group 0 is 1; it must be 0, as its rule is another");
  g[0] = good, g[0].muon = CLB_MUON_TORCH;
  WRONG("the matrices of groups 0 and 1 are in bf16 and in the type of the parameters");
  g[0] = good;
  OK(ctx, clb_optimizer_create(ctx, &d, &o));
  g[0].lr = 1, g[0].weight_decay = 0.1, g[0].momentum = 0.5;
  OK(ctx, clb_optimizer_set_group(o, 0, g));
  g[0].epsilon = 1;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "epsilon of group 0 was compiled",
         clb_optimizer_set_group(o, 0, g));
  g[0] = good, g[0].muon = CLB_MUON_NEQUIP;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "muon of group 0 was compiled", clb_optimizer_set_group(o, 0, g));
  clb_optimizer_destroy(&o);
  clb_buffer_destroy(&b);
}

/* Kernels compile for the targets that only compile, where a step is refused. */
static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  trainer t = begin(ctx, &trainings[(d - devices) % 2 ? 2 : 5], false);
  assert_int_equal(clb_optimizer_step(t.optimizer), CLB_ERROR_UNSUPPORTED);
  end(&t);
}

int main(void) {
  static const named_test tests[] = {
      {"trains", trains, false}, {"goes_on", goes_on, false}, {"refuses", refuses, false}};
  return run_on_all("muon", tests, sizeof tests / sizeof *tests, compiles);
}
