/* tools/training/loss_options.h - the options of a loss. */
#ifndef CLB_TOOLS_TRAINING_LOSS_OPTIONS_H
#define CLB_TOOLS_TRAINING_LOSS_OPTIONS_H

#include <argp.h>
#include <clebsch/model.h>
#include <stdbool.h>

typedef struct {
  clb_loss loss;
  bool has_delta;
} loss_choice;
/* --loss, --energy-weight, --force-weight, --stress-weight, --stress-unit, --huber-delta,
   --force-norm; input: loss_choice, which is filled with the defaults first. */
extern const struct argp loss_argp;
extern const char *const loss_names[3]; /* by clb_loss_function */

#endif
