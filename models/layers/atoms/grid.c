/* models/layers/atoms/grid.c - features of atoms to values at points of a sphere, or back: each
   channel times one matrix, as a product with a row that is the same for all atoms. */
#include <stdlib.h>

#include "kernels/tensor_product/host/tensor_product.h"
#include "models/layers/kinds.h"

/* Of each point its number of each component of each degree. */
static void row_terms(int points, int l_max, clb_irreps *row) {
  for (int t = 0; t < points * (l_max + 1); t++) {
    const int l = t % (l_max + 1);
    row->term[row->n++] = (clb_term){.mul = 1, .l = l, .parity = 1, .at = row->dim};
    row->dim += 2 * l + 1;
  }
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_grid *p = y->parameters;
  const clb_irreps *x = &n->array[y->in[0]]->irreps, *z = &n->array[y->out[0]]->irreps,
                   *degrees = p->back ? z : x;
  clb_irreps *row = calloc(1, sizeof *row);
  clb_instruction *path = calloc(CLB_MAX_PATHS, sizeof *path);
  clb_status s = row && path ? CLB_OK : clb_network_no_memory(n);
  if (!s) {
    row_terms(p->points, degrees->n - 1, row);
    for (int t = 0; t < row->n; t++) {
      const int l = t % degrees->n, point = t / degrees->n;
      path[t] = p->back ? (clb_instruction){point, t, l, CLB_UVU, 0, 1}
                        : (clb_instruction){l, t, point, CLB_UVU, 0, 2 * l + 1};
    }
    const clb_tensor_product_desc d = {.instructions = path,
                                       .n_instructions = row->n,
                                       .gradients = CLB_OPERAND_X,
                                       .incoming = CLB_OPERAND_X};
    s = clb_product_create(n, d, x, row, z, false,
                           CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD), &p->op);
  }
  free(row);
  free(path);
  return s;
}

static clb_rows row_of(const clb_network *n, const clb_layer *y) {
  return (clb_rows){n->device_weights, ((const clb_grid *)y->parameters)->row, CLB_SAME_ROW, NULL};
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return clb_tensor_product_run(
      ((clb_grid *)y->parameters)->op, CLB_FORWARD, clb_row_count(n, y->in[0]),
      (const clb_rows[]){clb_value(n, y->in[0]), row_of(n, y), {0}, clb_value(n, y->out[0])});
}

/* Its input has no other reader. */
static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return clb_tensor_product_run(((clb_grid *)y->parameters)->op, CLB_BACKWARD,
                                clb_row_count(n, y->in[0]),
                                (const clb_rows[]){clb_value(n, y->in[0]),
                                                   row_of(n, y),
                                                   {0},
                                                   clb_gradient(n, y->out[0]),
                                                   clb_gradient(n, y->in[0]),
                                                   {0},
                                                   {0}});
}

static void free_ops(void *parameters) { clb_op_destroy(&((clb_grid *)parameters)->op); }

const clb_layer_kind clb_grid_kind = {.reads_in = 1,
                                      .overwrites = 1,
                                      .build = build,
                                      .forward = forward,
                                      .backward = backward,
                                      .free_ops = free_ops};
