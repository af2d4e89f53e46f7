/* kernels/convolution/receiver_results.c - results of a convolution that belong to receivers: z,
   summed in registers over the edges of a row. */
#include "kernels/convolution/builder.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val i32(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val less(const clb_convolution *c, ir_val a, ir_val b) {
  return ir_2(c->f.k, IR_LT, a, b);
}

/* The sum of a component of z over the batches before. */
static ir_val sum_so_far(clb_convolution *c, int term, int i) {
  if (!c->s->edges_per_batch) return ir_real(of(c), c->f.t, 0);
  return ir_load(of(c), c->batch.sums, clb_batch_sum(c, term, i), c->unit.mask);
}

static void add_z(clb_convolution *c, const clb_path *p, int o) {
  ir_kernel *k = of(c);
  int width = clb_width(&c->f.tp->z.term[p->out]);
  bool in_memory = c->f.s->accumulate_in_memory, in_sums = in_memory && c->s->edges_per_batch;
  ir_val all[CLB_MAX_PER_LANE][MAX_M];
  for (int j = 0; j < c->unit.per_lane; j++) {
    ir_val *sum = all[j];
    clb_select_channel(c, j);
    clb_no_values(sum, MAX_M);
    for (int i = 0; i < width; i++)
      sum[i] = in_sums     ? sum_so_far(c, p->out, i)
               : in_memory ? IR_NONE
                           : ir_get(k, c->z[j][p->out][i]);
  }
  if (c->batch.n_products) clb_batch_add_z(c, p, o, all);
  for (int j = 0; j < c->unit.per_lane; j++) {
    ir_val *sum = all[j], *var = c->z[j][p->out];
    clb_select_channel(c, j);
    if (!c->batch.n_products) {
      clb_path_open(&c->builder[j], p, c->scale[p->out]);
      clb_path_z(&c->builder[j], o, sum);
    }
    for (int i = 0; i < width; i++)
      if (in_sums) ir_store(k, c->batch.sums, clb_batch_sum(c, p->out, i), c->unit.mask, sum[i]);
      else if (!in_memory) ir_set(k, var[i], sum[i]);
      else if (sum[i] != IR_NONE)
        sum[i] = ir_mul(k, sum[i], ir_real(k, c->f.t, c->scale[p->out][i]));
    if (in_memory && !in_sums)
      clb_form_put(&c->f, &c->f.out[o], p->out, c->unit.channel, c->unit.mask, sum, true);
  }
}

/* Sets results to 0 if each path adds to them in memory, unless the caller wants them added to. */
static void clear_part(clb_convolution *c, int part, int o) {
  ir_kernel *k = of(c);
  ir_val nothing[MAX_M];
  clb_no_values(nothing, MAX_M);
  ir_if(k, ir_1(k, IR_NOT, ir_2(k, IR_EQ, c->add, i32(c, 1))));
  for (int j = 0; j < c->parts.per_lane[part]; j++) {
    clb_select_channel(c, j);
    for (int t = 0; t < c->f.tp->z.n; t++)
      if (c->parts.of_z[t] == part)
        clb_form_put(&c->f, &c->f.out[o], t, c->unit.channel, c->unit.mask, nothing, false);
  }
  ir_end(k);
}

void clb_z_sums_begin(clb_convolution *c, int part) {
  const clb_irreps *z = &c->f.tp->z;
  for (int j = 0; j < c->parts.per_lane[part]; j++) {
    clb_select_channel(c, j);
    for (int t = 0; t < z->n; t++)
      for (int i = 0; i < clb_width(&z->term[t]) && c->parts.of_z[t] == part; i++)
        c->z[j][t][i] = ir_var(of(c), sum_so_far(c, t, i), false);
  }
}

static void walk_z(clb_convolution *c, int part, int o, ir_val first, ir_val last) {
  ir_kernel *k = of(c);
  if (c->f.s->accumulate_in_memory && !c->s->edges_per_batch) clear_part(c, part, o);
  if (!c->f.s->accumulate_in_memory) clb_z_sums_begin(c, part);
  if (c->stage.stages) clb_stage_open(&c->stage, c, part, first, last);
  ir_val edge_slot = clb_edge_loop_open(c, first, last);
  clb_edge_begin(c, edge_slot, last);
  if (c->s->edges_per_batch) clb_batch_prefetch(c, edge_slot);
  if (c->batch.n_products) clb_batch_select(&c->batch, c, ir_sub(k, edge_slot, first));
  if (c->frame.l) clb_frame_begin(c), clb_frame_to_z(c, part);
  for (int q = 0; q < c->f.tp->n_paths && !c->frame.l; q++)
    if (c->parts.of_z[c->f.tp->path[q].out] == part) add_z(c, &c->f.tp->path[q], o);
  if (c->stage.stages) clb_stage_next(&c->stage, c);
  clb_edge_loop_close(c);
}

/* The sum of a component over the slices of a sub-group. */
static ir_val sum_of_row(clb_convolution *c, int channel, int term, int i) {
  ir_kernel *k = of(c);
  ir_val sum = ir_get(k, c->z[channel][term][i]);
  for (int apart = c->unit.width; apart < c->f.s->lanes; apart *= 2)
    sum = ir_add(k, sum, ir_shuffle_xor(k, sum, apart));
  return sum;
}

/* Overwrites or adds, by the kernel's argument `add`. */
static void store_z(clb_convolution *c, int term, int o, ir_val v[][MAX_M], ir_val mask) {
  ir_kernel *k = of(c);
  ir_if(k, ir_2(k, IR_EQ, c->add, i32(c, 1)));
  clb_store_channels(c, o, term, NULL, v, mask, true);
  ir_else(k);
  clb_store_channels(c, o, term, NULL, v, mask, false);
  ir_end(k);
}

int clb_team_values(const clb_tensor_product_problem *tp, const clb_parts *parts) {
  int most = 0;
  for (int t = 0; t < tp->z.n; t++)
    if (parts->of_z[t] >= 0) {
      const int n = parts->per_lane[parts->of_z[t]] * clb_width(&tp->z.term[t]);
      if (n > most) most = n;
    }
  return most;
}

/* Opens what the first sub-group of a team does with a term's sums over all of them. */
static void sum_over_team(clb_convolution *c, int per_lane, int width, ir_val v[][MAX_M]) {
  ir_val all[CLB_MAX_PER_LANE * MAX_M];
  for (int i = 0; i < per_lane * width; i++) all[i] = v[i / width][i % width];
  clb_team_sum(&c->team, of(c), all, per_lane * width);
  for (int i = 0; i < per_lane * width; i++) v[i / width][i % width] = all[i];
}

void clb_z_sums_store(clb_convolution *c, int part, int o) {
  ir_kernel *k = of(c);
  c->team.used = false;
  for (int t = 0; t < c->f.tp->z.n; t++) {
    ir_val v[CLB_MAX_PER_LANE][MAX_M], mask = c->unit.mask;
    if (c->parts.of_z[t] != part) continue;
    for (int j = 0; j < c->parts.per_lane[part]; j++) {
      clb_select_channel(c, j);
      for (int i = 0; i < clb_width(&c->f.tp->z.term[t]); i++)
        v[j][i] = ir_mul(k, c->s->edges_per_batch ? sum_so_far(c, t, i) : sum_of_row(c, j, t, i),
                         ir_real(k, c->f.t, c->scale[t][i]));
    }
    if (c->unit.slice != IR_NONE) /* the first slice writes */
      mask = clb_and(k, mask, less(c, ir_lane(k), i32(c, c->unit.width)));
    if (c->s->team) sum_over_team(c, c->parts.per_lane[part], clb_width(&c->f.tp->z.term[t]), v);
    store_z(c, t, o, v, mask);
    if (c->s->team) ir_end(k);
  }
}

/* Terms without a path to them are 0. */
static void store_unreached(clb_convolution *c, int o) {
  ir_kernel *k = of(c);
  ir_val nothing[MAX_M];
  clb_no_values(nothing, MAX_M);
  for (int t = 0; t < c->f.tp->z.n; t++) {
    int mul = c->f.tp->z.term[t].mul, lanes = c->f.s->lanes;
    if (c->parts.of_z[t] >= 0 || !mul) continue;
    ir_val first = ir_mul(k, ir_loop(k, i32(c, 0), i32(c, (mul + lanes - 1) / lanes), i32(c, 1)),
                          i32(c, lanes)),
           lane = ir_add(k, first, ir_lane(k));
    clb_form_put(&c->f, &c->f.out[o], t, ir_cast(k, IR_I64, lane), less(c, lane, i32(c, mul)),
                 nothing, false);
    ir_end(k);
  }
}

/* One batch of edges after the other; local memory keeps the sums from one to the next. */
static void batches_of_z(clb_convolution *c, int o) {
  ir_kernel *k = of(c);
  clb_batch_clear(c, c->batch.sums, c->f.tp->z.dim);
  ir_val first = ir_loop(k, c->walk.first, c->walk.last, i32(c, c->s->edges_per_batch)),
         last = ir_2(k, IR_MIN, c->walk.last, ir_add(k, first, i32(c, c->s->edges_per_batch)));
  ir_barrier(k, false);
  if (c->batch.n_products) {
    ir_val edge_slot = ir_loop(k, first, last, i32(c, 1));
    clb_edge_begin(c, edge_slot, last);
    clb_batch_multiply(&c->batch, c, ir_sub(k, edge_slot, first));
    ir_end(k);
    ir_barrier(k, false);
  }
  for (int part = 0, next_role = 0; part < c->parts.n; part++) {
    bool opened = clb_part_open(c, part, &next_role);
    walk_z(c, part, o, first, last);
    for (int j = 0; j < c->unit.per_lane && !c->f.s->accumulate_in_memory; j++) {
      clb_select_channel(c, j);
      for (int t = 0; t < c->f.tp->z.n; t++)
        for (int i = 0; c->parts.of_z[t] == part && i < clb_width(&c->f.tp->z.term[t]); i++)
          ir_store(k, c->batch.sums, clb_batch_sum(c, t, i), c->unit.mask,
                   ir_get(k, c->z[j][t][i]));
    }
    if (opened) ir_end(k);
  }
  ir_end(k);
  ir_barrier(k, false);
}

/* Opens a row whose results are written: argument `add` may leave out rows without edges. */
void clb_z_rows_open(clb_convolution *c, int o) {
  ir_kernel *k = of(c);
  clb_rows_open(&c->f, &c->walk);
  ir_if(k, ir_2(k, IR_OR, less(c, c->add, i32(c, 2)), less(c, i32(c, 0), c->walk.count)));
  clb_form_row(&c->f, &c->f.out[o], c->walk.index);
}

void clb_z_rows_close(clb_convolution *c, int o) {
  ir_kernel *k = of(c);
  ir_val writes = ir_2(k, IR_EQ, c->unit.role, i32(c, 0));
  if (c->s->team) writes = ir_2(k, IR_AND, writes, ir_2(k, IR_EQ, ir_subgroup(k), i32(c, 0)));
  ir_if(k, ir_2(k, IR_AND, ir_1(k, IR_NOT, ir_2(k, IR_EQ, c->add, i32(c, 1))), writes));
  store_unreached(c, o);
  ir_end(k);
  ir_end(k);
  clb_rows_close(&c->f);
}

/* On a GPU: each role loops over the edges of its rows. */
static void roles_of_z(clb_convolution *c, int o) {
  for (int part = 0, next_role = 0; part < c->parts.n; part++) {
    bool opened = clb_part_open(c, part, &next_role);
    clb_z_rows_open(c, o);
    walk_z(c, part, o, c->walk.first, c->walk.last);
    if (!c->f.s->accumulate_in_memory) clb_z_sums_store(c, part, o);
    clb_z_rows_close(c, o);
    if (opened) ir_end(of(c));
  }
}

void clb_results_of_z(clb_convolution *c, int o) {
  int next_role = 0;
  if (c->s->roles) {
    roles_of_z(c, o);
    return;
  }
  clb_z_rows_open(c, o);
  if (c->s->edges_per_batch) {
    clb_batch_find_last_slot(&c->batch, c);
    batches_of_z(c, o);
  }
  for (int part = 0; part < c->parts.n; part++) {
    bool opened = clb_part_open(c, part, &next_role);
    if (!c->s->edges_per_batch) walk_z(c, part, o, c->walk.first, c->walk.last);
    if (c->s->edges_per_batch || !c->f.s->accumulate_in_memory) clb_z_sums_store(c, part, o);
    if (opened) ir_end(of(c));
  }
  clb_z_rows_close(c, o);
}
