/* tests/structures/test_structure_names.c - elements of atoms that have only names, in PDB and
   GROMACS files; and other places in these files that could be mistaken in silence. */
#include "tests/structures/structure_runner.h"

typedef struct {
  const char *name, *residue; /* name: columns 13 to 16 of PDB */
  const char *symbol;         /* "": refused */
} naming;

static void expect_element(const char *ending, const char *text, const naming *w) {
  char words[64];
  if (!*w->symbol) {
    snprintf(words, sizeof words, "does not tell its element; --elements ");
    expect_refused(ending, text, NULL, words);
    return;
  }
  structure s = read_well(ending, text, NULL);
  if (strcmp(clb_element_symbols[s.numbers[0]], w->symbol) != 0)
    fail_msg("%s: '%s' of '%s' is %s", ending, w->name, w->residue,
             clb_element_symbols[s.numbers[0]]);
  structure_free(&s);
}

static const char *pdb_line(const char *name, const char *residue, const char *tail) {
  static char text[512];
  snprintf(text, sizeof text,
           "HETATM    1 %-4s %-4sA   1       1.000   2.000   3.000  1.00  0.00%s\n", name, residue,
           tail);
  return text;
}

static void pdb_names(void **state) {
  (void)state;
  static const naming all[] = {
      /* the place decides */
      {"SI1", "LIG", "Si"},
      {"BR1", "LIG", "Br"},
      {"CL1", "LIG", "Cl"},
      {"CL10", "LIG", "Cl"},
      {"FE", "LIG", "Fe"},
      {"SE", "LIG", "Se"},
      {"NA", "LIG", "Na"},
      {"CA", "LIG", "Ca"},
      {"ZN", "LIG", "Zn"},
      {" C1", "LIG", "C"},
      {" CA", "LIG", "C"},
      {" CD1", "LIG", "C"},
      {" NE2", "LIG", "N"},
      {" HO2", "LIG", "H"},
      {"HO2'", "LIG", "H"},
      {"HG11", "LIG", "H"},
      {"1HB", "LIG", "H"},
      {" O5'", "LIG", "O"},
      {" OXT", "LIG", "O"},
      {" PG", "LIG", "P"},
      {" K1", "LIG", "K"},
      {" F3", "LIG", "F"},
      {" B1", "LIG", "B"},
      {" I1", "LIG", "I"},
      /* it does not: many programs write symbols of two letters one column too far right */
      {" CL1", "LIG", ""},
      {" CL", "LIG", ""},
      {" SI1", "LIG", "Si"},
      {" BR1", "LIG", "Br"},
      {" SE", "LIG", ""},
      {" FE", "LIG", ""},
      {" NA", "LIG", ""},
      {" CO", "LIG", ""},
      {" CU", "LIG", ""},
      {" NI", "LIG", ""},
      {" ZN", "LIG", "Zn"},
      {"CA12", "LIG", ""},
      {"CAA", "LIG", ""},
      {" W", "W", ""},
      {" MW", "SOL", ""},
      {" DU", "LIG", ""},
      /* residues and ions */
      {" CA", "ALA", "C"},
      {"CA", "ALA", "C"},
      {"CA", "CA", "Ca"},
      {" CA", "CA", "Ca"},
      {" CL", "CL", "Cl"},
      {" CL", "CL-", "Cl"},
      {" NA", "NA+", "Na"},
      {"Na+", "Na+", "Na"},
      {"FE", "FE2", "Fe"},
      {" FE", "HEM", "Fe"},
      {" NA", "HEM", "N"},
      {" CMA", "HEM", "C"},
      {" SE", "MSE", "Se"},
      {"SE", "MSE", "Se"},
      {" SG", "CYS", "S"},
      {" HG", "SER", "H"},
      {" NE2", "HIE", "N"},
      {" CE", "NMET", "C"},
      {" PB", "ATP", "P"},
      {"HO5'", "DA5", "H"},
      {" OW", "SOL", "O"},
      {" OH2", "TIP3", "O"},
      {" CLA", "CLA", "Cl"},
      {" SOD", "SOD", "Na"},
      {" CL", "ALA", ""},
      {" ZN", "ALA", ""},
      {" BR", "TYR", ""},
      /* small letters, as i-PI and ASE write them */
      {"  Na", "1", "Na"},
      {"  Cl", "1", "Cl"},
      {"   O", "1", "O"},
      {"Cl1", "LIG", "Cl"},
      {"  CL", "1", ""},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    expect_element("pdb", pdb_line(all[i].name, all[i].residue, ""), &all[i]);
}

static void gro_names(void **state) {
  (void)state;
  static const naming all[] = {
      {"CL", "LIG", ""},   {"CL1", "LIG", ""},   {"BR1", "LIG", "Br"},  {"SI", "LIG", "Si"},
      {"SE", "LIG", ""},   {"FE", "LIG", ""},    {"CA", "LIG", ""},     {"CA", "ALA", "C"},
      {"CA", "CA", "Ca"},  {"C1", "LIG", "C"},   {"CB", "LIG", "C"},    {"H12", "LIG", "H"},
      {"OW", "SOL", "O"},  {"HW1", "SOL", "H"},  {"MW", "SOL", ""},     {"NA", "NA", "Na"},
      {"Cl", "Ion", "Cl"}, {"NA+", "Ion", "Na"}, {"ZN2+", "ZN", "Zn"},  {"AL", "ZEO", "Al"},
      {"CL", "CLA", ""},   {"CLA", "CLA", "Cl"}, {"SOD", "SOD", "Na"},  {"LP1", "LIG", ""},
      {"CU", "CU1", "Cu"}, {"MG", "MG", "Mg"},   {"C12A", "POPC", "C"}, {"NC3", "DPPC", "N"},
      {"PO4", "DPPC", ""}, {"W", "W", ""},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char text[512];
    snprintf(text, sizeof text, "t\n1\n    1%-5s%5s    1   0.100   0.200   0.300\n   1 1 1\n",
             all[i].residue, all[i].name);
    expect_element("gro", text, &all[i]);
  }
}

static void elements_are_told(void **state) {
  (void)state;
  static const structure_options told = {.elements = "LIG:CL1=Cl,CL1=C,*X=au,MW=He"};
  static const naming all[] = {
      {" CL1", "LIG", "Cl"}, {" CL1", "XYZ", "C"}, {" *x", "A", "Au"}, {" MW", "SOL", "He"}};
  char error[256];
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    structure s = read_well("pdb", pdb_line(all[i].name, all[i].residue, ""), &told);
    assert_string_equal(clb_element_symbols[s.numbers[0]], all[i].symbol);
    structure_free(&s);
  }
  structure s = read_well("xyz", "2\nAtoms. Timestep: 0\nOw 0 0 0\n1 1 1 1\n",
                          &(structure_options){.elements = "Ow=O,1=Si"});
  assert_true(s.numbers[0] == 8 && s.numbers[1] == 14);
  structure_free(&s);
  assert_true(structure_elements_check(told.elements, error, sizeof error));
  static const char *const wrong[] = {"", "CL", "=C", "CL=", "CL=Q", "A=C,,B=C", "A=C,B", "R:=C"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (structure_elements_check(wrong[i], error, sizeof error)) fail_msg("'%s'", wrong[i]);
  expect_refused("gro", "t\n1\n    1LIG    CL1    1   0.100   0.200   0.300\n1 1 1\n", NULL,
                 "line 3: atom 'CL1' of residue 'LIG' does not tell its element; --elements "
                 "CL1=SYMBOL says it");
}

/* A file that writes names of one letter into column 13 says nothing with that column. */
static void unaligned(void **state) {
  (void)state;
  char text[512];
  snprintf(text, sizeof text, "%s", pdb_line("CA", "LIG", ""));
  strcat(text, pdb_line("N1", "LIG", ""));
  expect_refused("pdb", text, NULL, "atom 'CA' of residue 'LIG'");
}

/* ---- other columns of PDB ---- */

static void pdb_columns(void **state) {
  (void)state;
  static const struct {
    const char *tail; /* from column 67 on */
    const char *symbol;
  } symbols[] = {{"          CL", "Cl"}, {"           O", "O"}, {"          CL1-", "Cl"},
                 {"      PROA O", ""},   {"      PROA  ", "C"}, {"      1ABC 123", "C"},
                 {"           CL", ""},  {"         SI ", ""},  {"           D", "H"},
                 {"      PRO  C", "C"},  {"          O ", "O"}};
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    const char *text = pdb_line(" C1", "LIG", symbols[i].tail);
    if (!*symbols[i].symbol && i != 3) {
      expect_refused("pdb", text, NULL, "columns 77 to 78 are a chemical symbol");
      continue;
    }
    structure s = read_well("pdb", text, NULL);
    const char *want = i == 3 ? "O" : symbols[i].symbol; /* of the right columns */
    if (strcmp(clb_element_symbols[s.numbers[0]], want) != 0)
      fail_msg("'%s' is %s", symbols[i].tail, clb_element_symbols[s.numbers[0]]);
    structure_free(&s);
  }
}

#define CRYST "CRYST1   10.000   20.000   30.000  90.00  90.00  90.00 P 1           1\n"
#define SERIAL(s) s " O   HOH A   1       1.000   2.000   3.000  1.00  0.00           O\n"

static void pdb_records(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int n;
    double a; /* of the cell; 0: none */
  } all[] = {
      {CRYST SERIAL("ATOM      1 "), 1, 10},
      {"\xef\xbb\xbf" CRYST SERIAL("ATOM      1 "), 1, 10},
      {SERIAL("ATOM  186a0 ") SERIAL("ATOM 100000 ") SERIAL("ATOM  A0000 ") SERIAL("ATOM  ***** "),
       4, 0},
      {"CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1\n" SERIAL(
           "ATOM      1 "),
       1, 0},
      {"CRYST1    0.000    0.000    0.000  90.00  90.00  90.00 P 1           1\n" SERIAL(
           "ATOM      1 "),
       1, 0},
      {"MODEL 1\n" SERIAL("ATOM      1 ") "MODEL 2\n" SERIAL("ATOM      1 "), 1, 0},
      {"TITLE     Step: 0 Bead: 0 positions{angstrom}  cell{nanometer}\n" CRYST SERIAL(
           "ATOM      1 "),
       1, 100},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    structure s = read_well("pdb", all[i].text, NULL);
    if (s.n != all[i].n || s.cell[0][0] != all[i].a || s.periodic[0] != (all[i].a > 0) ||
        s.positions[0] != 1)
      fail_msg("'%s': %d atoms, cell %g", all[i].text, (int)s.n, s.cell[0][0]);
    structure_free(&s);
  }
  structure s = read_well(
      "pdb", "TITLE     positions{atomic_unit} cell{angstrom}\n" CRYST SERIAL("ATOM      1 "),
      NULL);
  assert_true(fabs(s.positions[0] - 0.529177210903) < 1e-12 && s.cell[0][0] == 10);
  structure_free(&s);
  expect_refused("pdb", CRYST CRYST SERIAL("ATOM      1 "), NULL, "CRYST1 is there twice");
  expect_refused("pdb", "TITLE     positions{furlong}\n" CRYST, NULL,
                 "not one of i-PI's units of length");
  expect_refused("pdb", " " SERIAL("ATOM      1 "), NULL, "ATOM in capital letters starts in");
  expect_refused("pdb", SERIAL("ATOM      1 ") SERIAL("atom      1 "), NULL, "ATOM in capital");
  expect_refused("pdb", SERIAL("HETATM100000 "), NULL, "are a coordinate");
}

/* ASE writes an empty line where there is no box. */
static void gro_boxes(void **state) {
  (void)state;
  structure s = read_well("gro", "t\n1\n    1SOL     OW    1   0.100   0.200   0.300\n\n", NULL);
  assert_true(s.n == 1 && !s.periodic[0] && s.positions[2] == 3);
  structure_free(&s);
  expect_refused("gro", "t\n1\n    1SOL     OW    1   0.100   0.200  0.3000\n1 1 1\n", NULL,
                 "three coordinates in equal columns");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pdb_names),   cmocka_unit_test(gro_names),
      cmocka_unit_test(unaligned),   cmocka_unit_test(elements_are_told),
      cmocka_unit_test(pdb_columns), cmocka_unit_test(pdb_records),
      cmocka_unit_test(gro_boxes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
