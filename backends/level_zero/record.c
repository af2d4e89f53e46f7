/* backends/level_zero/record.c - recordings as closed command lists.

   A closed list runs on its own queue, which is ordered with the immediate list only by two events:
   the immediate list signals `before` when all earlier work is done, and then waits for `after`,
   which the closed list signals. Each event is reset by the list that waited for it, before it can
   be signalled again: recordings are serialized by the immediate list, so one pair per device is
   enough. */
#include <stdlib.h>

#include "backends/level_zero/level_zero.h"

struct clb_recorded {
  ze_command_list_handle_t list;
};

/* Makes the queue, and finds the ordinal for its lists. */
static bool ready(lz_device *d, uint32_t *ordinal) {
  if (clb_lz_find_queues(d, ordinal)) return false;
  const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                        .ordinal = *ordinal,
                                        .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
  return d->queue || !d->ze.CommandQueueCreate(d->context, d->device, &desc, &d->queue);
}

/* Waits for `event` and resets it. */
static ze_result_t await(lz_device *d, ze_command_list_handle_t list, ze_event_handle_t event) {
  ze_result_t r = d->ze.CommandListAppendBarrier(list, NULL, 1, &event);
  return r ? r : d->ze.CommandListAppendEventReset(list, event);
}

/* Each launch is preceded by a barrier. */
static bool fill(lz_device *d, ze_command_list_handle_t list, const clb_work *work, int64_t n) {
  const ze_command_list_handle_t immediate = d->list;
  clb_status s = CLB_OK;
  if (await(d, list, d->before)) return false;
  d->list = list;
  for (int64_t i = 0; i < n && !s; i++)
    s = clb_lz_launch(&d->base, work[i].module, work[i].groups, work[i].args, work[i].n_args);
  d->list = immediate;
  return !s && !d->ze.CommandListAppendBarrier(list, d->after, 0, NULL) &&
         !d->ze.CommandListClose(list);
}

void clb_lz_record(clb_device *device, const clb_work *work, int64_t n, clb_recorded **recorded) {
  lz_device *d = (lz_device *)device;
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  if (*recorded) clb_lz_forget(device, *recorded);
  *recorded = NULL;
  clb_recorded *r = ready(d, &desc.commandQueueGroupOrdinal) ? calloc(1, sizeof *r) : NULL;
  if (!r || d->ze.CommandListCreate(d->context, d->device, &desc, &r->list)) free(r);
  else if (fill(d, r->list, work, n)) *recorded = r;
  else clb_lz_forget(device, r);
}

/* After a failure, restores both events once the lists have finished. */
static clb_status undo(lz_device *d, const char *call, ze_result_t result) {
  clb_lz_drain(d);
  d->ze.CommandQueueSynchronize(d->queue, UINT64_MAX);
  d->ze.EventHostReset(d->before);
  d->ze.EventHostReset(d->after);
  return clb_lz_failed(d->base.error, call, result);
}

clb_status clb_lz_replay(clb_device *device, clb_recorded *recorded) {
  lz_device *d = (lz_device *)device;
  ze_result_t r = d->ze.CommandListAppendBarrier(d->list, d->before, 0, NULL);
  d->busy = true;
  if (r) return clb_lz_failed(device->error, "zeCommandListAppendBarrier", r);
  if ((r = d->ze.CommandQueueExecuteCommandLists(d->queue, 1, &recorded->list, NULL)))
    return undo(d, "zeCommandQueueExecuteCommandLists", r);
  if ((r = d->ze.CommandListAppendBarrier(d->list, NULL, 1, &d->after)))
    return undo(d, "zeCommandListAppendBarrier", r);
  if ((r = d->ze.CommandListAppendEventReset(d->list, d->after)))
    return undo(d, "zeCommandListAppendEventReset", r);
  return d->adopted ? clb_lz_barrier(d) : CLB_OK;
}

void clb_lz_forget(clb_device *device, clb_recorded *recorded) {
  lz_device *d = (lz_device *)device;
  clb_lz_drain(d);
  d->ze.CommandListDestroy(recorded->list);
  free(recorded);
}
