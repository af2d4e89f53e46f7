/* model_room.c - a model's memory: arrays that grow by a quarter, staging on the host, numbers to and fro. */
#include "model.h"

#include <stdlib.h>

/* ---- numbers ---- */

void *clb_model_staging(clb_model *m, size_t bytes) {
  if (bytes > m->staging_bytes) {
    free(m->staging);
    m->staging_bytes = bytes + bytes / 4;
    if (!(m->staging = malloc(m->staging_bytes))) m->staging_bytes = 0;
  }
  return m->staging;
}

static clb_status no_memory(clb_model *m) { return clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory"); }

clb_status clb_model_upload(clb_model *m, clb_buffer *to, clb_dtype type, int64_t n, const double *from) {
  if (type == CLB_F64 || !n) return n ? clb_buffer_write(to, 0, from, (uint64_t)n * sizeof *from) : CLB_OK;
  float *x = clb_model_staging(m, (size_t)n * sizeof *x);
  if (!x) return no_memory(m);
  for (int64_t i = 0; i < n; i++) x[i] = (float)from[i];
  return clb_buffer_write(to, 0, x, (uint64_t)n * sizeof *x);
}

clb_status clb_model_download(clb_model *m, clb_buffer *from, clb_dtype type, int64_t n, double *to) {
  if (type == CLB_F64 || !n) return n ? clb_buffer_read(from, 0, to, (uint64_t)n * sizeof *to) : CLB_OK;
  float *x = clb_model_staging(m, (size_t)n * sizeof *x);
  clb_status s = x ? clb_buffer_read(from, 0, x, (uint64_t)n * sizeof *x) : no_memory(m);
  for (int64_t i = 0; i < n && !s; i++) to[i] = x[i];
  return s;
}

/* ---- arrays ---- */

static clb_status replace(clb_model *m, clb_buffer **buffer, int64_t count, int64_t bytes) {
  int64_t all;
  clb_buffer_destroy(buffer);
  if (__builtin_mul_overflow(count, bytes, &all)) return no_memory(m);
  return clb_buffer_create(m->ctx, (uint64_t)(all ? all : 1), buffer);
}

/* Rows of the arrays from `first` to `last`. */
static clb_status grow_arrays(clb_model *m, int first, int last, int64_t rows) {
  clb_status s = CLB_OK;
  for (int i = first; i < last && !s; i++) {
    const clb_dtype type = i == CLB_MODEL_E_ATOM || i == CLB_MODEL_FORCE ? m->sum_type : m->type;
    if (m->columns[i]) s = replace(m, &m->array[i], rows, m->columns[i] * (i == CLB_MODEL_SPECIES ? 4 : clb_dtype_bytes((int32_t)type)));
  }
  return s;
}

static clb_status grow_atoms(clb_model *m, int64_t n) {
  const int64_t rows = n + n / 4, bytes = clb_dtype_bytes((int32_t)m->type);
  clb_status s;
  m->atom_room = 0;
  s = grow_arrays(m, CLB_MODEL_EDGE_ARRAYS, CLB_MODEL_ARRAYS, rows);
  for (int l = 0; l < m->file.n_layers && !s; l++) {
    const clb_model_layer *y = &m->file.layer[l];
    clb_model_layer_parts *p = &m->layer[l];
    s = replace(m, &p->x, rows, clb_model_stride(y->in.dim) * bytes);
    if (!s) s = replace(m, &p->linear, rows, clb_model_stride(y->linear.dim) * bytes);
    if (!s && m->file.rms) s = replace(m, &p->normed, rows, clb_model_stride(y->linear.dim) * bytes);
  }
  if (!s) m->atom_room = rows;
  return s;
}

static clb_status grow_edges(clb_model *m, int64_t n) {
  const int64_t rows = n + n / 4;
  m->edge_room = 0;
  clb_status s = grow_arrays(m, 0, CLB_MODEL_EDGE_ARRAYS, rows);
  if (!s) m->edge_room = rows;
  return s;
}

/* One workspace for all convolutions: what they ask for, but no more than the limit unless one cannot do with less. */
static clb_status grow_workspace(clb_model *m) {
  const uint64_t limit = m->options.workspace_bytes ? m->options.workspace_bytes : (uint64_t)256 << 20;
  uint64_t need = 0;
  for (int l = 0; l < m->file.n_layers; l++)
    for (clb_pass pass = CLB_FORWARD; pass <= CLB_BACKWARD; pass++) {
      uint64_t least, most;
      clb_status s = clb_convolution_workspace(m->layer[l].convolution, pass, m->graph, &least, &most);
      if (s) return s;
      if (most > limit) most = least > limit ? least : limit;
      if (most > need) need = most;
    }
  if (m->workspace && m->workspace->memory.bytes >= need) return CLB_OK;
  return replace(m, &m->workspace, 1, (int64_t)(need + need / 4));
}

clb_status clb_model_set_species(clb_model *m, int64_t n, const int32_t *species) {
  if (!n) return CLB_OK;
  if (!species) return clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT, "clb_model: species is NULL");
  for (int64_t i = 0; i < n; i++)
    if (species[i] < 0 || species[i] >= m->file.n_species)
      return clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT, "clb_model: species[%lld] is %d; it must be 0 ... %d", (long long)i, (int)species[i], m->file.n_species - 1);
  return clb_buffer_write(m->array[CLB_MODEL_SPECIES], 0, species, (uint64_t)n * sizeof *species);
}

clb_status clb_model_set_graph(clb_model *m, const clb_model_edges *e) {
  clb_status s = clb_wait(m->ctx); /* what an earlier call left behind may still use what is replaced */
  m->n_edges = -1;
  if (!s && (e->n_total > m->atom_room || !m->atom_room)) s = grow_atoms(m, e->n_total);
  if (!s && (e->n_edges > m->edge_room || !m->edge_room)) s = grow_edges(m, e->n_edges);
  if (!s) s = clb_model_set_species(m, e->n_total, e->species);
  if (!s) s = clb_graph_update(m->graph, e->n_total, e->n_local, e->n_edges, CLB_I32, e->senders, e->receivers);
  if (!s) s = grow_workspace(m);
  if (s) return s;
  m->n_local = e->n_local;
  m->n_total = e->n_total;
  m->n_edges = e->n_edges;
  return CLB_OK;
}
