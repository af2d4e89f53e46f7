/* tests/intel/instructions/messages.c - send: what its comment says ("wr:2+0, rd:3;
   load.ugm.d32x3.a64"), and running it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "tests/intel/registers.h"

/* ---- reading ---- */

/* r12, r12:4, null, null:0 */
static bool register_of(const intel_kernel *k, const char *s, int16_t *number, int *registers) {
  unsigned at;
  int used = 0;
  *number = -1;
  *registers = -1;
  if (!strncmp(s, "null", 4)) {
    if (s[4] == ':') *registers = atoi(s + 5);
    return true;
  }
  if (sscanf(s, "r%u%n", &at, &used) != 1 || at >= k->registers) return false;
  *number = (int16_t)at;
  if (s[used] == ':') *registers = atoi(s + used + 1);
  else if (s[used]) return false;
  return true;
}

/* How many registers a component fills: fewer than 16 lanes take as many as 16. */
static int registers_of(int lanes, int bytes) {
  if (lanes < INTEL_SUBGROUP) lanes = INTEL_SUBGROUP;
  return (lanes * bytes + INTEL_REGISTER - 1) / INTEL_REGISTER;
}

/* load.ugm.d32x3t.a64.ca.ca.bti[255]: action, space, bits, extension, components, address. */
static bool access_of(const intel_ins *i, const char *s, intel_message *m) {
  unsigned bits = 0, extended = 0, components = 1;
  int used = 0;
  m->kind = BY_LANE;
  if (!strncmp(s, "load.", 5)) s += 5;
  else if (!strncmp(s, "store.", 6)) m->stores = 1, s += 6;
  else if (!strncmp(s, "atomic_fadd.", 12)) m->kind = ATOMIC, s += 12;
  else if (!strncmp(s, "atomic_iadd.", 12)) m->kind = ATOMIC, m->integer = 1, s += 12;
  else return false;
  if (!strncmp(s, "slm.", 4)) m->local = 1;
  else if (strncmp(s, "ugm.", 4) != 0) return false;
  if (sscanf(s += 4, "d%u%n", &bits, &used) != 1) return false;
  s += used;
  if (*s == 'u' && sscanf(s, "u%u%n", &extended, &used) == 1) s += used;
  if (*s == 'x' && sscanf(s, "x%u%n", &components, &used) == 1) s += used;
  bool block = *s == 't';
  s += block;
  m->bytes = (uint8_t)(bits / 8);
  m->register_bytes = (uint8_t)((extended ? extended : bits) / 8);
  m->components = (uint8_t)components;
  if (!(bits == 32 || bits == 64 || (bits == 16 && extended == 32)) || (extended && bits != 16) ||
      !components || components > 64)
    return false;
  if (block && (m->kind == ATOMIC || i->lanes != 1 || extended)) return false;
  if (block) m->kind = BLOCK;
  else if (components > 4 || (m->kind == ATOMIC && (components > 1 || extended))) return false;
  if (!strcmp(s, ".a32.ca.ca.bti[255]") && block && !m->local && !m->stores)
    return m->kind = PAYLOAD, true;
  size_t n = strlen(s); /* constants are loaded through the caches */
  if (!m->stores && n > 6 && !strcmp(s + n - 6, ".ca.ca")) return !strcmp(s, ".a64.ca.ca");
  return !strcmp(s, m->local ? ".a32" : ".a64");
}

static intel_lengths lengths_of(const intel_ins *i, const intel_message *m) {
  bool stores = m->stores || m->kind == ATOMIC, one = m->kind == BLOCK || m->kind == PAYLOAD,
       returns = !stores || (m->kind == ATOMIC && m->to >= 0);
  int each = registers_of(i->lanes, m->register_bytes),
      data = one ? (m->components * m->register_bytes + INTEL_REGISTER - 1) / INTEL_REGISTER
                 : m->components * each;
  if (m->kind == SCRATCH) data = m->components;
  if (m->kind == FENCE) return (intel_lengths){1, 0, 1};
  if (m->kind == SIGNAL || m->kind == END) return (intel_lengths){1, 0, 0};
  return (intel_lengths){.address =
                             one || m->local || m->kind == SCRATCH ? 1 : registers_of(i->lanes, 8),
                         .data = stores ? data : 0,
                         .to = returns ? data : 0};
}

static bool scratch_of(const char *s, const char *descriptor, intel_message *m) {
  unsigned hwords;
  int used = 0;
  m->kind = SCRATCH;
  m->stores = !strncmp(s, "write", 5);
  if (!m->stores && strncmp(s, "read", 4) != 0) return false;
  if (sscanf(s + (m->stores ? 5 : 4), " x%u%n", &hwords, &used) != 1 || hwords % 2 || !hwords ||
      hwords > 16)
    return false;
  m->components = (uint8_t)(hwords / 2);
  m->offset = (uint32_t)(strtoul(descriptor, NULL, 16) & 0xfff) * 32;
  return true;
}

static intel_run run_by_lane, run_block, run_payload, run_scratch, run_atomic, run_signal,
    run_fence, run_end, run_message;

bool intel_message_of(const intel_kernel *k, intel_ins *i, char *const *w, int n,
                      const char *comment, const char *options) {
  static intel_run *const runs[] = {
      [BY_LANE] = run_by_lane, [BLOCK] = run_block,   [PAYLOAD] = run_payload,
      [SCRATCH] = run_scratch, [ATOMIC] = run_atomic, [FENCE] = run_fence,
      [SIGNAL] = run_signal,   [END] = run_end};
  intel_message *m = &i->message;
  int wr = 0, wr1 = 0, rd = 0, to, address, data;
  const char *kind = i->name + 5, *what = strstr(comment, "; ");
  if (n != 5 || !what ||
      (sscanf(comment, " wr:%d+%d, rd:%d", &wr, &wr1, &rd) != 3 &&
       sscanf(comment, " wr:%dh+%d, rd:%d", &wr, &wr1, &rd) != 3)) /* h: with a header */
    return false;
  what += 2;
  if (!register_of(k, w[0], &m->to, &to) || !register_of(k, w[1], &m->address, &address) ||
      !register_of(k, w[2], &m->data, &data) || m->address < 0 || strncmp(w[3], "0x", 2) != 0 ||
      strncmp(w[4], "0x", 2) != 0)
    return false;
  m->to_registers = (uint8_t)rd;
  m->address_registers = (uint8_t)wr;
  m->data_registers = (uint8_t)wr1;
  if ((m->to >= 0) != (rd > 0) || (m->data >= 0) != (wr1 > 0) || (data >= 0 && data != wr1))
    return false;
  bool good = true;
  if (strstr(options, "EOT")) {
    m->kind = END;
    good = !strcmp(what, "end of thread");
  } else if (!strcmp(kind, "gtwy")) {
    m->kind = SIGNAL;
    good = !strcmp(what, "signal barrier");
  } else if (!strncmp(what, "fence.", 6)) {
    m->kind = FENCE;
    m->local = !strncmp(what, "fence.slm.", 10);
  } else if (!strcmp(kind, "dc0")) {
    good = !strncmp(what, "hword scratch block ", 20) && scratch_of(what + 20, w[4], m);
  } else {
    good = (!strcmp(kind, "ugm") || !strcmp(kind, "slm")) && access_of(i, what, m);
  }
  if (!good) return false;
  const intel_lengths needed = lengths_of(i, m);
  m->run = runs[m->kind];
  i->run = run_message;
  i->wrong = intel_misplaced(i, &needed, (uint32_t)strtoul(w[4], NULL, 16), k->registers);
  return !i->wrong;
}

static void run_message(intel_thread *t, const intel_ins *i) {
  if (!intel_in_place(t, i)) return;
  i->message.run(t, i);
  intel_mark_loaded(t, i);
}

/* ---- memory ---- */

/* Global memory, or local. Blocks and atomics lie at multiples of their size; numbers of lanes need
   not: the compiler merges two f16 at any even address into one number of 32 bits. */
static unsigned char *memory_at(intel_thread *t, const intel_ins *i, uint64_t address,
                                uint32_t bytes, bool writes) {
  char why[256];
  if (i->message.kind != BY_LANE && address % i->message.bytes) {
    intel_fail(t, i, "the address 0x%llx is no multiple of %d", (unsigned long long)address,
               i->message.bytes);
    return NULL;
  }
  if (i->message.local) return intel_local_access(t, i, (uint32_t)address, bytes, writes);
  const machine_block *b = t->block; /* of the last lane: nearly always this one's, too */
  uint64_t at = b ? address - (uint64_t)(uintptr_t)b->at : 0;
  if (b && at < b->bytes && bytes <= b->bytes - at && !(writes && b->constant))
    return (unsigned char *)b->at + at;
  unsigned char *p = machine_access(address, bytes, writes, &t->block, why, sizeof why);
  if (!p) intel_fail(t, i, "%s", why);
  return p;
}

static uint64_t address_of(const intel_thread *t, const intel_message *m, int lane) {
  uint64_t at = 0;
  size_t bytes = m->local ? 4 : 8;
  memcpy(&at, t->g + m->address * INTEL_REGISTER + (size_t)lane * bytes, bytes);
  return at;
}

/* Component c of 16 lanes lies in registers of its own. */
uint32_t intel_element_at(const intel_ins *i, int c, int lane) {
  const intel_message *m = &i->message;
  int first = (m->stores || m->kind == ATOMIC ? m->data : m->to) +
              c * registers_of(i->lanes, m->register_bytes);
  return (uint32_t)(first * INTEL_REGISTER + lane * m->register_bytes);
}

/* 2, 4 or 8 bytes, by moves. */
static inline void copy(unsigned char *to, const unsigned char *from, int bytes) {
  if (bytes == 4) memcpy(to, from, 4);
  else if (bytes == 8) memcpy(to, from, 8);
  else memcpy(to, from, 2);
}

static void run_by_lane(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  uint32_t lanes = intel_mask(t, i), total = (uint32_t)(m->bytes * m->components);
  uint64_t at[INTEL_LANES]; /* the result may overwrite the addresses */
  for (int k = 0; k < i->lanes; k++) at[k] = address_of(t, m, k);
  for (int k = 0; k < i->lanes; k++) {
    if (!(lanes >> k & 1)) continue;
    unsigned char *p = memory_at(t, i, at[k], total, m->stores);
    if (!p) return;
    for (int c = 0; c < m->components; c++, p += m->bytes) {
      unsigned char *e = t->g + intel_element_at(i, c, k);
      if (m->stores) copy(p, e, m->bytes);
      else copy(e, p, m->bytes);
      if (!m->stores && m->bytes < m->register_bytes) memset(e + 2, 0, 2);
    }
  }
}

/* One address, consecutive numbers into consecutive elements. */
static void run_block(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  uint32_t bytes = (uint32_t)m->bytes * m->components;
  if (!intel_mask(t, i)) return;
  unsigned char *p = memory_at(t, i, address_of(t, m, 0), bytes, m->stores);
  if (!p) return;
  if (m->stores) memcpy(p, t->g + m->data * INTEL_REGISTER, bytes);
  else memcpy(t->g + m->to * INTEL_REGISTER, p, bytes);
}

static void run_payload(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  uint32_t address, bytes = (uint32_t)m->bytes * m->components;
  memcpy(&address, t->g + m->address * INTEL_REGISTER, sizeof address);
  uint32_t at = address - t->payload_at;
  if (at > t->launch->payload_bytes || bytes > t->launch->payload_bytes - at)
    intel_fail(t, i, "byte %u of a payload of %zu", at, t->launch->payload_bytes);
  else memcpy(t->g + m->to * INTEL_REGISTER, t->launch->payload + at, bytes);
}

/* Intel's compiler fills registers in blocks, and the last one may end behind the scratch. */
static void run_scratch(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  uint32_t bytes = (uint32_t)m->components * INTEL_REGISTER, header;
  memcpy(&header, t->g + m->address * INTEL_REGISTER + 20, sizeof header);
  if (header != t->scratch_at) intel_fail(t, i, "the header's scratch address is not that of r0.5");
  else if (intel_mask(t, i) != intel_all(i->lanes)) intel_fail(t, i, "with channels off");
  else if (m->offset + (m->stores ? bytes : 1) > t->launch->kernel->scratch_bytes)
    intel_fail(t, i, "byte %u of %u of scratch", m->offset + bytes,
               t->launch->kernel->scratch_bytes);
  else if (m->stores) memcpy(t->scratch + m->offset, t->g + m->data * INTEL_REGISTER, bytes);
  else memcpy(t->g + m->to * INTEL_REGISTER, t->scratch + m->offset, bytes);
  if (t->state != MACHINE_FAILED) intel_mark_scratch(t, i);
}

/* ---- atomics: the lanes one after another, in any order ---- */

static void add_to(unsigned char *p, const unsigned char *e, const intel_message *m) {
  if (m->integer) {
    uint64_t x = 0, y = 0;
    memcpy(&x, p, m->bytes);
    memcpy(&y, e, m->bytes);
    x += y;
    memcpy(p, &x, m->bytes);
  } else if (m->bytes == 4) {
    float x, y;
    memcpy(&x, p, sizeof x);
    memcpy(&y, e, sizeof y);
    x += y;
    memcpy(p, &x, sizeof x);
  } else {
    double x, y;
    memcpy(&x, p, sizeof x);
    memcpy(&y, e, sizeof y);
    x += y;
    memcpy(p, &x, sizeof x);
  }
}

static void run_atomic(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  uint32_t lanes = intel_mask(t, i);
  unsigned char old[INTEL_LANES][8];
  int first = (int)(machine_draw(t->launch->random) % i->lanes);
  for (int n = 0; n < i->lanes; n++) {
    int k = (first + n) % i->lanes;
    if (!(lanes >> k & 1)) continue;
    unsigned char *p = memory_at(t, i, address_of(t, m, k), m->bytes, true);
    if (!p) return;
    memcpy(old[k], p, m->bytes);
    add_to(p, t->g + intel_element_at(i, 0, k), m);
  }
  for (int k = 0; m->to >= 0 && k < i->lanes; k++)
    if (lanes >> k & 1) memcpy(t->g + m->to * INTEL_REGISTER + k * m->bytes, old[k], m->bytes);
}

/* ---- fences, barriers, the end ---- */

static void run_fence(intel_thread *t, const intel_ins *i) {
  if (i->message.local) t->stored = false;
}

static void run_end(intel_thread *t, const intel_ins *i) {
  (void)i;
  t->state = MACHINE_ENDED;
}

/* The header's r.2 has the number of threads twice. */
static void run_signal(intel_thread *t, const intel_ins *i) {
  intel_group *g = t->group;
  uint32_t header;
  memcpy(&header, t->g + i->message.address * INTEL_REGISTER + 8, sizeof header);
  if (header >> 24 != (uint32_t)g->n || (header >> 16 & 255) != (uint32_t)g->n)
    intel_fail(t, i, "a barrier of %u and %u threads in a group of %d", header >> 24,
               header >> 16 & 255, g->n);
  else if (t->signalled) intel_fail(t, i, "it has signalled this barrier before");
  else if (t->stored && t->launch->races)
    intel_fail(t, i, "it stored to local memory, and no fence follows");
  t->signalled = true;
  t->turn = g->turn;
  if (++g->arrived < g->n) return;
  g->arrived = 0;
  g->turn++;
  for (int k = 0; k < g->n; k++)
    if (g->thread[k]->state == MACHINE_WAITS) g->thread[k]->state = MACHINE_RUNS;
}

void intel_run_barrier(intel_thread *t, const intel_ins *i) {
  if (!t->signalled) {
    intel_fail(t, i, "it waits for a barrier that it did not signal");
    return;
  }
  if (t->group->turn == t->turn && t->launch->barriers) {
    t->state = MACHINE_WAITS;
    t->pc--; /* again, when all have signalled */
    return;
  }
  t->signalled = false;
  t->passed += t->launch->barriers;
}
