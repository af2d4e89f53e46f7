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
  JSON_ADD(peaks, {"published", json_boolean(published)}, {"copy", json_number(top->copy)},
           {"f32", json_number(top->f32)}, {"f64", json_number(top->f64)});
  return peaks;
}

/* By device; null where nothing is compared. */
static json_t *means_of(const comparison *c, int group) {
  json_t *means = json_array();
  for (int d = 0; d < c->n_devices; d++) {
    const compare_mean m = mean_of(c, group, d);
    json_t *mean = json_array_add(means, m.n ? json_object() : json_null());
    if (!m.n) continue;
    JSON_ADD(mean, {"value", json_number(m.value)}, {"low", json_number(m.low)},
             {"high", json_number(m.high)}, {"n", json_count(m.n)},
             {"upper_bound", json_boolean(m.upper_bound)},
             {"lower_bound", json_boolean(m.lower_bound)});
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
  JSON_ADD(
      cell, {"seconds", json_number(time_of(r))}, {"rows", json_number(r->rows)},
      {"bound", json_boolean(r->bound)}, {"check", json_text(checks[r->check])},
      {"fraction", json_number(fraction)}, {"of", isfinite(fraction) ? json_text(of) : json_null()},
      {"bytes", json_number(r->bytes)}, {"flops", json_number(r->flops)},
      {"speed", json_number(s.value)}, {"per_row", json_boolean(s.per_row)},
      {"upper_bound", json_boolean(s.upper_bound)}, {"lower_bound", json_boolean(s.lower_bound)});
  return cell;
}

json_t *compare_json(const comparison *c) {
  json_t *root = json_object(), *devices = json_array(), *groups = json_array(),
         *lines = json_array();
  for (int d = 0; d < c->n_devices; d++) {
    const compare_device *from = &c->devices[d];
    json_t *device = json_array_add(devices, json_object());
    JSON_ADD(device, {"label", json_text(from->label)},
             {"description", json_text(from->description)}, {"sheet", text_or_null(from->sheet)},
             {"runs", json_boolean(from->runs)}, {"times", json_count(from->n_times)},
             {"peaks", peaks_of(from)});
  }
  for (int g = 0; g < c->n_groups; g++) {
    json_t *group = json_array_add(groups, json_object());
    JSON_ADD(group, {"op", json_text(c->groups[g]->op)}, {"pass", json_text(c->groups[g]->pass)},
             {"dtype", json_text(c->groups[g]->dtype)}, {"means", means_of(c, g)});
  }
  for (int i = 0; i < c->n_lines; i++) {
    const compare_line *from = &c->lines[c->order[i]];
    json_t *line = json_array_add(lines, json_object()), *cells = json_array();
    JSON_ADD(line, {"group", json_count(from->group)}, {"block", json_count(from->block)},
             {"problem", json_text(from->is->problem)}, {"graph", text_or_null(from->is->graph)},
             {"options", text_or_null(from->is->options)}, {"rows", json_number(from->rows)});
    for (int d = 0; d < c->n_devices; d++) json_array_add(cells, cell_of(c, from, d));
    json_add(line, "cells", cells);
  }
  JSON_ADD(root, {"baseline", json_count(c->baseline)}, {"devices", devices}, {"groups", groups},
           {"means", means_of(c, -1)}, {"lines", lines});
  return root;
}
