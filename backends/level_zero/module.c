/* backends/level_zero/module.c - SPIR-V to native binaries, kernels and launches on a Level Zero
   device. */
#define _GNU_SOURCE
#include "backends/level_zero/level_zero.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct clb_module {
  ze_module_handle_t module;
  ze_kernel_handle_t kernel;
};

/* Division and square root round correctly; buffers may be larger than 4 GB. */
static const char *options(const ir_kernel *k) {
  return k->large_registers
             ? "-cl-fp32-correctly-rounded-divide-sqrt -ze-opt-greater-than-4GB-buffer-required "
               "-ze-opt-large-register-file"
             : "-cl-fp32-correctly-rounded-divide-sqrt -ze-opt-greater-than-4GB-buffer-required";
}

/* Appends the compiler's log to the message. */
static clb_status with_log(lz_device *d, ze_module_build_log_handle_t log, clb_status s) {
  size_t n = 0;
  char *words = NULL;
  if (log && !d->ze.ModuleBuildLogGetString(log, &n, NULL) && n && (words = calloc(n + 1, 1)) &&
      !d->ze.ModuleBuildLogGetString(log, &n, words))
    clb_fail_more(d->base.error, s, "\n%s", words);
  free(words);
  return s;
}

static clb_status create(lz_device *d, const ir_kernel *k, ze_module_format_t format,
                         const void *bytes, size_t n, ze_module_handle_t *module) {
  ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC,
                           .format = format,
                           .inputSize = n,
                           .pInputModule = bytes,
                           .pBuildFlags = options(k)};
  ze_module_build_log_handle_t log = NULL;
  clb_status s = CLB_OK;
  ze_result_t r = d->ze.ModuleCreate(d->context, d->device, &desc, module, &log);
  if (r) {
    s = clb_lz_failed(d->base.error, "zeModuleCreate", r);
    s = clb_fail_more(d->base.error, s, " (kernel %s, %s)", k->name,
                      format == ZE_MODULE_FORMAT_IL_SPIRV ? options(k) : "its kept binary");
    s = with_log(d, log, s);
  }
  if (log) d->ze.ModuleBuildLogDestroy(log);
  return s;
}

static clb_status native_binary(lz_device *d, ze_module_handle_t module, clb_text *binary) {
  size_t n = 0;
  uint8_t *bytes = NULL;
  ze_result_t r = d->ze.ModuleGetNativeBinary(module, &n, NULL);
  if (!r && !(bytes = malloc(n ? n : 1)))
    return clb_fail(d->base.error, CLB_ERROR_MEMORY, "out of memory for a binary of %zu bytes", n);
  if (!r) r = d->ze.ModuleGetNativeBinary(module, &n, bytes);
  if (!r) clb_text_bytes(binary, bytes, n);
  free(bytes);
  return r ? clb_lz_failed(d->base.error, "zeModuleGetNativeBinary", r) : CLB_OK;
}

static clb_status build_on_device(lz_device *d, const ir_kernel *k, const clb_text *spirv,
                                  clb_text *binary) {
  ze_module_handle_t module = NULL;
  clb_status s = create(d, k, ZE_MODULE_FORMAT_IL_SPIRV, spirv->s, spirv->n, &module);
  if (s) return s;
  s = native_binary(d, module, binary);
  clb_lz_drain(d);
  d->ze.ModuleDestroy(module);
  return s;
}

/* ocloc returns success and an empty binary for SPIR-V that it does not understand. */
static clb_status build_offline(lz_device *d, const ir_kernel *k, const clb_text *spirv,
                                clb_text *binary) {
  clb_error_sink *error = d->base.error;
  char section[80];
  snprintf(section, sizeof section, ".text.%s", k->name);
  clb_status s = clb_lz_ocloc_compile(&d->ocloc, d->target, spirv, options(k), binary, error);
  if (!s && binary->s && !memmem(binary->s, binary->n, section, strlen(section) + 1))
    s = clb_fail(error, CLB_ERROR_COMPILE, "%s: ocloc left kernel %s out of its binary", d->name,
                 k->name);
  return s;
}

clb_status clb_lz_build(clb_device *device, const ir_kernel *k, const clb_text *spirv,
                        clb_text *binary) {
  lz_device *d = (lz_device *)device;
  clb_status s =
      d->compiles_only ? build_offline(d, k, spirv, binary) : build_on_device(d, k, spirv, binary);
  if (!s && binary->failed)
    s = clb_fail(device->error, CLB_ERROR_MEMORY, "kernel %s: out of memory for its binary",
                 k->name);
  return s;
}

/* The group size is part of the kernel's state, so it is set once. */
static clb_status prepare(lz_device *d, const ir_kernel *k, clb_module *m) {
  clb_error_sink *error = d->base.error;
  ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = k->name};
  ze_kernel_properties_t p = {.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES};
  ze_result_t r = d->ze.KernelCreate(m->module, &desc, &m->kernel);
  if (r)
    return clb_fail_more(error, clb_lz_failed(error, "zeKernelCreate", r), " (kernel %s)", k->name);
  r = d->ze.KernelGetProperties(m->kernel, &p);
  if (r) return clb_lz_failed(error, "zeKernelGetProperties", r);
  if (k->lanes > 1 && p.maxSubgroupSize != (uint32_t)k->lanes)
    return clb_fail(error, CLB_ERROR_COMPILE,
                    "kernel %s: the driver made sub-groups of %u lanes instead of %d", k->name,
                    p.maxSubgroupSize, k->lanes);
  r = d->ze.KernelSetGroupSize(m->kernel, (uint32_t)(k->lanes * k->subgroups), 1, 1);
  return r ? clb_fail_more(error, clb_lz_failed(error, "zeKernelSetGroupSize", r),
                           " (kernel %s, %d work-items)", k->name, k->lanes * k->subgroups)
           : CLB_OK;
}

clb_status clb_lz_load(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                       clb_module **module) {
  lz_device *d = (lz_device *)device;
  *module = NULL;
  if (d->compiles_only)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "%s only compiles: it runs no kernel",
                    d->name);
  clb_module *m = calloc(1, sizeof *m);
  if (!m) return clb_fail(device->error, CLB_ERROR_MEMORY, "out of memory for kernel %s", k->name);
  clb_status s = create(d, k, ZE_MODULE_FORMAT_NATIVE, binary, bytes, &m->module);
  if (!s) s = prepare(d, k, m);
  if (s) {
    if (m->kernel) d->ze.KernelDestroy(m->kernel);
    if (m->module) d->ze.ModuleDestroy(m->module);
    free(m);
    return s;
  }
  *module = m;
  return CLB_OK;
}

void clb_lz_unload(clb_device *device, clb_module *m) {
  lz_device *d = (lz_device *)device;
  if (!m) return;
  clb_lz_drain(d);
  d->ze.KernelDestroy(m->kernel);
  d->ze.ModuleDestroy(m->module);
  free(m);
}

static ze_result_t set_argument(lz_device *d, ze_kernel_handle_t kernel, uint32_t index,
                                const clb_arg *a) {
  if (a->type == IR_VOID && a->memory->bytes == CLB_UNBOUNDED) {
    ze_result_t r = d->ze.KernelSetIndirectAccess(
        kernel, ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST | ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE |
                    ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED);
    if (r) return r;
  }
  if (a->type == IR_VOID)
    return d->ze.KernelSetArgumentValue(kernel, index, sizeof a->memory->handle,
                                        &a->memory->handle);
  return d->ze.KernelSetArgumentValue(kernel, index, (size_t)ir_type_bytes(a->type), &a->i64);
}

clb_status clb_lz_launch(clb_device *device, clb_module *m, int64_t groups, const clb_arg *args,
                         int n_args) {
  lz_device *d = (lz_device *)device;
  if (d->compiles_only)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "%s only compiles: it runs no kernel",
                    d->name);
  if (groups > d->max_groups)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED,
                    "level_zero: %lld groups in one launch; this device takes %u",
                    (long long)groups, d->max_groups);
  for (int i = 0; i < n_args; i++) {
    ze_result_t r = set_argument(d, m->kernel, (uint32_t)i, &args[i]);
    if (r)
      return clb_fail_more(device->error,
                           clb_lz_failed(device->error, "zeKernelSetArgumentValue", r),
                           " (argument %d)", i);
  }
  clb_status s = clb_lz_barrier(d);
  if (s) return s;
  const ze_group_count_t count = {(uint32_t)groups, 1, 1};
  ze_result_t r = d->ze.CommandListAppendLaunchKernel(d->list, m->kernel, &count, NULL, 0, NULL);
  if (r) return clb_lz_failed(device->error, "zeCommandListAppendLaunchKernel", r);
  return d->adopted ? clb_lz_barrier(d) : CLB_OK;
}

clb_status clb_lz_spill(lz_device *d, clb_module *m, int *bytes) {
  ze_kernel_properties_t p = {.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES};
  ze_result_t r = d->ze.KernelGetProperties(m->kernel, &p);
  if (r) return clb_lz_failed(d->base.error, "zeKernelGetProperties", r);
  *bytes = (int)p.spillMemSize;
  return CLB_OK;
}
