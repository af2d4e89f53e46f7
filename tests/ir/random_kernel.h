/* tests/ir/random_kernel.h - random valid kernels with their data: every printer and backend must
   agree with the interpreter on them.

   No undefined behaviour, no race: each lane writes slots of its own, indices are in range where
   the mask is on, divisors are positive, atomic sums are of small integers and so exact in any
   order. */
#ifndef CLB_TESTS_IR_RANDOM_KERNEL_H
#define CLB_TESTS_IR_RANDOM_KERNEL_H

#include "src/ir/ir.h"

enum {
  RANDOM_F64 = 1,
  RANDOM_SHUFFLES = 2, /* SHUFFLE, SHUFFLE_XOR, REDUCE_ADD */
  RANDOM_LOCALS = 4,   /* LOCAL, BARRIER */
  RANDOM_COPIES = 8,   /* COPY, with RANDOM_LOCALS */
  RANDOM_ATOMICS = 16,
  RANDOM_MATHS = 32, /* EXP, SIN, COS: their results are stored at once, in buffers of their own */
  RANDOM_IFS = 64,   /* barriers and shuffles in ifs */
  RANDOM_ALIGNED = 128, /* aligned LOAD */
  RANDOM_ALL = 255
};

typedef struct {
  ir_val v;
  ir_type type; /* SCALAR: its type; IR_VOID: BUFFER */
  ir_type element;
  bool written;
  int ulps;       /* results may differ by this much */
  int64_t length; /* of a BUFFER */
  void *data;     /* its elements before the launch */
  ir_arg scalar;
} random_parameter;

enum { RANDOM_PARAMETERS = 24 };

typedef struct {
  ir_kernel k;    /* finished; k.error if there was no memory */
  int32_t groups; /* to launch */
  int n;          /* parameters, in order */
  random_parameter parameter[RANDOM_PARAMETERS];
} random_kernel;

/* Equal arguments make equal kernels. */
void random_kernel_make(random_kernel *r, uint64_t seed, int lanes, int subgroups,
                        unsigned features);
void random_kernel_free(random_kernel *r);

/* The bytes of parameter p, copied: data for a run.  NULL: a scalar, or no memory. */
void *random_kernel_data(const random_kernel *r, int p);
size_t random_kernel_bytes(const random_kernel *r, int p);

/* Runs k (r->k, or an equivalent kernel) in the interpreter on data[] (from random_kernel_data). */
bool random_kernel_run(const random_kernel *r, const ir_kernel *k, void *const *data, char *error,
                       size_t size);

/* Whether two runs gave the same: bit for bit except for the payload of a NaN, or within `ulps`. If
   not, error says where. */
bool random_kernel_agree(const random_kernel *r, void *const *expected, void *const *found,
                         char *error, size_t size);

#endif
