/* models/dispersion/d3.c - the parameters of D3 that functionals and elements have. */
#include "models/dispersion/d3.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models/dispersion/d3_tables.h"

/* ---- functionals ---- */

static bool is_named(const char *name, const char *end, const char *plain) {
  for (; name < end; name++) {
    if (!isalnum((unsigned char)*name)) continue;
    if (tolower((unsigned char)*name) != *plain++) return false;
  }
  return !*plain;
}

clb_status clb_d3_damping(clb_error_sink *error, const char *name, clb_dispersion_damping *d) {
  static const char three[] = "-atm"; /* of triples, too */
  const clb_d3_functional *f = clb_d3_functionals;
  const char *end = name + strlen(name);
  const bool triples = end - name > 4 && !strcasecmp(end - 4, three);
  if (triples) end -= 4;
  while (f->name && !is_named(name, end, f->name)) f++;
  if (f->name) {
    d->s9 = triples ? 1 / sqrt(CLB_D3_HARTREE) : 0; /* C9 is a root of energies cubed */
    d->s6 = f->s6, d->s8 = f->s8, d->a1 = f->a1, d->a2 = f->a2 * CLB_D3_BOHR;
    return CLB_OK;
  }
  clb_text known = {0};
  for (f = clb_d3_functionals; f->name; f++)
    clb_text_add(&known, "%s%s", f == clb_d3_functionals ? "" : ", ", f->name);
  const clb_status s =
      clb_fail(error, CLB_ERROR_ARGUMENT,
               "d3: there are no parameters for '%s'; there are for %s; with -atm behind the name, "
               "triples are added",
               name, known.s ? known.s : "others");
  clb_text_free(&known);
  return s;
}

/* ---- elements ---- */

typedef struct {
  int n, references, number[CLB_D3_ELEMENTS]; /* atomic numbers that occur */
  int32_t *element;
  double *radius, *root, *system, *c6, *vdw;
} elements;

static int systems_of(int z) { return clb_d3_first[z + 1] - clb_d3_first[z]; }

/* The number of an element in the list, which it joins. */
static int32_t join(elements *e, int z) {
  for (int i = 0; i < e->n; i++)
    if (e->number[i] == z) return i;
  e->number[e->n++] = z;
  if (systems_of(z) > e->references) e->references = systems_of(z);
  return e->n - 1;
}

static clb_status list_elements(clb_context *ctx, elements *e, int64_t n_species,
                                const int *atomic_number, const bool *occurs) {
  for (int64_t i = 0; i < n_species; i++) {
    e->element[i] = 0;
    if (!occurs[i]) continue;
    if (atomic_number[i] < 1 || atomic_number[i] > CLB_D3_ELEMENTS)
      return clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                      "d3: there are no parameters for atomic number %d; there are for 1 ... %d",
                      atomic_number[i], CLB_D3_ELEMENTS);
    e->element[i] = join(e, atomic_number[i]);
  }
  return CLB_OK;
}

static double c6_of(int i, int j) {
  const int high = i > j ? i : j, low = i > j ? j : i;
  const double unit = 1e-4 * CLB_D3_HARTREE * pow(CLB_D3_BOHR, 6);
  return clb_d3_c6[(int64_t)high * (high + 1) / 2 + low] * unit;
}

/* The square of 4/3 of van der Waals' radius of two elements. */
static double vdw_of(int i, int j) {
  const int high = i > j ? i : j, low = i > j ? j : i;
  const double radius = 4.0 / 3 * 1e-4 * clb_d3_vdw[high * (high - 1) / 2 + low - 1];
  return radius * radius;
}

/* Rows of two elements; systems that they lack have 0. */
static void fill_c6(const elements *e, int x, int y) {
  const int n = e->references, columns = e->n * n, a = e->number[x], b = e->number[y];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const bool there = i < systems_of(a) && j < systems_of(b);
      e->c6[(int64_t)(x * n + i) * columns + y * n + j] =
          there ? c6_of(clb_d3_first[a] + i, clb_d3_first[b] + j) : 0;
    }
}

static void fill(const elements *e) {
  for (int x = 0; x < e->n; x++) {
    const int z = e->number[x];
    const double r4r2 = sqrt(0.5 * clb_d3_r4r2[z] * sqrt(z));
    e->radius[x] = 4.0 / 3 * clb_d3_radius[z];
    e->root[x] = sqrt(sqrt(3) * r4r2 * CLB_D3_BOHR);
    for (int i = 0; i < e->references; i++)
      e->system[x * e->references + i] =
          i < systems_of(z) ? clb_d3_number[clb_d3_first[z] + i] : -1;
    for (int y = 0; y < e->n; y++) {
      e->vdw[x * e->n + y] = vdw_of(z, e->number[y]);
      fill_c6(e, x, y);
    }
  }
}

clb_status clb_d3_set_elements(clb_context *ctx, clb_dispersion *d, int64_t n_species,
                               const int *atomic_number, const bool *occurs) {
  elements e = {.element = malloc((size_t)(n_species + 1) * sizeof *e.element)};
  clb_status s = e.element ? list_elements(ctx, &e, n_species, atomic_number, occurs) : CLB_OK;
  if (!ctx->device->limits.simd) e.references += e.references % 2;
  const size_t systems = (size_t)e.n * (size_t)e.references;
  if (!s) {
    e.radius = calloc((size_t)e.n + 1, sizeof *e.radius);
    e.root = calloc((size_t)e.n + 1, sizeof *e.root);
    e.system = calloc(systems + 1, sizeof *e.system);
    e.vdw = calloc((size_t)e.n * (size_t)e.n + 1, sizeof *e.vdw);
    e.c6 = calloc(systems * systems + 1, sizeof *e.c6);
    if (!e.element || !e.radius || !e.root || !e.system || !e.vdw || !e.c6)
      s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "d3: no memory");
  }
  if (!s) {
    fill(&e);
    s = clb_dispersion_set(d, &(clb_dispersion_elements){.n_species = n_species,
                                                         .n = e.n,
                                                         .references = e.references,
                                                         .element = e.element,
                                                         .radius = e.radius,
                                                         .root = e.root,
                                                         .number = e.system,
                                                         .vdw = e.vdw,
                                                         .c6 = e.c6});
  }
  free(e.element);
  free(e.radius);
  free(e.root);
  free(e.system);
  free(e.vdw);
  free(e.c6);
  return s;
}
