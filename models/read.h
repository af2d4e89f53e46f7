/* models/read.h - a model as described in docs/model-format.md, checked, in double precision,
   as a network with all constants folded into its weights, or, if it trains, as the file has it. */
#ifndef CLB_MODELS_READ_H
#define CLB_MODELS_READ_H

#include "models/layers/network.h"

/* knots: of tables that it will have. `out` must be freed (clb_network_free) even on failure. */
clb_status clb_model_read(clb_error_sink *error, const char *path, int knots, bool trains,
                          clb_network *out);

#endif
