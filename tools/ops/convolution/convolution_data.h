/* tools/ops/convolution/convolution_data.h - the host's part of a test run of a graph convolution:
   arrays, their values, the reference results for some rows. */
#ifndef CLB_TOOLS_OPS_CONVOLUTION_DATA_H
#define CLB_TOOLS_OPS_CONVOLUTION_DATA_H

#include "tools/ops/convolution/convolution_tool.h"
#include "tools/reference/reference_spherical_harmonics.h"
#include "tools/reference/reference_spline.h"

/* What the rows of an array belong to: senders, edges or receivers; or one row for all edges. */
typedef enum { OF_SENDERS, OF_EDGES, OF_RECEIVERS, OF_ALL, OWNERS } owner;

/* Rows that are compared, ascending, and the offsets of their results. */
typedef struct {
  int64_t n;
  int32_t *row;
} sample;

enum {
  VECTORS = 1,
  LENGTHS = 2
}; /* indices of y and w among the arrays, which may hold vectors and lengths */

typedef struct {
  const convolution_problem *problem;
  const tool_kernel *kernel;
  clb_pass pass;
  tool_data data;
  bool whole; /* everything is compared */
  convolution_graph graph;
  edges_by_row by[OWNERS]; /* not for edges */
  reference_product *product;
  clb_tensor_product_sizes sizes;
  int n, inputs;
  tool_array array[MAX_ARRAYS];
  owner owner[MAX_ARRAYS];
  reference_grid grid;
  double *weights, *table;                /* [knots][W], and of reference_spline_make; NULL: none */
  double *length;                         /* lengths of edges, as stored */
  clb_spherical_harmonics_desc harmonics; /* for vectors */
  int degrees[REFERENCE_MAX_TERMS];
  sample sample[OWNERS];
  /* While the reference is computed: of test_run. */
  double *const *values, *const *wanted, *const *scale;
} convolution_data;

void *convolution_data_make(const tool_kernel *kernel, clb_pass pass, const tool_data *data);
void convolution_data_free(void *graph);
int convolution_data_arrays(const void *graph, tool_array *arrays);
void convolution_data_fill(const void *graph, double *const *values, uint64_t *seed);
void convolution_data_answer(void *graph, double *const *values, double *const *wanted,
                             double *const *scale);
/* The grid of the problem's table, without columns: no knots where there is none. */
reference_grid convolution_grid(const convolution_problem *p);
/* What the operands are rounded from is larger than they are. */
bool convolution_has_sizes(const convolution_data *t);

/* ---- vectors ---- */

/* Fills harmonics: the terms of y. */
void convolution_harmonics_make(convolution_data *t);
/* y for an edge's vector, and b for a vector h; with each, the scale of its error. */
void convolution_harmonics_of(const convolution_data *t, int64_t edge, double *y, double *size);
void convolution_harmonics_along(const convolution_data *t, int64_t edge, const double *h,
                                 double *b, double *size);
/* Turns a gradient by y into one by the vector; adds the contribution of the second derivative of
   y, and of the gradient by the length. */
void convolution_by_vector(const convolution_data *t, int64_t edge, const double *g_y,
                           const double *scale, double *g_v, double *size);
void convolution_bend(const convolution_data *t, int64_t edge, const double *g_y,
                      const double *scale, const double *h, double *g_v, double *size);
void convolution_by_length(const convolution_data *t, int64_t edge, double g_r, double scale,
                           double *g_v, double *size);
/* The derivative of the length along h, with the scale of its error; adds the contribution of its
   gradient. */
double convolution_length_along(const convolution_data *t, int64_t edge, const double *h,
                                double *size);
void convolution_bend_length(const convolution_data *t, int64_t edge, double g_r, double scale,
                             const double *h, double *g_v, double *size);

/* A row of array i. */
const double *convolution_row(const convolution_data *t, int i, int64_t row);

#endif
