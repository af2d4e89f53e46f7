/* tools/cli/request.c - the arguments of `source` and `bench`: an op, its problem, passes, dtypes,
   devices. */
#include "tools/cli/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/text.h"

typedef struct {
  request *request;
  void *own;
} inputs;

enum { OWN, DEVICES, KERNELS, PROBLEM, CHILDREN };

static error_t parse(int key, char *arg, struct argp_state *state) {
  inputs *in = state->input;
  request *r = in->request;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[OWN] = in->own;
      state->child_inputs[DEVICES] = &r->devices;
      state->child_inputs[KERNELS] = &r->kernels;
      if (r->problem) state->child_inputs[PROBLEM] = r->problem;
      return 0;
    case ARGP_KEY_ARG:
      if (r->op) argp_error(state, "'%s' is one argument too many", arg);
      r->op = wanted_op(state, arg);
      return 0;
    case ARGP_KEY_END:
      if (!r->op)
        argp_error(state, "name an op, as in: %s spherical_harmonics --lmax 4", state->name);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* Appends the list of ops to the help if no op is named. */
static char *complete_help(int key, const char *text, void *input) {
  if (key != ARGP_KEY_HELP_EXTRA) return (char *)text;
  const inputs *in = input;
  if (in && in->request->problem) return NULL;
  clb_text t = {0};
  clb_text_add(&t, "OP is one of ");
  for (int i = 0; i < TOOL_OPS; i++) clb_text_add(&t, "%s%s", i ? ", " : "", tool_ops[i]->name);
  clb_text_add(&t, ". OP --help shows the options of its problem.");
  if (t.failed) fatal("out of memory");
  return t.s; /* argp frees it */
}

void request_parse(request *r, int argc, char **argv, const struct argp *own_argp, void *own,
                   const char *doc) {
  const tool_op *op =
      op_among(argc, argv); /* it determines the options; the parser then sees the name again */
  struct argp_child children[CHILDREN + 1] = {[OWN] = {own_argp, 0, NULL, 0},
                                              [DEVICES] = {&device_argp, 0, NULL, 0},
                                              [KERNELS] = {&kernel_argp, 0, NULL, 0}};
  char header[96];
  *r = (request){.op = NULL};
  if (op) {
    r->problem = allocate(1, op->problem_bytes);
    snprintf(header, sizeof header, "The problem of %s:", op->name);
    children[PROBLEM] = (struct argp_child){op->options, 0, header, 1};
  }
  struct argp argp = {.parser = parse,
                      .children = children,
                      .args_doc = "OP",
                      .doc = doc,
                      .help_filter = complete_help};
  inputs in = {r, own};
  parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, &in);
  for (int pass = 0; pass < PASSES; pass++)
    if (r->kernels.passes >> pass & ~r->op->passes >> pass & 1) {
      warn("%s has no %s", r->op->name, pass_names[pass]);
      exit(EXIT_USAGE);
    }
  if (!r->kernels.dtypes) r->kernels.dtypes = 1u << CLB_F32;
}

void request_free(request *r) {
  free(r->problem);
  r->problem = NULL;
}
