/* tensor_product.c - the Clebsch-Gordan tensor product: which of its bodies a problem gets, and with what schedule. */
#include <stdio.h>

#include "channels.h"
#include "product.h"

extern const clb_kernel_kind clb_tensor_product;

/* The code-size budget: a product with more non-zeros (of all paths together) is driven by tables. */
enum { MOST_UNROLLED = 4096 };

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
   where all blocks are alike they go to sub-groups of their own; sub-groups with unlike work would wait for each other. */
static void schedule_channel_wise(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  if (limits->simd) return;
  int units = count_blocks(tp, s->lanes), rows = units ? 128 / (s->lanes * units) : 32 / s->lanes, most = limits->max_subgroups;
  bool alike = units >= 1 && units <= 8 && units <= most;
  if (alike) s->units = units;
  s->shuffles = limits->subgroups;
  if (rows < 1 || !limits->subgroups) rows = 1; /* lanes that meet at a barrier of the whole group all have a row */
  s->subgroups = rows * (alike ? units : 1);
  if (s->subgroups > most) s->subgroups = alike ? units : most;
  int64_t element = p->storage == CLB_F64 ? 8 : 4, room = limits->local_bytes - limits->local_bytes / 8;
  bool z = p->pass == CLB_FORWARD || p->pass == CLB_DOUBLE_BACKWARD, mul_ir = tp->layout_z == CLB_MUL_IR;
  s->lockstep = alike && s->subgroups > 1 && p->pass == CLB_FORWARD;
  s->whole_rows = z && mul_ir && s->subgroups == units && tp->z.dim * element <= room;
  s->staged = z && mul_ir && !s->whole_rows && (alike || limits->subgroups) && s->subgroups * s->lanes * clb_widest(&tp->z) * element <= room;
}

/* Forward, with little to share among results, each result by itself needs fewer registers. */
static bool by_results(const clb_problem *p, const clb_limits *limits, int lanes, int64_t size) {
  int units = count_blocks(&p->tensor_product, lanes);
  bool plain = p->pass == CLB_FORWARD && p->tensor_product.layout_z == CLB_IR_MUL && p->tensor_product.layout_x == CLB_IR_MUL;
  return plain && !limits->simd && limits->subgroups && (!units || (units <= 2 && size <= 1000));
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1, .width = 1, .span = 1, .shuffles = 1};
  int most = most_channels(tp);
  int64_t size = clb_form_size(tp);
  bool channels = channel_wise(tp) && 4 * most > s->lanes && !by_results(p, limits, s->lanes, size);
  s->body = size > MOST_UNROLLED ? CLB_BODY_TABLE : channels ? CLB_BODY_CHANNEL_WISE : CLB_BODY_UNROLLED;
  while (s->span < most && s->span < s->lanes) s->span *= 2;
  if (s->body == CLB_BODY_CHANNEL_WISE) schedule_channel_wise(p, limits, s);
  else if (!limits->simd && limits->subgroups) s->subgroups = 128 / s->lanes > limits->max_subgroups ? limits->max_subgroups : 128 / s->lanes;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"tensor_product_forward", "tensor_product_backward", "tensor_product_double_backward", "tensor_product_triple_backward"};
  int rows = s->body == CLB_BODY_CHANNEL_WISE ? s->subgroups / (s->units ? s->units : 1) : s->subgroups * (s->lanes / s->span);
  ir_begin(k, names[p->pass], s->lanes, s->subgroups, rows);
  (s->body == CLB_BODY_CHANNEL_WISE ? clb_lower_channel_wise : clb_lower_general)(p, s, k);
  ir_finish(k);
}

static bool tables(const clb_problem *p, const clb_schedule *s, clb_tables *out) {
  clb_product_table t = {0};
  if (s->body == CLB_BODY_TABLE && !clb_product_table_make(&p->tensor_product, &t)) return false;
  *out = (clb_tables){t.number, t.real, t.n_numbers, t.n_reals};
  return true;
}

static void print_irreps(const clb_irreps *r, clb_text *out) {
  for (int i = 0; i < r->n; i++) clb_text_add(out, "%s%dx%d%c", i ? "+" : "", r->term[i].mul, r->term[i].l, r->term[i].parity > 0 ? 'e' : 'o');
}

static void print(const clb_problem *p, clb_text *out) {
  print_irreps(&p->tensor_product.x, out);
  clb_text_add(out, " (x) ");
  print_irreps(&p->tensor_product.y, out);
  clb_text_add(out, " -> ");
  print_irreps(&p->tensor_product.z, out);
  clb_text_add(out, ", %d paths", p->tensor_product.n_paths);
}

const clb_kernel_kind clb_tensor_product = {"tensor_product", check, schedule, lower, print, tables, 4};
