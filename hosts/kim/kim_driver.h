/* kim_driver.h - a model behind KIM's API. */
#ifndef CLB_HOSTS_KIM_KIM_DRIVER_H
#define CLB_HOSTS_KIM_KIM_DRIVER_H

#include <KIM_ModelDriverHeaders.h>
#include <clebsch/model.h>
#include <stdbool.h>

/* Pairs and particles, as KIM gave them in the last call. */
typedef struct {
  int n;                        /* particles */
  int64_t n_pairs, room;        /* room: pairs that there is memory for */
  int32_t *senders, *receivers; /* [room] */
  int32_t *species;             /* [n], as the rest */
  int32_t *depth;               /* steps from a contributing particle; -1: more than there are */
  int32_t *queue;               /* those with a depth, in its order */
  unsigned char *counted;       /* contributing */
  bool same;                    /* as in the call before */
} kim_pairs;

typedef struct {
  clb_context *ctx;
  clb_model *model;
  clb_model_info info;
  double length, energy;    /* the simulator's units in an Angstrom and an eV */
  double cutoff, influence; /* in the simulator's unit */
  int only_contributing;    /* whether neighbours of other particles are never asked for */
  kim_pairs pairs;
  int room; /* particles that there is memory for */
  double *positions, *forces, *e_atom, *v_atom;
} kim_driver;

KIM_ModelDriverCreateFunction kim_driver_create;
KIM_ModelComputeFunction kim_compute;

/* Asks KIM for the pairs that the energies of contributing particles are of. 0: memory or KIM
   fails, after a word in its log. */
bool kim_pairs_list(kim_driver *d, const KIM_ModelComputeArguments *a, int n, const int *species,
                    const int *contributing);

#endif
