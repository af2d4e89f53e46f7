/* tools/dynamics/md_options.c - the options of `clebsch md`. */
#include "tools/dynamics/md_options.h"

enum {
  LANGEVIN = 256,
  BUSSI,
  NOSE_HOOVER,
  PRESSURE,
  BAROSTAT,
  SEED,
  TRAJECTORY,
  CSV,
  PLOT,
  RESTART,
  CONTINUE,
  FORCES,
  SKIN,
  FORCE,
  NO_GUARD
};

static const struct argp_option options[] = {
    {"steps", 'n', "N", 0, "Number of steps", 1},
    {"dt", 'D', "FS", 0, "Length of a step (fs)", 1},
    {"temperature", 'T', "K", 0,
     "Temperature of the initial velocities (default: 0, at rest) and of the thermostat", 1},
    {"langevin", LANGEVIN, "FRICTION", 0,
     "Thermostat: friction (1/ps) and noise on every atom; without a thermostat energy is constant",
     1},
    {"bussi", BUSSI, "FS", 0,
     "Thermostat: stochastic velocity rescaling with this time (fs; 100 is usual), which changes "
     "dynamics least",
     1},
    {"nose-hoover", NOSE_HOOVER, "FS", 0,
     "Thermostat: a chain of three with this time (fs; 100 is usual), which has no random numbers",
     1},
    {"pressure", PRESSURE, "GPA", 0,
     "Barostat: the cell, periodic in three directions, changes its size at constant shape; it "
     "needs a thermostat",
     1},
    {"barostat", BAROSTAT, "FS", 0, "Time of the barostat (fs; default: 1000)", 1},
    {"seed", SEED, "N", 0, "Seed of velocities and thermostat (default: 1)", 1},
    {"skin", SKIN, "A", 0,
     "Rebuild the neighbour list when an atom has moved by half of this; a longer skin means more "
     "edges (default: 0, which is a search in every step, on CPUs, with --pressure, for 800 "
     "atoms and more, and for fewer of a large model; else 0.25, or 0.5 in an open "
     "cell)",
     1},
    {"no-guard", NO_GUARD, NULL, 0, "Go on where forces, energies or distances are absurd", 1},
    {"every", 'e', "N", 0, "Steps between lines, frames and restarts (default: 10)", 2},
    {"csv", CSV, "FILE", 0, "Energies and temperature", 2},
    {"trajectory", TRAJECTORY, "FILE", 0,
     "Extended XYZ with velocities (A/fs), and masses and momenta from which ASE has them; "
     "positions are not wrapped into the cell",
     2},
    {"forces", FORCES, NULL, 0, "Write forces to the trajectory, too", 2},
    {"plot", PLOT, "FILE", 0, "Plot energies and temperature as SVG, at the end", 2},
    {"restart", RESTART, "FILE", 0, "Write restarts, from which a later run can continue", 2},
    {"continue", CONTINUE, "FILE", 0,
     "Continue from a restart, which replaces --structure, the initial velocities and the seed; "
     "csv and trajectory are continued from where they were then",
     2},
    {"force", FORCE, NULL, 0, "Overwrite the csv, trajectory or restart of another run", 2},
    {0}};

static void check(const md_arguments *a, const struct argp_state *state) {
  static const char *const names[] = {
      [MD_LANGEVIN] = "langevin", [MD_BUSSI] = "bussi", [MD_NOSE_HOOVER] = "nose-hoover"};
  const md_motion *m = &a->motion;
  if (!a->choice.structure == !a->from)
    argp_error(state, "give --structure, or --continue, and not both");
  if (a->steps < 0) argp_error(state, "--steps is missing");
  if (!(m->dt > 0)) argp_error(state, "--dt is missing");
  if (m->thermostat && !a->warm)
    argp_error(state, "--%s needs --temperature", names[m->thermostat]);
  if (m->thermostat > MD_LANGEVIN && !(m->temperature > 0))
    argp_error(state, "--%s needs a --temperature above 0", names[m->thermostat]);
  if (m->barostat && !(m->thermostat && m->temperature > 0))
    argp_error(state, "--pressure needs --langevin, --bussi or --nose-hoover, and a --temperature "
                      "above 0");
  if (m->barostat_time > 0 && !m->barostat) argp_error(state, "--barostat needs --pressure");
  if (a->from && a->warm && !m->thermostat)
    argp_error(state, "--temperature of a run that goes on needs --langevin, --bussi or "
                      "--nose-hoover: the velocities are those of the restart");
  if (a->from && a->seeded) argp_error(state, "--seed: the seed is that of the restart");
  if (a->forces && !a->trajectory) argp_error(state, "--forces needs --trajectory");
}

static void choose(md_arguments *a, const struct argp_state *state, md_thermostat thermostat,
                   double rate) {
  if (a->motion.thermostat && a->motion.thermostat != thermostat)
    argp_error(state, "--langevin, --bussi and --nose-hoover exclude each other");
  a->motion.thermostat = thermostat;
  a->motion.rate = rate;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  md_arguments *a = state->input;
  switch (key) {
    case 'n': a->steps = whole_number(state, "--steps", arg, 0, 1000000000000); return 0;
    case 'e': a->every = whole_number(state, "--every", arg, 1, 1000000000000); return 0;
    case 'D': a->motion.dt = real_number(state, "--dt", arg, 1e-6, 1000); return 0;
    case 'T':
      a->motion.temperature = real_number(state, "--temperature", arg, 0, 1e9);
      a->warm = true;
      return 0;
    case LANGEVIN:
      choose(a, state, MD_LANGEVIN, real_number(state, "--langevin", arg, 1e-9, 1e6) / 1000);
      return 0;
    case BUSSI:
      choose(a, state, MD_BUSSI, 1 / real_number(state, "--bussi", arg, 1e-3, 1e9));
      return 0;
    case NOSE_HOOVER:
      choose(a, state, MD_NOSE_HOOVER, 1 / real_number(state, "--nose-hoover", arg, 1, 1e9));
      return 0;
    case PRESSURE:
      a->motion.barostat = true;
      a->motion.pressure = real_number(state, "--pressure", arg, -1e4, 1e4) / gpa_per_ev_a3;
      return 0;
    case BAROSTAT:
      a->motion.barostat_time = real_number(state, "--barostat", arg, 1, 1e9);
      return 0;
    case SEED:
      a->seed = (uint64_t)whole_number(state, "--seed", arg, 0, (int64_t)1 << 53);
      a->seeded = true;
      return 0;
    case SKIN: a->choice.options.skin = real_number(state, "--skin", arg, 0, 100); return 0;
    case TRAJECTORY: a->trajectory = arg; return 0;
    case CSV: a->csv = arg; return 0;
    case PLOT: a->plot = arg; return 0;
    case RESTART: a->restart = arg; return 0;
    case CONTINUE: a->from = arg; return 0;
    case FORCES: a->forces = true; return 0;
    case FORCE: a->force = true; return 0;
    case NO_GUARD: a->unguarded = true; return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_ARG: argp_error(state, "'%s' is one argument too many", arg); return 0;
    case ARGP_KEY_END: check(a, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child children[] = {{&md_choice_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "--model MODEL --structure FILE --steps N --dt FS",
    .doc =
        "Molecular dynamics: velocity Verlet at constant energy, at constant temperature with "
        "--langevin, --bussi or --nose-hoover, at constant pressure with --pressure, too.\v"
        "The thermostat acts in the middle of a step (Langevin: BAOAB). The barostat is that of "
        "Bussi, Zykova-Parrinello (2009): the size of the cell is a coordinate with a mass and, of "
        "--langevin and --bussi, a friction and noise of its own. "
        "conserved: the energy of the atoms, what thermostat and barostat hold, and what they have "
        "taken; exact integration would keep it, so its drift tells whether --dt is short enough. "
        "Masses are standard atomic weights. Velocities are drawn, without total momentum, and "
        "scaled to --temperature. The last step is always recorded. "
        "Each record is a line on standard output, too, unless that is a terminal. "
        "A run ends with a sentence and exit status 1, its files complete up to the last "
        "record, if a force is above 1e4 (eV/A); if an atom moves by more than a quarter of "
        "r_max in a step; if the temperature is above 20000 K and 20 times that of the start or "
        "of the thermostat; if a thermostat's is 5 times too high on average, and above 1000 K, "
        "5 times its time after the start; if the cell's lengths change by more than a tenth in a "
        "step; if the "
        "total energy without a thermostat has changed by "
        "an electronvolt per atom; or if atoms have left each other. Bounds of temperatures are "
        "higher for "
        "few atoms. --no-guard goes on. "
        "Ctrl-C (SIGINT, or SIGTERM) ends the run after the current step, with all files "
        "complete and exit status 1; a second one kills. "
        "A restart records the lengths of csv and trajectory: anything after that, written by a "
        "run that was killed or ran out of space, is truncated when another run continues. A run "
        "continued from a restart takes the same steps as an uninterrupted run, bit for bit, if "
        "device, model and other options are the same. "
        "drift: the slope of a straight line through the conserved energy, with its standard "
        "error."};

void md_options(int argc, char **argv, md_arguments *a) {
  *a = (md_arguments){.steps = -1,
                      .every = 10,
                      .seed = 1,
                      .choice.options.skin = CLB_AUTO_SKIN,
                      .choice.checksum = true};
  parse_arguments(&argp, argc, argv, 0, a);
  if (!(a->motion.barostat_time > 0)) a->motion.barostat_time = 1000;
  if (a->motion.barostat && a->choice.options.skin == CLB_AUTO_SKIN)
    a->choice.options.skin = 0; /* every cell is another one */
}
