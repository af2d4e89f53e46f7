/* kernels/layers/edges/spline_sum.h - how sums of edge_spline.c are divided. */
#ifndef CLB_KERNELS_LAYERS_EDGES_SPLINE_SUM_H
#define CLB_KERNELS_LAYERS_EDGES_SPLINE_SUM_H

enum { CLB_SPLINE_WIDE = 1 }; /* columns of a lane: with 4, sums took a third longer on an H200 */

#endif
