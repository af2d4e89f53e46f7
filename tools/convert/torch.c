/* tools/convert/torch.c - PyTorch's archives as values. */
#define _GNU_SOURCE /* memmem */
#include "tools/convert/torch.h"

#include <stdio.h>
#include <string.h>

/* ---- values ---- */

static value state_of(value object) {
  return object && object->kind == PICKLE_OBJECT && object->n == 3 ? object->items[2] : NULL;
}

value modules_of(value object) {
  value state = state_of(object), inner = state ? pickle_entry(state, "_modules") : NULL;
  return inner ? inner : state;
}

static value entry_of(value object, const char *key) {
  static const char *const dicts[] = {"_parameters", "_buffers", "_modules"};
  value state = state_of(object), found = state ? pickle_entry(state, key) : NULL;
  for (int i = 0; i < 3 && state && !found; i++) {
    value dict = pickle_entry(state, dicts[i]);
    found = dict ? pickle_entry(dict, key) : NULL;
  }
  return found;
}

value maybe(value object, const char *path) {
  char key[NAME_BYTES];
  for (size_t n; object && *path; path += n + (path[n] == '.')) {
    n = strcspn(path, ".");
    snprintf(key, sizeof key, "%.*s", (int)n, path);
    object = entry_of(object, key);
  }
  return object;
}

const char *class_of(value object) {
  return object && object->kind == PICKLE_OBJECT ? object->items[0]->text : "no object";
}

const char *class_name(value object) { return strrchr(class_of(object), ' ') + 1; }

value attribute(const torch *t, value object, const char *path, pickle_kind kind) {
  value v = maybe(object, path);
  if (!v)
    fail_model(t->path, "'%s' lacks '%s': not a model of %s of a supported kind", class_of(object),
               path, t->program);
  if (v->kind != kind)
    fail_model(t->path, "'%s' of '%s' is of another type than %s's", path, class_of(object),
               t->program);
  return v;
}

double real_at(const torch *t, value object, const char *path) {
  return attribute(t, object, path, PICKLE_REAL)->real;
}

int64_t whole_at(const torch *t, value object, const char *path) {
  return attribute(t, object, path, PICKLE_WHOLE)->whole;
}

void expect(const torch *t, bool good, value object, const char *what) {
  if (!good) fail_model(t->path, "'%s': %s", class_of(object), what);
}

void expect_flag(const torch *t, value object, const char *key, bool wanted) {
  if (attribute(t, object, key, PICKLE_BOOL)->whole != wanted)
    fail_model(t->path, "'%s' has %s = %s, which is not supported", class_of(object), key,
               wanted ? "False" : "True");
}

void expect_class(const torch *t, value object, const char *name) {
  if (strcmp(class_name(object), name) != 0)
    fail_model(t->path, "'%s' stands where %s was expected", class_of(object), name);
}

/* The tuple that an object of a subclass of tuple was made of, or a named tuple's items; else the
   value itself. */
static value untyped(value v) {
  if (v->kind != PICKLE_OBJECT) return v;
  return v->items[1]->n == 1 ? v->items[1]->items[0] : v->items[1];
}

value item(const torch *t, value v, size_t i, pickle_kind kind) {
  v = untyped(v);
  if ((v->kind != PICKLE_TUPLE && v->kind != PICKLE_LIST) || i >= v->n ||
      untyped(v->items[i])->kind != kind)
    fail_model(t->path, "a tuple is not what %s writes", t->program);
  return untyped(v->items[i]);
}

int64_t whole_item(const torch *t, value v, size_t i, int64_t limit) {
  const int64_t x = item(t, v, i, PICKLE_WHOLE)->whole;
  if (x < 0 || x >= limit)
    fail_model(t->path, "a number of a tuple is %lld, not from 0 to %lld", (long long)x,
               (long long)limit - 1);
  return x;
}

/* Multiplicity, degree and parity of a term: in tuples, or attributes of cuEquivariance's. */
static void term_of(const torch *t, value list, size_t i, int64_t term[3]) {
  static const char *const names[] = {"mul", "ir.l", "ir.p"};
  if (list->items[i]->kind == PICKLE_OBJECT && maybe(list->items[i], "mul")) {
    for (int k = 0; k < 3; k++) term[k] = whole_at(t, list->items[i], names[k]);
    return;
  }
  value pair = item(t, list, i, PICKLE_TUPLE), ir = item(t, pair, 1, PICKLE_TUPLE);
  term[0] = item(t, pair, 0, PICKLE_WHOLE)->whole;
  for (size_t k = 0; k < 2; k++) term[k + 1] = item(t, ir, k, PICKLE_WHOLE)->whole;
}

irreps irreps_at(const torch *t, value object, const char *path) {
  value given = maybe(object, path), terms = maybe(given, "_mulirreps"),
        list = terms   ? terms
               : given ? untyped(given)
                       : NULL;
  irreps out = {.n = 0};
  if (!list || list->kind != PICKLE_TUPLE)
    fail_model(t->path, "'%s' of '%s' are not irreps", path, class_of(object));
  for (size_t i = 0; i < list->n; i++) {
    int64_t x[3];
    term_of(t, list, i, x);
    if (out.n == MAX_TERMS || (x[2] != 1 && x[2] != -1) || x[0] < 0 || x[0] > MAX_CHANNELS ||
        x[1] < 0 || x[1] > MAX_DEGREE)
      fail_model(t->path, "'%s' of '%s' are not irreps", path, class_of(object));
    out.term[out.n++] = (irrep){(int)x[0], (int)x[1], (int)x[2]};
  }
  return out;
}

static bool equal_irreps(const irreps *a, const irreps *b) {
  if (a->n != b->n) return false;
  for (int i = 0; i < a->n; i++)
    if (!same_irrep(a->term[i], b->term[i]) || a->term[i].mul != b->term[i].mul) return false;
  return true;
}

void expect_irreps(const torch *t, value object, const char *path, const irreps *wanted) {
  irreps found = irreps_at(t, object, path);
  if (!equal_irreps(&found, wanted))
    fail_model(t->path, "'%s' of '%s' do not fit their neighbours", path, class_of(object));
}

/* ---- tensors ---- */

/* What a storage's elements are. */
static const struct {
  const char *name;
  bool f64, whole;
} storages[] = {{"torch DoubleStorage", true, false},
                {"torch FloatStorage", false, false},
                {"torch LongStorage", true, true},
                {"torch IntStorage", false, true}};

static weights typed_weights(const torch *t, value tensor, const char *name) {
  const char *type = tensor->items[0]->items[1]->text;
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
    if (!strcmp(type, storages[i].name))
      return (weights){.f64 = storages[i].f64, .whole = storages[i].whole};
  fail_model(t->path, "tensor '%s' is a %s, not of numbers", name, type);
}

/* Row-major, whatever its strides are. */
static unsigned char *gathered(torch *t, const weights *w, const int64_t *steps) {
  const int64_t size = w->f64 ? 8 : 4;
  unsigned char *copy = pickle_memory(&t->arena, (size_t)(w->count * size));
  for (int64_t i = 0; i < w->count; i++) {
    int64_t at = 0, rest = i;
    for (int k = w->rank; k-- > 0; rest /= w->shape[k]) at += rest % w->shape[k] * steps[k];
    memcpy(copy + i * size, w->data + at * size, (size_t)size);
  }
  return copy;
}

static weights weights_of(torch *t, value tensor, const char *folder, const char *name) {
  value storage = tensor->items[0], shape = tensor->items[2], stride = tensor->items[3],
        key = storage->items[2];
  weights w = typed_weights(t, tensor, name);
  char entry[NAME_BYTES];
  size_t bytes;
  int64_t steps[MAX_RANK], reach = 1; /* reach: elements from the first to the last */
  bool contiguous = true;
  if (shape->n > MAX_RANK || stride->n != shape->n)
    fail_model(t->path, "tensor '%s' has %zu dimensions, not at most %d", name, shape->n, MAX_RANK);
  w.rank = (int)shape->n;
  w.count = 1;
  for (int i = w.rank; i-- > 0;) {
    const int64_t extent = item(t, shape, (size_t)i, PICKLE_WHOLE)->whole;
    if (extent < 0 || extent > INT32_MAX || w.count > INT32_MAX || reach > INT64_MAX / 4)
      fail_model(t->path, "tensor '%s' is too large", name);
    const int64_t step = item(t, stride, (size_t)i, PICKLE_WHOLE)->whole;
    if (step < 0 || step > INT32_MAX)
      fail_model(t->path, "tensor '%s' has strides out of range", name);
    contiguous &= extent == 1 || step == w.count;
    steps[i] = step;
    reach += extent ? (extent - 1) * step : 0;
    w.shape[i] = extent;
    w.count *= extent;
  }
  const int length =
      key->kind == PICKLE_WHOLE /* in a package */
          ? snprintf(entry, sizeof entry, ".data/%lld.storage", (long long)key->whole)
          : snprintf(entry, sizeof entry, "%s/%s", folder, key->text);
  if (length >= (int)sizeof entry || !(w.data = zip_find(&t->archive, entry, &bytes)))
    fail_model(t->path, "there is no entry '%s' for tensor '%s'", entry, name);
  const int64_t size = w.f64 ? 8 : 4, available = (int64_t)bytes / size,
                offset = tensor->items[1]->whole;
  if (offset < 0 || offset > available || (w.count && reach > available - offset))
    fail_model(t->path, "tensor '%s' reaches beyond its entry '%s' of %zu bytes", name, entry,
               bytes);
  w.data += offset * size;
  if (contiguous) return w;
  if (w.count > available)
    fail_model(t->path, "tensor '%s' has more numbers than its entry '%s'", name, entry);
  w.data = gathered(t, &w, steps);
  return w;
}

weights numbers_at(torch *t, value object, const char *path) {
  return weights_of(t, attribute(t, object, path, PICKLE_TENSOR), "data", path);
}

static weights not_whole(const torch *t, weights w, const char *name) {
  if (w.whole) fail_model(t->path, "tensor '%s' is of integers, not of float or double", name);
  return w;
}

weights weights_at(torch *t, value object, const char *path) {
  return not_whole(t, numbers_at(t, object, path), path);
}

weights tensor_of(torch *t, value dict, const char *key) {
  value v = pickle_entry(dict, key);
  if (!v || v->kind != PICKLE_TENSOR) fail_model(t->path, "'%s' is not a tensor", key);
  return not_whole(t, weights_of(t, v, "data", key), key);
}

double element(const weights *w, int64_t i) {
  uint64_t word = 0;
  if (!w->whole) return number_at(w->data, w->f64, i);
  for (int bytes = w->f64 ? 8 : 4, k = bytes; k-- > 0;) word = word << 8 | w->data[bytes * i + k];
  return w->f64 ? (double)(int64_t)word : (double)(int32_t)(uint32_t)word;
}

bool plain_number(value v, double *x) {
  if (v->kind == PICKLE_REAL) *x = v->real;
  else if (v->kind == PICKLE_WHOLE) *x = (double)v->whole;
  else return numpy_scalar(v, x);
  return true;
}

double number_of(torch *t, value object, const char *path) {
  value v = maybe(object, path);
  double x;
  if (v && plain_number(v, &x)) return x;
  const weights w = numbers_at(t, object, path);
  if (w.count != 1) fail_model(t->path, "'%s' of '%s' is not one number", path, class_of(object));
  return element(&w, 0);
}

static weights constant_at(torch *t, size_t i) {
  return not_whole(t,
                   weights_of(t, item(t, t->constants, i, PICKLE_TENSOR), "constants", "constant"),
                   "constant");
}

/* ---- the archive ---- */

const char *entry_at(torch *t, const char *name, size_t *bytes) {
  return (const char *)zip_find(&t->archive, name, bytes);
}

static value pickle_at(torch *t, const char *name) {
  size_t n;
  const unsigned char *bytes = zip_find(&t->archive, name, &n);
  if (!bytes) fail_model(t->path, "a zip archive, but not one of PyTorch's: it has no '%s'", name);
  return pickle_read(&t->arena, t->path, name, bytes, n);
}

static void torch_open(torch *t, const source_file *in) {
  static const char package[] = "model/eager_model.pkl";
  size_t n;
  *t = (torch){.path = in->path};
  zip_open(&t->archive, in);
  zip_enter(&t->archive);
  if (zip_find(&t->archive, "archive_format", &n))
    fail_model(t->path, "compiled code (AOTInductor: .pt2), which holds no description of the "
                        "model: convert the package (.nequip.zip) or the checkpoint (.ckpt) that "
                        "it was compiled from");
  t->package = zip_find(&t->archive, package, &n) != NULL;
  t->root = pickle_at(t, t->package ? package : "data.pkl");
}

void torch_open_constants(torch *t) { t->constants = pickle_at(t, "constants.pkl"); }

static void torch_close(torch *t) {
  pickle_free(&t->arena);
  zip_close(&t->archive);
}

/* ---- activations ---- */

/* Finds in a module's code: torch.mul(torch.NAME(x), CONSTANTS.cI). */
static bool parse_activation(const char *code, size_t n, char name[ACTIVATION_BYTES],
                             unsigned *constant) {
  static const char start[] = "torch.mul(torch.";
  char piece[64];
  int used = 0;
  const char *at = memmem(code, n, start, sizeof start - 1);
  if (!at || memmem(at + 1, n - (size_t)(at + 1 - code), start, sizeof start - 1)) return false;
  at += sizeof start - 1;
  n -= (size_t)(at - code);
  snprintf(piece, sizeof piece, "%.*s", (int)(n < sizeof piece ? n : sizeof piece - 1), at);
  return sscanf(piece, "%15[a-z](x), CONSTANTS.c%3u)%n", name, constant, &used) == 2 && used;
}

void activation_of(torch *t, value act, char name[ACTIVATION_BYTES], double *scale) {
  char entry[5 + 2 * NAME_BYTES];
  size_t bytes;
  unsigned constant = 0;
  expect_class(t, act, "normalize2mom");
  value function = maybe(act, "f");
  if (function && function->kind == PICKLE_GLOBAL) {
    snprintf(name, ACTIVATION_BYTES, "%s", strchr(function->text, ' ') + 1);
    *scale = number_of(t, act, "cst");
    return;
  }
  snprintf(entry, sizeof entry, "code/%.*s.py", (int)strcspn(class_of(act), " "), class_of(act));
  for (char *s = entry; s + 3 < entry + strlen(entry); s++)
    if (*s == '.') *s = '/';
  const char *code = entry_at(t, entry, &bytes);
  expect(t, code && parse_activation(code, bytes, name, &constant), act,
         "an activation that is not supported");
  if (!t->constants) torch_open_constants(t);
  const weights w = constant_at(t, constant);
  expect(t, w.count == 1, act, "the constant of an activation is not one number");
  *scale = element(&w, 0);
}

/* ---- the format ---- */

static const char zip_start[] = "PK\3\4", old_start[] = "\x80\2\x8a\n"; /* before PyTorch 1.6 */

bool starts_as_torch(const void *bytes) {
  return !memcmp(bytes, zip_start, 4) || !memcmp(bytes, old_start, 4);
}

bool is_torch(const source_file *in) { return in->n >= 4 && starts_as_torch(in->bytes); }

static bool is_from(value object, const char *program) {
  const char *name = class_of(object);
  if (!strncmp(name, "__torch__.", 10)) name += 10;
  return !strncmp(name, program, strlen(program));
}

void convert_torch(const source_file *in, model *out) {
  torch t;
  if (!memcmp(in->bytes, old_start, 4))
    fail_model(in->path, "saved in PyTorch's format of before 1.6: load it with PyTorch, and "
                         "torch.save it again");
  torch_open(&t, in);
  value inner = maybe(t.root, "model"); /* of programs that wrap MACE's module */
  if (t.package || !strcmp(class_name(t.root), "GraphModel")) nequip_read_modules(&t, out);
  else if (pickle_entry(t.root, "hyper_parameters")) nequip_read_checkpoint(&t, out);
  else if (is_equflash(&t)) convert_equflash(&t, out);
  else if (is_esen(&t)) convert_esen(&t, in->choice.modality, out);
  else if (t.root->kind == PICKLE_DICT) convert_sevennet(&t, in->choice.modality, out);
  else if (is_from(inner, "mace.")) convert_mace(&t, inner, in->choice.head, out);
  else if (is_from(t.root, "mace.")) convert_mace(&t, t.root, in->choice.head, out);
  else if (is_from(t.root, "sevenn."))
    fail_model(t.path, "a SevenNet model that was deployed for LAMMPS: convert its checkpoint");
  else nequip_read_deployed(&t, out);
  torch_close(&t);
}
