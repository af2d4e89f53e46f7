/* tools/measure/roofline.h - properties of a kernel that was compiled but not run: its machine
   code, its occupancy, and a roofline bound on its time. */
#ifndef CLB_TOOLS_MEASURE_ROOFLINE_H
#define CLB_TOOLS_MEASURE_ROOFLINE_H

#include "tools/measure/measure.h"

/* Completes a row of JSON: "loads", "stores", "fmas", "registers", "spills", "occupancy", "bound":
   true, "bound_seconds", "limited_by", and "other_bounds": [{"name", "bound_seconds",
   "limited_by"}] for further GPUs that run the same code, if there are any. */
void add_bounds(json_t *row, const result *r);
/* Adds "published": {"name", "bytes_per_second", "f32_per_second", "f64_per_second"} for the GPU to
   which the bounds apply, or null. */
void add_vendor_specs(json_t *to, const char *device);

/* The same as columns of a table. */
enum { BOUND_MS = 6, BOUND_COLUMNS = 8 };
extern const char *const bound_titles[BOUND_COLUMNS];
void bound_cells(const result *r, char cells[BOUND_COLUMNS][24]);
/* Prints the peaks of a device and the seconds of a launch (NAN: not measured); or, if it only
   compiles, that the numbers are bounds, and for which GPU. */
void print_peaks(const clb_device_info *info, const device_peaks *top, double launch);

#endif
