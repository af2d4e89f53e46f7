/* models/layers/network.c - a network's arrays, layers and weights, and what layers share. */
#include "models/layers/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/linear/host/linear.h"
#include "src/base/reserve.h"

clb_status clb_network_no_memory(const clb_network *n) {
  return clb_fail(n->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
}

int64_t clb_channels(const clb_irreps *irreps, const clb_term *of) {
  int64_t n = 0;
  for (int t = 0; t < irreps->n; t++)
    n += !of || clb_same_irrep(&irreps->term[t], of) ? irreps->term[t].mul : 0;
  return n;
}

int clb_find_irrep(const clb_irreps *irreps, const clb_term *t) {
  for (int i = 0; i < irreps->n; i++)
    if (clb_same_irrep(&irreps->term[i], t)) return i;
  return -1;
}

/* ---- lists ---- */

static void free_layer(clb_layer *y) {
  if (y->kind->free_ops) y->kind->free_ops(y->parameters);
  clb_op_destroy(&y->derivatives);
  free(y->parameters);
  free(y);
}

void clb_network_free(clb_network *n) {
  clb_op **ops[] = {&n->product, &n->gather};
  for (int i = 0; i < n->n_layers; i++) free_layer(n->layer[i]);
  for (int i = 0; i < n->n_arrays; i++) free(n->array[i]);
  for (int i = 0; i < n->n_slots; i++) clb_buffer_destroy(&n->slot[i].buffer);
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) clb_op_destroy(ops[i]);
  for (int f = 0; f < CLB_ACTIVATIONS; f++) clb_op_destroy(&n->activation[f]);
  clb_buffer_destroy(&n->device_weights);
  clb_buffer_destroy(&n->weight_gradient);
  clb_buffer_destroy(&n->one);
  clb_buffer_destroy(&n->by_energy);
  clb_parameters_free(&n->parameter);
  free(n->state);
  free(n->kept);
  clb_buffer_destroy(&n->workspace);
  clb_graph_destroy(&n->whole);
  clb_graph_destroy(&n->block);
  clb_ghosts_free(&n->ghosts);
  free(n->architecture);
  free(n->symbols);
  free(n->weights);
  free(n->array);
  free(n->layer);
  free(n->step);
  free(n->slot);
  *n = (clb_network){0};
}

clb_status clb_network_array(clb_network *n, clb_per per, bool dense, const clb_irreps *irreps,
                             int *index) {
  clb_array **all = realloc(n->array, (size_t)(n->n_arrays + 1) * sizeof *all),
            *a = malloc(sizeof *a);
  if (all) n->array = all;
  if (!all || !a) {
    free(a);
    return clb_network_no_memory(n);
  }
  *a = (clb_array){.per = per, .dense = dense, .irreps = *irreps};
  all[ *index = n->n_arrays++] = a;
  return CLB_OK;
}

clb_status clb_network_layer(clb_network *n, const clb_layer_kind *kind, const char *name,
                             size_t bytes, clb_layer **layer) {
  clb_layer **all = realloc(n->layer, (size_t)(n->n_layers + 1) * sizeof *all),
            *y = malloc(sizeof *y);
  void *parameters = calloc(1, bytes);
  if (all) n->layer = all;
  if (!all || !y || !parameters) {
    free(y);
    free(parameters);
    return clb_network_no_memory(n);
  }
  *y = (clb_layer){.kind = kind, .work = -1, .again = kind->again, .parameters = parameters};
  snprintf(y->name, sizeof y->name, "%s", name);
  for (int i = 0; i < CLB_LAYER_INS; i++) y->in[i] = -1;
  for (int i = 0; i < CLB_LAYER_OUTS; i++) y->out[i] = -1;
  *layer = all[n->n_layers++] = y;
  return CLB_OK;
}

void clb_network_remove(clb_network *n, int layer) {
  free_layer(n->layer[layer]);
  n->n_layers--;
  memmove(n->layer + layer, n->layer + layer + 1,
          (size_t)(n->n_layers - layer) * sizeof(clb_layer *));
}

clb_status clb_network_reserve(clb_network *n, int64_t count, int64_t *at) {
  const int64_t first = (n->n_weights + 15) / 16 * 16, end = first + count;
  if (end > n->weights_capacity) {
    const int64_t capacity = 2 * end;
    double *grown = realloc(n->weights, (size_t)capacity * sizeof *grown);
    if (!grown) return clb_network_no_memory(n);
    memset(grown + n->weights_capacity, 0,
           (size_t)(capacity - n->weights_capacity) * sizeof *grown);
    n->weights = grown;
    n->weights_capacity = capacity;
  }
  n->n_weights = end;
  *at = first;
  return CLB_OK;
}

clb_status clb_network_copy_weights(clb_network *n, int64_t to, int64_t from, int64_t count) {
  memcpy(n->weights + to, n->weights + from, (size_t)count * sizeof *n->weights);
  return n->trains && !clb_parameters_copy(&n->parameter, to, from, count)
             ? clb_network_no_memory(n)
             : CLB_OK;
}

/* ---- who reads and writes what ---- */

int clb_network_writer(const clb_network *n, int array) {
  int found = -1, writers = 0;
  for (int l = 0; l < n->n_layers; l++)
    for (int i = 0; i < CLB_LAYER_OUTS && !clb_in_place(n->layer[l]); i++)
      if (n->layer[l]->out[i] == array) found = l, writers++;
  return writers == 1 ? found : -1;
}

int clb_network_readers(const clb_network *n, int array) {
  int readers = 0;
  for (int l = 0; l < n->n_layers; l++) {
    bool reads = false;
    for (int i = 0; i < CLB_LAYER_INS; i++) reads |= n->layer[l]->in[i] == array;
    readers += reads && !clb_in_place(n->layer[l]);
  }
  return readers;
}

bool clb_network_adds(const clb_network *n, const clb_layer *y, int in) {
  for (int s = n->n_forward; s < n->n_steps; s++)
    if (n->step[s].sweep == CLB_SWEEP_BACKWARD && !n->step[s].again &&
        n->layer[n->step[s].layer] == y && n->step[s].adds >> in & 1)
      return true;
  return false;
}

bool clb_network_learns(const clb_network *n, int array) {
  bool learns = false;
  for (int l = 0; l < n->n_layers; l++)
    for (int i = 0; i < CLB_LAYER_OUTS; i++)
      learns |= array >= 0 && n->layer[l]->out[i] == array && n->layer[l]->kind->reverse;
  return learns;
}

/* ---- rows ---- */

static clb_rows rows_of(const clb_network *n, int array, clb_kept which, bool all) {
  if (array < 0) return (clb_rows){0};
  const clb_array *a = n->array[array];
  const clb_stored *stored = &a->stored[which];
  if (stored->slot < 0) return (clb_rows){0};
  const clb_slot *slot = &n->slot[stored->slot];
  clb_buffer *own = array != CLB_VECTORS    ? NULL
                    : which == CLB_VALUE    ? n->vectors
                    : which == CLB_GRADIENT ? n->g_vectors
                                            : NULL;
  const int64_t stride = n->blocked && !stored->block && clb_slot_rows(a)
                             ? slot->bytes / clb_dtype_bytes((int32_t)n->type)
                             : clb_stored_stride(n, a, which);
  int64_t first = a->per == CLB_PER_EDGE ? n->at.edge : n->at.first;
  if (all || stored->block || a->per == CLB_PER_KNOT) first = 0;
  return (clb_rows){own ? own : slot->buffer, first * stride, stride, NULL};
}

clb_rows clb_value(const clb_network *n, int array) { return rows_of(n, array, CLB_VALUE, false); }
clb_rows clb_gradient(const clb_network *n, int array) {
  return rows_of(n, array, CLB_GRADIENT, false);
}
clb_rows clb_tangent(const clb_network *n, int array) {
  return rows_of(n, array, CLB_TANGENT, false);
}
clb_rows clb_adjoint(const clb_network *n, int array) {
  return rows_of(n, array, CLB_ADJOINT, false);
}
clb_rows clb_all_values(const clb_network *n, int array) {
  return rows_of(n, array, CLB_VALUE, true);
}
clb_rows clb_all_gradients(const clb_network *n, int array) {
  return rows_of(n, array, CLB_GRADIENT, true);
}
clb_rows clb_all_tangents(const clb_network *n, int array) {
  return rows_of(n, array, CLB_TANGENT, true);
}
clb_rows clb_all_adjoints(const clb_network *n, int array) {
  return rows_of(n, array, CLB_ADJOINT, true);
}

int64_t clb_row_count(const clb_network *n, int array) {
  const clb_atom_block *at = &n->at;
  const int64_t ghosts = at->last ? n->n_total - n->n_local : 0;
  return n->array[array]->per == CLB_PER_EDGE   ? at->n_edges
         : n->array[array]->per == CLB_PER_ATOM ? at->n + ghosts
         : n->array[array]->per == CLB_PER_KNOT ? clb_grid_rows(n)
                                                : at->n;
}

clb_buffer *clb_row_species(const clb_network *n, int pairs) {
  return pairs < 0 ? n->species.buffer : clb_value(n, pairs).buffer;
}
int64_t clb_species_count(const clb_network *n, int pairs) {
  return pairs < 0 ? n->n_species : (int64_t)n->n_species * n->n_species;
}

/* ---- shared ops ---- */

clb_status clb_network_product(clb_network *n) {
  return n->product ? CLB_OK : clb_gemm_create(n->ctx, n->type, &n->product);
}
clb_status clb_network_gather(clb_network *n) {
  return n->gather ? CLB_OK : clb_gather_create(n->ctx, n->type, false, &n->gather);
}
clb_status clb_network_activation(clb_network *n, clb_activation f) {
  return n->activation[f] ? CLB_OK
                          : clb_activation_create(n->ctx, n->type, f, 1, 1, &n->activation[f]);
}

clb_status clb_network_species_map(clb_network *n, int64_t n_species, int64_t columns,
                                   int gradients, clb_op **op) {
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  problem->kind = CLB_LINEAR;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->accumulate = 1;
  problem->linear = (clb_linear_problem){.in = clb_scalars(1),
                                         .out = clb_scalars(columns),
                                         .layout_in = CLB_IR_MUL,
                                         .layout_out = CLB_IR_MUL,
                                         .weights = CLB_LINEAR_BY_SPECIES,
                                         .n_species = (int32_t)n_species,
                                         .gradients = gradients,
                                         .incoming = CLB_OPERAND_X,
                                         .n_paths = 1,
                                         .n_weights = (int32_t)columns,
                                         .path = {{.coefficient = 1}}};
  const clb_status s = clb_linear_make(n->ctx, problem, CLB_PASS_BIT(CLB_BACKWARD), op);
  free(problem);
  return s;
}

clb_status clb_network_multiply(clb_network *n, const clb_gemm_step *p) {
  return clb_gemm_run(n->product, &(clb_gemm_desc){.m = p->rows,
                                                   .n = p->columns,
                                                   .k = p->inner,
                                                   .count = p->count,
                                                   .a = &p->a.buffer->memory,
                                                   .b = &n->device_weights->memory,
                                                   .c = &p->c.buffer->memory,
                                                   .offset_a = p->a.offset,
                                                   .ld_a = p->a.stride,
                                                   .stride_a = p->inner,
                                                   .offset_b = p->weights,
                                                   .ld_b = p->transposed ? p->inner : p->columns,
                                                   .offset_c = p->c.offset,
                                                   .ld_c = p->c.stride,
                                                   .stride_c = p->columns,
                                                   .transpose_b = p->transposed,
                                                   .add = p->add});
}

clb_dtype clb_edge_arithmetic(const clb_network *n) {
  return n->trains ? clb_sum_type(n->ctx) : n->type;
}

clb_status clb_network_grow(clb_network *n, clb_buffer **buffer, int64_t count) {
  return clb_buffer_grow(n->ctx, buffer, count, clb_dtype_bytes((int32_t)n->type));
}

clb_status clb_network_keep(clb_network *n, int64_t at, int64_t count) {
  if (!clb_reserve(&n->kept, &n->kept_capacity, n->n_kept + 1, sizeof *n->kept))
    return clb_network_no_memory(n);
  n->kept[n->n_kept++] = (clb_weight_span){at, count};
  return CLB_OK;
}

clb_status clb_network_derive(clb_network *n, clb_op *op, int array, clb_op **sums) {
  const clb_status s = clb_layer_add_training(op);
  return s ? s
           : clb_column_sum_create(n->ctx, n->type, n->type, n->array[array]->irreps.dim, INT32_MAX,
                                   sums);
}
