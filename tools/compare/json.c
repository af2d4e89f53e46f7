/* tools/compare/json.c - a comparison as JSON: what the charts of its page are drawn from. */
#include <math.h>

#include "tools/compare/compare.h"

static json_t *text_or_null(const char *s) { return *s ? json_text(s) : json_null(); }

/* The peaks of its charts: measured, or else the vendor's. */
static json_t *peaks_of(const compare_device *d) {
  const bool published = !isfinite(d->measured.copy) || !isfinite(d->measured.f32);
  const compare_peaks *top = published ? &d->vendor_specs : &d->measured;
  if (!isfinite(top->copy) || !isfinite(top->f32)) return json_null();
  json_t *peaks = json_object();
  json_add(peaks, "published", json_boolean(published));
  json_add(peaks, "copy", json_number(top->copy));
  json_add(peaks, "f32", json_number(top->f32));
  json_add(peaks, "f64", json_number(top->f64));
  return peaks;
}

/* By device; null where nothing is compared. */
static json_t *means_of(const comparison *c, int group) {
  json_t *means = json_array();
  for (int d = 0; d < c->n_devices; d++) {
    const compare_mean m = mean_of(c, group, d);
    json_t *mean = json_array_add(means, m.n ? json_object() : json_null());
    if (!m.n) continue;
    json_add(mean, "value", json_number(m.value));
    json_add(mean, "low", json_number(m.low));
    json_add(mean, "high", json_number(m.high));
    json_add(mean, "n", json_count(m.n));
    json_add(mean, "upper_bound", json_boolean(m.upper_bound));
    json_add(mean, "lower_bound", json_boolean(m.lower_bound));
  }
  return means;
}

static json_t *cell_of(const comparison *c, const compare_line *line, int device) {
  static const char *const checks[] = {"unknown", "correct", "incorrect"};
  const compare_result *r = line->cells[device];
  if (!r) return json_null();
  json_t *cell = json_object();
  const char *of;
  const double fraction = fraction_of(r, &of);
  const compare_speed s = speed_of(c, line, device);
  json_add(cell, "seconds", json_number(time_of(r)));
  json_add(cell, "rows", json_number(r->rows));
  json_add(cell, "bound", json_boolean(r->bound));
  json_add(cell, "check", json_text(checks[r->check]));
  json_add(cell, "fraction", json_number(fraction));
  json_add(cell, "of", isfinite(fraction) ? json_text(of) : json_null());
  json_add(cell, "bytes", json_number(r->bytes));
  json_add(cell, "flops", json_number(r->flops));
  json_add(cell, "speed", json_number(s.value));
  json_add(cell, "per_row", json_boolean(s.per_row));
  json_add(cell, "upper_bound", json_boolean(s.upper_bound));
  json_add(cell, "lower_bound", json_boolean(s.lower_bound));
  return cell;
}

json_t *compare_json(const comparison *c) {
  json_t *root = json_object(), *devices = json_array(), *groups = json_array(),
         *lines = json_array();
  for (int d = 0; d < c->n_devices; d++) {
    const compare_device *from = &c->devices[d];
    json_t *device = json_array_add(devices, json_object());
    json_add(device, "label", json_text(from->label));
    json_add(device, "description", json_text(from->description));
    json_add(device, "sheet", text_or_null(from->sheet));
    json_add(device, "runs", json_boolean(from->runs));
    json_add(device, "times", json_count(from->n_times));
    json_add(device, "peaks", peaks_of(from));
  }
  for (int g = 0; g < c->n_groups; g++) {
    json_t *group = json_array_add(groups, json_object());
    json_add(group, "op", json_text(c->groups[g]->op));
    json_add(group, "pass", json_text(c->groups[g]->pass));
    json_add(group, "dtype", json_text(c->groups[g]->dtype));
    json_add(group, "means", means_of(c, g));
  }
  for (int i = 0; i < c->n_lines; i++) {
    const compare_line *from = &c->lines[c->order[i]];
    json_t *line = json_array_add(lines, json_object()), *cells = json_array();
    json_add(line, "group", json_count(from->group));
    json_add(line, "block", json_count(from->block));
    json_add(line, "problem", json_text(from->is->problem));
    json_add(line, "graph", text_or_null(from->is->graph));
    json_add(line, "options", text_or_null(from->is->options));
    json_add(line, "rows", json_number(from->rows));
    for (int d = 0; d < c->n_devices; d++) json_array_add(cells, cell_of(c, from, d));
    json_add(line, "cells", cells);
  }
  json_add(root, "baseline", json_count(c->baseline));
  json_add(root, "devices", devices);
  json_add(root, "groups", groups);
  json_add(root, "means", means_of(c, -1));
  json_add(root, "lines", lines);
  return root;
}
