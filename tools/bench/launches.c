/* tools/bench/launches.c - `clebsch bench launches`: host time and total time of small ops,
   submitted one by one and replayed from a recording. */
#include "tools/bench/launches.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ops/op.h"
#include "tools/ops/tensor_product_problems.h"
#include "tools/measure/timing.h"

enum { OPS = 20 }; /* ops per batch, which ends with a wait */
enum { FEWEST = 20, MAX = 400 };
static const double SECONDS = 0.4; /* per line, unless that is less than FEWEST batches */
static const int64_t all_rows[] = {64, 512, 4096};

/* One op, its operands and a recording of OPS times the op. */
typedef struct {
  clb_context *ctx;
  clb_op *op;
  bool product;
  int64_t rows, columns[4];
  clb_buffer *buffer[4];
  clb_recording *recording;
} small_op;

/* ---- the ops ---- */

static clb_status create_product(small_op *s) {
  clb_instructions *found = allocate(1, sizeof *found);
  clb_tensor_product_sizes sizes = {0};
  clb_status status = clb_channel_wise(s->ctx, BOTH1("32"), SH1, BOTH1("1"), CLB_AS_FOUND,
                                       found); /* nequip-water */
  const clb_tensor_product_desc desc = {.irreps_x = found->irreps_x,
                                        .irreps_y = found->irreps_y,
                                        .irreps_z = found->irreps_z,
                                        .instructions = found->instructions,
                                        .n_instructions = found->n_instructions,
                                        .layout_x = CLB_IR_MUL,
                                        .layout_y = CLB_IR_MUL,
                                        .layout_z = CLB_IR_MUL,
                                        .storage = CLB_F32,
                                        .arithmetic = CLB_F32,
                                        .passes = CLB_PASS_BIT(CLB_FORWARD)};
  if (!status) status = clb_tensor_product_measure(s->ctx, &desc, &sizes);
  if (!status) status = clb_tensor_product_create(s->ctx, &desc, &s->op);
  const int64_t columns[] = {sizes.x, sizes.y, sizes.w, sizes.z};
  memcpy(s->columns, columns, sizeof columns);
  free(found);
  return status;
}

static clb_status create_harmonics(small_op *s) {
  static const int degrees[] = {0, 1, 2, 3};
  const int64_t columns[4] = {3, 16};
  memcpy(s->columns, columns, sizeof columns);
  const clb_spherical_harmonics_desc desc = {.degrees = degrees,
                                             .n_degrees = 4,
                                             .normalize = 1,
                                             .storage = CLB_F32,
                                             .arithmetic = CLB_F32,
                                             .passes = CLB_PASS_BIT(CLB_FORWARD)};
  return clb_spherical_harmonics_create(s->ctx, &desc, &s->op);
}

static clb_status fill(clb_buffer *b, int64_t n) {
  uint64_t seed = 1;
  float *x = allocate((size_t)n, sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = (float)random_number(&seed);
  clb_status status = clb_buffer_write(b, 0, x, (uint64_t)n * sizeof *x);
  free(x);
  return status;
}

static clb_status run(const small_op *s) {
  clb_rows r[4];
  for (int i = 0; i < 4; i++) r[i] = (clb_rows){.buffer = s->buffer[i]};
  return s->product ? clb_tensor_product_forward(s->op, s->rows, r[0], r[1], r[2], r[3])
                    : clb_spherical_harmonics_forward(s->op, s->rows, r[0], r[1]);
}

static clb_status run_all(const small_op *s) {
  clb_status status = CLB_OK;
  for (int i = 0; i < OPS && !status; i++) status = run(s);
  return status;
}

static clb_status prepare(small_op *s) {
  clb_status status = s->product ? create_product(s) : create_harmonics(s);
  for (int i = 0; i < 4 && !status && s->columns[i]; i++) {
    status = clb_buffer_create(s->ctx, (uint64_t)(s->rows * s->columns[i]) * sizeof(float),
                               &s->buffer[i]);
    if (!status) status = fill(s->buffer[i], s->rows * s->columns[i]);
  }
  if (!status) status = clb_record_begin(s->ctx);
  if (!status) status = run_all(s);
  return status ? status : clb_record_end(s->ctx, &s->recording);
}

static void forget(small_op *s) {
  clb_recording_destroy(&s->recording);
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&s->buffer[i]);
  clb_op_destroy(&s->op);
}

/* ---- their times ---- */

enum { DIRECT, REPLAYED, WAYS };
typedef struct {
  double host[WAYS],
      wall[WAYS]; /* seconds per op: until all are submitted, until all have finished */
} costs;

/* Times both ways alternately, so that other load on the machine affects both. */
static clb_status time_ways(const small_op *s, costs *c) {
  static double host[WAYS][MAX], wall[WAYS][MAX];
  clb_status status = CLB_OK;
  double begin = 0;
  int n = 0;
  for (int batch = -2; !status && (n < FEWEST || (n < MAX && seconds_now() - begin < SECONDS));
       batch++) { /* the first two warm up */
    if (!batch) begin = seconds_now();
    for (int way = 0; way < WAYS && !status; way++) {
      double start = seconds_now();
      status = way == DIRECT ? run_all(s) : clb_replay(s->recording);
      host[way][n] = (seconds_now() - start) / OPS;
      if (!status) status = clb_wait(s->ctx);
      wall[way][n] = (seconds_now() - start) / OPS;
    }
    n += batch >= 0;
  }
  for (int way = 0; way < WAYS && !status; way++) {
    c->host[way] = median(host[way], n);
    c->wall[way] = median(wall[way], n);
  }
  return status;
}

/* ---- output ---- */

typedef struct {
  device_options devices;
  json_t *lines; /* NULL: a table */
} launches;

static void add_json(json_t *lines, const char *name, const small_op *s,
                     const clb_device_info *info, const costs *c) {
  json_t *line = json_array_add(lines, json_object());
  json_add(line, "op", json_text(name));
  json_add(line, "pass", json_text(pass_names[CLB_FORWARD]));
  json_add(line, "dtype", json_text(dtype_names[CLB_F32]));
  json_add(line, "device", json_text(info->name));
  json_add(line, "description", json_text(info->description));
  json_add(line, "driver", json_text(info->driver));
  json_add(line, "rows", json_count(s->rows));
  json_add(line, "ops", json_count(OPS));
  json_add(line, "host_seconds", json_number(c->host[DIRECT]));
  json_add(line, "host_seconds_replayed", json_number(c->host[REPLAYED]));
  json_add(line, "seconds", json_number(c->wall[DIRECT]));
  json_add(line, "seconds_replayed", json_number(c->wall[REPLAYED]));
}

static void add_line(const table *t, const char *name, const small_op *s, const costs *c) {
  const double numbers[] = {(double)s->rows, c->host[DIRECT] * 1e6, c->host[REPLAYED] * 1e6,
                            c->wall[DIRECT] * 1e6, c->wall[REPLAYED] * 1e6};
  char made[5][24];
  const char *cells[6] = {name};
  for (int i = 0; i < 5; i++) {
    snprintf(made[i], sizeof made[i], "%.*f", i ? 2 : 0, numbers[i]);
    cells[i + 1] = made[i];
  }
  progress(NULL);
  table_line(t, cells);
}

static int on_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  static const char *const names[] = {"spherical_harmonics lmax=3", "tensor_product nequip-water"};
  launches *l = user;
  table t = {.n = 6, .titles = {"op", ">rows", ">host us", ">replayed", ">all us", ">replayed"}};
  clb_status status = CLB_OK;
  (void)asked;
  if (!info->runs) {
    warn("bench launches: %s only compiles", info->name);
    return EXIT_FAILED;
  }
  table_fit(&t, 0, names[1]);
  for (int c = 2; c < t.n; c++) table_fit(&t, c, "12345.67");
  if (!l->lines)
    printf("%s (%s): one op, forward, f32, of %d submitted before a wait\n", info->name,
           info->description, OPS);
  if (!l->lines) table_titles(&t);
  for (int i = 0; i < 6 && !status; i++) {
    small_op s = {.ctx = ctx, .product = i >= 3, .rows = all_rows[i % 3]};
    costs c;
    progress("%s: %s, %lld rows", info->name, names[s.product], (long long)s.rows);
    status = prepare(&s);
    if (!status) status = time_ways(&s, &c);
    if (!status && l->lines) add_json(l->lines, names[s.product], &s, info, &c);
    if (!status && !l->lines) add_line(&t, names[s.product], &s, &c);
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
