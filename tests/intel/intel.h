/* tests/intel/intel.h - an emulator of the machine code of Intel's Data Center GPU Max (Xe-HPC)
   that our kernels use: what its files share. A thread is a sub-group of 16 lanes. */
#ifndef CLB_TESTS_INTEL_INTEL_H
#define CLB_TESTS_INTEL_INTEL_H

#include "tests/machine/machine.h"

enum {
  INTEL_LANES = 32,    /* at most, of an instruction */
  INTEL_SUBGROUP = 16, /* lanes of every kernel */
  INTEL_REGISTER = 64, /* bytes */
  INTEL_REGISTERS = 256,
  INTEL_ACC = INTEL_REGISTERS * INTEL_REGISTER,    /* where accumulators begin, in bytes */
  INTEL_ADDRESS = INTEL_ACC + 16 * INTEL_REGISTER, /* the register a0 */
  INTEL_BYTES = INTEL_ADDRESS + INTEL_REGISTER,
  INTEL_FLAGS = INTEL_BYTES, /* where flags lie in ranges of bytes */
  INTEL_EXTRA = 8,           /* registers of extra precision, mme0 and so on */
  INTEL_TOKENS = 32,
};

/* ---- operands ---- */

typedef enum { UB, B, UW, W, UD, D, UQ, Q, HF, F, DF, INTEL_TYPES } intel_type;
typedef enum { NOTHING, REGISTER, NUMBER, NIBBLES, INDIRECT, FLAG, CONTROL } intel_where;
enum { NO_EXTRA, PLAIN_EXTRA, EXTRA }; /* .nomme, and EXTRA + k for .mmek */

typedef struct {
  uint8_t where, type;
  uint8_t negative, absolute; /* negative means "not" in logic */
  uint8_t extra, acc;         /* acc: an accumulator, counted from 1 */
  uint8_t v, w, h;            /* the region, in elements: (k / w) * v + (k % w) * h */
  int16_t step;               /* bytes from lane to lane; -1: use the region */
  uint32_t at;                /* byte in the registers; bit of a flag; a0's element */
  int32_t offset;             /* INDIRECT: added to the address */
  int64_t number;             /* NUMBER: an integer extended to 64 bits, else the bits */
} intel_operand;

/* ---- instructions ---- */

typedef struct intel_thread intel_thread;
typedef struct intel_ins intel_ins;
typedef void intel_run(intel_thread *t, const intel_ins *i);

typedef enum { NEVER, EQ, NE, LT, LE, GT, GE, EARLY_OUT } intel_condition;

/* Functions for integers that fit 32 bits, for all integers, for f (and hf), for df; NULL: there is
   none. */
typedef struct {
  const char *name;
  int sources;
  bool logic;
  intel_run *words, *longs, *floats, *doubles;
} intel_op;

typedef enum { BY_LANE, BLOCK, PAYLOAD, SCRATCH, ATOMIC, FENCE, SIGNAL, END } intel_message_kind;
typedef struct {
  uint8_t kind, local, stores;
  uint8_t bytes, register_bytes; /* of an element, in memory and in registers */
  uint8_t components;
  uint8_t integer;           /* ATOMIC: adds integers */
  int16_t to, address, data; /* registers, or -1 */
  uint8_t to_registers, address_registers, data_registers;
  uint32_t offset; /* SCRATCH: bytes */
  intel_run *run;
} intel_message;
typedef struct {
  int address, data, to;
} intel_lengths; /* in registers */

/* What the braces say: pipes with distances, tokens. */
typedef enum { NO_PIPE, INTEGER_PIPE, FLOAT_PIPE, LONG_PIPE, MATH_PIPE, ALL_PIPES } intel_pipe;
typedef struct {
  uint8_t pipe, distance;           /* waits for the distance-th last instruction of the pipe */
  uint32_t wait_written, wait_read; /* bits of tokens */
  int8_t token;                     /* that this instruction takes, or -1 */
} intel_scoreboard;

struct intel_ins {
  intel_run *run;
  const char *text;
  char name[20];
  uint32_t pc;
  int32_t jip, uip; /* indices */
  uint8_t lanes;
  uint8_t all;                 /* (W): the execution mask does not count */
  uint8_t predicate, inverted; /* flag bit + 1, or 0 */
  uint8_t condition, flag;     /* flag bit + 1 of the condition, or 0 */
  uint8_t table;               /* bfn */
  uint8_t breaks_product;      /* writes acc0 or acc1 */
  uint8_t n;                   /* sources */
  intel_operand d, s[3];
  uint64_t writes[2]; /* bytes of the result's register, and of the next; not of sends */
  intel_message message;
  const char *wrong; /* why it cannot run; NULL: it is unknown */
  intel_scoreboard wait;
};

/* ---- a kernel ---- */

enum { ARGUMENT, ZEROS, GROUP_SIZE, RUBBISH };
typedef struct {
  uint8_t what;
  int index;
  uint32_t offset, size;
} intel_argument;
enum { INTEL_ARGUMENTS = 160 };

typedef struct {
  char name[128];
  uint32_t registers, local_bytes, scratch_bytes, group_size, lanes;
  bool local_ids;
  int n_arguments;
  intel_argument arguments[INTEL_ARGUMENTS];
  uint32_t payload_bytes; /* of the part that all threads share */
  int n_ins;
  intel_ins *ins;
  char *listing;
  unsigned char *constants; /* or NULL */
  size_t constant_bytes;
} intel_kernel;

/* NULL, with the reason, if the binary cannot be read. An unknown instruction fails when it is
   reached. */
intel_kernel *intel_load(const void *elf, size_t bytes, char *error, size_t size);
void intel_unload(intel_kernel *k);
/* The section of an ELF file whose name begins so; NULL: there is none. name becomes the rest. */
const char *intel_section(const void *elf, size_t bytes, const char *begin, char *name,
                          size_t name_size, size_t *section_bytes);
/* Reads .ze_info. */
bool intel_describe(intel_kernel *k, const char *text, size_t bytes, char *error, size_t size);
/* Takes the constants, and puts their address into the code. */
bool intel_relocate(intel_kernel *k, const void *elf, size_t bytes, unsigned char *code,
                    size_t code_bytes, char *error, size_t size);
void intel_drop_constants(intel_kernel *k);
/* k->listing (which it changes) into k->ins. */
bool intel_decode(intel_kernel *k, char *error, size_t size);
/* Whether every instruction waits for the registers that it uses: false, with the first that does
   not. */
bool intel_check_scoreboard(const intel_kernel *k, char *error, size_t size);

/* ---- the library of Intel's assembler ---- */

/* The listing of machine code; to be freed. NULL: no libiga64.so.1, or it refuses. */
char *intel_disassemble(const void *code, size_t bytes);
/* Machine code of a listing; to be freed. */
void *intel_assemble(const char *text, size_t *bytes, char *error, size_t size);

/* ---- decoding ---- */

/* Parses an operand; false: unknown. */
bool intel_operand_of(const intel_kernel *k, const char *text, int lanes, bool result,
                      intel_operand *o);
/* Chooses i->run by name and types; false: unknown. */
bool intel_choose(intel_ins *i);
/* Of send: what the comment says. */
bool intel_message_of(const intel_kernel *k, intel_ins *i, char *const *words, int n,
                      const char *comment, const char *options);
extern const uint8_t intel_type_bytes[INTEL_TYPES];

typedef struct {
  uint32_t from, to; /* bytes of the registers; flags from INTEL_FLAGS on */
  bool writes;
  bool bytes; /* its elements are single bytes */
} intel_range;
enum { INTEL_RANGES = 6 };
/* What an instruction reads and writes; how many ranges. Predicates and indirect operands are not
   among them. */
int intel_ranges(const intel_ins *i, intel_range *ranges);
intel_pipe intel_pipe_of(const intel_ins *i);
bool intel_is_send(const intel_ins *i);

/* ---- payloads of messages ---- */

/* Why the message's payload, by its descriptor, is not in place; or NULL. */
const char *intel_misplaced(const intel_ins *i, const intel_lengths *needed, uint32_t descriptor,
                            uint32_t registers);
/* Fills i->writes. */
void intel_set_writes(intel_ins *i);
/* Before an instruction runs that is no message. */
void intel_mark_result(intel_thread *t, const intel_ins *i);
/* Whether the kernel has written what the message reads; false after intel_fail. */
bool intel_in_place(intel_thread *t, const intel_ins *i);
void intel_mark_loaded(intel_thread *t, const intel_ins *i);
void intel_mark_scratch(intel_thread *t, const intel_ins *i);
/* Bytes of a thread's scratch, and behind it what a message that begins within reads: rubbish. */
static inline size_t intel_scratch_room(const intel_kernel *k) {
  return (size_t)k->scratch_bytes + 8 * INTEL_REGISTER;
}
/* Where component c of a lane lies in the registers. */
uint32_t intel_element_at(const intel_ins *i, int c, int lane);

/* ---- a launch ---- */

typedef struct intel_launch intel_launch;
typedef struct intel_local intel_local; /* a group's local memory */

typedef struct {
  uint32_t index;
  int n, arrived;
  uint32_t turn; /* barriers passed */
  intel_thread **thread;
  intel_local *local;
} intel_group;

struct intel_launch {
  const intel_kernel *kernel;
  uint32_t groups;
  int threads; /* of a group */
  unsigned char *payload;
  size_t payload_bytes;
  uint64_t *random;
  bool barriers, races;
  char *error;
  size_t size;
};

struct intel_thread {
  unsigned char
      g[INTEL_BYTES + 2 * INTEL_REGISTER]; /* r, acc, a0; what lies behind is never used */
  uint32_t flags[4], flags_known[4];
  uint32_t mask;                 /* channels that are on */
  int32_t waits_at[INTEL_LANES]; /* the join at which a channel waits, or -1 */
  uint64_t product[INTEL_LANES]; /* of a mul into acc0, whole */
  uint32_t product_lanes;
  __extension__ __float128 extra[INTEL_EXTRA][INTEL_LANES];
  uint32_t extra_known[INTEL_EXTRA];
  uint32_t control; /* cr0.0 */
  bool to_zero;     /* its rounding mode */
  int pc, state, index;
  bool signalled;
  uint32_t turn, passed;                 /* the barrier that it waits for; how many it has passed */
  bool stored;                           /* to local memory, with no fence since */
  uint64_t written[INTEL_REGISTERS + 1]; /* by bytes of the registers */
  unsigned char *scratch, *scratch_written; /* a bit for each byte */
  uint32_t scratch_at, payload_at;
  intel_group *group;
  const intel_launch *launch;
  const machine_block *block; /* of the last access */
};

/* Runs all groups; false with the reason. values[k] are argument k's bytes. */
bool intel_run_kernel(const intel_kernel *k, uint32_t groups, uint32_t group_size,
                      const void *const *values, char *error, size_t size);
uint64_t intel_instructions_run(void);
/* Ends the launch with an error. */
void intel_fail(intel_thread *t, const intel_ins *i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- local memory: bytes, and who used them since the last barrier ---- */

intel_local *intel_local_new(uint32_t bytes);
void intel_local_free(intel_local *l);
/* Rubbish that nobody has used; the group before passed that many barriers. */
void intel_local_start(intel_local *l, uint32_t barriers);
/* Where the bytes are, or NULL after intel_fail. */
unsigned char *intel_local_access(intel_thread *t, const intel_ins *i, uint32_t at, uint32_t bytes,
                                  bool writes);

#endif
