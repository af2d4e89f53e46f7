/* tests/atoms/test_cell_list.c - lists of neighbours made by kernels are those of the host, number
   by number, on every device that runs here. */
#include "models/atoms/neighbours.h"
#include "kernels/graph/host/cell_list.h"
#include "kernels/layers/host/layers.h"

#include "tests/fakes/simulated_devices.h"
#include "tests/atoms/graph_lists.h"
#include "tests/atoms/random_atoms.h"

enum { MAX_ATOMS = 6000 };

typedef struct {
  int64_t n;
  double positions[3 * MAX_ATOMS], cell[9];
  bool periodic[3];
} atoms;

/* ---- one list ---- */

static clb_memory guarded(clb_context *ctx, int64_t n, clb_buffer **b) {
  int32_t *x = malloc((size_t)(n + 1) * 4);
  for (int64_t i = 0; i <= n; i++) x[i] = -7;
  OK(ctx, clb_buffer_create(ctx, (uint64_t)(n + 1) * 4, b));
  OK(ctx, clb_buffer_write(*b, 0, x, (uint64_t)(n + 1) * 4));
  free(x);
  return (*b)->memory;
}

/* The device's number of edges, -1 if it leaves them to the host; reference: the host's list. */
static int64_t edges_on(clb_context *ctx, clb_cell_list *list, clb_neighbours *reference,
                        const atoms *a, clb_buffer **x) {
  clb_cell_grid grid;
  bool rebuild;
  int64_t n_edges = 0;
  if (clb_neighbours_begin(reference, a->n, a->positions, a->cell, a->periodic, &rebuild, &grid))
    fail_msg("%s", reference->error);
  assert_true(rebuild);
  OK(ctx, clb_buffer_create(ctx, (uint64_t)a->n * 24 + 1, x));
  if (a->n) OK(ctx, clb_buffer_write(*x, 0, a->positions, (uint64_t)a->n * 24));
  if (clb_cell_grid_slots(&grid))
    OK(ctx,
       clb_cell_list_count(list, &grid, reference->cutoff + reference->skin, a->n, *x, &n_edges));
  if (clb_neighbours_update(reference, a->n, a->positions, a->cell, a->periodic, NULL))
    fail_msg("%s", reference->error);
  return n_edges;
}

static void expect_list(clb_context *ctx, clb_buffer *b, int64_t n, const int32_t *must,
                        const char *what) {
  int32_t *got = malloc((size_t)(n + 1) * 4);
  OK(ctx, clb_buffer_read(b, 0, got, (uint64_t)(n + 1) * 4));
  for (int64_t i = 0; i < n; i++)
    if (got[i] != must[i])
      fail_msg("%s: edge %lld of %lld has %d, must have %d", what, (long long)i, (long long)n,
               got[i], must[i]);
  assert_int_equal(got[n], -7);
  free(got);
}

/* In more room than they need, edges of atoms to themselves follow those of each, as many of all
   but for one; in less, there are no others. */
static void check_room(clb_context *ctx, clb_cell_list *list, int64_t n_atoms,
                       const clb_neighbours *l, const int32_t *shifts) {
  const int32_t own[3] = {0, 0, 0};
  static const char *const names[] = {"senders in a room", "receivers in a room",
                                      "shifts in a room", "keys"};
  for (int which = 0; which < 2; which++) {
    const int64_t n = which ? 0 : l->n_edges, room = which ? l->n_edges - 1 : n + n_atoms + 3;
    if (room < 0) continue;
    int32_t *must[4];
    clb_buffer *b[4];
    clb_memory memory[4];
    int64_t at = 0, e = 0;
    for (int i = 0; i < 4; i++) {
      must[i] = malloc((size_t)(room + 1) * 4);
      memory[i] = guarded(ctx, room, &b[i]);
    }
    for (int64_t atom = 0; atom < n_atoms; atom++) {
      const int64_t nulls = (atom + 1) * (room - n) / n_atoms - atom * (room - n) / n_atoms;
      for (; e < n && l->receivers[e] == atom; e++, at++) {
        must[0][at] = must[3][at] = l->senders[e];
        must[1][at] = (int32_t)atom, must[2][at] = shifts[e];
      }
      for (int64_t i = 0; i < nulls; i++, at++) {
        must[0][at] = must[1][at] = (int32_t)atom;
        must[2][at] = clb_edge_shift(own), must[3][at] = (int32_t)n_atoms;
      }
    }
    assert_int_equal(at, room);
    OK(ctx, clb_cell_list_fill(list, room, &memory[0], &memory[1], &memory[2], &memory[3]));
    if (room && clb_cell_list_is_small(list)) check_ends(ctx, list, n_atoms, room);
    for (int i = 0; i < 4; i++) {
      expect_list(ctx, b[i], room, must[i], names[i]);
      clb_buffer_destroy(&b[i]);
      free(must[i]);
    }
  }
}

/* Returns the number of edges. */
static int64_t check(clb_context *ctx, clb_cell_list *list, const atoms *a, double cutoff) {
  clb_neighbours l = {.cutoff = cutoff};
  clb_buffer *x, *b[3];
  clb_memory memory[3];
  const int64_t n = edges_on(ctx, list, &l, a, &x);
  if (n != l.n_edges)
    fail_msg("%lld atoms, cutoff %g: %lld edges, must be %lld", (long long)a->n, cutoff,
             (long long)n, (long long)l.n_edges);
  int32_t *shifts = malloc((size_t)(n + 1) * 4);
  for (int64_t e = 0; e < n; e++) shifts[e] = clb_edge_shift(l.shifts + 3 * e);
  for (int i = 0; i < 3; i++) memory[i] = guarded(ctx, n, &b[i]);
  if (n) OK(ctx, clb_cell_list_fill(list, n, &memory[0], &memory[1], &memory[2], NULL));
  expect_list(ctx, b[0], n, l.senders, "senders");
  expect_list(ctx, b[1], n, l.receivers, "receivers");
  expect_list(ctx, b[2], n, shifts, "shifts");
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&b[i]);
  if (a->n) check_room(ctx, list, a->n, &l, shifts);
  clb_buffer_destroy(&x);
  free(shifts);
  clb_neighbours_free(&l);
  return n;
}

/* Of many systems: those of each, one after the other, atoms numbered on. */
static void check_many(clb_context *ctx, clb_cell_list *list, const atoms *all, int n_systems,
                       double cutoff) {
  clb_neighbours l = {.cutoff = cutoff};
  clb_cell_grid *grids = calloc((size_t)n_systems, sizeof *grids);
  int32_t *must[3] = {NULL}, *system = malloc(4 * (size_t)n_systems * MAX_ATOMS);
  double *x = malloc(24 * (size_t)n_systems * MAX_ATOMS);
  int64_t atoms_before = 0, edges = 0, counted;
  bool rebuild;
  for (int i = 0; i < n_systems; i++) {
    const atoms *a = &all[i];
    clb_neighbours_forget(&l);
    assert_int_equal(
        clb_neighbours_begin(&l, a->n, a->positions, a->cell, a->periodic, &rebuild, &grids[i]),
        CLB_OK);
    assert_int_equal(clb_neighbours_update(&l, a->n, a->positions, a->cell, a->periodic, NULL),
                     CLB_OK);
    for (int k = 0; k < 3; k++) must[k] = realloc(must[k], 4 * (size_t)(edges + l.n_edges + 1));
    for (int64_t e = 0; e < l.n_edges; e++) {
      must[0][edges + e] = (int32_t)atoms_before + l.senders[e];
      must[1][edges + e] = (int32_t)atoms_before + l.receivers[e];
      must[2][edges + e] = clb_edge_shift(l.shifts + 3 * e);
    }
    for (int64_t j = 0; j < a->n; j++) system[atoms_before + j] = i;
    memcpy(x + 3 * atoms_before, a->positions, (size_t)a->n * 24);
    atoms_before += a->n, edges += l.n_edges;
  }
  clb_buffer *positions, *b[3];
  clb_memory memory[3];
  OK(ctx, clb_buffer_create(ctx, (uint64_t)atoms_before * 24 + 1, &positions));
  OK(ctx, clb_buffer_write(positions, 0, x, (uint64_t)atoms_before * 24));
  OK(ctx, clb_cell_list_count_many(list, n_systems, grids, system, cutoff, atoms_before, positions,
                                   (clb_rows){0}, &counted));
  assert_int_equal(counted, edges);
  for (int i = 0; i < 3; i++) memory[i] = guarded(ctx, edges, &b[i]);
  OK(ctx, clb_cell_list_fill(list, edges, &memory[0], &memory[1], &memory[2], NULL));
  static const char *const names[] = {"senders of many", "receivers of many", "shifts of many"};
  for (int i = 0; i < 3; i++) {
    expect_list(ctx, b[i], edges, must[i], names[i]);
    clb_buffer_destroy(&b[i]);
    free(must[i]);
  }
  clb_buffer_destroy(&positions);
  clb_neighbours_free(&l);
  free(grids), free(system), free(x);
}

static void refused(clb_context *ctx, clb_cell_list *list, const atoms *a, double cutoff) {
  clb_neighbours l = {.cutoff = cutoff};
  clb_buffer *x;
  assert_int_equal(edges_on(ctx, list, &l, a, &x), -1);
  clb_buffer_destroy(&x);
  clb_neighbours_free(&l);
}

/* ---- tests ---- */

static bool interprets(void **state) {
  return !strcmp(((struct device *)*state)->name, "cpu:interpreter");
}

/* From many images of a cell to many bins for each atom; all mixes of open and periodic directions;
   one list for all. */
static void random_atoms(void **state) {
  static const double sizes[] = {1.5, 4, 12, 50, 3000};
  static atoms a;
  clb_context *ctx = context(state);
  clb_cell_list *list;
  uint64_t seed = 7;
  int64_t all = 0;
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_ONE, &list));
  for (int trial = 0; trial < 160; trial += interprets(state) ? 3 : 1) {
    const double size = sizes[trial / 8 % 5],
                 cutoff = size < 2 ? between(&seed, .5, 4) : between(&seed, 1, 6);
    for (int d = 0; d < 3; d++) a.periodic[d] = trial >> d & 1;
    a.n = size < 2 ? trial % 5 : (int64_t)between(&seed, 0, size < 5 ? 20 : 60);
    random_cell(&seed, size, trial / 40 % 2, a.cell);
    random_positions(&seed, trial / 80 % 2 ? 2 : 0, a.n, a.cell, a.positions);
    all += check(ctx, list, &a, cutoff);
  }
  assert_true(all > 1000);
  clb_cell_list_destroy(&list);
  assert_null(list);
}

/* Systems of all sizes together, some without atoms; the list grows, and is used again. */
static void many_systems(void **state) {
  enum { MAX_SYSTEMS = 24 };
  atoms *all = calloc(MAX_SYSTEMS, sizeof *all);
  clb_context *ctx = context(state);
  clb_cell_list *list;
  uint64_t seed = 11;
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_MANY, &list));
  for (int trial = 0; trial < (interprets(state) ? 2 : 6); trial++) {
    const int n = trial ? (int)between(&seed, 1, MAX_SYSTEMS) : 1;
    for (int i = 0; i < n; i++) {
      const double size = i % 3 ? 12 : 4;
      for (int d = 0; d < 3; d++) all[i].periodic[d] = (trial + i) >> d & 1;
      all[i].n = i % 5 == 4 ? 0 : (int64_t)between(&seed, 1, i % 3 ? 40 : 8);
      random_cell(&seed, size, i % 2, all[i].cell);
      random_positions(&seed, i % 4 == 3 ? 2 : 0, all[i].n, all[i].cell, all[i].positions);
    }
    check_many(ctx, list, all, n, 3.1);
  }
  clb_cell_list_destroy(&list);
  free(all);
}

/* A slab a quarter of the cutoff high, a wire, a cluster far from some atoms; lattices with atoms
   exactly at the cutoff; no atom, and one. */
static void shapes(void **state) {
  static atoms a;
  clb_context *ctx = context(state);
  clb_cell_list *list;
  uint64_t seed = 5;
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_ONE, &list));
  for (int which = 0; which < 8; which++) {
    a = (atoms){.n = 45, .cell = {9, 0, 0, 4, 8, 0, 0, 0, 7}, .periodic = {true, true, true}};
    if (which < 2) a.cell[8] = 0.75, a.cell[6] = which * 0.3;
    if (which == 2) a.cell[0] = 400, a.periodic[1] = a.periodic[2] = false;
    if (which == 3) a.periodic[0] = a.periodic[1] = a.periodic[2] = false;
    if (which == 6) a.n = 0;
    if (which == 7) a.n = 1, a.cell[0] = a.cell[4] = a.cell[8] = 2, a.cell[3] = 0;
    random_positions(&seed, 0, a.n, a.cell, a.positions);
    if (which == 3)
      for (int d = 0; d < 3; d++) a.positions[d] = 1e6, a.positions[6 + d] = -1e9;
    for (int64_t i = 0; i < 64 && (which == 4 || which == 5); i++) {
      a.n = 64;
      for (int d = 0; d < 3; d++) a.positions[3 * i + d] = (double)(i >> 2 * d & 3);
      for (int d = 0; d < 9; d++) a.cell[d] = d % 4 ? 0 : 4;
    }
    check(ctx, list, &a, which == 4 ? 2 : which == 5 ? 2.0000001 : 3);
  }
  clb_cell_list_destroy(&list);
}

/* More atoms than lanes, groups and rows of counts; half of them in a tenth of the cell. */
static void many(void **state) {
  static atoms a;
  clb_context *ctx = context(state);
  clb_cell_list *list;
  uint64_t seed = 9;
  const int64_t n = interprets(state) ? 300 : 5000;
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_ONE, &list));
  for (int trial = 0; trial < 2; trial++) {
    const double size = cbrt((double)n / 0.07);
    a = (atoms){.n = n - 7 * trial, .periodic = {true, trial == 0, true}};
    random_cell(&seed, size, trial, a.cell);
    for (int64_t i = 0; i < a.n; i++) {
      double f[3];
      for (int d = 0; d < 3; d++) f[d] = between(&seed, 0, i % 2 ? 1 : 0.47);
      for (int k = 0; k < 3; k++)
        a.positions[3 * i + k] = f[0] * a.cell[k] + f[1] * a.cell[3 + k] + f[2] * a.cell[6 + k];
    }
    assert_true(check(ctx, list, &a, 3.4) > 5 * n);
  }
  clb_cell_list_destroy(&list);
}

/* What is left to the host; the list is good afterwards. */
static void leaves(void **state) {
  static atoms a, good;
  clb_context *ctx = context(state);
  clb_cell_list *list;
  uint64_t seed = 3;
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_ONE, &list));
  good = (atoms){.n = 30, .cell = {9, 0, 0, 0, 8, 0, 0, 0, 7}, .periodic = {true, true, true}};
  for (int64_t i = 0; i < 3 * good.n; i++) good.positions[i] = between(&seed, 0, 7);
  check(ctx, list, &good, 3);
  a = good;
  for (int d = 0; d < 3; d++) a.positions[3 + d] = a.positions[d] + 5e-4;
  refused(ctx, list, &a, 3); /* at one place */
  a = good;
  a.positions[5] += 512 * 7.;
  refused(ctx, list, &a, 5); /* an image far away */
  check(ctx, list, &good, 3);
  if (!interprets(state)) {
    a = (atoms){.n = 4200};
    for (int64_t i = 0; i < 3 * a.n; i++) a.positions[i] = between(&seed, 0, 2);
    refused(ctx, list, &a, 4); /* crowded */
    check(ctx, list, &good, 4);
  }
  const double nan = 0. / 0., far = 0x1p30 * 9;
  for (int i = 0; i < 2; i++) { /* positions that the host did not see */
    clb_neighbours l = {.cutoff = 3};
    clb_cell_grid grid;
    bool rebuild;
    int64_t n_edges;
    clb_buffer *x;
    assert_int_equal(
        clb_neighbours_begin(&l, good.n, good.positions, good.cell, good.periodic, &rebuild, &grid),
        CLB_OK);
    a = good;
    a.positions[15] = i ? far : nan;
    OK(ctx, clb_buffer_create(ctx, (uint64_t)a.n * 24, &x));
    OK(ctx, clb_buffer_write(x, 0, a.positions, (uint64_t)a.n * 24));
    OK(ctx, clb_cell_list_count(list, &grid, 3, a.n, x, &n_edges));
    assert_int_equal(n_edges, -1);
    clb_buffer_destroy(&x);
    clb_neighbours_free(&l);
  }
  clb_cell_list_destroy(&list);
}

/* ---- listed pairs ---- */

enum { MAX_LISTED = 60000 };
typedef struct {
  int64_t n_local, n_total, n_pairs;
  double x[3 * 2048];
  int32_t row[2048], starts[4096], senders[MAX_LISTED];
} pair_list;

/* Each local atom's own number of pairs, of any atoms but itself, some of them twice. */
static void random_pairs(uint64_t *seed, pair_list *p) {
  p->n_pairs = 0;
  for (int64_t i = 0; i < 3 * p->n_total; i++) p->x[i] = between(seed, 0, 9);
  for (int64_t i = 0; i < p->n_total; i++) p->row[i] = (int32_t)(7 * i % 4099);
  for (int64_t r = 0; r < clb_cell_list_starts(p->n_local); r++) {
    p->starts[r] = (int32_t)p->n_pairs;
    const int64_t n = r < p->n_local && p->n_total > 1 ? (int64_t)between(seed, 0, 60) : 0;
    for (int64_t i = 0; i < n && r % 5 != 3; i++) {
      const int32_t s = (int32_t)between(seed, 0, (double)p->n_total - 1e-6);
      if (s != r) p->senders[p->n_pairs++] = s;
    }
  }
}

static int64_t count_pairs(clb_context *ctx, clb_cell_list *list, const pair_list *p, double cutoff,
                           clb_buffer **b) {
  const void *from[] = {p->row, p->starts, p->senders, p->x};
  const int64_t bytes[] = {4 * p->n_total, 4 * clb_cell_list_starts(p->n_local), 4 * p->n_pairs,
                           24 * p->n_total};
  int64_t n = -2;
  for (int i = 0; i < 4; i++) {
    OK(ctx, clb_buffer_create(ctx, (uint64_t)bytes[i] + 1, &b[i]));
    if (bytes[i]) OK(ctx, clb_buffer_write(b[i], 0, from[i], (uint64_t)bytes[i]));
  }
  clb_cell_list_set_pairs(list, b[0], b[1], b[2]);
  OK(ctx, clb_cell_list_count(list, NULL, cutoff, p->n_local, b[3], &n));
  return n;
}

static void check_pairs(clb_context *ctx, clb_cell_list *list, const pair_list *p, double cutoff) {
  static int32_t must[4][MAX_LISTED];
  static const char *const names[] = {"rows", "receivers", "shifts", "senders"};
  const int32_t home[3] = {0, 0, 0};
  clb_buffer *b[4], *out[4];
  clb_memory memory[4];
  int64_t n = 0;
  for (int64_t r = 0; r < p->n_local; r++)
    for (int32_t i = p->starts[r]; i < p->starts[r + 1]; i++) {
      double square = 0;
      for (int k = 0; k < 3; k++) {
        const double v = p->x[3 * p->senders[i] + k] - p->x[3 * r + k];
        square += v * v;
      }
      if (square >= cutoff * cutoff) continue;
      must[0][n] = p->row[p->senders[i]], must[1][n] = (int32_t)r;
      must[2][n] = clb_edge_shift(home), must[3][n++] = p->senders[i];
    }
  assert_int_equal(count_pairs(ctx, list, p, cutoff, b), n);
  for (int i = 0; i < 4; i++) memory[i] = guarded(ctx, n, &out[i]);
  OK(ctx, clb_cell_list_fill(list, n, &memory[0], &memory[1], &memory[2], &memory[3]));
  for (int i = 0; i < 4; i++) {
    expect_list(ctx, out[i], n, must[i], names[i]);
    clb_buffer_destroy(&out[i]);
    clb_buffer_destroy(&b[i]);
  }
}

static void leaves_pairs(clb_context *ctx, clb_cell_list *list, const pair_list *p) {
  clb_buffer *b[4];
  assert_int_equal(count_pairs(ctx, list, p, 3, b), -1);
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&b[i]);
}

/* Those within the cutoff of a list, in its order: more than a row of counts, an atom, no pairs;
   and what is left to the host. */
static void pairs(void **state) {
  static const int64_t sizes[][2] = {{1, 1}, {1, 2}, {13, 40}, {256, 256}, {257, 300}, {801, 1203}};
  static pair_list p;
  clb_context *ctx = context(state);
  clb_cell_list *list;
  uint64_t seed = 19;
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_PAIRS, &list));
  for (int i = 0; i < (interprets(state) ? 5 : 6); i++) {
    p.n_local = sizes[i][0], p.n_total = sizes[i][1];
    random_pairs(&seed, &p);
    check_pairs(ctx, list, &p, between(&seed, 1, 8));
  }
  p.n_local = 13, p.n_total = 40;
  random_pairs(&seed, &p);
  assert_true(p.n_pairs > 100);
  const double x = p.x[3 * p.senders[0]], *near = p.x + 3 * (p.starts[1] ? 0 : 1);
  p.x[3 * p.senders[0]] = NAN;
  leaves_pairs(ctx, list, &p);
  p.x[3 * p.senders[0]] = x;
  check_pairs(ctx, list, &p, 3);
  for (int k = 0; k < 3; k++) p.x[3 * p.senders[0] + k] = near[k] + 4e-4;
  leaves_pairs(ctx, list, &p);
  p.n_local = 1, p.n_total = 2, p.n_pairs = CLB_CELL_MAX_NEIGHBOURS + 1;
  for (int k = 0; k < 6; k++) p.x[k] = k;
  for (int64_t i = 0; i < p.n_pairs; i++) p.senders[i] = 1;
  for (int64_t r = 0; r < clb_cell_list_starts(1); r++) p.starts[r] = r ? (int32_t)p.n_pairs : 0;
  for (int k = 0; k < 3; k++) p.x[3 + k] = p.x[k] + 1;
  leaves_pairs(ctx, list, &p);
  for (int64_t r = 1; r < clb_cell_list_starts(1); r++) p.starts[r]--;
  check_pairs(ctx, list, &p, 3);
  clb_cell_list_destroy(&list);
}

static void compiles(void **state) {
  const struct device *d = *state;
  if (SANITIZED && !strncmp(d->name, "level_zero", 10))
    skip_because("%s: Intel's compiler does not start under a sanitizer", d->name);
  clb_context *ctx = context(state);
  clb_cell_list *list;
  if (d->f64) OK(ctx, clb_cell_list_create(ctx, CLB_CELL_ONE, &list));
  else assert_int_equal(clb_cell_list_create(ctx, CLB_CELL_ONE, &list), CLB_ERROR_UNSUPPORTED);
  clb_cell_list_destroy(&list);
}

/* ---- time ---- */

/* Seconds of a whole list and of sorting its edges, the least of some, and of the host's list:
   atoms as dense as in water, pairs within 5 Angstrom. */
static int measure(const char *device, int64_t n) {
  const double radius = 5, size = cbrt((double)n / 0.1),
               cell[9] = {size, 0, 0, 0, size, 0, 0, 0, size};
  double *positions = malloc((size_t)n * 24), best[3] = {1e9, 1e9, 0};
  const bool periodic[3] = {true, true, true};
  clb_neighbours l = {.cutoff = radius};
  clb_context *ctx = NULL;
  clb_cell_list *list;
  clb_graph *g;
  clb_buffer *x, *shifts = NULL;
  clb_cell_grid grid;
  bool rebuild;
  int64_t n_edges;
  uint64_t seed = 1;
  assert_non_null(positions);
  for (int64_t i = 0; i < 3 * n; i++) positions[i] = between(&seed, 0, size);
  OK(ctx, clb_context_create(device, &ctx));
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_ONE, &list));
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  OK(ctx, clb_buffer_create(ctx, (uint64_t)n * 24, &x));
  assert_int_equal(clb_neighbours_begin(&l, n, positions, cell, periodic, &rebuild, &grid), CLB_OK);
  for (int turn = 0; turn < 5; turn++) {
    const double start = clb_seconds_now();
    OK(ctx, clb_buffer_write(x, 0, positions, (uint64_t)n * 24));
    OK(ctx, clb_cell_list_count(list, &grid, radius, n, x, &n_edges));
    if (n_edges < 0) fail_msg("%s leaves the list to the host", device);
    if (!shifts) OK(ctx, clb_buffer_create(ctx, (uint64_t)n_edges * 4 + 4, &shifts));
    OK(ctx, clb_graph_reserve(g, n, n, n_edges));
    OK(ctx, clb_cell_list_fill(list, n_edges, &g->buffer[CLB_GRAPH_SENDERS].memory,
                               &g->buffer[CLB_GRAPH_RECEIVERS].memory, &shifts->memory, NULL));
    OK(ctx, clb_wait(ctx));
    const double listed = clb_seconds_now();
    OK(ctx, clb_graph_sort(g, n, n, n_edges));
    OK(ctx, clb_wait(ctx));
    best[0] = fmin(best[0], listed - start);
    best[1] = fmin(best[1], clb_seconds_now() - listed);
  }
  best[2] = clb_seconds_now();
  assert_int_equal(clb_neighbours_update(&l, n, positions, cell, periodic, NULL), CLB_OK);
  printf("%s: %lld atoms, %lld edges: list %.3f ms, sorting %.3f ms; host's list %.3f ms\n", device,
         (long long)n, (long long)n_edges, 1e3 * best[0], 1e3 * best[1],
         1e3 * (clb_seconds_now() - best[2]));
  clb_buffer_destroy(&shifts);
  clb_buffer_destroy(&x);
  clb_graph_destroy(&g);
  clb_cell_list_destroy(&list);
  clb_context_destroy(&ctx);
  clb_neighbours_free(&l);
  free(positions);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2) return measure(argv[1], atoll(argv[2]));
  static const named_test tests[] = {{"random_atoms", random_atoms, false},
                                     {"shapes", shapes, false},
                                     {"many_systems", many_systems, false},
                                     {"many", many, false},
                                     {"leaves", leaves, false},
                                     {"pairs", pairs, false}};
  return run_on_all("cell_list", tests, sizeof tests / sizeof *tests, compiles);
}
