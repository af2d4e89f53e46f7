/* tests/atoms/graph_lists.h - a search's edges in a graph's lists, by counting and by sorting. */
#ifndef CLB_TESTS_ATOMS_GRAPH_LISTS_H
#define CLB_TESTS_ATOMS_GRAPH_LISTS_H

#include "kernels/graph/host/cell_list.h"
#include "tests/test.h"

/* Fills a graph in a room; keyed: sorts it. */
static inline clb_graph *graph_in_room(clb_context *ctx, clb_cell_list *list, int64_t n,
                                       int64_t room, bool keyed) {
  clb_graph *g;
  clb_buffer *shifts;
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  OK(ctx, clb_buffer_create(ctx, (uint64_t)room * 4 + 1, &shifts));
  OK(ctx, clb_graph_reserve(g, n, n, room));
  OK(ctx, clb_cell_list_fill(list, room, &g->buffer[CLB_GRAPH_SENDERS].memory,
                             &g->buffer[CLB_GRAPH_RECEIVERS].memory, &shifts->memory,
                             keyed ? &g->buffer[CLB_GRAPH_KEYS].memory : NULL));
  OK(ctx, keyed ? clb_graph_sort_keyed(g, n, room) : clb_cell_list_ends(list, room, g));
  OK(ctx, clb_wait(ctx));
  clb_buffer_destroy(&shifts);
  return g;
}

/* Both ways give the same lists, number by number. */
static inline void check_ends(clb_context *ctx, clb_cell_list *list, int64_t n, int64_t room) {
  static const struct {
    const char *name;
    int buffer;
    int width;
    bool per_atom;
  } lists[] = {{"starts of rows", CLB_GRAPH_ROW_START, 1, true},
               {"edges", CLB_GRAPH_EDGE, 1, false},
               {"other ends", CLB_GRAPH_OTHER, 1, false},
               {"segments", CLB_GRAPH_SEGMENTS, 3, true}};
  clb_graph *g[2];
  for (int i = 0; i < 2; i++) g[i] = graph_in_room(ctx, list, n, room, i);
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
    for (int d = 0; d < 2; d++) {
      const int64_t rows = lists[l].per_atom ? n + (lists[l].width == 1) : room,
                    count = rows * lists[l].width;
      int32_t *got[2];
      for (int i = 0; i < 2; i++) {
        got[i] = malloc((size_t)(count + 1) * 4);
        if (count)
          OK(ctx,
             clb_buffer_read(&g[i]->buffer[lists[l].buffer + d], 0, got[i], (uint64_t)count * 4));
      }
      for (int64_t e = 0; e < count; e++)
        if (got[0][e] != got[1][e])
          fail_msg("%s %d of %lld atoms and room for %lld: number %lld is %d, must be %d",
                   lists[l].name, d, (long long)n, (long long)room, (long long)e, got[0][e],
                   got[1][e]);
      free(got[0]);
      free(got[1]);
    }
  for (int i = 0; i < 2; i++) clb_graph_destroy(&g[i]);
}

#endif
