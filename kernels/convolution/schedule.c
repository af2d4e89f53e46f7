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

/* As many edges ahead as local memory has room for, where copies are asynchronous. */
static void schedule_stages(const clb_problem *p, const clb_limits *limits, const clb_parts *parts,
                            clb_schedule *s) {
  int64_t bytes = ir_type_bytes(clb_ir_type((clb_dtype)p->storage)),
          size = bytes * s->subgroups * clb_stage_size(p, parts, s);
  int64_t shares = clb_wants_sums(p) ? 2 * (int64_t)s->edges * (s->units ? s->units : 1) *
                                           clb_y_columns(p) * bytes
                                     : 0;
  int64_t room = limits->most_local_bytes > limits->local_bytes ? limits->most_local_bytes
                                                                : limits->local_bytes;
  if (!limits->async_copies || p->storage > CLB_F32) return;
  s->stages = size ? (int)((room / (s->resident > 1 ? s->resident : 1) - shares) / size) : 0;
  s->stages = s->stages > MOST_STAGES ? MOST_STAGES : s->stages < 2 ? 0 : s->stages;
}

/* That a lane may use before fewer groups at a time cost more than spills; measured on an H200. */
static int registers_of(const clb_problem *p, int threads) {
  return p->arithmetic == CLB_F64 ? 255 : p->pass == CLB_FORWARD || threads >= 256 ? 128 : 168;
}

/* Units if every block of channels finds a sub-group, and they can add up gradients of y. */
static bool schedule_units(const clb_problem *p, const clb_limits *limits, clb_schedule *s,
                           clb_parts *parts) {
  clb_parts_make(&p->tensor_product, s->part, s->nonzeros, s->lanes, parts);
  int units = clb_parts_units(parts, s->lanes);
  if (limits->simd || !limits->subgroups || units < 1 || units > limits->max_subgroups)
    return false;
  s->units = s->subgroups = units;
  return true;
}

/* Edges whose rows, and those of as many to come, leave most of a core's second level free; parts
   of z take half of its vector registers. */
static void schedule_batch(const clb_problem *p, clb_schedule *s) {
  bool wide = s->lanes * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic)) >=
              64; /* 32 registers, not 16 */
  int edges = 8;
  while (edges > 4 && clb_batch_bytes(p, edges) > CACHE) edges /= 2;
  s->batch = s->edges = edges;
  s->part = wide ? 16 : 8;
}

/* As many slices as the narrowest part has room for, and whole turns of them. */
static void schedule_slices(const clb_limits *limits, const clb_parts *parts, clb_schedule *s) {
  int most = s->slices;
  s->slices = 0;
  for (int part = 0; part < parts->n && !limits->simd && limits->subgroups; part++) {
    int n = s->lanes /
            clb_slice_width(&(clb_schedule){.lanes = s->lanes, .slices = most}, parts->mul[part]);
    if (n > 1 && n > s->slices) s->slices = n;
  }
  if (s->slices) s->edges = (s->edges + s->slices - 1) / s->slices * s->slices;
}

/* Edges of which every lane keeps its share of the gradients of y. */
static int edges_kept(const clb_problem *p, int lanes, int columns) {
  int n = KEPT / (columns * (lanes + 1) * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic)));
  return n > 64 ? 64 : n < 1 ? 1 : n;
}

/* What follows from the parts' size; so many groups more at once. */
static void settle(const clb_problem *p, const clb_limits *limits, int more, clb_schedule *s) {
  clb_parts parts;
  int columns = clb_y_columns(p);
  if (!schedule_units(p, limits, s, &parts))
    clb_parts_make(&p->tensor_product, s->part, s->nonzeros, 0, &parts);
  s->edges = columns ? SHARES / (columns * (s->units ? s->units : 1)) : 1;
  s->edges = s->edges > 64 ? 64 : s->edges < 4 ? 4 : s->edges;
  if (!s->shuffles && columns) s->edges = edges_kept(p, s->lanes, columns);
  schedule_slices(limits, &parts, s);
  if (limits->simd && limits->subgroups) schedule_batch(p, s);
  s->resident =
      s->units
          ? REGISTERS / (registers_of(p, s->lanes * s->subgroups) * s->lanes * s->subgroups) + more
          : 0;
  if (s->resident < 0) s->resident = 0;
  schedule_stages(p, limits, &parts, s);
}

static clb_schedule with_parts(const clb_problem *p, const clb_limits *limits, int part,
                               int nonzeros, int more, int slices) {
  clb_schedule s = {.lanes = limits->lanes[p->arithmetic],
                    .subgroups = 1,
                    .shuffles = limits->subgroups,
                    .pairs = 1,
                    .part = part,
                    .nonzeros = nonzeros,
                    .slices = slices};
  settle(p, limits, more, &s);
  return s;
}

/* Time of a multiprocessor for a row, about: its units wait for the one that has most non-zeros,
   and an edge is some work by itself. */
static double time_of_row(const clb_problem *p, const clb_schedule *s) {
  clb_parts parts;
  if (!s->resident) return HUGE_VAL;
  clb_parts_make(&p->tensor_product, s->part, s->nonzeros, s->lanes, &parts);
  return (parts.nonzeros + (p->pass == CLB_FORWARD ? 80 : 300)) / (double)s->resident;
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
  const clb_schedule first = *s;
  bool even = first.units <= 2 || first.units == 4;
  for (int i = 0; i < 2 && !wide && !even; i++) {
    clb_schedule other = with_parts(p, limits, first.part * eighths[i] / 8,
                                    first.nonzeros * eighths[i] / 8, 0, MOST_SLICES);
    if (other.units && time_of_row(p, &other) < 0.95 * time_of_row(p, s)) *s = other;
  }
}

/* Larger and smaller parts, more and fewer groups at once, copies not as far ahead; on a CPU
   batches of other lengths. */
static int candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  static const int sizes[][2] = {{4, 0}, {4, 1}, {4, -1}, {2, 0}, {8, 0},
                                 {3, 0}, {6, 0}, {2, 1}}; /* quarters of a part; groups more */
  int n = 0;
  clb_schedule first, s;
  schedule(p, limits, &first);
  clb_candidate_add(list, &n, &first);
  for (int size = 2; size <= 8 && limits->simd; size *= 2)
    for (int batch = 4; batch <= 32; batch *= 2) {
      s = first;
      s.part = first.part * size / 4;
      if (first.batch) s.batch = s.edges = batch;
      if (!first.batch || clb_batch_bytes(p, batch) <= 2 * CACHE) clb_candidate_add(list, &n, &s);
    }
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !limits->simd; i++) {
    s = with_parts(p, limits, first.part * sizes[i][0] / 4, first.nonzeros * sizes[i][0] / 4,
                   sizes[i][1], MOST_SLICES);
    clb_candidate_add(list, &n, &s);
  }
  if (first.slices)
    s = with_parts(p, limits, first.part, first.nonzeros, 0, 0), clb_candidate_add(list, &n, &s);
  for (int stages = first.stages - 1; stages > 0; stages--)
    clb_candidate_with(list, &n, &first, CLB_FIELD(stages), stages > 1 ? stages : 0);
  if (first.edges > 1 && !first.batch && !(first.slices && first.edges / 2 % first.slices))
    clb_candidate_with(list, &n, &first, CLB_FIELD(edges), first.edges / 2);
  if (first.units && 2 * first.edges <= 64)
    clb_candidate_with(list, &n, &first, CLB_FIELD(edges), 2 * first.edges);
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
                                              .candidates = candidates};
