/* kernels/grouped/element.c - an element of C is stored. */
#include "kernels/grouped/tile.h"

static ir_val wide(ir_kernel *k, ir_val x) { return ir_cast(k, IR_I64, x); }

void clb_grouped_store(clb_grouped_tile *b, ir_val row, ir_val column, ir_val mask, ir_val sum) {
  ir_kernel *k = b->k;
  const ir_val beta = b->real[CLB_REAL_BETA];
  ir_val i = wide(k, row), j = wide(k, column),
         reads = ir_2(k, IR_AND, mask, ir_1(k, IR_NOT, ir_2(k, IR_EQ, beta, ir_real(k, b->t, 0))));
  ir_val d = ir_load(
      k, b->in,
      ir_add(k, ir_add(k, b->at[CLB_PRODUCT_D], ir_mul(k, i, b->at[CLB_PRODUCT_D_ROW])), j), reads);
  ir_val c = ir_fma(k, b->real[CLB_REAL_ALPHA], sum,
                    ir_mul(k, beta, clb_grouped_scaled(k, d, b->scale_d)));
  ir_store(k, b->out,
           ir_add(k, ir_add(k, b->at[CLB_PRODUCT_C], ir_mul(k, i, b->at[CLB_PRODUCT_C_ROW])), j),
           mask, c);
  ir_if(k, b->mirrored);
  ir_store(k, b->out,
           ir_add(k, ir_add(k, b->at[CLB_PRODUCT_C], ir_mul(k, j, b->at[CLB_PRODUCT_C_ROW])), i),
           mask, c);
  ir_end(k);
}
