/* backends/registry.c - the table of backends, and lookup of device strings. */
#include "backends/backend.h"

#include <stdlib.h>
#include <string.h>

#define BACKEND(name, first) &clb_backend_##name,
const clb_backend *const clb_backends[] = {
#include "backends/backends.def"
    NULL};
#undef BACKEND

/* The device that "" opens in each backend. */
#define BACKEND(name, first) first,
static const char *const firsts[] = {
#include "backends/backends.def"
};
#undef BACKEND

/* The part of a device string after the backend's name, or NULL if it names another backend. */
static const char *rest_of(const char *name, const char *backend) {
  size_t n = strlen(backend);
  if (strncmp(name, backend, n)) return NULL;
  return name[n] == 0 || name[n] == ':' || name[n] == '@' ? name + n : NULL;
}

/* Opens a device, and completes limits that the backend does not set. */
static clb_status open_by(const clb_backend *b, const char *name, const char *rest,
                          const clb_native *adopt, clb_error_sink *error, clb_device **device) {
  clb_status s = b->open(name, rest, adopt, error, device);
  if (s) return s;
  clb_limits *l = &(*device)->limits;
  if (l->max_local_bytes < l->local_bytes) l->max_local_bytes = l->local_bytes;
  return CLB_OK;
}

static clb_status open_first(clb_error_sink *error, clb_device **device) {
  for (int i = 0; clb_backends[i]; i++)
    if (open_by(clb_backends[i], clb_backends[i]->name, firsts[i], NULL, error, device) == CLB_OK) {
      clb_text_free(&error->text);
      return CLB_OK;
    }
  return CLB_ERROR_DEVICE; /* with the message of the last attempt */
}

clb_status clb_device_open(const char *name, const clb_native *adopt, clb_error_sink *error,
                           clb_device **device) {
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
  clb_status s = clb_fail(
      error, CLB_ERROR_DEVICE,
      "no device \"%s\": a device string starts with one of %s; `clebsch devices` lists those here",
      name, names.s ? names.s : "");
  clb_text_free(&names);
  return s;
}
