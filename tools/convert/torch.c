/* tools/convert/torch.c - PyTorch's archives as values. */
#include "tools/convert/torch.h"

#include <stdio.h>
#include <string.h>

/* ---- values ---- */

static value entry_of(value object, const char *key) {
  return object && object->kind == PICKLE_OBJECT && object->n == 2
             ? pickle_entry(object->items[1], key)
             : NULL;
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

value attribute(const torch *t, value object, const char *path, pickle_kind kind) {
  value v = maybe(object, path);
  if (!v)
    refuse(t->path, "'%s' lacks '%s': not a NequIP model of a supported kind", class_of(object),
           path);
  if (v->kind != kind)
    refuse(t->path, "'%s' of '%s' is of another type than NequIP's", path, class_of(object));
  return v;
}

double real_at(const torch *t, value object, const char *path) {
  return attribute(t, object, path, PICKLE_REAL)->real;
}

int64_t whole_at(const torch *t, value object, const char *path) {
  return attribute(t, object, path, PICKLE_WHOLE)->whole;
}

void expect(const torch *t, bool good, value object, const char *what) {
  if (!good) refuse(t->path, "'%s': %s", class_of(object), what);
}

void expect_flag(const torch *t, value object, const char *key, bool wanted) {
  if (attribute(t, object, key, PICKLE_BOOL)->whole != wanted)
    refuse(t->path, "'%s' has %s = %s, which is not understood", class_of(object), key,
           wanted ? "False" : "True");
}

void expect_class(const torch *t, value object, const char *name) {
  const char *space = strchr(class_of(object), ' ');
  if (!space || strcmp(space + 1, name) != 0)
    refuse(t->path, "'%s' stands where %s was expected", class_of(object), name);
}

value item(const torch *t, value v, size_t i, pickle_kind kind) {
  if ((v->kind != PICKLE_TUPLE && v->kind != PICKLE_LIST) || i >= v->n || v->items[i]->kind != kind)
    refuse(t->path, "a tuple is not what NequIP writes");
  return v->items[i];
}

int64_t whole_item(const torch *t, value v, size_t i, int64_t limit) {
  const int64_t x = item(t, v, i, PICKLE_WHOLE)->whole;
  if (x < 0 || x >= limit)
    refuse(t->path, "a number of a tuple is %lld, not from 0 to %lld", (long long)x,
           (long long)limit - 1);
  return x;
}

irreps irreps_at(const torch *t, value object, const char *path) {
  value list = attribute(t, object, path, PICKLE_TUPLE);
  irreps out = {.n = 0};
  for (size_t i = 0; i < list->n; i++) {
    value pair = item(t, list, i, PICKLE_TUPLE), ir = item(t, pair, 1, PICKLE_TUPLE);
    const int64_t parity = item(t, ir, 1, PICKLE_WHOLE)->whole;
    if (out.n == MAX_TERMS || (parity != 1 && parity != -1))
      refuse(t->path, "'%s' of '%s' are no irreps", path, class_of(object));
    out.term[out.n++] = (irrep){(int)whole_item(t, pair, 0, MAX_CHANNELS + 1),
                                (int)whole_item(t, ir, 0, MAX_DEGREE + 1), (int)parity};
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
    refuse(t->path, "'%s' of '%s' do not fit their neighbours", path, class_of(object));
}

/* ---- tensors ---- */

static weights weights_of(torch *t, value tensor, const char *folder, const char *name) {
  value storage = tensor->items[0], shape = tensor->items[2], stride = tensor->items[3];
  const char *type = storage->items[1]->text, *key = storage->items[2]->text;
  weights w = {.f64 = !strcmp(type, "torch DoubleStorage"), .rank = (int)shape->n, .count = 1};
  char entry[NAME_BYTES];
  size_t bytes;
  int64_t steps[MAX_RANK], reach = 1; /* reach: elements from the first to the last */
  bool contiguous = true;
  if (!w.f64 && strcmp(type, "torch FloatStorage") != 0)
    refuse(t->path, "tensor '%s' is a %s, not of float or double", name, type);
  if (shape->n > MAX_RANK || stride->n != shape->n)
    refuse(t->path, "tensor '%s' has %zu dimensions, not at most %d", name, shape->n, MAX_RANK);
  for (int i = w.rank; i-- > 0;) {
    const int64_t extent = item(t, shape, (size_t)i, PICKLE_WHOLE)->whole;
    if (extent < 0 || extent > INT32_MAX || w.count > INT32_MAX)
      refuse(t->path, "tensor '%s' is too large", name);
    const int64_t step = item(t, stride, (size_t)i, PICKLE_WHOLE)->whole;
    if (step < 0 || step > INT32_MAX) refuse(t->path, "tensor '%s' has strides out of range", name);
    contiguous &= extent == 1 || step == w.count;
    steps[i] = step;
    reach += extent ? (extent - 1) * step : 0;
    w.shape[i] = extent;
    w.count *= extent;
  }
  if (snprintf(entry, sizeof entry, "%s/%s", folder, key) >= (int)sizeof entry ||
      !(w.data = zip_find(&t->archive, entry, &bytes)))
    refuse(t->path, "there is no entry '%s/%s' for tensor '%s'", folder, key, name);
  const int64_t size = w.f64 ? 8 : 4, available = (int64_t)bytes / size,
                offset = tensor->items[1]->whole;
  if (offset < 0 || offset > available || (w.count && reach > available - offset))
    refuse(t->path, "tensor '%s' reaches beyond its entry '%s' of %zu bytes", name, entry, bytes);
  w.data += offset * size;
  if (contiguous) return w;
  if (w.count > available)
    refuse(t->path, "tensor '%s' has more numbers than its entry '%s'", name, entry);
  unsigned char *copy = pickle_memory(&t->arena, (size_t)(w.count * size));
  for (int64_t i = 0; i < w.count; i++) {
    int64_t at = 0, rest = i;
    for (int k = w.rank; k-- > 0; rest /= w.shape[k]) at += rest % w.shape[k] * steps[k];
    memcpy(copy + i * size, w.data + at * size, (size_t)size);
  }
  w.data = copy;
  return w;
}

weights weights_at(torch *t, value object, const char *path) {
  return weights_of(t, attribute(t, object, path, PICKLE_TENSOR), "data", path);
}

weights tensor_of(torch *t, value dict, const char *key) {
  value v = pickle_entry(dict, key);
  if (!v || v->kind != PICKLE_TENSOR) refuse(t->path, "'%s' is no tensor", key);
  return weights_of(t, v, "data", key);
}

double element(const weights *w, int64_t i) { return number_at(w->data, w->f64, i); }

weights constant_at(torch *t, size_t i) {
  return weights_of(t, item(t, t->constants, i, PICKLE_TENSOR), "constants", "constant");
}

/* ---- the archive ---- */

const char *entry_at(torch *t, const char *name, size_t *bytes) {
  return (const char *)zip_find(&t->archive, name, bytes);
}

static value pickle_at(torch *t, const char *name) {
  size_t n;
  const unsigned char *bytes = zip_find(&t->archive, name, &n);
  if (!bytes) refuse(t->path, "a zip archive, but not one of PyTorch's: it has no '%s'", name);
  return pickle_read(&t->arena, t->path, name, bytes, n);
}

void torch_open(torch *t, const source_file *in) {
  *t = (torch){.path = in->path};
  zip_open(&t->archive, in);
  t->root = pickle_at(t, "data.pkl");
}

void torch_open_constants(torch *t) { t->constants = pickle_at(t, "constants.pkl"); }

void torch_close(torch *t) {
  pickle_free(&t->arena);
  zip_close(&t->archive);
}

/* ---- the format ---- */

bool is_torch(const source_file *in) { return in->n >= 4 && !memcmp(in->bytes, "PK\3\4", 4); }

void convert_torch(const source_file *in, model *out) {
  torch t;
  torch_open(&t, in);
  if (t.root->kind == PICKLE_DICT) convert_sevennet(&t, in->modality, out);
  else convert_nequip(&t, out);
  torch_close(&t);
}
