/* tests/amd/memory.c - the emulated GPU's memory: host memory between guard pages. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/amd/amd.h"

enum { PAGE = 4096, ALIGNMENT = 256, RUBBISH = 0xee };
static const size_t max_filled = (size_t)256 << 20; /* larger blocks start as zeros */

static struct {
  amd_block *block; /* by address */
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

const amd_block *amd_find(uint64_t address) {
  int i = behind(address) - 1;
  return i >= 0 && address - (uint64_t)(uintptr_t)memory.block[i].at < memory.block[i].bytes
             ? &memory.block[i]
             : NULL;
}

const amd_block *amd_find_below(uint64_t address) {
  int i = behind(address) - 1;
  return i >= 0 ? &memory.block[i] : NULL;
}

static bool insert(amd_block b) {
  if (memory.n == memory.capacity) {
    int capacity = memory.capacity ? 2 * memory.capacity : 64;
    amd_block *more = realloc(memory.block, (size_t)capacity * sizeof *more);
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

static amd_block *owner(const void *at) {
  int i = behind((uint64_t)(uintptr_t)at) - 1;
  return i >= 0 && memory.block[i].at == at ? &memory.block[i] : NULL;
}

static void forget(const amd_block *b) {
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
void *amd_alloc(size_t bytes) {
  if (!bytes || bytes > SIZE_MAX / 2) return NULL;
  size_t up = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1),
         mapped = ((up + PAGE - 1) & ~(size_t)(PAGE - 1)) + 2 * PAGE;
  char *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return NULL;
  amd_block b = {.at = map + mapped - PAGE - up, .bytes = bytes, .map = map, .mapped = mapped};
  if (mprotect(map, PAGE, PROT_NONE) || mprotect(map + mapped - PAGE, PAGE, PROT_NONE) ||
      !insert(b)) {
    munmap(map, mapped);
    return NULL;
  }
  if (mapped <= max_filled) memset(map + PAGE, RUBBISH, mapped - 2 * PAGE);
  return b.at;
}

bool amd_free(void *at) {
  amd_block *b = owner(at);
  if (!b || !b->map) return false;
  munmap(b->map, b->mapped);
  forget(b);
  return true;
}

bool amd_lend(const void *at, size_t bytes) {
  return insert((amd_block){.at = (char *)(uintptr_t)at, .bytes = bytes, .constant = true});
}
void amd_take_back(const void *at) {
  amd_block *b = owner(at);
  if (b) forget(b);
}
