/* tools/ops/convolution_set.c - the device's part of a test run of a graph convolution: buffers,
   the call, the comparison. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"
#include "tools/ops/convolution_data.h"

typedef struct {
  const convolution_data *t;
  clb_op *op;
  clb_graph *graph;
  clb_rows rows[MAX_ARRAYS];
  clb_buffer *workspace;
} convolution_set;

/* As in test_run.c: layout of rows in elements, and fillers between and after them. */
enum { PADDED_OFFSET = 5, PADDING = 3, BEHIND = 16, PIECE_BYTES = 32 << 20 };
static int filler(const convolution_array *a) { return a->output ? 0x5a : 0xff; }
static int64_t offset(const convolution_data *t) {
  return t->data.layout == LAYOUT_PADDED ? PADDED_OFFSET : 0;
}
static int64_t pitch(const convolution_data *t, const convolution_array *a) {
  return a->width + (t->data.layout == LAYOUT_PADDED ? PADDING : 0);
}
static size_t element(const convolution_data *t) { return dtype_bytes(t->kernel->storage); }
static uint64_t behind_bytes(const convolution_data *t, const convolution_array *a) {
  return (uint64_t)(pitch(t, a) + BEHIND) * element(t);
}
static uint64_t array_bytes(const convolution_data *t, const convolution_array *a) {
  return (uint64_t)(offset(t) + a->rows * pitch(t, a)) * element(t) + behind_bytes(t, a);
}

/* ---- bytes ---- */

static int64_t columns_of_messages(const convolution_data *t) {
  bool walks =
      t->problem->product.kind == CHANNEL_WISE || t->problem->product.kind == OTHER_PRODUCT;
  int64_t columns = 0;
  for (int i = t->inputs; i < t->n; i++)
    if (t->array[i].like == CLB_OPERAND_X || (t->array[i].like == CLB_OPERAND_Z && !walks))
      columns += t->array[i].width;
  return columns;
}

static double bytes(const void *test_run) {
  const convolution_data *t = test_run;
  double sum = 2 * sizeof(int32_t) * (double)t->graph.n_edges;
  for (int i = 0; i < t->n; i++)
    sum += (double)t->array[i].rows * t->array[i].width * (double)element(t);
  if (t->problem->table) sum += (KNOTS + 2.0) * (double)t->sizes.w * (double)element(t);
  return sum;
}

static double read_bytes(const void *test_run) {
  const convolution_data *t = test_run;
  double written = 0;
  for (int i = t->inputs; i < t->n && !t->kernel->accumulate; i++)
    written += (double)t->array[i].rows * t->array[i].width * (double)element(t);
  return bytes(t) - written;
}

static clb_status flops(const void *test_run, clb_op *op, double *n) {
  const convolution_data *t = test_run;
  return clb_convolution_flops(op, t->pass, t->graph.n_receivers, t->graph.n_edges, n);
}

/* Intermediate results per edge, written and read again: gradients of x, and, if weights mix
   channels, all results for nodes; with vectors, y and arrays of its shape. */
static double more_bytes(const void *test_run) {
  const convolution_data *t = test_run;
  double edges = 2.0 * (double)t->graph.n_edges,
         y = t->problem->vectors
                 ? edges * (double)t->sizes.y * (double)(element(t) * (size_t)(t->pass + 1))
                 : 0;
  return t->problem->atomics ? y
                             : y + edges * (double)columns_of_messages(t) *
                                       (double)dtype_bytes(t->kernel->arithmetic);
}

static double set_bytes(const void *test_run) {
  const convolution_data *t = test_run;
  double nodes = (double)(t->graph.n_senders + t->graph.n_receivers),
         graph = 40 * (double)t->graph.n_edges + 56 * nodes;
  return bytes(t) + graph +
         (t->problem->workspace == MAX_WORKSPACE ? more_bytes(t) / 2
                                                 : (double)t->problem->workspace);
}

static int64_t n_rows(const void *test_run) {
  return ((const convolution_data *)test_run)->graph.n_edges;
}

static void compared(const void *test_run, char *out, size_t size) {
  const convolution_data *t = test_run;
  static const char *const names[] = {"senders", "edges", "receivers", "row of weights"};
  const char *between = "";
  out[0] = 0;
  for (int o = OWNERS - 1; o >= 0; o--)
    for (int i = t->inputs; i < t->n; i++) {
      size_t used = strlen(out);
      if (!t->array[i].width || t->array[i].owner != (owner)o) continue;
      snprintf(out + used, size - used, "%s%lld %s", between, (long long)t->sample[o].n, names[o]);
      between = ", ";
      break;
    }
}

/* ---- writing ---- */

static const void *row_bytes(const convolution_data *t, const convolution_array *a, int64_t row,
                             double *value, void *capacity) {
  bool length = a == &t->array[LENGTHS] && t->problem->table,
       vector = a == &t->array[VECTORS] && t->problem->vectors;
  if (!length && !vector) return t->stored + (size_t)convolution_row(a, row) * element(t);
  for (int i = 0; i < a->width; i++)
    value[i] = vector ? t->graph.vector[3 * row + i] : t->length[row];
  encode(t->kernel->storage, value, capacity, a->width);
  return capacity;
}

/* Rows first ... first + n - 1 as stored in memory; outputs are NaN unless accumulated into. */
static void make_image(const convolution_data *t, const convolution_array *a, int64_t first,
                       int64_t n, unsigned char *image) {
  size_t row = (size_t)pitch(t, a) * element(t), used = (size_t)a->width * element(t);
  bool blank = a->output && !t->kernel->accumulate;
  double value[3], capacity[3];
  if (row > used || blank) memset(image, filler(a), (size_t)n * row);
  for (int64_t r = 0; r < n; r++)
    if (blank) memset(image + (size_t)r * row, 0xff, used);
    else memcpy(image + (size_t)r * row, row_bytes(t, a, first + r, value, capacity), used);
}

static clb_status write_rows(const convolution_data *t, const convolution_array *a,
                             clb_buffer *buffer) {
  uint64_t row = (uint64_t)pitch(t, a) * element(t), at = (uint64_t)offset(t) * element(t);
  int64_t together = (int64_t)(PIECE_BYTES / row) + 1;
  if (together > a->rows) together = a->rows;
  unsigned char *image = allocate((size_t)together + 1, row);
  clb_status status = CLB_OK;
  for (int64_t first = 0; !status && first < a->rows; first += together) {
    int64_t n = a->rows - first < together ? a->rows - first : together;
    if (a->rows > together)
      progress("writing %s: %.1f of %.1f GB", a->name, (double)first * (double)row * 1e-9,
               (double)a->rows * (double)row * 1e-9);
    make_image(t, a, first, n, image);
    status = clb_buffer_write(buffer, at + (uint64_t)first * row, image, (uint64_t)n * row);
  }
  free(image);
  return status;
}

static clb_status write_guards(const convolution_data *t, const convolution_array *a,
                               clb_buffer *buffer) {
  uint64_t before = (uint64_t)offset(t) * element(t), behind = behind_bytes(t, a);
  unsigned char *guard = allocate(behind, 1);
  memset(guard, filler(a), behind);
  clb_status status = before ? clb_buffer_write(buffer, 0, guard, before) : CLB_OK;
  if (!status) status = clb_buffer_write(buffer, array_bytes(t, a) - behind, guard, behind);
  free(guard);
  return status;
}

static clb_status make_array(const convolution_data *t, clb_context *ctx,
                             const convolution_array *a, clb_rows *rows) {
  *rows = (clb_rows){.offset = offset(t),
                     .stride = a->repeats                        ? CLB_SAME_ROW
                               : t->data.layout == LAYOUT_PADDED ? pitch(t, a)
                                                                 : CLB_DENSE};
  clb_status status = clb_buffer_create(ctx, array_bytes(t, a), &rows->buffer);
  if (!status) status = write_guards(t, a, rows->buffer);
  if (!status) status = write_rows(t, a, rows->buffer);
  return status;
}

static clb_status make_graph(const convolution_data *t, clb_context *ctx, clb_graph **graph) {
  const convolution_graph *g = &t->graph;
  clb_status status = clb_graph_create(
      ctx, g->n_senders > g->n_receivers ? g->n_senders : g->n_receivers, g->n_edges, graph);
  if (status) return status;
  return clb_graph_update(*graph, g->n_senders, g->n_receivers, g->n_edges, CLB_I32,
                          (clb_index_list){.host = g->senders},
                          (clb_index_list){.host = g->receivers});
}

static clb_status make_workspace(convolution_set *s, clb_context *ctx) {
  uint64_t min, max;
  clb_status status = clb_convolution_workspace(s->op, s->t->pass, s->graph, &min, &max);
  int64_t asked = s->t->problem->workspace;
  uint64_t n = asked == MAX_WORKSPACE   ? max
               : asked == MIN_WORKSPACE ? min
               : (uint64_t)asked < max  ? (uint64_t)asked
                                        : max;
  return status || !n ? status : clb_buffer_create(ctx, n, &s->workspace);
}

static clb_status set_make(void *test_run, clb_context *ctx, clb_op *op, void **set) {
  convolution_data *t = test_run;
  convolution_set *s = *set = allocate(1, sizeof *s);
  *s = (convolution_set){.t = t, .op = op};
  clb_status status = make_graph(t, ctx, &s->graph);
  if (!status) status = make_workspace(s, ctx);
  for (int i = 0; !status && i < t->n; i++)
    if (t->array[i].width) status = make_array(t, ctx, &t->array[i], &s->rows[i]);
  if (!status && t->weights) status = clb_convolution_set_table(op, t->weights);
  if (!status) {
    progress("computing the reference");
    convolution_data_answer(t);
  }
  return status;
}

static void set_free(void *set) {
  convolution_set *s = set;
  if (!s) return;
  for (int i = 0; i < MAX_ARRAYS; i++) clb_buffer_destroy(&s->rows[i].buffer);
  clb_buffer_destroy(&s->workspace);
  clb_graph_destroy(&s->graph);
  free(s);
}

static clb_status run(void *set) {
  const convolution_set *s = set;
  const clb_rows *a = s->rows;
  switch (s->t->pass) {
    case CLB_FORWARD:
      return clb_convolution_forward(s->op, s->graph, a[0], a[1], a[2], a[3], s->workspace);
    case CLB_BACKWARD:
      return clb_convolution_backward(s->op, s->graph, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                                      s->workspace);
    default:
      return clb_convolution_double_backward(s->op, s->graph, a[0], a[1], a[2], a[3], a[4], a[5],
                                             a[6], a[7], a[8], a[9], a[10], s->workspace);
  }
}

/* ---- comparison ---- */

static bool untouched(const unsigned char *bytes_, size_t n, int byte) {
  for (size_t i = 0; i < n; i++)
    if (bytes_[i] != byte) return false;
  return true;
}

static clb_status guards_error(const convolution_data *t, const convolution_array *a,
                               clb_buffer *buffer, double *error) {
  uint64_t before = (uint64_t)offset(t) * element(t), behind = behind_bytes(t, a);
  unsigned char *guard = allocate(behind, 1);
  clb_status status = before ? clb_buffer_read(buffer, 0, guard, before) : CLB_OK;
  if (!status && !untouched(guard, before, filler(a))) *error = INFINITY;
  if (!status) status = clb_buffer_read(buffer, array_bytes(t, a) - behind, guard, behind);
  if (!status && !untouched(guard, behind, filler(a))) *error = INFINITY;
  free(guard);
  return status;
}

static double row_error(const convolution_data *t, int i, int64_t row, const double *got) {
  static const double min[] = {
      [CLB_F64] = DBL_MIN, [CLB_F32] = FLT_MIN, [CLB_F16] = 0x1p-24, [CLB_BF16] = FLT_MIN};
  double error = 0;
  for (int64_t j = 0, at = row * t->array[i].width; j < t->array[i].width; j++) {
    double difference = fabs(got[j] - t->wanted[i][at + j]), e = difference / t->scale[i][at + j];
    if (difference <= min[t->kernel->storage]) continue;
    if (!(e <= error)) error = e < INFINITY ? e : INFINITY;
  }
  return error;
}

/* Number of consecutive rows in the sample from `first` on, limited to what is read at once. */
static int64_t together(const sample *s, int64_t first, uint64_t row) {
  int64_t n = 1;
  while (first + n < s->n && s->row[first + n] == s->row[first] + n &&
         (uint64_t)(n + 1) * row <= PIECE_BYTES)
    n++;
  return n;
}

static clb_status array_error(const convolution_set *set, int i, double *error) {
  const convolution_data *t = set->t;
  const convolution_array *a = &t->array[i];
  const sample *s = &t->sample[a->owner];
  size_t row = (size_t)pitch(t, a) * element(t), used = (size_t)a->width * element(t);
  double *got = allocate((size_t)a->width, sizeof *got);
  clb_status status = guards_error(t, a, set->rows[i].buffer, error);
  for (int64_t first = 0, n; !status && first < s->n; first += n) {
    n = together(s, first, row);
    unsigned char *piece = allocate((size_t)n, row);
    status = clb_buffer_read(set->rows[i].buffer,
                             (uint64_t)offset(t) * element(t) + (uint64_t)s->row[first] * row,
                             piece, (uint64_t)n * row);
    for (int64_t r = 0; !status && r < n; r++) {
      const unsigned char *here = piece + (size_t)r * row;
      decode(t->kernel->storage, here, got, a->width);
      double e = untouched(here + used, row - used, filler(a)) ? row_error(t, i, first + r, got)
                                                               : INFINITY;
      if (e > *error) *error = e;
    }
    free(piece);
  }
  free(got);
  return status;
}

static clb_status set_error(const void *set, double *error) {
  const convolution_set *s = set;
  clb_status status = CLB_OK;
  *error = 0;
  for (int i = s->t->inputs; !status && i < s->t->n; i++)
    if (s->t->array[i].width) status = array_error(s, i, error);
  return status;
}

const tool_test_run convolution_test_run = {.make = convolution_data_make,
                                            .free = convolution_data_free,
                                            .rows = n_rows,
                                            .bytes = bytes,
                                            .more_bytes = more_bytes,
                                            .read_bytes = read_bytes,
                                            .flops = flops,
                                            .set_bytes = set_bytes,
                                            .set_make = set_make,
                                            .set_free = set_free,
                                            .run = run,
                                            .error = set_error,
                                            .compared = compared};
