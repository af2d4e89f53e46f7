/* kernels/convolution/schedule.c - checks a graph convolution, and chooses its parts, roles,
   stages, slices and batches. */
#include "kernels/convolution/builder.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  (void)limits;
  if ((p->convolution.atomics || p->convolution.spline) && !clb_is_channel_wise(tp))
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "convolution: %s set; every path must then be of mode CLB_UVU with one channel "
                    "of y (see clb_channel_wise), and y have %d elements at most",
                    p->convolution.atomics ? "atomics is" : "knots are", CLB_MAX_CHANNEL_WISE_Y);
  if (p->convolution.atomics && p->storage >= CLB_F16)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "convolution: atomics go with storage CLB_F64 or CLB_F32");
  return CLB_OK;
}

enum {
  Y_SUMS = 320,              /* gradients of y that are summed together in local memory, about */
  LANE_SUM_BYTES = 16 << 10, /* of local memory for them if every lane has its own */
  MAX_STAGES = 3,            /* of the pipeline */
  MAX_SLICES = 32,           /* of a sub-group */
  THREADS_PER_GROUP = 128,
  CACHE_BYTES = 192 << 10 /* of a core's second-level cache for the rows of a batch */
};

/* Bytes of local memory that a group can have, and that all groups of a multiprocessor share. */
static int64_t local_of_group(const clb_limits *l) {
  return l->max_local_bytes > l->local_bytes ? l->max_local_bytes : l->local_bytes;
}
static int64_t local_of_multiprocessor(const clb_limits *l) {
  return l->unit_local_bytes > local_of_group(l) ? l->unit_local_bytes : local_of_group(l);
}

/* The least and the largest multiplicity of x and z. */
typedef struct {
  int least, most;
} multiplicities;

static multiplicities multiplicities_of(const clb_tensor_product_problem *tp) {
  multiplicities m = {INT32_MAX, 0};
  for (int i = 0; i < 2; i++) {
    const clb_irreps *r = i ? &tp->z : &tp->x;
    for (int t = 0; t < r->n; t++) {
      if (r->term[t].mul < m.least) m.least = r->term[t].mul;
      if (r->term[t].mul > m.most) m.most = r->term[t].mul;
    }
  }
  return m;
}

/* Whether all terms fill the lanes, with fewer channels than a lane may have. */
static bool is_narrow(const clb_problem *p, int lanes) {
  const multiplicities m = multiplicities_of(&p->tensor_product);
  return m.least == m.most && lanes <= m.least && m.most < CLB_MAX_PER_LANE * lanes;
}

/* Whether all terms are narrow and of degrees up to 2, whose products are few. */
static bool is_small(const clb_problem *p, int lanes) {
  return p->arithmetic != CLB_F64 && is_narrow(p, lanes) &&
         clb_frame_degree(&p->tensor_product) <= 2;
}

/* Whether operands are staged: not where forward reads a table, each lane finding one of the next
   edges instead (clb_ahead), or is small without frames.  On an H100 and an H200 stages took 1.2
   and 1.02 to 1.09 times as long. */
static bool stages(const clb_problem *p, const clb_schedule *s) {
  return p->pass != CLB_FORWARD ||
         !(p->convolution.spline || (!s->convolution.frame && is_small(p, s->lanes)));
}

/* Bytes of a group. */
static int64_t local_g_bytes(const clb_problem *p, const clb_parts *parts, const clb_schedule *s) {
  return (int64_t)s->subgroups * clb_local_g_size(p, parts, s) *
         ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic));
}

/* Stages: as many as local memory has room for, on devices with asynchronous copies. */
static void schedule_stages(const clb_problem *p, const clb_limits *limits, const clb_parts *parts,
                            clb_schedule *s) {
  int64_t bytes = ir_type_bytes(clb_ir_type((clb_dtype)p->storage)),
          size = bytes * s->subgroups * clb_stage_size(p, parts, s);
  s->convolution.pipeline_stages = 0;
  if (!limits->async_copies || p->storage >= CLB_F16 || !stages(p, s)) return;
  if (s->convolution.frame && p->storage != p->arithmetic)
    return; /* frames are of arithmetic precision */
  const int groups = s->convolution.min_blocks_per_sm > 1 ? s->convolution.min_blocks_per_sm : 1;
  const int64_t share = local_of_multiprocessor(limits) / groups,
                room = (share < local_of_group(limits) ? share : local_of_group(limits)) -
                       local_g_bytes(p, parts, s);
  const int stages = size ? (int)(room / size) : 0;
  s->convolution.pipeline_stages = stages > MAX_STAGES ? MAX_STAGES : stages < 2 ? 0 : stages;
}

/* A batch has as many edges as fit into a part of a core's second-level cache, with those of the
   next batch.  Parts of z take two thirds of the vector registers.  Two vectors of channels: what
   is the same in all channels is loaded once for two multiply-adds. */
static void schedule_batch(const clb_problem *p, clb_schedule *s) {
  bool wide = s->lanes * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic)) >=
              64; /* AVX-512: 32 registers, else 16 */
  int edges = 8;
  while (edges > 4 && clb_batch_bytes(p, edges) > CACHE_BYTES) edges /= 2;
  s->convolution.edges_per_batch = s->convolution.edges_per_round = edges;
  s->convolution.components_per_part = wide ? 22 : 10;
  s->convolution.channels_per_lane = 2;
}

/* As many slices as the part with the fewest channels can use. */
static void schedule_slices(const clb_parts *parts, clb_schedule *s) {
  int most = s->convolution.edges_per_subgroup;
  s->convolution.edges_per_subgroup = 0;
  for (int part = 0; part < parts->n; part++) {
    int n = s->lanes / clb_slice_width(&(clb_schedule){.lanes = s->lanes,
                                                       .convolution.edges_per_subgroup = most},
                                       parts->mul[part], parts->per_lane[part]);
    if (n > 1 && n > s->convolution.edges_per_subgroup) s->convolution.edges_per_subgroup = n;
  }
}

/* Multiply-adds of a channel on a path of the forward pass: non-zeros and their products c y, which
   about two channels of a lane share; in the frame also rotations into it and back. */
static double cost_without_frame(const clb_tensor_product_problem *tp, const clb_path *p) {
  return 1.3 * clb_form_path_size(tp, p) + clb_width(&tp->x.term[p->in1]);
}
static double cost_in_frame(const clb_tensor_product_problem *tp, const clb_path *p) {
  const int l1 = tp->x.term[p->in1].l, l2 = tp->y.term[p->in2].l, l3 = tp->z.term[p->out].l,
            least = l1 < l3 ? l1 : l3, even = (l1 + l2 + l3) % 2 == 0;
  if (!l2) return 2 * l1 + 2;
  return 3 * least + 2 * even + (l3 + 1) * (least + even) + l3 * least + 4 * l3 +
         (2 * l3 * l3 + 2 * l3 + 1) / 8.0;
}

/* Whether paths are computed in the edge's frame.  This does not depend on the gradients asked for,
   as both kernels of double backward read the same rows; there the frame also saves a third kernel,
   for gradients of harmonics.  On an H200 it was faster backward for all problems of the suite, and
   forward where it saves a fifth of the multiply-adds. */
static bool uses_frame(const clb_problem *p) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  const int l = clb_frame_degree(tp);
  double here = 0, frame = 0;
  if (!p->convolution.vectors || l < 1 || l > CLB_MAX_FRAME_L) return false;
  for (int q = 0; q < tp->n_paths; q++) {
    here += cost_without_frame(tp, &tp->path[q]);
    frame += cost_in_frame(tp, &tp->path[q]);
  }
  return p->pass != CLB_FORWARD || frame < 0.8 * here;
}

enum { INTEL_REGISTERS = 128 }; /* of GPUs that can have twice as many for half the threads */

/* Rows per group, and threads per multiprocessor: so many that registers hold a part and the
   operands of an edge. */
static void schedule_roles(const clb_problem *p, const clb_limits *limits, int threads,
                           clb_schedule *s) {
  clb_parts parts;
  s->convolution.roles = 1;
  clb_part_limits l = clb_part_limits_of(p, s);
  clb_parts_make(&p->tensor_product, &l, &parts);
  s->convolution.roles = clb_parts_blocks(&parts, s);
  s->subgroups = THREADS_PER_GROUP / s->lanes > 0 ? THREADS_PER_GROUP / s->lanes : 1;
  if (s->subgroups > limits->max_subgroups) s->subgroups = limits->max_subgroups;
  s->convolution.large_registers = limits->registers <= INTEL_REGISTERS;
  s->convolution.frame = uses_frame(p);
  schedule_slices(&parts, s);
  for (;; s->subgroups /= 2) { /* smaller groups if a group can have little local memory */
    s->convolution.min_blocks_per_sm = threads / (s->subgroups * s->lanes);
    schedule_stages(p, limits, &parts, s);
    if (s->convolution.pipeline_stages == MAX_STAGES || !stages(p, s) || s->subgroups < 2 ||
        local_of_multiprocessor(limits) == local_of_group(limits))
      return;
  }
}

/* Edges of which every lane has partial sums of the gradients of y in local memory. */
static int edges_with_lane_sums(const clb_problem *p, int lanes, int columns) {
  int n = LANE_SUM_BYTES /
          (columns * (lanes + 1) * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic)));
  return n > 64 ? 64 : n < 1 ? 1 : n;
}

/* One sub-group does all parts of a row. */
static void schedule_rows(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  int columns = clb_y_columns(p, s);
  s->convolution.edges_per_subgroup = 0;
  s->convolution.edges_per_round = columns ? Y_SUMS / columns : 1;
  s->convolution.edges_per_round = s->convolution.edges_per_round > 64 ? 64
                                   : s->convolution.edges_per_round < 4
                                       ? 4
                                       : s->convolution.edges_per_round;
  if (!s->convolution.shuffle_sums && columns)
    s->convolution.edges_per_round = edges_with_lane_sums(p, s->lanes, columns);
  if (limits->simd && limits->subgroups) schedule_batch(p, s);
}

static bool has_roles(const clb_problem *p, const clb_limits *limits) {
  return !limits->simd && limits->subgroups && p->tensor_product.n_paths;
}

static clb_schedule with_walks(const clb_problem *p, const clb_limits *limits, int part,
                               int channels, int threads, int slices, int one_walk) {
  const bool roles = has_roles(p, limits);
  clb_schedule s = {.lanes = limits->lanes[p->arithmetic],
                    .subgroups = 1,
                    .convolution = {.shuffle_sums = limits->subgroups,
                                    .component_pairs = 1,
                                    .channels_per_lane = roles ? channels : 1,
                                    .components_per_part = part,
                                    .edges_per_subgroup = slices,
                                    .one_walk = one_walk}};
  if (roles) schedule_roles(p, limits, threads, &s);
  else schedule_rows(p, limits, &s);
  return s;
}
static clb_schedule with_parts(const clb_problem *p, const clb_limits *limits, int part,
                               int channels, int threads, int slices) {
  return with_walks(p, limits, part, channels, threads, slices, 0);
}

/* Measured on an H200: with fewer, larger roles and fewer threads at once, the work that each role
   repeats for an edge costs less.  Where atomic additions are of one number, one channel per lane
   makes them contiguous.  Forward with high degrees, one channel of a term fills the registers that
   each of 384 threads has. */
static bool has_wide_terms(const clb_problem *p) {
  return p->pass == CLB_FORWARD && p->convolution.vectors &&
         clb_frame_degree(&p->tensor_product) > 3;
}
/* Backward, with a table, frames and degrees up to 2, where operands are staged: smaller parts, for
   twice the threads. */
static bool is_flat(const clb_problem *p, const clb_limits *limits) {
  return limits->async_copies && p->pass == CLB_BACKWARD && p->arithmetic != CLB_F64 &&
         p->convolution.spline && clb_frame_degree(&p->tensor_product) <= 2 && uses_frame(p);
}
static int components_of(const clb_problem *p, const clb_limits *limits) {
  const bool more = p->pass == CLB_FORWARD && limits->registers > INTEL_REGISTERS;
  return p->arithmetic == CLB_F64 || is_flat(p, limits)     ? 48
         : more && has_wide_terms(p)                        ? 128
         : more && !uses_frame(p) && !p->convolution.spline ? 112
                                                            : 96;
}
static int channels_of(const clb_problem *p, const clb_limits *limits) {
  const bool vectors = limits->vector_atomics && p->storage == CLB_F32,
             adds = p->pass != CLB_FORWARD && p->convolution.atomics && !vectors &&
                    p->tensor_product.gradients & CLB_OPERAND_X;
  return adds ? 1 : CLB_MAX_PER_LANE;
}
static int threads_of(const clb_problem *p, const clb_limits *limits) {
  if (is_flat(p, limits)) return 512;
  return p->arithmetic == CLB_F64 || p->pass != CLB_FORWARD || has_wide_terms(p) ? 256 : 384;
}

/* Edges side by side in a sub-group cost more than roles of fewer channels per lane where each edge
   has coefficients of its own, backward where terms have one channel per lane, in double backward
   where all are narrow, and forward without frames if it is small. */
static int slices_of(const clb_problem *p, const clb_limits *limits) {
  const int least = multiplicities_of(&p->tensor_product).least,
            lanes = limits->lanes[p->arithmetic];
  const bool none = p->pass == CLB_BACKWARD ? least == lanes
                    : p->pass == CLB_FORWARD && uses_frame(p)
                        ? p->convolution.spline && least >= lanes
                    : p->pass == CLB_FORWARD ? !p->convolution.spline && is_small(p, lanes)
                                             : uses_frame(p) && is_narrow(p, lanes);
  return none ? 0 : MAX_SLICES;
}

/* Whether one walk can give gradients of z and all others.  Half and bfloat numbers are not added
   to block after block of edges. */
static bool can_walk_once(const clb_problem *p, const clb_limits *limits) {
  const int others = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
  return p->pass == CLB_DOUBLE_BACKWARD && p->convolution.gives_z && p->tensor_product.z.dim &&
         p->tensor_product.gradients & others && p->storage < CLB_F16 && has_roles(p, limits);
}

/* Double backward in one walk over the edges, which reads weights once but holds sums of z, too:
   with g in local memory, in double precision in registers.  Returns whether it can, and a group
   has room for what of g is kept in local memory. */
static bool walk_once(const clb_problem *p, const clb_limits *limits, int slices, clb_schedule *s) {
  clb_parts parts;
  if (!can_walk_once(p, limits)) return false;
  *s = with_walks(p, limits, 96, 2, 256, slices, p->arithmetic == CLB_F64 ? 1 : 2);
  const clb_part_limits l = clb_part_limits_of(p, s);
  clb_parts_make(&p->tensor_product, &l, &parts);
  return local_g_bytes(p, &parts, s) <= limits->local_bytes;
}

/* Where a sub-group has one edge: forward without frames, roles are twice as large, so that rows of
   x are read half as often; double backward in frames, two channels per lane need fewer registers
   than four, and where terms are narrow smaller parts do. */
static void two_walks(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const int components = components_of(p, limits), channels = channels_of(p, limits);
  *s = with_parts(p, limits, components, channels, threads_of(p, limits), slices_of(p, limits));
  const clb_convolution_settings *own = &s->convolution;
  if (!own->roles || p->arithmetic == CLB_F64) return;
  if (own->edges_per_subgroup) return;
  if (p->pass == CLB_FORWARD && !own->frame && stages(p, s) && limits->registers > INTEL_REGISTERS)
    *s = with_parts(p, limits, 2 * components, channels, 256, MAX_SLICES);
  else if (p->pass == CLB_DOUBLE_BACKWARD && own->frame && channels > 2)
    *s = with_parts(p, limits, components / (is_narrow(p, s->lanes) ? 2 : 1), 2,
                    threads_of(p, limits), slices_of(p, limits));
}

/* On an H100 double backward in one walk took 0.68 to 0.94 of the time of two, 0.86 in double
   precision; elsewhere it has not been measured. */
static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  if (!limits->async_copies || !walk_once(p, limits, 0, s)) two_walks(p, limits, s);
}

/* Candidates on a CPU: batches of other lengths, parts of other sizes, one vector of channels. */
static int add_batches(const clb_problem *p, const clb_schedule *first, clb_schedule *list, int n) {
  const clb_convolution_settings *own = &first->convolution;
  for (int i = 0; i < 3; i++)
    for (int batch = 4; batch <= 32; batch *= 2) {
      clb_schedule s = *first;
      s.convolution.components_per_part = own->components_per_part * (i ? 3 : 4) / 4;
      if (own->edges_per_batch) s.convolution.channels_per_lane = i < 2 ? 2 : 1;
      if (own->edges_per_batch)
        s.convolution.edges_per_batch = s.convolution.edges_per_round = batch;
      if (!own->edges_per_batch || clb_batch_bytes(p, batch) <= 2 * CACHE_BYTES)
        clb_candidate_add(list, &n, &s);
    }
  return n;
}

/* Candidates on a GPU: larger and smaller parts, more and fewer threads, fewer channels per lane,
   with and without slices. */
static int add_parts(const clb_problem *p, const clb_limits *limits, clb_schedule *list, int n) {
  static const int sizes[][2] = {{4, 0}, {4, 128},  {4, -128},
                                 {6, 0}, {6, -128}, {3, 0}}; /* quarters of a part; threads */
  const int part = components_of(p, limits), channels = channels_of(p, limits),
            threads = threads_of(p, limits);
  clb_schedule s;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    s = with_parts(p, limits, part * sizes[i][0] / 4, channels, threads + sizes[i][1], MAX_SLICES);
    clb_candidate_add(list, &n, &s);
  }
  for (int fewer = channels / 2; fewer; fewer /= 2) {
    s = with_parts(p, limits, part, fewer, threads, MAX_SLICES);
    clb_candidate_add(list, &n, &s);
  }
  s = with_parts(p, limits, part, channels, threads, 0);
  clb_candidate_add(list, &n, &s);
  return n;
}

/* Double backward in two walks and in one, with and without slices. */
static int add_walks(const clb_problem *p, const clb_limits *limits, clb_schedule *list, int n) {
  clb_schedule s;
  two_walks(p, limits, &s);
  clb_candidate_add(list, &n, &s);
  for (int slices = 0; slices <= MAX_SLICES; slices += MAX_SLICES)
    if (walk_once(p, limits, slices, &s)) clb_candidate_add(list, &n, &s);
  return n;
}

static int candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  int n = 0;
  clb_schedule first;
  schedule(p, limits, &first);
  clb_candidate_add(list, &n, &first);
  n = add_walks(p, limits, list, n);
  n = limits->simd ? add_batches(p, &first, list, n) : add_parts(p, limits, list, n);
  for (int stages = first.convolution.pipeline_stages - 1; stages > 0; stages--)
    clb_candidate_with(list, &n, &first, CLB_FIELD(convolution.pipeline_stages),
                       stages > 1 ? stages : 0);
  if (first.convolution.edges_per_round > 1 && !first.convolution.edges_per_batch)
    clb_candidate_with(list, &n, &first, CLB_FIELD(convolution.edges_per_round),
                       first.convolution.edges_per_round / 2);
  return n;
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "convolution of ");
  clb_kind_tensor_product.print(p, out);
}

bool clb_convolution_team(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_part_limits l = clb_part_limits_of(p, s);
  const int64_t stage =
      s->convolution.pipeline_stages * ir_type_bytes(clb_ir_type((clb_dtype)p->storage));
  const int before = s->subgroups;
  clb_parts parts;
  if (!s->convolution.roles || s->accumulate_in_memory) return false;
  clb_parts_make(&p->tensor_product, &l, &parts);
  const int values = clb_team_values(&p->tensor_product, &parts);
  int team = limits->max_subgroups < CLB_GRAPH_TEAM ? limits->max_subgroups : CLB_GRAPH_TEAM;
  while (team > 1 &&
         team * stage * clb_stage_size(p, &parts, s) + local_g_bytes(p, &parts, s) / before * team +
                 clb_team_bytes(clb_ir_type((clb_dtype)p->arithmetic), s->lanes, team, values) >
             local_of_group(limits))
    team /= 2;
  s->subgroups = s->convolution.team = team;
  s->convolution.min_blocks_per_sm = s->convolution.min_blocks_per_sm * before / team;
  return team > 1;
}

/* Two edges at once would add to one sum. */
static void accumulate_in_memory(clb_schedule *s) {
  s->convolution.frame = s->convolution.edges_per_subgroup = s->convolution.one_walk = 0;
}

const clb_kernel_kind clb_kind_convolution = {.name = "convolution",
                                              .check = check,
                                              .schedule = schedule,
                                              .lower = clb_convolution_lower,
                                              .print = print,
                                              .passes = 3,
                                              .settings = CLB_FIELD(convolution),
                                              .candidates = candidates,
                                              .accumulate_in_memory = accumulate_in_memory};
