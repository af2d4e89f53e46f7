/* tools/energy/energy.c - `clebsch energy`: energy, forces and stress of the atoms in a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/energy/estimate.h"
#include "tools/energy/all_frames.h"
#include "tools/dynamics/md_files.h"
#include "tools/dynamics/md_system.h"
#include "tools/common/output.h"
#include "tools/measure/timing.h"

typedef struct {
  md_choice choice;
  const char *out;
  int repeats;
  structure_slice slice; /* of --frames */
  bool json, profile, compare, frames, estimate;
} energy_arguments;

enum { MAX_KINDS = 64 };
typedef struct {
  char kernel[48];
  int64_t launches;
  double seconds;
} energy_share;

/* Results of --profile and --compare-networks. */
typedef struct {
  energy_share share[MAX_KINDS]; /* shares of one computation, the largest first */
  int kinds;
  double profiled;                                 /* seconds of that computation */
  double largest_force, force_error, energy_error; /* eV/A, eV; relative to the exact radial
                                                      networks */
} energy_extras;

typedef struct {
  double first, median,
      min; /* seconds; first: opening the model and the first compute, compiling included */
} energy_times;

enum { PROFILE = 256, ESTIMATE };

static error_t parse(int key, char *arg, struct argp_state *state) {
  energy_arguments *a = state->input;
  switch (key) {
    case 'r': a->repeats = (int)whole_number(state, "--repeat", arg, 1, 1000000); return 0;
    case 'j': a->json = true; return 0;
    case PROFILE: a->profile = true; return 0;
    case ESTIMATE: a->estimate = true; return 0;
    case 'x': a->compare = true; return 0;
    case 'o': a->out = arg; return 0;
    case 'F':
      if (!structure_slice_read(arg, &a->slice))
        argp_error(state, "--frames is all, or START:STOP:STEP as of a list in Python, not '%s'",
                   arg);
      a->frames = true;
      return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_ARG: argp_error(state, "'%s' is one argument too many", arg); return 0;
    case ARGP_KEY_END:
      if (!a->choice.structure) argp_error(state, "--structure is missing");
      if (a->compare && a->choice.options.knots == CLB_NO_KNOTS)
        argp_error(state, "--compare-networks is of splines; it excludes --knots 0 and --exact");
      if (a->frames && a->choice.reading.frames.chosen)
        argp_error(state, "--frame is one frame, --frames are several: give one of them");
      if (a->frames) a->choice.reading.frames = a->slice;
      if (a->compare && !strcmp(a->choice.structure, "-"))
        argp_error(state, "--compare-networks reads the structure twice: it must be a file");
      if (a->frames && !a->out) argp_error(state, "--frames needs --out");
      if (a->frames && (a->repeats || a->profile || a->compare))
        argp_error(state,
                   "--repeat, --profile and --compare-networks are of one frame: no --frames");
      if (a->estimate && (a->frames || a->out || a->repeats || a->profile || a->compare))
        argp_error(state, "--estimate computes nothing: of the others, it takes --json alone");
      if (!a->repeats) a->repeats = 3;
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- computing ---- */

/* Computes with the first atom moved so little that only the neighbours notice: they are found
   anew, as in a step of dynamics. The last computation is of the atoms as they are. */
static bool compute_moved(md_system *y, double *positions, int i, int last) {
  static const double little[] = {1e-9, 2e-9};
  if (!y->atoms.n || i == last) return md_system_compute(y, NULL);
  positions[0] = y->atoms.positions[0] + little[i % 2];
  return md_system_compute(y, positions);
}

static bool compute(md_system *y, const energy_arguments *a, energy_times *t) {
  const double start = seconds_now();
  if (!md_system_start(y, &a->choice)) return false;
  double *seconds = allocate((size_t)a->repeats, sizeof *seconds),
         *positions = allocate((size_t)y->atoms.n + 1, 3 * sizeof *positions);
  for (int64_t i = 0; i < 3 * y->atoms.n; i++) positions[i] = y->atoms.positions[i];
  bool good = compute_moved(y, positions, 0, a->repeats);
  t->first = seconds_now() - start;
  for (int i = 1; i <= a->repeats && good; i++) {
    const double before = seconds_now();
    progress("%s: %d of %d", y->device.name, i, a->repeats);
    good = compute_moved(y, positions, i, a->repeats);
    seconds[i - 1] = seconds_now() - before;
  }
  progress(NULL);
  t->median = median(seconds, a->repeats);
  t->min = seconds[0];
  free(seconds);
  free(positions);
  return good;
}

/* ---- profile ---- */

static void take_share(const clb_profile_entry *entry, void *user) {
  energy_extras *e = user;
  if (e->kinds == MAX_KINDS) return;
  energy_share *s = &e->share[e->kinds++];
  snprintf(s->kernel, sizeof s->kernel, "%s", entry->kernel);
  s->launches = entry->launches;
  s->seconds = entry->seconds;
}

static int by_seconds(const void *a, const void *b) {
  const double x = ((const energy_share *)a)->seconds, y = ((const energy_share *)b)->seconds;
  return (x < y) - (x > y);
}

static bool profile(md_system *y, energy_extras *e) {
  clb_status status = clb_profile_begin(y->ctx);
  const double start = seconds_now();
  const bool good = !status && md_system_compute(y, NULL);
  e->profiled = seconds_now() - start;
  status = clb_profile_end(y->ctx, take_share, e);
  qsort(e->share, (size_t)e->kinds, sizeof *e->share, by_seconds);
  return good && !status;
}

/* ---- error of the splines ---- */

/* Computes the same atoms again, with the radial networks themselves. */
static bool compare_with_networks(const md_system *y, const energy_arguments *a, energy_extras *e) {
  md_system exact = {0};
  md_choice choice = a->choice;
  choice.options.knots = CLB_NO_KNOTS;
  const bool good = md_system_start(&exact, &choice) && md_system_compute(&exact, NULL);
  for (int64_t i = 0; good && i < 3 * exact.atoms.n; i++) {
    e->largest_force = fmax(e->largest_force, fabs(exact.forces[i]));
    e->force_error = fmax(e->force_error, fabs(exact.forces[i] - y->forces[i]));
  }
  e->energy_error = fabs(exact.energy - y->energy);
  md_system_close(&exact);
  return good;
}

/* ---- all frames ---- */

static void print_labels(const md_system *y, const energy_arguments *a, const frame_labels *l) {
  if (a->json) {
    json_t *o = md_system_described(y, &a->choice);
    JSON_ADD(o, {"out", json_text(a->out)}, {"frames", json_count(l->frames)},
             {"atoms", json_count(l->atoms)}, {"seconds", json_number(l->seconds)});
    json_print(o);
    return;
  }
  printf("written    %s: %lld frames, %lld atoms, by %s on %s in %.3g s\n", a->out,
         (long long)l->frames, (long long)l->atoms, y->name, y->device.name, l->seconds);
}

/* ---- one frame ---- */

static json_t *numbers(const double *x, int64_t n) {
  json_t *list = json_array();
  for (int64_t i = 0; i < n; i++) json_array_add(list, json_number(x[i]));
  return list;
}

static void print_json(const md_system *y, const energy_arguments *a, const energy_times *t,
                       const energy_extras *e) {
  json_t *o = md_system_described(y, &a->choice), *forces = json_array();
  for (int64_t i = 0; i < y->atoms.n; i++) json_array_add(forces, numbers(y->forces + 3 * i, 3));
  JSON_ADD(o, {"atoms", json_count(y->atoms.n)}, {"edges", json_count(md_system_edges(y))},
           {"energy", json_number(y->energy)}, {"atom_energies", numbers(y->e_atom, y->atoms.n)},
           {"forces", forces},
           {"stress", y->has_stress ? numbers(&y->stress[0][0], 9) : json_null()},
           {"seconds_first", json_number(t->first)}, {"seconds", json_number(t->median)},
           {"seconds_min", json_number(t->min)});
  if (a->compare)
    json_add(o, "force_error_of_splines", json_number(e->force_error)),
        json_add(o, "energy_error_of_splines", json_number(e->energy_error));
  json_t *shares = a->profile ? json_array() : NULL;
  for (int i = 0; i < e->kinds; i++) {
    json_t *s = json_array_add(shares, json_object());
    JSON_ADD(s, {"kernel", json_text(e->share[i].kernel)},
             {"launches", json_count(e->share[i].launches)},
             {"seconds", json_number(e->share[i].seconds)});
  }
  if (shares) json_add(o, "profile", shares);
  json_print(o);
}

/* ---- for people ---- */

static void print_system(const md_system *y, const energy_arguments *a) {
  const structure *s = &y->atoms;
  int64_t count[CLB_ELEMENTS + 1] = {0};
  for (int64_t i = 0; i < s->n; i++) count[s->numbers[i]]++;
  printf("structure  %s: %lld atoms:", a->choice.structure, (long long)s->n);
  for (int z = 1; z <= CLB_ELEMENTS; z++)
    if (count[z]) printf(" %lld %s", (long long)count[z], clb_element_symbols[z]);
  const bool *p = s->periodic;
  printf("; periodic: %s%s%s%s", p[0] ? "a" : "", p[1] ? "b" : "", p[2] ? "c" : "",
         p[0] || p[1] || p[2] ? "" : "no");
  if (s->alternates)
    printf("; %lld atom%s at an alternate place %s left out", (long long)s->alternates,
           s->alternates > 1 ? "s" : "", s->alternates > 1 ? "are" : "is");
  putchar('\n');
  md_system_print_model(y);
  md_system_print_device(y, "device     %s: %s");
  const int64_t edges = md_system_edges(y);
  printf("edges      %lld, %.1f per atom\n", (long long)edges,
         s->n ? (double)edges / (double)s->n : 0);
}

static void print_forces(const md_system *y) {
  double sum = 0, largest = -1;
  int64_t at = 0;
  for (int64_t i = 0; i < y->atoms.n; i++) {
    const double *f = y->forces + 3 * i, square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2];
    sum += square;
    if (!(square > largest)) continue;
    largest = square;
    at = i;
  }
  printf("forces     norm %.6f eV/A", sqrt(sum));
  if (y->atoms.n)
    printf(", the largest %.6f eV/A on atom %lld (%s)", sqrt(largest), (long long)at + 1,
           clb_element_symbols[y->atoms.numbers[at]]);
  putchar('\n');
}

static void print_stress(const md_system *y) {
  const double(*s)[3] = y->stress;
  if (!y->has_stress) {
    puts("stress     none: there is no cell with a volume");
    return;
  }
  printf(
      "stress     xx %.6g, yy %.6g, zz %.6g, yz %.6g, xz %.6g, xy %.6g eV/A^3; pressure %.4g GPa\n",
      s[0][0], s[1][1], s[2][2], s[1][2], s[0][2], s[0][1],
      -(s[0][0] + s[1][1] + s[2][2]) / 3 * gpa_per_ev_a3);
}

static void print_profile(const energy_extras *e) {
  table t = {.n = 5, .titles = {"kernel", ">launches", ">ms", ">%", ">us each"}};
  double sum = 0;
  for (int i = 0; i < e->kinds; i++)
    sum += e->share[i].seconds, table_fit(&t, 0, e->share[i].kernel);
  table_fit(&t, 2, "12345.678");
  printf("profile    %.4g ms in kernels, each waited for, of %.4g ms in all\n", 1e3 * sum,
         1e3 * e->profiled);
  table_titles(&t);
  for (int i = 0; i < e->kinds; i++) {
    const energy_share *s = &e->share[i];
    char launches[24], ms[24], part[24], each[24];
    snprintf(launches, sizeof launches, "%lld", (long long)s->launches);
    snprintf(ms, sizeof ms, "%.3f", 1e3 * s->seconds);
    snprintf(part, sizeof part, "%.1f", 100 * s->seconds / sum);
    snprintf(each, sizeof each, "%.1f", 1e6 * s->seconds / (double)s->launches);
    table_line(&t, (const char *const[]){s->kernel, launches, ms, part, each});
  }
}

static void print(const md_system *y, const energy_arguments *a, const energy_times *t,
                  const energy_extras *e) {
  const double n = y->atoms.n ? (double)y->atoms.n : 1;
  print_system(y, a);
  printf("energy     %.6f eV, %.6f eV per atom\n", y->energy, y->energy / n);
  print_forces(y);
  print_stress(y);
  printf(
      "time       the first, compiling included, %.3g s; then at best %.4g ms, %.3g us per atom\n",
      t->first, 1e3 * t->min, 1e6 * t->min / n);
  if (a->compare)
    printf("splines    energy off by %.3g eV, forces by at most %.3g eV/A (largest component %.4g) "
           "from the exact radial networks\n",
           e->energy_error, e->force_error, e->largest_force);
  if (a->out) printf("written    %s\n", a->out);
  if (a->profile) print_profile(e);
}

int energy_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"repeat", 'r', "N", 0, "Time N more computations (default: 3)", 0},
      {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0},
      {"profile", PROFILE, NULL, 0, "Run once more, with every kernel timed individually", 0},
      {"estimate", ESTIMATE, NULL, 0,
       "Compute nothing: print the memory that these atoms take, as a whole and in blocks of "
       "atoms, "
       "and how many of their density fit into 16, 48 and 80 GB",
       0},
      {"frames", 'F', "SLICE", 0,
       "Compute frames of an extended XYZ file, and write them to --out: all, or START:STOP:STEP "
       "as "
       "of a list in Python, counted from 0 and, below 0, from the end",
       0},
      {"out", 'o', "FILE", 0, "Write atoms, energy, forces and stress as extended XYZ", 0},
      {"compare-networks", 'x', NULL, 0,
       "Compare with the radial networks that the splines replace", 0},
      {0}};
  static const struct argp_child children[] = {{&md_choice_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model MODEL --structure FILE",
      .doc = "Energy, forces and stress of the atoms in a file.\v"
             "eV and Angstrom. stress is dE/dstrain / volume; pressure is -trace / 3. Times are of "
             "whole computations, including the search for neighbours and all copies."};
  energy_arguments a = {0};
  parse_arguments(&argp, argc, argv, 0, &a);
  md_system y = {0};
  energy_times t = {0};
  energy_extras e = {0};
  const named_file files[] = {{"the model (--model)", a.choice.model, FILE_INPUT},
                              {"the structure (--structure)", a.choice.structure, FILE_INPUT},
                              {"the file of results (--out)", a.out, FILE_WHOLE}};
  bool good = outputs_ready(files, sizeof files / sizeof *files);
  if (a.estimate) {
    good = good && print_estimate(&y, &a.choice, a.json);
    md_system_close(&y);
    return good ? EXIT_GOOD : EXIT_FAILED;
  }
  if (a.frames) {
    frame_labels l = {0};
    good = good && frames_label(&y, &a.choice, a.out, &l);
    if (good) print_labels(&y, &a, &l);
    md_system_close(&y);
    return good ? EXIT_GOOD : EXIT_FAILED;
  }
  good = good && compute(&y, &a, &t);
  if (good && a.profile) good = profile(&y, &e);
  if (good && a.compare) good = compare_with_networks(&y, &a, &e);
  if (good && a.out)
    good = file_replace(a.out, frame_write, &(md_frame){.system = &y, .forces = true, .time = NAN});
  if (good && a.json) print_json(&y, &a, &t, &e);
  else if (good) print(&y, &a, &t, &e);
  md_system_close(&y);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
