/* tools/data/test_run.c - a test run of one pass of an op on synthetic data: values, reference
   results, buffers on a device, the comparison. */
#include "tools/data/test_run.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"

/* Elements before the first row, and between rows: more in each array than in the one before,
   at most three times as many between. */
static const struct {
  int offset, padding, more;
} layouts[LAYOUTS] = {[LAYOUT_PADDED] = {5, 3, 1}, [LAYOUT_ALIGNED] = {4, 4, 4}};

/* Bytes before, between and behind the rows: NaN in inputs, to detect their use, and a number in
   outputs, to detect that they are overwritten, even by NaN. */
static int filler(const test_run *t, int a) { return t->array[a].output ? 0x5a : 0xff; }

static bool repeats(const test_run *t, int a) {
  return t->data.layout == LAYOUT_REPEAT && t->array[a].repeats;
}

static int64_t rows_of(const test_run *t, int a) { return t->array[a].rows; }
static int64_t period_of(const test_run *t, int a) { return t->array[a].period; }

/* Rows whose results are known: of a period, or those that are compared. */
static int64_t known_rows(const test_run *t, int a) {
  return t->array[a].compared ? t->array[a].n_compared : period_of(t, a);
}

static int64_t pitch(const test_run *t, int a) { /* elements from one row to the next */
  return t->array[a].width + layouts[t->data.layout].padding + a % 3 * layouts[t->data.layout].more;
}

static int64_t offset(const test_run *t, int a) {
  return layouts[t->data.layout].offset + a * layouts[t->data.layout].more;
}

static size_t guard_bytes(const test_run *t,
                          int a) { /* elements after the last row: space for one extra row */
  return (size_t)(pitch(t, a) + 16) * dtype_bytes(t->kernel->storage);
}

static uint64_t array_bytes(const test_run *t, int a) {
  return (uint64_t)(offset(t, a) + rows_of(t, a) * pitch(t, a)) * dtype_bytes(t->kernel->storage) +
         guard_bytes(t, a);
}

uint64_t test_run_bytes(const test_run *t) {
  uint64_t bytes = 0;
  for (int a = 0; a < t->n; a++) {
    bytes += array_bytes(t, a);
    if (t->array[a].indexed || t->array[a].kinds) bytes += (uint64_t)t->data.rows * sizeof(int32_t);
  }
  return bytes;
}

/* ---- values ---- */

static void round_to_storage(const test_run *t, int a) {
  int64_t n = period_of(t, a) * t->array[a].width;
  void *stored = allocate((size_t)n, dtype_bytes(t->kernel->storage));
  encode(t->kernel->storage, t->values[a], stored, n);
  decode(t->kernel->storage, stored, t->values[a], n);
  free(stored);
}

/* Some rows are used often, some never. */
static void choose_rows(test_run *t, int a, uint64_t *seed) {
  size_t width = (size_t)t->array[a].width;
  t->stored[a] = t->values[a];
  t->values[a] = allocate((size_t)t->period * width, sizeof(double));
  t->found[a] = allocate((size_t)t->period, sizeof(int32_t));
  for (int64_t r = 0; r < t->period; r++) {
    t->found[a][r] = (int32_t)((random_number(seed) + 1) / 2 * (double)t->period);
    memcpy(t->values[a] + (size_t)r * width, t->stored[a] + (size_t)t->found[a][r] * width,
           width * sizeof(double));
  }
}

static void fill_inputs(test_run *t, uint64_t *seed) {
  double *inputs[MAX_ARRAYS] = {NULL};
  for (int a = 0; a < t->n; a++)
    if (!t->array[a].output) inputs[a] = t->values[a];
  if (t->graph) t->op->on_graph->fill(t->graph, inputs, seed);
  else op_fill(t->op, t->kernel->problem, t->pass, &t->data, t->period, inputs, seed);
  for (int a = 0; a < t->n; a++) {
    size_t width = (size_t)t->array[a].width;
    if (repeats(t, a))
      for (int64_t r = 1; r < period_of(t, a); r++)
        memcpy(t->values[a] + (size_t)r * width, t->values[a], width * sizeof(double));
    if (inputs[a]) round_to_storage(t, a);
    if (t->array[a].indexed) choose_rows(t, a, seed);
  }
}

static void fill_outputs(test_run *t, uint64_t *seed) { /* initial contents */
  for (int a = 0; a < t->n; a++) {
    if (!t->array[a].output) continue;
    for (int64_t i = 0; i < period_of(t, a) * t->array[a].width; i++)
      t->values[a][i] = t->kernel->accumulate ? random_number(seed) : NAN;
    round_to_storage(t, a);
  }
}

/* Sums over all rows, from the sums over one period. */
static void sum_periods(test_run *t) {
  bool any = false;
  for (int a = 0; a < t->n; a++) any |= t->array[a].output && t->array[a].one_row;
  if (!any) return;
  int64_t periods = t->data.rows / t->period, rest = t->data.rows % t->period;
  double *wanted[MAX_ARRAYS] = {NULL}, *scale[MAX_ARRAYS] = {NULL};
  for (int a = 0; a < t->n; a++) {
    size_t n = (size_t)t->period * (size_t)t->array[a].width;
    if (t->array[a].output)
      wanted[a] = allocate(n, sizeof(double)), scale[a] = allocate(n, sizeof(double));
  }
  t->op->reference(t->kernel->problem, t->pass, rest, t->values, wanted, scale);
  for (int a = 0; a < t->n; a++) {
    for (int i = 0; t->array[a].output && t->array[a].one_row && i < t->array[a].width; i++) {
      t->wanted[a][i] = t->wanted[a][i] * (double)periods + wanted[a][i];
      t->scale[a][i] = t->scale[a][i] * (double)periods + scale[a][i];
    }
    free(wanted[a]);
    free(scale[a]);
  }
}

/* Adds the initial contents. */
static void add_contents(const test_run *t, int a) {
  int64_t width = t->array[a].width;
  for (int64_t r = 0; r < known_rows(t, a); r++) {
    int64_t row = t->array[a].compared ? t->array[a].compared[r] % period_of(t, a) : r;
    for (int64_t i = 0; i < width; i++) {
      t->wanted[a][r * width + i] += t->values[a][row * width + i];
      t->scale[a][r * width + i] += fabs(t->values[a][row * width + i]);
    }
  }
}

/* The reference has all operands: those that are left out are 0, or not looked at. */
static void compute_rows(const test_run *t) {
  double *values[MAX_ARRAYS], *wanted[MAX_ARRAYS], *scale[MAX_ARRAYS];
  for (int a = 0; a < t->n; a++) {
    size_t n = (size_t)period_of(t, a) * (size_t)t->array[a].left_out;
    values[a] = n ? allocate(n, sizeof(double)) : t->values[a];
    wanted[a] = n ? allocate(n, sizeof(double)) : t->wanted[a];
    scale[a] = n ? allocate(n, sizeof(double)) : t->scale[a];
  }
  t->op->reference(t->kernel->problem, t->pass, t->period, values, wanted, scale);
  for (int a = 0; a < t->n; a++)
    if (t->array[a].left_out && period_of(t, a)) free(values[a]), free(wanted[a]), free(scale[a]);
}

void test_run_answer(test_run *t) {
  if (t->answered) return;
  for (int a = 0; a < t->n; a++) {
    size_t n = (size_t)known_rows(t, a) * (size_t)t->array[a].width;
    if (!t->array[a].output) continue;
    t->wanted[a] = allocate(n, sizeof(double));
    t->scale[a] = allocate(n, sizeof(double));
  }
  if (t->graph) t->op->on_graph->reference(t->graph, t->values, t->wanted, t->scale);
  else compute_rows(t);
  if (!t->graph && t->period < t->data.rows) sum_periods(t);
  for (int a = 0; a < t->n && t->kernel->accumulate; a++)
    if (t->array[a].output) add_contents(t, a);
  t->answered = true;
}

/* Of rows that belong to no graph. */
static void size_arrays(test_run *t, int64_t max_period) {
  t->period = t->data.rows < max_period ? t->data.rows : max_period;
  t->n = op_arrays(t->op, t->kernel->problem, t->pass, t->array);
  for (int a = 0; a < t->n; a++) {
    t->array[a].rows = repeats(t, a) || t->array[a].one_row ? 1 : t->data.rows;
    t->array[a].period = t->array[a].one_row ? 1 : t->period;
  }
}

void test_run_make(test_run *t, const tool_op *op, const tool_kernel *kernel, clb_pass pass,
                   const tool_data *data, int64_t max_period) {
  *t = (test_run){.op = op, .kernel = kernel, .pass = pass};
  if (data) t->data = *data;
  if (op->on_graph) {
    t->graph = op->on_graph->make(kernel, pass, data);
    t->n = op->on_graph->arrays(t->graph, t->array);
  } else size_arrays(t, max_period);
  for (int a = 0; a < t->n; a++)
    t->values[a] = allocate((size_t)period_of(t, a) * (size_t)t->array[a].width, sizeof(double));
  uint64_t seed = 1;
  fill_inputs(t, &seed);
  fill_outputs(t, &seed);
}

void test_run_free(test_run *t) {
  if (t->graph) t->op->on_graph->free(t->graph);
  for (int a = 0; a < t->n; a++) {
    free(t->values[a]);
    free(t->stored[a]);
    free(t->found[a]);
    free(t->wanted[a]);
    free(t->scale[a]);
  }
  t->n = 0;
}

/* ---- buffers ---- */

/* One period of an array in memory, including padding. */
static void *image_of(const test_run *t, int a) {
  size_t size = dtype_bytes(t->kernel->storage), row = (size_t)pitch(t, a) * size;
  const double *values = t->stored[a] ? t->stored[a] : t->values[a];
  unsigned char *image = allocate((size_t)period_of(t, a), row);
  memset(image, filler(t, a), (size_t)period_of(t, a) * row);
  for (int64_t r = 0; r < period_of(t, a); r++)
    encode(t->kernel->storage, values + r * t->array[a].width, image + (size_t)r * row,
           t->array[a].width);
  return image;
}

static clb_status write_guards(const test_run *t, int a, clb_buffer *buffer) {
  size_t before = (size_t)offset(t, a) * dtype_bytes(t->kernel->storage),
         behind = guard_bytes(t, a);
  unsigned char *guard = allocate(before + behind, 1);
  memset(guard, filler(t, a), before + behind);
  clb_status status = before ? clb_buffer_write(buffer, 0, guard, before) : CLB_OK;
  if (!status) status = clb_buffer_write(buffer, array_bytes(t, a) - behind, guard, behind);
  free(guard);
  return status;
}

static clb_status write_array(const test_run *t, int a, clb_buffer *buffer) {
  size_t size = dtype_bytes(t->kernel->storage), row = (size_t)pitch(t, a) * size;
  void *image = image_of(t, a);
  clb_status status = write_guards(t, a, buffer);
  for (int64_t first = 0; !status && first < rows_of(t, a); first += period_of(t, a)) {
    int64_t left = rows_of(t, a) - first, rows = left < period_of(t, a) ? left : period_of(t, a);
    if (rows_of(t, a) > period_of(t, a))
      progress("writing %s: %.1f of %.1f GB", t->array[a].name, (double)first * (double)row * 1e-9,
               (double)rows_of(t, a) * (double)row * 1e-9);
    status = clb_buffer_write(buffer, (uint64_t)offset(t, a) * size + (uint64_t)first * row, image,
                              (uint64_t)rows * row);
  }
  free(image);
  return status;
}

/* Row r is row found[r mod period] in a randomly chosen period of the array, or of the kind of row
   r mod period. */
static clb_status write_index(const test_run *t, int a, clb_context *ctx, clb_buffer **buffer) {
  int64_t rows = t->data.rows, periods = t->period ? rows / t->period : 0;
  int32_t *index = allocate((size_t)rows, sizeof *index);
  uint64_t seed = 2;
  for (int64_t r = 0; r < rows; r++)
    index[r] =
        t->array[a].kinds
            ? kind_of_row(r % t->period, t->array[a].kinds)
            : (int32_t)(t->found[a][r % t->period] +
                        t->period * (int64_t)((random_number(&seed) + 1) / 2 * (double)periods));
  clb_status status = clb_buffer_create(ctx, (uint64_t)rows * sizeof *index, buffer);
  if (!status) status = clb_buffer_write(*buffer, 0, index, (uint64_t)rows * sizeof *index);
  free(index);
  return status;
}

clb_status test_run_set_make(const test_run *t, clb_context *ctx, clb_op *op, test_run_set *set) {
  *set = (test_run_set){0};
  clb_status attached = t->graph ? t->op->on_graph->attach(t->graph, ctx, op, &set->at) : CLB_OK;
  for (int a = 0; a < t->n && !attached; a++) {
    clb_rows *rows = &set->rows[a];
    if (!t->array[a].width) continue;
    rows->offset = offset(t, a);
    rows->stride = repeats(t, a)                                ? CLB_SAME_ROW
                   : rows->offset != 0 && !t->array[a].adjacent ? pitch(t, a)
                                                                : CLB_DENSE;
    clb_status status = clb_buffer_create(ctx, array_bytes(t, a), &rows->buffer);
    if (!status) status = write_array(t, a, rows->buffer);
    if (!status && (t->array[a].indexed || t->array[a].kinds))
      status = write_index(t, a, ctx, &rows->index);
    if (status) return status;
  }
  return attached;
}

void test_run_set_free(const test_run *t, test_run_set *set) {
  if (t->graph) t->op->on_graph->detach(set->at);
  for (int a = 0; a < MAX_ARRAYS; a++) {
    clb_buffer_destroy(&set->rows[a].buffer);
    clb_buffer_destroy(&set->rows[a].index);
  }
}

clb_status test_run_once(const test_run *t, clb_op *op, const test_run_set *set) {
  return t->graph ? t->op->on_graph->run(op, t->pass, set->rows, set->at)
                  : t->op->run(op, t->pass, t->data.rows, set->rows);
}

/* ---- comparison ---- */

static bool untouched(const test_run *t, int a, const unsigned char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != filler(t, a)) return false;
  return true;
}

static double row_error(const test_run *t, int a, int64_t row, const double *got) {
  static const double smallest[] = {
      [CLB_F64] = DBL_MIN, [CLB_F32] = FLT_MIN, [CLB_F16] = 0x1p-24, [CLB_BF16] = FLT_MIN};
  double error = 0, min = smallest[t->kernel->storage];
  const double *wanted = t->wanted[a] + row * t->array[a].width,
               *scale = t->scale[a] + row * t->array[a].width;
  for (int i = 0; i < t->array[a].width; i++) {
    double difference = fabs(got[i] - wanted[i]);
    if (difference <= min) continue;
    double e = difference / scale[i];
    if (!(e <= error)) error = e < INFINITY ? e : INFINITY;
  }
  return error;
}

static clb_status guards_error(const test_run *t, int a, const clb_rows *rows, double *error) {
  size_t before = (size_t)offset(t, a) * dtype_bytes(t->kernel->storage),
         behind = guard_bytes(t, a);
  unsigned char *guard = allocate(before + behind, 1);
  clb_status status = before ? clb_buffer_read(rows->buffer, 0, guard, before) : CLB_OK;
  if (!status && !untouched(t, a, guard, before)) *error = INFINITY;
  if (!status) status = clb_buffer_read(rows->buffer, array_bytes(t, a) - behind, guard, behind);
  if (!status && !untouched(t, a, guard, behind)) *error = INFINITY;
  free(guard);
  return status;
}

/* Rows from number i on of those that are compared which lie side by side: the first, and how many.
 */
static int64_t side_by_side(const test_run *t, int a, int64_t i, int64_t *first) {
  const tool_array *of = &t->array[a];
  int64_t n = 1, max = period_of(t, a);
  *first = of->compared ? of->compared[i] : i;
  if (!of->compared) return rows_of(t, a) - i < max ? rows_of(t, a) - i : max;
  while (n < max && i + n < of->n_compared && of->compared[i + n] == *first + n) n++;
  return n;
}

static clb_status array_error(const test_run *t, int a, const clb_rows *rows, double *error) {
  size_t size = dtype_bytes(t->kernel->storage), row = (size_t)pitch(t, a) * size,
         used = (size_t)t->array[a].width * size;
  int64_t period = period_of(t, a),
          all = t->array[a].compared ? t->array[a].n_compared : rows_of(t, a), n;
  unsigned char *bytes = allocate((size_t)period, row),
                *before = allocate((size_t)period, row); /* the first period */
  double *got = allocate((size_t)t->array[a].width, sizeof *got);
  clb_status status = guards_error(t, a, rows, error);
  for (int64_t i = 0, first; !status && i < all; i += n) {
    n = side_by_side(t, a, i, &first);
    status = clb_buffer_read(rows->buffer, (uint64_t)offset(t, a) * size + (uint64_t)first * row,
                             bytes, (uint64_t)n * row);
    if (!t->array[a].compared && i && !memcmp(bytes, before, (size_t)n * row))
      continue; /* a repetition: the same error */
    if (!i) memcpy(before, bytes, (size_t)n * row);
    for (int64_t r = 0; !status && r < n; r++) {
      const unsigned char *here = bytes + (size_t)r * row;
      decode(t->kernel->storage, here, got, t->array[a].width);
      double e = untouched(t, a, here + used, row - used)
                     ? row_error(t, a, t->array[a].compared ? i + r : r, got)
                     : INFINITY;
      if (e > *error) *error = e;
    }
  }
  free(bytes);
  free(before);
  free(got);
  return status;
}

clb_status test_run_error(const test_run *t, const test_run_set *set, double *error) {
  clb_status status = CLB_OK;
  *error = 0;
  for (int a = 0; !status && a < t->n; a++)
    if (t->array[a].output && t->array[a].width) status = array_error(t, a, &set->rows[a], error);
  return status;
}

clb_status test_run_read(const test_run *t, const test_run_set *set, double *const *got) {
  size_t size = dtype_bytes(t->kernel->storage);
  clb_status status = CLB_OK;
  for (int a = 0; !status && a < t->n; a++) {
    size_t row = (size_t)pitch(t, a) * size;
    if (!t->array[a].output || !t->array[a].width || !got[a]) continue;
    unsigned char *bytes = allocate((size_t)rows_of(t, a), row);
    status = clb_buffer_read(set->rows[a].buffer, (uint64_t)offset(t, a) * size, bytes,
                             (uint64_t)rows_of(t, a) * row);
    for (int64_t r = 0; !status && r < rows_of(t, a); r++)
      decode(t->kernel->storage, bytes + (size_t)r * row, got[a] + r * t->array[a].width,
             t->array[a].width);
    free(bytes);
  }
  return status;
}

clb_status test_run_try(const test_run *t, clb_context *ctx, clb_op *op, double *error) {
  test_run_set set;
  clb_status status = test_run_set_make(t, ctx, op, &set);
  if (!status) status = test_run_once(t, op, &set);
  if (!status) status = clb_wait(ctx);
  if (!status) status = test_run_error(t, &set, error);
  test_run_set_free(t, &set);
  return status;
}
