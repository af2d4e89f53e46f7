/* fake_level_zero.c - a test-only Level Zero driver (ZE_ENABLE_ALT_DRIVERS): one card of two tiles, strict about every argument.

   Nothing runs until the host waits, and then what no barrier separates runs in the reverse order.
   ZE_FLAT_DEVICE_HIERARCHY=FLAT shows the tiles as devices.  CLB_TEST_FAIL=zeFunction:k makes the k-th call of it fail.
   FAKE_LEVEL_ZERO_BLACKLIST=zeFunction makes it fail always. */
#include "fake_level_zero.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 20, MAX_COMMANDS = 64 }; /* bytes of one allocation, without relaxed limits */

typedef enum { CONTEXT, POOL, EVENT, LIST, MODULE, LOG, KERNEL, MEMORY } kind;
static const char *const kind_names[] = {"context", "event pool", "event", "command list", "module", "build log", "kernel", "memory"};

typedef enum { BARRIER, COPY, LAUNCH } command_kind;
typedef struct object object;
typedef struct {
  command_kind kind;
  object *event, *kernel;         /* event: signalled when done */
  void *to;
  const void *from;
  size_t bytes;
  uint32_t groups;
  fake_argument args[FAKE_PARAMETERS];
} command;

struct object {
  object *next, *parent;          /* the parent must outlive it */
  kind kind;
  ze_device_handle_t device;
  union {
    struct { uint32_t count; uint64_t used; };                                          /* POOL */
    struct { bool signalled; uint32_t index; };                                         /* EVENT */
    struct { command *commands; int n; };                                               /* LIST */
    struct { void *program; uint8_t *spirv; size_t bytes; bool large, registers; };     /* MODULE */
    char log[2000];                                                                     /* LOG */
    struct { void *run; fake_argument args[FAKE_PARAMETERS]; bool set[FAKE_PARAMETERS]; uint32_t size; }; /* KERNEL */
    struct { void *base; size_t length; ze_memory_type_t type; };                       /* MEMORY */
  };
  fake_signature signature;       /* MODULE, KERNEL */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object *objects;
static int violations;
static char first_violation[300];
static int driver, card, tiles[2];    /* their addresses are the handles */

/* ---- rules ---- */

__attribute__((format(printf, 2, 3))) static ze_result_t broken(ze_result_t r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!violations++) vsnprintf(first_violation, sizeof first_violation, format, args);
  va_end(args);
  return r;
}

int fake_level_zero_violations(const char **first) {
  *first = first_violation;
  return violations;
}

int fake_level_zero_live(void) {
  int n = 0;
  pthread_mutex_lock(&lock);
  for (const object *o = objects; o; o = o->next) n++;
  pthread_mutex_unlock(&lock);
  return n;
}

/* Enters a function: its injected failure, or success.  end() leaves it. */
static ze_result_t begin(const char *function) {
  static char wish[80];
  static int calls;
  const char *now = getenv("CLB_TEST_FAIL"), *always = getenv("FAKE_LEVEL_ZERO_BLACKLIST"), *colon;
  pthread_mutex_lock(&lock);
  if (always && !strcmp(always, function)) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  if (strcmp(wish, now ? now : "")) {
    snprintf(wish, sizeof wish, "%s", now ? now : "");
    calls = 0;
  }
  if (!(colon = strchr(wish, ':')) || strlen(function) != (size_t)(colon - wish) || strncmp(wish, function, strlen(function))) return ZE_RESULT_SUCCESS;
  return ++calls == atoi(colon + 1) ? ZE_RESULT_ERROR_UNKNOWN : ZE_RESULT_SUCCESS;
}

static ze_result_t end(ze_result_t r) {
  pthread_mutex_unlock(&lock);
  return r;
}

static object *made(kind k, object *parent, ze_device_handle_t device) {
  object *o = calloc(1, sizeof *o);
  if (!o) abort();
  *o = (object){.next = objects, .parent = parent, .kind = k, .device = device};
  return objects = o;
}

static ze_result_t check(const void *handle, kind k) {
  if (!handle) return broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "null %s", kind_names[k]);
  for (const object *o = objects; o; o = o->next)
    if (o == handle && o->kind == k) return ZE_RESULT_SUCCESS;
  return broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "%p is no living %s", handle, kind_names[k]);
}

static ze_result_t check_device(const void *device) {
  if (device == &card || device == &tiles[0] || device == &tiles[1]) return ZE_RESULT_SUCCESS;
  return broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "%p is no device", device);
}

static ze_result_t check_pointer(const void *p, const char *what) {
  return p ? ZE_RESULT_SUCCESS : broken(ZE_RESULT_ERROR_INVALID_NULL_POINTER, "%s is NULL", what);
}

static ze_result_t check_struct(const void *desc, ze_structure_type_t stype, const char *what) {
  if (!desc) return check_pointer(desc, what);
  ze_structure_type_t found;
  memcpy(&found, desc, sizeof found);
  return found == stype ? ZE_RESULT_SUCCESS : broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "%s has stype 0x%x", what, (unsigned)found);
}

static bool pending(const object *context) {
  for (const object *o = objects; o; o = o->next)
    if (o->kind == LIST && o->n && (!context || o->parent == context)) return true;
  return false;
}

/* Takes an object out of the list; nothing may still need it. */
static ze_result_t destroy(object *o, kind k) {
  ze_result_t r = check(o, k);
  if (r) return r;
  for (const object *child = objects; child; child = child->next)
    if (child->parent == o) return broken(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, "a %s is destroyed before its %s", kind_names[k], kind_names[child->kind]);
  if (k != LOG && pending(NULL)) return broken(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, "a %s is destroyed while work is in flight", kind_names[k]);
  object **at = &objects;
  while (*at != o) at = &(*at)->next;
  *at = o->next;
  return ZE_RESULT_SUCCESS;
}

/* The living allocation that holds p. */
static object *memory_at(const void *p) {
  for (object *o = objects; o; o = o->next)
    if (o->kind == MEMORY && (const char *)p >= (const char *)o->base && (const char *)p < (const char *)o->base + o->length) return o;
  return NULL;
}

/* ---- driver and devices ---- */

static bool flat(void) {
  const char *s = getenv("ZE_FLAT_DEVICE_HIERARCHY");
  return s && !strcmp(s, "FLAT");
}

static ze_result_t ZE_APICALL init(ze_init_flags_t flags) {
  ze_result_t r = begin("zeInit");
  if (!r && flags & ~(unsigned)ZE_INIT_FLAG_GPU_ONLY) r = broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "zeInit: flags 0x%x", flags);
  return end(r);
}

/* The protocol of every list: *n of 0 or no array asks how many there are. */
static ze_result_t give(uint32_t *n, void **array, uint32_t have, void *const *from) {
  ze_result_t r = check_pointer(n, "a count");
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
  ze_result_t r = begin("zeDriverGet");
  return end(r ? r : give(n, (void **)out, 1, all));
}

static ze_result_t check_driver(const void *d) { return d == &driver ? ZE_RESULT_SUCCESS : broken(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "%p is no driver", d); }

static ze_result_t ZE_APICALL driver_version(ze_driver_handle_t d, ze_api_version_t *version) {
  ze_result_t r = begin("zeDriverGetApiVersion");
  if (!r) r = check_driver(d);
  if (!r) r = check_pointer(version, "version");
  if (!r) *version = ZE_API_VERSION_1_3;
  return end(r);
}

static ze_result_t ZE_APICALL driver_properties(ze_driver_handle_t d, ze_driver_properties_t *p) {
  ze_result_t r = begin("zeDriverGetProperties");
  if (!r) r = check_driver(d);
  if (!r) r = check_struct(p, ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, "driver properties");
  if (!r) p->driverVersion = 0x01020003;
  return end(r);
}

static ze_result_t ZE_APICALL device_get(ze_driver_handle_t d, uint32_t *n, ze_device_handle_t *out) {
  void *whole[] = {&card}, *parts[] = {&tiles[0], &tiles[1]};
  ze_result_t r = begin("zeDeviceGet");
  if (!r) r = check_driver(d);
  return end(r ? r : give(n, (void **)out, flat() ? 2 : 1, flat() ? parts : whole));
}

static ze_result_t ZE_APICALL sub_devices(ze_device_handle_t d, uint32_t *n, ze_device_handle_t *out) {
  void *parts[] = {&tiles[0], &tiles[1]};
  ze_result_t r = begin("zeDeviceGetSubDevices");
  if (!r) r = check_device(d);
  return end(r ? r : give(n, (void **)out, (void *)d == &card ? 2 : 0, parts));
}

static ze_result_t ZE_APICALL device_properties(ze_device_handle_t d, ze_device_properties_t *p) {
  ze_result_t r = begin("zeDeviceGetProperties");
  if (!r) r = check_device(d);
  if (!r) r = check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, "device properties");
  if (r) return end(r);
  p->type = ZE_DEVICE_TYPE_GPU;
  p->vendorId = 0x8086;
  p->deviceId = 0x0bd5;
  p->maxMemAllocSize = LARGE;
  p->numSlices = (void *)d == &card ? 2 : 1;
  p->numSubslicesPerSlice = 64;
  snprintf(p->name, sizeof p->name, "test %s", (void *)d == &card ? "card" : (void *)d == &tiles[0] ? "tile 0" : "tile 1");
  return end(r);
}

static ze_result_t ZE_APICALL compute_properties(ze_device_handle_t d, ze_device_compute_properties_t *p) {
  ze_result_t r = begin("zeDeviceGetComputeProperties");
  if (!r) r = check_device(d);
  if (!r) r = check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES, "compute properties");
  if (r) return end(r);
  p->maxTotalGroupSize = 1024;
  p->maxGroupCountX = 1 << 30;
  p->maxSharedLocalMemory = 128 << 10;
  p->numSubGroupSizes = 2;
  p->subGroupSizes[0] = 16;
  p->subGroupSizes[1] = 32;
  return end(r);
}

static ze_result_t ZE_APICALL module_properties(ze_device_handle_t d, ze_device_module_properties_t *p) {
  ze_result_t r = begin("zeDeviceGetModuleProperties");
  if (!r) r = check_device(d);
  if (!r) r = check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES, "module properties");
  if (r) return end(r);
  p->flags = ZE_DEVICE_MODULE_FLAG_FP64;
  ze_float_atomic_ext_properties_t *atomics = p->pNext;
  if (atomics && atomics->stype == ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES) atomics->fp32Flags = atomics->fp64Flags = ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD;
  return end(r);
}

static ze_result_t ZE_APICALL memory_properties(ze_device_handle_t d, uint32_t *n, ze_device_memory_properties_t *p) {
  ze_result_t r = begin("zeDeviceGetMemoryProperties");
  if (!r) r = check_device(d);
  if (!r) r = check_pointer(n, "a count");
  if (!r && *n && p) r = check_struct(p, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES, "memory properties");
  if (!r && *n && p) p->totalSize = (uint64_t)64 << 30;
  if (!r) *n = 1;
  return end(r);
}

/* The first group of queues only copies. */
static ze_result_t ZE_APICALL queue_groups(ze_device_handle_t d, uint32_t *n, ze_command_queue_group_properties_t *p) {
  ze_result_t r = begin("zeDeviceGetCommandQueueGroupProperties");
  if (!r) r = check_device(d);
  if (!r) r = check_pointer(n, "a count");
  if (!r && *n && p) {
    if (*n > 2) *n = 2;
    for (uint32_t i = 0; !r && i < *n; i++) {
      r = check_struct(&p[i], ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES, "queue group properties");
      p[i].flags = i ? ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY : ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
      p[i].numQueues = 1;
    }
  } else if (!r) {
    *n = 2;
  }
  return end(r);
}

static ze_result_t ZE_APICALL pci_properties(ze_device_handle_t d, ze_pci_ext_properties_t *p) {
  ze_result_t r = begin("zeDevicePciGetPropertiesExt");
  if (!r) r = check_device(d);
  if (!r) r = check_struct(p, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES, "PCI properties");
  if (!r) p->address = (ze_pci_address_ext_t){.bus = 3};
  return end(r);
}

/* ---- contexts, events ---- */

static ze_result_t ZE_APICALL context_create(ze_driver_handle_t d, const ze_context_desc_t *desc, ze_context_handle_t *out) {
  ze_result_t r = begin("zeContextCreate");
  if (!r) r = check_driver(d);
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_CONTEXT_DESC, "context description");
  if (!r) *out = (ze_context_handle_t)made(CONTEXT, NULL, NULL);
  return end(r);
}

/* Destroys whatever holds nothing more. */
static ze_result_t destroy_plain(const char *function, void *handle, kind k) {
  ze_result_t r = begin(function);
  if (r) broken(r, "%s was made to fail; what it destroys stays", function), violations--;
  if (!r) r = destroy(handle, k);
  if (!r && k == EVENT) ((object *)handle)->parent->used &= ~((uint64_t)1 << ((object *)handle)->index);
  if (!r) free(handle);
  return end(r);
}
static ze_result_t ZE_APICALL context_destroy(ze_context_handle_t c) { return destroy_plain("zeContextDestroy", c, CONTEXT); }
static ze_result_t ZE_APICALL pool_destroy(ze_event_pool_handle_t p) { return destroy_plain("zeEventPoolDestroy", p, POOL); }
static ze_result_t ZE_APICALL event_destroy(ze_event_handle_t e) { return destroy_plain("zeEventDestroy", e, EVENT); }
static ze_result_t ZE_APICALL log_destroy(ze_module_build_log_handle_t l) { return destroy_plain("zeModuleBuildLogDestroy", l, LOG); }

static ze_result_t ZE_APICALL pool_create(ze_context_handle_t c, const ze_event_pool_desc_t *desc, uint32_t n, ze_device_handle_t *devices, ze_event_pool_handle_t *out) {
  ze_result_t r = begin("zeEventPoolCreate");
  if (!r) r = check(c, CONTEXT);
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, "event pool description");
  if (!r && (!desc->count || desc->count > 64)) r = broken(ZE_RESULT_ERROR_INVALID_SIZE, "an event pool of %u", desc->count);
  if (!r && !(desc->flags & ZE_EVENT_POOL_FLAG_HOST_VISIBLE)) r = broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "events the host cannot see");
  for (uint32_t i = 0; !r && i < n; i++) r = check_device(devices[i]);
  if (r) return end(r);
  object *o = made(POOL, (object *)c, NULL);
  o->count = desc->count;
  *out = (ze_event_pool_handle_t)o;
  return end(r);
}

static ze_result_t ZE_APICALL event_create(ze_event_pool_handle_t p, const ze_event_desc_t *desc, ze_event_handle_t *out) {
  object *pool = (object *)p;
  ze_result_t r = begin("zeEventCreate");
  if (!r) r = check(p, POOL);
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_EVENT_DESC, "event description");
  if (!r && (desc->index >= pool->count || pool->used >> desc->index & 1)) r = broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "event %u of a pool of %u", desc->index, pool->count);
  if (!r && !(desc->signal & ZE_EVENT_SCOPE_FLAG_HOST)) r = broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "an event that does not make memory visible to the host");
  if (r) return end(r);
  object *o = made(EVENT, pool, NULL);
  o->index = desc->index;
  pool->used |= (uint64_t)1 << desc->index;
  *out = (ze_event_handle_t)o;
  return end(r);
}

static ze_result_t ZE_APICALL event_reset(ze_event_handle_t e) {
  ze_result_t r = begin("zeEventHostReset");
  if (!r) r = check(e, EVENT);
  if (!r) ((object *)e)->signalled = false;
  return end(r);
}
