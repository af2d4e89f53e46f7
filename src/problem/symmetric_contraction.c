/* src/problem/symmetric_contraction.c - descriptions of symmetric contractions are checked and made
   canonical. */
#include "src/problem/symmetric_basis.h"

static clb_status check_number(clb_error_sink *error, const char *name, int64_t x, int64_t least,
                               int64_t most) {
  return x >= least && x <= most
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_ARGUMENT, "%s is %lld; it must be %lld ... %lld", name,
                        (long long)x, (long long)least, (long long)most);
}

static clb_status check_degrees(const clb_symmetric_contraction_desc *d, clb_error_sink *error) {
  clb_status s = check_number(error, "n_degrees", d->n_degrees, 1, CLB_MAX_ELL + 1);
  if (!s && !d->degrees) s = clb_fail(error, CLB_ERROR_ARGUMENT, "degrees is NULL");
  for (int i = 0; i < d->n_degrees && !s; i++) {
    s = check_number(error, "one of degrees", d->degrees[i], 0, CLB_MAX_ELL);
    for (int k = 0; k < i && !s; k++)
      if (d->degrees[k] == d->degrees[i])
        s = clb_fail(error, CLB_ERROR_ARGUMENT, "degrees names %d twice", d->degrees[i]);
  }
  return s;
}

static clb_status check_layout(clb_error_sink *error, const char *name, clb_layout layout) {
  return layout == CLB_MUL_IR || layout == CLB_IR_MUL || layout == CLB_BY_CHANNEL
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_ARGUMENT,
                        "%s is %d; it must be CLB_MUL_IR, CLB_IR_MUL or CLB_BY_CHANNEL", name,
                        (int)layout);
}

static clb_status check(const clb_symmetric_contraction_desc *d, clb_error_sink *error) {
  const unsigned known = CLB_OPERAND_X | CLB_OPERAND_W;
  clb_status s = check_number(error, "ell", d->ell, 0, CLB_MAX_ELL);
  if (!s) s = check_number(error, "correlation", d->correlation, 1, CLB_MAX_CORRELATION);
  if (!s) s = check_number(error, "channels", d->channels, 1, 1 << 20);
  if (!s) s = check_number(error, "n_species", d->n_species, 1, 1 << 20);
  if (!s) s = check_degrees(d, error);
  if (!s) s = check_layout(error, "layout_x", d->layout_x);
  if (!s) s = check_layout(error, "layout_z", d->layout_z);
  if (!s && d->gradients & ~(known | CLB_OPERAND_Z))
    s = clb_fail(error, CLB_ERROR_ARGUMENT,
                 "gradients is %#x; it must be a sum of CLB_OPERAND_X, CLB_OPERAND_W and "
                 "CLB_OPERAND_Z",
                 d->gradients);
  if (!s && d->incoming & ~known)
    s = clb_fail(error, CLB_ERROR_ARGUMENT,
                 "incoming is %#x; it must be a sum of CLB_OPERAND_X and CLB_OPERAND_W",
                 d->incoming);
  return s;
}

clb_status clb_symmetric_contraction_read(const clb_symmetric_contraction_desc *d,
                                          clb_symmetric_contraction_problem *p,
                                          clb_error_sink *error) {
  clb_status s = check(d, error);
  if (s) return s;
  *p = (clb_symmetric_contraction_problem){
      .ell = d->ell,
      .correlation = d->correlation,
      .channels = d->channels,
      .n_species = d->n_species,
      .layout_x = (int32_t)d->layout_x,
      .layout_z = (int32_t)d->layout_z,
      .gradients =
          d->gradients ? (int32_t)d->gradients : CLB_OPERAND_X | CLB_OPERAND_W | CLB_OPERAND_Z,
      .incoming = d->incoming ? (int32_t)d->incoming : CLB_OPERAND_X | CLB_OPERAND_W,
      .n_degrees = d->n_degrees};
  for (int i = 0; i < d->n_degrees; i++) {
    p->degrees[i] = d->degrees[i];
    for (int nu = 1; nu <= d->correlation; nu++)
      p->n_paths += clb_symmetric_rank(d->ell, nu, d->degrees[i]);
  }
  if ((int64_t)p->n_paths * d->channels * d->n_species > INT32_MAX)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "%d paths of %d channels and %d species are more than 2^31 - 1 weights",
                    (int)p->n_paths, d->channels, d->n_species);
  return CLB_OK;
}
