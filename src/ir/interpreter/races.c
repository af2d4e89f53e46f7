/* src/ir/interpreter/races.c - race detection: who read and wrote each element since the last
   barrier. For each element the last write and the last read are recorded. For several unordered
   accesses (reads, or ATOMIC_ADDs), only the fact that there were several lanes or sub-groups is
   recorded: an access that conflicts with one of them conflicts with several. An access ordered
   after the last write is ordered after all earlier ones. */
#include "src/ir/interpreter/races.h"

#include <stdlib.h>
#include <string.h>

enum {
  MANY = 0xfff,     /* lanes, or sub-groups */
  ATOMIC = 1 << 24, /* in `who` of a write: by ATOMIC_ADD */
  ALIKE = 1 << 25,  /* all lanes of the sub-group write the same */
  PAGE = 512,       /* elements with contiguous records */
};
#define IN_FLIGHT UINT32_MAX
#define MANY_GROUPS UINT32_MAX

typedef struct {
  uint64_t number; /* of the page, plus one; 0: an empty slot of the table */
  ir_shadow *first;
} page;

struct ir_races {
  const ir_kernel *k;
  /* LOCAL arrays */
  ir_shadow **local; /* by instruction; NULL: a buffer */
  ir_shadow *locals;
  uint32_t time, since_group, begun, *since; /* time of the last barrier: any, of the group, before
                                                this group, of each sub-group */
  /* buffers */
  char **base;       /* by instruction; NULL: accesses are not checked */
  page *table, last; /* open addressing */
  size_t n_pages, capacity;
  int unit;       /* bytes per record */
  uint32_t group; /* number of groups so far */
};

static uint32_t who(int32_t subgroup, int32_t lane) {
  return (uint32_t)subgroup << 12 | (uint32_t)lane;
}
static uint32_t lane_of(uint32_t w) { return w & MANY; }
static uint32_t subgroup_of(uint32_t w) { return w >> 12 & MANY; }

/* ---- pages of buffers ---- */

static size_t place_of(const ir_races *r, uint64_t number) {
  size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (r->capacity - 1);
  while (r->table[at].number && r->table[at].number != number) at = (at + 1) & (r->capacity - 1);
  return at;
}

static bool grow(ir_races *r) {
  page *old = r->table;
  size_t n = r->capacity;
  page *table = calloc(n ? 2 * n : 64, sizeof *table);
  if (!table) return false;
  r->table = table;
  r->capacity = n ? 2 * n : 64;
  for (size_t i = 0; i < n; i++)
    if (old[i].number) r->table[place_of(r, old[i].number)] = old[i];
  free(old);
  return true;
}

/* The record of a unit of memory; NULL: no memory. */
static ir_shadow *record(ir_races *r, uint64_t unit) {
  uint64_t number = unit / PAGE + 1;
  if (r->last.number != number) {
    if (2 * r->n_pages >= r->capacity && !grow(r)) return NULL;
    page *p = &r->table[place_of(r, number)];
    if (!p->number) {
      if (!(p->first = calloc(PAGE, sizeof *p->first))) return NULL;
      p->number = number;
      r->n_pages++;
    }
    r->last = *p;
  }
  return &r->last.first[unit % PAGE];
}

/* ---- begin and end ---- */

/* Finds the buffers that are written, and those that start at the same address. */
static void find_buffers(ir_races *r, const ir_arg *arg) {
  const ir_kernel *k = r->k;
  const ir_arg *a = arg;
  r->unit = 8;
  for (int32_t v = 0; v < k->n; v++) {
    if (k->ins[v].op == IR_SCALAR) a++;
    if (k->ins[v].op == IR_BUFFER) r->base[v] = (a++)->p;
  }
  for (int32_t v = 0; v < k->n; v++) {
    bool counts = false;
    for (int32_t w = 0; w < k->n && r->base[v] && !counts; w++)
      counts = k->ins[w].op == IR_BUFFER && k->ins[w].imm && r->base[w] == r->base[v];
    if (!counts) r->base[v] = NULL;
    else if (ir_type_bytes((ir_type)k->ins[v].element) < r->unit)
      r->unit = ir_type_bytes((ir_type)k->ins[v].element);
  }
}

ir_races *ir_races_begin(const ir_kernel *k, const ir_arg *arg) {
  ir_races *r = calloc(1, sizeof *r);
  size_t elements = 0, n = (size_t)k->n + 1;
  for (int32_t v = 0; v < k->n; v++)
    elements += k->ins[v].op == IR_LOCAL ? (size_t)k->ins[v].imm : 0;
  if (!r) return NULL;
  r->k = k;
  r->local = calloc(n, sizeof *r->local);
  r->base = calloc(n, sizeof *r->base);
  r->locals = calloc(elements + 1, sizeof *r->locals);
  r->since = calloc((size_t)k->subgroups, sizeof *r->since);
  if (!r->local || !r->base || !r->locals || !r->since) {
    ir_races_free(r);
    return NULL;
  }
  elements = 0;
  for (int32_t v = 0; v < k->n; v++) {
    if (k->ins[v].op != IR_LOCAL) continue;
    r->local[v] = r->locals + elements;
    elements += (size_t)k->ins[v].imm;
  }
  find_buffers(r, arg);
  return r;
}

void ir_races_free(ir_races *r) {
  if (!r) return;
  for (size_t i = 0; i < r->capacity; i++) free(r->table[i].first);
  free(r->table);
  free(r->local);
  free(r->base);
  free(r->locals);
  free(r->since);
  free(r);
}

/* ---- barriers ---- */

void ir_races_barrier(ir_races *r, int32_t subgroup, bool group) {
  r->time++;
  if (group) r->since_group = r->time;
  for (int32_t g = 0; g < r->k->subgroups; g++)
    if (group || g == subgroup) r->since[g] = r->time;
}

void ir_races_group(ir_races *r) {
  r->group++;
  ir_races_barrier(r, 0, true);
  r->begun = r->time;
}

/* ---- one access ---- */

/* The current accessor, in terms of the element's records. */
typedef struct {
  const ir_races *r;
  bool local;
  uint32_t time, who;
  int32_t by;
} actor;

/* Whether an earlier access is ordered before the current one, for all lanes of its sub-group, */
static bool ordered(const actor *a, const ir_access *x) {
  if (!x->time) return true;
  if (!a->local || x->time == IN_FLIGHT) return false;
  return x->time < a->r->since_group ||
         (subgroup_of(x->who) == subgroup_of(a->who) && x->time < a->r->since[subgroup_of(a->who)]);
}

/* or by the same lane. */
static bool own(const actor *a, const ir_access *x) {
  return (x->who & ~(uint32_t)(ATOMIC | ALIKE)) == a->who && lane_of(a->who) != MANY &&
         (a->local ? x->time != IN_FLIGHT : x->time == a->time);
}

/* If all lanes wrote the same number, each of them may read it, and may write it again together
   with all others. */
static bool follows(const actor *a, const ir_access *x, ir_access_kind doing) {
  bool same = x->who & ALIKE && subgroup_of(x->who) == subgroup_of(a->who) &&
              (a->local ? x->time != IN_FLIGHT : x->time == a->time);
  return same && (doing == IR_READS || (doing == IR_WRITES && lane_of(a->who) == MANY));
}

/* Records the access together with those of its kind that are not ordered before it. */
static void add(const actor *a, ir_access *x, uint32_t mark) {
  uint32_t all = a->who;
  bool groups = !a->local && x->time && x->time != a->time;
  if (!ordered(a, x) && !own(a, x)) {
    bool same = subgroup_of(x->who) == subgroup_of(all);
    all = same ? who((int32_t)subgroup_of(all),
                     lane_of(x->who) == lane_of(all) ? (int32_t)lane_of(all) : MANY)
               : who(MANY, MANY);
  }
  *x = (ir_access){groups ? MANY_GROUPS : a->time, all | mark, a->by};
}

static bool allowed(const actor *a, ir_access_kind doing, ir_shadow *s, const ir_access **with) {
  *with = &s->write;
  if (!ordered(a, &s->write) && !own(a, &s->write) && !follows(a, &s->write, doing) &&
      !(doing == IR_ADDS && s->write.who & ATOMIC))
    return false;
  *with = &s->read;
  if (doing != IR_READS && !ordered(a, &s->read) && !own(a, &s->read)) return false;
  bool plain = doing == IR_ADDS && !(s->write.who & ATOMIC) &&
               !ordered(a, &s->write); /* the lane's own: others still conflict with it */
  if (doing == IR_READS) add(a, &s->read, 0);
  else if (doing == IR_ADDS && !plain) add(a, &s->write, ATOMIC);
  else if (doing == IR_WRITES)
    s->write =
        (ir_access){a->time, a->who | (lane_of(a->who) == MANY ? (uint32_t)ALIKE : 0), a->by};
  return true;
}

static int32_t one(uint32_t x) { return x == MANY ? IR_NONE : (int32_t)x; }

static bool conflict(const actor *a, const ir_access *with, bool wrote, int64_t index,
                     ir_conflict *c) {
  *c = (ir_conflict){.index = index,
                     .lane = one(lane_of(a->who)),
                     .by = with->by,
                     .by_lane = one(lane_of(with->who)),
                     .by_subgroup = one(subgroup_of(with->who)),
                     .wrote = wrote,
                     .in_flight = a->local && with->time == IN_FLIGHT};
  if (!a->local)
    c->by_group = with->time == MANY_GROUPS ? IR_NONE : (int32_t)(a->time - with->time);
  return false;
}

static bool element(ir_races *r, const actor *a, ir_val array, ir_access_kind doing, int64_t index,
                    ir_conflict *c) {
  const ir_access *with;
  if (a->local) {
    ir_shadow *s = &r->local[array][index];
    if (doing != IR_WRITES && s->write.time < r->begun) {
      *c = (ir_conflict){.index = index, .lane = one(lane_of(a->who)), .unwritten = true};
      return false;
    }
    return allowed(a, doing, s, &with) || conflict(a, with, with == &s->write, index, c);
  }
  int bytes = ir_type_bytes((ir_type)r->k->ins[array].element), n = bytes / r->unit;
  uint64_t first =
      ((uint64_t)(uintptr_t)r->base[array] + (uint64_t)index * (uint64_t)bytes) / (uint64_t)r->unit;
  for (int i = 0; i < n; i++) {
    ir_shadow *s = record(r, first + (uint64_t)i);
    if (!s) return c->by = IR_NONE, false;
    if (!allowed(a, doing, s, &with)) return conflict(a, with, with == &s->write, index, c);
  }
  return true;
}

bool ir_races_access(ir_races *r, int32_t v, int32_t subgroup, ir_val array, ir_access_kind doing,
                     const int64_t *at, bool once, int32_t width, ir_conflict *c) {
  actor a = {.r = r, .local = r->local[array] != NULL, .by = v};
  int32_t lanes = once ? 1 : r->k->lanes;
  if (!a.local && !r->base[array]) return true;
  a.time = a.local ? r->time : r->group;
  for (int32_t l = 0; l < lanes; l++) {
    if (at[l] < 0) continue;
    a.who = who(subgroup, once && r->k->lanes > 1 ? MANY : l);
    for (int32_t w = 0; w < width; w++)
      if (!element(r, &a, array, doing, at[l] + w, c)) return false;
  }
  return true;
}

ir_shadow *ir_races_send(ir_races *r, int32_t v, int32_t subgroup, int32_t lane, ir_val local,
                         int64_t at, int32_t width, ir_conflict *c) {
  actor a = {.r = r, .local = true, .time = r->time, .who = who(subgroup, lane), .by = v};
  for (int32_t w = 0; w < width; w++) {
    if (!element(r, &a, local, IR_WRITES, at + w, c)) return NULL;
    r->local[local][at + w].write.time = IN_FLIGHT;
  }
  return &r->local[local][at];
}

void ir_races_arrive(ir_races *r, ir_shadow *at, int32_t width) {
  for (int32_t w = 0; w < width; w++) at[w].write.time = r->time;
}
