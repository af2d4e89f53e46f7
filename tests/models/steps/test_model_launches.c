/* tests/models/steps/test_model_launches.c - how many launches a step of a model is on a GPU, and
   that those that do the work of several give the same results. */
#include "kernels/linear/host/few.h"
#include "models/layers/kinds.h"
#include "models/model_state.h"

#include "tests/models/model_places.h"

typedef struct {
  int64_t maps, gates, torques;
} counted;
static void count_kernels(const clb_profile_entry *entry, void *user) {
  counted *c = user;
  if (!strncmp(entry->kernel, "linear_few", 10)) c->maps += entry->launches;
  if (!strncmp(entry->kernel, "gate", 4)) c->gates += entry->launches;
  if (!strcmp(entry->kernel, "edge_torques")) c->torques += entry->launches;
}

/* How many a model has. */
typedef struct {
  int pairs, by_species, gated, frames;
} grouped;

/* On a GPU linear maps of one array are one launch, forward and backward, together with the gate
   that it comes out of, as is each of the others, and the gradients by vectors of all convolutions
   in frames. */
static void count_launches(int which, grouped *all) {
  opened o = open_made_as("cpu:interpreter", &device_limits[LIMITS_NVIDIA].limits, which,
                          &(clb_model_options){.dtype = CLB_F32, .knots = 16});
  const atom_set a = random_atoms(6, made_models[which].n_species, true, 9);
  const clb_network *n = &o.model->net;
  counted launches = {0};
  int64_t maps = 0, gates = 0, frames = 0;
  const computed wanted = compute_one_by_one(&o, &a);
  if (clb_profile_begin(o.ctx)) fail_msg("%s", clb_error(o.ctx));
  const computed c = compute_one_by_one(&o, &a);
  if (clb_profile_end(o.ctx, count_kernels, &launches)) fail_msg("%s", clb_error(o.ctx));
  expect_equal(&c, &wanted);
  for (int i = 0; i < n->n_computing; i++) {
    const clb_layer *y = n->layer[n->step[i].layer];
    const bool gated = y->kind == &clb_gated_kind,
               group = gated || y->kind == &clb_linear_group_kind, back = n->step[i].sweep;
    frames += y->kind == &clb_edges_kind && y->out[CLB_EDGES_FRAMES] >= 0 && !back;
    gates += y->kind == &clb_gate_kind;
    if (!group && y->kind != &clb_linear_kind) continue;
    maps += !back || clb_gradient(n, y->in[0]).buffer;
    if (!group || back) continue;
    const clb_linear_group *p = y->parameters;
    all->gated += gated;
    all->pairs += p->n > 1;
    all->by_species += p->n > 1 && p->row[0];
  }
  assert_int_equal(launches.maps, maps);
  assert_int_equal(launches.gates, gates);
  assert_int_equal(launches.torques, frames);
  close_model(&o);
  all->frames += (int)frames;
}

/* Where memory counts more than launches, each convolution's torques are turned by themselves: the
   same values. */
static void saves_memory(void **state) {
  (void)state;
  opened o[2];
  computed c[2];
  counted launches[2] = {{0}};
  const atom_set a = random_atoms(6, made_models[1].n_species, true, 9);
  int convolutions = 0;
  for (int i = 0; i < 2; i++) {
    o[i] = open_made_as("cpu:interpreter", &device_limits[LIMITS_NVIDIA].limits, 1,
                        &(clb_model_options){.dtype = CLB_F64, .knots = 16});
    if (i) o[i].model->spare = -1;
    OK(o[i].ctx, clb_profile_begin(o[i].ctx));
    c[i] = compute_one_by_one(&o[i], &a);
    OK(o[i].ctx, clb_profile_end(o[i].ctx, count_kernels, &launches[i]));
    assert_int_equal(o[i].model->net.frugal, i);
  }
  expect_same(&c[1], &c[0], a.n, 1e-11);
  const clb_network *n = &o[1].model->net;
  for (int l = 0; l < n->n_layers; l++) convolutions += n->layer[l]->kind == &clb_convolution_kind;
  assert_true(convolutions > 1);
  assert_int_equal(launches[0].torques, 1);
  assert_int_equal(launches[1].torques, convolutions);
  for (int i = 0; i < 2; i++) close_model(&o[i]);
}

static void launches_of_models(void **state) {
  grouped all = {0};
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++) count_launches(which, &all);
  assert_true(all.by_species > 1 && all.pairs > all.by_species && all.gated > 1 && all.frames > 1);
}

/* Maps that go through their gate themselves give the bits of a gate and maps; and in front of it
   the gradients, to rounding, as the maps are then added up one after the other. */
static void gates_apart(void **state) {
  static const int limits[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_SMALL_GROUPS};
  int gated = 0;
  (void)state;
  for (int i = 0; i < 6; i++) {
    const int which = 1 + i / 3;
    opened o = open_made_as("cpu:interpreter", &device_limits[limits[i % 3]].limits, which,
                            &(clb_model_options){.dtype = CLB_F32, .knots = 16});
    const atom_set a = random_atoms(9, made_models[which].n_species, true, 3);
    const computed together = compute_one_by_one(&o, &a);
    for (int back = 0; back < 2; back++) {
      for (int l = 0; l < o.model->net.n_layers; l++) {
        clb_linear_group *p = o.model->net.layer[l]->parameters;
        if (o.model->net.layer[l]->kind != &clb_gated_kind) continue;
        gated += (back ? p->back : p->gated)[0] != NULL;
        for (int k = 0; k < (back ? 2 : 4); k++)
          clb_linear_few_destroy(&(back ? p->back : p->gated)[k]);
      }
      const computed apart = compute_one_by_one(&o, &a);
      if (!back) expect_equal(&apart, &together);
      expect_same(&apart, &together, a.n, 3e-5);
    }
    close_model(&o);
  }
  assert_true(gated >= 24);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(launches_of_models),
                                     cmocka_unit_test(saves_memory), cmocka_unit_test(gates_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
