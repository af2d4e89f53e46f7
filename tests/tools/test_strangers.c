/* tests/tools/test_strangers.c - untrusted files, each of which once caused a wrong number, a
   crash, a hang or garbage: now each is read right, or refused with one message that names it. */
#include "tests/dynamics/model_folder.h"

#include "src/base/text.h"

static const char *stranger_file(const char *name) {
  return data_file(format("strangers/%s", name));
}

/* It prints no control characters. */
static void expect_plain(const char *arguments, const char *text) {
  clb_text t = {0};
  clb_text_bytes(&t, text, strlen(text));
  clb_text_quote(&t, 0);
  if (t.n != strlen(text))
    fail_msg("clebsch %s prints bytes that a terminal obeys: %s", arguments, t.s);
  clb_text_free(&t);
}

/* Files of some kilobytes need no more than this; sanitizers take memory of their own. */
#if defined(__SANITIZE_ADDRESS__)
enum { MAX_KILOBYTES = 4000000 };
#else
enum { MAX_KILOBYTES = 200000 };
#endif

/* said: NULL where it is read. */
static outcome expect_outcome(const char *arguments, const char *file, const char *said) {
  outcome o = run_clebsch(arguments);
  expect_plain(arguments, o.out);
  expect_plain(arguments, o.err);
  if (o.kilobytes > MAX_KILOBYTES) fail_msg("clebsch %s takes %ld kB", arguments, o.kilobytes);
  if (!said && (o.status || *o.err))
    fail_msg("clebsch %s: exit status %d: %s", arguments, o.status, o.err);
  if (!said) return o;
  const char *end = strchr(o.err, '\n');
  const bool one_line = !strncmp(o.err, "clebsch: ", 9) && end && !end[1];
  if (o.status != 1 || *o.out || !one_line || !strstr(o.err, file) || !strstr(o.err, said))
    fail_msg("clebsch %s: exit status %d, not 1 and one sentence with '%s' and '%s': %s%s",
             arguments, o.status, file, said, o.err, o.out);
  return o;
}

/* ---- structures ---- */

typedef struct {
  const char *file, *said; /* said: NULL where it is read */
  double energy;           /* eV, as printed */
  const char *more;        /* in what is printed */
} stranger;

static void energy_of(const char *command, const char *model, const char *structure,
                      const stranger *s, const char *file) {
  const char *arguments =
      format("%s --device cpu:interpreter --model %s --structure %s", command, model, structure);
  outcome o = expect_outcome(arguments, file, s->said);
  if (!s->said) {
    const char *found = strstr(o.out, "energy     ");
    const double energy = found ? atof(found + 11) : 0;
    if (!(energy > s->energy - 2e-6 && energy < s->energy + 2e-6))
      fail_msg("%s: %.6f eV, not %.6f: %s", file, energy, s->energy, o.out);
    if (s->more && !strstr(o.out, s->more)) fail_msg("%s: no '%s' in %s", file, s->more, o.out);
  }
  forget(&o);
}

static void structures(void **state) {
  (void)state;
  static const stranger all[] = {
      {"w3.xyz", NULL, 8.097867, "periodic: abc"},
      {"two.xyz", NULL, 5.930769, "periodic: no"},
      {"crlf.xyz", NULL, 8.097867, "periodic: no"},
      {"bom.xyz", NULL, 8.097867, "periodic: no"},
      {"l3.xyz", NULL, 8.097867, "periodic: abc"},
      {"lh.xyz", NULL, 8.097867, "periodic: abc"},
      {"altloc.pdb", NULL, 7.896393,
       "3 atoms: 2 H 1 O; periodic: no; 1 atom at an alternate place is left out"},
      {"l2.xyz", NULL, 8.097867, "periodic: abc"},
      {"l4.xyz", "line 2: a cell is called Lattice in extended XYZ, not 'Cell'", 0, NULL},
      {"twol.xyz", "line 2: Lattice is there twice", 0, NULL},
      {"extra.xyz", "line 6: there are more lines than the 3 atoms that line 1 tells of", 0, NULL},
      {"esc.xyz", "line 4: '\\x1b[31mRED\\x07' is not a chemical symbol", 0, NULL},
      {"top.xyz", "positions[0] and positions[1] are one place", 0, NULL},
      {"tinycell_0.01A.xyz", "the cell is only 0.01 Angstrom high along vector a", 0, NULL},
      {"tinycell_0.02A.xyz", "the cell is only 0.02 Angstrom high along vector a", 0, NULL},
      {"thin.pdb", "the cell is only 0.00174533 Angstrom high along vector b", 0, NULL},
      {"zero.gro", "line 5: the box is 0 Angstrom along x", 0, NULL},
      {"neg.gro", "line 5: the box is -10 Angstrom along x", 0, NULL},
      {"el.gro", "line 4: atom 'CL' of residue 'CLA' does not tell its element", 0, NULL},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    energy_of("energy --repeat 1", stranger_file("tiny.safetensors"), stranger_file(all[i].file),
              &all[i], all[i].file);
}

/* ---- models ---- */

static void models(void **state) {
  (void)state;
  static const stranger all[] = {
      {"model_heap_overflow.safetensors", "layers.0.irreps_message has 1073741838 numbers per atom",
       0, NULL},
      {"model_3.5GB.safetensors",
       "'layers.0.paths': path 0, \"0,0,0\": its message has 15000 channels; they must be the 2 of "
       "its features",
       0, NULL},
      {"model_escape.safetensors", "'architecture' holds control characters", 0, NULL},
  };
  static const stranger nan = {"w3.xyz", "energy[0] comes out as ", 0, NULL};
  static const char *const runs[] = {"energy --repeat 1", "energy --repeat 1 --json",
                                     "energy --repeat 1 --out nan.xyz",
                                     "md --steps 1 --dt 0.1 --trajectory nan.xyz"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    energy_of("energy --repeat 1", stranger_file(all[i].file), stranger_file("w3.xyz"), &all[i],
              all[i].file);
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    energy_of(runs[i], stranger_file("model_nan.safetensors"), stranger_file("w3.xyz"), &nan,
              "w3.xyz");
    assert_int_not_equal(access("nan.xyz", F_OK), 0);
  }
}

/* ---- models that declare more than their files contain ---- */

/* The small model, whose first layer declares these numbers of scalars before and after a matrix;
   the matrix in the file is 2 by 3. */
static void write_blown_up(const char *path, long long message, long long linear) {
  uint64_t header;
  size_t n;
  char *bytes = get_file(stranger_file("tiny.safetensors"), &n);
  assert_true(bytes && n > 8);
  memcpy(&header, bytes, sizeof header);
  assert_true(header < n - 8);
  json_t *all = json_loadb(bytes + 8, header, 0, NULL);
  json_t *metadata = json_object_get(all, "__metadata__");
  assert_non_null(metadata);
#define SET(key, ...)                                                                              \
  json_object_set_new(metadata, "layers.0.irreps_" key, json_sprintf(__VA_ARGS__))
  SET("message", "%lldx0e+2x1o", message);
  SET("linear", "%lldx0e+1x1o", linear);
  SET("scalars", "%lldx0e", linear - 1);
  SET("out", "%lldx0e+1x1o", linear - 1);
  char *text = json_dumps(all, JSON_COMPACT);
  assert_non_null(text);
  const uint64_t length = (strlen(text) + 7) / 8 * 8;
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fwrite(&length, sizeof length, 1, f);
  fprintf(f, "%-*s", (int)length, text);
  fwrite(bytes + 8 + header, 1, n - 8 - header, f);
  assert_int_equal(fclose(f), 0);
  free(text), free(bytes);
  json_decref(all);
}

/* Sizes that would take memory, and sizes whose products, 2^60 and nearby, wrap around. */
static void blown_up_models(void **state) {
  (void)state;
  static const long long counts[] = {
      3, 15000, 1000000, 1 << 27, (1 << 30) - 1, INT32_MAX - 1, 1ll << 62};
  static const long long wraps[] = {0, 1, 4, 5, 1000, 46341, (1 << 30) - 2};
  static const stranger refused = {"blown_up", "layers.0.", 0, NULL};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    write_blown_up("blown_up", counts[i], counts[i] + 1);
    energy_of("energy --repeat 1", "blown_up", stranger_file("w3.xyz"), &refused, "blown_up");
  }
  for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++) {
    write_blown_up("blown_up", (1ll << 30) + wraps[i], (1ll << 30) - wraps[i]);
    energy_of("energy --repeat 1", "blown_up", stranger_file("w3.xyz"), &refused, "blown_up");
  }
  write_blown_up("blown_up", 2, 3); /* what it is */
  static const stranger read = {"blown_up", NULL, 8.097867, NULL};
  energy_of("energy --repeat 1", "blown_up", stranger_file("w3.xyz"), &read, "blown_up");
}

/* ---- another program's model ---- */

/* A Nequix model of random numbers: read directly, and converted first. The energy was computed by
   Clebsch itself, not by another program. */
static void another_programs_model(void **state) {
  (void)state;
  static const stranger read = {"w3.xyz", NULL, 1.167905, "3 atoms: 2 H 1 O"};
  const char *from = data_file("../fuzz/corpus/nqx/tiny");
  assert_int_equal(symlink(from, "strange.nqx"), 0);
  outcome o = expect_outcome(format("convert %s converted", from), "tiny", NULL);
  forget(&o);
  energy_of("energy --repeat 1", "converted", stranger_file("w3.xyz"), &read, "w3.xyz");
  energy_of("energy --repeat 1", "strange.nqx", stranger_file("w3.xyz"), &read, "w3.xyz");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(structures), cmocka_unit_test(models),
                                     cmocka_unit_test(blown_up_models),
                                     cmocka_unit_test(another_programs_model)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
