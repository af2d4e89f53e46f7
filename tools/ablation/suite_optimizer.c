/* tools/ablation/suite_optimizer.c - steps of an optimizer on a list of parameters; the naive
   variant is a launch for each tensor. Results are compared after the first step. */
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/optimizer/parameter_lists.h"

/* The first step is large enough for its error to be seen. */
static const float LR = 0.1F, BETA1 = 0.9F, BETA2 = 0.999F, EPSILON = 1e-8F;

/* Tensors begin at multiples of 16 bytes. */
static int64_t after(int64_t at, const int64_t shape[2]) {
  return at + (shape[0] * shape[1] + 3) / 4 * 4;
}

static void add_naive(work *w, const parameter_list *l, bool adam, clb_rows parameters,
                      clb_rows gradients, int64_t n) {
  float *zeros = allocate((size_t)n, sizeof *zeros), *p = work_address(w, parameters.buffer),
        *g = work_address(w, gradients.buffer), *moments[2];
  variant *y = work_naive(w);
  for (int i = 0; i < 2; i++) moments[i] = work_address(w, work_rows(w, n, 1, zeros).buffer);
  free(zeros);
  if (w->status) return;
  for (int64_t i = 0, at = 0; i < l->n; at = after(at, l->shape[i++])) {
    const naive_arguments a = {.out = p + at,
                               .g = g + at,
                               .first = moments[0] + at,
                               .second = moments[1] + at,
                               .n = l->shape[i][0] * l->shape[i][1],
                               .lr = LR,
                               .beta1 = BETA1,
                               .beta2 = BETA2,
                               .epsilon = EPSILON};
    variant_add_naive(w, y, adam ? NAIVE_adam : NAIVE_momentum, &a);
  }
}

/* The parameters before the first step, from which all variants start. */
static void keep_first(work *w, clb_rows parameters, int64_t n) {
  w->first = allocate((size_t)n, sizeof *w->first);
  work_output(w, parameters, 1, n);
  if (!w->status)
    w->status = clb_buffer_read(parameters.buffer, 0, w->first, (uint64_t)n * sizeof *w->first);
}

static void add_variants(work *w, const parameter_list *l, bool adam, clb_rows parameters,
                         clb_rows gradients) {
  const clb_optimizer_group group = {
      .rule = adam ? CLB_ADAM : CLB_SGD, .lr = (double)LR, .momentum = adam ? 0 : (double)BETA1};
  clb_optimizer_tensor *tensors = allocate((size_t)l->n, sizeof *tensors);
  for (int64_t i = 0, at = 0; i < l->n; at = after(at, l->shape[i++]))
    tensors[i] = (clb_optimizer_tensor){.rows = l->shape[i][0],
                                        .columns = l->shape[i][1],
                                        .parameters = {parameters.buffer, at},
                                        .gradients = {gradients.buffer, at}};
  const clb_optimizer_desc desc = {.tensors = tensors,
                                   .n_tensors = l->n,
                                   .groups = &group,
                                   .n_groups = 1,
                                   .parameters = CLB_F32,
                                   .gradients = CLB_F32};
  for (int i = 0; i < SWITCHES; i++) { /* nothing is summed in a step */
    const ablation_switch *off = &ablation_switches[i];
    if (!work_wants(w, off->variant) || (off->without && !(off->without & CLB_WIDE_ACCESSES)))
      continue;
    work_disable(w, off->without);
    const op_call call = {.optimizer = work_optimizer(w, &desc)};
    work_disable(w, 0);
    variant_add(w, work_variant(w, off->variant, 0, false), call);
  }
  free(tensors);
}

void ablation_optimizer(work *w, ablation_case *c) {
  const bool adam = !strcmp(c->kind, "adam");
  int which = 0;
  while (which < PARAMETER_LISTS - 1 && strcmp(parameter_list_names[which], c->problem)) which++;
  parameter_list l = parameter_list_make(which);
  int64_t n = 0;
  for (int64_t i = 0; i < l.n; i++) n = after(n, l.shape[i]);
  c->rows = l.all;
  clb_rows parameters = work_rows(w, n, 1, NULL), gradients = work_rows(w, n, 1, NULL);
  keep_first(w, parameters, n);
  add_variants(w, &l, adam, parameters, gradients);
  if (w->naive) add_naive(w, &l, adam, parameters, gradients, n);
  parameter_list_free(&l);
}
