/* kernels/graph/host/graph.c - graphs as the user sees them: capacities, checks, and the launches
   that sort the edges. */
#include "kernels/graph/host/graph.h"

#include "src/base/hash.h"

#include <inttypes.h>
#include <stdlib.h>

enum { GROUPS_OF_UNIT = 16, MAX_GROUPS = 2048, MAX_COUNT = INT32_MAX - 1 };

#define FAIL(g, s, ...) clb_fail(&(g)->ctx->error, s, __VA_ARGS__)

/* ---- create, destroy ---- */

static clb_status compile(clb_graph *g) {
  clb_problem *p = calloc(1, sizeof *p);
  clb_status s =
      p ? CLB_OK : clb_fail(&g->ctx->error, CLB_ERROR_MEMORY, "clb_graph_create: no memory");
  for (int step = 0; step < CLB_GRAPH_STEPS && !s; step++) {
    const clb_kernel_kind *kind = clb_kernel_kinds[CLB_GRAPH];
    ir_kernel k;
    p->kind = CLB_GRAPH;
    p->graph.step = step;
    kind->schedule(p, &g->ctx->device->limits, &g->schedule[step]);
    kind->lower(p, &g->schedule[step], &k);
    s = clb_kernel_get(g->ctx, &k, &g->kernel[step]);
  }
  free(p);
  return s;
}

static int64_t radix(const clb_graph *g) {
  return (int64_t)1 << clb_graph_digit_bits(&g->schedule[CLB_GRAPH_COUNT]);
}

static uint64_t bytes_of(const clb_graph *g, int buffer) {
  if (buffer < CLB_GRAPH_ROW_START) return 4 * (uint64_t)g->edges;
  if (g->listed && buffer < CLB_GRAPH_FOUND) return 0;
  if (buffer < CLB_GRAPH_EDGE) return 4 * ((uint64_t)g->nodes + 1);
  if (buffer < CLB_GRAPH_SEGMENTS) return 4 * (uint64_t)g->edges;
  if (buffer < CLB_GRAPH_SPLIT_SEGMENTS)
    return 12 * (uint64_t)(g->nodes + clb_graph_most_splits(g->edges));
  if (buffer < CLB_GRAPH_PAIRS) return 12 * (uint64_t)clb_graph_most_splits(g->edges);
  if (buffer < CLB_GRAPH_TABLE) return 8 * (uint64_t)g->edges;
  return 4 * (uint64_t)(buffer == CLB_GRAPH_TABLE  ? radix(g) * g->groups
                        : buffer == CLB_GRAPH_SUMS ? radix(g)
                                                   : g->groups);
}

uint64_t clb_graph_bytes(const clb_graph *g, int64_t nodes, int64_t edges) {
  clb_graph other = *g;
  uint64_t n = 0;
  other.nodes = nodes, other.edges = edges;
  for (int i = 0; i < CLB_GRAPH_BUFFERS; i++) n += bytes_of(&other, i);
  return n;
}

/* Allocates every buffer for the capacities; old contents are not kept. */
static clb_status reserve(clb_graph *g) {
  clb_device *d = g->ctx->device;
  clb_status s = CLB_OK;
  bool waited = false;
  for (int i = 0; i < CLB_GRAPH_BUFFERS && !s; i++) {
    clb_buffer *b = &g->buffer[i];
    uint64_t bytes = bytes_of(g, i);
    if (b->owned && b->memory.bytes >= bytes) continue;
    if (b->owned && !waited) s = d->backend->wait(d); /* submitted work may still use it */
    if (s) break;
    waited = true;
    if (b->owned) clb_memory_free(g->ctx, &b->memory);
    b->owned = false;
    b->memory = (clb_memory){0};
    s = clb_device_alloc(d, bytes ? bytes : 4, &b->memory);
    b->owned = s == CLB_OK;
  }
  for (int i = 0; i < CLB_GRAPH_BUFFERS && !s; i++) clb_memory_discard(&g->buffer[i].memory);
  return s;
}

static bool counts_something(int64_t n) { return n >= 0 && n <= MAX_COUNT; }

clb_status clb_graph_create(clb_context *ctx, int64_t nodes, int64_t edges, clb_graph **graph) {
  clb_status s = clb_context_check(ctx, __func__);
  if (graph) *graph = NULL;
  if (s) return s;
  if (!graph) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_graph_create: graph is NULL");
  if (!counts_something(nodes) || !counts_something(edges))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_graph_create: %s is %" PRId64 "; it must be 0 ... %d",
                    counts_something(nodes) ? "edges" : "nodes",
                    counts_something(nodes) ? edges : nodes, MAX_COUNT);
  clb_graph *g = *graph = calloc(1, sizeof *g);
  if (!g) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_graph_create: no memory");
  const clb_limits *limits = &ctx->device->limits;
  *g = (clb_graph){.ctx = clb_context_hold(ctx),
                   .nodes = nodes,
                   .edges = edges,
                   .least_split = limits->simd ? CLB_GRAPH_SPLIT : CLB_GRAPH_LEAST_SPLIT,
                   .whole = (ctx->disabled & CLB_SPLIT_ROWS) != 0,
                   .groups = (int64_t)limits->units *
                             (limits->simd ? GROUPS_OF_UNIT / 2 : GROUPS_OF_UNIT)};
  g->groups = g->groups > MAX_GROUPS ? MAX_GROUPS : g->groups < 1 ? 1 : g->groups;
  for (int i = 0; i < CLB_GRAPH_BUFFERS; i++) g->buffer[i].ctx = ctx;
  s = compile(g);
  if (!s && ctx->device->info.runs) s = reserve(g);
  if (s) clb_graph_destroy(graph);
  return s;
}

void clb_graph_destroy(clb_graph **graph) {
  if (!graph || !*graph) return;
  clb_graph *g = *graph;
  clb_context *ctx = g->ctx;
  clb_recording_forget(ctx, &g->counts);
  for (int i = 0; i < CLB_GRAPH_BUFFERS; i++)
    if (g->buffer[i].owned) clb_memory_free(ctx, &g->buffer[i].memory);
  free(g);
  *graph = NULL;
  clb_context_release(ctx);
}

/* ---- launches ---- */

#define LAUNCH(g, step, groups, ...)                                                               \
  launch(g, step, groups, (const clb_arg[]){__VA_ARGS__},                                          \
         (int)(sizeof(const clb_arg[]){__VA_ARGS__} / sizeof(clb_arg)))

static clb_status launch(clb_graph *g, int step, int64_t groups, const clb_arg *args, int n) {
  clb_call c = clb_call_start(g->ctx);
  clb_call_arguments(&c, args, n);
  return clb_call_launch(&c, g->kernel[step], groups);
}

static int64_t flat_groups(const clb_graph *g, int step, int64_t n) {
  return clb_divide_up(n, g->kernel[step]->ir.rows);
}

/* How a list is divided into chunks: enough groups for the device, but no chunk so short that the
   counters of its digits cost more than the chunk itself. */
typedef struct {
  int64_t chunk, groups;
} cut;

static cut cut_up(const clb_graph *g, int step, int64_t n) {
  int64_t stride = clb_graph_stride(&g->schedule[step]), min = 2 * radix(g),
          chunk = clb_divide_up(n, g->groups);
  chunk = clb_divide_up(chunk > min ? chunk : min, stride) * stride;
  return (cut){chunk, clb_divide_up(n, chunk)};
}

/* One digit of the sort, from `list` to `to`. */
static clb_status sort_digit(clb_graph *g, int digit, const clb_buffer *list,
                             const clb_buffer *to) {
  const clb_buffer *table = &g->buffer[CLB_GRAPH_TABLE], *sums = &g->buffer[CLB_GRAPH_SUMS],
                   *unused = &g->buffer[CLB_GRAPH_FOUND];
  cut c = cut_up(g, CLB_GRAPH_COUNT, g->n_edges);
  int stride = digit ? 2 : 1;
  clb_status s = LAUNCH(g, CLB_GRAPH_COUNT, c.groups, clb_buffer_arg(list), clb_i32_arg(stride),
                        clb_i64_arg(g->n_edges), clb_i64_arg(c.chunk), clb_i32_arg(digit),
                        clb_buffer_arg(table));
  if (!s)
    s = LAUNCH(g, CLB_GRAPH_SCAN, radix(g), clb_buffer_arg(table), clb_i64_arg(c.groups),
               clb_buffer_arg(sums));
  if (!s)
    s = LAUNCH(g, CLB_GRAPH_SCAN, 1, clb_buffer_arg(sums), clb_i64_arg(radix(g)),
               clb_buffer_arg(unused));
  if (!s)
    s = LAUNCH(g, CLB_GRAPH_SCATTER, c.groups, clb_buffer_arg(list), clb_i32_arg(stride),
               clb_i64_arg(g->n_edges), clb_i64_arg(c.chunk), clb_i32_arg(digit),
               clb_buffer_arg(table), clb_buffer_arg(sums), clb_buffer_arg(to));
  return s;
}

/* Number of digits needed to distinguish this many nodes; at least one, because a sorted list must
   be made. */
static int digits_of(const clb_graph *g, int64_t nodes) {
  int n = 1, bits = clb_graph_digit_bits(&g->schedule[CLB_GRAPH_COUNT]);
  while (nodes > (int64_t)1 << n * bits) n++;
  return n;
}

typedef enum { IN_ANY_ORDER, BY_RECEIVER, WITH_NULLS } edge_order; /* the last: by receiver, too */

/* The segments of splits, from the node in each slot of a sorted list. */
static clb_status split_rows(clb_graph *g, int direction, const clb_buffer *list, int stride) {
  clb_buffer *b = g->buffer;
  const int64_t splits = clb_graph_splits(g);
  return LAUNCH(g, CLB_GRAPH_SPLITS, flat_groups(g, CLB_GRAPH_SPLITS, splits), clb_buffer_arg(list),
                clb_i32_arg(stride), clb_buffer_arg(&b[CLB_GRAPH_ROW_START + direction]),
                clb_i64_arg(splits), clb_i64_arg(g->split), clb_i64_arg(g->n_rows[direction]),
                clb_buffer_arg(&b[CLB_GRAPH_SPLIT_SEGMENTS + direction]),
                clb_buffer_arg(&b[CLB_GRAPH_SEGMENTS + direction]),
                clb_buffer_arg(&b[CLB_GRAPH_SPLIT_ROWS + direction]));
}

/* Sorts by receiver or sender, unless edges are in that order, and derives the rows. */
static clb_status sort(clb_graph *g, int direction, edge_order order) {
  const bool ordered = order != IN_ANY_ORDER && direction == CLB_BY_RECEIVER,
             keyed = order == WITH_NULLS && !ordered;
  clb_buffer *b = g->buffer, *list = &b[keyed ? CLB_GRAPH_KEYS : CLB_GRAPH_RECEIVERS + direction];
  const int stride = ordered ? 1 : 2;
  int64_t n = g->n_edges, n_rows = g->n_rows[direction], turns = 0;
  clb_status s = CLB_OK;
  for (int i = CLB_GRAPH_PAIRS; i < CLB_GRAPH_BUFFERS; i++)
    if (order != WITH_NULLS || i != CLB_GRAPH_KEYS) clb_memory_discard(&b[i].memory);
  for (int digit = 0; digit < digits_of(g, n_rows + keyed) && !ordered && !s; digit++) {
    clb_buffer *to = &b[CLB_GRAPH_PAIRS + digit % 2];
    if (n) s = sort_digit(g, digit, list, to);
    list = to;
  }
  while (n >> turns) turns++;
  if (!s)
    s = LAUNCH(g, CLB_GRAPH_EDGES, flat_groups(g, CLB_GRAPH_EDGES, n), clb_buffer_arg(list),
               clb_i32_arg(stride), clb_buffer_arg(&b[CLB_GRAPH_RECEIVERS + 1 - direction]),
               clb_i64_arg(n), clb_i64_arg(g->n_rows[1 - direction] ? n : 0),
               clb_buffer_arg(&b[CLB_GRAPH_EDGE + direction]),
               clb_buffer_arg(&b[CLB_GRAPH_OTHER + direction]));
  if (!s)
    s = LAUNCH(
        g, CLB_GRAPH_ROWS,
        flat_groups(g, CLB_GRAPH_ROWS, (g->schedule[CLB_GRAPH_ROWS].lanes > 1 ? n_rows : n) + 1),
        clb_buffer_arg(list), clb_i32_arg(stride), clb_i64_arg(n), clb_i32_arg(n_rows),
        clb_i32_arg(turns), clb_i32_arg(turns ? 1 << (turns - 1) : 0),
        clb_buffer_arg(&b[CLB_GRAPH_ROW_START + direction]));
  if (s || (n && !g->n_rows[1 - direction])) return s; /* nobody sums over edges without senders */
  s = split_rows(g, direction, list, stride);
  return s ? s
           : LAUNCH(g, CLB_GRAPH_SEGMENT_LIST, flat_groups(g, CLB_GRAPH_SEGMENT_LIST, n_rows),
                    clb_buffer_arg(&b[CLB_GRAPH_ROW_START + direction]), clb_i32_arg(n_rows),
                    clb_i32_arg(g->split), clb_buffer_arg(&b[CLB_GRAPH_SEGMENTS + direction]));
}

/* ---- update ---- */

/* The arguments of an update; lists by direction, like n_rows. */
typedef struct {
  int64_t n, n_rows[2];
  clb_index_type type;
  clb_index_list list[2];
} request;

static const char *const list_names[] = {"receivers", "senders"}, *const count_names[] = {
                                                                      "n_receivers", "n_senders"};

static int64_t index_bytes(const request *r) { return r->type == CLB_I64 ? 8 : 4; }

static clb_status check_list(clb_graph *g, const request *r, int i) {
  const clb_index_list *l = &r->list[i];
  const char *name = list_names[i];
  int64_t end;
  if (!l->host == !l->buffer)
    return FAIL(g, CLB_ERROR_ARGUMENT, "clb_graph_update: %s has %s; it must have one", name,
                l->host ? "both a host pointer and a buffer"
                        : "neither a host pointer nor a buffer");
  if (l->offset < 0)
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_update: the offset of %s is %" PRId64 "; it must not be negative", name,
                l->offset);
  if (l->host) return CLB_OK;
  if (l->buffer->ctx != g->ctx)
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_update: the buffer of %s belongs to another context", name);
  if (l->buffer >= g->buffer && l->buffer < g->buffer + CLB_GRAPH_BUFFERS)
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_update: the buffer of %s is the graph's own; copy it", name);
  if (__builtin_add_overflow(l->offset, r->n, &end) ||
      (uint64_t)end > l->buffer->memory.bytes / (uint64_t)index_bytes(r))
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_update: %" PRId64 " numbers of %d bytes from %" PRId64
                " on do not fit in the %" PRIu64 " bytes of %s",
                r->n, (int)index_bytes(r), l->offset, l->buffer->memory.bytes, name);
  return CLB_OK;
}

static clb_status check_request(clb_graph *g, const request *r) {
  clb_status s = clb_check_runs(g->ctx);
  if (s) return s;
  for (int i = 1; i >= 0; i--)
    if (!counts_something(r->n_rows[i]))
      return FAIL(g, CLB_ERROR_ARGUMENT, "clb_graph_update: %s is %" PRId64 "; it must be 0 ... %d",
                  count_names[i], r->n_rows[i], MAX_COUNT);
  if (!counts_something(r->n))
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_update: n_edges is %" PRId64 "; it must be 0 ... %d", r->n, MAX_COUNT);
  if (r->type != CLB_I32 && r->type != CLB_I64)
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_update: type is %d; it must be CLB_I32 or CLB_I64", (int)r->type);
  for (int i = 1; i >= 0 && !s && r->n; i--) s = check_list(g, r, i);
  return s;
}

/* Allocates a quarter more than requested, so that graphs that grow gradually do not allocate at
   every step. */
static clb_status grow(clb_graph *g, const request *r) {
  int64_t nodes = r->n_rows[0] > r->n_rows[1] ? r->n_rows[0] : r->n_rows[1], max = MAX_COUNT,
          nodes_before = g->nodes, edges_before = g->edges;
  g->whole = (g->ctx->disabled & CLB_SPLIT_ROWS) != 0;
  g->team_rows = g->lasts = false;
  if (nodes > g->nodes) g->nodes = nodes + nodes / 4 < max ? nodes + nodes / 4 : max;
  if (r->n > g->edges) g->edges = r->n + r->n / 4 < max ? r->n + r->n / 4 : max;
  clb_status s = reserve(g);
  if (s) g->nodes = nodes_before, g->edges = edges_before;
  return s;
}

/* The number at a position of a list, read from the caller's memory. */
static clb_status value_of(clb_graph *g, const request *r, int i, int64_t place, int64_t *value) {
  const clb_index_list *l = &r->list[i];
  clb_device *d = g->ctx->device;
  int32_t narrow = 0;
  bool wide = r->type == CLB_I64;
  clb_status s = CLB_OK;
  place += l->offset;
  if (l->buffer)
    s = d->backend->read(d, &l->buffer->memory, (uint64_t)(place * index_bytes(r)),
                         wide ? (void *)value : &narrow, (uint64_t)index_bytes(r));
  else if (wide) *value = ((const int64_t *)l->host)[place];
  else narrow = ((const int32_t *)l->host)[place];
  if (!wide) *value = narrow;
  return s;
}

/* Results of a device cannot be trusted more than the device. */
static clb_status say_broken(clb_graph *g, const request *r, int64_t edge) {
  return FAIL(g, CLB_ERROR_DRIVER,
              "clb_graph_update: %s says that edge %" PRId64 " of %" PRId64
              " is the first bad one, which it is not; kernels do not run, or not rightly, there",
              g->ctx->device->info.name, edge, r->n);
}

static clb_status say_bad(clb_graph *g, const request *r, int64_t edge) {
  for (int i = 1; i >= 0; i--) {
    int64_t value, n = r->n_rows[i];
    clb_status s = value_of(g, r, i, edge, &value);
    if (s) return s;
    if (value >= 0 && value < n) continue;
    if (!n)
      return FAIL(g, CLB_ERROR_ARGUMENT,
                  "clb_graph_update: %s[%" PRId64 "] is %" PRId64
                  "; %s is 0, so there must be no edges",
                  list_names[i], edge, value, count_names[i]);
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_update: %s[%" PRId64 "] is %" PRId64 "; it must be 0 ... %" PRId64,
                list_names[i], edge, value, n - 1);
  }
  if (r->list[0].host && r->list[1].host) return say_broken(g, r, edge);
  return FAIL(g, CLB_ERROR_ARGUMENT,
              "clb_graph_update: edge %" PRId64 " was bad and has been changed since", edge);
}

/* Reads the lists as int32 and waits for the index of the first invalid edge. */
static clb_status take_lists(clb_graph *g, const request *r) {
  clb_device *d = g->ctx->device;
  clb_buffer *b = g->buffer;
  const clb_buffer *from[2];
  int64_t offset[2];
  int32_t found[MAX_GROUPS], first = INT32_MAX;
  clb_status s = CLB_OK;
  for (int i = 0; i < 2 && !s; i++) {
    const clb_index_list *l = &r->list[i];
    from[i] = l->buffer ? l->buffer : &b[g->listed ? i : CLB_GRAPH_PAIRS + i];
    offset[i] = l->buffer ? l->offset : 0;
    if (l->host)
      s = d->backend->write(d, &from[i]->memory, 0,
                            (const char *)l->host + l->offset * index_bytes(r),
                            (uint64_t)(r->n * index_bytes(r)));
  }
  int step = r->type == CLB_I64 ? CLB_GRAPH_CHECK_WIDE : CLB_GRAPH_CHECK;
  cut c = cut_up(g, step, r->n);
  if (!s)
    s = LAUNCH(g, step, c.groups, clb_buffer_arg(from[1]), clb_i64_arg(offset[1]),
               clb_buffer_arg(from[0]), clb_i64_arg(offset[0]), clb_i64_arg(r->n),
               clb_i64_arg(c.chunk), clb_i32_arg(r->n_rows[1]), clb_i32_arg(r->n_rows[0]),
               clb_i32_arg(0), clb_buffer_arg(&b[CLB_GRAPH_SENDERS]),
               clb_buffer_arg(&b[CLB_GRAPH_RECEIVERS]), clb_buffer_arg(&b[CLB_GRAPH_FOUND]));
  if (!s) s = d->backend->read(d, &b[CLB_GRAPH_FOUND].memory, 0, found, (uint64_t)c.groups * 4);
  for (int64_t i = 0; i < c.groups && !s; i++)
    if (found[i] < first) first = found[i];
  if (s || first == INT32_MAX) return s;
  return first < 0 || first >= r->n ? say_broken(g, r, first) : say_bad(g, r, first);
}

static void set_counts(clb_graph *g, int64_t n_receivers, int64_t n_senders, int64_t n_edges) {
  g->n_rows[CLB_BY_RECEIVER] = n_receivers;
  g->n_rows[CLB_BY_SENDER] = n_senders;
  g->n_edges = n_edges;
  const int64_t counts[] = {n_receivers, n_senders, n_edges};
  g->counts = clb_hash_bytes(0, counts, sizeof counts);
  g->short_rows = false;
  g->team_rows = g->team_rows && g->lasts;
  g->split = g->whole ? INT32_MAX : g->least_split;
  while (g->split < CLB_GRAPH_SPLIT && n_edges / g->split > CLB_GRAPH_FILL) g->split *= 2;
}

clb_status clb_graph_reserve(clb_graph *g, int64_t n_senders, int64_t n_receivers,
                             int64_t n_edges) {
  const request r = {.n = n_edges, .n_rows = {n_receivers, n_senders}};
  set_counts(g, 0, 0, 0);
  return grow(g, &r);
}

static clb_status sort_both(clb_graph *g, int64_t n_senders, int64_t n_receivers, int64_t n_edges,
                            edge_order order) {
  set_counts(g, n_receivers, n_senders, n_edges);
  if (g->listed) return CLB_OK;
  clb_status s = sort(g, CLB_BY_RECEIVER, order);
  if (!s && (n_senders || !n_edges)) s = sort(g, CLB_BY_SENDER, order);
  if (s) set_counts(g, 0, 0, 0);
  return s;
}

clb_status clb_graph_sort(clb_graph *g, int64_t n_senders, int64_t n_receivers, int64_t n_edges) {
  return sort_both(g, n_senders, n_receivers, n_edges, n_senders ? BY_RECEIVER : IN_ANY_ORDER);
}

clb_status clb_graph_sort_keyed(clb_graph *g, int64_t n, int64_t n_edges) {
  return sort_both(g, n, n, n_edges, WITH_NULLS);
}

void clb_graph_expect(clb_graph *g, int64_t n, int64_t n_edges) { set_counts(g, n, n, n_edges); }

clb_status clb_graph_split_listed(clb_graph *g) {
  clb_status s = split_rows(g, CLB_BY_RECEIVER, &g->buffer[CLB_GRAPH_RECEIVERS], 1);
  if (!s) s = split_rows(g, CLB_BY_SENDER, &g->buffer[CLB_GRAPH_PAIRS], 1);
  if (s) set_counts(g, 0, 0, 0);
  return s;
}

clb_status clb_graph_find_splits(clb_graph *g, bool lasts) {
  clb_device *d = g->ctx->device;
  int32_t *start = NULL, longest = 0;
  clb_status s = CLB_OK;
  const bool small = g->split <= 4 * CLB_GRAPH_LEAST_SPLIT;
  const int64_t most = small ? CLB_GRAPH_TEAM * g->split : g->split;
  if (g->listed || !clb_graph_splits(g)) return s;
  for (int direction = 0; direction < 2; direction++)
    if (g->n_edges > most * g->n_rows[direction]) return s; /* some row must be longer */
  for (int direction = 0; direction < 2 && !s && longest <= most; direction++) {
    const int64_t n = g->n_rows[direction];
    const size_t bytes = ((size_t)n + 1) * sizeof *start;
    free(start);
    if (!(start = malloc(bytes))) s = FAIL(g, CLB_ERROR_MEMORY, "clb_graph: no memory");
    if (!s && n)
      s = d->backend->read(d, &g->buffer[CLB_GRAPH_ROW_START + direction].memory, 0, start, bytes);
    for (int64_t i = 0; i < n && !s; i++)
      if (start[i + 1] - start[i] > longest) longest = start[i + 1] - start[i];
  }
  free(start);
  g->short_rows = !s && longest <= g->split;
  g->team_rows = !s && small && !g->short_rows && longest <= most;
  g->lasts = lasts;
  if (!lasts || !g->short_rows) return s;
  g->short_rows = false;
  g->whole = !clb_graph_teams(g);
  if (g->whole) g->split = INT32_MAX;
  return s;
}

clb_status clb_graph_block(const clb_graph *listed, int64_t first, int64_t n_receivers, int64_t e0,
                           int64_t n_edges, clb_graph *block) {
  const clb_buffer *from = listed->buffer, *to = block->buffer;
  const int64_t n_senders = listed->n_rows[CLB_BY_SENDER];
  const cut c = cut_up(block, CLB_GRAPH_CHECK, n_edges);
  block->first_receiver = first;
  for (int i = 0; i < 2; i++) clb_memory_discard(&to[i].memory);
  const clb_status s =
      LAUNCH(block, CLB_GRAPH_CHECK, c.groups, clb_buffer_arg(&from[CLB_GRAPH_SENDERS]),
             clb_i64_arg(e0), clb_buffer_arg(&from[CLB_GRAPH_RECEIVERS]), clb_i64_arg(e0),
             clb_i64_arg(n_edges), clb_i64_arg(c.chunk), clb_i32_arg(n_senders),
             clb_i32_arg(n_receivers), clb_i32_arg(first), clb_buffer_arg(&to[CLB_GRAPH_SENDERS]),
             clb_buffer_arg(&to[CLB_GRAPH_RECEIVERS]), clb_buffer_arg(&to[CLB_GRAPH_FOUND]));
  return s ? s : clb_graph_sort(block, n_senders, n_receivers, n_edges);
}

clb_status clb_graph_update(clb_graph *g, int64_t n_senders, int64_t n_receivers, int64_t n_edges,
                            clb_index_type type, clb_index_list senders, clb_index_list receivers) {
  if (!g) return clb_null(__func__, "graph");
  const request r = {n_edges, {n_receivers, n_senders}, type, {receivers, senders}};
  clb_status s = clb_not_recording(g->ctx, "clb_graph_update");
  if (s) return s;
  set_counts(g, 0, 0, 0);
  s = check_request(g, &r);
  if (!s) s = grow(g, &r);
  if (!s && n_edges) s = take_lists(g, &r);
  return s ? s : sort_both(g, n_senders, n_receivers, n_edges, IN_ANY_ORDER);
}

/* ---- access to the lists ---- */

clb_status clb_graph_sorted(clb_graph *g, clb_graph_order order, clb_sorted_edges *sorted) {
  if (!g) return clb_null(__func__, "graph");
  if (order != CLB_BY_RECEIVER && order != CLB_BY_SENDER)
    return FAIL(g, CLB_ERROR_ARGUMENT,
                "clb_graph_sorted: order is %d; it must be CLB_BY_RECEIVER or CLB_BY_SENDER",
                (int)order);
  if (!sorted) return FAIL(g, CLB_ERROR_ARGUMENT, "clb_graph_sorted: sorted is NULL");
  clb_buffer *b = g->buffer + order;
  *sorted = (clb_sorted_edges){g->n_rows[order], g->n_edges, &b[CLB_GRAPH_ROW_START],
                               &b[CLB_GRAPH_EDGE], &b[CLB_GRAPH_OTHER]};
  return CLB_OK;
}

clb_status clb_graph_lists(clb_graph *g, clb_buffer **senders, clb_buffer **receivers) {
  if (!g) return clb_null(__func__, "graph");
  if (!senders || !receivers)
    return FAIL(g, CLB_ERROR_ARGUMENT, "clb_graph_lists: %s is NULL",
                senders ? "receivers" : "senders");
  *senders = &g->buffer[CLB_GRAPH_SENDERS];
  *receivers = &g->buffer[CLB_GRAPH_RECEIVERS];
  return CLB_OK;
}
