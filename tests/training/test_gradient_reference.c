/* tests/training/test_gradient_reference.c - gradients of losses by the tensors of real models
   against those of their own programs (double backward). CLB_TEST_TRAINING: the folder of these,
   NAME.file .safetensors: whole tensors, or checks of them. */
#include "tests/training/original_models.h"
#include "tests/models/model_places.h"
#include "tests/training/training_reference.h"

enum { STRUCTURES = 3, ATOMS = 8, ELEMENTS = 64, CHECKS = 5 + ELEMENTS };

/* ---- structures ---- */

typedef struct {
  clb_model_atoms atoms[STRUCTURES];
  clb_labels labels[STRUCTURES];
  int32_t species[STRUCTURES][ATOMS];
  double positions[STRUCTURES][3 * ATOMS], cell[STRUCTURES][9];
  double energy[STRUCTURES], forces[STRUCTURES][3 * ATOMS], stress[STRUCTURES][9];
  double weight[STRUCTURES];
} sample;

static void read_structure(const clb_model *m, const json_t *from, sample *s, int g) {
  double z[ATOMS];
  clb_model_atoms *a = &s->atoms[g];
  *a = (clb_model_atoms){.n = (int64_t)json_array_size(json_object_get(from, "Z")),
                         .species = s->species[g],
                         .positions = s->positions[g],
                         .charge = (int)json_integer_value(json_object_get(from, "charge")),
                         .spin = (int)json_integer_value(json_object_get(from, "spin"))};
  assert_true(numbers(json_object_get(from, "Z"), ATOMS, z));
  for (int64_t i = 0; i < a->n; i++)
    assert_true((s->species[g][i] = clb_model_species(m, (int)z[i])) >= 0);
  assert_true(numbers(json_object_get(from, "pos"), 3 * ATOMS, s->positions[g]));
  if (numbers(json_object_get(from, "cell"), 9, s->cell[g])) a->cell = s->cell[g];
  for (size_t d = 0; d < 3; d++)
    a->periodic[d] = json_is_true(json_array_get(json_object_get(from, "pbc"), d));
}

static void read_labels(const json_t *from, sample *s, int g) {
  clb_labels *l = &s->labels[g];
  *l = (clb_labels){.weight = &s->weight[g]};
  if (numbers(json_object_get(from, "energy"), 1, &s->energy[g])) l->energy = &s->energy[g];
  if (numbers(json_object_get(from, "forces"), 3 * ATOMS, s->forces[g])) l->forces = s->forces[g];
  if (numbers(json_object_get(from, "stress"), 9, s->stress[g])) l->stress = s->stress[g];
}

/* ---- checks of a tensor ---- */

static uint64_t hash(const char *name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
  return h;
}

/* The outputs 0, 1, ... of splitmix64 from this state. */
static uint64_t draw(uint64_t state, uint64_t i) {
  uint64_t x = state + (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static int make_checks(const char *name, const double *a, int64_t n, double check[CHECKS]) {
  const uint64_t h = hash(name);
  const int elements = n < ELEMENTS ? (int)n : ELEMENTS;
  for (int k = 0; k < 5; k++) check[k] = 0;
  for (int64_t i = 0; i < n; i++) {
    check[0] += a[i];
    check[1] += a[i] * a[i];
    for (unsigned v = 0; v < 3; v++)
      check[2 + v] += a[i] * ((double)(draw(h + v, (uint64_t)i) >> 11) * 0x1p-52 - 1);
  }
  check[1] = sqrt(check[1]);
  for (int j = 0; j < elements; j++)
    check[5 + j] = a[n <= ELEMENTS ? (uint64_t)j : draw(h + 3, (uint64_t)j) % (uint64_t)n];
  return 5 + elements;
}

/* The largest error, over the tensor's norm; of sums of n numbers over sqrt(n) times that. */
static double error_of(const char *name, const double *a, int64_t n, const double *wanted,
                       int64_t n_wanted) {
  double check[CHECKS], norm = 0, worst = 0;
  const bool whole = n_wanted == n;
  if (!whole && make_checks(name, a, n, check) != n_wanted) fail_msg("%s: other checks", name);
  for (int64_t i = 0; i < n && whole; i++) norm += wanted[i] * wanted[i];
  norm = whole ? sqrt(norm) : wanted[1];
  for (int64_t i = 0; i < n_wanted; i++) {
    const double off = fabs((whole ? a[i] : check[i]) - wanted[i]),
                 unit = !whole && i < 5 ? sqrt((double)n) * norm : norm;
    worst = fmax(worst, off > 0 ? off / unit : 0);
  }
  return worst;
}

/* ---- models ---- */

static const char *place(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/%s", getenv("CLB_TEST_TRAINING"), name);
  return path;
}

/* Each tensor that the file has for this loss. Returns how many. */
static int expect_tensors(const clb_model *m, const clb_safetensors *file, const char *loss,
                          const double *gradient, double most) {
  clb_tensor_info t;
  int count = 0;
  for (int64_t k = 0; !clb_model_tensor(m, k, &t); k++) {
    const char *name = format("%s/%s", loss, t.name);
    const clb_tensor *wanted = clb_safetensors_find(file, name);
    if (!wanted) continue;
    double *x = read_tensor(file, wanted);
    const double off = error_of(t.name, gradient + t.first, t.count, x, wanted->count);
    if (!(off <= most)) fail_msg("%s: off by %.2g of its norm", name, off);
    free(x);
    count++;
  }
  return count;
}

static void expect_loss(opened *o, const json_t *l, const json_t *result, sample *s,
                        const clb_safetensors *file, double *gradient, double most) {
  double found, terms[3];
  assert_true(numbers(json_object_get(l, "structure_weights"), STRUCTURES, s->weight));
  const clb_loss loss = read_loss(l);
  if (clb_model_gradient(
          o->model, STRUCTURES, s->atoms, s->labels, &loss,
          &(clb_gradient_results){.loss = &found, .terms = terms, .gradient = gradient}))
    fail_msg("%s", clb_error(o->ctx));
  near_to("loss", found, number_of(result, "loss"), 10 * most * number_of(result, "loss"));
  const int tensors = expect_tensors(o->model, file, text_of(l, "name"), gradient, most);
  if (tensors < 20) fail_msg("%d tensors", tensors);
}

static void expect_model(const char *device, const char *name, const char *path, clb_dtype type,
                         double most) {
  if (!getenv("CLB_TEST_TRAINING")) skip_because("CLB_TEST_TRAINING names no folder");
  if (!*path) skip_because("there is no model");
  opened o = open_file(device, path, &(clb_model_options){.dtype = type, .knots = 0, .trains = 1});
  json_t *all = read_json(place("reference.json"));
  const json_t *model = json_object_get(json_object_get(all, "models"), name),
               *batch = json_object_get(json_object_get(all, "batches"), text_of(model, "batch")),
               *losses = json_object_get(all, "losses");
  clb_error_sink error = {0};
  clb_safetensors *file;
  if (clb_safetensors_open(&error, place(format("%s.file.safetensors", name)), &file))
    fail_msg("%s", error.text.s);
  clb_model_info info;
  clb_model_describe(o.model, &info);
  double *gradient = malloc((size_t)info.parameters * sizeof *gradient);
  sample s;
  assert_non_null(gradient);
  for (int g = 0; g < STRUCTURES; g++) {
    read_structure(o.model, json_array_get(batch, (size_t)g), &s, g);
    read_labels(json_array_get(json_object_get(model, "labels"), (size_t)g), &s, g);
  }
  for (size_t i = 0; i < json_array_size(losses); i++) {
    const json_t *l = json_array_get(losses, i);
    expect_loss(&o, l, json_object_get(json_object_get(model, "results"), text_of(l, "name")), &s,
                file, gradient, most);
  }
  free(gradient);
  clb_safetensors_close(&file);
  json_decref(all);
  close_model(&o);
}

static void sevennet_0(void **state) {
  (void)state;
  expect_model("cpu", "sevennet_0", original_sevennet[0].path, CLB_F64, 1e-9);
}
static void sevennet_0_f32(void **state) {
  (void)state;
  expect_model("cpu", "sevennet_0", original_sevennet[0].path, CLB_F32, 1e-4);
}
static void sevennet_l3i5(void **state) {
  (void)state;
  expect_model("cpu", "sevennet_l3i5", original_sevennet[2].path, CLB_F64, 1e-9);
}
static void nequix_mp1(void **state) {
  (void)state;
  expect_model("cpu", "nequix_mp1", nequix, CLB_F64, 1e-9);
}
/* Its energies are of about 1,000 eV. */
static void nequip_water(void **state) {
  (void)state;
  expect_model("cpu", "nequip_water", water, CLB_F64, 1e-8);
}
static void mace_tiny(void **state) {
  (void)state;
  for (int i = 0; i < (SANITIZED ? 1 : MACES); i++)
    expect_model("cpu", original_mace[i].name, original_mace[i].path, CLB_F64, 1e-9);
}

/* Rows of charges and spins, also of those that do not occur, by double backward of MACE. */
static void mace_charges(void **state) {
  (void)state;
  static const char *const names[STRUCTURES] = {"H2O", "five", "apart"};
  outcome converted = run_convert(
      "--head", NULL, format("%s/mace/charged.model", getenv("CLB_TEST_DATA")), convert_out);
  if (converted.status) fail_msg("%s", converted.err);
  forget(&converted);
  opened o = open_file("cpu", convert_out,
                       &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .trains = 1});
  json_t *all = read_json(format("%s/mace_kinds_reference.json", getenv("CLB_TEST_DATA"))),
         *gradients = read_json(format("%s/mace_gradient_reference.json", getenv("CLB_TEST_DATA")));
  const json_t *must = json_object_get(gradients, "charged"),
               *models = json_object_get(all, "charged");
  clb_model_info info;
  clb_model_describe(o.model, &info);
  double *gradient = malloc((size_t)info.parameters * sizeof *gradient), found, wanted[ELEMENTS];
  sample s = {.weight = {1, 1, 1}};
  assert_non_null(gradient);
  for (int g = 0; g < STRUCTURES; g++) {
    read_structure(o.model, json_object_get(models, names[g]), &s, g);
    s.labels[g] = (clb_labels){&s.energy[g], s.forces[g], NULL, &s.weight[g]};
  }
  const clb_loss loss = {.function = CLB_LOSS_MSE, .energy = 1, .forces = 1};
  if (clb_model_gradient(o.model, STRUCTURES, s.atoms, s.labels, &loss,
                         &(clb_gradient_results){.loss = &found, .gradient = gradient}))
    fail_msg("%s", clb_error(o.ctx));
  near_to("loss", found, number_of(must, "loss"), 1e-9 * found);
  clb_tensor_info t;
  int tensors = 0;
  for (int64_t k = 0; !clb_model_tensor(o.model, k, &t); k++) {
    if (!json_object_get(must, t.name)) continue;
    assert_true(numbers(json_object_get(must, t.name), ELEMENTS, wanted));
    const double off = error_of(t.name, gradient + t.first, t.count, wanted, t.count);
    if (!(off <= 1e-9)) fail_msg("%s: off by %.2g of its norm", t.name, off);
    tensors++;
  }
  assert_int_equal(tensors, 2);
  free(gradient);
  json_decref(all);
  json_decref(gradients);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mace_tiny),
      cmocka_unit_test(mace_charges),
      {"sevennet_0", SANITIZED ? NULL : sevennet_0, NULL, NULL, NULL},
      {"sevennet_0_f32", SANITIZED ? NULL : sevennet_0_f32, NULL, NULL, NULL},
      {"sevennet_l3i5", SANITIZED || !getenv("CLB_TEST_LONG") ? NULL : sevennet_l3i5, NULL, NULL,
       NULL},
      {"nequix_mp1", SANITIZED ? NULL : nequix_mp1, NULL, NULL, NULL},
      cmocka_unit_test(nequip_water)};
  return cmocka_run_group_tests(tests, convert_models, remove_folder);
}
