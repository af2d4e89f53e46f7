/* tools/training/gradient.c - `clebsch gradient`: a loss of labelled structures, and its gradient
   by a model's parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/options.h"
#include "tools/common/output.h"
#include "tools/measure/timing.h"
#include "tools/training/labelled_batch.h"

typedef struct {
  md_choice choice;
  clb_loss loss;
  const char *out;
  const char **structures; /* [n] */
  int n;
  bool json, has_delta;
} gradient_arguments;

typedef struct {
  double loss, terms[LABELS], norm, seconds;
  double *gradient; /* [parameters] */
  int64_t parameters;
} gradient_found;

enum { LOSS = 300, ENERGY_WEIGHT, FORCE_WEIGHT, STRESS_WEIGHT, STRESS_UNIT, DELTA, FORCE_NORM };
static const char *const loss_names[] = {"mse", "mae", "huber"}, *const stress_units[] = {"eV",
                                                                                          "kbar"};
static const double stress_factors[] = {1, 1602.1766208};

static double factor(const struct argp_state *state, const char *option, const char *text) {
  return real_number(state, option, text, 0, 1e300);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  gradient_arguments *a = state->input;
  clb_loss *l = &a->loss;
  switch (key) {
    case 's':
    case ARGP_KEY_ARG: a->structures[a->n++] = arg; return 0;
    case 'o': a->out = arg; return 0;
    case 'j': a->json = true; return 0;
    case LOSS: l->function = name_among(state, "--loss", arg, loss_names, 3); return 0;
    case ENERGY_WEIGHT: l->energy = factor(state, "--energy-weight", arg); return 0;
    case FORCE_WEIGHT: l->forces = factor(state, "--force-weight", arg); return 0;
    case STRESS_WEIGHT: l->stress = factor(state, "--stress-weight", arg); return 0;
    case STRESS_UNIT:
      l->stress_unit = stress_factors[name_among(state, "--stress-unit", arg, stress_units, 2)];
      return 0;
    case DELTA:
      l->delta = real_number(state, "--huber-delta", arg, 1e-300, 1e300);
      a->has_delta = true;
      return 0;
    case FORCE_NORM: l->force_norm = 1; return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_END:
      if (!a->n) argp_error(state, "--structures is missing");
      if (!a->out) argp_error(state, "--out is missing");
      if (a->has_delta && l->function != CLB_LOSS_HUBER)
        argp_error(state, "--huber-delta is of --loss huber");
      if (a->choice.options.knots > 0)
        argp_error(state, "--knots is 0 here: radial networks are trained, not splines");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- computing ---- */

static bool compute(const md_system *y, const gradient_arguments *a, const labelled_batch *b,
                    gradient_found *g) {
  const double start = seconds_now();
  g->parameters = y->info.parameters;
  g->gradient = allocate((size_t)g->parameters, sizeof *g->gradient);
  const clb_gradient_results results = {
      .loss = &g->loss, .terms = g->terms, .gradient = g->gradient};
  if (clb_model_gradient(y->model, b->n, b->atoms, b->labels, &a->loss, &results))
    return warn("%s", clb_error(y->ctx)), false;
  for (int64_t i = 0; i < g->parameters; i++) g->norm += g->gradient[i] * g->gradient[i];
  g->norm = sqrt(g->norm);
  g->seconds = seconds_now() - start;
  return true;
}

/* Each tensor of the model's file under its own name. */
static bool write_gradient(const md_system *y, const gradient_arguments *a,
                           const gradient_found *g) {
  model *out = model_new(a->out, "clebsch gradient");
  clb_tensor_info t;
  for (int64_t i = 0; !clb_model_tensor(y->model, i, &t); i++)
    put_shaped(out, g->gradient + t.first, t.rank, t.shape, t.name);
  const bool good = model_write(a->out, out);
  model_free(out);
  return good;
}

/* ---- output ---- */

static void print_json(const md_system *y, const gradient_arguments *a, const labelled_batch *b,
                       const gradient_found *g) {
  json_t *o = md_system_described(y, &a->choice), *files = json_array(), *terms = json_object();
  for (int i = 0; i < a->n; i++) json_array_add(files, json_text(a->structures[i]));
  JSON_ADD(terms, {"energy", json_number(g->terms[LABEL_ENERGY])},
           {"forces", json_number(g->terms[LABEL_FORCES])},
           {"stress", json_number(g->terms[LABEL_STRESS])});
  JSON_ADD(o, {"structures", files}, {"frames", json_count(b->n)},
           {"atoms", json_count(b->n_atoms)}, {"seconds", json_number(g->seconds)},
           {"loss", json_number(g->loss)}, {"terms", terms},
           {"gradient_norm", json_number(g->norm)}, {"parameters", json_count(g->parameters)},
           {"out", json_text(a->out)});
  json_print(o);
}

static void print(const md_system *y, const gradient_arguments *a, const labelled_batch *b,
                  const gradient_found *g) {
  md_system_print_model(y);
  md_system_print_device(y, "device     %s: %s");
  printf("labels     %s%s: %lld frames, %lld atoms\n", a->structures[0],
         a->n > 1 ? " and others" : "", (long long)b->n, (long long)b->n_atoms);
  printf("loss       %.10g: %g times %.6g of energies, %g times %.6g of forces, %g times %.6g of "
         "stresses\n",
         g->loss, a->loss.energy, g->terms[LABEL_ENERGY], a->loss.forces, g->terms[LABEL_FORCES],
         a->loss.stress, g->terms[LABEL_STRESS]);
  printf("gradient   norm %.10g, of %lld parameters, in %.3g s\n", g->norm,
         (long long)g->parameters, g->seconds);
  printf("written    %s\n", a->out);
}

/* ---- the command ---- */

static bool run(md_system *y, const gradient_arguments *a, labelled_batch *b, gradient_found *g) {
  named_file *files = allocate((size_t)a->n + 2, sizeof *files);
  files[0] = (named_file){"the model (--model)", a->choice.model, FILE_INPUT};
  for (int i = 0; i < a->n; i++)
    files[1 + i] = (named_file){"the structures (--structures)", a->structures[i], FILE_INPUT};
  files[a->n + 1] = (named_file){"the gradient (--out)", a->out, FILE_WHOLE};
  bool good = outputs_ready(files, a->n + 2);
  free(files);
  good = good && md_system_open(y, &a->choice);
  for (int i = 0; i < a->n && good; i++)
    good = labelled_batch_read(b, y, a->structures[i], &a->choice.reading);
  good = good && labelled_batch_end(b) && compute(y, a, b, g) && write_gradient(y, a, g);
  if (good && a->json) print_json(y, a, b, g);
  else if (good) print(y, a, b, g);
  return good;
}

int gradient_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"structures", 's', "FILE", 0,
       "Labelled structures: all frames of extended XYZ, in one batch; more files may follow", 0},
      {"loss", LOSS, "NAME", 0, "mse (default), mae or huber", 0},
      {"energy-weight", ENERGY_WEIGHT, "X", 0, "Factor of the energies' term (default: 1)", 0},
      {"force-weight", FORCE_WEIGHT, "X", 0, "Factor of the forces' term (default: 1)", 0},
      {"stress-weight", STRESS_WEIGHT, "X", 0, "Factor of the stresses' term (default: 1)", 0},
      {"stress-unit", STRESS_UNIT, "UNIT", 0,
       "In which stresses differ in the loss: eV (default), of eV/A^3, or kbar", 0},
      {"huber-delta", DELTA, "X", 0,
       "Where a Huber loss becomes linear, in the units of each term (default: 0.01)", 0},
      {"force-norm", FORCE_NORM, NULL, 0,
       "The forces' term is the mean length of their differences", 0},
      {"out", 'o', "FILE", 0,
       "Write the gradient: safetensors, each tensor under its name in the model file, in F64", 0},
      {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0},
      {0}};
  static const struct argp_child children[] = {{&md_model_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model FILE --structures FILE [FILE...] --out FILE",
      .doc = "A loss of labelled structures, and its gradient by the model's parameters.\v"
             "The loss is a sum of three terms, each the mean of a function of what is predicted "
             "minus the label: of energies per atom, of components of forces, of components of "
             "stresses. What has no label adds 0 to a mean, but counts in it; config_weight is a "
             "frame's factor in all terms. Models are computed with their networks (--knots 0)."};
  gradient_arguments a = {.structures = allocate((size_t)argc, sizeof(char *)),
                          .loss = {.delta = 0.01, .energy = 1, .forces = 1, .stress = 1},
                          .choice = {.reading.labels = true}};
  gradient_found g = {0};
  labelled_batch b = {0};
  md_system y = {0};
  parse_arguments(&argp, argc, argv, 0, &a);
  a.choice.options.knots = CLB_NO_KNOTS;
  a.choice.options.trains = 1;
  const bool good = run(&y, &a, &b, &g);
  labelled_batch_free(&b);
  md_system_close(&y);
  free(g.gradient);
  free(a.structures);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
