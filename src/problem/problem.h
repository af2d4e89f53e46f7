/* src/problem/problem.h - the canonical description of one pass of one op: equal problems have
   equal bytes. */
#ifndef CLB_SRC_PROBLEM_PROBLEM_H
#define CLB_SRC_PROBLEM_PROBLEM_H

#include <clebsch/clebsch.h>

#include "src/base/text.h"

#define CLB_MAX_DEGREES 64

typedef struct {
  int32_t n_degrees, normalization, normalize;
  int32_t fresh; /* 1: y and d_g_y are overwritten even with `accumulate`, which then applies to
                    gradients by x alone */
  int32_t degrees[CLB_MAX_DEGREES]; /* unused ones are 0 */
} clb_spherical_harmonics_problem;

#define CLB_MAX_TERMS 512
#define CLB_MAX_PATHS 512

/* One term of irreps: mul x l, parity (1 or -1); at: its offset in a row. */
typedef struct {
  int32_t mul, l, parity, at;
  int32_t component_stride; /* in layout CLB_IR_MUL, elements between components; 0: mul */
} clb_term;

static inline int64_t clb_component_stride(const clb_term *t) {
  return t->component_stride ? t->component_stride : t->mul;
}

typedef struct {
  int32_t n, dim;
  clb_term term[CLB_MAX_TERMS]; /* unused ones are 0 */
} clb_irreps;

typedef struct {
  int32_t in1, in2, out, mode, has_weight;
  int32_t weight_at;  /* offset of its weights in a row */
  double coefficient; /* of the path, normalisations and path_weight included; times the 3j symbol
                         of norm 1 */
} clb_path;

typedef struct {
  clb_irreps x, y, z;
  int32_t n_paths, n_weights;
  int32_t layout_x, layout_y, layout_z, shared_weights;
  int32_t indexed, gradients, incoming; /* CLB_OPERAND_X + CLB_OPERAND_Y + ..., all bits are set
                                           where the description has 0 for all */
  int32_t edges; /* 0, or rows are the edges of a graph: inputs shaped like x or z are gathered by
                    row number (`indexed`), and results shaped like these (CLB_OPERAND_X +
                    CLB_OPERAND_Z, perhaps CLB_OPERAND_Y) go to a workspace: they are overwritten
                    even with `accumulate`; those like x and z have arithmetic precision */
  clb_path path[CLB_MAX_PATHS];
} clb_tensor_product_problem;

typedef struct {
  clb_tensor_product_problem product; /* first, so that it is also the union's `tensor_product` */
  int32_t atomics, spline;            /* spline: weights are read from a table */
  int32_t normalization;              /* of harmonics, where y comes from vectors */
  int32_t vectors; /* gradients of y (and of lengths) go to a workspace: they are overwritten even
                      with `accumulate` */
  int32_t gives_z; /* double backward gives gradients of z, too, which `gradients` has only in the
                      kernel that gives nothing else */
} clb_convolution_problem;

enum { CLB_MAX_ELL = 4, CLB_MAX_CORRELATION = 4 };

/* Of symmetric_contraction, and of symmetric_weights, its gradients by weights. */
typedef struct {
  int32_t ell, correlation, channels, n_species;
  int32_t layout_x, layout_z;
  int32_t gradients, incoming; /* as in tensor products; all bits are set where the description has
                                  0 for all */
  int32_t n_paths;             /* weights of a channel */
  int32_t n_degrees, degrees[CLB_MAX_ELL + 1]; /* of z; unused ones are 0 */
} clb_symmetric_contraction_problem;

/* Of rms_norm, and of rms_norm_sum, its gradients by weights. */
typedef struct {
  clb_irreps irreps;
  int32_t layout, variant, centre, bias;
  int32_t gradients, incoming; /* as in tensor products; all bits are set where the description has
                                  0 for all */
  int32_t whole, unused;       /* whole: a row is not split among sub-groups */
  double epsilon, weight_offset;
  double factor[CLB_MAX_TERMS]; /* CLB_RMS_TERMS: of terms' squares; else 0 */
} clb_rms_norm_problem;

/* Channels that follow each other in both input and output, in_by and out_by elements apart:
   scalars (gate < 0), or gated channels, whose components are in_step and out_step elements apart;
   their gates are adjacent. */
typedef struct {
  int32_t in, in_step, in_by, out, out_step, out_by, gate, mul, components, activation;
  double scale;
} clb_gate_segment;

typedef struct {
  int32_t in, out, n_segments, unused; /* columns */
  clb_gate_segment segment[CLB_MAX_TERMS];
} clb_gate_problem;

/* Of linear, of linear_few, the same for few rows, and of linear_weights, its gradients by weights.
 */
enum { CLB_LINEAR_ONE_ROW, CLB_LINEAR_PER_ROW, CLB_LINEAR_BY_SPECIES };
enum { CLB_LINEAR_NO_GATE, CLB_LINEAR_GATED, CLB_LINEAR_GATE_BACKWARD };
typedef struct {
  int32_t in, out;   /* terms */
  int32_t weight_at; /* offset of its [mul_in][mul_out] weights in a row */
  int32_t unused;
  double coefficient;
} clb_linear_path;

typedef struct {
  clb_irreps in, out;
  int32_t layout_in, layout_out;
  int32_t weights, n_species;  /* weights: CLB_LINEAR_ONE_ROW ...; n_species: rows of w, 1 if it is
                                  not BY_SPECIES */
  int32_t gradients, incoming; /* as in tensor products; all bits are set where the description has
                                  0 for all */
  int32_t n_paths, n_weights;  /* n_weights: with biases */
  int32_t in_split, out_split; /* of linear_few, forward: terms from these on are of a second array,
                                  in whose rows they are; 0: there is one. Bit 1 of `accumulate`
                                  is the second result's */
  int32_t one_matrix; /* of two maps, BY_SPECIES: which of them, 1 or 2, has the same weights for
                         all, from where row 0 begins; 0: neither */
  int32_t gated; /* of linear_few, forward.  GATED: x is what comes out of the gate, in terms of
                    `in`, and the rows are what goes in.  GATE_BACKWARD: z is the gradient of what
                    comes out, in terms of `out`, and of what goes in there are values in one more
                    array, and gradients in the place of z */
  int32_t bias[CLB_MAX_TERMS]; /* of a term of `out`: 1 + offset of its biases in a row of weights;
                                  0: it has none */
  clb_gate_problem gate;       /* a segment for each term of what comes out */
  clb_linear_path path[CLB_MAX_PATHS]; /* unused ones are 0 */
} clb_linear_problem;

typedef struct {
  int64_t columns, max_rows; /* what the op was created for; its kernels take any */
  int64_t whole;             /* 1: rows are not split into blocks */
} clb_column_sum_problem;

/* Of each role's `columns` sums over channels, `count` from number `from` on. */
typedef struct {
  int32_t columns, from, count;
} clb_role_sum_problem;

typedef struct {
  int32_t l;                  /* the highest degree */
  int32_t harmonics, lengths; /* whether there are rows of harmonics of degrees below this, of the
                                 component normalization, and of lengths, too */
} clb_edge_frame_problem;

enum { CLB_ROWS_BY_SLOT, CLB_ROWS_BY_EDGE, CLB_ROWS_OWN, CLB_ROWS_WHOLE };
typedef struct {
  int64_t columns;
  int32_t listed, from; /* listed: how rows are numbered; OWN: one per row of the graph; WHOLE: as
                           BY_EDGE, whole rows; from: clb_dtype of what is summed */
} clb_row_sum_problem;

typedef struct {
  int32_t step; /* clb_graph_step */
} clb_graph_problem;

typedef struct {
  int32_t step;  /* clb_cell_list_step */
  int32_t atoms; /* clb_cell_atoms */
} clb_cell_list_problem;

typedef struct {
  int32_t step; /* clb_dispersion_step */
} clb_dispersion_problem;

/* ---- of kernels/layers/host/layers.h ---- */

enum { CLB_POINTWISE_GATHER, CLB_POINTWISE_ACTIVATION, CLB_POINTWISE_ZERO };
typedef struct {
  int32_t function, activation;
  double scale, factor; /* ACTIVATION: h = factor f(scale x) */
} clb_pointwise_problem;

typedef struct {
  clb_irreps irreps;
  int32_t layout, activation, normalize, bias;
  double scale, epsilon;
} clb_norm_activation_problem;

enum { CLB_MAX_BASIS = 64 };
typedef struct {
  int32_t n_basis, p; /* p: of the polynomial cutoff; 0: XPLOR's, which begins at r_on */
  double r_max, r_on, frequency[CLB_MAX_BASIS];
  int32_t transform, apart; /* transform: of distances, with a and the exponents p and q; apart: the
                               cutoff is a result of its own */
  double a, exponent, q;
  int32_t width,
      unused; /* of a spline, in their distance from one to the next; 0: Bessel functions */
} clb_radial_problem;

typedef struct {
  int32_t n_basis, weighted, activation, unused; /* weighted: edges have factors */
} clb_density_problem;

typedef struct {
  int32_t p, n_species;
  double r_max, coefficient[4], exponent[4];
} clb_repulsion_problem;

/* What rows are multiplied by: t, 1 / t, 1 / (1 + t). */
typedef enum { CLB_ROW_TIMES, CLB_ROW_OVER, CLB_ROW_OVER_MORE } clb_row_factor;
typedef struct {
  int32_t n_species, unused;
} clb_stretch_problem;

typedef struct {
  int64_t columns;
  int32_t factor, unused; /* factor: clb_row_factor */
} clb_row_scale_problem;

/* Weights of edges from tables by pairs of species. */
typedef struct {
  clb_tensor_product_problem product; /* its n_weights alone; first, as in convolutions */
  int64_t table;                      /* elements of a pair's table */
  int32_t n_species, unused;
} clb_pair_table_problem;

/* Knots equally far apart from 0 to r_max, split: the one at which no function is smooth, or 0; and
   rows of edges from rows there. */
typedef struct {
  double r_max;
  int32_t intervals, split;
} clb_edge_knots_problem;
typedef struct {
  int32_t knots, columns;
} clb_edge_spline_problem;

/* b_k = exp(coefficient (r - k step)^2), k = 0 ... columns - 1. */
typedef struct {
  int64_t columns;
  double step, coefficient;
} clb_gaussians_problem;

/* Degrees up to l, orders up to m. */
enum { CLB_MAX_EDGE_ROTATION_L = 8 };
typedef struct {
  int32_t l, m;
} clb_edge_rotation_problem;
/* Where the 2 l + 1 numbers of degree l and order m start in a row of degrees up to L: orders 0, 1,
   -1, 2, -2, ..., of each the degrees from |m| to L. */
static inline int clb_edge_rotation_at(int L, int m, int l) {
  const int all = (L + 1) * (L + 1), a = m < 0 ? -m : m;
  int start = a ? all : 0;
  for (int q = 1; q < a; q++) start += 2 * (all - q * q);
  return start + (m < 0 ? all - a * a : 0) + l * l - a * a;
}
static inline int clb_edge_rotation_columns(int L, int M) {
  return clb_edge_rotation_at(L, -M, L) + 2 * L + 1;
}

/* Of kernels/grouped/tile.h. */
typedef struct {
  int32_t scaled, gated;
} clb_grouped_product_problem;

/* Of kernels/grouped/basis.h. */
typedef struct {
  int32_t side; /* at least as long as every side */
} clb_matrix_basis_problem;

enum { CLB_TOTAL_ENERGY, CLB_TOTAL_VIRIAL };
typedef struct {
  int32_t what, n_species;
} clb_totals_problem;

/* Of kernels/optimizer/chunks.h.  A rule as it is compiled: yes or no, but for the rule. */
enum { CLB_MAX_RULES = 12 };
typedef struct {
  int32_t rule, momentum, nesterov, amsgrad;
  int32_t muon, longest_side; /* Muon's variant; of SOAP */
} clb_optimizer_rule;

typedef struct {
  int32_t n_rules, wide;                  /* wide: some chunks can be accessed 16 bytes at a time */
  clb_optimizer_rule rule[CLB_MAX_RULES]; /* unused ones are 0 */
  int32_t gradients, copies, copy;        /* types; copies: there is a copy */
  int32_t clip, check_finite, ema;
  int32_t gathers, matrices, soap; /* whether a rule is of matrices; their type; is SOAP */
} clb_optimizer_problem;

/* Distinct shifts in one direction that clb_edge_shift can encode, and its number of no shift. */
enum {
  CLB_EDGE_SHIFTS = 1024,
  CLB_EDGE_HOME = CLB_EDGE_SHIFTS / 2 * (1 + CLB_EDGE_SHIFTS * (1 + CLB_EDGE_SHIFTS))
};

/* ---- all of them ---- */

enum {
#define KIND(NAME, name) CLB_##NAME,
#include "src/problem/kinds.def"
  CLB_KERNEL_KINDS
};

typedef struct {
  int32_t kind; /* CLB_SPHERICAL_HARMONICS ...: index in clb_kernel_kinds */
  int32_t pass, storage, arithmetic, accumulate;
  union {
#define PLAIN(NAME, name)
#define KIND(NAME, name) clb_##name##_problem name;
#include "src/problem/kinds.def"
  };
} clb_problem; /* must start zeroed: every byte counts */

#endif
