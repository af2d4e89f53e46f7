/* tools/measure/vendor_specs.h - published specifications of GPUs, and the occupancy and the time
   bound that follow from them for a kernel that has not been run. */
#ifndef CLB_TOOLS_MEASURE_VENDOR_SPECS_H
#define CLB_TOOLS_MEASURE_VENDOR_SPECS_H

#include <clebsch/clebsch.h>

/* The unit that runs a group: a multiprocessor, compute unit, work-group processor or Xe-core. It
   has `engines`, each with its own registers; a wave (warp, hardware thread) stays on one of
   them. */
typedef struct {
  int engines, max_waves;       /* max_waves: per engine */
  int registers, register_step; /* per engine, for each lane of a wave (Intel: of 64 bytes);
                                   allocated to waves in multiples of the step */
  int local_bytes, local_extra; /* per core; overhead of each group */
  int local_step;               /* allocation granularity per group; 0: one of local_sizes */
  const int *local_sizes;       /* ascending, ends with 0 */
  int max_groups;               /* per core */
} gpu_core;

typedef struct {
  const char *device, *name; /* "hip@gfx942", "AMD Instinct MI300X" */
  double bytes_per_second;
  double flops_per_second[2]; /* by clb_dtype of the arithmetic: f32, f64; vector units only, fma =
                                 2 */
  const gpu_core *core;
} vendor_specs;

/* The i-th GPU that runs code for this compile-only device; the first is the default; NULL: no
   more. */
const vendor_specs *vendor_specs_of(const char *device, int i);

/* Waves that can be resident on one core; -1 if the compiler does not report what the kernel
 needs. */
int resident_waves(const gpu_core *core, const clb_report *report);
/* The same, as a fraction of the hardware's maximum: 0 ... 1, NAN if unknown. */
double occupancy(const gpu_core *core, const clb_report *report);

/* Lower bound on the time of any kernel that moves this many bytes and does this many
   operations. */
typedef struct {
  double seconds;
  const char *limited_by; /* "bytes", "flops" */
} time_bound;
time_bound bound_of(const vendor_specs *p, clb_dtype arithmetic, double bytes, double flops);

#endif
