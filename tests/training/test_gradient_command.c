/* tests/training/test_gradient_command.c - `clebsch gradient`: its losses against sums of the
   test's own, its gradients against differences of its losses, and what it refuses. */
#include "tests/training/labelled_frames.h"

#include "models/file/safetensors.h"

#define GRADIENT "gradient --model model --exact --json --out g --structures "
#define MIXED "off.xyz --loss huber --huber-delta 0.3 --energy-weight 2 --force-weight 3 "

static const double weights[FRAMES] = {1, 2, 3, 0.5, 1, 0, 1.5, 1};

static int make_labels(void **state) {
  const labelling all = {off_energy, off_force, off_stress};
  if (make_predictions(state)) return -1;
  FILE *f = fopen("off.xyz", "w");
  assert_non_null(f);
  for (int g = 0; g < FRAMES; g++)
    write_labelled(f, &predicted[g], &all, format("config_weight=%g", weights[g]));
  fclose(f);
  return 0;
}

/* ---- losses ---- */

typedef struct {
  const char *options;
  char f; /* 's': square, 'a': absolute value, 'h': Huber's */
  double delta, energy, forces, stress, unit;
  bool norm;
} case_of_loss;

static double f_of(const case_of_loss *c, double d) {
  const double size = fabs(d);
  if (isnan(d)) return 0;
  if (c->f == 's') return d * d;
  return c->f == 'a' ? size : size <= c->delta ? d * d / 2 : c->delta * (size - c->delta / 2);
}

static double length_of(const structure *s, int64_t atom) {
  double square = 0;
  for (int64_t i = 3 * atom; i < 3 * atom + 3; i++) square += pow(off(s, i), 2);
  return isnan(square) ? 0 : sqrt(square);
}

static void expected_terms(const case_of_loss *c, double terms[3]) {
  int64_t atoms = 0;
  for (int g = 0; g < FRAMES; g++) atoms += predicted[g].n;
  for (int g = 0; g < FRAMES; g++) {
    const structure *s = &predicted[g];
    terms[0] += weights[g] / FRAMES * f_of(c, off(s, 99) / (double)s->n);
    for (int64_t i = 0; i < 3 * s->n && !c->norm; i++)
      terms[1] += weights[g] / (3. * (double)atoms) * f_of(c, off(s, i));
    for (int64_t i = 0; i < s->n && c->norm; i++)
      terms[1] += weights[g] / (double)atoms * length_of(s, i);
    for (int i = 0; i < 9 && s->periodic[0]; i++)
      terms[2] += weights[g] / (9. * FRAMES) * f_of(c, c->unit * off(s, 50 + i % 3 + i / 3));
  }
}

static void losses(void **state) {
  static const case_of_loss all[] = {
      {"off.xyz", 's', 0, 1, 1, 1, 1, false},
      {"off.xyz --loss mae --stress-unit kbar --stress-weight 1e-3", 'a', 0, 1, 1, 1e-3,
       1602.1766208, false},
      {"off.xyz --force-norm --loss mae --energy-weight 20 --force-weight 20", 'a', 0, 20, 20, 1, 1,
       true},
      {"off.xyz --loss huber", 'h', 0.01, 1, 1, 1, 1, false},
      {MIXED "--stress-weight 0", 'h', 0.3, 2, 3, 0, 1, false}};
  static const char *const names[] = {"energy", "forces", "stress"};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const case_of_loss *c = &all[i];
    double terms[3] = {0};
    expected_terms(c, terms);
    json_t *o = json_of(format(GRADIENT "%s", c->options));
    const double loss = c->energy * terms[0] + c->forces * terms[1] + c->stress * terms[2];
    near_to(c->options, number_of(o, "loss"), loss, 1e-10 * loss);
    for (int k = 0; k < 3; k++)
      if (k < 2 || c->stress > 0)
        near_to(names[k], number_of(json_object_get(o, "terms"), names[k]), terms[k],
                1e-10 * terms[k]);
    assert_int_equal(integer_of(o, "frames"), FRAMES);
    json_decref(o);
  }
}

/* ---- gradients ---- */

static clb_safetensors *open_tensors(const char *path) {
  clb_error_sink e = {0};
  clb_safetensors *file;
  if (clb_safetensors_open(&e, path, &file)) fail_msg("%s", e.text.s);
  return file;
}

static double element(const clb_tensor *t, int64_t i) {
  double x;
  memcpy(&x, t->data + 8 * i, sizeof x);
  return x;
}

/* The loss when element i of a tensor of the model is changed. */
static double loss_at(const clb_tensor *t, int64_t i, double change) {
  size_t n;
  uint64_t header;
  unsigned char *bytes = get_file("model", &n);
  memcpy(&header, bytes, 8);
  const double x = element(t, i) + change;
  memcpy(bytes + 8 + header + t->begin + 8 * (size_t)i, &x, sizeof x);
  put_file("changed", bytes, n);
  free(bytes);
  json_t *o = json_of("gradient --model changed --exact --json --out other --structures " MIXED);
  const double loss = number_of(o, "loss");
  json_decref(o);
  return loss;
}

/* Each tensor of the model's file under its name; and the largest number of every third, or of all
   in long runs. */
static void gradients(void **state) {
  (void)state;
  json_t *o = json_of(GRADIENT MIXED);
  clb_safetensors *model = open_tensors("model"), *found = open_tensors("g");
  double square = 0;
  int64_t parameters = 0;
  assert_int_equal(clb_safetensors_size(found), clb_safetensors_size(model));
  for (int k = 0; k < clb_safetensors_size(model); k++) {
    const clb_tensor *t = clb_safetensors_at(model, k), *g = clb_safetensors_find(found, t->name);
    int64_t largest = 0;
    if (!g) fail_msg("there is no gradient of %s", t->name);
    assert_string_equal(g->dtype, "F64");
    assert_string_equal(t->dtype, "F64");
    assert_int_equal(g->rank, t->rank);
    for (int d = 0; d < t->rank; d++) assert_int_equal(g->shape[d], t->shape[d]);
    for (int64_t i = 0; i < g->count; i++) {
      square += pow(element(g, i), 2);
      if (fabs(element(g, i)) > fabs(element(g, largest))) largest = i;
    }
    parameters += g->count;
    if (!long_tests() && k % 3) continue;
    const double slope = element(g, largest), h = 1e-4,
                 difference = (loss_at(t, largest, h) - loss_at(t, largest, -h)) / (2 * h);
    near_to(t->name, slope, difference, 1e-5 * fabs(slope) + 1e-7);
  }
  near_to("norm", number_of(o, "gradient_norm"), sqrt(square), 1e-12 * sqrt(square));
  assert_int_equal(integer_of(o, "parameters"), parameters);
  clb_safetensors_close(&model);
  clb_safetensors_close(&found);
  json_decref(o);
}

/* ---- text, and what is refused ---- */

static void text(void **state) {
  (void)state;
  expect_printed("gradient -m model -s off.xyz off.xyz -o g --dtype f64",
                 "labels     off.xyz and others: 16 frames, 80 atoms\n", "loss       ",
                 "gradient   norm ", "written    g\n");
}

static void refuses(void **state) {
  static const refusal wrong[] = {
      {"gradient --model model --out g", 2, "--structures is missing"},
      {"gradient --model model --structures off.xyz", 2, "--out is missing"},
      {GRADIENT "off.xyz --loss l2", 2, "--loss"},
      {GRADIENT "off.xyz --energy-weight -1", 2, "--energy-weight is a number from 0"},
      {GRADIENT "off.xyz --loss huber --huber-delta 0", 2, "--huber-delta is a number from"},
      {GRADIENT "off.xyz --huber-delta 1", 2, "--huber-delta is of --loss huber"},
      {GRADIENT "off.xyz --stress-unit GPa", 2, "--stress-unit"},
      {GRADIENT "off.xyz --knots 64", 2, "--knots is 0 here"},
      {GRADIENT "frames.xyz", 1, "frames.xyz: no frame has labels"},
      {GRADIENT "none.xyz", 1, "none.xyz, frame 1: the file ends here"},
      {GRADIENT "sodium.xyz", 1, "sodium.xyz, frame 2: atom 1 is Na, but model knows only H C O"},
      {"gradient --model model --structures off.xyz --out off.xyz", 1, "off.xyz"}};
  (void)state;
  put_text("none.xyz", "");
  put_text("sodium.xyz", "1\nenergy=1\nO 0 0 0\n1\nenergy=1\nNa 0 0 0\n");
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(losses), cmocka_unit_test(gradients),
                                     cmocka_unit_test(text), cmocka_unit_test(refuses)};
  return cmocka_run_group_tests(tests, make_labels, remove_predictions);
}
