/* tools/measure/result.h - a result as JSON and as columns of a table. */
#ifndef CLB_TOOLS_MEASURE_RESULT_H
#define CLB_TOOLS_MEASURE_RESULT_H

#include "tools/measure/roofline.h"

/* Completes a row that has the names of op, problem, pass, dtype and device. */
void add_numbers(json_t *row, const result *r);

enum { NUMBER_BYTES = 24 };
/* title: '>' aligns the column to the right; widest: a cell for table_fit, or NULL. */
typedef struct {
  const char *title, *widest;
  void (*cell)(const result *r, char out[NUMBER_BYTES]);
} result_column;

enum {
  RESULT_ROWS,
  RESULT_BYTES,
  RESULT_FLOPS,
  RESULT_NS,
  RESULT_MS,
  RESULT_TENTH,
  RESULT_LEAST,
  RESULT_SPREAD,
  RESULT_GBS,
  RESULT_COPY,
  RESULT_PEAK,
  RESULT_COMPILE,
  RESULT_ERROR,
  RESULT_FLOOR,
  RESULT_MORE_FLOOR,
  RESULT_COLUMNS
};
extern const result_column result_columns[RESULT_COLUMNS];

/* Adds the columns of a list to a table; of a device that only compiles, those of its bounds. */
void table_add(table *t, const int *columns, int n);
void table_add_bounds(table *t);

#endif
