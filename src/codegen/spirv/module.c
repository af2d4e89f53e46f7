/* src/codegen/spirv/module.c - the sections, types and constants of a SPIR-V module, and how they
   are assembled. */
#include <string.h>

#include "src/codegen/spirv/module.h"

/* ---- words ---- */

static void put(clb_text *section, uint32_t word) {
  uint8_t bytes[4] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
                      (uint8_t)(word >> 24)};
  clb_text_bytes(section, bytes, sizeof bytes);
}

void clb_spirv_op(clb_text *section, int opcode, int n, const uint32_t *operands) {
  put(section, (uint32_t)(n + 1) << 16 | (uint32_t)opcode);
  for (int i = 0; i < n; i++) put(section, operands[i]);
}

/* An instruction with operands before and after a string. */
static void op_string(clb_text *section, int opcode, int n, const uint32_t *before,
                      const char *string, int n_after, const uint32_t *after) {
  size_t bytes = strlen(string), words = bytes / 4 + 1;
  put(section, (uint32_t)(1 + n + (int)words + n_after) << 16 | (uint32_t)opcode);
  for (int i = 0; i < n; i++) put(section, before[i]);
  clb_text_bytes(section, string, bytes);
  clb_text_bytes(section, "\0\0\0", 4 * words - bytes);
  for (int i = 0; i < n_after; i++) put(section, after[i]);
}

/* ---- types ---- */

uint32_t clb_spirv_type_id(spirv_module *m, int type) {
  static const struct {
    int opcode, n;
    uint32_t operands[2]; /* bits; signedness: none in OpenCL */
    int needs;            /* SPIRV_CAPABILITIES: none */
  } types[SPIRV_TYPES] = {
      [IR_VOID] = {OpTypeVoid, 0, {0}, SPIRV_CAPABILITIES},
      [IR_BOOL] = {OpTypeBool, 0, {0}, SPIRV_CAPABILITIES},
      [IR_I32] = {OpTypeInt, 2, {32, 0}, SPIRV_CAPABILITIES},
      [IR_I64] = {OpTypeInt, 2, {64, 0}, SPIRV_INT64},
      [IR_F32] = {OpTypeFloat, 1, {32}, SPIRV_CAPABILITIES},
      [IR_F64] = {OpTypeFloat, 1, {64}, SPIRV_FLOAT64},
      [IR_F16] = {OpTypeFloat, 1, {16}, SPIRV_FLOAT16_BUFFER},
      [SPIRV_U16] = {OpTypeInt, 2, {16, 0}, SPIRV_INT16},
  };
  if (m->type[type]) return m->type[type];
  uint32_t words[3] = {m->type[type] = spirv_id(m)};
  memcpy(words + 1, types[type].operands, sizeof types[type].operands);
  clb_spirv_op(&m->globals, types[type].opcode, 1 + types[type].n, words);
  if (types[type].needs != SPIRV_CAPABILITIES) m->needs[types[type].needs] = true;
  return m->type[type];
}

uint32_t clb_spirv_pointer_type(spirv_module *m, int storage_class, int type) {
  uint32_t *id = &m->pointer[storage_class][type];
  if (*id) return *id;
  uint32_t to = clb_spirv_type_id(m, type);
  *id = spirv_id(m);
  SPIRV_OP(&m->globals, OpTypePointer, *id, (uint32_t)storage_class, to);
  return *id;
}

static uint32_t vector_type(spirv_module *m) {
  if (m->vector) return m->vector;
  uint32_t of = clb_spirv_type_id(m, IR_I64);
  m->vector = spirv_id(m);
  SPIRV_OP(&m->globals, OpTypeVector, m->vector, of, 3);
  return m->vector;
}

/* ---- constants and variables ---- */

uint32_t clb_spirv_constant(spirv_module *m, int type, uint64_t bits) {
  uint32_t t = clb_spirv_type_id(m, type), r = spirv_id(m);
  if (type == IR_BOOL) SPIRV_OP(&m->globals, bits ? OpConstantTrue : OpConstantFalse, t, r);
  else if (type == IR_I64 || type == IR_F64)
    SPIRV_OP(&m->globals, OpConstant, t, r, (uint32_t)bits, (uint32_t)(bits >> 32));
  else SPIRV_OP(&m->globals, OpConstant, t, r, (uint32_t)bits);
  return r;
}

uint32_t clb_spirv_zero(spirv_module *m, int type) {
  if (!m->zero[type]) m->zero[type] = clb_spirv_constant(m, type, 0);
  return m->zero[type];
}

uint32_t clb_spirv_small(spirv_module *m, int value) {
  if (!m->small[value]) m->small[value] = clb_spirv_constant(m, IR_I64, (uint64_t)value);
  return m->small[value];
}

static bool is_vector(int builtin) {
  return builtin == SPIRV_WORKGROUP_ID || builtin == SPIRV_LOCAL_INVOCATION_ID;
}

uint32_t clb_spirv_builtin_variable(spirv_module *m, spirv_builtin which) {
  static const uint32_t number[SPIRV_BUILTINS] = {[SPIRV_WORKGROUP_ID] = 26,
                                                  [SPIRV_LOCAL_INVOCATION_ID] = 27,
                                                  [SPIRV_SUBGROUP_ID] = 40,
                                                  [SPIRV_SUBGROUP_LOCAL_INVOCATION_ID] = 41};
  if (m->builtin[which]) return m->builtin[which];
  uint32_t of = is_vector(which) ? vector_type(m) : clb_spirv_type_id(m, IR_I32),
           pointer = spirv_id(m), r = spirv_id(m);
  SPIRV_OP(&m->globals, OpTypePointer, pointer, InputClass, of);
  SPIRV_OP(&m->globals, OpVariable, pointer, r, InputClass);
  SPIRV_OP(&m->decorations, OpDecorate, r, DecorationBuiltIn, number[which]);
  SPIRV_OP(&m->decorations, OpDecorate, r, DecorationConstant);
  return m->builtin[which] = r;
}

uint32_t clb_spirv_parameter(spirv_module *m, uint32_t type) {
  m->parameter_type[m->n_parameters] = type;
  return m->parameter[m->n_parameters++] = spirv_id(m);
}

uint32_t clb_spirv_array(spirv_module *m, int type, uint32_t length) {
  uint32_t of = clb_spirv_type_id(m, type), n = clb_spirv_constant(m, IR_I32, length),
           array = spirv_id(m), pointer = spirv_id(m), r = spirv_id(m);
  SPIRV_OP(&m->globals, OpTypeArray, array, of, n);
  SPIRV_OP(&m->globals, OpTypePointer, pointer, WorkgroupClass, array);
  SPIRV_OP(&m->globals, OpVariable, pointer, r, WorkgroupClass);
  return r;
}

/* ---- the whole module ---- */

void clb_spirv_begin(spirv_module *m) {
  *m = (spirv_module){.bound = 1};
  m->cl = spirv_id(m);
  m->function = spirv_id(m);
  m->entry = spirv_id(m);
}

void clb_spirv_free(spirv_module *m) {
  clb_text *const section[] = {&m->decorations, &m->globals, &m->variables, &m->body};
  for (size_t i = 0; i < sizeof section / sizeof *section; i++) clb_text_free(section[i]);
}

static void capabilities(const spirv_module *m, clb_text *out) {
  static const struct {
    uint32_t number;
    const char *extension;
  } all[SPIRV_CAPABILITIES] = {[SPIRV_FLOAT16_BUFFER] = {8, NULL},
                               [SPIRV_FLOAT64] = {10, NULL},
                               [SPIRV_INT64] = {11, NULL},
                               [SPIRV_INT16] = {22, NULL},
                               [SPIRV_INT64_ATOMICS] = {12, NULL},
                               [SPIRV_SUBGROUP_DISPATCH] = {58, NULL},
                               [SPIRV_SUBGROUP_SHUFFLE] = {5568, "SPV_INTEL_subgroups"},
                               [SPIRV_SUBGROUP_BLOCKS] = {5569, "SPV_INTEL_subgroups"},
                               [SPIRV_ATOMIC_F32] = {6033, "SPV_EXT_shader_atomic_float_add"},
                               [SPIRV_ATOMIC_F64] = {6034, "SPV_EXT_shader_atomic_float_add"}};
  SPIRV_OP(out, OpCapability, 4); /* Addresses */
  SPIRV_OP(out, OpCapability, 6); /* Kernel */
  for (int c = 0; c < SPIRV_CAPABILITIES; c++)
    if (m->needs[c]) SPIRV_OP(out, OpCapability, all[c].number);
  const char *last = ""; /* rows of one extension stand together */
  for (int c = 0; c < SPIRV_CAPABILITIES; c++) {
    if (!m->needs[c] || !all[c].extension || !strcmp(last, all[c].extension)) continue;
    op_string(out, OpExtension, 0, NULL, last = all[c].extension, 0, NULL);
  }
}

static void head(const spirv_module *m, const char *name, uint32_t group_size,
                 uint32_t sub_group_size, clb_text *out) {
  capabilities(m, out);
  op_string(out, OpExtInstImport, 1, &m->cl, "OpenCL.std", 0, NULL);
  SPIRV_OP(out, OpMemoryModel, 2, 2); /* Physical64, OpenCL */
  uint32_t inputs[SPIRV_BUILTINS];
  int n = 0;
  for (int b = 0; b < SPIRV_BUILTINS; b++)
    if (m->builtin[b]) inputs[n++] = m->builtin[b];
  op_string(out, OpEntryPoint, 2, (const uint32_t[]){6 /* Kernel */, m->function}, name, n, inputs);
  SPIRV_OP(out, OpExecutionMode, m->function, 17 /* LocalSize */, group_size, 1, 1);
  SPIRV_OP(out, OpExecutionMode, m->function, 31 /* ContractionOff */);
  if (sub_group_size)
    SPIRV_OP(out, OpExecutionMode, m->function, 35 /* SubgroupSize */, sub_group_size);
}

void clb_spirv_assemble(spirv_module *m, const char *name, uint32_t group_size,
                        uint32_t sub_group_size, clb_text *out) {
  uint32_t nothing = clb_spirv_type_id(m, IR_VOID),
           signature[2 + SPIRV_MAX_PARAMETERS] = {spirv_id(m), nothing};
  memcpy(signature + 2, m->parameter_type, (size_t)m->n_parameters * sizeof *m->parameter_type);
  clb_spirv_op(&m->globals, OpTypeFunction, 2 + m->n_parameters, signature);
  uint32_t header[5] = {0x07230203, 0x00010200, 0, m->bound,
                        0}; /* magic, version 1.2, generator, bound, schema */
  for (int i = 0; i < 5; i++) put(out, header[i]);
  if (sub_group_size) m->needs[SPIRV_SUBGROUP_DISPATCH] = true;
  head(m, name, group_size, sub_group_size, out);
  clb_text_bytes(out, m->decorations.s, m->decorations.n);
  clb_text_bytes(out, m->globals.s, m->globals.n);
  SPIRV_OP(out, OpFunction, nothing, m->function, 0, signature[0]);
  for (int i = 0; i < m->n_parameters; i++)
    SPIRV_OP(out, OpFunctionParameter, m->parameter_type[i], m->parameter[i]);
  SPIRV_OP(out, OpLabel, m->entry);
  clb_text_bytes(out, m->variables.s, m->variables.n);
  clb_text_bytes(out, m->body.s, m->body.n);
  clb_spirv_op(out, OpReturn, 0, NULL);
  clb_spirv_op(out, OpFunctionEnd, 0, NULL);
  if (m->decorations.failed || m->globals.failed || m->variables.failed || m->body.failed)
    out->failed = true;
}
