/* tests/ops/tensor_product/test_product_grid.c - single paths over a grid of multiplicities and
   degrees (OpenEquivariance's): on $CLB_DEVICE where that is set, else all of them interpreted and
   some compiled. */
#include "tests/ops/tensor_product/product_problems.h"

static const struct {
  int x, y, z;
  clb_mode mode;
} channels[] = {
    {1, 1, 1, CLB_UVU},     {2, 1, 2, CLB_UVU},     {4, 1, 4, CLB_UVU},     {8, 1, 8, CLB_UVU},
    {16, 1, 16, CLB_UVU},   {32, 1, 32, CLB_UVU},   {5, 1, 5, CLB_UVU},     {13, 1, 13, CLB_UVU},
    {19, 1, 19, CLB_UVU},   {33, 1, 33, CLB_UVU},   {49, 1, 49, CLB_UVU},   {50, 1, 50, CLB_UVU},
    {123, 1, 123, CLB_UVU}, {128, 1, 128, CLB_UVU}, {256, 1, 256, CLB_UVU}, {512, 1, 512, CLB_UVU},
    {1, 1, 1, CLB_UVW},     {2, 1, 2, CLB_UVW},     {4, 1, 4, CLB_UVW},     {8, 1, 8, CLB_UVW},
    {16, 1, 16, CLB_UVW},   {32, 1, 32, CLB_UVW},   {5, 1, 5, CLB_UVW},     {13, 1, 13, CLB_UVW},
    {19, 1, 19, CLB_UVW},   {1, 2, 1, CLB_UVW},     {1, 4, 1, CLB_UVW},     {1, 16, 1, CLB_UVW},
    {1, 32, 1, CLB_UVW},    {16, 3, 16, CLB_UVW},   {16, 9, 16, CLB_UVW},   {24, 24, 24, CLB_UVW},
    {32, 32, 32, CLB_UVW},  {16, 3, 16, CLB_UVU},   {16, 9, 16, CLB_UVU}};
static const int degrees[][3] = {{0, 0, 0}, {1, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 0, 2},
                                 {2, 2, 4}, {2, 2, 2}, {5, 3, 5}, {7, 2, 5}};
enum {
  DEGREES = sizeof degrees / sizeof *degrees,
  POINTS = DEGREES * (sizeof channels / sizeof *channels)
};

/* Layouts and whether the weights are shared change from point to point. */
static void point(clb_context *ctx, int i, unsigned passes) {
  const int *l = degrees[i % DEGREES], c = i / DEGREES, odd = (l[0] + l[1]) % 2;
  char x[32], y[32], z[32];
  snprintf(x, sizeof x, "%dx%dy", channels[c].x, l[0]);
  snprintf(y, sizeof y, "%dx%dy", channels[c].y, l[1]);
  snprintf(z, sizeof z, "%dx%d%c", channels[c].z, l[2], odd ? 'o' : 'e');
  const clb_instruction path[] = {{0, 0, 0, channels[c].mode, 1, 1}};
  tensor_problem p = LISTED(x, y, z, path, LAYOUTS_OF(MUL_IR, MUL_IR, MUL_IR));
  set_layouts(&p, i % 2 | i / 3 % 2 << 1 | i / 5 % 2 << 2);
  p.desc.shared_weights = path->mode == CLB_UVW && i % 4 == 3;
  for (clb_dtype type = CLB_F32; type <= CLB_F64; type++)
    expect_passes(ctx, &tool_op_tensor_product, &(tool_kernel){&p, type, type, false}, passes,
                  &(tool_data){.rows = 3});
}

/* Every `step`th point; one pass of each, if that leaves some out. */
static void grid(const char *name, int step) {
  clb_context *ctx = NULL;
  OK(ctx, clb_context_create(name, &ctx));
  for (int i = 0; i < POINTS; i += step) point(ctx, i, step == 1 ? 7 : CLB_PASS_BIT(i / step % 3));
  clb_context_destroy(&ctx);
}

static void whole(void **state) {
  (void)state;
  const char *asked = getenv("CLB_DEVICE");
  grid(asked && *asked ? asked : "cpu:interpreter", few_cases() ? 5 : 1);
}

static void some_compiled(void **state) {
  (void)state;
  grid("cpu", 23);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(some_compiled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
