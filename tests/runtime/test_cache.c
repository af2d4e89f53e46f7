/* tests/runtime/test_cache.c - kernels kept on disk: found again, damaged ones are a miss, two
   processes may race. */
#include "tests/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clebsch/clebsch.h>

#include "src/runtime/kernel_cache.h"

static char dir[64];
static clb_text trouble;

static int fresh(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/clebsch-cache-XXXXXX");
  return !mkdtemp(dir) || setenv("CLB_CACHE_DIR", dir, 1);
}

/* The k-th file in the folder; NULL after the last. */
static const char *file(int k) {
  static char path[512];
  DIR *d = opendir(dir);
  const char *found = NULL;
  for (struct dirent *e; d && (e = readdir(d)) && !found;)
    if (e->d_name[0] != '.' && !k--)
      snprintf(path, sizeof path, "%s/%s", dir, e->d_name), found = path;
  if (d) closedir(d);
  return found;
}

static int clean(void **state) {
  (void)state;
  struct dirent *e;
  DIR *d = opendir(dir);
  while (d && (e = readdir(d)))
    unlinkat(dirfd(d), e->d_name, 0); /* compilers remembered by backends are hidden */
  if (d) closedir(d);
  return rmdir(dir);
}

static clb_hash key_of(const char *text) {
  const void *parts[] = {text};
  size_t bytes[] = {strlen(text)};
  return clb_hash_parts(parts, bytes, 1);
}

static void parts_matter(void **state) {
  (void)state;
  const void *a[] = {"ab", "c"}, *b[] = {"a", "bc"};
  size_t na[] = {2, 1}, nb[] = {1, 2};
  clb_hash x = clb_hash_parts(a, na, 2), y = clb_hash_parts(b, nb, 2), z = clb_hash_parts(a, na, 2);
  assert_memory_not_equal(&x, &y, sizeof x);
  assert_memory_equal(&x, &z, sizeof x);
  assert_true(x.word[0] != x.word[1]);
}

static void kept_and_found(void **state) {
  (void)state;
  clb_hash key = key_of("kernel"), other = key_of("another");
  clb_text t = {0};
  assert_false(clb_cache_get(&key, &t));
  clb_cache_put(&key, "binary", 6, &trouble);
  assert_true(clb_cache_get(&key, &t));
  assert_int_equal(t.n, 6);
  assert_memory_equal(t.s, "binary", 6);
  assert_false(clb_cache_get(&other, &t));
  clb_text_free(&t);
}

/* Every single byte changed, every length cut, and a file under another key's name. */
static void damage_is_a_miss(void **state) {
  (void)state;
  clb_hash key = key_of("kernel"), other = key_of("another");
  clb_cache_put(&key, "binary", 6, &trouble);
  const char *path = file(0);
  unsigned char good[256];
  FILE *f = fopen(path, "rb");
  size_t n = fread(good, 1, sizeof good, f);
  fclose(f);
  assert_null(file(1)); /* no temporary file is left */
  for (size_t i = 0; i < 2 * n; i++) {
    unsigned char bad[256];
    clb_text t = {0};
    memcpy(bad, good, n);
    bad[i % n] ^= 0x10;
    f = fopen(path, "wb");
    fwrite(i < n ? bad : good, 1, i < n ? n : i - n, f);
    fclose(f);
    assert_false(clb_cache_get(&key, &t));
    assert_int_equal(t.n, 0);
    clb_text_free(&t);
  }
  char name[600];
  snprintf(name, sizeof name, "%s/%016llx%016llx", dir, (unsigned long long)other.word[0],
           (unsigned long long)other.word[1]);
  f = fopen(name, "wb");
  fwrite(good, 1, n, f);
  fclose(f);
  clb_text t = {0};
  assert_false(clb_cache_get(&other, &t));
  clb_text_free(&t);
}

/* In the place of an entry there is a folder, or a link to nothing, to itself, or to an endless
   device: a miss, and only the folder cannot be replaced. */
static void other_things_are_a_miss(void **state) {
  static const char *const targets[] = {NULL, "/nowhere/at all", "itself", "/dev/zero"};
  (void)state;
  clb_hash key = key_of("kernel");
  clb_cache_put(&key, "binary", 6, &trouble);
  assert_null(trouble.s);
  char path[600];
  snprintf(path, sizeof path, "%s", file(0));
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    clb_text t = {0};
    const bool is_folder = !targets[i], is_itself = i == 2;
    assert_int_equal(unlink(path), 0);
    if (is_folder) assert_int_equal(mkdir(path, 0700), 0);
    else assert_int_equal(symlink(is_itself ? path : targets[i], path), 0);
    assert_false(clb_cache_get(&key, &t));
    assert_int_equal(t.n, 0);
    clb_cache_put(&key, "binary", 6, &trouble);
    assert_int_equal(trouble.s != NULL, is_folder);
    assert_int_equal(clb_cache_get(&key, &t), !is_folder);
    assert_null(file(1)); /* no temporary file is left */
    clb_text_free(&t);
    clb_text_free(&trouble);
    if (is_folder) {
      assert_int_equal(rmdir(path), 0);
      clb_cache_put(&key, "binary", 6, &trouble);
    }
  }
}

static void off_and_unwritable(void **state) {
  (void)state;
  clb_hash key = key_of("kernel");
  clb_text t = {0};
  setenv("CLB_CACHE_DIR", "off", 1);
  clb_cache_put(&key, "binary", 6, &trouble);
  assert_null(trouble.s);
  assert_false(clb_cache_get(&key, &t));
  setenv("CLB_CACHE_DIR", "/proc/nowhere", 1);
  for (int i = 0; i < 2; i++) clb_cache_put(&key, "binary", 6, &trouble); /* reported once */
  assert_string_equal(trouble.s,
                      "kernels cannot be kept in the cache folder '/proc/nowhere': No such file or "
                      "directory; they are compiled again every time, unless "
                      "CLB_CACHE_DIR names another folder");
  assert_false(clb_cache_get(&key, &t));
  clb_text_free(&trouble);
  setenv("CLB_CACHE_DIR", dir, 1);
}

static void obeys_umask(void **state) {
  (void)state;
  static const mode_t masks[] = {0002, 0022, 0077, 0};
  clb_hash key = key_of("kernel");
  const mode_t before = umask(0);
  for (int i = 0; i < 4; i++) {
    struct stat about;
    umask(masks[i]);
    clb_cache_put(&key, "binary", 6, &trouble);
    umask(before);
    assert_int_equal(stat(file(0), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0666 & ~masks[i]);
  }
  assert_null(trouble.s);
}

/* Two processes write the same key repeatedly while this one reads: it always reads complete
   entries. */
static void race(void **state) {
  (void)state;
  clb_hash key = key_of("kernel");
  char content[2][5000];
  pid_t child[2];
  for (int c = 0; c < 2; c++) {
    memset(content[c], 'a' + c, sizeof content[c]);
    child[c] = fork();
    if (child[c] == 0) {
      for (int i = 0; i < 200; i++) clb_cache_put(&key, content[c], sizeof content[c], &trouble);
      _exit(0);
    }
  }
  int seen = 0, alive = 2;
  while (alive) {
    clb_text t = {0};
    if (clb_cache_get(&key, &t)) {
      seen++;
      assert_int_equal(t.n, sizeof content[0]);
      assert_true(!memcmp(t.s, content[0], t.n) || !memcmp(t.s, content[1], t.n));
    }
    clb_text_free(&t);
    int status;
    if (waitpid(-1, &status, WNOHANG) > 0) {
      assert_int_equal(status, 0);
      alive--;
    }
  }
  assert_true(seen > 0);
  assert_null(file(1));
}

/* Through the API: a second context finds the binary; a damaged one is compiled again and gives the
   same numbers. */
static void through_the_api(void **state) {
  (void)state;
  static const int degrees[] = {0, 1, 2};
  float x[3] = {1, 2, 3}, first[9], y[9];
  for (int turn = 0; turn < 3; turn++) {
    clb_context *ctx;
    clb_op *op;
    clb_rows rx = {0}, ry = {0};
    clb_spherical_harmonics_desc d = {
        degrees, 3, CLB_COMPONENT, 0, CLB_F32, CLB_F32, 0, CLB_PASS_BIT(CLB_FORWARD)};
    if (turn == 2) assert_int_equal(truncate(file(0), 100), 0);
    assert_int_equal(clb_context_create("cpu", &ctx), CLB_OK);
    assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &op), CLB_OK);
    assert_non_null(file(0));
    assert_null(file(1));
    assert_int_equal(clb_buffer_create(ctx, sizeof x, &rx.buffer), CLB_OK);
    assert_int_equal(clb_buffer_create(ctx, sizeof y, &ry.buffer), CLB_OK);
    assert_int_equal(clb_buffer_write(rx.buffer, 0, x, sizeof x), CLB_OK);
    assert_int_equal(clb_spherical_harmonics_forward(op, 1, rx, ry), CLB_OK);
    assert_int_equal(clb_buffer_read(ry.buffer, 0, turn ? y : first, sizeof y), CLB_OK);
    if (turn) assert_memory_equal(y, first, sizeof y);
    clb_buffer_destroy(&rx.buffer);
    clb_buffer_destroy(&ry.buffer);
    clb_op_destroy(&op);
    clb_context_destroy(&ctx);
  }
}

/* The context reports it; its results are unchanged. */
static void folder_is_a_file(void **state) {
  (void)state;
  static const int degrees[] = {0, 1};
  clb_spherical_harmonics_desc d = {
      degrees, 2, CLB_COMPONENT, 0, CLB_F32, CLB_F32, 0, CLB_PASS_BIT(CLB_FORWARD)};
  clb_hash key = key_of("kernel");
  clb_context *ctx;
  clb_op *op;
  char inside[600];
  clb_cache_put(&key, "binary", 6, &trouble);
  snprintf(inside, sizeof inside, "%s/more", file(0));
  setenv("CLB_CACHE_DIR", inside, 1);
  assert_null(clb_context_note(NULL));
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  assert_null(clb_context_note(ctx));
  assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &op), CLB_OK);
  assert_non_null(strstr(clb_context_note(ctx), inside));
  assert_non_null(strstr(clb_context_note(ctx), "Not a directory"));
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_matter),
      cmocka_unit_test_setup_teardown(kept_and_found, fresh, clean),
      cmocka_unit_test_setup_teardown(damage_is_a_miss, fresh, clean),
      cmocka_unit_test_setup_teardown(other_things_are_a_miss, fresh, clean),
      cmocka_unit_test_setup_teardown(off_and_unwritable, fresh, clean),
      cmocka_unit_test_setup_teardown(obeys_umask, fresh, clean),
      cmocka_unit_test_setup_teardown(folder_is_a_file, fresh, clean),
      cmocka_unit_test_setup_teardown(race, fresh, clean),
      cmocka_unit_test_setup_teardown(through_the_api, fresh, clean),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
