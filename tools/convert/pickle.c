/* tools/convert/pickle.c - reads a pickle that PyTorch wrote into values: a restricted
   interpreter that executes nothing.

   The opcodes are those of protocols 2 and 3 that PyTorch writes.  A value costs a bounded number
   of bytes, the numbers of values and memo entries are limited, and there is no recursion: a pickle
   of n bytes takes O(n) time and memory. */
#include "tools/convert/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

enum { MAX_PICKLE = 8 << 20, MAX_VALUES = 2000000, MAX_GLOBAL = 256 };

/* ---- memory ---- */

typedef struct pickle_block {
  struct pickle_block *next;
} pickle_block;

void *pickle_memory(pickle_arena *arena, size_t bytes) {
  pickle_block *block = allocate(1, sizeof *block + bytes);
  block->next = arena->blocks;
  arena->blocks = block;
  return block + 1;
}

void pickle_free(pickle_arena *arena) {
  for (pickle_block *next; arena->blocks; arena->blocks = next) {
    next = arena->blocks->next;
    free(arena->blocks);
  }
}

/* ---- the machine ---- */

typedef struct {
  pickle_arena *arena;
  const char *path, *name;
  const unsigned char *start, *at, *end;
  pickle_value **stack, **memo;
  size_t *marks; /* stack heights */
  size_t height, stack_cap, n_memo, memo_cap, n_marks, marks_cap;
} machine;

#define WRONG(m, ...) fail_model((m)->path, __VA_ARGS__)

static const unsigned char *next(machine *m, size_t n) {
  if ((size_t)(m->end - m->at) < n) WRONG(m, "pickle '%s' ends too early", m->name);
  m->at += n;
  return m->at - n;
}

static uint32_t next_number(machine *m, int bytes) {
  const unsigned char *p = next(m, (size_t)bytes);
  uint32_t x = 0;
  while (bytes-- > 0) x = x << 8 | p[bytes];
  return x;
}

/* Grows an array by one element; it is freed at the end. */
static void *grown(void *array, size_t n, size_t *cap, size_t size) {
  if (n < *cap) return array;
  *cap = *cap ? 2 * *cap : 64;
  void *more = realloc(array, *cap * size);
  if (!more) fatal("out of memory");
  return more;
}

static size_t bottom(const machine *m) { /* the lowest height to which the stack may be popped */
  return m->n_marks ? m->marks[m->n_marks - 1] : 0;
}

static pickle_value *pop(machine *m) {
  if (m->height == bottom(m))
    WRONG(m, "pickle '%s' takes from an empty stack at byte %td", m->name, m->at - m->start - 1);
  return m->stack[--m->height];
}

static void push(machine *m, pickle_value *v) {
  m->stack = grown(m->stack, m->height, &m->stack_cap, sizeof *m->stack);
  m->stack[m->height++] = v;
}

static pickle_value *push_new(machine *m, pickle_kind kind) {
  if (++m->arena->values > MAX_VALUES)
    WRONG(m, "pickle '%s' makes more than %d values", m->name, MAX_VALUES);
  pickle_value *v = pickle_memory(m->arena, sizeof *v);
  v->kind = kind;
  push(m, v);
  return v;
}

static pickle_value *popped(machine *m, pickle_kind kind, const char *what) {
  pickle_value *v = pop(m);
  if (v->kind != kind)
    WRONG(m, "pickle '%s' has no %s before byte %td", m->name, what, m->at - m->start - 1);
  return v;
}

static void append(machine *m, pickle_value *v, const pickle_value *item) {
  if (v->n == v->cap) {
    const size_t cap = v->cap ? 2 * v->cap : 4;
    const pickle_value **items = pickle_memory(m->arena, cap * sizeof *items);
    if (v->n) memcpy(items, v->items, v->n * sizeof *items);
    v->items = items;
    v->cap = cap;
  }
  v->items[v->n++] = item;
}

/* Pops the values since the innermost mark and removes the mark; *n: how many. */
static pickle_value **since_mark(machine *m, size_t *n) {
  if (!m->n_marks)
    WRONG(m, "pickle '%s' lacks a mark before byte %td", m->name, m->at - m->start - 1);
  const size_t from = m->marks[--m->n_marks];
  *n = m->height - from;
  m->height = from;
  return m->stack + from;
}

/* ---- opcodes ---- */

static void op_protocol(machine *m, int unused) {
  (void)unused;
  const uint32_t version = next_number(m, 1);
  if (version != 2 && version != 3)
    WRONG(m, "pickle '%s' is of protocol %u, not 2 or 3", m->name, version);
}

static void op_mark(machine *m, int unused) {
  (void)unused;
  m->marks = grown(m->marks, m->n_marks, &m->marks_cap, sizeof *m->marks);
  m->marks[m->n_marks++] = m->height;
}

static void op_empty(machine *m, int kind) { push_new(m, (pickle_kind)kind); }

static void op_bool(machine *m, int value) { push_new(m, PICKLE_BOOL)->whole = value; }

static void op_whole(machine *m, int bytes) {
  const uint32_t x = next_number(m, bytes);
  push_new(m, PICKLE_WHOLE)->whole = bytes == 4 ? (int32_t)x : (int64_t)x;
}

static void op_real(machine *m, int unused) {
  (void)unused;
  const unsigned char *p = next(m, 8);
  uint64_t word = 0;
  for (int i = 0; i < 8; i++) word = word << 8 | p[i];
  memcpy(&push_new(m, PICKLE_REAL)->real, &word, 8);
}

static void push_text(machine *m, pickle_kind kind, const unsigned char *bytes, size_t n) {
  char *text = pickle_memory(m->arena, n + 1);
  memcpy(text, bytes, n);
  pickle_value *v = push_new(m, kind);
  v->text = text;
  v->n = n;
}

static void op_text(machine *m, int unused) {
  (void)unused;
  const uint32_t n = next_number(m, 4);
  const unsigned char *bytes = next(m, n);
  push_text(m, memchr(bytes, 0, n) ? PICKLE_BYTES : PICKLE_TEXT, bytes, n);
}

static void op_bytes(machine *m, int bytes) {
  const uint32_t n = next_number(m, bytes);
  push_text(m, PICKLE_BYTES, next(m, n), n);
}

static void op_put(machine *m, int bytes) {
  const uint32_t i = next_number(m, bytes);
  if (m->height == bottom(m)) WRONG(m, "pickle '%s' remembers what is not there", m->name);
  if (i > m->n_memo)
    WRONG(m, "pickle '%s' leaves gaps in its memo: %u after %zu", m->name, i, m->n_memo);
  if (i == m->n_memo) m->memo = grown(m->memo, m->n_memo++, &m->memo_cap, sizeof *m->memo);
  m->memo[i] = m->stack[m->height - 1];
}

static void op_get(machine *m, int bytes) {
  const uint32_t i = next_number(m, bytes);
  if (i >= m->n_memo) WRONG(m, "pickle '%s' asks for %u of a memo of %zu", m->name, i, m->n_memo);
  push(m, m->memo[i]);
}

static void op_tuple(machine *m, int n) { /* n < 0: all values since the mark */
  size_t count = (size_t)n;
  pickle_value *items[3], **from = items;
  if (n < 0) from = since_mark(m, &count);
  else
    for (int i = n; i-- > 0;) items[i] = pop(m);
  const pickle_value **kept = pickle_memory(m->arena, count * sizeof *kept);
  for (size_t i = 0; i < count; i++) kept[i] = from[i];
  pickle_value *tuple = push_new(m, PICKLE_TUPLE);
  tuple->items = kept;
  tuple->n = tuple->cap = count;
}

/* Appends to the list, or sets an item of the dict, below the `n` values on top. */
static void op_append_one(machine *m, int n) {
  pickle_value *last = pop(m), *key = n == 2 ? pop(m) : NULL,
               *to = popped(m, n == 2 ? PICKLE_DICT : PICKLE_LIST, n == 2 ? "dict" : "list");
  if (key) append(m, to, key);
  append(m, to, last);
  push(m, to);
}

static void op_append(machine *m, int kind) { /* moves the values since the mark into the list or
                                                 dict below it */
  size_t n;
  pickle_value **from = since_mark(m, &n),
               *to = popped(m, (pickle_kind)kind, kind == PICKLE_LIST ? "list" : "dict");
  if (kind == PICKLE_DICT && n % 2) WRONG(m, "pickle '%s' has a key without a value", m->name);
  for (size_t i = 0; i < n; i++) append(m, to, from[i]);
  push(m, to);
}

/* ---- globals ---- */

static size_t line(machine *m) {
  const unsigned char *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
  if (!end || end - m->at > MAX_GLOBAL)
    WRONG(m, "pickle '%s' has a global without an end at byte %td", m->name, m->at - m->start);
  return (size_t)(end - m->at);
}

static void op_global(machine *m, int unused) {
  (void)unused;
  char name[2 * MAX_GLOBAL + 2];
  global_use use;
  size_t n = line(m);
  memcpy(name, next(m, n + 1), n);
  name[n++] = ' ';
  const size_t more = line(m);
  memcpy(name + n, next(m, more + 1), more);
  name[n += more] = 0;
  if (strlen(name) != n || !find_global(name, &use)) /* a 0 byte would hide the rest */
    WRONG(m, "pickle '%s' asks for '%s', which no model needs", m->name, name);
  push_text(m, PICKLE_GLOBAL, (const unsigned char *)name, n);
}

static global_use use_of(machine *m, const pickle_value *global) {
  global_use use;
  if (global->kind != PICKLE_GLOBAL || !find_global(global->text, &use))
    WRONG(m, "pickle '%s' calls what is not a function", m->name);
  return use;
}

static bool is(const pickle_value *tuple, size_t i, pickle_kind kind) {
  return i < tuple->n && tuple->items[i]->kind == kind;
}

/* Tuples are immutable, so the result shares its items. */
static void op_storage(machine *m, int unused) {
  (void)unused;
  pickle_value *id = popped(m, PICKLE_TUPLE, "tuple");
  bool good = id->n == 5 && is(id, 0, PICKLE_TEXT) && !strcmp(id->items[0]->text, "storage");
  good = good && is(id, 1, PICKLE_GLOBAL) && is(id, 4, PICKLE_WHOLE) &&
         (is(id, 2, PICKLE_TEXT) || is(id, 2, PICKLE_WHOLE));
  if (!good || use_of(m, id->items[1]) != STORAGE_TYPE)
    WRONG(m, "pickle '%s' has a storage that is not supported", m->name);
  pickle_value *storage = push_new(m, PICKLE_STORAGE);
  storage->items = id->items;
  storage->n = id->n;
}

/* An object of these arguments that is not built yet. */
static void push_object(machine *m, const pickle_value *class, const pickle_value *arguments) {
  pickle_value *object = push_new(m, PICKLE_OBJECT);
  append(m, object, class);
  append(m, object, arguments);
}

static void op_new(machine *m, int unused) {
  (void)unused;
  pickle_value *arguments = popped(m, PICKLE_TUPLE, "tuple"),
               *class = popped(m, PICKLE_GLOBAL, "class");
  const global_use use = use_of(m, class);
  if (use != RECORD && (use != CLASS || arguments->n))
    WRONG(m, "pickle '%s' makes an object of '%s'", m->name, class->text);
  push_object(m, class, arguments);
}

static void op_build(machine *m, int unused) {
  (void)unused;
  pickle_value *state = pop(m), *object = pop(m);
  if (object->kind == PICKLE_DICT) { /* attributes of an OrderedDict */
    push(m, object);
    return;
  }
  if (object->kind != PICKLE_OBJECT ||
      (state->kind != PICKLE_DICT && use_of(m, object->items[0]) == CLASS))
    WRONG(m, "pickle '%s' has no %s before byte %td", m->name,
          object->kind == PICKLE_OBJECT ? "dict" : "object", m->at - m->start - 1);
  if (object->n != 2) WRONG(m, "pickle '%s' builds an object twice", m->name);
  append(m, object, state);
  push(m, object);
}

static void op_call(machine *m, int unused) {
  (void)unused;
  pickle_value *arguments = popped(m, PICKLE_TUPLE, "tuple"),
               *function = popped(m, PICKLE_GLOBAL, "function");
  const global_use use = use_of(m, function);
  if (use == SAME && arguments->n >= 1) push(m, (pickle_value *)arguments->items[0]);
  else if (use == MAKES_DICT && !arguments->n) push_new(m, PICKLE_DICT);
  else if (use == RECORD) push_object(m, function, arguments);
  else if (use == MAKES_TENSOR && is(arguments, 0, PICKLE_STORAGE) &&
           is(arguments, 1, PICKLE_WHOLE) && is(arguments, 2, PICKLE_TUPLE) &&
           is(arguments, 3, PICKLE_TUPLE)) {
    pickle_value *tensor = push_new(m, PICKLE_TENSOR);
    tensor->items = arguments->items;
    tensor->n = arguments->n;
  } else
    WRONG(m, "pickle '%s' calls '%s' with arguments that are not supported", m->name,
          function->text);
}

enum { STOP = '.' };
static const struct {
  unsigned char code;
  void (*run)(machine *m, int argument);
  int argument;
} opcodes[] = {{0x80, op_protocol, 0},
               {'(', op_mark, 0},
               {'N', op_empty, PICKLE_NONE},
               {0x88, op_bool, 1},
               {0x89, op_bool, 0},
               {'K', op_whole, 1},
               {'M', op_whole, 2},
               {'J', op_whole, 4},
               {'G', op_real, 0},
               {'X', op_text, 0},
               {'B', op_bytes, 4},
               {'C', op_bytes, 1},
               {'q', op_put, 1},
               {'r', op_put, 4},
               {'h', op_get, 1},
               {'j', op_get, 4},
               {')', op_empty, PICKLE_TUPLE},
               {'t', op_tuple, -1},
               {0x85, op_tuple, 1},
               {0x86, op_tuple, 2},
               {0x87, op_tuple, 3},
               {']', op_empty, PICKLE_LIST},
               {'a', op_append_one, 1},
               {'s', op_append_one, 2},
               {'e', op_append, PICKLE_LIST},
               {'}', op_empty, PICKLE_DICT},
               {'u', op_append, PICKLE_DICT},
               {'c', op_global, 0},
               {'Q', op_storage, 0},
               {0x81, op_new, 0},
               {'R', op_call, 0},
               {'b', op_build, 0}};

static void step(machine *m, unsigned char code) {
  size_t i = 0;
  while (i < sizeof opcodes / sizeof *opcodes && opcodes[i].code != code) i++;
  if (i == sizeof opcodes / sizeof *opcodes)
    WRONG(m, "pickle '%s' has opcode 0x%02x at byte %td, which no model needs", m->name, code,
          m->at - m->start - 1);
  opcodes[i].run(m, opcodes[i].argument);
}

const pickle_value *pickle_read(pickle_arena *arena, const char *path, const char *name,
                                const unsigned char *bytes, size_t n) {
  machine m = {
      .arena = arena, .path = path, .name = name, .start = bytes, .at = bytes, .end = bytes + n};
  if (n > MAX_PICKLE) WRONG(&m, "pickle '%s' has more than %d bytes", name, MAX_PICKLE);
  m.stack = grown(NULL, 0, &m.stack_cap,
                  sizeof *m.stack); /* never NULL, even if 0 values are taken from it */
  for (unsigned char code; (code = *next(&m, 1)) != STOP;) step(&m, code);
  if (m.n_marks || m.height != 1)
    WRONG(&m, "pickle '%s' ends with %zu values, not with one", name, m.height);
  const pickle_value *result = pop(&m);
  free(m.stack);
  free(m.memo);
  free(m.marks);
  return result;
}

const pickle_value *pickle_entry(const pickle_value *dict, const char *key) {
  if (dict->kind != PICKLE_DICT) return NULL;
  for (size_t i = dict->n / 2; i-- > 0;)
    if (dict->items[2 * i]->kind == PICKLE_TEXT && !strcmp(dict->items[2 * i]->text, key))
      return dict->items[2 * i + 1];
  return NULL;
}
