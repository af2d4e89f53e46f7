/* kernels/schedule.h - the few small integers a kernel is generated from: common ones, and a struct
   for each sort of kernel, which sets its own alone.  kernels/schedule.def says what they mean.

   A schedule starts from zeros and has no padding, so equal schedules have equal bytes.  The
   structs lie side by side because a union could not promise that: an initialiser need not clear
   all of it. */
#ifndef CLB_KERNELS_SCHEDULE_H
#define CLB_KERNELS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/text.h"

typedef struct {
#define ROWS(name) int32_t name;
#include "kernels/schedule.def"
} clb_rows_settings;

typedef struct {
#define PRODUCT(name) int32_t name;
#include "kernels/schedule.def"
} clb_product_settings;

typedef struct {
#define CONVOLUTION(name) int32_t name;
#include "kernels/schedule.def"
} clb_convolution_settings;

typedef struct {
#define SYMMETRIC(name) int32_t name;
#include "kernels/schedule.def"
} clb_symmetric_settings;

typedef struct {
#define MATMUL(name) int32_t name;
#include "kernels/schedule.def"
} clb_matmul_settings;

typedef struct {
#define GROUPED(name) int32_t name;
#include "kernels/schedule.def"
} clb_grouped_settings;

typedef struct {
#define LINEAR(name) int32_t name;
#include "kernels/schedule.def"
} clb_linear_settings;

typedef struct {
#define ROW_SUM(name) int32_t name;
#include "kernels/schedule.def"
} clb_row_sum_settings;

typedef struct {
#define GRAPH(name) int32_t name;
#include "kernels/schedule.def"
} clb_graph_settings;

typedef struct {
#define NORM(name) int32_t name;
#include "kernels/schedule.def"
} clb_norm_settings;

typedef struct {
#define LAYER(name) int32_t name;
#include "kernels/schedule.def"
} clb_layer_settings;

typedef struct {
#define OPTIMIZER(name) int32_t name;
#include "kernels/schedule.def"
} clb_optimizer_settings;

typedef struct {
#define COMMON(name) int32_t name;
#include "kernels/schedule.def"
  clb_rows_settings rows;
  clb_product_settings product;
  clb_convolution_settings convolution;
  clb_symmetric_settings symmetric;
  clb_matmul_settings matmul;
  clb_grouped_settings grouped;
  clb_linear_settings linear;
  clb_row_sum_settings row_sum;
  clb_graph_settings graph;
  clb_norm_settings norm;
  clb_layer_settings layer;
  clb_optimizer_settings optimizer;
} clb_schedule;

/* Where a setting is, CLB_FIELD(product.variant), or a struct of them, CLB_FIELD(product). */
#define CLB_FIELD(name) offsetof(clb_schedule, name)

/* "lanes=32 subgroups=4": what is not 0. */
void clb_schedule_print(const clb_schedule *s, clb_text *out);
/* Sets what has this name of n letters, among the common settings and those of one struct.
   false: nothing has, or the value does not fit. */
bool clb_schedule_set(clb_schedule *s, size_t of, const char *name, size_t n, long long value);

#endif
