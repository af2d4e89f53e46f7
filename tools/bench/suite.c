/* tools/bench/suite.c - `clebsch bench --suite`: many problems on every device, into one file. */
#define _GNU_SOURCE /* sigaction */
#include "tools/bench/suite.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/measure/roofline.h"
#include "tools/bench/suite_file.h"
#include "tools/bench/suite_folder.h"
#include "tools/bench/suite_table.h"
#include "tools/measure/timing.h"

/* ---- options ---- */

typedef struct {
  const char *suite, *out, *only;
  bool list, force;
  int n_devices; /* 0: all devices that can run */
  const char *devices[MAX_DEVICES];
} suite_options;

enum { KEY_SUITE = 400, KEY_OUT = 'o', KEY_ONLY = 401, KEY_LIST, KEY_FORCE, KEY_DEVICE = 'd' };

static error_t parse(int key, char *arg, struct argp_state *state) {
  suite_options *o = state->input;
  switch (key) {
    case KEY_SUITE: o->suite = arg; return 0;
    case KEY_OUT: o->out = arg; return 0;
    case KEY_ONLY: o->only = arg; return 0;
    case KEY_LIST: o->list = true; return 0;
    case KEY_FORCE: o->force = true; return 0;
    case KEY_DEVICE:
      if (o->n_devices == MAX_DEVICES) argp_error(state, "--device: at most %d", MAX_DEVICES);
      o->devices[o->n_devices++] = arg;
      return 0;
    case ARGP_KEY_ARG:
      argp_error(state, "'%s': a suite brings its own ops; --only chooses among them", arg);
      return 0;
    case ARGP_KEY_END:
      if (!o->out && !o->list) argp_error(state, "say where the results go: --out run.json");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"suite", KEY_SUITE, "NAME", 0,
     "standard: problems of published benchmarks, every pass, f32 and f64. graphs: every "
     "channel-wise "
     "problem on every graph, f32. norms: rows of 77 to 16384 numbers and of irreps, f32 and bf16. "
     "quick: ten small problems in f32, a minute on a CPU",
     0},
    {"out", KEY_OUT, "FILE", 0,
     "JSON, rewritten after each result; existing results are not measured again", 0},
    {"device", KEY_DEVICE, "DEVICE", 0,
     "A name that `clebsch devices` shows, also of a compile-only one; repeats (default: all that "
     "run)",
     0},
    {"only", KEY_ONLY, "LIST", 0,
     "Only a part: ops, problems, graphs, options, passes and dtypes separated by commas, such as "
     "tensor_product,mace-large,f32",
     0},
    {"list", KEY_LIST, NULL, 0, "Show what would be measured, without measuring", 0},
    {"force", KEY_FORCE, NULL, 0, "Overwrite FILE", 0},
    {0}};

static const char doc[] =
    "Times many problems on every device, all with the same data, and compares each result with a "
    "float64 reference.\v"
    "The results go to one file, for `clebsch compare`. Ctrl-C (SIGINT, or SIGTERM) ends the run "
    "after the current launch, with exit status 1; a second one kills. The file is valid at any "
    "time, and the same command continues where it stopped, if suite and drivers are the same; "
    "further devices are added.\n\n"
    "The lines are as in `clebsch bench OP`. compile s is without a cache, warm s from the kernel "
    "cache in a new context; both are measured once per kernel. If a device has too little memory, "
    "rows are halved, with a note. Graphs that do not fit are skipped, as are f64 on devices "
    "without it and graphs whose structure files are not found (CLB_STRUCTURES names their "
    "folder).\n\n"
    "Exit status: 0 success, 1 something is wrong, failed or was interrupted, 2 wrong arguments.";

bool suite_asked(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--suite") || !strncmp(argv[i], "--suite=", 8)) return true;
  return false;
}

/* ---- signals ---- */

static volatile sig_atomic_t stopped; /* the signal that requested the end */

static void stop(int signal_number) { stopped = signal_number; }

static void heed_signals(void) { /* only once: a second signal kills */
  const struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

/* ---- devices ---- */

typedef struct {
  clb_context *ctx;
  clb_device_info info;
  device_peaks top;
  json_t *entry; /* in the file */
} device;

typedef struct {
  suite_options o;
  suite_list list;
  results_file file;
  int n_devices;
  device device[MAX_DEVICES];
  char *found[MAX_DEVICES]; /* names, for o.devices */
  table table;
  int64_t jobs, done; /* for all devices */
  double work, work_done,
      started; /* of the current device: approximate bytes of this run; seconds_now() */
  int failed;
} suite;

static void find(const clb_device_info *info, void *user) {
  suite *s = user;
  if (!info->runs || is_interpreter(info) || s->o.n_devices == MAX_DEVICES) return;
  if (!(s->found[s->o.n_devices] = strdup(info->name))) fatal("out of memory");
  s->o.devices[s->o.n_devices] = s->found[s->o.n_devices];
  s->o.n_devices++;
}

static bool open_devices(suite *s) {
  bool all = !s->o.n_devices;
  if (all) clb_devices(find, s);
  for (int i = 0; i < s->o.n_devices; i++) {
    device *d = &s->device[s->n_devices];
    clb_status status = clb_context_create(s->o.devices[i], &d->ctx);
    if (!status) status = clb_context_device(d->ctx, &d->info);
    for (int k = 0; !status && k < s->n_devices; k++)
      if (!strcmp(s->device[k].info.name, d->info.name))
        return warn("bench: %s is named twice", d->info.name), false;
    s->n_devices += !status || !all;
    if (!status) continue;
    warn("%s%s", clb_error(d->ctx), all ? " (left out)" : "");
    if (!all) return false;
    clb_context_destroy(&d->ctx);
  }
  if (!s->n_devices)
    warn("bench: nothing runs on this machine; --device names what to compile for");
  return s->n_devices;
}

static json_t *describe(const clb_device_info *info) {
  static const char *const unknown[] = {"copy_bytes_per_second", "f32_per_second", "f64_per_second",
                                        "launch_seconds"};
  json_t *d = json_object();
  JSON_ADD(
      d, {"name", json_text(info->name)}, {"backend", json_text(info->backend)},
      {"vendor", json_text(info->vendor)}, {"description", json_text(info->description)},
      {"driver", json_text(info->driver)},
      {"memory_bytes", info->memory_bytes ? json_count((int64_t)info->memory_bytes) : json_null()},
      {"runs", json_boolean(info->runs)}, {"f64", json_boolean(info->f64)});
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    json_add(d, unknown[i], json_null());
  add_vendor_specs(d, info->name);
  return d;
}

/* Measures its peaks, unless the file has them. */
static bool know_device(device *d) {
  json_t *entry = d->entry;
  double launch;
  if (!d->info.runs) return true;
  d->top.copy = json_number_value(json_object_get(entry, "copy_bytes_per_second"));
  d->top.fma[CLB_F32] = json_number_value(json_object_get(entry, "f32_per_second"));
  d->top.fma[CLB_F64] = json_number_value(json_object_get(entry, "f64_per_second"));
  if (d->top.copy > 0) return true;
  progress("%s: measuring its peaks", d->info.name);
  if (measure_peaks(d->ctx, &d->info, &d->top) || measure_launch(d->ctx, &launch))
    return warn("%s: %s", d->info.name, clb_error(d->ctx)), false;
  JSON_ADD(
      entry, {"copy_bytes_per_second", json_number(d->top.copy)},
      {"f32_per_second", json_number(d->top.fma[CLB_F32])},
      {"f64_per_second", d->top.fma[CLB_F64] > 0 ? json_number(d->top.fma[CLB_F64]) : json_null()},
      {"launch_seconds", json_number(launch)});
  return true;
}

/* ---- jobs ---- */

/* Compile time with a warm cache, in a new context. */
static double warm_seconds(const measurement *m, const char *name) {
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  double seconds = NAN;
  if (!clb_context_create(name, &ctx)) {
    double start = seconds_now();
    if (!m->op->create(ctx, &m->kernel, CLB_PASS_BIT(m->pass), &op))
      seconds = seconds_now() - start;
  }
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  return seconds;
}

static void name_job(const suite_job *job, char name[NAME_BYTES]) {
  char title[NAME_BYTES];
  snprintf(name, NAME_BYTES, "%s: %s %s %s", job->device, suite_title(job->problem, title),
           pass_names[job->pass], dtype_names[job->dtype]);
}

static void label_job(const suite *s, const char *name, char label[NAME_BYTES]) {
  double spent = seconds_now() - s->started,
         left = s->work_done > 0 ? spent / s->work_done * (s->work - s->work_done) : 0;
  int n = snprintf(label, NAME_BYTES, "%lld/%lld ", (long long)s->done, (long long)s->jobs);
  if (spent > 10 && s->work_done > 0)
    n += snprintf(label + n, (size_t)(NAME_BYTES - n), "(about %.0f min left on it) ",
                  ceil(left / 60));
  snprintf(label + n, (size_t)(NAME_BYTES - n), "%s", name);
}

/* false: the file cannot be written. */
static bool do_job(suite *s, device *d, const suite_job *job) {
  char name[NAME_BYTES], label[NAME_BYTES];
  const measurement m = {.op = job->problem->op,
                         .kernel = {.problem = job->problem->problem,
                                    .storage = job->dtype,
                                    .arithmetic = usual_arithmetic(job->dtype)},
                         .pass = job->pass,
                         .rows = job->problem->graph ? 0 : job->problem->rows[job->pass],
                         .halve = true,
                         .label = label,
                         .stop = &stopped};
  result r;
  double cold, warm = NAN;
  name_job(job, name);
  label_job(s, name, label);
  suite_folder_choose(d->info.name, job);
  clb_context *ctx = NULL; /* a new context has no kernels yet */
  if (clb_context_create(d->info.name, &ctx))
    return warn("%s: %s", d->info.name, clb_error(ctx)), clb_context_destroy(&ctx), false;
  clb_status status = measure(&m, ctx, &d->info, &d->top, &r);
  clb_context_destroy(&ctx);
  if (!status && suite_file_compiled(&s->file, job, &cold, &warm)) r.compile_seconds = cold;
  else if (!status && !stopped) warm = warm_seconds(&m, d->info.name);
  bool good = true, too_large = status == CLB_ERROR_MEMORY && job->problem->graph;
  const char *trouble = r.trouble ? r.trouble : clb_status_text(status);
  if (stopped) good = true; /* and this job does not count */
  else if (too_large) warn("left out: %s: %s", name, trouble);
  else {
    bool wrong = !status && r.runs && !is_correct(&r);
    suite_file_add(&s->file, job, &r, warm, status ? trouble : NULL);
    good = results_write(&s->file);
    if (status) warn("%s failed: %s", name, trouble);
    else suite_table_line(&s->table, job, &r, warm, s->done, s->jobs);
    if (wrong) warn("%s is wrong: error %.1e, tolerance %.1e", name, r.error, r.tolerance);
    s->failed += status != CLB_OK;
  }
  free(r.trouble);
  return good;
}

/* Approximate cost of a job in bytes. */
static double work_of(const suite_job *job) {
  return job->problem->bytes[job->pass] * (job->dtype == CLB_F64 ? 2 : 1) + 1e9;
}

/* Calls use() for each job on the device, until it returns false. */
static bool each_job(suite *s, device *d, bool (*use)(suite *s, device *d, const suite_job *job)) {
  static const clb_dtype dtypes[DTYPES] = {CLB_F32, CLB_F64, CLB_F16, CLB_BF16};
  for (int i = 0; i < s->list.n; i++)
    for (int t = 0; t < DTYPES; t++)
      for (int pass = 0; pass < PASSES; pass++) {
        const suite_job job = {&s->list.problem[i], (clb_pass)pass, dtypes[t], d->info.name};
        if (!(job.problem->passes >> pass & 1) || !(job.problem->dtypes >> job.dtype & 1) ||
            (job.dtype == CLB_F64 && !d->info.f64))
          continue;
        if (!use(s, d, &job)) return false;
      }
  return true;
}

static bool count_job(suite *s, device *d, const suite_job *job) {
  (void)d;
  s->jobs++;
  s->done += suite_file_result(&s->file, job) != NULL;
  return true;
}

static bool weigh_job(suite *s, device *d, const suite_job *job) {
  (void)d;
  if (!suite_file_result(&s->file, job)) s->work += work_of(job);
  return true;
}

static bool next_job(suite *s, device *d, const suite_job *job) {
  if (stopped) return false;
  if (suite_file_result(&s->file, job)) return true;
  if (!s->table.n)
    suite_table_start(&s->table, &d->info, &d->top,
                      json_number_value(json_object_get(d->entry, "launch_seconds")), &s->list,
                      s->jobs);
  s->done++;
  if (!do_job(s, d, job)) return false;
  s->work_done += work_of(job);
  return !stopped;
}

static bool run_jobs(suite *s) {
  bool good = true;
  for (int i = 0; i < s->n_devices; i++) each_job(s, &s->device[i], count_job);
  if (s->file.found)
    warn("%s: %lld of %lld results are there%s", s->o.out, (long long)s->done, (long long)s->jobs,
         s->done < s->jobs ? ", going on" : "");
  for (int i = 0; good && i < s->n_devices; i++) {
    s->work = s->work_done = 0;
    s->table.n = 0;
    s->started = seconds_now();
    each_job(s, &s->device[i], weigh_job);
    good = each_job(s, &s->device[i], next_job);
  }
  progress(NULL);
  json_add(s->file.root, "complete", json_boolean(good));
  return results_write(&s->file) && good;
}

/* ---- the whole run ---- */

static bool show_job(suite *s, device *d, const suite_job *job) {
  char name[NAME_BYTES];
  (void)d;
  name_job(job, name);
  printf("%s, %lld %ss\n", name, (long long)job->problem->rows[job->pass],
         job->problem->op->row ? job->problem->op->row : "row");
  s->jobs++;
  return true;
}

static int show(suite *s) {
  for (int i = 0; i < s->n_devices; i++) each_job(s, &s->device[i], show_job);
  printf("%lld results\n", (long long)s->jobs);
  return EXIT_GOOD;
}

static bool begin(suite *s) {
  json_t *head = json_object();
  json_add(head, "suite", json_text(s->o.suite));
  if (!results_open(&s->file, s->o.out, "clebsch run 1", head, s->o.force)) return false;
  if (!s->file.found) json_add(s->file.root, "started", suite_file_now());
  json_add(s->file.root, "complete", json_false());
  for (int i = 0; i < s->n_devices; i++) {
    device *d = &s->device[i];
    d->entry = results_device(&s->file, describe(&d->info));
    if (!d->entry || !know_device(d)) return false;
  }
  return results_write(&s->file);
}

static int run(suite *s) {
  if (!begin(s)) return EXIT_FAILED;
  bool good = run_jobs(s);
  int wrong = 0;
  size_t i;
  json_t *row;
  json_array_foreach(s->file.results, i, row) wrong +=
      json_is_false(json_object_get(row, "correct"));
  if (stopped)
    warn("stopped by a signal: %s has %zu results, and the same command goes on from there",
         s->o.out, json_array_size(s->file.results));
  if (wrong) warn("%s: %d of its results %s wrong", s->o.out, wrong, wrong == 1 ? "is" : "are");
  return good && !wrong && !s->failed ? EXIT_GOOD : EXIT_FAILED;
}

int suite_main(int argc, char **argv) {
  static const struct argp argp = {.options = options, .parser = parse, .args_doc = "", .doc = doc};
  suite *s = allocate(1, sizeof *s);
  parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, &s->o);
  int status = suite_list_make(&s->list, s->o.suite, s->o.only) ? EXIT_GOOD : EXIT_USAGE;
  if (!status && !s->o.list) {
    heed_signals();
    if (!suite_folder_make()) status = EXIT_FAILED;
  }
  if (!status && !open_devices(s)) status = EXIT_FAILED;
  if (!status) status = s->o.list ? show(s) : run(s);
  for (int i = 0; i < s->n_devices; i++) clb_context_destroy(&s->device[i].ctx);
  for (int i = 0; i < MAX_DEVICES; i++) free(s->found[i]);
  results_close(&s->file);
  suite_list_free(&s->list);
  free(s);
  return status;
}
