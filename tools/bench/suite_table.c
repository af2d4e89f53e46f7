/* tools/bench/suite_table.c - what `bench --suite` prints as it goes: a line per result. */
#include "tools/bench/suite_table.h"

#include <math.h>
#include <stdio.h>

#include "tools/measure/result.h"

enum { NUMBER, PROBLEM, PASS, DTYPE, ROWS, NAMES };
/* warm s comes before the error. */
static const int columns[] = {RESULT_MS,   RESULT_SPREAD,  RESULT_GBS,  RESULT_COPY,
                              RESULT_PEAK, RESULT_COMPILE, RESULT_ERROR};
enum { COLUMNS = sizeof columns / sizeof *columns, WARM = NAMES + COLUMNS - 1 };

const char *suite_title(const suite_problem *p, char title[NAME_BYTES]) {
  snprintf(title, NAME_BYTES, "%s %s%s%s%s%s", p->op->name, p->name, p->graph ? " " : "",
           p->graph ? p->graph : "", p->options ? " " : "", p->options ? p->options : "");
  return title;
}

void suite_table_start(table *t, const clb_device_info *info, const device_peaks *top,
                       double launch, const suite_list *list, int64_t jobs) {
  char title[NAME_BYTES];
  *t = (table){.n = NAMES, .titles = {">", "problem", "pass", "dtype", ">rows"}};
  if (!info->runs) table_add_bounds(t);
  else {
    table_add(t, columns, COLUMNS - 1);
    t->titles[t->n++] = ">warm s";
    table_add(t, columns + COLUMNS - 1, 1);
  }
  snprintf(title, sizeof title, "%lld/%lld", (long long)jobs, (long long)jobs);
  table_fit(t, NUMBER, title);
  for (int i = 0; i < list->n; i++) table_fit(t, PROBLEM, suite_title(&list->problem[i], title));
  table_fit(t, PASS, pass_names[CLB_DOUBLE_BACKWARD]);
  table_fit(t, ROWS, "10000000/2");
  progress(NULL);
  print_peaks(info, top, launch);
  table_titles(t);
  fflush(stdout);
}

void suite_table_line(const table *t, const suite_job *job, const result *r, double warm,
                      int64_t done, int64_t jobs) {
  char made[MAX_COLUMNS][NUMBER_BYTES] = {{0}}, title[NAME_BYTES];
  const char *cells[MAX_COLUMNS];
  for (int c = 0; c < MAX_COLUMNS; c++) cells[c] = made[c];
  cells[PROBLEM] = suite_title(job->problem, title), cells[PASS] = r->pass, cells[DTYPE] = r->dtype;
  snprintf(made[NUMBER], sizeof made[NUMBER], "%lld/%lld", (long long)done, (long long)jobs);
  snprintf(made[ROWS], sizeof made[ROWS], r->rows_halved ? "%lld/%lld" : "%lld",
           (long long)job->problem->rows[job->pass], 1LL << r->rows_halved);
  for (int c = 0; r->runs && c < COLUMNS; c++)
    result_columns[columns[c]].cell(r, made[NAMES + c + (NAMES + c >= WARM)]);
  if (!r->runs) bound_cells(r, made + NAMES);
  else if (isfinite(warm)) snprintf(made[WARM], sizeof made[WARM], "%.4f", warm);
  progress(NULL);
  table_line(t, cells);
}
