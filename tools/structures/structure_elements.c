/* tools/structures/structure_elements.c - elements from symbols and from names of atoms. */
#include "tools/structures/structure_elements.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { HEAVIEST = 96 }; /* of the elements that a name of an atom may mean */
static const char letters_of[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static int32_t element_of(const char *text, size_t length) {
  for (int32_t z = 1; length && z <= CLB_ELEMENTS; z++)
    if (!strncasecmp(text, clb_element_symbols[z], length) && !clb_element_symbols[z][length])
      return z;
  return 0;
}

/* Whether `list`, words with blanks between them, has the first `length` bytes of `word`. */
static bool has_word(const char *list, const char *word, size_t length) {
  for (size_t n; *list; list += n + (list[n] == ' ')) {
    n = strcspn(list, " ");
    if (n == length && !strncasecmp(list, word, n)) return true;
  }
  return false;
}

/* ---- --elements ---- */

/* An item of "NAME=El,RESIDUE:NAME=El,...". */
typedef struct {
  const char *residue, *name, *symbol; /* residue: NULL for all */
  int residue_bytes, name_bytes, symbol_bytes;
} element_item;

static element_item next_item(const char **text) {
  const char *at = *text;
  const int all = (int)strcspn(at, ","), left = (int)strcspn(at, "=,"),
            colon = (int)strcspn(at, ":=,");
  const bool has = colon < left;
  *text += all + (at[all] == ',');
  return (element_item){.residue = has ? at : NULL,
                        .residue_bytes = colon,
                        .name = has ? at + colon + 1 : at,
                        .name_bytes = has ? left - colon - 1 : left,
                        .symbol = at + left + (left < all),
                        .symbol_bytes = left < all ? all - left - 1 : 0};
}

bool structure_elements_check(const char *elements, char *error, size_t size) {
  for (const char *at = elements; *at || at == elements;) {
    const char *item = at;
    const element_item e = next_item(&at);
    if (e.name_bytes && element_of(e.symbol, (size_t)e.symbol_bytes)) continue;
    snprintf(error, size, "'%.*s' is not a name of an atom, = and the symbol of an element",
             (int)strcspn(item, ","), item);
    return false;
  }
  return true;
}

static bool same(const char *text, int bytes, const char *word) {
  return strlen(word) == (size_t)bytes && !strncasecmp(text, word, (size_t)bytes);
}

static int32_t element_told(const structure_reader *r, const char *name, const char *residue) {
  const char *at = r->options->elements;
  while (at && *at) {
    const element_item e = next_item(&at);
    if (same(e.name, e.name_bytes, name) &&
        (!e.residue || same(e.residue, e.residue_bytes, residue)))
      return element_of(e.symbol, (size_t)e.symbol_bytes);
  }
  return 0;
}

int32_t structure_element_told(const structure_reader *r, const char *name) {
  return element_told(r, name, "");
}

/* ---- symbols ---- */

static int32_t symbol(structure_reader *r, const char *text, size_t length) {
  const bool isotope = length == 1 && strchr("DdTt", *text);
  r->s->isotopes += isotope;
  return isotope ? 1 : element_of(text, length);
}

int32_t structure_element(structure_reader *r, const char *text) {
  const int32_t told = element_told(r, text, "");
  return told ? told : symbol(r, text, strlen(text));
}

/* ---- names ---- */

/* Residues in which the first letter of a name is its element. */
typedef struct {
  const char *residues;
  const char *one; /* starts of names that could be a symbol of two letters, but are none here */
  const char *two; /* names that are a symbol of two letters, with a number or without */
} known_names;

static const known_names known[] = {
    {"ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL ASH ASPH "
     "CYX CYM CYSH CYS2 CYSD GLH GLUH HID HIE HIP HISA HISB HISD HISE HISH HIS1 HIS2 HSD HSE HSP "
     "LYN LYP LYSH ARN HYP SEP TPO PTR PYL ACE NME NMA NAC NH2 FOR DALA",
     "CA CD CE HE HG HO ND NE", ""},
    {"MSE SEC CSE", "CA CD CE HE HG HO ND NE", "SE"},
    {"A C G T U I DA DC DG DT DU DI RA RC RG RU A3 A5 C3 C5 G3 G5 T3 T5 U3 U5 DA3 DA5 DC3 DC5 DG3 "
     "DG5 DT3 DT5 RA3 RA5 RC3 RC5 RG3 RG5 RU3 RU5 ADE CYT GUA THY URA",
     "CM HO", ""},
    {"HEM HEME HEMC HEC HEA HEB", "CA CD CM HA HO NA NB ND", "FE"},
    {"ATP ADP AMP GTP GDP GMP NAD NADH NAP NDP FAD FMN", "CA CD CM HO PA PB", ""},
    {"HOH WAT SOL TIP TIP3 TIP3P TIP4 TIP4P TIP5 TIP5P TP3 TP4 T3P T4P SPC SPCE H2O DOD", "", ""},
};

/* Ions of CHARMM, which are called as their residue. */
static const struct {
  const char name[4], symbol[3];
} charmm_ions[] = {{"SOD", "Na"}, {"CLA", "Cl"}, {"POT", "K"},  {"CES", "Cs"}, {"CAL", "Ca"},
                   {"LIT", "Li"}, {"RUB", "Rb"}, {"BAR", "Ba"}, {"CAD", "Cd"}};

static const known_names *known_residue(const char *residue) {
  const size_t n = strlen(residue);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (has_word(known[i].residues, residue, n)) return &known[i];
  /* at the ends of a chain: NALA, CALA */
  return n == 4 && strchr("NnCc", *residue) && has_word(known->residues, residue + 1, 3) ? known
                                                                                         : NULL;
}

/* The symbol of two letters that a name starts with; 0: none. */
static int32_t symbol_of_two(const char *name) {
  const int32_t two = strspn(name, letters_of) > 1 ? element_of(name, 2) : 0;
  return two <= HEAVIEST ? two : 0;
}

void structure_see_mass(structure_reader *r, int32_t element, double mass) {
  const double usual = atomic_weights[element];
  r->s->other_masses += element && fabs(mass - usual) > 0.01 * usual;
}

bool structure_symbol_of_two(const char *name) { return symbol_of_two(name); }

/* "CA2+" -> "CA": the symbol of an ion. */
static int32_t ion(const char *name) {
  const size_t n = strspn(name, letters_of);
  const int32_t z = name[n + strspn(name + n, "0123456789+-")] ? 0 : element_of(name, n);
  return z <= HEAVIEST ? z : 0;
}

/* An ion has the name of its residue, or a charge. W alone is tungsten, or a coarse bead of water.
 */
static int32_t element_of_ion(const char *name, const char *residue) {
  const size_t n = strspn(name, letters_of), m = strspn(residue, letters_of);
  const char last = *name ? name[strlen(name) - 1] : 0;
  const bool alike = n && n == m && !strncasecmp(name, residue, n), charged = strchr("+-", last);
  for (size_t i = 0; alike && i < sizeof charmm_ions / sizeof *charmm_ions; i++)
    if (!strcasecmp(name, charmm_ions[i].name))
      return element_of(charmm_ions[i].symbol, strlen(charmm_ions[i].symbol));
  if (!strcasecmp(name, "W")) return 0;
  return (alike || (charged && last) || !strncasecmp(residue, "ION", 3)) ? ion(name) : 0;
}

/* The element of one letter, if it is one of `allowed`. */
static int32_t first_letter(structure_reader *r, const char *name, const char *allowed) {
  return strchr(allowed, toupper((unsigned char)*name)) ? symbol(r, name, 1) : 0;
}

/* `name` without the digits before it, and how many letters it starts with. */
static int32_t in_known(structure_reader *r, const known_names *k, const char *name,
                        size_t letters) {
  if (has_word(k->two, name, letters)) return element_of(name, letters);
  if (symbol_of_two(name) && !has_word(k->one, name, 2)) return 0;
  return first_letter(r, name, "HCNOPSD");
}

/* A name that starts with a symbol of two letters. */
static int32_t two_or_one(structure_reader *r, const char *name, size_t letters, size_t bytes,
                          int32_t two, name_place place) {
  static const char greek[] = "CA CD CE CM HE HF HG HO NB ND NE OS PA";
  const bool hydrogen = toupper((unsigned char)*name) == 'H';
  if (place == NAME_AT_COLUMN_14 && has_word(greek, name, 2)) return first_letter(r, name, "CHNOP");
  if (place == NAME_AT_COLUMN_13 && bytes == 4 && hydrogen) return 1;
  if (letters > 2) return 0;
  if (place == NAME_AT_COLUMN_13) return bytes == 4 && has_word(greek, name, 2) ? 0 : two;
  const bool only = !strchr("BCDFHIKNOPSUVWY", toupper((unsigned char)*name));
  return only || has_word("BR SI", name, 2) ? two : 0;
}

int32_t structure_element_of_name(structure_reader *r, const char *name, const char *residue,
                                  name_place place) {
  const int32_t told = element_told(r, name, residue),
                as_ion = told ? told : element_of_ion(name, residue);
  if (as_ion) return as_ion;
  const char *base = name + strspn(name, "0123456789");
  const size_t letters = strspn(base, letters_of);
  const known_names *k = known_residue(residue);
  if (!letters) return 0;
  if (k) return in_known(r, k, base, letters);
  if (base > name && strchr("HhDd", *base)) return first_letter(r, base, "DH"); /* "1HB" */
  if (letters == 1) return first_letter(r, base, "BCDFHIKNOPSUVY");
  const int32_t two = symbol_of_two(base);
  if (!two) return first_letter(r, base, "CFHNOPS");
  if (islower((unsigned char)base[1])) return letters == 2 ? two : 0; /* "Cl1" */
  return two_or_one(r, base, letters, strlen(name), two, base > name ? NAME_ANYWHERE : place);
}

bool structure_add_named(structure_reader *r, int32_t element, const char *name,
                         const char *residue, const double x[3]) {
  return element || r->options->any_element
             ? structure_add(r, element, x)
             : structure_fail(r,
                              "atom '%s' of residue '%s' does not tell its element; --elements "
                              "%s=SYMBOL says it",
                              name, residue, name);
}
