/* kernels/layers/host/structure_loss.h - losses of structures on the device. */
#ifndef CLB_KERNELS_LAYERS_HOST_STRUCTURE_LOSS_H
#define CLB_KERNELS_LAYERS_HOST_STRUCTURE_LOSS_H

#include "kernels/layers/loss_columns.h"
#include "src/runtime/context.h"

/* A loss, in numbers: f(d) as kernels/layers/structure_loss.c has it; with `norm` the term of
   forces is of lengths of differences instead. Of energy, forces, stress: the factor of a sum in
   its mean, and of the mean in the loss. unit: of stresses. */
typedef struct {
  double least, most, scale, half, unit, part[CLB_LOSS_TERMS], factor[CLB_LOSS_TERMS];
  bool norm;
} clb_loss_form;

/* Of n structures of n_atoms atoms that follow each other; first: int32 [n + 2], from `offset` on:
   where `made` is, counted from its rows' start (a number on the device, so that launches are the
   same wherever it is), the first atom of each structure, and n_atoms.  Of the type of sums
   (clb_sum_type): e_atom[n_atoms][1], forces[n_atoms][3], v_atom[n_atoms][9] (no buffer: no
   structure has a volume), known[n][CLB_KNOWN_COLUMNS], known_forces[n_atoms][3],
   made[n][CLB_MADE_COLUMNS].  Of the op's type: the loss's derivative by each atom's energy,
   by_energy[n_atoms][1]; minus that by its force, moves[n_atoms][3]; strains[n][9]: that by the
   structure's stress, symmetrised, over its volume. */
typedef struct {
  int64_t n, n_atoms;
  clb_rows first, e_atom, forces, v_atom, known, known_forces; /* in */
  clb_rows made, by_energy, moves, strains;                    /* out */
} clb_loss_operands;

clb_status clb_structure_loss_create(clb_context *ctx, clb_dtype type, clb_op **op);
clb_status clb_structure_loss_run(clb_op *op, const clb_loss_form *form,
                                  const clb_loss_operands *o);

#endif
