/* tools/train/train_restart.c - the file from which a training run goes on: a line, then numbers
   as they are in memory.

     clebsch training 2 model SUM parameters N averages 0 epochs E moments BYTES checksum SUM
     train_numbers, E records, parameters, averages if there are any, the best parameters
     the optimizer's state */
#include "tools/train/train_restart.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/text.h"
#include "tools/common/output.h"

#define HEAD "clebsch training 2 "
static const char head_format[] =
    HEAD "model %016" PRIx64 " parameters %" PRId64 " averages %d epochs %" PRId64
         " moments %" PRIu64 " checksum %016" PRIx64 "\n";

/* ---- state ---- */

void sums_pack(const epoch_sums *s, double to[]) {
  double *at = to;
  *at++ = s->structures;
  *at++ = s->atoms;
  for (int k = 0; k < LABELS; k++) *at++ = s->terms[k];
  for (int k = 0; k < LABELS; k++) {
    *at++ = (double)s->errors[k].n;
    *at++ = s->errors[k].absolute;
    *at++ = s->errors[k].square;
  }
}

void sums_unpack(const double from[], epoch_sums *s) {
  const double *at = from;
  s->structures = *at++;
  s->atoms = *at++;
  for (int k = 0; k < LABELS; k++) s->terms[k] = *at++;
  for (int k = 0; k < LABELS; k++, at += 3)
    s->errors[k] = (label_error){(int64_t)at[0], at[1], at[2]};
}

double train_sum(const labelled_batch sets[SETS], int64_t replayed, const clb_loss *l) {
  const double numbers[] = {(double)replayed, l->function, l->delta,      l->energy,
                            l->forces,        l->stress,   l->force_norm, l->stress_unit};
  uint64_t sum = bytes_checksum(CHECKSUM_START, numbers, sizeof numbers);
  for (int set = 0; set < SETS; set++) sum = labelled_batch_checksum(sum, &sets[set]);
  return (double)(sum >> 11);
}

void state_add(train_state *s, const epoch_record *record) {
  if (s->n == s->room) {
    s->room = 2 * s->room + 64;
    s->records = enlarge(s->records, (size_t)s->room, sizeof *s->records);
  }
  s->records[s->n++] = *record;
}

void state_free(train_state *s) {
  free(s->records);
  free(s->best);
}

/* ---- writing ---- */

static bool write_text(FILE *f, const void *user) {
  const clb_text *t = user;
  return fwrite(t->s, 1, t->n, f) == t->n;
}

static void add_body(clb_text *t, const train_state *s, const learner *l, const void *moments,
                     uint64_t bytes) {
  const size_t row = (size_t)l->n * sizeof(double);
  clb_text_bytes(t, &s->at, sizeof s->at);
  if (s->n) clb_text_bytes(t, s->records, (size_t)s->n * sizeof *s->records);
  clb_text_bytes(t, l->parameters, row);
  if (l->averages) clb_text_bytes(t, l->averages, row);
  clb_text_bytes(t, s->best, row);
  clb_text_bytes(t, moments, bytes);
}

bool train_restart_write(const char *path, uint64_t start, const train_state *s, const learner *l) {
  clb_text body = {0}, all = {0};
  void *moments = NULL;
  uint64_t bytes = 0;
  bool good = learner_moments(l, &moments, &bytes);
  if (good) {
    add_body(&body, s, l, moments, bytes);
    if (body.failed) fatal("%s: out of memory", path);
    clb_text_add(&all, head_format, start, l->n, l->averages != NULL, s->n, bytes,
                 bytes_checksum(CHECKSUM_START, body.s, body.n));
    clb_text_bytes(&all, body.s, body.n);
    if (all.failed) fatal("%s: out of memory", path);
    good = file_replace(path, write_text, &all);
  }
  clb_text_free(&body);
  clb_text_free(&all);
  free(moments);
  return good;
}

/* ---- reading ---- */

typedef struct {
  uint64_t model, bytes, sum;
  int64_t parameters, epochs;
  int averages;
} restart_head;

/* The whole file and a 0 byte; NULL, after a message. */
static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *bytes = NULL;
  size_t room = 0, got = 1;
  *n = 0;
  if (!f) return warn("%s: %s", path, strerror(errno)), NULL;
  while (got) {
    if (*n + 1 >= room) bytes = enlarge(bytes, room = 2 * room + (1 << 16), 1);
    got = fread(bytes + *n, 1, room - *n - 1, f);
    *n += got;
  }
  const bool good = !ferror(f);
  fclose(f);
  if (!good) warn("%s: %s", path, strerror(errno));
  if (!good) free(bytes), bytes = NULL;
  else bytes[*n] = 0;
  return bytes;
}

/* Reads the line at the begin; returns its length, 0 after a message. */
static size_t read_head(const char *path, const char *text, restart_head *h) {
  int taken = -1;
  if (strncmp(text, HEAD, sizeof HEAD - 1) != 0)
    return warn("%s: not a restart of `clebsch train`: it does not begin with '%s'", path, HEAD), 0;
  if (sscanf(text,
             HEAD "model %" SCNx64 " parameters %" SCNd64 " averages %d epochs %" SCNd64
                  " moments %" SCNu64 " checksum %" SCNx64 "%n",
             &h->model, &h->parameters, &h->averages, &h->epochs, &h->bytes, &h->sum,
             &taken) == 6 &&
      taken > 0 && text[taken] == '\n')
    return (size_t)taken + 1;
  return warn("%s: damaged: its first line is not that of a restart", path), 0;
}

/* What a restart of these counts has after its first line. */
static bool right_size(const restart_head *h, size_t n) {
  const uint64_t most = (uint64_t)1 << 48;
  if (h->epochs < 0 || (uint64_t)h->epochs > most || h->bytes > most) return false;
  return n == sizeof(train_numbers) + (uint64_t)h->epochs * sizeof(epoch_record) + h->bytes +
                  (uint64_t)h->parameters * sizeof(double) * (2 + (h->averages != 0));
}

static bool fits(const char *path, const restart_head *h, uint64_t start, const learner *l) {
  if (h->model != start) warn("%s: it is of a run that began with another model", path);
  else if (h->parameters != l->n)
    warn("%s: it has %" PRId64 " parameters, and the model %" PRId64, path, h->parameters, l->n);
  else if (!h->averages != !l->averages)
    warn("%s: it is of a run %s --ema", path, h->averages ? "with" : "without");
  else return true;
  return false;
}

static const char *take(void *to, const char *from, size_t n) {
  memcpy(to, from, n);
  return from + n;
}

static bool read_body(const char *body, const restart_head *h, train_state *s, learner *l) {
  const size_t row = (size_t)l->n * sizeof(double);
  double *rows = allocate((size_t)l->n, 2 * sizeof *rows);
  const char *at = take(&s->at, body, sizeof s->at);
  for (int64_t i = 0; i < h->epochs; i++) {
    epoch_record record;
    at = take(&record, at, sizeof record);
    state_add(s, &record);
  }
  at = take(rows, at, row);
  if (h->averages) at = take(rows + l->n, at, row);
  at = take(s->best, at, row);
  const bool good = learner_restore(l, rows, rows + l->n, at, h->bytes);
  free(rows);
  return good;
}

bool train_restart_seed(const char *path, uint64_t *seed) {
  size_t n, head = 0;
  restart_head h = {0};
  train_numbers at;
  char *text = read_file(path, &n);
  bool good = text && (head = read_head(path, text, &h));
  if (good && n - head < sizeof at) {
    warn("%s: damaged: it ends after %zu bytes", path, n);
    good = false;
  }
  if (good) memcpy(&at, text + head, sizeof at);
  *seed = good ? (uint64_t)at.seed : 0;
  free(text);
  return good;
}

bool train_restart_read(const char *path, uint64_t start, train_state *s, learner *l) {
  size_t n, head;
  restart_head h = {0};
  char *text = read_file(path, &n);
  bool good = text && (head = read_head(path, text, &h)) && fits(path, &h, start, l);
  if (good && !right_size(&h, n - head)) {
    warn("%s: damaged: %zu bytes follow its first line, which says another number", path, n - head);
    good = false;
  }
  if (good && bytes_checksum(CHECKSUM_START, text + head, n - head) != h.sum) {
    warn("%s: damaged: its checksum is another one than its first line says", path);
    good = false;
  }
  good = good && read_body(text + head, &h, s, l);
  free(text);
  return good;
}
