/* tests/fakes/fake_opencl.h - what a test tells the fake OpenCL loader, and what it reports. */
#ifndef CLB_TESTS_FAKES_FAKE_OPENCL_H
#define CLB_TESTS_FAKES_FAKE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>

typedef struct {
  int left;           /* successful calls before one fails; -1: all succeed */
  const char *only;   /* not NULL: every call of this function fails after `left` successful ones */
  cl_int code;        /* how it fails */
  const char *failed; /* which function last failed, or NULL */
  int alive;          /* objects made and not yet released */
  bool idle; /* nothing is compiled or run: memory, programs, kernels and command buffers are the
                fake's own; set before any is made */
  char mistake[200]; /* idle: the first wrong use of the interface */
  /* idle: called in place of the device: the kernel's text, the numbers of groups and work-items,
     pointers to the values of the arguments (memory: host pointers) */
  void (*launch)(void *user, const char *text, unsigned groups, unsigned threads, void **params);
} fake_opencl_state;

#endif
