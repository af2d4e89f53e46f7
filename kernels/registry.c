/* kernels/registry.c - the table of kinds of kernels. */
#include "kernels/kernel.h"

const clb_kernel_kind *const clb_kernel_kinds[CLB_KERNEL_KINDS] = {
#define KIND(NAME, name) [CLB_##NAME] = &clb_kind_##name,
#include "src/problem/kinds.def"
};
