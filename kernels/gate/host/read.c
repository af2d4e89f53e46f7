/* kernels/gate/host/read.c - the parts of a gate from their description. */
#include "kernels/gate/host/gate.h"
#include "src/problem/irreps.h"

/* All channels, each irrep once: by degree, odd before even. */
static clb_status sort_input(clb_gate_parts *g, clb_error_sink *error) {
  int64_t dim = 0;
  for (int l = 0; l <= CLB_MAX_L; l++)
    for (int parity = -1; parity <= 1; parity += 2) {
      int64_t mul = 0;
      for (int p = 0; p < CLB_GATE_PARTS; p++)
        for (int t = 0; t < g->part[p].n; t++) {
          const clb_term *term = &g->part[p].term[t];
          if (term->l == l && term->parity == parity) mul += term->mul;
        }
      if (!mul) continue;
      if (dim + mul * (2 * l + 1) > INT32_MAX)
        return clb_fail(error, CLB_ERROR_ARGUMENT,
                        "gate: scalars, gates and gated together are more than 2^31 - 1 numbers");
      g->in.term[g->in.n++] = (clb_term){
          .mul = (int32_t)mul, .l = (int32_t)l, .parity = (int32_t)parity, .at = (int32_t)dim};
      dim += mul * (2 * l + 1);
    }
  g->in.dim = (int32_t)dim;
  return CLB_OK;
}

/* Activations of a part; e3nn's rule for odd scalars. */
static clb_status read_activations(clb_gate_parts *g, int part, const char *text, const char *name,
                                   int normalize, clb_error_sink *error) {
  const clb_irreps *irreps = &g->part[part];
  clb_status s = clb_activations_read(text, name, irreps->n, normalize, g->activation[part], error);
  for (int t = 0; t < irreps->n && !s; t++) {
    const clb_activation f = g->activation[part][t].function;
    const int parity = clb_activation_parity(f, irreps->term[t].parity);
    g->odd[part][t] = parity < 0;
    if (!parity)
      s = clb_fail(error, CLB_ERROR_ARGUMENT,
                   "%s: %s of %dx0o would have no parity; of odd scalars there are tanh, abs and "
                   "identity",
                   name, clb_activation_name(f), (int)irreps->term[t].mul);
  }
  return s;
}

clb_status clb_gate_read(const clb_gate_desc *d, clb_gate_parts *g, clb_error_sink *error) {
  static const char *const names[] = {"irreps_scalars", "irreps_gates", "irreps_gated"};
  const char *const texts[] = {d->irreps_scalars, d->irreps_gates, d->irreps_gated};
  clb_status s = CLB_OK;
  g->layout = d->layout;
  if (d->layout != CLB_MUL_IR && d->layout != CLB_IR_MUL)
    s = clb_fail(error, CLB_ERROR_ARGUMENT, "layout is %d; a gate's is CLB_MUL_IR or CLB_IR_MUL",
                 (int)d->layout);
  for (int i = 0; i < CLB_GATE_PARTS && !s; i++)
    s = clb_irreps_read(texts[i] ? texts[i] : "", names[i], &g->part[i], error);
  for (int i = 0; i < CLB_GATE_GATED; i++)
    for (int t = 0; t < g->part[i].n && !s; t++)
      if (g->part[i].term[t].l)
        s = clb_fail(error, CLB_ERROR_ARGUMENT, "term %d of %s has degree %d; it must be 0", t,
                     names[i], (int)g->part[i].term[t].l);
  if (!s)
    s = read_activations(g, CLB_GATE_SCALARS, d->act_scalars, "act_scalars", d->normalize, error);
  if (!s) s = read_activations(g, CLB_GATE_GATES, d->act_gates, "act_gates", d->normalize, error);
  if (!s && d->irreps_x) s = clb_irreps_read(d->irreps_x, "irreps_x", &g->in, error);
  else if (!s) s = sort_input(g, error);
  return s;
}
