/* tools/bench/suite_table.c - what `bench --suite` prints as it goes: a line per result. */
#include "tools/bench/suite_table.h"

#include <math.h>
#include <stdio.h>

#include "tools/measure/roofline.h"

enum {
  NUMBER,
  PROBLEM,
  PASS,
  DTYPE,
  ROWS,
  MS,
  SPREAD,
  GBS,
  COPY,
  PEAK,
  COMPILE,
  WARM,
  ERROR,
  RUN_COLUMNS
};
enum { BOUNDS = MS };

const char *suite_title(const suite_problem *p, char title[NAME_BYTES]) {
  snprintf(title, NAME_BYTES, "%s %s%s%s%s%s", p->op->name, p->name, p->graph ? " " : "",
           p->graph ? p->graph : "", p->options ? " " : "", p->options ? p->options : "");
  return title;
}

void suite_table_start(table *t, const clb_device_info *info, const device_peaks *top,
                       double launch, const suite_list *list, int64_t jobs) {
  char title[NAME_BYTES];
  if (info->runs)
    *t = (table){.n = RUN_COLUMNS,
                 .titles = {">", "problem", "pass", "dtype", ">rows", ">ms", ">±%", ">GB/s",
                            ">% copy", ">% peak", ">compile s", ">warm s", ">error"}};
  else
    *t = (table){.n = BOUNDS + BOUND_COLUMNS, .titles = {">", "problem", "pass", "dtype", ">rows"}};
  for (int c = 0; !info->runs && c < BOUND_COLUMNS; c++) t->titles[BOUNDS + c] = bound_titles[c];
  snprintf(title, sizeof title, "%lld/%lld", (long long)jobs, (long long)jobs);
  table_fit(t, NUMBER, title);
  for (int i = 0; i < list->n; i++) table_fit(t, PROBLEM, suite_title(&list->problem[i], title));
  table_fit(t, PASS, pass_names[CLB_DOUBLE_BACKWARD]);
  table_fit(t, ROWS, "10000000/2");
  for (int c = MS; info->runs && c <= GBS; c++) table_fit(t, c, "1234.567");
  if (info->runs) table_fit(t, ERROR, "1.0e-07");
  else table_fit(t, BOUNDS + BOUND_MS, "1234.567");
  progress(NULL);
  print_peaks(info, top, launch);
  table_titles(t);
  fflush(stdout);
}

static void number(char out[24], int digits, double x) {
  if (isfinite(x)) snprintf(out, 24, "%.*f", digits, x);
}

void suite_table_line(const table *t, const suite_job *job, const result *r, double warm,
                      int64_t done, int64_t jobs) {
  char made[MAX_COLUMNS][24] = {{0}}, title[NAME_BYTES];
  const char *cells[MAX_COLUMNS];
  for (int c = 0; c < MAX_COLUMNS; c++) cells[c] = made[c];
  cells[PROBLEM] = suite_title(job->problem, title), cells[PASS] = r->pass, cells[DTYPE] = r->dtype;
  snprintf(made[NUMBER], sizeof made[NUMBER], "%lld/%lld", (long long)done, (long long)jobs);
  snprintf(made[ROWS], sizeof made[ROWS], r->rows_halved ? "%lld/%lld" : "%lld",
           (long long)job->problem->rows[job->pass], 1LL << r->rows_halved);
  if (r->runs) {
    number(made[MS], 4, r->seconds * 1e3);
    number(made[SPREAD], 1, r->spread * 50);
    number(made[GBS], 1, r->bytes / r->seconds * 1e-9);
    number(made[COPY], 1, r->copy_fraction * 100);
    number(made[PEAK], 1, r->peak_fraction * 100);
    number(made[COMPILE], 2, r->compile_seconds);
    number(made[WARM], 4, warm);
    snprintf(made[ERROR], sizeof made[ERROR], "%.1e", r->error);
    if (!isfinite(r->copy_fraction)) snprintf(made[COPY], sizeof made[COPY], "cache");
  } else bound_cells(r, made + BOUNDS);
  progress(NULL);
  table_line(t, cells);
}
