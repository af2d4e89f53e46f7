/* tools/measure/result.c - a result as JSON and as columns of a table. */
#include "tools/measure/result.h"

#include <math.h>
#include <stdio.h>

/* ---- JSON ---- */

static json_t *whole(double x) { return isfinite(x) ? json_count(llround(x)) : json_null(); }

void add_numbers(json_t *row, const result *r) {
  JSON_ADD(row, {"runs", json_boolean(r->runs)}, {"wisdom", json_boolean(r->tuned)},
           {"rows", json_count(r->rows)}, {"rows_halved", json_count(r->rows_halved)},
           {"seconds", json_number(r->seconds)}, {"seconds_tenth", json_number(r->seconds_tenth)},
           {"seconds_min", json_number(r->seconds_min)}, {"spread", json_number(r->spread)},
           {"repeats", json_count(r->repeats)},
           {"compile_seconds", json_number(r->compile_seconds)}, {"bytes", whole(r->bytes)},
           {"flops", whole(r->flops)}, {"copy_fraction", json_number(r->copy_fraction)},
           {"peak_fraction", json_number(r->peak_fraction)},
           {"floor_seconds", json_number(r->floor)});
  if (isfinite(r->more_floor))
    json_add(row, "floor_seconds_with_workspace", json_number(r->more_floor));
  JSON_ADD(row, {"error", json_number(r->error)}, {"tolerance", json_number(r->tolerance)},
           {"memory_bytes", whole(r->memory)});
  if (r->compared[0]) json_add(row, "compared", json_text(r->compared));
  if (!r->runs) add_bounds(row, r);
}

/* ---- columns ---- */

static void number(char out[NUMBER_BYTES], int digits, double x) {
  if (isfinite(x)) snprintf(out, NUMBER_BYTES, "%.*f", digits, x);
  else out[0] = 0;
}

#define COLUMN(name, digits, value)                                                                \
  static void name(const result *r, char out[NUMBER_BYTES]) { number(out, digits, value); }
COLUMN(rows_of, 0, (double)r->rows)
COLUMN(bytes_of, 0, r->bytes / (double)r->rows)
COLUMN(flops_of, 0, r->flops / (double)r->rows)
COLUMN(ns_of, 3, r->seconds / (double)r->rows * 1e9)
COLUMN(ms_of, 4, r->seconds * 1e3)
COLUMN(tenth_of, 4, r->seconds_tenth * 1e3)
COLUMN(least_of, 4, r->seconds_min * 1e3)
COLUMN(spread_of, 1, r->spread * 50)
COLUMN(gbs_of, 1, r->bytes / r->seconds * 1e-9)
COLUMN(peak_of, 1, r->peak_fraction * 100)
COLUMN(compile_of, 2, r->compile_seconds)
COLUMN(floor_in_ms, 4, r->floor * 1e3)
COLUMN(more_floor_of, 4, r->more_floor * 1e3)

static void copy_of(const result *r, char out[NUMBER_BYTES]) {
  number(out, 1, r->copy_fraction * 100);
  if (!*out) snprintf(out, NUMBER_BYTES, "cache");
}

static void error_of(const result *r, char out[NUMBER_BYTES]) {
  snprintf(out, NUMBER_BYTES, "%.1e", r->error);
}

static const char wide[] = "1234.567";
const result_column result_columns[RESULT_COLUMNS] = {
    [RESULT_ROWS] = {">rows", "1000000", rows_of},
    [RESULT_BYTES] = {">B/row", NULL, bytes_of},
    [RESULT_FLOPS] = {">flop/row", NULL, flops_of},
    [RESULT_NS] = {">ns/row", wide, ns_of},
    [RESULT_MS] = {">ms", wide, ms_of},
    [RESULT_TENTH] = {">tenth", wide, tenth_of},
    [RESULT_LEAST] = {">least", wide, least_of},
    [RESULT_SPREAD] = {">±%", wide, spread_of},
    [RESULT_GBS] = {">GB/s", wide, gbs_of},
    [RESULT_COPY] = {">% copy", NULL, copy_of},
    [RESULT_PEAK] = {">% peak", NULL, peak_of},
    [RESULT_COMPILE] = {">compile s", NULL, compile_of},
    [RESULT_ERROR] = {">error", "1.0e-07", error_of},
    [RESULT_FLOOR] = {">floor ms", NULL, floor_in_ms},
    [RESULT_MORE_FLOOR] = {">with workspace", NULL, more_floor_of},
};

void table_add(table *t, const int *columns, int n) {
  for (int i = 0; i < n; i++) {
    const result_column *c = &result_columns[columns[i]];
    t->titles[t->n++] = c->title;
    if (c->widest) table_fit(t, t->n - 1, c->widest);
  }
}

void table_add_bounds(table *t) {
  table_fit(t, t->n + BOUND_MS, wide);
  for (int c = 0; c < BOUND_COLUMNS; c++) t->titles[t->n++] = bound_titles[c];
}
