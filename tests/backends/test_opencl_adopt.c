/* tests/backends/test_opencl_adopt.c - the caller's context, queue, buffers and pointers, on every
   OpenCL device here. */
#include "src/base/dl.h"
#include "src/runtime/recording_list.h"
#include "tests/backends/opencl_devices.h"
#include "tests/models/model_places.h"

/* A function of the loader that the backend does not use. */
static void loader_call(const char *name, void *call) {
  void *loader = clb_dl_open((const char *const[]){"libOpenCL.so.1", NULL});
  const clb_symbol symbol = {name, 0, false};
  if (clb_dl_symbols(loader, &symbol, 1, call)) fail_msg("libOpenCL.so.1 has no %s", name);
  clb_dl_close(loader);
}

/* ---- the caller's handles ---- */

typedef struct {
  clb_opencl_calls cl;
  clb_native native;
} host;

/* A context and a queue of the caller's own on the named device. */
static host host_open(const char *name, cl_command_queue_properties properties) {
  host h = {0};
  clb_error_sink error = {0};
  cl_int code;
  clb_device *d = open_named(name, NULL, &error);
  h.cl = ((clb_opencl *)d)->cl;
  cl_device_id id = ((clb_opencl *)d)->device;
  opencl->close(d);
  clb_text_free(&error.text);
  h.native.device = id;
  h.native.context = h.cl.clCreateContext(NULL, 1, &id, NULL, NULL, &code);
  assert_int_equal(code, CL_SUCCESS);
  h.native.queue = h.cl.clCreateCommandQueue(h.native.context, id, properties, &code);
  assert_int_equal(code, CL_SUCCESS);
  return h;
}

static void host_close(host *h) {
  assert_int_equal(h->cl.clReleaseCommandQueue(h->native.queue), CL_SUCCESS);
  assert_int_equal(h->cl.clReleaseContext(h->native.context), CL_SUCCESS);
}

static void refuses(const clb_native *native, const char *name, const char *word) {
  clb_error_sink error = {0};
  clb_device *d;
  assert_int_equal(opencl->open(name, name + 6, native, &error, &d), CLB_ERROR_ARGUMENT);
  assert_null(d);
  if (!strstr(error.text.s, word)) fail_msg("%s", error.text.s);
  clb_text_free(&error.text);
}

static void adopted(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    host a = host_open(found.name[i], 0),
         b = host_open(found.name[i], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    clb_device *d = open_named("opencl", &a.native, &error);
    assert_string_equal(d->info.name, found.name[i]);
    run_all_cases(d);
    opencl->close(d);
    d = open_named(found.name[i], &a.native, &error);
    opencl->close(d);
    refuses(&b.native, "opencl", "out of order");
    refuses(&(clb_native){.context = a.native.context,
                          .device = a.native.device,
                          .queue = b.native.queue},
            "opencl", "cl_context");
    refuses(&(clb_native){.context = a.native.context, .device = a.native.device}, "opencl",
            "queue is NULL");
    refuses(&(clb_native){.context = a.native.context, .queue = a.native.queue}, "opencl",
            "device is NULL");
    refuses(&(clb_native){.device = a.native.device, .queue = a.native.queue}, "opencl",
            "context is NULL");
    if (found.n > 1) refuses(&a.native, found.name[!i], "is not opencl:");
    host_close(&b);
    host_close(&a);
    clb_text_free(&error.text);
  }
}

/* ---- a model in the caller's queue ---- */

static clb_model *open_in(clb_context *ctx) {
  char path[] = "/tmp/clebsch_made_XXXXXX";
  clb_model *model = NULL;
  close(mkstemp(path));
  made_write(&made_models[0], path, NULL, NULL);
  if (clb_model_open(ctx, path, &(clb_model_options){.knots = 16}, &model))
    fail_msg("%s", clb_error(ctx));
  unlink(path);
  return model;
}

/* Steps are recorded and replayed there, and give the bits of a queue of the library's own, while
   the caller submits to it, too; the queue outlives the model. */
static void model_in_a_callers_queue(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    host h = host_open(found.name[i], 0);
    opened own = open_made(found.name[i], 0, &(clb_model_options){.knots = 16}), theirs = {0};
    if (clb_context_adopt(found.name[i], &h.native, &theirs.ctx))
      fail_msg("%s", clb_error(theirs.ctx));
    assert_ptr_equal(((clb_opencl *)theirs.ctx->device)->queue, h.native.queue);
    theirs.model = open_in(theirs.ctx);
    atom_set a = random_atoms(6, 2, true, 12);
    for (int t = 0; t < 5; t++) {
      if (t % 3 == 2) a.positions[t] += 0.01;
      const computed wanted = compute_atoms(&own, &a), c = compute_atoms(&theirs, &a);
      assert_memory_equal(&c, &wanted, sizeof c);
      assert_int_equal(h.cl.clFinish(h.native.queue), CL_SUCCESS);
    }
    assert_true(theirs.model->step.recording && !theirs.model->step.recording->lost);
    assert_true((int64_t)(theirs.model->step.recorded >> CLB_WANTED_BITS) ==
                theirs.model->graph_number);
    close_model(&theirs);
    close_model(&own);
    assert_int_equal(h.cl.clFinish(h.native.queue), CL_SUCCESS);
    host_close(&h);
  }
}

/* A context over two halves of a device, of which the second is adopted: the program has two
   binaries, one of them empty. The halves are never released: PoCL 3.1 occasionally crashes then
   (drivers/sub_devices.c). */
static void half_a_device(void **state) {
  int tried = 0;
  __typeof__(&clCreateSubDevices) split;
  (void)state;
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    host a = host_open(found.name[i], 0), h = a;
    cl_device_id half[2] = {0};
    cl_uint n = 0;
    cl_int code;
    loader_call("clCreateSubDevices", &split);
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    if (!split(a.native.device, how, 0, NULL, &n) && n == 2 &&
        !split(a.native.device, how, 2, half, NULL)) {
      h.native.context = h.cl.clCreateContext(NULL, 2, half, NULL, NULL, &code);
      assert_int_equal(code, CL_SUCCESS);
      h.native.device = half[1];
      h.native.queue = h.cl.clCreateCommandQueue(h.native.context, half[1], 0, &code);
      assert_int_equal(code, CL_SUCCESS);
      clb_device *d = open_named("opencl", &h.native, &error);
      assert_string_equal(d->info.name, "opencl");
      run_all_cases(d);
      opencl->close(d);
      host_close(&h);
      tried++;
    }
    host_close(&a);
    clb_text_free(&error.text);
  }
  if (!tried) skip_because("no OpenCL device that splits in two");
}

/* ---- the caller's memory ---- */

/* y[i] += i, through a wrapped y. */
static void adds_lane(clb_device *d, clb_memory *y, void *host_copy) {
  clb_text binary = {0};
  clb_module *module = NULL;
  ir_kernel k;
  int lanes = d->limits.lanes[CLB_F32];
  float back[4] = {0}, *values = host_copy;
  ir_begin(&k, "adds_lane", lanes, 1, lanes);
  ir_val array = ir_buffer(&k, IR_F32, true), at = ir_lane(&k),
         mask = ir_2(&k, IR_LT, at, ir_int(&k, IR_I32, 4));
  ir_store(&k, array, at, mask, ir_add(&k, ir_load(&k, array, at, mask), ir_cast(&k, IR_F32, at)));
  assert_true(ir_finish(&k));
  if (opencl->wrap(d, y)) fail_msg("%s", d->error->text.s);
  if (opencl->write(d, y, 4, values + 1, 12) || opencl->write(d, y, 0, values, 4) ||
      build_kernel(d, &k, &binary) || opencl->load(d, &k, binary.s, binary.n, &module))
    fail_msg("%s", d->error->text.s);
  if (opencl->launch(d, module, 1, (const clb_arg[]){{.type = IR_VOID, .memory = y}}, 1) ||
      opencl->read(d, y, 4, back, 12))
    fail_msg("%s", d->error->text.s);
  for (int i = 0; i < 3; i++) assert_true(back[i] == values[i + 1] + (float)(i + 1));
  opencl->unload(d, module);
  clb_text_free(&binary);
  ir_free(&k);
}

static void wrapped_buffers(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    float values[4] = {1, 2, 3, 4};
    cl_int code;
    host a = host_open(found.name[i], 0), b = host_open(found.name[i], 0);
    clb_device *d = open_named("opencl", &a.native, &error);
    cl_mem m = a.cl.clCreateBuffer(a.native.context, CL_MEM_READ_WRITE, 16, NULL, &code),
           foreign = b.cl.clCreateBuffer(b.native.context, CL_MEM_READ_WRITE, 16, NULL, &code);
    adds_lane(d, &(clb_memory){m, CLB_CL_MEM, 16, NULL}, values);
    assert_int_equal(opencl->wrap(d, &(clb_memory){m, CLB_CL_MEM, 17, NULL}), CLB_ERROR_ARGUMENT);
    assert_int_equal(opencl->wrap(d, &(clb_memory){foreign, CLB_CL_MEM, 16, NULL}),
                     CLB_ERROR_ARGUMENT);
    assert_int_equal(opencl->wrap(d, &(clb_memory){NULL, CLB_CL_MEM, 16, NULL}),
                     CLB_ERROR_ARGUMENT);
    assert_int_equal(opencl->wrap(d, &(clb_memory){NULL, CLB_POINTER, 0, NULL}), CLB_OK);
    a.cl.clReleaseMemObject(foreign);
    a.cl.clReleaseMemObject(m);
    opencl->close(d);
    host_close(&b);
    host_close(&a);
    clb_text_free(&error.text);
  }
}

/* Shared virtual memory, and unified shared memory of each kind; a device with neither prints so.
 */
static void wrapped_pointers(void **state) {
  static const char *const makers[] = {"clHostMemAllocINTEL", "clDeviceMemAllocINTEL",
                                       "clSharedMemAllocINTEL"};
  __typeof__(&clSVMAlloc) svm_alloc;
  __typeof__(&clSVMFree) svm_free;
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    float values[4] = {5, 6, 7, 8};
    cl_int code;
    clb_device *d = open_named(found.name[i], NULL, &error);
    clb_opencl *o = (clb_opencl *)d;
    if (!o->pointers.set)
      assert_int_equal(opencl->wrap(d, &(clb_memory){values, CLB_POINTER, 16, NULL}),
                       CLB_ERROR_UNSUPPORTED);
    cl_device_svm_capabilities svm = 0;
    o->cl.clGetDeviceInfo(o->device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL);
    if (svm) {
      loader_call("clSVMAlloc", &svm_alloc);
      loader_call("clSVMFree", &svm_free);
      void *p = svm_alloc(o->context, CL_MEM_READ_WRITE, 64, 0);
      assert_non_null(p);
      adds_lane(d, &(clb_memory){p, CLB_POINTER, 16, NULL}, values);
      svm_free(o->context, p);
    }
    for (int m = 0; m < 3 && o->pointers.info; m++) {
      clDeviceMemAllocINTEL_fn on_device;
      clHostMemAllocINTEL_fn on_host;
      clMemFreeINTEL_fn release;
      void *make = o->cl.clGetExtensionFunctionAddressForPlatform(o->platform, makers[m]),
           *drop = o->cl.clGetExtensionFunctionAddressForPlatform(o->platform, "clMemFreeINTEL");
      memcpy(&on_device, &make, sizeof make);
      memcpy(&on_host, &make, sizeof make);
      memcpy(&release, &drop, sizeof drop);
      char *p = m == 0 ? on_host(o->context, NULL, 64, 0, &code)
                       : on_device(o->context, o->device, NULL, 64, 0, &code);
      assert_non_null(p);
      adds_lane(d, &(clb_memory){p + 16, CLB_POINTER, 48, NULL}, values);
      assert_int_equal(opencl->wrap(d, &(clb_memory){p + 16, CLB_POINTER, 49, NULL}),
                       CLB_ERROR_ARGUMENT);
      assert_non_null(strstr(error.text.s, "48 bytes"));
      release(o->context, p);
    }
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adopted),          cmocka_unit_test(model_in_a_callers_queue),
      cmocka_unit_test(half_a_device),    cmocka_unit_test(wrapped_buffers),
      cmocka_unit_test(wrapped_pointers),
  };
  opencl->list(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
