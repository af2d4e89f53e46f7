/* fake_level_zero.c - a test-only Level Zero driver (ZE_ENABLE_ALT_DRIVERS): one card of two tiles, strict about every argument.

   Nothing runs until the host waits, and then what no barrier separates runs in the reverse order.
   ZE_FLAT_DEVICE_HIERARCHY=FLAT shows the tiles as devices.  CLB_TEST_FAIL=zeFunction:k makes the k-th call of it fail.
   CLB_TEST_UNSUPPORTED=zeFunction: the driver does not have it. */
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
static bool failed_as_wished;
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

int fake_level_zero_failed(void) { return failed_as_wished; }

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
  const char *now = getenv("CLB_TEST_FAIL"), *never = getenv("CLB_TEST_UNSUPPORTED"), *colon;
  pthread_mutex_lock(&lock);
  if (never && !strcmp(never, function)) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  if (strcmp(wish, now ? now : "") != 0) {
    snprintf(wish, sizeof wish, "%s", now ? now : "");
    calls = 0;
    failed_as_wished = false;
  }
  if (!(colon = strchr(wish, ':')) || strlen(function) != (size_t)(colon - wish) || strncmp(wish, function, strlen(function))) return ZE_RESULT_SUCCESS;
  if (++calls != atoi(colon + 1)) return ZE_RESULT_SUCCESS;
  failed_as_wished = true;
  return ZE_RESULT_ERROR_UNKNOWN;
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

static const object *context_of(const object *o) {
  while (o && o->kind != CONTEXT) o = o->parent;
  return o;
}

static bool pending(const object *context) {
  for (const object *o = objects; o; o = o->next)
    if (o->kind == LIST && o->n && o->parent == context) return true;
  return false;
}

/* Takes an object out of the list; nothing may still need it. */
static ze_result_t destroy(object *o, kind k) {
  ze_result_t r = check(o, k);
  if (r) return r;
  for (const object *child = objects; child; child = child->next)
    if (child->parent == o) return broken(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, "a %s is destroyed before its %s", kind_names[k], kind_names[child->kind]);
  if (pending(context_of(o))) return broken(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, "a %s is destroyed while work is in flight", kind_names[k]);
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

/* Destroys what holds nothing more; also when made to fail, so that nothing stays. */
static ze_result_t destroy_plain(const char *function, void *handle, kind k) {
  ze_result_t failure = begin(function), r = destroy(handle, k);
  if (!r && k == EVENT) ((object *)handle)->parent->used &= ~((uint64_t)1 << ((object *)handle)->index);
  if (!r) free(handle);
  return end(r ? r : failure);
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

/* ---- command lists ---- */

static ze_result_t ZE_APICALL list_create(ze_context_handle_t c, ze_device_handle_t d, const ze_command_queue_desc_t *desc, ze_command_list_handle_t *out) {
  ze_result_t r = begin("zeCommandListCreateImmediate");
  if (!r) r = check(c, CONTEXT);
  if (!r) r = check_device(d);
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, "queue description");
  if (!r && desc->ordinal != 1) r = broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "queues of group %u do not compute", desc->ordinal);
  if (!r && desc->mode != ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS) r = broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "a list that waits for every command");
  if (r) return end(r);
  object *o = made(LIST, (object *)c, d);
  o->commands = calloc(MAX_COMMANDS, sizeof *o->commands);
  if (!o->commands) abort();
  *out = (ze_command_list_handle_t)o;
  return end(r);
}

static void run_one(const command *c) {
  if (c->kind == COPY) memcpy(c->to, c->from, c->bytes);
  if (c->kind == LAUNCH && !fake_kernel_run(c->kernel->run, &c->kernel->signature, c->args, c->groups, c->kernel->size))
    broken(ZE_RESULT_ERROR_UNKNOWN, "OpenCL did not run kernel %s", c->kernel->signature.name);
  if (c->event && c->event->signalled) broken(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT, "an event is signalled twice");
  if (c->event) c->event->signalled = true;
}

/* Runs all commands: between two barriers in the reverse order. */
static void run_list(object *list) {
  for (int first = 0, last; first < list->n; first = last + 1) {
    for (last = first; last < list->n && list->commands[last].kind != BARRIER; last++) continue;
    for (int i = last - 1; i >= first; i--) run_one(&list->commands[i]);
    if (last < list->n) run_one(&list->commands[last]);
  }
  list->n = 0;
}

static ze_result_t append(ze_command_list_handle_t handle, const command *c) {
  object *list = (object *)handle;
  if (list->n == MAX_COMMANDS) run_list(list);
  list->commands[list->n++] = *c;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t check_events(ze_event_handle_t signal, uint32_t n_wait) {
  if (n_wait) return broken(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, "this driver waits for no event on the device");
  return signal ? check(signal, EVENT) : ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL append_barrier(ze_command_list_handle_t l, ze_event_handle_t signal, uint32_t n, ze_event_handle_t *wait) {
  ze_result_t r = begin("zeCommandListAppendBarrier");
  (void)wait;
  if (!r) r = check(l, LIST);
  if (!r) r = check_events(signal, n);
  if (!r) r = append(l, &(command){.kind = BARRIER, .event = (object *)signal});
  return end(r);
}

/* Pointers outside every allocation are the host's own. */
static ze_result_t check_range(const void *p, size_t bytes) {
  const object *m = memory_at(p);
  if (m && bytes > m->length - (size_t)((const char *)p - (const char *)m->base)) return broken(ZE_RESULT_ERROR_INVALID_SIZE, "a copy of %zu bytes leaves its allocation", bytes);
  return check_pointer(p, "memory to copy");
}

static ze_result_t ZE_APICALL append_copy(ze_command_list_handle_t l, void *to, const void *from, size_t bytes, ze_event_handle_t signal, uint32_t n,
                                          ze_event_handle_t *wait) {
  ze_result_t r = begin("zeCommandListAppendMemoryCopy");
  (void)wait;
  if (!r) r = check(l, LIST);
  if (!r) r = check_events(signal, n);
  if (!r && !bytes) r = broken(ZE_RESULT_ERROR_INVALID_SIZE, "a copy of nothing");
  if (!r) r = check_range(to, bytes);
  if (!r) r = check_range(from, bytes);
  if (!r) r = append(l, &(command){.kind = COPY, .event = (object *)signal, .to = to, .from = from, .bytes = bytes});
  return end(r);
}

static ze_result_t check_launch(const object *kernel) {
  if (!kernel->size) return broken(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION, "a launch without a group size");
  for (int i = 0; i < kernel->signature.n_parameters; i++)
    if (!kernel->set[i]) return broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "a launch without argument %d", i);
  return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL append_launch(ze_command_list_handle_t l, ze_kernel_handle_t k, const ze_group_count_t *groups, ze_event_handle_t signal, uint32_t n,
                                            ze_event_handle_t *wait) {
  ze_result_t r = begin("zeCommandListAppendLaunchKernel");
  (void)wait;
  if (!r) r = check(l, LIST);
  if (!r) r = check(k, KERNEL);
  if (!r) r = check_pointer(groups, "the number of groups");
  if (!r) r = check_events(signal, n);
  if (!r && (!groups->groupCountX || groups->groupCountX > 1 << 30 || groups->groupCountY != 1 || groups->groupCountZ != 1))
    r = broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "%u x %u x %u groups", groups->groupCountX, groups->groupCountY, groups->groupCountZ);
  if (!r) r = check_launch((object *)k);
  if (r) return end(r);
  command c = {.kind = LAUNCH, .event = (object *)signal, .kernel = (object *)k, .groups = groups->groupCountX};
  memcpy(c.args, c.kernel->args, sizeof c.args);
  return end(append(l, &c));
}

static ze_result_t ZE_APICALL list_destroy(ze_command_list_handle_t l) {
  ze_result_t failure = begin("zeCommandListDestroy"), r = destroy((object *)l, LIST);
  if (!r) free(((object *)l)->commands);
  if (!r) free(l);
  return end(r ? r : failure);
}

static ze_result_t ZE_APICALL event_wait(ze_event_handle_t e, uint64_t timeout) {
  ze_result_t r = begin("zeEventHostSynchronize");
  (void)timeout;
  if (!r) r = check(e, EVENT);
  if (r) return end(r);
  for (object *o = objects; o; o = o->next)
    if (o->kind == LIST && o->parent == context_of((object *)e)) run_list(o);
  if (!((object *)e)->signalled) r = broken(ZE_RESULT_NOT_READY, "the host waits for an event that nothing signals");
  return end(r);
}

/* ---- memory ---- */

static ze_result_t memory_new(ze_context_handle_t c, ze_device_handle_t d, ze_memory_type_t type, size_t bytes, size_t alignment, const void *more, void **out) {
  const ze_relaxed_allocation_limits_exp_desc_t *relaxed = more;
  ze_result_t r = check(c, CONTEXT);
  if (!r && d) r = check_device(d);
  if (!r) r = check_pointer(out, "where to put the memory");
  if (!r && (alignment & (alignment - 1))) r = broken(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, "alignment %zu", alignment);
  if (!r && !bytes) r = broken(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "no bytes");
  if (!r && relaxed) r = check_struct(relaxed, ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC, "relaxed limits");
  if (!r && bytes > LARGE && !(relaxed && relaxed->flags == ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE))
    r = broken(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "%zu bytes without relaxed limits", bytes);
  if (!r && bytes > (size_t)1 << 40) r = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  if (r) return r;
  void *base = fake_memory_new(bytes);
  if (!base) return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  object *o = made(MEMORY, (object *)c, d);
  o->base = *out = base;
  o->length = bytes;
  o->type = type;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL alloc_device(ze_context_handle_t c, const ze_device_mem_alloc_desc_t *desc, size_t bytes, size_t alignment, ze_device_handle_t d, void **out) {
  ze_result_t r = begin("zeMemAllocDevice");
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, "device memory description");
  if (!r) r = check_device(d);
  return end(r ? r : memory_new(c, d, ZE_MEMORY_TYPE_DEVICE, bytes, alignment, desc->pNext, out));
}

static ze_result_t ZE_APICALL alloc_shared(ze_context_handle_t c, const ze_device_mem_alloc_desc_t *desc, const ze_host_mem_alloc_desc_t *host, size_t bytes,
                                           size_t alignment, ze_device_handle_t d, void **out) {
  ze_result_t r = begin("zeMemAllocShared");
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, "device memory description");
  if (!r) r = check_struct(host, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, "host memory description");
  return end(r ? r : memory_new(c, d, ZE_MEMORY_TYPE_SHARED, bytes, alignment, desc->pNext, out));
}

static ze_result_t ZE_APICALL alloc_host(ze_context_handle_t c, const ze_host_mem_alloc_desc_t *desc, size_t bytes, size_t alignment, void **out) {
  ze_result_t r = begin("zeMemAllocHost");
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, "host memory description");
  return end(r ? r : memory_new(c, NULL, ZE_MEMORY_TYPE_HOST, bytes, alignment, desc->pNext, out));
}

static ze_result_t ZE_APICALL mem_free(ze_context_handle_t c, void *p) {
  ze_result_t failure = begin("zeMemFree"), r = check(c, CONTEXT);
  object *m = memory_at(p);
  if (!r && (!m || m->base != p || m->parent != (object *)c)) r = broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "%p is freed, which is no allocation of the context", p);
  if (!r) r = destroy(m, MEMORY);
  if (!r) fake_memory_free(p);
  if (!r) free(m);
  return end(r ? r : failure);
}

static ze_result_t ZE_APICALL alloc_properties(ze_context_handle_t c, const void *p, ze_memory_allocation_properties_t *out, ze_device_handle_t *d) {
  ze_result_t r = begin("zeMemGetAllocProperties");
  if (!r) r = check(c, CONTEXT);
  if (!r) r = check_pointer(p, "memory");
  if (!r) r = check_struct(out, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES, "allocation properties");
  if (r) return end(r);
  const object *m = memory_at(p);
  if (m && m->parent != (object *)c) m = NULL;
  out->type = m ? m->type : ZE_MEMORY_TYPE_UNKNOWN;
  if (d) *d = m ? m->device : NULL;
  return end(r);
}

static ze_result_t ZE_APICALL address_range(ze_context_handle_t c, const void *p, void **base, size_t *bytes) {
  ze_result_t r = begin("zeMemGetAddressRange");
  const object *m = memory_at(p);
  if (!r) r = check(c, CONTEXT);
  if (!r && !m) r = broken(ZE_RESULT_ERROR_UNKNOWN, "the range of %p, which is in no allocation", p);
  if (!r && base) *base = m->base;
  if (!r && bytes) *bytes = m->length;
  return end(r);
}

/* ---- modules ---- */

/* A native binary: this head, then the words. */
typedef struct {
  char magic[8];
  uint32_t large, registers;
  uint64_t bytes, sum;
} native_head;

static uint64_t sum_of(const uint8_t *bytes, size_t n) {
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < n; i++) sum = (sum ^ bytes[i]) * 1099511628211u;
  return sum;
}

/* Every option must be known here. */
static bool read_options(object *module, const char *flags, char *log, size_t size) {
  static const char *const known[] = {"-ze-opt-greater-than-4GB-buffer-required", "-ze-opt-large-register-file", "-cl-fp32-correctly-rounded-divide-sqrt"};
  for (const char *at = flags ? flags : "", *stop; *at; at = *stop ? stop + 1 : stop) {
    int found = -1;
    stop = at + strcspn(at, " ");
    for (int i = 0; i < 3; i++)
      if (strlen(known[i]) == (size_t)(stop - at) && !strncmp(at, known[i], (size_t)(stop - at))) found = i;
    if (found == 0) module->large = true;
    if (found == 1) module->registers = true;
    if (found < 0 && stop != at) {
      snprintf(log, size, "unknown option %.*s", (int)(stop - at), at);
      return false;
    }
  }
  return true;
}

static bool read_native(object *module, const ze_module_desc_t *desc, const uint8_t **words, size_t *n, char *log, size_t size) {
  native_head head;
  snprintf(log, size, "not a binary of this driver");
  if (desc->inputSize < sizeof head) return false;
  memcpy(&head, desc->pInputModule, sizeof head);
  *words = desc->pInputModule + sizeof head;
  *n = desc->inputSize - sizeof head;
  if (memcmp(head.magic, "FAKE-ZE1", 8) || head.bytes != *n || head.sum != sum_of(*words, *n)) return false;
  module->large = head.large;
  module->registers = head.registers;
  return true;
}

static ze_result_t compile(object *module, const ze_module_desc_t *desc, char *log, size_t size) {
  const uint8_t *words = desc->pInputModule;
  size_t n = desc->inputSize;
  bool native = desc->format == ZE_MODULE_FORMAT_NATIVE;
  if (native && !read_native(module, desc, &words, &n, log, size)) return ZE_RESULT_ERROR_INVALID_NATIVE_BINARY;
  if (!native && !read_options(module, desc->pBuildFlags, log, size)) return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  module->spirv = calloc(n ? n : 1, 1);
  if (!module->spirv) abort();
  memcpy(module->spirv, words, n);
  module->bytes = n;
  snprintf(log, size, "the words are no module with one kernel");
  if (n % 4 || !fake_read_signature((const uint32_t *)module->spirv, n / 4, &module->signature)) return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  snprintf(log, size, "sub-groups of %u lanes", module->signature.sub_group);
  if (module->signature.sub_group && module->signature.sub_group != 16 && module->signature.sub_group != 32) return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  module->program = fake_program_new(module->spirv, n, log, size);
  return module->program ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
}

static void module_free(object *m) {
  if (m->program) fake_program_free(m->program);
  free(m->spirv);
  free(m);
}

static ze_result_t ZE_APICALL module_create(ze_context_handle_t c, ze_device_handle_t d, const ze_module_desc_t *desc, ze_module_handle_t *out,
                                            ze_module_build_log_handle_t *log) {
  char words[2000] = "made to fail";
  ze_result_t r = begin("zeModuleCreate");
  bool injected = r;
  if (!r) r = check(c, CONTEXT);
  if (!r) r = check_device(d);
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_MODULE_DESC, "module description");
  if (!r) r = check_pointer(desc->pInputModule, "the module's words");
  if (r && !injected) return end(r);
  object *module = made(MODULE, (object *)c, d);
  if (!r) r = compile(module, desc, words, sizeof words);
  if (r) {
    objects = module->next;
    module_free(module);
  }
  if (log) {
    object *o = made(LOG, NULL, NULL);
    snprintf(o->log, sizeof o->log, "%s", r ? words : "");
    *log = (ze_module_build_log_handle_t)o;
  }
  if (!r) *out = (ze_module_handle_t)module;
  return end(r);
}

static ze_result_t ZE_APICALL module_destroy(ze_module_handle_t m) {
  ze_result_t failure = begin("zeModuleDestroy"), r = destroy((object *)m, MODULE);
  if (!r) module_free((object *)m);
  return end(r ? r : failure);
}

static ze_result_t ZE_APICALL log_string(ze_module_build_log_handle_t l, size_t *n, char *out) {
  ze_result_t r = begin("zeModuleBuildLogGetString");
  if (!r) r = check(l, LOG);
  if (!r) r = check_pointer(n, "the log's size");
  if (!r && out) snprintf(out, *n, "%s", ((object *)l)->log);
  if (!r && !out) *n = strlen(((object *)l)->log) + 1;
  return end(r);
}

static ze_result_t ZE_APICALL module_native(ze_module_handle_t m, size_t *n, uint8_t *out) {
  const object *module = (object *)m;
  ze_result_t r = begin("zeModuleGetNativeBinary");
  if (!r) r = check(m, MODULE);
  if (!r) r = check_pointer(n, "the binary's size");
  if (r) return end(r);
  native_head head = {"FAKE-ZE1", module->large, module->registers, module->bytes, sum_of(module->spirv, module->bytes)};
  if (out && *n < sizeof head + module->bytes) return end(broken(ZE_RESULT_ERROR_INVALID_SIZE, "no room for the binary"));
  if (out) memcpy(out, &head, sizeof head), memcpy(out + sizeof head, module->spirv, module->bytes);
  *n = sizeof head + module->bytes;
  return end(r);
}

/* ---- kernels ---- */

static ze_result_t ZE_APICALL kernel_create(ze_module_handle_t m, const ze_kernel_desc_t *desc, ze_kernel_handle_t *out) {
  const object *module = (object *)m;
  ze_result_t r = begin("zeKernelCreate");
  if (!r) r = check(m, MODULE);
  if (!r) r = check_struct(desc, ZE_STRUCTURE_TYPE_KERNEL_DESC, "kernel description");
  if (!r) r = check_pointer(desc->pKernelName, "the kernel's name");
  if (!r && strcmp(desc->pKernelName, module->signature.name) != 0) r = ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
  void *run = r ? NULL : fake_kernel_new(module->program, desc->pKernelName);
  if (!r && !run) r = ZE_RESULT_ERROR_UNKNOWN;
  if (r) return end(r);
  object *o = made(KERNEL, (object *)m, NULL);
  o->run = run;
  o->signature = module->signature;
  *out = (ze_kernel_handle_t)o;
  return end(r);
}

static ze_result_t ZE_APICALL kernel_destroy(ze_kernel_handle_t k) {
  ze_result_t failure = begin("zeKernelDestroy"), r = destroy((object *)k, KERNEL);
  if (!r) fake_kernel_free(((object *)k)->run);
  if (!r) free(k);
  return end(r ? r : failure);
}

static ze_result_t ZE_APICALL kernel_size(ze_kernel_handle_t k, uint32_t x, uint32_t y, uint32_t z) {
  object *kernel = (object *)k;
  ze_result_t r = begin("zeKernelSetGroupSize");
  if (!r) r = check(k, KERNEL);
  if (!r && (!x || x > 1024 || y != 1 || z != 1 || (kernel->signature.local_size && kernel->signature.local_size != x)))
    r = broken(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION, "groups of %u x %u x %u", x, y, z);
  if (!r) kernel->size = x;
  return end(r);
}

/* A pointer must lie in an allocation of the kernel's context; larger ones need a module compiled for them. */
static ze_result_t check_argument(const object *kernel, uint32_t index, size_t bytes, const void *value) {
  const fake_signature *s = &kernel->signature;
  if (index >= (uint32_t)s->n_parameters) return broken(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX, "argument %u of %d", index, s->n_parameters);
  size_t right = s->bytes[index] ? (size_t)s->bytes[index] : sizeof(void *);
  if (bytes != right) return broken(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE, "argument %u has %zu bytes instead of %zu", index, bytes, right);
  if (s->bytes[index]) return ZE_RESULT_SUCCESS;
  void *pointer;
  memcpy(&pointer, value, sizeof pointer);
  const object *m = memory_at(pointer);
  if (!m || m->parent != kernel->parent->parent) return broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "argument %u is no memory of the kernel's context", index);
  if (m->length > LARGE && !kernel->parent->large) return broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "argument %u is large, its module was not told", index);
  return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL kernel_argument(ze_kernel_handle_t k, uint32_t index, size_t bytes, const void *value) {
  object *kernel = (object *)k;
  ze_result_t r = begin("zeKernelSetArgumentValue");
  if (!r) r = check(k, KERNEL);
  if (!r) r = check_pointer(value, "an argument's value");
  if (!r) r = check_argument(kernel, index, bytes, value);
  if (!r) memcpy(&kernel->args[index], value, bytes);
  if (!r) kernel->set[index] = true;
  return end(r);
}

static ze_result_t ZE_APICALL kernel_properties(ze_kernel_handle_t k, ze_kernel_properties_t *p) {
  ze_result_t r = begin("zeKernelGetProperties");
  if (!r) r = check(k, KERNEL);
  if (!r) r = check_struct(p, ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES, "kernel properties");
  if (r) return end(r);
  const fake_signature *s = &((object *)k)->signature;
  p->numKernelArgs = (uint32_t)s->n_parameters;
  p->requiredSubgroupSize = s->sub_group;
  p->maxSubgroupSize = s->sub_group ? s->sub_group : 32;
  p->spillMemSize = 0;
  return end(r);
}

/* ---- the tables that the loader asks for ---- */

#define TABLE(name, table, ...)                                                                                                    \
  __attribute__((visibility("default"))) ze_result_t ZE_APICALL zeGet##name##ProcAddrTable(ze_api_version_t version, table *out) { \
    (void)version;                                                                                                     \
    *out = (table){__VA_ARGS__};                                                                                       \
    return ZE_RESULT_SUCCESS;                                                                                          \
  }

TABLE(Global, ze_global_dditable_t, .pfnInit = init)
TABLE(Driver, ze_driver_dditable_t, .pfnGet = driver_get, .pfnGetApiVersion = driver_version, .pfnGetProperties = driver_properties)
TABLE(Device, ze_device_dditable_t, .pfnGet = device_get, .pfnGetSubDevices = sub_devices, .pfnGetProperties = device_properties,
      .pfnGetComputeProperties = compute_properties, .pfnGetModuleProperties = module_properties, .pfnGetCommandQueueGroupProperties = queue_groups,
      .pfnGetMemoryProperties = memory_properties, .pfnPciGetPropertiesExt = pci_properties)
TABLE(Context, ze_context_dditable_t, .pfnCreate = context_create, .pfnDestroy = context_destroy)
TABLE(EventPool, ze_event_pool_dditable_t, .pfnCreate = pool_create, .pfnDestroy = pool_destroy)
TABLE(Event, ze_event_dditable_t, .pfnCreate = event_create, .pfnDestroy = event_destroy, .pfnHostSynchronize = event_wait, .pfnHostReset = event_reset)
TABLE(CommandList, ze_command_list_dditable_t, .pfnCreateImmediate = list_create, .pfnDestroy = list_destroy, .pfnAppendBarrier = append_barrier,
      .pfnAppendMemoryCopy = append_copy, .pfnAppendLaunchKernel = append_launch)
TABLE(Mem, ze_mem_dditable_t, .pfnAllocDevice = alloc_device, .pfnAllocShared = alloc_shared, .pfnAllocHost = alloc_host, .pfnFree = mem_free,
      .pfnGetAllocProperties = alloc_properties, .pfnGetAddressRange = address_range)
TABLE(Module, ze_module_dditable_t, .pfnCreate = module_create, .pfnDestroy = module_destroy, .pfnGetNativeBinary = module_native)
TABLE(ModuleBuildLog, ze_module_build_log_dditable_t, .pfnDestroy = log_destroy, .pfnGetString = log_string)
TABLE(Kernel, ze_kernel_dditable_t, .pfnCreate = kernel_create, .pfnDestroy = kernel_destroy, .pfnSetGroupSize = kernel_size,
      .pfnSetArgumentValue = kernel_argument, .pfnGetProperties = kernel_properties)

/* Of these there is nothing, but the loader wants to be told so. */
#define NO_TABLE(name)                                                                                                          \
  __attribute__((visibility("default"))) ze_result_t ZE_APICALL name##ProcAddrTable(ze_api_version_t version, const void *out); \
  ze_result_t ZE_APICALL name##ProcAddrTable(ze_api_version_t version, const void *out) {                                       \
    (void)version, (void)out;                                                                                                   \
    return ZE_RESULT_SUCCESS;                                                                                                   \
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
TABLE(CommandQueue, ze_command_queue_dditable_t, .pfnCreate = NULL)
TABLE(Fence, ze_fence_dditable_t, .pfnCreate = NULL)
TABLE(Image, ze_image_dditable_t, .pfnCreate = NULL)
TABLE(Sampler, ze_sampler_dditable_t, .pfnCreate = NULL)
TABLE(PhysicalMem, ze_physical_mem_dditable_t, .pfnCreate = NULL)
TABLE(VirtualMem, ze_virtual_mem_dditable_t, .pfnFree = NULL)
