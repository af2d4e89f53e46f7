/* src/ir/listing.h - one instruction as readable text: "LOAD f32 varying %5 %41". */
#ifndef CLB_SRC_IR_LISTING_H
#define CLB_SRC_IR_LISTING_H

#include "src/ir/ir.h"
#include "src/base/text.h"

void ir_list_instruction(const ir_kernel *k, ir_val v, clb_text *out);

#endif
