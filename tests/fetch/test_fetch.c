/* tests/fetch/test_fetch.c - models by their names: what is downloaded, compared and kept, and that
   nothing else uses a network. */
#include "tests/dynamics/model_folder.h"

#include <dirent.h>
#include <time.h>

#define ZERO "SevenNet_0__11Jul2024/checkpoint_sevennet_0.pth"

/* Files in a folder; one that is not there has none. */
static int files_in(const char *folder) {
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) n += *e->d_name != '.' || e->d_name[1] > '.';
  if (d) closedir(d);
  return n;
}

/* Programs that would download, each with this text; without it there are none but those of the
   machine. */
static void downloads_by(const char *text) {
  static const char *const names[] = {"bin/curl", "bin/python3", "bin/wget"};
  static char path[4096];
  if (!*path) snprintf(path, sizeof path, "%s", getenv("PATH"));
  mkdir("bin", 0700);
  for (int i = 0; i < 3; i++) {
    put_text(names[i], format("#!/bin/sh\n%s", text));
    assert_int_equal(chmod(names[i], 0700), 0);
  }
  setenv("PATH", format("%s/bin:%s", work_folder, path), 1);
}

/* No models, no mirror, and no network. */
static int begin(void **state) {
  (void)state;
  nftw("models", remove_one, 16, FTW_DEPTH | FTW_PHYS);
  unlink("called");
  setenv("CLB_MODELS_DIR", format("%s/models", work_folder), 1);
  setenv("CLB_DEVICE", "cpu:interpreter", 1);
  unsetenv("CLB_MODELS_MIRROR");
  downloads_by("touch called\nexit 1\n");
  return 0;
}

static void expect_no_network(void) { assert_int_equal(access("called", F_OK), -1); }

static const char *sevennet(const char *file) {
  const char *folder = getenv("CLB_TEST_SEVENNET");
  if (!folder) skip_because("no models of SevenNet (CLB_TEST_SEVENNET)");
  return format("%s/%s", folder, file);
}

/* FIPS 180-4's examples, and ends of blocks: each of a model whose checksum nobody knows. */
static void sums(void **state) {
  (void)state;
  static const struct {
    int n; /* of the letter a; 0: the text */
    const char *text, *sum;
  } all[] = {{0, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
             {0, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
             {0, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
             {55, "", "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
             {64, "", "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
             {1000000, "", "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char *letters = malloc((size_t)all[i].n + 1);
    assert_non_null(letters);
    memset(letters, 'a', (size_t)all[i].n);
    put_file("sum", all[i].n ? letters : all[i].text,
             all[i].n ? (size_t)all[i].n : strlen(all[i].text));
    free(letters);
    expect_clebsch("fetch mace-mp-0-small --from sum", 1,
                   format("no checksum of it is known; its SHA-256 is %s\n", all[i].sum));
  }
  assert_int_equal(files_in("models"), 0);
  expect_no_network();
}

/* Both are the same file. */
static void expect_same(const char *a, const char *b) {
  size_t n, m;
  char *x = get_file(a, &n), *y = get_file(b, &m);
  assert_true(x && y && n == m && !memcmp(x, y, n));
  free(x);
  free(y);
}

static void sevennet_from_checkpoint(void **state) {
  (void)state;
  expect_printed(format("fetch SevenNet-0 --from %s", sevennet(ZERO)),
                 "/models/sevennet-0.safetensors: sevennet, 89 elements", "licence MIT");
  free(printed_by(format("convert %s own", sevennet(ZERO))));
  expect_same("models/sevennet-0.safetensors", "own");
  expect_printed("fetch sevennet-0", "is there already; --force");
  expect_printed("models", "sevennet-0            yes ");
  expect_clebsch(format("fetch sevennet-l3i5 --from %s", sevennet(ZERO)), 1,
                 "not the published file: its SHA-256 is 7052cb42b7b3");
  assert_int_equal(files_in("models"), 1);
  expect_no_network();
}

static void sevennet_from_mirror(void **state) {
  (void)state;
  if (access(sevennet("../../sevenn-0.13.0-py3-none-any.whl"), R_OK))
    skip_because("no wheel of sevenn beside the folder CLB_TEST_SEVENNET");
  free(printed_by(format("convert %s own", sevennet("SevenNet_l3i5/checkpoint_l3i5.pth"))));
  setenv("CLB_MODELS_MIRROR", format("file://%s", sevennet("../..")), 1);
  mkdir("models", 0700);
  put_text("models/sevennet-l3i5.safetensors", "old");
  expect_printed("fetch sevennet-l3i5 --force", "sevennet, 89 elements");
  expect_same("models/sevennet-l3i5.safetensors", "own");
  expect_no_network();
}

static void converts_nequix_mp_by_name(void **state) {
  (void)state;
  const char *path = getenv("CLB_TEST_NEQUIX");
  if (!path) skip_because("no model of Nequix (CLB_TEST_NEQUIX)");
  downloads_by(format("touch called\ncase $* in *nequix-mp-1.nqx) exec cat %s;; esac\n", path));
  setenv("CLB_MODELS_MIRROR", "https://mirror.invalid/models", 1);
  expect_printed("fetch nequix-mp-1", "nequix, 89 elements");
  assert_int_equal(unlink("called"), 0);
  downloads_by(format("head -c 100000 %s\n", path));
  expect_clebsch("fetch nequix-mp-1 --force", 1, "cut short, or another file: its SHA-256 is ");
  expect_printed("models", "nequix-mp-1           yes ");
}

static void failed_downloads(void **state) {
  (void)state;
  downloads_by("echo half\necho >&2 first\necho >&2 'server says no'\nexit 22\n");
  expect_clebsch("fetch nequix-mp-1", 1, "nequix-mp-1.nqx: not downloaded: server says no\n");
  downloads_by("exit 127\n");
  expect_clebsch("fetch nequix-mp-1", 1, "none of curl, python3 and wget is in PATH");
  downloads_by("kill -9 $$\n");
  expect_clebsch("fetch nequix-mp-1", 1, "not downloaded: the program was ended\n");
  downloads_by("case $0 in *wget) echo page;; *) exit 127;; esac\n");
  expect_clebsch("fetch nequix-mp-1", 1, "cut short, or another file");
  setenv("CLB_MODELS_MIRROR", "http://mirror.invalid/there", 1);
  downloads_by("for last; do :; done; echo >&2 \"asked for $last\"; exit 1\n");
  expect_clebsch("fetch nequix-oam-1", 1, "asked for http://mirror.invalid/there/nequix-oam-1.nqx");
  assert_int_equal(files_in("models"), 0);
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Not one that has ended and nobody has waited for. */
static bool runs(const char *pid) {
  FILE *f = fopen(format("/proc/%s/cmdline", pid), "r");
  const bool any = f && fgetc(f) != EOF;
  if (f) fclose(f);
  return any;
}

/* Neither a file nor the program that downloads is left. */
static void interrupted(void **state) {
  (void)state;
  static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
  downloads_by("echo half\nprintf $$ >started.new\nmv started.new started\nexec sleep 1000\n");
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    const pid_t pid = start_clebsch("fetch nequix-mp-1");
    for (int wait = 0; wait < 1000 && access("started", F_OK); wait++) pause_ms(10);
    char *child = get_text("started");
    assert_non_null(child);
    assert_int_equal(kill(pid, signals[i]), 0);
    assert_int_equal(ended(pid), -signals[i]);
    for (int wait = 0; wait < 1000 && runs(child); wait++) pause_ms(10);
    assert_false(runs(child));
    assert_int_equal(files_in("models"), 0);
    assert_int_equal(unlink("started"), 0);
    free(child);
  }
}

/* Any command takes a name, in any case of letters; a file of that name comes first. */
static void names(void **state) {
  (void)state;
  size_t n;
  char *made = get_file("model", &n);
  assert_int_equal(mkdir("models", 0700), 0);
  put_file("models/my_own-1.safetensors", made, n);
  free(made);
  free(printed_by("energy --model My_Own-1 --structure pair.xyz --out named.xyz"));
  free(printed_by("energy --model model --structure pair.xyz --out plain.xyz"));
  expect_same("named.xyz", "plain.xyz");
  expect_printed("models", "my_own-1 ", "your own", "sevennet-l3i5 ");
  expect_printed("models --json", "/models/my_own-1.safetensors\"", "\"tried\": false");
  put_text("my_own-1", "rubbish of a file");
  expect_clebsch("info my_own-1", 1, "my_own-1: not a safetensors file");
  static const refusal refusals[] = {
      {"energy -s pair.xyz -m sevennet-0", 1,
       "sevennet-0: not here yet; `clebsch fetch sevennet-0` gets this model"},
      {"energy -s pair.xyz -m sevenet-0", 1,
       "sevenet-0: No such file or model; did you mean "
       "sevennet-0?"},
      {"info nowhere", 1, "nowhere: No such file or model; `clebsch models` lists names"},
      {"info no.where", 1, "no.where: No such file or directory"},
      {"fetch nequx-mp-1", 2, "no model 'nequx-mp-1' is known; did you mean nequix-mp-1?"},
      {"fetch ../x", 2, "no model '../x' is known; `clebsch models` lists them"},
      {"fetch", 2, "name a model"},
      {"fetch a b", 2, "'b' is one argument too many"},
      {"fetch nequix-mp-1 --from nothing", 1, "nothing: No such file"},
      {"models x", 2, "'x' is one argument too many"}};
  expect_refusals("", refusals, sizeof refusals / sizeof *refusals);
  setenv("CLB_MODELS_MIRROR", work_folder, 1);
  expect_clebsch("fetch nequix-mp-1", 1, "/nequix-mp-1.nqx: No such file");
  expect_no_network();
}

/* Where the folder is. */
static void folders(void **state) {
  (void)state;
  size_t n;
  char *made = get_file("model", &n), *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
  unsetenv("CLB_MODELS_DIR");
  unsetenv("XDG_DATA_HOME");
  setenv("HOME", "", 1);
  expect_clebsch("fetch nequix-mp-1", 1, "no folder for models: set CLB_MODELS_DIR or HOME");
  setenv("HOME", format("%s/home", work_folder), 1);
  expect_clebsch("fetch nequix-mp-1 --from pair.xyz", 1, "its SHA-256 is ");
  put_file("home/.local/share/clebsch/models/tiny.safetensors", made, n);
  expect_printed("info tiny", "elements");
  setenv("XDG_DATA_HOME", format("%s/data", work_folder), 1);
  expect_clebsch("info tiny", 1, "tiny: No such file or model");
  expect_clebsch("fetch nequix-mp-1 --from pair.xyz", 1, "its SHA-256 is ");
  put_file("data/clebsch/models/tiny.safetensors", made, n);
  expect_printed("info tiny", "/data/clebsch/models/tiny.safetensors: ");
  setenv("CLB_MODELS_DIR", format("%s/model/in", work_folder), 1); /* a file is not a folder */
  expect_clebsch("fetch nequix-mp-1 --from pair.xyz", 1, "/model/in/nequix-mp-1.safetensors: ");
  setenv("HOME", home, 1);
  free(home);
  free(made);
  expect_no_network();
}

#define TEST(f) cmocka_unit_test_setup(f, begin)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(sums),
                                     TEST(sevennet_from_checkpoint),
                                     TEST(sevennet_from_mirror),
                                     TEST(converts_nequix_mp_by_name),
                                     TEST(failed_downloads),
                                     TEST(interrupted),
                                     TEST(names),
                                     TEST(folders)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
