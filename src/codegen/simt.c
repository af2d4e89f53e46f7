/* src/codegen/simt.c - a kernel as SIMT text: OpenCL C, CUDA and HIP. The body is the same text in
   all three; the differences are in simt_builtins.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/codegen/codegen.h"
#include "src/codegen/simt_builtins.h"

typedef struct {
  const ir_kernel *k;
  const clb_dialect *dialect;
  clb_text *out;
  int depth;
} printer;

static const struct {
  const char *element, *value, *suffix, *plain; /* plain: the unsigned type, whose arithmetic
                                                   wraps */
} types[] = {
    [IR_BOOL] = {"bool", "bool", "bool", ""},   [IR_I32] = {"int", "int", "i32", "u32"},
    [IR_I64] = {"i64", "i64", "i64", "u64"},    [IR_F32] = {"float", "float", "f32", ""},
    [IR_F64] = {"double", "double", "f64", ""}, [IR_F16] = {"u16", "float", "f16", ""},
    [IR_BF16] = {"u16", "float", "bf16", ""},
};

/* What an instruction computes.  $a $b $c: operands, $t: type of the value, $s: its suffix, $u: the
   unsigned type, $i: imm, $l: lanes. */
static const struct {
  const char *real, *integer;
} expressions[IR_OP_COUNT] = {
    [IR_GROUP] = {NULL, "group_index()"},
    [IR_ADD] = {"$a + $b", "($t)(($u)$a + ($u)$b)"},
    [IR_SUB] = {"$a - $b", "($t)(($u)$a - ($u)$b)"},
    [IR_MUL] = {"$a * $b", "($t)(($u)$a * ($u)$b)"},
    [IR_DIV] = {"$a / $b", "$a / $b"},
    [IR_MOD] = {NULL, "$a % $b"},
    [IR_XOR] = {NULL, "$a ^ $b"},
    [IR_MUL_HIGH] = {NULL, "($t)((u64)(u32)$a * (u32)$b >> 32)"},
    [IR_MIN] = {"fmin_$s($a, $b)", "$a < $b ? $a : $b"},
    [IR_MAX] = {"fmax_$s($a, $b)", "$a < $b ? $b : $a"},
    [IR_NEG] = {"-$a", NULL},
    [IR_ABS] = {"fabs_$s($a)", NULL},
    [IR_FMA] = {"fma_$s($a, $b, $c)", NULL},
    [IR_SQRT] = {"sqrt_$s($a)", NULL},
    [IR_EXP] = {"exp_$s($a)", NULL},
    [IR_SIN] = {"sin_$s($a)", NULL},
    [IR_COS] = {"cos_$s($a)", NULL},
    [IR_LT] = {NULL, "$a < $b"},
    [IR_LE] = {NULL, "$a <= $b"},
    [IR_EQ] = {NULL, "$a == $b"},
    [IR_AND] = {NULL, "$a && $b"},
    [IR_OR] = {NULL, "$a || $b"},
    [IR_NOT] = {NULL, "!$a"},
    [IR_SELECT] = {"$a ? $b : $c", "$a ? $b : $c"},
    [IR_CAST] = {"($t)$a", "($t)$a"},
    [IR_GET] = {"$a", "$a"},
    [IR_SHUFFLE] = {"shuffle_$s($a, $b, $l)", "shuffle_$s($a, $b, $l)"},
    [IR_SHUFFLE_XOR] = {"shuffle_xor_$s($a, $i, $l)", "shuffle_xor_$s($a, $i, $l)"},
};

#define ADD(...) clb_text_add(p->out, __VA_ARGS__)

static const char *element_name(const printer *p, ir_val array) {
  return types[p->k->ins[array].element].element;
}

/* Exact and independent of the locale: the bits of the number in hexadecimal. */
static void put_real(printer *p, double x, bool narrow) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (!isfinite(x) && narrow) {
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    ADD("bits_f32(0x%" PRIx32 "u)", u);
    return;
  }
  if (!isfinite(x)) {
    ADD("bits_f64(0x%" PRIx64 ")", bits);
    return;
  }
  int exponent = (int)(bits >> 52 & 0x7ff);
  uint64_t digits = bits & 0xfffffffffffff;
  bool zero = !exponent && !digits;
  char fraction[16];
  snprintf(fraction, sizeof fraction, "%013" PRIx64, digits);
  for (int n = 13; n > 1 && fraction[n - 1] == '0'; n--) fraction[n - 1] = 0;
  bool minus = bits >> 63;
  ADD("%s0x%d.%sp%+d%s%s", minus ? "(-" : "", exponent ? 1 : 0, fraction,
      zero       ? 0
      : exponent ? exponent - 1023
                 : -1022,
      narrow ? "f" : "", minus ? ")" : "");
}

static void put_int(printer *p, ir_type type, int64_t x) {
  const char *mark = type == IR_I64 ? "L" : "";
  int64_t lowest = type == IR_I64 ? INT64_MIN : INT32_MIN;
  if (type == IR_BOOL) ADD("%s", x ? "true" : "false");
  else if (x == lowest) ADD("(%" PRId64 "%s - 1)", x + 1, mark);
  else if (x < 0) ADD("(%" PRId64 "%s)", x, mark);
  else ADD("%" PRId64 "%s", x, mark);
}

static void put(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  if (i->op == IR_INT) put_int(p, i->type, i->imm);
  else if (i->op == IR_REAL) put_real(p, i->real, i->type == IR_F32);
  else if (i->op == IR_ELEMENT) ADD("v%d_%d", (int)i->arg[0], (int)i->imm);
  else ADD("v%d", (int)v);
}

static void put_expression(printer *p, const ir_ins *i, const char *s) {
  for (; *s; s++) {
    if (*s != '$') {
      clb_text_bytes(p->out, s, 1);
      continue;
    }
    switch (*++s) {
      case 't': ADD("%s", types[i->type].value); break;
      case 's': ADD("%s", types[i->type].suffix); break;
      case 'u': ADD("%s", types[i->type].plain); break;
      case 'i': ADD("%" PRId64, i->imm); break;
      case 'l': ADD("%d", p->k->lanes); break;
      default: put(p, i->arg[*s - 'a']);
    }
  }
}

static void line(printer *p) { ADD("%*s", 2 * p->depth, ""); }

/* Text around a number to convert it from and to its element type: f16 and bf16 go through f32. */
typedef struct {
  const char *open, *shut;
} conversion;
static conversion loaded(const printer *p, ir_val array) {
  ir_type t = p->k->ins[array].element;
  if (t == IR_F16 && p->dialect->quirk_half_load) return (conversion){"f16_bits_to_f32(", ")"};
  return t == IR_F16    ? (conversion){"f16_to_f32(", ")"}
         : t == IR_BF16 ? (conversion){"bf16_to_f32(", ")"}
                        : (conversion){"", ""};
}
static conversion stored(const printer *p, ir_val array) {
  ir_type t = p->k->ins[array].element;
  return t == IR_F16    ? (conversion){"f32_to_f16(", ")"}
         : t == IR_BF16 ? (conversion){"f32_to_bf16(", ")"}
                        : (conversion){"", ""};
}

static void mask_if(printer *p, ir_val mask) {
  if (mask == IR_NONE) return;
  ADD("if (");
  put(p, mask);
  ADD(") ");
}

/* The address at which a wide access begins. */
static void put_pointer(printer *p, ir_val v, const char *name, ir_val array, ir_val index) {
  const ir_ins *a = &p->k->ins[array];
  line(p);
  ADD("%s %s%s *%s%d = v%d + ", a->op == IR_LOCAL ? "LOCAL" : "GLOBAL",
      a->op == IR_BUFFER && !a->imm ? "const " : "", element_name(p, array), name, (int)v,
      (int)array);
  put(p, index);
  ADD(";\n");
}

/* Whether NVIDIA's compiler takes the text, with vectors and PTX. */
static bool nvidia(const printer *p) {
  return p->dialect->language == CLB_LANGUAGE_CUDA || p->dialect->ptx;
}

/* OpenCL's name of an array's memory. */
static const char *space(const printer *p, ir_val array) {
  if (p->dialect->language != CLB_LANGUAGE_OPENCL) return "";
  return p->k->ins[array].op == IR_LOCAL ? "LOCAL " : "GLOBAL ";
}

/* CUDA's vector types of 8 or 16 bytes, by what is in memory; two halves are one int. */
static const char *const vectors[IR_BF16 + 1] = {
    [IR_I32] = "int",    [IR_I64] = "longlong", [IR_F32] = "float",
    [IR_F64] = "double", [IR_F16] = "int",      [IR_BF16] = "int"};
static bool are_halves(ir_type element) { return ir_type_bytes(element) == 2; }

static void put_elements(printer *p, ir_val v, const ir_ins *i) {
  const bool halves = are_halves((ir_type)p->k->ins[i->arg[0]].element);
  const conversion how = loaded(p, i->arg[0]);
  for (int e = 0; e < i->width; e++) {
    ADD("%sv%d_%d = ", e ? ", " : "", (int)v, e);
    if (halves)
      ADD("%s(u16)((u32)q%d.%c%s)%s", how.open, (int)v, "xyzw"[e / 2], e % 2 ? " >> 16" : "",
          how.shut);
    else ADD("q%d.%c", (int)v, "xyzw"[e]);
  }
}

/* One access for all elements. */
static void put_load_aligned(printer *p, ir_val v, const ir_ins *i) {
  const ir_type element = (ir_type)p->k->ins[i->arg[0]].element;
  const char *type = types[i->type].value, *vector = vectors[element];
  const int parts = are_halves(element) ? i->width / 2 : i->width;
  bool masked = i->arg[2] != IR_NONE;
  line(p);
  if (masked) {
    ADD("%s ", type);
    for (int e = 0; e < i->width; e++) ADD("%sv%d_%d = 0", e ? ", " : "", (int)v, e);
    ADD(";\n");
    line(p);
    mask_if(p, i->arg[2]);
    ADD("{ ");
  }
  ADD("const %s%d q%d = *(const %s%s%d *)(v%d + ", vector, parts, (int)v, space(p, i->arg[0]),
      vector, parts, (int)i->arg[0]);
  put(p, i->arg[1]);
  ADD("); ");
  if (!masked) ADD("const %s ", type);
  put_elements(p, v, i);
  ADD(masked ? "; }\n" : ";\n");
}

static void put_load(printer *p, ir_val v, const ir_ins *i) {
  ir_val array = i->arg[0], index = i->arg[1], mask = i->arg[2];
  const char *type = types[i->type].value;
  conversion how = loaded(p, array);
  if (i->width == 1) {
    line(p);
    ADD("const %s v%d = ", type, (int)v);
    if (mask != IR_NONE) {
      put(p, mask);
      ADD(" ? ");
    }
    ADD("%sv%d[", how.open, (int)array);
    put(p, index);
    ADD("]%s%s;\n", how.shut, mask != IR_NONE ? " : 0" : "");
    return;
  }
  if (i->imm && nvidia(p)) {
    put_load_aligned(p, v, i);
    return;
  }
  put_pointer(p, v, "p", array, index);
  line(p);
  ADD(mask == IR_NONE ? "const %s " : "%s ", type);
  for (int e = 0; e < i->width; e++) {
    ADD("%sv%d_%d = ", e ? ", " : "", (int)v, e);
    if (mask == IR_NONE) ADD("%sp%d[%d]%s", how.open, (int)v, e, how.shut);
    else ADD("0");
  }
  ADD(";\n");
  if (mask == IR_NONE) return;
  line(p);
  mask_if(p, mask);
  for (int e = 0; e < i->width; e++)
    ADD("%sv%d_%d = %sp%d[%d]%s", e ? ", " : "", (int)v, e, how.open, (int)v, e, how.shut);
  ADD(";\n");
}

/* As one access, of CUDA's vector types. */
static void put_store_aligned(printer *p, const ir_ins *i, bool streamed) {
  const ir_ins *a = &p->k->ins[i->arg[0]];
  const char *vector = vectors[a->element];
  const int each = are_halves((ir_type)a->element) ? 2 : 1; /* elements of a part */
  const conversion how = stored(p, i->arg[0]);
  line(p);
  mask_if(p, i->arg[2]);
  ADD("%s(%s%s%d *)(v%d + ", streamed ? "__stcs(" : "*", space(p, i->arg[0]), vector,
      i->width / each, (int)i->arg[0]);
  put(p, i->arg[1]);
  ADD("%smake_%s%d(", streamed ? "), " : ") = ", vector, i->width / each);
  for (int e = 0; e < i->width; e++) {
    const bool second = e % each; /* of two halves, the upper one */
    ADD("%s", second ? " | (u32)" : e ? ", " : "");
    if (each == 2 && !second) ADD("(int)((u32)");
    ADD("%s", how.open);
    put(p, p->k->pool[i->imm + e]);
    ADD("%s%s", how.shut, second ? " << 16)" : "");
  }
  ADD(")%s;\n", streamed ? ")" : "");
}

static void put_store(printer *p, ir_val v, const ir_ins *i) {
  ir_val array = i->arg[0], mask = i->arg[2];
  conversion how = stored(p, array);
  const ir_ins *a = &p->k->ins[array];
  bool streamed = p->dialect->language == CLB_LANGUAGE_CUDA && a->op == IR_BUFFER && a->imm == 2 &&
                  ir_is_float((ir_type)a->element);
  if (i->element && nvidia(p)) {
    put_store_aligned(p, i, streamed);
    return;
  }
  if (i->width > 1) put_pointer(p, v, "p", array, i->arg[1]);
  line(p);
  mask_if(p, mask);
  for (int e = 0; e < i->width; e++) {
    if (i->width > 1) ADD("%s%sp%d[%d]", e ? ", " : "", streamed ? "__stcs(&" : "", (int)v, e);
    else {
      ADD("%sv%d[", streamed ? "__stcs(&" : "", (int)array);
      put(p, i->arg[1]);
      ADD("]");
    }
    ADD("%s%s", streamed ? ", " : " = ", how.open);
    put(p, p->k->pool[i->imm + e]);
    ADD("%s%s", how.shut, streamed ? ")" : "");
  }
  ADD(";\n");
}

/* index = *near + the constant that is returned. */
static int64_t split_constant(const ir_kernel *k, ir_val index, ir_val *near) {
  const ir_ins *i = &k->ins[index];
  *near = index;
  if (i->op != IR_ADD || k->ins[i->arg[1]].op != IR_INT) return 0;
  *near = i->arg[0];
  return k->ins[i->arg[1]].imm;
}

/* Asynchronous, with constants where the instruction takes them. */
static void put_copy_aligned(printer *p, ir_val v, const ir_ins *i) {
  const int bytes = ir_type_bytes(p->k->ins[i->arg[0]].element);
  ir_val at, from;
  const int64_t offset_to = split_constant(p->k, i->arg[1], &at),
                offset_from = split_constant(p->k, i->arg[3], &from);
  put_pointer(p, v, "to", i->arg[0], at);
  put_pointer(p, v, "from", i->arg[2], from);
  line(p);
  mask_if(p, i->arg[4]);
  ADD("copy_aligned_%d(to%d, %d, from%d, %d);\n", bytes * i->width, (int)v,
      (int)(bytes * offset_to), (int)v, (int)(bytes * offset_from));
}

static void put_copy(printer *p, ir_val v, const ir_ins *i) {
  if (i->imm && nvidia(p)) {
    put_copy_aligned(p, v, i);
    return;
  }
  put_pointer(p, v, "to", i->arg[0], i->arg[1]);
  put_pointer(p, v, "from", i->arg[2], i->arg[3]);
  line(p);
  mask_if(p, i->arg[4]);
  ADD("{");
  for (int e = 0; e < i->width; e++)
    ADD(" copy_%d(to%d + %d, from%d + %d);", ir_type_bytes(p->k->ins[i->arg[0]].element), (int)v, e,
        (int)v, e);
  ADD(" }\n");
}

/* Each element of its own, or as one access where the device has such additions. */
static void put_atomic(printer *p, ir_val v, const ir_ins *i) {
  const ir_type type = p->k->ins[i->arg[0]].element;
  const bool one = type == IR_F32 && i->width > 1 && p->dialect->vector_atomics &&
                   p->k->ins[i->arg[0]].op == IR_BUFFER,
             native = p->dialect->language == CLB_LANGUAGE_OPENCL && p->dialect->float_atomics &&
                      type == IR_F32;
  put_pointer(p, v, "p", i->arg[0], i->arg[1]);
  line(p);
  mask_if(p, i->arg[2]);
  ADD("{");
  for (int e = 0; e < i->width; e++) {
    if (one) ADD(e ? ", " : " atomic_add_f32_%d(p%d, ", i->width, (int)v);
    else
      ADD(" %s_add_%s(%s, p%d + %d, ", native ? "native" : "atomic", types[type].suffix,
          p->k->ins[i->arg[0]].op == IR_LOCAL ? "LOCAL" : "GLOBAL", (int)v, e);
    put(p, p->k->pool[i->imm + e]);
    if (!one || e + 1 == i->width) ADD(");");
  }
  ADD(" }\n");
}

static void put_reduce(printer *p, ir_val v, const ir_ins *i) {
  line(p);
  ADD("%s v%d = ", types[i->type].value, (int)v);
  put(p, i->arg[0]);
  ADD(";\n");
  for (int d = p->k->lanes / 2; d; d /= 2) {
    line(p);
    ADD("v%d = v%d + shuffle_xor_%s(v%d, %d, %d);\n", (int)v, (int)v, types[i->type].suffix, (int)v,
        d, p->k->lanes);
  }
}

static void put_loop(printer *p, ir_val v, const ir_ins *i) {
  line(p);
  ADD("for (%s v%d = ", types[i->type].value, (int)v);
  put(p, i->arg[0]);
  ADD("; v%d < ", (int)v);
  put(p, i->arg[1]);
  ADD("; v%d += ", (int)v);
  put(p, i->arg[2]);
  ADD(") {\n");
  p->depth++;
}

/* A thread's position in its group: sub-groups are runs of `lanes` threads. */
static void put_place(printer *p, ir_val v, const ir_ins *i) {
  bool one = p->k->subgroups == 1;
  line(p);
  ADD("const int v%d = ", (int)v);
  if (i->op == IR_LANE)
    ADD(one ? "(int)(thread_index());\n" : "(int)(thread_index() %% %d);\n", p->k->lanes);
  else if (one) ADD("0;\n");
  else ADD("subgroup_index(%d);\n", p->k->lanes);
}

/* Operations that compilers turn into a negation: -a, a * -1, a / -1, -0 - a. Returns the negated
   value, or IR_NONE. */
static ir_val negated(const printer *p, const ir_ins *i) {
  const ir_ins *ins = p->k->ins;
  ir_val a = i->arg[0], b = i->arg[1];
  if (!ir_is_float(i->type)) return IR_NONE;
  if (i->op == IR_NEG) return a;
  if (i->op == IR_SUB && ins[a].op == IR_REAL && ins[a].real == 0 && signbit(ins[a].real)) return b;
  if (i->op != IR_MUL && i->op != IR_DIV) return IR_NONE;
  if (ins[b].op == IR_REAL && ins[b].real == -1) return a;
  return i->op == IR_MUL && ins[a].op == IR_REAL && ins[a].real == -1 ? b : IR_NONE;
}

/* A product of two numbers that were widened from 32 bits. */
static bool widened(const printer *p, const ir_ins *i) {
  const ir_ins *ins = p->k->ins;
  bool all = i->op == IR_MUL && i->type == IR_I64 && nvidia(p);
  for (int a = 0; a < 2 && all; a++)
    all = ins[i->arg[a]].op == IR_CAST && ins[ins[i->arg[a]].arg[0]].type == IR_I32;
  return all;
}

static void put_value(printer *p, ir_val v, const ir_ins *i) {
  if (i->op == IR_GET && i->imm && ir_is_float(i->type) &&
      nvidia(p)) { /* the compiler must assume that it changes */
    line(p);
    ADD("asm volatile(\"\" : \"+%s\"(v%d));\n", i->type == IR_F32 ? "f" : "d", (int)i->arg[0]);
  }
  const char *s = ir_is_float(i->type) ? expressions[i->op].real : expressions[i->op].integer;
  bool hide = p->dialect->quirk_mask_implication && i->type == IR_BOOL && i->shape != IR_UNIFORM;
  line(p);
  ADD(i->op == IR_VAR ? "%s v%d = " : "const %s v%d = ", types[i->type].value, (int)v);
  if (hide) ADD("hidden(");
  ir_val inner = p->dialect->quirk_negation ? negated(p, i) : IR_NONE;
  if (inner != IR_NONE) {
    ADD("negated(");
    put(p, inner);
    ADD(")");
  } else if (widened(p, i)) {
    ADD("mul_wide(");
    put(p, p->k->ins[i->arg[0]].arg[0]);
    ADD(", ");
    put(p, p->k->ins[i->arg[1]].arg[0]);
    ADD(")");
  } else put_expression(p, i, i->op == IR_VAR ? "$a" : s);
  ADD(hide ? ");\n" : ";\n");
}

/* Control statements are indented one step less. */
static void put_control(printer *p, const ir_ins *i) {
  p->depth -= i->op != IR_IF;
  line(p);
  if (i->op == IR_IF) {
    ADD("if (");
    put(p, i->arg[0]);
  }
  ADD(i->op == IR_IF ? ") {\n" : i->op == IR_ELSE ? "} else {\n" : "}\n");
  p->depth += i->op != IR_END;
}

/* Whether the IR's sub-group fits into one of the vendor's, so that the vendor's shuffles and
   sub-group barriers can be used. */
static bool narrow(const printer *p) {
  int lanes = p->k->lanes, max = p->dialect->language == CLB_LANGUAGE_CUDA ? 32 : 64;
  return p->dialect->language == CLB_LANGUAGE_OPENCL || (lanes <= max && !(lanes & (lanes - 1)));
}

static void put_instruction(printer *p, ir_val v, const ir_ins *i) {
  switch ((ir_op)i->op) {
    case IR_BUFFER:
    case IR_SCALAR:
    case IR_INT:
    case IR_REAL:
    case IR_ELEMENT:
    case IR_LOCAL:
    case IR_PREFETCH: return;
    case IR_SUBGROUP:
    case IR_LANE: put_place(p, v, i); return;
    case IR_LOAD: put_load(p, v, i); return;
    case IR_STORE: put_store(p, v, i); return;
    case IR_ATOMIC_ADD: put_atomic(p, v, i); return;
    case IR_COPY: put_copy(p, v, i); return;
    case IR_REDUCE_ADD: put_reduce(p, v, i); return;
    case IR_LOOP: put_loop(p, v, i); return;
    case IR_IF:
    case IR_ELSE:
    case IR_END: put_control(p, i); return;
    case IR_SET:
      line(p);
      put_expression(p, i, "$a = $b;\n");
      return;
    case IR_COPY_COMMIT:
    case IR_COPY_WAIT:
      line(p);
      put_expression(p, i, i->op == IR_COPY_WAIT ? "copy_wait($i);\n" : "copy_commit();\n");
      return;
    case IR_BARRIER:
      line(p);
      put_expression(p, i, i->imm || !narrow(p) ? "group_barrier();\n" : "subgroup_barrier($l);\n");
      return;
    default: put_value(p, v, i);
  }
}

static void put_parameters(printer *p) {
  const char *comma = "";
  for (ir_val v = 0; v < p->k->n; v++) {
    const ir_ins *i = &p->k->ins[v];
    if (i->op == IR_BUFFER)
      ADD("%sGLOBAL %s%s *%sv%d", comma, i->imm ? "" : "const ", element_name(p, v),
          i->imm ? "" : "restrict ", (int)v);
    else if (i->op == IR_SCALAR) ADD("%s%s v%d", comma, types[i->type].value, (int)v);
    else continue;
    comma = ", ";
  }
}

enum { CUDA_DECLARES = 48 << 10 }; /* bytes of __shared__ arrays that one kernel may declare */

/* Bytes of the LOCAL arrays before instruction `end`; each begins at a multiple of 16. */
static int64_t local_bytes(const ir_kernel *k, ir_val end) {
  int64_t sum = 0;
  for (ir_val v = 0; v < end; v++)
    if (k->ins[v].op == IR_LOCAL)
      sum += (k->ins[v].imm * ir_type_bytes((ir_type)k->ins[v].element) + 15) / 16 * 16;
  return sum;
}

int64_t clb_launch_local_bytes(const ir_kernel *k, const clb_dialect *dialect) {
  int64_t all = local_bytes(k, k->n);
  return dialect->language == CLB_LANGUAGE_CUDA && all > CUDA_DECLARES ? all : 0;
}

static void put_locals(printer *p) {
  bool launched = clb_launch_local_bytes(p->k, p->dialect) > 0;
  if (launched) ADD("  extern SHARED unsigned char shared[];\n");
  for (ir_val v = 0; v < p->k->n; v++) {
    if (p->k->ins[v].op != IR_LOCAL) continue;
    const char *element = element_name(p, v);
    if (launched)
      ADD("  %s *const v%d = (%s *)(shared + %" PRId64 ");\n", element, (int)v, element,
          local_bytes(p->k, v));
    else ADD("  SHARED %s v%d[%" PRId64 "];\n", element, (int)v, p->k->ins[v].imm);
  }
}

static void put_body(printer *p) {
  const ir_kernel *k = p->k;
  ADD("KERNEL(%d, %d, %d) %s(", k->lanes * k->subgroups, k->lanes,
      k->min_blocks_per_sm ? k->min_blocks_per_sm : 1, k->name);
  put_parameters(p);
  ADD(") {\n");
  p->depth = 1;
  put_locals(p);
  for (ir_val v = 0; v < k->n; v++) put_instruction(p, v, &k->ins[v]);
  ADD("}\n");
}

static bool sayable(const printer *p, char *error, size_t size) {
  for (ir_val v = 0; v < p->k->n; v++) {
    ir_op op = p->k->ins[v].op;
    if ((op != IR_SHUFFLE && op != IR_SHUFFLE_XOR && op != IR_REDUCE_ADD) || narrow(p)) continue;
    snprintf(error, size,
             "kernel %s: %s among %d lanes: a warp has 32, a wave at most 64, and sub-groups are "
             "powers of two",
             p->k->name, ir_op_name(op), p->k->lanes);
    return false;
  }
  return true;
}

bool clb_print_c(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                 size_t size) {
  clb_text body = {0};
  printer p = {.k = k, .dialect = dialect, .out = &body};
  bool ok = false;
  if (!sayable(&p, error, size)) goto done;
  put_body(&p);
  if (!body.failed) {
    const char *missing = clb_builtins(dialect, body.s, out);
    if (missing)
      snprintf(error, size, "kernel %s: this device has no %s: no sub-groups", k->name, missing);
    if (missing) goto done;
    clb_text_bytes(out, body.s, body.n);
  }
  ok = !body.failed && !out->failed;
  if (!ok) snprintf(error, size, "kernel %s: out of memory", k->name);
done:
  clb_text_free(&body);
  return ok;
}
