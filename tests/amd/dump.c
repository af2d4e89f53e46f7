/* tests/amd/dump.c - a launch as a file, for tests/amd/compare.py: its inputs, and memory
   afterwards. */
#include "tests/amd/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BLOCKS = 128 };
static const size_t max_bytes = (size_t)64 << 20; /* a launch on more memory is left out */

struct amd_dump {
  FILE *file;
  int n;
  machine_block block[MAX_BLOCKS];
};

const char *amd_dump_folder(void) {
  const char *folder = getenv("AMD_EMULATOR_DUMP");
  return folder && *folder ? folder : NULL;
}

void amd_write_code(const char *folder, const char *target, int number, const void *binary) {
  char path[512];
  uint64_t sections;
  uint16_t size, count;
  memcpy(&sections, (const char *)binary + 40, 8);
  memcpy(&size, (const char *)binary + 58, 2);
  memcpy(&count, (const char *)binary + 60, 2);
  snprintf(path, sizeof path, "%s/%s.%ld.%04d.co", folder, target, (long)getpid(), number);
  FILE *f = fopen(path, "wb");
  if (!f) return;
  fwrite(binary, 1, sections + (size_t)size * count, f);
  fclose(f);
}

/* The blocks that arguments point into; an argument of 8 bytes that is a block's address is a
   pointer. */
static bool find_blocks(amd_dump *d, const amd_kernel *k, void **params) {
  size_t bytes = 0;
  for (int a = 0; a < k->n_arguments; a++) {
    uint64_t address;
    if (k->arguments[a].size != sizeof address) continue;
    memcpy(&address, params[a], sizeof address);
    const machine_block *b = machine_find(address);
    if (!b) continue;
    int same = 0;
    while (same < d->n && d->block[same].at != b->at) same++;
    if (same < d->n) continue;
    if (d->n == MAX_BLOCKS) return false;
    d->block[d->n++] = *b;
    bytes += b->bytes;
  }
  return bytes <= max_bytes;
}

static void write_blocks(amd_dump *d) {
  for (int b = 0; b < d->n; b++) fwrite(d->block[b].at, 1, d->block[b].bytes, d->file);
}

static void write_head(amd_dump *d, const amd_module *m, const amd_kernel *k, uint32_t groups,
                       uint32_t threads, uint32_t local) {
  fprintf(d->file, "code %s.%ld.%04d.co\nkernel %s\ngroups %u\nthreads %u\nlocal %u\n", m->target,
          (long)getpid(), m->number, k->name, groups, threads, local);
  for (int b = 0; b < d->n; b++)
    fprintf(d->file, "block %llu %zu\n", (unsigned long long)(uintptr_t)d->block[b].at,
            d->block[b].bytes);
  for (int a = 0; a < k->n_arguments; a++)
    fprintf(d->file, "argument %u %u\n", k->arguments[a].offset, k->arguments[a].size);
  fputs("\n", d->file);
}

amd_dump *amd_dump_before(const amd_module *m, const amd_kernel *k, uint32_t groups,
                          uint32_t threads, uint32_t local, void **params) {
  static int launches;
  char path[512];
  if (!amd_dump_folder() || (k->n_arguments && !params)) return NULL;
  amd_dump *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  snprintf(path, sizeof path, "%s/%s.%ld.%06d.launch", amd_dump_folder(), m->target, (long)getpid(),
           launches++);
  if (!find_blocks(d, k, params) || !(d->file = fopen(path, "wb"))) {
    fprintf(stderr, "amd emulator: %s: %s is not written\n", k->name, path);
    free(d);
    return NULL;
  }
  write_head(d, m, k, groups, threads, local);
  for (int a = 0; a < k->n_arguments; a++) fwrite(params[a], 1, k->arguments[a].size, d->file);
  write_blocks(d);
  return d;
}

void amd_dump_after(amd_dump *d) {
  if (!d) return;
  write_blocks(d);
  fclose(d->file);
  free(d);
}
