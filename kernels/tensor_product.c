/* tensor_product.c - the Clebsch-Gordan tensor product: which of its bodies a problem gets, and with what schedule. */
#include <stdio.h>

#include "../src/irreps.h"
#include "channels.h"
#include "product.h"

extern const clb_kernel_kind clb_tensor_product;

/* The code-size budget: a product is driven by tables where its paths have more non-zeros together, or where the pass would spell out
   more products of them. */
enum { MOST_NONZEROS = 4096, MOST_CHANNEL_WISE = 4096, MOST_GENERAL = 1536 };

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static bool channel_wise(const clb_tensor_product_problem *tp) {
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].mode != CLB_UVU || tp->y.term[tp->path[q].in2].mul != 1) return false;
  return tp->y.dim <= CLB_MAX_CHANNEL_WISE_Y;
}

/* Of x, y and z, where a path reaches them. */
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

/* Blocks of channels where every path has the same multiplicity; else 0. */
static int count_blocks(const clb_tensor_product_problem *tp, int lanes) {
  int mul = tp->n_paths ? tp->x.term[tp->path[0].in1].mul : 0;
  for (int q = 1; q < tp->n_paths; q++)
    if (tp->x.term[tp->path[q].in1].mul != mul) return 0;
  return (mul + lanes - 1) / lanes;
}

/* Measured on an H200 (bench/results).  A loop over blocks tempts compilers to keep every product c y in a register across it, so
   where all blocks are alike they go to sub-groups of their own; sub-groups with unlike work would wait for each other.  Sub-groups that
   write neighbouring memory do best at the same time. */
static void schedule_channel_wise(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  s->pairs = p->pass >= CLB_BACKWARD && (s->lanes <= 32 || count_blocks(tp, s->lanes)); /* 64 lanes that loop over unlike blocks would spill */
  if (limits->simd) { /* whole lines of memory, where no term begins on one */
    bool odd = false;
    for (int q = 0; q < tp->n_paths; q++) odd |= tp->z.term[tp->path[q].out].mul % s->lanes != 0;
    s->whole_rows = odd && p->pass == CLB_FORWARD && tp->layout_z == CLB_IR_MUL && tp->z.dim * INT64_C(8) <= limits->local_bytes;
    return;
  }
  bool forward = p->pass == CLB_FORWARD, results = forward || p->pass == CLB_DOUBLE_BACKWARD;
  int units = count_blocks(tp, s->lanes), most = limits->max_subgroups, rows = units ? 128 / (s->lanes * units) : 32 / s->lanes;
  bool alike = units >= 1 && units <= 8 && units <= most;
  if (alike) s->units = units;
  if (forward && units >= 2) rows = units == 3 ? 2 : 1;
  s->lockstep = alike && forward && units > 1;
  s->shuffles = limits->subgroups;
  if (rows < 1 || !limits->subgroups) rows = 1; /* lanes that meet at a barrier of the whole group all have a row */
  s->subgroups = rows * (alike ? units : 1);
  if (s->subgroups > most) s->subgroups = alike ? units : most;
  int64_t stage = (int64_t)s->subgroups * s->lanes * clb_widest(&tp->z) * (p->storage == CLB_F64 ? 8 : 4);
  s->staged = results && tp->layout_z == CLB_MUL_IR && (alike || limits->subgroups) && stage <= limits->local_bytes / 2;
  s->brief = s->twins || (p->pass >= CLB_DOUBLE_BACKWARD && (units == 0 || units > 2)) || (p->pass != CLB_FORWARD && s->lanes > 32);
}

/* Forward with unlike multiplicities or few channels, each result by itself keeps more lanes busy. */
static bool by_results(const clb_problem *p, const clb_limits *limits, int lanes) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  bool plain = p->pass == CLB_FORWARD && tp->layout_z == CLB_IR_MUL && tp->layout_x == CLB_IR_MUL;
  return plain && !limits->simd && limits->subgroups && limits->registers > 128 && count_blocks(tp, lanes) < 2;
}

/* Products c v v of non-zeros that a pass spells out, for each non-zero. */
static int repeats(int body, int pass) {
  return (const int[2][4]){{1, 2, 5, 13}, {1, 3, 8, 24}}[body == CLB_BODY_UNROLLED][pass];
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1, .width = 1, .span = 1, .shuffles = 1};
  int most = most_channels(tp);
  int64_t size = clb_form_size(tp), spelt;
  s->body = channel_wise(tp) && 4 * most > s->lanes && !by_results(p, limits, s->lanes) ? CLB_BODY_CHANNEL_WISE : CLB_BODY_UNROLLED;
  spelt = size * repeats(s->body, p->pass);
  bool tight = s->lanes > 32 || (p->arithmetic == CLB_F64 && !limits->simd); /* registers spill sooner */
  s->twins = s->body == CLB_BODY_CHANNEL_WISE && spelt > (tight ? 2000 : 2500) && clb_channel_wise_twins(tp);
  if (s->twins) spelt /= 2;
  if (size > MOST_NONZEROS || spelt > (s->body == CLB_BODY_CHANNEL_WISE ? MOST_CHANNEL_WISE : MOST_GENERAL)) s->body = CLB_BODY_TABLE;
  while (s->span < most && s->span < s->lanes) s->span *= 2;
  if (s->body == CLB_BODY_TABLE) s->width = p->pass == CLB_FORWARD ? 4 : 2;
  if (s->body == CLB_BODY_CHANNEL_WISE) schedule_channel_wise(p, limits, s);
  else if (!limits->simd && limits->subgroups) s->subgroups = 128 / s->lanes > limits->max_subgroups ? limits->max_subgroups : 128 / s->lanes;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"tensor_product_forward", "tensor_product_backward", "tensor_product_double_backward", "tensor_product_triple_backward"};
  int rows = s->body == CLB_BODY_CHANNEL_WISE ? s->subgroups / (s->units ? s->units : 1) : s->subgroups * (s->lanes / s->span) * s->width;
  ir_begin(k, names[p->pass], s->lanes, s->subgroups, rows);
  (s->body == CLB_BODY_CHANNEL_WISE ? clb_lower_channel_wise : clb_lower_general)(p, s, k);
  ir_finish(k);
}

static bool reads_tables(const clb_schedule *s) { return s->body == CLB_BODY_TABLE; }

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

const clb_kernel_kind clb_tensor_product = {"tensor_product", check, schedule, lower, print, reads_tables, tables, 4};
