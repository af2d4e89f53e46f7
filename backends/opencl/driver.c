/* backends/opencl/driver.c - the OpenCL loader's functions, its errors by name, its devices and
   what they can do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/dl.h"
#include "backends/opencl/opencl.h"

/* Constants of extensions that are missing in older headers. */
enum {
  COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,
  WARP_SIZE_NV = 0x4003,
  SINGLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4231,
  GLOBAL_FP_ATOMIC_ADD_EXT = 1 << 1,
  LOCAL_FP_ATOMIC_ADD_EXT = 1 << 17
};

/* ---- the loader ---- */

clb_status clb_opencl_load(clb_error_sink *error, clb_opencl_calls *cl) {
  static const char *const names[] = {"libOpenCL.so.1", NULL};
  static const clb_symbol symbols[] = {
#define CLB_CALL(name) {#name, offsetof(clb_opencl_calls, name), false},
      CLB_OPENCL_CALLS(CLB_CALL)
#undef CLB_CALL
          {"clSetKernelArgSVMPointer", offsetof(clb_opencl_calls, clSetKernelArgSVMPointer), true},
      {"clEnqueueSVMMemcpy", offsetof(clb_opencl_calls, clEnqueueSVMMemcpy), true},
  };
  void *library = clb_dl_open(names);
  if (!library) return clb_fail(error, CLB_ERROR_DEVICE, "opencl: %s is not installed", names[0]);
  const char *missing = clb_dl_symbols(library, symbols, sizeof symbols / sizeof *symbols, cl);
  return missing ? clb_fail(error, CLB_ERROR_DEVICE, "opencl: %s has no %s", names[0], missing)
                 : CLB_OK;
}

/* ---- errors ---- */

static const struct {
  cl_int code;
  const char *name;
} error_names[] = {
#define E(name)                                                                                    \
  { name, #name }
    E(CL_DEVICE_NOT_FOUND),
    E(CL_DEVICE_NOT_AVAILABLE),
    E(CL_COMPILER_NOT_AVAILABLE),
    E(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    E(CL_OUT_OF_RESOURCES),
    E(CL_OUT_OF_HOST_MEMORY),
    E(CL_PROFILING_INFO_NOT_AVAILABLE),
    E(CL_MEM_COPY_OVERLAP),
    E(CL_IMAGE_FORMAT_MISMATCH),
    E(CL_IMAGE_FORMAT_NOT_SUPPORTED),
    E(CL_BUILD_PROGRAM_FAILURE),
    E(CL_MAP_FAILURE),
    E(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    E(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    E(CL_COMPILE_PROGRAM_FAILURE),
    E(CL_LINKER_NOT_AVAILABLE),
    E(CL_LINK_PROGRAM_FAILURE),
    E(CL_DEVICE_PARTITION_FAILED),
    E(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
    E(CL_INVALID_VALUE),
    E(CL_INVALID_DEVICE_TYPE),
    E(CL_INVALID_PLATFORM),
    E(CL_INVALID_DEVICE),
    E(CL_INVALID_CONTEXT),
    E(CL_INVALID_QUEUE_PROPERTIES),
    E(CL_INVALID_COMMAND_QUEUE),
    E(CL_INVALID_HOST_PTR),
    E(CL_INVALID_MEM_OBJECT),
    E(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
    E(CL_INVALID_IMAGE_SIZE),
    E(CL_INVALID_SAMPLER),
    E(CL_INVALID_BINARY),
    E(CL_INVALID_BUILD_OPTIONS),
    E(CL_INVALID_PROGRAM),
    E(CL_INVALID_PROGRAM_EXECUTABLE),
    E(CL_INVALID_KERNEL_NAME),
    E(CL_INVALID_KERNEL_DEFINITION),
    E(CL_INVALID_KERNEL),
    E(CL_INVALID_ARG_INDEX),
    E(CL_INVALID_ARG_VALUE),
    E(CL_INVALID_ARG_SIZE),
    E(CL_INVALID_KERNEL_ARGS),
    E(CL_INVALID_WORK_DIMENSION),
    E(CL_INVALID_WORK_GROUP_SIZE),
    E(CL_INVALID_WORK_ITEM_SIZE),
    E(CL_INVALID_GLOBAL_OFFSET),
    E(CL_INVALID_EVENT_WAIT_LIST),
    E(CL_INVALID_EVENT),
    E(CL_INVALID_OPERATION),
    E(CL_INVALID_GL_OBJECT),
    E(CL_INVALID_BUFFER_SIZE),
    E(CL_INVALID_MIP_LEVEL),
    E(CL_INVALID_GLOBAL_WORK_SIZE),
    E(CL_INVALID_PROPERTY),
    E(CL_INVALID_IMAGE_DESCRIPTOR),
    E(CL_INVALID_COMPILER_OPTIONS),
    E(CL_INVALID_LINKER_OPTIONS),
    E(CL_INVALID_DEVICE_PARTITION_COUNT),
    E(CL_INVALID_PIPE_SIZE),
    E(CL_INVALID_DEVICE_QUEUE),
    E(CL_INVALID_SPEC_ID),
    E(CL_MAX_SIZE_RESTRICTION_EXCEEDED),
    E(CL_PLATFORM_NOT_FOUND_KHR),
#undef E
};

clb_status clb_opencl_failed(clb_error_sink *error, const char *call, cl_int code) {
  const char *name = "an error OpenCL has no name for";
  clb_status status = CLB_ERROR_DRIVER;
  for (size_t i = 0; i < sizeof error_names / sizeof *error_names; i++)
    if (error_names[i].code == code) name = error_names[i].name;
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
      code == CL_INVALID_BUFFER_SIZE)
    status = CLB_ERROR_MEMORY;
  if (code == CL_DEVICE_NOT_FOUND || code == CL_DEVICE_NOT_AVAILABLE ||
      code == CL_PLATFORM_NOT_FOUND_KHR)
    status = CLB_ERROR_DEVICE;
  return clb_fail(error, status, "%s: %s (%d)", call, name, (int)code);
}

/* ---- devices ---- */

enum { MAX_PLATFORMS = 64, MAX_DEVICES = 64 }; /* of one platform */

/* The devices of platform p; none if its driver fails. */
static int devices_of(const clb_opencl_calls *cl, clb_error_sink *error, cl_platform_id platform,
                      int p, clb_opencl_place *places) {
  cl_device_id devices[MAX_DEVICES];
  cl_uint n = 0;
  cl_int code = cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &n);
  if (code && code != CL_DEVICE_NOT_FOUND) clb_opencl_failed(error, "clGetDeviceIDs", code);
  if (code) return 0;
  if (n > MAX_DEVICES) n = MAX_DEVICES;
  for (cl_uint d = 0; d < n; d++) {
    cl_device_type type = 0;
    code = cl->clGetDeviceInfo(devices[d], CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (code) clb_opencl_failed(error, "clGetDeviceInfo", code);
    places[d] = (clb_opencl_place){platform, devices[d], p, (int)d, type & CL_DEVICE_TYPE_GPU};
  }
  return (int)n;
}

clb_status clb_opencl_places(const clb_opencl_calls *cl, clb_error_sink *error,
                             clb_opencl_place **places, int *n) {
  cl_platform_id platforms[MAX_PLATFORMS];
  cl_uint n_platforms = 0;
  *places = NULL;
  *n = 0;
  cl_int code = cl->clGetPlatformIDs(MAX_PLATFORMS, platforms, &n_platforms);
  if (code) {
    clb_status s = clb_opencl_failed(error, "clGetPlatformIDs", code);
    return code == CL_PLATFORM_NOT_FOUND_KHR
               ? clb_fail_more(error, s, ", no OpenCL driver is installed")
               : s;
  }
  if (n_platforms > MAX_PLATFORMS) n_platforms = MAX_PLATFORMS;
  *places = malloc((n_platforms * MAX_DEVICES + 1) * sizeof **places);
  if (!*places)
    return clb_fail(error, CLB_ERROR_MEMORY, "opencl: no memory for %u platforms", n_platforms);
  for (cl_uint p = 0; p < n_platforms; p++)
    *n += devices_of(cl, error, platforms[p], (int)p, *places + *n);
  return CLB_OK;
}

/* ---- properties of a device ---- */

typedef struct {
  cl_device_type type;
  cl_uint units, float_width, double_width, wave, warp, capability;
  cl_ulong memory, local;
  size_t group, sizes[32];
  cl_device_fp_config f32, f64;
  cl_bitfield f32_atomics;
  cl_device_svm_capabilities svm;
  cl_device_command_buffer_capabilities_khr commands;
} facts;

#define FACT(name, field) #name, name, offsetof(facts, field), sizeof((facts *)0)->field
static const struct {
  const char *name;
  cl_device_info what;
  size_t offset, bytes;
  const char *extension; /* NULL: all devices support the query; "": some do; otherwise those with
                            the extension */
} fact_table[] = {
    {FACT(CL_DEVICE_TYPE, type), NULL},
    {FACT(CL_DEVICE_MAX_COMPUTE_UNITS, units), NULL},
    {FACT(CL_DEVICE_MAX_WORK_GROUP_SIZE, group), NULL},
    {FACT(CL_DEVICE_GLOBAL_MEM_SIZE, memory), NULL},
    {FACT(CL_DEVICE_LOCAL_MEM_SIZE, local), NULL},
    {FACT(CL_DEVICE_SINGLE_FP_CONFIG, f32), NULL},
    {FACT(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, float_width), NULL},
    {FACT(CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, double_width), NULL},
    {FACT(CL_DEVICE_DOUBLE_FP_CONFIG, f64), ""},
    {FACT(CL_DEVICE_SVM_CAPABILITIES, svm), ""},
    {FACT(CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, commands), "cl_khr_command_buffer"},
    {FACT(CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizes), "cl_intel_required_subgroup_size"},
    {FACT(SINGLE_FP_ATOMIC_CAPABILITIES_EXT, f32_atomics), "cl_ext_float_atomics"},
    {FACT(CL_DEVICE_WAVEFRONT_WIDTH_AMD, wave), "cl_amd_device_attribute_query"},
    {FACT(WARP_SIZE_NV, warp), "cl_nv_device_attribute_query"},
    {FACT(COMPUTE_CAPABILITY_MAJOR_NV, capability), "cl_nv_device_attribute_query"},
};

static bool has_word(const clb_text *words, const char *word) {
  size_t n = strlen(word);
  for (const char *s = words->s ? words->s : ""; (s = strstr(s, word)) != NULL; s += n)
    if ((s == words->s || s[-1] == ' ') && (s[n] == ' ' || s[n] == 0)) return true;
  return false;
}

static clb_status get_facts(clb_opencl *o, const clb_text *extensions, facts *f) {
  *f = (facts){0};
  for (size_t i = 0; i < sizeof fact_table / sizeof *fact_table; i++) {
    const char *extension = fact_table[i].extension;
    char *value = (char *)f + fact_table[i].offset;
    if (extension && *extension && !has_word(extensions, extension)) continue;
    cl_int code =
        o->cl.clGetDeviceInfo(o->device, fact_table[i].what, fact_table[i].bytes, value, NULL);
    const bool unknown = extension && code == CL_INVALID_VALUE;
    if (unknown) memset(value, 0, fact_table[i].bytes);
    if (code && !unknown) {
      clb_status s = clb_opencl_failed(o->head.error, "clGetDeviceInfo", code);
      return clb_fail_more(o->head.error, s, " for %s", fact_table[i].name);
    }
  }
  return CLB_OK;
}

/* A string of the device, or of its platform. */
static clb_status get_text(clb_opencl *o, bool platform, cl_uint what, clb_text *text) {
  clb_error_sink *e = o->head.error;
  char *s = NULL;
  size_t n = 0;
  cl_int code = platform ? o->cl.clGetPlatformInfo(o->platform, what, 0, NULL, &n)
                         : o->cl.clGetDeviceInfo(o->device, what, 0, NULL, &n);
  if (!code && !(s = calloc(n + 1, 1))) return clb_fail(e, CLB_ERROR_MEMORY, "opencl: no memory");
  if (!code)
    code = platform ? o->cl.clGetPlatformInfo(o->platform, what, n, s, NULL)
                    : o->cl.clGetDeviceInfo(o->device, what, n, s, NULL);
  if (!code) clb_text_add(text, "%s", s);
  free(s);
  if (code) return clb_opencl_failed(e, platform ? "clGetPlatformInfo" : "clGetDeviceInfo", code);
  return text->failed ? clb_fail(e, CLB_ERROR_MEMORY, "opencl: no memory") : CLB_OK;
}

static bool has_size(const facts *f, int size) {
  for (int i = 0; i < 32 && f->sizes[i]; i++)
    if (f->sizes[i] == (size_t)size) return true;
  return false;
}

/* 16 lanes on Intel's GPUs, to have enough registers per lane; elsewhere the hardware's wave, and
   on a CPU a few vectors, so that a group is worth its overhead. */
static int lanes_of(const facts *f, bool subgroups, clb_dtype arithmetic) {
  int width = (int)(arithmetic == CLB_F64 ? f->double_width : f->float_width);
  if (f->warp) return (int)f->warp;
  if (subgroups && !(f->type & CL_DEVICE_TYPE_GPU) && has_size(f, width)) return width;
  if (subgroups) return has_size(f, 16) ? 16 : (int)f->sizes[0];
  if (f->wave) return (int)f->wave;
  return 32;
}

/* NVIDIA: Hopper and Blackwell have 227 KB for data centres, other GPUs 99 at least. */
static int64_t local_of_sm(const facts *f) {
  return (f->capability == 9 || f->capability == 10 ? 227 : 99) << 10;
}

static void set_limits(clb_opencl *o, const facts *f) {
  clb_limits *l = &o->head.limits;
  bool cpu = f->type & CL_DEVICE_TYPE_CPU;
  int lanes[2] = {[CLB_F32] = lanes_of(f, o->head.dialect.subgroups, CLB_F32),
                  [CLB_F64] = lanes_of(f, o->head.dialect.subgroups, CLB_F64)};
  /* NVIDIA's driver runs at most 256 threads of kernels that take many registers. */
  const size_t most = o->head.dialect.ptx ? 256 : 1024;
  int max = (int)(f->group > most ? most : f->group),
      widest = lanes[0] > lanes[1] ? lanes[0] : lanes[1];
  *l = (clb_limits){
      .lanes = {lanes[0] < max ? lanes[0] : max, lanes[1] < max ? lanes[1] : max},
      .max_subgroups = max / widest > 0 ? max / widest : 1,
      .local_bytes = (int64_t)f->local,
      .registers = cpu             ? 32
                   : !o->intel_gpu ? 255
                   : has_size(f, 8)
                       ? 64
                       : 128, /* Intel: 128 of 32 bytes, or of 64 on devices without sub-groups of
                                 8 */
      .units = (int)f->units,
      .simd = cpu,
      .subgroups = o->head.dialect.subgroups,
      .async_copies = o->head.dialect.ptx,
      .unit_local_bytes = o->head.dialect.ptx ? local_of_sm(f) : 0,
      .f64 = f->f64 != 0,
  };
}

static void find_call(const clb_opencl *o, const char *name, void *call) {
  void *address = o->cl.clGetExtensionFunctionAddressForPlatform(o->platform, name);
  memcpy(call, &address, sizeof address);
}

static void set_pointers(clb_opencl *o, const facts *f, const clb_text *extensions) {
  clb_opencl_pointers *p = &o->pointers;
  if (has_word(extensions, "cl_intel_unified_shared_memory")) {
    *p = (clb_opencl_pointers){.set_name = "clSetKernelArgMemPointerINTEL",
                               .copy_name = "clEnqueueMemcpyINTEL"};
    find_call(o, p->set_name, &p->set);
    find_call(o, p->copy_name, &p->copy);
    find_call(o, "clGetMemAllocInfoINTEL", &p->info);
  }
  if (p->set && p->copy && p->info) return;
  *p = (clb_opencl_pointers){.set_name = "clSetKernelArgSVMPointer",
                             .copy_name = "clEnqueueSVMMemcpy"};
  if (!f->svm || !o->cl.clSetKernelArgSVMPointer || !o->cl.clEnqueueSVMMemcpy) return;
  p->set = o->cl.clSetKernelArgSVMPointer;
  p->copy = o->cl.clEnqueueSVMMemcpy;
}

static void set_commands(clb_opencl *o, const facts *f) {
  clb_opencl_commands *c = &o->commands;
  if (!(f->commands & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR)) return;
  find_call(o, "clCreateCommandBufferKHR", &c->create);
  find_call(o, "clCommandNDRangeKernelKHR", &c->launch);
  find_call(o, "clFinalizeCommandBufferKHR", &c->finish);
  find_call(o, "clEnqueueCommandBufferKHR", &c->submit);
  find_call(o, "clReleaseCommandBufferKHR", &c->release);
  if (!c->create || !c->launch || !c->finish || !c->submit || !c->release)
    *c = (clb_opencl_commands){0};
}

/* Sub-groups require a selectable size and shuffles; NVIDIA's and AMD's OpenCL provide neither, but
   NVIDIA's takes PTX, in which Ampere and later have what kernels need.  PoCL has Intel's
   extension, but a shuffle inside an IF inside a loop corrupts its memory (5.0 and 6.0). */
static void set_dialect(clb_opencl *o, const facts *f, const clb_text *extensions, bool opencl_3) {
  const bool ptx = f->warp && f->capability >= 8,
             intel = has_word(extensions, "cl_intel_subgroups") && f->sizes[0] && !o->pocl;
  const cl_bitfield add = GLOBAL_FP_ATOMIC_ADD_EXT | LOCAL_FP_ATOMIC_ADD_EXT;
  o->rounds_division = f->f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  o->head.dialect = (clb_dialect){
      .language = CLB_LANGUAGE_OPENCL,
      .subgroups = intel || ptx,
      .ptx = ptx,
      .float_atomics = opencl_3 && (f->f32_atomics & add) == add,
  };
  o->intel_gpu = intel && f->type & CL_DEVICE_TYPE_GPU;
  /* Intel's driver 2026.22.10 for CPUs: it derives lane < 9 from lane < 5, and then executes some
     loads and stores in all lanes. */
  o->head.dialect.quirk_mask_implication = intel && f->type & CL_DEVICE_TYPE_CPU;
  /* The same driver: after a barrier all lanes of a group hold the negated float of the sub-group
     that ran last (tests/drivers/negation.c). */
  o->head.dialect.quirk_half_load = o->head.dialect.quirk_mask_implication;
  o->head.dialect.quirk_negation = o->head.dialect.quirk_mask_implication;
}

clb_status clb_opencl_describe(clb_opencl *o) {
  clb_text extensions = {0}, version = {0}, platform = {0}, name = {0};
  facts f = {0};
  clb_status s = get_text(o, false, CL_DEVICE_EXTENSIONS, &extensions);
  if (!s) s = get_text(o, false, CL_DEVICE_VERSION, &version);
  if (!s) s = get_text(o, true, CL_PLATFORM_VERSION, &platform);
  if (!s) s = get_text(o, true, CL_PLATFORM_NAME, &name);
  if (!s) s = get_text(o, false, CL_DEVICE_VENDOR, &o->vendor);
  if (!s) s = get_text(o, false, CL_DEVICE_NAME, &o->description);
  if (!s) s = get_text(o, false, CL_DRIVER_VERSION, &o->driver);
  if (!s) s = get_facts(o, &extensions, &f);
  if (!s) {
    o->pocl = has_word(&name, "Portable"); /* "Portable Computing Language" */
    set_dialect(o, &f, &extensions, version.n > 7 && version.s[7] >= '3'); /* "OpenCL 3.0 ..." */
    set_limits(o, &f);
    set_pointers(o, &f, &extensions);
    set_commands(o, &f);
    o->head.info = (clb_device_info){.name = o->name,
                                     .backend = "opencl",
                                     .vendor = o->vendor.s,
                                     .description = o->description.s,
                                     .driver = o->driver.s,
                                     .runs = 1,
                                     .memory_bytes = f.memory,
                                     .f64 = f.f64 != 0};
    for (int i = 0; i < 8 && o->head.dialect.subgroups; i++)
      o->head.info.sub_group_sizes[i] = (int)f.sizes[i];
    snprintf(o->head.key, sizeof o->head.key, "%.70s|%.60s|%.60s|%.50s", platform.s, version.s,
             o->description.s, o->driver.s);
  }
  clb_text_free(&extensions);
  clb_text_free(&version);
  clb_text_free(&platform);
  clb_text_free(&name);
  return s;
}

void clb_opencl_forget(clb_opencl *o) {
  clb_text_free(&o->vendor);
  clb_text_free(&o->description);
  clb_text_free(&o->driver);
}
