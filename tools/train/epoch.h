/* tools/train/epoch.h - batches of labelled structures: their loss, its gradient, and errors. */
#ifndef CLB_TOOLS_TRAIN_EPOCH_H
#define CLB_TOOLS_TRAIN_EPOCH_H

#include "tools/train/learner.h"
#include "tools/training/errors_of_labels.h"
#include "tools/training/label_units.h"
#include "tools/training/labelled_batch.h"

/* Over batches. */
typedef struct {
  double structures, atoms;
  double terms[LABELS]; /* times structures, atoms, structures */
  label_error errors[LABELS];
} epoch_sums;
/* Of all structures, as if they were one batch. */
double sums_loss(const epoch_sums *s, const clb_loss *loss);

/* The order of n structures, a function of seed and epoch alone. */
void epoch_order(int64_t n, uint64_t seed, int64_t epoch, int64_t *order);

/* What a batch holds at most, but at least one structure; 0: any number. */
typedef struct {
  int64_t structures, atoms;
} batch_size;
/* Cuts the structures order[n] of `from` into batches of neighbours: batch k ends before ends[k].
   Returns how many there are. */
int64_t epoch_batches(const labelled_batch *from, const int64_t *order, batch_size most,
                      int64_t *ends);

typedef struct {
  learner *learner;
  const clb_loss *loss;
  const labelled_batch *from;
  const int64_t *which; /* [n]: structures of `from` */
  int64_t n;
  int64_t replayed; /* structures of `from` from this one on are of the second head */
  label_fits *fits; /* to which predictions and labels are added; NULL: none */
} batch_work;

/* Of a batch: terms, and errors as clb_gradient_results has them. */
typedef struct {
  double loss, terms[LABELS], errors[LABELS][3];
} batch_sums;
/* Batches of one learner that were submitted, until they are seen: what is known of a batch that
   had to be waited for, others are on the device. Zeroed at first; the caller frees `batch`. */
typedef struct {
  batch_work of;
  int64_t atoms;
  bool known;
  batch_sums sums;
} submitted_batch;
typedef struct {
  submitted_batch *batch;
  int64_t n, n_known;
} batch_queue;

/* gradient: the learner's `gradients` become the batch's. Of replayed structures the learner's
   parameters are used, of others those of the models. It waits where it must: for several devices,
   of two heads, and for fits. false, after a message: it cannot be computed, or the loss is known
   not to be finite. */
bool batch_submit(const batch_work *b, bool gradient, batch_queue *queue);
/* Waits for all of them, adds them to *sums, and, where a step followed each, the norms of their
   gradients to *norms; NULL: none did. false, after a message: a loss or gradient is not finite. */
bool batches_see(batch_queue *queue, epoch_sums *sums, double *norms);
/* Both, of one batch without its gradient. */
bool batch_compute(const batch_work *b, epoch_sums *sums);

/* All structures, in batches. */
bool epoch_evaluate(learner *l, const clb_loss *loss, const labelled_batch *from, batch_size most,
                    epoch_sums *sums);

#endif
