/* water_edges.c - energy and forces of a box of water by the neighbour list of the calling code:
   cc water_edges.c $(pkg-config --cflags --libs clebsch) && ./a.out MODEL [DEVICE] */
#include <clebsch/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: water_edges MODEL [DEVICE]\n"
    "MODEL knows H and O and was made by `clebsch convert`; Debian's package cp2k-data brings one "
    "to convert:\n"
    "  clebsch convert /usr/share/cp2k/NequIP/water.pth water.safetensors\n"
    "DEVICE is cuda, hip:1, level_zero, opencl:0:0, cpu, ...; without it, the best one here.\n";

/* Atoms in a cubic box, and their neighbours.  Everything is the caller's. */
typedef struct {
  int64_t n, n_edges;
  double box;                   /* Angstrom */
  int32_t *species;             /* [n] */
  double (*positions)[3];       /* [n], Angstrom, in the box or a little outside */
  int32_t *senders, *receivers; /* [n_edges] */
  double (*vectors)[3];         /* [n_edges] */
  double (*d_vectors)[3];       /* [n_edges]: what the model gives back */
  double (*forces)[3];          /* [n] */
} atoms;

/* Room for side^3 molecules and for every pair to be neighbours; 0: there is none. */
static int allocate(atoms *a, int side) {
  a->n = 3 * (int64_t)side * side * side;
  const size_t n = (size_t)a->n, pairs = n * (n - 1);
  a->species = malloc(n * sizeof *a->species);
  a->positions = malloc(n * sizeof *a->positions);
  a->senders = malloc(pairs * sizeof *a->senders);
  a->receivers = malloc(pairs * sizeof *a->receivers);
  a->vectors = malloc(pairs * sizeof *a->vectors);
  a->d_vectors = malloc(pairs * sizeof *a->d_vectors);
  a->forces = calloc(n, sizeof *a->forces);
  return a->species && a->positions && a->senders && a->receivers && a->vectors && a->d_vectors &&
         a->forces;
}

static void release(atoms *a) {
  free(a->species);
  free(a->positions);
  free(a->senders);
  free(a->receivers);
  free(a->vectors);
  free(a->d_vectors);
  free(a->forces);
}

/* A lattice of molecules O H H, each moved a little and turned in one of three ways. */
static void place(atoms *a, int side, double spacing, int32_t oxygen, int32_t hydrogen) {
  static const double oh[2][3] = {{0.757, 0.587, 0}, {-0.757, 0.587, 0}};
  uint32_t random = 1;
  for (int64_t k = 0; k < a->n / 3; k++) {
    const int64_t cell[3] = {k % side, k / side % side, k / side / side};
    double(*x)[3] = &a->positions[3 * k];
    for (int d = 0; d < 3; d++) {
      random = random * 1664525u + 1013904223u;
      x[0][d] = (double)cell[d] * spacing + 0.2 * ((double)random / 4294967296.0);
    }
    for (int h = 0; h < 2; h++)
      for (int d = 0; d < 3; d++) x[1 + h][(d + k) % 3] = x[0][(d + k) % 3] + oh[h][d];
    a->species[3 * k] = oxygen;
    a->species[3 * k + 1] = a->species[3 * k + 2] = hydrogen;
  }
}

/* All pairs, each with the nearest image: right where the box is at least twice as wide as the
   cutoff. */
static void find_edges(atoms *a, double cutoff) {
  a->n_edges = 0;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t j = 0; j < a->n; j++) {
      double *r = a->vectors[a->n_edges], square = 0;
      if (i == j) continue;
      for (int d = 0; d < 3; d++) {
        r[d] = a->positions[j][d] - a->positions[i][d];
        if (r[d] > a->box / 2) r[d] -= a->box;
        if (r[d] < -a->box / 2) r[d] += a->box;
        square += r[d] * r[d];
      }
      if (square >= cutoff * cutoff) continue;
      a->receivers[a->n_edges] = (int32_t)i;
      a->senders[a->n_edges] = (int32_t)j;
      a->n_edges++;
    }
}

/* A vector points from receiver to sender, and a force is -dE/dposition. */
static void add_forces(atoms *a) {
  for (int64_t e = 0; e < a->n_edges; e++)
    for (int d = 0; d < 3; d++) {
      a->forces[a->senders[e]][d] -= a->d_vectors[e][d];
      a->forces[a->receivers[e]][d] += a->d_vectors[e][d];
    }
}

/* In decimal, and all bits. */
static void print_row(const char *what, int64_t i, int n, const double *x) {
  printf("%s %d", what, (int)i);
  for (int k = 0; k < n; k++) printf(" %.8f", x[k]);
  for (int k = 0; k < n; k++) {
    uint64_t bits;
    memcpy(&bits, &x[k], sizeof bits);
    printf(" %016llX", (unsigned long long)bits);
  }
  printf("\n");
}

/* The box is at least twice as wide as the cutoff. */
static const char *prepare(const clb_model *model, double cutoff, atoms *a) {
  const double spacing = 3.1; /* Angstrom: close to water's density */
  const int oxygen = clb_model_species(model, 8), hydrogen = clb_model_species(model, 1);
  int side = 2;
  while (side * spacing < 2 * cutoff) side++;
  a->box = side * spacing;
  if (oxygen < 0 || hydrogen < 0) return "the model does not know H and O";
  if (!allocate(a, side)) return "out of memory";
  place(a, side, spacing, oxygen, hydrogen);
  find_edges(a, cutoff);
  return NULL;
}

static clb_status compute(clb_model *model, atoms *a) {
  double energy;
  const clb_model_edges edges = {.n_local = a->n,
                                 .n_total = a->n,
                                 .n_edges = a->n_edges,
                                 .species = a->species,
                                 .senders.host = a->senders,
                                 .receivers.host = a->receivers,
                                 .vectors = a->vectors[0]};
  const clb_model_edge_results results = {.energy = &energy, .d_vectors = a->d_vectors[0]};
  const clb_status s = clb_model_compute_edges(model, &edges, &results);
  if (s) return s;
  add_forces(a);
  print_row("edges: energy (eV)", a->n_edges, 1, &energy);
  for (int64_t i = 0; i < a->n; i++) print_row("edges: force (eV/Angstrom)", i, 3, a->forces[i]);
  return CLB_OK;
}

int main(int argc, char **argv) {
  clb_context *ctx = NULL;
  clb_model *model = NULL;
  clb_model_info info;
  atoms a = {0};
  const char *wrong = NULL;

  if (argc < 2 || argc > 3 || !strcmp(argv[1], "--help")) {
    const int asked = argc == 2;
    fputs(help, asked ? stdout : stderr);
    return !asked;
  }
  clb_status s = clb_context_create(argc > 2 ? argv[2] : "", &ctx);
  if (!s) s = clb_model_open(ctx, argv[1], NULL, &model);
  if (!s) s = clb_model_describe(model, &info);
  if (!s) wrong = prepare(model, info.r_max, &a);
  if (!s && !wrong) s = compute(model, &a);
  if (s) wrong = clb_error(ctx);
  if (wrong) fprintf(stderr, "water_edges: %s\n", wrong);

  release(&a);
  clb_model_destroy(&model);
  clb_context_destroy(&ctx);
  return wrong != NULL;
}
