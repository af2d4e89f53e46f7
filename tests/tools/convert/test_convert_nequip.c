/* tests/tools/convert/test_convert_nequip.c - `clebsch convert` on NequIP's and
   Allegro's packages and checkpoints that hold what is not supported, or are wrong
   (tests/data/nequip_models.py, allegro_reference.py). */
#include "tests/tools/convert_archive.h"

static void refuses_packages(void **state) {
  static const changed all[] = {
      {"sole_model", "some_model", "it holds 1 models; only a package of one is supported"},
      {"ModuleDict", "ModuleLost", "stands where ModuleDict was expected"},
      {"GraphModel", "GraphMedel", "its model is a GraphMedel"},
      {"SequentialGraphNetwork", "SequentialGraphNotwork", "stands where SequentialGraphNetwork"},
      {"ZBL", "ZBM", "its module 'pair_potential', a ZBM, is not supported"},
      {"ConvNetLayer", "ConvNotLayer", "its module 'layer0_convnet', a ConvNotLayer"},
      {"component", "integral!", "harmonics that are not normalised by component"},
      {"SiLU", "Mish", "a radial network with another activation than silu"},
      {"uvu", "uuu", "a path that is not supported"},
      {"type_names", "type_nomes", "it has no list of 1 to 128 types of atoms"},
      {"nequip.nn.norm", "pequip.nn.norm", "which no model needs"}};
  (void)state;
  refuses_changed("nequip/pairs.nequip.zip", "/model/eager_model.pkl", all,
                  sizeof all / sizeof *all);
}

static void refuses_checkpoints(void **state) {
  static const changed all[] = {
      {"FullNequIPGNNModel", "model.FromAPackage", "package it with `nequip-package build`"},
      {"pair_potential.ZBL", "pair_potential.LJs",
       "'nequip.nn.pair_potential.LJs' is not supported"},
      {"hyper_parameters", "hypo__parameters", "without SevenNet's 'config'"},
      {"state_dict", "steak_dict", "not one of NequIP's: it has no 'state_dict'"},
      {"4x0e+2x1o+2x0o", "4x0e+2x1o-2x0o", "which are no irreps"},
      {"4x0e+2x1o+2x0o", "4x0e+2x1o+2x0e", "have an irrep twice, which is not supported"},
      {"4x0e+2x1o+2x0o", "4x0e+3x1o+2x0o", "numbers, not"},
      {"edge_norm._rmax_recip", "edge_norm._rmax_rezip", "not of one NequIP model"},
      {"conv.edge_mlp.mlp.0.weight", "conv.edge_mlp.mlp.7.weight", "it has no tensor 'layer0"}};
  (void)state;
  refuses_changed("nequip/pairs.ckpt", "/data.pkl", all, sizeof all / sizeof *all);
}

static void refuses_allegro(void **state) {
  static const changed packages[] =
      {{"Allegro_Module", "Allegro_Medule", "its module 'allegro', a Allegro_Medule"},
       {"ProductTypeEmbedding", "ProductTypeEmbellish", "its module 'type_embed', a ProductTypeEm"},
       {"Contracter", "Contractor", "Contractor' stands where Contracter was expected"},
       {"component", "integral!", "not normalised by component"},
       {"SiLU", "Mish", "with the activation Mish is not supported"},
       {"weight_individual_irreps", "weight_individual_irrups", "weight_individual_irreps"},
       {"norm_module", "form_module", "norm"}},
                       checkpoints[] = {
                           {"TwoBodyBesselScalarEmbed", "TwoBodyVesselScalarEmbed",
                            "its radial_chemical_embed 'allegro.nn.TwoBodyVessel"},
                           {"allegro.tps.0.weights", "allegro.tps.0.heights", "tps.0.weights"},
                           {"AllegroModel", "AllegraModel",
                            "its model is built by 'allegro.model"}};
  (void)state;
  refuses_changed("allegro/pairs.nequip.zip", "/model/eager_model.pkl", packages,
                  sizeof packages / sizeof *packages);
  refuses_changed("allegro/pairs.ckpt", "/data.pkl", checkpoints,
                  sizeof checkpoints / sizeof *checkpoints);
}

/* Every file cut short is refused, and so is one whose bytes are not those of its sums. */
static void refuses_parts(void **state) {
  (void)state;
  size_t n;
  unsigned char *bytes = original("nequip/parity.nequip.zip", &n);
  for (size_t part = 100; part < n; part += n / 7) refused_bytes(bytes, part, "without its end");
  free(bytes);
}

static void refuses_compiled(void **state) {
  static const char name[] = "m/archive_format", text[] = "pt2";
  (void)state;
  start_file();
  for (int central = 0; central < 2; central++) {
    add_text(central ? "PK\1\2" : "PK\3\4");
    if (central) add_number(20, 2);
    add_number(20, 2);
    for (int i = 0; i < 4; i++) add_number(0, 2); /* flags, stored, time, date */
    add_number(crc_of((const unsigned char *)text, 3), 4);
    add_number(3, 4);
    add_number(3, 4);
    add_number(sizeof name - 1, 2);
    add_number(0, 2);
    for (int i = 0; central && i < 7; i++) add_number(0, 2); /* comment, disk, attributes, place */
    add_text(name);
    if (!central) add_text(text);
  }
  const uint32_t directory = 30 + sizeof name - 1 + 3, all = (uint32_t)made.n;
  add_text("PK\5\6");
  add_number(0, 4);
  add_number(1, 2);
  add_number(1, 2);
  add_number(all - directory, 4);
  add_number(directory, 4);
  add_number(0, 2);
  refused_bytes(made.bytes, made.n, "compiled code (AOTInductor: .pt2)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_packages), cmocka_unit_test(refuses_checkpoints),
      cmocka_unit_test(refuses_allegro), cmocka_unit_test(refuses_parts),
      cmocka_unit_test(refuses_compiled)};
  return cmocka_run_group_tests(tests, make_folder, remove_converted);
}
