/* fake_opencl.h - what a test tells the fake OpenCL loader, and what it hears back. */
#ifndef CLB_FAKE_OPENCL_H
#define CLB_FAKE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>

typedef struct {
  int left;            /* calls that go well before one fails; -1: all go well */
  const char *only;    /* not NULL: every call of this function fails once `left` have gone well */
  cl_int code;         /* how it fails */
  const char *failed;  /* which function last failed, or NULL */
  int alive;           /* objects made and not yet released */
} fake_opencl_state;

#endif
