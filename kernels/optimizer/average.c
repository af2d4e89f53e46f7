/* kernels/optimizer/average.c - the averaged weights of schedule-free AdamW, whose parameters are
   y: x = y + (1 - 1 / beta1) (z - y). Parameters under other rules are copied. */
#include "kernels/optimizer/chunks.h"

typedef struct {
  clb_chunks c;
  ir_val parameters, average, z;
  ir_val weight; /* IR_NONE: copy */
  ir_val from[CLB_MOST_PLACES][IR_MAX_WIDTH], to[CLB_MOST_PLACES][IR_MAX_WIDTH];
} averaging;

static void load(void *user, const clb_elements *place, int n) {
  averaging *a = user;
  for (int i = 0; i < n; i++) {
    clb_chunks_load(&a->c, a->parameters, CLB_CHUNK_PARAMETERS, &place[i], a->from[i]);
    if (a->weight != IR_NONE)
      clb_chunks_load(&a->c, a->z, CLB_CHUNK_STATE + 1, &place[i], a->to[i]);
  }
}

static void finish(void *user, const clb_elements *place, int n) {
  averaging *a = user;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < place->width && a->weight != IR_NONE; j++)
      a->from[i][j] = clb_lerp(a->c.k, a->from[i][j], a->to[i][j], a->weight);
    clb_chunks_store(&a->c, a->average, CLB_CHUNK_AVERAGE, &place[i], a->from[i]);
  }
}

static void copy_others(averaging *a, const clb_optimizer_problem *o, ir_val free) {
  ir_kernel *k = a->c.k;
  bool others = false;
  for (int i = 0; i < o->n_rules; i++) others |= o->rule[i].rule != CLB_SCHEDULE_FREE_ADAMW;
  ir_val weight = a->weight;
  if (others) ir_if(k, free);
  clb_chunks_sweep(&a->c, &(clb_sweep){load, NULL, finish, a});
  if (!others) return;
  ir_else(k);
  a->weight = IR_NONE;
  clb_chunks_sweep(&a->c, &(clb_sweep){load, NULL, finish, a});
  a->weight = weight;
  ir_end(k);
}

void clb_optimizer_lower_average(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_optimizer_problem *o = &p->optimizer;
  averaging a;
  clb_chunks_begin(&a.c, k, "optimizer_average", p, s);
  ir_val numbers = ir_buffer(k, a.c.t, false), counts = ir_buffer(k, IR_I32, false);
  a.parameters = ir_buffer(k, a.c.t, false);
  a.average = ir_buffer(k, a.c.t, true);
  a.z = ir_buffer(k, a.c.t, false);
  clb_chunks_loop(&a.c);
  ir_val free = ir_int(k, IR_BOOL, 0), at = a.c.at[CLB_CHUNK_GROUP];
  for (int i = 0; i < o->n_rules; i++)
    if (o->rule[i].rule == CLB_SCHEDULE_FREE_ADAMW)
      free = ir_2(k, IR_OR, free, ir_2(k, IR_EQ, a.c.at[CLB_CHUNK_RULE], ir_int(k, IR_I64, i)));
  ir_val steps =
      ir_load(k, counts, ir_mul(k, a.c.chunk, ir_int(k, IR_I32, (int64_t)CLB_COUNTS)), IR_NONE);
  ir_val weight = ir_load(k, numbers,
                          ir_add(k, ir_mul(k, at, ir_int(k, IR_I64, (int64_t)CLB_NUMBERS)),
                                 ir_int(k, IR_I64, (int64_t)CLB_NUMBER_TO_AVERAGE)),
                          IR_NONE);
  a.weight = ir_select(k, ir_2(k, IR_EQ, steps, ir_int(k, IR_I32, 0)), ir_real(k, a.c.t, 0),
                       weight); /* before the first step z is not there yet */
  copy_others(&a, o, free);
  ir_end(k);
  ir_finish(k);
}
