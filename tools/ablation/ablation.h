/* tools/ablation/ablation.h - `clebsch bench --without`: a task, and the variants to run it: with
   all optimisations, and without one or all of them. */
#ifndef CLB_TOOLS_ABLATION_ABLATION_H
#define CLB_TOOLS_ABLATION_ABLATION_H

#include "tools/ablation/naive.h"
#include "tools/data/test_run.h"
#include "tools/ops/graphs.h"
#include "tools/ops/op.h"
#include "tools/ops/tensor_product_tool.h"

typedef enum {
  NO_WIDE_ACCESSES,
  NO_REGISTER_SUMS,
  NO_SPLIT_ROWS,
  NO_OWNERSHIP,
  NO_FUSED_HARMONICS,
  NO_TABLES,
  NO_REPLAY,
  NO_OPTIMISATION,
  ABLATIONS,   /* all optimisations are on */
  NAIVE_KERNEL /* a kernel that is not the library's */
} ablation;
/* Their names: in results, and as --without has them. */
extern const char *const ablation_names[ABLATIONS], *const ablation_words[ABLATIONS];

/* Whether the arguments of `bench` have --without. */
bool ablation_asked(int argc, char **argv);
int ablation_main(int argc, char **argv);

/* ---- variants: lists of calls ---- */

enum { MAX_CALLS = 160, MAX_VARIANTS = ABLATIONS + 2, MAX_THINGS = 96, MAX_OUTPUTS = 7 };
/* A step of an optimizer, a naive kernel, a test run, a convolution or a pass of an op: the first
   of `optimizer`, `naive`, `set`, `graph` and `tool` that is not NULL says which. */
typedef struct {
  clb_optimizer *optimizer;
  naive *naive;
  naive_kernel kernel; /* of naive, with arguments */
  naive_arguments arguments;
  const test_run *test_run;
  test_run_set *set; /* of test_run */
  clb_graph *graph;
  clb_buffer *workspace;
  const tool_op *tool;
  clb_op *op;
  clb_pass pass;
  int64_t n;                 /* number of rows, if there is no graph */
  clb_rows rows[MAX_ARRAYS]; /* operands in the order of the call */
} op_call;

typedef struct {
  ablation without;
  int baseline;           /* index of the variant with which it is compared */
  bool replayed, untimed; /* untimed: calls added from now on are not timed; they complete
                               results for the comparison */
  bool apart;        /* it submits something else than the others, which its kernels do not show */
  test_run_set *set; /* NULL, or its results, which are compared with a reference */
  int n, n_timed;    /* number of calls; those from n_timed on are not timed */
  op_call call[MAX_CALLS];
  clb_recording *recording;
  double error, seconds, seconds_min,
      ratio; /* error: largest difference, relative to the root mean square; seconds: median; ratio:
                of the minimum times, this variant to the other */
} variant;

/* Rows of results that are compared. */
typedef struct {
  clb_buffer *buffer;
  int64_t n, width, stride;
} output;

typedef struct {
  const char *kind, *problem, *layout, *graph; /* layout: may be NULL; graph: NULL, or a name of
                                                  graphs.h */
  clb_pass pass;
  int64_t rows; /* without a graph; otherwise the number of edges, set when the graph is made */
  const char *suite; /* NULL: none, and no naive kernel */
  const tool_op *op; /* with its problem; NULL: the kind says which */
  const void *of_op;
} ablation_case;

/* Everything a case needs on one device. After the first failure nothing more is created. */
typedef struct {
  clb_context *ctx;
  unsigned wanted; /* a bit for each ablation */
  naive *naive;    /* NULL: the case is timed without naive kernels */
  double tolerance;
  clb_status status;
  char trouble[NAIVE_MESSAGE]; /* the message of a failure that is not in the context */
  clb_op *op[MAX_THINGS];
  clb_buffer *buffer[MAX_THINGS];
  clb_graph *graph[MAX_THINGS];
  clb_optimizer *optimizer[MAX_VARIANTS];
  int n_ops, n_buffers, n_graphs, n_optimizers, n_variants, n_outputs;
  variant variant[MAX_VARIANTS];
  output output[MAX_OUTPUTS];
  float *first; /* what output 0 holds before the results of variants are compared; NULL: nothing */
  test_run *test_run; /* NULL, or what sets are of */
  void *problem;      /* of the kernel, if it is freed with the work */
  tool_kernel kernel; /* which it reads */
} work;

enum { ALL_OF_CONTEXT = CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS | CLB_SPLIT_ROWS };

bool work_wants(const work *w, ablation without);
/* Disables optimisations in ops and graphs created from now on. */
void work_disable(work *w, unsigned optimisations);
clb_op *work_op(work *w, const tool_op *tool, const tool_kernel *kernel, clb_pass pass);
clb_op *work_product(work *w, const clb_tensor_product_desc *desc);
clb_op *work_harmonics(work *w, const clb_spherical_harmonics_desc *desc);
clb_op *work_convolution(work *w, const clb_convolution_desc *desc);
clb_optimizer *work_optimizer(work *w, const clb_optimizer_desc *desc);
clb_graph *work_graph(work *w, int64_t n_senders, int64_t n_receivers, int64_t n_edges,
                      const int32_t *senders, const int32_t *receivers);
/* Contiguous rows of f32: these values, or (NULL) random ones. */
clb_rows work_rows(work *w, int64_t n, int64_t width, const float *values);
clb_rows work_ones(work *w, int64_t width); /* one row, used for all */
void work_output(work *w, clb_rows rows, int64_t n, int64_t width);
/* A buffer of these numbers; a buffer's address on the device (NULL after a failure). */
clb_buffer *work_ints(work *w, int64_t n, const int32_t *values);
void *work_address(work *w, const clb_buffer *buffer);

/* Adds a variant; adds a call to it. The call of a convolution must have a graph and gets its
   workspace here. */
variant *work_variant(work *w, ablation without, int baseline, bool replayed);
void variant_add(work *w, variant *y, op_call call);
/* The variant with naive kernels; adds one of them. */
variant *work_naive(work *w);
void variant_add_naive(work *w, variant *y, naive_kernel kernel, const naive_arguments *arguments);
/* One that adds to a product's rows[n][width], after setting them to 0; for each of `items` rows.
 */
void variant_add_naive_sum(work *w, variant *y, naive_kernel kernel, naive_arguments a,
                           clb_rows rows, int64_t n, int64_t width, int64_t items);

/* Compares the results of the variants, then times all variants alternately for about `seconds`
   each. Ways that are the same as the one they are compared with are dropped first. */
clb_status work_measure(work *w, double seconds, const char *label);
void work_free(work *w);

/* ---- cases: fill an empty work ---- */

enum { MAX_CASES = 64 };
/* The cases of these problems (n = 0: of all), one for each pass; returns how many, at most
   4 MAX_CASES. */
int ablation_cases(bool suites, bool quick, bool cpu, const char *const *problems, int n,
                   ablation_case *cases);
/* Fills the work by the case's kind. */
void ablation_fill(work *w, ablation_case *c);

void ablation_convolution(work *w, ablation_case *c);
void ablation_sequence(work *w, ablation_case *c);
void ablation_op(work *w, ablation_case *c);
/* Of the suites: */
void ablation_row_sum(work *w, ablation_case *c);
void ablation_optimizer(work *w, ablation_case *c);

/* Ways without each and all of the optimisations that a context can disable, after the one with all
   of them. */
typedef struct {
  ablation variant;
  unsigned without;
} ablation_switch;
enum { SWITCHES = 5 };
extern const ablation_switch ablation_switches[SWITCHES];

/* A graph, and the same with its edges reversed; whole: with rows that are not split, NULL where
   none is long. */
typedef struct {
  tool_graph g;
  clb_graph *graph, *whole, *reverse, *reverse_whole;
} ablation_graphs;
/* The case's graph, whose edges are its rows; the caller frees `g`, whatever the status. */
void ablation_make_graphs(work *w, ablation_case *c, bool reversed, ablation_graphs *all);

/* The edges of each receiver, or of each sender. */
void ablation_naive_edges(work *w, clb_graph *graph, clb_graph_order order, naive_arguments *a);

/* A named product in f32 in the case's layout. */
typedef struct {
  tensor_desc *made;
  clb_tensor_product_desc desc;
  clb_tensor_product_sizes sizes;
  const char *y; /* irreps of the harmonics */
} ablation_product_desc;
ablation_product_desc *ablation_describe(work *w, const ablation_case *c);
void ablation_product_free(ablation_product_desc *d);
/* The forward pass of one path in f32, ir_mul, without normalization. */
clb_tensor_product_desc ablation_plain(const char *x, const char *y, const char *z,
                                       const clb_instruction *path);
/* Widths, terms and channels of the product; y_stride: of rows of y. */
naive_arguments ablation_naive_product(work *w, const clb_tensor_product_desc *d, int64_t y_stride);
/* Gives the degrees of its y; returns how many. */
int ablation_degrees(const ablation_product_desc *d, int *degrees);

#endif
