/* tests/runtime/test_sizes.c - structs of programs that were compiled with another version of the
   headers, in which they are shorter or longer. */
#include "tests/test.h"

#include <math.h>

#include <clebsch/model.h>

enum { MORE = 16 };

static clb_context *ctx;
static clb_op *op;
static clb_model *model;
static char path[400];

/* ---- what programs give ---- */

static const int degrees[] = {0, 1};
static const clb_instruction one_path = {0, 0, 0, CLB_UVU, 1, 1};
static const clb_spherical_harmonics_desc harmonics = {
    .degrees = degrees, .n_degrees = 2, .passes = CLB_PASS_BIT(CLB_FORWARD)};
static const clb_tensor_product_desc product = {.irreps_x = "2x0e",
                                                .irreps_y = "1o",
                                                .irreps_z = "2x1o",
                                                .instructions = &one_path,
                                                .n_instructions = 1,
                                                .passes = CLB_PASS_BIT(CLB_FORWARD)};
static const clb_convolution_desc convolution = {.product = {.irreps_x = "2x0e",
                                                             .irreps_y = "1o",
                                                             .irreps_z = "2x1o",
                                                             .instructions = &one_path,
                                                             .n_instructions = 1,
                                                             .passes = CLB_PASS_BIT(CLB_FORWARD)},
                                                 .scale = 0.5};
static const clb_symmetric_contraction_desc contraction = {.ell = 1,
                                                           .correlation = 1,
                                                           .degrees = degrees,
                                                           .n_degrees = 2,
                                                           .channels = 1,
                                                           .n_species = 1,
                                                           .passes = CLB_PASS_BIT(CLB_FORWARD)};
static const clb_model_options in_f64 = {.dtype = CLB_F64};
static const int32_t species[] = {0, 1}, senders[] = {0, 1}, receivers[] = {1, 0};
static const double places[] = {0, 0, 0, 1, 0.5, 0}, vectors[] = {-1, -0.5, 0, 1, 0.5, 0};
static const clb_model_atoms atoms = {.n = 2, .species = species, .positions = places};
static double energy, e_atom[2];
static const clb_model_results results = {.energy = &energy, .e_atom = e_atom};
static clb_status no_ghosts(void *user, int backward, int64_t columns, clb_dtype type,
                            const void *from, void *to) {
  (void)user, (void)backward, (void)columns, (void)type, (void)from, (void)to;
  return CLB_OK;
}
static const clb_model_exchange exchange = {.move = no_ghosts};
static const clb_model_edges edges = {.n_local = 2,
                                      .n_total = 2,
                                      .n_edges = 2,
                                      .species = species,
                                      .senders.host = senders,
                                      .receivers.host = receivers,
                                      .vectors = vectors};
static const clb_model_edge_results edge_results = {.energy = &energy, .e_atom = e_atom};

/* A call for each struct that may grow, with one of n bytes. */
static clb_status made(clb_status status, clb_op **made_op) {
  clb_op_destroy(made_op);
  return status;
}
static clb_status harmonics_of(const void *s, size_t n) {
  clb_op *q;
  return made(clb_spherical_harmonics_create_sized(ctx, s, &q, n), &q);
}
static clb_status product_of(const void *s, size_t n) {
  clb_op *q;
  return made(clb_tensor_product_create_sized(ctx, s, &q, n), &q);
}
static clb_status sizes_of(const void *s, size_t n) {
  return clb_tensor_product_measure_sized(ctx, s, &(clb_tensor_product_sizes){0}, n);
}
static clb_status weights_of(const void *s, size_t n) {
  return clb_tensor_product_weights_sized(ctx, s, 0, &(clb_weight_slice){0}, n);
}
static clb_status mask_of(const void *s, size_t n) {
  return clb_tensor_product_mask_sized(ctx, s, (unsigned char[6]){0}, 6, n);
}
static clb_status contraction_of(const void *s, size_t n) {
  clb_op *q;
  return made(clb_symmetric_contraction_create_sized(ctx, s, &q, n), &q);
}
static clb_status paths_of(const void *s, size_t n) {
  return clb_symmetric_contraction_paths_sized(ctx, s, 0, 1, &(clb_symmetric_paths){0}, n);
}
static clb_status basis_of(const void *s, size_t n) {
  return clb_symmetric_contraction_basis_sized(ctx, s, 0, (double[4]){0}, 4, n);
}
static clb_status convolution_of(const void *s, size_t n) {
  clb_op *q;
  return made(clb_convolution_create_sized(ctx, s, &q, n, sizeof product), &q);
}
static clb_status model_of(const void *s, size_t n) {
  clb_model *m;
  const clb_status status = clb_model_open_sized(ctx, path, s, &m, n);
  clb_model_destroy(&m);
  return status;
}
static clb_status atoms_of(const void *s, size_t n) {
  return clb_model_compute_sized(model, s, &results, n, sizeof results);
}
static clb_status results_of(const void *s, size_t n) {
  return clb_model_compute_sized(model, &atoms, s, sizeof atoms, n);
}
static clb_status edges_of(const void *s, size_t n) {
  return clb_model_compute_edges_sized(model, s, &edge_results, n, sizeof exchange,
                                       sizeof edge_results);
}
static clb_status exchange_of(const void *s, size_t n) {
  clb_model_edges e = edges;
  e.exchange = s;
  return clb_model_compute_edges_sized(model, &e, &edge_results, sizeof e, n, sizeof edge_results);
}
static clb_status edge_results_of(const void *s, size_t n) {
  return clb_model_compute_edges_sized(model, &edges, s, sizeof edges, sizeof exchange, n);
}

static const struct {
  const char *name;
  clb_status (*call)(const void *s, size_t n);
  const void *good;
  size_t size;
} given[] = {
    {"clb_spherical_harmonics_desc", harmonics_of, &harmonics, sizeof harmonics},
    {"clb_tensor_product_desc", product_of, &product, sizeof product},
    {"clb_tensor_product_desc", sizes_of, &product, sizeof product},
    {"clb_tensor_product_desc", weights_of, &product, sizeof product},
    {"clb_tensor_product_desc", mask_of, &product, sizeof product},
    {"clb_symmetric_contraction_desc", contraction_of, &contraction, sizeof contraction},
    {"clb_symmetric_contraction_desc", paths_of, &contraction, sizeof contraction},
    {"clb_symmetric_contraction_desc", basis_of, &contraction, sizeof contraction},
    {"clb_convolution_desc", convolution_of, &convolution, sizeof convolution},
    {"clb_model_options", model_of, &in_f64, sizeof in_f64},
    {"clb_model_atoms", atoms_of, &atoms, sizeof atoms},
    {"clb_model_results", results_of, &results, sizeof results},
    {"clb_model_edges", edges_of, &edges, sizeof edges},
    {"clb_model_exchange", exchange_of, &exchange, sizeof exchange},
    {"clb_model_edge_results", edge_results_of, &edge_results, sizeof edge_results},
};

/* A struct of a newer header: taken while the members that are new are 0, and refused by name when
   they are not. */
static void longer(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    const size_t size = given[i].size;
    char *s = calloc(1, size + MORE);
    memcpy(s, given[i].good, size);
    for (size_t n = size; n <= size + MORE; n += MORE)
      if (given[i].call(s, n)) fail_msg("%s of %zu bytes: %s", given[i].name, n, clb_error(ctx));
    for (size_t at = size; at < size + MORE; at += MORE - 1) {
      s[at] = 1;
      assert_int_equal(given[i].call(s, size + MORE), CLB_ERROR_ARGUMENT);
      if (!strstr(clb_error(ctx), given[i].name) || !strstr(clb_error(ctx), "newer version"))
        fail_msg("%s: %s", given[i].name, clb_error(ctx));
      s[at] = 0;
    }
    free(s);
  }
}

/* The first n bytes of a struct, in memory that ends there. */
static void *cut(const void *s, size_t n) {
  void *memory = malloc(n);
  assert_non_null(memory);
  return memcpy(memory, s, n);
}

/* A struct of an older header: members that it does not have are 0, and what follows is not read.
 */
static void shorter(void **state) {
  (void)state;
  double exact;
  OK(ctx, clb_model_compute(model, &atoms, &results));
  exact = energy;
  char options[sizeof in_f64];
  memset(options, 255, sizeof options);
  memcpy(options, &in_f64, sizeof in_f64.dtype);
  clb_model *m;
  OK(ctx, clb_model_open_sized(ctx, path, (const void *)options, &m, sizeof in_f64.dtype));
  void *a = cut(&atoms, offsetof(clb_model_atoms, cell)),
       *r = cut(&results, offsetof(clb_model_results, e_atom));
  energy = e_atom[0] = NAN;
  OK(ctx, clb_model_compute_sized(m, a, r, offsetof(clb_model_atoms, cell),
                                  offsetof(clb_model_results, e_atom)));
  assert_true(energy == exact && isnan(e_atom[0]));
  clb_model_destroy(&m);
  free(a), free(r);
  const size_t n = offsetof(clb_convolution_desc, knots);
  void *d = cut(&convolution, n);
  OK(ctx, convolution_of(d, n));
  free(d);
  a = cut(&edges, offsetof(clb_model_edges, positions));
  OK(ctx, edges_of(a, offsetof(clb_model_edges, positions)));
  free(a);
}

/* A convolution's description has a product's in it, which grows there: with one more number. */
static clb_status with_wider_product(clb_convolution_desc d, double more) {
  enum { PRODUCT = sizeof d.product, WIDER = PRODUCT + sizeof more };
  char *s = malloc(sizeof d + sizeof more);
  clb_op *q;
  assert_non_null(s);
  memcpy(s, &d.product, PRODUCT);
  memcpy(s + PRODUCT, &more, sizeof more);
  memcpy(s + WIDER, (const char *)&d + PRODUCT, sizeof d - PRODUCT);
  const clb_status status =
      clb_convolution_create_sized(ctx, (const void *)s, &q, sizeof d + sizeof more, WIDER);
  free(s);
  return made(status, &q);
}

static void longer_within(void **state) {
  (void)state;
  clb_convolution_desc d = convolution;
  clb_op *q;
  OK(ctx, with_wider_product(d, 0));
  assert_int_equal(with_wider_product(d, 1), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "clb_tensor_product_desc"));
  d.knots = 3; /* what follows the product is found */
  assert_int_equal(with_wider_product(d, 0), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "knots is 3"));
  assert_int_equal(clb_convolution_create_sized(ctx, &d, &q, 8, 16), CLB_ERROR_ARGUMENT);
}

/* ---- what programs get ---- */

static clb_status info_to(void *s, size_t n) { return clb_context_device_sized(ctx, s, n); }
static clb_status counts_to(void *s, size_t n) {
  return clb_op_counts_sized(op, CLB_FORWARD, s, n);
}
static clb_status report_to(void *s, size_t n) {
  return clb_op_report_sized(op, CLB_FORWARD, s, n);
}
static clb_status tuning_to(void *s, size_t n) {
  return clb_op_tuning_sized(op, CLB_FORWARD, s, n);
}
static clb_status model_info_to(void *s, size_t n) { return clb_model_describe_sized(model, s, n); }
static clb_status neighbours_to(void *s, size_t n) {
  return clb_model_last_neighbours_sized(model, s, n);
}

/* A result is written as far as the program's struct goes; what is new in it is 0. */
static void got(void **state) {
  (void)state;
  static const struct {
    clb_status (*call)(void *s, size_t n);
    size_t size;
  } all[] = {
      {info_to, sizeof(clb_device_info)},      {counts_to, sizeof(clb_counts)},
      {report_to, sizeof(clb_report)},         {tuning_to, sizeof(clb_tuning)},
      {model_info_to, sizeof(clb_model_info)}, {neighbours_to, sizeof(clb_model_neighbours)}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const size_t size = all[i].size;
    unsigned char *whole = malloc(size + MORE), *part = malloc(size / 2);
    memset(whole, 255, size + MORE);
    OK(ctx, all[i].call(whole, size + MORE));
    for (size_t k = size; k < size + MORE; k++) assert_int_equal(whole[k], 0);
    OK(ctx, all[i].call(part, size / 2));
    if (i != 3) assert_memory_equal(part, whole, size / 2); /* texts of tuning are new ones */
    memset(whole, 255, size);
    OK(ctx, all[i].call(whole, size / 2));
    for (size_t k = size / 2; k < size; k++) assert_int_equal(whole[k], 255);
    free(whole), free(part);
  }
}

static int begin(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s/strangers/tiny.safetensors", getenv("CLB_TEST_DATA"));
  return clb_context_create("cpu:interpreter", &ctx) ||
         clb_spherical_harmonics_create(ctx, &harmonics, &op) ||
         clb_model_open(ctx, path, &in_f64, &model);
}

static int end(void **state) {
  (void)state;
  clb_model_destroy(&model);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(longer), cmocka_unit_test(shorter),
                                     cmocka_unit_test(longer_within), cmocka_unit_test(got)};
  return cmocka_run_group_tests(tests, begin, end);
}
