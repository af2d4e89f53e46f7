/* models/training/loss.h - a loss of energies, forces and stresses, and its derivatives. */
#ifndef CLB_MODELS_TRAINING_LOSS_H
#define CLB_MODELS_TRAINING_LOSS_H

#include <clebsch/model.h>

#include "src/runtime/context.h"

/* Refuses a loss or labels that have no meaning, before anything is computed. */
clb_status clb_loss_check(clb_error_sink *error, const clb_loss *loss, int64_t n,
                          const clb_model_atoms *atoms, const clb_labels *labels);

/* The loss, its terms (energy, forces, stress, before their factors), and of energies per atom,
   components of forces and of stresses: how many are known, the sums of |d| and of d^2. */
typedef struct {
  double loss, terms[3], errors[3][3];
} clb_loss_result;

/* A batch whose loss the host has not seen: its numbers begin at `at` of `made`; edges: how many it
   was taken to have, which stands behind them, -1: which does not. */
typedef struct {
  int64_t at, n, edges;
  double factor[3];
} clb_unseen_loss;

/* The loss of a batch: structures that follow each other, on the device. */
typedef struct {
  clb_context *ctx;
  clb_op *op;
  clb_loss loss;
  int64_t n, n_atoms;
  int64_t at;         /* of its numbers in `made` */
  clb_buffer *system; /* int32 [n_atoms]: the structure of each atom; `at`; [n + 1]: first atoms */
  clb_buffer *known;  /* of clb_sum_type, as the next: of structures, then forces */
  clb_buffer *made;   /* of batches, until the host sees them */
  clb_unseen_loss *unseen;
  clb_loss_result *seen; /* which nobody has taken */
  int64_t n_unseen, unseen_capacity, n_seen, seen_capacity;
} clb_batch_loss;

/* Compiles what makes losses, with derivatives of `type`. */
clb_status clb_batch_loss_create(clb_context *ctx, clb_dtype type, clb_batch_loss *l);
void clb_batch_loss_free(clb_batch_loss *l);
/* Finds room for the numbers of a batch of n structures; where it is full the host sees what is
   there. *edges: where the number of the batch's edges may go. */
clb_status clb_batch_loss_place(clb_batch_loss *l, int64_t n, clb_rows *edges);
/* Copies a batch's labels, which clb_loss_check took, to the device; system[n_atoms]: the structure
   of each atom. */
clb_status clb_batch_loss_set(clb_batch_loss *l, const clb_loss *loss, int64_t n,
                              const clb_model_atoms *atoms, const clb_labels *labels,
                              const int32_t *system);

/* in: what was predicted of atoms, of clb_sum_type, e_atom[n_atoms], forces[n_atoms][3] and
   v_atom[n_atoms][9], without a buffer where no structure has a volume.  out, of `type`: the loss's
   derivative by each atom's energy, by_energy[n_atoms], and, as the sweeps take them
   (models/training/training.h), u of each atom, moves[n_atoms][3], and S of each structure,
   strains[n][9]: 0 where there is no label. */
typedef struct {
  clb_rows e_atom, forces, v_atom, by_energy, moves, strains;
} clb_batch_loss_rows;
/* Only submits. */
clb_status clb_batch_loss_run(const clb_batch_loss *l, const clb_batch_loss_rows *rows);
/* After it: the batch, with so many edges, is among those unseen. */
clb_status clb_batch_loss_keep(clb_batch_loss *l, int64_t edges);
/* Reads those; CLB_ERROR_DRIVER: one has another number of edges. */
clb_status clb_batch_loss_see(clb_batch_loss *l);
/* Those of the last batch, which are taken away. */
clb_status clb_batch_loss_read(clb_batch_loss *l, clb_loss_result *result);

#endif
