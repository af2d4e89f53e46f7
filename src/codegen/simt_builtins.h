/* src/codegen/simt_builtins.h - the built-in functions in which OpenCL C, CUDA and HIP differ; a
   kernel's body is the same text in all three. */
#ifndef CLB_SRC_CODEGEN_SIMT_BUILTINS_H
#define CLB_SRC_CODEGEN_SIMT_BUILTINS_H

#include "src/codegen/codegen.h"

/* Appends to `out` the definition of every built-in that the body uses. Returns NULL, or the name
   of one that this language lacks. */
const char *clb_builtins(const clb_dialect *dialect, const char *body, clb_text *out);

#endif
