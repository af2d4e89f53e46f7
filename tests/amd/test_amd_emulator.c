/* tests/amd/test_amd_emulator.c - what the emulator refuses, with name and place; barriers that
   matter; memory that a kernel may not access. */
#include "tests/amd/assembled.h"
#include "tests/test.h"

#define STORE_SWAPPED /* each lane's number to the group's memory; back comes that of the lane     \
                         opposite */                                                               \
  "v_lshlrev_b32_e32 v20, 2, v0\nds_write_b32 v20, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\n"          \
  "v_xor_b32_e32 v20, 0x3fc, v20\nds_read_b32 v10, v20\n"                                          \
  "s_waitcnt lgkmcnt(0)"

/* Kernels, and words of the error; NULL: it runs. */
static const struct {
  amd_source source;
  const char *reason, *more;
} cases[] = {
    {{"fine", "v_mov_b32_e32 v10, v0"}, NULL, NULL},
    {{"unknown", "v_sad_u8 v10, v2, v3, v4"}, "v_sad_u8 v10, v2, v3, v4", "not known"},
    {{"unknown_modifier", "v_mov_b32_dpp v10, v2 row_shl:1 row_mask:0xf bank_mask:0xf"},
     "row_shl:1",
     "not known"},
    {{"output_modifier", "v_add_f32_e64 v10, v2, v3 mul:2"}, "mul:2", "denormals"},
    {{"behind", "v_lshlrev_b32_e32 v20, 4, v0\nglobal_store_dword v20, v2, s[10:11] offset:4092"},
     "global_store_",
     "4 bytes written, 12 behind the end of a block of 4096"},
    {{"across", "v_mov_b32_e32 v20, 0xffe\nglobal_load_dword v10, v20, s[8:9]"},
     "global_load_",
     "4 bytes read at byte 4094 of a block of 4096"},
    {{"before", "v_mov_b32_e32 v20, 0\nglobal_load_dword v10, v20, s[8:9] offset:-8"},
     "global_load_",
     "4 bytes read"},
    {{"null", "s_mov_b64 s[12:13], 0\ns_load_dword s14, s[12:13], 0x0"},
     "s_load_",
     "outside of every block"},
    {{"constant",
      "s_getpc_b64 s[12:13]\nv_mov_b32_e32 v20, 0\nglobal_store_dword v20, v2, s[12:13]"},
     "global_store_",
     "constant"},
    {{"local", "v_mov_b32_e32 v20, 0xffc\nds_write_b64 v20, v[2:3]"},
     "ds_",
     "[4092, 4100) of 4096"},
    {{"end", "s_branch 4096"}, "s_branch 4096", "jumps"},
};
enum { N = sizeof cases / sizeof *cases };
static const amd_source swapped = {"swapped", STORE_SWAPPED};

static char *const targets[] = {(char[]){"gfx90a"}, (char[]){"gfx942"}, (char[]){"gfx1100"}};

static bool tools_missing(void) {
  return system("command -v clang-19 llvm-objdump-19 >/dev/null") != 0;
}

static void refusals(void **state) {
  const char *target = *state;
  amd_source sources[N];
  char error[512];
  if (tools_missing()) skip_because("no clang-19, or no llvm-objdump-19");
  int n = 0, which[N];
  for (int c = 0; c < N; c++) {
    if (target[3] == '1' && !strcmp(cases[c].source.name, "unknown_modifier"))
      continue; /* printed as another instruction */
    which[n] = c;
    sources[n++] = cases[c].source;
  }
  amd_module *m = amd_assemble(target, sources, n);
  assert_non_null(m);
  char *in = machine_alloc(4096), *out = machine_alloc(4096);
  memset(in, 0, 4096);
  uint32_t lanes = target[3] == '9' ? 64 : 32;
  for (int k = 0; k < n; k++) {
    int c = which[k];
    bool ran = amd_run_assembled(m, sources[k].name, lanes, in, out, error, sizeof error);
    if (ran != !cases[c].reason)
      fail_msg("%s: %s: %s", target, sources[k].name, ran ? "it ran" : error);
    if (ran) continue;
    if (strstr(error, target) != error || !strstr(error, sources[k].name) ||
        !strstr(error, cases[c].reason) || !strstr(error, cases[c].more))
      fail_msg("%s: %s", sources[k].name, error);
  }
  machine_free(out);
  if (amd_run_assembled(m, "fine", lanes, in, out, error, sizeof error))
    fail_msg("memory given back was written");
  machine_free(in);
  amd_unload(m);
}

/* How many of 20 seeds give the right result. */
static int right(const amd_module *m, char *in, char *out) {
  int good = 0;
  for (int seed = 0; seed < 20; seed++) {
    char text[16], error[512];
    snprintf(text, sizeof text, "%d", seed);
    setenv("AMD_EMULATOR_SEED", text, 1);
    if (!amd_run_assembled(m, "swapped", 256, in, out, error, sizeof error)) fail_msg("%s", error);
    bool all = true;
    for (uint32_t l = 0; l < 256; l++) {
      uint32_t got;
      memcpy(&got, out + 16 * l, 4);
      all &= got == (l ^ 255);
    }
    good += all;
  }
  unsetenv("AMD_EMULATOR_SEED");
  return good;
}

static void barriers(void **state) {
  if (tools_missing()) skip_because("no clang-19, or no llvm-objdump-19");
  amd_module *m = amd_assemble(*state, &swapped, 1);
  assert_non_null(m);
  char *in = machine_alloc(256 * 32), *out = machine_alloc(256 * 16);
  assert_int_equal(right(m, in, out), 20);
  setenv("AMD_EMULATOR_BARRIERS", "off", 1);
  int without = right(m, in, out);
  unsetenv("AMD_EMULATOR_BARRIERS");
  if (without > 10)
    fail_msg("%s: of 20 seeds %d are right without a barrier", (char *)*state, without);
  machine_free(in);
  machine_free(out);
  amd_unload(m);
}

static void memory_is_checked(void **state) {
  (void)state;
  char *a = machine_alloc(100), *b = machine_alloc(1 << 20);
  assert_true(a && b && (uintptr_t)a % 256 == 0);
  assert_ptr_equal(machine_find((uint64_t)(uintptr_t)a + 99)->at, a);
  assert_null(machine_find((uint64_t)(uintptr_t)a + 100));
  assert_null(machine_find((uint64_t)(uintptr_t)a - 1));
  for (int i = 0; i < 1 << 20; i++) assert_int_equal((unsigned char)b[i], 0xee);
  assert_null(machine_alloc(0));
  assert_false(machine_free(a + 1));
  assert_true(machine_free(a));
  assert_false(machine_free(a));
  assert_true(machine_free(b));
}

static void damaged(void **state) {
  char error[512] = "";
  unsigned char bytes[4096] = "\177ELF";
  (void)state;
  assert_null(amd_load(bytes, error, sizeof error));
  assert_non_null(strstr(error, "code object"));
}

int main(void) {
  struct CMUnitTest tests[] = {{"refusals:gfx90a", refusals, NULL, NULL, targets[0]},
                               {"refusals:gfx942", refusals, NULL, NULL, targets[1]},
                               {"refusals:gfx1100", refusals, NULL, NULL, targets[2]},
                               {"barriers:gfx90a", barriers, NULL, NULL, targets[0]},
                               {"barriers:gfx942", barriers, NULL, NULL, targets[1]},
                               {"barriers:gfx1100", barriers, NULL, NULL, targets[2]},
                               cmocka_unit_test(memory_is_checked),
                               cmocka_unit_test(damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
