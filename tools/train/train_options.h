/* tools/train/train_options.h - the options of `clebsch train`. */
#ifndef CLB_TOOLS_TRAIN_TRAIN_OPTIONS_H
#define CLB_TOOLS_TRAIN_TRAIN_OPTIONS_H

#include "tools/dynamics/md_system.h"
#include "tools/new/new_network.h"
#include "tools/training/learning_rate.h"
#include "tools/training/loss_options.h"

typedef struct {
  const char **names; /* [n] */
  int n;
} name_list;

typedef struct {
  clb_rule rule;
  double weight_decay, momentum; /* momentum of SGD and Muon; 0: the rule's default */
  double clip;                   /* the largest norm of a gradient; 0: any */
  double ema;                    /* 0: there is none */
  bool amsgrad;
  clb_clip clip_rule;
  clb_ema ema_rule;
  const char *const *decays; /* patterns of tensors that decay, up to a NULL; NULL: all */
} optimizer_choice;
extern const char *const rule_names[6]; /* by clb_rule */

/* What options decide about steps; each is a bit of `given` of the arguments. */
typedef enum {
  SET_OPTIMIZER,
  SET_LR,
  SET_WEIGHT_DECAY,
  SET_MOMENTUM,
  SET_AMSGRAD,
  SET_CLIP,
  SET_EMA,
  SET_SCHEDULE,
  SET_LR_END,
  SET_DECAY,
  SET_PATIENCE,
  SET_WARM_UP,
  SET_BATCH,
  SET_EPOCHS
} train_setting;

/* From some epoch on, other factors of the loss's terms, and one learning rate. */
typedef struct {
  int64_t after;     /* epochs; -1: there is no second stage */
  double weights[3]; /* of energy, forces, stress */
  double lr;
  bool given; /* one of the latter */
} second_stage;

typedef struct {
  md_choice choice;
  new_choice made; /* in place of a model, whose name is then new_name */
  char new_name[32];
  const char *like; /* a preset; NULL: none */
  loss_choice loss;
  optimizer_choice optimizer;
  lr_schedule schedule;
  second_stage second;
  double warm_epochs; /* of the schedule, in epochs, in place of steps */
  unsigned given;     /* bits of train_setting */
  name_list train, valid, replay, freeze, thaw;
  name_list *reading; /* the list that further file names belong to */
  const char *out, *restart, *from, *csv, *plot;
  int64_t batch, batch_atoms; /* structures and atoms of a step, at most; 0: any number */
  int64_t epochs;             /* -1: as many as have `steps` */
  int64_t steps;
  double valid_part; /* of --train, where there is no --valid */
  uint64_t seed;
  bool json, seeded, mpi;
} train_arguments;

extern const char default_out[]; /* what `out` is where it was not given */
/* Exits where they are wrong. *a is freed by train_options_free. */
void train_options(int argc, char **argv, train_arguments *a);
void train_options_free(train_arguments *a);

#endif
