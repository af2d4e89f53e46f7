/* kernels/optimizer/update.c - the step itself: each chunk by its rule, with the clip factor, the
   average and the copy in the same pass. */
#include "kernels/optimizer/chunks.h"

/* The elements of a place. */
typedef struct {
  ir_val parameter[IR_MAX_WIDTH], gradient[IR_MAX_WIDTH], average[IR_MAX_WIDTH],
      state[CLB_OPTIMIZER_STATES][IR_MAX_WIDTH];
} elements;

typedef struct {
  clb_chunk_step s;
  ir_val parameters, gradients, copy, average, state[CLB_OPTIMIZER_STATES], matrices;
  ir_val norms;       /* with SUMS */
  ir_val decay, rest; /* of the average: d and 1 - d as given */
  ir_val started;     /* this is not the first step */
  ir_val follow;      /* how much of the way to the parameters the average goes */
  elements x[CLB_MOST_PLACES];
} update;

static ir_val i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }

static int most_states(const clb_optimizer_problem *o) {
  int most = 0;
  for (int i = 0; i < o->n_rules; i++)
    if (clb_optimizer_states(&o->rule[i]) > most) most = clb_optimizer_states(&o->rule[i]);
  return most;
}

static void declare(update *u) {
  ir_kernel *k = u->s.c.k;
  const ir_type t = u->s.c.t;
  clb_chunk_step_declare(&u->s, true);
  u->parameters = ir_buffer(k, t, true);
  u->gradients = ir_buffer(k, clb_ir_type((clb_dtype)u->s.o->gradients), false);
  if (u->s.o->copies) u->copy = ir_buffer(k, clb_ir_type((clb_dtype)u->s.o->copy), true);
  if (u->s.o->ema) u->average = ir_buffer(k, t, true);
  for (int i = 0; i < most_states(u->s.o); i++) u->state[i] = ir_buffer(k, t, true);
  if (u->s.o->gathers) u->matrices = ir_buffer(k, clb_ir_type((clb_dtype)u->s.o->matrices), false);
  if (u->s.o->ema) {
    u->decay = ir_scalar(k, t);
    u->rest = ir_scalar(k, t);
  }
  clb_chunk_step_declare_sums(&u->s);
  if (clb_optimizer_sums(u->s.o)) u->norms = ir_buffer(k, t, true);
}

/* ---- what the chunk keeps ---- */

static void write_counts(update *u, ir_val steps, ir_val skipped) {
  ir_kernel *k = u->s.c.k;
  ir_store_aligned(k, u->s.counts, ir_mul(k, u->s.c.chunk, i32(k, (int64_t)CLB_COUNTS)),
                   u->s.c.first_lane, 2, (ir_val[]){steps, skipped});
}

static void write_kept(update *u) {
  ir_kernel *k = u->s.c.k;
  const int width = clb_optimizer_width(u->s.c.p->storage);
  ir_val at = ir_mul(k, u->s.c.chunk, i32(k, (int64_t)CLB_POWERS));
  for (int i = 0; i < CLB_POWERS; i += width)
    ir_store_aligned(k, u->s.powers, ir_add(k, at, i32(k, i)), u->s.c.first_lane, width,
                     u->s.step.kept + i);
}

/* ---- elements ---- */

/* The next average, of one that was s and parameters that were `old` and are p. */
static ir_val averaged(update *u, ir_val s, ir_val old, ir_val p) {
  ir_kernel *k = u->s.c.k;
  s = ir_select(k, u->s.step.first, old, s);
  if (u->s.o->ema == CLB_EMA_CONSTANT)
    return ir_add(k, ir_mul(k, u->decay, s), ir_mul(k, u->rest, p));
  return ir_sub(k, s, ir_mul(k, u->follow, ir_sub(k, s, p)));
}

/* torch_ema: d = min(decay, (1 + t)/(10 + t)), so that 1 - d is the larger of two. */
static void prepare_average(update *u) {
  ir_kernel *k = u->s.c.k;
  const double more = u->s.o->ema == CLB_EMA_WARM_UP_FROM_0 ? 9 : 10;
  if (u->s.o->ema)
    u->follow = ir_2(k, IR_MAX, u->rest,
                     ir_2(k, IR_DIV, ir_real(k, u->s.c.t, 9),
                          ir_add(k, u->s.step.steps, ir_real(k, u->s.c.t, more))));
}

/* Those of matrices are GATHER's. */
static int states_here(const update *u) {
  return clb_optimizer_gathers(u->s.step.rule) ? 0 : clb_optimizer_states(u->s.step.rule);
}

static void load(update *u, const clb_elements *at, elements *x) {
  clb_chunks *c = &u->s.c;
  clb_chunks_load(c, u->parameters, CLB_CHUNK_PARAMETERS, at, x->parameter);
  if (clb_optimizer_gathers(u->s.step.rule))
    clb_chunks_load(c, u->matrices, CLB_CHUNK_DIRECTION, at, x->gradient);
  else clb_chunks_load(c, u->gradients, CLB_CHUNK_GRADIENTS, at, x->gradient);
  for (int i = 0; i < states_here(u); i++)
    clb_chunks_load(c, u->state[i], CLB_CHUNK_STATE + i, at, x->state[i]);
  if (!u->s.o->ema) return;
  clb_elements later = *at; /* before the first step nothing need be there */
  later.mask = at->mask == IR_NONE ? u->started : ir_2(c->k, IR_AND, u->started, at->mask);
  clb_chunks_load(c, u->average, CLB_CHUNK_AVERAGE, &later, x->average);
}

static void compute(update *u, int i, elements *x) {
  ir_val before = x->parameter[i];
  clb_rule_element e = {.parameter = before, .gradient = x->gradient[i]};
  if (u->s.factor != IR_NONE && !clb_optimizer_gathers(u->s.step.rule))
    e.gradient = ir_mul(u->s.c.k, e.gradient, u->s.factor);
  for (int j = 0; j < CLB_OPTIMIZER_STATES; j++) e.state[j] = x->state[j][i];
  clb_rule_apply(&u->s.step, &e);
  for (int j = 0; j < CLB_OPTIMIZER_STATES; j++) x->state[j][i] = e.state[j];
  x->parameter[i] = e.parameter;
  if (u->s.o->ema) x->average[i] = averaged(u, x->average[i], before, e.parameter);
}

static void store(update *u, const clb_elements *at, const elements *x) {
  clb_chunks *c = &u->s.c;
  clb_chunks_store(c, u->parameters, CLB_CHUNK_PARAMETERS, at, x->parameter);
  for (int i = 0; i < states_here(u); i++)
    clb_chunks_store(c, u->state[i], CLB_CHUNK_STATE + i, at, x->state[i]);
  if (u->s.o->ema) clb_chunks_store(c, u->average, CLB_CHUNK_AVERAGE, at, x->average);
  if (u->s.o->copies) clb_chunks_store(c, u->copy, CLB_CHUNK_COPY, at, x->parameter);
}

static void load_all(void *user, const clb_elements *place, int n) {
  update *u = user;
  for (int i = 0; i < n; i++) load(u, &place[i], &u->x[i]);
}

static void start(void *user) {
  update *u = user;
  clb_chunk_step_start(&u->s);
  prepare_average(u);
  write_kept(u);
}

static void finish(void *user, const clb_elements *place, int n) {
  update *u = user;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < place->width; j++) compute(u, j, &u->x[i]);
  for (int i = 0; i < n; i++) store(u, &place[i], &u->x[i]);
}

/* ---- the kernel ---- */

static void one_rule(clb_chunk_step *s) {
  clb_chunks_sweep(&s->c, &(clb_sweep){load_all, start, finish, s});
}

/* By the sub-group that counts the steps of the first chunk. */
static void write_norm(update *u, ir_val norm) {
  ir_kernel *k = u->s.c.k;
  ir_val mine = ir_2(k, IR_LT, ir_lane(k), i32(k, 1)), done[2];
  if (norm == IR_NONE) return;
  ir_if(k, ir_2(k, IR_EQ, clb_chunks_unit(&u->s.c), i32(k, 0)));
  ir_load_aligned(k, u->s.counts, i32(k, 0), mine, 2, done);
  const ir_val steps = ir_add(k, ir_cast(k, IR_I64, done[0]), ir_cast(k, IR_I64, done[1]));
  ir_store(k, u->norms, ir_2(k, IR_MOD, steps, ir_int(k, IR_I64, CLB_NORMS)), mine, norm);
  ir_end(k);
}

void clb_optimizer_lower_update(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  update u = {.s.o = &p->optimizer};
  clb_chunks_begin(&u.s.c, k, "optimizer_step", p, s);
  declare(&u);
  write_norm(&u, clb_chunk_step_norm(&u.s));
  clb_chunks_loop(&u.s.c);
  clb_chunk_step_read(&u.s);
  u.started = ir_1(k, IR_NOT, u.s.step.first);
  if (u.s.finite != IR_NONE) ir_if(k, u.s.finite);
  clb_chunk_step_rules(&u.s, one_rule);
  write_counts(&u, ir_add(k, u.s.steps, i32(k, 1)), u.s.skipped);
  if (u.s.finite != IR_NONE) {
    ir_else(k);
    write_counts(&u, u.s.steps, ir_add(k, u.s.skipped, i32(k, 1)));
    ir_end(k);
  }
  ir_end(k);
  ir_finish(k);
}
