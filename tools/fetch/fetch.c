/* tools/fetch/fetch.c - `clebsch fetch`: a published model into the user's folder of models. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/folders.h"
#include "tools/cli/tool.h"
#include "tools/convert/zip.h"
#include "tools/fetch/download.h"
#include "tools/fetch/known_models.h"
#include "tools/fetch/sha256.h"

typedef struct {
  const char *name, *from;
  bool force;
} fetch_arguments;

/* ---- the published file ---- */

static bool starts(const char *text, const char *with) {
  return !strncmp(text, with, strlen(with));
}

/* Where it is: $CLB_MODELS_MIRROR has files of the same names. */
static void place_of(const known_model *k, clb_text *place) {
  const char *mirror = getenv("CLB_MODELS_MIRROR");
  if (mirror && starts(mirror, "file://")) mirror += strlen("file://");
  if (mirror && *mirror) clb_text_add(place, "%s/%s", mirror, last_part(k->address));
  else clb_text_add(place, "%s", k->address);
  if (place->failed) fatal("out of memory");
}

static void read_published(const known_model *k, source_file *in) {
  const bool remote = starts(in->path, "https://") || starts(in->path, "http://");
  const int fd = remote ? download(in->path, k->name, k->bytes) : -1;
  const char *path = in->path;
  char memory[40];
  snprintf(memory, sizeof memory, "/proc/self/fd/%d", fd);
  if (remote) in->path = memory;
  source_read(in);
  in->path = path;
  if (remote) close(fd);
}

static void unpack(source_file *in, const char *member) {
  zip z;
  size_t n;
  zip_open(&z, in);
  const unsigned char *found = zip_find(&z, member, &n);
  if (!found) fail_model(in->path, "it has no '%s'", member);
  unsigned char *bytes = allocate(n, 1);
  memcpy(bytes, found, n);
  zip_close(&z);
  free(in->bytes);
  in->bytes = bytes;
  in->n = n;
}

/* Leaves the model's own file; of an archive, that alone may be given, too. */
static void check(const known_model *k, source_file *in) {
  const sha256_sum sum = sha256(in->bytes, in->n);
  if (!k->sha256)
    warn("%s: not compared, as no checksum of it is known; its SHA-256 is %s", k->name, sum.text);
  else if (!strcmp(sum.text, k->sha256)) {
    if (k->member) unpack(in, k->member);
  } else if (!k->member || strcmp(sum.text, k->member_sha256) != 0)
    fail_model(in->path, "%s: its SHA-256 is %s, and that of %s %s",
               (int64_t)in->n < k->bytes && !k->member ? "cut short, or another file"
                                                       : "not the published file",
               sum.text, last_part(k->address), k->sha256);
}

/* ---- the command ---- */

static int fetch(const known_model *k, const fetch_arguments *a, const char *to) {
  clb_text place = {0};
  source_file in = {.path = a->from, .choice = {.modality = k->modality}};
  if (!access(to, F_OK) && !a->force) {
    printf("%s is there already; --force fetches it again\n", to);
    return EXIT_GOOD;
  }
  const int e = clb_make_folders(to);
  if (e) return warn("%s: %s", to, strerror(e)), EXIT_FAILED;
  if (!a->from) place_of(k, &place), in.path = place.s;
  read_published(k, &in);
  check(k, &in);
  model *m = source_convert(&in, to);
  model_tell(m, to);
  printf("licence %s; its name is %s\n", k->licence, k->name);
  model_free(m);
  clb_text_free(&place);
  return EXIT_GOOD;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  fetch_arguments *a = state->input;
  switch (key) {
    case 'f': a->from = arg; return 0;
    case 'F': a->force = true; return 0;
    case ARGP_KEY_ARG:
      if (a->name) argp_error(state, "'%s' is one argument too many", arg);
      a->name = arg;
      return 0;
    case ARGP_KEY_END:
      if (!a->name) argp_error(state, "name a model; `clebsch models` lists them");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int fetch_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"from", 'f', "FILE", 0,
       "Of a machine without a network: the published file, or of SevenNet the checkpoint in it",
       0},
      {"force", 'F', NULL, 0, "Also if the model is there already", 0},
      {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .args_doc = "NAME",
      .doc = "Downloads a published model, compares its SHA-256 with the one that is known, and "
             "converts it. From then on NAME stands for it wherever a model is wanted.\v"
             "`clebsch models` lists the names. Models lie in $CLB_MODELS_DIR, else "
             "$XDG_DATA_HOME/clebsch/models, else ~/.local/share/clebsch/models; NAME.safetensors "
             "that is put there has a name, too. Downloads are made by curl, python3 or wget, from "
             "the address of the model's own project or, if $CLB_MODELS_MIRROR is a folder or an "
             "address, from a file of the same name there. No other command uses the network."};
  fetch_arguments a = {0};
  clb_text to = {0};
  parse_arguments(&argp, argc, argv, 0, &a);
  const known_model *k = known_model_named(a.name);
  if (!k) return EXIT_USAGE;
  const bool good = clb_model_path(&to, k->name);
  if (to.failed) fatal("out of memory");
  if (!good) warn("no folder for models: set CLB_MODELS_DIR or HOME");
  const int status = good ? fetch(k, &a, to.s) : EXIT_FAILED;
  clb_text_free(&to);
  return status;
}
