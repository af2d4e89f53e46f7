/* tests/intel/ranges.c - which bytes of the registers an instruction reads and writes, and in which
   pipe it runs. */
#include "tests/intel/registers.h"

static intel_range *add(intel_range *r, uint32_t from, uint32_t to, bool writes) {
  *r = (intel_range){from, to, writes, false};
  return r + 1;
}

/* Flags lie behind the registers, two bytes for 16 channels. */
static uint32_t flag_byte(uint32_t bit) { return INTEL_FLAGS + bit / 8; }

static intel_range *of_operand(intel_range *r, const intel_operand *o, int lanes, bool writes) {
  uint32_t bytes = intel_type_bytes[o->type];
  if (o->where == FLAG) return add(r, flag_byte(o->at), flag_byte(o->at) + bytes, writes);
  if (o->where != REGISTER) return r;
  uint32_t to = 0;
  for (int k = 0; k < lanes; k++)
    if (intel_lane_at(o, k) + bytes > to) to = intel_lane_at(o, k) + bytes;
  intel_range *next = add(r, o->at, to, writes);
  r->bytes = bytes == 1;
  return next;
}

static intel_range *of_registers(intel_range *r, int first, int n, bool writes) {
  if (first < 0 || !n) return r;
  return add(r, (uint32_t)first * INTEL_REGISTER, (uint32_t)(first + n) * INTEL_REGISTER, writes);
}

int intel_ranges(const intel_ins *i, intel_range *ranges) {
  intel_range *r = ranges;
  if (intel_is_send(i)) {
    const intel_message *m = &i->message;
    r = of_registers(r, m->address, m->address_registers, false);
    r = of_registers(r, m->data, m->data_registers, false);
    r = of_registers(r, m->to, m->to_registers, true);
  } else {
    for (int s = 0; s < i->n; s++) r = of_operand(r, &i->s[s], i->lanes, false);
    r = of_operand(r, &i->d, i->lanes, true);
    if (i->flag) {
      uint32_t from = flag_byte((uint32_t)i->flag - 1), n = i->lanes > 16 ? 4 : 2;
      r = add(r, from, from + n, true);
    }
  }
  return (int)(r - ranges);
}

/* df results are made in the long pipe, integers (of 64 bits, too) and jumps in that of integers,
   all other floats in that of floats. */
intel_pipe intel_pipe_of(const intel_ins *i) {
  if (intel_is_send(i) || !strncmp(i->name, "sync.", 5) || !strcmp(i->name, "illegal"))
    return NO_PIPE;
  if (!strncmp(i->name, "math.", 5)) return MATH_PIPE;
  if (!i->n) return INTEGER_PIPE;
  return i->d.type == DF ? LONG_PIPE : intel_is_float(&i->d) ? FLOAT_PIPE : INTEGER_PIPE;
}
