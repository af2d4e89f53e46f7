/* tests/tools/test_convert_torch.c - `clebsch convert` on NequIP's models: archives and pickles
   that are wrong, and a real model. */
#include "tests/tools/convert_archive.h"

static const char *real_model(void) {
  const char *path = getenv("CLB_TEST_NEQUIP");
  return path ? path : "/usr/share/cp2k/NequIP/water.pth"; /* Debian's cp2k-data */
}

/* ---- archives ---- */

typedef struct {
  const char *name;
  const void *data;
  size_t n;
} part;

enum { MAX_PARTS = 4 };
static size_t local_at[MAX_PARTS], central_at[MAX_PARTS],
    end_at; /* where the records of the archive are */

static void add_sizes(const part *p) {
  add_number(crc_of(p->data, p->n), 4);
  add_number((uint32_t)p->n, 4);
  add_number((uint32_t)p->n, 4);
  add_number((uint32_t)strlen(p->name), 2);
  add_number(0, 2);
}

/* A zip of entries that are stored. */
static void make_zip(const part *parts, int n) {
  start_file();
  for (int i = 0; i < n; i++) {
    local_at[i] = made.n;
    add_bytes("PK\3\4\24\0\0\0\0\0\0\0\0\0", 14);
    add_sizes(&parts[i]);
    add_text(parts[i].name);
    add_bytes(parts[i].data, parts[i].n);
  }
  const size_t directory = made.n;
  for (int i = 0; i < n; i++) {
    central_at[i] = made.n;
    add_bytes("PK\1\2\24\0\24\0\0\0\0\0\0\0\0\0", 16);
    add_sizes(&parts[i]);
    add_bytes("\0\0\0\0\0\0\0\0\0\0", 10);
    add_number((uint32_t)local_at[i], 4);
    add_text(parts[i].name);
  }
  end_at = made.n;
  add_bytes("PK\5\6\0\0\0\0", 8);
  add_number((uint32_t)n, 2);
  add_number((uint32_t)n, 2);
  add_number((uint32_t)(end_at - directory), 4);
  add_number((uint32_t)directory, 4);
  add_number(0, 2);
}

static void make_pair(const void *pickle, size_t n) {
  make_zip((const part[]){{"m/data.pkl", pickle, n}, {"m/constants.pkl", "\x80\2).", 4}}, 2);
}

static void refuses_archives(void **state) {
  (void)state;
  static const struct {
    enum { LOCAL, CENTRAL, END } record; /* of the first entry */
    size_t at;
    uint32_t x;
    int bytes;
    const char *what;
  } pokes[] = {
      {END, 0, 0, 1, "a zip archive without its end"},
      {END, 20, 1, 2, "a zip archive without its end"},
      {END, 10, 3, 2, "the zip archive's directory is wrong"},
      {END, 10, 1, 2, "more bytes than entries"},
      {END, 10, 0xffff, 2, "the zip archive's directory is wrong"},
      {END, 12, 0xffffffff, 4, "directory reaches beyond the end"},
      {END, 16, 0xffffffff, 4, "directory reaches beyond the end"},
      {CENTRAL, 0, 0, 1, "the zip archive's directory is wrong"},
      {CENTRAL, 8, 1, 2, "entry 'm/data.pkl' is encrypted"},
      {CENTRAL, 10, 8, 2, "entry 'm/data.pkl' and its header disagree"},
      {CENTRAL, 16, 0, 4, "entry 'data.pkl' is damaged"},
      {CENTRAL, 20, 0xffffffff, 4, "64-bit sizes"},
      {CENTRAL, 20, 0x7fffffff, 4, "entry 'm/data.pkl' reaches beyond its end"},
      {CENTRAL, 20, 5, 4, "entry 'm/data.pkl' is stored, but has two sizes"},
      {CENTRAL, 24, 0x7fffffff, 4, "entry 'm/data.pkl' is stored, but has two sizes"},
      {CENTRAL, 28, 0xffff, 2, "the zip archive's directory is wrong"},
      {CENTRAL, 30, 0xffff, 2, "the zip archive's directory is wrong"},
      {CENTRAL, 42, 0x7fffffff, 4, "no header where the directory says"},
      {CENTRAL, 42, 1, 4, "no header where the directory says"},
      {CENTRAL, 46, 'n', 1, "entry 'n/data.pkl' and its header disagree"},
      {LOCAL, 26, 9, 2, "entry 'm/data.pkl' and its header disagree"},
      {LOCAL, 28, 0xffff, 2, "entry 'm/data.pkl' and its header disagree"},
      {LOCAL, 31, '\\', 1, "entry 'm/data.pkl' and its header disagree"},
  };
  for (size_t i = 0; i < sizeof pokes / sizeof *pokes; i++) {
    make_pair("\x80\2N.", 4);
    poke((pokes[i].record == LOCAL     ? local_at[0]
          : pokes[i].record == CENTRAL ? central_at[0]
                                       : end_at) +
             pokes[i].at,
         pokes[i].x, pokes[i].bytes);
    refused_bytes(made.bytes, made.n, pokes[i].what);
  }
}

static void refuses_other_archives(void **state) {
  (void)state;
  make_pair("\x80\2N.", 4);
  for (size_t n = 4; n < made.n; n++) {
    const int step = n + 30 > made.n ? 1 : 9;
    if (n % (size_t)step == 0) refused_bytes(made.bytes, n, "without its end");
  }
  make_zip((const part[]){{"m/data.pkl", "\x80\2N.", 4}}, 1);
  refused_bytes(made.bytes, made.n, "it has no 'constants.pkl'");
  make_zip((const part[]){{"m/a", "", 0}, {"n/a", "", 0}}, 2);
  refused_bytes(made.bytes, made.n, "several folders");
  make_zip((const part[]){{"data.pkl", "", 0}}, 1);
  refused_bytes(made.bytes, made.n, "in no folder");
  make_zip((const part[]){{"m/a", "", 0}, {"m/b", "", 0}, {"m/a", "", 0}}, 3);
  refused_bytes(made.bytes, made.n, "entry 'm/a' is there twice");
  make_zip((const part[]){{"m/a", "12345678", 8}, {"m/b", "", 0}, {"m/a", "", 0}}, 3);
  poke(central_at[1] + 42, (uint32_t)local_at[0], 4);
  refused_bytes(made.bytes, made.n, "entry 'm/b' and its header disagree");
  poke(central_at[2] + 42, (uint32_t)local_at[0], 4);
  poke(central_at[1] + 42, (uint32_t)local_at[1], 4);
  poke(central_at[2] + 20, 8, 4);
  poke(central_at[2] + 24, 8, 4);
  refused_bytes(made.bytes, made.n, "entry 'm/a' overlaps another");
  /* an entry within the data of another */
  static const char inner[] = "PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0m/b";
  make_zip((const part[]){{"m/a", inner, sizeof inner - 1}, {"m/b", "", 0}}, 2);
  poke(central_at[1] + 42, (uint32_t)local_at[0] + 33, 4);
  refused_bytes(made.bytes, made.n, "entry 'm/b' overlaps another");
  make_zip(NULL, 0);
  add_bytes("", 1);
  memmove(made.bytes + 4, made.bytes,
          made.n); /* what is recognised, then an archive without entries */
  memcpy(made.bytes, "PK\3\4", 4);
  made.n += 3;
  poke(20, 4, 4);
  refused_bytes(made.bytes, made.n, "in no folder");
}

/* Deflated data: a stored block holds them as they are. */
static void refuses_packed_entries(void **state) {
  (void)state;
  static const struct {
    const char *packed;
    size_t n;
    uint32_t bytes; /* that the directory says */
    const char *what;
  } cases[] = {
      {"\1\4\0\xfb\xff\x80\2N.", 9, 4,
       "'no object'"}, /* what a good one gives: no model is in it */
      {"\1\4\0\xfb\xff\x80\2N.", 9, 3, "does not unpack to its 3 bytes"},
      {"\1\4\0\xfb\xff\x80\2N.", 9, 5, "does not unpack to its 5 bytes"},
      {"\1\4\0\xfb\xff\x80\2N.", 9, 0x10000000,
       "would unpack to 268435456 bytes: more than 67108864 in all"},
      {"\1\4\0\xfb\xff\x80\2N.x", 10, 4, "does not unpack to its 4 bytes"},
      {"\1\4\0\xfb\xff\x80\2N", 8, 4, "does not unpack to its 4 bytes"},
      {"\0\4\0\xfb\xff\x80\2N.", 9, 4, "does not unpack to its 4 bytes"},
      {"\1\4\0\xfa\xff\x80\2N.", 9, 4, "does not unpack to its 4 bytes"},
      {"\7", 1, 4, "does not unpack to its 4 bytes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    make_pair(cases[i].packed, cases[i].n);
    poke(local_at[0] + 8, 8, 2);
    poke(central_at[0] + 10, 8, 2);
    poke(central_at[0] + 16, crc_of((const unsigned char *)"\x80\2N.", 4), 4);
    poke(central_at[0] + 24, cases[i].bytes, 4);
    refused_bytes(made.bytes, made.n, cases[i].what);
  }
}

/* ---- pickles ---- */

#define PICKLE(text) "\x80\2" text, sizeof "\x80\2" text - 1

static void refuses_pickles(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t n;
    const char *what;
  } cases[] = {
      {PICKLE("cos\nsystem\nX\x05\0\0\0ls -l\x85R."), "asks for 'os system', which no model needs"},
      {PICKLE("cbuiltins\neval\n."), "asks for 'builtins eval'"},
      {PICKLE("ctorch\nload\n."), "asks for 'torch load'"},
      {PICKLE("c\x1b[2J\nx\n."), "asks for '\\x1b[2J x'"},
      {PICKLE("c__torch__.\0\nA\n."), "asks for '__torch__.', which no model needs"},
      {PICKLE("cos\nsystem"), "a global without an end"},
      {PICKLE("(((((u"), "takes from an empty stack at byte 7"},
      {PICKLE("(t."), "'no object'"},
      {PICKLE("(ios\nsystem\n."), "opcode 0x69 at byte 3, which no model needs"},
      {PICKLE("(NNo."), "opcode 0x6f"},
      {PICKLE("\x82\1."), "opcode 0x82"},
      {PICKLE("NN\x93."), "opcode 0x93"},
      {PICKLE("P0\n."), "opcode 0x50"},
      {PICKLE("\x8a\xff."), "opcode 0x8a"},
      {"\x80\4N.", 4, "protocol 4, not 2"},
      {PICKLE("Nr\xff\xff\xff\xff."), "leaves gaps in its memo: 4294967295 after 0"},
      {PICKLE("Nq\1."), "leaves gaps in its memo: 1 after 0"},
      {PICKLE("q\0."), "remembers what is not there"},
      {PICKLE("N(q\0."), "remembers what is not there"},
      {PICKLE("h\0."), "asks for 0 of a memo of 0"},
      {PICKLE("Nq\0j\1\0\0\0."), "asks for 1 of a memo of 1"},
      {PICKLE("."), "ends with 0 values"},
      {PICKLE("NN."), "ends with 2 values"},
      {PICKLE("(N."), "ends with 1 values, not with one"},
      {PICKLE("t."), "lacks a mark"},
      {PICKLE("N(\x85."), "takes from an empty stack"},
      {PICKLE("\x87."), "takes from an empty stack"},
      {PICKLE("X\xff\xff\xff\xff."), "ends too early"},
      {PICKLE("J\1\0"), "ends too early"},
      {PICKLE("G\1\0"), "ends too early"},
      {PICKLE("N"), "ends too early"},
      {PICKLE("N(Ne."), "has no list"},
      {PICKLE("](NNu."), "has no dict"},
      {PICKLE("}(Nu."), "a key without a value"},
      {PICKLE("c__torch__.A\nB\n)\x81}b}b."), "builds an object twice"},
      {PICKLE("c__torch__.A\nB\n)\x81Nb."), "has no dict"},
      {PICKLE("}}b."), "a checkpoint without"},
      {PICKLE("]}b."), "has no object"},
      {PICKLE("Na."), "empty stack"},
      {PICKLE("NNa."), "has no list"},
      {PICKLE("NNNs."), "has no dict"},
      {PICKLE("ctorch\ndevice\n)RNbNb."), "builds an object twice"},
      {PICKLE("cos\nsystem\n."), "asks for 'os system', which no model needs"},
      {PICKLE("ctorch\nFloatStorage\n)\x81."), "makes an object of 'torch FloatStorage'"},
      {PICKLE("c__torch__.A\nB\nN\x85\x81."), "makes an object of '__torch__.A B'"},
      {PICKLE("c__torch__.A\nB\n)R."), "calls '__torch__.A B' with arguments"},
      {PICKLE("N)R."), "has no function"},
      {PICKLE(")Q."), "a storage that is not supported"},
      {PICKLE("(X\7\0\0\0storagec__torch__.A\nB\nX\1\0\0\0"
              "0X\3\0\0\0cpuK\1tQ."),
       "a storage that is not supported"},
      {PICKLE("ctorch._utils\n_rebuild_tensor_v2\n)R."), "with arguments that are not supported"},
      {PICKLE("ctorch._utils\n_rebuild_tensor_v2\n(NK\0))\x89NtR."),
       "with arguments that are not supported"},
      {PICKLE("ctorch.jit._pickle\nrestore_type_tag\n)R."),
       "with arguments that are not supported"},
      {PICKLE("]q\0(h\0e."), "not of a NequIP model"}, /* a list that holds itself */
      {PICKLE("c__torch__.A\nB\n)\x81q\0}(X\5\0\0\0modelh\0ub."),
       "not of a NequIP model: '__torch__.A B'"}, /* an object inside itself */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    make_pair(cases[i].bytes, cases[i].n);
    refused_bytes(made.bytes, made.n, cases[i].what);
  }
}

/* Found by a fuzzer: arithmetic on a null stack. */
static void refuses_a_strange_pickle(void **state) {
  (void)state;
  char path[600];
  size_t n;
  assert_non_null(getenv("CLB_TEST_DATA"));
  snprintf(path, sizeof path, "%s/strangers/pickle_data.pkl", getenv("CLB_TEST_DATA"));
  unsigned char *pickle = get_file(path, &n);
  assert_non_null(pickle);
  for (int cut = 0; cut < 2; cut++) { /* its first byte chose the entry */
    make_pair(pickle + cut, n - (size_t)cut);
    refused_bytes(made.bytes, made.n, "pickle 'data.pkl' takes from an empty stack at byte");
  }
  free(pickle);
}

/* One opcode repeated, with a start and an end. */
static void refused_many(const char *start, char opcode, size_t n, const char *end,
                         const char *what) {
  static char pickle[3 << 20];
  const size_t before = strlen(start), after = strlen(end);
  assert_true(before + n + after <= sizeof pickle);
  memcpy(pickle, start, before);
  memset(pickle + before, opcode, n);
  memcpy(pickle + before + n, end, after);
  make_pair(pickle, before + n + after);
  refused_bytes(made.bytes, made.n, what);
}

static void long_pickles(void **state) {
  (void)state;
  refused_many("\x80\2", 'N', 2000001, "N.", "makes more than 2000000 values");
  refused_many("\x80\2)", (char)0x85, 500000, ".",
               "not of a NequIP model"); /* deep, but nothing recurs */
  refused_many("\x80\2", '(', 2000000, "N.", "ends with 1 values");
}

/* ---- the real one ---- */

/* Numbers: the raw entries of the archive, read by Python's zipfile and NumPy. */
static void converts_water(void **state) {
  (void)state;
  static const char *const said[][2] = {
      {"architecture", "nequip"},
      {"species", "H O"},
      {"r_max", "4"},
      {"irreps_sh", "1x0e+1x1o"},
      {"l_max", "1"},
      {"n_layers", "4"},
      {"n_basis", "8"},
      {"cutoff_p", "6"},
      {"radial_layers", "3"},
      {"radial_normalization", "fan_in"},
      {"radial_activation", "silu"},
      {"radial_activation_scale", "1.6791767923989418"},
      {"avg_num_neighbors", "26.703332901000977"},
      {"embedding", "linear"},
      {"self_connection", "species"},
      {"norm", "none"},
      {"activation_even", "silu"},
      {"activation_even_scale", "1.6791767923989418"},
      {"activation_odd", "tanh"},
      {"activation_odd_scale", "1.5937334472592695"},
      {"activation_gate", "silu"},
      {"activation_gate_scale", "1.6791767923989418"},
      {"readout_layers", "2"},
      {"energy_scale", "0.7736425399780273"},
      {"layers.0.irreps_in", "32x0e"},
      {"layers.0.paths", "0,0,0 0,1,1"},
      {"layers.0.irreps_linear", "64x0e+32x1o"},
      {"layers.0.irreps_gated", "32x1o"},
      {"layers.2.irreps_in", "32x0e+32x1e+32x1o"},
      {"layers.2.paths", "0,0,1 0,1,3 1,0,6 1,1,0 1,1,4 2,0,5 2,1,2 2,1,7"},
      {"layers.2.irreps_message", "32x0o+32x0e+32x0e+32x1o+32x1o+32x1o+32x1e+32x1e"},
      {"layers.2.irreps_linear", "32x0o+96x0e+32x1o+32x1e"},
      {"layers.2.irreps_scalars", "32x0e+32x0o"},
      {"layers.2.irreps_gates", "64x0e"},
      {"layers.2.irreps_gated", "32x1e+32x1o"},
      {"layers.2.irreps_out", "32x0e+32x0o+32x1e+32x1o"}};
  static const expected_tensor tensors[] = {
      {"bessel_frequencies", "F32", {8}, 2.7398393154144287, 25.52585792541504, 112.42668843269348},
      {"embedding", "F32", {2, 32}, 0.5602821707725525, 0.08595778793096542, 0.580151213798672},
      {"layers.0.linear_1.0e",
       "F32",
       {32, 32},
       0.6160956621170044,
       -0.7259752750396729,
       -7.4881165060796775},
      {"layers.0.self_connection.0e",
       "F32",
       {32, 2, 64},
       0.6286205649375916,
       0.010469966568052769,
       41.571175846940605},
      {"layers.3.radial.2",
       "F32",
       {64, 320},
       -0.6176862120628357,
       1.5347317457199097,
       95.1423513736263},
      {"readout.0", "F32", {32, 16}, -0.40384966135025024, 0.6548309922218323, -26.732717430219054},
      {"readout.1", "F32", {16, 1}, -0.11855971068143845, 1.004491925239563, -3.7487411089241505},
      {"species_scale", "F32", {2}, 1, 1, 2},
      {"species_shift", "F32", {2}, -201.7623291015625, -201.7623291015625, -403.524658203125},
  };
  if (access(real_model(), R_OK))
    skip_because("there is no %s (package cp2k-data, or CLB_TEST_NEQUIP)", real_model());
  clb_safetensors *file = convert_file(real_model());
  double sum = 0;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) expect_said(file, said[i][0], said[i][1]);
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) expect_tensor(file, &tensors[i]);
  assert_int_equal(clb_safetensors_size(file), 51);
  for (int i = 0; i < 51; i++) sum += sum_of(file, clb_safetensors_at(file, i));
  assert_true(sum > -668.0780169 && sum < -668.0780168);
  /* parts of one array: by instruction, not by irreps */
  double *odd = read_tensor(file, clb_safetensors_find(file, "layers.3.self_connection.1o")),
         *even = read_tensor(file, clb_safetensors_find(file, "layers.3.self_connection.0e"));
  assert_true(odd[0] == 0.5302742123603821 && odd[32 * 2 * 32 - 1] == -0.1993878185749054 &&
              even[0] == -1.3140615224838257);
  free(odd);
  free(even);
  clb_safetensors_close(&file);
  unlink(convert_out);
}

/* readout.1 becomes elements 3 to 18 of the storage of readout.0. */
static void takes_part_of_a_storage(void **state) {
  (void)state;
#define READOUT_1(key, offset) key "r\xa1\2\0\0h\6K\x10tQr\xa2\2\0\0K" offset "(K\x10t"
  static const char from[] = READOUT_1("72", "\0"), to[] = READOUT_1("69", "\3"),
                    beyond[] = READOUT_1("72", "\1");
  size_t n;
  unsigned char *network = get_file(real_model(), &n);
  if (!network)
    skip_because("there is no %s (package cp2k-data, or CLB_TEST_NEQUIP)", real_model());
  change(network, n, from, to, sizeof from - 1);
  put_file(convert_in, made.bytes, made.n);
  clb_safetensors *file = convert_file(convert_in);
  double *whole = read_tensor(file, clb_safetensors_find(file, "readout.0")),
         *taken = read_tensor(file, clb_safetensors_find(file, "readout.1"));
  assert_memory_equal(taken, whole + 3, 16 * sizeof *taken);
  free(whole);
  free(taken);
  clb_safetensors_close(&file);
  unlink(convert_out);
  change(network, n, from, beyond, sizeof from - 1);
  refused_bytes(made.bytes, made.n,
                "tensor 'weight' reaches beyond its entry 'data/72' of 64 bytes");
  change(network, n, "(M\0\xct(K", "(M\1\xbt(K",
         7); /* 2817 instead of 3072 weights, of two matrices */
  refused_bytes(made.bytes, made.n,
                "'layer0_convnet.conv.linear_2.weight' has 2817 numbers, not 3072");
  free(network);
}

static void refuses_other_networks(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *what;
  } changes[] = {
      {"BesselBasis", "GaussiBasis", "stands where BesselBasis was expected"},
      {"PolynomialCutoff", "ExponentialCutof", "stands where PolynomialCutoff was expected"},
      {"nteractionBlock", "nteractionBlick", "stands where InteractionBlock was expected"},
      {"_gate\nGate", "_gate\nGaty", "stands where Gate was expected"},
      {"normalize2mom", "normalize3mom", "stands where normalize2mom was expected"},
      {"component", "integrals", "harmonics that are not normalised by component"},
      {"uvu", "uvv", "a path that is not supported"},
      {"uvw", "uvv", "a path that is not supported"},
      {"total_energy_sum", "total_energy_min", "module 'total_energy_min' is not supported"},
      {"layer2_convnet", "layer7_convnet", "no layers, or gaps between them"},
      {"avg_num_neighbors", "max_num_neighbors", "lacks 'avg_num_neighbors'"},
      {"FloatStorage", "FloatStorags", "asks for 'torch FloatStorags'"},
      {"resnet", "resnot", "lacks 'resnet'"},
      {"bias_numel", "bias_nomel", "lacks 'bias_numel'"},
      {"has_shift", "has_shaft", "lacks 'has_shift'"},
      {"_factor", "_fuctor", "lacks '_factor'"},
      {"(K\x8K@t(K@K\1t", "(K\x8K@t(K\xffK\1t",
       "tensor 'weight' reaches beyond its entry 'data/11' of 2048 bytes"},
      {"(K\x8K@t(K@K\1t", "(K\x9K@t(K@K\1t",
       "tensor 'weight' reaches beyond its entry 'data/11' of 2048 bytes"},
  };
  size_t n;
  unsigned char *file = get_file(real_model(), &n);
  if (!file) skip_because("there is no %s (package cp2k-data, or CLB_TEST_NEQUIP)", real_model());
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    change(file, n, changes[i].from, changes[i].to, strlen(changes[i].from));
    refused_bytes(made.bytes, made.n, changes[i].what);
  }
  free(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_archives),         cmocka_unit_test(refuses_other_archives),
      cmocka_unit_test(refuses_packed_entries),   cmocka_unit_test(refuses_pickles),
      cmocka_unit_test(refuses_a_strange_pickle), cmocka_unit_test(long_pickles),
      cmocka_unit_test(converts_water),           cmocka_unit_test(takes_part_of_a_storage),
      cmocka_unit_test(refuses_other_networks),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_converted);
}
