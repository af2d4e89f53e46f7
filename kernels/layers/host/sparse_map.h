/* kernels/layers/host/sparse_map.h - numbers that are sums of a few others times factors. Other
   remarks of layers.h hold. */
#ifndef CLB_KERNELS_LAYERS_HOST_SPARSE_MAP_H
#define CLB_KERNELS_LAYERS_HOST_SPARSE_MAP_H

#include "src/runtime/context.h"

clb_status clb_sparse_map_create(clb_context *ctx, clb_dtype type, clb_op **op);

/* out[i] = sum of factors[e] in[from[e]], starts[i] <= e < starts[i + 1]; the lists are copied to
   the device. run: keep: where there is no e, out[i] stays as it is. */
typedef struct {
  int64_t rows, longest;
  clb_buffer *starts, *from, *factors;
} clb_sparse_map;
clb_status clb_sparse_map_set(clb_op *op, int64_t rows, const int32_t *starts, const int32_t *from,
                              const double *factors, clb_sparse_map *map);
void clb_sparse_map_free(clb_sparse_map *map);
clb_status clb_sparse_map_run(clb_op *op, const clb_sparse_map *map, const clb_buffer *in,
                              const clb_buffer *out, bool keep);

#endif
