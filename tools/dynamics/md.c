/* tools/dynamics/md.c - `clebsch md`: molecular dynamics of the atoms in a file. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/dynamics/md_files.h"
#include "tools/dynamics/md_guard.h"
#include "tools/dynamics/md_motion.h"
#include "tools/dynamics/md_report.h"
#include "tools/dynamics/md_restart.h"
#include "tools/dynamics/md_series.h"
#include "tools/common/output.h"
#include "tools/measure/timing.h"

typedef struct {
  md_choice choice;
  md_motion motion;
  int64_t steps, every; /* steps < 0: not given */
  uint64_t seed;
  bool warm, seeded, forces, force, unguarded; /* warm: --temperature was given */
  const char *trajectory, *csv, *plot, *restart, *from;
} md_arguments;

/* ---- options ---- */

enum {
  LANGEVIN = 256,
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
     "Use a Langevin thermostat (1/ps); without it energy is constant", 1},
    {"seed", SEED, "N", 0, "Seed of velocities and thermostat (default: 1)", 1},
    {"skin", SKIN, "A", 0,
     "Rebuild the neighbour list when an atom has moved by half of this; a longer skin means more "
     "edges (default: 0.5)",
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
  if (!a->choice.structure == !a->from)
    argp_error(state, "give --structure, or --continue, and not both");
  if (a->steps < 0) argp_error(state, "--steps is missing");
  if (!(a->motion.dt > 0)) argp_error(state, "--dt is missing");
  if (a->motion.friction > 0 && !a->warm) argp_error(state, "--langevin needs --temperature");
  if (a->from && a->warm && !(a->motion.friction > 0))
    argp_error(state, "--temperature of a run that goes on needs --langevin: the velocities are "
                      "those of the restart");
  if (a->from && a->seeded) argp_error(state, "--seed: the seed is that of the restart");
  if (a->forces && !a->trajectory) argp_error(state, "--forces needs --trajectory");
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
      a->motion.friction = real_number(state, "--langevin", arg, 1e-9, 1e6) / 1000;
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

/* ---- a run ---- */

typedef struct {
  const md_arguments *a;
  md_system system;
  md_state state;
  md_series series;
  md_guard guard;
  md_effort effort;
  append_file csv, trajectory;
  file_mark csv_before, trajectory_before; /* marks of the run that is continued */
  int64_t written;                         /* the step of the last record; -1: none */
  double told;                             /* when progress was last shown, seconds */
} md_run;

static volatile sig_atomic_t stopped; /* the signal that requested the end */

static void stop(int signal_number) { stopped = signal_number; }

/* Only once: a second signal kills. */
static void heed_signals(void) {
  const struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

/* ---- files ---- */

static append_rule rule_of(const md_run *r, const file_mark *before) {
  return (append_rule){r->a->from ? before : NULL, r->a->force};
}

/* The restart file that is read may also be the one that is written. */
static bool name_files(const md_arguments *a) {
  const bool again = a->from && a->restart && same_file(a->from, a->restart);
  const named_file files[] = {
      {"the model (--model)", a->choice.model, FILE_INPUT},
      {"the structure (--structure)", a->choice.structure, FILE_INPUT},
      {"the restart to go on from (--continue)", again ? NULL : a->from, FILE_INPUT},
      {"the restart (--restart)", a->restart, FILE_WHOLE},
      {"the trajectory (--trajectory)", a->trajectory, FILE_GROWING},
      {"the csv (--csv)", a->csv, FILE_GROWING},
      {"the plot (--plot)", a->plot, FILE_WHOLE}};
  struct stat about;
  if (!outputs_ready(files, sizeof files / sizeof *files)) return false;
  if (!a->restart || again || a->force || stat(a->restart, &about) || !about.st_size) return true;
  warn("%s: the file exists: name another, --continue goes on from it, or --force "
       "overwrites it",
       a->restart);
  return false;
}

static bool check_files(const md_run *r) {
  return append_check(r->a->csv, rule_of(r, &r->csv_before)) &&
         append_check(r->a->trajectory, rule_of(r, &r->trajectory_before));
}

static bool open_files(md_run *r) {
  return append_open(&r->csv, r->a->csv, rule_of(r, &r->csv_before)) &&
         append_open(&r->trajectory, r->a->trajectory, rule_of(r, &r->trajectory_before));
}

/* ---- start ---- */

static bool same_model(const md_run *r, const md_restart *before) {
  if (r->system.checksum == before->model) return true;
  warn("%s: it was made with another model, %s (checksum %016" PRIx64
       "); that of %s is %016" PRIx64,
       r->a->from, before->model_name, before->model, r->a->choice.model, r->system.checksum);
  return false;
}

static bool go_on(md_run *r) {
  md_restart before;
  if (!restart_read(r->a->from, &before)) return false;
  r->csv_before = before.csv;
  r->trajectory_before = before.trajectory;
  r->state = before.state;
  before.state = (md_state){0};
  const bool good = check_files(r) && md_system_open(&r->system, &r->a->choice) &&
                    same_model(r, &before) &&
                    md_system_set_atoms(&r->system, &before.atoms, r->a->from);
  restart_free(&before);
  return good;
}

static bool start_anew(md_run *r) {
  const md_arguments *a = r->a;
  if (!check_files(r) || !md_system_start(&r->system, &a->choice)) return false;
  if (r->system.atoms.isotopes)
    warn("%s: %lld atoms are called D or T, and move with the mass of H", a->choice.structure,
         (long long)r->system.atoms.isotopes);
  md_state_make(&r->state, r->system.atoms.n);
  memcpy(r->state.listed, r->system.atoms.positions,
         (size_t)r->system.atoms.n * 3 * sizeof(double));
  r->state.seed = a->seed;
  md_draw_velocities(&r->system, &r->state, a->motion.temperature);
  return true;
}

static bool begin(md_run *r) {
  return name_files(r->a) && (r->a->from ? go_on(r) : start_anew(r)) &&
         md_start(&r->system, &r->state) && open_files(r);
}

/* ---- output during the run ---- */

/* Writes the header if the file is new or cannot be continued. */
static void csv_head(const append_file *csv) {
  if (csv->f && csv->mark.bytes < 1)
    fputs("step,time_fs,potential_eV,kinetic_eV,total_eV,temperature_K\n", csv->f);
}

static void csv_line(md_run *r, const double v[SERIES_VALUES]) {
  if (r->csv.f)
    fprintf(r->csv.f, "%lld,%.10g,%.9f,%.9f,%.9f,%.4f\n", (long long)r->state.step, v[SERIES_TIME],
            v[SERIES_POTENTIAL], v[SERIES_KINETIC], v[SERIES_POTENTIAL] + v[SERIES_KINETIC],
            v[SERIES_TEMPERATURE]);
}

/* On a terminal a line that the next one replaces, elsewhere one for each record. */
static void tell(md_run *r, const double v[SERIES_VALUES], bool recorded) {
  const bool live = isatty(STDOUT_FILENO);
  const double now = seconds_now();
  char line[192];
  if (live ? now - r->told < 0.2 : !recorded) return;
  r->told = now;
  const int n = snprintf(line, sizeof line, "step %lld: %.6f eV, %.1f K", (long long)r->state.step,
                         v[SERIES_POTENTIAL] + v[SERIES_KINETIC], v[SERIES_TEMPERATURE]);
  report_rate(line + n, sizeof line - (size_t)n, &r->a->motion, &r->effort, r->a->steps);
  if (live) progress("%s", line);
  else puts(line), fflush(stdout);
}

/* Writes a line, a frame and a restart, in this order: the data to which a restart refers must be
 on the disk first. */
static bool record(md_run *r, const double v[SERIES_VALUES]) {
  const md_arguments *a = r->a;
  const md_frame frame = {&r->system, r->state.velocities, a->forces, r->state.time};
  if (r->written == r->state.step) return true;
  r->written = r->state.step;
  csv_line(r, v);
  if (r->trajectory.f) frame_write(r->trajectory.f, &frame);
  const bool flush = a->restart;
  if (!append_record(&r->csv, flush) || !append_record(&r->trajectory, flush)) return false;
  if (a->restart &&
      !restart_write(a->restart, &r->system, &r->state, &r->trajectory.mark, &r->csv.mark))
    return false;
  return tell(r, v, true), true;
}

static bool look(md_run *r, double values[SERIES_VALUES]) {
  const double kinetic = md_kinetic(&r->system, &r->state);
  const double v[SERIES_VALUES] = {r->state.time, r->system.energy, kinetic,
                                   md_temperature(&r->system, &r->a->motion, kinetic)};
  memcpy(values, v, sizeof v);
  if (!isfinite(r->system.energy) || !isfinite(kinetic)) {
    warn("step %lld: the energy is not finite; a shorter --dt, or atoms that are not so close, "
         "may help",
         (long long)r->state.step);
    return false;
  }
  if (!r->a->unguarded && !md_guard_holds(&r->guard, &r->system, &r->state, &r->a->motion))
    return false;
  series_add(&r->series, v);
  return true;
}

/* ---- steps ---- */

static bool go(md_run *r) {
  const md_arguments *a = r->a;
  double v[SERIES_VALUES];
  md_guard_start(&r->guard, &r->system, &r->state, &a->motion);
  if (!look(r, v)) return false;
  csv_head(&r->csv);
  if (a->from) r->written = r->state.step; /* by the previous run */
  if (!record(r, v)) return false;
  while (r->effort.steps < a->steps && !stopped) {
    const double before = seconds_now();
    if (!md_step(&r->system, &r->state, &a->motion)) return false;
    r->effort.seconds += seconds_now() - before;
    r->effort.steps++;
    if (!look(r, v) || (r->state.step % a->every == 0 && !record(r, v))) return false;
    tell(r, v, false);
  }
  return record(r, v);
}

static bool finish(md_run *r) {
  const md_arguments *a = r->a;
  bool good = append_close(&r->csv);
  good &= append_close(&r->trajectory);
  if (a->plot && r->series.n) good &= report_plot(a->plot, &r->system, &a->motion, &r->series);
  return good;
}

int md_main(int argc, char **argv) {
  static const struct argp_child children[] = {{&md_choice_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model FILE --structure FILE --steps N --dt FS",
      .doc =
          "Molecular dynamics: velocity Verlet at constant energy, or Langevin (BAOAB).\v"
          "Masses are standard atomic weights. Velocities are drawn, without total momentum, and "
          "scaled to --temperature. The last step is always recorded. "
          "Each record is a line on standard output, too, unless that is a terminal. "
          "A run ends with a sentence and exit status 1, its files complete up to the last "
          "record, if a force is above 1e4 (eV/A); if an atom moves by more than a quarter of "
          "r_max in a step; if the temperature is above 20000 K and 20 times that of the start or "
          "of the thermostat; if a thermostat's is 5 times too high on average, and above 1000 K, "
          "5 / FRICTION after the start; if the total energy without a thermostat has changed by "
          "an electronvolt per atom; or if atoms have left each other. Bounds of temperatures are "
          "higher for "
          "few atoms. --no-guard goes on. "
          "Ctrl-C (SIGINT, or SIGTERM) ends the run after the current step, with all files "
          "complete and exit status 1; a second one kills. "
          "A restart records the lengths of csv and trajectory: anything after that, written by a "
          "run that was killed or ran out of space, is truncated when another run continues. A run "
          "continued from a restart takes the same steps as an uninterrupted run, bit for bit, if "
          "device, model and other options are the same. "
          "drift: the slope of a straight line through the total energy, with its standard error."};
  md_arguments a = {
      .steps = -1, .every = 10, .seed = 1, .choice.options.skin = 0.5, .choice.checksum = true};
  parse_arguments(&argp, argc, argv, 0, &a);
  md_run r = {.a = &a, .written = -1};
  bool good = begin(&r);
  if (good) {
    heed_signals();
    good = go(&r);
  }
  progress(NULL);
  good &= finish(&r);
  if (good) report_print(&r.system, &r.state, &a.motion, &r.series, &r.effort);
  if (good && stopped) warn("stopped by a signal after step %lld", (long long)r.state.step);
  md_state_free(&r.state);
  md_system_close(&r.system);
  return good && !stopped ? EXIT_GOOD : EXIT_FAILED;
}
