/* tools/serve/ipi_session.c - one connection in i-PI's protocol. */
#include "tools/serve/ipi_session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

enum {
  WORD = 12,
  MATRIX = 9 * sizeof(double),
  INIT_HEAD = WORD + 2 * sizeof(int32_t),
  INIT_MOST = 1 << 16, /* bytes of a text of INIT */
  POSDATA_HEAD = WORD + 2 * MATRIX + sizeof(int32_t),
  FORCE_HEAD = WORD + sizeof(double) + sizeof(int32_t),
  FORCE_TAIL = MATRIX + sizeof(int32_t)
};

static size_t force_bytes(int64_t n) {
  return FORCE_HEAD + (size_t)n * 3 * sizeof(double) + FORCE_TAIL;
}

void ipi_session_make(ipi_session *s, serve_engine *engine) {
  *s = (ipi_session){.engine = engine};
  s->force = allocate(force_bytes(engine->n), 1);
}

void ipi_session_free(ipi_session *s) {
  free(s->in);
  free(s->out);
  free(s->force);
  *s = (ipi_session){0};
}

static void broken(ipi_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void broken(ipi_session *s, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(s->error, sizeof s->error, format, arguments);
  va_end(arguments);
  s->state = IPI_BROKEN;
}

/* ---- bytes ---- */

static void append(unsigned char **to, size_t *n, size_t *room, const void *bytes, size_t more) {
  if (*room - *n < more) {
    *room = (*n + more) * 2;
    *to = enlarge(*to, *room, 1);
  }
  if (more) memcpy(*to + *n, bytes, more);
  *n += more;
}

static void answer(ipi_session *s, const void *bytes, size_t n) {
  if (s->sent == s->n_out) s->sent = s->n_out = 0;
  append(&s->out, &s->n_out, &s->out_room, bytes, n);
}

static void answer_word(ipi_session *s, const char *word) {
  char padded[WORD + 1];
  snprintf(padded, sizeof padded, "%-*s", WORD, word);
  answer(s, padded, WORD);
}

static int32_t integer_at(const unsigned char *at) {
  int32_t x;
  memcpy(&x, at, sizeof x);
  return x;
}

static unsigned char *put_numbers(unsigned char *at, const double *x, int64_t n, double unit) {
  for (int64_t i = 0; i < n; i++, at += sizeof(double))
    memcpy(at, &(double){x[i] / unit}, sizeof(double));
  return at;
}

/* ---- messages ----
   Each gets the bytes that are there from its word on, at least the word's, and returns its length
   in bytes; 0: more of it is needed, or it is wrong. */

static size_t on_status(ipi_session *s, const unsigned char *m, size_t n_in) {
  (void)m, (void)n_in;
  answer_word(s, s->have ? "HAVEDATA" : "READY");
  return WORD;
}

static size_t on_init(ipi_session *s, const unsigned char *m, size_t n_in) {
  if (n_in < INIT_HEAD) return 0;
  const int32_t length = integer_at(m + WORD + sizeof(int32_t));
  if (length < 0 || length > INIT_MOST) {
    broken(s, "INIT has a text of %d bytes; 0 to %d are allowed", length, INIT_MOST);
    return 0;
  }
  const size_t whole = INIT_HEAD + (size_t)length;
  return n_in < whole ? 0 : whole;
}

static void keep_force(ipi_session *s) {
  const serve_engine *e = s->engine;
  const int32_t n = (int32_t)e->n, extra = 0;
  unsigned char *at = s->force;
  memcpy(at, "FORCEREADY  ", WORD);
  at = put_numbers(at + WORD, &e->energy, 1, hartree);
  memcpy(at, &n, sizeof n);
  at = put_numbers(at + sizeof n, e->forces, 3 * e->n, hartree / bohr);
  at = put_numbers(at, &e->virial[0][0], 9, hartree);
  memcpy(at, &extra, sizeof extra);
  s->have = true;
}

static size_t on_posdata(ipi_session *s, const unsigned char *m, size_t n_in) {
  serve_engine *e = s->engine;
  double columns[3][3];
  char error[sizeof s->error];
  if (s->have) return broken(s, "POSDATA came before GETFORCE for the last positions"), 0;
  if (n_in < POSDATA_HEAD) return 0;
  const int32_t n = integer_at(m + POSDATA_HEAD - sizeof n);
  if (n != e->n) {
    broken(s, "POSDATA has %d atoms, but the structure (--structure) has %lld", n, (long long)e->n);
    return 0;
  }
  const size_t whole = POSDATA_HEAD + (size_t)n * 3 * sizeof(double);
  if (n_in < whole) return 0;
  if (!serve_take_numbers(m + WORD, 9, bohr, &columns[0][0]))
    return broken(s, "a number of the cell in POSDATA is not finite"), 0;
  if (!serve_take_numbers(m + POSDATA_HEAD, 3 * e->n, bohr, e->positions))
    return broken(s, "a position in POSDATA is not finite"), 0;
  for (int k = 0; k < 9; k++) e->cell[k / 3][k % 3] = columns[k % 3][k / 3];
  if (!serve_engine_compute(e, error, sizeof error)) return broken(s, "%s", error), 0;
  keep_force(s);
  return whole;
}

static size_t on_getforce(ipi_session *s, const unsigned char *m, size_t n_in) {
  (void)m, (void)n_in;
  if (!s->have) return broken(s, "GETFORCE came before POSDATA"), 0;
  answer(s, s->force, force_bytes(s->engine->n));
  s->have = false;
  return WORD;
}

static size_t on_exit_word(ipi_session *s, const unsigned char *m, size_t n_in) {
  (void)m, (void)n_in;
  s->state = IPI_ENDED;
  return WORD;
}

static const struct {
  char word[WORD + 1];
  size_t (*on)(ipi_session *s, const unsigned char *m, size_t n);
} messages[] = {{"STATUS      ", on_status},
                {"INIT        ", on_init},
                {"POSDATA     ", on_posdata},
                {"GETFORCE    ", on_getforce},
                {"EXIT        ", on_exit_word}};

static size_t take_message(ipi_session *s, const unsigned char *m, size_t n) {
  if (n < WORD) return 0;
  for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
    if (!memcmp(m, messages[i].word, WORD)) return messages[i].on(s, m, n);
  char seen[WORD + 1] = {0};
  for (int i = 0; i < WORD; i++) seen[i] = m[i] >= ' ' && m[i] <= '~' ? (char)m[i] : '?';
  broken(s, "'%s' is not a message of i-PI's protocol", seen);
  return 0;
}

void ipi_session_take(ipi_session *s, const void *bytes, size_t n) {
  if (s->state != IPI_OPEN) return;
  append(&s->in, &s->n_in, &s->in_room, bytes, n);
  size_t taken = 0;
  for (size_t m; s->state == IPI_OPEN && (m = take_message(s, s->in + taken, s->n_in - taken));)
    taken += m;
  s->n_in -= taken;
  if (taken) memmove(s->in, s->in + taken, s->n_in);
}

void ipi_session_close(ipi_session *s) {
  if (s->state != IPI_OPEN) return;
  s->state = IPI_ENDED;
  if (s->n_in) broken(s, "the connection was closed within a message");
}
