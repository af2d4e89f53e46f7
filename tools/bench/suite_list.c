/* tools/bench/suite_list.c - what `bench --suite` times: ops, each with a problem, and their
 sizes. */
#include "tools/bench/suite_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ops/graphs.h"
#include "tools/ops/convolution/convolution_tool.h"

/* ---- the suites ---- */

typedef struct {
  const char *op, *problem; /* problem: for harmonics, lmax */
  const char *graph, *options;
  int64_t rows; /* 0: the op's default */
} entry;

enum { F32_ONLY = 1u << CLB_F32, BOTH = F32_ONLY | 1u << CLB_F64, MAX_ENTRIES = 256 };

typedef struct {
  int n;
  entry entry[MAX_ENTRIES];
  unsigned dtypes;
} entries;

static void add(entries *e, entry one) {
  if (e->n == MAX_ENTRIES) fatal("a suite of more than %d problems", MAX_ENTRIES);
  e->entry[e->n++] = one;
}

static void add_standard(entries *e) {
  static const char *const l_max[] = {"1", "2", "3", "4", "6", "10", "12"};
  static const char *const also_mul_ir[] = {"mace-large", "nequip-lips", "nequix-main"};
  static const char *const bases[] = {"mace-small", "mace-medium", "mace-large"};
  static const entry on_graphs[] = {
      {NULL, "mace-large", "carbon", NULL, 0},      {NULL, "mace-medium", "carbon", NULL, 0},
      {NULL, "nequix-main", "carbon", NULL, 0},     {NULL, "sevennet-main", "carbon", NULL, 0},
      {NULL, "mace-large", "spike", NULL, 0},       {NULL, "nequix-main", "spike", NULL, 0},
      {NULL, "nequix-main", "dhfr-water", NULL, 0}, {NULL, "nequip-water", "water-box", NULL, 0},
      {NULL, "nequix-main", "hub", NULL, 0},        {NULL, "nequix-main", "even", NULL, 0},
      {NULL, "flashtp-l1", "flashtp", NULL, 0},     {NULL, "flashtp-l2", "flashtp", NULL, 0},
      {NULL, "flashtp-l3", "flashtp", NULL, 0},     {NULL, "flashtp-l4", "flashtp", NULL, 0},
      {NULL, "flashtp-l5", "flashtp", NULL, 0},
  };
  e->dtypes = BOTH;
  for (size_t l = 0; l < sizeof l_max / sizeof *l_max; l++)
    for (int64_t rows = 1000; rows <= 10000000; rows *= 10)
      add(e, (entry){"spherical_harmonics", l_max[l], NULL, NULL, rows});
  for (int i = 0; i < STANDARD; i++)
    add(e, (entry){"tensor_product", standard[i].name, NULL, NULL, 0});
  for (size_t i = 0; i < sizeof also_mul_ir / sizeof *also_mul_ir; i++)
    add(e, (entry){"tensor_product", also_mul_ir[i], NULL, "mul_ir", 0});
  for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
    add(e, (entry){"symmetric_contraction", bases[i], NULL, NULL, 0});
  for (size_t i = 0; i < sizeof on_graphs / sizeof *on_graphs; i++) {
    add(e, (entry){"convolution", on_graphs[i].problem, on_graphs[i].graph, NULL, 0});
    add(e, (entry){"convolution", on_graphs[i].problem, on_graphs[i].graph, "table", 0});
  }
  add(e, (entry){"convolution", "mace-large", "carbon", "mul_ir", 0});
}

/* With y given, from vectors, and with gradients of x by atomics. */
static void add_convolution(entries *e, const char *problem, const char *graph) {
  static const char *const options[] = {NULL, "vectors", "vectors atomic"};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    add(e, (entry){"convolution", problem, graph, options[i], 0});
}

/* Every channel-wise problem on every graph. */
static void add_graphs(entries *e) {
  static const char *const graphs[] = {"water-box", "carbon", "spike", "hub", "dhfr-water"};
  e->dtypes = F32_ONLY;
  for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++)
    for (int i = 0; i < STANDARD; i++)
      if (standard[i].kind == CHANNEL_WISE && strncmp(standard[i].name, "flashtp", 7) &&
          strncmp(standard[i].name, "single", 6))
        add_convolution(e, standard[i].name, graphs[g]);
  for (int i = 0; i < STANDARD; i++)
    if (!strncmp(standard[i].name, "flashtp", 7)) add_convolution(e, standard[i].name, "flashtp");
}

/* The rows of PufferLib's table, B T and H, after two odd widths; rows of a gigabyte; irreps. */
static void add_norms(entries *e) {
  static const struct {
    const char *irreps;
    int64_t rows[7];
  } plain[] = {
      {"77x0e", {131072}},
      {"91x0e", {131072}},
      {"128x0e", {32768}},
      {"256x0e", {32768, 49152, 65536, 131072}},
      {"384x0e", {32768, 93184, 98304}},
      {"512x0e", {49152, 65536, 98304, 118272, 131072, 196608}},
      {"1024x0e", {65536}},
      {"4096x0e", {16384}},
      {"8192x0e", {8192}},
      {"16384x0e", {4096}},
  };
  static const char *const irreps = "128x0e+64x1o+32x2e+32x3o";
  e->dtypes = F32_ONLY | 1u << CLB_BF16;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    for (const int64_t *rows = plain[i].rows; *rows; rows++)
      add(e, (entry){"rms_norm", plain[i].irreps, NULL, NULL, *rows});
  for (int64_t rows = 20000; rows <= 200000; rows *= 10) {
    add(e, (entry){"rms_norm", irreps, NULL, "nequix", rows});
    add(e, (entry){"rms_norm", irreps, NULL, "degree", rows});
  }
}

static void add_quick(entries *e) {
  static const entry all[] = {
      {"spherical_harmonics", "4", NULL, NULL, 100000},
      {"spherical_harmonics", "8", NULL, NULL, 20000},
      {"tensor_product", "mace-large", NULL, NULL, 2000},
      {"tensor_product", "nequix-main", NULL, NULL, 2000},
      {"tensor_product", "e3tools-conv", NULL, NULL, 1000},
      {"tensor_product", "single-3-3-3", NULL, NULL, 4000},
      {"convolution", "nequip-water", "carbon:2", NULL, 0},
      {"convolution", "nequip-water", "carbon:2", "table", 0},
      {"symmetric_contraction", "mace-medium", NULL, NULL, 500},
      {"rms_norm", "77x0e", NULL, NULL, 20000},
  };
  e->dtypes = F32_ONLY;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) add(e, all[i]);
}

/* ---- selection ---- */

enum { OP, PROBLEM, GRAPH, OPTIONS, PASS, DTYPE, KINDS };

static void words_of(const entry *e, const char *words[KINDS]) {
  words[OP] = e->op, words[PROBLEM] = e->problem, words[GRAPH] = e->graph,
  words[OPTIONS] = e->options;
}

/* Whether the word is in `only`, delimited by commas. */
static bool listed(const char *only, const char *word) {
  size_t n = word ? strlen(word) : 0;
  for (const char *s = only; n && s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
    if (!strncmp(s, word, n) && (!s[n] || s[n] == ',')) return true;
  return false;
}

/* Passes or dtypes of `only`; all of them if it has none. */
static unsigned chosen(const char *only, const char *const names[], int n, unsigned all) {
  unsigned set = 0;
  for (int i = 0; i < n; i++)
    if (all >> i & 1 && listed(only, names[i])) set |= 1u << i;
  return set ? set : all;
}

/* The kind of a word; KINDS: none. */
static int kind_of(const entries *e, const char *word) {
  const char *words[KINDS];
  for (int i = 0; i < e->n; i++) {
    words_of(&e->entry[i], words);
    for (int k = 0; k < PASS; k++)
      if (words[k] && !strcmp(words[k], word)) return k;
  }
  for (int i = 0; i < PASSES; i++)
    if (USUAL_PASSES >> i & 1 && !strcmp(pass_names[i], word)) return PASS;
  for (int i = 0; i < DTYPES; i++)
    if (e->dtypes >> i & 1 && !strcmp(dtype_names[i], word)) return DTYPE;
  return KINDS;
}

/* Keeps an entry unless `only` has words of some kind and none of them matches. */
static bool keep(entries *e, const char *suite, const char *only) {
  bool kinds[KINDS + 1] = {false};
  int n = 0;
  char *copy = strdup(only), *rest = copy;
  for (char *word; copy && (word = strsep(&rest, ","));) {
    int kind = kind_of(e, word);
    if (kind == KINDS)
      warn("bench: suite %s has nothing that is called '%s': --list shows what it has", suite,
           word);
    kinds[kind] = true;
  }
  free(copy);
  for (int i = 0; i < e->n; i++) {
    const char *words[KINDS];
    bool kept = true;
    words_of(&e->entry[i], words);
    for (int k = 0; k < PASS; k++) kept &= !kinds[k] || listed(only, words[k]);
    if (kept) e->entry[n++] = e->entry[i];
  }
  e->n = n;
  if (!n && !kinds[KINDS]) warn("bench: suite %s has nothing that is all of '%s'", suite, only);
  return n && !kinds[KINDS];
}

/* ---- problems ---- */

/* Adds the options of the op that an option's words stand for. */
static void add_options(const char *words, char *to, size_t size) {
  static const char *const options[][2] = {
      {"mul_ir", "--layout mul_ir"},  {"table", "--weights table"},   {"vectors", "--vectors"},
      {"nequix", "--variant nequix"}, {"degree", "--variant degree"}, {"atomic", "--atomics"}};
  for (size_t i = 0; words && i < sizeof options / sizeof *options; i++)
    if (strstr(words, options[i][0])) {
      const size_t used = strlen(to);
      snprintf(to + used, size - used, " %s", options[i][1]);
    }
}

static void make_problem(suite_problem *p, const entry *e) {
  char more[256] = "";
  p->op = find_op(e->op);
  p->graph = e->graph, p->options = e->options, p->l_max = -1;
  add_options(e->options, more, sizeof more);
  p->problem = problem_of(p->op, "--%s %s%s%s%s",
                          p->op == &tool_op_spherical_harmonics ? "lmax"
                          : p->op == &tool_op_rms_norm          ? "irreps"
                                                                : "problem",
                          e->problem, e->graph ? " --graph " : "", e->graph ? e->graph : "", more);
  snprintf(p->name, sizeof p->name, "%s", e->problem);
  if (p->op != &tool_op_spherical_harmonics) return;
  p->l_max = atoi(e->problem);
  p->op->print(p->problem, p->name, sizeof p->name);
}

/* Rows and bytes of each pass. */
static void add_sizes(suite_problem *p, int64_t rows) {
  const tool_op *op = p->graph ? &tool_op_tensor_product : p->op;
  const void *problem = p->graph ? &((const convolution_problem *)p->problem)->product : p->problem;
  for (int pass = 0; pass < PASSES; pass++) {
    tool_array a[MAX_ARRAYS];
    if (!(p->passes >> pass & 1)) continue;
    p->rows[pass] = p->graph ? p->edges : rows ? rows : op_rows(p->op, p->problem, (clb_pass)pass);
    for (int i = op_arrays(op, problem, (clb_pass)pass, a); i > 0; i--)
      if (!a[i - 1].one_row) p->bytes[pass] += 4.0 * a[i - 1].width * (double)p->rows[pass];
  }
}

/* The number of edges of a graph; negative: it cannot be made, which is reported once. */
static int64_t edges_of(suite_list *list, const char *graph) {
  tool_graph g;
  char error[2048];
  for (int i = 0; i < list->n; i++)
    if (list->problem[i].graph && !strcmp(list->problem[i].graph, graph))
      return list->problem[i].edges;
  if (list->missing && !strcmp(list->missing, graph)) return -1;
  progress("making the graph %s", graph);
  if (graph_make(graph, &g, error, sizeof error)) {
    int64_t n = g.n_edges;
    graph_free(&g);
    return n;
  }
  warn("left out: %s", error);
  list->missing = graph;
  return -1;
}

bool suite_list_make(suite_list *list, const char *suite, const char *only) {
  entries *e = allocate(1, sizeof *e);
  bool good = true;
  *list = (suite_list){0};
  if (!strcmp(suite, "standard")) add_standard(e);
  else if (!strcmp(suite, "graphs")) add_graphs(e);
  else if (!strcmp(suite, "norms")) add_norms(e);
  else if (!strcmp(suite, "quick")) add_quick(e);
  else warn("bench: --suite is standard, graphs, norms or quick, not '%s'", suite), good = false;
  if (good && only) good = keep(e, suite, only);
  list->problem = allocate((size_t)e->n, sizeof *list->problem);
  for (int i = 0; good && i < e->n; i++) {
    int64_t edges = e->entry[i].graph ? edges_of(list, e->entry[i].graph) : 0;
    if (edges < 0) continue;
    suite_problem *p = &list->problem[list->n++];
    make_problem(p, &e->entry[i]);
    p->passes = chosen(only, pass_names, PASSES, USUAL_PASSES);
    p->dtypes = chosen(only, dtype_names, DTYPES, e->dtypes);
    p->edges = edges;
    add_sizes(p, e->entry[i].rows);
  }
  free(e);
  return good;
}

void suite_list_free(suite_list *list) {
  for (int i = 0; i < list->n; i++) free(list->problem[i].problem);
  free(list->problem);
  *list = (suite_list){0};
}
