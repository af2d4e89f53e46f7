/* tests/tools/test_reference_product.c - the tensor product that `clebsch check` compares with:
   e3nn's own numbers, exact differences, adjoints. */
#include "tests/test.h"

#include <math.h>

#include "tools/reference/reference_irreps.c"
#include "tools/reference/reference_tensor_product.c"

static double *numbers(int64_t n) {
  double *x = calloc((size_t)n + 1, sizeof *x);
  assert_non_null(x);
  return x;
}

/* ---- golden ---- */

typedef struct {
  clb_tensor_product_desc desc;
  char irreps[3][256];
  clb_instruction instructions[16];
} golden_product;

static FILE *golden_file(void) {
  char name[4096];
  assert_non_null(getenv("CLB_TEST_DATA"));
  assert_in_range(
      snprintf(name, sizeof name, "%s/golden_tensor_product.txt", getenv("CLB_TEST_DATA")), 1,
      sizeof name - 1);
  FILE *f = fopen(name, "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "#%*[^\n] "), 0);
  return f;
}

static int among(const char *word, const char *const names[3]) {
  for (int i = 0; i < 3; i++)
    if (!strcmp(word, names[i])) return i;
  fail_msg("'%s'", word);
  return -1;
}

static int read_instruction(FILE *f, clb_instruction *to, int with_path_weight) {
  int mode;
  if (fscanf(f, " I %d %d %d %d %d", &to->in1, &to->in2, &to->out, &mode, &to->has_weight) != 5)
    return 0;
  to->mode = (clb_mode)mode;
  to->path_weight = 1;
  assert_true(!with_path_weight || fscanf(f, "%lf", &to->path_weight) == 1);
  return 1;
}

static int read_product(FILE *f, golden_product *p) {
  char irrep[16], rule[16];
  if (fscanf(f, " P %255[^|]|%255[^|]|%255[^ ] %15s %15s", p->irreps[0], p->irreps[1], p->irreps[2],
             irrep, rule) != 5)
    return 0;
  p->desc = (clb_tensor_product_desc){.irreps_x = p->irreps[0],
                                      .irreps_y = p->irreps[1],
                                      .irreps_z = p->irreps[2],
                                      .instructions = p->instructions};
  p->desc.irrep_normalization =
      (clb_irrep_normalization)among(irrep, (const char *[]){"component", "norm", "none"});
  p->desc.path_normalization =
      (clb_path_normalization)among(rule, (const char *[]){"element", "path", "none"});
  while (read_instruction(f, &p->instructions[p->desc.n_instructions], 1))
    assert_true(++p->desc.n_instructions < 16);
  return 1;
}

static void read_vector(FILE *f, const char *name, double *to, int64_t n) {
  char word[8];
  if (fscanf(f, " %7s", word) != 1 || strcmp(word, name)) fail_msg("%s, not %s", word, name);
  for (int64_t i = 0; i < n; i++) assert_int_equal(fscanf(f, "%lf", to + i), 1);
}

static int64_t width_like(const reference_product *p, int like) {
  clb_tensor_product_sizes s = reference_product_sizes(p);
  return like == CLB_OPERAND_X   ? s.x
         : like == CLB_OPERAND_Y ? s.y
         : like == CLB_OPERAND_W ? s.w
                                 : s.z;
}

static void golden(void **state) {
  (void)state;
  FILE *f = golden_file();
  golden_product g;
  int products = 0;
  for (; read_product(f, &g); products++) {
    reference_product *p = reference_product_create(&g.desc);
    assert_non_null(p);
    double *in[REFERENCE_MAX_INPUTS];
    for (int i = 0, like; i < REFERENCE_MAX_INPUTS; i++) {
      const char *name = reference_operand(CLB_TRIPLE_BACKWARD, i, &like);
      in[i] = numbers(width_like(p, like));
      read_vector(f, name, in[i], width_like(p, like));
    }
    for (clb_pass pass = CLB_FORWARD; pass <= CLB_TRIPLE_BACKWARD; pass++)
      for (int o = 0, like; o < reference_outputs(pass); o++) {
        const char *name = reference_operand(pass, reference_inputs(pass) + o, &like);
        int64_t n = width_like(p, like);
        double *want = numbers(n), *got = numbers(n), *scale = numbers(n),
               *out[REFERENCE_MAX_OUTPUTS] = {[0] = NULL}, *scales[REFERENCE_MAX_OUTPUTS];
        out[o] = got, scales[o] = scale;
        read_vector(f, name, want, n);
        reference_product_run(p, pass, 1, (const double *const *)in, out, scales);
        for (int64_t i = 0; i < n; i++)
          if (!(fabs(got[i] - want[i]) <= 2e-15 * scale[i]))
            fail_msg("product %d, %s[%d]: %.17g, not %.17g", products, name, (int)i, got[i],
                     want[i]);
        free(want), free(got), free(scale);
      }
    for (int i = 0; i < REFERENCE_MAX_INPUTS; i++) free(in[i]);
    reference_product_destroy(p);
  }
  fclose(f);
  assert_int_equal(products, 9);
}

static void same_irreps(const char *a, const char *b) {
  static reference_irreps x, y;
  assert_true(reference_irreps_read(a, &x) && reference_irreps_read(b, &y));
  assert_memory_equal(&x, &y, sizeof x);
}

static void named(void **state) {
  (void)state;
  FILE *f = golden_file();
  static clb_instructions found;
  int products = 0;
  for (int c = fgetc(f); c != EOF; c = fgetc(f)) { /* at the start of a line */
    char name[16], text[6][256] = {{0}};
    clb_instruction want;
    if (c != 'N') {
      assert_int_equal(fscanf(f, "%*[^\n] "), 0);
      continue;
    }
    assert_int_equal(fscanf(f, " %15s ", name), 1);
    for (int i = 0; i < 6; i++)
      assert_true(fscanf(f, "%255[^|\n]", text[i]) >= 0 && fgetc(f) == (i < 5 ? '|' : '\n'));
    if (!strcmp(name, "full")) assert_true(reference_full(text[0], text[1], text[2], &found));
    else if (!strcmp(name, "elementwise"))
      assert_true(reference_elementwise(text[0], text[1], text[2], &found));
    else assert_true(reference_fully_connected(text[0], text[1], text[2], &found));
    same_irreps(found.irreps_x, text[3]);
    same_irreps(found.irreps_y, text[4]);
    same_irreps(found.irreps_z, text[5]);
    int n = 0;
    for (; read_instruction(f, &want, 0); n++) {
      const clb_instruction *got = &found.instructions[n];
      assert_true(n < found.n_instructions);
      if (got->in1 != want.in1 || got->in2 != want.in2 || got->out != want.out ||
          got->mode != want.mode || got->has_weight != want.has_weight || got->path_weight != 1)
        fail_msg("%s %s (x) %s: instruction %d", name, text[0], text[1], n);
    }
    assert_int_equal(n, found.n_instructions);
    products++;
  }
  fclose(f);
  assert_int_equal(products, 5);
}

static void channel_wise(void **state) {
  (void)state;
  static clb_instructions sorted, found;
  assert_true(reference_channel_wise("2x0e+3x1o", "0e+1o", "0e+1o+1e+0o", CLB_SORTED, &sorted));
  assert_true(reference_channel_wise("2x0e+3x1o", "0e+1o", "0e+1o+1e+0o", CLB_AS_FOUND, &found));
  same_irreps(sorted.irreps_z, "2x0e+3x0e+2x1o+3x1o+3x1e");
  same_irreps(found.irreps_z, sorted.irreps_z);
  static const int in1[2][5] = {{0, 1, 0, 1, 1}, {0, 0, 1, 1, 1}},
                   in2[2][5] = {{0, 1, 1, 0, 1}, {0, 1, 0, 1, 1}},
                   out[2][5] = {{0, 1, 2, 3, 4}, {0, 2, 3, 1, 4}};
  for (int order = 0; order < 2; order++) {
    const clb_instructions *c = order ? &found : &sorted;
    assert_int_equal(c->n_instructions, 5);
    for (int i = 0; i < 5; i++) {
      const clb_instruction *q = &c->instructions[i];
      assert_true(q->in1 == in1[order][i] && q->in2 == in2[order][i] && q->out == out[order][i] &&
                  q->mode == CLB_UVU && q->has_weight && q->path_weight == 1);
    }
  }
  assert_false(reference_channel_wise("2x0f", "0e", "0e", CLB_SORTED, &found));
  assert_false(reference_elementwise("2x0e", "3x0e", NULL, &found));
}

/* ---- laws ---- */

/* Each mode with 3 channels where they must be equal, all of them in one product, and one without
   weights. */
#define P(i, j, k, m, weight)                                                                      \
  { i, j, k, m, weight, 1.5 }
static const clb_instruction uvw[] = {P(0, 0, 0, CLB_UVW, 1), P(1, 1, 1, CLB_UVW, 1)},
                             uvu[] = {P(0, 0, 0, CLB_UVU, 1), P(1, 0, 1, CLB_UVU, 0)},
                             uvv[] = {P(0, 0, 0, CLB_UVV, 1), P(1, 0, 1, CLB_UVV, 0)},
                             uuw[] = {P(0, 0, 0, CLB_UUW, 1), P(0, 0, 1, CLB_UUW, 0)},
                             uuu[] = {P(0, 0, 0, CLB_UUU, 1), P(0, 0, 1, CLB_UUU, 0)},
                             uvuv[] = {P(0, 0, 0, CLB_UVUV, 1), P(1, 0, 1, CLB_UVUV, 0)},
                             uvu_half[] = {P(0, 0, 0, CLB_UVU_HALF, 1),
                                           P(1, 1, 1, CLB_UVU_HALF, 0)},
                             uvw_half[] = {P(0, 0, 0, CLB_UVW_HALF, 1),
                                           P(1, 1, 1, CLB_UVW_HALF, 1)},
                             all[] = {P(0, 0, 0, CLB_UVW, 1),      P(0, 0, 0, CLB_UVU, 1),
                                      P(0, 0, 0, CLB_UVV, 0),      P(0, 0, 0, CLB_UUW, 1),
                                      P(0, 0, 0, CLB_UUU, 1),      P(0, 0, 2, CLB_UVUV, 1),
                                      P(0, 0, 0, CLB_UVU_HALF, 1), P(0, 0, 0, CLB_UVW_HALF, 1),
                                      P(1, 1, 1, CLB_UUU, 1)};
#undef P
#define LAW(x, y, z, q)                                                                            \
  { x, y, z, q, sizeof q / sizeof *q }
static const struct {
  const char *x, *y, *z;
  const clb_instruction *instructions;
  int n;
} laws[] = {LAW("2x1o+1x0e", "3x1o+2x2e", "4x1e+2x2e+3x3o", uvw),
            LAW("3x1o+2x2e", "2x1o", "3x0e+2x1o", uvu),
            LAW("3x1o+2x2e", "2x1o", "2x0e+2x1o", uvv),
            LAW("3x2e", "3x1o", "2x1o+1x3o", uuw),
            LAW("3x2e", "3x1o", "3x1o+3x3o", uuu),
            LAW("3x1o+2x0e", "2x1o", "6x1e+4x1o", uvuv),
            LAW("3x1o+2x0e", "3x1o+2x2e", "3x2e+1x2e", uvu_half),
            LAW("3x1o+2x0e", "3x1o+2x2e", "4x0e+2x2e", uvw_half),
            LAW("3x1o+3x2e", "3x1o+3x2e", "3x1e+3x4e+9x0e+1x0o", all)};
enum { LAWS = sizeof laws / sizeof *laws, ROWS = 3 };

typedef struct {
  reference_product *product;
  double *in[REFERENCE_MAX_INPUTS], *out[REFERENCE_MAX_OUTPUTS], *scale[REFERENCE_MAX_OUTPUTS];
} made;

static clb_tensor_product_desc describe(int law, int shared, clb_layout layout) {
  return (clb_tensor_product_desc){.irreps_x = laws[law].x,
                                   .irreps_y = laws[law].y,
                                   .irreps_z = laws[law].z,
                                   .instructions = laws[law].instructions,
                                   .n_instructions = laws[law].n,
                                   .layout_x = layout,
                                   .layout_y = layout,
                                   .layout_z = layout,
                                   .shared_weights = shared};
}

static int64_t size_of(const reference_product *p, int like, int shared) {
  return width_like(p, like) * (shared && like == CLB_OPERAND_W ? 1 : ROWS);
}

static made make(int law, int shared, clb_layout layout, uint64_t seed) {
  clb_tensor_product_desc desc = describe(law, shared, layout);
  made m = {.product = reference_product_create(&desc)};
  assert_non_null(m.product);
  for (int i = 0, like; i < REFERENCE_MAX_INPUTS; i++) {
    reference_operand(CLB_TRIPLE_BACKWARD, i, &like);
    int64_t n = size_of(m.product, like, shared);
    m.in[i] = numbers(n);
    for (int64_t j = 0; j < n; j++) m.in[i][j] = test_random(&seed);
  }
  for (int o = 0; o < REFERENCE_MAX_OUTPUTS; o++) {
    int64_t max = 1024; /* as long as any operand */
    m.out[o] = numbers(max), m.scale[o] = numbers(max);
  }
  return m;
}

static void drop(made *m) {
  reference_product_destroy(m->product);
  for (int i = 0; i < REFERENCE_MAX_INPUTS; i++) free(m->in[i]);
  for (int o = 0; o < REFERENCE_MAX_OUTPUTS; o++) free(m->out[o]), free(m->scale[o]);
}

static double dot(const double *a, const double *b, int64_t n, double *size) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i], *size += fabs(a[i] * b[i]);
  return sum;
}

/* The sum of all outputs of a pass, each times its vector in the next pass; size: of its terms. */
static double paired(made *m, clb_pass pass, int shared, double *size) {
  double sum = 0;
  reference_product_run(m->product, pass, ROWS, (const double *const *)m->in, m->out, m->scale);
  for (int o = 0, like; o < reference_outputs(pass); o++) {
    reference_operand(pass, reference_inputs(pass) + o, &like);
    sum +=
        dot(m->in[reference_inputs(pass) + o], m->out[o], size_of(m->product, like, shared), size);
  }
  return sum;
}

/* That sum is linear in each input, so that a central difference of it is exact at any step; the
   next pass must agree. */
static void differences(int law, int shared, clb_layout layout) {
  made at = make(law, shared, layout, 1), along = make(law, shared, layout, 2);
  for (clb_pass pass = CLB_FORWARD; pass < CLB_TRIPLE_BACKWARD; pass++)
    for (int k = 0, like; k < reference_outputs(pass + 1); k++) {
      reference_operand(pass, k, &like);
      int64_t n = size_of(at.product, like, shared);
      double size = 0, sum[2], *kept = at.in[k], *moved = numbers(n);
      reference_product_run(at.product, pass + 1, ROWS, (const double *const *)at.in, at.out,
                            at.scale);
      double said = dot(at.out[k], along.in[k], n, &size);
      at.in[k] = moved;
      for (int sign = 0; sign < 2; sign++) {
        for (int64_t i = 0; i < n; i++) moved[i] = kept[i] + (sign ? -1 : 1) * along.in[k][i];
        sum[sign] = paired(&at, pass, shared, &size);
      }
      at.in[k] = kept;
      free(moved);
      assert_true(n == 0 || like == CLB_OPERAND_W || size > 1);
      if (!(fabs((sum[0] - sum[1]) / 2 - said) <= 1e-14 * size))
        fail_msg("law %d, pass %d, by operand %d: %g, not %g", law, (int)pass, k, said,
                 (sum[0] - sum[1]) / 2);
    }
  drop(&at);
  drop(&along);
}

static void each_pass_is_the_derivative(void **state) {
  (void)state;
  for (int law = 0; law < LAWS; law++)
    for (int shared = 0; shared < 2; shared++)
      differences(law, shared, shared ? CLB_IR_MUL : CLB_MUL_IR);
}

/* <g, z> = <x, g_x> = <y, g_y> = <w, g_w>, the last without the paths that have no weights: those
   are left out. */
static void adjoint(void **state) {
  (void)state;
  for (int law = 0; law < LAWS; law++)
    for (int shared = 0; shared < 2; shared++) {
      made m = make(law, shared, CLB_IR_MUL, 3);
      int weightless = 0, like;
      for (int i = 0; i < laws[law].n; i++) weightless |= !laws[law].instructions[i].has_weight;
      double size = 0, form = paired(&m, CLB_FORWARD, shared, &size);
      reference_product_run(m.product, CLB_BACKWARD, ROWS, (const double *const *)m.in, m.out,
                            m.scale);
      for (int k = 0; k < 3 - weightless; k++) {
        reference_operand(CLB_BACKWARD, k, &like);
        assert_true(fabs(dot(m.in[k], m.out[k], size_of(m.product, like, shared), &size) - form) <=
                    1e-14 * size);
      }
      assert_true(size > 1);
      drop(&m);
    }
}

/* ---- layouts, sums, absent vectors ---- */

static void relaid(const reference_irreps *irreps, const double *mul_ir, double *ir_mul) {
  for (int t = 0; t < irreps->n; t++)
    for (int u = 0; u < irreps->term[t].mul; u++)
      for (int m = 0; m < 2 * irreps->term[t].l + 1; m++)
        ir_mul[irreps->term[t].at + m * irreps->term[t].mul + u] =
            mul_ir[irreps->term[t].at + u * (2 * irreps->term[t].l + 1) + m];
}

static void layouts(void **state) {
  (void)state;
  for (int law = 0; law < LAWS; law++) {
    made a = make(law, 0, CLB_MUL_IR, 4), b = make(law, 0, CLB_IR_MUL, 4);
    const reference_product *p = a.product;
    double *z = numbers(p->z.dim);
    for (int r = 0; r < ROWS; r++) {
      relaid(&p->x, a.in[0] + r * p->x.dim, b.in[0] + r * p->x.dim);
      relaid(&p->y, a.in[1] + r * p->y.dim, b.in[1] + r * p->y.dim);
    }
    reference_product_run(p, CLB_FORWARD, ROWS, (const double *const *)a.in, a.out, a.scale);
    reference_product_run(b.product, CLB_FORWARD, ROWS, (const double *const *)b.in, b.out,
                          b.scale);
    for (int r = 0; r < ROWS; r++) {
      relaid(&p->z, a.out[0] + r * p->z.dim, z);
      assert_memory_equal(z, b.out[0] + r * p->z.dim, sizeof *z * (size_t)p->z.dim);
    }
    free(z);
    drop(&a);
    drop(&b);
  }
}

/* Absent vectors count as zeros; leaving out an output changes no other. */
static void absent(void **state) {
  (void)state;
  for (int law = 0; law < LAWS; law++)
    for (clb_pass pass = CLB_DOUBLE_BACKWARD; pass <= CLB_TRIPLE_BACKWARD; pass++)
      for (int k = 4; k < reference_inputs(pass); k++) {
        made a = make(law, 0, CLB_IR_MUL, 5), b = make(law, 0, CLB_IR_MUL, 5);
        int like;
        double *kept = b.in[k];
        reference_operand(pass, k, &like);
        memset(a.in[k], 0, sizeof(double) * (size_t)size_of(a.product, like, 0));
        b.in[k] = NULL;
        reference_product_run(a.product, pass, ROWS, (const double *const *)a.in, a.out, a.scale);
        reference_product_run(b.product, pass, ROWS, (const double *const *)b.in,
                              (double *[REFERENCE_MAX_OUTPUTS]){NULL, b.out[1], NULL, b.out[3]},
                              b.scale);
        for (int o = 1; o < 4; o += 2) {
          reference_operand(pass, reference_inputs(pass) + o, &like);
          for (int64_t i = 0; i < size_of(a.product, like, 0); i++)
            assert_true(a.out[o][i] == b.out[o][i] && a.scale[o][i] == b.scale[o][i]);
        }
        b.in[k] = kept;
        drop(&a);
        drop(&b);
      }
}

/* One row of weights: the same numbers as that row given for every row, gradients of it added up.
   Scales are bounds of the results. */
static void shared_weights(void **state) {
  (void)state;
  for (int law = 0; law < LAWS; law++) {
    made one = make(law, 1, CLB_IR_MUL, 6), many = make(law, 0, CLB_IR_MUL, 7);
    int64_t W_ = reference_product_sizes(one.product).w;
    for (int i = 0, like; i < REFERENCE_MAX_INPUTS; i++) {
      reference_operand(CLB_TRIPLE_BACKWARD, i, &like);
      for (int64_t j = 0; j < size_of(many.product, like, 0); j++)
        many.in[i][j] = one.in[i][like == CLB_OPERAND_W ? j % W_ : j];
    }
    reference_product_run(one.product, CLB_TRIPLE_BACKWARD, ROWS, (const double *const *)one.in,
                          one.out, one.scale);
    reference_product_run(many.product, CLB_TRIPLE_BACKWARD, ROWS, (const double *const *)many.in,
                          many.out, many.scale);
    for (int o = 0, like; o < REFERENCE_MAX_OUTPUTS; o++) {
      reference_operand(CLB_TRIPLE_BACKWARD, REFERENCE_MAX_INPUTS + o, &like);
      for (int64_t j = 0; j < size_of(one.product, like, 1); j++) {
        double sum = 0, scale = 0;
        for (int64_t i = j; i < size_of(many.product, like, 0);
             i += like == CLB_OPERAND_W ? W_ : INT64_MAX / 2)
          sum += many.out[o][i], scale += many.scale[o][i];
        assert_true(fabs(one.out[o][j] - sum) <= 1e-15 * scale &&
                    fabs(one.scale[o][j] - scale) <= 1e-14 * scale &&
                    fabs(sum) <= scale * (1 + 1e-14));
      }
    }
    drop(&one);
    drop(&many);
  }
}

static void refuses(void **state) {
  (void)state;
  static const struct {
    const char *x, *y, *z;
    clb_instruction is;
  } wrong[] = {{"2x1o", "3x1o", "3x1e", {0, 0, 0, CLB_UVU, 1, 1}},
               {"2x1o", "3x1o", "2x1e", {0, 0, 0, CLB_UVV, 1, 1}},
               {"2x1o", "3x1o", "2x1e", {0, 0, 0, CLB_UUU, 1, 1}},
               {"2x1o", "2x1o", "3x1e", {0, 0, 0, CLB_UUU, 1, 1}},
               {"2x1o", "2x1o", "2x1e", {0, 0, 0, CLB_UUW, 0, 1}},
               {"2x1o", "2x1o", "2x1e", {0, 0, 0, CLB_UVW, 0, 1}},
               {"2x1o", "3x1o", "5x1e", {0, 0, 0, CLB_UVUV, 1, 1}},
               {"3x1o", "3x1o", "2x1e", {0, 0, 0, CLB_UVU_HALF, 1, 1}},
               {"3x1o", "3x1o", "2x1e", {0, 0, 0, CLB_UVW_HALF, 0, 1}},
               {"2x1o", "2x1o", "2x1o", {0, 0, 0, CLB_UVU, 1, 1}},
               {"2x1o", "2x1o", "2x3e", {0, 0, 0, CLB_UVU, 1, 1}},
               {"2x1o", "2x1o", "2x1e", {0, 1, 0, CLB_UVU, 1, 1}}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    clb_tensor_product_desc desc = {.irreps_x = wrong[i].x,
                                    .irreps_y = wrong[i].y,
                                    .irreps_z = wrong[i].z,
                                    .instructions = &wrong[i].is,
                                    .n_instructions = 1};
    if (reference_product_create(&desc)) fail_msg("case %d is not refused", (int)i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden),       cmocka_unit_test(named),
      cmocka_unit_test(channel_wise), cmocka_unit_test(each_pass_is_the_derivative),
      cmocka_unit_test(adjoint),      cmocka_unit_test(layouts),
      cmocka_unit_test(absent),       cmocka_unit_test(shared_weights),
      cmocka_unit_test(refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
