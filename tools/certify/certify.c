/* tools/certify/certify.c - `clebsch certify`: whether energies, forces and stress of a model obey
   the laws that they must, at the atoms of a file. */
#include <stdlib.h>

#include "tools/certify/checks.h"
#include "tools/common/output.h"
#include "tools/dynamics/md_system.h"
#include "tools/measure/timing.h"

typedef struct {
  md_choice choice;
  bool json;
} certify_arguments;

typedef struct {
  md_system fast, exact;
} systems;

static error_t parse(int key, char *arg, struct argp_state *state) {
  certify_arguments *a = state->input;
  switch (key) {
    case 'j': a->json = true; return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_ARG: {
      const char **to = !a->choice.model       ? &a->choice.model
                        : !a->choice.structure ? &a->choice.structure
                                               : NULL;
      if (!to) argp_error(state, "'%s' is one argument too many", arg);
      else *to = arg;
      return 0;
    }
    case ARGP_KEY_END:
      if (!a->choice.structure) argp_error(state, "--structure is missing");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static bool compute(void *user, bool exact, const clb_model_atoms *atoms,
                    const clb_model_results *results) {
  systems *s = user;
  md_system *y = exact ? &s->exact : &s->fast;
  const clb_status status = clb_model_compute(y->model, atoms, results);
  if (status) warn("%s: %s", s->fast.from, clb_error(y->ctx));
  return !status;
}

/* ---- what it prints ---- */

static int holding(const certify_line *lines) {
  int n = 0;
  for (int i = 0; i < CERTIFY_LINES; i++) n += certify_holds(&lines[i]);
  return n;
}

static void print(const systems *s, const certify_line *lines, double seconds) {
  md_system_print_model(&s->fast);
  md_system_print_device(&s->fast, "device     %s: %s");
  for (int i = 0; i < CERTIFY_LINES; i++) {
    const certify_line *l = &lines[i];
    if (l->skipped) printf("%-12s%-46s%s\n", l->name, l->law, l->skipped);
    else
      printf("%-12s%-46s%8.1e of %-7.1g %s\n", l->name, l->law, l->error, l->limit,
             certify_holds(l) ? "holds" : "BROKEN");
  }
  const int held = holding(lines);
  if (held == CERTIFY_LINES) printf("verdict     all laws hold, in %.3g s\n", seconds);
  else printf("verdict     %d of %d laws are BROKEN\n", CERTIFY_LINES - held, CERTIFY_LINES);
}

static void print_json(const systems *s, const md_choice *choice, const certify_line *lines,
                       double seconds) {
  json_t *o = md_system_described(&s->fast, choice), *laws = json_array();
  for (int i = 0; i < CERTIFY_LINES; i++) {
    const certify_line *l = &lines[i];
    json_t *law = json_object();
    JSON_ADD(law, {"name", json_text(l->name)}, {"law", json_text(l->law)},
             {"error", l->skipped ? json_null() : json_number(l->error)},
             {"limit", l->skipped ? json_null() : json_number(l->limit)},
             {"skipped", l->skipped ? json_text(l->skipped) : json_null()},
             {"holds", json_boolean(certify_holds(l))});
    json_array_append_new(laws, law);
  }
  JSON_ADD(o, {"laws", laws}, {"holds", json_boolean(holding(lines) == CERTIFY_LINES)},
           {"seconds", json_number(seconds)});
  json_print(o);
}

static bool start(systems *s, const md_choice *choice) {
  md_choice exact = *choice;
  exact.options.dtype = CLB_F64;
  exact.options.knots = CLB_NO_KNOTS;
  return md_system_start(&s->fast, choice) && md_system_open(&s->exact, &exact);
}

int certify_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0}, {0}};
  static const struct argp_child children[] = {{&md_choice_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "MODEL STRUCTURE",
      .doc = "Whether energies, forces and stress of a model obey the laws that they must, at the "
             "atoms of a file.\v"
             "Derivatives and symmetries are checked in f64 with radial networks, at the atoms "
             "displaced by some 0.03 Angstrom; dynamics (200 steps of 0.25 fs from 300 K), equal "
             "bits, and how near it is to f64, as the options say. A law is broken where the "
             "error, relative to what the law is about, exceeds the limit beside it. The exit "
             "status is 1 if one is."};
  certify_arguments a = {.json = false};
  parse_arguments(&argp, argc, argv, 0, &a);
  systems s = {.fast = {.name = NULL}};
  certify_line lines[CERTIFY_LINES];
  const named_file files[] = {{"the model (--model)", a.choice.model, FILE_INPUT},
                              {"the structure (--structure)", a.choice.structure, FILE_INPUT}};
  bool good = outputs_ready(files, sizeof files / sizeof *files) && start(&s, &a.choice);
  if (good) {
    const double begin = seconds_now();
    const structure *atoms = &s.fast.atoms;
    const clb_model_atoms given = md_system_atoms(&s.fast, NULL);
    double *masses = allocate((size_t)atoms->n, sizeof *masses);
    for (int64_t i = 0; i < atoms->n; i++) masses[i] = atomic_weights[atoms->numbers[i]];
    good = certify(&(certify_engine){compute, &s, s.exact.info.parity}, &given, masses, lines);
    const double seconds = seconds_now() - begin;
    if (good && a.json) print_json(&s, &a.choice, lines, seconds);
    if (good && !a.json) print(&s, lines, seconds);
    good = good && holding(lines) == CERTIFY_LINES;
    free(masses);
  }
  md_system_close(&s.exact);
  md_system_close(&s.fast);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
