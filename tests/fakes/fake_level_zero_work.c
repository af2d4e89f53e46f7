/* tests/fakes/fake_level_zero_work.c - command lists and memory of the test-only driver. */
#include "tests/fakes/fake_level_zero.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- command lists ---- */

static object *make_list(ze_context_handle_t c, ze_device_handle_t d) {
  object *o = fake_made(LIST, (object *)c, d);
  o->capacity = MAX_COMMANDS;
  o->commands = calloc(MAX_COMMANDS, sizeof *o->commands);
  if (!o->commands) abort();
  return o;
}

static ze_result_t check_queue(ze_context_handle_t c, ze_device_handle_t d,
                               const ze_command_queue_desc_t *desc) {
  ze_result_t r = fake_check(c, CONTEXT);
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, "queue description");
  if (!r && desc->ordinal != 1)
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "queues of group %u do not compute",
                    desc->ordinal);
  if (!r && desc->mode != ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS)
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "a list that waits for every command");
  return r;
}

static ze_result_t ZE_APICALL list_create_immediate(ze_context_handle_t c, ze_device_handle_t d,
                                                    const ze_command_queue_desc_t *desc,
                                                    ze_command_list_handle_t *out) {
  ze_result_t r = fake_begin("zeCommandListCreateImmediate");
  if (!r) r = check_queue(c, d, desc);
  if (r) return fake_end(r);
  object *o = make_list(c, d);
  o->immediate = true;
  *out = (ze_command_list_handle_t)o;
  return fake_end(r);
}

static ze_result_t ZE_APICALL list_create(ze_context_handle_t c, ze_device_handle_t d,
                                          const ze_command_list_desc_t *desc,
                                          ze_command_list_handle_t *out) {
  ze_result_t r = fake_begin("zeCommandListCreate");
  if (!r) r = fake_check(c, CONTEXT);
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, "list description");
  if (!r && (desc->commandQueueGroupOrdinal != 1 || desc->flags))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "queues of group %u do not compute",
                    desc->commandQueueGroupOrdinal);
  if (!r) *out = (ze_command_list_handle_t)make_list(c, d);
  return fake_end(r);
}

static ze_result_t ZE_APICALL list_close(ze_command_list_handle_t l) {
  ze_result_t r = fake_begin("zeCommandListClose");
  if (!r) r = fake_check(l, LIST);
  if (!r && (((object *)l)->closed || ((object *)l)->immediate))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "a list that cannot be closed");
  if (!r) ((object *)l)->closed = true;
  return fake_end(r);
}

static bool lost; /* a kernel failed: nothing works any more */

static void run_one(const command *c) {
  if (c->kind == COPY) memcpy(c->to, c->from, c->bytes);
  if (c->kind == LAUNCH && !fake_kernel_run(c->kernel->run, &c->kernel->signature, c->args,
                                            c->groups, c->kernel->size)) {
    fake_broken(ZE_RESULT_ERROR_UNKNOWN, "kernel %s failed", c->kernel->signature.name);
    lost = true;
  }
  if (c->kind == RESET) c->other->signalled = false;
  if (c->event && c->event->signalled)
    fake_broken(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT, "an event is signalled twice");
  if (c->event) c->event->signalled = true;
}

/* Runs commands from *at on, between two barriers in reverse order, up to the end or to a barrier
   whose event is not yet signalled. Returns whether anything ran. */
static bool run_some(const command *c, int n, int *at) {
  int first = *at;
  while (*at < n) {
    int last = *at;
    while (last < n && c[last].kind != BARRIER) last++;
    for (int i = last - 1; i >= *at; i--) run_one(&c[i]);
    *at = last;
    if (last == n || (c[last].other && !c[last].other->signalled)) break;
    run_one(&c[last]);
    ++*at;
  }
  return *at != first;
}

static bool run_queue(object *q) {
  bool ran = false;
  while (q->n_lists) {
    ran |= run_some(q->lists[0]->commands, q->lists[0]->n, &q->list_at);
    if (q->list_at < q->lists[0]->n) break;
    memmove(q->lists, q->lists + 1, (size_t)--q->n_lists * sizeof *q->lists);
    q->list_at = 0;
  }
  return ran;
}

/* Queues first: they overtake the immediate list unless they wait for it. */
static void run_all(const object *context) {
  for (bool ran = true; ran;) {
    ran = false;
    for (object *o = fake_objects; o; o = o->next)
      if (o->kind == QUEUE && o->parent == context) ran |= run_queue(o);
    for (object *o = fake_objects; o; o = o->next)
      if (o->kind == LIST && o->immediate && o->parent == context)
        ran |= run_some(o->commands, o->n, &o->at);
  }
  for (object *o = fake_objects; o; o = o->next)
    if (o->kind == LIST && o->immediate && o->parent == context && o->at == o->n) o->at = o->n = 0;
}

static ze_result_t append(ze_command_list_handle_t handle, const command *c) {
  object *list = (object *)handle;
  if (list->closed)
    return fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "something is appended to a closed list");
  if (list->n == MAX_COMMANDS && list->immediate) run_all(list->parent);
  if (list->n == list->capacity) {
    list->capacity *= 2;
    list->commands = realloc(list->commands, (size_t)list->capacity * sizeof *list->commands);
    if (!list->commands) abort();
  }
  list->commands[list->n++] = *c;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t check_events(ze_event_handle_t signal, uint32_t n_wait) {
  if (n_wait)
    return fake_broken(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
                       "this driver waits for events in barriers only");
  return signal ? fake_check(signal, EVENT) : ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL append_barrier(ze_command_list_handle_t l, ze_event_handle_t signal,
                                             uint32_t n, ze_event_handle_t *wait) {
  ze_result_t r = fake_begin("zeCommandListAppendBarrier");
  if (!r) r = fake_check(l, LIST);
  if (!r) r = check_events(signal, 0);
  if (!r && n > 1)
    r = fake_broken(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, "this driver waits for one event at most");
  if (!r && n) r = fake_check(*wait, EVENT);
  if (!r)
    r = append(l, &(command){.kind = BARRIER,
                             .event = (object *)signal,
                             .other = n ? (object *)*wait : NULL});
  return fake_end(r);
}

static ze_result_t ZE_APICALL append_reset(ze_command_list_handle_t l, ze_event_handle_t event) {
  ze_result_t r = fake_begin("zeCommandListAppendEventReset");
  if (!r) r = fake_check(l, LIST);
  if (!r) r = fake_check(event, EVENT);
  if (!r) r = append(l, &(command){.kind = RESET, .other = (object *)event});
  return fake_end(r);
}

/* Pointers outside every allocation are host memory. */
static ze_result_t check_range(const void *p, size_t bytes) {
  const object *m = fake_memory_at(p);
  if (m && bytes > m->length - (size_t)((const char *)p - (const char *)m->base))
    return fake_broken(ZE_RESULT_ERROR_INVALID_SIZE, "a copy of %zu bytes leaves its allocation",
                       bytes);
  return fake_check_pointer(p, "memory to copy");
}

static ze_result_t ZE_APICALL append_copy(ze_command_list_handle_t l, void *to, const void *from,
                                          size_t bytes, ze_event_handle_t signal, uint32_t n,
                                          ze_event_handle_t *wait) {
  ze_result_t r = fake_begin("zeCommandListAppendMemoryCopy");
  (void)wait;
  if (!r) r = fake_check(l, LIST);
  if (!r) r = check_events(signal, n);
  if (!r && !bytes) r = fake_broken(ZE_RESULT_ERROR_INVALID_SIZE, "a copy of nothing");
  if (!r) r = check_range(to, bytes);
  if (!r) r = check_range(from, bytes);
  if (!r)
    r = append(
        l, &(command){
               .kind = COPY, .event = (object *)signal, .to = to, .from = from, .bytes = bytes});
  return fake_end(r);
}

static ze_result_t check_launch(const object *kernel) {
  if (!kernel->size)
    return fake_broken(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION,
                       "a launch without a group size");
  for (int i = 0; i < kernel->signature.n_parameters; i++)
    if (!kernel->set[i])
      return fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "a launch without argument %d", i);
  return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL append_launch(ze_command_list_handle_t l, ze_kernel_handle_t k,
                                            const ze_group_count_t *groups,
                                            ze_event_handle_t signal, uint32_t n,
                                            ze_event_handle_t *wait) {
  ze_result_t r = fake_begin("zeCommandListAppendLaunchKernel");
  (void)wait;
  if (!r) r = fake_check(l, LIST);
  if (!r) r = fake_check(k, KERNEL);
  if (!r) r = fake_check_pointer(groups, "the number of groups");
  if (!r) r = check_events(signal, n);
  if (!r && (!groups->groupCountX || groups->groupCountX > 1 << 30 || groups->groupCountY != 1 ||
             groups->groupCountZ != 1))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT, "%u x %u x %u groups", groups->groupCountX,
                    groups->groupCountY, groups->groupCountZ);
  if (!r) r = check_launch((object *)k);
  if (r) return fake_end(r);
  command c = {.kind = LAUNCH,
               .event = (object *)signal,
               .kernel = (object *)k,
               .groups = groups->groupCountX};
  memcpy(c.args, c.kernel->args, sizeof c.args);
  return fake_end(append(l, &c));
}

static ze_result_t ZE_APICALL list_destroy(ze_command_list_handle_t l) {
  ze_result_t failure = fake_begin("zeCommandListDestroy"), r = fake_destroy((object *)l, LIST);
  if (!r) free(((object *)l)->commands);
  if (!r) free(l);
  return fake_end(r ? r : failure);
}

ze_result_t ZE_APICALL fake_event_wait(ze_event_handle_t e, uint64_t timeout) {
  ze_result_t r = fake_begin("zeEventHostSynchronize");
  (void)timeout;
  if (!r) r = fake_check(e, EVENT);
  if (r) return fake_end(r);
  run_all(fake_context_of((object *)e));
  if (!((object *)e)->signalled)
    r = fake_broken(ZE_RESULT_NOT_READY, "the host waits for an event that nothing signals");
  return fake_end(lost && !r ? ZE_RESULT_ERROR_DEVICE_LOST : r);
}

/* ---- queues ---- */

static ze_result_t ZE_APICALL queue_create(ze_context_handle_t c, ze_device_handle_t d,
                                           const ze_command_queue_desc_t *desc,
                                           ze_command_queue_handle_t *out) {
  ze_result_t r = fake_begin("zeCommandQueueCreate");
  if (!r) r = check_queue(c, d, desc);
  if (!r) *out = (ze_command_queue_handle_t)fake_made(QUEUE, (object *)c, d);
  return fake_end(r);
}
static ze_result_t ZE_APICALL queue_destroy(ze_command_queue_handle_t q) {
  return fake_destroy_plain("zeCommandQueueDestroy", q, QUEUE);
}

static ze_result_t ZE_APICALL queue_execute(ze_command_queue_handle_t handle, uint32_t n,
                                            ze_command_list_handle_t *lists,
                                            ze_fence_handle_t fence) {
  object *q = (object *)handle;
  ze_result_t r = fake_begin("zeCommandQueueExecuteCommandLists");
  if (!r) r = fake_check(q, QUEUE);
  for (uint32_t i = 0; i < n && !r; i++) {
    const object *l = (object *)lists[i];
    if ((r = fake_check(l, LIST))) break;
    if (!l->closed || l->parent != q->parent || fence)
      r = fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT,
                      "a list is executed that is not closed or of another context, or a fence");
    if (!r && q->n_lists == MAX_COMMANDS) run_all(q->parent);
    if (!r && q->n_lists == MAX_COMMANDS)
      r = fake_broken(ZE_RESULT_ERROR_UNKNOWN, "a queue waits forever");
    if (!r) q->lists[q->n_lists++] = (object *)lists[i];
  }
  return fake_end(r);
}

static ze_result_t ZE_APICALL queue_wait(ze_command_queue_handle_t q, uint64_t timeout) {
  ze_result_t r = fake_begin("zeCommandQueueSynchronize");
  (void)timeout;
  if (!r) r = fake_check(q, QUEUE);
  if (r) return fake_end(r);
  run_all(((object *)q)->parent);
  if (((object *)q)->n_lists)
    r = fake_broken(ZE_RESULT_NOT_READY, "the host waits for a queue that waits forever");
  return fake_end(lost && !r ? ZE_RESULT_ERROR_DEVICE_LOST : r);
}

/* ---- memory ---- */

static ze_result_t memory_new(ze_context_handle_t c, ze_device_handle_t d, ze_memory_type_t type,
                              size_t bytes, size_t alignment, const void *more, void **out) {
  const ze_relaxed_allocation_limits_exp_desc_t *relaxed = more;
  ze_result_t r = fake_check(c, CONTEXT);
  if (!r && d) r = fake_check_device(d);
  if (!r) r = fake_check_pointer(out, "where to put the memory");
  if (!r && (alignment & (alignment - 1)))
    r = fake_broken(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, "alignment %zu", alignment);
  if (!r && !bytes) r = fake_broken(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "no bytes");
  if (!r && relaxed)
    r = fake_check_struct(relaxed, ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
                          "relaxed limits");
  if (!r && bytes > LARGE &&
      !(relaxed && relaxed->flags == ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE))
    r = fake_broken(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "%zu bytes without relaxed limits", bytes);
  if (!r && bytes > (size_t)1 << 40) r = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  if (r) return r;
  void *base = fake_memory_new(bytes);
  if (!base) return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  object *o = fake_made(MEMORY, (object *)c, d);
  o->base = *out = base;
  o->length = bytes;
  o->type = type;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL alloc_device(ze_context_handle_t c,
                                           const ze_device_mem_alloc_desc_t *desc, size_t bytes,
                                           size_t alignment, ze_device_handle_t d, void **out) {
  ze_result_t r = fake_begin("zeMemAllocDevice");
  if (!r)
    r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                          "device memory description");
  if (!r) r = fake_check_device(d);
  return fake_end(r ? r
                    : memory_new(c, d, ZE_MEMORY_TYPE_DEVICE, bytes, alignment, desc->pNext, out));
}

static ze_result_t ZE_APICALL alloc_shared(ze_context_handle_t c,
                                           const ze_device_mem_alloc_desc_t *desc,
                                           const ze_host_mem_alloc_desc_t *host, size_t bytes,
                                           size_t alignment, ze_device_handle_t d, void **out) {
  ze_result_t r = fake_begin("zeMemAllocShared");
  if (!r)
    r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                          "device memory description");
  if (!r)
    r = fake_check_struct(host, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, "host memory description");
  return fake_end(r ? r
                    : memory_new(c, d, ZE_MEMORY_TYPE_SHARED, bytes, alignment, desc->pNext, out));
}

static ze_result_t ZE_APICALL alloc_host(ze_context_handle_t c,
                                         const ze_host_mem_alloc_desc_t *desc, size_t bytes,
                                         size_t alignment, void **out) {
  ze_result_t r = fake_begin("zeMemAllocHost");
  if (!r)
    r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, "host memory description");
  return fake_end(r ? r
                    : memory_new(c, NULL, ZE_MEMORY_TYPE_HOST, bytes, alignment, desc->pNext, out));
}

static ze_result_t ZE_APICALL mem_free(ze_context_handle_t c, void *p) {
  ze_result_t failure = fake_begin("zeMemFree"), r = fake_check(c, CONTEXT);
  object *m = fake_memory_at(p);
  if (!r && (!m || m->base != p || m->parent != (object *)c))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT,
                    "%p is freed, which is no allocation of the context", p);
  if (!r) r = fake_destroy(m, MEMORY);
  if (!r) fake_memory_free(p);
  if (!r) free(m);
  return fake_end(r ? r : failure);
}

static ze_result_t ZE_APICALL alloc_properties(ze_context_handle_t c, const void *p,
                                               ze_memory_allocation_properties_t *out,
                                               ze_device_handle_t *d) {
  ze_result_t r = fake_begin("zeMemGetAllocProperties");
  if (!r) r = fake_check(c, CONTEXT);
  if (!r) r = fake_check_pointer(p, "memory");
  if (!r)
    r = fake_check_struct(out, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
                          "allocation properties");
  if (r) return fake_end(r);
  const object *m = fake_memory_at(p);
  if (m && m->parent != (object *)c) m = NULL;
  out->type = m ? m->type : ZE_MEMORY_TYPE_UNKNOWN;
  if (d) *d = m ? m->device : NULL;
  return fake_end(r);
}

static ze_result_t ZE_APICALL address_range(ze_context_handle_t c, const void *p, void **base,
                                            size_t *bytes) {
  ze_result_t r = fake_begin("zeMemGetAddressRange");
  const object *m = fake_memory_at(p);
  if (!r) r = fake_check(c, CONTEXT);
  if (!r && !m)
    r = fake_broken(ZE_RESULT_ERROR_UNKNOWN, "the range of %p, which is in no allocation", p);
  if (!r && base) *base = m->base;
  if (!r && bytes) *bytes = m->length;
  return fake_end(r);
}

TABLE(CommandList, ze_command_list_dditable_t, .pfnCreateImmediate = list_create_immediate,
      .pfnCreate = list_create, .pfnClose = list_close, .pfnAppendEventReset = append_reset,
      .pfnDestroy = list_destroy, .pfnAppendBarrier = append_barrier,
      .pfnAppendMemoryCopy = append_copy, .pfnAppendLaunchKernel = append_launch)
TABLE(CommandQueue, ze_command_queue_dditable_t, .pfnCreate = queue_create,
      .pfnDestroy = queue_destroy, .pfnExecuteCommandLists = queue_execute,
      .pfnSynchronize = queue_wait)
TABLE(Mem, ze_mem_dditable_t, .pfnAllocDevice = alloc_device, .pfnAllocShared = alloc_shared,
      .pfnAllocHost = alloc_host, .pfnFree = mem_free, .pfnGetAllocProperties = alloc_properties,
      .pfnGetAddressRange = address_range)
