/* tools/train/train_presets.c - what a run does where options do not say: what the authors of
   models train them with, and what is usual here. */
#include "tools/train/train_presets.h"

#include <math.h>
#include <string.h>

const char *const preset_names[PRESETS] = {"mace", "nequip", "nequix", "sevennet"};

typedef struct {
  clb_loss loss;
  optimizer_choice optimizer;
  lr_schedule schedule;
  double end_part, warm_epochs; /* end_part: of lr, at which it ends */
  int64_t batch, epochs, steps; /* epochs 0: as many as have `steps` */
} preset;

#define LENGTHS                                                                                    \
  { .function = CLB_LOSS_MAE, .energy = 20, .forces = 20, .stress = 5, .force_norm = 1 }
#define USUAL(rate, count)                                                                         \
  {                                                                                                \
    .loss = {.function = CLB_LOSS_HUBER, .delta = 0.01, .energy = 1, .forces = 10, .stress = 10},  \
    .optimizer = {.rule = CLB_ADAMW,                                                               \
                  .amsgrad = true,                                                                 \
                  .clip = 10,                                                                      \
                  .ema = 0.99,                                                                     \
                  .clip_rule = CLB_CLIP_TORCH,                                                     \
                  .ema_rule = CLB_EMA_WARM_UP},                                                    \
    .schedule = {.kind = LR_COSINE, .lr = rate}, .end_part = 1e-3, .batch = 8, .steps = count      \
  }

/* MACE: https://github.com/ACEsuit/mace, its options' defaults and what its README advises. */
static const char *const mace_decays[] = {"layers.*.linear_2.*", "layers.*.product",
                                          "layers.*.linear_4.*", NULL};
#define MACE                                                                                       \
  {                                                                                                \
    .loss = {.function = CLB_LOSS_MSE, .energy = 1, .forces = 100, .stress = 1},                   \
    .optimizer = {.rule = CLB_ADAM,                                                                \
                  .amsgrad = true,                                                                 \
                  .weight_decay = 5e-7,                                                            \
                  .decays = mace_decays,                                                           \
                  .clip = 10,                                                                      \
                  .ema = 0.99,                                                                     \
                  .clip_rule = CLB_CLIP_TORCH,                                                     \
                  .ema_rule = CLB_EMA_WARM_UP},                                                    \
    .schedule = {.kind = LR_PLATEAU, .lr = 0.01, .decay = 0.8, .patience = 50, .threshold = 1e-4}, \
    .batch = 10, .steps = 20000                                                                    \
  }
#define NEQUIP                                                                                     \
  {                                                                                                \
    .loss = {.function = CLB_LOSS_MSE, .energy = 1, .forces = 1, .stress = 1},                     \
    .optimizer = {.rule = CLB_ADAM, .ema = 0.999, .ema_rule = CLB_EMA_WARM_UP},                    \
    .schedule = {.kind = LR_PLATEAU, .lr = 0.01, .decay = 0.6, .patience = 5, .threshold = 0.2},   \
    .end_part = 1e-4, .batch = 5, .steps = 20000                                                   \
  }
#define NEQUIX(rate)                                                                               \
  {                                                                                                \
    .loss = LENGTHS,                                                                               \
    .optimizer = {.rule = CLB_MUON,                                                                \
                  .weight_decay = 1e-3,                                                            \
                  .clip = 100,                                                                     \
                  .ema = 0.999,                                                                    \
                  .clip_rule = CLB_CLIP_OPTAX,                                                     \
                  .ema_rule = CLB_EMA_WARM_UP_FROM_0},                                             \
    .schedule = {.kind = LR_COSINE, .lr = rate, .warm_from = 0.2}, .end_part = 1e-4,               \
    .warm_epochs = 0.1, .batch = 64, .epochs = 100                                                 \
  }
#define SEVENNET(...)                                                                              \
  {                                                                                                \
    .loss = {.function = CLB_LOSS_HUBER,                                                           \
             .delta = 0.01,                                                                        \
             .energy = 1,                                                                          \
             .forces = 1,                                                                          \
             .stress = 0.01,                                                                       \
             .stress_unit = KBAR},                                                                 \
    .batch = 4, __VA_ARGS__                                                                        \
  }

/* From nothing, and from a model. */
static const preset usual[2] = {USUAL(0.01, 20000), USUAL(1e-3, 5000)},
                    likes[PRESETS][2] = {
                        {MACE, MACE},
                        {NEQUIP, NEQUIP},
                        {NEQUIX(0.01), NEQUIX(0.003)},
                        {SEVENNET(.optimizer = {.rule = CLB_ADAM},
                                  .schedule = {.kind = LR_LINEAR, .lr = 0.01}, .end_part = 1e-4,
                                  .epochs = 600),
                         SEVENNET(.optimizer = {.rule = CLB_ADAMW, .weight_decay = 1e-3},
                                  .schedule = {.kind = LR_EXPONENTIAL, .lr = 2e-4, .decay = 0.99},
                                  .epochs = 100)}};

/* Rates of rules that a preset does not have, in the order of rule_names. */
static const double rates[] = {1e-3, 1e-2, 1e-2, 1e-2, 1e-2, 3e-3};

static bool given(const train_arguments *a, train_setting s) { return a->given >> s & 1; }

/* An optimizer that was named has nothing of the preset's but averages and clipping. */
static void fill_optimizer(train_arguments *a, const preset *p) {
  const optimizer_choice own = a->optimizer;
  const bool named = given(a, SET_OPTIMIZER);
  optimizer_choice *o = &a->optimizer;
  *o = p->optimizer;
  if (named)
    *o = (optimizer_choice){.rule = own.rule,
                            .clip = o->clip,
                            .ema = own.rule == CLB_SCHEDULE_FREE_ADAMW ? 0 : o->ema,
                            .clip_rule = o->clip_rule,
                            .ema_rule = o->ema_rule};
  if (!given(a, SET_LR))
    a->schedule.lr = !named || own.rule == p->optimizer.rule ? p->schedule.lr
                     : a->made.name                          ? rates[own.rule]
                                                             : rates[own.rule] / 10;
  if (given(a, SET_WEIGHT_DECAY)) o->weight_decay = own.weight_decay, o->decays = NULL;
  if (given(a, SET_AMSGRAD)) o->amsgrad = true;
  if (given(a, SET_CLIP)) o->clip = own.clip;
  if (given(a, SET_EMA)) o->ema = own.ema;
  if (!o->clip_rule) o->clip_rule = CLB_CLIP_TORCH;
  if (!o->ema_rule) o->ema_rule = CLB_EMA_WARM_UP;
  o->momentum = given(a, SET_MOMENTUM) ? own.momentum : o->rule == CLB_SGD ? 0.9 : 0;
}

/* A schedule that was named has nothing of the preset's, and the schedule-free rule has none. */
static void fill_schedule(train_arguments *a, const preset *p) {
  const lr_schedule own = a->schedule;
  lr_schedule *s = &a->schedule;
  *s = p->schedule;
  s->end = p->end_part * own.lr;
  a->warm_epochs = p->warm_epochs;
  if (given(a, SET_SCHEDULE)) *s = (lr_schedule){.kind = own.kind, .threshold = 1e-4};
  else if (a->optimizer.rule == CLB_SCHEDULE_FREE_ADAMW) *s = (lr_schedule){.kind = LR_CONSTANT};
  if (given(a, SET_SCHEDULE)) a->warm_epochs = 0;
  s->lr = own.lr;
  if (given(a, SET_LR_END)) s->end = own.end;
  if (given(a, SET_DECAY)) s->decay = own.decay;
  else if (!(s->decay > 0)) s->decay = s->kind == LR_PLATEAU || s->kind == LR_STEP ? 0.8 : 0.99;
  if (given(a, SET_PATIENCE)) s->patience = own.patience;
  else if (!s->patience) s->patience = 50;
  if (given(a, SET_WARM_UP)) s->warm_up = own.warm_up, s->warm_from = a->warm_epochs = 0;
}

void presets_fill(train_arguments *a) {
  const int start = a->made.name == NULL;
  const preset *p = &usual[start];
  for (int i = 0; i < PRESETS && a->like; i++)
    if (!strcmp(preset_names[i], a->like)) p = &likes[i][start];
  loss_fill(&a->loss, &p->loss);
  fill_optimizer(a, p);
  fill_schedule(a, p);
  if (!given(a, SET_BATCH)) a->batch = a->batch_atoms ? 0 : p->batch;
  if (!given(a, SET_EPOCHS)) a->epochs = p->epochs ? p->epochs : -1;
  a->steps = p->steps;
}
