/* tests/dynamics/test_energy.c - `clebsch energy`: its JSON, its file of forces, its errors.
   CLB_TEST_NEQUIP: water.pth, by default that of Debian's cp2k-data; CLB_TEST_NEQUIX:
   nequix-mp-1.nqx. */
#include "tests/command_json.h"
#include "tests/dynamics/model_folder.h"

#include <clebsch/clebsch.h>

static void has_fields(void **state) {
  (void)state;
  json_t *o = json_of("energy --model model --structure atoms.xyz --json --repeat 2 --exact");
  const json_t *e = json_object_get(o, "atom_energies"), *f = json_object_get(o, "forces"),
               *s = json_object_get(o, "stress");
  double sum = 0, total[3] = {0};
  assert_int_equal(integer_of(o, "atoms"), 6);
  assert_int_equal(integer_of(o, "edges"), 30);
  expect_text(o, "dtype", "f64");
  assert_true(json_is_string(json_object_get(o, "device")));
  assert_true(json_array_size(e) == 6 && json_array_size(f) == 6 && json_array_size(s) == 9);
  for (size_t i = 0; i < 6; i++) {
    const json_t *each = json_array_get(f, i);
    sum += at(e, i);
    assert_int_equal(json_array_size(each), 3);
    for (size_t k = 0; k < 3; k++) total[k] += at(each, k);
  }
  near_to("the energy", number_of(o, "energy"), sum, 1e-9);
  for (int k = 0; k < 3; k++) near_to("the sum of the forces", total[k], 0, 1e-9);
  near_to("stress yx", at(s, 3), at(s, 1), 1e-12);
  assert_true(number_of(o, "seconds_min") > 0 &&
              number_of(o, "seconds") >= number_of(o, "seconds_min"));
  assert_true(number_of(o, "seconds_first") > number_of(o, "seconds_min"));
  json_decref(o);
}

/* The forces are the derivative: the file has the right sign, order and unit. */
static void differentiates(void **state) {
  (void)state;
  json_t *here = json_of("energy --model model --structure pair.xyz --json --exact");
  assert_true(json_is_null(json_object_get(here, "stress")));
  double energy[2];
  for (int i = 0; i < 2; i++) {
    char text[128];
    snprintf(text, sizeof text, "2\nProperties=species:S:1:pos:R:3\nO 0 0 0\nH 0 0 %.6f\n",
             1.1 + (i ? 1e-4 : -1e-4));
    put_text("moved.xyz", text);
    json_t *o = json_of("energy --model model --structure moved.xyz --json --exact");
    energy[i] = number_of(o, "energy");
    json_decref(o);
  }
  const double force = at(json_array_get(json_object_get(here, "forces"), 1), 2);
  assert_true(fabs(force) > 1e-3);
  near_to("the force", force, -(energy[1] - energy[0]) / 2e-4, 1e-5 * fabs(force) + 1e-6);
  json_decref(here);
}

static void writes_forces(void **state) {
  (void)state;
  json_t *o = json_of("energy --model model --structure atoms.xyz --json --out forces.xyz");
  FILE *f = fopen("forces.xyz", "r");
  char line[1024], symbol[8];
  double x[6], energy, first;
  assert_non_null(f);
  assert_true(fgets(line, sizeof line, f) && !strcmp(line, "6\n"));
  assert_non_null(fgets(line, sizeof line, f));
  assert_non_null(strstr(line, "Lattice=\"4.2999999999999998 0 0 "));
  assert_non_null(strstr(line, "Properties=species:S:1:pos:R:3:forces:R:3 "));
  assert_int_equal(sscanf(strstr(line, " energy="), " energy=%lf stress=\"%lf", &energy, &first),
                   2);
  assert_true(energy == number_of(o, "energy") && first == at(json_object_get(o, "stress"), 0));
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(
        fscanf(f, "%7s %lf %lf %lf %lf %lf %lf", symbol, x, x + 1, x + 2, x + 3, x + 4, x + 5), 7);
    assert_string_equal(symbol, i % 3 ? "H" : "O");
    for (size_t k = 0; k < 3; k++)
      assert_true(x[3 + k] == at(json_array_get(json_object_get(o, "forces"), i), k));
  }
  assert_true(x[0] == 2.0 && x[1] == 2.2 && x[2] == 3.1);
  fclose(f);
  json_decref(o);
  /* reads what was written */
  json_t *again = json_of("energy --model model --structure forces.xyz --json");
  assert_true(number_of(again, "energy") == energy);
  json_decref(again);
}

/* Which program, model and options the numbers are of, and their units. */
static void says_what_they_are(void **state) {
  (void)state;
  static const char *const runs[] = {
      "energy -m model -s atoms.xyz -j --dtype f32 --knots 64 --repeat 1",
      "energy -m model -s atoms.xyz -j --dtype f32 --knots 64 --frames all --out f.xyz"};
  for (int i = 0; i < 2; i++) {
    json_t *o = json_of(runs[i]);
    expect_text(o, "clebsch", CLB_VERSION);
    expect_text(o, "model", "model");
    expect_text(o, "architecture", "nequix");
    expect_text(o, "structure", "atoms.xyz");
    expect_text(o, "dtype", "f32");
    assert_int_equal(integer_of(o, "knots"), 64);
    assert_true(*json_string_value(json_object_get(o, "device")));
    assert_true(*json_string_value(json_object_get(o, "driver")));
    expect_text(json_object_get(o, "units"), "energy", "eV");
    expect_text(json_object_get(o, "units"), "stress", "eV/Angstrom^3");
    json_decref(o);
  }
}

/* What a model is; one that is converted first may have any name. */
static void tells_of_models(void **state) {
  (void)state;
  json_t *o = json_of("info --json model");
  const json_t *elements = json_object_get(o, "elements");
  expect_text(o, "architecture", "nequix");
  expect_text(o, "dtype", "f32");
  assert_int_equal(json_array_size(elements), 3);
  assert_string_equal(json_string_value(json_array_get(elements, 2)), "O");
  assert_true(integer_of(o, "bytes_per_edge") > 40);
  json_decref(o);
  expect_clebsch("info", 2, "--model is missing");
  expect_clebsch("info model model", 2, "one argument too many");
  expect_clebsch("info atoms.xyz", 1, "atoms.xyz: not a safetensors file");
  expect_clebsch("info nowhere", 1, "nowhere: No such file");
  const char *water = water_model();
  char *out = printed_by(format("convert %s water", water));
  assert_string_equal(out, "water: nequip, 2 elements (H O), r_max 4 A, 0.623 MB\n");
  free(out);
  assert_int_equal(symlink(water, "nameless"), 0);
  expect_printed("info nameless", "nameless: nequip, 154204 parameters\n", "elements   2: H O\n");
}

/* Every frame as if it were alone in a file; what the file says of them is not carried over. */
static void labels_frames(void **state) {
  (void)state;
  static const char *const frames[] = {
      "2\nProperties=species:S:1:pos:R:3 energy=3 config=a\nO 0 0 0\nH 0 0 1.1\n",
      "3\nLattice=\"9 0 0 0 5 0 0 0.4 5\" pbc=\"F T T\"\nO 0 0 0\nH 0 0.6 0.8\nC 0.1 2 2\n",
      "3\nLattice=\"4 0 0 0 4 0 0.5 0 4\"\nO 0 0 0\nH 0 0.6 0.8\nC 0.1 2 2\n", "0\n\n",
      "1\n\nO 1 2 3\n"};
  enum { FRAMES = sizeof frames / sizeof *frames };
  char all[2048] = "", alone[4096] = "";
  for (int i = 0; i < FRAMES; i++) {
    strcat(strcat(all, i == 2 ? "\n \n" : ""), frames[i]);
    put_text("one.xyz", frames[i]);
    expect_clebsch("energy --model model --structure one.xyz --out labelled.xyz -r 1", 0, NULL);
    char *text = get_text("labelled.xyz");
    assert_true(strlen(alone) + strlen(text) < sizeof alone);
    assert_int_equal(!strstr(text, "stress="), !strstr(frames[i], "Lattice="));
    strcat(alone, text);
    free(text);
  }
  put_text("frames.xyz", all);
  json_t *o = json_of("energy --model model --structure frames.xyz --frames all --out all.xyz -j");
  assert_int_equal(integer_of(o, "frames"), FRAMES);
  assert_int_equal(integer_of(o, "atoms"), 9);
  assert_true(number_of(o, "seconds") > 0);
  json_decref(o);
  expect_file("all.xyz", alone);
  expect_printed("energy -m model -s all.xyz --frames all --out again.xyz",
                 "written    again.xyz: 5 frames, 9 atoms, by model on ");
  expect_file("again.xyz", alone);
}

/* --frame of the commands that take one structure. */
static void one_frame(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"--frame 5", 1, "five.xyz: none of its 5 frames, counted from 0, is chosen"},
      {"--frame=-6", 1, "five.xyz: none of its 5 frames"},
      {"--frame 1:2", 2, "--frame is a number, from 0 or, below 0, from the end, not '1:2'"},
      {"--frame 1 --frames all --out s.xyz", 2, "--frame is one frame, --frames are several"},
  };
  put_text("five.xyz", "1\n\nO 0 0 0\n1\n\nO 0 0 1\n1\n\nO 0 0 2\n1\n\nQ 0 0 3\n1\n\nO 0 0 4\n");
  static const char *const frames[][2] = {
      {"", "0"}, {"--frame 1", "1"}, {"--frame=-1", "4"}, {"--frame=-5", "0"}};
  for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
    free(printed_by(format("energy -m model -s five.xyz -r 1 --out s.xyz %s", frames[i][0])));
    char *out = get_text("s.xyz");
    if (!strstr(out, format("\nO 0 0 %s", frames[i][1]))) fail_msg("%s: %s", frames[i][0], out);
    free(out);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    expect_clebsch(format("energy -m model -s five.xyz %s", wrong[i].arguments), wrong[i].status,
                   wrong[i].said);
  expect_clebsch("energy -m model -s five.xyz --frame 3", 1,
                 "five.xyz, frame 4, line 12: 'Q' is not a chemical symbol");
  expect_clebsch("energy -m model -s five.xyz --frames 1::2 --out s.xyz", 1, "five.xyz, frame 4");
  put_text("POSCAR", "t\n1\n9 0 0\n0 9 0\n0 0 9\nO\n1\nDirect\n0 0 0\n");
  expect_clebsch("energy -m model -s POSCAR --frame 0", 1, "are read frame by frame");
  expect_clebsch("energy -m model --frame 0 -s - --compare-networks --knots 9", 2,
                 "--compare-networks reads the structure twice: it must be a file");
  expect_clebsch("energy -m model --frame=-1 -s -", 1,
                 "frames of standard input are counted from its start, not from its end");
}

/* Memory is what `info` says, times the atoms and edges that `energy` finds. */
static void estimates_memory(void **state) {
  (void)state;
  json_t *found = json_of("energy --model model --structure atoms.xyz -r 1 --json"),
         *info = json_of("info model --json"),
         *o = json_of("energy --model model --structure atoms.xyz --estimate --json");
#define COUNT(of, key) ((double)json_integer_value(json_object_get(of, key)))
  const double bytes =
      6 * COUNT(info, "bytes_per_atom") + COUNT(found, "edges") * COUNT(info, "bytes_per_edge");
  assert_int_equal(COUNT(o, "atoms"), 6);
  assert_int_equal(COUNT(o, "edges"), COUNT(found, "edges"));
  near_to("bytes", number_of(o, "bytes"), bytes, 0);
  near_to("atoms in 16 GB", number_of(json_object_get(o, "atoms_that_fit"), "16 GB"),
          6 * 16e9 * 15 / 17 / bytes, 1e-3);
  const double block_bytes = 6 * COUNT(o, "block_bytes_per_atom") +
                             COUNT(found, "edges") * COUNT(o, "block_bytes_per_edge");
  near_to("block bytes", number_of(o, "block_bytes"), block_bytes, 0);
  near_to("atoms in 80 GB", number_of(json_object_get(o, "atoms_that_fit_in_blocks"), "80 GB"),
          6 * fmin(80e9 * 28 / 33 / block_bytes, INT32_MAX / COUNT(found, "edges")), 1e-3);
  assert_true(block_bytes < bytes);
  json_decref(found), json_decref(info), json_decref(o);
  expect_printed("energy -m model -s atoms.xyz --estimate", " for 6 atoms and ",
                 "\nfits       of this density, about ", "\n           in blocks, about ");
  put_text("empty.xyz", "0\n\n");
  expect_clebsch("energy -m model -s empty.xyz --estimate", 0, NULL);
}

/* One wrong frame, and nothing is written. */
static void labels_all_or_none(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"sodium.xyz", 1, "sodium.xyz, frame 2: atom 1 is Na, but model knows only H C O"},
      {"twice.xyz", 1, "twice.xyz, frame 3: "},
      {"cut.xyz", 1, "cut.xyz, frame 2, line 6: the file ends here, before atom 2 of 2"},
      {"more.xyz", 1,
       "more.xyz, frame 2, line 4: the first line of a frame is the number of atoms, not 'H "},
      {"thin.xyz", 1, "thin.xyz, frame 2, line 5: the cell is only 0.4 Angstrom high"},
      {"box.gro", 1, "box.gro: only files of extended XYZ (.xyz, .extxyz) are read frame by frame"},
      {"none.xyz", 1, "none.xyz, frame 1: the file ends here, before the number of atoms"},
      {"nowhere.xyz", 1, "nowhere.xyz: No such file"},
  };
  put_text("sodium.xyz", "1\n\nO 0 0 0\n1\n\nNa 0 0 0\n");
  put_text("twice.xyz", "1\n\nO 0 0 0\n1\n\nO 0 0 0\n2\n\nO 0 0 0\nO 0 0 0\n");
  put_text("cut.xyz", "1\n\nO 0 0 0\n2\n\nO 0 0 0\n");
  put_text("more.xyz", "1\n\nO 0 0 0\nH 0 0 1\n");
  put_text("thin.xyz", "1\n\nO 0 0 0\n1\nLattice=\"9 0 0 0 9 0 0 0 0.4\"\nO 0 0 0\n");
  put_text("box.gro", "a box\n0\n1 1 1\n");
  put_text("none.xyz", "");
  put_text("kept.xyz", "what was there\n");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    expect_clebsch(format("energy --model model --frames all --out kept.xyz --structure %s",
                          wrong[i].arguments),
                   wrong[i].status, wrong[i].said);
    expect_file("kept.xyz", "what was there\n");
  }
}

static void takes_precision(void **state) {
  (void)state;
  json_t *wide = json_of("energy --model model --structure atoms.xyz --json --exact"),
         *single = json_of("energy --model model --structure atoms.xyz --json");
  json_t *splines = json_of("energy --model model --structure atoms.xyz --json --knots 400");
  const double e = number_of(wide, "energy");
  expect_text(single, "dtype", "f32");
  assert_true(number_of(single, "energy") != e && number_of(splines, "energy") != e);
  near_to("the energy in f32", number_of(single, "energy"), e, 1e-4 * fabs(e) + 1e-4);
  near_to("the energy of splines", number_of(splines, "energy"), e, 1e-4 * fabs(e) + 1e-4);
  json_decref(wide);
  json_decref(single);
  json_decref(splines);
}

#define ION "3\n%s\nO 0.1 0 0\nH 0.2 0.96 0.1\nH -0.9 -0.3 0.2\n"
/* The charge and the spin of a file, and of options, which go before it. */
static void takes_charge_and_spin(void **state) {
  (void)state;
  char run[512];
  snprintf(run, sizeof run,
           "energy --model %s/mace/charged.model --structure ion.xyz --device cpu --exact",
           getenv("CLB_TEST_DATA"));
  static const char *const files[] = {"", "charge=-1", "total_charge=1 spin=2"},
                           *const options[] = {"", "--charge -1 --spin 1", "--charge 1 --spin 2"};
  double found[3];
  for (int i = 0; i < 3; i++) {
    put_text("ion.xyz", format(ION, files[i]));
    json_t *of_file = json_of(format("%s --json", run));
    put_text("ion.xyz", format(ION, i ? "charge=2 spin=3" : ""));
    json_t *of_options = json_of(format("%s --json %s", run, options[i]));
    found[i] = number_of(of_file, "energy");
    assert_true(found[i] == number_of(of_options, "energy"));
    assert_true(!i || fabs(found[i] - found[i - 1]) > 1e-3);
    json_decref(of_file);
    json_decref(of_options);
  }
  expect_printed(format("%s --charge 1", run), "charge 1, multiplicity 3");
  expect_clebsch("energy --model model --structure atoms.xyz --charge 1", 1,
                 "model: it does not read the charge of atoms");
  expect_clebsch("energy --model model --structure atoms.xyz --spin 2", 1, "the spin of atoms");
  expect_clebsch("energy --model model --structure atoms.xyz --spin 0", 2,
                 "--spin is a whole number");
}

static void speaks_to_people(void **state) {
  (void)state;
  expect_printed("energy -m model -s atoms.xyz -o f.xyz -r 1", "6 atoms: 4 H 2 O; periodic: abc",
                 "nequix, 3 layers, l <= 2, r_max 3.1 A", "eV per atom", "forces     norm ",
                 "pressure", "us per atom", "written    f.xyz");
  expect_clebsch("energy --help", 0, NULL);
}

static void minds_its_arguments(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"energy --structure atoms.xyz", 2, "--model is missing"},
      {"energy --model model", 2, "--structure is missing"},
      {"energy --model model --structure atoms.xyz --dtype f16", 2,
       "--dtype is f64 or f32, not 'f16'"},
      {"energy --model model --structure atoms.xyz --knots -1", 2, "--knots is a whole number"},
      {"energy --model model --structure atoms.xyz --repeat 0", 2, "--repeat is a whole number"},
      {"energy --model model --structure atoms.xyz more", 2, "'more' is one argument too many"},
      {"energy --model model --structure atoms.xyz --knots 1", 1, "knots"},
      {"energy --model nowhere --structure atoms.xyz", 1, "nowhere: No such file"},
      {"energy --model nowhere.pth --structure atoms.xyz", 1, "nowhere.pth: No such file"},
      {"energy --model atoms.xyz --structure atoms.xyz", 1, "atoms.xyz: not a safetensors file"},
      {"energy --model bad.pth --structure atoms.xyz", 1, "neither a model of PyTorch"},
      {"energy --model model --structure nowhere.xyz", 1, "nowhere.xyz: No such file"},
      {"energy --model model --structure model", 1, "model: "},
      {"energy --model model --structure salt.xyz", 1,
       "salt.xyz: atom 2 is Na, but model knows only H C O"},
      {"energy --model model --structure short.xyz", 1, "short.xyz, line "},
      {"energy --model model --structure atoms.xyz --device nothing", 1, "nothing"},
      {"energy --model model --structure atoms.xyz --out /nowhere/f.xyz", 1,
       "/nowhere/f.xyz: No such file"},
      {"energy --model model --structure atoms.xyz --out /dev/null", 1, "/dev/null: not a file"},
      {"energy --model model --structure atoms.xyz --frames x --out f.xyz", 2,
       "--frames is all, or START:STOP:STEP as of a list in Python, not 'x'"},
      {"energy --model model --structure atoms.xyz --frames all", 2, "--frames needs --out"},
      {"energy --model model --structure atoms.xyz --estimate --out f.xyz", 2,
       "--estimate computes nothing: of the others, it takes --json alone"},
      {"energy --model model --structure salt.xyz --estimate", 1, "atom 2 is Na"},
      {"energy --model model --structure atoms.xyz --forces f.xyz", 2,
       "clebsch energy has no option '--forces'; did you mean --out?"},
      {"energy --model model --structure atoms.xyz --frames all --out f.xyz --repeat 3", 2,
       "--repeat, --profile and --compare-networks are of one frame: no --frames"},
      {"energy --model model --structure atoms.xyz --frames all --out atoms.xyz", 1,
       "atoms.xyz: is the structure (--structure), too"},
  };
  put_text("salt.xyz", "2\n\nO 0 0 0\nNa 0 0 2\n");
  put_text("short.xyz", "3\n\nO 0 0 0\nH 0 0 1\n");
  put_text("bad.pth", "PK");
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
}

/* The model is converted on the fly. */
static void computes_water(void **state) {
  (void)state;
  put_text("water.xyz", "3\n\nO 0 0 0\nH 0.76 0.59 0\nH -0.76 0.59 0\n");
  json_t *o =
      json_of(format("energy --model %s --structure water.xyz --json --dtype f32", water_model()));
  near_to("the energy of a molecule", number_of(o, "energy"), -468,
          3); /* a third of -156 eV per atom in water */
  near_to("its symmetry", at(json_array_get(json_object_get(o, "forces"), 1), 0),
          -at(json_array_get(json_object_get(o, "forces"), 2), 0), 1e-3);
  json_decref(o);
}

static void computes_silicon(void **state) {
  (void)state;
  const char *path = getenv("CLB_TEST_NEQUIX");
  if (!path || access(path, R_OK)) skip_because("CLB_TEST_NEQUIX does not name nequix-mp-1.nqx");
  put_text("silicon.xyz", "2\nLattice=\"0 2.715 2.715 2.715 0 2.715 2.715 2.715 0\" "
                          "Properties=species:S:1:pos:R:3\nSi 0 0 0\nSi 1.3575 1.3575 1.3575\n");
  json_t *o = json_of(format("energy --model %s --structure silicon.xyz --json --dtype f32", path));
  near_to("the energy of silicon", number_of(o, "energy"), -10.84,
          0.1); /* Materials Project: -5.42 eV per atom */
  json_decref(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(has_fields),
      cmocka_unit_test(differentiates),
      cmocka_unit_test(writes_forces),
      cmocka_unit_test(takes_precision),
      cmocka_unit_test(takes_charge_and_spin),
      cmocka_unit_test(speaks_to_people),
      cmocka_unit_test(minds_its_arguments),
      cmocka_unit_test(computes_water),
      cmocka_unit_test(computes_silicon),
      cmocka_unit_test(says_what_they_are),
      cmocka_unit_test(tells_of_models),
      cmocka_unit_test(labels_frames),
      cmocka_unit_test(labels_all_or_none),
      cmocka_unit_test(estimates_memory),
      cmocka_unit_test(one_frame),
  };
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
