/* tests/fakes/device_limits.h - limits of devices that the interpreter is taken for, so that it
   runs the schedules that such devices get. */
#ifndef CLB_TESTS_FAKES_DEVICE_LIMITS_H
#define CLB_TESTS_FAKES_DEVICE_LIMITS_H

#include "src/ir/limits.h"

enum {
  LIMITS_NVIDIA,
  LIMITS_AMD,
  LIMITS_INTEL,
  LIMITS_NO_SUBGROUPS,
  LIMITS_CPU,
  LIMITS_TWO_SUBGROUPS,
  LIMITS_SMALL_GROUPS,
  LIMITS_CPU_NO_SUBGROUPS
};

/* The first five are like those that the backends report. The last three vary them on purpose:
   - two sub-groups: the fewest that can share a row, with little local memory;
   - small groups: a few sub-groups of 8 lanes;
   - CPU without sub-groups: SIMD lanes whose shuffles go through local memory. */
static const struct {
  const char *name;
  clb_limits limits;
} device_limits[] = {
    [LIMITS_NVIDIA] = {"NVIDIA",
                       {.lanes = {32, 32},
                        .max_subgroups = 32,
                        .local_bytes = 49152,
                        .max_local_bytes = 232448,
                        .registers = 255,
                        .units = 132,
                        .subgroups = true,
                        .async_copies = true,
                        .vector_atomics = true,
                        .f64 = true}},
    [LIMITS_AMD] = {"AMD",
                    {.lanes = {64, 64},
                     .max_subgroups = 16,
                     .local_bytes = 65536,
                     .max_local_bytes = 65536,
                     .registers = 256,
                     .units = 110,
                     .subgroups = true,
                     .f64 = true}},
    [LIMITS_INTEL] = {"Intel",
                      {.lanes = {16, 16},
                       .max_subgroups = 64,
                       .local_bytes = 131072,
                       .max_local_bytes = 131072,
                       .registers = 128,
                       .units = 128,
                       .subgroups = true,
                       .f64 = true}},
    [LIMITS_NO_SUBGROUPS] = {"no sub-groups",
                             {.lanes = {32, 32},
                              .max_subgroups = 32,
                              .local_bytes = 49152,
                              .max_local_bytes = 49152,
                              .registers = 255,
                              .units = 132,
                              .f64 = true}},
    [LIMITS_CPU] = {"CPU",
                    {.lanes = {8, 16},
                     .max_subgroups = 1,
                     .local_bytes = 1 << 20,
                     .max_local_bytes = 1 << 20,
                     .registers = 32,
                     .units = 2,
                     .simd = true,
                     .subgroups = true,
                     .f64 = true}},
    [LIMITS_TWO_SUBGROUPS] = {"two sub-groups",
                              {.lanes = {16, 16},
                               .max_subgroups = 2,
                               .local_bytes = 16384,
                               .max_local_bytes = 16384,
                               .registers = 128,
                               .units = 8,
                               .subgroups = true,
                               .async_copies = true,
                               .f64 = true}},
    [LIMITS_SMALL_GROUPS] = {"small groups",
                             {.lanes = {8, 8},
                              .max_subgroups = 4,
                              .local_bytes = 32768,
                              .max_local_bytes = 65536,
                              .registers = 128,
                              .units = 4,
                              .subgroups = true,
                              .async_copies = true,
                              .f64 = true}},
    [LIMITS_CPU_NO_SUBGROUPS] = {"CPU without sub-groups",
                                 {.lanes = {8, 16},
                                  .max_subgroups = 1,
                                  .local_bytes = 1 << 20,
                                  .max_local_bytes = 1 << 20,
                                  .registers = 32,
                                  .units = 2,
                                  .simd = true,
                                  .f64 = true}},
};

#endif
