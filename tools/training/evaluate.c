/* tools/training/evaluate.c - `clebsch evaluate`: how far a model is from labelled structures. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/energy/all_frames.h"
#include "tools/measure/timing.h"
#include "tools/training/evaluate_files.h"
#include "tools/training/label_units.h"

typedef struct {
  md_choice choice;
  const char *csv, *plot;
  const char **structures; /* [n] */
  int n;
  int64_t together;
  bool json;
} evaluate_arguments;

/* What is gathered from frames. */
typedef struct {
  error_table errors;
  label_fits fits;
  parity_sample *samples; /* [LABELS] */
  FILE *rows;             /* NULL: none are written */
  double seconds;
  char doubts[LABELS][LABEL_UNITS_TEXT]; /* "": none */
} evaluation;

enum { TOGETHER = 256 };

static error_t parse(int key, char *arg, struct argp_state *state) {
  evaluate_arguments *a = state->input;
  switch (key) {
    case 's':
    case ARGP_KEY_ARG: a->structures[a->n++] = arg; return 0;
    case 'c': a->csv = arg; return 0;
    case 'p': a->plot = arg; return 0;
    case 'j': a->json = true; return 0;
    case TOGETHER:
      a->together = whole_number(state, "--atoms-at-once", arg, 1, INT32_MAX);
      return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_END:
      if (!a->n) argp_error(state, "--structures is missing");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- computing ---- */

static bool use_frame(const md_system *frame, void *user) {
  evaluation *e = user;
  labelled_frame l;
  label_frame_pairs(frame, &l);
  error_table_add(&e->errors, frame, &l);
  label_fits_add(&e->fits, frame, &l);
  for (int kind = 0; kind < LABELS; kind++) parity_sample_add(&e->samples[kind], &l.of[kind]);
  if (!e->rows) return true;
  frame_row(e->rows, frame, &l);
  if (!ferror(e->rows)) return true;
  warn("%s: the temporary file of rows could not be written: %s", frame->from, strerror(errno));
  return false;
}

static bool evaluate_all(md_system *y, const evaluate_arguments *a, frame_file *files,
                         evaluation *e) {
  const frames_work frames = {a->together, use_frame, e};
  bool good = md_system_open(y, &a->choice);
  const double start = seconds_now();
  for (int i = 0; i < a->n && good; i++) good = frames_compute(y, &files[i], &frames);
  e->seconds = seconds_now() - start;
  if (good && e->errors.all.unlabelled == e->errors.all.frames) {
    warn_without_labels(a->structures[0]);
    good = false;
  }
  for (int kind = 0; kind < LABELS && good; kind++)
    if (label_units_wrong(&e->fits, kind, e->doubts[kind])) warn("%s", e->doubts[kind]);
  return good;
}

/* ---- for scripts ---- */

static json_t *error_json(const label_error *e) {
  json_t *o = json_object();
  JSON_ADD(o, {"numbers", json_count(e->n)}, {"mae", json_number(label_error_mean(e))},
           {"rmse", json_number(label_error_root_mean(e))});
  return o;
}

static json_t *type_json(const type_errors *t) {
  json_t *o = json_object();
  JSON_ADD(o, {"config_type", t->type ? json_text(t->type) : json_null()},
           {"frames", json_count(t->frames)}, {"atoms", json_count(t->atoms)},
           {"without_labels", json_count(t->unlabelled)},
           {"energy_per_atom", error_json(&t->of[LABEL_ENERGY])},
           {"forces", error_json(&t->of[LABEL_FORCES])},
           {"stress", error_json(&t->of[LABEL_STRESS])});
  return o;
}

static void print_json(const md_system *y, const evaluate_arguments *a, const evaluation *e) {
  json_t *o = md_system_described(y, &a->choice), *files = json_array(), *types = json_array(),
         *doubts = json_array();
  for (int i = 0; i < a->n; i++) json_array_add(files, json_text(a->structures[i]));
  for (int i = 0; i < e->errors.n; i++) json_array_add(types, type_json(&e->errors.types[i]));
  for (int kind = 0; kind < LABELS; kind++)
    if (*e->doubts[kind]) json_array_add(doubts, json_text(e->doubts[kind]));
  JSON_ADD(o, {"structures", files}, {"seconds", json_number(e->seconds)},
           {"all", type_json(&e->errors.all)}, {"types", types}, {"warnings", doubts});
  json_print(o);
}

/* ---- for people ---- */

enum { CELLS = 10, CELL_BYTES = 24 };

/* "12.3" of a number of eV, in thousandths; "" where it is not known. */
static void cell_of(char cell[CELL_BYTES], double x) {
  cell[0] = 0;
  if (isfinite(x)) snprintf(cell, CELL_BYTES, "%.4g", x);
}

static void print_type(const table *t, const char *name, const type_errors *e) {
  static const struct {
    label_kind kind;
    double unit;
  } columns[] = {{LABEL_ENERGY, 1e3},
                 {LABEL_FORCES, 1e3},
                 {LABEL_STRESS, 1e3},
                 {LABEL_STRESS, 10 * gpa_per_ev_a3}};
  char text[CELLS][CELL_BYTES];
  const char *cells[CELLS] = {name, text[1]};
  snprintf(text[1], CELL_BYTES, "%lld", (long long)e->frames);
  for (int i = 0; i < 4; i++) {
    const label_error *of = &e->of[columns[i].kind];
    cell_of(text[2 + 2 * i], columns[i].unit * label_error_mean(of));
    cell_of(text[3 + 2 * i], columns[i].unit * label_error_root_mean(of));
    cells[2 + 2 * i] = text[2 + 2 * i];
    cells[3 + 2 * i] = text[3 + 2 * i];
  }
  table_line(t, cells);
}

static void print(const md_system *y, const evaluate_arguments *a, const evaluation *e) {
  const error_table *errors = &e->errors;
  table t = {.n = CELLS,
             .titles = {"config_type", ">frames", ">E: MAE", ">RMSE", ">F: MAE", ">RMSE", ">S: MAE",
                        ">RMSE", ">kbar: MAE", ">RMSE"}};
  md_system_print_model(y);
  md_system_print_device(y, "device     %s: %s");
  printf("labels     %s%s: %lld frames, %lld atoms", a->structures[0],
         a->n > 1 ? " and others" : "", (long long)errors->all.frames,
         (long long)errors->all.atoms);
  if (errors->all.unlabelled)
    printf("; %lld frame%s without labels", (long long)errors->all.unlabelled,
           errors->all.unlabelled > 1 ? "s" : "");
  printf("\ntime       %.3g s\n", e->seconds);
  puts("errors     E: energy in meV/atom, F: forces in meV/A, S: stress in meV/A^3 and kbar");
  for (int i = 0; i < errors->n; i++)
    if (errors->types[i].type) table_fit(&t, 0, errors->types[i].type);
  for (int i = 2; i < CELLS; i++) table_fit(&t, i, "1234.5");
  table_titles(&t);
  for (int i = 0; i < errors->n && errors->n > 1; i++)
    print_type(&t, errors->types[i].type ? errors->types[i].type : "(none)", &errors->types[i]);
  print_type(&t, "all", &errors->all);
  if (a->csv) printf("written    %s\n", a->csv);
  if (a->plot) printf("written    %s\n", a->plot);
}

/* ---- the command ---- */

static bool write_plot(const md_system *y, const evaluate_arguments *a, evaluation *e) {
  const char *slash = strrchr(y->name, '/');
  char title[160], subtitle[320];
  snprintf(title, sizeof title, "%s beside its labels", slash ? slash + 1 : y->name);
  snprintf(subtitle, sizeof subtitle, "%lld frames of %s%s", (long long)e->errors.all.frames,
           a->structures[0], a->n > 1 ? " and others" : "");
  return parity_samples_write(a->plot, e->samples, &e->errors, title, subtitle);
}

/* Checks and opens all files, before any work. */
static bool open_files(const evaluate_arguments *a, frame_file *files) {
  named_file *all = allocate((size_t)a->n + 3, sizeof *all);
  all[0] = (named_file){"the model (--model)", a->choice.model, FILE_INPUT};
  for (int i = 0; i < a->n; i++)
    all[1 + i] = (named_file){"the structures (--structures)", a->structures[i], FILE_INPUT};
  all[a->n + 1] = (named_file){"the table (--csv)", a->csv, FILE_WHOLE};
  all[a->n + 2] = (named_file){"the picture (--plot)", a->plot, FILE_WHOLE};
  bool good = outputs_ready(all, a->n + 3);
  free(all);
  for (int i = 0; i < a->n && good; i++)
    good = frames_open(&files[i], a->structures[i], &a->choice.reading);
  return good;
}

static bool run(md_system *y, const evaluate_arguments *a, evaluation *e) {
  frame_file *files = allocate((size_t)a->n, sizeof *files);
  bool good = open_files(a, files);
  if (good && a->csv && !(e->rows = tmpfile())) {
    warn("no temporary file of rows: %s", strerror(errno));
    good = false;
  }
  if (e->rows) frame_row_titles(e->rows);
  good = good && evaluate_all(y, a, files, e);
  for (int i = 0; i < a->n; i++) frames_close(&files[i]);
  free(files);
  if (good && a->csv) good = file_replace(a->csv, file_copy, &e->rows);
  if (good && a->plot) good = write_plot(y, a, e);
  if (good && a->json) print_json(y, a, e);
  else if (good) print(y, a, e);
  return good;
}

int evaluate_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"structures", 's', "FILE", 0,
       "Labelled structures: extended XYZ, of which all frames are computed; more files may follow",
       0},
      {"atoms-at-once", TOGETHER, "N", 0,
       "Compute structures together up to N atoms (default: 32768)", 0},
      {"csv", 'c', "FILE", 0, "Write a line for each frame: its energies and errors", 0},
      {"plot", 'p', "FILE", 0, "Write predictions over labels as SVG", 0},
      {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0},
      {0}};
  static const struct argp_child children[] = {{&md_model_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model MODEL --structures FILE [FILE...]",
      .doc = "How far a model is from labelled structures: mean absolute and root mean square "
             "errors of energies per atom, forces and stresses, by config_type.\v"
             "Labels are energy, forces, stress or virial of the frames, also with REF_ before "
             "them, in eV and Angstrom. Errors are means over frames, over components of forces "
             "and over the nine of a stress, of those that have the label. Labels that seem to "
             "have another unit, sign or order are told on standard error."};
  evaluate_arguments a = {.structures = allocate((size_t)argc, sizeof(char *)),
                          .choice.reading.labels = true};
  evaluation e = {.samples = allocate(LABELS, sizeof(parity_sample))};
  md_system y = {0};
  parse_arguments(&argp, argc, argv, 0, &a);
  const bool good = run(&y, &a, &e);
  if (e.rows) fclose(e.rows);
  md_system_close(&y);
  error_table_free(&e.errors);
  free(e.samples);
  free(a.structures);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
