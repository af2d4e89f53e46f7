/* backends/opencl/opencl.c - the OpenCL backend: choice of the device, context and queue. */
#include "backends/opencl/opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ":P:D", ":P", "" or ":gpu"; -1 where not given. */
static bool parse(const char *rest, int *p, int *d, bool *gpu) {
  int *field[] = {p, d};
  *p = *d = -1;
  *gpu = !strcmp(rest, ":gpu");
  if (*gpu) return true;
  for (int i = 0; *rest; i++) {
    char *end;
    if (i == 2 || *rest != ':' || rest[1] < '0' || rest[1] > '9') return false;
    long value = strtol(rest + 1, &end, 10);
    if (value > 9999) return false;
    *field[i] = (int)value;
    rest = end;
  }
  return true;
}

/* Chooses the first matching GPU, else the first matching device. */
static const clb_opencl_place *choose(const clb_opencl_place *places, int n, int p, int d,
                                      bool gpu) {
  const clb_opencl_place *found = NULL;
  for (int i = 0; i < n; i++) {
    bool fits =
        (p < 0 || p == places[i].p) && (d < 0 || d == places[i].d) && (places[i].gpu || !gpu);
    if (fits && (!found || (places[i].gpu && !found->gpu))) found = &places[i];
  }
  return found;
}

static void set_place(clb_opencl *o, const clb_opencl_place *place) {
  o->platform = place->platform;
  o->device = place->device;
  snprintf(o->name, sizeof o->name, "opencl:%d:%d", place->p, place->d);
}

/* ---- whose context and queue ---- */

static clb_status own_context(clb_opencl *o) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              (cl_context_properties)o->platform, 0};
  cl_int code = 0;
  o->context = o->cl.clCreateContext(properties, 1, &o->device, NULL, NULL, &code);
  if (!o->context || code) return clb_opencl_failed(o->head.error, "clCreateContext", code);
  o->queue = o->cl.clCreateCommandQueue(o->context, o->device, 0, &code);
  return !o->queue || code ? clb_opencl_failed(o->head.error, "clCreateCommandQueue", code)
                           : CLB_OK;
}

static clb_status check_adopted(clb_opencl *o) {
  clb_error_sink *e = o->head.error;
  cl_context context = NULL;
  cl_device_id device = NULL;
  cl_command_queue_properties properties = 0;
  cl_int code =
      o->cl.clGetCommandQueueInfo(o->queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  if (!code)
    code = o->cl.clGetCommandQueueInfo(o->queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
  if (!code)
    code = o->cl.clGetCommandQueueInfo(o->queue, CL_QUEUE_PROPERTIES, sizeof properties,
                                       &properties, NULL);
  if (code) return clb_opencl_failed(e, "clGetCommandQueueInfo", code);
  if (context != o->context)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "opencl: the adopted queue belongs to another cl_context");
  if (device != o->device)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "opencl: the adopted queue belongs to another cl_device_id");
  if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "opencl: the adopted queue runs out of order "
                    "(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE); Clebsch needs one in order");
  return CLB_OK;
}

/* Takes the caller's handles; `place` is the device given by the name, if any. */
static clb_status adopt_handles(clb_opencl *o, const clb_native *native,
                                const clb_opencl_place *places, int n,
                                const clb_opencl_place *place) {
  clb_error_sink *e = o->head.error;
  o->adopted = true;
  if (!native->context || !native->device || !native->queue)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "opencl: adopting needs a cl_context, a cl_device_id and a cl_command_queue; "
                    "the %s is NULL",
                    !native->context  ? "context"
                    : !native->device ? "device"
                                      : "queue");
  if (place && place->device != native->device)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "opencl: the adopted cl_device_id is not opencl:%d:%d; \"opencl\" takes any",
                    place->p, place->d);
  snprintf(o->name, sizeof o->name, "opencl"); /* a sub-device has no name */
  for (int i = 0; i < n; i++)
    if (places[i].device == native->device) set_place(o, &places[i]);
  o->context = native->context;
  o->device = native->device;
  o->queue = native->queue;
  clb_status s = check_adopted(o);
  cl_int code = s ? CL_SUCCESS
                  : o->cl.clGetDeviceInfo(o->device, CL_DEVICE_PLATFORM, sizeof o->platform,
                                          &o->platform, NULL);
  return code ? clb_opencl_failed(e, "clGetDeviceInfo", code) : s;
}

/* ---- functions of backend.h ---- */

static void close_device(clb_device *device) {
  clb_opencl *o = (clb_opencl *)device;
  if (!o) return;
  if (!o->adopted && o->queue) {
    o->cl.clFinish(o->queue);
    o->cl.clReleaseCommandQueue(o->queue);
  }
  if (!o->adopted && o->context) o->cl.clReleaseContext(o->context);
  clb_opencl_forget(o);
  free(o);
}

static clb_status open_device(const char *name, const char *rest, const clb_native *native,
                              clb_error_sink *error, clb_device **device) {
  clb_opencl_place *places = NULL;
  int n = 0, p, d;
  bool gpu;
  *device = NULL;
  if (!parse(rest, &p, &d, &gpu))
    return clb_fail(
        error, CLB_ERROR_ARGUMENT,
        "%s: an OpenCL device is opencl, opencl:PLATFORM or opencl:PLATFORM:DEVICE, with numbers",
        name);
  clb_opencl *o = calloc(1, sizeof *o);
  if (!o) return clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory", name);
  o->head.backend = &clb_backend_opencl;
  o->head.error = error;
  clb_status s = clb_opencl_load(error, &o->cl);
  if (!s) s = clb_opencl_places(&o->cl, error, &places, &n);
  if (s) goto done;
  const clb_opencl_place *place = choose(places, n, p, d, gpu);
  if (!place && (!native || p >= 0)) {
    const char *why = error->text.s; /* message of a platform that failed */
    s = clb_fail(error, CLB_ERROR_DEVICE, "%s: no such %s among the %d that OpenCL shows%s%s", name,
                 gpu ? "GPU" : "device", n, why ? "; " : "", why ? why : "");
  } else if (native) s = adopt_handles(o, native, places, n, p < 0 ? NULL : place);
  else set_place(o, place);
  if (!s) s = clb_opencl_describe(o);
  if (!s && !native) s = own_context(o);
done:
  free(places);
  if (s) close_device(&o->head);
  else *device = &o->head;
  return s;
}

static void list(void (*each)(const clb_device_info *info, void *user), void *user) {
  clb_error_sink error = {0};
  clb_opencl_calls cl = {0};
  clb_opencl_place *places = NULL;
  int n = 0;
  if (clb_opencl_load(&error, &cl) == CLB_OK &&
      clb_opencl_places(&cl, &error, &places, &n) == CLB_OK)
    for (int i = 0; i < n; i++) {
      clb_opencl o = {.head.error = &error, .cl = cl};
      set_place(&o, &places[i]);
      if (clb_opencl_describe(&o) == CLB_OK) each(&o.head.info, user);
      clb_opencl_forget(&o);
    }
  free(places);
  clb_text_free(&error.text);
}

static clb_status wait_device(clb_device *device) {
  clb_opencl *o = (clb_opencl *)device;
  cl_int code = o->cl.clFinish(o->queue);
  return code ? clb_opencl_failed(device->error, "clFinish", code) : CLB_OK;
}

const clb_backend clb_backend_opencl = {
    .name = "opencl",
    .list = list,
    .open = open_device,
    .close = close_device,
    .alloc = clb_opencl_alloc,
    .free = clb_opencl_free,
    .wrap = clb_opencl_wrap,
    .write = clb_opencl_write,
    .read = clb_opencl_read,
    .pin = clb_opencl_pin,
    .unpin = clb_opencl_unpin,
    .build = clb_opencl_build,
    .load = clb_opencl_load_kernel,
    .unload = clb_opencl_unload,
    .launch = clb_opencl_launch,
    .wait = wait_device,
    .open_blas = clb_opencl_open_blas,
    .gemm = clb_opencl_gemm,
    .can_gemm = clb_opencl_can_gemm,
    .record = clb_opencl_record,
    .replay = clb_opencl_replay,
    .forget = clb_opencl_forget_recorded,
    .report = clb_opencl_report,
};
