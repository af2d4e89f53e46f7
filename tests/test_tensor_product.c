/* test_tensor_product.c - the op by mathematical property and against plain sums, on every device that runs here. */
#include "test.h"

#include <math.h>

#include <clebsch/clebsch.h>

#include "../tools/reference_tensor_product.c"
#include "../tools/tensor_product_problems.h"

enum { MAX_DEVICES = 16, MOST = 64, LARGEST_Z = 4096 };

#define OK(ctx, call)                                  \
  do {                                                 \
    clb_status s_ = (call);                            \
    if (s_) fail_msg("%s: %s", #call, clb_error(ctx)); \
  } while (0)

/* ---- products ---- */

/* Channel-wise by its filter, or by its output and paths; path by path: two into one output, with and without weights. */
static const clb_instruction tangled[] = {{2, 2, 1, CLB_UVU, 1, 0.5}, {0, 0, 0, CLB_UVU, 0, 1},   {1, 1, 0, CLB_UVU, 1, 2}, {1, 0, 1, CLB_UVU, 1, 1},
                                          {2, 2, 1, CLB_UVU, 0, 1.5}, {2, 2, 3, CLB_UVU, 1, 1}, {0, 1, 1, CLB_UVU, 1, 1}};
static const clb_instruction weightless[] = {{0, 0, 0, CLB_UVU, 0, 1}, {0, 1, 1, CLB_UVU, 0, 1}, {1, 1, 0, CLB_UVU, 0, 1}, {1, 2, 1, CLB_UVU, 0, 1}};

static const struct {
  const char *x, *y, *filter, *z;
  const clb_instruction *instructions;
  int n;
  clb_layout layout_x, layout_y, layout_z;
} products[] = {
    {"16x0e+8x1o+5x2e", SH3, SH3, NULL, NULL, 0, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL},
    {"3x0e+7x1o+3x1e+1x2o", SH2, BOTH2("1"), NULL, NULL, 0, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR},
    {"32x2e", "3o", "3o", NULL, NULL, 0, CLB_IR_MUL, CLB_MUL_IR, CLB_IR_MUL},
    {"5x0e+5x1o+5x1o+2x3o", SH2, NULL, "5x0e+5x1o+3x2e+5x3o", tangled, 7, CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL},
    {"7x0e+7x1o", SH2, NULL, "7x0e+7x1o", weightless, 4, CLB_IR_MUL, CLB_IR_MUL, CLB_MUL_IR},
    {"128x0e+128x1o+128x2e", SH3, SH3, NULL, NULL, 0, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL}, /* mace-large: backward only */
};
enum { FIRST, MIXED, ONE_PATH, TANGLED, WEIGHTLESS, MACE_LARGE, PRODUCTS, SMALL = MACE_LARGE };

/* One of them on one device in f64; made when first asked for, since compiling takes the time. */
typedef struct {
  clb_op *op;
  reference_product *reference;
  char z[LARGEST_Z];
  clb_instruction instructions[MOST];
  int n, width[4]; /* of x, y, w and z */
} product;
enum { X, Y, W, Z };

static struct device {
  char name[64];
  clb_context *ctx;
  product *made[PRODUCTS];
} devices[MAX_DEVICES];
static int n_devices;

static void add_device(const clb_device_info *info, void *user) {
  (void)user;
  if (info->runs && info->f64 && n_devices < MAX_DEVICES) snprintf(devices[n_devices++].name, sizeof devices[0].name, "%s", info->name);
}

static clb_tensor_product_desc describe(struct device *d, int i, product *p) {
  clb_tensor_product_desc desc = {.irreps_x = products[i].x, .irreps_y = products[i].y, .irreps_z = products[i].z, .instructions = products[i].instructions,
                                  .n_instructions = products[i].n, .layout_x = products[i].layout_x, .layout_y = products[i].layout_y, .layout_z = products[i].layout_z,
                                  .storage = CLB_F64, .arithmetic = CLB_F64, .passes = i == MACE_LARGE ? CLB_PASS_BIT(CLB_BACKWARD) : 7};
  p->n = products[i].n;
  if (!products[i].filter) return desc;
  OK(d->ctx, clb_channel_wise(d->ctx, products[i].x, products[i].y, products[i].filter, p->z, sizeof p->z, p->instructions, MOST, &p->n));
  desc.irreps_z = p->z;
  desc.instructions = p->instructions;
  desc.n_instructions = p->n;
  return desc;
}

static product *get(struct device *d, int i) {
  if (!d->ctx) OK(d->ctx, clb_context_create(d->name, &d->ctx));
  if (d->made[i]) return d->made[i];
  product *p = d->made[i] = calloc(1, sizeof *p);
  assert_non_null(p);
  clb_tensor_product_desc desc = describe(d, i, p);
  OK(d->ctx, clb_tensor_product_create(d->ctx, &desc, &p->op));
  p->reference = reference_product_create(&desc);
  assert_non_null(p->reference);
  clb_tensor_product_sizes of_reference = reference_product_sizes(p->reference), s;
  OK(d->ctx, clb_tensor_product_measure(d->ctx, &desc, &s));
  assert_true(s.x == of_reference.x && s.y == of_reference.y && s.z == of_reference.z && s.w == of_reference.w);
  p->width[X] = (int)s.x, p->width[Y] = (int)s.y, p->width[W] = (int)s.w, p->width[Z] = (int)s.z;
  return p;
}

static int forget_all(void **state) {
  (void)state;
  for (int d = 0; d < n_devices; d++) {
    for (int i = 0; i < PRODUCTS; i++) {
      if (!devices[d].made[i]) continue;
      clb_op_destroy(&devices[d].made[i]->op);
      reference_product_destroy(devices[d].made[i]->reference);
      free(devices[d].made[i]);
    }
    clb_context_destroy(&devices[d].ctx);
  }
  return 0;
}

/* ---- running ---- */

/* Arrays of a pass: inputs, then outputs, by whose width they have. */
static const int n_inputs[] = {3, 4, 7}, n_outputs[] = {1, 3, 4};
static const int input_kind[] = {X, Y, W, Z, X, Y, W};
static int output_kind(clb_pass pass, int i) { return pass == CLB_FORWARD ? Z : i; }

enum { MAX_ARRAYS = 11 };
typedef struct {
  double *in[7], *out[4];
} arrays;

static double *numbers(size_t n) {
  double *x = malloc(8 * (n + 1));
  assert_non_null(x);
  return x;
}

/* Random inputs; room for outputs. */
static arrays make(const product *p, int rows, uint64_t seed) {
  arrays a;
  for (int i = 0; i < 7; i++) {
    int n = rows * p->width[input_kind[i]];
    a.in[i] = numbers((size_t)n);
    for (int j = 0; j < n; j++) a.in[i][j] = test_random(&seed);
  }
  for (int i = 0; i < 4; i++) a.out[i] = numbers((size_t)(rows * p->width[i]));
  return a;
}

static void drop(arrays *a) {
  for (int i = 0; i < 7; i++) free(a->in[i]);
  for (int i = 0; i < 4; i++) free(a->out[i]);
}

static clb_status call(clb_op *op, clb_pass pass, int64_t n, const clb_rows *r) {
  if (pass == CLB_FORWARD) return clb_tensor_product_forward(op, n, r[0], r[1], r[2], r[3]);
  if (pass == CLB_BACKWARD) return clb_tensor_product_backward(op, n, r[0], r[1], r[2], r[3], r[4], r[5], r[6]);
  return clb_tensor_product_double_backward(op, n, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10]);
}

/* Runs one pass on dense rows.  Outputs hold NaN before; behind their rows lies one more that must stay. */
static void run(struct device *d, const product *p, clb_pass pass, int rows, const arrays *a) {
  clb_rows r[MAX_ARRAYS];
  int inputs = n_inputs[pass], all = inputs + n_outputs[pass];
  for (int i = 0; i < all; i++) {
    int width = p->width[i < inputs ? input_kind[i] : output_kind(pass, i - inputs)];
    size_t bytes = 8 * (size_t)(rows * width), room = 8 * (size_t)width;
    r[i] = (clb_rows){.stride = CLB_DENSE};
    if (!width) continue; /* no weights: no buffer */
    double *filled = numbers((size_t)((rows + 1) * width));
    for (int j = 0; j < (rows + 1) * width; j++) filled[j] = NAN;
    if (i < inputs) memcpy(filled, a->in[i], bytes);
    OK(d->ctx, clb_buffer_create(d->ctx, bytes + room, &r[i].buffer));
    OK(d->ctx, clb_buffer_write(r[i].buffer, 0, filled, bytes + room));
    free(filled);
  }
  OK(d->ctx, call(p->op, pass, rows, r));
  for (int i = 0; i < all; i++) {
    int width = p->width[i < inputs ? input_kind[i] : output_kind(pass, i - inputs)];
    if (i >= inputs && width) {
      double *behind = numbers((size_t)width);
      if (rows) OK(d->ctx, clb_buffer_read(r[i].buffer, 0, a->out[output_kind(pass, i - inputs)], 8 * (size_t)(rows * width)));
      OK(d->ctx, clb_buffer_read(r[i].buffer, 8 * (uint64_t)(rows * width), behind, 8 * (size_t)width));
      for (int j = 0; j < width; j++) assert_true(isnan(behind[j]));
      free(behind);
    }
    clb_buffer_destroy(&r[i].buffer);
  }
}

static double dot(const double *a, const double *b, int n, double *size) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * b[i], *size += fabs(a[i] * b[i]);
  return sum;
}

/* ---- the 3j symbols that the reference is made of ---- */

static double symbol[25 * 25 * 25];

static void golden_3j(void **state) {
  (void)state;
  char file[4096];
  int seen = 0, total = 0, l1, l2, l3, i, j, k;
  double want;
  snprintf(file, sizeof file, "%s/golden_w3j_lmax4.txt", getenv("CLB_TEST_DATA"));
  FILE *f = fopen(file, "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "#%*[^\n]"), 0);
  while (fscanf(f, "%d %d %d %d %d %d %lf", &l1, &l2, &l3, &i, &j, &k, &want) == 7) {
    reference_3j(l1, l2, l3, symbol);
    assert_true(fabs(symbol[(i * (2 * l2 + 1) + j) * (2 * l3 + 1) + k] - want) <= 4e-16);
    seen++;
  }
  fclose(f);
  for (l1 = 0; l1 <= 4; l1++)
    for (l2 = 0; l2 <= 4; l2++)
      for (l3 = abs(l1 - l2); l3 <= l1 + l2 && l3 <= 4; l3++) {
        reference_3j(l1, l2, l3, symbol);
        for (i = 0; i < (2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1); i++) total += symbol[i] != 0;
      }
  assert_true(seen == 2052 && total == 2052);
}

/* sum_ij C_ijk C_ijm = delta_km / (2 l3 + 1), where the factorials are largest. */
static void large_3j(void **state) {
  (void)state;
  static const int cases[][3] = {{12, 12, 12}, {12, 12, 1}, {12, 7, 10}, {6, 6, 12}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    int n3 = 2 * cases[c][2] + 1, pairs = (2 * cases[c][0] + 1) * (2 * cases[c][1] + 1);
    reference_3j(cases[c][0], cases[c][1], cases[c][2], symbol);
    for (int k = 0; k < n3; k++)
      for (int m = 0; m < n3; m++) {
        double sum = 0;
        for (int i = 0; i < pairs; i++) sum += symbol[i * n3 + k] * symbol[i * n3 + m];
        assert_true(fabs(sum - (k == m ? 1. / n3 : 0)) <= 1e-14);
      }
  }
}

/* ---- laws ---- */

/* <g, T(x,y,w)> = <x, B_x> = <y, B_y> = <w, B_w>; the last where every path has a weight. */
static void adjoint(void **state) {
  enum { N = 33 };
  struct device *d = *state;
  for (int i = 0; i < SMALL; i++) {
    const product *p = get(d, i);
    arrays a = make(p, N, 1);
    run(d, p, CLB_FORWARD, N, &a);
    run(d, p, CLB_BACKWARD, N, &a);
    for (int r = 0; r < N; r++) {
      double size[4] = {0}, form[4];
      for (int k = 0; k < 4; k++) {
        int n = p->width[k];
        form[k] = dot(a.in[k] + r * n, a.out[k] + r * n, n, &size[k]); /* in[Z]: g, out[Z]: z */
      }
      for (int k = 0; k < 3; k++)
        if (k != W || products[i].filter) assert_true(fabs(form[k] - form[Z]) <= 1e-13 * (size[k] + size[Z]));
      assert_true(size[Z] > 0);
    }
    drop(&a);
  }
}

/* s = <a, B_x> + <b, B_y> + <c, B_w> is linear in each of x, y, w, g, so that a central difference is exact at any step. */
static void double_backward_is_the_derivative(void **state) {
  enum { N = 9 };
  struct device *d = *state;
  for (int i = 0; i < SMALL; i++) {
    const product *p = get(d, i);
    arrays at = make(p, N, 2), to = make(p, N, 3);
    run(d, p, CLB_DOUBLE_BACKWARD, N, &at);
    for (int k = 0; k < 4; k++) { /* k: x, y, w, g moves by +-h */
      int n = p->width[k];
      double s[2][N], size[N] = {0}, *kept = at.in[k];
      double *wanted[4];
      for (int o = 0; o < 4; o++) wanted[o] = at.out[o], at.out[o] = to.out[o];
      for (int sign = 0; sign < 2; sign++) {
        at.in[k] = numbers((size_t)(N * n));
        for (int j = 0; j < N * n; j++) at.in[k][j] = kept[j] + (sign ? -1 : 1) * to.in[k][j];
        run(d, p, CLB_BACKWARD, N, &at);
        for (int r = 0; r < N; r++) {
          s[sign][r] = 0;
          for (int o = 0; o < 3; o++) s[sign][r] += dot(at.in[4 + o] + r * p->width[o], at.out[o] + r * p->width[o], p->width[o], &size[r]);
        }
        free(at.in[k]);
      }
      at.in[k] = kept;
      for (int o = 0; o < 4; o++) at.out[o] = wanted[o];
      for (int r = 0; r < N; r++) {
        double along = dot(at.out[k] + r * n, to.in[k] + r * n, n, &size[r]);
        assert_true(fabs((s[0][r] - s[1][r]) / 2 - along) <= 1e-13 * size[r]);
      }
    }
    drop(&at);
    drop(&to);
  }
}

static void compare(const product *p, clb_pass pass, int rows, const arrays *a) {
  double *want[4] = {0}, *scale[4] = {0};
  for (int o = 0; o < n_outputs[pass]; o++) {
    want[o] = numbers((size_t)(rows * p->width[output_kind(pass, o)]));
    scale[o] = numbers((size_t)(rows * p->width[output_kind(pass, o)]));
  }
  reference_product_run(p->reference, pass, rows, (const double *const *)a->in, want, scale);
  for (int o = 0; o < n_outputs[pass]; o++) {
    int kind = output_kind(pass, o);
    for (int j = 0; j < rows * p->width[kind]; j++)
      if (!(fabs(a->out[kind][j] - want[o][j]) <= 1e-13 * scale[o][j])) fail_msg("pass %d, output %d, element %d: %g, not %g", pass, o, j, a->out[kind][j], want[o][j]);
    free(want[o]);
    free(scale[o]);
  }
}

/* No row, one, some: what plain sums say, and not a bit different when done again. */
static void plain_sums(void **state) {
  static const int rows[] = {0, 1, 33, 70};
  struct device *d = *state;
  for (int i = 0; i < SMALL; i++)
    for (int pass = 0; pass < 3; pass++)
      for (size_t t = 0; t < sizeof rows / sizeof *rows; t++) {
        const product *p = get(d, i);
        arrays a = make(p, rows[t], 4), again = make(p, rows[t], 4);
        run(d, p, (clb_pass)pass, rows[t], &a);
        compare(p, (clb_pass)pass, rows[t], &a);
        run(d, p, (clb_pass)pass, rows[t], &again);
        for (int o = 0; o < n_outputs[pass]; o++) {
          int kind = output_kind((clb_pass)pass, o);
          assert_memory_equal(a.out[kind], again.out[kind], 8 * (size_t)(rows[t] * p->width[kind]));
        }
        drop(&a);
        drop(&again);
      }
}

/* Row r has a gradient in the output of path r alone: only that path's weights may have one, and it must be right. */
static void one_path_at_a_time(void **state) {
  static const int which[] = {ONE_PATH, MACE_LARGE};
  struct device *d = *state;
  for (int t = 0; t < 2; t++) {
    const product *p = get(d, which[t]);
    arrays a = make(p, p->n, 5);
    reference_irreps *z = calloc(1, sizeof *z);
    assert_true(z && reference_irreps_read(p->z, z));
    for (int r = 0; r < p->n; r++)
      for (int j = 0; j < p->width[Z]; j++) {
        int from = z->term[r].at, n = z->term[r].mul * (2 * z->term[r].l + 1);
        if (j < from || j >= from + n) a.in[Z][r * p->width[Z] + j] = 0;
      }
    run(d, p, CLB_BACKWARD, p->n, &a);
    compare(p, CLB_BACKWARD, p->n, &a);
    for (int r = 0, at = 0; r < p->n; r++, at += z->term[r - 1].mul)
      for (int j = 0; j < p->width[W]; j++) assert_true((a.out[W][r * p->width[W] + j] != 0) == (j >= at && j < at + z->term[r].mul));
    free(z);
    drop(&a);
  }
}

/* ---- rotations and inversion ----
   A term of x or y is a multiple of Y_l(p), times a pseudoscalar where its parity is not (-1)^l.  Each term of T(x, y, w), contracted with
   Y_l of another point, must stay when all points turn by R or by -R, under which the pseudoscalars change sign. */

enum { L = 3, HARMONICS = (L + 1) * (L + 1), MOVES = 3, POINTS = 64 };

static void move(int how, const double *x, double *out) { /* 0: not; 1: about (1, 2, -2)/3 by 1 radian; 2: that and inversion */
  const double a[3] = {1. / 3, 2. / 3, -2. / 3}, c = cos(1), s = sin(1);
  double d = a[0] * x[0] + a[1] * x[1] + a[2] * x[2];
  for (int k = 0; k < 3; k++) {
    int i = (k + 1) % 3, j = (k + 2) % 3;
    out[k] = how ? (how == 2 ? -1 : 1) * (c * x[k] + s * (a[i] * x[j] - a[j] * x[i]) + (1 - c) * d * a[k]) : x[k];
  }
}

static void harmonics(struct device *d, double (*y)[POINTS][HARMONICS]) {
  static const int degrees[] = {0, 1, 2, 3};
  clb_spherical_harmonics_desc desc = {.degrees = degrees, .n_degrees = L + 1, .storage = CLB_F64, .arithmetic = CLB_F64, .passes = CLB_PASS_BIT(CLB_FORWARD)};
  clb_op *op;
  clb_rows in = {.stride = CLB_DENSE}, out = in;
  double points[MOVES][POINTS][3], p[3];
  uint64_t seed = 6;
  for (int i = 0; i < POINTS; i++) {
    for (int k = 0; k < 3; k++) p[k] = test_random(&seed);
    for (int how = 0; how < MOVES; how++) move(how, p, points[how][i]);
  }
  OK(d->ctx, clb_spherical_harmonics_create(d->ctx, &desc, &op));
  OK(d->ctx, clb_buffer_create(d->ctx, sizeof points, &in.buffer));
  OK(d->ctx, clb_buffer_create(d->ctx, MOVES * sizeof *y, &out.buffer));
  OK(d->ctx, clb_buffer_write(in.buffer, 0, points, sizeof points));
  OK(d->ctx, clb_spherical_harmonics_forward(op, MOVES * POINTS, in, out));
  OK(d->ctx, clb_buffer_read(out.buffer, 0, y, MOVES * sizeof *y));
  clb_buffer_destroy(&in.buffer);
  clb_buffer_destroy(&out.buffer);
  clb_op_destroy(&op);
}

/* Element (u, m) of a term is that of point (first + u) mod POINTS. */
static double component(double (*y)[POINTS][HARMONICS], int how, const reference_irreps *irreps, int t, int point, int m) {
  int l = irreps->term[t].l, pseudo = irreps->term[t].parity != (l % 2 ? -1 : 1);
  return y[how][point % POINTS][l * l + m] * (pseudo && how == 2 ? -1 : 1);
}

static void spread(double (*y)[POINTS][HARMONICS], int how, const reference_irreps *irreps, clb_layout layout, int first, double *out) {
  for (int t = 0; t < irreps->n; t++) {
    place at = place_of(irreps, t, layout);
    for (int u = 0; u < irreps->term[t].mul; u++)
      for (int m = 0; m < 2 * irreps->term[t].l + 1; m++) out[at.at + u * at.stride_u + m * at.stride_m] = component(y, how, irreps, t, first + 11 * t + u, m);
  }
}

static void equivariance(void **state) {
  static double y[MOVES][POINTS][HARMONICS];
  static const int which[] = {FIRST, MIXED, ONE_PATH};
  struct device *d = *state;
  for (int t = 0; t < 3; t++) {
    const product *p = get(d, which[t]);
    const reference_product *r = p->reference;
    arrays a = make(p, MOVES, 7);
    harmonics(d, y);
    for (int how = 0; how < MOVES; how++) {
      spread(y, how, &r->x, r->layout_x, 0, a.in[X] + how * p->width[X]);
      spread(y, how, &r->y, r->layout_y, 40, a.in[Y] + how * p->width[Y]);
      memcpy(a.in[W] + how * p->width[W], a.in[W], 8 * (size_t)p->width[W]);
    }
    run(d, p, CLB_FORWARD, MOVES, &a);
    for (int o = 0; o < r->z.n; o++) {
      place at = place_of(&r->z, o, r->layout_z);
      for (int u = 0; u < r->z.term[o].mul; u++) {
        double s[MOVES] = {0}, size = 0;
        for (int how = 0; how < MOVES; how++)
          for (int m = 0; m < 2 * r->z.term[o].l + 1; m++) {
            double here = a.out[Z][how * p->width[Z] + at.at + u * at.stride_u + m * at.stride_m] * component(y, how, &r->z, o, 50 + u, m);
            s[how] += here;
            size += fabs(here);
          }
        assert_true(size > 0 && fabs(s[1] - s[0]) <= 1e-13 * (1 + size) && fabs(s[2] - s[0]) <= 1e-13 * (1 + size));
      }
    }
    drop(&a);
  }
}

/* ---- what the calls refuse ---- */

static void refuses(void **state) {
  struct device *d = *state;
  const product *p = get(d, WEIGHTLESS), *q = get(d, FIRST);
  clb_context *ctx = d->ctx;
  clb_rows none = {.stride = CLB_DENSE}, some = none;
  OK(ctx, clb_buffer_create(ctx, 65536, &some.buffer));
#define FAILS(status, says, call)                                                              \
  do {                                                                                         \
    assert_int_equal(call, status);                                                            \
    if (!strstr(clb_error(ctx), says)) fail_msg("instead of \"%s\": %s", says, clb_error(ctx)); \
  } while (0)
  FAILS(CLB_ERROR_ARGUMENT, "buffer of z is NULL", clb_tensor_product_forward(p->op, 2, some, some, none, none));
  FAILS(CLB_ERROR_ARGUMENT, "buffer of w is NULL", clb_tensor_product_forward(q->op, 2, some, some, none, some));
  FAILS(CLB_ERROR_ARGUMENT, "do not fit", clb_tensor_product_forward(q->op, 1000, some, some, some, some));
  FAILS(CLB_ERROR_ARGUMENT, "stride of g_w", clb_tensor_product_backward(q->op, 2, some, some, some, some, some, some, (clb_rows){some.buffer, 0, 0}));
  FAILS(CLB_ERROR_ARGUMENT, "buffer of d_g", clb_tensor_product_double_backward(p->op, 2, some, some, none, some, some, some, none, some, some, none, none));
  FAILS(CLB_ERROR_ARGUMENT, "not spherical_harmonics", clb_spherical_harmonics_forward(p->op, 2, some, some));
  FAILS(CLB_ERROR_ARGUMENT, "double backward", clb_op_counts(get(d, MACE_LARGE)->op, CLB_DOUBLE_BACKWARD, &(clb_counts){0}));
  assert_int_equal(clb_tensor_product_forward(NULL, 1, some, some, some, some), CLB_ERROR_ARGUMENT);
  clb_op *op = q->op;
  clb_tensor_product_desc desc = {.irreps_x = "1x0e", .irreps_y = "0e", .irreps_z = "0e", .instructions = weightless, .n_instructions = 1, .storage = CLB_F64};
  FAILS(CLB_ERROR_ARGUMENT, "passes", clb_tensor_product_create(ctx, &desc, &op));
  assert_null(op);
  FAILS(CLB_ERROR_ARGUMENT, "desc is NULL", clb_tensor_product_create(ctx, NULL, &op));
  FAILS(CLB_ERROR_ARGUMENT, "op is NULL", clb_tensor_product_create(ctx, &desc, NULL));
  FAILS(CLB_ERROR_ARGUMENT, "sizes is NULL", clb_tensor_product_measure(ctx, &desc, NULL));
  desc.irreps_y = "2x0e";
  desc.passes = 1;
  FAILS(CLB_ERROR_UNSUPPORTED, "multiplicity 2", clb_tensor_product_create(ctx, &desc, &op));
  assert_int_equal(clb_tensor_product_create(NULL, &desc, &op), CLB_ERROR_ARGUMENT);
  clb_buffer_destroy(&some.buffer);
}

/* Each operand is loaded once and each result stored once, but for lanes without a channel. */
static void counts(void **state) {
  struct device *d = *state;
  const product *p = get(d, MACE_LARGE);
  int in = p->width[X] + p->width[Y] + p->width[W], all = in + p->width[Z];
  clb_counts c;
  OK(d->ctx, clb_op_counts(p->op, CLB_BACKWARD, &c));
  assert_true(c.loads >= all && c.loads <= 1.1 * all && c.stores >= in && c.stores <= 1.1 * in);
  assert_true(c.bytes_loaded == 8 * c.loads && c.bytes_stored == 8 * c.stores);
  assert_true(c.flops > 100000 && c.flops < 248000); /* fewer than without sharing of products */
}

int main(void) {
  static void (*const tests[])(void **) = {adjoint, double_backward_is_the_derivative, plain_sums, one_path_at_a_time, equivariance, refuses, counts};
  static const char *const names[] = {"adjoint", "double_backward", "plain_sums", "one_path_at_a_time", "equivariance", "refuses", "counts"};
  enum { TESTS = sizeof names / sizeof *names };
  static struct CMUnitTest all[MAX_DEVICES * TESTS + 2] = {{"golden_3j", golden_3j, NULL, NULL, NULL}, {"large_3j", large_3j, NULL, NULL, NULL}};
  static char labels[MAX_DEVICES * TESTS][96];
  int n = 0;
  clb_devices(add_device, NULL);
  for (int d = 0; d < n_devices; d++)
    for (int t = 0; t < TESTS; t++, n++) {
      snprintf(labels[n], sizeof labels[n], "tensor_product_%s[%s]", names[t], devices[d].name);
      all[n + 2] = (struct CMUnitTest){labels[n], tests[t], NULL, NULL, &devices[d]};
    }
  return _cmocka_run_group_tests("tensor_product", all, (size_t)n + 2, NULL, forget_all);
}
