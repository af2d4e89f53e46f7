/* tools/energy/estimate.c - `clebsch energy --estimate`: the memory that a structure takes, and
   how many atoms of its density fit into a device: as a whole, and in blocks of atoms. */
#include "tools/energy/estimate.h"

#include <stdio.h>

#include "models/atoms/neighbours.h"

static const int sizes[] = {16, 48, 80}; /* of devices, in GB */
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Of a system that is computed as a whole, or in blocks of atoms. */
enum { WHOLE, BLOCKS, WAYS };
typedef struct {
  int64_t atoms, edges;
  uint64_t per_atom[WAYS], per_edge[WAYS];
  double bytes[WAYS]; /* without workspaces, and without a block */
} estimate;

/* Counts the edges as clb_model_compute does, on the host. */
static bool count(const md_system *y, const char *from, estimate *e) {
  const structure *s = &y->atoms;
  const clb_model_info *info = &y->info;
  clb_neighbours list = {.cutoff = info->r_max};
  progress("%s: counting its edges", from);
  const bool good =
      !clb_neighbours_update(&list, s->n, s->positions, &s->cell[0][0], s->periodic, NULL);
  progress(NULL);
  if (!good) warn("%s: %s", from, list.error);
  *e = (estimate){.atoms = s->n,
                  .edges = list.n_edges,
                  .per_atom = {info->bytes_per_atom, info->block_bytes_per_atom},
                  .per_edge = {info->bytes_per_edge, info->block_bytes_per_edge}};
  for (int i = 0; i < WAYS; i++)
    e->bytes[i] =
        (double)e->atoms * (double)e->per_atom[i] + (double)e->edges * (double)e->per_edge[i];
  clb_neighbours_free(&list);
  return good;
}

/* Atoms in a device of `gigabytes`: a sixteenth of its memory is for the workspace, and as much of
   the arrays is room for growth; in blocks another one is for a block, and half as much room. Edges
   are counted in 31 bits. */
static double fitting(const estimate *e, int way, int gigabytes) {
  const double memory = gigabytes * 1e9 * (way == BLOCKS ? 28.0 / 33 : 15.0 / 17) / e->bytes[way],
               edges = e->edges ? INT32_MAX / (double)e->edges : memory;
  return (memory < edges ? memory : edges) * (double)e->atoms;
}

static void add_fitting(json_t *o, const char *key, const estimate *e, int way) {
  json_t *fit = json_object();
  for (int i = 0; i < SIZES; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d GB", sizes[i]);
    json_add(fit, name, json_number(fitting(e, way, sizes[i])));
  }
  json_add(o, key, fit);
}

static void print_json(const estimate *e) {
  json_t *o = json_object();
  JSON_ADD(o, {"atoms", json_count(e->atoms)}, {"edges", json_count(e->edges)},
           {"bytes_per_atom", json_count((int64_t)e->per_atom[WHOLE])},
           {"bytes_per_edge", json_count((int64_t)e->per_edge[WHOLE])},
           {"bytes", json_number(e->bytes[WHOLE])});
  add_fitting(o, "atoms_that_fit", e, WHOLE);
  JSON_ADD(o, {"block_bytes_per_atom", json_count((int64_t)e->per_atom[BLOCKS])},
           {"block_bytes_per_edge", json_count((int64_t)e->per_edge[BLOCKS])},
           {"block_bytes", json_number(e->bytes[BLOCKS])});
  add_fitting(o, "atoms_that_fit_in_blocks", e, BLOCKS);
  json_print(o);
}

static void print_way(const estimate *e, int way, const char *besides) {
  printf("%.1f MiB for %lld atoms and %lld edges, and %s; %llu bytes an atom, %llu an edge\n",
         e->bytes[way] / (1 << 20), (long long)e->atoms, (long long)e->edges, besides,
         (unsigned long long)e->per_atom[way], (unsigned long long)e->per_edge[way]);
}

static void print_fitting(const estimate *e, int way) {
  printf(way == BLOCKS ? "           in blocks, about" : "fits       of this density, about");
  for (int i = 0; i < SIZES; i++)
    printf("%s %.2g atoms in %d GB", i ? "," : "", fitting(e, way, sizes[i]), sizes[i]);
  putchar('\n');
}

static void print(const estimate *e) {
  printf("memory     ");
  print_way(e, WHOLE, "a workspace");
  printf("in blocks  ");
  print_way(e, BLOCKS, "a workspace and a block");
  for (int way = 0; way < WAYS && e->atoms; way++) print_fitting(e, way);
}

bool print_estimate(md_system *y, const md_choice *choice, bool json) {
  estimate e;
  if (!md_system_start(y, choice) || !count(y, choice->structure, &e)) return false;
  (json ? print_json : print)(&e);
  return true;
}
