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
#include "tools/training/loss_options.h"

typedef struct {
  md_choice choice;
  loss_choice loss;
  const char *out;
  const char **structures; /* [n] */
  int n;
  bool json;
} gradient_arguments;

typedef struct {
  double loss, terms[LABELS], norm, seconds;
  double *gradient; /* [parameters] */
  int64_t parameters;
} gradient_found;

static error_t parse(int key, char *arg, struct argp_state *state) {
  gradient_arguments *a = state->input;
  switch (key) {
    case 's':
    case ARGP_KEY_ARG: a->structures[a->n++] = arg; return 0;
    case 'o': a->out = arg; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &a->choice, state->child_inputs[1] = &a->loss;
      return 0;
    case ARGP_KEY_END:
      if (!a->n) argp_error(state, "--structures is missing");
      if (!a->out) argp_error(state, "--out is missing");
      loss_check(state, &a->loss);
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
  if (clb_model_gradient(y->model, b->n, b->atoms, b->labels, &a->loss.loss, &results))
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
  const clb_loss *l = &a->loss.loss;
  md_system_print_model(y);
  md_system_print_device(y, "device     %s: %s");
  printf("labels     %s%s: %lld frames, %lld atoms\n", a->structures[0],
         a->n > 1 ? " and others" : "", (long long)b->n, (long long)b->n_atoms);
  printf("loss       %.10g: %g times %.6g of energies, %g times %.6g of forces, %g times %.6g of "
         "stresses\n",
         g->loss, l->energy, g->terms[LABEL_ENERGY], l->forces, g->terms[LABEL_FORCES], l->stress,
         g->terms[LABEL_STRESS]);
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
      {"out", 'o', "FILE", 0,
       "Write the gradient: safetensors, each tensor under its name in the model file, in F64", 0},
      {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0},
      {0}};
  static const struct argp_child children[] = {
      {&md_model_argp, 0, NULL, 0}, {&loss_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model MODEL --structures FILE [FILE...] --out FILE",
      .doc = "A loss of labelled structures, and its gradient by the model's parameters.\v"
             "The loss is a sum of three terms, each the mean of a function of what is predicted "
             "minus the label: of energies per atom, of components of forces, of components of "
             "stresses. What has no label adds 0 to a mean, but counts in it; config_weight is a "
             "frame's factor in all terms. Models are computed with their networks (--knots 0)."};
  gradient_arguments a = {.structures = allocate((size_t)argc, sizeof(char *)),
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
