/* src/codegen/vector/prelude.c - the common start of kernels printed as C with vector extensions:
   src/codegen/builtins/vector.c, and what depends on the number of lanes. */
#include <string.h>

#include "src/codegen/builtins/builtins.h"
#include "src/codegen/vector/vector.h"

static void lane_lists(int lanes, clb_text *out) {
  clb_text_add(out, "#define L %d\n#define EACH(x) ", lanes);
  for (int r = 0; r < lanes; r++) clb_text_add(out, "%sx", r ? ", " : "");
  clb_text_add(out, "\n#define LANES ");
  for (int r = 0; r < lanes; r++) clb_text_add(out, "%s%d", r ? ", " : "", r);
  clb_text_add(out, "\n");
}

/* d = L/2 ... 1: v = v + v of lane ^ d. */
static void reduction(int lanes, const char *type, clb_text *out) {
  clb_text_add(out, "INLINE %s reduce_%s(%sv v) {\n", type, type, type);
  for (int d = lanes / 2; d; d /= 2) {
    clb_text_add(out, "  v = v + SHUF(%sv, %si, v, v", type, type);
    for (int r = 0; r < lanes; r++) clb_text_add(out, ", %d", r ^ d);
    clb_text_add(out, ");\n");
  }
  clb_text_add(out, "  return v[0];\n}\n");
}

void clb_vector_prelude(const ir_kernel *k, clb_text *out) {
  bool used[IR_BF16 + 1] = {false};
  for (int32_t v = 0; v < k->n; v++) used[k->ins[v].element] = true;
  lane_lists(k->lanes, out);
  for (const clb_builtin *b = clb_builtins_vector; b->name; b++) {
    if (!strcmp(b->name, "f16") ? !used[IR_F16] : !strcmp(b->name, "bf16") && !used[IR_BF16])
      continue;
    clb_text_add(out, "%s", b->text);
  }
  for (int e = IR_I32; e <= IR_BF16; e++)
    if (used[e])
      clb_text_add(out, "ANYWHERE(%s, %s, %s)\n", ir_type_name((ir_type)e),
                   clb_vector_storage((ir_type)e), ir_type_name(ir_register_type((ir_type)e)));
  reduction(k->lanes, "f32", out);
  reduction(k->lanes, "f64", out);
}
