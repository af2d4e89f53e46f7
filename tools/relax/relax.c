/* tools/relax/relax.c - `clebsch relax`: the nearest minimum of the energy, or of the enthalpy.

   Coordinates are the places of atoms in the first cell, and the deformation F of that cell, nine
   numbers times the square root of the number of atoms, which gives both about equal curvatures.
   Atoms are at F x. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/neighbours.h"
#include "tools/common/output.h"
#include "tools/dynamics/md_files.h"
#include "tools/measure/timing.h"
#include "tools/relax/lbfgs.h"

typedef enum { CELL_FIXED, CELL_VOLUME, CELL_ALL } cell_choice;

typedef struct {
  md_choice choice;
  const char *out;
  int64_t steps;
  cell_choice cell;
  bool pressed;                   /* --pressure or --max-stress was given */
  double force, stress, pressure; /* eV / Angstrom; eV / Angstrom^3 */
} relax_arguments;

/* Longest move of an atom in a step, Angstrom; and the first step's curvature, eV / Angstrom^2. */
static const double longest_move = 0.2, first_curvature = 70;

/* ---- options ---- */

enum { CELL = 256, PRESSURE, MAX_FORCE, MAX_STRESS };

static const struct argp_option options[] = {
    {"out", 'o', "FILE", 0, "Write the relaxed atoms as extended XYZ, with forces and stress", 1},
    {"cell", CELL, "WHAT", 0,
     "Relax the cell, too, which is periodic in three directions: all (lengths and angles) or "
     "volume (its shape is kept)",
     1},
    {"pressure", PRESSURE, "GPA", 0, "With --cell: the pressure outside (GPa; default: 0)", 1},
    {"max-force", MAX_FORCE, "F", 0,
     "Largest force on an atom that may be left (eV/A; default: 0.01)", 1},
    {"max-stress", MAX_STRESS, "GPA", 0,
     "With --cell: largest component of stress that may be left, beyond the pressure (GPa; "
     "default: 0.05)",
     1},
    {"steps", 'n', "N", 0, "Give up after N steps (default: 1000)", 1},
    {0}};

static void check(const relax_arguments *a, const struct argp_state *state) {
  if (!a->choice.structure) argp_error(state, "--structure is missing");
  if (!a->out) argp_error(state, "--out is missing");
  if (a->pressed && !a->cell) argp_error(state, "--pressure and --max-stress need --cell");
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  relax_arguments *a = state->input;
  switch (key) {
    case 'o': a->out = arg; return 0;
    case 'n': a->steps = whole_number(state, "--steps", arg, 0, 1000000000); return 0;
    case CELL:
      if (strcmp(arg, "all") != 0 && strcmp(arg, "volume") != 0)
        argp_error(state, "--cell is all or volume, not '%s'", arg);
      a->cell = arg[0] == 'a' ? CELL_ALL : CELL_VOLUME;
      return 0;
    case PRESSURE:
      a->pressure = real_number(state, "--pressure", arg, -1e4, 1e4) / gpa_per_ev_a3;
      a->pressed = true;
      return 0;
    case MAX_FORCE: a->force = real_number(state, "--max-force", arg, 1e-9, 1e3); return 0;
    case MAX_STRESS:
      a->stress = real_number(state, "--max-stress", arg, 1e-9, 1e3) / gpa_per_ev_a3;
      a->pressed = true;
      return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_ARG: argp_error(state, "'%s' is one argument too many", arg); return 0;
    case ARGP_KEY_END: check(a, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- the function ---- */

typedef struct {
  const relax_arguments *a;
  md_system system;
  double first_cell[3][3], scale; /* of the deformation's nine coordinates */
  int64_t n;                      /* coordinates: 3 of an atom, and 9 of the cell */
  double *x, *gradient;
  double force, stress; /* the largest at x */
} relaxation;

static void multiply(double a[3][3], double b[3][3], double out[3][3]) {
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++)
      out[i][k] = a[i][0] * b[0][k] + a[i][1] * b[1][k] + a[i][2] * b[2][k];
}

/* The transpose of the inverse, times the determinant. */
static void cofactors(double a[3][3], double out[3][3]) {
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) {
      const int i1 = (i + 1) % 3, i2 = (i + 2) % 3, k1 = (k + 1) % 3, k2 = (k + 2) % 3;
      out[i][k] = a[i1][k1] * a[i2][k2] - a[i1][k2] * a[i2][k1];
    }
}

/* Rows of F, as coordinates have them. */
static void deformation(const relaxation *r, const double *x, double f[3][3]) {
  for (int k = 0; k < 9; k++) f[k / 3][k % 3] = x[r->n - 9 + k] / r->scale;
}

/* Puts atoms and cell where x has them: rows of vectors are multiplied with the transpose of F. */
static void place(relaxation *r, const double *x) {
  structure *s = &r->system.atoms;
  double f[3][3];
  deformation(r, x, f);
  for (int64_t i = 0; i < s->n; i++)
    for (int k = 0; k < 3; k++)
      s->positions[3 * i + k] =
          f[k][0] * x[3 * i] + f[k][1] * x[3 * i + 1] + f[k][2] * x[3 * i + 2];
  for (int i = 0; i < 3 && r->a->cell; i++)
    for (int k = 0; k < 3; k++)
      s->cell[i][k] = f[k][0] * r->first_cell[i][0] + f[k][1] * r->first_cell[i][1] +
                      f[k][2] * r->first_cell[i][2];
}

/* dH/dF = V (stress + P) F^-T: the largest component of the stress that is left, and the
   gradient. */
static void cell_gradient(relaxation *r, double f[3][3], double *gradient) {
  const double volume = clb_cell_volume(&r->system.atoms.cell[0][0]);
  double left[3][3], inverse[3][3], product[3][3];
  memcpy(left, r->system.stress, sizeof left);
  for (int k = 0; k < 3; k++) left[k][k] += r->a->pressure;
  const double mean = (left[0][0] + left[1][1] + left[2][2]) / 3;
  for (int k = 0; k < 9 && r->a->cell == CELL_VOLUME; k++) left[k / 3][k % 3] = k % 4 ? 0 : mean;
  for (int k = 0; k < 9; k++) r->stress = fmax(r->stress, fabs(left[k / 3][k % 3]));
  cofactors(f, inverse);
  const double determinant =
      f[0][0] * inverse[0][0] + f[0][1] * inverse[0][1] + f[0][2] * inverse[0][2];
  multiply(left, inverse, product);
  for (int k = 0; k < 9; k++) gradient[k] = volume * product[k / 3][k % 3] / determinant / r->scale;
}

/* Energy and gradient at x. */
static bool evaluate(relaxation *r, const double *x, double *gradient) {
  double f[3][3], *g = gradient;
  place(r, x);
  if (!md_system_compute(&r->system, NULL)) return false;
  const double *force = r->system.forces;
  deformation(r, x, f);
  r->force = r->stress = 0;
  for (int64_t i = 0; i < r->system.atoms.n; i++, g += 3, force += 3) {
    for (int k = 0; k < 3; k++)
      g[k] = -(force[0] * f[0][k] + force[1] * f[1][k] + force[2] * f[2][k]);
    r->force =
        fmax(r->force, sqrt(force[0] * force[0] + force[1] * force[1] + force[2] * force[2]));
  }
  memset(g, 0, 9 * sizeof *g);
  if (r->a->cell) cell_gradient(r, f, g);
  return true;
}

static bool is_relaxed(const relaxation *r) {
  return r->force <= r->a->force && r->stress <= r->a->stress;
}

/* ---- the search ---- */

/* No row moves by more than the longest move. */
static void shorten(const relaxation *r, double *direction) {
  double most = 0;
  for (int64_t i = 0; i < r->n; i += 3)
    most = fmax(most, lbfgs_dot(3, direction + i, direction + i));
  for (int64_t i = 0; i < r->n && most > longest_move * longest_move; i++)
    direction[i] *= longest_move / sqrt(most);
}

static void tell(const relaxation *r, int64_t step) {
  printf("step %lld: %.6f eV, largest force %.4g eV/A", (long long)step, r->system.energy,
         r->force);
  if (r->a->cell)
    printf(", stress %.4g GPa, volume %.6g A^3", r->stress * gpa_per_ev_a3,
           clb_cell_volume(&r->system.atoms.cell[0][0]));
  putchar('\n');
  fflush(stdout);
}

/* Goes to x + direction; where the slope there is steep and uphill, back to where a straight line
   between the slopes is 0. Only forces are compared: energies have fewer digits. */
static bool step_to(relaxation *r, double *direction, double *x, double *gradient) {
  const double slope = lbfgs_dot(r->n, r->gradient, direction);
  double part = 1, end = slope;
  for (int tries = 0; tries < 4; tries++) {
    for (int64_t i = 0; i < r->n; i++) x[i] = r->x[i] + part * direction[i];
    if (!evaluate(r, x, gradient)) return false;
    end = lbfgs_dot(r->n, gradient, direction);
    if (end <= -0.9 * slope) return true;
    part *= slope / (slope - end);
  }
  return true;
}

static bool search(relaxation *r, int64_t *step) {
  const size_t n = (size_t)r->n;
  double *direction = allocate(n, sizeof *direction), *x = allocate(n, sizeof *x),
         *gradient = allocate(n, sizeof *gradient);
  lbfgs l = {.n = r->n};
  bool good = evaluate(r, r->x, r->gradient);
  for (*step = 0; good && !(tell(r, *step), is_relaxed(r)) && *step < r->a->steps; ++*step) {
    lbfgs_direction(&l, 1 / first_curvature, r->gradient, direction);
    shorten(r, direction);
    good = step_to(r, direction, x, gradient);
    for (int64_t i = 0; i < r->n; i++) {
      direction[i] = x[i] - r->x[i];
      const double change = gradient[i] - r->gradient[i];
      r->x[i] = x[i], r->gradient[i] = gradient[i], gradient[i] = change;
    }
    lbfgs_learn(&l, direction, gradient);
  }
  lbfgs_free(&l);
  free(direction), free(x), free(gradient);
  return good;
}

/* ---- the command ---- */

static bool start(relaxation *r) {
  md_system *y = &r->system;
  if (!md_system_start(y, &r->a->choice)) return false;
  md_system_warn_of_fixed(y);
  const structure *s = &y->atoms;
  if (r->a->cell && !(y->has_stress && s->periodic[0] && s->periodic[1] && s->periodic[2])) {
    warn("%s: --cell needs a cell that is periodic in three directions", y->from);
    return false;
  }
  r->n = 3 * s->n + 9;
  r->scale = sqrt((double)(s->n ? s->n : 1));
  r->x = allocate((size_t)r->n, sizeof *r->x);
  r->gradient = allocate((size_t)r->n, sizeof *r->gradient);
  memcpy(r->first_cell, s->cell, sizeof s->cell);
  for (int64_t i = 0; i < 3 * s->n; i++) r->x[i] = s->positions[i];
  for (int k = 0; k < 3; k++) r->x[3 * s->n + 4 * k] = r->scale;
  return true;
}

static bool relax(relaxation *r) {
  int64_t step = 0;
  if (!start(r)) return false;
  const double before = seconds_now();
  if (!search(r, &step)) return false;
  const double seconds = seconds_now() - before;
  const md_frame frame = {.system = &r->system, .forces = true, .time = NAN};
  if (!file_replace(r->a->out, frame_write, &frame)) return false;
  md_system_print_device(&r->system, "device       %s: %s");
  printf("written      %s: %lld steps, %.3g s\n", r->a->out, (long long)step, seconds);
  if (is_relaxed(r)) return true;
  char stress[64] = "";
  if (r->a->cell)
    snprintf(stress, sizeof stress, ", the stress that is left %.3g GPa",
             r->stress * gpa_per_ev_a3);
  warn("%s: not relaxed after %lld steps: the largest force is %.3g eV/A%s; %s has the atoms as "
       "they are, and more --steps may help",
       r->system.from, (long long)step, r->force, stress, r->a->out);
  return false;
}

int relax_main(int argc, char **argv) {
  static const struct argp_child children[] = {{&md_choice_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model MODEL --structure FILE --out FILE",
      .doc =
          "Moves atoms, and with --cell the cell, to the nearest minimum of the energy (with a "
          "pressure: of the enthalpy).\v"
          "By L-BFGS with forces alone; no atom moves by more than 0.2 A in a step. Positions are "
          "not wrapped into the cell. The exit status is 1 where forces or stress are still too "
          "large after the last step; --out is written nevertheless. Splines and f32 limit how "
          "small forces can become; with --exact they can be smaller."};
  relax_arguments a = {.steps = 1000,
                       .force = 0.01,
                       .stress = 0.05 / gpa_per_ev_a3,
                       .choice.options.skin = CLB_AUTO_SKIN};
  parse_arguments(&argp, argc, argv, 0, &a);
  if (a.cell) a.choice.options.skin = 0; /* every cell is another one */
  relaxation r = {.a = &a, .system.without_e_atom = true};
  const named_file files[] = {{"the model (--model)", a.choice.model, FILE_INPUT},
                              {"the structure (--structure)", a.choice.structure, FILE_INPUT},
                              {"the relaxed atoms (--out)", a.out, FILE_WHOLE}};
  const bool good = outputs_ready(files, sizeof files / sizeof *files) && relax(&r);
  free(r.x);
  free(r.gradient);
  md_system_close(&r.system);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
