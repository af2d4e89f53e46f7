/* kernels/registry.c - the table of ops. */
#include "kernels/kernel.h"

extern const clb_kernel_kind clb_spherical_harmonics, clb_tensor_product, clb_matrix_product, clb_column_sum, clb_row_sum_kind, clb_graph_sort, clb_convolution_walk;
extern const clb_kernel_kind clb_pointwise, clb_gate, clb_rms_norm, clb_radial, clb_species_linear, clb_totals, clb_forces, clb_edge_vectors, clb_lengths_along;

const clb_kernel_kind *const clb_kernel_kinds[CLB_KERNEL_KINDS] = {
    [CLB_SPHERICAL_HARMONICS] = &clb_spherical_harmonics,
    [CLB_TENSOR_PRODUCT] = &clb_tensor_product,
    [CLB_MATRIX_PRODUCT] = &clb_matrix_product,
    [CLB_COLUMN_SUM] = &clb_column_sum,
    [CLB_ROW_SUM] = &clb_row_sum_kind,
    [CLB_GRAPH] = &clb_graph_sort,
    [CLB_CONVOLUTION] = &clb_convolution_walk,
    [CLB_POINTWISE] = &clb_pointwise,
    [CLB_GATE] = &clb_gate,
    [CLB_RMS_NORM] = &clb_rms_norm,
    [CLB_RADIAL] = &clb_radial,
    [CLB_SPECIES_LINEAR] = &clb_species_linear,
    [CLB_TOTALS] = &clb_totals,
    [CLB_FORCES] = &clb_forces,
    [CLB_EDGE_VECTORS] = &clb_edge_vectors,
    [CLB_LENGTHS_ALONG] = &clb_lengths_along,
};
