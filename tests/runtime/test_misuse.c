/* tests/runtime/test_misuse.c - the calls of clebsch.h with arguments that no sane program gives,
   on the CPU. */
#include "tests/runtime/misuse.h"

static void each_entry(const clb_profile_entry *entry, void *user) { (void)entry, (void)user; }

/* ---- contexts ---- */

static void adopt_nothing(void **state) {
  (void)state;
  static const struct {
    const char *device;
    bool native;
  } all[] = {{NULL, false}, {"cpu", false}, {"", true}, {"cpu", true}};
  NULL_REFUSED(clb_context_adopt("cpu", NULL, NULL));
  REFUSED(clb_buffer_create(t.ctx, 8, NULL)); /* is older than what follows */
  NULL_REFUSED(clb_context_create("cpu", NULL));
  NULL_REFUSED(clb_devices(NULL, NULL));
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    clb_context *c = NULL;
    clb_native none = {0};
    if (!clb_context_adopt(all[i].device, all[i].native ? &none : NULL, &c)) fail_msg("%zu", i);
    assert_true(!c && strlen(clb_error(c)) > 15);
  }
}

/* Without a context, and with what is left of one that did not open. */
static void no_context(void **state) {
  (void)state;
  clb_device_info info;
  double d[3];
  clb_tensor_product_sizes sizes;
  clb_weight_slice slice;
  clb_instructions list;
  unsigned char mask[100];
  for (int k = 0; k < 2; k++) {
    clb_context *c = NULL;
    if (k) assert_int_equal(clb_context_create("nosuch", &c), CLB_ERROR_DEVICE);
    NULL_REFUSED(clb_context_device(c, &info));
    NULL_REFUSED(clb_wait(c));
    NULL_REFUSED(clb_measure_peaks(c, &d[0], &d[1], &d[2]));
    NULL_REFUSED(clb_profile_begin(c));
    NULL_REFUSED(clb_profile_end(c, each_entry, NULL));
    NULL_REFUSED(clb_record_begin(c));
    NULL_REFUSED(clb_record_end(c, &made.recording));
    NULL_REFUSED(clb_buffer_create(c, 8, &made.buffer));
    NULL_REFUSED(clb_buffer_wrap(c, CLB_POINTER, d, 8, &made.buffer));
    NULL_REFUSED(clb_wisdom_export(c, "/nonexistent/x"));
    NULL_REFUSED(clb_wisdom_import(c, "/nonexistent/x"));
    NULL_REFUSED(clb_wisdom_forget(c));
    NULL_REFUSED(clb_context_disable(c, 1));
    NULL_REFUSED(clb_spherical_harmonics_create(c, &t.sh_desc, &made.op));
    NULL_REFUSED(clb_tensor_product_create(c, &t.tp_desc, &made.op));
    NULL_REFUSED(clb_convolution_create(c, &t.cv_desc, &made.op));
    NULL_REFUSED(clb_tensor_product_measure(c, &t.tp_desc, &sizes));
    NULL_REFUSED(clb_tensor_product_weights(c, &t.tp_desc, 0, &slice));
    NULL_REFUSED(clb_tensor_product_mask(c, &t.tp_desc, mask, 16));
    NULL_REFUSED(clb_channel_wise(c, "1x0e", "0e", "0e", CLB_SORTED, &list));
    NULL_REFUSED(clb_fully_connected(c, "0e", "0e", "0e", &list));
    NULL_REFUSED(clb_full(c, "0e", "0e", "", &list));
    NULL_REFUSED(clb_elementwise(c, "0e", "0e", "", &list));
    NULL_REFUSED(clb_graph_create(c, 1, 1, &made.graph));
    NULL_REFUSED(clb_model_open(c, "/nonexistent", NULL, &made.model));
  }
}

static void contexts(void **state) {
  (void)state;
  REFUSED(clb_context_device(t.ctx, NULL));
  REFUSED(clb_measure_peaks(t.ctx, NULL, NULL, NULL));
  REFUSED(clb_context_disable(t.ctx, ~0u));
  REFUSED(clb_wisdom_export(t.ctx, NULL));
  REFUSED(clb_wisdom_import(t.ctx, NULL));
  static const char *const paths[] = {"/nonexistent/x", "/dev/zero", "/tmp", ""};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    if (i != 1) REFUSED_AS(paths[i], clb_wisdom_export(t.ctx, paths[i]));
    REFUSED_AS(paths[i], clb_wisdom_import(t.ctx, paths[i]));
  }
  DONE(clb_profile_end(t.ctx, each_entry, NULL)); /* of nothing */
  DONE(clb_profile_end(t.ctx, NULL, NULL));
  DONE(clb_profile_begin(t.ctx));
  DONE(clb_profile_begin(t.ctx));
  DONE(clb_profile_end(t.ctx, NULL, NULL));
  clb_context_destroy(NULL);
  clb_buffer_destroy(NULL);
  clb_op_destroy(NULL);
  clb_graph_destroy(NULL);
  clb_recording_destroy(NULL);
  assert_string_equal(clb_status_text((clb_status)-5), "no such status");
}

/* ---- recordings ---- */

static void recordings(void **state) {
  (void)state;
  double d[3];
  NULL_REFUSED(clb_replay(NULL));
  NULL_REFUSED(clb_recording_replace(NULL, t.b, t.b));
  REFUSED(clb_recording_replace(t.recording, NULL, t.b));
  REFUSED(clb_recording_replace(t.recording, t.b, NULL));
  REFUSED(clb_recording_replace(t.recording, t.b, t.small));
  REFUSED(clb_recording_replace(t.recording, t.small, t.b));
  REFUSED(clb_recording_replace(t.recording, t.b, t.foreign));
  REFUSED(clb_record_end(t.ctx, &made.recording));
  DONE(clb_record_begin(t.ctx));
  REFUSED(clb_record_end(t.ctx, NULL));
  DONE(clb_record_begin(t.ctx));
  REFUSED(clb_record_begin(t.ctx));
  REFUSED(clb_spherical_harmonics_create(t.ctx, &t.sh_desc, &made.op));
  REFUSED(clb_graph_create(t.ctx, 1, 1, &made.graph));
  REFUSED(clb_measure_peaks(t.ctx, &d[0], &d[1], &d[2]));
  REFUSED(clb_buffer_write(t.b, 0, d, 8));
  REFUSED(clb_buffer_read(t.b, 0, d, 8));
  REFUSED(clb_wait(t.ctx));
  REFUSED(clb_record_end(t.ctx, &made.recording));
  DONE(clb_replay(t.recording));
}

/* ---- buffers ---- */

static void buffers(void **state) {
  (void)state;
  double d = 0;
  const uint64_t max = UINT64_MAX, bytes = t.b->memory.bytes;
  REFUSED(clb_buffer_create(t.ctx, 8, NULL));
  REFUSED(clb_buffer_create(t.ctx, max, &made.buffer));
  REFUSED(clb_buffer_create(t.ctx, 1ull << 62, &made.buffer));
  DONE(clb_buffer_create(t.ctx, 0, &made.buffer));
  REFUSED(clb_buffer_wrap(t.ctx, CLB_POINTER, NULL, 8, &made.buffer));
  REFUSED(clb_buffer_wrap(t.ctx, CLB_POINTER, &d, 8, NULL));
  REFUSED(clb_buffer_wrap(t.ctx, CLB_CL_MEM, &d, 8, &made.buffer));
  REFUSED(clb_buffer_wrap(t.ctx, (clb_memory_kind)77, &d, 8, &made.buffer));
  DONE(clb_buffer_wrap(t.ctx, CLB_POINTER, &d, 0, &made.buffer));
  NULL_REFUSED(clb_buffer_write(NULL, 0, &d, 8));
  REFUSED(clb_buffer_write(t.b, 0, NULL, 8));
  REFUSED(clb_buffer_write(t.b, max, &d, 8));
  REFUSED(clb_buffer_write(t.b, 8, &d, max - 3));
  REFUSED(clb_buffer_write(t.small, 0, &d, 8));
  DONE(clb_buffer_write(t.b, 0, NULL, 0));
  NULL_REFUSED(clb_buffer_read(NULL, 0, &d, 8));
  REFUSED(clb_buffer_read(t.b, 0, NULL, 8));
  REFUSED(clb_buffer_read(t.b, bytes, &d, 1));
  REFUSED(clb_buffer_read(t.b, 8, &d, max - 3));
}

/* ---- queries of ops ---- */

static void questions(void **state) {
  (void)state;
  clb_counts counts;
  clb_report report;
  clb_tuning tuning;
  const char *source;
  size_t bytes;
  NULL_REFUSED(clb_op_counts(NULL, CLB_FORWARD, &counts));
  NULL_REFUSED(clb_op_report(NULL, CLB_FORWARD, &report));
  NULL_REFUSED(clb_op_source(NULL, CLB_FORWARD, &source, &bytes));
  NULL_REFUSED(clb_op_tuning(NULL, CLB_FORWARD, &tuning));
  REFUSED(clb_op_counts(t.sh, CLB_FORWARD, NULL));
  REFUSED(clb_op_report(t.sh, CLB_FORWARD, NULL));
  REFUSED(clb_op_source(t.sh, CLB_FORWARD, NULL, &bytes));
  REFUSED(clb_op_source(t.sh, CLB_FORWARD, &source, NULL));
  REFUSED(clb_op_tuning(t.sh, CLB_FORWARD, NULL));
  static const int passes[] = {-1, -3, 3, 5, 9, 77, INT_MAX, INT_MIN};
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    const clb_pass pass = (clb_pass)passes[i];
    REFUSED(clb_op_counts(t.sh, pass, &counts));
    REFUSED(clb_op_report(t.sh, pass, &report));
    REFUSED(clb_op_source(t.sh, pass, &source, &bytes));
    REFUSED(clb_op_tuning(t.sh, pass, &tuning));
  }
}

/* ---- rows ---- */

/* The calls with q as one of the operands. */
enum { SH_X, SH_Y, TP_X, TP_W, TP_G_W, CV_X, CV_Z, OPERANDS };
static clb_status call_with(int operand, clb_rows q) {
  const clb_rows x = t.x, y = t.y;
  switch (operand) {
    case SH_X: return clb_spherical_harmonics_forward(t.sh, 10, q, y);
    case SH_Y: return clb_spherical_harmonics_forward(t.sh, 10, x, q);
    case TP_X: return clb_tensor_product_forward(t.tp, 10, q, x, x, y);
    case TP_W: return clb_tensor_product_forward(t.tp, 10, x, x, q, y);
    case TP_G_W: return clb_tensor_product_backward(t.tp, 10, x, x, x, x, y, y, q);
    case CV_X: return clb_convolution_forward(t.cv, t.graph, q, x, x, y, t.b);
    default: return clb_convolution_forward(t.cv, t.graph, x, x, x, q, t.b);
  }
}

static void rows(void **state) {
  (void)state;
  const clb_rows bad[] = {{0},
                          {t.small, 0, CLB_DENSE, NULL},
                          {t.foreign, 0, CLB_DENSE, NULL},
                          {t.b, -1, CLB_DENSE, NULL},
                          {t.b, 0, -2, NULL},
                          {t.b, INT64_MAX, CLB_DENSE, NULL},
                          {t.b, 0, INT64_MAX, NULL},
                          {t.b, 0, CLB_DENSE, t.b}};
  for (int operand = 0; operand < OPERANDS; operand++) {
    const bool input = operand == SH_X || operand == TP_X || operand == TP_W || operand == CV_X;
    const clb_rows same = {t.b, 0, CLB_SAME_ROW, NULL};
    char what[60];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
      snprintf(what, sizeof what, "operand %d, bad rows %zu", operand, i);
      REFUSED_AS(what, call_with(operand, bad[i]));
    }
    snprintf(what, sizeof what, "operand %d, CLB_SAME_ROW", operand);
    if (input) DONE_AS(what, call_with(operand, same));
    else REFUSED_AS(what, call_with(operand, same));
  }
}

static void numbers_of_rows(void **state) {
  (void)state;
  const clb_rows x = t.x, y = t.y, same = {t.b, 0, CLB_SAME_ROW, NULL};
  REFUSED(clb_spherical_harmonics_forward(t.sh, -1, x, y));
  REFUSED(clb_spherical_harmonics_forward(t.sh, INT64_MAX, x, y));
  REFUSED(clb_spherical_harmonics_forward(t.sh, 1ll << 61, x, y));
  REFUSED(clb_spherical_harmonics_forward(t.sh, 1ll << 62, same, y));
  DONE(clb_spherical_harmonics_forward(t.sh, 0, x, y));
  NULL_REFUSED(clb_spherical_harmonics_forward(NULL, 1, x, y));
  REFUSED(clb_spherical_harmonics_forward(t.tp, 1, x, y));
  REFUSED(clb_tensor_product_forward(t.sh, 1, x, x, x, y));
  REFUSED(clb_convolution_forward(t.tp, t.graph, x, x, x, y, t.b));
  REFUSED(clb_tensor_product_triple_backward(t.tp, 1, NULL));
  REFUSED(clb_tensor_product_triple_backward(t.tp, 1, &(clb_triple_operands){0}));
  REFUSED(clb_convolution_forward(t.cv, NULL, x, x, x, y, t.b));
  REFUSED(clb_convolution_backward(t.cv, t.graph, x, x, x, x, y, y, y, NULL));
  REFUSED(clb_convolution_backward(t.cv, t.graph, x, x, x, x, y, y, y, t.small));
  REFUSED(clb_convolution_backward(t.cv, t.graph, x, x, x, x, y, y, y, t.foreign));
}

/* ---- graphs ---- */

static clb_status update(int64_t n, int64_t edges, clb_index_list senders,
                         clb_index_list receivers) {
  return clb_graph_update(t.graph, n, n, edges, CLB_I32, senders, receivers);
}

static void graphs(void **state) {
  (void)state;
  const clb_index_list s = t.senders, r = t.receivers;
  clb_sorted_edges sorted;
  clb_buffer *list;
  static const int64_t bad_counts[] = {-1, INT64_MAX, INT64_MIN, 1ll << 31};
  for (size_t i = 0; i < sizeof bad_counts / sizeof *bad_counts; i++) {
    const int64_t n = bad_counts[i];
    REFUSED(clb_graph_create(t.ctx, n, 1, &made.graph));
    REFUSED(clb_graph_create(t.ctx, 1, n, &made.graph));
    REFUSED(update(n, 1, s, r));
    REFUSED(update(RECEIVERS, n, s, r));
  }
  REFUSED(clb_graph_create(t.ctx, 1, 1, NULL));
  NULL_REFUSED(clb_graph_update(NULL, 1, 1, 1, CLB_I32, s, r));
  REFUSED(update(1, EDGES, s, r));
  REFUSED(clb_graph_update(t.graph, 3, 3, EDGES, (clb_index_type)7, s, r));
  REFUSED(update(3, EDGES, (clb_index_list){0}, r));
  REFUSED(update(3, EDGES, (clb_index_list){.host = edge_senders, .buffer = t.b}, r));
  REFUSED(update(3, EDGES, (clb_index_list){.buffer = t.b, .offset = -5}, r));
  REFUSED(update(3, EDGES, (clb_index_list){.buffer = t.b, .offset = INT64_MAX / 2}, r));
  REFUSED(update(3, EDGES, (clb_index_list){.buffer = t.foreign}, r));
  REFUSED(update(3, EDGES, (clb_index_list){.buffer = t.small}, r));
  REFUSED(update(3, EDGES, (clb_index_list){.host = edge_senders, .offset = -1}, r));
  static const int64_t wide[EDGES] = {0, 1, 1ll << 40, -1};
  const clb_index_list w = {.host = wide};
  REFUSED(clb_graph_update(t.graph, 3, 3, EDGES, CLB_I64, w, w));
  NULL_REFUSED(clb_graph_sorted(NULL, CLB_BY_RECEIVER, &sorted));
  REFUSED(clb_graph_sorted(t.graph, (clb_graph_order)5, &sorted));
  REFUSED(clb_graph_sorted(t.graph, CLB_BY_RECEIVER, NULL));
  NULL_REFUSED(clb_graph_lists(NULL, &list, &list));
  REFUSED(clb_graph_lists(t.graph, NULL, NULL));
  DONE(update(3, EDGES, s, r));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adopt_nothing),   cmocka_unit_test(no_context), cmocka_unit_test(contexts),
      cmocka_unit_test(recordings),      cmocka_unit_test(buffers),    cmocka_unit_test(questions),
      cmocka_unit_test(numbers_of_rows), cmocka_unit_test(rows),       cmocka_unit_test(graphs)};
  t.device = "cpu:interpreter";
  const int failed = cmocka_run_group_tests_name(t.device, tests, make_all, destroy_all);
  t.device = "cpu";
  return failed + cmocka_run_group_tests_name(t.device, tests, make_all, destroy_all);
}
