/* models/passes/tables.c - a radial network that reads lengths alone becomes a table of the
   convolution that reads its values. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

static const clb_layer *writer(const clb_network *n, int array, const clb_layer_kind *kind) {
  const int l = clb_network_writer(n, array);
  return l >= 0 && n->layer[l]->kind == kind ? n->layer[l] : NULL;
}

/* Finds the network of a convolution's weights, and whether its values are multiplied by the cutoff
   afterwards. */
static clb_status tabulate(clb_network *n, clb_layer *y, int lengths) {
  clb_convolution *p = y->parameters;
  const clb_layer *cut = writer(n, y->in[CLB_CONVOLUTION_WEIGHTS], &clb_scale_kind),
                  *radial =
                      writer(n, cut ? cut->in[CLB_SCALE_ROWS] : y->in[CLB_CONVOLUTION_WEIGHTS],
                             &clb_radial_kind),
                  *basis = radial ? writer(n, radial->in[0], &clb_basis_kind) : NULL;
  if (!basis) return CLB_OK;
  if (((const clb_basis *)basis->parameters)->transformed)
    return clb_fail(n->error, CLB_ERROR_UNSUPPORTED,
                    "clb_model_open: knots is %d; it must be 0, as the radial functions of this "
                    "model (Agnesi's distances) depend on the species of both atoms, and tables "
                    "only on lengths",
                    n->knots);
  p->cut = cut != NULL;
  p->radial = *(const clb_radial *)radial->parameters;
  p->basis = *(const clb_basis *)basis->parameters;
  y->in[CLB_CONVOLUTION_WEIGHTS] = -1;
  y->in[CLB_CONVOLUTION_LENGTHS] = lengths;
  return CLB_OK;
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
    if (!s && y->kind == &clb_convolution_kind) s = tabulate(n, y, lengths);
  }
  for (int l = n->n_layers - 1; l >= 0 && n->knots && !s; l--) {
    const clb_layer *y = n->layer[l];
    if ((y->kind == &clb_scale_kind || y->kind == &clb_radial_kind || y->kind == &clb_basis_kind) &&
        !clb_network_readers(n, y->out[0]))
      clb_network_remove(n, l);
  }
  return s;
}
