/* tools/energy/estimate.c - `clebsch energy --estimate`: the memory that a structure takes, and
   how many atoms of its density fit into a device. */
#include "tools/energy/estimate.h"

#include <stdio.h>

#include "models/atoms/neighbours.h"

static const int sizes[] = {16, 48, 80}; /* of devices, in GB */
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct {
  int64_t atoms, edges;
  double bytes; /* without the workspace of convolutions */
} estimate;

/* Counts the edges as clb_model_compute does, on the host. */
static bool count(const md_system *y, const char *from, estimate *e) {
  const structure *s = &y->atoms;
  clb_neighbours list = {.cutoff = y->info.r_max};
  progress("%s: counting its edges", from);
  const bool good =
      !clb_neighbours_update(&list, s->n, s->positions, &s->cell[0][0], s->periodic, NULL);
  progress(NULL);
  if (!good) warn("%s: %s", from, list.error);
  e->atoms = s->n;
  e->edges = list.n_edges;
  e->bytes = (double)s->n * (double)y->info.bytes_per_atom +
             (double)list.n_edges * (double)y->info.bytes_per_edge;
  clb_neighbours_free(&list);
  return good;
}

/* Atoms in a device of `gigabytes`: a sixteenth of its memory is for the workspace, and as much of
   the arrays is room for growth. */
static double fitting(const estimate *e, int gigabytes) {
  return gigabytes * 1e9 * 15 / 17 / e->bytes * (double)e->atoms;
}

static void print_json(const md_system *y, const estimate *e) {
  json_t *o = json_object(), *fit = json_object();
  JSON_ADD(o, {"atoms", json_count(e->atoms)}, {"edges", json_count(e->edges)},
           {"bytes_per_atom", json_count((int64_t)y->info.bytes_per_atom)},
           {"bytes_per_edge", json_count((int64_t)y->info.bytes_per_edge)},
           {"bytes", json_number(e->bytes)});
  for (int i = 0; i < SIZES; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d GB", sizes[i]);
    json_add(fit, name, json_number(fitting(e, sizes[i])));
  }
  json_add(o, "atoms_that_fit", fit);
  json_print(o);
}

static void print(const md_system *y, const estimate *e) {
  printf("memory     %.1f MiB for %lld atoms and %lld edges, and a workspace; %llu bytes an atom, "
         "%llu an edge\n",
         e->bytes / (1 << 20), (long long)e->atoms, (long long)e->edges,
         (unsigned long long)y->info.bytes_per_atom, (unsigned long long)y->info.bytes_per_edge);
  if (!e->atoms) return;
  printf("fits       of this density, about");
  for (int i = 0; i < SIZES; i++)
    printf("%s %.2g atoms in %d GB", i ? "," : "", fitting(e, sizes[i]), sizes[i]);
  putchar('\n');
}

bool print_estimate(md_system *y, const md_choice *choice, bool json) {
  estimate e;
  if (!md_system_start(y, choice) || !count(y, choice->structure, &e)) return false;
  (json ? print_json : print)(y, &e);
  return true;
}
