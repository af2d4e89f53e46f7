/* tests/ops/optimizer/test_soap.c - SOAP: a hundred steps against float64, whose bases are its own
   where they are determined by the gradients, and else those of the device; what bases must be. */
#include "tests/fakes/simulated_devices.h"
#include "tests/ops/optimizer/soap_reference.h"

#include "kernels/optimizer/host/optimizer.h"

enum { STEPS = 100, LONGEST = 30, TENSORS = 9 };

/* determined: both sides that are rotated have no more numbers than there are vectors. */
static const struct {
  int64_t rows, columns;
  bool determined;
} shapes[TENSORS] = {{5, 5, true},   {1, 1, true},  {7, 3, false}, {3, 37, true}, {0, 5, true},
                     {20, 20, true}, {40, 8, true}, {9, 1, true},  {35, 35, true}};

typedef struct {
  clb_context *ctx;
  bool wide;
  clb_buffer *parameters, *gradients;
  clb_optimizer *optimizer;
  clb_optimizer_group group;
  soap_reference tensor[TENSORS];
  double *first, *x; /* parameters before the first step; numbers in a list */
} trainer;

static int64_t all_elements(void) {
  int64_t n = 0;
  for (int i = 0; i < TENSORS; i++) n += shapes[i].rows * shapes[i].columns;
  return n;
}

static uint64_t bytes_of_all(const trainer *t) {
  return (uint64_t)all_elements() * (t->wide ? 8 : 4);
}

static void write_numbers(const trainer *t, clb_buffer *b, const double *x) {
  void *there = malloc(bytes_of_all(t));
  for (int64_t i = 0; i < all_elements(); i++) put(t->wide ? CLB_F64 : CLB_F32, there, i, x[i]);
  OK(t->ctx, clb_buffer_write(b, 0, there, bytes_of_all(t)));
  free(there);
}

/* n numbers of memory from element `at` on. */
static void read_numbers(const trainer *t, const clb_memory *m, int64_t at, int64_t n, double *x) {
  const uint64_t bytes = t->wide ? 8 : 4;
  void *there = malloc((uint64_t)n * bytes + 1);
  clb_device *d = t->ctx->device;
  if (n) OK(t->ctx, d->backend->read(d, m, (uint64_t)at * bytes, there, (uint64_t)n * bytes));
  for (int64_t i = 0; i < n; i++) x[i] = number_at(t->wide ? CLB_F64 : CLB_F32, there, i);
  free(there);
}

static clb_optimizer *create(const trainer *t, bool finite) {
  clb_optimizer_tensor tensor[TENSORS];
  clb_optimizer *o;
  int64_t at = 0;
  for (int i = 0; i < TENSORS; at += shapes[i].rows * shapes[i].columns, i++)
    tensor[i] = (clb_optimizer_tensor){.rows = shapes[i].rows,
                                       .columns = shapes[i].columns,
                                       .parameters = {t->parameters, at},
                                       .gradients = {t->gradients, at}};
  const clb_dtype type = t->wide ? CLB_F64 : CLB_F32;
  const clb_optimizer_desc d = {.tensors = tensor,
                                .n_tensors = TENSORS,
                                .groups = &t->group,
                                .n_groups = 1,
                                .parameters = type,
                                .gradients = type,
                                .check_finite = finite};
  OK(t->ctx, clb_optimizer_create(t->ctx, &d, &o));
  return o;
}

static trainer begin(clb_context *ctx, bool wide, bool finite) {
  trainer t = {.ctx = ctx, .wide = wide};
  const int64_t n = all_elements();
  uint64_t seed = 5;
  int64_t at = 0;
  t.group = (clb_optimizer_group){.rule = CLB_SOAP,
                                  .lr = 0.01,
                                  .weight_decay = 0.1,
                                  .longest_side = LONGEST,
                                  .refresh_steps = 7};
  OK(ctx, clb_buffer_create(ctx, bytes_of_all(&t), &t.parameters));
  OK(ctx, clb_buffer_create(ctx, bytes_of_all(&t), &t.gradients));
  t.first = malloc((size_t)n * sizeof *t.first);
  t.x = malloc((size_t)n * sizeof *t.x);
  for (int64_t i = 0; i < n; i++) t.first[i] = (double)(float)(0.1 * test_random(&seed));
  t.optimizer = create(&t, finite);
  t.group.beta1 = t.group.beta2 = 0.95;
  t.group.epsilon = 1e-8;
  for (int i = 0; i < TENSORS; at += shapes[i].rows * shapes[i].columns, i++)
    t.tensor[i] = soap_begin(shapes[i].rows, shapes[i].columns, LONGEST, t.first + at);
  if (ctx->device->info.runs) write_numbers(&t, t.parameters, t.first);
  return t;
}

static void end(trainer *t) {
  clb_optimizer_destroy(&t->optimizer);
  clb_buffer_destroy(&t->parameters);
  clb_buffer_destroy(&t->gradients);
  for (int i = 0; i < TENSORS; i++) soap_end(&t->tensor[i]);
  free(t->first);
  free(t->x);
}

static void new_gradients(trainer *t, int step, double size) {
  uint64_t seed = 1000 + (uint64_t)step;
  for (int64_t i = 0, n = all_elements(); i < n; i++)
    t->x[i] = (double)(float)(size * (test_random(&seed) + 0.2));
  write_numbers(t, t->gradients, t->x);
}

/* ---- bases ---- */

/* Elements of E E^T - 1, and of E L E^T away from the diagonal beside the largest of L. */
static void expect_basis(const trainer *t, int tensor, int side, bool first, const double *e) {
  const soap_reference *x = &t->tensor[tensor];
  const int64_t n = soap_side(x, side);
  const double most = t->wide ? 1e-13 : 2e-5;
  const reference_matrix rows = {e, n, 1}, turned = {e, 1, n};
  double *a = numbers(n * n), *b = numbers(n * n), largest = 0;
  reference_product(rows, turned, n, n, n, a);
  for (int64_t i = 0; i < n * n; i++)
    if (!(fabs(a[i] - (i % (n + 1) == 0)) <= most))
      fail_msg("tensor %d, side %d: element %lld of E E^T is %g", tensor, side, (long long)i, a[i]);
  reference_product(rows, (reference_matrix){x->sum[side], n, 1}, n, n, n, b);
  reference_product((reference_matrix){b, n, 1}, turned, n, n, n, a);
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, a[i * n + i]);
  for (int64_t i = 0; i < n && first; i++)
    for (int64_t j = 0; j < n; j++) {
      const bool sorted = i == j || a[i * n + i] >= a[j * n + j] - most * largest || i > j;
      if (!(i == j || fabs(a[i * n + j]) <= most * largest) || !sorted)
        fail_msg("tensor %d, side %d: element %lld, %lld of E L E^T is %g, the largest %g", tensor,
                 side, (long long)i, (long long)j, a[i * n + j], largest);
    }
  free(a);
  free(b);
}

/* S E^T, S = E_before L, must be a lower triangle. */
static void expect_triangle(const trainer *t, int tensor, int side, const double *before,
                            const double *e) {
  const soap_reference *x = &t->tensor[tensor];
  const int64_t n = soap_side(x, side);
  double *s = numbers(n * n), *r = numbers(n * n), largest = 0;
  reference_product((reference_matrix){before, n, 1}, (reference_matrix){x->sum[side], n, 1}, n, n,
                    n, s);
  reference_product((reference_matrix){s, n, 1}, (reference_matrix){e, 1, n}, n, n, n, r);
  for (int64_t i = 0; i < n * n; i++) largest = fmax(largest, fabs(r[i]));
  for (int64_t i = 0; i < n * n; i++)
    if (!(i % n <= i / n || fabs(r[i]) <= (t->wide ? 1e-13 : 2e-5) * largest))
      fail_msg("tensor %d, side %d: element %lld of S E^T is %g of %g", tensor, side, (long long)i,
               r[i], largest);
  free(s);
  free(r);
}

static int64_t padded(int64_t n) { return (n + 7) / 8 * 8; }

/* The device's L and R are the reference's; its bases are what they must be. The reference goes on
   with its own, or with those of the device. fresh: bases are new in this step. */
static void check_bases(trainer *t, bool first, bool fresh) {
  int64_t at = 0;
  for (int i = 0; i < TENSORS; i++)
    for (int side = 0; side < SIDES; side++) {
      soap_reference *x = &t->tensor[i];
      const int64_t n = soap_side(x, side);
      double largest = 0;
      if (!x->turns[side]) continue;
      double *sum = numbers(n * n), *e = numbers(n * n);
      at = padded(at);
      read_numbers(t, &t->optimizer->matrix, at, n * n, sum);
      read_numbers(t, &t->optimizer->matrix, at = padded(at + n * n), n * n, e);
      at += n * n;
      for (int64_t k = 0; k < n * n; k++) largest = fmax(largest, fabs(x->sum[side][k]));
      for (int64_t k = 0; k < n * n; k++)
        if (!(fabs(sum[k] - x->sum[side][k]) <= (t->wide ? 1e-14 : 1e-5) * largest))
          fail_msg("tensor %d, side %d: element %lld of its sum is %g, not %g", i, side,
                   (long long)k, sum[k], x->sum[side][k]);
      if (fresh) expect_basis(t, i, side, first, e);
      if (fresh && !first && !shapes[i].determined) expect_triangle(t, i, side, x->basis[side], e);
      if (fresh && shapes[i].determined) soap_new_basis(x, side, first);
      else if (fresh) memcpy(x->basis[side], e, (size_t)(n * n) * sizeof *e);
      free(sum);
      free(e);
    }
}

/* ---- tests ---- */

static void expect_parameters(trainer *t, int step, double most) {
  const double *first = t->first;
  read_numbers(t, &t->parameters->memory, 0, all_elements(), t->x);
  const double *x = t->x;
  for (int i = 0; i < TENSORS; i++) {
    const int64_t n = shapes[i].rows * shapes[i].columns;
    double error = 0, way = 0;
    for (int64_t k = 0; k < n; k++) {
      error += pow(x[k] - t->tensor[i].p[k], 2);
      way += pow(t->tensor[i].p[k] - first[k], 2);
    }
    if (!(sqrt(error) <= most * sqrt(way)))
      fail_msg("tensor %d after %d steps is off by %g of its way of %g", i, step, sqrt(error / way),
               sqrt(way));
    x += n, first += n;
  }
}

static void train(clb_context *ctx, bool wide, double size, int steps) {
  trainer t = begin(ctx, wide, false);
  for (int step = 0; step < steps; step++) {
    int64_t at = 0;
    new_gradients(&t, step, size);
    OK(ctx, clb_optimizer_step(t.optimizer));
    for (int i = 0; i < TENSORS; at += shapes[i].rows * shapes[i].columns, i++)
      soap_step(&t.tensor[i], &t.group, step, t.x + at);
    check_bases(&t, step == 0, step % t.group.refresh_steps == 0);
  }
  expect_parameters(&t, steps, wide ? 1e-11 : 1e-4);
  end(&t);
}

static void trains(void **state) {
  const struct device *d = *state;
  const int steps = strstr(d->name, "interpreter") && !long_tests() ? 9 : STEPS;
  train(context(state), false, 1, steps);
  train(context(state), false, 1e-4, 9); /* whose squares' squares are below the least number */
  if (d->f64) train(context(state), true, 1, steps);
}

/* Steps are left out where gradients are not finite, also the first; a state goes on bit by bit,
   and a recorded step refreshes bases when they are due. */
static void goes_on(void **state) {
  enum { BEFORE = 5, AFTER = 5 };
  clb_context *ctx = context(state);
  trainer t = begin(ctx, false, true);
  const int64_t n = all_elements();
  double *other = malloc((size_t)n * sizeof *other);
  uint64_t bytes;
  clb_recording *recording;
  new_gradients(&t, 0, 1);
  t.x[n / 2] = NAN;
  write_numbers(&t, t.gradients, t.x);
  OK(ctx, clb_optimizer_step(t.optimizer));
  for (int step = 0; step < BEFORE; step++) {
    new_gradients(&t, step, 1);
    OK(ctx, clb_optimizer_step(t.optimizer));
    if (step) continue;
    read_numbers(&t, &t.parameters->memory, 0, n, t.x); /* the first one only makes bases */
    for (int64_t i = 0; i < n; i++) assert_true(t.x[i] == t.first[i]);
  }
  OK(ctx, clb_optimizer_state_bytes(t.optimizer, &bytes));
  void *kept = malloc(bytes);
  OK(ctx, clb_optimizer_state_read(t.optimizer, kept, bytes));
  read_numbers(&t, &t.parameters->memory, 0, n, other);
  for (int i = 0; i < AFTER; i++) OK(ctx, clb_optimizer_step(t.optimizer));
  read_numbers(&t, &t.parameters->memory, 0, n, t.x);
  clb_optimizer_destroy(&t.optimizer);
  write_numbers(&t, t.parameters, other);
  t.optimizer = create(&t, true);
  OK(ctx, clb_optimizer_state_write(t.optimizer, kept, bytes));
  OK(ctx, clb_record_begin(ctx));
  OK(ctx, clb_optimizer_step(t.optimizer));
  OK(ctx, clb_record_end(ctx, &recording));
  for (int i = 0; i < AFTER; i++) OK(ctx, clb_replay(recording));
  read_numbers(&t, &t.parameters->memory, 0, n, other);
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
  const clb_optimizer_group good = {.rule = CLB_SOAP, .lr = 0.1};
  clb_optimizer_group g[2] = {good, good};
  const clb_optimizer_tensor tensor = {
      .rows = 5, .columns = 7, .parameters = {b, 0}, .gradients = {b, 100}};
  const clb_optimizer_desc d = {.tensors = &tensor, .n_tensors = 1, .groups = g, .n_groups = 2};
#define WRONG(word) NOT_OK(ctx, CLB_ERROR_ARGUMENT, word, clb_optimizer_create(ctx, &d, &o))
  g[0].refresh_steps = -1;
  WRONG("refresh_steps of group 0 is -1; it must be 0 ... 1000000");
  g[0] = good, g[0].longest_side = 1 << 30;
  WRONG("longest_side of group 0 is 1073741824");
  g[0] = good, g[0].rule = CLB_ADAM, g[0].refresh_steps = 3;
  WRONG("refresh_steps of group 0 is 3; it must be 0, as only CLB_SOAP has it");
  g[0] = good, g[0].amsgrad = 1;
  WRONG("amsgrad of group 0");
  g[0] = (clb_optimizer_group){.rule = CLB_MUON, .lr = 1, .muon = CLB_MUON_NEQUIP};
  WRONG("the matrices of groups 0 and 1 are in bf16 and in the type of the parameters");
  g[0] = good;
  OK(ctx, clb_optimizer_create(ctx, &d, &o));
  g[0].lr = 1, g[0].beta1 = 0.5, g[0].refresh_steps = 3;
  OK(ctx, clb_optimizer_set_group(o, 0, g));
  g[0].beta2 = 0.5;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "beta2 of group 0 was compiled",
         clb_optimizer_set_group(o, 0, g));
  clb_optimizer_destroy(&o);
  clb_buffer_destroy(&b);
}

/* Kernels compile for the targets that only compile, where a step is refused. */
static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  trainer t = begin(context(state), (d - devices) % 2 && d->f64, false);
  assert_int_equal(clb_optimizer_step(t.optimizer), CLB_ERROR_UNSUPPORTED);
  end(&t);
}

int main(void) {
  static const named_test tests[] = {
      {"trains", trains, false}, {"goes_on", goes_on, false}, {"refuses", refuses, false}};
  return run_on_all("soap", tests, sizeof tests / sizeof *tests, compiles);
}
