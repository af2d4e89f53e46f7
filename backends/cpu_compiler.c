/* cpu_compiler.c - finds and runs the system's C compiler. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/cache.h"
#include "cpu.h"

/* Exact arithmetic: nothing is contracted or reassociated, integers wrap. */
static const char *const flags[] = {"-O2", "-ftree-slp-vectorize", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
                                    "-fno-strict-aliasing", "-w", "-Wno-psabi", "-shared", "-fPIC"};
enum { FLAGS = sizeof flags / sizeof *flags };

/* ---- running a program, without a shell ---- */

static bool read_all(int fd, clb_text *out) {
  char piece[65536];
  for (;;) {
    ssize_t n = read(fd, piece, sizeof piece);
    if (n > 0) clb_text_bytes(out, piece, (size_t)n);
    else if (n == 0 || errno != EINTR) return n == 0 && !out->failed;
  }
}

/* This process's variables, but TMPDIR; to be freed.  NULL: no memory. */
static const char **variables(const char *tmpdir) {
  size_t n = 0, k = 0;
  while (environ[n]) n++;
  const char **copy = malloc((n + 2) * sizeof *copy);
  for (size_t i = 0; copy && i < n; i++)
    if (strncmp(environ[i], "TMPDIR=", 7)) copy[k++] = environ[i];
  if (copy) copy[k++] = tmpdir, copy[k] = NULL;
  return copy;
}

/* Nothing comes in; stdout and stderr go to `to`.  With a folder: its files are there, and it has a
   process group of its own. */
static int spawn(const char *const *argv, int to, clb_cpu_folder *folder, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  clb_text tmpdir = {0};
  const char **with = NULL;
  if (folder) {
    clb_text_add(&tmpdir, "TMPDIR=%s", folder->path.s);
    if (tmpdir.failed || !(with = variables(tmpdir.s))) return clb_text_free(&tmpdir), ENOMEM;
  }
  int e = posix_spawn_file_actions_init(&actions);
  if (e) goto no_actions;
  if ((e = posix_spawnattr_init(&attributes))) goto no_attributes;
  if (folder) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  e = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (!e) e = posix_spawn_file_actions_adddup2(&actions, to, 1);
  if (!e) e = posix_spawn_file_actions_adddup2(&actions, to, 2);
  if (!e)
    e = posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv,
                     folder ? (char *const *)(uintptr_t)with : environ);
  if (!e && folder) clb_cpu_folder_compiler(folder, *pid);
  posix_spawnattr_destroy(&attributes);
no_attributes:
  posix_spawn_file_actions_destroy(&actions);
no_actions:
  free(with);
  clb_text_free(&tmpdir);
  return e;
}

/* true: it ran and was content.  What it said is added to `log`.  Where the program ignores SIGCHLD its verdict is lost: then what it
   left behind has to tell. */
static bool run(const char *const *argv, clb_cpu_folder *folder, clb_text *log) {
  int pipe_[2], status = 0;
  pid_t pid;
  if (pipe2(pipe_, O_CLOEXEC)) {
    clb_text_add(log, "pipe2: %s\n", strerror(errno));
    return false;
  }
  int e = spawn(argv, pipe_[1], folder, &pid);
  close(pipe_[1]);
  if (e) clb_text_add(log, "%s: %s\n", argv[0], strerror(e));
  bool ok = !e && read_all(pipe_[0], log);
  close(pipe_[0]);
  if (e) return false;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return ok && errno == ECHILD;
  return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- which compiler ---- */

/* What "#define NAME value" gives, without quotes. */
static bool macro(const char *text, const char *name, char *value, size_t size) {
  char line[64];
  snprintf(line, sizeof line, "#define %s ", name);
  const char *at = strstr(text, line);
  if (!at) return false;
  at += strlen(line);
  if (*at == '"') at++;
  snprintf(value, size, "%.*s", (int)strcspn(at, "\"\n"), at);
  return true;
}

static int vector_bytes(const char *macros) {
  static const struct {
    const char *name;
    int bytes;
  } widths[] = {{"__AVX512F__", 64}, {"__AVX2__", 32}, {"__AVX__", 32}};
  char value[8];
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (macro(macros, widths[i].name, value, sizeof value)) return widths[i].bytes;
  return 16;
}

/* Good to 4 ulp.  The compiler is given the file that this process opens: it may have a C library of its own, without. */
static void find_libmvec(const char *macros, clb_cpu_compiler *c) {
  char value[8];
  Dl_info info;
  void *library = macro(macros, "__x86_64__", value, sizeof value) ? dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL) : NULL, *exp = library ? dlsym(library, "_ZGVbN2v_exp") : NULL;
  c->libmvec[0] = 0;
  if (exp && dladdr(exp, &info) && info.dli_fname[0] == '/' && strlen(info.dli_fname) < sizeof c->libmvec) strcpy(c->libmvec, info.dli_fname);
  if (library) dlclose(library);
}

static bool try_compiler(clb_cpu_compiler *c, const char *name, const char *target) {
  const char *argv[] = {name, "-dM", "-E", "-x", "c", "/dev/null", target, NULL};
  clb_text out = {0};
  char value[100];
  bool ok = run(argv, NULL, &out) && out.s && macro(out.s, "__GNUC__", value, sizeof value) && macro(out.s, "__VERSION__", value, sizeof value);
  if (ok) {
    snprintf(c->version, sizeof c->version, "%s%s", strstr(out.s, "#define __clang__") ? "" : "GCC ", value);
    find_libmvec(out.s, c);
    const void *parts[FLAGS + 2] = {out.s, c->libmvec};
    size_t bytes[FLAGS + 2] = {out.n, strlen(c->libmvec)};
    for (int i = 0; i < FLAGS; i++) parts[i + 2] = flags[i], bytes[i + 2] = strlen(flags[i]);
    clb_cache_key key = clb_cache_hash(parts, bytes, FLAGS + 2);
    snprintf(c->features, sizeof c->features, "%016" PRIx64 "%016" PRIx64, key.hash[0], key.hash[1]);
    c->name = name;
    c->target = target;
    c->vector_bytes = vector_bytes(out.s);
  }
  clb_text_free(&out);
  return ok;
}

void clb_cpu_compiler_find(clb_cpu_compiler *c) {
  static const char *const names[] = {"cc", "gcc", "clang"}, *const targets[] = {"-march=native", "-mcpu=native", NULL};
  *c = (clb_cpu_compiler){.vector_bytes = 16};
  clb_cpu_folders_sweep();
  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
      if (try_compiler(c, names[n], targets[t])) return;
}

/* ---- from text to a shared library ---- */

static bool write_file(const char *path, const clb_text *text) {
  FILE *f = fopen(path, "wbe");
  if (!f) return false;
  bool ok = fwrite(text->s, 1, text->n, f) == text->n;
  return !fclose(f) && ok;
}

static bool read_file(const char *path, clb_text *out) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool ok = read_all(fd, out) && out->n;
  close(fd);
  return ok;
}

static clb_status compile_in(const clb_cpu_compiler *c, const char *kernel, clb_cpu_folder *folder, const clb_text *source, clb_text *binary,
                             clb_error_sink *error) {
  clb_text from = {0}, to = {0}, log = {0};
  clb_status s = CLB_OK;
  clb_text_add(&from, "%s/kernel.c", folder->path.s);
  clb_text_add(&to, "%s/kernel.so", folder->path.s);
  const char *argv[FLAGS + 9] = {c->name};
  int n = 1;
  for (int i = 0; i < FLAGS; i++) argv[n++] = flags[i];
  argv[n++] = "-o";
  argv[n++] = to.s;
  argv[n++] = from.s;
  argv[n++] = "-lm";
  if (c->libmvec[0]) argv[n++] = "-DMVEC", argv[n++] = c->libmvec;
  argv[n++] = c->target;
  if (from.failed || to.failed) s = clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory", kernel);
  else if (!write_file(from.s, source)) s = clb_fail(error, CLB_ERROR_DRIVER, "%s: cannot write its source in the folder for temporary files: %s", kernel, strerror(errno));
  else if (!run(argv, folder, &log) || !read_file(to.s, binary)) s = clb_fail(error, CLB_ERROR_COMPILE, "%s: the C compiler %s failed:\n%s", kernel, c->name, log.s ? log.s : "");
  clb_text_free(&from);
  clb_text_free(&to);
  clb_text_free(&log);
  return s;
}

clb_status clb_cpu_compile(const clb_cpu_compiler *c, const char *kernel, const clb_text *source, clb_text *binary, clb_error_sink *error) {
  clb_cpu_folder folder;
  clb_status s = clb_cpu_folder_make(&folder, kernel, error);
  if (s) return s;
  s = compile_in(c, kernel, &folder, source, binary, error);
  clb_cpu_folder_remove(&folder);
  return s;
}
