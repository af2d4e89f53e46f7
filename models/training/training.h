/* models/training/training.h - a loss's gradient by the weights of a network.

   With c_g, f_i and B_g the loss's derivatives by energies, forces and stresses of volume V_g, and
   u = -f, S = (B + B^T) / 2V:

     dL/dw = d/dw [ sum c_g E_g + dE along (u, S) ]

   After a step as in inference, a kernel makes the loss of it, c, u and S (models/training/loss.h);
   the host sees none of these. Vectors of edges get the tangents q = u_sender - u_receiver + S v;
   a sweep over the layers makes the tangents of all arrays of atoms; then a reverse sweep makes
   adjoints: backward passes of adjoints, and of gradients along tangents. Arrays of edges are made
   again in each phase of the sweeps, as in blocks of atoms (models/passes/order.c). */
#ifndef CLB_MODELS_TRAINING_TRAINING_H
#define CLB_MODELS_TRAINING_TRAINING_H

#include "models/model_state.h"

/* Whether a call is for a model that trains. */
clb_status clb_training_check(const clb_model *m, const char *call);
/* Creates what a network that trains needs besides what it computes with. */
clb_status clb_training_create(clb_model *m);
void clb_training_free(clb_model *m);
/* After a step with gradients, and the loss of its batch: submits the sweeps, which leave the
   loss's gradient by weights on the device. */
clb_status clb_training_sweep(clb_model *m);

/* Of what the sweeps have left: the gradient by parameters, on the host; in a buffer. */
clb_status clb_training_read_gradient(clb_model *m, double *gradient);
clb_status clb_training_gradient_to(clb_model *m, clb_buffer *to);

#endif
