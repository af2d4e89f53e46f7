/* tests/intel/relocate.c - constants of a kernel (the tables of exp in f64), and the places in its
   code that get their address. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/intel/intel.h"

enum { ADDRESS_LOW = 2, ADDRESS_HIGH = 3 }; /* kinds of relocations: halves of an address */

/* A copy of .data.const that kernels may read. */
static bool take_constants(intel_kernel *k, const void *elf, size_t bytes) {
  char rest[8];
  const char *data =
      intel_section(elf, bytes, ".data.const", rest, sizeof rest, &k->constant_bytes);
  if (!data) return true;
  k->constants = malloc(k->constant_bytes + 1);
  if (!k->constants) return false;
  memcpy(k->constants, data, k->constant_bytes);
  return machine_lend(k->constants, k->constant_bytes);
}

static bool place(const intel_kernel *k, unsigned char *code, size_t code_bytes, Elf64_Rel r,
                  const Elf64_Sym *symbol) {
  uint64_t address = (uint64_t)(uintptr_t)k->constants + symbol->st_value;
  uint32_t half = (uint32_t)(ELF64_R_TYPE(r.r_info) == ADDRESS_LOW ? address : address >> 32);
  if (!k->constants || symbol->st_value > k->constant_bytes || r.r_offset + 4 > code_bytes ||
      (ELF64_R_TYPE(r.r_info) != ADDRESS_LOW && ELF64_R_TYPE(r.r_info) != ADDRESS_HIGH))
    return false;
  memcpy(code + r.r_offset, &half, sizeof half);
  return true;
}

bool intel_relocate(intel_kernel *k, const void *elf, size_t bytes, unsigned char *code,
                    size_t code_bytes, char *error, size_t size) {
  char name[128];
  size_t table_bytes, symbols_bytes;
  const char *table = intel_section(elf, bytes, ".rel.text.", name, sizeof name, &table_bytes),
             *symbols = intel_section(elf, bytes, ".symtab", name, sizeof name, &symbols_bytes);
  bool good = take_constants(k, elf, bytes);
  for (size_t at = 0; good && table && at + sizeof(Elf64_Rel) <= table_bytes;
       at += sizeof(Elf64_Rel)) {
    Elf64_Rel r;
    Elf64_Sym symbol;
    memcpy(&r, table + at, sizeof r);
    size_t which = ELF64_R_SYM(r.r_info);
    good = symbols && (which + 1) * sizeof symbol <= symbols_bytes;
    if (good) memcpy(&symbol, symbols + which * sizeof symbol, sizeof symbol);
    good = good && place(k, code, code_bytes, r, &symbol);
  }
  if (!good) snprintf(error, size, "%s: a relocation is not known", k->name);
  return good;
}

void intel_drop_constants(intel_kernel *k) {
  if (k->constants) machine_take_back(k->constants);
  free(k->constants);
}
