/* tests/problem/test_product_read.c - what a tensor product's description may say, and what is
   computed from it: coefficients, weights, masks. */
#include "tests/test.h"

#include <math.h>

#include "src/problem/irreps.h"

static clb_tensor_product_problem *problem(void) {
  clb_tensor_product_problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  return p;
}

static clb_context *anything(void) {
  clb_context *ctx;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  return ctx;
}

/* ---- coefficients and weights ---- */

/* One path of each mode into an output of its own, then one more into each of the outputs 0 and 7.
 */
static const clb_instruction paths[] = {
    {1, 1, 0, CLB_UVW, 1, 1},      {1, 1, 1, CLB_UVU, 7, 1},      {1, 1, 2, CLB_UVV, 1, 2},
    {1, 0, 3, CLB_UUW, 1, 1},      {1, 0, 4, CLB_UUU, 1, 1},      {0, 1, 5, CLB_UVUV, 1, 1},
    {1, 0, 6, CLB_UVU_HALF, 1, 1}, {1, 0, 7, CLB_UVW_HALF, 1, 3}, {1, 0, 8, CLB_UUW, 0, 1},
    {0, 0, 0, CLB_UVW, 1, .5},     {1, 0, 7, CLB_UVW, 1, 1}};
enum { PATHS = sizeof paths / sizeof *paths };

static clb_tensor_product_desc described(const clb_instruction *instructions, int n) {
  return (clb_tensor_product_desc){.irreps_x = "4x0e+4x1o",
                                   .irreps_y = "4x1o+3x2e",
                                   .irreps_z = "7x1o+4x3o+3x2o+2x0e+4x2e+12x2e+6x1e+2x1e+1x0e",
                                   .instructions = instructions,
                                   .n_instructions = n};
}

/* By hand: alpha is 2 l3 + 1, (2 l1 + 1)(2 l2 + 1) or 1; elements are counted by the table of
   modes, with 4 x 3 or 4 x 4 channels and 6 pairs; outputs 0 and 7 have two paths each: 12 + 16 =
   28 and 6 + 16 = 22 elements. */
static const struct {
  double component, norm, elements, path_elements;
  int64_t weight_at, count, shape[3];
} expected[PATHS] = {
    {3, 15, 28, 2 * 12, 0, 84, {4, 3, 7}},  {7, 15, 3, 3, 84, 12, {4, 3, 1}},
    {5, 15, 4, 4, 96, 12, {4, 3, 1}},       {1, 9, 4, 4, 108, 8, {4, 2, 1}},
    {5, 9, 1, 1, 116, 4, {4, 1, 1}},        {5, 5, 1, 1, 120, 12, {4, 3, 1}},
    {3, 9, 1, 1, 132, 6, {6, 1, 1}},        {3, 9, 22, 2 * 6, 138, 12, {6, 2, 1}},
    {1, 9, 4, 4, 150, 0, {0, 0, 0}},        {3, 3, 28, 2 * 16, 150, 112, {4, 4, 7}},
    {3, 9, 22, 2 * 16, 262, 32, {4, 4, 2}},
};

static void coefficients(void **state) {
  (void)state;
  clb_error_sink error = {0};
  for (int irrep = 0; irrep < 3; irrep++)
    for (int normalization = 0; normalization < 3; normalization++) {
      clb_tensor_product_problem *p = problem();
      clb_tensor_product_desc d = described(paths, PATHS);
      d.irrep_normalization = (clb_irrep_normalization)irrep;
      d.path_normalization = (clb_path_normalization)normalization;
      d.layout_y = CLB_IR_MUL;
      if (clb_tensor_product_read(&d, p, &error)) fail_msg("%s", error.text.s);
      assert_true(p->n_paths == PATHS && p->n_weights == 294 && p->x.dim == 16 && p->y.dim == 27 &&
                  p->z.dim == 21 + 28 + 15 + 2 + 20 + 60 + 18 + 6 + 1);
      assert_true(p->layout_x == CLB_MUL_IR && p->layout_y == CLB_IR_MUL &&
                  p->layout_z == CLB_MUL_IR);
      for (int i = 0; i < PATHS; i++) {
        const clb_path *q = &p->path[i];
        assert_true(q->in1 == paths[i].in1 && q->in2 == paths[i].in2 && q->out == paths[i].out &&
                    q->mode == (int32_t)paths[i].mode);
        assert_true(q->has_weight == (i != 8) &&
                    q->weight_at == (i == 8 ? 0 : expected[i].weight_at));
        double alpha = irrep == CLB_IRREP_COMPONENT ? expected[i].component
                       : irrep == CLB_IRREP_NORM    ? expected[i].norm
                                                    : 1;
        double x = normalization == CLB_PATH_ELEMENT ? expected[i].elements
                   : normalization == CLB_PATH_PATH  ? expected[i].path_elements
                                                     : 1;
        double c = q->coefficient, want = alpha * paths[i].path_weight / x;
        if (!(fabs(c * c - want) <= 1e-15 * want && c > 0))
          fail_msg("path %d, normalisations %d %d: %.17g squared is not %.17g", i, irrep,
                   normalization, c, want);
      }
      free(p);
    }
  clb_text_free(&error.text);
}

static void slices(void **state) {
  (void)state;
  clb_context *ctx = anything();
  clb_tensor_product_desc d = described(paths, PATHS);
  clb_weight_slice s;
  for (int i = 0; i < PATHS; i++) {
    memset(&s, 0xff, sizeof s);
    assert_int_equal(clb_tensor_product_weights(ctx, &d, i, &s), CLB_OK);
    assert_true(s.first == expected[i].weight_at && s.count == expected[i].count);
    assert_memory_equal(s.shape, expected[i].shape, sizeof s.shape);
  }
  static const int outside[] = {-1, PATHS};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(clb_tensor_product_weights(ctx, &d, outside[i], &s), CLB_ERROR_ARGUMENT);
    assert_true(strstr(clb_error(ctx), "there are 11 instructions") && s.count == 0);
  }
  assert_int_equal(clb_tensor_product_weights(ctx, &d, 0, NULL), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "slice is NULL"));
  assert_int_equal(clb_tensor_product_weights(ctx, NULL, 0, &s), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "desc is NULL"));
  d.irreps_x = "?";
  assert_int_equal(clb_tensor_product_weights(ctx, &d, 0, &s), CLB_ERROR_ARGUMENT);
  clb_context_destroy(&ctx);
}

/* A path without channels, or without pairs of them, is dropped, but counts in the normalisation of
   the others, as in e3nn. */
static const clb_instruction partly_empty[] = {
    {0, 0, 0, CLB_UVU, 1, 1}, {1, 0, 1, CLB_UVU, 1, 1},      {1, 1, 1, CLB_UVU, 1, 0},
    {1, 2, 1, CLB_UVU, 1, 1}, {2, 2, 2, CLB_UVU_HALF, 1, 1}, {3, 0, 3, CLB_UVW_HALF, 1, 1},
    {3, 0, 3, CLB_UVW, 1, 1}, {3, 0, 4, CLB_UVW, 1, 1}};
static const clb_tensor_product_desc emptied = {.irreps_x = "0x0e+3x1o+0x0e+1x0e",
                                                .irreps_y = "1x0e+1x2e+0x0e",
                                                .irreps_z = "0x0e+3x1o+0x0e+2x0e+0x0e+2x1o",
                                                .instructions = partly_empty,
                                                .n_instructions = 8};

static void no_channels(void **state) {
  (void)state;
  static const int64_t first[] = {0, 0, 3, 6, 6, 6, 6, 8}, count[] = {0, 3, 3, 0, 0, 0, 2, 0};
  clb_tensor_product_problem *p = problem();
  clb_error_sink error = {0};
  clb_context *ctx = anything();
  if (clb_tensor_product_read(&emptied, p, &error)) fail_msg("%s", error.text.s);
  assert_true(p->n_paths == 3 && p->n_weights == 8);
  for (int i = 0; i < 2; i++)
    assert_true(p->path[i].in1 == 1 && p->path[i].in2 == i && p->path[i].out == 1 &&
                p->path[i].weight_at == 3 * i);
  assert_true(p->path[2].mode == CLB_UVW && p->path[2].in1 == 3 && p->path[2].weight_at == 6);
  /* x: 1 + 1 + 0 elements; 0 pairs and 1 element */
  assert_true(fabs(p->path[0].coefficient - sqrt(1.5)) <= 1e-15 && p->path[1].coefficient == 0 &&
              p->path[2].coefficient == 1);
  for (int i = 0; i < 8; i++) {
    clb_weight_slice s;
    assert_int_equal(clb_tensor_product_weights(ctx, &emptied, i, &s), CLB_OK);
    assert_true(s.first == first[i] && s.count == count[i] &&
                s.shape[0] * s.shape[1] * s.shape[2] == count[i]);
  }
  clb_tensor_product_desc by_path = emptied;
  by_path.path_normalization = CLB_PATH_PATH;
  memset(p, 0, sizeof *p);
  assert_int_equal(clb_tensor_product_read(&by_path, p, &error), CLB_OK);
  assert_true(fabs(p->path[0].coefficient - 1) <= 1e-15 &&
              fabs(p->path[2].coefficient - sqrt(.5)) <= 1e-15); /* of 3 and 2 paths */
  free(p);
  clb_text_free(&error.text);
  clb_context_destroy(&ctx);
}

static void masks(void **state) {
  (void)state;
  clb_context *ctx = anything();
  unsigned char mask[32];
  /* terms 3x1o (a path), 2x0e (a path), 2x1o (none) */
  memset(mask, 7, sizeof mask);
  assert_int_equal(clb_tensor_product_mask(ctx, &emptied, mask, 17), CLB_OK);
  for (int i = 0; i < 32; i++) assert_int_equal(mask[i], i < 11 ? 1 : i < 17 ? 0 : 7);
  clb_tensor_product_desc some = emptied;
  some.instructions = partly_empty + 2; /* 3x1o: paths of weight 0, and of no channels */
  some.n_instructions = 4;
  assert_int_equal(clb_tensor_product_mask(ctx, &some, mask, 17), CLB_OK);
  for (int i = 0; i < 17; i++) assert_int_equal(mask[i], 0);
  assert_int_equal(clb_tensor_product_mask(ctx, &emptied, mask, 16), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "size is 16; Z is 17"));
  assert_int_equal(clb_tensor_product_mask(ctx, &emptied, NULL, 17), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "mask is NULL"));
  clb_context_destroy(&ctx);
}

/* ---- mistakes ---- */

static void bad_modes(void **state) {
  (void)state;
  static const struct {
    clb_mode mode;
    int x, y, z, weights;
    const char *says; /* NULL: well */
  } cases[] = {
      {CLB_UVW, 2, 3, 5, 1, NULL},
      {CLB_UVW, 2, 3, 5, 0,
       "instructions[0]: mode uvw needs weights; it has 2 in x, 3 in y, 5 in the output, and no "
       "weights"},
      {CLB_UVU, 2, 3, 2, 0, NULL},
      {CLB_UVU, 2, 3, 3, 1,
       "mode uvu needs as many channels in the output as in x; it has 2 in x, 3 in y, 3 in the "
       "output, and has weights"},
      {CLB_UVV, 2, 3, 3, 0, NULL},
      {CLB_UVV, 2, 3, 2, 0, "mode uvv needs as many channels in the output as in y"},
      {CLB_UUW, 3, 3, 5, 1, NULL},
      {CLB_UUW, 3, 3, 1, 0, NULL},
      {CLB_UUW, 3, 3, 5, 0,
       "mode uuw needs as many channels in y as in x, and without weights one in the output; it "
       "has 3 in x, 3 in y, 5"},
      {CLB_UUW, 3, 2, 5, 1, "mode uuw"},
      {CLB_UUU, 3, 3, 3, 0, NULL},
      {CLB_UUU, 3, 2, 3, 1, "mode uuu needs as many channels in y and in the output as in x"},
      {CLB_UUU, 3, 3, 2, 1, "mode uuu"},
      {CLB_UVUV, 2, 3, 6, 0, NULL},
      {CLB_UVUV, 2, 3, 5, 1, "mode uvuv needs in the output the channels of x times those of y"},
      {CLB_UVU_HALF, 4, 4, 6, 0, NULL},
      {CLB_UVU_HALF, 1, 1, 0, 1, NULL},
      {CLB_UVU_HALF, 4, 4, 8, 0,
       "mode uvu<v needs as many channels in y as in x, say m, and m (m - 1) / 2 in the output"},
      {CLB_UVU_HALF, 4, 3, 4, 0, "mode uvu<v"}, /* 4 (3 - 1) / 2 */
      {CLB_UVW_HALF, 4, 4, 9, 1, NULL},
      {CLB_UVW_HALF, 4, 4, 9, 0, "mode u<vw needs weights, and as many channels in y as in x"},
      {CLB_UVW_HALF, 4, 3, 9, 1, "mode u<vw"},
      {(clb_mode)8, 1, 1, 1, 1, "instructions[0].mode is 8; it must be 0 ... 7"},
      {(clb_mode)-1, 1, 1, 1, 1, "instructions[0].mode is -1"},
  };
  clb_error_sink error = {0};
  clb_tensor_product_problem *p = problem();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char x[32], y[32], z[32];
    clb_instruction q = {0, 0, 0, cases[i].mode, cases[i].weights, 1};
    clb_tensor_product_desc d = {
        .irreps_x = x, .irreps_y = y, .irreps_z = z, .instructions = &q, .n_instructions = 1};
    snprintf(x, sizeof x, "%dx1o", cases[i].x);
    snprintf(y, sizeof y, "%dx1o", cases[i].y);
    snprintf(z, sizeof z, "%dx1e", cases[i].z);
    memset(p, 0, sizeof *p);
    clb_status s = clb_tensor_product_read(&d, p, &error);
    if (s != (cases[i].says ? CLB_ERROR_ARGUMENT : CLB_OK))
      fail_msg("case %d: status %d: %s", (int)i, (int)s, error.text.s ? error.text.s : "");
    if (cases[i].says && !strstr(error.text.s, cases[i].says))
      fail_msg("instead of \"%s\": %s", cases[i].says, error.text.s);
  }
  free(p);
  clb_text_free(&error.text);
}

static void bad_instructions(void **state) {
  (void)state;
  static const struct {
    clb_instruction q;
    const char *says;
  } bad[] = {
      {{-1, 0, 0, CLB_UVU, 1, 1}, "instructions[1].in1 is -1; irreps_x has 2 terms"},
      {{2, 0, 0, CLB_UVU, 1, 1}, "instructions[1].in1 is 2"},
      {{0, 2, 0, CLB_UVU, 1, 1}, "instructions[1].in2 is 2; irreps_y has 2 terms"},
      {{0, 0, 9, CLB_UVU, 1, 1}, "instructions[1].out is 9; irreps_z has 9 terms"},
      {{0, 0, 3, CLB_UVW, 1, 1}, "instructions[1]: 0e times 1o holds no 0e"},
      {{1, 0, 0, CLB_UVW, 1, 1}, "1o times 1o holds no 1o"},
      {{0, 0, 1, CLB_UVU, 1, 1}, "0e times 1o holds no 3o"},
      {{1, 1, 6, CLB_UVU, 1, 1}, "1o times 2e holds no 1e"},
      {{1, 0, 7, CLB_UVW, 1, -1}, "instructions[1].path_weight is -1"},
      {{1, 0, 7, CLB_UVW, 1, NAN}, "path_weight"},
      {{1, 0, 7, CLB_UVW, 1, INFINITY}, "path_weight"},
  };
  clb_error_sink error = {0};
  clb_tensor_product_problem *p = problem();
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    clb_instruction two[] = {paths[0], bad[i].q};
    clb_tensor_product_desc d = described(two, 2);
    memset(p, 0, sizeof *p);
    assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_ERROR_ARGUMENT);
    if (!strstr(error.text.s, bad[i].says))
      fail_msg("instead of \"%s\": %s", bad[i].says, error.text.s);
  }
  /* 2 x 2e9 weights, and 2^93 */
  clb_instruction heavy[] = {{0, 0, 0, CLB_UVU, 1, 1}, {0, 0, 0, CLB_UVU, 1, 1}},
                  heavier = {0, 0, 0, CLB_UVW, 1, 1};
  clb_tensor_product_desc d = {.irreps_x = "2000000000x0e",
                               .irreps_y = "0e",
                               .irreps_z = "2000000000x0e",
                               .instructions = heavy,
                               .n_instructions = 2};
  memset(p, 0, sizeof *p);
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text.s, "weights"));
  d = (clb_tensor_product_desc){.irreps_x = "2147483647x0e",
                                .irreps_y = "2147483647x0e",
                                .irreps_z = "2147483647x0e",
                                .instructions = &heavier,
                                .n_instructions = 1};
  memset(p, 0, sizeof *p);
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text.s, "weights"));
  free(p);
  clb_text_free(&error.text);
}

static void bad_members(void **state) {
  (void)state;
  static const char *const says[] = {
      "irreps_x",
      "irreps_y",
      "irreps_z",
      "irrep_normalization",
      "path_normalization",
      "layout_x",
      "layout_y",
      "layout_z",
      "instructions",
      "n_instructions",
      "n_instructions",
      "indexed is 0x8; it must be a sum of CLB_OPERAND_X, CLB_OPERAND_Y and CLB_OPERAND_W",
      "indexed is 0x5, with CLB_OPERAND_W; shared weights are one row",
      "gradients is 0x10",
      "incoming is 0x9"};
  clb_error_sink error = {0};
  clb_tensor_product_problem *p = problem();
  for (int i = 0; i < (int)(sizeof says / sizeof *says); i++) {
    clb_tensor_product_desc d = described(paths, PATHS);
    if (i == 0) d.irreps_x = "?";
    if (i == 1) d.irreps_y = NULL;
    if (i == 2) d.irreps_z = "1x13e";
    if (i == 3) d.irrep_normalization = (clb_irrep_normalization)3;
    if (i == 4) d.path_normalization = (clb_path_normalization)3;
    if (i == 5) d.layout_x = (clb_layout)2;
    if (i == 6) d.layout_y = (clb_layout)-1;
    if (i == 7) d.layout_z = (clb_layout)3;
    if (i == 8) d.instructions = NULL;
    if (i == 9) d.n_instructions = 0;
    if (i == 10) d.n_instructions = CLB_MAX_PATHS + 1;
    if (i == 11) d.indexed = CLB_OPERAND_Z;
    if (i == 12) d.indexed = CLB_OPERAND_X | CLB_OPERAND_W, d.shared_weights = 1;
    if (i == 13) d.gradients = 16;
    if (i == 14) d.incoming = CLB_OPERAND_X | CLB_OPERAND_Z;
    memset(p, 0, sizeof *p);
    assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_ERROR_ARGUMENT);
    if (strncmp(error.text.s, says[i], strlen(says[i])))
      fail_msg("instead of %s: %s", says[i], error.text.s);
  }
  free(p);
  clb_text_free(&error.text);
}

/* ---- choices ---- */

static void choices(void **state) {
  (void)state;
  clb_error_sink error = {0};
  clb_tensor_product_problem *p = problem(), *same = problem();
  clb_tensor_product_desc d = described(paths, PATHS);
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_OK);
  assert_true(p->indexed == 0 && p->gradients == 15 && p->incoming == 7 && p->shared_weights == 0);
  d.gradients = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W | CLB_OPERAND_Z;
  d.incoming = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
  assert_int_equal(clb_tensor_product_read(&d, same, &error), CLB_OK);
  assert_memory_equal(p, same, sizeof *p);
  d.indexed = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
  d.gradients = CLB_OPERAND_Z;
  d.incoming = CLB_OPERAND_Y;
  memset(p, 0, sizeof *p);
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_OK);
  assert_true(p->indexed == 7 && p->gradients == CLB_OPERAND_Z && p->incoming == CLB_OPERAND_Y);
  d = described(paths + 8, 1); /* no weights: no rows of them */
  d.indexed = CLB_OPERAND_Y | CLB_OPERAND_W;
  memset(p, 0, sizeof *p);
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_OK);
  assert_int_equal(p->indexed, CLB_OPERAND_Y);
  d.indexed = CLB_OPERAND_X;
  d.shared_weights = 5;
  memset(p, 0, sizeof *p);
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_OK);
  assert_true(p->indexed == CLB_OPERAND_X && p->shared_weights == 1);
  free(p);
  free(same);
  clb_text_free(&error.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(coefficients), cmocka_unit_test(slices),
      cmocka_unit_test(no_channels),  cmocka_unit_test(masks),
      cmocka_unit_test(bad_modes),    cmocka_unit_test(bad_instructions),
      cmocka_unit_test(bad_members),  cmocka_unit_test(choices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
