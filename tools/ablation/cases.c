/* tools/ablation/cases.c - the cases of `clebsch bench --without`. */
#include <string.h>

#include "tools/ablation/ablation.h"

const char *const ablation_names[ABLATIONS] = {[NO_WIDE_ACCESSES] = "wide aligned accesses",
                                               [NO_REGISTER_SUMS] = "accumulators in registers",
                                               [NO_SPLIT_ROWS] = "split of long reductions",
                                               [NO_OWNERSHIP] = "receiver ownership",
                                               [NO_FUSED_HARMONICS] = "harmonics on the fly",
                                               [NO_TABLES] = "radial tables",
                                               [NO_REPLAY] = "record and replay",
                                               [NO_OPTIMISATION] = "all of them"};
const char *const ablation_words[ABLATIONS] = {"wide",      "registers", "split",  "ownership",
                                               "harmonics", "tables",    "replay", "all"};
const ablation_switch ablation_switches[SWITCHES] = {{ABLATIONS, 0},
                                                     {NO_WIDE_ACCESSES, CLB_WIDE_ACCESSES},
                                                     {NO_REGISTER_SUMS, CLB_REGISTER_SUMS},
                                                     {NO_SPLIT_ROWS, CLB_SPLIT_ROWS},
                                                     {NO_OPTIMISATION, ALL_OF_CONTEXT}};

/* On a CPU graphs are smaller and rows fewer; if there is neither, the case is skipped. */
typedef struct {
  const char *kind, *problem, *layout, *graph, *cpu_graph;
  int64_t rows, cpu_rows;
  unsigned passes;
  const char *suite;
} entry;

enum {
  F = CLB_PASS_BIT(CLB_FORWARD),
  B = CLB_PASS_BIT(CLB_BACKWARD),
  D = CLB_PASS_BIT(CLB_DOUBLE_BACKWARD)
};
static const entry standard_cases[] = {
    {"convolution", "mace-large", "ir_mul", "carbon", "carbon:1", 0, 0, F | B, NULL},
    {"convolution", "nequix-main", "ir_mul", "carbon", "carbon:1", 0, 0, F | B, NULL},
    {"convolution", "mace-medium", "mul_ir", "carbon", "carbon:1", 0, 0, F | B, NULL},
    {"convolution", "mace-medium", "ir_mul", "hub", NULL, 0, 0, F | B, NULL},
    {"convolution", "nequip-water", "ir_mul", "hub", "hub:20000", 0, 0, F | B, NULL},
    {"convolution", "flashtp-l2", "ir_mul", "flashtp", "carbon:1", 0, 0, F | B, NULL},
    {"convolution", "nequip-water", "ir_mul", "carbon:2", "carbon:2", 0, 0, F | B, NULL},
    {"tensor_product", "mace-large", "ir_mul", NULL, NULL, 50000, 1000, F | B | D, NULL},
    {"tensor_product", "mace-large", "mul_ir", NULL, NULL, 50000, 1000, F | B | D, NULL},
    {"tensor_product", "nequip-lips", "ir_mul", NULL, NULL, 50000, 1000, F | B | D, NULL},
    {"tensor_product", "nequix-main", "ir_mul", NULL, NULL, 50000, 1000, F | B | D, NULL},
    {"tensor_product", "nequix-main", "mul_ir", NULL, NULL, 50000, 1000, F | B | D, NULL},
    {"symmetric_contraction", "mace-medium", "ir_mul", NULL, NULL, 10000, 500, F | B | D, NULL},
    {"symmetric_contraction", "mace-medium", "mul_ir", NULL, NULL, 10000, 500, F | B | D, NULL},
    {"sequence", "nequip-water", "ir_mul", NULL, NULL, 64, 64, F | B, NULL},
    {"sequence", "nequip-water", "ir_mul", NULL, NULL, 1024, 1024, F | B, NULL},
};
static const entry quick_cases[] = {
    {"convolution", "nequip-water", "ir_mul", "carbon:2", "carbon:2", 0, 0, F | B, NULL},
    {"convolution", "nequip-water", "mul_ir", "hub:5000", "hub:5000", 0, 0, F | B, NULL},
    {"tensor_product", "mace-medium", "mul_ir", NULL, NULL, 1000, 1000, F | B | D, NULL},
    {"symmetric_contraction", "mace-small", "mul_ir", NULL, NULL, 200, 200, F | B | D, NULL},
    {"sequence", "nequip-water", "ir_mul", NULL, NULL, 64, 64, F | B, NULL},
};

/* Cases with a naive kernel. */
#define PRODUCTS "products"
#define CONVOLUTIONS "convolutions"
#define SUMS "sums and optimizers"
#define NORMS "norms"
#define IRREPS "128x0e+64x1o+32x2e+32x3o"
static const entry standard_suites[] = {
    {"norm", "77x0e", "mul_ir", NULL, NULL, 131072, 16384, F | B, NORMS},
    {"norm", "128x0e", "mul_ir", NULL, NULL, 32768, 8192, F | B, NORMS},
    {"norm", "512x0e", "mul_ir", NULL, NULL, 65536, 4096, F | B, NORMS},
    {"norm", "4096x0e", "mul_ir", NULL, NULL, 16384, 512, F | B, NORMS},
    {"norm", IRREPS, "mul_ir", NULL, NULL, 20000, 2000, F | B, NORMS},
    {"adam", "nequix", NULL, NULL, NULL, 1, 1, F, SUMS},
    {"adam", "dcgan", NULL, NULL, NULL, 1, 1, F, SUMS},
    {"momentum", "mace", NULL, NULL, NULL, 1, 1, F, SUMS},
    {"row_sum", "704x0e", "ir_mul", "carbon", "carbon:1", 0, 0, F, SUMS},
    {"row_sum", "512x0e", "ir_mul", "hub", "hub:20000", 0, 0, F, SUMS},
    {"weight_gradient", "77x0e", "ir_mul", NULL, NULL, 131072, 16384, B, SUMS},
    {"weight_gradient", "512x0e", "ir_mul", NULL, NULL, 131072, 16384, B, SUMS},
    {"tensor_product", "mace-large", "ir_mul", NULL, NULL, 50000, 1000, F | B | D, PRODUCTS},
    {"tensor_product", "mace-large", "mul_ir", NULL, NULL, 50000, 1000, F | B | D, PRODUCTS},
    {"tensor_product", "nequip-lips", "ir_mul", NULL, NULL, 50000, 1000, F | B | D, PRODUCTS},
    {"tensor_product", "nequix-main", "mul_ir", NULL, NULL, 50000, 1000, F | B | D, PRODUCTS},
    {"convolution_given", "mace-large", "ir_mul", "carbon", "carbon:1", 0, 0, F | B, CONVOLUTIONS},
    {"convolution_given", "mace-large", "mul_ir", "carbon", "carbon:1", 0, 0, F | B, CONVOLUTIONS},
    {"convolution_given", "nequix-main", "ir_mul", "carbon", "carbon:1", 0, 0, F | B, CONVOLUTIONS},
    {"convolution_given", "nequip-water", "ir_mul", "hub", "hub:20000", 0, 0, F | B, CONVOLUTIONS},
};
static const entry quick_suites[] = {
    {"norm", "77x0e", "mul_ir", NULL, NULL, 2048, 2048, F | B, NORMS},
    {"norm", "16x0e+8x1o", "mul_ir", NULL, NULL, 1000, 1000, F | B, NORMS},
    {"adam", "nequix", NULL, NULL, NULL, 1, 1, F, SUMS},
    {"row_sum", "64x0e", "ir_mul", "hub:5000", "hub:5000", 0, 0, F, SUMS},
    {"weight_gradient", "77x0e", "ir_mul", NULL, NULL, 2048, 2048, B, SUMS},
    {"tensor_product", "mace-medium", "mul_ir", NULL, NULL, 200, 200, F | B | D, PRODUCTS},
    {"convolution_given", "nequip-water", "ir_mul", "hub:2000", "hub:2000", 0, 0, F | B,
     CONVOLUTIONS},
};

#define LIST(entries)                                                                              \
  { entries, sizeof entries / sizeof *entries }
static const struct {
  const entry *entries;
  size_t n;
} lists[2][2] = {{LIST(standard_cases), LIST(quick_cases)},
                 {LIST(standard_suites), LIST(quick_suites)}};

static bool asked_for(const entry *e, const char *const *problems, int n) {
  bool asked = !n;
  for (int i = 0; i < n; i++) asked |= !strcmp(problems[i], e->problem);
  return asked;
}

/* A sequence is one case, forward and backward. */
int ablation_cases(bool suites, bool quick, bool cpu, const char *const *problems, int n_problems,
                   ablation_case *cases) {
  const entry *e = lists[suites][quick].entries, *end = e + lists[suites][quick].n;
  int n = 0;
  for (; e < end; e++) {
    const char *graph = cpu ? e->cpu_graph : e->graph;
    int64_t rows = cpu ? e->cpu_rows : e->rows;
    if (!asked_for(e, problems, n_problems) || !(graph || rows)) continue;
    for (int pass = 0; pass < PASSES; pass++)
      if (e->passes >> pass & 1 && (strcmp(e->kind, "sequence") || pass == CLB_BACKWARD))
        cases[n++] = (ablation_case){.kind = e->kind,
                                     .problem = e->problem,
                                     .layout = e->layout,
                                     .graph = graph,
                                     .pass = (clb_pass)pass,
                                     .rows = rows,
                                     .suite = e->suite};
  }
  return n;
}

void ablation_fill(work *w, ablation_case *c) {
  static const struct {
    const char *kind;
    void (*fill)(work *w, ablation_case *c);
  } kinds[] = {
      {"convolution", ablation_convolution},  {"tensor_product", ablation_op},
      {"symmetric_contraction", ablation_op}, {"sequence", ablation_sequence},
      {"convolution_given", ablation_op},     {"row_sum", ablation_row_sum},
      {"weight_gradient", ablation_op},       {"norm", ablation_op},
      {"adam", ablation_optimizer},           {"momentum", ablation_optimizer},
  };
  size_t i = 0;
  if (c->op) {
    ablation_op(w, c);
    return;
  }
  while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].kind, c->kind)) i++;
  if (i == sizeof kinds / sizeof *kinds) fatal("bench: there is no kind '%s'", c->kind);
  kinds[i].fill(w, c);
}
