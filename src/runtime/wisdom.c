/* src/runtime/wisdom.c - which schedules were measured to be best, as lines of text. */
#include "src/runtime/wisdom.h"
#include "src/base/cache_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_LINE = 1000,
  MAX_WORDS = 300,
  MAX_BYTES = 1 << 20
}; /* limits of a line, of its comment, and of a file, from which the oldest lines are dropped */

/* ---- lines ---- */

static const char words[] = "abcdefghijklmnopqrstuvwxyz_", hex[] = "0123456789abcdef",
                  digits[] = "0123456789", versions[] = "0123456789abcdefghijklmnopqrstuvwxyz.+-";

/* Skips between `least` and `most` allowed characters and the delimiter after them. */
static bool take(const char **s, const char *allowed, size_t least, size_t most, char after) {
  size_t n = strspn(*s, allowed);
  if (n < least || n > most || (*s)[n] != after) return false;
  *s += n + 1;
  return true;
}

static bool take_setting(const char **s) {
  if (!take(s, words, 1, 32, '=')) return false;
  *s += **s == '-';
  return take(s, digits, 1, 18, ' ');
}

/* Length of the words that identify a line, including the space after them; 0: not a line of
   wisdom. Lines end with '\n'. */
static size_t key_of(const char *line, size_t n) {
  static const char head[] = "clebsch2 ";
  const char *s = line + sizeof head - 1;
  if (n > MAX_LINE || strncmp(line, head, sizeof head - 1)) return 0;
  if (!take(&s, versions, 1, 32, ' ') || !take(&s, words, 1, 32, ':') ||
      !take(&s, hex, 32, 32, ' ') || !take(&s, hex, 32, 32, ' '))
    return 0;
  size_t key = (size_t)(s - line);
  while (*s != '#')
    if (!take_setting(&s)) return 0;
  while (*s >= ' ' && *s <= '~') s++;
  return s == line + n ? key : 0;
}

/* The next line from *at on, which is advanced; n: without its newline. Incomplete lines are
   ignored. */
static const char *next_line(const char *text, size_t bytes, size_t *at, size_t *n) {
  const char *line = text ? text + *at : NULL, *end = line ? memchr(line, '\n', bytes - *at) : NULL;
  if (!end) return NULL;
  *n = (size_t)(end - line);
  *at += *n + 1;
  return line;
}

/* The last line with this key; NULL: there is none. */
static const char *find_line(const clb_text *t, const char *key, size_t n_key) {
  const char *found = NULL, *line;
  size_t at = 0, n;
  while ((line = next_line(t->s, t->n, &at, &n)))
    if (n > n_key && !memcmp(line, key, n_key) && key_of(line, n) == n_key) found = line;
  return found;
}

/* A line and the words that identify it. */
typedef struct {
  const char *line;
  size_t key;
} keyed;

static int by_key(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  const int order = memcmp(x->line, y->line, x->key < y->key ? x->key : y->key);
  return order ? order : (x->key > y->key) - (x->key < y->key);
}

/* The valid lines, sorted by key, freed by the caller; NULL: no memory. */
static keyed *sorted_lines(const clb_text *t, size_t *count) {
  const char *line;
  size_t at = 0, n, most = 1;
  while (next_line(t->s, t->n, &at, &n)) most++;
  keyed *all = malloc(most * sizeof *all);
  *count = 0;
  for (at = 0; all && (line = next_line(t->s, t->n, &at, &n));)
    if ((all[*count].key = key_of(line, n))) all[(*count)++].line = line;
  if (all) qsort(all, *count, sizeof *all, by_key);
  return all;
}

/* Appends the valid lines of `from` that start with `start` to `to`, except those whose key is in
   `except`, in O(n log n). */
static int add_lines(const clb_text *from, const char *start, const clb_text *except,
                     clb_text *to) {
  const char *line;
  size_t at = 0, n, n_except = 0;
  int count = 0;
  keyed *others = except ? sorted_lines(except, &n_except) : NULL, one;
  if (except && !others) to->failed = true;
  while (!to->failed && (line = next_line(from->s, from->n, &at, &n))) {
    one = (keyed){line, key_of(line, n)};
    if (!one.key || strncmp(line, start, strlen(start)) != 0 ||
        (n_except && bsearch(&one, others, n_except, sizeof *others, by_key)))
      continue;
    clb_text_bytes(to, line, n + 1);
    count++;
  }
  free(others);
  return count;
}

/* Replaces lines with equal keys by the valid lines of `from`; returns how many there are. Without
   memory nothing changes and 0 is returned. */
static int merge(clb_text *into, const clb_text *from) {
  clb_text all = {0};
  add_lines(into, "", from, &all);
  int n = add_lines(from, "", NULL, &all);
  size_t skip = 0, line;
  while (all.n - skip > MAX_BYTES && next_line(all.s, all.n, &skip, &line)) {
  }
  if (all.failed) {
    clb_text_free(&all);
    return 0;
  }
  if (skip) memmove(all.s, all.s + skip, all.n + 1 - skip);
  all.n -= skip;
  clb_text_free(into);
  *into = all;
  return n;
}

/* ---- files ---- */

/* Reads a file as text that ends with a 0 byte; false: it cannot be read. */
static bool read_file(const char *path, clb_text *text) {
  FILE *f = fopen(path, "rb");
  char piece[4096];
  bool good = f != NULL;
  for (size_t n; f && text->n < MAX_BYTES && (n = fread(piece, 1, sizeof piece, f)) > 0;)
    clb_text_bytes(text, piece, n);
  if (f) good = !ferror(f), fclose(f);
  return good && !text->failed;
}

static void read_once(clb_context *ctx) {
  clb_text path = {0}, file = {0};
  if (!ctx->wisdom_read && clb_cache_path("wisdom", &path) && read_file(path.s, &file))
    merge(&ctx->wisdom, &file);
  ctx->wisdom_read = true;
  clb_text_free(&file);
  clb_text_free(&path);
}

/* Reads the file again first, because other contexts may have written to it. */
static void add_to_file(const clb_text *lines) {
  clb_text path = {0}, file = {0};
  if (clb_cache_path("wisdom", &path)) {
    read_file(path.s, &file);
    if (merge(&file, lines)) clb_cache_write(path.s, (const void *[]){file.s}, &file.n, 1);
  }
  clb_text_free(&file);
  clb_text_free(&path);
}

/* ---- keys ---- */

static void add_hash(const void *const *parts, const size_t *bytes, int n, clb_text *out) {
  clb_hash key = clb_hash_parts(parts, bytes, n);
  clb_text_add(out, "%016" PRIx64 "%016" PRIx64 " ", key.word[0], key.word[1]);
}

/* The common start of all lines for this device and version. */
static void add_device(const clb_device *d, clb_text *out) {
  const char *text[] = {d->backend->name, d->key, d->info.description ? d->info.description : "",
                        d->info.driver ? d->info.driver : ""};
  const void *parts[] = {text[0], text[1], text[2], text[3], &d->limits.units};
  size_t bytes[] = {strlen(text[0]), strlen(text[1]), strlen(text[2]), strlen(text[3]),
                    sizeof d->limits.units};
  clb_text_add(out, "clebsch2 " CLB_VERSION " %s:", d->backend->name);
  add_hash(parts, bytes, 5, out);
}

static void add_key(const clb_context *ctx, const clb_problem *p, clb_text *out) {
  const char *name = clb_kernel_kinds[p->kind]->name;
  add_device(ctx->device, out);
  add_hash((const void *[]){name, p}, (size_t[]){strlen(name), sizeof *p}, 2, out);
}

/* ---- one schedule ---- */

/* false: a name that no schedule of such problems has. */
static bool set_field(clb_choice *c, const clb_problem *p, const char *name, size_t n,
                      long long value) {
  if (n == strlen("estimate_ns") && !memcmp(name, "estimate_ns", n))
    return c->estimate_ns = value, true;
  if (n == strlen("ns") && !memcmp(name, "ns", n)) return c->ns = value, true;
  return clb_schedule_set(&c->schedule, clb_kernel_kinds[p->kind]->settings, name, n, value);
}

bool clb_wisdom_find(clb_context *ctx, const clb_problem *p, clb_choice *choice) {
  clb_text key = {0};
  read_once(ctx);
  add_key(ctx, p, &key);
  const char *s = key.failed ? NULL : find_line(&ctx->wisdom, key.s, key.n);
  bool good = s;
  *choice = (clb_choice){.measured = true};
  if (s) s += key.n;
  while (good && *s != '#') {
    size_t n = strspn(s, words);
    good = set_field(choice, p, s, n, strtoll(s + n + 1, NULL, 10));
    s += n + 1 + strcspn(s + n + 1, " ") + 1;
  }
  clb_text_free(&key);
  return good;
}

/* Other characters become blanks. */
static void add_words(const clb_problem *p, clb_text *out) {
  static const char *const passes[] = {"forward", "backward", "double_backward", "triple_backward"},
                           *const types[] = {"f32", "f64", "f16", "bf16"};
  const clb_kernel_kind *kind = clb_kernel_kinds[p->kind];
  clb_text t = {0};
  clb_text_add(&t, "%s %s %s ", kind->name, passes[p->pass], types[p->storage]);
  if (p->storage == CLB_F32 && p->arithmetic == CLB_F64) clb_text_add(&t, "in f64 ");
  kind->print(p, &t);
  for (size_t i = 0; t.s && i < t.n && i < MAX_WORDS; i++)
    clb_text_bytes(out, t.s[i] >= ' ' && t.s[i] <= '~' ? &t.s[i] : " ", 1);
  clb_text_free(&t);
}

void clb_wisdom_keep(clb_context *ctx, const clb_problem *p, const clb_choice *choice) {
  clb_text line = {0};
  read_once(ctx);
  add_key(ctx, p, &line);
  clb_text_add(&line, "estimate_ns=%" PRId64 " ns=%" PRId64 " ", choice->estimate_ns, choice->ns);
  clb_schedule_print(&choice->schedule, &line);
  clb_text_add(&line, " # ");
  add_words(p, &line);
  clb_text_add(&line, "\n");
  if (!line.failed && merge(&ctx->wisdom, &line)) add_to_file(&line);
  clb_text_free(&line);
}

/* ---- public calls ---- */

#define FAIL(...) clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, __VA_ARGS__)

clb_status clb_wisdom_export(clb_context *ctx, const char *path) {
  clb_text lines = {0}, device = {0};
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  if (!path) return FAIL("clb_wisdom_export: path is NULL");
  read_once(ctx);
  add_device(ctx->device, &device);
  if (!device.failed) add_lines(&ctx->wisdom, device.s, NULL, &lines);
  FILE *f = fopen(path, "wb");
  bool good = f && (!lines.n || fwrite(lines.s, 1, lines.n, f) == lines.n);
  if (f) good = !fclose(f) && good;
  if (device.failed || lines.failed)
    s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_wisdom_export: no memory");
  else if (!good) s = FAIL("clb_wisdom_export: '%s' cannot be written", path);
  clb_text_free(&lines);
  clb_text_free(&device);
  return s;
}

clb_status clb_wisdom_import(clb_context *ctx, const char *path) {
  clb_text file = {0}, lines = {0};
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  if (!path) return FAIL("clb_wisdom_import: path is NULL");
  read_once(ctx);
  if (!read_file(path, &file)) s = FAIL("clb_wisdom_import: '%s' cannot be read", path);
  else if (file.n && !add_lines(&file, "", NULL, &lines) && !lines.failed)
    s = FAIL("clb_wisdom_import: no line of '%s' is wisdom; clb_wisdom_export writes such files",
             path);
  else if (lines.failed || (lines.n && !merge(&ctx->wisdom, &lines)))
    s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_wisdom_import: no memory");
  else if (lines.n) add_to_file(&lines);
  clb_text_free(&file);
  clb_text_free(&lines);
  return s;
}

clb_status clb_wisdom_forget(clb_context *ctx) {
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  clb_text_free(&ctx->wisdom);
  ctx->wisdom_read = true;
  return CLB_OK;
}
