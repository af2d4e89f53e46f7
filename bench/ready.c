/* ready.c - how soon a device is ready:  ready DEVICE...  prints one JSON array.
   open_first: the first context of the process, the driver's own start included; open_again: a
   second one; cold, warm: an op (l <= 4, forward and backward, f32) compiled anew, and found in the
   cache by a new context; launch: host time of one forward call on one row, of many in a row. */
#include <clebsch/clebsch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(clb_status s, clb_context *ctx, const char *what) {
  if (!s) return;
  fprintf(stderr, "ready: %s: %s\n", what, clb_error(ctx));
  exit(1);
}

static double launch_seconds(clb_context *ctx, clb_op *op) {
  enum { N = 2000 };
  float x[3] = {1, 2, 3};
  clb_rows in = {0}, out = {0};
  double best = 1;
  must(clb_buffer_create(ctx, sizeof x, &in.buffer), ctx, "buffer");
  must(clb_buffer_create(ctx, 25 * sizeof(float), &out.buffer), ctx, "buffer");
  must(clb_buffer_write(in.buffer, 0, x, sizeof x), ctx, "write");
  for (int turn = 0; turn < 5; turn++) {
    double start = now();
    for (int i = 0; i < N; i++)
      must(clb_spherical_harmonics_forward(op, 1, in, out), ctx, "forward");
    double t = (now() - start) / N;
    must(clb_wait(ctx), ctx, "wait");
    if (t < best) best = t;
  }
  clb_buffer_destroy(&in.buffer);
  clb_buffer_destroy(&out.buffer);
  return best;
}

static json_t *measure(const char *device) {
  static const int degrees[] = {0, 1, 2, 3, 4};
  const clb_spherical_harmonics_desc desc = {degrees,
                                             5,
                                             CLB_COMPONENT,
                                             0,
                                             CLB_F32,
                                             CLB_F32,
                                             0,
                                             CLB_PASS_BIT(CLB_FORWARD) |
                                                 CLB_PASS_BIT(CLB_BACKWARD)};
  clb_context *ctx[2];
  clb_op *op;
  double open[2], ready[2], launch = 0;
  for (int i = 0; i < 2; i++) {
    double start = now();
    must(clb_context_create(device, &ctx[i]), ctx[i], device);
    open[i] = now() - start;
  }
  for (int i = 0; i < 2; i++) {
    double start = now();
    must(clb_spherical_harmonics_create(ctx[i], &desc, &op), ctx[i], device);
    ready[i] = now() - start;
    if (i) launch = launch_seconds(ctx[i], op);
    clb_op_destroy(&op);
  }
  for (int i = 0; i < 2; i++) clb_context_destroy(&ctx[i]);
  return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "device", device, "open_first", open[0],
                   "open_again", open[1], "cold", ready[0], "warm", ready[1], "launch", launch);
}

int main(int argc, char **argv) {
  char cache[] = "/tmp/clebsch-ready-XXXXXX";
  json_t *all = json_array();
  if (argc < 2 || !mkdtemp(cache) || setenv("CLB_CACHE_DIR", cache, 1)) {
    fprintf(stderr, "usage: ready DEVICE...\n");
    return 2;
  }
  for (int i = 1; i < argc; i++) json_array_append_new(all, measure(argv[i]));
  json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(4));
  putchar('\n');
  json_decref(all);
  return 0;
}
