/* src/ir/serialize.c - a kernel as bytes, little-endian, and back.

   "CLBIR001" | name, 64 | lanes, subgroups, rows, large_registers, min_blocks_per_sm, n, pool_n:
   i32 | n times: op, type, shape, element: u8; arg[5], stride, scope, width: i32; imm: i64; real:
   f64 | pool_n times: i32 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/ir/ir.h"

static const char magic[8] = "CLBIR001";
enum { HEAD = 8 + 64 + 7 * 4, INSTRUCTION = 4 + 8 * 4 + 8 + 8, VALUE = 4 };

static size_t bytes_of(int64_t n, int64_t pool_n) {
  return (size_t)(HEAD + n * INSTRUCTION + pool_n * VALUE);
}

static void put(uint8_t **to, uint64_t x, int bytes) {
  for (int b = 0; b < bytes; b++) *(*to)++ = (uint8_t)(x >> 8 * b);
}

static uint64_t take(const uint8_t **from, int bytes) {
  uint64_t x = 0;
  for (int b = 0; b < bytes; b++) x |= (uint64_t) * (*from)++ << 8 * b;
  return x;
}

static int32_t take_i32(const uint8_t **from) { return (int32_t)(uint32_t)take(from, 4); }

static void put_instruction(uint8_t **p, const ir_ins *i) {
  uint64_t real;
  memcpy(&real, &i->real, sizeof real);
  put(p, i->op, 1);
  put(p, i->type, 1);
  put(p, i->shape, 1);
  put(p, i->element, 1);
  for (int a = 0; a < 5; a++) put(p, (uint32_t)i->arg[a], 4);
  put(p, (uint32_t)i->stride, 4);
  put(p, (uint32_t)i->scope, 4);
  put(p, (uint32_t)i->width, 4);
  put(p, (uint64_t)i->imm, 8);
  put(p, real, 8);
}

static void take_instruction(const uint8_t **p, ir_ins *i) {
  i->op = (uint8_t)take(p, 1);
  i->type = (uint8_t)take(p, 1);
  i->shape = (uint8_t)take(p, 1);
  i->element = (uint8_t)take(p, 1);
  for (int a = 0; a < 5; a++) i->arg[a] = take_i32(p);
  i->stride = take_i32(p);
  i->scope = take_i32(p);
  i->width = take_i32(p);
  i->imm = (int64_t)take(p, 8);
  uint64_t real = take(p, 8);
  memcpy(&i->real, &real, sizeof real);
}

size_t ir_write(const ir_kernel *k, void *bytes, size_t size) {
  size_t needed = bytes_of(k->n, k->pool_n);
  if (!bytes || size < needed) return needed;
  uint8_t *p = bytes;
  memcpy(p, magic, sizeof magic);
  p += sizeof magic;
  for (size_t j = 0, end = 0; j < sizeof k->name; j++) {
    end |= !k->name[j];
    *p++ = end ? 0 : (uint8_t)k->name[j];
  }
  const int32_t head[] = {k->lanes, k->subgroups, k->rows, k->large_registers, k->min_blocks_per_sm,
                          k->n,     k->pool_n};
  for (size_t j = 0; j < sizeof head / sizeof *head; j++) put(&p, (uint32_t)head[j], 4);
  for (int32_t v = 0; v < k->n; v++) put_instruction(&p, &k->ins[v]);
  for (int32_t j = 0; j < k->pool_n; j++) put(&p, (uint32_t)k->pool[j], 4);
  return needed;
}

static bool take_kernel(ir_kernel *k, const uint8_t *p, size_t size, char why[200]) {
  snprintf(why, 200, "its %zu bytes are not a kernel of this version", size);
  if (size < HEAD || memcmp(p, magic, sizeof magic)) return false;
  p += sizeof magic;
  memcpy(k->name, p, sizeof k->name);
  p += sizeof k->name;
  int32_t *head[] = {&k->lanes, &k->subgroups, &k->rows, &k->large_registers, &k->min_blocks_per_sm,
                     &k->n,     &k->pool_n};
  for (size_t j = 0; j < sizeof head / sizeof *head; j++) *head[j] = take_i32(&p);
  if (k->n < 0 || k->pool_n < 0 || bytes_of(k->n, k->pool_n) != size) return false;
  k->ins = calloc((size_t)k->n + 1, sizeof *k->ins);
  k->pool = calloc((size_t)k->pool_n + 1, sizeof *k->pool);
  if (!k->ins || !k->pool) {
    snprintf(why, 200, "no memory for its %zu bytes", size);
    return false;
  }
  for (int32_t v = 0; v < k->n; v++) take_instruction(&p, &k->ins[v]);
  for (int32_t j = 0; j < k->pool_n; j++) k->pool[j] = take_i32(&p);
  k->cap = k->n + 1;
  k->pool_cap = k->pool_n + 1;
  return ir_verify(k, why, 200);
}

bool ir_read(ir_kernel *k, const void *bytes, size_t size) {
  char why[sizeof k->error];
  *k = (ir_kernel){.scope = IR_NONE};
  if (take_kernel(k, bytes, size, why)) return true;
  ir_free(k);
  *k = (ir_kernel){.scope = IR_NONE};
  memcpy(k->error, why, sizeof why);
  return false;
}
