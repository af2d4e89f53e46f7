/* tests/models/test_model_blocks.c - systems in blocks of atoms have the energies, forces and
   stress of the whole: on every kind of device, with blocks of all sizes, and atoms without edges.
 */
#include "tests/models/model_places.h"

/* Atoms of a crowd, and between their numbers some that are far from all others, also at the ends:
   blocks of them have no edges. */
static atom_set scattered(int n_species, bool periodic, uint64_t seed) {
  atom_set a = random_atoms(13, n_species, periodic, seed);
  static const int alone[] = {0, 4, 5, 6, 12};
  for (size_t i = 0; i < sizeof alone / sizeof *alone && !periodic; i++)
    a.positions[3 * alone[i]] = 40 * (double)(i + 1);
  return a;
}

static void same_as_whole(const char *device, const clb_limits *limits, int which,
                          clb_model_options options) {
  static const int64_t blocks[] = {1, 3, 5, 13, 100};
  const bool single = options.dtype == CLB_F32;
  const int n_species = made_models[which].n_species;
  opened whole = open_made_as(device, limits, which, &options);
  for (size_t i = limits ? 1 : 0; i < (limits ? 2 : sizeof blocks / sizeof *blocks); i++) {
    options.block_atoms = blocks[i];
    opened o = open_made_as(device, limits, which, &options);
    for (int periodic = 0; periodic < 2; periodic++) {
      const atom_set a = scattered(n_species, periodic, 50 + i);
      const computed wanted = compute_atoms(&whole, &a), found = compute_atoms(&o, &a);
      assert_true(o.model->net.blocked && !whole.model->net.blocked);
      assert_int_equal(o.model->n_blocks, (13 + blocks[i] - 1) / blocks[i]);
      expect_same(&found, &wanted, a.n, single ? 2e-5 : 1e-11);
      const computed again = compute_atoms(&o, &a);
      if (!options.atomics) assert_memory_equal(&again, &found, sizeof found);
    }
    close_model(&o);
  }
  close_model(&whole);
}

static void on_cpu(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++)
    for (int i = 0; i < 3; i++)
      same_as_whole("cpu", NULL, which,
                    (clb_model_options){.dtype = i == 2 ? CLB_F32 : CLB_F64,
                                        .knots = i ? 16 : CLB_NO_KNOTS,
                                        .atomics = i == 2});
}

/* As on GPUs, where convolutions run in frames of edges; kernels that read what nothing has written
   are found here. */
static void on_interpreter(void **state) {
  (void)state;
  for (int which = 0; which < MADE_MODELS; which++)
    same_as_whole("cpu:interpreter", &device_limits[LIMITS_NVIDIA].limits, which,
                  (clb_model_options){.dtype = CLB_F32, .knots = which % 2 ? CLB_NO_KNOTS : 16});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_cpu), cmocka_unit_test(on_interpreter)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
