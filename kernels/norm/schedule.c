/* kernels/norm/schedule.c - how many lanes process a row, and what stays in registers. */
#include "kernels/norm/norm.h"

enum {
  SIMD_KEPT = 8,        /* elements of a row and lane, of a CPU */
  FEW = 16,             /* elements of a lane of a team that is part of a sub-group */
  REGISTERS = 128,      /* of 32 bits, that a kernel should use at most, */
  MORE_REGISTERS = 192, /* or in double backward; */
  OTHER_REGISTERS = 32, /* and those of them that hold nothing of a row */
  SPARE = 8192,         /* bytes of local memory for sums */
  SECTOR = 32,          /* bytes: memory is accessed in multiples of these */
  MAX_LANES = 512,      /* of a team */
  GROUP_LANES = 256     /* of a group whose sub-groups have their own rows */
};

/* Elements of a row that a lane holds. */
static int64_t per_lane(const clb_norm_plan *plan, int64_t team, int64_t width) {
  int64_t n = 0;
  for (int i = 0; i < plan->n; i++)
    n += ((plan->segment[i].length - 1) / (team * width) + 1) * width;
  return n;
}

static int bytes_of(const clb_problem *p) {
  return p->storage == CLB_F64 ? 8 : p->storage == CLB_F32 ? 4 : 2;
}

static bool whole_segments(const clb_norm_plan *plan, int width) {
  for (int i = 0; i < plan->n; i++)
    if (plan->segment[i].at % width || plan->segment[i].length % width) return false;
  return true;
}

/* Elements of 16 bytes, or of 8, where all segments are whole numbers of these; of 8 where the
   wider ones would leave more lanes without elements. */
static int widest(const clb_problem *p, const clb_norm_plan *plan, int team) {
  const int bytes = bytes_of(p), wide = 16 / bytes, narrow = wide / 2;
  if (!whole_segments(plan, narrow)) return 1;
  return whole_segments(plan, wide) &&
                 8 * per_lane(plan, team, wide) <= 9 * per_lane(plan, team, narrow)
             ? wide
             : narrow;
}

/* Numbers that a lane keeps for each element: sum, inputs and weights. */
static int numbers_kept(const clb_problem *p, bool inputs, bool weights) {
  const clb_rms_norm_problem *norm = &p->rms_norm;
  const bool twice = p->pass == CLB_DOUBLE_BACKWARD;
  int n = p->pass != CLB_FORWARD && norm->gradients & CLB_OPERAND_W;
  if (inputs) n += 1 + (p->pass > 0) + (twice && norm->incoming & CLB_OPERAND_X);
  if (weights) n += 1 + (twice && norm->incoming & CLB_OPERAND_W);
  return (n ? n : 1) * (p->arithmetic == CLB_F64 ? 2 : 1);
}

/* Registers of a multiprocessor: of NVIDIA's, which have 255 a lane at most, and AMD's, 256. */
static int registers_of(const clb_limits *limits) {
  return limits->registers > 255 ? 1 << 17 : 1 << 16;
}

/* Elements of a lane for which there are registers, where a group has so many lanes. Intel's
   compiler takes 128 registers, or 256 if asked. */
static int64_t room(const clb_problem *p, const clb_limits *limits, int lanes, bool inputs,
                    bool weights) {
  const bool choice = limits->registers <= 128;
  const int soft = (p->pass == CLB_DOUBLE_BACKWARD ? MORE_REGISTERS : REGISTERS) - OTHER_REGISTERS,
            all = registers_of(limits),
            most = choice                            ? p->pass ? 256 : 128
                   : all / lanes < limits->registers ? all / lanes
                                                     : limits->registers,
            hard = most - (p->pass == CLB_DOUBLE_BACKWARD ? 100
                           : choice                       ? 64
                                                          : 48);
  int64_t n = (soft < hard ? soft : hard) / numbers_kept(p, inputs, weights);
  return n < CLB_NORM_MOST_KEPT ? n : CLB_NORM_MOST_KEPT;
}

/* Whether the inputs of a row fit local memory, to which they are copied asynchronously. */
static bool row_fits(const clb_problem *p, const clb_limits *limits) {
  return limits->async_copies &&
         (p->pass + 1) * (int64_t)p->rms_norm.irreps.dim * bytes_of(p) + SPARE <=
             limits->max_local_bytes;
}

static void set_team(int team, clb_schedule *s) {
  s->norm.lanes_per_row = team < s->lanes ? team : 0;
  s->norm.subgroups_per_row = team > s->lanes ? team / s->lanes : 0;
  s->subgroups = team > s->lanes ? team / s->lanes : 1;
}

/* That a team accesses at once. Elements that are written one by one start and end within sectors:
   few of them in a row would be mostly such. */
static int least_bytes(const clb_problem *p, const clb_norm_plan *plan, int team) {
  return p->pass == CLB_FORWARD && widest(p, plan, team) == 1 && bytes_of(p) > 2 ? 2 * SECTOR
                                                                                 : SECTOR;
}

/* The smallest part of a sub-group whose lanes have few elements, or else the smallest number of
   sub-groups whose registers hold a row, with the weights if that is possible. Returns how many
   lanes they are. */
static int choose_team(const clb_problem *p, const clb_norm_plan *plan, const clb_limits *limits,
                       int few, int lanes) {
  int most = limits->subgroups ? limits->max_subgroups * lanes : lanes;
  if (p->rms_norm.whole) most = lanes;
  if (most > MAX_LANES) most = MAX_LANES;
  if (most > lanes * lanes) most = lanes * lanes; /* a sub-group adds up the sums of all */
  int team = 1;
  while (team < lanes && (per_lane(plan, team, widest(p, plan, team)) > few ||
                          team * widest(p, plan, team) * bytes_of(p) < least_bytes(p, plan, team)))
    team *= 2;
  if (team > lanes) team = lanes;
  while (2 * team <= most &&
         per_lane(plan, team, widest(p, plan, team)) > room(p, limits, team, true, true))
    team *= 2;
  return team;
}

/* Whether sums of gradients by weights of the sub-groups fit local memory. */
static bool sums_fit(const clb_problem *p, const clb_norm_plan *plan, const clb_limits *limits,
                     int subgroups) {
  const int64_t bytes = p->arithmetic == CLB_F64 ? 8 : 4;
  return p->pass == CLB_FORWARD || subgroups == 1 ||
         subgroups * bytes * clb_norm_partial_columns(&p->rms_norm, plan) <= limits->local_bytes;
}

/* Groups that a multiprocessor has registers for. Forward there is a group for every rows: it has
   no sums, and weights are soon read. */
static int resident(const clb_problem *p, const clb_limits *limits, int64_t held,
                    const clb_schedule *s) {
  if (p->pass == CLB_FORWARD) return 0;
  const int64_t numbers =
      !s->norm.kept ? 0 : held * numbers_kept(p, !s->norm.through_local, s->norm.weights_kept);
  const int64_t n = registers_of(limits) / ((numbers + 40) * s->lanes * s->subgroups);
  return n < 1 ? 1 : n > 16 ? 16 : (int)n;
}

/* Of a group whose sub-groups have their own rows: as many as there may be, or half of them if more
   of these are resident. */
static void choose_subgroups(const clb_problem *p, const clb_norm_plan *plan,
                             const clb_limits *limits, int64_t held, clb_schedule *s) {
  while (2 * s->subgroups * s->lanes <= GROUP_LANES && 2 * s->subgroups <= limits->max_subgroups &&
         sums_fit(p, plan, limits, 2 * s->subgroups))
    s->subgroups *= 2;
  clb_schedule half = *s;
  half.subgroups /= 2;
  if (half.subgroups && resident(p, limits, held, &half) > 2 * resident(p, limits, held, s))
    s->subgroups = half.subgroups;
}

/* Settings that follow from the team. */
static void complete(const clb_problem *p, const clb_norm_plan *plan, const clb_limits *limits,
                     int team, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  set_team(team, s);
  s->norm.elements_per_access = widest(p, plan, team);
  const int64_t held = per_lane(plan, team, s->norm.elements_per_access);
  const int lanes = team < GROUP_LANES ? GROUP_LANES : team;
  s->norm.weights_kept = held <= room(p, limits, lanes, true, true);
  s->norm.kept = held <= room(p, limits, lanes, true, false);
  s->norm.through_local = !s->norm.kept && team > s->lanes && row_fits(p, limits) &&
                          held <= room(p, limits, lanes, false, false);
  s->norm.kept |= s->norm.through_local;
  s->norm.large_registers = limits->registers <= 128 && p->pass != CLB_FORWARD;
  if (!s->norm.kept) s->norm.lanes_per_row = 0;
  if (s->norm.kept && !s->norm.subgroups_per_row && limits->subgroups)
    choose_subgroups(p, plan, limits, held, s);
  s->norm.groups_per_unit = resident(p, limits, held, s);
}

/* Whether weights are worth a place in local memory, where all elements have their own, and fit. */
static bool weights_fit(const clb_problem *p, const clb_norm_plan *plan, const clb_limits *limits) {
  const int64_t bytes = (p->arithmetic == CLB_F64 ? 8 : 4) * (int64_t)p->rms_norm.irreps.dim *
                        (p->pass == CLB_DOUBLE_BACKWARD ? 2 : 1);
  return plan->weights < p->rms_norm.irreps.dim && bytes <= limits->local_bytes;
}

static void choose(const clb_problem *p, const clb_norm_plan *plan, const clb_limits *limits,
                   int few, clb_schedule *s) {
  const int lanes = limits->lanes[p->arithmetic];
  if (!limits->simd) {
    complete(p, plan, limits, choose_team(p, plan, limits, few, lanes), s);
    return;
  }
  *s = (clb_schedule){.lanes = lanes, .subgroups = 1};
  s->norm.elements_per_access = 1;
  s->norm.groups_per_unit = 4;
  int part = lanes;
  while (p->rms_norm.irreps.dim <= part / 2) part /= 2;
  s->norm.lanes_per_row = part < lanes ? part : 0;
  /* Measured: long rows are read again from cache faster than spilled registers. */
  s->norm.kept = per_lane(plan, part, 1) <= SIMD_KEPT;
  s->norm.weights_kept = s->norm.kept || weights_fit(p, plan, limits);
}

void clb_norm_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_norm_plan plan;
  clb_norm_make_plan(&p->rms_norm, &plan);
  choose(p, &plan, limits, p->arithmetic == CLB_F64 ? FEW / 2 : FEW, s);
}

/* Larger and smaller teams, more and fewer groups, weights that are read again, and rows that are
   read twice. */
int clb_norm_candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  static const int groups[] = {0, 1, 2, 4, 8};
  clb_norm_plan plan;
  clb_schedule first, s;
  int n = 0;
  clb_norm_make_plan(&p->rms_norm, &plan);
  clb_norm_schedule(p, limits, &first);
  clb_candidate_add(list, &n, &first);
  const int team = first.norm.lanes_per_row       ? first.norm.lanes_per_row
                   : first.norm.subgroups_per_row ? first.lanes * first.subgroups
                                                  : first.lanes;
  const int most =
      limits->subgroups && !p->rms_norm.whole ? limits->max_subgroups * first.lanes : first.lanes;
  for (int other = team / 2; other <= 2 * team && !limits->simd; other *= 2) {
    if (other < 1 || other > most || other > first.lanes * first.lanes) continue;
    complete(p, &plan, limits, other, &s);
    clb_candidate_add(list, &n, &s);
  }
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    if (!limits->simd || groups[i])
      clb_candidate_with(list, &n, &first, CLB_FIELD(norm.groups_per_unit), groups[i]);
  if (first.norm.weights_kept)
    clb_candidate_with(list, &n, &first, CLB_FIELD(norm.weights_kept), 0);
  s = first;
  s.norm.kept = s.norm.through_local = s.norm.weights_kept = s.norm.lanes_per_row = 0;
  if (!s.norm.subgroups_per_row) s.subgroups = 1;
  clb_candidate_add(list, &n, &s);
  return n;
}
