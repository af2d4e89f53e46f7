/* tests/runtime/misuse.h - one of each object that the calls take, and how a misused call may end:
   refused with a message, nothing created, or done. */
#ifndef CLB_TESTS_RUNTIME_MISUSE_H
#define CLB_TESTS_RUNTIME_MISUSE_H

#include "tests/test.h"

#include <limits.h>
#include <math.h>

#include <clebsch/model.h>

#include "src/runtime/context.h"

enum { RECEIVERS = 3, EDGES = 4 };
static const int32_t edge_senders[EDGES] = {0, 1, 2, 1}, edge_receivers[EDGES] = {1, 0, 2, 2};

/* small: 4 bytes; foreign: of `other`. */
static struct {
  const char *device;
  clb_context *ctx, *other;
  clb_buffer *b, *small, *foreign;
  clb_op *sh, *tp, *cv;
  clb_graph *graph;
  clb_recording *recording;
  clb_instructions list;
  clb_spherical_harmonics_desc sh_desc;
  clb_tensor_product_desc tp_desc;
  clb_convolution_desc cv_desc;
  clb_rows x, y;
  clb_index_list senders, receivers;
} t;

/* What calls make. */
static struct {
  clb_buffer *buffer;
  clb_op *op;
  clb_graph *graph;
  clb_recording *recording;
  clb_model *model;
} made;

/* ---- how a call may end ---- */

static inline void begin_call(void) {
  if (t.ctx) clb_text_free(&t.ctx->error.text);
}

static inline void end_call(void) {
  clb_recording_destroy(&made.recording);
  clb_model_destroy(&made.model);
  clb_graph_destroy(&made.graph);
  clb_buffer_destroy(&made.buffer);
  clb_op_destroy(&made.op);
}

/* The message of a call whose handle is NULL: of that call, whatever has failed on a context. */
static inline bool names_null(const char *call, const char *said) {
  const char *end = strstr(said, " is NULL");
  return end && !end[strlen(" is NULL")] &&
         (!strncmp(said, call, strcspn(call, "(")) || strstr(said, "forward: op is"));
}

static inline void expect_refused(const char *call, clb_status s, bool says) {
  if (s != CLB_ERROR_ARGUMENT && s != CLB_ERROR_MEMORY && s != CLB_ERROR_UNSUPPORTED)
    fail_msg("%s: status %d: %s", call, (int)s, clb_error(t.ctx));
  if (says && (!t.ctx->error.text.s || t.ctx->error.text.n < 10))
    fail_msg("%s: no sentence: %s", call, clb_error(t.ctx));
  if (!says && !(names_null(call, clb_error(t.ctx)) && names_null(call, clb_error(NULL))))
    fail_msg("%s: another call's sentence: %s", call, clb_error(t.ctx));
  if (made.buffer || made.op || made.graph || made.recording || made.model)
    fail_msg("%s: refused, but something is made", call);
}

static inline void expect_done(const char *call, clb_status s) {
  if (s) fail_msg("%s: status %d: %s", call, (int)s, clb_error(t.ctx));
  end_call();
}

#define REFUSED_AS(what, call) (begin_call(), expect_refused(what, call, true))
#define DONE_AS(what, call) (begin_call(), expect_done(what, call))
#define REFUSED(call) REFUSED_AS(#call, call)
#define DONE(call) DONE_AS(#call, call)
/* Where no handle leads to a context. */
#define NULL_REFUSED(call) (begin_call(), expect_refused(#call, call, false))

/* ---- making and destroying ---- */

static inline void need(clb_status s) {
  if (s) fail_msg("%s", clb_error(t.ctx));
}

static inline void describe_ops(void) {
  static const int degrees[] = {0, 1, 2};
  const unsigned passes = CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD);
  t.sh_desc = (clb_spherical_harmonics_desc){.degrees = degrees, .n_degrees = 3};
  need(clb_channel_wise(t.ctx, "4x0e+4x1o", "0e+1o", "0e+1o", CLB_SORTED, &t.list));
  t.tp_desc = (clb_tensor_product_desc){.irreps_x = t.list.irreps_x,
                                        .irreps_y = t.list.irreps_y,
                                        .irreps_z = t.list.irreps_z,
                                        .instructions = t.list.instructions,
                                        .n_instructions = t.list.n_instructions};
  t.sh_desc.passes = t.tp_desc.passes = passes;
  t.sh_desc.storage = t.sh_desc.arithmetic = t.tp_desc.storage = t.tp_desc.arithmetic = CLB_F32;
  t.cv_desc = (clb_convolution_desc){.product = t.tp_desc};
}

static inline void make_ops(void) {
  describe_ops();
  need(clb_spherical_harmonics_create(t.ctx, &t.sh_desc, &t.sh));
  need(clb_tensor_product_create(t.ctx, &t.tp_desc, &t.tp));
  need(clb_convolution_create(t.ctx, &t.cv_desc, &t.cv));
}

static inline void make_contexts(const char *device) {
  need(clb_context_create(device, &t.ctx));
  need(clb_context_create(device, &t.other));
  static const char zeros[1 << 16];
  need(clb_buffer_create(t.ctx, sizeof zeros, &t.b));
  need(clb_buffer_write(t.b, 0, zeros, sizeof zeros));
  need(clb_buffer_create(t.ctx, 4, &t.small));
  assert_int_equal(clb_buffer_create(t.other, 1 << 16, &t.foreign), CLB_OK);
}

static inline void make_recording(void) {
  need(clb_record_begin(t.ctx));
  need(clb_spherical_harmonics_forward(t.sh, 10, t.x, t.y));
  need(clb_record_end(t.ctx, &t.recording));
}

/* A setup of cmocka's, on t.device. */
static inline int make_all(void **state) {
  (void)state;
  make_contexts(t.device);
  make_ops();
  t.x = (clb_rows){t.b, 0, CLB_DENSE, NULL};
  t.y = (clb_rows){t.b, 4096, CLB_DENSE, NULL};
  t.senders = (clb_index_list){.host = edge_senders};
  t.receivers = (clb_index_list){.host = edge_receivers};
  need(clb_graph_create(t.ctx, 8, 16, &t.graph));
  need(clb_graph_update(t.graph, RECEIVERS, RECEIVERS, EDGES, CLB_I32, t.senders, t.receivers));
  make_recording();
  return 0;
}

static inline int destroy_all(void **state) {
  (void)state;
  end_call();
  clb_recording_destroy(&t.recording);
  clb_graph_destroy(&t.graph);
  clb_op **ops[] = {&t.sh, &t.tp, &t.cv};
  clb_buffer **buffers[] = {&t.b, &t.small, &t.foreign};
  clb_context **contexts[] = {&t.ctx, &t.other};
  for (int i = 0; i < 3; i++) clb_op_destroy(ops[i]);
  for (int i = 0; i < 3; i++) clb_buffer_destroy(buffers[i]);
  for (int i = 0; i < 2; i++) clb_context_destroy(contexts[i]);
  return 0;
}

#endif
