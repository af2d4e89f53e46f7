/* tests/fuzz/memory.c - counts what a reader allocates, and frees it if the reader exits. The
   linker replaces malloc by __wrap_malloc (--wrap) in all that is linked statically; jansson is
   told to use it. Pointers are kept in a table with linear probing, so that the sanitizer's red
   zones stay where they are. */
#include "tests/fuzz/memory.h"

#include <jansson.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static struct {
  void **slots;         /* NULL: empty */
  size_t n, cap;        /* cap: a power of 2 */
  ptrdiff_t live, peak; /* live: negative when memory of an earlier run is freed */
  bool on;
} table;

static size_t home(const void *p) {
  return ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 20 & (table.cap - 1);
}

static void put(void *p) {
  size_t i = home(p);
  while (table.slots[i]) i = (i + 1) & (table.cap - 1);
  table.slots[i] = p;
}

static void grow(void) {
  void **old = table.slots;
  const size_t n = table.cap;
  table.cap = n ? 2 * n : 1024;
  table.slots = __real_calloc(table.cap, sizeof *table.slots);
  if (!table.slots) abort();
  for (size_t i = 0; i < n; i++)
    if (old[i]) put(old[i]);
  __real_free(old);
}

static void add(void *p) {
  if (!p || !table.on) return;
  if (2 * ++table.n > table.cap) grow();
  put(p);
  table.live += (ptrdiff_t)malloc_usable_size(p);
  if (table.live > table.peak) table.peak = table.live;
}

/* Entries that follow without a gap move up where they may. */
static void close_gap(size_t gap) {
  const size_t mask = table.cap - 1;
  for (size_t i = (gap + 1) & mask; table.slots[i]; i = (i + 1) & mask)
    if (((i - home(table.slots[i])) & mask) >= ((i - gap) & mask))
      table.slots[gap] = table.slots[i], gap = i;
  table.slots[gap] = NULL;
}

static bool take(void *p) { /* whether it was there */
  if (!p || !table.n) return false;
  size_t i = home(p);
  while (table.slots[i] && table.slots[i] != p) i = (i + 1) & (table.cap - 1);
  if (!table.slots[i]) return false;
  table.live -= (ptrdiff_t)malloc_usable_size(p);
  table.n--;
  close_gap(i);
  return true;
}

void *__wrap_malloc(size_t n) {
  void *p = __real_malloc(n);
  add(p);
  return p;
}

void *__wrap_calloc(size_t n, size_t size) {
  void *p = __real_calloc(n, size);
  add(p);
  return p;
}

void *__wrap_realloc(void *p, size_t n) {
  const bool ours = take(p);
  void *q = __real_realloc(p, n);
  if (ours || !p) add(q ? q : n ? p : NULL);
  return q;
}

void __wrap_free(void *p) {
  take(p);
  __real_free(p);
}

void memory_begin(void) {
  json_set_alloc_funcs(__wrap_malloc, __wrap_free);
  table.live = table.peak = 0;
  table.on = true;
}

void memory_end(void) { table.on = false; }

size_t memory_peak(void) { return (size_t)table.peak; }

size_t memory_left(void) { return table.n; }

void memory_release(void) {
  for (size_t i = 0; i < table.cap; i++) {
    __real_free(table.slots[i]);
    table.slots[i] = NULL;
  }
  table.n = 0;
  table.live = 0;
}
