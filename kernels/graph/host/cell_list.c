/* kernels/graph/host/cell_list.c - pairs of atoms within a radius: memory and launches. */
#include "kernels/graph/host/cell_list.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 8192 }; /* units of a search that do not fill a GPU */
enum { GRIDS, TOTAL, PLACES, WRAPS, COUNTS, SUMS, SYSTEMS, BUFFERS };

static bool of_many(clb_cell_atoms kind) { return kind == CLB_CELL_MANY || kind == CLB_CELL_SORT; }

struct clb_cell_list {
  clb_context *ctx;
  clb_cell_atoms kind;
  clb_kernel *kernel[CLB_CELL_STEPS];
  clb_graph *atoms; /* its edges are the atoms, its receivers the slots */
  clb_memory memory[BUFFERS];
  int64_t capacity, grid_capacity; /* atoms; systems */
  int64_t n;                       /* atoms counted last */
  int64_t n_slots;                 /* of the grids; -1: beyond int32 */
  int64_t columns;                 /* of slots around an atom, each searched by itself; 1: all are
                                      searched together */
  double *numbers;             /* of the grid of one system, as on the device; NULL: not known */
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
            few = l->kind == CLB_CELL_ONE && !l->ctx->device->limits.simd,
            end = l->kind == CLB_CELL_SORT ? CLB_CELL_COUNT
                  : few                    ? CLB_CELL_STEPS
                                           : CLB_CELL_RANKED;
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
  free(l->numbers);
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
  const int64_t all = n + n / 8, rows = rows_of(all > FEW ? all : FEW),
                places = l->kind == CLB_CELL_PAIRS ? 0 : all;
  const uint64_t bytes[BUFFERS] = {[PLACES] = (uint64_t)places * 24,
                                   [WRAPS] = (uint64_t)places * 12,
                                   [COUNTS] = (uint64_t)rows * CLB_CELL_ROW * 4,
                                   [SUMS] = (uint64_t)rows * 4,
                                   [TOTAL] = 4,
                                   [SYSTEMS] = of_many(l->kind) ? (uint64_t)all * 4 : 0};
  clb_device *d = l->ctx->device;
  clb_status s = d->backend->wait(d); /* submitted work may still use the memory */
  l->capacity = 0;
  for (int i = TOTAL; i < BUFFERS && !s; i++) {
    release(l, i);
    if (bytes[i]) s = clb_device_alloc(d, bytes[i], &l->memory[i]);
  }
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

/* Launches a step on so many units: its first arguments, then its own. */
static clb_status launch(clb_cell_list *l, int step, int64_t units, const clb_arg *own, int n_own) {
  const int64_t n = step == CLB_CELL_TOTAL ? l->n * l->columns : l->n;
  const clb_kernel *kernel = l->kernel[step];
  clb_call c = clb_call_start(l->ctx);
  clb_call_i64(&c, units);
  clb_call_i64(&c, n);
  clb_call_buffer(&c, l->positions);
  clb_call_memory(&c, &l->memory[GRIDS]);
  if (of_many(l->kind)) clb_call_memory(&c, &l->memory[SYSTEMS]);
  clb_call_arguments(&c, own, n_own);
  return clb_call_launch(&c, kernel, clb_divide_up(units, kernel->ir.rows));
}

static int64_t chunks(const clb_cell_list *l, int step, int64_t n) {
  const int64_t lanes = l->kernel[step]->ir.lanes;
  return (n + lanes - 1) / lanes;
}

void clb_cell_list_set_rows(clb_cell_list *l, const clb_buffer *rows, int64_t n_local) {
  l->rows = rows, l->n_local = n_local;
}

int64_t clb_cell_list_starts(int64_t n_local) { return rows_of(n_local) * CLB_CELL_ROW + 1; }

void clb_cell_list_set_pairs(clb_cell_list *l, const clb_buffer *rows, const clb_buffer *starts,
                             const clb_buffer *senders) {
  l->rows = rows, l->starts = starts, l->senders = senders;
}

#define OF(memory) clb_memory_arg(memory)
#define LAUNCH(l, step, units, ...)                                                                \
  launch(l, step, units, (const clb_arg[]){__VA_ARGS__},                                           \
         (int)(sizeof(const clb_arg[]){__VA_ARGS__} / sizeof(clb_arg)))

static clb_status count_pairs(clb_cell_list *l) {
  clb_memory_discard(&l->memory[COUNTS]);
  clb_memory_discard(&l->memory[SUMS]);
  return LAUNCH(l, CLB_CELL_COUNT, rows_of(l->n) * CLB_CELL_ROW, OF(&l->senders->memory),
                OF(&l->starts->memory), OF(&l->memory[COUNTS]));
}

bool clb_cell_list_is_small(const clb_cell_list *l) {
  enum { MOST_ATOMS = 2048 }; /* each looks at all others, which a launch makes up for */
  return l->kernel[CLB_CELL_RANKED] && l->n && l->n <= MOST_ATOMS;
}

/* The same in one launch. */
static clb_status rank(clb_cell_list *l) {
  const clb_buffer *b = l->atoms->buffer;
  const int64_t used = l->n * l->columns, counts = rows_of(used) * CLB_CELL_ROW,
                rows = l->n + l->n_slots + 1;
  return LAUNCH(l, CLB_CELL_RANKED, rows > CLB_CELL_ROW ? rows : CLB_CELL_ROW,
                OF(&b[CLB_GRAPH_RECEIVERS].memory), clb_i64_arg(l->n_slots),
                OF(&b[CLB_GRAPH_EDGE].memory), OF(&l->memory[PLACES]), OF(&l->memory[WRAPS]),
                OF(&b[CLB_GRAPH_ROW_START].memory), clb_i64_arg(used), clb_i64_arg(counts),
                OF(&l->memory[COUNTS]));
}

/* The atoms in the order of their slots, and zeros behind their counts. */
static clb_status sort(clb_cell_list *l) {
  const clb_buffer *b = l->atoms->buffer;
  const int64_t counts = rows_of(l->n) * CLB_CELL_ROW;
  clb_status s = clb_graph_reserve(l->atoms, 0, l->n_slots, l->n);
  for (int i = PLACES; i < SYSTEMS; i++) clb_memory_discard(&l->memory[i]);
  if (!s)
    s = LAUNCH(l, CLB_CELL_SLOTS, chunks(l, CLB_CELL_SLOTS, l->n),
               OF(&b[CLB_GRAPH_RECEIVERS].memory));
  if (!s && clb_cell_list_is_small(l)) return rank(l);
  if (!s) s = clb_graph_sort(l->atoms, 0, l->n_slots, l->n);
  return s ? s
           : LAUNCH(l, CLB_CELL_SORTED, chunks(l, CLB_CELL_SORTED, counts),
                    OF(&b[CLB_GRAPH_EDGE].memory), OF(&l->memory[PLACES]), OF(&l->memory[WRAPS]),
                    clb_i64_arg(counts), OF(&l->memory[COUNTS]));
}

/* How many neighbours each has. */
static clb_status count_around(clb_cell_list *l) {
  const clb_cell_sorted sorted = clb_cell_list_sorted(l);
  const bool ghosts = l->kind == CLB_CELL_GHOSTS;
  const clb_arg own[] = {
      OF(sorted.atoms),       OF(sorted.x),
      OF(&l->memory[WRAPS]),  OF(sorted.starts),
      OF(&l->memory[COUNTS]), ghosts ? OF(&l->rows->memory) : clb_i64_arg(l->columns),
      clb_i64_arg(l->n_local)};
  const clb_status s = sort(l);
  return s ? s : launch(l, CLB_CELL_COUNT, l->n * l->columns, own, ghosts ? 7 : 6);
}

/* How many neighbours each atom has, and then how many edges are before its own; and their total.
 */
static clb_status count(clb_cell_list *l, clb_rows show) {
  clb_status s = l->kind == CLB_CELL_PAIRS ? count_pairs(l) : count_around(l);
  clb_call c = clb_call_start(l->ctx);
  clb_call_memory(&c, &l->memory[COUNTS]);
  clb_call_i64(&c, CLB_CELL_ROW);
  clb_call_memory(&c, &l->memory[SUMS]);
  if (!s) s = clb_call_launch(&c, l->atoms->kernel[CLB_GRAPH_SCAN], rows_of(l->n * l->columns));
  return s ? s
           : LAUNCH(l, CLB_CELL_TOTAL, 1, OF(&l->memory[SUMS]), OF(&l->memory[TOTAL]),
                    OF(show.buffer ? &show.buffer->memory : NULL), clb_i64_arg(show.offset),
                    clb_i32_arg(show.buffer != NULL));
}

/* The kernels' form of all grids, and how many slots they have: -1 if beyond int32. */
static int64_t describe_all(int64_t n_systems, const clb_cell_grid *grids, double radius,
                            double *numbers) {
  int64_t slots = 0;
  for (int64_t i = 0; i < n_systems && slots >= 0; i++) {
    double *to = numbers + i * CLB_CELL_NUMBERS;
    for (int k = 0; k < CLB_CELL_NUMBERS; k++) to[k] = 1; /* of a system without atoms */
    to[CLB_CELL_SQUARED] = radius * radius;
    if (!grids || !clb_cell_grid_slots(&grids[i])) continue;
    to[CLB_CELL_FIRST_SLOT] = (double)slots;
    slots = describe(&grids[i], to) ? slots + clb_cell_grid_slots(&grids[i]) : -1;
    if (slots >= INT32_MAX) slots = -1;
  }
  return slots;
}

/* Writes the grids, but for the one that is there, and which of them is each atom's. */
static clb_status write_grids(clb_cell_list *l, int64_t n_systems, const clb_cell_grid *grids,
                              const int32_t *system, double radius) {
  const uint64_t bytes = (uint64_t)n_systems * CLB_CELL_NUMBERS * sizeof(double);
  double *numbers = malloc(bytes);
  if (!numbers) return no_memory(l->ctx);
  l->n_slots = describe_all(n_systems, grids, radius, numbers);
  const bool there = n_systems == 1 && l->numbers && !memcmp(l->numbers, numbers, bytes),
             writes = l->n_slots >= 0 && !there;
  clb_status s = writes ? grow_grids(l, n_systems) : CLB_OK;
  if (!s && writes) s = clb_post(l->ctx, &l->memory[GRIDS], 0, numbers, bytes);
  if (!s && l->n_slots >= 0 && of_many(l->kind))
    s = clb_post(l->ctx, &l->memory[SYSTEMS], 0, system, (uint64_t)l->n * sizeof *system);
  if (writes) {
    free(l->numbers);
    l->numbers = !s && n_systems == 1 ? numbers : NULL;
  }
  if (l->numbers != numbers) free(numbers);
  return s;
}

/* Columns of slots around an atom, if there are so few of all atoms that sub-groups are to spare.
 */
static int64_t columns_of(const clb_cell_list *l, const clb_cell_grid *g) {
  const int64_t across = 2 * (int64_t)g->reach[0] + 1, along = 2 * (int64_t)g->reach[1] + 1,
                most = FEW / l->n;
  return across <= most && along <= most / across ? across * along : 1;
}

clb_status clb_cell_list_take(clb_cell_list *l, int64_t n_systems, const clb_cell_grid *grids,
                              const int32_t *system, double radius, int64_t n,
                              const clb_buffer *positions, bool *fits) {
  clb_status s = grow(l, n);
  l->n = n;
  l->positions = positions;
  if (!s && (grids || !of_many(l->kind))) s = write_grids(l, n_systems, grids, system, radius);
  *fits = !s && l->n_slots >= 0;
  l->columns = *fits && clb_cell_list_is_small(l) ? columns_of(l, grids) : 1;
  return s;
}

clb_status clb_cell_list_count_many(clb_cell_list *l, int64_t n_systems, const clb_cell_grid *grids,
                                    const int32_t *system, double radius, int64_t n,
                                    const clb_buffer *positions, clb_rows show, int64_t *n_edges) {
  clb_device *d = l->ctx->device;
  int32_t total = -1;
  bool fits;
  clb_status s = clb_cell_list_take(l, n_systems, grids, system, radius, n, positions, &fits);
  if (fits) s = count(l, show);
  if (fits && !s) s = d->backend->read(d, &l->memory[TOTAL], 0, &total, sizeof total);
  *n_edges = s ? -1 : total;
  return s;
}

clb_status clb_cell_list_count(clb_cell_list *l, const clb_cell_grid *grid, double radius,
                               int64_t n, const clb_buffer *positions, int64_t *n_edges) {
  return clb_cell_list_count_many(l, 1, grid, NULL, radius, n, positions, (clb_rows){0}, n_edges);
}

clb_status clb_cell_list_read_starts(clb_cell_list *l, int32_t *start) {
  clb_device *d = l->ctx->device;
  const int64_t rows = rows_of(l->n);
  int32_t *sum = malloc((size_t)rows * sizeof *sum);
  clb_status s =
      sum ? d->backend->read(d, &l->memory[COUNTS], 0, start, (uint64_t)l->n * sizeof *start)
          : no_memory(l->ctx);
  if (!s) s = d->backend->read(d, &l->memory[SUMS], 0, sum, (uint64_t)rows * sizeof *sum);
  for (int64_t i = 0; i < l->n && !s; i++) start[i] += sum[i / CLB_CELL_ROW];
  free(sum);
  return s;
}

int64_t clb_cell_list_slots(const clb_cell_list *l) { return l->n_slots; }
int64_t clb_cell_list_columns(const clb_cell_list *l) { return l->columns; }

clb_status clb_cell_list_submit_count(clb_cell_list *l, clb_rows show) { return count(l, show); }

clb_status clb_cell_list_sort(clb_cell_list *l, int64_t n_systems, const clb_cell_grid *grids,
                              const int32_t *system, int64_t n, const clb_buffer *positions,
                              bool *fits) {
  const clb_status s = clb_cell_list_take(l, n_systems, grids, system, 0, n, positions, fits);
  return *fits ? sort(l) : s;
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

clb_status clb_cell_list_fill(clb_cell_list *l, int64_t room, const clb_memory *senders,
                              const clb_memory *receivers, const clb_memory *shifts,
                              const clb_memory *atoms) {
  const clb_buffer *b = l->atoms->buffer;
  const bool pairs = l->kind == CLB_CELL_PAIRS, ghosts = l->kind == CLB_CELL_GHOSTS;
  clb_arg own[14];
  int n = 0;
  own[n++] = OF(pairs ? &l->senders->memory : &b[CLB_GRAPH_EDGE].memory);
  if (!pairs) own[n++] = OF(&l->memory[PLACES]), own[n++] = OF(&l->memory[WRAPS]);
  own[n++] = OF(pairs ? &l->starts->memory : &b[CLB_GRAPH_ROW_START].memory);
  own[n++] = OF(&l->memory[COUNTS]);
  own[n++] = OF(&l->memory[SUMS]);
  own[n++] = OF(senders);
  own[n++] = OF(receivers);
  own[n++] = OF(shifts);
  own[n++] = pairs || ghosts ? OF(&l->rows->memory) : clb_i64_arg(l->columns);
  if (ghosts) own[n++] = clb_i64_arg(l->n_local);
  own[n++] = OF(atoms);
  if (!pairs && !ghosts) own[n++] = clb_i32_arg(atoms != NULL);
  own[n++] = OF(&l->memory[TOTAL]);
  own[n++] = clb_i64_arg(room);
  return launch(l, CLB_CELL_FILL, l->n * l->columns, own, n);
}

clb_status clb_cell_list_ends(clb_cell_list *l, int64_t room, clb_graph *g) {
  const clb_buffer *b = g->buffer, *receiver = b + CLB_BY_RECEIVER, *sender = b + CLB_BY_SENDER;
  clb_graph_expect(g, l->n, room);
  for (int i = CLB_GRAPH_ROW_START; i <= CLB_GRAPH_PAIRS; i++) clb_memory_discard(&b[i].memory);
  const clb_status s =
      LAUNCH(l, CLB_CELL_ENDS, room > l->n ? room : l->n + 1, OF(&b[CLB_GRAPH_RECEIVERS].memory),
             OF(&b[CLB_GRAPH_SENDERS].memory), OF(&l->memory[COUNTS]), OF(&l->memory[SUMS]),
             clb_i64_arg(l->columns), OF(&l->memory[TOTAL]), clb_i64_arg(room),
             OF(&receiver[CLB_GRAPH_ROW_START].memory), OF(&receiver[CLB_GRAPH_EDGE].memory),
             OF(&receiver[CLB_GRAPH_OTHER].memory), OF(&receiver[CLB_GRAPH_SEGMENTS].memory),
             OF(&sender[CLB_GRAPH_ROW_START].memory), OF(&sender[CLB_GRAPH_EDGE].memory),
             OF(&sender[CLB_GRAPH_OTHER].memory), OF(&sender[CLB_GRAPH_SEGMENTS].memory),
             OF(&b[CLB_GRAPH_PAIRS].memory), clb_i64_arg(g->split));
  if (s) clb_graph_expect(g, 0, 0);
  return s ? s : clb_graph_split_listed(g);
}
