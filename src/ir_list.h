/* ir_list.h - one instruction as text to read: "LOAD f32 varying %5 %41". */
#ifndef CLB_IR_LIST_H
#define CLB_IR_LIST_H

#include "ir.h"
#include "text.h"

void ir_list_instruction(const ir_kernel *k, ir_val v, clb_text *out);

#endif
