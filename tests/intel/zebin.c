/* tests/intel/zebin.c - what Intel's compiler writes: sections of an ELF file, and .ze_info, which
   describes the kernel. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/intel/intel.h"

const char *intel_section(const void *elf, size_t bytes, const char *begin, char *name,
                          size_t name_size, size_t *section_bytes) {
  const char *file = elf;
  Elf64_Ehdr head;
  Elf64_Shdr names, s;
  if (bytes < sizeof head || memcmp(file, ELFMAG, SELFMAG)) return NULL;
  memcpy(&head, file, sizeof head);
  if (head.e_shoff > bytes || (size_t)head.e_shnum * sizeof s > bytes - head.e_shoff ||
      head.e_shstrndx >= head.e_shnum)
    return NULL;
  memcpy(&names, file + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
  if (names.sh_offset > bytes || names.sh_size > bytes - names.sh_offset || !names.sh_size ||
      file[names.sh_offset + names.sh_size - 1])
    return NULL;
  for (int k = 0; k < head.e_shnum; k++) {
    memcpy(&s, file + head.e_shoff + (size_t)k * sizeof s, sizeof s);
    if (s.sh_name >= names.sh_size || s.sh_offset > bytes || s.sh_size > bytes - s.sh_offset)
      continue;
    const char *found = file + names.sh_offset + s.sh_name;
    if (strncmp(found, begin, strlen(begin)) != 0) continue;
    snprintf(name, name_size, "%s", found + strlen(begin));
    *section_bytes = s.sh_size;
    return file + s.sh_offset;
  }
  return NULL;
}

/* ---- .ze_info: YAML, one key a line ---- */

/* The value of a line "key: value" or "- key: value"; NULL: another line. */
static const char *value_of(const char *line, const char *key) {
  line += strspn(line, " -");
  size_t n = strlen(key);
  if (strncmp(line, key, n) != 0 || line[n] != ':') return NULL;
  line += n + 1;
  return line + strspn(line, " [");
}

static bool kind_of(const char *type, intel_argument *a) {
  static const struct {
    const char *name;
    uint8_t what;
  } kinds[] = {{"arg_bypointer", ARGUMENT},         {"arg_byvalue", ARGUMENT},
               {"global_id_offset", ZEROS},         {"local_size", GROUP_SIZE},
               {"enqueued_local_size", GROUP_SIZE}, {"private_base_stateless", RUBBISH}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    if (!strcmp(type, kinds[k].name)) return a->what = kinds[k].what, true;
  return false;
}

typedef enum { KERNEL, PAYLOAD_ARGUMENTS, THREAD_ARGUMENTS, BUFFERS, OTHER, BEHIND } part;

/* Behind our kernel may stand one that only lists symbols. */
static part part_of(const intel_kernel *k, const char *line, part now) {
  const char *name = strncmp(line, "  - name:", 9) ? NULL : value_of(line, "name");
  if (now == BEHIND || (name && strcmp(name, k->name) != 0)) return BEHIND;
  if (!strncmp(line, "    payload_arguments:", 22)) return PAYLOAD_ARGUMENTS;
  if (!strncmp(line, "    per_thread_payload_arguments:", 33)) return THREAD_ARGUMENTS;
  if (!strncmp(line, "    per_thread_memory_buffers:", 30)) return BUFFERS;
  if (!strncmp(line, "    execution_env:", 18)) return KERNEL;
  return line[0] != ' ' || (!strncmp(line, "    ", 4) && line[4] != ' ') ? OTHER : now;
}

static bool payload_line(intel_kernel *k, const char *line, char *error, size_t size) {
  const char *v = value_of(line, "arg_type");
  if (v) {
    if (k->n_arguments == INTEL_ARGUMENTS || !kind_of(v, &k->arguments[k->n_arguments]))
      return snprintf(error, size, "%s: argument of unknown type %s", k->name, v), false;
    k->arguments[k->n_arguments++].index = -1;
    return true;
  }
  if (!k->n_arguments) return true;
  intel_argument *a = &k->arguments[k->n_arguments - 1];
  if ((v = value_of(line, "offset"))) a->offset = (uint32_t)strtoul(v, NULL, 10);
  if ((v = value_of(line, "size"))) a->size = (uint32_t)strtoul(v, NULL, 10);
  if ((v = value_of(line, "arg_index"))) a->index = atoi(v);
  return true;
}

/* Local ids come as 192 bytes a thread, or not at all. */
static bool thread_line(intel_kernel *k, const char *line, char *error, size_t size) {
  const char *type = value_of(line, "arg_type"), *offset = value_of(line, "offset"),
             *n = value_of(line, "size");
  if (type) k->local_ids = true;
  if ((type && strcmp(type, "local_id") != 0) || (offset && atoi(offset)) || (n && atoi(n) != 192))
    return snprintf(error, size, "%s: unknown payload of a thread: %s", k->name, line), false;
  return true;
}

static void environment_line(intel_kernel *k, const char *line) {
  const struct {
    const char *key;
    uint32_t *to;
  } keys[] = {{"grf_count", &k->registers},
              {"simd_size", &k->lanes},
              {"slm_size", &k->local_bytes},
              {"required_work_group_size", &k->group_size}};
  for (size_t n = 0; n < sizeof keys / sizeof *keys; n++) {
    const char *v = value_of(line, keys[n].key);
    if (v) *keys[n].to = (uint32_t)strtoul(v, NULL, 10);
  }
}

static bool info_line(intel_kernel *k, part where, const char *line, char *error, size_t size) {
  const char *v;
  switch (where) {
    case PAYLOAD_ARGUMENTS: return payload_line(k, line, error, size);
    case THREAD_ARGUMENTS: return thread_line(k, line, error, size);
    case KERNEL: environment_line(k, line); return true;
    case BUFFERS:
      if ((v = value_of(line, "size"))) k->scratch_bytes += (uint32_t)strtoul(v, NULL, 10);
      return true;
    default: return true;
  }
}

bool intel_describe(intel_kernel *k, const char *text, size_t bytes, char *error, size_t size) {
  char line[256];
  part where = OTHER;
  for (const char *s = text, *end = text + bytes, *stop; s < end; s = stop + 1) {
    stop = memchr(s, '\n', (size_t)(end - s));
    if (!stop) stop = end;
    snprintf(line, sizeof line, "%.*s", (int)(stop - s), s);
    for (size_t n = strlen(line); n && line[n - 1] == ' '; n--) line[n - 1] = 0;
    where = part_of(k, line, where);
    if (!info_line(k, where, line, error, size)) return false;
  }
  for (int a = 0; a < k->n_arguments; a++) {
    uint32_t end = k->arguments[a].offset + k->arguments[a].size;
    if (end > k->payload_bytes) k->payload_bytes = end;
  }
  k->payload_bytes = (k->payload_bytes + 31) & ~31u; /* the local ids lie behind it */
  if (k->lanes != INTEL_SUBGROUP)
    return snprintf(error, size, "%s: sub-groups of %u lanes, not of %d", k->name, k->lanes,
                    INTEL_SUBGROUP),
           false;
  if (k->registers != 128 && k->registers != 256)
    return snprintf(error, size, "%s: %u registers", k->name, k->registers), false;
  return true;
}

/* ---- the whole ---- */

intel_kernel *intel_load(const void *elf, size_t bytes, char *error, size_t size) {
  size_t code_bytes, info_bytes;
  char rest[8];
  intel_kernel *k = calloc(1, sizeof *k);
  if (!k) return snprintf(error, size, "no memory for a kernel"), NULL;
  const char *code = intel_section(elf, bytes, ".text.", k->name, sizeof k->name, &code_bytes);
  const char *info = intel_section(elf, bytes, ".ze_info", rest, sizeof rest, &info_bytes);
  bool good = code && info;
  if (!good) snprintf(error, size, "the binary is no ELF file with a kernel and .ze_info");
  good = good && intel_describe(k, info, info_bytes, error, size);
  unsigned char *placed = good ? malloc(code_bytes + 1) : NULL;
  if (placed) memcpy(placed, code, code_bytes);
  good = placed && intel_relocate(k, elf, bytes, placed, code_bytes, error, size);
  if (good && !(k->listing = intel_disassemble(placed, code_bytes)))
    good = (snprintf(error, size, "%s: libiga64.so.1 does not list it", k->name), false);
  free(placed);
  good = good && intel_decode(k, error, size) && intel_check_scoreboard(k, error, size);
  if (good) return k;
  intel_unload(k);
  return NULL;
}

void intel_unload(intel_kernel *k) {
  if (!k) return;
  intel_drop_constants(k);
  free(k->ins);
  free(k->listing);
  free(k);
}
