/* kernels/candidates.c - lists of schedules worth timing. */
#include <string.h>

#include "kernels/kernel.h"

void clb_candidate_add(clb_schedule *list, int *n, const clb_schedule *s) {
  for (int i = 0; i < *n; i++)
    if (!memcmp(&list[i], s, sizeof *s)) return;
  if (*n < CLB_MAX_CANDIDATES) list[(*n)++] = *s;
}

void clb_candidate_with(clb_schedule *list, int *n, const clb_schedule *s, size_t field,
                        int32_t value) {
  clb_schedule other = *s;
  memcpy((char *)&other + field, &value, sizeof value);
  clb_candidate_add(list, n, &other);
}
