/* backends/cpu/compiler.c - finds and runs the system's C compiler. */
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

#include "src/base/cache_folder.h"
#include "src/base/hash.h"
#include "src/base/dl.h"
#include "backends/cpu/cpu.h"

/* Exact arithmetic: nothing is contracted or reassociated, integers wrap. */
static const char *const flags[] = {"-O2",
                                    "-ftree-slp-vectorize",
                                    "-std=gnu11",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fwrapv",
                                    "-fno-strict-aliasing",
                                    "-w",
                                    "-Wno-psabi",
                                    "-shared",
                                    "-fPIC"};
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

/* The environment of this process with another TMPDIR; freed by the caller. NULL: no memory. */
static const char **variables(const char *tmpdir) {
  size_t n = 0, k = 0;
  while (environ[n]) n++;
  const char **copy = malloc((n + 2) * sizeof *copy);
  for (size_t i = 0; copy && i < n; i++)
    if (strncmp(environ[i], "TMPDIR=", 7)) copy[k++] = environ[i];
  if (copy) copy[k++] = tmpdir, copy[k] = NULL;
  return copy;
}

/* stdin is empty; stdout and stderr go to `to`. With a folder: its temporary files are there, and
   it has its own process group. */
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

/* RAN: successfully. MISSING: there is no such program. NO_MEMORY: this process ran out of memory;
   the result is unknown. */
typedef enum { RAN, FAILED, MISSING, NO_MEMORY } verdict;

/* Appends its output, or the reason why it did not start, to `log`. If this process ignores SIGCHLD
   the exit status is lost; the caller must then look at the files that were written. */
static verdict run(const char *const *argv, clb_cpu_folder *folder, clb_text *log) {
  int pipe_[2], status = 0;
  pid_t pid;
  if (pipe2(pipe_, O_CLOEXEC)) {
    clb_text_add(log, "pipe2: %s\n", strerror(errno));
    return FAILED;
  }
  int e = spawn(argv, pipe_[1], folder, &pid);
  close(pipe_[1]);
  if (e) clb_text_add(log, "%s: %s\n", argv[0], strerror(e));
  bool ok = !e && read_all(pipe_[0], log);
  close(pipe_[0]);
  while (!e && waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) {
      ok = ok && errno == ECHILD;
      break;
    }
  if (e == ENOMEM || log->failed) return NO_MEMORY;
  if (e) return e == ENOENT ? MISSING : FAILED;
  return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? RAN : FAILED;
}

/* ---- properties of the compiler ---- */

/* The value in "#define NAME value", without quotes. */
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

/* Accurate to 4 ulp. The compiler is given the path of the library that this process opens, because
   its own C library may not have one. */
static bool find_libmvec(const char *macros, clb_cpu_compiler *c) { /* false: no memory for the
                                                                       search */
  char value[8];
  Dl_info info;
  const bool here = macro(macros, "__x86_64__", value, sizeof value);
  void *library = here ? dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL) : NULL,
       *exp = library ? dlsym(library, "_ZGVbN2v_exp") : NULL;
  c->libmvec[0] = 0;
  if (here && !exp && clb_dl_lacked_memory(dlerror())) return false;
  if (exp && dladdr(exp, &info) && info.dli_fname[0] == '/' &&
      strlen(info.dli_fname) < sizeof c->libmvec)
    strcpy(c->libmvec, info.dli_fname);
  if (library) dlclose(library);
  return true;
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

static clb_status compile_in(const clb_cpu_compiler *c, const char *kernel, clb_cpu_folder *folder,
                             const clb_text *source, clb_text *binary, clb_error_sink *error) {
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
  else if (!write_file(from.s, source))
    s = clb_fail(error, CLB_ERROR_DRIVER,
                 "%s: cannot write %s: %s; TMPDIR may name another place for such files", kernel,
                 from.s, strerror(errno));
  else {
    const verdict v = run(argv, folder, &log);
    if (v == NO_MEMORY || (v == RAN && !read_file(to.s, binary) && binary->failed))
      s = clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory to run the C compiler %s", kernel,
                   c->name);
    else if (v != RAN || !binary->n)
      s = clb_fail(error, CLB_ERROR_COMPILE,
                   "%s: the C compiler %s failed, with files in %s (see TMPDIR):\n%s", kernel,
                   c->name, folder->path.s, log.s ? log.s : "");
  }
  clb_text_free(&from);
  clb_text_free(&to);
  clb_text_free(&log);
  return s;
}

clb_status clb_cpu_compile(const clb_cpu_compiler *c, const char *kernel, const clb_text *source,
                           clb_text *binary, clb_error_sink *error) {
  clb_cpu_folder folder;
  clb_status s = clb_cpu_folder_make(&folder, kernel, error);
  if (s) return s;
  s = compile_in(c, kernel, &folder, source, binary, error);
  clb_cpu_folder_remove(&folder);
  return s;
}

/* ---- which compiler ---- */

/* Keeps the first line of its output. */
static void remember_why(clb_cpu_compiler *c, const char *name, const char *said) {
  said += strspn(said, "\n");
  snprintf(c->why, sizeof c->why, "%s: %.*s", name, (int)strcspn(said, "\n"), said);
}

/* A compiler without its linker, or without the C library's files, is unusable. An empty file in
   the cache records that this one has linked before. */
static verdict links(clb_cpu_compiler *c) {
  char name[sizeof c->features + 32];
  clb_text known = {0}, source = {0}, out = {0};
  clb_error_sink error = {0};
  verdict v = RAN;
  snprintf(name, sizeof name, ".%s-%s", c->name, c->features);
  const bool cached = clb_cache_path(name, &known);
  if (!cached || access(known.s, F_OK)) {
    clb_text_add(&source, "double clb_links(double x) { return __builtin_exp(x); }\n");
    const clb_status s = source.failed || known.failed
                             ? CLB_ERROR_MEMORY
                             : clb_cpu_compile(c, "a first program", &source, &out, &error);
    if (!s && cached) clb_cache_write(known.s, NULL, NULL, 0);
    v = s == CLB_ERROR_MEMORY    ? NO_MEMORY
        : s == CLB_ERROR_COMPILE ? FAILED
                                 : RAN; /* a full disk is reported when a kernel is compiled */
    const char *said = v == FAILED && error.text.s ? strchr(error.text.s, '\n') : NULL;
    if (said) remember_why(c, c->name, said);
  }
  clb_text_free(&known);
  clb_text_free(&source);
  clb_text_free(&out);
  clb_text_free(&error.text);
  return v;
}

static verdict try_compiler(clb_cpu_compiler *c, const char *name, const char *target) {
  const char *argv[] = {name, "-dM", "-E", "-x", "c", "/dev/null", target, NULL};
  clb_text out = {0};
  char value[100];
  verdict v = run(argv, NULL, &out);
  if (v == FAILED && out.s) remember_why(c, name, out.s);
  if (v == RAN && !(out.s && macro(out.s, "__GNUC__", value, sizeof value) &&
                    macro(out.s, "__VERSION__", value, sizeof value)))
    v = FAILED;
  if (v == RAN && !find_libmvec(out.s, c)) v = NO_MEMORY;
  if (v == RAN) {
    snprintf(c->version, sizeof c->version, "%s%s",
             strstr(out.s, "#define __clang__") ? "" : "GCC ", value);
    const void *parts[FLAGS + 2] = {out.s, c->libmvec};
    size_t bytes[FLAGS + 2] = {out.n, strlen(c->libmvec)};
    for (int i = 0; i < FLAGS; i++) parts[i + 2] = flags[i], bytes[i + 2] = strlen(flags[i]);
    clb_hash key = clb_hash_parts(parts, bytes, FLAGS + 2);
    snprintf(c->features, sizeof c->features, "%016" PRIx64 "%016" PRIx64, key.word[0],
             key.word[1]);
    c->name = name;
    c->target = target;
    c->vector_bytes = vector_bytes(out.s);
    v = links(c);
  }
  clb_text_free(&out);
  return v;
}

/* Tries those on PATH. */
static verdict ask(clb_cpu_compiler *c) {
  static const char *const targets[] = {"-march=native", "-mcpu=native", NULL};
  char why[sizeof c->why] = "";
  for (int n = 0; n < CLB_CPU_COMPILERS; n++) {
    *c = (clb_cpu_compiler){.vector_bytes = 16};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
      const verdict v = try_compiler(c, clb_cpu_compilers[n], targets[t]);
      if (v == NO_MEMORY) c->name = clb_cpu_compilers[n];
      if (v == RAN || v == NO_MEMORY) return v;
      if (v == MISSING) break;
    }
    if (!*why) strcpy(why, c->why);
  }
  *c = (clb_cpu_compiler){.vector_bytes = 16};
  strcpy(c->why, *why ? why : "no cc, gcc or clang on PATH");
  return MISSING;
}

clb_status clb_cpu_compiler_find(clb_cpu_compiler *c, clb_error_sink *error) {
  const clb_hash programs = clb_cpu_programs();
  if (clb_cpu_compiler_known(&programs, c)) return CLB_OK;
  clb_cpu_folders_sweep();
  const verdict v = ask(c);
  if (v == NO_MEMORY)
    return clb_fail(error, CLB_ERROR_MEMORY, "cpu: no memory to run the C compiler %s", c->name);
  c->runs = v == RAN;
  if (c->runs) clb_cpu_compiler_keep(&programs, c);
  else clb_cpu_compiler_remember(c);
  return CLB_OK;
}
