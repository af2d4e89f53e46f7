/* tools/ops/convolution/convolution_vectors.c - the reference of convolutions that compute y from
   edge vectors: harmonics, and gradients by vectors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ops/convolution/convolution_data.h"

enum { MAX_HARMONICS = 1024 };

void convolution_harmonics_make(convolution_data *t) {
  const tensor_problem *p = &t->problem->product;
  reference_irreps *y = allocate(1, sizeof *y);
  if (!reference_irreps_read(p->kind == OTHER_PRODUCT ? p->desc.irreps_y : p->y, y) ||
      y->dim > MAX_HARMONICS)
    fatal("--vectors: y is not of harmonics");
  for (int i = 0; i < y->n; i++) t->degrees[i] = y->term[i].l;
  t->harmonics = (clb_spherical_harmonics_desc){.degrees = t->degrees,
                                                .n_degrees = y->n,
                                                .normalization = t->problem->normalization,
                                                .normalize = 1};
  free(y);
}

void convolution_harmonics_of(const convolution_data *t, int64_t edge, double *y, double *size) {
  reference_forward(&t->harmonics, 1, t->graph.vector + 3 * edge, y, size);
}

void convolution_harmonics_along(const convolution_data *t, int64_t edge, const double *h,
                                 double *b, double *size) {
  const double nothing[MAX_HARMONICS] = {0};
  double unused[3];
  reference_double_backward(&t->harmonics, 1, t->graph.vector + 3 * edge, nothing, h, unused, b,
                            unused, size);
}

void convolution_by_vector(const convolution_data *t, int64_t edge, const double *g_y,
                           const double *scale, double *g_v, double *size) {
  double unused[3];
  reference_backward(&t->harmonics, 1, t->graph.vector + 3 * edge, g_y, g_v, unused);
  reference_backward(&t->harmonics, 1, t->graph.vector + 3 * edge, scale, unused, size);
}

void convolution_bend(const convolution_data *t, int64_t edge, const double *g_y,
                      const double *scale, const double *h, double *g_v, double *size) {
  double more[MAX_HARMONICS], unused[MAX_HARMONICS], bend[3], bend_size[3], nothing[3];
  const double *v = t->graph.vector + 3 * edge;
  reference_double_backward(&t->harmonics, 1, v, g_y, h, bend, more, nothing, unused);
  reference_double_backward(&t->harmonics, 1, v, scale, h, nothing, more, bend_size, unused);
  for (int i = 0; i < 3; i++) g_v[i] += bend[i], size[i] += bend_size[i];
}

void convolution_by_length(const convolution_data *t, int64_t edge, double g_r, double scale,
                           double *g_v, double *size) {
  const double *v = t->graph.vector + 3 * edge;
  for (int i = 0; i < 3 && t->length[edge] > 0; i++)
    g_v[i] += g_r * v[i] / t->length[edge], size[i] += scale;
}

double convolution_length_along(const convolution_data *t, int64_t edge, const double *h,
                                double *size) {
  const double *v = t->graph.vector + 3 * edge, r = t->length[edge];
  *size = r > 0 ? (fabs(v[0] * h[0]) + fabs(v[1] * h[1]) + fabs(v[2] * h[2])) / r : 0;
  return r > 0 ? (v[0] * h[0] + v[1] * h[1] + v[2] * h[2]) / r : 0;
}

void convolution_bend_length(const convolution_data *t, int64_t edge, double g_r, double scale,
                             const double *h, double *g_v, double *size) {
  double along, q = convolution_length_along(t, edge, h, &along);
  const double *v = t->graph.vector + 3 * edge, r = t->length[edge];
  for (int i = 0; i < 3 && r > 0; i++)
    g_v[i] += g_r * (h[i] - v[i] * q / r) / r, size[i] += scale * (fabs(h[i]) + along) / r;
}
