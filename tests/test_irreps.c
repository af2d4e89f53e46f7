/* test_irreps.c - irreps as text, what a description may say, path coefficients and the order of channel-wise paths. */
#include "test.h"

#include <math.h>

#include "../src/irreps.h"
#include "../tools/tensor_product_problems.h"

/* ---- text ---- */

static void good_text(void **state) {
  (void)state;
  static const struct {
    const char *text, *printed;
    int n, dim;
  } good[] = {
      {"", "", 0, 0},
      {"  ", "", 0, 0},
      {"128x0e+64x1o+2y", "128x0e+64x1o+1x2e", 3, 128 + 192 + 5},
      {"3e", "1x3e", 1, 7},
      {"3y+4y", "1x3o+1x4e", 2, 16},
      {"\t 5 x 1 o\n+ 2e ", "5x1o+1x2e", 2, 20},
      {"0x1o+007x0e+7x0e", "0x1o+7x0e+7x0e", 3, 14},
      {"12o", "1x12o", 1, 25},
      {"2147483647x0e", "2147483647x0e", 1, 2147483647},
  };
  clb_irreps irreps;
  clb_error_sink error = {{0}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    clb_text out = {0};
    memset(&irreps, 0xff, sizeof irreps);
    assert_int_equal(clb_irreps_read(good[i].text, "x", &irreps, &error), CLB_OK);
    assert_int_equal(irreps.n, good[i].n);
    assert_int_equal(irreps.dim, good[i].dim);
    clb_irreps_print(&irreps, &out);
    assert_string_equal(out.s, good[i].printed);
    int at = 0;
    for (int t = 0; t < irreps.n; t++) {
      assert_int_equal(irreps.term[t].at, at);
      at += irreps.term[t].mul * (2 * irreps.term[t].l + 1);
    }
    for (int t = irreps.n; t < CLB_MAX_TERMS; t++) assert_true(!irreps.term[t].mul && !irreps.term[t].l && !irreps.term[t].parity && !irreps.term[t].at);
    clb_text_free(&out);
  }
  clb_text_free(&error.text);
}

static void bad_text(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {NULL, "is NULL"},
      {"x0e", "says \"x0e\""},
      {"1x", "says \"1x\""},
      {"1x0", "says \"1x0\""},
      {"1x0e+", "says \"\""},
      {"+1x0e", "says \"+1x0e\""},
      {"1x0e+ 1x0f+1e", "says \" 1x0f+1e\""},
      {"1x0e 1x0e", "says \"1x0e 1x0e\""},
      {"-1x0e", "term"},
      {"1 2x0e", "term"},
      {"1x0E", "term"},
      {"1.5x0e", "term"},
      {"1xx0e", "term"},
      {"1x13e", "at most 12"},
      {"2147483648x0e", "term"},
      {"99999999999999999999999x0e", "term"},
      {"1x99999999999999999999999e", "term"},
      {"715827883x1e", "dimension"},
      {"2147483647x0e+0e", "dimension"},
  };
  clb_irreps irreps;
  clb_error_sink error = {{0}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(clb_irreps_read(bad[i][0], "the_name", &irreps, &error), CLB_ERROR_ARGUMENT);
    assert_int_equal(strncmp(error.text.s, "the_name ", 9), 0);
    if (!strstr(error.text.s, bad[i][1])) fail_msg("\"%s\" gave: %s", bad[i][0], error.text.s);
  }
  char many[3 * CLB_MAX_TERMS + 8] = "0e";
  for (int i = 1; i < CLB_MAX_TERMS; i++) strcat(many, "+0e");
  assert_int_equal(clb_irreps_read(many, "x", &irreps, &error), CLB_OK);
  assert_int_equal(irreps.n, CLB_MAX_TERMS);
  strcat(many, "+0e");
  assert_int_equal(clb_irreps_read(many, "x", &irreps, &error), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text.s, "more than 512 terms"));
  clb_text_free(&error.text);
}

/* ---- descriptions ---- */

/* Into output 0: paths 0 and 2; into output 1: paths 1, 3 and 4. */
static const clb_instruction paths[] = {
    {0, 0, 0, CLB_UVU, 1, 1}, {0, 1, 1, CLB_UVU, 7, 1}, {1, 1, 0, CLB_UVU, 0, 0.25}, {1, 0, 1, CLB_UVU, 1, 2}, {1, 2, 1, CLB_UVU, 1, 1}};
enum { PATHS = sizeof paths / sizeof *paths };

static clb_tensor_product_desc described(const clb_instruction *instructions, int n) {
  return (clb_tensor_product_desc){.irreps_x = "4x0e+4x1o", .irreps_y = "0e+1o+2e+2x3o", .irreps_z = "4x0e+4x1o+3x1o+4x3o", .instructions = instructions, .n_instructions = n};
}

static clb_tensor_product_problem *problem(void) {
  clb_tensor_product_problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  return p;
}

static void coefficients(void **state) {
  (void)state;
  /* sqrt(alpha path_weight / x) by hand: alpha is 2 l3 + 1, (2 l1 + 1)(2 l2 + 1) or 1; x is 2 or 3 paths, or 1. */
  static const double squared[3][2][PATHS] = {
      [CLB_IRREP_COMPONENT] = {{1. / 2, 3. / 3, .25 / 2, 6. / 3, 3. / 3}, {1, 3, .25, 6, 3}},
      [CLB_IRREP_NORM] = {{1. / 2, 3. / 3, 2.25 / 2, 6. / 3, 15. / 3}, {1, 3, 2.25, 6, 15}},
      [CLB_IRREP_NONE] = {{1. / 2, 1. / 3, .25 / 2, 2. / 3, 1. / 3}, {1, 1, .25, 2, 1}},
  };
  static const int weight_at[] = {0, 4, 0, 8, 12};
  clb_error_sink error = {{0}};
  for (int irrep = 0; irrep < 3; irrep++)
    for (int path = 0; path < 3; path++) {
      clb_tensor_product_problem *p = problem();
      clb_tensor_product_desc d = described(paths, PATHS);
      d.irrep_normalization = (clb_irrep_normalization)irrep;
      d.path_normalization = (clb_path_normalization)path;
      d.layout_y = CLB_IR_MUL;
      assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_OK);
      assert_true(p->n_paths == PATHS && p->n_weights == 16 && p->x.dim == 16 && p->y.dim == 23 && p->z.dim == 4 + 12 + 9 + 28);
      assert_true(p->layout_x == CLB_MUL_IR && p->layout_y == CLB_IR_MUL && p->layout_z == CLB_MUL_IR);
      for (int i = 0; i < PATHS; i++) {
        const clb_path *q = &p->path[i];
        assert_true(q->in1 == paths[i].in1 && q->in2 == paths[i].in2 && q->out == paths[i].out && q->mode == CLB_UVU);
        assert_true(q->has_weight == (i != 2) && q->weight_at == weight_at[i]);
        double c = q->coefficient, want = squared[irrep][path == CLB_PATH_NONE][i]; /* of one element each: "path" is "element" */
        assert_true(fabs(c * c - want) <= 1e-15 * want && c > 0);
      }
      free(p);
    }
  clb_text_free(&error.text);
}

/* No channels: no path, but it counts in the normalisation of the others, as in e3nn. */
static void no_channels(void **state) {
  (void)state;
  static const clb_instruction two[] = {{0, 0, 0, CLB_UVU, 1, 1}, {1, 0, 1, CLB_UVU, 1, 1}, {1, 1, 1, CLB_UVU, 1, 0}};
  clb_tensor_product_problem *p = problem();
  clb_error_sink error = {{0}};
  clb_tensor_product_desc d = {.irreps_x = "0x0e+3x1o", .irreps_y = "0e+2e", .irreps_z = "0x0e+3x1o", .instructions = two, .n_instructions = 3};
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_OK);
  assert_true(p->n_paths == 2 && p->path[0].in1 == 1 && p->path[0].weight_at == 0 && p->path[1].weight_at == 3 && p->n_weights == 6);
  assert_true(fabs(p->path[0].coefficient - sqrt(1.5)) <= 1e-15 && p->path[1].coefficient == 0);
  free(p);
  clb_text_free(&error.text);
}

static void bad_descriptions(void **state) {
  (void)state;
  static const struct {
    clb_instruction q;
    clb_status status;
    const char *says;
  } bad[] = {
      {{-1, 0, 0, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "instructions[1].in1 is -1; irreps_x has 2 terms"},
      {{2, 0, 0, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "instructions[1].in1 is 2"},
      {{0, 4, 0, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "instructions[1].in2 is 4; irreps_y has 4 terms"},
      {{0, 0, 4, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "instructions[1].out is 4; irreps_z has 4 terms"},
      {{0, 0, 1, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "instructions[1]: 0e times 0e holds no 1o"},
      {{1, 1, 1, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "1o times 1o holds no 1o"},
      {{1, 2, 0, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "1o times 2e holds no 0e"},
      {{1, 0, 3, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "1o times 0e holds no 3o"},
      {{1, 0, 2, CLB_UVU, 1, 1}, CLB_ERROR_ARGUMENT, "output term (3) as in the term of x (4)"},
      {{0, 3, 3, CLB_UVU, 1, 1}, CLB_ERROR_UNSUPPORTED, "multiplicity 2"},
      {{0, 0, 0, CLB_UVW, 1, 1}, CLB_ERROR_UNSUPPORTED, "instructions[1].mode is uvw"},
      {{0, 0, 0, CLB_UVW_HALF, 1, 1}, CLB_ERROR_UNSUPPORTED, "u<vw"},
      {{0, 0, 0, (clb_mode)8, 1, 1}, CLB_ERROR_ARGUMENT, "mode of an instruction is 8"},
      {{0, 0, 0, CLB_UVU, 1, -1}, CLB_ERROR_ARGUMENT, "instructions[1].path_weight is -1"},
      {{0, 0, 0, CLB_UVU, 1, NAN}, CLB_ERROR_ARGUMENT, "path_weight"},
      {{0, 0, 0, CLB_UVU, 1, INFINITY}, CLB_ERROR_ARGUMENT, "path_weight"},
  };
  clb_error_sink error = {{0}};
  clb_tensor_product_problem *p = problem();
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    clb_instruction two[] = {paths[0], bad[i].q};
    clb_tensor_product_desc d = described(two, 2);
    memset(p, 0, sizeof *p);
    assert_int_equal(clb_tensor_product_read(&d, p, &error), bad[i].status);
    if (!strstr(error.text.s, bad[i].says)) fail_msg("instead of \"%s\": %s", bad[i].says, error.text.s);
  }
  static const char *const members[] = {"irreps_x", "irreps_y", "irreps_z", "irrep_normalization", "path_normalization", "layout_x", "layout_y", "layout_z",
                                        "instructions", "n_instructions", "n_instructions"};
  for (int i = 0; i < (int)(sizeof members / sizeof *members); i++) {
    clb_tensor_product_desc d = described(paths, PATHS);
    if (i == 0) d.irreps_x = "?";
    if (i == 1) d.irreps_y = NULL;
    if (i == 2) d.irreps_z = "1x13e";
    if (i == 3) d.irrep_normalization = (clb_irrep_normalization)3;
    if (i == 4) d.path_normalization = (clb_path_normalization)3;
    if (i == 5) d.layout_x = (clb_layout)2;
    if (i == 6) d.layout_y = (clb_layout)-1;
    if (i == 7) d.layout_z = (clb_layout)2;
    if (i == 8) d.instructions = NULL;
    if (i == 9) d.n_instructions = 0;
    if (i == 10) d.n_instructions = CLB_MAX_PATHS + 1;
    memset(p, 0, sizeof *p);
    assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_ERROR_ARGUMENT);
    if (strncmp(error.text.s, members[i], strlen(members[i]))) fail_msg("instead of %s: %s", members[i], error.text.s);
  }
  clb_instruction heavy[] = {{0, 0, 0, CLB_UVU, 1, 1}, {0, 0, 0, CLB_UVU, 1, 1}};
  clb_tensor_product_desc d = {.irreps_x = "2000000000x0e", .irreps_y = "0e", .irreps_z = "2000000000x0e", .instructions = heavy, .n_instructions = 2};
  memset(p, 0, sizeof *p);
  assert_int_equal(clb_tensor_product_read(&d, p, &error), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text.s, "weights"));
  free(p);
  clb_text_free(&error.text);
}

/* ---- channel-wise products ---- */

enum { MOST = 512 };
static char irreps_z[16384];
static clb_instruction found[MOST];

static clb_context *anything(void) {
  clb_context *ctx;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  return ctx;
}

static void standard_problems(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int paths, x, y, z, w;
  } known[] = {
      {"mace-large", 17, 1152, 16, 9088, 2176},    {"mace-medium", 8, 512, 16, 3328, 1024},     {"nequip-lips", 30, 576, 9, 3264, 960},
      {"nequip-aspirin", 10, 512, 4, 1408, 640},   {"nequip-toluene", 30, 1152, 9, 6528, 1920}, {"nequip-benzene", 68, 2048, 16, 19968, 4352},
      {"nequip-water", 10, 256, 4, 704, 320},      {"nequix-first", 4, 89, 16, 1424, 356},      {"nequix-main", 23, 704, 16, 5472, 1312},
      {"nequix-last", 4, 704, 16, 256, 256},       {"sevennet-first", 4, 128, 16, 2048, 512},   {"sevennet-main", 34, 704, 16, 7776, 1760},
      {"flashtp-l1", 10, 256, 4, 704, 320},        {"flashtp-l2", 30, 576, 9, 3264, 960},       {"flashtp-l3", 68, 1024, 16, 9984, 2176},
      {"flashtp-l4", 130, 1600, 25, 24000, 4160},  {"flashtp-l5", 222, 2304, 36, 49344, 7104},  {"single-1-1-1", 1, 384, 3, 384, 128},
      {"single-2-1-2", 1, 640, 3, 640, 128},       {"single-3-3-3", 1, 896, 7, 896, 128},       {"single-5-5-3", 1, 1408, 11, 896, 128},
      {"single-5-3-5", 1, 1408, 7, 1408, 128},     {"single-6-3-6", 1, 1664, 7, 1664, 128},     {"single-7-4-7", 1, 1920, 9, 1920, 128},
      {"single-7-7-7", 1, 1920, 15, 1920, 128},
  };
  clb_context *ctx = anything();
  assert_int_equal(sizeof known / sizeof *known, STANDARD);
  for (int i = 0; i < STANDARD; i++) {
    int n = -1;
    assert_string_equal(known[i].name, standard[i].name);
    assert_int_equal(clb_channel_wise(ctx, standard[i].x, standard[i].y, standard[i].filter, irreps_z, sizeof irreps_z, found, MOST, &n), CLB_OK);
    clb_tensor_product_desc d = {.irreps_x = standard[i].x, .irreps_y = standard[i].y, .irreps_z = irreps_z, .instructions = found, .n_instructions = n};
    clb_tensor_product_sizes s;
    if (clb_tensor_product_measure(ctx, &d, &s)) fail_msg("%s", clb_error(ctx));
    assert_int_equal(n, known[i].paths);
    assert_int_equal(s.x, known[i].x);
    assert_int_equal(s.y, known[i].y);
    assert_int_equal(s.z, known[i].z);
    assert_int_equal(s.w, known[i].w);
  }
  clb_context_destroy(&ctx);
}

static void path_order(void **state) {
  (void)state;
  static const struct {
    const char *x, *y, *filter, *z;
    int n, pairs[17][2];
  } cases[] = {
      {"128x0e+64x1o+32x2e", SH3, SH3,
       "128x0e+64x0e+32x0e+128x1o+64x1o+64x1o+32x1o+32x1o+128x2e+64x2e+64x2e+32x2e+32x2e+128x3o+64x3o+32x3o+32x3o", 17,
       {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 3}, {0, 2}, {1, 1}, {1, 3}, {2, 0}, {2, 2}, {0, 3}, {1, 2}, {2, 1}, {2, 3}}},
      /* the parity of (-1)^l first, whatever the filter's order */
      {"3x1o+2x1e", "1o", "2o+1e+1o+0o+2e+0e", "3x0e+2x0o+2x1o+3x1e+3x2e+2x2o", 6, {{0, 0}, {1, 0}, {1, 0}, {0, 0}, {0, 0}, {1, 0}}},
      {"1x0e", "1o", "0e", "", 0, {{0, 0}}},
      {"", "1o", "0e", "", 0, {{0, 0}}},
  };
  clb_context *ctx = anything();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    int n = -1;
    assert_int_equal(clb_channel_wise(ctx, cases[c].x, cases[c].y, cases[c].filter, irreps_z, sizeof irreps_z, found, MOST, &n), CLB_OK);
    assert_int_equal(n, cases[c].n);
    assert_string_equal(irreps_z, cases[c].z);
    for (int i = 0; i < n; i++) {
      const clb_instruction *q = &found[i];
      assert_true(q->in1 == cases[c].pairs[i][0] && q->in2 == cases[c].pairs[i][1] && q->out == i);
      assert_true(q->mode == CLB_UVU && q->has_weight == 1 && q->path_weight == 1);
    }
  }
  clb_context_destroy(&ctx);
}

static void channel_wise_errors(void **state) {
  (void)state;
  clb_context *ctx = anything();
  int n = -1;
#define FAILS(x, y, filter, z, size, to, max, count, says)                                                       \
  do {                                                                                                           \
    assert_int_equal(clb_channel_wise(ctx, x, y, filter, z, size, to, max, count), CLB_ERROR_ARGUMENT);          \
    if (!strstr(clb_error(ctx), says)) fail_msg("instead of \"%s\": %s", says, clb_error(ctx));                  \
  } while (0)
  FAILS("?", SH1, SH1, irreps_z, sizeof irreps_z, found, MOST, &n, "irreps_x");
  FAILS("0e", "?", SH1, irreps_z, sizeof irreps_z, found, MOST, &n, "irreps_y");
  FAILS("0e", SH1, NULL, irreps_z, sizeof irreps_z, found, MOST, &n, "filter");
  FAILS("0e", SH1, SH1, NULL, 1, found, MOST, &n, "irreps_z is NULL");
  FAILS("0e", SH1, SH1, irreps_z, sizeof irreps_z, NULL, MOST, &n, "instructions is NULL");
  FAILS("0e", SH1, SH1, irreps_z, sizeof irreps_z, found, MOST, NULL, "n_instructions is NULL");
  memset(irreps_z, '?', 16);
  FAILS("0e", SH1, SH1, irreps_z, 9, found, MOST, &n, "irreps_z_size is 9; 10 bytes are needed");
  assert_true(n == 2 && irreps_z[0] == '?');
  n = -1;
  FAILS("0e", SH1, SH1, irreps_z, 10, found, 1, &n, "max_instructions is 1; there are 2");
  assert_int_equal(n, 2);
  FAILS("0e", SH1, SH1, NULL, 0, NULL, 0, &n, "10 bytes");
  assert_int_equal(clb_channel_wise(ctx, "0e", SH1, SH1, irreps_z, 10, found, 2, &n), CLB_OK);
  assert_true(n == 2 && !strcmp(irreps_z, "1x0e+1x1o") && irreps_z[10] == '?');
  /* 30 x 18 paths */
  char many[30 * 4 + 1] = "0e", more[18 * 4 + 1] = "1o";
  for (int i = 1; i < 30; i++) strcat(many, "+0e");
  for (int i = 1; i < 18; i++) strcat(more, "+1o");
  FAILS(many, more, "1o", irreps_z, sizeof irreps_z, found, MOST, &n, "540 paths");
  assert_int_equal(n, 540);
  clb_context_destroy(&ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(good_text),         cmocka_unit_test(bad_text),    cmocka_unit_test(coefficients),
                                     cmocka_unit_test(no_channels),       cmocka_unit_test(bad_descriptions), cmocka_unit_test(standard_problems),
                                     cmocka_unit_test(path_order),        cmocka_unit_test(channel_wise_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
