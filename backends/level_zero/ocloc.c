/* backends/level_zero/ocloc.c - Intel's offline compiler and disassembler, in this process and
   without files. */
#define _GNU_SOURCE
#include "backends/level_zero/level_zero.h"

#include "src/base/dl.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool clb_lz_ocloc_open(lz_ocloc *o) {
  static const char *const names[] = {"libocloc.so.1", "libocloc.so", NULL};
  static const clb_symbol symbols[] = {{"oclocInvoke", offsetof(lz_ocloc, invoke), false},
                                       {"oclocFreeOutput", offsetof(lz_ocloc, free_output), false}};
  o->library = clb_dl_open(names); /* never closed: its compilers do not survive being unloaded */
  if (o->library && clb_dl_symbols(o->library, symbols, 2, o)) o->library = NULL;
  return o->library != NULL;
}

typedef struct {
  uint32_t n;
  uint8_t **data;
  uint64_t *bytes;
  char **names;
} outputs;

/* Runs ocloc on at most one file, called "k". */
static int run(const lz_ocloc *o, const char **args, unsigned n_args, const void *file,
               size_t bytes, outputs *out) {
  const uint8_t *data = file;
  const uint64_t size = bytes;
  const char *name = "k";
  memset(out, 0, sizeof *out);
  return o->invoke(n_args, args, file ? 1 : 0, &data, &size, &name, 0, NULL, NULL, NULL, &out->n,
                   &out->data, &out->bytes, &out->names);
}

static void release(const lz_ocloc *o, outputs *out) {
  if (out->n) o->free_output(&out->n, &out->data, &out->bytes, &out->names);
}

static bool ends(const char *name, const char *with) {
  size_t n = strlen(name), w = strlen(with);
  return n >= w && !strcmp(name + n - w, with);
}

/* Index of the output whose name ends like this, or -1. */
static int find(const outputs *out, const char *with) {
  for (uint32_t i = 0; i < out->n; i++)
    if (ends(out->names[i], with)) return (int)i;
  return -1;
}

/* Appends ocloc's own message. */
static clb_status refused(const outputs *out, clb_error_sink *error, clb_status status) {
  int log = find(out, "stdout.log");
  if (log < 0) return status;
  return clb_fail_more(error, status, "\n%.*s",
                       (int)(out->bytes[log] < 1 << 20 ? out->bytes[log] : 1 << 20),
                       (const char *)out->data[log]);
}

clb_status clb_lz_ocloc_check(const lz_ocloc *o, const char *target, char *version, size_t size,
                              clb_error_sink *error) {
  const char *args[] = {"ocloc", "ids", target},
             *query[] = {"ocloc", "query", "OCL_DRIVER_VERSION"};
  outputs out;
  clb_status s = CLB_OK;
  if (run(o, args, 3, NULL, 0, &out))
    s = refused(&out, error,
                clb_fail(error, CLB_ERROR_DEVICE,
                         "level_zero@%s: ocloc does not know this device:", target));
  release(o, &out);
  if (s) return s;
  bool old = run(o, query, 3, NULL, 0, &out);
  int at = find(&out, "OCL_DRIVER_VERSION"),
      n = at < 0 || out.bytes[at] > 60 ? 0 : (int)out.bytes[at];
  while (n && ((const char *)out.data[at])[n - 1] <= ' ') n--;
  snprintf(version, size, "ocloc %.*s", n, old || !n ? "" : (const char *)out.data[at]);
  release(o, &out);
  return s;
}

/* The first ELF file in an archive of the kind `ar` writes: for each member a header of 60 bytes,
   with its size in decimal at 48. */
static const char *archived(const uint8_t *archive, size_t bytes, size_t *member) {
  size_t at = 8;
  if (bytes < at || memcmp(archive, "!<arch>\n", at)) return NULL;
  while (bytes - at >= 60) {
    char digits[11] = {0};
    memcpy(digits, archive + at + 48, 10);
    unsigned long long size = strtoull(digits, NULL, 10);
    at += 60;
    if (size > bytes - at) return NULL;
    if (size > SELFMAG && !memcmp(archive + at, ELFMAG, SELFMAG)) {
      *member = (size_t)size;
      return (const char *)archive + at;
    }
    at += (size_t)size + (size & 1);
    if (at > bytes) return NULL;
  }
  return NULL;
}

/* Passes a range of devices, from the target to itself: ocloc then writes messages to the log,
   whereas for a single device it writes to standard output if compilation fails. */
clb_status clb_lz_ocloc_compile(const lz_ocloc *o, const char *target, const clb_text *spirv,
                                const char *options, clb_text *binary, clb_error_sink *error) {
  char range[72];
  snprintf(range, sizeof range, "%s:%s", target, target);
  const char *args[] = {
      "ocloc", "compile", "-q",     "-spirv_input",      "-file",    "k",     "-device",
      range,   "-output", "binary", "-output_no_suffix", "--format", "zebin", "-options",
      options};
  outputs out;
  size_t bytes = 0;
  int code = run(o, args, sizeof args / sizeof *args, spirv->s, spirv->n, &out),
      at = find(&out, "binary");
  const char *elf = at < 0 ? NULL : archived(out.data[at], out.bytes[at], &bytes);
  clb_status s = CLB_OK;
  if (code || !elf)
    s = refused(&out, error,
                clb_fail(error, CLB_ERROR_COMPILE, "level_zero@%s: ocloc: error %d with options %s",
                         target, code, options));
  else clb_text_bytes(binary, elf, bytes);
  release(o, &out);
  return s;
}

/* ocloc opens its disassembler as libiga64.so, a name that only development packages have. After
   opening a copy of libiga64.so.N with the SONAME libiga64.so, the dynamic linker uses that copy
   for it. */
static void *open_renamed(const char *path, const char *soname) {
  void *copy = NULL;
  char self[40];
  struct stat s;
  int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("iga", MFD_CLOEXEC);
  if (from >= 0 && to >= 0 && !fstat(from, &s) && s.st_size > 0 && !ftruncate(to, s.st_size)) {
    size_t n = (size_t)s.st_size;
    char *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0), *name = NULL;
    if (bytes != MAP_FAILED && read(from, bytes, n) == s.st_size)
      name = memmem(bytes, n, soname, strlen(soname) + 1);
    if (name) name[strlen("libiga64.so")] = 0;
    if (bytes != MAP_FAILED) munmap(bytes, n);
    snprintf(self, sizeof self, "/proc/self/fd/%d", to);
    if (name) copy = dlopen(self, RTLD_NOW | RTLD_LOCAL);
  }
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  return copy;
}

static bool have_disassembler(void) {
  static const char *const names[] = {"libiga64.so.2", "libiga64.so.1"};
  if (dlopen("libiga64.so", RTLD_NOW | RTLD_LOCAL)) return true;
  for (int i = 0; i < 2; i++) {
    struct link_map *map;
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool open = library && !dlinfo(library, RTLD_DI_LINKMAP, &map) &&
                open_renamed(map->l_name, names[i]) && dlopen("libiga64.so", RTLD_NOW | RTLD_LOCAL);
    if (library) dlclose(library);
    if (open) return true;
  }
  return false;
}

bool clb_lz_ocloc_disassemble(const lz_ocloc *o, const char *target, const char *kernel,
                              const void *binary, size_t bytes, clb_text *assembly,
                              clb_text *description) {
  char of_elf[80], of_tokens[96]; /* the two binary formats name a kernel's assembly differently */

  const char *args[] = {"ocloc", "disasm", "-q", "-file", "k", "-device", target, "-dump", "d"};
  outputs out;
  if (bytes <= SELFMAG || memcmp(binary, ELFMAG, SELFMAG))
    return false; /* ocloc crashes on invalid binaries */
  if (!o->library || !have_disassembler()) return false;
  snprintf(of_elf, sizeof of_elf, ".text.%s.asm", kernel);
  snprintf(of_tokens, sizeof of_tokens, "%s_KernelHeap.asm", kernel);
  int code = run(o, args, sizeof args / sizeof *args, binary, bytes, &out), at = find(&out, of_elf),
      info = find(&out, ".ze_info");
  if (at < 0) at = find(&out, of_tokens);
  if (!code && at >= 0) clb_text_bytes(assembly, out.data[at], out.bytes[at]);
  if (!code && info >= 0) clb_text_bytes(description, out.data[info], out.bytes[info]);
  release(o, &out);
  return !code && at >= 0 && !assembly->failed && !description->failed;
}
