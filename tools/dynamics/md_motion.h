/* tools/dynamics/md_motion.h - molecular dynamics: velocity Verlet, whose drift is cut in two
   halves around a thermostat, and a cell that changes its volume. Atoms move on the device; here is
   what few numbers tell of them. Angstrom, fs, eV, K, atomic mass units. */
#ifndef CLB_TOOLS_DYNAMICS_MD_MOTION_H
#define CLB_TOOLS_DYNAMICS_MD_MOTION_H

#include "tools/dynamics/md_system.h"

enum { MD_CHAIN = 3 };

/* The state from which a run continues, together with positions and cell in its md_system. */
typedef struct {
  int64_t step;
  double time; /* fs */
  uint64_t seed;
  double *velocities;        /* [n][3], Angstrom / fs */
  double *listed;            /* [n][3]: positions at the last rebuild of the neighbour list */
  double heat;               /* eV that random thermostats have taken from the atoms so far */
  double chain[2][MD_CHAIN]; /* positions of the Nose-Hoover chain, and velocities, 1 / fs */
  double stretch;            /* rate at which the cell's lengths grow, relative, 1 / fs */
  /* Not kept in restarts: */
  clb_dynamics *dynamics; /* the atoms */
  clb_dynamics_view view; /* of this state */
} md_state;

void md_state_make(md_state *s, int64_t n); /* all zeros */
void md_state_free(md_state *s);

typedef enum { MD_FREE, MD_LANGEVIN, MD_BUSSI, MD_NOSE_HOOVER } md_thermostat;

typedef struct {
  double dt; /* fs */
  md_thermostat thermostat;
  double rate, temperature; /* of the thermostat: friction, or 1 / its time, 1 / fs; K */
  bool barostat;
  double pressure, barostat_time; /* eV / Angstrom^3, fs */
} md_motion;

/* From the Maxwell distribution, without total momentum, scaled to the temperature of 3 n - 3
   degrees of freedom. */
void md_draw_velocities(const md_system *y, md_state *s, double temperature);
/* Moves a state to the device and computes its forces, with the neighbour list of the run that
   wrote it, so that sums keep their order. false: after a message. */
bool md_start(md_system *y, md_state *s);
/* A step; afterwards the cell, energy and stress of the system, and the view, are of the new state,
   but positions, forces and velocities are on the device. */
bool md_step(md_system *y, md_state *s, const md_motion *m);
/* Reads them: positions and forces of the system, velocities and places of the list. */
bool md_fetch(md_system *y, md_state *s);

/* The momentum of an atom with a velocity, in ASE's unit: sqrt(eV u). */
void md_momentum(const md_system *y, int64_t atom, const double velocity[3], double momentum[3]);
double md_kinetic(const md_system *y, const md_state *s); /* eV */
/* All coordinates with Langevin's thermostat; the total momentum does not count where nothing
   changes it. */
double md_freedom(const md_system *y, const md_motion *m);
double md_temperature(const md_system *y, const md_motion *m, double kinetic);
/* Of cells with a volume: eV / Angstrom^3, Angstrom^3. */
double md_pressure(const md_system *y, double kinetic);
double md_volume(const md_system *y);
/* What exact integration would keep: the energy of the atoms, and of thermostat and barostat what
   they hold or have taken. */
double md_conserved(const md_system *y, const md_state *s, const md_motion *m, double kinetic);

/* ---- thermostat and barostat ---- */

/* eV / K; eV / (Angstrom u) in Angstrom / fs^2 */
extern const double md_boltzmann, md_force_unit;

/* The exact solution (of the chain: a splitting of fourth order) over a time step dt in which only
   the thermostat acts: on the cell here, on atoms by what it writes into the move. Except for
   Langevin's, the state's view has their kinetic energy. */
void md_thermostat_act(const md_system *y, md_state *s, const md_motion *m,
                       clb_dynamics_move *move);
/* The energy that the chain holds; 0 of other thermostats, whose heat the state counts. */
double md_chain_energy(const md_system *y, const md_state *s, const md_motion *m);

/* The barostat is that of Bussi, Zykova-Parrinello (2009): the logarithm of the cell's length is a
   coordinate with a mass, which the pressure accelerates. This is its acceleration over dt. */
void md_barostat_kick(const md_system *y, md_state *s, const md_motion *m, double dt);
/* Kinetic energy of the cell, work against the pressure, and the part that volumes have in the
   ensemble: with the energy of the atoms it is conserved. */
double md_barostat_energy(const md_system *y, const md_state *s, const md_motion *m);

#endif
