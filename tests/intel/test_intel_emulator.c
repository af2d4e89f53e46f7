/* tests/intel/test_intel_emulator.c - what the emulator refuses, with name and place: unknown
   instructions, memory that a kernel may not access, barriers, races, registers that are not there
   yet. */
#include <unistd.h>

#include "backends/level_zero/level_zero.h"
#include "tests/intel/listed.h"
#include "tests/test.h"

/* The lane's address among the results, in r30. */
#define ADDRESS                                                                                    \
  "(W) mov (8|M0) r30.0<1>:w 0x76543210:v\n(W) add (8|M0) r30.8<1>:w r30.0<1;1,0>:w 8:w {I@1}\n"   \
  "shl (16|M0) r32.0<2>:d r30.0<1;1,0>:w 2:w {I@1}\n"                                              \
  "add (16|M0) r34.0<1>:q r1.5<0;1,0>:q r32.0<2;1,0>:d {I@1}\n"
#define STORE "send.ugm (16|M0) null r34 r10:1 0x0 0x04000584 {A@1,$3}"
#define LOAD "send.ugm (16|M0) r20 r34 null:0 0x0 0x04100580 {A@1,$3}"
/* The lane's number in the group times 4, in r32 and r35; that of the lane opposite in a group of
   four threads, in r33. */
#define OPPOSITE                                                                                   \
  "(W) mov (8|M0) r30.0<1>:w 0x76543210:v\n(W) add (8|M0) r30.8<1>:w r30.0<1;1,0>:w 8:w {I@1}\n"   \
  "(W) shl (1|M0) r31.0<1>:d r2.0<0;1,0>:d 4:w\n"                                                  \
  "add (16|M0) r32.0<1>:d r31.0<0;1,0>:d r30.0<1;1,0>:w {I@1}\n"                                   \
  "shl (16|M0) r32.0<1>:d r32.0<1;1,0>:d 2:w {I@1}\n"                                              \
  "mov (16|M0) r35.0<1>:d r32.0<1;1,0>:d {I@1}\n"                                                  \
  "xor (16|M0) r33.0<1>:d r32.0<1;1,0>:d 252:w\n"
#define STORE_LOCAL "send.slm (16|M0) null r32 r35:1 0x0 0x02000504 {A@1,$3}\n"
#define LOAD_LOCAL "send.slm (16|M0) r20 r33 null:0 0x0 0x02100500 {A@1,$4}"
#define FENCE                                                                                      \
  "(W) send.slm (1|M0) r40 r0 null:0 0x0 0x0210011F {$5}\n"                                        \
  "(W) mov (8|M0) null<1>:ud r40.0<1;1,0>:ud {$5.dst}\n"
#define SIGNAL                                                                                     \
  "(W) mov (16|M0) r41.0<1>:f 0x0:f\n"                                                             \
  "(W) mov (2|M0) r41.10<1>:ub r0.11<0;1,0>:ub {F@1}\n"                                            \
  "(W) send.gtwy (1|M0) null r41 null:0 0x0 0x02000004 {A@1,$6}\n"
#define BARRIER SIGNAL "(W) sync.bar 0x0\n"

/* Bodies, and words of the error; NULL: it runs. */
static const struct {
  const char *name, *body, *reason, *more;
} cases[] = {
    {"fine", "mov (16|M0) r20.0<1>:d r10.0<1;1,0>:d", NULL, NULL},
    {"unknown", "frc (16|M0) r20.0<1>:f r10.0<1;1,0>:f", "frc", "not known"},
    {"saturated", "add (16|M0) (sat)r20.0<1>:f r10.0<1;1,0>:f r11.0<1;1,0>:f", "(sat)",
     "not known"},
    {"bfloat", "add (16|M0) r20.0<1>:f r10.0<1;1,0>:bf r11.0<1;1,0>:f", ":bf", "not known"},
    {"fine store", ADDRESS STORE, NULL, NULL},
    {"behind", ADDRESS "add (16|M0) r34.0<1>:q r34.0<1;1,0>:q 4048:w {I@1}\n" STORE, "store.ugm",
     "4 bytes written, 0 behind the end of a block of 4096"},
    {"across", ADDRESS "add (16|M0) r34.0<1>:q r34.0<1;1,0>:q 4034:w {I@1}\n" LOAD, "load.ugm",
     "4 bytes read at byte 4094 of a block of 4096"},
    {"null", ADDRESS "mov (16|M0) r34.0<1>:q 0:w {I@1}\n" LOAD, "load.ugm",
     "outside of every block"},
    {"block",
     "(W) add (1|M0) r34.0<1>:q r1.5<0;1,0>:q 2:w\n"
     "(W) send.ugm (1|M0) r20 r34 null:0 0x0 0x0210C580 {A@1,$3}",
     "d32x8t", "no multiple of 4"},
    {"atomic",
     ADDRESS "add (16|M0) r34.0<1>:q r34.0<1;1,0>:q 2:w {I@1}\n"
             "send.ugm (16|M0) null r34 r10:1 0x0 0x04000593 {A@1,$3}",
     "atomic_fadd", "no multiple of 4"},
    {"local", "mov (16|M0) r33.0<1>:d 4094:w\n" LOAD_LOCAL, "load.slm", "[4094, 4098) of 4096"},
    {"flag", "(f1.0) mov (16|M0) r20.0<1>:d r10.0<1;1,0>:d", "(f1.0)",
     "nothing has written flag f1.0"},
    {"part of a flag",
     "(W) cmp (8|M0) (eq)f1.0 null<1>:d r10.0<1;1,0>:d 0:w\n"
     "(f1.0) mov (16|M0) r20.0<1>:d r10.0<1;1,0>:d",
     "(f1.0)", "nothing has written flag f1.0"},
    {"product", "macl (16|M0) r20.0<1>:d r10.0<1;1,0>:d r11.0<1;1,0>:d", "macl",
     "acc0 does not hold a product"},
    {"extra", "madm (16|M0) r20.nomme:f r10.nomme:f r11.nomme:f r12.mme3:f", "madm",
     "mme3 is not set"},
    {"past the end", "mov (16|M0) r127.8<1>:d r10.0<1;1,0>:d", "r127.8", "not known"},
    {"three registers", "mov (16|M0) r20.0<1>:q r10.4<1;1,0>:q", "r10.4", "not known"},
    {"a row in two", "add (16|M0) r20.0<1>:d r10.14<4;2,1>:d r12.0<1;1,0>:d", "r10.14",
     "not known"},
    {"moved channels", "add (8|M0) r20.0<1>:f r10.1<1;1,0>:f r11.0<1;1,0>:f", "r10.1", "not known"},
    {"other steps", "add (8|M0) r20.0<1>:q r10.0<1;1,0>:d r11.0<1;1,0>:q", "add (8|M0)",
     "not known"},
    {"alone", BARRIER, NULL, NULL},
    {"no signal", "(W) sync.bar 0x0", "sync.bar", "did not signal"},
    {"no count", "(W) send.gtwy (1|M0) null r10 null:0 0x0 0x02000004 {A@1,$6}", "signal barrier",
     "threads in a group of 1"},
    /* payloads that are not in place */
    {"short addresses", ADDRESS "send.ugm (16|M0) null r34 r10:1 0x0 0x02000584 {A@1,$3}",
     "store.ugm", "its addresses have another length"},
    {"long addresses", ADDRESS "send.ugm (16|M0) null r34 r10:1 0x0 0x06000584 {A@1,$3}",
     "store.ugm", "its addresses have another length"},
    {"short data", ADDRESS "send.ugm (16|M0) null r34 r10:1 0x0 0x04001584 {A@1,$3}",
     "store.ugm.d32x2", "its data have another length"},
    {"short result", ADDRESS "send.ugm (16|M0) r20 r34 null:0 0x0 0x04101580 {A@1,$3}",
     "load.ugm.d32x2", "its result has another length"},
    {"long spill", "(W) send.dc0 (16|M0) null r0 r10:2 0x0 0x020F1004 {$3}", "scratch block write",
     "its data have another length"},
    {"behind the last register",
     ADDRESS
     "mov (16|M0) r127.0<1>:d 0:w\nsend.ugm (16|M0) r127 r34 null:0 0x0 0x04201580 {A@1,$3}",
     "load.ugm.d32x2", "beyond the last register"},
    {"data within addresses", ADDRESS "send.ugm (16|M0) null r34 r35:1 0x0 0x04000584 {A@1,$3}",
     "store.ugm", "its data overlap its addresses"},
    {"an early end",
     "mov (16|M0) r60.0<1>:f r0.0<1;1,0>:f\n(W) send.gtwy (8|M0) null r60 null:0 0x0 0x02000010 "
     "{EOT,A@1}",
     "end of thread", "one of the last 16 registers"},
    {"an end of rubbish", "(W) send.gtwy (8|M0) null r120 null:0 0x0 0x02000010 {EOT}",
     "end of thread", "nothing has written its header"},
    {"no addresses", "send.ugm (16|M0) null r50 r10:1 0x0 0x04000584 {$3}", "store.ugm",
     "nothing has written its address of channel 0"},
    {"addresses of 8 channels",
     ADDRESS "mov (8|M0) r50.0<1>:q r34.0<1;1,0>:q {I@1}\n"
             "send.ugm (16|M0) null r50 r10:1 0x0 0x04000584 {A@1,$3}",
     "store.ugm", "nothing has written its address of channel 8"},
    {"fine for 8 channels",
     ADDRESS "mov (8|M0) r50.0<1>:q r34.0<1;1,0>:q {I@1}\n(W) mov (1|M0) f0.0<1>:uw 0xFF:uw\n"
             "(f0.0) send.ugm (16|M0) null r50 r10:1 0x0 0x04000584 {A@1,$3}",
     NULL, NULL},
    {"no data", ADDRESS "send.ugm (16|M0) null r34 r50:1 0x0 0x04000584 {A@1,$3}", "store.ugm",
     "nothing has written its data of channel 0"},
    {"data under a flag",
     ADDRESS "(W) mov (1|M0) f0.0<1>:uw 0xFFF7:uw\n(f0.0) mov (16|M0) r50.0<1>:d 1:w\n"
             "send.ugm (16|M0) null r34 r50:1 0x0 0x04000584 {A@1,$3}",
     "store.ugm", "nothing has written its data of channel 3"},
    {"half of the data",
     ADDRESS "mov (16|M0) r50.0<1>:d 1:w\nsend.ugm (16|M0) null r34 r50:2 0x0 0x04001584 {A@1,$3}",
     "store.ugm.d32x2", "nothing has written its data of channel 0"},
    {"half of a number",
     ADDRESS "mov (16|M0) r50.0<2>:uw 1:w\nsend.ugm (16|M0) null r34 r50:1 0x0 0x04000584 {A@1,$3}",
     "store.ugm", "nothing has written its data of channel 0"},
    {"fine half of a number",
     ADDRESS "mov (16|M0) r50.0<2>:uw 1:w\nsend.ugm (16|M0) null r34 r50:1 0x0 0x04000B84 {A@1,$3}",
     NULL, NULL},
    {"a sum of rubbish", ADDRESS "send.ugm (16|M0) null r34 r50:1 0x0 0x04000593 {A@1,$3}",
     "atomic_fadd", "nothing has written its data of channel 0"},
    {"a block's address", "(W) send.ugm (1|M0) r20 r50 null:0 0x0 0x0210C580 {$3}", "d32x8t",
     "nothing has written its address"},
    {"rubbish from scratch",
     ADDRESS
     "(W) send.dc0 (16|M0) null r0 r50:1 0x0 0x020F1004 {$3}\nsync.nop null {$3.dst}\n"
     "(W) send.dc0 (16|M0) r10 r0 null:0 0x0 0x021C1004 {$4}\nsync.nop null {$4.dst}\n" STORE,
     "store.ugm", "nothing has written its data of channel 0"},
    {"a spill's header", "(W) send.dc0 (16|M0) null r50 r10:1 0x0 0x020F1004 {$3}",
     "scratch block write", "nothing has written its header"},
    {"no fence", OPPOSITE STORE_LOCAL BARRIER, "signal barrier", "no fence follows"},
};
enum { N = sizeof cases / sizeof *cases };

static void needs_assembler(void) {
  if (!intel_can_assemble()) skip_because("no libiga64.so.1");
}

static intel_kernel *body(const char *text) {
  char error[512] = "";
  intel_kernel *k = intel_of_body(text, error, sizeof error);
  if (!k) fail_msg("%s\n%s", error, text);
  return k;
}

static void refusals(void **state) {
  char error[1024], *in = machine_alloc(4096), *out = machine_alloc(4096);
  (void)state;
  needs_assembler();
  memset(in, 0, 4096);
  for (int c = 0; c < N; c++) {
    intel_kernel *k = body(cases[c].body);
    bool ran = intel_run_listed(k, 1, in, out, error, sizeof error);
    if (ran != !cases[c].reason) fail_msg("%s: %s", cases[c].name, ran ? "it ran" : error);
    if (!ran && (strncmp(error, "pvc, listed", 11) != 0 || !strstr(error, cases[c].reason) ||
                 !strstr(error, cases[c].more)))
      fail_msg("%s: %s", cases[c].name, error);
    intel_unload(k);
  }
  machine_free(in);
  machine_free(out);
}

/* How many of 20 seeds give the right result; `failed` counts the errors with these words. */
static int right(const char *text, const char *words, int *failed) {
  char error[1024], *in = machine_alloc(4096), *out = machine_alloc(4096);
  intel_kernel *k = body(text);
  int good = 0;
  *failed = 0;
  for (int seed = 0; seed < 20; seed++) {
    char number[16];
    snprintf(number, sizeof number, "%d", seed);
    setenv("INTEL_EMULATOR_SEED", number, 1);
    bool ran = intel_run_listed(k, 4, in, out, error, sizeof error), all = ran;
    if (!ran && !strstr(error, words)) fail_msg("%s", error);
    *failed += !ran;
    for (uint32_t l = 0; ran && l < 64; l++) {
      uint32_t got;
      memcpy(&got, out + 256 * (l / 16) + 4 * (l % 16), 4);
      all &= got == ((4 * l) ^ 252);
    }
    good += all;
  }
  unsetenv("INTEL_EMULATOR_SEED");
  intel_unload(k);
  machine_free(in);
  machine_free(out);
  return good;
}

static void barriers(void **state) {
  static const char swapped[] = OPPOSITE STORE_LOCAL FENCE BARRIER LOAD_LOCAL;
  static const char raced[] = OPPOSITE STORE_LOCAL FENCE LOAD_LOCAL;
  static const char missed[] = OPPOSITE STORE_LOCAL FENCE
      "(W) cmp (16|M0) (eq)f0.0 null<1>:d r2.0<0;1,0>:d 0:w\n(W&f0.0) jmpi OVER\n" BARRIER
      "OVER:\n" LOAD_LOCAL;
  int failed;
  (void)state;
  needs_assembler();
  assert_int_equal(right(swapped, "", &failed), 20);
  setenv("INTEL_EMULATOR_BARRIERS", "off", 1);
  setenv("INTEL_EMULATOR_RACES", "off", 1);
  int without = right(swapped, "", &failed);
  unsetenv("INTEL_EMULATOR_BARRIERS");
  unsetenv("INTEL_EMULATOR_RACES");
  if (without > 10 || failed) fail_msg("%d of 20 are right without a barrier", without);
  right(raced, "with no barrier between", &failed);
  assert_int_equal(failed, 20); /* whatever the order */
  setenv("INTEL_EMULATOR_RACES", "off", 1);
  assert_int_equal(right(missed, "threads reach this barrier", &failed), 0);
  unsetenv("INTEL_EMULATOR_RACES");
}

/* ---- registers that are not there yet: bodies that wait as they must, where one wait is taken
   away at a time ---- */

static const char *const waiting[] = {
    "add (16|M0) r30.0<1>:d r10.0<1;1,0>:d r11.0<1;1,0>:d\n"
    "add (16|M0) r20.0<1>:d r30.0<1;1,0>:d 1:w {I@1}",
    "mul (16|M0) r30.0<1>:f r10.0<1;1,0>:f r11.0<1;1,0>:f\n"
    "mov (16|M0) r31.0<1>:f r11.0<1;1,0>:f\n"
    "mov (16|M0) r20.0<1>:d r30.0<1;1,0>:f {F@2}",
    "mul (8|M0) r30.0<1>:df r10.0<1;1,0>:df r12.0<1;1,0>:df\n"
    "mov (8|M0) r20.0<2>:f r30.0<1;1,0>:df {L@1}",
    "math.exp (16|M0) r30.0<1>:f r10.0<1;1,0>:f\n"
    "mov (16|M0) r20.0<1>:f r30.0<1;1,0>:f {M@1}",
    /* another pipe overwrites what is read, and what is written */
    "mov (16|M0) r30.0<1>:f r11.0<1;1,0>:f\nmov (16|M0) r11.0<1>:d 5:w {F@1}",
    "mov (16|M0) r20.0<1>:f r11.0<1;1,0>:f\nmov (16|M0) r20.0<1>:d 5:w {F@1}",
    /* a byte is written with its neighbour */
    "(W) mov (1|M0) r30.0<2>:b r10.0<0;1,0>:b\n(W) mov (1|M0) r30.1<2>:b r10.1<0;1,0>:b {I@1}",
    /* messages: an address, a result, what a store still reads */
    ADDRESS LOAD "\nadd (16|M0) r21.0<1>:d r20.0<1;1,0>:d 1:w {$3.dst}",
    ADDRESS LOAD "\nmov (16|M0) r20.0<1>:d 1:w {$3.dst}",
    ADDRESS STORE "\nmov (16|M0) r10.0<1>:d 1:w {$3.src}",
    /* along a branch, and around a loop */
    ADDRESS LOAD "\n(W) cmp (16|M0) (eq)f0.0 null<1>:d r2.0<0;1,0>:d 0:w\n(W&f0.0) jmpi OVER\n"
                 "mov (16|M0) r22.0<1>:d r20.0<1;1,0>:d {$3.dst}\nOVER:\n"
                 "mov (16|M0) r21.0<1>:d r20.0<1;1,0>:d {$3.dst}",
    "(W) mov (1|M0) r50.0<1>:d 3:w\n" ADDRESS "LOOP:\n(W) add (1|M0) r50.0<1>:d r50.0<0;1,0>:d "
    "-1:w\nmov (16|M0) r21.0<1>:d r20.0<1;1,0>:d {$3.dst}\n" LOAD
    "\n(W) cmp (16|M0) (gt)f0.0 null<1>:d r50.0<0;1,0>:d 0:w\n(W&f0.0) jmpi LOOP",
    "mov (16|M0) r32.0<1>:d 8:w\n" STORE_LOCAL FENCE BARRIER
    "mov (16|M0) r33.0<1>:d 8:w\n" LOAD_LOCAL,
};

static void scoreboard(void **state) {
  char error[1024];
  int planted = 0;
  (void)state;
  needs_assembler();
  for (size_t w = 0; w < sizeof waiting / sizeof *waiting; w++) {
    intel_kernel *k = body(waiting[w]);
    if (!intel_check_scoreboard(k, error, sizeof error)) fail_msg("%s", error);
    intel_unload(k);
    for (const char *brace = strchr(waiting[w], '{'); brace; brace = strchr(brace + 1, '{')) {
      char text[2048];
      snprintf(text, sizeof text, "%s", waiting[w]);
      char *at = text + (brace - waiting[w]);
      size_t n = strcspn(at, "},");
      if (at[1] == '$' && !memchr(at, '.', n)) continue; /* takes a token */
      if (at[n] == ',') n++, at++, n--;
      memset(at, ' ', at[n] == '}' && *at == '{' ? n + 1 : n);
      k = body(text);
      bool found = !intel_check_scoreboard(k, error, sizeof error);
      if (!found || !strstr(error, "does not wait")) fail_msg("not found: %s\n%s", text, error);
      planted++;
      intel_unload(k);
    }
  }
  assert_true(planted > 20);
}

/* The listing of a convolution's backward pass, as Intel's compiler makes it; to be freed. */
static char *compiled_listing(void) {
  const char *command = getenv("CLB_COMMAND");
  char line[600], path[] = "/tmp/intel-kernel-XXXXXX", name[128];
  lz_ocloc ocloc;
  clb_error_sink error = {0};
  clb_text spirv = {0}, binary = {0};
  int file = mkstemp(path);
  if (!command || file < 0 || !clb_lz_ocloc_open(&ocloc)) skip_because("no ocloc, or no command");
  snprintf(
      line, sizeof line,
      "%s source tensor_product --x 16x0e+16x1o --y 0e+1o --filter 0e+1o --pass backward --device "
      "level_zero@pvc -o %s >/dev/null",
      command, path);
  assert_int_equal(system(line), 0);
  FILE *f = fdopen(file, "rb");
  static char words[1 << 20];
  clb_text_bytes(&spirv, words, fread(words, 1, sizeof words, f));
  fclose(f);
  unlink(path);
  if (clb_lz_ocloc_compile(&ocloc, "pvc", &spirv, "", &binary, &error))
    fail_msg("%s", error.text.s);
  size_t bytes;
  const char *code = intel_section(binary.s, binary.n, ".text.", name, sizeof name, &bytes);
  assert_non_null(code);
  char *listing = intel_disassemble(code, bytes);
  clb_text_free(&spirv);
  clb_text_free(&binary);
  clb_text_free(&error.text);
  return listing;
}

/* Of the waits of a real kernel nearly all are needed: some follow another that covers them. */
static void waits_of_a_kernel(void **state) {
  char error[1024];
  (void)state;
  needs_assembler();
  char *listing = compiled_listing();
  int tried = 0, planted = 0, found = 0;
  for (char *brace = strchr(listing, '{'); brace; brace = strchr(brace + 1, '{'))
    for (char *at = brace; *at && *at != '}'; at += 1 + strcspn(at + 1, ",}")) {
      size_t n = strcspn(at + 1, ",}");
      bool waits = memchr(at + 1, '@', n) || (at[1] == '$' && memchr(at + 1, '.', n));
      if (!waits || (tried++ % 7 && !long_tests())) continue;
      planted++;
      char kept[32];
      assert_true(n < sizeof kept);
      memcpy(kept, at + 1, n);
      memset(at + 1, ' ', n);
      intel_kernel *k = intel_listed(listing, 128, error, sizeof error);
      assert_non_null(k);
      found += !intel_check_scoreboard(k, error, sizeof error);
      intel_unload(k);
      memcpy(at + 1, kept, n);
    }
  free(listing);
  if (planted < 15 || found < planted * 8 / 10) fail_msg("%d of %d are noticed", found, planted);
}

static void damaged(void **state) {
  char error[512] = "";
  unsigned char bytes[4096] = "\177ELF";
  (void)state;
  assert_null(intel_load(bytes, sizeof bytes, error, sizeof error));
  assert_non_null(strstr(error, "no ELF file"));
  assert_null(intel_load(bytes, 3, error, sizeof error));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(barriers),
                                     cmocka_unit_test(scoreboard), cmocka_unit_test(damaged)};
  const struct CMUnitTest compiled[] = {cmocka_unit_test(waits_of_a_kernel)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return SANITIZED ? failed /* there Intel's compiler does not start */
                   : failed + cmocka_run_group_tests(compiled, NULL, NULL);
}
