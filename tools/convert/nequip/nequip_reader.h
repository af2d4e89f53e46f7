/* tools/convert/nequip/nequip_reader.h - what describes NequIP's networks, whichever file they are
   in, and what puts them. */
#ifndef CLB_TOOLS_CONVERT_NEQUIP_NEQUIP_READER_H
#define CLB_TOOLS_CONVERT_NEQUIP_NEQUIP_READER_H

#include "tools/convert/maps.h"

enum { NEQUIP_LAYERS = 64, NEQUIP_TYPES = 128, NEQUIP_MATRICES = 16 };

typedef struct {
  torch *t;
  model *out;
  value network; /* its sequence of modules; NULL: a checkpoint, which has */
  value state;   /* names and tensors, that of the network beginning with `prefix`; */
  const char *prefix;
  bool averaged;          /* what is learned are moving averages, in the order of names; */
  const char *learned[3]; /* tensors that are, besides weights, if they are */
  int64_t n_species;
  irreps sh, features; /* features: of the atoms, after the current layer */
  bool odd, gated;     /* whether some layer had odd scalars, or gates */
} nequip;

/* Whether the network has a tensor at a path such as "layer0_convnet.conv.sc.weight". */
bool nequip_has(const nequip *q, const char *path);
weights nequip_weights(nequip *q, const char *path);
/* The same, of `count` numbers. */
weights nequip_count(nequip *q, const char *path, int64_t count);

/* ---- a layer ---- */

/* What NequIP makes of a layer's features. */
typedef struct {
  irreps messages, merged, linear, scalars, gates, gated, out; /* merged: messages, each irrep once;
                                                                  linear: input of the gate */
  path_terms paths[MAX_PATHS];                                 /* in the order of their weights */
  int n_paths;
  int64_t n_weights;
} nequip_layer;

bool nequip_near(double a, double b);
/* The layer after q->features that gives those of `hidden` that there are paths to. */
void nequip_find_layer(const nequip *q, const irreps *hidden, nequip_layer *l);
/* Puts irreps, paths, linear maps and, if it has any, the self connection: a matrix for each of
   `inner` species or features of a species. */
void nequip_put_layer(nequip *q, int number, const nequip_layer *l, int64_t inner);

/* ---- a layer's modules ---- */

/* Refuses modules that are not those of the layer. tp: where its tensor product is in `conv`. */
void nequip_check_layer(nequip *q, value module, const char *tp, const nequip_layer *l,
                        int64_t inner);
/* Puts its activations. */
void nequip_put_gate(nequip *q, value gate, const nequip_layer *l);
/* KEY: the name of an activation, KEY_scale: the factor of its value. All layers must agree. */
void nequip_put_activation(nequip *q, value act, const char *key);

/* ---- the network from 0.7 on: what its files say in different ways ---- */

typedef struct allegro allegro;

typedef struct {
  allegro *allegro; /* NULL: the network is NequIP's */
  int atomic_number[NEQUIP_TYPES];
  double r_max, p;
  int n_layers, n_neighbours; /* n_neighbours: 1, or one for each type */
  irreps *hidden;             /* [n_layers] */
  double neighbours[NEQUIP_TYPES];
  char readout[ACTIVATION_BYTES]; /* between matrices */
  bool repels;                    /* by ZBL, */
  double repulsion_p;             /* whose cutoff has this exponent */
} nequip_settings;

/* Puts the type names, which must be elements, in text. */
void nequip_put_types(nequip *q, value names, int *atomic_number);
/* Puts all but the activations of gates. */
void nequip_put_network(nequip *q, const nequip_settings *s);
/* Cutoffs, harmonics and n functions of lengths, "bessel" or "spline". */
void nequip_put_edges(nequip *q, const nequip_settings *s, const char *basis, int64_t n);
/* The same, and the frequencies of Bessel functions; frequencies: their tensor. Returns their
 * number. */
int64_t nequip_put_basis(nequip *q, const nequip_settings *s, const char *frequencies);
/* avg_num_neighbors, one or those of types. */
void nequip_put_neighbours(nequip *q, const nequip_settings *s);
/* What energies of types are multiplied by and added to, and the repulsion of nuclei. */
void nequip_put_energies(nequip *q, const nequip_settings *s);

typedef struct {
  const char *name, *class;
} nequip_module;

/* Refuses modules of a network that are neither these nor layers; returns the number of layers. */
int nequip_check_modules(const nequip *q, value network, const nequip_module *list, size_t n);
void nequip_check_harmonics(const nequip *q, value sh); /* how they are normalised */
/* Neighbours per type, or of all, from factors of sums, which the module `norm` of an object has;
   all objects must agree. */
void nequip_read_neighbours(nequip *q, value object, const char *norm, nequip_settings *s);

/* ---- Allegro's network, which has types, edges and energies of atoms as NequIP's ---- */

/* After hidden matrices: nothing, a module that does nothing, silu. */
typedef enum { ALLEGRO_LINEAR, ALLEGRO_IDENTITY, ALLEGRO_SILU } allegro_activation;

struct allegro {
  irreps tracked; /* that features may have */
  int splines;    /* that the scalars of pairs are made of; 0: of Bessel functions */
  int span;       /* how many of them overlap */
  bool backward;  /* matrices, but for one, are scaled by their outputs, not their inputs */
  allegro_activation two_body, latent, readout;
};

/* Puts the network. */
void allegro_put_network(nequip *q, const nequip_settings *s);
/* Refuses modules that compute something else; reads what tensors do not say. */
void allegro_read_modules(nequip *q, nequip_settings *s);

/* ---- the arguments that a checkpoint's network was built with ---- */

typedef struct {
  nequip *q;
  value config;
  nequip_settings *s;
  int version; /* N of NequIP 0.N */
} nequip_checkpoint;

/* NULL: not given, or None. */
value nequip_given(const nequip_checkpoint *c, const char *key);
double nequip_number(const nequip_checkpoint *c, const char *key, double otherwise);
int nequip_whole(const nequip_checkpoint *c, const char *key, int otherwise, int low, int high);
bool nequip_flag(const nequip_checkpoint *c, const char *key, bool otherwise);
/* Of text, "4x0e+2x1o", with blanks or not; multiplicities of 1 may be left out. */
irreps nequip_irreps(const nequip_checkpoint *c, value v, const char *key);
/* Reads the arguments of AllegroModel, or FullAllegroModel. */
void allegro_read_arguments(nequip_checkpoint *c, bool full);

#endif
