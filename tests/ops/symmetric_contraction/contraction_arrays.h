/* tests/ops/symmetric_contraction/contraction_arrays.h - symmetric contractions on the devices that
   run here: their operands as host arrays of f64, one pass run on them, and the plain sums. */
#ifndef CLB_TESTS_OPS_SYMMETRIC_CONTRACTION_CONTRACTION_ARRAYS_H
#define CLB_TESTS_OPS_SYMMETRIC_CONTRACTION_CONTRACTION_ARRAYS_H

#include "tests/ops/tensor_product/product_arrays.h"

#include "tools/reference/reference_symmetric_contraction.h"

enum { CONTRACTION_IN = 5, CONTRACTION_OUT = 3 };

/* Operands by pass: x w | x w g | x w g a c, z | g_x g_w | d_x d_w d_g; of: CLB_OPERAND_X ... */
static const int contraction_inputs[] = {2, 3, 5}, contraction_outputs[] = {1, 2, 3};
static const int contraction_input_of[] = {CLB_OPERAND_X, CLB_OPERAND_W, CLB_OPERAND_Z,
                                           CLB_OPERAND_X, CLB_OPERAND_W};
static inline int contraction_output_of(int pass, int o) {
  static const int of[] = {CLB_OPERAND_X, CLB_OPERAND_W, CLB_OPERAND_Z};
  return pass ? of[o] : CLB_OPERAND_Z;
}

typedef struct {
  clb_context *ctx;
  clb_op *op;
  clb_symmetric_contraction_desc desc;
  reference_contraction *reference;
  int width[CLB_OPERAND_Z + 1];
} test_contraction;

static inline size_t power(size_t base, int n) {
  size_t p = 1;
  while (n--) p *= base;
  return p;
}

/* The tensor of a path, malloc'ed. */
static inline double *tensor_of(clb_context *ctx, const clb_symmetric_contraction_desc *desc,
                                int degree, int nu, int path, size_t *size) {
  *size = (size_t)(2 * degree + 1) * power((size_t)((desc->ell + 1) * (desc->ell + 1)), nu);
  double *u = numbers(*size);
  OK(ctx, clb_symmetric_contraction_basis(ctx, desc, path, u, (int64_t)*size));
  return u;
}

/* All passes, unless desc says which. */
static inline test_contraction *contraction_create(clb_context *ctx,
                                                   const clb_symmetric_contraction_desc *desc) {
  test_contraction *t = calloc(1, sizeof *t);
  assert_non_null(t);
  t->ctx = ctx;
  t->desc = *desc;
  if (!t->desc.passes) t->desc.passes = 7;
  OK(ctx, clb_symmetric_contraction_create(ctx, &t->desc, &t->op));
  assert_non_null(t->reference = reference_contraction_create(desc));
  for (int out = 0; out < desc->n_degrees; out++)
    for (int nu = 1; nu <= desc->correlation; nu++) {
      clb_symmetric_paths paths;
      OK(ctx, clb_symmetric_contraction_paths(ctx, desc, desc->degrees[out], nu, &paths));
      for (int p = paths.first; p < paths.first + paths.count; p++) {
        size_t size;
        double *u = tensor_of(ctx, desc, desc->degrees[out], nu, p, &size);
        assert_true(reference_contraction_add(t->reference, out, nu, u));
        free(u);
      }
    }
  reference_place w = reference_contraction_sizes(t->reference);
  t->width[CLB_OPERAND_X] = (int)w.x;
  t->width[CLB_OPERAND_W] = (int)w.w;
  t->width[CLB_OPERAND_Z] = (int)w.z;
  return t;
}

static inline void contraction_destroy(test_contraction *t) {
  clb_op_destroy(&t->op);
  reference_contraction_destroy(t->reference);
  free(t);
}

static inline int contraction_rows(const test_contraction *t, int of, int rows) {
  return of == CLB_OPERAND_W ? t->desc.n_species : rows;
}
static inline size_t contraction_count(const test_contraction *t, int of, int rows) {
  return (size_t)(contraction_rows(t, of, rows) * t->width[of]);
}
static inline bool contraction_gives(const test_contraction *t, int pass, int o) {
  return !pass || !t->desc.gradients ||
         t->desc.gradients & (unsigned)contraction_output_of(pass, o);
}
static inline bool contraction_reads(const test_contraction *t, int i) {
  return i < 3 || !t->desc.incoming || t->desc.incoming & (unsigned)contraction_input_of[i];
}

/* ---- data ---- */

enum species_order { SORTED, MIXED_UP, ALL_LAST };
typedef struct {
  int rows;
  int32_t *species;
  double *in[CONTRACTION_IN], *out[CONTRACTION_OUT]; /* out: what is added to, then the results */
} contraction_data;

static inline contraction_data data_create(const test_contraction *t, int rows,
                                           enum species_order order, uint64_t seed) {
  contraction_data d = {.rows = rows, .species = calloc((size_t)rows + 1, sizeof *d.species)};
  assert_non_null(d.species);
  int kinds = t->desc.n_species;
  for (int r = 0; r < rows; r++)
    d.species[r] = order == SORTED     ? (int32_t)((int64_t)r * kinds / rows)
                   : order == MIXED_UP ? (int32_t)((r * 7 + r / 5) % kinds)
                                       : (int32_t)(kinds - 1);
  for (int i = 0; i < CONTRACTION_IN; i++) {
    size_t n = contraction_count(t, contraction_input_of[i], rows);
    random_fill(t->desc.storage, d.in[i] = numbers(n), n, &seed);
  }
  for (int o = 0; o < CONTRACTION_OUT; o++) { /* the first is z or g_x */
    size_t n = contraction_count(t, contraction_output_of(1, o), rows),
           z = contraction_count(t, CLB_OPERAND_Z, rows);
    random_fill(t->desc.storage, d.out[o] = numbers(n > z ? n : z), n > z ? n : z, &seed);
  }
  return d;
}

static inline void data_destroy(contraction_data *d) {
  free(d->species);
  for (int i = 0; i < CONTRACTION_IN; i++) free(d->in[i]);
  for (int o = 0; o < CONTRACTION_OUT; o++) free(d->out[o]);
}

/* ---- running ---- */

/* n rows of `width` numbers (NULL: NaN), `gap` numbers of NaN between them and `offset` before. */
static inline clb_rows spread(const test_contraction *t, const double *from, int n, int width,
                              int offset, int gap) {
  size_t all = (size_t)(offset + n * (width + gap) + width), bytes = dtype_bytes(t->desc.storage);
  char *stored = calloc(all + 1, 8);
  clb_rows rows = {.offset = offset, .stride = gap ? width + gap : CLB_DENSE};
  assert_non_null(stored);
  for (size_t i = 0; i < all; i++) put(t->desc.storage, stored, (int64_t)i, NAN);
  for (int r = 0; r < n && from; r++)
    for (int i = 0; i < width; i++)
      put(t->desc.storage, stored, offset + r * (width + gap) + i, from[r * width + i]);
  OK(t->ctx, clb_buffer_create(t->ctx, all * bytes, &rows.buffer));
  OK(t->ctx, clb_buffer_write(rows.buffer, 0, stored, all * bytes));
  free(stored);
  return rows;
}

/* Reads n rows back; everything else must still be NaN. */
static inline void gather(const test_contraction *t, const clb_rows *rows, int n, int width,
                          int gap, double *to) {
  size_t all = (size_t)(rows->offset + n * (width + gap) + width),
         bytes = dtype_bytes(t->desc.storage);
  char *stored = calloc(all + 1, 8);
  assert_non_null(stored);
  OK(t->ctx, clb_buffer_read(rows->buffer, 0, stored, all * bytes));
  for (size_t i = 0; i < all; i++) {
    double x = number_at(t->desc.storage, stored, (int64_t)i);
    int64_t r = ((int64_t)i - rows->offset) / (width + gap),
            c = ((int64_t)i - rows->offset) % (width + gap);
    if ((int64_t)i >= rows->offset && r < n && c < width) to[r * width + c] = x;
    else if (!isnan(x)) fail_msg("element %zu, which is no row's, was written", i);
  }
  free(stored);
}

static inline clb_status contraction_call(clb_op *op, int pass, int64_t n, const clb_rows *in,
                                          const clb_rows *out) {
  if (pass == CLB_FORWARD) return clb_symmetric_contraction_forward(op, n, in[0], in[1], out[0]);
  if (pass == CLB_BACKWARD)
    return clb_symmetric_contraction_backward(op, n, in[0], in[1], in[2], out[0], out[1]);
  return clb_symmetric_contraction_double_backward(op, n, in[0], in[1], in[2], in[3], in[4], out[0],
                                                   out[1], out[2]);
}

/* With gaps between rows, of other lengths for each operand, if `gaps`. */
static inline void contraction_run(const test_contraction *t, int pass, contraction_data *d,
                                   bool gaps) {
  clb_rows in[CONTRACTION_IN] = {{0}}, out[CONTRACTION_OUT] = {{0}};
  clb_buffer *species;
  OK(t->ctx, clb_buffer_create(t->ctx, sizeof *d->species * (size_t)(d->rows + 1), &species));
  OK(t->ctx, clb_buffer_write(species, 0, d->species, sizeof *d->species * (size_t)d->rows));
  for (int i = 0; i < contraction_inputs[pass]; i++) {
    int of = contraction_input_of[i];
    if (contraction_reads(t, i))
      in[i] = spread(t, d->in[i], contraction_rows(t, of, d->rows), t->width[of], gaps ? 3 + i : 0,
                     gaps ? 2 + i : 0);
  }
  in[1].index = species;
  for (int o = 0; o < contraction_outputs[pass]; o++) {
    int of = contraction_output_of(pass, o);
    if (contraction_gives(t, pass, o))
      out[o] = spread(t, t->desc.accumulate ? d->out[o] : NULL, contraction_rows(t, of, d->rows),
                      t->width[of], gaps ? 1 + o : 0, gaps ? 5 + o : 0);
  }
  OK(t->ctx, contraction_call(t->op, pass, d->rows, in, out));
  for (int o = 0; o < contraction_outputs[pass]; o++) {
    int of = contraction_output_of(pass, o);
    if (contraction_gives(t, pass, o))
      gather(t, &out[o], contraction_rows(t, of, d->rows), t->width[of], gaps ? 5 + o : 0,
             d->out[o]);
    clb_buffer_destroy(&out[o].buffer);
  }
  for (int i = 0; i < contraction_inputs[pass]; i++) clb_buffer_destroy(&in[i].buffer);
  clb_buffer_destroy(&species);
}

/* ---- comparing ---- */

static inline double contraction_tolerance(const test_contraction *t) {
  return (const double[]){2e-6, 1e-13, 2e-3, 1.6e-2}[t->desc.storage] *
         (t->desc.storage == CLB_F64 ? 10 : 1);
}

/* `before`: what the outputs held, if results are added to them. */
static inline void contraction_compare(const test_contraction *t, int pass,
                                       const contraction_data *d, const contraction_data *before) {
  enum { ALL = CONTRACTION_IN + CONTRACTION_OUT };
  double *in[ALL] = {NULL}, *wants[ALL] = {NULL},
         *scales[ALL] = {NULL}; /* in the order of a call */
  double **want = wants + contraction_inputs[pass], **scale = scales + contraction_inputs[pass];
  for (int i = 0; i < CONTRACTION_IN; i++) in[i] = contraction_reads(t, i) ? d->in[i] : NULL;
  for (int o = 0; o < contraction_outputs[pass]; o++) {
    size_t n = contraction_count(t, contraction_output_of(pass, o), d->rows);
    want[o] = numbers(n), scale[o] = numbers(n);
  }
  reference_contraction_run(t->reference, (clb_pass)pass, d->rows, d->species, in, wants, scales);
  for (int o = 0; o < contraction_outputs[pass]; o++) {
    size_t n = contraction_count(t, contraction_output_of(pass, o), d->rows);
    for (size_t i = 0; i < n && contraction_gives(t, pass, o); i++) {
      double old = before ? before->out[o][i] : 0, wanted = want[o][i] + old;
      if (!(fabs(d->out[o][i] - wanted) <= contraction_tolerance(t) * (scale[o][i] + fabs(old)) +
                                               (t->desc.storage == CLB_F16) * 0x1p-24))
        fail_msg("ell %d, correlation %d, %d channels, type %d, pass %d, %d rows, result %d, "
                 "element %zu: %.17g, not %.17g",
                 t->desc.ell, t->desc.correlation, t->desc.channels, t->desc.storage, pass, d->rows,
                 o, i, d->out[o][i], wanted);
    }
  }
  for (int o = 0; o < contraction_outputs[pass]; o++) free(want[o]), free(scale[o]);
}

/* Runs a pass on random rows and compares it. */
static inline void contraction_check(const test_contraction *t, int pass, int rows,
                                     enum species_order order, bool gaps) {
  contraction_data d = data_create(t, rows, order, 11), before = data_create(t, rows, order, 11);
  contraction_run(t, pass, &d, gaps);
  contraction_compare(t, pass, &d, t->desc.accumulate ? &before : NULL);
  data_destroy(&d);
  data_destroy(&before);
}

#endif
