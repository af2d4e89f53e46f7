/* tools/energy/estimate.h - memory before it is taken. */
#ifndef CLB_TOOLS_ENERGY_ESTIMATE_H
#define CLB_TOOLS_ENERGY_ESTIMATE_H

#include "tools/dynamics/md_system.h"

/* Opens the model and prints the memory that the structure takes. false, after a message: it cannot
   be said. *y must be zeroed, and md_system_close must be called even on failure. */
bool print_estimate(md_system *y, const md_choice *choice, bool json);

#endif
