/* tests/ops/convolution/test_convolution_units.c - convolutions whose sub-groups have unlike work,
   through a driver: OpenCL CPUs with sub-groups, each taken for a GPU. */
#include "tests/ops/convolution/convolution_problems.h"

static const struct {
  const char *x, *y, *filter;
  clb_dtype type;
  clb_layout layout;
  int nodes, edges;
} problems[] = {{"16x0e+8x1o+4x2e", SH2, SH3, CLB_F32, CLB_IR_MUL, 10, 60},
                {"64x0e+64x1o", SH2, SH2, CLB_F64, CLB_IR_MUL, 20, 65},
                {"33x0e+9x1o", SH1, SH2, CLB_F32, CLB_MUL_IR, 8, 90}};

/* Backward passes, in which the units of a group meet once for some edges and keep what they know
   of the receiver. */
static void agrees_at(place *at, int i) {
  clb_instructions found;
  clb_convolution_desc desc = {.scale = 1};
  edge_list e = random_edges(problems[i].nodes, problems[i].nodes, problems[i].edges, 1);
  OK(at->device.ctx, clb_channel_wise(context_at(at), problems[i].x, problems[i].y,
                                      problems[i].filter, CLB_SORTED, &found));
  desc.product = (clb_tensor_product_desc){.irreps_x = found.irreps_x,
                                           .irreps_y = found.irreps_y,
                                           .irreps_z = found.irreps_z,
                                           .instructions = found.instructions,
                                           .n_instructions = found.n_instructions,
                                           .layout_x = problems[i].layout,
                                           .layout_y = problems[i].layout,
                                           .layout_z = problems[i].layout,
                                           .storage = problems[i].type,
                                           .arithmetic = problems[i].type};
  convolution *c = convolution_create(context_at(at), &desc);
  for (int pass = CLB_BACKWARD; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    convolve_and_compare(c, pass, &e, graph_at(at, &e), (manner){DENSE, MAX}, 7);
    const char *text = NULL;
    size_t bytes = 0;
    OK(c->product.ctx, clb_op_source(c->op[pass], (clb_pass)pass, &text, &bytes));
    assert_non_null(strstr(text, "group_barrier();"));
  }
  convolution_destroy(c);
  edges_destroy(&e);
}

static void units(void **state) {
  int tried = 0;
  (void)state;
  for (place *at = all_places(); at < all_places() + MAX_PLACES && *at->device.name; at++) {
    if (strncmp(at->device.name, "opencl", 6)) continue;
    clb_limits *limits = &context_at(at)->device->limits;
    if (!limits->subgroups || !limits->simd) continue;
    limits->simd = false;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++, tried++) agrees_at(at, (int)i);
  }
  if (!tried) skip_because("no CPU with sub-groups; ci/intel_cpu.sh installs a driver");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(units)};
  find_places();
  return _cmocka_run_group_tests("convolution_units", tests, sizeof tests / sizeof *tests, NULL,
                                 forget_places);
}
