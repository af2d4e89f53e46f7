/* kernels/optimizer/host/optimizer.h - what stands behind clb_optimizer. */
#ifndef CLB_KERNELS_OPTIMIZER_HOST_OPTIMIZER_H
#define CLB_KERNELS_OPTIMIZER_HOST_OPTIMIZER_H

#include "kernels/optimizer/chunks.h"
#include "src/runtime/context.h"

/* The arrays that tensors have a place in; also columns of the table of chunks. */
enum {
  CLB_PARAMETERS = CLB_CHUNK_PARAMETERS,
  CLB_GRADIENTS = CLB_CHUNK_GRADIENTS,
  CLB_COPY = CLB_CHUNK_COPY,
  CLB_AVERAGE = CLB_CHUNK_AVERAGE,
  CLB_TENSOR_ARRAYS
};

enum { CLB_MAX_GROUPS = 4096 };

/* Where a tensor of a rule of matrices is in the memory of matrices, as columns of chunks. */
typedef struct {
  int64_t gathered, mean, rotated, rotated_mean, direction;
} clb_matrix_places;
struct clb_newton_schulz;
struct clb_soap;

struct clb_optimizer {
  clb_context *ctx;
  clb_problem problem; /* the kernels differ in `pass` only */
  clb_optimizer_desc desc;
  clb_optimizer_tensor *tensors; /* those of the description, and its groups */
  clb_optimizer_group *groups;
  clb_kernel *kernel[CLB_OPTIMIZER_KERNELS]; /* NULL: not needed */
  int n_states;

  int64_t n_chunks, n_units, n_sums;            /* sub-groups of a step, partial sums */
  int64_t state_elements[CLB_OPTIMIZER_STATES]; /* of each array of state */
  int32_t *group_of_chunk;
  int64_t *chunk_of_group; /* the first; -1: the group has no elements */
  clb_memory
      array[CLB_TENSOR_ARRAYS]; /* the caller's: one buffer, or all memory from the lowest on */
  clb_memory table, numbers, powers, counts, sums, norms, state[CLB_OPTIMIZER_STATES];

  struct clb_newton_schulz *newton_schulz; /* NULL, as the next two: no rule needs it */
  struct clb_soap *soap;
  clb_matrix_places *matrix_places;       /* of each tensor */
  int64_t matrix_elements, matrices_kept; /* kept: those at the start, which are state */
  clb_memory matrix, gates;
};

/* "clb_optimizer_create: " and so on. */
#define OPTIMIZER_FAIL(ctx, ...) clb_fail(&(ctx)->error, CLB_ERROR_ARGUMENT, __VA_ARGS__)

static inline int64_t clb_tensor_elements(const clb_optimizer_tensor *t) {
  return t->rows * t->columns;
}
/* Elements of a chunk. */
static inline int64_t clb_optimizer_chunk_size(const clb_optimizer *o) {
  int64_t all = 0;
  for (int64_t i = 0; i < o->desc.n_tensors; i++) all += clb_tensor_elements(&o->tensors[i]);
  return clb_optimizer_chunk(&o->ctx->device->limits, o->problem.storage, all);
}
/* The place of a tensor in an array, and the array's name. */
const clb_place *clb_tensor_place(const clb_optimizer_tensor *t, int array);
extern const char *const clb_tensor_arrays[CLB_TENSOR_ARRAYS];
int32_t clb_optimizer_type(const clb_optimizer_desc *d, int array);
/* Whether tensors have a place in it. */
bool clb_optimizer_has(const clb_optimizer *o, int array);

/* Whether the description makes sense; all sizes and places are checked. */
clb_status clb_optimizer_check(clb_context *ctx, const clb_optimizer_desc *d);
clb_status clb_optimizer_check_group(clb_context *ctx, const char *call, int i,
                                     const clb_optimizer_group *g);
/* Puts the defaults in the place of zeros. */
void clb_optimizer_fill_group(clb_optimizer_group *g);
/* The rule as it is compiled. */
clb_optimizer_rule clb_optimizer_rule_of(const clb_optimizer_group *g);

/* Finds the arrays' memory, whether accesses can be wide, and the problem's rules. */
clb_status clb_optimizer_find_arrays(clb_optimizer *o);
/* The table of chunks, malloc'ed; NULL: no memory. Sets the numbers of chunks and of elements of
   state. */
int64_t *clb_optimizer_make_table(clb_optimizer *o);

/* The description's arrays are copied. */
clb_status clb_optimizer_make(clb_context *ctx, const clb_optimizer_desc *d, clb_optimizer **o);
/* What rules of matrices need: matrices.c. */
clb_status clb_optimizer_check_matrices(clb_context *ctx, const clb_optimizer_desc *d);
double clb_optimizer_muon_epsilon(clb_muon variant);
/* Compiles the products, and finds the places of the matrices. */
clb_status clb_optimizer_plan_matrices(clb_optimizer *o);
uint64_t clb_optimizer_matrix_bytes(const clb_optimizer *o);
void clb_optimizer_free_matrices(clb_optimizer *o);
/* Between GATHER and MOMENTS, and between this and UPDATE. */
clb_status clb_optimizer_rotate(clb_optimizer *o);
clb_status clb_optimizer_run_matrices(clb_optimizer *o);
/* Writes the numbers of group i to the device. */
clb_status clb_optimizer_write_group(clb_optimizer *o, int i);

#endif
