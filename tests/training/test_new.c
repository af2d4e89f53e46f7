/* tests/training/test_new.c - `clebsch train --new`: what is in the files of new networks, that
   their energies have the symmetries of atoms, and that they learn. */
#include "tests/training/labelled_frames.h"

#include "models/file/safetensors.h"

#define TINY                                                                                       \
  " --layers 2 --r-max 3.2 --radial 8 --basis 4 --device cpu --exact --lr 1e-2 --schedule "        \
  "constant --ema 0 --loss mse "

static const struct {
  const char *kind, *features;
} kinds[] = {{"nequip", "4x0e+3x1o+2x2e"},
             {"nequip", "4x0e+2x0o+3x1e+3x1o"}, /* of both parities */
             {"nequix", "4x0e+3x1o"},
             {"sevennet", "4x0e+3x1e+2x2e"},
             {"mace", "4x0e+4x1o --l-max 2"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void make_new(int kind, const char *more) {
  json_decref(json_of(format("train --new %s --features %s" TINY "--json %s", kinds[kind].kind,
                             kinds[kind].features, more)));
}

/* ---- the file ---- */

static clb_safetensors *open_tensors(const char *path) {
  clb_error_sink e = {0};
  clb_safetensors *file;
  if (clb_safetensors_open(&e, path, &file)) fail_msg("%s", e.text.s);
  return file;
}

static const double *numbers(const clb_safetensors *file, const char *name, int64_t *n) {
  const clb_tensor *t = clb_safetensors_find(file, name);
  if (!t) fail_msg("there is no %s", name);
  *n = (int64_t)(t->end - t->begin) / 8;
  return (const double *)t->data;
}

static double number(const clb_safetensors *file, const char *key) {
  clb_error_sink e = {0};
  double x;
  if (clb_safetensors_number(&e, file, key, &x)) fail_msg("%s", e.text.s);
  return x;
}

static void expect_says(const clb_safetensors *file, const char *key, const char *value) {
  clb_error_sink e = {0};
  const char *text;
  if (clb_safetensors_text(&e, file, key, &text)) fail_msg("%s", e.text.s);
  assert_string_equal(text, value);
}

/* Pairs within r of each other, of images up to three cells away. */
static double edges_of(const structure *s, double r) {
  double n = 0;
  const int images = s->periodic[0] ? 3 : 0;
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t j = 0; j < s->n; j++)
      for (int image = 0; image < (2 * images + 1) * (2 * images + 1) * (2 * images + 1); image++) {
        const int w = 2 * images + 1,
                  turns[3] = {image % w - images, image / w % w - images, image / w / w - images};
        double square = 0;
        for (int k = 0; k < 3; k++) {
          double d = s->positions[3 * j + k] - s->positions[3 * i + k];
          for (int a = 0; a < 3; a++) d += turns[a] * s->cell[a][k];
          square += d * d;
        }
        n += square < r * r && (i != j || turns[0] || turns[1] || turns[2]);
      }
  return n;
}

static const double atom_energy[] = {-1.5, -2.25, -4};

/* What is linear in the numbers of atoms. */
static double sum_of_atoms(const structure *s) {
  double e = 0;
  for (int64_t i = 0; i < s->n; i++)
    e += atom_energy[s->numbers[i] == 1 ? 0 : s->numbers[i] == 6 ? 1 : 2];
  return e;
}

static double some_force(const structure *s, int64_t i) {
  (void)s;
  return i % 2 ? 0.3 : -0.4;
}

static void statistics(void **state) {
  double edges = 0, atoms = 0;
  int64_t n;
  (void)state;
  write_all("sums.xyz", &(labelling){sum_of_atoms, some_force, NULL});
  make_new(0, "--train sums.xyz --out new --epochs 0");
  for (int i = 0; i < FRAMES; i++) {
    edges += edges_of(&predicted[i], 3.2);
    atoms += (double)predicted[i].n;
  }
  clb_safetensors *file = open_tensors("new");
  expect_says(file, "species", "H C O");
  expect_says(file, "architecture", "nequip");
  expect_says(file, "layers.0.irreps_in", "4x0e");
  expect_says(file, "layers.0.irreps_out", "4x0e+3x1o+2x2e");
  expect_says(file, "layers.1.irreps_out", "4x0e");
  near_to("neighbours", number(file, "avg_num_neighbors"), edges / atoms, 1e-12);
  const double *shift = numbers(file, "species_shift", &n), *scale;
  assert_int_equal(n, 3);
  for (int s = 0; s < 3; s++) near_to("a shift", shift[s], atom_energy[s], 1e-9);
  scale = numbers(file, "species_scale", &n);
  for (int s = 0; s < 3; s++) near_to("a scale", scale[s], sqrt((0.09 + 0.16) / 2), 1e-12);
  clb_safetensors_close(&file);
}

/* Energies that do not determine the shifts: the shortest of those that fit. */
static void shortest_shifts(void **state) {
  int64_t n;
  (void)state;
  put_text("waters.xyz", "3\nenergy=-12\nO 0 0 0\nH 0 0 1\nH 0 1 0\n6\nenergy=-24\nO 0 0 0\nH 0 0 "
                         "1\nH 0 1 0\nO 3 0 0\nH 3 0 1\nH 3 1 0\n");
  make_new(0, "--train waters.xyz --out new --epochs 0");
  clb_safetensors *file = open_tensors("new");
  const double *shift = numbers(file, "species_shift", &n);
  near_to("that of H", shift[0], -12 * 2 / 5., 1e-9);
  near_to("that of O", shift[1], -12 * 1 / 5., 1e-9);
  near_to("a scale", numbers(file, "species_scale", &n)[0], 1, 0); /* nothing tells of one */
  clb_safetensors_close(&file);
}

/* ---- weights ---- */

/* Normal deviates, of this standard deviation. */
static void expect_normal(const char *what, const double *x, int64_t n, double deviation) {
  double mean = 0, square = 0, fourth = 0;
  for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n / deviation;
  for (int64_t i = 0; i < n; i++) {
    const double d = x[i] / deviation - mean;
    square += d * d / (double)n;
    fourth += d * d * d * d / (double)n;
  }
  const double most = 5 / sqrt((double)n);
  near_to(what, mean, 0, most);
  near_to(what, square, 1, most * sqrt(2));
  near_to(what, fourth, 3, most * sqrt(96));
}

static void weights_are_normal(void **state) {
  static const char *const names[] = {"embedding",
                                      "layers.0.linear_1.0e",
                                      "layers.0.linear_2.1o",
                                      "layers.0.self_connection.0e",
                                      "layers.0.radial.0",
                                      "layers.0.radial.1",
                                      "readout.0"};
  int64_t n, m;
  (void)state;
  json_decref(json_of("train --new nequip --features 48x0e+32x1o --layers 1 --radial 32 --train "
                      "p.xyz --out new --epochs 0 --lr 1 --device cpu --json"));
  clb_safetensors *file = open_tensors("new");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const clb_tensor *t = clb_safetensors_find(file, names[i]);
    if (!t) continue; /* of one layer vectors are not needed */
    const double *x = numbers(file, names[i], &n);
    expect_normal(names[i], x, n, 1);
  }
  const double *a = numbers(file, "layers.0.linear_1.0e", &n),
               *b = numbers(file, "layers.0.linear_2.0e", &m);
  assert_memory_not_equal(a, b, 64);
  clb_safetensors_close(&file);
}

/* MACE divides by the number of its tensors (docs/symmetric-contraction.md has them), which are of
   norm sqrt(2 l + 1). */
static void product_weights(void **state) {
  static const struct {
    int64_t paths;
    double tensors, norm;
  } blocks[] = {{1, 1, 1}, {4, 4, 1}, {8, 23, 1}, {1, 1, 3}, {3, 6, 3}, {12, 51, 3}};
  enum { K = 64, PATHS = 29, SPECIES = 3 };
  int64_t n, first = 0;
  (void)state;
  json_decref(json_of("train --new mace --features 64x0e+64x1o --layers 2 --radial 8 --train p.xyz "
                      "--out new --epochs 0 --lr 1 --device cpu --json"));
  clb_safetensors *file = open_tensors("new");
  const double *x = numbers(file, "layers.0.product", &n);
  assert_int_equal(n, SPECIES * PATHS * K);
  for (size_t b = 0; b < sizeof blocks / sizeof *blocks; first += blocks[b++].paths) {
    double of[SPECIES * 12 * K];
    const int64_t size = blocks[b].paths * K;
    for (int64_t s = 0; s < SPECIES; s++)
      memcpy(of + s * size, x + (s * PATHS + first) * K, (size_t)size * sizeof *of);
    expect_normal("product", of, SPECIES * size, sqrt(blocks[b].norm) / blocks[b].tensors);
  }
  clb_safetensors_close(&file);
}

static void seeds(void **state) {
  size_t n, m;
  (void)state;
  make_new(2, "--train p.xyz --out new --epochs 0 --seed 5");
  make_new(2, "--train p.xyz --out again --epochs 0 --seed 5");
  make_new(2, "--train p.xyz --out other_seed --epochs 0 --seed 6");
  unsigned char *a = get_file("new", &n), *b = get_file("again", &m);
  assert_int_equal(n, m);
  assert_memory_equal(a, b, n);
  free(b);
  b = get_file("other_seed", &m);
  assert_int_equal(n, m);
  assert_memory_not_equal(a, b, n);
  free(a);
  free(b);
}

/* ---- symmetries ---- */

/* A rotation by 1 about (1, 2, 2) / 3, then with `mirror` x -> -x. */
static void turn(double x[3], bool mirror) {
  const double u[3] = {1 / 3., 2 / 3., 2 / 3.}, c = cos(1), s = sin(1);
  const double along = u[0] * x[0] + u[1] * x[1] + u[2] * x[2],
               cross[3] = {u[1] * x[2] - u[2] * x[1], u[2] * x[0] - u[0] * x[2],
                           u[0] * x[1] - u[1] * x[0]};
  for (int k = 0; k < 3; k++) x[k] = c * x[k] + s * cross[k] + (1 - c) * along * u[k];
  if (mirror) x[0] = -x[0];
}

/* The frame: turned, moved, its atoms in reverse order, some in another cell; or stretched. */
static void write_moved(const char *path, const structure *s, bool mirror, double stretch) {
  FILE *f = fopen(path, "w");
  double cell[3][3];
  assert_non_null(f);
  memcpy(cell, s->cell, sizeof cell);
  fprintf(f, "%d\n", (int)s->n);
  for (int a = 0; a < 3; a++) turn(cell[a], mirror);
  for (int a = 0; a < 3; a++)
    for (int k = 0; k < 3; k++) cell[a][k] *= stretch;
  write_numbers(f, "Lattice=\"", 9, cell[0], "\" Properties=species:S:1:pos:R:3\n");
  for (int64_t i = s->n; i-- > 0;) {
    double x[3];
    memcpy(x, s->positions + 3 * i, sizeof x);
    turn(x, mirror);
    for (int k = 0; k < 3; k++)
      x[k] = x[k] * stretch + 0.7 + (i % 2 ? cell[1][k] : -2 * cell[0][k]);
    fputs(clb_element_symbols[s->numbers[i]], f);
    write_numbers(f, " ", 3, x, "\n");
  }
  fclose(f);
}

static double energy_of(const char *path) {
  json_t *o =
      json_of(format("energy --model new --structure %s --device cpu --exact --json", path));
  const double e = number_of(o, "energy");
  json_decref(o);
  return e;
}

static void symmetries(void **state) {
  (void)state;
  write_moved("plain.xyz", &predicted[2], false, 1);
  write_moved("mirrored.xyz", &predicted[2], true, 1);
  write_moved("stretched.xyz", &predicted[2], false, 1.05);
  FILE *f = fopen("one.xyz", "w");
  write_labelled(f, &predicted[2], &(labelling){same_energy, same_force, NULL}, NULL);
  fclose(f);
  for (int kind = 0; kind < KINDS; kind++) {
    make_new(kind, "--train p.xyz --out new --epochs 0");
    const double e = energy_of("one.xyz"), changed = energy_of("stretched.xyz");
    assert_true(isfinite(e));
    near_to("the energy of atoms that were turned", energy_of("plain.xyz"), e, 1e-9 * fabs(e));
    if (kind != 3) /* SevenNet's networks tell a structure from its mirror image */
      near_to("the energy of a mirror image", energy_of("mirrored.xyz"), e, 1e-9 * fabs(e));
    if (!(fabs(changed - e) > 1e-5)) fail_msg("kind %d: %.17g after %.17g", kind, changed, e);
  }
}

/* ---- learning ---- */

static void learns(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    json_t *o = json_of(format("train --new %s --features %s" TINY "--train p.xyz --out new "
                               "--epochs 40 --schedule cosine --clip 10 --batch 4 --json",
                               kinds[kind].kind, kinds[kind].features));
    const double first = number_of(json_array_get(json_object_get(o, "epochs"), 0), "train_loss"),
                 best = number_of(o, "best_loss");
    if (!(best * 2 < first)) fail_msg("%s: from %g to %g", kinds[kind].kind, first, best);
    json_t *e = json_of("gradient --model new --structures p.xyz --device cpu --exact --json --out "
                        "g --stress-weight 0");
    assert_true(number_of(e, "loss") < first); /* it is a model like others */
    json_decref(e);
    json_decref(o);
  }
}

static void learns_on_devices(void **state) {
  static const char *const devices[] = {"cpu", "cpu:interpreter", "opencl:0:0", "opencl:1:0"};
  double loss[3] = {0};
  (void)state;
  put_text("water.xyz",
           "3\nLattice=\"5 0 0 0 5 0 0 0 5\" Properties=species:S:1:pos:R:3:forces:R:3 "
           "energy=-14.2 stress=\"0.1 0 0 0 0.1 0 0 0 0.1\"\nO 0 0 0 0.1 -0.02 0\nH 0.9 0 "
           "0 -0.1 0.02 0\nH 0 0.95 0.1 0 0 0\n");
  for (size_t d = 0; d < 4; d++) {
    if (d > 1 && ended(start_clebsch(
                     format("energy -m model -s atoms.xyz --exact --device %s", devices[d]))))
      continue;
    json_t *o =
        json_of(format("train --new nequip --features 2x0e+2x1o --layers 2 --r-max 3 --radial 4 "
                       "--basis 3 --train water.xyz --out new --epochs 3 --dtype f64 --json "
                       "--device %s",
                       devices[d]));
    for (size_t e = 0; e < 3; e++) {
      const double x = number_of(json_array_get(json_object_get(o, "epochs"), e), "train_loss");
      if (d) near_to(devices[d], x, loss[e], 1e-11 * loss[e]);
      else loss[e] = x;
    }
    json_decref(o);
  }
}

/* A run with another seed than usual goes on from a restart, which knows it. */
static void goes_on(void **state) {
  size_t n, m;
  (void)state;
  make_new(0, "--train p.xyz --out whole --epochs 4 --seed 9");
  make_new(0, "--train p.xyz --out part --epochs 2 --seed 9 --restart r");
  make_new(0, "--train p.xyz --out part --epochs 4 --continue r");
  unsigned char *a = get_file("whole", &n), *b = get_file("part", &m);
  assert_int_equal(n, m);
  assert_memory_equal(a, b, n);
  free(a);
  free(b);
}

static void text(void **state) {
  (void)state;
  expect_printed("train --new nequip --features 4x0e+3x1o" TINY "--train sums.xyz --out new "
                 "--epochs 1",
                 "model      a new nequip: nequip, 2 layers, l <= 1, r_max 3.2 A, ",
                 "neighbours of an atom, scale 0.3536 eV; eV of H -1.5, C -2.25, O -4\n");
}

static void refuses(void **state) {
#define NEW "train --train p.xyz --out x --epochs 1 --lr 1 --new "
  static const refusal wrong[] = {
      {NEW "gemnet", 2, "--new"},
      {NEW "nequip --model model", 2, "--new makes a model: it has no --model"},
      {NEW "nequip --features 8x1o", 2, "even scalars first"},
      {NEW "nequip --features 8x0e+", 2, "not '8x0e+'"},
      {NEW "nequip --features 8x0e+4x1o+2x0o", 2, "then by degree"},
      {NEW "sevennet --features 8x0e+8x1o", 2, "of sevennet all irreps are even"},
      {NEW "mace --features 8x0e+4x1o", 2, "have as many channels"},
      {NEW "mace --features 8x0e+8x1e", 2, "of mace parities are those of degrees"},
      {NEW "mace --l-max 4", 2, "--l-max: of mace degrees are at most 3"},
      {NEW "nequip --correlation 2", 2, "--correlation is of --new mace"},
      {NEW "nequip --radial 8,,8", 2, "--radial is up to 7 widths"},
      {"train --train p.xyz --model model --layers 3 --out x --epochs 1 --lr 1", 2, "are of --new"},
      {"train --train p.xyz --out x --epochs 1 --lr 1", 2, "--model is missing, or --new"},
      {NEW "nequip --continue p.xyz", 1, "p.xyz: not a restart of"}};
  (void)state;
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
  assert_int_equal(access("x", F_OK), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(statistics),
                                     cmocka_unit_test(shortest_shifts),
                                     cmocka_unit_test(weights_are_normal),
                                     cmocka_unit_test(product_weights),
                                     cmocka_unit_test(seeds),
                                     cmocka_unit_test(symmetries),
                                     cmocka_unit_test(learns),
                                     cmocka_unit_test(learns_on_devices),
                                     cmocka_unit_test(goes_on),
                                     cmocka_unit_test(text),
                                     cmocka_unit_test(refuses)};
  return cmocka_run_group_tests(tests, make_predictions, remove_predictions);
}
