/* src/runtime/context.c - lifetime of contexts. */
#include "src/runtime/context.h"

#include <stdlib.h>

void clb_context_finish(clb_context *c) {
  if (c->device && c->device->info.runs) c->device->backend->wait(c->device);
}

void clb_context_close(clb_context *c) {
  clb_context_finish(c);
  while (c->kernels) clb_kernel_free(c, c->kernels);
  clb_text_free(&c->wisdom);
  if (c->device) clb_device_unstage(c->device, &c->staging);
  if (c->device) clb_device_unstage(c->device, &c->posted);
  if (c->scratch.handle) clb_device_free(c->device, &c->scratch);
  if (c->device) c->device->backend->close(c->device);
  clb_text_free(&c->error.text);
  clb_text_free(&c->note);
  free(c);
}

clb_context *clb_context_hold(clb_context *ctx) {
  ctx->held++;
  return ctx;
}

void clb_context_release(clb_context *ctx) {
  if (!--ctx->held && ctx->destroyed) clb_context_close(ctx);
}

clb_status clb_context_check(clb_context *ctx, const char *call) {
  return ctx ? CLB_OK : clb_null(call, "ctx");
}
