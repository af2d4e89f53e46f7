/* tests/tools/test_convert_saved.c - `clebsch convert` on what PyTorch saves of SevenNet and MACE:
   tiny made models (tests/fuzz/make_torch_models.py), and files that are wrong. */
#include "tests/tools/convert_archive.h"

#include <math.h>

/* With a folder, one of the tests' data. */
static const char *seed(const char *name) {
  static char path[600];
  const bool data = strchr(name, '/');
  const char *folder = getenv(data ? "CLB_TEST_DATA" : "CLB_TEST_CORPUS");
  assert_non_null(folder);
  snprintf(path, sizeof path, "%s/%s%s", folder, data ? "" : "torch/", name);
  return path;
}

typedef const char *const pair[2];

static void expect_all_said(const clb_safetensors *file, const pair *said, size_t n) {
  for (size_t i = 0; i < n; i++) expect_said(file, said[i][0], said[i][1]);
}

static void expect_tensors(const clb_safetensors *file, const expected_tensor *all, size_t n) {
  for (size_t i = 0; i < n; i++) expect_tensor(file, &all[i]);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- SevenNet ---- */

/* Numbers: the script's, read back by NumPy. */
static void converts_sevennet(void **state) {
  (void)state;
  static const pair said[] = {{"architecture", "sevennet"},
                              {"species", "H O"},
                              {"irreps_sh", "1x0e+1x1e"},
                              {"cutoff", "xplor"},
                              {"cutoff_on", "2.5"},
                              {"avg_num_neighbors", "16"},
                              {"layers.1.irreps_in", "2x0e+1x1e"},
                              {"layers.1.paths", "0,0,0 1,1,1"},
                              {"layers.1.irreps_message", "2x0e+1x0e"}};
  static const expected_tensor tensors[] = {
      {"bessel_frequencies", "F64", {2}, -2.8125, -1.5, -4.3125},
      {"layers.0.radial.1", "F64", {3, 4}, 0.4375, -0.5625, 1.1875},
      {"layers.0.self_connection.0e", "F32", {2, 3}, -0.5625, -0.3125, -0.6875},
      {"readout.1", "F32", {1, 1}, -0.0625, -0.0625, -0.0625}};
  clb_safetensors *file = convert_file(seed("sevennet.pth"));
  expect_all_said(file, said, COUNT(said));
  expect_tensors(file, tensors, COUNT(tensors));
  clb_safetensors_close(&file);
}

/* ---- MACE ---- */

/* With density, distance transform, repulsion; of two heads the second. */
static void converts_module(void **state) {
  (void)state;
  static const pair said[] = {{"architecture", "mace"},
                              {"species", "H O"},
                              {"r_max", "3"},
                              {"irreps_sh", "1x0e+1x1o"},
                              {"cutoff", "polynomial"},
                              {"cutoff_p", "5"},
                              {"cutoff_of", "weights"},
                              {"distance_transform", "agnesi"},
                              {"agnesi_a", "1.0805"},
                              {"agnesi_p", "4.5791"},
                              {"agnesi_q", "0.9183"},
                              {"pair_repulsion", "zbl"},
                              {"zbl_p", "5"},
                              {"radial_layers", "2"},
                              {"energy_scale", "1"},
                              {"layers.0.normalization", "density"},
                              {"layers.0.self_connection", "none"},
                              {"layers.0.correlation", "2"},
                              {"layers.0.irreps_out", "2x0e+2x1o"},
                              {"layers.0.readout_layers", "1"},
                              {"layers.1.self_connection", "species"},
                              {"layers.1.paths", "0,0,0 1,1,1 0,1,2 1,0,3"},
                              {"layers.1.irreps_message", "2x0e+2x0e+2x1o+2x1o"},
                              {"layers.1.irreps_out", "2x0e"},
                              {"layers.1.readout_layers", "2"}};
  static const expected_tensor tensors[] = {
      {"species_scale", "F64", {2}, 0.25, 0.25, 0.5},
      {"species_shift", "F64", {2}, -0.375, 0.0625, -0.3125},
      {"embedding", "F64", {2, 2}, -0.875, 0.4375, -0.875},
      {"bessel_frequencies", "F64", {2}, 3.141592653589793, 6.283185307179586, 9.42477796076938},
      {"agnesi_radii", "F64", {2}, 0.25, 0.6000000000000001, 0.85},
      {"zbl_radii", "F64", {2}, 0.25, 0.6000000000000001, 0.85},
      {"zbl_coefficients", "F64", {4}, 0.1818, 0.02817, 1.00007},
      {"layers.0.linear_3.1o", "F64", {2, 2, 2}, 0.125, -0.6875, -0.3125},
      {"layers.0.readout.0", "F64", {2, 1}, 0.9375, -0.125, 0.8125},
      {"layers.1.linear_2.0e", "F64", {4, 2}, 0.125, -0.6875, -0.3125},
      {"layers.1.self_connection.0e", "F64", {2, 2, 2}, -0.8125, 0.3125, -0.0625},
      {"layers.1.radial.1", "F64", {3, 8}, 0.5625, 0.9375, 1.9375},
      {"layers.1.readout.0", "F64", {2, 2}, -0.3125, -0.0625, -0.75}};
  clb_safetensors *file = convert_head("cluster", seed("mace.model"));
  expect_all_said(file, said, COUNT(said));
  expect_tensors(file, tensors, COUNT(tensors));
  /* MACE's basis is sqrt(2 / r_max), ours 2 / r_max; harmonics of odd degree are negated; a hidden
     layer is divided by the root of its channels of all heads */
  double *first = read_tensor(file, clb_safetensors_find(file, "layers.0.radial.0")),
         *last = read_tensor(file, clb_safetensors_find(file, "layers.1.radial.1")),
         *density = read_tensor(file, clb_safetensors_find(file, "layers.0.density")),
         *hidden = read_tensor(file, clb_safetensors_find(file, "layers.1.readout.1")),
         *screening = read_tensor(file, clb_safetensors_find(file, "zbl_screening"));
  static const double signs[] = {1, 1, -1, -1, -1, -1, 1, 1},
                      row[] = {0.5625, -0.9375, -0.5, -0.0625, 0.375, 0.8125, -0.6875, -0.25};
  assert_true(fabs(first[0] - sqrt(1.5) * 0.8125) < 1e-15);
  assert_true(fabs(density[0] + sqrt(1.5) * 0.4375) < 1e-15 && density[1] == 0);
  assert_true(fabs(hidden[0] + 0.4375 * sqrt(0.5)) < 1e-15 && hidden[0] == -hidden[1]);
  assert_true(fabs(screening[1] - pow(8, 0.3) / (0.4543 * 0.529)) < 1e-14);
  for (int i = 0; i < 8; i++) assert_true(last[i] == signs[i] * row[i]);
  double *const all[] = {first, last, density, hidden, screening};
  for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
  clb_safetensors_close(&file);
}

/* Paths: A_0, [A_0 A_0], [A_1 A_1], A_1, [A_0 A_1]. Tensors of the basis have norm 1; those of the
   file, in the same order, have norms 1, 1, 1 and sqrt 3, and for the last path there are two, A_0
   A_1 and A_1 A_0, whose symmetric part is sqrt 1.5 times the basis's. */
static void projects_products(void **state) {
  (void)state;
  static const double file[2][6][2] = {/* weights: [species][tensor][channel] */
                                       {{0.625, -0.875},
                                        {-0.1875, 0.25},
                                        {0.6875, -0.8125},
                                        {0.375, 0.8125},
                                        {0.875, -0.625},
                                        {-0.1875, 0.25}},
                                       {{-0.4375, 0},
                                        {-0.375, 0.0625},
                                        {0.5, 0.9375},
                                        {-0.6875, -0.25},
                                        {0.6875, -0.8125},
                                        {-0.375, 0.0625}}};
  static const int64_t shape[] = {2, 5, 2};
  clb_safetensors *model = convert_head("bulk", seed("mace.model"));
  const clb_tensor *t = clb_safetensors_find(model, "layers.0.product");
  assert_true(t && t->rank == 3 && !memcmp(t->shape, shape, sizeof shape));
  double *x = read_tensor(model, t);
  for (int i = 0; i < 20; i++) {
    const double(*w)[2] = file[i / 10];
    const int path = i / 2 % 5, c = i % 2;
    const double must = path < 3    ? w[path][c]
                        : path == 3 ? sqrt(3) * w[3][c]
                                    : sqrt(1.5) * (w[4][c] + w[5][c]);
    if (!(fabs(x[i] - must) < 1e-14)) fail_msg("weight %d is %.17g, not %.17g", i, x[i], must);
  }
  free(x);
  clb_safetensors_close(&model);
}

static void converts_script(void **state) {
  (void)state;
  static const pair said[] = {
      {"architecture", "mace"},           {"cutoff_of", "basis"},
      {"distance_transform", "none"},     {"pair_repulsion", "none"},
      {"layers.0.normalization", "none"}, {"layers.1.self_connection", "species"}};
  clb_safetensors *file = convert_file(seed("mace.pth"));
  expect_all_said(file, said, COUNT(said));
  /* linear_2 is divided by avg_num_neighbors, 4 */
  const clb_tensor *density = clb_safetensors_find(file, "layers.0.density");
  assert_null(density);
  double *x = read_tensor(file, clb_safetensors_find(file, "layers.0.linear_2.0e"));
  for (int i = 0; i < 4; i++) assert_true(fabs(64 * x[i] - round(64 * x[i])) < 1e-12);
  free(x);
  clb_safetensors_close(&file);
}

static void expect_head_refused(const char *head, const char *name, const char *what) {
  expect_no_model("--head", head, seed(name), what);
}

static void chooses_heads(void **state) {
  (void)state;
  unlink(convert_out);
  expect_head_refused(NULL, "mace.model",
                      "it has several heads: choose one of its heads with --head: bulk, cluster");
  expect_head_refused("gas", "mace.model",
                      "there is no 'gas': choose one of its heads with --head: bulk, cluster");
  expect_head_refused("gas", "mace.pth",
                      "there is no 'gas': choose one of its heads with --head: Default");
  expect_head_refused("gas", "sevennet.pth", "it has no heads, so 'gas' cannot be chosen");
  clb_safetensors *bulk = convert_head("bulk", seed("mace.model"));
  expect_tensor(bulk,
                &(expected_tensor){"layers.0.readout.0", "F64", {2, 1}, 0.5, -0.5625, -0.0625});
  expect_tensor(bulk, &(expected_tensor){"species_scale", "F64", {2}, -0.1875, -0.1875, -0.375});
  clb_safetensors_close(&bulk);
  clb_safetensors *only = convert_head("Default", seed("mace.pth"));
  clb_safetensors_close(&only);
}

/* ---- files that are wrong ---- */

typedef struct {
  const char *from, *to;
  size_t length; /* 0: of strings */
  const char *what;
} change_case;

static void refuses_changes(const char *name, const char *head, const change_case *cases,
                            size_t n) {
  size_t bytes;
  unsigned char *file = get_file(seed(name), &bytes);
  assert_non_null(file);
  unlink(convert_out);
  for (size_t i = 0; i < n; i++) {
    const change_case *c = &cases[i];
    change(file, bytes, c->from, c->to, c->length ? c->length : strlen(c->from));
    refused_head(head, made.bytes, made.n, c->what);
  }
  free(file);
}

static void refuses_modules(void **state) {
  (void)state;
  static const change_case cases[] = {
      {"models\nScaleShiftMACE", "models\nScaleShiftBOTN", 0,
       "a 'ScaleShiftBOTN', which is not supported: only MACE and ScaleShiftMACE are"},
      {"mace.modules.models", "evil.modules.models", 0,
       "asks for 'evil.modules.models ScaleShiftMACE', which no model needs"},
      {"ticDensityInter", "ticDensitzInter", 0,
       "interaction 0 is a RealAgnosticDensitzInteractionBlock, which is not supported"},
      {"ensityResidualI", "ensityAttentioI", 0,
       "interaction 1 is a RealAgnosticDensityAttentioInteractionBlock, which is not supported"},
      {"BesselBasis", "ChebysBasis", 0,
       "'bessel_fn' is a ChebysBasis, which is not supported: only BesselBasis is"},
      {"AgnesiTransform", "SooootTransform", 0, "'distance_transform' is a SooootTransform"},
      {"PolynomialCutoff", "ExponentalCutoff", 0, "'cutoff_fn' is a ExponentalCutoff"},
      {"ZBLBasis", "ZPLBasis", 0, "'pair_repulsion_fn' is a ZPLBasis"},
      {"NonLinearReadoutBlock", "NonLinearReadoutBlick", 0,
       "readout 1 is a NonLinearReadoutBlick, which is not supported"},
      {"\nLinearReadoutBlock", "\nBiasedReadoutBlock", 0, "readout 0 is a BiasedReadoutBlock"},
      {"\nLinear\n", "\nLinexr\n", 0, "'linear' is a Linexr"},
      {"e3nn.o3._tensor_", "cuequivariance__", 0,
       "it was saved where cuEquivariance has no kernels: 'mace_cueq_to_e3nn X.model "
       "--return_model --output_model e3nn.model'"},
      {"e3nn.o3._tensor_", "openequivariance", 0,
       "those of OpenEquivariance: 'python -m mace.cli.convert_oeq_e3nn X.model"},
      {"functional\nsilu", "functional\ntanh", 0, "is tanh, times 1.67918; only silu"},
      {"scale_shift", "scale_shaft", 0, "module 'scale_shaft' is not supported"},
      {"component", "integrals", 0, "harmonics that are not normalised by component"},
      {"use_sc", "use_cs", 0, "lacks 'use_sc': not a model of MACE of a supported kind"},
      {"U_matrix_1", "U_matrix_x", 0, "product 0 has correlation 0; it must be from 1 to 4"},
      {"weights_max", "weights_min", 0, "lacks 'weights_max'"},
      {"skip_tp", "skip_pt", 0, "lacks 'skip_tp'"},
      {"covalent_radii", "covalent_bonds", 0, "lacks 'covalent_radii'"},
      {"atomic_numbers", "atomic_letters", 0, "lacks 'atomic_numbers'"},
      {"torch\nLongStorage", "torch\nLoooStorage", 0, "asks for 'torch LoooStorage'"},
      {"numpy\ndtype", "numpy\ndtipe", 0, "its atomic numbers are not numbers"},
      {"\2\0\0\0i8", "\2\0\0\0c8", 6, "its atomic numbers are not numbers"},
      {"\1\0\0\0<", "\1\0\0\0>", 5, "its atomic numbers are not numbers"},
      {"\x08\0\0\0\x08\0", "\x08\0\0\0\x01\0", 6,
       "its atomic numbers are not those of different elements"},
      {"K\4K\4K\2\x87", "K\4K\5K\2\x87", 7, "are not of the shape of their degrees"},
      {"K\4K\4K\2\x87", "K\4K\xffK\2\x87", 7,
       "tensor 'U_matrix_2' reaches beyond its entry 'data/Double'"},
      {"K\x08K\2K\1\x87", "K\x08K\1K\2\x87", 7,
       "U_matrix_2 of product 0 for degree 0 is not equivariant"},
  };
  refuses_changes("mace.model", "bulk", cases, COUNT(cases));
}

/* What is read of cuEquivariance's modules, in a model of one interaction's kind without a gate. */
static void refuses_cuequivariance(void **state) {
  (void)state;
  static const change_case cases[] = {
      {"contraction_degree", "contraction_debris", 0, "lacks 'contraction_degree'"},
      {"path_indices", "path_indexes", 0, "it was saved where cuEquivariance has no kernels"},
      {"num_operands", "num_operates", 0, "lacks 'num_operands'"},
      {"path_coefficients", "path_coefficiency", 0, "lacks 'path_coefficients'"},
      {"buffer_num_segments", "buffer_num_sediment", 0, "lacks 'm.buffer_num_segments'"},
      {"_mulirreps", "_multirrep", 0, "its first features are not scalars alone"},
      {"(K\0K\1K\2K\0K\1K\1K\2", "(K\1K\1K\2K\0K\1K\1K\2", 15,
       "has other operands than weights, messages and its output"}};
  refuses_changes("mace/projected.model", NULL, cases, COUNT(cases));
}

static void refuses_scripts(void **state) {
  (void)state;
  static const change_case cases[] = {
      {"avg_num_neighbors", "max_num_neighbors", 0, "lacks 'avg_num_neighbors'"},
      {"e3nn.o3._linear\nLinear", "e3nn.o3._linear\nLineal", 0, "is a Lineal"},
      {"__torch__\nWRAPPED", "__tortch_\nWRAPPED", 0, "asks for '__tortch_ WRAPPED_MACE'"},
      {"normalize2mom", "normalize3mom", 0, "stands where normalize2mom was expected"},
      {"_normalize_activation\n", "_normalize_activatiom\n", 0,
       "an activation that is not supported"},
      {"interactions", "interbctions", 0, "module 'interbctions' is not supported"}};
  refuses_changes("mace.pth", NULL, cases, COUNT(cases));
}

static void refuses_checkpoints(void **state) {
  (void)state;
  static const change_case cases[] = {
      {"config", "cunfig", 0, "a checkpoint without SevenNet's 'config' and 'model_state_dict'"},
      {"model_state_dict", "modal_state_dict", 0, "a checkpoint without SevenNet's"},
      {"2x0e+1x1e", "2x0e+1x1o", 0, "its irreps \"2x0e+1x1o\" are not supported"},
      {"2x0e+1x1e", "2x0e+9x1e", 0, "numbers, not"},
      {"lmax", "lmix", 0, "lacks the number 'lmax'"},
      {"\6\0\0\0linear", "\6\0\0\0nearly", 10,
       "'self_connection_type' = nearly; only 'nequip' or 'linear' is understood"},
      {"\4\0\0\0silu", "\4\0\0\0gelu", 8, "= gelu; only silu, tanh, abs, ssp, relu or sigmoid"},
      {"XPLOR", "XPLOT", 0, "'cutoff_function_name' = XPLOT"},
      {"bessel", "gaussi", 0, "'radial_basis_name' = gaussi; only 'bessel' is understood"},
      {"0.9.1", "0.9.x", 0, "its config has 'version' 0.9.x, not three numbers"},
      {"numpy.core.multiarray", "numpi.core.multiarray", 0,
       "asks for 'numpi.core.multiarray _reconstruct'"},
      {"X\3\0\0\0cpu",
       "X\xff\xff\xff\x7f"
       "cpu",
       8, "ends too early"}};
  refuses_changes("sevennet.pth", NULL, cases, COUNT(cases));
}

static void refuses_equflash(void **state) {
  (void)state;
  static const change_case cases[] = {
      {"equflashv2", "equflashv3", 0, "only 'equflash' and 'equflashv2' are known"},
      {"bilinear_gate", "bilinear_gatt", 0,
       "'nonlinear_type' = bilinear_gatt; only 'gate' and 'bilinear_gate' are understood"},
      {"full", "fuul", 0, "'conv_type' = fuul; only 'full' and 'efficient' are understood"},
      {"identity", "identify", 0, "'sc_type' = identify; only 'identity' and 'linear'"},
      {"weight_nn_layers", "weight_nm_layers", 0, "no list 'weight_nn_layers'"},
      {"irreps_scale", "irreps_stale", 0, "numbers, not"},
      {"norm1.affine_weight", "norm1.affine_height", 0, "there is no tensor '0_norm1.affine"}};
  refuses_changes("sevennet/equflash_v2_bilinear.pth", NULL, cases, COUNT(cases));
}

static void refuses_cut_files(void **state) {
  (void)state;
  static const char *const names[] = {"mace.model", "mace.pth", "sevennet.pth"};
  for (size_t i = 0; i < COUNT(names); i++) {
    size_t bytes;
    unsigned char *file = get_file(seed(names[i]), &bytes);
    assert_non_null(file);
    for (size_t n = 4; n < bytes; n += 1 + bytes / 16) refused_bytes(file, n, "without its end");
    free(file);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(converts_sevennet),      cmocka_unit_test(converts_module),
      cmocka_unit_test(projects_products),      cmocka_unit_test(converts_script),
      cmocka_unit_test(chooses_heads),          cmocka_unit_test(refuses_modules),
      cmocka_unit_test(refuses_cuequivariance), cmocka_unit_test(refuses_scripts),
      cmocka_unit_test(refuses_checkpoints),    cmocka_unit_test(refuses_equflash),
      cmocka_unit_test(refuses_cut_files)};
  return cmocka_run_group_tests(tests, make_folder, remove_converted);
}
