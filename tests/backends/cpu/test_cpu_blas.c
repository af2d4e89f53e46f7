/* tests/backends/cpu/test_cpu_blas.c - matrix products of the cpu backend through an installed
   BLAS: on the backend's own threads only, beside a BLAS of the caller's, and while another thread
   forks. */
#define _GNU_SOURCE
#include "tests/test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

enum { M = 700, N = 260, K = 300, PATIENCE = 60 };

typedef struct {
  clb_error_sink error;
  clb_device *device;
  clb_memory a, b, c;
} product;

static int tasks(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/task");
  for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

/* The kernel lists a thread for a moment after it was joined. */
static int tasks_left(int expected) {
  for (int i = 0; i < 1000 && tasks() > expected; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return tasks();
}

static bool open_product(product *p, char *rest) {
  bool partly;
  uint64_t seed = 3;
  *p = (product){.device = NULL};
  if (clb_backend_cpu.open("cpu", rest, NULL, &p->error, &p->device)) return false;
  if (clb_backend_cpu.open_blas(p->device, CLB_F32, &partly)) return false;
  clb_memory *all[] = {&p->a, &p->b, &p->c};
  const int64_t n[] = {(int64_t)M * K, (int64_t)K * N, (int64_t)M * N};
  for (int i = 0; i < 3; i++) {
    if (clb_backend_cpu.alloc(p->device, (uint64_t)n[i] * sizeof(float), all[i])) return false;
    for (int64_t k = 0; k < n[i]; k++) ((float *)all[i]->handle)[k] = (float)test_random(&seed);
  }
  return true;
}

static bool multiply(product *p) {
  const clb_gemm_desc d = {.m = M,
                           .n = N,
                           .k = K,
                           .count = 1,
                           .a = &p->a,
                           .b = &p->b,
                           .c = &p->c,
                           .ld_a = K,
                           .ld_b = N,
                           .ld_c = N};
  return !clb_backend_cpu.gemm(p->device, CLB_F32, &d);
}

static void close_product(product *p) {
  clb_memory *all[] = {&p->a, &p->b, &p->c};
  for (int i = 0; i < 3 && p->device; i++) clb_backend_cpu.free(p->device, all[i]);
  clb_backend_cpu.close(p->device);
  clb_text_free(&p->error.text);
}

static void need_blas(product *p, char *rest) {
  if (open_product(p, rest)) return;
  const bool none = p->device && !p->device->blas;
  close_product(p);
  if (none) skip_because("no BLAS for CPUs is installed");
  fail_msg("the product could not be prepared");
}

/* The BLAS starts no thread, whatever its environment says: N threads are N threads, and give the
   bits of one. */
static void its_own_threads(void **state) {
  static char *const rests[] = {":threads=1", ":threads=2", ":threads=3"};
  float *first = malloc(sizeof(float) * M * N);
  (void)state;
  assert_non_null(first);
  setenv("OPENBLAS_NUM_THREADS", "4", 1);
  for (int i = 0; i < 3; i++) {
    product p;
    const int before = tasks();
    need_blas(&p, rests[i]);
    assert_true(multiply(&p));
    assert_int_equal(tasks() - before, i);
    if (!i) memcpy(first, p.c.handle, sizeof(float) * M * N);
    assert_memory_equal(p.c.handle, first, sizeof(float) * M * N);
    close_product(&p);
    assert_int_equal(tasks_left(before), before);
  }
  free(first);
  unsetenv("OPENBLAS_NUM_THREADS");
}

/* OpenBLAS as a program that links with it, or NumPy, has it: with as many threads as it likes. */
static void beside_the_callers(void **state) {
  product p;
  void *theirs = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  (void)state;
  if (!theirs) skip_because("no libopenblas.so.0");
  int (*get)(void);
  void (*set)(int);
  *(void **)&get = dlsym(theirs, "openblas_get_num_threads");
  *(void **)&set = dlsym(theirs, "openblas_set_num_threads");
  assert_true(get && set);
  set(3);
  const int wanted = get(), before = tasks();
  need_blas(&p, ":threads=1");
  assert_true(multiply(&p));
  assert_int_equal(get(), wanted);
  assert_int_equal(tasks(), before);
  close_product(&p);
  dlclose(theirs);
}

/* ---- forks ---- */

static atomic_bool enough;
static atomic_int steps;

static void *multiplies(void *user) {
  while (!atomic_load(&enough)) {
    if (!multiply(user)) return NULL;
    atomic_fetch_add(&steps, 1);
  }
  return user;
}

static void wait_for_steps(int more) {
  const int goal = atomic_load(&steps) + more;
  for (int i = 0; i < 1000 * PATIENCE && atomic_load(&steps) < goal; i++) usleep(1000);
  if (atomic_load(&steps) < goal) fail_msg("the thread that computes hangs");
}

/* The child computes, too, and has a child that does. */
static int child(int depth) {
  product p;
  alarm(PATIENCE);
  if (!open_product(&p, ":threads=2") || !multiply(&p)) return 1;
  const pid_t pid = depth ? fork() : 0;
  int status = 0;
  if (depth && !pid) _exit(child(depth - 1));
  if (depth && (waitpid(pid, &status, 0) != pid || status)) return 2;
  const bool good = multiply(&p);
  close_product(&p);
  return good ? 0 : 3;
}

static void forks_while_computing(void **state) {
  product p;
  pthread_t busy;
  void *well;
  (void)state;
  need_blas(&p, ":threads=2");
  assert_int_equal(pthread_create(&busy, NULL, multiplies, &p), 0);
  wait_for_steps(1);
  for (int i = 0; i < 12; i++) {
    int status;
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) _exit(i % 4 ? 0 : child(1));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    wait_for_steps(2);
    usleep(300 * (useconds_t)i);
  }
  atomic_store(&enough, true);
  assert_int_equal(pthread_join(busy, &well), 0);
  assert_non_null(well);
  close_product(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(its_own_threads),
                                     cmocka_unit_test(beside_the_callers),
                                     cmocka_unit_test(forks_while_computing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
