/* tools/ablation/ablation.c - `clebsch bench --without`: what each optimisation is worth. */
#include "tools/ablation/ablation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/report.h"
#include "tools/cli/request.h"
#include "tools/measure/timing.h"

/* ---- options ---- */

typedef struct {
  unsigned wanted; /* a bit for each ablation */
  const char *out;
  bool force, quick, naive;
  int64_t rows; /* of an op; 0: its default */
  int n_problems;
  const char *problem[MAX_CASES];
  device_options devices;
} ablation_options;

enum { EACH = (1 << ABLATIONS) - 1 };
enum { KEY_WITHOUT = 500, KEY_ROWS, KEY_FORCE, KEY_QUICK, KEY_NAIVE, KEY_PROBLEM };

static unsigned optimisations_of(const struct argp_state *state, const char *list) {
  char *copy = strdup(list), *rest = copy;
  unsigned wanted = 0;
  for (char *word; copy && (word = strsep(&rest, ","));) {
    int a = 0;
    while (a < ABLATIONS && strcmp(word, ablation_words[a])) a++;
    if (a == ABLATIONS && strcmp(word, "each"))
      argp_error(state,
                 "--without is a list of wide, registers, split, ownership, harmonics, tables, "
                 "replay and all, or each; not '%s'",
                 word);
    wanted |= a < ABLATIONS ? 1u << a : EACH;
  }
  free(copy);
  return wanted;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  ablation_options *o = state->input;
  switch (key) {
    case 'o': o->out = arg; return 0;
    case KEY_WITHOUT: o->wanted |= optimisations_of(state, arg); return 0;
    case KEY_FORCE: o->force = true; return 0;
    case KEY_ROWS: o->rows = whole_number(state, "--rows", arg, 1, INT64_C(1) << 40); return 0;
    case ARGP_KEY_END:
      if (!o->wanted) argp_error(state, "write --without in full");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

#define COMMON                                                                                     \
  {"without",                                                                                      \
   KEY_WITHOUT,                                                                                    \
   "LIST",                                                                                         \
   0,                                                                                              \
   "What to do without, one at a time: wide, registers, split, ownership, harmonics, tables, "     \
   "replay; all: without all at once; each: the whole list",                                       \
   0},                                                                                             \
      {"out",                                                                                      \
       'o',                                                                                        \
       "FILE",                                                                                     \
       0,                                                                                          \
       "JSON of all cases, rewritten after each; existing cases are not measured again",           \
       0},                                                                                         \
  {                                                                                                \
    "force", KEY_FORCE, NULL, 0, "Overwrite FILE", 0                                               \
  }

static const struct argp_option list_options[] = {
    COMMON,
    {"naive", KEY_NAIVE, NULL, 0, "Cases with naive kernels, and speeds over these: cpu and cuda",
     0},
    {"quick", KEY_QUICK, NULL, 0, "Smaller and fewer cases, a minute on a CPU", 0},
    {"problem", KEY_PROBLEM, "NAME", 0, "Only the cases of this problem; repeats", 0},
    {0}};
static const struct argp_option op_options[] = {
    COMMON,
    {"rows", KEY_ROWS, "N", 0, "Rows of one launch (default: as without --without)", 0},
    {0}};

static const char doc[] =
    "Times tasks with all optimisations, and without those of LIST, and compares the results.\v"
    "All variants of a case are timed alternately, in f32, and the minimum of each is used; FILE "
    "has "
    "medians, too. Each number of the table is the geometric mean of the time without the "
    "optimisation divided by the time with it, over the cases in which it changes anything, "
    "followed by the number of these cases; a dash if there are none. With an OP (`clebsch bench "
    "OP --without LIST`) its passes are the cases.\n\n"
    "Without wide accesses: elements are read and written one by one. registers: sums over paths, "
    "edges or rows of a species, the gradient of a receiver and the weights of a species are in "
    "memory. split: a row of a graph, or a sum over all rows, is processed by one group, however "
    "many edges or rows it has. ownership: a tensor product writes a message for each edge, and "
    "messages are summed by receiver (backward: gradients are gathered, and those of x summed by "
    "sender); compared with a convolution whose weights are given, like those of the messages. "
    "harmonics: a separate op writes them. tables: a matrix product computes the weights of each "
    "edge from 64 numbers, like the last layer of a radial network; its other layers are not "
    "counted. replay: launches are submitted one by one.\n\n"
    "With --naive, each number is the geometric mean of the time of a naive kernel divided by "
    "ours, over the cases of a suite, with all optimisations, without one or without all of the "
    "first three; an optimisation that changes nothing in a case leaves its time as it is. A naive "
    "kernel is what one writes first: a thread (on the CPU an iteration of a loop, shared among as "
    "many threads as the device has) computes one element of the result, or one row, alone, from "
    "memory, without vectors or atomics. It is compiled by NVRTC or cc when it is needed.\n\n"
    "Exit status: 0 success, 1 a result is wrong or something failed, 2 wrong arguments.";

bool ablation_asked(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--without") || !strncmp(argv[i], "--without=", 10)) return true;
  return false;
}

/* ---- measuring ---- */

typedef struct {
  ablation_options o;
  results_file file;
  naive *naive;     /* of the device; NULL without --naive */
  request *request; /* NULL: the list of cases */
} run;

static const double TOLERANCE = 2e-3; /* tolerance in f32, relative to the root mean square: sums of
                                         100,000 terms in different order */

static const char *title(const ablation_case *c, char out[400]) {
  snprintf(out, 400, "%s %s%s%s%s%s %s", c->kind, c->problem, c->layout ? " " : "",
           c->layout ? c->layout : "", c->graph ? " " : "", c->graph ? c->graph : "",
           pass_names[c->pass]);
  return out;
}

/* Whether all variants agree. */
static bool agree(const work *w, const char *device, const char *name) {
  bool good = true;
  for (int i = 0; i < w->n_variants; i++) {
    const variant *y = &w->variant[i];
    if (y->error <= (y->without == NAIVE_KERNEL ? TOLERANCE : w->tolerance)) continue;
    if (y->without == NAIVE_KERNEL)
      warn("%s: the naive kernel of %s is wrong: error %.1e, tolerance %.1e", device, name,
           y->error, TOLERANCE);
    else
      warn("%s: %s%s%s is wrong: error %.1e, tolerance %.1e", device, name,
           y->without < ABLATIONS ? " without " : "",
           y->without < ABLATIONS ? ablation_names[y->without] : "", y->error, w->tolerance);
    good = false;
  }
  return good;
}

static int one_case(run *r, clb_context *ctx, const clb_device_info *info, ablation_case *c,
                    int number, int of) {
  char name[400], label[600];
  json_t *head = ablation_head(info->name, c);
  if (results_find(&r->file, head, 0) >= 0) return json_decref(head), EXIT_GOOD;
  snprintf(label, sizeof label, "%s: %d of %d, %s", info->name, number, of, title(c, name));
  progress("%s: making it", label);
  work *w = allocate(1, sizeof *w);
  w->ctx = ctx;
  w->naive = r->naive;
  w->wanted = r->o.wanted;
  w->tolerance = TOLERANCE;
  ablation_fill(w, c);
  clb_status status = work_measure(w, r->o.quick ? 0.1 : 0.6, label);
  progress(NULL);
  if (status) warn("%s: %s: %s", info->name, name, w->trouble[0] ? w->trouble : clb_error(ctx));
  bool good = !status && agree(w, info->name, name);
  if (status) json_decref(head);
  else good &= ablation_add(&r->file, head, c, w);
  work_free(w);
  free(w);
  return good ? EXIT_GOOD : EXIT_FAILED;
}

static int all_cases(run *r, clb_context *ctx, const clb_device_info *info, ablation_case *cases,
                     int n) {
  int worst = EXIT_GOOD;
  json_t *device = json_object();
  JSON_ADD(device, {"name", json_text(info->name)}, {"description", json_text(info->description)},
           {"driver", json_text(info->driver)});
  if (!results_device(&r->file, device)) return EXIT_FAILED;
  for (int i = 0; i < n; i++) {
    int status = one_case(r, ctx, info, &cases[i], i + 1, n);
    if (status > worst) worst = status;
  }
  return worst;
}

static int with_naive_kernels(run *r, clb_context *ctx, const clb_device_info *info,
                              ablation_case *cases, int n) {
  char message[NAIVE_MESSAGE];
  r->naive = naive_open(info, message);
  if (!r->naive) {
    if (message[0]) warn("bench: %s", message);
    else warn("bench: --naive runs on cpu and cuda, not on %s", info->name);
    return EXIT_FAILED;
  }
  int worst = all_cases(r, ctx, info, cases, n);
  naive_close(r->naive);
  r->naive = NULL;
  return worst;
}

/* The passes of an op. */
static int passes_of_request(const run *r, ablation_case *cases, char problem[320]) {
  const request *q = r->request;
  int n = 0;
  q->op->print(q->problem, problem, 320);
  for (int pass = 0; pass < PASSES; pass++)
    if (q->kernels.passes >> pass & 1)
      cases[n++] = (ablation_case){.kind = q->op->name,
                                   .problem = problem,
                                   .pass = (clb_pass)pass,
                                   .rows = q->op->on_graph ? 0
                                           : r->o.rows     ? r->o.rows
                                                       : op_rows(q->op, q->problem, (clb_pass)pass),
                                   .op = q->op,
                                   .of_op = q->problem};
  return n;
}

static int on_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  run *r = user;
  const ablation_options *o = &r->o;
  ablation_case cases[4 * MAX_CASES];
  char problem[320];
  (void)asked;
  if (!info->runs) {
    warn("bench: %s only compiles; nothing can be timed on it", info->name);
    return EXIT_FAILED;
  }
  int n = r->request ? passes_of_request(r, cases, problem)
                     : ablation_cases(o->naive, o->quick, is_on_this_cpu(info), o->problem,
                                      o->n_problems, cases);
  if (!n) {
    warn("bench: there is no case of such a problem%s%s", o->quick ? " among the quick ones" : "",
         o->naive ? " with naive kernels" : "");
    return EXIT_USAGE;
  }
  return (o->naive ? with_naive_kernels : all_cases)(r, ctx, info, cases, n);
}

static int run_all(run *r, const device_options *devices) {
  json_t *head = json_object();
  json_add(head, "suites", json_boolean(r->o.naive));
  json_add(head, "quick", json_boolean(r->o.quick));
  if (!results_open(&r->file, r->o.out, "clebsch ablation 1", head, r->o.force)) return EXIT_FAILED;
  r->file.digits = 6;
  int status = on_each_device(devices, on_device, r);
  if (devices->json) json_print(json_incref(r->file.results));
  else if (r->o.naive) ablation_print_suites(&r->file);
  else if (r->request) ablation_print_cases(&r->file, r->o.wanted);
  else ablation_print_means(&r->file, r->o.wanted);
  results_close(&r->file);
  return status;
}

/* ---- the command ---- */

static int of_op(run *r, int argc, char **argv) {
  static const struct argp own = {.options = op_options, .parser = parse};
  request q;
  request_parse(&q, argc, argv, &own, &r->o, doc);
  r->request = &q;
  if (!q.kernels.passes) q.kernels.passes = USUAL_PASSES & q.op->passes;
  int status = EXIT_USAGE;
  const unsigned all = 1u << NO_OPTIMISATION,
                 wanted = r->o.wanted & (all | ((1u << NO_OWNERSHIP) - 1));
  if (wanted != r->o.wanted && r->o.wanted != EACH)
    warn("bench: of an OP, --without takes wide, registers, split and all; the others are of the "
         "list of cases, without OP");
  else if (q.kernels.dtypes != 1u << CLB_F32) warn("bench: --without is measured in f32 alone");
  else if (r->o.rows && q.op->on_graph)
    warn("bench: %s has no --rows: its graph says how many", q.op->name);
  else {
    r->o.wanted = wanted;
    status = run_all(r, &q.devices);
  }
  request_free(&q);
  return status;
}

static error_t parse_list(int key, char *arg, struct argp_state *state) {
  ablation_options *o = state->input;
  switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->devices; return 0;
    case KEY_QUICK: o->quick = true; return 0;
    case KEY_NAIVE: o->naive = true; return 0;
    case KEY_PROBLEM:
      if (o->n_problems == MAX_CASES) argp_error(state, "--problem: at most %d", MAX_CASES);
      o->problem[o->n_problems++] = arg;
      return 0;
    case ARGP_KEY_ARG: argp_error(state, "no op '%s'", arg); return 0;
    default: return parse(key, arg, state);
  }
}

int ablation_main(int argc, char **argv) {
  static const struct argp_child children[] = {{&device_argp, 0, NULL, 0}, {0}};
  static const struct argp list = {.options = list_options,
                                   .parser = parse_list,
                                   .args_doc = "[OP]",
                                   .doc = doc,
                                   .children = children};
  run *r = allocate(1, sizeof *r);
  int status;
  if (op_among(argc, argv)) status = of_op(r, argc, argv);
  else {
    parse_arguments(&list, argc, argv, 0, &r->o);
    status = run_all(r, &r->o.devices);
  }
  free(r);
  return status;
}
