/* tools/fetch/models.c - `clebsch models`: models that have a name. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/folders.h"
#include "tools/cli/tool.h"
#include "tools/fetch/known_models.h"

enum { NAME, HERE, TRIED, SIZE, ELEMENTS, LICENCE, ABOUT, COLUMNS };

/* The file of a model, which the caller frees; it exists or not. */
static clb_text file_of(const char *name, bool *here) {
  clb_text path = {0};
  *here = clb_model_path(&path, name) && !path.failed && !access(path.s, F_OK);
  if (path.failed) fatal("out of memory");
  return path;
}

static json_t *about(const known_model *k) {
  json_t *o = json_object();
  bool here;
  clb_text path = file_of(k->name, &here);
  JSON_ADD(o, {"name", json_text(k->name)}, {"file", here ? json_text(path.s) : json_null()},
           {"tried", json_boolean(k->sha256 != NULL)},
           {"address", k->address ? json_text(k->address) : json_null()},
           {"sha256", k->sha256 ? json_text(k->sha256) : json_null()},
           {"bytes", k->bytes ? json_count(k->bytes) : json_null()},
           {"elements", k->elements ? json_count(k->elements) : json_null()},
           {"licence", k->licence ? json_text(k->licence) : json_null()},
           {"about", json_text(k->about)});
  clb_text_free(&path);
  return o;
}

/* The name of a file that is the user's own model, without its ending; NULL: it is none. */
static char *own_name(const char *file) {
  static const char ending[] = ".safetensors";
  char name[101];
  if (!ends_in(file, ending) || strlen(file) - strlen(ending) >= sizeof name) return NULL;
  snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - strlen(ending)), file);
  for (int i = 0; i < n_known_models; i++)
    if (!strcmp(known_models[i].name, name)) return NULL;
  bool here = false;
  if (clb_is_model_name(name)) {
    clb_text path = file_of(name, &here); /* names are found in small letters alone */
    clb_text_free(&path);
  }
  char *kept = here ? strdup(name) : NULL;
  if (here && !kept) fatal("out of memory");
  return kept;
}

static void add_own(json_t *models) {
  clb_text folder = {0};
  struct dirent **files = NULL;
  clb_models_folder(&folder);
  const int n = folder.n && !folder.failed ? scandir(folder.s, &files, NULL, alphasort) : 0;
  for (int i = 0; i < n; i++) {
    char *name = own_name(files[i]->d_name);
    if (name) json_array_add(models, about(&(known_model){.name = name, .about = "your own"}));
    free(name);
    free(files[i]);
  }
  free(files);
  clb_text_free(&folder);
}

static const char *text(const json_t *model, const char *key, const char *without) {
  const char *value = json_string_value(json_object_get(model, key));
  return value ? value : without;
}

/* cells point into the model or into `made`. */
static void cells_of(const json_t *m, const char *cells[COLUMNS], char made[2][20]) {
  const json_int_t bytes = json_integer_value(json_object_get(m, "bytes")),
                   elements = json_integer_value(json_object_get(m, "elements"));
  const bool own = !text(m, "address", NULL), tried = json_is_true(json_object_get(m, "tried"));
  made[0][0] = made[1][0] = 0;
  if (bytes) snprintf(made[0], sizeof made[0], "%.1f", 1e-6 * (double)bytes);
  if (elements) snprintf(made[1], sizeof made[1], "%d", (int)elements);
  cells[NAME] = text(m, "name", "");
  cells[HERE] = text(m, "file", NULL) ? "yes" : "";
  cells[TRIED] = own ? "" : tried ? "yes" : "no";
  cells[SIZE] = made[0];
  cells[ELEMENTS] = made[1];
  cells[LICENCE] = text(m, "licence", "");
  cells[ABOUT] = text(m, "about", "");
}

static void print(json_t *models) {
  table t = {.n = COLUMNS,
             .titles = {"name", "here", "tried", ">MB", ">elements", "licence", "what it is"}};
  const char *cells[COLUMNS];
  char made[2][20];
  size_t i;
  json_t *m;
  json_array_foreach(models, i, m) {
    cells_of(m, cells, made);
    for (int c = 0; c < ABOUT; c++) table_fit(&t, c, cells[c]);
  }
  table_titles(&t);
  json_array_foreach(models, i, m) {
    cells_of(m, cells, made);
    table_line(&t, cells);
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  if (key == ARGP_KEY_ARG) argp_error(state, "'%s' is one argument too many", arg);
  if (key != 'j') return ARGP_ERR_UNKNOWN;
  *(bool *)state->input = true;
  return 0;
}

int models_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"json", 'j', NULL, 0, "Print one JSON array, nothing else", 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .doc = "Lists models that have a name: published ones, which `clebsch fetch NAME` gets, and "
             "your own in the folder of models.\v"
             "here: it has been fetched. tried: its file is known by checksum, and was converted "
             "and computed with; others come from the table of addresses of their project. MB: of "
             "the download. Licences are of the weights; ASL, the Academic Software License, "
             "forbids commercial use."};
  bool json = false;
  parse_arguments(&argp, argc, argv, 0, &json);
  json_t *models = json_array();
  for (int i = 0; i < n_known_models; i++) json_array_add(models, about(&known_models[i]));
  add_own(models);
  if (!json) print(models);
  if (json) json_print(models);
  else json_decref(models);
  return EXIT_GOOD;
}
