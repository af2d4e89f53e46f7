/* src/codegen/codegen.c - chooses the printer of a language; the readable listing. */
#include "src/codegen/codegen.h"

#include <stdio.h>

#include "src/ir/listing.h"

bool clb_print(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
               size_t size) {
  static bool (*const printers[])(const ir_kernel *, const clb_dialect *, clb_text *, char *,
                                  size_t) = {
      [CLB_LANGUAGE_OPENCL] = clb_print_c,    [CLB_LANGUAGE_CUDA] = clb_print_c,
      [CLB_LANGUAGE_HIP] = clb_print_c,       [CLB_LANGUAGE_CPU] = clb_print_vector,
      [CLB_LANGUAGE_SPIRV] = clb_print_spirv, [CLB_LANGUAGE_IR] = clb_print_ir};
  if (size) error[0] = 0;
  if ((unsigned)dialect->language < sizeof printers / sizeof *printers)
    return printers[dialect->language](k, dialect, out, error, size);
  snprintf(error, size, "there is no language %d", (int)dialect->language);
  return false;
}

bool clb_print_ir(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                  size_t size) {
  int depth = 0;
  (void)dialect;
  clb_text_add(out, "%s: %d sub-groups of %d lanes, %d rows%s\n", k->name, (int)k->subgroups,
               (int)k->lanes, (int)k->rows, k->large_registers ? ", large registers" : "");
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    if (i->op == IR_ELSE || i->op == IR_END) depth--;
    clb_text_add(out, "%5d  %*s", (int)v, 2 * depth, "");
    ir_list_instruction(k, v, out);
    clb_text_add(out, "\n");
    if (i->op == IR_LOOP || i->op == IR_IF || i->op == IR_ELSE) depth++;
  }
  if (out->failed && size) snprintf(error, size, "no memory");
  return !out->failed;
}
