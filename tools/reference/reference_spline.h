/* tools/reference/reference_spline.h - cubic splines on the grid of a convolution's knots, by their
   second derivatives at the knots (the library makes them of B-splines). */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_SPLINE_H
#define CLB_TOOLS_REFERENCE_REFERENCE_SPLINE_H

#include <stdint.h>

typedef struct {
  int knots;
  double first, last;
  int64_t width;
  double stretch; /* knot i is at first + (last - first) stretch x / (1 + stretch - x),
                     x = i / (knots - 1); 0: 1/2 */
  int split;      /* a knot where second derivatives may jump; 0: none */
} reference_grid;

/* Chooses stretch and split so that a knot lies at a length. */
void reference_grid_break(reference_grid *g, double at);

double reference_knot(const reference_grid *g, int i);
/* From values[knots][width]: [knots][width][2], or [knots + 1][width][2] with a split, whose row
   comes twice: values and second derivatives by the knots' number; the third ones are continuous at
   the second knot and at the last but one, of either side of a split. */
void reference_spline_make(const reference_grid *g, const double *values, double *table);

/* A length on the grid, in units of knots, with derivatives (0 beyond the ends); what its rounding
   is relative to. */
typedef struct {
  int interval;
  double u, rate, turn, rounding;
} reference_position;
reference_position reference_position_at(const reference_grid *g, double r);

/* A spline and its derivatives by r; the size of the numbers that they are sums of. */
typedef struct {
  double w, slope, bend, size;
} reference_weight;
reference_weight reference_spline_at(const reference_grid *g, const double *table,
                                     const reference_position *p, int64_t j);

#endif
