/* src/codegen/compile.c - from IR to the text that a compiler is given: verify, drop barriers,
   lower shuffles, print.

   In this order: only a kernel that obeys the rules can be changed, and binaries are cached by the
   IR as it is before lowering, which is the same for all devices. Of the barriers that lowering
   adds it drops those that order nothing. */
#include "src/codegen/codegen.h"

clb_status clb_codegen_prepare(ir_kernel *k, clb_error_sink *error) {
  char mistake[256] = "";
  if (k->error[0]) return clb_fail(error, CLB_ERROR_INTERNAL, "%s: %s", k->name, k->error);
  if (!ir_verify(k, mistake, sizeof mistake))
    return clb_fail(error, CLB_ERROR_INTERNAL, "%s: %s", k->name, mistake);
  return ir_drop_barriers(k) ? CLB_OK : clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
}

clb_status clb_codegen(const ir_kernel *k, const clb_limits *limits, const clb_dialect *dialect,
                       clb_text *text, clb_error_sink *error) {
  char mistake[256] = "";
  ir_kernel lowered = {0};
  clb_status s = CLB_OK;
  const bool lower = !limits->subgroups && clb_shuffles(k);
  if (lower && k->subgroups > 1)
    return clb_fail(error, CLB_ERROR_UNSUPPORTED,
                    "%s: the device has no sub-groups; a kernel that shuffles can have one per "
                    "group, not %d",
                    k->name, (int)k->subgroups);
  if (lower && !clb_lower_shuffles(k, &lowered))
    s = clb_fail(error, CLB_ERROR_INTERNAL, "%s: %s", k->name, lowered.error);
  if (!s && !clb_print(lower ? &lowered : k, dialect, text, mistake, sizeof mistake))
    s = clb_fail(error, CLB_ERROR_UNSUPPORTED, "%s: %s", k->name, mistake);
  if (text->failed) s = clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory for its text", k->name);
  ir_free(&lowered);
  return s;
}
