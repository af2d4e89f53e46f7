/* backends/cpu/known_compiler.c - what is known of compilers from before: in this process, so that
   they are not asked again, and in the cache folder, so that compiled kernels are used where there
   is none now. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/cache_folder.h"
#include "src/base/hash.h"
#include "backends/cpu/cpu.h"

enum { FILE_BYTES = 4096 };

const char *const clb_cpu_compilers[CLB_CPU_COMPILERS] = {"cc", "gcc", "clang"};

/* The first bytes of a text file; false: there is none. */
static bool read_start(const char *path, char text[FILE_BYTES]) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? -1 : read(fd, text, FILE_BYTES - 1);
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

/* ---- the processor ---- */

void clb_cpu_info(const char *key, char *value, size_t size) {
  char text[FILE_BYTES];
  const char *colon;
  read_start("/proc/cpuinfo", text);
  snprintf(value, size, "unknown");
  for (const char *line = text; line && *line;
       line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
    if (strncmp(line, key, strlen(key)) || !(colon = strchr(line, ':')) || colon[1] != ' ')
      continue;
    snprintf(value, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    break;
  }
}

/* What "native" means to a compiler. */
static clb_hash processor(void) {
  static const char *const keys[] = {"vendor_id",       "cpu family",       "model",    "flags",
                                     "CPU implementer", "CPU architecture", "CPU part", "Features"};
  enum { KEYS = sizeof keys / sizeof *keys };
  char value[KEYS][FILE_BYTES];
  const void *parts[KEYS];
  size_t bytes[KEYS];
  for (int i = 0; i < KEYS; i++) {
    clb_cpu_info(keys[i], value[i], sizeof value[i]);
    parts[i] = value[i];
    bytes[i] = strlen(value[i]);
  }
  return clb_hash_parts(parts, bytes, KEYS);
}

/* ---- in the cache folder ---- */

/* The file of this processor; false: there is no folder. */
static bool file_of(clb_text *path) {
  char name[48];
  const clb_hash h = processor();
  snprintf(name, sizeof name, ".compiler-%016" PRIx64 "%016" PRIx64, h.word[0], h.word[1]);
  return clb_cache_path(name, path);
}

/* name, version, features, vector_bytes and a sum of these, each on a line. */
static void write_lines(const clb_cpu_compiler *c, clb_text *lines) {
  clb_text_add(lines, "%s\n%s\n%s\n%d\n", c->name, c->version, c->features, c->vector_bytes);
  clb_text_add(lines, "%016" PRIx64 "\n", clb_hash_bytes(1, lines->s, lines->n));
}

static bool read_lines(char *text, clb_cpu_compiler *c) {
  enum { LINES = 5 };
  char *line[LINES], *rest = text, *end;
  for (int i = 0; i < LINES; i++) {
    line[i] = strsep(&rest, "\n");
    if (!rest) return false;
  }
  for (int i = 0; i < CLB_CPU_COMPILERS; i++)
    if (!strcmp(clb_cpu_compilers[i], line[0])) c->name = clb_cpu_compilers[i];
  if (!c->name || strlen(line[1]) >= sizeof c->version || strlen(line[2]) >= sizeof c->features)
    return false;
  strcpy(c->version, line[1]);
  strcpy(c->features, line[2]);
  c->vector_bytes = (int)strtol(line[3], &end, 10);
  clb_text again = {0};
  write_lines(c, &again);
  const size_t n = strlen(line[4]);
  const bool same = !again.failed && !strncmp(again.s + again.n - n - 1, line[4], n) && n == 16;
  clb_text_free(&again);
  return same && (c->vector_bytes == 16 || c->vector_bytes == 32 || c->vector_bytes == 64);
}

bool clb_cpu_compiler_remember(clb_cpu_compiler *c) {
  clb_text path = {0};
  char text[FILE_BYTES];
  clb_cpu_compiler found = {.vector_bytes = 0};
  const bool good = file_of(&path) && read_start(path.s, text) && read_lines(text, &found);
  if (good) {
    memcpy(found.why, c->why, sizeof found.why);
    *c = found;
  }
  clb_text_free(&path);
  return good;
}

static void keep(const clb_cpu_compiler *c) {
  clb_text path = {0}, lines = {0};
  char text[FILE_BYTES] = "";
  write_lines(c, &lines);
  if (!lines.failed && file_of(&path) && (!read_start(path.s, text) || strcmp(text, lines.s)))
    clb_cache_write(path.s, (const void *[]){lines.s}, &lines.n, 1);
  clb_text_free(&path);
  clb_text_free(&lines);
}

/* ---- in this process ---- */

static struct {
  pthread_mutex_t lock; /* only tried: a forked child may find it taken for ever */
  clb_hash programs;
  clb_cpu_compiler compiler; /* no name: none is known */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The first file of this name on PATH, as far as it shows that it has changed. */
typedef struct {
  dev_t device;
  ino_t inode;
  off_t bytes;
  time_t seconds;
  long nanoseconds;
} program;

static program find_program(const char *name) {
  struct stat about;
  bool found = false;
  const char *path = getenv("PATH"), *next;
  for (; path && *path && !found; path = next) {
    clb_text file = {0};
    const size_t n = strcspn(path, ":");
    clb_text_add(&file, "%.*s/%s", (int)n, path, name);
    found =
        !file.failed && !access(file.s, X_OK) && !stat(file.s, &about) && S_ISREG(about.st_mode);
    clb_text_free(&file);
    next = path + n + (path[n] == ':');
  }
  return found ? (program){about.st_dev, about.st_ino, about.st_size, about.st_mtim.tv_sec,
                           about.st_mtim.tv_nsec}
               : (program){0};
}

clb_hash clb_cpu_programs(void) {
  const char *path = getenv("PATH");
  clb_text folder = {0};
  clb_cache_folder(&folder);
  clb_hash h = clb_hash_parts((const void *[]){path, folder.s},
                              (size_t[]){path ? strlen(path) : 0, folder.n}, 2);
  clb_text_free(&folder);
  for (int i = 0; i < CLB_CPU_COMPILERS; i++) {
    const program p = find_program(clb_cpu_compilers[i]);
    h = clb_hash_parts((const void *[]){&h, &p}, (size_t[]){sizeof h, sizeof p}, 2);
  }
  return h;
}

bool clb_cpu_compiler_known(const clb_hash *programs, clb_cpu_compiler *c) {
  if (pthread_mutex_trylock(&known.lock)) return false;
  const bool same = known.compiler.name && !memcmp(&known.programs, programs, sizeof *programs);
  if (same) *c = known.compiler;
  pthread_mutex_unlock(&known.lock);
  return same;
}

void clb_cpu_compiler_keep(const clb_hash *programs, const clb_cpu_compiler *c) {
  keep(c);
  if (pthread_mutex_trylock(&known.lock)) return;
  known.programs = *programs;
  known.compiler = *c;
  pthread_mutex_unlock(&known.lock);
}
