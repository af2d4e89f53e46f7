/* tools/ablation/ablation.c - `clebsch ablation`: what each optimisation is worth. */
#include "tools/ablation/ablation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/report.h"
#include "tools/measure/timing.h"

/* ---- options ---- */

typedef struct {
  const char *out;
  bool quick, suites, force;
  ablation_format format;
  int n_problems, n_devices;
  const char *problem[MAX_CASES], *device[MAX_DEVICES];
} ablation_options;

enum { KEY_QUICK = 500, KEY_SUITES, KEY_PROBLEM, KEY_FORMAT, KEY_FORCE };

static error_t parse(int key, char *arg, struct argp_state *state) {
  static const char *const formats[] = {
      [FORMAT_TEXT] = "text", [FORMAT_CSV] = "csv", [FORMAT_MARKDOWN] = "markdown"};
  ablation_options *o = state->input;
  switch (key) {
    case 'o': o->out = arg; return 0;
    case 'd':
      if (o->n_devices == MAX_DEVICES) argp_error(state, "--device: at most %d", MAX_DEVICES);
      o->device[o->n_devices++] = arg;
      return 0;
    case KEY_QUICK: o->quick = true; return 0;
    case KEY_SUITES: o->suites = true; return 0;
    case KEY_FORCE: o->force = true; return 0;
    case KEY_PROBLEM:
      if (o->n_problems == MAX_CASES) argp_error(state, "--problem: at most %d", MAX_CASES);
      o->problem[o->n_problems++] = arg;
      return 0;
    case KEY_FORMAT:
      for (o->format = FORMAT_TEXT; o->format < FORMATS && strcmp(arg, formats[o->format]);
           o->format++) {
      }
      if (o->format == FORMATS)
        argp_error(state, "--format is text, csv or markdown, not '%s'", arg);
      return 0;
    case ARGP_KEY_ARG: argp_error(state, "ablation takes no '%s'", arg); return 0;
    case ARGP_KEY_END:
      if (!o->n_devices) o->device[o->n_devices++] = "";
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"device", 'd', "DEVICE", 0,
     "A name that `clebsch devices` shows; repeats (default: $CLB_DEVICE, else the first that "
     "opens)",
     0},
    {"suites", KEY_SUITES, NULL, 0, "The table of suites beside naive kernels, on cpu and cuda", 0},
    {"quick", KEY_QUICK, NULL, 0, "Smaller and fewer cases, a minute on a CPU", 0},
    {"problem", KEY_PROBLEM, "NAME", 0, "Only the cases of this problem; repeats", 0},
    {"out", 'o', "FILE", 0,
     "JSON of all cases, rewritten after each; existing cases are not measured again", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or markdown (default: text)", 0},
    {"force", KEY_FORCE, NULL, 0, "Overwrite FILE", 0},
    {0}};

static const char doc[] =
    "Times tasks with all optimisations, without one at a time, and without all, and compares the "
    "results.\v"
    "Each number of the table is the geometric mean of the time without the optimisation divided "
    "by the time with it, over the cases in which it changes anything, followed by the number of "
    "these cases; a dash if there are none. All ways of a case are timed alternately, and the "
    "minimum of each is used; FILE has medians, too.\n\n"
    "Without each optimisation: wide aligned accesses: elements are read and written one by one. "
    "accumulators in "
    "registers: sums over paths, edges or rows of a species, the gradient of a receiver and the "
    "weights of a species are in memory. "
    "split of long reductions: a row of a graph, or a sum over all rows, is processed by one "
    "group, "
    "however many edges or rows it has. receiver ownership: a tensor product writes a message for "
    "each edge, "
    "and messages are summed by receiver (backward: gradients are gathered, and those of x summed "
    "by sender); compared with a convolution whose weights are given, like those of the messages. "
    "harmonics on the fly: a separate op writes them. radial tables: a matrix "
    "product computes the weights of each edge from 64 numbers, like the last layer of a radial "
    "network; its other layers are not counted. record and replay: launches are submitted "
    "one by one.\n\n"
    "With --suites, each number is the geometric mean of the time of a naive kernel divided by "
    "ours, "
    "over the cases of a suite, with all optimisations, without one or without all of the first "
    "three; an optimisation that changes nothing in a case leaves its time as it is. A naive "
    "kernel "
    "is what one writes first: a thread (on the CPU an iteration of a loop, shared among as many "
    "threads as the device has) computes one element of the result, or one row, alone, from "
    "memory, "
    "without vectors or atomics. It is compiled by NVRTC or cc when it is needed.\n\n"
    "Exit status: 0 success, 1 a result is wrong or something failed, 2 wrong arguments.";

/* ---- measuring ---- */

typedef struct {
  ablation_options o;
  ablation_file file;
  naive *naive; /* of the device; NULL without --suites */
} run;

static const double TOLERANCE = 2e-3; /* tolerance in f32, relative to the root mean square: sums of
                                         100,000 terms in different order */

static const char *title(const ablation_case *c, char out[200]) {
  snprintf(out, 200, "%s %s%s%s%s%s %s", c->kind, c->problem, c->layout ? " " : "",
           c->layout ? c->layout : "", c->graph ? " " : "", c->graph ? c->graph : "",
           pass_names[c->pass]);
  return out;
}

static int one_case(run *r, clb_context *ctx, const clb_device_info *info, ablation_case *c,
                    int number, int of) {
  char name[200], label[400];
  int worst = EXIT_GOOD;
  if (ablation_file_has(&r->file, info->name, c)) return EXIT_GOOD;
  snprintf(label, sizeof label, "%s: %d of %d, %s", info->name, number, of, title(c, name));
  progress("%s: making it", label);
  work *w = allocate(1, sizeof *w);
  w->ctx = ctx;
  w->naive = r->naive;
  ablation_fill(w, c);
  clb_status status = work_measure(w, r->o.quick ? 0.1 : 0.6, label);
  progress(NULL);
  if (status)
    warn("%s: %s: %s", info->name, name, w->trouble[0] ? w->trouble : clb_error(ctx)),
        worst = EXIT_FAILED;
  for (int i = 0; i < w->n_ways && !status; i++) {
    const way *y = &w->way[i];
    if (y->error <= TOLERANCE) continue;
    if (y->without == NAIVE_KERNEL)
      warn("%s: %s differs from its naive kernel by %.1e, tolerance %.1e", info->name, name,
           y->error, TOLERANCE);
    else
      warn("%s: %s without %s is wrong: error %.1e, tolerance %.1e", info->name, name,
           y->without < ABLATIONS ? ablation_names[y->without] : "anything", y->error, TOLERANCE);
    worst = EXIT_FAILED;
  }
  if (!status && !ablation_file_add(&r->file, info->name, c, w)) worst = EXIT_FAILED;
  work_free(w);
  free(w);
  return worst;
}

static int all_cases(run *r, clb_context *ctx, const clb_device_info *info, ablation_case *cases,
                     int n) {
  int worst = EXIT_GOOD;
  if (!ablation_file_device(&r->file, info)) return EXIT_FAILED;
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
    if (message[0]) warn("ablation: %s", message);
    else warn("ablation: --suites runs on cpu and cuda, not on %s", info->name);
    return EXIT_FAILED;
  }
  int worst = all_cases(r, ctx, info, cases, n);
  naive_close(r->naive);
  return worst;
}

static int on_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  run *r = user;
  const ablation_options *o = &r->o;
  ablation_case cases[4 * MAX_CASES];
  int n =
      ablation_cases(o->suites, o->quick, is_on_this_cpu(info), o->problem, o->n_problems, cases);
  (void)asked;
  if (!info->runs) {
    warn("ablation: %s only compiles; nothing can be timed on it", info->name);
    return EXIT_FAILED;
  }
  if (!n) {
    warn("ablation: there is no case of such a problem%s%s",
         o->quick ? " among the quick ones" : "", o->suites ? " of --suites" : "");
    return EXIT_USAGE;
  }
  return (o->suites ? with_naive_kernels : all_cases)(r, ctx, info, cases, n);
}

int ablation_main(int argc, char **argv) {
  static const struct argp argp = {.options = options, .parser = parse, .args_doc = "", .doc = doc};
  run *r = allocate(1, sizeof *r);
  device_options devices = {0};
  parse_arguments(&argp, argc, argv, 0, &r->o);
  devices.n_devices = r->o.n_devices;
  memcpy(devices.devices, r->o.device, sizeof r->o.device);
  int status = ablation_file_open(&r->file, r->o.out, r->o.suites, r->o.quick, r->o.force)
                   ? on_each_device(&devices, on_device, r)
                   : EXIT_FAILED;
  if (r->file.root) ablation_print(&r->file, r->o.format);
  ablation_file_close(&r->file);
  free(r);
  return status;
}
