/* tests/tools/convert/test_convert_esen.c - `clebsch convert` on eSEN's checkpoints that hold what
   is not supported, or are wrong (tests/data/esen_models.py). */
#include "tests/tools/convert_archive.h"

static void refuses_checkpoints(void **state) {
  static const changed all[] = {
      {"escn_md.eSCNMDBackbone", "escn_md.eSCNMDBackbome", "its network is 'fairchem.core.models"},
      {"escn_md.MLP_EFS_Head", "escn_md.MLP_ABC_Head", "only MLP_EFS_Head is understood"},
      {"rms_norm_sh", "rms_norm_hs", "'norm_type' = 'rms_norm_hs'; only 'rms_norm_sh'"},
      {"spectral", "spectrum", "'ff_type' = 'spectrum'"},
      {"pos_emb", "lin_emb", "'chg_spin_emb_type' = 'lin_emb'"},
      {"gaussian", "gauxsian", "'distance_function' = 'gauxsian'"},
      {"direct_forces", "direkt_forces", "forces of their own ('direct_forces')"},
      {"tasks_config", "tusks_config", "no list 'tasks_config'"},
      {"_args_", "_orgs_", "are not a list in its tasks"},
      {"normalizer", "normulizer", "energies without a 'normalizer'"},
      {"ema_state_dict", "emu_state_dict", "not "},
      {"module.backbone.norm.affine_weight", "module.backbone.norm.affine_height",
       "there is no tensor 'module.backbone.norm.affine_weight'"},
      {"hidden_channels", "hodden_channels", "numbers, not"},
      {"MLIPInferenceCheckpoint", "MLIPInferenceCheckpaint", "which no model needs"}};
  static const changed grid[] = {
      {"grid_mlp.2.weight", "grid_mlp.3.weight",
       "there is no tensor 'module.backbone.blocks.0.atom"},
      {"dataset_emb_dict", "dataset_emb_dyct", "dataset_emb_dict.omol.weight"}};
  (void)state;
  refuses_changed("esen/spectral.pt", "/data.pkl", all, sizeof all / sizeof *all);
  refuses_changed("esen/grid.pt", "/data.pkl", grid, sizeof grid / sizeof *grid);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refuses_checkpoints)};
  return cmocka_run_group_tests(tests, make_folder, remove_converted);
}
