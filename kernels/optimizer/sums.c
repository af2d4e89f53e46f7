/* kernels/optimizer/sums.c - the sum of squares of all gradients, one partial sum a group, in an
   order that does not change; and what makes states 0.

   With check_finite there is a second list, of sums of 0 g: 0 or NaN. */
#include "kernels/common/lane_sums.h"
#include "kernels/optimizer/chunks.h"

typedef struct {
  clb_chunks c;
  ir_val gradients, part[2]; /* variables: of the chunk */
  bool finite;
  ir_val g[CLB_MOST_PLACES * IR_MAX_WIDTH];
} sums;

static void load(void *user, const clb_elements *place, int n) {
  sums *s = user;
  for (int i = 0; i < n; i++)
    clb_chunks_load(&s->c, s->gradients, CLB_CHUNK_GRADIENTS, &place[i], s->g + i * place->width);
}

static void finish(void *user, const clb_elements *place, int n) {
  sums *s = user;
  ir_kernel *k = s->c.k;
  ir_val of[CLB_MOST_PLACES * IR_MAX_WIDTH] = {IR_NONE};
  const int all = n * place->width;
  for (int i = 0; i < all; i++) of[i] = ir_mul(k, s->g[i], s->g[i]);
  ir_set(k, s->part[0], ir_add(k, ir_get(k, s->part[0]), clb_sum_pairwise(k, of, all)));
  if (!s->finite) return;
  for (int i = 0; i < all; i++) of[i] = ir_mul(k, s->g[i], ir_real(k, s->c.t, 0));
  ir_set(k, s->part[1], ir_add(k, ir_get(k, s->part[1]), clb_sum_pairwise(k, of, all)));
}

/* The group's sum of its sub-groups' in the first lane's place of a list. */
static ir_val of_group(sums *s, ir_val local, int list, ir_val sum) {
  ir_kernel *k = s->c.k;
  const int n = s->c.s->subgroups;
  ir_val each[64];
  if (n == 1) return sum;
  ir_store(k, local, ir_add(k, ir_subgroup(k), ir_int(k, IR_I32, (int64_t)list * n)), IR_NONE, sum);
  ir_barrier(k, true);
  for (int i = 0; i < n; i++)
    each[i] = ir_load(k, local, ir_int(k, IR_I32, (int64_t)list * n + i), IR_NONE);
  return clb_sum_pairwise(k, each, n);
}

void clb_optimizer_lower_sums(const clb_problem *p, const clb_schedule *schedule, ir_kernel *k) {
  sums s = {.finite = p->optimizer.check_finite};
  const int lists = s.finite ? 2 : 1;
  clb_chunks_begin(&s.c, k, "optimizer_sums", p, schedule);
  const ir_type t = s.c.t;
  ir_val zero = ir_real(k, t, 0), all[2];
  s.gradients = ir_buffer(k, clb_ir_type((clb_dtype)p->optimizer.gradients), false);
  ir_val partials = ir_buffer(k, t, true), n = ir_scalar(k, IR_I32), local = IR_NONE;
  if (schedule->subgroups > 1) local = ir_local(k, t, (int64_t)lists * schedule->subgroups);
  for (int i = 0; i < lists; i++) all[i] = ir_var(k, zero, false);
  for (int i = 0; i < lists; i++) s.part[i] = ir_var(k, zero, false);
  clb_chunks_loop(&s.c);
  for (int i = 0; i < lists; i++) ir_set(k, s.part[i], zero);
  clb_chunks_sweep(&s.c, &(clb_sweep){load, NULL, finish, &s});
  for (int i = 0; i < lists; i++)
    ir_set(k, all[i], ir_add(k, ir_get(k, all[i]), ir_get(k, s.part[i])));
  ir_end(k);
  for (int i = 0; i < lists; i++) {
    ir_val sum = of_group(&s, local, i, ir_reduce_add(k, ir_get(k, all[i]))), at = ir_group(k);
    if (i) at = ir_add(k, at, n);
    if (schedule->subgroups > 1) ir_if(k, ir_2(k, IR_EQ, ir_subgroup(k), ir_int(k, IR_I32, 0)));
    ir_store(k, partials, at, IR_NONE, sum);
    if (schedule->subgroups > 1) ir_end(k);
  }
  ir_finish(k);
}

void clb_optimizer_lower_clear(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  enum { EACH = 4 };
  const ir_type t = p->storage == CLB_F64 ? IR_F64 : IR_F32;
  const int64_t rows = (int64_t)s->subgroups * s->lanes * EACH;
  ir_begin(k, "optimizer_clear", s->lanes, s->subgroups, (int)rows);
  ir_val n = ir_scalar(k, IR_I64), to = ir_buffer(k, t, true);
  ir_val first = ir_add(
      k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, rows)),
      ir_mul(k, ir_cast(k, IR_I64, ir_subgroup(k)), ir_int(k, IR_I64, (int64_t)s->lanes * EACH)));
  for (int i = 0; i < EACH; i++) {
    ir_val at = ir_add(k, ir_add(k, first, ir_int(k, IR_I64, (int64_t)i * s->lanes)),
                       ir_cast(k, IR_I64, ir_lane(k)));
    ir_store(k, to, at, ir_2(k, IR_LT, at, n), ir_real(k, t, 0));
  }
  ir_finish(k);
}
