/* src/tuning/autotune.h - timing the candidates of an op's passes on synthetic data when the op is
   created. */
#ifndef CLB_SRC_TUNING_AUTOTUNE_H
#define CLB_SRC_TUNING_AUTOTUNE_H

#include "src/tuning/tuning_test_run.h"

/* The tuner, which gives passes without wisdom the kernel that is fastest on this device and adds
   the result to the context's wisdom; it is written to *tuner. NULL if `passes` does not contain
   CLB_MEASURE, or if optimisations are disabled in the context, as the measurements would be
   without them. */
const clb_tuner *clb_tuner_for(const clb_context *ctx, unsigned passes,
                               const clb_test_run_kind *test_run, clb_tuner *tuner);

#endif
