/* kernels/optimizer/update.c - the step itself: each chunk by its rule, with the clip factor, the
   average and the copy in the same pass. */
#include "kernels/optimizer/chunks.h"

/* The elements of a place. */
typedef struct {
  ir_val parameter[IR_MAX_WIDTH], gradient[IR_MAX_WIDTH], average[IR_MAX_WIDTH],
      state[CLB_OPTIMIZER_STATES][IR_MAX_WIDTH];
} elements;

typedef struct {
  clb_chunks c;
  const clb_optimizer_problem *o;
  ir_val numbers, powers, counts, parameters, gradients, copy, average, state[CLB_OPTIMIZER_STATES];
  ir_val decay, rest;             /* of the average: d and 1 - d as given */
  ir_val most, partials, n, norm; /* with SUMS */
  ir_val factor, finite;          /* of the gradients; whether they are, IR_NONE: not asked */
  ir_val now[CLB_POWERS], steps, skipped; /* what the chunk keeps, and its counts */
  ir_val follow;  /* how much of the way to the parameters the average goes */
  ir_val started; /* this is not the first step */
  clb_rule_step step;
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
  ir_kernel *k = u->c.k;
  const ir_type t = u->c.t;
  u->numbers = ir_buffer(k, t, false);
  u->powers = ir_buffer(k, t, true);
  u->counts = ir_buffer(k, IR_I32, true);
  u->parameters = ir_buffer(k, t, true);
  u->gradients = ir_buffer(k, clb_ir_type((clb_dtype)u->o->gradients), false);
  if (u->o->copies) u->copy = ir_buffer(k, clb_ir_type((clb_dtype)u->o->copy), true);
  if (u->o->ema) u->average = ir_buffer(k, t, true);
  for (int i = 0; i < most_states(u->o); i++) u->state[i] = ir_buffer(k, t, true);
  if (u->o->ema) {
    u->decay = ir_scalar(k, t);
    u->rest = ir_scalar(k, t);
  }
  if (!clb_optimizer_sums(u->o)) return;
  u->most = ir_scalar(k, t);
  u->partials = ir_buffer(k, t, false);
  u->n = ir_scalar(k, IR_I32);
  u->norm = ir_buffer(k, t, true);
}

/* ---- the gradients' norm ---- */

/* The sum of one of the two lists of partial sums, in an order that does not change. */
static ir_val total(update *u, int list) {
  ir_kernel *k = u->c.k;
  ir_val all = ir_var(k, ir_real(k, u->c.t, 0), false),
         i = ir_loop(k, i32(k, 0), u->n, i32(k, u->c.s->lanes)), at = ir_add(k, i, ir_lane(k)),
         mask = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, u->n, i));
  if (list) at = ir_add(k, at, u->n);
  ir_set(k, all, ir_add(k, ir_get(k, all), ir_load(k, u->partials, at, mask)));
  ir_end(k);
  return ir_reduce_add(k, ir_get(k, all));
}

static void read_norm(update *u) {
  ir_kernel *k = u->c.k;
  const ir_type t = u->c.t;
  ir_val one = ir_real(k, t, 1), zero = ir_real(k, t, 0);
  u->finite = u->factor = IR_NONE;
  if (!clb_optimizer_sums(u->o)) return;
  ir_val norm = ir_1(k, IR_SQRT, total(u, 0)), ratio;
  if (u->o->check_finite) u->finite = ir_2(k, IR_EQ, total(u, 1), zero);
  if (u->o->clip == CLB_CLIP_TORCH) { /* a norm of NaN makes the gradients NaN, as there */
    ratio = ir_2(k, IR_DIV, u->most, ir_add(k, norm, ir_real(k, t, 1e-6)));
    u->factor = ir_select(k, ir_2(k, IR_LE, one, ratio), one, ratio);
  } else if (u->o->clip == CLB_CLIP_OPTAX) {
    ratio = ir_2(k, IR_DIV, u->most, norm);
    u->factor = ir_select(k, ir_2(k, IR_LT, norm, u->most), one, ratio);
  }
  ir_if(k, ir_2(k, IR_EQ, clb_chunks_unit(&u->c), i32(k, 0)));
  ir_store(k, u->norm, i32(k, 0), IR_NONE, norm);
  ir_end(k);
}

/* ---- what the chunk keeps ---- */

/* Only one lane reads and writes, since lanes are not in step. */
static ir_val spread(update *u, ir_val of_first) {
  return ir_shuffle(u->c.k, of_first, i32(u->c.k, 0));
}

static void read_kept(update *u) {
  ir_kernel *k = u->c.k;
  const int width = clb_optimizer_width(u->c.p->storage);
  ir_val mine = u->c.first_lane, at = ir_mul(k, u->c.chunk, i32(k, (int64_t)CLB_POWERS)), v[4];
  for (int i = 0; i < CLB_POWERS; i += width)
    ir_load_aligned(k, u->powers, ir_add(k, at, i32(k, i)), mine, width, u->now + i);
  ir_load_aligned(k, u->counts, ir_mul(k, u->c.chunk, i32(k, (int64_t)CLB_COUNTS)), mine, 2, v);
  for (int i = 0; i < CLB_POWERS; i++) u->now[i] = spread(u, u->now[i]);
  u->steps = spread(u, v[0]);
  u->skipped = spread(u, v[1]);
}

static void write_counts(update *u, ir_val steps, ir_val skipped) {
  ir_kernel *k = u->c.k;
  ir_store_aligned(k, u->counts, ir_mul(k, u->c.chunk, i32(k, (int64_t)CLB_COUNTS)),
                   u->c.first_lane, 2, (ir_val[]){steps, skipped});
}

static void write_kept(update *u) {
  ir_kernel *k = u->c.k;
  const int width = clb_optimizer_width(u->c.p->storage);
  ir_val at = ir_mul(k, u->c.chunk, i32(k, (int64_t)CLB_POWERS));
  for (int i = 0; i < CLB_POWERS; i += width)
    ir_store_aligned(k, u->powers, ir_add(k, at, i32(k, i)), u->c.first_lane, width,
                     u->step.kept + i);
}

/* ---- elements ---- */

/* The next average, of one that was s and parameters that were `old` and are p. */
static ir_val averaged(update *u, ir_val s, ir_val old, ir_val p) {
  ir_kernel *k = u->c.k;
  s = ir_select(k, u->step.first, old, s);
  if (u->o->ema == CLB_EMA_CONSTANT)
    return ir_add(k, ir_mul(k, u->decay, s), ir_mul(k, u->rest, p));
  return ir_sub(k, s, ir_mul(k, u->follow, ir_sub(k, s, p)));
}

/* torch_ema: d = min(decay, (1 + t)/(10 + t)), so that 1 - d is the larger of two. */
static void prepare_average(update *u) {
  ir_kernel *k = u->c.k;
  const double more = u->o->ema == CLB_EMA_WARM_UP_FROM_0 ? 9 : 10;
  if (u->o->ema)
    u->follow = ir_2(
        k, IR_MAX, u->rest,
        ir_2(k, IR_DIV, ir_real(k, u->c.t, 9), ir_add(k, u->step.steps, ir_real(k, u->c.t, more))));
}

static void load(update *u, const clb_elements *at, elements *x) {
  clb_chunks *c = &u->c;
  clb_chunks_load(c, u->parameters, CLB_CHUNK_PARAMETERS, at, x->parameter);
  clb_chunks_load(c, u->gradients, CLB_CHUNK_GRADIENTS, at, x->gradient);
  for (int i = 0; i < clb_optimizer_states(u->step.rule); i++)
    clb_chunks_load(c, u->state[i], CLB_CHUNK_STATE + i, at, x->state[i]);
  if (!u->o->ema) return;
  clb_elements later = *at; /* before the first step nothing need be there */
  later.mask = at->mask == IR_NONE ? u->started : ir_2(c->k, IR_AND, u->started, at->mask);
  clb_chunks_load(c, u->average, CLB_CHUNK_AVERAGE, &later, x->average);
}

static void compute(update *u, int i, elements *x) {
  ir_val before = x->parameter[i];
  clb_rule_element e = {.parameter = before, .gradient = x->gradient[i]};
  if (u->factor != IR_NONE) e.gradient = ir_mul(u->c.k, e.gradient, u->factor);
  for (int j = 0; j < CLB_OPTIMIZER_STATES; j++) e.state[j] = x->state[j][i];
  clb_rule_apply(&u->step, &e);
  for (int j = 0; j < CLB_OPTIMIZER_STATES; j++) x->state[j][i] = e.state[j];
  x->parameter[i] = e.parameter;
  if (u->o->ema) x->average[i] = averaged(u, x->average[i], before, e.parameter);
}

static void store(update *u, const clb_elements *at, const elements *x) {
  clb_chunks *c = &u->c;
  clb_chunks_store(c, u->parameters, CLB_CHUNK_PARAMETERS, at, x->parameter);
  for (int i = 0; i < clb_optimizer_states(u->step.rule); i++)
    clb_chunks_store(c, u->state[i], CLB_CHUNK_STATE + i, at, x->state[i]);
  if (u->o->ema) clb_chunks_store(c, u->average, CLB_CHUNK_AVERAGE, at, x->average);
  if (u->o->copies) clb_chunks_store(c, u->copy, CLB_CHUNK_COPY, at, x->parameter);
}

static void load_all(void *user, const clb_elements *place, int n) {
  update *u = user;
  for (int i = 0; i < n; i++) load(u, &place[i], &u->x[i]);
}

static void start(void *user) {
  update *u = user;
  for (int i = 0; i < CLB_POWERS; i++) u->step.kept[i] = u->now[i];
  clb_rule_prepare(&u->step);
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

static void read_numbers(update *u) {
  ir_kernel *k = u->c.k;
  const int width = clb_optimizer_width(u->c.p->storage);
  ir_val at = ir_mul(k, ir_cast(k, IR_I32, u->c.at[CLB_CHUNK_GROUP]), i32(k, (int64_t)CLB_NUMBERS));
  for (int i = 0; i < CLB_NUMBERS; i += width)
    ir_load_aligned(k, u->numbers, ir_add(k, at, i32(k, i)), IR_NONE, width, u->step.number + i);
}

static void one_rule(update *u, const clb_optimizer_rule *rule) {
  u->step.rule = rule;
  clb_chunks_sweep(&u->c, &(clb_sweep){load_all, start, finish, u});
}

/* The chunk's rule and all of a higher number. */
static void rules_from(update *u, int i) {
  ir_kernel *k = u->c.k;
  const bool last = i == u->o->n_rules - 1;
  if (!last) ir_if(k, ir_2(k, IR_EQ, u->c.at[CLB_CHUNK_RULE], ir_int(k, IR_I64, i)));
  one_rule(u, &u->o->rule[i]);
  if (last) return;
  ir_else(k);
  rules_from(u, i + 1);
  ir_end(k);
}

void clb_optimizer_lower_update(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  update u = {.o = &p->optimizer};
  clb_chunks_begin(&u.c, k, "optimizer_step", p, s);
  declare(&u);
  read_norm(&u);
  clb_chunks_loop(&u.c);
  read_kept(&u);
  read_numbers(&u);
  u.step.k = k;
  u.step.t = u.c.t;
  u.step.first = ir_2(k, IR_EQ, u.steps, i32(k, 0));
  u.started = ir_1(k, IR_NOT, u.step.first);
  ir_val next = ir_add(k, u.steps, i32(k, 1));
  u.step.steps = ir_cast(k, u.c.t, next);
  if (u.finite != IR_NONE) ir_if(k, u.finite);
  rules_from(&u, 0);
  write_counts(&u, next, u.skipped);
  if (u.finite != IR_NONE) {
    ir_else(k);
    write_counts(&u, u.steps, ir_add(k, u.skipped, i32(k, 1)));
    ir_end(k);
  }
  ir_end(k);
  ir_finish(k);
}
