/* src/tuning/autotune.c - runs the candidates of a pass, compares them with the estimate, times
   them alternately, and keeps the fastest. */
#include "src/tuning/autotune.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/host/operand_lists.h"
#include "src/runtime/wisdom.h"
#include "src/tuning/tuning_test_run.h"

enum { ROUNDS = 7, FEW_ROUNDS = 3 };
/* Seconds: of a call on enough data; minimum of a sample; of a call that is timed fewer times. */
static const double long_enough = 10e-3, sample = 2e-3, slow = 0.1;
/* Ratios of times: to the estimate's, below which another schedule is chosen; to the best, above
   which a candidate is no longer timed. */
static const double worth = 0.97, hopeless = 2;

typedef struct {
  clb_schedule schedule;
  clb_kernel *kernel;       /* NULL: the candidate has been dropped */
  bool reads_tables, fresh; /* fresh: this measurement compiled it */
  double seconds[ROUNDS];   /* of a call */
} candidate;

typedef struct {
  clb_test_run trial;
  candidate c[CLB_MAX_CANDIDATES];          /* the first is the estimate */
  int n, rounds, calls;                     /* calls: per sample */
  void *expected[CLB_MAX_OPERANDS], *found; /* results: of the estimate, of one operand */
} measurement;

static void use(measurement *m, const candidate *c) {
  clb_test_run *t = &m->trial;
  t->of->kernel[t->pass] = c->kernel;
  t->of->reads_tables[t->pass] = c->reads_tables;
  t->of->choice[t->pass].schedule = c->schedule;
}

/* Seconds of a call. */
static clb_status time_calls(measurement *m, int calls, double *seconds) {
  double start = clb_seconds_now();
  clb_status s = CLB_OK;
  for (int i = 0; i < calls && !s; i++) s = clb_test_run_once(&m->trial);
  if (!s) s = clb_wait(m->trial.op->ctx);
  *seconds = (clb_seconds_now() - start) / calls;
  return s;
}

/* ---- data ---- */

/* Enough data for a measurable time, but no more than 256 MiB or a sixteenth of the memory. */
static clb_status make_data(measurement *m) {
  const clb_device_info *info = &m->trial.op->ctx->device->info;
  int64_t bytes = clb_test_run_begin(&m->trial), capacity = INT64_C(256) << 20;
  if (info->memory_bytes && info->memory_bytes / 16 < (uint64_t)capacity)
    capacity = (int64_t)(info->memory_bytes / 16);
  int64_t most = bytes && capacity / bytes ? capacity / bytes : 1, size = m->trial.kind->first_size;
  double seconds = 0;
  clb_status s = CLB_OK;
  for (;; size *= 8) {
    if (size > most) size = most;
    s = clb_test_run_make(&m->trial, size);
    if (!s) s = time_calls(m, 1, &seconds); /* warms up */
    if (!s) s = time_calls(m, 1, &seconds);
    if (s || size == most || seconds >= long_enough) break;
  }
  m->rounds = seconds > slow ? FEW_ROUNDS : ROUNDS;
  m->calls = seconds >= sample ? 1 : (int)(sample / (seconds + 1e-7)) + 1;
  return s;
}

static int64_t bytes_of(const measurement *m, int i) {
  return clb_test_run_count(&m->trial, i) * clb_operand_bytes(m->trial.op, &m->trial.operand[i]);
}
static bool is_result(const measurement *m, int i) {
  return m->trial.operand[i].written && m->trial.operand[i].columns;
}

/* One call that starts from the same data as the estimate's. */
static clb_status run_afresh(measurement *m) {
  clb_status s = CLB_OK;
  for (int i = 0; i < m->trial.n && !s; i++)
    if (is_result(m, i)) s = clb_test_run_fill(&m->trial, i);
  if (!s) s = clb_test_run_once(&m->trial);
  return s ? s : clb_wait(m->trial.op->ctx);
}

static clb_status keep_expected(measurement *m) {
  clb_error_sink *e = &m->trial.op->ctx->error;
  int64_t most = 1;
  clb_status s = run_afresh(m);
  for (int i = 0; i < m->trial.n && !s; i++) {
    if (!is_result(m, i)) continue;
    if (bytes_of(m, i) > most) most = bytes_of(m, i);
    m->expected[i] = malloc((size_t)bytes_of(m, i));
    if (!m->expected[i]) s = clb_fail(e, CLB_ERROR_MEMORY, "no memory to measure with");
    else
      s = clb_buffer_read(m->trial.operand[i].rows.buffer, 0, m->expected[i],
                          (uint64_t)bytes_of(m, i));
  }
  if (!s && !(m->found = malloc((size_t)most)))
    s = clb_fail(e, CLB_ERROR_MEMORY, "no memory to measure with");
  return s;
}

static bool agrees(measurement *m) {
  bool good = !run_afresh(m);
  for (int i = 0; i < m->trial.n && good; i++) {
    if (!is_result(m, i)) continue;
    good = !clb_buffer_read(m->trial.operand[i].rows.buffer, 0, m->found, (uint64_t)bytes_of(m, i));
    good = good && clb_test_run_agrees(&m->trial, i, m->expected[i], m->found);
  }
  return good;
}

/* ---- candidates ---- */

static void drop(measurement *m, candidate *c) {
  if (c->fresh) clb_kernel_free(m->trial.op->ctx, c->kernel);
  c->kernel = NULL;
}

/* Compiles a candidate and runs it once; it is dropped if it fails, if its results differ, or if
   its kernel is a duplicate. */
static void try_candidate(measurement *m, candidate *c) {
  clb_op *of = m->trial.of;
  clb_pass pass = m->trial.pass;
  const clb_kernel *before = of->ctx->kernels;
  if (clb_op_set_schedule(of, pass, &c->schedule)) return;
  clb_kernel *kernel = of->kernel[pass];
  c->fresh = kernel == of->ctx->kernels && kernel != before;
  for (int i = 0; i < m->n; i++)
    if (m->c[i].kernel == kernel) return;
  c->kernel = kernel;
  c->reads_tables = of->reads_tables[pass];
  if (agrees(m)) return;
  use(m, &m->c[0]);
  drop(m, c);
}

static double least(const double *x, int n) {
  double l = x[0];
  for (int i = 1; i < n; i++) l = x[i] < l ? x[i] : l;
  return l;
}

/* The median of n > 0 numbers, which it sorts. */
static double median(double *x, int n) {
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && x[j] < x[j - 1]; j--) {
      double t = x[j];
      x[j] = x[j - 1], x[j - 1] = t;
    }
  return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

/* Times all candidates alternately, so that other load on the machine affects all of them; those
   far behind are dropped early. */
static clb_status time_all(measurement *m) {
  for (int round = 0; round < m->rounds; round++) {
    double best = 0;
    for (int i = 0; i < m->n; i++) {
      candidate *c = &m->c[i];
      if (!c->kernel) continue;
      use(m, c);
      clb_status s = time_calls(m, m->calls, &c->seconds[round]);
      if (s && !i) return s;
      if (s) use(m, &m->c[0]), drop(m, c);
      else if (best == 0 || least(c->seconds, round + 1) < best)
        best = least(c->seconds, round + 1);
    }
    use(m, &m->c[0]);
    for (int i = 1; i < m->n && round; i++)
      if (m->c[i].kernel && least(m->c[i].seconds, round + 1) > hopeless * best) drop(m, &m->c[i]);
  }
  return CLB_OK;
}

/* Time relative to the estimate's in the same round. */
static double ratio(const measurement *m, int i) {
  double r[ROUNDS];
  for (int round = 0; round < m->rounds; round++)
    r[round] = m->c[i].seconds[round] / m->c[0].seconds[round];
  return median(r, m->rounds);
}

/* Keeps and records the fastest; frees the kernels of the others. */
static void choose(measurement *m) {
  clb_op *of = m->trial.of;
  clb_pass pass = m->trial.pass;
  double least_ratio = worth;
  int best = 0;
  for (int i = 1; i < m->n; i++)
    if (m->c[i].kernel && ratio(m, i) < least_ratio) least_ratio = ratio(m, i), best = i;
  double estimate = 1e9 * median(m->c[0].seconds, m->rounds);
  use(m, &m->c[best]);
  for (int i = 1; i < m->n; i++)
    if (i != best && m->c[i].kernel) drop(m, &m->c[i]);
  of->choice[pass] = (clb_choice){m->c[best].schedule, m->c[0].schedule, true, (int64_t)estimate,
                                  (int64_t)(best ? estimate * least_ratio : estimate)};
  of->problem.pass = (int32_t)pass;
  clb_wisdom_keep(of->ctx, &of->problem, &of->choice[pass]);
}

static clb_status measure_pass(measurement *m) {
  clb_op *of = m->trial.of;
  clb_pass pass = m->trial.pass;
  m->c[0].kernel = of->kernel[pass];
  m->c[0].reads_tables = of->reads_tables[pass];
  clb_status s = make_data(m);
  if (!s) s = keep_expected(m);
  for (int i = 1; i < m->n && !s; i++) try_candidate(m, &m->c[i]);
  if (!s) s = time_all(m);
  if (!s) choose(m);
  else use(m, &m->c[0]);
  for (int i = 1; i < m->n && s; i++)
    if (m->c[i].kernel) drop(m, &m->c[i]);
  for (int i = 0; i < m->trial.n; i++) free(m->expected[i]);
  free(m->found);
  clb_test_run_free(&m->trial);
  return s == CLB_ERROR_MEMORY ? CLB_OK : s; /* then the estimate is kept */
}

/* Tunes the kernel of trial->of, one pass. */
static clb_status measure(const clb_test_run *trial) {
  clb_op *op = trial->op, *of = trial->of;
  const clb_pass pass = trial->pass;
  const clb_kernel_kind *kind = clb_kernel_kinds[of->problem.kind];
  clb_context *ctx = of->ctx;
  clb_schedule list[CLB_MAX_CANDIDATES];
  if (!kind->candidates || !clb_operands_of[op->problem.kind] || !of->kernel[pass] ||
      of->choice[pass].measured || !ctx->device->info.runs)
    return CLB_OK;
  measurement *m = calloc(1, sizeof *m);
  if (!m) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory to measure with");
  bool profiles = ctx->profiles;
  ctx->profiles = false;
  of->problem.pass = (int32_t)pass;
  m->trial = *trial;
  m->n = kind->candidates(&of->problem, &ctx->device->limits, list);
  for (int i = 0; i < m->n; i++) m->c[i].schedule = list[i];
  clb_status s = m->n > 1 ? measure_pass(m) : CLB_OK;
  ctx->profiles = profiles;
  free(m);
  return s;
}

static clb_status tune(const clb_tuner *tuner, clb_op *op, clb_op *part) {
  const clb_test_run_kind *own = tuner->test_run;
  clb_status s = CLB_OK;
  for (int pass = 0; pass < CLB_PASSES && !s; pass++) {
    clb_test_run trial = {.kind = own->of == op->problem.kind ? own : &clb_test_run_of_rows,
                          .op = op,
                          .part = part,
                          .of = part,
                          .pass = (clb_pass)pass};
    if (part) s = measure(&trial); /* first: one of the op's candidates may do without */
    trial.of = op;
    if (!s) s = measure(&trial);
  }
  return s;
}

const clb_tuner *clb_tuner_for(const clb_context *ctx, unsigned passes,
                               const clb_test_run_kind *test_run, clb_tuner *tuner) {
  *tuner = (clb_tuner){tune, test_run};
  return passes & CLB_MEASURE && !ctx->disabled ? tuner : NULL;
}
