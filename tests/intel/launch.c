/* tests/intel/launch.c - a launch: payload, registers at the start, control flow, threads of a
   group interleaved at random. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/intel/registers.h"

enum { IDS_BYTES = 192, BEHIND_PAYLOAD = 256 }; /* of a thread's local ids; loads go beyond */
static uint64_t instructions;
uint64_t intel_instructions_run(void) { return instructions; }

void intel_fail(intel_thread *t, const intel_ins *i, const char *format, ...) {
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (t->state == MACHINE_FAILED) return;
  t->state = MACHINE_FAILED;
  snprintf(t->launch->error, t->launch->size, "pvc, %s, group %u, thread %d, at 0x%x, \"%s\": %s",
           t->launch->kernel->name, t->group->index, t->index, i->pc, i->text, what);
}

/* ---- control flow ---- */

void intel_run_unknown(intel_thread *t, const intel_ins *i) {
  intel_fail(t, i, "%s", i->wrong ? i->wrong : "the instruction, or this form of it, is not known");
}
void intel_run_nothing(intel_thread *t, const intel_ins *i) { (void)t, (void)i; }

void intel_run_jump(intel_thread *t, const intel_ins *i) {
  if (intel_mask(t, i) & 1) t->pc = i->jip;
}

/* Channels whose predicate is true leave, and wait at UIP. */
void intel_run_goto(intel_thread *t, const intel_ins *i) {
  uint32_t taken = intel_mask(t, i);
  for (int k = 0; k < i->lanes; k++)
    if (taken >> k & 1) t->waits_at[k] = i->uip;
  t->mask &= ~taken;
  if (!t->mask) t->pc = i->jip;
}

/* Channels that wait here come back. */
void intel_run_join(intel_thread *t, const intel_ins *i) {
  int32_t here = (int32_t)(i - t->launch->kernel->ins);
  for (int k = 0; k < i->lanes; k++)
    if (t->waits_at[k] == here) {
      t->mask |= 1u << k;
      t->waits_at[k] = -1;
    }
  if (!t->mask) t->pc = i->jip;
}

static void advance(void *thread, uint64_t steps) {
  intel_thread *t = thread;
  const intel_kernel *k = t->launch->kernel;
  uint64_t n = 0;
  for (; n < steps && t->state == MACHINE_RUNS; n++) {
    if (t->pc >= k->n_ins) {
      intel_fail(t, &k->ins[k->n_ins - 1], "nothing stands behind it");
      break;
    }
    const intel_ins *i = &k->ins[t->pc++];
    if (i->breaks_product) t->product_lanes = 0;
    if (i->writes[0]) intel_mark_result(t, i);
    if (t->to_zero) intel_towards_zero(t, i);
    else i->run(t, i);
  }
  instructions += n;
}

/* All threads wait for a barrier that some have not signalled. */
static void release(void *const *threads, int n) {
  for (int k = 0; k < n; k++) {
    intel_thread *t = threads[k];
    if (t->state != MACHINE_WAITS) continue;
    intel_fail(t, &t->launch->kernel->ins[t->pc], "%d of %d threads reach this barrier",
               t->group->arrived, n);
    return;
  }
}

/* ---- the start of a group ---- */

/* Bits that hardware does not define are rubbish, too. */
static void start(intel_thread *t, const uint32_t *junk) {
  const intel_launch *p = t->launch;
  uint64_t *random = p->random;
  size_t words = p->kernel->registers * INTEL_REGISTER / 4, others = (INTEL_BYTES - INTEL_ACC) / 4;
  memcpy(t->g, junk + machine_draw(random) % (MACHINE_JUNK - words), 4 * words);
  memcpy(t->g + INTEL_ACC, junk + machine_draw(random) % (MACHINE_JUNK - others), 4 * others);
  memcpy(t->flags, junk + machine_draw(random) % (MACHINE_JUNK - 4), sizeof t->flags);
  memset(t->flags_known, 0, sizeof t->flags_known);
  memset(t->extra_known, 0, sizeof t->extra_known);
  for (int k = 0; k < INTEL_LANES; k++) t->waits_at[k] = -1;
  t->mask = intel_all(INTEL_SUBGROUP);
  t->product_lanes = 0;
  t->to_zero = t->signalled = t->stored = false;
  t->turn = t->passed = 0;
  t->pc = 0;
  t->state = MACHINE_RUNS;
  t->block = NULL;
  memset(t->written, 0, sizeof t->written);
  t->written[0] = ~0ull;
  if (p->kernel->scratch_bytes) {
    memset(t->scratch, 0xee, intel_scratch_room(p->kernel));
    memset(t->scratch_written, 0, intel_scratch_room(p->kernel) / 8);
  }
  uint32_t r0[16], *r = r0;
  uint64_t x = machine_draw(random);
  memcpy(r0, t->g, sizeof r0);
  t->control = 0;
  t->payload_at = (uint32_t)(x & 0x3ffffc0) + 64;
  t->scratch_at = (uint32_t)(x >> 32) & 0x3ffffc00;
  r[0] = t->payload_at | (uint32_t)(x >> 58);
  r[1] = t->group->index;
  r[2] = (uint32_t)t->group->n << 24 | (r[2] & 0xffff00) | (uint32_t)t->index;
  r[5] = t->scratch_at;
  r[6] = r[7] = 0;
  memcpy(t->g, r0, sizeof r0);
}

static bool run_groups(const intel_launch *p, intel_group *g) {
  uint32_t *junk = machine_junk(p->random);
  machine_group order = {.n = g->n, .advance = advance, .release = release};
  bool good = junk != NULL;
  for (int k = 0; k < g->n; k++) {
    order.thread[k] = g->thread[k];
    order.state[k] = &g->thread[k]->state;
  }
  for (g->index = 0; good && g->index < p->groups; g->index++) {
    intel_local_start(g->local, g->turn);
    g->arrived = 0;
    g->turn = 0;
    for (int k = 0; k < g->n; k++) start(g->thread[k], junk);
    good = machine_run_group(&order, p->random);
  }
  free(junk);
  return good;
}

/* ---- a launch ---- */

static bool make_payload(intel_launch *p, uint32_t group_size, const void *const *values) {
  const intel_kernel *k = p->kernel;
  size_t shared = k->payload_bytes;
  p->payload_bytes = shared + (k->local_ids ? (size_t)p->threads * IDS_BYTES : 0) + BEHIND_PAYLOAD;
  unsigned char *at = p->payload = malloc(p->payload_bytes);
  if (!at) return snprintf(p->error, p->size, "%s: no memory for its payload", k->name), false;
  memset(at, 0xee, p->payload_bytes);
  for (int a = 0; a < k->n_arguments; a++) {
    const intel_argument *x = &k->arguments[a];
    const uint32_t group[3] = {group_size, 1, 1};
    if (x->what == ZEROS) memset(at + x->offset, 0, x->size);
    if (x->what == GROUP_SIZE && x->size <= sizeof group) memcpy(at + x->offset, group, x->size);
    if (x->what == ARGUMENT && x->size) memcpy(at + x->offset, values[x->index], x->size);
  }
  for (int n = 0; k->local_ids && n < p->threads; n++) /* x of the lanes; y and z are zeros */
    for (int lane = 0; lane < INTEL_SUBGROUP; lane++) {
      uint16_t ids[3] = {(uint16_t)(n * INTEL_SUBGROUP + lane), 0, 0};
      for (int axis = 0; axis < 3; axis++)
        memcpy(at + shared + n * IDS_BYTES + 64 * axis + 2 * lane, &ids[axis], 2);
    }
  return true;
}

static bool make_threads(const intel_launch *p, intel_group *g) {
  g->thread = calloc((size_t)p->threads, sizeof *g->thread);
  g->local = intel_local_new(p->kernel->local_bytes);
  for (int k = 0; g->thread && g->local && k < p->threads; k++, g->n++) {
    intel_thread *t = g->thread[k] = aligned_alloc(
        64, (sizeof *t + 63) & ~(size_t)63); /* registers are read 64 bytes at a time */
    if (!t) break;
    memset(t, 0, sizeof *t);
    t->scratch = malloc(intel_scratch_room(p->kernel) * 9 / 8 + 1u);
    t->scratch_written = t->scratch + intel_scratch_room(p->kernel);
    if (!t->scratch) {
      free(t);
      break;
    }
    t->launch = p;
    t->group = g;
    t->index = k;
  }
  if (g->n == p->threads) return true;
  snprintf(p->error, p->size, "%s: no memory for a group", p->kernel->name);
  return false;
}

static bool is_off(const char *variable) {
  const char *v = getenv(variable);
  return v && !strcmp(v, "off");
}

bool intel_run_kernel(const intel_kernel *k, uint32_t groups, uint32_t group_size,
                      const void *const *values, char *error, size_t size) {
  const char *seed = getenv("INTEL_EMULATOR_SEED");
  uint64_t random = seed ? strtoull(seed, NULL, 10) : 1;
  intel_launch p = {.kernel = k,
                    .groups = groups,
                    .threads = (int)(group_size / INTEL_SUBGROUP),
                    .random = &random,
                    .barriers = !is_off("INTEL_EMULATOR_BARRIERS"),
                    .races = !is_off("INTEL_EMULATOR_RACES"),
                    .error = error,
                    .size = size};
  intel_group g = {0};
  if (!group_size || group_size % INTEL_SUBGROUP || p.threads > MACHINE_MAX_THREADS ||
      (k->group_size && k->group_size != group_size))
    return snprintf(error, size, "%s: groups of %u work-items, compiled for %u", k->name,
                    group_size, k->group_size),
           false;
  bool good = make_payload(&p, group_size, values) && make_threads(&p, &g) && run_groups(&p, &g);
  for (int t = 0; t < g.n; t++) {
    free(g.thread[t]->scratch);
    free(g.thread[t]);
  }
  free(g.thread);
  intel_local_free(g.local);
  free(p.payload);
  return good;
}
