/* tools/training/loss_options.c - the options of a loss. */
#include "tools/training/loss_options.h"

#include "tools/cli/options.h"
#include "tools/dynamics/md_system.h"

/* In the order of loss_part. */
enum { LOSS = 300, ENERGY_WEIGHT, FORCE_WEIGHT, STRESS_WEIGHT, STRESS_UNIT, DELTA, FORCE_NORM };
const char *const loss_names[3] = {"mse", "mae", "huber"};
static const char *const stress_units[] = {"eV", "kbar"};
static const double stress_factors[] = {1, KBAR};

static double factor(const struct argp_state *state, const char *option, const char *text) {
  return real_number(state, option, text, 0, 1e300);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  loss_choice *c = state->input;
  clb_loss *l = &c->loss;
  if (key >= LOSS && key <= FORCE_NORM) c->given |= 1U << (key - LOSS);
  switch (key) {
    case LOSS: l->function = name_among(state, "--loss", arg, loss_names, 3); return 0;
    case ENERGY_WEIGHT: l->energy = factor(state, "--energy-weight", arg); return 0;
    case FORCE_WEIGHT: l->forces = factor(state, "--force-weight", arg); return 0;
    case STRESS_WEIGHT: l->stress = factor(state, "--stress-weight", arg); return 0;
    case STRESS_UNIT:
      l->stress_unit = stress_factors[name_among(state, "--stress-unit", arg, stress_units, 2)];
      return 0;
    case DELTA: l->delta = real_number(state, "--huber-delta", arg, 1e-300, 1e300); return 0;
    case FORCE_NORM: l->force_norm = 1; return 0;
    case ARGP_KEY_INIT:
      *c = (loss_choice){.loss = {.delta = 0.01, .energy = 1, .forces = 1, .stress = 1}};
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static bool said(const loss_choice *c, loss_part part) { return c->given >> part & 1; }

void loss_fill(loss_choice *c, const clb_loss *usual) {
  const clb_loss own = c->loss;
  c->loss = *usual;
  if (said(c, LOSS_FUNCTION)) c->loss.function = own.function, c->loss.force_norm = 0;
  if (said(c, LOSS_ENERGY)) c->loss.energy = own.energy;
  if (said(c, LOSS_FORCES)) c->loss.forces = own.forces;
  if (said(c, LOSS_STRESS)) c->loss.stress = own.stress;
  if (said(c, LOSS_UNIT)) c->loss.stress_unit = own.stress_unit;
  if (said(c, LOSS_NORM)) c->loss.force_norm = own.force_norm;
  if (said(c, LOSS_DELTA) || !(c->loss.delta > 0)) c->loss.delta = own.delta;
}

void loss_check(const struct argp_state *state, const loss_choice *c) {
  if (said(c, LOSS_DELTA) && c->loss.function != CLB_LOSS_HUBER)
    argp_error(state, "--huber-delta is of --loss huber");
}

static const struct argp_option options[] = {
    {"loss", LOSS, "NAME", 0, "mse, mae or huber (default: mse, of `clebsch train` huber)", 0},
    {"energy-weight", ENERGY_WEIGHT, "X", 0, "Factor of the energies' term (default: 1)", 0},
    {"force-weight", FORCE_WEIGHT, "X", 0,
     "Factor of the forces' term (default: 1, of `clebsch train` 10)", 0},
    {"stress-weight", STRESS_WEIGHT, "X", 0,
     "Factor of the stresses' term (default: 1, of `clebsch train` 10)", 0},
    {"stress-unit", STRESS_UNIT, "UNIT", 0,
     "In which stresses differ in the loss: eV (default), of eV/A^3, or kbar", 0},
    {"huber-delta", DELTA, "X", 0,
     "Where a Huber loss becomes linear, in the units of each term (default: 0.01)", 0},
    {"force-norm", FORCE_NORM, NULL, 0, "The forces' term is the mean length of their differences",
     0},
    {0}};
const struct argp loss_argp = {.options = options, .parser = parse};
