/* tools/compare/tables.c - the tables of a comparison: devices, results, means, compiler reports,
   and everything in machine-readable form. */
#include "tools/compare/tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *sign(bool upper, bool lower) { /* of a speed */
  return upper && lower ? "~" : upper ? "<=" : lower ? ">=" : "";
}

/* ---- devices ---- */

static void add_peaks(grid *g, const compare_device *d) {
  char text[48];
  const bool sheet = !isfinite(d->measured.copy) && isfinite(d->vendor_specs.copy);
  const compare_peaks *top = sheet ? &d->vendor_specs : &d->measured;
  grid_add(g, "%s", scaled(text, top->copy, 3, "B/s"));
  grid_add(g, "%s", scaled(text, top->f32, 3, "flop/s"));
  grid_add(g, "%s", scaled(text, top->f64, 3, "flop/s"));
  grid_add(g, "%s", scaled(text, d->launch, 3, "s"));
  grid_add(g, "%s%s%s",
           sheet                 ? "published"
           : isfinite(top->copy) ? "measured"
                                 : "not known",
           sheet && *d->sheet ? ": " : "", sheet ? d->sheet : "");
}

grid devices_table(const comparison *c) {
  static const char *const titles[] = {"device",  "what it is", "driver",   "use",
                                       ">memory", ">copy",      ">FMA f32", ">FMA f64",
                                       ">launch", "peaks",      ">results"};
  grid g = {.n_columns = 0};
  for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) grid_add_column(&g, NULL, titles[i]);
  for (int i = 0; i < c->n_devices; i++) {
    const compare_device *d = &c->devices[i];
    char text[48];
    grid_add(&g, "%s", d->label);
    grid_add(&g, "%s", *d->description ? d->description : d->vendor);
    grid_add(&g, "%s", d->driver);
    grid_add(&g, "%s", d->runs ? "runs" : "compiles only");
    grid_add(&g, "%s", d->memory > 0 ? scaled(text, d->memory, 3, "B") : "");
    add_peaks(&g, d);
    grid_add(&g, "%d", d->n_results);
  }
  return g;
}

/* ---- results ---- */

static void add_check(grid *g, const compare_result *r) {
  char text[32] = "";
  if (isfinite(r->error)) snprintf(text, sizeof text, "%.1e", r->error);
  if (r->check == CHECK_WRONG) grid_add(g, "INCORRECT%s%s", *text ? " " : "", text);
  else if (r->bound) grid_add(g, isfinite(time_of(r)) ? "bound" : "compiled");
  else if (!isfinite(time_of(r))) grid_add(g, "no time");
  else grid_add(g, "%s", *text ? text : r->check == CHECK_GOOD ? "ok" : "");
}

static void add_speed(grid *g, const compare_speed *s) {
  char text[32];
  if (!isfinite(s->value)) grid_add(g, "%s", "");
  else
    grid_add(g, "%s%s%s", sign(s->upper_bound, s->lower_bound), figures(text, s->value, 3),
             s->per_row ? "/row" : "");
}

static void add_cells(grid *g, const comparison *c, const compare_line *line, int device) {
  const compare_result *r = line->cells[device];
  char text[32];
  const char *of;
  const double fraction = r ? fraction_of(r, &of) : (double)NAN;
  const compare_speed s = speed_of(c, line, device);
  grid_add(g, "%s", r ? *figures(text, 1e3 * time_of(r), 4) || r->bound ? text : "-" : "");
  if (isfinite(fraction)) grid_add(g, "%.0f %s", 100 * fraction, of);
  else grid_add(g, "%s", "");
  if (r) add_check(g, r);
  else grid_add(g, "%s", "");
  if (device != c->baseline) add_speed(g, &s);
}

static void add_note(grid *g, const comparison *c, const compare_line *line) {
  char note[1024] = "";
  for (int d = 0; d < c->n_devices; d++) {
    const compare_result *r = line->cells[d];
    const size_t used = strlen(note);
    if (!r || (r->rows == line->rows && !*r->failed)) continue;
    snprintf(note + used, sizeof note - used, "%s%s: ", used ? "; " : "", c->devices[d].label);
    if (*r->failed)
      snprintf(note + strlen(note), sizeof note - strlen(note), "failed: %s", r->failed);
    else
      snprintf(note + strlen(note), sizeof note - strlen(note), "rows %s %.0f",
               r->halved > 0 ? "halved to" : "here", r->rows);
  }
  grid_add(g, "%s", note);
}

static grid names_of_work(void) {
  static const char *const titles[] = {"op",   "problem", "graph", "options",
                                       "pass", "dtype",   ">rows"};
  grid g = {.n_columns = 0};
  for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) grid_add_column(&g, NULL, titles[i]);
  return g;
}

static void add_work(grid *g, const compare_line *line) {
  const compare_result *is = line->is;
  const char *const names[] = {is->op, is->problem, is->graph, is->options, is->pass, is->dtype};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) grid_add(g, "%s", names[i]);
  grid_add(g, "%.0f", line->rows);
}

grid results_table(const comparison *c) {
  grid g = names_of_work();
  g.heads = 4;
  for (int d = 0; d < c->n_devices; d++) {
    const char *label = c->devices[d].label;
    if (!c->devices[d].n_results) continue;
    grid_add_column(&g, label, ">ms");
    grid_add_column(&g, label, ">% of");
    grid_add_column(&g, label, "error");
    if (d != c->baseline) grid_add_column(&g, label, ">speed");
  }
  grid_add_column(&g, NULL, "notes");
  for (int i = 0; i < c->n_lines; i++) {
    const compare_line *line = &c->lines[c->order[i]];
    add_work(&g, line);
    for (int d = 0; d < c->n_devices; d++)
      if (c->devices[d].n_results) add_cells(&g, c, line, d);
    add_note(&g, c, line);
  }
  return g;
}

/* ---- means ---- */

static bool any_mean(const comparison *c, int group) {
  for (int d = 0; d < c->n_devices; d++)
    if (d != c->baseline && mean_of(c, group, d).n) return true;
  return false;
}

static void add_means(grid *g, const comparison *c, int group) {
  char text[32];
  for (int d = 0; d < c->n_devices; d++) {
    const compare_mean m = mean_of(c, group, d);
    if (d == c->baseline || !m.n) continue;
    grid_add(g, "%s", group < 0 ? "all" : c->groups[group]->op);
    grid_add(g, "%s", group < 0 ? "" : c->groups[group]->pass);
    grid_add(g, "%s", group < 0 ? "" : c->groups[group]->dtype);
    grid_add(g, "%s", c->devices[d].label);
    grid_add(g, "%s%s", sign(m.upper_bound, m.lower_bound), figures(text, m.value, 3));
    grid_add(g, "%s", figures(text, m.low, 3));
    grid_add(g, "%s", figures(text, m.high, 3));
    grid_add(g, "%d", m.n);
  }
}

grid means_table(const comparison *c) {
  static const char *const titles[] = {"op",          "pass",    "dtype",    "device",
                                       ">mean speed", ">lowest", ">highest", ">of"};
  grid g = {.heads = 3};
  for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) grid_add_column(&g, NULL, titles[i]);
  for (int group = 0; group < c->n_groups; group++) add_means(&g, c, group);
  add_means(&g, c, -1);
  return g;
}

/* ---- compiler reports ---- */

static void add_report(grid *g, const compare_device *d, const compare_result *r) {
  const double numbers[] = {r->loads, r->stores, r->fmas, r->registers, r->spills};
  char text[160];
  grid_add(g, "%s", d->label);
  grid_add(g, "%s", r->op);
  grid_add(g, "%s", work_of(r, text, sizeof text));
  grid_add(g, "%s", r->pass);
  grid_add(g, "%s", r->dtype);
  for (int i = 0; i < 5; i++)
    if (isfinite(numbers[i])) grid_add(g, "%.0f", numbers[i]);
    else grid_add(g, "%s", "");
  if (isfinite(r->occupancy)) grid_add(g, "%.0f %%", 100 * r->occupancy);
  else grid_add(g, "%s", "");
  grid_add(g, "%s", figures(text, 1e3 * r->bound_seconds, 4));
  grid_add(g, "%s", r->limited_by);
}

grid compilers_table(const comparison *c) {
  static const char *const titles[] = {
      "device", "op",         "problem",        "pass",       "dtype",     ">loads",    ">stores",
      ">FMAs",  ">registers", ">bytes spilled", ">occupancy", ">bound ms", "limited by"};
  grid g = {.n_columns = 0};
  for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) grid_add_column(&g, NULL, titles[i]);
  for (int i = 0; i < c->n_results; i++)
    if (c->results[i].bound) add_report(&g, &c->devices[c->results[i].device], &c->results[i]);
  return g;
}

/* ---- for programs ---- */

static void add_exact(grid *g, double x) {
  if (isfinite(x)) grid_add(g, "%.9g", x);
  else grid_add(g, "%s", "");
}

static void add_exact_cells(grid *g, const comparison *c, const compare_line *line, int device) {
  static const char *const checks[] = {"", "correct", "incorrect"};
  static const compare_result none = {
      .seconds = NAN, .rows = NAN, .copy_fraction = NAN, .peak_fraction = NAN, .error = NAN};
  const compare_result *r = line->cells[device] ? line->cells[device] : &none;
  const compare_speed s = speed_of(c, line, device);
  const char *of;
  const double fraction = fraction_of(r, &of);
  add_exact(g, time_of(r));
  add_exact(g, r->rows);
  add_exact(g, fraction);
  grid_add(g, "%s", isfinite(fraction) ? of : "");
  add_exact(g, r->error);
  grid_add(g, "%s", checks[r->check]);
  if (isfinite(time_of(r))) grid_add(g, "%s", r->bound ? "bound" : "measured");
  else grid_add(g, "%s", r == &none ? "" : r->bound ? "compiled" : "failed");
  add_exact(g, s.value);
  grid_add(g, "%s", !isfinite(s.value) ? "" : s.per_row ? "row" : "launch");
  grid_add(g, "%s", "");
}

static void add_exact_means(grid *g, const comparison *c, int group) {
  const compare_result *is = group < 0 ? NULL : c->groups[group];
  if (!any_mean(c, group)) return;
  const char *const names[] = {
      "mean", is ? is->op : "", "", "", "", is ? is->pass : "", is ? is->dtype : "", ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) grid_add(g, "%s", names[i]);
  for (int d = 0; d < c->n_devices; d++) {
    if (!c->devices[d].n_results) continue;
    const compare_mean m = d == c->baseline ? (compare_mean){.value = NAN} : mean_of(c, group, d);
    for (int i = 0; i < 6; i++) grid_add(g, "%s", "");
    grid_add(g, "%s", m.n ? m.upper_bound || m.lower_bound ? "bound" : "measured" : "");
    add_exact(g, m.value);
    grid_add(g, "%s", "");
    if (m.n) grid_add(g, "%d", m.n);
    else grid_add(g, "%s", "");
  }
}

grid exact_table(const comparison *c) {
  static const char *const names[] = {"kind",    "op",   "problem", "graph",
                                      "options", "pass", "dtype",   "rows"};
  static const char *const titles[] = {"seconds", "rows", "fraction", "of",  "error",
                                       "check",   "time", "speed",    "per", "results"};
  grid g = {.n_columns = 0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) grid_add_column(&g, NULL, names[i]);
  for (int d = 0; d < c->n_devices; d++)
    for (size_t i = 0; c->devices[d].n_results && i < sizeof titles / sizeof *titles; i++)
      grid_add_column(&g, c->devices[d].label, titles[i]);
  for (int i = 0; i < c->n_lines; i++) {
    const compare_line *line = &c->lines[c->order[i]];
    grid_add(&g, "result");
    add_work(&g, line);
    for (int d = 0; d < c->n_devices; d++)
      if (c->devices[d].n_results) add_exact_cells(&g, c, line, d);
  }
  for (int group = 0; group < c->n_groups; group++) add_exact_means(&g, c, group);
  add_exact_means(&g, c, -1);
  return g;
}
