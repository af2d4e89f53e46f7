/* src/runtime/recording_list.h - what stands behind a recording. */
#ifndef CLB_SRC_RUNTIME_RECORDING_LIST_H
#define CLB_SRC_RUNTIME_RECORDING_LIST_H

#include "src/runtime/context.h"

/* What one work points to. */
typedef struct {
  clb_gemm_desc product;
  clb_memory *memory;
  int n_memory;
  clb_arg args[];
} clb_kept;

struct clb_recording {
  clb_context *ctx;
  clb_work *work;
  clb_kept **kept; /* of each work */
  int64_t n, capacity;
  clb_recorded *recorded; /* the driver's; NULL: the list is it */
  bool lost;              /* memory that it uses was freed */
  clb_recording *next;    /* of the context's */
};

#endif
