/* tests/codegen/test_machine_code.c - the vendors' machine code moves the elements that the
   mathematics needs and no more; kernels that move one element more are caught. */
#include <elf.h>
#include <math.h>

#include <clebsch/clebsch.h>

#include "backends/backend.h"
#include "kernels/tensor_product/product.h"
#include "src/runtime/context.h"
#include "src/problem/irreps.h"
#include "tools/ops/tensor_product_problems.h"
#include "tests/build_kernel.h"
#include "tests/test.h"

/* Elements of a row that a pass needs, for every l <= lmax, in the order of its operands. Some
   degrees add nothing to a derivative: l = 0 has no first derivative, l = 1 no second. */
typedef struct {
  int lmax;
  clb_pass pass;
  int moves[5]; /* forward: x, y; backward: x, g_y, g_x; double backward: x, g_y, h, d_x, d_g_y */
} demand;

static const demand demands[] = {{4, CLB_FORWARD, {3, 25}},
                                 {6, CLB_FORWARD, {3, 49}},
                                 {4, CLB_BACKWARD, {3, 24, 3}},
                                 {6, CLB_BACKWARD, {3, 48, 3}},
                                 {10, CLB_BACKWARD, {3, 120, 3}},
                                 {4, CLB_DOUBLE_BACKWARD, {3, 21, 3, 3, 25}},
                                 {6, CLB_DOUBLE_BACKWARD, {3, 45, 3, 3, 49}}};
enum { DEMANDS = sizeof demands / sizeof *demands, NO_SPILL_UP_TO = 6 };

static int inputs(const demand *w) { return w->pass + 1; }
static int operands(const demand *w) { return w->pass == CLB_DOUBLE_BACKWARD ? 5 : w->pass + 2; }

static int sum(const int *first, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += first[i];
  return s;
}
static int loads(const demand *w) { return sum(w->moves, inputs(w)); }
static int stores(const demand *w) { return sum(w->moves + inputs(w), operands(w) - inputs(w)); }

/* ---- kernels ---- */

static void lower(const clb_device *d, const demand *w, clb_dtype storage, bool normalize,
                  ir_kernel *k) {
  char error[200] = "";
  clb_problem p;
  clb_schedule schedule;
  memset(&p, 0, sizeof p);
  p.kind = CLB_SPHERICAL_HARMONICS;
  p.pass = (int32_t)w->pass;
  p.storage = (int32_t)storage;
  p.arithmetic = storage == CLB_F64 ? CLB_F64 : CLB_F32;
  p.spherical_harmonics.n_degrees = w->lmax + 1;
  p.spherical_harmonics.normalize = normalize;
  for (int l = 0; l <= w->lmax; l++) p.spherical_harmonics.degrees[l] = l;
  const clb_kernel_kind *kind = clb_kernel_kinds[p.kind];
  kind->schedule(&p, &d->limits, &schedule);
  kind->lower(&p, &schedule, k);
  if (k->error[0] || !ir_verify(k, error, sizeof error)) fail_msg("%s%s", k->error, error);
}

typedef enum { READS_ITS_OUTPUT, READS_ONE_MORE, WRITES_ONE_MORE, MUTATIONS } mutation;

static bool global(const ir_kernel *k, int32_t v, ir_op op) {
  return k->ins[v].op == op && k->ins[k->ins[v].arg[0]].op == IR_BUFFER;
}

/* The element before one that the kernel accesses anyway. */
static ir_val before(ir_kernel *k, ir_val index) {
  return ir_add(k, index, ir_int(k, (ir_type)k->ins[index].type, -1));
}

/* Removes the last store and builds on: the value read is added to the one that was to be stored.
 */
static void mutate(ir_kernel *k, mutation m) {
  ir_val values[IR_MAX_WIDTH];
  char error[200] = "";
  int32_t load = k->n - 1;
  while (load >= 0 && !global(k, load, IR_LOAD)) load--;
  assert_true(load >= 0 && global(k, k->n - 1, IR_STORE));
  const ir_ins l = k->ins[load], s = k->ins[--k->n];
  memcpy(values, k->pool + s.imm, (size_t)s.width * sizeof *values);
  k->pool_n = (int32_t)s.imm;
  if (m == READS_ITS_OUTPUT)
    values[0] = ir_add(k, values[0], ir_load(k, s.arg[0], s.arg[1], s.arg[2]));
  if (m == READS_ONE_MORE)
    values[0] = ir_add(k, values[0], ir_load(k, l.arg[0], before(k, l.arg[1]), l.arg[2]));
  if (m == WRITES_ONE_MORE) ir_store(k, s.arg[0], before(k, s.arg[1]), s.arg[2], values[0]);
  ir_store_wide(k, s.arg[0], s.arg[1], s.arg[2], s.width, values);
  if (!ir_finish(k) || !ir_verify(k, error, sizeof error)) fail_msg("%s%s", k->error, error);
}

/* ---- counts ---- */

/* Elements of the given operand that one lane loads or stores; the kernels of this op have neither
   loops nor branches. */
static int moved(const ir_kernel *k, int operand, ir_op op) {
  int n = 0, buffer = -1;
  for (int32_t v = 0; v < k->n && operand >= 0; v++)
    if (k->ins[v].op == IR_BUFFER && operand-- == 0) buffer = v;
  for (int32_t v = 0; v < k->n; v++) {
    assert_true(k->ins[v].op != IR_LOOP && k->ins[v].op != IR_IF && k->ins[v].op != IR_COPY &&
                k->ins[v].op != IR_ATOMIC_ADD);
    if (k->ins[v].op == op && k->ins[v].arg[0] == buffer) n += k->ins[v].width;
  }
  return n;
}

/* Inputs are loaded and never stored, outputs stored and never loaded, each as often as needed. */
static bool ir_agrees(const ir_kernel *k, const demand *w) {
  ir_counts n = ir_count(k);
  bool agree = n.loads == loads(w) && n.stores == stores(w);
  for (int i = 0; i < operands(w); i++) {
    bool input = i < inputs(w);
    agree &= moved(k, i, IR_LOAD) == (input ? w->moves[i] : 0) &&
             moved(k, i, IR_STORE) == (input ? 0 : w->moves[i]);
  }
  return agree;
}

typedef enum { NO, YES, UNKNOWN } answer;

static answer machine_agrees(const clb_report *r, const demand *w) {
  bool spills_count = w->lmax <= NO_SPILL_UP_TO;
  if (r->loads < 0 || r->stores < 0 || (spills_count && r->spill_bytes < 0)) return UNKNOWN;
  return r->loads == loads(w) && r->stores == stores(w) && !(spills_count && r->spill_bytes);
}

static clb_report compiled(clb_device *d, const ir_kernel *k) {
  clb_text binary = {0};
  clb_report r = {0};
  if (build_kernel(d, k, &binary) || d->backend->report(d, k, binary.s, binary.n, &r))
    fail_msg("%s", d->error->text.s);
  assert_true(binary.n > 0);
  clb_text_free(&binary);
  return r;
}

/* Machine code fuses the operations that the list says, where loops do not repeat them, and at most
   a fifth more (divisions are made of fused multiply-adds). */
static bool fuses(const clb_report *r, const ir_kernel *k) {
  int n = 0;
  for (int32_t v = 0; v < k->n; v++)
    n += k->ins[v].op == IR_FMA && ir_is_float((ir_type)k->ins[v].type);
  return r->fmas < 0 || (r->fmas >= n && r->fmas <= 1.2 * n);
}

/* ---- targets ---- */

/* Skips where the target's compiler is not installed. */
static clb_device *open_target(const char *target, clb_error_sink *error) {
  char why[300];
  clb_device *d = NULL;
  skip_where_sanitized(target);
  clb_status s = clb_device_open(target, NULL, error, &d);
  if (!s) return d;
  snprintf(why, sizeof why, "%s", error->text.s);
  clb_text_free(&error->text);
  if (s != CLB_ERROR_DEVICE) fail_msg("%s: %s", target, why);
  skip_because("%s", why);
  return NULL;
}

static void close_target(clb_device *d, clb_error_sink *error) {
  d->backend->close(d);
  clb_text_free(&error->text);
}

static void skip_unknown(const char *target, answer a) {
  if (a == UNKNOWN) skip_because("%s: the machine code cannot be read: no disassembler", target);
}

/* ---- tests ---- */

static void counts_agree(void **state) {
  const char *target = *state;
  clb_error_sink error = {0};
  clb_device *d = open_target(target, &error);
  answer all = YES;
  assert_false(d->info.runs);
  for (int i = 0; i < DEMANDS; i++) {
    const demand *w = &demands[i];
    ir_kernel k;
    lower(d, w, CLB_F32, false, &k);
    clb_report r = compiled(d, &k);
    answer a = machine_agrees(&r, w);
    if (!ir_agrees(&k, w) || a == NO)
      fail_msg("%s, l <= %d, pass %d: the IR has %g loads and %g stores, the machine code %d and "
               "%d, with %d bytes spilled; needed are %d and %d",
               target, w->lmax, (int)w->pass, ir_count(&k).loads, ir_count(&k).stores, r.loads,
               r.stores, r.spill_bytes, loads(w), stores(w));
    if (!fuses(&r, &k))
      fail_msg("%s, l <= %d, pass %d: %d fused multiply-adds", target, w->lmax, (int)w->pass,
               r.fmas);
    if (a == UNKNOWN) all = UNKNOWN;
    ir_free(&k);
  }
  close_target(d, &error);
  skip_unknown(target, all);
}

/* Each kernel that moves one element more fails counts_agree. */
static void mutants_fail(void **state) {
  static const char *const names[MUTATIONS] = {"reads its output", "reads one more",
                                               "writes one more"};
  const char *target = *state;
  clb_error_sink error = {0};
  clb_device *d = open_target(target, &error);
  answer all = YES;
  for (int i = 0; i < DEMANDS; i++)
    for (int m = 0; m < MUTATIONS; m++) {
      const demand *w = &demands[i];
      ir_kernel k;
      if (w->lmax == 6 || (w->lmax == 10 && m != READS_ONE_MORE)) continue; /* nothing new */
      lower(d, w, CLB_F32, false, &k);
      mutate(&k, (mutation)m);
      clb_report r = compiled(d, &k);
      answer a = machine_agrees(&r, w);
      int more = m == WRITES_ONE_MORE ? r.stores - stores(w) : r.loads - loads(w);
      if (ir_agrees(&k, w) || a == YES || (a == NO && more != 1))
        fail_msg("%s, l <= %d, pass %d, a mutant that %s: the IR has %g loads and %g stores, the "
                 "machine code %d and %d",
                 target, w->lmax, (int)w->pass, names[m], ir_count(&k).loads, ir_count(&k).stores,
                 r.loads, r.stores);
      if (a == UNKNOWN) all = UNKNOWN;
      ir_free(&k);
    }
  close_target(d, &error);
  skip_unknown(target, all);
}

/* The same through the public functions. */
static void reports_agree(void **state) {
  static const int degrees[] = {0, 1, 2, 3, 4};
  const clb_spherical_harmonics_desc desc = {
      .degrees = degrees, .n_degrees = 5, .storage = CLB_F32, .arithmetic = CLB_F32, .passes = 7};
  const char *target = *state;
  clb_error_sink error = {0};
  clb_device *d = open_target(target, &error);
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  answer all = YES;
  close_target(d, &error);
  if (clb_context_create(target, &ctx) || clb_spherical_harmonics_create(ctx, &desc, &op))
    fail_msg("%s", clb_error(ctx));
  for (int i = 0; i < DEMANDS; i++) {
    const demand *w = &demands[i];
    clb_counts n;
    clb_report r;
    if (w->lmax != 4) continue;
    if (clb_op_counts(op, w->pass, &n) || clb_op_report(op, w->pass, &r))
      fail_msg("%s", clb_error(ctx));
    answer a = machine_agrees(&r, w);
    if (n.loads != loads(w) || n.stores != stores(w) || n.bytes_loaded != 4 * n.loads ||
        n.bytes_stored != 4 * n.stores || a == NO)
      fail_msg("%s, pass %d: clb_op_counts says %g loads and %g stores, clb_op_report %d and %d; "
               "needed are %d and %d",
               target, (int)w->pass, n.loads, n.stores, r.loads, r.stores, loads(w), stores(w));
    if (a == UNKNOWN) all = UNKNOWN;
  }
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  skip_unknown(target, all);
}

/* Every pass in every type, normalised and not. */
static void all_build(void **state) {
  const char *target = *state;
  clb_error_sink error = {0};
  clb_device *d = open_target(target, &error);
  for (int i = 0; i < 3 * 4 * 2; i++) {
    const demand w = {.lmax = 4, .pass = (clb_pass)(i % 3)};
    clb_text binary = {0};
    clb_dtype storage = (clb_dtype)(i / 3 % 4);
    bool normalize = i / 12;
    ir_kernel k;
    if (storage == CLB_F32 && !normalize) continue; /* counts_agree builds them */
    lower(d, &w, storage, normalize, &k);
    if (build_kernel(d, &k, &binary)) fail_msg("%s", error.text.s);
    assert_true(binary.n > 0);
    clb_text_free(&binary);
    ir_free(&k);
  }
  close_target(d, &error);
}

/* ---- the channel-wise products that the literature measures ---- */

enum { PRODUCTS = 12, PASSES = 3 }; /* the first of `standard` */

typedef struct {
  clb_problem problem;
  clb_schedule schedule;
  ir_kernel k;
} product;

static clb_context *open_context(const char *target) {
  clb_error_sink error = {0};
  clb_context *ctx = NULL;
  close_target(open_target(target, &error), &error);
  if (clb_context_create(target, &ctx)) fail_msg("%s", clb_error(ctx));
  return ctx;
}

/* Frees k. */
static void lower_product(clb_context *ctx, int i, clb_pass pass, product *p) {
  static clb_instructions found;
  char error[200] = "";
  memset(p, 0, sizeof *p);
  if (clb_channel_wise(ctx, standard[i].x, standard[i].y, standard[i].filter, CLB_SORTED, &found))
    fail_msg("%s", clb_error(ctx));
  const clb_tensor_product_desc desc = {.irreps_x = found.irreps_x,
                                        .irreps_y = found.irreps_y,
                                        .irreps_z = found.irreps_z,
                                        .instructions = found.instructions,
                                        .n_instructions = found.n_instructions,
                                        .layout_x = CLB_IR_MUL,
                                        .layout_y = CLB_IR_MUL,
                                        .layout_z = CLB_IR_MUL};
  p->problem = (clb_problem){
      .kind = CLB_TENSOR_PRODUCT, .pass = (int32_t)pass, .storage = CLB_F32, .arithmetic = CLB_F32};
  if (clb_tensor_product_read(&desc, &p->problem.tensor_product, &ctx->error))
    fail_msg("%s", clb_error(ctx));
  clb_kernel_kinds[CLB_TENSOR_PRODUCT]->schedule(&p->problem, &ctx->device->limits, &p->schedule);
  clb_kernel_kinds[CLB_TENSOR_PRODUCT]->lower(&p->problem, &p->schedule, &p->k);
  if (p->k.error[0] || !ir_verify(&p->k, error, sizeof error))
    fail_msg("%s, pass %d: %s%s", standard[i].name, (int)pass, p->k.error, error);
}

static int up_to(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

static int non_zeros(const clb_tensor_product_problem *tp, const clb_path *q) {
  static double symbol[MAX_M * MAX_M * MAX_M];
  static clb_entry entries[MAX_M * MAX_M * MAX_M];
  return clb_form_entries(tp, q, symbol, entries);
}

/* The field's convention: per channel, 3 a non-zero and 1 a component of z forward, 9 a non-zero
   backward.  Lanes without a channel work too. */
static double usual_flops(const product *p) {
  const clb_tensor_product_problem *tp = &p->problem.tensor_product;
  const clb_product_settings *s = &p->schedule.product;
  int step = s->variant == CLB_VARIANT_CHANNEL_WISE ? p->schedule.lanes : s->lanes_per_row;
  double flops = 0;
  for (const clb_path *q = tp->path; q < tp->path + tp->n_paths; q++)
    flops +=
        up_to(tp->z.term[q->out].mul, step) *
        (p->problem.pass == CLB_FORWARD ? 3.0 * non_zeros(tp, q) + clb_width(&tp->z.term[q->out])
                                        : 9.0 * non_zeros(tp, q));
  return flops;
}

/* Loads beyond the first of an element, from cache: each of the sub-groups that share a row has y;
   and where results are made one by one, each path reads its x and y, whose elements are every
   lane's own where lanes hold several rows. */
static int loads_again(const product *p) {
  const clb_tensor_product_problem *tp = &p->problem.tensor_product;
  const clb_product_settings *s = &p->schedule.product;
  const int lanes = p->schedule.lanes;
  if (s->variant == CLB_VARIANT_CHANNEL_WISE)
    return s->subgroups_per_row > 1 ? (s->subgroups_per_row - 1) * tp->y.dim *
                                          (p->problem.pass == CLB_DOUBLE_BACKWARD ? 2 : 1)
                                    : 0;
  int loads = -tp->x.dim - tp->y.dim;
  for (const clb_path *q = tp->path; q < tp->path + tp->n_paths; q++) {
    const clb_term *x = &tp->x.term[q->in1];
    loads += x->mul * clb_width(x) +
             clb_width(&tp->y.term[q->in2]) *
                 (s->lanes_per_row < lanes ? x->mul : up_to(x->mul, lanes) / lanes);
  }
  return loads;
}

/* The programs: results are stored exactly once, operands loaded once but for the above and 10 %,
   and products shared, so that flops stay below the convention. */
static void products_count(void **state) {
  static product p;
  clb_context *ctx = open_context(*state);
  for (int i = 0; i < PRODUCTS * PASSES; i++) {
    const clb_tensor_product_problem *tp = &p.problem.tensor_product;
    clb_pass pass = (clb_pass)(i % PASSES);
    lower_product(ctx, i / PASSES, pass, &p);
    ir_counts c = ir_count(&p.k);
    int like_x = tp->x.dim + tp->y.dim + tp->n_weights, z = tp->z.dim;
    int in = pass == CLB_FORWARD ? like_x : pass == CLB_BACKWARD ? like_x + z : 2 * like_x + z;
    int out = pass == CLB_FORWARD ? z : pass == CLB_BACKWARD ? like_x : like_x + z;
    double max = 1.1 * in + loads_again(&p),
           flops = pass == CLB_DOUBLE_BACKWARD ? HUGE_VAL : 1.1 * usual_flops(&p);
    if (c.loads < in || c.loads > max || c.stores != out || c.bytes_loaded != 4 * c.loads ||
        c.bytes_stored != 4 * c.stores || c.flops > flops)
      fail_msg("%s, %s, pass %d: %g loads, not %d ... %g; %g stores, not %d; %g flops, at most %g",
               (const char *)*state, standard[i / PASSES].name, (int)pass, c.loads, in, max,
               c.stores, out, c.flops, flops);
    ir_free(&p.k);
  }
  clb_context_destroy(&ctx);
}

/* Elements that the list's accesses of global memory name; false: loops repeat them. */
static bool elements(const ir_kernel *k, int *loads, int *stores) {
  *loads = *stores = 0;
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    if (i->op == IR_LOOP) return false;
    if ((i->op == IR_LOAD || i->op == IR_STORE) && k->ins[i->arg[0]].op == IR_BUFFER)
      *(i->op == IR_LOAD ? loads : stores) += i->width;
  }
  return true;
}

/* Only some, so that a minute is enough: all for Intel, first derivatives for one target of NVIDIA
   and one of AMD, the small ones everywhere. */
static bool chosen(const char *target, const product *p) {
  int z = p->problem.tensor_product.z.dim;
  bool first =
      p->problem.pass == CLB_BACKWARD && (strstr(target, "sm_90") || strstr(target, "gfx942"));
  return z <= 1500 || (first && z < 10000) || strstr(target, "pvc");
}

/* The most bytes that are known to be spilled. */
static int may_spill(const char *target, const char *name, clb_pass pass) {
  if (strstr(target, "pvc") && strstr(name, "-main") && pass == CLB_FORWARD) return 4096;
  return !strncmp(target, "hip", 3) && !strcmp(name, "sevennet-main") && pass == CLB_BACKWARD ? 64
                                                                                              : 0;
}

/* The machine code: it moves what the program says, and nothing is spilled. */
static void products_compile(void **state) {
#ifdef __SANITIZE_ADDRESS__
  print_message(
      "the sanitizers see nothing of the vendors' compilers: products are compiled without them\n");
  skip();
#endif
  static product p;
  const char *target = *state;
  clb_context *ctx = open_context(target);
  answer all = YES;
  for (int i = 0; i < PRODUCTS * PASSES; i++) {
    const char *name = standard[i / PASSES].name;
    clb_pass pass = (clb_pass)(i % PASSES);
    int n_loads, n_stores;
    lower_product(ctx, i / PASSES, pass, &p);
    if (chosen(target, &p)) {
      clb_report r = compiled(ctx->device, &p.k);
      bool straight = elements(&p.k, &n_loads, &n_stores);
      if (r.spill_bytes > may_spill(target, name, pass))
        fail_msg("%s, %s, pass %d: %d bytes spilled", target, name, (int)pass, r.spill_bytes);
      bool argument = !strncmp(target, "hip", 3) &&
                      r.loads == n_loads + 2; /* an argument of 8 bytes, read after a branch, looks
                                                 like elements in AMD's listing */
      if (straight && r.loads >= 0 && (r.stores != n_stores || (r.loads != n_loads && !argument)))
        fail_msg("%s, %s, pass %d: %d loads and %d stores; the program has %d and %d", target, name,
                 (int)pass, r.loads, r.stores, n_loads, n_stores);
      if (straight && !fuses(&r, &p.k))
        fail_msg("%s, %s, pass %d: %d fused multiply-adds", target, name, (int)pass, r.fmas);
      if (r.loads < 0 || r.spill_bytes < 0) all = UNKNOWN;
    }
    ir_free(&p.k);
  }
  clb_context_destroy(&ctx);
  skip_unknown(target, all);
}

/* ---- NVIDIA: aligned loads ---- */

/* Loads of global memory of 8 or 16 bytes each in the code of a cubin; as report.c reads it. */
static int wide_loads(const clb_text *cubin, int bytes) {
  Elf64_Ehdr head;
  int n = 0;
  memcpy(&head, cubin->s, sizeof head);
  for (int i = 0; i < head.e_shnum; i++) {
    Elf64_Shdr section;
    memcpy(&section, cubin->s + head.e_shoff + (size_t)i * sizeof section, sizeof section);
    for (size_t at = 0; section.sh_flags & SHF_EXECINSTR && at + 16 <= section.sh_size; at += 16) {
      uint64_t word[2];
      memcpy(word, cubin->s + section.sh_offset + at, sizeof word);
      n += (word[0] & 0x1ff) == 0x181 && (word[1] >> 9 & 7) == (bytes == 16 ? 6 : 5); /* LDG */
    }
  }
  return n;
}

static void aligned_loads(void **state) {
  static const struct {
    ir_type element;
    int width;
  } cases[] = {{IR_F32, 2}, {IR_F32, 4}, {IR_F64, 2}, {IR_I32, 4},
               {IR_I64, 2}, {IR_F16, 4}, {IR_F16, 8}, {IR_BF16, 8}};
  clb_error_sink error = {0};
  clb_device *d = open_target(*state, &error);
  for (int c = 0; c < (int)(sizeof cases / sizeof *cases) * 4; c++) {
    ir_type element = cases[c / 4].element;
    bool aligned = c % 4 / 2, masked = c % 2;
    int width = cases[c / 4].width, bytes = width * ir_type_bytes(element), n;
    clb_text binary = {0};
    ir_kernel k;
    ir_val v[8];
    ir_begin(&k, "loads", 32, 1, 32);
    ir_val x = ir_buffer(&k, element, false), y = ir_buffer(&k, element, true),
           at = ir_mul(&k, ir_lane(&k), ir_int(&k, IR_I32, width));
    (aligned ? ir_load_aligned : ir_load_wide)(
        &k, x, at, masked ? ir_2(&k, IR_LT, ir_lane(&k), ir_int(&k, IR_I32, 9)) : IR_NONE, width,
        v);
    for (int j = 1; j < width; j++) v[0] = ir_add(&k, v[0], v[j]);
    ir_store(&k, y, ir_lane(&k), IR_NONE, v[0]);
    if (!ir_finish(&k)) fail_msg("%s", k.error);
    if (build_kernel(d, &k, &binary)) fail_msg("%s", error.text.s);
    if ((n = wide_loads(&binary, bytes)) != aligned)
      fail_msg("%d of %s%s%s: %d loads of %d bytes", width, ir_type_name(element),
               aligned ? ", aligned" : "", masked ? ", masked" : "", n, bytes);
    clb_text_free(&binary);
    ir_free(&k);
  }
  close_target(d, &error);
}

#define ONE(function, target)                                                                      \
  { #function ":" target, function, NULL, NULL, (void *)(uintptr_t)target }
#define ALL(target)                                                                                \
  ONE(counts_agree, target), ONE(mutants_fail, target), ONE(reports_agree, target),                \
      ONE(all_build, target), ONE(products_count, target), ONE(products_compile, target)

int main(void) {
  const struct CMUnitTest tests[] = {ALL("hip@gfx90a"),  ALL("hip@gfx942"),
                                     ALL("hip@gfx1100"), ALL("level_zero@pvc"),
                                     ALL("cuda@sm_90"),  ONE(aligned_loads, "cuda@sm_90")};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
