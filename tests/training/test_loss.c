/* tests/training/test_loss.c - losses against numbers of the original programs, and their
   derivatives against differences of the losses. */
#include "tests/training/training_reference.h"

#include "models/training/loss.h"

enum { STRUCTURES = 6, ATOMS = 8 };

static clb_context *ctx;
static clb_batch_loss batch_loss;

/* Structures with their labels and predictions; the arrays are there whether used or not. Cells
   have volume 1. */
typedef struct {
  int64_t n;
  clb_model_atoms atoms[STRUCTURES];
  clb_labels labels[STRUCTURES];
  double cell[9], e_atom[STRUCTURES][ATOMS], forces[STRUCTURES][3 * ATOMS];
  double v_atom[STRUCTURES][9 * ATOMS];
  double known_energy[STRUCTURES], known_forces[STRUCTURES][3 * ATOMS];
  double known_stress[STRUCTURES][9], weight[STRUCTURES];
} sample;

/* Numbers of at most 1. */
static void put_random(int n, double *to, uint64_t *seed) {
  for (int i = 0; i < n; i++) to[i] = test_random(seed);
}

/* Structures of n[] atoms, with all labels. */
static void make_sample(sample *s, int64_t n, const int64_t *atoms) {
  uint64_t seed = 7;
  *s = (sample){.n = n, .cell = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  for (int64_t g = 0; g < n; g++) {
    s->atoms[g] = (clb_model_atoms){.n = atoms[g], .cell = s->cell};
    s->weight[g] = 1 + 0.5 * (double)g;
    put_random(ATOMS, s->e_atom[g], &seed);
    put_random(1, &s->known_energy[g], &seed);
    put_random(3 * ATOMS, s->forces[g], &seed);
    put_random(3 * ATOMS, s->known_forces[g], &seed);
    put_random(9 * ATOMS, s->v_atom[g], &seed);
    put_random(9, s->known_stress[g], &seed);
    s->labels[g] =
        (clb_labels){&s->known_energy[g], s->known_forces[g], s->known_stress[g], &s->weight[g]};
  }
}

static int64_t atoms_of(const sample *s) {
  int64_t n = 0;
  for (int64_t g = 0; g < s->n; g++) n += s->atoms[g].n;
  return n;
}

/* ---- on the device ---- */

static void good(clb_status s) {
  if (s) fail_msg("%s", clb_error(ctx));
}

/* Rows of so many numbers of exactly their size. */
static clb_rows rows_of(int64_t count, const double *from) {
  clb_rows r = {.stride = CLB_DENSE};
  good(clb_buffer_create(ctx, (uint64_t)count * sizeof *from, &r.buffer));
  good(clb_numbers_write(r.buffer, CLB_F64, 0, count, from));
  return r;
}

/* Those of the structures' atoms, of so many columns. */
static clb_rows rows_of_atoms(const sample *s, int64_t columns, const double *from) {
  double all[STRUCTURES * ATOMS * 9];
  int64_t count = 0;
  for (int64_t g = 0; g < s->n; g++, from += columns * ATOMS)
    for (int64_t i = 0; i < columns * s->atoms[g].n; i++) all[count++] = from[i];
  return rows_of(count, all);
}

/* A loss, and its derivatives by each atom's energy, by minus its forces, and by the virial. */
typedef struct {
  double loss, terms[3], errors[3][3];
  double by_energy[STRUCTURES * ATOMS], moves[3 * STRUCTURES * ATOMS], strains[9 * STRUCTURES];
} loss_found;

/* Results are full of NaN before. */
static loss_found computed(const sample *s, const clb_loss *loss) {
  const int64_t atoms = atoms_of(s), counts[] = {atoms, 3 * atoms, 9 * s->n};
  int32_t system[STRUCTURES * ATOMS];
  double nothing[9 * STRUCTURES * ATOMS];
  loss_found f;
  double *const to[] = {f.by_energy, f.moves, f.strains};
  int64_t at = 0;
  for (int64_t g = 0; g < s->n; g++)
    for (int64_t i = 0; i < s->atoms[g].n; i++) system[at++] = (int32_t)g;
  for (int i = 0; i < 9 * STRUCTURES * ATOMS; i++) nothing[i] = NAN;
  clb_batch_loss_rows r = {.e_atom = rows_of_atoms(s, 1, s->e_atom[0]),
                           .forces = rows_of_atoms(s, 3, s->forces[0]),
                           .v_atom = rows_of_atoms(s, 9, s->v_atom[0]),
                           .by_energy = rows_of(counts[0], nothing),
                           .moves = rows_of(counts[1], nothing),
                           .strains = rows_of(counts[2], nothing)};
  clb_buffer *out[] = {r.by_energy.buffer, r.moves.buffer, r.strains.buffer};
  clb_rows edges;
  good(clb_batch_loss_place(&batch_loss, s->n, &edges));
  good(clb_batch_loss_set(&batch_loss, loss, s->n, s->atoms, s->labels, system));
  good(clb_batch_loss_run(&batch_loss, &r));
  good(clb_batch_loss_keep(&batch_loss, -1));
  clb_loss_result result;
  good(clb_batch_loss_read(&batch_loss, &result));
  f.loss = result.loss;
  memcpy(f.terms, result.terms, sizeof f.terms);
  memcpy(f.errors, result.errors, sizeof f.errors);
  for (int k = 0; k < 3; k++) {
    assert_true(isfinite(f.terms[k]));
    good(clb_numbers_read(out[k], CLB_F64, 0, counts[k], to[k]));
    for (int64_t i = 0; i < counts[k]; i++) assert_true(isfinite(to[k][i]));
  }
  clb_rows *all[] = {&r.e_atom, &r.forces, &r.v_atom, &r.by_energy, &r.moves, &r.strains};
  for (int k = 0; k < 6; k++) clb_buffer_destroy(&all[k]->buffer);
  near_to("sum of terms",
          loss->energy * f.terms[0] + loss->forces * f.terms[1] + loss->stress * f.terms[2], f.loss,
          1e-14 * fabs(f.loss));
  return f;
}

static double loss_of(const sample *s, const clb_loss *loss) { return computed(s, loss).loss; }

/* ---- numbers of the original programs ---- */

/* The first atom has all of an energy and a virial. */
static void read_sample(const json_t *batch, const json_t *model, const json_t *weights,
                        sample *s) {
  *s = (sample){.n = (int64_t)json_array_size(batch), .cell = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  assert_int_equal(s->n, 3);
  for (int64_t g = 0; g < s->n; g++) {
    const json_t *known = json_array_get(json_object_get(model, "labels"), g),
                 *found = json_array_get(json_object_get(model, "predictions"), g);
    s->atoms[g].n = (int64_t)json_array_size(json_object_get(json_array_get(batch, g), "Z"));
    s->atoms[g].cell = s->cell;
    assert_true(s->atoms[g].n <= ATOMS);
    s->labels[g].weight = &s->weight[g];
    numbers(json_array_get(weights, g), 1, &s->weight[g]);
    if (numbers(json_object_get(known, "energy"), 1, &s->known_energy[g]))
      s->labels[g].energy = &s->known_energy[g];
    if (numbers(json_object_get(known, "forces"), 3 * ATOMS, s->known_forces[g]))
      s->labels[g].forces = s->known_forces[g];
    if (numbers(json_object_get(known, "stress"), 9, s->known_stress[g]))
      s->labels[g].stress = s->known_stress[g];
    assert_true(numbers(json_object_get(found, "energy"), 1, s->e_atom[g]));
    assert_true(numbers(json_object_get(found, "forces"), 3 * ATOMS, s->forces[g]));
    if (!numbers(json_object_get(found, "stress"), 9, s->v_atom[g])) s->atoms[g].cell = NULL;
  }
}

static void test_original_losses(void **state) {
  char path[600];
  const char *name;
  json_t *model;
  int compared = 0;
  (void)state;
  snprintf(path, sizeof path, "%s/training/reference.json", getenv("CLB_TEST_DATA"));
  json_t *all = read_json(path);
  json_object_foreach(json_object_get(all, "models"), name, model) {
    const json_t *batch = json_object_get(json_object_get(all, "batches"), text_of(model, "batch"));
    const json_t *losses = json_object_get(all, "losses");
    for (size_t i = 0; i < json_array_size(losses); i++, compared++) {
      static const char *const term[] = {"energy", "forces", "stress"};
      const json_t *l = json_array_get(losses, i),
                   *wanted = json_object_get(json_object_get(model, "results"), text_of(l, "name"));
      const clb_loss loss = read_loss(l);
      sample s;
      read_sample(batch, model, json_object_get(l, "structure_weights"), &s);
      const loss_found r = computed(&s, &loss);
      near_to(name, r.loss, number_of(wanted, "loss"), 1e-13 * number_of(wanted, "loss"));
      for (int k = 0; k < 3; k++) {
        const double x = number_of(json_object_get(wanted, "terms"), term[k]);
        near_to(term[k], r.terms[k], x, 1e-13 * x);
      }
    }
  }
  assert_int_equal(compared, 24);
  json_decref(all);
}

/* ---- derivatives ---- */

/* The derivative by *x, which is a prediction, is that of a central difference. */
static void expect_slope(const sample *s, const clb_loss *loss, double *x, double slope) {
  const double old = *x, h = 1e-6;
  *x = old + h;
  const double above = loss_of(s, loss);
  *x = old - h;
  const double below = loss_of(s, loss);
  *x = old;
  near_to("derivative", slope, (above - below) / (2 * h), 1e-8 * (1 + fabs(slope)));
}

static void expect_slopes(sample *s, const clb_loss *loss) {
  const loss_found f = computed(s, loss);
  int64_t at = 0;
  for (int64_t g = 0; g < s->n; g++) {
    for (int64_t i = 0; i < s->atoms[g].n; i++, at++) {
      expect_slope(s, loss, &s->e_atom[g][i], f.by_energy[at]);
      for (int c = 0; c < 3; c++)
        expect_slope(s, loss, &s->forces[g][3 * i + c], -f.moves[3 * at + c]);
    }
    for (int k = 0; k < 9 && s->atoms[g].n; k++)
      expect_slope(s, loss, &s->v_atom[g][k], f.strains[9 * g + k]);
  }
}

static void test_derivatives(void **state) {
  (void)state;
  for (int f = CLB_LOSS_MSE; f <= CLB_LOSS_HUBER; f++) {
    for (int norm = 0; norm < 2; norm++) {
      const clb_loss loss = {.function = f,
                             .delta = 0.3,
                             .energy = 2,
                             .forces = 3,
                             .stress = 0.7,
                             .stress_unit = f ? 0 : 1.6,
                             .force_norm = norm};
      sample s;
      make_sample(&s, 4, (const int64_t[]){3, 0, 1, 8});
      s.labels[0].forces = s.labels[2].stress = s.labels[3].energy = NULL;
      s.known_forces[3][4] = s.known_stress[3][8] = s.known_energy[2] = NAN;
      s.labels[3].weight = NULL;
      expect_slopes(&s, &loss);
    }
  }
}

/* Where nothing is wrong, and where f goes from one form to the other. */
static void test_kinks(void **state) {
  const double delta = 0.25, d[] = {0, delta, -delta, 2 * delta};
  const double wanted[3][4] = {
      {0, 0.0625, 0.0625, 0.25}, {0, 0.25, 0.25, 0.5}, {0, 0.03125, 0.03125, 0.09375}};
  const double slopes[3][4] = {{0, 0.5, -0.5, 1}, {0, 1, -1, 1}, {0, 0.25, -0.25, 0.25}};
  (void)state;
  for (int f = CLB_LOSS_MSE; f <= CLB_LOSS_HUBER; f++) {
    for (int i = 0; i < 4; i++) {
      const clb_loss loss = {.function = f, .delta = delta, .energy = 1};
      sample s;
      make_sample(&s, 1, (const int64_t[]){1});
      s.e_atom[0][0] = d[i];
      s.known_energy[0] = 0;
      const loss_found r = computed(&s, &loss);
      assert_true(r.terms[0] == wanted[f][i] && r.loss == wanted[f][i]);
      assert_true(r.by_energy[0] == slopes[f][i]);
    }
  }
}

static void test_equal_forces(void **state) {
  const clb_loss loss = {.function = CLB_LOSS_MAE, .forces = 2, .force_norm = 1};
  sample s;
  (void)state;
  make_sample(&s, 1, (const int64_t[]){2});
  memcpy(s.known_forces[0], s.forces[0], 3 * sizeof(double));
  for (int k = 0; k < 3; k++) s.known_forces[0][3 + k] = s.forces[0][3 + k] - (k == 1);
  const loss_found f = computed(&s, &loss);
  near_to("loss", f.loss, 1, 1e-15);
  for (int i = 0; i < 6; i++) near_to("derivative", -f.moves[i], i == 4, 1e-15);
}

/* ---- missing labels, and nothing at all ---- */

/* B and N count what has no label, which adds nothing. */
static void test_missing_labels(void **state) {
  static const double counts[][3] = {{1, 6, 9}, {2, 24, 18}};
  const clb_loss loss = {.energy = 1, .forces = 1, .stress = 1};
  sample s;
  (void)state;
  make_sample(&s, 2, (const int64_t[]){2, 6});
  const loss_found both = computed(&s, &loss);
  s.labels[1] = (clb_labels){0};
  const loss_found one = computed(&s, &loss);
  s.n = 1;
  const loss_found alone = computed(&s, &loss);
  for (int k = 0; k < 3; k++) {
    near_to("term", one.terms[k], alone.terms[k] / (k == 1 ? 4 : 2), 1e-15);
    assert_memory_equal(one.errors[k], alone.errors[k], sizeof alone.errors[k]);
    assert_true(alone.errors[k][0] == counts[0][k] && both.errors[k][0] == counts[1][k]);
  }
  assert_true(both.by_energy[2] != 0);
  for (int i = 0; i < 8; i++) assert_true(one.by_energy[i] == (i < 2 ? both.by_energy[i] : 0));
  for (int i = 0; i < 24; i++) assert_true(one.moves[i] == (i < 6 ? both.moves[i] : 0));
  for (int i = 0; i < 18; i++) assert_true(one.strains[i] == (i < 9 ? both.strains[i] : 0));
}

/* A number alone is missing: as if its label was what is predicted; by force_norm its atom is. */
static void test_missing_numbers(void **state) {
  (void)state;
  for (int norm = 0; norm < 2; norm++) {
    const clb_loss loss = {.energy = 1, .forces = 1, .stress = 1, .force_norm = norm};
    sample s;
    make_sample(&s, 1, (const int64_t[]){3});
    memcpy(&s.known_forces[0][3 + 2 * !norm], &s.forces[0][3 + 2 * !norm],
           (norm ? 3 : 1) * sizeof(double));
    s.known_energy[0] = s.known_stress[0][1] = 0;
    for (int i = 0; i < 3; i++) {
      s.known_energy[0] += s.e_atom[0][i] = 0.25 * i; /* without rounding */
      s.known_stress[0][1] += s.v_atom[0][9 * i + 1] = s.v_atom[0][9 * i + 3] = 0.5 * i;
    }
    const double wanted = loss_of(&s, &loss);
    s.known_forces[0][5] = s.known_stress[0][1] = s.known_energy[0] = NAN;
    assert_true(loss_of(&s, &loss) == wanted);
  }
}

static void test_empty(void **state) {
  const clb_loss loss = {.function = CLB_LOSS_MAE, .energy = 1, .forces = 1, .stress = 1};
  sample s;
  (void)state;
  make_sample(&s, 2, (const int64_t[]){0, 0});
  const loss_found f = computed(&s, &loss);
  assert_true(f.terms[0] == 0 && f.terms[1] == 0 && f.terms[2] > 0 && f.strains[0] != 0);
  s.n = 0;
  assert_true(loss_of(&s, &loss) == 0);
}

/* ---- what is refused ---- */

static void refuse(const clb_loss *loss, const sample *s, const char *words) {
  clb_error_sink error = {0};
  assert_int_equal(clb_loss_check(&error, loss, s->n, s->atoms, s->labels), CLB_ERROR_ARGUMENT);
  if (!strstr(error.text.s, words)) fail_msg("'%s' lacks '%s'", error.text.s, words);
  clb_text_free(&error.text);
}

static void test_refusals(void **state) {
  sample s;
  (void)state;
  make_sample(&s, 2, (const int64_t[]){1, 2});
  refuse(&(clb_loss){.function = 3}, &s, "function of the loss is 3");
  refuse(&(clb_loss){.function = CLB_LOSS_HUBER}, &s, "delta of the Huber loss is 0");
  refuse(&(clb_loss){.function = CLB_LOSS_HUBER, .delta = NAN}, &s, "delta");
  refuse(&(clb_loss){.energy = -1}, &s, "energy of the loss is -1");
  refuse(&(clb_loss){.forces = INFINITY}, &s, "forces of the loss is inf");
  refuse(&(clb_loss){.stress = NAN}, &s, "stress of the loss is nan");
  refuse(&(clb_loss){.stress_unit = -1}, &s, "stress_unit");
  s.weight[1] = -2;
  refuse(&(clb_loss){0}, &s, "weight of structure 1 is -2");
  s.weight[1] = 1;
  s.known_forces[1][5] = -INFINITY;
  refuse(&(clb_loss){0}, &s, "forces[5] of structure 1 is -inf");
  s.known_forces[1][5] = 0;
  s.known_energy[0] = INFINITY;
  refuse(&(clb_loss){0}, &s, "energy[0] of structure 0 is inf");
  s.known_energy[0] = 0;
  s.atoms[0].cell = NULL;
  refuse(&(clb_loss){0}, &s, "structure 0 has a stress, but no cell");
  s.atoms[0].cell = s.cell;
  s.cell[8] = 0;
  refuse(&(clb_loss){0}, &s, "structure 0 has a stress, but no cell with a volume");
}

static int begin(void **state) {
  (void)state;
  return clb_context_create("cpu", &ctx) || clb_batch_loss_create(ctx, CLB_F64, &batch_loss);
}

static int end(void **state) {
  (void)state;
  clb_batch_loss_free(&batch_loss);
  clb_context_destroy(&ctx);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_original_losses), cmocka_unit_test(test_derivatives),
      cmocka_unit_test(test_kinks),           cmocka_unit_test(test_equal_forces),
      cmocka_unit_test(test_missing_labels),  cmocka_unit_test(test_missing_numbers),
      cmocka_unit_test(test_empty),           cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, begin, end);
}
