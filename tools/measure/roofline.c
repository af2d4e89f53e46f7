/* tools/measure/roofline.c - JSON and table columns for kernels that were compiled but not run. */
#include "tools/measure/roofline.h"

#include <math.h>
#include <stdio.h>

#include "tools/measure/vendor_specs.h"

const char *const bound_titles[BOUND_COLUMNS] = {">loads",     ">stores",        ">FMAs",
                                                 ">registers", ">bytes spilled", ">% occupancy",
                                                 ">bound ms",  "limited by"};

static time_bound bound_on(const vendor_specs *p, const result *r) {
  return bound_of(p, r->arithmetic, r->bytes, r->flops);
}

static void add_bound(json_t *to, const vendor_specs *p, const result *r) {
  time_bound b = bound_on(p, r);
  json_add(to, "bound_seconds", json_number(b.seconds));
  json_add(to, "limited_by", json_text(b.limited_by));
}

static void add_other_bounds(json_t *row, const result *r) {
  json_t *others = json_array();
  const vendor_specs *p;
  json_add(row, "other_bounds", others);
  for (int i = 1; (p = vendor_specs_of(r->device, i)); i++) {
    json_t *other = json_array_add(others, json_object());
    json_add(other, "name", json_text(p->name));
    add_bound(other, p, r);
  }
}

void add_bounds(json_t *row, const result *r) {
  const vendor_specs *p = vendor_specs_of(r->device, 0);
  JSON_ADD(
      row, {"loads", json_count(r->report.loads)}, {"stores", json_count(r->report.stores)},
      {"fmas", json_count(r->report.fmas)}, {"instructions", json_count(r->report.instructions)},
      {"accesses", json_count(r->report.accesses)}, {"registers", json_count(r->report.registers)},
      {"spills", json_count(r->report.spill_bytes)},
      {"occupancy", p ? json_number(occupancy(p->core, &r->report)) : json_null()},
      {"bound", json_true()});
  if (p) add_bound(row, p, r);
  else {
    json_add(row, "bound_seconds", json_null());
    json_add(row, "limited_by", json_null());
  }
  if (vendor_specs_of(r->device, 1)) add_other_bounds(row, r);
}

void add_vendor_specs(json_t *to, const char *device) {
  const vendor_specs *p = vendor_specs_of(device, 0);
  json_t *product = p ? json_object() : json_null();
  json_add(to, "published", product);
  if (!p) return;
  JSON_ADD(product, {"name", json_text(p->name)},
           {"bytes_per_second", json_number(p->bytes_per_second)},
           {"f32_per_second", json_number(p->flops_per_second[CLB_F32])},
           {"f64_per_second", json_number(p->flops_per_second[CLB_F64])});
}

static void cell(char out[24], int digits, double x) {
  if (isfinite(x)) snprintf(out, 24, "%.*f", digits, x);
  else out[0] = 0;
}

void bound_cells(const result *r, char cells[BOUND_COLUMNS][24]) {
  const int said[] = {r->report.loads, r->report.stores, r->report.fmas, r->report.registers,
                      r->report.spill_bytes};
  const vendor_specs *p = vendor_specs_of(r->device, 0);
  time_bound b = p ? bound_on(p, r) : (time_bound){NAN, ""};
  for (int i = 0; i < 5; i++) cell(cells[i], 0, said[i] < 0 ? (double)NAN : said[i]);
  cell(cells[5], 0, p ? 100 * occupancy(p->core, &r->report) : (double)NAN);
  cell(cells[BOUND_MS], 4, b.seconds * 1e3);
  snprintf(cells[7], 24, "%s", b.limited_by);
}

static void print_bound_heading(const char *device) {
  const vendor_specs *p = vendor_specs_of(device, 0);
  if (!p) {
    puts("published figures are unknown, so there are no bounds on times");
    return;
  }
  puts("times are bounds from the vendor's published figures, not measurements");
  print_text("%s: %.1f GB/s, %.1f Tflop/s in f32, %.1f in f64", p->name, p->bytes_per_second * 1e-9,
             p->flops_per_second[CLB_F32] * 1e-12, p->flops_per_second[CLB_F64] * 1e-12);
}

void print_peaks(const clb_device_info *info, const device_peaks *top, double launch) {
  char f64[48] = "", launches[48] = "";
  if (!info->runs) {
    print_text("%s (%s): compiles only", info->name, info->description);
    print_bound_heading(info->name);
    return;
  }
  if (top->fma[CLB_F64] > 0) snprintf(f64, sizeof f64, ", %.1f in f64", top->fma[CLB_F64] * 1e-9);
  if (isfinite(launch)) snprintf(launches, sizeof launches, ", launches in %.2f us", launch * 1e6);
  print_text("%s (%s): copies %.1f GB/s, multiply-adds %.1f Gflop/s in f32%s%s", info->name,
             info->description, top->copy * 1e-9, top->fma[CLB_F32] * 1e-9, f64, launches);
}
