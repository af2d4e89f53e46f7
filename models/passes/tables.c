/* models/passes/tables.c - a radial network that reads lengths alone becomes a table of the
   convolution that reads it. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

static const clb_layer *writer(const clb_network *n, int array, const clb_layer_kind *kind) {
  const int l = clb_network_writer(n, array);
  return l >= 0 && n->layer[l]->kind == kind ? n->layer[l] : NULL;
}

clb_status clb_pass_tables(clb_network *n) {
  int lengths = -1;
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && n->knots && !s; l++) {
    clb_layer *y = n->layer[l];
    if (y->kind == &clb_edges_kind) {
      const clb_irreps one = clb_scalars(1);
      s = clb_network_array(n, CLB_PER_EDGE, true, &one, &lengths);
      y->out[CLB_EDGES_LENGTHS] = lengths;
    }
    if (y->kind != &clb_convolution_kind) continue;
    const clb_layer *radial = writer(n, y->in[CLB_CONVOLUTION_WEIGHTS], &clb_radial_kind),
                    *basis = radial ? writer(n, radial->in[0], &clb_basis_kind) : NULL;
    if (!basis) continue;
    clb_convolution *p = y->parameters;
    p->radial = *(const clb_radial *)radial->parameters;
    p->basis = *(const clb_basis *)basis->parameters;
    y->in[CLB_CONVOLUTION_WEIGHTS] = -1;
    y->in[CLB_CONVOLUTION_LENGTHS] = lengths;
  }
  for (int l = n->n_layers - 1; l >= 0 && n->knots; l--) {
    const clb_layer *y = n->layer[l];
    if ((y->kind == &clb_radial_kind || y->kind == &clb_basis_kind) &&
        !clb_network_readers(n, y->out[0]))
      clb_network_remove(n, l);
  }
  return s;
}
