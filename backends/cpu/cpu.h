/* backends/cpu/cpu.h - between the files of the cpu backend: the system's C compiler, and threads.
 */
#ifndef CLB_BACKENDS_CPU_CPU_H
#define CLB_BACKENDS_CPU_CPU_H

#include <sys/types.h>

#include "backends/backend.h"

/* ---- compiler.c ---- */

typedef struct {
  const char *name;   /* "cc", "gcc" or "clang"; NULL: there is none */
  const char *target; /* "-march=native", or what this compiler takes instead; NULL: nothing */
  char version[128];
  char features[40]; /* hash of all that it predefines for this machine, and of the flags used here
                      */
  int vector_bytes;  /* of the widest vectors it would use */
  char
      libmvec[128]; /* where glibc's exp, sin and cos of whole vectors are; empty: there are none */
  char why[120];    /* there is none, where there is none */
} clb_cpu_compiler;

/* Asks each compiler on PATH what it is, and has it link something.  None that can is no error;
   lack of memory is. */
clb_status clb_cpu_compiler_find(clb_cpu_compiler *c, clb_error_sink *error);
/* From text to the bytes of a shared library. */
clb_status clb_cpu_compile(const clb_cpu_compiler *c, const char *kernel, const clb_text *source,
                           clb_text *binary, clb_error_sink *error);

/* ---- folder.c ---- */

typedef struct {
  clb_text path;
  int fd, lifeline; /* -1: none */
  pid_t watcher;
  bool told; /* which group the compiler is */
} clb_cpu_folder;

/* A folder that a compilation has to itself; it goes with this process even where that is killed.
 */
clb_status clb_cpu_folder_make(clb_cpu_folder *f, const char *kernel, clb_error_sink *error);
/* The process group to kill then; at most once. */
void clb_cpu_folder_compiler(clb_cpu_folder *f, pid_t group);
void clb_cpu_folder_remove(clb_cpu_folder *f);
/* Removes what dead processes left. */
void clb_cpu_folders_sweep(void);

/* ---- cpu.c ---- */

/* Stores past the caches: AUTO where a launch writes more than they hold. */
typedef enum { CLB_CPU_STREAM_AUTO, CLB_CPU_STREAM_NEVER, CLB_CPU_STREAM_ALWAYS } clb_cpu_stream;
void clb_cpu_set_stream(clb_device *device, clb_cpu_stream when);
bool clb_cpu_streams(const clb_device *device, const clb_module *m, int64_t groups);

/* ---- blas.c ---- */

typedef struct {
  void (*f64)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
              int ld_a, const double *b, int ld_b, double beta, double *c, int ld_c);
  void (*f32)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int ld_a,
              const float *b, int ld_b, float beta, float *c, int ld_c);
  const char *name; /* NULL: none is open */
} clb_cpu_blas;

/* Its name, or NULL. */
const char *clb_cpu_blas_open(clb_cpu_blas *blas);
clb_status clb_cpu_blas_can(const clb_cpu_blas *blas, const clb_gemm_desc *product,
                            clb_error_sink *error);
clb_status clb_cpu_blas_multiply(const clb_cpu_blas *blas, clb_dtype type,
                                 const clb_gemm_desc *product, clb_error_sink *error);

/* ---- threads.c ---- */

/* arg: the kernel's parameters, then the number of groups of the whole launch and whether to store
   past the caches (i64). */
typedef void clb_cpu_function(const ir_arg *arg, int64_t first, int64_t last);
typedef struct clb_cpu_threads clb_cpu_threads;

int clb_cpu_cores(void); /* that this process may use */
/* Threads start with the first launch that is worth it.  NULL: no memory. */
clb_cpu_threads *clb_cpu_threads_create(int cores);
void clb_cpu_threads_destroy(clb_cpu_threads *t);
/* Groups [0, groups), `chunk` at a time; returns when all are done. */
void clb_cpu_threads_run(clb_cpu_threads *t, clb_cpu_function *f, const ir_arg *arg, int64_t groups,
                         int64_t chunk);

#endif
