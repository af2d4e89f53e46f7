/* kernels/layers/totals.c - sums over all rows in two stages and a fixed order: the energies of
   atoms, v_a g_b of edges; lanes are rows.

   PARTS: each of `partial_sums` sub-groups sums a block of rows, lane by lane, then over lanes:
   part[unit][column]. SUM: sums the parts of each column, which are dense. FEW, of few rows: both,
   by the sub-groups of one group. */
#include "kernels/common/team_sums.h"
#include "kernels/layers/layer.h"

enum {
  PARTS,
  SUM,
  ENERGY_BACKWARD,
  FEW,
  PASSES,
  GPU_PARTS = 64,
  CPU_PARTS = 4,
  TOGETHER = 4, /* parts per lane */
  TEAM = 32     /* sub-groups for few rows */
};

static int columns_of(const clb_problem *p) { return p->totals.what == CLB_TOTAL_ENERGY ? 1 : 9; }

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass != ENERGY_BACKWARD, s);
  if (p->pass == FEW) s->subgroups = limits->max_subgroups < TEAM ? limits->max_subgroups : TEAM;
  s->layer.partial_sums =
      p->pass == FEW ? s->subgroups : s->lanes * (limits->simd ? CPU_PARTS : GPU_PARTS);
  s->layer.wide_vectors = limits->simd;
}

/* ---- energies ---- */

typedef struct {
  ir_val species, offset, scale, shift; /* i32 numbers, starting at `offset`; tables */
} species;

static species declare_species(clb_row_kernel *b) {
  species s = {.species = ir_buffer(b->k, IR_I32, false)};
  s.offset = ir_scalar(b->k, IR_I64);
  s.scale = ir_buffer(b->k, b->t, false);
  s.shift = ir_scalar(b->k, IR_I64); /* offset of the shifts in the same buffer */
  return s;
}

static ir_val species_of(clb_row_kernel *b, const species *s, ir_val row, ir_val mask) {
  return ir_cast(b->k, IR_I64, ir_load(b->k, s->species, ir_add(b->k, s->offset, row), mask));
}

/* A result of atoms that may not be wanted. */
typedef struct {
  clb_row_array rows;
  ir_val wanted; /* i32 */
} optional;

static void store_if_wanted(clb_row_kernel *b, const optional *o, ir_val row, ir_val left,
                            ir_val value) {
  clb_layer_store(b, &o->rows, clb_layer_row(b, &o->rows, row), clb_i64(b->k, 0),
                  clb_wanted_lanes(b->k, o->wanted, left), value);
}

/* Stores the energy and its derivative by x. */
static ir_val add_energy(clb_row_kernel *b, const species *s, const clb_row_array *x,
                         const optional *e, const optional *g, ir_val row, ir_val mask,
                         ir_val left) {
  ir_kernel *k = b->k;
  ir_val number = species_of(b, s, row, mask), zero = clb_i64(k, 0);
  ir_val scale = ir_load(k, s->scale, number, mask),
         shift = ir_load(k, s->scale, ir_add(k, s->shift, number), mask);
  ir_val energy =
      ir_fma(k, scale, clb_layer_load(b, x, clb_layer_row(b, x, row), zero, mask), shift);
  store_if_wanted(b, e, row, left, energy);
  store_if_wanted(b, g, row, left, scale);
  return energy;
}

static void energy_backward(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel b;
  clb_layer_begin(&b, k, "energy_backward", s, p->arithmetic);
  clb_row_array g = clb_layer_array(&b, p->storage, true);
  species sp = declare_species(&b);
  ir_val rows = ir_scalar(k, IR_I64);
  clb_layer_start(&b);
  ir_val first = ir_mul(k, b.unit, clb_i64(k, s->lanes)),
         row = ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k)));
  ir_val mask =
      ir_2(k, IR_LT, ir_lane(k),
           ir_cast(k, IR_I32, ir_2(k, IR_MIN, ir_sub(k, rows, first), clb_i64(k, s->lanes))));
  clb_layer_store(&b, &g, clb_layer_row(&b, &g, row), clb_i64(k, 0), mask,
                  ir_load(k, sp.scale, species_of(&b, &sp, row, mask), mask));
  clb_layer_finish(&b);
}

/* ---- stages ---- */

static void store_part(clb_row_kernel *b, const clb_row_array *out, ir_val row, int column,
                       ir_val sum) {
  clb_layer_store(b, out, clb_layer_row(b, out, row), clb_i64(b->k, column), IR_NONE,
                  ir_reduce_add(b->k, sum));
}

/* Of all sub-groups. */
static void store_totals(clb_row_kernel *b, const clb_row_array *out, int columns,
                         const ir_val *sum) {
  clb_team_sums team;
  clb_team_begin(&team, b->k, b->t, 1);
  for (int i = 0; i < columns; i++) {
    ir_val all = ir_get(b->k, sum[i]);
    clb_team_sum(&team, b->k, &all, 1);
    store_part(b, out, clb_i64(b->k, 0), i, all);
    ir_end(b->k);
  }
  ir_finish(b->k);
}

static void parts(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool energy = p->totals.what == CLB_TOTAL_ENERGY, few = p->pass == FEW;
  static const char *const names[][2] = {{"virials", "virial_few"}, {"energies", "energy_few"}};
  int columns = columns_of(p);
  clb_row_kernel b;
  clb_layer_begin(&b, k, names[energy][few], s, p->arithmetic);
  clb_row_array x = clb_layer_array(&b, p->storage, false),
                y = clb_layer_array(&b, energy ? p->arithmetic : p->storage,
                                    energy); /* out, e_atom; v, g_v */
  species sp = {0};
  optional e = {y, IR_NONE}, g_x = e;
  if (energy) {
    g_x.rows = clb_layer_array(&b, p->storage, true);
    sp = declare_species(&b);
    e.wanted = ir_scalar(k, IR_I32);
    g_x.wanted = ir_scalar(k, IR_I32);
  }
  ir_val rows = ir_scalar(k, IR_I64), block = ir_scalar(k, IR_I64);
  clb_row_array out = clb_layer_array(&b, p->arithmetic, true);
  if (few) b.unit = ir_cast(k, IR_I64, ir_subgroup(k)); /* of one group: all come to its barriers */
  else clb_layer_start(&b);
  ir_val sum[9];
  for (int i = 0; i < columns; i++) sum[i] = ir_var(k, ir_real(k, b.t, 0), false);
  ir_val lanes = clb_i64(k, s->lanes), begin = ir_mul(k, b.unit, block),
         end = ir_2(k, IR_MIN, ir_add(k, begin, block), rows);
  ir_val first = ir_loop(k, begin, end, lanes),
         row = ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k)));
  ir_val left = ir_cast(k, IR_I32, ir_2(k, IR_MIN, ir_sub(k, end, first), lanes)),
         mask = ir_2(k, IR_LT, ir_lane(k), left);
  if (energy)
    ir_set(k, sum[0],
           ir_add(k, ir_get(k, sum[0]), add_energy(&b, &sp, &x, &e, &g_x, row, mask, left)));
  else {
    ir_val v[3], g[3];
    clb_layer_vector(&b, &x, row, mask, v);
    clb_layer_vector(&b, &y, row, mask, g);
    for (int i = 0; i < 9; i++) ir_set(k, sum[i], ir_fma(k, v[i / 3], g[i % 3], ir_get(k, sum[i])));
  }
  ir_end(k);
  if (few) {
    store_totals(&b, &out, columns, sum);
    return;
  }
  for (int i = 0; i < columns; i++) store_part(&b, &out, b.unit, i, ir_get(k, sum[i]));
  clb_layer_finish(&b);
}

static void sum_parts(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  int columns = columns_of(p);
  clb_row_kernel b;
  clb_layer_begin(&b, k, "total", s, p->arithmetic);
  ir_val parts = ir_buffer(k, b.t, false), sum[TOGETHER];
  clb_row_array out = clb_layer_array(&b, p->arithmetic, true);
  clb_layer_start(&b);
  for (int i = 0; i < TOGETHER; i++) sum[i] = ir_var(k, ir_real(k, b.t, 0), false);
  ir_val first = ir_loop(k, clb_i64(k, 0), clb_i64(k, s->layer.partial_sums),
                         clb_i64(k, (int64_t)TOGETHER * s->lanes));
  for (int i = 0; i < TOGETHER; i++) {
    ir_val part = ir_add(k, ir_add(k, first, clb_i64(k, (int64_t)i * s->lanes)),
                         ir_cast(k, IR_I64, ir_lane(k)));
    ir_set(k, sum[i],
           ir_add(k, ir_get(k, sum[i]),
                  ir_load(k, parts, ir_add(k, ir_mul(k, part, clb_i64(k, columns)), b.unit),
                          IR_NONE)));
  }
  ir_end(k);
  ir_val all = ir_add(k, ir_add(k, ir_get(k, sum[0]), ir_get(k, sum[1])),
                      ir_add(k, ir_get(k, sum[2]), ir_get(k, sum[3])));
  clb_layer_store(&b, &out, clb_layer_row(&b, &out, clb_i64(k, 0)), b.unit, IR_NONE,
                  ir_reduce_add(k, all));
  clb_layer_finish(&b);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static void (*const lowers[PASSES])(const clb_problem *, const clb_schedule *,
                                      ir_kernel *) = {parts, sum_parts, energy_backward, parts};
  lowers[p->pass](p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d columns", columns_of(p));
}

const clb_kernel_kind clb_kind_totals = {.name = "totals",
                                         .check = check,
                                         .schedule = schedule,
                                         .lower = lower,
                                         .print = print,
                                         .passes = PASSES};
