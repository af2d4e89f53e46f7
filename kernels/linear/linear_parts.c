/* kernels/linear/linear_parts.c - what the two kernels of linear maps share. */
#include "kernels/linear/linear_parts.h"
#include "src/problem/irreps.h"

enum { SUBGROUPS = 8 };

/* ---- of both kinds ---- */

static clb_status layout_is(const char *name, int32_t layout, clb_error_sink *error) {
  return layout == CLB_MUL_IR || layout == CLB_IR_MUL
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_ARGUMENT, "%s is %d; it must be CLB_MUL_IR or CLB_IR_MUL",
                        name, (int)layout);
}

/* The rest was checked where the description was read. */
clb_status clb_linear_check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  clb_status s = layout_is("layout_in", p->linear.layout_in, error);
  return s ? s : layout_is("layout_out", p->linear.layout_out, error);
}

void clb_linear_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const int most = limits->simd ? 1 : limits->max_subgroups;
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic],
                      .subgroups = most < SUBGROUPS ? most : SUBGROUPS};
}

void clb_linear_print(const clb_problem *p, clb_text *out) {
  const clb_linear_problem *lp = &p->linear;
  static const char *const weights[] = {"one row of weights", "weights of each row",
                                        "weights by species"};
  clb_irreps_print(&lp->in, out);
  clb_text_add(out, " -> ");
  clb_irreps_print(&lp->out, out);
  clb_text_add(out, ", %d paths, %s", (int)lp->n_paths, weights[lp->weights]);
}

/* ---- parameters ---- */

static bool left_out(const clb_linear_problem *lp, const clb_signature_operand *o) {
  return (o->role == CLB_ROLE_INCOMING && !(lp->incoming & o->of)) ||
         (o->role == CLB_ROLE_GRADIENT && !(lp->gradients & o->of));
}

void clb_linear_begin(clb_linear_kernel *b, ir_kernel *k, const clb_problem *p,
                      const clb_schedule *s, const char *name, int rows) {
  const clb_linear_problem *lp = &p->linear;
  clb_row_block block = {.k = k};
  *b = (clb_linear_kernel){.k = k,
                           .p = p,
                           .lp = lp,
                           .s = s,
                           .t = clb_ir_type((clb_dtype)p->arithmetic),
                           .accumulate = p->accumulate,
                           .species = IR_NONE};
  ir_begin(k, name, s->lanes, s->subgroups, rows);
  k->scalar_access = s->scalar_access;
  b->n = ir_scalar(k, IR_I64);
  b->n_operands = clb_signature_operands(&clb_signature_linear, p->pass, b->operand);
  for (int i = 0; i < b->n_operands; i++)
    b->array[i] =
        clb_rows_array(&block, (clb_dtype)p->storage, clb_role_is_written(b->operand[i].role));
  if (lp->in_split) b->second_in = clb_rows_array(&block, (clb_dtype)p->storage, false);
  if (lp->out_split) b->second_out = clb_rows_array(&block, (clb_dtype)p->storage, true);
  if (lp->gated == CLB_LINEAR_GATE_BACKWARD)
    b->gated = clb_rows_array(&block, (clb_dtype)p->storage, false);
  for (int i = 0; i < b->n_operands && lp->weights == CLB_LINEAR_BY_SPECIES; i++) {
    const clb_signature_operand *o = &b->operand[i];
    if (o->of != CLB_OPERAND_W || clb_role_is_written(o->role) || left_out(lp, o)) continue;
    const ir_val numbers = ir_buffer(k, IR_I32, false), first = ir_scalar(k, IR_I64);
    if (o->role != CLB_ROLE_INPUT) continue; /* those of c are those of w */
    b->species = numbers;
    b->first_species = first;
  }
}

const clb_row_array *clb_linear_array(const clb_linear_kernel *b, clb_operand_role role, int of) {
  for (int i = 0; i < b->n_operands; i++)
    if (b->operand[i].role == role && b->operand[i].of == of)
      return left_out(b->lp, &b->operand[i]) ? NULL : &b->array[i];
  return NULL;
}

/* ---- places ---- */

ir_val clb_linear_row(const clb_linear_kernel *b, const clb_row_array *a, ir_val row) {
  return ir_add(b->k, ir_mul(b->k, row, a->stride), a->offset);
}

ir_val clb_linear_species(const clb_linear_kernel *b, ir_val row) {
  ir_kernel *k = b->k;
  return ir_cast(k, IR_I64, ir_load(k, b->species, ir_add(k, b->first_species, row), IR_NONE));
}

ir_val clb_linear_place(const clb_linear_kernel *b, clb_linear_term t, ir_val channel, int m) {
  ir_kernel *k = b->k;
  const int64_t at = t.term->at;
  if (t.layout == CLB_IR_MUL)
    return ir_add(k, channel, clb_linear_i64(b, at + (int64_t)m * t.term->mul));
  return ir_add(k, ir_mul(k, channel, clb_linear_i64(b, 2 * t.term->l + 1)),
                clb_linear_i64(b, at + m));
}

ir_val clb_linear_load(const clb_linear_kernel *b, const clb_row_array *a, ir_val start, ir_val at,
                       ir_val mask) {
  return ir_cast(b->k, b->t, ir_load(b->k, a->buffer, ir_add(b->k, start, at), mask));
}

/* Components from m on that lie side by side, as many as one access can have. */
static int together(clb_linear_term t, int m) {
  const int left = 2 * t.term->l + 1 - m;
  return t.layout == CLB_IR_MUL ? 1 : left < IR_MAX_WIDTH ? left : IR_MAX_WIDTH;
}

void clb_linear_load_channels(const clb_linear_kernel *b, const clb_row_array *a, ir_val start,
                              clb_linear_term t, ir_val channel, ir_val mask, ir_val *v) {
  ir_kernel *k = b->k;
  for (int m = 0, n; m <= 2 * t.term->l; m += n) {
    n = together(t, m);
    ir_load_wide(k, a->buffer, ir_add(k, start, clb_linear_place(b, t, channel, m)), mask, n,
                 v + m);
    for (int i = m; i < m + n; i++) v[i] = ir_cast(k, b->t, v[i]);
  }
}

void clb_linear_store_channels(const clb_linear_kernel *b, const clb_row_array *a, ir_val start,
                               clb_linear_term t, ir_val channel, ir_val mask, const ir_val *v) {
  ir_kernel *k = b->k;
  ir_val old[CLB_LINEAR_COMPONENTS], now[CLB_LINEAR_COMPONENTS];
  if (b->accumulate) clb_linear_load_channels(b, a, start, t, channel, mask, old);
  for (int m = 0, n; m <= 2 * t.term->l; m += n) {
    n = together(t, m);
    for (int i = m; i < m + n; i++)
      now[i] =
          ir_cast(k, ir_register_type(a->element), b->accumulate ? ir_add(k, old[i], v[i]) : v[i]);
    ir_store_wide(k, a->buffer, ir_add(k, start, clb_linear_place(b, t, channel, m)), mask, n,
                  now + m);
  }
}

void clb_linear_store(const clb_linear_kernel *b, const clb_row_array *a, ir_val at, ir_val mask,
                      ir_val v) {
  ir_kernel *k = b->k;
  if (b->accumulate) v = ir_add(k, v, ir_cast(k, b->t, ir_load(k, a->buffer, at, mask)));
  ir_store(k, a->buffer, at, mask, ir_cast(k, ir_register_type(a->element), v));
}

/* ---- blocks of channels ---- */

ir_val clb_linear_channel(const clb_linear_kernel *b, ir_val block, int64_t channels,
                          ir_val *left) {
  ir_kernel *k = b->k;
  const ir_val first = ir_mul(k, block, ir_int(k, IR_I32, b->s->lanes));
  *left = ir_2(k, IR_MIN, ir_sub(k, ir_int(k, IR_I32, channels), first),
               ir_int(k, IR_I32, b->s->lanes));
  return ir_cast(k, IR_I64, ir_add(k, first, ir_lane(k)));
}

ir_val clb_linear_mask(const clb_linear_kernel *b, int64_t channels, ir_val left) {
  return channels % b->s->lanes ? ir_2(b->k, IR_LT, ir_lane(b->k), left) : IR_NONE;
}
