/* kernels.c - the table of ops. */
#include "kernels.h"

extern const clb_kernel_kind clb_spherical_harmonics, clb_tensor_product, clb_matrix_product, clb_column_sum, clb_row_sum_kind, clb_graph_sort, clb_convolution_walk;

const clb_kernel_kind *const clb_kernel_kinds[CLB_KERNEL_KINDS] = {
    [CLB_SPHERICAL_HARMONICS] = &clb_spherical_harmonics,
    [CLB_TENSOR_PRODUCT] = &clb_tensor_product,
    [CLB_MATRIX_PRODUCT] = &clb_matrix_product,
    [CLB_COLUMN_SUM] = &clb_column_sum,
    [CLB_ROW_SUM] = &clb_row_sum_kind,
    [CLB_GRAPH] = &clb_graph_sort,
    [CLB_CONVOLUTION] = &clb_convolution_walk,
};
