/* tests/training/test_loss.c - losses against numbers of the original programs, and their
   derivatives against differences of the losses. */
#include "tests/training/training_reference.h"

#include "models/training/loss.h"

enum { STRUCTURES = 6, ATOMS = 8 };

/* Structures with their labels and predictions; the arrays are there whether used or not. */
typedef struct {
  int64_t n;
  clb_model_atoms atoms[STRUCTURES];
  clb_labels labels[STRUCTURES];
  clb_model_results computed[STRUCTURES];
  double cell[9], energy[STRUCTURES], forces[STRUCTURES][3 * ATOMS], stress[STRUCTURES][9];
  double known_energy[STRUCTURES], known_forces[STRUCTURES][3 * ATOMS];
  double known_stress[STRUCTURES][9], weight[STRUCTURES];
} sample;

/* Structures of n[] atoms, with all labels, and numbers that differ from them by 1 at most. */
static void make_sample(sample *s, int64_t n, const int64_t *atoms) {
  uint64_t seed = 7;
  *s = (sample){.n = n, .cell = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  for (int64_t g = 0; g < n; g++) {
    s->atoms[g] = (clb_model_atoms){.n = atoms[g], .cell = s->cell};
    s->weight[g] = 1 + 0.5 * (double)g;
    s->energy[g] = test_random(&seed);
    s->known_energy[g] = s->energy[g] + test_random(&seed);
    for (int i = 0; i < 3 * ATOMS; i++) s->forces[g][i] = test_random(&seed);
    for (int i = 0; i < 3 * ATOMS; i++)
      s->known_forces[g][i] = s->forces[g][i] + test_random(&seed);
    for (int i = 0; i < 9; i++) s->stress[g][i] = test_random(&seed);
    for (int i = 0; i < 9; i++) s->known_stress[g][i] = s->stress[g][i] + test_random(&seed);
    s->labels[g] =
        (clb_labels){&s->known_energy[g], s->known_forces[g], s->known_stress[g], &s->weight[g]};
    s->computed[g] = (clb_model_results){
        .energy = &s->energy[g], .forces = s->forces[g], .stress = s->stress[g]};
  }
}

static int64_t atoms_of(const sample *s) {
  int64_t n = 0;
  for (int64_t g = 0; g < s->n; g++) n += s->atoms[g].n;
  return n;
}

/* Derivatives in arrays of exactly their size, which sanitizers watch, full of NaN before. */
static clb_loss_result computed(const sample *s, const clb_loss *loss) {
  const int64_t counts[] = {s->n, 3 * atoms_of(s), 9 * s->n};
  double *arrays[3];
  clb_error_sink error = {0};
  for (int k = 0; k < 3; k++) {
    arrays[k] = malloc((size_t)counts[k] * sizeof(double) + !counts[k]);
    assert_non_null(arrays[k]);
    for (int64_t i = 0; i < counts[k]; i++) arrays[k][i] = NAN;
  }
  clb_loss_result r = {NAN, {NAN, NAN, NAN}, arrays[0], arrays[1], arrays[2]};
  if (clb_loss_compute(&error, loss, s->n, s->atoms, s->labels, s->computed, &r))
    fail_msg("%s", error.text.s);
  for (int k = 0; k < 3; k++) {
    assert_true(isfinite(r.terms[k]));
    for (int64_t i = 0; i < counts[k]; i++) assert_true(isfinite(arrays[k][i]));
  }
  near_to("sum of terms",
          loss->energy * r.terms[0] + loss->forces * r.terms[1] + loss->stress * r.terms[2], r.loss,
          1e-14 * fabs(r.loss));
  return r;
}

static void forget_result(clb_loss_result *r) {
  free(r->by_energy);
  free(r->by_force);
  free(r->by_stress);
}

static double loss_of(const sample *s, const clb_loss *loss) {
  clb_loss_result r = computed(s, loss);
  forget_result(&r);
  return r.loss;
}

/* ---- numbers of the original programs ---- */

static void read_sample(const json_t *batch, const json_t *model, const json_t *weights,
                        sample *s) {
  *s = (sample){.n = (int64_t)json_array_size(batch)};
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
    assert_true(numbers(json_object_get(found, "energy"), 1, &s->energy[g]));
    assert_true(numbers(json_object_get(found, "forces"), 3 * ATOMS, s->forces[g]));
    s->computed[g] = (clb_model_results){.energy = &s->energy[g], .forces = s->forces[g]};
    if (numbers(json_object_get(found, "stress"), 9, s->stress[g]))
      s->computed[g].stress = s->stress[g];
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
      clb_loss_result r = computed(&s, &loss);
      near_to(name, r.loss, number_of(wanted, "loss"), 1e-13 * number_of(wanted, "loss"));
      for (int k = 0; k < 3; k++) {
        const double x = number_of(json_object_get(wanted, "terms"), term[k]);
        near_to(term[k], r.terms[k], x, 1e-13 * x);
      }
      forget_result(&r);
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
  clb_loss_result r = computed(s, loss);
  const double *by_force = r.by_force;
  for (int64_t g = 0; g < s->n; g++) {
    expect_slope(s, loss, &s->energy[g], r.by_energy[g]);
    for (int64_t i = 0; i < 3 * s->atoms[g].n; i++)
      expect_slope(s, loss, &s->forces[g][i], *by_force++);
    for (int i = 0; i < 9; i++) expect_slope(s, loss, &s->stress[g][i], r.by_stress[9 * g + i]);
  }
  forget_result(&r);
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
      s.energy[0] = d[i];
      s.known_energy[0] = 0;
      clb_loss_result r = computed(&s, &loss);
      assert_true(r.terms[0] == wanted[f][i] && r.loss == wanted[f][i]);
      assert_true(r.by_energy[0] == slopes[f][i]);
      forget_result(&r);
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
  clb_loss_result r = computed(&s, &loss);
  near_to("loss", r.loss, 1, 1e-15);
  for (int i = 0; i < 6; i++) near_to("derivative", r.by_force[i], i == 4, 1e-15);
  forget_result(&r);
}

/* ---- missing labels, and nothing at all ---- */

/* B and N count what has no label, which adds nothing. */
static void test_missing_labels(void **state) {
  const clb_loss loss = {.energy = 1, .forces = 1, .stress = 1};
  sample s;
  (void)state;
  make_sample(&s, 2, (const int64_t[]){2, 6});
  clb_loss_result both = computed(&s, &loss);
  s.labels[1] = (clb_labels){0};
  clb_loss_result one = computed(&s, &loss);
  s.n = 1;
  clb_loss_result alone = computed(&s, &loss);
  for (int k = 0; k < 3; k++)
    near_to("term", one.terms[k], alone.terms[k] / (k == 1 ? 4 : 2), 1e-15);
  assert_true(one.by_energy[0] == both.by_energy[0] && both.by_energy[1] != 0);
  assert_true(one.by_energy[1] == 0);
  for (int i = 0; i < 24; i++) assert_true(one.by_force[i] == (i < 6 ? both.by_force[i] : 0));
  for (int i = 0; i < 18; i++) assert_true(one.by_stress[i] == (i < 9 ? both.by_stress[i] : 0));
  forget_result(&both);
  forget_result(&one);
  forget_result(&alone);
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
    s.known_stress[0][1] = s.stress[0][1];
    s.known_energy[0] = s.energy[0];
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
  clb_loss_result r = computed(&s, &loss);
  assert_true(r.terms[0] == 0 && r.terms[1] == 0 && r.by_energy[0] == 0 && r.terms[2] > 0);
  forget_result(&r);
  s.n = 0;
  assert_true(loss_of(&s, &loss) == 0);
}

/* ---- what is refused ---- */

static void refuse(const clb_loss *loss, const sample *s, const char *words) {
  clb_error_sink error = {0};
  assert_int_equal(clb_loss_check(&error, loss, s->n, s->atoms, s->labels), CLB_ERROR_ARGUMENT);
  if (!strstr(error.text.s, words)) fail_msg("'%s' lacks '%s'", error.text.s, words);
  clb_text_free(&error.text);
  assert_int_equal(
      clb_loss_compute(&error, loss, s->n, s->atoms, s->labels, s->computed, &(clb_loss_result){0}),
      CLB_ERROR_ARGUMENT);
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
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_original_losses), cmocka_unit_test(test_derivatives),
      cmocka_unit_test(test_kinks),           cmocka_unit_test(test_equal_forces),
      cmocka_unit_test(test_missing_labels),  cmocka_unit_test(test_missing_numbers),
      cmocka_unit_test(test_empty),           cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
