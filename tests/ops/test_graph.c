/* tests/ops/test_graph.c - edges sorted by receiver and sender, against a plain stable sort, on
   every device that runs here. */
#include "tests/test.h"

#include <clebsch/clebsch.h>

#include "kernels/graph/host/graph.h"

enum { MAX_DEVICES = 32 };

/* Asserts that a call fails with this status and that the message contains this word. */
static struct device {
  char name[64];
  bool runs,
      simulates; /* simulates: a CPU that is taken for a GPU, with many lanes that sort together */
  clb_context *ctx;
} devices[MAX_DEVICES];
static int n_devices;

static void add_device(const clb_device_info *info, void *user) {
  (void)user;
  bool cpu = info->runs && (!strcmp(info->backend, "cpu") || !strcmp(info->backend, "opencl"));
  for (int i = 0; i < 1 + cpu && n_devices < MAX_DEVICES; i++, n_devices++) {
    devices[n_devices].runs = info->runs;
    devices[n_devices].simulates = i;
    snprintf(devices[n_devices].name, sizeof devices[0].name, "%s", info->name);
  }
}

static clb_context *context(void **state) {
  struct device *d = *state;
  if (d->ctx) return d->ctx;
  OK(d->ctx, clb_context_create(d->name, &d->ctx));
  clb_limits *limits = &d->ctx->device->limits;
  if (d->simulates) limits->simd = false;
  if (d->simulates && !strcmp(d->name, "cpu:interpreter"))
    limits->lanes[CLB_F32] = 32, limits->max_subgroups = 4;
  return d->ctx;
}

static int forget_all(void **state) {
  (void)state;
  for (int d = 0; d < n_devices; d++) clb_context_destroy(&devices[d].ctx);
  return 0;
}

/* ---- graphs ---- */

typedef struct {
  int64_t n_senders, n_receivers, n;
  int64_t *senders, *receivers;
} edges;

static void *memory(int64_t bytes) {
  void *p = calloc(1, (size_t)bytes + 8);
  assert_non_null(p);
  return p;
}

static edges new_edges(int64_t n_senders, int64_t n_receivers, int64_t n) {
  return (edges){n_senders, n_receivers, n, memory(8 * n), memory(8 * n)};
}

static void free_edges(edges *e) {
  free(e->senders);
  free(e->receivers);
}

static int64_t below(int64_t n, uint64_t *seed) {
  return (int64_t)((test_random(seed) + 1) / 2 * (double)n);
}

/* Every third node is isolated, the last one is not; repeats, self-loops, and `hub` edges in one of
   three that end at receiver 1 and start at sender 2. */
static edges random_edges(int64_t n_senders, int64_t n_receivers, int64_t n, bool hub,
                          uint64_t seed) {
  edges e = new_edges(n_senders, n_receivers, n);
  int64_t min = n_senders < n_receivers ? n_senders : n_receivers;
  for (int64_t i = 0; i < n; i++) {
    int64_t s = below(n_senders, &seed), r = below(n_receivers, &seed), luck = below(12, &seed);
    if (s % 3 == 0 && s) s--;
    if (r % 3 == 0 && r) r--;
    if (luck == 0 && i) s = e.senders[i - 1], r = e.receivers[i - 1];
    if (luck == 1) s = r = below(min, &seed);
    if (hub && luck > 3) r = 1;
    if (hub && luck > 8) s = 2;
    e.senders[i] = i == n / 2 ? n_senders - 1 : s;
    e.receivers[i] = i == n / 2 ? n_receivers - 1 : r;
  }
  return e;
}

/* ---- how the lists are given ---- */

enum { AT_HOST, ON_DEVICE, PLACES };

typedef struct {
  clb_index_type type;
  int where;
  int64_t offset;
} manner;

/* The list between numbers that are not nodes. */
static clb_index_list give(clb_context *ctx, const manner *m, const int64_t *list, int64_t n,
                           void **copy) {
  int64_t total = m->offset + n + 3, size = m->type == CLB_I64 ? 8 : 4;
  clb_index_list l = {.offset = m->offset};
  *copy = memory(total * size);
  for (int64_t i = 0; i < total; i++) {
    int64_t x = i >= m->offset && i < m->offset + n ? list[i - m->offset] : -7;
    if (m->type == CLB_I64) ((int64_t *)*copy)[i] = x;
    else ((int32_t *)*copy)[i] = (int32_t)x;
  }
  if (m->where == AT_HOST) l.host = *copy;
  else {
    OK(ctx, clb_buffer_create(ctx, (uint64_t)(total * size), &l.buffer));
    OK(ctx, clb_buffer_write(l.buffer, 0, *copy, (uint64_t)(total * size)));
  }
  return l;
}

static clb_status update(clb_context *ctx, clb_graph *g, const edges *e, const manner *m) {
  void *copy[2];
  clb_index_list senders = give(ctx, m, e->senders, e->n, &copy[0]),
                 receivers = give(ctx, m, e->receivers, e->n, &copy[1]);
  clb_status s =
      clb_graph_update(g, e->n_senders, e->n_receivers, e->n, m->type, senders, receivers);
  free(copy[0]); /* the lists are no longer used when the update returns */
  free(copy[1]);
  clb_buffer_destroy(&senders.buffer);
  clb_buffer_destroy(&receivers.buffer);
  return s;
}

static const manner plain = {CLB_I32, AT_HOST, 0};

/* ---- the expected result ---- */

static int32_t *contents(clb_context *ctx, clb_buffer *b, int64_t n) {
  int32_t *p = memory(4 * n);
  OK(ctx, clb_buffer_read(b, 0, p, (uint64_t)n * 4));
  return p;
}

static void expect_splits(clb_context *ctx, clb_graph *g, clb_graph_order order,
                          const int64_t *start, int64_t n_rows) {
  int64_t n_splits = clb_graph_splits(g), used = 0, P = g->split, wanted = 0;
  int32_t(*split)[3] =
      (int32_t(*)[3])contents(ctx, &g->buffer[CLB_GRAPH_SPLIT_SEGMENTS + order], 3 * n_splits);
  for (int64_t r = 0; r < n_rows; r++) {
    int64_t a = start[r], b = start[r + 1], s = a / P + 1;
    for (int64_t first = a + P; first < b; first += P, s++, wanted++) {
      assert_true(s - 1 < n_splits);
      assert_int_equal(split[s - 1][0], r);
      assert_int_equal(split[s - 1][1], first);
      assert_int_equal(split[s - 1][2], b - first < P ? b - first : P);
    }
  }
  for (int64_t i = 0; i < n_splits; i++) used += split[i][2] != 0;
  assert_int_equal(used, wanted);
  free(split);
}

static void expect_segments(clb_context *ctx, clb_graph *g, clb_graph_order order,
                            const int64_t *start, int64_t n_rows) {
  int32_t(*segment)[3] =
      (int32_t(*)[3])contents(ctx, &g->buffer[CLB_GRAPH_SEGMENTS + order], 3 * n_rows);
  int64_t n_splits = clb_graph_splits(g), combined = 0, wanted = 0;
  int32_t(*rest)[3] =
      (int32_t(*)[3])contents(ctx, &g->buffer[CLB_GRAPH_SPLIT_ROWS + order], 3 * n_splits);
  for (int64_t r = 0; r < n_rows; r++) {
    int64_t P = g->split, a = start[r], degree = start[r + 1] - a, later = 0;
    for (int64_t first = P; first < degree; first += P) later++;
    assert_int_equal(segment[r][0], r);
    assert_int_equal(segment[r][1], a);
    assert_int_equal(segment[r][2], degree < P ? degree : P);
    if (!later) continue;
    assert_int_equal(rest[a / P][0], r);
    assert_int_equal(rest[a / P][1], a / P);
    assert_int_equal(rest[a / P][2], later);
    wanted += later;
  }
  for (int64_t i = 0; i < n_splits; i++) combined += rest[i][2];
  assert_int_equal(combined, wanted);
  free(segment);
  free(rest);
}

static void expect_sorted(clb_context *ctx, clb_graph *g, const edges *e, clb_graph_order order) {
  const int64_t *key = order == CLB_BY_RECEIVER ? e->receivers : e->senders,
                *other = order == CLB_BY_RECEIVER ? e->senders : e->receivers;
  int64_t n_rows = order == CLB_BY_RECEIVER ? e->n_receivers : e->n_senders,
          *start = memory(8 * (n_rows + 1)), *next = memory(8 * (n_rows + 1));
  clb_sorted_edges sorted;
  OK(ctx, clb_graph_sorted(g, order, &sorted));
  assert_int_equal(sorted.n_rows, n_rows);
  assert_int_equal(sorted.n_edges, e->n);
  int32_t *found_start = contents(ctx, sorted.row_start, n_rows + 1),
          *found_edge = contents(ctx, sorted.edge, e->n),
          *found_other = contents(ctx, sorted.other, e->n);
  for (int64_t i = 0; i < e->n; i++) start[key[i] + 1]++;
  for (int64_t r = 0; r < n_rows; r++) start[r + 1] += start[r];
  for (int64_t r = 0; r <= n_rows; r++)
    if (found_start[r] != start[r])
      fail_msg("row_start[%lld] is %d, must be %lld", (long long)r, found_start[r],
               (long long)start[r]);
  memcpy(next, start, 8 * (size_t)(n_rows + 1));
  for (int64_t i = 0; i < e->n; i++) {
    int64_t place = next[key[i]]++;
    if (found_edge[place] != i)
      fail_msg("place %lld has edge %d, must have %lld", (long long)place, found_edge[place],
               (long long)i);
    if (found_other[place] != other[i])
      fail_msg("place %lld has other end %d, must have %lld", (long long)place, found_other[place],
               (long long)other[i]);
  }
  expect_splits(ctx, g, order, start, n_rows);
  expect_segments(ctx, g, order, start, n_rows);
  free(start);
  free(next);
  free(found_start);
  free(found_edge);
  free(found_other);
}

static void expect_lists(clb_context *ctx, clb_graph *g, const edges *e) {
  clb_buffer *b[2];
  OK(ctx, clb_graph_lists(g, &b[0], &b[1]));
  int32_t *senders = contents(ctx, b[0], e->n), *receivers = contents(ctx, b[1], e->n);
  for (int64_t i = 0; i < e->n; i++)
    assert_true(senders[i] == e->senders[i] && receivers[i] == e->receivers[i]);
  free(senders);
  free(receivers);
}

static void expect(clb_context *ctx, clb_graph *g, const edges *e) {
  expect_sorted(ctx, g, e, CLB_BY_RECEIVER);
  expect_sorted(ctx, g, e, CLB_BY_SENDER);
  expect_lists(ctx, g, e);
}

static void expect_empty(clb_context *ctx, clb_graph *g) {
  clb_sorted_edges sorted[2];
  for (int i = 0; i < 2; i++) {
    OK(ctx, clb_graph_sorted(g, (clb_graph_order)i, &sorted[i]));
    assert_true(sorted[i].n_rows == 0 && sorted[i].n_edges == 0);
  }
}

/* ---- tests ---- */

static const manner manners[] = {
    {CLB_I32, AT_HOST, 0}, {CLB_I64, AT_HOST, 0}, {CLB_I32, ON_DEVICE, 0}, {CLB_I64, ON_DEVICE, 0},
    {CLB_I32, AT_HOST, 5}, {CLB_I64, AT_HOST, 3}, {CLB_I32, ON_DEVICE, 7}, {CLB_I64, ON_DEVICE, 1}};
enum { MANNERS = sizeof manners / sizeof *manners };

/* Sizes around those at which kernels cut lists and rows up, and numbers of nodes around those at
   which the sort needs one more digit. */
static void random_graphs(void **state) {
  static const struct {
    int64_t n_senders, n_receivers, n;
  } sizes[] = {{1, 1, 1},       {1, 1, 256},           {2, 1, 257},       {1, 1, 512},
               {3, 2, 2},       {17, 17, 31},          {40, 40, 255},     {256, 255, 256},
               {255, 257, 257}, {2048, 2049, 4096},    {70, 3000, 4097},  {5000, 256, 8192},
               {1, 9000, 8193}, {65536, 65537, 20000}, {70001, 3, 12289}, {4194305, 12, 600}};
  clb_context *ctx = context(state);
  clb_graph *g;
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int hub = 0; hub < 2; hub++) {
      edges e = random_edges(sizes[i].n_senders, sizes[i].n_receivers, sizes[i].n,
                             hub && sizes[i].n_senders > 2 && sizes[i].n_receivers > 1,
                             100 * i + (uint64_t)hub);
      OK(ctx, update(ctx, g, &e, &manners[(2 * i + (size_t)hub) % MANNERS]));
      expect(ctx, g, &e);
      free_edges(&e);
    }
  clb_graph_destroy(&g);
  assert_null(g);
}

/* The same graph in all the ways it can be given, also from the host and the device at once,
   repeatedly. */
static void ways_to_give(void **state) {
  clb_context *ctx = context(state);
  clb_graph *g;
  edges e = random_edges(90, 110, 3000, false, 8);
  void *copy[2];
  OK(ctx, clb_graph_create(ctx, 200, 5000, &g));
  for (int i = 0; i < 2 * MANNERS; i++) {
    OK(ctx, update(ctx, g, &e, &manners[i % MANNERS]));
    expect(ctx, g, &e);
  }
  clb_index_list senders = give(ctx, &manners[4], e.senders, e.n, &copy[0]),
                 receivers = give(ctx, &manners[6], e.receivers, e.n, &copy[1]);
  OK(ctx, clb_graph_update(g, e.n_senders, e.n_receivers, e.n, CLB_I32, senders, receivers));
  expect(ctx, g, &e);
  free(copy[0]);
  free(copy[1]);
  clb_buffer_destroy(&receivers.buffer);
  clb_graph_destroy(&g);
  free_edges(&e);
}

/* One receiver with 100 000 edges, and one sender with half of them. */
static void hubs(void **state) {
  clb_context *ctx = context(state);
  clb_graph *g;
  edges e = random_edges(300, 500, 150001, true, 77);
  for (int64_t i = 0; i < e.n; i++)
    if (i % 3) e.receivers[i] = 250;
  OK(ctx, clb_graph_create(ctx, 500, e.n, &g));
  for (int i = 0; i < 2; i++) {
    OK(ctx, update(ctx, g, &e, &plain));
    expect(ctx, g, &e);
  }
  clb_graph_destroy(&g);
  free_edges(&e);
}

/* Rows of one direction as long as may be, and longer by one. */
static void finds_splits(void **state) {
  clb_context *ctx = context(state);
  clb_graph *g;
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  const int64_t P = g->least_split;
  for (int i = 0; i < 4; i++) {
    edges e = new_edges(600, 600, 600);
    for (int64_t k = 0; k < e.n; k++) e.senders[k] = e.receivers[k] = k;
    for (int64_t k = 0; k < P + i / 2; k++) (i % 2 ? e.senders : e.receivers)[k] = 5;
    OK(ctx, update(ctx, g, &e, &plain));
    assert_int_equal(clb_graph_splits(g), 599 / P);
    OK(ctx, clb_graph_find_splits(g, false));
    assert_int_equal(clb_graph_splits(g), i / 2 ? 599 / P : 0);
    OK(ctx, update(ctx, g, &e, &plain));
    assert_int_equal(clb_graph_splits(g), 599 / P);
    expect(ctx, g, &e);
    free_edges(&e);
  }
  clb_graph_destroy(&g);
}

/* Teams share whole rows of a graph whose rows have no more splits than a team has sub-groups, as
   long as the graph is small. */
static void finds_teams(void **state) {
  clb_context *ctx = context(state);
  clb_graph *g;
  const bool simd = ctx->device->limits.simd;
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  for (int i = 0; i < 5; i++) {
    const bool large = i == 4;
    edges e = new_edges(600, 600, large ? 70000 : 17000);
    for (int64_t k = 0; k < e.n; k++) e.senders[k] = e.receivers[k] = 6 + k % 594;
    const int64_t P = simd    ? CLB_GRAPH_SPLIT
                      : large ? 128
                              : 32,
                  longest = CLB_GRAPH_TEAM * P + i / 2 % 2;
    for (int64_t k = 0; k < longest; k++) (i % 2 ? e.senders : e.receivers)[k] = 5;
    OK(ctx, update(ctx, g, &e, &plain));
    assert_int_equal(g->split, P);
    assert_false(clb_graph_teams(g));
    OK(ctx, clb_graph_find_splits(g, i % 2));
    assert_int_equal(clb_graph_teams(g), !simd && !large && i < 2);
    assert_int_equal(clb_graph_splits(g), (e.n - 1) / P);
    clb_graph_expect(g, 606, e.n);
    assert_int_equal(clb_graph_teams(g), !simd && i == 1);
    OK(ctx, update(ctx, g, &e, &plain));
    assert_false(clb_graph_teams(g));
    free_edges(&e);
  }
  clb_graph_destroy(&g);
}

/* More edges never need fewer rows for splits, though rows are then split into longer pieces. */
static void split_rows(void **state) {
  static const int64_t sizes[] = {0, 17, 300, 16000, 16400, 17000, 33000};
  clb_context *ctx = context(state);
  clb_graph *g;
  int64_t before = 0;
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    edges e = random_edges(50, 60, sizes[i], false, i + 3);
    OK(ctx, update(ctx, g, &e, &plain));
    assert_true(clb_graph_split_rows(g) >= before &&
                clb_graph_split_rows(g) >= clb_graph_splits(g));
    before = clb_graph_split_rows(g);
    free_edges(&e);
  }
  assert_true(before >= 32999 / CLB_GRAPH_SPLIT);
  clb_graph_destroy(&g);
}

static void empty_graphs(void **state) {
  clb_context *ctx = context(state);
  clb_graph *g;
  edges none = new_edges(4, 9, 0), some = random_edges(4, 9, 700, false, 3),
        nobody = new_edges(0, 0, 0);
  OK(ctx, clb_graph_create(ctx, 0, 0, &g));
  expect_empty(ctx, g);
  const edges *const sequence[] = {&none, &some, &none, &nobody, &some};
  for (size_t i = 0; i < sizeof sequence / sizeof *sequence; i++) {
    if (sequence[i]->n) OK(ctx, update(ctx, g, sequence[i], &plain));
    else
      OK(ctx, clb_graph_update(g, sequence[i]->n_senders, sequence[i]->n_receivers, 0, CLB_I32,
                               (clb_index_list){0}, (clb_index_list){0}));
    expect(ctx, g, sequence[i]);
  }
  clb_graph_destroy(&g);
  free_edges(&none);
  free_edges(&some);
  free_edges(&nobody);
}

static void handles(clb_graph *g, void **h) {
  for (int i = 0; i < CLB_GRAPH_BUFFERS; i++) h[i] = g->buffer[i].memory.handle;
}

/* Within the capacity, memory stays where it is; growing moves it and leaves room for a little
   more; buffer handles never change. */
static void capacity(void **state) {
  static const struct {
    int64_t nodes, n;
    bool moves;
  } steps[] = {{100, 3000, false}, {10, 40, false},   {1, 1, false},      {100, 2999, false},
               {100, 3001, true},  {101, 3700, true}, {125, 3750, false}, {7, 0, false},
               {126, 3751, false}, {40, 20000, true}};
  clb_context *ctx = context(state);
  clb_graph *g;
  void *before[CLB_GRAPH_BUFFERS], *after[CLB_GRAPH_BUFFERS];
  clb_sorted_edges first, now;
  OK(ctx, clb_graph_create(ctx, 100, 3000, &g));
  OK(ctx, clb_graph_sorted(g, CLB_BY_RECEIVER, &first));
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    edges e = random_edges(steps[i].nodes, steps[i].nodes, steps[i].n, false, i);
    handles(g, before);
    int64_t edges_before = g->edges, nodes_before = g->nodes;
    OK(ctx, update(ctx, g, &e, &manners[i % MANNERS]));
    handles(g, after);
    expect(ctx, g, &e);
    if (!steps[i].moves) assert_memory_equal(before, after, sizeof before);
    assert_int_equal(g->edges != edges_before || g->nodes != nodes_before, steps[i].moves);
    OK(ctx, clb_graph_sorted(g, CLB_BY_RECEIVER, &now));
    assert_true(now.row_start == first.row_start && now.edge == first.edge &&
                now.other == first.other);
    free_edges(&e);
  }
  clb_graph_destroy(&g);
}

/* The first of the bad edges is named with its list, value and range, and the graph is empty until
   the next update. */
static void bad_indices(void **state) {
  static const struct {
    bool receiver, wide_only;
    int64_t value;
    const char *text;
  } bad[] = {{false, false, -1, "senders[%d] is -1; it must be 0 ... 39"},
             {true, false, -3, "receivers[%d] is -3; it must be 0 ... 49"},
             {false, false, 40, "senders[%d] is 40; it must be 0 ... 39"},
             {true, false, 50, "receivers[%d] is 50; it must be 0 ... 49"},
             {true, false, INT32_MAX, "receivers[%d] is 2147483647; it must"},
             {false, false, INT32_MIN, "senders[%d] is -2147483648; it must"},
             {false, true, (1LL << 32) + 5, "senders[%d] is 4294967301; it must"},
             {true, true, -(1LL << 32) + 5, "receivers[%d] is -4294967291; it must"},
             {true, true, INT64_MIN, "receivers[%d] is -9223372036854775808; it must"}};
  static const int places[] = {0, 1, 31, 4095, 4096, 9999};
  clb_context *ctx = context(state);
  clb_graph *g;
  OK(ctx, clb_graph_create(ctx, 50, 10000, &g));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[128];
    int at = places[i % 6];
    edges e = random_edges(40, 50, 10000, false, i);
    (bad[i].receiver ? e.receivers : e.senders)[at] = bad[i].value;
    if (at < 9000) e.senders[at + 900] = -1, e.receivers[at + 1] = 50; /* later ones */
    snprintf(text, sizeof text, bad[i].text, at);
    for (int m = 0; m < MANNERS; m++) {
      if (bad[i].wide_only && manners[m].type == CLB_I32) continue;
      NOT_OK(ctx, CLB_ERROR_ARGUMENT, text, update(ctx, g, &e, &manners[m]));
      expect_empty(ctx, g);
    }
    free_edges(&e);
  }
  edges both = random_edges(40, 50, 10, false, 1), good = random_edges(40, 50, 500, false, 2),
        nobody = new_edges(0, 5, 2);
  both.senders[3] = both.receivers[3] = 99;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "senders[3] is 99; it must be 0 ... 39",
         update(ctx, g, &both, &plain));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "senders[0] is 0; n_senders is 0",
         update(ctx, g, &nobody, &plain));
  OK(ctx, update(ctx, g, &good, &plain));
  expect(ctx, g, &good);
  clb_graph_destroy(&g);
  free_edges(&both);
  free_edges(&good);
  free_edges(&nobody);
}

static void mistakes(void **state) {
  clb_context *ctx = context(state), *other = NULL;
  clb_graph *g = NULL;
  clb_buffer *b, *foreign, *own, *unused;
  clb_sorted_edges sorted;
  int64_t list[4] = {0};
  clb_index_list good = {.host = list}, bad;
  OK(other, clb_context_create("cpu:interpreter", &other));
  assert_int_equal(clb_graph_create(NULL, 1, 1, &g), CLB_ERROR_ARGUMENT);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "graph is NULL", clb_graph_create(ctx, 1, 1, NULL));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "nodes is -1", clb_graph_create(ctx, -1, 1, &g));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "edges is 2147483647; it must be 0 ... 2147483646",
         clb_graph_create(ctx, 1, INT32_MAX, &g));
  assert_null(g);
  OK(ctx, clb_graph_create(ctx, 4, 4, &g));
  OK(ctx, clb_buffer_create(ctx, 23, &b));
  OK(other, clb_buffer_create(other, 64, &foreign));
  OK(ctx, clb_graph_lists(g, &own, &unused));
#define WRONG(word, ...) NOT_OK(ctx, CLB_ERROR_ARGUMENT, word, clb_graph_update(g, __VA_ARGS__))
  WRONG("n_senders is -1", -1, 4, 4, CLB_I64, good, good);
  WRONG("n_receivers is 2147483647", 4, INT32_MAX, 4, CLB_I64, good, good);
  WRONG("n_edges is -2", 4, 4, -2, CLB_I64, good, good);
  WRONG("n_edges is 4294967296", 4, 4, 1LL << 32, CLB_I64, good, good);
  WRONG("type is 2", 4, 4, 4, (clb_index_type)2, good, good);
  bad = (clb_index_list){0};
  WRONG("senders has neither", 4, 4, 4, CLB_I64, bad, good);
  WRONG("receivers has neither", 4, 4, 4, CLB_I64, good, bad);
  bad = (clb_index_list){.host = list, .buffer = b};
  WRONG("receivers has both", 4, 4, 4, CLB_I64, good, bad);
  bad = (clb_index_list){.host = list, .offset = -1};
  WRONG("offset of senders is -1", 4, 4, 4, CLB_I64, bad, good);
  bad = (clb_index_list){.buffer = foreign};
  WRONG("senders belongs to another context", 4, 4, 4, CLB_I64, bad, good);
  bad = (clb_index_list){.buffer = own};
  WRONG("senders is the graph's own", 4, 4, 4, CLB_I32, bad, good);
  bad = (clb_index_list){.buffer = b};
  WRONG("3 numbers of 8 bytes from 0 on do not fit in the 23 bytes of receivers", 4, 4, 3, CLB_I64,
        good, bad);
  bad.offset = 2;
  WRONG("4 numbers of 4 bytes from 2 on do not fit in the 23 bytes of receivers", 4, 4, 4, CLB_I32,
        good, bad);
  bad.offset = INT64_MAX;
  WRONG("do not fit", 4, 4, 4, CLB_I32, good, bad);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "order is 2", clb_graph_sorted(g, (clb_graph_order)2, &sorted));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "sorted is NULL", clb_graph_sorted(g, CLB_BY_SENDER, NULL));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "receivers is NULL", clb_graph_lists(g, &own, NULL));
  assert_int_equal(clb_graph_update(NULL, 4, 4, 4, CLB_I64, good, good), CLB_ERROR_ARGUMENT);
  OK(ctx, clb_graph_update(g, 4, 4, 4, CLB_I64, good, good));
  clb_graph_destroy(&g);
  clb_graph_destroy(&g);
  clb_graph_destroy(NULL);
  clb_buffer_destroy(&b);
  clb_buffer_destroy(&foreign);
  clb_context_destroy(&other);
}

/* A backend on which that many allocations or launches succeed (-1: all), but not the next. */
static const clb_backend *genuine;
static clb_backend poor;
static int allocations_left, launches_left, allocated;
static clb_status alloc_or_not(clb_device *d, uint64_t bytes, clb_memory *m) {
  if (allocations_left >= 0 && !allocations_left--)
    return clb_fail(d->error, CLB_ERROR_MEMORY, "none left");
  clb_status s = genuine->alloc(d, bytes, m);
  allocated += s == CLB_OK;
  return s;
}
static void free_counted(clb_device *d, clb_memory *m) {
  allocated--;
  genuine->free(d, m);
}

static clb_status launch_or_not(clb_device *d, clb_module *m, int64_t groups, const clb_arg *args,
                                int n) {
  if (launches_left >= 0 && !launches_left--)
    return clb_fail(d->error, CLB_ERROR_DRIVER, "not today");
  return genuine->launch(d, m, groups, args, n);
}

static void become_poor(clb_context *ctx) {
  genuine = ctx->device->backend;
  poor = *genuine;
  poor.alloc = alloc_or_not;
  poor.free = free_counted;
  poor.launch = launch_or_not;
  allocations_left = launches_left = -1;
  ctx->device->backend = &poor;
}

static void failing_launches(void **state) {
  clb_context *ctx = context(state);
  clb_graph *g;
  edges e = random_edges(300, 3000, 2000, false, 5);
  clb_status s = CLB_ERROR_DRIVER;
  int n = 0;
  become_poor(ctx);
  OK(ctx, clb_graph_create(ctx, 3000, 2000, &g));
  for (; s; n++) {
    launches_left = n;
    s = update(ctx, g, &e, &plain);
    launches_left = -1;
    if (s) expect_empty(ctx, g);
    else expect(ctx, g, &e);
  }
  assert_true(n > 16);
  clb_graph_destroy(&g);
  ctx->device->backend = genuine;
  free_edges(&e);
}

static void no_memory(void **state) {
  clb_context *ctx = context(state);
  edges small = random_edges(20, 20, 300, false, 5), large = random_edges(400, 300, 9000, false, 6);
  bool enough = false;
  int fails = 0;
  become_poor(ctx);
  for (int n = 0; !enough; n++) {
    clb_graph *g;
    allocations_left = n;
    enough = !clb_graph_create(ctx, 20, 300, &g);
    if (!enough) {
      assert_null(g);
      assert_int_equal(allocated, 0);
      allocations_left = -1;
      OK(ctx, clb_graph_create(ctx, 20, 300, &g));
    }
    allocations_left = n;
    if (update(ctx, g, &large, &plain)) {
      fails++;
      expect_empty(ctx, g);
      assert_true(g->edges == 300 && g->nodes == 20);
    } else expect(ctx, g, &large);
    allocations_left = -1;
    OK(ctx, update(ctx, g, &small, &plain));
    expect(ctx, g, &small);
    OK(ctx, update(ctx, g, &large, &plain));
    expect(ctx, g, &large);
    clb_graph_destroy(&g);
    assert_int_equal(allocated, 0);
  }
  assert_true(fails > 9);
  ctx->device->backend = genuine;
  free_edges(&small);
  free_edges(&large);
}

/* Kernels compile for the targets that only compile. */
static void compiles(void **state) {
  clb_context *ctx = context(state);
  clb_graph *g;
  int64_t list[1] = {0};
  clb_index_list l = {.host = list};
  OK(ctx, clb_graph_create(ctx, 10, 10, &g));
  NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "only compiles", clb_graph_update(g, 1, 1, 1, CLB_I64, l, l));
  clb_graph_destroy(&g);
}

int main(void) {
  static void (*const tests[])(void **) = {
      random_graphs, ways_to_give, hubs,        finds_splits, finds_teams, split_rows,
      empty_graphs,  capacity,     bad_indices, mistakes,     no_memory,   failing_launches};
  static const char *const names[] = {"random_graphs", "ways_to_give", "hubs",
                                      "finds_splits",  "finds_teams",  "split_rows",
                                      "empty_graphs",  "capacity",     "bad_indices",
                                      "mistakes",      "no_memory",    "failing_launches"};
  enum { TESTS = sizeof tests / sizeof *tests };
  static struct CMUnitTest all[MAX_DEVICES * TESTS];
  static char labels[MAX_DEVICES * TESTS][96];
  int n = 0;
  clb_devices(add_device, NULL);
  for (int d = 0; d < n_devices; d++)
    for (int t = 0; t < (devices[d].runs ? TESTS : 1); t++, n++) {
      snprintf(labels[n], sizeof labels[n], "graph_%s[%s%s]",
               devices[d].runs ? names[t] : "compiles", devices[d].name,
               devices[d].simulates ? ", as a GPU" : "");
      all[n] = (struct CMUnitTest){labels[n], devices[d].runs ? tests[t] : compiles, NULL, NULL,
                                   &devices[d]};
    }
  return _cmocka_run_group_tests("graph", all, (size_t)n, NULL, forget_all);
}
