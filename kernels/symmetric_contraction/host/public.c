/* kernels/symmetric_contraction/host/public.c - the calls of the symmetric contraction. */
#include "kernels/symmetric_contraction/host/symmetric_contraction.h"

#include <stdlib.h>

#include "kernels/host/description.h"
#include "src/problem/symmetric_basis.h"
#include "src/tuning/autotune.h"

static clb_status read_description(const clb_description *d, unsigned *passes, clb_problem **p) {
  clb_symmetric_contraction_desc desc;
  const clb_status s = clb_description_take(d, &desc, sizeof desc, CLB_SYMMETRIC_CONTRACTION, p);
  if (s) return s;
  clb_problem_set_types(*p, desc.storage, desc.arithmetic, desc.accumulate);
  *passes = desc.passes;
  return clb_symmetric_contraction_read(&desc, &(*p)->symmetric_contraction, &d->ctx->error);
}

clb_status clb_symmetric_contraction_create_sized(clb_context *ctx,
                                                  const clb_symmetric_contraction_desc *given,
                                                  clb_op **op, size_t size) {
  clb_tuner tuner;
  unsigned passes = 0;
  clb_problem *p;
  if (op) *op = NULL;
  clb_status s =
      read_description(&(clb_description){ctx, "clb_symmetric_contraction_create",
                                          "clb_symmetric_contraction_desc", given, size, op, "op"},
                       &passes, &p);
  if (!s)
    s = clb_symmetric_contraction_make(
        ctx, p, passes & ~CLB_MEASURE,
        clb_tuner_for(ctx, passes, &clb_test_run_of_contraction, &tuner), op);
  free(p);
  return s;
}

/* ---- properties of a description ---- */

static clb_status read_problem(clb_context *ctx, const char *call,
                               const clb_symmetric_contraction_desc *given, size_t size,
                               const void *result, const char *name,
                               clb_symmetric_contraction_problem *problem) {
  unsigned passes;
  clb_problem *p;
  const clb_status s = read_description(
      &(clb_description){ctx, call, "clb_symmetric_contraction_desc", given, size, result, name},
      &passes, &p);
  if (!s) *problem = p->symmetric_contraction;
  free(p);
  return s;
}

clb_status clb_symmetric_contraction_paths_sized(clb_context *ctx,
                                                 const clb_symmetric_contraction_desc *desc,
                                                 int degree, int nu, clb_symmetric_paths *paths,
                                                 size_t size) {
  clb_symmetric_contraction_problem p;
  clb_status s =
      read_problem(ctx, "clb_symmetric_contraction_paths", desc, size, paths, "paths", &p);
  bool found = false;
  if (paths) *paths = (clb_symmetric_paths){0};
  if (s) return s;
  paths->all = p.n_paths;
  for (int i = 0; i < p.n_degrees && !found; i++)
    for (int k = 1; k <= p.correlation && !found; k++) {
      int count = clb_symmetric_rank(p.ell, k, p.degrees[i]);
      found = p.degrees[i] == degree && k == nu;
      if (found) paths->count = count;
      else paths->first += count;
    }
  if (found) return CLB_OK;
  *paths = (clb_symmetric_paths){0};
  return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                  "clb_symmetric_contraction_paths: degree is %d and nu is %d; degree must be one "
                  "of the description's degrees, nu 1 ... %d",
                  degree, nu, p.correlation);
}

clb_status clb_symmetric_contraction_basis_sized(clb_context *ctx,
                                                 const clb_symmetric_contraction_desc *desc,
                                                 int path, double *u, int64_t size,
                                                 size_t desc_size) {
  clb_symmetric_contraction_problem p;
  clb_symmetric_basis basis = {0};
  clb_status s = read_problem(ctx, "clb_symmetric_contraction_basis", desc, desc_size, u, "u", &p);
  if (s) return s;
  if (path < 0 || path >= p.n_paths)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_symmetric_contraction_basis: path is %d; there are %d paths", path,
                    (int)p.n_paths);
  if (!clb_symmetric_basis_make(&p, &basis))
    s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_symmetric_contraction_basis: no memory");
  int64_t wanted = s ? 0 : 2 * basis.path[path].degree + 1;
  for (int i = 0; !s && i < basis.path[path].nu; i++) wanted *= (p.ell + 1) * (p.ell + 1);
  if (!s && size != wanted)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_symmetric_contraction_basis: size is %lld; U of path %d has %lld numbers",
                 (long long)size, path, (long long)wanted);
  if (!s && !clb_symmetric_dense(&basis, path, p.ell, u))
    s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_symmetric_contraction_basis: no memory");
  clb_symmetric_basis_free(&basis);
  return s;
}

/* ---- passes ---- */

clb_status clb_symmetric_contraction_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                             clb_rows z) {
  return clb_symmetric_contraction_run(op, CLB_FORWARD, n, (const clb_rows[]){x, w, z});
}

clb_status clb_symmetric_contraction_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                              clb_rows g, clb_rows g_x, clb_rows g_w) {
  return clb_symmetric_contraction_run(op, CLB_BACKWARD, n, (const clb_rows[]){x, w, g, g_x, g_w});
}

clb_status clb_symmetric_contraction_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                                     clb_rows g, clb_rows a, clb_rows c,
                                                     clb_rows d_x, clb_rows d_w, clb_rows d_g) {
  return clb_symmetric_contraction_run(op, CLB_DOUBLE_BACKWARD, n,
                                       (const clb_rows[]){x, w, g, a, c, d_x, d_w, d_g});
}
