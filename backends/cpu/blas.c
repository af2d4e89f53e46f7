/* backends/cpu/blas.c - matrix products on CPUs through whichever CBLAS is installed, with one
   thread: the backend's own threads call it for pieces of C. So a product takes as many threads as
   the device has, and a BLAS of the caller's keeps its settings. */
#define _GNU_SOURCE
#include "src/base/dl.h"
#include "backends/cpu/cpu.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

/* Reference BLAS (libblas.so.3) is not used: it is slower than the generated kernel. MKL's number
   of threads can be set for the calling thread alone; others are isolated, which MKL does not
   survive (it opens its parts with RTLD_GLOBAL, for which such a namespace has no room). */
static const struct {
  const char *name;
  void *(*open)(const char *const *names);
} libraries[] = {{"libopenblas.so.0", clb_dl_open_isolated},
                 {"libmkl_rt.so.2", clb_dl_open},
                 {"libblis.so.4", clb_dl_open_isolated}};
static const clb_symbol symbols[] = {
    {"cblas_dgemm", offsetof(clb_cpu_blas, f64), false},
    {"cblas_sgemm", offsetof(clb_cpu_blas, f32), false},
    {"MKL_Set_Num_Threads_Local", offsetof(clb_cpu_blas, threads_here), true}};

/* ---- forks ---- */

/* The locks of a BLAS must be free when another thread forks, or the child could not use it: all
   that call it read, and a fork writes. */
static const pthread_rwlock_t open_to_all = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t calls = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void before_fork(void) { pthread_rwlock_wrlock(&calls); }
static void in_parent(void) { pthread_rwlock_unlock(&calls); }
static void in_child(void) { calls = open_to_all; } /* without the threads that wait for it */
static void guard_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

const char *clb_cpu_blas_open(clb_cpu_blas *blas) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, guard_forks);
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !blas->name; i++) {
    void *library = libraries[i].open((const char *const[]){libraries[i].name, NULL});
    if (library && !clb_dl_symbols(library, symbols, sizeof symbols / sizeof *symbols, blas))
      blas->name = libraries[i].name;
  }
  return blas->name;
}

/* ---- products ---- */

/* A leading dimension that is at least 1 and fits the library's integers; -1: it is too large. */
static int dimension(int64_t ld) { return ld > INT_MAX ? -1 : ld < 1 ? 1 : (int)ld; }

clb_status clb_cpu_blas_can(const clb_cpu_blas *blas, const clb_gemm_desc *p,
                            clb_error_sink *error) {
  if (dimension(p->ld_a) > 0 && dimension(p->ld_b) > 0 && dimension(p->ld_c) > 0) return CLB_OK;
  return clb_fail(error, CLB_ERROR_UNSUPPORTED,
                  "%s: leading dimensions %lld, %lld, %lld; at most %d", blas->name,
                  (long long)p->ld_a, (long long)p->ld_b, (long long)p->ld_c, INT_MAX);
}

/* A product cut into pieces of C; down: how many along its rows, across: along its columns. */
typedef struct {
  const clb_cpu_blas *blas;
  clb_dtype type;
  const clb_gemm_desc *p;
  int64_t rows, columns, down, across;
} pieces;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void multiply_piece(const pieces *w, int64_t piece) {
  const clb_gemm_desc *p = w->p;
  const int64_t i = piece / (w->down * w->across), row = piece / w->across % w->down * w->rows,
                column = piece % w->across * w->columns;
  const int ta = p->transpose_a ? TRANSPOSED : AS_IT_IS,
            tb = p->transpose_b ? TRANSPOSED : AS_IT_IS, m = (int)least(w->rows, p->m - row),
            n = (int)least(w->columns, p->n - column), k = (int)p->k, ld_a = dimension(p->ld_a),
            ld_b = dimension(p->ld_b), ld_c = dimension(p->ld_c);
  const int64_t at_a = p->offset_a + i * p->stride_a + row * (p->transpose_a ? 1 : p->ld_a),
                at_b = p->offset_b + i * p->stride_b + column * (p->transpose_b ? p->ld_b : 1),
                at_c = p->offset_c + i * p->stride_c + row * p->ld_c + column;
  const void *a = k ? p->a->handle : NULL, *b = k ? p->b->handle : NULL;
  void *c = p->c->handle;
  const int before = w->blas->threads_here ? w->blas->threads_here(1) : 0;
  if (w->type == CLB_F64)
    w->blas->f64(ROW_MAJOR, ta, tb, m, n, k, 1, k ? (const double *)a + at_a : NULL, ld_a,
                 k ? (const double *)b + at_b : NULL, ld_b, p->add, (double *)c + at_c, ld_c);
  else
    w->blas->f32(ROW_MAJOR, ta, tb, m, n, k, 1, k ? (const float *)a + at_a : NULL, ld_a,
                 k ? (const float *)b + at_b : NULL, ld_b, p->add, (float *)c + at_c, ld_c);
  if (w->blas->threads_here) w->blas->threads_here(before);
}

static void multiply_pieces(const ir_arg *arg, int64_t first, int64_t last) {
  for (int64_t piece = first; piece < last; piece++) {
    pthread_rwlock_rdlock(&calls);
    multiply_piece(arg->p, piece);
    pthread_rwlock_unlock(&calls);
  }
}

/* The BLAS copies the rows and columns that a piece needs: pieces are large enough to make that
   cheap, and smaller only where there would be too few. They depend on the product alone, and with
   them the last digits. */
static pieces cut(const clb_gemm_desc *p, int64_t work) {
  enum { SIDE = 256, SMALL = 64, ENOUGH = 16 };
  pieces w = {.p = p};
  for (int64_t side = SIDE; side >= SMALL; side /= 2) {
    w.columns = least(side, p->n);
    w.rows = side;
    while (w.rows < p->m && w.rows * w.columns * p->k < work) w.rows *= 2;
    w.down = (p->m + w.rows - 1) / w.rows;
    w.across = (p->n + w.columns - 1) / w.columns;
    if (w.down * w.across * p->count >= ENOUGH) break;
  }
  return w;
}

clb_status clb_cpu_blas_multiply(const clb_cpu_blas *blas, clb_cpu_threads *threads, clb_dtype type,
                                 const clb_gemm_desc *p, clb_error_sink *error) {
  const int64_t work = 1 << 20; /* multiplications that are worth a thread's while */
  clb_status s = clb_cpu_blas_can(blas, p, error);
  if (s) return s;
  pieces w = cut(p, work);
  w.blas = blas;
  w.type = type;
  clb_cpu_threads_run(threads, multiply_pieces, &(const ir_arg){.p = &w},
                      w.down * w.across * p->count, work / (w.rows * w.columns * (p->k + 1)) + 1);
  return CLB_OK;
}
