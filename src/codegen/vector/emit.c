/* src/codegen/vector/emit.c - text that all files of the CPU printer share: operands as scalars or
   vectors, masks as counts of lanes. */
#include "src/codegen/vector/vector.h"

#include <inttypes.h>
#include <string.h>

void clb_vector_emit(vector_printer *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  clb_text_vadd(p->out, format, args);
  va_end(args);
}

/* ---- operands ---- */

/* Hexadecimal, digit by digit: printf's %a depends on the locale. */
static void real(vector_printer *p, ir_type type, double x) {
  const char *suffix = type == IR_F32 ? "f" : "";
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  uint64_t fraction = u & 0xfffffffffffffu;
  int exponent = (int)(u >> 52 & 0x7ff);
  const char *sign = u >> 63 ? "-" : "";
  if (exponent == 0x7ff)
    clb_vector_emit(p, fraction ? "(%s__builtin_nan%s(\"\"))" : "(%s__builtin_inf%s())", sign,
                    suffix);
  else if (!exponent && !fraction) clb_vector_emit(p, "(%s0x0p+0%s)", sign, suffix);
  else
    clb_vector_emit(p, "(%s0x%d.%013" PRIx64 "p%+d%s)", sign, exponent != 0, fraction,
                    exponent ? exponent - 1023 : -1022, suffix);
}

static void integer(vector_printer *p, ir_type type, int64_t x) {
  if (type == IR_I64) clb_vector_emit(p, "(i64)%" PRIu64 "u", (uint64_t)x);
  else clb_vector_emit(p, "(i32)%" PRIu32 "u", (uint32_t)(uint64_t)x);
}

void clb_vector_scalar(vector_printer *p, ir_val v) {
  const ir_ins *i = vector_ins(p, v);
  if (i->op == IR_REAL) real(p, (ir_type)i->type, i->real);
  else if (i->op == IR_INT) integer(p, (ir_type)i->type, i->imm);
  else clb_vector_emit(p, "v%d", (int)v);
}

void clb_vector_lanes(vector_printer *p, ir_val v) {
  const ir_ins *i = vector_ins(p, v);
  const char *t = vector_type_name((ir_type)i->type);
  if (i->shape == IR_VARYING) {
    clb_vector_emit(p, p->counted[v] ? "prefix(v%d)" : "v%d", (int)v);
    return;
  }
  clb_vector_emit(p,
                  i->shape == IR_AFFINE ? "affine_%s("
                  : i->type == IR_BOOL  ? "splat_%s(-"
                                        : "splat_%s(",
                  t);
  clb_vector_scalar(p, v);
  if (i->shape == IR_AFFINE) {
    clb_vector_emit(p, ", ");
    clb_vector_scalar(p, i->stride);
  }
  clb_vector_emit(p, ")");
}

void clb_vector_operand(vector_printer *p, ir_val v, bool wide) {
  (wide ? clb_vector_lanes : clb_vector_scalar)(p, v);
}

void clb_vector_operands(vector_printer *p, const ir_val *v, int n, bool wide) {
  for (int j = 0; j < n; j++) {
    clb_vector_emit(p, j ? ", " : "");
    clb_vector_operand(p, v[j], wide);
  }
}

/* ---- masks ---- */

bool clb_vector_countable(const vector_printer *p, ir_val v) {
  return v == IR_NONE || vector_uniform(p, v) || p->counted[v];
}

void clb_vector_count(vector_printer *p, ir_val mask) {
  if (mask == IR_NONE) {
    clb_vector_emit(p, "L");
  } else if (vector_uniform(p, mask)) {
    clb_vector_emit(p, "(");
    clb_vector_scalar(p, mask);
    clb_vector_emit(p, " ? L : 0)");
  } else {
    clb_vector_emit(p, "v%d", (int)mask);
  }
}

void clb_vector_lane_mask(vector_printer *p, ir_val mask) {
  if (mask == IR_NONE) clb_vector_emit(p, "splat_i32(-1)");
  else clb_vector_lanes(p, mask);
}
