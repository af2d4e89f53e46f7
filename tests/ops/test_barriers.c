/* tests/ops/test_barriers.c - each barrier of each op's kernels is needed: without it the
   interpreter finds a race, or a result differs. With an argument it prints the table of
   tests/README.md. */
#define _GNU_SOURCE
#include "tests/ops/convolution/convolution_problems.h"
#include "tests/ops/mutants.h"

#include "kernels/graph/host/cell_list.h"
#include "kernels/layers/host/layers.h"
#include "kernels/linear/host/matmul.h"
#include "kernels/grouped/host/grouped.h"
#include "kernels/norm/host/rms_norm.h"

static const int limits[] = {LIMITS_NVIDIA,           LIMITS_AMD,
                             LIMITS_TWO_SUBGROUPS,    LIMITS_NO_SUBGROUPS,
                             LIMITS_CPU_NO_SUBGROUPS, LIMITS_SMALL_GROUPS};
enum { LIMITS = sizeof limits / sizeof *limits };

static clb_context *open_place(int i) {
  clb_context *ctx = NULL;
  OK(ctx, clb_context_create("cpu:interpreter", &ctx));
  ctx->device->limits = device_limits[limits[i]].limits;
  mutate(ctx);
  return ctx;
}

static int candidates_of(clb_op *op, int pass, clb_schedule *list) {
  op->problem.pass = pass;
  return clb_kernel_kinds[op->problem.kind]->candidates(&op->problem, &op->ctx->device->limits,
                                                        list);
}

/* A pass of an op, by each candidate. */
static void each_candidate(clb_context *ctx, const tool_op *op, const tool_kernel *kernel,
                           const tool_data *data) {
  for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    clb_schedule list[CLB_MAX_CANDIDATES];
    clb_op *handle = op_with(ctx, op, kernel, CLB_PASS_BIT(pass));
    for (int n = candidates_of(handle, pass, list), s = 0; s < n; s++) {
      OK(ctx, clb_op_set_schedule(handle, (clb_pass)pass, &list[s]));
      expect_pass(ctx, op, kernel, handle, (clb_pass)pass, data);
    }
    clb_op_destroy(&handle);
  }
}

static void products(void **state) {
#define CASE(x, filter, l) FOUND(x, filter, filter, CLB_AS_FOUND, LAYOUTS_OF(l, l, l))
  static const tensor_problem cases[] = {
      CASE("19x0e+19x1o", SH1, IR_MUL), CASE("33x0e+33x1o", SH1, MUL_IR),
      CASE("5x0e+13x1o", SH1, MUL_IR), CASE("40x0e", SH2, IR_MUL)};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    each_candidate(*state, &tool_op_tensor_product, &(tool_kernel){&cases[i], F32, false},
                   &(tool_data){.rows = 7});
  static const tensor_problem shared = {
      .kind = FULLY_CONNECTED,
      .x = "3x0e+8x1o",
      .y = SH1,
      .z = "5x0e+24x1o",
      .desc = {LAYOUTS_OF(IR_MUL, MUL_IR, IR_MUL), .shared_weights = 1}};
  each_candidate(*state, &tool_op_tensor_product, &(tool_kernel){&shared, F32, false},
                 &(tool_data){.rows = 140});
}

static void convolutions(void **state) {
  static const int which[] = {SMALL, KNOTTED, EVEN_MUL_IR, SHORT};
  convolution_graph e = hub_edges(9, 7, 110, 73, 5);
  for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
    convolution_problem p = convolution_by(AS_GIVEN, which[i], 0);
    p.edges = &e;
    each_candidate(*state, &tool_op_convolution, &(tool_kernel){&p, F64, false},
                   &(tool_data){e.n_edges, LAYOUT_ALIGNED, true});
  }
  convolution_graph_free(&e);
}

/* Many edges, on few nodes and on all: lanes have the same digit. */
static void sorting(void **state) {
  enum { NODES = 300, EDGES = 3000 };
  clb_context *ctx = *state;
  clb_graph *g;
  static int32_t ends[2][EDGES];
  for (int i = 0; i < EDGES; i++)
    ends[0][i] = i * 7 % NODES, ends[1][i] = i % 5 ? i / 90 : i * 11 % NODES;
  OK(ctx, clb_graph_create(ctx, NODES, EDGES, &g));
  OK(ctx, clb_graph_update(g, NODES, NODES, EDGES, CLB_I32, (clb_index_list){.host = ends[0]},
                           (clb_index_list){.host = ends[1]}));
  clb_graph_destroy(&g);
}

enum { POINTS = 131, HARMONICS = 36 };
static void harmonics(void **state) {
  static const int degrees[] = {0, 1, 2, 3, 4, 5};
  const clb_spherical_harmonics_desc desc = {degrees, 6, CLB_INTEGRAL, 1, CLB_F32, CLB_F32, 0, 7};
  clb_context *ctx = *state;
  clb_op *op;
  clb_rows r[5];
  static float x[POINTS * HARMONICS];
  for (int i = 0; i < POINTS * HARMONICS; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < 5; i++) {
    r[i] = (clb_rows){0};
    OK(ctx, clb_buffer_create(ctx, sizeof x, &r[i].buffer));
    OK(ctx, clb_buffer_write(r[i].buffer, 0, x, sizeof x));
  }
  OK(ctx, clb_spherical_harmonics_create(ctx, &desc, &op));
  for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) {
    clb_schedule list[CLB_MAX_CANDIDATES];
    for (int n = candidates_of(op, pass, list), s = 0; s < n; s++) {
      OK(ctx, clb_op_set_schedule(op, (clb_pass)pass, &list[s]));
      if (pass == CLB_FORWARD) OK(ctx, clb_spherical_harmonics_forward(op, POINTS, r[0], r[1]));
      if (pass == CLB_BACKWARD)
        OK(ctx, clb_spherical_harmonics_backward(op, POINTS, r[0], r[1], r[2]));
      if (pass == CLB_DOUBLE_BACKWARD)
        OK(ctx, clb_spherical_harmonics_double_backward(op, POINTS, r[0], r[1], r[2], r[3], r[4]));
    }
  }
  for (int i = 0; i < 5; i++) clb_buffer_destroy(&r[i].buffer);
  clb_op_destroy(&op);
}

/* Few groups and long sums, which are split among the sub-groups. */
static void matrix_products(void **state) {
  enum { M = 3, N = 5, K = 520 };
  static float x[K * N];
  clb_context *ctx = *state;
  clb_op *op;
  clb_buffer *b[3];
  for (int i = 0; i < K * N; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < 3; i++) {
    OK(ctx, clb_buffer_create(ctx, sizeof x, &b[i]));
    OK(ctx, clb_buffer_write(b[i], 0, x, sizeof x));
  }
  OK(ctx, clb_gemm_create_generated(ctx, CLB_F32, &op));
  for (int transpose = 0; transpose < 2; transpose++) {
    const clb_gemm_desc p = {.m = M,
                             .n = N,
                             .k = K,
                             .count = 1,
                             .transpose_b = transpose,
                             .a = &b[0]->memory,
                             .b = &b[1]->memory,
                             .c = &b[2]->memory,
                             .ld_a = K,
                             .ld_b = transpose ? K : N,
                             .ld_c = N};
    OK(ctx, clb_gemm_run(op, &p));
  }
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&b[i]);
  clb_op_destroy(&op);
}

/* Sums over channels that the sub-groups share. */
static void linear_maps(void **state) {
  enum { ROWS = 11 };
  const clb_linear_desc d = {.irreps_in = "37x0e+9x1o",
                             .irreps_out = "5x0e+40x1o",
                             .bias = 1,
                             .gradients = CLB_OPERAND_X | CLB_OPERAND_Z,
                             .storage = CLB_F32,
                             .arithmetic = CLB_F32,
                             .passes = 7};
  clb_context *ctx = *state;
  clb_op *op;
  clb_rows r[8];
  static float x[ROWS * 200];
  for (int i = 0; i < ROWS * 200; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < 8; i++) {
    r[i] = (clb_rows){0};
    OK(ctx, clb_buffer_create(ctx, sizeof x, &r[i].buffer));
    OK(ctx, clb_buffer_write(r[i].buffer, 0, x, sizeof x));
  }
  OK(ctx, clb_linear_create(ctx, &d, &op));
  OK(ctx, clb_linear_forward(op, ROWS, r[0], r[1], r[2]));
  OK(ctx, clb_linear_backward(op, ROWS, r[0], r[1], r[2], r[3], (clb_rows){0}));
  OK(ctx,
     clb_linear_double_backward(op, ROWS, r[0], r[1], r[2], r[3], r[4], r[5], (clb_rows){0}, r[6]));
  for (int i = 0; i < 8; i++) clb_buffer_destroy(&r[i].buffer);
  clb_op_destroy(&op);
}

/* A sum over an odd number of stages, so that the last one lies where the slices' sums will be;
   scaled by a norm. */
static void grouped_products(void **state) {
  enum { M = 20, K = 68 };
  static float x[M * K];
  const clb_grouped_matrix a = {0, K, false, 1}, bt = {0, K, true, 0}, c = {0, M, false, 0};
  const clb_grouped_product product = {
      .m = M, .n = M, .k = K, .a = a, .b = bt, .c = c, .alpha = 1, .trace = a, .trace_rows = M};
  const clb_grouped_list list = {&product, 1, CLB_F32, CLB_F32, true, false};
  clb_context *ctx = *state;
  clb_grouped *g;
  clb_buffer *b[2];
  for (int i = 0; i < M * K; i++) x[i] = (float)(1 + i * 37 % 101) / 50;
  for (int i = 0; i < 2; i++) OK(ctx, clb_buffer_create(ctx, sizeof x, &b[i]));
  OK(ctx, clb_buffer_write(b[0], 0, x, sizeof x));
  OK(ctx, clb_grouped_create(ctx, &list, &g));
  OK(ctx, clb_grouped_run(g, &b[0]->memory, &b[1]->memory, NULL, 0));
  clb_grouped_destroy(&g);
  for (int i = 0; i < 2; i++) clb_buffer_destroy(&b[i]);
}

/* Those that sum over lanes have barriers where there are no sub-groups. */
static void layer_ops(void **state) {
  enum { ATOMS = 5, COLUMNS = 16, NUMBERS = 4096 };
  static const double ones[COLUMNS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const int32_t from[] = {0, 1, 1, 4, 2, 3, 0}, to[] = {1, 0, 4, 1, 2, 2, 2};
  enum { EDGES = sizeof from / sizeof *from };
  static float x[NUMBERS];
  static int32_t species[ATOMS];
  clb_context *ctx = *state;
  clb_graph *graph;
  clb_op *op;
  clb_rows r[4];
  for (int i = 0; i < NUMBERS; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < 4; i++) {
    const void *data = i ? (void *)x : species;
    r[i] = (clb_rows){0};
    OK(ctx, clb_buffer_create(ctx, sizeof x, &r[i].buffer));
    OK(ctx, clb_buffer_write(r[i].buffer, 0, data, i ? sizeof x : sizeof species));
  }
  OK(ctx, clb_graph_create(ctx, ATOMS, EDGES, &graph));
  OK(ctx, clb_graph_update(graph, ATOMS, ATOMS, EDGES, CLB_I32, (clb_index_list){.host = from},
                           (clb_index_list){.host = to}));
  mutation.lowers = true;
  OK(ctx, clb_energy_create(ctx, CLB_F32, 2, ones, ones, &op));
  OK(ctx, clb_energy_forward(op, ATOMS, r[0], r[1], r[2], r[3], (clb_rows){0}));
  clb_op_destroy(&op);
  OK(ctx, clb_virial_create(ctx, CLB_F32, &op));
  OK(ctx, clb_virial_run(op, EDGES, r[1], r[2], r[3]));
  clb_op_destroy(&op);
  OK(ctx, clb_forces_create(ctx, CLB_F32, &op));
  OK(ctx, clb_forces_run(op, graph, r[1], r[2]));
  OK(ctx, clb_atom_virials_run(op, graph, r[1], r[2], r[3]));
  clb_op_destroy(&op);
  mutation.lowers = false;
  for (int i = 0; i < 4; i++) clb_buffer_destroy(&r[i].buffer);
  clb_graph_destroy(&graph);
}

/* Some atoms in one column of a cube of 8 bins, of which 4 are periodic: a sub-group's lanes find
   different numbers of them, in several chunks. */
static void neighbours(void **state) {
  enum { ATOMS = 40, EDGES = ATOMS * ATOMS };
  const clb_cell_grid grid = {.cell = {{8, 0, 0}, {0, 8, 0}, {0, 0, 1}},
                              .reciprocal = {{1. / 8, 0, 0}, {0, 1. / 8, 0}, {0, 0, 1}},
                              .low = {0, 0, 0},
                              .per_unit = {2, 2, .25},
                              .bins = {2, 2, 2},
                              .reach = {1, 1, 1},
                              .slots = {2, 2, 4},
                              .folds = {1, 1, 0}};
  clb_context *ctx = *state;
  clb_cell_list *list;
  clb_buffer *x, *b[3];
  double positions[3 * ATOMS];
  int64_t n;
  uint64_t seed = 1;
  for (int i = 0; i < 3 * ATOMS; i++)
    positions[i] = i % 3 == 2 ? 4 + 4 * test_random(&seed) : 2 + 2 * test_random(&seed);
  OK(ctx, clb_buffer_create(ctx, sizeof positions, &x));
  OK(ctx, clb_buffer_write(x, 0, positions, sizeof positions));
  mutation.lowers = true;
  OK(ctx, clb_cell_list_create(ctx, CLB_CELL_ONE, &list));
  OK(ctx, clb_cell_list_count(list, &grid, 4, ATOMS, x, &n));
  assert_true(n > 2 * ATOMS && n < EDGES);
  for (int i = 0; i < 3; i++) OK(ctx, clb_buffer_create(ctx, 4 * EDGES, &b[i]));
  OK(ctx, clb_cell_list_fill(list, n, &b[0]->memory, &b[1]->memory, &b[2]->memory, NULL));
  clb_cell_list_destroy(&list);
  mutation.lowers = false;
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&b[i]);
  clb_buffer_destroy(&x);
}

/* Rows of some sub-groups, and rows of which a sub-group has several. */
static void norms(void **state) {
  enum { NUMBERS = 7 * 600 };
  static const struct {
    const char *irreps;
    int centre, rows;
  } cases[] = {{"6x0e+5x1o", 1, 70}, {"600x0e", 0, 7}};
  static float numbers[NUMBERS];
  clb_context *ctx = *state;
  clb_rows r[8] = {{0}};
  const int units = ctx->device->limits.units;
  ctx->device->limits.units = 1;
  for (int i = 0; i < NUMBERS; i++) numbers[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < 8; i++) {
    OK(ctx, clb_buffer_create(ctx, sizeof numbers, &r[i].buffer));
    OK(ctx, clb_buffer_write(r[i].buffer, 0, numbers, sizeof numbers));
  }
  for (int i = 0; i < 2; i++) {
    clb_op *op;
    const clb_rms_norm_desc desc = {.irreps = cases[i].irreps,
                                    .variant = CLB_RMS_DEGREE,
                                    .epsilon = 1e-3,
                                    .centre = cases[i].centre,
                                    .passes = 7};
    mutation.lowers = true;
    OK(ctx, clb_rms_norm_create(ctx, &desc, &op));
    for (int pass = 0; pass <= CLB_DOUBLE_BACKWARD; pass++) {
      clb_schedule list[CLB_MAX_CANDIDATES];
      for (int n = candidates_of(op, pass, list), s = 0; s < n; s++) {
        list[s].norm.groups_per_unit = 1; /* rows follow each other */
        OK(ctx, clb_op_set_schedule(op, (clb_pass)pass, &list[s]));
        OK(ctx, clb_rms_norm_run(op, (clb_pass)pass, cases[i].rows, r));
      }
    }
    clb_op_destroy(&op);
    mutation.lowers = false;
  }
  ctx->device->limits.units = units;
  for (int i = 0; i < 8; i++) clb_buffer_destroy(&r[i].buffer);
}

/* Two steps on a tensor and on 40 small ones of `rest` numbers. */
static void two_steps(clb_context *ctx, const clb_optimizer_group *group, clb_clip clip,
                      int64_t rows, int64_t columns, int64_t rest) {
  enum { NUMBERS = 9000, OTHERS = 40 };
  static float numbers[NUMBERS];
  const int64_t n = rows * columns + OTHERS * rest;
  const int units = ctx->device->limits.units;
  clb_buffer *b[2];
  clb_optimizer *o;
  clb_optimizer_tensor tensor[1 + OTHERS];
  assert_true(n <= NUMBERS);
  for (int i = 0; i < NUMBERS; i++) numbers[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < 2; i++) {
    OK(ctx, clb_buffer_create(ctx, (uint64_t)n * sizeof *numbers, &b[i]));
    OK(ctx, clb_buffer_write(b[i], 0, numbers, (uint64_t)n * sizeof *numbers));
  }
  for (int i = 0; i <= OTHERS; i++)
    tensor[i] = (clb_optimizer_tensor){.rows = i ? rest : rows,
                                       .columns = i ? 1 : columns,
                                       .parameters = {b[0], i ? n - i * rest : 0},
                                       .gradients = {b[1], i ? n - i * rest : 0}};
  const clb_optimizer_desc desc = {.tensors = tensor,
                                   .n_tensors = 1 + OTHERS,
                                   .groups = group,
                                   .n_groups = 1,
                                   .clip = clip,
                                   .max_norm = clip ? 1 : 0,
                                   .check_finite = 1};
  mutation.lowers = true;
  ctx->device->limits.units = 1;
  OK(ctx, clb_optimizer_create(ctx, &desc, &o));
  for (int i = 0; i < 2; i++) OK(ctx, clb_optimizer_step(o));
  mutation.lowers = false;
  ctx->device->limits.units = units;
  clb_optimizer_destroy(&o);
  for (int i = 0; i < 2; i++) clb_buffer_destroy(&b[i]);
}

/* Some chunks of one tensor and more of others, so that sub-groups have several; norms are sums
   over sub-groups. Of SOAP the first bases of two sides, and the next ones; products have an odd
   number of stages, and vectors have more chunks than there are sub-groups. */
static void optimizers(void **state) {
  static const clb_optimizer_group adam = {.rule = CLB_ADAM, .lr = 0.1},
                                   muon = {.rule = CLB_MUON, .lr = 0.1},
                                   soap = {.rule = CLB_SOAP, .lr = 0.1, .refresh_steps = 1};
  two_steps(*state, &adam, CLB_CLIP_TORCH, 8800, 1, 5);
  two_steps(*state, &muon, CLB_CLIP_TORCH, 8800, 1, 5);
  two_steps(*state, &soap, CLB_CLIP_NONE, 11, 68, 1);
}

/* ---- what happened to the mutants ---- */

/* One line for each kernel by name. */
static void print_table(void) {
  printf("%-36s %8s %9s %6s %7s %6s %6s\n", "kernel", "variants", "barriers", "race", "number",
         "error", "lives");
  for (const mutants *m = mutation.kernels; m; m = m->next) {
    int variants = 0, n = 0, by[4] = {0}, first = 1;
    for (const mutants *b = mutation.kernels; b != m; b = b->next)
      first &= strcmp(b->k.name, m->k.name) != 0;
    for (const mutants *s = m; s && first; s = s->next) {
      if (strcmp(s->k.name, m->k.name) || !s->ran || !s->n) continue;
      variants++, n += s->n;
      for (int b = 0; b < s->n; b++) by[s->fate[b]]++;
    }
    if (variants)
      printf("%-36s %8d %9d %6d %7d %6d %6d\n", m->k.name, variants, n, by[MUTANT_RACES],
             by[MUTANT_DIFFERS], by[MUTANT_MISSES], by[MUTANT_LIVES]);
  }
}

static bool of_array(const mutants *m, ir_val v, ir_op op, ir_val array) {
  return m->k.ins[v].op == op && m->k.ins[v].arg[0] == array;
}

/* In a loop that copies operands of paths that all have weight 0, and reads none. */
static bool sends_in_vain(const mutants *m, int b) {
  ir_val loop = m->k.ins[m->at[b]].scope, array = IR_NONE;
  int copies = 0, loads = 0, depth = 0;
  if (loop == IR_NONE || m->k.ins[loop].op != IR_LOOP) return false;
  for (ir_val v = m->at[b]; depth >= 0; v++) {
    ir_op op = (ir_op)m->k.ins[v].op;
    if (op == IR_COPY) array = m->k.ins[v].arg[0], copies++;
    if (op == IR_LOOP || op == IR_IF) depth++;
    if (op == IR_END) depth--;
  }
  for (ir_val v = m->at[b], d = 0; d >= 0; v++) {
    loads += copies && of_array(m, v, IR_LOAD, array);
    if (m->k.ins[v].op == IR_LOOP || m->k.ins[v].op == IR_IF) d++;
    if (m->k.ins[v].op == IR_END) d--;
  }
  return copies && !loads;
}

typedef enum { NEEDED, PACE, IN_VAIN, IDLE } barrier_use;

static barrier_use use_of(const mutants *m, int b) {
  if (!m->ran || m->fate[b] != MUTANT_LIVES) return NEEDED;
  if (m->k.ins[m->at[b]].imm == IR_RENDEZVOUS) return PACE;
  return sends_in_vain(m, b) ? IN_VAIN : IDLE;
}

/* Live barriers that are allowed; the numbers may only shrink. PACE: the sub-groups of channel-wise
   products go through paths in step. IN_VAIN: a convolution's loops over operands of paths that all
   have weight 0 (KNOTTED) read nothing of what they copy. IDLE: the openings of stages. Two seem to
   be so because batches are whole and take a multiple of the stage's slots, so that the slot read
   last is not the one that the next batch fills first; convolution_forward's (KNOTTED) is not
   explained. */
static const struct {
  const char *kernel;
  barrier_use use;
  int max;
} may_live[] = {
    {"tensor_product_forward", PACE, 38},     {"convolution_forward", IN_VAIN, 8},
    {"convolution_forward", IDLE, 1},         {"convolution_backward", IN_VAIN, 11},
    {"convolution_backward", IDLE, 1},        {"convolution_double_backward", IN_VAIN, 4},
    {"convolution_double_backward", IDLE, 1}, {"convolution_double_backward_z", IN_VAIN, 2},
};

/* Counts the kernel's live barriers of that use; prints each if `say`. */
static int living(const char *kernel, barrier_use use, bool say) {
  static const char *const uses[] = {[PACE] = "is for pace",
                                     [IN_VAIN] = "waits for what nobody reads",
                                     [IDLE] = "orders nothing that shows"};
  int n = 0;
  for (const mutants *m = mutation.kernels; m; m = m->next)
    for (int b = 0; b < m->n; b++) {
      if (use_of(m, b) != use || (kernel && strcmp(m->k.name, kernel))) continue;
      n++;
      if (say)
        fprintf(stderr, "%s, %d sub-groups of %d lanes: BARRIER %d of %d (instruction %d) %s\n",
                m->k.name, (int)m->k.subgroups, (int)m->k.lanes, b, m->n, (int)m->at[b], uses[use]);
    }
  return n;
}

/* Some barriers of each of these were tried, so that a kernel that loses its barriers, or its name,
   is noticed. */
static void all_were_tried(void **state) {
  static const char *const kernels[] = {"spherical_harmonics_forward",
                                        "spherical_harmonics_backward",
                                        "spherical_harmonics_double_backward",
                                        "tensor_product_forward",
                                        "tensor_product_backward",
                                        "tensor_product_double_backward",
                                        "convolution_forward",
                                        "convolution_backward",
                                        "convolution_double_backward",
                                        "graph_count",
                                        "graph_place",
                                        "matrix_product_split",
                                        "matrix_product_bt_split",
                                        "linear_few_forward",
                                        "linear_few_backward",
                                        "linear_few_double_backward",
                                        "grouped_product_scaled",
                                        "rms_norm_forward",
                                        "rms_norm_backward",
                                        "rms_norm_double_backward",
                                        "rms_norm_sum",
                                        "basis_orthogonalise",
                                        "basis_rotate",
                                        "optimizer_gather",
                                        "optimizer_sums",
                                        "optimizer_step",
                                        "energies",
                                        "virials",
                                        "total",
                                        "cell_count",
                                        "cell_fill",
                                        "cell_ranked",
                                        "forces",
                                        "atom_virials"};
  (void)state;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    int n = 0;
    for (const mutants *m = mutation.kernels; m; m = m->next)
      n += m->ran && !strcmp(m->k.name, kernels[i]) ? m->n : 0;
    if (!n) fail_msg("no barrier of %s was left out", kernels[i]);
  }
}

static void all_are_needed(void **state) {
  int n = 0;
  (void)state;
  for (barrier_use use = PACE; use <= IDLE; use++) n += living(NULL, use, false);
  for (size_t i = 0; i < sizeof may_live / sizeof *may_live; i++) {
    int k = living(may_live[i].kernel, may_live[i].use, false);
    n -= k;
    if (k <= may_live[i].max) continue;
    living(may_live[i].kernel, may_live[i].use, true);
    fail_msg("%s: nothing tells that %d barriers are missing, one by one; at most %d are known",
             may_live[i].kernel, k, may_live[i].max);
  }
  if (!n) return;
  for (barrier_use use = PACE; use <= IDLE; use++) living(NULL, use, true);
  fail_msg("of kernels or uses that have no such, nothing tells that %d barriers are missing, one "
           "by one",
           n);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void **);
  } tests[] = {{"harmonics", harmonics},     {"products", products},
               {"sorting", sorting},         {"convolutions", convolutions},
               {"layer_ops", layer_ops},     {"matrix_products", matrix_products},
               {"linear_maps", linear_maps}, {"grouped_products", grouped_products},
               {"neighbours", neighbours},   {"norms", norms},
               {"optimizers", optimizers}};
  enum { TESTS = sizeof tests / sizeof *tests };
  static char labels[LIMITS * TESTS][64];
  static struct CMUnitTest all[LIMITS * TESTS + 2];
  clb_context *ctx[LIMITS];
  int n = 0;
  (void)argv;
  for (int i = 0; i < (int)LIMITS; i++) {
    ctx[i] = open_place(i);
    for (int t = 0; t < TESTS; t++, n++) {
      snprintf(labels[n], sizeof labels[n], "barriers_%s[%d]", tests[t].name, i);
      all[n] = (struct CMUnitTest){labels[n], tests[t].run, NULL, NULL, ctx[i]};
    }
  }
  all[n++] = (struct CMUnitTest)cmocka_unit_test(all_were_tried);
  all[n++] = (struct CMUnitTest)cmocka_unit_test(all_are_needed);
  int failed = _cmocka_run_group_tests("barriers", all, (size_t)n, NULL, NULL);
  if (argc > 1) print_table();
  for (int i = 0; i < (int)LIMITS; i++) clb_context_destroy(&ctx[i]);
  mutants_free();
  return failed;
}
