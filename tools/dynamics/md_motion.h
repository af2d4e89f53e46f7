/* tools/dynamics/md_motion.h - molecular dynamics: velocity Verlet, and Langevin by BAOAB.
   Angstrom, fs, eV, K, atomic mass units. */
#ifndef CLB_TOOLS_DYNAMICS_MD_MOTION_H
#define CLB_TOOLS_DYNAMICS_MD_MOTION_H

#include "tools/dynamics/md_system.h"

extern const double
    atomic_weights[CLB_ELEMENTS + 1]; /* standard weights; of elements without one, the mass number
                                         of the most stable isotope */

/* What a run goes on from, with the positions that its md_system holds. */
typedef struct {
  int64_t step;
  double time; /* fs */
  uint64_t seed;
  double *velocities; /* [n][3], Angstrom / fs */
  double *listed;     /* [n][3]: where the atoms were when neighbours were last looked for */
  int64_t rebuilds;   /* how often that had been by then */
} md_state;

void md_state_make(md_state *s, int64_t n); /* zeros */
void md_state_free(md_state *s);

typedef struct {
  double dt;                    /* fs */
  double friction, temperature; /* 1 / fs, K; friction 0: no thermostat */
} md_motion;

/* Maxwell's distribution, then without total momentum. */
void md_draw_velocities(const md_system *y, md_state *s, double temperature);
/* Forces of a state; its neighbours are those that the run had which wrote it, so that sums keep
   their order.  false: see md_system_compute. */
bool md_start(md_system *y, md_state *s);
bool md_step(md_system *y, md_state *s, const md_motion *m);

double md_kinetic(const md_system *y, const md_state *s); /* eV */
/* Without a thermostat the total momentum is no degree of freedom. */
double md_temperature(const md_system *y, const md_motion *m, double kinetic);

#endif
