/* kernels/dispersion/dispersion_steps.h - the steps of the dispersion energy of atoms by Grimme's
   D3 with rational damping, and the arguments of their kernels.

   Coordination numbers n_i = sum_j f(r_ij), f(r) = 1 / (1 + exp(-16 ((R_i + R_j) / r - 1))), weigh
   the reference systems a of an element:
     W_a = exp(-4 (n_i - n_a)^2) / sum of them,   C6_ij = sum_ab W_a W_b C6_ab.
   A pair's energy is, with q = C8 / C6 = (p_i p_j)^2 and r0 = a1 p_i p_j + a2,
     E_ij = -C6_ij (s6 / (r^6 + r0^6) + s8 q / (r^8 + r0^8)).
   That of three atoms, of an angle at each, is
     E_ijk = s9 sqrt(C6_ij C6_ik C6_jk) (3 cos cos cos + 1) / (1 + t) / (r_ij r_ik r_jk)^3,
     t = 6 (R_ij R_ik R_jk / (r_ij r_ik r_jk))^(16/3), R of two elements.
   Forces are those at given n, and those through n: D_i = dE / dn_i.

   Atoms are sorted by the slots of grids (kernels/graph/cell_search.h), a sub-group takes one of
   them, its receiver, and goes through the slots around; a pair is seen from both of its ends, and
   nothing is added that another sub-group adds to. Receivers are those of all atoms that have rows
   of results, `first` ... first + rows - 1: others are another process', which computes n and D of
   them. Of an atom i WEIGHTS keeps the products of its weights with C6, V_fb = sum_a W_a C6_ab for
   each reference system b of each element f, so that C6_ij is a sum over those of j alone.

   E elements occur, with R reference systems at most, on GPUs rounded up to an even number; n and D
   are kept by atoms, in f64, and what neighbours are asked for by places. The first parameters of
   steps with receivers are units (i64), then n ... system of cell_search.h, the atom in each place,
   x (f64 [3][n]), first place of each slot, element of each place, share (f64: of the radius that
   the grid is for), square of the radius (f64), first (i64), rows (i64). Then
     COUNTS        R of elements, out n (f64)
     PAIRS         p of elements, R (i32), E R (i64), W, V, s6, s8, a1, a2, out D (f64), out sums
                   (f64 [rows][7]: energy; xx, yy, zz, yz, xz, xy of the virial), then three
                   results: energies of atoms, forces, virials of atoms
     TRIPLES       R (i32), E R (i64), W, V, E (i64), R^2 [E][E], s9; D, sums, energies of
                   atoms, forces and virials of atoms, which are all added to
     CHAIN         R of elements, D of places, sums, forces, virials of atoms: the forces through n
   Those of the others are units, n (i64), and
     ELEMENTS      atom in each place, species of atoms, element of each species, out element of
                   each place
     WEIGHTS       atom and element of each place, n (f64), R (i32), E R (i64), n_a [E][R] (-1:
                   none), C6 [E][R][E][R], out W ([R][n], on GPUs [n][R]), out (V, dV / dn_i)
                   [n][E R][2]
     SLOPES        atom in each place, D (f64), out D of places
     SUMS          rows of a unit (i64), sums [n][7], out sums of units; energy, virial, which the
                   first unit adds to
   A result is added to: buffer (f64), offset (i64) of the first row, whether it is wanted (i32).
   Numbers are of the problem's type, and int32, unless said otherwise. Units are places; in
   ELEMENTS and SLOPES chunks of lanes. */
#ifndef CLB_KERNELS_DISPERSION_DISPERSION_STEPS_H
#define CLB_KERNELS_DISPERSION_DISPERSION_STEPS_H

typedef enum {
  CLB_DISPERSION_ELEMENTS,
  CLB_DISPERSION_COUNTS,
  CLB_DISPERSION_WEIGHTS,
  CLB_DISPERSION_PAIRS,
  CLB_DISPERSION_TRIPLES,
  CLB_DISPERSION_SLOPES,
  CLB_DISPERSION_CHAIN,
  CLB_DISPERSION_SUMS,
  CLB_DISPERSION_STEPS
} clb_dispersion_step;

enum { CLB_DISPERSION_COLUMNS = 7 }; /* of sums */

#endif
