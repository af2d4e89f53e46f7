/* backends/level_zero/level_zero.c - Level Zero: SPIR-V, an immediate command list; targets of
   ocloc that only compile.  Devices, and the backend's table. */
#include "backends/level_zero/level_zero.h"

#include "src/base/dl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the loader ---- */

static clb_status open_loader(lz_api *ze, clb_error_sink *error) {
  static const char *const names[] = {"libze_loader.so.1", "libze_loader.so", NULL};
  static const clb_symbol symbols[] = {
#define LZ_X(name) {"ze" #name, offsetof(lz_api, name), false},
      LZ_FUNCTIONS(LZ_X)
#undef LZ_X
  };
  void *library = clb_dl_open(names); /* never closed: drivers do not survive being unloaded */
  if (!library)
    return clb_fail(error, CLB_ERROR_DEVICE,
                    "level_zero: no libze_loader.so.1 here (Debian's package is libze1)");
  const char *missing = clb_dl_symbols(library, symbols, sizeof symbols / sizeof *symbols, ze);
  if (missing)
    return clb_fail(error, CLB_ERROR_DRIVER,
                    "level_zero: libze_loader.so.1 is too old: it has no %s", missing);
  ze_result_t r = ze->Init(ZE_INIT_FLAG_GPU_ONLY);
  if (r) clb_lz_failed(error, "zeInit", r);
  return r ? clb_fail_more(error, CLB_ERROR_DEVICE,
                           " (no GPU with a Level Zero driver, or no access to it)")
           : CLB_OK;
}

/* ---- cards and their tiles ---- */

/* Tiles are sub-devices of a card, or, with ZE_FLAT_DEVICE_HIERARCHY=FLAT, devices with the same
   PCI address. */
typedef struct {
  ze_driver_handle_t driver;
  ze_device_handle_t device;
  int card, tile; /* tile -1: the whole card */
  bool has_pci;
  ze_pci_address_ext_t pci;
} place;
typedef struct {
  place *at;
  int n, cap, cards;
} places;

static bool add_place(places *p, const place *one) {
  if (p->n == p->cap) {
    int cap = p->cap ? 2 * p->cap : 8;
    place *at = realloc(p->at, (size_t)cap * sizeof *at);
    if (!at) return false;
    p->at = at;
    p->cap = cap;
  }
  p->at[p->n++] = *one;
  return true;
}

/* Numbers a root device of the driver: a new card, or the next tile of a known card. */
static void number(const lz_api *ze, places *p, place *one) {
  ze_pci_ext_properties_t pci = {.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES};
  one->has_pci = !ze->DevicePciGetPropertiesExt(one->device, &pci);
  one->pci = pci.address;
  one->tile = -1;
  one->card = p->cards;
  for (int i = 0; i < p->n && one->has_pci; i++) {
    place *other = &p->at[i];
    if (!other->has_pci || other->driver != one->driver ||
        memcmp(&other->pci, &one->pci, sizeof one->pci))
      continue;
    if (other->tile < 0) other->tile = 0;
    one->card = other->card;
    one->tile = other->tile + 1;
  }
  if (one->card == p->cards) p->cards++;
}

static clb_status add_tiles(const lz_api *ze, places *p, const place *card, clb_error_sink *error) {
  uint32_t n = 0;
  ze_result_t r = ze->DeviceGetSubDevices(card->device, &n, NULL);
  if (r) return clb_lz_failed(error, "zeDeviceGetSubDevices", r);
  if (n < 2) return CLB_OK;
  ze_device_handle_t *tiles = calloc(n, sizeof(ze_device_handle_t));
  bool capacity = tiles;
  if (capacity) r = ze->DeviceGetSubDevices(card->device, &n, tiles);
  for (uint32_t t = 0; capacity && !r && t < n; t++) {
    place one = {.driver = card->driver, .device = tiles[t], .card = card->card, .tile = (int)t};
    capacity = add_place(p, &one);
  }
  free(tiles);
  if (r) return clb_lz_failed(error, "zeDeviceGetSubDevices", r);
  return capacity ? CLB_OK
                  : clb_fail(error, CLB_ERROR_MEMORY,
                             "level_zero: out of memory for the list of devices");
}

static clb_status add_driver(const lz_api *ze, places *p, ze_driver_handle_t driver,
                             clb_error_sink *error) {
  uint32_t n = 0;
  ze_result_t r = ze->DeviceGet(driver, &n, NULL);
  if (r || !n) return r ? clb_lz_failed(error, "zeDeviceGet", r) : CLB_OK;
  ze_device_handle_t *devices = calloc(n, sizeof(ze_device_handle_t));
  if (!devices)
    return clb_fail(error, CLB_ERROR_MEMORY, "level_zero: out of memory for the list of devices");
  clb_status s = CLB_OK;
  if ((r = ze->DeviceGet(driver, &n, devices))) s = clb_lz_failed(error, "zeDeviceGet", r);
  for (uint32_t i = 0; !s && i < n; i++) {
    ze_device_properties_t props = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    if ((r = ze->DeviceGetProperties(devices[i], &props)))
      s = clb_lz_failed(error, "zeDeviceGetProperties", r);
    if (s || props.type != ZE_DEVICE_TYPE_GPU) continue;
    place one = {.driver = driver, .device = devices[i]};
    number(ze, p, &one);
    if (!add_place(p, &one))
      s = clb_fail(error, CLB_ERROR_MEMORY, "level_zero: out of memory for the list of devices");
    if (!s) s = add_tiles(ze, p, &one, error);
  }
  free(devices);
  return s;
}

static clb_status find_places(const lz_api *ze, places *p, clb_error_sink *error) {
  ze_driver_handle_t drivers[16];
  uint32_t n = 0;
  ze_result_t r = ze->DriverGet(&n, NULL);
  if (n > 16) n = 16;
  if (!r && n) r = ze->DriverGet(&n, drivers);
  clb_status s = r ? clb_lz_failed(error, "zeDriverGet", r) : CLB_OK;
  for (uint32_t i = 0; !s && i < n; i++) s = add_driver(ze, p, drivers[i], error);
  if (!s && !p->n) s = clb_fail(error, CLB_ERROR_DEVICE, "level_zero: no GPU found");
  return s;
}

/* Finds the device for "", ":CARD" or ":CARD.TILE". */
static clb_status choose(const places *p, const char *name, const char *rest, const place **found,
                         clb_error_sink *error) {
  char *end;
  long card = 0, tile = -1;
  int tiles = 0;
  *found = &p->at[0];
  if (!*rest) return CLB_OK;
  card = strtol(rest + 1, &end, 10);
  if (*end == '.' && end != rest + 1) tile = strtol(end + 1, &end, 10);
  if (*end || rest[0] != ':' || end == rest + 1 || end[-1] == '.' || strpbrk(rest, "+- \t"))
    return clb_fail(error, CLB_ERROR_DEVICE,
                    "no device \"%s\": write level_zero, level_zero:CARD, level_zero:CARD.TILE or "
                    "level_zero@TARGET",
                    name);
  for (int i = 0; i < p->n; i++) {
    if (p->at[i].card != card) continue;
    *found = &p->at[i];
    if (p->at[i].tile == tile) return CLB_OK;
    tiles += p->at[i].tile >= 0;
  }
  if (card >= p->cards)
    return clb_fail(error, CLB_ERROR_DEVICE, "no device \"%s\": there are %d cards", name,
                    p->cards);
  if (tile == 0 && !tiles) return CLB_OK; /* a card of one tile */
  if (tile < 0)
    return clb_fail(error, CLB_ERROR_DEVICE,
                    "no device \"%s\": this process sees the tiles of that card as devices "
                    "(ZE_FLAT_DEVICE_HIERARCHY); name one, level_zero:%ld.0",
                    name, card);
  return clb_fail(error, CLB_ERROR_DEVICE, "no device \"%s\": that card has %d tiles", name,
                  tiles ? tiles : 1);
}

/* ---- properties of a device ---- */

static clb_status describe_memory(lz_device *d, clb_error_sink *error) {
  ze_device_memory_properties_t memory[8];
  uint32_t n = 8;
  for (int i = 0; i < 8; i++)
    memory[i] =
        (ze_device_memory_properties_t){.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES};
  ze_result_t r = d->ze.DeviceGetMemoryProperties(d->device, &n, memory);
  for (uint32_t i = 0; !r && i < n && i < 8; i++) d->base.info.memory_bytes += memory[i].totalSize;
  return r ? clb_lz_failed(error, "zeDeviceGetMemoryProperties", r) : CLB_OK;
}

/* Sub-groups of 16 where the device has them: on a Max GPU, 128 registers of 64 bytes are 128
   numbers for each lane. */
static clb_status describe_lanes(lz_device *d, clb_error_sink *error) {
  ze_device_compute_properties_t c = {.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES};
  ze_result_t r = d->ze.DeviceGetComputeProperties(d->device, &c);
  if (r) return clb_lz_failed(error, "zeDeviceGetComputeProperties", r);
  int lanes = 0, n = 0;
  for (uint32_t i = 0; i < c.numSubGroupSizes && n < 7; i++) {
    d->base.info.sub_group_sizes[n++] = (int)c.subGroupSizes[i];
    if (lanes != 16) lanes = (int)c.subGroupSizes[i];
  }
  if (!lanes)
    return clb_fail(error, CLB_ERROR_UNSUPPORTED, "level_zero: %s has no sub-groups",
                    d->description);
  d->base.limits.lanes[CLB_F64] = d->base.limits.lanes[CLB_F32] = lanes;
  d->base.limits.max_subgroups = (int)c.maxTotalGroupSize / lanes;
  d->base.limits.local_bytes = c.maxSharedLocalMemory;
  d->max_groups = c.maxGroupCountX;
  return CLB_OK;
}

static clb_status describe_types(lz_device *d, clb_error_sink *error) {
  ze_float_atomic_ext_properties_t atomics = {.stype =
                                                  ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES};
  ze_device_module_properties_t m = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES,
                                     .pNext = &atomics};
  ze_result_t r = d->ze.DeviceGetModuleProperties(d->device, &m);
  if (r) return clb_lz_failed(error, "zeDeviceGetModuleProperties", r);
  d->base.info.f64 = d->base.limits.f64 = m.flags & ZE_DEVICE_MODULE_FLAG_FP64;
  d->base.dialect.float_atomics =
      atomics.fp32Flags & ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD &&
      (!d->base.info.f64 || atomics.fp64Flags & ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD);
  return CLB_OK;
}

static clb_status describe(lz_device *d, ze_driver_handle_t driver, clb_error_sink *error) {
  ze_driver_properties_t version = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
  ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
  ze_api_version_t api = ZE_API_VERSION_1_0;
  ze_result_t r = d->ze.DriverGetProperties(driver, &version);
  if (r) return clb_lz_failed(error, "zeDriverGetProperties", r);
  if ((r = d->ze.DriverGetApiVersion(driver, &api)))
    return clb_lz_failed(error, "zeDriverGetApiVersion", r);
  if ((r = d->ze.DeviceGetProperties(d->device, &p)))
    return clb_lz_failed(error, "zeDeviceGetProperties", r);
  d->max_allocation = p.maxMemAllocSize;
  d->base.limits.units = (int)(p.numSlices * p.numSubslicesPerSlice);
  snprintf(d->vendor, sizeof d->vendor, p.vendorId == 0x8086 ? "Intel" : "PCI %04x", p.vendorId);
  d->base.dialect.subgroup_blocks = p.vendorId == 0x8086; /* an extension of Intel's */
  snprintf(d->description, sizeof d->description, "%.*s", ZE_MAX_DEVICE_NAME, p.name);
  snprintf(d->driver, sizeof d->driver, "Level Zero %u.%u, driver %u.%u.%u", ZE_MAJOR_VERSION(api),
           ZE_MINOR_VERSION(api), version.driverVersion >> 24, version.driverVersion >> 16 & 255,
           version.driverVersion & 65535);
  snprintf(d->target, sizeof d->target, "0x%04x", p.deviceId);
  snprintf(d->base.key, sizeof d->base.key, "level_zero %04x:%04x %.80s; %s", p.vendorId,
           p.deviceId, d->description, d->driver);
  for (int i = 0; i < ZE_MAX_DEVICE_UUID_SIZE / 2;
       i++) { /* the first half: vendor, device, revision */
    size_t n = strlen(d->base.key);
    snprintf(d->base.key + n, sizeof d->base.key - n, "%s%02x", i ? "" : "; ", p.uuid.id[i]);
  }
  clb_status s = describe_memory(d, error);
  if (!s) s = describe_lanes(d, error);
  return s ? s : describe_types(d, error);
}

/* ---- open and close ---- */

static lz_device *new_device(clb_error_sink *error) {
  lz_device *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  d->base.backend = &clb_backend_level_zero;
  d->base.error = error;
  d->base.dialect.language = CLB_LANGUAGE_SPIRV;
  d->base.dialect.subgroups = true;
  d->base.limits.registers = 128;
  d->base.limits.subgroups = true;
  d->base.info = (clb_device_info){.name = d->name,
                                   .backend = "level_zero",
                                   .vendor = d->vendor,
                                   .description = d->description,
                                   .driver = d->driver};
  return d;
}

static void close_device(clb_device *device) {
  lz_device *d = (lz_device *)device;
  if (!d) return;
  clb_lz_drain(d);
  if (d->queue) d->ze.CommandQueueDestroy(d->queue);
  if (d->after) d->ze.EventDestroy(d->after);
  if (d->before) d->ze.EventDestroy(d->before);
  if (d->done) d->ze.EventDestroy(d->done);
  if (d->pool) d->ze.EventPoolDestroy(d->pool);
  if (d->list && !d->adopted) d->ze.CommandListDestroy(d->list);
  if (d->context && !d->adopted) d->ze.ContextDestroy(d->context);
  free(d);
}

static clb_status make_list(lz_device *d, clb_error_sink *error) {
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                  .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
  clb_status s = clb_lz_find_queues(d, &desc.ordinal);
  if (s) return s;
  ze_result_t r = d->ze.CommandListCreateImmediate(d->context, d->device, &desc, &d->list);
  return r ? clb_lz_failed(error, "zeCommandListCreateImmediate", r) : CLB_OK;
}

static clb_status make_events(lz_device *d, clb_error_sink *error) {
  const ze_event_pool_desc_t pool = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                     .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
                                     .count = 3};
  ze_event_desc_t event = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                           .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                           .wait = ZE_EVENT_SCOPE_FLAG_HOST};
  ze_event_handle_t *const events[] = {&d->done, &d->before, &d->after};
  ze_result_t r = d->ze.EventPoolCreate(d->context, &pool, 1, &d->device, &d->pool);
  if (r) return clb_lz_failed(error, "zeEventPoolCreate", r);
  for (; !r && event.index < 3; event.index++)
    r = d->ze.EventCreate(d->pool, &event, events[event.index]);
  return r ? clb_lz_failed(error, "zeEventCreate", r) : CLB_OK;
}

static clb_status own(lz_device *d, const places *p, const char *name, const char *rest,
                      clb_error_sink *error) {
  const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  const place *at;
  clb_status s = choose(p, name, rest, &at, error);
  if (s) return s;
  d->device = at->device;
  snprintf(d->name, sizeof d->name, at->tile < 0 ? "level_zero:%d" : "level_zero:%d.%d", at->card,
           at->tile);
  if ((s = describe(d, at->driver, error))) return s;
  ze_result_t r = d->ze.ContextCreate(at->driver, &desc, &d->context);
  if (r) return clb_lz_failed(error, "zeContextCreate", r);
  s = make_list(d, error);
  return s ? s : make_events(d, error);
}

static clb_status adopt_native(lz_device *d, const clb_native *n, clb_error_sink *error) {
  if (!n->driver || !n->context || !n->device || !n->queue)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "level_zero: to be adopted are four handles: driver, context, device and, as "
                    "queue, an immediate command list; one is NULL");
  d->adopted = true;
  d->context = n->context;
  d->device = n->device;
  d->list = n->queue;
  snprintf(d->name, sizeof d->name, "level_zero");
  clb_status s = describe(d, n->driver, error);
  return s ? s : make_events(d, error);
}

static clb_status open_native(lz_device *d, const char *name, const char *rest,
                              const clb_native *native, clb_error_sink *error) {
  places p = {0};
  clb_status s = open_loader(&d->ze, error);
  if (!s && native) s = adopt_native(d, native, error);
  if (!s && !native) s = find_places(&d->ze, &p, error);
  if (!s && !native) s = own(d, &p, name, rest, error);
  free(p.at);
  clb_lz_ocloc_open(&d->ocloc);
  d->base.info.runs = 1;
  return s;
}

/* A target of ocloc, with the limits of a Max GPU. */
static clb_status open_target(lz_device *d, const char *target, clb_error_sink *error) {
  d->compiles_only = true;
  if (strlen(target) >= sizeof d->target || !*target ||
      target[strspn(target, "abcdefghijklmnopqrstuvwxyz0123456789-_.")])
    return clb_fail(error, CLB_ERROR_DEVICE,
                    "no device \"level_zero@%s\": write ocloc's name for a device, level_zero@pvc",
                    target);
  if (!clb_lz_ocloc_open(&d->ocloc))
    return clb_fail(error, CLB_ERROR_DEVICE,
                    "level_zero@%s: no libocloc.so here (Debian's package is intel-opencl-icd)",
                    target);
  clb_status s = clb_lz_ocloc_check(&d->ocloc, target, d->driver, sizeof d->driver, error);
  if (s) return s;
  snprintf(d->target, sizeof d->target, "%s", target);
  snprintf(d->name, sizeof d->name, "level_zero@%s", target);
  snprintf(d->vendor, sizeof d->vendor, "Intel");
  snprintf(d->description, sizeof d->description, "Intel's compiler for %s, without a device",
           target);
  snprintf(d->base.key, sizeof d->base.key, "%s; %s", d->name, d->driver);
  d->base.info.f64 = d->base.limits.f64 = true;
  d->base.info.sub_group_sizes[0] = d->base.limits.lanes[CLB_F64] = d->base.limits.lanes[CLB_F32] =
      16;
  d->base.info.sub_group_sizes[1] = 32;
  d->base.limits.max_subgroups = 64;
  d->base.limits.local_bytes = 128 << 10;
  d->base.limits.units = 128;
  d->base.dialect.subgroup_blocks = true;
  d->base.dialect.float_atomics = !strncmp(target, "pvc", 3);
  return CLB_OK;
}

static clb_status open_device(const char *name, const char *rest, const clb_native *native,
                              clb_error_sink *error, clb_device **device) {
  *device = NULL;
  if (native && *rest == '@')
    return clb_fail(error, CLB_ERROR_ARGUMENT, "%s only compiles: it adopts nothing", name);
  lz_device *d = new_device(error);
  if (!d) return clb_fail(error, CLB_ERROR_MEMORY, "level_zero: out of memory for a device");
  clb_status s =
      *rest == '@' ? open_target(d, rest + 1, error) : open_native(d, name, rest, native, error);
  if (s) {
    close_device(&d->base);
    return s;
  }
  *device = &d->base;
  return CLB_OK;
}

/* ---- list ---- */

static void list_place(const lz_api *ze, const place *at,
                       void (*each)(const clb_device_info *info, void *user), void *user,
                       clb_error_sink *error) {
  lz_device *d = new_device(error);
  if (!d) return;
  d->ze = *ze;
  d->device = at->device;
  d->base.info.runs = 1;
  snprintf(d->name, sizeof d->name, at->tile < 0 ? "level_zero:%d" : "level_zero:%d.%d", at->card,
           at->tile);
  if (!describe(d, at->driver, error)) each(&d->base.info, user);
  close_device(&d->base);
}

static void list(void (*each)(const clb_device_info *info, void *user), void *user) {
  clb_error_sink error = {0};
  clb_device *target;
  lz_api ze;
  places p = {0};
  if (!open_loader(&ze, &error)) find_places(&ze, &p, &error);
  for (int i = 0; i < p.n; i++) list_place(&ze, &p.at[i], each, user, &error);
  free(p.at);
  if (!open_device("level_zero@pvc", "@pvc", NULL, &error, &target)) {
    each(&target->info, user);
    close_device(target);
  }
  clb_text_free(&error.text);
}

const clb_backend clb_backend_level_zero = {
    .name = "level_zero",
    .list = list,
    .open = open_device,
    .close = close_device,
    .alloc = clb_lz_alloc,
    .free = clb_lz_free,
    .wrap = clb_lz_wrap,
    .write = clb_lz_write,
    .read = clb_lz_read,
    .pin = clb_lz_pin,
    .unpin = clb_lz_unpin,
    .build = clb_lz_build,
    .load = clb_lz_load,
    .unload = clb_lz_unload,
    .launch = clb_lz_launch,
    .wait = clb_lz_wait,
    .record = clb_lz_record,
    .replay = clb_lz_replay,
    .forget = clb_lz_forget,
    .report = clb_lz_report,
};
