/* kernels/convolution/convolution.c - the graph convolution: a group loops over the edges of one
   receiver (kernels/graph/segment.h) and sums results of z in registers.

   A kernel computes either results of z (receiver_results.c) or those of edges (edge_results.c); if
   both are wanted, the host launches two, unless the schedule asks for one walk (edge_results.c).
 */
#include "kernels/convolution/builder.h"

#include <stdio.h>
#include <stdlib.h>

static void whole(clb_convolution *c, ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  c->s = &s->convolution;
  clb_form_begin(&c->f, k, p, s);
  clb_segment_parameters(&c->walk, k);
  c->walk.whole = s->convolution.team;
  for (int o = 0; o < c->f.form->n_outputs; o++) {
    int slot = c->f.form->output[o].slot;
    if ((slot == W && !p->convolution.spline) ||
        (slot == X && !p->convolution.atomics && !s->accumulate_in_memory))
      ir_stream(k, c->f.out[o].rows.buffer);
  }
  c->other = ir_buffer(k, IR_I32, false);
  c->add = ir_scalar(k, IR_I32);
  int o_z = clb_wanted_output(&c->f, Z);
  clb_part_limits limits = clb_part_limits_of(p, s);
  if (s->convolution.edges_per_batch && o_z >= 0)
    clb_parts_of_z(&p->tensor_product, &limits, &c->parts);
  else {
    if (s->convolution.edges_per_batch) limits.components = 1;
    clb_parts_make(&p->tensor_product, &limits, &c->parts);
  }
  if (s->convolution.roles && !s->convolution.unaligned_rows) clb_form_narrow_strides(&c->f);
  c->frame.l = s->convolution.frame ? clb_frame_degree(&p->tensor_product) : 0;
  c->frame.has_tangent = c->frame.l && clb_orders(p) > 1 && clb_reads(&p->tensor_product, Y, 1);
  const bool pairs = (o_z < 0 || c->s->one_walk) && s->convolution.component_pairs &&
                     !p->convolution.spline; /* slower with splines, on an H200 */
  for (int t = 0; t < CLB_MAX_TERMS; t++)
    for (int i = 0; i < MAX_M; i++) c->scale[t][i] = 1;
  if (c->frame.l) clb_frame_scales(c);
  else if (!clb_z_scales(&p->tensor_product, &c->parts, pairs, c->scale))
    snprintf(k->error, sizeof k->error, "no memory");
  for (int j = 0; j < CLB_MAX_PER_LANE; j++) {
    c->builder[j].pairs = s->convolution.component_pairs;
    c->builder[j].matrices = s->convolution.one_walk;
  }
  clb_unit_begin(&c->unit, &c->f);
  clb_stage_begin(&c->stage, c);
  const int local = clb_local_g_size(p, &c->parts, s);
  c->local_g = local ? ir_local(k, c->f.t, s->subgroups * local) : IR_NONE;
  if (s->convolution.team)
    clb_team_begin(&c->team, k, c->f.t, clb_team_values(&p->tensor_product, &c->parts));
  if (p->convolution.spline) clb_spline_parameters(&c->spline, &c->f);
  clb_batch_begin(&c->batch, c);
  clb_edge_results_begin(&c->results, c);
  if (o_z >= 0 && !c->s->one_walk) clb_results_of_z(c, o_z);
  else clb_results_of_edges(c);
}

void clb_convolution_lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[][2] = {
      {"convolution_forward", "convolution_forward"},
      {"convolution_backward", "convolution_backward"},
      {"convolution_double_backward", "convolution_double_backward_z"}};
  const char *name = s->convolution.one_walk ? "convolution_double_backward_all"
                                             : names[p->pass][p->tensor_product.gradients >> 3 & 1];
  clb_convolution *c = calloc(1, sizeof *c);
  if (c && s->convolution.one_walk) {
    c->all = *p;
    c->all.tensor_product.gradients |= CLB_OPERAND_Z;
    p = &c->all;
  }
  ir_begin(k, name, s->lanes, s->subgroups,
           s->convolution.roles && !s->convolution.team ? s->subgroups : 1);
  k->large_registers = s->convolution.large_registers;
  k->min_blocks_per_sm = s->convolution.min_blocks_per_sm;
  bool begun = c && clb_path_begin(&c->builder[0], &c->f, clb_edge_load, &c->channel[0]);
  for (int j = 0; c && j < CLB_MAX_PER_LANE; j++) { /* all use the same memory for entries */
    c->builder[j] = c->builder[0];
    c->channel[j] = (clb_channel){c, j};
    c->builder[j].owner = &c->channel[j];
  }
  if (begun) whole(c, k, p, s);
  else snprintf(k->error, sizeof k->error, "no memory");
  if (c) clb_path_free(&c->builder[0]);
  if (c) clb_batch_free(&c->batch);
  free(c);
  ir_finish(k);
}
