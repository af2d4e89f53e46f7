/* tests/amd/launch.c - a launch: registers at the start, waves of a group interleaved at random
   between barriers. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/amd/lanes.h"

enum {
  PRIVATE_BUFFER = 1,
  DISPATCH_POINTER = 2,
  QUEUE_POINTER = 4,
  KERNARG = 8,
  DISPATCH_ID = 16,
  FLAT_SCRATCH = 32,
  PRIVATE_SIZE = 64
};                                                       /* properties */
static const uint64_t scratch_base = 0x00007a5c00000000; /* address in gfx90a's buffer descriptor */

bool amd_plain_run;
static uint64_t instructions;
uint64_t amd_instructions_run(void) { return instructions; }

/* ---- errors ---- */

void amd_fail(amd_wave *w, const amd_ins *i, const char *format, ...) {
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (w->state == MACHINE_FAILED) return;
  w->state = MACHINE_FAILED;
  snprintf(w->launch->error, w->launch->size, "%s, %s, at 0x%llx, \"%s\": %s",
           w->launch->module->target, w->launch->kernel->name,
           i ? (unsigned long long)i->address : 0ull, i ? i->text : "", what);
}

unsigned char *amd_access(amd_wave *w, const amd_ins *i, uint64_t address, uint32_t bytes,
                          bool writes) {
  char why[256];
  unsigned char *at = machine_access(address, bytes, writes, &w->block, why, sizeof why);
  if (!at) amd_fail(w, i, "%s", why);
  return at;
}

/* ---- a wave's start ---- */

static int vector_registers(const amd_launch *p) {
  return (int)((p->kernel->rsrc1 & 63) + 1) * 8; /* gfx90a and gfx942 count both files together */
}

static void start_scalars(amd_wave *w) {
  const amd_kernel *k = w->launch->kernel;
  unsigned properties = k->properties, n = 0, users = k->rsrc2 >> 1 & 31;
  uint32_t *s = w->s;
  w->buffer = scratch_base + ((uint64_t)w->group << 16) + (uint64_t)w->index * 4096;
  if (properties & PRIVATE_BUFFER) {
    s[n++] = (uint32_t)scratch_base;
    s[n++] = (uint32_t)(scratch_base >> 32);
    s[n++] = 0xffffffff;
    s[n++] = 0x00e27000;
  }
  if (properties & DISPATCH_POINTER) n += 2;
  if (properties & QUEUE_POINTER) n += 2;
  if (properties & KERNARG) {
    s[n++] = (uint32_t)w->launch->arguments;
    s[n++] = (uint32_t)(w->launch->arguments >> 32);
  }
  n = users;
  for (unsigned axis = 0; axis < 3; axis++)
    if (k->rsrc2 >> (7 + axis) & 1) s[n++] = axis ? 0 : w->group;
  if (k->rsrc2 >> 10 & 1) n++;
  if (k->rsrc2 & 1 && properties & PRIVATE_BUFFER) s[n++] = (uint32_t)(w->buffer - scratch_base);
}

static void start(amd_wave *w, const amd_launch *p, int index, uint32_t group, const uint32_t *junk,
                  uint64_t *random) {
  int lanes = p->module->wide ? 64 : 32, first = index * lanes;
  uint32_t *rows[2] = {w->v[0], w->v[AMD_VGPRS]};
  unsigned char *scratch = w->scratch;
  w->lanes = lanes;
  w->index = index;
  w->group = group;
  w->launch = p;
  w->words = (const uint32_t(*)[2])p->module->words;
  w->rows = (const uint32_t(*)[2 * AMD_ROW]) p->module->rows;
  w->block = NULL;
  w->pc = p->kernel->first;
  w->state = MACHINE_RUNS;
  w->scc = (uint32_t)machine_draw(random) & 1;
  size_t words =
      (size_t)(vector_registers(p) < AMD_VGPRS ? vector_registers(p) : AMD_VGPRS) * AMD_ROW;
  for (int file = 0; file < 2; file++)
    memcpy(rows[file], junk + machine_draw(random) % (MACHINE_JUNK - words + 1), words * 4);
  memcpy(w->s, junk + machine_draw(random) % (MACHINE_JUNK - AMD_SGPRS), sizeof w->s);
  if (p->kernel->scratch) memset(scratch, 0xee, (size_t)p->kernel->scratch * (size_t)lanes);
  for (int l = 0; l < lanes; l++) w->v[0][l] = (uint32_t)(first + l);
  uint64_t exec = p->threads - (uint32_t)first >= (uint32_t)lanes
                      ? ~0ull
                      : (1ull << (p->threads - (uint32_t)first)) - 1;
  w->s[AMD_EXEC] = (uint32_t)exec;
  w->s[AMD_EXEC + 1] = lanes == 64 ? (uint32_t)(exec >> 32) : 0;
  amd_set_exec(w);
  start_scalars(w);
}

/* ---- running ---- */

static void advance(void *wave, uint64_t steps) {
  amd_wave *w = wave;
  const amd_ins *ins = w->launch->module->ins;
  uint64_t n = 0;
  while (n < steps && w->state == MACHINE_RUNS) {
    const amd_ins *i = &ins[w->pc];
    if (i->next < 0 && i->run != amd_run_unknown) { /* the last one must end the wave, or jump */
      w->pc = -1;
      i->run(w, i);
      if (w->pc < 0 && w->state == MACHINE_RUNS) amd_fail(w, i, "nothing stands behind it");
    } else {
      w->pc = i->next;
      i->run(w, i);
    }
    n++;
  }
  instructions += n;
}

static void release(void *const *waves, int n) {
  for (int k = 0; k < n; k++) {
    amd_wave *w = waves[k];
    if (w->state == MACHINE_WAITS) w->state = MACHINE_RUNS;
  }
}

static bool run_groups(const amd_launch *p, amd_wave **waves, int n, uint64_t *random) {
  uint32_t *junk = machine_junk(random);
  machine_group group = {.n = n, .advance = advance, .release = release, .in_order = amd_plain_run};
  for (int k = 0; k < n; k++) {
    group.thread[k] = waves[k];
    group.state[k] = &waves[k]->state;
  }
  bool good = junk != NULL;
  for (uint32_t g = 0; good && g < p->groups; g++) {
    memset(p->lds, 0xee, p->lds_bytes);
    for (int k = 0; k < n; k++) start(waves[k], p, k, g, junk, random);
    good = machine_run_group(&group, random);
  }
  free(junk);
  return good;
}

/* Compilers widen loads of the last arguments, as the segment is aligned to 64 bytes. */
static size_t capacity_of_arguments(const amd_kernel *k) {
  return ((size_t)k->kernarg + 64) & ~(size_t)63;
}

static bool copy_arguments(const amd_kernel *k, unsigned char *to, void **params, char *error,
                           size_t size) {
  memset(to, 0xee, capacity_of_arguments(k));
  for (int a = 0; a < k->n_arguments; a++) {
    const amd_argument *argument = &k->arguments[a];
    if (!params || argument->offset + argument->size > k->kernarg)
      return snprintf(error, size, "%s: no argument %d", k->name, a), false;
    memcpy(to + argument->offset, params[a], argument->size);
  }
  return true;
}

bool amd_run_kernel(const amd_module *m, const amd_kernel *k, uint32_t groups, uint32_t threads,
                    uint32_t local, void **params, char *error, size_t size) {
  const char *seed = getenv("AMD_EMULATOR_SEED"), *barriers = getenv("AMD_EMULATOR_BARRIERS");
  uint64_t random = seed ? strtoull(seed, NULL, 10) : 1;
  int lanes = m->wide ? 64 : 32, n = (int)((threads + (uint32_t)lanes - 1) / (uint32_t)lanes);
  size_t scratch = (size_t)k->scratch * (size_t)lanes;
  if (threads > (uint32_t)k->threads)
    return snprintf(error, size, "%s: groups of %u threads, compiled for at most %d", k->name,
                    threads, k->threads),
           false;
  if (k->lds + local > 65536)
    return snprintf(error, size, "%s: %u bytes of local memory; there are 65536", k->name,
                    k->lds + local),
           false;
  amd_launch p = {.module = m,
                  .kernel = k,
                  .lds_bytes = k->lds + local,
                  .groups = groups,
                  .threads = threads,
                  .barriers = !barriers || strcmp(barriers, "off") != 0,
                  .error = error,
                  .size = size};
  amd_wave **waves = calloc((size_t)n, sizeof *waves);
  unsigned char *arguments = malloc(capacity_of_arguments(k));
  bool good = waves && arguments && (p.lds = malloc(p.lds_bytes + 1u));
  for (int w = 0; good && w < n; w++)
    good = (waves[w] = aligned_alloc(64, (sizeof **waves + 63) & ~(size_t)63)) &&
           (waves[w]->scratch = NULL, waves[w]->scratch = malloc(scratch + 1));
  if (!good) snprintf(error, size, "%s: no memory for a group", k->name);
  p.arguments = (uint64_t)(uintptr_t)arguments;
  good = good && copy_arguments(k, arguments, params, error, size);
  bool lent = good && machine_lend(arguments, capacity_of_arguments(k));
  good = lent && run_groups(&p, waves, n, &random);
  if (lent) machine_take_back(arguments);
  for (int w = 0; waves && w < n && waves[w]; w++) {
    free(waves[w]->scratch);
    free(waves[w]);
  }
  free(waves);
  free(arguments);
  free(p.lds);
  return good;
}
