/* src/ir/interpreter/interpret.c - runs a kernel on this thread, one instruction at a time, lane by
   lane: this defines the meaning of the IR. A value is an array over lanes with 4 bytes per lane
   (bool is i32) or 8; a wide LOAD is `width` such arrays, and its ELEMENTs point into them. A
   sub-group runs to its next BARRIER, then the other sub-groups run, until all have reached a
   BARRIER of the group. */
#include "src/ir/ir.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/ir/interpreter/interpret.h"

bool ir_machine_wrong(const ir_machine *m, int32_t v, const char *format, ...) {
  va_list args;
  int used = snprintf(m->error, m->size, "instruction %d %s: ", (int)v,
                      ir_op_name((ir_op)m->k->ins[v].op));
  if (used < 0 || (size_t)used >= m->size) return false;
  va_start(args, format);
  vsnprintf(m->error + used, m->size - (size_t)used, format, args);
  va_end(args);
  return false;
}

/* ---- between lanes ---- */

static bool shuffle(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  const int32_t *lane = i->op == IR_SHUFFLE ? ir_machine_lanes(m, base, i->arg[1]) : NULL;
  const char *from = ir_machine_lanes(m, base, i->arg[0]);
  char *to = ir_machine_lanes(m, base, v);
  size_t bytes = (size_t)ir_type_bytes((ir_type)i->type);
  for (int32_t l = 0; l < m->k->lanes; l++) {
    int32_t source = lane ? lane[l] : l ^ (int32_t)i->imm;
    if (source < 0 || source >= m->k->lanes)
      return ir_machine_wrong(m, v, "lane %d of %d does not exist", (int)source, (int)m->k->lanes);
    memcpy(to + (size_t)l * bytes, from + (size_t)source * bytes, bytes);
  }
  return true;
}

static bool reduce(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  size_t bytes = (size_t)ir_type_bytes((ir_type)i->type);
  char *to = ir_machine_lanes(m, base, v);
  memcpy(to, ir_machine_lanes(m, base, i->arg[0]), (size_t)m->k->lanes * bytes);
  /* In each step lane l + d has the same value as lane l, because addition commutes. */
  for (int32_t d = m->k->lanes / 2; d; d /= 2)
    ir_lane_functions[IR_ADD][i->type](d, to, to, to + (size_t)d * bytes, NULL);
  for (int32_t l = 1; l < m->k->lanes; l++) memcpy(to + (size_t)l * bytes, to, bytes);
  return true;
}

/* ---- one instruction ---- */

static bool divisible(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  const void *by = ir_machine_lanes(m, base, i->arg[1]);
  for (int32_t l = 0; l < m->k->lanes; l++)
    if ((i->type == IR_I64 ? ((const int64_t *)by)[l] : ((const int32_t *)by)[l]) <= 0)
      return ir_machine_wrong(m, v, "the divisor of lane %d is not positive", (int)l);
  return true;
}

/* Whether the result of CAST v, of a float to an integer, fits in the integer. */
static bool fits(const ir_machine *m, char *base, int32_t v, ir_type from) {
  const ir_ins *i = &m->k->ins[v];
  const void *a = ir_machine_lanes(m, base, i->arg[0]);
  double end = i->type == IR_I32 ? 0x1p31 : 0x1p63;
  for (int32_t l = 0; l < m->k->lanes; l++) {
    double x = from == IR_F64 ? ((const double *)a)[l] : (double)((const float *)a)[l];
    if (!(trunc(x) >= -end && trunc(x) < end))
      return ir_machine_wrong(m, v, "%.17g of lane %d does not fit into %s", x, (int)l,
                              ir_type_name((ir_type)i->type));
  }
  return true;
}

static void assign(const ir_machine *m, char *base, ir_val to, ir_val from) {
  memcpy(ir_machine_lanes(m, base, to), ir_machine_lanes(m, base, from),
         (size_t)m->k->lanes * (ir_machine_wide((ir_type)m->k->ins[from].type) ? 8 : 4));
}

static void fill(const ir_machine *m, char *base, int32_t v, ir_arg x) {
  void *to = ir_machine_lanes(m, base, v);
  bool wide = ir_machine_wide((ir_type)m->k->ins[v].type);
  for (int32_t l = 0; l < m->k->lanes; l++)
    if (wide) memcpy((char *)to + 8 * l, &x, 8);
    else memcpy((char *)to + 4 * l, &x, 4);
}

/* Of the first operand of v; of SELECT the second. */
static ir_type operand_type(const ir_kernel *k, int32_t v) {
  const ir_ins *i = &k->ins[v];
  return i->arg[0] == IR_NONE ? IR_VOID : (ir_type)k->ins[i->arg[i->op == IR_SELECT]].type;
}

static bool good_operands(const ir_machine *m, char *base, int32_t v) {
  return m->k->ins[v].op == IR_CAST ? fits(m, base, v, operand_type(m->k, v))
                                    : divisible(m, base, v);
}

static ir_lane_loop loop_of(const ir_machine *m, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  const ir_type from = operand_type(m->k, v);
  const bool cast = i->op == IR_CAST;
  size_t at[3];
  for (int k = 0; k < 3; k++) at[k] = i->arg[k] == IR_NONE ? 0 : m->slot[i->arg[k]];
  return (ir_lane_loop){cast ? ir_lane_casts[from][i->type] : ir_lane_functions[i->op][from],
                        m->slot[v],
                        at[0],
                        at[1],
                        at[2],
                        cast ? ir_is_float(from) && ir_is_int((ir_type)i->type)
                             : (i->op == IR_DIV || i->op == IR_MOD) && ir_is_int(from)};
}

/* ---- control ---- */

static int64_t first_lane(const ir_machine *m, char *base, ir_val v) {
  const void *from = ir_machine_lanes(m, base, v);
  return m->k->ins[v].type == IR_I64 ? *(const int64_t *)from : *(const int32_t *)from;
}

static void count_to(const ir_machine *m, char *base, int32_t v, int64_t x) {
  fill(m, base, v, m->k->ins[v].type == IR_I64 ? (ir_arg){.i64 = x} : (ir_arg){.i32 = (int32_t)x});
}

/* The next instruction after the LOOP, IF, ELSE or END v; -1 after an error. */
static int32_t branch(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  if (i->op == IR_IF) return first_lane(m, base, i->arg[0]) ? v + 1 : m->jump[v] + 1;
  if (i->op == IR_ELSE) return m->jump[v] + 1;
  int32_t loop = i->op == IR_LOOP ? v : m->jump[v];
  if (loop == v && i->op == IR_END) return v + 1;
  const ir_val *a = m->k->ins[loop].arg;
  int64_t x = first_lane(m, base, i->op == IR_LOOP ? a[0] : loop), last = first_lane(m, base, a[1]),
          step = first_lane(m, base, a[2]);
  if (step <= 0) return ir_machine_wrong(m, loop, "step %" PRId64 " is not positive", step), -1;
  if ((i->op == IR_END && __builtin_add_overflow(x, step, &x)) || x >= last)
    return m->jump[loop] + 1;
  count_to(m, base, loop, x);
  return loop + 1;
}

static bool step(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  switch (i->op) {
    case IR_GROUP: return fill(m, base, v, (ir_arg){.i32 = (int32_t)m->group}), true;
    case IR_VAR:
    case IR_GET: return assign(m, base, v, i->arg[0]), true;
    case IR_SET: return assign(m, base, i->arg[0], i->arg[1]), true;
    case IR_LOAD: return ir_machine_load(m, base, v);
    case IR_STORE: return ir_machine_store(m, base, v);
    case IR_ATOMIC_ADD: return ir_machine_atomic_add(m, base, v);
    case IR_COPY: return ir_machine_copy(m, base, v);
    case IR_PREFETCH: return true;
    case IR_COPY_COMMIT: return ir_machine_queue(m, base)->batches++, true;
    case IR_COPY_WAIT: return ir_machine_wait(m, base, i->imm), true;
    case IR_SHUFFLE:
    case IR_SHUFFLE_XOR: return shuffle(m, base, v);
    case IR_REDUCE_ADD: return reduce(m, base, v);
    default: return true;
  }
}

/* Runs a sub-group to its next BARRIER or the end. */
static bool run_to_barrier(const ir_machine *m, int32_t subgroup) {
  char *base = m->values + m->bytes * (size_t)subgroup;
  const int32_t n = m->k->n, lanes = m->k->lanes;
  int32_t v = m->pc[subgroup];
  while (v < n) {
    const ir_lane_loop l = m->loop[v];
    if (l.f) {
      if (l.checks && !good_operands(m, base, v)) return false;
      l.f(lanes, base + l.to, base + l.a, base + l.b, base + l.c);
      v++;
      continue;
    }
    const ir_ins *i = &m->k->ins[v];
    if (i->op == IR_LOOP || i->op == IR_IF || i->op == IR_ELSE || i->op == IR_END)
      v = branch(m, base, v);
    else v = step(m, base, v) ? v + 1 : -1;
    if (v < 0) return false;
    if (i->op == IR_BARRIER) break;
  }
  m->pc[subgroup] = v;
  return true;
}

static bool run_group(const ir_machine *m) {
  int32_t subgroups = m->k->subgroups;
  memset(m->pc, 0, (size_t)subgroups * sizeof *m->pc);
  for (int32_t g = 0; g < subgroups; g++) m->queue[g].n = 0;
  ir_races_group(m->races);
  do {
    memset(m->met, 0, (size_t)subgroups * sizeof *m->met);
    for (int32_t met = 0, g = 0; met < subgroups; g = (g + 1) % subgroups) {
      if (m->met[g]) continue;
      if (!run_to_barrier(m, g)) return false;
      m->met[g] = m->pc[g] >= m->k->n || m->k->ins[m->pc[g] - 1].imm;
      if (!m->met[g]) ir_races_barrier(m->races, g, false);
      met += m->met[g];
    }
    for (int32_t g = 1; g < subgroups; g++)
      if (m->pc[g] != m->pc[0])
        return ir_machine_wrong(m, m->pc[g] - 1,
                                "sub-groups 0 and %d of group %" PRId64
                                " do not meet at the same BARRIER",
                                (int)g, m->group);
    ir_races_barrier(m->races, 0, true);
  } while (m->pc[0] < m->k->n);
  return true;
}

/* ---- before the first group ---- */

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Computes the offsets of values and arrays, the ends of blocks, and loops over lanes. */
static void lay_out(ir_machine *m) {
  const ir_kernel *k = m->k;
  int32_t open = IR_NONE;
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    size_t lane = ir_machine_wide((ir_type)i->type) ? 8 : 4;
    m->jump[v] = v;
    if (i->op == IR_ELSE || i->op == IR_END) {
      m->jump[open] = v;
      if (k->ins[open].op == IR_LOOP) m->jump[v] = open;
      open = k->ins[open].scope;
    }
    if (i->op == IR_LOOP || i->op == IR_IF || i->op == IR_ELSE) open = v;
    if (i->op == IR_LOCAL) {
      m->slot[v] = m->local_bytes;
      m->local_bytes += aligned((size_t)i->imm * (size_t)ir_type_bytes((ir_type)i->element));
    } else if (i->op == IR_ELEMENT) {
      m->slot[v] = m->slot[i->arg[0]] + (size_t)i->imm * (size_t)k->lanes * lane;
    } else if (i->type != IR_VOID) {
      m->slot[v] = m->bytes;
      m->bytes += aligned((size_t)k->lanes * (size_t)(i->width ? i->width : 1) * lane);
    }
    m->loop[v] = loop_of(m, v);
  }
}

/* Sets up arrays, and values that are the same in all groups. */
static void prepare(ir_machine *m, const ir_memory *memory) {
  const ir_arg *arg = m->arg;
  for (int32_t v = 0; v < m->k->n; v++) {
    const ir_ins *i = &m->k->ins[v];
    ir_arg x = {.i64 = i->imm};
    m->memory[v].bytes = INT64_MAX;
    if (i->op == IR_BUFFER && memory) m->memory[v] = memory[arg - m->arg];
    if (i->op == IR_BUFFER) m->array[v] = arg++->p;
    if (i->op == IR_LOCAL) {
      m->array[v] = m->local + m->slot[v];
      m->memory[v].bytes = (uint64_t)i->imm * (uint64_t)ir_type_bytes((ir_type)i->element);
    }
    if (i->op == IR_BUFFER || i->op == IR_LOCAL)
      m->elements[v] = (int64_t)(m->memory[v].bytes / (uint64_t)ir_type_bytes((ir_type)i->element));
    if (i->op == IR_SCALAR) x = *arg++;
    if (i->op == IR_INT && i->type != IR_I64) x = (ir_arg){.i32 = (int32_t)i->imm};
    if (i->op == IR_REAL)
      x = i->type == IR_F64 ? (ir_arg){.f64 = i->real} : (ir_arg){.f32 = (float)i->real};
    for (int32_t g = 0; g < m->k->subgroups; g++) {
      char *base = m->values + m->bytes * (size_t)g;
      if (i->op == IR_SCALAR || i->op == IR_INT || i->op == IR_REAL) fill(m, base, v, x);
      if (i->op == IR_SUBGROUP) fill(m, base, v, (ir_arg){.i32 = g});
      for (int32_t l = 0; l < m->k->lanes && i->op == IR_LANE; l++)
        ((int32_t *)ir_machine_lanes(m, base, v))[l] = l;
    }
  }
}

bool ir_run(const ir_kernel *k, const ir_arg *arg, const ir_memory *memory, int64_t first,
            int64_t last, char *error, size_t size) {
  ir_machine m = {.k = k, .arg = arg, .error = error, .size = size};
  size_t n = (size_t)k->n + 1;
  bool ok = false;
  snprintf(error, size, "no memory");
  m.slot = calloc(n, sizeof *m.slot);
  m.loop = calloc(n, sizeof *m.loop);
  m.jump = calloc(n, sizeof *m.jump);
  m.array = calloc(n, sizeof *m.array);
  m.memory = calloc(n, sizeof *m.memory);
  m.elements = calloc(n, sizeof *m.elements);
  m.at = calloc((size_t)k->lanes, sizeof *m.at);
  m.pc = calloc((size_t)k->subgroups, sizeof *m.pc);
  m.met = calloc((size_t)k->subgroups, sizeof *m.met);
  m.queue = calloc((size_t)k->subgroups, sizeof *m.queue);
  if (!m.slot || !m.loop || !m.jump || !m.array || !m.memory || !m.elements || !m.at || !m.pc ||
      !m.met || !m.queue)
    goto end;
  lay_out(&m);
  m.bytes += 64;
  m.values = calloc((size_t)k->subgroups, m.bytes);
  m.local = malloc(m.local_bytes + 64);
  m.races = ir_races_begin(k, arg);
  if (!m.values || !m.local || !m.races) goto end;
  if (size) error[0] = 0;
  prepare(&m, memory);
  for (ok = true, m.group = first; ok && m.group < last; m.group++) ok = run_group(&m);
end:
  free(m.slot);
  free(m.loop);
  free(m.jump);
  free(m.array);
  free(m.memory);
  free(m.elements);
  free(m.at);
  free(m.pc);
  free(m.met);
  for (int32_t g = 0; m.queue && g < k->subgroups; g++) free(m.queue[g].first);
  free(m.queue);
  ir_races_free(m.races);
  free(m.values);
  free(m.local);
  return ok;
}
