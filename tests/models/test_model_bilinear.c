/* tests/models/test_model_bilinear.c - model files with bilinear gates whose metadata do not agree:
   each is refused, and the sentence names the key. */
#include "tests/tools/convert_runner.h"
#include "tests/models/model_places.h"

/* The key's value becomes another of the same length. */
static void refuse(const char *key, const char *from, const char *to, const char *what) {
  static char file[1 << 16]; /* after 8 bytes, text */
  FILE *f = fopen(convert_out, "rb");
  assert_non_null(f);
  const size_t n = fread(file, 1, sizeof file - 1, f);
  fclose(f);
  const char *said = format("\"%s\":\"%s\"", key, from);
  char *at = strstr(file + 8, said);
  assert_non_null(at);
  assert_int_equal(strlen(from), strlen(to));
  memcpy(at + strlen(said) - 1 - strlen(from), to, strlen(to));
  f = fopen("changed", "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(file, 1, n, f), n);
  fclose(f);
  clb_context *ctx;
  clb_model *m;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  const clb_status s =
      clb_model_open(ctx, "changed", &(clb_model_options){.knots = CLB_NO_KNOTS}, &m);
  if (s != CLB_ERROR_ARGUMENT || m || !strstr(clb_error(ctx), what))
    fail_msg("status %d, not \"%s\": %s", s, what, clb_error(ctx));
  clb_context_destroy(&ctx);
  unlink("changed");
}

static void refusals(void **state) {
  (void)state;
  outcome converted = run_convert(
      NULL, NULL, format("%s/sevennet/equflash_v2_bilinear.pth", getenv("CLB_TEST_DATA")),
      convert_out);
  if (converted.status) fail_msg("%s", converted.err);
  forget(&converted);
  static const char *const bad[][4] = {
      {"self_connection", "none", "some", "self_connection"},
      {"norm", "centred", "central", "'norm' is \"central\""},
      {"layers.0.irreps_second", "3x0e+3x1o", "3x0o+3x1o",
       "layers.0.irreps_second must begin with 0e"},
      {"layers.0.irreps_second", "3x0e+3x1o", "3x0e+2x1o",
       "layers.0.irreps_second: all irreps must have as many channels"},
      {"layers.0.irreps_first", "3x1o", "3x1e", "1e times 0e holds no 1o"},
      {"layers.0.irreps_second", "3x0e+3x1o", "3x0e+3x1e", "holds no 0e"},
      {"layers.0.irreps_product", "3x0e+3x1o", "3x0e+2x1o", "its message has 2 channels"},
      {"layers.0.product_paths", "0,0,1 0,1,0", "0,0,1 0,2,0", "layers.0.product_paths"},
      {"layers.0.product_paths", "0,0,1 0,1,0", "0,0,1 0,0,1", "make one message"},
      {"layers.0.feed_forward.irreps_first", "6x1o", "6x1e", "1e times 0e holds no 1o"},
      {"layers.1.irreps_out", "3x0e+3x1o+3x1e", "3x0e+3x1o+3x2e",
       "feed_forward.irreps_first has 6x1e, which the features do not hold"},
      {"layers.0.feed_forward", "bilinear", "trilinea", "'layers.0.feed_forward' is"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refuse(bad[i][0], bad[i][1], bad[i][2], bad[i][3]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, make_folder, remove_converted);
}
