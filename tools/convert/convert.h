/* tools/convert/convert.h - conversion of a model from another program's file to safetensors
   (docs/model-format.md). */
#ifndef CLB_TOOLS_CONVERT_CONVERT_H
#define CLB_TOOLS_CONVERT_CONVERT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a model that is several in one, which; NULL: not chosen. */
typedef struct {
  const char *modality, *head;
} model_choice;

/* The file being converted. */
typedef struct {
  const char *path;
  model_choice choice;
  unsigned char *bytes;
  size_t n;
} source_file;

/* "clebsch: PATH: ..." on standard error, then exit(EXIT_FAILED). Text from files may be among the
   arguments: control characters are escaped. */
void fail_model(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Whether a file begins like those that are converted, whatever its name. */
bool convert_knows(const char *path);
/* The model in a file, as a safetensors file without a name in memory that exists as long as its
   descriptor, which is returned; exits (fail_model) on failure. */
int convert_in_memory(const char *from, const model_choice *choice);
/* The place in names of the one that was chosen, or of the only one; refuses others, and lists all.
   what: "modality", of several "modalities". */
int chosen_of(const char *path, const char *wanted, const char *const *names, int n,
              const char *what, const char *several);

/* ---- output ---- */

enum { MAX_RANK = 6, MAX_TENSORS = 4096, NAME_BYTES = 112 };

typedef struct {
  char name[NAME_BYTES];
  bool f64; /* else F32 */
  int rank;
  int64_t shape[MAX_RANK];
  size_t bytes;
  unsigned char *data; /* little endian, owned */
} model_tensor;

typedef struct {
  const char *from; /* the path of the file being converted */
  json_t *metadata;
  bool has_modalities, has_heads;
  int n;
  model_tensor tensors[MAX_TENSORS];
} model;

/* Without tensors; from: of which file messages speak. */
model *model_new(const char *from, const char *format);
bool model_write(const char *to, const model *m); /* false, after a message */
/* To an unnamed file in memory that exists as long as its descriptor, which is returned; exits on
   failure. */
int model_in_memory(const model *m);
void model_free(model *m);
void model_tell(const model *m, const char *path); /* what was written, in a line */

/* Reads the bytes of the file `path`, which the caller frees; exits (fail_model) on failure. */
void source_read(source_file *in);
/* Writes the model to the safetensors file `to`; frees the bytes. Exits on failure. */
model *source_convert(source_file *in, const char *to);
/* The same for a file, which must be another one. */
model *convert_file(const char *from, const model_choice *choice, const char *to);

/* A name of a format and its arguments, for a call that it is an argument of. */
typedef struct {
  char text[NAME_BYTES];
} model_name;
model_name named(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Adds a string to the metadata; if the key exists already, the value must be the same. */
void put_string(model *m, const char *value, const char *key, ...)
    __attribute__((format(printf, 3, 4)));
void put_number(model *m, double x, const char *key, ...)
    __attribute__((format(printf, 3, 4))); /* the shortest text that reads back as x */
/* Copies the elements of `data`; f64 or f32. */
void put_tensor(model *m, const void *data, bool f64, int rank, const int64_t *shape,
                const char *name, ...) __attribute__((format(printf, 6, 7)));
/* In F64; of rank 1, or of any. */
void put_doubles(model *m, const double *data, int64_t n, const char *name);
void put_shaped(model *m, const double *data, int rank, const int64_t *shape, const char *name);

double number_at(const unsigned char *data, bool f64, int64_t i); /* element i of such data */

/* ---- irreps ---- */

enum {
  MAX_TERMS = 256,
  MAX_DEGREE = 12,
  MAX_CHANNELS = 1 << 16,
  IRREPS_BYTES = MAX_TERMS * 12,
  LABEL_BYTES = 8
};

typedef struct {
  int mul, l, parity; /* parity: 1 or -1 */
} irrep;

typedef struct {
  int n;
  irrep term[MAX_TERMS];
} irreps;

bool same_irrep(irrep a, irrep b); /* whatever the multiplicities */
/* "32x0e + 16x1o", as e3nn reads it; false: it is not so, has no terms, or is too large. */
bool read_irreps(const char *text, irreps *out);
/* "0e": writes to text and returns it. */
const char *irrep_label(irrep t, char text[LABEL_BYTES]);
/* "32x0e+16x1o"; "" where there are no terms. */
void put_irreps(model *m, const irreps *list, const char *key, ...)
    __attribute__((format(printf, 3, 4)));

int64_t channels_of(const irreps *list, irrep t); /* of all its terms */
/* Of degrees 0 to l_max, of natural parity, or all even. */
irreps harmonic_irreps(int l_max, bool even);
/* Whether a product of a and b has the irrep `to`. */
bool couples(irrep a, irrep b, irrep to);

/* ---- what several formats put (parts.c) ---- */

enum { MAX_PATHS = 512 };
typedef struct {
  int x, y, z; /* terms of the features, the harmonics and the messages */
} path_terms;
/* All from x and y to terms of z, in the order of z, x and y; returns how many. Refuses more than
   `most` of them in the name of `path`. */
int find_all_paths(const char *path, const irreps *x, const irreps *y, const irreps *z,
                   path_terms *paths, int most);
/* Gives each path a message of its own, its z from now on. */
irreps own_messages(path_terms *paths, int n, const irreps *x, const irreps *z);
/* "X,Y,Z" of paths in the order of their weights. */
void put_path_list(model *m, const char *key, const path_terms *paths, int n);
/* Those of a layer, and its messages. */
void put_paths(model *m, int layer, const path_terms *paths, int n, const irreps *messages);
/* A gate to the irreps `out`: scalars, which come first, and others, which are gated by one more
   scalar a channel, even if some scalars are; keys begin with `prefix`. Returns its input. */
irreps put_gate(model *m, const char *prefix, const irreps *out);
void put_species(model *m, const int *atomic_numbers, int n);
void put_per_species(model *m, const double *scale, const double *shift, int64_t n);
/* Harmonics of degrees 0, 1, ... and n_basis functions of lengths: "bessel" or "spline". */
void put_edges(model *m, double r_max, const irreps *sh, const char *basis, int64_t n_basis);
void put_polynomial(model *m, double p); /* the cutoff */
/* silu, with its factor, as each of some activations. */
void put_silu(model *m, double scale, const char *const *keys, int n);

/* ---- formats ---- */

bool is_torch(const source_file *in);
bool starts_as_torch(const void *bytes); /* the first four */
void convert_torch(const source_file *in, model *out);
bool is_nequix(const source_file *in);
void convert_nequix(const source_file *in, model *out);

#endif
