/* models/training/gradient.c - clb_model_gradient: a batch's loss, and its gradient by parameters.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/batch.h"
#include "models/blocks.h"
#include "models/training/training.h"
#include "src/base/hash.h"
#include "src/base/sizes.h"

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

/* Structures of a batch, with what is computed and derived of them. */
typedef struct {
  int64_t n, n_atoms;
  clb_model_atoms *atoms;    /* [n] */
  clb_labels *labels;        /* [n] */
  clb_model_results *result; /* [n]: places in the arrays below */
  double *energy, *force, *stress;
} structures;

static clb_status no_memory(clb_model *m) {
  return FAIL(m, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
}

static void free_structures(structures *x) {
  void *const all[] = {x->atoms, x->labels, x->result, x->energy, x->force, x->stress};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* ---- what is given ---- */

typedef struct {
  const void *atoms, *labels;
  size_t atoms_size, labels_size;
} given;

static clb_status take(clb_model *m, const given *from, structures *x) {
  clb_error_sink *e = &m->ctx->error;
  clb_status s = CLB_OK;
  x->atoms = calloc((size_t)x->n + 1, sizeof *x->atoms);
  x->labels = calloc((size_t)x->n + 1, sizeof *x->labels);
  x->result = calloc((size_t)x->n + 1, sizeof *x->result);
  if (!x->atoms || !x->labels || !x->result) return no_memory(m);
  for (int64_t i = 0; i < x->n && !s; i++) {
    s = clb_take_struct(e, "clb_model_atoms", &x->atoms[i], sizeof *x->atoms,
                        (const char *)from->atoms + (size_t)i * from->atoms_size, from->atoms_size);
    if (!s)
      s = clb_take_struct(e, "clb_labels", &x->labels[i], sizeof *x->labels,
                          (const char *)from->labels + (size_t)i * from->labels_size,
                          from->labels_size);
  }
  return s ? s : clb_structures_check(m, x->n, x->atoms, x->result);
}

static bool has_volume(const clb_model_atoms *a) { return a->cell && clb_cell_volume(a->cell) > 0; }

/* Places for what is computed. */
static clb_status reserve(clb_model *m, structures *x) {
  const size_t n = (size_t)x->n;
  int64_t at = 0;
  for (int64_t i = 0; i < x->n; i++) x->n_atoms += x->atoms[i].n;
  const size_t atoms = (size_t)x->n_atoms;
  double **const all[] = {&x->energy, &x->force, &x->stress};
  const size_t count[] = {n, 3 * atoms, 9 * n};
  for (size_t i = 0; i < 3; i++)
    if (!(*all[i] = calloc(count[i] + 1, sizeof(double)))) return no_memory(m);
  for (int64_t i = 0; i < x->n; i++) {
    x->result[i] = (clb_model_results){.energy = x->energy + i, .forces = x->force + 3 * at};
    if (has_volume(&x->atoms[i])) x->result[i].stress = x->stress + 9 * i;
    at += x->atoms[i].n;
  }
  return CLB_OK;
}

/* ---- on the device ---- */

static clb_rows dense(clb_buffer *b) { return (clb_rows){b, 0, CLB_DENSE, NULL}; }

/* Labels, and room for what follows from the loss. */
static clb_status prepare(clb_model *m, const structures *x, const clb_loss *loss,
                          const clb_structures *b) {
  clb_training *t = &m->training;
  clb_status s = clb_batch_loss_set(&t->loss, loss, x->n, x->atoms, x->labels, b->system);
  if (!s && b->v_atom) s = clb_model_reserve_v_atom(m);
  if (!s) s = clb_network_grow(&m->net, &m->net.by_energy, x->n_atoms);
  if (!s) s = clb_network_grow(&m->net, &t->moves, 3 * x->n_atoms);
  return s ? s : clb_network_grow(&m->net, &t->strains, 9 * x->n);
}

typedef struct {
  clb_model *m;
  const clb_model_edges *e;
  const clb_model_edge_results *want;
  bool gradient;
} step;

/* From what is computed, which the host does not see, to the gradient by weights. */
static clb_status launch(void *user) {
  const step *x = user;
  clb_model *m = x->m;
  const clb_model_edge_results *want = x->want;
  const clb_training *t = &m->training;
  const clb_result_offsets at = clb_model_result_offsets(m);
  clb_status s = clb_model_start(m, x->e, want);
  if (!s)
    s = clb_batch_loss_run(&t->loss,
                           &(clb_batch_loss_rows){.e_atom = clb_model_result(m, at.e_atom),
                                                  .forces = clb_model_result(m, at.forces),
                                                  .v_atom = dense(want->v_atom ? m->v_atom : NULL),
                                                  .by_energy = dense(m->net.by_energy),
                                                  .moves = dense(t->moves),
                                                  .strains = dense(t->strains)});
  return s || !x->gradient ? s : clb_training_sweep(m);
}

/* Of what the launches depend on: all else is numbers in buffers. */
static uint64_t key_of(const step *x) {
  const clb_model *m = x->m;
  const clb_loss *l = &m->training.loss.loss;
  const double loss[] = {l->energy, l->forces, l->stress, l->stress_unit, l->delta};
  const int64_t numbers[] = {
      m->training.loss.n,      x->e->n_local,      x->e->n_edges, x->gradient,
      x->want->v_atom != NULL, m->net.ops_renewed, l->function,   l->force_norm};
  if (m->edges.source != CLB_EDGES_MANY || !clb_model_repeats(m, x->e)) return 0;
  return clb_hash_bytes(clb_hash_bytes(1, loss, sizeof loss), numbers, sizeof numbers);
}

/* The bucket of that key, or the one whose last use is longest ago. */
static clb_bucket *bucket_of(clb_training *t, uint64_t key) {
  int i = 0;
  while (i < CLB_BUCKETS - 1 && t->bucket[i].step.last != key) i++;
  clb_bucket found = t->bucket[i];
  if (found.step.last != key) found.uses = 0;
  found.step.last = key;
  found.uses++;
  memmove(t->bucket + 1, t->bucket, (size_t)i * sizeof *t->bucket);
  t->bucket[0] = found;
  return t->bucket;
}

/* The block's edges are sorted before, outside of the recording, which needs their number. */
static clb_status submit(step *x) {
  clb_model *m = x->m;
  const uint64_t key = key_of(x);
  if (!key) return launch(x);
  clb_bucket *b = bucket_of(&m->training, key);
  if (b->uses < m->training.recorded_use) return launch(x);
  const clb_status s = clb_blocks_enter(m, 0, true);
  clb_blocks_leave(m);
  return s ? s : clb_repeat(m->ctx, &b->step, key, "the training step", launch, x);
}

/* ---- results ---- */

/* Where the loss is not finite, a prediction says why; of what is seen later, nothing does. */
static clb_status hand_out(clb_model *m, const structures *x, const clb_structures *b,
                           const clb_model_edges *e, const clb_model_edge_results *want,
                           const clb_gradient_results *r) {
  const int64_t parameters = r->gradient ? m->net.parameter.n : 0;
  clb_loss_result found;
  if (r->later) return CLB_OK;
  clb_status s = clb_batch_loss_read(&m->training.loss, &found);
  if (!s && r->gradient) s = clb_training_read_gradient(m, r->gradient);
  bool finite = isfinite(found.loss);
  for (int64_t i = 0; i < parameters && !s; i++) finite &= isfinite(r->gradient[i]) != 0;
  const bool wanted = r->energies || r->forces || r->stresses;
  if (!s && (wanted || !finite)) s = clb_model_finish(m, e, want);
  if (!s) s = clb_model_finite(m, "the loss's gradient", parameters, 1, r->gradient);
  if (!s && wanted) clb_structures_hand_out(b);
  if (s) return s;
  if (r->loss) *r->loss = found.loss;
  if (r->terms) memcpy(r->terms, found.terms, sizeof found.terms);
  if (r->errors) memcpy(r->errors, found.errors, sizeof found.errors);
  if (r->energies) memcpy(r->energies, x->energy, (size_t)x->n * sizeof *x->energy);
  if (r->forces) memcpy(r->forces, x->force, 3 * (size_t)x->n_atoms * sizeof *x->force);
  if (r->stresses) memcpy(r->stresses, x->stress, 9 * (size_t)x->n * sizeof *x->stress);
  return s;
}

/* ---- the call ---- */

static clb_status compute(clb_model *m, structures *x, const clb_loss *loss,
                          const clb_gradient_results *r) {
  clb_model_edges e;
  clb_structures b = {.atoms = x->atoms, .results = x->result, .list = {.cutoff = m->net.r_max}};
  clb_structures_take(&b, x->n, INT64_MAX);
  clb_status s = clb_batch_loss_place(&m->training.loss, x->n, &m->edges.show_many);
  if (!s) s = clb_structures_set(m, &b, &e);
  const int64_t edges = m->edges.source == CLB_EDGES_MANY ? m->edges.found_many : -1;
  m->edges.show_many = (clb_rows){0};
  const clb_model_edge_results want = {.e_atom = b.e_atom, .forces = b.force, .v_atom = b.v_atom};
  if (!s) s = prepare(m, x, loss, &b);
  if (!s) s = submit(&(step){m, &e, &want, r->gradient || r->gradient_buffer});
  if (!s && r->gradient_buffer) s = clb_training_gradient_to(m, r->gradient_buffer);
  if (!s) s = clb_batch_loss_keep(&m->training.loss, edges);
  if (!s) s = hand_out(m, x, &b, &e, &want, r);
  clb_edges_forget(&m->edges);
  clb_structures_free(&b);
  clb_neighbours_free(&b.list);
  return s;
}

static clb_status check_later(clb_model *m, const clb_gradient_results *r) {
  const double *const all[] = {r->loss,   r->terms,    r->gradient, r->energies,
                               r->forces, r->stresses, r->errors};
  static const char *const names[] = {"loss",   "terms",    "gradient", "energies",
                                      "forces", "stresses", "errors"};
  for (int i = 0; i < 7 && r->later; i++)
    if (all[i])
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model_gradient: later is %d, so %s of the results must be NULL", r->later,
                  names[i]);
  return CLB_OK;
}

clb_status clb_model_losses(clb_model *m, int64_t n, double *losses, double *terms,
                            double *errors) {
  clb_status s = clb_training_check(m, __func__);
  if (s) return s;
  clb_batch_loss *l = &m->training.loss;
  const int64_t all = l->n_seen + l->n_unseen;
  if (n < 0 || n > all)
    return FAIL(m, CLB_ERROR_ARGUMENT,
                "%s: n is %lld; %lld batches have losses that were not taken", __func__,
                (long long)n, (long long)all);
  s = clb_batch_loss_see(l);
  if (s) return s;
  for (int64_t i = 0; i < n; i++) {
    const clb_loss_result *r = &l->seen[i];
    if (losses) losses[i] = r->loss;
    if (terms) memcpy(terms + 3 * i, r->terms, sizeof r->terms);
    if (errors) memcpy(errors + 9 * i, r->errors, sizeof r->errors);
  }
  l->n_seen -= n;
  if (l->n_seen) memmove(l->seen, l->seen + n, (size_t)l->n_seen * sizeof *l->seen);
  return CLB_OK;
}

clb_status clb_model_gradient_sized(clb_model *m, int64_t n, const clb_model_atoms *atoms,
                                    const clb_labels *labels, const clb_loss *loss,
                                    const clb_gradient_results *results, size_t atoms_size,
                                    size_t labels_size, size_t loss_size, size_t results_size) {
  clb_loss l;
  clb_gradient_results r;
  clb_status s = clb_training_check(m, "clb_model_gradient");
  if (s) return s;
  if (n < 1 || !atoms || !labels || !loss || !results)
    return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_gradient: %s",
                n < 1     ? "there are no structures"
                : !atoms  ? "atoms is NULL"
                : !labels ? "labels is NULL"
                : !loss   ? "loss is NULL"
                          : "results is NULL");
  clb_error_sink *e = &m->ctx->error;
  structures x = {.n = n};
  s = clb_take_struct(e, "clb_loss", &l, sizeof l, loss, loss_size);
  if (!s) s = clb_take_struct(e, "clb_gradient_results", &r, sizeof r, results, results_size);
  if (!s) s = check_later(m, &r);
  if (!s) s = take(m, &(given){atoms, labels, atoms_size, labels_size}, &x);
  if (!s) s = clb_loss_check(e, &l, n, x.atoms, x.labels);
  if (!s) s = reserve(m, &x);
  if (!s) s = compute(m, &x, &l, &r);
  free_structures(&x);
  return s;
}
