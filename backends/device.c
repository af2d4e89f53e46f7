/* backends/device.c - functions common to all backends: a device's memory. */
#include "backends/backend.h"

#include <stdlib.h>
#include <string.h>

uint64_t clb_device_free_bytes(clb_device *d) {
  return d->backend->free_bytes ? d->backend->free_bytes(d) : 0;
}

/* A buffer of no bytes has one there. */
static uint64_t counted(uint64_t bytes) { return bytes > 1 ? bytes : 0; }

static void count(clb_device *d, uint64_t bytes) {
  d->info.held_bytes += bytes;
  if (d->info.held_bytes > d->info.most_bytes) d->info.most_bytes = d->info.held_bytes;
}

void clb_device_free(clb_device *d, clb_memory *memory) {
  d->info.held_bytes -= counted(memory->bytes);
  d->backend->free(d, memory);
}

void clb_device_free_ipc(clb_device *d, clb_memory *memory, bool opened) {
  if (!opened) d->info.held_bytes -= counted(memory->bytes);
  d->backend->free_ipc(d, memory, opened);
}

/* After an allocation: counts it, or says what there was. */
static clb_status allocated(clb_device *d, uint64_t bytes, clb_status s) {
  static const double MiB = 1 << 20;
  if (!s) count(d, counted(bytes));
  if (s != CLB_ERROR_MEMORY) return s;
  const uint64_t all = d->info.memory_bytes, left = clb_device_free_bytes(d);
  if (left)
    return clb_fail_more(d->error, s, "; of the %.1f MiB of %s %.1f MiB are free",
                         (double)all / MiB, d->info.name, (double)left / MiB);
  return all ? clb_fail_more(d->error, s, "; %s has %.1f MiB", d->info.name, (double)all / MiB) : s;
}

clb_status clb_device_alloc(clb_device *d, uint64_t bytes, clb_memory *memory) {
  return allocated(d, bytes, d->backend->alloc(d, bytes, memory));
}

clb_status clb_device_alloc_ipc(clb_device *d, uint64_t bytes, clb_ipc_bytes *handle,
                                clb_memory *memory) {
  return allocated(d, bytes, d->backend->alloc_ipc(d, bytes, handle, memory));
}

bool clb_device_stage(clb_device *d, uint64_t bytes, clb_host_memory *m) {
  const bool gains = d->backend->pin && !d->limits.simd; /* a CPU copies from memory to memory */
  if (bytes <= m->bytes) return true;
  clb_device_unstage(d, m);
  const uint64_t all = bytes + bytes / 4;
  if (!gains || !d->backend->pin(d, all, m))
    *m = (clb_host_memory){.at = all <= SIZE_MAX ? malloc((size_t)all) : NULL};
  m->bytes = m->at ? all : 0;
  return m->at;
}

void clb_device_unstage(clb_device *d, clb_host_memory *m) {
  if (m->pinned) d->backend->unpin(d, m);
  else free(m->at);
  *m = (clb_host_memory){0};
}

int64_t clb_memory_unwritten(const clb_memory *m, uint64_t offset, uint64_t bytes) {
  const unsigned char *hole = m->written ? memchr(m->written + offset, 0, (size_t)bytes) : NULL;
  return hole ? hole - m->written : -1;
}

void clb_memory_mark(const clb_memory *m, uint64_t offset, uint64_t bytes) {
  if (m->written) memset(m->written + offset, 1, (size_t)bytes);
}

void clb_memory_discard(const clb_memory *m) {
  if (m->written) memset(m->written, 0, (size_t)m->bytes);
}
