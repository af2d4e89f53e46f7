/* kernels/grouped/basis.c - the kind `matrix_basis`: its two kernels. */
#include "kernels/grouped/basis.h"

#include "kernels/common/rows.h"

enum { GROUP = 512, SAFE_GROUP = 256 };

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const int64_t bytes =
      2 * (int64_t)p->matrix_basis.side * (p->arithmetic == CLB_F64 ? 8 : 4) + 4096;
  return bytes <= limits->local_bytes
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_UNSUPPORTED,
                        "a basis of a side of %d elements needs %lld bytes of local memory; a "
                        "group has %lld",
                        (int)p->matrix_basis.side, (long long)bytes,
                        (long long)limits->local_bytes);
}

/* Sums over lanes are shuffles: devices without them have one sub-group. */
static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1};
  if (limits->simd || !limits->subgroups) return;
  while (2 * s->subgroups * s->lanes <= GROUP && 2 * s->subgroups <= limits->max_subgroups)
    s->subgroups *= 2;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool rotates = p->pass == CLB_BASIS_ROTATE;
  const int columns = rotates ? CLB_ROTATED_COLUMNS : CLB_SIDE_COLUMNS,
            gate = rotates ? CLB_ROTATED_GATE : CLB_SIDE_GATE;
  clb_basis_kernel b = {
      .k = k, .s = s, .t = clb_ir_type((clb_dtype)p->arithmetic), .side = p->matrix_basis.side};
  ir_begin(k, rotates ? "basis_rotate" : "basis_orthogonalise", s->lanes, s->subgroups, 1);
  ir_val table = ir_buffer(k, IR_I64, false);
  b.memory = ir_buffer(k, b.t, true);
  ir_val gates = ir_buffer(k, IR_I32, false), least = ir_scalar(k, IR_I32);
  const clb_basis_locals l = (rotates ? clb_jacobi_locals : clb_householder_locals)(&b);
  b.lane = ir_lane(k);
  b.subgroup = s->subgroups > 1 ? ir_subgroup(k) : ir_int(k, IR_I32, 0);
  ir_val row = ir_mul(k, ir_group(k), ir_int(k, IR_I32, columns));
  for (int i = 0; i < columns; i++)
    b.at[i] = ir_load(k, table, ir_add(k, row, ir_int(k, IR_I32, i)), IR_NONE);
  ir_if(k, ir_2(k, IR_LE, least, ir_load(k, gates, b.at[gate], IR_NONE)));
  (rotates ? clb_jacobi : clb_householder)(&b, &l);
  ir_end(k);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "sides of up to %d", (int)p->matrix_basis.side);
}

const clb_kernel_kind clb_kind_matrix_basis = {.name = "matrix_basis",
                                               .check = check,
                                               .schedule = schedule,
                                               .lower = lower,
                                               .print = print,
                                               .passes = CLB_BASIS_KERNELS};
