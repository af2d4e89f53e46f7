/* kernels/optimizer/moments.c - SOAP: second moments of rotated gradients, and the direction that
   they give the mean, which takes the place of the rotated gradient. */
#include "kernels/optimizer/chunks.h"

typedef struct {
  clb_chunk_step s;
  ir_val state, matrices;
  ir_val g[CLB_MOST_PLACES][IR_MAX_WIDTH], m[CLB_MOST_PLACES][IR_MAX_WIDTH],
      v[CLB_MOST_PLACES][IR_MAX_WIDTH];
} moments;

static void load(void *user, const clb_elements *place, int n) {
  moments *w = user;
  clb_chunks *c = &w->s.c;
  for (int i = 0; i < n; i++) {
    clb_chunks_load(c, w->matrices, CLB_CHUNK_ROTATED, &place[i], w->g[i]);
    clb_chunks_load(c, w->matrices, CLB_CHUNK_ROTATED_MEAN, &place[i], w->m[i]);
    clb_chunks_load(c, w->state, CLB_CHUNK_STATE + 1, &place[i], w->v[i]);
  }
}

static void finish(void *user, const clb_elements *place, int n) {
  moments *w = user;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < place->width; j++)
      clb_soap_moment(&w->s.step, w->g[i][j], w->m[i][j], &w->v[i][j], &w->g[i][j]);
    clb_chunks_store(&w->s.c, w->matrices, CLB_CHUNK_ROTATED, &place[i], w->g[i]);
    clb_chunks_store(&w->s.c, w->state, CLB_CHUNK_STATE + 1, &place[i], w->v[i]);
  }
}

/* The gate is open between the two numbers. */
static void one_rule(clb_chunk_step *s) {
  ir_kernel *k = s->c.k;
  if (s->step.rule->rule != CLB_SOAP) return;
  clb_chunk_step_read_numbers(s);
  ir_val gate = ir_load(k, s->counts, s->c.chunk, IR_NONE);
  ir_if(k, ir_2(k, IR_AND, ir_2(k, IR_LT, ir_int(k, IR_I32, (int64_t)CLB_GATE_REST), gate),
                ir_2(k, IR_LT, gate, ir_int(k, IR_I32, (int64_t)CLB_GATE_FIRST))));
  clb_chunks_sweep(&s->c, &(clb_sweep){load, NULL, finish, s});
  ir_end(k);
}

void clb_optimizer_lower_moments(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  moments w = {.s.o = &p->optimizer};
  clb_chunks_begin(&w.s.c, k, "optimizer_moments", p, s);
  w.s.numbers = ir_buffer(k, w.s.c.t, false);
  w.s.counts = ir_buffer(k, IR_I32, false); /* gates, in their place */
  w.state = ir_buffer(k, w.s.c.t, true);
  w.matrices = ir_buffer(k, w.s.c.t, true);
  w.s.step.k = k;
  w.s.step.t = w.s.c.t;
  clb_chunks_loop(&w.s.c);
  clb_chunk_step_rules(&w.s, one_rule);
  ir_end(k);
  ir_finish(k);
}
