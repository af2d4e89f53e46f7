/* kernels/gate/host/gate.h - the host side of gates. */
#ifndef CLB_KERNELS_GATE_HOST_GATE_H
#define CLB_KERNELS_GATE_HOST_GATE_H

#include "kernels/host/operand_lists.h"
#include "src/problem/activation.h"

enum { CLB_GATE_SCALARS, CLB_GATE_GATES, CLB_GATE_GATED, CLB_GATE_PARTS };

/* Channels of `in` are taken for the terms of scalars, then of gates, then of gated: of each irrep
   in their order, and all of them. A term's channels lie in one term of `in`. */
typedef struct {
  clb_layout layout;
  clb_irreps in, part[CLB_GATE_PARTS], out;                        /* out: a result */
  clb_scaled_activation activation[CLB_GATE_GATED][CLB_MAX_TERMS]; /* of scalars, of gates */
  bool odd[CLB_GATE_GATED][CLB_MAX_TERMS];                         /* their values are */
} clb_gate_parts;

/* The parts of a description; `in` as it says, or in e3nn's order. */
clb_status clb_gate_read(const clb_gate_desc *desc, clb_gate_parts *parts, clb_error_sink *error);
/* Fills the (zeroed) problem. out: terms of scalars, then of gated, which are split where their
   parity changes. */
clb_status clb_gate_plan(clb_gate_parts *parts, clb_gate_problem *p, clb_error_sink *error);

#endif
