/* models/dynamics.c - atoms that move on the device: their arrays, searches when the skin says so,
   and what the host sees of them. */
#include "models/model_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dynamics/host/motion.h"
#include "src/base/sizes.h"

#define FAIL(d, s, ...) clb_fail(&(d)->model->ctx->error, s, __VA_ARGS__)

/* How far from the places of the list an atom can be: what the last record says, and what moves may
   have added. */
typedef struct {
  bool known; /* all of it, with the forces of the last computation */
  double way, speed, force;
} motion_bound;

struct clb_dynamics {
  clb_model *model;
  clb_context *ctx; /* of the arrays */
  clb_context *cpu; /* the same where the model's device has no f64; else NULL */
  int64_t n;
  int32_t *species;
  int charge, spin;
  double cell[9];
  bool has_cell, stress;
  int periodic[3];
  clb_op *motion;
  clb_buffer *x, *v, *places, *mass, *record;
  clb_buffer *force;        /* with `cpu`; else they are among the model's results */
  double *host;             /* the record's numbers, or positions and forces */
  double energy, virial[9]; /* with `cpu`; virial: the stress */
  bool computed;            /* there are forces, */
  int64_t computation; /* of this computation of the model: else among its results are others */
  bool listed;         /* places are those of the list; else x was, before it moved */
  int64_t rebuilds;    /* of the model when the list was made */
  bool moved;          /* since the list was made, too far */
  bool unseen;         /* moved, and how far has not been read */
  motion_bound bound;
  double least_mass;
  bool shown;             /* the record has the results of the last computation */
  bool heated;            /* and heat that has not been seen */
  clb_dynamics_move last; /* what atoms did then, unless edges of the computation did not fit */
  bool has_found;         /* the record begins with their number */
};

/* ---- create, destroy ---- */

void clb_dynamics_destroy(clb_dynamics **dynamics) {
  if (!dynamics || !*dynamics) return;
  clb_dynamics *d = *dynamics;
  clb_buffer **buffers[] = {&d->x, &d->v, &d->places, &d->mass, &d->record, &d->force};
  clb_op_destroy(&d->motion);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) clb_buffer_destroy(buffers[i]);
  clb_context_destroy(&d->cpu);
  free(d->species);
  free(d->host);
  free(d);
  *dynamics = NULL;
}

/* Errors of the CPU's context are told by the model's. */
static clb_status told(clb_dynamics *d, clb_status s) {
  return s && d->cpu ? FAIL(d, s, "%s", clb_error(d->cpu)) : s;
}

/* The context of the arrays. */
static clb_status choose_context(clb_dynamics *d) {
  clb_model *m = d->model;
  d->ctx = m->ctx;
  if (m->ctx->device->limits.f64) return CLB_OK;
  clb_status s = clb_context_create("cpu", &d->cpu);
  if (s) s = clb_context_create("cpu:interpreter", &d->cpu);
  d->ctx = d->cpu;
  return s ? FAIL(d, s, "clb_dynamics_create: %s", clb_error(NULL)) : CLB_OK;
}

static clb_status put(clb_dynamics *d, clb_buffer **buffer, int64_t n, const double *from) {
  const uint64_t bytes = (uint64_t)n * sizeof *from;
  const clb_status s = clb_buffer_create(d->ctx, bytes ? bytes : 1, buffer);
  return s || !from || !n ? s : clb_staged_write(*buffer, 0, from, bytes);
}

static clb_status make_arrays(clb_dynamics *d, const double *x, const double *v,
                              const double *places, const double *mass) {
  const int64_t n = d->n;
  clb_status s = clb_motion_create(d->ctx, &d->motion);
  if (s) return told(d, s);
  const int64_t record = clb_motion_record(d->motion, n), most = record > 6 * n ? record : 6 * n;
  d->host = calloc((size_t)most, sizeof *d->host);
  if (!d->host) return FAIL(d, CLB_ERROR_MEMORY, "clb_dynamics_create: no memory");
  s = put(d, &d->record, record, d->host);
  if (!s) s = put(d, &d->x, 3 * n, x);
  if (!s) s = put(d, &d->v, 3 * n, v);
  if (!s) s = put(d, &d->places, 3 * n, places);
  if (!s) s = put(d, &d->mass, n, mass);
  if (!s && d->cpu) s = put(d, &d->force, 3 * n, d->host);
  return told(d, s);
}

static clb_status take_atoms(clb_dynamics *d, const clb_model_atoms *a, const double *masses,
                             const double *velocities) {
  const clb_status s = clb_model_check_atoms(d->model, a, &(clb_model_results){0});
  if (s) return s;
  if (a->n && (!masses || !velocities))
    return FAIL(d, CLB_ERROR_ARGUMENT, "clb_dynamics_create: %s is NULL",
                masses ? "velocities" : "masses");
  for (int64_t i = 0; i < a->n; i++)
    if (!(masses[i] > 0 && isfinite(masses[i])))
      return FAIL(d, CLB_ERROR_ARGUMENT,
                  "clb_dynamics_create: masses[%lld] is %g; it must be above 0, and finite",
                  (long long)i, masses[i]);
  d->n = a->n;
  d->charge = a->charge;
  d->spin = a->spin;
  d->least_mass = a->n ? masses[0] : 1;
  for (int64_t i = 1; i < a->n; i++)
    if (masses[i] < d->least_mass) d->least_mass = masses[i];
  d->has_cell = a->cell;
  if (a->cell) memcpy(d->cell, a->cell, sizeof d->cell);
  memcpy(d->periodic, a->periodic, sizeof d->periodic);
  d->species = malloc((size_t)a->n * sizeof *d->species + 1);
  if (!d->species) return FAIL(d, CLB_ERROR_MEMORY, "clb_dynamics_create: no memory");
  if (a->n) memcpy(d->species, a->species, (size_t)a->n * sizeof *d->species);
  return CLB_OK;
}

/* ---- computations ---- */

static clb_model_atoms atoms_of(const clb_dynamics *d, const double *positions) {
  const int *p = d->periodic;
  return (clb_model_atoms){.n = d->n,
                           .species = d->species,
                           .positions = positions,
                           .cell = d->has_cell ? d->cell : NULL,
                           .periodic = {p[0], p[1], p[2]},
                           .charge = d->charge,
                           .spin = d->spin};
}

/* Makes a list, or not, for the atoms in a buffer, and their vectors. */
static clb_status set_edges(clb_dynamics *d, clb_buffer *x, clb_model_edges *found) {
  clb_edge_list *l = &d->model->edges;
  const clb_model_atoms a = atoms_of(d, NULL);
  l->motion = (clb_edge_motion){x, d->moved};
  const clb_status s = clb_model_set_edges(d->model, &a, found);
  l->motion = (clb_edge_motion){0};
  return s;
}

/* Where the way is not known yet, as there is no skin: any. */
static bool too_far(const clb_dynamics *d, double square) {
  const double half = d->model->edges.between.skin / 2;
  return !(square <= half * half);
}

static double longest_way(int64_t n, const double *x, const double *y) {
  double most = 0;
  for (int64_t i = 0; i < 3 * n; i += 3) {
    double square = 0;
    for (int k = 0; k < 3; k++) square += (x[i + k] - y[i + k]) * (x[i + k] - y[i + k]);
    if (!(square <= most)) most = square;
  }
  return most;
}

/* A list for the places. */
static clb_status start_list(clb_dynamics *d, const double *positions, const double *listed) {
  clb_model_edges found;
  clb_model *m = d->model;
  clb_edges_forget(&m->edges);
  d->listed = d->moved = true;
  clb_status s;
  if (d->cpu) {
    const clb_model_atoms a = atoms_of(d, listed);
    s = clb_model_set_edges(m, &a, &found);
  } else s = set_edges(d, d->places, &found);
  d->rebuilds = m->edges.rebuilds;
  d->moved = !s && too_far(d, longest_way(d->n, positions, listed));
  return s;
}

clb_status clb_dynamics_create_sized(clb_model *m, const clb_model_atoms *atoms,
                                     const double *masses, const double *velocities,
                                     const double *listed, clb_dynamics **dynamics, size_t size) {
  clb_model_atoms a;
  if (dynamics) *dynamics = NULL;
  if (!m) return clb_null(__func__, "model");
  clb_error_sink *e = &m->ctx->error;
  if (!atoms || !dynamics)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "clb_dynamics_create: %s is NULL",
                    atoms ? "dynamics" : "atoms");
  clb_status s = clb_take_struct(e, "clb_model_atoms", &a, sizeof a, atoms, size);
  if (s) return s;
  clb_dynamics *d = *dynamics = calloc(1, sizeof *d);
  if (!d) return clb_fail(e, CLB_ERROR_MEMORY, "clb_dynamics_create: no memory");
  d->model = m;
  if (!listed) listed = a.positions;
  s = take_atoms(d, &a, masses, velocities);
  if (!s) s = choose_context(d);
  if (!s) s = make_arrays(d, a.positions, velocities, listed, masses);
  if (!s) s = start_list(d, a.positions, listed);
  if (s) clb_dynamics_destroy(dynamics);
  return s;
}

static bool has_forces(const clb_dynamics *d) {
  return d->computed && (d->cpu || d->computation == d->model->computations);
}

static clb_status check_forces(clb_dynamics *d, const char *function) {
  return has_forces(d) ? CLB_OK
                       : FAIL(d, CLB_ERROR_ARGUMENT,
                              "%s: there are no forces, or the model has computed something else "
                              "since; clb_dynamics_compute comes first",
                              function);
}

/* There is no skin, or the list is as the places say. */
static bool has_skin(const clb_dynamics *d) { return d->model->edges.between.skin > 0; }

/* What is in the record, and how far atoms are from the places of the list. */
static clb_status read_record(clb_dynamics *d) {
  const int64_t n = clb_motion_record(d->motion, d->n);
  double seen[CLB_SEEN];
  const clb_status s = clb_staged_read(d->record, 0, d->host, (uint64_t)n * sizeof *d->host);
  if (s) return told(d, s);
  clb_motion_seen(d->motion, d->n, d->host, seen);
  if (d->unseen) d->moved |= !has_skin(d) || too_far(d, seen[CLB_SEEN_WAY]);
  d->unseen = false;
  d->bound = (motion_bound){true, sqrt(seen[CLB_SEEN_WAY]), sqrt(seen[CLB_SEEN_SPEED]),
                            sqrt(seen[CLB_SEEN_FORCE])};
  return CLB_OK;
}

/* The triangle inequality, atom by atom. */
static void bound_move(clb_dynamics *d, const clb_dynamics_move *move) {
  const double rounded = 1 + 1e-12, noise = sqrt(3 * fmax(move->width, 0) / d->least_mass);
  motion_bound *b = &d->bound;
  b->known &= move->grow == 1 && move->grow_again == 1;
  b->speed += fabs(move->kick) * b->force / d->least_mass;
  b->way += fabs(move->reach) * b->speed;
  b->speed = fabs(move->keep) * b->speed + CLB_LARGEST_DEVIATE * noise;
  b->way = rounded * (b->way + fabs(move->reach_again) * b->speed);
}

/* Whether the list still holds, without a look: if so, its places are in the record of each move.
 */
static bool surely_near(const clb_dynamics *d) {
  return d->bound.known && d->listed && !too_far(d, d->bound.way * d->bound.way);
}

static clb_status compute_on_device(clb_dynamics *d) {
  clb_model *m = d->model;
  double there; /* not written: what is wanted stays on the device */
  clb_model_edges e;
  d->moved |= m->edges.rebuilds != d->rebuilds; /* another call has made the list */
  clb_status s = set_edges(d, d->x, &e);
  if (s) return s;
  if (m->edges.rebuilds != d->rebuilds) d->listed = false;
  d->rebuilds = m->edges.rebuilds;
  d->moved = false;
  return clb_model_start(m, &e,
                         &(clb_model_edge_results){.energy = &there,
                                                   .forces = &there,
                                                   .virial = d->stress ? &there : NULL});
}

static clb_status compute_from_cpu(clb_dynamics *d) {
  const uint64_t bytes = (uint64_t)d->n * 3 * sizeof *d->host;
  double *x = d->host, *forces = d->host + 3 * d->n;
  clb_status s = d->n ? told(d, clb_staged_read(d->x, 0, x, bytes)) : CLB_OK;
  const clb_model_atoms a = atoms_of(d, x);
  const clb_model_results r = {
      .energy = &d->energy, .forces = forces, .stress = d->stress ? d->virial : NULL};
  if (!s) s = clb_model_compute_atoms(d->model, &a, &r);
  if (s || !d->n) return s;
  if (d->model->edges.rebuilds != d->rebuilds) s = clb_staged_write(d->places, 0, x, bytes);
  d->rebuilds = d->model->edges.rebuilds;
  if (!s) s = clb_staged_write(d->force, 0, forces, bytes);
  return told(d, s);
}

static clb_status run(clb_dynamics *d, const clb_dynamics_move *move);

static clb_status compute(clb_dynamics *d) {
  const clb_status s = d->cpu ? compute_from_cpu(d) : compute_on_device(d);
  d->computed = !s;
  d->computation = d->model->computations;
  d->shown = d->unseen = d->bound.known = false;
  return s;
}

/* Where edges of the last computation may not have had room: looks, and if so computes again, and
   moves atoms, which have waited, as they should. *there: the record is on the host. */
static clb_status confirm(clb_dynamics *d, bool *there) {
  clb_edge_list *l = &d->model->edges;
  const clb_dynamics_move last = d->last;
  const bool shown = d->shown;
  double found = 0;
  clb_status s = CLB_OK;
  *there = false;
  if (!l->room.unseen || d->cpu || !has_forces(d)) return s;
  if (shown) s = read_record(d), found = d->host[0];
  else {
    const int64_t at = clb_model_result_offsets(d->model).found;
    s = clb_staged_read(d->model->results, (uint64_t)at * sizeof found, &found, sizeof found);
  }
  if (s) return s;
  *there = clb_edges_see(l, found) && shown;
  if (!l->room.outgrown) return s;
  d->moved = true;
  s = compute(d);
  return s || !shown ? s : run(d, &last);
}

clb_status clb_dynamics_compute(clb_dynamics *d, const double *cell, int stress) {
  if (!d) return clb_null(__func__, "dynamics");
  bool there;
  clb_status s = confirm(d, &there);
  if (s) return s;
  if (cell) memcpy(d->cell, cell, sizeof d->cell), d->has_cell = true;
  d->stress = stress;
  const bool watched = has_skin(d) && !d->cpu;
  const clb_model_atoms a = atoms_of(d, d->host);
  double wanted[9];
  s = clb_model_check_atoms(d->model, &a, &(clb_model_results){.stress = stress ? wanted : NULL});
  if (d->unseen && watched && surely_near(d)) d->unseen = false;
  if (!s && d->unseen && watched) s = read_record(d);
  if (d->unseen) d->moved = true;
  if (s) d->computed = d->shown = d->unseen = d->bound.known = false;
  return s ? s : compute(d);
}

/* ---- moves ---- */

static clb_rows results_at(const clb_dynamics *d, int64_t place) {
  return clb_model_result(d->model, place);
}

static clb_motion_atoms motion_of(const clb_dynamics *d) {
  const clb_result_offsets at = clb_model_result_offsets(d->model);
  clb_motion_atoms a = {
      .n = d->n, .x = d->x, .v = d->v, .places = d->places, .mass = d->mass, .record = d->record};
  a.force = d->cpu ? (clb_rows){d->force, 0, CLB_DENSE, NULL} : results_at(d, at.forces);
  if (d->cpu || !d->computed) return a;
  a.checked = d->model->shows_found;
  a.most = (double)d->model->edges.room.n_edges;
  a.copied = results_at(d, a.checked ? at.found : at.energy);
  a.n_copied = a.checked + (d->stress ? 10 : 1);
  return a;
}

static clb_status run(clb_dynamics *d, const clb_dynamics_move *move) {
  const bool drifts =
      move->grow != 1 || move->grow_again != 1 || move->reach != 0 || move->reach_again != 0;
  bool there;
  clb_status s = check_forces(d, "clb_dynamics_run");
  if (!s && d->shown) s = confirm(d, &there);
  if (s) return s;
  const clb_motion_atoms a = motion_of(d);
  const clb_motion_step step = {.kick = move->kick,
                                .grow = {move->grow, move->grow_again},
                                .reach = {move->reach, move->reach_again},
                                .keep = move->keep,
                                .width = move->width,
                                .seed = move->seed,
                                .step = move->step,
                                .adds = d->heated,
                                .places = !has_skin(d) || d->cpu ? CLB_PLACES_IDLE
                                          : d->listed            ? CLB_PLACES_COMPARED
                                                                 : CLB_PLACES_SET};
  s = told(d, clb_motion_run(d->motion, &a, &step));
  if (s) return s;
  d->listed |= step.places == CLB_PLACES_SET;
  d->unseen |= drifts;
  bound_move(d, move);
  d->shown = d->heated = true;
  d->last = *move;
  d->has_found = a.checked;
  return CLB_OK;
}

clb_status clb_dynamics_run_sized(clb_dynamics *d, const clb_dynamics_move *move, size_t size) {
  clb_dynamics_move all;
  if (!d) return clb_null(__func__, "dynamics");
  if (!move) return FAIL(d, CLB_ERROR_ARGUMENT, "clb_dynamics_run: move is NULL");
  const clb_status s =
      clb_take_struct(&d->model->ctx->error, "clb_dynamics_move", &all, sizeof all, move, size);
  return s ? s : run(d, &all);
}

/* ---- what the host sees ---- */

static clb_status check_finite(clb_dynamics *d, const clb_dynamics_view *view) {
  clb_model *m = d->model;
  clb_status s = clb_model_finite(m, "energy", 1, 1, &view->energy);
  if (!s && !isfinite(view->kinetic + view->force)) {
    s = clb_dynamics_read(d, NULL, NULL, d->host, NULL);
    if (!s) s = clb_model_finite(m, "forces", d->n, 3, d->host);
    if (!s) s = FAIL(d, CLB_ERROR_ARGUMENT, "clb_dynamics: a velocity is not finite");
  }
  return s ? s : clb_model_finite(m, "stress", d->stress ? 3 : 0, 3, view->stress);
}

static void take_stress(const clb_dynamics *d, const double *virial, double *stress) {
  const double volume = clb_cell_volume(d->cell);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      stress[3 * i + j] = (virial[3 * i + j] + virial[3 * j + i]) / 2 / volume;
}

static clb_status see(clb_dynamics *d, clb_dynamics_view *view) {
  static const clb_dynamics_move still = {.grow = 1, .keep = 1, .grow_again = 1};
  double seen[CLB_SEEN];
  clb_status s = d->shown ? CLB_OK : run(d, &still);
  bool there = false;
  if (!s) s = confirm(d, &there);
  if (!s && !there) s = read_record(d);
  if (s) return s;
  clb_motion_seen(d->motion, d->n, d->host, seen);
  const double *results = d->host + d->has_found;
  d->heated = false;
  *view = (clb_dynamics_view){.energy = d->cpu ? d->energy : results[0],
                              .kinetic = seen[CLB_SEEN_MOTION] / 2,
                              .heat = seen[CLB_SEEN_HEAT] / 2,
                              .speed = sqrt(seen[CLB_SEEN_SPEED]),
                              .force = sqrt(seen[CLB_SEEN_FORCE]),
                              .fastest = (int64_t)seen[CLB_SEEN_FASTEST],
                              .strongest = (int64_t)seen[CLB_SEEN_STRONGEST]};
  if (d->stress && d->cpu) memcpy(view->stress, d->virial, sizeof d->virial);
  else if (d->stress) take_stress(d, results + 1, view->stress);
  return check_finite(d, view);
}

clb_status clb_dynamics_see_sized(clb_dynamics *d, clb_dynamics_view *view, size_t size) {
  clb_dynamics_view all;
  if (!d) return clb_null(__func__, "dynamics");
  if (!view) return FAIL(d, CLB_ERROR_ARGUMENT, "clb_dynamics_see: view is NULL");
  const clb_status s = see(d, &all);
  if (!s) clb_give_struct(&all, sizeof all, view, size);
  return s;
}

clb_status clb_dynamics_read(clb_dynamics *d, double *positions, double *velocities, double *forces,
                             double *listed) {
  if (!d) return clb_null(__func__, "dynamics");
  const uint64_t bytes = (uint64_t)d->n * 3 * sizeof(double);
  const bool kept = has_skin(d) && d->listed;
  const struct {
    double *to;
    clb_buffer *from;
  } rows[] = {{positions, d->x},
              {velocities, d->v},
              {forces, d->cpu ? d->force : d->model->results},
              {listed, kept ? d->places : d->x}};
  bool there;
  clb_status s = forces ? check_forces(d, "clb_dynamics_read") : CLB_OK;
  if (!s) s = confirm(d, &there);
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !s && bytes; i++)
    if (rows[i].to) s = told(d, clb_staged_read(rows[i].from, 0, rows[i].to, bytes));
  return s;
}
