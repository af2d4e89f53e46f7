/* tools/convert/mace_product.c - the symmetric contractions of MACE's product basis. */
#include <math.h>
#include <stdio.h>

#include "tools/convert/mace.h"

/* The tensor and the weights of order nu; the tensor's last axis and the weights' second one count
   its elements. */
typedef struct {
  weights u, w;
  int64_t elements;
} order;

/* U_matrix_nu is [2 l + 1][d]..[d][elements], without the first axis for l = 0; its weights are
   [species][elements][channels], or the same for all species. */
static order order_at(const mace *q, value contraction, int nu, int correlation, int l) {
  char tensor[NAME_BYTES], numbers[NAME_BYTES] = "weights_max";
  const int axes = nu + (l > 0);
  snprintf(tensor, sizeof tensor, "U_matrix_%d", nu);
  if (nu < correlation) snprintf(numbers, sizeof numbers, "weights.%d", correlation - 1 - nu);
  order o = {weights_at(q->t, contraction, tensor), weights_at(q->t, contraction, numbers), 0};
  const int64_t d = (int64_t)(q->l_max + 1) * (q->l_max + 1);
  bool good = o.u.rank == axes + 1 && o.w.rank == 3;
  for (int i = 0; good && i < axes; i++) good = o.u.shape[i] == (l > 0 && !i ? 2 * l + 1 : d);
  good = good && o.w.shape[1] == o.u.shape[axes] && o.w.shape[2] == q->features.term[0].mul &&
         (o.w.shape[0] == 1 || o.w.shape[0] == q->n_species);
  if (!good)
    refuse(q->t->path, "'%s' and '%s' of '%s' are not of the shape of their degrees", tensor,
           numbers, class_of(contraction));
  o.elements = o.u.shape[axes];
  return o;
}

/* As they are in the file. */
static void keep_order(mace *q, int layer, int l, int nu, const order *o) {
  char name[NAME_BYTES];
  int64_t d = 1;
  for (int i = 0; i < nu; i++) d *= (int64_t)(q->l_max + 1) * (q->l_max + 1);
  snprintf(name, sizeof name, "layers.%d.product.%d.%d.u", layer, l, nu);
  keep_part(q->out, &o->u, 0, 1, 3, (int64_t[]){2 * l + 1, d, o->elements}, name);
  snprintf(name, sizeof name, "layers.%d.product.%d.%d.w", layer, l, nu);
  keep_part(q->out, &o->w, 0, 1, 3, o->w.shape, name);
}

void mace_product(mace *q, int layer, value product, const irreps *to) {
  value block = mace_module(q, product, "symmetric_contractions", "SymmetricContraction"),
        list = mace_module(q, block, "contractions", "ModuleList");
  char path[NAME_BYTES];
  for (int l = 0; l < to->n; l++) {
    snprintf(path, sizeof path, "%d", l);
    value contraction = mace_module(q, list, path, "Contraction");
    int correlation = 0;
    while (snprintf(path, sizeof path, "U_matrix_%d", correlation + 1), maybe(contraction, path))
      correlation++;
    if (correlation < 1 || correlation > MACE_CORRELATION)
      refuse(q->t->path, "product %d has correlation %d; it must be from 1 to %d", layer,
             correlation, MACE_CORRELATION);
    snprintf(path, sizeof path, "%d", correlation);
    say(q->out, path, "layers.%d.correlation", layer);
    for (int nu = 1; nu <= correlation; nu++) {
      const order o = order_at(q, contraction, nu, correlation, l);
      keep_order(q, layer, l, nu, &o);
    }
  }
}
