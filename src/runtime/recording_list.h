/* src/runtime/recording_list.h - the struct behind clb_recording. */
#ifndef CLB_SRC_RUNTIME_RECORDING_LIST_H
#define CLB_SRC_RUNTIME_RECORDING_LIST_H

#include "src/runtime/context.h"

/* The data that one clb_work points to. */
typedef struct {
  clb_gemm_desc product;
  clb_memory *memory;
  int n_memory;
  clb_arg args[];
} clb_recorded_memory;

/* A number that must be what it was. */
typedef struct {
  const uint64_t *now;
  uint64_t then;
} clb_watched;

struct clb_recording {
  clb_context *ctx;
  clb_work *work;
  clb_recorded_memory **kept; /* for each work */
  int64_t n, capacity;
  clb_watched *watched;
  int n_watched;
  clb_recorded *recorded; /* the driver's object; NULL: the list itself is replayed */
  bool lost;              /* memory that it uses has been freed */
  clb_recording *next;    /* in the context's list */
};

/* Between clb_record_begin and clb_record_end: the driver's object of `from`, which can then no
   longer be replayed as one, is changed to be that of the new recording, if the driver can do so.
 */
void clb_recording_take_over(clb_recording *from);

#endif
