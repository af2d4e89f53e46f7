/* tests/ops/test_rms_norm_schedules.c - every schedule of norms, for the limits of several devices,
   on the interpreter: results are those of the reference, wherever rows start; and without each
   optimisation. */
#include "tests/fakes/device_limits.h"
#include "tests/test.h"

#include <math.h>

#include "src/base/signature.h"
#include "src/ir/interpreter/interpret_values.h"
#include "src/runtime/context.h"
#include "tools/reference/reference_irreps.h"
#include "tools/reference/reference_row.h"

enum { MAX_OPERANDS = 8 };

static const struct {
  clb_rms_norm_desc desc;
  int64_t rows;
} cases[] = {
    {{.irreps = "64x0e", .epsilon = 1e-3}, 70},
    {{.irreps = "77x0e", .epsilon = 1e-3, .storage = CLB_BF16}, 41},
    {{.irreps = "128x0e+24x1o+8x2e",
      .variant = CLB_RMS_DEGREE,
      .epsilon = 1e-3,
      .centre = 1,
      .bias = 1},
     33},
    {{.irreps = "1024x0e", .epsilon = 1e-3, .storage = CLB_BF16, .weight_offset = 1}, 5},
    {{.irreps = "300x0e+500x1o",
      .layout = CLB_IR_MUL,
      .variant = CLB_RMS_BALANCED,
      .epsilon = 1e-3,
      .centre = 1},
     5},
    {{.irreps = "16384x0e", .epsilon = 1e-3}, 2},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Operands of a pass in double, as they are stored. */
typedef struct {
  const clb_rms_norm_desc *d;
  clb_pass pass;
  int64_t n;
  clb_signature_operand o[CLB_SIGNATURE_OPERANDS];
  int count;
  int64_t size[MAX_OPERANDS];
  double *value[MAX_OPERANDS], *wanted[MAX_OPERANDS], *scale[MAX_OPERANDS];
} data;

static data make(const clb_rms_norm_desc *d, clb_pass pass, int64_t n) {
  data t = {.d = d, .pass = pass, .n = n};
  const reference_place sizes = reference_norm_measure(d);
  uint64_t seed = 3;
  t.count = clb_signature_operands(&clb_signature_rms_norm, (int)pass, t.o);
  for (int i = 0; i < t.count; i++) {
    t.size[i] = t.o[i].of == CLB_OPERAND_W ? sizes.w : n * sizes.x;
    t.value[i] = malloc(8 * (size_t)t.size[i]);
    t.wanted[i] = malloc(8 * (size_t)t.size[i]);
    t.scale[i] = malloc(8 * (size_t)t.size[i]);
    for (int64_t e = 0; e < t.size[i]; e++) {
      float x = (float)test_random(&seed);
      t.value[i][e] = (double)(d->storage == CLB_BF16 ? ir_from_bf16(ir_to_bf16(x)) : x);
    }
  }
  reference_norm_run(d, pass, n, t.value, t.wanted, t.scale);
  return t;
}

static void drop(data *t) {
  for (int i = 0; i < t->count; i++) free(t->value[i]), free(t->wanted[i]), free(t->scale[i]);
}

/* Runs the op on arrays that start with element `offset`, and compares. */
static void run(clb_context *ctx, clb_op *op, const data *t, int64_t offset, const char *what) {
  const bool half = t->d->storage == CLB_BF16;
  const size_t bytes = half ? 2 : 4;
  clb_rows r[MAX_OPERANDS] = {{0}};
  for (int i = 0; i < t->count; i++) {
    void *x = malloc(bytes * (size_t)(offset + t->size[i]));
    memset(x, 0xff, bytes * (size_t)(offset + t->size[i])); /* NaN */
    for (int64_t e = 0; e < t->size[i] && !clb_role_is_written(t->o[i].role); e++)
      clb_store_number(t->d->storage, x, offset + e, t->value[i][e]);
    OK(ctx, clb_buffer_create(ctx, bytes * (uint64_t)(offset + t->size[i]), &r[i].buffer));
    OK(ctx, clb_buffer_write(r[i].buffer, 0, x, bytes * (uint64_t)(offset + t->size[i])));
    r[i].offset = offset;
    free(x);
  }
  if (t->pass == CLB_FORWARD) OK(ctx, clb_rms_norm_forward(op, t->n, r[0], r[1], r[2]));
  if (t->pass == CLB_BACKWARD)
    OK(ctx, clb_rms_norm_backward(op, t->n, r[0], r[1], r[2], r[3], r[4]));
  if (t->pass == CLB_DOUBLE_BACKWARD)
    OK(ctx, clb_rms_norm_double_backward(op, t->n, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]));
  for (int i = 0; i < t->count; i++) {
    void *x = malloc(bytes * (size_t)t->size[i]);
    OK(ctx,
       clb_buffer_read(r[i].buffer, bytes * (uint64_t)offset, x, bytes * (uint64_t)t->size[i]));
    for (int64_t e = 0; e < t->size[i] && clb_role_is_written(t->o[i].role); e++) {
      double is = half ? (double)ir_from_bf16(((uint16_t *)x)[e]) : (double)((float *)x)[e];
      if (!(fabs(is - t->wanted[i][e]) <= (half ? 1e-2 : 2e-6) * t->scale[i][e]))
        fail_msg("%s: %s, offset %d, %s: number %d is %g, not %g", t->d->irreps, what, (int)offset,
                 t->o[i].name, (int)e, is, t->wanted[i][e]);
    }
    free(x);
    clb_buffer_destroy(&r[i].buffer);
  }
}

static void schedules(void **state) {
  const clb_limits *limits = *state;
  for (int c = 0; c < CASES; c++) {
    clb_context *ctx = NULL;
    clb_op *op;
    clb_rms_norm_desc d = cases[c].desc;
    d.passes = 7;
    OK(ctx, clb_context_create("cpu:interpreter", &ctx));
    ctx->device->limits = *limits;
    ctx->device->limits.units = 1; /* rows follow each other */
    OK(ctx, clb_rms_norm_create(ctx, &d, &op));
    for (int pass = 0; pass < 3; pass++) {
      clb_schedule list[CLB_MAX_CANDIDATES];
      data t = make(&d, (clb_pass)pass, cases[c].rows);
      op->problem.pass = pass;
      int n = clb_kernel_kinds[CLB_RMS_NORM]->candidates(&op->problem, &ctx->device->limits, list);
      assert_true(n > 1);
      if (limits->async_copies && c == CASES - 1 && pass == CLB_BACKWARD)
        assert_true(list[0].norm.through_local);
      for (int s = 0; s < n; s++) {
        clb_text text = {0};
        if (s && leaves_to_another(s % 2, 2, c + pass)) continue;
        clb_schedule_print(&list[s], &text);
        OK(ctx, clb_op_set_schedule(op, (clb_pass)pass, &list[s]));
        run(ctx, op, &t, 0, text.s);
        if (!s) run(ctx, op, &t, 1, text.s);
        clb_text_free(&text);
      }
      drop(&t);
    }
    clb_op_destroy(&op);
    clb_context_destroy(&ctx);
  }
}

/* The three bits of clb_context_disable, alone and together. */
static void without(void **state) {
  const clb_limits *limits = *state;
  for (int c = 0; c < CASES - 1; c++)
    for (unsigned bits = 1; bits < 8; bits = bits == 4 ? 7 : 2 * bits) {
      clb_context *ctx = NULL;
      clb_op *op;
      clb_rms_norm_desc d = cases[c].desc;
      char what[32];
      snprintf(what, sizeof what, "without %u", bits);
      d.passes = 7;
      OK(ctx, clb_context_create("cpu:interpreter", &ctx));
      ctx->device->limits = *limits;
      OK(ctx, clb_context_disable(ctx, bits));
      OK(ctx, clb_rms_norm_create(ctx, &d, &op));
      for (int pass = 0; pass < 3; pass++) {
        const ir_kernel *k = &op->kernel[pass]->ir;
        data t = make(&d, (clb_pass)pass, cases[c].rows);
        run(ctx, op, &t, 0, what);
        for (int32_t v = 0; v < k->n && bits & CLB_WIDE_ACCESSES; v++)
          assert_true(k->ins[v].width <= 1);
        if (bits & CLB_SPLIT_ROWS)
          assert_int_equal(op->choice[pass].schedule.norm.subgroups_per_row, 0);
        drop(&t);
      }
      clb_op_destroy(&op);
      clb_context_destroy(&ctx);
    }
}

int main(void) {
  static const int places[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_INTEL, LIMITS_NO_SUBGROUPS,
                               LIMITS_CPU};
  enum { PLACES = sizeof places / sizeof *places };
  static struct CMUnitTest all[2 * PLACES];
  static char labels[2 * PLACES][64];
  for (int i = 0; i < 2 * PLACES; i++) {
    const int place = places[i / 2];
    snprintf(labels[i], sizeof labels[i], "rms_norm_%s[%s]", i % 2 ? "without" : "schedules",
             device_limits[place].name);
    all[i] = (struct CMUnitTest){labels[i], i % 2 ? without : schedules, NULL, NULL,
                                 (void *)(uintptr_t)&device_limits[place].limits};
  }
  return _cmocka_run_group_tests("rms_norm_schedules", all, 2 * PLACES, NULL, NULL);
}
