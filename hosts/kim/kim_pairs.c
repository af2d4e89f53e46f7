/* kim_pairs.c - the pairs of a computation, of KIM's neighbour lists.

   A network of several layers knows of each contributing particle the neighbours, of these the
   neighbours, and so on: as many steps as there are layers. So the receivers are all particles that
   are fewer steps away from a contributing one. Ghosts are computed like other particles, but
   their energies do not count. */
#include <stdlib.h>
#include <string.h>

#include "hosts/kim/kim_driver.h"

static bool fail(const KIM_ModelComputeArguments *a, const char *why) {
  KIM_ModelComputeArguments_LogEntry(a, KIM_LOG_VERBOSITY_error, why, __LINE__, __FILE__);
  return false;
}

static bool neighbours(const KIM_ModelComputeArguments *a, int i, int *n, const int **j) {
  if (KIM_ModelComputeArguments_GetNeighborList(a, 0, i, n, j))
    return fail(a, "Clebsch: the simulator gave no neighbours of a particle");
  return true;
}

/* Steps from contributing particles, and whether those, and all species, are as they were. */
static bool measure(kim_driver *d, const KIM_ModelComputeArguments *a, const int *species,
                    const int *contributing) {
  kim_pairs *p = &d->pairs;
  int n_queue = 0, n, most = d->info.exchanges;
  const int *j;
  for (int i = 0; i < p->n; i++) {
    const unsigned char counted = contributing[i] != 0;
    p->same = p->same && p->species[i] == species[i] && p->counted[i] == counted;
    p->species[i] = species[i];
    p->counted[i] = counted;
    p->depth[i] = counted ? 0 : -1;
    if (counted) p->queue[n_queue++] = i;
  }
  for (int k = 0; k < n_queue && p->depth[p->queue[k]] < most; k++) {
    const int i = p->queue[k];
    if (!neighbours(a, i, &n, &j)) return false;
    for (int m = 0; m < n; m++)
      if (p->depth[j[m]] < 0) {
        p->depth[j[m]] = p->depth[i] + 1;
        p->queue[n_queue++] = j[m];
      }
  }
  return true;
}

static bool reserve(kim_pairs *p, int64_t n) {
  if (n <= p->room) return true;
  const int64_t room = n + n / 2;
  int32_t *s = realloc(p->senders, (size_t)room * sizeof *s);
  if (s) p->senders = s;
  int32_t *r = realloc(p->receivers, (size_t)room * sizeof *r);
  if (r) p->receivers = r;
  if (!s || !r) return false;
  p->room = room;
  return true;
}

bool kim_pairs_list(kim_driver *d, const KIM_ModelComputeArguments *a, int n, const int *species,
                    const int *contributing) {
  kim_pairs *p = &d->pairs;
  const int64_t before = p->n_pairs;
  int64_t count = 0;
  p->same = p->same && p->n == n;
  p->n = n;
  p->n_pairs = 0;
  if (!measure(d, a, species, contributing)) return false;
  for (int i = 0; i < n; i++) {
    int m;
    const int *j;
    if (p->depth[i] < 0) continue;
    if (!neighbours(a, i, &m, &j)) return false;
    if (!reserve(p, count + m)) return fail(a, "Clebsch: no memory for pairs");
    for (int k = 0; k < m; k++, count++) {
      p->same = p->same && count < before && p->senders[count] == j[k] && p->receivers[count] == i;
      p->senders[count] = j[k];
      p->receivers[count] = i;
    }
  }
  p->same = p->same && count == before;
  p->n_pairs = count;
  return true;
}
