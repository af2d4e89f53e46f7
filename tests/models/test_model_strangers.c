/* tests/models/test_model_strangers.c - models, atoms and edges that no sane program makes: each is
   refused with a message that says where, or computed to finite numbers. */
#include "tests/models/model_places.h"

#include "models/file/safetensors.h"

static char path[] = "/tmp/clebsch_made_XXXXXX";
static clb_context *ctx;

static int open_context(void **state) {
  (void)state;
  const int file = mkstemp(path);
  return file < 0 || close(file) || clb_context_create("cpu:interpreter", &ctx);
}

static int close_context(void **state) {
  (void)state;
  clb_context_destroy(&ctx);
  return unlink(path);
}

static bool all_finite(int64_t n, const double *x) {
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(x[i])) return false;
  return true;
}

/* ---- files ---- */

/* Opens the file and computes. `said` NULL: it may succeed or fail, but never give a NaN, nor a
   message that does not say where. */
static void expect_end(const char *what, clb_dtype precision, const char *said) {
  clb_model *m;
  computed c = {0};
  const atom_set a = random_atoms(5, 2, true, 3);
  const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
  const char *place = path;
  clb_status s = clb_model_open(
      ctx, path, &(clb_model_options){.dtype = precision, .knots = CLB_NO_KNOTS}, &m);
  if (!s) {
    place = "["; /* of an array, or an atom */
    s = clb_model_compute(m, &atoms,
                          &(clb_model_results){&c.energy, c.e_atom, c.forces, c.stress, NULL});
  }
  if (s ? s != CLB_ERROR_ARGUMENT ||
              !(strstr(clb_error(ctx), place) || strstr(clb_error(ctx), "atom "))
        : said != NULL)
    fail_msg("%s: status %d: %s", what, s, clb_error(ctx));
  if (said && !strstr(clb_error(ctx), said))
    fail_msg("%s: no '%s' in %s", what, said, clb_error(ctx));
  if (!s && !(isfinite(c.energy) && all_finite(a.n, c.e_atom) && all_finite(3 * a.n, c.forces) &&
              all_finite(9, c.stress)))
    fail_msg("%s: a number is none", what);
  clb_model_destroy(&m);
}

typedef struct {
  const char *key, *value, *said;
} change;

static const change changes[] = {
    {"r_max", "1e300", "'r_max' is 1e+300; it must be from 0.01 to 1000"},
    {"r_max", "1e-300", "'r_max'"},
    {"r_max", "1e5", "'r_max'"},
    {"r_max", "-1", "'r_max'"},
    {"r_max", "NaN", "'r_max' of its metadata is not a number: \"NaN\""},
    {"r_max", "1e400", "'r_max'"},
    {"r_max", "3.1 ", NULL},
    {"r_max", "200", "neighbours"},
    {"avg_num_neighbors", "1e-300", NULL},
    {"avg_num_neighbors", "1e308", NULL},
    {"avg_num_neighbors", "5e-324", "comes out as"},
    {"cutoff_p", "64", NULL},
    {"cutoff_p", "2", NULL},
    {"energy_scale", "1e308", NULL},
    {"energy_scale", "0", NULL},
    {"norm_epsilon", "1e300", NULL},
    {"norm_epsilon", "1e-320", NULL},
    {"activation_even_scale", "1e308", NULL},
    {"radial_activation_scale", "1e308", NULL},
    {"species", "H C H", "'species' has H twice, as species 0 and 2"},
    {"species", "H  O", "not an element"},
    {"species", "O C H", NULL},
    {"species", "X C O", "\"X\", which is not an element"},
    {"species", "", "'species' is empty"},
    {"species", "H C O ", NULL},
    {"n_layers", "0", "'n_layers'"},
    {"n_layers", "65", "'n_layers'"},
    {"n_layers", "4", "layers.3."},
    {"n_layers", "2", "tensor 'layers.2."},
    {"n_layers", "1", "tensor 'layers.1."},
    {"l_max", "0", "'irreps_sh'"},
    {"l_max", "12", "'irreps_sh'"},
    {"readout_layers", "16", "readout."},
    {"architecture", "other", "only nequip, nequix, sevennet, mace, allegro and esen are known"},
    {"architecture", "\x1b[2Jowned", "'architecture' holds control characters"},
    {"format", "\x1b[31mred", "'format' holds control characters"},
    {"layers.0.paths", "0,0,0 0,0,0", "paths 0 and 1 make one message"},
    {"layers.0.paths", "0,1,0 0,1,1 0,2,2",
     "'layers.0.paths': path 0, \"0,1,0\": 0e times 1o holds no 0e"},
    {"layers.0.paths", "999999999,0,0", "must be X,Y,Z"},
    {"layers.0.paths", "", "is empty"},
    {"layers.0.paths", "0,0,0", "one for each"},
    {"layers.1.paths", "1,1,0 0,0,1 0,1,2 1,0,3 1,2,4 0,2,5 1,1,6",
     "path 0, \"1,1,0\": its message has 4 channels; they must be the 3"},
    {"layers.0.irreps_in", "2x0o", "layers.0"},
    {"layers.0.irreps_out", "", "layers.0.irreps_out"},
    {"layers.0.irreps_message", "1073741832x0e+3x1o+3x2e",
     "layers.0.irreps_message has 1073741856 numbers per atom"},
    {"layers.0.irreps_linear", "1073741816x0e+3x1o",
     "layers.0.irreps_linear has 1073741825 numbers per atom"},
    {"layers.0.irreps_linear", "99999999999x0e", "layers.0.irreps_linear is"},
    {"activation_gate", "softplus", "'activation_gate'"},
    {"layers.1.irreps_linear", NULL, "lack 'layers.1.irreps_linear'"},
};

/* Of NequIP's made model. */
static const change nequip_changes[] = {
    {"cutoffs", "one", NULL},
    {"cutoffs", "some", "'cutoffs' is \"some\"; only \"one\" or \"pairs\" is known"},
    {"cutoffs", "pairs", "'pair_cutoffs'"},
    {"pair_repulsion", "none", NULL},
    {"pair_repulsion", "zbl", "'zbl_p'"},
    {"self_connection", "both",
     "only \"none\", \"linear\", \"species\" and \"embedding\" are known"},
    {"self_connection", "embedding", "'layers.0.self_connection.0e'"},
    {"self_connection", "none", "tensor 'layers.0.self_connection.0e' has no place"},
    {"avg_num_neighbors", NULL, "lack 'avg_num_neighbors'"},
};

/* Of MADE_AGNESI, a model of MACE. */
static const change mace_changes[] = {
    {"cutoff_of", "both", "'cutoff_of' is \"both\"; only \"basis\" or \"weights\" is known"},
    {"distance_transform", "soft", "only \"none\" or \"agnesi\" is known"},
    {"distance_transform", "none", "tensor 'agnesi_radii' has no place"},
    {"agnesi_a", "0", "'agnesi_a' is 0; it must be positive"},
    {"agnesi_p", "65", "'agnesi_p' is 65; it must be from -64 to 64"},
    {"agnesi_q", "1e300", "'agnesi_q'"},
    {"pair_repulsion", "none", "tensor 'zbl_"},
    {"zbl_p", "0", "'zbl_p'"},
    {"l_max", "5", "'irreps_sh'"},
    {"irreps_sh", "1x0e+1x1e", "'irreps_sh' must have parity"},
    {"embedding", "one_hot", "only \"linear\" is known"},
    {"readout_activation", "tanh", "only \"silu\" is known"},
    {"readout_activation_scale", "1e308", NULL},
    {"n_layers", "1", "tensor 'layers.1."},
    {"layers.0.normalization", "none", "tensor 'layers.0.density' has no place"},
    {"layers.1.normalization", "density", "'layers.1.density'"},
    {"layers.0.self_connection", "species", "'layers.0.self_connection.0e'"},
    {"layers.0.correlation", "5", "'layers.0.correlation'"},
    {"layers.0.correlation", "3", "'layers.0.product'"},
    {"layers.0.readout_layers", "4", "'layers.0.readout_layers'"},
    {"layers.1.readout_layers", "0", "'layers.1.readout_layers'"},
    {"layers.0.self_connection", "none ", "only \"none\", \"species\" and \"linear\" are known"},
    {"layers.0.irreps_edge", "1x0e", "they must be the 1 of its features"},
    {"interaction", "gated", "'interaction'"},
    {"interaction", "gate", "but 'radial_normalization' not \"layer\""},
    {"radial_normalization", "batch", "only \"none\", \"fan_in\" and \"layer\" are known"},
    {"radial_normalization", "layer", "'radial_epsilon'"},
    {"layers.0.readout_layers", "2", "'layers.0.readout.1'"},
    {"layers.0.irreps_out", "2x0e", "'layers.0.product'"},
    {"layers.0.irreps_out", "2x0e+2x1e", "'layers.0.irreps_out' must be degrees 0, 1, ..."},
    {"layers.0.irreps_out", "2x0e+3x1o", "'layers.0.irreps_out' must be degrees 0, 1, ..."},
    {"layers.0.irreps_out", "3x0e+3x1o", "must have as many channels, not 2, 2 and 3"},
    {"layers.0.irreps_linear", "2x0e", "must have degrees 0 to l_max, 1"},
    {"layers.0.irreps_linear", "99999x0e+99999x1o", "99999 channels; they are at most"},
    {"layers.1.irreps_in", "2x0e", "layers.1.irreps_in is not layers.0.irreps_out"},
    {"layers.1.paths", "0,0,0", "it must be one for each"},
};

static void expect_changes(int which, const change *all, size_t n) {
  for (size_t i = 0; i < n; i++) {
    char what[200];
    snprintf(what, sizeof what, "%s = %s", all[i].key, all[i].value ? all[i].value : "none");
    made_write(&made_models[which], path, all[i].key, all[i].value);
    for (int single = 0; single < 2; single++)
      expect_end(what, single ? CLB_F32 : CLB_F64, all[i].said);
  }
}

static void metadata(void **state) {
  (void)state;
  expect_changes(0, changes, sizeof changes / sizeof *changes);
  expect_changes(2, nequip_changes, sizeof nequip_changes / sizeof *nequip_changes);
  expect_changes(MADE_AGNESI, mace_changes, sizeof mace_changes / sizeof *mace_changes);
}

/* All numbers of a tensor become x. */
static void set_tensor(const char *name, double x) {
  clb_error_sink e = {0};
  clb_safetensors *file;
  made_write(&made_models[0], path, NULL, NULL);
  assert_int_equal(clb_safetensors_open(&e, path, &file), CLB_OK);
  const clb_tensor *t = clb_safetensors_find(file, name),
                   *last = clb_safetensors_at(file, clb_safetensors_size(file) - 1);
  assert_non_null(t);
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  assert_int_equal(fseek(f, 0, SEEK_END), 0);
  assert_int_equal(fseek(f, ftell(f) - (long)last->end + (long)t->begin, SEEK_SET), 0);
  for (int64_t i = 0; i < t->count; i++) assert_int_equal(fwrite(&x, sizeof x, 1, f), 1);
  assert_int_equal(fclose(f), 0);
  clb_safetensors_close(&file);
}

static void tensors(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double x;
    const char *said;
  } all[] = {{"bessel_frequencies", 0, "number 0 of tensor 'bessel_frequencies' is 0"},
             {"bessel_frequencies", 1e300, "'bessel_frequencies'"},
             {"bessel_frequencies", NAN, "'bessel_frequencies'"},
             {"species_scale", INFINITY,
              "number 0 of tensor 'species_scale', inf, times 0.7 is not finite"},
             {"species_shift", 1e308, NULL},
             {"species_scale", 1e308, NULL},
             {"readout.0", 3e38, NULL},
             {"readout.0", NAN, "'readout.0'"},
             {"layers.0.norm.0e", 3e38, NULL},
             {"layers.0.radial.0", 3e38, NULL},
             {"layers.1.linear_2.1o", 1e300, NULL},
             {"layers.0.linear_1.0e", 1.5e308, NULL}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char what[100];
    snprintf(what, sizeof what, "%s = %g", all[i].name, all[i].x);
    set_tensor(all[i].name, all[i].x);
    for (int single = 0; single < 2; single++)
      expect_end(what, single ? CLB_F32 : CLB_F64, all[i].said);
  }
  set_tensor("readout.0", 1e300);
  expect_end("readout.0 = 1e300", CLB_F32, "more than single precision holds");
}

/* ---- edges ---- */

static void vectors(void **state) {
  (void)state;
  static const struct {
    double x;
    bool good;
  } all[] = {{1, true},       {NAN, false}, {INFINITY, false},    {1e200, false}, {0, false},
             {1e-200, false}, {3.1, true},  {3.0999999999, true}, {1e10, true}};
  static const int32_t species[2] = {0, 1}, senders[2] = {0, 1}, receivers[2] = {1, 0};
  made_write(&made_models[0], path, NULL, NULL);
  for (int single = 0; single < 2; single++)
    for (int knots = CLB_NO_KNOTS; knots < 64; knots += 33) {
      opened o =
          open_file("cpu:interpreter", path,
                    &(clb_model_options){.dtype = single ? CLB_F32 : CLB_F64, .knots = knots});
      double alone = 0;
      for (size_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
        const double x = all[i / 2].x, v[6] = {i % 2 ? 1 : x, 0, 0, -x, 0, 0};
        double energy = NAN, d[6], virial[9];
        const clb_model_edges e = {.n_local = 2,
                                   .n_total = 2,
                                   .n_edges = 2,
                                   .species = species,
                                   .senders = {.host = senders},
                                   .receivers = {.host = receivers},
                                   .vectors = v};
        const clb_status s = clb_model_compute_edges(
            o.model, &e,
            &(clb_model_edge_results){.energy = &energy, .d_vectors = d, .virial = virial});
        if (s != (all[i / 2].good ? CLB_OK : CLB_ERROR_ARGUMENT))
          fail_msg("edges of %g: status %d: %s", x, s, clb_error(o.ctx));
        if (s && !strstr(clb_error(o.ctx), i % 2 ? "vectors[1] is (" : "vectors[0] is ("))
          fail_msg("edges of %g: %s", x, clb_error(o.ctx));
        if (!s && !(isfinite(energy) && all_finite(6, d) && all_finite(9, virial)))
          fail_msg("edges of %g: a number is none", x);
        if (x == 3.1 && !(i % 2)) alone = energy;
        if (x == 1e10 && !(i % 2)) assert_true(energy == alone); /* long edges are ignored */
      }
      close_model(&o);
    }
}

/* ---- atoms ---- */

static void one_place(void **state) {
  (void)state;
  made_write(&made_models[0], path, NULL, NULL);
  opened o = open_file("cpu:interpreter", path, NULL);
  const double cell[9] = {5, 0, 0, 0, 5, 0, 0, 0, 5}, far[9] = {0, 0, 0, 2, 0, 0, 2.5, 1, 0};
  const int32_t species[3] = {0, 1, 2};
  double places[9], energy;
  for (int i = 0; i < 3; i++) {
    memcpy(places, far, sizeof places);
    if (i) places[6] = 2, places[7] = i == 1 ? 1e-4 : 5, places[8] = -10; /* an image of atom 1 */
    const clb_model_atoms a = {3, species, places, cell, {1, 1, 1}, .charge = 0};
    const clb_status s = clb_model_compute(o.model, &a, &(clb_model_results){.energy = &energy});
    if (s != (i ? CLB_ERROR_ARGUMENT : CLB_OK)) fail_msg("places %d: status %d", i, s);
    if (s && !strstr(clb_error(o.ctx), "positions[1] and positions[2] are one place"))
      fail_msg("%s", clb_error(o.ctx));
  }
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(metadata), cmocka_unit_test(tensors),
                                     cmocka_unit_test(vectors), cmocka_unit_test(one_place)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
