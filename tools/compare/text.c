/* tools/compare/text.c - a comparison in sentences, and as text, CSV or Markdown. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/compare/tables.h"

typedef struct {
  void (*say)(void *user, const char *sentence);
  void *user;
} speaker;

static void say(const speaker *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const speaker *s, const char *format, ...) {
  char text[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  s->say(s->user, text);
}

static const char *plural(double n) { return n == 1 ? "" : "s"; }

/* "mace-large, carbon, backward f32" */
static const char *line_name(const compare_line *line, char *out, size_t size) {
  const compare_result *r = line->is;
  snprintf(out, size, "%s %s%s%s%s%s, %s %s", r->op, r->problem, *r->graph ? ", " : "", r->graph,
           *r->options ? ", " : "", r->options, r->pass, r->dtype);
  return out;
}

static void say_speed(const speaker *s, const comparison *c, int device) {
  const compare_device *d = &c->devices[device], *b = &c->devices[c->baseline];
  const compare_mean m = mean_of(c, -1, device);
  char mean[32], low[32], high[32], slowest[512], fastest[512];
  if (!m.n) {
    say(s, "%s has nothing that could be compared with %s.", d->label, b->label);
    return;
  }
  figures(mean, m.value, 3);
  line_name(m.slowest, slowest, sizeof slowest);
  if (m.upper_bound || m.lower_bound) {
    say(s,
        "%s: %s %s times the speed of %s in the geometric mean of %d result%s; its times are "
        "bounds from counts and published figures, not measurements.",
        d->label, m.upper_bound ? m.lower_bound ? "by bounds alone," : "at most" : "at least", mean,
        b->label, m.n, plural(m.n));
    return;
  }
  if (m.n == 1)
    say(s, "%s has %s times the speed of %s in the one result that can be compared (%s).", d->label,
        mean, b->label, slowest);
  else
    say(s,
        "%s has %s times the speed of %s in the geometric mean of %d results, from %s (%s) to %s "
        "(%s).",
        d->label, mean, b->label, m.n, figures(low, m.low, 3), slowest, figures(high, m.high, 3),
        line_name(m.fastest, fastest, sizeof fastest));
}

static void say_checks(const speaker *s, const comparison *c) {
  int n[3] = {0}, bounds = 0, compiled = 0, halved = 0, per_row = 0, silent = 0;
  for (int i = 0; i < c->n_lines; i++)
    for (int d = 0; d < c->n_devices; d++) {
      const compare_result *r = c->lines[i].cells[d];
      if (!r) continue;
      const bool timed = isfinite(time_of(r));
      bounds += r->bound && timed;
      compiled += r->bound && !timed;
      silent += !r->bound && !timed;
      halved += timed && r->halved > 0;
      if (!r->bound && timed) n[r->check]++;
      per_row += d != c->baseline && speed_of(c, &c->lines[i], d).per_row;
    }
  const int checked = n[CHECK_GOOD] + n[CHECK_WRONG];
  if (n[CHECK_WRONG])
    say(s, "INCORRECT: %d of %d results that were checked; they are excluded from speeds.",
        n[CHECK_WRONG], checked);
  else if (checked)
    say(s, "%s within tolerance.",
        checked == 1 ? "The one result that was checked is" : "All results that were checked are");
  if (n[CHECK_UNKNOWN])
    say(s, "Of %d result%s the files do not say whether they are within tolerance.",
        n[CHECK_UNKNOWN], plural(n[CHECK_UNKNOWN]));
  if (bounds)
    say(s, "%d result%s bound%s, not measured.", bounds, bounds == 1 ? " is a" : "s are",
        plural(bounds));
  if (compiled)
    say(s, "%d result%s only compiled, with no time.", compiled, compiled == 1 ? " was" : "s were");
  if (halved)
    say(s, "%d result%s rows halved, for want of memory.", halved,
        halved == 1 ? " has its" : "s have their");
  if (per_row)
    say(s, "%d speed%s of times by the row, since numbers of rows differ.", per_row,
        per_row == 1 ? " is" : "s are");
  if (silent)
    say(s, "%d result%s no time: %s failed.", silent, silent == 1 ? " has" : "s have",
        silent == 1 ? "it" : "they");
  if (c->twice)
    say(s, "%d result%s replaced by a later one of the same work and device.", c->twice,
        c->twice == 1 ? " is" : "s are");
}

void compare_sentences(const comparison *c, void (*how)(void *user, const char *sentence),
                       void *user) {
  const speaker s = {how, user};
  int n = 0;
  for (int d = 0; d < c->n_devices; d++) n += c->devices[d].n_results > 0;
  say(&s, "%d device%s, %d piece%s of work.", n, plural(n), c->n_lines, plural(c->n_lines));
  for (int d = 0; d < c->n_devices; d++)
    if (d != c->baseline && c->devices[d].n_results) say_speed(&s, c, d);
  say_checks(&s, c);
  for (int i = 0; i < c->n_runs; i++)
    if (!c->runs[i].complete)
      say(&s, "%s is incomplete: its suite was interrupted.", c->runs[i].path);
  if (n > 1)
    say(&s, "Speed is the time of %s divided by that of the device: above 1 the device is faster.",
        c->devices[c->baseline].label);
  say(&s, "%% of is relative to the peak that a result comes closest to: the device's copy "
          "bandwidth, or its multiply-adds (FMA).");
}

/* ---- formats ---- */

static void print_sentence(void *f, const char *sentence) {
  write_broken(f, sentence, 0, TEXT_INDENT);
  fputc('\n', f);
}

static void print_item(void *f, const char *sentence) {
  fputs("- ", f);
  for (const char *t = sentence; *t; t++) {
    if (strchr("\\`*[]~", *t)) fputc('\\', f);
    if (*t == '<') fputs("&lt;", f);
    else if (*t == '&') fputs("&amp;", f);
    else fputc(*t, f);
  }
  fputc('\n', f);
}

static void print_table(grid g, void (*print)(FILE *f, const grid *g), const char *title) {
  if (g.n_cells) {
    printf("%s", title);
    print(stdout, &g);
  }
  grid_free(&g);
}

void compare_print(const comparison *c, enum compare_format format) {
  const bool plain = format == COMPARE_TEXT;
  void (*print)(FILE * f, const grid *g) = plain ? grid_text : grid_markdown;
  if (format == COMPARE_CSV) {
    print_table(exact_table(c), grid_csv, "");
    return;
  }
  if (format == COMPARE_JSON) {
    json_t *root = compare_json(c);
    const bool good = !json_dumpf(root, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    json_decref(root);
    if (good) putchar('\n');
    return;
  }
  print_table(devices_table(c), print, "");
  print_table(results_table(c), print, "\n");
  print_table(means_table(c), print, "\nGeometric means of speeds:\n\n");
  print_table(compilers_table(c), print, "\nCompiled, not run:\n\n");
  putchar('\n');
  compare_sentences(c, plain ? print_sentence : print_item, stdout);
}
