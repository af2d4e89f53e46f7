/* models/arch/arch.h - architectures: each reads its configuration and its tensors from a model's
   file into a list of layers; nothing else knows their names. */
#ifndef CLB_MODELS_ARCH_ARCH_H
#define CLB_MODELS_ARCH_ARCH_H

#include "models/file/reader.h"

typedef struct {
  const char *name; /* the file's 'architecture' */
  void (*read)(clb_model_reader *r);
} clb_arch;

enum { CLB_ARCHS = 6 };
extern const clb_arch clb_archs[CLB_ARCHS];

void clb_arch_nequip(clb_model_reader *r);
void clb_arch_mace(clb_model_reader *r);
void clb_arch_allegro(clb_model_reader *r);
void clb_arch_esen(clb_model_reader *r);

#endif
