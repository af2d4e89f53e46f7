/* kernels/optimizer/host/plan.c - where the tensors are in memory, and the table of chunks. */
#include "kernels/optimizer/host/optimizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/runtime/call.h"

static int64_t element_bytes(const clb_optimizer *o, int array) {
  return clb_dtype_bytes(clb_optimizer_type(&o->desc, array));
}

/* ---- the memory of an array ---- */

/* The first tensor that has elements; the last one if none has. */
static const clb_optimizer_tensor *first_tensor(const clb_optimizer *o) {
  int64_t i = 0;
  while (i < o->desc.n_tensors - 1 && !clb_tensor_elements(&o->tensors[i])) i++;
  return &o->tensors[i];
}

bool clb_optimizer_has(const clb_optimizer *o, int array) {
  const clb_optimizer_tensor *t = first_tensor(o);
  return clb_tensor_elements(t) && clb_tensor_place(t, array)->buffer;
}

/* All memory from the lowest buffer on: nobody knows where it ends, nor what has been written. */
static clb_status find_scattered(clb_optimizer *o, int array) {
  clb_memory *m = &o->array[array];
  for (int64_t i = 0; i < o->desc.n_tensors; i++) {
    if (!clb_tensor_elements(&o->tensors[i])) continue;
    const clb_memory *at = &clb_tensor_place(&o->tensors[i], array)->buffer->memory;
    if (at->kind != CLB_POINTER || !strcmp(o->ctx->device->backend->name, "opencl"))
      return clb_fail(&o->ctx->error, CLB_ERROR_UNSUPPORTED,
                      "clb_optimizer_create: the %s of all tensors must lie in one buffer on %s",
                      clb_tensor_arrays[array], o->ctx->device->info.name);
    if ((uintptr_t)at->handle < (uintptr_t)m->handle) m->handle = at->handle;
    if (array != CLB_GRADIENTS) clb_memory_mark(at, 0, at->bytes);
  }
  m->bytes = CLB_UNBOUNDED;
  m->written = NULL;
  return CLB_OK;
}

static clb_status find_array(clb_optimizer *o, int array) {
  const clb_memory *first = &clb_tensor_place(first_tensor(o), array)->buffer->memory;
  bool one = true;
  o->array[array] = *first;
  for (int64_t i = 0; i < o->desc.n_tensors && one; i++)
    if (clb_tensor_elements(&o->tensors[i]))
      one = clb_tensor_place(&o->tensors[i], array)->buffer->memory.handle == first->handle;
  return one ? CLB_OK : find_scattered(o, array);
}

/* The number of the tensor's first element, from the array's memory on. */
static int64_t start_of(const clb_optimizer *o, const clb_optimizer_tensor *t, int array) {
  const clb_place *p = clb_tensor_place(t, array);
  const uintptr_t apart = (uintptr_t)p->buffer->memory.handle - (uintptr_t)o->array[array].handle;
  return p->offset + (int64_t)apart / element_bytes(o, array);
}

/* Whether the memory starts at a multiple of a wide access. */
static bool starts_wide(const clb_optimizer *o, int array) {
  const clb_memory *m = &o->array[array];
  const uintptr_t bytes =
      (uintptr_t)(clb_optimizer_width(o->problem.storage) * element_bytes(o, array));
  return m->kind == CLB_CL_MEM || (uintptr_t)m->handle % bytes == 0;
}

static void find_rules(clb_optimizer *o) {
  clb_optimizer_problem *p = &o->problem.optimizer;
  for (int i = 0; i < o->desc.n_groups; i++) {
    const clb_optimizer_rule rule = clb_optimizer_rule_of(&o->groups[i]);
    int r = 0;
    while (r < p->n_rules && memcmp(&p->rule[r], &rule, sizeof rule)) r++;
    if (r < p->n_rules) continue;
    p->rule[p->n_rules++] = rule;
    if (clb_optimizer_states(&rule) > o->n_states) o->n_states = clb_optimizer_states(&rule);
  }
}

clb_status clb_optimizer_find_arrays(clb_optimizer *o) {
  clb_status s = CLB_OK;
  clb_optimizer_problem *p = &o->problem.optimizer;
  p->wide = 1;
  for (int a = 0; a < CLB_TENSOR_ARRAYS && !s; a++) {
    if (!clb_optimizer_has(o, a)) continue;
    s = find_array(o, a);
    p->wide &= starts_wide(o, a);
  }
  p->copies = clb_optimizer_has(o, CLB_COPY);
  if (!p->copies) p->copy = 0;
  find_rules(o);
  return s;
}

/* ---- the table of chunks ---- */

static int64_t rule_number(const clb_optimizer *o, const clb_optimizer_rule *rule) {
  int64_t r = 0;
  while (memcmp(&o->problem.optimizer.rule[r], rule, sizeof *rule)) r++;
  return r;
}

/* The row of a tensor's first chunk. */
static void first_row(clb_optimizer *o, const clb_optimizer_tensor *t, int64_t *row) {
  enum { ALIGNED = 4 }; /* states of a tensor start at a multiple of so many elements */
  const int64_t n = clb_tensor_elements(t), width = clb_optimizer_width(o->problem.storage);
  const clb_optimizer_rule rule = clb_optimizer_rule_of(&o->groups[t->group]);
  bool wide = o->problem.optimizer.wide;
  memset(row, 0, CLB_CHUNK_COLUMNS * sizeof *row);
  for (int a = 0; a < CLB_TENSOR_ARRAYS; a++) {
    if (!clb_optimizer_has(o, a)) continue;
    row[a] = start_of(o, t, a);
    wide &= row[a] % width == 0;
  }
  for (int i = 0; i < clb_optimizer_states(&rule); i++) {
    row[CLB_CHUNK_STATE + i] = o->state_elements[i];
    o->state_elements[i] += clb_divide_up(n, ALIGNED) * ALIGNED;
  }
  if (clb_optimizer_gathers(&rule)) {
    const clb_matrix_places *at = &o->matrix_places[t - o->tensors];
    const int64_t places[] = {at->gathered, at->mean, at->rotated, at->rotated_mean, at->direction};
    memcpy(row + CLB_CHUNK_GATHERED, places, sizeof places);
  }
  row[CLB_CHUNK_RULE] = rule_number(o, &rule);
  row[CLB_CHUNK_GROUP] = t->group;
  row[CLB_CHUNK_WIDE] = wide;
}

/* The chunks of a tensor; returns their number. */
static int64_t add_chunks(const clb_optimizer *o, const int64_t *first, int64_t n, int64_t chunk,
                          int64_t *to) {
  const int64_t width = clb_optimizer_width(o->problem.storage);
  int64_t number = 0;
  for (int64_t at = 0; at < n; at += chunk, number++, to += CLB_CHUNK_COLUMNS) {
    const int64_t count = n - at < chunk ? n - at : chunk;
    for (int c = 0; c < CLB_CHUNK_COLUMNS; c++) to[c] = first[c] + (c < CLB_CHUNK_COUNT ? at : 0);
    to[CLB_CHUNK_COUNT] = count;
    to[CLB_CHUNK_WIDE] = first[CLB_CHUNK_WIDE] && count % width == 0;
  }
  return number;
}

int64_t *clb_optimizer_make_table(clb_optimizer *o) {
  const int64_t chunk = clb_optimizer_chunk_size(o);
  int64_t chunks = 0;
  for (int64_t i = 0; i < o->desc.n_tensors; i++)
    chunks += clb_divide_up(clb_tensor_elements(&o->tensors[i]), chunk);
  o->n_chunks = chunks ? chunks : 1; /* one without elements counts the steps */
  int64_t *table = calloc((size_t)o->n_chunks, CLB_CHUNK_COLUMNS * sizeof *table), *to = table;
  for (int64_t i = 0; i < o->desc.n_tensors && table; i++) {
    const clb_optimizer_tensor *t = &o->tensors[i];
    int64_t row[CLB_CHUNK_COLUMNS];
    if (!clb_tensor_elements(t)) continue;
    first_row(o, t, row);
    to += CLB_CHUNK_COLUMNS * add_chunks(o, row, clb_tensor_elements(t), chunk, to);
  }
  return table;
}
