/* backends/registry.c - the table of backends, and which device a string means. */
#include "backends/backend.h"

#include <stdlib.h>
#include <string.h>

const clb_backend *const clb_backends[] = {&clb_backend_cuda, &clb_backend_hip, &clb_backend_level_zero, &clb_backend_opencl, &clb_backend_cpu, NULL};

/* What follows the backend's name in a device string, or NULL if it names another backend. */
static const char *rest_of(const char *name, const char *backend) {
  size_t n = strlen(backend);
  if (strncmp(name, backend, n)) return NULL;
  return name[n] == 0 || name[n] == ':' || name[n] == '@' ? name + n : NULL;
}

/* Opens, and completes the limits where the backend knows of no more. */
static clb_status open_by(const clb_backend *b, const char *name, const char *rest, const clb_native *adopt, clb_error_sink *error, clb_device **device) {
  clb_status s = b->open(name, rest, adopt, error, device);
  if (s) return s;
  clb_limits *l = &(*device)->limits;
  if (l->most_local_bytes < l->local_bytes) l->most_local_bytes = l->local_bytes;
  return CLB_OK;
}

/* A CPU through OpenCL is no reason to leave the cpu backend, so "" takes opencl only for its GPUs. */
static clb_status open_first(clb_error_sink *error, clb_device **device) {
  for (const clb_backend *const *b = clb_backends; *b; b++) {
    const char *rest = *b == &clb_backend_opencl ? ":gpu" : "";
    if (open_by(*b, (*b)->name, rest, NULL, error, device) == CLB_OK) {
      clb_text_free(&error->text);
      return CLB_OK;
    }
  }
  return CLB_ERROR_DEVICE; /* the sentence is that of cpu */
}

clb_status clb_device_open(const char *name, const clb_native *adopt, clb_error_sink *error, clb_device **device) {
  clb_text names = {0};
  const char *wish = getenv("CLB_DEVICE");
  *device = NULL;
  if (!*name && wish) name = wish;
  if (!*name) return open_first(error, device);
  for (const clb_backend *const *b = clb_backends; *b; b++) {
    const char *rest = rest_of(name, (*b)->name);
    if (rest) {
      clb_text_free(&names);
      return open_by(*b, name, rest, adopt, error, device);
    }
    clb_text_add(&names, "%s%s", b == clb_backends ? "" : ", ", (*b)->name);
  }
  clb_status s = clb_fail(error, CLB_ERROR_DEVICE, "no device \"%s\": a device string starts with one of %s; `clebsch devices` lists those here", name, names.s ? names.s : "");
  clb_text_free(&names);
  return s;
}

uint64_t clb_device_free_bytes(clb_device *d) { return d->backend->free_bytes ? d->backend->free_bytes(d) : 0; }

clb_status clb_device_alloc(clb_device *d, uint64_t bytes, clb_memory *memory) {
  static const double MiB = 1 << 20;
  const clb_status s = d->backend->alloc(d, bytes, memory);
  if (s != CLB_ERROR_MEMORY) return s;
  const uint64_t all = d->info.memory_bytes, left = clb_device_free_bytes(d);
  if (left) return clb_fail_more(d->error, s, "; of the %.1f MiB of %s %.1f MiB are free", (double)all / MiB, d->info.name, (double)left / MiB);
  return all ? clb_fail_more(d->error, s, "; %s has %.1f MiB", d->info.name, (double)all / MiB) : s;
}

clb_status clb_device_text(const clb_device *d, const ir_kernel *k, clb_text *text) {
  char mistake[256] = "";
  ir_kernel legal = {0};
  clb_status s = CLB_OK;
  bool legalise = !d->limits.subgroups && clb_shuffles(k);
  if (legalise && k->subgroups > 1)
    return clb_fail(d->error, CLB_ERROR_UNSUPPORTED, "%s: %s has no sub-groups; a kernel that shuffles can have one per group, not %d", k->name, d->info.name, (int)k->subgroups);
  if (legalise && !clb_legalise(k, &legal)) s = clb_fail(d->error, CLB_ERROR_INTERNAL, "%s: %s", k->name, legal.error);
  if (!s && !clb_print(legalise ? &legal : k, &d->dialect, text, mistake, sizeof mistake)) s = clb_fail(d->error, CLB_ERROR_UNSUPPORTED, "%s: %s", k->name, mistake);
  if (text->failed) s = clb_fail(d->error, CLB_ERROR_MEMORY, "%s: no memory for its text", k->name);
  ir_free(&legal);
  return s;
}
