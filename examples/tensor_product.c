/* tensor_product.c - a fully connected product with shared weights, forward and backward:
   cc tensor_product.c $(pkg-config --cflags --libs clebsch) -lm && ./a.out [device] */
#include <clebsch/clebsch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, X = 0, Y, W, G, Z, G_X, G_Y, G_W, ARRAYS };

typedef struct {
  int64_t count;
  float *host;
  clb_rows rows;
} array;

/* Inputs are random numbers in -1 ... 1; results start from zeros, which the passes overwrite. */
static clb_status make(clb_context *ctx, int64_t count, int is_input, array *a) {
  static uint32_t state = 1;
  a->count = count;
  a->host = (float *)calloc((size_t)count, sizeof *a->host);
  if (!a->host) return CLB_ERROR_MEMORY;
  for (int64_t i = 0; i < count && is_input; i++) {
    state = state * 1664525u + 1013904223u;
    a->host[i] = (float)((double)state / 2147483648.0 - 1);
  }
  clb_status s = clb_buffer_create(ctx, (uint64_t)count * sizeof *a->host, &a->rows.buffer);
  return s ? s : clb_buffer_write(a->rows.buffer, 0, a->host, (uint64_t)count * sizeof *a->host);
}

/* <a, b>; *size: the same of absolute values, which is what rounding errors are relative to. */
static double dot(const array *a, const array *b, double *size) {
  double sum = 0;
  *size = 0;
  for (int64_t i = 0; i < a->count; i++) {
    double term = (double)a->host[i] * b->host[i];
    sum += term;
    *size += fabs(term);
  }
  return sum;
}

/* The product is linear in x, in y and in w: <g, z> = <x, g_x> = <y, g_y> = <w, g_w>. */
static int check(const array *a) {
  static const char *const names[] = {"x", "y", "w"};
  double size, z = dot(&a[G], &a[Z], &size);
  int good = size > 0;
  for (int i = X; i <= W; i++) {
    double unused, by_gradient = dot(&a[i], &a[G_X + i], &unused);
    int same = fabs(by_gradient - z) <= 1e-5 * size;
    printf("<g, z> = <%s, g_%s> %s\n", names[i], names[i], same ? "holds" : "does not hold");
    good &= same;
  }
  return good;
}

/* Sizes, and where the weights of each path are. */
static clb_status describe(clb_context *ctx, const clb_tensor_product_desc *desc,
                           clb_tensor_product_sizes *n) {
  clb_status s = clb_tensor_product_measure(ctx, desc, n);
  if (!s)
    printf("x %d, y %d, z %d elements in a row, %d weights in all\n", (int)n->x, (int)n->y,
           (int)n->z, (int)n->w);
  for (int i = 0; i < desc->n_instructions && !s; i++) {
    const clb_instruction *p = &desc->instructions[i];
    clb_weight_slice w;
    s = clb_tensor_product_weights(ctx, desc, i, &w);
    if (!s)
      printf("x[%d] y[%d] -> z[%d]: weights %d ... %d are w[%d][%d][%d]\n", p->in1, p->in2, p->out,
             (int)w.first, (int)(w.first + w.count - 1), (int)w.shape[0], (int)w.shape[1],
             (int)w.shape[2]);
  }
  return s;
}

int main(int argc, char **argv) {
  static clb_instructions found; /* 40 kB */
  clb_tensor_product_desc desc = {.irreps_x = found.irreps_x,
                                  .irreps_y = found.irreps_y,
                                  .irreps_z = found.irreps_z,
                                  .instructions = found.instructions,
                                  .layout_x = CLB_IR_MUL,
                                  .layout_y = CLB_IR_MUL,
                                  .layout_z = CLB_IR_MUL,
                                  .shared_weights = 1,
                                  .storage = CLB_F32,
                                  .arithmetic = CLB_F32,
                                  .passes = CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD)};
  clb_tensor_product_sizes n = {0, 0, 0, 0};
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  static array a[ARRAYS];
  int good = 0;

  clb_status s = clb_context_create(argc > 1 ? argv[1] : "", &ctx);
  if (!s) s = clb_fully_connected(ctx, "16x0e+8x1o", "0e+1o+2e", "16x0e+8x1o+8x1e", &found);
  desc.n_instructions = found.n_instructions;
  if (!s) s = describe(ctx, &desc, &n);
  if (!s) s = clb_tensor_product_create(ctx, &desc, &op);
  const int64_t counts[ARRAYS] = {N * n.x, N * n.y, n.w, N * n.z, N * n.z, N * n.x, N * n.y, n.w};
  for (int i = 0; i < ARRAYS && !s; i++) s = make(ctx, counts[i], i <= G, &a[i]);
  if (!s) s = clb_tensor_product_forward(op, N, a[X].rows, a[Y].rows, a[W].rows, a[Z].rows);
  if (!s)
    s = clb_tensor_product_backward(op, N, a[X].rows, a[Y].rows, a[W].rows, a[G].rows, a[G_X].rows,
                                    a[G_Y].rows, a[G_W].rows);
  for (int i = Z; i < ARRAYS && !s; i++)
    s = clb_buffer_read(a[i].rows.buffer, 0, a[i].host, (uint64_t)a[i].count * sizeof(float));
  if (s) fprintf(stderr, "tensor_product: %s: %s\n", clb_status_text(s), clb_error(ctx));
  else good = check(a);

  for (int i = 0; i < ARRAYS; i++) {
    clb_buffer_destroy(&a[i].rows.buffer);
    free(a[i].host);
  }
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  return !good;
}
