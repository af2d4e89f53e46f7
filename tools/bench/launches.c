/* tools/bench/launches.c - `clebsch bench launches`: host time and total time of small ops,
   submitted one by one and replayed from a recording. */
#include "tools/bench/launches.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/data/test_run.h"
#include "tools/measure/timing.h"

enum { OPS = 20 }; /* ops per batch, which ends with a wait */
static const int64_t all_rows[] = {64, 512, 4096};

/* One op, its operands and a recording of OPS times the op. */
typedef struct {
  const char *name;
  clb_context *ctx;
  int64_t rows;
  void *problem;
  tool_kernel kernel;
  test_run data;
  test_run_set set;
  clb_op *op;
  clb_recording *recording;
} small_op;

/* ---- the ops ---- */

static const struct {
  const char *name;
  const tool_op *op;
  const char *options;
} ops[] = {
    {"spherical_harmonics lmax=3", &tool_op_spherical_harmonics, "--lmax 3"},
    {"tensor_product nequip-water", &tool_op_tensor_product,
     "--problem nequip-water --order found"},
};
enum { N_OPS = sizeof ops / sizeof *ops, N_ROWS = sizeof all_rows / sizeof *all_rows };

static clb_status run_all(const small_op *s) {
  clb_status status = CLB_OK;
  for (int i = 0; i < OPS && !status; i++) status = test_run_once(&s->data, s->op, &s->set);
  return status;
}

static clb_status prepare(small_op *s, int which) {
  const tool_op *op = ops[which].op;
  s->problem = problem_of(op, "%s", ops[which].options);
  s->kernel = (tool_kernel){.problem = s->problem, .storage = CLB_F32, .arithmetic = CLB_F32};
  clb_status status = op->create(s->ctx, &s->kernel, CLB_PASS_BIT(CLB_FORWARD), &s->op);
  test_run_make(&s->data, op, &s->kernel, CLB_FORWARD, &(tool_data){.rows = s->rows}, s->rows);
  if (!status) status = test_run_set_make(&s->data, s->ctx, s->op, &s->set);
  if (!status) status = clb_record_begin(s->ctx);
  if (!status) status = run_all(s);
  return status ? status : clb_record_end(s->ctx, &s->recording);
}

static void forget(small_op *s) {
  clb_recording_destroy(&s->recording);
  test_run_set_free(&s->data, &s->set);
  test_run_free(&s->data);
  clb_op_destroy(&s->op);
  free(s->problem);
}

/* ---- their times ---- */

enum { DIRECT, REPLAYED, WAYS };

static clb_status launch(void *user, int way) {
  const small_op *s = user;
  return way == DIRECT ? run_all(s) : clb_replay(s->recording);
}

/* Of OPS ops, both ways. */
static clb_status time_ways(small_op *s, timing times[WAYS]) {
  const timed_tasks tasks = {.ctx = s->ctx,
                             .n = WAYS,
                             .launch = launch,
                             .user = s,
                             .seconds = 0.4,
                             .fewest = 20,
                             .enough = 20,
                             .most = 400};
  return time_tasks(&tasks, times);
}

/* ---- output ---- */

typedef struct {
  device_options devices;
  json_t *lines; /* NULL: a table */
} launches;

static void add_json(json_t *lines, const small_op *s, const clb_device_info *info,
                     const timing *t) {
  json_t *line = json_array_add(lines, json_object());
  JSON_ADD(line, {"op", json_text(s->name)}, {"pass", json_text(pass_names[CLB_FORWARD])},
           {"dtype", json_text(dtype_names[CLB_F32])}, {"device", json_text(info->name)},
           {"description", json_text(info->description)}, {"driver", json_text(info->driver)},
           {"rows", json_count(s->rows)}, {"ops", json_count(OPS)},
           {"host_seconds", json_number(t[DIRECT].host / OPS)},
           {"host_seconds_replayed", json_number(t[REPLAYED].host / OPS)},
           {"seconds", json_number(t[DIRECT].seconds / OPS)},
           {"seconds_replayed", json_number(t[REPLAYED].seconds / OPS)});
}

static void add_line(const table *to, const small_op *s, const timing *t) {
  const double us = 1e6 / OPS,
               numbers[] = {(double)s->rows, t[DIRECT].host * us, t[REPLAYED].host * us,
                            t[DIRECT].seconds * us, t[REPLAYED].seconds * us};
  char made[5][24];
  const char *cells[6] = {s->name};
  for (int i = 0; i < 5; i++) {
    snprintf(made[i], sizeof made[i], "%.*f", i ? 2 : 0, numbers[i]);
    cells[i + 1] = made[i];
  }
  progress(NULL);
  table_line(to, cells);
}

static int on_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  launches *l = user;
  table t = {.n = 6, .titles = {"op", ">rows", ">host us", ">replayed", ">all us", ">replayed"}};
  clb_status status = CLB_OK;
  (void)asked;
  if (!info->runs) {
    warn("bench launches: %s only compiles", info->name);
    return EXIT_FAILED;
  }
  table_fit(&t, 0, ops[N_OPS - 1].name);
  for (int c = 2; c < t.n; c++) table_fit(&t, c, "12345.67");
  if (!l->lines)
    printf("%s (%s): one op, forward, f32, of %d submitted before a wait\n", info->name,
           info->description, OPS);
  if (!l->lines) table_titles(&t);
  for (int i = 0; i < N_OPS * N_ROWS && !status; i++) {
    small_op s = {.name = ops[i / N_ROWS].name, .ctx = ctx, .rows = all_rows[i % N_ROWS]};
    timing times[WAYS];
    progress("%s: %s, %lld rows", info->name, s.name, (long long)s.rows);
    status = prepare(&s, i / N_ROWS);
    if (!status) status = time_ways(&s, times);
    if (!status && l->lines) add_json(l->lines, &s, info, times);
    if (!status && !l->lines) add_line(&t, &s, times);
    forget(&s);
  }
  progress(NULL);
  if (status) warn("bench launches: %s: %s", info->name, clb_error(ctx));
  return status ? failure(status) : EXIT_GOOD;
}

/* ---- the command ---- */

bool launches_asked(int argc, char **argv) { return argc > 1 && !strcmp(argv[1], "launches"); }

static error_t parse(int key, char *arg, struct argp_state *state) {
  launches *l = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[0] = &l->devices;
  if (key == ARGP_KEY_ARG) argp_error(state, "bench launches takes no '%s'", arg);
  return key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
}

int launches_main(int argc, char **argv) {
  static const struct argp_child children[] = {{&device_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.parser = parse,
                                   .children = children,
                                   .doc =
                                       "Times small ops, forward in f32, submitted one by one and "
                                       "replayed from a single recording.\v"
                                       "host us: microseconds of the calls per op; all us: until "
                                       "it has finished, one after the other. Medians of batches."};
  launches l = {.lines = NULL};
  char title[] = "clebsch bench launches";
  argv[1] = title;
  parse_arguments(&argp, argc - 1, argv + 1, 0, &l);
  if (l.devices.json) l.lines = json_array();
  int status = on_each_device(&l.devices, on_device, &l);
  if (l.lines) json_print(l.lines);
  return status;
}
