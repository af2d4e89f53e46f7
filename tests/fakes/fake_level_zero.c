/* tests/fakes/fake_level_zero.c - a test-only Level Zero driver (ZE_ENABLE_ALT_DRIVERS): one card
   of two tiles, strict about every argument.

   Nothing runs until the host waits; then commands that no barrier separates run in reverse order.
   ZE_FLAT_DEVICE_HIERARCHY=FLAT shows the tiles as devices.
   CLB_TEST_UNSUPPORTED=zeFunction makes the driver lack it. */
#include "tests/fakes/fake_level_zero.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"context",      "event pool",    "event",
                                         "command list", "command queue", "module",
                                         "build log",    "kernel",        "memory"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
object *fake_objects;
fake_driver fake_level_zero = {.left = -1};
static int driver, card, tiles[2]; /* their addresses are the handles */

/* ---- rules ---- */

ze_result_t fake_broken(ze_result_t r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!fake_level_zero.mistake[0])
    vsnprintf(fake_level_zero.mistake, sizeof fake_level_zero.mistake, format, args);
  va_end(args);
  return r;
}

/* Enters a function; returns its injected failure, or success. fake_end() leaves it. */
ze_result_t fake_begin(const char *function) {
  const char *never = getenv("CLB_TEST_UNSUPPORTED");
  pthread_mutex_lock(&lock);
  if (never && !strcmp(never, function)) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  return fake_fails(&fake_level_zero, function) ? (ze_result_t)fake_level_zero.code
                                                : ZE_RESULT_SUCCESS;
}

ze_result_t fake_end(ze_result_t r) {
  fake_level_zero.alive = 0;
  for (const object *o = fake_objects; o; o = o->next) fake_level_zero.alive++;
  pthread_mutex_unlock(&lock);
  return r;
}

object *fake_made(kind k, object *parent, ze_device_handle_t device) {
  object *o = calloc(1, sizeof *o);
  if (!o) abort();
  *o = (object){.next = fake_objects, .parent = parent, .kind = k, .device = device};
  return fake_objects = o;
}

ze_result_t fake_check(const void *handle, kind k) {
  if (!handle) return fake_broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "null %s", kind_names[k]);
  for (const object *o = fake_objects; o; o = o->next)
    if (o == handle && o->kind == k) return ZE_RESULT_SUCCESS;
  return fake_broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "%p is no living %s", handle,
                     kind_names[k]);
}

ze_result_t fake_check_device(const void *device) {
  if (device == &card || device == &tiles[0] || device == &tiles[1]) return ZE_RESULT_SUCCESS;
  return fake_broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "%p is no device", device);
}

ze_result_t fake_check_pointer(const void *p, const char *what) {
  return p ? ZE_RESULT_SUCCESS
           : fake_broken(ZE_RESULT_ERROR_INVALID_NULL_POINTER, "%s is NULL", what);
}

ze_result_t fake_check_struct(const void *desc, ze_structure_type_t stype, const char *what) {
  if (!desc) return fake_check_pointer(desc, what);
  ze_structure_type_t found;
  memcpy(&found, desc, sizeof found);
  return found == stype ? ZE_RESULT_SUCCESS
                        : fake_broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "%s has stype 0x%x",
                                      what, (unsigned)found);
}

const object *fake_context_of(const object *o) {
  while (o && o->kind != CONTEXT) o = o->parent;
  return o;
}

static bool pending(const object *context) {
  for (const object *o = fake_objects; o; o = o->next)
    if (o->parent == context &&
        ((o->kind == LIST && o->immediate && o->n) || (o->kind == QUEUE && o->n_lists)))
      return true;
  return false;
}

/* Takes an object out of the list; nothing may still need it. */
ze_result_t fake_destroy(object *o, kind k) {
  ze_result_t r = fake_check(o, k);
  if (r) return r;
  for (const object *child = fake_objects; child; child = child->next)
    if (child->parent == o)
      return fake_broken(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, "a %s is destroyed before its %s",
                         kind_names[k], kind_names[child->kind]);
  if (pending(fake_context_of(o)))
    return fake_broken(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE,
                       "a %s is destroyed while work is in flight", kind_names[k]);
  object **at = &fake_objects;
  while (*at != o) at = &(*at)->next;
  *at = o->next;
  return ZE_RESULT_SUCCESS;
}

/* The live allocation that contains p. */
object *fake_memory_at(const void *p) {
  for (object *o = fake_objects; o; o = o->next)
    if (o->kind == MEMORY && (const char *)p >= (const char *)o->base &&
        (const char *)p < (const char *)o->base + o->length)
      return o;
  return NULL;
}

/* ---- driver and devices ---- */

static bool flat(void) {
  const char *s = getenv("ZE_FLAT_DEVICE_HIERARCHY");
  return s && !strcmp(s, "FLAT");
}

static ze_result_t ZE_APICALL init(ze_init_flags_t flags) {
  ze_result_t r = fake_begin("zeInit");
  if (!r && flags & ~(unsigned)ZE_INIT_FLAG_GPU_ONLY)
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "zeInit: flags 0x%x", flags);
  return fake_end(r);
}

/* The protocol of every list: *n of 0 or no array asks how many there are. */
static ze_result_t give(uint32_t *n, void **array, uint32_t have, void *const *from) {
  ze_result_t r = fake_check_pointer(n, "a count");
  if (r) return r;
  if (*n && array) {
    if (*n > have) *n = have;
    memcpy(array, from, *n * sizeof *array);
  } else {
    *n = have;
  }
  return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL driver_get(uint32_t *n, ze_driver_handle_t *out) {
  void *all[] = {&driver};
  ze_result_t r = fake_begin("zeDriverGet");
  return fake_end(r ? r : give(n, (void **)out, 1, all));
}

static ze_result_t check_driver(const void *d) {
  return d == &driver ? ZE_RESULT_SUCCESS
                      : fake_broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "%p is no driver", d);
}

static ze_result_t ZE_APICALL driver_version(ze_driver_handle_t d, ze_api_version_t *version) {
  ze_result_t r = fake_begin("zeDriverGetApiVersion");
  if (!r) r = check_driver(d);
  if (!r) r = fake_check_pointer(version, "version");
  if (!r) *version = ZE_API_VERSION_1_3;
  return fake_end(r);
}

static ze_result_t ZE_APICALL driver_properties(ze_driver_handle_t d, ze_driver_properties_t *p) {
  ze_result_t r = fake_begin("zeDriverGetProperties");
  if (!r) r = check_driver(d);
  if (!r) r = fake_check_struct(p, ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, "driver properties");
  if (!r) p->driverVersion = 0x01020003;
  return fake_end(r);
}

static ze_result_t ZE_APICALL device_get(ze_driver_handle_t d, uint32_t *n,
                                         ze_device_handle_t *out) {
  void *whole[] = {&card}, *parts[] = {&tiles[0], &tiles[1]};
  ze_result_t r = fake_begin("zeDeviceGet");
  if (!r) r = check_driver(d);
  return fake_end(r ? r : give(n, (void **)out, flat() ? 2 : 1, flat() ? parts : whole));
}

static ze_result_t ZE_APICALL sub_devices(ze_device_handle_t d, uint32_t *n,
                                          ze_device_handle_t *out) {
  void *parts[] = {&tiles[0], &tiles[1]};
  ze_result_t r = fake_begin("zeDeviceGetSubDevices");
  if (!r) r = fake_check_device(d);
  return fake_end(r ? r : give(n, (void **)out, (void *)d == &card ? 2 : 0, parts));
}

static ze_result_t ZE_APICALL device_properties(ze_device_handle_t d, ze_device_properties_t *p) {
  ze_result_t r = fake_begin("zeDeviceGetProperties");
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, "device properties");
  if (r) return fake_end(r);
  p->type = ZE_DEVICE_TYPE_GPU;
  p->vendorId = fake_vendor();
  p->deviceId = 0x0bd5;
  p->maxMemAllocSize = LARGE;
  p->numSlices = (void *)d == &card ? 2 : 1;
  p->numSubslicesPerSlice = 64;
  snprintf(p->name, sizeof p->name, "test %s",
           (void *)d == &card       ? "card"
           : (void *)d == &tiles[0] ? "tile 0"
                                    : "tile 1");
  return fake_end(r);
}

static ze_result_t ZE_APICALL compute_properties(ze_device_handle_t d,
                                                 ze_device_compute_properties_t *p) {
  ze_result_t r = fake_begin("zeDeviceGetComputeProperties");
  if (!r) r = fake_check_device(d);
  if (!r)
    r = fake_check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES, "compute properties");
  if (r) return fake_end(r);
  p->maxTotalGroupSize = 1024;
  p->maxGroupCountX = 1 << 30;
  p->maxSharedLocalMemory = 128 << 10;
  p->numSubGroupSizes = 2;
  p->subGroupSizes[0] = 16;
  p->subGroupSizes[1] = 32;
  return fake_end(r);
}

static ze_result_t ZE_APICALL module_properties(ze_device_handle_t d,
                                                ze_device_module_properties_t *p) {
  ze_result_t r = fake_begin("zeDeviceGetModuleProperties");
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES, "module properties");
  if (r) return fake_end(r);
  p->flags = ZE_DEVICE_MODULE_FLAG_FP64;
  ze_float_atomic_ext_properties_t *atomics = p->pNext;
  if (atomics && atomics->stype == ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES)
    atomics->fp32Flags = atomics->fp64Flags = ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD;
  return fake_end(r);
}

static ze_result_t ZE_APICALL memory_properties(ze_device_handle_t d, uint32_t *n,
                                                ze_device_memory_properties_t *p) {
  ze_result_t r = fake_begin("zeDeviceGetMemoryProperties");
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_pointer(n, "a count");
  if (!r && *n && p)
    r = fake_check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES, "memory properties");
  if (!r && *n && p) p->totalSize = (uint64_t)64 << 30;
  if (!r) *n = 1;
  return fake_end(r);
}

/* The first group of queues only copies. */
static ze_result_t ZE_APICALL queue_groups(ze_device_handle_t d, uint32_t *n,
                                           ze_command_queue_group_properties_t *p) {
  ze_result_t r = fake_begin("zeDeviceGetCommandQueueGroupProperties");
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_pointer(n, "a count");
  if (!r && *n && p) {
    if (*n > 2) *n = 2;
    for (uint32_t i = 0; !r && i < *n; i++) {
      r = fake_check_struct(&p[i], ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES,
                            "queue group properties");
      p[i].flags = i ? ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE |
                           ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY
                     : ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
      p[i].numQueues = 1;
    }
  } else if (!r) {
    *n = 2;
  }
  return fake_end(r);
}

static ze_result_t ZE_APICALL pci_properties(ze_device_handle_t d, ze_pci_ext_properties_t *p) {
  ze_result_t r = fake_begin("zeDevicePciGetPropertiesExt");
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_struct(p, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES, "PCI properties");
  if (!r) p->address = (ze_pci_address_ext_t){.bus = 3};
  return fake_end(r);
}

/* ---- contexts, events ---- */

static ze_result_t ZE_APICALL context_create(ze_driver_handle_t d, const ze_context_desc_t *desc,
                                             ze_context_handle_t *out) {
  ze_result_t r = fake_begin("zeContextCreate");
  if (!r) r = check_driver(d);
  if (!r) r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_CONTEXT_DESC, "context description");
  if (!r) *out = (ze_context_handle_t)fake_made(CONTEXT, NULL, NULL);
  return fake_end(r);
}

/* Destroys an object that owns nothing any more; also when made to fail, so that nothing is left.
 */
ze_result_t fake_destroy_plain(const char *function, void *handle, kind k) {
  ze_result_t failure = fake_begin(function), r = fake_destroy(handle, k);
  if (!r && k == EVENT)
    ((object *)handle)->parent->used &= ~((uint64_t)1 << ((object *)handle)->index);
  if (!r) free(handle);
  return fake_end(r ? r : failure);
}
static ze_result_t ZE_APICALL context_destroy(ze_context_handle_t c) {
  return fake_destroy_plain("zeContextDestroy", c, CONTEXT);
}
static ze_result_t ZE_APICALL pool_destroy(ze_event_pool_handle_t p) {
  return fake_destroy_plain("zeEventPoolDestroy", p, POOL);
}
static ze_result_t ZE_APICALL event_destroy(ze_event_handle_t e) {
  return fake_destroy_plain("zeEventDestroy", e, EVENT);
}

static ze_result_t ZE_APICALL pool_create(ze_context_handle_t c, const ze_event_pool_desc_t *desc,
                                          uint32_t n, ze_device_handle_t *devices,
                                          ze_event_pool_handle_t *out) {
  ze_result_t r = fake_begin("zeEventPoolCreate");
  if (!r) r = fake_check(c, CONTEXT);
  if (!r) r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, "event pool description");
  if (!r && (!desc->count || desc->count > 64))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_SIZE, "an event pool of %u", desc->count);
  if (!r && !(desc->flags & ZE_EVENT_POOL_FLAG_HOST_VISIBLE))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "events the host cannot see");
  for (uint32_t i = 0; !r && i < n; i++) r = fake_check_device(devices[i]);
  if (r) return fake_end(r);
  object *o = fake_made(POOL, (object *)c, NULL);
  o->count = desc->count;
  *out = (ze_event_pool_handle_t)o;
  return fake_end(r);
}

static ze_result_t ZE_APICALL event_create(ze_event_pool_handle_t p, const ze_event_desc_t *desc,
                                           ze_event_handle_t *out) {
  object *pool = (object *)p;
  ze_result_t r = fake_begin("zeEventCreate");
  if (!r) r = fake_check(p, POOL);
  if (!r) r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_EVENT_DESC, "event description");
  if (!r && (desc->index >= pool->count || pool->used >> desc->index & 1))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "event %u of a pool of %u", desc->index,
                    pool->count);
  if (!r && !(desc->signal & ZE_EVENT_SCOPE_FLAG_HOST))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ENUMERATION,
                    "an event that does not make memory visible to the host");
  if (r) return fake_end(r);
  object *o = fake_made(EVENT, pool, NULL);
  o->index = desc->index;
  pool->used |= (uint64_t)1 << desc->index;
  *out = (ze_event_handle_t)o;
  return fake_end(r);
}

static ze_result_t ZE_APICALL event_reset(ze_event_handle_t e) {
  ze_result_t r = fake_begin("zeEventHostReset");
  if (!r) r = fake_check(e, EVENT);
  if (!r) ((object *)e)->signalled = false;
  return fake_end(r);
}

/* ---- the tables that the loader asks for ---- */

TABLE(Global, ze_global_dditable_t, .pfnInit = init)
TABLE(Driver, ze_driver_dditable_t, .pfnGet = driver_get, .pfnGetApiVersion = driver_version,
      .pfnGetProperties = driver_properties)
TABLE(Device, ze_device_dditable_t, .pfnGet = device_get, .pfnGetSubDevices = sub_devices,
      .pfnGetProperties = device_properties, .pfnGetComputeProperties = compute_properties,
      .pfnGetModuleProperties = module_properties,
      .pfnGetCommandQueueGroupProperties = queue_groups,
      .pfnGetMemoryProperties = memory_properties, .pfnPciGetPropertiesExt = pci_properties)
TABLE(Context, ze_context_dditable_t, .pfnCreate = context_create, .pfnDestroy = context_destroy)
TABLE(EventPool, ze_event_pool_dditable_t, .pfnCreate = pool_create, .pfnDestroy = pool_destroy)
TABLE(Event, ze_event_dditable_t, .pfnCreate = event_create, .pfnDestroy = event_destroy,
      .pfnHostSynchronize = fake_event_wait, .pfnHostReset = event_reset)

/* The driver has none of these, but the loader must be told so. */
#define NO_TABLE(name)                                                                             \
  __attribute__((visibility("default")))                                                           \
  ze_result_t ZE_APICALL name##ProcAddrTable(ze_api_version_t version, const void *out);           \
  ze_result_t ZE_APICALL name##ProcAddrTable(ze_api_version_t version, const void *out) {          \
    (void)version, (void)out;                                                                      \
    return ZE_RESULT_SUCCESS;                                                                      \
  }
NO_TABLE(zetGetContext)
NO_TABLE(zetGetCommandList)
NO_TABLE(zetGetDebug)
NO_TABLE(zetGetDevice)
NO_TABLE(zetGetKernel)
NO_TABLE(zetGetMetric)
NO_TABLE(zetGetMetricGroup)
NO_TABLE(zetGetMetricQuery)
NO_TABLE(zetGetMetricQueryPool)
NO_TABLE(zetGetMetricStreamer)
NO_TABLE(zetGetModule)
NO_TABLE(zetGetTracerExp)
NO_TABLE(zesGetDevice)
NO_TABLE(zesGetDiagnostics)
NO_TABLE(zesGetDriver)
NO_TABLE(zesGetEngine)
NO_TABLE(zesGetFabricPort)
NO_TABLE(zesGetFan)
NO_TABLE(zesGetFirmware)
NO_TABLE(zesGetFrequency)
NO_TABLE(zesGetLed)
NO_TABLE(zesGetMemory)
NO_TABLE(zesGetPerformanceFactor)
NO_TABLE(zesGetPower)
NO_TABLE(zesGetPsu)
NO_TABLE(zesGetRas)
NO_TABLE(zesGetScheduler)
NO_TABLE(zesGetStandby)
NO_TABLE(zesGetTemperature)
TABLE(Fence, ze_fence_dditable_t, .pfnCreate = NULL)
TABLE(Image, ze_image_dditable_t, .pfnCreate = NULL)
TABLE(Sampler, ze_sampler_dditable_t, .pfnCreate = NULL)
TABLE(PhysicalMem, ze_physical_mem_dditable_t, .pfnCreate = NULL)
TABLE(VirtualMem, ze_virtual_mem_dditable_t, .pfnFree = NULL)
