/* tools/ops/convolution_trial.h - the host's half of a trial of a graph convolution: arrays, their
   values, the reference's answer for some rows. */
#ifndef CLB_TOOLS_OPS_CONVOLUTION_TRIAL_H
#define CLB_TOOLS_OPS_CONVOLUTION_TRIAL_H

#include "tools/ops/convolution_tool.h"
#include "tools/reference/reference_spherical_harmonics.h"

/* Whose rows an array has: those of senders, edges or receivers; or one row that is of all edges.
 */
typedef enum { OF_SENDERS, OF_EDGES, OF_RECEIVERS, OF_ALL, OWNERS } owner;

typedef struct {
  const char *name;
  int like; /* CLB_OPERAND_X, ... */
  owner owner;
  bool output, repeats; /* repeats: one row for all */
  int width;            /* 0: not there */
  int64_t rows, start;  /* start: of its values in the block */
} convolution_array;

/* Rows that are compared, ascending, and where their results are. */
typedef struct {
  int64_t n;
  int32_t *row;
} sample;

enum {
  VECTORS = 1,
  LENGTHS = 2
}; /* numbers of y and w among the arrays: rows that may be of vectors and of lengths */
enum { BLOCK = 1048573 }; /* a prime: rows of no array repeat soon */

typedef struct {
  const convolution_problem *problem;
  const tool_kernel *kernel;
  clb_pass pass;
  tool_data data;
  bool whole; /* everything is compared */
  convolution_graph graph;
  edges_by_row by[OWNERS]; /* not of edges */
  reference_product *product;
  clb_tensor_product_sizes sizes;
  int n, inputs;
  convolution_array array[MAX_ARRAYS];
  /* Values of an array: one random block over and over, as stored and as f64; it goes on behind its
     end by `behind` elements. */
  double *block;
  unsigned char *stored;
  int64_t behind;
  double *table;                          /* [KNOTS][W][2], as stored; NULL: none */
  double *length;                         /* of edges, as stored */
  clb_spherical_harmonics_desc harmonics; /* of vectors */
  int degrees[REFERENCE_MAX_TERMS];
  sample sample[OWNERS];
  bool answered;
  double *wanted[MAX_ARRAYS], *scale[MAX_ARRAYS]; /* of outputs: [sample.n][width] */
} convolution_data;

void *convolution_data_make(const tool_kernel *kernel, clb_pass pass, const tool_data *data);
void convolution_data_free(void *trial);
/* Fills wanted and scale, the first time. */
void convolution_data_answer(convolution_data *t);
/* ---- of vectors ---- */

/* Fills harmonics: the terms of y. */
void convolution_harmonics_make(convolution_data *t);
/* y of an edge's vector, and b of a vector h; beside each the scale of its error. */
void convolution_harmonics_of(const convolution_data *t, int64_t edge, double *y, double *size);
void convolution_harmonics_along(const convolution_data *t, int64_t edge, const double *h,
                                 double *b, double *size);
/* The gradient by the vector of what has this one by y; what the second derivative of y, and the
   gradient by the length, add to it. */
void convolution_by_vector(const convolution_data *t, int64_t edge, const double *g_y,
                           const double *scale, double *g_v, double *size);
void convolution_bend(const convolution_data *t, int64_t edge, const double *g_y,
                      const double *scale, const double *h, double *g_v, double *size);
void convolution_by_length(const convolution_data *t, int64_t edge, double g_r, double scale,
                           double *g_v, double *size);
/* How the length changes along h, beside it the scale of the error; what a gradient of it that
   changes so adds. */
double convolution_length_along(const convolution_data *t, int64_t edge, const double *h,
                                double *size);
void convolution_bend_length(const convolution_data *t, int64_t edge, double g_r, double scale,
                             const double *h, double *g_v, double *size);

/* Where the values of a row are in the block. */
int64_t convolution_row(const convolution_array *a, int64_t row);

#endif
