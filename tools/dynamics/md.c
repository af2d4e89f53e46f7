/* tools/dynamics/md.c - `clebsch md`: molecular dynamics of the atoms in a file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/dynamics/md_files.h"
#include "tools/dynamics/md_guard.h"
#include "tools/dynamics/md_options.h"
#include "tools/dynamics/md_report.h"
#include "tools/dynamics/md_restart.h"
#include "tools/dynamics/md_series.h"
#include "tools/common/output.h"
#include "tools/common/stopping.h"
#include "tools/measure/timing.h"

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
  if (!r->a->motion.barostat) r->state.stretch = 0; /* the cell is fixed from now on */
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
  if (r->system.atoms.other_masses)
    warn("%s: %lld atoms have other masses than the standard weights, with which they move here",
         a->choice.structure, (long long)r->system.atoms.other_masses);
  md_system_warn_of_fixed(&r->system);
  md_state_make(&r->state, r->system.atoms.n);
  if (r->system.atoms.n)
    memcpy(r->state.listed, r->system.atoms.positions,
           (size_t)r->system.atoms.n * 3 * sizeof(double));
  r->state.seed = a->seed;
  md_draw_velocities(&r->system, &r->state, a->motion.temperature);
  return true;
}

/* Whether there are atoms, and thermostat and barostat have something to act on. */
static bool can_move(const md_run *r) {
  const structure *s = &r->system.atoms;
  const md_motion *m = &r->a->motion;
  const bool *p = s->periodic;
  if (!s->n) return warn("%s: there are no atoms to move", r->system.from), false;
  if (m->thermostat > MD_LANGEVIN && s->n < 2)
    return warn("%s: one atom, whose momentum is constant, has no temperature; --langevin can "
                "be used",
                r->system.from),
           false;
  if (!m->barostat || (r->system.has_stress && p[0] && p[1] && p[2])) return true;
  warn("%s: --pressure needs a cell that is periodic in three directions", r->system.from);
  return false;
}

static bool begin(md_run *r) {
  return name_files(r->a) && (r->a->from ? go_on(r) : start_anew(r)) && can_move(r) &&
         md_start(&r->system, &r->state) && open_files(r);
}

/* ---- output during the run ---- */

/* Writes the header if the file is new or cannot be continued. */
static void csv_head(const md_run *r) {
  if (r->csv.f && r->csv.mark.bytes < 1)
    fprintf(r->csv.f,
            "step,time_fs,potential_eV,kinetic_eV,total_eV,temperature_K,conserved_eV%s\n",
            r->system.has_stress ? ",pressure_GPa,volume_A3" : "");
}

static void csv_line(md_run *r, const double v[SERIES_VALUES]) {
  if (!r->csv.f) return;
  fprintf(r->csv.f, "%lld,%.10g,%.9f,%.9f,%.9f,%.4f,%.9f", (long long)r->state.step, v[SERIES_TIME],
          v[SERIES_POTENTIAL], v[SERIES_KINETIC], v[SERIES_POTENTIAL] + v[SERIES_KINETIC],
          v[SERIES_TEMPERATURE], v[SERIES_CONSERVED]);
  if (r->system.has_stress)
    fprintf(r->csv.f, ",%.9g,%.9g", md_pressure(&r->system, v[SERIES_KINETIC]) * gpa_per_ev_a3,
            md_volume(&r->system));
  fputc('\n', r->csv.f);
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
  if ((r->trajectory.f || a->restart) && !md_fetch(&r->system, &r->state)) return false;
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
  const double kinetic = r->state.view.kinetic;
  const double v[SERIES_VALUES] = {r->state.time, r->system.energy, kinetic,
                                   md_temperature(&r->system, &r->a->motion, kinetic),
                                   md_conserved(&r->system, &r->state, &r->a->motion, kinetic)};
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
  csv_head(r);
  if (a->from) r->written = r->state.step; /* by the previous run */
  if (!record(r, v)) return false;
  while (r->effort.steps < a->steps && !stopping()) {
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
  md_arguments a;
  md_options(argc, argv, &a);
  md_run r = {.a = &a, .system.without_e_atom = true, .written = -1};
  bool good = begin(&r);
  if (good) {
    stopping_begin();
    good = go(&r);
  }
  progress(NULL);
  good &= finish(&r);
  if (good) report_print(&r.system, &r.state, &a.motion, &r.series, &r.effort);
  if (good && stopping()) warn("stopped by a signal after step %lld", (long long)r.state.step);
  md_state_free(&r.state);
  md_system_close(&r.system);
  return good && !stopping() ? EXIT_GOOD : EXIT_FAILED;
}
