/* kernels/norm/rms_norm.c - rows divided by the root of a mean of their squares, and their
   derivatives: the kernel as a whole. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/norm/norm.h"
#include "src/problem/irreps.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_rms_norm_problem *norm = &p->rms_norm;
  (void)limits;
  if (norm->irreps.dim < 1 || norm->irreps.dim > CLB_NORM_MOST_COLUMNS)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "irreps have %d numbers in a row; a norm's have 1 ... %d", norm->irreps.dim,
                    CLB_NORM_MOST_COLUMNS);
  if (norm->layout != CLB_MUL_IR && norm->layout != CLB_IR_MUL)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "layout is %d; a norm's is CLB_MUL_IR or CLB_IR_MUL",
                    norm->layout);
  if (norm->variant < CLB_RMS_PLAIN || norm->variant > CLB_RMS_TERMS)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "variant is %d; it must be CLB_RMS_PLAIN ... CLB_RMS_TERMS", norm->variant);
  for (int t = 0; t < norm->irreps.n; t++)
    if (!(norm->factor[t] >= 0) || !isfinite(norm->factor[t]))
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "factors: number %d is %g; it must be finite and at least 0", t,
                      norm->factor[t]);
  if (!(norm->epsilon >= 0) || !isfinite(norm->epsilon))
    return clb_fail(error, CLB_ERROR_ARGUMENT, "epsilon is %g; it must be finite and at least 0",
                    norm->epsilon);
  if (!isfinite(norm->weight_offset))
    return clb_fail(error, CLB_ERROR_ARGUMENT, "weight_offset is %g; it must be finite",
                    norm->weight_offset);
  return CLB_OK;
}

/* Parameters: n, each operand of the pass, then how rows are dealt out, and the partial sums. */
static void parameters(clb_norm_kernel *b) {
  ir_kernel *k = b->l.k;
  const int32_t storage = b->p->storage;
  const bool twice = b->p->pass == CLB_DOUBLE_BACKWARD;
  b->n_in = b->p->pass + 1;
  b->in[NORM_X] = clb_layer_array(&b->l, storage, true); /* results may be in their place */
  b->weights = clb_layer_array(&b->l, storage, false);
  for (int i = NORM_G; i < b->n_in; i++) b->in[i] = clb_layer_array(&b->l, storage, true);
  if (twice) b->c_row = clb_layer_array(&b->l, storage, false);
  b->out[0] = clb_layer_array(&b->l, storage, true);
  if (b->p->pass != CLB_FORWARD) clb_layer_array(&b->l, storage, true); /* sum.c writes it */
  b->out[1] = twice ? clb_layer_array(&b->l, storage, true) : b->out[0];
  b->apart = ir_scalar(k, IR_I64);
  b->step = ir_scalar(k, IR_I64);
  b->span = ir_scalar(k, IR_I64);
  if (b->p->pass != CLB_FORWARD) b->partial = ir_buffer(k, b->l.t, true);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"rms_norm_forward", "rms_norm_backward",
                                      "rms_norm_double_backward"};
  clb_norm_kernel *b = calloc(1, sizeof *b);
  clb_schedule own = *s;
  own.norm.kept = s->norm.kept && !s->accumulate_in_memory;
  if (s->scalar_access) own.norm.elements_per_access = 1;
  if (!own.norm.kept) own.norm.lanes_per_row = 0;
  if (!own.norm.kept && !s->norm.subgroups_per_row)
    own.subgroups = 1; /* a partial row is a team's */
  if (!b) {
    ir_begin(k, names[p->pass], s->lanes, own.subgroups, 1);
    snprintf(k->error, sizeof k->error, "no memory");
    return;
  }
  const bool backward = p->pass != CLB_FORWARD;
  *b = (clb_norm_kernel){.p = p,
                         .norm = &p->rms_norm,
                         .width = own.norm.elements_per_access,
                         .kept = own.norm.kept,
                         .local = own.norm.kept && own.norm.through_local,
                         .weights_kept = own.norm.kept && own.norm.weights_kept,
                         .together = s->norm.subgroups_per_row && own.subgroups > 1,
                         .x = p->rms_norm.gradients & CLB_OPERAND_X,
                         .w = backward && p->rms_norm.gradients & CLB_OPERAND_W,
                         .z = p->rms_norm.gradients & CLB_OPERAND_Z,
                         .a = p->rms_norm.incoming & CLB_OPERAND_X,
                         .c = p->pass == CLB_DOUBLE_BACKWARD &&
                              p->rms_norm.incoming & CLB_OPERAND_W};
  clb_norm_make_plan(&p->rms_norm, &b->plan);
  clb_layer_begin(&b->l, k, names[p->pass], &own, p->arithmetic);
  const int part = own.norm.lanes_per_row ? own.norm.lanes_per_row : own.lanes;
  b->team = b->together ? own.lanes * own.subgroups : part;
  b->rows = own.lanes / part;
  k->rows = b->together ? 1 : b->rows * own.subgroups;
  k->large_registers = own.norm.large_registers;
  parameters(b);
  clb_norm_begin_rows(b);
  clb_norm_row(b);
  clb_norm_end_rows(b);
  ir_finish(k);
  free(b);
}

static void print(const clb_problem *p, clb_text *out) {
  static const char *const variants[] = {"plain",       "nequix",   "degree",
                                         "degree_norm", "balanced", "terms"};
  const clb_rms_norm_problem *norm = &p->rms_norm;
  clb_irreps_print(&norm->irreps, out);
  clb_text_add(out, ", %s%s%s%s", variants[norm->variant],
               norm->layout == CLB_IR_MUL ? ", ir_mul" : "", norm->centre ? ", centre" : "",
               norm->bias ? ", bias" : "");
}

const clb_kernel_kind clb_kind_rms_norm = {.name = "rms_norm",
                                           .check = check,
                                           .schedule = clb_norm_schedule,
                                           .lower = lower,
                                           .print = print,
                                           .passes = 3,
                                           .settings = CLB_FIELD(norm),
                                           .candidates = clb_norm_candidates};
