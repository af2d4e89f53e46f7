/* tools/structures/structure_reader.c - lines, words and numbers of a file of atoms. */
#include "tools/structures/structure_reader.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool structure_fail(structure_reader *r, const char *format, ...) {
  char frame[40] = "", line[40] = "";
  if (r->frame) snprintf(frame, sizeof frame, ", frame %lld", (long long)r->frame);
  if (r->line_number) snprintf(line, sizeof line, ", line %lld", (long long)r->line_number);
  const int n = snprintf(r->error, r->size, "%s%s%s: ", r->path, frame, line);
  va_list args;
  va_start(args, format);
  if (n >= 0 && (size_t)n < r->size) vsnprintf(r->error + n, r->size - (size_t)n, format, args);
  va_end(args);
  return false;
}

/* ---- lines ---- */

static bool grow(structure_reader *r) {
  const size_t room = r->line_room ? 2 * r->line_room : 256;
  char *line = room > STRUCTURE_LINE ? NULL : realloc(r->line, room);
  if (line) r->line = line, r->line_room = room;
  return line;
}

/* At the end of what can be read: false if it is not the end of the file. */
static bool check_file(structure_reader *r) {
  int status;
  gzerror(r->file, &status);
  switch (status) {
    case Z_OK:
    case Z_STREAM_END: return true;
    case Z_ERRNO: return structure_fail(r, "%s", strerror(errno));
    case Z_MEM_ERROR: return structure_fail(r, "out of memory");
    case Z_BUF_ERROR: return structure_fail(r, "the compressed file is not complete");
    default: return structure_fail(r, "the compressed file is damaged");
  }
}

bool structure_line(structure_reader *r) {
  static const char mark[] = "\xef\xbb\xbf"; /* which some editors put at the start of a file */
  r->error[0] = 0;
  if (r->again) return r->again = false, true;
  size_t n = 0;
  int c;
  while ((c = gzgetc(r->file)) != EOF && c != '\n') {
    if (c && (n + 1 < r->line_room || grow(r))) r->line[n++] = (char)c;
    else
      return r->line_number++, structure_fail(r,
                                              c ? "over %d bytes or out of memory"
                                                : "a zero byte: this is not a text file",
                                              STRUCTURE_LINE);
  }
  if (c == EOF && !check_file(r)) return false;
  if (c == EOF && !n) return false;
  if (!r->line && !grow(r)) return structure_fail(r, "out of memory");
  r->line_number++;
  n -= n && r->line[n - 1] == '\r';
  r->line[n] = 0;
  if (r->line_number == 1 && !strncmp(r->line, mark, 3)) memmove(r->line, r->line + 3, n - 2);
  return true;
}

bool structure_want_line(structure_reader *r, const char *what) {
  if (structure_line(r)) return true;
  return r->error[0] ? false : structure_fail(r, "the file ends here, before %s", what);
}

/* ---- words ---- */

const char *structure_columns(const structure_reader *r, int first, int last,
                              char field[STRUCTURE_FIELD]) {
  const char *line = r->line;
  size_t n = strlen(line), begin = (size_t)first - 1, end = (size_t)last < n ? (size_t)last : n;
  while (begin < end && isspace((unsigned char)line[begin])) begin++;
  while (begin < end && isspace((unsigned char)line[end - 1])) end--;
  n = begin < end ? end - begin : 0;
  if (n > STRUCTURE_FIELD - 1) n = STRUCTURE_FIELD - 1;
  memcpy(field, line + (n ? begin : 0), n);
  field[n] = 0;
  return field;
}

bool structure_skip_word(const char **at) {
  *at += strspn(*at, " \t");
  const size_t n = strcspn(*at, " \t");
  *at += n;
  return n;
}

const char *structure_word(const char **at, char field[STRUCTURE_FIELD]) {
  *at += strspn(*at, " \t");
  size_t n = strcspn(*at, " \t");
  if (!n || n >= STRUCTURE_FIELD) return NULL;
  memcpy(field, *at, n);
  field[n] = 0;
  *at += n;
  return field;
}

/* ---- numbers ---- */

bool structure_number(const char *text, double *x) {
  char decimal[STRUCTURE_FIELD], *end;
  const size_t n = strlen(text), exponent = strcspn(text, "Dd");
  if (n >= sizeof decimal || text[strspn(text, "0123456789+-.eEdD")]) return false;
  memcpy(decimal, text, n + 1);
  if (exponent < n) decimal[exponent] = 'e'; /* of Fortran */
  *x = strtod(decimal, &end);
  return end != decimal && !*end && isfinite(*x);
}

int structure_numbers(const char *text, int max, double *x) {
  char field[STRUCTURE_FIELD];
  int n = 0;
  while (text[strspn(text, " \t")]) {
    const char *w = structure_word(&text, field);
    if (!w || n == max || !structure_number(w, &x[n++])) return -1;
  }
  return n;
}

int64_t structure_count(const char *text) {
  double x;
  return structure_numbers(text, 1, &x) == 1 && x >= 0 && x <= INT32_MAX && x == floor(x)
             ? (int64_t)x
             : -1;
}

/* ---- atoms and cells ---- */

bool structure_add(structure_reader *r, int32_t element, const double x[3]) {
  structure *s = r->s;
  if (s->n == r->capacity) { /* grows with what has been read, never by what a file claims */
    int64_t capacity = r->capacity ? 2 * r->capacity : 256;
    double *positions = realloc(s->positions, (size_t)capacity * 3 * sizeof *positions);
    if (positions) s->positions = positions;
    int32_t *elements = realloc(s->numbers, (size_t)capacity * sizeof *elements);
    if (elements) s->numbers = elements;
    if (!positions || !elements)
      return structure_fail(r, "out of memory for %lld atoms", (long long)capacity);
    r->capacity = capacity;
  }
  for (int k = 0; k < 3; k++)
    if (!isfinite(s->positions[3 * s->n + k] = r->unit * x[k]))
      return structure_fail(r, "%g in this unit is not a finite number of Angstrom", x[k]);
  s->numbers[s->n++] = element;
  return true;
}

bool structure_add_fraction(structure_reader *r, int32_t element, const double x[3]) {
  const double(*cell)[3] = (const double(*)[3])r->s->cell;
  double at[3];
  for (int k = 0; k < 3; k++)
    at[k] = (x[0] * cell[0][k] + x[1] * cell[1][k] + x[2] * cell[2][k]) / r->unit;
  return structure_add(r, element, at);
}

bool structure_cell(structure_reader *r, const double abc[6], double unit) {
  double c[3];
  for (int i = 0; i < 6; i++)
    if (!(abc[i] > 0) || (i > 2 && abc[i] >= 180))
      return structure_fail(
          r, "a cell has three lengths over 0 and three angles between 0 and 180, not %g", abc[i]);
  for (int i = 0; i < 3; i++) c[i] = abc[3 + i] == 90 ? 0 : cos(abc[3 + i] * acos(-1) / 180);
  double s = sqrt(1 - c[2] * c[2]), x = c[1], y = (c[0] - c[1] * c[2]) / s, z = 1 - x * x - y * y;
  if (!(z > 1e-12))
    return structure_fail(r, "no cell has the angles %g, %g and %g", abc[3], abc[4], abc[5]);
  const double cell[3][3] = {
      {abc[0], 0, 0}, {abc[1] * c[2], abc[1] * s, 0}, {abc[2] * x, abc[2] * y, abc[2] * sqrt(z)}};
  for (int k = 0; k < 9; k++) r->s->cell[k / 3][k % 3] = unit * cell[k / 3][k % 3];
  for (int d = 0; d < 3; d++) r->s->periodic[d] = true;
  return true;
}
