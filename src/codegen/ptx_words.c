/* src/codegen/ptx_words.c - what OpenCL C lacks on NVIDIA's GPUs, in PTX: sub-groups, asynchronous
   copies, atomic additions; and CUDA's names of vectors. */
#include "src/codegen/simt_builtins.h"

#include <string.h>

/* Of numbers of 32 bits, and of 64. */
#define SHUFFLE_BITS(name, mode)                                                                   \
  {name "_b32",                                                                                    \
   "DEVICE u32 " name "_b32(u32 x, u32 lane, u32 lanes, u32 mask) { u32 r; asm volatile(\"shfl."   \
   "sync." mode ".b32 %0, %1, %2, %3, %4;\" : \"=r\"(r) : \"r\"(x), \"r\"(lane), \"r\"((32u - "    \
   "lanes) << 8 | 31u), \"r\"(mask)); return r; }"},                                               \
  {                                                                                                \
    name "_b64",                                                                                   \
        "DEVICE u64 " name "_b64(u64 x, u32 lane, u32 lanes, u32 mask) { return (u64)" name        \
        "_b32((u32)(x >> 32), lane, lanes, mask) << 32 | " name                                    \
        "_b32((u32)x, lane, lanes, mask); }"                                                       \
  }
#define SHUFFLE(type, bits, from, to)                                                              \
  {"shuffle_" type, "#define shuffle_" type "(x, lane, lanes) " to "(shuffle_b" bits "(" from      \
                    "(x), (u32)(lane), lanes, subgroup_mask(lanes)))"},                            \
  {                                                                                                \
    "shuffle_xor_" type, "#define shuffle_xor_" type "(x, with, lanes) " to "(exchange_b" bits     \
                         "(" from "(x), (u32)(with), lanes, subgroup_mask(lanes)))"                \
  }
/* `space` is GLOBAL or LOCAL. */
#define ADD(type, constraint)                                                                      \
  {                                                                                                \
    "atomic_add_" type,                                                                            \
        "#define add_" type "_GLOBAL(at, x) asm volatile(\"red.global.add." type                   \
        " [%0], %1;\" :: \"l\"((u64)(at)), \"" constraint "\"(x) : \"memory\")\n#define add_" type \
        "_LOCAL(at, x) asm volatile(\"red.shared.add." type                                        \
        " [%0], %1;\" :: \"r\"((u32)(u64)(at)), \"" constraint                                     \
        "\"(x) : \"memory\")\n#define atomic_add_" type "(space, at, x) add_" type                 \
        "_##space(at, x)"                                                                          \
  }
#define COPY(name, arguments, to, from, cache, bytes)                                              \
  {                                                                                                \
    name,                                                                                          \
        "#define " name "(" arguments ") asm volatile(\"cp.async." cache ".shared.global [%0" to   \
        "], [%1" from "], " bytes ";\" :: \"r\"((u32)(u64)(to)), \"l\"((u64)(from)) : \"memory\")" \
  }
#define COPY_ALIGNED(name, cache, bytes)                                                           \
  COPY(name, "to, at, from, start", " + \" #at \"", " + \" #start \"", cache, bytes)
#define MAKE(type, from, arguments)                                                                \
  { "make_" type, "#define make_" type "(" arguments ") (" from ")(" arguments ")" }

static const struct {
  const char *name, *text;
} words[] = {
    {"subgroup_mask",
     "#define subgroup_mask(lanes) (lanes == 32 ? 0xffffffffu : ((1u << (lanes & 31)) - 1u) << "
     "(thread_index() & 31u & ~(u32)(lanes - 1)))"},
    SHUFFLE_BITS("shuffle", "idx"),
    SHUFFLE_BITS("exchange", "bfly"),
    SHUFFLE("i32", "32", "(u32)", "(int)"),
    SHUFFLE("i64", "64", "(u64)", "(i64)"),
    SHUFFLE("f32", "32", "as_uint", "as_float"),
    SHUFFLE("f64", "64", "as_ulong", "as_double"),
    {"subgroup_barrier", "#define subgroup_barrier(lanes) asm volatile(\"bar.warp.sync %0;\" :: "
                         "\"r\"(subgroup_mask(lanes)) : \"memory\")"},
    ADD("f32", "f"),
    ADD("f64", "d"),
    COPY("copy_4", "to, from", "", "", "ca", "4"),
    COPY("copy_8", "to, from", "", "", "ca", "8"),
    COPY_ALIGNED("copy_aligned_8", "ca", "8"),
    COPY_ALIGNED("copy_aligned_16", "cg", "16"),
    {"copy_commit", "#define copy_commit() asm volatile(\"cp.async.commit_group;\" ::: "
                    "\"memory\")"},
    {"copy_wait", "#define copy_wait(batches) asm volatile(\"cp.async.wait_group \" #batches "
                  "\";\" ::: \"memory\")"},
    {"longlong2", "typedef long2 longlong2;"},
    MAKE("int2", "int2", "x, y"),
    MAKE("int4", "int4", "x, y, z, w"),
    MAKE("longlong2", "long2", "x, y"),
    MAKE("float2", "float2", "x, y"),
    MAKE("float4", "float4", "x, y, z, w"),
    MAKE("double2", "double2", "x, y"),
};

const char *clb_ptx_word(const char *name) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(words[i].name, name)) return words[i].text;
  return NULL;
}
