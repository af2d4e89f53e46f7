/* kernels/layers/host/edge_functions.h - functions of edges: Gaussians of their lengths, and
   rotations into their frames. Other remarks of layers.h hold. */
#ifndef CLB_KERNELS_LAYERS_HOST_EDGE_FUNCTIONS_H
#define CLB_KERNELS_LAYERS_HOST_EDGE_FUNCTIONS_H

#include "src/runtime/context.h"

/* ---- Gaussians ---- */

/* b[n][columns] from r[n][1]: exp(-((r - k d) / (width d))^2 / 2), d = r_max / (columns - 1).
   backward: g_r[n][1] (= or +=) from g_b.  columns: at least 2. */
clb_status clb_gaussians_create(clb_context *ctx, clb_dtype type, int64_t columns, double r_max,
                                double width, clb_op **op);
clb_status clb_gaussians_forward(clb_op *op, int64_t n, clb_rows r, clb_rows b);
clb_status clb_gaussians_backward(clb_op *op, int64_t n, clb_rows r, clb_rows g_b, clb_rows g_r,
                                  bool add);

/* ---- rotations ---- */

/* D[n][clb_edge_rotation_columns(l, m)] of vectors v[n][3], 0 <= m <= l <= CLB_MAX_EDGE_ROTATION_L:
   for each order |q| <= m and degree from |q| to l, at clb_edge_rotation_at, what the components of
   a row give to it once v is turned to the axis y, in the basis of wigner.h; 0 where v is shorter
   than 1e-12. Rows with other rotations about y are as good as these. backward: g_v[n][3] from g_D,
   without what turns the rows about y: right for sums that do not depend on that. adds: it adds to
   g_v. */
clb_status clb_edge_rotation_create(clb_context *ctx, clb_dtype type, int l, int m, bool adds,
                                    unsigned passes, clb_op **op);
clb_status clb_edge_rotation_forward(clb_op *op, int64_t n, clb_rows v, clb_rows D);
clb_status clb_edge_rotation_backward(clb_op *op, int64_t n, clb_rows v, clb_rows g_D,
                                      clb_rows g_v);

#endif
