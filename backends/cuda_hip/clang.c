/* backends/cuda_hip/clang.c - the system's clang and llvm-objdump on HIP kernels: no shell, a
   private folder. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda_hip/gpu.h"

extern char **environ;

static const char *const clangs[] = {"/opt/rocm/llvm/bin/clang",
                                     "clang-22",
                                     "clang-21",
                                     "clang-20",
                                     "clang-19",
                                     "clang-18",
                                     "clang-17",
                                     "clang",
                                     NULL};
static const char *const objdumps[] = {"/opt/rocm/llvm/bin/llvm-objdump",
                                       "llvm-objdump-22",
                                       "llvm-objdump-21",
                                       "llvm-objdump-20",
                                       "llvm-objdump-19",
                                       "llvm-objdump-18",
                                       "llvm-objdump-17",
                                       "llvm-objdump",
                                       NULL};

static bool runs(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

/* Finds the program on PATH. */
static bool find(const char *program, char *path, size_t size) {
  const char *folder = getenv("PATH");
  if (strchr(program, '/')) return snprintf(path, size, "%s", program) < (int)size && runs(path);
  for (; folder && *folder; folder += strcspn(folder, ":"), folder += *folder == ':') {
    int n = (int)strcspn(folder, ":");
    if (n && snprintf(path, size, "%.*s/%s", n, folder, program) < (int)size && runs(path))
      return true;
  }
  return false;
}

static void find_one(const char *const *names, char *path, size_t size) {
  bool found = false;
  for (; *names && !found; names++) found = find(*names, path, size);
  if (!found) path[0] = 0;
}

void clb_gpu_clang_find(char *path, size_t size) { find_one(clangs, path, size); }

void clb_gpu_clang_identity(const char *path, char *text, size_t size) {
  struct stat s;
  bool known = !stat(path, &s);
  snprintf(text, size, "%lld %lld %s", known ? (long long)s.st_size : 0,
           known ? (long long)s.st_mtime : 0, path);
}

/* ---- files ---- */

static bool put_file(const char *path, const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  if (!f) return false;
  bool ok = fwrite(bytes, 1, n, f) == n;
  return !fclose(f) && ok;
}

static bool get_file(const char *path, clb_text *text) {
  char part[4096];
  size_t n;
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  while ((n = fread(part, 1, sizeof part, f))) clb_text_bytes(text, part, n);
  bool ok = !ferror(f);
  fclose(f);
  return ok;
}

/* ---- running ---- */

/* Waits; returns the exit status, or -1. */
static int finish(pid_t child) {
  int status = 0;
  pid_t done;
  do done = waitpid(child, &status, 0);
  while (done < 0 && errno == EINTR);
  return done == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(char *const *argv, const char *log, int *error) {
  posix_spawn_file_actions_t files;
  pid_t child = 0;
  *error = posix_spawn_file_actions_init(&files);
  if (*error) return -1;
  *error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (!*error)
    *error = posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!*error) *error = posix_spawn_file_actions_adddup2(&files, 1, 2);
  if (!*error) *error = posix_spawn(&child, argv[0], &files, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&files);
  return *error ? -1 : finish(child);
}

typedef struct {
  char folder[256], source[280], code[280], log[280];
} places;

static bool make_places(places *p) {
  const char *top = getenv("TMPDIR");
  if (snprintf(p->folder, sizeof p->folder, "%s/clebsch-XXXXXX", top && *top ? top : "/tmp") >=
          (int)sizeof p->folder ||
      !mkdtemp(p->folder))
    return false;
  snprintf(p->source, sizeof p->source, "%s/kernel.hip", p->folder);
  snprintf(p->code, sizeof p->code, "%s/kernel.co", p->folder);
  snprintf(p->log, sizeof p->log, "%s/log", p->folder);
  return true;
}

static void remove_places(const places *p) {
  unlink(p->source);
  unlink(p->code);
  unlink(p->log);
  rmdir(p->folder);
}

bool clb_gpu_clang_knows(clb_gpu *g) {
  places p;
  char target[160];
  int error = 0;
  if (!make_places(&p)) return false;
  snprintf(target, sizeof target, "--offload-arch=%s", g->target);
  char *argv[] = {g->clang,    "-x",        "hip",       "--offload-device-only",
                  "-nogpuinc", "-nogpulib", target,      "-E",
                  "/dev/null", "-o",        "/dev/null", NULL};
  bool knows = run(argv, p.log, &error) == 0;
  remove_places(&p);
  return knows;
}

clb_status clb_gpu_clang(clb_gpu *g, const char *name, const clb_text *text, clb_text *binary) {
  places p;
  clb_text log = {0};
  char target[160];
  int error = 0, status;
  clb_status s = CLB_OK;
  if (!make_places(&p))
    return clb_fail(g->head.error, CLB_ERROR_COMPILE,
                    "%s: no temporary folder (TMPDIR, else /tmp): %s", g->name, strerror(errno));
  snprintf(target, sizeof target, "--offload-arch=%s", g->target);
  char *argv[32] = {
      g->clang,    "-x",        "hip", "--offload-device-only", "--no-gpu-bundle-output",
      "-nogpuinc", "-nogpulib", target};
  int n = 8;
  for (const char *const *o = g->vendor->options; *o && n < 27; o++)
    argv[n++] = (char *)(uintptr_t)*o;
  argv[n++] = p.source;
  argv[n++] = "-o";
  argv[n++] = p.code;
  if (!put_file(p.source, text->s, text->n)) {
    s = clb_fail(g->head.error, CLB_ERROR_COMPILE, "%s: %s cannot be written: %s", g->name,
                 p.source, strerror(errno));
    goto done;
  }
  status = run(argv, p.log, &error);
  get_file(p.log, &log);
  if (error)
    s = clb_fail(g->head.error, CLB_ERROR_COMPILE, "%s: %s cannot be run: %s", g->name, g->clang,
                 strerror(error));
  else if (status || !get_file(p.code, binary))
    s = clb_fail(g->head.error, CLB_ERROR_COMPILE, "%s: %s failed (%d) on %s:\n%s", g->name,
                 g->clang, status, name, log.s ? log.s : "");
done:
  clb_text_free(&log);
  remove_places(&p);
  return s;
}

bool clb_gpu_objdump(const void *binary, size_t bytes, clb_text *listing) {
  places p;
  char program[256];
  int error = 0;
  bool ok = false;
  find_one(objdumps, program, sizeof program);
  if (!program[0] || !make_places(&p)) return false;
  char *argv[] = {program, "-d", p.code, NULL};
  if (put_file(p.code, binary, bytes) && !run(argv, p.log, &error))
    ok = get_file(p.log, listing) && !listing->failed;
  remove_places(&p);
  return ok;
}
