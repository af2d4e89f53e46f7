/* tools/train/devices/train_devices.c - see train_devices.h. */
#include "tools/train/devices/train_devices.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"
#include "tools/measure/timing.h"
#include "tools/train/devices/ranks.h"
#include "tools/train/devices/threads.h"
#include "tools/training/labelled.h"

/* ---- names ---- */

typedef struct {
  char (*at)[64]; /* [n] */
  int n;
  const char *kind; /* "cuda:all": of all that are listed, those of "cuda" are added */
} names;

static void add_name(names *l, const char *name, size_t length) {
  l->at = enlarge(l->at, (size_t)l->n + 1, sizeof *l->at);
  snprintf(l->at[l->n++], sizeof *l->at, "%.*s", (int)length, name);
}

static void add_listed(const clb_device_info *info, void *user) {
  names *l = user;
  if (info->runs && !is_interpreter(info) && !strcmp(info->backend, l->kind))
    add_name(l, info->name, strlen(info->name));
}

/* What is between commas. */
static bool add_names(names *l, const char *list) {
  for (const char *at = list; at; at = *at ? at + 1 : NULL) {
    const size_t length = strcspn(at, ",");
    char kind[64];
    const int before = l->n;
    if (length < 4 || length >= sizeof kind || memcmp(at + length - 4, ":all", 4) != 0)
      add_name(l, at, length);
    else {
      snprintf(kind, sizeof kind, "%.*s", (int)length - 4, at);
      l->kind = kind;
      clb_devices(add_listed, l);
      l->kind = NULL;
      if (l->n == before) warn("--device %s:all: there is none", kind);
      if (l->n == before) return false;
    }
    at += length;
  }
  return true;
}

static bool add_all_names(names *l, const md_choice *choice) {
  bool good = true;
  for (int i = 0; i < choice->n_devices && good; i++) good = add_names(l, choice->devices[i]);
  if (!choice->n_devices) add_name(l, "", 0);
  return good;
}

/* Whether name i of n is this rank's. */
static bool is_mine(int i, int n) {
  const rank_numbers r = ranks_of_run();
  return n < r.n_here ? i == r.rank_here % n : i % r.n_here == r.rank_here;
}

/* ---- open and close ---- */

/* Counts the devices of ranks. */
static void count_parts(train_devices *d) {
  const rank_numbers r = ranks_of_run();
  double *of = allocate((size_t)r.n, sizeof *of);
  of[r.rank] = d->n;
  ranks_sum(r.n, of);
  for (int k = 0; k < r.n; k++) {
    d->first += k < r.rank ? (int)of[k] : 0;
    d->parts += (int)of[k];
  }
  free(of);
}

static size_t bytes_of(const train_devices *d) {
  return (size_t)d->y[0].info.parameters * dtype_bytes(d->y[0].dtype);
}

/* Whether devices read each other's memory. */
static bool connect(train_devices *d) {
  clb_status s = CLB_OK;
  for (int k = 1; k < d->n && !s; k++) {
    clb_buffer *first = NULL;
    s = clb_buffer_open_peer(d->y[k].ctx, d->buffer[0], &first);
    if (!s) s = clb_buffer_open_peer(d->y[0].ctx, d->buffer[k], &d->peer[k]);
    clb_buffer_destroy(&first);
  }
  return d->n > 1 && !s;
}

static bool make_room(train_devices *d) {
  clb_status s = CLB_OK;
  if (ranks_of_run().n > 1) d->sum = allocate((size_t)d->y[0].info.parameters, sizeof(double));
  for (int k = 0; k < d->n && d->parts > 1 && !s; k++) {
    s = clb_buffer_create(d->y[k].ctx, bytes_of(d), &d->buffer[k]);
    if (s) train_devices_warn(d, &d->y[k], "");
  }
  if (s || d->parts == 1) return !s;
  d->peers = connect(d);
  for (int k = 0; k < d->n; k++)
    if (!d->peers || (d->sum && !k)) d->staged[k] = allocate(bytes_of(d), 1);
  return true;
}

bool train_devices_open(train_devices *d, const md_choice *choice) {
  names all = {0};
  bool good = add_all_names(&all, choice);
  d->y = allocate((size_t)all.n, sizeof *d->y);
  d->staged = allocate((size_t)all.n, sizeof *d->staged);
  d->buffer = allocate((size_t)all.n, sizeof *d->buffer);
  d->peer = allocate((size_t)all.n, sizeof *d->peer);
  d->spent = allocate(SPENT, sizeof *d->spent);
  for (int i = 0; i < all.n && good; i++) {
    md_choice one = *choice;
    if (!is_mine(i, all.n)) continue;
    one.device = *all.at[i] ? all.at[i] : NULL;
    good = md_system_open(&d->y[d->n++], &one);
  }
  free(all.at);
  if (good) count_parts(d);
  return good && make_room(d);
}

void train_devices_close(train_devices *d) {
  threads_end();
  for (int i = 0; i < d->n; i++) clb_buffer_destroy(&d->peer[i]);
  for (int i = 0; i < d->n; i++) {
    clb_buffer_destroy(&d->buffer[i]);
    md_system_close(&d->y[i]);
    free(d->staged[i]);
  }
  free(d->y);
  free(d->sum);
  free(d->staged);
  free(d->buffer);
  free(d->peer);
  free(d->spent);
  *d = (train_devices){0};
}

void train_devices_warn(train_devices *d, const md_system *y, const char *more) {
  const bool named = d->parts > 1;
  warn("%s%s%s%s", named ? y->device.name : "", named ? ": " : "", clb_error(y->ctx), more);
  d->other_failed = d->other_failed || y != d->y;
}

/* ---- numbers that go through the host ---- */

static clb_status read_staged(const train_devices *d, int k, clb_buffer *from) {
  return clb_buffer_read(from, 0, d->staged[k], bytes_of(d));
}

static clb_status write_staged(const train_devices *d, clb_buffer *to) {
  return clb_buffer_write(to, 0, d->staged[0], bytes_of(d));
}

/* ---- parameters ---- */

typedef struct {
  const train_devices *d;
  clb_buffer *parameters;
  clb_status *status; /* [n] */
} setting;

/* For all devices but the first of rank 0, which have them on the host then, or on the first. */
static clb_status stage_parameters(const train_devices *d, clb_buffer *parameters) {
  const md_system *y = d->y;
  if (d->parts == 1) return CLB_OK;
  if (d->peers && !d->sum) return clb_wait(y->ctx);
  const clb_status s = read_staged(d, 0, parameters);
  if (s || !d->sum) return s;
  decode(y->dtype, d->staged[0], d->sum, y->info.parameters);
  ranks_copy(y->info.parameters, d->sum);
  encode(y->dtype, d->sum, d->staged[0], y->info.parameters);
  return d->peers && d->first ? write_staged(d, d->buffer[0]) : CLB_OK;
}

static clb_status take_from_host(const setting *s, int k) {
  const train_devices *d = s->d;
  const bool first = !k && !d->first;
  clb_buffer *from = first ? s->parameters : d->buffer[k];
  const clb_status written = first ? CLB_OK : write_staged(d, from);
  return written ? written : clb_model_take_parameters(d->y[k].model, from);
}

/* Nobody changes what others still read. */
static clb_status take_from_peer(const setting *s, int k) {
  const md_system *y = &s->d->y[k];
  clb_buffer *there = s->d->first ? s->d->buffer[0] : s->parameters, *opened = NULL;
  clb_status status = k ? clb_buffer_open_peer(y->ctx, there, &opened) : CLB_OK;
  if (!status) status = clb_model_take_parameters(y->model, k ? opened : there);
  if (!status) status = clb_wait(y->ctx);
  clb_buffer_destroy(&opened);
  return status;
}

static void set(void *user, int k) {
  const setting *s = user;
  s->status[k] = (s->d->peers ? take_from_peer : take_from_host)(s, k);
}

bool train_devices_use(train_devices *d, clb_buffer *parameters) {
  setting s = {d, parameters, allocate((size_t)d->n, sizeof *s.status)};
  int k = 0;
  s.status[0] = stage_parameters(d, parameters);
  if (!s.status[0]) threads_run(d->n, set, &s);
  while (k < d->n && !s.status[k]) k++;
  if (k < d->n) train_devices_warn(d, &d->y[k], "");
  free(s.status);
  return k == d->n;
}

/* ---- a batch ---- */

/* A device's structures, and what follows from them. */
typedef struct {
  const md_system *y;
  int64_t n, n_atoms;
  const clb_model_atoms *atoms;
  const clb_labels *labels;
  clb_loss loss;
  clb_gradient_results results;
  double part[LABELS]; /* of the batch: structures, atoms, structures */
  double sum, terms[LABELS], errors[LABELS][3];
  double seconds;
  clb_status status;
} share;

typedef struct {
  const train_devices *d;
  share *of; /* [n] of the devices */
  bool sums; /* gradients */
} shares;

static void compute(void *user, int k) {
  const shares *all = user;
  share *s = &all->of[k];
  const double start = seconds_now();
  if (s->n)
    s->status = clb_model_gradient(s->y->model, s->n, s->atoms, s->labels, &s->loss, &s->results);
  if (s->n && !s->status && all->sums)
    s->status =
        all->d->peers ? clb_wait(s->y->ctx) : read_staged(all->d, k, s->results.gradient_buffer);
  s->seconds = seconds_now() - start;
}

/* Means over a share become its part of those over the batch. */
static void weigh(share *s, const train_batch *b) {
  s->part[LABEL_ENERGY] = s->part[LABEL_STRESS] = (double)s->n / (double)b->batch;
  s->part[LABEL_FORCES] = b->batch_atoms ? (double)s->n_atoms / (double)b->batch_atoms : 0;
  s->loss.energy *= s->part[LABEL_ENERGY];
  s->loss.forces *= s->part[LABEL_FORCES];
  s->loss.stress *= s->part[LABEL_STRESS];
}

/* Of device k, whose atoms have so many others before them. */
static void fill_share(share *x, const train_devices *d, int k, const train_batch *b,
                       const clb_loss *loss, const clb_gradient_results *r, int64_t before) {
  const int p = d->first + k;
  const int64_t from = p ? b->ends[p - 1] : 0;
  *x = (share){.y = &d->y[k],
               .n = b->ends[p] - from,
               .atoms = b->atoms + from,
               .labels = b->labels + from,
               .loss = *loss};
  for (int64_t i = 0; i < x->n; i++) x->n_atoms += x->atoms[i].n;
  x->results = *r;
  if (!r->later)
    x->results = (clb_gradient_results){.loss = &x->sum,
                                        .terms = x->terms,
                                        .energies = r->energies ? r->energies + from : NULL,
                                        .forces = r->forces ? r->forces + 3 * before : NULL,
                                        .stresses = r->stresses ? r->stresses + 9 * from : NULL,
                                        .errors = x->errors[0],
                                        .gradient_buffer = r->gradient_buffer};
  if (r->gradient_buffer && d->parts > 1 && (k || !d->peers))
    x->results.gradient_buffer = d->buffer[k];
  weigh(x, b);
}

enum { BLOCK = 512 };

/* Numbers of all devices, in their order, become those of the first, or of d->sum. */
static void add_block(const shares *s, int64_t at, int64_t n) {
  const train_devices *d = s->d;
  const clb_dtype dtype = d->y[0].dtype;
  const size_t first = (size_t)at * dtype_bytes(dtype);
  double sum[BLOCK] = {0}, one[BLOCK];
  for (int i = 0; i < d->n; i++) {
    if (!s->of[i].n) continue;
    decode(dtype, (const char *)d->staged[i] + first, one, n);
    for (int64_t p = 0; p < n; p++) sum[p] += one[p];
  }
  if (d->sum) memcpy(d->sum + at, sum, (size_t)n * sizeof *sum);
  else encode(dtype, sum, (char *)d->staged[0] + first, n);
}

static void add_on_host(void *user, int k) {
  const shares *s = user;
  const int64_t n = s->d->y[0].info.parameters, end = n * (k + 1) / s->d->n;
  for (int64_t p = n * k / s->d->n; p < end; p += BLOCK)
    add_block(s, p, p + BLOCK < end ? BLOCK : end - p);
}

/* To those of the first one, which has structures if any has. */
static clb_status add_on_device(const shares *s, clb_buffer *to) {
  const train_devices *d = s->d;
  clb_status status = CLB_OK;
  for (int k = 1; k < d->n && !status; k++)
    if (s->of[k].n) status = clb_model_add_gradient(d->y[0].model, d->peer[k], to);
  if (!status) status = clb_wait(d->y[0].ctx);
  if (status || !d->sum) return status;
  if (s->of[0].n) status = read_staged(d, 0, to);
  else memset(d->staged[0], 0, bytes_of(d));
  if (!status) decode(d->y[0].dtype, d->staged[0], d->sum, d->y[0].info.parameters);
  return status;
}

static clb_status add_gradients(shares *s, clb_buffer *to) {
  const train_devices *d = s->d;
  const md_system *y = d->y;
  clb_status status = CLB_OK;
  if (d->peers) status = add_on_device(s, to);
  else threads_run(d->n, add_on_host, s);
  if (status || (d->peers && !d->sum)) return status;
  if (d->sum) {
    ranks_sum(y->info.parameters, d->sum);
    encode(y->dtype, d->sum, d->staged[0], y->info.parameters);
  }
  return write_staged(d, to);
}

static void add_up(const shares *s, const clb_gradient_results *to) {
  const int n = s->d->n;
  *to->loss = 0;
  for (int k = 0; k < LABELS; k++) to->terms[k] = 0;
  for (int k = 0; k < 3 * LABELS; k++) to->errors[k] = 0;
  for (int i = 0; i < n; i++) {
    const share *x = &s->of[i];
    *to->loss += x->sum;
    for (int k = 0; k < LABELS; k++) to->terms[k] += x->part[k] * x->terms[k];
    for (int k = 0; k < 3 * LABELS; k++) to->errors[k] += x->errors[k / 3][k % 3];
  }
}

/* Of what ranks have computed, all of it everywhere; the rest was zero. */
static void sum_over_ranks(int64_t n, int64_t atoms, const clb_gradient_results *r) {
  ranks_sum(1, r->loss);
  ranks_sum(LABELS, r->terms);
  ranks_sum(3 * LABELS, r->errors);
  if (r->energies) ranks_sum(n, r->energies);
  if (r->forces) ranks_sum(3 * atoms, r->forces);
  if (r->stresses) ranks_sum(9 * n, r->stresses);
}

static void count_seconds(const shares *s, double start, double computed) {
  const train_devices *d = s->d;
  double own = 0;
  for (int k = 0; k < d->n; k++) own += s->of[k].seconds / d->n;
  d->spent[SPENT_GRADIENT] += own;
  d->spent[SPENT_WAITING] += computed - start - own;
  d->spent[SPENT_SUM] += seconds_now() - computed;
}

clb_status train_devices_gradient(const train_devices *d, const train_batch *b,
                                  const clb_loss *loss, const clb_gradient_results *results,
                                  const md_system **refused) {
  shares s = {d, allocate((size_t)d->n, sizeof *s.of), results->gradient_buffer && d->parts > 1};
  const int64_t n = b->ends[d->parts - 1];
  const double start = seconds_now();
  int64_t before = 0, atoms = 0;
  clb_status status = CLB_OK;
  for (int64_t i = 0; i < n; i++) {
    before += d->first && i < b->ends[d->first - 1] ? b->atoms[i].n : 0;
    atoms += b->atoms[i].n;
  }
  for (int k = 0; k < d->n; k++) {
    fill_share(&s.of[k], d, k, b, loss, results, before);
    before += s.of[k].n_atoms;
  }
  threads_run(d->n, compute, &s);
  const double computed = seconds_now();
  for (int k = d->n - 1; k >= 0; k--)
    if (s.of[k].status) status = s.of[k].status, *refused = s.of[k].y;
  if (!status && !results->later) {
    add_up(&s, results);
    sum_over_ranks(n, atoms, results);
  }
  if (!status && s.sums) {
    status = add_gradients(&s, results->gradient_buffer);
    *refused = d->y;
  }
  if (results->gradient_buffer) count_seconds(&s, start, computed);
  free(s.of);
  return status;
}
