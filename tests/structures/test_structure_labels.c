/* tests/structures/test_structure_labels.c - labels in extended XYZ: their names, forms, units and
   signs, and what is refused. */
#include "tests/structures/structure_runner.h"

static const structure_options wanted = {.labels = true};
#define L5 "Lattice=\"5 0 0 1 4 0 0 0 2\" " /* of volume 40 */
#define PLAIN "Properties=species:S:1:pos:R:3 "
#define FORCES "Properties=species:S:1:pos:R:3:forces:R:3 "

static const char *frame(const char *comment, const char *atom) {
  static char text[4096];
  assert_true(snprintf(text, sizeof text, "1\n%s\n%s\n", comment, atom) < (int)sizeof text);
  return text;
}

/* NaN is the same as NaN. */
static void same(const char *comment, const char *what, double x, double y) {
  if (!(isnan(x) && isnan(y)) && !(fabs(x - y) <= 1e-15 * fabs(y)))
    fail_msg("'%s': %s is %.17g, not %.17g", comment, what, x, y);
}

/* ---- the comment line ---- */

typedef struct {
  const char *comment;
  double energy, stress[6], weight; /* stress: xx yy zz yz xz xy; weight 0: 1 */
  const char *type;
} said;

#define NO_STRESS                                                                                  \
  { NAN, NAN, NAN, NAN, NAN, NAN }

static void understood(void **state) {
  static const said all[] = {
      {"", NAN, NO_STRESS, 0, NULL},
      {"energy=-3.25", -3.25, NO_STRESS, 0, NULL},
      {"energy=\"-3.25\" config_type=bulk config_weight=0.5", -3.25, NO_STRESS, 0.5, "bulk"},
      {"energy=1.5d1 config_type=\"a b\"", 15, NO_STRESS, 0, "a b"},
      {"config_type= energy=2", 2, NO_STRESS, 0, ""},
      {"REF_energy=1 energy=2", 1, NO_STRESS, 0, NULL},
      {"energy=2 REF_energy=1", 1, NO_STRESS, 0, NULL},
      {"energy=2 REF_energy=nan", NAN, NO_STRESS, 0, NULL},
      {"energy=NaN", NAN, NO_STRESS, 0, NULL},
      {"energy=-nan", NAN, NO_STRESS, 0, NULL},
      {"Energy=3 E=4 free_energy=5 energy", NAN, NO_STRESS, 0, NULL}, /* of other programs */
      {L5 "stress=\"1 6 5 6 2 4 5 4 3\"", NAN, {1, 2, 3, 4, 5, 6}, 0, NULL},
      {L5 "stress=\"1 2 3 4 5 6\"", NAN, {1, 2, 3, 4, 5, 6}, 0, NULL},
      {L5 "stress=[[1, 6, 5], [6, 2, 4], [5, 4, 3]]", NAN, {1, 2, 3, 4, 5, 6}, 0, NULL},
      {L5 "REF_stress=\"_JSON [[1.0, 6.0, 5.0], [6.0, 2.0, 4.0], [5.0, 4.0, 3.0]]\"",
       NAN,
       {1, 2, 3, 4, 5, 6},
       0,
       NULL},
      {L5 "stress=\"1 7 5 5 2 4 5 4 3\"", NAN, {1, 2, 3, 4, 5, 6}, 0, NULL}, /* symmetrised */
      {L5 "virial=\"40 0 20 0 -80 0 20 0 4\"", NAN, {-1, 2, -0.1, 0, -0.5, 0}, 0, NULL},
      {L5 "virials=\"40 -80 4 0 20 0\"", NAN, {-1, 2, -0.1, 0, -0.5, 0}, 0, NULL},
      {L5 "virial=\"40 0 0 0 40 0 0 0 40\" stress=\"3 3 3 0 0 0\"",
       NAN,
       {3, 3, 3, 0, 0, 0},
       0,
       NULL},
      {L5 "REF_virial=\"40 0 0 0 40 0 0 0 40\" stress=\"3 3 3 0 0 0\"",
       NAN,
       {-1, -1, -1, 0, 0, 0},
       0,
       NULL},
      {L5 "stress=\"1 2 3 4 5 6\" REF_stress=\"6 5 4 3 2 1\"", NAN, {6, 5, 4, 3, 2, 1}, 0, NULL},
      {L5 "stress=\"nan nan nan nan nan nan\"", NAN, NO_STRESS, 0, NULL},
      {"stress=\"nan nan nan nan nan nan\"", NAN, NO_STRESS, 0, NULL},
      {L5 "stress=\"1 2 nan 4 5 6\" config_weight=0", NAN, {1, 2, NAN, 4, 5, 6}, -1, NULL},
      {L5 "pbc=\"F F F\" stress=\"1 2 3 4 5 6\"", NAN, {1, 2, 3, 4, 5, 6}, 0, NULL},
  };
  static const int voigt[6] = {0, 4, 8, 5, 2, 1};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const said *w = &all[i];
    structure s = read_well("xyz", frame(w->comment, "O 1 2 3"), &wanted);
    const structure_labels *l = s.labels;
    same(w->comment, "energy", l->energy, w->energy);
    for (int k = 0; k < 6; k++) {
      same(w->comment, "a stress", l->stress[voigt[k]], w->stress[k]);
      same(w->comment, "a stress", l->stress[voigt[k] % 3 * 3 + voigt[k] / 3], w->stress[k]);
    }
    same(w->comment, "weight", l->weight, w->weight > 0 ? w->weight : w->weight < 0 ? 0 : 1);
    assert_null(l->forces);
    if (w->type) assert_string_equal(l->type, w->type);
    else assert_null(l->type);
    structure_free(&s);
  }
}

/* ASE's vectors behind the atoms are a cell, too. */
static void cell_behind_atoms(void **state) {
  (void)state;
  structure s = read_well("xyz",
                          "1\nvirial=\"40 0 20 0 -80 0 20 0 4\"\nO 0 0 0\nVEC1 5 0 0\nVEC2 1 4 0\n"
                          "VEC3 0 0 2\n",
                          &wanted);
  same("VEC", "stress yy", s.labels->stress[4], 2);
  structure_free(&s);
}

/* ---- forces ---- */

static void forces(void **state) {
  static const struct {
    const char *comment, *atom;
    double force[3];
  } all[] = {
      {FORCES, "O 1 2 3 4 5 6", {4, 5, 6}},
      {FORCES, "O 1 2 3 4 NaN 6", {4, NAN, 6}},
      {FORCES, "O 1 2 3 nan nan nan", {NAN, NAN, NAN}},
      {"Properties=REF_forces:R:3:species:S:1:pos:R:3:Forces:R:3",
       "7 8 9 O 1 2 3 4 5 6",
       {7, 8, 9}},
      {"Properties=Forces:R:3:species:S:1:pos:R:3:ref_forces:R:3",
       "7 8 9 O 1 2 3 4 5 6",
       {4, 5, 6}},
      {"Properties=species:S:1:pos:R:3:force:R:3", "O 1 2 3 4 5 6", {NAN, NAN, NAN}},
      {PLAIN, "O 1 2 3", {NAN, NAN, NAN}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    structure s = read_well("xyz", frame(all[i].comment, all[i].atom), &wanted);
    assert_true(s.n == 1 && s.positions[0] == 1 && s.positions[2] == 3);
    assert_int_equal(!s.labels->forces, isnan(all[i].force[0]));
    for (int k = 0; k < 3 && s.labels->forces; k++)
      same(all[i].comment, "a force", s.labels->forces[k], all[i].force[k]);
    structure_free(&s);
  }
}

/* More atoms than arrays begin with, of which one alone has a force. */
static void many_atoms(void **state) {
  enum { N = 1000 };
  char *text = malloc(N * 40 + 200), *at = text;
  (void)state;
  assert_non_null(text);
  at += sprintf(at, "%d\n" FORCES "\n", N);
  for (int i = 0; i < N; i++)
    at += sprintf(at, i == 777 ? "O %d 0 0 1 2 3\n" : "O %d 0 0 nan nan nan\n", 2 * i);
  structure s = read_well("xyz", text, &wanted);
  assert_true(s.n == N && s.labels->forces[3 * 777 + 1] == 2 && isnan(s.labels->forces[3 * 999]));
  structure_free(&s);
  free(text);
}

/* ---- what is refused, and only where labels are wanted ---- */

static void refused(void **state) {
  static const struct {
    const char *comment, *atom, *words;
  } all[] = {
      {"energy=low", "O 1 2 3", "energy is a number of eV, or nan, not 'low'"},
      {"energy=", "O 1 2 3", "energy is a number of eV, or nan, not ''"},
      {"energy=inf", "O 1 2 3", "energy is a number of eV"},
      {"energy=\"1 2\"", "O 1 2 3", "energy is a number of eV"},
      {"energy=1 energy=1", "O 1 2 3", "line 2: energy is there twice"},
      {"config_weight=-1", "O 1 2 3", "config_weight is a number, 0 or more, not '-1'"},
      {"config_weight=nan", "O 1 2 3", "config_weight is a number"},
      {L5 "stress=\"1 2 3\"", "O 1 2 3", "stress is nine numbers in quotes, or six: xx yy zz"},
      {L5 "stress=\"1 2 3 4 5 6 7 8 9 10\"", "O 1 2 3", "stress is nine numbers"},
      {L5 "REF_virial=\"1 2 3 4 5 x\"", "O 1 2 3", "REF_virial is nine numbers"},
      {"virial=\"1 2 3 4 5 6\"", "O 1 2 3", "has a stress, but no cell with a volume"},
      {"pbc=\"T T F\" Lattice=\"5 0 0 0 5 0 0 0 0\" stress=\"1 2 3 4 5 6\"", "O 1 2 3",
       "has a stress, but no cell with a volume"},
      {L5 "pbc=F stress=\"1 2 3 4 5 6\" ", "O 1 2 3 4", NULL},
      {"pbc=F Lattice=\"1e-9 0 0 0 1 0 0 0 1\" virial=\"1e300 0 0 0 0 0\"", "O 1 2 3",
       "virial in a volume of 1e-09 Angstrom^3 is no finite stress"},
      {FORCES, "O 1 2 3 4 5", "has 6 of 7 columns"},
      {FORCES, "O 1 2 3 4 5 x", "the force 'x' is neither a finite number nor nan"},
      {FORCES, "O 1 2 3 4 5 inf", "the force 'inf'"},
      {"Properties=species:S:1:pos:R:3:forces:R:1", "O 1 2 3 4", "which must be forces:R:3"},
      {"Properties=species:S:1:pos:R:3:forces:R:3:forces:R:3", "O 1 2 3 4 5 6 7 8 9",
       "Properties have forces twice"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const char *text = frame(all[i].comment, all[i].atom);
    if (all[i].words) expect_refused("xyz", text, &wanted, all[i].words);
    if (all[i].words && strstr(all[i].words, "columns")) continue;
    structure s = read_well("xyz", text, NULL);
    assert_null(s.labels);
    structure_free(&s);
  }
}

/* Frame by frame: nothing stays of the frame before, and messages name the frame. */
static void frames(void **state) {
  char path[64], error[600] = "";
  structure s;
  (void)state;
  snprintf(path, sizeof path, "/tmp/clebsch-labels-%d.xyz", (int)getpid());
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("1\n" L5 FORCES "energy=1 virial=\"40 0 0 0 0 0\" config_type=a config_weight=2\n"
        "O 1 2 3 4 5 6\n1\n" L5 PLAIN "stress=\"1 0 0 0 0 0\"\nO 1 2 3\n\n1\nenergy=2\nO 1 2 x\n",
        f);
  fclose(f);
  structure_frames *all = structure_frames_open(path, &wanted, error, sizeof error);
  assert_non_null(all);
  assert_int_equal(structure_frames_next(all, &s), 1);
  assert_true(s.labels->energy == 1 && s.labels->stress[0] == -1 && s.labels->forces[2] == 6);
  assert_true(s.labels->weight == 2 && !strcmp(s.labels->type, "a"));
  structure_free(&s);
  assert_int_equal(structure_frames_next(all, &s), 1);
  assert_true(isnan(s.labels->energy) && s.labels->stress[0] == 1 && !s.labels->forces);
  assert_true(s.labels->weight == 1 && !s.labels->type);
  structure_free(&s);
  assert_int_equal(structure_frames_next(all, &s), -1);
  assert_non_null(strstr(error, ".xyz, frame 3, line 10: 'x' is not a finite number"));
  assert_null(s.labels);
  structure_frames_close(all);
  unlink(path);
}

/* Formats that have no labels. */
static void other_formats(void **state) {
  (void)state;
  structure s = read_well(
      "gro", "water\n    1\n    1SOL     OW    1   0.100   0.200   0.300\n   1 1 1\n", &wanted);
  assert_true(isnan(s.labels->energy) && isnan(s.labels->stress[8]) && !s.labels->forces);
  structure_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(understood),   cmocka_unit_test(cell_behind_atoms), cmocka_unit_test(forces),
      cmocka_unit_test(many_atoms),   cmocka_unit_test(refused),           cmocka_unit_test(frames),
      cmocka_unit_test(other_formats)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
