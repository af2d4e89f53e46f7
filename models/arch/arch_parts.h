/* models/arch/arch_parts.h - what files of several architectures have: harmonics, radial functions,
   first features, messages along paths, linear maps. All do nothing after the first failure. */
#ifndef CLB_MODELS_ARCH_ARCH_PARTS_H
#define CLB_MODELS_ARCH_ARCH_PARTS_H

#include "models/arch/arch.h"
#include "models/layers/kinds.h"

enum { CLB_ARCH_BLOCKS = 64 }; /* the most of a network */

/* The function that `key` names, and its factor, `key`_scale. */
clb_scaled_activation clb_arch_activation(clb_model_reader *r, const char *key);
/* "layers.N.what" */
const char *clb_arch_key(char key[CLB_MODEL_KEY], int block, const char *what);
/* Tensor "layers.N.what.1o", times a factor. */
int64_t clb_arch_take(clb_model_reader *r, int block, const char *what, const clb_term *t, int rank,
                      const int64_t *shape, double factor);
int clb_arch_scalars(clb_model_reader *r, clb_per per, int64_t n); /* an array of n columns */

/* ---- edges ---- */

/* Their vectors, or where pairs of species have `cutoffs` of their own, an array of vectors that
   are as much longer. */
int clb_arch_vectors(clb_model_reader *r);
/* Degrees 0 to l_max of `irreps_sh`; returns their array. */
int clb_arch_harmonics(clb_model_reader *r, int vectors, clb_irreps *sh);
/* Bessel functions and their cutoff; NULL on failure. */
clb_layer *clb_arch_basis(clb_model_reader *r, int vectors);

/* The species of edges: an array. */
int clb_arch_pairs(clb_model_reader *r);
/* Rows of a table by these, at an offset of the weights, to another array. */
void clb_arch_pair_rows(clb_model_reader *r, int block, const char *what, int pairs, int64_t table,
                        int to);

/* Fills a table of pairs, whose rows are `width` wide, from column `at` on with the numbers
   [species][n] of the receiver (end 0) or the sender (1), which are at `from`. */
void clb_arch_fill_pairs(clb_model_reader *r, int64_t table, int64_t width, int64_t at, int end,
                         int64_t from, int64_t n);

typedef struct {
  int n;                            /* matrices */
  clb_scaled_activation activation; /* between them */
  bool fan_in;                      /* each is divided by the square root of its rows */
  bool normalized;                  /* by PyTorch's LayerNorm, with biases; it also reads species */
  double epsilon;                   /* of that */
  int pairs, ones;                  /* arrays, then: species of edges, and the number 1 of each */
} clb_arch_radial_desc;
clb_arch_radial_desc clb_arch_radial_read(clb_model_reader *r);
/* The radial network "layers.N.WHAT" of a block, from the basis; returns the array of its n_weights
   outputs. */
int clb_arch_radial(clb_model_reader *r, int block, const char *what, const clb_arch_radial_desc *d,
                    int basis, int64_t n_weights);

/* ---- atoms ---- */

/* Rows of tensor `embedding`, or of the unit matrix; returns the features. */
int clb_arch_embedding(clb_model_reader *r, const clb_irreps *features, bool one_hot);

/* Whether the file has rows by charge or spin; silu of their sum, added to an array of scalars that
   another layer writes before. */
bool clb_arch_has_states(const clb_model_reader *r);
void clb_arch_states(clb_model_reader *r, int to);
/* Tensor "layers.N.what" (N < 0: "what"), one number per channel of an array's even scalars,
   becomes the first term of its sum; optional: if the file has it. */
void clb_arch_bias(clb_model_reader *r, int block, const char *what, int to, bool optional);
/* A map from array to array, whose irreps are different ones: for each irrep that both have the
   tensor "layers.N.what.IRREP", [channels of it in `from`][channels], or of each species
   [channels][species][channels], or mixed from features of species (rows of tensor `embedding`)
   [channels][features][channels]; divided by the square root of rows. */
typedef enum { CLB_ARCH_ONE, CLB_ARCH_SPECIES, CLB_ARCH_EMBEDDING } clb_arch_matrices;
void clb_arch_linear(clb_model_reader *r, int block, const char *what, int from, int to,
                     clb_arch_matrices matrices);
/* Terms `first` to `end` - 1 of an array. */
typedef struct {
  int array, first, end;
} clb_arch_terms;
clb_arch_terms clb_arch_all(const clb_model_reader *r, int array);
/* The same from several arrays to several: rows of a tensor are the channels of its irrep in
   `from`, part after part, columns those in `to`; more than one term in `to` only of CLB_ARCH_ONE.
 */
void clb_arch_maps(clb_model_reader *r, int block, const char *what, const clb_arch_terms *from,
                   int n_from, const clb_arch_terms *to, int n_to, clb_arch_matrices matrices);

/* A tensor [species] of positive numbers. */
int64_t clb_arch_positive(clb_model_reader *r, const char *name);
/* Of all atoms; or 0, and those of each species are weights at *of_species. */
double clb_arch_neighbours(clb_model_reader *r, int64_t *of_species);
/* Copies n weights times a factor. */
void clb_arch_copy_times(clb_model_reader *r, int64_t to, int64_t from, int64_t n, double factor);
/* Repulsion of nuclei, added to an array of energies. */
void clb_arch_repulsion(clb_model_reader *r, int energies);
/* Of a file that has `pair_repulsion`: repulsion is added to what has been scaled by species, whose
   array it returns. */
int clb_arch_repelled(clb_model_reader *r, int scalar, clb_energy *energy);

/* ---- products ---- */

typedef struct {
  const clb_irreps *sh;
  clb_irreps in, out; /* of the features, of the result */
  clb_instruction path[CLB_MAX_PATHS];
  int n_paths;
  int64_t n_weights; /* of all paths */
} clb_arch_product;
/* Reads the block's paths, of this key, between irreps that are set; out: the key of the result's.
 */
void clb_arch_read_paths(clb_model_reader *r, int block, const char *paths, const char *out,
                         clb_mode mode, clb_arch_product *m);
/* One message for each path. */
void clb_arch_check_paths(clb_model_reader *r, int block, const char *paths, const char *out,
                          const clb_arch_product *m);
/* Of messages, which have a term for each path. */
void clb_arch_paths(clb_model_reader *r, int block, clb_arch_product *m);
/* The convolution, its sum times `scale`; returns its array. x -1: 1 in each channel. */
int clb_arch_convolution(clb_model_reader *r, int block, const clb_arch_product *m, double scale,
                         int x, int harmonics, int weights);

#endif
