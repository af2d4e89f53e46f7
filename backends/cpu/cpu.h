/* backends/cpu/cpu.h - shared by the files of the cpu backend: the system's C compiler, and
 threads. */
#ifndef CLB_BACKENDS_CPU_CPU_H
#define CLB_BACKENDS_CPU_CPU_H

#include <sys/types.h>

#include "backends/backend.h"
#include "src/base/hash.h"

/* ---- compiler.c ---- */

typedef struct {
  const char *name;   /* one of clb_cpu_compilers; NULL: none is known */
  bool runs;          /* false: it is not there now, only kernels that it compiled earlier */
  const char *target; /* "-march=native", or this compiler's equivalent; NULL: none */
  char version[128];
  char features[40]; /* hash of its predefined macros for this machine and of the flags used here */
  int vector_bytes;  /* width of the widest vectors that it would use */
  char libmvec[128]; /* path of glibc's vector exp, sin and cos (libmvec); empty: not available */
  char why[120];     /* why none runs, if none does */
} clb_cpu_compiler;

/* Identifies each compiler on PATH and test-links with it. Finding none is not an error; lack of
   memory is. */
clb_status clb_cpu_compiler_find(clb_cpu_compiler *c, clb_error_sink *error);
/* From text to the bytes of a shared library. */
clb_status clb_cpu_compile(const clb_cpu_compiler *c, const char *kernel, const clb_text *source,
                           clb_text *binary, clb_error_sink *error);

/* ---- known_compiler.c ---- */

/* The value of the first line "key : value" in /proc/cpuinfo; "unknown": there is none. */
void clb_cpu_info(const char *key, char *value, size_t size);
enum { CLB_CPU_COMPILERS = 3 };
extern const char *const clb_cpu_compilers[CLB_CPU_COMPILERS]; /* "cc", "gcc", "clang" */
/* The programs of these names that PATH gives now, and the cache folder. */
clb_hash clb_cpu_programs(void);
/* The compiler that this process has found among these programs; and keeps for later, in the cache
   folder, too. */
bool clb_cpu_compiler_known(const clb_hash *programs, clb_cpu_compiler *c);
void clb_cpu_compiler_keep(const clb_hash *programs, const clb_cpu_compiler *c);
/* The compiler that kept kernels in the cache folder for such a processor; it does not run. false:
   there is none, and c is as before. */
bool clb_cpu_compiler_remember(clb_cpu_compiler *c);

/* ---- folder.c ---- */

typedef struct {
  clb_text path;
  int fd, lifeline; /* -1: none */
  pid_t watcher;
  bool told; /* the process group of the compiler has been passed on */
} clb_cpu_folder;

/* Creates a temporary folder for one compilation; it is removed even if this process is killed. */
clb_status clb_cpu_folder_make(clb_cpu_folder *f, const char *kernel, clb_error_sink *error);
/* Sets the process group to kill in that case; call at most once. */
void clb_cpu_folder_compiler(clb_cpu_folder *f, pid_t group);
void clb_cpu_folder_remove(clb_cpu_folder *f);
/* Removes folders left behind by dead processes. */
void clb_cpu_folders_sweep(void);

/* ---- cpu.c ---- */

/* Streaming stores. AUTO: where a launch writes more than the caches hold. */
typedef enum { CLB_CPU_STREAM_AUTO, CLB_CPU_STREAM_NEVER, CLB_CPU_STREAM_ALWAYS } clb_cpu_stream;
void clb_cpu_set_stream(clb_device *device, clb_cpu_stream when);
bool clb_cpu_streams(const clb_device *device, const clb_module *m, int64_t groups);

/* ---- memory.c ---- */

/* tracked: with a record of what has been written. */
clb_status clb_cpu_alloc(clb_device *device, uint64_t bytes, bool tracked, clb_memory *memory);
void clb_cpu_free(clb_device *device, clb_memory *memory);
clb_status clb_cpu_write(clb_device *device, const clb_memory *to, uint64_t offset,
                         const void *from, uint64_t bytes);
clb_status clb_cpu_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                        uint64_t bytes);
clb_status clb_cpu_alloc_ipc(clb_device *device, uint64_t bytes, bool tracked,
                             clb_ipc_bytes *handle, clb_memory *memory);
clb_status clb_cpu_open_ipc(clb_device *device, uint64_t bytes, const clb_ipc_bytes *handle,
                            clb_memory *memory);
void clb_cpu_free_ipc(clb_device *device, clb_memory *memory, bool opened);
clb_status clb_cpu_copy(clb_device *device, const clb_memory *to, uint64_t to_offset,
                        const clb_memory *from, uint64_t from_offset, uint64_t bytes);
/* Checks that A and B, and C if it is added to, have been written; C then is. */
clb_status clb_cpu_track_product(clb_device *device, clb_dtype type, const clb_gemm_desc *product);

/* ---- threads.c ---- */

/* arg: the kernel's parameters, then the number of groups of the whole launch and whether to use
   streaming stores (i64). */
typedef void clb_cpu_function(const ir_arg *arg, int64_t first, int64_t last);
typedef struct clb_cpu_threads clb_cpu_threads;

int clb_cpu_cores(void); /* cores that this process may use */
/* Threads start with the first launch that is large enough. NULL: no memory. */
clb_cpu_threads *clb_cpu_threads_create(int cores);
void clb_cpu_threads_destroy(clb_cpu_threads *t);
/* Groups [0, groups), `chunk` at a time; returns when all are done. */
void clb_cpu_threads_run(clb_cpu_threads *t, clb_cpu_function *f, const ir_arg *arg, int64_t groups,
                         int64_t chunk);

/* ---- library.c ---- */

typedef struct clb_cpu_library clb_cpu_library;

/* The binary, a shared library with the kernel's function, loaded into this process; if it is
   already, that one. */
clb_status clb_cpu_library_open(const char *kernel, const void *binary, size_t bytes,
                                clb_cpu_library **library, clb_error_sink *error);
clb_cpu_function *clb_cpu_library_function(const clb_cpu_library *library);
void clb_cpu_library_close(clb_cpu_library *library);

/* ---- blas.c ---- */

typedef struct {
  void (*f64)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
              int ld_a, const double *b, int ld_b, double beta, double *c, int ld_c);
  void (*f32)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int ld_a,
              const float *b, int ld_b, float beta, float *c, int ld_c);
  int (*threads_here)(int n); /* sets the number of the calling thread, 0: the program's; returns
                                 the one before; NULL: it has one anyway */
  const char *name;           /* NULL: none is open */
} clb_cpu_blas;

/* Opens a BLAS; returns its name, or NULL. */
const char *clb_cpu_blas_open(clb_cpu_blas *blas);
clb_status clb_cpu_blas_can(const clb_cpu_blas *blas, const clb_gemm_desc *product,
                            clb_error_sink *error);
clb_status clb_cpu_blas_multiply(const clb_cpu_blas *blas, clb_cpu_threads *threads, clb_dtype type,
                                 const clb_gemm_desc *product, clb_error_sink *error);

#endif
