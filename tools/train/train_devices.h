/* tools/train/train_devices.h - the devices that train a model: each computes a part of a batch. */
#ifndef CLB_TOOLS_TRAIN_TRAIN_DEVICES_H
#define CLB_TOOLS_TRAIN_TRAIN_DEVICES_H

#include "tools/dynamics/md_system.h"

typedef struct {
  md_system *y; /* [n]: the model on each of them; the optimizer is on the first */
  int n;
} train_devices;

/* Opens the model on choice->device, names with commas between them, which are dealt out among the
   ranks of a host; where there are fewer names than ranks, several have the same. The following
   print a message when they return false. *d must be zeroed, and train_devices_close called even on
   failure. */
bool train_devices_open(train_devices *d, const md_choice *choice);
void train_devices_close(train_devices *d);
/* Parameters of all models. */
bool train_devices_use(const train_devices *d, const double *parameters);
/* clb_model_gradient of all n structures: sums over the ranks and their devices, in their order, of
   the gradients of neighbouring structures of about as many atoms; gradient[] must be zero before.
   They are a part of a batch of so many structures and atoms, and loss and terms are their part of
   means over that; predictions may be NULL. *refused: the device whose error it is. */
clb_status train_devices_gradient(const train_devices *d, int64_t n, const clb_model_atoms *atoms,
                                  const clb_labels *labels, int64_t batch, int64_t batch_atoms,
                                  const clb_loss *loss, const clb_gradient_results *results,
                                  const md_system **refused);

#endif
