/* kernels/grouped/product.c - the kind `grouped_product`: what all schedules share. */
#include "kernels/grouped/tile.h"

#include "kernels/common/rows.h"

static ir_val i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }
static ir_val wide(ir_kernel *k, ir_val x) { return ir_cast(k, IR_I64, x); }

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  return p->storage == p->arithmetic || p->arithmetic == CLB_F32
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_UNSUPPORTED,
                        "grouped products in double precision have double storage");
}

/* ---- schedule ---- */

enum { GROUP = 256, LARGEST_TILE = 32, PANEL_ROWS = 32, PANEL_VECTORS = 2, INTEL_REGISTERS = 128 };

static int lanes_of_tile(int tile) { return tile / CLB_GROUPED_BLOCK * (tile / CLB_GROUPED_BLOCK); }

/* The largest tile that all lanes of a group can share, each with its block. */
static int tile_of(int group) {
  int tile = LARGEST_TILE;
  while (tile > CLB_GROUPED_BLOCK && lanes_of_tile(tile) > group) tile /= 2;
  return tile;
}

static int64_t local_bytes(int group, int bytes) {
  const int tile = tile_of(group), stages = 4 * tile * (tile + CLB_GROUPED_PADDING),
            sums = group / lanes_of_tile(tile) * tile * tile;
  return (int64_t)bytes * ((stages > sums ? stages : sums) + group);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const int lanes = limits->lanes[p->arithmetic], bytes = p->arithmetic == CLB_F64 ? 8 : 4;
  *s = (clb_schedule){.lanes = lanes, .subgroups = 1};
  if (limits->simd) {
    s->grouped.rows = PANEL_ROWS;
    s->grouped.columns = PANEL_VECTORS * lanes;
    return;
  }
  while (2 * s->subgroups * lanes <= GROUP && 2 * s->subgroups <= limits->max_subgroups &&
         local_bytes(2 * s->subgroups * lanes, bytes) <= limits->local_bytes)
    s->subgroups *= 2;
  s->grouped.rows = s->grouped.columns = tile_of(s->subgroups * lanes);
  s->grouped.slices = s->subgroups * lanes / lanes_of_tile(s->grouped.rows);
  s->grouped.large_registers = p->arithmetic == CLB_F64 && limits->registers <= INTEL_REGISTERS;
}

/* ---- what a tile has to know ---- */

static void read_tile(clb_grouped_tile *b, ir_val tiles, ir_val products, ir_val reals) {
  ir_kernel *k = b->k;
  ir_val tile[CLB_TILE_COLUMNS], number;
  ir_load_aligned(k, tiles, ir_mul(k, ir_group(k), i32(k, (int64_t)CLB_TILE_COLUMNS)), IR_NONE,
                  CLB_TILE_COLUMNS, tile);
  b->row = tile[CLB_TILE_ROW];
  b->column = tile[CLB_TILE_COLUMN];
  b->mirrored = ir_2(k, IR_EQ, tile[CLB_TILE_MIRRORED], i32(k, 1));
  number = tile[CLB_TILE_PRODUCT];
  for (int i = 0; i < CLB_PRODUCT_COLUMNS; i += 2)
    ir_load_aligned(k, products,
                    ir_add(k, ir_mul(k, number, i32(k, (int64_t)CLB_PRODUCT_COLUMNS)), i32(k, i)),
                    IR_NONE, 2, b->at + i);
  for (int i = 0; i < CLB_PRODUCT_REALS; i += 2)
    ir_load_aligned(k, reals,
                    ir_add(k, ir_mul(k, number, i32(k, (int64_t)CLB_PRODUCT_REALS)), i32(k, i)),
                    IR_NONE, 2, b->real + i);
  b->m = ir_cast(k, IR_I32, b->at[CLB_PRODUCT_M]);
  b->n = ir_cast(k, IR_I32, b->at[CLB_PRODUCT_N]);
  b->depth = ir_cast(k, IR_I32, b->at[CLB_PRODUCT_K]);
}

/* The sum of the diagonal; each sub-group computes it, in the same order. */
static ir_val sum_diagonal(clb_grouped_tile *b) {
  ir_kernel *k = b->k;
  const int lanes = b->s->lanes, width = 16 / ir_type_bytes(b->t);
  ir_val mine = ir_var(k, ir_real(k, b->t, 0), false), lane = ir_lane(k);
  ir_val count = ir_cast(k, IR_I32, b->at[CLB_PRODUCT_DIAGONAL_COUNT]),
         first = ir_loop(k, i32(k, 0), count, i32(k, lanes)), number = ir_add(k, first, lane);
  ir_val place = ir_add(k, b->at[CLB_PRODUCT_DIAGONAL],
                        ir_mul(k, wide(k, number), b->at[CLB_PRODUCT_DIAGONAL_STEP]));
  ir_set(k, mine,
         ir_add(k, ir_get(k, mine),
                ir_load(k, b->in, place, ir_2(k, IR_LT, lane, ir_sub(k, count, first)))));
  ir_end(k);
  ir_val start = b->s->subgroups > 1 ? ir_mul(k, ir_subgroup(k), i32(k, lanes)) : i32(k, 0);
  ir_store(k, b->diagonal, ir_add(k, start, lane), IR_NONE, ir_get(k, mine));
  ir_barrier(k, false);
  ir_val sum = IR_NONE, part[4];
  for (int i = 0; i < lanes; i += width) {
    if (lanes < width)
      ir_load_wide(k, b->diagonal, ir_add(k, start, i32(k, i)), IR_NONE, lanes, part);
    else ir_load_aligned(k, b->diagonal, ir_add(k, start, i32(k, i)), IR_NONE, width, part);
    for (int j = 0; j < width && i + j < lanes; j++)
      sum = sum == IR_NONE ? part[j] : ir_add(k, sum, part[j]);
  }
  return sum;
}

static void find_scales(clb_grouped_tile *b) {
  static const int columns[] = {CLB_PRODUCT_SCALE_A, CLB_PRODUCT_SCALE_B, CLB_PRODUCT_SCALE_D};
  ir_val *const scales[] = {&b->scale_a, &b->scale_b, &b->scale_d};
  ir_kernel *k = b->k;
  ir_val norm = ir_1(k, IR_SQRT, sum_diagonal(b)), one = ir_real(k, b->t, 1);
  ir_val s = ir_2(
             k, IR_DIV, one,
             ir_add(k, ir_2(k, IR_MAX, norm, b->real[CLB_REAL_FLOOR]), b->real[CLB_REAL_EPSILON])),
         square = ir_mul(k, s, s);
  for (int i = 0; i < 3; i++) {
    ir_val power = b->at[columns[i]];
    *scales[i] = ir_select(k, ir_2(k, IR_EQ, power, ir_int(k, IR_I64, 2)), square,
                           ir_select(k, ir_2(k, IR_EQ, power, ir_int(k, IR_I64, 1)), s, one));
  }
}

/* ---- the kind ---- */

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool gated = p->grouped_product.gated;
  const ir_type storage = clb_ir_type((clb_dtype)p->storage);
  clb_grouped_tile b = {.k = k,
                        .s = s,
                        .t = clb_ir_type((clb_dtype)p->arithmetic),
                        .scale_a = IR_NONE,
                        .scale_b = IR_NONE,
                        .scale_d = IR_NONE};
  ir_begin(k, p->grouped_product.scaled ? "grouped_product_scaled" : "grouped_product", s->lanes,
           s->subgroups, 1);
  k->large_registers = s->grouped.large_registers;
  ir_val tiles = ir_buffer(k, IR_I32, false), products = ir_buffer(k, IR_I64, false),
         reals = ir_buffer(k, b.t, false);
  b.in = ir_buffer(k, storage, false);
  b.out = ir_buffer(k, storage, true);
  ir_val gates = gated ? ir_buffer(k, IR_I32, false) : IR_NONE,
         least = gated ? ir_scalar(k, IR_I32) : IR_NONE;
  if (p->grouped_product.scaled) b.diagonal = ir_local(k, b.t, (int64_t)s->lanes * s->subgroups);
  (s->grouped.slices ? clb_grouped_tiles_locals : clb_grouped_panels_locals)(&b);
  read_tile(&b, tiles, products, reals);
  if (gated) ir_if(k, ir_2(k, IR_LE, least, ir_load(k, gates, b.at[CLB_PRODUCT_GATE], IR_NONE)));
  if (p->grouped_product.scaled) find_scales(&b);
  (s->grouped.slices ? clb_grouped_tiles : clb_grouped_panels)(&b);
  if (gated) ir_end(k);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "C_i = alpha_i A_i B_i + beta_i D_i%s",
               p->grouped_product.scaled ? ", scaled by a norm" : "");
}

const clb_kernel_kind clb_kind_grouped_product = {.name = "grouped_product",
                                                  .check = check,
                                                  .schedule = schedule,
                                                  .lower = lower,
                                                  .print = print,
                                                  .passes = 1};
