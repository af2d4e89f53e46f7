/* backends/level_zero/queues.c - finds a device's queue for compute. */
#include "backends/level_zero/level_zero.h"

clb_status clb_lz_find_queues(lz_device *d, uint32_t *ordinal) {
  ze_command_queue_group_properties_t groups[16];
  uint32_t n = 16;
  clb_error_sink *error = d->base.error;
  for (int i = 0; i < 16; i++)
    groups[i] = (ze_command_queue_group_properties_t){
        .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES};
  ze_result_t r = d->ze.DeviceGetCommandQueueGroupProperties(d->device, &n, groups);
  if (r) return clb_lz_failed(error, "zeDeviceGetCommandQueueGroupProperties", r);
  for (*ordinal = 0; *ordinal < n; ++*ordinal)
    if (groups[*ordinal].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE) return CLB_OK;
  return clb_fail(error, CLB_ERROR_UNSUPPORTED, "level_zero: %s has no queue that computes",
                  d->description);
}
