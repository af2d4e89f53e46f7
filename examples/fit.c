/* fit.c - fits a cubic to the exponential with AdamW, the host giving the gradients:
   cc fit.c $(pkg-config --cflags --libs clebsch) -lm && ./a.out [device] */
#include <clebsch/clebsch.h>
#include <math.h>
#include <stdio.h>

enum { TERMS = 4, POINTS = 41, STEPS = 600 };

/* The mean square of c0 + c1 x + c2 x^2 + c3 x^3 - exp(x) in -1 ... 1, and its gradients by c. */
static double loss(const float *c, float *gradients) {
  double sum = 0, g[TERMS] = {0};
  for (int i = 0; i < POINTS; i++) {
    const double x = -1 + 2.0 * i / (POINTS - 1), power[TERMS] = {1, x, x * x, x * x * x};
    double apart = -exp(x);
    for (int k = 0; k < TERMS; k++) apart += (double)c[k] * power[k];
    for (int k = 0; k < TERMS; k++) g[k] += 2 * apart * power[k] / POINTS;
    sum += apart * apart / POINTS;
  }
  for (int k = 0; k < TERMS; k++) gradients[k] = (float)g[k];
  return sum;
}

int main(int argc, char **argv) {
  float c[TERMS] = {0.5f, -0.5f, 0.5f, -0.5f}, g[TERMS];
  clb_optimizer_tensor tensor = {.rows = TERMS, .columns = 1};
  clb_optimizer_group group = {.rule = CLB_ADAMW, .lr = 0.1, .weight_decay = 1e-4};
  const clb_optimizer_desc desc = {
      .tensors = &tensor, .n_tensors = 1, .groups = &group, .n_groups = 1};
  clb_context *ctx = NULL;
  clb_optimizer *optimizer = NULL;

  printf("loss %.6f\n", loss(c, g));
  clb_status s = clb_context_create(argc > 1 ? argv[1] : "", &ctx);
  if (!s) s = clb_buffer_create(ctx, sizeof c, &tensor.parameters.buffer);
  if (!s) s = clb_buffer_create(ctx, sizeof g, &tensor.gradients.buffer);
  if (!s) s = clb_buffer_write(tensor.parameters.buffer, 0, c, sizeof c);
  if (!s) s = clb_optimizer_create(ctx, &desc, &optimizer);
  for (int step = 0; step < STEPS && !s; step++) {
    group.lr = 0.1 * (1 - step / (double)STEPS); /* a schedule: the rate falls to 0 */
    s = clb_optimizer_set_group(optimizer, 0, &group);
    if (!s) s = clb_buffer_read(tensor.parameters.buffer, 0, c, sizeof c);
    loss(c, g);
    if (!s) s = clb_buffer_write(tensor.gradients.buffer, 0, g, sizeof g);
    if (!s) s = clb_optimizer_step(optimizer);
  }
  if (!s) s = clb_buffer_read(tensor.parameters.buffer, 0, c, sizeof c);
  if (s) fprintf(stderr, "fit: %s: %s\n", clb_status_text(s), clb_error(ctx));
  else {
    printf("loss %.6f\n", loss(c, g));
    for (int k = 0; k < TERMS; k++) printf("c%d %.3f\n", k, (double)c[k]);
  }
  clb_optimizer_destroy(&optimizer);
  clb_buffer_destroy(&tensor.gradients.buffer);
  clb_buffer_destroy(&tensor.parameters.buffer);
  clb_context_destroy(&ctx);
  return s != CLB_OK;
}
