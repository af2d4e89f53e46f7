/* backends/level_zero/level_zero.h - shared by the files of the level_zero backend. */
#ifndef CLB_BACKENDS_LEVEL_ZERO_LEVEL_ZERO_H
#define CLB_BACKENDS_LEVEL_ZERO_LEVEL_ZERO_H

#include "backends/backend.h"

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

/* Every function of the loader that is used, without its "ze". */
#define LZ_FUNCTIONS(X)                                                                            \
  X(Init)                                                                                          \
  X(DriverGet)                                                                                     \
  X(DriverGetApiVersion)                                                                           \
  X(DriverGetProperties)                                                                           \
  X(DeviceGet)                                                                                     \
  X(DeviceGetSubDevices)                                                                           \
  X(DeviceGetProperties)                                                                           \
  X(DeviceGetComputeProperties)                                                                    \
  X(DeviceGetModuleProperties)                                                                     \
  X(DeviceGetMemoryProperties)                                                                     \
  X(DeviceGetCommandQueueGroupProperties)                                                          \
  X(DevicePciGetPropertiesExt)                                                                     \
  X(ContextCreate)                                                                                 \
  X(ContextDestroy)                                                                                \
  X(CommandListCreateImmediate)                                                                    \
  X(CommandListDestroy)                                                                            \
  X(CommandListAppendBarrier)                                                                      \
  X(CommandListAppendMemoryCopy)                                                                   \
  X(CommandListAppendLaunchKernel)                                                                 \
  X(EventPoolCreate)                                                                               \
  X(EventPoolDestroy)                                                                              \
  X(EventCreate)                                                                                   \
  X(EventDestroy)                                                                                  \
  X(EventHostSynchronize)                                                                          \
  X(EventHostReset)                                                                                \
  X(MemAllocDevice)                                                                                \
  X(MemAllocHost)                                                                                  \
  X(MemFree)                                                                                       \
  X(MemGetAllocProperties)                                                                         \
  X(MemGetAddressRange)                                                                            \
  X(ModuleCreate)                                                                                  \
  X(ModuleDestroy)                                                                                 \
  X(ModuleBuildLogGetString)                                                                       \
  X(ModuleBuildLogDestroy)                                                                         \
  X(ModuleGetNativeBinary)                                                                         \
  X(KernelCreate)                                                                                  \
  X(KernelDestroy)                                                                                 \
  X(KernelSetGroupSize)                                                                            \
  X(KernelSetArgumentValue)                                                                        \
  X(KernelSetIndirectAccess)                                                                       \
  X(KernelGetProperties)                                                                           \
  X(CommandListCreate)                                                                             \
  X(CommandListClose)                                                                              \
  X(CommandListAppendEventReset)                                                                   \
  X(CommandQueueCreate)                                                                            \
  X(CommandQueueDestroy)                                                                           \
  X(CommandQueueExecuteCommandLists)                                                               \
  X(CommandQueueSynchronize)

typedef struct {
#define LZ_X(name) ze_pfn##name##_t name;
  LZ_FUNCTIONS(LZ_X)
#undef LZ_X
} lz_api;

/* Intel's offline compiler, called in this process; input and output are in memory. */
typedef int (*lz_ocloc_invoke)(unsigned n_args, const char **args, uint32_t n_sources,
                               const uint8_t **sources, const uint64_t *source_bytes,
                               const char **source_names, uint32_t n_headers,
                               const uint8_t **headers, const uint64_t *header_bytes,
                               const char **header_names, uint32_t *n_outputs, uint8_t ***outputs,
                               uint64_t **output_bytes, char ***output_names);
typedef int (*lz_ocloc_free)(uint32_t *n_outputs, uint8_t ***outputs, uint64_t **output_bytes,
                             char ***output_names);
typedef struct {
  void *library; /* NULL: not installed */
  lz_ocloc_invoke invoke;
  lz_ocloc_free free_output;
} lz_ocloc;

typedef struct {
  clb_device base;
  lz_api ze;
  lz_ocloc ocloc;
  bool compiles_only; /* a compile-only target of ocloc; the handles below are NULL */
  bool adopted;       /* context and list belong to the caller */
  bool busy;          /* something was submitted since the last wait */
  bool signalling;    /* a barrier that signals `done` was appended; `done` was not reset since */
  ze_context_handle_t context;
  ze_device_handle_t device;
  ze_command_list_handle_t list; /* immediate */
  ze_event_pool_handle_t pool;
  ze_event_handle_t done, before, after; /* before, after: events that a closed list waits for, and
                                            signals */
  ze_command_queue_handle_t queue;       /* for closed lists; NULL until the first one */
  uint64_t max_allocation;               /* bytes, unless limits are relaxed */
  uint32_t max_groups;
  char target[32]; /* ocloc's name for the device */
  char name[48], vendor[16], description[ZE_MAX_DEVICE_NAME + 32], driver[64];
} lz_device;

/* ---- memory.c, module.c: the backend's functions on a running device ---- */
clb_status clb_lz_failed(clb_error_sink *error, const char *call, ze_result_t result);
clb_status clb_lz_alloc(clb_device *device, uint64_t bytes, clb_memory *memory);
void clb_lz_free(clb_device *device, clb_memory *memory);
clb_status clb_lz_wrap(clb_device *device, clb_memory *memory);
clb_status clb_lz_write(clb_device *device, const clb_memory *to, uint64_t offset, const void *from,
                        uint64_t bytes);
clb_status clb_lz_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                       uint64_t bytes);
bool clb_lz_pin(clb_device *device, uint64_t bytes, clb_host_memory *memory);
void clb_lz_unpin(clb_device *device, clb_host_memory *memory);
clb_status clb_lz_wait(clb_device *device);
/* Waits before something the device may be using is freed. A failed wait is retried once, so that
   one failing call leaves no work in flight. */
void clb_lz_drain(lz_device *d);
/* Orders all later commands after all earlier ones. */
clb_status clb_lz_barrier(lz_device *d);

clb_status clb_lz_build(clb_device *device, const ir_kernel *k, const clb_text *spirv,
                        clb_text *binary);
clb_status clb_lz_load(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                       clb_module **module);
void clb_lz_unload(clb_device *device, clb_module *module);
clb_status clb_lz_launch(clb_device *device, clb_module *module, int64_t groups,
                         const clb_arg *args, int n_args);
/* Bytes of scratch memory per thread for spilled registers, as reported by the driver. */
clb_status clb_lz_spill(lz_device *d, clb_module *module, int *bytes);

/* The first group of queues that computes. */
clb_status clb_lz_find_queues(lz_device *d, uint32_t *ordinal);

void clb_lz_record(clb_device *device, const clb_work *work, int64_t n, clb_recorded **recorded);
clb_status clb_lz_replay(clb_device *device, clb_recorded *recorded);
void clb_lz_forget(clb_device *device, clb_recorded *recorded);

/* ---- ocloc.c ---- */
bool clb_lz_ocloc_open(lz_ocloc *o);
/* Whether ocloc knows the device; version becomes ocloc's own. */
clb_status clb_lz_ocloc_check(const lz_ocloc *o, const char *target, char *version, size_t size,
                              clb_error_sink *error);
clb_status clb_lz_ocloc_compile(const lz_ocloc *o, const char *target, const clb_text *spirv,
                                const char *options, clb_text *binary, clb_error_sink *error);
/* Appends the kernel's assembly and the description in its binary (.ze_info). false: no
   disassembler, or it failed. */
bool clb_lz_ocloc_disassemble(const lz_ocloc *o, const char *target, const char *kernel,
                              const void *binary, size_t bytes, clb_text *assembly,
                              clb_text *description);

/* ---- report.c ---- */
clb_status clb_lz_report(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                         clb_report *report);
/* Counts loads and stores of global memory and fused multiply-adds per row in an assembly; false:
   it contains an unknown kind of message. */
bool clb_lz_count_messages(const ir_kernel *k, const char *assembly, clb_report *report);

#endif
