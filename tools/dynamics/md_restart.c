/* tools/dynamics/md_restart.c - writes and reads the restart file.

     clebsch restart 3 bytes N checksum H     of all that follows this line
     model H NAME
     trajectory BYTES H                       0 0: there was none
     csv BYTES H
     step STEP time FS seed SEED
     heat EV chain 6 NUMBERS stretch RATE     not in version 2, whose csv has fewer columns
     cell 9 NUMBERS periodic 1 1 1
     atoms N
     SYMBOL position velocity listed          N times, 9 numbers each
     end */
#include "tools/dynamics/md_restart.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/output.h"

enum { OLDEST = 2, VERSION = 3 };
static const char head_format[] =
    "clebsch restart %d bytes %020" PRId64 " checksum %016" PRIx64 "\n";
static const int64_t max_steps = 1000000000000000;

/* ---- writing ---- */

typedef struct {
  const md_system *system;
  const md_state *state;
  const file_mark *trajectory, *csv;
} whole_state;

/* File names may contain any characters. */
static void name_write(FILE *f, const char *path) {
  const char *slash = strrchr(path, '/');
  for (const char *c = slash ? slash + 1 : path; *c; c++) fputc(*c > ' ' && *c < 127 ? *c : '?', f);
}

static void mark_write(FILE *f, const char *name, const file_mark *m) {
  const bool known = m->bytes > 0;
  fprintf(f, "%s %" PRId64 " %016" PRIx64 "\n", name, known ? m->bytes : 0, known ? m->sum : 0);
}

static void body_write(FILE *f, const whole_state *w) {
  const structure *a = &w->system->atoms;
  const md_state *s = w->state;
  fprintf(f, "model %016" PRIx64 " ", w->system->checksum);
  name_write(f, w->system->name);
  fputc('\n', f);
  mark_write(f, "trajectory", w->trajectory);
  mark_write(f, "csv", w->csv);
  fprintf(f, "step %" PRId64 " time %a seed %" PRIu64 "\nheat %a chain", s->step, s->time, s->seed,
          s->heat);
  for (int k = 0; k < 2 * MD_CHAIN; k++) fprintf(f, " %a", s->chain[k / MD_CHAIN][k % MD_CHAIN]);
  fprintf(f, " stretch %a\ncell", s->stretch);
  for (int k = 0; k < 9; k++) fprintf(f, " %a", a->cell[k / 3][k % 3]);
  fprintf(f, " periodic %d %d %d\natoms %" PRId64 "\n", a->periodic[0], a->periodic[1],
          a->periodic[2], a->n);
  for (int64_t i = 0; i < a->n; i++) {
    const double *const rows[] = {a->positions + 3 * i, s->velocities + 3 * i, s->listed + 3 * i};
    fputs(clb_element_symbols[a->numbers[i]], f);
    for (int k = 0; k < 9; k++) fprintf(f, " %a", rows[k / 3][k % 3]);
    fputc('\n', f);
  }
  fputs("end\n", f);
}

/* The first line is written twice: its length does not depend on the numbers. */
static bool write(FILE *f, const void *user) {
  uint64_t sum = 0;
  const int head = fprintf(f, head_format, VERSION, (int64_t)0, sum);
  if (head < 0) return false;
  body_write(f, user);
  if (fflush(f) || ferror(f)) return false;
  const off_t end = ftello(f);
  if (!file_checksum(fileno(f), head, end, &sum) || fseeko(f, 0, SEEK_SET)) return false;
  return fprintf(f, head_format, VERSION, (int64_t)end - head, sum) == head;
}

bool restart_write(const char *path, const md_system *y, const md_state *s,
                   const file_mark *trajectory, const file_mark *csv) {
  return file_replace(path, write, &(whole_state){y, s, trajectory, csv});
}

/* ---- reading: a line at a time ---- */

typedef struct {
  const char *path;
  FILE *f;
  char *line; /* the current line */
  size_t capacity;
  int64_t number;
  int version;
} lines;

__attribute__((format(printf, 2, 3))) static bool refuse_file(const lines *l, const char *format,
                                                              ...) {
  char said[512];
  va_list args;
  va_start(args, format);
  vsnprintf(said, sizeof said, format, args);
  va_end(args);
  if (l->number) warn("%s: line %" PRId64 ": %s", l->path, l->number, said);
  else warn("%s: %s", l->path, said);
  return false;
}

static ssize_t get_line(lines *l) {
  errno = 0;
  const ssize_t n = getline(&l->line, &l->capacity, l->f);
  if (n < 0 && errno == ENOMEM) fatal("%s: out of memory", l->path);
  return n;
}

static bool next(lines *l) {
  const ssize_t n = get_line(l);
  l->number++;
  if (n < 1 || l->line[n - 1] != '\n' || strlen(l->line) != (size_t)n)
    return refuse_file(l, "the file ends here");
  l->line[n - 1] = 0;
  return true;
}

/* sscanf of the current line, which must match completely: the format ends in %n. */
#define TAKEN(l, taken, count, ...)                                                                \
  ((taken) = -1,                                                                                   \
   sscanf((l)->line, __VA_ARGS__, &(taken)) == (count) && (taken) >= 0 && !(l)->line[taken])

/* Version, length and checksum. */
static bool read_head(lines *l) {
  static const char magic[] = "clebsch restart ";
  int version = 0, taken;
  int64_t bytes = 0;
  uint64_t said = 0, sum = 0;
  struct stat about;
  if (fstat(fileno(l->f), &about) || !S_ISREG(about.st_mode)) return refuse_file(l, "not a file");
  const ssize_t n = get_line(l);
  if (n < (ssize_t)sizeof magic || strncmp(l->line, magic, sizeof magic - 1) != 0 ||
      sscanf(l->line + sizeof magic - 1, "%d", &version) != 1)
    return refuse_file(l, "not a restart file of `clebsch md`: it does not begin with '%s%d'",
                       magic, VERSION);
  if (version < OLDEST || version > VERSION)
    return refuse_file(l, "a restart file of version %d, and this clebsch (%s) reads %d to %d",
                       version, CLB_VERSION, OLDEST, VERSION);
  l->version = version;
  if (l->line[n - 1] != '\n') return refuse_file(l, "cut short: it ends within its first line");
  if (!TAKEN(l, taken, 3, "clebsch restart %d bytes %" SCNd64 " checksum %" SCNx64 "\n%n", &version,
             &bytes, &said))
    return refuse_file(l, "damaged: its first line is not 'clebsch restart %d bytes N checksum H'",
                       VERSION);
  const off_t start = ftello(l->f);
  if (start < 0) return refuse_file(l, "%s", strerror(errno));
  if (about.st_size - start != bytes)
    return refuse_file(l, "%s: %lld bytes follow its first line, which says %" PRId64,
                       about.st_size - start < bytes ? "cut short" : "damaged",
                       (long long)(about.st_size - start), bytes);
  if (!file_checksum(fileno(l->f), start, about.st_size, &sum))
    return refuse_file(l, "%s", strerror(errno));
  if (sum != said)
    return refuse_file(
        l, "damaged: its checksum is %016" PRIx64 ", and its first line says %016" PRIx64, sum,
        said);
  l->number = 1;
  return true;
}

static bool read_mark(lines *l, const char *name, file_mark *m) {
  char word[16];
  int taken;
  if (!next(l)) return false;
  if (TAKEN(l, taken, 3, "%15s %" SCNd64 " %" SCNx64 "%n", word, &m->bytes, &m->sum) &&
      !strcmp(word, name) && m->bytes >= 0)
    return true;
  return refuse_file(l, "not '%s BYTES CHECKSUM'", name);
}

static bool read_step(lines *l, md_state *s) {
  int taken;
  if (!next(l)) return false;
  if (!TAKEN(l, taken, 3, "step %" SCNd64 " time %lf seed %" SCNu64 "%n", &s->step, &s->time,
             &s->seed))
    return refuse_file(l, "not 'step STEP time FS seed SEED'");
  if (s->step < 0 || s->step > max_steps)
    return refuse_file(l, "the step is %" PRId64 "; it must be 0 ... %" PRId64, s->step, max_steps);
  return isfinite(s->time) || refuse_file(l, "the time is not finite");
}

/* Reads n numbers from a position in the line; NULL: there are fewer, or one is not finite. */
static const char *numbers_at(const char *at, int n, double *x) {
  for (int k = 0; k < n; k++) {
    char *end;
    x[k] = strtod(at, &end);
    if (end == at || !isfinite(x[k])) return NULL;
    at = end;
  }
  return at;
}

static bool read_couplings(lines *l, md_restart *r) {
  md_state *s = &r->state;
  double *const one = &s->chain[0][0], *const all[] = {&s->heat, one, &s->stretch};
  static const char *const words[] = {"heat ", " chain ", " stretch "};
  if (l->version < 3) return r->csv = (file_mark){0}, true;
  if (!next(l)) return false;
  const char *at = l->line;
  for (int k = 0; k < 3 && at; k++) {
    const size_t n = strlen(words[k]);
    at = strncmp(at, words[k], n) ? NULL : numbers_at(at + n, k == 1 ? 2 * MD_CHAIN : 1, all[k]);
  }
  return (at && !*at) || refuse_file(l, "not 'heat EV chain 6 NUMBERS stretch RATE'");
}

static bool read_cell(lines *l, structure *a) {
  int p[3], taken = -1;
  if (!next(l)) return false;
  const char *rest =
      strncmp(l->line, "cell ", 5) ? NULL : numbers_at(l->line + 5, 9, &a->cell[0][0]);
  if (!rest || sscanf(rest, " periodic %d %d %d%n", &p[0], &p[1], &p[2], &taken) != 3 ||
      taken < 0 || rest[taken])
    return refuse_file(l, "not 'cell', 9 finite numbers, 'periodic' and 3 more");
  for (int k = 0; k < 3; k++) a->periodic[k] = p[k] != 0;
  return true;
}

/* An atom's line takes at least 20 bytes: memory is limited by the size of the file, not by the
   number it claims. */
static bool read_count(lines *l, structure *a) {
  struct stat about;
  int taken;
  if (!next(l)) return false;
  if (!TAKEN(l, taken, 1, "atoms %" SCNd64 "%n", &a->n) || a->n < 1 || a->n > INT32_MAX)
    return refuse_file(l, "not 'atoms' and a number from 1 to %d", INT32_MAX);
  if (fstat(fileno(l->f), &about) || about.st_size / 20 < a->n)
    return refuse_file(l, "%" PRId64 " atoms do not fit in a file of %lld bytes", a->n,
                       (long long)about.st_size);
  return true;
}

static bool read_atoms(lines *l, md_restart *r) {
  structure *a = &r->atoms;
  const size_t n = (size_t)a->n;
  a->positions = allocate(n, 3 * sizeof *a->positions);
  a->numbers = allocate(n, sizeof *a->numbers);
  md_state_make(&r->state, a->n);
  for (size_t i = 0; i < n; i++) {
    double *const rows[] = {a->positions + 3 * i, r->state.velocities + 3 * i,
                            r->state.listed + 3 * i};
    if (!next(l)) return false;
    const size_t letters = strcspn(l->line, " ");
    const char *at = l->line + letters;
    if (!(a->numbers[i] = clb_element(l->line, letters)))
      return refuse_file(l, "it does not begin with the symbol of an element");
    for (int k = 0; at && k < 3; k++) at = numbers_at(at, 3, rows[k]);
    if (!at || *at) return refuse_file(l, "an atom has 9 finite numbers behind its symbol");
  }
  return next(l) && (!strcmp(l->line, "end") || refuse_file(l, "not 'end'"));
}

static bool read_model(lines *l, md_restart *r) {
  int taken;
  if (!next(l)) return false;
  if (!TAKEN(l, taken, 2, "model %" SCNx64 " %255s%n", &r->model, r->model_name))
    return refuse_file(l, "not 'model CHECKSUM NAME'");
  for (char *c = r->model_name; *c; c++)
    if (*c <= ' ' || *c >= 127) *c = '?';
  return true;
}

bool restart_read(const char *path, md_restart *r) {
  lines l = {.path = path};
  *r = (md_restart){0};
  l.f = fopen(path, "re");
  if (!l.f) return warn("%s: %s", path, strerror(errno)), false;
  const bool good = read_head(&l) && read_model(&l, r) &&
                    read_mark(&l, "trajectory", &r->trajectory) && read_mark(&l, "csv", &r->csv) &&
                    read_step(&l, &r->state) && read_couplings(&l, r) && read_cell(&l, &r->atoms) &&
                    read_count(&l, &r->atoms) && read_atoms(&l, r);
  fclose(l.f);
  free(l.line);
  if (!good) restart_free(r);
  return good;
}

void restart_free(md_restart *r) {
  structure_free(&r->atoms);
  md_state_free(&r->state);
  *r = (md_restart){0};
}
