/* tests/edges/test_model_peers.c - rows of ghosts that are copied from where a peer has them: bits
   are those of rows that the host moves. A process is its own peer here, or two of them. */
#include "tests/edges/model_ghosts.h"

/* The ghosts' process with `out`, and the same memory as its peers have it open. Ghosts are both
   sent and received in their order: the first n of them to and from peer 0, then peer 1. */
typedef struct {
  ghost_set *g;
  clb_buffer *out, *seen;
  clb_model_peer peer[2];
  uint64_t half;
  int calls;
} peer_set;

/* Nothing but what this exchange has gathered may be read: the other half is spoilt. Halves take
   turns, which is seen from where the rows are that were not there before. */
static clb_status spoil_and_move(void *user, int backward, int64_t columns, clb_dtype type,
                                 const void *from, void *to) {
  peer_set *p = user;
  const size_t row = (size_t)columns * (type == CLB_F64 ? 8 : 4);
  const int64_t left = p->g->exchange.n_send - p->peer[0].n_send - p->peer[1].n_send;
  clb_memory_kind kind;
  void *at;
  (void)backward;
  assert_int_equal(clb_buffer_native(p->seen, &kind, &at), CLB_OK);
  memset((char *)at + (p->calls++ % 2 ? 0 : p->half), 0xff, p->half);
  memcpy(to, from, (size_t)left * row);
  return CLB_OK;
}

static void open_peers(peer_set *p, opened *o, ghost_set *g, int64_t first, int64_t second,
                       bool opened_once) {
  clb_ipc_handle handle;
  clb_model_info info;
  assert_int_equal(clb_model_describe(o->model, &info), CLB_OK);
  const uint64_t row = (uint64_t)info.exchange_columns * (o->model->type == CLB_F64 ? 8 : 4);
  const uint64_t bytes = 2 * ((uint64_t)g->exchange.n_send * row + 256);
  *p = (peer_set){.g = g, .half = bytes / 512 * 256};
  if (clb_buffer_create_ipc(o->ctx, bytes, &handle, &p->out)) fail_msg("%s", clb_error(o->ctx));
  if (clb_buffer_open_ipc(o->ctx, &handle, &p->seen)) fail_msg("%s", clb_error(o->ctx));
  p->peer[0] = (clb_model_peer){p->seen, first, first, 0, 0};
  p->peer[1] = (clb_model_peer){opened_once ? p->out : p->seen, second, second, first, first};
  g->exchange.n_peers = 2;
  g->exchange.peers = p->peer;
  g->exchange.out = p->out;
  g->exchange.move = spoil_and_move;
  g->exchange.user = p;
}

static void close_peers(peer_set *p) {
  clb_buffer_destroy(&p->seen);
  clb_buffer_destroy(&p->out);
}

static void expect_bits(const ghost_set *g, const ghost_result *r, const ghost_result *must) {
  assert_true(r->energy == must->energy);
  assert_memory_equal(r->virial, must->virial, sizeof r->virial);
  assert_memory_equal(r->e_atom, must->e_atom, sizeof(double) * (size_t)g->n);
  assert_memory_equal(r->v_atom, must->v_atom, sizeof(double) * 9 * (size_t)g->n);
  assert_memory_equal(r->forces, must->forces, sizeof(double) * 3 * (size_t)g->n_total);
}

/* Parts of the rows, in sixteenths; three steps, of which the last has atoms elsewhere. */
static void same_bits(const char *device, int which, clb_dtype type, int64_t block, int first,
                      int second) {
  const clb_model_options options = {.dtype = type, .knots = CLB_NO_KNOTS, .block_atoms = block};
  opened o = open_made(device, which, &options), other = open_made(device, which, &options);
  atom_set a = random_atoms(6, made_models[which].n_species, true, 11);
  clb_model_info info;
  assert_int_equal(clb_model_describe(o.model, &info), CLB_OK);
  ghost_set *g = ghosts_of(&a, info.r_max + 0.3), *plain = ghosts_of(&a, info.r_max + 0.3);
  const int64_t n = g->exchange.n_send;
  peer_set peers;
  open_peers(&peers, &o, g, n * first / 16, n * second / 16, first % 2);
  clb_model_edges call = call_of(g, false), must = call_of(plain, false);
  for (int step = 0; step < 3; step++) {
    for (int64_t i = 0; step == 2 && i < 3 * a.n; i++) a.positions[i] += 0.02 * (double)(i % 5 - 2);
    place(g, &a), place(plain, &a);
    ghost_result *r = compute(&o, &call), *wanted = compute(&other, &must);
    expect_bits(g, r, wanted);
    call.same_graph = must.same_graph = 1;
    free(r);
    free(wanted);
  }
  assert_int_equal(peers.calls, 3 * 2 * info.exchanges);
  close_model(&o); /* buffers may outlive the model, which knows their memory no more */
  close_peers(&peers);
  close_model(&other);
  free(plain);
  free(g);
}

static void bits(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) {
    same_bits("cpu:interpreter", which, CLB_F64, 0, 16, 0);
    same_bits("cpu:interpreter", which, CLB_F32, 0, 5, 7);
  }
  same_bits("cpu", 0, CLB_F32, 0, 9, 7);
  same_bits("cpu:threads=2", 1, CLB_F64, 0, 0, 3);
  same_bits("cpu:interpreter", 0, CLB_F64, 4, 8, 8); /* in blocks */
}

/* Lists change; a call without derivatives has half of the exchanges, which may be an odd number:
   halves take turns all the same, and rows of one call and the next never lie in one. */
static void changes(void **state) {
  (void)state;
  enum { WHICH = 2 };
  opened o = open_made("cpu:interpreter", WHICH, &f64);
  const atom_set a = random_atoms(6, made_models[WHICH].n_species, true, 12);
  ghost_set *g = ghosts_of(&a, 3.4);
  const clb_model_edges call = call_of(g, false);
  ghost_result *must = compute(&o, &call);
  clb_model_info info;
  peer_set peers;
  assert_int_equal(clb_model_describe(o.model, &info), CLB_OK);
  assert_true(info.exchanges % 2);
  open_peers(&peers, &o, g, 7, 4, true);
  for (int step = 0; step < 5; step++) {
    double energy = 0;
    const clb_model_edge_results want = {.energy = &energy};
    peers.calls = o.model->net.ghosts.half;
    if (clb_model_compute_edges(o.model, &call, &want)) fail_msg("%s", clb_error(o.ctx));
    assert_true(energy == must->energy);
    peers.peer[0].n_send = peers.peer[0].n_receive = 7 - step; /* the others' places follow */
    peers.peer[1].send_at = peers.peer[1].receive_at = 7 - step;
    peers.calls = o.model->net.ghosts.half;
    ghost_result *r = compute(&o, &call);
    expect_bits(g, r, must);
    free(r);
  }
  peers.calls = o.model->net.ghosts.half;
  g->exchange.n_peers = 0; /* and none of them */
  peers.peer[0].n_send = peers.peer[1].n_send = 0;
  ghost_result *r = compute(&o, &call);
  expect_bits(g, r, must);
  free(r);
  free(must);
  close_peers(&peers);
  free(g);
  close_model(&o);
}

static void refused(void **state) {
  (void)state;
  opened o = open_made("cpu:interpreter", 0, &f64), other = open_made("cpu:interpreter", 0, &f64);
  const atom_set a = random_atoms(6, 3, true, 13);
  ghost_set *g = ghosts_of(&a, 3.3);
  const clb_model_edges call = call_of(g, false);
  const int64_t n = g->exchange.n_send;
  peer_set peers, theirs;
  clb_buffer *plain;
  open_peers(&theirs, &other, g, n, 0, true);
  open_peers(&peers, &o, g, n - 3, 3, true);
  assert_int_equal(clb_buffer_create(o.ctx, peers.out->memory.bytes, &plain), CLB_OK);
  const clb_model_exchange good = g->exchange;
  const clb_model_peer good_peers[2] = {peers.peer[0], peers.peer[1]};
  clb_model_exchange *x = &g->exchange;
  clb_model_peer *p = peers.peer;
#define REFUSED(what, ...)                                                                         \
  (__VA_ARGS__, refuse(&o, &call, what), *x = good, memcpy(p, good_peers, sizeof good_peers))
  REFUSED("exchange.n_peers is -1", x->n_peers = -1);
  REFUSED("there must be `peers`, `out`", x->peers = NULL);
  REFUSED("there must be `peers`, `out`", x->out = NULL);
  REFUSED("there must be `peers`, `out`", x->out = plain);
  REFUSED("there must be `peers`, `out`", x->out = peers.seen);
  REFUSED("there must be `peers`, `out`", x->out = theirs.out);
  REFUSED("no device_rows", x->device_rows = 1);
  REFUSED("exchange.out has ", peers.out->memory.bytes -= 512);
  peers.out->memory.bytes += 512;
  REFUSED("exchange.peers[1].rows is NULL", p[1].rows = NULL);
  REFUSED("exchange.peers[0].rows is another buffer", p[0].rows = plain);
  REFUSED("exchange.peers[0].rows is another buffer", p[0].rows = theirs.seen);
  REFUSED("exchange.peers[0].n_send is -1; it must be 0 ... ", p[0].n_send = -1);
  REFUSED("exchange.peers[1].n_send is 4; it must be 0 ... 3", p[1].n_send = 4);
  REFUSED("exchange.peers[1].n_receive is 4; it must be 0 ... 3", p[1].n_receive = 4);
  REFUSED("exchange.peers[1].send_at is -1", p[1].send_at = -1);
  REFUSED("exchange.peers[1].receive_at is", p[1].receive_at = n + 40);
  REFUSED("exchange.peers[0].receive_at is", p[0].receive_at = INT64_MAX);
#undef REFUSED
  peers.calls = o.model->net.ghosts.half;
  free(compute(&o, &call));
  clb_buffer_destroy(&plain);
  close_peers(&theirs);
  close_peers(&peers);
  free(g);
  close_model(&other);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits), cmocka_unit_test(changes),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
