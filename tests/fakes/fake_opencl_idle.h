/* tests/fakes/fake_opencl_idle.h - functions of the fake OpenCL loader that replace the real ones
   while it is idle. */
#ifndef CLB_TESTS_FAKES_FAKE_OPENCL_IDLE_H
#define CLB_TESTS_FAKES_FAKE_OPENCL_IDLE_H

#include "tests/fakes/fake_opencl.h"

#define IDLE(name) extern __typeof__(name) idle_##name;
IDLE(clCreateBuffer)
IDLE(clReleaseMemObject)
IDLE(clEnqueueReadBuffer)
IDLE(clEnqueueWriteBuffer)
IDLE(clEnqueueMapBuffer)
IDLE(clEnqueueUnmapMemObject)
IDLE(clCreateProgramWithSource)
IDLE(clCreateProgramWithBinary)
IDLE(clBuildProgram)
IDLE(clReleaseProgram)
IDLE(clGetProgramInfo)
IDLE(clGetProgramBuildInfo)
IDLE(clCreateKernel)
IDLE(clReleaseKernel)
IDLE(clGetKernelInfo)
IDLE(clGetKernelWorkGroupInfo)
IDLE(clSetKernelArg)
IDLE(clEnqueueNDRangeKernel)
#undef IDLE

/* Of command buffers. */
cl_command_buffer_khr idle_create_commands(cl_int *code);
cl_int idle_add_command(cl_command_buffer_khr commands, cl_kernel kernel, size_t global,
                        size_t local);
cl_int idle_submit_commands(cl_command_buffer_khr commands);
cl_int idle_release_commands(cl_command_buffer_khr commands);

#endif
