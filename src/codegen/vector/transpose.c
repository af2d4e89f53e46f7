/* src/codegen/vector/transpose.c - lanes at a constant stride in memory, as C with vector
   extensions: get_E_W and put_E_W.

   Storing W values per lane is a transpose: registers c = 0 ... W-1 hold column c of all L lanes;
   afterwards each register holds L/W pieces, a piece being W adjacent columns of one lane. It takes
   log2(W) stages, each a pair of two-operand shuffles on the registers that differ in one bit of
   their number. Loading runs the stages' inverses backwards. */
#include "src/codegen/vector/vector.h"

enum { MAX_LANES = CLB_VECTOR_MAX_LANES };

typedef struct {
  int lanes, width; /* width: a power of two, at most lanes */
  int granule; /* elements in 16 bytes, within which processors interleave most cheaply; at most
                  lanes */
  ir_type element;
  clb_text *out;
} transpose;

static int log2_of(int n) {
  int l = 0;
  while (1 << (l + 1) <= n) l++;
  return l;
}

/* ---- positions of lanes ---- */

/* Indices into the 2 L lanes of a pair (a, b) that make its two results.
   Inside a granule blocks of 2^stage are interleaved (x86: unpck). Across granules, if all are to
   move, the even ones of a and b make one result and the odd ones the other (x86: vshuff32x4);
   otherwise the blocks of 2^stage are exchanged as in a butterfly. */
static void shuffle_of(const transpose *t, int stage, int *low, int *high) {
  int n = t->granule, inner = log2_of(n), all = log2_of(t->lanes) == log2_of(t->width);
  for (int p = 0; p < t->lanes; p++) {
    int block = 1 << stage, granule = p / n, q = p % n, from, other;
    if (stage < inner) {
      from = granule * n + q / block / 2 * block + q % block + q / block % 2 * t->lanes;
      other = from + n / 2;
    } else if (all) {
      int half = t->lanes / 2;
      from = p % half / n * 2 * n + q + p / half * t->lanes;
      other = from + n;
    } else {
      from = p & block ? (p ^ block) + t->lanes : p;
      other = from + block;
    }
    low[p] = from;
    high[p] = other;
  }
}

static void invert(int lanes, const int *low, const int *high, int *first, int *second) {
  for (int p = 0; p < lanes; p++) {
    (low[p] < lanes ? first : second)[low[p] % lanes] = p;
    (high[p] < lanes ? first : second)[high[p] % lanes] = p + lanes;
  }
}

/* lane[c][p]: the lane whose element is at position p of register c after the stages of a store. */
static void follow(const transpose *t, int lane[][MAX_LANES]) {
  int low[MAX_LANES], high[MAX_LANES], a[MAX_LANES], b[MAX_LANES];
  for (int c = 0; c < t->width; c++)
    for (int p = 0; p < t->lanes; p++) lane[c][p] = p;
  for (int stage = 0; 1 << stage < t->width; stage++) {
    shuffle_of(t, stage, low, high);
    for (int c = 0; c < t->width; c++) {
      int d = c | 1 << stage;
      if (d == c) continue;
      for (int p = 0; p < t->lanes; p++) {
        a[p] = lane[low[p] < t->lanes ? c : d][low[p] % t->lanes];
        b[p] = lane[high[p] < t->lanes ? c : d][high[p] % t->lanes];
      }
      for (int p = 0; p < t->lanes; p++) lane[c][p] = a[p], lane[d][p] = b[p];
    }
  }
}

/* ---- text ---- */

static void indices(const int *index, int n, clb_text *out) {
  for (int p = 0; p < n; p++) clb_text_add(out, ", %d", index[p]);
}

/* Computes the registers rS_c of the next stage from those of stage S; `back`: for a load. */
static void stages(const transpose *t, bool back) {
  const char *s = clb_vector_storage(t->element);
  int n = log2_of(t->width);
  for (int i = 0; i < n; i++) {
    int low[MAX_LANES], high[MAX_LANES], first[MAX_LANES], second[MAX_LANES],
        stage = back ? n - 1 - i : i;
    shuffle_of(t, stage, low, high);
    invert(t->lanes, low, high, first, second);
    for (int c = 0; c < t->width; c++) {
      int a = c & ~(1 << stage), b = c | 1 << stage;
      clb_text_add(t->out, "    const %sv r%d_%d = SHUF(%sv, %si, r%d_%d, r%d_%d", s, i + 1, c, s,
                   s, i, a, i, b);
      indices(c == a ? (back ? first : low) : (back ? second : high), t->lanes, t->out);
      clb_text_add(t->out, ");\n");
    }
  }
}

/* The columns of lane r from `first` on, as an lvalue. */
static void piece_of(const transpose *t, const char *constant, int r, int first) {
  clb_text_add(t->out, "*(%s%s_%d *)(a + %d * s + %d)", constant, clb_vector_storage(t->element),
               t->width, r, first);
}

static void store_pieces(const transpose *t, int first) {
  int lane[IR_MAX_WIDTH][MAX_LANES], n = t->width;
  const char *s = clb_vector_storage(t->element);
  follow(t, lane);
  for (int r = 0; r < t->lanes; r++) {
    for (int at = 0; at < n * t->lanes; at += n) {
      int c = at / t->lanes, p = at % t->lanes;
      if (lane[c][p] != r) continue;
      clb_text_add(t->out, "    ");
      piece_of(t, "", r, first);
      clb_text_add(t->out, " = PIECE(%s_%d, %sv, r%d_%d", s, n, s, log2_of(n), c);
      for (int i = 0; i < n; i++) clb_text_add(t->out, ", %d", p + i);
      clb_text_add(t->out, ");\n");
    }
  }
}

/* Concatenates the pieces of lanes[0], lanes[1], ..., n elements in total. */
static void join(const transpose *t, const int *lanes, int n, int first) {
  if (n == t->width) {
    piece_of(t, "const ", *lanes, first);
    return;
  }
  clb_text_add(t->out, "JOIN(%s_%d, ", clb_vector_storage(t->element), n);
  join(t, lanes, n / 2, first);
  clb_text_add(t->out, ", ");
  join(t, lanes + n / 2 / t->width, n / 2, first);
  for (int p = 0; p < n; p++) clb_text_add(t->out, ", %d", p);
  clb_text_add(t->out, ")");
}

static void load_pieces(const transpose *t, int first) {
  int lane[IR_MAX_WIDTH][MAX_LANES], whose[MAX_LANES];
  follow(t, lane);
  for (int c = 0; c < t->width; c++) {
    int n = 0;
    for (int p = 0; p < t->lanes; p += t->width) whose[n++] = lane[c][p];
    clb_text_add(t->out, "    const %sv r0_%d = ", clb_vector_storage(t->element), c);
    join(t, whose, t->lanes, first);
    clb_text_add(t->out, ";\n");
  }
}

/* ---- one column: no transpose ---- */

static void store_column(const transpose *t, int first) {
  for (int r = 0; r < t->lanes; r++)
    clb_text_add(t->out, "    a[%d * s + %d] = r0_0[%d];\n", r, first, r);
}

static void load_column(const transpose *t, int first) {
  clb_text_add(t->out, "    const %sv r0_0 = {", clb_vector_storage(t->element));
  for (int r = 0; r < t->lanes; r++)
    clb_text_add(t->out, "%sa[%d * s + %d]", r ? ", " : "", r, first);
  clb_text_add(t->out, "};\n");
}

/* ---- contiguous lanes (s == W): the W registers are W L adjacent elements ---- */

/* Register `which` of the columns (`back`) or of the memory, from the registers q0, q1, ... of the
   other: element e of the memory is column e mod W of lane e / W. Two sources at a time: q0 and q1,
   then the result and q2, ... */
static void dense_register(const transpose *t, int which, bool back) {
  const char *s = clb_vector_storage(t->element);
  int w = t->width, lanes = t->lanes;
  for (int step = 1; step < w; step++) clb_text_add(t->out, "SHUF(%sv, %si, ", s, s);
  clb_text_add(t->out, "q0");
  for (int step = 1; step < w; step++) {
    clb_text_add(t->out, ", q%d", step);
    for (int p = 0; p < lanes; p++) {
      int e = back ? p * w + which : which * lanes + p;
      int from = back ? e / lanes : e % w, place = back ? e % lanes : e / w;
      clb_text_add(t->out, ", %d",
                   from == step             ? place + lanes
                   : step == 1 && from == 0 ? place
                                            : p);
    }
    clb_text_add(t->out, ")");
  }
}

static void dense(const transpose *t, bool back) {
  const char *s = clb_vector_storage(t->element), *e = ir_type_name(t->element);
  clb_text_add(t->out, "  if (s == %d) {\n", t->width);
  for (int c = 0; c < t->width; c++) {
    if (back)
      clb_text_add(t->out, "    const %sv q%d = *(const %s_%d *)(a + %d * L);\n", s, c, s, t->lanes,
                   c);
    else clb_text_add(t->out, "    const %sv q%d = p%d;\n", s, c, c);
  }
  for (int c = 0; c < t->width; c++) {
    if (back) clb_text_add(t->out, "    v[%d] = unpack_%s(", c, e);
    else clb_text_add(t->out, "    const %sv d%d = ", s, c);
    dense_register(t, c, back);
    clb_text_add(t->out, back ? ");\n" : ";\n");
  }
  for (int c = 0; !back && c < t->width; c++)
    clb_text_add(t->out,
                 c ? " STREAM(%sv, a + %d * L, d%d);"
                   : "    if (stream && STREAMS(a)) { STREAM(%sv, a + %d * L, d%d);",
                 s, c, c);
  if (!back) clb_text_add(t->out, " return; }\n");
  for (int c = 0; !back && c < t->width; c++)
    clb_text_add(t->out, "    *(%s_%d *)(a + %d * L) = d%d;\n", s, t->lanes, c, c);
  clb_text_add(t->out, "    return;\n  }\n");
}

/* ---- the functions ---- */

/* The largest power of two in the remaining columns. */
static int piece(int left, int lanes) {
  int w = 1 << log2_of(left);
  return w < lanes ? w : lanes;
}

static void put(int lanes, ir_type element, int width, clb_text *out) {
  const char *s = clb_vector_storage(element), *e = ir_type_name(element),
             *type = ir_type_name(ir_register_type(element));
  transpose t = {.lanes = lanes, .element = element, .width = width, .out = out};
  t.granule = 16 / ir_type_bytes(element) < lanes ? 16 / ir_type_bytes(element) : lanes;
  clb_text_add(out, "INLINE void put_%s_%d(%s *a, i64 s, i32 count, i32 stream", e, width, s);
  for (int c = 0; c < width; c++) clb_text_add(out, ", %sv v%d", type, c);
  clb_text_add(out, ") {\n");
  for (int c = 0; c < width; c++)
    clb_text_add(out, "  const %sv p%d = pack_%s(v%d);\n", s, c, e, c);
  clb_text_add(out, "  if (!FULL(count)) {\n    const %sv t[] = {", s);
  for (int c = 0; c < width; c++) clb_text_add(out, "%sp%d", c ? ", " : "", c);
  clb_text_add(out, "};\n    tail_put_%s(a, s, count, %d, t);\n    return;\n  }\n", e, width);
  if (width <= 3) dense(&t, false);
  for (int first = 0; first < width; first += t.width) {
    t.width = piece(width - first, lanes);
    clb_text_add(out, "  {\n");
    for (int c = 0; c < t.width; c++)
      clb_text_add(out, "    const %sv r0_%d = p%d;\n", s, c, first + c);
    stages(&t, false);
    if (t.width == 1) store_column(&t, first);
    else store_pieces(&t, first);
    clb_text_add(out, "  }\n");
  }
  clb_text_add(out, "}\n");
}

static void get(int lanes, ir_type element, int width, clb_text *out) {
  const char *s = clb_vector_storage(element), *e = ir_type_name(element),
             *type = ir_type_name(ir_register_type(element));
  transpose t = {.lanes = lanes, .element = element, .width = width, .out = out};
  t.granule = 16 / ir_type_bytes(element) < lanes ? 16 / ir_type_bytes(element) : lanes;
  clb_text_add(out, "INLINE void get_%s_%d(const %s *a, i64 s, i32 count, %sv *v) {\n", e, width, s,
               type);
  clb_text_add(out, "  if (!FULL(count)) {\n    %sv t[%d];\n    tail_get_%s(a, s, count, %d, t);\n",
               s, width, e, width);
  for (int c = 0; c < width; c++) clb_text_add(out, "    v[%d] = unpack_%s(t[%d]);\n", c, e, c);
  clb_text_add(out, "    return;\n  }\n");
  if (width <= 3) dense(&t, true);
  /* Prefetches rows of the following groups into the second-level cache: hardware prefetchers do
     not predict partial rows. */
  if (width * ir_type_bytes(element) >= 32)
    clb_text_add(out,
                 "  for (int r = 0; r < L; r++) __builtin_prefetch(a + (r + AHEAD) * s, 0, 2);\n");
  for (int first = 0; first < width; first += t.width) {
    t.width = piece(width - first, lanes);
    clb_text_add(out, "  {\n");
    if (t.width == 1) load_column(&t, first);
    else load_pieces(&t, first);
    stages(&t, true);
    for (int c = 0; c < t.width; c++)
      clb_text_add(out, "    v[%d] = unpack_%s(r%d_%d);\n", first + c, e, log2_of(t.width), c);
    clb_text_add(out, "  }\n");
  }
  clb_text_add(out, "}\n");
}

void clb_vector_rows(const ir_kernel *k, clb_text *out) {
  bool gets[IR_BF16 + 1][IR_MAX_WIDTH + 1] = {{false}},
                                        puts[IR_BF16 + 1][IR_MAX_WIDTH + 1] = {{false}};
  for (int n = 1; n <= k->lanes; n *= 2)
    clb_text_add(
        out, "PIECES(u16, %d) PIECES(i32, %d) PIECES(i64, %d) PIECES(f32, %d) PIECES(f64, %d)\n", n,
        n, n, n, n);
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    if (i->op == IR_LOAD) gets[k->ins[i->arg[0]].element][i->width] = true;
    if (i->op == IR_STORE) puts[k->ins[i->arg[0]].element][i->width] = true;
  }
  for (int e = IR_I32; e <= IR_BF16; e++) {
    for (int w = 1; w <= IR_MAX_WIDTH; w++) {
      if (gets[e][w]) get(k->lanes, (ir_type)e, w, out);
      if (puts[e][w]) put(k->lanes, (ir_type)e, w, out);
    }
  }
}
