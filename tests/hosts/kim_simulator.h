/* tests/hosts/kim_simulator.h - a simulator as KIM's API has them: ghosts as far as the model asks
   for, and neighbour lists with a skin. */
#ifndef CLB_TESTS_HOSTS_KIM_SIMULATOR_H
#define CLB_TESTS_HOSTS_KIM_SIMULATOR_H

#include <KIM_Log.h>
#include <KIM_SimulatorHeaders.h>

#include "tests/models/model_places.h"

enum { MAX_PARTICLES = 4096 };

/* What KIM's log was told since it was last empty. */
static char kim_log[1 << 16];
static inline int kim_log_print(const char *entry) {
  strncat(kim_log, entry, sizeof kim_log - strlen(kim_log) - 1);
  return 0;
}

/* A model in the units of a simulator, and what these are in Angstrom and eV. */
typedef struct {
  KIM_Model *model;
  KIM_ComputeArguments *arguments;
  double length, energy;
} kim_opened;

typedef struct {
  int n, owner[MAX_PARTICLES], contributing[MAX_PARTICLES], species[MAX_PARTICLES];
  double shift[MAX_PARTICLES][3]; /* Angstrom */
  double positions[3 * MAX_PARTICLES];
  int *neighbours[MAX_PARTICLES], n_neighbours[MAX_PARTICLES];
  int asked_of_ghosts;
  double energy, forces[3 * MAX_PARTICLES], e_atom[MAX_PARTICLES], virial[6],
      v_atom[6 * MAX_PARTICLES];
} kim_particles;

static inline bool kim_try(const char *name, KIM_LengthUnit length, KIM_EnergyUnit energy,
                           kim_opened *o) {
  int accepted = 0;
  kim_log[0] = 0;
  const int bad =
      KIM_Model_Create(KIM_NUMBERING_zeroBased, length, energy, KIM_CHARGE_UNIT_e,
                       KIM_TEMPERATURE_UNIT_K, KIM_TIME_UNIT_ps, name, &accepted, &o->model);
  if (bad) return false;
  assert_true(accepted);
  assert_int_equal(KIM_Model_ComputeArgumentsCreate(o->model, &o->arguments), 0);
  return true;
}

static inline void kim_close(kim_opened *o) {
  assert_int_equal(KIM_Model_ComputeArgumentsDestroy(o->model, &o->arguments), 0);
  KIM_Model_Destroy(&o->model);
}

/* Where atoms are now; the species' codes are KIM's. */
static inline void kim_place(const kim_opened *o, kim_particles *p, const atom_set *a,
                             const char *const *symbols) {
  for (int i = 0; i < p->n; i++) {
    int known;
    const KIM_SpeciesName name = KIM_SpeciesName_FromString(symbols[a->species[p->owner[i]]]);
    assert_int_equal(KIM_Model_GetSpeciesSupportAndCode(o->model, name, &known, &p->species[i]), 0);
    assert_true(known);
    for (int k = 0; k < 3; k++)
      p->positions[3 * i + k] = (a->positions[3 * p->owner[i] + k] + p->shift[i][k]) / o->length;
  }
}

static inline void kim_add(kim_particles *p, const atom_set *a, int owner, const int *shift) {
  assert_true(p->n < MAX_PARTICLES);
  const int i = p->n++;
  p->owner[i] = owner;
  p->contributing[i] = !shift[0] && !shift[1] && !shift[2];
  for (int k = 0; k < 3; k++)
    p->shift[i][k] = shift[0] * a->cell[k] + shift[1] * a->cell[3 + k] + shift[2] * a->cell[6 + k];
}

static inline bool kim_near(const atom_set *a, int owner, const double *shift, double reach) {
  for (int64_t i = 0; i < a->n; i++) {
    double r2 = 0;
    for (int k = 0; k < 3; k++) {
      const double d = a->positions[3 * owner + k] + shift[k] - a->positions[3 * i + k];
      r2 += d * d;
    }
    if (r2 < reach * reach) return true;
  }
  return false;
}

/* The atoms, and all images within the model's influence distance and a skin of one of them. */
static inline kim_particles *kim_particles_of(const kim_opened *o, const atom_set *a, double skin) {
  enum { FAR = 8 };
  kim_particles *p = calloc(1, sizeof *p);
  double influence;
  int s[3] = {0};
  assert_non_null(p);
  KIM_Model_GetInfluenceDistance(o->model, &influence);
  for (int i = 0; i < (int)a->n; i++) kim_add(p, a, i, s);
  for (s[0] = -FAR; s[0] <= FAR; s[0]++)
    for (s[1] = -FAR; s[1] <= FAR; s[1]++)
      for (s[2] = -FAR; s[2] <= FAR; s[2]++)
        for (int i = 0; i < (int)a->n; i++) {
          if (!a->periodic[0] || (!s[0] && !s[1] && !s[2])) continue;
          double shift[3];
          for (int k = 0; k < 3; k++)
            shift[k] = s[0] * a->cell[k] + s[1] * a->cell[3 + k] + s[2] * a->cell[6 + k];
          if (kim_near(a, i, shift, o->length * influence + skin)) kim_add(p, a, i, s);
        }
  return p;
}

/* Full lists of all particles, with a skin in Angstrom, as they are placed. */
static inline void kim_list(const kim_opened *o, kim_particles *p, double skin) {
  int lists;
  const double *cutoffs;
  const int *only_contributing;
  KIM_Model_GetNeighborListPointers(o->model, &lists, &cutoffs, &only_contributing);
  assert_int_equal(lists, 1);
  const double reach = *cutoffs + skin / o->length;
  for (int i = 0; i < p->n; i++) {
    int *list = malloc((size_t)p->n * sizeof *list), n = 0;
    assert_non_null(list);
    for (int j = 0; j < p->n; j++) {
      double r2 = 0;
      for (int k = 0; k < 3; k++) {
        const double d = p->positions[3 * i + k] - p->positions[3 * j + k];
        r2 += d * d;
      }
      if (j != i && r2 < reach * reach) list[n++] = j;
    }
    free(p->neighbours[i]);
    p->neighbours[i] = list;
    p->n_neighbours[i] = n;
  }
}

static inline void kim_free(kim_particles *p) {
  for (int i = 0; i < p->n; i++) free(p->neighbours[i]);
  free(p);
}

static inline int kim_neighbours(void *data, int lists, const double *cutoffs, int list,
                                 int particle, int *n, const int **neighbours) {
  kim_particles *p = data;
  (void)cutoffs;
  if (lists != 1 || list || particle < 0 || particle >= p->n) return 1;
  p->asked_of_ghosts += !p->contributing[particle];
  *n = p->n_neighbours[particle];
  *neighbours = p->neighbours[particle];
  return 0;
}

static inline void kim_point(kim_opened *o, kim_particles *p, bool all) {
  KIM_ComputeArguments *a = o->arguments;
  const struct {
    KIM_ComputeArgumentName name;
    const int *to;
  } integers[] = {{KIM_COMPUTE_ARGUMENT_NAME_numberOfParticles, &p->n},
                  {KIM_COMPUTE_ARGUMENT_NAME_particleSpeciesCodes, p->species},
                  {KIM_COMPUTE_ARGUMENT_NAME_particleContributing, p->contributing}};
  const struct {
    KIM_ComputeArgumentName name;
    double *to;
  } doubles[] = {{KIM_COMPUTE_ARGUMENT_NAME_coordinates, p->positions},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialEnergy, &p->energy},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialForces, all ? p->forces : NULL},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialParticleEnergy, all ? p->e_atom : NULL},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialVirial, all ? p->virial : NULL},
                 {KIM_COMPUTE_ARGUMENT_NAME_partialParticleVirial, all ? p->v_atom : NULL}};
  int bad = KIM_ComputeArguments_SetCallbackPointer(a, KIM_COMPUTE_CALLBACK_NAME_GetNeighborList,
                                                    KIM_LANGUAGE_NAME_c,
                                                    (KIM_Function *)kim_neighbours, p);
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
    bad |= KIM_ComputeArguments_SetArgumentPointerInteger(a, integers[i].name, integers[i].to);
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
    bad |= KIM_ComputeArguments_SetArgumentPointerDouble(a, doubles[i].name, doubles[i].to);
  assert_int_equal(bad, 0);
}

/* all: all results; else the energy alone. */
static inline int kim_run(kim_opened *o, kim_particles *p, bool all) {
  kim_log[0] = 0;
  kim_point(o, p, all);
  p->energy = NAN;
  for (int i = 0; i < 3 * p->n; i++) p->forces[i] = NAN;
  for (int i = 0; i < p->n; i++) p->e_atom[i] = NAN;
  for (int i = 0; i < 6; i++) p->virial[i] = NAN;
  for (int i = 0; i < 6 * p->n; i++) p->v_atom[i] = NAN;
  return KIM_Model_Compute(o->model, o->arguments);
}

#endif
