/* tests/tools/test_rdf.c - `clebsch rdf`: radial distribution functions against sums over all
   images, and what is refused. */
#include "tests/command_json.h"

static const double pi = 3.14159265358979323846;

static const json_t *pair_of(const json_t *o, size_t file, size_t pair) {
  return json_array_get(
      json_object_get(json_array_get(json_object_get(o, "trajectories"), file), "pairs"), pair);
}

static double shell(double r_max, int bins, int b) {
  const double w = r_max / bins;
  return 4 * pi / 3 * (pow(w * (b + 1), 3) - pow(w * b, 3));
}

/* A cubic lattice: every atom has 6 neighbours, then 12. */
static void lattice(void **state) {
  enum { N = 27, BINS = 44 };
  (void)state;
  FILE *f = fopen("lattice.xyz", "w");
  fprintf(f, "%d\nLattice=\"9 0 0 0 9 0 0 0 9\" Properties=species:S:1:pos:R:3\n", N);
  for (int i = 0; i < N; i++) fprintf(f, "O %d %d %d\n", i % 3 * 3, i / 3 % 3 * 3, i / 9 * 3);
  fclose(f);
  json_t *o = json_of("rdf --trajectory lattice.xyz --pairs O-O --r-max 4.4 --bins 44 --json");
  const json_t *g = json_object_get(pair_of(o, 0, 0), "g");
  double found[2] = {0};
  for (int b = 0; b < BINS; b++) found[b > 36] += at(g, (size_t)b) * shell(4.4, BINS, b) * N / 729;
  near_to("those next to an atom", found[0], 6, 1e-9);
  near_to("those beyond", found[1], 12, 1e-9);
  json_decref(o);
}

enum { ATOMS = 9, FRAMES = 3, BINS = 17 };
static double cells[FRAMES][3][3], places[FRAMES][ATOMS][3];
static const int is_h[ATOMS] = {0, 1, 1, 0, 1, 1, 0, 1, 1};

static double next(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) * 0x1p-53;
}

static void write_frames(const char *path, int first) {
  FILE *f = fopen(path, "w");
  for (int k = first; k < FRAMES; k++) {
    fprintf(f, "%d\nLattice=\"", ATOMS);
    for (int i = 0; i < 9; i++) fprintf(f, "%.17g ", cells[k][i / 3][i % 3]);
    fputs("\" Properties=species:S:1:pos:R:3\n", f);
    for (int i = 0; i < ATOMS; i++)
      fprintf(f, "%c %.17g %.17g %.17g\n", is_h[i] ? 'H' : 'O', places[k][i][0], places[k][i][1],
              places[k][i][2]);
  }
  fclose(f);
}

static void make_frames(void) {
  uint64_t seed = 7;
  for (int k = 0; k < FRAMES; k++) {
    for (int i = 0; i < 9; i++)
      cells[k][i / 3][i % 3] = (i % 4 ? 0.8 * next(&seed) : 4.5 + next(&seed));
    for (int i = 0; i < 3 * ATOMS; i++) places[k][i / 3][i % 3] = 14 * next(&seed) - 5;
  }
  write_frames("all.xyz", 0);
  write_frames("rest.xyz", 1);
}

/* Pairs of a frame in a bin, of all images. */
static double count(int k, int a, int b, double r_max, int bin) {
  double n = 0;
  for (int i = 0; i < ATOMS; i++)
    for (int j = 0; j < ATOMS; j++)
      for (int image = 0; image < 13 * 13 * 13 && is_h[i] == a && is_h[j] == b; image++) {
        const int t[3] = {image % 13 - 6, image / 13 % 13 - 6, image / 169 - 6};
        double square = 0;
        if (i == j && !t[0] && !t[1] && !t[2]) continue;
        for (int c = 0; c < 3; c++) {
          double d = places[k][j][c] - places[k][i][c];
          for (int v = 0; v < 3; v++) d += t[v] * cells[k][v][c];
          square += d * d;
        }
        n += square < r_max * r_max && (int)(sqrt(square) / r_max * BINS) == bin;
      }
  return n;
}

static double volume(int k) {
  double(*c)[3] = cells[k];
  return c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) -
         c[0][1] * (c[1][0] * c[2][2] - c[1][2] * c[2][0]) +
         c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0]);
}

static void sums(void **state) {
  static const int of[2][2] = {{0, 1}, {1, 1}};
  static const double all[2] = {3 * 6, 6 * 6};
  (void)state;
  make_frames();
  json_t *o = json_of(
             "rdf --trajectory all.xyz rest.xyz --pairs O-H,H-H --r-max 3.7 --bins 17 --json"),
         *s = json_of("rdf --trajectory all.xyz --skip 1 --pairs O-H --r-max 3.7 --bins 17 --json");
  for (size_t p = 0; p < 2; p++) {
    double difference = 0;
    const json_t *g = json_object_get(pair_of(o, 0, p), "g"),
                 *rest = json_object_get(pair_of(o, 1, p), "g");
    for (int b = 0; b < BINS; b++) {
      double wanted = 0, later = 0;
      for (int k = 0; k < FRAMES; k++) {
        const double x =
            count(k, of[p][0], of[p][1], 3.7, b) * fabs(volume(k)) / all[p] / shell(3.7, BINS, b);
        wanted += x / FRAMES;
        if (k) later += x / (FRAMES - 1);
      }
      near_to("g", at(g, (size_t)b), wanted, 1e-9 * (1 + wanted));
      near_to("g of the rest", at(rest, (size_t)b), later, 1e-9 * (1 + later));
      difference += fabs(later - wanted) / BINS;
    }
    near_to("the difference", number_of(pair_of(o, 1, p), "difference"), difference, 1e-9);
  }
  assert_true(
      json_equal(json_object_get(pair_of(o, 1, 0), "g"), json_object_get(pair_of(s, 0, 0), "g")));
  json_decref(o);
  json_decref(s);
}

static void text(void **state) {
  (void)state;
  expect_printed(
      "rdf --trajectory all.xyz rest.xyz --pairs O-H --names teacher,student --plot g.svg "
      "--csv g.csv --title Water",
      "O-H    teacher: 3 frames, highest ", "O-H    student: 2 frames, highest ",
      "; mean difference ", "written    g.csv\nwritten    g.svg\n");
  char *csv = get_text("g.csv"), *svg = get_text("g.svg");
  assert_true(csv && svg);
  assert_int_equal(strncmp(csv, "r,O-H teacher,O-H student\n", 26), 0);
  assert_true(strstr(svg, ">Water<") && strstr(svg, ">student<") && strstr(svg, ">O-H<"));
  free(csv);
  free(svg);
}

static void refuses(void **state) {
  static const refusal wrong[] = {
      {"rdf --pairs O-O", 2, "--trajectory is missing"},
      {"rdf --trajectory all.xyz", 2, "--pairs is missing"},
      {"rdf --trajectory all.xyz --pairs O", 2, "such as O-O,O-H; not 'O'"},
      {"rdf --trajectory all.xyz --pairs O-Xx", 2, "not 'O-Xx'"},
      {"rdf --trajectory all.xyz --pairs O-O, ", 2, "not 'O-O,'"},
      {"rdf --trajectory all.xyz --pairs O-O --names a,b", 2, "--names are 2, of 1"},
      {"rdf --trajectory a b c d --pairs O-O", 2, "'d': there are at most 3"},
      {"rdf --trajectory all.xyz --pairs O-C", 1, "all.xyz, frame 1: it has no pair O-C"},
      {"rdf --trajectory all.xyz --pairs O-O --skip 3", 1, "it has 3 frames, all of which"},
      {"rdf --trajectory all.xyz --pairs O-O --csv all.xyz", 1, "all.xyz"},
      {"rdf --trajectory open.xyz --pairs O-O", 1, "open.xyz, frame 1: its cell is not periodic"},
      {"rdf --trajectory none.xyz --pairs O-O", 1, "none.xyz"}};
  (void)state;
  put_text("open.xyz", "2\n\nO 0 0 0\nO 0 0 2\n");
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lattice), cmocka_unit_test(sums),
                                     cmocka_unit_test(text), cmocka_unit_test(refuses)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
