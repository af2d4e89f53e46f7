/* models/edges/room.c - searches that the host does not wait for. There is room for some more edges
   than there are, and null edges, of atoms to themselves and longer than the cutoff, fill what is
   left of it: a graph of always as many edges, whose launches can be recorded. How many edges were
   found is a number among the results of a step. */
#include "models/edges/edge_list.h"

#include "src/base/hash.h"

/* In steps of a 32nd or less. */
static int64_t rounded(int64_t need) {
  int64_t step = 64;
  while (step * 64 <= need) step *= 2;
  return clb_divide_up(need, step) * step;
}

void clb_edges_make_room(clb_edge_list *l, int64_t n_atoms, int64_t n_edges) {
  clb_edge_room *r = &l->room;
  r->n_atoms = n_atoms;
  r->n_edges = rounded(n_edges + n_edges / 64 + 64);
  r->found = n_edges;
}

void clb_edges_pad(clb_edge_list *l, clb_model_edges *found) {
  l->n_given = found->n_edges = rounded(found->n_edges);
}

void clb_edges_leave_room(clb_edge_list *l) {
  clb_recording_destroy(&l->room.search.recording);
  l->room = (clb_edge_room){.most_atoms = l->room.most_atoms};
}

/* ---- launches ---- */

static clb_status submit(clb_edge_list *l, clb_graph *g) {
  const clb_edge_room *r = &l->room;
  const bool small = clb_cell_list_is_small(l->search);
  clb_status s = clb_cell_list_submit_count(l->search, r->shown);
  if (!s)
    s = clb_cell_list_fill(l->search, r->n_edges, &g->buffer[CLB_GRAPH_SENDERS].memory,
                           &g->buffer[CLB_GRAPH_RECEIVERS].memory, &l->shifts->memory,
                           small ? NULL : &g->buffer[CLB_GRAPH_KEYS].memory);
  if (s) return s;
  return small ? clb_cell_list_ends(l->search, r->n_edges, g)
               : clb_graph_sort_keyed(g, r->n_atoms, r->n_edges);
}

typedef struct {
  clb_edge_list *l;
  clb_graph *graph;
} search;

static clb_status submit_search(void *user) {
  const search *x = user;
  return submit(x->l, x->graph);
}

clb_status clb_edges_find(clb_edge_list *l, clb_graph *g) {
  clb_edge_room *r = &l->room;
  const clb_buffer *places = l->motion.positions ? l->motion.positions : l->positions;
  const int64_t numbers[] = {(intptr_t)places->memory.handle, clb_cell_list_slots(l->search),
                             clb_cell_list_columns(l->search), r->shown.offset};
  r->due = false;
  r->unseen = true;
  return clb_repeat(l->ctx, &r->search, clb_hash_bytes(1, numbers, sizeof numbers),
                    "the search for edges", submit_search, &(search){l, g});
}

/* ---- what was found ---- */

bool clb_edges_see(clb_edge_list *l, double found) {
  clb_edge_room *r = &l->room;
  const bool fits = found >= 0 && found <= (double)r->n_edges;
  r->unseen = false;
  if (!fits) {
    l->source = CLB_EDGES_NONE;
    clb_neighbours_forget(&l->between);
    clb_edges_leave_room(l);
    r->outgrown = true;
    return false;
  }
  r->found = (int64_t)found;
  if (l->between.built) l->between.n_edges = r->found;
  return true;
}
