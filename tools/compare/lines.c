/* tools/compare/lines.c - results of several devices as lines of the same work; speeds and their
   means. */
#include "tools/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double time_of(const compare_result *r) { return r->bound ? r->bound_seconds : r->seconds; }

double fraction_of(const compare_result *r, const char **of) {
  const bool peak = !(r->copy_fraction >= r->peak_fraction) && isfinite(r->peak_fraction);
  *of = peak ? "FMA" : "copy";
  return r->bound ? NAN : peak ? r->peak_fraction : r->copy_fraction;
}

const char *work_of(const compare_result *r, char *out, size_t size) {
  snprintf(out, size, "%s%s%s%s%s", r->problem, *r->graph ? ", " : "", r->graph,
           *r->options ? ", " : "", r->options);
  return out;
}

const char *figures(char out[32], double x, int n) {
  out[0] = 0;
  if (!isfinite(x)) return out;
  const int decimals = x > 0 ? n - 1 - (int)floor(log10(x)) : 0;
  if (x > 0 && (x < 1e-4 || x >= 1e7)) snprintf(out, 32, "%.*e", n - 1, x);
  else snprintf(out, 32, "%.*f", decimals < 0 ? 0 : decimals, x);
  return out;
}

const char *scaled(char out[48], double x, int n, const char *unit) {
  static const char *const prefixes[] = {"p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"};
  char text[32];
  out[0] = 0;
  if (!isfinite(x)) return out;
  int k = x > 0 ? (int)floor(log10(x) / 3 + 1e-9) : 0;
  k = k < -4 ? -4 : k > 6 ? 6 : k;
  if (!*unit && x >= 1e-3 && x < 1e4) k = 0;
  const char *prefix = prefixes[k + 4];
  figures(text, x / pow(1000, k), n);
  snprintf(out, 48, "%s%s%s%s", text, *prefix || *unit ? " " : "", prefix, unit);
  return out;
}

/* ---- labels ---- */

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* 0: no other device has the same name; 1: one in another file does, which has a different name; 2:
   the files' names are the same, too. */
static int alike(const comparison *c, int d) {
  int worst = 0;
  for (int e = 0; e < c->n_devices; e++) {
    if (e == d || strcmp(c->devices[e].name, c->devices[d].name)) continue;
    const int same = 1 + !strcmp(file_name(c->runs[c->devices[e].run].path),
                                 file_name(c->runs[c->devices[d].run].path));
    if (same > worst) worst = same;
  }
  return worst;
}

static void label(comparison *c, int d) {
  compare_device *is = &c->devices[d];
  const int n = alike(c, d);
  const char *path = c->runs[is->run].path, *file = n < 2 ? file_name(path) : path;
  const size_t size = strlen(is->name) + strlen(file) + 4;
  is->label = allocate(size, 1);
  snprintf(is->label, size, n ? "%s [%s]" : "%s", is->name, file);
}

/* The fastest device of the most lines. */
static int fastest_device(const comparison *c) {
  int best = -1, most = 0;
  for (int d = 0; d < c->n_devices; d++) {
    int n = c->devices[d].n_times > 0;
    for (int i = 0; i < c->n_lines; i++) {
      const compare_result *r = c->lines[i].cells[d];
      bool first = r && !r->bound && isfinite(time_of(r));
      for (int e = 0; e < c->n_devices && first; e++) {
        const compare_result *other = c->lines[i].cells[e];
        first = !other || other->bound || !(time_of(other) / other->rows < time_of(r) / r->rows);
      }
      n += first;
    }
    if (n > most) most = n, best = d;
  }
  return best;
}

/* The CPU, the fastest, or the first with results. */
static int usual_baseline(const comparison *c) {
  const int fastest = fastest_device(c);
  for (int d = 0; d < c->n_devices; d++)
    if (!strcmp(c->devices[d].name, "cpu") && c->devices[d].n_times) return d;
  for (int d = 0; d < c->n_devices && fastest < 0; d++)
    if (c->devices[d].n_results) return d;
  return fastest;
}

static bool choose_baseline(comparison *c, const char *name) {
  int found = 0;
  for (int d = c->n_devices - 1; d >= 0; d--) {
    if (!c->devices[d].n_results ||
        (strcmp(name, c->devices[d].name) && strcmp(name, c->devices[d].label)))
      continue;
    c->baseline = d;
    found++;
    if (!strcmp(name, c->devices[d].label)) return true;
  }
  if (found == 1) return true;
  warn("compare: --baseline %s: %s; the devices with results are:", name,
       found ? "several files have it" : "no such device");
  for (int d = 0; d < c->n_devices; d++)
    if (c->devices[d].n_results) warn("  %s", c->devices[d].label);
  return false;
}

/* ---- lines ---- */

static int by_kind(const compare_result *a, const compare_result *b) {
  int order = strcmp(a->op, b->op);
  if (!order) order = strcmp(a->pass, b->pass);
  return order ? order : strcmp(a->dtype, b->dtype);
}

static int by_work(const compare_result *a, const compare_result *b) {
  int order = by_kind(a, b);
  if (!order) order = strcmp(a->problem, b->problem);
  if (!order) order = strcmp(a->graph, b->graph);
  return order ? order : strcmp(a->options, b->options);
}

static double rows_asked(const compare_result *r) { return ldexp(r->rows, (int)r->halved); }

static int by_place(const void *a, const void *b) {
  const compare_result *x = *(const compare_result *const *)a,
                       *y = *(const compare_result *const *)b;
  int order = by_work(x, y);
  if (!order) order = (rows_asked(x) > rows_asked(y)) - (rows_asked(x) < rows_asked(y));
  return order ? order : x->order - y->order;
}

/* Halving rounds, so the requested rows are known only to less than 2^halved. */
static bool same_rows(const compare_result *a, const compare_result *b) {
  return fabs(rows_asked(a) - rows_asked(b)) <= ldexp(1, (int)fmax(a->halved, b->halved)) - 1;
}

/* If every device has a single number of rows, though not the same, times are compared per row. */
static bool one_each(const compare_result *const sorted[], int n) {
  const compare_result *of[MAX_COMPARED_DEVICES] = {NULL};
  for (int i = 0; i < n; i++) {
    const compare_result **seen = &of[sorted[i]->device];
    if (*seen && !same_rows(*seen, sorted[i])) return false;
    *seen = sorted[i];
  }
  return true;
}

static int group_of(comparison *c, const compare_result *r) { /* -1: too many */
  for (int g = 0; g < c->n_groups; g++)
    if (!by_kind(c->groups[g], r)) return g;
  if (c->n_groups == MAX_COMPARED_GROUPS)
    return warn("compare: more than %d kinds of op, pass and dtype", MAX_COMPARED_GROUPS), -1;
  c->groups[c->n_groups] = r;
  return c->n_groups++;
}

static void line_add(comparison *c, compare_line *line, const compare_result *r) {
  const compare_result **cell = &line->cells[r->device];
  c->twice += *cell != NULL;
  if (!*cell || (*cell)->order < r->order) *cell = r;
  if (r->order < line->is->order) line->is = r;
}

/* The rows requested for the baseline, or else for the first device; exact if another device was
   not halved. */
static double rows_of_line(const comparison *c, const compare_line *line) {
  const compare_result *first = line->cells[c->baseline];
  for (int d = 0; d < c->n_devices && !first; d++) first = line->cells[d];
  for (int d = 0; d < c->n_devices && first->halved > 0; d++)
    if (line->cells[d] && line->cells[d]->halved == 0 && same_rows(line->cells[d], first))
      first = line->cells[d];
  return rows_asked(first);
}

static void block_add(comparison *c, const compare_result *const sorted[], int n, int block) {
  const bool one = one_each(sorted, n);
  for (int i = 0; i < n; i++) {
    const bool next = !i || (!one && !same_rows(sorted[i - 1], sorted[i]));
    if (next) {
      const compare_result **cells = c->cells + (size_t)c->n_lines * (size_t)c->n_devices;
      c->lines[c->n_lines++] = (compare_line){.is = sorted[i], .block = block, .cells = cells};
    }
    line_add(c, &c->lines[c->n_lines - 1], sorted[i]);
  }
}

static int by_first(const void *a,
                    const void *b) { /* pairs of: order of the line's first result, line */
  return ((const int *)a)[0] - ((const int *)b)[0];
}

static void order_lines(comparison *c) {
  int(*pairs)[2] = allocate((size_t)c->n_lines, sizeof *pairs);
  for (int i = 0; i < c->n_lines; i++) pairs[i][0] = c->lines[i].is->order, pairs[i][1] = i;
  qsort(pairs, (size_t)c->n_lines, sizeof *pairs, by_first);
  for (int i = 0; i < c->n_lines; i++) c->order[i] = pairs[i][1];
  free(pairs);
}

static int max_lines(const compare_result *const sorted[], int n) { /* upper bound */
  int lines = 0;
  for (int i = 0; i < n; i++)
    lines += !i || by_work(sorted[i - 1], sorted[i]) || !same_rows(sorted[i - 1], sorted[i]);
  return lines;
}

/* ---- speeds ---- */

compare_speed speed_of(const comparison *c, const compare_line *line, int device) {
  const compare_result *b = line->cells[c->baseline], *d = line->cells[device];
  compare_speed s = {.value = NAN};
  if (!b || !d || b->check == CHECK_WRONG || d->check == CHECK_WRONG) return s;
  s.per_row = b->rows != d->rows;
  s.value = s.per_row ? (time_of(b) / b->rows) / (time_of(d) / d->rows) : time_of(b) / time_of(d);
  s.upper_bound = d->bound;
  s.lower_bound = b->bound;
  return s;
}

static const compare_mean no_mean = {.low = INFINITY, .high = -INFINITY};

static void mean_add(compare_mean *m, const compare_line *line,
                     const compare_speed *s) { /* value: sum of logarithms so far */
  const bool bound = s->upper_bound || s->lower_bound, had = m->upper_bound || m->lower_bound;
  if (m->n && bound && !had) return;
  if (m->n && had && !bound) *m = no_mean;
  m->n++;
  m->upper_bound |= s->upper_bound;
  m->lower_bound |= s->lower_bound;
  m->value += log(s->value);
  if (s->value < m->low) m->low = s->value, m->slowest = line;
  if (s->value > m->high) m->high = s->value, m->fastest = line;
}

static void make_means(comparison *c) {
  const int n = (c->n_groups + 1) * c->n_devices;
  c->means = allocate((size_t)n, sizeof *c->means);
  for (int i = 0; i < n; i++) c->means[i] = no_mean;
  for (int i = 0; i < c->n_lines; i++)
    for (int d = 0; d < c->n_devices; d++) {
      const compare_line *line = &c->lines[c->order[i]];
      const compare_speed s = speed_of(c, line, d);
      if (!isfinite(s.value)) continue;
      mean_add(&c->means[d], line, &s);
      mean_add(&c->means[(line->group + 1) * c->n_devices + d], line, &s);
    }
  for (int i = 0; i < n; i++)
    c->means[i].value = c->means[i].n ? exp(c->means[i].value / c->means[i].n) : (double)NAN;
}

compare_mean mean_of(const comparison *c, int group, int device) {
  return c->means[(group + 1) * c->n_devices + device];
}

/* ---- the whole comparison ---- */

static void make_lines(comparison *c) {
  const int n = c->n_results;
  const compare_result **sorted = allocate((size_t)n, sizeof *sorted);
  for (int i = 0; i < n; i++) sorted[i] = &c->results[i];
  qsort(sorted, (size_t)n, sizeof *sorted, by_place);
  const size_t lines = (size_t)max_lines(sorted, n);
  c->lines = allocate(lines, sizeof *c->lines);
  c->cells = allocate(lines * (size_t)c->n_devices, sizeof *c->cells);
  c->order = allocate(lines, sizeof *c->order);
  for (int i = 0, end, block = 0; i < n; i = end, block++) {
    for (end = i + 1; end < n && !by_work(sorted[i], sorted[end]);) end++;
    block_add(c, sorted + i, end - i, block);
  }
  free(sorted);
  order_lines(c);
}

int compare_make(comparison *c, const char *baseline) {
  for (int d = 0; d < c->n_devices; d++) label(c, d);
  make_lines(c);
  if (!baseline) c->baseline = usual_baseline(c);
  else if (!choose_baseline(c, baseline)) return EXIT_USAGE;
  for (int i = 0; i < c->n_lines; i++) {
    compare_line *line = &c->lines[c->order[i]];
    line->rows = rows_of_line(c, line);
    line->group = group_of(c, line->is);
    if (line->group < 0) return EXIT_FAILED;
  }
  make_means(c);
  return EXIT_GOOD;
}
