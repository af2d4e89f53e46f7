/* tests/ops/optimizer/test_optimizer_curves.c - parameters after 1, 2, 10 and 100 steps beside
   those of torch, optax, torch_ema and schedulefree (tests/data/optimizer_curves.py). */
#include <jansson.h>
#include <math.h>

#include "tests/fakes/simulated_devices.h"

enum { TENSORS = 6, STEPS = 100 };
static const double SMALL = 0.125; /* smaller numbers are differences of larger ones */
static const int64_t shapes[TENSORS][2] = {{4, 4}, {3, 5}, {6, 4}, {1, 5}, {7, 1}, {1, 1}};
enum { ELEMENTS = 16 + 15 + 24 + 5 + 7 + 1 };

static json_t *curves; /* of the file */

/* ---- the problem that all libraries were given ---- */

typedef struct {
  uint32_t s;
  bool wide;
  double target[ELEMENTS];
} problem;

static void next(problem *p, double *to) {
  for (int i = 0; i < ELEMENTS; i++) {
    p->s = 1664525u * p->s + 1013904223u;
    to[i] = (double)(p->s >> 8) / 16777216.0 - 0.5;
  }
}

/* (p - target) / 2 + noise, in the parameters' type. */
static void gradients(problem *p, const double *at, double *to) {
  double noise[ELEMENTS];
  next(p, noise);
  for (int i = 0; i < ELEMENTS; i++)
    to[i] = p->wide ? (at[i] - p->target[i]) / 2 + noise[i]
                    : (double)(((float)at[i] - (float)p->target[i]) / 2 + (float)noise[i]);
}

static void to_type(bool wide, const double *x, void *to) {
  for (int i = 0; i < ELEMENTS; i++)
    if (wide) ((double *)to)[i] = x[i];
    else ((float *)to)[i] = (float)x[i];
}

static void from_type(bool wide, const void *from, double *x) {
  for (int i = 0; i < ELEMENTS; i++)
    x[i] = wide ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

/* ---- what a curve was made with ---- */

static double setting(const json_t *curve, const char *name, double otherwise) {
  const json_t *x = json_object_get(json_object_get(curve, "settings"), name);
  return json_is_true(x) ? 1 : json_is_number(x) ? json_number_value(x) : otherwise;
}

static const char *text(const json_t *curve, const char *name) {
  return json_string_value(json_object_get(curve, name));
}

static bool begins(const char *name, const char *with) {
  return !strncmp(name, with, strlen(with));
}

/* Muon for matrices, and what goes with it for the others. */
static void describe_muon(const json_t *curve, clb_optimizer_desc *d, clb_optimizer_group *g) {
  const bool optax = begins(text(curve, "library"), "optax");
  const json_t *rest = json_object_get(json_object_get(curve, "settings"), "rest");
  const bool rms = strstr(text(curve, "name"), "rms");
  g[0] = (clb_optimizer_group){.rule = CLB_MUON,
                               .muon = optax ? CLB_MUON_OPTAX
                                       : rms ? CLB_MUON_TORCH_RMS
                                             : CLB_MUON_TORCH,
                               .lr = setting(curve, optax ? "learning_rate" : "lr", NAN),
                               .weight_decay = setting(curve, "weight_decay", 0),
                               .momentum = setting(curve, optax ? "beta" : "momentum", 0)};
  g[1] = (clb_optimizer_group){
      .rule = optax ? CLB_ADAM : CLB_ADAMW,
      .lr = optax ? g[0].lr : json_number_value(json_object_get(rest, "lr")),
      .weight_decay = optax ? 0 : json_number_value(json_object_get(rest, "weight_decay")),
      .nesterov = optax};
  d->n_groups = 2;
}

static void describe(const json_t *curve, clb_optimizer_desc *d, clb_optimizer_group *g) {
  const json_t *betas = json_object_get(json_object_get(curve, "settings"), "betas");
  const char *name = text(curve, "name");
  const bool optax = begins(text(curve, "library"), "optax");
  *g = (clb_optimizer_group){.rule = begins(name, "sgd")             ? CLB_SGD
                                     : begins(name, "adamw")         ? CLB_ADAMW
                                     : begins(name, "schedule-free") ? CLB_SCHEDULE_FREE_ADAMW
                                                                     : CLB_ADAM,
                             .lr = setting(curve, optax ? "learning_rate" : "lr", NAN),
                             .weight_decay = setting(curve, "weight_decay", 0),
                             .momentum = setting(curve, "momentum", 0),
                             .dampening = setting(curve, "dampening", 0),
                             .nesterov = setting(curve, "nesterov", 0) != 0,
                             .amsgrad = setting(curve, "amsgrad", 0) != 0,
                             .warm_up_steps = (int64_t)setting(curve, "warmup_steps", 0)};
  if (betas) g->beta1 = json_number_value(json_array_get(betas, 0));
  if (betas) g->beta2 = json_number_value(json_array_get(betas, 1));
  d->groups = g;
  d->n_groups = 1;
  if (begins(name, "muon")) describe_muon(curve, d, g);
  d->max_norm = setting(curve, "max_norm", 0);
  d->clip = d->max_norm > 0 ? optax ? CLB_CLIP_OPTAX : CLB_CLIP_TORCH : CLB_CLIP_NONE;
  d->ema_decay = setting(curve, "decay", 0);
  d->ema = d->ema_decay > 0 ? CLB_EMA_WARM_UP : CLB_EMA_NONE;
}

/* ---- one curve ---- */

typedef struct {
  clb_context *ctx;
  const json_t *curve;
  problem p;
  clb_buffer *buffer[3]; /* parameters, gradients, average */
  clb_optimizer_tensor tensor[TENSORS];
  clb_optimizer *optimizer;
  double now[ELEMENTS];
} run;

static void write_array(run *r, int i, const double *x) {
  double numbers[ELEMENTS];
  to_type(r->p.wide, x, numbers);
  OK(r->ctx, clb_buffer_write(r->buffer[i], 0, numbers, ELEMENTS * (r->p.wide ? 8 : 4)));
}

static void read_array(run *r, int i, double *x) {
  double numbers[ELEMENTS];
  OK(r->ctx, clb_buffer_read(r->buffer[i], 0, numbers, ELEMENTS * (r->p.wide ? 8 : 4)));
  from_type(r->p.wide, numbers, x);
}

static void begin(run *r, clb_context *ctx, const json_t *curve) {
  clb_optimizer_group groups[2];
  clb_optimizer_desc d = {.tensors = r->tensor, .n_tensors = TENSORS};
  int64_t at = 0;
  *r = (run){.ctx = ctx, .curve = curve, .p = {.s = 1}};
  r->p.wide = !strcmp(text(curve, "dtype"), "f64");
  d.parameters = d.gradients = r->p.wide ? CLB_F64 : CLB_F32;
  describe(curve, &d, groups);
  const bool averages = json_object_get(curve, "average");
  for (int i = 0; i < 3; i++) OK(ctx, clb_buffer_create(ctx, ELEMENTS * 8, &r->buffer[i]));
  for (int i = 0; i < TENSORS; at += shapes[i][0] * shapes[i][1], i++)
    r->tensor[i] = (clb_optimizer_tensor){.rows = shapes[i][0],
                                          .columns = shapes[i][1],
                                          .group = d.n_groups > 1 && shapes[i][1] == 1,
                                          .parameters = {r->buffer[0], at},
                                          .gradients = {r->buffer[1], at},
                                          .average = {averages ? r->buffer[2] : NULL, at}};
  OK(ctx, clb_optimizer_create(ctx, &d, &r->optimizer));
  next(&r->p, r->now);
  next(&r->p, r->p.target);
  write_array(r, 0, r->now);
  write_array(r, 2, r->now);
}

static void end(run *r) {
  clb_optimizer_destroy(&r->optimizer);
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&r->buffer[i]);
}

static double ulp(bool wide, double x) {
  return wide ? nextafter(fabs(x), INFINITY) - fabs(x)
              : (double)(nextafterf(fabsf((float)x), INFINITY) - fabsf((float)x));
}

static void compare(const run *r, const char *key, const char *what, const double *is,
                    double ulps) {
  const json_t *list = json_object_get(json_object_get(r->curve, what), key);
  for (int i = 0; i < ELEMENTS && list; i++) {
    const double wanted = json_number_value(json_array_get(list, (size_t)i)),
                 apart = fabs(is[i] - wanted) / ulp(r->p.wide, fmax(fabs(wanted), SMALL));
    if (!(apart <= ulps))
      fail_msg("%s of %s, %s: element %d of %s after %s steps is %.17g, %g ulp from %.17g",
               text(r->curve, "name"), text(r->curve, "library"), text(r->curve, "dtype"), i, what,
               key, is[i], apart, wanted);
  }
}

static void compare_norm(const run *r, const char *key) {
  const json_t *norm = json_object_get(json_object_get(r->curve, "norm"), key);
  clb_progress progress;
  OK(r->ctx, clb_optimizer_progress(r->optimizer, &progress));
  if (norm && !(fabs(progress.norm / json_number_value(norm) - 1) < (r->p.wide ? 1e-14 : 1e-6)))
    fail_msg("%s: the norm after %s steps is %.9g, must be %.9g", text(r->curve, "name"), key,
             progress.norm, json_number_value(norm));
}

/* Muon's products are not in the order of others', and torch's are in bf16. */
static double times_ulps(const json_t *curve) {
  if (!begins(text(curve, "name"), "muon")) return 1;
  const bool wide = !strcmp(text(curve, "dtype"), "f64");
  return begins(text(curve, "library"), "optax") ? 10 : 1.5e-3 / ulp(wide, SMALL);
}

static void follow(clb_context *ctx, const json_t *curve) {
  static const struct {
    int step;
    double ulps;
  } looked_at[] = {{1, 2}, {2, 3}, {10, 6}, {STEPS, 20}};
  run r;
  begin(&r, ctx, curve);
  for (int step = 1, i = 0; step <= STEPS; step++) {
    double g[ELEMENTS], average[ELEMENTS];
    char key[16];
    gradients(&r.p, r.now, g);
    write_array(&r, 1, g);
    OK(ctx, clb_optimizer_step(r.optimizer));
    read_array(&r, 0, r.now);
    if (step != looked_at[i].step) continue;
    snprintf(key, sizeof key, "%d", step);
    if (begins(text(curve, "name"), "schedule-free")) OK(ctx, clb_optimizer_average(r.optimizer));
    read_array(&r, 2, average);
    compare(&r, key, "parameters", r.now, times_ulps(curve) * looked_at[i].ulps);
    compare(&r, key, "average", average, looked_at[i++].ulps);
    compare_norm(&r, key);
  }
  end(&r);
}

static void follows(void **state) {
  clb_context *ctx = context(state);
  size_t i;
  json_t *curve;
  json_array_foreach(curves, i, curve) {
    if (SANITIZED && !long_tests() && i % 4) continue;
    const bool can = ((struct device *)*state)->f64 || strcmp(text(curve, "dtype"), "f64");
    if (can) follow(ctx, curve);
  }
}

static void nothing(void **state) { (void)state; }

int main(void) {
  static const named_test tests[] = {{"follows", follows, false}};
  char path[1024];
  snprintf(path, sizeof path, "%s/optimizer_curves.json", getenv("CLB_TEST_DATA"));
  json_t *all = json_load_file(path, 0, NULL);
  curves = json_object_get(all, "curves");
  const int failed = curves ? run_on_all("optimizer", tests, 1, nothing) : 1;
  json_decref(all);
  return failed;
}
