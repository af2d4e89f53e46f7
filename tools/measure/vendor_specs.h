/* tools/measure/vendor_specs.h - what vendors publish of their GPUs, and the occupancy and the time
   that it implies for a kernel nobody has run. */
#ifndef CLB_TOOLS_MEASURE_VENDOR_SPECS_H
#define CLB_TOOLS_MEASURE_VENDOR_SPECS_H

#include <clebsch/clebsch.h>

/* Where a group runs: a multiprocessor, compute unit, work-group processor or Xe-core.  It has
   `engines` with registers of their own; a wave (warp, hardware thread) stays on one of them. */
typedef struct {
  int engines, most_waves;      /* most_waves: of one engine */
  int registers, register_step; /* of one engine, for each lane of a wave (Intel: of 64 bytes); a
                                   wave gets a multiple of the step */
  int local_bytes, local_extra; /* of the core; what every group takes beside its own */
  int local_step;               /* a group gets a multiple of it; 0: one of local_sizes */
  const int *local_sizes;       /* ascending, ends with 0 */
  int most_groups;              /* of the core */
} gpu_core;

typedef struct {
  const char *device, *name; /* "hip@gfx942", "AMD Instinct MI300X" */
  double bytes_per_second;
  double flops_per_second[2]; /* by clb_dtype of the arithmetic: f64, f32; vector units only, fma =
                                 2 */
  const gpu_core *core;
} published;

/* The i-th product that code for this compile-only device runs on, the first being the one that is
   meant unless another is named; NULL: no more. */
const published *published_of(const char *device, int i);

/* Waves that one core can hold at once; -1 where the compiler does not say what the kernel needs.
 */
int resident_waves(const gpu_core *core, const clb_report *report);
/* The same, of the most that any kernel can have: 0 ... 1, NAN where unknown. */
double occupancy(const gpu_core *core, const clb_report *report);

/* No kernel that moves so many bytes and does so many operations takes less. */
typedef struct {
  double seconds;
  const char *limited_by; /* "bytes", "flops" */
} time_bound;
time_bound bound_of(const published *p, clb_dtype arithmetic, double bytes, double flops);

#endif
