/* models/arch/arch.c - the list of architectures. */
#include "models/arch/arch.h"

const clb_arch clb_archs[CLB_ARCHS] = {{"nequip", clb_arch_nequip},   {"nequix", clb_arch_nequip},
                                       {"sevennet", clb_arch_nequip}, {"mace", clb_arch_mace},
                                       {"allegro", clb_arch_allegro}, {"esen", clb_arch_esen}};
