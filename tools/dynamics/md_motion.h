/* tools/dynamics/md_motion.h - molecular dynamics: velocity Verlet, and Langevin by BAOAB.
   Angstrom, fs, eV, K, atomic mass units. */
#ifndef CLB_TOOLS_DYNAMICS_MD_MOTION_H
#define CLB_TOOLS_DYNAMICS_MD_MOTION_H

#include "tools/dynamics/md_system.h"

extern const double
    atomic_weights[CLB_ELEMENTS + 1]; /* standard weights; for elements without one, the mass number
                                         of the most stable isotope */

/* The state from which a run continues, together with the positions in its md_system. */
typedef struct {
  int64_t step;
  double time; /* fs */
  uint64_t seed;
  double *velocities; /* [n][3], Angstrom / fs */
  double *listed;     /* [n][3]: positions at the last rebuild of the neighbour list */
  int64_t rebuilds;   /* number of rebuilds so far */
} md_state;

void md_state_make(md_state *s, int64_t n); /* all zeros */
void md_state_free(md_state *s);

typedef struct {
  double dt;                    /* fs */
  double friction, temperature; /* 1 / fs, K; friction 0: no thermostat */
} md_motion;

/* From the Maxwell distribution, without total momentum, scaled to the temperature of 3 n - 3
   degrees of freedom. */
void md_draw_velocities(const md_system *y, md_state *s, double temperature);
/* Computes the forces of a state, with the neighbour list of the run that wrote it, so that sums
   keep their order. false: see md_system_compute. */
bool md_start(md_system *y, md_state *s);
bool md_step(md_system *y, md_state *s, const md_motion *m);

/* The momentum of an atom with a velocity, in ASE's unit: sqrt(eV u). */
void md_momentum(const md_system *y, int64_t atom, const double velocity[3], double momentum[3]);
double md_kinetic(const md_system *y, const md_state *s); /* eV */
/* Without a thermostat the total momentum does not count as degrees of freedom. */
double md_temperature(const md_system *y, const md_motion *m, double kinetic);

#endif
