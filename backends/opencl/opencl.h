/* backends/opencl/opencl.h - shared by the files of the OpenCL backend. */
#ifndef CLB_BACKENDS_OPENCL_OPENCL_H
#define CLB_BACKENDS_OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "backends/backend.h"

#define CLB_OPENCL_CALLS(X)                                                                        \
  X(clGetPlatformIDs)                                                                              \
  X(clGetPlatformInfo)                                                                             \
  X(clGetDeviceIDs)                                                                                \
  X(clGetDeviceInfo)                                                                               \
  X(clGetExtensionFunctionAddressForPlatform)                                                      \
  X(clCreateContext)                                                                               \
  X(clReleaseContext)                                                                              \
  X(clCreateCommandQueue)                                                                          \
  X(clReleaseCommandQueue)                                                                         \
  X(clGetCommandQueueInfo)                                                                         \
  X(clFinish)                                                                                      \
  X(clCreateBuffer)                                                                                \
  X(clReleaseMemObject)                                                                            \
  X(clGetMemObjectInfo)                                                                            \
  X(clEnqueueReadBuffer)                                                                           \
  X(clEnqueueWriteBuffer)                                                                          \
  X(clEnqueueMapBuffer)                                                                            \
  X(clEnqueueUnmapMemObject)                                                                       \
  X(clCreateProgramWithSource)                                                                     \
  X(clCreateProgramWithBinary)                                                                     \
  X(clBuildProgram)                                                                                \
  X(clGetProgramInfo)                                                                              \
  X(clGetProgramBuildInfo)                                                                         \
  X(clReleaseProgram)                                                                              \
  X(clCreateKernel)                                                                                \
  X(clReleaseKernel)                                                                               \
  X(clGetKernelInfo)                                                                               \
  X(clGetKernelWorkGroupInfo)                                                                      \
  X(clSetKernelArg)                                                                                \
  X(clEnqueueNDRangeKernel)

/* The loader's functions by their own names. */
typedef struct {
#define CLB_CALL(name) __typeof__(&name) name;
  CLB_OPENCL_CALLS(CLB_CALL)
  CLB_CALL(clSetKernelArgSVMPointer) /* OpenCL 2.0: NULL in older loaders */
  CLB_CALL(clEnqueueSVMMemcpy)
#undef CLB_CALL
} clb_opencl_calls;

/* Memory behind plain pointers: unified shared memory if the device has it, else shared virtual
   memory, else both are NULL. */
typedef struct {
  const char *set_name, *copy_name;
  cl_int(CL_API_CALL *set)(cl_kernel kernel, cl_uint index, const void *pointer);
  __typeof__(&clEnqueueSVMMemcpy) copy;
  clGetMemAllocInfoINTEL_fn info; /* unified shared memory only */
} clb_opencl_pointers;

/* Functions of cl_khr_command_buffer; all NULL if command buffers cannot be resubmitted while they
 run. */
typedef struct {
  clCreateCommandBufferKHR_fn create;
  clCommandNDRangeKernelKHR_fn launch;
  clFinalizeCommandBufferKHR_fn finish;
  clEnqueueCommandBufferKHR_fn submit;
  clReleaseCommandBufferKHR_fn release;
} clb_opencl_commands;

typedef struct {
  cl_platform_id platform;
  cl_device_id device;
  int p, d; /* "opencl:p:d" */
  bool gpu;
} clb_opencl_place;

/* CLBlast's functions; warm: by type, whether its kernels are compiled. */
typedef struct {
  int (*f32)(int order, int ta, int tb, size_t m, size_t n, size_t k, float alpha, cl_mem a,
             size_t at_a, size_t ld_a, cl_mem b, size_t at_b, size_t ld_b, float beta, cl_mem c,
             size_t at_c, size_t ld_c, cl_command_queue *queue, cl_event *event);
  int (*f64)(int order, int ta, int tb, size_t m, size_t n, size_t k, double alpha, cl_mem a,
             size_t at_a, size_t ld_a, cl_mem b, size_t at_b, size_t ld_b, double beta, cl_mem c,
             size_t at_c, size_t ld_c, cl_command_queue *queue, cl_event *event);
  int (*f32_batch)(int order, int ta, int tb, size_t m, size_t n, size_t k, float alpha, cl_mem a,
                   size_t at_a, size_t ld_a, size_t jump_a, cl_mem b, size_t at_b, size_t ld_b,
                   size_t jump_b, float beta, cl_mem c, size_t at_c, size_t ld_c, size_t jump_c,
                   size_t count, cl_command_queue *queue, cl_event *event);
  int (*f64_batch)(int order, int ta, int tb, size_t m, size_t n, size_t k, double alpha, cl_mem a,
                   size_t at_a, size_t ld_a, size_t jump_a, cl_mem b, size_t at_b, size_t ld_b,
                   size_t jump_b, double beta, cl_mem c, size_t at_c, size_t ld_c, size_t jump_c,
                   size_t count, cl_command_queue *queue, cl_event *event);
  bool warm[2];
} clb_opencl_blas;

typedef struct {
  clb_device head;
  clb_opencl_calls cl;
  clb_opencl_pointers pointers;
  clb_opencl_blas blas;
  clb_opencl_commands commands;
  cl_platform_id platform;
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  bool adopted;         /* context and queue belong to the caller */
  bool intel_gpu;       /* accepts Intel's compiler options */
  bool rounds_division; /* accepts -cl-fp32-correctly-rounded-divide-sqrt */
  bool pocl; /* the text is cached: the driver has its own cache, and getting a binary takes a
                second compilation */
  char name[32];
  clb_text vendor, description, driver;
} clb_opencl;

/* The library is never closed, not even on failure: drivers keep threads and tables and do not
   survive being unloaded. */
clb_status clb_opencl_load(clb_error_sink *error, clb_opencl_calls *cl);
/* Every device of every platform, in the loader's order; an array to free. A platform that fails is
   skipped; its message stays in `error`. */
clb_status clb_opencl_places(const clb_opencl_calls *cl, clb_error_sink *error,
                             clb_opencl_place **places, int *n);
/* Fills in info, limits, dialect, key and pointers of o->device. */
clb_status clb_opencl_describe(clb_opencl *o);
void clb_opencl_forget(clb_opencl *o); /* frees what describe allocated */

/* "clFinish: CL_OUT_OF_RESOURCES (-5)", with the status that fits the code. */
clb_status clb_opencl_failed(clb_error_sink *error, const char *call, cl_int code);

clb_status clb_opencl_alloc(clb_device *device, uint64_t bytes, clb_memory *memory);
void clb_opencl_free(clb_device *device, clb_memory *memory);
clb_status clb_opencl_wrap(clb_device *device, clb_memory *memory);
clb_status clb_opencl_write(clb_device *device, const clb_memory *to, uint64_t offset,
                            const void *from, uint64_t bytes);
clb_status clb_opencl_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                           uint64_t bytes);
bool clb_opencl_pin(clb_device *device, uint64_t bytes, clb_host_memory *memory);
void clb_opencl_unpin(clb_device *device, clb_host_memory *memory);

clb_status clb_opencl_build(clb_device *device, const ir_kernel *k, const clb_text *text,
                            clb_text *binary);
clb_status clb_opencl_load_kernel(clb_device *device, const ir_kernel *k, const void *binary,
                                  size_t bytes, clb_module **module);
void clb_opencl_unload(clb_device *device, clb_module *module);
clb_status clb_opencl_launch(clb_device *device, clb_module *module, int64_t groups,
                             const clb_arg *args, int n_args);
clb_status clb_opencl_report(clb_device *device, const ir_kernel *k, const void *binary,
                             size_t bytes, clb_report *report);

/* Adds a launch with its own kernel object, which must outlive the command buffer; *kernel may be
   non-NULL after a failure. */
bool clb_opencl_command(clb_opencl *o, cl_command_buffer_khr commands, const clb_work *work,
                        cl_kernel *kernel);
void clb_opencl_record(clb_device *device, const clb_work *work, int64_t n,
                       clb_recorded **recorded);
clb_status clb_opencl_replay(clb_device *device, clb_recorded *recorded);
void clb_opencl_forget_recorded(clb_device *device, clb_recorded *recorded);

clb_status clb_opencl_open_blas(clb_device *device, clb_dtype type, bool *partly);
clb_status clb_opencl_can_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *product);
clb_status clb_opencl_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *product);

#endif
