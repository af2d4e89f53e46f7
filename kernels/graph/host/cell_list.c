/* kernels/graph/host/cell_list.c - pairs of atoms within a radius: memory and launches. */
#include "kernels/graph/host/cell_list.h"

#include <stdlib.h>
#include <string.h>

enum { GRIDS, PLACES, WRAPS, COUNTS, SUMS, SYSTEMS, BUFFERS };

static bool of_many(clb_cell_atoms kind) { return kind == CLB_CELL_MANY || kind == CLB_CELL_SORT; }

struct clb_cell_list {
  clb_context *ctx;
  clb_cell_atoms kind;
  clb_kernel *kernel[CLB_CELL_STEPS];
  clb_graph *atoms; /* its edges are the atoms, its receivers the slots */
  clb_memory memory[BUFFERS];
  int64_t capacity, grid_capacity; /* atoms; systems */
  int32_t *sums;   /* [capacity / CLB_CELL_ROW]: edges of a row of atoms, then before it */
  int64_t n;       /* atoms counted last */
  int64_t n_slots; /* of the last sort's grids; -1: beyond int32 */
  const clb_buffer *positions; /* of them */
  const clb_buffer *rows;      /* with ghosts, and n_local */
  int64_t n_local;
  const clb_buffer *starts, *senders; /* of pairs */
};

static clb_status no_memory(clb_context *ctx) {
  return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "cell_list: no memory");
}

/* ---- create, destroy ---- */

static clb_status compile(clb_cell_list *l) {
  const clb_kernel_kind *kind = clb_kernel_kinds[CLB_CELL_LIST];
  clb_problem *p = calloc(1, sizeof *p);
  clb_status s = p ? CLB_OK : no_memory(l->ctx);
  const int first = l->kind == CLB_CELL_PAIRS ? CLB_CELL_COUNT : 0,
            end = l->kind == CLB_CELL_SORT ? CLB_CELL_COUNT : CLB_CELL_STEPS;
  for (int step = first; step < end && !s; step++) {
    clb_schedule schedule;
    ir_kernel k;
    p->kind = CLB_CELL_LIST;
    p->cell_list.step = step;
    p->cell_list.atoms = l->kind == CLB_CELL_SORT ? CLB_CELL_MANY : l->kind;
    s = kind->check(p, &l->ctx->device->limits, &l->ctx->error);
    if (s) break;
    kind->schedule(p, &l->ctx->device->limits, &schedule);
    kind->lower(p, &schedule, &k);
    s = clb_kernel_get(l->ctx, &k, &l->kernel[step]);
  }
  free(p);
  return s;
}

clb_status clb_cell_list_create(clb_context *ctx, clb_cell_atoms kind, clb_cell_list **list) {
  clb_cell_list *l = *list = calloc(1, sizeof *l);
  if (!l) return no_memory(ctx);
  l->ctx = clb_context_hold(ctx);
  l->kind = kind;
  clb_status s = compile(l);
  if (!s) s = clb_graph_create(ctx, 0, 0, &l->atoms);
  if (s) clb_cell_list_destroy(list);
  return s;
}

static void release(clb_cell_list *l, int i) {
  if (l->memory[i].handle) clb_memory_free(l->ctx, &l->memory[i]);
  l->memory[i] = (clb_memory){0};
}

void clb_cell_list_destroy(clb_cell_list **list) {
  if (!list || !*list) return;
  clb_cell_list *l = *list;
  clb_context *ctx = l->ctx;
  clb_graph_destroy(&l->atoms);
  for (int i = 0; i < BUFFERS; i++) release(l, i);
  free(l->sums);
  free(l);
  *list = NULL;
  clb_context_release(ctx);
}

uint64_t clb_cell_list_bytes(const clb_cell_list *l) {
  uint64_t n = 0;
  for (int i = 0; i < BUFFERS; i++) n += l->memory[i].bytes;
  for (int i = 0; i < CLB_GRAPH_BUFFERS; i++) n += l->atoms->buffer[i].memory.bytes;
  return n;
}

/* ---- memory ---- */

static int64_t rows_of(int64_t n) { return (n + CLB_CELL_ROW - 1) / CLB_CELL_ROW; }

static clb_status grow_grids(clb_cell_list *l, int64_t n) {
  if (n <= l->grid_capacity) return CLB_OK;
  clb_device *d = l->ctx->device;
  const int64_t all = n + n / 8;
  clb_status s = d->backend->wait(d); /* submitted work may still use the memory */
  release(l, GRIDS);
  if (!s)
    s = clb_device_alloc(d, (uint64_t)all * CLB_CELL_NUMBERS * sizeof(double), &l->memory[GRIDS]);
  l->grid_capacity = s ? 0 : all;
  return s;
}

static clb_status grow(clb_cell_list *l, int64_t n) {
  if (n <= l->capacity) return CLB_OK;
  const int64_t all = n + n / 8, rows = rows_of(all), places = l->kind == CLB_CELL_PAIRS ? 0 : all;
  const uint64_t bytes[BUFFERS] = {[PLACES] = (uint64_t)places * 24,
                                   [WRAPS] = (uint64_t)places * 12,
                                   [COUNTS] = (uint64_t)rows * CLB_CELL_ROW * 4,
                                   [SUMS] = (uint64_t)rows * 4,
                                   [SYSTEMS] = of_many(l->kind) ? (uint64_t)all * 4 : 0};
  clb_device *d = l->ctx->device;
  clb_status s = d->backend->wait(d); /* submitted work may still use the memory */
  l->capacity = 0;
  for (int i = PLACES; i < BUFFERS && !s; i++) {
    release(l, i);
    if (bytes[i]) s = clb_device_alloc(d, bytes[i], &l->memory[i]);
  }
  free(l->sums);
  l->sums = s ? NULL : malloc((size_t)rows * sizeof *l->sums);
  if (!s && !l->sums) s = no_memory(l->ctx);
  if (!s) l->capacity = all;
  return s;
}

/* The kernels' form of a grid; false: numbers beyond int32. */
static bool describe(const clb_cell_grid *g, double *to) {
  const int64_t most = INT32_MAX / 2;
  for (int d = 0; d < 3; d++) {
    const int64_t folds = g->folds[d] ? g->folds[d] : 1,
                  turns = (g->reach[d] + g->slots[d] - 1) / g->slots[d],
                  images = (turns + folds - 1) / folds;
    if (g->bins[d] + (turns + 1) * g->slots[d] + g->reach[d] > most ||
        turns + (images + 1) * folds + g->bins[d] / g->slots[d] > most)
      return false;
    for (int k = 0; k < 3; k++) {
      to[CLB_CELL_CELL + 3 * d + k] = g->cell[d][k];
      to[CLB_CELL_RECIPROCAL + 3 * d + k] = g->reciprocal[d][k];
    }
    to[CLB_CELL_LOW + d] = g->low[d];
    to[CLB_CELL_PER_UNIT + d] = g->per_unit[d];
    to[CLB_CELL_BINS + d] = g->bins[d];
    to[CLB_CELL_REACH + d] = g->reach[d];
    to[CLB_CELL_SLOTS_OF + d] = g->slots[d];
    to[CLB_CELL_FOLDS + d] = (double)folds;
    to[CLB_CELL_PERIODIC + d] = g->folds[d] != 0;
    to[CLB_CELL_TURNS + d] = (double)turns;
    to[CLB_CELL_IMAGES + d] = (double)images;
  }
  return clb_cell_grid_slots(g) < INT32_MAX;
}

/* ---- launches ---- */

/* Launches a step on so many units: its first arguments, then the memory; NULL: the number. */
static clb_status launch(clb_cell_list *l, int step, int64_t units, const clb_memory *const *memory,
                         int n_memory, int64_t number) {
  const clb_kernel *kernel = l->kernel[step];
  clb_call c = clb_call_start(l->ctx);
  clb_call_i64(&c, units);
  clb_call_i64(&c, l->n);
  clb_call_buffer(&c, l->positions);
  clb_call_memory(&c, &l->memory[GRIDS]);
  if (of_many(l->kind)) clb_call_memory(&c, &l->memory[SYSTEMS]);
  for (int i = 0; i < n_memory; i++)
    clb_call_argument(&c, memory[i] ? clb_memory_arg(memory[i]) : clb_i64_arg(number));
  return clb_call_launch(&c, kernel, clb_divide_up(units, kernel->ir.rows));
}

static int64_t chunks(const clb_cell_list *l, int step, int64_t n) {
  const int64_t lanes = l->kernel[step]->ir.lanes;
  return (n + lanes - 1) / lanes;
}

static const clb_memory *rows_memory(const clb_cell_list *l) {
  return l->kind == CLB_CELL_GHOSTS ? &l->rows->memory : NULL;
}

void clb_cell_list_set_rows(clb_cell_list *l, const clb_buffer *rows, int64_t n_local) {
  l->rows = rows, l->n_local = n_local;
}

int64_t clb_cell_list_starts(int64_t n_local) { return rows_of(n_local) * CLB_CELL_ROW + 1; }

void clb_cell_list_set_pairs(clb_cell_list *l, const clb_buffer *rows, const clb_buffer *starts,
                             const clb_buffer *senders) {
  l->rows = rows, l->starts = starts, l->senders = senders;
}

static clb_status count_pairs(clb_cell_list *l) {
  clb_memory_discard(&l->memory[COUNTS]);
  clb_memory_discard(&l->memory[SUMS]);
  return launch(l, CLB_CELL_COUNT, rows_of(l->n) * CLB_CELL_ROW,
                (const clb_memory *[]){&l->senders->memory, &l->starts->memory, &l->memory[COUNTS]},
                3, 0);
}

/* The atoms in the order of their slots, and zeros behind their counts. */
static clb_status sort(clb_cell_list *l, int64_t n_slots) {
  const clb_buffer *b = l->atoms->buffer;
  const int64_t counts = rows_of(l->n) * CLB_CELL_ROW;
  const clb_memory *slots[] = {&b[CLB_GRAPH_RECEIVERS].memory};
  clb_status s = clb_graph_reserve(l->atoms, 0, n_slots, l->n);
  for (int i = PLACES; i < SYSTEMS; i++) clb_memory_discard(&l->memory[i]);
  if (!s) s = launch(l, CLB_CELL_SLOTS, chunks(l, CLB_CELL_SLOTS, l->n), slots, 1, 0);
  if (!s) s = clb_graph_sort(l->atoms, 0, n_slots, l->n);
  return s ? s
           : launch(l, CLB_CELL_SORTED, chunks(l, CLB_CELL_SORTED, counts),
                    (const clb_memory *[]){&b[CLB_GRAPH_EDGE].memory, &l->memory[PLACES],
                                           &l->memory[WRAPS], NULL, &l->memory[COUNTS]},
                    5, counts);
}

/* How many neighbours each has. */
static clb_status count_around(clb_cell_list *l, int64_t n_slots) {
  const clb_cell_sorted sorted = clb_cell_list_sorted(l);
  const clb_status s = sort(l, n_slots);
  return s ? s
           : launch(l, CLB_CELL_COUNT, l->n,
                    (const clb_memory *[]){sorted.atoms, sorted.x, &l->memory[WRAPS], sorted.starts,
                                           &l->memory[COUNTS], rows_memory(l), NULL},
                    l->kind == CLB_CELL_GHOSTS ? 7 : 5, l->n_local);
}

/* How many neighbours each atom has, and then how many edges are before its own. */
static clb_status count(clb_cell_list *l, int64_t n_slots) {
  const clb_status s = l->kind == CLB_CELL_PAIRS ? count_pairs(l) : count_around(l, n_slots);
  clb_call c = clb_call_start(l->ctx);
  clb_call_memory(&c, &l->memory[COUNTS]);
  clb_call_i64(&c, CLB_CELL_ROW);
  clb_call_memory(&c, &l->memory[SUMS]);
  return s ? s : clb_call_launch(&c, l->atoms->kernel[CLB_GRAPH_SCAN], rows_of(l->n));
}

/* Writes the grids, and which of them is each atom's; *n_slots: of all, -1 if beyond int32. */
static clb_status write_grids(clb_cell_list *l, int64_t n_systems, const clb_cell_grid *grids,
                              const int32_t *system, double radius, int64_t *n_slots) {
  clb_device *d = l->ctx->device;
  const uint64_t row = CLB_CELL_NUMBERS * sizeof(double);
  double *numbers = malloc((size_t)n_systems * row);
  int64_t slots = 0;
  if (!numbers) return no_memory(l->ctx);
  for (int64_t i = 0; i < n_systems && slots >= 0; i++) {
    double *to = numbers + i * CLB_CELL_NUMBERS;
    for (int k = 0; k < CLB_CELL_NUMBERS; k++) to[k] = 1; /* of a system without atoms */
    to[CLB_CELL_SQUARED] = radius * radius;
    if (!grids || !clb_cell_grid_slots(&grids[i])) continue;
    to[CLB_CELL_FIRST_SLOT] = (double)slots;
    slots = describe(&grids[i], to) ? slots + clb_cell_grid_slots(&grids[i]) : -1;
    if (slots >= INT32_MAX) slots = -1;
  }
  *n_slots = slots;
  clb_status s = slots < 0 ? CLB_OK : grow_grids(l, n_systems);
  if (!s && slots >= 0)
    s = d->backend->write(d, &l->memory[GRIDS], 0, numbers, (uint64_t)n_systems * row);
  if (!s && slots >= 0 && of_many(l->kind))
    s = d->backend->write(d, &l->memory[SYSTEMS], 0, system, (uint64_t)l->n * sizeof *system);
  free(numbers);
  return s;
}

/* Adds up the edges of rows; -1: an atom was refused, or they are too many. */
static int64_t sum_rows(clb_cell_list *l) {
  int64_t all = 0;
  for (int64_t i = 0; i < rows_of(l->n); i++) {
    const int32_t here = l->sums[i];
    if (here < 0 || here > CLB_CELL_ROW * CLB_CELL_MAX_NEIGHBOURS || all >= INT32_MAX - here)
      return -1;
    l->sums[i] = (int32_t)all;
    all += here;
  }
  return all;
}

clb_status clb_cell_list_count_many(clb_cell_list *l, int64_t n_systems, const clb_cell_grid *grids,
                                    const int32_t *system, double radius, int64_t n,
                                    const clb_buffer *positions, int64_t *n_edges) {
  clb_device *d = l->ctx->device;
  const uint64_t bytes = (uint64_t)rows_of(n) * 4;
  int64_t n_slots = -1;
  *n_edges = -1;
  clb_status s = grow(l, n);
  l->n = n;
  l->positions = positions;
  if (!s) s = write_grids(l, n_systems, grids, system, radius, &n_slots);
  if (s || n_slots < 0) return s;
  s = count(l, n_slots);
  if (!s) s = d->backend->read(d, &l->memory[SUMS], 0, l->sums, bytes);
  const int64_t all = s ? -1 : sum_rows(l);
  if (!s && all >= 0) s = d->backend->write(d, &l->memory[SUMS], 0, l->sums, bytes);
  if (!s) *n_edges = all;
  return s;
}

clb_status clb_cell_list_count(clb_cell_list *l, const clb_cell_grid *grid, double radius,
                               int64_t n, const clb_buffer *positions, int64_t *n_edges) {
  return clb_cell_list_count_many(l, 1, grid, NULL, radius, n, positions, n_edges);
}

clb_status clb_cell_list_sort(clb_cell_list *l, int64_t n_systems, const clb_cell_grid *grids,
                              const int32_t *system, int64_t n, const clb_buffer *positions,
                              bool *fits) {
  clb_status s = grow(l, n);
  l->n = n;
  l->positions = positions;
  if (!s && grids) s = write_grids(l, n_systems, grids, system, 0, &l->n_slots);
  *fits = !s && l->n_slots >= 0;
  return *fits ? sort(l, l->n_slots) : s;
}

clb_cell_sorted clb_cell_list_sorted(const clb_cell_list *l) {
  const clb_buffer *b = l->atoms->buffer;
  return (clb_cell_sorted){.grids = &l->memory[GRIDS],
                           .systems = &l->memory[SYSTEMS],
                           .atoms = &b[CLB_GRAPH_EDGE].memory,
                           .x = &l->memory[PLACES],
                           .starts = &b[CLB_GRAPH_ROW_START].memory};
}

const clb_memory *clb_cell_list_grids(const clb_cell_list *l) { return &l->memory[GRIDS]; }
const clb_memory *clb_cell_list_systems(const clb_cell_list *l) { return &l->memory[SYSTEMS]; }

clb_status clb_cell_list_fill(clb_cell_list *l, const clb_memory *senders,
                              const clb_memory *receivers, const clb_memory *shifts,
                              const clb_memory *atoms) {
  const clb_buffer *b = l->atoms->buffer;
  if (l->kind == CLB_CELL_PAIRS)
    return launch(l, CLB_CELL_FILL, l->n,
                  (const clb_memory *[]){&l->senders->memory, &l->starts->memory,
                                         &l->memory[COUNTS], &l->memory[SUMS], senders, receivers,
                                         shifts, &l->rows->memory, atoms},
                  9, 0);
  return launch(l, CLB_CELL_FILL, l->n,
                (const clb_memory *[]){&b[CLB_GRAPH_EDGE].memory, &l->memory[PLACES],
                                       &l->memory[WRAPS], &b[CLB_GRAPH_ROW_START].memory,
                                       &l->memory[COUNTS], &l->memory[SUMS], senders, receivers,
                                       shifts, rows_memory(l), NULL, atoms},
                l->kind == CLB_CELL_GHOSTS ? 12 : 9, l->n_local);
}
