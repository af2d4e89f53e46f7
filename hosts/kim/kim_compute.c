/* kim_compute.c - one computation: KIM's particles in, energies, forces and virials out. */
#include <stdlib.h>
#include <string.h>

#include "hosts/kim/kim_driver.h"

static int fail(const KIM_ModelCompute *k, const char *why) {
  char text[1024] = "Clebsch: ";
  strncat(text, why, sizeof text - strlen(text) - 1);
  KIM_ModelCompute_LogEntry(k, KIM_LOG_VERBOSITY_error, text, __LINE__, __FILE__);
  return 1;
}

typedef struct {
  int *n, *species, *contributing;
  double *coordinates;
  double *energy, *forces, *e_atom, *virial, *v_atom; /* NULL: not wanted */
} arguments;

static bool take_arguments(const KIM_ModelComputeArguments *a, arguments *all) {
  const struct {
    KIM_ComputeArgumentName name;
    int **to;
  } integers[] = {{KIM_COMPUTE_ARGUMENT_NAME_numberOfParticles, &all->n},
                  {KIM_COMPUTE_ARGUMENT_NAME_particleSpeciesCodes, &all->species},
                  {KIM_COMPUTE_ARGUMENT_NAME_particleContributing, &all->contributing}};
  const struct {
    KIM_ComputeArgumentName name;
    double **to;
  } doubles[] = {{KIM_COMPUTE_ARGUMENT_NAME_coordinates, &all->coordinates},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialEnergy, &all->energy},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialForces, &all->forces},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialParticleEnergy, &all->e_atom},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialVirial, &all->virial},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialParticleVirial, &all->v_atom}};
  int bad = 0;
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
    bad |= KIM_ModelComputeArguments_GetArgumentPointerInteger(a, integers[i].name, integers[i].to);
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
    bad |= KIM_ModelComputeArguments_GetArgumentPointerDouble(a, doubles[i].name, doubles[i].to);
  return !bad;
}

/* Memory for n particles: a position or force has three numbers, a virial nine. */
static bool reserve(kim_driver *d, int n) {
  if (n <= d->room) return true;
  const size_t room = (size_t)n + (size_t)n / 8;
  kim_pairs *p = &d->pairs;
  free(d->positions), free(p->species), free(p->counted);
  d->positions = malloc(room * 16 * sizeof(double));
  p->species = malloc(room * 3 * sizeof(int32_t));
  p->counted = malloc(room);
  p->same = false;
  d->room = 0;
  if (!d->positions || !p->species || !p->counted) return false;
  d->forces = d->positions + 3 * room;
  d->v_atom = d->forces + 3 * room;
  d->e_atom = d->v_atom + 9 * room;
  p->depth = p->species + room;
  p->queue = p->depth + room;
  d->room = (int)room;
  return true;
}

/* In KIM's order xx yy zz yz xz xy, symmetric; with the sign of dE/dstrain. */
static void put_virial(double *to, const double *v, double unit) {
  static const int row[6] = {0, 1, 2, 1, 0, 0}, column[6] = {0, 1, 2, 2, 2, 1};
  for (int k = 0; k < 6; k++)
    to[k] = unit * (v[3 * row[k] + column[k]] + v[3 * column[k] + row[k]]) / 2;
}

int kim_compute(const KIM_ModelCompute *k, const KIM_ModelComputeArguments *a) {
  void *buffer;
  arguments all;
  double energy, virial[9], nowhere[3] = {0};
  KIM_ModelCompute_GetModelBufferPointer(k, &buffer);
  kim_driver *d = buffer;
  kim_pairs *p = &d->pairs;
  if (!take_arguments(a, &all)) return fail(k, "KIM has no pointers of the arguments");
  const int n = *all.n;
  if (!reserve(d, n)) return fail(k, "no memory for particles");
  if (!kim_pairs_list(d, a, n, all.species, all.contributing)) return p->same = false, 1;
  for (int i = 0; i < 3 * n; i++) d->positions[i] = all.coordinates[i] / d->length;
  const clb_model_edges e = {.n_local = n,
                             .n_total = n,
                             .n_edges = p->n_pairs,
                             .same_graph = p->same,
                             .species = p->species,
                             .senders = {.host = p->senders},
                             .receivers = {.host = p->receivers},
                             .positions = n ? d->positions : nowhere,
                             .counted = p->counted};
  const clb_model_edge_results r = {.energy = &energy,
                                    .forces = all.forces ? d->forces : NULL,
                                    .e_atom = all.e_atom ? d->e_atom : NULL,
                                    .virial = all.virial ? virial : NULL,
                                    .v_atom = all.v_atom ? d->v_atom : NULL};
  p->same = false; /* until it is computed */
  if (clb_model_compute_edges(d->model, &e, &r)) return fail(k, clb_error(d->ctx));
  p->same = true;
  const double force = d->energy / d->length;
  if (all.energy) *all.energy = d->energy * energy;
  for (int i = 0; all.forces && i < 3 * n; i++) all.forces[i] = force * d->forces[i];
  for (int i = 0; all.e_atom && i < n; i++) all.e_atom[i] = d->energy * d->e_atom[i];
  if (all.virial) put_virial(all.virial, virial, d->energy);
  for (int i = 0; all.v_atom && i < n; i++)
    put_virial(all.v_atom + 6 * i, d->v_atom + 9 * i, d->energy);
  return 0;
}
