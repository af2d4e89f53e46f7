/* kernels/convolution/partition.c - how a convolution's channels and paths are divided among
   sub-groups. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convolution/parts.h"

/* Components of a term of x and of the terms of z on its paths. */
static int components_of(const clb_tensor_product_problem *tp, int term, bool twice) {
  int n = 0;
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].in1 == term) n += clb_width(&tp->z.term[tp->path[q].out]);
  return clb_width(&tp->x.term[term]) + (twice ? 2 * n : n);
}

/* Terms of x that share a term of z, directly or through others, are one item; it may be split
   by terms of z, and then each of its items needs these terms of x. */
typedef struct {
  int n, of_x[CLB_MAX_TERMS], of_z[CLB_MAX_TERMS], mul[CLB_MAX_TERMS], components[CLB_MAX_TERMS];
} items;

static void add_to_item(const clb_tensor_product_problem *tp, items *it, int term, int item) {
  it->of_x[term] = item;
  for (int q = 0; q < tp->n_paths; q++)
    for (int other = 0; other < tp->n_paths && tp->path[q].in1 == term; other++)
      if (tp->path[other].out == tp->path[q].out && it->of_x[tp->path[other].in1] < 0)
        add_to_item(tp, it, tp->path[other].in1, item);
}

static void find_items(const clb_tensor_product_problem *tp, bool twice, items *it) {
  *it = (items){0};
  for (int t = 0; t < CLB_MAX_TERMS; t++) it->of_x[t] = -1;
  for (int t = 0; t < tp->x.n; t++) {
    if (!tp->x.term[t].mul) continue;
    if (it->of_x[t] < 0) add_to_item(tp, it, t, it->n++);
    it->mul[it->of_x[t]] = tp->x.term[t].mul;
    it->components[it->of_x[t]] += components_of(tp, t, twice);
  }
  for (int t = 0; t < CLB_MAX_TERMS; t++) it->of_z[t] = -1;
  for (int q = 0; q < tp->n_paths; q++) it->of_z[tp->path[q].out] = it->of_x[tp->path[q].in1];
}

/* Splits items above the limit: terms of z in their order, in about equal shares. */
static void split_items(const clb_tensor_product_problem *tp, int limit, items *it) {
  const int all = it->n;
  for (int item = 0; item < all; item++) {
    int of_x = 0, of_z = 0, had = 0, shares = 1, now = item;
    for (int t = 0; t < tp->x.n; t++)
      if (tp->x.term[t].mul && it->of_x[t] == item) of_x += clb_width(&tp->x.term[t]);
    for (int t = 0; t < tp->z.n; t++)
      if (it->of_z[t] == item) of_z += clb_width(&tp->z.term[t]);
    while (of_x + (of_z + shares - 1) / shares > limit && shares < of_z) shares++;
    for (int t = 0; t < tp->z.n && shares > 1 && of_x < limit; t++) {
      const int width = clb_width(&tp->z.term[t]);
      if (it->of_z[t] != item) continue;
      if (had && (had + width) * shares > of_z + width * shares / 2 && it->n < CLB_MAX_TERMS) {
        it->components[now] = of_x + had;
        now = it->n++;
        it->mul[now] = it->mul[item];
        had = 0;
      }
      it->of_z[t] = now;
      had += width;
      it->components[now] = of_x + had;
    }
  }
}

enum { MIN_LANES = 4 }; /* of a slice */

/* Items may share a part if they have the same multiplicity and the same number of channels per
 * lane. */
typedef struct {
  int mul, per_lane;
} lane_shape;

/* Whether all lanes of a sub-group, or of its slices, get the same number of channels. */
static bool fills_lanes(int mul, int per_lane, const clb_part_limits *l) {
  const int lanes = mul / per_lane;
  if (mul % (l->lanes * per_lane) == 0) return true;
  return mul % per_lane == 0 && lanes >= MIN_LANES && lanes < l->lanes && l->lanes % lanes == 0 &&
         l->lanes / lanes <= l->slices;
}

/* As many channels per lane as the limit of components allows for the item. */
static lane_shape shape_of(const items *it, int item, const clb_part_limits *l) {
  lane_shape s = {it->mul[item], 1};
  for (int t = 2; t <= l->per_lane; t *= 2)
    if (fills_lanes(s.mul, t, l) && it->components[item] * t <= l->components) s.per_lane = t;
  return s;
}

/* Distributes the items `own` over n bins, the largest first, each into the emptiest bin; returns
   the components of the fullest. */
static int fill(const items *it, const bool *own, int n, int *bin) {
  int in[CLB_MAX_TERMS] = {0}, most = 0;
  bool done[CLB_MAX_TERMS] = {false};
  for (;;) {
    int next = -1, to = 0;
    for (int i = 0; i < it->n; i++)
      if (own[i] && !done[i] && (next < 0 || it->components[i] > it->components[next])) next = i;
    if (next < 0) return most;
    for (int b = 1; b < n; b++)
      if (in[b] < in[to]) to = b;
    done[next] = true;
    bin[next] = to;
    in[to] += it->components[next];
    if (in[to] > most) most = in[to];
  }
}

/* Makes the parts of the items of one shape, as few as the limit allows. */
static void make_parts(const items *it, lane_shape s, const clb_part_limits *l, clb_parts *parts,
                       int *part_of) {
  int bin[CLB_MAX_TERMS], count = 0, n = 1;
  bool own[CLB_MAX_TERMS];
  for (int i = 0; i < it->n; i++) {
    lane_shape other = shape_of(it, i, l);
    own[i] = other.mul == s.mul && other.per_lane == s.per_lane;
    count += own[i];
  }
  if (!count) return;
  while (fill(it, own, n, bin) * s.per_lane > l->components && n < count) n++;
  for (int i = 0; i < it->n; i++)
    if (own[i]) part_of[i] = parts->n + bin[i];
  for (int b = 0; b < n; b++)
    parts->mul[parts->n] = s.mul, parts->per_lane[parts->n++] = s.per_lane;
}

clb_part_limits clb_part_limits_of(const clb_problem *p, const clb_schedule *s) {
  const clb_convolution_settings *c = &s->convolution;
  const bool z = p->pass == CLB_FORWARD || p->tensor_product.gradients & CLB_OPERAND_Z;
  return (clb_part_limits){.components = c->components_per_part,
                           .per_lane = c->channels_per_lane,
                           .lanes = s->lanes,
                           .slices = c->edges_per_subgroup,
                           .divided = c->roles && z && !c->one_walk,
                           .ordered = c->roles,
                           .twice = c->one_walk == 1};
}

bool clb_part_reads(const clb_tensor_product_problem *tp, const clb_parts *parts, int part, int x) {
  bool some = parts->of_x[x] == part;
  for (int q = 0; q < tp->n_paths; q++)
    some |= tp->path[q].in1 == x && parts->of_z[tp->path[q].out] == part;
  return some;
}

/* Parts with the most arithmetic come first, so that the last ones to start are short. */
static void order_parts(const clb_tensor_product_problem *tp, clb_parts *parts) {
  int64_t weight[CLB_MAX_TERMS] = {0};
  clb_parts old = *parts;
  for (int q = 0; q < tp->n_paths; q++) {
    int part = parts->of_z[tp->path[q].out];
    if (part >= 0)
      weight[part] += (int64_t)clb_form_path_size(tp, &tp->path[q]) * parts->per_lane[part];
  }
  for (int to = 0; to < parts->n; to++) {
    int next = 0;
    for (int p = 1; p < parts->n; p++)
      if (weight[p] > weight[next]) next = p;
    weight[next] = -1;
    parts->mul[to] = old.mul[next];
    parts->per_lane[to] = old.per_lane[next];
    for (int t = 0; t < CLB_MAX_TERMS; t++) {
      if (old.of_x[t] == next) parts->of_x[t] = to;
      if (old.of_z[t] == next) parts->of_z[t] = to;
    }
  }
}

void clb_parts_make(const clb_tensor_product_problem *tp, const clb_part_limits *l,
                    clb_parts *parts) {
  items it;
  int part_of[CLB_MAX_TERMS], largest = INT32_MAX;
  find_items(tp, l->twice, &it);
  if (l->divided) split_items(tp, l->components, &it);
  *parts = (clb_parts){0};
  for (;;) {
    int mul = 0;
    for (int i = 0; i < it.n; i++)
      if (it.mul[i] < largest && it.mul[i] > mul) mul = it.mul[i];
    if (!mul) break;
    for (int per_lane = CLB_MAX_PER_LANE; per_lane; per_lane /= 2)
      make_parts(&it, (lane_shape){mul, per_lane}, l, parts, part_of);
    largest = mul;
  }
  for (int t = 0; t < CLB_MAX_TERMS; t++)
    parts->of_x[t] = it.of_x[t] < 0 ? -1 : part_of[it.of_x[t]],
    parts->of_z[t] = it.of_z[t] < 0 ? -1 : part_of[it.of_z[t]];
  if (l->ordered) order_parts(tp, parts);
}

void clb_parts_of_z(const clb_tensor_product_problem *tp, const clb_part_limits *l,
                    clb_parts *parts) {
  int source[CLB_MAX_TERMS];
  *parts = (clb_parts){0};
  for (int t = 0; t < CLB_MAX_TERMS; t++) parts->of_x[t] = parts->of_z[t] = source[t] = -1;
  for (int q = tp->n_paths - 1; q >= 0; q--) source[tp->path[q].out] = tp->path[q].in1;
  for (int x = 0; x < tp->x.n;
       x++) { /* terms of z whose first path is from the same x stay together */
    int n = 0, all = 0, had = 0, share;
    const int per_lane = tp->x.term[x].mul % (l->lanes * l->per_lane) ? 1 : l->per_lane,
              most = l->components / per_lane;
    for (int t = 0; t < tp->z.n; t++)
      all += source[t] == x && tp->z.term[t].mul ? clb_width(&tp->z.term[t]) : 0;
    share = all ? (all + (all + most - 1) / most - 1) / ((all + most - 1) / most) : 0;
    for (int t = 0; t < tp->z.n; t++) {
      if (source[t] != x || !tp->z.term[t].mul) continue;
      if (!n || had >= share || had + clb_width(&tp->z.term[t]) > most) {
        parts->mul[parts->n] = tp->z.term[t].mul;
        parts->per_lane[parts->n++] = per_lane;
        had = 0;
        n++;
      }
      parts->of_z[t] = parts->n - 1;
      had += clb_width(&tp->z.term[t]);
    }
  }
}

static int blocks_of(int mul, int lanes) { return (mul + lanes - 1) / lanes; }

int clb_slice_width(const clb_schedule *s, int mul, int per_lane) {
  int width = s->lanes;
  while (width % 2 == 0 && width / 2 * per_lane >= mul &&
         s->lanes / width < s->convolution.edges_per_subgroup)
    width /= 2;
  return width;
}

int clb_parts_blocks(const clb_parts *parts, const clb_schedule *s) {
  int n = 0;
  for (int p = 0; p < parts->n; p++)
    n += blocks_of(parts->mul[p],
                   parts->per_lane[p] * clb_slice_width(s, parts->mul[p], parts->per_lane[p]));
  return n;
}

/* Products |c| y of coefficients and elements of y that paths before compute already. */
typedef struct {
  double size;
  int y;
} product;
typedef struct {
  product *all;
  int n, most;
} product_list;

static bool has_product(const product_list *k, double size, int y) {
  for (int i = 0; i < k->n; i++)
    if (k->all[i].y == y && k->all[i].size == size) return true;
  return size == 1;
}

/* `size`, rounded to 1 or to one that is in the list if it differs only by rounding errors. */
static double round_to(const product_list *k, double size) {
  if (fabs(size - 1) < 1e-14) return 1;
  for (int i = 0; i < k->n; i++)
    if (fabs(size - k->all[i].size) < 1e-14 * size) return k->all[i].size;
  return size;
}

static void add_products(product_list *k, const clb_entry *e, int n, int y, double scale) {
  for (int q = 0; q < n; q++) {
    double size = round_to(k, fabs(e[q].c) / scale);
    if (!has_product(k, size, y + e[q].j) && k->n < k->most)
      k->all[k->n++] = (product){size, y + e[q].j};
  }
}

/* Number of products that are new with this scale. */
static int count_new(product_list *k, const clb_entry *e, int n, int y, double scale) {
  int before = k->n;
  add_products(k, e, n, y, scale);
  int count = k->n - before;
  k->n = before;
  return count;
}

/* Whether the same absolute value comes earlier, among the coefficients or in the list: each is
   tried only once. */
static bool seen_coefficient(const clb_entry *e, int q) {
  for (int i = 0; i < q; i++)
    if (fabs(e[i].c) == fabs(e[q].c)) return true;
  return false;
}
static bool seen_size(const product_list *k, int at) {
  for (int i = 0; i < at; i++)
    if (k->all[i].size == k->all[at].size) return true;
  return false;
}

/* The scale with which the fewest products are new, of those that make one coefficient 1 or a size
   that is in the list. */
static double best_scale(product_list *k, const clb_entry *e, int n, int y) {
  double best = n ? fabs(e[0].c) : 1;
  int fewest = count_new(k, e, n, y, best), sizes = k->n;
  for (int q = 0; q < n; q++)
    for (int i = -1; i < sizes; i++) {
      if (seen_coefficient(e, q) || (i >= 0 && seen_size(k, i))) continue;
      double scale = fabs(e[q].c) / (i < 0 ? 1 : k->all[i].size);
      int count = count_new(k, e, n, y, scale);
      if (count < fewest) fewest = count, best = scale;
    }
  return best;
}

/* Chooses the scale of a path's term of z, and adds the products of the path to the list. */
static void scale_term(product_list *products, const clb_entry *e, int n, int y, double *scale) {
  double all = scale[0];
  if (all == 0) all = n <= 64 ? best_scale(products, e, n, y) : fabs(e[0].c);
  for (int k = 0; k < MAX_M; k++) scale[k] = all;
  add_products(products, e, n, y, all);
}

/* The scale of each component: the largest coefficient that starts a sum a_ij (path.h), so that
   this first term needs no multiplication. */
static void scale_components(const clb_entry *e, int n, double *scale) {
  bool started[MAX_M][MAX_M] = {{false}};
  for (int q = 0; q < n; q++) {
    if (!started[e[q].i][e[q].j]) scale[e[q].k] = fmax(scale[e[q].k], fabs(e[q].c));
    started[e[q].i][e[q].j] = true;
  }
}

bool clb_z_scales(const clb_tensor_product_problem *tp, const clb_parts *parts, bool pairs,
                  double scale[][MAX_M]) {
  enum { MOST = 4096 };
  double *symbol = malloc(sizeof *symbol * MAX_M * MAX_M * MAX_M);
  clb_entry *e = malloc(sizeof *e * MAX_M * MAX_M * MAX_M);
  product_list products = {malloc(sizeof *products.all * MOST), 0, MOST};
  const bool memory = symbol && e && products.all;
  memset(scale, 0, sizeof *scale * CLB_MAX_TERMS);
  for (int part = 0; memory && part < parts->n; part++) {
    products.n = 0; /* parts do not share products */
    for (int q = 0; q < tp->n_paths; q++) {
      const clb_path *p = &tp->path[q];
      if (parts->of_z[p->out] != part) continue;
      int n = clb_form_entries(tp, p, symbol, e);
      if (pairs) scale_components(e, n, scale[p->out]);
      else scale_term(&products, e, n, tp->y.term[p->in2].at, scale[p->out]);
    }
  }
  for (int t = 0; t < CLB_MAX_TERMS; t++)
    for (int k = 0; k < MAX_M; k++)
      if (scale[t][k] == 0) scale[t][k] = 1;
  free(products.all);
  free(symbol);
  free(e);
  return memory;
}

int clb_wanted_output(const clb_form_builder *f, int slot) {
  for (int o = 0; o < f->form->n_outputs; o++)
    if (f->form->output[o].slot == slot && clb_form_wanted(f, o)) return o;
  return -1;
}
