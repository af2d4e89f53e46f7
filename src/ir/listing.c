/* src/ir/listing.c - one instruction as readable text. */
#include "src/ir/listing.h"

#include <inttypes.h>
#include <math.h>

static void print_shape(const ir_ins *i, clb_text *out) {
  if (i->type == IR_VOID) return;
  clb_text_add(out, " %s", ir_type_name((ir_type)i->type));
  if (i->shape == IR_AFFINE) clb_text_add(out, " affine %%%d", (int)i->stride);
  else clb_text_add(out, i->shape == IR_UNIFORM ? " uniform" : " varying");
}

/* Prints the exact value as an odd integer times a power of two, independent of the locale: 3p-1 is
   1.5. */
static void print_real(double x, clb_text *out) {
  int exponent;
  int64_t m;
  if (!isfinite(x) || x == 0) {
    clb_text_add(out, " %s%s", signbit(x) ? "-" : "", x != x ? "nan" : x == 0 ? "0" : "inf");
    return;
  }
  for (m = (int64_t)(frexp(x, &exponent) * 0x1p53), exponent -= 53; m % 2 == 0; m /= 2) exponent++;
  clb_text_add(out, " %" PRId64, m);
  if (exponent) clb_text_add(out, "p%d", exponent);
}

void ir_list_instruction(const ir_kernel *k, ir_val v, clb_text *out) {
  const ir_ins *i = &k->ins[v];
  clb_text_add(out, "%s", ir_op_name((ir_op)i->op));
  print_shape(i, out);
  for (int a = 0, last = 4; a <= last; a++) {
    while (last > a && i->arg[last] == IR_NONE) last--;
    if (i->arg[a] != IR_NONE) clb_text_add(out, " %%%d", (int)i->arg[a]);
    else if (a < last) clb_text_add(out, " -");
  }
  switch (i->op) {
    case IR_BUFFER:
      clb_text_add(out, " %s%s", ir_type_name((ir_type)i->element),
                   i->imm == 2 ? " streamed"
                   : i->imm    ? " written"
                               : "");
      break;
    case IR_LOCAL:
      clb_text_add(out, " %s[%" PRId64 "]", ir_type_name((ir_type)i->element), i->imm);
      break;
    case IR_REAL: print_real(i->real, out); break;
    case IR_BARRIER:
      clb_text_add(out, i->imm == IR_RENDEZVOUS ? " pace" : i->imm ? " group" : " sub-group");
      break;
    case IR_LOAD:
    case IR_COPY: clb_text_add(out, "%s", i->imm ? " aligned" : ""); break;
    case IR_INT:
    case IR_ELEMENT:
    case IR_COPY_WAIT:
    case IR_SHUFFLE_XOR: clb_text_add(out, " %" PRId64, i->imm); break;
    default: break;
  }
  if (i->width > 1) clb_text_add(out, " x%d", (int)i->width);
  for (int32_t j = 0; ir_stores(i) && j < i->width; j++)
    clb_text_add(out, "%s%%%d", j ? ", " : " = ", (int)k->pool[i->imm + j]);
}
