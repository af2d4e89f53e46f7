/* tests/ops/layers/test_linear.c - matrix products, column sums and moves of columns against plain
   sums, through the BLAS and through the generated kernels, on every device that runs here and on
   the interpreter with the limits of GPUs. */
#include "kernels/linear/host/column_moves.h"
#include "tests/ops/layers/linear_products.h"

enum { MAX_DEVICES = 16 };

static struct device {
  char name[64];
  const char *how;   /* NULL: as it is */
  clb_limits limits; /* no lanes: its own */
  clb_context *ctx;
} devices[MAX_DEVICES];
static int n_devices;

static void add_device(const clb_device_info *info, void *user) {
  (void)user;
  if (info->runs && info->f64 && n_devices < MAX_DEVICES)
    snprintf(devices[n_devices++].name, sizeof devices[0].name, "%s", info->name);
}

static clb_context *context_of(struct device *d) {
  if (d->ctx) return d->ctx;
  OK(d->ctx, clb_context_create(d->name, &d->ctx));
  if (d->limits.lanes[0]) d->ctx->device->limits = d->limits;
  else if (d->how) d->ctx->device->limits.simd = false;
  return d->ctx;
}

/* The interpreter with and without sub-groups; an OpenCL CPU taken for a GPU, which has CLBlast. */
static void add_simulated(void) {
  static const clb_limits limits[] = {{.lanes = {16, 16},
                                       .max_subgroups = 64,
                                       .local_bytes = 1 << 16,
                                       .registers = 128,
                                       .units = 1000,
                                       .subgroups = true,
                                       .f64 = true},
                                      {.lanes = {8, 32},
                                       .max_subgroups = 2,
                                       .local_bytes = 1 << 15,
                                       .registers = 256,
                                       .units = 1000,
                                       .f64 = true}};
  int real = n_devices;
  for (size_t i = 0; i < sizeof limits / sizeof *limits && n_devices < MAX_DEVICES;
       i++, n_devices++)
    devices[n_devices] = (struct device){.name = "cpu:interpreter",
                                         .limits = limits[i],
                                         .how = i ? " as if no sub-groups" : " as if sub-groups"};
  for (int d = 0; d < real && n_devices < MAX_DEVICES; d++) {
    if (strncmp(devices[d].name, "opencl", 6)) continue;
    const clb_limits *l = &context_of(&devices[d])->device->limits;
    if (!l->simd || l->subgroups)
      continue; /* PoCL's own sub-groups run in step with the whole group */
    memcpy(devices[n_devices].name, devices[d].name, sizeof devices[0].name);
    devices[n_devices++].how = " as if a GPU";
  }
}

static int close_all(void **state) {
  (void)state;
  for (int d = 0; d < n_devices; d++) clb_context_destroy(&devices[d].ctx);
  return 0;
}

/* ---- products ---- */

static void random_products(struct device *d, clb_dtype type, bool generated) {
  enum { CASES = 80, FEW = 24, PIECES = 5 };
  bool slow = d->how || strstr(d->name, "interpreter"),
       many = !d->how || generated; /* PoCL compiles CLBlast's kernels again and again */
  clb_op *op;
  uint64_t seed = 7;
  OK(d->ctx, (generated ? clb_gemm_create_generated : clb_gemm_create)(context_of(d), type, &op));
  for (int i = 0; i < (many ? CASES : FEW); i++) {
    bool pieces = i % PIECES == 0;
    clb_gemm_desc p =
        random_product(&seed, pieces ? SINGLE : EMPTY, pieces || (slow && i % 8) ? LARGE : ALL);
    try_product(d->ctx, op, type, p, pieces ? 1 + pick(&seed, 9) : 0, (uint64_t)i,
                generated && !pieces);
  }
  clb_op_destroy(&op);
}

static void products_f64(void **state) { random_products(*state, CLB_F64, false); }
static void products_f32(void **state) { random_products(*state, CLB_F32, false); }
static void generated_f64(void **state) { random_products(*state, CLB_F64, true); }
static void generated_f32(void **state) { random_products(*state, CLB_F32, true); }

/* Small C and long sums: k is split among sub-groups where there are several. */
static void long_sums(void **state) {
  struct device *d = *state;
  for (int i = 0; i < 16; i++) {
    clb_dtype type = i & 1 ? CLB_F32 : CLB_F64;
    clb_gemm_desc p = {.m = 3 + 2 * (i / 4),
                       .n = 5 + 14 * (i / 4),
                       .k = 1333,
                       .count = 1 + (i / 4 == 2),
                       .transpose_a = i & 2,
                       .transpose_b = i & 4,
                       .add = i & 8};
    clb_op *op;
    p.ld_a = p.transpose_a ? p.m : p.k, p.ld_b = p.transpose_b ? p.k : p.n, p.ld_c = p.n + 2;
    p.stride_a = p.m * p.k, p.stride_b = p.n * p.k, p.stride_c = p.m * p.ld_c;
    OK(d->ctx, clb_gemm_create_generated(context_of(d), type, &op));
    try_product(d->ctx, op, type, p, 0, (uint64_t)i, false);
    clb_op_destroy(&op);
  }
}

/* Elements outside of its matrices are never touched. */
static void refuses(void **state) {
  struct device *d = *state;
  clb_op *op;
  array a = make(CLB_F32, 99);
  OK(d->ctx, clb_gemm_create(context_of(d), CLB_F32, &op));
  upload(d->ctx, &a);
  const clb_memory *m = &a.buffer->memory;
  const clb_gemm_desc good = {.m = 10,
                              .n = 10,
                              .k = 10,
                              .count = 1,
                              .a = m,
                              .b = m,
                              .c = m,
                              .ld_a = 10,
                              .ld_b = 10,
                              .ld_c = 10};
  clb_gemm_desc bad[7];
  for (int i = 0; i < 7; i++) bad[i] = good;
  bad[0].offset_a = 1, bad[1].offset_b = 1, bad[2].offset_c = 1, bad[3].ld_a = 9, bad[4].count = 2,
  bad[4].stride_c = INT64_MAX, bad[5].m = -1, bad[6].offset_c = -1;
  for (int i = 0; i < 7; i++) assert_int_equal(clb_gemm_run(op, &bad[i]), CLB_ERROR_INTERNAL);
  clb_op_destroy(&op);
  OK(d->ctx, clb_column_sum_create(d->ctx, CLB_F32, CLB_F32, 10, 20, &op));
  assert_int_equal(clb_column_sum_run(op, 11, m, 0, 10, m, 0, false), CLB_ERROR_INTERNAL);
  assert_int_equal(clb_column_sum_run(op, 21, m, 0, 0, m, 0, false), CLB_ERROR_INTERNAL);
  assert_int_equal(clb_column_sum_run(op, 1, m, 0, 10, m, 91, false), CLB_ERROR_INTERNAL);
  assert_int_equal(clb_gemm_run(op, &good), CLB_ERROR_INTERNAL);
  clb_op_destroy(&op);
  drop(&a);
}

/* ---- column sums ---- */

static const struct {
  clb_dtype storage, arithmetic;
  double sum, store; /* tolerances: of sum |terms|, of what is stored */
} kinds[] = {{CLB_F64, CLB_F64, 1e-13, 0},
             {CLB_F32, CLB_F64, 1e-13, 1e-7},
             {CLB_F32, CLB_F32, 1e-6, 0},
             {CLB_F16, CLB_F32, 1e-6, 0x1p-11},
             {CLB_BF16, CLB_F32, 1e-6, 0x1p-8}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Hash of the sums' bits: equal on all devices, whatever their lanes. */
static uint64_t try_sum(struct device *d, clb_op *op, int kind, int64_t rows, int64_t columns,
                        int64_t stride, bool add) {
  uint64_t seed = (uint64_t)(rows * 31 + columns), hash = 1469598103934665603u;
  const int64_t offset = 2, out_offset = 3;
  clb_dtype type = kinds[kind].storage;
  array in = make(type, offset + rows * stride + columns), out = make(type, out_offset + columns);
  void *got[2];
  fill_matrices(&in, offset, 1, 0, rows, stride, columns, &seed);
  if (add) fill_matrices(&out, out_offset, 1, 0, 1, columns, columns, &seed);
  upload(d->ctx, &in);
  for (int i = 0; i < 2; i++) {
    upload(d->ctx, &out);
    OK(d->ctx, clb_column_sum_run(op, rows, &in.buffer->memory, offset, stride, &out.buffer->memory,
                                  out_offset, add));
    got[i] = download(d->ctx, &out);
    clb_buffer_destroy(&out.buffer);
  }
  assert_memory_equal(got[0], got[1], (size_t)out.n * dtype_bytes(type));
  for (int64_t c = -out_offset; c <= columns; c++) {
    double is = number_at(type, got[0], out_offset + c),
           sum = add && c >= 0 && c < columns ? number_at(type, out.host, out_offset + c) : 0,
           size = fabs(sum);
    if (c < 0 || c == columns) {
      assert_true(isnan(is));
      continue;
    }
    for (int64_t r = 0; r < rows; r++)
      sum += number_at(type, in.host, offset + r * stride + c),
          size += fabs(number_at(type, in.host, offset + r * stride + c));
    if (!(fabs(is - sum) <= kinds[kind].sum * size + kinds[kind].store * fabs(sum)))
      fail_msg("storage %d, arithmetic %d, %lld rows, %lld columns, column %lld: %.17g, not %.17g",
               (int)type, (int)kinds[kind].arithmetic, (long long)rows, (long long)columns,
               (long long)c, is, sum);
    if (!isnan(is)) hash = (hash ^ (uint64_t)(int64_t)(is * 0x1p40)) * 1099511628211u;
  }
  free(got[0]);
  free(got[1]);
  drop(&in);
  drop(&out);
  return hash;
}

static uint64_t first_hash[KINDS];

static void column_sums(void **state) {
  static const int64_t rows[] = {0, 1, 3, 8, 63, 64, 65, 130, 1025},
                       columns[] = {1, 7, 16, 65, 300};
  enum {
    MAX = 65536 + 1,
    FEW = 3
  }; /* rows that need the most blocks there are, each a little longer */
  struct device *d = *state;
  for (int kind = 0; kind < KINDS; kind++) {
    clb_op *op;
    uint64_t hash = 0;
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
      OK(d->ctx, clb_column_sum_create(context_of(d), kinds[kind].storage, kinds[kind].arithmetic,
                                       columns[c], 1025, &op));
      for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        hash = 31 * hash +
               try_sum(d, op, kind, rows[r], columns[c], columns[c] + (r & 1) * 3, (r ^ c) & 1);
      clb_op_destroy(&op);
    }
    OK(d->ctx,
       clb_column_sum_create(d->ctx, kinds[kind].storage, kinds[kind].arithmetic, FEW, MAX, &op));
    if (kind < 2) hash = 31 * hash + try_sum(d, op, kind, MAX, FEW, FEW, false);
    clb_op_destroy(&op);
    d->ctx->disabled = CLB_SPLIT_ROWS;
    OK(d->ctx,
       clb_column_sum_create(d->ctx, kinds[kind].storage, kinds[kind].arithmetic, 7, 1025, &op));
    d->ctx->disabled = 0;
    try_sum(d, op, kind, 1025, 7, 7, false);
    clb_op_destroy(&op);
    OK(d->ctx,
       clb_column_sum_create(d->ctx, kinds[kind].storage, kinds[kind].arithmetic, 0, 5, &op));
    try_sum(d, op, kind, 5, 0, 0, false);
    clb_op_destroy(&op);
    if (!first_hash[kind]) first_hash[kind] = hash;
    assert_true(hash == first_hash[kind]);
  }
}

/* ---- moves of columns ---- */

enum { MOVES = 37, APART = MOVES + 5 };

static void check_columns(int kind, const array *got, const array *was, const clb_column_move *move,
                          bool inward, bool add, int64_t rows, int64_t stride, int parts,
                          const array *from, int64_t from_stride) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < stride; c++) {
      const double is = number_at(got->type, got->host, r * stride + c);
      double sum = number_at(was->type, was->host, r * stride + c), size = 0;
      const double before = sum;
      int64_t m = 0;
      while (m < MOVES && c != (inward ? move[m].inner : move[m].outer)) m++;
      if (m == MOVES) {
        if (is != before && !(isnan(is) && isnan(before))) fail_msg("column %d changed", (int)c);
        continue;
      }
      if (!add) sum = 0;
      for (int i = 0; i < parts; i++) {
        const double part =
            number_at(from->type, from->host,
                      r * from_stride + i * APART + (inward ? move[m].outer : move[m].inner));
        sum += part, size += fabs(part);
      }
      if (add) size += fabs(before);
      if (!(fabs(is - sum) <= kinds[kind].sum * size + kinds[kind].store * fabs(sum)))
        fail_msg("row %d, column %d: %.17g, not %.17g", (int)r, (int)c, is, sum);
    }
}

/* Every second outer column, in another order; between them nothing changes. */
static void column_moves(void **state) {
  enum { ROWS = 5, OUTER = 2 * MOVES + 3 };
  static const int parts[] = {0, 1, 3, 19};
  struct device *d = *state;
  clb_column_move move[MOVES];
  uint64_t seed = 5;
  for (int i = 0; i < MOVES; i++) move[i] = (clb_column_move){2 * i + 1, 3 + i * 7 % MOVES};
  for (int kind = 0; kind < KINDS; kind++) {
    const clb_dtype outer_type = kinds[kind].storage, inner_type = kinds[kind].arithmetic;
    clb_op *op;
    OK(d->ctx, clb_column_moves_create(context_of(d), outer_type, inner_type, move, MOVES, &op));
    for (int p = -1; p < 4; p++) { /* -1: inward */
      const bool inward = p < 0, add = p % 2 == 1;
      const int n_parts = inward ? 1 : parts[p];
      const int64_t inner = (int64_t)(n_parts + 1) * APART;
      array out = make(outer_type, ROWS * OUTER), in = make(inner_type, ROWS * inner),
            *from = inward ? &out : &in, *to = inward ? &in : &out;
      fill_matrices(from, 0, 1, 0, 1, 0, from->n - 1, &seed);
      if (add) fill_matrices(to, 0, 1, 0, 1, 0, to->n - 1, &seed);
      upload(d->ctx, &out);
      upload(d->ctx, &in);
      const clb_row_place outer_place = {&out.buffer->memory, 0, OUTER},
                          inner_place = {&in.buffer->memory, 0, inner};
      OK(d->ctx,
         inward ? clb_column_moves_in(op, ROWS, outer_place, inner_place)
                : clb_column_moves_out(op, ROWS, inner_place, n_parts, APART, outer_place, add));
      array got = {.type = to->type, .n = to->n, .host = download(d->ctx, to)};
      check_columns(kind, &got, to, move, inward, add, ROWS, inward ? inner : OUTER, n_parts, from,
                    inward ? OUTER : inner);
      free(got.host);
      drop(&out);
      drop(&in);
    }
    clb_op_destroy(&op);
  }
}

int main(void) {
  static void (*const tests[])(void **) = {products_f64, products_f32, generated_f64, generated_f32,
                                           long_sums,    refuses,      column_sums,   column_moves};
  static const char *const names[] = {"products_f64",  "products_f32", "generated_f64",
                                      "generated_f32", "long_sums",    "refuses",
                                      "column_sums",   "column_moves"};
  enum { TESTS = sizeof names / sizeof *names };
  static struct CMUnitTest all[MAX_DEVICES * TESTS];
  static char labels[MAX_DEVICES * TESTS][96];
  int n = 0;
  clb_devices(add_device, NULL);
  add_simulated();
  for (int d = 0; d < n_devices; d++)
    for (int t = 0; t < TESTS; t++, n++) {
      snprintf(labels[n], sizeof labels[n], "linear_%s[%s%s]", names[t], devices[d].name,
               devices[d].how ? devices[d].how : "");
      all[n] = (struct CMUnitTest){labels[n], tests[t], NULL, NULL, &devices[d]};
    }
  return _cmocka_run_group_tests("linear", all, (size_t)n, NULL, close_all);
}
