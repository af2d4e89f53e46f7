/* tools/ops/graphs.h - the graphs that `bench` knows by name. */
#ifndef CLB_TOOLS_OPS_GRAPHS_H
#define CLB_TOOLS_OPS_GRAPHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  int64_t n_nodes, n_edges;
  int32_t *senders, *receivers; /* [n_edges], sorted by receiver */
  double *vectors;              /* [n_edges][3]: from receiver to sender, Angstrom */
} tool_graph;

/* One line of help per name. */
extern const char graph_names_help[];

/* Whether there is a graph of that name; its file is not opened. */
bool graph_known(const char *name);
/* Makes the graph of that name. false: error (of size > 0) gives the reason, *g is empty. */
bool graph_make(const char *name, tool_graph *g, char *error, size_t size);
void graph_free(tool_graph *g);

#endif
