/* models/blocks.c - systems that are computed in blocks of atoms: which, and the graph of each. A
   block has the edges that its atoms receive; what the network keeps of an atom from phase to phase
   is there of all atoms, what it needs within a phase of those of the block. */
#include "models/blocks.h"

#include <math.h>
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "models/passes/passes.h"
#include "src/base/reserve.h"

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

/* ---- the order of layers for it ---- */

void clb_blocks_free(clb_model *m) {
  clb_network *n = &m->net;
  for (int i = 0; i < n->n_slots; i++) clb_buffer_destroy(&n->slot[i].buffer);
  clb_buffer_destroy(&n->workspace);
  clb_buffer_destroy(&m->block_species);
  clb_graph_destroy(&n->whole);
  clb_graph_destroy(&n->block);
  for (int64_t i = 0; i < m->n_kept; i++) {
    clb_graph_destroy(&m->kept[i].graph);
    clb_graph_destroy(&m->kept[i].by_knots);
    clb_buffer_destroy(&m->kept[i].species);
  }
  free(m->kept);
  m->kept = NULL;
  m->n_kept = 0;
  free(m->block);
  n->graph = NULL;
  m->block = NULL;
  m->n_blocks = m->block_capacity = m->block_rows = m->block_edges = 0;
  m->atom_capacity = m->edge_capacity = 0;
}

clb_status clb_blocks_order(clb_model *m, bool blocked, bool exchanges, bool frugal) {
  clb_network *n = &m->net;
  clb_blocks_free(m);
  m->graph_number++;
  n->blocked = blocked;
  n->frugal = blocked || frugal;
  n->exchanges = exchanges;
  clb_status s = clb_pass_memory(n);
  if (!s) s = clb_graph_create(m->ctx, 0, 0, &n->whole);
  if (!s && blocked) s = clb_graph_create(m->ctx, 0, 0, &n->block);
  if (!s) n->whole->listed = blocked;
  else clb_blocks_free(m);
  n->graph = n->whole;
  return s;
}

clb_status clb_blocks_plan(clb_model *m, bool blocked, bool exchanges, bool frugal) {
  clb_network *n = &m->net;
  const bool ready = n->whole && n->blocked == blocked && n->frugal == (blocked || frugal) &&
                     (!blocked || (n->block && n->exchanges == exchanges));
  if (ready) return CLB_OK;
  clb_status s = clb_wait(m->ctx);
  clb_model_forget_step(m);
  if (!s) s = clb_blocks_order(m, blocked, exchanges, frugal);
  for (int l = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind->reorder) s = n->layer[l]->kind->reorder(n, n->layer[l]);
  if (s) clb_blocks_free(m);
  return s;
}

/* ---- which atoms ---- */

/* start[i]: the first edge of local atom i. */
static clb_status add_receivers(clb_model *m, const int32_t *receivers, int64_t first, int64_t n,
                                int64_t *next, int64_t *start) {
  for (int64_t i = 0; i < n; i++) {
    if (receivers[i] < *next - 1)
      return FAIL(m, CLB_ERROR_ARGUMENT,
                  "clb_model: receivers[%lld] is %d, below the one before it; edges must be in the "
                  "order of their receivers where a system is computed in blocks of atoms",
                  (long long)(first + i), (int)receivers[i]);
    while (*next <= receivers[i]) start[(*next)++] = first + i;
  }
  return CLB_OK;
}

static clb_status find_starts(clb_model *m, const clb_model_edges *e, int64_t *start) {
  enum { AT_ONCE = 1 << 22 };
  const clb_buffer *list = &m->net.whole->buffer[CLB_GRAPH_RECEIVERS];
  const int32_t *host = e->receivers.host;
  clb_device *d = m->ctx->device;
  int64_t next = 0;
  clb_status s = CLB_OK;
  if (m->edges.source == CLB_EDGES_MANY && m->edges.knows) {
    for (int64_t i = 0; i <= e->n_local; i++) start[i] = m->edges.known.start[i];
    return s;
  }
  for (int64_t i = 0; i < e->n_edges && !s; i += AT_ONCE) {
    const int64_t n = e->n_edges - i < AT_ONCE ? e->n_edges - i : AT_ONCE;
    int32_t *read = host ? NULL : clb_staging(m->ctx, (size_t)n * sizeof *read);
    if (!host && !read) return clb_network_no_memory(&m->net);
    if (!host)
      s = d->backend->read(d, &list->memory, (uint64_t)i * sizeof *read, read,
                           (uint64_t)n * sizeof *read);
    if (!s) s = add_receivers(m, host ? host + e->receivers.offset + i : read, i, n, &next, start);
  }
  while (next <= e->n_local) start[next++] = e->n_edges;
  return s;
}

/* Blocks of at most so many atoms and edges, but of one atom at least. */
static clb_status divide(clb_model *m, const clb_model_edges *e, const int64_t *start, int64_t rows,
                         int64_t edges) {
  m->n_blocks = m->block_rows = m->block_edges = 0;
  for (int64_t first = 0, end; first < e->n_local || !m->n_blocks; first = end) {
    for (end = first; end < e->n_local && end < first + rows; end++)
      if (end > first && start[end + 1] - start[first] > edges) break;
    if (!clb_reserve(&m->block, &m->block_capacity, m->n_blocks + 1, sizeof *m->block))
      return clb_network_no_memory(&m->net);
    const int64_t n = end - first, n_edges = start[end] - start[first];
    m->block[m->n_blocks++] = (clb_atom_block){first, n, start[first], n_edges, end == e->n_local};
    if (n > m->block_rows) m->block_rows = n;
    if (n_edges > m->block_edges) m->block_edges = n_edges;
  }
  return CLB_OK;
}

/* ---- memory ---- */

/* A model that trains gets other blocks in each step, of much the same size: it keeps what
   suffices, and takes some to spare; more where that was too little. */
static clb_status make_room(clb_model *m, clb_buffer **buffer, int64_t rows, int64_t bytes) {
  const int64_t spare = !m->net.trains ? 0 : *buffer ? rows / 4 : rows / 16;
  if (m->net.trains && *buffer && (*buffer)->memory.bytes >= (uint64_t)(rows * bytes))
    return CLB_OK;
  return clb_model_replace(m, buffer, rows + spare, bytes);
}

static clb_status reserve(clb_model *m, const clb_model_edges *e) {
  clb_network *n = &m->net;
  const int64_t ghosts = e->n_total - e->n_local;
  clb_status s = CLB_OK;
  for (int i = 0; i < n->n_slots && !s; i++) {
    const clb_slot *slot = &n->slot[i];
    if (slot->block)
      s = make_room(m, &n->slot[i].buffer, slot->per_edge ? m->block_edges : m->block_rows,
                    slot->bytes);
  }
  if (!s) s = make_room(m, &m->block_species, m->block_rows + ghosts, sizeof *m->species);
  if (!s && n->block->edges > 2 * m->block_edges) { /* which was for larger blocks */
    s = clb_wait(m->ctx);
    clb_graph_destroy(&n->block);
    if (!s) s = clb_graph_create(m->ctx, 0, 0, &n->block);
  }
  return s ? s : clb_graph_reserve(n->block, e->n_total, m->block_rows, m->block_edges);
}

static clb_status keep_knots(clb_model *m, clb_kept_block *k) {
  const int64_t intervals = m->net.grid.intervals;
  clb_status s = CLB_OK;
  if (!intervals) return s;
  if (!k->by_knots) s = clb_graph_create(m->ctx, 0, 0, &k->by_knots);
  return s ? s : clb_graph_reserve(k->by_knots, 0, intervals, m->block_edges);
}

/* Of models that train: graphs and species of all blocks, each with room for the largest, as which
   block is the largest changes from batch to batch. */
static clb_status keep_blocks(clb_model *m, const clb_model_edges *e) {
  const int64_t ghosts = e->n_total - e->n_local;
  clb_status s = CLB_OK;
  if (!m->net.trains) return s;
  if (m->n_kept < m->n_blocks) {
    clb_kept_block *all = realloc(m->kept, (size_t)m->n_blocks * sizeof *all);
    if (!all) return clb_network_no_memory(&m->net);
    m->kept = all;
    while (m->n_kept < m->n_blocks) all[m->n_kept++] = (clb_kept_block){0};
  }
  for (int64_t b = 0; b < m->n_blocks && !s; b++) {
    clb_kept_block *k = &m->kept[b];
    const clb_atom_block *at = &m->block[b];
    const int64_t rows = at->n + (at->last ? ghosts : 0);
    k->sorted = false;
    if (!k->graph) s = clb_graph_create(m->ctx, 0, 0, &k->graph);
    if (!s) s = clb_graph_reserve(k->graph, e->n_total, m->block_rows, m->block_edges);
    if (!s) s = keep_knots(m, k);
    if (!s) s = make_room(m, &k->species, m->block_rows + ghosts, sizeof *m->species);
    if (!s && rows)
      s = clb_posted_write(k->species, 0, m->species + at->first,
                           (uint64_t)rows * sizeof *m->species);
  }
  return s;
}

int64_t clb_blocks_rows(const clb_model *m, const clb_model_edges *e, uint64_t bytes) {
  const clb_model_bytes b = clb_model_count_bytes(m);
  const double degree = (double)e->n_edges / (double)(e->n_local ? e->n_local : 1),
               row = (double)b.block_atom + degree * (double)b.block_edge,
               rows = fmin((double)bytes / row, (double)e->n_local);
  if (m->options.block_atoms) return m->options.block_atoms;
  return rows < 1 ? 1 : (int64_t)rows;
}

clb_status clb_blocks_set(clb_model *m, const clb_model_edges *e, int64_t rows) {
  const double edges = 1.25 * (double)e->n_edges / (double)(e->n_local ? e->n_local : 1);
  if (!m->options.block_atoms && rows > 0 && e->n_local) /* of much the same size */
    rows = clb_divide_up(e->n_local, clb_divide_up(e->n_local, rows));
  int64_t *start = malloc((size_t)(e->n_local + 2) * sizeof *start);
  clb_status s = start ? CLB_OK : clb_network_no_memory(&m->net);
  const bool whole = m->edges.source == CLB_EDGES_MANY && rows >= e->n_local; /* in order */
  for (int64_t i = 0; i <= e->n_local && !s && whole; i++) start[i] = i ? e->n_edges : 0;
  if (!s && !whole) s = find_starts(m, e, start);
  if (!s)
    s = divide(m, e, start, rows,
               m->options.block_atoms ? INT64_MAX : (int64_t)(edges * (double)rows));
  if (!s) s = reserve(m, e);
  if (!s) s = keep_blocks(m, e);
  m->block_now = m->block_sorted = -1;
  free(start);
  return s;
}

/* ---- at work ---- */

static void use_rows(clb_model *m, clb_atom_block at, clb_buffer *species) {
  clb_network *n = &m->net;
  n->at = at;
  n->species = (clb_rows){species, 0, CLB_DENSE, NULL};
  n->graph_species = (clb_rows){m->species_of, 0, CLB_DENSE, NULL};
  n->energy_species = (clb_rows){m->species_of, n->n_total + at.first, CLB_DENSE, NULL};
}

void clb_blocks_leave(clb_model *m) {
  const clb_network *n = &m->net;
  m->net.graph = n->whole;
  use_rows(m, (clb_atom_block){0, n->n_local, 0, n->n_edges, true}, m->species_of);
}

static clb_status enter_kept(clb_model *m, int64_t number, bool edges) {
  clb_kept_block *k = &m->kept[number];
  const clb_atom_block at = m->block[number];
  clb_status s = CLB_OK;
  use_rows(m, at, k->species);
  m->net.graph = k->graph;
  m->net.by_knots = k->by_knots;
  if (edges && !k->sorted)
    s = clb_graph_block(m->net.whole, at.first, at.n, at.edge, at.n_edges, k->graph);
  k->sorted |= edges && !s;
  if (!s && edges && k->by_knots && !k->placed) s = clb_places_sort(&m->net, k->graph, k->by_knots);
  k->placed |= edges && !s;
  k->graph->adds = number > 0;
  return s;
}

clb_status clb_blocks_enter(clb_model *m, int64_t number, bool edges) {
  if (m->net.trains) return enter_kept(m, number, edges);
  clb_network *n = &m->net;
  const clb_atom_block at = m->block[number];
  const int64_t rows = at.n + (at.last ? n->n_total - n->n_local : 0);
  clb_status s = CLB_OK;
  use_rows(m, at, m->block_species);
  n->graph = n->block;
  if (m->block_now != number && rows)
    s = clb_posted_write(m->block_species, 0, m->species + at.first,
                         (uint64_t)rows * sizeof *m->species);
  m->block_now = s ? -1 : number;
  if (!s && edges && m->block_sorted != number) {
    s = clb_graph_block(n->whole, at.first, at.n, at.edge, at.n_edges, n->block);
    m->block_sorted = s ? -1 : number;
  }
  n->block->adds = number > 0;
  return s;
}
