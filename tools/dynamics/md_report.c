/* tools/dynamics/md_report.c - the plot and the closing lines of a run. */
#include "tools/dynamics/md_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/common/plot.h"

static double ns_per_day(const md_motion *m, const md_effort *effort) {
  return effort->seconds > 0 ? (double)effort->steps * m->dt * 1e-6 * 86400 / effort->seconds : 0;
}

void report_rate(char *text, size_t size, const md_motion *m, const md_effort *effort,
                 int64_t steps) {
  *text = 0;
  if (!effort->steps) return;
  const double left =
      effort->seconds / (double)effort->steps * (double)(steps - effort->steps) + 0.5;
  snprintf(text, size, ", %.3g ns/day, %.0f:%02d:%02d left", ns_per_day(m, effort),
           floor(left / 3600), (int)fmod(left / 60, 60), (int)fmod(left, 60));
}

/* ---- the plot ---- */

enum { TIME, POTENTIAL, KINETIC, TOTAL, CONSERVED, TEMPERATURE, COLUMNS };

/* Chooses a unit in which changes of energy are between 1 and 1000. */
static const char *energy_unit(const double *x, int n, double *unit) {
  static const char *const names[] = {"eV", "meV", "\302\265eV", "neV"};
  double largest = 0;
  int k = 0;
  for (int i = 0; i < n; i++) largest = fmax(largest, fabs(x[i]));
  *unit = 1;
  for (; k < 3 && largest / *unit < 1; k++) *unit *= 1e-3;
  return names[k];
}

/* Changes since the first value, per atom in eV, converted to a suitable unit, which the title
   names. */
static void fill(double *x, const md_system *y, const md_series *s, char titles[3][96]) {
  const int n = s->n;
  const double atoms = (double)y->atoms.n;
  const bool is_short = s->mean[n - 1][SERIES_TIME] < 1000;
  double unit[2];
  for (int i = 0; i < n; i++) {
    const double *v = s->mean[i], *first = s->mean[0];
    x[TIME * n + i] = v[SERIES_TIME] / (is_short ? 1 : 1000);
    x[POTENTIAL * n + i] = (v[SERIES_POTENTIAL] - first[SERIES_POTENTIAL]) / atoms;
    x[KINETIC * n + i] = (v[SERIES_KINETIC] - first[SERIES_KINETIC]) / atoms;
    x[TOTAL * n + i] = x[POTENTIAL * n + i] + x[KINETIC * n + i];
    x[CONSERVED * n + i] = (v[SERIES_CONSERVED] - first[SERIES_CONSERVED]) / atoms;
    x[TEMPERATURE * n + i] = v[SERIES_TEMPERATURE];
  }
  snprintf(titles[0], 96, "Change of energy (%s/atom)",
           energy_unit(x + POTENTIAL * n, n, &unit[0]));
  snprintf(titles[1], 96, "Change of conserved energy (%s/atom)",
           energy_unit(x + CONSERVED * n, n, &unit[1]));
  snprintf(titles[2], 96, "Time (%s)", is_short ? "fs" : "ps");
  for (int i = 0; i < n; i++) {
    for (int c = POTENTIAL; c <= TOTAL; c++) x[c * n + i] /= unit[0];
    x[CONSERVED * n + i] /= unit[1];
  }
}

/* The error with two digits, and the slope with as many decimal places. */
static void drift_text(char text[96], const md_system *y, const md_series *s) {
  const md_drift d = series_drift(s);
  const double unit = 1e3 * 1000 / (double)y->atoms.n; /* eV / fs in meV / atom / ps */
  const int places = d.error > 0 ? (int)fmin(15, fmax(0, 1 - floor(log10(d.error * unit)))) : 6;
  if (isfinite(d.slope))
    snprintf(text, 96, "%.*f +- %.*f meV/atom/ps", places, d.slope * unit, places, d.error * unit);
  else snprintf(text, 96, "too few steps to tell");
}

static const char *const thermostat_titles[] = {[MD_FREE] = "Constant energy",
                                                [MD_LANGEVIN] = "Langevin dynamics",
                                                [MD_BUSSI] = "Bussi thermostat",
                                                [MD_NOSE_HOOVER] = "Nose-Hoover chain"};

/* What thermostat and barostat were told. */
static void ensemble_text(char text[128], const md_motion *m) {
  int n = 0;
  text[0] = 0;
  if (m->thermostat == MD_LANGEVIN) n = snprintf(text, 128, ", %g/ps", m->rate * 1000);
  else if (m->thermostat) n = snprintf(text, 128, ", %g fs", 1 / m->rate);
  if (m->thermostat) n += snprintf(text + n, 128 - (size_t)n, " at %g K", m->temperature);
  if (m->barostat)
    snprintf(text + n, 128 - (size_t)n, " and %g GPa (%g fs)", m->pressure * gpa_per_ev_a3,
             m->barostat_time);
}

bool report_plot(const char *path, const md_system *y, const md_motion *m, const md_series *s) {
  const int n = s->n;
  char titles[3][96], subtitle[320], ensemble[128], drift[96];
  double *x = allocate((size_t)n * COLUMNS, sizeof *x);
  const char *slash = strrchr(y->name, '/');
  fill(x, y, s, titles);
  drift_text(drift, y, s);
  const plot_panel panels[] = {{titles[0],
                                3,
                                {"total", "potential", "kinetic"},
                                {x + TOTAL * n, x + POTENTIAL * n, x + KINETIC * n}},
                               {titles[1], 1, {NULL}, {x + CONSERVED * n}},
                               {"Temperature (K)", 1, {NULL}, {x + TEMPERATURE * n}}};
  ensemble_text(ensemble, m);
  snprintf(subtitle, sizeof subtitle, "%lld atoms, %g fs a step%s; drift %s", (long long)y->atoms.n,
           m->dt, ensemble, drift);
  char title[160];
  snprintf(title, sizeof title, "%s, %s", thermostat_titles[m->thermostat],
           slash ? slash + 1 : y->name);
  const bool good =
      n < 1 || file_replace(path, plot_write,
                            &(plot){title, subtitle, titles[2], n, x + TIME * n, 3, panels});
  free(x);
  return good;
}

/* ---- the closing lines ---- */

void report_print(const md_system *y, const md_state *state, const md_motion *m, const md_series *s,
                  const md_effort *effort) {
  const double atoms = (double)y->atoms.n, kinetic = state->view.kinetic;
  char drift[96];
  printf("atoms        %lld, %lld edges\n", (long long)y->atoms.n, (long long)md_system_edges(y));
  md_system_print_device(y, "device       %s: %s");
  printf("steps        %lld to step %lld, %.6g fs\n", (long long)effort->steps,
         (long long)state->step, state->time);
  printf("energy       potential %.6f eV, kinetic %.6f eV, total %.6f eV\n", y->energy, kinetic,
         y->energy + kinetic);
  printf("temperature  %.1f K\n", md_temperature(y, m, kinetic));
  if (y->has_stress)
    printf("pressure     %.4g GPa, volume %.6g A^3\n", md_pressure(y, kinetic) * gpa_per_ev_a3,
           md_volume(y));
  if (effort->steps)
    printf("time         %.4g ms a step, %.3g us a step and atom, %.3g ns/day\n",
           1e3 * effort->seconds / (double)effort->steps,
           1e6 * effort->seconds / (double)effort->steps / atoms, ns_per_day(m, effort));
  drift_text(drift, y, s);
  printf("drift        %s\n", drift);
}
