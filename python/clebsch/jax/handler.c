/* python/clebsch/jax/handler.c - what XLA calls for a pass of an op.

   The package compiles it against jaxlib's headers when clebsch.jax is first imported. It links
   nothing of JAX: XLA's functions come with each call. A call names its pass by a number that is
   made of the op's description, so that programs that JAX keeps on disk find it in any process that
   has made the op. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clebsch/clebsch.h"
#include "xla/ffi/api/c_api.h"

#define EXPORTED __attribute__((visibility("default")))

enum { MOST_OPERANDS = 18, MOST_GRAPHS = 4, MOST_TEXT = 512 };

/* The last edges of a context, sorted: layers and passes of a model share them. On a GPU there is
   one such, which every call sorts. */
typedef struct {
  clb_graph *graph;
  int64_t n_senders, n_receivers, n_edges;
  int32_t *edges; /* senders, then receivers */
} known_graph;

typedef struct {
  clb_context *context;
  clb_buffer *workspace;
  uint64_t workspace_bytes;
  known_graph graphs[MOST_GRAPHS]; /* the last first */
  /* Of a GPU, else NULL: CUDA's context, the stream of `context`, and events that order it and
     XLA's streams. */
  void *cuda, *stream, *given, *done;
} place;

typedef struct {
  int64_t columns; /* 0: there is no such operand in calls */
  int64_t fixed;   /* its rows, where they are not as many as those of the call; else 0 */
} operand;

/* A pass that is compiled; _native.py fills it in. Operands are in the order of clebsch.h. */
typedef struct {
  int64_t id;
  place *where;
  clb_op *op;
  void *function;
  int32_t pass, n_inputs, n_operands, element_bytes;
  int32_t of_graph;             /* a convolution */
  int32_t n_species, i_weights; /* 0: there is no list of species; the operand w */
  operand operands[MOST_OPERANDS];
} call;

/* One lock for all: kernels on the CPU use all its cores. */
static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static call **calls;
static size_t n_calls;

static void make_lock(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &kind);
  pthread_mutexattr_destroy(&kind);
}

EXPORTED void clebsch_jax_lock(void) {
  pthread_once(&once, make_lock);
  pthread_mutex_lock(&lock);
}

EXPORTED void clebsch_jax_unlock(void) { pthread_mutex_unlock(&lock); }

/* CUDA's driver, which XLA has opened where this is used. */
static struct {
  int (*init)(unsigned flags);
  int (*retain)(void **cuda, int device);
  int (*push)(void *cuda);
  int (*pop)(void **cuda);
  int (*make_stream)(void **stream, unsigned flags);
  int (*context_of)(void *stream, void **cuda);
  int (*make_event)(void **event, unsigned flags);
  int (*record)(void *event, void *stream);
  int (*wait)(void *stream, void *event, unsigned flags);
  int (*fill)(uint64_t at, unsigned char byte, size_t n, void *stream);
} driver;

static int open_driver(void) {
  static const char *const names[] = {"cuInit",
                                      "cuDevicePrimaryCtxRetain",
                                      "cuCtxPushCurrent_v2",
                                      "cuCtxPopCurrent_v2",
                                      "cuStreamCreate",
                                      "cuStreamGetCtx",
                                      "cuEventCreate",
                                      "cuEventRecord",
                                      "cuStreamWaitEvent",
                                      "cuMemsetD8Async"};
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  for (size_t i = 0; library && i < sizeof names / sizeof *names; i++)
    if (!(((void **)&driver)[i] = dlsym(library, names[i]))) return 0;
  return library && !driver.init(0);
}

static int make_stream(place *on, int gpu) {
  enum { NON_BLOCKING = 1, NOT_TIMED = 2 };
  if (!open_driver() || driver.retain(&on->cuda, gpu) || driver.push(on->cuda)) return 0;
  int failed = driver.make_stream(&on->stream, NON_BLOCKING) ||
               driver.make_event(&on->given, NOT_TIMED) || driver.make_event(&on->done, NOT_TIMED);
  driver.pop(&(void *){NULL});
  return !failed;
}

/* gpu: its number; below 0: the CPU. Places and calls live as long as the process, as programs that
   XLA has compiled may. */
EXPORTED void *clebsch_jax_place(int gpu) {
  place *made = calloc(1, sizeof *made);
  if (made && gpu >= 0 && !make_stream(made, gpu)) {
    free(made);
    return NULL;
  }
  return made;
}

EXPORTED void *clebsch_jax_stream(const place *of) { return of->stream; }

EXPORTED void clebsch_jax_open(place *at, clb_context *context) { at->context = context; }

EXPORTED int clebsch_jax_add(const call *added) {
  call *copy = malloc(sizeof *copy);
  clebsch_jax_lock();
  call **grown = copy ? realloc(calls, (n_calls + 1) * sizeof *calls) : NULL;
  if (grown) {
    *copy = *added;
    calls = grown;
    calls[n_calls++] = copy;
  } else free(copy);
  clebsch_jax_unlock();
  return grown != NULL;
}

static const call *find(int64_t id) {
  for (size_t i = 0; i < n_calls; i++)
    if (calls[i]->id == id) return calls[i];
  return NULL;
}

/* ---- what is computed; the lock is held ---- */

/* One call: rows of all operands, and the buffers that wrap XLA's memory. */
typedef struct {
  const call *of;
  int64_t n_x, n_z, n_each; /* rows of x, of z, and of all others */
  XLA_FFI_Buffer **inputs, **results;
  clb_rows rows[MOST_OPERANDS];
  clb_buffer *wrapped[MOST_OPERANDS + 2];
  int n_wrapped;
  char said[MOST_TEXT];
} run;

static clb_status wrap(run *r, const XLA_FFI_Buffer *memory, uint64_t bytes, clb_buffer **buffer) {
  clb_status status =
      clb_buffer_wrap(r->of->where->context, CLB_POINTER, memory->data, bytes, buffer);
  if (!status) r->wrapped[r->n_wrapped++] = *buffer;
  return status;
}

static uint64_t elements(const XLA_FFI_Buffer *memory) {
  uint64_t n = 1;
  for (int64_t i = 0; i < memory->rank; i++) n *= (uint64_t)memory->dims[i];
  return n;
}

/* An input of one row is that row for all. */
static clb_status take_operands(run *r) {
  const call *of = r->of;
  XLA_FFI_Buffer **input = r->inputs, **result = r->results;
  for (int i = 0; i < of->n_operands; i++) {
    const operand *one = &of->operands[i];
    if (!one->columns) continue;
    const XLA_FFI_Buffer *memory = i < of->n_inputs ? *input++ : *result++;
    int same = i < of->n_inputs && !one->fixed && memory->dims[0] == 1;
    r->rows[i].stride = same ? CLB_SAME_ROW : one->columns;
    clb_status status =
        wrap(r, memory, elements(memory) * (uint64_t)of->element_bytes, &r->rows[i].buffer);
    if (status) return status;
  }
  return CLB_OK;
}

/* Those on a GPU are below n_species already. */
static clb_status take_species(run *r, const XLA_FFI_Buffer *species) {
  const int32_t *of_row = species->data;
  for (int64_t i = 0; i < r->n_x && !r->of->where->cuda; i++)
    if (of_row[i] < 0 || of_row[i] >= r->of->n_species) {
      snprintf(r->said, sizeof r->said, "species[%lld] is %d; it must be a number below %d",
               (long long)i, of_row[i], r->of->n_species);
      return CLB_ERROR_ARGUMENT;
    }
  return wrap(r, species, (uint64_t)r->n_x * sizeof *of_row, &r->rows[r->of->i_weights].index);
}

#define R2 w[0], w[1]
#define R3 R2, w[2]
#define R4 R3, w[3]
#define R5 R4, w[4]
#define R7 R5, w[5], w[6]
#define R8 R7, w[7]
#define R11 R8, w[8], w[9], w[10]
#define T2 clb_rows, clb_rows
#define T3 T2, clb_rows
#define T4 T3, clb_rows
#define T5 T4, clb_rows
#define T7 T5, T2
#define T8 T7, clb_rows
#define T11 T8, T3
#define OF_ROWS(n)                                                                                 \
  case n:                                                                                          \
    return ((clb_status(*)(clb_op *, int64_t, T##n))of->function)(of->op, r->n_x, R##n)
#define OF_GRAPH(n)                                                                                \
  case n:                                                                                          \
    return ((clb_status(*)(clb_op *, clb_graph *, T##n, clb_buffer *))of->function)(               \
        of->op, graph, R##n, workspace)

static clb_status call_rows(const run *r) {
  const call *of = r->of;
  const clb_rows *w = r->rows;
  switch (of->n_operands) {
    OF_ROWS(2);
    OF_ROWS(3);
    OF_ROWS(4);
    OF_ROWS(5);
    OF_ROWS(7);
    OF_ROWS(8);
    OF_ROWS(11);
    default: break;
  }
  clb_triple_operands all; /* of clb_rows alone, in the same order */
  memcpy(&all, w, sizeof all);
  return ((clb_status(*)(clb_op *, int64_t, const clb_triple_operands *))of->function)(
      of->op, r->n_x, &all);
}

static clb_status call_graph(const run *r, clb_graph *graph, clb_buffer *workspace) {
  const call *of = r->of;
  const clb_rows *w = r->rows;
  switch (of->n_operands) {
    OF_GRAPH(4);
    OF_GRAPH(7);
    OF_GRAPH(11);
    default: return CLB_ERROR_ARGUMENT;
  }
}

/* Puts the graph of a place first. */
static void put_first(place *where, int i) {
  known_graph first = where->graphs[i];
  memmove(where->graphs + 1, where->graphs, (size_t)i * sizeof first);
  where->graphs[0] = first;
}

static clb_status update(run *r, clb_graph **graph, clb_index_list senders,
                         clb_index_list receivers) {
  int64_t nodes = r->n_x > r->n_z ? r->n_x : r->n_z;
  clb_status status =
      *graph ? CLB_OK : clb_graph_create(r->of->where->context, nodes, r->n_each, graph);
  if (status) return status;
  return clb_graph_update(*graph, r->n_x, r->n_z, r->n_each, CLB_I32, senders, receivers);
}

static clb_status sort_edges(run *r, known_graph *known, const int32_t *senders,
                             const int32_t *receivers) {
  size_t n = (size_t)r->n_each, size = n * sizeof *senders;
  int32_t *edges = realloc(known->edges, 2 * size);
  known->n_edges = -1; /* until all went well */
  if (!edges) {
    snprintf(r->said, sizeof r->said, "no memory for a copy of %zu edges", n);
    return CLB_ERROR_MEMORY;
  }
  known->edges = edges;
  clb_status status = update(r, &known->graph, (clb_index_list){.host = senders},
                             (clb_index_list){.host = receivers});
  if (status) return status;
  memcpy(edges, senders, size);
  memcpy(edges + n, receivers, size);
  known->n_senders = r->n_x, known->n_receivers = r->n_z, known->n_edges = r->n_each;
  return CLB_OK;
}

static clb_status sort_on_gpu(run *r, clb_graph **graph) {
  clb_index_list lists[2] = {{0}};
  clb_status status = CLB_OK;
  for (int i = 0; i < 2 && !status; i++)
    status = wrap(r, r->inputs[i], (uint64_t)r->n_each * sizeof(int32_t), &lists[i].buffer);
  return status ? status : update(r, graph, lists[0], lists[1]);
}

static clb_status find_graph(run *r, clb_graph **graph) {
  place *where = r->of->where;
  const int32_t *senders = r->inputs[0]->data, *receivers = r->inputs[1]->data;
  size_t n = (size_t)r->n_each, size = n * sizeof *senders;
  int i = 0;
  for (; i < MOST_GRAPHS; i++) {
    known_graph *known = &where->graphs[i];
    if (known->graph && known->n_senders == r->n_x && known->n_receivers == r->n_z &&
        known->n_edges == r->n_each && !memcmp(known->edges, senders, size) &&
        !memcmp(known->edges + n, receivers, size))
      break;
  }
  clb_status status = CLB_OK;
  put_first(where, i < MOST_GRAPHS ? i : MOST_GRAPHS - 1);
  if (i == MOST_GRAPHS) status = sort_edges(r, &where->graphs[0], senders, receivers);
  *graph = where->graphs[0].graph;
  return status;
}

static clb_status convolve(run *r) {
  place *where = r->of->where;
  uint64_t least = 0, most = 0;
  clb_graph *graph = NULL;
  clb_status status = where->cuda ? sort_on_gpu(r, &where->graphs[0].graph) : find_graph(r, &graph);
  if (where->cuda) graph = where->graphs[0].graph;
  if (!status)
    status = clb_convolution_workspace(r->of->op, (clb_pass)r->of->pass, graph, &least, &most);
  if (!status && most > where->workspace_bytes) {
    clb_buffer_destroy(&where->workspace);
    where->workspace_bytes = 0;
    status = clb_buffer_create(where->context, most, &where->workspace);
    if (!status) where->workspace_bytes = most;
  }
  if (status) return status;
  r->inputs += 2;
  status = take_operands(r);
  return status ? status : call_graph(r, graph, most ? where->workspace : NULL);
}

static clb_status compute(run *r) {
  clb_status status = CLB_OK;
  if (r->of->of_graph) status = convolve(r);
  else {
    if (r->of->n_species) status = take_species(r, *r->inputs++);
    if (!status) status = take_operands(r);
    if (!status) status = call_rows(r);
  }
  if (!status && !r->of->where->cuda) status = clb_wait(r->of->where->context);
  if (status && !r->said[0])
    snprintf(r->said, sizeof r->said, "%s", clb_error(r->of->where->context));
  for (int i = 0; i < r->n_wrapped; i++) clb_buffer_destroy(&r->wrapped[i]);
  return status;
}

/* ---- XLA's side ---- */

static XLA_FFI_Error *failure(const XLA_FFI_CallFrame *frame, const char *said) {
  XLA_FFI_Error_Create_Args made = {.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE,
                                    .message = said,
                                    .errc = XLA_FFI_Error_Code_INVALID_ARGUMENT};
  return frame->api->XLA_FFI_Error_Create(&made);
}

/* Whether XLA only asks for which version of its interface this is compiled. */
static int told_version(const XLA_FFI_CallFrame *frame) {
  __typeof__(frame->extension_start) asked = frame->extension_start; /* it was renamed */
  if (!asked || asked->type != XLA_FFI_Extension_Metadata) return 0;
  XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)asked)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  metadata->traits = 0; /* not for CUDA's graphs: calls wait for a convolution's edges */
  return 1;
}

static int64_t number(const XLA_FFI_CallFrame *frame, const char *name) {
  for (int64_t i = 0; i < frame->attrs.size; i++) {
    const XLA_FFI_ByteSpan *found = frame->attrs.names[i];
    if (found->len == strlen(name) && !memcmp(found->ptr, name, found->len))
      return *(const int64_t *)((const XLA_FFI_Scalar *)frame->attrs.attrs[i])->value;
  }
  return 0;
}

/* Sums of nothing. */
static void give_zeros(const run *r, int64_t n_results, void *stream) {
  for (int64_t i = 0; i < n_results; i++) {
    const XLA_FFI_Buffer *one = r->results[i];
    size_t bytes = elements(one) * (size_t)r->of->element_bytes;
    if (bytes && r->of->where->cuda) driver.fill((uintptr_t)one->data, 0, bytes, stream);
    else if (bytes) memset(one->data, 0, bytes);
  }
}

static XLA_FFI_Error *handle(const XLA_FFI_CallFrame *frame, run *r, void *stream) {
  if (r->n_each) return compute(r) ? failure(frame, r->said) : NULL;
  give_zeros(r, frame->rets.size, stream);
  return NULL;
}

/* XLA's stream waits for the context's, which waits for it. */
static XLA_FFI_Error *handle_on_gpu(const XLA_FFI_CallFrame *frame, run *r) {
  const place *on = r->of->where;
  XLA_FFI_Stream_Get_Args asked = {.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE,
                                   .ctx = frame->ctx};
  void *theirs = NULL;
  XLA_FFI_Error *failed = frame->api->XLA_FFI_Stream_Get(&asked);
  if (failed) return failed;
  if (driver.context_of(asked.stream, &theirs) || theirs != on->cuda)
    return failure(frame, "these arrays are on another GPU than the function of clebsch.jax, whose "
                          "option `device` names its own");
  if (driver.push(on->cuda)) return failure(frame, "CUDA's context cannot be entered");
  int unordered = driver.record(on->given, asked.stream) || driver.wait(on->stream, on->given, 0);
  if (!unordered) {
    failed = handle(frame, r, on->stream);
    unordered = driver.record(on->done, on->stream) || driver.wait(asked.stream, on->done, 0);
  }
  driver.pop(&theirs);
  return failed || !unordered ? failed : failure(frame, "CUDA's streams cannot be ordered");
}

static XLA_FFI_Error *answer(const XLA_FFI_CallFrame *frame, int on_gpu) {
  run r = {.inputs = (XLA_FFI_Buffer **)frame->args.args,
           .results = (XLA_FFI_Buffer **)frame->rets.rets,
           .n_x = number(frame, "n_x"),
           .n_z = number(frame, "n_z"),
           .n_each = number(frame, "n_each")};
  XLA_FFI_Error *failed;
  clebsch_jax_lock();
  r.of = find(number(frame, "id"));
  if (!r.of)
    failed = failure(frame, "this program was compiled in another process: make its ops of "
                            "clebsch.jax in this one, too, before it runs");
  else if (!r.of->where->cuda != !on_gpu)
    failed = failure(frame, on_gpu ? "these arrays are on a GPU, and the function of clebsch.jax "
                                     "computes on the CPU: make it with device=\"cuda\""
                                   : "these arrays are on the CPU, and the function of clebsch.jax "
                                     "computes on a GPU: make it with device=\"cpu\"");
  else failed = on_gpu ? handle_on_gpu(frame, &r) : handle(frame, &r, NULL);
  clebsch_jax_unlock();
  return failed;
}

EXPORTED XLA_FFI_Error *clebsch_jax_handler(XLA_FFI_CallFrame *frame) {
  return told_version(frame) ? NULL : answer(frame, 0);
}

EXPORTED XLA_FFI_Error *clebsch_jax_cuda(XLA_FFI_CallFrame *frame) {
  return told_version(frame) ? NULL : answer(frame, 1);
}

/* For JAX's other platforms. */
EXPORTED XLA_FFI_Error *clebsch_jax_elsewhere(XLA_FFI_CallFrame *frame) {
  if (told_version(frame)) return NULL;
  return failure(frame, "clebsch.jax computes on JAX's CPU and with CUDA: put this function's "
                        "arrays there, by jax.default_device or JAX_PLATFORMS");
}
