/* tools/convert/torch.h - PyTorch's archives as values: data.pkl is the tree of modules, or a
   checkpoint's dict, with weights (data/N); of TorchScript, constants.pkl has the numbers that
   code refers to. If something is missing or of the wrong kind, the file is refused. */
#ifndef CLB_TOOLS_CONVERT_TORCH_H
#define CLB_TOOLS_CONVERT_TORCH_H

#include "tools/convert/pickle.h"
#include "tools/convert/zip.h"

typedef const pickle_value *value;

typedef struct {
  const char *path;
  zip archive;
  pickle_arena arena;
  value root, constants; /* constants: NULL in archives that are not TorchScript's */
} torch;

void torch_open(torch *t, const source_file *in);
void torch_open_constants(torch *t);
void torch_close(torch *t);

/* ---- modules and their attributes ---- */

/* "conv.linear_1.weight": an attribute of an attribute; NULL if there is none. */
value maybe(value object, const char *path);
value attribute(const torch *t, value object, const char *path, pickle_kind kind);
double real_at(const torch *t, value object, const char *path);
int64_t whole_at(const torch *t, value object, const char *path);
irreps irreps_at(const torch *t, value object,
                 const char *path); /* ((multiplicity, (degree, parity)), ...) */
const char *class_of(value object); /* "module name" */

void expect(const torch *t, bool good, value object, const char *what);
void expect_class(const torch *t, value object, const char *name); /* in any module */
void expect_flag(const torch *t, value object, const char *key, bool wanted);
void expect_irreps(const torch *t, value object, const char *path, const irreps *wanted);

/* Item i of a tuple or list; an integer in [0, limit). */
value item(const torch *t, value v, size_t i, pickle_kind kind);
int64_t whole_item(const torch *t, value v, size_t i, int64_t limit);

/* ---- numbers ---- */

typedef struct {
  bool f64; /* else f32 */
  int rank;
  int64_t shape[MAX_RANK], count;
  const unsigned char *data; /* little endian, row-major; valid until torch_close */
} weights;

weights weights_at(torch *t, value object, const char *path);
weights constant_at(torch *t, size_t i);
weights tensor_of(torch *t, value dict, const char *key); /* an entry of a dict */
double element(const weights *w, int64_t i);
/* The bytes of an entry; NULL if there is none. */
const char *entry_at(torch *t, const char *name, size_t *bytes);

/* ---- models ---- */

void convert_nequip(torch *t, model *out);
void convert_sevennet(torch *t, const char *modality, model *out);

#endif
