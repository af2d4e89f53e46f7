/* src/base/folders.c - folders of the user's, and models by their names in one of them. */
#include "src/base/folders.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void clb_user_folder(clb_text *path, const char *own, const char *xdg, const char *below_home) {
  const char *whole = getenv(own), *shared = getenv(xdg), *home = getenv("HOME");
  if (whole && *whole) clb_text_add(path, "%s", whole);
  else if (shared && *shared) clb_text_add(path, "%s/clebsch", shared);
  else if (home && *home) clb_text_add(path, "%s/%s/clebsch", home, below_home);
}

int clb_make_folders(const char *path) {
  clb_text part = {0};
  int e = 0;
  for (const char *c = path; *c && !part.failed; c++) {
    if (*c == '/' && part.n && mkdir(part.s, 0777) && errno != EEXIST && !e) e = errno;
    clb_text_bytes(&part, c, 1);
  }
  clb_text_free(&part);
  return e;
}

void clb_models_folder(clb_text *path) {
  const char *own = getenv("CLB_MODELS_DIR");
  clb_user_folder(path, "CLB_MODELS_DIR", "XDG_DATA_HOME", ".local/share");
  if (path->n && !(own && *own)) clb_text_add(path, "/models");
}

bool clb_is_model_name(const char *word) {
  const size_t n = strnlen(word, 101);
  for (size_t i = 0; i < n; i++)
    if (!isalnum((unsigned char)word[i]) && word[i] != '-' && word[i] != '_') return false;
  return n && n <= 100;
}

bool clb_model_path(clb_text *path, const char *name) {
  clb_models_folder(path);
  if (!path->n) return false;
  clb_text_bytes(path, "/", 1);
  for (; *name; name++) clb_text_bytes(path, (char[]){(char)tolower((unsigned char)*name)}, 1);
  clb_text_add(path, ".safetensors");
  return true;
}

void clb_model_file(clb_text *path, const char *asked) {
  if (clb_is_model_name(asked) && access(asked, F_OK)) {
    if (clb_model_path(path, asked) && (path->failed || !access(path->s, F_OK))) return;
    path->n = 0;
  }
  clb_text_add(path, "%s", asked);
}
