/* kernels/symmetric_contraction/total.c - adds up the gradients by weights of all blocks of rows;
   lanes are weights, a sub-group does some of one species. */
#include "kernels/common/lane_sums.h"
#include "kernels/symmetric_contraction/contraction.h"

enum { IN_FLIGHT = 8 }; /* blocks whose sums are loaded together, each added to a separate one */

ir_val clb_contraction_unit(ir_kernel *k, int subgroups) {
  ir_val unit = ir_cast(k, IR_I64, ir_group(k));
  return subgroups > 1 ? ir_add(k, ir_mul(k, unit, ir_int(k, IR_I64, subgroups)),
                                ir_cast(k, IR_I64, ir_subgroup(k)))
                       : unit;
}

/* Sums column `mine` of the workspace's rows (block, species) that are present. */
static ir_val sum_blocks(ir_kernel *k, ir_type t, ir_val partial, ir_val present, ir_val blocks,
                         ir_val species, ir_val n_species, ir_val columns, ir_val mine,
                         ir_val mask) {
  ir_val sum[IN_FLIGHT], value[IN_FLIGHT], there[IN_FLIGHT], row[IN_FLIGHT];
  for (int i = 0; i < IN_FLIGHT; i++) sum[i] = ir_var(k, ir_real(k, t, 0), false);
  ir_val first = ir_loop(k, ir_int(k, IR_I64, 0), blocks, ir_int(k, IR_I64, IN_FLIGHT));
  for (int i = 0; i < IN_FLIGHT; i++) {
    ir_val block = ir_add(k, first, ir_int(k, IR_I64, i));
    row[i] = ir_add(k, ir_mul(k, block, n_species), species);
    there[i] = ir_load(k, present, row[i], ir_2(k, IR_LT, block, blocks));
  }
  for (int i = 0; i < IN_FLIGHT; i++) {
    ir_val some = ir_2(k, IR_AND, mask, ir_2(k, IR_EQ, there[i], ir_int(k, IR_I32, 1)));
    value[i] = ir_load(k, partial, ir_add(k, ir_mul(k, row[i], columns), mine), some);
  }
  for (int i = 0; i < IN_FLIGHT; i++) ir_set(k, sum[i], ir_add(k, ir_get(k, sum[i]), value[i]));
  ir_end(k);
  for (int i = 0; i < IN_FLIGHT; i++) value[i] = ir_get(k, sum[i]);
  return clb_sum_pairwise(k, value, IN_FLIGHT);
}

void clb_lower_total_weights(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  int64_t W = (int64_t)sc->n_paths * sc->channels, across = (W + s->lanes - 1) / s->lanes;
  ir_type t = clb_ir_type((clb_dtype)p->arithmetic);
  clb_row_block block = {.k = k};
  ir_begin(k, "symmetric_weights_total", s->lanes, s->subgroups, s->subgroups);
  ir_val partial = ir_buffer(k, t, false), present = ir_buffer(k, IR_I32, false),
         blocks = ir_scalar(k, IR_I64), columns = ir_int(k, IR_I64, W),
         n_species = ir_int(k, IR_I64, sc->n_species), of = ir_int(k, IR_I64, across ? across : 1);
  clb_row_array out = clb_rows_array(&block, (clb_dtype)p->storage, true);
  ir_val unit = clb_contraction_unit(k, s->subgroups), species = ir_2(k, IR_DIV, unit, of);
  ir_if(k, ir_2(k, IR_LT, species, n_species));
  ir_val mine = ir_add(k, ir_mul(k, ir_2(k, IR_MOD, unit, of), ir_int(k, IR_I64, s->lanes)),
                       ir_cast(k, IR_I64, ir_lane(k))),
         mask = ir_2(k, IR_LT, mine, columns);
  ir_val sum = sum_blocks(k, t, partial, present, blocks, species, n_species, columns, mine, mask);
  ir_val at = ir_add(k, ir_add(k, ir_mul(k, species, out.stride), out.offset), mine);
  if (p->accumulate) sum = ir_add(k, sum, ir_cast(k, t, ir_load(k, out.buffer, at, mask)));
  ir_store(k, out.buffer, at, mask, ir_cast(k, ir_register_type(out.element), sum));
  ir_end(k);
  ir_finish(k);
}
