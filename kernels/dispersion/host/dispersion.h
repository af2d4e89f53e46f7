/* kernels/dispersion/host/dispersion.h - the dispersion energy D3 of atoms, and what follows from
   it (kernels/dispersion/dispersion_steps.h): energies, forces and virials are added to others. eV
   and Angstrom. */
#ifndef CLB_KERNELS_DISPERSION_HOST_DISPERSION_H
#define CLB_KERNELS_DISPERSION_HOST_DISPERSION_H

#include "kernels/graph/host/cell_list.h"

typedef struct clb_dispersion clb_dispersion;

/* Rational damping: a2 in Angstrom. s9: of triples, in 1 / sqrt(eV), or 0. radius: of pairs;
   count_radius: of coordination numbers and triples, no longer. */
typedef struct {
  double s6, s8, a1, a2, s9, radius, count_radius;
} clb_dispersion_damping;

/* Compiles the kernels. CLB_ERROR_UNSUPPORTED: the device has no f64. */
clb_status clb_dispersion_create(clb_context *ctx, clb_dtype type,
                                 const clb_dispersion_damping *damping,
                                 clb_dispersion **dispersion);
void clb_dispersion_destroy(clb_dispersion **dispersion); /* NULL is fine */

/* The elements that occur from now on. */
typedef struct {
  int64_t n_species, n, references; /* n: elements; references: systems of one, at most; even
                                      where limits.simd is not set */
  const int32_t *element;           /* [n_species]: 0 ... n - 1, of those that occur */
  const double *radius, *root;      /* [n]: R, and p */
  const double *number;             /* [n][references]: n_a; -1: there is no such system */
  const double *vdw;                /* [n][n]: R^2 of triples, of two elements */
  const double *c6;                 /* [n][references][n][references]; 0: no such systems */
} clb_dispersion_elements;
clb_status clb_dispersion_set(clb_dispersion *d, const clb_dispersion_elements *elements);

/* Submits the sorting of atoms of many systems, one after the other; grids, for the radius, as in
   clb_cell_list_sort. species: int32 of all atoms, from the buffer's start. Buffers must stay.
   Results are of the atoms first ... first + rows - 1. gather: of so many columns of their rows it
   makes those of all atoms; NULL: they are all. It is called once while energies are added, and
   again with their derivatives. */
typedef struct {
  int64_t n, n_systems;
  const clb_cell_grid *grids; /* [n_systems]; NULL: those of the last call, as `system` */
  const int32_t *system;      /* [n] */
  const clb_buffer *positions, *species;
  int64_t first, rows;
  clb_status (*gather)(void *user, int64_t columns, const double *from, double *to);
  void *user;
} clb_dispersion_atoms;
clb_status clb_dispersion_place(clb_dispersion *d, const clb_dispersion_atoms *atoms);

/* Submits what adds to results of rows of the atoms that were placed, f64; a buffer that is NULL is
   not wanted. Without forces, virials and virial only energies are computed. */
typedef struct {
  clb_rows energy, virial;            /* [1], [9]: sums over the rows */
  clb_rows energies, forces, virials; /* [rows], [rows][3], [rows][9] */
} clb_dispersion_results;
clb_status clb_dispersion_add(clb_dispersion *d, const clb_dispersion_results *results);

uint64_t clb_dispersion_bytes(const clb_dispersion *d); /* of device memory */

#endif
