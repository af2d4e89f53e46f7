/* models/edges/room.c - searches that the host does not wait for. There is room for some more edges
   than there are, and null edges, of atoms to themselves and longer than the cutoff, fill what is
   left of it: a graph of always as many edges, whose launches can be recorded. How many edges were
   found is a number among the results of a step. */
#include "models/edges/edge_list.h"

#include <string.h>

#include "src/runtime/recording_list.h"

/* A 64th to spare, in steps of a 32nd or less: numbers that are near each other get one room. */
static int64_t room_for(int64_t n_edges) {
  const int64_t need = n_edges + n_edges / 64 + 64;
  int64_t step = 64;
  while (step * 64 <= need) step *= 2;
  return clb_divide_up(need, step) * step;
}

void clb_edges_make_room(clb_edge_list *l, int64_t n_atoms, int64_t n_edges) {
  clb_edge_room *r = &l->room;
  r->n_atoms = n_atoms;
  r->n_edges = room_for(n_edges);
  r->found = n_edges;
}

void clb_edges_leave_room(clb_edge_list *l) {
  clb_recording_destroy(&l->room.search);
  l->room = (clb_edge_room){.most_atoms = l->room.most_atoms};
}

/* ---- launches ---- */

static clb_status submit(clb_edge_list *l, clb_graph *g) {
  const clb_edge_room *r = &l->room;
  clb_status s = clb_cell_list_submit_count(l->search, r->shown);
  if (!s)
    s = clb_cell_list_fill(l->search, r->n_edges, &g->buffer[CLB_GRAPH_SENDERS].memory,
                           &g->buffer[CLB_GRAPH_RECEIVERS].memory, &l->shifts->memory,
                           &g->buffer[CLB_GRAPH_KEYS].memory);
  return s ? s : clb_graph_sort_keyed(g, r->n_atoms, r->n_edges);
}

/* A recording of the search is there, or is made; no is not an error. */
static bool recorded(clb_edge_list *l, clb_graph *g, const clb_edge_search_key *key) {
  clb_edge_room *r = &l->room;
  if (r->search && !r->search->lost && !memcmp(key, &r->recorded, sizeof *key)) return true;
  if (!memcmp(key, &r->unrecorded, sizeof *key) || l->ctx->recording || clb_record_begin(l->ctx))
    return false;
  if (r->search) clb_recording_take_over(r->search);
  clb_recording_destroy(&r->search);
  submit(l, g);
  const clb_status s = clb_record_end(l->ctx, &r->search);
  *(s ? &r->unrecorded : &r->recorded) = *key;
  if (s) clb_fail_more(&l->ctx->error, s, "; the search for edges is launched kernel by kernel");
  return !s;
}

clb_status clb_edges_find(clb_edge_list *l, clb_graph *g) {
  clb_edge_room *r = &l->room;
  const clb_buffer *places = l->motion.positions ? l->motion.positions : l->positions;
  const clb_edge_search_key key = {.positions = places->memory.handle,
                                   .slots = clb_cell_list_slots(l->search),
                                   .shown = r->shown.offset},
                            last = r->last;
  r->due = false;
  r->unseen = true;
  r->last = key;
  return !memcmp(&key, &last, sizeof key) && recorded(l, g, &key) ? clb_replay(r->search)
                                                                  : submit(l, g);
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
