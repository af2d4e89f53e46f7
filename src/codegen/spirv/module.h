/* src/codegen/spirv/module.h - a SPIR-V 1.2 module being written: its sections, types and
   constants.  Names are the specification's. */
#ifndef CLB_SRC_CODEGEN_SPIRV_MODULE_H
#define CLB_SRC_CODEGEN_SPIRV_MODULE_H

#include "src/ir/ir.h"
#include "src/base/text.h"

enum {
  OpExtension = 10,
  OpExtInstImport = 11,
  OpExtInst = 12,
  OpMemoryModel = 14,
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpCapability = 17,
  OpTypeVoid = 19,
  OpTypeBool = 20,
  OpTypeInt = 21,
  OpTypeFloat = 22,
  OpTypeVector = 23,
  OpTypeArray = 28,
  OpTypePointer = 32,
  OpTypeFunction = 33,
  OpConstantTrue = 41,
  OpConstantFalse = 42,
  OpConstant = 43,
  OpFunction = 54,
  OpFunctionParameter = 55,
  OpFunctionEnd = 56,
  OpVariable = 59,
  OpLoad = 61,
  OpStore = 62,
  OpInBoundsAccessChain = 66,
  OpInBoundsPtrAccessChain = 70,
  OpDecorate = 71,
  OpCompositeExtract = 81,
  OpConvertFToS = 110,
  OpConvertSToF = 111,
  OpUConvert = 113,
  OpSConvert = 114,
  OpFConvert = 115,
  OpBitcast = 124,
  OpFNegate = 127,
  OpIAdd = 128,
  OpFAdd = 129,
  OpISub = 130,
  OpFSub = 131,
  OpIMul = 132,
  OpFMul = 133,
  OpUDiv = 134,
  OpFDiv = 136,
  OpUMod = 137,
  OpLogicalNotEqual = 165,
  OpLogicalOr = 166,
  OpLogicalAnd = 167,
  OpSelect = 169,
  OpIEqual = 170,
  OpSLessThan = 177,
  OpSLessThanEqual = 179,
  OpFOrdEqual = 180,
  OpFUnordNotEqual = 183,
  OpFOrdLessThan = 184,
  OpFOrdLessThanEqual = 188,
  OpShiftRightLogical = 194,
  OpShiftLeftLogical = 196,
  OpBitwiseOr = 197,
  OpBitwiseXor = 198,
  OpBitwiseAnd = 199,
  OpControlBarrier = 224,
  OpAtomicLoad = 227,
  OpAtomicCompareExchange = 230,
  OpPhi = 245,
  OpLoopMerge = 246,
  OpSelectionMerge = 247,
  OpLabel = 248,
  OpBranch = 249,
  OpBranchConditional = 250,
  OpReturn = 253,
  OpSubgroupShuffleINTEL = 5571,
  OpSubgroupShuffleXorINTEL = 5574,
  OpSubgroupBlockReadINTEL = 5575,
  OpAtomicFAddEXT = 6035
};
enum { /* the instructions of OpenCL.std */
       ClCos = 14,
       ClExp = 19,
       ClFabs = 23,
       ClFma = 26,
       ClFmax = 27,
       ClFmin = 28,
       ClSin = 57,
       ClSqrt = 61,
       ClSMax = 156,
       ClSMin = 158,
       ClVloadHalf = 173,
       ClVstoreHalfR = 176,
       ClUMulHi = 203
};
enum {
  InputClass = 1,
  WorkgroupClass = 4,
  CrossWorkgroupClass = 5,
  FunctionClass = 7,
  StorageClasses = 8
};
enum { DeviceScope = 1, WorkgroupScope = 2, SubgroupScope = 3 };
enum { Relaxed = 0, AcquireReleaseWorkgroupMemory = 0x8 | 0x100 };
enum { DecorationBuiltIn = 11, DecorationConstant = 22 };
enum { Aligned = 2, RoundToNearestEven = 0 };

/* The numbers of SPIR-V's types that are not the IR's. */
typedef enum { SPIRV_U16 = IR_BF16 + 1, SPIRV_TYPES } spirv_type;

typedef enum {
  SPIRV_WORKGROUP_ID,
  SPIRV_LOCAL_INVOCATION_ID,
  SPIRV_SUBGROUP_ID,
  SPIRV_SUBGROUP_LOCAL_INVOCATION_ID,
  SPIRV_BUILTINS
} spirv_builtin;

typedef enum { /* what a consumer must be able to do, asked for only when used */
               SPIRV_FLOAT16_BUFFER,
               SPIRV_FLOAT64,
               SPIRV_INT64,
               SPIRV_INT16,
               SPIRV_INT64_ATOMICS,
               SPIRV_SUBGROUP_DISPATCH,
               SPIRV_SUBGROUP_SHUFFLE,
               SPIRV_SUBGROUP_BLOCKS,
               SPIRV_ATOMIC_F32,
               SPIRV_ATOMIC_F64,
               SPIRV_CAPABILITIES
} spirv_capability;

enum { SPIRV_MAX_PARAMETERS = 128 }; /* 8 bytes each: what every OpenCL device takes */

typedef struct {
  uint32_t bound;               /* the next free id */
  uint32_t cl, function, entry; /* ids of OpenCL.std, of the kernel and of its first block */
  bool needs[SPIRV_CAPABILITIES];
  /* ids, 0 until first used; types are indexed by ir_type or spirv_type */
  uint32_t type[SPIRV_TYPES], pointer[StorageClasses][SPIRV_TYPES], zero[SPIRV_TYPES],
      small[IR_MAX_WIDTH], builtin[SPIRV_BUILTINS];
  uint32_t vector; /* three 64-bit integers */
  int n_parameters;
  uint32_t parameter[SPIRV_MAX_PARAMETERS], parameter_type[SPIRV_MAX_PARAMETERS];
  clb_text decorations, globals, variables, body;
} spirv_module;

/* Adds one instruction of n operand words to a section. */
void clb_spirv_op(clb_text *section, int opcode, int n, const uint32_t *operands);
#define SPIRV_OP(section, opcode, ...)                                                             \
  clb_spirv_op(section, opcode, (int)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)),       \
               (const uint32_t[]){__VA_ARGS__})

static inline uint32_t spirv_id(spirv_module *m) { return m->bound++; }

/* f16 is only good behind a pointer. */
uint32_t clb_spirv_type_id(spirv_module *m, int type);
uint32_t clb_spirv_pointer_type(spirv_module *m, int storage_class, int type);
/* How an element lies in memory: f16 and bf16 as 16 bits. */
static inline int spirv_memory_type(int element) {
  return element == IR_F16 || element == IR_BF16 ? (int)SPIRV_U16 : element;
}

uint32_t clb_spirv_constant(spirv_module *m, int type, uint64_t bits);
uint32_t clb_spirv_zero(spirv_module *m, int type);   /* 0, 0.0 or false */
uint32_t clb_spirv_small(spirv_module *m, int value); /* i64, 0 <= value < IR_MAX_WIDTH */
uint32_t clb_spirv_builtin_variable(spirv_module *m, spirv_builtin which);
uint32_t clb_spirv_parameter(spirv_module *m, uint32_t type);
/* A variable of the work-group: an array. */
uint32_t clb_spirv_array(spirv_module *m, int type, uint32_t length);

void clb_spirv_begin(spirv_module *m);
/* Puts the sections together in the order SPIR-V wants.  sub_group_size 0: the consumer's choice.
 */
void clb_spirv_assemble(spirv_module *m, const char *name, uint32_t group_size,
                        uint32_t sub_group_size, clb_text *out);
void clb_spirv_free(spirv_module *m);

#endif
