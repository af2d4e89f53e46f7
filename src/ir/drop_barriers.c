/* src/ir/drop_barriers.c - removes barriers that order nothing. A barrier orders the accesses of
   its lanes to LOCAL arrays before it, back to a barrier at least as wide, and those after it, up
   to a barrier at least as wide. It is redundant if on no path an access before and an access after
   it are to the same array with at least one write. Barriers are removed one at a time: of two
   adjacent ones the second is then needed. */
#include "src/ir/barriers.h"

#include <stdlib.h>
#include <string.h>

/* The relevant part of the list: accesses to LOCAL arrays, barriers, and branches. */
typedef struct {
  ir_val at;
  ir_op op;
  int32_t array; /* the array of an access; else -1 */
  bool writes;
  int32_t way[2][2]; /* predecessors, successors; -1: none */
} event;

enum { BEFORE, AFTER };
enum { READ = 1, WRITTEN = 2 };

typedef struct {
  const ir_kernel *k;
  event *e;
  int32_t n, *array, n_arrays, *todo;
  unsigned char *seen, *done[2]; /* done: READ, WRITTEN by array */
} paths;

/* ---- events ---- */

static void add(paths *p, ir_val at, int32_t array, bool writes) {
  ir_op op = (ir_op)p->k->ins[at].op;
  p->e[p->n++] = (event){at, op, array, writes, {{-1, -1}, {-1, -1}}};
}

/* A COPY writes between its issue and, at the latest, its COPY_WAIT. */
static void add_arrivals(paths *p, ir_val at) {
  for (int32_t a = 0; a < p->n_arrays; a++)
    if (p->done[0][a]) add(p, at, a, true);
}

static int32_t array_of(const paths *p, const ir_ins *i) {
  bool access = i->op == IR_LOAD || i->op == IR_STORE || i->op == IR_ATOMIC_ADD || i->op == IR_COPY;
  return access ? p->array[i->arg[0]] : -1;
}

static bool control(ir_op op) {
  return op == IR_LOOP || op == IR_IF || op == IR_ELSE || op == IR_END;
}

static void find_events(paths *p) {
  const ir_kernel *k = p->k;
  for (ir_val v = 0; v < k->n; v++) p->array[v] = k->ins[v].op == IR_LOCAL ? p->n_arrays++ : -1;
  for (ir_val v = 0; v < k->n; v++)
    if (k->ins[v].op == IR_COPY) p->done[0][array_of(p, &k->ins[v])] = 1;
  for (ir_val v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    if (i->op == IR_COPY_WAIT) add_arrivals(p, v);
    else if (array_of(p, i) >= 0) add(p, v, array_of(p, i), i->op != IR_LOAD);
    else if (i->op == IR_BARRIER || control((ir_op)i->op)) add(p, v, -1, false);
  }
}

static void connect(paths *p, int32_t from, int32_t to) {
  if (to >= p->n) return;
  int32_t *after = p->e[from].way[AFTER], *before = p->e[to].way[BEFORE];
  after[after[0] >= 0] = to;
  before[before[0] >= 0] = from;
}

/* A LOOP continues at its first event or after its END, which goes back to the LOOP; an ELSE
   continues at the END. */
static void find_ways(paths *p) {
  int32_t *open = p->todo, depth = 0; /* events that opened blocks; for an IF with ELSE: both */
  for (int32_t e = 0; e < p->n; e++) {
    ir_op op = p->e[e].op;
    if (op == IR_LOOP || op == IR_IF) open[depth++] = e;
    if (op == IR_ELSE) {
      connect(p, open[depth - 1], e + 1);
      open[depth++] = e;
    } else if (op == IR_END) {
      int32_t by = open[--depth];
      bool loop = p->e[by].op == IR_LOOP;
      if (p->e[by].op == IR_ELSE) depth--;
      connect(p, loop ? e : by, loop ? by : e);
      connect(p, loop ? by : e, e + 1);
    } else connect(p, e, e + 1);
  }
}

/* ---- barriers ---- */

/* Collects the accesses to arrays before or after the barrier up to the next barrier at least as
   wide. */
static void reach(paths *p, int32_t barrier, int way) {
  int32_t n = 0;
  bool group = p->k->subgroups > 1 && p->k->ins[p->e[barrier].at].imm;
  memset(p->seen, 0, (size_t)p->n);
  memset(p->done[way], 0, (size_t)p->n_arrays);
  p->todo[n++] = barrier;
  while (n) {
    const event *e = &p->e[p->todo[--n]];
    if (e->array >= 0) p->done[way][e->array] |= e->writes ? WRITTEN : READ;
    for (int w = 0; w < 2; w++) {
      int32_t to = e->way[way][w];
      if (to < 0 || p->seen[to]) continue;
      p->seen[to] = 1;
      if (p->e[to].op != IR_BARRIER || (group && !p->k->ins[p->e[to].at].imm)) p->todo[n++] = to;
    }
  }
}

static bool idle(paths *p, int32_t barrier) {
  int64_t wide = p->k->ins[p->e[barrier].at].imm;
  if (wide == IR_RENDEZVOUS) return false;
  if (p->k->lanes == 1 && (!wide || p->k->subgroups == 1)) return true;
  reach(p, barrier, BEFORE);
  reach(p, barrier, AFTER);
  for (int32_t a = 0; a < p->n_arrays; a++)
    if (p->done[BEFORE][a] && p->done[AFTER][a] &&
        (p->done[BEFORE][a] | p->done[AFTER][a]) & WRITTEN)
      return false;
  return true;
}

static bool has_barriers(const ir_kernel *k, size_t *events) {
  bool has = false;
  size_t arrays = 0, waits = 0;
  for (ir_val v = 0; v < k->n; v++) {
    has |= k->ins[v].op == IR_BARRIER;
    arrays += k->ins[v].op == IR_LOCAL;
    waits += k->ins[v].op == IR_COPY_WAIT;
  }
  *events = (size_t)k->n + arrays * waits;
  return has;
}

bool ir_drop_barriers(ir_kernel *k) {
  size_t events, n = (size_t)k->n;
  if (!has_barriers(k, &events)) return true;
  paths p = {.k = k, .e = malloc(events * sizeof *p.e), .array = malloc(n * sizeof *p.array)};
  p.todo = malloc((events + 1) * sizeof *p.todo);
  p.seen = malloc(events);
  for (int way = 0; way < 2; way++) p.done[way] = calloc(n, 1);
  int32_t *live = malloc((n + 1) * sizeof *live);
  bool ok = p.e && p.array && p.todo && p.seen && p.done[0] && p.done[1] && live;
  if (ok) {
    find_events(&p);
    find_ways(&p);
    for (size_t v = 0; v < n; v++) live[v] = 1;
    for (int32_t e = 0; e < p.n; e++)
      if (p.e[e].op == IR_BARRIER && idle(&p, e)) {
        live[p.e[e].at] = 0;
        p.e[e].op = IR_OP_COUNT; /* control flow may pass */
      }
    ir_keep(k, live);
  }
  free(p.e);
  free(p.array);
  free(p.todo);
  free(p.seen);
  free(p.done[0]);
  free(p.done[1]);
  free(live);
  return ok;
}
