/* tests/ops/test_rms_norm_targets.c - norms for the targets that only compile spill nothing. */
#include "tests/ops/compile_targets.h"

static void compiles(void **state) {
  static const struct {
    const char *irreps;
    clb_dtype storage;
    unsigned passes;
  } cases[] = {{"77x0e", CLB_BF16, 7},
               {"512x0e", CLB_F32, 7},
               {"16384x0e", CLB_F32, 3},
               {"128x0e+64x1o+32x2e+32x3o", CLB_F32, 7}};
  clb_context *ctx = open_target(state);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const clb_rms_norm_desc d = {.irreps = cases[i].irreps,
                                 .variant = CLB_RMS_NEQUIX,
                                 .storage = cases[i].storage,
                                 .epsilon = 1e-6,
                                 .passes = cases[i].passes};
    clb_op *op;
    OK(ctx, clb_rms_norm_create(ctx, &d, &op));
    for (int pass = 0; pass < 3; pass++) {
      clb_report r;
      if (!(d.passes >> pass & 1)) continue;
      OK(ctx, clb_op_report(op, (clb_pass)pass, &r));
      if (r.spill_bytes > 0)
        fail_msg("%s, pass %d: %d bytes are spilled", d.irreps, pass, r.spill_bytes);
    }
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

int main(void) { return run_on_targets("rms_norm", compiles); }
