/* kernels/tensor_product/schedule.c - the Clebsch-Gordan tensor product: choice of the variant and
   the schedule for a problem. */
#include <stdio.h>

#include "src/problem/irreps.h"
#include "kernels/tensor_product/channels.h"
#include "kernels/tensor_product/product.h"

/* The code-size budget: a product is driven by tables if its paths have more non-zeros in total, or
   if unrolling the pass takes more multiplications. On GPUs the limits are higher, except for
   forward in f64, because unrolling gains more (measured on an H200, l <= 4: 2 to 16 times,
   compiled in 2 to 15 s). */
typedef struct {
  int nonzeros, channel_wise, general;
} budget;

static budget budget_of(const clb_problem *p, const clb_limits *limits) {
  bool large = !limits->simd && (p->pass != CLB_FORWARD || p->arithmetic == CLB_F32);
  return large ? (budget){4200, 21000, 4200} : (budget){4096, 4096, 1536};
}

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

bool clb_is_channel_wise(const clb_tensor_product_problem *tp) {
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].mode != CLB_UVU || tp->y.term[tp->path[q].in2].mul != 1) return false;
  return tp->y.dim <= CLB_MAX_CHANNEL_WISE_Y;
}

/* The largest multiplicity of terms of x, y and z that a path uses. */
static int most_channels(const clb_tensor_product_problem *tp) {
  int most = 1;
  for (int q = 0; q < tp->n_paths; q++) {
    const clb_path *p = &tp->path[q];
    const int mul[] = {tp->x.term[p->in1].mul, tp->y.term[p->in2].mul, tp->z.term[p->out].mul};
    for (int i = 0; i < 3; i++)
      if (mul[i] > most) most = mul[i];
  }
  return most;
}

/* Number of blocks of channels if every path has the same multiplicity; else 0. */
static int count_blocks(const clb_tensor_product_problem *tp, int lanes) {
  int mul = tp->n_paths ? tp->x.term[tp->path[0].in1].mul : 0;
  for (int q = 1; q < tp->n_paths; q++)
    if (tp->x.term[tp->path[q].in1].mul != mul) return 0;
  return (mul + lanes - 1) / lanes;
}

/* Local memory of a group if results of z go through it. */
static int64_t stage_bytes(const clb_problem *p, const clb_schedule *s) {
  return (int64_t)s->subgroups * s->lanes * clb_widest(&p->tensor_product.z) *
         (p->storage == CLB_F64 ? 8 : 4);
}

static int widest(const clb_tensor_product_problem *tp) {
  int x = clb_widest(&tp->x), y = clb_widest(&tp->y), z = clb_widest(&tp->z);
  return x > y ? (x > z ? x : z) : y > z ? y : z;
}

/* Measured on an H200 (bench/results). In a loop over blocks compilers keep every product c y in a
   register across iterations, so if all blocks are alike each gets its own sub-group; sub-groups
   with unequal work would wait for each other. Sub-groups that write adjacent memory are fastest
   when they run together. */
static void schedule_channel_wise(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  clb_product_settings *t = &s->product;
  bool second = p->pass >= CLB_DOUBLE_BACKWARD,
       large = p->arithmetic == CLB_F64 && second && widest(tp) >= 11;
  t->component_pairs =
      p->pass >= CLB_BACKWARD && !large &&
      (s->lanes <= 32 || count_blocks(tp, s->lanes)); /* otherwise they spill, as when 64 lanes loop
                                                         over unequal blocks */
  if (limits->simd) { /* whole cache lines, although terms do not start on line
                         boundaries */
    t->shuffle_sums = limits->subgroups;
    bool odd = false;
    for (int q = 0; q < tp->n_paths; q++) odd |= tp->z.term[tp->path[q].out].mul % s->lanes != 0;
    t->whole_rows = odd && p->pass == CLB_FORWARD && tp->layout_z == CLB_IR_MUL &&
                    tp->z.dim * INT64_C(8) <= limits->local_bytes;
    return;
  }
  bool forward = p->pass == CLB_FORWARD, results = forward || p->pass == CLB_DOUBLE_BACKWARD;
  int units = count_blocks(tp, s->lanes), most = limits->max_subgroups,
      rows = units ? 128 / (s->lanes * units) : 32 / s->lanes;
  bool loops = tp->n_paths == 1 && clb_form_size(tp) > 150 && p->pass >= CLB_BACKWARD &&
               !large; /* keeping products c y pays off there */
  bool alike = units >= 1 && units <= 8 && units <= most && !loops;
  if (alike) t->subgroups_per_row = units;
  if (forward && units >= 2) rows = units == 3 ? 2 : 1;
  t->lockstep = alike && forward && units > 1;
  t->shuffle_sums = limits->subgroups && !(t->parity_pairs && p->pass == CLB_DOUBLE_BACKWARD &&
                                           p->arithmetic == CLB_F32);
  if (rows < 1 || !t->shuffle_sums || loops)
    rows = 1; /* all lanes that take part in a barrier of the group have a row */
  s->subgroups = rows * (alike ? units : 1);
  if (s->subgroups > most) s->subgroups = alike ? units : most;
  t->through_local = results && tp->layout_z == CLB_MUL_IR && (alike || limits->subgroups) &&
                     stage_bytes(p, s) <= limits->local_bytes / 2;
  t->recompute_products = t->parity_pairs ||
                          (p->pass >= CLB_DOUBLE_BACKWARD && (units == 0 || units > 2)) ||
                          (p->pass != CLB_FORWARD && s->lanes > 32);
}

/* In forward passes with unequal multiplicities or few channels, processing each result separately
 keeps more lanes busy. */
static bool by_results(const clb_problem *p, const clb_limits *limits, int lanes) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  bool plain = p->pass == CLB_FORWARD && tp->layout_z == CLB_IR_MUL && tp->layout_x == CLB_IR_MUL;
  return plain && !limits->simd && limits->subgroups && limits->registers > 128 &&
         count_blocks(tp, lanes) < 2;
}

/* Unrolled products c v v per non-zero in a pass. */
static int repeats(int variant, int pass) {
  return (const int[2][4]){{1, 2, 5, 13}, {1, 3, 8, 24}}[variant != CLB_VARIANT_CHANNEL_WISE][pass];
}

static int units_of_row(const clb_schedule *s) {
  return s->product.subgroups_per_row ? s->product.subgroups_per_row : 1;
}

/* Whether all results of a pass can be computed pair by pair. */
static bool has_pairs(const clb_problem *p, const clb_limits *limits) {
  return limits->subgroups && clb_goes_by_pairs(&p->tensor_product, limits->lanes[p->arithmetic],
                                                repeats(CLB_VARIANT_PAIRS, p->pass));
}

/* Settings that follow from the variant. */
static void settle(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_product_settings *t = &s->product;
  if (t->variant == CLB_VARIANT_TABLE) t->rows_per_lane = p->pass == CLB_FORWARD ? 4 : 2;
  if (t->variant == CLB_VARIANT_UNROLLED)
    t->weights_per_access = limits->simd && p->pass != CLB_FORWARD ? IR_MAX_WIDTH : 1;
  if (t->variant == CLB_VARIANT_PAIRS) t->lanes_per_row = s->lanes;
  if (t->variant == CLB_VARIANT_ROWS) t->lanes_per_row = 1;
  if (t->variant == CLB_VARIANT_CHANNEL_WISE) schedule_channel_wise(p, limits, s);
  else if (!limits->simd && limits->subgroups) s->subgroups = clb_usual_subgroups(limits, s->lanes);
}

static int64_t spelt(const clb_problem *p, const clb_schedule *s) {
  return clb_form_size(&p->tensor_product) * repeats(s->product.variant, p->pass) /
         (s->product.parity_pairs ? 2 : 1);
}

/* Whether the code-size budget allows that variant for the pass. */
static bool affords(const clb_problem *p, const clb_limits *limits, const clb_schedule *s) {
  budget most = budget_of(p, limits);
  if (s->product.variant == CLB_VARIANT_PAIRS) return has_pairs(p, limits);
  return s->product.variant == CLB_VARIANT_TABLE ||
         (clb_form_size(&p->tensor_product) <= most.nonzeros &&
          spelt(p, s) <=
              (s->product.variant == CLB_VARIANT_CHANNEL_WISE ? most.channel_wise : most.general));
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic],
                      .subgroups = 1,
                      .product = {.lanes_per_row = 1, .shuffle_sums = limits->subgroups}};
  clb_product_settings *t = &s->product;
  int most = most_channels(tp);
  t->variant = clb_is_channel_wise(tp) && 4 * most > s->lanes && !by_results(p, limits, s->lanes)
                   ? CLB_VARIANT_CHANNEL_WISE
                   : CLB_VARIANT_UNROLLED;
  bool tight =
      s->lanes > 32 || (p->arithmetic == CLB_F64 && !limits->simd); /* registers spill earlier */
  t->parity_pairs = t->variant == CLB_VARIANT_CHANNEL_WISE && spelt(p, s) > (tight ? 2000 : 2500) &&
                    clb_has_parity_pairs(tp);
  if (!affords(p, limits, s)) t->variant = CLB_VARIANT_TABLE;
  bool each = limits->simd || p->pass == CLB_BACKWARD || p->pass == CLB_DOUBLE_BACKWARD ||
              (p->pass == CLB_FORWARD && !tp->shared_weights);
  if (each && 4 * most > s->lanes && has_pairs(p, limits))
    t->variant = CLB_VARIANT_PAIRS; /* reads weights once, and in order */
  if (clb_goes_by_rows(p, p->pass, limits)) t->variant = CLB_VARIANT_ROWS;
  while (t->lanes_per_row < most && t->lanes_per_row < s->lanes) t->lanes_per_row *= 2;
  settle(p, limits, s);
}

/* ---- candidates ---- */

static void add_variant(const clb_problem *p, const clb_limits *limits, const clb_schedule *first,
                        int variant, clb_schedule *list, int *n) {
  clb_schedule s = {.lanes = first->lanes,
                    .subgroups = 1,
                    .product = {.variant = variant,
                                .lanes_per_row = first->product.lanes_per_row,
                                .shuffle_sums = limits->subgroups}};
  settle(p, limits, &s);
  if (affords(p, limits, &s)) clb_candidate_add(list, n, &s);
}

/* Adds a candidate with this number of rows per group, unless results then do not fit in local
   memory. */
static void add_rows(const clb_problem *p, const clb_limits *limits, const clb_schedule *first,
                     int rows, clb_schedule *list, int *n) {
  clb_schedule s = *first;
  s.subgroups = rows * units_of_row(&s);
  if (rows < 1 || s.subgroups > limits->max_subgroups || limits->simd || !limits->subgroups) return;
  if (!s.product.through_local || stage_bytes(p, &s) <= limits->local_bytes / 2)
    clb_candidate_add(list, n, &s);
}

static void add_channel_wise(const clb_problem *p, const clb_limits *limits,
                             const clb_schedule *first, clb_schedule *list, int *n) {
  const clb_product_settings *t = &first->product;
  clb_schedule s = *first;
  clb_candidate_with(list, n, first, CLB_FIELD(product.recompute_products), !t->recompute_products);
  if (p->pass >= CLB_BACKWARD)
    clb_candidate_with(list, n, first, CLB_FIELD(product.component_pairs), !t->component_pairs);
  if (t->lockstep) clb_candidate_with(list, n, first, CLB_FIELD(product.lockstep), 0);
  if (t->whole_rows) clb_candidate_with(list, n, first, CLB_FIELD(product.whole_rows), 0);
  if (t->through_local) clb_candidate_with(list, n, first, CLB_FIELD(product.through_local), 0);
  s.product.parity_pairs = !t->parity_pairs;
  if (affords(p, limits, &s) && clb_has_parity_pairs(&p->tensor_product))
    clb_candidate_add(list, n, &s);
  s = *first; /* sums through local memory, with one row per group, all of whose lanes take part */
  s.product.shuffle_sums = 0;
  s.subgroups = units_of_row(first);
  if (p->pass >= CLB_BACKWARD && t->shuffle_sums && limits->subgroups && !limits->simd)
    clb_candidate_add(list, n, &s);
  if (t->subgroups_per_row <= 1 || !limits->subgroups) return;
  s = *first; /* a single sub-group loops over the blocks */
  s.product.subgroups_per_row = s.product.lockstep = 0;
  add_rows(p, limits, &s, first->subgroups / t->subgroups_per_row, list, n);
  add_rows(p, limits, &s, 128 / s.lanes, list, n);
}

static int candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  int n = 0;
  clb_schedule first;
  const clb_product_settings *t = &first.product;
  schedule(p, limits, &first);
  clb_candidate_add(list, &n, &first);
  if (t->variant == CLB_VARIANT_ROWS)
    return n; /* the others have a row of gradients for each row */
  int rows = first.subgroups / units_of_row(&first);
  add_rows(p, limits, &first, 2 * rows, list, &n);
  add_rows(p, limits, &first, rows / 2, list, &n);
  if (t->variant == CLB_VARIANT_CHANNEL_WISE) add_channel_wise(p, limits, &first, list, &n);
  else if (clb_is_channel_wise(&p->tensor_product))
    add_variant(p, limits, &first, CLB_VARIANT_CHANNEL_WISE, list, &n);
  for (int r = 1; r <= CLB_TABLE_ROWS && t->variant == CLB_VARIANT_TABLE; r *= 2)
    clb_candidate_with(list, &n, &first, CLB_FIELD(product.rows_per_lane), r);
  if (t->lanes_per_row > 1 && t->variant != CLB_VARIANT_CHANNEL_WISE &&
      t->variant != CLB_VARIANT_PAIRS)
    clb_candidate_with(list, &n, &first, CLB_FIELD(product.lanes_per_row), t->lanes_per_row / 2);
  if (t->variant != CLB_VARIANT_UNROLLED)
    add_variant(p, limits, &first, CLB_VARIANT_UNROLLED, list, &n);
  if (t->variant != CLB_VARIANT_TABLE) add_variant(p, limits, &first, CLB_VARIANT_TABLE, list, &n);
  if (t->variant != CLB_VARIANT_PAIRS) add_variant(p, limits, &first, CLB_VARIANT_PAIRS, list, &n);
  return n;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"tensor_product_forward", "tensor_product_backward",
                                      "tensor_product_double_backward",
                                      "tensor_product_triple_backward"};
  const clb_product_settings *t = &s->product;
  bool channel_wise = t->variant == CLB_VARIANT_CHANNEL_WISE;
  int rows =
      channel_wise ? s->subgroups / units_of_row(s) : s->subgroups * (s->lanes / t->lanes_per_row);
  if (t->variant == CLB_VARIANT_TABLE) rows *= t->rows_per_lane;
  ir_begin(k, names[p->pass], s->lanes, s->subgroups, rows);
  (channel_wise                      ? clb_lower_channel_wise
   : t->variant == CLB_VARIANT_ROWS  ? clb_lower_rows
   : t->variant == CLB_VARIANT_PAIRS ? clb_lower_pairs
                                     : clb_lower_general)(p, s, k);
  ir_finish(k);
}

static bool reads_tables(const clb_schedule *s) { return s->product.variant == CLB_VARIANT_TABLE; }

static bool tables(const clb_problem *p, clb_tables *out) {
  clb_product_table t;
  if (!clb_product_table_make(&p->tensor_product, &t)) return false;
  *out = (clb_tables){t.number, t.real, t.n_numbers, t.n_reals};
  return true;
}

static void print(const clb_problem *p, clb_text *out) {
  clb_irreps_print(&p->tensor_product.x, out);
  clb_text_add(out, " (x) ");
  clb_irreps_print(&p->tensor_product.y, out);
  clb_text_add(out, " -> ");
  clb_irreps_print(&p->tensor_product.z, out);
  clb_text_add(out, ", %d paths", p->tensor_product.n_paths);
}

const clb_kernel_kind clb_kind_tensor_product = {.name = "tensor_product",
                                                 .check = check,
                                                 .schedule = schedule,
                                                 .lower = lower,
                                                 .print = print,
                                                 .reads_tables = reads_tables,
                                                 .tables = tables,
                                                 .passes = 4,
                                                 .settings = CLB_FIELD(product),
                                                 .candidates = candidates};
