/* tests/structures/test_structure_formats.c - atoms from POSCAR, LAMMPS' data files and CIF. */
#include "tests/structures/structure_runner.h"

typedef struct {
  const char *ending, *text;
  int n, numbers[8];
  double cell[3][3], positions[8][3];
} made_file;

static void expect_read(const made_file *w) {
  structure s = read_well(w->ending, w->text, NULL);
  assert_int_equal(s.n, w->n);
  for (int k = 0; k < 9; k++)
    if (fabs(s.cell[k / 3][k % 3] - w->cell[k / 3][k % 3]) > 1e-12)
      fail_msg("'%s': cell[%d][%d] is %.17g", w->text, k / 3, k % 3, s.cell[k / 3][k % 3]);
  assert_true(s.periodic[0] && s.periodic[1] && s.periodic[2]);
  for (int i = 0; i < w->n; i++) {
    assert_int_equal(s.numbers[i], w->numbers[i]);
    for (int k = 0; k < 3; k++)
      if (fabs(s.positions[3 * i + k] - w->positions[i][k]) > 1e-12)
        fail_msg("'%s': atom %d has %d: %.17g", w->text, i, k, s.positions[3 * i + k]);
  }
  structure_free(&s);
}

typedef struct {
  const char *text, *words; /* of the error */
} broken_file;

static void expect_all_refused(const char *ending, const broken_file *all, size_t n) {
  for (size_t i = 0; i < n; i++) expect_refused(ending, all[i].text, NULL, all[i].words);
}
#define EXPECT_REFUSED(ending, all) expect_all_refused(ending, all, sizeof all / sizeof *all)

/* ---- POSCAR ---- */

#define CELL "1\n4 0 0\n0 5 0\n1 0 6\n"

static void poscar(void **state) {
  (void)state;
  expect_read(
      &(made_file){"vasp",
                   "title\r\n2\r\n2 0 0\r\n0 2.5 0\r\n.5 0 3\r\nFe_pv  O/abc\r\n1 2 ! three\r\n"
                   "Selective dynamics\r\nDirect\r\n0 0 0 T F T\r\n.5 .5 0 T T T\r\n"
                   "0 0 1.5 F F F O\r\n\r\n0 0 0\r\n",
                   .n = 3, .numbers = {26, 8, 8}, .cell = {{4, 0, 0}, {0, 5, 0}, {1, 0, 6}},
                   .positions = {{0, 0, 0}, {2, 2.5, 0}, {1.5, 0, 9}}});
  expect_read(&(made_file){"poscar",
                           "title\n-960\n4 0 0\n0 5 0\n1 0 6\nH\n1\nKartesian\n1 2 3\n"
                           "Lattice velocities and vectors\n",
                           .n = 1, .numbers = {1}, .cell = {{8, 0, 0}, {0, 10, 0}, {2, 0, 12}},
                           .positions = {{2, 4, 6}}});
  expect_read(&(made_file){"CONTCAR", "title\n1 2 3\n4 0 0\n0 5 0\n1 0 6\nH He\n0 1\ncart\n1 2 3\n",
                           .n = 1, .numbers = {2}, .cell = {{4, 0, 0}, {0, 10, 0}, {1, 0, 18}},
                           .positions = {{1, 4, 9}}});
  structure s = read_well("vasp", "t\n" CELL "D H\n2 1\nD\n0 0 0\n.2 0 0\n.5 0 0\n", NULL);
  assert_int_equal(s.isotopes, 2);
  structure_free(&s);
}

static void broken_poscar(void **state) {
  (void)state;
  static const broken_file all[] = {
      {"", "ends here, before the title"},
      {"t\n0\n", "line 2: line 2 of a POSCAR is the scale"},
      {"t\n1 -1 1\n", "line 2: line 2 of a POSCAR is the scale"},
      {"t\n1 1\n", "line 2: line 2 of a POSCAR is the scale"},
      {"t\nnan\n", "line 2: line 2 of a POSCAR is the scale"},
      {"t\n1\n4 0 0\n0 5\n1 0 6\n", "line 4: vector b of the cell is three numbers, not '0 5'"},
      {"t\n-1\n4 0 0\n0 5 0\n4 5 0\nH\n1\nD\n0 0 0\n", "a cell of a given volume is not singular"},
      {"t\n1\n4 0 0\n0 5 0\n4 5 0\nH\n1\nD\n0 0 0\n", "the cell is singular"},
      {"Na Cl\n" CELL "1 1\nD\n0 0 0\n0 0 1\n",
       "line 6: line 6 of a POSCAR has the symbols of the species, as VASP 5 writes them; those of "
       "the first line, 'Na Cl'"},
      {"t\n" CELL "\n1\nD\n0 0 0\n", "line 6: line 6 of a POSCAR has the symbols"},
      {"t\n" CELL "Xx\n1\nD\n0 0 0\n", "line 6: 'Xx' is not a chemical symbol"},
      {"t\n" CELL "H O\n1\nD\n0 0 0\n", "line 7: there are 2 species, but 1 numbers of atoms"},
      {"t\n" CELL "H\n1 2\nD\n0 0 0\n", "line 7: there are 1 species, but 2 numbers of atoms"},
      {"t\n" CELL "H\n-1\nD\n0 0 0\n", "line 7: '-1' is not a number of atoms"},
      {"t\n" CELL "H O\n2147483647 2147483647\nD\n0 0 0\n", "line 7: these are more than 2^31"},
      {"t\n" CELL "H\n2147483647\nD\n0 0 0\n",
       "line 9: the file ends here, before atom 2 of 2147483647"},
      {"t\n" CELL "H\n1\n0 0 0\n", "line 8: Direct or Cartesian is wanted here, not '0 0 0'"},
      {"t\n" CELL "H\n1\nSelective\n0 0 0\n", "line 9: Direct or Cartesian"},
      {"t\n" CELL "H\n1\nD\n0 0\n", "line 9: atom 1 of 1 has 2 of 3 coordinates"},
      {"t\n" CELL "H\n1\nD\n0 nan 0\n", "line 9: 'nan' is not a finite number"},
      {"t\n" CELL "H\n1\nD\n0 0 0\n1 1 1\n", "line 10: there are more lines than the 1 atoms"},
  };
  EXPECT_REFUSED("vasp", all);
}

/* ---- LAMMPS ---- */

#define HEAD "title\n\n2 atoms\n1 bonds\n2 atom types\n0 4 xlo xhi\n-1 4 ylo yhi\n0 6 zlo zhi\n"
#define MASSES "Masses\n\n1 15.9994\n2 1.008 # hw\n\n"
#define TWO .n = 2, .cell = {{4, 0, 0}, {0, 5, 0}, {0, 0, 6}}

static void lammps(void **state) {
  (void)state;
  static const char *const atoms[] = {
      "Atoms # atomic\n\n2 1 4 5 6\n1 2 1 2 3\n",
      "Atoms\n\n2 1 4 5 6\n1 2 1 2 3\n",
      "Atoms # charge\n\n2 1 -1 4 5 6\n1 2 1 1 2 3\n",
      "Atoms\n\n2 1 -1.0 4 5 6\n1 2 0.5 1 2 3\n",
      "Atoms # molecular\n\n2 7 1 4 5 6\n1 7 2 1 2 3\n",
      "Atoms\n\n2 7 1 4 5 6\n1 7 2 1 2 3\n",
      "Atoms # full\n\n2 7 1 -1 4 5 6 # a comment\n1 7 2 .5 1 2 3\n",
      "Atoms  # full\n\n2 7 1 -1 0 0 6 1 1 0\n1 7 2 .5 1 2 9 0 0 -1\n",
      "Atoms\n\n2 7 1 -1 0 0 6 1 1 0\n1 7 2 .5 1 2 9 0 0 -1\n",
  };
  char text[1000];
  for (size_t i = 0; i < sizeof atoms / sizeof *atoms; i++)
    for (int after = 0; after < 2; after++) {
      snprintf(text, sizeof text, HEAD "\n%s%s\nVelocities\n\n1 0 0 0\n2 0 0 0\n%s",
               after ? "" : MASSES, atoms[i], after ? "\n" MASSES : "");
      expect_read(&(made_file){i % 2 ? "data" : "lmp", text, TWO, .numbers = {1, 8},
                               .positions = {{1, 2, 3}, {4, 5, 6}}});
    }
  expect_read(&(made_file){"data",
                           "title\n1 atoms\n1 atom types\n0 4 xlo xhi\n0 5 ylo yhi\n0 6 zlo zhi\n"
                           "1 -1 .5 xy xz yz\n\nAtom Type Labels\n\n1 Ca\n\nAtoms # atomic\n\n"
                           "1 Ca 1 2 3\n",
                           .n = 1, .numbers = {20}, .cell = {{4, 0, 0}, {1, 5, 0}, {-1, .5, 6}},
                           .positions = {{1, 2, 3}}});
  expect_read(&(made_file){"data",
                           "title\r\n1 atoms\r\n1 atom types\r\n4 0 1 avec\r\n0 5 0 bvec\r\n1 1 6 "
                           "cvec\r\n0 0 0 abc origin\r\n\r\nMasses\r\n\r\n1 3.024 # H\r\n\r\n"
                           "Pair Coeffs # lj\r\n\r\n1 2 3\r\n\r\nAtoms\r\n\r\n1 1 1 2 3\r\n",
                           .n = 1, .numbers = {1}, .cell = {{4, 0, 1}, {0, 5, 0}, {1, 1, 6}},
                           .positions = {{1, 2, 3}}});
}

/* Elements of masses, or of what stands behind them. */
static void lammps_elements(void **state) {
  (void)state;
  static const struct {
    const char *mass, *elements;
    int number;
    const char *words;
    int other; /* it is of an isotope */
  } all[] = {
      {"12", NULL, .number = 6},
      {"1.0 # hw", NULL, .number = 1},
      {"35.5", NULL, .number = 17},
      {"58.71", NULL, .number = 28},
      {"58.93", NULL, .number = 27},
      {"39.948", NULL, .number = 18},
      {"12.011 # CA", NULL, .number = 6},
      {"2.014 # H", NULL, .number = 1, .other = 1},
      {"9.99 # C", NULL, .number = 6, .other = 1},
      {"56", NULL, .number = 26},
      {"28.0", NULL, .number = 14},
      {"59", NULL, .words = "the mass 59 of type 1 is not that of one element"}, /* Co or Ni */
      {"40", NULL, .words = "the mass 40 of type 1 is not that of one element"}, /* Ar or Ca */
      {"40 # Ca", NULL, .number = 20},
      {"12.011", "1=Si", .number = 14, .other = 1},
      {"2.014", "1=H", .number = 1, .other = 1},
      {"500", "1=U", .number = 92, .other = 1},
      {"12.011 # Ca", NULL, .words = "type 1 is called Ca, but has the mass of C, 12.011"},
      {"2.014", NULL,
       .words = "the mass 2.014 of type 1 is not that of one element; --elements 1=SYMBOL"},
      {"72 # W1", NULL, .words = "the mass 72 of type 1 is not that of one element"},
      {"247", NULL, .words = "the mass 247 of type 1 is not that of one element"},
      {"0", NULL, .words = "a mass is a number above 0, not '0'"},
      {"-1", NULL, .words = "a mass is a number above 0, not '-1'"},
      {"nan", NULL, .words = "a mass is a number above 0, not 'nan'"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char text[500];
    const structure_options options = {.elements = all[i].elements};
    snprintf(text, sizeof text,
             "title\n1 atoms\n1 atom types\n0 4 xlo xhi\n0 5 ylo yhi\n0 6 zlo zhi\n\nMasses\n\n"
             "1 %s\n\nAtoms\n\n1 1 1 2 3\n",
             all[i].mass);
    if (all[i].words) {
      expect_refused("data", text, &options, all[i].words);
      continue;
    }
    structure s = read_well("data", text, &options);
    if (s.numbers[0] != all[i].number) fail_msg("a mass of %s is %d", all[i].mass, s.numbers[0]);
    assert_int_equal(s.other_masses, all[i].other);
    structure_free(&s);
  }
}

static void broken_lammps(void **state) {
  (void)state;
  static const broken_file all[] = {
      {"", "ends here, before the title"},
      {"LAMMPS data file via write_data, timestep = 0, units = lj\n" HEAD,
       "line 1: units = lj: positions are in Angstrom only with metal and real"},
      {HEAD, "has a section 'Atoms', and a header with its cell; there is none"},
      {"title\n\nMasses\n", "line 3: the header has the number of atoms"},
      {"title\n1.5 atoms\n\nMasses\n", "line 4: the header has the number of atoms"},
      {"title\n1 atoms\n\nMasses\n", "line 4: the header has the number of types"},
      {"title\n1 atoms\n99999999 atom types\n\nMasses\n",
       "line 5: the header has the number of types"},
      {"title\n1 2 atoms\n", "line 2: 'atoms' has 1 number before it"},
      {"title\n1 atoms\n1 atoms\n", "line 3: 'atoms' has 1 number before it, and stands once"},
      {"t\n1 atoms\n1 atom types\n0 4 xlo xhi\n0 6 zlo zhi\n\nAtoms\n\n1 1 0 0 0\n",
       "the header lacks 'ylo yhi', the cell along y"},
      {"t\n1 atoms\n1 atom types\n4 0 xlo xhi\n0 6 ylo yhi\n0 1 zlo zhi\n\nAtoms\n\n1 1 0 0 0\n",
       "the cell is -4 Angstrom long along x"},
      {HEAD "\nAtoms # sphere\n\n", "not 'sphere'"},
      {HEAD "\nAtoms\n1 1 0 0 0\n2 1 0 0 0\n", "a blank line is wanted behind the name"},
      {HEAD "\nAtoms\n\n1 1 0 0 0\n", "the file ends here, before atom 2 of 2"},
      {HEAD "\n" MASSES "Atoms\n\n1 1 0 0 0\n2 1 1 0 0\n3 1 2 0 0\n",
       "the section before has more lines than the header tells of"},
      {HEAD "\n" MASSES "Atoms\n\n1 1 0 0 0\n1 1 1 0 0\n", "atom 1 is there twice"},
      {HEAD "\nAtoms\n\n1 3 0 0 0\n2 1 1 0 0\n", "'3' is not a type of atoms"},
      {HEAD "\nAtoms\n\n1 1 0 0 0\n2 1 1 0 0 0\n",
       "atom 2 of 2 of style atomic has 5 columns, not 6"},
      {HEAD "\nAtoms\n\n1 1 1 0 0 0\n2 1 1 1 0 0\n",
       "these columns may be of style charge or molecular"},
      {HEAD "\nAtoms\n\n1 1\n2 1\n", "2 columns: 'Atoms # STYLE' must say what they are"},
      {HEAD "\nAtoms\n\n1 1 0 inf 0\n2 1 1 0 0\n", "'inf' is not a finite number"},
      {HEAD "\nAtoms\n\n1.5 1 0 0 0\n2 1 1 0 0\n", "'1.5' is not the number of an atom"},
      {HEAD "\nAtoms\n\n99999999999999999999 1 0 0 0\n2 1 1 0 0\n", "is not the number of an atom"},
      {HEAD "\nAtoms # atomic\n\n1 1 0 0 0 0 .5 0\n2 1 1 0 0 0 0 0\n", "the image flag '.5'"},
      {HEAD "\nMasses\n\n1 15.9994\n\nAtoms\n\n1 1 0 0 0\n2 1 1 0 0\n",
       "a type, from 1 to 2, and what"},
      {HEAD "\nMasses\n\n1 15.9994\n1 15.9994\n\nAtoms\n\n1 1 0 0 0\n2 1 1 0 0\n",
       "type 1 has two masses"},
      {HEAD "\nAtoms\n\n1 1 0 0 0\n2 1 1 0 0\n",
       "there are no Masses to tell elements by; --elements"},
      {HEAD "\n" MASSES "Atoms\n\n1 1 0 0 0\n2 1 1 0 0\n\n" MASSES, "type 1 has two masses"},
  };
  EXPECT_REFUSED("data", all);
}

/* ---- CIF ---- */

#define LENGTHS "_cell_length_a 4.0(1)\n_cell_length_b 5\n_cell_length_c 6.00(12)\n"
#define BOX LENGTHS "_cell_angle_alpha 90\n_cell.angle_beta 90.0\n_CELL_ANGLE_GAMMA 90\n"
#define SITES                                                                                      \
  "loop_\n_atom_site_type_symbol\n_atom_site_fract_x\n_atom_site_fract_y _atom_site_fract_z\n"
#define MIRROR "loop_\n_symmetry_equiv_pos_as_xyz\n 'x,y,z'\n\"X, Y, 1/2-Z\"\n"

static void cif(void **state) {
  (void)state;
  expect_read(&(made_file){"cif",
                           "# a comment\r\ndata_none\r\n_note\r\n;text\r\n_cell_length_a 3\r\n;\r\n"
                           "data_A\r\n" BOX "_name 'it's # this'\r\n" SITES
                           "Fe3+ .25 .5(1) 0. # here\r\nO2- 0.5\r\n0.5 1.5E0\r\ndata_B\r\n" SITES
                           "H 0 0 0\r\n",
                           TWO, .numbers = {26, 8}, .positions = {{1, 2.5, 0}, {2, 2.5, 9}}});
  expect_read(
      &(made_file){"cif",
                   "data_\n" BOX MIRROR "loop_\n_atom_site_label\n_atom_site_fract_x\n"
                   "_atom_site_fract_y\n_atom_site_fract_z\n_atom_site_occupancy\n"
                   "_atom_site_calc_flag\nO1 0 0 0.1 1.000(2) d\nH2 0 0 .2501 ? .\nX1 0 0 0 0 dum\n"
                   "O3 0 0 .4 . .\n", /* an image of the first */
                   .n = 3, .cell = {{4, 0, 0}, {0, 5, 0}, {0, 0, 6}}, .numbers = {8, 8, 1},
                   .positions = {{0, 0, .6}, {0, 0, 2.4}, {0, 0, 1.5006}}});
  expect_read(&(made_file){
      "cif", /* atoms at both ends of the cell, as VESTA writes them */
      "data_\n_space_group_IT_number 1\n_symmetry_space_group_name_H-M 'P 1'\n" BOX SITES
      "Ca 0 0 0\nCa 1 0 0\nCa .5 0 1.001\n",
      TWO, .numbers = {20, 20}, .positions = {{0, 0, 0}, {2, 0, 6.006}}});
  structure s = read_well("cif", "data_\n" BOX MIRROR SITES "D 0 0 0\nH .5 0 0\n", NULL);
  assert_int_equal(s.n, 4);
  assert_int_equal(s.isotopes, 2);
  structure_free(&s);
}

/* Only operations of the cell are operations. */
static void cif_operations(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "x,y",   "x,y,z,x", "x,y,",     "x,y,2z", "x,y,z+1/0", "x,y,z+a", "x,y,-",
      "x,y,1", "x,x,z",   "x,y,z+1/", "x;y;z",  "x,y,z-",    "",        "x,y,inf+z",
  };
  char text[1000];
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(text, sizeof text, "data_\n" BOX MIRROR "'%s'\n" SITES "H 0 0 0\n", wrong[i]);
    expect_refused("cif", text, NULL, "is not a symmetry operation such as");
  }
  expect_refused("cif", "data_\n" BOX MIRROR "y,x,z\n" SITES "H 0 0 0\n", NULL,
                 "'y,x,z' is no symmetry of this cell");
  expect_refused(
      "cif", "data_\n" BOX "loop_\n_space_group_symop.operation_xyz\n-x,y,z\n" SITES "H 0 0 0\n",
      NULL, "the symmetry operations lack 'x, y, z'");
  strcpy(text, "data_\nloop_\n_symmetry_equiv_pos_as_xyz\n");
  for (int i = 0; i < 193; i++) strcat(text, "x\n");
  expect_refused("cif", text, NULL, "line 4: 'x' is not a symmetry");
  char *many = calloc(1, 193 * 6 + 200);
  strcpy(many, "data_\nloop_\n_symmetry_equiv_pos_as_xyz\n");
  for (int i = 0; i < 193; i++) strcat(many, "x,y,z\n");
  expect_refused("cif", many, NULL, "line 196: no space group has more than 192 operations");
  free(many);
}

static void broken_cif(void **state) {
  (void)state;
  static const broken_file all[] = {
      {"", "there are no atoms"},
      {"data_\n" BOX, "there are no atoms: no loop has _atom_site_fract_x"},
      {"data_\nloop_\n_atom_site.Cartn_x\n1\n", "there are no atoms: no loop has"},
      {"data_\n" LENGTHS SITES "H 0 0 0\n", "_cell_angle_alpha is missing"},
      {"data_\n" BOX "_cell_length_a 3\n", "line 8: _cell_length_a is there twice"},
      {"data_\n_cell_length_a -4\n" SITES "H 0 0 0\n", "_cell_length_b is missing"},
      {"data_\n_cell_length_a nan\n", "line 2: 'nan' is not a finite number"},
      {"data_\n_cell_length_a 4(x)\n", "line 2: '4(x)' is not a finite number"},
      {"data_\n_cell_length_a\n", "'_cell_length_a' has no value"},
      {"data_\n_cell_length_a\n_cell_length_b 2\n", "line 3: '_cell_length_a' has no value"},
      {"data_\n" BOX SITES "H 0 0 0\nO 0 0\n", "the last row of the loop before has 3 of 4 values"},
      {"data_\n" BOX SITES "H 0 0 ?\n", "line 12: site 'H' lacks _atom_site_fract_z"},
      {"data_\n" BOX SITES "H 0 0 inf\n", "line 12: 'inf' is not a finite number"},
      {"data_\n" BOX SITES "Xx 0 0 0\n",
       "line 12: 'Xx' does not tell its element; --elements Xx=SYMBOL"},
      {"data_\n" BOX "loop_\n_atom_site_label\n_atom_site_fract_x\n_atom_site_fract_y\n"
       "_atom_site_fract_z\nCA1 0 0 0\n",
       "'CA1' does not tell its element"},
      {"data_\n" BOX "loop_\n_atom_site_occupancy\n_atom_site_label\n_atom_site_fract_x\n"
       "_atom_site_fract_y\n_atom_site_fract_z\n.5 O1 0 0 0\n",
       "line 14: site 'O1' is occupied by 0.5: a model needs whole atoms"},
      {"data_\n" BOX "loop_\n_atom_site_attached_hydrogens\n_atom_site_label\n_atom_site_fract_x\n"
       "_atom_site_fract_y\n_atom_site_fract_z\n1 O1 0 0 0\n",
       "site 'O1' has attached hydrogens"},
      {"data_\n" BOX MIRROR SITES "H 0 0 0.23\n",
       "site 'H' and its image by 'X, Y, 1/2-Z' are 0.24 Angstrom apart: neither one atom nor two"},
      {"data_\n" BOX SITES "H 0 0 0\nO 1 0 0\n", "H are at the same place"},
      {"data_\n" BOX "_space_group_name_H-M_alt 'F m -3 m'\n" SITES "H 0 0 0\n",
       "the space group is 'F m -3 m', but its operations are not listed"},
      {"data_\n" BOX
       "_symmetry_Int_Tables_number 225\nloop_\n_symmetry_equiv_pos_as_xyz\nx,y,z\n" SITES
       "H 0 0 0\n",
       "the space group is '225', but its operations are not listed"},
      {"data_\nloop_\n_space_group_symop_magn_operation.xyz\nx,y,z,+1\n", "magnetic structures"},
      {"data_\nloop_\n_atom_site_label\n_atom_site_label\n",
       "line 4: this loop has '_atom_site_label' twice"},
      {"data_\nloop_\nx\n", "line 3: loop_ is followed by no name"},
      {"data_\n4 5\n", "line 2: a name that begins with _, or loop_, is wanted before '4'"},
      {"data_\n_atom_site_label O\n", "line 2: '_atom_site_label' stands in a loop of sites"},
      {"data_\n_name 'open\n", "line 2: a value in this line lacks its closing quote"},
      {"data_\n_text\n;open\n", "the text that begins with ; in line 3 has no ; at its end"},
      {"data_\nsave_x\n", "line 2: 'save_x' is of STAR files"},
  };
  EXPECT_REFUSED("cif", all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(poscar),          cmocka_unit_test(broken_poscar), cmocka_unit_test(lammps),
      cmocka_unit_test(lammps_elements), cmocka_unit_test(broken_lammps), cmocka_unit_test(cif),
      cmocka_unit_test(cif_operations),  cmocka_unit_test(broken_cif),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
