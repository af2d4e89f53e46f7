/* src/codegen/vector/vector.h - shared by the files that print a kernel as C with vector
   extensions. In the generated text a lane-varying T is a Tv, a vector of L of them; a bool is an
   i32, 0 or 1 if uniform, 0 or -1 in each lane if not; f16 and bf16 are kept in memory as u16. SHUF
   takes constant indices into the lanes of a, then those of b. */
#ifndef CLB_SRC_CODEGEN_VECTOR_VECTOR_H
#define CLB_SRC_CODEGEN_VECTOR_VECTOR_H

#include "src/ir/ir.h"
#include "src/base/text.h"

enum { CLB_VECTOR_MAX_LANES = 64 };

/* The type of a value in registers. */
static inline const char *vector_type_name(ir_type type) {
  return type == IR_BOOL ? "i32" : ir_type_name(type);
}

/* How elements lie in memory: "f32", "u16", ... */
static inline const char *clb_vector_storage(ir_type element) {
  return element == IR_F16 || element == IR_BF16 ? "u16" : ir_type_name(element);
}

/* ---- store_blocks.c ---- */

/* A buffer that the kernel only writes, in stores whose indices are `root` plus a constant, which
   together fill `columns` columns from `first` on, all under one mask. Where rows are contiguous at
   run time, the rows of all lanes are one block of memory: large outputs are then assembled in a
   local array and copied, so that every cache line is written whole and never read. */
typedef struct {
  ir_val root, mask;
  int32_t first, columns;
  bool begun; /* while printing */
  bool read;  /* for any array: the kernel also loads from it, so that streaming stores are of no
                 use */
} clb_vector_block;
bool clb_vector_find_block(const ir_kernel *k, ir_val array, clb_vector_block *b);
/* The constant in such an index. */
int64_t clb_vector_column(const ir_kernel *k, ir_val index);

/* ---- prefetch.c ---- */

/* An array of which group g reads the row that starts at the sum of `term` plus g `stride`, all of
   them SCALARs. */
enum { CLB_VECTOR_AHEAD_TERMS = 4 };
typedef struct {
  ir_val stride, term[CLB_VECTOR_AHEAD_TERMS]; /* no stride: no such array */
  int n;
} clb_vector_ahead;
void clb_vector_find_ahead(const ir_kernel *k, clb_vector_ahead *ahead); /* ahead[k->n] */

/* ---- emit.c ---- */

/* pN = array + terms of an index (not its constants), declared where it is first needed: addresses
   that differ by a constant share it. */
enum { CLB_VECTOR_POINTER_TERMS = 6, CLB_VECTOR_POINTERS = 1024 };
typedef struct {
  ir_val array, term[CLB_VECTOR_POINTER_TERMS];
  int n, depth, number;
} clb_vector_pointer;

typedef struct {
  const ir_kernel *k;
  clb_text *out;
  bool *counted;           /* for a varying bool: it is represented by a count of lanes */
  clb_vector_block *block; /* for each BUFFER; no columns: none */
  clb_vector_ahead *ahead;
  clb_vector_pointer *pointer; /* those declared in open blocks */
  int n_pointers, pointers_declared, depth;
} vector_printer;

static inline const ir_ins *vector_ins(const vector_printer *p, ir_val v) { return &p->k->ins[v]; }
static inline ir_type vector_type(const vector_printer *p, ir_val v) {
  return (ir_type)p->k->ins[v].type;
}
static inline ir_type vector_element(const vector_printer *p, ir_val array) {
  return (ir_type)p->k->ins[array].element;
}
static inline bool vector_uniform(const vector_printer *p, ir_val v) {
  return p->k->ins[v].shape == IR_UNIFORM;
}

void clb_vector_emit(vector_printer *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void clb_vector_scalar(vector_printer *p, ir_val v); /* uniform, or lane 0 of an affine value */
void clb_vector_lanes(vector_printer *p, ir_val v);  /* as a vector */
void clb_vector_operand(vector_printer *p, ir_val v, bool wide); /* wide: as a vector */
void clb_vector_operands(vector_printer *p, const ir_val *v, int n, bool wide); /* "a, b, ..." */
bool clb_vector_countable(const vector_printer *p,
                          ir_val mask); /* it can be represented by a count of lanes */
void clb_vector_count(vector_printer *p, ir_val mask);
void clb_vector_lane_mask(vector_printer *p, ir_val mask);

/* ---- prefetch.c, of the printer ---- */

void clb_vector_begin_ahead(vector_printer *p, ir_val array); /* at the start of a group */
void clb_vector_fetch_ahead(vector_printer *p, const ir_ins *load);

/* ---- memory.c ---- */

void clb_vector_load(vector_printer *p, int32_t v, const ir_ins *i);
void clb_vector_store(vector_printer *p, const ir_ins *i);
void clb_vector_atomic_add(vector_printer *p, const ir_ins *i);
void clb_vector_copy(vector_printer *p, const ir_ins *i);
void clb_vector_prefetch(vector_printer *p, const ir_ins *i);
void clb_vector_close_pointers(vector_printer *p);          /* at the end of a LOOP, IF or ELSE */
void clb_vector_end_block(vector_printer *p, ir_val array); /* at the end of a group */

/* ---- prelude.c, transpose.c ---- */

/* Types, arithmetic, conversions. */
void clb_vector_prelude(const ir_kernel *k, clb_text *out);

/* get_E_W and put_E_W: W elements of type E per lane, lanes `stride` elements apart, of which the
   first `count` are active; for the element types and widths that k uses. */
void clb_vector_rows(const ir_kernel *k, clb_text *out);

#endif
