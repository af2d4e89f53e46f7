/* tests/dynamics/test_md_order.c - power may fail at any moment: all that a restart refers to is on
   the disk before the restart gets its name. The test watches the system calls of `clebsch md`. */
#include "tests/dynamics/md_runner.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { MAX_FILES = 64, STEPS = 5 };

typedef struct {
  pid_t pid;
  bool dirty[MAX_FILES]; /* by descriptor: written to since it was last flushed */
  int restarts, records; /* restarts that got their name; flushes of csv and trajectory */
} watched;

static bool ends_in(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

/* The file of a descriptor. */
static const char *file_of(const watched *w, uint64_t fd) {
  static char name[4096];
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)w->pid, (int)fd);
  const ssize_t n = readlink(path, name, sizeof name - 1);
  name[n < 0 ? 0 : n] = 0;
  return name;
}

static const char *text_at(const watched *w, uint64_t address) {
  static char text[512];
  struct iovec here = {text, sizeof text - 1},
               there = {(void *)(uintptr_t)address, sizeof text - 1};
  ssize_t n = -1;
  for (; n < 0 && there.iov_len; there.iov_len /= 2)
    n = process_vm_readv(w->pid, &here, 1, &there, 1, 0);
  text[n < 0 ? 0 : n] = 0;
  return text;
}

static void expect_flushed(const watched *w, const char *what) {
  for (int fd = 3; fd < MAX_FILES; fd++)
    if (w->dirty[fd]) fail_msg("%s, but %s is not on the disk", what, file_of(w, (uint64_t)fd));
}

/* Stopped at the entry of a system call. */
static void see(watched *w, uint64_t call, const uint64_t *arg) {
  const bool writes = call == SYS_write || call == SYS_pwrite64 || call == SYS_writev;
  const bool flushes = call == SYS_fdatasync || call == SYS_fsync;
  if ((writes || flushes) && arg[0] < MAX_FILES) {
    const char *name = file_of(w, arg[0]);
    const bool log = ends_in(name, "/o.csv") || ends_in(name, "/o.xyz");
    /* a file without a name is the restart that is being written */
    if (writes && (log || strstr(name, "(deleted)"))) w->dirty[arg[0]] = true;
    if (flushes && log) w->records++;
    if (flushes) w->dirty[arg[0]] = false;
  }
  if (call == SYS_linkat) expect_flushed(w, "a restart is given a temporary name");
  const int to = call == SYS_renameat || call == SYS_renameat2 ? 3 : 1;
  bool renames = to == 3;
#ifdef SYS_rename
  renames |= call == SYS_rename;
#endif
  if (!renames || !ends_in(text_at(w, arg[to]), "o")) return;
  expect_flushed(w, "a restart is named");
  w->restarts++;
}

static pid_t start_watched(void) {
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid) return pid;
  word_list w;
  split_words(&w, getenv("CLB_COMMAND"),
              "md -m model -s pair.xyz --steps 5 --dt 1 --every 1 --csv o.csv --trajectory o.xyz "
              "--restart o --device cpu:interpreter");
  const int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  setenv("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=0", 1); /* it cannot be traced */
  if (out < 0 || dup2(out, 1) < 0 || ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(77);
  raise(SIGSTOP);
  execv(w.argv[0], w.argv);
  _exit(78);
}

static void flushes_before_it_names(void **state) {
  (void)state;
  watched w = {.pid = start_watched()};
  int status, signal_number = 0;
  assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip_because("nothing may be traced here");
  assert_true(WIFSTOPPED(status));
  assert_int_equal(
      ptrace(PTRACE_SETOPTIONS, w.pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)),
      0);
  for (;;) {
    struct __ptrace_syscall_info info;
    assert_int_equal(ptrace(PTRACE_SYSCALL, w.pid, NULL, (void *)(intptr_t)signal_number), 0);
    assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
    if (!WIFSTOPPED(status)) break;
    const bool call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal_number = call || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    if (call && ptrace(PTRACE_GET_SYSCALL_INFO, w.pid, (void *)sizeof info, &info) > 0 &&
        info.op == PTRACE_SYSCALL_INFO_ENTRY)
      see(&w, info.entry.nr, info.entry.args);
  }
  assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
  assert_int_equal(w.restarts, STEPS + 1);
  assert_int_equal(w.records, 2 * (STEPS + 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(flushes_before_it_names)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
