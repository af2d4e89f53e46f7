/* backends/opencl/program.c - kernels of an OpenCL device: text to binary, binary to kernel,
   launch. */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

enum { REGISTERS_OF_SM = 65536 }; /* NVIDIA's */

struct clb_module {
  cl_program program;
  cl_kernel kernel;
  size_t group; /* work-items */
};

/* ---- text to binary ---- */

/* Contraction is off by a pragma in the text; no option here lets the compiler reassociate. Float
   atomics require OpenCL C 3. */
static clb_status get_options(clb_opencl *o, const ir_kernel *k, clb_text *options) {
  clb_text_add(options, o->head.dialect.float_atomics ? "-cl-std=CL3.0" : "-cl-std=CL1.2");
  if (o->rounds_division) clb_text_add(options, " -cl-fp32-correctly-rounded-divide-sqrt");
  if (o->intel_gpu) clb_text_add(options, " -cl-intel-greater-than-4GB-buffer-required");
  if (o->intel_gpu && k->large_registers) clb_text_add(options, " -cl-intel-256-GRF-per-thread");
  if (o->head.dialect.ptx) { /* whose compiler would take more than a group's threads have */
    const int groups = k->min_blocks_per_sm > 1 ? k->min_blocks_per_sm : 1,
              registers = REGISTERS_OF_SM / (k->lanes * k->subgroups * groups) / 8 * 8;
    clb_text_add(options, " -w -cl-nv-maxrregcount=%d", registers > 255 ? 255 : registers);
  }
  return options->failed ? clb_fail(o->head.error, CLB_ERROR_MEMORY, "%s: no memory", k->name)
                         : CLB_OK;
}

/* Fails with the compiler's whole log. */
static clb_status refused(clb_opencl *o, const ir_kernel *k, cl_program program, cl_int code) {
  clb_error_sink *e = o->head.error;
  char *log = NULL;
  size_t n = 0;
  bool source = code == CL_BUILD_PROGRAM_FAILURE || code == CL_INVALID_BUILD_OPTIONS ||
                code == CL_COMPILER_NOT_AVAILABLE;
  clb_status s = clb_opencl_failed(e, "clBuildProgram", code);
  if (source) s = CLB_ERROR_COMPILE;
  clb_fail_more(e, s, ", kernel %s on %s", k->name, o->name);
  if (o->cl.clGetProgramBuildInfo(program, o->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) ||
      !(log = calloc(n + 1, 1)))
    return s;
  if (!o->cl.clGetProgramBuildInfo(program, o->device, CL_PROGRAM_BUILD_LOG, n, log, NULL))
    clb_fail_more(e, s, ":\n%s", log);
  free(log);
  return s;
}

/* In a context with several devices a program may have a binary for each: ours is the only one that
   was built. (PoCL reports a sub-device as the whole device, so one cannot search for the
   device.) */
static clb_status get_binary(clb_opencl *o, cl_program program, clb_text *binary) {
  clb_error_sink *e = o->head.error;
  cl_uint n = 0, ours = 0;
  clb_status s = CLB_OK;
  cl_int code = o->cl.clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof n, &n, NULL);
  if (code) return clb_opencl_failed(e, "clGetProgramInfo", code);
  size_t *sizes = calloc(n + 1, sizeof *sizes);
  unsigned char **images = calloc(n + 1, sizeof *images), *image = NULL;
  if (!sizes || !images) code = CL_OUT_OF_HOST_MEMORY;
  if (!code)
    code = o->cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL);
  while (!code && ours < n && !sizes[ours]) ours++;
  if (!code && !sizes[ours]) code = CL_INVALID_BINARY;
  if (!code && !(image = malloc(sizes[ours]))) code = CL_OUT_OF_HOST_MEMORY;
  if (!code) {
    images[ours] = image;
    code = o->cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, n * sizeof *images, images, NULL);
  }
  if (code) s = clb_opencl_failed(e, "clGetProgramInfo", code);
  else clb_text_bytes(binary, image, sizes[ours]);
  if (binary->failed) s = clb_fail(e, CLB_ERROR_MEMORY, "opencl: no memory for a binary");
  free(image);
  free(images);
  free(sizes);
  return s;
}

static clb_status compile(clb_opencl *o, const ir_kernel *k, const void *source, size_t n,
                          cl_program *program) {
  const char *text = source;
  clb_text options = {0};
  cl_int code = 0;
  clb_status s = get_options(o, k, &options);
  if (s) goto done;
  *program = o->cl.clCreateProgramWithSource(o->context, 1, &text, &n, &code);
  if (!*program || code) {
    s = clb_opencl_failed(o->head.error, "clCreateProgramWithSource", code);
    goto done;
  }
  code = o->cl.clBuildProgram(*program, 1, &o->device, options.s, NULL, NULL);
  if (code) s = refused(o, k, *program, code);
done:
  clb_text_free(&options);
  return s;
}

clb_status clb_opencl_build(clb_device *device, const ir_kernel *k, const clb_text *text,
                            clb_text *binary) {
  clb_opencl *o = (clb_opencl *)device;
  cl_program program = NULL;
  clb_status s = compile(o, k, text->s, text->n, &program);
  if (!s && o->pocl) clb_text_bytes(binary, text->s, text->n);
  else if (!s) s = get_binary(o, program, binary);
  if (program) o->cl.clReleaseProgram(program);
  return s;
}

/* ---- binary to kernel ---- */

static clb_status load_binary(clb_opencl *o, const ir_kernel *k, const void *binary, size_t bytes,
                              cl_program *program) {
  const unsigned char *image = binary;
  cl_int status = 0, code = 0;
  *program =
      o->cl.clCreateProgramWithBinary(o->context, 1, &o->device, &bytes, &image, &status, &code);
  if (!*program || code || status)
    return clb_fail_more(
        o->head.error,
        clb_opencl_failed(o->head.error, "clCreateProgramWithBinary", code ? code : status),
        ", the binary of %s (%zu bytes) on %s", k->name, bytes, o->name);
  code = o->cl.clBuildProgram(*program, 1, &o->device, "", NULL, NULL);
  return code ? refused(o, k, *program, code) : CLB_OK;
}

static clb_status create_kernel(clb_opencl *o, const ir_kernel *k, const void *binary, size_t bytes,
                                clb_module *m) {
  cl_int code = 0;
  clb_status s = (o->pocl ? compile : load_binary)(o, k, binary, bytes, &m->program);
  if (s) return s;
  m->kernel = o->cl.clCreateKernel(m->program, k->name, &code);
  return !m->kernel || code ? clb_opencl_failed(o->head.error, "clCreateKernel", code) : CLB_OK;
}

/* Checks that the kernel matches k, and that the device can run a group of it. */
static clb_status check_kernel(clb_opencl *o, const ir_kernel *k, const clb_module *m) {
  clb_error_sink *e = o->head.error;
  cl_uint has = 0, wants = 0;
  size_t max = 0;
  for (int32_t i = 0; i < k->n; i++)
    wants += k->ins[i].op == IR_BUFFER || k->ins[i].op == IR_SCALAR;
  cl_int code = o->cl.clGetKernelInfo(m->kernel, CL_KERNEL_NUM_ARGS, sizeof has, &has, NULL);
  if (code) return clb_opencl_failed(e, "clGetKernelInfo", code);
  if (has != wants)
    return clb_fail(e, CLB_ERROR_DRIVER, "%s: the binary's kernel has %u arguments, not %u",
                    k->name, has, wants);
  code = o->cl.clGetKernelWorkGroupInfo(m->kernel, o->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof max,
                                        &max, NULL);
  if (code) return clb_opencl_failed(e, "clGetKernelWorkGroupInfo", code);
  if (max < m->group)
    return clb_fail(e, CLB_ERROR_UNSUPPORTED,
                    "%s: a group has %llu lanes, and %s runs %llu of this kernel", k->name,
                    (unsigned long long)m->group, o->name, (unsigned long long)max);
  return CLB_OK;
}

clb_status clb_opencl_load_kernel(clb_device *device, const ir_kernel *k, const void *binary,
                                  size_t bytes, clb_module **module) {
  clb_opencl *o = (clb_opencl *)device;
  clb_module *m = calloc(1, sizeof *m);
  *module = NULL;
  if (!m) return clb_fail(device->error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
  m->group = (size_t)k->lanes * (size_t)k->subgroups;
  clb_status s = create_kernel(o, k, binary, bytes, m);
  if (!s) s = check_kernel(o, k, m);
  if (s) clb_opencl_unload(device, m);
  else *module = m;
  return s;
}

void clb_opencl_unload(clb_device *device, clb_module *module) {
  clb_opencl *o = (clb_opencl *)device;
  if (!module) return;
  if (module->kernel) o->cl.clReleaseKernel(module->kernel);
  if (module->program) o->cl.clReleaseProgram(module->program);
  free(module);
}

/* ---- launch ---- */

static clb_status set_arguments(clb_opencl *o, cl_kernel kernel, const clb_arg *args, int n_args) {
  clb_error_sink *e = o->head.error;
  for (int i = 0; i < n_args; i++) {
    const clb_memory *memory = args[i].type == IR_VOID ? args[i].memory : NULL;
    bool pointer = memory && memory->kind == CLB_POINTER;
    cl_int code = pointer ? o->pointers.set(kernel, (cl_uint)i, memory->handle)
                  : memory
                      ? o->cl.clSetKernelArg(kernel, (cl_uint)i, sizeof(cl_mem), &memory->handle)
                      : o->cl.clSetKernelArg(kernel, (cl_uint)i,
                                             (size_t)ir_type_bytes(args[i].type), &args[i].i32);
    if (code)
      return clb_fail_more(
          e, clb_opencl_failed(e, pointer ? o->pointers.set_name : "clSetKernelArg", code),
          ", argument %d", i);
  }
  return CLB_OK;
}

clb_status clb_opencl_launch(clb_device *device, clb_module *module, int64_t groups,
                             const clb_arg *args, int n_args) {
  clb_opencl *o = (clb_opencl *)device;
  size_t global = 0;
  clb_status s = set_arguments(o, module->kernel, args, n_args);
  if (s) return s;
  if (__builtin_mul_overflow((size_t)groups, module->group, &global))
    return clb_fail(device->error, CLB_ERROR_ARGUMENT, "%lld groups are too many",
                    (long long)groups);
  cl_int code = o->cl.clEnqueueNDRangeKernel(o->queue, module->kernel, 1, NULL, &global,
                                             &module->group, 0, NULL, NULL);
  return code ? clb_opencl_failed(device->error, "clEnqueueNDRangeKernel", code) : CLB_OK;
}

bool clb_opencl_command(clb_opencl *o, cl_command_buffer_khr commands, const clb_work *w,
                        cl_kernel *kernel) {
  size_t global = 0;
  cl_int code = 0;
  *kernel = o->cl.clCreateKernel(w->module->program, w->name, &code);
  if (!*kernel || code || set_arguments(o, *kernel, w->args, w->n_args) ||
      __builtin_mul_overflow((size_t)w->groups, w->module->group, &global))
    return false;
  return !o->commands.launch(commands, NULL, NULL, *kernel, 1, NULL, &global, &w->module->group, 0,
                             NULL, NULL, NULL);
}

/* Only Intel's compiler reports spills through OpenCL. */
clb_status clb_opencl_report(clb_device *device, const ir_kernel *k, const void *binary,
                             size_t bytes, clb_report *report) {
  clb_opencl *o = (clb_opencl *)device;
  clb_module *m = NULL;
  cl_ulong spill = 0;
  *report = clb_report_unknown();
  if (!o->intel_gpu) return CLB_OK;
  clb_status s = clb_opencl_load_kernel(device, k, binary, bytes, &m);
  if (s) return s;
  cl_int code = o->cl.clGetKernelWorkGroupInfo(m->kernel, o->device, CL_KERNEL_SPILL_MEM_SIZE_INTEL,
                                               sizeof spill, &spill, NULL);
  if (code) s = clb_opencl_failed(device->error, "clGetKernelWorkGroupInfo", code);
  else report->spill_bytes = (int)spill;
  clb_opencl_unload(device, m);
  return s;
}
