/* tools/training/label_units.c - whether labels seem to have another unit, sign or order than is
   meant: least-squares slopes of labels against predictions, through the origin. */
#include "tools/training/label_units.h"

#include <math.h>

#include "models/atoms/neighbours.h"

/* ---- forms ---- */

/* What labels could be instead of what is meant, which is the first of each kind. */
typedef struct {
  const char *name;
  int yz, xz, xy; /* which numbers of a stress stand in the place of these */
} label_form;
static const label_form forms[LABELS][LABEL_FORMS] = {
    {{"", 0, 0, 0}, {"per atom", 0, 0, 0}},
    {{"", 0, 0, 0}},
    {{"", 5, 2, 1},
     {"virials", 5, 2, 1},
     {"in the order xx yy zz yz xy xz", 5, 1, 2},
     {"in the order xx yy zz xz yz xy", 2, 5, 1},
     {"in the order xx yy zz xz xy yz", 2, 1, 5},
     {"in the order xx yy zz xy yz xz", 1, 5, 2},
     {"in the order xx yy zz xy xz yz", 1, 2, 5}}};
static const int n_forms[LABELS] = {2, 1, LABEL_FORMS};
enum { PER_ATOM = 1, VIRIAL = 1 };

/* Prediction number i in a form. */
static double in_form(label_kind kind, int form, const md_system *frame, const label_pairs *p,
                      int64_t i) {
  const label_form *f = &forms[kind][form];
  const int at[9] = {0, f->xy, f->xz, f->xy, 4, f->yz, f->xz, f->yz, 8};
  if (kind == LABEL_ENERGY && form == PER_ATOM) return p->computed[i] / (double)frame->atoms.n;
  if (kind != LABEL_STRESS) return p->computed[i];
  return p->computed[at[i]] * (form == VIRIAL ? clb_cell_volume(&frame->atoms.cell[0][0]) : 1);
}

void label_fits_add(label_fits *f, const md_system *frame, const labelled_frame *l) {
  for (int kind = 0; kind < LABELS; kind++) {
    const label_pairs *p = &l->of[kind];
    for (int64_t i = 0; i < p->n; i++) {
      const double known = p->known[i];
      if (isnan(known)) continue;
      f->n[kind]++;
      f->ll[kind] += known * known;
      for (int form = 0; form < n_forms[kind]; form++) {
        const double x = in_form(kind, form, frame, p, i);
        f->xx[kind][form] += x * x;
        f->xl[kind][form] += x * known;
      }
    }
  }
}

/* ---- slopes ---- */

static const struct {
  label_kind kind;
  double factor; /* labels in this unit are so many times those in the right one */
  const char *name;
} units[] = {{LABEL_ENERGY, 1, ""},
             {LABEL_ENERGY, 1 / 27.211386, "in Hartree"},
             {LABEL_ENERGY, 1 / 13.605693, "in Rydberg"},
             {LABEL_ENERGY, 23.060548, "in kcal/mol"},
             {LABEL_ENERGY, 96.485332, "in kJ/mol"},
             {LABEL_ENERGY, 1000, "in meV"},
             {LABEL_FORCES, 1, ""},
             {LABEL_FORCES, 1 / 51.422067, "in Hartree/bohr"},
             {LABEL_FORCES, 1 / 25.711034, "in Rydberg/bohr"},
             {LABEL_FORCES, 23.060548, "in kcal/mol/Angstrom"},
             {LABEL_FORCES, 96.485332, "in kJ/mol/Angstrom"},
             {LABEL_FORCES, 964.85332, "in kJ/mol/nm"},
             {LABEL_STRESS, 1, ""},
             {LABEL_STRESS, 1602.17663, "in kbar"},
             {LABEL_STRESS, 160.217663, "in GPa"},
             {LABEL_STRESS, 1 / 1602.17663, "divided by 1602, as if they had been in kbar before"},
             {LABEL_STRESS, 1 / 160.217663, "divided by 160.2, as if they had been in GPa before"}};
enum { UNITS = sizeof units / sizeof *units };

static const char *const names[LABELS] = {"energies", "forces", "stresses"},
                         *const meant[LABELS] = {
                             "eV of the whole frame is", "eV/Angstrom, -dE/dposition, is",
                             "eV/Angstrom^3, positive where stretching costs energy, is"};
/* Slopes may differ by so much (of their logarithm) from a unit's factor: models predict energies
   well, and forces and stresses often too small. */
static const double tolerance[LABELS] = {0.05, 0.2, 0.2};
/* Fewer numbers say nothing; for an order of shears a stress of three frames is the least. */
static const int least[LABELS] = {3, 9, 18};
enum { LEAST_SHEARS = 27 };

typedef struct {
  int form, unit;          /* unit < 0: there is no explanation */
  double slope, off, left; /* off: from the unit's factor; left: part of the labels' squares that
                              predictions do not explain */
} explanation;

static explanation explain(const label_fits *f, label_kind kind, int form) {
  const double xx = f->xx[kind][form], xl = f->xl[kind][form], ll = f->ll[kind];
  explanation e = {form, -1, xl / xx, INFINITY, fmax(0, 1 - xl * xl / (xx * ll))};
  const bool shears = kind == LABEL_STRESS && form > VIRIAL;
  if (!(e.left < 0.2) || f->n[kind] < (shears ? LEAST_SHEARS : least[kind])) return e;
  for (int u = 0; u < UNITS; u++) {
    const double off = fabs(log(fabs(e.slope) / units[u].factor));
    if (units[u].kind != kind || !(off <= tolerance[kind]) || off >= e.off) continue;
    e.unit = u;
    e.off = off;
  }
  return e;
}

static bool as_meant(const explanation *e) {
  return !e->form && e->unit >= 0 && !*units[e->unit].name && e->slope > 0;
}

/* Where all frames have as many atoms, or the same volume, forms explain the same. */
static bool better(const explanation *a, const explanation *b) {
  if (a->unit < 0 || b->unit < 0) return a->unit >= 0;
  if (a->left < b->left / 4 && b->left > 1e-8) return true;
  return !as_meant(b) && a->left <= 1.01 * b->left + 1e-8 && a->off < b->off;
}

bool label_units_wrong(const label_fits *f, label_kind kind, char text[LABEL_UNITS_TEXT]) {
  explanation best = explain(f, kind, 0);
  for (int form = 1; form < n_forms[kind]; form++) {
    const explanation e = explain(f, kind, form);
    if (better(&e, &best)) best = e;
  }
  if (best.unit < 0 || as_meant(&best)) return false;
  const char *parts[] = {forms[kind][best.form].name, units[best.unit].name,
                         best.slope < 0 ? "of the opposite sign" : ""};
  char seem[200] = "";
  for (int i = 0, n = 0; i < 3; i++)
    if (*parts[i])
      n += snprintf(seem + n, sizeof seem - (size_t)n, "%s%s", n ? " and " : "", parts[i]);
  const bool order = kind == LABEL_STRESS && best.form > VIRIAL;
  snprintf(text, LABEL_UNITS_TEXT,
           "%s of the labels are about %.4g times those of the model, as "
           "if they were %s; %s meant",
           names[kind], best.slope, seem, order ? "xx yy zz yz xz xy is" : meant[kind]);
  return true;
}
