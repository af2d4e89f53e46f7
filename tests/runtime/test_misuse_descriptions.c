/* tests/runtime/test_misuse_descriptions.c - descriptions of ops, and lists of irreps, that no sane
   program gives. */
#include "tests/runtime/misuse.h"

/* ---- spherical harmonics ---- */

#define HARMONICS(end, ...)                                                                        \
  do {                                                                                             \
    clb_spherical_harmonics_desc q = t.sh_desc;                                                    \
    __VA_ARGS__;                                                                                   \
    end##_AS(#__VA_ARGS__, clb_spherical_harmonics_create(t.ctx, &q, &made.op));                   \
  } while (0)

static void harmonics(void **state) {
  (void)state;
  static const int high[] = {99}, negative[] = {-1}, max[] = {INT_MAX}, min[] = {INT_MIN};
  REFUSED(clb_spherical_harmonics_create(t.ctx, NULL, &made.op));
  REFUSED(clb_spherical_harmonics_create(t.ctx, &t.sh_desc, NULL));
  HARMONICS(REFUSED, q.degrees = NULL);
  HARMONICS(REFUSED, q.n_degrees = 0);
  HARMONICS(REFUSED, q.n_degrees = -1);
  HARMONICS(REFUSED, q.n_degrees = 1000);
  HARMONICS(REFUSED, q.degrees = high, q.n_degrees = 1);
  HARMONICS(REFUSED, q.degrees = negative, q.n_degrees = 1);
  HARMONICS(REFUSED, q.degrees = max, q.n_degrees = 1);
  HARMONICS(REFUSED, q.degrees = min, q.n_degrees = 1);
  HARMONICS(REFUSED, q.normalization = (clb_normalization)9);
  HARMONICS(REFUSED, q.storage = (clb_dtype)9);
  HARMONICS(REFUSED, q.storage = (clb_dtype)-1);
  HARMONICS(REFUSED, q.arithmetic = (clb_dtype)2);
  HARMONICS(REFUSED, q.storage = CLB_BF16, q.arithmetic = CLB_F64);
  HARMONICS(REFUSED, q.passes = 0);
  HARMONICS(REFUSED, q.passes = ~0u);
  HARMONICS(REFUSED, q.passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD));
  HARMONICS(REFUSED, q.passes = CLB_MEASURE);
  HARMONICS(DONE, q.normalize = 5);
  HARMONICS(DONE, q.accumulate = 7);
}

/* ---- products ---- */

/* `path`: copies of the instructions. */
#define PRODUCT(end, ...)                                                                          \
  do {                                                                                             \
    clb_tensor_product_desc q = t.tp_desc;                                                         \
    clb_instruction path[16];                                                                      \
    assert_in_range(q.n_instructions, 1, 16);                                                      \
    memcpy(path, q.instructions, sizeof *path *(size_t)q.n_instructions);                          \
    q.instructions = path;                                                                         \
    __VA_ARGS__;                                                                                   \
    end##_AS(#__VA_ARGS__, clb_tensor_product_create(t.ctx, &q, &made.op));                        \
  } while (0)

static void irreps_of_products(void **state) {
  (void)state;
  static const char *const bad[] = {NULL,
                                    "",
                                    "banana",
                                    "2147483647x0e",
                                    "-4x0e",
                                    "4x0e+",
                                    "1x99999999999999o",
                                    "4x0",
                                    "4x-1e",
                                    "99999999999999999999x0e"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    PRODUCT(REFUSED, q.irreps_x = bad[i]);
    PRODUCT(REFUSED, q.irreps_y = bad[i]);
    PRODUCT(REFUSED, q.irreps_z = bad[i]);
  }
  PRODUCT(REFUSED, q.irreps_x = "0x0e+4x1o");
}

static void products(void **state) {
  (void)state;
  REFUSED(clb_tensor_product_create(t.ctx, NULL, &made.op));
  REFUSED(clb_tensor_product_create(t.ctx, &t.tp_desc, NULL));
  PRODUCT(REFUSED, q.instructions = NULL);
  PRODUCT(REFUSED, q.n_instructions = 0);
  PRODUCT(REFUSED, q.n_instructions = -1);
  PRODUCT(REFUSED, q.n_instructions = 513);
  PRODUCT(REFUSED, path[0].in1 = -1);
  PRODUCT(REFUSED, path[0].in1 = 99);
  PRODUCT(REFUSED, path[0].in2 = 99);
  PRODUCT(REFUSED, path[0].out = 99);
  PRODUCT(REFUSED, path[0].mode = (clb_mode)99);
  PRODUCT(REFUSED, path[0].mode = (clb_mode)-1);
  PRODUCT(REFUSED, path[0].path_weight = NAN);
  PRODUCT(REFUSED, path[0].path_weight = INFINITY);
  PRODUCT(REFUSED, path[0].path_weight = -1);
  PRODUCT(REFUSED, q.irrep_normalization = (clb_irrep_normalization)44);
  PRODUCT(REFUSED, q.path_normalization = (clb_path_normalization)-1);
  PRODUCT(REFUSED, q.layout_x = (clb_layout)5);
  PRODUCT(REFUSED, q.layout_z = CLB_MERGED);
  PRODUCT(REFUSED, q.indexed = CLB_OPERAND_Z);
  PRODUCT(REFUSED, q.indexed = ~0u);
  PRODUCT(REFUSED, q.gradients = 64);
  PRODUCT(REFUSED, q.incoming = CLB_OPERAND_Z);
  PRODUCT(REFUSED, q.storage = (clb_dtype)17);
  PRODUCT(REFUSED, q.passes = 0);
  PRODUCT(REFUSED, q.passes = 16);
  PRODUCT(DONE, path[0].has_weight = 7);
  PRODUCT(DONE, path[0].path_weight = 1e300);
  PRODUCT(DONE, q.shared_weights = 5);
}

static void questions(void **state) {
  (void)state;
  clb_tensor_product_sizes sizes;
  clb_weight_slice slice;
  unsigned char mask[1];
  REFUSED(clb_tensor_product_measure(t.ctx, NULL, &sizes));
  REFUSED(clb_tensor_product_measure(t.ctx, &t.tp_desc, NULL));
  REFUSED(clb_tensor_product_weights(t.ctx, &t.tp_desc, -1, &slice));
  REFUSED(clb_tensor_product_weights(t.ctx, &t.tp_desc, 999, &slice));
  REFUSED(clb_tensor_product_weights(t.ctx, &t.tp_desc, 0, NULL));
  REFUSED(clb_tensor_product_mask(t.ctx, &t.tp_desc, mask, 1));
  REFUSED(clb_tensor_product_mask(t.ctx, &t.tp_desc, mask, -1));
  REFUSED(clb_tensor_product_mask(t.ctx, &t.tp_desc, NULL, 40));
}

static void lists(void **state) {
  (void)state;
  static const char all[] = "2147483647x0e";
  clb_instructions list;
  REFUSED(clb_channel_wise(t.ctx, NULL, "0e", "0e", CLB_SORTED, &list));
  REFUSED(clb_channel_wise(t.ctx, "0e", NULL, "0e", CLB_SORTED, &list));
  REFUSED(clb_channel_wise(t.ctx, "0e", "0e", NULL, CLB_SORTED, &list));
  REFUSED(clb_channel_wise(t.ctx, "0e", "0e", "0e", (clb_path_order)9, &list));
  REFUSED(clb_channel_wise(t.ctx, "0e", "0e", "0e", CLB_SORTED, NULL));
  REFUSED(clb_fully_connected(t.ctx, "0e", "0e", NULL, &list));
  REFUSED(clb_full(t.ctx, "0e", "0e", "", NULL));
  REFUSED(clb_full(t.ctx, "12e", "12e", NULL, &list));
  REFUSED(clb_full(t.ctx, all, all, NULL, &list));
  REFUSED(clb_elementwise(t.ctx, "2x0e", "3x0e", NULL, &list));
  DONE(clb_elementwise(t.ctx, all, all, NULL, &list));
}

/* ---- convolutions ---- */

#define CONVOLUTION(end, ...)                                                                      \
  do {                                                                                             \
    clb_convolution_desc q = t.cv_desc;                                                            \
    __VA_ARGS__;                                                                                   \
    end##_AS(#__VA_ARGS__, clb_convolution_create(t.ctx, &q, &made.op));                           \
  } while (0)

static void convolutions(void **state) {
  (void)state;
  REFUSED(clb_convolution_create(t.ctx, NULL, &made.op));
  REFUSED(clb_convolution_create(t.ctx, &t.cv_desc, NULL));
  CONVOLUTION(REFUSED, q.scale = NAN);
  CONVOLUTION(REFUSED, q.scale = INFINITY);
  CONVOLUTION(REFUSED, q.knots = 3, q.last_knot = 1);
  CONVOLUTION(REFUSED, q.knots = -1);
  CONVOLUTION(REFUSED, q.knots = 5);
  CONVOLUTION(REFUSED, q.knots = 5, q.first_knot = 2, q.last_knot = 1);
  CONVOLUTION(REFUSED, q.knots = 5, q.last_knot = NAN);
  CONVOLUTION(REFUSED, q.knots = INT_MAX, q.last_knot = 1);
  CONVOLUTION(REFUSED, q.vectors = 1, q.normalization = (clb_normalization)8);
  CONVOLUTION(REFUSED, q.product.indexed = CLB_OPERAND_X);
  CONVOLUTION(REFUSED, q.product.passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD));
  CONVOLUTION(DONE, q.scale = -1);
  CONVOLUTION(DONE, q.atomics = 9);
  CONVOLUTION(DONE, q.vectors = 3);
}

static void tables_and_workspaces(void **state) {
  (void)state;
  uint64_t min, good;
  double r[8] = {0};
  NULL_REFUSED(clb_convolution_set_table(NULL, r));
  REFUSED(clb_convolution_set_table(t.cv, r));
  REFUSED(clb_convolution_set_table(t.cv, NULL));
  REFUSED(clb_convolution_set_table(t.sh, r));
  NULL_REFUSED(clb_convolution_knots(NULL, r));
  REFUSED(clb_convolution_knots(t.cv, r));
  REFUSED(clb_convolution_knots(t.sh, r));
  NULL_REFUSED(clb_convolution_workspace(NULL, CLB_FORWARD, t.graph, &min, &good));
  REFUSED(clb_convolution_workspace(t.sh, CLB_FORWARD, t.graph, &min, &good));
  REFUSED(clb_convolution_workspace(t.cv, CLB_FORWARD, NULL, &min, &good));
  REFUSED(clb_convolution_workspace(t.cv, (clb_pass)9, t.graph, &min, &good));
  REFUSED(clb_convolution_workspace(t.cv, CLB_FORWARD, t.graph, NULL, NULL));
}

/* Every device refuses before it compiles, so the interpreter is enough. */
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(harmonics),
                                     cmocka_unit_test(products),
                                     cmocka_unit_test(irreps_of_products),
                                     cmocka_unit_test(questions),
                                     cmocka_unit_test(lists),
                                     cmocka_unit_test(convolutions),
                                     cmocka_unit_test(tables_and_workspaces)};
  t.device = "cpu:interpreter";
  return cmocka_run_group_tests(tests, make_all, destroy_all);
}
