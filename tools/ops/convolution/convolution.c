/* tools/ops/convolution/convolution.c - the graph convolution as the command sees it. */
#include "tools/ops/convolution/convolution_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ops/calls.h"
#include "tools/ops/convolution/convolution_data.h"
#include "tools/ops/graphs.h"

/* ---- options ---- */

enum { KEY_GRAPH = 340, KEY_WEIGHTS, KEY_VECTORS, KEY_ATOMIC, KEY_WORKSPACE };

static void choose_graph(convolution_problem *p, const struct argp_state *state, const char *name) {
  p->graph = name;
  if (!strcmp(name, "help")) fputs(graph_names_help, stdout), exit(EXIT_GOOD);
  if (!graph_known(name))
    argp_error(state, "there is no graph '%s'; there are:\n%s", name, graph_names_help);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  convolution_problem *p = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &p->product;
      p->graph = "carbon";
      return 0;
    case KEY_GRAPH: choose_graph(p, state, arg); return 0;
    case KEY_WEIGHTS:
      p->table = !strcmp(arg, "table");
      if (!p->table && strcmp(arg, "edge"))
        argp_error(state, "--weights is edge or table, not '%s'", arg);
      return 0;
    case KEY_VECTORS: p->vectors = true; return 0;
    case KEY_ATOMIC: p->atomics = true; return 0;
    case KEY_WORKSPACE:
      p->workspace = whole_number(state, "--workspace", arg, 1, INT64_C(1) << 50);
      return 0;
    case ARGP_KEY_END:
      if (p->product.desc.shared_weights && p->table)
        argp_error(
            state,
            "--shared and --weights table: weights are one row, or those of each edge's length");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"graph", KEY_GRAPH, "NAME", 0,
     "carbon (default), carbon:N, spike, dhfr-water, water-box, hub, even, flashtp, or "
     "file:PATH,r=A: an atomic structure and a cutoff in Angstrom. --graph help tells more",
     0},
    {"weights", KEY_WEIGHTS, "WHERE", 0,
     "Given per edge (default), or from a table of splines of the edge's length", 0},
    {"vectors", KEY_VECTORS, NULL, 0,
     "Compute y, and the lengths at which a table is read, from the vectors of edges; gradients "
     "are then by vectors",
     0},
    {"atomics", KEY_ATOMIC, NULL, 0, "Sum gradients of x with atomics", 0},
    {"workspace", KEY_WORKSPACE, "BYTES", 0,
     "Limit for a pass (default: enough for the gradients of x of all edges at once)", 0},
    {0}};
static const struct argp_child children[] = {{&tensor_problem_argp, 0, "Its tensor product:", 2},
                                             {0}};
static const struct argp argp = {.options = options, .parser = parse, .children = children};

static void print(const void *problem, char *out, size_t size) {
  const convolution_problem *p = problem;
  tensor_problem_print(&p->product, out, size);
  size_t used = strlen(out);
  used += (size_t)snprintf(
      out + used, size - used, ", %s%s%s%s", p->graph ? p->graph : made_graph_names[p->made],
      p->table ? ", table" : "", p->vectors ? ", vectors" : "", p->atomics ? ", atomic" : "");
  if (p->scale != 0 && used < size)
    used += (size_t)snprintf(out + used, size - used, ", scale=%g", p->scale);
  if (p->workspace == MIN_WORKSPACE && used < size)
    snprintf(out + used, size - used, ", minimum workspace");
  if (p->workspace > 0 && used < size)
    snprintf(out + used, size - used, ", workspace=%lld", (long long)p->workspace);
}

/* ---- calls ---- */

static double growth(const void *problem) {
  const convolution_problem *p = problem;
  return p->table && !p->knots ? 6 : 1; /* a length is a position on a grid of KNOTS points, so its
                                           rounding matters; on other grids the scale says how */
}

static clb_status create(clb_context *ctx, const tool_kernel *kernel, unsigned passes,
                         clb_op **op) {
  const convolution_problem *p = kernel->problem;
  tensor_desc *d;
  clb_status status = tensor_problem_describe(ctx, &p->product, &d);
  clb_convolution_desc desc = {
      .product = d->desc, .scale = p->scale, .atomics = p->atomics, .vectors = p->vectors};
  const reference_grid grid = convolution_grid(p);
  desc.normalization = p->normalization;
  desc.knots = grid.knots, desc.first_knot = grid.first, desc.last_knot = grid.last;
  desc.break_at = p->break_at;
  SET_TYPES(desc.product, kernel, passes);
  if (!status) status = clb_convolution_create(ctx, &desc, op);
  free(d);
  return status;
}

const tool_op tool_op_convolution = {
    .name = "convolution",
    .options = &argp,
    .problem_bytes = sizeof(convolution_problem),
    .print = print,
    .passes = USUAL_PASSES,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
    .signature = &clb_signature_tensor_product,
    .growth = growth,
    .create = create,
    .on_graph = &convolution_on_graph,
    .row = "edge",
};
