/* kernels/norm/schedule.c - how many lanes process a row, and what stays in registers. */
#include "kernels/norm/norm.h"

enum {
  SIMD_KEPT = 32,      /* elements of a row and lane */
  GPU_REGISTERS = 128, /* of 32 bits, that a kernel should use at most */
  OTHER_REGISTERS = 32,
  MOST_LANES = 512, /* of a team */
  GROUP_LANES = 256 /* of a group whose sub-groups have their own rows */
};

int64_t clb_norm_per_lane(const clb_norm_plan *plan, int64_t team, int64_t width) {
  int64_t n = 0;
  for (int i = 0; i < plan->n; i++)
    n += ((plan->segment[i].length - 1) / (team * width) + 1) * width;
  return n;
}

/* Elements of 16 bytes, or of 8, where all segments are whole numbers of these. */
static int widest(const clb_problem *p, const clb_norm_plan *plan) {
  const int bytes = p->storage == CLB_F64 ? 8 : p->storage == CLB_F32 ? 4 : 2;
  for (int width = 16 / bytes; width > 1 && width * bytes >= 8; width /= 2) {
    bool fits = true;
    for (int i = 0; i < plan->n; i++)
      fits = fits && plan->segment[i].at % width == 0 && plan->segment[i].length % width == 0;
    if (fits) return width;
  }
  return 1;
}

/* Numbers that a lane keeps for each element. */
static int numbers_kept(const clb_problem *p) {
  static const int kept[] = {2, 4, 6}; /* x w; x w g sum; x w g a c sum */
  return kept[p->pass] * (p->arithmetic == CLB_F64 ? 2 : 1);
}

/* The smallest team whose lanes have few elements: a part of a sub-group, or several. */
static void choose_team(const clb_norm_plan *plan, const clb_limits *limits, int64_t few,
                        clb_schedule *s) {
  int team = 1, lanes = s->lanes, most = limits->subgroups ? limits->max_subgroups * lanes : lanes;
  if (most > MOST_LANES) most = MOST_LANES;
  if (most > lanes * lanes) most = lanes * lanes; /* a sub-group adds up the sums of all */
  const int width = s->norm.elements_per_access;
  while (2 * team <= most && clb_norm_per_lane(plan, team, width) > few) team *= 2;
  s->norm.lanes_per_row = team < lanes ? team : 0;
  s->norm.subgroups_per_row = team > lanes ? team / lanes : 0;
  s->subgroups = team > lanes ? team / lanes : 1;
}

/* Whether sums of gradients by weights of the sub-groups fit local memory. */
static bool sums_fit(const clb_problem *p, const clb_norm_plan *plan, const clb_limits *limits,
                     int subgroups) {
  const int64_t bytes = p->arithmetic == CLB_F64 ? 8 : 4;
  return p->pass == CLB_FORWARD || subgroups == 1 ||
         subgroups * bytes * clb_norm_partial_columns(&p->rms_norm, plan) <= limits->local_bytes;
}

static void choose(const clb_problem *p, const clb_norm_plan *plan, const clb_limits *limits,
                   int few, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  s->norm.elements_per_access = limits->simd ? 1 : widest(p, plan);
  s->norm.groups_per_unit = 4;
  if (limits->simd) {
    s->norm.kept = clb_norm_per_lane(plan, s->lanes, 1) <= SIMD_KEPT;
    return;
  }
  choose_team(plan, limits, few, s);
  const int team = s->norm.lanes_per_row ? s->norm.lanes_per_row : s->lanes * s->subgroups;
  const int64_t held = clb_norm_per_lane(plan, team, s->norm.elements_per_access);
  const int registers = limits->registers < GPU_REGISTERS ? limits->registers : GPU_REGISTERS;
  s->norm.kept =
      held <= CLB_NORM_MOST_KEPT && held * numbers_kept(p) <= registers - OTHER_REGISTERS;
  if (!s->norm.kept) s->norm.lanes_per_row = 0;
  if (s->norm.kept && !s->norm.subgroups_per_row && limits->subgroups)
    while (2 * s->subgroups * s->lanes <= GROUP_LANES &&
           2 * s->subgroups <= limits->max_subgroups && sums_fit(p, plan, limits, 2 * s->subgroups))
      s->subgroups *= 2;
  static const int resident[] = {2048, 1024, 512}; /* lanes of a multiprocessor */
  s->norm.groups_per_unit = resident[p->pass] / (s->lanes * s->subgroups);
  if (s->norm.groups_per_unit < 1) s->norm.groups_per_unit = 1;
}

static int few_elements(const clb_problem *p) {
  return p->arithmetic == CLB_F64 || p->pass == CLB_DOUBLE_BACKWARD ? 8 : 16;
}

void clb_norm_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_norm_plan plan;
  clb_norm_make_plan(&p->rms_norm, &plan);
  choose(p, &plan, limits, few_elements(p), s);
}

/* Larger and smaller teams, more and fewer groups, and rows that are read twice. */
int clb_norm_candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  static const int groups[] = {1, 2, 4, 8, 16};
  clb_norm_plan plan;
  clb_schedule first, s;
  int n = 0;
  clb_norm_make_plan(&p->rms_norm, &plan);
  choose(p, &plan, limits, few_elements(p), &first);
  clb_candidate_add(list, &n, &first);
  for (int few = 4; few <= 32 && !limits->simd; few *= 2) {
    choose(p, &plan, limits, few, &s);
    clb_candidate_add(list, &n, &s);
  }
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    clb_candidate_with(list, &n, &first, CLB_FIELD(norm.groups_per_unit), groups[i]);
  s = first;
  s.norm.kept = s.norm.lanes_per_row = 0;
  if (!s.norm.subgroups_per_row) s.subgroups = 1;
  clb_candidate_add(list, &n, &s);
  return n;
}
