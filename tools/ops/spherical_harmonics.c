/* tools/ops/spherical_harmonics.c - real spherical harmonics as the command sees them. */
#include "tools/ops/calls.h"
#include "tools/reference/reference_spherical_harmonics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEGREES = 64 };

/* A problem is the part of the description that is not in tool_kernel; it owns its degrees if it
   comes from options. */
typedef struct {
  clb_spherical_harmonics_desc desc;
  int degrees[MAX_DEGREES];
  bool chosen;
} parsed_problem;

/* ---- options ---- */

static const char *const normalization_names[] = {"component", "norm", "integral"};

static void choose_degrees(parsed_problem *p, struct argp_state *state) {
  if (p->chosen) argp_error(state, "give either --lmax or --degrees, and only once");
  p->chosen = true;
  p->desc.n_degrees = 0;
}

static void add_degree(parsed_problem *p, struct argp_state *state, int64_t l) {
  if (p->desc.n_degrees == MAX_DEGREES) argp_error(state, "--degrees: at most %d", MAX_DEGREES);
  p->degrees[p->desc.n_degrees++] = (int)l;
}

static void add_degrees(parsed_problem *p, struct argp_state *state, char *list) {
  for (char *next = list; next;) {
    char *one = strsep(&next, ",");
    add_degree(p, state, whole_number(state, "each of --degrees", one, 0, REFERENCE_MAX_DEGREE));
  }
}

enum { KEY_LMAX = 'l', KEY_DEGREES = 256, KEY_NORMALIZATION, KEY_NORMALIZE };

static error_t parse(int key, char *arg, struct argp_state *state) {
  parsed_problem *p = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      p->desc.degrees = p->degrees;
      for (int l = 0; l <= 4; l++) add_degree(p, state, l);
      return 0;
    case KEY_LMAX:
      choose_degrees(p, state);
      for (int64_t l = 0, lmax = whole_number(state, "--lmax", arg, 0, REFERENCE_MAX_DEGREE);
           l <= lmax; l++)
        add_degree(p, state, l);
      return 0;
    case KEY_DEGREES:
      choose_degrees(p, state);
      add_degrees(p, state, arg);
      return 0;
    case KEY_NORMALIZATION:
      p->desc.normalization =
          (clb_normalization)name_among(state, "--normalization", arg, normalization_names, 3);
      return 0;
    case KEY_NORMALIZE: p->desc.normalize = 1; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"lmax", KEY_LMAX, "L", 0, "Degrees 0, 1, ... L (default: 4)", 0},
    {"degrees", KEY_DEGREES, "LIST", 0, "Degrees in this order, as 0,2,3", 0},
    {"normalization", KEY_NORMALIZATION, "NAME", 0, "component (default), norm or integral", 0},
    {"normalize", KEY_NORMALIZE, NULL, 0, "Evaluate at x / |x|", 0},
    {0}};
static const struct argp argp = {.options = options, .parser = parse};

static void print(const void *problem, char *out, size_t size) {
  const clb_spherical_harmonics_desc *d = problem;
  bool all = true;
  for (int i = 0; i < d->n_degrees; i++) all &= d->degrees[i] == i;
  size_t used = (size_t)snprintf(out, size, all ? "lmax=%d" : "degrees=%d",
                                 all ? d->n_degrees - 1 : d->degrees[0]);
  for (int i = 1; !all && i < d->n_degrees && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, ",%d", d->degrees[i]);
  if (used < size)
    snprintf(out + used, size - used, " %s%s", normalization_names[d->normalization],
             d->normalize ? " normalize" : "");
}

/* ---- data ---- */

static void operands(const void *problem, tool_operands *o) {
  const clb_spherical_harmonics_desc *d = problem;
  o->width[CLB_OPERAND_X] = 3;
  for (int i = 0; i < d->n_degrees; i++) o->width[CLB_OPERAND_Y] += 2 * d->degrees[i] + 1;
  o->x_apart = true;
}

/* Hard: points at the origin; with `normalize` also tiny and huge ones, whose squares overflow or
   underflow in f32. */
static double factor(const void *problem, bool hard, int64_t row, int64_t at) {
  static const double lengths[] = {1, 0, 1e-20, 1e20};
  const clb_spherical_harmonics_desc *d = problem;
  return (void)at, hard ? lengths[row % (d->normalize ? 4 : 2)] : 1;
}

static void reference(const void *problem, clb_pass pass, int64_t rows, double *const *v,
                      double *const *wanted, double *const *scale) {
  if (pass == CLB_FORWARD) reference_forward(problem, rows, v[0], wanted[1], scale[1]);
  if (pass == CLB_BACKWARD) reference_backward(problem, rows, v[0], v[1], wanted[2], scale[2]);
  if (pass == CLB_DOUBLE_BACKWARD)
    reference_double_backward(problem, rows, v[0], v[1], v[2], wanted[3], wanted[4], scale[3],
                              scale[4]);
}

static int64_t rows(const void *problem, clb_pass pass) {
  (void)problem, (void)pass;
  return 1000000;
}

/* A relative rounding error of x enters a polynomial of degree l with a factor l, and each step of
   a recursion over l adds its own. */
static double growth(const void *problem) {
  const clb_spherical_harmonics_desc *d = problem;
  int highest = 5;
  for (int i = 0; i < d->n_degrees; i++)
    if (d->degrees[i] > highest) highest = d->degrees[i];
  return highest / 5.0;
}

CALLS(spherical_harmonics, 1)

/* ---- cases of `clebsch check` ---- */

static const int upto[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, one[] = {1},
                 mixed[] = {3, 1, 1, 0}, twenty[] = {20};

#define PROBLEM(list, n, scale, unit)                                                              \
  &(const clb_spherical_harmonics_desc) {                                                          \
    .degrees = list, .n_degrees = n, .normalization = scale, .normalize = unit                     \
  }

static const tool_case cases[] = {
    {{PROBLEM(upto, 1, CLB_COMPONENT, 0), F32, 0}, {{31, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(one, 1, CLB_NORM, 0), F32, 0}, {{33, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(upto, 5, CLB_COMPONENT, 0), F32, 0},
     {{1, LAYOUT_DENSE, 0},
      {31, LAYOUT_DENSE, 0},
      {33, LAYOUT_DENSE, 1},
      {1003, LAYOUT_DENSE, 0},
      {1003, LAYOUT_PADDED, 0},
      {1003, LAYOUT_REPEAT, 0}},
     0},
    {{PROBLEM(upto, 5, CLB_INTEGRAL, 1), F32, 0},
     {{33, LAYOUT_DENSE, 1}, {1003, LAYOUT_DENSE, 0}},
     0},
    {{PROBLEM(upto, 5, CLB_COMPONENT, 0), F32, 1},
     {{33, LAYOUT_DENSE, 0}, {1003, LAYOUT_PADDED, 0}},
     0},
    {{PROBLEM(upto, 5, CLB_COMPONENT, 0), CLB_F32, CLB_F64, 0}, {{1003, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(upto, 7, CLB_NORM, 1), F32, 0}, {{1003, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(upto, 11, CLB_INTEGRAL, 0), F32, 0}, {{1003, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(upto, 13, CLB_COMPONENT, 0), F32, 0}, {{1003, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(mixed, 4, CLB_NORM, 0), F32, 0},
     {{31, LAYOUT_PADDED, 0}, {1003, LAYOUT_REPEAT, 0}},
     0},
    {{PROBLEM(upto, 5, CLB_COMPONENT, 0), F64, 0},
     {{31, LAYOUT_PADDED, 0}, {1003, LAYOUT_DENSE, 0}},
     0},
    {{PROBLEM(upto, 5, CLB_NORM, 1), F64, 0}, {{33, LAYOUT_DENSE, 1}, {1003, LAYOUT_REPEAT, 0}}, 0},
    {{PROBLEM(upto, 13, CLB_INTEGRAL, 0), F64, 0}, {{33, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(mixed, 4, CLB_COMPONENT, 0), F64, 1}, {{1003, LAYOUT_PADDED, 0}}, 0},
    {{PROBLEM(twenty, 1, CLB_COMPONENT, 0), F64, 0}, {{33, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(upto, 5, CLB_COMPONENT, 0), F16, 0},
     {{33, LAYOUT_DENSE, 0}, {1003, LAYOUT_PADDED, 0}},
     0},
    {{PROBLEM(upto, 7, CLB_NORM, 1), F16, 1}, {{1003, LAYOUT_DENSE, 0}}, 0},
    {{PROBLEM(upto, 5, CLB_COMPONENT, 0), BF16, 0},
     {{33, LAYOUT_DENSE, 0}, {1003, LAYOUT_PADDED, 0}},
     0},
    {{PROBLEM(mixed, 4, CLB_INTEGRAL, 1), BF16, 1}, {{1003, LAYOUT_REPEAT, 0}}, 0},
};

const tool_op tool_op_spherical_harmonics = {
    TOOL_USUAL(spherical_harmonics), .factor = factor, .reference = reference,
    .distinct_rows = 16385,          .rows = rows,     .growth = growth,
};
