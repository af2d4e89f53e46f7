/* tools/ops/symmetric_contraction.c - the symmetric contraction as the command sees it. Weights of
   all species are one row. */
#include "tools/ops/calls.h"
#include "tools/reference/reference_symmetric_contraction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEGREES = 5 };

/* A problem is the part of the description that is not in tool_kernel; it owns its degrees if it
   comes from options. */
typedef struct {
  clb_symmetric_contraction_desc desc;
  int degrees[MAX_DEGREES];
} parsed_problem;

/* ---- options ---- */

/* Product bases of MACE's models, ell = 3, correlation 3. */
static const struct {
  const char *name;
  int channels, most; /* to l = 0 ... most */
} standard[] = {{"mace-small", 128, 0}, {"mace-medium", 128, 1}, {"mace-large", 128, 2}};
enum { STANDARD = sizeof standard / sizeof *standard };

static void choose_degrees(parsed_problem *p, int most) {
  p->desc.n_degrees = most + 1;
  for (int l = 0; l <= most; l++) p->degrees[l] = l;
}

static void choose_standard(parsed_problem *p, const struct argp_state *state, const char *name) {
  for (int i = 0; i < STANDARD; i++)
    if (!strcmp(name, standard[i].name)) {
      p->desc.ell = p->desc.correlation = 3;
      p->desc.channels = standard[i].channels;
      choose_degrees(p, standard[i].most);
      return;
    }
  argp_error(state, "--problem is one of mace-small, mace-medium, mace-large, not '%s'", name);
}

static void add_degrees(parsed_problem *p, struct argp_state *state, char *list) {
  p->desc.n_degrees = 0;
  for (char *next = list; next;) {
    int l = (int)whole_number(state, "each of --degrees", strsep(&next, ","), 0, MAX_DEGREES - 1);
    for (int i = 0; i < p->desc.n_degrees; i++)
      if (p->degrees[i] == l) argp_error(state, "--degrees: %d is there twice", l);
    p->degrees[p->desc.n_degrees++] = l;
  }
}

enum {
  KEY_PROBLEM = 300,
  KEY_ELL,
  KEY_CORRELATION,
  KEY_DEGREES,
  KEY_CHANNELS,
  KEY_SPECIES,
  KEY_LAYOUT
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  parsed_problem *p = state->input;
  clb_symmetric_contraction_desc *d = &p->desc;
  switch (key) {
    case ARGP_KEY_INIT:
      d->degrees = p->degrees;
      d->n_species = 10;
      d->layout_x = d->layout_z = CLB_IR_MUL;
      choose_standard(p, state, "mace-medium");
      return 0;
    case KEY_PROBLEM: choose_standard(p, state, arg); return 0;
    case KEY_ELL: d->ell = (int)whole_number(state, "--ell", arg, 0, 4); return 0;
    case KEY_CORRELATION:
      d->correlation = (int)whole_number(state, "--correlation", arg, 1, 4);
      return 0;
    case KEY_DEGREES: add_degrees(p, state, arg); return 0;
    case KEY_CHANNELS:
      d->channels = (int)whole_number(state, "--channels", arg, 1, 1 << 16);
      return 0;
    case KEY_SPECIES: d->n_species = (int)whole_number(state, "--species", arg, 1, 1000); return 0;
    case KEY_LAYOUT:
      d->layout_x = d->layout_z =
          (clb_layout)name_among(state, "--layout", arg, layout_names, LAYOUT_NAMES);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"problem", KEY_PROBLEM, "NAME", 0,
     "mace-medium (default), mace-small, mace-large: 128 channels to l = 0 ... 1, 0, 2; options "
     "after it change it",
     0},
    {"ell", KEY_ELL, "L", 0, "Degrees of x: 0 ... L", 0},
    {"correlation", KEY_CORRELATION, "NU", 0, "The highest order, 1 ... 4", 0},
    {"degrees", KEY_DEGREES, "LIST", 0, "Degrees of z, as 0,2", 0},
    {"channels", KEY_CHANNELS, "K", 0, "Channels", 0},
    {"species", KEY_SPECIES, "N", 0, "Species that have weights (default: 10)", 0},
    {"layout", KEY_LAYOUT, "NAME", 0,
     "ir_mul (default: channels side by side), mul_ir (e3nn's) or by_channel (MACE's: the values "
     "of a "
     "channel side by side)",
     0},
    {0}};
static const struct argp argp = {.options = options, .parser = parse};

static void print(const void *problem, char *out, size_t size) {
  const clb_symmetric_contraction_desc *d = problem;
  size_t used = (size_t)snprintf(out, size, "ell=%d nu=%d l=", d->ell, d->correlation);
  for (int i = 0; i < d->n_degrees && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%d", i ? "," : "", d->degrees[i]);
  if (used < size)
    snprintf(out + used, size - used, " %d channels, %d species %s", d->channels, d->n_species,
             layout_names[d->layout_x]);
}

/* ---- the tensors of paths ---- */

/* The reference's and the library's meaning of a weight must be the same tensor, which the library
   writes; tests compare these with MACE's. */
static reference_contraction *make_reference(const clb_symmetric_contraction_desc *d) {
  clb_context *ctx = NULL;
  reference_contraction *r = reference_contraction_create(d);
  clb_status s = r ? clb_context_create("cpu:interpreter", &ctx) : CLB_ERROR_MEMORY;
  for (int out = 0; out < d->n_degrees; out++)
    for (int nu = 1; nu <= d->correlation && !s; nu++) {
      clb_symmetric_paths paths;
      size_t size = (size_t)(2 * d->degrees[out] + 1);
      for (int i = 0; i < nu; i++) size *= (size_t)((d->ell + 1) * (d->ell + 1));
      double *u = allocate(size, sizeof *u);
      s = clb_symmetric_contraction_paths(ctx, d, d->degrees[out], nu, &paths);
      for (int p = paths.first; p < paths.first + paths.count && !s; p++) {
        s = clb_symmetric_contraction_basis(ctx, d, p, u, (int64_t)size);
        if (!s && !reference_contraction_add(r, out, nu, u)) s = CLB_ERROR_MEMORY;
      }
      free(u);
    }
  if (s) fatal("symmetric_contraction: %s", clb_error(ctx));
  clb_context_destroy(&ctx);
  return r;
}

/* That of the last problem is kept, as it takes long to make. */
static reference_contraction *reference_of(const clb_symmetric_contraction_desc *d) {
  static clb_symmetric_contraction_desc last;
  static int degrees[MAX_DEGREES];
  static reference_contraction *kept;
  clb_symmetric_contraction_desc now = *d;
  const size_t size = sizeof *degrees * (size_t)d->n_degrees;
  now.degrees = degrees;
  if (kept && !memcmp(&now, &last, sizeof now) && !memcmp(d->degrees, degrees, size)) return kept;
  if (kept) reference_contraction_destroy(kept);
  memcpy(degrees, d->degrees, size);
  last = now;
  return kept = make_reference(&last);
}

/* ---- data ---- */

static void operands(const void *problem, tool_operands *o) {
  const clb_symmetric_contraction_desc *d = problem;
  o->width[CLB_OPERAND_X] = (d->ell + 1) * (d->ell + 1) * d->channels;
  o->width[CLB_OPERAND_W] = (int)reference_contraction_sizes(reference_of(d)).w * d->n_species;
  for (int i = 0; i < d->n_degrees; i++)
    o->width[CLB_OPERAND_Z] += (2 * d->degrees[i] + 1) * d->channels;
  o->one_row = CLB_OPERAND_W;
  o->gradients = d->gradients, o->incoming = d->incoming;
  o->kinds = d->n_species;
}

static void reference(const void *problem, clb_pass pass, int64_t rows, double *const *v,
                      double *const *wanted, double *const *scale) {
  const clb_symmetric_contraction_desc *d = problem;
  int32_t *species = allocate((size_t)rows + 1, sizeof *species);
  reference_contraction *r = reference_of(d);
  for (int64_t i = 0; i < rows; i++) species[i] = kind_of_row(i, d->n_species);
  reference_contraction_run(r, pass, rows, species, v, wanted, scale);
  free(species);
}

static int64_t rows(const void *problem, clb_pass pass) {
  (void)problem, (void)pass;
  return 20000;
}

/* A rounding error of a factor enters once for each factor. */
static double growth(const void *problem) {
  const clb_symmetric_contraction_desc *d = problem;
  return d->correlation > 2 ? d->correlation / 2.0 : 1;
}

CALLS(symmetric_contraction, 2)

/* ---- cases of `clebsch check` ---- */

static const int upto[] = {0, 1, 2, 3}, mixed[] = {2, 0};

#define PROBLEM(top, order, list, n, K, layout)                                                    \
  &(const clb_symmetric_contraction_desc) {                                                        \
    .ell = top, .correlation = order, .degrees = list, .n_degrees = n, .channels = K,              \
    .n_species = 3, .layout_x = layout, .layout_z = layout                                         \
  }

static const tool_case cases[] = {
    {{PROBLEM(3, 3, upto, 2, 33, CLB_IR_MUL), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {35, LAYOUT_PADDED, 1}, {131, LAYOUT_DENSE, 0}},
     0},
    {{PROBLEM(3, 3, upto, 3, 7, CLB_MUL_IR), F64, 1}, {{65, LAYOUT_REPEAT, 0}}, 0},
    {{PROBLEM(2, 3, upto, 1, 16, CLB_IR_MUL), F64, 0},
     {{3, LAYOUT_DENSE, 0}, {130, LAYOUT_PADDED, 0}},
     0},
    {{PROBLEM(2, 3, mixed, 2, 40, CLB_IR_MUL), CLB_F32, CLB_F64, 0}, {{67, LAYOUT_DENSE, 1}}, 0},
    {{PROBLEM(2, 4, mixed, 2, 5, CLB_IR_MUL), F32, 0}, {{67, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(1, 4, upto, 4, 3, CLB_MUL_IR), F32, 1}, {{131, LAYOUT_PADDED, 0}}, 0},
    {{PROBLEM(1, 2, upto, 2, 64, CLB_IR_MUL), F16, 0}, {{66, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(2, 2, upto, 2, 9, CLB_MUL_IR), F16, 1}, {{34, LAYOUT_PADDED, 0}}, 0},
    {{PROBLEM(1, 3, upto, 2, 12, CLB_IR_MUL), BF16, 0}, {{66, LAYOUT_PADDED, 0}}, 0},
    {{PROBLEM(2, 3, mixed, 2, 9, CLB_BY_CHANNEL), F32, 0}, {{67, LAYOUT_PADDED, 0}}, 0},
    {{PROBLEM(3, 4, upto, 2, 4, CLB_IR_MUL), F32, 0}, {{20, LAYOUT_DENSE, 0}}, 0},
};

const tool_op tool_op_symmetric_contraction = {
    TOOL_USUAL(symmetric_contraction),
    .factor = third_rows_are_0,
    .reference = reference,
    .distinct_rows = 32,
    .rows = rows,
    .bytes_of_arrays = true,
    .growth = growth,
};
