/* tests/runtime/test_ipc.c - memory that another process opens, on every device that has it; what
   is refused where there is none, and where a handle is not one. */
#define _GNU_SOURCE
#include "src/runtime/context.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 5000 };
typedef struct {
  char device[64];
  clb_ipc_handle handle;
  uint64_t bytes;
} request;

static int to_child, from_child;
static pid_t child;

static bool get(int file, void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = read(file, (char *)to + done, bytes - done);
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

static void put(int file, const void *from, size_t bytes) {
  if (write(file, from, bytes) != (ssize_t)bytes) abort();
}

/* The other process: adds 1 to each number of the memory. Answers what is wrong, or nothing. */
static void answer(const request *r, char *said, size_t size) {
  static int32_t x[N];
  clb_context *ctx = NULL;
  clb_buffer *b = NULL;
  clb_status s = clb_context_create(r->device, &ctx);
  if (!s) s = clb_buffer_open_ipc(ctx, &r->handle, &b);
  if (!s && b->memory.bytes != r->bytes) snprintf(said, size, "its size is another");
  if (!s) s = clb_buffer_read(b, 0, x, r->bytes);
  for (size_t i = 0; i < r->bytes / sizeof *x; i++) x[i]++;
  if (!s) s = clb_buffer_write(b, 0, x, r->bytes);
  if (!s) s = clb_wait(ctx);
  if (s) snprintf(said, size, "%s", clb_error(ctx));
  clb_buffer_destroy(&b);
  clb_context_destroy(&ctx);
}

/* Made before this process opens any driver, which none likes to find in a child. */
static void start_child(void) {
  int down[2], up[2];
  if (pipe(down) || pipe(up)) abort();
  child = fork();
  if (child < 0) abort();
  to_child = down[1], from_child = up[0];
  if (child) {
    close(down[0]), close(up[1]);
    return;
  }
  close(down[1]), close(up[0]);
  request r;
  while (get(down[0], &r, sizeof r)) {
    char said[400] = "";
    answer(&r, said, sizeof said);
    put(up[1], said, sizeof said);
  }
  _exit(0);
}

static void on_device(const clb_device_info *info, void *user) {
  static int32_t x[N];
  request r = {.bytes = sizeof x};
  clb_context *ctx;
  clb_buffer *b;
  if (!info->runs) return;
  snprintf(r.device, sizeof r.device, "%s", info->name);
  OK(NULL, clb_context_create(info->name, &ctx));
  const clb_status s = clb_buffer_create_ipc(ctx, r.bytes, &r.handle, &b);
  const bool some = strcmp(info->backend, "opencl") && strcmp(info->backend, "level_zero");
  if (s != (some ? CLB_OK : CLB_ERROR_UNSUPPORTED))
    fail_msg("%s: status %d: %s", info->name, s, clb_error(ctx));
  for (int turn = 0; turn < 2 && !s; turn++) {
    char said[400];
    for (int i = 0; i < N; i++) x[i] = 3 * i + turn;
    OK(ctx, clb_buffer_write(b, 0, x, sizeof x));
    OK(ctx, clb_wait(ctx));
    put(to_child, &r, sizeof r);
    assert_true(get(from_child, said, sizeof said));
    if (*said) fail_msg("%s: %s", info->name, said);
    OK(ctx, clb_buffer_read(b, 0, x, sizeof x));
    for (int i = 0; i < N; i++) assert_int_equal(x[i], 3 * i + turn + 1);
    ++*(int *)user;
  }
  clb_buffer_destroy(&b);
  clb_context_destroy(&ctx);
}

static void processes(void **state) {
  int done = 0;
  (void)state;
  assert_int_equal(clb_devices(on_device, &done), CLB_OK);
  assert_true(done >= 4); /* cpu and cpu:interpreter, twice */
}

/* A handle that another process made, whose numbers are another file's by now, or that is none. */
static void handles(void **state) {
  (void)state;
  clb_context *ctx;
  clb_buffer *b, *seen = NULL;
  clb_ipc_handle good, h;
  int32_t file, pid;
  static const char not [] = "is not it";
  OK(NULL, clb_context_create("cpu", &ctx));
  OK(ctx, clb_buffer_create_ipc(ctx, 0, &good, &b));
  clb_buffer_destroy(&b);
  OK(ctx, clb_buffer_create_ipc(ctx, 4096, &good, &b));
  OK(ctx, clb_buffer_open_ipc(ctx, &good, &seen));
  assert_int_equal(ctx->device->info.held_bytes, 4096 + 32);
  assert_ptr_not_equal(seen->memory.handle, b->memory.handle);
  OK(ctx, clb_buffer_write(b, 8, "0123", 4));
  assert_memory_equal((char *)seen->memory.handle + 8, "0123", 4);
  clb_buffer_destroy(&seen);
#define OPEN(status, says)                                                                         \
  do {                                                                                             \
    NOT_OK(ctx, status, says, clb_buffer_open_ipc(ctx, &h, &seen));                                \
    assert_null(seen);                                                                             \
  } while (0)
  enum { BACKEND = 0, BYTES = 16, PROCESS = 24, FILE_NUMBER = 28, PROOF = 88 };
  h = (clb_ipc_handle){{0}};
  OPEN(CLB_ERROR_UNSUPPORTED, "must be one of memory of cpu");
  h = good, memcpy(h.bytes + BACKEND, "cuda", 5);
  OPEN(CLB_ERROR_UNSUPPORTED, "memory of cpu");
  h = good, h.bytes[BYTES + 2]++;
  OPEN(CLB_ERROR_DEVICE, not );
  h = good, memset(h.bytes + BYTES, 255, 8);
  OPEN(CLB_ERROR_UNSUPPORTED, "memory of cpu");
  h = good, memset(h.bytes + BYTES, 0, 8);
  OPEN(CLB_ERROR_DEVICE, not );
  h = good, h.bytes[PROOF]++;
  OPEN(CLB_ERROR_DEVICE, "that cpu opened is not that of the handle, or copies from there are");
  memcpy(&pid, good.bytes + PROCESS, sizeof pid);
  memcpy(&file, good.bytes + FILE_NUMBER, sizeof file);
  assert_int_equal(pid, getpid());
  const int others[] = {open("/dev/null", O_RDWR), open("/proc/self/exe", O_RDONLY), from_child};
  for (int i = 0; i < 3; i++) {
    h = good, memcpy(h.bytes + FILE_NUMBER, &others[i], sizeof(int32_t));
    assert_int_not_equal(clb_buffer_open_ipc(ctx, &h, &seen), CLB_OK);
    assert_null(seen);
  }
  close(others[0]), close(others[1]);
  clb_buffer_destroy(&b);
  assert_int_equal(ctx->device->info.held_bytes, 0);
  h = good; /* the owner has freed it */
  OPEN(CLB_ERROR_DEVICE, "/proc/");
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "handle is NULL", clb_buffer_open_ipc(ctx, NULL, &seen));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer is NULL", clb_buffer_open_ipc(ctx, &h, NULL));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "handle is NULL", clb_buffer_create_ipc(ctx, 8, NULL, &b));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer is NULL", clb_buffer_create_ipc(ctx, 8, &h, NULL));
  NOT_OK(ctx, CLB_ERROR_MEMORY, "no memory", clb_buffer_create_ipc(ctx, UINT64_MAX, &h, &b));
  NOT_OK(ctx, CLB_ERROR_MEMORY, "no memory", clb_buffer_create_ipc(ctx, UINT64_C(1) << 62, &h, &b));
  assert_int_equal(clb_buffer_create_ipc(NULL, 8, &h, &b), CLB_ERROR_ARGUMENT);
#undef OPEN
  clb_context_destroy(&ctx);
}

/* As many files are open after as before. */
static void nothing_left(void **state) {
  (void)state;
  clb_context *ctx;
  OK(NULL, clb_context_create("cpu:interpreter", &ctx));
  const int before = dup(0);
  close(before);
  for (int i = 0; i < 40; i++) {
    clb_ipc_handle h;
    clb_buffer *b, *seen;
    OK(ctx, clb_buffer_create_ipc(ctx, 10000, &h, &b));
    OK(ctx, clb_buffer_open_ipc(ctx, &h, &seen));
    clb_buffer_destroy(&seen);
    clb_buffer_destroy(&b);
  }
  const int after = dup(0);
  close(after);
  assert_int_equal(after, before);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(processes), cmocka_unit_test(handles),
                                     cmocka_unit_test(nothing_left)};
  signal(SIGPIPE, SIG_IGN);
  start_child();
  const int wrong = cmocka_run_group_tests(tests, NULL, NULL);
  close(to_child);
  waitpid(child, NULL, 0);
  return wrong;
}
