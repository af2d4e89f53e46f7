/* tools/train/train_devices.c - see train_devices.h. */
#include "tools/train/train_devices.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tools/train/ranks.h"
#include "tools/training/labelled.h"

/* Whether name i of n is this rank's. */
static bool is_mine(int i, int n) {
  const rank_numbers r = ranks_of_run();
  return n < r.n_here ? i == r.rank_here % n : i % r.n_here == r.rank_here;
}

bool train_devices_open(train_devices *d, const md_choice *choice) {
  const char *names = choice->device ? choice->device : "";
  char *list = allocate(strlen(names) + 1, 1), *at = list;
  bool good = true;
  memcpy(list, names, strlen(names));
  int n = 1, i = 0;
  for (const char *c = names; *c; c++) n += *c == ',';
  d->y = allocate((size_t)n, sizeof *d->y);
  for (char *name; good && (name = strsep(&at, ","));) {
    md_choice one = *choice;
    if (!is_mine(i++, n)) continue;
    one.device = choice->device ? name : NULL;
    good = md_system_open(&d->y[d->n++], &one);
  }
  free(list);
  return good;
}

void train_devices_close(train_devices *d) {
  for (int i = 0; i < d->n; i++) md_system_close(&d->y[i]);
  free(d->y);
  *d = (train_devices){0};
}

bool train_devices_use(const train_devices *d, const double *parameters) {
  for (int i = 0; i < d->n; i++)
    if (clb_model_set_parameters(d->y[i].model, parameters)) {
      warn("%s", clb_error(d->y[i].ctx));
      return false;
    }
  return true;
}

/* ---- a batch ---- */

/* Neighbouring structures, and the atoms in and before them. */
typedef struct {
  int64_t first, n, n_atoms, before;
} part;

/* Moves on to part k of so many, each of about as many atoms of all; the first has one structure at
   least. */
static void next_part(part *p, const clb_model_atoms *atoms, const part *all, int k, int parts) {
  *p = (part){.first = p->first + p->n, .before = p->before + p->n_atoms};
  const int64_t end = (all->n_atoms * (k + 1) + parts - 1) / parts;
  for (int64_t more; p->first + p->n < all->n; p->n++, p->n_atoms += more) {
    more = atoms[p->first + p->n].n;
    if (k < parts - 1 && p->before + p->n_atoms + more > end && (k || p->n)) return;
  }
}

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
  clb_status status;
} share;

static void *run(void *user) {
  share *s = user;
  if (s->n)
    s->status = clb_model_gradient(s->y->model, s->n, s->atoms, s->labels, &s->loss, &s->results);
  return NULL;
}

/* Means over a share become its part of those over the batch. */
static void weigh(share *s, int64_t n, int64_t n_atoms) {
  s->part[LABEL_ENERGY] = s->part[LABEL_STRESS] = (double)s->n / (double)n;
  s->part[LABEL_FORCES] = n_atoms ? (double)s->n_atoms / (double)n_atoms : 0;
  s->loss.energy *= s->part[LABEL_ENERGY];
  s->loss.forces *= s->part[LABEL_FORCES];
  s->loss.stress *= s->part[LABEL_STRESS];
}

static void run_all(share *s, int n) {
  pthread_t *thread = allocate((size_t)n, sizeof *thread);
  bool *started = allocate((size_t)n, sizeof *started);
  for (int i = 1; i < n; i++) started[i] = !pthread_create(&thread[i], NULL, run, &s[i]);
  run(&s[0]);
  for (int i = 1; i < n; i++)
    if (started[i]) pthread_join(thread[i], NULL);
    else run(&s[i]);
  free(thread);
  free(started);
}

static void add_up(const share *s, int n, int64_t parameters, const clb_gradient_results *to) {
  *to->loss = 0;
  for (int k = 0; k < LABELS; k++) to->terms[k] = 0;
  for (int k = 0; k < 3 * LABELS; k++) to->errors[k] = 0;
  for (int i = 0; i < n; i++) {
    if (!s[i].n) continue;
    *to->loss += s[i].sum;
    for (int k = 0; k < LABELS; k++) to->terms[k] += s[i].part[k] * s[i].terms[k];
    for (int k = 0; k < 3 * LABELS; k++) to->errors[k] += s[i].errors[k / 3][k % 3];
    for (int64_t p = 0; p < parameters && i && to->gradient; p++)
      to->gradient[p] += s[i].results.gradient[p];
  }
}

/* Of what ranks have computed, all of it everywhere; the rest was zero. */
static void sum_over_ranks(const part *all, int64_t parameters, const clb_gradient_results *r) {
  ranks_sum(1, r->loss);
  ranks_sum(LABELS, r->terms);
  ranks_sum(3 * LABELS, r->errors);
  if (r->energies) ranks_sum(all->n, r->energies);
  if (r->forces) ranks_sum(3 * all->n_atoms, r->forces);
  if (r->stresses) ranks_sum(9 * all->n, r->stresses);
  if (r->gradient) ranks_sum(parameters, r->gradient);
}

clb_status train_devices_gradient(const train_devices *d, int64_t n, const clb_model_atoms *atoms,
                                  const clb_labels *labels, int64_t batch, int64_t batch_atoms,
                                  const clb_loss *loss, const clb_gradient_results *results,
                                  const md_system **refused) {
  const int64_t parameters = d->y[0].info.parameters;
  const rank_numbers ranks = ranks_of_run();
  part all = {.n = n}, mine = {0}, p = {0};
  share *s = allocate((size_t)d->n, sizeof *s);
  clb_status status = CLB_OK;
  for (int64_t i = 0; i < n; i++) all.n_atoms += atoms[i].n;
  for (int k = 0; k <= ranks.rank; k++) next_part(&mine, atoms, &all, k, ranks.n);
  for (int k = 0; k < d->n; k++) {
    share *x = &s[k];
    next_part(&p, atoms + mine.first, &mine, k, d->n);
    const int64_t at = mine.first + p.first, before = mine.before + p.before;
    *x = (share){.y = &d->y[k],
                 .n = p.n,
                 .n_atoms = p.n_atoms,
                 .atoms = atoms + at,
                 .labels = labels + at,
                 .loss = *loss};
    x->results = (clb_gradient_results){
        &x->sum,
        x->terms,
        k && results->gradient ? allocate((size_t)parameters, sizeof(double)) : results->gradient,
        results->energies ? results->energies + at : NULL,
        results->forces ? results->forces + 3 * before : NULL,
        results->stresses ? results->stresses + 9 * at : NULL,
        x->errors[0]};
    weigh(x, batch, batch_atoms);
  }
  run_all(s, d->n);
  for (int k = d->n - 1; k >= 0; k--)
    if (s[k].status) status = s[k].status, *refused = s[k].y;
  if (!status) add_up(s, d->n, parameters, results);
  if (!status) sum_over_ranks(&all, parameters, results);
  for (int k = 1; k < d->n; k++)
    if (results->gradient) free(s[k].results.gradient);
  free(s);
  return status;
}
