/* kernels/convolution/schedule.c - what a graph convolution accepts, and into which parts, units,
   stages and batches its walk is cut. */
#include <math.h>

#include "kernels/convolution/builder.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  (void)limits;
  if ((p->convolution.atomics || p->convolution.spline) && !clb_is_channel_wise(tp))
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "convolution: %s set; every path must then be of mode CLB_UVU with one channel "
                    "of y (see clb_channel_wise), and y have %d elements at most",
                    p->convolution.atomics ? "atomics is" : "knots are", CLB_MAX_CHANNEL_WISE_Y);
  if (p->convolution.atomics && p->storage > CLB_F32)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "convolution: atomics go with storage CLB_F64 or CLB_F32");
  return CLB_OK;
}

/* Of gradients of y that meet, about; bytes of those that all lanes keep; of a multiprocessor;
   bytes. */
enum {
  SHARES = 320,
  KEPT = 16 << 10,
  MOST_STAGES = 3,
  MOST_SLICES = 32,
  REGISTERS = 65536,
  CACHE = 192 << 10
};

static int units_of_row(const clb_convolution_settings *c) {
  return c->subgroups_per_row ? c->subgroups_per_row : 1;
}

/* As many edges ahead as local memory has room for, where copies are asynchronous. */
static void schedule_stages(const clb_problem *p, const clb_limits *limits, const clb_parts *parts,
                            clb_schedule *s) {
  clb_convolution_settings *c = &s->convolution;
  int64_t bytes = ir_type_bytes(clb_ir_type((clb_dtype)p->storage)),
          size = bytes * s->subgroups * clb_stage_size(p, parts, s);
  int64_t shares = clb_wants_sums(p) ? 2 * (int64_t)c->edges_per_round * units_of_row(c) *
                                           clb_y_columns(p) * bytes
                                     : 0;
  int64_t room =
      limits->max_local_bytes > limits->local_bytes ? limits->max_local_bytes : limits->local_bytes;
  if (!limits->async_copies || p->storage > CLB_F32) return;
  int blocks = c->min_blocks_per_sm > 1 ? c->min_blocks_per_sm : 1,
      stages = size ? (int)((room / blocks - shares) / size) : 0;
  c->pipeline_stages = stages > MOST_STAGES ? MOST_STAGES : stages < 2 ? 0 : stages;
}

/* That a lane may use before fewer groups at a time cost more than spills; measured on an H200. */
static int registers_of(const clb_problem *p, int threads) {
  return p->arithmetic == CLB_F64 ? 255 : p->pass == CLB_FORWARD || threads >= 256 ? 128 : 168;
}

/* Units if every block of channels finds a sub-group, and they can add up gradients of y. */
static bool schedule_units(const clb_problem *p, const clb_limits *limits, clb_schedule *s,
                           clb_parts *parts) {
  clb_convolution_settings *c = &s->convolution;
  clb_parts_make(&p->tensor_product, c->components_per_part, c->nonzeros_per_part, s->lanes, parts);
  int units = clb_parts_units(parts, s->lanes);
  if (limits->simd || !limits->subgroups || units < 1 || units > limits->max_subgroups)
    return false;
  c->subgroups_per_row = s->subgroups = units;
  return true;
}

/* Edges whose rows, and those of as many to come, leave most of a core's second level free; parts
   of z take half of its vector registers. */
static void schedule_batch(const clb_problem *p, clb_schedule *s) {
  clb_convolution_settings *c = &s->convolution;
  bool wide = s->lanes * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic)) >=
              64; /* 32 registers, not 16 */
  int edges = 8;
  while (edges > 4 && clb_batch_bytes(p, edges) > CACHE) edges /= 2;
  c->edges_per_batch = c->edges_per_round = edges;
  c->components_per_part = wide ? 16 : 8;
}

/* As many slices as the narrowest part has room for, and whole turns of them. */
static void schedule_slices(const clb_limits *limits, const clb_parts *parts, clb_schedule *s) {
  clb_convolution_settings *c = &s->convolution;
  int slices = 0;
  for (int part = 0; part < parts->n && !limits->simd && limits->subgroups; part++) {
    int n = s->lanes / clb_slice_width(s, parts->mul[part]);
    if (n > 1 && n > slices) slices = n;
  }
  c->edges_per_subgroup = slices;
  if (slices) c->edges_per_round = (c->edges_per_round + slices - 1) / slices * slices;
}

/* Edges of which every lane keeps its share of the gradients of y. */
static int edges_kept(const clb_problem *p, int lanes, int columns) {
  int n = KEPT / (columns * (lanes + 1) * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic)));
  return n > 64 ? 64 : n < 1 ? 1 : n;
}

/* What follows from the parts' size; so many groups more at once. */
static void settle(const clb_problem *p, const clb_limits *limits, int more, clb_schedule *s) {
  clb_convolution_settings *c = &s->convolution;
  clb_parts parts;
  int columns = clb_y_columns(p);
  if (!schedule_units(p, limits, s, &parts))
    clb_parts_make(&p->tensor_product, c->components_per_part, c->nonzeros_per_part, 0, &parts);
  int edges = columns ? SHARES / (columns * units_of_row(c)) : 1;
  c->edges_per_round = edges > 64 ? 64 : edges < 4 ? 4 : edges;
  if (!c->shuffle_sums && columns) c->edges_per_round = edges_kept(p, s->lanes, columns);
  schedule_slices(limits, &parts, s);
  if (limits->simd && limits->subgroups) schedule_batch(p, s);
  c->min_blocks_per_sm =
      c->subgroups_per_row
          ? REGISTERS / (registers_of(p, s->lanes * s->subgroups) * s->lanes * s->subgroups) + more
          : 0;
  if (c->min_blocks_per_sm < 0) c->min_blocks_per_sm = 0;
  schedule_stages(p, limits, &parts, s);
}

static clb_schedule with_parts(const clb_problem *p, const clb_limits *limits, int part,
                               int nonzeros, int more, int slices) {
  clb_schedule s = {.lanes = limits->lanes[p->arithmetic],
                    .subgroups = 1,
                    .convolution = {.shuffle_sums = limits->subgroups,
                                    .component_pairs = 1,
                                    .components_per_part = part,
                                    .nonzeros_per_part = nonzeros,
                                    .edges_per_subgroup = slices}};
  settle(p, limits, more, &s);
  return s;
}

/* Time of a multiprocessor for a row, about: its units wait for the one that has most non-zeros,
   and an edge is some work by itself. */
static double time_of_row(const clb_problem *p, const clb_schedule *s) {
  const clb_convolution_settings *c = &s->convolution;
  clb_parts parts;
  if (!c->min_blocks_per_sm) return HUGE_VAL;
  clb_parts_make(&p->tensor_product, c->components_per_part, c->nonzeros_per_part, s->lanes,
                 &parts);
  return (parts.nonzeros + (p->pass == CLB_FORWARD ? 80 : 300)) / (double)c->min_blocks_per_sm;
}

/* Sub-groups are dealt out to the four schedulers of a multiprocessor (NVIDIA, AMD): 1, 2 or 4
   units keep them equally busy.  Other numbers of them stay only where larger parts are no better.
   Measured on an H200: flashtp-l3, 4 units instead of 8: forward 0.75 of the time, backward, 3
   units, 0.59; nequix-main forward with smaller parts, 4 units instead of 3: 1.05 on carbon, 1.2 on
   spike. */
static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  static const int eighths[] = {12, 16};
  bool wide = p->arithmetic == CLB_F64;
  *s = with_parts(p, limits, wide ? 48 : 96,
                  limits->simd ? 1 << 24
                  : wide       ? 192
                               : 250,
                  0, MOST_SLICES);
  const clb_convolution_settings first = s->convolution;
  bool even = first.subgroups_per_row <= 2 || first.subgroups_per_row == 4;
  for (int i = 0; i < 2 && !wide && !even; i++) {
    clb_schedule other = with_parts(p, limits, first.components_per_part * eighths[i] / 8,
                                    first.nonzeros_per_part * eighths[i] / 8, 0, MOST_SLICES);
    if (other.convolution.subgroups_per_row && time_of_row(p, &other) < 0.95 * time_of_row(p, s))
      *s = other;
  }
}

/* On a CPU: other parts, batches of other lengths. */
static void add_batches(const clb_problem *p, const clb_schedule *first, clb_schedule *list,
                        int *n) {
  for (int size = 2; size <= 8; size *= 2)
    for (int batch = 4; batch <= 32; batch *= 2) {
      clb_schedule s = *first;
      clb_convolution_settings *c = &s.convolution;
      c->components_per_part = first->convolution.components_per_part * size / 4;
      if (c->edges_per_batch) c->edges_per_batch = c->edges_per_round = batch;
      if (!c->edges_per_batch || clb_batch_bytes(p, batch) <= 2 * CACHE)
        clb_candidate_add(list, n, &s);
    }
}

/* On a GPU: larger and smaller parts, more and fewer groups at once. */
static void add_parts(const clb_problem *p, const clb_limits *limits, const clb_schedule *first,
                      clb_schedule *list, int *n) {
  static const int sizes[][2] = {{4, 0}, {4, 1}, {4, -1}, {2, 0}, {8, 0},
                                 {3, 0}, {6, 0}, {2, 1}}; /* quarters of a part; groups more */
  const clb_convolution_settings *c = &first->convolution;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    clb_schedule s = with_parts(p, limits, c->components_per_part * sizes[i][0] / 4,
                                c->nonzeros_per_part * sizes[i][0] / 4, sizes[i][1], MOST_SLICES);
    clb_candidate_add(list, n, &s);
  }
}

/* Beside these no slices, copies not as far ahead, and other rounds. */
static int candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  int n = 0;
  clb_schedule first, s;
  const clb_convolution_settings *c = &first.convolution;
  schedule(p, limits, &first);
  clb_candidate_add(list, &n, &first);
  if (limits->simd) add_batches(p, &first, list, &n);
  else add_parts(p, limits, &first, list, &n);
  if (c->edges_per_subgroup) {
    s = with_parts(p, limits, c->components_per_part, c->nonzeros_per_part, 0, 0);
    clb_candidate_add(list, &n, &s);
  }
  for (int stages = c->pipeline_stages - 1; stages > 0; stages--)
    clb_candidate_with(list, &n, &first, CLB_FIELD(convolution.pipeline_stages),
                       stages > 1 ? stages : 0);
  int half = c->edges_per_round / 2, twice = 2 * c->edges_per_round;
  bool cuts_a_turn = c->edges_per_subgroup && half % c->edges_per_subgroup;
  if (c->edges_per_round > 1 && !c->edges_per_batch && !cuts_a_turn)
    clb_candidate_with(list, &n, &first, CLB_FIELD(convolution.edges_per_round), half);
  if (c->subgroups_per_row && twice <= 64)
    clb_candidate_with(list, &n, &first, CLB_FIELD(convolution.edges_per_round), twice);
  return n;
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "convolution of ");
  clb_kind_tensor_product.print(p, out);
}

const clb_kernel_kind clb_kind_convolution = {.name = "convolution",
                                              .check = check,
                                              .schedule = schedule,
                                              .lower = clb_convolution_lower,
                                              .print = print,
                                              .passes = 3,
                                              .settings = CLB_FIELD(convolution),
                                              .candidates = candidates};
