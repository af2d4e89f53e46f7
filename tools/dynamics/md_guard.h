/* tools/dynamics/md_guard.h - bounds of a run: what is beyond them is no longer physics. */
#ifndef CLB_TOOLS_DYNAMICS_MD_GUARD_H
#define CLB_TOOLS_DYNAMICS_MD_GUARD_H

#include "tools/dynamics/md_motion.h"

typedef struct {
  double energy, temperature; /* eV, total; K; both at the start */
  double mean;                /* K: of about the last 1 / rate */
  double time;                /* fs since the start */
  int64_t edges;              /* at the start */
} md_guard;

void md_guard_start(md_guard *g, const md_system *y, const md_state *s, const md_motion *m);
/* Whether forces, displacements, temperature, total energy and neighbours are within their bounds,
   at the start and once after every step; false, after a message on standard error. */
bool md_guard_holds(md_guard *g, const md_system *y, const md_state *s, const md_motion *m);

/* Whether no force on an atom is beyond its bound; false: with a sentence about the largest. */
bool md_forces_hold(const md_system *y, char *error, size_t size);

#endif
