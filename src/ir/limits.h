/* src/ir/limits.h - the properties of a device on which schedules may depend. */
#ifndef CLB_SRC_IR_LIMITS_H
#define CLB_SRC_IR_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  int lanes[2]; /* preferred sub-group size for CLB_F32, CLB_F64 arithmetic (index: clb_dtype) */
  int max_subgroups;        /* sub-groups of that size in one group */
  int64_t local_bytes;      /* of one group */
  int64_t max_local_bytes;  /* of one group, where the kernel asks for it (CUDA: above 48 KB); at
                                least local_bytes */
  int64_t unit_local_bytes; /* of the groups of a multiprocessor together; 0: as max_local_bytes */
  int registers;            /* 32-bit registers per lane before spilling starts */
  int units;                /* multiprocessors, compute units, cores */
  bool simd; /* lanes are a CPU's SIMD lanes: wide loads and stores are transposed in registers,
                staging is useless */
  bool subgroups;      /* false: the backend lowers shuffles, which needs subgroups == 1 */
  bool async_copies;   /* copies into local memory are asynchronous */
  bool vector_atomics; /* atomic additions of 8 and 16 bytes of f32 are one access */
  bool f64;
} clb_limits;

#endif
