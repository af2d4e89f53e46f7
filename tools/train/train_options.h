/* tools/train/train_options.h - the options of `clebsch train`. */
#ifndef CLB_TOOLS_TRAIN_TRAIN_OPTIONS_H
#define CLB_TOOLS_TRAIN_TRAIN_OPTIONS_H

#include "tools/dynamics/md_system.h"
#include "tools/new/new_network.h"
#include "tools/train/learning_rate.h"
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
} optimizer_choice;
extern const char *const rule_names[6]; /* by clb_rule */

typedef struct {
  md_choice choice;
  new_choice made; /* in place of a model, whose name is then new_name */
  char new_name[32];
  loss_choice loss;
  optimizer_choice optimizer;
  lr_schedule schedule;
  name_list train, valid, freeze, thaw;
  name_list *reading; /* the list that further file names belong to */
  const char *out, *restart, *from, *csv, *plot;
  int64_t batch, epochs;
  uint64_t seed;
  bool json, seeded;
} train_arguments;

/* Exits where they are wrong. *a is freed by train_options_free. */
void train_options(int argc, char **argv, train_arguments *a);
void train_options_free(train_arguments *a);

#endif
