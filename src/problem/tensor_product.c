/* src/problem/tensor_product.c - the paths of a tensor product's description: the rules of each
   mode, coefficients, weights. */
#include "src/problem/irreps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Extents are letters: u, v, w channels in the terms of x, y and the output, q pairs u < v; the
   product over no letters is 1. */
static const struct {
  const char *name, *weights, *summed, *out; /* summed: number of terms in one output element, for
                                                the normalisation */
  bool paired, needs_weights;                /* paired: y must have as many channels as x */
  const char *needs;
} modes[] = {
    [CLB_UVW] = {"uvw", "uvw", "uv", "w", false, true, "weights"},
    [CLB_UVU] = {"uvu", "uv", "v", "u", false, false, "as many channels in the output as in x"},
    [CLB_UVV] = {"uvv", "uv", "u", "v", false, false, "as many channels in the output as in y"},
    [CLB_UUW] = {"uuw", "uw", "u", "w", true, false,
                 "as many channels in y as in x, and without weights one in the output"},
    [CLB_UUU] = {"uuu", "u", "", "u", true, false,
                 "as many channels in y and in the output as in x"},
    [CLB_UVUV] = {"uvuv", "uv", "", "uv", false, false,
                  "in the output the channels of x times those of y"},
    [CLB_UVU_HALF] = {"uvu<v", "q", "", "q", true, false,
                      "as many channels in y as in x, say m, and m (m - 1) / 2 in the output"},
    [CLB_UVW_HALF] = {"u<vw", "qw", "q", "w", true, true,
                      "weights, and as many channels in y as in x"},
};
enum { MODES = sizeof modes / sizeof *modes };

static int64_t extent(const clb_tensor_product_problem *p, const clb_instruction *q, char letter) {
  int64_t u = p->x.term[q->in1].mul, v = p->y.term[q->in2].mul, w = p->z.term[q->out].mul;
  return letter == 'u' ? u : letter == 'v' ? v : letter == 'w' ? w : u * (v - 1) / 2;
}

/* As double, because the product of three extents may exceed 64 bits; exact below 2^53. */
static double extents(const clb_tensor_product_problem *p, const clb_instruction *q,
                      const char *letters) {
  double n = 1;
  for (; *letters; letters++) n *= (double)extent(p, q, *letters);
  return n;
}

/* ---- checks ---- */

static clb_status check_choice(const char *name, int value, int choices, clb_error_sink *error) {
  return value >= 0 && value < choices
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_ARGUMENT, "%s is %d; it must be 0 ... %d", name, value,
                        choices - 1);
}

static clb_status check_choices(const clb_tensor_product_desc *desc, clb_error_sink *error) {
  clb_status s = check_choice("irrep_normalization", (int)desc->irrep_normalization, 3, error);
  if (!s) s = check_choice("path_normalization", (int)desc->path_normalization, 3, error);
  if (!s) s = check_choice("layout_x", (int)desc->layout_x, 2, error);
  if (!s) s = check_choice("layout_y", (int)desc->layout_y, 2, error);
  if (!s) s = check_choice("layout_z", (int)desc->layout_z, 3, error);
  if (s) return s;
  if (desc->indexed & ~(unsigned)(CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W))
    return clb_fail(
        error, CLB_ERROR_ARGUMENT,
        "indexed is %#x; it must be a sum of CLB_OPERAND_X, CLB_OPERAND_Y and CLB_OPERAND_W, or 0",
        desc->indexed);
  if (desc->indexed & CLB_OPERAND_W && desc->shared_weights)
    return clb_fail(
        error, CLB_ERROR_ARGUMENT,
        "indexed is %#x, with CLB_OPERAND_W; shared weights are one row, which no index can choose",
        desc->indexed);
  if (desc->gradients & ~(unsigned)(CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W | CLB_OPERAND_Z))
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "gradients is %#x; it must be a sum of CLB_OPERAND_X, CLB_OPERAND_Y, "
                    "CLB_OPERAND_W and CLB_OPERAND_Z, or 0",
                    desc->gradients);
  if (desc->incoming & ~(unsigned)(CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W))
    return clb_fail(
        error, CLB_ERROR_ARGUMENT,
        "incoming is %#x; it must be a sum of CLB_OPERAND_X, CLB_OPERAND_Y and CLB_OPERAND_W, or 0",
        desc->incoming);
  if (!desc->instructions) return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions is NULL");
  if (!desc->n_instructions)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "n_instructions is 0; it must be 1 ... %d: no path leads from '%s' and '%s' to "
                    "the irreps of the output",
                    CLB_MAX_PATHS, desc->irreps_x, desc->irreps_y);
  if (desc->n_instructions < 1 || desc->n_instructions > CLB_MAX_PATHS)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_instructions is %d; it must be 1 ... %d",
                    desc->n_instructions, CLB_MAX_PATHS);
  return CLB_OK;
}

static clb_status check_term(int i, const char *member, int term, const char *name,
                             const clb_irreps *irreps, clb_error_sink *error) {
  if (term >= 0 && term < irreps->n) return CLB_OK;
  return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions[%d].%s is %d; %s has %d terms", i,
                  member, term, name, (int)irreps->n);
}

static char letter_of(const clb_term *t) { return t->parity > 0 ? 'e' : 'o'; }

/* Multiplicities and weights. */
static clb_status check_mode(const clb_tensor_product_problem *p, const clb_instruction *q, int i,
                             clb_error_sink *error) {
  bool ok = extents(p, q, modes[q->mode].out) == (double)extent(p, q, 'w');
  if (modes[q->mode].paired && extent(p, q, 'u') != extent(p, q, 'v')) ok = false;
  if (modes[q->mode].needs_weights && !q->has_weight) ok = false;
  if (q->mode == CLB_UUW && !q->has_weight && extent(p, q, 'w') != 1) ok = false;
  if (ok) return CLB_OK;
  return clb_fail(error, CLB_ERROR_ARGUMENT,
                  "instructions[%d]: mode %s needs %s; it has %d in x, %d in y, %d in the output, "
                  "and %s weights",
                  i, modes[q->mode].name, modes[q->mode].needs, (int)extent(p, q, 'u'),
                  (int)extent(p, q, 'v'), (int)extent(p, q, 'w'), q->has_weight ? "has" : "no");
}

static clb_status check_instruction(const clb_tensor_product_problem *p, const clb_instruction *q,
                                    int i, clb_error_sink *error) {
  clb_status s = check_term(i, "in1", q->in1, "irreps_x", &p->x, error);
  if (!s) s = check_term(i, "in2", q->in2, "irreps_y", &p->y, error);
  if (!s) s = check_term(i, "out", q->out, "irreps_z", &p->z, error);
  if (s) return s;
  const clb_term *x = &p->x.term[q->in1], *y = &p->y.term[q->in2], *z = &p->z.term[q->out];
  if ((int)q->mode < 0 || (int)q->mode >= MODES)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "instructions[%d].mode is %d; it must be 0 ... %d",
                    i, (int)q->mode, MODES - 1);
  if (x->parity * y->parity != z->parity || z->l < abs(x->l - y->l) || z->l > x->l + y->l)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "instructions[%d]: %d%c times %d%c holds no %d%c; parities multiply, and |l1 - "
                    "l2| <= l3 <= l1 + l2",
                    i, (int)x->l, letter_of(x), (int)y->l, letter_of(y), (int)z->l, letter_of(z));
  if (!(q->path_weight >= 0 && q->path_weight < INFINITY))
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "instructions[%d].path_weight is %g; it must be 0 or more, and finite", i,
                    q->path_weight);
  return check_mode(p, q, i, error);
}

/* ---- paths ---- */

/* sqrt(alpha path_weight / x), with alpha and x as defined by e3nn, for inputs of variance 1. */
static double coefficient(const clb_tensor_product_problem *p, const clb_tensor_product_desc *desc,
                          int i) {
  const clb_instruction *all = desc->instructions, *q = &all[i];
  double n1 = 2 * p->x.term[q->in1].l + 1, n2 = 2 * p->y.term[q->in2].l + 1,
         n3 = 2 * p->z.term[q->out].l + 1;
  double alpha = desc->irrep_normalization == CLB_IRREP_COMPONENT ? n3
                 : desc->irrep_normalization == CLB_IRREP_NORM    ? n1 * n2
                                                                  : 1;
  double elements = 0, paths = 0, x = 1;
  for (int j = 0; j < desc->n_instructions; j++)
    if (all[j].out == q->out) elements += extents(p, &all[j], modes[all[j].mode].summed), paths++;
  if (desc->path_normalization == CLB_PATH_ELEMENT) x = elements;
  if (desc->path_normalization == CLB_PATH_PATH) x = extents(p, q, modes[q->mode].summed) * paths;
  return sqrt(alpha * q->path_weight / x);
}

static double count_weights(const clb_tensor_product_problem *p, const clb_instruction *q) {
  return q->has_weight ? extents(p, q, modes[q->mode].weights) : 0;
}

clb_weight_slice clb_tensor_product_slice(const clb_tensor_product_desc *desc,
                                          const clb_tensor_product_problem *p, int i) {
  const clb_instruction *q = &desc->instructions[i];
  const char *letters = modes[q->mode].weights;
  clb_weight_slice slice = {0};
  for (int j = 0; j < i; j++) slice.first += (int64_t)count_weights(p, &desc->instructions[j]);
  slice.count = (int64_t)count_weights(p, q);
  for (int d = 0; d < 3 && q->has_weight; d++)
    slice.shape[d] = *letters ? extent(p, q, *letters++) : 1;
  return slice;
}

bool clb_tensor_product_has_path(const clb_tensor_product_desc *desc,
                                 const clb_tensor_product_problem *p, int i) {
  return extents(p, &desc->instructions[i], modes[desc->instructions[i].mode].weights) > 0;
}

static clb_status add_path(clb_tensor_product_problem *p, const clb_tensor_product_desc *desc,
                           int i, clb_error_sink *error) {
  const clb_instruction *q = &desc->instructions[i];
  double weights = count_weights(p, q);
  if (p->n_weights + weights > INT32_MAX)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "there are more than 2^31 - 1 weights");
  if (clb_tensor_product_has_path(desc, p, i)) {
    clb_path *path = &p->path[p->n_paths++];
    path->in1 = q->in1;
    path->in2 = q->in2;
    path->out = q->out;
    path->mode = (int32_t)q->mode;
    path->has_weight = q->has_weight != 0;
    path->weight_at = q->has_weight ? p->n_weights : 0;
    path->coefficient = coefficient(p, desc, i);
  }
  p->n_weights += (int32_t)weights;
  return CLB_OK;
}

clb_status clb_tensor_product_read(const clb_tensor_product_desc *desc,
                                   clb_tensor_product_problem *p, clb_error_sink *error) {
  clb_status s = check_choices(desc, error);
  if (!s) s = clb_irreps_read(desc->irreps_x, "irreps_x", &p->x, error);
  if (!s) s = clb_irreps_read(desc->irreps_y, "irreps_y", &p->y, error);
  if (!s) s = clb_irreps_read(desc->irreps_z, "irreps_z", &p->z, error);
  return s ? s : clb_tensor_product_fill(desc, p, error);
}

clb_status clb_tensor_product_fill(const clb_tensor_product_desc *desc,
                                   clb_tensor_product_problem *p, clb_error_sink *error) {
  clb_status s = CLB_OK;
  for (int i = 0; i < desc->n_instructions && !s; i++)
    s = check_instruction(p, &desc->instructions[i], i, error);
  for (int i = 0; i < desc->n_instructions && !s; i++) s = add_path(p, desc, i, error);
  p->layout_x = (int32_t)desc->layout_x;
  p->layout_y = (int32_t)desc->layout_y;
  p->layout_z = desc->layout_z == CLB_MERGED ? CLB_IR_MUL : (int32_t)desc->layout_z;
  if (desc->layout_z == CLB_MERGED) clb_irreps_merge(&p->z);
  p->shared_weights = desc->shared_weights != 0;
  p->gradients = desc->gradients ? (int32_t)desc->gradients
                                 : CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W | CLB_OPERAND_Z;
  p->incoming =
      desc->incoming ? (int32_t)desc->incoming : CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
  /* Operands without columns have no row numbers. */
  p->indexed =
      (int32_t)desc->indexed & ((p->x.dim ? CLB_OPERAND_X : 0) | (p->y.dim ? CLB_OPERAND_Y : 0) |
                                (p->n_weights ? CLB_OPERAND_W : 0));
  return s;
}
