/* tests/ops/mutants.h - a cpu:interpreter that runs every launch once more for each barrier of its
   kernel, without that barrier: whether the interpreter finds a race, or a result differs. */
#ifndef CLB_TESTS_OPS_MUTANTS_H
#define CLB_TESTS_OPS_MUTANTS_H

#include "src/runtime/context.h"
#include "src/codegen/codegen.h"
#include "tests/test.h"

typedef enum {
  MUTANT_LIVES,
  MUTANT_RACES,
  MUTANT_MISSES,
  MUTANT_DIFFERS
} mutant_fate; /* MISSES: sub-groups do not meet, or another error */
enum { MAX_BARRIERS = 512 };

/* A kernel, and what happened without each of its barriers. */
typedef struct mutants {
  struct mutants *next;
  ir_kernel k;
  clb_text bytes;
  int n, left;
  int32_t at[MAX_BARRIERS];
  mutant_fate fate[MAX_BARRIERS];
  bool ran;
} mutants;

typedef struct loaded {
  struct loaded *next;
  clb_module *module;
  mutants *of;
} loaded;

static struct {
  mutants *kernels;
  loaded *modules;
  clb_backend backend;
  bool lowers; /* where there are no sub-groups, kernels that shuffle run as on such devices */
} mutation;

static inline mutants *mutants_of(const ir_kernel *k) {
  clb_text bytes = {0};
  size_t n = ir_write(k, NULL, 0);
  char *b = malloc(n);
  assert_non_null(b);
  ir_write(k, b, n);
  clb_text_bytes(&bytes, b, n);
  free(b);
  for (mutants *m = mutation.kernels; m; m = m->next)
    if (m->bytes.n == n && !memcmp(m->bytes.s, bytes.s, n)) return clb_text_free(&bytes), m;
  mutants *m = calloc(1, sizeof *m);
  assert_non_null(m);
  m->bytes = bytes;
  assert_true(ir_read(&m->k, bytes.s, bytes.n));
  for (int32_t v = 0; v < m->k.n; v++)
    if (m->k.ins[v].op == IR_BARRIER && m->n < MAX_BARRIERS) m->at[m->n++] = v;
  m->left = m->n;
  m->next = mutation.kernels;
  return mutation.kernels = m;
}

static inline clb_status mutants_load(clb_device *d, const ir_kernel *k, const void *binary,
                                      size_t bytes, clb_module **module) {
  clb_status s = clb_backend_cpu.load(d, k, binary, bytes, module);
  loaded *l = s ? NULL : calloc(1, sizeof *l);
  if (!l) return s;
  ir_kernel lowered = {0};
  const bool lower = mutation.lowers && !d->limits.subgroups && clb_shuffles(k);
  if (lower && !clb_lower_shuffles(k, &lowered)) fail_msg("%s: %s", k->name, lowered.error);
  *l = (loaded){mutation.modules, *module, mutants_of(lower ? &lowered : k)};
  mutation.modules = l;
  ir_free(&lowered);
  return s;
}

static inline void mutants_unload(clb_device *d, clb_module *module) {
  for (loaded **l = &mutation.modules; *l; l = &(*l)->next)
    if ((*l)->module == module) {
      loaded *gone = *l;
      *l = gone->next;
      free(gone);
      break;
    }
  clb_backend_cpu.unload(d, module);
}

/* The contents of a kernel's buffers: keeps them in kept[] for each argument, restores them, or
   compares. */
typedef enum { KEEP, RESTORE, EQUAL } memory_act;
static inline bool memories(const clb_arg *args, int n, char **kept, memory_act act) {
  for (int i = 0; i < n; i++) {
    if (args[i].type != IR_VOID || !args[i].memory->bytes) continue;
    size_t bytes = args[i].memory->bytes;
    if (act == KEEP && !kept[i]) assert_non_null(kept[i] = malloc(bytes));
    if (act == KEEP) memcpy(kept[i], args[i].memory->handle, bytes);
    else if (act == RESTORE) memcpy(args[i].memory->handle, kept[i], bytes);
    else if (memcmp(args[i].memory->handle, kept[i], bytes)) return false;
  }
  return true;
}

static inline mutant_fate fate_without(mutants *m, int b, int64_t groups, const ir_arg *values,
                                       const clb_arg *args, int n, char **after) {
  char error[1000] = "";
  ir_ins *i = &m->k.ins[m->at[b]], kept = *i;
  *i = (ir_ins){.op = IR_INT,
                .type = IR_I32,
                .shape = IR_UNIFORM,
                .arg = {IR_NONE, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                .stride = IR_NONE,
                .scope = kept.scope};
  bool ok = ir_run(&m->k, values, NULL, 0, groups, error, sizeof error);
  *i = kept;
  if (!ok) return !strncmp(error, "race", 4) ? MUTANT_RACES : MUTANT_MISSES;
  return memories(args, n, after, EQUAL) ? MUTANT_LIVES : MUTANT_DIFFERS;
}

static inline clb_status mutants_launch(clb_device *d, clb_module *module, int64_t groups,
                                        const clb_arg *args, int n) {
  mutants *m = NULL;
  ir_arg values[64];
  char *before[64] = {0}, *after[64] = {0};
  for (loaded *l = mutation.modules; l; l = l->next)
    if (l->module == module) m = l->of;
  assert_true(m && n <= 64);
  m->ran = true;
  if (!m->left) return clb_backend_cpu.launch(d, module, groups, args, n);
  for (int i = 0; i < n; i++) {
    values[i].i64 = args[i].i64;
    if (args[i].type == IR_VOID) values[i].p = args[i].memory->handle;
  }
  memories(args, n, before, KEEP);
  clb_status s = clb_backend_cpu.launch(d, module, groups, args, n);
  memories(args, n, after, KEEP);
  for (int b = 0; b < m->n && !s; b++) {
    if (m->fate[b] != MUTANT_LIVES) continue;
    memories(args, n, before, RESTORE);
    m->fate[b] = fate_without(m, b, groups, values, args, n, after);
    m->left -= m->fate[b] != MUTANT_LIVES;
  }
  memories(args, n, after, RESTORE);
  for (int i = 0; i < n; i++) free(before[i]), free(after[i]);
  return s;
}

/* Makes the context's launches run this way. */
static inline void mutate(clb_context *ctx) {
  mutation.backend = clb_backend_cpu;
  mutation.backend.load = mutants_load;
  mutation.backend.unload = mutants_unload;
  mutation.backend.launch = mutants_launch;
  ctx->device->backend = &mutation.backend;
}

static inline void mutants_free(void) {
  for (mutants *m = mutation.kernels, *next; m; m = next) {
    next = m->next;
    ir_free(&m->k);
    clb_text_free(&m->bytes);
    free(m);
  }
  mutation.kernels = NULL;
}

#endif
