/* tests/tools/test_notes.c - what the command says, in one line, where it will be slow: no
   compiler, nowhere to keep kernels, a compilation that takes long. */
#include "tests/dynamics/model_folder.h"

#define ENERGY "energy -m model -s pair.xyz --repeat 1 --device cpu"

static int count(const char *text, const char *what) {
  int n = 0;
  for (; (text = strstr(text, what)); text++) n++;
  return n;
}

/* The command ends well, and says this once. */
static void expect_once(const char *arguments, const char *what) {
  size_t n;
  const int status = ended(start_clebsch(arguments));
  char *err = get_file("err", &n);
  if (status || count(err, what) != 1 || count(err, "\n") != 1)
    fail_msg("clebsch %s: exit status %d, not once '%s': %s", arguments, status, what, err);
  free(err);
}

/* Sets a variable (NULL: none) until `restore`. */
static struct {
  const char *name;
  char *value;
} saved[4];
static int n_saved;

static void set(const char *name, const char *value) {
  const char *before = getenv(name);
  saved[n_saved].name = name;
  saved[n_saved++].value = before ? strdup(before) : NULL;
  if (value) setenv(name, value, 1);
  else unsetenv(name);
}

static int restore(void **state) {
  (void)state;
  while (n_saved) {
    n_saved--;
    if (saved[n_saved].value) setenv(saved[n_saved].name, saved[n_saved].value, 1);
    else unsetenv(saved[n_saved].name);
    free(saved[n_saved].value);
  }
  return 0;
}

static void without_a_compiler(void **state) {
  (void)state;
  set("CLB_CACHE_DIR", "cold");
  set("PATH", "/nonexistent");
  expect_once(ENERGY,
              "clebsch: cpu runs on the interpreter, thousands of times slower than compiled: "
              "no cc, gcc or clang on PATH");
  expect_once("source spherical_harmonics --lmax 1 --device cpu", "cpu runs on the interpreter");
}

static void without_a_home(void **state) {
  (void)state;
  need_compiler();
  set("CLB_CACHE_DIR", NULL);
  set("XDG_CACHE_HOME", NULL);
  set("HOME", NULL);
  expect_once("source spherical_harmonics --lmax 1 --device cpu",
              "clebsch: kernels are not kept, as none of CLB_CACHE_DIR, XDG_CACHE_HOME and HOME is "
              "set; they are compiled again every time, unless CLB_CACHE_DIR names a folder");
}

static void compiling_takes_long(void **state) {
  (void)state;
  need_compiler();
  assert_int_equal(mkdir("slow", 0700), 0);
  put_text("slow/cc", "#!/bin/sh\nPATH=$REAL_PATH\ncase \"$*\" in *-shared*) "
                      "[ -e slow/done ] || { touch slow/done; sleep 4; };; esac\nexec cc \"$@\"\n");
  assert_int_equal(chmod("slow/cc", 0700), 0);
  set("REAL_PATH", getenv("PATH"));
  set("PATH", format("%s/slow:%s", work_folder, getenv("PATH")));
  put_text("slow/done", ""); /* the compiler is tried when the device is opened */
  expect_clebsch("source spherical_harmonics --lmax 1 --device cpu", 0, NULL);
  assert_int_equal(unlink("slow/done"), 0);
  expect_once(ENERGY, "clebsch: cpu: compiling model" TAKES_LONG);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(without_a_compiler, restore),
                                     cmocka_unit_test_teardown(without_a_home, restore),
                                     cmocka_unit_test_teardown(compiling_takes_long, restore)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
