/* tests/ops/optimizer/test_optimizer_calls.c - what an optimizer's calls do besides a step: new
   numbers, recordings, gradients that are not finite, states that are kept; and what is refused. */
#include <math.h>

#include "tests/fakes/simulated_devices.h"

enum { N = 1500, ROWS = 50, TENSORS = 3 };
static const int64_t starts[TENSORS + 1] = {0, ROWS * 20, ROWS * 20 + 7, N};

/* Three tensors in one buffer, two groups. */
typedef struct {
  clb_context *ctx;
  clb_buffer *p, *g, *average;
  clb_optimizer_tensor tensor[TENSORS];
  clb_optimizer_group group[2];
  clb_optimizer_desc desc;
  clb_optimizer *o;
} scene;

static void set(clb_context *ctx, clb_buffer *b, uint64_t seed) {
  float x[N];
  for (int i = 0; i < N; i++) x[i] = (float)(test_random(&seed) + 0.25);
  OK(ctx, clb_buffer_write(b, 0, x, sizeof x));
}

static void describe(scene *s, clb_context *ctx, clb_rule rule) {
  *s = (scene){.ctx = ctx};
  clb_buffer **const buffers[] = {&s->p, &s->g, &s->average};
  for (int i = 0; i < 3; i++) {
    OK(ctx, clb_buffer_create(ctx, N * sizeof(float), buffers[i]));
    if (ctx->device->info.runs) set(ctx, *buffers[i], (uint64_t)i);
  }
  for (int i = 0; i < TENSORS; i++)
    s->tensor[i] = (clb_optimizer_tensor){.rows = i ? starts[i + 1] - starts[i] : ROWS,
                                          .columns = i ? 1 : 20,
                                          .group = i % 2,
                                          .parameters = {s->p, starts[i]},
                                          .gradients = {s->g, starts[i]}};
  s->group[0] = (clb_optimizer_group){.rule = rule, .lr = 0.01};
  s->group[1] = (clb_optimizer_group){.rule = CLB_SGD, .lr = 0.1, .momentum = 0.9};
  s->desc = (clb_optimizer_desc){
      .tensors = s->tensor, .n_tensors = TENSORS, .groups = s->group, .n_groups = 2};
}

static void begin(scene *s, void **state, clb_rule rule) {
  describe(s, context(state), rule);
  OK(s->ctx, clb_optimizer_create(s->ctx, &s->desc, &s->o));
}

static void end(scene *s) {
  clb_optimizer_destroy(&s->o);
  clb_buffer_destroy(&s->p);
  clb_buffer_destroy(&s->g);
  clb_buffer_destroy(&s->average);
}

static void read_parameters(const scene *s, float *x) {
  OK(s->ctx, clb_buffer_read(s->p, 0, x, N * sizeof *x));
}

static void expect_equal(const scene *a, const scene *b) {
  float x[2][N];
  read_parameters(a, x[0]);
  read_parameters(b, x[1]);
  assert_memory_equal(x[0], x[1], sizeof x[0]);
}

static void steps(scene *s, int from, int to) {
  for (int i = from; i < to; i++) {
    set(s->ctx, s->g, 100 + (uint64_t)i);
    OK(s->ctx, clb_optimizer_step(s->o));
  }
}

static void new_rate(scene *s, double lr) {
  s->group[0].lr = lr;
  OK(s->ctx, clb_optimizer_set_group(s->o, 0, &s->group[0]));
}

/* A recorded step is the next one each time, with new gradients and a new learning rate. */
static void replays(void **state) {
  scene plain, recorded;
  clb_recording *step;
  begin(&plain, state, CLB_ADAM);
  begin(&recorded, state, CLB_ADAM);
  OK(plain.ctx, clb_record_begin(plain.ctx));
  OK(plain.ctx, clb_optimizer_step(recorded.o));
  assert_int_equal(clb_optimizer_set_group(recorded.o, 0, &recorded.group[0]), CLB_ERROR_ARGUMENT);
  clb_record_end(plain.ctx, &step);
  assert_null(step); /* a call in between failed */
  OK(plain.ctx, clb_record_begin(plain.ctx));
  OK(plain.ctx, clb_optimizer_step(recorded.o));
  OK(plain.ctx, clb_record_end(plain.ctx, &step));
  for (int i = 0; i < 6; i++) {
    if (i == 3) new_rate(&plain, 0.003), new_rate(&recorded, 0.003);
    steps(&plain, i, i + 1);
    set(recorded.ctx, recorded.g, 100 + (uint64_t)i);
    OK(recorded.ctx, clb_replay(step));
  }
  expect_equal(&plain, &recorded);
  clb_progress progress;
  OK(recorded.ctx, clb_optimizer_progress(recorded.o, &progress));
  assert_int_equal(progress.steps, 6);
  clb_recording_destroy(&step);
  end(&plain);
  end(&recorded);
}

/* A step goes to another buffer if all tensors lie in one. */
static void replaces(void **state) {
  scene s;
  clb_recording *step;
  clb_buffer *other;
  float before[N], after[N];
  for (int scattered = 0; scattered < 2; scattered++) {
    describe(&s, context(state), CLB_ADAM);
    OK(s.ctx, clb_buffer_create(s.ctx, N * sizeof(float), &other));
    set(s.ctx, other, 9);
    if (scattered) s.tensor[1].gradients = (clb_place){s.average, 0};
    OK(s.ctx, clb_optimizer_create(s.ctx, &s.desc, &s.o));
    OK(s.ctx, clb_record_begin(s.ctx));
    OK(s.ctx, clb_optimizer_step(s.o));
    OK(s.ctx, clb_record_end(s.ctx, &step));
    if (scattered)
      NOT_OK(s.ctx, CLB_ERROR_UNSUPPORTED, "in several buffers",
             clb_recording_replace(step, s.p, other));
    else {
      OK(s.ctx, clb_recording_replace(step, s.p, other));
      read_parameters(&s, before);
      OK(s.ctx, clb_replay(step));
      read_parameters(&s, after);
      assert_memory_equal(before, after, sizeof before);
    }
    clb_recording_destroy(&step);
    end(&s);
    clb_buffer_destroy(&other);
  }
}

/* A step with infinite or missing numbers changes nothing but the count of such steps. */
static void leaves_out(void **state) {
  static const float bad[] = {INFINITY, NAN, -INFINITY};
  scene s, without;
  clb_progress progress;
  describe(&s, context(state), CLB_ADAM);
  describe(&without, context(state), CLB_ADAM);
  s.desc.check_finite = without.desc.check_finite = 1;
  OK(s.ctx, clb_optimizer_create(s.ctx, &s.desc, &s.o));
  OK(s.ctx, clb_optimizer_create(s.ctx, &without.desc, &without.o));
  for (int i = 0; i < 3; i++) {
    steps(&s, i, i + 1);
    OK(s.ctx,
       clb_buffer_write(s.g, (uint64_t)(i * (N - 1) / 2) * sizeof *bad, &bad[i], sizeof *bad));
    OK(s.ctx, clb_optimizer_step(s.o));
  }
  steps(&without, 0, 3);
  expect_equal(&s, &without);
  OK(s.ctx, clb_optimizer_progress(s.o, &progress));
  assert_int_equal(progress.steps, 3);
  assert_int_equal(progress.skipped, 3);
  assert_false(isfinite(progress.norm));
  const float large = 1e30f; /* its square is not finite, but it is */
  OK(s.ctx, clb_buffer_write(s.g, 0, &large, sizeof large));
  set(s.ctx, s.g, 5);
  OK(s.ctx, clb_buffer_write(s.g, 8, &large, sizeof large));
  OK(s.ctx, clb_optimizer_step(s.o));
  OK(s.ctx, clb_optimizer_progress(s.o, &progress));
  assert_int_equal(progress.steps, 4);
  end(&s);
  end(&without);
}

static void *state_of(const scene *s, uint64_t *bytes) {
  OK(s->ctx, clb_optimizer_state_bytes(s->o, bytes));
  void *state = malloc(*bytes);
  OK(s->ctx, clb_optimizer_state_read(s->o, state, *bytes));
  return state;
}

/* Training goes on from a state as if it had not stopped, and the state that was written is read.
 */
static void goes_on(void **state) {
  static const clb_rule rules[] = {CLB_ADAM, CLB_SCHEDULE_FREE_ADAMW, CLB_SGD};
  for (int i = 0; i < 3; i++) {
    scene whole, part, rest;
    uint64_t bytes, again;
    float x[N];
    begin(&whole, state, rules[i]);
    begin(&part, state, rules[i]);
    begin(&rest, state, rules[i]);
    steps(&whole, 0, 7);
    steps(&part, 0, 4);
    void *kept = state_of(&part, &bytes);
    read_parameters(&part, x);
    OK(rest.ctx, clb_buffer_write(rest.p, 0, x, sizeof x));
    OK(rest.ctx, clb_optimizer_state_write(rest.o, kept, bytes));
    void *twice = state_of(&rest, &again);
    assert_int_equal(bytes, again);
    assert_memory_equal(kept, twice, bytes);
    steps(&rest, 4, 7);
    expect_equal(&whole, &rest);
    free(kept);
    free(twice);
    end(&whole);
    end(&part);
    end(&rest);
  }
}

/* The state of another list of tensors. */
static void foreign_states(void **state) {
  scene s, other;
  uint64_t bytes;
  begin(&s, state, CLB_ADAM);
  char *kept = state_of(&s, &bytes);
  clb_context *ctx = s.ctx;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "room for", clb_optimizer_state_read(s.o, kept, bytes - 1));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes", clb_optimizer_state_write(s.o, kept, bytes - 1));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "are not a state", clb_optimizer_state_write(s.o, kept, 8));
  describe(&other, ctx, CLB_ADAM);
  other.tensor[0].rows = 20, other.tensor[0].columns = ROWS;
  OK(ctx, clb_optimizer_create(ctx, &other.desc, &other.o));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT,
         "tensor 0 of the state is 50 x 20 of group 0, that of the optimizer 20 x 50",
         clb_optimizer_state_write(other.o, kept, bytes));
  end(&other);
  begin(&other, state, CLB_ADAMW);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "group 0 of the state is of another rule",
         clb_optimizer_state_write(other.o, kept, bytes));
  end(&other);
  describe(&other, ctx, CLB_ADAM);
  other.desc.n_tensors = 2;
  OK(ctx, clb_optimizer_create(ctx, &other.desc, &other.o));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "number of tensors of the state is 3, that of the optimizer 2",
         clb_optimizer_state_write(other.o, kept, bytes));
  end(&other);
  kept[0] ^= 1;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "are not a state", clb_optimizer_state_write(s.o, kept, bytes));
  free(kept);
  end(&s);
}

/* x of a schedule-free rule is y at first, and the parameters of other rules. */
static void averages(void **state) {
  scene s;
  float x[2][N];
  describe(&s, context(state), CLB_SCHEDULE_FREE_ADAMW);
  for (int i = 0; i < TENSORS; i++) s.tensor[i].average = (clb_place){s.average, starts[i]};
  OK(s.ctx, clb_optimizer_create(s.ctx, &s.desc, &s.o));
  for (int i = 0; i < 2; i++) {
    OK(s.ctx, clb_optimizer_average(s.o));
    read_parameters(&s, x[0]);
    OK(s.ctx, clb_buffer_read(s.average, 0, x[1], sizeof x[1]));
    for (int64_t k = i ? starts[1] : 0; k < (i ? starts[2] : N); k++)
      assert_true(x[0][k] == x[1][k]);
    steps(&s, 0, 3);
  }
  clb_optimizer *o = s.o;
  s.o = NULL;
  clb_optimizer_destroy(&o);
  s.group[0].rule = CLB_ADAM;
  for (int i = 0; i < TENSORS; i++) s.tensor[i].average.buffer = NULL;
  OK(s.ctx, clb_optimizer_create(s.ctx, &s.desc, &s.o));
  NOT_OK(s.ctx, CLB_ERROR_ARGUMENT, "no rule is schedule-free", clb_optimizer_average(s.o));
  end(&s);
}

/* A moving average begins with the parameters before the first step, in memory that holds nothing.
 */
static void begins_average(void **state) {
  scene s;
  float first[N], p[N], average[N];
  clb_buffer *fresh;
  describe(&s, context(state), CLB_ADAM);
  OK(s.ctx, clb_buffer_create(s.ctx, sizeof first, &fresh));
  for (int i = 0; i < TENSORS; i++) s.tensor[i].average = (clb_place){fresh, starts[i]};
  s.desc.ema = CLB_EMA_CONSTANT, s.desc.ema_decay = 0.75;
  OK(s.ctx, clb_optimizer_create(s.ctx, &s.desc, &s.o));
  read_parameters(&s, first);
  steps(&s, 0, 1);
  read_parameters(&s, p);
  OK(s.ctx, clb_buffer_read(fresh, 0, average, sizeof average));
  for (int i = 0; i < N; i++)
    assert_true(fabsf(average[i] - (0.75f * first[i] + 0.25f * p[i])) < 1e-6f);
  NOT_OK(s.ctx, CLB_ERROR_ARGUMENT, "already where it should be", clb_optimizer_average(s.o));
  end(&s);
  clb_buffer_destroy(&fresh);
}

/* Tensors without elements are steps, too. */
static void nothing_to_do(void **state) {
  scene s;
  clb_progress progress;
  uint64_t bytes;
  describe(&s, context(state), CLB_ADAM);
  for (int i = 0; i < TENSORS; i++)
    s.tensor[i] = (clb_optimizer_tensor){.rows = i % 2 * 5, .columns = 0, .group = i % 2};
  s.desc.clip = CLB_CLIP_TORCH, s.desc.max_norm = 1;
  OK(s.ctx, clb_optimizer_create(s.ctx, &s.desc, &s.o));
  OK(s.ctx, clb_optimizer_step(s.o));
  OK(s.ctx, clb_optimizer_step(s.o));
  OK(s.ctx, clb_optimizer_progress(s.o, &progress));
  assert_int_equal(progress.steps, 2);
  assert_true(progress.norm == 0);
  free(state_of(&s, &bytes));
  end(&s);
}

/* ---- refusals ---- */

#define REFUSED(words, ...)                                                                        \
  do {                                                                                             \
    scene s;                                                                                       \
    describe(&s, ctx, CLB_ADAM);                                                                   \
    __VA_ARGS__;                                                                                   \
    NOT_OK(ctx, CLB_ERROR_ARGUMENT, words, clb_optimizer_create(ctx, &s.desc, &s.o));              \
    assert_null(s.o);                                                                              \
    end(&s);                                                                                       \
  } while (0)

static void refuses_numbers(void **state) {
  clb_context *ctx = context(state);
  REFUSED("lr of group 0 is nan", s.group[0].lr = NAN);
  REFUSED("lr of group 0 is -0.1; it must be finite and at least 0", s.group[0].lr = -0.1);
  REFUSED("lr of group 1 is inf", s.group[1].lr = INFINITY);
  REFUSED("beta1 of group 0 is 1; it must be at least 0 and below 1", s.group[0].beta1 = 1);
  REFUSED("beta2 of group 0 is nan", s.group[0].beta2 = NAN);
  REFUSED("epsilon of group 0 is nan", s.group[0].epsilon = NAN);
  REFUSED("weight_decay of group 0 is -1", s.group[0].weight_decay = -1);
  REFUSED("rule of group 0 is 99", s.group[0].rule = (clb_rule)99);
  REFUSED("its rule has none", s.group[0].momentum = 0.9);
  REFUSED("nesterov of group 1 needs momentum", s.group[1].nesterov = 1, s.group[1].momentum = 0);
  REFUSED("amsgrad and nesterov", s.group[0].nesterov = s.group[0].amsgrad = 1);
  REFUSED("only CLB_ADAM and CLB_ADAMW", s.group[1].amsgrad = 1);
  REFUSED("warm_up_steps of group 0 is 5; it must be 0", s.group[0].warm_up_steps = 5);
  REFUSED("cannot do without it", s.group[0].rule = CLB_SCHEDULE_FREE_ADAMW, s.group[0].beta1 = -1);
  REFUSED("max_norm is nan", s.desc.clip = CLB_CLIP_TORCH, s.desc.max_norm = NAN);
  REFUSED("max_norm is 1; it must be 0 without clipping", s.desc.max_norm = 1);
  REFUSED("ema_decay is 1", s.desc.ema = CLB_EMA_CONSTANT, s.desc.ema_decay = 1);
  REFUSED("clip is 7", s.desc.clip = (clb_clip)7);
  REFUSED("ema is 7", s.desc.ema = (clb_ema)7);
  REFUSED("n_tensors is 0", s.desc.n_tensors = 0);
  REFUSED("n_groups is 0", s.desc.n_groups = 0);
  REFUSED("tensors is NULL", s.desc.tensors = NULL);
  REFUSED("parameters is 2; it must be CLB_F32 or CLB_F64", s.desc.parameters = CLB_F16);
  REFUSED("gradients is CLB_F64, which is wider", s.desc.gradients = CLB_F64);
  REFUSED("copy is 9", s.desc.copy = (clb_dtype)9);
}

static void refuses_tensors(void **state) {
  clb_context *ctx = context(state), *foreign;
  clb_buffer *there;
  OK(foreign, clb_context_create("cpu:interpreter", &foreign));
  OK(foreign, clb_buffer_create(foreign, N * sizeof(float), &there));
  REFUSED("parameters of tensor 1 and the gradients of tensor 1 overlap",
          s.tensor[1].gradients = s.tensor[1].parameters);
  REFUSED("the parameters of tensor 0 and the parameters of tensor 1 overlap",
          s.tensor[1].parameters.offset--);
  REFUSED("of group 2; there are groups 0 ... 1", s.tensor[2].group = 2);
  REFUSED("tensor 2 has -1 x 1 elements", s.tensor[2].rows = -1);
  REFUSED("elements; both must be", s.tensor[2].rows = INT64_MAX, s.tensor[2].columns = 3);
  REFUSED("are not inside its buffer of 6000 bytes", s.tensor[2].parameters.offset += 1);
  REFUSED("are not inside its buffer", s.tensor[2].gradients.offset = -1);
  REFUSED("are not inside its buffer", s.tensor[2].gradients.offset = INT64_MAX);
  REFUSED("tensor 1 has no buffer of gradients", s.tensor[1].gradients.buffer = NULL);
  REFUSED("tensor 0 has no buffer of average, which ema asks for", s.desc.ema = CLB_EMA_CONSTANT);
  REFUSED("tensor 1 has no buffer of copy, unlike others", s.tensor[0].copy.buffer = s.average);
  REFUSED("but ema is CLB_EMA_NONE", for (int i = 0; i < TENSORS; i++) s.tensor[i].average =
                                         (clb_place){s.average, starts[i]});
  REFUSED("belongs to another context", s.tensor[1].gradients.buffer = there);
  clb_buffer_destroy(&there);
  clb_context_destroy(&foreign);
}

static void refuses_calls(void **state) {
  scene s;
  clb_progress progress;
  begin(&s, state, CLB_ADAM);
  clb_optimizer_group g = s.group[0];
  clb_context *ctx = s.ctx;
  g.lr = NAN;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "lr of group 0 is nan", clb_optimizer_set_group(s.o, 0, &g));
  g = s.group[0], g.amsgrad = 1;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "amsgrad of group 0 was compiled",
         clb_optimizer_set_group(s.o, 0, &g));
  g = s.group[1], g.momentum = 0;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "momentum of group 1 was compiled; it cannot change from or to 0",
         clb_optimizer_set_group(s.o, 1, &g));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "group is 2", clb_optimizer_set_group(s.o, 2, &g));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "numbers is NULL", clb_optimizer_set_group(s.o, 1, NULL));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "progress is NULL", clb_optimizer_progress(s.o, NULL));
  assert_int_equal(clb_optimizer_step(NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_optimizer_progress(NULL, &progress), CLB_ERROR_ARGUMENT);
  clb_optimizer_destroy(NULL);
  end(&s);
}

static void nothing(void **state) { (void)state; }

int main(void) {
  static const named_test tests[] = {
      {"replays", replays, false},
      {"replaces", replaces, true},
      {"leaves_out", leaves_out, false},
      {"goes_on", goes_on, false},
      {"foreign_states", foreign_states, false},
      {"averages", averages, false},
      {"begins_average", begins_average, false},
      {"nothing_to_do", nothing_to_do, false},
      {"refuses_numbers", refuses_numbers, true},
      {"refuses_tensors", refuses_tensors, true},
      {"refuses_calls", refuses_calls, true},
  };
  return run_on_all("optimizer", tests, sizeof tests / sizeof *tests, nothing);
}
