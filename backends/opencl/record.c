/* backends/opencl/record.c - recordings as command buffers (cl_khr_command_buffer), for launches
   only, because CLBlast submits its own work. */
#include <stdlib.h>

#include "backends/opencl/opencl.h"

/* Each command has its own kernel: PoCL 3.1 reads the kernel's arguments when the buffer is
   submitted, not when the command is added. */
struct clb_recorded {
  cl_command_buffer_khr commands;
  int64_t n;
  cl_kernel kernel[];
};

/* The queue is in-order, and so are the buffer's commands. */
static bool fill(clb_opencl *o, const clb_work *work, int64_t n, clb_recorded *r) {
  static const cl_command_buffer_properties_khr properties[] = {
      CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_int code = 0;
  r->commands = o->commands.create(1, &o->queue, properties, &code);
  if (!r->commands || code) return false;
  for (; r->n < n; r->n++)
    if (!clb_opencl_command(o, r->commands, &work[r->n], &r->kernel[r->n])) return false;
  return !o->commands.finish(r->commands);
}

static void drop(clb_opencl *o, clb_recorded *r, int64_t n) {
  if (r->commands) o->commands.release(r->commands);
  for (int64_t i = 0; i < n; i++)
    if (r->kernel[i]) o->cl.clReleaseKernel(r->kernel[i]);
  free(r);
}

void clb_opencl_forget_recorded(clb_device *device, clb_recorded *recorded) {
  clb_opencl *o = (clb_opencl *)device;
  o->cl.clFinish(o->queue); /* it may be running */
  drop(o, recorded, recorded->n);
}

void clb_opencl_record(clb_device *device, const clb_work *work, int64_t n,
                       clb_recorded **recorded) {
  clb_opencl *o = (clb_opencl *)device;
  bool can = o->commands.create;
  if (*recorded) clb_opencl_forget_recorded(device, *recorded);
  *recorded = NULL;
  for (int64_t i = 0; i < n; i++) can = can && !work[i].product;
  clb_recorded *r = can ? calloc(1, sizeof *r + (size_t)n * sizeof *r->kernel) : NULL;
  if (r && fill(o, work, n, r)) *recorded = r;
  else if (r) drop(o, r, n);
}

clb_status clb_opencl_replay(clb_device *device, clb_recorded *recorded) {
  clb_opencl *o = (clb_opencl *)device;
  cl_int code = o->commands.submit(1, &o->queue, recorded->commands, 0, NULL, NULL);
  return code ? clb_opencl_failed(device->error, "clEnqueueCommandBufferKHR", code) : CLB_OK;
}
