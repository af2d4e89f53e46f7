/* tools/training/loss_options.h - the options of a loss. */
#ifndef CLB_TOOLS_TRAINING_LOSS_OPTIONS_H
#define CLB_TOOLS_TRAINING_LOSS_OPTIONS_H

#include <argp.h>
#include <clebsch/model.h>
#include <stdbool.h>

typedef enum {
  LOSS_FUNCTION,
  LOSS_ENERGY,
  LOSS_FORCES,
  LOSS_STRESS,
  LOSS_UNIT,
  LOSS_DELTA,
  LOSS_NORM
} loss_part;
typedef struct {
  clb_loss loss;
  unsigned given; /* bits of loss_part, of what options said */
} loss_choice;
#define KBAR 1602.1766208 /* of eV / Angstrom^3 */
/* --loss, --energy-weight, --force-weight, --stress-weight, --stress-unit, --huber-delta,
   --force-norm; input: loss_choice, which is filled with the defaults first. */
extern const struct argp loss_argp;
extern const char *const loss_names[3]; /* by clb_loss_function */
/* What was not given is as in `usual`. */
void loss_fill(loss_choice *c, const clb_loss *usual);
/* Exits where options do not go together. */
void loss_check(const struct argp_state *state, const loss_choice *c);

#endif
