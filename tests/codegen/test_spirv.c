/* tests/codegen/test_spirv.c - SPIR-V words: spirv-val and Intel's compiler accept them, and two
   drivers that run them get the interpreter's numbers. */
#include <math.h>
#include <unistd.h>

#include "kernels/kernel.h"
#include "src/codegen/codegen.h"
#include "tests/backends/opencl_runner.h"
#include "tests/ir/random_kernel.h"
#include "tests/codegen/spirv_cases.h"
#include "tests/test.h"

enum { ELEMENTS = 20000, MAX_PARAMETERS = 16 };

__extension__ typedef _Float16 f16;

static void build(const test_case *c, int lanes, int subgroups, ir_kernel *k) {
  char error[300];
  builder b = start(k, c->name, lanes, subgroups);
  c->build(&b);
  if (!ir_finish(k)) fail_msg("%s: %s", c->name, k->error);
  if (!ir_verify(k, error, sizeof error)) fail_msg("%s: %s", c->name, error);
}

static void print(const ir_kernel *k, bool subgroups, bool float_atomics, clb_text *words) {
  char error[300] = "";
  clb_dialect dialect = {.language = CLB_LANGUAGE_SPIRV,
                         .subgroups = subgroups,
                         .subgroup_blocks = subgroups,
                         .float_atomics = float_atomics};
  if (!clb_print_spirv(k, &dialect, words, error, sizeof error)) fail_msg("%s: %s", k->name, error);
}

/* ---- arguments ---- */

typedef struct {
  int n;
  ir_type type[MAX_PARAMETERS]; /* of the elements or of the scalar */
  runner_argument arg[MAX_PARAMETERS];
} arguments;

static void set_number(void *at, ir_type t, double x) {
  float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  static const uint32_t full_nan = 0x7fffffff; /* rounding up its upper half would overflow */
  if (isnan(f)) memcpy(&f, &full_nan, sizeof f);
  uint16_t brain = (uint16_t)(bits >> 16);
  f16 half = (f16)f;
  int32_t i = (int32_t)fmin(fmax(fabs(x) * 20, 0), 60);
  int64_t l = i;
  const void *from[] = {[IR_I32] = &i, [IR_I64] = &l,    [IR_F32] = &f,
                        [IR_F64] = &x, [IR_F16] = &half, [IR_BF16] = &brain};
  memcpy(at, from[t], (size_t)ir_type_bytes(t));
}

static void fill(const ir_kernel *k, bool special, arguments *a) {
  /* among them halfway between two numbers of bf16 and of f16, and next to their largest and
     smallest */
  static const double odd[] = {NAN,      INFINITY, -INFINITY, 0,        -0.0,
                               1e30,     -1e-30,   65519,     65520,    0x1.ffp-15,
                               0x1.01p3, 0x1.03p3, 0x1.002p3, 0x1.006p3};
  enum { ODD = sizeof odd / sizeof *odd };
  uint64_t seed = 1;
  a->n = 0;
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    if (i->op != IR_BUFFER && i->op != IR_SCALAR) continue;
    size_t count = i->op == IR_BUFFER ? ELEMENTS : 1;
    ir_type t = a->type[a->n] = (ir_type)(i->op == IR_BUFFER ? i->element : i->type);
    runner_argument *to = &a->arg[a->n++];
    *to = (runner_argument){calloc(count, (size_t)ir_type_bytes(t)),
                            count * (size_t)ir_type_bytes(t), i->op == IR_BUFFER};
    assert_non_null(to->data);
    for (size_t j = 0; j < count; j++) {
      double x = 3 * test_random(&seed), pick = 10 * (test_random(&seed) + 1);
      if (i->op == IR_BUFFER && i->imm) x = (double)(j % 5); /* is added to, or must stay */
      else if (special && pick < 4) x = odd[(int)(pick / 4 * ODD)];
      set_number((char *)to->data + j * (size_t)ir_type_bytes(t), t, x);
    }
  }
}

static void drop(arguments *a) {
  for (int i = 0; i < a->n; i++) free(a->arg[i].data);
}

static void interpret(const ir_kernel *k, arguments *a) {
  char error[300] = "";
  ir_arg arg[MAX_PARAMETERS] = {{0}};
  for (int i = 0; i < a->n; i++) {
    if (a->arg[i].is_buffer) arg[i].p = a->arg[i].data;
    else memcpy(&arg[i], a->arg[i].data, a->arg[i].bytes);
  }
  if (!ir_run(k, arg, NULL, 0, GROUPS, error, sizeof error)) fail_msg("%s: %s", k->name, error);
}

static double number(const void *at, ir_type t) {
  float f;
  double d;
  f16 half;
  uint16_t u;
  if (t == IR_F64) return memcpy(&d, at, sizeof d), d;
  if (t == IR_F32) return memcpy(&f, at, sizeof f), (double)f;
  if (t == IR_F16) return memcpy(&half, at, sizeof half), (double)half;
  memcpy(&u, at, sizeof u);
  uint32_t bits = (uint32_t)u << 16;
  return memcpy(&f, &bits, sizeof f), (double)f;
}

static bool near(const void *x, const void *y, ir_type t, double ulp) {
  if (!memcmp(x, y, (size_t)ir_type_bytes(t))) return true;
  if (ir_is_int(t)) return false;
  double a = number(x, t), b = number(y, t), eps = t == IR_F64 ? 0x1p-52 : 0x1p-23;
  if (isnan(a) && isnan(b)) return true;
  if (fabs(a) < 0x1p-126 && fabs(b) < 0x1p-126)
    return true; /* subnormals may be flushed; the sign of zero is free in MIN and MAX */
  return fabs(a - b) <= ulp * eps * fabs(b);
}

static void compare(const ir_kernel *k, const char *where, const arguments *got,
                    const arguments *wanted, double ulp) {
  for (int i = 0; i < got->n; i++) {
    size_t size = (size_t)ir_type_bytes(got->type[i]);
    for (size_t j = 0; j < got->arg[i].bytes / size; j++) {
      const char *x = (char *)got->arg[i].data + j * size,
                 *y = (char *)wanted->arg[i].data + j * size;
      if (near(x, y, got->type[i], ulp)) continue;
      uint64_t bits[2] = {0, 0};
      memcpy(&bits[0], x, size);
      memcpy(&bits[1], y, size);
      fail_msg("%s %s, %d x %d lanes: argument %d [%zu] (row %zu, column %zu): %#llx, wanted %#llx",
               where, k->name, (int)k->subgroups, (int)k->lanes, i, j, j / WIDTH, j % WIDTH,
               (unsigned long long)bits[0], (unsigned long long)bits[1]);
    }
  }
}

/* ---- tools ---- */

static bool has_tool(const char *name) {
  char command[200];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
  return system(command) == 0;
}

static char folder[64];

static void write_file(const char *name, const char *bytes, size_t n) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static char *read_file(const char *name, size_t *n) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  char *bytes = malloc(1 << 20);
  assert_non_null(f);
  assert_non_null(bytes);
  *n = fread(bytes, 1, 1 << 20, f);
  fclose(f);
  return bytes;
}

/* Runs a command in the folder; its output is shown only on failure. */
static void command(const char *what, const char *line) {
  char all[600];
  snprintf(all, sizeof all, "cd %s && { %s; } >log 2>&1 || { cat log >&2; exit 1; }", folder, line);
  if (system(all) != 0) fail_msg("%s: '%s' failed", what, line);
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/clebsch_spirv_XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char line[100];
  snprintf(line, sizeof line, "rm -r %s", folder);
  return system(line);
}

/* ---- tests ---- */

static void words_are_valid(void **state) {
  (void)state;
  if (!has_tool("spirv-val")) skip_because("spirv-val is not installed");
  for (int c = 0; c < CASES; c++)
    for (int dialect = 0; dialect < 4; dialect++) {
      bool subgroups = dialect & 1, float_atomics = dialect & 2;
      if (cases[c].shuffles && !subgroups) continue;
      ir_kernel k;
      clb_text words = {0};
      build(&cases[c], 16, 1 + (c & 1), &k);
      print(&k, subgroups, float_atomics, &words);
      write_file("k.spv", words.s, words.n);
      command(cases[c].name, "spirv-val --target-env spv1.2 k.spv");
      clb_text_free(&words);
      ir_free(&k);
    }
}

static void intel_gpu_compiler_accepts(void **state) {
  (void)state;
  if (!has_tool("ocloc")) skip_because("ocloc is not installed");
  for (int c = 0; c < CASES; c++) {
    ir_kernel k;
    clb_text words = {0};
    build(&cases[c], c & 1 ? 32 : 16, 2, &k);
    print(&k, true, c & 1, &words);
    write_file("k.spv", words.s, words.n);
    command(cases[c].name, "env -u LD_LIBRARY_PATH ocloc compile -spirv_input -file k.spv -device "
                           "pvc -options '-cl-fp32-correctly-rounded-divide-sqrt'");
    clb_text_free(&words);
    ir_free(&k);
  }
}

/* is_il: for a consumer of SPIR-V with sub-groups; else through LLVM's own form, without. */
static void words_for(const ir_kernel *k, bool is_il, bool float_atomics, clb_text *words) {
  print(k, is_il, float_atomics, words);
  if (is_il) return;
  write_file("k.spv", words->s, words->n);
  clb_text_free(words);
  command(k->name, "llvm-spirv-15 -r k.spv -o k.bc");
  words->s = read_file("k.bc", &words->n);
}

static void run_case(const test_case *c, opencl_runner *r, const char *where, bool is_il, int lanes,
                     int subgroups, bool float_atomics) {
  ir_kernel k, lowered;
  clb_text words = {0};
  arguments got, wanted;
  char log[4000];
  bool lower = c->shuffles && !is_il;
  build(c, lanes, subgroups, &k);
  if (lower && !clb_lower_shuffles(&k, &lowered)) fail_msg("%s: %s", c->name, lowered.error);
  words_for(lower ? &lowered : &k, is_il, float_atomics, &words);
  fill(&k, c->special, &got);
  fill(&k, c->special, &wanted);
  interpret(&k, &wanted);
  if (!runner_run(r, is_il, words.s, words.n, c->name, GROUPS, (size_t)(lanes * subgroups), got.arg,
                  got.n, log, sizeof log))
    fail_msg("%s %s: %s", where, c->name, log);
  compare(&k, where, &got, &wanted, c->ulp);
  drop(&got);
  drop(&wanted);
  clb_text_free(&words);
  if (lower) ir_free(&lowered);
  ir_free(&k);
}

static void pocl_runs_them(void **state) {
  (void)state;
  opencl_runner r;
  if (!has_tool("llvm-spirv-15")) skip_because("llvm-spirv-15 is not installed");
  if (!runner_open(&r, "Portable Computing Language", "")) skip_because("PoCL is not installed");
  for (int c = 0; c < CASES; c++)
    run_case(&cases[c], &r, "PoCL", false, 8, cases[c].shuffles ? 1 : 1 + (c & 1), false);
  runner_close(&r);
}

static void intel_cpu_runs_them(void **state) {
  (void)state;
  opencl_runner r;
  if (!runner_open(&r, "Intel(R) OpenCL", ""))
    skip_because("Intel's OpenCL driver for CPUs is not installed");
  for (int c = 0; c < CASES; c++)
    for (int size = 0; size < 3; size++)
      if (cases[c].crosses || size == c % 3)
        run_case(&cases[c], &r, "Intel CPU", true, 8 << size, cases[c].crosses ? 2 : 1 + c % 2,
                 size & 1);
  runner_close(&r);
}

/* ---- random kernels ---- */

enum { RANDOM_KERNELS = 16 };

static void take_data(const random_kernel *r, void **data, runner_argument *arg) {
  for (int i = 0; i < r->n; i++) {
    data[i] = random_kernel_data(r, i);
    bool buffer = r->parameter[i].type == IR_VOID;
    if (buffer) arg[i] = (runner_argument){data[i], random_kernel_bytes(r, i), true};
    else
      arg[i] = (runner_argument){(void *)&r->parameter[i].scalar,
                                 (size_t)ir_type_bytes(r->parameter[i].type), false};
  }
}

static void drop_data(const random_kernel *r, void **data) {
  for (int i = 0; i < r->n; i++) free(data[i]);
}

static void run_random(uint64_t seed, opencl_runner *r, const char *where, bool is_il, int lanes,
                       int subgroups) {
  random_kernel random;
  ir_kernel lowered;
  clb_text words = {0};
  void *wanted[RANDOM_PARAMETERS], *got[RANDOM_PARAMETERS];
  runner_argument arg[RANDOM_PARAMETERS];
  char log[4000];
  bool lower = !is_il && subgroups == 1;
  random_kernel_make(&random, seed, lanes, subgroups,
                     lower || is_il ? RANDOM_ALL : RANDOM_ALL & ~RANDOM_SHUFFLES);
  if (random.k.error[0]) fail_msg("seed %d: %s", (int)seed, random.k.error);
  if (lower && !clb_lower_shuffles(&random.k, &lowered))
    fail_msg("seed %d: %s", (int)seed, lowered.error);
  words_for(lower ? &lowered : &random.k, is_il, seed & 1, &words);
  take_data(&random, wanted, arg);
  if (!random_kernel_run(&random, &random.k, wanted, log, sizeof log))
    fail_msg("seed %d: %s", (int)seed, log);
  take_data(&random, got, arg);
  if (!runner_run(r, is_il, words.s, words.n, random.k.name, (size_t)random.groups,
                  (size_t)(lanes * subgroups), arg, random.n, log, sizeof log))
    fail_msg("%s, seed %d: %s", where, (int)seed, log);
  if (!random_kernel_agree(&random, wanted, got, log, sizeof log))
    fail_msg("%s, seed %d, %d x %d lanes: %s", where, (int)seed, subgroups, lanes, log);
  drop_data(&random, wanted);
  drop_data(&random, got);
  clb_text_free(&words);
  if (lower) ir_free(&lowered);
  random_kernel_free(&random);
}

static void pocl_runs_random_kernels(void **state) {
  (void)state;
  opencl_runner r;
  if (!has_tool("llvm-spirv-15")) skip_because("llvm-spirv-15 is not installed");
  if (!runner_open(&r, "Portable Computing Language", "")) skip_because("PoCL is not installed");
  for (uint64_t seed = 0; seed < RANDOM_KERNELS / 4; seed++)
    run_random(seed, &r, "PoCL", false, 4 << seed % 3, seed & 1 ? 2 : 1);
  runner_close(&r);
}

static void intel_cpu_runs_random_kernels(void **state) {
  (void)state;
  opencl_runner r;
  if (!runner_open(&r, "Intel(R) OpenCL", ""))
    skip_because("Intel's OpenCL driver for CPUs is not installed");
  for (uint64_t seed = 0; seed < RANDOM_KERNELS; seed++)
    run_random(seed, &r, "Intel CPU", true, 8 << seed % 3, 1 + (int)(seed / 3 % 3));
  runner_close(&r);
}

static void random_words_are_valid(void **state) {
  (void)state;
  if (!has_tool("spirv-val")) skip_because("spirv-val is not installed");
  for (uint64_t seed = 0; seed < RANDOM_KERNELS; seed++) {
    random_kernel random;
    clb_text words = {0};
    char what[40];
    random_kernel_make(&random, seed, 16, 2, RANDOM_ALL);
    print(&random.k, true, seed & 1, &words);
    write_file("k.spv", words.s, words.n);
    snprintf(what, sizeof what, "random kernel of seed %d", (int)seed);
    command(what, "spirv-val --target-env spv1.2 k.spv");
    if (seed % 8 == 0 && has_tool("ocloc"))
      command(what, "env -u LD_LIBRARY_PATH ocloc compile -spirv_input -file k.spv -device pvc");
    clb_text_free(&words);
    random_kernel_free(&random);
  }
}

/* ---- the kernels of ops ---- */

/* The passes of spherical harmonics up to l = 4, as a GPU with these sub-groups would run them:
   through local memory. */
static void lower(int pass, clb_dtype storage, int normalize, int lanes, ir_kernel *k) {
  clb_problem problem;
  clb_limits limits = {.lanes = {lanes, lanes},
                       .max_subgroups = 8,
                       .local_bytes = 65536,
                       .registers = 128,
                       .units = 64,
                       .subgroups = true,
                       .f64 = true};
  clb_schedule schedule;
  char error[300];
  memset(&problem, 0, sizeof problem);
  problem.pass = pass;
  problem.storage = (int32_t)storage;
  problem.arithmetic = storage == CLB_F64 ? CLB_F64 : CLB_F32;
  problem.spherical_harmonics = (clb_spherical_harmonics_problem){
      .n_degrees = 5, .normalize = normalize, .degrees = {0, 1, 2, 3, 4}};
  clb_kernel_kinds[CLB_SPHERICAL_HARMONICS]->schedule(&problem, &limits, &schedule);
  clb_kernel_kinds[CLB_SPHERICAL_HARMONICS]->lower(&problem, &schedule, k);
  if (!ir_verify(k, error, sizeof error)) fail_msg("%s: %s", k->name, error);
}

/* n rows, back to back. */
static void fill_rows(const ir_kernel *k, int pass, int64_t n, arguments *a) {
  static const int64_t columns[3][5] = {{3, 25}, {3, 25, 3}, {3, 25, 3, 3, 25}};
  fill(k, false, a);
  memcpy(a->arg[0].data, &n, sizeof n);
  for (int i = 1; i < a->n; i += 3) {
    memset(a->arg[i + 1].data, 0, sizeof n);
    memcpy(a->arg[i + 2].data, &columns[pass][i / 3], sizeof n);
  }
}

static void run_rows(opencl_runner *r, int pass, clb_dtype storage, int normalize, int lanes) {
  ir_kernel k;
  clb_text words = {0};
  arguments got, wanted;
  char log[4000];
  lower(pass, storage, normalize, lanes, &k);
  int64_t n = 2 * k.rows + 5;
  print(&k, true, false, &words);
  fill_rows(&k, pass, n, &got);
  fill_rows(&k, pass, n, &wanted);
  interpret(&k, &wanted);
  if (!runner_run(r, true, words.s, words.n, k.name, GROUPS, (size_t)(k.lanes * k.subgroups),
                  got.arg, got.n, log, sizeof log))
    fail_msg("%s: %s", k.name, log);
  compare(&k, "Intel CPU", &got, &wanted, 0);
  drop(&got);
  drop(&wanted);
  clb_text_free(&words);
  ir_free(&k);
}

static void intel_cpu_runs_spherical_harmonics(void **state) {
  (void)state;
  opencl_runner r;
  if (!runner_open(&r, "Intel(R) OpenCL", ""))
    skip_because("Intel's OpenCL driver for CPUs is not installed");
  run_rows(&r, CLB_FORWARD, CLB_F32, 0, 16);
  run_rows(&r, CLB_BACKWARD, CLB_F16, 1, 8);
  run_rows(&r, CLB_DOUBLE_BACKWARD, CLB_F32, 1, 32);
  runner_close(&r);
}

/* ---- words ---- */

/* The scope of the only OpControlBarrier. */
static uint32_t barrier_scope(const clb_text *words) {
  uint32_t word[3], id = 0, scope = 0;
  for (int round = 0; round < 2; round++)
    for (size_t at = 20; at < words->n; at += 4 * (size_t)(word[0] >> 16)) {
      memcpy(word, words->s + at, sizeof word);
      if ((word[0] & 0xffff) == 224) id = word[1]; /* OpControlBarrier scope ... */
      if ((word[0] & 0xffff) == 43 && word[2] == id)
        memcpy(&scope, words->s + at + 12, sizeof scope); /* OpConstant type id value */
    }
  return scope;
}

/* A barrier of one sub-group is used only where the device has sub-groups. */
static void barriers_have_their_scope(void **state) {
  (void)state;
  for (int group = 0; group < 2; group++)
    for (int subgroups = 0; subgroups < 2; subgroups++) {
      ir_kernel k;
      clb_text words = {0};
      ir_begin(&k, "barriers", 16, 2, 32);
      ir_barrier(&k, group);
      assert_true(ir_finish(&k));
      print(&k, subgroups, false, &words);
      assert_int_equal(barrier_scope(&words), subgroups && !group ? 3 : 2);
      clb_text_free(&words);
      ir_free(&k);
    }
}

static bool has_execution_mode(const clb_text *words, uint32_t mode) {
  uint32_t word[3];
  for (size_t at = 20; at < words->n; at += 4 * (size_t)(word[0] >> 16)) {
    memcpy(word, words->s + at, sizeof word);
    if ((word[0] & 0xffff) == 16 && word[2] == mode) return true;
  }
  return false;
}

/* Nothing is contracted; the sub-group size is required where there are sub-groups. */
static void modes_are_set(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    ir_kernel k;
    clb_text words = {0};
    bool subgroups = cases[c].shuffles || (c & 1);
    build(&cases[c], 16, 1, &k);
    print(&k, subgroups, false, &words);
    assert_true(has_execution_mode(&words, 31));
    assert_int_equal(has_execution_mode(&words, 35), subgroups);
    clb_text_free(&words);
    ir_free(&k);
  }
}

static int count_words(const clb_text *words, uint32_t opcode) {
  int n = 0;
  for (size_t at = 20; at < words->n;) {
    uint32_t word;
    memcpy(&word, words->s + at, sizeof word);
    n += (word & 0xffff) == opcode;
    at += 4 * (size_t)(word >> 16);
  }
  return n;
}

/* The block reads in a kernel that loads each lane's element `apart` from its neighbours'. */
static int blocks(bool subgroups, ir_type element, bool local, int apart, int width, bool masked) {
  ir_kernel k;
  clb_text words = {0};
  ir_val values[4];
  ir_begin(&k, "blocks", 16, 1, 16);
  ir_val from = ir_buffer(&k, element, false), to = ir_buffer(&k, IR_F64, true), lane = ir_lane(&k),
         i = ir_mul(&k, lane, ir_int(&k, IR_I32, apart));
  if (local) {
    from = ir_local(&k, element, 64);
    ir_store(&k, from, lane, IR_NONE, ir_real(&k, ir_register_type(element), 0));
  }
  ir_load_wide(&k, from, i, masked ? ir_2(&k, IR_LT, lane, ir_int(&k, IR_I32, 3)) : IR_NONE, width,
               values);
  ir_store(&k, to, lane, IR_NONE, ir_cast(&k, IR_F64, values[0]));
  if (!ir_finish(&k)) fail_msg("%s", k.error);
  print(&k, subgroups, false, &words);
  int n = count_words(&words, 5575 /* OpSubgroupBlockReadINTEL */);
  clb_text_free(&words);
  ir_free(&k);
  return n;
}

/* A sub-group reads a block where all lanes read, and adjacent elements of at least 4 bytes. */
static void blocks_are_read(void **state) {
  (void)state;
  assert_int_equal(blocks(true, IR_F32, false, 1, 1, false), 1);
  assert_int_equal(blocks(true, IR_F64, false, 1, 1, false), 1);
  assert_int_equal(blocks(true, IR_I32, false, 1, 1, false), 1);
  assert_int_equal(blocks(false, IR_F32, false, 1, 1, false), 0);
  assert_int_equal(blocks(true, IR_F16, false, 1, 1, false), 0);
  assert_int_equal(blocks(true, IR_BF16, false, 1, 1, false), 0);
  assert_int_equal(blocks(true, IR_F32, true, 1, 1, false), 0);
  assert_int_equal(blocks(true, IR_F32, false, 2, 1, false), 0);
  assert_int_equal(blocks(true, IR_F32, false, 1, 2, false), 0);
  assert_int_equal(blocks(true, IR_F32, false, 1, 1, true), 0);
}

/* What cannot be expressed is refused with a message. */
static void refusals(void **state) {
  (void)state;
  ir_kernel k;
  clb_text words = {0};
  char error[300] = "";
  clb_dialect dialect = {.language = CLB_LANGUAGE_SPIRV};
  build(&cases[CASES - 1], 16, 1, &k);
  assert_false(clb_print_spirv(&k, &dialect, &words, error, sizeof error));
  assert_non_null(strstr(error, "lower its shuffles"));
  assert_int_equal(words.n, 0);
  ir_free(&k);
  ir_begin(&k, "many", 16, 1, 16);
  for (int i = 0; i < 129; i++) ir_scalar(&k, IR_I32);
  assert_true(ir_finish(&k));
  assert_false(clb_print_spirv(&k, &dialect, &words, error, sizeof error));
  assert_non_null(strstr(error, "128 parameters"));
  ir_free(&k);
  clb_text_free(&words);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_valid),
                                     cmocka_unit_test(intel_gpu_compiler_accepts),
                                     cmocka_unit_test(pocl_runs_them),
                                     cmocka_unit_test(intel_cpu_runs_them),
                                     cmocka_unit_test(random_words_are_valid),
                                     cmocka_unit_test(pocl_runs_random_kernels),
                                     cmocka_unit_test(intel_cpu_runs_random_kernels),
                                     cmocka_unit_test(intel_cpu_runs_spherical_harmonics),
                                     cmocka_unit_test(barriers_have_their_scope),
                                     cmocka_unit_test(modes_are_set),
                                     cmocka_unit_test(blocks_are_read),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
