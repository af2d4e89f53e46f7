/* tools/serve/serve_engine.h - what computes for other programs, whatever their protocol. */
#ifndef CLB_TOOLS_SERVE_SERVE_ENGINE_H
#define CLB_TOOLS_SERVE_SERVE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the protocols' atomic units: CODATA 2018; Angstrom, eV. */
static const double bohr = 0.529177210903, hartree = 27.211386245988;

typedef struct serve_engine serve_engine;
struct serve_engine {
  int64_t n;           /* number of atoms, at most INT32_MAX */
  int32_t *numbers;    /* [n]: atomic numbers; change them by set_elements */
  double cell[3][3];   /* in: Angstrom, rows are the lattice vectors */
  double *positions;   /* in: [n][3], Angstrom */
  double energy;       /* out: eV */
  double *forces;      /* out: [n][3], eV / Angstrom */
  double virial[3][3]; /* out: -dE/dstrain, eV */
  /* false: a sentence in error */
  bool (*compute)(serve_engine *e, char *error, size_t size);
  bool (*set_elements)(serve_engine *e, const int32_t *numbers, char *error, size_t size);
  void *user;
};

/* Computes results, which must be finite. false: a sentence in error. */
bool serve_engine_compute(serve_engine *e, char *error, size_t size);

/* Takes n numbers in units of `unit`; false: one is not finite. */
bool serve_take_numbers(const void *from, int64_t n, double unit, double *x);

#endif
