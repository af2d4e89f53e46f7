/* tests/amd/code_object.c - a code object's segments, its kernel descriptors, and the note that
   describes the kernels' arguments. */
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/amd/amd.h"

static bool no(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool no(char *error, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error, size, format, args);
  va_end(args);
  return false;
}

/* ---- the note: MessagePack ---- */

typedef struct {
  const unsigned char *b;
  size_t at, n;
  bool bad;
} reader;

typedef struct {
  enum { NUMBER, TEXT, LIST, MAP, OTHER } kind;
  uint64_t n; /* the number, or the length */
  const char *text;
} item;

static uint64_t big(reader *r, size_t bytes) {
  uint64_t v = 0;
  if (r->bad || bytes > r->n - r->at) return r->bad = true, 0;
  while (bytes--) v = v << 8 | r->b[r->at++];
  return v;
}

static item text_of(reader *r, uint64_t n) {
  item i = {TEXT, n, (const char *)r->b + r->at};
  if (r->bad || n > r->n - r->at) return r->bad = true, (item){OTHER, 0, ""};
  r->at += n;
  return i;
}

static item next(reader *r) {
  unsigned t = (unsigned)big(r, 1);
  if (t < 0x80) return (item){NUMBER, t, ""};
  if (t < 0x90) return (item){MAP, t & 15, ""};
  if (t < 0xa0) return (item){LIST, t & 15, ""};
  if (t < 0xc0) return text_of(r, t & 31);
  if (t >= 0xcc && t <= 0xcf) return (item){NUMBER, big(r, (size_t)1 << (t - 0xcc)), ""};
  if (t >= 0xd0 && t <= 0xd3) return (item){NUMBER, big(r, (size_t)1 << (t - 0xd0)), ""};
  if (t >= 0xd9 && t <= 0xdb) return text_of(r, big(r, (size_t)1 << (t - 0xd9)));
  if (t == 0xdc || t == 0xdd) return (item){LIST, big(r, t == 0xdc ? 2 : 4), ""};
  if (t == 0xde || t == 0xdf) return (item){MAP, big(r, t == 0xde ? 2 : 4), ""};
  if (t >= 0xc0 && t != 0xc1 && (t < 0xc4 || t >= 0xe0)) return (item){OTHER, t, ""};
  return r->bad = true, (item){OTHER, 0, ""};
}

static bool is(item i, const char *text) {
  return i.kind == TEXT && i.n == strlen(text) && !memcmp(i.text, text, i.n);
}

static void skip(reader *r) {
  item i = next(r);
  for (uint64_t k = 0;
       !r->bad && (i.kind == LIST || i.kind == MAP) && k < (i.kind == MAP ? 2 : 1) * i.n; k++)
    skip(r);
}

static void read_argument(reader *r, amd_kernel *k) {
  item map = next(r);
  amd_argument a = {0};
  for (uint64_t i = 0; !r->bad && i < map.n; i++) {
    item key = next(r);
    if (is(key, ".offset")) a.offset = (uint32_t)next(r).n;
    else if (is(key, ".size")) a.size = (uint32_t)next(r).n;
    else if (is(key, ".value_kind")) {
      item kind = next(r);
      r->bad |= kind.n >= 6 && !memcmp(kind.text, "hidden", 6); /* our kernels have none */
    } else skip(r);
  }
  if (k->n_arguments == (int)(sizeof k->arguments / sizeof *k->arguments)) r->bad = true;
  else k->arguments[k->n_arguments++] = a;
}

static void read_kernel(reader *r, amd_kernel *k) {
  item map = next(r);
  for (uint64_t i = 0; !r->bad && i < map.n; i++) {
    item key = next(r);
    if (is(key, ".name")) {
      item name = next(r);
      if (name.n >= sizeof k->name) r->bad = true;
      else memcpy(k->name, name.text, name.n);
    } else if (is(key, ".max_flat_workgroup_size")) k->threads = (int)next(r).n;
    else if (is(key, ".args")) {
      item list = next(r);
      for (uint64_t j = 0; !r->bad && j < list.n; j++) read_argument(r, k);
    } else skip(r);
  }
}

bool amd_read_note(amd_module *m, const unsigned char *note, size_t bytes, char *error,
                   size_t size) {
  reader r = {note, 0, bytes, false};
  item map = next(&r);
  for (uint64_t i = 0; !r.bad && i < map.n; i++) {
    if (!is(next(&r), "amdhsa.kernels")) {
      skip(&r);
      continue;
    }
    item list = next(&r);
    if (list.n > 1024) r.bad = true;
    else m->kernels = calloc(list.n ? list.n : 1, sizeof *m->kernels);
    for (uint64_t k = 0; m->kernels && !r.bad && k < list.n; k++)
      read_kernel(&r, &m->kernels[m->n_kernels++]);
  }
  return (!r.bad && m->n_kernels) ||
         no(error, size,
            "the code object's note cannot be read, or its kernels have hidden arguments");
}

/* ---- ELF ---- */

enum {
  MACHINE_GFX90A = 0x3f,
  MACHINE_GFX942 = 0x4c,
  MACHINE_GFX1100 = 0x41,
  NOTE_METADATA = 32,
  WAVE32 = 0x400
};

static bool find_target(amd_module *m, unsigned flags, char *error, size_t size) {
  unsigned machine = flags & 0xff;
  const char *name = machine == MACHINE_GFX90A    ? "gfx90a"
                     : machine == MACHINE_GFX942  ? "gfx942"
                     : machine == MACHINE_GFX1100 ? "gfx1100"
                                                  : NULL;
  if (!name)
    return no(error, size, "the code object is for a machine (%#x) that is not emulated", machine);
  snprintf(m->target, sizeof m->target, "%s", name);
  m->wide = machine != MACHINE_GFX1100;
  return true;
}

static bool read_notes(amd_module *m, const unsigned char *b, size_t bytes, char *error,
                       size_t size) {
  for (size_t at = 0; at + 12 <= bytes;) {
    uint32_t head[3];
    memcpy(head, b + at, sizeof head);
    size_t name = at + 12, data = name + ((head[0] + 3u) & ~3u);
    if (data + head[1] > bytes) break;
    if (head[2] == NOTE_METADATA && head[0] == 7 && !memcmp(b + name, "AMDGPU", 7))
      return amd_read_note(m, b + data, head[1], error, size);
    at = data + ((head[1] + 3u) & ~3u);
  }
  return no(error, size, "the code object has no note of its kernels");
}

static bool read_segments(amd_module *m, const unsigned char *b, const Elf64_Ehdr *h, char *error,
                          size_t size) {
  Elf64_Phdr p;
  for (int i = 0; i < h->e_phnum; i++) {
    memcpy(&p, b + h->e_phoff + (size_t)i * sizeof p, sizeof p);
    if (p.p_type == PT_LOAD && p.p_vaddr + p.p_memsz > m->bytes) m->bytes = p.p_vaddr + p.p_memsz;
  }
  m->image = calloc(1, m->bytes + 1);
  if (!m->image) return no(error, size, "no memory for the code object");
  for (int i = 0; i < h->e_phnum; i++) {
    memcpy(&p, b + h->e_phoff + (size_t)i * sizeof p, sizeof p);
    if (p.p_type == PT_LOAD) memcpy(m->image + p.p_vaddr, b + p.p_offset, p.p_filesz);
    if (p.p_type == PT_NOTE && !m->kernels &&
        !read_notes(m, b + p.p_offset, p.p_filesz, error, size))
      return false;
  }
  return m->kernels || no(error, size, "the code object has no notes");
}

/* The descriptor that the symbol NAME.kd names. */
static void read_descriptor(amd_module *m, const char *symbol, uint64_t at) {
  size_t n = strlen(symbol);
  for (int k = 0; k < m->n_kernels; k++) {
    amd_kernel *kernel = &m->kernels[k];
    if (n < 3 || strlen(kernel->name) != n - 3 || memcmp(kernel->name, symbol, n - 3) ||
        strcmp(symbol + n - 3, ".kd") || at + 64 > m->bytes)
      continue;
    const unsigned char *d = m->image + at;
    uint16_t properties;
    memcpy(&kernel->lds, d, 4);
    memcpy(&kernel->scratch, d + 4, 4);
    memcpy(&kernel->kernarg, d + 8, 4);
    memcpy(&kernel->entry, d + 16, 8);
    kernel->entry += at;
    memcpy(&kernel->rsrc3, d + 44, 4);
    memcpy(&kernel->rsrc1, d + 48, 4);
    memcpy(&kernel->rsrc2, d + 52, 4);
    memcpy(&properties, d + 56, 2);
    kernel->properties = properties;
  }
}

static bool read_sections(amd_module *m, const unsigned char *b, const Elf64_Ehdr *h, char *error,
                          size_t size) {
  Elf64_Shdr s, names;
  Elf64_Sym symbol;
  for (int i = 0; i < h->e_shnum; i++) {
    memcpy(&s, b + h->e_shoff + (size_t)i * sizeof s, sizeof s);
    if (s.sh_type == SHT_RELA && s.sh_size)
      return no(error, size, "the code object has relocations, which are not emulated");
    if (s.sh_type != SHT_DYNSYM) continue;
    memcpy(&names, b + h->e_shoff + s.sh_link * sizeof names, sizeof names);
    for (size_t k = 0; k < s.sh_size / sizeof symbol; k++) {
      memcpy(&symbol, b + s.sh_offset + k * sizeof symbol, sizeof symbol);
      read_descriptor(m, (const char *)b + names.sh_offset + symbol.st_name, symbol.st_value);
    }
  }
  for (int k = 0; k < m->n_kernels; k++) {
    const amd_kernel *kernel = &m->kernels[k];
    if (!kernel->entry)
      return no(error, size, "the code object has no descriptor of %s", kernel->name);
    if (!(kernel->properties & WAVE32) != m->wide)
      return no(error, size, "%s: its waves are not as wide as those of %s", kernel->name,
                m->target);
  }
  return true;
}

bool amd_read_elf(amd_module *m, const unsigned char *b, char *error, size_t size) {
  Elf64_Ehdr h;
  memcpy(&h, b, sizeof h);
  if (memcmp(b, ELFMAG, SELFMAG) || h.e_phentsize != sizeof(Elf64_Phdr) ||
      h.e_shentsize != sizeof(Elf64_Shdr))
    return no(error, size, "the code object is not ELF");
  return find_target(m, h.e_flags, error, size) && read_segments(m, b, &h, error, size) &&
         read_sections(m, b, &h, error, size);
}

/* ---- whole ---- */

static size_t bytes_of(const unsigned char *b) {
  Elf64_Ehdr h;
  memcpy(&h, b, sizeof h);
  return h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
}

/* hiprtc may wrap it in a bundle: its entries are offset, size, length of the target's name, the
   name. */
static const unsigned char *unwrap(const unsigned char *b) {
  static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
  uint64_t n, head[3];
  if (memcmp(b, magic, 24)) return b;
  memcpy(&n, b + 24, 8);
  for (size_t at = 32; n--; at += 24 + head[2]) {
    memcpy(head, b + at, sizeof head);
    if (head[2] > 6 && !memcmp(b + at + 24, "hip", 3)) return b + head[0];
  }
  return b;
}

amd_module *amd_load(const void *binary, char *error, size_t size) {
  const unsigned char *b = unwrap(binary);
  amd_module *m = calloc(1, sizeof *m);
  if (!m) return no(error, size, "no memory for a module"), NULL;
  bool good = amd_read_elf(m, b, error, size) && amd_decode(m, b, bytes_of(b), error, size);
  if (good && !machine_lend(m->image, m->bytes)) good = no(error, size, "no memory for a module");
  if (good) return m;
  amd_unload(m);
  return NULL;
}

void amd_unload(amd_module *m) {
  if (!m) return;
  machine_take_back(m->image);
  for (int i = 0; i < m->n_ins; i++) free(m->ins[i].pair);
  free(m->ins);
  free(m->words);
  free(m->rows);
  free(m->listing);
  free(m->kernels);
  free(m->image);
  free(m);
}
