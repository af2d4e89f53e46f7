/* tools/cli/options.c - reading options, and what was meant by unknown words. */
#include "tools/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

enum { MAX_NAMES = 128, MAX_LETTERS = 40, MAX_CHILDREN = 8 };

/* ---- likeness ---- */

static int least(int a, int b) { return a < b ? a : b; }

/* The number of letters to insert, remove, replace, or swap with the next. */
static int distance(const char *a, const char *b) {
  int d[MAX_LETTERS + 1][MAX_LETTERS + 1];
  const int n = (int)strnlen(a, MAX_LETTERS), m = (int)strnlen(b, MAX_LETTERS);
  for (int i = 0; i <= n; i++)
    for (int k = 0; k <= m; k++) {
      if (!i || !k) {
        d[i][k] = i + k;
        continue;
      }
      d[i][k] =
          least(d[i - 1][k - 1] + (a[i - 1] != b[k - 1]), 1 + least(d[i - 1][k], d[i][k - 1]));
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        d[i][k] = least(d[i][k], d[i - 2][k - 2] + 1);
    }
  return d[n][m];
}

const char *nearest_name(const char *word, const char *const names[], int n) {
  /* Former names, and those of other programs. */
  static const char *const known[][2] = {
      {"output", "out"},          {"dry-run", "list"},   {"precision", "dtype"},
      {"default_dtype", "dtype"}, {"modal", "modality"}, {"forces", "out"},
      {"restart", "force"},       {"timestep", "dt"},    {"input", "structure"}};
  const char *best = NULL;
  int least_of_all = 1 + (int)strlen(word) / 3;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    for (int i = 0; i < n && !strcmp(known[k][0], word); i++)
      if (!strcmp(names[i], known[k][1])) return names[i];
  for (int i = 0; i < n; i++) {
    const int d = !strncmp(names[i], word, strlen(word)) ? 1 : distance(word, names[i]);
    if (d < least_of_all + !best) best = names[i], least_of_all = d;
  }
  return best;
}

/* ---- unknown options ---- */

typedef struct {
  int n;
  const struct argp_option *option[MAX_NAMES];
} all_options;

static void collect(all_options *all, const struct argp *argp) {
  for (const struct argp_option *o = argp->options; o && (o->name || o->key); o++)
    if (all->n < MAX_NAMES) all->option[all->n++] = o;
  for (const struct argp_child *c = argp->children; c && c->argp; c++) collect(all, c->argp);
}

/* The option of a word without its dashes, maybe cut short; NULL: none. */
static const struct argp_option *long_option(const all_options *all, const char *word, size_t n) {
  for (int i = 0; i < all->n; i++)
    if (all->option[i]->name && !strncmp(all->option[i]->name, word, n)) return all->option[i];
  return NULL;
}

/* Whether the next argument belongs to the last of these letters. */
static bool letters_want_more(const all_options *all, const char *letter) {
  for (; *letter; letter++)
    for (int i = 0; i < all->n; i++)
      if (all->option[i]->key == *letter && all->option[i]->arg) return !letter[1];
  return false;
}

static void refuse_option(const all_options *all, const char *command, const char *word) {
  const char *names[MAX_NAMES];
  char bare[MAX_LETTERS + 1] = "";
  int n = 0;
  for (int i = 0; i < all->n; i++)
    if (all->option[i]->name) names[n++] = all->option[i]->name;
  strncat(bare, word, strcspn(word, "=") < MAX_LETTERS ? strcspn(word, "=") : MAX_LETTERS);
  const char *near = nearest_name(bare, names, n);
  if (near) warn("%s has no option '--%s'; did you mean --%s?", command, bare, near);
  else warn("%s has no option '--%s'; `%s --help` lists what it has", command, bare, command);
  exit(EXIT_USAGE);
}

static void check_options(const struct argp *argp, int argc, char **argv) {
  all_options all = {0};
  collect(&all, argp);
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    const char *word = argv[i];
    if (word[0] != '-' || !word[1]) continue;
    if (word[1] != '-') {
      i += letters_want_more(&all, word + 1);
      continue;
    }
    const size_t n = strcspn(word + 2, "=");
    const struct argp_option *o = long_option(&all, word + 2, n);
    if (!o) refuse_option(&all, argv[0], word + 2);
    i += o->arg && !word[2 + n];
  }
}

/* ---- help ---- */

enum { USAGE = 0x7000 };

static error_t parse_help(int key, char *arg, struct argp_state *state) {
  (void)arg;
  switch (key) {
    case '?':
    case 'h': argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP); return 0;
    case USAGE:
      argp_state_help(state, state->out_stream, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
      return 0;
    case 'V': fprintf(state->out_stream, "%s\n", argp_program_version); exit(EXIT_GOOD);
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option help_options[] = {
    {"help", 'h', NULL, 0, "Give this help list", -1},
    {NULL, '?', NULL, OPTION_HIDDEN, NULL, 0},
    {"usage", USAGE, NULL, 0, "Give a short usage message", 0},
    {"version", 'V', NULL, 0, "Print program version", 0},
    {0}};
static const struct argp help_argp = {.options = help_options, .parser = parse_help};

void parse_arguments(const struct argp *argp, int argc, char **argv, unsigned flags, void *input) {
  struct argp_child children[MAX_CHILDREN + 2] = {{0}};
  struct argp helped = *argp;
  int n = 0;
  for (; argp->children && argp->children[n].argp && n < MAX_CHILDREN; n++)
    children[n] = argp->children[n];
  children[n] = (struct argp_child){&help_argp, 0, NULL, -1};
  helped.children = children;
  const bool own = flags & ARGP_NO_HELP;
  if (!own) check_options(&helped, argc, argv);
  const error_t e = argp_parse(own ? argp : &helped, argc, argv, flags | ARGP_NO_HELP, NULL, input);
  if (e == ENOMEM) fatal("out of memory while reading the arguments");
  if (e) exit(EXIT_USAGE);
}

void keep_text(const struct argp_state *state, const char *option, const char *text, char *to,
               size_t size) {
  if (snprintf(to, size, "%s", text) >= (int)size)
    argp_error(state, "%s: at most %zu letters", option, size - 1);
}

int name_among(const struct argp_state *state, const char *option, const char *name,
               const char *const *names, int n) {
  char list[256] = "";
  for (int i = 0, left; i < n; i++) {
    const size_t used = strlen(list);
    if (names[i] && !strcmp(name, names[i])) return i;
    left = 0;
    for (int k = i + 1; k < n; k++) left += names[k] != NULL;
    if (names[i])
      snprintf(list + used, sizeof list - used, "%s%s", names[i],
               left > 1 ? ", "
               : left   ? " or "
                        : "");
  }
  argp_error(state, "%s is %s, not '%s'", option, list, name);
  return 0;
}
