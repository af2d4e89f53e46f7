/* src/codegen/builtins/builtins.h - the files of this folder, which embed.py makes tables of: what
   the text of a kernel uses and its language lacks. */
#ifndef CLB_SRC_CODEGEN_BUILTINS_BUILTINS_H
#define CLB_SRC_CODEGEN_BUILTINS_BUILTINS_H

typedef struct {
  const char *name, *text; /* text: lines; empty where the language has the name itself */
} clb_builtin;

/* In the order of the files; the last one's name is NULL. */
extern const clb_builtin clb_builtins_opencl[], clb_builtins_subgroups[], clb_builtins_ptx[],
    clb_builtins_cuda[], clb_builtins_hip[], clb_builtins_vector[];

#endif
