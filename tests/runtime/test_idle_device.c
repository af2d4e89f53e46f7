/* tests/runtime/test_idle_device.c - a device that accepts every launch and computes nothing:
   numbers read back from it, whatever its memory held, are never used as an index on the host. */
#include "tests/runtime/misuse.h"

static const clb_backend *genuine;
static clb_backend idle;
static uint32_t held; /* all memory */

static clb_status alloc_held(clb_device *d, uint64_t bytes, clb_memory *m) {
  const clb_status s = genuine->alloc(d, bytes, m);
  for (uint64_t i = 0; !s && i < bytes / 4; i++) ((uint32_t *)m->handle)[i] = held;
  if (!s) free(m->written), m->written = NULL; /* nothing is known of it */
  return s;
}

static clb_status compute_nothing(clb_device *d, clb_module *m, int64_t groups, const clb_arg *args,
                                  int n) {
  (void)d, (void)m, (void)groups, (void)args, (void)n;
  return CLB_OK;
}

static int open_idle(void **state) {
  (void)state;
  if (clb_context_create("cpu:interpreter", &t.ctx)) return 1;
  genuine = t.ctx->device->backend;
  idle = *genuine;
  idle.alloc = alloc_held;
  idle.launch = compute_nothing;
  t.ctx->device->backend = &idle;
  return 0;
}

static int close_idle(void **state) {
  t.ctx->device->backend = genuine;
  return destroy_all(state);
}

static void expect_broken(clb_status s, int64_t edge) {
  char words[60];
  snprintf(words, sizeof words, "cpu:interpreter says that edge %d of 4 is", (int)edge);
  if (s != CLB_ERROR_DRIVER || !strstr(clb_error(t.ctx), words))
    fail_msg("status %d: %s", (int)s, clb_error(t.ctx));
}

static void graphs(void **state) {
  (void)state;
  static const int64_t wide_senders[EDGES] = {0, 1, 2, 1}, wide_receivers[EDGES] = {1, 0, 2, 2};
  static const uint32_t all[] = {0, 1, 4, 5, 0x80000000, 0xffffffff, 0x7ffffffe, 0x40000000};
  const clb_index_list s = {.host = edge_senders}, r = {.host = edge_receivers};
  const clb_index_list ws = {.host = wide_senders}, wr = {.host = wide_receivers};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    held = all[i];
    need(clb_graph_create(t.ctx, 8, 16, &t.graph));
    expect_broken(clb_graph_update(t.graph, 3, 3, EDGES, CLB_I32, s, r), (int32_t)held);
    expect_broken(clb_graph_update(t.graph, 3, 3, EDGES, CLB_I64, ws, wr), (int32_t)held);
    clb_graph_destroy(&t.graph);
  }
}

/* Lists on the device: the node of a bad edge is read from them. */
static void lists_of_the_device(void **state) {
  (void)state;
  for (int edge = -1; edge < 6; edge++) {
    held = (uint32_t)edge;
    need(clb_graph_create(t.ctx, 8, 16, &t.graph));
    need(clb_buffer_create(t.ctx, EDGES * 4, &t.b));
    need(clb_buffer_write(t.b, 0, edge_senders, EDGES * 4));
    const clb_index_list l = {.buffer = t.b};
    const clb_status s = clb_graph_update(t.graph, 3, 3, EDGES, CLB_I32, l, l);
    if (edge < 0 || edge >= EDGES) expect_broken(s, edge);
    else assert_int_equal(s, CLB_ERROR_ARGUMENT);
    clb_buffer_destroy(&t.b);
    clb_graph_destroy(&t.graph);
  }
}

static void models(void **state) {
  (void)state;
  char path[400];
  double energy;
  static const int32_t species[2] = {0, 1};
  static const double places[6] = {0, 0, 0, 1, 0, 0};
  const clb_model_atoms atoms = {.n = 2, .species = species, .positions = places};
  clb_model *m;
  held = 0xffffffff;
  snprintf(path, sizeof path, "%s/strangers/tiny.safetensors", getenv("CLB_TEST_DATA"));
  need(clb_model_open(t.ctx, path, &(clb_model_options){.knots = CLB_NO_KNOTS}, &m));
  assert_int_equal(clb_model_compute(m, &atoms, &(clb_model_results){.energy = &energy}),
                   CLB_ERROR_DRIVER);
  clb_model_destroy(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(graphs), cmocka_unit_test(lists_of_the_device), cmocka_unit_test(models)};
  return cmocka_run_group_tests(tests, open_idle, close_idle);
}
