/* tests/structures/test_structure_xyz.c - the comment line and the atoms' lines of XYZ, as programs
   write them: what they say is understood, or refused by name. */
#include "tests/structures/structure_runner.h"

static const double bohr = 0.529177210903;
#define L5 "5 0 0 0 5 0 0 0 5"

/* One atom, whose line is "O 1 2 3", behind a comment. */
static const char *frame(const char *comment, const char *atom) {
  static char text[4096];
  assert_true(snprintf(text, sizeof text, "1\n%s\n%s\n", comment, atom) < (int)sizeof text);
  return text;
}

typedef struct {
  const char *comment, *periodic; /* such as "TTF" */
  double cell[9], unit;           /* unit of the positions; 0: Angstrom */
} said;

#define CUBE(a)                                                                                    \
  { a, 0, 0, 0, a, 0, 0, 0, a }

static void understood(void **state) {
  (void)state;
  static const said all[] = {
      /* quotes, brackets, commas, cases */
      {"Lattice=\"" L5 "\"", "TTT", CUBE(5), 0},
      {"lattice='" L5 "'", "TTT", CUBE(5), 0},
      {"Lattice={" L5 "}", "TTT", CUBE(5), 0},
      {"Lattice=[5,0,0,0,5,0,0,0,5]", "TTT", CUBE(5), 0},
      {"Lattice=5,0,0,0,5,0,0,0,5", "TTT", CUBE(5), 0},
      {"Lattice=[[5, 0, 0], [1, 5, 0], [0, 0, 5]]", "TTT", {5, 0, 0, 1, 5, 0, 0, 0, 5}, 0},
      {"Lattice = \"5.0D+00 0 0 0 5d0 0 0 0 5E0\" pbc = \"T T T\"", "TTT", CUBE(5), 0},
      {"\"Lattice\"=\"" L5 "\"", "TTT", CUBE(5), 0},
      {"lattice=\"" L5 "\" pbc=\"T T F\" properties=species:S:1:pos:R:3", "TTF", CUBE(5), 0},
      {"Lattice=\"0 5 0 5 0 0 0 0 5\"", "TTT", {0, 5, 0, 5, 0, 0, 0, 0, 5}, 0}, /* left-handed */
      /* pbc */
      {"Lattice=\"" L5 "\" pbc=T", "TTT", CUBE(5), 0},
      {"Lattice=\"" L5 "\" pbc=F", "FFF", CUBE(5), 0},
      {"Lattice=\"" L5 "\" pbc=[True, False, true]", "TFT", CUBE(5), 0},
      {"Lattice=\"" L5 "\" PBC=\"1 0 1\"", "TFT", CUBE(5), 0},
      {"Lattice=\"5 0 0 0 5 0 0 0 0\" pbc=\"T,T,F\"", "TTF", {5, 0, 0, 0, 5, 0, 0, 0, 0}, 0},
      {"pbc=\"F F F\" my_cell=\"5 5 5\"", "FFF", {0}, 0},
      /* values that are empty, quoted, repeated, with = and escapes */
      {"config_type= pbc=\"F F F\"", "FFF", {0}, 0},
      {"config_type= Lattice=\"" L5 "\"", "TTT", CUBE(5), 0},
      {"config_type= Lattice = \"" L5 "\" end=", "TTT", CUBE(5), 0},
      {"a=1 a=2 a= a Lattice=\"" L5 "\"", "TTT", CUBE(5), 0},
      {"t=\"a \\\" Lattice=0 \\\\\" Lattice=\"" L5 "\"", "TTT", CUBE(5), 0},
      {"\"my \\\"key\\\"\"=3 x=a=b y='it is' Lattice=\"" L5 "\"", "TTT", CUBE(5), 0},
      {"j=\"_JSON {\\\"cell\\\": [1, 2]}\" Lattice=\"" L5 "\" pbc=\"F F F\"", "FFF", CUBE(5), 0},
      {"Lattice=\"" L5 "\" virial=\"1 0 0 0 1 0 0 0 1\" Origin=\"0 0 0\"", "TTT", CUBE(5), 0},
      {"spacegroup=\"F m -3 m\" unit_cell=conventional Lattice=\"" L5 "\"", "TTT", CUBE(5), 0},
      /* plain comments */
      {"", "FFF", {0}, 0},
      {" i =        0, time =        0.000, E =       -17.1642", "FFF", {0}, 0},
      {" i = , time = , E = ", "FFF", {0}, 0},
      {"Wang's molecule, 5' end, 17 atoms", "FFF", {0}, 0},
      {"Cubic bulk silicon cell", "FFF", {0}, 0},
      {"a molecule that is not periodic", "FFF", {0}, 0},
      {"energy: -5.07 gnorm: 0.0001 xtb: 6.6.0 (conda)", "FFF", {0}, 0},
      {"Coordinates from ORCA-job x E -76.4 a.u.; Angstrom", "FFF", {0}, 0},
      {"Au cluster of 1 nm", "FFF", {0}, 0},
      {"note=\"dipole in bohr here\" Lattice=\"" L5 "\"", "TTT", CUBE(5), 0},
      {"energy=-3 units=eV energy_unit=Hartree", "FFF", {0}, 0},
      {"units=angstrom", "FFF", {0}, 0},
      /* i-PI */
      {"# CELL(abcABC): 5 5 5 90 90 90 positions{angstrom} cell{angstrom}", "TTT", CUBE(5), 1},
      {"# CELL(abcABC):   10.0  10.0  10.0  90.0  90.0  90.0  Step:  0  Bead:   0 "
       "positions{atomic_unit}  cell{atomic_unit}",
       "TTT", CUBE(10 * bohr), bohr},
      {"# bead: 3 CELL(abcABC): 10 10 10 90 90 90 ", "TTT", CUBE(10 * bohr), bohr},
      {"# CELL{H}: 5 1 2 0 6 3 0 0 7 cell{angstrom}", "TTT", {5, 0, 0, 1, 6, 0, 2, 3, 7}, bohr},
      {"CELL[GENH]: 5 1 2 3 6 4 1 0 7 cell{nanometer} x_centroid{picometer}",
       "TTT",
       {50, 10, 20, 30, 60, 40, 10, 0, 70},
       0.01},
      {"#CELL(abcABC): 5 5 5 90 90 90 positions{Angstrom} cell{ase} pbc=\"T T F\"", "TTF", CUBE(5),
       1},
      {"# positions{atomic_unit}", "FFF", {0}, bohr},
      {"ipi_comment=\"Step: 0 positions{ase} cell{ase}\" Lattice=\"" L5 "\" pbc=\"T T T\"", "TTT",
       CUBE(5), 0},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const said *w = &all[i];
    const double unit = w->unit > 0 ? w->unit : 1;
    structure s = read_well("xyz", frame(w->comment, "O 1 2 3"), NULL);
    for (int k = 0; k < 9; k++)
      if (fabs(s.cell[k / 3][k % 3] - w->cell[k]) > 1e-12)
        fail_msg("'%s': number %d of the cell is %.17g", w->comment, k + 1, s.cell[k / 3][k % 3]);
    for (int d = 0; d < 3; d++) {
      if (s.periodic[d] != (w->periodic[d] == 'T'))
        fail_msg("'%s': direction %d is %d", w->comment, d, s.periodic[d]);
      if (fabs(s.positions[d] - (d + 1) * unit) > 1e-12)
        fail_msg("'%s': a position is %.17g", w->comment, s.positions[d]);
    }
    structure_free(&s);
  }
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *comment, *words;
  } all[] = {
      {"Lattice= pbc=\"T T T\"", "Lattice is nine numbers in quotes, not ''"},
      {"Lattice=\"5 5 5\"", "Lattice is nine numbers"},
      {"Lattice=\"5,43 0 0 0 5,43 0 0 0 5,43\"", "Lattice is nine numbers"},
      {"Lattice=\"0x5 0 0 0 5 0 0 0 5\"", "Lattice is nine numbers"},
      {"Lattice=\"" L5 "\" lattice=\"" L5 "\"", "Lattice is there twice"},
      {"Lattice=\"" L5 "\" pbc=T pbc=F", "pbc is there twice"},
      {"Lattice " L5, "'Lattice' stands here without = and a value"},
      {"Lattice=\"" L5 "\" pbc=", "pbc is three of T and F"},
      {"Lattice=\"" L5 "\" pbc=TTF", "pbc is three of T and F in quotes, not 'TTF'"},
      {"Lattice=\"" L5 "\" pbc=\"2 1 1\"", "pbc is three of T and F"},
      {"pbc=T", "pbc says periodic, but there is no Lattice"},
      {"pbc=\"T T F\"", "pbc says periodic, but there is no Lattice"},
      {"pbc", "periodic directions are called pbc"},
      {"Lattice=\"5 0 0 0 5 0 0 0 0\"", "vector c of the cell is 0 Angstrom long"},
      {"Lattice=\"5 0 0 10 0 0 0 0 5\"", "the cell is singular"},
      /* separators of another dialect */
      {"pbc=\"T T T\",Lattice=\"" L5 "\"", "the value of 'pbc' has a quote in its middle"},
      {"time=0,Lattice=\"" L5 "\"", "the value of 'time' has a quote in its middle"},
      {"a=1;Lattice=[5,0,0,0,5,0,0,0,5]", "a cell is called Lattice"},
      {"a=1,pbc=T", "periodic directions are called pbc"},
      {"a=\"b\"c=d e=", "the value of 'a' has a quote in its middle"},
      {"\"Lattice\"x=3", "a blank or = is wanted behind the quote of 'Lattice'"},
      {"Lattice=\"" L5, "lacks its closing quote"},
      {"Lattice=[[5,0,0],[0,5,0],[0,0,5]", "lacks its closing quote or bracket"},
      /* cells in other words */
      {"cell=\"5 5 5\"", "a cell is called Lattice in extended XYZ, not 'cell'"},
      {"cell 5.43 5.43 5.43", "a cell is called Lattice"},
      {"CELL: 5 5 5 90 90 90", "a cell is called Lattice"},
      {"LATTICE: " L5, "a cell is called Lattice"},
      {"Box 10x10x10", "not 'Box'"},
      {"sim_box = 5", "not 'box'"},
      {"unit cell (a.u.) 10.2", "'a.u' seems to be a unit"},
      {"celldm(1)=10.2", "not 'celldm'"},
      {"title=\"a box of 5 by 5 by 5\"", "not 'box'"},
      {"CRYST1 5 5 5 90 90 90", "not 'CRYST'"},
      {"supercell [[5,0,0],[0,5,0],[0,0,5]]", "not 'supercell'"},
      /* periodicity in other words */
      {"periodic water", "periodic directions are called pbc in extended XYZ, not 'periodic'"},
      {"Lattice=\"" L5 "\" periodic=\"T T F\"", "not 'periodic'"},
      {"boundary=\"p p p\"", "not 'boundary'"},
      /* units */
      {"coordinates in Bohr", "'Bohr' seems to be a unit of the positions"},
      {"Geometry (a.u.)", "'a.u' seems to be a unit"},
      {"positions in nm", "'nm' seems to be a unit"},
      {"units=bohr", "'bohr' seems to be a unit"},
      {"Lattice=\"" L5 "\" units=\"nm, eV\"", "'nm' seems to be a unit"},
      {"title=\"coordinates in Bohr now\"", "'Bohr' seems to be a unit"},
      {"length_unit=au", "'au' seems to be a unit"},
      {"fractional coordinates", "'fractional' seems to be a unit"},
      /* i-PI */
      {"# CELL(abcABC): 5 5 5 90 90 positions{angstrom}", "CELL(abcABC) has 6 numbers, not 'pos"},
      {"# CELL(abcABC): 5 5 5 90 90 90 90", "CELL(abcABC) has 6 numbers, not '90'"},
      {"# CELL(abcABC): 5 5 5 90 90", "CELL(abcABC) has 6 numbers, not 5"},
      {"# CELL(abcABC): 5,0 5 5 90 90 90", "CELL(abcABC) has 6 numbers, not '5,0'"},
      {"# CELL(abcABC): 5 5 5 30 30 90", "no cell has the angles"},
      {"# CELL(abcABC): 5 -5 5 90 90 90", "a cell has three lengths over 0"},
      {"# CELL(ABC): 5 5 5", "the cell is CELL(abcABC), CELL(H) or CELL(GENH)"},
      {"# CELL(H): 5 0 0 1 5 0 0 0 5", "the columns of CELL(H) are the vectors"},
      {"# CELL(H): " L5 " CELL(H): " L5, "CELL is there twice"},
      {"# CELL(H): " L5 " Lattice=\"" L5 "\"", "there are two cells"},
      {"# CELL(H): " L5 " positions{furlong}", "'furlong' is not one of i-PI's units of length"},
      {"# CELL(H): " L5 " cell{second}", "'second' is not one of i-PI's units of length"},
      {"# CELL(H): " L5 " positions{angstrom} positions{ase} positions{nanometer}",
       "another unit stands before"},
      {"# CELL(H): " L5 " forces{ev/ang}", "these are forces, not positions"},
      {"# CELL(H): " L5 " pos{angstrom}", "'pos{angstrom}' is not one of i-PI's quantities"},
      {"# CELL(H): " L5 " positions(angstrom) cell{angstrom}", "with CELL(...) positions are in"},
      {"# CELL(H): " L5 " units: Angstrom", "with CELL(...) positions are in atomic units"},
      {"# cell{angstrom}", "cell{...} is there without CELL(...)"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    expect_refused("xyz", frame(all[i].comment, "O 1 2 3"), NULL, all[i].words);
}

/* ---- columns ---- */

#define WIDE "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC"

static void columns(void **state) {
  (void)state;
  static const struct {
    const char *comment, *atom;
    int number;
    const char *words; /* NULL: it is read, at 1 2 3 */
  } all[] = {
      {"", "O 1 2 3 4 5 not a number", 8, NULL},
      {"", "8\t1.0D+00 2 3 \t", 8, NULL},
      {"", "D 1 2 3", 1, NULL},
      {"", "CL 1 2 3", 17, NULL},
      {"Properties=species:S:1:pos:R:3", "O 1 2 3\r", 8, NULL},
      {"Properties=Z:I:1:pos:R:3", "8 1 2 3", 8, NULL},
      {"Properties=pos:R:3:Z:I:1:species:S:1", "1 2 3 8 O", 8, NULL},
      {"Properties=species:S:1:move_mask:L:3:pos:R:3:smiles:S:1", "O T F T 1 2 3 " WIDE, 8, NULL},
      {"Properties=tag:S:1:Species:S:1:Pos:R:3", WIDE " O 1 2 3", 8, NULL},
      {"Properties=\"id:I:1:species:S:1:pos:R:3:velo:R:3\"", "7 O 1 2 3 a b c", 8, NULL},
      {"", "119 1 2 3", 0, "'119' is not a chemical symbol"},
      {"", "0 1 2 3", 0, "'0' is not a chemical symbol"},
      {"", "1e1 1 2 3", 0, "'1e1' is not a chemical symbol"},
      {"", "O2- 1 2 3", 0, "'O2-' is not a chemical symbol; --elements NAME=SYMBOL"},
      {"", WIDE " 1 2 3", 0, "is neither a number nor a symbol"},
      {"", "O 0,1 2 3", 0, "'0,1' is not a finite number"},
      {"", "O nan 2 3", 0, "'nan' is not a finite number"},
      {"", "O 0x1 2 3", 0, "'0x1' is not a finite number"},
      {"", "O 1.0-2.0 3 4", 0, "'1.0-2.0' is not a finite number"},
      {"", "O 1 2", 0, "atom 1 of 1 has 3 of 4 columns"},
      {"Atoms. Timestep: 0", "1 1 2 3", 0, "'1' is not a chemical symbol"}, /* types of LAMMPS */
      {"Properties=species:S:1:pos:R:3", "8 1 2 3", 0, "'8' is not a chemical symbol"},
      {"Properties=species:S:1:pos:R:3", "O 1 2 3 4", 0, "has more than 4 columns"},
      {"Properties=Z:I:1:pos:R:3", "O 1 2 3", 0, "'O' is not an atomic number"},
      {"Properties=Z:I:1:pos:R:3", "119 1 2 3", 0, "'119' is not an atomic number"},
      {"Properties=species:S:1:Z:I:1:pos:R:3", "O 1 1 2 3", 0,
       "species and Z are different elements: O and H"},
      {"Properties=species:S:1:pos:R:3:pos:R:3", "O 1 2 3 4 5 6", 0, "have pos twice"},
      {"Properties=species:I:1:pos:R:3", "1 1 2 3", 0, "species:I:1, which must be species:S:1"},
      {"Properties=species:S:1:pos:I:3", "O 1 2 3", 0, "pos:I:3, which must be pos:R:3"},
      {"Properties=species:S:1:positions:R:3", "O 1 2 3", 0, "Properties lack"},
      {"Properties=", "O 1 2 3", 0, "Properties lack"},
      {"Properties=species:S:1:pos:R:3 Properties=pos:R:3:species:S:1", "O 1 2 3", 0,
       "Properties is there twice"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const char *text = frame(all[i].comment, all[i].atom);
    if (all[i].words) {
      expect_refused("xyz", text, NULL, all[i].words);
      continue;
    }
    structure s = read_well("xyz", text, NULL);
    if (s.n != 1 || s.numbers[0] != all[i].number || s.positions[0] != 1 || s.positions[1] != 2 ||
        s.positions[2] != 3)
      fail_msg("'%s': %d at %g %g %g", text, s.numbers[0], s.positions[0], s.positions[1],
               s.positions[2]);
    assert_int_equal(s.isotopes, *all[i].atom == 'D');
    structure_free(&s);
  }
}

/* Whole files: marks, ends of lines, what follows the atoms. */
static void charges(void **state) {
  (void)state;
  static const struct {
    const char *comment;
    int charge, spin;
  } all[] = {{"", 0, 0},
             {"charge=-1 spin=2", -1, 2},
             {"total_charge=\"+1.0\" Total_Spin=3.", 1, 3},
             {"charge spin", 0, 0},
             {"charge=0.5 spin=up", INT32_MIN, INT32_MIN},
             {"charge=1e300 free_spin=4", INT32_MIN, 0}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    structure s = read_well("xyz", frame(all[i].comment, "O 1 2 3"), NULL);
    if (s.charge != all[i].charge || s.spin != all[i].spin)
      fail_msg("'%s': charge %d, spin %d", all[i].comment, (int)s.charge, (int)s.spin);
    structure_free(&s);
  }
}

static void files(void **state) {
  (void)state;
  structure s = read_well("xyz",
                          "\xef\xbb\xbf"
                          "1\r\nLattice=\"" L5 "\"\r\nO 1 2 3\r\n\r\n \r\n",
                          NULL);
  assert_true(s.n == 1 && s.periodic[2]);
  structure_free(&s);
  s = read_well("xyz", "1\n\nO 1 2 3\nVEC1 5 0 0\nVEC2 0 5 0\n1\n\nH 0 0 0", NULL);
  assert_true(s.n == 1 && s.periodic[0] && s.periodic[1] && !s.periodic[2] && s.cell[1][1] == 5);
  structure_free(&s);
  expect_refused("xyz", "1\n\nO 1 2 3\nVEC2 5 0 0\n", NULL, "VEC1, VEC2, VEC3");
  expect_refused("xyz", "1\n\nO 1 2 3\nVEC1 5 0\n", NULL, "VEC1, VEC2, VEC3");
  expect_refused("xyz", "1\nLattice=\"" L5 "\"\nO 1 2 3\nVEC1 5 0 0\n", NULL, "and no Lattice");
  expect_refused("xyz", "1 atom\n\nO 1 2 3\n", NULL, "is the number of atoms, not '1 atom'");
  expect_refused("xyz", "1\n\nTv 5 0 0\n", NULL, "'Tv' is not a chemical symbol");
}

/* Comments of any length. */
static void long_comment(void **state) {
  (void)state;
  enum { BYTES = 1 << 18 };
  char *text = malloc(BYTES + 200), *at = text;
  assert_non_null(text);
  at += sprintf(at, "1\ndescriptor=\"");
  memset(at, '7', BYTES);
  sprintf(at + BYTES, "\" Lattice=\"" L5 "\" Properties=species:S:1:pos:R:3\nO 1 2 3\n");
  structure s = read_well("xyz", text, NULL);
  assert_true(s.n == 1 && s.periodic[0]);
  structure_free(&s);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(understood), cmocka_unit_test(refused),
                                     cmocka_unit_test(columns),    cmocka_unit_test(charges),
                                     cmocka_unit_test(files),      cmocka_unit_test(long_comment)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
