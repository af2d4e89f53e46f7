/* tools/convert/convert.c - `clebsch convert`: another program's model to a safetensors file. */
#define _GNU_SOURCE /* memfd_create */
#include "tools/convert/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/cli/tool.h"

static const struct {
  bool (*is)(const source_file *in);
  void (*convert)(const source_file *in, model *out);
} formats[] = {{is_torch, convert_torch}, {is_nequix, convert_nequix}};

/* ---- files ---- */

void source_read(source_file *in) {
  struct stat about;
  if (stat(in->path, &about)) fail_model(in->path, "%s", strerror(errno));
  if (!S_ISREG(about.st_mode)) fail_model(in->path, "not a file");
  if (about.st_size >= INT32_MAX) fail_model(in->path, "larger than 2 GiB");
  in->n = (size_t)about.st_size;
  in->bytes = allocate(in->n, 1);
  FILE *f = fopen(in->path, "rb");
  if (!f) fail_model(in->path, "%s", strerror(errno));
  if (fread(in->bytes, 1, in->n, f) != in->n) fail_model(in->path, "could not be read to its end");
  fclose(f);
}

/* Wide elements first, so that all are aligned. */
static int by_width(const void *a, const void *b) {
  const model_tensor *x = a, *y = b;
  if (x->f64 != y->f64) return x->f64 ? -1 : 1;
  return strcmp(x->name, y->name);
}

static char *header_of(const model *m) {
  json_t *header = json_object();
  size_t at = 0;
  json_add(header, "__metadata__", json_incref(m->metadata));
  for (int i = 0; i < m->n; i++) {
    const model_tensor *t = &m->tensors[i];
    json_t *about = json_object(), *shape = json_array(), *offsets = json_array();
    if (json_object_get(header, t->name)) fail_model(m->from, "two tensors would be '%s'", t->name);
    json_add(header, t->name, about);
    json_add(about, "dtype", json_text(t->f64 ? "F64" : "F32"));
    json_add(about, "shape", shape);
    for (int k = 0; k < t->rank; k++) json_array_add(shape, json_count(t->shape[k]));
    json_add(about, "data_offsets", offsets);
    json_array_add(offsets, json_count((int64_t)at));
    json_array_add(offsets, json_count((int64_t)(at += t->bytes)));
  }
  char *text = json_dumps(header, JSON_COMPACT);
  json_decref(header);
  if (!text) fatal("out of memory");
  return text;
}

static bool write_tensors(FILE *f, const void *user) {
  const model *m = user;
  char *header = header_of(m);
  const size_t n = strlen(header), padded = (n + 7) / 8 * 8;
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(padded >> 8 * i);
  bool good =
      fwrite(length, 1, 8, f) == 8 && fprintf(f, "%-*s", (int)padded, header) == (int)padded;
  for (int i = 0; i < m->n; i++)
    good = good && fwrite(m->tensors[i].data, 1, m->tensors[i].bytes, f) == m->tensors[i].bytes;
  free(header);
  return good;
}

model *model_new(const char *from, const char *format) {
  model *m = allocate(1, sizeof *m);
  m->from = from;
  m->metadata = json_object();
  put_string(m, format, "format");
  put_string(m, "1", "format_version");
  return m;
}

bool model_write(const char *to, const model *m) { return file_replace(to, write_tensors, m); }

void model_free(model *m) {
  for (int i = 0; i < m->n; i++) free(m->tensors[i].data);
  json_decref(m->metadata);
  free(m);
}

/* Frees the bytes. */
static model *model_of(source_file *in) {
  const model_choice *choice = &in->choice;
  model *m = model_new(in->path, "clebsch model");
  size_t i = 0;
  while (i < sizeof formats / sizeof *formats && !formats[i].is(in)) i++;
  if (i == sizeof formats / sizeof *formats)
    fail_model(
        in->path,
        "neither a model of PyTorch (.pth, .model, .nequip.zip, .ckpt) nor a Nequix model (.nqx)");
  formats[i].convert(in, m);
  if (choice->modality && !m->has_modalities)
    fail_model(in->path, "it has no modalities, so '%s' cannot be chosen", choice->modality);
  if (choice->head && !m->has_heads)
    fail_model(in->path, "it has no heads, so '%s' cannot be chosen", choice->head);
  qsort(m->tensors, (size_t)m->n, sizeof *m->tensors, by_width);
  free(in->bytes);
  return m;
}

static model *read_model(const char *from, const model_choice *choice) {
  source_file in = {.path = from, .choice = *choice};
  source_read(&in);
  return model_of(&in);
}

bool convert_knows(const char *path) {
  char head[9] = "";
  FILE *f = fopen(path, "rbe");
  const size_t n = f ? fread(head, 1, sizeof head, f) : 0;
  if (f) fclose(f);
  const bool own = n == sizeof head && head[8] == '{'; /* a length of 8 bytes, then JSON */
  return n >= 4 && (starts_as_torch(head) || (*head == '{' && !own));
}

void model_tell(const model *m, const char *to) {
  const char *species = json_string_value(json_object_get(m->metadata, "species")),
             *architecture = json_string_value(json_object_get(m->metadata, "architecture")),
             *r_max = json_string_value(json_object_get(m->metadata, "r_max"));
  int elements = 1;
  struct stat about = {0};
  for (const char *c = species; *c; c++) elements += *c == ' ';
  stat(to, &about);
  printf("%s: %s, %d element%s", to, architecture, elements, elements > 1 ? "s" : "");
  if (elements <= 12) printf(" (%s)", species);
  printf(", r_max %s A, %.3g MB\n", r_max, 1e-6 * (double)about.st_size);
}

model *source_convert(source_file *in, const char *to) {
  model *m = model_of(in);
  if (!model_write(to, m)) exit(EXIT_FAILED);
  return m;
}

model *convert_file(const char *from, const model_choice *choice, const char *to) {
  source_file in = {.path = from, .choice = *choice};
  const named_file files[] = {{"the file to convert", from, FILE_INPUT},
                              {"the model", to, FILE_WHOLE}};
  if (!outputs_ready(files, 2)) exit(EXIT_FAILED);
  source_read(&in);
  return source_convert(&in, to);
}

int model_in_memory(const model *m) {
  const int fd = memfd_create("clebsch_model", MFD_CLOEXEC), again = fd < 0 ? -1 : dup(fd);
  FILE *f = again < 0 ? NULL : fdopen(again, "wb");
  bool good = f && write_tensors(f, m);
  if (f) good &= !fclose(f);
  if (!good) fail_model(m->from, "no memory for the converted model: %s", strerror(errno));
  return fd;
}

int convert_in_memory(const char *from, const model_choice *choice) {
  model *m = read_model(from, choice);
  const int fd = model_in_memory(m);
  model_free(m);
  return fd;
}

/* ---- the command ---- */

typedef struct {
  const char *in, *out;
  model_choice choice;
} convert_arguments;

static error_t parse(int key, char *arg, struct argp_state *state) {
  convert_arguments *a = state->input;
  switch (key) {
    case 'M': a->choice.modality = arg; return 0;
    case 'H': a->choice.head = arg; return 0;
    case ARGP_KEY_ARG:
      if (state->arg_num == 0) a->in = arg;
      else if (state->arg_num == 1) a->out = arg;
      else argp_error(state, "'%s' is one argument too many", arg);
      return 0;
    case ARGP_KEY_END:
      if (!a->out) argp_error(state, "name the model and the file to write");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int convert_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"modality", 'M', "NAME", 0,
       "of a model trained on several kinds of data: the one to convert (SevenNet-MF-0: PBE or "
       "R2SCAN; eSEN: a data set)",
       0},
      {"head", 'H', "NAME", 0, "of a MACE model with several heads: the one to convert", 0},
      {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .args_doc = "IN OUT",
      .doc =
          "Converts a model to the safetensors file OUT, which holds everything needed to "
          "evaluate it.\v"
          "IN is a model of NequIP or Allegro (package: .nequip.zip, checkpoint: .ckpt; NequIP's "
          "TorchScript: .pth), a SevenNet checkpoint (.pth), a MACE model (.model, or "
          "TorchScript: .pth), an eSEN checkpoint of fairchem-core (.pt) or a Nequix model (.nqx). "
          "Nothing in it is executed. "
          "Weights keep their precision. An existing OUT is replaced only on success."};
  convert_arguments a = {0};
  parse_arguments(&argp, argc, argv, 0, &a);
  model *m = convert_file(a.in, &a.choice, a.out);
  model_tell(m, a.out);
  model_free(m);
  return EXIT_GOOD;
}
