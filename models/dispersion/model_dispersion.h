/* models/dispersion/model_dispersion.h - the dispersion that is added to a model's results. */
#ifndef CLB_MODELS_DISPERSION_MODEL_DISPERSION_H
#define CLB_MODELS_DISPERSION_MODEL_DISPERSION_H

#include "models/model_state.h"

/* Whether the options can be had. */
clb_status clb_model_check_dispersion(clb_context *ctx, const clb_model_options *o);
/* What they ask for, of a model that was loaded: nothing, if d3 is NULL. */
clb_status clb_model_create_dispersion(clb_model *m);
void clb_model_free_dispersion(clb_model *m);

/* Places the atoms of which the graph is, once that is set; of many structures with one position
   after the other. Does nothing without dispersion, as the next. */
clb_status clb_model_place_dispersion(clb_model *m, int64_t n_structures,
                                      const clb_model_atoms *structures, int64_t n,
                                      const int32_t *system, const double *positions);
/* The same of the atoms of all processes, which an exchange gathers; positions: of local atoms. */
clb_status clb_model_place_all(clb_model *m, const clb_model_edges *e, const double *positions);
/* Submits what adds to the results that were submitted. */
clb_status clb_model_add_dispersion(clb_model *m, const clb_model_edge_results *r);

#endif
