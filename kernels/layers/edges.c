/* kernels/layers/edges.c - vectors of edges from positions, v = x[sender] - x[receiver] + shift .
   cell in f64; a lane is an edge. Pass 0: of one cell; pass 1: of many systems, each with a cell
   of its own. Edges of atoms to themselves within it are of a given length. Pass 2: tangents of
   vectors, u[sender] - u[receiver] + S v, where S is of the receiver's system.
 */
#include "kernels/layers/layer.h"

enum { OF_MANY = 1, TANGENTS };

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
  s->layer.wide_vectors = limits->simd;
}

/* x[number] */
static void position(clb_row_kernel *b, const clb_row_array *positions, ir_val number, ir_val mask,
                     ir_val *x) {
  ir_val row = clb_layer_row(b, positions, ir_cast(b->k, IR_I64, number));
  if (b->s->layer.wide_vectors) ir_load_wide(b->k, positions->buffer, row, mask, 3, x);
  for (int i = 0; i < 3 && !b->s->layer.wide_vectors; i++)
    x[i] = clb_layer_load(b, positions, row, clb_i64(b->k, i), mask);
}

/* The three numbers of clb_edge_shift. */
static void unpack(ir_kernel *k, ir_val packed, ir_val *shift) {
  ir_val size = clb_i32(k, CLB_EDGE_SHIFTS);
  for (int d = 0; d < 3; d++) {
    ir_val digit = d < 2 ? ir_2(k, IR_MOD, packed, size) : packed;
    shift[d] = ir_cast(k, IR_F64, ir_sub(k, digit, clb_i32(k, CLB_EDGE_SHIFTS / 2)));
    packed = ir_2(k, IR_DIV, packed, size);
  }
}

/* Cells of systems, and which of them an atom is in. */
typedef struct {
  ir_val cells, row, system; /* i64: numbers from one to the next */
} cell_table;

static cell_table table_begin(ir_kernel *k) {
  cell_table t = {.cells = ir_buffer(k, IR_F64, false)};
  t.row = ir_scalar(k, IR_I64);
  t.system = ir_buffer(k, IR_I32, false);
  return t;
}

static void load_cell(ir_kernel *k, const cell_table *t, ir_val atom, ir_val mask, ir_val *cell) {
  const ir_val of = ir_load(k, t->system, ir_cast(k, IR_I64, atom), mask),
               row = ir_mul(k, ir_cast(k, IR_I64, of), t->row);
  for (int i = 0; i < 9; i++) cell[i] = ir_load(k, t->cells, ir_add(k, row, clb_i64(k, i)), mask);
}

/* Lanes' edges; *mask: lanes that have one. */
static ir_val edges_of(const clb_row_kernel *b, ir_val edges, ir_val *mask) {
  ir_kernel *k = b->k;
  const ir_val lanes = clb_i64(k, b->s->lanes), first = ir_mul(k, b->unit, lanes),
               left = ir_2(k, IR_MIN, ir_sub(k, edges, first), lanes);
  *mask = ir_2(k, IR_LT, ir_lane(k), ir_cast(k, IR_I32, left));
  return ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k)));
}

static void store_vector(clb_row_kernel *b, const clb_row_array *out, ir_val edge, ir_val mask,
                         const ir_val *v) {
  const ir_val row = clb_layer_row(b, out, edge);
  if (b->s->layer.wide_vectors) ir_store_wide(b->k, out->buffer, row, mask, 3, v);
  for (int i = 0; i < 3 && !b->s->layer.wide_vectors; i++)
    ir_store(b->k, out->buffer, ir_add(b->k, row, clb_i64(b->k, i)), mask, v[i]);
}

static void lower_tangents(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel b;
  ir_val end[2], atom[2], u[2][3], v[3], q[3], mask;
  clb_layer_begin(&b, k, "edge_tangents", s, p->arithmetic);
  const ir_val edges = ir_scalar(k, IR_I64);
  const clb_row_array moves = clb_layer_array(&b, p->storage, false);
  for (int i = 0; i < 2; i++) end[i] = ir_buffer(k, IR_I32, false); /* senders, receivers */
  const clb_row_array strains = clb_layer_array(&b, p->storage, false);
  const ir_val systems = ir_buffer(k, IR_I32, false);
  const clb_row_array vectors = clb_layer_array(&b, p->storage, false),
                      out = clb_layer_array(&b, p->storage, true);
  clb_layer_start(&b);
  const ir_val edge = edges_of(&b, edges, &mask);
  for (int i = 0; i < 2; i++) {
    atom[i] = ir_load(k, end[i], edge, mask);
    position(&b, &moves, atom[i], mask, u[i]);
  }
  const ir_val system = ir_load(k, systems, ir_cast(k, IR_I64, atom[1]), mask),
               strain = clb_layer_row(&b, &strains, ir_cast(k, IR_I64, system)),
               vector = clb_layer_row(&b, &vectors, edge);
  for (int i = 0; i < 3; i++) v[i] = clb_layer_load(&b, &vectors, vector, clb_i64(k, i), mask);
  for (int i = 0; i < 3; i++) {
    q[i] = ir_sub(k, u[0][i], u[1][i]);
    for (int j = 0; j < 3; j++)
      q[i] =
          ir_fma(k, clb_layer_load(&b, &strains, strain, clb_i64(k, 3 * i + j), mask), v[j], q[i]);
    q[i] = ir_cast(k, ir_register_type(out.element), q[i]);
  }
  store_vector(&b, &out, edge, mask, q);
  clb_layer_finish(&b);
}

static void lower_vectors(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const double null[3] = {0.6, 0, 0.8}; /* no axis, along which frames are of other kinds */
  clb_row_kernel b;
  cell_table table;
  ir_val end[2], atom[2], cell[9], x[2][3], shift[3], v[3], mask;
  clb_layer_begin(&b, k, p->pass ? "edge_vectors_of_many" : "edge_vectors", s, p->arithmetic);
  ir_val edges = ir_scalar(k, IR_I64);
  clb_row_array positions = clb_layer_array(&b, CLB_F64, false);
  ir_val shifts = ir_buffer(k, IR_I32, false), first_shift = ir_scalar(k, IR_I64);
  for (int i = 0; i < 2; i++) end[i] = ir_buffer(k, IR_I32, false); /* senders, receivers */
  if (p->pass) table = table_begin(k);
  for (int i = 0; i < 9 && !p->pass; i++) cell[i] = ir_scalar(k, IR_F64);
  const ir_val far = ir_scalar(k, IR_F64);
  clb_row_array out = clb_layer_array(&b, p->storage, true);
  clb_layer_start(&b);
  const ir_val edge = edges_of(&b, edges, &mask);
  for (int i = 0; i < 2; i++) {
    atom[i] = ir_load(k, end[i], edge, mask);
    position(&b, &positions, atom[i], mask, x[i]);
  }
  if (p->pass) load_cell(k, &table, atom[1], mask, cell);
  const ir_val packed = ir_load(k, shifts, ir_add(k, first_shift, edge), mask),
               own = ir_2(k, IR_AND, ir_2(k, IR_EQ, atom[0], atom[1]),
                          ir_2(k, IR_EQ, packed, clb_i32(k, CLB_EDGE_HOME)));
  unpack(k, packed, shift);
  for (int i = 0; i < 3; i++) { /* rounded as clb_neighbours_vectors does */
    ir_val by = ir_add(k, ir_add(k, ir_mul(k, shift[0], cell[i]), ir_mul(k, shift[1], cell[3 + i])),
                       ir_mul(k, shift[2], cell[6 + i])),
           v_i = ir_add(k, ir_sub(k, x[0][i], x[1][i]), by);
    v_i = ir_select(k, own, ir_mul(k, far, ir_real(k, IR_F64, null[i])), v_i);
    v[i] = ir_cast(k, ir_register_type(out.element), v_i);
  }
  store_vector(&b, &out, edge, mask, v);
  clb_layer_finish(&b);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass == TANGENTS ? lower_tangents : lower_vectors)(p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%s",
               p->pass == TANGENTS  ? "along tangents"
               : p->pass == OF_MANY ? "from positions of many systems"
                                    : "from positions");
}

const clb_kernel_kind clb_kind_edge_vectors = {.name = "edge_vectors",
                                               .check = check,
                                               .schedule = schedule,
                                               .lower = lower,
                                               .print = print,
                                               .passes = 3};
