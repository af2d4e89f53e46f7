/* tools/bench/suite_file.c - results in the file of `bench --suite`. */
#include "tools/bench/suite_file.h"

#include <math.h>
#include <time.h>

#include "tools/measure/result.h"

static json_t *text_or_null(const char *s) { return s ? json_text(s) : json_null(); }

static json_t *head_of(const suite_job *job) {
  const suite_problem *p = job->problem;
  json_t *head = json_object();
  JSON_ADD(head, {"op", json_text(p->op->name)}, {"problem", json_text(p->name)},
           {"graph", text_or_null(p->graph)}, {"options", text_or_null(p->options)},
           {"pass", json_text(pass_names[job->pass])},
           {"dtype", json_text(dtype_names[job->dtype])}, {"device", json_text(job->device)});
  return head;
}

static bool has_rows(const json_t *row, const suite_job *job) {
  json_int_t halved = json_integer_value(json_object_get(row, "rows_halved"));
  return halved >= 0 && halved < 64 &&
         json_integer_value(json_object_get(row, "rows")) ==
             job->problem->rows[job->pass] >> halved;
}

static int place_of(const results_file *f, const suite_job *job) { /* -1: none */
  json_t *head = head_of(job);
  int place = results_find(f, head, 0);
  while (place >= 0 && !has_rows(json_array_get(f->results, (size_t)place), job))
    place = results_find(f, head, place + 1);
  json_decref(head);
  return place;
}

const json_t *suite_file_result(const results_file *f, const suite_job *job) {
  const int place = place_of(f, job);
  const json_t *row = place < 0 ? NULL : json_array_get(f->results, (size_t)place);
  return json_object_get(row, "failed") ? NULL : row;
}

bool suite_file_compiled(const results_file *f, const suite_job *job, double *cold, double *warm) {
  json_t *head = head_of(job);
  bool found = false;
  json_object_del(head, "graph"); /* a kernel does not depend on it */
  for (int place = -1; !found && (place = results_find(f, head, place + 1)) >= 0;) {
    const json_t *row = json_array_get(f->results, (size_t)place),
                 *a = json_object_get(row, "compile_seconds"),
                 *b = json_object_get(row, "warm_seconds");
    found = json_is_number(a) && json_is_number(b);
    if (found) *cold = json_number_value(a), *warm = json_number_value(b);
  }
  json_decref(head);
  return found;
}

void suite_file_add(results_file *f, const suite_job *job, const result *r, double warm_seconds,
                    const char *trouble) {
  int before = place_of(f, job);
  json_t *row = head_of(job);
  result x = *r;
  if (trouble)
    x.rows = job->problem->rows[job->pass], x.rows_halved = 0, x.compile_seconds = (double)NAN;
  if (before >= 0) json_array_remove(f->results, (size_t)before);
  json_array_add(f->results, row);
  if (job->problem->l_max >= 0) json_add(row, "l_max", json_count(job->problem->l_max));
  add_numbers(row, &x);
  json_add(row, "correct", r->runs && !trouble ? json_boolean(is_correct(r)) : json_null());
  json_add(row, "warm_seconds", json_number(warm_seconds));
  if (trouble) json_add(row, "failed", json_text(trouble));
}

json_t *suite_file_now(void) {
  char text[32];
  time_t now = time(NULL);
  struct tm t;
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &t));
  return json_text(text);
}
