/* tests/machine/memory.c - an emulated GPU's memory: host memory between guard pages. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/machine/machine.h"

enum { PAGE = 4096, ALIGNMENT = 256, RUBBISH = 0xee };
static const size_t max_filled = (size_t)256 << 20; /* larger blocks start as zeros */

static struct {
  machine_block *block; /* by address */
  int n, capacity;
} memory;

/* The first block that begins after the address. */
static int behind(uint64_t address) {
  int low = 0, high = memory.n;
  while (low < high) {
    int middle = (low + high) / 2;
    if ((uint64_t)(uintptr_t)memory.block[middle].at > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

const machine_block *machine_find(uint64_t address) {
  int i = behind(address) - 1;
  return i >= 0 && address - (uint64_t)(uintptr_t)memory.block[i].at < memory.block[i].bytes
             ? &memory.block[i]
             : NULL;
}

const machine_block *machine_find_below(uint64_t address) {
  int i = behind(address) - 1;
  return i >= 0 ? &memory.block[i] : NULL;
}

static bool insert(machine_block b) {
  if (memory.n == memory.capacity) {
    int capacity = memory.capacity ? 2 * memory.capacity : 64;
    machine_block *more = realloc(memory.block, (size_t)capacity * sizeof *more);
    if (!more) return false;
    memory.block = more;
    memory.capacity = capacity;
  }
  int i = behind((uint64_t)(uintptr_t)b.at);
  memmove(memory.block + i + 1, memory.block + i, (size_t)(memory.n - i) * sizeof b);
  memory.block[i] = b;
  memory.n++;
  return true;
}

static machine_block *owner(const void *at) {
  int i = behind((uint64_t)(uintptr_t)at) - 1;
  return i >= 0 && memory.block[i].at == at ? &memory.block[i] : NULL;
}

static void forget(const machine_block *b) {
  memmove(memory.block + (b - memory.block), b + 1,
          (size_t)(memory.block + memory.n - b - 1) * sizeof *b);
  if (!--memory.n) {
    free(memory.block);
    memory.block = NULL;
    memory.capacity = 0;
  }
}

/* Aligned as hipMalloc does, so up to 255 bytes lie between the end and the guard; kernels'
   accesses are checked to the byte. */
void *machine_alloc(size_t bytes) {
  if (!bytes || bytes > SIZE_MAX / 2) return NULL;
  size_t up = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1),
         mapped = ((up + PAGE - 1) & ~(size_t)(PAGE - 1)) + 2 * PAGE;
  char *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return NULL;
  machine_block b = {.at = map + mapped - PAGE - up, .bytes = bytes, .map = map, .mapped = mapped};
  if (mprotect(map, PAGE, PROT_NONE) || mprotect(map + mapped - PAGE, PAGE, PROT_NONE) ||
      !insert(b)) {
    munmap(map, mapped);
    return NULL;
  }
  if (mapped <= max_filled) memset(map + PAGE, RUBBISH, mapped - 2 * PAGE);
  return b.at;
}

bool machine_free(void *at) {
  machine_block *b = owner(at);
  if (!b || !b->map) return false;
  munmap(b->map, b->mapped);
  forget(b);
  return true;
}

bool machine_lend(const void *at, size_t bytes) {
  return insert((machine_block){.at = (char *)(uintptr_t)at, .bytes = bytes, .constant = true});
}
void machine_take_back(const void *at) {
  machine_block *b = owner(at);
  if (b) forget(b);
}

unsigned char *machine_access(uint64_t address, uint32_t bytes, bool writes,
                              const machine_block **last, char *why, size_t size) {
  const machine_block *b = *last;
  if (!b || address - (uint64_t)(uintptr_t)b->at >= b->bytes) b = machine_find(address);
  if (b && bytes <= b->bytes - (address - (uint64_t)(uintptr_t)b->at) && !(writes && b->constant)) {
    *last = b;
    return (unsigned char *)b->at + (address - (uint64_t)(uintptr_t)b->at);
  }
  const machine_block *below = machine_find_below(address);
  uint64_t at = below ? address - (uint64_t)(uintptr_t)below->at : 0;
  const char *done = writes ? "written" : "read";
  if (b)
    snprintf(why, size, "%u bytes %s at byte %llu of a block of %zu%s", bytes, done,
             (unsigned long long)at, b->bytes, b->constant ? " that is constant" : "");
  else if (below && at < 1 << 20)
    snprintf(why, size, "%u bytes %s, %llu behind the end of a block of %zu", bytes, done,
             (unsigned long long)(at - below->bytes), below->bytes);
  else
    snprintf(why, size, "%u bytes %s at 0x%llx, outside of every block of memory", bytes, done,
             (unsigned long long)address);
  return NULL;
}
