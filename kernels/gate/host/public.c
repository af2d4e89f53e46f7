/* kernels/gate/host/public.c - the calls of gates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gate/host/gate.h"
#include "kernels/host/description.h"
#include "src/problem/irreps.h"
#include "src/tuning/autotune.h"

/* Parts and problem are to be freed. */
static clb_status read_description(const clb_description *d, unsigned *passes,
                                   clb_gate_parts **parts, clb_problem **p) {
  clb_gate_desc desc;
  *parts = NULL;
  clb_status s = clb_description_take(d, &desc, sizeof desc, CLB_GATE, p);
  if (s) return s;
  if (!(*parts = calloc(1, sizeof **parts)))
    return clb_fail(&d->ctx->error, CLB_ERROR_MEMORY, "%s: no memory", d->call);
  clb_problem_set_types(*p, desc.storage, desc.arithmetic, desc.accumulate);
  *passes = desc.passes;
  s = clb_gate_read(&desc, *parts, &d->ctx->error);
  return s ? s : clb_gate_plan(*parts, &(*p)->gate, &d->ctx->error);
}

clb_status clb_gate_create_sized(clb_context *ctx, const clb_gate_desc *given, clb_op **op,
                                 size_t size) {
  clb_tuner tuner;
  clb_gate_parts *parts;
  clb_problem *p;
  unsigned passes = 0;
  if (op) *op = NULL;
  clb_status s = read_description(
      &(clb_description){ctx, "clb_gate_create", "clb_gate_desc", given, size, op, "op"}, &passes,
      &parts, &p);
  if (!s)
    s = clb_op_create(ctx, p, passes & ~CLB_MEASURE,
                      clb_tuner_for(ctx, passes, &clb_test_run_of_rows, &tuner), op);
  free(parts);
  free(p);
  return s;
}

static void print(const clb_irreps *irreps, char out[CLB_IRREPS_BYTES], clb_text *text) {
  clb_irreps_print(irreps, text);
  if (!text->failed) snprintf(out, CLB_IRREPS_BYTES, "%s", text->s);
}

clb_status clb_gate_measure_sized(clb_context *ctx, const clb_gate_desc *given,
                                  clb_gate_sizes *sizes, size_t size) {
  clb_gate_parts *parts;
  clb_problem *p;
  unsigned passes;
  clb_text text[2] = {{0}};
  if (sizes) memset(sizes, 0, sizeof *sizes);
  clb_status s = read_description(
      &(clb_description){ctx, "clb_gate_measure", "clb_gate_desc", given, size, sizes, "sizes"},
      &passes, &parts, &p);
  if (!s) {
    print(&parts->in, sizes->irreps_x, &text[0]);
    print(&parts->out, sizes->irreps_y, &text[1]);
    sizes->x = parts->in.dim;
    sizes->y = parts->out.dim;
    if (text[0].failed || text[1].failed)
      s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_gate_measure: no memory");
  }
  for (int i = 0; i < 2; i++) clb_text_free(&text[i]);
  free(parts);
  free(p);
  return s;
}

clb_status clb_gate_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y) {
  return clb_public_op_run(op, CLB_GATE, CLB_FORWARD, n, (const clb_rows[]){x, y});
}

clb_status clb_gate_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g, clb_rows g_x) {
  return clb_public_op_run(op, CLB_GATE, CLB_BACKWARD, n, (const clb_rows[]){x, g, g_x});
}

clb_status clb_gate_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g, clb_rows a,
                                    clb_rows d_x, clb_rows d_g) {
  return clb_public_op_run(op, CLB_GATE, CLB_DOUBLE_BACKWARD, n,
                           (const clb_rows[]){x, g, a, d_x, d_g});
}
