/* models/training/loss.h - a loss of energies, forces and stresses, and its derivatives. */
#ifndef CLB_MODELS_TRAINING_LOSS_H
#define CLB_MODELS_TRAINING_LOSS_H

#include <clebsch/model.h>

#include "src/base/error.h"

/* Refuses a loss or labels that have no meaning, before anything is computed. */
clb_status clb_loss_check(clb_error_sink *error, const clb_loss *loss, int64_t n,
                          const clb_model_atoms *atoms, const clb_labels *labels);

/* Of structures that follow each other: the loss, its terms (energy, forces, stress, before their
   factors) and the derivatives of the loss by each structure's energy [n], each atom's force
   [n_atoms][3] and each structure's stress [n][9], 0 where there is no label. */
typedef struct {
  double loss, terms[3];
  double *by_energy, *by_force, *by_stress;
} clb_loss_result;

/* computed[n]: what was predicted; NULL there drops out like a missing label. Fails only where
   clb_loss_check does. */
clb_status clb_loss_compute(clb_error_sink *error, const clb_loss *loss, int64_t n,
                            const clb_model_atoms *atoms, const clb_labels *labels,
                            const clb_model_results *computed, clb_loss_result *result);

#endif
