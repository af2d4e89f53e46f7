/* backends/cuda_hip/record.c - recordings as CUDA's or HIP's graphs: the work is captured from the
   stream. */
#include <stdlib.h>

#include "backends/cuda_hip/gpu.h"

struct clb_recorded {
  void *runnable; /* an instantiated graph */
};

enum { THIS_THREAD = 1 }; /* calls of other threads do not break the capture; the same in both */

static bool has_graphs(const clb_gpu *g) {
  const clb_gpu_driver *d = &g->driver;
  return d->capture_begin && d->capture_end && d->graph_instantiate && d->graph_launch &&
         d->graph_destroy && d->runnable_destroy;
}

/* NULL if the driver refuses: the default stream cannot be captured, nor a stream that its owner is
   already capturing, and some libraries do not allow it. */
static void *capture(clb_gpu *g, const clb_work *work, int64_t n) {
  clb_status s = CLB_OK;
  void *graph = NULL;
  if (!g->stream || !has_graphs(g) || g->driver.capture_begin(g->stream, THIS_THREAD)) return NULL;
  for (int64_t i = 0; i < n && !s; i++)
    s = work[i].product ? clb_gpu_gemm(&g->head, work[i].type, work[i].product)
                        : clb_gpu_launch(&g->head, work[i].module, work[i].groups, work[i].args,
                                         work[i].n_args);
  if (g->driver.capture_end(g->stream, &graph)) s = CLB_ERROR_DRIVER;
  if (!s || !graph) return graph;
  g->driver.graph_destroy(graph);
  return NULL;
}

/* Updates the instantiated graph to do the same as `graph` from its next launch on; false: not
   possible. */
static bool update(clb_gpu *g, void *runnable, void *graph) {
  struct {
    int result;
    void *node, *from;
  } what = {0};
  if (g->driver.cuda_update) return !g->driver.cuda_update(runnable, graph, &what);
  return g->driver.hip_update && !g->driver.hip_update(runnable, graph, &what.node, &what.result);
}

static void drop(clb_gpu *g, void *runnable) {
  if (!runnable) return;
  clb_gpu_wait(&g->head); /* it may be running */
  g->driver.runnable_destroy(runnable);
}

void clb_gpu_record(clb_device *device, const clb_work *work, int64_t n, clb_recorded **recorded) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_recorded *r = *recorded ? *recorded : calloc(1, sizeof *r);
  *recorded = NULL;
  if (!r) return;
  void *graph = clb_gpu_enter(g, &t) ? NULL : capture(g, work, n);
  if (!graph || !r->runnable || !update(g, r->runnable, graph)) {
    drop(g, r->runnable);
    r->runnable = NULL;
    if (graph && g->driver.graph_instantiate(&r->runnable, graph, 0)) r->runnable = NULL;
  }
  if (graph) g->driver.graph_destroy(graph);
  if (r->runnable && g->driver.graph_upload)
    g->driver.graph_upload(r->runnable, g->stream); /* otherwise the first launch uploads it */
  clb_gpu_leave(g, &t);
  if (r->runnable) *recorded = r;
  else free(r);
}

clb_status clb_gpu_replay(clb_device *device, clb_recorded *recorded) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_status s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, graph_launch, recorded->runnable, g->stream);
  clb_gpu_leave(g, &t);
  return s;
}

void clb_gpu_forget(clb_device *device, clb_recorded *recorded) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_gpu_enter(g, &t); /* failures cannot be reported here */
  drop(g, recorded->runnable);
  clb_gpu_leave(g, &t);
  free(recorded);
}
