/* tests/structures/test_structure.c - atoms from files, and the graphs that `bench` knows by name.
 */
#include "tests/test.h"

#include <math.h>
#include <unistd.h>

#include "tools/ops/graphs.h"
#include "tools/ops/op.h"
#include "tools/structures/structure.h"

static void data_path(char path[1024], const char *file) {
  const char *data = getenv("CLB_TEST_DATA");
  assert_non_null(data);
  assert_true(snprintf(path, 1024, "%s/structures/%s", data, file) < 1024);
}

typedef struct {
  const char *file;
  bool atoms_only, periodic[3];
  int n, numbers[6];
  double cell[3][3], positions[6][3];
} wanted_structure;

static void expect(const wanted_structure *w) {
  structure s;
  char path[1024], error[600];
  data_path(path, w->file);
  if (!structure_read(path, &(structure_options){.atoms_only = w->atoms_only}, &s, error,
                      sizeof error))
    fail_msg("%s", error);
  assert_int_equal(s.n, w->n);
  for (int d = 0; d < 3; d++) {
    if (s.periodic[d] != w->periodic[d])
      fail_msg("%s: direction %d is %speriodic", w->file, d, s.periodic[d] ? "" : "not ");
    for (int k = 0; k < 3; k++)
      if (fabs(s.cell[d][k] - w->cell[d][k]) > 1e-12)
        fail_msg("%s: cell[%d][%d] is %.17g", w->file, d, k, s.cell[d][k]);
  }
  for (int i = 0; i < w->n; i++) {
    if (s.numbers[i] != w->numbers[i]) fail_msg("%s: atom %d is a %d", w->file, i, s.numbers[i]);
    for (int k = 0; k < 3; k++)
      if (fabs(s.positions[3 * i + k] - w->positions[i][k]) > 1e-12)
        fail_msg("%s: atom %d has %d: %.17g", w->file, i, k, s.positions[3 * i + k]);
  }
  structure_free(&s);
  assert_null(s.positions);
}

static void xyz(void **state) {
  (void)state;
  expect(&(wanted_structure){"columns.extxyz", .n = 3, .numbers = {17, 118, 1},
                             .periodic = {true, false, true},
                             .cell = {{4, 0, 0}, {1, 5, 0}, {-1, .5, 6}},
                             .positions = {{.5, -1.25, 3}, {10, 20, 30}, {-7, 8.5, -9}}});
  expect(&(wanted_structure){"plain.xyz", .n = 2, .numbers = {2, 92},
                             .positions = {{0, 0, 0}, {1, 2, 3}}});
}

static void gro(void **state) {
  (void)state;
  expect(&(wanted_structure){"triclinic.gro", .n = 5, .numbers = {8, 1, 1, 17, 20},
                             .periodic = {true, true, true},
                             .cell = {{30, 1, 2}, {3, 40, 4}, {5, 6, 50}},
                             .positions = {{1.26, 16.24, 16.79},
                                           {1.9, 16.61, 17.47},
                                           {-1.77, 15.68, 16.13},
                                           {10, 20, 30},
                                           {40, 50, 60}}});
  expect(&(wanted_structure){"precise.gro", .n = 1, .numbers = {1},
                             .positions = {{1.234567, -17.654321, 20.000001}}});
}

static void pdb(void **state) {
  (void)state;
  const double a = acos(-1) / 180, cb = cos(100 * a), cg = cos(120 * a),
               y = -cb * cg / sin(120 * a);
  wanted_structure w = {"protein.pdb",
                        .n = 6,
                        .numbers = {6, 1, 6, 30, 11, 26},
                        .periodic = {true, true, true},
                        .cell = {{10, 0, 0},
                                 {20 * cg, 20 * sin(120 * a), 0},
                                 {30 * cb, 30 * y, 30 * sqrt(1 - cb * cb - y * y)}},
                        .positions = {{11.104, 6.134, -6.504},
                                      {-1, -2, -3},
                                      {-101.104, -106.134, -100.504},
                                      {1, 2, 3},
                                      {4, 5, 6},
                                      {7, 8, 9}}};
  expect(&w);
  w.atoms_only = true;
  w.n = 4;
  w.numbers[3] = 26;
  memcpy(w.positions[3], w.positions[5], sizeof w.positions[3]);
  expect(&w);
  expect(&(wanted_structure){"open.pdb", .n = 1, .numbers = {7},
                             .positions = {{38.296, 20.158, 39.26}}});
}

/* A cell keeps its lengths and angles. */
static void angles(void **state) {
  (void)state;
  structure s;
  char path[1024], error[600];
  data_path(path, "protein.pdb");
  assert_true(structure_read(path, NULL, &s, error, sizeof error));
  const double want[3][3] = {{100, 10 * 20 * -.5, 10 * 30 * cos(acos(-1) / 1.8)},
                             {-100, 400, 0},
                             {10 * 30 * cos(acos(-1) / 1.8), 0, 900}};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      assert_true(fabs(s.cell[i][0] * s.cell[j][0] + s.cell[i][1] * s.cell[j][1] +
                       s.cell[i][2] * s.cell[j][2] - want[i][j]) < 1e-9);
  structure_free(&s);
}

static void symbols(void **state) {
  (void)state;
  static const struct {
    int number;
    const char *symbol;
  } known[] = {{1, "H"},   {7, "N"},   {19, "K"}, {20, "Ca"}, {39, "Y"},   {53, "I"},
               {57, "La"}, {71, "Lu"}, {74, "W"}, {92, "U"},  {103, "Lr"}, {118, "Og"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    assert_string_equal(clb_element_symbols[known[i].number], known[i].symbol);
  for (int i = 1; i <= CLB_ELEMENTS; i++)
    for (int j = 0; j < i; j++)
      assert_string_not_equal(clb_element_symbols[i], clb_element_symbols[j]);
}

/* ---- broken files ---- */

#define ATOM "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  0.00           C\n"
#define GRO "    1SOL     OW    1   0.126   1.624   1.679\n"

static void broken(void **state) {
  (void)state;
  static const struct {
    const char *ending, *text, *words; /* of the error: line number, then words */
  } files[] = {
      {"xyz", "", "ends here"},
      {"xyz", "many\n", "line 1: the first line is the number of atoms, not 'many'"},
      {"xyz", "-1\n\n", "line 1"},
      {"xyz", "99999999999999999999\n\n", "line 1"},
      {"xyz", "2147483647\n\nH 0 0 0\n", "line 3: the file ends here, before atom 2 of 2147483647"},
      {"xyz", "1.5\n\nH 0 0 0\n", "line 1"},
      {"xyz", "1\n", "line 1: the file ends here"},
      {"xyz", "1\nLattice=\"1 0 0 0 1 0 0 0\"\nH 0 0 0\n", "line 2: Lattice is nine numbers"},
      {"xyz", "1\nLattice=\"1 0 0 0 1 0 0 0 1 0\"\nH 0 0 0\n", "line 2: Lattice is nine numbers"},
      {"xyz", "1\nLattice=\"1 0 0 0 nan 0 0 0 1\"\nH 0 0 0\n", "line 2: Lattice is nine numbers"},
      {"xyz", "1\nLattice=\"1 0 0 0 1 0 0 0 1\nH 0 0 0\n",
       "line 2: a value in this line lacks its closing quote"},
      {"xyz", "1\npbc=\"T T T\"\nH 0 0 0\n", "line 2: pbc says periodic"},
      {"xyz", "1\nLattice=\"1 0 0 0 1 0 0 0 1\" pbc=\"T T\"\nH 0 0 0\n", "line 2: pbc is three"},
      {"xyz", "1\nLattice=\"1 0 0 0 1 0 0 0 1\" pbc=\"T T F F\"\nH 0 0 0\n",
       "line 2: pbc is three"},
      {"xyz", "1\nProperties=species:S:1\nH 0 0 0\n", "line 2: Properties lack"},
      {"xyz", "1\nProperties=species:S:1:pos:R:2\nH 0 0 0\n", "line 2: Properties say pos:R:2"},
      {"xyz", "1\nProperties=species:S:1:pos:R:3:x\nH 0 0 0\n", "line 2: Properties are"},
      {"xyz", "1\nProperties=species:S:1:pos:R:3:x:Q:1\nH 0 0 0\n", "line 2: Properties are"},
      {"xyz", "1\nProperties=species:S:1:pos:R:3:x:R:0\nH 0 0 0\n", "line 2: Properties are"},
      {"xyz", "1\nProperties=species:S:1:pos:R:3:x:R:99999999\nH 0 0 0\n", "line 2: Properties"},
      {"xyz", "2\n\nH 0 0 0\nXx 0 0 0\n", "line 4: 'Xx' is not a chemical symbol"},
      {"xyz", "1\n\nH 0 0\n", "line 3: atom 1 of 1 has 3 of 4 columns"},
      {"xyz", "1\nProperties=species:S:1:pos:R:3\nH 0 0 0 0\n",
       "line 3: atom 1 of 1 has more than 4 columns"},
      {"xyz", "1\n\nH 0 inf 0\n", "line 3: 'inf' is not a finite number"},
      {"xyz", "1\n\nH 0 1e999 0\n", "line 3: '1e999' is not a finite number"},
      {"xyz", "1\n\nH 0 0x 0\n", "line 3: '0x' is not a finite number"},
      {"gro", "title\n", "line 1: the file ends here"},
      {"gro", "title\nfive\n", "line 2: the second line is the number"},
      {"gro", "title\n2\n" GRO, "line 3: the file ends here, before atom 2 of 2"},
      {"gro", "title\n1\n" GRO, "line 3: the file ends here, before the box"},
      {"gro", "title\n1\n" GRO "1 2\n", "line 4: the box is 3 or 9"},
      {"gro", "title\n1\n" GRO "1 2 3 4 5 6 7 8 9 10\n", "line 4: the box is 3 or 9"},
      {"gro", "title\n1\n    1SOL     OW    1   0.126   1.624\n1 1 1\n",
       "line 3: three coordinates"},
      {"gro", "title\n1\n    1SOL     OW    1   0.126   1.x24   1.679\n1 1 1\n", "line 3: '1.x24'"},
      {"gro", "title\n1\n    1SOL      1    1   0.126   1.624   1.679\n1 1 1\n",
       "line 3: atom '1' of residue 'SOL' does not tell its element"},
      {"gro", "title\n1\n    1LIG     CL    1   0.126   1.624   1.679\n1 1 1\n",
       "line 3: atom 'CL'"},
      {"pdb", "", "there are no atoms"},
      {"pdb", "END\n", "there are no atoms"},
      {"pdb", ATOM "ATOM      1  CA  ALA A   1      11.104   6.134\n",
       "line 2: columns 47 to 54 are a coordinate, not ''"},
      {"pdb", "ATOM      1  CA  ALA A   1      11.104   6.1 4  -6.504  1.00  0.00           C\n",
       "line 1: columns 39 to 46"},
      {"pdb", "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  0.00          X1\n",
       "line 1: columns 77 to 78 are a chemical symbol, not 'X1'"},
      {"pdb", "CRYST1   10.000   20.000\n" ATOM, "line 1: CRYST1 has three lengths and"},
      {"pdb", "CRYST1   10.000   20.000   -1.000  90.00 100.00 120.00\n" ATOM,
       "line 1: a cell has three lengths over 0"},
      {"pdb", "CRYST1   10.000   20.000   30.000  90.00 180.00 120.00\n" ATOM,
       "line 1: a cell has three lengths over 0"},
      {"pdb", "CRYST1   10.000   20.000   30.000  30.00 100.00 140.00\n" ATOM,
       "line 1: no cell has the angles"},
      {"abc", ATOM, "ends in .xyz"},
  };
  char folder[] = "/tmp/clebsch-structure-XXXXXX", path[100], error[600], zeros[300] = "1\n";
  assert_non_null(mkdtemp(folder));
  for (size_t i = 0; i < sizeof files / sizeof *files + 2; i++) {
    bool listed = i < sizeof files / sizeof *files;
    size_t bytes = listed                              ? strlen(files[i].text)
                   : i == sizeof files / sizeof *files ? sizeof zeros
                                                       : 100000;
    snprintf(path, sizeof path, "%s/a.%s", folder, listed ? files[i].ending : "xyz");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    if (bytes == 100000)
      for (size_t k = 0; k < bytes; k++) fputc('1', f);
    else fwrite(listed ? files[i].text : zeros, 1, bytes, f);
    fclose(f);
    structure s;
    memset(&s, 1, sizeof s);
    if (structure_read(path, NULL, &s, error, sizeof error)) fail_msg("file %zu was read", i);
    const char *words = listed           ? files[i].words
                        : bytes < 100000 ? "not a text file"
                                         : "the first line is the number of atoms, not '1111";
    if (!strstr(error, words) || !strstr(error, path))
      fail_msg("file %zu: \"%s\" lacks \"%s\" or the file's name", i, error, words);
    assert_true(!s.n && !s.positions && !s.numbers);
    unlink(path);
  }
  structure s;
  assert_false(structure_read(path, NULL, &s, error, sizeof error));
  assert_non_null(strstr(error, "No such file"));
  rmdir(folder);
}

/* ---- graphs ---- */

/* Makes it and checks what holds for all: edges sorted by receiver, ends in range, no length beyond
   [least, most). */
static tool_graph graph(const char *name, int64_t nodes, int64_t edges, double min, double max) {
  tool_graph g;
  char error[2000];
  if (!graph_make(name, &g, error, sizeof error)) fail_msg("%s", error);
  assert_int_equal(g.n_nodes, nodes);
  assert_int_equal(g.n_edges, edges);
  for (int64_t e = 0; e < edges; e++) {
    const double *v = g.vectors + 3 * e, length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    if (!(length >= min && length < max))
      fail_msg("%s: edge %lld is %g long", name, (long long)e, length);
    if (g.senders[e] < 0 || g.senders[e] >= nodes || g.receivers[e] < 0 || g.receivers[e] >= nodes)
      fail_msg("%s: edge %lld leads out", name, (long long)e);
    if (e && g.receivers[e] < g.receivers[e - 1])
      fail_msg("%s: edge %lld is not sorted", name, (long long)e);
  }
  return g;
}

/* Least and greatest number of edges into one node, from node `first` on. */
static void degrees(const tool_graph *g, int64_t first, int64_t *min, int64_t *max) {
  *min = INT64_MAX, *max = 0;
  for (int64_t r = first, e = 0; r < g->n_nodes; r++) {
    int64_t n = 0;
    while (e < g->n_edges && g->receivers[e] < r) e++;
    for (; e < g->n_edges && g->receivers[e] == r; e++) n++;
    if (n < *min) *min = n;
    if (n > *max) *max = n;
  }
}

static void carbon(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int64_t nodes;
  } sizes[] = {{"carbon", 1000}, {"carbon:5", 1000}, {"carbon:1", 8}, {"carbon:3", 216}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    tool_graph g =
        graph(sizes[i].name, sizes[i].nodes, 158 * sizes[i].nodes, 3.567 * sqrt(3) / 4 - 1e-9, 6);
    int64_t min, max;
    degrees(&g, 0, &min, &max);
    assert_true(min == 158 && max == 158);
    graph_free(&g);
  }
}

static void by_lot(void **state) {
  (void)state;
  int64_t min, max;
  tool_graph g = graph("hub", 1001, 108000, 1, 5.000001),
             h = graph("even", 1001, 108000, 1, 5.000001);
  degrees(&g, 1, &min, &max);
  assert_true(min == 8 && max == 8 && g.receivers[99999] == 0 && g.receivers[100000] == 1);
  assert_memory_equal(g.senders, h.senders, 108000 * sizeof *g.senders);
  degrees(&h, 0, &min, &max);
  assert_true(min == 107 && max == 108);
  double mean[3] = {0};
  int32_t largest = 0;
  for (int64_t e = 0; e < g.n_edges; e++) {
    if (g.senders[e] > largest) largest = g.senders[e];
    for (int k = 0; k < 3; k++) mean[k] += g.vectors[3 * e + k] / (double)g.n_edges;
  }
  assert_int_equal(largest, 1000);
  for (int k = 0; k < 3; k++) assert_true(fabs(mean[k]) < 0.05); /* 9 standard deviations */
  graph_free(&g);
  graph_free(&h);
  g = graph("flashtp", 512, 32768, 1, 5.000001);
  degrees(&g, 0, &min, &max);
  assert_true(min == 64 && max == 64);
  graph_free(&g);
}

static void from_file(void **state) {
  (void)state;
  char path[1024], name[1100];
  data_path(path, "plain.xyz");
  snprintf(name, sizeof name, "file:%s,r=3.8", path); /* the two are sqrt(14) = 3.74 apart */
  tool_graph g = graph(name, 2, 2, 3.7, 3.8);
  assert_true(g.senders[0] == 1 && g.receivers[0] == 0 && g.vectors[0] == 1 && g.vectors[1] == 2 &&
              g.vectors[2] == 3 && g.vectors[5] == -3);
  graph_free(&g);
  snprintf(name, sizeof name, "file:%s,r=3.7", path);
  g = graph(name, 2, 0, 0, 0);
  graph_free(&g);
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *words;
  } bad[] = {{"", "there is no graph ''"},
             {"carbonate", "there is no graph"},
             {"even:2", "there is no graph"},
             {"hub:0", "1 to 100000000"},
             {"carbon:", "1 to 200"},
             {"carbon:0", "1 to 200"},
             {"carbon:5x", "1 to 200"},
             {"carbon:201", "1 to 200"},
             {"file", "file:PATH,r=CUTOFF"},
             {"file:a.xyz", "file:PATH,r=CUTOFF"},
             {"file:a.xyz,r=", "file:PATH,r=CUTOFF"},
             {"file:a.xyz,r=-1", "file:PATH,r="},
             {"file:nowhere.xyz,r=3", "nowhere.xyz: No such file"}};
  tool_graph g;
  char error[2000];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(graph_make(bad[i].name, &g, error, sizeof error));
    if (!strstr(error, bad[i].words))
      fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].name, error, bad[i].words);
    assert_true(!g.n_edges && !g.senders && !g.receivers && !g.vectors);
  }
  char mine[1024] = "";
  const char *was = getenv("CLB_STRUCTURES");
  if (was) snprintf(mine, sizeof mine, "%s", was);
  setenv("CLB_STRUCTURES", "/nowhere", 1);
  assert_false(graph_make("spike", &g, error, sizeof error));
  assert_true(strstr(error, "6vxx.pdb") && strstr(error, "CLB_STRUCTURES names (/nowhere)") &&
              strstr(error, "rcsb.org"));
  if (was) setenv("CLB_STRUCTURES", mine, 1);
  else unsetenv("CLB_STRUCTURES");
}

/* The published numbers, for files that do not come with the project. */
static void vendor_specs(const char *name, int64_t nodes, int64_t edges, double cutoff) {
  tool_graph g;
  char error[2000];
  if (!graph_make(name, &g, error, sizeof error)) {
    if (!strstr(error, "there is no")) fail_msg("%s", error);
    skip_because("%s", error);
  }
  graph_free(&g);
  g = graph(name, nodes, edges, 0.1, cutoff);
  graph_free(&g);
}

static void spike(void **state) {
  (void)state;
  vendor_specs("spike", 22812, 136340, 3);
}

static void dhfr_water(void **state) {
  (void)state;
  vendor_specs("dhfr-water", 23558, 2068124, 6);
}

static void water_box(void **state) {
  (void)state;
  vendor_specs("water-box", 648, 16932, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(xyz),      cmocka_unit_test(gro),     cmocka_unit_test(pdb),
      cmocka_unit_test(angles),   cmocka_unit_test(symbols), cmocka_unit_test(broken),
      cmocka_unit_test(carbon),   cmocka_unit_test(by_lot),  cmocka_unit_test(from_file),
      cmocka_unit_test(refused),  cmocka_unit_test(spike),   cmocka_unit_test(dhfr_water),
      cmocka_unit_test(water_box)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
