/* tests/ir/test_fuzz.c - random kernels give the same results in the interpreter, on every backend
   that opens here, and after each transformation.

   test_fuzz DEVICE FIRST LAST: only that device, on the seeds FIRST ... LAST - 1. */
#include "backends/backend.h"
#include "tests/ir/random_kernel.h"
#include "tests/build_kernel.h"
#include "tests/test.h"

#include <unistd.h>

static const int group_lanes[] = {1, 2, 4, 8, 16, 32, 3, 64},
                 group_subgroups[] = {1, 1, 2, 4, 1, 3, 1};

/* Seed s is a kernel of some group; `lanes` and `subgroups` 0: any. */
static void make(random_kernel *r, int s, int lanes, int subgroups, unsigned features) {
  char error[300];
  random_kernel_make(r, (uint64_t)s, lanes ? lanes : group_lanes[s % 8],
                     subgroups ? subgroups : group_subgroups[s % 7], features);
  if (r->k.error[0]) fail_msg("seed %d: not built: %s", s, r->k.error);
  if (!ir_verify(&r->k, error, sizeof error)) fail_msg("seed %d: not valid: %s", s, error);
}

static void data_of(const random_kernel *r, void **data) {
  for (int p = 0; p < r->n; p++) {
    data[p] = random_kernel_data(r, p);
    assert_true(data[p] || r->parameter[p].type != IR_VOID);
  }
}

static void free_data(const random_kernel *r, void **data) {
  for (int p = 0; p < r->n; p++) free(data[p]);
}

static void interpret(const random_kernel *r, const ir_kernel *k, int s, void **data) {
  char error[300];
  data_of(r, data);
  if (!random_kernel_run(r, k, data, error, sizeof error))
    fail_msg("seed %d: interpreter: %s", s, error);
}

/* k must give the results of r->k. */
static void compare(const random_kernel *r, const ir_kernel *k, int s, const char *what) {
  void *expected[RANDOM_PARAMETERS], *found[RANDOM_PARAMETERS];
  char error[300];
  interpret(r, &r->k, s, expected);
  interpret(r, k, s, found);
  if (!random_kernel_agree(r, expected, found, error, sizeof error))
    fail_msg("seed %d, %s: %s", s, what, error);
  free_data(r, expected);
  free_data(r, found);
}

/* The same, to the last bit. */
static void same_bits(const random_kernel *r, const ir_kernel *k, int s) {
  void *expected[RANDOM_PARAMETERS], *found[RANDOM_PARAMETERS];
  interpret(r, &r->k, s, expected);
  interpret(r, k, s, found);
  for (int p = 0; p < r->n; p++)
    if (expected[p] && memcmp(expected[p], found[p], random_kernel_bytes(r, p)))
      fail_msg("seed %d: parameter %d has other bits", s, p);
  free_data(r, expected);
  free_data(r, found);
}

static void *bytes_of(const ir_kernel *k, size_t *size) {
  *size = ir_write(k, NULL, 0);
  void *bytes = malloc(*size);
  assert_non_null(bytes);
  assert_int_equal(ir_write(k, bytes, *size), *size);
  return bytes;
}

static void test_bytes(void **state) {
  (void)state;
  for (int s = 0; s < 200; s++) {
    random_kernel r, again;
    ir_kernel k;
    size_t size, other;
    make(&r, s, 0, 0, RANDOM_ALL);
    make(&again, s, 0, 0, RANDOM_ALL);
    void *bytes = bytes_of(&r.k, &size), *same = bytes_of(&again.k, &other);
    assert_int_equal(size, other);
    assert_memory_equal(bytes, same, size);
    assert_true(ir_read(&k, bytes, size));
    free(same);
    same = bytes_of(&k, &other);
    assert_int_equal(size, other);
    assert_memory_equal(bytes, same, size);
    compare(&r, &k, s, "read again");
    ir_free(&k);
    assert_false(ir_read(&k, bytes, size - 1));
    free(bytes);
    free(same);
    ir_free(&k);
    random_kernel_free(&r);
    random_kernel_free(&again);
  }
}

/* Damaged bytes are refused, or are a valid kernel; nothing else happens (run with sanitisers). */
static void test_damaged_bytes(void **state) {
  uint64_t seed = 1;
  int accepted = 0;
  (void)state;
  for (int s = 0; s < 25; s++) {
    random_kernel r;
    size_t size;
    make(&r, s, 0, 0, RANDOM_ALL);
    uint8_t *bytes = bytes_of(&r.k, &size), *copy = malloc(size);
    assert_non_null(copy);
    for (int round = 0; round < 400; round++) {
      memcpy(copy, bytes, size);
      for (int hits = 1 + round % 3; hits > 0; hits--) {
        size_t at = (size_t)((test_random(&seed) + 1) / 2 * (double)size);
        copy[at] = round % 2 ? (uint8_t)(copy[at] + (test_random(&seed) > 0 ? 1 : -1))
                             : (uint8_t)((test_random(&seed) + 1) * 128);
      }
      ir_kernel k;
      char error[200];
      if (ir_read(&k, copy, round % 10 == 9 ? size / 2 : size)) {
        accepted++;
        assert_true(ir_verify(&k, error, sizeof error));
        (void)ir_count(&k);
        clb_text text = {0};
        assert_true(clb_print_ir(&k, NULL, &text, error, sizeof error));
        clb_text_free(&text);
      } else {
        assert_null(k.ins);
        assert_int_equal(k.n, 0);
      }
      ir_free(&k);
    }
    free(bytes);
    free(copy);
    random_kernel_free(&r);
  }
  if (accepted < 20) fail_msg("only %d of 10000 damaged kernels were valid", accepted);
}

static int count_op(const ir_kernel *k, ir_op op) {
  int n = 0;
  for (int32_t v = 0; v < k->n; v++) n += k->ins[v].op == op;
  return n;
}

static void test_lowered_shuffles(void **state) {
  int shuffles = 0;
  (void)state;
  for (int s = 0; s < 300; s++) {
    random_kernel r;
    ir_kernel k;
    char error[300];
    make(&r, s, 0, 1, RANDOM_ALL);
    if (!clb_lower_shuffles(&r.k, &k)) fail_msg("seed %d: %s", s, k.error);
    if (!ir_verify(&k, error, sizeof error)) fail_msg("seed %d: lowered: %s", s, error);
    int crossings = 0;
    for (int op = IR_SHUFFLE; op <= IR_REDUCE_ADD; op++) {
      crossings += count_op(&r.k, (ir_op)op);
      assert_int_equal(count_op(&k, (ir_op)op), 0);
    }
    /* Barriers before the values are read and before the next ones are written; those that order
       nothing are dropped. */
    assert_in_range(count_op(&k, IR_BARRIER), 0, count_op(&r.k, IR_BARRIER) + 2 * crossings);
    shuffles += crossings;
    compare(&r, &k, s, "lowered");
    ir_free(&k);
    random_kernel_free(&r);
  }
  assert_true(shuffles > 300);
}

/* Barriers that order nothing are dropped from random kernels, lowered or not: the result is valid,
   gives the same bits, and has no such barrier. */
static void test_idle_barriers(void **state) {
  enum { SEEDS = 300 };
  int gone = 0, left = 0;
  (void)state;
  for (int s = 0; s < SEEDS; s++) {
    random_kernel r;
    ir_kernel k;
    char error[300];
    size_t once, twice;
    make(&r, s, 0, s % 2, RANDOM_ALL);
    void *bytes = bytes_of(&r.k, &once);
    assert_true(s % 2 ? clb_lower_shuffles(&r.k, &k) : ir_read(&k, bytes, once));
    free(bytes);
    const int before = count_op(&k, IR_BARRIER);
    assert_true(ir_drop_barriers(&k));
    if (!ir_verify(&k, error, sizeof error)) fail_msg("seed %d: %s", s, error);
    same_bits(&r, &k, s);
    left += count_op(&k, IR_BARRIER);
    gone += before - count_op(&k, IR_BARRIER);
    bytes = bytes_of(&k, &once);
    assert_true(ir_drop_barriers(&k));
    void *again = bytes_of(&k, &twice);
    if (once != twice || memcmp(bytes, again, once))
      fail_msg("seed %d: more barriers go the second time", s);
    free(bytes);
    free(again);
    ir_free(&k);
    random_kernel_free(&r);
  }
  if (gone < SEEDS / 2 || left < SEEDS / 2)
    fail_msg("only %d barriers went, %d stayed", gone, left);
}

/* The generator must make everything that the language has. */
static void test_every_op_is_generated(void **state) {
  bool seen[IR_OP_COUNT] = {false};
  (void)state;
  for (int s = 0; s < 200; s++) {
    random_kernel r;
    make(&r, s, 0, 0, RANDOM_ALL);
    for (int32_t v = 0; v < r.k.n; v++) seen[r.k.ins[v].op] = true;
    random_kernel_free(&r);
  }
  for (int op = 0; op < IR_OP_COUNT; op++)
    if (!seen[op]) fail_msg("no random kernel has %s", ir_op_name((ir_op)op));
}

/* ---- SPIR-V ---- */

static void test_spirv_is_valid(void **state) {
  char path[] = P_tmpdir "/clb_fuzz_XXXXXX", command[200];
  (void)state;
  if (system("spirv-val --version > /dev/null 2>&1")) skip_because("spirv-val is not installed");
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  snprintf(command, sizeof command, "spirv-val --target-env spv1.2 %s", path);
  for (int s = 0; s < 30; s++) {
    random_kernel r;
    clb_text words = {0};
    clb_dialect dialect = {
        .language = CLB_LANGUAGE_SPIRV, .subgroups = true, .float_atomics = s % 2};
    char error[300];
    make(&r, s, 8 << s % 3, 0, RANDOM_ALL);
    if (!clb_print(&r.k, &dialect, &words, error, sizeof error)) fail_msg("seed %d: %s", s, error);
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(words.s, 1, words.n, f) == words.n && !fclose(f));
    if (system(command)) fail_msg("seed %d: spirv-val refuses it", s);
    clb_text_free(&words);
    random_kernel_free(&r);
  }
  remove(path);
}

/* ---- backends ---- */

static void check(clb_status status, const clb_error_sink *sink, int s, const char *call) {
  if (status) fail_msg("seed %d: %s: %s", s, call, sink->text.s ? sink->text.s : "?");
}

/* Builds, loads, launches r->k on the device and leaves its data in found[]. */
static void run_on(clb_device *d, const clb_error_sink *sink, const random_kernel *r, int s,
                   void **found) {
  const clb_backend *b = d->backend;
  clb_memory memory[RANDOM_PARAMETERS] = {{0}};
  clb_arg arg[RANDOM_PARAMETERS];
  clb_text binary = {0};
  clb_module *module;
  data_of(r, found);
  check(build_kernel(d, &r->k, &binary), sink, s, "build");
  check(b->load(d, &r->k, binary.s, binary.n, &module), sink, s, "load");
  for (int p = 0; p < r->n; p++) {
    const random_parameter *q = &r->parameter[p];
    arg[p].type = q->type;
    if (q->type != IR_VOID) {
      memcpy(&arg[p].i64, &q->scalar, sizeof q->scalar);
      continue;
    }
    check(b->alloc(d, random_kernel_bytes(r, p), &memory[p]), sink, s, "alloc");
    check(b->write(d, &memory[p], 0, found[p], random_kernel_bytes(r, p)), sink, s, "write");
    arg[p].memory = &memory[p];
  }
  check(b->launch(d, module, r->groups, arg, r->n), sink, s, "launch");
  check(b->wait(d), sink, s, "wait");
  for (int p = 0; p < r->n; p++) {
    if (!found[p]) continue;
    check(b->read(d, &memory[p], 0, found[p], random_kernel_bytes(r, p)), sink, s, "read");
    b->free(d, &memory[p]);
  }
  b->unload(d, module);
  clb_text_free(&binary);
}

/* Lanes that the device runs as a sub-group; 0: any. */
static int lanes_of(const clb_device *d, int s) {
  int n = 0;
  if (!d->limits.subgroups || d->limits.simd) return 4 << s % 3;
  while (n < 8 && d->info.sub_group_sizes[n]) n++;
  return n ? d->info.sub_group_sizes[s % n] : d->limits.lanes[s % 2];
}

static void agree_on(const char *name, int first, int last) {
  clb_error_sink sink = {0};
  clb_device *d = NULL;
  if (clb_device_open(name, NULL, &sink, &d)) {
    char why[200];
    snprintf(why, sizeof why, "%s", sink.text.s ? sink.text.s : "?");
    clb_text_free(&sink.text);
    skip_because("%s does not open: %s", name, why);
  }
  /* PoCL 3.1 loses the stores in an if that follows a barrier in another if of a loop. */
  unsigned features =
      RANDOM_ALL & ~(d->limits.f64 ? 0u : RANDOM_F64) & ~(d->limits.subgroups ? 0u : RANDOM_IFS);
  for (int s = first; s < last; s++) {
    random_kernel r;
    void *expected[RANDOM_PARAMETERS], *found[RANDOM_PARAMETERS];
    char error[300];
    /* Without sub-groups: several sub-groups only where nothing shuffles. */
    bool several = d->limits.subgroups || s % 2;
    int max = several ? d->limits.max_subgroups : 1, subgroups = group_subgroups[s % 7];
    make(&r, s, lanes_of(d, s), subgroups < max ? subgroups : max,
         d->limits.subgroups || !several ? features : features & ~(unsigned)RANDOM_SHUFFLES);
    interpret(&r, &r.k, s, expected);
    run_on(d, &sink, &r, s, found);
    if (!random_kernel_agree(&r, expected, found, error, sizeof error))
      fail_msg("seed %d on %s: %s", s, d->info.name, error);
    free_data(&r, expected);
    free_data(&r, found);
    random_kernel_free(&r);
  }
  d->backend->close(d);
  clb_text_free(&sink.text);
}

static void test_cpu(void **state) {
  (void)state;
  agree_on("cpu", 0, 12);
}
static void test_cpu_interpreter(void **state) {
  (void)state;
  agree_on("cpu:interpreter", 0, 12);
}
static void test_opencl(void **state) {
  (void)state;
  agree_on("opencl", 0, 13);
}

static char **chosen;
static void test_chosen(void **state) {
  (void)state;
  agree_on(chosen[1], atoi(chosen[2]), atoi(chosen[3]));
}

int main(int n, char **argument) {
  const struct CMUnitTest one[] = {cmocka_unit_test(test_chosen)};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_op_is_generated),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_damaged_bytes),
      cmocka_unit_test(test_lowered_shuffles),
      cmocka_unit_test(test_idle_barriers),
      cmocka_unit_test(test_spirv_is_valid),
      cmocka_unit_test(test_cpu),
      cmocka_unit_test(test_cpu_interpreter),
      cmocka_unit_test(test_opencl),
  };
  chosen = argument;
  return n == 4 ? cmocka_run_group_tests(one, NULL, NULL)
                : cmocka_run_group_tests(tests, NULL, NULL);
}
