/* tests/atoms/test_neighbours.c - neighbour lists against a search of all pairs and images. */
#include <stdlib.h>

/* Counts the list's allocations, and makes them fail. */
static int allocations, allocations_left = 1 << 30;
static void *allocate(size_t bytes) {
  allocations++;
  return allocations_left-- > 0 ? malloc(bytes) : NULL;
}
#define malloc allocate
#include "models/atoms/neighbours.c"
#undef malloc

#include "tests/atoms/random_atoms.h"

enum { MAX_ATOMS = 60 };

typedef struct {
  int64_t n;
  double positions[3 * MAX_ATOMS], cell[9];
  bool periodic[3];
} atoms;

typedef struct {
  int32_t receiver, sender, shift[3];
} edge;

static int by_edge(const void *a, const void *b) {
  const int32_t *x = a, *y = b;
  for (int i = 0; i < 5; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

static double vector(const atoms *a, const edge *e, double v[3]) {
  for (int k = 0; k < 3; k++) {
    v[k] = a->positions[3 * e->sender + k] - a->positions[3 * e->receiver + k];
    for (int d = 0; d < 3; d++) v[k] += a->periodic[d] ? e->shift[d] * a->cell[3 * d + k] : 0;
  }
  return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

/* Images to search in each direction: those within the cutoff, and as many as positions lie outside
   of the cell. */
static void extents(const atoms *a, double cutoff, int32_t max[3]) {
  for (int d = 0; d < 3; d++) {
    max[d] = 0;
    if (!a->periodic[d]) continue;
    double g[3], height, size = 0, low = INFINITY, high = -INFINITY;
    const double *b = a->cell + 3 * ((d + 1) % 3), *c = a->cell + 3 * ((d + 2) % 3),
                 *own = a->cell + 3 * d;
    for (int k = 0; k < 3; k++)
      g[k] = b[(k + 1) % 3] * c[(k + 2) % 3] - b[(k + 2) % 3] * c[(k + 1) % 3], size += g[k] * g[k];
    height = fabs(g[0] * own[0] + g[1] * own[1] + g[2] * own[2]) / sqrt(size);
    for (int64_t i = 0; i < a->n; i++) {
      double f = 0;
      for (int k = 0; k < 3; k++) f += a->positions[3 * i + k] * g[k] / sqrt(size) / height;
      low = fmin(low, f), high = fmax(high, f);
    }
    max[d] = (int32_t)(cutoff / height + (high - low)) + 2;
  }
}

/* Sorted edges by trying all pairs; *n of them. All three vectors of the cell must be given, also
   in open directions. */
static edge *brute_force(const atoms *a, double cutoff, int64_t *n) {
  int32_t max[3];
  int64_t capacity = 1000;
  edge *edges = malloc((size_t)capacity * sizeof *edges), e;
  double v[3];
  extents(a, cutoff, max);
  *n = 0;
  for (e.receiver = 0; e.receiver < a->n; e.receiver++)
    for (e.sender = 0; e.sender < a->n; e.sender++)
      for (e.shift[0] = -max[0]; e.shift[0] <= max[0]; e.shift[0]++)
        for (e.shift[1] = -max[1]; e.shift[1] <= max[1]; e.shift[1]++)
          for (e.shift[2] = -max[2]; e.shift[2] <= max[2]; e.shift[2]++) {
            if (vector(a, &e, v) >= cutoff * cutoff ||
                (e.receiver == e.sender && !e.shift[0] && !e.shift[1] && !e.shift[2]))
              continue;
            if (*n == capacity) edges = realloc(edges, (size_t)(capacity *= 2) * sizeof *edges);
            assert_non_null(edges);
            edges[(*n)++] = e;
          }
  return edges;
}

/* The list's edges, fully sorted; checks that they were sorted by receiver. */
static edge *edges_of(const clb_neighbours *l) {
  edge *edges = malloc((size_t)l->n_edges * sizeof *edges + 1);
  assert_non_null(edges);
  for (int64_t i = 0; i < l->n_edges; i++) {
    edges[i] = (edge){l->receivers[i],
                      l->senders[i],
                      {l->shifts[3 * i], l->shifts[3 * i + 1], l->shifts[3 * i + 2]}};
    assert_true(!i || l->receivers[i] >= l->receivers[i - 1]);
  }
  qsort(edges, (size_t)l->n_edges, sizeof *edges, by_edge);
  return edges;
}

static bool update(clb_neighbours *l, const atoms *a) {
  bool rebuilt;
  if (clb_neighbours_update(l, a->n, a->positions, a->cell, a->periodic, &rebuilt))
    fail_msg("%s", l->error);
  return rebuilt;
}

static void check_vectors(const clb_neighbours *l, const atoms *a) {
  double *vectors = malloc((size_t)l->n_edges * 3 * sizeof *vectors + 1);
  assert_non_null(vectors);
  clb_neighbours_vectors(l, a->positions, vectors);
  for (int64_t i = 0; i < l->n_edges; i++) {
    double v[3];
    vector(a,
           &(edge){l->receivers[i],
                   l->senders[i],
                   {l->shifts[3 * i], l->shifts[3 * i + 1], l->shifts[3 * i + 2]}},
           v);
    for (int k = 0; k < 3; k++)
      assert_true(fabs(vectors[3 * i + k] - v[k]) <= 1e-12 * (1 + fabs(v[k])));
  }
  free(vectors);
}

/* How many edges there are. */
static int64_t check(clb_neighbours *l, const atoms *a, const char *what) {
  int64_t n;
  update(l, a);
  edge *want = brute_force(a, l->cutoff + l->skin, &n), *got = edges_of(l);
  if (n != l->n_edges)
    fail_msg("%s: %lld edges instead of %lld", what, (long long)l->n_edges, (long long)n);
  for (int64_t i = 0; i < n; i++)
    if (by_edge(&want[i], &got[i])) fail_msg("%s: edge %lld differs", what, (long long)i);
  check_vectors(l, a);
  free(want);
  free(got);
  return n;
}

/* ---- random atoms ---- */

static void random_atoms(void **state) {
  (void)state;
  static const double sizes[] = {1.5, 4, 12, 50,
                                 3000}; /* from many images per cell to many bins per atom */
  uint64_t seed = 7;
  int64_t all = 0;
  char what[100];
  for (int trial = 0; trial < 400; trial++) {
    atoms a = {.periodic = {trial & 1, trial & 2, trial & 4}};
    double size = sizes[trial / 8 % 5],
           cutoff = size < 2 ? between(&seed, .5, 4) : between(&seed, 1, 6);
    a.n = size < 2 ? trial % 5 : (int64_t)between(&seed, 0, size < 5 ? 20 : MAX_ATOMS);
    random_cell(&seed, size, trial / 40 % 2, a.cell);
    random_positions(&seed, trial / 80 % 2 ? 2 : 0, a.n, a.cell, a.positions);
    clb_neighbours l = {.cutoff = cutoff};
    snprintf(what, sizeof what, "trial %d: %lld atoms, cell of %g, cutoff %g", trial,
             (long long)a.n, size, cutoff);
    all += check(&l, &a, what);
    clb_neighbours_free(&l);
  }
  assert_true(all > 20000);
}

/* One list for all: memory left from earlier atoms makes no difference; equal atoms give equal
   lists to the last bit. */
static void reused(void **state) {
  (void)state;
  uint64_t seed = 8;
  clb_neighbours l = {.cutoff = 3.5};
  for (int trial = 0; trial < 60; trial++) {
    atoms a = {.n = trial * 7 % 41, .periodic = {trial & 1, trial & 2, trial & 4}};
    random_cell(&seed, trial % 3 ? 9 : 4, trial % 5 == 0, a.cell);
    random_positions(&seed, 1, a.n, a.cell, a.positions);
    check(&l, &a, "reused");
    clb_neighbours fresh = {.cutoff = 3.5};
    update(&fresh, &a);
    assert_int_equal(fresh.n_edges, l.n_edges);
    if (l.n_edges) {
      assert_memory_equal(fresh.senders, l.senders, (size_t)l.n_edges * 4);
      assert_memory_equal(fresh.receivers, l.receivers, (size_t)l.n_edges * 4);
      assert_memory_equal(fresh.shifts, l.shifts, (size_t)l.n_edges * 12);
    }
    clb_neighbours_free(&fresh);
  }
  clb_neighbours_free(&l);
}

/* Positions moved by whole cells: the same pairs, with the shifts changed accordingly. */
static void wrapping(void **state) {
  (void)state;
  uint64_t seed = 9;
  for (int trial = 0; trial < 40; trial++) {
    atoms a = {.n = 25, .periodic = {trial & 1, trial & 2, trial & 4}}, b;
    int32_t by[25][3];
    random_cell(&seed, 6, trial & 8, a.cell);
    random_positions(&seed, 0, a.n, a.cell, a.positions);
    b = a;
    for (int i = 0; i < a.n; i++)
      for (int d = 0; d < 3; d++) {
        by[i][d] = a.periodic[d] ? (int32_t)between(&seed, -1000, 1000) : 0;
        for (int k = 0; k < 3; k++) b.positions[3 * i + k] += by[i][d] * a.cell[3 * d + k];
      }
    clb_neighbours l = {.cutoff = 4}, m = {.cutoff = 4};
    update(&l, &a);
    update(&m, &b);
    assert_int_equal(l.n_edges, m.n_edges);
    edge *want = edges_of(&l), *got = edges_of(&m);
    for (int64_t i = 0; i < m.n_edges; i++)
      for (int d = 0; d < 3; d++) got[i].shift[d] += by[got[i].sender][d] - by[got[i].receiver][d];
    qsort(got, (size_t)m.n_edges, sizeof *got, by_edge);
    assert_memory_equal(want, got, (size_t)l.n_edges * sizeof *got + !l.n_edges);
    free(want);
    free(got);
    clb_neighbours_free(&l);
    clb_neighbours_free(&m);
  }
}

/* ---- special positions ---- */

/* A simple cubic lattice of unit cells: whole numbers, so that atoms lie exactly at the cutoff. */
static void strictly_below(void **state) {
  (void)state;
  static const struct {
    double cutoff;
    int64_t each;
  } shells[] = {{0, 0},  {1, 0},          {1.0000001, 6}, {1.5, 18},
                {2, 26}, {2.0000001, 32}, {3, 92},        {3.0000001, 122}};
  for (int edge_cells = 1; edge_cells <= 3; edge_cells++)
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
      atoms a = {.n = edge_cells * edge_cells * edge_cells, .periodic = {true, true, true}};
      for (int d = 0; d < 3; d++) a.cell[4 * d] = edge_cells;
      for (int j = 0; j < a.n; j++)
        for (int d = 0; d < 3; d++)
          a.positions[3 * j + d] = (d == 0   ? j % edge_cells
                                    : d == 1 ? j / edge_cells % edge_cells
                                             : j / edge_cells / edge_cells) -
                                   (j == 4 ? 6 : 0);
      clb_neighbours l = {.cutoff = shells[i].cutoff};
      update(&l, &a);
      if (l.n_edges != shells[i].each * a.n)
        fail_msg("cutoff %g, %lld atoms: %lld edges", l.cutoff, (long long)a.n,
                 (long long)l.n_edges);
      clb_neighbours_free(&l);
    }
}

static void few_atoms(void **state) {
  (void)state;
  clb_neighbours l = {.cutoff = 3};
  atoms none = {.n = 0, .cell = {2, 0, 0, 0, 2, 0, 0, 0, 2}, .periodic = {true, true, true}},
        one = none, same = none;
  assert_int_equal(check(&l, &none, "no atoms"), 0);
  one.n = 1;
  assert_int_equal(check(&l, &one, "one atom"), 18); /* (1,0,0) and (1,1,0) of a lattice of 2 */
  same.n = 2;
  same.periodic[0] = same.periodic[1] = same.periodic[2] = false;
  assert_int_equal(check(&l, &same, "two atoms at one place"), 2);
  same.cell[0] = same.cell[4] = same.cell[8] = 50;
  same.periodic[1] = true;
  same.positions[4] = -150; /* the same position, three cells away */
  assert_int_equal(check(&l, &same, "two atoms at images of one place"), 2);
  assert_int_equal(l.shifts[1], 3);
  assert_false(
      clb_neighbours_update(&l, 1, one.positions, NULL, (bool[3]){false, false, false}, NULL));
  assert_int_equal(l.n_edges, 0);
  assert_false(clb_neighbours_update(&l, 0, NULL, NULL, (bool[3]){false, false, false}, NULL));
  clb_neighbours_free(&l);
}

/* Rows of the cell in open directions are ignored. */
static void open_directions(void **state) {
  (void)state;
  uint64_t seed = 10;
  for (int trial = 0; trial < 40; trial++) {
    atoms a = {.n = 20, .periodic = {trial & 1, trial & 2, trial & 4}};
    random_cell(&seed, 5, true, a.cell);
    random_positions(&seed, 1, a.n, a.cell, a.positions);
    clb_neighbours l = {.cutoff = 4};
    update(&l, &a);
    edge *want = edges_of(&l), *got;
    int64_t n = l.n_edges;
    for (int d = 0; d < 3; d++)
      for (int k = 0; k < 3; k++)
        if (!a.periodic[d]) a.cell[3 * d + k] = trial & 8 ? NAN : 0;
    assert_false(update(&l, &a));
    a.positions[0] += 1e-13;
    assert_true(update(&l, &a));
    got = edges_of(&l);
    assert_int_equal(n, l.n_edges);
    assert_memory_equal(want, got, (size_t)n * sizeof *got + !n);
    check_vectors(&l, &a);
    free(want);
    free(got);
    clb_neighbours_free(&l);
  }
}

/* A cluster of atoms, and some very far away: the grid neither grows nor degenerates to a few bins.
 */
static void far_apart(void **state) {
  (void)state;
  static const double far[] = {1e3, 1e6, 1e9, 1e15, 1e150};
  uint64_t seed = 11;
  for (int i = 0; i < 5; i++)
    for (int periodic = 0; periodic < 2; periodic++) {
      atoms a = {
          .n = 50, .cell = {6, 0, 0, 0, 5, 0, 0, 0, 7}, .periodic = {false, periodic, false}};
      random_positions(&seed, 0, a.n, a.cell, a.positions);
      for (int d = 0; d < 3; d++)
        a.positions[3 + d] = far[i] * (d != 1), a.positions[6 + d] = -far[i] * (d == 0);
      clb_neighbours l = {.cutoff = 3};
      check(&l, &a, "far apart");
      assert_true(l.bytes[SLOT_START] < 10000);
      clb_neighbours_free(&l);
    }
}

/* ---- skin ---- */

static void skin(void **state) {
  (void)state;
  uint64_t seed = 12;
  atoms a = {.n = 40, .periodic = {true, true, false}};
  random_cell(&seed, 9, false, a.cell);
  random_positions(&seed, 0, a.n, a.cell, a.positions);
  clb_neighbours l = {.cutoff = 3, .skin = 1};
  assert_true(update(&l, &a));
  check(&l, &a, "with skin");
  assert_false(update(&l, &a));
  atoms moved = a;
  for (int i = 0; i < a.n; i++) moved.positions[3 * i + i % 3] += i % 2 ? .4999 : -.4999;
  int before = allocations;
  assert_false(update(&l, &moved));
  assert_int_equal(allocations, before);
  check_vectors(&l, &moved);
  /* All pairs that are now closer than the cutoff are in the list. */
  int64_t n;
  edge *near_now = brute_force(&moved, l.cutoff, &n), *got = edges_of(&l);
  assert_true(n > 100);
  for (int64_t i = 0; i < n; i++)
    assert_non_null(bsearch(&near_now[i], got, (size_t)l.n_edges, sizeof *got, by_edge));
  free(near_now);
  free(got);
  /* Counts how far an atom moved since the last rebuild, not since the last update. */
  moved = a;
  moved.positions[100] += .3;
  assert_false(update(&l, &moved));
  moved.positions[100] += .3;
  assert_true(update(&l, &moved));
  moved.positions[100] -= .3;
  assert_false(update(&l, &moved));
  moved.positions[100] += .3;
  moved.positions[0] += .3, moved.positions[1] += .3;
  assert_false(update(&l, &moved));
  moved.positions[2] += .3; /* sqrt(.27) = .52 */
  assert_true(update(&l, &moved));
  moved.cell[1] += 1e-9;
  assert_true(update(&l, &moved));
  moved.cell[8] += 1; /* open */
  assert_false(update(&l, &moved));
  moved.periodic[2] = true;
  assert_true(update(&l, &moved));
  moved.n--;
  assert_true(update(&l, &moved));
  assert_false(update(&l, &moved));
  clb_neighbours_free(&l);
  l.skin = 0;
  assert_true(update(&l, &a));
  assert_false(update(&l, &a));
  a.positions[50] += 1e-9;
  assert_true(update(&l, &a));
  clb_neighbours_free(&l);
}

/* ---- memory and mistakes ---- */

static void allocates_once(void **state) {
  (void)state;
  uint64_t seed = 13;
  atoms a = {.n = MAX_ATOMS, .cell = {8, 0, 0, 0, 8, 0, 0, 0, 8}, .periodic = {true, true, true}};
  random_positions(&seed, 0, a.n, a.cell, a.positions);
  clb_neighbours l = {.cutoff = 4};
  int before = allocations;
  update(&l, &a);
  assert_int_equal(allocations - before, CLB_NEIGHBOUR_ARRAYS); /* one each, by count */
  before = allocations;
  while (a.n-- > 0) assert_true(update(&l, &a));
  assert_int_equal(allocations, before);
  clb_neighbours_free(&l);
}

static void no_memory(void **state) {
  (void)state;
  uint64_t seed = 14;
  atoms a = {.n = 20, .cell = {8, 0, 0, 0, 8, 0, 0, 0, 8}, .periodic = {true, true, true}};
  random_positions(&seed, 0, a.n, a.cell, a.positions);
  clb_neighbours l = {.cutoff = 4};
  for (int left = 0; left < CLB_NEIGHBOUR_ARRAYS; left++) {
    allocations_left = left;
    assert_int_equal(clb_neighbours_update(&l, a.n, a.positions, a.cell, a.periodic, NULL),
                     CLB_ERROR_MEMORY);
    assert_non_null(strstr(l.error, "out of memory for the neighbours of 20 atoms"));
    assert_int_equal(l.n_edges, 0);
    clb_neighbours_free(&l);
  }
  allocations_left = 1 << 30;
  check(&l, &a, "after all");
  clb_neighbours_free(&l);
}

/* A call that must fail, with one wrong argument; the list is then empty, and the next call
   succeeds. */
static void wrong(clb_neighbours l, const atoms *good, atoms bad, const double *cell,
                  const char *words) {
  clb_neighbours list = {.cutoff = 3, .skin = .5};
  update(&list, good);
  list.cutoff = l.cutoff, list.skin = l.skin;
  int status = clb_neighbours_update(&list, bad.n, bad.positions, cell, bad.periodic, NULL);
  if (status != CLB_ERROR_ARGUMENT || !strstr(list.error, words))
    fail_msg("status %d: \"%s\" lacks \"%s\"", status, list.error, words);
  assert_int_equal(list.n_edges, 0);
  list.cutoff = 3, list.skin = .5;
  assert_true(update(&list, good));
  clb_neighbours_free(&list);
}

static void mistakes(void **state) {
  (void)state;
  const clb_neighbours l = {.cutoff = 3, .skin = .5};
  clb_neighbours other = l;
  const atoms good = {.n = 4,
                      .positions = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 8},
                      .cell = {10, 0, 0, 0, 10, 0, 0, 0, 10},
                      .periodic = {true, true, false}};
  atoms a = good;
  const double nothing[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    a = good, a.positions[7] = nothing[i];
    wrong(l, &good, a, a.cell, "positions[2][1] is");
    a = good, a.cell[4] = nothing[i];
    wrong(l, &good, a, a.cell, "cell is singular");
    other = l, other.cutoff = nothing[i];
    wrong(other, &good, good, good.cell, "cutoff and skin");
    other = l, other.skin = nothing[i];
    wrong(other, &good, good, good.cell, "cutoff and skin");
  }
  other = l, other.cutoff = -1e-9;
  wrong(other, &good, good, good.cell, "cutoff and skin are -1e-09 and 0.5");
  other = l, other.skin = -1;
  wrong(other, &good, good, good.cell, "cutoff and skin");
  a = good, a.n = -1;
  wrong(l, &good, a, a.cell, "n is -1");
  a = good, a.n = INT32_MAX;
  wrong(l, &good, a, a.cell, "n is 2147483647");
  wrong(l, &good, good, NULL, "cell is NULL");
  a = good, a.cell[4] = 0;
  wrong(l, &good, a, a.cell, "cell is singular");
  a = good, a.cell[3] = 20, a.cell[4] = 1e-7;
  wrong(l, &good, a, a.cell, "cell is singular");
  a = good, a.periodic[2] = true, a.cell[6] = 10, a.cell[7] = 10,
  a.cell[8] = 0; /* in the plane of the others */
  wrong(l, &good, a, a.cell, "cell is singular");
  a = good, a.periodic[2] = true, a.cell[8] = 0; /* nothing else has changed */
  wrong(l, &good, a, a.cell, "cell is singular");
  a = good, a.cell[0] = 1.1e8;
  wrong(l, &good, a, a.cell, "cell[0] is 1.1e+08 Angstrom long: it must be at most 1e+08");
  a = good, a.cell[3] = 0x1p157,
  a.cell[4] = 0x1p157; /* an atom at 0 is inside the cell, one at -3 rounds to the far end of it */
  wrong(l, &good, a, a.cell, "cell[1] is 2.58");
  a = good, a.positions[4] = 1e10;
  wrong(l, &good, a, a.cell, "positions[1] lies too far away");
  a = good, a.positions[5] = 1e308, a.positions[8] = -1e308;
  wrong(l, &good, a, a.cell, "further apart");
  a = good, a.cell[0] = a.cell[4] = 1e-5;
  a.n = 1, a.positions[0] = a.positions[1] = 0;
  wrong(l, &good, a, a.cell, "too many images");
  clb_neighbours list = l;
  assert_int_equal(clb_neighbours_update(&list, 3, NULL, good.cell, good.periodic, NULL),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(list.error, "positions is NULL"));
}

/* 132,000 atoms, each 16,384 at one place of its own, have more than 2^31 - 2 edges; one more at
   the first place is refused at once. */
static void too_many_edges(void **state) {
  (void)state;
  enum { EACH = 1 << 14 };
  const int64_t n = 132000;
  double *positions = calloc((size_t)n * 3, sizeof *positions);
  assert_non_null(positions);
  for (int64_t i = 0; i < n; i++) positions[3 * i] = 10. * (double)(i / EACH);
  clb_neighbours l = {.cutoff = 1};
  assert_int_equal(
      clb_neighbours_update(&l, n, positions, NULL, (bool[3]){false, false, false}, NULL),
      CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(l.error, "more than 2^31 - 2 edges"));
  assert_int_equal(l.n_edges, 0);
  positions[3 * EACH] = positions[3 * EACH + 3] = 0;
  assert_int_equal(
      clb_neighbours_update(&l, EACH + 2, positions, NULL, (bool[3]){false, false, false}, NULL),
      CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(l.error, "has more than 16384 neighbours within 1 Angstrom"));
  assert_int_equal(l.n_edges, 0);
  clb_neighbours_free(&l);
  free(positions);
}

/* Thin cells, and cells of long vectors that are almost in one plane: refused before anything is
   searched. */
static void thin_cells(void **state) {
  (void)state;
  static const struct {
    double cell[9];
    const char *words;
  } cells[] = {
      {{.1, 0, 0, 0, .1, 0, 0, 0, .1}, "atom 0 has more than 16384 neighbours within 3 Angstrom"},
      {{10, 0, 0, 0, 10, 0, 0, 0, 2e-4}, "atom 0 has more than 16384 neighbours"},
      {{.02, 0, 0, 0, .02, 0, 0, 0, .02},
       "too many images of a cell only 0.02 x 0.02 x 0.02 Angstrom high"},
      {{10, 0, 0, 0, 10, 0, 0, 0, 1e-6}, "too many images of a cell only 10 x 10 x 1e-06"},
      {{20, 0, 0, 20, .2, 0, 20, .1, .025}, "too many images"},
  };
  const double origin[3] = {0};
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
    clb_neighbours l = {.cutoff = 3};
    if (!clb_neighbours_update(&l, 1, origin, cells[i].cell, (bool[3]){true, true, true}, NULL))
      fail_msg("cell %zu: %lld edges", i, (long long)l.n_edges);
    if (!strstr(l.error, cells[i].words))
      fail_msg("cell %zu: no '%s' in %s", i, cells[i].words, l.error);
    clb_neighbours_free(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_atoms),   cmocka_unit_test(reused),
      cmocka_unit_test(wrapping),       cmocka_unit_test(strictly_below),
      cmocka_unit_test(few_atoms),      cmocka_unit_test(open_directions),
      cmocka_unit_test(far_apart),      cmocka_unit_test(skin),
      cmocka_unit_test(allocates_once), cmocka_unit_test(no_memory),
      cmocka_unit_test(mistakes),       cmocka_unit_test(too_many_edges),
      cmocka_unit_test(thin_cells)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
