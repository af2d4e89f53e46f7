/* src/ir/interpreter/interpret.h - the state of the interpreter, and its accesses to memory. */
#ifndef CLB_SRC_IR_INTERPRETER_INTERPRET_H
#define CLB_SRC_IR_INTERPRETER_INTERPRET_H

#include "src/ir/ir.h"
#include "src/ir/interpreter/interpret_values.h"
#include "src/ir/interpreter/races.h"

/* A COPY of one lane that has not completed, and after how many COPY_COMMITs of its sub-group it
   was issued. */
typedef struct {
  char *to;
  const char *from;
  size_t bytes;
  int64_t batch;
  ir_shadow *at; /* race records of the elements that it writes */
  int32_t width; /* number of these elements */
} ir_pending_copy;
typedef struct {
  ir_pending_copy *first;
  size_t n, capacity;
  int64_t batches; /* committed so far */
} ir_queue;

/* An instruction that is a loop over lanes and nothing more: the loop, and the byte offsets of its
   result and operands in a sub-group's values. f NULL: another instruction. checks: operands are
   checked before it. */
typedef struct {
  ir_lane_function *f;
  size_t to, a, b, c;
  bool checks;
} ir_lane_loop;

typedef struct {
  const ir_kernel *k;
  const ir_arg *arg;
  size_t *slot; /* for a value: its byte offset in a sub-group's values; for a LOCAL: in `local` */
  ir_lane_loop *loop; /* for an instruction */
  int32_t *jump;      /* for LOOP, IF, ELSE: its ELSE or END; for END: its LOOP, or itself */
  void **array;       /* for BUFFER, LOCAL: its memory */
  ir_memory *memory;
  int64_t *elements; /* of it */
  char *values;      /* sub-group by sub-group */
  size_t bytes;      /* of one sub-group's values */
  char *local;
  size_t local_bytes;
  int64_t *at;     /* element index of each active lane; -1 where masked */
  int32_t *pc;     /* the next instruction of each sub-group */
  bool *met;       /* whether it waits for the others of the group */
  ir_queue *queue; /* for each sub-group: copies in flight, in order */
  ir_races *races; /* records every access and reports races */
  int64_t group;
  char *error;
  size_t size;
} ir_machine;

bool ir_machine_wrong(const ir_machine *m, int32_t v, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The lanes of a value in the sub-group that starts at `base`. */
static inline void *ir_machine_lanes(const ir_machine *m, char *base, ir_val v) {
  return v == IR_NONE ? base : base + m->slot[v];
}

static inline bool ir_machine_wide(ir_type t) { return t == IR_I64 || t == IR_F64; }

/* LOAD, STORE, ATOMIC_ADD, COPY, and the completion of copies for COPY_WAIT. */
bool ir_machine_load(const ir_machine *m, char *base, int32_t v);
bool ir_machine_store(const ir_machine *m, char *base, int32_t v);
bool ir_machine_atomic_add(const ir_machine *m, char *base, int32_t v);
bool ir_machine_copy(const ir_machine *m, char *base, int32_t v);
void ir_machine_wait(const ir_machine *m, char *base, int64_t in_flight);
ir_queue *ir_machine_queue(const ir_machine *m, const char *base);

#endif
