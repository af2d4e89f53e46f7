/* src/runtime/public.c - contexts and devices as the user sees them. */
#include "src/base/cache_folder.h"
#include "src/base/sizes.h"
#include "src/runtime/kernel_cache.h"
#include "src/runtime/context.h"

#include <stdlib.h>
#include <string.h>

const char *clb_version(void) { return CLB_VERSION; }

int clb_version_number(void) { return CLB_VERSION_NUMBER; }

const char *clb_status_text(clb_status status) {
  static const char *const texts[] = {
#define CLB_STATUS(name, text) text,
      CLB_STATUSES(CLB_STATUS)
#undef CLB_STATUS
  };
  return (size_t)status < sizeof texts / sizeof *texts ? texts[status] : "no such status";
}

clb_status clb_devices(void (*each)(const clb_device_info *info, void *user), void *user) {
  if (!each) return clb_null(__func__, "each");
  for (const clb_backend *const *b = clb_backends; *b; b++) (*b)->list(each, user);
  return CLB_OK;
}

/* ---- context ---- */

static const char *message(const clb_context *ctx) {
  if (ctx->error.text.failed) return "out of memory while saying what failed";
  return ctx->error.text.s ? ctx->error.text.s : "no error";
}

static clb_status open_context(const char *device, const clb_native *native, clb_context **ctx) {
  if (!ctx) return clb_null("clb_context_create", "ctx");
  clb_context *c = *ctx = calloc(1, sizeof *c);
  if (!c) return clb_fail_alone(CLB_ERROR_MEMORY, "clb_context_create: no memory");
  clb_cache_sweep();
  const clb_status s = clb_device_open(device ? device : "", native, &c->error, &c->device);
  if (!s) return CLB_OK;
  clb_fail_alone(s, message(c));
  clb_context_destroy(ctx);
  return s;
}

clb_status clb_context_create(const char *device, clb_context **ctx) {
  return open_context(device, NULL, ctx);
}

clb_status clb_context_adopt(const char *device, const clb_native *native, clb_context **ctx) {
  if (!ctx) return clb_null(__func__, "ctx");
  if (native && device && *device) return open_context(device, native, ctx);
  *ctx = NULL;
  if (!native) return clb_null(__func__, "native");
  return clb_fail_alone(CLB_ERROR_ARGUMENT, "clb_context_adopt: device is empty; name the backend, "
                                            "\"cuda\" for example");
}

void clb_context_destroy(clb_context **ctx) {
  if (!ctx || !*ctx) return;
  clb_context *c = *ctx;
  *ctx = NULL;
  clb_context_finish(c);
  clb_profile_forget(c);
  clb_recording_destroy(&c->recording);
  c->destroyed = true;
  if (!c->held) clb_context_close(c);
}

const char *clb_error(const clb_context *ctx) {
  const char *alone = clb_alone_after(ctx ? ctx->error.number : 0);
  return alone ? alone : ctx ? message(ctx) : "no error";
}

const char *clb_context_note(const clb_context *ctx) {
  if (!ctx) return NULL;
  return ctx->device && ctx->device->note ? ctx->device->note
         : ctx->note.failed               ? NULL
                                          : ctx->note.s;
}

clb_status clb_context_device_sized(clb_context *ctx, clb_device_info *info, size_t size) {
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  if (!info) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_context_device: info is NULL");
  clb_give_struct(&ctx->device->info, sizeof ctx->device->info, info, size);
  return CLB_OK;
}

clb_status clb_context_disable(clb_context *ctx, unsigned optimisations) {
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  if (optimisations & ~(unsigned)(CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS | CLB_SPLIT_ROWS))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_context_disable: optimisations is %#x; it must be a sum of "
                    "CLB_WIDE_ACCESSES and its like",
                    optimisations);
  ctx->disabled = optimisations;
  return CLB_OK;
}
