/* models/atoms/neighbours.c - neighbour lists, made on the host: atoms are sorted by the slots of a
   grid (cells.h), and every atom looks into the slots around its own. */
#include "models/atoms/cells.h"

#include <stdlib.h>

enum { MAX_NEIGHBOURS = 1 << 14 }; /* per atom: as many as in diamond within 28 Angstrom */
static const int64_t max_count = INT32_MAX - 1;

/* Members of clb_neighbours.array. */
enum { SENDERS, RECEIVERS, SHIFTS, BUILT_AT, PLACES, SLOT_START, ROW_END };

/* Atoms sorted by slot. */
typedef struct {
  double x[3]; /* inside the cell: position - wrap . cell */
  int32_t atom, wrap[3];
} place;

/* ---- memory ---- */

/* Reserves n elements in array i; its contents are lost. If it grows again, some headroom is
   added. */
static bool capacity(clb_neighbours *l, int i, int64_t n, size_t size) {
  if ((uint64_t)n > SIZE_MAX / 2 / size) return false;
  size_t need = (size_t)n * size;
  if (need <= l->bytes[i] && l->array[i]) return true;
  size_t bytes = need + (l->bytes[i] ? need / 8 : 0);
  free(l->array[i]);
  l->array[i] = malloc(bytes ? bytes : 1);
  l->bytes[i] = l->array[i] ? bytes : 0;
  return l->array[i];
}

void clb_neighbours_free(clb_neighbours *l) {
  for (int i = 0; i < CLB_NEIGHBOUR_ARRAYS; i++) free(l->array[i]);
  *l = (clb_neighbours){.cutoff = l->cutoff, .skin = l->skin, .fineness = l->fineness};
}

/* ---- atoms by slot ---- */

/* Sorts the atoms by slot. */
static bool sort(clb_neighbours *l, const clb_cell_grid *g, const double *positions) {
  int64_t n_slots = (int64_t)g->slots[0] * g->slots[1] * g->slots[2];
  if (!capacity(l, SLOT_START, n_slots + 1, sizeof(int32_t)) ||
      !capacity(l, PLACES, l->n, sizeof(place)))
    return false;
  int32_t *start = l->array[SLOT_START];
  place *places = l->array[PLACES];
  clb_cell_spot at;
  memset(start, 0, (size_t)(n_slots + 1) * sizeof *start);
  for (int64_t i = 0; i < l->n; i++) {
    clb_cells_locate(g, positions + 3 * i, &at);
    start[clb_cells_slot_at(g, &at)]++;
  }
  for (int64_t s = 0; s < n_slots; s++) start[s + 1] += start[s];
  for (int64_t i = l->n - 1; i >= 0; i--) {
    clb_cells_locate(g, positions + 3 * i, &at);
    places[--start[clb_cells_slot_at(g, &at)]] =
        (place){.x = {at.x[0], at.x[1], at.x[2]},
                .atom = (int32_t)i,
                .wrap = {at.wrap[0], at.wrap[1], at.wrap[2]}};
  }
  return true;
}

/* ---- edges ---- */

/* Output for the edges into one receiver: from index n on; if senders is NULL they are only
   counted. */
typedef struct {
  int64_t n;
  int32_t *senders, *shifts;
} row;

/* Finds which of n <= CHUNK atoms are within the radius of x, except the receiver itself (NULL: no
   exception); returns how many. Branch-free, because unpredictable branches would dominate the
   time. */
enum { CHUNK = 64 };
static inline int near(const place *p, int n, const place *own, const double x[3],
                       const double by[3], double squared, int found[CHUNK]) {
  int k = 0;
  for (int i = 0; i < n; i++) {
    /* The difference is taken first, so that both directions of a pair give exactly the same
     distance. */
    double a = p[i].x[0] - x[0] + by[0], b = p[i].x[1] - x[1] + by[1], c = p[i].x[2] - x[2] + by[2];
    found[k] = i;
    k += (a * a + b * b + c * c < squared) & (p + i != own);
  }
  return k;
}

/* Edges from the atoms [p, end) in the given image of the cell. */
static inline void edges_from(const place *p, const place *end, const place *receiver,
                              const int32_t image[3], const double cell[3][3], double squared,
                              row *to) {
  double by[3];
  int found[CHUNK];
  for (int k = 0; k < 3; k++)
    by[k] = image[0] * cell[0][k] + image[1] * cell[1][k] + image[2] * cell[2][k];
  const place *own = image[0] | image[1] | image[2] ? NULL : receiver;
  for (int some; p < end; p += some) {
    some = end - p < CHUNK ? (int)(end - p) : CHUNK;
    int n = near(p, some, own, receiver->x, by, squared, found);
    for (int i = 0; to->senders && i < n; i++) {
      const place *sender = p + found[i];
      to->senders[to->n + i] = sender->atom;
      for (int d = 0; d < 3; d++)
        to->shifts[3 * (to->n + i) + d] = image[d] - sender->wrap[d] + receiver->wrap[d];
    }
    to->n += n;
  }
}

static void edges_into(const clb_neighbours *l, const clb_cell_grid *g, const place *receiver,
                       const int32_t bin[3], double squared, row *to) {
  const place *places = l->array[PLACES];
  const int32_t *start = l->array[SLOT_START];
  int32_t slot[3], image[3];
  const int64_t max = to->n + MAX_NEIGHBOURS;
  for (int32_t x = bin[0] - g->reach[0]; x <= bin[0] + g->reach[0]; x++) {
    slot[0] = clb_cells_slot(g, 0, x, &image[0]);
    for (int32_t y = bin[1] - g->reach[1]; y <= bin[1] + g->reach[1]; y++) {
      slot[1] = clb_cells_slot(g, 1, y, &image[1]);
      for (int32_t z = bin[2] - g->reach[2], end = bin[2] + g->reach[2] + 1, run;
           z < end && to->n <= max; z += run) {
        slot[2] = clb_cells_slot(g, 2, z, &image[2]);
        run = g->slots[2] - slot[2] < end - z ? g->slots[2] - slot[2]
                                              : end - z; /* adjacent slots in one image */
        int64_t first = clb_cells_number(g, slot);
        edges_from(places + start[first], places + start[first + run], receiver, image, g->cell,
                   squared, to);
      }
    }
  }
}

/* Receivers are processed in the sorted order, in which neighbours are close in memory. Counts
   edges into row_end[receiver], or, if these are known, fills the rows from row_end[receiver - 1]
   on. Returns an atom with more than MAX_NEIGHBOURS, l->n if there are more than max_count edges in
   total, or -1 on success. */
static int64_t all_edges(const clb_neighbours *l, const clb_cell_grid *g, const double *positions,
                         double squared, bool fill) {
  const place *places = l->array[PLACES];
  int64_t *row_end = l->array[ROW_END], n = 0;
  for (int64_t i = 0; i < l->n && n <= max_count; i++) {
    int32_t receiver = places[i].atom;
    row to = {.n = fill && receiver ? row_end[receiver - 1] : 0,
              .senders = fill ? l->array[SENDERS] : NULL,
              .shifts = fill ? l->array[SHIFTS] : NULL};
    clb_cell_spot at;
    clb_cells_locate(g, positions + 3 * (int64_t)receiver, &at);
    edges_into(l, g, places + i, at.bin, squared, &to);
    if (fill) continue;
    if (to.n > MAX_NEIGHBOURS) return receiver;
    row_end[receiver] = to.n;
    n += to.n;
  }
  return n <= max_count ? -1 : l->n;
}

static clb_status out_of_memory(clb_neighbours *l) {
  return clb_neighbours_fail(l, CLB_ERROR_MEMORY, "out of memory for the neighbours of %lld atoms",
                             (long long)l->n);
}

/* Remembers the positions for which the list is made. */
static clb_status keep_positions(clb_neighbours *l, const double *positions) {
  if (!capacity(l, BUILT_AT, l->n, 3 * sizeof(double))) return out_of_memory(l);
  if (l->n) memcpy(l->array[BUILT_AT], positions, (size_t)l->n * 3 * sizeof(double));
  return CLB_OK;
}

static clb_status build(clb_neighbours *l, const clb_cell_grid *g, const double *positions,
                        double radius) {
  if (!sort(l, g, positions) || !capacity(l, ROW_END, l->n, sizeof(int64_t)))
    return out_of_memory(l);
  const int64_t crowded = all_edges(l, g, positions, radius * radius, false);
  if (crowded >= 0 && crowded < l->n)
    return clb_neighbours_fail(
        l, CLB_ERROR_ARGUMENT,
        "atom %lld has more than %d neighbours within %g Angstrom (cutoff + skin)",
        (long long)crowded, MAX_NEIGHBOURS, radius);
  if (crowded == l->n)
    return clb_neighbours_fail(
        l, CLB_ERROR_ARGUMENT,
        "more than 2^31 - 2 edges: %g Angstrom (cutoff + skin) are too many for %lld atoms", radius,
        (long long)l->n);
  int64_t *row_end = l->array[ROW_END], n = 0;
  for (int64_t i = 0; i < l->n; i++) row_end[i] = n += row_end[i];
  if (!capacity(l, SENDERS, n, sizeof(int32_t)) || !capacity(l, RECEIVERS, n, sizeof(int32_t)) ||
      !capacity(l, SHIFTS, n, 3 * sizeof(int32_t)))
    return out_of_memory(l);
  int32_t *receivers = l->array[RECEIVERS];
  for (int64_t i = 0, e = 0; i < l->n; i++)
    for (; e < row_end[i]; e++) receivers[e] = (int32_t)i;
  all_edges(l, g, positions, radius * radius, true);
  const clb_status s = keep_positions(l, positions);
  if (s) return s;
  l->senders = l->array[SENDERS], l->receivers = receivers, l->shifts = l->array[SHIFTS];
  l->n_edges = n;
  l->built = true;
  l->elsewhere = false;
  return CLB_OK;
}

/* ---- public functions ---- */

static bool still_good(const clb_neighbours *l, const double *positions) {
  const double *then = l->array[BUILT_AT];
  double squared = l->skin / 2 * (l->skin / 2);
  for (int64_t i = 0; i < l->n; i++) {
    double moved[3];
    for (int k = 0; k < 3; k++) moved[k] = positions[3 * i + k] - then[3 * i + k];
    if (!(clb_dot(moved, moved) <= squared)) return false;
  }
  return true;
}

/* Whether a list can be made, and whether there is one of so many atoms in such a cell, which that
   of the grid becomes. */
static clb_status begin(clb_neighbours *l, int64_t n, const double *cell, const bool periodic[3],
                        bool *same, clb_cell_grid *g) {
  const double radius = l->cutoff + l->skin;
  if (!(l->cutoff >= 0 && l->skin >= 0 && isfinite(radius * radius)))
    return clb_neighbours_fail(
        l, CLB_ERROR_ARGUMENT,
        "cutoff and skin are %g and %g Angstrom: they must be finite and not negative", l->cutoff,
        l->skin);
  if (n < 0 || n > max_count)
    return clb_neighbours_fail(l, CLB_ERROR_ARGUMENT,
                               "n is %lld: the number of atoms is 0 ... 2^31 - 2", (long long)n);
  if (!cell && (periodic[0] || periodic[1] || periodic[2]))
    return clb_neighbours_fail(l, CLB_ERROR_ARGUMENT, "cell is NULL, but a direction is periodic");
  *same = l->built && l->n == n;
  for (int d = 0; d < 3; d++)
    for (int k = 0; k < 3; k++) {
      g->cell[d][k] = periodic[d] ? cell[3 * d + k] : 0;
      *same = *same && periodic[d] == l->periodic[d] && g->cell[d][k] == l->cell[d][k];
    }
  return CLB_OK;
}

static void forget_edges(clb_neighbours *l, int64_t n, const bool periodic[3],
                         const clb_cell_grid *g) {
  l->built = false;
  l->n_edges = 0;
  l->n = n;
  memcpy(l->cell, g->cell, sizeof l->cell);
  memcpy(l->periodic, periodic, sizeof l->periodic);
}

clb_status clb_neighbours_begin(clb_neighbours *l, int64_t n, const double *positions,
                                const double *cell, const bool periodic[3], bool *rebuild,
                                clb_cell_grid *g) {
  bool same = false;
  *g = (clb_cell_grid){0};
  *rebuild = true;
  clb_status s = begin(l, n, cell, periodic, &same, g);
  if (!s && n && !positions) s = clb_neighbours_fail(l, CLB_ERROR_ARGUMENT, "positions is NULL");
  if (s) return s;
  *rebuild =
      !same || l->elsewhere || !still_good(l, positions); /* a NaN position has moved too far */
  if (!*rebuild) return CLB_OK;
  forget_edges(l, n, periodic, g);
  s = clb_cells_make_grid(l, positions, g);
  l->built = !s && !n;
  return s;
}

clb_status clb_neighbours_begin_moved(clb_neighbours *l, int64_t n, bool moved, const double *cell,
                                      const bool periodic[3], bool *rebuild, clb_cell_grid *g) {
  bool same = false;
  *g = (clb_cell_grid){0};
  clb_status s = begin(l, n, cell, periodic, &same, g);
  *rebuild = s || moved || !same;
  if (!*rebuild || s) return s;
  forget_edges(l, n, periodic, g);
  if (periodic[0] && periodic[1] && periodic[2]) s = clb_cells_make_grid(l, NULL, g);
  l->built = !s && !n;
  return s;
}

clb_status clb_neighbours_set_count(clb_neighbours *l, const double *positions, int64_t n_edges) {
  const clb_status s = positions ? keep_positions(l, positions) : CLB_OK;
  if (s) return s;
  l->elsewhere = !positions;
  l->senders = l->receivers = l->shifts = NULL;
  l->n_edges = n_edges;
  l->built = true;
  return CLB_OK;
}

clb_status clb_neighbours_update(clb_neighbours *l, int64_t n, const double *positions,
                                 const double *cell, const bool periodic[3], bool *rebuilt) {
  clb_cell_grid g;
  bool rebuild;
  clb_status s = clb_neighbours_begin(l, n, positions, cell, periodic, &rebuild, &g);
  if (rebuilt) *rebuilt = rebuild;
  if (!s && rebuild) s = clb_cells_check(l, &g, positions);
  return s || !rebuild || !clb_cell_grid_slots(&g) ? s
                                                   : build(l, &g, positions, l->cutoff + l->skin);
}

static inline void vector_of(const clb_neighbours *l, const double *positions, int64_t e,
                             double vector[3]) {
  const double *from = positions + 3 * (int64_t)l->receivers[e],
               *to = positions + 3 * (int64_t)l->senders[e];
  const int32_t *shift = l->shifts + 3 * e;
  for (int k = 0; k < 3; k++)
    vector[k] = to[k] - from[k] +
                (shift[0] * l->cell[0][k] + shift[1] * l->cell[1][k] + shift[2] * l->cell[2][k]);
}

void clb_neighbours_vector(const clb_neighbours *l, const double *positions, int64_t e,
                           double vector[3]) {
  vector_of(l, positions, e, vector);
}

void clb_neighbours_vectors(const clb_neighbours *l, const double *positions, double *vectors) {
  for (int64_t e = 0; e < l->n_edges; e++) vector_of(l, positions, e, vectors + 3 * e);
}
