/* models/layers/edges/product.c - products of edges' features with others of these edges, or with
   features of the atoms that receive or send them.

   Gradients by features of atoms are sums over edges: those of some edges at a time go to the
   workspace, which are then added up by receiver, or by sender. */
#include <string.h>

#include "kernels/graph/host/row_sum.h"
#include "kernels/tensor_product/host/tensor_product.h"
#include "models/layers/kinds.h"

enum { X = CLB_OPERAND_X, Y = CLB_OPERAND_Y, W = CLB_OPERAND_W, LEAST_EDGES = 64 };
/* Operands of backward and double backward. */
enum { B_G = 3, B_GX, B_GY, B_GW, BACKWARD_OPERANDS };
enum { D_G = 3, D_A, D_B, D_C, D_X, D_Y, D_W, D_Z, DOUBLE_OPERANDS };

/* The input that has rows of atoms; -1: both have rows of edges. */
static int atoms_in(const clb_network *n, const clb_layer *y) {
  int in = -1;
  for (int i = CLB_PRODUCT_X; i <= CLB_PRODUCT_Y; i++)
    if (n->array[y->in[i]]->per != CLB_PER_EDGE) in = i;
  return in;
}
static bool gathers(const clb_network *n, const clb_layer *y) { return atoms_in(n, y) >= 0; }
static int operand(int in) { return in == CLB_PRODUCT_X ? X : Y; }
static bool of_senders(const clb_layer *y) { return y->kind == &clb_sender_product_kind; }

/* ---- ops ---- */

static clb_status create(clb_network *n, const clb_layer *y, int gradients, bool adds,
                         unsigned passes, clb_op **op) {
  const clb_product_layer *p = y->parameters;
  const clb_array *x = n->array[y->in[CLB_PRODUCT_X]], *other = n->array[y->in[CLB_PRODUCT_Y]];
  const clb_tensor_product_desc d = {.instructions = p->path,
                                     .n_instructions = p->n_paths,
                                     .shared_weights = p->path[0].has_weight,
                                     .indexed =
                                         gathers(n, y) ? (unsigned)operand(atoms_in(n, y)) : 0,
                                     .gradients = (unsigned)gradients,
                                     .incoming = (x->moves ? X : 0U) | (other->moves ? Y : 0U)};
  return clb_product_create(n, d, &p->x, p->y.n ? &p->y : &other->irreps,
                            p->z.n ? &p->z : &n->array[y->out[0]]->irreps, adds, passes, op);
}

/* Gradients that one call computes: of atoms' features with those of edges, which alone may add. */
typedef struct {
  int gradients;
  bool adds;
} call_of;

static int calls_of(const clb_network *n, const clb_layer *y, unsigned adds, call_of *calls) {
  const int atoms = atoms_in(n, y);
  int count = 0;
  for (int i = CLB_PRODUCT_X; i <= CLB_PRODUCT_Y; i++)
    if (n->array[y->in[i]]->moves) calls[count++] = (call_of){operand(i), adds >> i & 1};
  for (int i = 0; i < count; i++)
    if (atoms >= 0 && calls[i].gradients == operand(atoms))
      calls[i].adds = calls[count - 1 - i].adds && count > 1;
  if (count < 2 || calls[0].adds != calls[1].adds) return count;
  calls[0].gradients = X | Y;
  return 1;
}

static clb_op **op_of(clb_product_layer *p, const call_of *c) {
  return &p->back[c->gradients - X][c->adds];
}

/* Backward ops for the order of layers as it is, besides those that are there. */
static clb_status make_back(clb_network *n, clb_layer *y) {
  clb_status s = CLB_OK;
  for (int i = 0; i < n->n_steps && !s; i++) {
    call_of calls[2];
    const bool back = n->step[i].sweep == CLB_SWEEP_BACKWARD && !n->step[i].again;
    if (n->layer[n->step[i].layer] != y || !back) continue;
    const int count = calls_of(n, y, n->step[i].adds, calls);
    for (int c = 0; c < count && !s; c++) {
      clb_op **op = op_of(y->parameters, &calls[c]);
      if (!*op) s = create(n, y, calls[c].gradients, calls[c].adds, CLB_PASS_BIT(CLB_BACKWARD), op);
    }
  }
  return s;
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_product_layer *p = y->parameters;
  clb_status s = create(n, y, X, false, CLB_PASS_BIT(CLB_FORWARD), &p->op);
  if (!s) s = make_back(n, y);
  if (!s && gathers(n, y))
    s = clb_row_sum_create(n->ctx, n->type, n->type, n->type,
                           n->array[y->in[atoms_in(n, y)]]->irreps.dim, &p->sum);
  return s;
}

/* ---- calls ---- */

static clb_rows weights(const clb_network *n, const clb_product_layer *p) {
  return p->path[0].has_weight ? (clb_rows){n->device_weights, p->weights, CLB_DENSE, NULL}
                               : (clb_rows){0};
}

/* What each edge reads of an input: its own row, or that of its receiver or sender. */
static clb_rows gathered(const clb_network *n, const clb_layer *y, int in, clb_rows rows) {
  if (in == atoms_in(n, y))
    rows.index = &n->graph->buffer[of_senders(y) ? CLB_GRAPH_SENDERS : CLB_GRAPH_RECEIVERS];
  return rows;
}
static clb_rows value(const clb_network *n, const clb_layer *y, int in) {
  const bool all = of_senders(y) && in == atoms_in(n, y);
  return gathered(n, y, in, (all ? clb_all_values : clb_value)(n, y->in[in]));
}
static clb_rows gradient(const clb_network *n, const clb_layer *y, int in) {
  const bool all = of_senders(y) && in == atoms_in(n, y);
  return (all ? clb_all_gradients : clb_gradient)(n, y->in[in]);
}

/* Edges first ... first + count - 1. */
static clb_status run_part(clb_op *op, clb_pass pass, int64_t first, int64_t count,
                           const clb_rows *rows) {
  clb_operand o[CLB_TENSOR_PRODUCT_OPERANDS];
  const int n = clb_tensor_product_operands(&op->problem, pass, rows, o);
  for (int i = 0; i < n; i++) {
    if (o[i].one_row) continue;
    if (o[i].indexed) o[i].index_first += first;
    else o[i].rows.offset += first * clb_operand_stride(&o[i]);
  }
  return clb_tensor_product_run_on(op, pass, count, o, n);
}

typedef struct {
  int64_t columns, splits, row; /* splits: rows for them; row: bytes of an edge */
} needs;

static needs needs_of(const clb_network *n, const clb_layer *y) {
  needs x = {.columns = n->array[y->in[atoms_in(n, y)]]->irreps.dim,
             .splits = clb_graph_split_rows(n->graph)};
  x.row = x.columns * clb_dtype_bytes((int32_t)n->type);
  return x;
}

/* A pass whose gradient by atoms' features, number `at` of its rows, goes to that of atoms. */
static clb_status run_summed(clb_network *n, const clb_layer *y, clb_op *op, clb_pass pass, int at,
                             const clb_rows *given, bool add) {
  const clb_product_layer *p = y->parameters;
  const needs x = needs_of(n, y);
  const int direction = of_senders(y) ? CLB_BY_SENDER : CLB_BY_RECEIVER;
  const clb_rows to = given[at];
  const int64_t edges = n->at.n_edges, all = (int64_t)n->workspace->memory.bytes / x.row - x.splits,
                most = all < 1 ? 1 : all;
  clb_rows rows[CLB_TENSOR_PRODUCT_OPERANDS];
  clb_status s = CLB_OK;
  memcpy(rows, given,
         sizeof(clb_rows) * (pass == CLB_BACKWARD ? BACKWARD_OPERANDS : DOUBLE_OPERANDS));
  for (int64_t first = 0; (first < edges || !first) && !s; first += most) {
    const int64_t count = edges - first < most ? edges - first : most;
    clb_workspace_discard(n->ctx, &n->workspace->memory);
    rows[at] = (clb_rows){n->workspace, (x.splits - first) * x.columns, CLB_DENSE, NULL};
    s = run_part(op, pass, first, count, rows);
    if (!s)
      s = clb_row_sum_run(p->sum, n->graph, direction, first, first + count, &n->workspace->memory,
                          x.splits * x.columns, x.columns, &to.buffer->memory, to.offset, to.stride,
                          add || first > 0, &n->workspace->memory, 0);
  }
  return s;
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_product_layer *p = y->parameters;
  (void)adds;
  return run_part(p->op, CLB_FORWARD, 0, n->at.n_edges,
                  (const clb_rows[]){value(n, y, CLB_PRODUCT_X), value(n, y, CLB_PRODUCT_Y),
                                     weights(n, p), clb_value(n, y->out[0])});
}

static clb_status run_backward(clb_network *n, const clb_layer *y, clb_op *op, bool add, clb_rows g,
                               clb_rows g_x, clb_rows g_y, clb_rows g_w) {
  const clb_rows rows[BACKWARD_OPERANDS] = {value(n, y, CLB_PRODUCT_X),
                                            value(n, y, CLB_PRODUCT_Y),
                                            weights(n, y->parameters),
                                            g,
                                            g_x,
                                            g_y,
                                            g_w};
  const int atoms = atoms_in(n, y);
  return atoms >= 0 && op->problem.tensor_product.gradients & operand(atoms)
             ? run_summed(n, y, op, CLB_BACKWARD, B_GX + atoms, rows, add)
             : run_part(op, CLB_BACKWARD, 0, n->at.n_edges, rows);
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const bool add =
      (gathers(n, y) && adds >> atoms_in(n, y) & 1) || (of_senders(y) && n->graph->adds);
  call_of calls[2];
  const int count = calls_of(n, y, adds, calls);
  clb_status s = CLB_OK;
  for (int i = 0; i < count && !s; i++)
    s = run_backward(n, y, *op_of(y->parameters, &calls[i]), add, clb_gradient(n, y->out[0]),
                     gradient(n, y, CLB_PRODUCT_X), gradient(n, y, CLB_PRODUCT_Y), (clb_rows){0});
  return s;
}

static clb_status workspace(clb_network *n, clb_layer *y, clb_pass pass, uint64_t *min,
                            uint64_t *max) {
  if (!gathers(n, y)) {
    *min = *max = 0;
    return CLB_OK;
  }
  const needs x = needs_of(n, y);
  const int64_t edges = n->graph->n_edges, least = edges < LEAST_EDGES ? edges : LEAST_EDGES;
  const bool sums = pass == CLB_BACKWARD || (pass == CLB_DOUBLE_BACKWARD && n->trains);
  *min = sums ? (uint64_t)((x.splits + least + 1) * x.row) : 0;
  *max = sums ? (uint64_t)((x.splits + edges + 1) * x.row) : 0;
  return CLB_OK;
}

/* ---- training ---- */

static int learns(const clb_network *n, const clb_layer *y) {
  return (clb_network_learns(n, y->in[CLB_PRODUCT_X]) ? X : 0) |
         (clb_network_learns(n, y->in[CLB_PRODUCT_Y]) ? Y : 0);
}

static int moving(const clb_network *n, const clb_layer *y) {
  return (n->array[y->in[CLB_PRODUCT_X]]->moves ? X : 0) |
         (n->array[y->in[CLB_PRODUCT_Y]]->moves ? Y : 0);
}

static clb_status derive(clb_network *n, clb_layer *y) {
  enum { ONCE = CLB_PASS_BIT(CLB_BACKWARD), TWICE = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD) };
  clb_product_layer *p = y->parameters;
  const int of_edges = learns(n, y) & moving(n, y) & (gathers(n, y) ? X : X | Y),
            all = learns(n, y) | (p->path[0].has_weight ? W : 0);
  clb_status s = create(n, y, CLB_OPERAND_Z, false, TWICE, &p->along);
  if (!s) s = create(n, y, all, true, ONCE | TWICE, &y->derivatives);
  for (int add = 0; add < 2 && !s && of_edges; add++)
    s = create(n, y, of_edges, add, ONCE, &p->again[add]);
  return s;
}

static clb_status again_backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_product_layer *p = y->parameters;
  return run_backward(n, y, p->again[adds & 1], false, clb_gradient(n, y->out[0]),
                      clb_gradient(n, y->in[CLB_PRODUCT_X]), clb_gradient(n, y->in[CLB_PRODUCT_Y]),
                      (clb_rows){0});
}

static void operands_twice(const clb_network *n, const clb_layer *y,
                           clb_rows rows[DOUBLE_OPERANDS]) {
  const clb_product_layer *p = y->parameters;
  for (int i = 0; i < DOUBLE_OPERANDS; i++) rows[i] = (clb_rows){0};
  rows[0] = value(n, y, CLB_PRODUCT_X);
  rows[1] = value(n, y, CLB_PRODUCT_Y);
  rows[2] = weights(n, p);
  rows[D_G] = clb_gradient(n, y->out[0]);
  rows[D_A] = gathered(n, y, CLB_PRODUCT_X, clb_tangent(n, y->in[CLB_PRODUCT_X]));
  rows[D_B] = gathered(n, y, CLB_PRODUCT_Y, clb_tangent(n, y->in[CLB_PRODUCT_Y]));
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_product_layer *p = y->parameters;
  clb_rows rows[DOUBLE_OPERANDS];
  (void)adds, (void)bends;
  operands_twice(n, y, rows);
  rows[D_Z] = clb_tangent(n, y->out[0]);
  return run_part(p->along, CLB_DOUBLE_BACKWARD, 0, n->at.n_edges, rows);
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_product_layer *p = y->parameters;
  const clb_rows w = p->path[0].has_weight ? clb_weight_gradient(n, weights(n, p)) : (clb_rows){0},
                 g_x = clb_adjoint(n, y->in[CLB_PRODUCT_X]),
                 g_y = clb_adjoint(n, y->in[CLB_PRODUCT_Y]);
  clb_rows rows[DOUBLE_OPERANDS];
  (void)adds;
  const clb_status s =
      run_backward(n, y, y->derivatives, true, clb_adjoint(n, y->out[0]), g_x, g_y, w);
  if (s) return s;
  operands_twice(n, y, rows);
  rows[D_X] = g_x;
  rows[D_Y] = g_y;
  rows[D_W] = w;
  return gathers(n, y) ? run_summed(n, y, y->derivatives, CLB_DOUBLE_BACKWARD, D_Y, rows, true)
                       : run_part(y->derivatives, CLB_DOUBLE_BACKWARD, 0, n->at.n_edges, rows);
}

static void free_ops(void *parameters) {
  clb_product_layer *p = parameters;
  clb_op **all[] = {&p->op, &p->along, &p->again[0], &p->again[1]};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) clb_op_destroy(all[i]);
  for (int i = 0; i < CLB_PRODUCT_SETS * 2; i++) clb_op_destroy(&p->back[i / 2][i % 2]);
  clb_row_sum_destroy(&p->sum);
}

const clb_layer_kind clb_product_kind = {.reads_in = 1U << CLB_PRODUCT_X | 1U << CLB_PRODUCT_Y,
                                         .build = build,
                                         .reorder = make_back,
                                         .forward = forward,
                                         .backward = backward,
                                         .workspace = workspace,
                                         .late = true,
                                         .always_adds = true,
                                         .derive = derive,
                                         .again_backward = again_backward,
                                         .along = along,
                                         .reverse = reverse,
                                         .free_ops = free_ops};

const clb_layer_kind clb_sender_product_kind = {.reads_in =
                                                    1U << CLB_PRODUCT_X | 1U << CLB_PRODUCT_Y,
                                                .senders = 1U << CLB_PRODUCT_X,
                                                .build = build,
                                                .reorder = make_back,
                                                .forward = forward,
                                                .backward = backward,
                                                .workspace = workspace,
                                                .free_ops = free_ops};
