/* tools/convert/sevennet/sevennet.h - what the files that convert SevenNet's checkpoints share. */
#ifndef CLB_TOOLS_CONVERT_SEVENNET_SEVENNET_H
#define CLB_TOOLS_CONVERT_SEVENNET_SEVENNET_H

#include "models/atoms/elements.h"
#include "tools/convert/maps.h"

enum { MAX_LAYERS = 64, MAX_BASIS = 64, MAX_MODALITIES = 64, FILE_NAME_BYTES = 200 };

typedef struct {
  torch *t;
  value config, state;
  model *out;
  int version[2];             /* major, minor */
  bool sorted;                /* columns of radial networks are in the order of messages */
  int n_all, n_species;       /* species of the file; of them, elements */
  int species[CLB_ELEMENTS];  /* of the file, for each of ours */
  int n_modalities, modality; /* modality: -1, none */
  int n_layers, l_max;        /* l_max: of harmonics */
  bool equflash, v2;          /* what EquFlash, or EquFlashV2 alone, has in another way */
  bool sums;             /* of EquFlashV2: the messages of an irrep are summed before the map */
  value hidden;          /* widths of radial networks, if they are not at SevenNet's place */
  bool parity, one_self; /* one_self: self-connections of all layers are of one kind */
  double denominator;    /* of layer 0 */
  irreps features;       /* of the atoms, after the current layer */
} sevennet;

/* ---- settings.c: the configuration ---- */

/* What is not there is `without`, sevenn's default; NAN: it must be there. */

double number_in(const sevennet *q, value dict, const char *key, double without);
int whole_in(const sevennet *q, const char *key, double without, int low, int high);
bool is_true(const sevennet *q, const char *key, bool without);
value setting(const sevennet *q, const char *key, pickle_kind kind); /* must be there */
/* Its text; `without` also where there is no dict. */
const char *text_in(const sevennet *q, value dict, const char *key, const char *without);
/* Whether the chosen modality has parameters of its own in the place that a setting names. */
bool is_modal(const sevennet *q, const char *key);
/* An activation as PREFIX, with the factor that e3nn gives it. */
void put_activation(const sevennet *q, const char *name, const char *prefix);
/* "nequip" or "linear": the self-connection of a layer. */
const char *self_connection(const sevennet *q, int layer);
void read_settings(sevennet *q);
void read_species(sevennet *q);
void choose_modality(sevennet *q, const char *wanted);

/* ---- tensors.c: names, whose spelling has changed, and maps ---- */

/* state[KEY]; blanks in the key may stand for underscores. */
bool find_tensor(const sevennet *q, const char *key, weights *w);
/* A tensor of `count` numbers, under one of two names. */
weights tensor(const sevennet *q, const char *key, const char *old, int64_t count);
weights layer_tensor(const sevennet *q, int layer, const char *what, int64_t count);
/* [outer][species][inner], of which those of elements remain, times a factor. */
void put_by_species(const sevennet *q, const weights *w, int64_t outer, int64_t inner,
                    double factor, const char *name);
/* What an IrrepsLinear adds to its even scalars, of the modality and by its bias: n numbers.
   False: nothing. The numbers of the modalities are the last of the weight's, from `first` on;
   inputs: of an even scalar. */
bool added(const sevennet *q, const char *module, const weights *w, int64_t first, bool modal,
           int64_t inputs, int64_t n, double *sum);

/* ---- paths.c: irreps and messages ---- */

typedef struct {
  int in, l2; /* a term of the features, a degree of the harmonics */
  irrep out;
  int64_t column; /* the first of the file's last matrix of the radial network */
  int z;          /* the term of the messages */
} message_path;

typedef struct {
  int n;
  message_path of[MAX_TERMS]; /* in the order of the radial network's columns */
  int64_t columns;            /* of the file */
  irreps messages;
} message_paths;

/* By degree, then (-1)^l first. */
int by_natural_parity(irrep a, irrep b);
/* Those of a layer with features `out` whose messages `linear` has. */
void find_paths(const sevennet *q, const irreps *out, const irreps *linear, bool last,
                message_paths *p);
/* The paths of a layer, and its radial network. */
void put_messages(sevennet *q, int layer, const message_paths *p);
/* What messages are divided by; the factor of those of this layer. */
double put_denominator(sevennet *q, int layer);
irreps output_irreps(const sevennet *q, int layer);
/* Item i of irreps_manual; without it, those of features before any layer, and of EquFlash after
   layer i. */
irreps listed_irreps(const sevennet *q, int i);
irreps checked_irreps(const sevennet *q, const char *text);
int harmonic_parity(const sevennet *q, int l);

/* ---- block.c ---- */

void convert_block(sevennet *q, int layer);
void put_gate_activations(const sevennet *q, const irreps *out);

/* ---- sevennet.c ---- */

/* Once settings are read. */
void convert_network(sevennet *q);

/* ---- equflash.c ---- */

/* SevenNet's name of a tensor as EquFlash's, after a prefix. */
void equflash_name(const char *key, const char *prefix, char name[FILE_NAME_BYTES]);
/* Before layer `layer`, or after the last. */
irreps equflash_irreps(const sevennet *q, int layer);
void refuse_equflash(const sevennet *q, const char *what);

/* ---- equflash_v2.c ---- */

void read_equflash_v2(sevennet *q);
void convert_equflash_v2_block(sevennet *q, int layer);

#endif
