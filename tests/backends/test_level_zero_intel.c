/* tests/backends/test_level_zero_intel.c - the Level Zero backend with Intel's own software and no
   GPU: the driver as a Max GPU, the offline compiler. */
#include "backends/level_zero/level_zero.h"
#include "src/runtime/context.h"
#include "tests/runtime/again.h"
#include "tests/backends/opencl_cases.h"

static const clb_backend *const level_zero = &clb_backend_level_zero;

static void expect_status_0(char *out, const char *words) {
  if (!strstr(out, "status 0") || !strstr(out, words)) fail_msg("%s", out);
  free(out);
}

/* ---- Intel's driver ---- */

/* Closed lists among launches: submitted, submitted again while they may be running, made anew on
   other memory. */
static int record_on_max(const char *name) {
  static const int degrees[] = {2};
  clb_context *ctx;
  clb_op *op = NULL;
  clb_buffer *b[3] = {NULL};
  clb_recording *r = NULL;
  bool whole = false;
  clb_status s = clb_context_create(name, &ctx);
  const clb_spherical_harmonics_desc desc = {
      .degrees = degrees, .n_degrees = 1, .storage = CLB_F32, .arithmetic = CLB_F32, .passes = 1};
  if (!s) s = clb_spherical_harmonics_create(ctx, &desc, &op);
  for (int i = 0; i < 3 && !s; i++) s = clb_buffer_create(ctx, 100 * 20, &b[i]);
  for (int turn = 0; turn < 3 && !s; turn++) {
    const clb_rows x = {b[turn], 0, CLB_DENSE, NULL}, y = {b[1], 0, CLB_DENSE, NULL};
    if (!turn) s = clb_record_begin(ctx);
    for (int i = 0; i < 20 && !s && !turn; i++)
      s = clb_spherical_harmonics_forward(op, 100 - i, x, y);
    if (!s && !turn) s = clb_record_end(ctx, &r);
    if (!s && !turn) whole = ((lz_device *)ctx->device)->queue;
    if (!s && turn == 1) s = clb_recording_replace(r, b[0], b[2]);
    for (int i = 0; i < 40 && !s; i++) s = clb_replay(r);
    if (!s) s = clb_spherical_harmonics_forward(op, 100, x, y);
    if (!s) s = clb_replay(r);
    if (!s) s = clb_wait(ctx);
  }
  if (s || !whole) printf("%s: %s\n", whole ? "a list" : "no list", clb_error(ctx));
  clb_recording_destroy(&r);
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&b[i]);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  return s || !whole;
}

/* Builds, launches and waits; nothing is computed. Prints what goes wrong. */
static int run_on_max(const char *name) {
  clb_error_sink error = {0};
  clb_device *d;
  if (level_zero->open(name, name + strlen("level_zero"), NULL, &error, &d))
    return printf("no such device: %s\n", error.text.s), 1;
  (void)case_expect; /* nothing was computed */
  int bad = strcmp(d->info.name, name) || d->limits.lanes[CLB_F32] != 16 ||
            d->limits.local_bytes < 65536 || !d->info.f64 || !d->info.memory_bytes;
  for (int i = 0; i < 2 * CASES && !bad; i++) {
    kernel_case c;
    void *arrays[CASE_PARAMETERS] = {NULL};
    clb_text binary = {0};
    clb_report report = clb_report_unknown();
    d->limits.lanes[CLB_F32] = d->limits.lanes[CLB_F64] = i < CASES ? 16 : 32;
    case_begin(&c, i % CASES, &d->limits, true);
    c.k.large_registers = i & 1;
    case_copies(&c, arrays);
    bad = case_run(d, &c, arrays) != CLB_OK || build_kernel(d, &c.k, &binary) ||
          level_zero->report(d, &c.k, binary.s, binary.n, &report);
    if (bad || report.spill_bytes)
      bad = printf("%s: %d bytes spilled, %s\n", c.k.name, report.spill_bytes,
                   error.text.s ? error.text.s : "");
    clb_text_free(&binary);
    case_free_copies(arrays);
    case_free(&c);
  }
  level_zero->close(d);
  clb_text_free(&error.text);
  bad = bad || record_on_max(name);
  puts(bad ? "bad" : "all well");
  return bad != 0;
}

#define AS_MAX                                                                                     \
  "NEOReadDebugKeys=1 SetCommandStreamReceiver=1 ProductFamilyOverride=pvc "                       \
  "HardwareInfoOverride=2x4x8 "

static void max_gpu(void **state) {
  static const char *const way[][2] = {{AS_MAX, "level_zero:0"},
                                       {AS_MAX "CreateMultipleSubDevices=2", "level_zero:0.1"}};
  (void)state;
  if (SANITIZED) skip_because("Intel's driver does not start under a sanitizer");
  for (int i = 0; i < 2; i++) {
    char *out = again(way[i][0], way[i][1]);
    bool absent = strstr(out, "no libze_loader") || strstr(out, "zeInit");
    if (!absent && !strstr(out, "all well")) fail_msg("%s", out);
    if (!absent) expect_status_0(out, "all well");
    if (absent) free(out);
    if (absent) skip_because("Intel's Level Zero driver or the loader is not installed");
  }
}

static void count_running(const clb_device_info *info, void *user) { *(int *)user += info->runs; }

static int without_a_gpu(void) {
  clb_error_sink error = {0};
  clb_device *d = NULL;
  int n = 0;
  level_zero->list(count_running, &n);
  clb_status s = level_zero->open("level_zero", "", NULL, &error, &d);
  if (d) level_zero->close(d);
  printf("%d devices, %s\n", n, error.text.s ? error.text.s : "");
  clb_text_free(&error.text);
  return !(s == CLB_ERROR_DEVICE && n == 0);
}

static void no_gpu(void **state) {
  (void)state;
  if (!access("/dev/dri", F_OK)) skip_because("there may be a GPU");
  expect_status_0(again("ZE_ENABLE_ALT_DRIVERS=libno_such_driver.so", "without_a_gpu"),
                  "0 devices, level_zero: ");
}

/* ---- the offline compiler ---- */

static clb_device *open_pvc(clb_error_sink *error) {
  clb_device *d = NULL;
  if (SANITIZED) skip_because("Intel's compiler does not start under a sanitizer");
  if (!level_zero->open("level_zero@pvc", "@pvc", NULL, error, &d)) return d;
  if (!strstr(error->text.s, "libocloc.so")) fail_msg("%s", error->text.s);
  clb_text_free(&error->text);
  skip_because("ocloc is not installed");
  return NULL;
}

/* Reads `loads` numbers of a row, one of them twice if `again_too`, and writes 2. */
static void rows_kernel(ir_kernel *k, ir_type t, int lanes, int loads, bool again_too) {
  ir_begin(k, "rows", lanes, 2, 2 * lanes);
  ir_val x = ir_buffer(k, t, true), y = ir_buffer(k, t, true), n = ir_scalar(k, IR_I64);
  ir_val group = ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, 2)), ir_subgroup(k));
  ir_val row = ir_add(k, ir_mul(k, ir_cast(k, IR_I64, group), ir_int(k, IR_I64, lanes)),
                      ir_cast(k, IR_I64, ir_lane(k)));
  ir_val inside = ir_2(k, IR_LT, row, n), sum = ir_real(k, ir_register_type(t), 1);
  for (int i = 0; i < loads; i++)
    sum = ir_fma(
        k, sum, sum,
        ir_load(k, x, ir_add(k, ir_mul(k, row, ir_int(k, IR_I64, 5 * loads)), ir_int(k, IR_I64, i)),
                inside));
  ir_store(k, y, ir_mul(k, row, ir_int(k, IR_I64, 3)), inside, sum);
  if (again_too)
    sum = ir_add(k, sum,
                 ir_load(k, x, ir_mul(k, row, ir_int(k, IR_I64, 5 * loads)),
                         inside)); /* x and y may overlap: the compiler must read */
  ir_store(k, y, ir_add(k, ir_mul(k, row, ir_int(k, IR_I64, 3)), ir_int(k, IR_I64, 2)), inside,
           sum);
  if (!ir_finish(k)) fail_msg("%s", k->error);
}

static clb_report report_of(clb_device *d, const ir_kernel *k) {
  clb_text binary = {0};
  clb_report report = {0};
  if (build_kernel(d, k, &binary) || level_zero->report(d, k, binary.s, binary.n, &report))
    fail_msg("%s", d->error->text.s);
  clb_text_free(&binary);
  return report;
}

/* The loads and stores of the machine code are those of the IR; an additional one is noticed. */
static void counts(void **state) {
  static const ir_type types[] = {IR_F64, IR_F32, IR_F16, IR_BF16};
  clb_error_sink error = {0};
  (void)state;
  clb_device *d = open_pvc(&error);
  for (int i = 0; i < 16; i++) {
    ir_kernel k;
    rows_kernel(&k, types[i / 4], i & 1 ? 32 : 16, 7, i & 2);
    k.large_registers = i & 1;
    clb_report r = report_of(d, &k);
    ir_counts c = ir_count(&k);
    if (r.loads == -1) skip_because("Intel's disassembler, libiga64.so.1, is not installed");
    assert_int_equal(c.loads, i & 2 ? 8 : 7);
    if (r.loads != c.loads || r.stores != c.stores)
      fail_msg("%d: %d loads and %d stores, not %g and %g", i, r.loads, r.stores, c.loads,
               c.stores);
    assert_int_equal(r.registers, i & 1 ? 256 : 128);
    assert_int_equal(r.spill_bytes, 0);
    ir_free(&k);
  }
  level_zero->close(d);
}

/* 160 numbers live at once do not fit in 128 registers for sub-groups of 32. */
static void spills(void **state) {
  clb_error_sink error = {0};
  ir_kernel k;
  ir_val value[160];
  (void)state;
  clb_device *d = open_pvc(&error);
  ir_begin(&k, "much", 32, 1, 32);
  ir_val y = ir_buffer(&k, IR_F32, true), n = ir_scalar(&k, IR_I32), lane = ir_lane(&k);
  for (int i = 0; i < 160; i++)
    value[i] =
        ir_var(&k, ir_load(&k, y, ir_add(&k, lane, ir_int(&k, IR_I32, 32 * i)), IR_NONE), false);
  ir_loop(&k, ir_int(&k, IR_I32, 0), n, ir_int(&k, IR_I32, 1));
  for (int i = 0; i < 160; i++)
    ir_set(&k, value[i],
           ir_fma(&k, ir_get(&k, value[(i + 7) % 160]), ir_get(&k, value[i]),
                  ir_get(&k, value[(i + 50) % 160])));
  ir_end(&k);
  for (int i = 0; i < 160; i++)
    ir_store(&k, y, ir_add(&k, lane, ir_int(&k, IR_I32, 32 * i)), IR_NONE, ir_get(&k, value[i]));
  if (!ir_finish(&k)) fail_msg("%s", k.error);
  clb_report r = report_of(d, &k);
  assert_true(r.spill_bytes > 0);
  if (r.loads >= 0) assert_int_equal(r.loads, 160); /* scratch does not count */
  if (r.loads >= 0) assert_int_equal(r.stores, 160);
  ir_free(&k);
  level_zero->close(d);
}

static void only_compiles(void **state) {
  clb_error_sink error = {0};
  clb_memory memory = {NULL, CLB_POINTER, 4, NULL};
  clb_module *module;
  ir_kernel k;
  clb_text binary = {0};
  (void)state;
  clb_device *d = open_pvc(&error);
  rows_kernel(&k, IR_F32, 16, 2, false);
  assert_int_equal(d->info.runs, 0);
  assert_int_equal(level_zero->alloc(d, 4, &memory), CLB_ERROR_UNSUPPORTED);
  assert_string_equal(error.text.s, "level_zero@pvc only compiles: it has no memory");
  assert_int_equal(level_zero->wrap(d, &memory), CLB_ERROR_UNSUPPORTED);
  assert_int_equal(level_zero->read(d, &memory, 0, &k, 4), CLB_ERROR_UNSUPPORTED);
  assert_int_equal(build_kernel(d, &k, &binary), CLB_OK);
  assert_int_equal(level_zero->load(d, &k, binary.s, binary.n, &module), CLB_ERROR_UNSUPPORTED);
  assert_int_equal(level_zero->launch(d, NULL, 1, NULL, 0), CLB_ERROR_UNSUPPORTED);
  assert_int_equal(level_zero->wait(d), CLB_OK);
  level_zero->close(d);
  clb_text_free(&binary);
  clb_text_free(&error.text);
  ir_free(&k);
}

/* Error messages contain the compiler's own words, and nothing reaches standard output. */
static int refuse(void) {
  static const char *const unknown[] = {"level_zero@foo", "level_zero@", "level_zero@pvc:pvc",
                                        "level_zero@../x"};
  clb_error_sink error = {0};
  clb_device *d;
  clb_text binary = {0};
  ir_kernel k;
  int bad = 0;
  for (int i = 0; i < 4; i++)
    bad |= level_zero->open(unknown[i], unknown[i] + strlen("level_zero"), NULL, &error, &d) !=
               CLB_ERROR_DEVICE ||
           d;
  if (level_zero->open("level_zero@acm-g10", "@acm-g10", NULL, &error, &d)) return 2;
  rows_kernel(&k, IR_F64, 16, 2, false);
  bad |= build_kernel(d, &k, &binary) != CLB_ERROR_COMPILE ||
         !strstr(error.text.s, "Double type is not supported");
  level_zero->close(d);
  ir_free(&k);
  clb_text_free(&binary);
  clb_text_free(&error.text);
  return bad;
}

static void refused(void **state) {
  clb_error_sink error = {0};
  (void)state;
  level_zero->close(open_pvc(&error));
  char *out = again("", "refuse");
  assert_string_equal(out, "status 0\n");
  free(out);
}

/* ---- the parser, on lines of Intel's disassembler ---- */

static clb_report counted(const char *assembly, int lanes, bool known) {
  ir_kernel k;
  clb_report r = clb_report_unknown();
  ir_begin(&k, "k", lanes, 1, lanes);
  ir_val y = ir_buffer(&k, IR_F32, true), n = ir_scalar(&k, IR_F32);
  ir_store(&k, y, ir_lane(&k), IR_NONE, n);
  assert_true(ir_finish(&k));
  assert_int_equal(clb_lz_count_messages(&k, assembly, &r), known);
  ir_free(&k);
  return r;
}

static void expect_counts(const char *assembly, int lanes, bool known, int loads, int stores) {
  clb_report r = counted(assembly, lanes, known);
  assert_int_equal(r.loads, loads);
  assert_int_equal(r.stores, stores);
}

#define SEND(executes, what)                                                                       \
  "        send.ugm (" executes ")         r18      r16     null:0  0x0            0x04100580    " \
  "       {I@1,$4} // wr:2+0, rd:1; " what "\n"

static void parser(void **state) {
  (void)state;
  expect_counts("L0:\n(W)     mov (16|M0)              r127.0<1>:ud  0x0:ud\n", 16, true, 0, 0);
  expect_counts(SEND("16|M0", "load.ugm.d32.a64") SEND("16|M0", "store.ugm.d32x3.a64"), 16, true, 1,
                3);
  expect_counts(SEND("16|M0", "load.ugm.d32x2.a64") SEND("16|M16", "load.ugm.d32x2.a64"), 32, true,
                2, 0); /* halves of a sub-group */
  expect_counts(SEND("32|M0", "load.ugm.d32.a64.ca.ca"), 32, true, 1, 0);
  expect_counts(SEND("1|M0", "load.ugm.d32x8t.a64"), 16, true, 8, 0);  /* uniform */
  expect_counts(SEND("1|M0", "load.ugm.d32x16t.a64"), 16, true, 1, 0); /* one for each lane */
  expect_counts(SEND("1|M0", "load.ugm.d32x32t.a64"), 32, true, 1, 0);
  expect_counts(SEND("1|M0", "load.ugm.d32x16t.a32.ca.ca.bti[255]"), 16, true, 0, 0);
  expect_counts(SEND("16|M0", "load.ugm.d32.a32.ca.ca.ss[a0.2]")
                    SEND("1|M0", "fence.ugm.none.group"),
                16, true, 0, 0);
  expect_counts(SEND("16|M0", "load.ugm.d64.a64") SEND("16|M0", "load.ugm.d16u32.a64")
                    SEND("16|M0", "load.ugm.d16u32.a64"),
                16, true, 3, 0);
  expect_counts(SEND("16|M0", "atomic_fadd.ugm.d32.a64.uc.uc"), 16, true, 1, 1);
  expect_counts(SEND("16|M0", "load_block2d.ugm.d32.a64"), 16, false, -1, -1);
  expect_counts("        send.slm (16|M0)         null     r21     r18:1   0x0            "
                "0x02000504           {$4} // wr:1+1, rd:0; store.slm.d32.a32\n",
                16, true, 0, 0);
  expect_counts("(W)     send.dc0 (8|M0)          r20      r6      null:0  0x0            "
                "0x24820FF             {$2} // wr:1+0, rd:4; hword scratch block read x4\n",
                16, true, 0, 0);
  expect_counts("        send.dc1 (16|M0)         r20      r6      0x0:ud    0x4205E02           "
                "{@1, $2} // wr:2+0; rd:2; untyped surface read\n",
                16, false, -1, -1);
}

/* Instructions, but no labels and nothing behind the last one; messages to global memory, local
   memory and scratch, but neither arguments nor fences and barriers. */
static void parser_of_instructions(void **state) {
  static const struct {
    const char *line;
    int instructions, accesses;
  } lines[] = {
      {"L0:\n", 0, 0},
      {"\n", 0, 0},
      {"        illegal                \n", 0, 0},
      {"        // a comment\n", 0, 0},
      {"(W)     mov (16|M0)              r127.0<1>:ud  0x0:ud\n", 1, 0},
      {"(W&f1.1) jmpi                                L208\n", 1, 0},
      {"        sync.nop                             null                {Compacted,$4.dst}\n", 1,
       0},
      {SEND("16|M0", "load.ugm.d32x3.a64"), 1, 1},
      {SEND("16|M0", "store.ugm.d32.a64"), 1, 1},
      {SEND("16|M0", "atomic_fadd.ugm.d32.a64.uc.uc"), 1, 1},
      {SEND("16|M0", "load.ugm.d32.a32.ca.ca.ss[a0.2]"), 1, 1}, /* scratch */
      {SEND("1|M0", "load.ugm.d32x16t.a32.ca.ca.bti[255]"), 1, 0},
      {SEND("1|M0", "fence.ugm.none.group"), 1, 0},
      {"        send.slm (16|M0)         null     r21     r18:1   0x0            0x02000504        "
       "   "
       "{$4} // wr:1+1, rd:0; store.slm.d32.a32\n",
       1, 1},
      {"(W)     send.slm (1|M0)          r40      r0      null:0  0x0            0x0210011F        "
       "   "
       "{$5} // wr:1+0, rd:1; fence.slm.none.group\n",
       1, 0},
      {"(W)     send.gtwy (1|M0)         null     r5      null:0  0x0            0x02000004        "
       "   "
       "{$6} // wr:1+0, rd:0; signal barrier\n",
       1, 0},
      {"(W)     send.dc0 (8|M0)          r20      r6      null:0  0x0            0x24820FF         "
       "   "
       "{$2} // wr:1+0, rd:4; hword scratch block read x4\n",
       1, 1},
  };
  char all[4096] = "";
  int instructions = 0, accesses = 0;
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    clb_report r = counted(lines[i].line, 16, true);
    if (r.instructions != lines[i].instructions || r.accesses != lines[i].accesses)
      fail_msg("%d instructions, %d accesses: %s", r.instructions, r.accesses, lines[i].line);
    strcat(all, lines[i].line);
    instructions += r.instructions;
    accesses += r.accesses;
  }
  clb_report r = counted(all, 16, true);
  assert_int_equal(r.instructions, instructions);
  assert_int_equal(r.accesses, accesses);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(max_gpu),       cmocka_unit_test(no_gpu),
      cmocka_unit_test(counts),        cmocka_unit_test(spills),
      cmocka_unit_test(only_compiles), cmocka_unit_test(refused),
      cmocka_unit_test(parser),        cmocka_unit_test(parser_of_instructions)};
  if (argc > 1 && !strcmp(argv[1], "refuse")) return refuse();
  if (argc > 1 && !strcmp(argv[1], "without_a_gpu")) return without_a_gpu();
  if (argc > 1) return run_on_max(argv[1]);
  return cmocka_run_group_tests_name("level_zero_intel", tests, NULL, NULL);
}
