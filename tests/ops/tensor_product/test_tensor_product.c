/* tests/ops/tensor_product/test_tensor_product.c - gradients of weights path by path, and what a
   kernel loads and stores. */
#include "tests/ops/tensor_product/product_problems.h"

/* Row r has an incoming gradient in output r alone: only the weights of paths into it may have a
   gradient, and it must be right. */
static void one_path_at_a_time(void **state) {
  static const int which[] = {ONE_PATH, MODES, WIDE, MACE_LARGE};
  for (int t = 0; t < many(*state, 1, 2, 4); t++) {
    test_product *p = get(*state, which[t]);
    const dense_irreps *z = &p->dense->of[LIKE_Z];
    arrays a = arrays_create(p, z->n, 5);
    for (int r = 0; r < z->n; r++)
      for (int j = 0; j < z->dim; j++)
        if (j < z->term[r].at || j >= z->term[r].at + z->term[r].mul * (2 * z->term[r].l + 1))
          a.in[LIKE_Z][r * z->dim + j] = 0;
    run_pass(p, CLB_BACKWARD, &a);
    compare(p, CLB_BACKWARD, &a, NULL);
    for (int r = 0; r < z->n; r++)
      for (int q = 0; q < p->dense->n; q++)
        for (int j = 0; j < p->dense->path[q].n_weights; j++)
          assert_true((a.out[LIKE_W][r * p->width[LIKE_W] + p->dense->path[q].first + j] != 0) ==
                      (p->dense->path[q].is.out == r));
    arrays_destroy(&a);
  }
}

/* Each operand is loaded once and each result stored once, except for lanes without a channel. */
static void counts(void **state) {
  test_product *p = get(*state, MACE_LARGE);
  int in = p->width[LIKE_X] + p->width[LIKE_Y] + p->width[LIKE_W], all = in + p->width[LIKE_Z];
  clb_counts c;
  OK(p->ctx, clb_op_counts(op_of(p, CLB_BACKWARD), CLB_BACKWARD, &c));
  assert_true(c.loads >= all && c.loads <= 1.1 * all && c.stores >= in && c.stores <= 1.1 * in);
  assert_true(c.bytes_loaded == 8 * c.loads && c.bytes_stored == 8 * c.stores);
  assert_true(c.flops > 100000 && c.flops < 248000); /* fewer than without sharing of products */
}

int main(void) {
  static const device_test tests[] = {{"one_path_at_a_time", one_path_at_a_time, EVERYWHERE},
                                      {"counts", counts, WHERE_THOROUGH}};
  return run_on_devices("tensor_product", tests, sizeof tests / sizeof *tests);
}
