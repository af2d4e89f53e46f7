/* tests/fuzz/fuzz.c - what the fuzzers share: the input as a file, messages captured, exit()
   survived, time and memory bounded. */
#define _GNU_SOURCE /* fopencookie */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/memory.h"

void fuzz_fail(const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  dprintf(STDERR_FILENO, "fuzz: %s\n", text);
  abort();
}

/* ---- files ---- */

enum { MAX_FILES = 4, PATH_BYTES = 512 };

typedef struct {
  char ending[16], path[PATH_BYTES];
  int fd; /* of the input's file, which stays open; -1: none */
} named_file;

static named_file *file_with(const char *ending) {
  static named_file files[MAX_FILES];
  static int n;
  for (int i = 0; i < n; i++)
    if (!strcmp(files[i].ending, ending)) return &files[i];
  const char *folder = getenv("TMPDIR");
  FUZZ_CHECK(n < MAX_FILES);
  named_file *f = &files[n++];
  f->fd = -1;
  snprintf(f->ending, sizeof f->ending, "%s", ending);
  snprintf(f->path, sizeof f->path, "%s/fuzz-%ld%s", folder ? folder : P_tmpdir, (long)getpid(),
           ending);
  return f;
}

const char *fuzz_path(const char *ending) { return file_with(ending)->path; }

const char *fuzz_file(const void *data, size_t n, const char *ending) {
  named_file *f = file_with(ending);
  if (f->fd < 0) f->fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (f->fd < 0 || ftruncate(f->fd, 0) || pwrite(f->fd, data, n, 0) != (ssize_t)n)
    fuzz_fail("%s: cannot be written", f->path);
  return f->path;
}

/* ---- messages ---- */

typedef struct {
  char *text;
  size_t n, cap;
} said;
static said errors, output;

static ssize_t hear(void *cookie, const char *text, size_t n) {
  said *s = cookie;
  if (s->n + n >= s->cap) {
    s->cap = 2 * (s->n + n + 1);
    if (!(s->text = realloc(s->text, s->cap))) abort();
  }
  memcpy(s->text + s->n, text, n);
  s->n += n;
  return (ssize_t)n;
}

static FILE *ear(said *s) {
  FILE *f = fopencookie(s, "w", (cookie_io_functions_t){.write = hear});
  if (!f) abort();
  return f;
}

/* Control characters: C0 except those allowed, DEL, and C1 as UTF-8. */
static bool drives_terminal(const char *text, size_t n, const char *allowed) {
  for (size_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)text[i];
    if ((c < ' ' && !(c && strchr(allowed, c))) || c == 127) return true;
    if (c == 0xc2 && i + 1 < n && (unsigned char)text[i + 1] >= 0x80 &&
        (unsigned char)text[i + 1] < 0xa0)
      return true;
  }
  return false;
}

void fuzz_sentence(const char *text) {
  if (!text || !*text) fuzz_fail("it says no without a sentence");
  if (drives_terminal(text, strlen(text), "\t")) fuzz_fail("control characters in: %s", text);
}

/* "clebsch: SENTENCE\n", once. */
static void check_errors(bool wanted) {
  static const char head[] = "clebsch: ",
                    clear[] = "\r\033[K"; /* clear: of tool.c's progress(), on a terminal */
  hear(&errors, "", 1);
  char *text = errors.text;
  if (!strncmp(text, clear, sizeof clear - 1)) text += sizeof clear - 1;
  if (!wanted && *text) fuzz_fail("it says yes, but: %s", text);
  if (!wanted) return;
  const size_t n = strlen(text), m = sizeof head - 1;
  if (n <= m + 1 || strncmp(text, head, m) || text[n - 1] != '\n' ||
      text + n + 1 != errors.text + errors.n)
    fuzz_fail("no sentence: '%s'", text);
  text[n - 1] = 0;
  fuzz_sentence(text + m);
}

/* ---- runs ---- */

static jmp_buf back;

void fuzz_exit(int status) { longjmp(back, status ? status : -1); }

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether it succeeds; *left: it exited. */
static bool call(bool (*reader)(void *user), void *user, int *left) {
  if ((*left = setjmp(back))) return false;
  return reader(user);
}

bool fuzz_run(const fuzz_bounds *bounds, size_t n, bool (*reader)(void *user), void *user) {
  static FILE *heard_errors, *heard_output;
  FILE *const before[] = {stderr, stdout};
  if (!heard_errors) heard_errors = ear(&errors), heard_output = ear(&output);
  int left;
  errors.n = output.n = 0;
  stderr = heard_errors;
  stdout = heard_output;
  memory_begin();
  const double start = processor_seconds();
  const bool good = call(reader, user, &left);
  const double seconds = processor_seconds() - start;
  memory_end();
  fflush(stderr);
  fflush(stdout);
  stderr = before[0];
  stdout = before[1];
  if (left) memory_release();
  if (seconds > 1) fuzz_fail("%.2f s on %zu bytes", seconds, n);
  if (memory_peak() > bounds->base + bounds->factor * n)
    fuzz_fail("%zu bytes of memory for %zu bytes", memory_peak(), n);
  check_errors(!good && !bounds->silent);
  if (drives_terminal(output.text, output.n, "\n"))
    fuzz_fail("control characters on standard output");
  if (left > 0 || !left) return good;
  fuzz_fail("it exits with 0");
}

int fuzz_done(void) {
  if (memory_left()) fuzz_fail("%zu pieces of memory are never freed", memory_left());
  return 0;
}
