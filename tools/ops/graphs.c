/* tools/ops/graphs.c - the graphs that `bench` knows by name: neighbour graphs of crystals and
   molecules, and random stress cases. */
#include "tools/ops/graphs.h"

#include "models/atoms/neighbours.h"
#include "tools/common/random.h"
#include "tools/structures/structure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char graph_names_help[] =
    "carbon         diamond, 5x5x5 cells (carbon:N: NxNxN), r < 6 A: 1,000 nodes, 158,000 edges\n"
    "spike          a virus's protein, r < 3 A: 22,812 nodes, 136,340 edges "
    "($CLB_STRUCTURES/6vxx.pdb)\n"
    "dhfr-water     a protein in water, r < 6 A: 23,558 nodes, 2,068,124 edges "
    "($CLB_STRUCTURES/5dfr_solv.pdb)\n"
    "water-box      216 waters, r < 4 A: 648 nodes, 16,932 edges (spc216.gro of GROMACS)\n"
    "hub            one receiver of 100,000 edges (hub:N: N), 1,000 of 8\n"
    "even           as many nodes and edges as hub, spread evenly\n"
    "flashtp        512 receivers of 64 random senders each\n"
    "file:PATH,r=A  a structure (.xyz, .cif, POSCAR, ...) and a cutoff\n";

typedef struct {
  tool_graph *g;
  const char *name;
  char *error;
  size_t size;
} maker;

static bool fail(const maker *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(const maker *m, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(m->error, m->size, format, args);
  va_end(args);
  return false;
}

static bool capacity(const maker *m, int64_t nodes, int64_t edges) {
  tool_graph *g = m->g;
  size_t n = edges ? (size_t)edges : 1;
  *g = (tool_graph){.n_nodes = nodes,
                    .n_edges = edges,
                    .senders = malloc(n * sizeof *g->senders),
                    .receivers = malloc(n * sizeof *g->receivers),
                    .vectors = malloc(n * 3 * sizeof *g->vectors)};
  return (g->senders && g->receivers && g->vectors) ||
         fail(m, "out of memory for %lld edges", (long long)edges);
}

/* ---- structures ---- */

static bool from_structure(const maker *m, const structure *s, double cutoff) {
  clb_neighbours list = {.cutoff = cutoff};
  bool good = !clb_neighbours_update(&list, s->n, s->positions, s->cell[0], s->periodic, NULL);
  if (!good) fail(m, "%s: %s", m->name, list.error);
  else if ((good = capacity(m, s->n, list.n_edges)) && list.n_edges) {
    memcpy(m->g->senders, list.senders, (size_t)list.n_edges * sizeof *list.senders);
    memcpy(m->g->receivers, list.receivers, (size_t)list.n_edges * sizeof *list.receivers);
    clb_neighbours_vectors(&list, s->positions, m->g->vectors);
  }
  clb_neighbours_free(&list);
  return good;
}

static bool from_file(const maker *m, const char *path, bool atoms_only, double cutoff) {
  const structure_options options = {.atoms_only = atoms_only, .any_element = true};
  structure s;
  if (!structure_read(path, &options, &s, m->error, m->size)) return false;
  bool good = from_structure(m, &s, cutoff);
  structure_free(&s);
  return good;
}

/* Diamond: 8 atoms in a cubic cell of 3.567 Angstrom. */
static bool carbon(const maker *m, int64_t cells) {
  static const double basis[8][3] = {{0, 0, 0},       {0, .5, .5},     {.5, 0, .5},
                                     {.5, .5, 0},     {.25, .25, .25}, {.25, .75, .75},
                                     {.75, .25, .75}, {.75, .75, .25}};
  const double a = 3.567, edge = a * (double)cells;
  structure s = {.n = 8 * cells * cells * cells,
                 .cell = {{edge, 0, 0}, {0, edge, 0}, {0, 0, edge}},
                 .periodic = {true, true, true}};
  s.positions = malloc((size_t)s.n * 3 * sizeof *s.positions);
  if (!s.positions) return fail(m, "out of memory for %lld atoms", (long long)s.n);
  for (int64_t i = 0; i < s.n; i++) {
    const int64_t cell[3] = {i / 8 / cells / cells, i / 8 / cells % cells, i / 8 % cells};
    for (int k = 0; k < 3; k++) s.positions[3 * i + k] = a * ((double)cell[k] + basis[i % 8][k]);
  }
  bool good = from_structure(m, &s, 6);
  structure_free(&s);
  return good;
}

static bool make_carbon(const maker *m) {
  const char *argument = m->name + strlen("carbon");
  char *end;
  long cells = *argument ? strtol(argument + 1, &end, 10) : 5;
  if (*argument && (end == argument + 1 || *end || cells < 1 || cells > 200))
    return fail(m, "carbon:N has 1 to 200 cells per edge, not '%s'", argument + 1);
  return carbon(m, cells);
}

/* A file in $CLB_STRUCTURES, or else in `folder`. */
static bool known(const maker *m, const char *file, const char *folder, const char *source,
                  double cutoff) {
  const char *mine = getenv("CLB_STRUCTURES");
  char path[4096];
  for (int i = 0; i < 2; i++) {
    const char *in = i ? folder : mine;
    if (in && *in && snprintf(path, sizeof path, "%s/%s", in, file) < (int)sizeof path &&
        !access(path, R_OK))
      return from_file(m, path, true, cutoff);
  }
  return fail(m, "%s: there is no %s in the folder that CLB_STRUCTURES names (%s)%s%s; it is %s",
              m->name, file, mine && *mine ? mine : "not set", folder ? " nor in " : "",
              folder ? folder : "", source);
}

static bool make_spike(const maker *m) {
  return known(m, "6vxx.pdb", NULL, "entry 6VXX of the Protein Data Bank, rcsb.org", 3);
}

static bool make_dhfr_water(const maker *m) {
  return known(m, "5dfr_solv.pdb", NULL,
               "the solvated DHFR (entry 5DFR) of OpenMM's and TorchMD-Net's benchmarks", 6);
}

static bool make_water_box(const maker *m) {
  return known(m, "spc216.gro", "/usr/share/gromacs/top",
               "share/gromacs/top/spc216.gro of GROMACS, in Debian's package gromacs-data", 4);
}

/* file:PATH,r=CUTOFF */
static bool make_file(const maker *m) {
  const char *path = m->name + strlen("file"), *comma = strrchr(path, ',');
  char *end = NULL;
  double cutoff = comma && !strncmp(comma, ",r=", 3) ? strtod(comma + 3, &end) : 0;
  if (*path != ':' || !end || end == comma + 3 || *end || !(cutoff > 0))
    return fail(m, "'%s': a structure is file:PATH,r=CUTOFF, in Angstrom", m->name);
  char *copy = strndup(path + 1, (size_t)(comma - path - 1));
  bool good = copy ? from_file(m, copy, false, cutoff) : fail(m, "out of memory");
  free(copy);
  return good;
}

/* ---- random graphs ---- */

/* Vectors of any direction, 1 to 5 Angstrom long, from random senders. */
static void by_lot(const tool_graph *g) {
  uint64_t seed = 1;
  for (int64_t e = 0; e < g->n_edges; e++) {
    g->senders[e] = (int32_t)((random_number(&seed) + 1) / 2 * (double)g->n_nodes);
    double *v = g->vectors + 3 * e, squared;
    do { /* in a shell, so that no direction is preferred */
      squared = 0;
      for (int k = 0; k < 3; k++) v[k] = random_number(&seed), squared += v[k] * v[k];
    } while (squared > 1 || squared < 0.01);
    double by = (3 + 2 * random_number(&seed)) / sqrt(squared);
    for (int k = 0; k < 3; k++) v[k] *= by;
  }
}

enum {
  HUB_EDGES = 100000,
  HUB_OTHERS = 1000,
  HUB_DEGREE = 8,
  HUB_ALL = HUB_EDGES + HUB_OTHERS * HUB_DEGREE
};

static bool make_hub(const maker *m) {
  const char *argument = m->name + strlen("hub");
  char *end;
  long n = *argument ? strtol(argument + 1, &end, 10) : HUB_EDGES;
  if (*argument && (end == argument + 1 || *end || n < 1 || n > 100000000))
    return fail(m, "hub:N has 1 to 100000000 edges, not '%s'", argument + 1);
  int32_t all = (int32_t)n + HUB_OTHERS * HUB_DEGREE;
  if (!capacity(m, 1 + HUB_OTHERS, all)) return false;
  for (int32_t e = 0; e < all; e++)
    m->g->receivers[e] = e < n ? 0 : 1 + (e - (int32_t)n) / HUB_DEGREE;
  return by_lot(m->g), true;
}

static bool make_even(const maker *m) {
  if (!capacity(m, 1 + HUB_OTHERS, HUB_ALL)) return false;
  for (int64_t e = 0; e < HUB_ALL; e++)
    m->g->receivers[e] = (int32_t)(e * (1 + HUB_OTHERS) / HUB_ALL);
  return by_lot(m->g), true;
}

static bool make_flashtp(const maker *m) {
  enum { RECEIVERS = 512, DEGREE = 64 };
  if (!capacity(m, RECEIVERS, RECEIVERS * DEGREE)) return false;
  for (int32_t e = 0; e < RECEIVERS * DEGREE; e++) m->g->receivers[e] = e / DEGREE;
  return by_lot(m->g), true;
}

/* ---- all graphs ---- */

typedef struct {
  const char *name;
  bool (*make)(const maker *);
  bool argument; /* an argument may follow after a colon */
} graph_kind;

static const graph_kind *kind_named(const char *name) {
  static const graph_kind kinds[] = {{"carbon", make_carbon, true},
                                     {"spike", make_spike, false},
                                     {"dhfr-water", make_dhfr_water, false},
                                     {"water-box", make_water_box, false},
                                     {"hub", make_hub, true},
                                     {"even", make_even, false},
                                     {"flashtp", make_flashtp, false},
                                     {"file", make_file, true}};
  const size_t length = strcspn(name, ":");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strlen(kinds[i].name) == length && !strncmp(name, kinds[i].name, length) &&
        (!name[length] || kinds[i].argument))
      return &kinds[i];
  return NULL;
}

bool graph_known(const char *name) { return kind_named(name) != NULL; }

bool graph_make(const char *name, tool_graph *g, char *error, size_t size) {
  const maker m = {.g = g, .name = name, .error = error, .size = size};
  const graph_kind *kind = kind_named(name);
  *g = (tool_graph){0};
  if (!kind) return fail(&m, "there is no graph '%s'; there are:\n%s", name, graph_names_help);
  const bool good = kind->make(&m);
  if (!good) graph_free(g);
  return good;
}

void graph_free(tool_graph *g) {
  free(g->senders);
  free(g->receivers);
  free(g->vectors);
  *g = (tool_graph){0};
}
