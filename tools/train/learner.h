/* tools/train/learner.h - the parameters of a model, and the optimizer that changes them. With
   frames of --replay there are two heads: these have readouts, scale and shift of their own, and
   all else together with the others. */
#ifndef CLB_TOOLS_TRAIN_LEARNER_H
#define CLB_TOOLS_TRAIN_LEARNER_H

#include "tools/train/devices/train_devices.h"
#include "tools/train/train_options.h"

typedef enum { HEAD_TRAINED, HEAD_REPLAYED } learner_head;
typedef struct {
  clb_tensor_info info; /* `first` is among all parameters */
  int64_t in_model;     /* its first number in those of a model */
} learned_tensor;

typedef struct {
  train_devices *devices;
  clb_context *ctx; /* of the first, as all that follows */
  clb_model *model;
  clb_dtype dtype; /* of the buffers: parameters, gradients, averages */
  int64_t n, n_model, n_trained;
  double *parameters;     /* [n]: the model's [n_model], then those of the second head alone */
  double *averages;       /* [n]: with the averages of what is trained; NULL: there are none */
  bool behind;            /* both are: learner_read */
  bool averages_of_rule;  /* they are schedule-free's */
  learned_tensor *tensor; /* [n_tensors]: those that are trained, in this order, too */
  int n_tensors;
  void *staged;                             /* [n] */
  clb_buffer *values, *gradients, *average; /* [n]: what is trained */
  clb_buffer *second; /* [n_model]: parameters or gradient of the second head; NULL: none */
  clb_optimizer *optimizer;
  clb_optimizer_group groups[2];
  int n_groups;
} learner;

/* The following print a message when they return false. *l must be zeroed, and learner_close must
   be called even on failure. */
bool learner_open(learner *l, train_devices *devices, const train_arguments *a);
void learner_close(learner *l);
/* Whether a step is the device's alone: there is no other one, and no second head. */
static inline bool learner_stays_on_device(const learner *l) {
  return l->devices->parts == 1 && !l->second;
}
/* Submits one step of the parameters by `gradients`; the models have the old ones until
   learner_use. Where a number of the gradient is not finite, nothing changes. */
bool learner_step(learner *l, double lr);
/* Of the last n steps, CLB_NORMS at most: norms of the gradients by what is trained; NaN of those
   that changed nothing. */
bool learner_norms(const learner *l, int64_t n, double *norms);
/* Parameters of the models, for calls from now on: those of a head. */
bool learner_use(learner *l, learner_head head);
/* Or what is validated and written: averages, or parameters. */
bool learner_use_result(const learner *l);
/* Where there is a second head: `gradients` becomes what it has of [n_model], and the second
   head's, which is in `second`, at their places; what is not there is 0. */
bool learner_add_heads(const learner *l, bool trained, bool replayed);
/* Reads parameters and averages from the device, if there were steps since. */
bool learner_read(learner *l);
/* What is validated and written, as it was read. */
const double *learner_result(const learner *l);

/* The optimizer's state; and all that was saved: parameters and averages are copied. */
bool learner_moments(const learner *l, void **moments, uint64_t *bytes); /* the caller frees them */
bool learner_restore(learner *l, const double *parameters, const double *averages,
                     const void *moments, uint64_t bytes);

#endif
