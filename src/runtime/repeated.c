/* src/runtime/repeated.c - work that is submitted again and again. */
#include "src/runtime/repeated.h"

/* Whether a recording is there, or could be made. No is not an error: clb_error says why, and work
   with this key does not try again. */
static bool recorded(clb_context *ctx, clb_repeated *r, uint64_t key, const char *what,
                     clb_status (*submit)(void *user), void *user) {
  if (r->recording && !r->recording->lost && key == r->recorded) return true;
  if (key == r->unrecorded || ctx->recording || clb_record_begin(ctx)) return false;
  if (r->recording) clb_recording_take_over(r->recording);
  clb_recording_destroy(&r->recording);
  submit(user);
  const clb_status s = clb_record_end(ctx, &r->recording);
  *(s ? &r->unrecorded : &r->recorded) = key;
  if (s) clb_fail_more(&ctx->error, s, "; %s is launched kernel by kernel", what);
  return !s;
}

clb_status clb_repeat(clb_context *ctx, clb_repeated *r, uint64_t key, const char *what,
                      clb_status (*submit)(void *user), void *user) {
  const bool again = key && key == r->last;
  r->last = key;
  return again && recorded(ctx, r, key, what, submit, user) ? clb_replay(r->recording)
                                                            : submit(user);
}
