/* tests/fakes/fake_opencl.h - what the files of the fake OpenCL loader share. */
#ifndef CLB_TESTS_FAKES_FAKE_OPENCL_H
#define CLB_TESTS_FAKES_FAKE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "tests/fakes/fake_driver.h"

extern fake_driver fake_opencl;

#endif
