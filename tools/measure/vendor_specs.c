/* tools/measure/vendor_specs.c - vendors' specifications, each with its source, and what follows
   from them. */
#include "tools/measure/vendor_specs.h"

#include <math.h>
#include <string.h>

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 65,536 registers,
   64 warps, 32 blocks a multiprocessor; A100 164 KB of shared memory, H100 228 KB.  Hopper Tuning
   Guide: 1 KB of it is reserved for the system in each block. Allocation units: the toolkit's
   cuda_occupancy.h (256 registers a warp, 128 bytes). */
static const gpu_core ampere = {.engines = 4,
                                .max_waves = 16,
                                .registers = 512,
                                .register_step = 8,
                                .local_bytes = 164 << 10,
                                .local_extra = 1024,
                                .local_step = 128,
                                .max_groups = 32};
static const gpu_core hopper = {.engines = 4,
                                .max_waves = 16,
                                .registers = 512,
                                .register_step = 8,
                                .local_bytes = 228 << 10,
                                .local_extra = 1024,
                                .local_step = 128,
                                .max_groups = 32};

/* "AMD Instinct MI200" and "MI300" Instruction Set Architecture guides: 512 vector registers a
   lane, shared by both kinds, in steps of 8; 64 KB of local memory in steps of 512 bytes.  LLVM,
   User Guide for AMDGPU Backend: 8 waves a SIMD. */
static const gpu_core cdna = {.engines = 4,
                              .max_waves = 8,
                              .registers = 512,
                              .register_step = 8,
                              .local_bytes = 64 << 10,
                              .local_step = 512,
                              .max_groups = 32};
/* "RDNA3" Instruction Set Architecture guide: 16 waves a SIMD, 1,536 registers a lane of a wave of
   32 in steps of 24, 128 KB for the four SIMDs of a work-group processor, in steps of 1 KB. */
static const gpu_core rdna3 = {.engines = 4,
                               .max_waves = 16,
                               .registers = 1536,
                               .register_step = 24,
                               .local_bytes = 128 << 10,
                               .local_step = 1024,
                               .max_groups = 64};

/* oneAPI GPU Optimization Guide and Intel GPU Occupancy Calculator, "Xe HPC / Data Center Max": 8
   vector engines of 8 threads with 128 registers each, or 4 with 256; 128 KB in these sizes. */
static const int xe_sizes[] = {1 << 10,  2 << 10,  4 << 10,  8 << 10,   16 << 10, 32 << 10,
                               48 << 10, 64 << 10, 96 << 10, 128 << 10, 0};
static const gpu_core xe_hpc = {.engines = 8,
                                .max_waves = 8,
                                .registers = 1024,
                                .register_step = 128,
                                .local_bytes = 128 << 10,
                                .local_sizes = xe_sizes,
                                .max_groups = 64};

static const vendor_specs products[] = {
    {"cuda@sm_90",
     "NVIDIA H200 SXM",
     4.8e12,
     {67e12, 34e12},
     &hopper}, /* NVIDIA H200 Tensor Core GPU, datasheet */
    {"cuda@sm_90",
     "NVIDIA H100 SXM",
     3.35e12,
     {67e12, 34e12},
     &hopper}, /* NVIDIA H100 Tensor Core GPU, datasheet */
    {"cuda@sm_80",
     "NVIDIA A100 SXM 80 GB",
     2.039e12,
     {19.5e12, 9.7e12},
     &ampere}, /* NVIDIA A100 Tensor Core GPU, datasheet */
    {"hip@gfx942",
     "AMD Instinct MI300X",
     5.3e12,
     {163.4e12, 81.7e12},
     &cdna}, /* AMD Instinct MI300X Accelerator, data sheet */
    /* AMD CDNA 2 Architecture, white paper, halved; f32 packed in pairs, which is twice the f32 of
       the data sheet. */
    {"hip@gfx90a", "AMD Instinct MI250X, one of two dies", 1.6384e12, {47.85e12, 23.95e12}, &cdna},
    {"hip@gfx1100",
     "AMD Radeon RX 7900 XTX",
     960e9,
     {61.4e12, 1.92e12},
     &rdna3}, /* AMD Radeon RX 7900 XTX, product page; f32 with two instructions at a time */
    /* Intel Data Center GPU Max Series, technical overview: 128 Xe-cores, 256 operations a clock in
       either type, 1.6 GHz. */
    {"level_zero@pvc",
     "Intel Data Center GPU Max 1550, one of two stacks",
     1.6384e12,
     {26.2e12, 26.2e12},
     &xe_hpc},
    {"level_zero@pvc",
     "Intel Data Center GPU Max 1550, both stacks",
     3.2768e12,
     {52.4e12, 52.4e12},
     &xe_hpc},
};

const vendor_specs *vendor_specs_of(const char *device, int i) {
  size_t n = strcspn(device, ":"); /* gfx90a:sramecc+ */
  for (size_t p = 0; p < sizeof products / sizeof *products; p++)
    if (strlen(products[p].device) == n && !memcmp(products[p].device, device, n) && i-- == 0)
      return &products[p];
  return NULL;
}

static int up_to(int x, int step) { return (x + step - 1) / step * step; }

static int min(int a, int b) { return a < b ? a : b; }

/* Local memory allocated on the core for a group; 0: none. */
static int local_of(const gpu_core *core, int bytes) {
  bytes += core->local_extra;
  if (core->local_step) return up_to(bytes, core->local_step);
  const int *size = core->local_sizes;
  while (*size && *size < bytes) size++;
  return !bytes ? 0 : *size ? *size : bytes;
}

int resident_waves(const gpu_core *core, const clb_report *r) {
  if (r->registers < 0 || r->subgroups < 1 || r->local_bytes < 0) return -1;
  int registers = up_to(r->registers ? r->registers : 1, core->register_step),
      local = local_of(core, r->local_bytes);
  int waves = core->engines * min(core->max_waves, core->registers / registers);
  int groups = min(waves / r->subgroups, core->max_groups);
  if (local) groups = min(groups, core->local_bytes / local);
  return groups * r->subgroups;
}

double occupancy(const gpu_core *core, const clb_report *report) {
  int waves = resident_waves(core, report);
  return waves < 0 ? (double)NAN : (double)waves / (core->engines * core->max_waves);
}

time_bound bound_of(const vendor_specs *p, clb_dtype arithmetic, double bytes, double flops) {
  double moving = bytes / p->bytes_per_second,
         computing = flops / p->flops_per_second[arithmetic == CLB_F64 ? CLB_F64 : CLB_F32];
  return moving >= computing ? (time_bound){moving, "bytes"} : (time_bound){computing, "flops"};
}
