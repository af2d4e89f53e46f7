/* src/ops/tensor_product.c - the operands of each pass of the tensor product, and a call of it. */
#include "src/ops/tensor_product.h"

#include "src/ops/shared_weights.h"

/* OPERAND: x, y or w, which may be indexed (for edges, all inputs may be); INCOMING: a, b or c;
   GRADIENT: computed if requested. */
enum role { OPERAND, OTHER, INCOMING, RESULT, GRADIENT };

/* In the order of the calls and of the kernels' arguments. */
static const struct {
  int count;
  struct {
    const char *name;
    int of; /* the operand whose shape it has */
    enum role role;
  } operand[CLB_TENSOR_PRODUCT_OPERANDS];
} passes[CLB_PASSES] = {
    [CLB_FORWARD] = {4,
                     {{"x", CLB_OPERAND_X, OPERAND},
                      {"y", CLB_OPERAND_Y, OPERAND},
                      {"w", CLB_OPERAND_W, OPERAND},
                      {"z", CLB_OPERAND_Z, RESULT}}},
    [CLB_BACKWARD] = {7,
                      {{"x", CLB_OPERAND_X, OPERAND},
                       {"y", CLB_OPERAND_Y, OPERAND},
                       {"w", CLB_OPERAND_W, OPERAND},
                       {"g", CLB_OPERAND_Z, OTHER},
                       {"g_x", CLB_OPERAND_X, GRADIENT},
                       {"g_y", CLB_OPERAND_Y, GRADIENT},
                       {"g_w", CLB_OPERAND_W, GRADIENT}}},
    [CLB_DOUBLE_BACKWARD] = {11,
                             {{"x", CLB_OPERAND_X, OPERAND},
                              {"y", CLB_OPERAND_Y, OPERAND},
                              {"w", CLB_OPERAND_W, OPERAND},
                              {"g", CLB_OPERAND_Z, OTHER},
                              {"a", CLB_OPERAND_X, INCOMING},
                              {"b", CLB_OPERAND_Y, INCOMING},
                              {"c", CLB_OPERAND_W, INCOMING},
                              {"d_x", CLB_OPERAND_X, GRADIENT},
                              {"d_y", CLB_OPERAND_Y, GRADIENT},
                              {"d_w", CLB_OPERAND_W, GRADIENT},
                              {"d_g", CLB_OPERAND_Z, GRADIENT}}},
    [CLB_TRIPLE_BACKWARD] = {18,
                             {{"x", CLB_OPERAND_X, OPERAND},
                              {"y", CLB_OPERAND_Y, OPERAND},
                              {"w", CLB_OPERAND_W, OPERAND},
                              {"g", CLB_OPERAND_Z, OTHER},
                              {"a", CLB_OPERAND_X, INCOMING},
                              {"b", CLB_OPERAND_Y, INCOMING},
                              {"c", CLB_OPERAND_W, INCOMING},
                              {"p", CLB_OPERAND_X, OTHER},
                              {"q", CLB_OPERAND_Y, OTHER},
                              {"r", CLB_OPERAND_W, OTHER},
                              {"s", CLB_OPERAND_Z, OTHER},
                              {"e_x", CLB_OPERAND_X, GRADIENT},
                              {"e_y", CLB_OPERAND_Y, GRADIENT},
                              {"e_w", CLB_OPERAND_W, GRADIENT},
                              {"e_g", CLB_OPERAND_Z, GRADIENT},
                              {"e_a", CLB_OPERAND_X, GRADIENT},
                              {"e_b", CLB_OPERAND_Y, GRADIENT},
                              {"e_c", CLB_OPERAND_W, GRADIENT}}},
};

int clb_tensor_product_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                                clb_operand *operands) {
  const clb_tensor_product_problem *p = &problem->tensor_product;
  const int64_t columns[] = {[CLB_OPERAND_X] = p->x.dim,
                             [CLB_OPERAND_Y] = p->y.dim,
                             [CLB_OPERAND_W] = p->n_weights,
                             [CLB_OPERAND_Z] = p->z.dim};
  for (int i = 0; i < passes[pass].count; i++) {
    int of = passes[pass].operand[i].of;
    enum role role = passes[pass].operand[i].role;
    bool absent =
        (role == INCOMING && !(p->incoming & of)) || (role == GRADIENT && !(p->gradients & of));
    operands[i] =
        (clb_operand){.name = passes[pass].operand[i].name,
                      .rows = rows[i],
                      .columns = absent ? 0 : columns[of],
                      .of = of,
                      .written = role == RESULT || role == GRADIENT,
                      .indexed = (role == OPERAND || p->edges) &&
                                 !(role == RESULT || role == GRADIENT) && p->indexed & of};
    operands[i].wide =
        operands[i].written && p->edges && (of == CLB_OPERAND_X || of == CLB_OPERAND_Z);
    if (of != CLB_OPERAND_W || !p->shared_weights) continue;
    operands[i].one_row = true;
    operands[i].rows.stride = role == GRADIENT ? CLB_DENSE : CLB_SAME_ROW;
    operands[i].rows.index = NULL;
  }
  return passes[pass].count;
}

clb_status clb_tensor_product_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows) {
  clb_operand operands[CLB_TENSOR_PRODUCT_OPERANDS];
  if (!op) return clb_op_null(CLB_TENSOR_PRODUCT, pass);
  int count = clb_tensor_product_operands(&op->problem, pass, rows, operands);
  if (op->problem.tensor_product.shared_weights && op->problem.kind == CLB_TENSOR_PRODUCT)
    return clb_shared_weights_run(op, pass, n, operands, count);
  return clb_op_run_rows(op, CLB_TENSOR_PRODUCT, pass, n, operands, count);
}
