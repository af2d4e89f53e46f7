/* src/ir/ir.h - a kernel as a flat list of instructions; an instruction's index is its value.

   Execution.  A launch is a number of groups; a group is `subgroups` sub-groups of `lanes` lanes.
   The list runs once per sub-group.  A value is UNIFORM (one number per sub-group), AFFINE (an
   integer that grows by the uniform `stride` from lane to lane) or VARYING.  LOOP and IF take
   uniform operands; lanes that must not act are masked in LOAD, STORE, ATOMIC_ADD and COPY.
   Sub-groups of a group synchronize only at BARRIER (imm 1), which all of them must reach: it must
   not stand under a LOOP or IF whose operands may differ between sub-groups.

   Memory model. Neither lanes nor sub-groups run in lockstep. Two accesses of different lanes to
   one element of a LOCAL array, at least one of them a write, must be separated by a BARRIER: of
   the sub-group if both lanes belong to the same one, else of the group. A language whose lanes run
   in lockstep may print the former as nothing. A STORE of uniform values counts as done by all
   lanes, any of which may read it. A COPY writes at any time until COPY_WAIT, on behalf of its
   lane. Accesses of two lanes to one element of a BUFFER are unordered within a launch: if one of
   them writes, both must be ATOMIC_ADDs. ir_run reports everything else as a race.

   Arithmetic is IEEE: every ADD, MUL, FMA, DIV, SQRT rounds once and nothing is contracted or
   reassociated; EXP, SIN, COS are the device's own, to 4 ulp. MIN and MAX of floats give the other
   operand where one is NaN. Subnormals may be flushed. Integer DIV and MOD truncate; operands are
   non-negative, the divisor positive. i32 and i64 wrap. An AFFINE i32 that is cast to i64, or an
   index, must not wrap, nor what it is the sum, difference or product of. A float that is cast to
   an integer is truncated towards zero; the result must fit in every lane, and NaN is not allowed.

   Memory.  f16 and bf16 exist only as element types: a LOAD gives f32, a STORE takes f32 (round to
   nearest, even). LOCAL arrays belong to the group and start undefined. What nothing has written
   must not be read, not even by lanes whose value is not used: they are masked.

   Pure instructions are hash-consed while they are built: the same expression in an open scope is
   the same value. Integer constants fold. */
#ifndef CLB_SRC_IR_IR_H
#define CLB_SRC_IR_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum __attribute__((packed)) { /* one byte */
                                       IR_VOID,
                                       IR_BOOL,
                                       IR_I32,
                                       IR_I64,
                                       IR_F32,
                                       IR_F64,
                                       IR_F16,
                                       IR_BF16
} ir_type;
typedef enum { IR_UNIFORM, IR_AFFINE, IR_VARYING } ir_shape;

/* name, pure, operands (values in arg[]) */
/* clang-format off */
#define IR_OPS(X)                                                                                 \
  X(BUFFER, 0, 0)      /* parameter: global array of `element`; imm 1: written, 2: and not        \
                          soon read */                                                            \
  X(SCALAR, 0, 0)      /* parameter: i32, i64, f32 or f64, uniform */                             \
  X(GROUP, 1, 0)       /* index of the group, i32, uniform */                                     \
  X(SUBGROUP, 1, 0)    /* index of the sub-group in its group, i32, uniform */                    \
  X(LANE, 1, 0)        /* index of the lane in its sub-group, i32, affine */                      \
  X(INT, 1, 0)         /* constant imm: bool, i32 or i64 */                                       \
  X(REAL, 1, 0)        /* constant real: f32 (already rounded) or f64 */                          \
  X(ADD, 1, 2)                                                                                    \
  X(SUB, 1, 2)                                                                                    \
  X(MUL, 1, 2)                                                                                    \
  X(DIV, 1, 2)                                                                                    \
  X(MOD, 1, 2)         /* integers */                                                             \
  X(XOR, 1, 2)         /* integers, bit by bit */                                                 \
  X(MUL_HIGH, 1, 2)    /* i32: the upper 32 bits of the product of two numbers without sign */    \
  X(MIN, 1, 2)                                                                                    \
  X(MAX, 1, 2)                                                                                    \
  X(NEG, 1, 1)         /* floats */                                                               \
  X(ABS, 1, 1)         /* floats */                                                               \
  X(FMA, 1, 3)         /* floats: a b + c, one rounding */                                        \
  X(SQRT, 1, 1)                                                                                   \
  X(EXP, 1, 1)                                                                                    \
  X(SIN, 1, 1)                                                                                    \
  X(COS, 1, 1)                                                                                    \
  X(LT, 1, 2)          /* numbers -> bool; false where an operand is NaN */                       \
  X(LE, 1, 2)                                                                                     \
  X(EQ, 1, 2)                                                                                     \
  X(AND, 1, 2)         /* bool */                                                                 \
  X(OR, 1, 2)          /* bool */                                                                 \
  X(NOT, 1, 1)         /* bool */                                                                 \
  X(SELECT, 1, 3)      /* a ? b : c, lane by lane */                                              \
  X(CAST, 1, 1)        /* between different types of number: i32, i64, f32, f64 */                \
  X(LOCAL, 0, 0)       /* group-local array: `element`, imm elements */                           \
  X(VAR, 0, 1)         /* private variable; arg 0: its first value */                             \
  X(GET, 0, 1)         /* value of VAR arg 0 now; imm 1: compilers should not compute with it     \
                          before */                                                               \
  X(SET, 0, 2)         /* VAR arg 0 = arg 1 */                                                    \
  X(LOAD, 0, 3)        /* array, index, mask or IR_NONE; `width` elements from index on; 0        \
                          where masked; imm 1: index is a multiple of the width, and the array    \
                          starts at one of the bytes loaded */                                    \
  X(ELEMENT, 1, 1)     /* element imm of a LOAD with width > 1 */                                 \
  X(STORE, 0, 3)       /* array, index, mask or IR_NONE; the `width` values are pool[imm ...];    \
                          element 1: aligned as LOAD's imm 1 says */                              \
  X(ATOMIC_ADD, 0, 3)  /* as STORE, to an array of f32 or f64: each element is added at once */   \
  X(COPY, 0, 5)        /* local array, index, buffer, index, mask: `width` elements,              \
                          asynchronous; same element type; imm 1: both places start at a          \
                          multiple of the bytes copied, of a local array and of memory */         \
  X(COPY_COMMIT, 0, 0) /* ends a batch of COPY */                                                 \
  X(COPY_WAIT, 0, 0)   /* until at most imm batches of this lane are in flight */                 \
  X(BARRIER, 0, 0)     /* imm 0: lanes of the sub-group, 1: of the group; local memory is         \
                          consistent. Devices without sub-groups widen 0 to 1: put it where       \
                          the whole group comes by. imm 2: as 1, and stays where it orders        \
                          nothing, for the sake of pace */                                        \
  X(SHUFFLE, 0, 2)     /* value of arg 0 in lane arg 1 (i32, in range) */                         \
  X(SHUFFLE_XOR, 0, 1) /* value of arg 0 in lane (lane ^ imm) */                                  \
  X(REDUCE_ADD, 0, 1)  /* sum over lanes, uniform: for d = lanes/2 ... 1: v = v +                 \
                          shuffle_xor(v, d) */                                                    \
  X(LOOP, 0, 3)        /* for (value = a; value < b; value += c), integers, uniform */            \
  X(IF, 0, 1)          /* uniform bool */                                                         \
  X(ELSE, 0, 0)                                                                                   \
  X(END, 0, 0)                                                                                    \
  X(PREFETCH, 0, 2)    /* buffer, index: `width` elements of each lane from there on are soon     \
                          read; a hint, for CPUs, of any index */
/* clang-format on */

typedef enum __attribute__((packed)) { /* one byte */
#define IR_X(name, pure, operands) IR_##name,
                                       IR_OPS(IR_X)
#undef IR_X
                                           IR_OP_COUNT
} ir_op;

typedef int32_t ir_val;
#define IR_NONE (-1)
#define IR_MAX_WIDTH 16
#define IR_RENDEZVOUS 2 /* imm of a BARRIER */

typedef struct {
  uint8_t op, type, shape, element; /* type: of the value; element: of the array of BUFFER, LOCAL;
                                       of a STORE 1: aligned */
  ir_val arg[5];                    /* operands not used are IR_NONE */
  ir_val stride; /* AFFINE: value (uniform, same type) by which it grows from lane to lane; else
                    IR_NONE */
  int32_t scope; /* the LOOP, IF or ELSE it stands in; IR_NONE at top level */
  int32_t width; /* LOAD, STORE, COPY: elements; else 0 */
  int32_t unused;
  int64_t imm;
  double real;
} ir_ins;

typedef struct {
  char name[64];            /* a C identifier */
  int32_t lanes, subgroups; /* of a group */
  int32_t rows;             /* rows that one group handles: launch ceil(n / rows) groups */
  int32_t large_registers;  /* 1: ask for the device's large register mode (Intel: 256 registers) */
  int32_t min_blocks_per_sm; /* groups that should be resident on a multiprocessor (CUDA: limits
                       registers); 0: the compiler's choice */
  int32_t n, pool_n;
  ir_ins *ins;
  ir_val *pool; /* operands of wide stores */
  /* while building */
  int32_t cap, pool_cap, scope, hash_cap;
  int32_t *hash;      /* open addressing: instruction + 1, or 0 */
  bool scalar_access; /* wide accesses to floats in buffers are split into scalar ones */
  char error[200];    /* the first mistake; empty while all is well */
} ir_kernel;

/* ---- building; after the first mistake everything returns 0 and k->error describes it ---- */
void ir_begin(ir_kernel *k, const char *name, int lanes, int subgroups, int rows);
void ir_free(ir_kernel *k);

ir_val ir_buffer(ir_kernel *k, ir_type element, bool written);
void ir_stream(ir_kernel *k, ir_val buffer); /* hint: what is written there need not stay in
                                                caches */
ir_val ir_scalar(ir_kernel *k, ir_type type);
ir_val ir_group(ir_kernel *k);
ir_val ir_subgroup(ir_kernel *k);
ir_val ir_lane(ir_kernel *k);
ir_val ir_int(ir_kernel *k, ir_type type, int64_t value);
ir_val ir_real(ir_kernel *k, ir_type type, double value);
ir_val ir_1(ir_kernel *k, ir_op op, ir_val a);
ir_val ir_2(ir_kernel *k, ir_op op, ir_val a, ir_val b);
ir_val ir_fma(ir_kernel *k, ir_val a, ir_val b, ir_val c);
ir_val ir_select(ir_kernel *k, ir_val mask, ir_val yes, ir_val no);
ir_val ir_cast(ir_kernel *k, ir_type type, ir_val a);
/* What an instruction is.  After an error, when it may not exist: F64, uniform. */
ir_type ir_value_type(const ir_kernel *k, ir_val v);
ir_type ir_element_type(const ir_kernel *k, ir_val array);
bool ir_is_uniform(const ir_kernel *k, ir_val v);
ir_val ir_local(ir_kernel *k, ir_type element, int64_t length);
ir_val ir_var(ir_kernel *k, ir_val first, bool uniform); /* uniform: every SET must be uniform */
ir_val ir_get(ir_kernel *k, ir_val var);
/* For use in a loop that does not set the variable: values computed from it are not hoisted out of
   the loop, where they would occupy registers throughout. */
ir_val ir_get_here(ir_kernel *k, ir_val var);
void ir_set(ir_kernel *k, ir_val var, ir_val value);
ir_val ir_load(ir_kernel *k, ir_val array, ir_val index, ir_val mask);
void ir_load_wide(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width, ir_val *values);
void ir_load_aligned(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                     ir_val *values); /* 8 or 16 bytes */
void ir_store(ir_kernel *k, ir_val array, ir_val index, ir_val mask, ir_val value);
void ir_store_wide(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                   const ir_val *values);
void ir_store_aligned(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                      const ir_val *values); /* 8 or 16 bytes */
void ir_atomic_add(ir_kernel *k, ir_val array, ir_val index, ir_val mask, ir_val value);
void ir_atomic_add_aligned(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                           const ir_val *values); /* 8 or 16 bytes */
void ir_copy(ir_kernel *k, ir_val local, ir_val at, ir_val buffer, ir_val from, ir_val mask,
             int width);
void ir_copy_aligned(ir_kernel *k, ir_val local, ir_val at, ir_val buffer, ir_val from, ir_val mask,
                     int width); /* 8 or 16 bytes */
void ir_copy_commit(ir_kernel *k);
void ir_copy_wait(ir_kernel *k, int batches);
void ir_prefetch(ir_kernel *k, ir_val buffer, ir_val index,
                 int width); /* hint: this will be read; lanes lie back to back */
void ir_barrier(ir_kernel *k, bool group);
void ir_rendezvous(ir_kernel *k);
ir_val ir_shuffle(ir_kernel *k, ir_val value, ir_val lane);
ir_val ir_shuffle_xor(ir_kernel *k, ir_val value, int with);
ir_val ir_reduce_add(ir_kernel *k, ir_val value);
ir_val ir_loop(ir_kernel *k, ir_val begin, ir_val end, ir_val step);
void ir_if(ir_kernel *k, ir_val condition);
void ir_else(ir_kernel *k);
void ir_end(ir_kernel *k);

static inline ir_val ir_add(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_ADD, a, b); }
static inline ir_val ir_sub(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_SUB, a, b); }
static inline ir_val ir_mul(ir_kernel *k, ir_val a, ir_val b) { return ir_2(k, IR_MUL, a, b); }

/* Drops unused instructions and frees the memory used for building. On false, see k->error. */
bool ir_finish(ir_kernel *k);

/* Drops BARRIERs that order nothing, from a kernel that ir_verify has passed. false: no memory. */
bool ir_drop_barriers(ir_kernel *k);

/* ---- reading ---- */
const char *ir_op_name(ir_op op);
const char *ir_type_name(ir_type type);
int ir_type_bytes(ir_type type);
static inline bool ir_is_float(ir_type t) { return t == IR_F32 || t == IR_F64; }
/* Whether it puts values of the pool into memory. */
static inline bool ir_stores(const ir_ins *i) {
  return i->op == IR_STORE || i->op == IR_ATOMIC_ADD;
}
static inline bool ir_is_int(ir_type t) { return t == IR_I32 || t == IR_I64; }
/* The register type of an element in memory: f16 and bf16 are f32. */
static inline ir_type ir_register_type(ir_type t) {
  return t == IR_F16 || t == IR_BF16 ? IR_F32 : t;
}
/* The constant of an INT (for LOOP bounds, strides), or `otherwise`. */
int64_t ir_int_value(const ir_kernel *k, ir_val v, int64_t otherwise);

/* Whether the whole list obeys the rules above; if not, error says which instruction breaks which
 rule. */
bool ir_verify(const ir_kernel *k, char *error, size_t size);

typedef struct {
  double loads, stores, bytes_loaded, bytes_stored, flops; /* per row; global memory only */
} ir_counts;
/* Sums over the group's sub-groups and lanes. Values computed from constants, LANE, SUBGROUP and
   loop variables are known: lanes known to be masked do not count, nor do branches known not to be
   taken. Unknown conditions (which depend on the row or on loaded values) are taken as true; of IF
   and ELSE the larger counts; a loop with unknown bounds counts as one iteration; in a loop of very
   many iterations the variable is unknown. A uniform value is computed, loaded or stored once per
   sub-group; arithmetic is done in all lanes. loads < 0: no memory. */
ir_counts ir_count(const ir_kernel *k);
/* The same with loops of unknown bounds that go through a range of this length on average, in their
   steps; those within one of them go through its step. 0: as above. */
ir_counts ir_count_ranges(const ir_kernel *k, double length);

/* Bytes of a group's LOCAL arrays. */
int ir_local_bytes(const ir_kernel *k);

/* The list as bytes (equal kernels have equal bytes) and back. ir_read does not trust its input: on
   false k is empty except for k->error. */
size_t ir_write(const ir_kernel *k, void *bytes, size_t size); /* returns the size needed */
bool ir_read(ir_kernel *k, const void *bytes, size_t size);

/* ---- running: the meaning of the IR ---- */
typedef union {
  void *p; /* BUFFER */
  int32_t i32;
  int64_t i64;
  float f32;
  double f64;
} ir_arg;
/* The memory of a parameter. */
typedef struct {
  uint64_t bytes;
  unsigned char *written; /* whether a byte has been written; NULL: all have been */
} ir_memory;
/* Runs groups [first, last) on this thread; arg, and memory (NULL: nothing is known of it), in the
   order of the parameters. false: no memory, or error names the instruction that divided by zero,
   cast a value that does not fit, shuffled from a lane that does not exist, left its array, read
   what nothing had written, made a misaligned access, or raced with another instruction (races are
   checked in buffers that are written, and in those that start at the same address as one). */
bool ir_run(const ir_kernel *k, const ir_arg *arg, const ir_memory *memory, int64_t first,
            int64_t last, char *error, size_t size);

/* Whether k has SHUFFLE, SHUFFLE_XOR or REDUCE_ADD. */
bool clb_shuffles(const ir_kernel *k);
/* An equivalent kernel without SHUFFLE, SHUFFLE_XOR and REDUCE_ADD, which use local memory and
   group barriers instead. Only for kernels with one sub-group per group. `out` is begun and
   finished here; false: out->error. */
bool clb_lower_shuffles(const ir_kernel *k, ir_kernel *out);

#endif
