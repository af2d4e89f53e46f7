/* models/run.c - the sequence of a model's ops: forward to the energies, and backward to the
   gradient by the vectors. Numbers in brackets are the steps of docs/model-format.md. */
#include "models/network.h"

typedef struct {
  clb_model *m;
  const clb_model_edges *edges; /* the exchange */
  clb_rows vectors, g_vectors, species;
  int64_t n_local, n_total, n_edges;
} run;

/* ---- linear maps ---- */

typedef struct {
  clb_rows rows;
  const clb_irreps *irreps;
} features;

/* One block for all rows and components: C (= or +=) A W, or backward A W^T; `a` -1: all zeros. */
static clb_status run_block(const run *r, const clb_model_block *b, bool backward, int64_t n,
                            features from, int a, features to, int c, bool add) {
  const clb_term *out = &to.irreps->term[c], *in = a < 0 ? out : &from.irreps->term[a];
  clb_gemm_desc p = {.m = n,
                     .n = out->mul,
                     .k = a < 0 ? 0 : in->mul,
                     .count = 2 * out->l + 1,
                     .a = &from.rows.buffer->memory,
                     .b = &r->m->weights->memory,
                     .c = &to.rows.buffer->memory,
                     .offset_a = from.rows.offset + in->at,
                     .ld_a = from.rows.stride,
                     .stride_a = in->mul,
                     .offset_b = b ? b->weights : 0,
                     .ld_b = backward ? in->mul : out->mul,
                     .offset_c = to.rows.offset + out->at,
                     .ld_c = to.rows.stride,
                     .stride_c = out->mul,
                     .transpose_b = backward,
                     .add = add};
  return clb_gemm_run(r->m->product, &p);
}

/* to (= or +=) the map of `from`, or backward: the gradient by its input from that by its
   output. */
static clb_status run_map(const run *r, const clb_model_map *map, bool backward, int64_t n,
                          features from, features to, bool add) {
  clb_status s = CLB_OK;
  for (int c = 0; c < to.irreps->n && !s; c++) {
    bool some = add;
    for (int i = 0; i < map->n && !s; i++) {
      const clb_model_block *b = &map->block[i];
      if ((backward ? b->from : b->to) != c) continue;
      s = run_block(r, b, backward, n, from, backward ? b->to : b->from, to, c, some);
      some = true;
    }
    if (!some && !s) s = run_block(r, NULL, false, n, from, -1, to, c, false);
  }
  return s;
}

/* ---- rows ---- */

static clb_rows array_rows(const run *r, clb_model_array a, int64_t columns) {
  return clb_model_rows(r->m->array[a], columns);
}

static features local(const run *r, clb_model_array a, const clb_irreps *irreps) {
  return (features){array_rows(r, a, irreps->dim), irreps};
}

/* Input and output of the norm; the same array without a norm. */
static features before_norm(const run *r, int l) {
  const clb_model_layer *y = &r->m->file.layer[l];
  return (features){clb_model_rows(r->m->layer[l].linear, y->linear.dim), &y->linear};
}
static features after_norm(const run *r, int l) {
  const clb_model_layer *y = &r->m->file.layer[l];
  return (features){
      clb_model_rows(r->m->file.rms ? r->m->array[CLB_MODEL_NORMED] : r->m->layer[l].linear,
                     y->linear.dim),
      &y->linear};
}

static features sent(const run *r, int l) {
  const clb_model_layer *y = &r->m->file.layer[l];
  return (features){clb_model_rows(r->m->layer[l].x, y->in.dim), &y->in};
}

/* Exchanges the rows of ghosts. */
static clb_status exchange(const run *r, bool backward, clb_buffer *rows, int64_t columns) {
  clb_model *m = r->m;
  const clb_model_edges *e = r->edges;
  if (!e->exchange) return CLB_OK;
  if (!e->host_exchange)
    return e->exchange(e->user, backward, r->n_local, r->n_total, columns, m->type, rows, NULL);
  const uint64_t row = (uint64_t)(columns * clb_dtype_bytes((int32_t)m->type)),
                 n = (uint64_t)r->n_total, n_local = (uint64_t)r->n_local,
                 n_in = backward ? n : n_local;
  char *host = clb_model_staging(m, (size_t)(n * row + 1));
  if (!host) return clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  clb_status s = n_in ? clb_buffer_read(rows, 0, host, n_in * row) : CLB_OK;
  if (!s) s = e->exchange(e->user, backward, r->n_local, r->n_total, columns, m->type, rows, host);
  const uint64_t first = backward ? 0 : n_local, count = backward ? n_local : n - n_local;
  return s || !count ? s : clb_buffer_write(rows, first * row, host + first * row, count * row);
}

/* ---- the radial network [4] ---- */

/* Columns of hidden layer k (from 1 on); values before and after the activation, and gradients,
   have the same layout. */
static clb_rows hidden(const run *r, int l, clb_model_array a, int k) {
  const clb_model_layer *y = &r->m->file.layer[l];
  clb_rows rows = {r->m->array[a], 0, r->m->columns[a], NULL};
  for (int i = 1; i < k; i++) rows.offset += clb_model_stride(y->radial_width[i]);
  return rows;
}

/* C (= or +=) A W of matrix k, or backward A W^T. */
static clb_status run_radial(const run *r, int l, int k, bool backward, clb_rows a, clb_rows c,
                             bool add) {
  const clb_model_layer *y = &r->m->file.layer[l];
  const int64_t in = y->radial_width[k], out = y->radial_width[k + 1];
  clb_gemm_desc p = {.m = r->n_edges,
                     .n = backward ? in : out,
                     .k = backward ? out : in,
                     .count = 1,
                     .a = &a.buffer->memory,
                     .b = &r->m->weights->memory,
                     .c = &c.buffer->memory,
                     .offset_a = a.offset,
                     .ld_a = a.stride,
                     .offset_b = y->radial[k],
                     .ld_b = out,
                     .offset_c = c.offset,
                     .ld_c = c.stride,
                     .transpose_b = backward,
                     .add = add};
  return clb_gemm_run(r->m->product, &p);
}

static clb_rows radial_input(const run *r, int l, int k, bool gradient) {
  const clb_model_layer *y = &r->m->file.layer[l];
  if (!k) return array_rows(r, gradient ? CLB_MODEL_G_BASIS : CLB_MODEL_BASIS, r->m->file.n_basis);
  if (k < r->m->file.n_radial)
    return hidden(r, l, gradient ? CLB_MODEL_G_HIDDEN : CLB_MODEL_ACTIVE, k);
  return array_rows(r, gradient ? CLB_MODEL_G_WEIGHTS : CLB_MODEL_WEIGHTS, y->n_weights);
}

static clb_rows path_weights(const run *r, int l, bool gradient) {
  if (r->m->options.knots && r->m->framed) return (clb_rows){0};
  if (r->m->options.knots)
    return (clb_rows){r->m->array[gradient ? CLB_MODEL_G_DISTANCE : CLB_MODEL_DISTANCE], 0,
                      CLB_DENSE, NULL};
  return radial_input(r, l, r->m->file.n_radial, gradient);
}

/* The weights of a layer's paths. */
static clb_status radial_forward(const run *r, int l) {
  const clb_model_layer *y = &r->m->file.layer[l];
  const int last = r->m->file.n_radial - 1;
  clb_status s = CLB_OK;
  if (r->m->options.knots) return s;
  for (int k = 0; k < last && !s; k++) {
    s = run_radial(r, l, k, false, radial_input(r, l, k, false),
                   hidden(r, l, CLB_MODEL_HIDDEN, k + 1), false);
    if (!s)
      s = clb_silu_forward(r->m->silu, r->n_edges, y->radial_width[k + 1],
                           hidden(r, l, CLB_MODEL_HIDDEN, k + 1),
                           hidden(r, l, CLB_MODEL_ACTIVE, k + 1));
  }
  return s ? s
           : run_radial(r, l, last, false, radial_input(r, l, last, false),
                        path_weights(r, l, false), false);
}

/* From the gradient by the weights to that by the basis, summed over layers, or, with tables, by
   the vectors. */
static clb_status radial_backward(const run *r, int l, bool add) {
  clb_model *m = r->m;
  const clb_model_layer *y = &m->file.layer[l];
  clb_status s = CLB_OK;
  if (m->options.knots && m->framed) return s;
  if (m->options.knots)
    return clb_radial_backward_distance(m->radial, r->n_edges, r->vectors, path_weights(r, l, true),
                                        r->g_vectors, true);
  for (int k = m->file.n_radial - 1; k >= 0 && !s; k--) {
    const clb_rows g = radial_input(r, l, k, true);
    s = run_radial(r, l, k, true, radial_input(r, l, k + 1, true), g, !k && add);
    if (k && !s)
      s = clb_silu_backward(m->silu, r->n_edges, y->radial_width[k],
                            hidden(r, l, CLB_MODEL_HIDDEN, k), g, g);
  }
  return s;
}

/* ---- layers ---- */

/* What convolutions read of an edge's direction: its vector, or harmonics. */
static clb_rows directions(const run *r) {
  return r->m->framed ? r->vectors
                      : array_rows(r, CLB_MODEL_HARMONICS, r->m->columns[CLB_MODEL_HARMONICS]);
}

/* The input of the first layer depends on the species alone. */
static clb_status embed(const run *r, int64_t table, int64_t n, features to) {
  clb_rows from = {r->m->weights, table, to.irreps->dim, r->m->array[CLB_MODEL_SPECIES]};
  return clb_gather_run(r->m->gather, n, to.irreps->dim, from, to.rows);
}

/* [3, 5] */
static clb_status send_features(const run *r, int l) {
  const clb_model_layer *y = &r->m->file.layer[l];
  features x = sent(r, l);
  if (!l) return embed(r, y->first_x, r->n_total, x);
  clb_status s = y->bias_1 ? embed(r, y->bias_1, r->n_local, x) : CLB_OK;
  if (!s)
    s = run_map(r, &y->linear_1, false, r->n_local, local(r, CLB_MODEL_FEATURES, &y->in), x,
                y->bias_1 > 0);
  return s ? s : exchange(r, false, x.rows.buffer, x.rows.stride);
}

/* The second term of [8]. */
static clb_status self_connection(const run *r, int l) {
  const clb_model_layer *y = &r->m->file.layer[l];
  features in = local(r, CLB_MODEL_FEATURES, &y->in), to = before_norm(r, l);
  const bool bias = y->bias_2 > 0;
  clb_status s = !l || bias ? embed(r, l ? y->bias_2 : y->first_o, r->n_local, to) : CLB_OK;
  if (s || !l) return s;
  if (r->m->layer[l].self)
    return clb_species_linear_forward(r->m->layer[l].self, r->n_local, r->species, in.rows, to.rows,
                                      bias);
  return run_map(r, &y->self, false, r->n_local, in, to, bias);
}

static clb_status layer_forward(const run *r, int l) {
  clb_model *m = r->m;
  const clb_model_layer *y = &m->file.layer[l];
  const clb_model_layer_parts *p = &m->layer[l];
  features message = local(r, CLB_MODEL_MESSAGE, &y->gathered), before = before_norm(r, l),
           after = after_norm(r, l);
  clb_status s = radial_forward(r, l);
  if (!s) s = send_features(r, l);
  if (!s)
    s = clb_convolution_forward(p->convolution, m->graph, sent(r, l).rows, directions(r),
                                path_weights(r, l, false), message.rows, m->workspace); /* [6, 7] */
  if (!s) s = self_connection(r, l);
  if (!s) s = run_map(r, &y->linear_2, false, r->n_local, message, before, true); /* [8] */
  if (!s && p->norm)
    s = clb_rms_norm_forward(p->norm, r->n_local, before.rows, after.rows); /* [9] */
  return s ? s
           : clb_gate_forward(p->gate, r->n_local, after.rows,
                              array_rows(r, CLB_MODEL_FEATURES, y->out.dim)); /* [10] */
}

/* From the gradient by a layer's features to those by the vectors and by the previous layer's
   features. */
static clb_status layer_backward(const run *r, int l) {
  clb_model *m = r->m;
  const clb_model_layer *y = &m->file.layer[l];
  const clb_model_layer_parts *p = &m->layer[l];
  const bool last = l == m->file.n_layers - 1;
  features message = local(r, CLB_MODEL_MESSAGE, &y->gathered),
           g = local(r, CLB_MODEL_G_LINEAR, &y->linear),
           g_in = local(r, CLB_MODEL_FEATURES, &y->in), g_x = {.irreps = &y->in};
  clb_rows g_directions =
      m->framed ? r->g_vectors
                : array_rows(r, CLB_MODEL_G_HARMONICS, m->columns[CLB_MODEL_HARMONICS]);
  if (l) g_x.rows = array_rows(r, CLB_MODEL_G_X, y->in.dim);
  clb_status s = CLB_OK;
  if (p->norm && !last)
    s = clb_rms_norm_forward(p->norm, r->n_local, before_norm(r, l).rows,
                             after_norm(r, l).rows); /* recomputed, like those of radial_forward
                                                        below */
  if (!s)
    s = clb_gate_backward(p->gate, r->n_local, after_norm(r, l).rows,
                          array_rows(r, CLB_MODEL_FEATURES, y->out.dim), g.rows);
  if (!s && p->norm)
    s = clb_rms_norm_backward(p->norm, r->n_local, before_norm(r, l).rows, g.rows, g.rows);
  if (!s) s = run_map(r, &y->linear_2, true, r->n_local, g, message, false);
  if (!s && !last)
    s = radial_forward(r, l); /* recomputed: keeping those of all layers would take
                                 too much memory */
  if (!s)
    s = clb_convolution_backward(p->convolution, m->graph, sent(r, l).rows, directions(r),
                                 path_weights(r, l, false), message.rows, g_x.rows, g_directions,
                                 path_weights(r, l, true), m->workspace);
  if (!s && !m->framed)
    s = clb_spherical_harmonics_backward(last ? m->harmonics : m->add_harmonics, r->n_edges,
                                         r->vectors, g_directions, r->g_vectors);
  if (!s) s = radial_backward(r, l, !last);
  if (s || !l) return s;
  s = exchange(r, true, g_x.rows.buffer, g_x.rows.stride);
  if (!s) s = run_map(r, &y->linear_1, true, r->n_local, g_x, g_in, false);
  if (!s && p->self)
    return clb_species_linear_backward(p->self, r->n_local, r->species, g.rows, g_in.rows, true);
  return s ? s : run_map(r, &y->self, true, r->n_local, g, g_in, true);
}

/* ---- energies [11, 12] ---- */

static const clb_irreps one_scalar = {.n = 1, .dim = 1, .term = {{.mul = 1, .parity = 1}}};

static void readout_map(const run *r, clb_model_map *map) {
  const clb_irreps *scalars = &r->m->file.layer[r->m->file.n_layers - 1].scalars;
  int64_t at = r->m->file.readout;
  map->n = 0;
  for (int t = 0; t < scalars->n; t++) {
    if (scalars->term[t].parity < 0) continue;
    map->block[map->n++] = (clb_model_block){t, 0, at};
    at += scalars->term[t].mul;
  }
}

static clb_status run_energies(const run *r, bool backward) {
  clb_model *m = r->m;
  const clb_irreps *out = &m->file.layer[m->file.n_layers - 1].out;
  features scalar = {{m->array[CLB_MODEL_SCALAR], 0, 1, NULL}, &one_scalar};
  clb_model_map map;
  const clb_model_places at = clb_model_result_places(m);
  readout_map(r, &map);
  clb_status s =
      run_map(r, &map, false, r->n_local, local(r, CLB_MODEL_FEATURES, out), scalar, false);
  if (!s)
    s = clb_energy_forward(m->energy, r->n_local, r->species, scalar.rows,
                           clb_model_result(m, at.e_atom), clb_model_result(m, at.energy));
  if (s || !backward) return s;
  s = clb_energy_backward(m->energy, r->n_local, r->species, scalar.rows);
  return s ? s
           : run_map(r, &map, true, r->n_local, scalar, local(r, CLB_MODEL_FEATURES, out), false);
}

clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, clb_buffer *vectors,
                         clb_buffer *g_vectors, bool backward) {
  const run r = {m,
                 edges,
                 {vectors, 0, CLB_DENSE, NULL},
                 {g_vectors, 0, CLB_DENSE, NULL},
                 {m->array[CLB_MODEL_SPECIES], 0, CLB_DENSE, NULL},
                 m->n_local,
                 m->n_total,
                 m->n_edges};
  const int n_layers = m->file.n_layers;
  const bool tables = m->options.knots;
  clb_rows distance = {m->array[CLB_MODEL_DISTANCE], 0, CLB_DENSE, NULL},
           basis = array_rows(&r, CLB_MODEL_BASIS, m->file.n_basis);
  clb_status s =
      clb_radial_forward(m->radial, r.n_edges, r.vectors, tables ? distance : (clb_rows){0},
                         tables ? (clb_rows){0} : basis); /* [1] */
  m->shared = (clb_convolution_shared){
      .frames = array_rows(&r, CLB_MODEL_FRAMES, m->columns[CLB_MODEL_FRAMES]),
      .harmonics = array_rows(&r, CLB_MODEL_HARMONICS, m->columns[CLB_MODEL_HARMONICS]),
      .lengths = distance};
  if (!s && (m->reads_harmonics || !m->framed)) /* [2] */
    s = clb_spherical_harmonics_forward(m->harmonics, r.n_edges, r.vectors, m->shared.harmonics);
  if (!s && m->framed)
    s = clb_convolution_make_frames(m->layer[0].convolution, r.n_edges, r.vectors);
  for (int l = 0; l < n_layers && !s; l++) s = layer_forward(&r, l);
  if (!s) s = run_energies(&r, backward);
  for (int l = n_layers - 1; l >= 0 && backward && !s; l--) s = layer_backward(&r, l);
  if (s || !backward || tables) return s;
  return clb_radial_backward(m->radial, r.n_edges, r.vectors,
                             array_rows(&r, CLB_MODEL_G_BASIS, m->file.n_basis), r.g_vectors, true);
}
