/* tools/convert/zip.c - the entries of a zip archive in memory, stored or deflated. */
#include "tools/convert/zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tools/cli/tool.h"

/* Sizes of the fixed parts of the records; the last one is followed by the archive's comment. */
enum {
  LOCAL_BYTES = 30,
  ENTRY_BYTES = 46,
  END_BYTES = 22,
  MAX_COMMENT = 0xffff,
  MAX_UNPACKED = 64 << 20
};
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };

static unsigned word16(const unsigned char *p) { return (unsigned)p[0] | (unsigned)p[1] << 8; }

static uint32_t word32(const unsigned char *p) { return word16(p) | (uint32_t)word16(p + 2) << 16; }

static bool signed_as(const unsigned char *p, unsigned char a, unsigned char b) {
  return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

/* Finds the end-of-directory record. */
static size_t find_end(const source_file *in) {
  for (size_t comment = 0; comment <= MAX_COMMENT && in->n >= END_BYTES + comment; comment++) {
    const unsigned char *p = in->bytes + in->n - END_BYTES - comment;
    if (signed_as(p, 5, 6) && word16(p + 20) == comment) return (size_t)(p - in->bytes);
  }
  fail_model(in->path, "a zip archive without its end: cut short?");
}

/* Reads one entry of the directory in bytes [at, end) and returns where the next one starts. */
static size_t read_entry(const source_file *in, size_t at, size_t end, zip_entry *e) {
  const unsigned char *p = in->bytes + at;
  if (end - at < ENTRY_BYTES || !signed_as(p, 1, 2))
    fail_model(in->path, "the zip archive's directory is wrong at byte %zu", at);
  *e = (zip_entry){.name = (const char *)p + ENTRY_BYTES,
                   .name_bytes = word16(p + 28),
                   .packed = word32(p + 20),
                   .bytes = word32(p + 24),
                   .local = word32(p + 42),
                   .method = word16(p + 10),
                   .crc = word32(p + 16)};
  const size_t whole = ENTRY_BYTES + e->name_bytes + word16(p + 30) + word16(p + 32);
  if (end - at < whole)
    fail_model(in->path, "the zip archive's directory is wrong at byte %zu", at);
  if (word16(p + 8) & ENCRYPTED)
    fail_model(in->path, "entry '%.*s' is encrypted", (int)e->name_bytes, e->name);
  if (e->packed == UINT32_MAX || e->bytes == UINT32_MAX || e->local == UINT32_MAX)
    fail_model(in->path, "the zip archive has 64-bit sizes");
  return at + whole;
}

/* Finds the data through the entry's local header, which must agree with the directory; all data
   are before the directory. */
static void locate(const source_file *in, zip_entry *e, size_t directory) {
  const unsigned char *p = in->bytes + e->local;
  const int n = (int)e->name_bytes;
  if (e->local > directory || directory - e->local < LOCAL_BYTES || !signed_as(p, 3, 4))
    fail_model(in->path, "entry '%.*s' has no header where the directory says", n, e->name);
  e->at = e->local + LOCAL_BYTES + word16(p + 26) + word16(p + 28);
  if (e->at > directory || word16(p + 26) != e->name_bytes ||
      memcmp(p + LOCAL_BYTES, e->name, e->name_bytes) != 0 || word16(p + 8) != e->method)
    fail_model(in->path, "entry '%.*s' and its header disagree", n, e->name);
  if (e->packed > directory - e->at)
    fail_model(in->path, "entry '%.*s' reaches beyond its end", n, e->name);
  if (e->method != STORED && e->method != DEFLATED)
    fail_model(in->path, "entry '%.*s' is packed by method %u, not stored or deflated", n, e->name,
               e->method);
  if (e->method == STORED && e->packed != e->bytes)
    fail_model(in->path, "entry '%.*s' is stored, but has two sizes", n, e->name);
}

static int by_place(const void *a, const void *b) {
  const zip_entry *x = a, *y = b;
  return (x->local > y->local) - (x->local < y->local);
}

static int by_name(const void *a, const void *b) {
  const zip_entry *x = *(const zip_entry *const *)a, *y = *(const zip_entry *const *)b;
  const size_t n = x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes;
  const int order = memcmp(x->name, y->name, n);
  return order ? order : (x->name_bytes > y->name_bytes) - (x->name_bytes < y->name_bytes);
}

static void check_overlaps(zip *z) {
  qsort(z->entries, (size_t)z->n, sizeof *z->entries, by_place);
  for (int i = 1; i < z->n; i++) {
    const zip_entry *before = &z->entries[i - 1], *e = &z->entries[i];
    if (before->at + before->packed > e->local)
      fail_model(z->in->path, "entry '%.*s' overlaps another", (int)e->name_bytes, e->name);
  }
}

static void check_names(const zip *z) {
  const zip_entry **sorted = allocate((size_t)z->n, sizeof *sorted);
  for (int i = 0; i < z->n; i++) sorted[i] = &z->entries[i];
  qsort(sorted, (size_t)z->n, sizeof *sorted, by_name);
  for (int i = 1; i < z->n; i++)
    if (!by_name(&sorted[i - 1], &sorted[i]))
      fail_model(z->in->path, "entry '%.*s' is there twice", (int)sorted[i]->name_bytes,
                 sorted[i]->name);
  free(sorted);
}

void zip_open(zip *z, const source_file *in) {
  const size_t end = find_end(in);
  const unsigned char *p = in->bytes + end;
  const size_t directory = word32(p + 16), bytes = word32(p + 12);
  *z = (zip){.in = in, .n = (int)word16(p + 10)};
  if (directory > end || bytes > end - directory)
    fail_model(in->path, "the zip archive's directory reaches beyond the end");
  z->entries = allocate((size_t)z->n, sizeof *z->entries);
  size_t at = directory;
  for (int i = 0; i < z->n; i++) at = read_entry(in, at, directory + bytes, &z->entries[i]);
  if (at != directory + bytes)
    fail_model(in->path, "the zip archive's directory has more bytes than entries");
  for (int i = 0; i < z->n; i++) locate(in, &z->entries[i], directory);
  check_overlaps(z);
  check_names(z);
}

void zip_enter(zip *z) {
  const zip_entry *first = &z->entries[0];
  const char *slash = z->n ? memchr(first->name, '/', first->name_bytes) : NULL;
  if (!slash)
    fail_model(z->in->path,
               "a zip archive, but not one of TorchScript: its entries lie in no folder");
  z->top = (size_t)(slash - first->name) + 1;
  for (int i = 1; i < z->n; i++)
    if (z->entries[i].name_bytes < z->top || memcmp(z->entries[i].name, first->name, z->top) != 0)
      fail_model(z->in->path,
                 "a zip archive, but not one of TorchScript: its entries lie in several folders");
}

void zip_close(zip *z) {
  for (int i = 0; i < z->n; i++) free(z->entries[i].unpacked);
  free(z->entries);
  *z = (zip){0};
}

static void inflate_entry(zip *z, zip_entry *e) {
  z_stream s = {
      .next_in = z->in->bytes + e->at, .avail_in = (uInt)e->packed, .avail_out = (uInt)e->bytes};
  if (e->bytes > MAX_UNPACKED - z->unpacked)
    fail_model(z->in->path, "entry '%.*s' would unpack to %zu bytes: more than %d in all",
               (int)e->name_bytes, e->name, e->bytes, MAX_UNPACKED);
  z->unpacked += e->bytes;
  s.next_out = e->unpacked = allocate(e->bytes, 1);
  if (inflateInit2(&s, -MAX_WBITS) != Z_OK) fatal("out of memory");
  const int status = inflate(&s, Z_FINISH);
  inflateEnd(&s);
  if (status != Z_STREAM_END || s.avail_in || s.avail_out)
    fail_model(z->in->path, "entry '%.*s' does not unpack to its %zu bytes", (int)e->name_bytes,
               e->name, e->bytes);
}

const unsigned char *zip_find(zip *z, const char *name, size_t *bytes) {
  const size_t n = strlen(name);
  zip_entry *e = z->entries, *end = e + z->n;
  while (e < end && (e->name_bytes != z->top + n || memcmp(e->name + z->top, name, n) != 0)) e++;
  if (e == end) return NULL;
  if (e->method == DEFLATED && !e->unpacked) inflate_entry(z, e);
  const unsigned char *data = e->unpacked ? e->unpacked : z->in->bytes + e->at;
  if (crc32_z(0, data, e->bytes) != e->crc)
    fail_model(z->in->path, "entry '%s' is damaged: its sum is wrong", name);
  *bytes = e->bytes;
  return data;
}
