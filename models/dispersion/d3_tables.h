/* models/dispersion/d3_tables.h - the numbers of D3 (tables.txt, which embed.py turns into C). */
#ifndef CLB_MODELS_DISPERSION_D3_TABLES_H
#define CLB_MODELS_DISPERSION_D3_TABLES_H

#include <stdint.h>

enum { CLB_D3_ELEMENTS = 94 };

extern const double
    clb_d3_radius[CLB_D3_ELEMENTS + 1];               /* covalent, in Angstrom; by atomic number */
extern const double clb_d3_r4r2[CLB_D3_ELEMENTS + 1]; /* <r^4> / <r^2>, in Bohr^2 */
extern const int clb_d3_first[CLB_D3_ELEMENTS + 2];   /* of an element's reference systems */
extern const double clb_d3_number[];                  /* coordination number of each system */
extern const uint32_t clb_d3_c6[]; /* of systems i >= j, number i (i + 1) / 2 + j, in 1e-4 Hartree
                                      Bohr^6 */

extern const uint16_t clb_d3_vdw[]; /* van der Waals' radii of elements i >= j, from 1 on, number
                                       i (i - 1) / 2 + j - 1, in 1e-4 Angstrom */

typedef struct {
  const char *name;
  double s6, s8, a1, a2; /* a2 in Bohr */
} clb_d3_functional;
extern const clb_d3_functional clb_d3_functionals[]; /* ends with a name that is NULL */

#endif
