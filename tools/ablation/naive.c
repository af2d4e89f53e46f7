/* tools/ablation/naive.c - naive kernels: which there are, and which are loaded. */
#include "tools/ablation/naive.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/tool.h"

static const struct {
  const char *name, *body;
} kernels[NAIVE_KERNELS] = {
#define NAIVE(name, ...) {#name, NAIVE_EXPANDED(__VA_ARGS__)},
#include "tools/ablation/naive_kernels.def"
#undef NAIVE
};

struct naive {
  const naive_backend *backend;
  void *device, *loaded[NAIVE_KERNELS];
};

naive *naive_open(const clb_device_info *info, char message[NAIVE_MESSAGE]) {
  const naive_backend *backend = !strcmp(info->backend, "cuda") ? &naive_cuda
                                 : !strcmp(info->backend, "cpu") && !is_interpreter(info)
                                     ? &naive_cpu
                                     : NULL;
  message[0] = 0;
  void *device = backend ? backend->open(info, message) : NULL;
  if (!device) return NULL;
  naive *n = allocate(1, sizeof *n);
  n->backend = backend;
  n->device = device;
  return n;
}

void naive_close(naive *n) {
  if (!n) return;
  for (int i = 0; i < NAIVE_KERNELS; i++)
    if (n->loaded[i]) n->backend->unload(n->device, n->loaded[i]);
  n->backend->close(n->device);
  free(n);
}

bool naive_run(naive *n, naive_kernel kernel, const naive_arguments *p,
               char message[NAIVE_MESSAGE]) {
  void **loaded = &n->loaded[kernel];
  if (!*loaded)
    *loaded = n->backend->load(n->device, kernels[kernel].name, kernels[kernel].body, message);
  if (!*loaded) return false;
  if (n->backend->run(n->device, *loaded, p)) return true;
  snprintf(message, NAIVE_MESSAGE, "the naive kernel %s does not run", kernels[kernel].name);
  return false;
}

bool naive_wait(naive *n) { return n->backend->wait(n->device); }

long long naive_lanes(const naive *n, const naive_arguments *p) {
  return n->backend->one_lane ? 1 : p->channels;
}
