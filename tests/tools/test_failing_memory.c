/* tests/tools/test_failing_memory.c - each allocation of a small run of the command fails once:
   right bytes, or one message about memory.

     test_failing_memory                 SOME allocations of each run; another choice every day
     test_failing_memory whole           all of them
     test_failing_memory NAME [K | I/N]  all of one run, the K-th alone with what it said, or the
                                         N-th part from the I-th on */
#include "tests/dynamics/model_folder.h"

#include <math.h>
#include <sys/mman.h>
#include <time.h>

#include <clebsch/model.h>

#include "kernels/kernel.h"
#include "src/runtime/context.h"
#include "tests/tools/failing_malloc.h"
#include "tools/structures/structure.h"

enum { SOME = 40 };

/* The command's main: the program is linked so that it is called here, and not at the start. */
int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

typedef struct {
  const char *name, *arguments; /* of the command; NULL: calls of the library */
  const char *files[4];         /* that it writes */
} sweep;

static const sweep sweeps[] = {
    {"energy_interpreter",
     "energy --model model --structure atoms.xyz --repeat 1 --device cpu:interpreter --out "
     "f.xyz",
     {"f.xyz"}},
    {"energy", "energy --model model --structure atoms.xyz --repeat 1 --device cpu --json", {NULL}},
    {"energy_splines",
     "energy --model model --structure atoms.xyz --repeat 1 --device cpu --knots 16 --dtype f32 "
     "--compare-networks",
     {NULL}},
    {"md",
     "md --model model --structure atoms.xyz --device cpu --steps 3 --every 2 --dt 0.1 "
     "--temperature 300 --langevin 5 --trajectory t.xyz --csv t.csv --plot t.svg --restart r",
     {"t.xyz", "t.csv", "t.svg", "r"}},
    {"continue",
     "md --model model --continue start --device cpu --steps 1 --dt 0.1 --restart r",
     {"r"}},
    {"gradient",
     "gradient --model model --structures labels.xyz --device cpu --dtype f64 --loss huber --out g",
     {"g"}},
    {"evaluate",
     "evaluate --model model --structures labels.xyz --device cpu --knots 16 --csv c.csv --plot "
     "p.svg",
     {"c.csv", "p.svg"}},
    {"train",
     "train --new nequip --features 2x0e+2x1o --layers 1 --r-max 3 --radial 4 --train labels.xyz "
     "--device cpu --dtype f64 --epochs 2 --batch 1 --out n --restart r --csv c.csv --plot c.svg "
     "--json",
     {"n", "r", "c.csv", "c.svg"}},
    {"rdf",
     "rdf --trajectory atoms.xyz --pairs O-H,H-H --r-max 2 --csv g.csv --plot g.svg",
     {"g.csv", "g.svg"}},
    {"compare", "compare a.json b.json --html c.html", {"c.html"}},
    {"check",
     "check --op spherical_harmonics --device cpu:interpreter --rows 5 --part 2/12",
     {NULL}},
    {"check_product",
     "check --op tensor_product --device cpu:interpreter --rows 4 --part 1/65",
     {NULL}},
    {"check_convolution", "check --op convolution --device cpu --rows 4 --part 1/60", {NULL}},
    {"convert_nequix", "convert tiny.nqx converted", {"converted"}},
    {"convert_torch", "convert tiny.pth converted", {"converted"}},
    {"relax",
     "relax --model model --structure atoms.xyz --device cpu --max-force 3 --out r.xyz",
     {"r.xyz"}},
    {"library", NULL, {"again"}},
    {"dynamics", NULL, {"again"}},
    {"dynamics_without_f64", NULL, {"again"}},
    {"structures", NULL, {NULL}},
};
enum { SWEEPS = sizeof sweeps / sizeof *sweeps };

static failing_plan *plan; /* shared with the process that follows it */
static const char *only;   /* the argument, or NULL */
static long only_k, shard, shards = 1;

typedef struct {
  outcome is;
  char *file[4];
  size_t bytes[4]; /* of the files */
} result;

static void forget_all(result *o) {
  forget(&o->is);
  for (int i = 0; i < 4; i++) free(o->file[i]);
}

/* ---- the library, called as a program would; a call that failed is tried again, in the same
   context where there is one ---- */

static const int32_t species[6] = {1, 0, 0, 1, 0, 0};
static const double positions[18] = {0.1, 0.2, 0.3, 1.1, 0.2, 0.1, -0.2, 1.1, 0.4,
                                     2.2, 2.3, 2.1, 3.1, 2.5, 2.2, 2.0,  2.2, 3.1};
static const clb_model_atoms six = {6,          species, positions, NULL, {false, false, false},
                                    .charge = 0};

typedef struct {
  const char *device;
  bool without_f64;
  clb_context *ctx;
  clb_model *model;
  double out[36];
} program;

static clb_status open_model(program *p) {
  const clb_model_options options = {.dtype = p->without_f64 ? CLB_F32 : CLB_F64,
                                     .knots = CLB_NO_KNOTS};
  clb_status s = p->ctx ? CLB_OK : clb_context_create(p->device, &p->ctx);
  if (!s && p->without_f64) p->ctx->device->limits.f64 = false;
  return s || p->model ? s : clb_model_open(p->ctx, "model", &options, &p->model);
}

static clb_status compute(program *p) {
  double energy, e_atom[6];
  const clb_model_results results = {&energy, e_atom, p->out, NULL, NULL};
  const clb_status s = open_model(p);
  return s ? s : clb_model_compute(p->model, &six, &results);
}

/* Every call of clb_dynamics. */
static clb_status move(program *p) {
  static const double masses[6] = {16, 1, 1, 16, 1, 1}, rest[18];
  const clb_dynamics_move step = {
      .kick = 0.01, .grow = 1, .reach = 0.01, .keep = 0.9, .width = 0.1, .grow_again = 1};
  clb_dynamics *d = NULL;
  clb_dynamics_view view;
  clb_status s = open_model(p);
  if (!s) s = clb_dynamics_create(p->model, &six, masses, rest, NULL, &d);
  if (s && d) return CLB_ERROR_ARGUMENT;
  if (!s) s = clb_dynamics_compute(d, NULL, 0);
  if (!s) s = clb_dynamics_run(d, &step);
  if (!s) s = clb_dynamics_compute(d, NULL, 0);
  if (!s) s = clb_dynamics_see(d, &view);
  if (!s) s = clb_dynamics_read(d, p->out, p->out + 18, NULL, NULL);
  clb_dynamics_destroy(&d);
  return s;
}

static int twice(program p, clb_status (*attempt)(program *)) {
  const clb_status s = attempt(&p);
  if (s) fprintf(stderr, "clebsch: %s\n", clb_error(p.ctx));
  else
    for (int i = 0; i < 36; i++) printf("%.17g\n", p.out[i]);
  failing_follow(NULL);
  const clb_status again = s ? attempt(&p) : CLB_OK;
  FILE *f = fopen("again", "w");
  if (again) fprintf(stderr, "and the second time: %s (null)\n", clb_error(p.ctx));
  else
    for (int i = 0; i < 36; i++) fprintf(f, "%.17g\n", p.out[i]);
  fclose(f);
  clb_model_destroy(&p.model);
  clb_context_destroy(&p.ctx);
  return s != CLB_OK;
}

/* Files of atoms of the formats whose readers allocate. */
static int read_structures(void) {
  static const char *const names[] = {"a.cif", "a.data", "POSCAR", "a.xyz.gz"};
  structure_options last = {0};
  char error[500];
  structure s;
  structure_slice_read("-1", &last.frames);
  for (int i = 0; i < 4; i++) {
    if (!structure_read(names[i], i == 3 ? &last : NULL, &s, error, sizeof error))
      return fprintf(stderr, "clebsch: %s\n", error), 1;
    for (int64_t k = 0; k < 3 * s.n; k++) printf("%.17g\n", s.positions[k]);
    structure_free(&s);
  }
  return 0;
}

static int library(const char *name) {
  if (!strcmp(name, "structures")) return read_structures();
  if (!strcmp(name, "dynamics")) return twice((program){.device = "cpu"}, move);
  if (!strcmp(name, "dynamics_without_f64"))
    return twice((program){.device = "cpu:interpreter", .without_f64 = true}, move);
  return twice((program){.device = "cpu"}, compute);
}

/* ---- runs ---- */

/* What comes after is the sanitizers' own. */
static void spare_the_rest(void) { failing_follow(NULL); }

static void become_command(const sweep *s) {
  static const int fatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE,
                              SIGILL}; /* not cmocka's, which would go on as the test does */
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL);
  atexit(spare_the_rest);
  word_list w;
  const int argc = split_words(&w, "clebsch", s->arguments ? s->arguments : "");
  if (!freopen("out", "w", stdout) || !freopen("err", "w", stderr)) _exit(99);
  failing_follow(plan);
  exit(s->arguments ? __real_main(argc, w.argv) : library(s->name));
}

static result run(const sweep *s, long k, bool from_then_on, bool tells) {
  result o = {0};
  for (int i = 0; i < 4 && s->files[i]; i++) unlink(s->files[i]);
  *plan = (failing_plan){.k = k, .from_then_on = from_then_on, .tells = tells};
  plan->spares_loader =
      !s->arguments; /* what a failed dlopen of glibc leaves behind breaks a second one */
  fflush(NULL);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (!pid) {
    alarm(400);
    become_command(s);
  }
  o.is = end_of(pid);
  for (int i = 0; i < 4 && s->files[i]; i++) o.file[i] = get_file(s->files[i], &o.bytes[i]);
  return o;
}

/* ---- the possible results ---- */

/* Removes lines and numbers that are times. */
static void blank_times(char *text) {
  for (char *line = text; *line;) {
    char *end = line + strcspn(line, "\n"), *next = end + (*end != 0);
    const size_t n = (size_t)(end - line);
    const bool time = !strncmp(line, "time ", 5) || memmem(line, n, " ns/day", 7) ||
                      memmem(line, n, " parameters, in ", 16) || memmem(line, n, " steps, ", 8) ||
                      (n > 9 && memmem(line, n, "\"seconds", 8));
    if (memmem(line, n, "\"of_a_step\"", 11)) { /* all are times */
      char *last = strchr(line, '}');
      memmove(line, last ? last : end, strlen(last ? last : end) + 1);
    } else if (time) memmove(line, next, strlen(next) + 1);
    else line = next;
  }
}

static double rounding = 1e-12; /* of the model's type */

/* Equal but for the last digits of numbers: where memory for a whole system is not there, a model
   computes it in blocks of atoms. */
static bool same(const char *a, const char *b) {
  if (!a || !b) return a == b;
  while (*a && *b) {
    char *after_a, *after_b;
    const double x = strtod(a, &after_a), y = strtod(b, &after_b);
    const bool numbers = after_a > a && after_b > b;
    if (numbers ? fabs(x - y) > rounding * fmax(1, fabs(x)) : *a != *b) return false;
    a = numbers ? after_a : a + 1;
    b = numbers ? after_b : b + 1;
  }
  return *a == *b;
}

static bool same_file(const result *a, const result *b, int i) {
  const bool binary = a->file[i] && memchr(a->file[i], 0, a->bytes[i]);
  return binary && b->file[i]
             ? a->bytes[i] == b->bytes[i] && !memcmp(a->file[i], b->file[i], a->bytes[i])
             : same(a->file[i], b->file[i]);
}

/* Each complete line of `some` is one of `all`. */
static bool lines_of(const char *some, const char *all) {
  for (const char *end; (end = strchr(some, '\n')); some = end + 1) {
    const size_t n = (size_t)(end - some) + 1;
    const char *at = all;
    while (at && strncmp(at, some, n)) at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    if (!at && !memmem(some, n, "DID NOT RUN", 11) && !memmem(some, n, " failed\n", 8))
      return false;
  }
  return true;
}

/* NULL: all is well. */
static const char *trouble(const sweep *s, const result *o, const result *good) {
  if (o->is.status < 0) return "it was killed";
  if (o->is.status > 1) return "an exit status that is neither 0 nor 1";
  if (strstr(o->is.err, "Sanitizer")) return "a sanitizer complains";
  if (!o->is.status) {
    for (int i = 0; i < 4 && s->files[i]; i++)
      if (!same_file(o, good, i)) return "success, but another file";
    return !same(o->is.out, good->is.out) ? "success, but another output"
           : *o->is.err                   ? "success, and a complaint"
                                          : NULL;
  }
  if (!s->arguments && !same(o->file[0], good->file[0]))
    return "a second attempt that gives something else";
  if (!strncmp(s->name, "convert", 7) && o->file[0]) return "failure, but a file";
  if (strncmp(o->is.err, "clebsch: ", 9)) return "failure without a sentence";
  if (!strcasestr(o->is.err, "memory") || strstr(o->is.err, "(null)"))
    return "a sentence that does not tell why";
  return lines_of(o->is.out, good->is.out) ? NULL : "another output before the failure";
}

/* ---- sweeps ---- */

typedef struct {
  long tried, same, said, bad;
} tally;

static void try_one(const sweep *s, const result *good, long k, bool from_then_on, tally *t) {
  result o = run(s, k, from_then_on, false);
  blank_times(o.is.out);
  const char *why = trouble(s, &o, good);
  t->tried++;
  if (why) t->bad++;
  else if (o.is.status) t->said++;
  else t->same++;
  if (why && (only || t->bad <= 20)) {
    result told = run(s, k, from_then_on, true);
    fprintf(stderr, "%s %ld%s: %s (status %d): %.3000s\n", s->name, k,
            from_then_on ? " and on" : "", why, o.is.status, told.is.err);
    forget_all(&told);
  }
  if (only_k) printf("%s%s", o.is.out, o.is.err);
  forget_all(&o);
}

static void sweep_one(const sweep *s) {
  tally t[2] = {{0}};
  rounding = strcmp(s->name, "dynamics_without_f64") ? 1e-12 : 1e-6;
  result good = run(s, 0, false, false);
  if (good.is.status || *good.is.err)
    fail_msg("%s: status %d, with all memory: %s", s->name, good.is.status, good.is.err);
  forget_all(&good);
  good = run(s, 0, false, false); /* with a cache that is full */
  blank_times(good.is.out);
  const long n = plan->count,
             stride = only        ? shards
                      : n <= SOME ? 1
                                  : n / SOME,
             first = only ? shard : (long)(time(NULL) / 86400) % stride;
  for (int on = 0; on < 2; on++)
    for (long k = only_k ? only_k : first + 1; k <= (only_k ? only_k : n); k += stride)
      try_one(s, &good, k, on, &t[on]);
  printf("%s: %ld allocations", s->name, n);
  for (int on = 0; on < 2; on++)
    printf("; %ld %s: %ld same, %ld told, %ld bad", t[on].tried, on ? "and all after" : "alone",
           t[on].same, t[on].said, t[on].bad);
  printf("\n");
  forget_all(&good);
  assert_int_equal(t[0].bad + t[1].bad, 0);
}

static void sweeps_all(void **state) { sweep_one(*state); }

/* ---- schedules: if memory, whose lack they cannot report, were scarce, they would choose other
 * kernels ---- */

static void choose_without_memory(const clb_op *op, const clb_limits *limits) {
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  clb_schedule list[CLB_MAX_CANDIDATES], s;
  clb_problem p = op->problem;
  for (p.pass = 0; p.pass < kind->passes; p.pass++) {
    *plan = (failing_plan){0};
    failing_follow(plan);
    kind->schedule(&p, limits, &s);
    if (kind->candidates) kind->candidates(&p, limits, list);
    failing_follow(NULL);
    if (plan->count)
      fail_msg("%s, pass %d: %ld allocations while a schedule is chosen", kind->name, (int)p.pass,
               plan->count);
  }
}

static void schedules(void **state) {
  clb_context *ctx = NULL;
  clb_instructions found;
  clb_op *op[2];
  (void)state;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  const char *y = "0e+1o+2e+3o";
  assert_int_equal(clb_channel_wise(ctx, "64x0e+32x1o+8x2e", y, y, CLB_SORTED, &found), CLB_OK);
  const clb_tensor_product_desc product = {.irreps_x = found.irreps_x,
                                           .irreps_y = found.irreps_y,
                                           .irreps_z = found.irreps_z,
                                           .instructions = found.instructions,
                                           .n_instructions = found.n_instructions,
                                           .passes = 1};
  const clb_convolution_desc walk = {.product = product, .scale = 1};
  if (clb_tensor_product_create(ctx, &product, &op[0]) ||
      clb_convolution_create(ctx, &walk, &op[1]))
    fail_msg("%s", clb_error(ctx));
  for (int i = 0; i < 2; i++) {
    clb_limits gpu = ctx->device->limits;
    choose_without_memory(op[i], &gpu);
    gpu.simd = false, gpu.lanes[CLB_F32] = gpu.lanes[CLB_F64] = 32, gpu.max_subgroups = 8;
    choose_without_memory(op[i], &gpu);
    clb_op_destroy(&op[i]);
  }
  clb_context_destroy(&ctx);
}

static int make_files(void **state) {
  static const char *const all[][2] = {{"compare_a.json", "a.json"},
                                       {"compare_b.json", "b.json"},
                                       {"../fuzz/corpus/cif/p1", "a.cif"},
                                       {"../fuzz/corpus/lammps/full", "a.data"},
                                       {"../fuzz/corpus/poscar/selective", "POSCAR"},
                                       {"../fuzz/corpus/gz/two", "a.xyz.gz"},
                                       {"../fuzz/corpus/nqx/tiny", "tiny.nqx"},
                                       {"../fuzz/corpus/torch/tiny.pth", "tiny.pth"}};
  if (make_work(state)) return -1;
  put_text("labels.xyz", "3\nProperties=species:S:1:pos:R:3:forces:R:3 energy=-1.5 config_type=a\n"
                         "O 0 0 0 0.1 0 0.2\nH 1 0.1 0 0 -0.1 0\nH -0.2 0.9 0.1 0.3 0 0\n");
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (symlink(data_file(all[i][0]), all[i][1])) return -1;
  }
  expect_clebsch(
      "md --model model --structure atoms.xyz --device cpu --steps 1 --dt 0.1 --restart start", 0,
      NULL);
  plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return plan == MAP_FAILED ? -1 : 0;
}

int __wrap_main(int argc, char **argv) {
  struct CMUnitTest tests[SWEEPS + 1];
  size_t n = 0;
  only = argc > 1 ? argv[1] : NULL;
  if (argc > 2 && strchr(argv[2], '/'))
    assert_int_equal(sscanf(argv[2], "%ld/%ld", &shard, &shards), 2);
  else if (argc > 2) only_k = atol(argv[2]);
  for (int i = 0; i < SWEEPS; i++)
    if (!only || !strcmp(only, "whole") || !strcmp(only, sweeps[i].name))
      tests[n++] = (struct CMUnitTest){sweeps[i].name, sweeps_all, NULL, NULL, (void *)&sweeps[i]};
  if (!only || !strcmp(only, "whole") || !strcmp(only, "schedules"))
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(schedules);
  return _cmocka_run_group_tests("failing_memory", tests, n, make_files, remove_folder);
}
