/* tests/models/test_model_reference.c - real models against the results of their own programs.
   CLB_TEST_STRUCTURES: a folder with water96.extxyz. */
#include "tests/training/original_models.h"
#include "tests/models/model_places.h"

#include "tools/structures/structure.h"

/* ---- references ---- */

static void read_doubles(const json_t *from, double *to) {
  if (json_is_number(from)) *to = json_number_value(from);
  for (size_t i = 0; json_is_array(from) && i < json_array_size(from); i++) {
    const json_t *each = json_array_get(from, i);
    read_doubles(each, to + i * (json_is_array(each) ? json_array_size(each) : 1));
  }
}

static atom_set atoms_of(const opened *o, const json_t *r) {
  atom_set a = {.n = (int64_t)json_array_size(json_object_get(r, "Z"))};
  double z[MAX_ATOMS];
  read_doubles(json_object_get(r, "Z"), z);
  read_doubles(json_object_get(r, "pos"), a.positions);
  read_doubles(json_object_get(r, "cell"), a.cell);
  a.charge = (int)json_integer_value(json_object_get(r, "charge"));
  a.spin = (int)json_integer_value(json_object_get(r, "spin"));
  const json_t *pbc = json_object_get(r, "pbc");
  for (int d = 0; d < 3; d++)
    a.periodic[d] = pbc ? json_is_true(json_array_get(pbc, (size_t)d))
                        : json_is_array(json_object_get(r, "cell"));
  for (int64_t i = 0; i < a.n; i++)
    assert_true((a.species[i] = clb_model_species(o->model, (int)z[i])) >= 0);
  return a;
}

/* off: how far energies may be off in f64. */
static void expect_reference(opened *o, const char *name, const json_t *r, double off,
                             const clb_model_options *options) {
  const atom_set a = atoms_of(o, r);
  computed wanted = {0};
  read_doubles(json_object_get(r, "E"), &wanted.energy);
  read_doubles(json_object_get(r, "E_atom"), wanted.e_atom);
  read_doubles(json_object_get(r, "F"), wanted.forces);
  read_doubles(json_object_get(r, "stress"), wanted.stress);
  const computed c = compute_atoms(o, &a);
  clb_model_neighbours found;
  assert_int_equal(clb_model_last_neighbours(o->model, &found), CLB_OK);
  if (found.n_edges != json_integer_value(json_object_get(r, "n_edges")))
    fail_msg("%s has %d edges", name, (int)found.n_edges);
  const bool single = options->dtype == CLB_F32;
  const double strongest = largest(3 * a.n, wanted.forces),
               exact = 1e-8 + (options->knots > 0 ? 2e-6 * (1 + strongest) : 0);
  const double energy = single               ? 2e-6 * fabs(wanted.energy)
                        : options->knots > 0 ? exact
                                             : off,
               force = single ? 2e-5 * strongest + 1e-5 : exact;
  close_to(name, 1, &c.energy, &wanted.energy, energy);
  if (json_object_get(r, "E_atom")) close_to(name, a.n, c.e_atom, wanted.e_atom, energy);
  close_to(name, 3 * a.n, c.forces, wanted.forces, force);
  if (a.periodic[0]) close_to(name, 9, c.stress, wanted.stress, force);
}

/* Structures of at most `most` atoms. */
static void expect_structures(const char *device, const char *path, json_t *all, size_t most,
                              double off, const clb_model_options *options) {
  opened o = open_file(device, path, options);
  const char *name;
  json_t *r;
  json_object_foreach(all, name, r) if (json_array_size(json_object_get(r, "Z")) <= most)
      expect_reference(&o, name, r, off, options);
  close_model(&o);
}

static json_t *references(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", getenv("CLB_TEST_DATA"), name);
  json_t *all = json_load_file(path, 0, NULL);
  assert_non_null(all);
  return all;
}

/* ---- Nequix ---- */

static void expect_references(const char *device, const clb_model_options *options) {
  if (!*nequix) skip_because("CLB_TEST_NEQUIX does not name nequix-mp-1.nqx");
  json_t *all = references("nequix_mp1_reference.json");
  expect_structures(device, nequix, all, MAX_ATOMS, 1e-8, options);
  json_decref(all);
}

static void nequix_f64(void **state) {
  (void)state;
  expect_references("", &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}

static void nequix_f32(void **state) {
  (void)state;
  expect_references("", &(clb_model_options){.dtype = CLB_F32, .knots = CLB_NO_KNOTS});
}

static void nequix_described(void **state) {
  (void)state;
  if (!*nequix) skip_because("CLB_TEST_NEQUIX does not name nequix-mp-1.nqx");
  opened o = open_file("cpu", nequix, NULL);
  clb_model_info info;
  assert_int_equal(clb_model_describe(o.model, &info), CLB_OK);
  assert_string_equal(info.architecture, "nequix");
  assert_true(info.r_max == 6);
  assert_int_equal(info.n_layers, 4);
  assert_int_equal(info.l_max, 3);
  assert_int_equal(info.n_species, 89);
  assert_string_equal(info.symbols[13], "Si");
  assert_int_equal(info.atomic_numbers[88], 94);
  assert_int_equal(info.weights, 356 + 1312 + 1312 + 256);
  assert_int_equal(clb_model_species(o.model, 14), 13);
  assert_int_equal(clb_model_species(o.model, 84), -1);
  close_model(&o);
}

static void nequix_tables(void **state) {
  (void)state;
  expect_references("", &(clb_model_options){.dtype = CLB_F64, .knots = 600});
}

/* ---- SevenNet ---- */

static void expect_sevennets(const char *device, int first, int last, size_t most,
                             const clb_model_options *options) {
  for (int i = first; i < last; i++)
    if (!*original_sevennet[i].path)
      skip_because("CLB_TEST_SEVENNET does not name the folder of PyPI's sevenn 0.13.0");
  json_t *all = references("sevennet_reference.json");
  for (int i = first; i < last; i++)
    expect_structures(device, original_sevennet[i].path,
                      json_object_get(all, original_sevennet[i].name), most, 1e-9, options);
  json_decref(all);
}

static void sevennet_f64(void **state) {
  (void)state;
  expect_sevennets("cpu", 0, SANITIZED ? 1 : SEVENNETS, 12,
                   &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}

static void sevennet_f32(void **state) {
  (void)state;
  expect_sevennets("cpu", 0, 1, SANITIZED ? 3 : MAX_ATOMS,
                   &(clb_model_options){.dtype = CLB_F32, .knots = CLB_NO_KNOTS});
}

/* With XPLOR, whose curvature jumps, splines break there. */
static void sevennet_tables(void **state) {
  (void)state;
  expect_sevennets("cpu", 0, 3, 12, &(clb_model_options){.dtype = CLB_F64, .knots = 1000});
}

/* On a driver of OpenCL, the next one in each call; in long runs on all that are here.  Not under a
   sanitizer, with which Intel's does not start. */
static void on_opencl(void (*expect)(const char *device)) {
  enum { MOST = 4 };
  static int calls;
  char device[MOST][20];
  int found = 0;
  for (int platform = 0; platform < MOST; platform++) {
    clb_context *ctx = NULL;
    snprintf(device[found], sizeof *device, "opencl:%d:0", platform);
    found += !clb_context_create(device[found], &ctx);
    clb_context_destroy(&ctx);
  }
  if (!found) skip_because("there is no OpenCL driver");
  for (int i = 0; i < found; i++)
    if (long_tests() || i == calls % found) expect(device[i]);
  calls++;
}

static void expect_sevennet_0(const char *device) {
  expect_sevennets(device, 0, 1, 3, &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}
static void sevennet_opencl(void **state) {
  (void)state;
  on_opencl(expect_sevennet_0);
}

static void sevennet_interpreter(void **state) {
  (void)state;
  expect_sevennets("cpu:interpreter", 0, 2, 3,
                   &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}

/* Checkpoints of random weights, which sevennet_kinds.py and equflash_kinds.py made and describe;
   only: of such names; without, all but EquFlashV2's, which test_gradient has on a CPU. */
static void expect_sevennet_kinds(const char *device, const char *only, size_t most, int knots) {
  json_t *all = references("sevennet_kinds_reference.json"), *structures;
  const char *name;
  json_object_foreach(all, name, structures) {
    char from[600], to[80] = "";
    const char *modality = strchr(name, ':');
    if (only ? !strstr(name, only) : strstr(name, "_v2_") != NULL) continue;
    snprintf(from, sizeof from, "%s/sevennet/%.*s.pth", getenv("CLB_TEST_DATA"),
             (int)strcspn(name, ":"), name);
    convert_model(from, modality ? modality + 1 : NULL, "kind", to);
    assert_true(*to);
    expect_structures(device, to, structures, most, 1e-9,
                      &(clb_model_options){.dtype = CLB_F64, .knots = knots});
  }
  json_decref(all);
}

static void checkpoint_kinds(void **state) {
  (void)state;
  expect_sevennet_kinds("cpu:interpreter", NULL, MAX_ATOMS, CLB_NO_KNOTS);
  expect_sevennet_kinds("cpu:interpreter", "equflash_v2_", MAX_ATOMS, CLB_NO_KNOTS);
  expect_sevennet_kinds("cpu", "parity:mpa", MAX_ATOMS, CLB_NO_KNOTS);
  expect_sevennet_kinds("cpu", "inferred", MAX_ATOMS, 1000);
}

static void expect_sevennet_parity(const char *device) {
  expect_sevennet_kinds(device, "parity:mpa", 3, CLB_NO_KNOTS);
}
static void checkpoint_kinds_opencl(void **state) {
  (void)state;
  on_opencl(expect_sevennet_parity);
}

static void sevennet_modalities(void **state) {
  (void)state;
  char several[600], none[600];
  if (!*original_sevennet[3].path)
    skip_because("CLB_TEST_SEVENNET does not name the folder of PyPI's sevenn 0.13.0");
  snprintf(several, sizeof several, "%s/%s", getenv("CLB_TEST_SEVENNET"),
           original_sevennet[3].file);
  snprintf(none, sizeof none, "%s/%s", getenv("CLB_TEST_SEVENNET"), original_sevennet[0].file);
  expect_no_model("--modality", NULL, several,
                  "choose one of its modalities with --modality: R2SCAN, PBE");
  expect_no_model("--modality", "HSE", several, "there is no 'HSE': choose one of its modalities");
  expect_no_model("--modality", "PBE", none, "it has no modalities, so 'PBE' cannot be chosen");
}

/* ---- MACE ---- */

static void expect_mace(const char *device, int i, size_t most, const clb_model_options *options) {
  if (!*original_mace[i].path)
    skip_because("CLB_TEST_MACE does not name a folder of made MACE models, or there is no xz");
  json_t *all = references("mace_reference.json");
  expect_structures(device, original_mace[i].path, json_object_get(all, original_mace[i].name),
                    most, 1e-9, options);
  json_decref(all);
}

static void mace_f64(void **state) {
  (void)state;
  for (int i = 0; i < MACES; i++)
    expect_mace("cpu", i, SANITIZED ? 3 : MAX_ATOMS,
                &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}

static void mace_f32(void **state) {
  (void)state;
  for (int i = 0; i < MACES; i++)
    expect_mace("cpu", i, SANITIZED ? 3 : MAX_ATOMS,
                &(clb_model_options){.dtype = CLB_F32, .knots = CLB_NO_KNOTS});
}

static void mace_tables(void **state) {
  (void)state;
  for (int i = 0; i < MACES; i++)
    expect_mace("cpu", i, MAX_ATOMS, &(clb_model_options){.dtype = CLB_F64, .knots = 1000});
}

/* Converted models of random weights, 10 KB each, whose originals have what the other four lack:
   head 1 of 3; harmonics to degree 4; correlation 4; the cutoff apart from the basis, with Agnesi's
   distances; DensityResidual, then no residual; repulsion that ends at r_max by a step. Of the
   other models the originals are there (tests/data/mace_models.py): interactions with a gate;
   readouts with biases; charge and
   spin. */
static void path_of_kind(const char *name, char path[600]) {
  const char *folder = getenv("CLB_TEST_DATA");
  snprintf(path, 600, "%s/mace/%s.safetensors", folder, name);
  if (!access(path, R_OK)) return;
  outcome o = run_convert("--head", strcmp(name, "readouts") ? NULL : "second",
                          format("%s/mace/%s.model", folder, name), "kind");
  if (o.status) fail_msg("%s", o.err);
  forget(&o);
  snprintf(path, 600, "kind");
}

static void mace_kinds(void **state) {
  (void)state;
  json_t *all = references("mace_kinds_reference.json"), *structures;
  const char *name;
  assert_int_equal(json_object_size(all), 11);
  json_object_foreach(all, name, structures) {
    char path[600];
    path_of_kind(name, path);
    for (int knots = CLB_NO_KNOTS; knots <= 1000; knots += 1001)
      expect_structures(knots > 0 ? "cpu:interpreter" : "cpu", path, structures, MAX_ATOMS, 1e-9,
                        &(clb_model_options){.dtype = CLB_F64, .knots = knots});
  }
  json_decref(all);
}

/* Without what nobody made, a model with a gate is left. */
static void expect_each_mace(const char *device) {
  const clb_model_options options = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS};
  char path[600];
  json_t *all = references("mace_kinds_reference.json");
  path_of_kind("gated", path);
  expect_structures(device, path, json_object_get(all, "gated"), 3, 1e-9, &options);
  json_decref(all);
  for (int i = 0; i < MACES; i++) expect_mace(device, i, 3, &options);
}
static void mace_opencl(void **state) {
  (void)state;
  on_opencl(expect_each_mace);
}

static void mace_interpreter(void **state) {
  (void)state;
  expect_each_mace("cpu:interpreter");
}

/* ---- Allegro ---- */

/* Models of random weights, 8 to 38 KB each (tests/data/allegro_reference.py); of those that are
   not model files, the package or checkpoint, after its `ending`. Of `only`, or of all; structures
   of at most so many atoms. */
static void expect_allegro(const char *device, const char *only, const char *ending, size_t most,
                           const clb_model_options *options) {
  json_t *all = references("allegro_reference.json"), *structures;
  const char *name;
  json_object_foreach(all, name, structures) {
    char path[600], from[600];
    if (only && strcmp(name, only) != 0) continue;
    snprintf(path, sizeof path, "%s/allegro/%s.safetensors", getenv("CLB_TEST_DATA"), name);
    snprintf(from, sizeof from, "%s/allegro/%s.%s", getenv("CLB_TEST_DATA"), name, ending);
    if (access(path, R_OK)) convert_model(from, NULL, "allegro", path);
    expect_structures(device, path, structures, most, 1e-9, options);
  }
  json_decref(all);
}

static void allegro_f64(void **state) {
  (void)state;
  expect_allegro("cpu", NULL, "nequip.zip", MAX_ATOMS,
                 &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}

static void allegro_f32(void **state) {
  (void)state;
  expect_allegro("cpu", "bessel", "", MAX_ATOMS,
                 &(clb_model_options){.dtype = CLB_F32, .knots = CLB_NO_KNOTS});
}

static void allegro_interpreter(void **state) {
  (void)state;
  expect_allegro("cpu:interpreter", NULL, "ckpt", 3,
                 &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}

static void expect_small_allegro(const char *device) {
  expect_allegro(device, "bessel", "", 3,
                 &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
}
static void allegro_opencl(void **state) {
  (void)state;
  on_opencl(expect_small_allegro);
}

/* ---- eSEN: models of random weights (tests/data/esen_models.py), one of which is converted; at
   poles, too, where a frame's angle means nothing ---- */

static void expect_esen(const char *device, size_t most, const clb_model_options *options) {
  json_t *all = references("esen_reference.json"), *structures;
  const char *name;
  json_object_foreach(all, name, structures) {
    char path[600], from[600];
    snprintf(path, sizeof path, "%s/esen/%s.safetensors", getenv("CLB_TEST_DATA"), name);
    snprintf(from, sizeof from, "%s/esen/%s.pt", getenv("CLB_TEST_DATA"), name);
    if (access(path, R_OK)) convert_model(from, NULL, "esen", path);
    expect_structures(device, path, structures, most, 1e-9, options);
  }
  json_decref(all);
}
static void esen_f64(void **state) {
  (void)state;
  for (int blocks = 0; blocks < 3; blocks += 2)
    expect_esen("cpu", MAX_ATOMS,
                &(clb_model_options){
                    .dtype = CLB_F64, .knots = CLB_NO_KNOTS, .block_atoms = (int64_t)blocks});
}
static void esen_f32(void **state) {
  (void)state;
  expect_esen("cpu", MAX_ATOMS, &(clb_model_options){.dtype = CLB_F32});
}
static const clb_model_options esen_small = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS};
static void esen_interpreter(void **state) {
  (void)state;
  expect_esen("cpu:interpreter", 3, &esen_small);
}
static void expect_small_esen(const char *device) { expect_esen(device, 3, &esen_small); }
static void esen_opencl(void **state) {
  (void)state;
  on_opencl(expect_small_esen);
}

/* With all orders no rotation of all atoms changes the energy, and forces turn along: a cut of
   orders leaves that as it is, too, because the frame of an edge is the edge's. */
static void esen_turns(void **state) {
  (void)state;
  char path[600];
  snprintf(path, sizeof path, "%s/esen/cut.safetensors", getenv("CLB_TEST_DATA"));
  opened o = open_file("cpu", path, &esen_small);
  atom_set a = random_atoms(9, 3, false, 5), b = a;
  const double c = cos(0.7), s = sin(0.7);
  for (int64_t i = 0; i < a.n; i++) { /* about x, then about z */
    const double *r = a.positions + 3 * i, y = c * r[1] - s * r[2];
    double *to = b.positions + 3 * i;
    to[0] = c * r[0] - s * y, to[1] = s * r[0] + c * y, to[2] = s * r[1] + c * r[2];
  }
  const computed x = compute_atoms(&o, &a), y = compute_atoms(&o, &b);
  close_to("turned", 1, &y.energy, &x.energy, 1e-11);
  for (int64_t i = 0; i < a.n; i++) {
    const double *f = x.forces + 3 * i, g = c * f[1] - s * f[2],
                 must[] = {c * f[0] - s * g, s * f[0] + c * g, s * f[1] + c * f[2]};
    close_to("turned", 3, y.forces + 3 * i, must, 1e-11);
  }
  close_model(&o);
}

/* Structures of several charges and spins at once, and one that the model does not know. */
static void mace_charges(void **state) {
  (void)state;
  enum { MOST = 8 };
  char path[600];
  json_t *all = references("mace_kinds_reference.json"), *r;
  const char *name;
  atom_set set[MOST];
  clb_model_atoms atoms[MOST];
  clb_model_results results[MOST];
  double energy[MOST], wanted[MOST];
  int n = 0;
  path_of_kind("charged", path);
  opened o = open_file("cpu", path, &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
  json_object_foreach(json_object_get(all, "charged"), name, r) {
    set[n] = atoms_of(&o, r);
    const atom_set *a = &set[n];
    atoms[n] = (clb_model_atoms){a->n,
                                 a->species,
                                 a->positions,
                                 a->cell,
                                 {a->periodic[0], a->periodic[1], a->periodic[2]},
                                 a->charge,
                                 a->spin};
    wanted[n] = json_number_value(json_object_get(r, "E"));
    results[n] = (clb_model_results){.energy = &energy[n]};
    n++;
  }
  assert_int_equal(clb_model_compute_many(o.model, n, atoms, results), CLB_OK);
  close_to("charges", n, energy, wanted, 1e-9);
  clb_model_info info;
  assert_int_equal(clb_model_describe(o.model, &info), CLB_OK);
  assert_true(info.charges[0] == -2 && info.charges[1] == 2);
  assert_true(info.spins[0] == 0 && info.spins[1] == 3);
  atoms[0].charge = 3;
  assert_int_equal(clb_model_compute(o.model, &atoms[0], &results[0]), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(o.ctx), "the charge is 3; this model knows -2 ... 2"));
  atoms[0].charge = atoms[n - 1].charge; /* and then it computes again */
  assert_int_equal(clb_model_compute(o.model, &atoms[n - 1], &results[0]), CLB_OK);
  close_to("afterwards", 1, energy, wanted + n - 1, 1e-9);
  close_model(&o);
  json_decref(all);
}

/* ---- NequIP ---- */

/* Packages and checkpoints by nequip 0.19.1, of random weights (tests/data/nequip_models.py):
   parity and a deep radial network; degree 4 and ZBL, an embedding narrower than the features;
   cutoffs and neighbours of their own for pairs of types, moving averages, a hidden layer in the
   readout. */
static void expect_nequip(const char *device, const char *ending, size_t most, int knots) {
  json_t *all = references("nequip_reference.json"), *structures;
  const char *name;
  assert_int_equal(json_object_size(all), 3);
  json_object_foreach(all, name, structures) {
    char from[600], path[80];
    snprintf(from, sizeof from, "%s/nequip/%s.%s", getenv("CLB_TEST_DATA"), name, ending);
    convert_model(from, NULL, "nequip", path);
    expect_structures(device, path, structures, most, 1e-9,
                      &(clb_model_options){.dtype = CLB_F64, .knots = knots});
  }
  json_decref(all);
}

static void nequip_packages(void **state) {
  (void)state;
  expect_nequip("cpu", "nequip.zip", MAX_ATOMS, CLB_NO_KNOTS);
}

static void nequip_checkpoints(void **state) {
  (void)state;
  expect_nequip("cpu", "ckpt", 3, CLB_NO_KNOTS);
}

/* One of them. */
static void expect_one_nequip(const char *device, size_t most, int knots) {
  json_t *all = references("nequip_reference.json");
  char path[80];
  convert_model(format("%s/nequip/pairs.ckpt", getenv("CLB_TEST_DATA")), NULL, "nequip", path);
  expect_structures(device, path, json_object_get(all, "pairs"), most, 1e-9,
                    &(clb_model_options){.dtype = CLB_F64, .knots = knots});
  json_decref(all);
}

static void nequip_tables(void **state) {
  (void)state;
  expect_one_nequip("cpu", MAX_ATOMS, 1000);
}

static void expect_small_nequip(const char *device) { expect_one_nequip(device, 5, CLB_NO_KNOTS); }
static void nequip_opencl(void **state) {
  (void)state;
  on_opencl(expect_small_nequip);
}

static void nequip_interpreter(void **state) {
  (void)state;
  expect_nequip("cpu:interpreter", "ckpt", 5, CLB_NO_KNOTS);
}

/* ---- NequIP's water ---- */

static atom_set water_box(const clb_model *model, const char *path) {
  char error[256];
  structure s;
  if (!structure_read(path, NULL, &s, error, sizeof error)) fail_msg("%s", error);
  atom_set a = {.n = s.n};
  assert_true(s.n <= MAX_ATOMS);
  memcpy(a.positions, s.positions, (size_t)s.n * 3 * sizeof *a.positions);
  memcpy(a.cell, s.cell, sizeof a.cell);
  for (int64_t i = 0; i < s.n; i++) a.species[i] = clb_model_species(model, s.numbers[i]);
  for (int d = 0; d < 3; d++) a.periodic[d] = s.periodic[d];
  structure_free(&s);
  return a;
}

static void water_energies(void **state) {
  (void)state;
  char path[512];
  const char *folder = getenv("CLB_TEST_STRUCTURES");
  snprintf(path, sizeof path, "%s/water96.extxyz", folder ? folder : ".");
  if (!*water) skip_because("there is no water.pth (package cp2k-data, or CLB_TEST_NEQUIP)");
  if (!folder || access(path, R_OK))
    skip_because("CLB_TEST_STRUCTURES does not name a folder with water96.extxyz");
  computed double_precision = {0};
  for (int single = 0; single < 2; single++) {
    opened o =
        open_file("", water,
                  &(clb_model_options){.dtype = single ? CLB_F32 : CLB_F64, .knots = CLB_NO_KNOTS});
    const atom_set a = water_box(o.model, path);
    const computed c = compute_atoms(&o, &a);
    close_to("energy", 1, &c.energy, &(double){-14983.5073}, single ? 2e-6 * 14984 : 1e-3);
    if (!single) double_precision = c;
    close_to("force", 3 * a.n, c.forces, double_precision.forces,
             2e-5 * largest(3 * a.n, double_precision.forces) + 1e-5);
    close_model(&o);
  }
}

/* With the knots that the library chooses, forces are as near to the networks' as model.h says. */
static void chosen_knots(void **state) {
  (void)state;
  const char *folder = getenv("CLB_TEST_STRUCTURES"), *paths[] = {water,
                                                                  nequix,
                                                                  original_sevennet[0].path,
                                                                  original_sevennet[2].path,
                                                                  original_mace[0].path,
                                                                  original_mace[2].path,
                                                                  original_mace[3].path};
  char structure_path[512];
  snprintf(structure_path, sizeof structure_path, "%s/water96.extxyz", folder ? folder : ".");
  if (!folder || access(structure_path, R_OK))
    skip_because("CLB_TEST_STRUCTURES does not name a folder with water96.extxyz");
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    if (!*paths[i]) continue;
    opened chosen = open_file("cpu", paths[i], &(clb_model_options){.dtype = CLB_F64}),
           networks = open_file("cpu", paths[i],
                                &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS});
    const atom_set a = water_box(networks.model, structure_path);
    const computed is = compute_atoms(&chosen, &a), wanted = compute_atoms(&networks, &a);
    clb_model_info info;
    assert_int_equal(clb_model_describe(chosen.model, &info), CLB_OK);
    assert_true(info.knots >= 513 && info.table_force_error > 0 && info.table_force_error <= 1e-5);
    close_to(paths[i], 3 * a.n, is.forces, wanted.forces, 1e-5);
    close_model(&chosen);
    close_model(&networks);
  }
}

/* Compiled kernels are not sanitized: one type of each is enough there. */
int main(void) {
  const struct CMUnitTest tests[] = {
      {"chosen_knots", SANITIZED ? NULL : chosen_knots, NULL, NULL, NULL},
      cmocka_unit_test(nequip_packages),
      cmocka_unit_test(nequip_checkpoints),
      {"nequip_tables", SANITIZED ? NULL : nequip_tables, NULL, NULL, NULL},
      cmocka_unit_test(nequip_interpreter),
      {"nequip_opencl", SANITIZED ? NULL : nequip_opencl, NULL, NULL, NULL},
      cmocka_unit_test(nequix_described),
      cmocka_unit_test(nequix_f64),
      {"nequix_f32", SANITIZED ? NULL : nequix_f32, NULL, NULL, NULL},
      {"nequix_tables", SANITIZED ? NULL : nequix_tables, NULL, NULL, NULL},
      cmocka_unit_test(sevennet_f64),
      {"sevennet_f32", SANITIZED ? NULL : sevennet_f32, NULL, NULL, NULL},
      {"sevennet_tables", SANITIZED ? NULL : sevennet_tables, NULL, NULL, NULL},
      cmocka_unit_test(checkpoint_kinds),
      {"checkpoint_kinds_opencl", SANITIZED ? NULL : checkpoint_kinds_opencl, NULL, NULL, NULL},
      {"sevennet_opencl", SANITIZED ? NULL : sevennet_opencl, NULL, NULL, NULL},
      cmocka_unit_test(sevennet_interpreter),
      cmocka_unit_test(sevennet_modalities),
      cmocka_unit_test(mace_f64),
      {"mace_f32", SANITIZED ? NULL : mace_f32, NULL, NULL, NULL},
      {"mace_tables", SANITIZED ? NULL : mace_tables, NULL, NULL, NULL},
      cmocka_unit_test(mace_kinds),
      cmocka_unit_test(mace_charges),
      {"mace_opencl", SANITIZED ? NULL : mace_opencl, NULL, NULL, NULL},
      cmocka_unit_test(mace_interpreter),
      cmocka_unit_test(allegro_f64),
      {"allegro_f32", SANITIZED ? NULL : allegro_f32, NULL, NULL, NULL},
      cmocka_unit_test(allegro_interpreter),
      {"allegro_opencl", SANITIZED ? NULL : allegro_opencl, NULL, NULL, NULL},
      cmocka_unit_test(esen_f64),
      {"esen_f32", SANITIZED ? NULL : esen_f32, NULL, NULL, NULL},
      cmocka_unit_test(esen_interpreter),
      {"esen_opencl", SANITIZED ? NULL : esen_opencl, NULL, NULL, NULL},
      cmocka_unit_test(esen_turns),
      cmocka_unit_test(water_energies)};
  return cmocka_run_group_tests(tests, convert_models, remove_folder);
}
