/* tests/problem/test_irreps.c - irreps as text, and the named products: their paths and the order
   of the paths. */
#include "tests/test.h"

#include "src/problem/irreps.h"
#include "src/problem/wigner.h"
#include "tools/ops/tensor_product_problems.h"

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
  clb_error_sink error = {0};
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
    for (int t = irreps.n; t < CLB_MAX_TERMS; t++)
      assert_true(!irreps.term[t].mul && !irreps.term[t].l && !irreps.term[t].parity &&
                  !irreps.term[t].at);
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
  clb_error_sink error = {0};
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

/* ---- named products ---- */

static clb_instructions found;

static clb_context *anything(void) {
  clb_context *ctx;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  return ctx;
}

/* The sizes of `found` as a description. */
static clb_tensor_product_sizes measured(clb_context *ctx) {
  clb_tensor_product_desc d = {.irreps_x = found.irreps_x,
                               .irreps_y = found.irreps_y,
                               .irreps_z = found.irreps_z,
                               .instructions = found.instructions,
                               .n_instructions = found.n_instructions};
  clb_tensor_product_sizes s;
  if (clb_tensor_product_measure(ctx, &d, &s)) fail_msg("%s", clb_error(ctx));
  return s;
}

typedef struct {
  int in1, in2, out;
} path;

static void expect(const char *x, const char *y, const char *z, int n, const path *paths,
                   clb_mode mode, int has_weight) {
  assert_string_equal(found.irreps_x, x);
  assert_string_equal(found.irreps_y, y);
  assert_string_equal(found.irreps_z, z);
  assert_int_equal(found.n_instructions, n);
  for (int i = 0; i < n; i++) {
    const clb_instruction *q = &found.instructions[i];
    if (q->in1 != paths[i].in1 || q->in2 != paths[i].in2 || q->out != paths[i].out)
      fail_msg("path %d of %s (x) %s is %d %d -> %d instead of %d %d -> %d", i, x, y, q->in1,
               q->in2, q->out, paths[i].in1, paths[i].in2, paths[i].out);
    assert_true(q->mode == mode && q->has_weight == has_weight && q->path_weight == 1);
  }
}

static void standard_problems(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int paths, x, y, z, w;
  } known[] = {
      {"mace-large", 17, 1152, 16, 9088, 2176},
      {"mace-medium", 8, 512, 16, 3328, 1024},
      {"nequip-lips", 30, 576, 9, 3264, 960},
      {"nequip-aspirin", 10, 512, 4, 1408, 640},
      {"nequip-toluene", 30, 1152, 9, 6528, 1920},
      {"nequip-benzene", 68, 2048, 16, 19968, 4352},
      {"nequip-water", 10, 256, 4, 704, 320},
      {"nequix-first", 4, 89, 16, 1424, 356},
      {"nequix-main", 23, 704, 16, 5472, 1312},
      {"nequix-last", 4, 704, 16, 256, 256},
      {"sevennet-first", 4, 128, 16, 2048, 512},
      {"sevennet-main", 34, 704, 16, 7776, 1760},
      {"flashtp-l1", 10, 256, 4, 704, 320},
      {"flashtp-l2", 30, 576, 9, 3264, 960},
      {"flashtp-l3", 68, 1024, 16, 9984, 2176},
      {"flashtp-l4", 130, 1600, 25, 24000, 4160},
      {"flashtp-l5", 222, 2304, 36, 49344, 7104},
      {"single-1-1-1", 1, 384, 3, 384, 128},
      {"single-2-1-2", 1, 640, 3, 640, 128},
      {"single-3-3-3", 1, 896, 7, 896, 128},
      {"single-5-5-3", 1, 1408, 11, 896, 128},
      {"single-5-3-5", 1, 1408, 7, 1408, 128},
      {"single-6-3-6", 1, 1664, 7, 1664, 128},
      {"single-7-4-7", 1, 1920, 9, 1920, 128},
      {"single-7-7-7", 1, 1920, 15, 1920, 128},
      {"tetris-1", 24, 16, 16, 368, 4 * 64 + 3 * 24 + 6 * 24 + 7 * 16 + 4 * 16},
      {"tetris-2", 5, 368, 9, 7, (24 + 16) + 6 * (64 + 24 + 16)},
      {"diffdock-1", 10, 156, 4, 156, 6928},
      {"diffdock-2", 12, 156, 9, 156, 7128},
      {"e3tools-conv", 4, 112, 4, 128, 64 * 80 + 64 * 16 + 16 * 16 + 16 * 80},
      {"e3tools-transformer", 4, 112, 4, 112, 64 * 64 + 64 * 16 + 16 * 16 + 16 * 64},
  };
  clb_context *ctx = anything();
  assert_int_equal(sizeof known / sizeof *known, STANDARD);
  for (int i = 0; i < STANDARD; i++) {
    assert_string_equal(known[i].name, standard[i].name);
    if (standard[i].kind == FULLY_CONNECTED)
      assert_int_equal(
          clb_fully_connected(ctx, standard[i].x, standard[i].y, standard[i].filter, &found),
          CLB_OK);
    else
      assert_int_equal(clb_channel_wise(ctx, standard[i].x, standard[i].y, standard[i].filter,
                                        CLB_SORTED, &found),
                       CLB_OK);
    clb_tensor_product_sizes s = measured(ctx);
    assert_int_equal(found.n_instructions, known[i].paths);
    assert_int_equal(s.x, known[i].x);
    assert_int_equal(s.y, known[i].y);
    assert_int_equal(s.z, known[i].z);
    assert_int_equal(s.w, known[i].w);
  }
  clb_context_destroy(&ctx);
}

static void channel_wise(void **state) {
  (void)state;
  static const struct {
    const char *x, *y, *filter, *full_x, *full_y, *z;
    int n;
    path sorted[17], as_found[17];
  } cases[] = {
      {"128x0e+64x1o+32x2e",
       SH3,
       SH3,
       "128x0e+64x1o+32x2e",
       "1x0e+1x1o+1x2e+1x3o",
       "128x0e+64x0e+32x0e+128x1o+64x1o+64x1o+32x1o+32x1o+128x2e+64x2e+64x2e+32x2e+32x2e+128x3o+"
       "64x3o+32x3o+32x3o",
       17,
       {{0, 0, 0},
        {1, 1, 1},
        {2, 2, 2},
        {0, 1, 3},
        {1, 0, 4},
        {1, 2, 5},
        {2, 1, 6},
        {2, 3, 7},
        {0, 2, 8},
        {1, 1, 9},
        {1, 3, 10},
        {2, 0, 11},
        {2, 2, 12},
        {0, 3, 13},
        {1, 2, 14},
        {2, 1, 15},
        {2, 3, 16}},
       {{0, 0, 0},
        {0, 1, 3},
        {0, 2, 8},
        {0, 3, 13},
        {1, 0, 4},
        {1, 1, 1},
        {1, 1, 9},
        {1, 2, 5},
        {1, 2, 14},
        {1, 3, 10},
        {2, 0, 11},
        {2, 1, 6},
        {2, 1, 15},
        {2, 2, 2},
        {2, 2, 12},
        {2, 3, 7},
        {2, 3, 16}}},
      /* the parity of (-1)^l first, whatever the filter's order */
      {"3x1o+2x1e",
       "1o",
       "2o+1e+1o+0o+2e+0e",
       "3x1o+2x1e",
       "1x1o",
       "3x0e+2x0o+2x1o+3x1e+3x2e+2x2o",
       6,
       {{0, 0, 0}, {1, 0, 1}, {1, 0, 2}, {0, 0, 3}, {0, 0, 4}, {1, 0, 5}},
       {{0, 0, 0}, {0, 0, 3}, {0, 0, 4}, {1, 0, 1}, {1, 0, 2}, {1, 0, 5}}},
      /* terms without channels stay, since instructions count them */
      {"0x0e+2x1e", "3x0e", "1e", "0x0e+2x1e", "3x0e", "2x1e", 1, {{1, 0, 0}}, {{1, 0, 0}}},
      {"1x0e", "1o", "0e", "1x0e", "1x1o", "", 0, {{0, 0, 0}}, {{0, 0, 0}}},
      {"1x0e", "0e", "", "1x0e", "1x0e", "", 0, {{0, 0, 0}}, {{0, 0, 0}}},
      {"", "1o", "0e", "", "1x1o", "", 0, {{0, 0, 0}}, {{0, 0, 0}}},
  };
  clb_context *ctx = anything();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    memset(&found, 0xff, sizeof found);
    assert_int_equal(
        clb_channel_wise(ctx, cases[c].x, cases[c].y, cases[c].filter, CLB_SORTED, &found), CLB_OK);
    expect(cases[c].full_x, cases[c].full_y, cases[c].z, cases[c].n, cases[c].sorted, CLB_UVU, 1);
    memset(&found, 0xff, sizeof found);
    assert_int_equal(
        clb_channel_wise(ctx, cases[c].x, cases[c].y, cases[c].filter, CLB_AS_FOUND, &found),
        CLB_OK);
    expect(cases[c].full_x, cases[c].full_y, cases[c].z, cases[c].n, cases[c].as_found, CLB_UVU, 1);
  }
  clb_context_destroy(&ctx);
}

static void fully_connected(void **state) {
  (void)state;
  /* 1o 1o: 0e 1e;  1o 1e: 0o, whose term has no channels, and 1o;  1e has no channels */
  static const path all[] = {{0, 0, 1}, {0, 0, 3}, {0, 1, 0}, {0, 1, 2},
                             {1, 0, 0}, {1, 0, 2}, {1, 1, 1}, {1, 1, 3}};
  clb_context *ctx = anything();
  assert_int_equal(clb_fully_connected(ctx, "3x1o+0x1e", "2x1o+1e", "0x0o+4x0e+5x1o+2x1e", &found),
                   CLB_OK);
  expect("3x1o+0x1e", "2x1o+1x1e", "0x0o+4x0e+5x1o+2x1e", 8, all, CLB_UVW, 1);
  assert_int_equal(measured(ctx).w, 3 * 2 * 4 + 3 * 2 * 2 + 3 * 5);
  clb_context_destroy(&ctx);
}

static void full(void **state) {
  (void)state;
  static const struct {
    const char *x, *y, *filter, *simple_x, *simple_y, *z;
    int n;
    path paths[8];
  } cases[] = {
      {"1o", "1o", NULL, "1x1o", "1x1o", "1x0e+1x1e+1x2e", 3, {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}}},
      /* 0o < 0e < 1o < 1e < 2o: other than channel-wise */
      {"2x1o+3x1e",
       "5x1o",
       "",
       "2x1o+3x1e",
       "5x1o",
       "15x0o+10x0e+15x1o+10x1e+15x2o+10x2e",
       6,
       {{0, 0, 1}, {0, 0, 3}, {0, 0, 5}, {1, 0, 0}, {1, 0, 2}, {1, 0, 4}}},
      {"2x1o+3x1e", "5x1o", "2e+0o", "2x1o+3x1e", "5x1o", "15x0o+10x2e", 2, {{0, 0, 1}, {1, 0, 0}}},
      /* adjacent terms merge, empty terms are dropped, and equal outputs keep their order */
      {"1x0e+2x0e+0x1o+1x0e+2x1e",
       " 0x0e + 3x0e + 0x2e + 4x0e ",
       " ",
       "4x0e+2x1e",
       "7x0e",
       "28x0e+14x1e",
       2,
       {{0, 0, 0}, {1, 0, 1}}},
      {"2x0e+3x0o+5x0e",
       "1x0e+1x0o",
       NULL,
       "2x0e+3x0o+5x0e",
       "1x0e+1x0o",
       "2x0o+3x0o+5x0o+2x0e+3x0e+5x0e",
       6,
       {{0, 0, 3}, {0, 1, 0}, {1, 0, 1}, {1, 1, 4}, {2, 0, 5}, {2, 1, 2}}},
      {"12e", "12e", "0e", "1x12e", "1x12e", "1x0e", 1, {{0, 0, 0}}},
      {"6e",
       "6o",
       NULL,
       "1x6e",
       "1x6o",
       "1x0o+1x1o+1x2o+1x3o+1x4o+1x5o+1x6o+1x7o+1x8o+1x9o+1x10o+1x11o+1x12o",
       13,
       {{0, 0, 0}}},
      {"0x1o", "1o", NULL, "", "1x1o", "", 0, {{0, 0, 0}}},
  };
  clb_context *ctx = anything();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    path paths[13];
    for (int i = 0; i < 13; i++)
      paths[i] = cases[c].n <= 8 && i < 8 ? cases[c].paths[i] : (path){0, 0, i};
    memset(&found, 0xff, sizeof found);
    assert_int_equal(clb_full(ctx, cases[c].x, cases[c].y, cases[c].filter, &found), CLB_OK);
    expect(cases[c].simple_x, cases[c].simple_y, cases[c].z, cases[c].n, paths, CLB_UVUV, 0);
    if (found.n_instructions) assert_int_equal(measured(ctx).w, 0);
  }
  clb_context_destroy(&ctx);
}

static void elementwise(void **state) {
  (void)state;
  static const struct {
    const char *x, *y, *filter, *split_x, *split_y, *z;
    int n;
    path paths[8];
  } cases[] = {
      /* e3nn's own examples */
      {"5x1o+5x1e",
       "10x1e",
       "0e+0o",
       "5x1o+5x1e",
       "5x1e+5x1e",
       "5x0o+5x0e",
       2,
       {{0, 0, 0}, {1, 1, 1}}},
      {"5x0e+5x1e",
       "4x0e+6x1e",
       NULL,
       "4x0e+1x0e+5x1e",
       "4x0e+1x1e+5x1e",
       "4x0e+1x1e+5x0e+5x1e+5x2e",
       5,
       {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {2, 2, 3}, {2, 2, 4}}},
      /* outputs in the order found, not sorted; adjacent terms merge before they are cut */
      {"2x1o+1x1o+0x0e+4x0o",
       "2x0o+3x2e+2x0e",
       NULL,
       "2x1o+1x1o+2x0o+2x0o",
       "2x0o+1x2e+2x2e+2x0e",
       "2x1e+1x1o+1x2o+1x3o+2x2o+2x0o",
       6,
       {{0, 0, 0}, {1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {2, 2, 4}, {3, 3, 5}}},
      {"", "0x1o", NULL, "", "", "", 0, {{0, 0, 0}}},
  };
  clb_context *ctx = anything();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    memset(&found, 0xff, sizeof found);
    assert_int_equal(clb_elementwise(ctx, cases[c].x, cases[c].y, cases[c].filter, &found), CLB_OK);
    expect(cases[c].split_x, cases[c].split_y, cases[c].z, cases[c].n, cases[c].paths, CLB_UUU, 0);
  }
  /* the texts may point into an earlier product */
  assert_int_equal(clb_elementwise(ctx, "5x0e", "4x0e+1x1e", NULL, &found), CLB_OK);
  assert_int_equal(clb_full(ctx, found.irreps_x, found.irreps_y, found.irreps_z, &found), CLB_OK);
  assert_string_equal(found.irreps_z, "20x0e+5x1e");
  clb_context_destroy(&ctx);
}

/* n terms "1x`irrep`". */
static const char *repeated(const char *irrep, int n) {
  static char text[2][8 * CLB_MAX_TERMS];
  static int which;
  char *s = text[which = 1 - which];
  s[0] = 0;
  for (int i = 0; i < n; i++) strcat(strcat(s, i ? "+" : ""), irrep);
  return s;
}

static void named_errors(void **state) {
  (void)state;
  clb_context *ctx = anything();
#define FAILS(call, says)                                                                          \
  do {                                                                                             \
    memset(&found, '?', sizeof found);                                                             \
    assert_int_equal(call, CLB_ERROR_ARGUMENT);                                                    \
    if (!strstr(clb_error(ctx), says)) fail_msg("instead of \"%s\": %s", says, clb_error(ctx));    \
  } while (0)
#define FAILS_EMPTY(call, says)                                                                    \
  do {                                                                                             \
    FAILS(call, says);                                                                             \
    assert_true(!found.n_instructions && !*found.irreps_x && !*found.irreps_y &&                   \
                !*found.irreps_z);                                                                 \
  } while (0)
  FAILS_EMPTY(clb_channel_wise(ctx, "?", SH1, SH1, CLB_SORTED, &found), "irreps_x");
  FAILS_EMPTY(clb_channel_wise(ctx, "0e", "?", SH1, CLB_SORTED, &found), "irreps_y");
  FAILS_EMPTY(clb_channel_wise(ctx, "0e", SH1, NULL, CLB_SORTED, &found), "filter is NULL");
  FAILS_EMPTY(clb_channel_wise(ctx, "0e", SH1, SH1, (clb_path_order)2, &found), "order is 2");
  FAILS(clb_channel_wise(ctx, "0e", SH1, SH1, CLB_SORTED, NULL), "clb_channel_wise: found is NULL");
  FAILS_EMPTY(clb_fully_connected(ctx, "0e", NULL, "0e", &found), "irreps_y is NULL");
  FAILS_EMPTY(clb_fully_connected(ctx, "0e", "0e", NULL, &found), "irreps_z is NULL");
  FAILS(clb_fully_connected(ctx, "0e", "0e", "0e", NULL), "found is NULL");
  FAILS_EMPTY(clb_full(ctx, NULL, "0e", NULL, &found), "irreps_x is NULL");
  FAILS_EMPTY(clb_full(ctx, "0e", "0e", "x", &found), "filter is \"x\"");
  FAILS_EMPTY(clb_full(ctx, "0e+7e", "6o", NULL, &found),
              "clb_full: l = 7 times l = 6 goes up to 13");
  FAILS_EMPTY(clb_full(ctx, "65536x0e", "32768x0e", NULL, &found), "65536 times 32768 channels");
  FAILS_EMPTY(clb_elementwise(ctx, "3x0e", "2x0e+2x1o", NULL, &found),
              "irreps_x has 3 channels and irreps_y 4");
  FAILS_EMPTY(clb_elementwise(ctx, "0e", "0e", "1", &found), "filter");
  FAILS_EMPTY(clb_elementwise(ctx, "7e", "7e", NULL, &found), "goes up to 14");
  /* more than 512 paths, and exactly 512 */
  FAILS_EMPTY(
      clb_channel_wise(ctx, repeated("0e", 30), repeated("1o", 18), "1o", CLB_SORTED, &found),
      "clb_channel_wise: there are 540 paths; at most 512");
  FAILS_EMPTY(
      clb_fully_connected(ctx, repeated("0e", 19), repeated("0e", 9), "0e+0o+0e+0e", &found),
      "clb_fully_connected: there are 513 paths");
  FAILS_EMPTY(clb_full(ctx, "0e+1e+0e+1e+0e", repeated("0e+0o", 60), NULL, &found),
              "clb_full: there are 600 paths");
  FAILS_EMPTY(clb_elementwise(ctx, repeated("2e+1e", 150), repeated("1e+1o", 150), NULL, &found),
              "clb_elementwise: there are 900 paths");
  assert_int_equal(
      clb_channel_wise(ctx, repeated("0e", 32), repeated("12o", 16), "12o", CLB_AS_FOUND, &found),
      CLB_OK);
  assert_true(found.n_instructions == 512 && strlen(found.irreps_z) == 512 * 6 - 1 &&
              found.instructions[511].out == 511);
  FAILS_EMPTY(clb_elementwise(ctx, repeated("2x0e+2x0o", 256), "1x0e+1023x0o", NULL, &found),
              "clb_elementwise: terms that pair up are more than 512");
  clb_context_destroy(&ctx);
}

/* ---- 3j symbols ---- */

static void nonzeros(void **state) {
  enum { MAX = 8, N = 2 * MAX + 1 };
  double *C = malloc(sizeof *C * N * N * N);
  (void)state;
  assert_non_null(C);
  for (int l1 = 0; l1 <= MAX; l1++)
    for (int l2 = 0; l2 <= MAX; l2++)
      for (int l3 = 0; l3 <= MAX; l3++) {
        int n = 0;
        clb_wigner_3j(l1, l2, l3, C);
        for (int i = 0; i < (2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1); i++) n += C[i] != 0;
        if (clb_wigner_nonzeros(l1, l2, l3) != n)
          fail_msg("%d %d %d: %d, not %d", l1, l2, l3, clb_wigner_nonzeros(l1, l2, l3), n);
      }
  free(C);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_text),         cmocka_unit_test(bad_text),
      cmocka_unit_test(standard_problems), cmocka_unit_test(channel_wise),
      cmocka_unit_test(fully_connected),   cmocka_unit_test(full),
      cmocka_unit_test(elementwise),       cmocka_unit_test(named_errors),
      cmocka_unit_test(nonzeros)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
