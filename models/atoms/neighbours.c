/* models/atoms/neighbours.c - neighbour lists. Space is divided into bins of half the radius,
   parallel to the cell's faces; an atom's neighbours are at most `reach` bins away. Bins are stored
   modulo `slots` in each direction, so that memory is O(N) however far atoms are apart: distant
   atoms that share a slot are found and rejected by their distance. No pair is found twice, because
   slots >= 2 reach + 1 wherever one slot is used for several bins. */
#include "models/atoms/neighbours.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_BINS = 1 << 29,
  MAX_NEIGHBOURS = 1 << 14
}; /* per atom: as many as in diamond within 28 Angstrom */
static const double max_images = 0x1p21,
                    max_steps = 0x1p29; /* limits on images of the cell around an atom, and on the
                                           steps of a search through them */
static const int64_t max_count = INT32_MAX - 1;
static const double max_length = 1e8; /* Angstrom, maximum length of a cell vector: shifting an atom
                                         by it keeps its position to 1.5e-8 */
static const double slack = 1e-6; /* in bins: tolerance for the rounding of positions in units of
                                     the cell */

/* Members of clb_neighbours.array. */
enum { SENDERS, RECEIVERS, SHIFTS, BUILT_AT, PLACES, SLOT_START, ROW_END };

/* Atoms sorted by slot. */
typedef struct {
  double x[3]; /* inside the cell: position - wrap . cell */
  int32_t atom, wrap[3];
} place;

typedef struct {
  double cell[3][3], reciprocal[3][3]; /* open directions: unit vectors normal to the others; x =
                                          sum_d (x . reciprocal[d]) cell[d] */
  double low[3], per_unit[3];          /* bin = (x . reciprocal - low) per_unit */
  int32_t bins[3], reach[3], slots[3];
  int32_t folds[3]; /* bins / slots; 0 in open directions */
} grid;

typedef struct {
  double x[3];
  int32_t bin[3], wrap[3];
} spot;

static clb_status fail(clb_neighbours *l, clb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static clb_status fail(clb_neighbours *l, clb_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(l->error, sizeof l->error, format, args);
  va_end(args);
  l->built = false;
  l->n_edges = 0;
  return status;
}

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
  *l = (clb_neighbours){.cutoff = l->cutoff, .skin = l->skin};
}

/* ---- geometry ---- */

static double dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double c[3]) {
  for (int k = 0; k < 3; k++)
    c[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

static void scale(double a[3], double by) {
  for (int k = 0; k < 3; k++) a[k] *= by;
}

/* Gives open directions unit vectors normal to all others. */
static void complete(double cell[3][3], const bool periodic[3]) {
  int set[3], n = 0;
  for (int d = 0; d < 3; d++)
    if (periodic[d]) set[n++] = d;
  for (int d = 0; d < 3; d++) {
    if (periodic[d]) continue;
    const double *a = n ? cell[set[0]] : NULL;
    int flat = d; /* the axis most perpendicular to a */
    for (int k = 0; a && k < 3; k++)
      if (!k || fabs(a[k]) < fabs(a[flat])) flat = k;
    double axis[3] = {flat == 0, flat == 1, flat == 2};
    if (a) cross(a, n == 2 ? cell[set[1]] : axis, cell[d]);
    else memcpy(cell[d], axis, sizeof axis);
    scale(cell[d], 1 / sqrt(dot(cell[d], cell[d])));
    set[n++] = d;
  }
}

/* false: singular. */
static bool invert(double cell[3][3], double reciprocal[3][3]) {
  double unit[3][3], length[3];
  for (int d = 0; d < 3; d++) {
    length[d] = sqrt(dot(cell[d], cell[d]));
    for (int k = 0; k < 3; k++) unit[d][k] = cell[d][k] / length[d];
  }
  for (int d = 0; d < 3; d++) cross(unit[(d + 1) % 3], unit[(d + 2) % 3], reciprocal[d]);
  double volume = dot(unit[0], reciprocal[0]);
  for (int d = 0; d < 3; d++) scale(reciprocal[d], 1 / (volume * length[d]));
  return fabs(volume) > 1e-6 && isfinite(length[0] * length[1] * length[2]);
}

static clb_status check_lengths(clb_neighbours *l) {
  for (int d = 0; d < 3; d++) {
    const double length = sqrt(dot(l->cell[d], l->cell[d]));
    if (length > max_length)
      return fail(l, CLB_ERROR_ARGUMENT, "cell[%d] is %g Angstrom long: it must be at most %g", d,
                  length, max_length);
  }
  return CLB_OK;
}

/* ---- the grid ---- */

/* Halves the longest direction until the number of slots is O(n). That direction has more than ten
   slots, hence a reach of at most 2, and keeps at least 2 reach + 1. */
static void fold(grid *g, int64_t n) {
  while ((double)g->slots[0] * g->slots[1] * g->slots[2] > 2 * (double)n + 1000) {
    int longest = g->slots[1] > g->slots[0];
    if (g->slots[2] > g->slots[longest]) longest = 2;
    g->slots[longest] = (g->slots[longest] + 1) / 2;
  }
}

/* Bins of an open direction from low to high, a periodic one from 0 to 1. */
static clb_status lay(clb_neighbours *l, const double low[3], const double high[3], double radius,
                      grid *g) {
  double images = 1, max = 0, height[3], width = radius / 2 * (1 + 2 * slack);
  for (int d = 0; d < 3; d++) {
    height[d] = 1 / sqrt(dot(g->reciprocal[d], g->reciprocal[d]));
    if (!l->periodic[d]) continue;
    images *= 2 * radius / height[d] + 1;
    max = fmax(max, radius / height[d]);
  }
  if (!(images < max_images && images * (double)l->n < max_steps + 8 * (double)l->n &&
        max < 0x1p28))
    return fail(l, CLB_ERROR_ARGUMENT,
                "cutoff + skin, %g Angstrom, reaches too many images of a cell only %g x %g x %g "
                "Angstrom high",
                radius, height[0], height[1], height[2]);
  for (int d = 0; d < 3; d++) {
    double extent = l->periodic[d] ? height[d] : high[d] - low[d],
           finest = fmax(width, extent / MAX_BINS);
    if (!isfinite(extent))
      return fail(l, CLB_ERROR_ARGUMENT, "positions lie further apart than numbers reach");
    g->low[d] = l->periodic[d] ? 0 : low[d];
    g->bins[d] =
        l->periodic[d] ? (int32_t)fmax(1, extent / finest) : (int32_t)(extent / finest) + 1;
    if (l->periodic[d]) finest = height[d] / g->bins[d];
    g->reach[d] = (int32_t)(radius / finest + slack) + 1;
    g->slots[d] = l->periodic[d] ? g->bins[d] : g->bins[d] + 2 * g->reach[d];
    g->per_unit[d] = 1 / finest;
  }
  fold(g, l->n);
  for (int d = 0; d < 3; d++) {
    if (!l->periodic[d]) continue;
    g->folds[d] = g->bins[d] / g->slots[d];
    g->bins[d] = g->folds[d] * g->slots[d];
    g->per_unit[d] = g->bins[d];
  }
  return CLB_OK;
}

static void locate(const grid *g, const double *position, spot *at) {
  memcpy(at->x, position, sizeof at->x);
  for (int d = 0; d < 3; d++) {
    double f = dot(position, g->reciprocal[d]), turns = g->folds[d] ? floor(f) : 0;
    at->wrap[d] = (int32_t)turns;
    if (turns != 0)
      for (int k = 0; k < 3; k++) at->x[k] -= turns * g->cell[d][k];
    double bin = (f - turns - g->low[d]) * g->per_unit[d], last = g->bins[d] - 1;
    at->bin[d] = (int32_t)(bin < 0 ? 0 : bin > last ? last : bin);
  }
}

/* A bin's slot, and the image of the cell in which it lies. */
static inline int32_t slot_of(const grid *g, int d, int32_t bin, int32_t *image) {
  int32_t n = g->slots[d], turns = 0;
  if (bin < 0 || bin >= n) turns = bin / n - (bin % n < 0);
  *image = 0;
  if (turns && g->folds[d]) *image = turns / g->folds[d] - (turns % g->folds[d] < 0);
  return bin - turns * n;
}

static int64_t slot_number(const grid *g, const int32_t slot[3]) {
  return ((int64_t)slot[0] * g->slots[1] + slot[1]) * g->slots[2] + slot[2];
}

static int64_t slot_at(const grid *g, const spot *at) {
  int32_t slot[3], image;
  for (int d = 0; d < 3; d++) slot[d] = slot_of(g, d, at->bin[d], &image);
  return slot_number(g, slot);
}

/* Sorts the atoms by slot. */
static bool sort(clb_neighbours *l, const grid *g, const double *positions) {
  int64_t n_slots = (int64_t)g->slots[0] * g->slots[1] * g->slots[2];
  if (!capacity(l, SLOT_START, n_slots + 1, sizeof(int32_t)) ||
      !capacity(l, PLACES, l->n, sizeof(place)))
    return false;
  int32_t *start = l->array[SLOT_START];
  place *places = l->array[PLACES];
  spot at;
  memset(start, 0, (size_t)(n_slots + 1) * sizeof *start);
  for (int64_t i = 0; i < l->n; i++) {
    locate(g, positions + 3 * i, &at);
    start[slot_at(g, &at)]++;
  }
  for (int64_t s = 0; s < n_slots; s++) start[s + 1] += start[s];
  for (int64_t i = l->n - 1; i >= 0; i--) {
    locate(g, positions + 3 * i, &at);
    places[--start[slot_at(g, &at)]] = (place){.x = {at.x[0], at.x[1], at.x[2]},
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

static void edges_into(const clb_neighbours *l, const grid *g, const place *receiver,
                       const int32_t bin[3], double squared, row *to) {
  const place *places = l->array[PLACES];
  const int32_t *start = l->array[SLOT_START];
  int32_t slot[3], image[3];
  const int64_t max = to->n + MAX_NEIGHBOURS;
  for (int32_t x = bin[0] - g->reach[0]; x <= bin[0] + g->reach[0]; x++) {
    slot[0] = slot_of(g, 0, x, &image[0]);
    for (int32_t y = bin[1] - g->reach[1]; y <= bin[1] + g->reach[1]; y++) {
      slot[1] = slot_of(g, 1, y, &image[1]);
      for (int32_t z = bin[2] - g->reach[2], end = bin[2] + g->reach[2] + 1, run;
           z < end && to->n <= max; z += run) {
        slot[2] = slot_of(g, 2, z, &image[2]);
        run = g->slots[2] - slot[2] < end - z ? g->slots[2] - slot[2]
                                              : end - z; /* adjacent slots in one image */
        int64_t first = slot_number(g, slot);
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
static int64_t all_edges(const clb_neighbours *l, const grid *g, const double *positions,
                         double squared, bool fill) {
  const place *places = l->array[PLACES];
  int64_t *row_end = l->array[ROW_END], n = 0;
  for (int64_t i = 0; i < l->n && n <= max_count; i++) {
    int32_t receiver = places[i].atom;
    row to = {.n = fill && receiver ? row_end[receiver - 1] : 0,
              .senders = fill ? l->array[SENDERS] : NULL,
              .shifts = fill ? l->array[SHIFTS] : NULL};
    spot at;
    locate(g, positions + 3 * (int64_t)receiver, &at);
    edges_into(l, g, places + i, at.bin, squared, &to);
    if (fill) continue;
    if (to.n > MAX_NEIGHBOURS) return receiver;
    row_end[receiver] = to.n;
    n += to.n;
  }
  return n <= max_count ? -1 : l->n;
}

static clb_status build(clb_neighbours *l, const grid *g, const double *positions, double radius) {
  static const char *const no_memory = "out of memory for the neighbours of %lld atoms";
  if (!sort(l, g, positions) || !capacity(l, ROW_END, l->n, sizeof(int64_t)) ||
      !capacity(l, BUILT_AT, l->n, 3 * sizeof(double)))
    return fail(l, CLB_ERROR_MEMORY, no_memory, (long long)l->n);
  const int64_t crowded = all_edges(l, g, positions, radius * radius, false);
  if (crowded >= 0 && crowded < l->n)
    return fail(l, CLB_ERROR_ARGUMENT,
                "atom %lld has more than %d neighbours within %g Angstrom (cutoff + skin)",
                (long long)crowded, MAX_NEIGHBOURS, radius);
  if (crowded == l->n)
    return fail(l, CLB_ERROR_ARGUMENT,
                "more than 2^31 - 2 edges: %g Angstrom (cutoff + skin) are too many for %lld atoms",
                radius, (long long)l->n);
  int64_t *row_end = l->array[ROW_END], n = 0;
  for (int64_t i = 0; i < l->n; i++) row_end[i] = n += row_end[i];
  if (!capacity(l, SENDERS, n, sizeof(int32_t)) || !capacity(l, RECEIVERS, n, sizeof(int32_t)) ||
      !capacity(l, SHIFTS, n, 3 * sizeof(int32_t)))
    return fail(l, CLB_ERROR_MEMORY, no_memory, (long long)l->n);
  int32_t *receivers = l->array[RECEIVERS];
  for (int64_t i = 0, e = 0; i < l->n; i++)
    for (; e < row_end[i]; e++) receivers[e] = (int32_t)i;
  all_edges(l, g, positions, radius * radius, true);
  memcpy(l->array[BUILT_AT], positions, (size_t)l->n * 3 * sizeof(double));
  l->senders = l->array[SENDERS], l->receivers = receivers, l->shifts = l->array[SHIFTS];
  l->n_edges = n;
  l->built = true;
  return CLB_OK;
}

/* ---- public functions ---- */

/* Checks the positions, and finds the ends of open directions. */
static clb_status survey(clb_neighbours *l, const grid *g, const double *positions, double low[3],
                         double high[3]) {
  for (int64_t i = 0; i < l->n; i++) {
    for (int d = 0; d < 3; d++)
      if (!isfinite(positions[3 * i + d]))
        return fail(l, CLB_ERROR_ARGUMENT, "positions[%lld][%d] is %g: it must be finite",
                    (long long)i, d, positions[3 * i + d]);
    for (int d = 0; d < 3; d++) {
      double f = dot(positions + 3 * i, g->reciprocal[d]);
      if (!isfinite(f) || (l->periodic[d] && fabs(f) >= 0x1p29))
        return fail(l, CLB_ERROR_ARGUMENT,
                    "positions[%lld] lies too far away: %g cells along direction %d", (long long)i,
                    f, d);
      if (!i || f < low[d]) low[d] = f;
      if (!i || f > high[d]) high[d] = f;
    }
  }
  return CLB_OK;
}

static bool still_good(const clb_neighbours *l, const double *positions) {
  const double *then = l->array[BUILT_AT];
  double squared = l->skin / 2 * (l->skin / 2);
  for (int64_t i = 0; i < l->n; i++) {
    double moved[3];
    for (int k = 0; k < 3; k++) moved[k] = positions[3 * i + k] - then[3 * i + k];
    if (!(dot(moved, moved) <= squared)) return false;
  }
  return true;
}

clb_status clb_neighbours_update(clb_neighbours *l, int64_t n, const double *positions,
                                 const double *cell, const bool periodic[3], bool *rebuilt) {
  grid g = {0};
  double low[3], high[3], radius = l->cutoff + l->skin;
  if (!(l->cutoff >= 0 && l->skin >= 0 && isfinite(radius * radius)))
    return fail(l, CLB_ERROR_ARGUMENT,
                "cutoff and skin are %g and %g Angstrom: they must be finite and not negative",
                l->cutoff, l->skin);
  if (n < 0 || n > max_count)
    return fail(l, CLB_ERROR_ARGUMENT, "n is %lld: the number of atoms is 0 ... 2^31 - 2",
                (long long)n);
  if (n && !positions) return fail(l, CLB_ERROR_ARGUMENT, "positions is NULL");
  if (!cell && (periodic[0] || periodic[1] || periodic[2]))
    return fail(l, CLB_ERROR_ARGUMENT, "cell is NULL, but a direction is periodic");
  bool same = l->built && l->n == n;
  for (int d = 0; d < 3; d++)
    for (int k = 0; k < 3; k++) {
      g.cell[d][k] = periodic[d] ? cell[3 * d + k] : 0;
      same = same && periodic[d] == l->periodic[d] && g.cell[d][k] == l->cell[d][k];
    }
  same = same && still_good(l, positions); /* an infinite or NaN position has moved too far */
  if (rebuilt) *rebuilt = !same;
  if (same) return CLB_OK;

  l->built = false;
  l->n_edges = 0;
  l->n = n;
  memcpy(l->cell, g.cell, sizeof l->cell);
  memcpy(l->periodic, periodic, sizeof l->periodic);
  complete(g.cell, periodic);
  if (!invert(g.cell, g.reciprocal))
    return fail(l, CLB_ERROR_ARGUMENT,
                "cell is singular: its periodic vectors must be finite and span a volume");
  clb_status status = check_lengths(l);
  if (!status) status = survey(l, &g, positions, low, high);
  if (status || !n || radius == 0) {
    l->built = !status && !n;
    return status;
  }
  status = lay(l, low, high, radius, &g);
  return status ? status : build(l, &g, positions, radius);
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
