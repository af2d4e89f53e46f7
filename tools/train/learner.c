/* tools/train/learner.c - the parameters of a model, and the optimizer that changes them. */
#include "tools/train/learner.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"
#include "tools/measure/timing.h"
#include "tools/train/devices/ranks.h"

static bool done(const learner *l, clb_status status) {
  if (status) warn("%s", clb_error(l->ctx));
  return !status;
}

/* ---- which tensors are trained ---- */

static const char *const never[] = {"agnesi_radii", "zbl_*"}, *const by_default[] = {
                                                                  "bessel_frequencies",
                                                                  "species_scale", "species_shift"};

static bool among(const char *name, const char *const *patterns, int n) {
  for (int i = 0; i < n; i++)
    if (!fnmatch(patterns[i], name, 0)) return true;
  return false;
}

static bool is_trained(const train_arguments *a, const char *name) {
  if (among(name, never, 2) || among(name, a->freeze.names, a->freeze.n)) return false;
  return !among(name, by_default, 3) || among(name, a->thaw.names, a->thaw.n);
}

/* Whether each pattern is of a tensor. */
static bool patterns_hold(const learner *l, const name_list *patterns, const char *option) {
  clb_tensor_info t;
  for (int p = 0; p < patterns->n; p++) {
    bool found = false;
    for (int64_t i = 0; !clb_model_tensor(l->model, i, &t) && !found; i++)
      found = !fnmatch(patterns->names[p], t.name, 0);
    if (found) continue;
    clb_model_tensor(l->model, 0, &t);
    warn("%s '%s': the model has no tensor of that name; one is %s", option, patterns->names[p],
         t.name);
    return false;
  }
  return true;
}

/* What another head has of its own. */
static bool is_of_head(const char *name) {
  static const char *const own[] = {"readout*", "*.readout*", "species_scale", "species_shift"};
  return among(name, own, 4);
}

static void add_tensor(learner *l, const clb_tensor_info *t, learner_head head) {
  learned_tensor *to = &l->tensor[l->n_tensors++];
  *to = (learned_tensor){*t, t->first};
  l->n_trained += t->count;
  if (head == HEAD_TRAINED) return;
  to->info.first = l->n;
  l->n += t->count;
}

static bool choose_tensors(learner *l, const train_arguments *a) {
  clb_tensor_info t;
  int64_t all = 0;
  if (!patterns_hold(l, &a->freeze, "--freeze") || !patterns_hold(l, &a->thaw, "--thaw"))
    return false;
  while (!clb_model_tensor(l->model, all, &t)) all++;
  l->tensor = allocate((size_t)all, 2 * sizeof *l->tensor);
  for (int head = 0; head < (a->replay.n ? 2 : 1); head++)
    for (int64_t i = 0; i < all; i++) {
      clb_model_tensor(l->model, i, &t);
      if (t.count && is_trained(a, t.name) && (head == HEAD_TRAINED || is_of_head(t.name)))
        add_tensor(l, &t, (learner_head)head);
    }
  if (!l->n_tensors) warn("--freeze: all tensors of the model are frozen");
  return l->n_tensors;
}

/* ---- numbers of the host and the device ---- */

static clb_status create_buffer(const learner *l, int64_t n, clb_buffer **b) {
  return clb_buffer_create(l->ctx, (uint64_t)n * dtype_bytes(l->dtype), b);
}

static clb_status put(const learner *l, int64_t n, const double *from, clb_buffer *to) {
  encode(l->dtype, from, l->staged, n);
  return clb_buffer_write(to, 0, l->staged, (uint64_t)n * dtype_bytes(l->dtype));
}

static clb_status get(const learner *l, int64_t n, clb_buffer *from, double *to) {
  const clb_status s = clb_buffer_read(from, 0, l->staged, (uint64_t)n * dtype_bytes(l->dtype));
  if (!s) decode(l->dtype, l->staged, to, n);
  return s;
}

/* ---- the optimizer ---- */

/* Of Muon, what is no matrix has Adam without decay; of other rules, what does not decay has a
   group of its own. */
static void set_groups(learner *l, const train_arguments *a) {
  const optimizer_choice *o = &a->optimizer;
  l->n_groups = 2;
  l->groups[0] = (clb_optimizer_group){.rule = o->rule,
                                       .lr = a->schedule.lr,
                                       .weight_decay = o->weight_decay,
                                       .momentum = o->momentum,
                                       .amsgrad = o->amsgrad,
                                       .muon = CLB_MUON_OPTAX};
  l->groups[1] = l->groups[0];
  l->groups[1].weight_decay = 0;
  if (o->rule == CLB_MUON)
    l->groups[1] = (clb_optimizer_group){.rule = CLB_ADAM, .lr = a->schedule.lr, .nesterov = 1};
}

static int group_of(const optimizer_choice *o, const char *name, bool matrix) {
  if (o->rule == CLB_MUON) return !matrix;
  for (const char *const *p = o->decays; p && *p; p++)
    if (!fnmatch(*p, name, 0)) return 0;
  return o->decays != NULL;
}

/* A tensor of two dimensions is a matrix, any other one a vector. Groups that no tensor is of are
   left out. */
static void describe(learner *l, const optimizer_choice *o, clb_optimizer_tensor *to) {
  bool used[2] = {false};
  for (int i = 0; i < l->n_tensors; i++) {
    const learned_tensor *t = &l->tensor[i];
    const bool matrix = t->info.rank == 2;
    to[i] = (clb_optimizer_tensor){.rows = matrix ? t->info.shape[0] : t->info.count,
                                   .columns = matrix ? t->info.shape[1] : 1,
                                   .group = group_of(o, t->info.name, matrix),
                                   .parameters = {l->values, t->info.first},
                                   .gradients = {l->gradients, t->info.first}};
    if (l->averages) to[i].average = (clb_place){l->average, t->info.first};
    used[to[i].group] = true;
  }
  if (used[0] && used[1]) return;
  l->n_groups = 1;
  if (!used[0]) l->groups[0] = l->groups[1];
  for (int i = 0; i < l->n_tensors; i++) to[i].group = 0;
}

/* What is not trained is what it was: the model need not look. */
static clb_status freeze_others(const learner *l) {
  clb_tensor_info t;
  clb_status s = CLB_OK;
  for (int64_t i = 0; !s && !clb_model_tensor(l->model, i, &t); i++) {
    int k = 0;
    while (k < l->n_tensors && l->tensor[k].in_model != t.first) k++;
    if (k == l->n_tensors && learner_stays_on_device(l)) s = clb_model_freeze(l->model, i);
  }
  return s;
}

static clb_status create(learner *l, const optimizer_choice *o) {
  clb_optimizer_tensor *tensors = allocate((size_t)l->n_tensors, sizeof *tensors);
  describe(l, o, tensors);
  const clb_optimizer_desc desc = {.tensors = tensors,
                                   .n_tensors = l->n_tensors,
                                   .groups = l->groups,
                                   .n_groups = l->n_groups,
                                   .parameters = l->dtype,
                                   .gradients = l->dtype,
                                   .clip = o->clip > 0 ? o->clip_rule : CLB_CLIP_NONE,
                                   .max_norm = o->clip,
                                   .check_finite = 1,
                                   .ema = o->ema > 0 ? o->ema_rule : CLB_EMA_NONE,
                                   .ema_decay = o->ema};
  const clb_status s = clb_optimizer_create(l->ctx, &desc, &l->optimizer);
  free(tensors);
  return s;
}

bool learner_open(learner *l, train_devices *devices, const train_arguments *a) {
  const md_system *y = devices->y;
  const optimizer_choice *o = &a->optimizer;
  *l = (learner){.devices = devices,
                 .ctx = y->ctx,
                 .model = y->model,
                 .dtype = y->dtype,
                 .n = y->info.parameters,
                 .n_model = y->info.parameters};
  l->averages_of_rule = o->rule == CLB_SCHEDULE_FREE_ADAMW;
  if (!choose_tensors(l, a)) return false;
  l->parameters = allocate((size_t)l->n, sizeof *l->parameters);
  if (l->averages_of_rule || o->ema > 0) l->averages = allocate((size_t)l->n, sizeof *l->averages);
  l->staged = allocate((size_t)l->n, dtype_bytes(l->dtype));
  set_groups(l, a);
  clb_status s = clb_model_parameters(l->model, l->parameters);
  for (int i = 0; i < l->n_tensors; i++)
    memmove(l->parameters + l->tensor[i].info.first, l->parameters + l->tensor[i].in_model,
            (size_t)l->tensor[i].info.count * sizeof(double));
  if (!s) s = create_buffer(l, l->n, &l->values);
  if (!s) s = create_buffer(l, l->n, &l->gradients);
  if (!s && a->replay.n) s = create_buffer(l, l->n_model, &l->second);
  if (!s && l->averages) s = create_buffer(l, l->n, &l->average);
  if (!s) s = put(l, l->n, l->parameters, l->values);
  if (!s && l->averages) s = put(l, l->n, l->parameters, l->average);
  if (!s) s = create(l, o);
  if (!s) s = freeze_others(l);
  if (!s && l->averages) memcpy(l->averages, l->parameters, (size_t)l->n * sizeof *l->averages);
  return done(l, s) && learner_use(l, HEAD_TRAINED);
}

void learner_close(learner *l) {
  clb_optimizer_destroy(&l->optimizer);
  clb_buffer_destroy(&l->values);
  clb_buffer_destroy(&l->gradients);
  clb_buffer_destroy(&l->second);
  clb_buffer_destroy(&l->average);
  free(l->parameters);
  free(l->averages);
  free(l->tensor);
  free(l->staged);
}

/* A moving average is always there. */
static clb_status average(const learner *l) {
  return l->averages_of_rule ? clb_optimizer_average(l->optimizer) : CLB_OK;
}

/* ---- steps ---- */

/* Those of the second head, where a model has them. */
static clb_status put_second(const learner *l) {
  double *second = allocate((size_t)l->n_model, sizeof *second);
  memcpy(second, l->parameters, (size_t)l->n_model * sizeof *second);
  for (int i = 0; i < l->n_tensors; i++)
    memcpy(second + l->tensor[i].in_model, l->parameters + l->tensor[i].info.first,
           (size_t)l->tensor[i].info.count * sizeof *second);
  const clb_status s = put(l, l->n_model, second, l->second);
  free(second);
  return s;
}

bool learner_use(learner *l, learner_head head) {
  if (head == HEAD_TRAINED) return train_devices_use(l->devices, l->values);
  return learner_read(l) && done(l, put_second(l)) && train_devices_use(l->devices, l->second);
}

bool learner_use_result(const learner *l) {
  return done(l, average(l)) && train_devices_use(l->devices, l->averages ? l->average : l->values);
}

/* From the last tensor on, so that what is the second head's own has been taken. */
static void add_second(const learner *l, double *second, double *to) {
  for (int i = l->n_tensors; i-- > 0;)
    for (int64_t k = 0; k < l->tensor[i].info.count; k++) {
      double *from = &second[l->tensor[i].in_model + k];
      to[l->tensor[i].info.first + k] += *from;
      *from = 0;
    }
}

bool learner_add_heads(const learner *l, bool trained, bool replayed) {
  double *second = allocate((size_t)l->n_model, sizeof *second),
         *all = allocate((size_t)l->n, sizeof *all);
  clb_status s = trained ? get(l, l->n_model, l->gradients, all) : CLB_OK;
  if (!s && replayed) s = get(l, l->n_model, l->second, second);
  add_second(l, second, all);
  if (!s) s = put(l, l->n, all, l->gradients);
  free(second);
  free(all);
  return done(l, s);
}

bool learner_step(learner *l, double lr) {
  double *spent = l->devices->spent, start = seconds_now();
  clb_status s = CLB_OK;
  for (int i = 0; i < l->n_groups && !s; i++) {
    l->groups[i].lr = lr;
    s = clb_optimizer_set_group(l->optimizer, i, &l->groups[i]);
  }
  if (!s) s = clb_optimizer_step(l->optimizer);
  l->behind = true;
  spent[SPENT_OPTIMIZER] += seconds_now() - start;
  return done(l, s);
}

bool learner_norms(const learner *l, int64_t n, double *norms) {
  return done(l, clb_optimizer_norms(l->optimizer, n, norms));
}

/* ---- the host's copies ---- */

bool learner_read(learner *l) {
  clb_status s = CLB_OK;
  if (!l->behind) return true;
  s = average(l);
  if (!s) s = get(l, l->n, l->values, l->parameters);
  if (!s && l->averages) s = get(l, l->n, l->average, l->averages);
  if (!s) ranks_copy(l->n, l->parameters);
  if (!s && l->averages) ranks_copy(l->n, l->averages);
  l->behind = s != CLB_OK;
  return done(l, s);
}

const double *learner_result(const learner *l) { return l->averages ? l->averages : l->parameters; }

/* ---- what is saved ---- */

bool learner_moments(const learner *l, void **moments, uint64_t *bytes) {
  clb_status s = clb_optimizer_state_bytes(l->optimizer, bytes);
  *moments = s ? NULL : allocate(*bytes + 1, 1);
  if (!s) s = clb_optimizer_state_read(l->optimizer, *moments, *bytes);
  return done(l, s);
}

bool learner_restore(learner *l, const double *parameters, const double *averages,
                     const void *moments, uint64_t bytes) {
  const size_t n = (size_t)l->n * sizeof *parameters;
  memcpy(l->parameters, parameters, n);
  if (l->averages) memcpy(l->averages, averages, n);
  clb_status s = clb_optimizer_state_write(l->optimizer, moments, bytes);
  if (!s) s = put(l, l->n, l->parameters, l->values);
  if (!s && l->averages && !l->averages_of_rule) s = put(l, l->n, l->averages, l->average);
  if (!s) s = freeze_others(l);
  return done(l, s) && learner_use(l, HEAD_TRAINED);
}
