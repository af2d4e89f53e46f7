/* tests/models/test_network.c - lists of layers: their order, the memory that arrays share, what is
   pruned. */
#include "models/blocks.h"
#include "models/layers/kinds.h"
#include "models/passes/passes.h"
#include "models/read.h"
#include "tests/models/model_places.h"

enum { MOST = 256 };

/* ---- what the steps of a model do ---- */

/* What a slot holds: 2 * array, + 1 for a gradient; -1: nothing that may be read. And which layers'
   terms of a gradient are there. */
static int holds[2 * MOST];
static bool term[MOST][MOST];
static int terms_used[MOST][MOST];

static const clb_stored *stored(const clb_network *n, int what) {
  return &n->array[what / 2]->stored[what % 2 ? CLB_GRADIENT : CLB_VALUE];
}

static void must_hold(const clb_network *n, const clb_step *s, int what) {
  const int slot = stored(n, what)->slot;
  if (slot < 0 || holds[slot] != what)
    fail_msg("%s, %s: %s of array %d is gone", n->layer[s->layer]->name,
             s->sweep == CLB_SWEEP_BACKWARD ? "backward" : "forward",
             what % 2 ? "gradient" : "value", what / 2);
}

static void put(const clb_network *n, const clb_step *s, int what, bool adds) {
  if (adds) must_hold(n, s, what);
  assert_true(stored(n, what)->slot >= 0);
  holds[stored(n, what)->slot] = what;
}

static void step_forward(const clb_network *n, const clb_step *s) {
  const clb_layer *y = n->layer[s->layer];
  for (int i = 0; i < CLB_LAYER_INS; i++)
    if (y->in[i] >= 0) must_hold(n, s, 2 * y->in[i]);
  if (y->work >= 0) put(n, s, 2 * y->work, false);
  for (int i = 0; i < CLB_LAYER_OUTS; i++)
    if (y->out[i] >= 0) put(n, s, 2 * y->out[i], s->adds >> i & 1);
}

/* The terms that other layers have added since are used now. */
static void use_terms(const clb_network *n, int array) {
  for (int l = 0; l < n->n_layers; l++) {
    terms_used[array][l] += term[array][l];
    term[array][l] = false;
  }
}

static void step_backward(const clb_network *n, const clb_step *s) {
  const clb_layer *y = n->layer[s->layer];
  for (int i = 0; i < CLB_LAYER_INS; i++)
    if (y->in[i] >= 0 && y->kind->reads_in >> i & 1) must_hold(n, s, 2 * y->in[i]);
  for (int i = 0; i < CLB_LAYER_OUTS; i++) {
    if (y->out[i] < 0) continue;
    if (y->kind->reads_out >> i & 1) must_hold(n, s, 2 * y->out[i]);
    if (!n->array[y->out[i]]->has_gradient) continue;
    must_hold(n, s, 2 * y->out[i] + 1);
    if (!clb_in_place(y)) use_terms(n, y->out[i]);
  }
  if (y->work >= 0) put(n, s, 2 * y->work, false);
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    if (y->in[i] < 0 || !(y->gradients >> i & 1) || !n->array[y->in[i]]->has_gradient) continue;
    put(n, s, 2 * y->in[i] + 1, s->adds >> i & 1);
    for (int l = 0; l < n->n_layers && !(s->adds >> i & 1); l++)
      if (term[y->in[i]][l]) fail_msg("%s overwrites what %s gave", y->name, n->layer[l]->name);
    if (!clb_in_place(y)) term[y->in[i]][s->layer] = true;
  }
}

static bool has_gradient(const clb_network *n, const clb_layer *y) {
  bool some = y->kind->ends;
  for (int i = 0; i < CLB_LAYER_OUTS; i++)
    some |= y->out[i] >= 0 && n->array[y->out[i]]->has_gradient;
  return some;
}

/* Every layer by which there is a gradient has given its term once, or in pieces. */
static void must_be_complete(const clb_network *n) {
  use_terms(n, CLB_VECTORS);
  for (int l = 0; l < n->n_layers; l++) {
    for (int i = 0; i < CLB_LAYER_INS && !clb_in_place(n->layer[l]); i++) {
      const int in = n->layer[l]->in[i];
      if (!has_gradient(n, n->layer[l])) continue;
      if (in < 0 || !n->array[in]->has_gradient || !(n->layer[l]->gradients >> i & 1)) continue;
      const bool pieces = n->layer[l]->kind == &clb_edges_kind;
      if (pieces ? !terms_used[in][l] : terms_used[in][l] != 1)
        fail_msg("%s: %d terms of the gradient of array %d", n->layer[l]->name, terms_used[in][l],
                 in);
    }
  }
}

/* wanted: steps in which a layer runs forward again; -1: any number. */
static void check_steps(const clb_network *n, int wanted) {
  int again = 0;
  assert_true(n->n_arrays <= MOST && n->n_layers <= MOST);
  memset(holds, -1, sizeof holds);
  memset(term, 0, sizeof term);
  memset(terms_used, 0, sizeof terms_used);
  holds[n->array[CLB_VECTORS]->stored[CLB_VALUE].slot] = 2 * CLB_VECTORS;
  for (int s = 0; s < n->n_steps; s++) {
    again += n->step[s].sweep == CLB_SWEEP_FORWARD && s >= n->n_forward;
    (n->step[s].sweep == CLB_SWEEP_BACKWARD ? step_backward : step_forward)(n, &n->step[s]);
  }
  must_be_complete(n);
  assert_true(wanted < 0 || again == wanted);
}

/* No step reads what another has overwritten, and no term of a gradient is lost: on devices where
   convolutions run in frames, with tables, and without, in few launches and in little memory. */
static void steps(void **state) {
  /* Radial networks, and their values times a cutoff, of all blocks but the last. */
  static const int layers_again[MADE_MODELS] = {2, 2, 3, 1, 1 + 1};
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++)
    for (int i = 0; i < 4; i++) {
      opened o = open_made_as(
          "cpu:interpreter", i % 2 ? &device_limits[LIMITS_NVIDIA].limits : NULL, which,
          &(clb_model_options){.dtype = CLB_F64, .knots = i / 2 ? 16 : CLB_NO_KNOTS});
      check_steps(&o.model->net, i / 2 ? -1 : layers_again[which]);
      if (clb_blocks_order(o.model, false, false, true)) fail_msg("%s", clb_error(o.ctx));
      check_steps(&o.model->net, -1);
      close_model(&o);
    }
}

/* ---- made lists ---- */

static clb_error_sink error;

static clb_network read_made(int which) {
  char path[] = "/tmp/clebsch_made_XXXXXX";
  clb_network n;
  close(mkstemp(path));
  made_write(&made_models[which], path, NULL, NULL);
  if (clb_model_read(&error, path, 0, false, &n)) fail_msg("%s", error.text.s);
  unlink(path);
  return n;
}

static const clb_layer *named(const clb_network *n, const char *name) {
  for (int l = 0; l < n->n_layers; l++)
    if (!strcmp(n->layer[l]->name, name)) return n->layer[l];
  return NULL;
}

static void expect_irreps(const clb_network *n, const char *name, bool of_input,
                          const char *expected) {
  const clb_layer *y = named(n, name);
  clb_text text = {0};
  assert_non_null(y);
  clb_irreps_print(&n->array[of_input ? y->in[0] : y->out[0]]->irreps, &text);
  assert_string_equal(text.s, expected);
  clb_text_free(&text);
}

/* Only even scalars reach the energy, and what only the others need is dropped, block by block; a
   norm needs all. What depends on the species alone is a table. */
static void pruned(void **state) {
  (void)state;
  clb_network n = read_made(2);
  expect_irreps(&n, "readout", true, "4x0e");
  expect_irreps(&n, "layers.3.gate", true, "4x0e");
  expect_irreps(&n, "layers.3.convolution", false, "7x0e");
  expect_irreps(&n, "layers.3.convolution", true, "4x0e+3x1o");
  expect_irreps(&n, "layers.2.gate", false, "4x0e+3x1o");
  expect_irreps(&n, "layers.2.gate", true, "7x0e+3x1o");
  assert_int_equal(((const clb_linear *)named(&n, "layers.3.linear_2")->parameters)->n, 1);
  assert_null(named(&n, "embedding"));
  assert_null(named(&n, "layers.0.exchange"));
  assert_true(named(&n, "layers.0.linear_1")->kind == &clb_embedding_kind);
  assert_non_null(named(&n, "layers.1.exchange"));
  clb_network_free(&n);
  n = read_made(1);
  expect_irreps(&n, "layers.2.norm", true, "2x0o+4x0e");
  expect_irreps(&n, "layers.2.gate", false, "2x0o+4x0e");
  clb_network_free(&n);
}

/* Layers that cannot add must not have to. */
static void refused(void **state) {
  (void)state;
  clb_network n = read_made(2);
  clb_layer *y = (clb_layer *)named(&n, "layers.2.gate");
  const int out = y->out[0];
  y->out[0] = named(&n, "layers.1.gate")->out[0];
  assert_int_equal(clb_pass_order(&n), CLB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(error.text.s, "layers.2.gate cannot add to an array"));
  y->out[0] = out;
  clb_pass_moves(&n);
  assert_int_equal(clb_pass_order(&n), CLB_OK);
  y = (clb_layer *)named(&n, "layers.2.linear_1");
  y->in[0] = named(&n, "layers.1.gate")->in[0];
  assert_int_equal(clb_pass_order(&n), CLB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(error.text.s, "layers.1.gate cannot add to a gradient"));
  clb_network_free(&n);
  clb_text_free(&error.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(pruned),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
