/* harmonics.c - Y of one point on the best device found:  cc harmonics.c $(pkg-config --cflags
   --libs clebsch) && ./a.out [device] */
#include <clebsch/clebsch.h>
#include <stdio.h>

int main(int argc, char **argv) {
  const int degrees[] = {0, 1, 2};
  const clb_spherical_harmonics_desc desc = {.degrees = degrees,
                                             .n_degrees = 3,
                                             .storage = CLB_F32,
                                             .arithmetic = CLB_F32,
                                             .passes = CLB_PASS_BIT(CLB_FORWARD)};
  const float x[1][3] = {{0.3f, -0.5f, 0.8f}};
  float y[1][9];
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  clb_rows in = {0}, out = {0};

  clb_status s = clb_context_create(argc > 1 ? argv[1] : "", &ctx);
  if (!s) s = clb_spherical_harmonics_create(ctx, &desc, &op);
  if (!s) s = clb_buffer_create(ctx, sizeof x, &in.buffer);
  if (!s) s = clb_buffer_create(ctx, sizeof y, &out.buffer);
  if (!s) s = clb_buffer_write(in.buffer, 0, x, sizeof x);
  if (!s) s = clb_spherical_harmonics_forward(op, 1, in, out);
  if (!s) s = clb_buffer_read(out.buffer, 0, y, sizeof y);
  if (s) fprintf(stderr, "harmonics: %s: %s\n", clb_status_text(s), clb_error(ctx));
  else
    for (int i = 0; i < 9; i++) printf("%.5f%s", y[0][i], i < 8 ? " " : "\n");

  clb_buffer_destroy(&out.buffer);
  clb_buffer_destroy(&in.buffer);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  return s != CLB_OK;
}
