/* models/passes/tables.c - a radial network that reads lengths alone becomes a table of the
   convolution that reads its values; one that reads species, too, tables by pairs of species. */
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "models/passes/passes.h"

static clb_layer *writer(const clb_network *n, int array, const clb_layer_kind *kind) {
  const int l = clb_network_writer(n, array);
  return l >= 0 && n->layer[l]->kind == kind ? n->layer[l] : NULL;
}

/* Makes a radial network a layer of tables. */
static clb_status by_pairs(const clb_network *n, clb_layer *radial, const clb_radial_function *f) {
  clb_pair_table *p = calloc(1, sizeof *p);
  if (!p) return clb_network_no_memory(n);
  p->function = *f;
  free(radial->parameters);
  radial->kind = &clb_pair_table_kind;
  radial->parameters = p;
  radial->in[0] = CLB_VECTORS;
  radial->out[CLB_RADIAL_HIDDEN] = radial->work = -1;
  return CLB_OK;
}

/* A layer that is a radial network, as a function of lengths; false: it is none. */
static bool function_of(const clb_network *n, const clb_layer *radial, clb_radial_function *f) {
  const clb_layer *basis = radial ? writer(n, radial->in[0], &clb_basis_kind) : NULL;
  if (basis)
    *f = (clb_radial_function){.radial = *(const clb_radial *)radial->parameters,
                               .basis = *(const clb_basis *)basis->parameters,
                               .apart = basis->out[CLB_BASIS_CUTOFF] >= 0};
  return basis;
}

/* Finds the network of a convolution's weights, and whether its values are multiplied by the cutoff
   afterwards. */
static clb_status tabulate(clb_network *n, clb_layer *y, int lengths) {
  clb_convolution_layer *p = y->parameters;
  int *weights = &y->in[CLB_CONVOLUTION_WEIGHTS];
  const clb_layer *cut = writer(n, *weights, &clb_scale_kind);
  clb_layer *radial = writer(n, cut ? cut->in[CLB_SCALE_ROWS] : *weights, &clb_radial_kind);
  clb_radial_function f;
  if (!function_of(n, radial, &f)) return CLB_OK;
  f.cut = cut != NULL;
  if (f.basis.transformed || f.radial.normalized) {
    *weights = radial->out[CLB_RADIAL_WEIGHTS];
    return by_pairs(n, radial, &f);
  }
  p->function = f;
  *weights = -1;
  y->in[CLB_CONVOLUTION_LENGTHS] = lengths;
  return CLB_OK;
}

/* Of a basis, whose cutoff something else may read, the functions alone. */
static void drop_unread(clb_network *n, int layer) {
  const clb_layer *y = n->layer[layer];
  const bool basis = y->kind == &clb_basis_kind;
  if (clb_network_readers(n, y->out[0])) return;
  if (basis && y->out[CLB_BASIS_CUTOFF] >= 0 && clb_network_readers(n, y->out[CLB_BASIS_CUTOFF]))
    ((clb_basis *)y->parameters)->n = 0;
  else if (basis || y->kind == &clb_scale_kind || y->kind == &clb_radial_kind)
    clb_network_remove(n, layer);
}

clb_status clb_pass_tables(clb_network *n) {
  int lengths = -1;
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && n->knots && !s; l++) {
    clb_layer *y = n->layer[l];
    if (y->kind == &clb_edges_kind && y->out[CLB_EDGES_LENGTHS] < 0) {
      const clb_irreps one = clb_scalars(1);
      s = clb_network_array(n, CLB_PER_EDGE, true, &one, &lengths);
      y->out[CLB_EDGES_LENGTHS] = lengths;
    }
    if (!s && y->kind == &clb_convolution_kind) s = tabulate(n, y, lengths);
    clb_layer *density = !s && y->kind == &clb_density_kind
                             ? writer(n, y->in[CLB_DENSITY_FUNCTIONS], &clb_radial_kind)
                             : NULL;
    clb_radial_function f;
    if (function_of(n, density, &f)) s = by_pairs(n, density, &f);
  }
  for (int l = n->n_layers - 1; l >= 0 && n->knots && !s; l--) drop_unread(n, l);
  return s;
}
