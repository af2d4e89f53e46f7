/* models/arch/nequip_nonlinear.c - what networks like NequIP's have between linear maps: gates, and
   products of features with one another. */
#include <string.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;

#define LAYER(kind, what, in, out)                                                                 \
  clb_model_layer(r, &clb_##kind##_kind, sizeof(clb_##kind), n, what, in, out)

static void append(clb_irreps *to, const clb_irreps *terms) {
  for (int t = 0; t < terms->n && to->n < CLB_MAX_TERMS; t++) {
    clb_term *last = &to->term[to->n++];
    *last = terms->term[t];
    last->at = to->dim;
    to->dim += last->mul * (2 * last->l + 1);
  }
}

int clb_nequip_gate(reader *r, int n, const clb_nequip_nonlinear *f, int in) {
  clb_irreps irreps = f->scalars;
  append(&irreps, &f->gated);
  const int out = clb_model_array(r, CLB_PER_LOCAL, false, &irreps);
  clb_layer *y = LAYER(gate, "gate", in, out);
  clb_gate *p = y ? y->parameters : NULL;
  bool some[2] = {false};
  if (!y) return out;
  p->scalars = f->scalars;
  p->gates = f->gates;
  p->gated = f->gated;
  for (int t = 0; t < p->scalars.n; t++) some[p->scalars.term[t].parity < 0] = true;
  if (some[0]) p->even = clb_arch_activation(r, "activation_even");
  if (some[1]) p->odd = clb_arch_activation(r, "activation_odd");
  if (p->gates.n) p->gate = clb_arch_activation(r, "activation_gate");
  return out;
}

static int activate(reader *r, int n, int from) {
  if (r->status) return from;
  const clb_irreps irreps = r->out->array[from]->irreps;
  const int to = clb_model_array(r, CLB_PER_LOCAL, false, &irreps);
  clb_layer *y = LAYER(gate, "activation", from, to);
  if (y)
    *(clb_gate *)y->parameters =
        (clb_gate){.scalars = irreps, .even = clb_arch_activation(r, "activation_bilinear")};
  return to;
}

/* Both factors in one array, in which a term is 1 in each channel. */
static int add_factors(reader *r, int n, const clb_nequip_nonlinear *f) {
  clb_irreps both = f->product.in;
  append(&both, &f->second);
  const int array = clb_model_array(r, CLB_PER_LOCAL, false, &both);
  const int64_t species = r->out->n_species, table = clb_model_reserve(r, species * both.dim);
  clb_layer *y = LAYER(embedding, "ones", -1, array);
  if (!y) return array;
  *(clb_embedding *)y->parameters = (clb_embedding){.table = table};
  for (int64_t s = 0; s < species; s++)
    for (int c = 0; c < f->second.term[0].mul; c++)
      r->out->weights[table + s * both.dim + f->product.in.dim + c] = 1;
  return array;
}

static int add_product(reader *r, int n, const clb_nequip_nonlinear *f, int factors, int weights) {
  const int out = clb_model_array(r, CLB_PER_LOCAL, false, &f->product.out);
  clb_layer *y = LAYER(bilinear, "product", factors, out);
  clb_bilinear *p = y ? y->parameters : NULL;
  if (!y) return out;
  y->in[CLB_BILINEAR_WEIGHTS] = weights;
  y->gradients = 1U << CLB_BILINEAR_PARTS | 1U << CLB_BILINEAR_WEIGHTS;
  p->first = f->product.in;
  p->second = f->second;
  p->n_paths = f->product.n_paths;
  memcpy(p->path, f->product.path, sizeof p->path);
  return out;
}

/* Columns of the map's matrices are weights, scalars, the first factor, the second. */
int clb_nequip_bilinear(reader *r, int n, const clb_nequip_nonlinear *f, const char *linear,
                        int from, clb_arch_terms parts[CLB_NEQUIP_PARTS]) {
  const clb_arch_terms in = clb_arch_all(r, from);
  const int first = f->product.in.n,
            scalars = clb_arch_scalars(r, CLB_PER_LOCAL, f->second.term[0].mul);
  if (!first) {
    clb_arch_linear(r, n, linear, from, scalars, CLB_ARCH_ONE);
    parts[0] = clb_arch_all(r, activate(r, n, scalars));
    return 1;
  }
  const int weights = clb_arch_scalars(r, CLB_PER_LOCAL, f->product.n_weights),
            factors = add_factors(r, n, f);
  const clb_arch_terms to[] = {{weights, 0, 1},
                               {scalars, 0, 1},
                               {factors, 0, first},
                               {factors, first + 1, first + f->second.n}};
  clb_arch_maps(r, n, linear, &in, 1, to, 4, CLB_ARCH_ONE);
  parts[0] = clb_arch_all(r, activate(r, n, scalars));
  parts[1] = clb_arch_all(r, add_product(r, n, f, factors, activate(r, n, weights)));
  return 2;
}
