/* tests/tools/test_convert.c - `clebsch convert`: its arguments and files, and Nequix's models,
   made up and real. */
#define _GNU_SOURCE /* memmem */
#include "tests/tools/convert_runner.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- a small Nequix model ---- */

/* 2 species, 2 layers, 2x0e+1x1o, degrees 0 and 1, 3 radial functions, radial networks 3 -> 4 ->
   weights. */
static const char small_header[] =
    "{\"cutoff\": 4.5, \"atomic_numbers\": [1, 8], \"avg_n_neighbors\": 12.25, \"scale\": 0.5, "
    "\"shift\": 0.125, \"hidden_irreps\": \"2x0e + 1x1o\", "
    "\"lmax\": 1, \"n_layers\": 2, \"radial_basis_size\": 3, \"radial_mlp_size\": 4, "
    "\"radial_mlp_layers\": 1, \"radial_polynomial_p\": 6.0, "
    "\"index_weights\": false, \"layer_norm\": true, \"train_path\": \"train.xyz\"}\n";

/* Its arrays, in order; layer 0 reads the 2 species, its gate takes 3x0e+1x1o. */
static const struct {
  const char *name;
  int rows, columns; /* columns 0: of rank 1 */
} small_arrays[] = {
    {"species_shift", 2, 0},
    {"layers.0.radial.0", 3, 4},
    {"layers.0.radial.1", 4, 4},
    {"layers.0.linear_1.0e", 2, 2},
    {"layers.0.linear_2.0e", 2, 3},
    {"layers.0.linear_2.1o", 2, 1},
    {"layers.0.self_connection.0e", 2, 3},
    {"layers.0.norm.0e", 3, 0},
    {"layers.0.norm.1o", 1, 0},
    {"layers.1.radial.0", 3, 4},
    {"layers.1.radial.1", 4, 3},
    {"layers.1.linear_1.0e", 2, 2},
    {"layers.1.linear_1.1o", 1, 1},
    {"layers.1.linear_2.0e", 3, 2},
    {"layers.1.self_connection.0e", 2, 2},
    {"layers.1.norm.0e", 2, 0},
    {"readout.0", 2, 1},
};
enum { SMALL_ARRAYS = sizeof small_arrays / sizeof *small_arrays };

static void add_npy(const char *shape, const float *data, int n) {
  char header[128];
  const int length = snprintf(header, sizeof header,
                              "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }\n", shape);
  add_bytes("\x93NUMPY\1\0", 8);
  add_number((uint32_t)length, 2);
  add_text(header);
  add_bytes(data, (size_t)n * sizeof *data);
}

/* Element k of array i. */
static float small_number(int i, int k) { return (float)(100 * i + k) + 0.25f; }

/* Arrays up to `n`; array `odd` gets the given shape. */
static void make_small_model(const char *header, int n, int odd, const char *odd_shape) {
  start_file();
  add_text(header);
  for (int i = 0; i < n; i++) {
    const int columns = small_arrays[i].columns,
              count = small_arrays[i].rows * (columns ? columns : 1);
    float data[64];
    char shape[32];
    for (int k = 0; k < count; k++) data[k] = small_number(i, k);
    snprintf(shape, sizeof shape, columns ? "%d, %d" : "%d,", small_arrays[i].rows, columns);
    add_npy(i == odd ? odd_shape : shape, data, count);
    if (i == 3) add_npy("", data, 1); /* a single number, which belongs to nothing */
  }
  add_text("\n");
}

static void converts_a_small_model(void **state) {
  (void)state;
  static const char *const said[][2] = {{"format", "clebsch model"},
                                        {"format_version", "1"},
                                        {"architecture", "nequix"},
                                        {"species", "H O"},
                                        {"r_max", "4.5"},
                                        {"irreps_sh", "1x0e+1x1o"},
                                        {"l_max", "1"},
                                        {"n_layers", "2"},
                                        {"radial_basis", "bessel"},
                                        {"n_basis", "3"},
                                        {"cutoff", "polynomial"},
                                        {"cutoff_p", "6"},
                                        {"radial_layers", "2"},
                                        {"radial_normalization", "none"},
                                        {"radial_activation", "silu"},
                                        {"radial_activation_scale", "1"},
                                        {"avg_num_neighbors", "12.25"},
                                        {"embedding", "one_hot"},
                                        {"self_connection", "linear"},
                                        {"norm", "rms"},
                                        {"norm_epsilon", "1e-12"},
                                        {"activation_even", "silu"},
                                        {"activation_even_scale", "1.6765620560798837"},
                                        {"activation_gate", "silu"},
                                        {"activation_gate_scale", "1.6765620560798837"},
                                        {"readout_layers", "1"},
                                        {"energy_scale", "1"},
                                        {"layers.0.irreps_in", "2x0e"},
                                        {"layers.0.paths", "0,0,0 0,1,1"},
                                        {"layers.0.irreps_message", "2x0e+2x1o"},
                                        {"layers.0.irreps_linear", "3x0e+1x1o"},
                                        {"layers.0.irreps_scalars", "2x0e"},
                                        {"layers.0.irreps_gates", "1x0e"},
                                        {"layers.0.irreps_gated", "1x1o"},
                                        {"layers.0.irreps_out", "2x0e+1x1o"},
                                        {"layers.1.irreps_in", "2x0e+1x1o"},
                                        {"layers.1.paths", "0,0,0 1,1,1"},
                                        {"layers.1.irreps_message", "2x0e+1x0e"},
                                        {"layers.1.irreps_linear", "2x0e"},
                                        {"layers.1.irreps_scalars", "2x0e"},
                                        {"layers.1.irreps_gates", ""},
                                        {"layers.1.irreps_gated", ""},
                                        {"layers.1.irreps_out", "2x0e"}};
  make_small_model(small_header, SMALL_ARRAYS, -1, "");
  put_file(convert_in, made.bytes, made.n);
  clb_safetensors *file = convert_file(convert_in);
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) expect_said(file, said[i][0], said[i][1]);
  assert_int_equal(clb_safetensors_size(file), SMALL_ARRAYS + 2);
  assert_string_equal(clb_safetensors_at(file, 0)->dtype,
                      "F64"); /* wide ones first: all are aligned */
  for (int i = 1; i < SMALL_ARRAYS; i++) {
    const int columns = small_arrays[i].columns, n = small_arrays[i].rows * (columns ? columns : 1);
    const double sum = n * (100. * i + .25) + n * (n - 1) / 2.;
    expect_tensor(file, &(expected_tensor){small_arrays[i].name,
                                           "F32",
                                           {small_arrays[i].rows, columns},
                                           small_number(i, 0),
                                           small_number(i, n - 1),
                                           sum});
  }
  expect_tensor(file, &(expected_tensor){"species_scale", "F64", {2}, .5, .5, 1});
  expect_tensor(file, &(expected_tensor){"species_shift", "F64", {2}, .375, 1.375, 1.75});
  expect_tensor(file, &(expected_tensor){"bessel_frequencies",
                                         "F64",
                                         {3},
                                         3.14159265358979323846,
                                         9.42477796076937971539,
                                         18.8495559215387594});
  clb_safetensors_close(&file);
  size_t n;
  unsigned char *bytes = get_file(convert_out, &n);
  assert_true(bytes && !memmem(bytes, n, "somebody", 8)); /* only what the energy needs */
  free(bytes);
  unlink(convert_out);
}

static void refuses_wrong_models(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *what; /* changes in the header */
  } headers[] = {
      {"\"cutoff\": 4.5", "\"cutoff\": 0.0", "must be positive"},
      {"\"cutoff\"", "\"cut\"", "no number 'cutoff'"},
      {"[1, 8]", "[8, 1]", "do not grow"},
      {"[1, 8]", "[1, 119]", "do not grow from 1 to 118"},
      {"[1, 8]", "[]", "not a list of 1 to 118 elements"},
      {"2x0e + 1x1o", "2x0e + 1x1e", "irreps of natural parity"},
      {"2x0e + 1x1o", "2x0e + 1x0e", "degrees start at 0 and grow"},
      {"2x0e + 1x1o", "1x1o", "degrees start at 0 and grow"},
      {"2x0e + 1x1o", "2x0e +", "irreps of natural parity"},
      {"2x0e + 1x1o", "99999x0e + 1x1o", "irreps of natural parity"},
      {"\"lmax\": 1", "\"lmax\": 13", "'lmax' of its header is not a whole number from 0 to 12"},
      {"\"n_layers\": 2", "\"n_layers\": 2000000000", "'n_layers' of its header"},
      {"\"index_weights\": false", "\"index_weights\": true", "index_weights"},
      {"\"layer_norm\"", "\"batch_norm\"", "'layer_norm'"},
      {"\"scale\"", "\"scales\"", "no number 'scale'"},
      {"\"lmax\": 1,", "\"lmax\": 1, \"lmax\": 1,", "no JSON: duplicate"},
      {"\"n_layers\": 2", "\"n_layers\": 3", "'layers.1.radial.1'"},
      {"\"radial_basis_size\": 3", "\"radial_basis_size\": 4",
       "'layers.0.radial.0' is [3, 4], not [4, 4]"},
  };
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    char header[1024];
    const char *at = strstr(small_header, headers[i].from);
    assert_non_null(at);
    snprintf(header, sizeof header, "%.*s%s%s", (int)(at - small_header), small_header,
             headers[i].to, at + strlen(headers[i].from));
    make_small_model(header, SMALL_ARRAYS, -1, "");
    refused_bytes(made.bytes, made.n, headers[i].what);
  }
  static const char *const shapes[] = {
      "9, 9, 9, 9", "-1, 4", "12", "999999999, 999999999", "99999999999999999999, 4", "3, 4", "x"};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    make_small_model(small_header, SMALL_ARRAYS, 2, shapes[i]);
    refused_bytes(made.bytes, made.n, "'layers.0.radial.1'");
  }
  make_small_model(small_header, SMALL_ARRAYS, -1, "");
  for (size_t n = made.n - 2; n < made.n; n -= made.n / 40)
    refused_bytes(made.bytes, n, ""); /* ends when n wraps around */
  refused_bytes(
      "", 0,
      "neither a model of PyTorch (.pth, .model, .nequip.zip, .ckpt) nor a Nequix model (.nqx)");
  refused_bytes("{", 1, "no line of JSON");
}

/* ---- arguments and files ---- */

static void minds_its_arguments(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"", 2, "name the model and the file to write"},
      {"in", 2, "name the model and the file to write"},
      {"/nowhere/at_all converted", 1, "/nowhere/at_all: No such file or directory"},
      {"/tmp converted", 1, "/tmp: not a file"},
  };
  expect_clebsch("convert --help", 0, NULL);
  expect_refusals("convert ", wrong, sizeof wrong / sizeof *wrong);
}

static int others_in_folder(void) {
  DIR *folder = opendir(".");
  int n = 0;
  assert_non_null(folder);
  for (struct dirent *e; (e = readdir(folder));)
    n += e->d_name[0] != '.' && !strstr("in converted out err tmp", e->d_name);
  closedir(folder);
  return n;
}

/* The disk is full after some bytes. */
static void minds_a_full_disk(void **state) {
  (void)state;
  make_small_model(small_header, SMALL_ARRAYS, -1, "");
  put_file(convert_in, made.bytes, made.n);
  signal(SIGXFSZ, SIG_IGN);
  const pid_t pid = start_limited(RLIMIT_FSIZE, 200, "convert in converted");
  signal(SIGXFSZ, SIG_DFL);
  free(expect_end_of(pid, "convert", 1, "could not be written"));
  assert_true(access(convert_out, F_OK) != 0);
  assert_int_equal(others_in_folder(), 0);
}

static void minds_its_files(void **state) {
  (void)state;
  make_small_model(small_header, SMALL_ARRAYS, -1, "");
  put_file(convert_in, made.bytes, made.n);
  static const refusal wrong[] = {
      {"in", 1, "is the file to convert"},
      {"/tmp", 1, "/tmp: not a file"},
      {"/dev/null", 1, "/dev/null: not a file"},
      {"/nowhere/at_all", 1, "/nowhere/at_all: No such file or directory"},
  };
  expect_refusals("convert in ", wrong, sizeof wrong / sizeof *wrong);
  /* an existing file stays if the conversion fails, and is replaced if it succeeds */
  put_file(convert_out, "before", 6);
  put_file(convert_in, made.bytes, made.n / 2);
  expect_clebsch("convert in converted", 1, "cut short");
  expect_file(convert_out, "before");
  put_file(convert_in, made.bytes, made.n);
  const mode_t mask = umask(027);
  clb_safetensors *file = convert_file(convert_in);
  umask(mask);
  struct stat about;
  assert_int_equal(stat(convert_out, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0640);
  clb_safetensors_close(&file);
  assert_int_equal(others_in_folder(), 0);
  unlink(convert_out);
}

/* ---- the real one ---- */

/* Numbers: the arrays of the file itself, read by NumPy. */
static void converts_nequix_mp(void **state) {
  (void)state;
  static const expected_tensor tensors[] = {
      {"layers.0.radial.0",
       "F32",
       {8, 64},
       -1.1223104000091553,
       -0.309635192155838,
       -90.43923151493073},
      {"layers.0.radial.2",
       "F32",
       {64, 356},
       0.40413960814476013,
       0.480215460062027,
       23.234448906696343},
      {"layers.0.linear_1.0e",
       "F32",
       {89, 89},
       0.05282345786690712,
       1.0077486038208008,
       -101.24871311947936},
      {"layers.0.linear_2.3o",
       "F32",
       {89, 32},
       -0.7288251519203186,
       0.08892998099327087,
       15.4476712992182},
      {"layers.0.self_connection.0e",
       "F32",
       {89, 256},
       0.49801814556121826,
       0.49450138211250305,
       245.444471993942},
      {"layers.0.norm.3o", "F32", {32}, 3.8828158378601074, 7.108541488647461, 148.0978615283966},
      {"layers.1.radial.2",
       "F32",
       {64, 1312},
       -0.01214576419442892,
       0.5071526765823364,
       -208.6260162714334},
      {"layers.1.linear_1.3o",
       "F32",
       {32, 32},
       0.1284581869840622,
       0.12481745332479477,
       9.676968413637951},
      {"layers.1.linear_2.2e",
       "F32",
       {384, 32},
       -0.6133694648742676,
       -0.9349406957626343,
       84.90357576932001},
  };
  const char *path = getenv("CLB_TEST_NEQUIX");
  if (!path || access(path, R_OK)) skip_because("CLB_TEST_NEQUIX does not name nequix-mp-1.nqx");
  clb_safetensors *file = convert_file(path);
  int64_t n = 0;
  double sum = 0;
  expect_said(file, "avg_num_neighbors", "57.413687022442645");
  expect_said(file, "layers.3.irreps_message", "128x0e+64x0e+32x0e+32x0e");
  expect_said(file, "layers.2.paths",
              "0,0,0 1,1,1 2,2,2 3,3,3 0,1,4 1,0,5 1,2,6 2,1,7 2,3,8 3,2,9 0,2,10 1,1,11 1,3,12 "
              "2,0,13 2,2,14 3,1,15 3,3,16 "
              "0,3,17 1,2,18 2,1,19 2,3,20 3,0,21 3,2,22");
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) expect_tensor(file, &tensors[i]);
  for (int i = 0; i < clb_safetensors_size(file); i++) {
    const clb_tensor *t = clb_safetensors_at(file, i);
    if (!strcmp(t->dtype, "F64")) continue; /* not weights of the file */
    n += t->count;
    sum += sum_of(file, t);
  }
  assert_int_equal(n, 707658 - 89);
  assert_true(sum > 6721.84222 && sum < 6721.84223);
  expect_tensor(file, &(expected_tensor){"species_scale",
                                         "F64",
                                         {89},
                                         0.8066479563713074,
                                         0.8066479563713074,
                                         89 * 0.8066479563713074});
  expect_tensor(file, &(expected_tensor){"species_shift",
                                         "F64",
                                         {89},
                                         -3.6683144569396973 + 0.16502578765761478,
                                         -15.294189453125 + 0.16502578765761478,
                                         -547.128919377923 + 89 * 0.16502578765761478});
  clb_safetensors_close(&file);
  unlink(convert_out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(converts_a_small_model), cmocka_unit_test(refuses_wrong_models),
      cmocka_unit_test(minds_its_arguments),    cmocka_unit_test(minds_a_full_disk),
      cmocka_unit_test(minds_its_files),        cmocka_unit_test(converts_nequix_mp),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_converted);
}
