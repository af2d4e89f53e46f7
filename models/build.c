/* models/build.c - the ops of a model, its weights on the device and its tables. */
#include "models/network.h"
#include "src/ops/convolution/table.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- weights ---- */

static clb_status upload_weights(clb_model *m) {
  const int64_t n = m->file.n_all_weights;
  for (int64_t i = 0; i < n && m->type == CLB_F32; i++)
    if (fabs(m->file.weights[i]) > FLT_MAX)
      return clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT,
                      "a weight is %g, more than single precision holds; CLB_F64 takes it",
                      m->file.weights[i]);
  clb_status s =
      clb_buffer_create(m->ctx, (uint64_t)(n * clb_dtype_bytes((int32_t)m->type)), &m->weights);
  return s ? s : clb_model_upload(m, m->weights, m->type, n, m->file.weights);
}

/* ---- tables ---- */

/* Angstrom; shorter than any bond. */
static double first_knot(const clb_model *m) { return m->file.r_max / 12; }
/* Where the radial network's second derivatives jump; 0: nowhere in the table. */
static double break_at(const clb_model *m) {
  return m->file.cutoff_on > first_knot(m) ? m->file.cutoff_on : 0;
}

/* Largest errors of the splines and of their slopes, taken where they are largest in each interval:
   in the middle, and where u (1 - u) (1 - 2 u) is extreme; relative to the largest weight. */
static clb_status table_error(clb_model *m, int n, const clb_convolution_table *t,
                              const double *coefficients, double max, double *w) {
  static const double places[] = {0.5, 0.21};
  const int64_t width = m->file.layer[n].n_weights;
  double off[2] = {0}, *made = w + 2 * width;
  clb_status s = CLB_OK;
  for (int i = 0; i < 2 * (t->knots - 1) && !s; i++) {
    const double knot = i / 2 + places[i % 2];
    s = clb_model_file_radial(&m->ctx->error, &m->file, n, clb_convolution_table_knot(t, knot), w,
                              w + width);
    clb_convolution_table_at(t, width, coefficients, knot, made, made + width);
    for (int64_t j = 0; j < 2 * width && !s; j++)
      off[j / width] = fmax(off[j / width], fabs(made[j] - w[j]));
  }
  double *worst[] = {&m->info.table_error, &m->info.table_slope_error};
  for (int i = 0; i < 2; i++)
    if (off[i] > *worst[i] * max) *worst[i] = off[i] / max;
  return s;
}

static clb_status make_table(clb_model *m, int n) {
  const clb_convolution_table t =
      clb_convolution_table_of(m->options.knots, first_knot(m), m->file.r_max, break_at(m));
  const int64_t width = m->file.layer[n].n_weights, knots = t.knots;
  double *w = malloc((size_t)(4 * width + knots) * sizeof *w),
         *values = malloc((size_t)(knots * width) * sizeof *values),
         *coefficients =
             malloc((size_t)(clb_convolution_table_rows(&t) * width) * sizeof *coefficients),
         max = 0;
  clb_status s = w && values && coefficients
                     ? CLB_OK
                     : clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
  for (int k = 0; k < knots && !s; k++)
    s = clb_model_file_radial(&m->ctx->error, &m->file, n, clb_convolution_table_knot(&t, k),
                              values + k * width, w);
  for (int64_t i = 0; i < knots * width && !s; i++) max = fmax(max, fabs(values[i]));
  if (!s) s = clb_convolution_set_table(m->layer[n].convolution, values);
  if (!s) {
    clb_convolution_table_solve(&t, width, values, coefficients, w + 4 * width);
    s = table_error(m, n, &t, coefficients, max, w);
  }
  free(w);
  free(values);
  free(coefficients);
  return s;
}

/* ---- ops of a layer ---- */

/* Irreps as separately allocated text; NULL: no memory. */
static const char *print(const clb_irreps *irreps, clb_text *text) {
  clb_irreps_print(irreps, text);
  return text->failed ? NULL : text->s;
}

enum { TEXTS = 4 };
static void free_texts(clb_text *text) {
  for (int i = 0; i < TEXTS; i++) clb_text_free(&text[i]);
}

/* A layer's convolution; text: of its irreps. */
static clb_status describe(clb_model *m, int n, clb_text text[TEXTS], clb_convolution_desc *d) {
  const clb_model_layer *y = &m->file.layer[n];
  const char *in = print(&y->in, &text[0]), *harmonics = print(&m->file.sh, &text[1]),
             *message = print(&y->message, &text[2]);
  *d = (clb_convolution_desc){
      .product = {.irreps_x = in,
                  .irreps_y = harmonics,
                  .irreps_z = message,
                  .instructions = y->path,
                  .n_instructions = y->n_paths,
                  .irrep_normalization = CLB_IRREP_COMPONENT,
                  .path_normalization = CLB_PATH_NONE,
                  .layout_x = CLB_IR_MUL,
                  .layout_y = CLB_IR_MUL,
                  .layout_z = y->merged ? CLB_MERGED : CLB_IR_MUL,
                  .gradients = (n ? CLB_OPERAND_X : 0) | CLB_OPERAND_Y | CLB_OPERAND_W,
                  .storage = m->type,
                  .arithmetic = m->type,
                  .passes = CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD)},
      .normalization = CLB_COMPONENT,
      .scale = 1 / sqrt(m->file.neighbours),
      .knots = m->options.knots,
      .first_knot = first_knot(m),
      .last_knot = m->file.r_max,
      .break_at = break_at(m)};
  return in && harmonics && message
             ? CLB_OK
             : clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
}

static clb_status make_convolution(clb_model *m, int n) {
  clb_text text[TEXTS] = {{0}};
  clb_convolution_desc d;
  clb_op **op = &m->layer[n].convolution;
  clb_status s = describe(m, n, text, &d);
  d.vectors = m->framed;
  if (!s) s = clb_convolution_create(m->ctx, &d, op);
  if (!s && m->framed) {
    s = clb_convolution_share(*op, &m->shared, n < m->file.n_layers - 1);
    m->reads_harmonics |= clb_convolution_reads_harmonics(*op);
  }
  free_texts(text);
  return s;
}

/* Elements of an edge's frame, if all convolutions run there; else 0. */
static clb_status find_frames(clb_model *m, int64_t *columns) {
  clb_status s = CLB_OK;
  for (int n = 0; n < m->file.n_layers && !s && !m->file.solid; n++) {
    clb_text text[TEXTS] = {{0}};
    clb_convolution_desc d;
    s = describe(m, n, text, &d);
    d.vectors = 1;
    const int64_t own = s ? 0 : clb_convolution_frame_columns(m->ctx, &d);
    *columns = n && own != *columns ? 0 : own;
    free_texts(text);
    if (!*columns) break;
  }
  return s;
}

static clb_status make_gate(clb_model *m, int n) {
  const clb_model_layer *y = &m->file.layer[n];
  const clb_irreps *parts[TEXTS] = {&y->linear, &y->scalars, &y->gates, &y->gated};
  clb_text text[TEXTS] = {{0}};
  clb_status s = CLB_OK;
  for (int i = 0; i < TEXTS; i++)
    if (!print(parts[i], &text[i]))
      s = clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
  const clb_gate_desc d = {text[0].s,
                           text[1].s,
                           text[2].s,
                           text[3].s,
                           m->file.even.function,
                           m->file.odd.function,
                           m->file.gate.function,
                           m->file.even.scale,
                           m->file.odd.scale,
                           m->file.gate.scale};
  if (!s) s = clb_gate_create(m->ctx, m->type, &d, &m->layer[n].gate);
  if (!s && m->file.rms)
    s = clb_rms_norm_create(m->ctx, m->type, text[0].s, m->file.norm_epsilon,
                            m->file.weights + y->norm, &m->layer[n].norm);
  free_texts(text);
  return s;
}

/* Its op requires contiguous blocks. */
static clb_status make_self(clb_model *m, int n) {
  const clb_model_layer *y = &m->file.layer[n];
  clb_text text[TEXTS] = {{0}};
  int64_t size = 0, at = 0;
  for (int b = 0; b < y->self.n; b++)
    size += (int64_t)y->in.term[y->self.block[b].from].mul * m->file.n_species *
            y->linear.term[y->self.block[b].to].mul;
  double *w = malloc((size_t)(size ? size : 1) * sizeof *w);
  const char *in = print(&y->in, &text[0]), *out = print(&y->linear, &text[1]);
  clb_status s = w && in && out
                     ? CLB_OK
                     : clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
  for (int b = 0; b < y->self.n && !s; b++) {
    const int64_t count = (int64_t)y->in.term[y->self.block[b].from].mul * m->file.n_species *
                          y->linear.term[y->self.block[b].to].mul;
    memcpy(w + at, m->file.weights + y->self.block[b].weights, (size_t)count * sizeof *w);
    at += count;
  }
  if (!s)
    s = clb_species_linear_create(m->ctx, m->type, in, out, m->file.n_species, w,
                                  &m->layer[n].self);
  free(w);
  free_texts(text);
  return s;
}

/* ---- ops of the model ---- */

static clb_status make_harmonics(clb_model *m, int accumulate, unsigned passes, clb_op **op) {
  int degrees[CLB_MAX_L + 1];
  for (int l = 0; l <= m->file.l_max; l++) degrees[l] = l;
  return clb_spherical_harmonics_create(
      m->ctx,
      &(clb_spherical_harmonics_desc){.degrees = degrees,
                                      .n_degrees = m->file.l_max + 1,
                                      .normalization = CLB_COMPONENT,
                                      .normalize = !m->file.solid,
                                      .storage = m->type,
                                      .arithmetic = m->type,
                                      .accumulate = accumulate,
                                      .passes = passes},
      op);
}

static clb_status make_ops(clb_model *m) {
  const clb_model_file *f = &m->file;
  const double *w = f->weights;
  clb_context *c = m->ctx;
  clb_status s =
      c->device->limits.f64 ? clb_edge_vectors_create(c, m->type, &m->edge_vectors) : CLB_OK;
  if (!s) s = clb_gemm_create(c, m->type, &m->product);
  const unsigned back = m->framed ? 0 : CLB_PASS_BIT(CLB_BACKWARD);
  if (!s) s = make_harmonics(m, 0, CLB_PASS_BIT(CLB_FORWARD) | back, &m->harmonics);
  if (!s && back) s = make_harmonics(m, 1, back, &m->add_harmonics);
  if (!s)
    s = clb_radial_create(c, m->type,
                          &(clb_radial_desc){f->r_max, f->cutoff_p,
                                             m->options.knots ? 0 : f->n_basis, w + f->frequencies,
                                             f->cutoff_on},
                          &m->radial);
  if (!s && !m->options.knots) s = clb_silu_create(c, m->type, 1, 1, &m->silu);
  if (!s) s = clb_gather_create(c, m->type, &m->gather);
  if (!s) s = clb_energy_create(c, m->type, f->n_species, w + f->scale, w + f->shift, &m->energy);
  if (!s) s = clb_virial_create(c, m->type, &m->virial);
  if (!s) s = clb_forces_create(c, m->type, &m->forces);
  for (int n = 0; n < f->n_layers && !s; n++) {
    s = make_convolution(m, n);
    if (!s) s = make_gate(m, n);
    if (!s && n && f->species_self) s = make_self(m, n);
    if (!s && m->options.knots) s = make_table(m, n);
    if (s)
      clb_fail(&c->error, s, "layers.%d: %s", n, c->error.text.s ? c->error.text.s : "no memory");
  }
  return s;
}

/* ---- sizes ---- */

static void set_columns(clb_model *m) {
  const clb_model_file *f = &m->file;
  int64_t *c = m->columns, hidden = 0;
  const bool tables = m->options.knots;
  const bool f64 = m->ctx->device->limits.f64; /* then vectors are computed there */
  c[CLB_MODEL_VECTOR] = c[CLB_MODEL_G_VECTOR] = 3;
  c[CLB_MODEL_SHIFT] = f64;
  c[CLB_MODEL_POSITION] = f64 ? 3 : 0;
  c[CLB_MODEL_HARMONICS] = clb_model_stride((f->l_max + 1) * (f->l_max + 1));
  c[CLB_MODEL_G_HARMONICS] = m->framed ? 0 : c[CLB_MODEL_HARMONICS];
  c[CLB_MODEL_DISTANCE] = tables;
  c[CLB_MODEL_G_DISTANCE] = tables && !m->framed;
  c[CLB_MODEL_BASIS] = c[CLB_MODEL_G_BASIS] = tables ? 0 : clb_model_stride(f->n_basis);
  c[CLB_MODEL_SPECIES] = c[CLB_MODEL_SCALAR] = 1;
  for (int n = 0; n < f->n_layers; n++) {
    const clb_model_layer *y = &f->layer[n];
    int64_t sum = 0;
    for (int k = 1; k < f->n_radial; k++) sum += clb_model_stride(y->radial_width[k]);
    hidden = larger(hidden, sum);
    if (!tables)
      c[CLB_MODEL_WEIGHTS] = c[CLB_MODEL_G_WEIGHTS] =
          larger(c[CLB_MODEL_WEIGHTS], clb_model_stride(y->n_weights));
    if (n) c[CLB_MODEL_G_X] = larger(c[CLB_MODEL_G_X], clb_model_stride(y->in.dim));
    c[CLB_MODEL_MESSAGE] = larger(c[CLB_MODEL_MESSAGE], clb_model_stride(y->message.dim));
    c[CLB_MODEL_FEATURES] = larger(c[CLB_MODEL_FEATURES], clb_model_stride(y->out.dim));
    c[CLB_MODEL_G_LINEAR] = larger(c[CLB_MODEL_G_LINEAR], clb_model_stride(y->linear.dim));
    if (f->rms) c[CLB_MODEL_NORMED] = c[CLB_MODEL_G_LINEAR];
    m->info.weights += y->n_weights;
  }
  if (!tables) c[CLB_MODEL_HIDDEN] = c[CLB_MODEL_ACTIVE] = c[CLB_MODEL_G_HIDDEN] = hidden;
}

static void set_info(clb_model *m) {
  const clb_model_file *f = &m->file;
  clb_model_info *info = &m->info;
  info->architecture = f->architecture;
  info->r_max = f->r_max;
  info->n_layers = f->n_layers;
  info->l_max = f->l_max;
  info->n_species = f->n_species;
  info->symbols = f->symbol;
  info->atomic_numbers = f->atomic_number;
  info->parameters = f->parameters;
  info->bytes_per_edge = 40;
  info->bytes_per_atom = 56 + 4 * (uint64_t)clb_dtype_bytes((int32_t)m->sum_type);
  for (int i = 0; i < CLB_MODEL_ARRAYS; i++)
    *(i < CLB_MODEL_EDGE_ARRAYS ? &info->bytes_per_edge : &info->bytes_per_atom) +=
        (uint64_t)clb_model_row_bytes(m, i);
  for (int n = 0; n < f->n_layers; n++)
    info->bytes_per_atom += (uint64_t)(clb_model_stride(f->layer[n].in.dim) +
                                       clb_model_stride(f->layer[n].linear.dim)) *
                            (uint64_t)clb_dtype_bytes((int32_t)m->type);
}

clb_status clb_model_build(clb_model *m) {
  m->layer = calloc((size_t)m->file.n_layers, sizeof *m->layer);
  if (!m->layer) return clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
  clb_status s = find_frames(m, &m->columns[CLB_MODEL_FRAMES]);
  m->framed = m->columns[CLB_MODEL_FRAMES] > 0;
  set_columns(m);
  set_info(m);
  if (!s) s = upload_weights(m);
  if (!s) s = make_ops(m);
  return s ? s : clb_graph_create(m->ctx, 0, 0, &m->graph);
}
