/* tools/train/epoch.c - batches of labelled structures: their loss, its gradient, and errors. */
#include "tools/train/epoch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/philox.h"
#include "tools/train/devices/shares.h"

/* ---- sums ---- */

double sums_loss(const epoch_sums *s, const clb_loss *l) {
  return (l->energy * s->terms[LABEL_ENERGY] + l->stress * s->terms[LABEL_STRESS]) / s->structures +
         (s->atoms > 0 ? l->forces * s->terms[LABEL_FORCES] / s->atoms : 0);
}

static void sums_add(epoch_sums *s, const batch_sums *b, int64_t structures, int64_t atoms) {
  s->structures += (double)structures;
  s->atoms += (double)atoms;
  for (int k = 0; k < LABELS; k++) {
    s->terms[k] += b->terms[k] * (double)(k == LABEL_FORCES ? atoms : structures);
    s->errors[k].n += (int64_t)b->errors[k][0];
    s->errors[k].absolute += b->errors[k][1];
    s->errors[k].square += b->errors[k][2];
  }
}

/* ---- order ---- */

void epoch_order(int64_t n, uint64_t seed, int64_t epoch, int64_t *order) {
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    const uint32_t counter[4] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32), (uint32_t)epoch,
                                 (uint32_t)((uint64_t)epoch >> 32)};
    uint32_t word[4];
    philox(counter, key, word);
    const int64_t k = (int64_t)(((uint64_t)word[0] << 32 | word[1]) % (uint64_t)(i + 1)),
                  last = order[i];
    order[i] = order[k];
    order[k] = last;
  }
}

int64_t epoch_batches(const labelled_batch *from, const int64_t *order, batch_size most,
                      int64_t *ends) {
  int64_t n = 0, structures = 0, atoms = 0;
  for (int64_t i = 0; i < from->n; i++) {
    const int64_t more = from->systems[order[i]].atoms.n;
    if (structures && ((most.structures && structures == most.structures) ||
                       (most.atoms && atoms + more > most.atoms))) {
      ends[n++] = i;
      structures = atoms = 0;
    }
    structures++;
    atoms += more;
  }
  if (from->n) ends[n++] = from->n;
  return n;
}

/* ---- a batch ---- */

/* Of the structures of a batch, those of the second head last; of each head by parts. */
typedef struct {
  int64_t *which; /* [n], as the next two */
  clb_model_atoms *atoms;
  clb_labels *labels;
  double *energies, *stresses, *forces;    /* NULL: not wanted */
  int64_t n[2], n_atoms, n_atoms_of_first; /* n: by head; those of the first */
  int64_t *ends[2];                        /* by head: of the devices' parts of it */
} batch_arrays;

static void order_by_head(const batch_work *b, batch_arrays *x) {
  const int parts = b->learner->devices->parts;
  int64_t at = 0;
  for (int head = 0; head < 2; head++) {
    int64_t *first = x->which + at;
    for (int64_t i = 0; i < b->n; i++) {
      const int64_t which = b->which[i], atoms = b->from->systems[which].atoms.n;
      if ((which >= b->replayed) != head) continue;
      x->which[at++] = which;
      x->n[head]++;
      x->n_atoms += atoms;
      x->n_atoms_of_first += head ? 0 : atoms;
    }
    x->ends[head] = allocate((size_t)parts, sizeof *x->ends[head]);
    shares_divide(b->from->sizes, x->n[head], first, parts, x->ends[head]);
  }
}

static batch_arrays arrays_of(const batch_work *b) {
  const size_t n = (size_t)b->n;
  batch_arrays x = {.which = allocate(n, sizeof *x.which),
                    .atoms = allocate(n, sizeof *x.atoms),
                    .labels = allocate(n, sizeof *x.labels)};
  order_by_head(b, &x);
  for (int64_t i = 0; i < b->n; i++) {
    x.atoms[i] = b->from->atoms[x.which[i]];
    x.labels[i] = b->from->labels[x.which[i]];
  }
  if (!b->fits) return x;
  x.energies = allocate(n, sizeof *x.energies);
  x.stresses = allocate(n, 9 * sizeof *x.stresses);
  x.forces = allocate((size_t)x.n_atoms + 1, 3 * sizeof *x.forces);
  return x;
}

static void free_arrays(batch_arrays *x) {
  free(x->which);
  free(x->ends[0]);
  free(x->ends[1]);
  free(x->atoms);
  free(x->labels);
  free(x->energies);
  free(x->stresses);
  free(x->forces);
}

static void add_fits(const batch_work *b, const batch_arrays *x) {
  const double *forces = x->forces;
  for (int64_t i = 0; b->fits && i < b->n; i++) {
    md_system *s = &b->from->systems[x->which[i]];
    const size_t n = (size_t)s->atoms.n;
    labelled_frame l;
    s->energy = x->energies[i];
    if (n) memcpy(s->forces, forces, 3 * n * sizeof *forces);
    memcpy(s->stress, x->stresses + 9 * i, sizeof s->stress);
    forces += 3 * n;
    label_frame_pairs(s, &l);
    label_fits_add(b->fits, s, &l);
  }
}

/* Its structures, as FILE, frame N; of many the first ones. */
static void put_names(const batch_work *b, char *text, size_t size) {
  enum { SHOWN = 16 };
  size_t n = 0;
  text[0] = 0;
  for (int64_t i = 0; i < b->n && i < SHOWN && n < size; i++) {
    const int64_t at = b->which[i];
    n += (size_t)snprintf(text + n, size - n, "%s%s, frame %lld", i ? "; " : "",
                          b->from->systems[at].from, (long long)b->from->numbers[at]);
  }
  if (b->n > SHOWN && n < size)
    snprintf(text + n, size - n, "; and %lld more", (long long)(b->n - SHOWN));
}

static bool not_finite(const char *what, const batch_work *b) {
  char names[2048];
  put_names(b, names, sizeof names);
  warn(
      "%s, of these frames: %s; a smaller --lr, or --clip, may help; --out is still the best epoch "
      "of before, if there was one",
      what, names);
  return false;
}

static bool loss_finite(double loss, const batch_work *b) {
  char what[64];
  snprintf(what, sizeof what, "the loss is %g", loss);
  return isfinite(loss) || not_finite(what, b);
}

static void refused(train_devices *d, const md_system *y, clb_status status) {
#define SMALLER "; a smaller --batch or --batch-atoms takes less memory"
  const bool memory = status == CLB_ERROR_MEMORY;
  train_devices_warn(d, y,
                     !memory               ? ""
                     : y->dtype == CLB_F64 ? SMALLER ", and so does --dtype f32"
                                           : SMALLER);
}

/* Adds a head's part of means over the batch, unless the device keeps it; gradient: NULL, or
   becomes the head's. */
static clb_status of_head(const batch_work *b, const batch_arrays *x, learner_head head,
                          clb_buffer *gradient, submitted_batch *to, const md_system **y) {
  const int64_t first = head ? x->n[0] : 0, atoms = head ? x->n_atoms_of_first : 0;
  batch_sums of, *sums = &to->sums;
  const clb_gradient_results later = {.gradient_buffer = gradient, .later = 1},
                             now = {.loss = &of.loss,
                                    .terms = of.terms,
                                    .energies = x->energies ? x->energies + first : NULL,
                                    .forces = x->forces ? x->forces + 3 * atoms : NULL,
                                    .stresses = x->stresses ? x->stresses + 9 * first : NULL,
                                    .errors = of.errors[0],
                                    .gradient_buffer = gradient};
  const train_batch batch = {x->atoms + first, x->labels + first, x->ends[head], b->n, x->n_atoms};
  const clb_status s =
      train_devices_gradient(b->learner->devices, &batch, b->loss, to->known ? &now : &later, y);
  if (s || !to->known) return s;
  sums->loss += of.loss;
  for (int k = 0; k < LABELS; k++) sums->terms[k] += of.terms[k];
  for (int k = 0; k < 3 * LABELS; k++) sums->errors[k / 3][k % 3] += of.errors[k / 3][k % 3];
  return CLB_OK;
}

static bool of_replayed(const batch_work *b, const batch_arrays *x, bool gradient,
                        submitted_batch *to, clb_status *s, const md_system **y) {
  learner *l = b->learner;
  bool good = learner_use(l, HEAD_REPLAYED);
  if (good) *s = of_head(b, x, HEAD_REPLAYED, gradient ? l->second : NULL, to, y);
  return good && learner_use(l, HEAD_TRAINED);
}

bool batch_submit(const batch_work *b, bool gradient, batch_queue *queue) {
  learner *l = b->learner;
  batch_arrays x = arrays_of(b);
  submitted_batch to = {
      .of = *b, .atoms = x.n_atoms, .known = !learner_stays_on_device(l) || b->fits};
  const md_system *y = NULL;
  clb_status s = CLB_OK;
  bool good = true;
  if (x.n[HEAD_TRAINED]) s = of_head(b, &x, HEAD_TRAINED, gradient ? l->gradients : NULL, &to, &y);
  if (!s && x.n[HEAD_REPLAYED]) good = of_replayed(b, &x, gradient, &to, &s, &y);
  if (good && !s && gradient && l->second)
    good = learner_add_heads(l, x.n[HEAD_TRAINED], x.n[HEAD_REPLAYED]);
  if (good && !s && isfinite(to.sums.loss)) add_fits(b, &x);
  free_arrays(&x);
  if (s) refused(l->devices, y, s);
  if (s || !good || !loss_finite(to.sums.loss, b)) return false;
  queue->batch = enlarge(queue->batch, (size_t)queue->n + 1, sizeof *queue->batch);
  queue->batch[queue->n++] = to;
  queue->n_known += to.known;
  return true;
}

/* Those that are on the device. */
static bool read_sums(const learner *l, batch_queue *q) {
  enum { ERRORS = 3 * LABELS };
  const int64_t n = q->n - q->n_known;
  double *all = allocate((size_t)n, (1 + LABELS + ERRORS) * sizeof *all), *loss = all,
         *terms = loss + n, *errors = terms + LABELS * n;
  const bool good = !n || !clb_model_losses(l->model, n, loss, terms, errors);
  if (!good) warn("%s", clb_error(l->ctx));
  for (int64_t i = 0; i < q->n && good; i++) {
    batch_sums *to = &q->batch[i].sums;
    if (q->batch[i].known) continue;
    to->loss = *loss++;
    memcpy(to->terms, terms, sizeof to->terms);
    memcpy(to->errors, errors, sizeof to->errors);
    terms += LABELS;
    errors += ERRORS;
  }
  free(all);
  return good;
}

bool batches_see(batch_queue *q, epoch_sums *sums, double *norms) {
  if (!q->n) return true;
  const learner *l = q->batch->of.learner;
  double *norm = allocate((size_t)q->n, sizeof *norm);
  bool good = read_sums(l, q) && (!norms || learner_norms(l, q->n, norm));
  for (int64_t i = 0; i < q->n && good; i++) {
    const submitted_batch *b = &q->batch[i];
    good = loss_finite(b->sums.loss, &b->of) &&
           (!isnan(norm[i]) || not_finite("the gradient is not finite", &b->of));
    if (!good) break;
    sums_add(sums, &b->sums, b->of.n, b->atoms);
    if (norms) *norms += norm[i];
  }
  free(norm);
  q->n = q->n_known = 0;
  return good;
}

bool batch_compute(const batch_work *b, epoch_sums *sums) {
  batch_queue queue = {0};
  const bool good = batch_submit(b, false, &queue) && batches_see(&queue, sums, NULL);
  free(queue.batch);
  return good;
}

bool epoch_evaluate(learner *l, const clb_loss *loss, const labelled_batch *from, batch_size most,
                    epoch_sums *sums) {
  int64_t *which = allocate((size_t)from->n, 2 * sizeof *which), *ends = which + from->n, first = 0;
  batch_queue queue = {0};
  bool good = true;
  for (int64_t i = 0; i < from->n; i++) which[i] = i;
  const int64_t n = epoch_batches(from, which, most, ends);
  for (int64_t k = 0; k < n && good; first = ends[k++]) {
    const batch_work b = {l, loss, from, which + first, ends[k] - first, from->n, NULL};
    good = batch_submit(&b, false, &queue);
  }
  good = good && batches_see(&queue, sums, NULL);
  free(queue.batch);
  free(which);
  return good;
}
