/* tools/convert/nequip/nequip_modules.c - the modules of a layer of NequIP, as saved or in
   TorchScript: their own words for normalisations and irreps are compared with
   docs/model-format.md, so that a model that computes something else is refused, not converted. */
#include <math.h>
#include <string.h>

#include "tools/convert/nequip/nequip_reader.h"

/* Terms of an irrep in each of two lists, in an instruction of a linear map. */
static void check_linear(const nequip *q, value linear, const irreps *in, const irreps *out) {
  const torch *t = q->t;
  value list = attribute(t, linear, "instructions", PICKLE_LIST);
  size_t n = 0;
  expect_irreps(t, linear, "irreps_in", in);
  expect_irreps(t, linear, "irreps_out", out);
  expect(t, whole_at(t, linear, "bias_numel") == 0, linear,
         "a linear map with a bias is not supported");
  for (int i = 0; i < in->n; i++)
    for (int o = 0; o < out->n; o++) {
      if (!same_irrep(in->term[i], out->term[o])) continue;
      value instruction = item(t, list, n++, PICKLE_TUPLE);
      const double factor = item(t, instruction, 3, PICKLE_REAL)->real;
      expect(t,
             whole_item(t, instruction, 0, in->n) == i &&
                 whole_item(t, instruction, 1, out->n) == o,
             linear, "an instruction does not fit its irreps");
      expect(t, nequip_near(factor, 1 / sqrt((double)in->term[i].mul)), linear,
             "a path is not scaled by 1 / sqrt(channels)");
    }
  expect(t, n == list->n, linear, "an instruction does not fit its irreps");
}

static void check_path(const nequip *q, value product, size_t i, const char *mode,
                       const path_terms *p, double factor) {
  value path = item(q->t, attribute(q->t, product, "instructions", PICKLE_LIST), i, PICKLE_TUPLE);
  const bool good = whole_item(q->t, path, 0, MAX_TERMS) == p->x &&
                    whole_item(q->t, path, 1, MAX_TERMS) == p->y &&
                    whole_item(q->t, path, 2, MAX_TERMS) == p->z &&
                    !strcmp(item(q->t, path, 3, PICKLE_TEXT)->text, mode) &&
                    item(q->t, path, 4, PICKLE_BOOL)->whole &&
                    nequip_near(item(q->t, path, 5, PICKLE_REAL)->real, factor);
  expect(q->t, good, product, "a path that is not supported");
}

static void check_paths(const nequip *q, value product, const nequip_layer *l) {
  expect_irreps(q->t, product, "irreps_in1", &q->features);
  expect_irreps(q->t, product, "irreps_in2", &q->sh);
  expect_irreps(q->t, product, "irreps_out", &l->messages);
  expect(q->t, attribute(q->t, product, "instructions", PICKLE_LIST)->n == (size_t)l->n_paths,
         product, "not one path per term of the messages");
  for (int i = 0; i < l->n_paths; i++)
    check_path(q, product, (size_t)i, "uvu", &l->paths[i],
               sqrt(2. * l->messages.term[l->paths[i].z].l + 1));
}

static void check_self_connection(const nequip *q, value product, const nequip_layer *l,
                                  int64_t inner) {
  const irreps second = {1, {{(int)inner, 0, 1}}};
  size_t n = 0;
  expect_irreps(q->t, product, "irreps_in1", &q->features);
  expect_irreps(q->t, product, "irreps_in2", &second);
  expect_irreps(q->t, product, "irreps_out", &l->linear);
  for (int x = 0; x < q->features.n; x++)
    for (int z = 0; z < l->linear.n; z++) {
      const irrep in = q->features.term[x];
      if (same_irrep(in, l->linear.term[z]))
        check_path(q, product, n++, "uvw", &(path_terms){x, 0, z},
                   sqrt((2. * in.l + 1) / ((double)in.mul * (double)inner)));
    }
  expect(q->t, attribute(q->t, product, "instructions", PICKLE_LIST)->n == n, product,
         "a path that is not supported");
}

void nequip_check_layer(nequip *q, value module, const char *tp, const nequip_layer *l,
                        int64_t inner) {
  const torch *t = q->t;
  value conv = attribute(t, module, "conv", PICKLE_OBJECT),
        gate = attribute(t, module, "equivariant_nonlin", PICKLE_OBJECT);
  expect_class(t, conv, "InteractionBlock");
  expect_class(t, gate, "Gate");
  expect_flag(t, module, "resnet", false);
  check_linear(q, attribute(t, conv, "linear_1", PICKLE_OBJECT), &q->features, &q->features);
  check_paths(q, attribute(t, conv, tp, PICKLE_OBJECT), l);
  check_linear(q, attribute(t, conv, "linear_2", PICKLE_OBJECT), &l->merged, &l->linear);
  if (attribute(t, conv, "use_sc", PICKLE_BOOL)->whole)
    check_self_connection(q, attribute(t, conv, "sc", PICKLE_OBJECT), l, inner);
  expect_irreps(t, gate, "irreps_scalars", &l->scalars);
  expect_irreps(t, gate, "irreps_gates", &l->gates);
  expect_irreps(t, gate, "irreps_gated", &l->gated);
  expect_irreps(t, gate, "_irreps_in", &l->linear);
  expect_irreps(t, gate, "_irreps_out", &l->out);
}

/* ---- activations ---- */

void nequip_put_activation(nequip *q, value act, const char *key) {
  char name[ACTIVATION_BYTES];
  double scale;
  activation_of(q->t, act, name, &scale);
  put_string(q->out, name, "%s", key);
  put_number(q->out, scale, "%s_scale", key);
}

/* The functions of an Activation module, one per term of its irreps. */
static void put_activations(nequip *q, value activation, const irreps *terms, const char *even,
                            const char *odd) {
  expect_class(q->t, activation, "Activation");
  for (int i = 0; i < terms->n; i++)
    nequip_put_activation(q, attribute(q->t, activation, named("acts.%d", i).text, PICKLE_OBJECT),
                          terms->term[i].parity > 0 ? even : odd);
}

void nequip_put_gate(nequip *q, value gate, const nequip_layer *l) {
  put_activations(q, attribute(q->t, gate, "act_scalars", PICKLE_OBJECT), &l->scalars,
                  "activation_even", "activation_odd");
  if (l->gates.n)
    put_activations(q, attribute(q->t, gate, "act_gates", PICKLE_OBJECT), &l->gates,
                    "activation_gate", "activation_gate");
}
