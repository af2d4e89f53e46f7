/* tests/training/original_models.h - real models, converted in a folder of the test.
   CLB_TEST_NEQUIX: nequix-mp-1.nqx; CLB_TEST_NEQUIP: water.pth, by default that of Debian's
   cp2k-data; CLB_TEST_SEVENNET: the folder sevenn/pretrained_potentials of PyPI's sevenn 0.13.0;
   CLB_TEST_MACE: a folder with tiny_a.model to tiny_d.model, of which some are packed by xz. */
#ifndef CLB_TESTS_TRAINING_ORIGINAL_MODELS_H
#define CLB_TESTS_TRAINING_ORIGINAL_MODELS_H

#include "tests/tools/convert_runner.h"

static char nequix[80], water[80];
static struct {
  const char *name, *file, *modality; /* name: in sevennet_reference.json */
  char path[80];
} original_sevennet[] = {
    {"SevenNet-0_11Jul2024", "SevenNet_0__11Jul2024/checkpoint_sevennet_0.pth", NULL, ""},
    {"SevenNet-0_22May2024", "SevenNet_0__22May2024/checkpoint_sevennet_0.pth", NULL, ""},
    {"SevenNet-l3i5", "SevenNet_l3i5/checkpoint_l3i5.pth", NULL, ""},
    {"SevenNet-MF-0:PBE", "SevenNet_MF_0/checkpoint_sevennet_mf_0.pth", "PBE", ""},
    {"SevenNet-MF-0:R2SCAN", "SevenNet_MF_0/checkpoint_sevennet_mf_0.pth", "R2SCAN", ""}};
enum { SEVENNETS = sizeof original_sevennet / sizeof *original_sevennet };
static struct {
  const char *name; /* in mace_reference.json, and of the file */
  char path[80];
} original_mace[] = {{"tiny_a", ""}, {"tiny_b", ""}, {"tiny_c", ""}, {"tiny_d", ""}};
enum { MACES = sizeof original_mace / sizeof *original_mace };

/* Converts a model; the path is empty where there is none. */
static void convert_model(const char *from, const char *modality, const char *name, char to[80]) {
  if (!from || access(from, R_OK)) return;
  snprintf(to, 80, "%s", name);
  outcome o = run_convert("--modality", modality, from, to);
  if (o.status) fail_msg("%s", o.err);
  forget(&o);
}

/* FOLDER/NAME.model, or NAME.model.xz unpacked. */
static void convert_mace(const char *folder, int i) {
  char from[600];
  snprintf(from, sizeof from, "%s/%s.model", folder, original_mace[i].name);
  if (!access(from, R_OK)) convert_model(from, NULL, original_mace[i].name, original_mace[i].path);
  else if (!system(format("xz -dc '%s.xz' >unpacked", from)))
    convert_model("unpacked", NULL, original_mace[i].name, original_mace[i].path);
}

static int convert_models(void **state) {
  const char *path = getenv("CLB_TEST_NEQUIP");
  if (make_folder(state)) return -1;
  convert_model(getenv("CLB_TEST_NEQUIX"), NULL, "nequix", nequix);
  convert_model(path ? path : "/usr/share/cp2k/NequIP/water.pth", NULL, "water", water);
  for (int i = 0; i < SEVENNETS && getenv("CLB_TEST_SEVENNET"); i++) {
    const char *from = format("%s/%s", getenv("CLB_TEST_SEVENNET"), original_sevennet[i].file);
    convert_model(from, original_sevennet[i].modality, format("sevennet%d", i),
                  original_sevennet[i].path);
  }
  for (int i = 0; i < MACES && getenv("CLB_TEST_MACE"); i++)
    convert_mace(getenv("CLB_TEST_MACE"), i);
  return 0;
}

#endif
