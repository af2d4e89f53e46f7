/* tests/intel/level_zero.c - kernels of the test-only Level Zero driver as machine code for
   Data Center GPU Max: compiled by ocloc, run by the emulator.

   INTEL_EMULATOR_SEED says how threads are interleaved; INTEL_EMULATOR_BARRIERS=off makes sync.bar
   do nothing (a control), INTEL_EMULATOR_RACES=off looks for no races in local memory;
   INTEL_EMULATOR_KEEP names a folder to which the listing of every kernel is written;
   INTEL_EMULATOR_REPORT a file to which the instructions that each launch ran are written. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/level_zero/level_zero.h"
#include "tests/fakes/fake_level_zero.h"
#include "tests/intel/registers.h"

typedef struct {
  clb_text binary;
  intel_kernel *kernel;
} program;

uint32_t fake_vendor(void) { return 0x8086; }

void *fake_memory_new(size_t bytes) { return machine_alloc(bytes); }
void fake_memory_free(void *memory) { machine_free(memory); }

/* ---- programs ---- */

static bool compile(const fake_source *from, clb_text *binary, char *log, size_t size) {
  static lz_ocloc ocloc;
  clb_error_sink error = {0};
  clb_text spirv = {0};
  if (from->binary) {
    clb_text_bytes(binary, from->binary, from->binary_bytes);
    return !binary->failed;
  }
  if (!ocloc.library && !clb_lz_ocloc_open(&ocloc))
    return snprintf(log, size, "no libocloc.so here"), false;
  clb_text_bytes(&spirv, from->spirv, from->bytes);
  clb_status s = clb_lz_ocloc_compile(&ocloc, "pvc", &spirv, from->options, binary, &error);
  if (s) snprintf(log, size, "%s", error.text.s ? error.text.s : "ocloc failed");
  clb_text_free(&spirv);
  clb_text_free(&error.text);
  return !s && !binary->failed;
}

static void keep(const intel_kernel *k) {
  static int n;
  const char *folder = getenv("INTEL_EMULATOR_KEEP");
  char path[512];
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%04d-%s.asm", folder, n++, k->name);
  FILE *f = fopen(path, "w");
  if (!f) return;
  for (int i = 0; i < k->n_ins; i++)
    fprintf(f, "%s%s\n", k->ins[i].run == intel_run_unknown ? "UNKNOWN " : "", k->ins[i].text);
  fclose(f);
}

void *fake_program_new(const fake_source *from, char *log, size_t size) {
  program *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  if (compile(from, &p->binary, log, size))
    p->kernel = intel_load(p->binary.s, p->binary.n, log, size);
  if (p->kernel) {
    keep(p->kernel);
    return p;
  }
  fprintf(stderr, "intel emulator: %s: %s\n", from->kernel, log);
  fake_program_free(p);
  return NULL;
}

void fake_program_free(void *handle) {
  program *p = handle;
  clb_text_free(&p->binary);
  intel_unload(p->kernel);
  free(p);
}

const void *fake_program_binary(void *handle, size_t *bytes) {
  const program *p = handle;
  *bytes = p->binary.n;
  return p->binary.s;
}

/* ---- kernels ---- */

void *fake_kernel_new(void *handle, const char *name) {
  const program *p = handle;
  return strcmp(p->kernel->name, name) ? NULL : p->kernel;
}
void fake_kernel_free(void *kernel) { (void)kernel; }

static void report(const intel_kernel *k, uint32_t groups, uint32_t group_size, uint64_t ran) {
  const char *path = getenv("INTEL_EMULATOR_REPORT");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s groups %u threads %u registers %u scratch %u instructions %llu\n", k->name,
          groups, group_size / INTEL_SUBGROUP, k->registers, k->scratch_bytes,
          (unsigned long long)ran);
  fclose(file);
}

bool fake_kernel_run(void *kernel, const fake_signature *s, const fake_argument *args,
                     uint32_t groups, uint32_t group_size) {
  const intel_kernel *k = kernel;
  const void *values[FAKE_PARAMETERS];
  char error[1024];
  uint64_t before = intel_instructions_run();
  for (int a = 0; a < FAKE_PARAMETERS; a++) values[a] = args[a].bytes;
  for (int a = 0; a < k->n_arguments; a++) {
    const intel_argument *x = &k->arguments[a];
    if (x->what != ARGUMENT || (x->index >= 0 && x->index < s->n_parameters && x->size <= 8))
      continue;
    fprintf(stderr, "intel emulator: %s: argument %d of %d\n", k->name, x->index, s->n_parameters);
    return false;
  }
  bool ran = intel_run_kernel(k, groups, group_size, values, error, sizeof error);
  if (!ran) fprintf(stderr, "intel emulator: %s\n", error);
  report(k, groups, group_size, intel_instructions_run() - before);
  return ran;
}

/* What the library did wrong as a caller of Level Zero. */
__attribute__((destructor)) static void tell_violations(void) {
  if (fake_level_zero.mistake[0])
    fprintf(stderr, "level_zero: rules broken; the first: %s\n", fake_level_zero.mistake);
}
