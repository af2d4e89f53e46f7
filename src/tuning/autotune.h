/* src/tuning/autotune.h - the candidates of an op's passes, timed on made-up data when it is
   created. */
#ifndef CLB_SRC_TUNING_AUTOTUNE_H
#define CLB_SRC_TUNING_AUTOTUNE_H

#include "src/runtime/context.h"

/* What gives passes without wisdom the kernel that is fastest here, and the context wisdom of it;
   NULL where `passes` does not ask for it, or the context goes without optimisations, which would
   be measured, too. */
clb_tuner clb_tuner_asked(const clb_context *ctx, unsigned passes);

#endif
