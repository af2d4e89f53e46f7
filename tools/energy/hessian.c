/* tools/energy/hessian.c - `clebsch hessian`: second derivatives of the energy by differences of
   forces, many displaced structures at once. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/dynamics/md_system.h"
#include "tools/measure/timing.h"

enum { ATOMS_TOGETHER = 1 << 15 };

typedef struct {
  md_choice choice;
  const char *out;
  double displacement; /* Angstrom */
  bool json;
} hessian_arguments;

typedef struct {
  int64_t n;          /* 3 times the number of atoms */
  double *h;          /* [n][n], eV / Angstrom^2 */
  double asymmetric;  /* largest |h - h^T| before they were averaged */
  double translation; /* largest |sum over atoms of a row|, which is 0 of the exact derivative */
  double seconds;
} hessian;

static error_t parse(int key, char *arg, struct argp_state *state) {
  hessian_arguments *a = state->input;
  switch (key) {
    case 'D': a->displacement = real_number(state, "--displacement", arg, 1e-4, 0.5); return 0;
    case 'o': a->out = arg; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_ARG: argp_error(state, "'%s' is one argument too many", arg); return 0;
    case ARGP_KEY_END:
      if (!a->choice.structure) argp_error(state, "--structure is missing");
      if (!a->out) argp_error(state, "--out is missing: the file of second derivatives");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- computing ---- */

/* Forces of the atoms with coordinates first ... first + n - 1 displaced, each by +d and by -d:
   forces[n][2][number of coordinates]. */
static bool displaced_forces(md_system *y, int64_t first, int64_t n, double d, double *positions,
                             double *forces) {
  const structure *s = &y->atoms;
  const int64_t size = 3 * s->n;
  clb_model_atoms *atoms = allocate((size_t)(2 * n), sizeof *atoms);
  clb_model_results *results = allocate((size_t)(2 * n), sizeof *results);
  for (int64_t i = 0; i < 2 * n; i++) {
    double *x = positions + i * size;
    memcpy(x, s->positions, (size_t)size * sizeof *x);
    x[first + i / 2] += i % 2 ? -d : d;
    atoms[i] = md_system_atoms(y, x);
    results[i] = (clb_model_results){.forces = forces + i * size};
  }
  const clb_status status = clb_model_compute_many(y->model, 2 * n, atoms, results);
  if (status) warn("%s: %s", y->from, clb_error(y->ctx));
  free(atoms);
  free(results);
  return !status;
}

static bool compute(md_system *y, double d, hessian *h) {
  const double start = seconds_now();
  int64_t together = ATOMS_TOGETHER / (2 * (y->atoms.n + 1));
  h->n = 3 * y->atoms.n;
  together = together < 1 ? 1 : together > h->n ? h->n : together;
  const size_t numbers = (size_t)(2 * together * h->n);
  double *positions = allocate(numbers, sizeof *positions),
         *forces = allocate(numbers, sizeof *forces);
  h->h = allocate((size_t)(h->n * h->n), sizeof *h->h);
  bool good = true;
  for (int64_t i = 0; i < h->n && good; i += together) {
    const int64_t n = h->n - i < together ? h->n - i : together;
    progress("%s: %lld of %lld displacements", y->device.name, (long long)(2 * i),
             (long long)(2 * h->n));
    good = displaced_forces(y, i, n, d, positions, forces);
    for (int64_t k = 0; k < n * h->n && good; k++) {
      const double *f = forces + 2 * (k / h->n) * h->n + k % h->n;
      h->h[i * h->n + k] = (f[h->n] - f[0]) / (2 * d);
    }
  }
  progress(NULL);
  free(positions);
  free(forces);
  h->seconds = seconds_now() - start;
  return good;
}

/* How far the differences are from what the exact derivative obeys; then they are symmetric. */
static void finish(hessian *h) {
  for (int64_t i = 0; i < h->n; i++)
    for (int k = 0; k < 3; k++) {
      double sum = 0;
      for (int64_t j = k; j < h->n; j += 3) sum += h->h[i * h->n + j];
      h->translation = fmax(h->translation, fabs(sum));
    }
  for (int64_t i = 0; i < h->n; i++)
    for (int64_t j = 0; j < i; j++) {
      double *a = &h->h[i * h->n + j], *b = &h->h[j * h->n + i];
      h->asymmetric = fmax(h->asymmetric, fabs(*a - *b));
      *a = *b = (*a + *b) / 2;
    }
}

/* ---- the file ---- */

/* NumPy's format: a line that says what follows, padded to 64 bytes with what is before it. */
static bool write_npy(FILE *f, const void *user) {
  const hessian *h = user;
  char line[119];
  const int n = snprintf(line, sizeof line,
                         "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %lld), }",
                         (long long)h->n, (long long)h->n);
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
  fprintf(f, "%s%*s\n", line, (int)sizeof line - 2 - n, "");
  return fwrite(h->h, sizeof *h->h, (size_t)(h->n * h->n), f) == (size_t)(h->n * h->n);
}

static void print(const md_system *y, const hessian_arguments *a, const hessian *h) {
  if (a->json) {
    json_t *o = json_object();
    JSON_ADD(o, {"out", json_text(a->out)}, {"atoms", json_count(y->atoms.n)},
             {"displacement", json_number(a->displacement)},
             {"asymmetric", json_number(h->asymmetric)},
             {"translation", json_number(h->translation)}, {"seconds", json_number(h->seconds)});
    json_print(o);
    return;
  }
  printf(
      "written    %s: [%lld][%lld] eV/A^2, by %lld displacements of %g A, by %s on %s in %.3g s\n",
      a->out, (long long)h->n, (long long)h->n, (long long)(2 * h->n), a->displacement, y->name,
      y->device.name, h->seconds);
  printf("errors     at most %.2g eV/A^2 from symmetry, %.2g from invariance under translation\n",
         h->asymmetric, h->translation);
}

int hessian_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"out", 'o', "FILE", 0,
       "Write the matrix [3 N][3 N] as a NumPy file (.npy): rows and columns are x, y, z of the "
       "first atom, then of the second, ...",
       0},
      {"displacement", 'D', "A", 0, "Of each coordinate, to both sides (default: 0.01 Angstrom)",
       0},
      {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0},
      {0}};
  static const struct argp_child children[] = {{&md_choice_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model MODEL --structure FILE --out FILE",
      .doc = "Second derivatives of the energy, for vibrations and phonons.\v"
             "eV and Angstrom. Differences of forces of displaced structures, which are computed "
             "together; the matrix is made symmetric. Relax the atoms first. Differences of small "
             "numbers need precision: --dtype is f64 here unless it is given."};
  hessian_arguments a = {.displacement = 0.01, .choice.options.dtype = CLB_F64};
  parse_arguments(&argp, argc, argv, 0, &a);
  md_system y = {0};
  hessian h = {0};
  const named_file files[] = {{"the model (--model)", a.choice.model, FILE_INPUT},
                              {"the structure (--structure)", a.choice.structure, FILE_INPUT},
                              {"the second derivatives (--out)", a.out, FILE_WHOLE}};
  bool good = outputs_ready(files, sizeof files / sizeof *files) &&
              md_system_start(&y, &a.choice) && md_system_compute(&y, NULL) && /* may refuse them */
              compute(&y, a.displacement, &h);
  if (good) finish(&h);
  good = good && file_replace(a.out, write_npy, &h);
  if (good) print(&y, &a, &h);
  free(h.h);
  md_system_close(&y);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
