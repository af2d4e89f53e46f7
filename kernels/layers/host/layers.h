/* kernels/layers/host/layers.h - what networks need besides convolutions, harmonics and matrix
   products: radial basis, energies, forces, ...; each with its gradient by its inputs (not by
   its parameters).

   `type` is CLB_F64 or CLB_F32: storage and arithmetic of all rows, unless said otherwise.  Rows of
   irreps lie in layout ir_mul: each term [2l+1][mul].  clb_rows as in clebsch.h (offset and stride
   in elements, CLB_DENSE); its index is NULL unless said otherwise. species: clb_rows whose buffer
   holds int32 numbers 0 ... S - 1 (not checked), one per row: `offset` counts numbers, `stride` is
   ignored. n may be 0. Outputs are overwritten without being read; with `add` they are added to.
   Outputs may not overlap inputs unless said.

   Create functions compile all kernels and allocate what the op needs; clb_op_destroy(&op) frees
   it. All other functions only submit: they allocate nothing and wait for nothing. Equal calls on
   one device give equal bits. Errors name the op and the operand. */
#ifndef CLB_KERNELS_LAYERS_HOST_LAYERS_H
#define CLB_KERNELS_LAYERS_HOST_LAYERS_H

#include "kernels/convolution/host/table.h"
#include "kernels/graph/host/graph.h"
#include "src/problem/activation.h"

/* The type in which energies, forces and virials are summed and stored: CLB_F64 where the device
   has it, else CLB_F32. */
clb_dtype clb_sum_type(const clb_context *ctx);

/* Passes of training, which an op has once this has compiled them: a radial basis of pairs,
   densities, rows times numbers, repulsion.

   `along`: derivatives of outputs along tangents of the inputs: q of vectors, a_x of x.  `reverse`:
   for G = sum g_y y + h_y y_along its gradients by inputs (d_x) and by parameters, with y_along as
   `along` has it. */
clb_status clb_layer_add_training(clb_op *op);

/* ---- pointwise ---- */

/* out[i][columns] = (of an op that adds: +=) table[table.index[i]][columns]: the index is a buffer
   of at least n int32 row numbers.  E.g. species embeddings. */
clb_status clb_gather_create(clb_context *ctx, clb_dtype type, bool adds, clb_op **op);
clb_status clb_gather_run(clb_op *op, int64_t n, int64_t columns, clb_rows table, clb_rows out);

/* out[n][columns] = 0. */
clb_status clb_zero_create(clb_context *ctx, clb_dtype type, clb_op **op);
clb_status clb_zero_run(clb_op *op, int64_t n, int64_t columns, clb_rows out);

/* h[n][columns] = factor f(scale a[n][columns]); h may be a (but backward needs a). backward:
   g_a[n][columns] = g_h factor scale f'(scale a); g_a may be a or g_h. */
clb_status clb_activation_create(clb_context *ctx, clb_dtype type, clb_activation f, double scale,
                                 double factor, clb_op **op);
clb_status clb_activation_forward(clb_op *op, int64_t n, int64_t columns, clb_rows a, clb_rows h);
clb_status clb_activation_backward(clb_op *op, int64_t n, int64_t columns, clb_rows a, clb_rows g_h,
                                   clb_rows g_a);

/* ---- vectors of edges ---- */

/* v[e][3] of `type` = x[sender] - x[receiver] + shift . cell for the graph's edges as they were
   given; computed in double, rounded as clb_neighbours_vectors does.  positions[n][3]: double, of
   all senders and receivers.  shifts: numbers as species, clb_edge_shift of each edge.
   many: each system of atoms has a cell of its own. CLB_ERROR_UNSUPPORTED where the device has no
   f64. */
clb_status clb_edge_vectors_create(clb_context *ctx, clb_dtype type, bool many, clb_op **op);
typedef struct {
  const double (*cell)[3];          /* of all edges; NULL: of many systems */
  const clb_memory *table, *system; /* f64 [systems][row], of which 9 are the cell; int32 [atoms] */
  int64_t row;
  double far; /* the length of edges of atoms to themselves, without a shift */
} clb_edge_cells;
clb_status clb_edge_vectors_run(clb_op *op, const clb_graph *graph, clb_rows positions,
                                clb_rows shifts, const clb_edge_cells *cells, clb_rows v);
/* The same where senders of the graph are not numbers of positions: `senders`, int32, are. */
clb_status clb_edge_vectors_from(clb_op *op, const clb_graph *graph, const clb_memory *senders,
                                 clb_rows positions, clb_rows shifts, const clb_edge_cells *cells,
                                 clb_rows v);
/* Of training: tangents q[e][3] = u[sender] - u[receiver] + S v, with S[3][3] of the receiver's
   system: strains[systems][9], and system of atoms, int32 from the first one on. All of one type.
 */
clb_status clb_edge_tangents_create(clb_context *ctx, clb_dtype type, clb_op **op);
clb_status clb_edge_tangents_run(clb_op *op, const clb_graph *graph, int64_t systems, clb_rows u,
                                 clb_rows strains, const clb_buffer *system, clb_rows v,
                                 clb_rows q);
/* Three shifts in one number; -1: one is not -512 ... 511. */
static inline int32_t clb_edge_shift(const int32_t shift[3]) {
  int32_t packed = 0;
  for (int d = 2; d >= 0; d--) {
    if (shift[d] < -CLB_EDGE_SHIFTS / 2 || shift[d] >= CLB_EDGE_SHIFTS / 2) return -1;
    packed = packed * CLB_EDGE_SHIFTS + shift[d] + CLB_EDGE_SHIFTS / 2;
  }
  return packed;
}

/* ---- radial basis ---- */

/* b_k = (2 / r_max) sin(w_k u) / r f(u), u = r / r_max; f, the cutoff, is 0 from r_max on:
     polynomial: f = 1 - (p+1)(p+2)/2 u^p + p(p+2) u^(p+1) - p(p+1)/2 u^(p+2);
     XPLOR (p = 0): 1 up to r_on, then (R^2 - r^2)^2 (R^2 + 2 r^2 - 3 r_on^2) / (R^2 - r_on^2)^3,
     R = r_max.
   Below r = 1e-6 r_max b_k is constant; at v = 0 gradients are 0. */
typedef struct {
  double r_max;              /* unit of v */
  int p, n_basis;            /* p: 1 ... 64, or 0: XPLOR; n_basis: 0 ... CLB_MAX_BASIS (64) */
  const double *frequencies; /* [n_basis]: w; copied */
  double r_on;               /* XPLOR only: 0 <= r_on < r_max */
  int width; /* above 0: instead, without f, b_k = sin^4(pi (n_basis u - k - 1 + width) /
                width) where that angle is within 0 and pi, else 0 */
} clb_radial_desc;

/* forward: r[n][1] and basis[n][n_basis] from v[n][3]; r.buffer or basis.buffer NULL: not wanted.
   backward: g_v[n][3] (= or +=) sum_k g_basis[n][k] db_k/dv.
   backward_distance: g_v[n][3] (= or +=) g_r[n][1] v / r, for callers that look tables up by r. */
clb_status clb_radial_create(clb_context *ctx, clb_dtype type, const clb_radial_desc *desc,
                             clb_op **op);
clb_status clb_radial_forward(clb_op *op, int64_t n, clb_rows v, clb_rows r, clb_rows basis);
clb_status clb_radial_backward(clb_op *op, int64_t n, clb_rows v, clb_rows g_basis, clb_rows g_v,
                               bool add);
clb_status clb_radial_backward_distance(clb_op *op, int64_t n, clb_rows v, clb_rows g_r,
                                        clb_rows g_v, bool add);

/* Agnesi's transform of distances. In b_k, not in f, d stands for r: d = 1 / (1 + a t^q / (1 +
   t^(q-p))), t = r / r_0, r_0 the mean radius of the edge's two atoms; beyond r_max d is that of
   r_max. */
typedef struct {
  double a, p, q; /* a > 0; exponents of at most 64 */
  int64_t n_species;
  const double *radii; /* [n_species]: above 0; copied */
} clb_agnesi;

/* The same for all edges of a graph as they were given, with a transform (NULL: none), or with f
   `apart`: b_k without f, which is a result of its own.  species: of all receivers and senders (not
   read without a transform); f[n][1] and g_f[n][1]: not without `apart`. backward takes the
   gradients of both results; clb_radial_backward_distance is for these ops, too.  arithmetic: that
   of rows' type, or CLB_F64, also of f32 rows. */
clb_status clb_radial_pairs_create(clb_context *ctx, clb_dtype type, clb_dtype arithmetic,
                                   const clb_radial_desc *desc, const clb_agnesi *transform,
                                   bool apart, clb_op **op);
clb_status clb_radial_pairs_forward(clb_op *op, const clb_graph *graph, clb_rows species,
                                    clb_rows v, clb_rows r, clb_rows basis, clb_rows f);
clb_status clb_radial_pairs_backward(clb_op *op, const clb_graph *graph, clb_rows species,
                                     clb_rows v, clb_rows g_basis, clb_rows g_f, clb_rows g_v,
                                     bool add);
/* Of training: basis_along[n][n_basis] and, where it is apart, f_along[n][1] from tangents q[n][3]
   of v.  frequencies: g_w[n][n_basis], each edge's part of the gradient of sum_k g_basis_k b_k +
   h_basis_k b_along_k by w_k; clb_column_sum sums them. */
clb_status clb_radial_pairs_along(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                                  clb_rows q, clb_rows basis_along, clb_rows f_along);
clb_status clb_radial_pairs_frequencies(clb_op *op, const clb_graph *graph, clb_rows species,
                                        clb_rows v, clb_rows q, clb_rows g_basis, clb_rows h_basis,
                                        clb_rows g_w);

/* Lengths alone, without a basis; storage and arithmetic as in clebsch.h. Below 1e-12 v / r is v *
 / 1e-12. */
clb_status clb_lengths_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                              clb_op **op);
/* Double backward of lengths: q[n][1] = h . v / r, and g_v[n][3] += the gradient by v of sum g_r h
   . v / r, 0 below 1e-12.  h[n][3], g_r[n][1]. */
clb_status clb_lengths_along_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                    clb_op **op);
clb_status clb_lengths_along_run(clb_op *op, int64_t n, clb_rows v, clb_rows h, clb_rows g_r,
                                 clb_rows q, clb_rows g_v);

/* ---- densities, and rows times numbers ---- */

/* rho[i][1] of the graph's receivers = sum over the edges that i receives of factor tanh(q^2), q =
   sum_k basis[n][k] D_k; factor[n][1]: rows of edges if `weighted`, else 1 (and not read). weights:
   host array D[n_basis], 1 ... CLB_MAX_BASIS; copied.  backward: g_basis[n][n_basis] and
   g_factor[n][1] (each = or +=) from g_rho. Rows of edges in the graph's order as it was given. */
clb_status clb_density_create(clb_context *ctx, clb_dtype type, int n_basis, const double *weights,
                              bool weighted, clb_op **op);
clb_status clb_density_forward(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                               clb_rows rho);
clb_status clb_density_backward(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                                clb_rows g_rho, clb_rows g_basis, clb_rows g_factor, bool add,
                                bool add_factor);
/* Of training: rho_along[i][1]; d_basis[n][n_basis] and d_factor[n][1] are added to.
   g_D[n][n_basis]: each edge's part of the gradient by D; clb_column_sum sums them. */
clb_status clb_density_along(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                             clb_rows a_basis, clb_rows a_factor, clb_rows rho_along);
clb_status clb_density_reverse(clb_op *op, const clb_graph *graph, clb_rows basis, clb_rows factor,
                               clb_rows a_basis, clb_rows a_factor, clb_rows g_rho, clb_rows h_rho,
                               clb_rows d_basis, clb_rows d_factor, clb_rows g_D);

/* y[n][columns] = x[n][columns] s, s = t, 1 / t or 1 / (1 + t), as `factor` says, of t[n][1]; y may
   be x (but backward needs x).  backward: g_x[n][columns] from g_y, which it may be, and g_t[n][1]
   (= or +=). */
clb_status clb_row_scale_create(clb_context *ctx, clb_dtype type, int64_t columns,
                                clb_row_factor factor, clb_op **op);
clb_status clb_row_scale_forward(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows y);
clb_status clb_row_scale_backward(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows g_y,
                                  clb_rows g_x, clb_rows g_t, bool add);
/* Of training: y_along[n][columns]; d_x[n][columns] and d_t[n][1] are added to. */
clb_status clb_row_scale_along(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows a_x,
                               clb_rows a_t, clb_rows y_along);
clb_status clb_row_scale_reverse(clb_op *op, int64_t n, clb_rows x, clb_rows t, clb_rows a_x,
                                 clb_rows a_t, clb_rows g_y, clb_rows h_y, clb_rows d_x,
                                 clb_rows d_t);

/* ---- species of edges ---- */

/* pairs: int32 [n_edges] from the start of a buffer: that of the receiver times n_species, plus
   that of the sender. Species of all atoms of the graph. */
clb_status clb_pair_species_create(clb_context *ctx, clb_op **op);
clb_status clb_pair_species_run(clb_op *op, const clb_graph *graph, clb_rows species,
                                int64_t n_species, const clb_buffer *pairs);

/* ---- tables by pairs of species ---- */

/* Splines W(r) on one grid (knots, first, last, break), in `type`: those of all pairs follow each
   other in `spline.coefficients`. */
typedef struct {
  clb_convolution_table spline;
  clb_buffer *table_of; /* int32 [n_species][n_species]: the number of a pair's table */
} clb_pair_tables;

/* forward: w[n_edges][columns] = W(|v|) from v[n_edges][3] of the graph's edges as they were given
   and the species of all receivers and senders; each pair that occurs has a table (not checked).
   backward: g_v[n][3] (= or +=) sum g_w dW/dv.  W is constant beyond the grid's ends. */
clb_status clb_pair_table_create(clb_context *ctx, clb_dtype type, int64_t n_species,
                                 int64_t columns, const clb_convolution_table *grid, clb_op **op);
clb_status clb_pair_table_forward(clb_op *op, const clb_pair_tables *t, const clb_graph *graph,
                                  clb_rows species, clb_rows v, clb_rows w);
clb_status clb_pair_table_backward(clb_op *op, const clb_pair_tables *t, const clb_graph *graph,
                                   clb_rows species, clb_rows v, clb_rows g_w, clb_rows g_v,
                                   bool add);
/* The bytes of a pair's table; its contents from coefficients[rows][columns] of its splines. */
int64_t clb_pair_table_bytes(const clb_op *op);
void clb_pair_table_pack(const clb_op *op, const double *coefficients, void *table);

/* ---- repulsion of nuclei ---- */

/* V_i = sum over the edges that i receives of 7.1998 Z_i Z_j phi((q_i + q_j) r) f(r / R_ij) / r
   (eV, Angstrom): phi(x) = sum over n of c_n exp(-e_n x), f the polynomial cutoff; from r_max on it
   is 0, too, by a step if R_ij is more. Below 1e-6 R_ij r is that; at v = 0 gradients are 0. */
typedef struct {
  int64_t n_species;
  const double *charges, *screening; /* [n_species]: Z, q; copied */
  const double *reach;               /* [n_species][n_species]: R of receiver and sender, above 0 */
  double coefficients[4], exponents[4]; /* c, e */
  int p;                                /* of the cutoff: 1 ... 64 */
  double r_max;                         /* above 0 */
} clb_repulsion_desc;

/* forward: out[i][1] (= or +=) V_i of the graph's receivers, from v[n][3] of its edges as they were
   given and the species of all receivers and senders. backward: g_v[n][3] (= or +=) from
   g_out[i][1]. */
clb_status clb_repulsion_create(clb_context *ctx, clb_dtype type, const clb_repulsion_desc *desc,
                                clb_op **op);
clb_status clb_repulsion_forward(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                                 clb_rows out, bool add);
clb_status clb_repulsion_backward(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                                  clb_rows g_out, clb_rows g_v, bool add);
/* Of training: out[i][1] (= or +=) the derivative of V_i along q[n][3]. */
clb_status clb_repulsion_along(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows v,
                               clb_rows q, clb_rows out, bool add);

/* ---- vectors times factors ---- */

/* to[n][3] (= or +=) factors[n_species][n_species] of the species of receiver and sender (copied)
   times from[n][3], for the edges of a graph as they were given. */
clb_status clb_stretch_create(clb_context *ctx, clb_dtype type, int64_t n_species,
                              const double *factors, clb_op **op);
clb_status clb_stretch_run(clb_op *op, const clb_graph *graph, clb_rows species, clb_rows from,
                           clb_rows to, bool add);

/* ---- energies, forces, virial ---- */

/* e[i] = scale[species] x[i] + shift[species].  scale, shift: host arrays of n_species
   (energy_scale times those of docs/model-format.md); copied, in clb_sum_type. forward:
   e_atom[n][1] of clb_sum_type (buffer NULL: not wanted) from x[n][1] of `type`, and total (below);
   and, as backward does alone, g_x[n][1] of `type` = dE/dx = scale[species] (NULL: not wanted). */
clb_status clb_energy_create(clb_context *ctx, clb_dtype type, int64_t n_species,
                             const double *scale, const double *shift, clb_op **op);
/* Others, [n_species] as before, for calls from now on. */
clb_status clb_energy_set(clb_op *op, const double *scale, const double *shift);
clb_status clb_energy_forward(clb_op *op, int64_t n, clb_rows species, clb_rows x, clb_rows e_atom,
                              clb_rows total, clb_rows g_x);
clb_status clb_energy_backward(clb_op *op, int64_t n, clb_rows species, clb_rows g_x);

/* virial[a][b] = sum over n edges of v[n][a] g_v[n][b]; not symmetrised. */
clb_status clb_virial_create(clb_context *ctx, clb_dtype type, clb_op **op);
clb_status clb_virial_run(clb_op *op, int64_t n, clb_rows v, clb_rows g_v, clb_rows total);

/* The number of rows of total[rows][1] (energy) or [rows][9] (virial) of clb_sum_type; the sum of
   the rows is the result. clb_totals_add sums contiguous rows in double on the host. */
int64_t clb_totals_rows(const clb_op *op);
void clb_totals_add(const clb_op *op, const void *rows, double *total);

/* force[i][3] of clb_sum_type = sum over edges that i receives of g_v - sum over edges that i sends
   of g_v (v = sender - receiver: minus the gradient by positions), for i up to the larger of the
   graph's n_receivers and n_senders.  g_v[n_edges][3] of `type`, in the graph's order of edges as
   it was given. Of a block that adds, forces are added to those of other blocks. */
clb_status clb_forces_create(clb_context *ctx, clb_dtype type, clb_op **op);
clb_status clb_forces_run(clb_op *op, const clb_graph *graph, clb_rows g_v, clb_rows force);
/* out[i][3][3] of clb_sum_type = sum over edges that i receives of v (x) g_v, by the same op, for i
   up to the graph's n_receivers. */
clb_status clb_atom_virials_run(clb_op *op, const clb_graph *graph, clb_rows v, clb_rows g_v,
                                clb_rows out);

#endif
