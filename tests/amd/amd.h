/* tests/amd/amd.h - an emulator of the AMD instructions that our kernels use: what its files share.
 */
#ifndef CLB_TESTS_AMD_AMD_H
#define CLB_TESTS_AMD_AMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/machine/machine.h"

enum {
  AMD_ROW = 64
}; /* words in the row that a vector register is, also where a wave has 32 lanes */
enum { AMD_SGPRS = 128, AMD_VGPRS = 256 };
enum { AMD_VCC = 106, AMD_M0 = 124, AMD_NULL = 125, AMD_EXEC = 126 };

/* ---- a code object ---- */

typedef struct amd_ins amd_ins;
typedef struct amd_wave amd_wave;

typedef struct {
  uint32_t offset, size;
} amd_argument;

typedef struct {
  char name[128];
  uint32_t lds, scratch, kernarg, rsrc1, rsrc2, rsrc3, properties;
  uint64_t entry;           /* in the image */
  int first;                /* instruction */
  int n_arguments, threads; /* maximum of a group */
  amd_argument arguments[128];
} amd_kernel;

typedef struct {
  char target[16];
  bool wide;  /* waves of 64 */
  int number; /* of the code object, in dumps */
  unsigned char *image;
  size_t bytes;
  int n_kernels;
  amd_kernel *kernels;
  int n_ins;
  amd_ins *ins;
  uint32_t (*words)[2];          /* constants */
  uint32_t (*rows)[2 * AMD_ROW]; /* the same, one per lane */
  int n_constants;
  char *listing;
} amd_module;

/* NULL, with the reason, if the code object cannot be loaded or holds an unknown instruction. */
amd_module *amd_load(const void *binary, char *error, size_t size);
void amd_unload(amd_module *m);
/* The code object's sections into m. */
bool amd_read_elf(amd_module *m, const unsigned char *binary, char *error, size_t size);
/* Its arguments, as the note says. */
bool amd_read_note(amd_module *m, const unsigned char *note, size_t bytes, char *error,
                   size_t size);
/* LLVM's listing into m->ins. */
bool amd_decode(amd_module *m, const void *binary, size_t bytes, char *error, size_t size);

/* ---- instructions ---- */

typedef enum { AMD_NONE, AMD_SCALAR, AMD_CONSTANT, AMD_VECTOR, AMD_OFF } amd_where;

typedef struct {
  uint8_t where, words, neg, abs;
  uint8_t select; /* SDWA: amd_select */
  uint8_t sext;
  uint8_t low, high; /* op_sel, op_sel_hi */
  uint16_t index;    /* of the register or the constant; AGPRs follow VGPRs */
} amd_operand;

typedef enum {
  AMD_DWORD,
  AMD_WORD_0,
  AMD_WORD_1,
  AMD_BYTE_0,
  AMD_BYTE_1,
  AMD_BYTE_2,
  AMD_BYTE_3
} amd_select;

/* Parses an operand or a modifier; false: unknown. */
bool amd_operand_of(amd_module *m, char *text, char type, bool result, amd_operand *o);
bool amd_modifier(amd_ins *i, const char *text);

typedef void amd_run(amd_wave *w, const amd_ins *i);
/* Lanes [0, n): d = f(a, b, c) where m is all ones. The high words of a 64-bit value lie AMD_ROW
   after its low words. */
typedef void amd_lanes(uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
                       const uint32_t *m, int n);

/* Types of operands, one letter each, the result first:
   u word   f f32   q, i 64 bits (a literal is extended by zeros, by its sign)   d f64   h f16   w
   16 bits   p two f32   x f32 or f16 m mask of lanes   M a mask as the second result   k immediate
   R registers, however many   o address: registers, a number or "off" = the result's old value, not
   written out   - no result   ? before a result that may be missing. A mask that is missing at the
   end is vcc. */
typedef struct {
  const char *name, *types;
  amd_run *run;
  amd_lanes *lanes;
  int bytes; /* of a memory access, or what run wants */
} amd_op;

struct amd_ins {
  amd_run *run;
  amd_lanes *lanes;
  const amd_op *op;
  amd_ins *pair; /* the second half of a v_dual_ line */
  const char *text;
  uint64_t address;
  int32_t next, target; /* indices */
  int32_t offset, offset1, immediate;
  amd_operand d, carry, s[4]; /* carry: a mask that is a second result */
  uint8_t n, omod, clamp, sdwa, keep, select, returns, offen, plain, exec;
  uint8_t mask;    /* which source is a mask, counted from 1 */
  uint8_t crossed; /* of a pair: 1 if the second reads what the first writes, 2 if also the other
                      way round */
  char result, source[5];
  amd_run *solo; /* of a pair's first half */
};

/* ---- a launch ---- */

typedef struct {
  const amd_module *module;
  const amd_kernel *kernel;
  unsigned char *lds;
  uint32_t lds_bytes;
  uint64_t arguments;
  uint32_t groups, threads;
  uint64_t *random;
  bool barriers;
  char *error;
  size_t size;
} amd_launch;

struct amd_wave {
  uint32_t s[AMD_SGPRS];
  uint32_t v[2 * AMD_VGPRS][AMD_ROW]; /* v, then a */
  uint32_t mask[AMD_ROW];             /* exec, spread over the lanes */
  uint32_t temporary[8][2 * AMD_ROW];
  uint64_t exec;
  uint32_t scc;
  int lanes, pc, state, index;
  const uint32_t (*words)[2];
  const uint32_t (*rows)[2 * AMD_ROW];
  uint32_t group;
  unsigned char *scratch; /* lane by lane */
  uint64_t buffer;        /* gfx90a: its address, as in the descriptor */
  const amd_launch *launch;
  const machine_block *block; /* of the last access */
};

/* For compare.py: waves run in order, each until it waits, and reciprocals and roots are exact. */
extern bool amd_plain_run;
/* Runs all groups; false with the reason. */
bool amd_run_kernel(const amd_module *m, const amd_kernel *k, uint32_t groups, uint32_t threads,
                    uint32_t local, void **params, char *error, size_t size);
/* Ends the launch with an error. */
void amd_fail(amd_wave *w, const amd_ins *i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Where the memory is, or NULL after amd_fail. */
unsigned char *amd_access(amd_wave *w, const amd_ins *i, uint64_t address, uint32_t bytes,
                          bool writes);
void amd_set_exec(amd_wave *w);
uint64_t amd_instructions_run(void);

/* Tables that end with a NULL name. */
extern const amd_op amd_scalar_ops[], amd_vector_ops[], amd_vector_ops_16[], amd_vector_ops_64[],
    amd_compare_ops[], amd_lane_ops[], amd_memory_ops[], amd_lds_ops[];

#endif
