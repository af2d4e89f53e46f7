/* tests/install/old_program.c - a program as it was written for Clebsch 0.2, whose headers it
   includes: f64 is 0 there, rows are dense at -1, and the library writes a clb_model_info. */
#include <clebsch/model.h>
#include <math.h>
#include <stdio.h>

#if defined(CLB_VERSION_NUMBER)
#error "this is not the header of 0.2.0"
#endif

int main(void) {
  const int degrees[] = {0, 1};
  const clb_spherical_harmonics_desc desc = {
      .degrees = degrees, .n_degrees = 2, .passes = CLB_PASS_BIT(CLB_FORWARD)};
  const double x[2][3] = {{0, 1, 0}, {1, 0, 0}};
  double y[2][4];
  clb_context *ctx;
  clb_op *op;
  clb_rows in = {.stride = CLB_DENSE}, out = {.stride = CLB_DENSE};
  if (clb_context_create("cpu:interpreter", &ctx) ||
      clb_spherical_harmonics_create(ctx, &desc, &op) ||
      clb_buffer_create(ctx, sizeof x, &in.buffer) ||
      clb_buffer_create(ctx, sizeof y, &out.buffer) ||
      clb_buffer_write(in.buffer, 0, x, sizeof x) ||
      clb_spherical_harmonics_forward(op, 2, in, out) ||
      clb_buffer_read(out.buffer, 0, y, sizeof y)) {
    printf("refused: %s\n", clb_error(ctx));
    return 1;
  }
  const int right = fabs(y[0][2] - sqrt(3)) < 1e-12 && fabs(y[1][3] - sqrt(3)) < 1e-12;
  printf("%s\n", right ? "right" : "wrong");
  clb_model_info info;
  return !right || clb_model_describe(NULL, &info) != CLB_ERROR_ARGUMENT;
}
