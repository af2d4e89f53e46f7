/* models/dispersion/d3.h - the parameters of D3 that functionals and elements have. */
#ifndef CLB_MODELS_DISPERSION_D3_H
#define CLB_MODELS_DISPERSION_D3_H

#include "kernels/dispersion/host/dispersion.h"

#define CLB_D3_BOHR 0.529177210903     /* Angstrom */
#define CLB_D3_HARTREE 27.211386245988 /* eV */

/* The damping of a functional's name, in which upper case and punctuation do not count; the radii
   stay. */
clb_status clb_d3_damping(clb_error_sink *error, const char *name, clb_dispersion_damping *damping);

/* Gives those of n_species species, of which these occur. */
clb_status clb_d3_set_elements(clb_context *ctx, clb_dispersion *d, int64_t n_species,
                               const int *atomic_number, const bool *occurs);

#endif
