/* kernels/symmetric_contraction/schedule.c - symmetric contractions: what there can be, and how a
   kernel of it is laid out. */
#include <stdio.h>

#include "kernels/symmetric_contraction/contraction.h"

enum {
  SUBGROUPS = 8,
  KEPT_WEIGHTS = 64, /* registers for weights that stay there from row to row */
  SUMS = 64,         /* registers for sums over rows */
  LARGE = 350        /* multiplications of a kernel that asks for the large register mode, or may be
                        done in phases */
};

/* Multiplications that may be instructions of their own; beyond, the products are listed in
   tables. */
static int64_t budget_of(const clb_limits *limits) { return limits->simd ? 8000 : 21000; }

clb_status clb_contraction_check(const clb_problem *p, const clb_limits *limits,
                                 clb_error_sink *error) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  (void)limits;
  if (sc->channels < 1)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "channels is %d; it must be at least 1",
                    (int)sc->channels);
  if (sc->n_species < 1)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_species is %d; it must be at least 1",
                    (int)sc->n_species);
  return CLB_OK;
}

/* Multiplications of a pass, about, if each were an instruction. */
static int64_t cost_of(const clb_problem *p, const clb_symmetric_plan *plan) {
  static const int times[] = {1, 3, 7};
  return times[p->pass] * clb_symmetric_cost(plan);
}

/* In phases a pair's gradient must be complete when its phase ends. */
static bool can_turn(const clb_symmetric_contraction_problem *sc) {
  return sc->correlation > 1 && sc->correlation < 4;
}

/* Whether the vendor's compiler spills so many numbers of a large derivative that phases are
   faster, or must be so.  On an H200, 92 bytes of double backward to l = 2 in f32 cost less than
   phases, which took 1.16 times as long. */
static bool spills(const clb_problem *p, const clb_limits *limits) {
  return p->arithmetic == CLB_F64 || (p->pass == CLB_DOUBLE_BACKWARD && limits->registers <= 128);
}

void clb_contraction_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  bool sums = p->kind == CLB_SYMMETRIC_WEIGHTS,
       gradients = !sums && p->pass && sc->gradients & CLB_OPERAND_X;
  int words = (p->arithmetic == CLB_F64 ? 2 : 1), twice = p->pass == CLB_DOUBLE_BACKWARD ? 2 : 1;
  clb_symmetric_plan plan;
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  s->symmetric.rows = limits->simd ? 16 : 4;
  if (sums && p->pass == CLB_FORWARD) {
    s->subgroups = limits->simd ? 1 : limits->max_subgroups < 4 ? limits->max_subgroups : 4;
    return;
  }
  bool made = clb_symmetric_plan_make(sc, &plan);
  if (made && cost_of(p, &plan) > budget_of(limits)) {
    int64_t bytes = clb_contraction_local_bytes(p, &plan, gradients);
    s->symmetric.channels = s->lanes;
    while (s->symmetric.channels > 1 && bytes * s->symmetric.channels > limits->local_bytes)
      s->symmetric.channels /= 2;
    s->symmetric.rows = 1;
  } else if (!limits->simd) {
    int blocks = clb_contraction_blocks(sc, s),
        most = limits->max_subgroups < SUBGROUPS ? limits->max_subgroups : SUBGROUPS;
    s->subgroups = sums ? (most < 4 ? most : 4) : blocks < most ? blocks : most;
    s->symmetric.large_registers = limits->registers <= 128 && cost_of(p, &plan) > LARGE;
    s->symmetric.keep_weights =
        !sums && sc->n_paths <= KEPT_WEIGHTS / (words * twice * words * twice);
    s->symmetric.phases =
        gradients && can_turn(sc) && cost_of(p, &plan) > LARGE && spills(p, limits);
    s->symmetric.roles = sums && sc->n_degrees > 1 && sc->n_paths * words > SUMS;
  }
  clb_symmetric_plan_free(&plan);
}

/* Other numbers of rows and sub-groups; weights, degrees and registers the other way. */
int clb_contraction_candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  static const int rows[] = {1, 4, 8, 16, 64}, subgroups[] = {1, 2, 4, 8};
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  const bool sums = p->kind == CLB_SYMMETRIC_WEIGHTS, gpu = !limits->simd;
  clb_schedule first;
  int n = 0;
  clb_contraction_schedule(p, limits, &first);
  clb_candidate_add(list, &n, &first);
  if (sums && p->pass == CLB_FORWARD) return n;
  if (clb_contraction_reads_tables(&first)) {
    for (int part = 2; part <= 4 && gpu; part *= 2)
      if (first.symmetric.channels / part)
        clb_candidate_with(list, &n, &first, CLB_FIELD(symmetric.channels),
                           first.symmetric.channels / part);
    return n;
  }
  if (sums && sc->n_degrees > 1)
    clb_candidate_with(list, &n, &first, CLB_FIELD(symmetric.roles), !first.symmetric.roles);
  if (gpu && limits->registers <= 128)
    clb_candidate_with(list, &n, &first, CLB_FIELD(symmetric.large_registers),
                       !first.symmetric.large_registers);
  if (gpu && !sums && sc->n_paths <= 2 * KEPT_WEIGHTS)
    clb_candidate_with(list, &n, &first, CLB_FIELD(symmetric.keep_weights),
                       !first.symmetric.keep_weights);
  if (!sums && can_turn(sc))
    clb_candidate_with(list, &n, &first, CLB_FIELD(symmetric.phases), !first.symmetric.phases);
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !sums; i++)
    if (rows[i] < 64 || !gpu)
      clb_candidate_with(list, &n, &first, CLB_FIELD(symmetric.rows), rows[i]);
  for (size_t i = 0; i < sizeof subgroups / sizeof *subgroups && gpu; i++)
    if (subgroups[i] <= limits->max_subgroups &&
        (sums || subgroups[i] <= clb_contraction_blocks(sc, &first)))
      clb_candidate_with(list, &n, &first, CLB_FIELD(subgroups), subgroups[i]);
  return n;
}

void clb_contraction_print(const clb_problem *p, clb_text *out) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  clb_text_add(out, "%d channels, ell = %d, correlation %d, to l =", (int)sc->channels,
               (int)sc->ell, (int)sc->correlation);
  for (int i = 0; i < sc->n_degrees; i++) clb_text_add(out, " %d", (int)sc->degrees[i]);
  clb_text_add(out, ", %d species", (int)sc->n_species);
}
