/* tools/structures/cif/structure_cif_words.c - the words of a CIF. */
#include "tools/structures/cif/structure_cif_words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static void keep(cif_words *w, const char *text, size_t n) {
  static const char more[] = "...";
  const size_t room = sizeof w->text - sizeof more;
  const bool all = n < sizeof w->text;
  if (!all) n = room;
  memcpy(w->text, text, n);
  w->text[n] = 0;
  if (!all) strcat(w->text, more);
}

/* From a ; at the start of a line to the next one. */
static cif_kind text_field(cif_words *w) {
  const int64_t first = w->r->line_number;
  strcpy(w->text, "...");
  w->quoted = true;
  do {
    if (!structure_line(w->r)) {
      if (!w->r->error[0])
        structure_fail(w->r, "the text that begins with ; in line %lld has no ; at its end",
                       (long long)first);
      return CIF_ERROR;
    }
  } while (w->r->line[0] != ';');
  w->at = w->r->line + 1;
  return CIF_VALUE;
}

/* A quote ends where a blank follows. */
static cif_kind quoted(cif_words *w) {
  const char quote = *w->at, *end = w->at + 1;
  while (*end && (*end != quote || !strchr(" \t", end[1]))) end++;
  if (!*end) return structure_fail(w->r, "a value in this line lacks its closing quote"), CIF_ERROR;
  keep(w, w->at + 1, (size_t)(end - w->at) - 1);
  w->quoted = true;
  w->at += end - w->at + 1;
  return CIF_VALUE;
}

static cif_kind name(cif_words *w) {
  for (char *c = w->text; *c; c++) *c = *c == '.' ? '_' : (char)tolower((unsigned char)*c);
  return CIF_NAME;
}

static cif_kind plain(cif_words *w) {
  const size_t n = strcspn(w->at, " \t");
  keep(w, w->at, n);
  w->at += n;
  if (*w->text == '_') return name(w);
  if (!strncasecmp(w->text, "data_", 5)) return CIF_BLOCK;
  if (!strcasecmp(w->text, "loop_")) return CIF_LOOP;
  if (!strncasecmp(w->text, "save_", 5) || !strcasecmp(w->text, "global_") ||
      !strcasecmp(w->text, "stop_"))
    return structure_fail(w->r, "'%s' is of STAR files, not of a CIF of atoms", w->text), CIF_ERROR;
  return CIF_VALUE;
}

static cif_kind next(cif_words *w) {
  w->quoted = false;
  for (;;) {
    if (!w->at) {
      if (!structure_line(w->r)) return w->r->error[0] ? CIF_ERROR : CIF_END;
      w->at = w->r->line;
      if (*w->at == ';') return text_field(w);
    }
    w->at += strspn(w->at, " \t");
    if (*w->at && *w->at != '#') return strchr("'\"", *w->at) ? quoted(w) : plain(w);
    w->at = NULL;
  }
}

cif_kind cif_next(cif_words *w) { return w->kind = next(w); }

bool cif_nothing(const cif_words *w) {
  return !w->quoted && (!strcmp(w->text, "?") || !strcmp(w->text, "."));
}
