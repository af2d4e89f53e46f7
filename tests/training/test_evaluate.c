/* tests/training/test_evaluate.c - `clebsch evaluate`: its errors against sums of the test's own,
   what it says of labels in another unit, and what it refuses. */
#include "tests/training/labelled_frames.h"

#define EVALUATE "evaluate --model model --exact --structures "
/* ---- errors ---- */

/* Sums of the test's own. */
typedef struct {
  int n;
  double absolute, square;
} sums;

static void add(sums *s, double off) {
  if (isnan(off)) return;
  s->n++;
  s->absolute += fabs(off);
  s->square += off * off;
}

static void expect_sums(const json_t *type, const char *key, const sums *s) {
  const json_t *o = json_object_get(type, key);
  assert_int_equal(integer_of(o, "numbers"), s->n);
  if (!s->n) {
    expect_text(o, "mae", NULL);
    expect_text(o, "rmse", NULL);
    return;
  }
  near_to("mae", number_of(o, "mae"), s->absolute / s->n, 1e-12);
  near_to("rmse", number_of(o, "rmse"), sqrt(s->square / s->n), 1e-12);
}

static void exact_errors(void **state) {
  static const char *const types[] = {"bulk", "a \"b\", c", NULL};
  const labelling all = {off_energy, off_force, off_stress};
  sums energy[4] = {0}, forces[4] = {0}, stress[4] = {0}; /* of the types, and of all */
  FILE *files[2];
  (void)state;
  for (int i = 0; i < 2; i++) assert_non_null(files[i] = fopen(format("off%d.xyz", i), "w"));
  for (int g = 0; g < FRAMES; g++) {
    const structure *s = &predicted[g];
    FILE *to = files[g / 5];
    const char *type = types[g % 3];
    write_labelled(to, s, &all,
                   g % 3 == 0 ? "config_type=bulk"
                   : type     ? "config_type=\"a \\\"b\\\", c\""
                              : NULL);
    for (int k = g % 3;; k = 3) {
      add(&energy[k], (off_energy(s) - s->labels->energy) / (double)s->n);
      for (int64_t i = 0; i < 3 * s->n; i++) add(&forces[k], off_force(s, i) - same_force(s, i));
      for (int i = 0; i < 9 && s->periodic[0]; i++)
        add(&stress[k], off_stress(s, i) - same_stress(s, i));
      if (k == 3) break;
    }
  }
  for (int i = 0; i < 2; i++) fclose(files[i]);
  for (int together = 1; together < 100000; together *= 10) {
    json_t *o = json_of(
        format(EVALUATE "off0.xyz off1.xyz --json --atoms-at-once %d --csv rows", together));
    const json_t *found = json_object_get(o, "types");
    assert_int_equal(json_array_size(found), 3);
    for (size_t k = 0; k < 4; k++) {
      const json_t *type = k < 3 ? json_array_get(found, k) : json_object_get(o, "all");
      expect_text(type, "config_type", k < 3 ? types[k] : NULL);
      assert_int_equal(integer_of(type, "frames"), k == 3 ? 8 : k == 2 ? 2 : 3);
      assert_int_equal(integer_of(type, "without_labels"), k >= 2);
      expect_sums(type, "energy_per_atom", &energy[k]);
      expect_sums(type, "forces", &forces[k]);
      expect_sums(type, "stress", &stress[k]);
    }
    assert_int_equal(json_array_size(json_object_get(o, "warnings")), 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "structures"), 1)),
                        "off1.xyz");
    json_decref(o);
  }
}

/* A line for each frame of the last test. */
static void rows(void **state) {
  char line[1024], *rest;
  int n = 0;
  (void)state;
  FILE *f = fopen("rows", "r");
  assert_non_null(f);
  assert_non_null(fgets(line, sizeof line, f));
  assert_int_equal(strncmp(line, "frame,config_type,atoms,energy_label,energy,", 44), 0);
  for (; fgets(line, sizeof line, f); n++) {
    const structure *s = &predicted[n];
    const char *before = format("\"off%d.xyz, frame %d\",%s,%d,", n / 5, n % 5 + 1,
                                n % 3 == 0   ? "\"bulk\""
                                : n % 3 == 1 ? "\"a \"\"b\"\", c\""
                                             : "",
                                (int)s->n);
    if (strncmp(line, before, strlen(before)) != 0) fail_msg("%s is not %s", line, before);
    rest = line + strlen(before);
    if (n == 2) {
      assert_int_equal(*rest, ',');
      assert_string_equal(strchr(rest + 1, ','), ",,,,,\n");
    } else near_to("a label", strtod(rest, NULL), off_energy(s), 1e-12);
  }
  assert_int_equal(n, FRAMES);
  fclose(f);
}

/* ---- labels that are not what they should be ---- */

static double minus_energy(const structure *s) { return -same_energy(s); }
static double hartree(const structure *s) { return same_energy(s) / 27.211386; }
static double per_atom(const structure *s) { return same_energy(s) / (double)s->n; }
static double minus_force(const structure *s, int64_t i) { return -0.9 * same_force(s, i); }
static double atomic_force(const structure *s, int64_t i) { return same_force(s, i) / 51.422067; }
static double weak_force(const structure *s, int64_t i) { return 1.15 * same_force(s, i); }
static double other_force(const structure *s, int64_t i) {
  return -same_force(s, i) + 30 * off(&predicted[0], 100 * s->n + i);
}
static double kbar(const structure *s, int i) { return 1602.1766 * same_stress(s, i); }
static double minus_kbar(const structure *s, int i) { return -kbar(s, i); }
static double gpa(const structure *s, int i) { return 160.21766 * same_stress(s, i); }
static double kbar_twice(const structure *s, int i) { return same_stress(s, i) / 1602.1766; }
static double minus_stress(const structure *s, int i) { return -same_stress(s, i); }
static double virial(const structure *s, int i) {
  const double(*c)[3] = s->cell;
  return same_stress(s, i) * (c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) +
                              c[0][1] * (c[1][2] * c[2][0] - c[1][0] * c[2][2]) +
                              c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0]));
}
static double minus_virial(const structure *s, int i) { return -virial(s, i); }
static double vasp(const structure *s, int i) { /* xx yy zz xy yz zx, read as xx yy zz yz xz xy */
  static const int at[9] = {0, 2, 5, 2, 4, 1, 5, 1, 8};
  return same_stress(s, at[i]);
}
static double lammps(const structure *s, int i) { /* xx yy zz xy xz yz */
  static const int at[9] = {0, 5, 2, 5, 4, 1, 2, 1, 8};
  return minus_kbar(s, at[i]);
}

static void other_units(void **state) {
  static const struct {
    labelling labels;
    const char *said; /* NULL: nothing is */
  } all[] = {
      {{same_energy, same_force, same_stress}, NULL},
      {{NULL, weak_force, NULL}, NULL},
      {{NULL, other_force, NULL}, NULL}, /* of another world */
      {{minus_energy, NULL, NULL},
       "energies of the labels are about -1 times those of the model, as if they were of the "
       "opposite sign; eV of the whole frame is meant"},
      {{hartree, NULL, NULL}, "as if they were in Hartree; eV of"},
      {{per_atom, NULL, NULL}, "as if they were per atom; eV of"},
      {{NULL, minus_force, NULL}, "-0.9 times those of the model, as if they were of the opposite"},
      {{NULL, atomic_force, NULL}, "in Hartree/bohr; eV/Angstrom, -dE/dposition, is meant"},
      {{NULL, NULL, kbar}, "about 1602 times those of the model, as if they were in kbar; eV/Ang"},
      {{NULL, NULL, minus_kbar}, "in kbar and of the opposite sign; eV/Angstrom^3, positive"},
      {{NULL, NULL, gpa}, "in GPa; "},
      {{NULL, NULL, kbar_twice}, "divided by 1602, as if they had been in kbar before; "},
      {{NULL, NULL, minus_stress}, "as if they were of the opposite sign; eV/Angstrom^3"},
      {{NULL, NULL, virial}, "as if they were virials; "},
      {{NULL, NULL, minus_virial}, "as if they were virials and of the opposite sign; "},
      {{NULL, NULL, vasp}, "in the order xx yy zz xy yz xz; xx yy zz yz xz xy is meant"},
      {{NULL, NULL, lammps}, "in the order xx yy zz xy xz yz and in kbar and of the opposite"}};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    write_all("units.xyz", &all[i].labels);
    expect_clebsch(EVALUATE "units.xyz", 0, all[i].said);
  }
  json_t *o = json_of(EVALUATE "frames.xyz p.xyz --json");
  assert_int_equal(json_array_size(json_object_get(o, "warnings")), 0);
  json_decref(o);
  outcome told = run_clebsch(EVALUATE "units.xyz --json");
  assert_true(!told.status && strstr(told.out, "\"warnings\": [\n  \"stresses of the labels"));
  forget(&told);
}

/* ---- text and picture ---- */

static int occurrences(const char *text, const char *of) {
  int n = 0;
  for (; (text = strstr(text, of)); text++) n++;
  return n;
}

static void picture_and_text(void **state) {
  (void)state;
  write_all("same.xyz", &(labelling){same_energy, same_force, same_stress});
  expect_printed("evaluate -m model -s same.xyz --exact --plot parity.svg",
                 "labels     same.xyz: 8 frames, 40 atoms\n", "\nall               8       0 ",
                 "written    parity.svg\n");
  char *svg = get_text("parity.svg");
  assert_int_equal(occurrences(svg, "class=\"dots s0\""), 3);
  assert_int_equal(occurrences(svg, "h0"), 8 + 3 * 40 + 9 * 6);
  assert_true(strstr(svg, "Forces (eV/A)") && strstr(svg, "8 frames of same.xyz"));
  free(svg);
  write_all("forces.xyz", &(labelling){.force = same_force});
  expect_printed(EVALUATE "forces.xyz --plot parity.svg", "all  ");
  svg = get_text("parity.svg");
  assert_int_equal(occurrences(svg, "class=\"dots s0\""), 1);
  free(svg);
}

/* More numbers than are drawn: the worst is among them. */
static void many_numbers(void **state) {
  enum { REPEATED = 20 };
  (void)state;
  FILE *f = fopen("many.xyz", "w");
  for (int i = 0; i < REPEATED * FRAMES; i++)
    write_labelled(f, &predicted[i % FRAMES], &(labelling){.force = same_force}, NULL);
  fputs("1\nProperties=species:S:1:pos:R:3:forces:R:3\nO 0 0 0 0 777 0\n", f);
  fclose(f);
  free(printed_by(EVALUATE "many.xyz --plot parity.svg"));
  char *svg = get_text("parity.svg");
  assert_int_equal(occurrences(svg, "h0"), 2001);
  assert_non_null(strstr(svg, "; 2000 of 2403 numbers"));
  assert_non_null(strstr(svg, ">800<"));
  free(svg);
}

/* ---- what is refused ---- */

static void refuses(void **state) {
  static const refusal wrong[] = {
      {"evaluate --model model", 2, "--structures is missing"},
      {"evaluate --structures p.xyz", 2, "--model is missing"},
      {EVALUATE "p.xyz --atoms-at-once 0", 2, "--atoms-at-once"},
      {EVALUATE "frames.xyz", 1, "frames.xyz: no frame has labels, which are energy, forces,"},
      {EVALUATE "none.xyz", 1, "none.xyz, frame 1: the file ends here, before the number of atoms"},
      {EVALUATE "p.xyz nowhere.xyz", 1, "nowhere.xyz: No such file"},
      {EVALUATE "p.xyz sodium.xyz", 1,
       "sodium.xyz, frame 2: atom 1 is Na, but model knows only H C O"},
      {EVALUATE "wrong.xyz", 1, "wrong.xyz, frame 2, line 5: energy is a number of eV"},
      {EVALUATE "box.gro", 1, "box.gro: only files of extended XYZ"},
      {EVALUATE "p.xyz --csv p.xyz", 1, "p.xyz"},
      {EVALUATE "p.xyz --csv kept --plot ./kept", 1, "kept"}};
  (void)state;
  put_text("none.xyz", "");
  put_text("sodium.xyz", "1\nenergy=1\nO 0 0 0\n1\nenergy=1\nNa 0 0 0\n");
  put_text("wrong.xyz", "1\nenergy=1\nO 0 0 0\n1\nenergy=high\nO 0 0 0\n");
  put_text("box.gro", "a box\n0\n1 1 1\n");
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
  put_text("kept.csv", "what was there\n");
  expect_clebsch(EVALUATE "sodium.xyz --csv kept.csv", 1, "knows only");
  expect_file("kept.csv", "what was there\n");
}

/* Atoms that are not there have no energy per atom, but their frame counts. */
static void no_atoms(void **state) {
  (void)state;
  put_text("empty.xyz", "0\nenergy=3\n1\nenergy=1 config_type=one\nO 0 0 0\n");
  json_t *o = json_of(EVALUATE "empty.xyz --json");
  const json_t *all = json_object_get(o, "all");
  assert_int_equal(integer_of(all, "frames"), 2);
  assert_int_equal(integer_of(all, "without_labels"), 1);
  assert_int_equal(integer_of(json_object_get(all, "energy_per_atom"), "numbers"), 1);
  json_decref(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exact_errors), cmocka_unit_test(rows),
      cmocka_unit_test(other_units),  cmocka_unit_test(picture_and_text),
      cmocka_unit_test(many_numbers), cmocka_unit_test(refuses),
      cmocka_unit_test(no_atoms)};
  return cmocka_run_group_tests(tests, make_predictions, remove_predictions);
}
