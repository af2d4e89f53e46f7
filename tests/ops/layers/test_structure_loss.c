/* tests/ops/layers/test_structure_loss.c - losses of structures against plain formulas, on every
   device that runs here, and on the interpreter with a GPU's limits. */
#include "tests/ops/layers/layer_rows.h"

#include "kernels/layers/host/structure_loss.h"

enum { MSE, MAE, HUBER, FUNCTIONS };

typedef struct {
  int function;
  bool norm;
  double delta, unit, factor[3];
} plain_loss;

static clb_loss_form form_of(const plain_loss *l, const double part[3]) {
  clb_loss_form f = {.least = l->function == MAE,
                     .most = l->function == MSE   ? INFINITY
                             : l->function == MAE ? 1
                                                  : l->delta,
                     .scale = l->function == MSE ? 2 : 1,
                     .half = l->function == MAE ? 0 : 0.5,
                     .unit = l->unit,
                     .norm = l->norm};
  for (int k = 0; k < 3; k++) f.part[k] = part[k], f.factor[k] = l->factor[k];
  return f;
}

/* ---- plain formulas ---- */

static double value_of(const plain_loss *l, double d, double *slope) {
  const double size = fabs(d);
  if (l->function == MSE) return *slope = 2 * d, d * d;
  if (l->function == MAE) return *slope = d > 0 ? 1 : d < 0 ? -1 : 0, size;
  if (size <= l->delta) return *slope = d, d * d / 2;
  return *slope = d > 0 ? l->delta : -l->delta, l->delta * (size - l->delta / 2);
}

static double see(double *errors, double d) {
  errors[0] += 1;
  errors[1] += fabs(d);
  errors[2] += d * d;
  return d;
}

/* A structure: rows of its atoms, of what is known, and the results. */
typedef struct {
  int64_t n;
  const double *e_atom, *force, *v_atom, *known, *known_force;
  double *made, *by_energy, *move, *strain;
} rows;

static void plain_energy(const plain_loss *l, const double part[3], const rows *r) {
  const double w = r->known[CLB_KNOWN_WEIGHT], known = r->known[CLB_KNOWN_ENERGY];
  double energy = 0, slope = 0;
  for (int64_t i = 0; i < r->n; i++) energy += r->e_atom[i];
  if (r->n && !isnan(known))
    r->made[0] =
        w * part[0] *
        value_of(l, see(r->made + CLB_MADE_ERRORS, (energy - known) / (double)r->n), &slope);
  for (int64_t i = 0; i < r->n; i++)
    r->by_energy[i] = l->factor[0] * w * part[0] * slope / (double)r->n;
}

static void plain_forces(const plain_loss *l, const double part[3], const rows *r) {
  const double w = r->known[CLB_KNOWN_WEIGHT];
  for (int64_t i = 0; i < 3 * r->n; i += 3) {
    double d[3], slope[3] = {0}, length = 0, sum = 0;
    bool all = true;
    for (int c = 0; c < 3; c++) {
      const double known = r->known_force[i + c];
      d[c] = r->force[i + c] - known;
      all &= !isnan(known);
      if (isnan(known)) continue;
      sum += value_of(l, see(r->made + CLB_MADE_ERRORS + 3, d[c]), &slope[c]);
      length = hypot(length, d[c]);
    }
    r->made[1] += w * part[1] * (!l->norm ? sum : all ? length : 0);
    for (int c = 0; c < 3; c++) {
      if (l->norm) slope[c] = all && length > 0 ? d[c] / length : 0;
      r->move[i + c] = -l->factor[1] * w * part[1] * slope[c];
    }
  }
}

static void plain_stress(const plain_loss *l, const double part[3], const rows *r) {
  const double w = r->known[CLB_KNOWN_WEIGHT], volume = r->known[CLB_KNOWN_VOLUME];
  double virial[9] = {0}, slope[9] = {0};
  for (int64_t i = 0; i < 9 * r->n && r->v_atom; i++) virial[i % 9] += r->v_atom[i];
  for (int k = 0; k < 9 && volume > 0; k++) {
    const double known = r->known[CLB_KNOWN_STRESS + k],
                 stress = (virial[k] + virial[k % 3 * 3 + k / 3]) / 2 / volume;
    if (isnan(known)) continue;
    r->made[2] +=
        w * part[2] *
        value_of(l, l->unit * see(r->made + CLB_MADE_ERRORS + 6, stress - known), &slope[k]);
  }
  for (int k = 0; k < 9; k++)
    r->strain[k] = volume > 0 ? l->factor[2] * w * part[2] * l->unit *
                                    (slope[k] + slope[k % 3 * 3 + k / 3]) / 2 / volume
                              : 0;
}

/* ---- a call ---- */

/* Structures of odd numbers of atoms, and none; more atoms than lanes. */
static const int64_t sizes[] = {3, 0, 1, 33, 2, 7, 70};
enum { MOST = sizeof sizes / sizeof *sizes };

enum { E, F, V, KNOWN, KNOWN_F, INS };
enum { MADE, BY_E, MOVES, STRAINS, OUTS };
static const int64_t in_columns[] = {1, 3, 9, CLB_KNOWN_COLUMNS, 3},
                     out_columns[] = {CLB_MADE_COLUMNS, 1, 3, 9};
static const bool in_atoms[] = {true, true, true, false, true},
                  out_atoms[] = {false, true, true, false};

static void put_at(const table *t, int64_t row, int64_t column, double x) {
  put(t->a.type, t->a.host, t->offset + row * t->stride + column, x);
}

/* Weights and volumes, and what is not known; predictions without a label may be anything. */
static void put_special(clb_context *ctx, int64_t n, int64_t atoms, table *in) {
  for (int64_t g = 0; g < n; g++) {
    put_at(&in[KNOWN], g, CLB_KNOWN_WEIGHT, 0.5 + (double)g);
    put_at(&in[KNOWN], g, CLB_KNOWN_VOLUME, g == 3 ? 0 : 2.5 + (double)g);
    if (g == 4) put_at(&in[KNOWN], g, CLB_KNOWN_ENERGY, NAN);
    for (int k = 0; k < 9; k++)
      if (g == 5 || (g == 2 && k == 4)) put_at(&in[KNOWN], g, CLB_KNOWN_STRESS + k, NAN);
  }
  for (int64_t i = 0; i < 3 * atoms; i++)
    if (i % 5 == 3 || i / 3 == 20) {
      put_at(&in[KNOWN_F], i / 3, i % 3, NAN);
      put_at(&in[F], i / 3, i % 3, i % 2 ? INFINITY : NAN);
    }
  if (atoms > 7) /* exact */
    for (int c = 0; c < 3; c++) {
      put_at(&in[F], 7, c, 0.25);
      put_at(&in[KNOWN_F], 7, c, 0.25);
    }
  for (int k = 0; k < INS; k++) {
    clb_buffer_destroy(&in[k].a.buffer);
    upload(ctx, &in[k].a);
  }
}

static double *results_of(const plain_loss *l, const double part[3], int64_t n, double *const *in,
                          bool virials, int out) {
  int64_t first = 0;
  double *all[OUTS];
  for (int k = 0; k < OUTS; k++) all[k] = calloc(200 * 13, sizeof **all);
  for (int64_t g = 0; g < n; first += sizes[g++]) {
    const rows r = {sizes[g],
                    in[E] + first,
                    in[F] + 3 * first,
                    virials ? in[V] + 9 * first : NULL,
                    in[KNOWN] + CLB_KNOWN_COLUMNS * g,
                    in[KNOWN_F] + 3 * first,
                    all[MADE] + CLB_MADE_COLUMNS * g,
                    all[BY_E] + first,
                    all[MOVES] + 3 * first,
                    all[STRAINS] + 9 * g};
    plain_energy(l, part, &r);
    plain_forces(l, part, &r);
    plain_stress(l, part, &r);
  }
  for (int k = 0; k < OUTS; k++)
    if (k != out) free(all[k]);
  return all[out];
}

static void expect_loss(clb_context *ctx, clb_dtype type, clb_op *op, const plain_loss *l,
                        int64_t n, bool virials, bool dense) {
  static const char *const names[] = {"made", "by_energy", "moves", "strains"};
  const clb_dtype sum = clb_sum_type(ctx);
  const double error = sum == CLB_F64 ? 1e-13 : 1e-5, rounded = type == CLB_F64 ? error : 1e-5;
  int64_t atoms = 0;
  int32_t first[MOST + 4] = {-7, -7};
  uint64_t seed = 5;
  for (int64_t g = 0; g < n; g++) first[3 + g] = (int32_t)atoms, atoms += sizes[g];
  first[3 + n] = (int32_t)atoms;
  const double part[] = {1. / 7, 1. / 300, 1. / 63};
  const clb_loss_form form = form_of(l, part);
  table in[INS], out[2][OUTS];
  double *x[INS];
  clb_rows starts = {.offset = 2};
  OK(ctx, clb_buffer_create(ctx, sizeof first, &starts.buffer));
  OK(ctx, clb_buffer_write(starts.buffer, 0, first, sizeof first));
  for (int k = 0; k < INS; k++)
    in[k] =
        random_table(ctx, sum, in_atoms[k] ? atoms : n, in_columns[k], dense ^ (k % 2), 1, &seed);
  put_special(ctx, n, atoms, in);
  for (int k = 0; k < INS; k++) x[k] = plain(&in[k]);
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < OUTS; k++)
      out[i][k] = result_table(ctx, k == MADE ? sum : type, out_atoms[k] ? atoms : n,
                               out_columns[k], dense ^ (k % 2), false, &seed);
    OK(ctx, clb_structure_loss_run(
                op, &form,
                &(clb_loss_operands){.n = n,
                                     .n_atoms = atoms,
                                     .first = starts,
                                     .e_atom = rows_of(&in[E]),
                                     .forces = rows_of(&in[F]),
                                     .v_atom = virials ? rows_of(&in[V]) : (clb_rows){0},
                                     .known = rows_of(&in[KNOWN]),
                                     .known_forces = rows_of(&in[KNOWN_F]),
                                     .made = rows_of(&out[i][MADE]),
                                     .by_energy = rows_of(&out[i][BY_E]),
                                     .moves = rows_of(&out[i][MOVES]),
                                     .strains = rows_of(&out[i][STRAINS])}));
  }
  for (int k = 0; k < OUTS; k++) {
    double *must = results_of(l, part, n, x, virials, k);
    expect_rows(ctx, names[k], &out[0][k], false, must, k == MADE ? error : rounded);
    expect_same(ctx, &out[0][k], &out[1][k]);
    drop(&out[0][k].a);
    free(must);
  }
  for (int k = 0; k < INS; k++) {
    drop(&in[k].a);
    free(x[k]);
  }
  clb_buffer_destroy(&starts.buffer);
}

static void losses(void **state) {
  const struct device *d = *state;
  clb_context *ctx = context(state);
  for (clb_dtype type = CLB_F32; type <= (d->f64 ? CLB_F64 : CLB_F32); type++) {
    clb_op *op;
    OK(ctx, clb_structure_loss_create(ctx, type, &op));
    for (int i = 0; i < 2 * FUNCTIONS; i++) {
      const plain_loss l = {.function = i % FUNCTIONS,
                            .norm = i / FUNCTIONS,
                            .delta = 0.3,
                            .unit = i == 2 ? 1 : 1.7,
                            .factor = {2, 3, i == 1 ? 0 : 0.7}};
      expect_loss(ctx, type, op, &l, MOST, i != 4, i % 2);
    }
    for (int64_t n = 0; n < 3; n++)
      expect_loss(ctx, type, op, &(plain_loss){.delta = 1, .unit = 1, .factor = {1, 1, 1}}, n,
                  n != 1, n);
    clb_op_destroy(&op);
  }
}

/* As on devices without double precision. */
static void without_f64(void **state) {
  struct device *d = *state;
  const bool before = d->f64;
  clb_context *ctx = context(state);
  d->f64 = ctx->device->limits.f64 = false;
  losses(state);
  d->f64 = ctx->device->limits.f64 = before;
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  uint64_t seed = 1;
  clb_op *op;
  table x = random_table(ctx, clb_sum_type(ctx), 4, 12, true, 1, &seed);
  const clb_rows r = rows_of(&x);
  const clb_loss_form form = {.most = 1};
  OK(ctx, clb_structure_loss_create(ctx, CLB_F32, &op));
  clb_loss_operands o = {2, 9, r, r, r, r, r, r, r, r, r, r};
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of v_atom", clb_structure_loss_run(op, &form, &o));
  o.forces.buffer = NULL;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of forces is NULL",
         clb_structure_loss_run(op, &form, &o));
  o.first.buffer = NULL;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of first is NULL", clb_structure_loss_run(op, &form, &o));
  assert_int_equal(clb_structure_loss_run(NULL, &form, &o), CLB_ERROR_ARGUMENT);
  clb_op_destroy(&op);
  drop(&x.a);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  clb_op *op;
  OK(ctx, clb_structure_loss_create(ctx, CLB_F32, &op));
  assert_true(op->kernel[0]->binary.n > 0);
  clb_op_destroy(&op);
}

int main(void) {
  static const named_test tests[] = {
      {"losses", losses, false}, {"without_f64", without_f64, false}, {"refuses", refuses, false}};
  return run_on_all("structure_loss", tests, sizeof tests / sizeof *tests, compiles);
}
