/* models/memory.c - the memory of a model: buffers, and how much it takes: before it does, while it
   does, and when there is not enough. */
#include "models/model_state.h"

#include <math.h>

clb_status clb_model_replace(clb_model *m, clb_buffer **buffer, int64_t count, int64_t bytes) {
  int64_t all;
  const clb_status s = *buffer ? clb_wait(m->ctx) : CLB_OK; /* work may still use it */
  if (s) return s;
  clb_buffer_destroy(buffer);
  if (__builtin_mul_overflow(count, bytes, &all))
    return clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  return clb_buffer_create(m->ctx, (uint64_t)(all ? all : 1), buffer);
}

int64_t clb_model_rows_for(const clb_model *m, bool edges, int64_t n) {
  if (!m->net.blocked) return clb_with_headroom(n);
  return m->net.trains ? n + n / 16 + 1 : edges ? n + n / 64 + 1 : n;
}

/* ---- how much ---- */

/* Of the search for neighbours on the device, per atom: places, wraps and counts, the graph that
   sorts atoms, and half a slot. */
enum { SEARCH_BYTES = 24 + 12 + 4 + 40 + 16 };

/* Of a graph, per node or per edge; NULL: 0. */
static uint64_t graph_bytes(const clb_graph *g, bool edges) {
  enum { MANY = 1 << 20 };
  if (!g) return 0;
  const uint64_t all = clb_graph_bytes(g, edges ? 0 : MANY, edges ? MANY : 0);
  return (all - clb_graph_bytes(g, 0, 0) + MANY - 1) / MANY;
}

clb_model_bytes clb_model_count_bytes(const clb_model *m) {
  const clb_network *n = &m->net;
  const bool f64 = m->edges.make_vectors;
  clb_model_bytes b = {.atom = graph_bytes(n->whole, false) +
                               4 * (uint64_t)clb_dtype_bytes((int32_t)m->sum_type) +
                               2 * sizeof(int32_t) + (f64 ? 3 * sizeof(double) + SEARCH_BYTES : 0),
                       .edge = graph_bytes(n->whole, true) + (f64 ? sizeof(int32_t) : 0)};
  if (n->blocked) {
    b.atom += graph_bytes(n->block, false);
    b.block_atom = sizeof(int32_t);
    b.block_edge = graph_bytes(n->block, true);
  }
  for (int i = 0; i < n->n_slots; i++) {
    const clb_slot *slot = &n->slot[i];
    if (slot->per_knot) continue;
    *(slot->block      ? slot->per_edge ? &b.block_edge : &b.block_atom
      : slot->per_edge ? &b.edge
                       : &b.atom) += (uint64_t)slot->bytes;
  }
  return b;
}

uint64_t clb_model_held_bytes(const clb_model *m) {
  const clb_network *n = &m->net;
  const clb_buffer *all[] = {m->edges.positions, m->edges.shifts, m->species_of,   m->results,
                             m->v_atom,          n->workspace,    m->block_species};
  const clb_graph *graphs[] = {n->whole, n->block};
  uint64_t bytes = m->edges.search ? clb_cell_list_bytes(m->edges.search) : 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) bytes += all[i] ? all[i]->memory.bytes : 0;
  for (int i = 0; i < n->n_slots; i++)
    bytes += n->slot[i].buffer ? n->slot[i].buffer->memory.bytes : 0;
  for (int g = 0; g < 2; g++)
    for (int i = 0; i < CLB_GRAPH_BUFFERS && graphs[g]; i++)
      bytes += graphs[g]->buffer[i].memory.bytes;
  return bytes;
}

/* Reports lack of memory: what the system needs, and how large a system of this kind would fit into
   free memory plus the model's own (or else into the whole device). The workspace is no larger than
   necessary, so its actual size is counted; so is a block. */
clb_status clb_model_explain_memory(clb_model *m, int64_t n_atoms, int64_t n_edges) {
  static const double MiB = 1 << 20;
  const clb_model_bytes b = clb_model_count_bytes(m);
  const clb_network *n = &m->net;
  clb_device *d = m->ctx->device;
  const uint64_t left = clb_device_free_bytes(d), all = d->info.memory_bytes,
                 workspace = n->workspace ? n->workspace->memory.bytes : 0;
  const double block = (double)m->block_rows * (double)b.block_atom +
                       (double)m->block_edges * (double)b.block_edge,
               capacity = (double)(left ? left + clb_model_held_bytes(m) : all) -
                          (double)workspace - block,
               need = (double)clb_model_rows_for(m, false, n_atoms) * (double)b.atom +
                      (double)clb_model_rows_for(m, true, n_edges) * (double)b.edge;
  clb_fail_more(&m->ctx->error, CLB_ERROR_MEMORY,
                ": %lld atoms and %lld edges take %.1f MiB (%llu bytes an atom, %llu an edge, and "
                "some to spare)%s",
                (long long)n_atoms, (long long)n_edges, need / MiB, (unsigned long long)b.atom,
                (unsigned long long)b.edge, n->blocked ? ", and a block of them" : "");
  if (!all || need <= 0) return CLB_ERROR_MEMORY;
  const double part = capacity > 0 ? fmin(capacity / need, 1) : 0;
  return clb_fail_more(&m->ctx->error, CLB_ERROR_MEMORY,
                       "; about %.0f atoms and %.0f edges would fit", floor(part * (double)n_atoms),
                       floor(part * (double)n_edges));
}
