/* kernels/optimizer/gather.c - the first launch of rules of matrices: the mean of the gradients,
   and what products of matrices take. */
#include "kernels/optimizer/chunks.h"

typedef struct {
  clb_chunk_step s;
  ir_val gradients, state, matrices, gates; /* gates: with SOAP */
  ir_val g[CLB_MOST_PLACES][IR_MAX_WIDTH], m[CLB_MOST_PLACES][IR_MAX_WIDTH];
} gather;

static void load(void *user, const clb_elements *place, int n) {
  gather *g = user;
  for (int i = 0; i < n; i++) {
    clb_chunks_load(&g->s.c, g->gradients, CLB_CHUNK_GRADIENTS, &place[i], g->g[i]);
    clb_chunks_load(&g->s.c, g->state, CLB_CHUNK_STATE, &place[i], g->m[i]);
  }
}

static void start(void *user) { clb_chunk_step_start(user); }

static void finish(void *user, const clb_elements *place, int n) {
  gather *g = user;
  clb_chunks *c = &g->s.c;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < place->width; j++) {
      clb_rule_element e = {.gradient = g->g[i][j], .state = {g->m[i][j]}};
      if (g->s.factor != IR_NONE) e.gradient = ir_mul(c->k, e.gradient, g->s.factor);
      clb_rule_gather(&g->s.step, &e);
      g->g[i][j] = e.gradient;
      g->m[i][j] = e.state[0];
    }
  for (int i = 0; i < n; i++) {
    clb_chunks_store(c, g->state, CLB_CHUNK_STATE, &place[i], g->m[i]);
    clb_chunks_store(c, g->matrices, CLB_CHUNK_GATHERED, &place[i], g->g[i]);
    if (g->s.step.rule->rule == CLB_SOAP)
      clb_chunks_store(c, g->matrices, CLB_CHUNK_MEAN, &place[i], g->m[i]);
  }
}

static void write_gate(gather *g, ir_val gate) {
  ir_store(g->s.c.k, g->gates, g->s.c.chunk, g->s.c.first_lane, gate);
}

static ir_val number(gather *g, int64_t x) { return ir_int(g->s.c.k, IR_I32, x); }

/* The steps before this one say what it has to do. */
static void find_gate(gather *g) {
  ir_kernel *k = g->s.c.k;
  ir_val steps = g->s.steps, every = ir_cast(k, IR_I32, g->s.step.number[CLB_NUMBER_REFRESH]),
         due = ir_2(k, IR_EQ, ir_2(k, IR_MOD, steps, every), number(g, 0)),
         later = ir_select(k, due, number(g, CLB_GATE_REFRESH), number(g, CLB_GATE_STEP));
  write_gate(g, ir_select(k, g->s.step.first, number(g, CLB_GATE_FIRST), later));
}

static void one_rule(clb_chunk_step *s) {
  if (s->step.rule->rule == CLB_SOAP) find_gate((gather *)s);
  if (clb_optimizer_gathers(s->step.rule))
    clb_chunks_sweep(&s->c, &(clb_sweep){load, start, finish, s});
}

/* Of all chunks: nothing is done in this step. */
static void close_gates(gather *g) {
  if (!g->s.o->soap) return;
  clb_chunks_loop(&g->s.c);
  write_gate(g, number(g, CLB_GATE_REST));
  ir_end(g->s.c.k);
}

void clb_optimizer_lower_gather(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  gather g = {.s.o = &p->optimizer};
  clb_chunks_begin(&g.s.c, k, "optimizer_gather", p, s);
  clb_chunk_step_declare(&g.s, false);
  g.gradients = ir_buffer(k, clb_ir_type((clb_dtype)p->optimizer.gradients), false);
  g.state = ir_buffer(k, g.s.c.t, true);
  g.matrices = ir_buffer(k, clb_ir_type((clb_dtype)p->optimizer.matrices), true);
  if (p->optimizer.soap) g.gates = ir_buffer(k, IR_I32, true);
  clb_chunk_step_declare_sums(&g.s);
  clb_chunk_step_norm(&g.s);
  if (g.s.finite != IR_NONE) ir_if(k, g.s.finite);
  clb_chunks_loop(&g.s.c);
  clb_chunk_step_read(&g.s);
  clb_chunk_step_rules(&g.s, one_rule);
  ir_end(k);
  if (g.s.finite != IR_NONE) {
    ir_else(k);
    close_gates(&g);
    ir_end(k);
  }
  ir_finish(k);
}
