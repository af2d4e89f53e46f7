/* tests/ops/test_refusals.c - what the calls of each op refuse, in which words, and what they
   accept: every operand of every pass of small problems of `clebsch check`, one of each shape. */
#include "tests/ops/op_runs.h"

#include "src/runtime/context.h"

/* Numbers of an operand, at most; behind those of all is room for one in a wide stride. */
enum { SPACE = 4096, ROOM = (MAX_ARRAYS + 4) * SPACE, ROWS = 5 };

typedef struct {
  const tool_op *op;
  tool_kernel kernel;
  clb_context *ctx, *other;
  clb_buffer *zeros, *foreign, *tiny; /* of ROOM numbers; tiny: fewer than ROWS row numbers */
  clb_op *handle;
  test_run t;
  test_run_set set; /* of which only what is not rows is used */
  clb_rows rows[MAX_ARRAYS];
} subject;

static void create(subject *s, unsigned passes) {
  clb_op_destroy(&s->handle);
  s->handle = op_with(s->ctx, s->op, &s->kernel, passes);
}

/* Operands of zeros side by side. */
static void start_pass(subject *s, clb_pass pass) {
  const tool_data data = {.rows = ROWS};
  test_run_make(&s->t, s->op, &s->kernel, pass, &data, ROWS);
  OK(s->ctx, test_run_set_make(&s->t, s->ctx, s->handle, &s->set));
  for (int a = 0; a < s->t.n; a++) {
    const bool by_number = s->t.array[a].indexed || s->t.array[a].kinds;
    s->rows[a] = (clb_rows){0};
    if (s->t.array[a].width)
      s->rows[a] = (clb_rows){s->zeros, a * SPACE, CLB_DENSE, by_number ? s->zeros : NULL};
  }
}

static void end_pass(subject *s) {
  test_run_set_free(&s->t, &s->set);
  test_run_free(&s->t);
}

static clb_status run_on(const subject *s, clb_op *op) {
  return s->t.graph ? s->op->on_graph->run(op, s->t.pass, s->rows, s->set.at)
                    : s->op->run(op, s->t.pass, ROWS, s->rows);
}

static void describe(const subject *s, int a, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "%s ", s->op->name);
  print_kernel(s->op, &s->kernel, text + used, size - used);
  used = strlen(text);
  snprintf(text + used, size - used, ", pass %d, %s", (int)s->t.pass,
           a < 0 ? "" : s->t.array[a].name);
}

static void accepts(const subject *s, int a) {
  char text[1024];
  describe(s, a, text, sizeof text);
  if (run_on(s, s->handle)) fail_msg("%s: %s", text, clb_error(s->ctx));
}

static void refuses(const subject *s, int a, const char *words) {
  char text[1024];
  describe(s, a, text, sizeof text);
  if (run_on(s, s->handle) != CLB_ERROR_ARGUMENT || !strstr(clb_error(s->ctx), words))
    fail_msg("%s: \"%s\" lacks \"%s\"", text, clb_error(s->ctx), words);
}

/* Changes operand a, must then be refused in these words, and changes it back. */
#define REFUSES(change, ...)                                                                       \
  do {                                                                                             \
    char words[96];                                                                                \
    snprintf(words, sizeof words, __VA_ARGS__);                                                    \
    change;                                                                                        \
    refuses(s, a, words);                                                                          \
    *r = good;                                                                                     \
  } while (0)
#define ACCEPTS(change)                                                                            \
  do {                                                                                             \
    change;                                                                                        \
    accepts(s, a);                                                                                 \
    *r = good;                                                                                     \
  } while (0)

static bool is_one_row(const subject *s, int a) {
  return s->t.array[a].one_row || (s->t.graph && s->t.array[a].rows == 1);
}

/* An operand of rows, in any stride. */
static void rows_of(subject *s, int a) {
  const tool_array *is = &s->t.array[a];
  clb_rows *r = &s->rows[a], good = *r;
  const int w = is->width, n = is->indexed ? 1 : (int)is->rows, gap = w + 3;
  const int64_t last = ROOM - (int64_t)(n - 1) * gap - w;
  REFUSES(r->stride = -7, "the stride of %s is -7", is->name);
  ACCEPTS((r->stride = gap, r->offset = last));
  if (n > 1) REFUSES((r->stride = gap, r->offset = last + 1), "bytes of %s", is->name);
  if (n > 1) REFUSES(r->stride = INT64_MAX / 2, "bytes of %s", is->name);
  if (!is->output) {
    ACCEPTS((r->stride = CLB_SAME_ROW, r->offset = ROOM - w));
    return;
  }
  REFUSES(r->stride = CLB_SAME_ROW, "the stride of %s is -1", is->name);
  if (w > 1 && n > 1) REFUSES(r->stride = w - 1, "the stride of %s is %d", is->name, w - 1);
}

static void operand(subject *s, int a) {
  const tool_array *is = &s->t.array[a];
  clb_rows *r = &s->rows[a], good = *r;
  const int n = is->indexed ? 1 : (int)is->rows;
  REFUSES(r->buffer = NULL, "the buffer of %s is NULL", is->name);
  REFUSES(r->buffer = s->foreign, "the buffer of %s belongs to another context", is->name);
  REFUSES(r->offset = -1, "the offset of %s is -1", is->name);
  ACCEPTS(r->offset = ROOM - (int64_t)n * is->width);
  REFUSES(r->offset = ROOM - (int64_t)n * is->width + 1, "bytes of %s", is->name);
  if (!is_one_row(s, a)) REFUSES(r->offset = ROOM - (int64_t)n * is->width + 1, "%d rows of", n);
  if (is->indexed || is->kinds) {
    REFUSES(r->index = NULL, "the index of %s is NULL", is->name);
    REFUSES(r->index = s->foreign, "the index of %s belongs to another context", is->name);
    REFUSES(r->index = s->tiny, "row numbers of 4 bytes do not fit in the 19 bytes of the index");
  } else if (!is_one_row(s, a))
    REFUSES(r->index = s->zeros, "the index of %s must be NULL", is->name);
  if (!is_one_row(s, a)) rows_of(s, a);
  else if (signature_of(s->op) ==
           &clb_signature_tensor_product) /* its weights: whatever these are */
    ACCEPTS((r->stride = -7, r->index = s->foreign));
}

/* Operands that there are not are not looked at. */
static void operands(subject *s) {
  accepts(s, -1);
  for (int a = 0; a < s->t.n; a++)
    if (s->t.array[a].width && s->t.array[a].rows) operand(s, a);
    else {
      clb_rows *r = &s->rows[a], good = *r;
      ACCEPTS((*r = (clb_rows){.offset = -1, .stride = -7}));
    }
}

/* Which operands there are in all passes, and what they are like; 0: they are too large. */
static uint64_t shape_of(const subject *s) {
  const tool_data data = {.rows = ROWS};
  uint64_t shape = 1;
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    test_run t;
    if (!(s->op->passes >> pass & 1)) continue;
    test_run_make(&t, s->op, &s->kernel, (clb_pass)pass, &data, ROWS);
    for (int i = 0; i < t.n && shape; i++) {
      const tool_array *a = &t.array[i];
      const int width = a->width < 4 ? a->width : 4;
      shape = 31 * shape + (uint64_t)(width | a->one_row << 3 | a->indexed << 4 |
                                      (a->kinds > 0) << 5 | (a->rows == 1) << 6);
      if ((int64_t)a->width * (a->rows > ROWS ? a->rows : ROWS) > SPACE) shape = 0;
    }
    test_run_free(&t);
  }
  return shape;
}

static bool is_new(uint64_t shape, uint64_t *shapes, int *n) {
  for (int i = 0; i < *n; i++)
    if (shapes[i] == shape) return false;
  shapes[(*n)++] = shape;
  return true;
}

static subject subject_of(const tool_op *op) {
  static const char zeros[8 * ROOM];
  subject s = {.op = op};
  OK(s.ctx, clb_context_create("cpu:interpreter", &s.ctx));
  OK(s.other, clb_context_create("cpu:interpreter", &s.other));
  OK(s.ctx, clb_buffer_create(s.ctx, sizeof zeros, &s.zeros));
  OK(s.ctx, clb_buffer_write(s.zeros, 0, zeros, sizeof zeros));
  OK(s.ctx, clb_buffer_create(s.ctx, 4 * ROWS - 1, &s.tiny));
  OK(s.other, clb_buffer_create(s.other, sizeof zeros, &s.foreign));
  return s;
}

static void subject_free(subject *s) {
  clb_op_destroy(&s->handle);
  clb_buffer_destroy(&s->zeros);
  clb_buffer_destroy(&s->tiny);
  clb_buffer_destroy(&s->foreign);
  clb_context_destroy(&s->other);
  clb_context_destroy(&s->ctx);
}

static void each_operand(void **state) {
  subject s = subject_of(*state);
  uint64_t shapes[64];
  int n = 0;
  for (int k = 0; k < s.op->n_cases && n < 64; k++) {
    s.kernel = (tool_kernel){s.op->cases[k].kernel.problem, F64, false};
    const uint64_t shape = shape_of(&s);
    if (!shape || !is_new(shape, shapes, &n)) continue;
    create(&s, s.op->passes);
    for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
      if (!(s.op->passes >> pass & 1)) continue;
      start_pass(&s, (clb_pass)pass);
      operands(&s);
      end_pass(&s);
    }
  }
  assert_true(n > 0);
  subject_free(&s);
}

/* Of every set of gradients and of incoming ones. */
static void each_set(void **state) {
  subject s = subject_of(*state);
  char problem[sizeof(convolution_problem) + sizeof(tensor_problem)];
  const choices c = choices_of(s.op, problem);
  const unsigned all = CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z |
                       (signature_of(s.op)->n == 3 ? CLB_OPERAND_Y : 0);
  for (int set = 0; c.gradients && set < 15 * 7; set++) {
    const unsigned gradients = 1 + (unsigned)set / 7, incoming = 1 + (unsigned)set % 7,
                   passes = s.op->passes & ~(gradients == CLB_OPERAND_Z ? 2u : 0u);
    if ((gradients | incoming) & ~all) continue;
    memcpy(problem, s.op->cases[0].kernel.problem, c.bytes);
    *c.gradients = gradients, *c.incoming = incoming;
    s.kernel = (tool_kernel){problem, F64, false};
    create(&s, passes);
    for (int pass = CLB_BACKWARD; pass < PASSES; pass++) {
      if (!(passes >> pass & 1)) continue;
      start_pass(&s, (clb_pass)pass);
      for (int a = 0; a < s.t.n; a++) {
        clb_rows good = s.rows[a];
        s.rows[a] = (clb_rows){.offset = -1, .stride = -7};
        if (s.t.array[a].width && s.t.array[a].rows) refuses(&s, a, s.t.array[a].name);
        else accepts(&s, a);
        s.rows[a] = good;
      }
      end_pass(&s);
    }
  }
  subject_free(&s);
}

/* Another op, no op, passes that the op was created without; numbers of rows. */
static void handles(void **state) {
  static const char *const names[] = {"forward", "backward", "double backward", "triple backward"};
  subject s = subject_of(*state);
  const tool_op *other = tool_ops[s.op == tool_ops[0]];
  clb_op *op = NULL, *of_other = NULL;
  char words[128];
  s.kernel = (tool_kernel){s.op->cases[0].kernel.problem, F64, false};
  OK(s.ctx, other->create(s.ctx, &(tool_kernel){other->cases[0].kernel.problem, F64, false}, 7,
                          &of_other));
  for (int pass = CLB_FORWARD; pass < PASSES; pass++) {
    if (!(s.op->passes >> pass & 1)) continue;
    create(&s, s.op->passes);
    start_pass(&s, (clb_pass)pass);
    assert_int_equal(run_on(&s, NULL), CLB_ERROR_ARGUMENT);
    snprintf(words, sizeof words, "this op is %s, not %s", other->name, s.op->name);
    NOT_OK(s.ctx, CLB_ERROR_ARGUMENT, words, run_on(&s, of_other));
    if (!s.t.graph)
      NOT_OK(s.ctx, CLB_ERROR_ARGUMENT, "n is -1", s.op->run(s.handle, (clb_pass)pass, -1, s.rows));
    create(&s, s.op->passes & ~CLB_PASS_BIT(pass));
    snprintf(words, sizeof words, "without its %s pass", names[pass]);
    refuses(&s, -1, words);
    end_pass(&s);
  }
#define NOT_CREATED(status, words, context, arithmetic, passes)                                    \
  do {                                                                                             \
    op = s.handle;                                                                                 \
    NOT_OK(s.ctx, status, words,                                                                   \
           s.op->create(context, &(tool_kernel){s.kernel.problem, CLB_F64, arithmetic, false},     \
                        passes, &op));                                                             \
    assert_null(op);                                                                               \
  } while (0)
  NOT_CREATED(CLB_ERROR_ARGUMENT, "passes is 0", s.ctx, CLB_F64, 0);
  NOT_CREATED(CLB_ERROR_ARGUMENT, "passes is 0x10", s.ctx, CLB_F64, 16);
  NOT_CREATED(CLB_ERROR_ARGUMENT, "arithmetic", s.ctx, CLB_F32, 1);
  if (!(s.op->passes & 8)) NOT_CREATED(CLB_ERROR_UNSUPPORTED, "passes up to", s.ctx, CLB_F64, 15);
  assert_int_equal(s.op->create(NULL, &s.kernel, 1, &op), CLB_ERROR_ARGUMENT);
  clb_op_destroy(&of_other);
  subject_free(&s);
}

int main(void) {
  static const struct {
    const char *name;
    void (*run)(void **);
  } tests[] = {{"each_operand", each_operand}, {"each_set", each_set}, {"handles", handles}};
  static struct CMUnitTest all[3 * TOOL_OPS];
  static char labels[3 * TOOL_OPS][64];
  for (int i = 0; i < 3 * TOOL_OPS; i++) {
    snprintf(labels[i], sizeof labels[i], "%s of %s", tests[i % 3].name, tool_ops[i / 3]->name);
    all[i] = (struct CMUnitTest){labels[i], tests[i % 3].run, NULL, NULL, (void *)tool_ops[i / 3]};
  }
  return cmocka_run_group_tests_name("refusals", all, NULL, NULL);
}
