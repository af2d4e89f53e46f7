/* tools/convert/torch.h - PyTorch's archives as values: data.pkl is the tree of modules, or a
   checkpoint's dict, with weights (data/N); of TorchScript, constants.pkl has the numbers that
   code refers to; of a package, model/eager_model.pkl is the tree, with weights .data/N.storage. If
   something is missing or of the wrong kind, the file is refused. */
#ifndef CLB_TOOLS_CONVERT_TORCH_H
#define CLB_TOOLS_CONVERT_TORCH_H

#include "tools/convert/pickle.h"
#include "tools/convert/zip.h"

typedef const pickle_value *value;

enum { ACTIVATION_BYTES = 16 };

typedef struct {
  const char *path, *program; /* program: whose model it is, for messages */
  zip archive;
  pickle_arena arena;
  value root, constants; /* constants: NULL until torch_open_constants */
  bool package;          /* of torch.package */
} torch;

void torch_open_constants(torch *t);

/* ---- modules and their attributes ---- */

/* "conv.linear_1.weight": an attribute of an attribute; NULL if there is none. Parameters, buffers
   and modules are attributes, whether the file has them in dicts of their own or not. */
value maybe(value object, const char *path);
/* The dict of a module's modules, among other attributes; NULL if it is not a module. */
value modules_of(value object);
value attribute(const torch *t, value object, const char *path, pickle_kind kind);
double real_at(const torch *t, value object, const char *path);
int64_t whole_at(const torch *t, value object, const char *path);
/* ((multiplicity, (degree, parity)), ...), or objects made of these tuples. */
irreps irreps_at(const torch *t, value object, const char *path);
const char *class_of(value object);   /* "module name" */
const char *class_name(value object); /* the name alone */

void expect(const torch *t, bool good, value object, const char *what);
void expect_class(const torch *t, value object, const char *name); /* in any module */
void expect_flag(const torch *t, value object, const char *key, bool wanted);
void expect_irreps(const torch *t, value object, const char *path, const irreps *wanted);

/* Item i of a tuple or list, or of an object made of one; an integer in [0, limit). */
value item(const torch *t, value v, size_t i, pickle_kind kind);
int64_t whole_item(const torch *t, value v, size_t i, int64_t limit);

/* The name of the function of e3nn's normalize2mom, and *scale, which multiplies its value: from
   its attributes, or of TorchScript from its code, which is not run. */
void activation_of(torch *t, value act, char name[ACTIVATION_BYTES], double *scale);

/* ---- numbers ---- */

typedef struct {
  bool f64, whole; /* 8 bytes a number, else 4; whole: integers */
  int rank;
  int64_t shape[MAX_RANK], count;
  const unsigned char *data; /* little endian, row-major; valid until torch_close */
} weights;

weights weights_at(torch *t, value object, const char *path); /* of float or double */
weights numbers_at(torch *t, value object, const char *path); /* or of integers */
/* A number, NumPy's or not, or a tensor of one. */
double number_of(torch *t, value object, const char *path);
/* The same of a value that is not a tensor; false if it is none. */
bool plain_number(value v, double *x);
bool numpy_scalar(value v, double *x);
weights tensor_of(torch *t, value dict, const char *key); /* an entry of a dict */
double element(const weights *w, int64_t i);
/* The bytes of an entry; NULL if there is none. */
const char *entry_at(torch *t, const char *name, size_t *bytes);

/* ---- models ---- */

/* NequIP's: TorchScript of 0.5 and 0.6; a package or TorchScript of later ones; a checkpoint. */
void nequip_read_deployed(torch *t, model *out);
void nequip_read_modules(torch *t, model *out);
void nequip_read_checkpoint(torch *t, model *out);
void convert_sevennet(torch *t, const char *modality, model *out);
bool is_equflash(const torch *t);
void convert_equflash(torch *t, model *out);
bool is_esen(const torch *t);
void convert_esen(torch *t, const char *dataset, model *out);
void convert_mace(torch *t, value network, const char *head, model *out);

#endif
