/* src/codegen/codegen.h - a kernel in a vendor's language. */
#ifndef CLB_SRC_CODEGEN_CODEGEN_H
#define CLB_SRC_CODEGEN_CODEGEN_H

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/ir/ir.h"
#include "src/ir/limits.h"

typedef enum {
  CLB_LANGUAGE_OPENCL, /* OpenCL C 1.2, sub-groups through extensions where `subgroups` */
  CLB_LANGUAGE_CUDA,   /* CUDA C++ for NVRTC, no headers */
  CLB_LANGUAGE_HIP,    /* HIP for hiprtc and clang, no headers */
  CLB_LANGUAGE_CPU,    /* C with vector extensions; defines  void NAME(const union arg *arg, int64_t
                          first, int64_t last): arg as for ir_run, then two i64: the groups of the
                          whole launch; whether to use streaming stores */
  CLB_LANGUAGE_SPIRV,  /* SPIR-V 1.2 words for OpenCL and Level Zero */
  CLB_LANGUAGE_IR      /* a listing to read */
} clb_language;

typedef struct {
  clb_language language;
  bool
      subgroups; /* OpenCL: cl_khr_subgroups or cl_intel_subgroups with a required size are there */
  bool ptx;      /* OpenCL: of NVIDIA, whose compiler takes PTX in the text: for sub-groups and
                    asynchronous copies */
  bool vector_atomics;         /* CUDA: 2 or 4 additions of f32 are one access */
  bool subgroup_blocks;        /* SPIR-V: sub-groups read adjacent elements as blocks */
  bool float_atomics;          /* OpenCL: cl_ext_float_atomics is there; else compare-and-swap */
  bool quirk_mask_implication; /* OpenCL with sub-groups: hides from the compiler that one mask
                       implies another, because it miscompiles such code */
  bool quirk_half_load; /* OpenCL: f16 is converted to f32 by integer arithmetic, because vload_half
                         takes this compiler minutes */
  bool quirk_negation;  /* OpenCL: hides negations of floats from the compiler, which loses them
                           across barriers */
} clb_dialect;

/* The first half of the way to a text: checks the kernel and drops barriers that order nothing. */
clb_status clb_codegen_prepare(ir_kernel *k, clb_error_sink *error);
/* The second half, of a kernel so prepared: appends the text (SPIR-V: the words) of a device with
   these limits, with shuffles lowered where it has no sub-groups: the input of a backend's build.
 */
clb_status clb_codegen(const ir_kernel *k, const clb_limits *limits, const clb_dialect *dialect,
                       clb_text *text, clb_error_sink *error);

/* Appends the text (SPIR-V: the words) to out. The kernel must have passed ir_verify and, where the
   device has no sub-groups, clb_lower_shuffles. false: out of memory, or `error` names what this
   language cannot express. */
bool clb_print(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
               size_t size);

/* The printer of each language; clb_print selects it. */
bool clb_print_c(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                 size_t size); /* SIMT text */
bool clb_print_vector(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                      size_t size); /* CLB_LANGUAGE_CPU */
bool clb_print_spirv(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                     size_t size);
bool clb_print_ir(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                  size_t size);

/* Bytes of local memory that every launch must give a group, because the LOCAL arrays exceed the 48
   KB that CUDA source can declare statically; else 0. */
int64_t clb_launch_local_bytes(const ir_kernel *k, const clb_dialect *dialect);

#endif
