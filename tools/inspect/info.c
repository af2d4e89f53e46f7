/* tools/inspect/info.c - `clebsch info`: what a model is, and the memory that it takes. */
#include <stdio.h>

#include "tools/dynamics/md_system.h"

typedef struct {
  md_choice choice;
  bool json;
} info_arguments;

static error_t parse(int key, char *arg, struct argp_state *state) {
  info_arguments *a = state->input;
  switch (key) {
    case 'j': a->json = true; return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_ARG:
      if (a->choice.model) argp_error(state, "'%s' is one argument too many", arg);
      a->choice.model = arg;
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static void print(const clb_model_info *i, const char *name, const char *device,
                  const char *dtype) {
  printf("model      %s: %s, %lld parameters\n", name, i->architecture, (long long)i->parameters);
  printf("layers     %d, l <= %d, r_max %g A\n", i->n_layers, i->l_max, i->r_max);
  printf("elements   %d:", i->n_species);
  int at = 16;
  for (int s = 0; s < i->n_species; s++) {
    if (at > TEXT_WIDTH - 4) at = printf("\n          ") - 1;
    at += printf(" %s", i->symbols[s]);
  }
  if (i->charges[0] != i->charges[1]) printf("\ncharge     %d to %d", i->charges[0], i->charges[1]);
  if (i->spins[0] != i->spins[1])
    printf("\nspin       multiplicity %d to %d", i->spins[0], i->spins[1]);
  printf("\nmemory     %llu bytes an atom, %llu an edge, in %s on %s\n",
         (unsigned long long)i->bytes_per_atom, (unsigned long long)i->bytes_per_edge, dtype,
         device);
}

static void print_json(const clb_model_info *i, const char *name, const char *device,
                       const char *dtype) {
  json_t *o = json_object(), *elements = json_array();
  for (int s = 0; s < i->n_species; s++) json_array_add(elements, json_text(i->symbols[s]));
  JSON_ADD(o, {"clebsch", json_text(CLB_VERSION)}, {"model", json_text(name)},
           {"architecture", json_text(i->architecture)}, {"elements", elements},
           {"layers", json_count(i->n_layers)}, {"l_max", json_count(i->l_max)},
           {"r_max", json_number(i->r_max)}, {"parameters", json_count(i->parameters)},
           {"device", json_text(device)}, {"dtype", json_text(dtype)},
           {"bytes_per_atom", json_count((int64_t)i->bytes_per_atom)},
           {"bytes_per_edge", json_count((int64_t)i->bytes_per_edge)});
  json_print(o);
}

int info_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0}, {0}};
  static const struct argp_child children[] = {{&md_model_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "MODEL",
      .doc = "What a model is: architecture, elements, layers, and the memory of a device that it "
             "takes for each atom and edge.\v"
             "r_max is the cutoff; l the largest degree of its features."};
  info_arguments a = {0};
  parse_arguments(&argp, argc, argv, 0, &a);
  md_system y = {0};
  const bool good = md_system_open(&y, &a.choice);
  if (good)
    (a.json ? print_json : print)(&y.info, y.name, y.device.name,
                                  dtype_names[a.choice.options.dtype]);
  md_system_close(&y);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
