/* tools/train/devices/train_devices.h - the devices that train a model: each computes a part of a
   batch. */
#ifndef CLB_TOOLS_TRAIN_DEVICES_TRAIN_DEVICES_H
#define CLB_TOOLS_TRAIN_DEVICES_TRAIN_DEVICES_H

#include "tools/dynamics/md_system.h"

/* Seconds of steps: all of them; of gradients, the mean over devices of their own; waiting for the
   slowest one; adding them up; the optimizer; and its parameters, to all models. */
typedef enum {
  SPENT_ALL,
  SPENT_GRADIENT,
  SPENT_WAITING,
  SPENT_SUM,
  SPENT_OPTIMIZER,
  SPENT_PARAMETERS,
  SPENT
} train_spent;

typedef struct {
  md_system *y; /* [n]: the model on each of them; the optimizer is on the first */
  int n;
  int parts, first;    /* devices of all ranks, and which of these is y[0] */
  double *sum;         /* [parameters]; NULL: there is one rank */
  clb_buffer **buffer; /* [n][parameters], of the model's type, as the next two; NULL: one part */
  clb_buffer **peer;   /* [n]: what is in these, as the first device reads it; NULL: its own */
  void **staged;       /* [n]; NULL: does not go through the host */
  bool peers;          /* the first device reads the others' memory, and they its */
  double *spent;       /* [SPENT] */
  bool other_failed;   /* than the first: what training knows is still there */
} train_devices;

/* Opens the model on choice->devices, which are names with commas between them; "cuda:all" stands
   for all of that kind. They are dealt out among the ranks of a host; where there are fewer names
   than ranks, several have the same. The following print a message when they return false. *d must
   be zeroed, and train_devices_close called even on failure. */
bool train_devices_open(train_devices *d, const md_choice *choice);
void train_devices_close(train_devices *d);
/* Prints the error of one of them, which has its name where there are several, and then `more`. */
void train_devices_warn(train_devices *d, const md_system *y, const char *more);
/* Parameters of all models: those in a buffer of the first device of rank 0. */
bool train_devices_use(train_devices *d, clb_buffer *parameters);

/* Structures in an order by parts: part p ends before ends[p]; of a batch of so many structures and
   atoms. */
typedef struct {
  const clb_model_atoms *atoms;
  const clb_labels *labels;
  const int64_t *ends; /* [parts] */
  int64_t batch, batch_atoms;
} train_batch;
/* clb_model_gradient of all structures: gradient_buffer, of the first device, becomes the sum of
   all devices' gradients, in their order. These and parameters go from device to device where the
   first and each other one read the other's memory, and else through the host. Loss and terms are
   their part of means over the batch; predictions and the gradient may be NULL. *refused: the
   device whose error it is. With `later` of the results, of one part, the model has what the call
   does not wait for. */
clb_status train_devices_gradient(const train_devices *d, const train_batch *batch,
                                  const clb_loss *loss, const clb_gradient_results *results,
                                  const md_system **refused);

#endif
