/* models/upload.c - a model's memory: arrays that grow with headroom, staging on the host,
   transfers. */
#include "models/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static clb_status no_memory(clb_model *m) {
  return clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory");
}

static void widen(clb_dtype type, int64_t n, const void *from, double *to) {
  const float *x = from;
  if (type == CLB_F64) memcpy(to, from, (size_t)n * sizeof *to);
  else
    for (int64_t i = 0; i < n; i++) to[i] = x[i];
}

/* ---- results ---- */

clb_result_offsets clb_model_result_offsets(const clb_model *m) {
  clb_result_offsets p = {.forces = 0, .e_atom = 3 * m->net.n_total};
  p.found = p.e_atom + m->net.n_local;
  p.energy = p.found + m->shows_found;
  p.virial = p.energy + clb_totals_rows(m->net.energy);
  p.end = p.virial + 9 * clb_totals_rows(m->virial);
  return p;
}

void clb_model_symmetrise(int64_t n, double *a) {
  for (double *end = a + 9 * n; a < end; a += 9)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < i; j++) a[3 * i + j] = a[3 * j + i] = (a[3 * i + j] + a[3 * j + i]) / 2;
}

clb_status clb_model_read_results(clb_model *m, double *energy, double *virial, double *forces,
                                  double *e_atom) {
  const clb_result_offsets p = clb_model_result_offsets(m);
  const int64_t local = m->net.n_local, total = m->net.n_total;
  const bool looks = m->edges.room.unseen;
  const int64_t begin = forces   ? p.forces
                        : e_atom ? p.e_atom
                        : looks  ? p.found
                        : energy ? p.energy
                                 : p.virial;
  const int64_t end = virial   ? p.end
                      : energy ? p.virial
                      : looks  ? p.energy
                      : e_atom ? p.found
                      : forces ? p.e_atom
                               : begin;
  const int64_t bytes = clb_dtype_bytes((int32_t)m->sum_type);
  clb_status s = begin >= end || m->timed ? clb_wait(m->ctx) : CLB_OK;
  if (s || begin >= end) return s;
  const double start = clb_seconds_now();
  char *host = clb_staging(m->ctx, (size_t)((end - begin) * bytes));
  s = host ? clb_buffer_read(m->results, (uint64_t)(begin * bytes), host,
                             (uint64_t)((end - begin) * bytes))
           : no_memory(m);
  m->net.copying += clb_seconds_now() - start;
  if (s) return s;
  if (looks && !clb_edges_see(&m->edges, ((double *)(void *)host)[p.found - begin])) return s;
  if (energy) clb_totals_add(m->net.energy, host + (p.energy - begin) * bytes, energy);
  if (virial)
    clb_totals_add(m->virial, host + (p.virial - begin) * bytes, virial),
        clb_model_symmetrise(1, virial);
  if (forces) widen(m->sum_type, 3 * total, host + (p.forces - begin) * bytes, forces);
  if (e_atom) widen(m->sum_type, local, host + (p.e_atom - begin) * bytes, e_atom);
  s = clb_model_finite(m, "energy", energy ? 1 : 0, 1, energy);
  if (!s) s = clb_model_finite(m, "e_atom", e_atom ? local : 0, 1, e_atom);
  if (!s) s = clb_model_finite(m, "forces", forces ? total : 0, 3, forces);
  return s ? s : clb_model_finite(m, "virial", virial ? 3 : 0, 3, virial);
}

clb_status clb_model_finite(clb_model *m, const char *name, int64_t rows, int64_t columns,
                            const double *x) {
  for (int64_t i = 0; i < rows * columns; i++)
    if (!isfinite(x[i]))
      return clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT,
                      "clb_model: %s[%lld] comes out as %g: atoms are too close or moved too far "
                      "at once, or the model's numbers are too large for its precision",
                      name, (long long)(i / columns), x[i]);
  return CLB_OK;
}

/* ---- arrays ---- */

static clb_status grow_slots(clb_model *m, bool per_edge, int64_t rows) {
  clb_status s = CLB_OK;
  for (int i = 0; i < m->net.n_slots && !s; i++) {
    clb_slot *slot = &m->net.slot[i];
    if (slot->per_edge == per_edge && !slot->block)
      s = clb_model_replace(m, &slot->buffer, slot->per_knot ? clb_grid_rows(&m->net) : rows,
                            slot->bytes);
  }
  return s;
}

static clb_status grow_atoms(clb_model *m, int64_t n) {
  const int64_t rows = clb_model_rows_for(m, false, n),
                results =
                    clb_totals_rows(m->net.energy) + 9 * clb_totals_rows(m->virial) + 4 * rows;
  m->atom_capacity = 0;
  m->n_species = 0;
  clb_status s = grow_slots(m, false, rows);
  if (!s) s = clb_model_replace(m, &m->species_of, rows, 2 * sizeof(int32_t));
  if (!s) s = clb_model_replace(m, &m->results, results, clb_dtype_bytes((int32_t)m->sum_type));
  if (!s) m->atom_capacity = rows;
  return s;
}

static clb_status grow_edges(clb_model *m, int64_t n) {
  const int64_t rows = clb_model_rows_for(m, true, n);
  m->edge_capacity = 0;
  clb_status s = grow_slots(m, true, rows);
  if (!s) m->edge_capacity = rows;
  return s;
}

clb_status clb_model_reserve_v_atom(clb_model *m) {
  const int64_t bytes = 9 * clb_dtype_bytes((int32_t)m->sum_type);
  if (m->v_atom && m->v_atom->memory.bytes >= (uint64_t)(m->net.n_local * bytes)) return CLB_OK;
  return clb_model_replace(m, &m->v_atom, clb_with_headroom(m->net.n_local), bytes);
}

/* The size that all layers ask for, but no more than the limit unless one of them needs more. */
static clb_status workspace_within(clb_model *m, uint64_t limit, uint64_t *need) {
  clb_network *n = &m->net;
  *need = 0;
  for (int l = 0; l < n->n_layers; l++)
    for (clb_pass pass = CLB_FORWARD; pass <= CLB_DOUBLE_BACKWARD && n->layer[l]->kind->workspace;
         pass++) {
      uint64_t min, max;
      clb_status s = n->layer[l]->kind->workspace(n, n->layer[l], pass, &min, &max);
      if (s) return s;
      if (max > limit) max = min > limit ? min : limit;
      if (max > *need) *need = max;
    }
  return CLB_OK;
}

/* A share of the device's memory: on a GPU a sixteenth; on a CPU gradients are better read while
   they are in its caches. */
static uint64_t usual_workspace(const clb_model *m) {
  const uint64_t least = (uint64_t)256 << 20, share = m->ctx->device->info.memory_bytes / 16;
  return m->ctx->device->limits.simd || share < least ? least : share;
}

/* One workspace for all layers: on an H200, passes over 2 million edges in 8 parts took a fifth
   longer than in one. Where memory lacks, more parts do, down to what is needed at least, or of a
   whole system to the usual size on a CPU: then blocks are better. */
static clb_status grow_workspace(clb_model *m) {
  const uint64_t least = m->net.blocked ? 0 : (uint64_t)256 << 20;
  uint64_t limit = m->options.workspace_bytes ? m->options.workspace_bytes : usual_workspace(m),
           need, before;
  clb_status s = workspace_within(m, limit, &need);
  if (s || (m->net.workspace && m->net.workspace->memory.bytes >= need)) return s;
  for (;; limit /= 4) {
    s = clb_model_replace(m, &m->net.workspace, 1, (int64_t)(need + (need < limit ? need / 4 : 0)));
    if (s != CLB_ERROR_MEMORY || limit <= least) return s;
    before = need;
    if (workspace_within(m, limit / 4, &need) || (m->net.blocked && need >= before)) return s;
  }
}

/* For the largest block, whatever the graph is now. */
static clb_status grow_block_workspace(clb_model *m) {
  clb_graph *g = m->net.block;
  const int64_t now = g->n_edges;
  m->net.graph = g;
  g->n_edges = m->block_edges;
  const clb_status s = grow_workspace(m);
  g->n_edges = now;
  m->net.graph = m->net.whole;
  return s;
}

/* Blocks take no more than a workspace does, and less where memory lacks. Models that train always
   work in blocks: of that size or, on GPUs, of one that keeps these busy. */
static int64_t block_rows(const clb_model *m, const clb_model_edges *e) {
  const uint64_t busy = (uint64_t)704 << 20, usual = usual_workspace(m);
  return clb_blocks_rows(m, e, m->net.trains && usual > busy ? busy : usual);
}

static clb_status set_blocks(clb_model *m, const clb_model_edges *e) {
  enum { FEWEST = 16 };
  int64_t rows = block_rows(m, e);
  for (;; rows /= 4) {
    clb_status s = clb_blocks_set(m, e, rows);
    if (!s) s = grow_block_workspace(m);
    if (s != CLB_ERROR_MEMORY || m->options.block_atoms || rows <= FEWEST) return s;
    s = clb_wait(m->ctx);
    if (s) return s;
    clb_buffer_destroy(&m->net.workspace);
  }
}

/* Of SevenNet-0 on an H100 a gradient of 15 thousand edges takes 7.02 ms launched and 6.51
   replayed; of 117 thousand the device is behind the host anyway, and null edges would be in its
   way. */
bool clb_model_repeats(const clb_model *m, const clb_model_edges *e) {
  enum { MOST_EDGES = 1 << 15 };
  return m->training.recorded_use && m->net.trains && !m->net.has_states &&
         e->n_edges <= MOST_EDGES && block_rows(m, e) >= e->n_local;
}

/* Atoms that are not there have features of some species, which nobody reads, and a species of
   energies, like those that do not count, whose energy is 0. */
static clb_status species_of(clb_model *m, const clb_model_edges *e, int32_t *features,
                             int32_t *energies) {
  const int32_t none = m->net.n_species;
  const bool absent = m->edges.source >= CLB_EDGES_PAIRS; /* may be among a caller's atoms */
  for (int64_t i = 0; i < e->n_total; i++) {
    const int32_t x = e->species[i];
    if (x < (absent ? -1 : 0) || x >= none)
      return clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT,
                      "clb_model: species[%lld] is %d; it must be %d ... %d", (long long)i, (int)x,
                      absent ? -1 : 0, none - 1);
    const bool counts = i < e->n_local && x >= 0 && (!e->counted || e->counted[i]);
    features[i] = x < 0 ? 0 : x;
    energies[i] = counts ? x : none;
  }
  return CLB_OK;
}

/* Those that are known, after their memory was replaced. */
static clb_status put_species(clb_model *m, int64_t n) {
  const clb_status s =
      n ? clb_posted_write(m->species_of, 0, m->species, 2 * (uint64_t)n * sizeof *m->species)
        : CLB_OK;
  if (!s) m->n_species = n;
  return s;
}

/* Species equal to the current ones are not uploaded again. */
static clb_status set_species(clb_model *m, const clb_model_edges *e) {
  const int64_t n = e->n_total;
  const size_t bytes = 2 * (size_t)n * sizeof *e->species;
  if (!n) return CLB_OK;
  if (!e->species)
    return clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT, "clb_model: species is NULL");
  int32_t *both = clb_staging(m->ctx, bytes);
  clb_status s = both ? species_of(m, e, both, both + n) : no_memory(m);
  if (s || (m->n_species == n && !memcmp(both, m->species, bytes))) return s;
  m->n_species = 0;
  m->seen = false;
  if (n > m->species_capacity) {
    free(m->species);
    m->species_capacity = m->atom_capacity;
    if (!(m->species = malloc(2 * (size_t)m->species_capacity * sizeof *m->species)))
      m->species_capacity = 0;
    if (!m->species) return no_memory(m);
  }
  memcpy(m->species, both, bytes);
  return put_species(m, n);
}

/* Has layers prepare for the species that occur. */
static clb_status prepare_species(clb_model *m) {
  clb_network *n = &m->net;
  clb_status s = CLB_OK;
  if (m->seen) return CLB_OK;
  m->graph_number++; /* tables may be others */
  memset(m->occurs, 0, sizeof m->occurs);
  for (int64_t i = 0; i < m->n_species; i++) m->occurs[m->species[i]] = true;
  for (int l = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind->species) s = n->layer[l]->kind->species(n, n->layer[l], m->occurs);
  m->info.table_error = n->table_error;
  m->info.table_slope_error = n->table_slope_error;
  m->seen = !s;
  return s;
}

/* Room for the graph's rows; work of an earlier call may still use memory that is replaced. */
static clb_status grow(clb_model *m, const clb_model_edges *e) {
  const int64_t n = e->n_total;
  const bool atoms = n > m->atom_capacity || !m->atom_capacity,
             edges = e->n_edges > m->edge_capacity || !m->edge_capacity;
  clb_status s = m->net.trains && !atoms && !edges ? CLB_OK : clb_wait(m->ctx);
  m->graph_number++;
  if (!s && atoms) s = grow_atoms(m, n);
  if (s || !edges) return s;
  clb_buffer_destroy(&m->net.workspace); /* leaves its memory to the arrays, and is made anew */
  return grow_edges(m, e->n_edges);
}

/* What the graph will have, and where its search shows what it found. */
static void set_counts(clb_model *m, const clb_model_edges *e) {
  clb_network *n = &m->net;
  m->shows_found = m->edges.room.n_edges;
  n->n_local = e->n_local;
  n->n_total = e->n_total;
  n->n_edges = e->n_edges;
  m->edges.room.shown = clb_model_result(m, clb_model_result_offsets(m).found);
}

/* Whether memory counts more than launches: torques of all convolutions at once, and what is not
   made again, take more than the bytes to spare; half of that, once it was so. On an H100 torques
   at once were faster at 13 MB (SevenNet-0, 1,000 atoms of diamond: 1.985 ms a step, not 2.019). */
static bool is_frugal(const clb_model *m, const clb_model_edges *e) {
  const double atoms = (double)e->n_total * ((double)m->usual.atom - (double)m->frugal.atom),
               edges = (double)e->n_edges * ((double)m->usual.edge - (double)m->frugal.edge);
  return atoms + edges > (m->net.frugal ? m->spare / 2 : m->spare);
}

static clb_status set_graph(clb_model *m, const clb_model_edges *e, bool blocked) {
  const bool same = m->edges.same;
  clb_status s = same ? CLB_OK : clb_blocks_plan(m, blocked, e->exchange != NULL, is_frugal(m, e));
  if (!s && !same) s = grow(m, e);
  if (!s && !e->same_graph) s = set_species(m, e);
  if (!s && e->same_graph && !m->n_species) s = put_species(m, e->n_total);
  if (!s && !same) set_counts(m, e);
  if (!s && !same) s = clb_edges_write(&m->edges, e, m->net.whole);
  if (!s && !e->same_graph)
    s = clb_ghosts_set(&m->net.ghosts, m->ctx, e->n_local, e->n_total, e->exchange,
                       m->info.exchange_columns * clb_dtype_bytes((int32_t)m->type));
  m->block_now = -1; /* its species may be others */
  for (int64_t b = 0; b < m->n_kept; b++) m->kept[b].placed = false;
  if (s || same) return s;
  return blocked ? set_blocks(m, e) : grow_workspace(m);
}

/* Blocks are for systems that fill the device, which wait for a search. */
static void leave_room(clb_model *m, clb_model_edges *e) {
  if (!m->edges.room.n_edges) return;
  e->n_edges = m->edges.n_given = m->edges.between.n_edges;
  clb_edges_leave_room(&m->edges);
}

clb_status clb_model_set_graph(clb_model *m, const clb_model_edges *found) {
  clb_model_edges all = *found, *e = &all;
  const bool large = m->too_many_edges && e->n_edges >= m->too_many_edges,
             blocked = m->options.block_atoms || large || m->net.trains;
  m->computations++;
  if (blocked && !m->edges.same) leave_room(m, e);
  clb_status s = set_graph(m, e, m->edges.same ? m->net.blocked : blocked);
  const int64_t n_edges = m->edges.room.n_edges ? m->edges.room.found : e->n_edges;
  if (s == CLB_ERROR_MEMORY && !blocked && n_edges && !m->edges.room.due) {
    leave_room(m, e);
    m->too_many_edges = e->n_edges;
    m->edges.same = false;
    s = set_graph(m, e, true);
  }
  if (s == CLB_ERROR_MEMORY) return clb_model_explain_memory(m, e->n_total, e->n_edges);
  return s ? s : prepare_species(m);
}
