/* tests/intel/payload.c - whether a message's payload is in place: its lengths and its place in the
   registers, by its descriptor, when a kernel is read; whether the kernel has written it, in the
   lanes that take part, when the message is sent. */
#include "tests/intel/registers.h"

/* ---- descriptors ---- */

enum {
  LOAD = 0,
  STORE = 4,
  ADD_INTEGERS = 12,
  ADD_FLOATS = 19,
  LAST_REGISTERS = 16, /* where the message that ends a thread must lie */
};

/* What load, store or atomic the numbers of the descriptor say; bits 0 to 15. */
static uint32_t access_bits(const intel_message *m) {
  static const uint8_t counts[] = {1, 2, 3, 4, 8, 16, 32, 64};
  uint32_t action = m->kind != ATOMIC ? (m->stores ? STORE : LOAD)
                    : m->integer      ? ADD_INTEGERS
                                      : ADD_FLOATS,
           wide = m->local || m->kind == PAYLOAD ? 2 : 3,
           element = m->register_bytes != m->bytes ? 5
                     : m->bytes == 4               ? 2
                                                   : 3,
           count = 0;
  while (count < 7 && counts[count] != m->components) count++;
  return action | wide << 7 | element << 9 | count << 12 |
         (uint32_t)(m->kind == BLOCK || m->kind == PAYLOAD) << 15;
}

static bool overlap(int a, int a_registers, int b, int b_registers) {
  return a >= 0 && b >= 0 && a < b + b_registers && b < a + a_registers;
}

const char *intel_misplaced(const intel_ins *i, const intel_lengths *needed, uint32_t descriptor,
                            uint32_t registers) {
  const intel_message *m = &i->message;
  int end = (int)registers;
  if ((descriptor >> 25 & 15) != m->address_registers || (descriptor >> 20 & 31) != m->to_registers)
    return "the descriptor's lengths are not those of the listing";
  if (m->kind <= PAYLOAD || m->kind == ATOMIC)
    if ((descriptor & 0xffff) != access_bits(m))
      return "the descriptor's access is not that of the listing";
  if (m->address_registers != needed->address) return "its addresses have another length";
  if (m->data_registers != needed->data) return "its data have another length";
  if (m->to_registers != needed->to) return "its result has another length";
  if (m->address + m->address_registers > end || m->data + m->data_registers > end ||
      m->to + m->to_registers > end)
    return "it goes beyond the last register";
  if (overlap(m->address, m->address_registers, m->data, m->data_registers))
    return "its data overlap its addresses";
  if (m->kind == END && m->address < end - LAST_REGISTERS)
    return "a thread ends from one of the last 16 registers";
  return NULL;
}

/* ---- what has been written: a bit for each byte of the registers ---- */

/* The bits of bytes [from, to) of a register. */
static uint64_t bytes_between(uint32_t from, uint32_t to) {
  return (to >= 64 ? ~0ull : (1ull << to) - 1) & ~0ull << from;
}

static void mark(intel_thread *t, uint32_t from, uint32_t bytes) {
  for (uint32_t end = from + bytes; from < end;) {
    uint32_t begin = from % INTEL_REGISTER, room = INTEL_REGISTER - begin,
             n = end - from < room ? end - from : room;
    t->written[from / INTEL_REGISTER] |= bytes_between(begin, begin + n);
    from += n;
  }
}

static bool is_marked(const intel_thread *t, uint32_t from, uint32_t bytes) {
  for (uint32_t end = from + bytes; from < end;) {
    uint32_t begin = from % INTEL_REGISTER, room = INTEL_REGISTER - begin,
             n = end - from < room ? end - from : room;
    if (bytes_between(begin, begin + n) & ~t->written[from / INTEL_REGISTER]) return false;
    from += n;
  }
  return true;
}

void intel_set_writes(intel_ins *i) {
  const intel_operand *d = &i->d;
  if (d->where != REGISTER || d->at >= INTEL_ACC || intel_is_send(i)) return;
  for (int k = 0; k < i->lanes; k++)
    for (uint32_t b = 0; b < intel_type_bytes[d->type]; b++) {
      uint32_t at = intel_lane_at(d, k) + b;
      i->writes[at / INTEL_REGISTER - d->at / INTEL_REGISTER] |= 1ull << at % INTEL_REGISTER;
    }
}

void intel_mark_result(intel_thread *t, const intel_ins *i) {
  bool masked = i->predicate && strcmp(i->name, "sel") != 0;
  uint32_t lanes = masked ? intel_mask(t, i) : intel_enabled(t, i);
  if (lanes == intel_all(i->lanes)) {
    t->written[i->d.at / INTEL_REGISTER] |= i->writes[0];
    t->written[i->d.at / INTEL_REGISTER + 1] |= i->writes[1];
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    mark(t, intel_lane_at(&i->d, __builtin_ctz(lanes)), intel_type_bytes[i->d.type]);
}

/* ---- what a message reads ---- */

static bool has(intel_thread *t, const intel_ins *i, const char *what, int lane, uint32_t from,
                uint32_t bytes) {
  if (is_marked(t, from, bytes)) return true;
  if (lane < 0) intel_fail(t, i, "nothing has written its %s", what);
  else intel_fail(t, i, "nothing has written its %s of channel %d", what, lane);
  return false;
}

/* Elements of 16 lanes lie in registers of their own for each component. */
static bool lanes_in_place(intel_thread *t, const intel_ins *i, uint32_t lanes) {
  const intel_message *m = &i->message;
  uint32_t wide = m->local ? 4 : 8, address = (uint32_t)m->address * INTEL_REGISTER;
  bool reads = m->stores || m->kind == ATOMIC;
  if (lanes == intel_all(INTEL_SUBGROUP) && m->bytes == m->register_bytes &&
      is_marked(t, address, m->address_registers * INTEL_REGISTER) &&
      (!reads ||
       is_marked(t, (uint32_t)m->data * INTEL_REGISTER, m->data_registers * INTEL_REGISTER)))
    return true;
  for (; lanes; lanes &= lanes - 1) {
    int k = __builtin_ctz(lanes);
    if (!has(t, i, "address", k, address + wide * (uint32_t)k, wide)) return false;
    for (int c = 0; reads && c < m->components; c++)
      if (!has(t, i, "data", k, intel_element_at(i, c, k), m->bytes)) return false;
  }
  return true;
}

bool intel_in_place(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  uint32_t lanes = intel_mask(t, i), address = (uint32_t)m->address * INTEL_REGISTER;
  switch (m->kind) {
    case BY_LANE:
    case ATOMIC: return lanes_in_place(t, i, lanes);
    case BLOCK:
    case PAYLOAD:
      return !lanes || (has(t, i, "address", -1, address, m->local || m->kind == PAYLOAD ? 4 : 8) &&
                        (!m->stores || has(t, i, "data", -1, (uint32_t)m->data * INTEL_REGISTER,
                                           (uint32_t)m->bytes * m->components)));
    case SCRATCH: return has(t, i, "header", -1, address + 20, 4);
    case SIGNAL: return has(t, i, "header", -1, address + 8, 4);
    case END: return has(t, i, "header", -1, address, INTEL_REGISTER);
    default: return true;
  }
}

/* ---- what a message writes ---- */

void intel_mark_loaded(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  uint32_t to = (uint32_t)m->to * INTEL_REGISTER, lanes = intel_mask(t, i);
  bool by_lane = m->kind == BY_LANE || m->kind == ATOMIC;
  if (m->to < 0 || m->kind == SCRATCH || !lanes) return;
  if (m->kind == FENCE || (by_lane && lanes == intel_all(INTEL_SUBGROUP)))
    mark(t, to, m->to_registers * INTEL_REGISTER);
  else if (!by_lane) mark(t, to, (uint32_t)m->bytes * m->components);
  else
    for (; lanes; lanes &= lanes - 1)
      for (int c = 0; c < m->components; c++)
        mark(t, intel_element_at(i, c, __builtin_ctz(lanes)), m->register_bytes);
}

/* Scratch may hold what nothing has written: registers are spilled whole. */
void intel_mark_scratch(intel_thread *t, const intel_ins *i) {
  const intel_message *m = &i->message;
  unsigned char *kept = t->scratch_written + m->offset / 8;
  size_t bytes = (size_t)m->components * sizeof *t->written;
  if (m->stores) memcpy(kept, t->written + m->data, bytes);
  else memcpy(t->written + m->to, kept, bytes);
}
