/* backends/backend.h - the contract between the library and a driver.

   A backend knows nothing about ops. It opens a device, allocates memory, compiles an IR kernel to
   a binary that can be cached on disk, loads and launches it. All work on a device goes into one
   in-order queue. Functions that return a clb_status leave a message in device->error on failure
   (open: in its argument `error`): what was called, with the driver's own message. */
#ifndef CLB_BACKENDS_BACKEND_H
#define CLB_BACKENDS_BACKEND_H

#include <clebsch/clebsch.h>

#include "src/base/error.h"
#include "src/ir/ir.h"
#include "src/ir/limits.h"
#include "src/codegen/codegen.h"
#include "src/base/text.h"

typedef struct clb_backend clb_backend;

/* The common part of a device; the backend's own struct starts with it. */
typedef struct {
  const clb_backend *backend;
  clb_error_sink *error;
  clb_device_info info; /* strings owned by the device */
  clb_limits limits;
  clb_dialect dialect; /* what `build` compiles, and what `clebsch source` shows */
  char key[256];    /* everything a binary depends on: target, driver and compiler versions; part of
                       the cache key */
  const char *note; /* of clb_context_note; NULL: nothing is wrong */
  const char *blas; /* the library that open_blas found; NULL: none, or not looked for yet */
} clb_device;

/* Memory of a device, as a backend's launch and copy see it. */
typedef struct {
  void *handle; /* pointer or cl_mem */
  clb_memory_kind kind;
  uint64_t bytes;
  unsigned char *written; /* of the interpreter: whether a byte has been written; NULL: not known,
                             and not checked */
} clb_memory;

/* How a driver calls memory that another process opens. */
typedef struct {
  unsigned char at[64];
} clb_ipc_bytes;

/* Memory of the host for copies to and from a device. */
typedef struct {
  void *at; /* NULL: none */
  uint64_t bytes;
  void *pinned; /* the driver's handle of page-locked memory; NULL: it is pageable */
} clb_host_memory;

/* `bytes` of a launch argument that stands for all memory from its address on: elsewhere there are
   buffers, too, that the kernel knows places in. */
#define CLB_UNBOUNDED ((uint64_t)INT64_MAX)

/* One launch argument, in the order of the kernel's parameters. */
typedef struct {
  ir_type type; /* IR_VOID: memory; else the scalar's type */
  union {
    const clb_memory *memory;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
  };
} clb_arg;

/* `count` products C = A B or C + A B of row-major matrices: C is [m][n], A [m][k] (or [k][m], used
   transposed), B [k][n] (or [n][k]). Offsets, leading dimensions (>= the row's length) and strides
   from one product of the batch to the next count elements; a stride of A or B may be 0. */
typedef struct {
  int64_t m, n, k, count;
  const clb_memory *a, *b, *c;
  int64_t offset_a, offset_b, offset_c, ld_a, ld_b, ld_c, stride_a, stride_b, stride_c;
  bool transpose_a, transpose_b, add;
} clb_gemm_desc;

typedef struct clb_module clb_module; /* one loaded kernel; defined by each backend */

/* One launch, or one matrix product. */
typedef struct {
  const char *name; /* the kernel's, or the BLAS library's */
  clb_module *module;
  int64_t groups;
  const clb_arg *args;
  int n_args;
  clb_dtype type;
  const clb_gemm_desc *product; /* NULL: a launch */
} clb_work;

typedef struct clb_recorded
    clb_recorded; /* launches that are submitted together; defined by each backend */

struct clb_backend {
  const char *name; /* prefix of the device string */

  /* Calls each() for every device and every compile-only target that could be opened. A missing
     driver is not an error. */
  void (*list)(void (*each)(const clb_device_info *info, void *user), void *user);

  /* `name` is the whole device string, `rest` the part after the backend's name: "", ":1", ":0:1",
     "@gfx942", ":interpreter". adopt: the caller's handles, or NULL. */
  clb_status (*open)(const char *name, const char *rest, const clb_native *adopt,
                     clb_error_sink *error, clb_device **device);
  void (*close)(clb_device *device);

  clb_status (*alloc)(clb_device *device, uint64_t bytes, clb_memory *memory); /* bytes >= 1 */
  uint64_t (*free_bytes)(
      clb_device *device); /* free memory, 0: unknown; NULL: the driver cannot tell */
  void (*free)(clb_device *device, clb_memory *memory);
  clb_status (*wrap)(
      clb_device *device,
      clb_memory *memory); /* checks a caller's handle; may be NULL: accepts CLB_POINTER */
  /* In order with the launches; returns when the host memory may be reused. */
  clb_status (*write)(clb_device *device, const clb_memory *to, uint64_t offset, const void *from,
                      uint64_t bytes);
  clb_status (*read)(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                     uint64_t bytes);

  /* Memory that other processes of the host open, and copies of it; all NULL: there is none. The
     handle is what the other process's open_ipc is given. free_ipc: opened: by open_ipc. copy: from
     memory of either kind, in order with the launches; waits for nothing. */
  clb_status (*alloc_ipc)(clb_device *device, uint64_t bytes, clb_ipc_bytes *handle,
                          clb_memory *memory); /* bytes >= 1 */
  clb_status (*open_ipc)(clb_device *device, uint64_t bytes, const clb_ipc_bytes *handle,
                         clb_memory *memory);
  void (*free_ipc)(clb_device *device, clb_memory *memory, bool opened);
  clb_status (*copy)(clb_device *device, const clb_memory *to, uint64_t to_offset,
                     const clb_memory *from, uint64_t from_offset, uint64_t bytes);

  /* Has this device's launches and copies read memory that `owner`, another device of the backend
     in this process, has allocated or will: at its address there. CLB_ERROR_UNSUPPORTED: it cannot.
     NULL: no device can. */
  clb_status (*reach)(clb_device *device, clb_device *owner);

  /* Page-locked memory of the host, which the driver copies without a copy of its own; both NULL:
     there is none. pin: bytes >= 1; sets `at` and `pinned`; false: there is none left, of which no
     message tells. */
  bool (*pin)(clb_device *device, uint64_t bytes, clb_host_memory *memory);
  void (*unpin)(clb_device *device, clb_host_memory *memory);
  /* As write, from such memory, but waits for nothing: it may be reused after a wait, or a read.
     NULL: there is no such copy. */
  clb_status (*post)(clb_device *device, const clb_memory *to, uint64_t offset, const void *from,
                     uint64_t bytes);

  /* Compiles the text (SPIR-V: the words) that clb_codegen made of k, which has passed
     ir_verify; `binary` goes into the cache. On failure the error contains the compiler's whole
     log. */
  clb_status (*build)(clb_device *device, const ir_kernel *k, const clb_text *text,
                      clb_text *binary);
  /* k is the kernel the binary was built from. */
  clb_status (*load)(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                     clb_module **module);
  void (*unload)(clb_device *device, clb_module *module);
  /* groups >= 1.  Allocates nothing, waits for nothing. */
  clb_status (*launch)(clb_device *device, clb_module *module, int64_t groups, const clb_arg *args,
                       int n_args);
  clb_status (*wait)(clb_device *device);

  /* Both NULL where no library is known. open_blas finds the vendor's BLAS for CLB_F64 or CLB_F32,
     initializes it and names it in device->blas; CLB_ERROR_UNSUPPORTED if there is none. *partly:
     gemm does not support all products that this device may be given. gemm: in order with the
     launches, m, n, count 1 ... INT32_MAX, k 0 ... INT32_MAX; CLB_ERROR_UNSUPPORTED if it cannot do
     this product. */
  clb_status (*open_blas)(clb_device *device, clb_dtype type, bool *partly);
  clb_status (*gemm)(clb_device *device, clb_dtype type, const clb_gemm_desc *product);
  /* Returns CLB_ERROR_UNSUPPORTED where gemm would, and does nothing else; NULL if there is no
     gemm. */
  clb_status (*can_gemm)(clb_device *device, clb_dtype type, const clb_gemm_desc *product);

  /* All NULL if the driver has no such object. record: makes one of n >= 1 launches and products,
     in order; *recorded is NULL where the driver cannot, which is not a failure. On entry *recorded
     is NULL, or an object for the same work on other memory, which is updated. replay: submits all
     of it, in order with the launches; allocates nothing, waits for nothing. */
  void (*record)(clb_device *device, const clb_work *work, int64_t n, clb_recorded **recorded);
  clb_status (*replay)(clb_device *device, clb_recorded *recorded);
  void (*forget)(clb_device *device, clb_recorded *recorded); /* frees it, after all submitted
                                                                 replays */

  /* What the vendor's compiler generated for the kernel; -1 where unknown. NULL: it tells nothing,
     and needs no binary of a loaded kernel. */
  clb_status (*report)(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                       clb_report *report);
};

/* The report of a compiler that tells nothing. */
static inline clb_report clb_report_unknown(void) {
  return (clb_report){-1, -1, -1, -1, -1, -1, -1, -1, -1};
}

#define BACKEND(name, first) extern const clb_backend clb_backend_##name;
#include "backends/backends.def"
#undef BACKEND
extern const clb_backend *const clb_backends[]; /* in the order in which the device string "" tries
                                                   them; ends with NULL */

/* The backend's alloc and free, counted in info; if it fails for lack of memory, the message also
   says how much the device has. */
clb_status clb_device_alloc(clb_device *device, uint64_t bytes, clb_memory *memory);
void clb_device_free(clb_device *device, clb_memory *memory);
/* Likewise of memory that other processes open; theirs is not counted. */
clb_status clb_device_alloc_ipc(clb_device *device, uint64_t bytes, clb_ipc_bytes *handle,
                                clb_memory *memory);
void clb_device_free_ipc(clb_device *device, clb_memory *memory, bool opened);
/* Room for so many bytes on the host, whose old contents are lost: page-locked where copies gain
   from it, else (or if the driver has none left) pageable. false: no memory. */
bool clb_device_stage(clb_device *device, uint64_t bytes, clb_host_memory *memory);
void clb_device_unstage(clb_device *device, clb_host_memory *memory);
/* The first byte that nothing has written, of `bytes` from an offset on; -1: none is known. */
int64_t clb_memory_unwritten(const clb_memory *memory, uint64_t offset, uint64_t bytes);
/* Somebody has written there (or may have: a caller who knows the address). */
void clb_memory_mark(const clb_memory *memory, uint64_t offset, uint64_t bytes);
/* Nobody needs what is there: reading it before it is written again is a mistake. */
void clb_memory_discard(const clb_memory *memory);
/* Free bytes; 0: unknown. */
uint64_t clb_device_free_bytes(clb_device *device);

/* Opens by device string ("" as in clb_context_create). */
clb_status clb_device_open(const char *name, const clb_native *adopt, clb_error_sink *error,
                           clb_device **device);

#endif
