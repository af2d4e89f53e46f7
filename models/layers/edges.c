/* models/layers/edges.c - what edges' vectors give: harmonics and lengths; frames; longer vectors.
 */
#include "models/layers/kinds.h"

/* Creates harmonics, forward and backward, or their backward pass that adds. */
static clb_status create_harmonics(clb_network *n, const clb_edges *p, bool adds, unsigned passes,
                                   clb_op **op) {
  int degrees[CLB_MAX_L + 1];
  for (int l = 0; l <= n->l_max; l++) degrees[l] = l;
  return clb_spherical_harmonics_create(
      n->ctx,
      &(clb_spherical_harmonics_desc){.degrees = degrees,
                                      .n_degrees = n->l_max + 1,
                                      .normalization = CLB_COMPONENT,
                                      .normalize = !p->solid,
                                      .storage = n->type,
                                      .arithmetic = clb_edge_arithmetic(n),
                                      .accumulate = adds,
                                      .passes = passes},
      op);
}

static bool wanted(const clb_network *n, clb_layer *y, int out) {
  if (y->out[out] >= 0 && !clb_network_readers(n, y->out[out])) y->out[out] = -1;
  return y->out[out] >= 0;
}

static bool has_gradient(const clb_network *n, const clb_layer *y, int out) {
  return y->out[out] >= 0 && n->array[y->out[out]]->has_gradient;
}

/* A convolution that reads the frames; NULL: this layer does not. */
static clb_convolution_layer *reader(const clb_network *n, const clb_layer *y, int layer) {
  const clb_layer *r = n->layer[layer];
  return r->kind == &clb_convolution_kind &&
                 r->in[CLB_CONVOLUTION_FRAMES] == y->out[CLB_EDGES_FRAMES]
             ? r->parameters
             : NULL;
}

/* What all convolutions that read them, which have been built, make alike; and with them harmonics
   and lengths without gradients. */
static clb_status build_frames(clb_network *n, clb_layer *y) {
  clb_edges *p = y->parameters;
  clb_array *frames = n->array[y->out[CLB_EDGES_FRAMES]];
  const clb_op *op = NULL;
  for (int l = 0; l < n->n_layers; l++) {
    clb_convolution_layer *c = reader(n, y, l);
    if (!c) continue;
    c->edges = p;
    op = c->op;
    p->columns = clb_convolution_edge_sums(op, CLB_BACKWARD);
    const int64_t own = (int64_t)p->columns * clb_convolution_roles(op, CLB_BACKWARD);
    frames->gradient_columns[false] += own;
    if (own > frames->gradient_columns[true]) frames->gradient_columns[true] = own;
  }
  const bool harmonics = wanted(n, y, CLB_EDGES_HARMONICS),
             lengths = wanted(n, y, CLB_EDGES_LENGTHS);
  return clb_convolution_frames_create(
      op, false, harmonics && !has_gradient(n, y, CLB_EDGES_HARMONICS) ? n->l_max + 1 : 0,
      lengths && !has_gradient(n, y, CLB_EDGES_LENGTHS), &p->frames);
}

/* Ops of another order of layers, too. */
static clb_status make_adding(clb_network *n, clb_layer *y) {
  clb_edges *p = y->parameters;
  clb_status s = CLB_OK;
  if (!clb_network_adds(n, y, CLB_EDGES_VECTORS)) return s;
  if (!p->add_harmonics && has_gradient(n, y, CLB_EDGES_HARMONICS))
    s = create_harmonics(n, p, true, CLB_PASS_BIT(CLB_BACKWARD), &p->add_harmonics);
  for (int l = 0; l < n->n_layers && p->frames && !p->add_frames && !s; l++)
    if (reader(n, y, l))
      s = clb_convolution_frames_create(reader(n, y, l)->op, true, 0, false, &p->add_frames);
  return s;
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_edges *p = y->parameters;
  clb_status s = y->out[CLB_EDGES_FRAMES] >= 0 ? build_frames(n, y) : CLB_OK;
  const bool made = !s && p->frames && clb_convolution_frames_harmonics(p->frames);
  if (!s && wanted(n, y, CLB_EDGES_HARMONICS) && !made) {
    const unsigned back = has_gradient(n, y, CLB_EDGES_HARMONICS) ? CLB_PASS_BIT(CLB_BACKWARD) : 0;
    s = create_harmonics(n, p, false, CLB_PASS_BIT(CLB_FORWARD) | back, &p->harmonics);
  }
  if (!s && wanted(n, y, CLB_EDGES_LENGTHS) &&
      !(p->frames && !has_gradient(n, y, CLB_EDGES_LENGTHS)))
    s = clb_radial_create(n->ctx, n->type, &(clb_radial_desc){.r_max = n->r_max, .p = 1},
                          &p->lengths);
  return s ? s : make_adding(n, y);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  clb_edges *p = y->parameters;
  const clb_rows vectors = clb_value(n, y->in[CLB_EDGES_VECTORS]),
                 harmonics = clb_value(n, y->out[CLB_EDGES_HARMONICS]),
                 lengths = clb_value(n, y->out[CLB_EDGES_LENGTHS]),
                 frames = clb_value(n, y->out[CLB_EDGES_FRAMES]);
  (void)adds;
  clb_status s = CLB_OK;
  p->given = 0;
  if (p->frames)
    s = clb_convolution_frames_run(p->frames, n->at.n_edges, &vectors, &frames, &harmonics,
                                   &lengths);
  if (!s && p->lengths)
    s = clb_radial_forward(p->lengths, n->at.n_edges, vectors, lengths, (clb_rows){0});
  if (!s && p->harmonics)
    s = clb_spherical_harmonics_forward(p->harmonics, n->at.n_edges, vectors, harmonics);
  return s;
}

/* Of the convolutions that have left torques since the last time. */
static clb_status turn_torques(clb_network *n, const clb_layer *y, const clb_rows *vectors,
                               const clb_rows *g_vectors, bool add) {
  clb_edges *p = y->parameters;
  const clb_rows g = clb_gradient(n, y->out[CLB_EDGES_FRAMES]);
  const clb_torques left = {&g.buffer->memory, g.offset, n->at.n_edges * p->columns, p->given,
                            p->columns};
  p->given = 0;
  return clb_convolution_frames_torques(add ? p->add_frames : p->frames, 0, n->at.n_edges, vectors,
                                        &left, g_vectors);
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_edges *p = y->parameters;
  const clb_rows vectors = clb_value(n, y->in[CLB_EDGES_VECTORS]),
                 g_vectors = clb_gradient(n, y->in[CLB_EDGES_VECTORS]),
                 g_harmonics = clb_gradient(n, y->out[CLB_EDGES_HARMONICS]),
                 g_lengths = clb_gradient(n, y->out[CLB_EDGES_LENGTHS]);
  bool add = adds & 1U << CLB_EDGES_VECTORS;
  clb_status s = CLB_OK;
  if (p->given) {
    s = turn_torques(n, y, &vectors, &g_vectors, add);
    add = true;
  }
  if (!s && g_harmonics.buffer) {
    s = clb_spherical_harmonics_backward(add ? p->add_harmonics : p->harmonics, n->at.n_edges,
                                         vectors, g_harmonics, g_vectors);
    add = true;
  }
  return s || !g_lengths.buffer ? s
                                : clb_radial_backward_distance(p->lengths, n->at.n_edges, vectors,
                                                               g_lengths, g_vectors, add);
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  if (y->out[CLB_EDGES_HARMONICS] < 0) return CLB_OK;
  return create_harmonics(n, y->parameters, false, CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
                          &y->derivatives);
}

/* Nobody reads the adjoint of vectors, so that any numbers do for gradients of harmonics. */
static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const int v = y->in[CLB_EDGES_VECTORS], h = y->out[CLB_EDGES_HARMONICS];
  (void)adds, (void)bends;
  if (h < 0) return CLB_OK;
  return clb_spherical_harmonics_double_backward(y->derivatives, n->at.n_edges, clb_value(n, v),
                                                 clb_value(n, h), clb_tangent(n, v),
                                                 clb_adjoint(n, v), clb_tangent(n, h));
}

static void free_ops(void *parameters) {
  clb_edges *p = parameters;
  clb_op_destroy(&p->harmonics);
  clb_op_destroy(&p->add_harmonics);
  clb_op_destroy(&p->lengths);
  clb_convolution_frames_destroy(&p->frames);
  clb_convolution_frames_destroy(&p->add_frames);
}

const clb_layer_kind clb_edges_kind = {.reads_in = 1U << CLB_EDGES_VECTORS,
                                       .build = build,
                                       .reorder = make_adding,
                                       .forward = forward,
                                       .backward = backward,
                                       .derive = derive,
                                       .along = along,
                                       .free_ops = free_ops};

/* ---- vectors times factors of pairs of species, so that each pair reaches its own cutoff where
   others reach r_max ---- */

static clb_status build_stretch(clb_network *n, clb_layer *y) {
  clb_stretch *p = y->parameters;
  return clb_stretch_create(n->ctx, n->type, n->n_species, n->weights + p->factors, &p->op);
}

static clb_status stretch(const clb_network *n, const clb_layer *y, clb_rows from, clb_rows to,
                          bool add) {
  const clb_stretch *p = y->parameters;
  return clb_stretch_run(p->op, n->graph, n->graph_species, from, to, add);
}

static clb_status stretch_forward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return stretch(n, y, clb_value(n, y->in[0]), clb_value(n, y->out[0]), false);
}

static clb_status stretch_backward(clb_network *n, clb_layer *y, unsigned adds) {
  return stretch(n, y, clb_gradient(n, y->out[0]), clb_gradient(n, y->in[0]), adds & 1);
}

static clb_status stretch_along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  (void)adds, (void)bends;
  return stretch(n, y, clb_tangent(n, y->in[0]), clb_tangent(n, y->out[0]), false);
}

static void free_stretch(void *parameters) { clb_op_destroy(&((clb_stretch *)parameters)->op); }

const clb_layer_kind clb_stretch_kind = {.again = true,
                                         .build = build_stretch,
                                         .forward = stretch_forward,
                                         .backward = stretch_backward,
                                         .along = stretch_along,
                                         .free_ops = free_stretch};
