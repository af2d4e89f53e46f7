/* backends/cuda_hip/context.c - error codes of drivers, and the context guard. */
#include "backends/cuda_hip/gpu.h"

enum { OUT_OF_MEMORY = 2 }; /* the same in both */

static bool is_cuda(const clb_gpu *g) { return g->vendor->language == CLB_LANGUAGE_CUDA; }

clb_status clb_gpu_check_named(clb_gpu *g, const char *call, int code) {
  const char *name = NULL, *text = NULL;
  if (!code) return CLB_OK;
  if (is_cuda(g)) {
    g->driver.cuda_error_name(code, &name);
    g->driver.cuda_error_text(code, &text);
  } else {
    name = g->driver.hip_error_name(code);
    text = g->driver.hip_error_text(code);
  }
  return clb_fail(g->head.error, code == OUT_OF_MEMORY ? CLB_ERROR_MEMORY : CLB_ERROR_DRIVER,
                  "%s: %s: %s (%d): %s", g->name[0] ? g->name : g->vendor->name, call,
                  name ? name : "unknown error", code, text ? text : "no text");
}

clb_status clb_gpu_check(clb_gpu *g, int call, int code) {
  return clb_gpu_check_named(g, g->vendor->call_names[call], code);
}

clb_status clb_gpu_enter(clb_gpu *g, clb_gpu_guard *t) {
  clb_status s;
  *t = (clb_gpu_guard){0};
  if (is_cuda(g)) {
    void *now = NULL;
    if (!g->driver.context_current(&now) && now == g->context) return CLB_OK;
    s = CLB_GPU_CALL(g, context_push, g->context);
  } else {
    s = CLB_GPU_CALL(g, device_current, &t->device);
    if (s || t->device == g->ordinal) return s;
    s = CLB_GPU_CALL(g, device_set, g->ordinal);
  }
  t->changed = !s;
  return s;
}

void clb_gpu_leave(clb_gpu *g, const clb_gpu_guard *t) {
  void *ours;
  if (!t->changed) return;
  if (is_cuda(g)) g->driver.context_pop(&ours);
  else g->driver.device_set(t->device);
}
