/* models/edges/known.c - numbers of edges that were found before. */
#include "models/edges/known.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/base/reserve.h"

void clb_known_edges_free(clb_known_edges *k) {
  free(k->slot);
  free(k->received);
  free(k->start);
  free(k->key);
  *k = (clb_known_edges){0};
}

/* One past the last atom of a system whose first one is this, or would be. */
static int64_t end_of(const clb_edges_systems *all, int64_t system, int64_t first) {
  int64_t end = first;
  while (end < all->n_atoms && all->system[end] == system) end++;
  return end;
}

static uint64_t key_of(const clb_edges_systems *all, int64_t system, int64_t first, int64_t end) {
  uint64_t h = clb_hash_bytes((uint64_t)(end - first), &all->grid[system], sizeof *all->grid);
  h = clb_hash_doubles(h, 3 * (end - first), all->positions + 3 * first);
  return h ? h : 1;
}

/* The structure, or the free place for it; NULL: there is none. */
static clb_known_structure *find(const clb_known_edges *k, uint64_t key) {
  if (!k->n_slots) return NULL;
  int64_t i = (int64_t)(key & (uint64_t)(k->n_slots - 1));
  while (k->slot[i].key && k->slot[i].key != key) i = (i + 1) & (k->n_slots - 1);
  return &k->slot[i];
}

int64_t clb_known_edges_find(clb_known_edges *k, const clb_edges_systems *all) {
  bool known = true;
  int64_t edges = 0;
  if (!clb_reserve(&k->start, &k->start_capacity, all->n_atoms + 1, sizeof *k->start) ||
      !clb_reserve(&k->key, &k->key_capacity, all->n, sizeof *k->key))
    return -2;
  for (int64_t i = 0, first = 0, end; i < all->n; i++, first = end) {
    end = end_of(all, i, first);
    k->key[i] = key_of(all, i, first, end);
    const clb_known_structure *x = find(k, k->key[i]);
    known = known && x && x->key;
    for (int64_t a = first; a < end && known; a++) {
      k->start[a] = (int32_t)edges;
      edges += k->received[x->at + a - first];
      known = edges < INT32_MAX;
    }
  }
  k->start[all->n_atoms] = (int32_t)edges;
  return known ? edges : -1;
}

/* Makes room for one structure more; the table is half full at most. */
static bool grow(clb_known_edges *k) {
  const clb_known_edges old = *k;
  if (2 * (k->n + 1) <= k->n_slots) return true;
  const int64_t n = k->n_slots ? 2 * k->n_slots : 256;
  clb_known_structure *slot = calloc((size_t)n, sizeof *slot);
  if (!slot) return false;
  k->slot = slot;
  k->n_slots = n;
  for (int64_t i = 0; i < old.n_slots; i++)
    if (old.slot[i].key) *find(k, old.slot[i].key) = old.slot[i];
  free(old.slot);
  return true;
}

static void add(clb_known_edges *k, uint64_t key, int64_t n, const int32_t *start) {
  enum { MOST = 1 << 26 }; /* atoms: where structures never come again, they fill no memory */
  if (k->n_received + n > MOST) {
    memset(k->slot, 0, (size_t)k->n_slots * sizeof *k->slot);
    k->n = k->n_received = 0;
  }
  if (!grow(k) ||
      !clb_reserve(&k->received, &k->received_capacity, k->n_received + n + 1, sizeof *k->received))
    return;
  clb_known_structure *x = find(k, key);
  if (x->key) return;
  *x = (clb_known_structure){key, k->n_received};
  k->n++;
  for (int64_t i = 0; i < n; i++) k->received[k->n_received++] = start[i + 1] - start[i];
}

void clb_known_edges_add(clb_known_edges *k, const clb_edges_systems *all) {
  for (int64_t i = 0, first = 0, end; i < all->n; i++, first = end) {
    end = end_of(all, i, first);
    add(k, k->key[i], end - first, k->start + first);
  }
}
