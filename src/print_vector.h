/* print_vector.h - between the files that print a kernel as C with vector extensions.

   In that text a lane-varying T is a Tv, a vector of L of them; a bool is an i32, 0 or 1 if uniform, 0 or -1 in each lane if not;
   f16 and bf16 are kept in memory as u16.  SHUF takes constant indices into the lanes of a, then those of b. */
#ifndef CLB_PRINT_VECTOR_H
#define CLB_PRINT_VECTOR_H

#include "ir.h"
#include "text.h"

enum { CLB_VECTOR_MAX_LANES = 64 };

/* How elements lie in memory: "f32", "u16", ... */
static inline const char *clb_vector_storage(ir_type element) { return element == IR_F16 || element == IR_BF16 ? "u16" : ir_type_name(element); }

/* A buffer that the kernel only writes, in stores whose indices are `root` plus a constant and which together fill `columns` columns from
   `first` on, all under one mask.  Where rows turn out to be back to back the lanes' rows are one block of memory: large outputs are
   then made in a local array and copied, so that every memory line is written whole and never read. */
typedef struct {
  ir_val root, mask;
  int32_t first, columns;
  bool begun; /* while printing */
} clb_vector_block;
bool clb_vector_find_block(const ir_kernel *k, ir_val array, clb_vector_block *b);
/* The constant of such an index. */
int64_t clb_vector_column(const ir_kernel *k, ir_val index);

/* Types, arithmetic, conversions. */
void clb_vector_prelude(const ir_kernel *k, clb_text *out);

/* get_E_W and put_E_W: W elements of type E per lane, lanes `stride` elements apart, of which the first `count` act; for the element
   types and widths of k. */
void clb_vector_rows(const ir_kernel *k, clb_text *out);

#endif
