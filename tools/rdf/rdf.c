/* tools/rdf/rdf.c - `clebsch rdf`: radial distribution functions of trajectories, side by side. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/common/plot.h"
#include "tools/dynamics/md_system.h"
#include "tools/rdf/rdf_count.h"

enum { FILES = PLOT_CURVES, NAME_ROOM = 80 };

typedef struct {
  const char *files[FILES];
  char names[FILES][NAME_ROOM];
  int n, n_names;
  rdf_count like; /* the pairs, r_max and bins of all */
  int64_t skip;
  const char *csv, *plot, *title;
  bool json;
} rdf_arguments;

/* ---- options ---- */

enum { PAIRS = 256, R_MAX, BINS, SKIP, NAMES, TITLE };

static const struct argp_option options[] = {
    {"trajectory", 't', "FILE", 0,
     "Extended XYZ, periodic in three directions; up to two more files may follow, which are "
     "compared with the first",
     0},
    {"pairs", PAIRS, "A-B,...", 0, "Up to four pairs of elements, such as O-O,O-H", 0},
    {"r-max", R_MAX, "R", 0,
     "Longest distance (Angstrom; default: half the least height of the cell)", 0},
    {"bins", BINS, "N", 0, "Bins up to there (default: 100)", 0},
    {"skip", SKIP, "N", 0, "Leave out the first N frames of each file (default: 0)", 0},
    {"names", NAMES, "NAME,...", 0, "What the files are called (default: their names)", 0},
    {"title", TITLE, "TEXT", 0, "Of the picture", 0},
    {"csv", 'c', "FILE", 0, "Write a line for each bin", 0},
    {"plot", 'p', "FILE", 0, "Plot the functions as SVG", 0},
    {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 0},
    {0}};

static void read_pairs(const struct argp_state *state, const char *text, rdf_count *c) {
  for (const char *at = text;; at++) {
    const size_t first = strcspn(at, "-,"), n = strcspn(at, ",");
    const int a = clb_element(at, first),
              b = n > first ? clb_element(at + first + 1, n - first - 1) : 0;
    if (!a || !b || c->n_pairs == RDF_PAIRS)
      argp_error(state, "--pairs are up to %d pairs of elements, such as O-O,O-H; not '%s'",
                 RDF_PAIRS, text);
    c->pair[c->n_pairs++] = (rdf_pair){{a, b}};
    at += n;
    if (!*at) return;
  }
}

static void read_names(const struct argp_state *state, const char *text, rdf_arguments *a) {
  for (const char *at = text; a->n_names < FILES; at++) {
    const size_t n = strcspn(at, ",");
    if (n >= NAME_ROOM) argp_error(state, "--names: a name has at most %d letters", NAME_ROOM - 1);
    snprintf(a->names[a->n_names++], NAME_ROOM, "%.*s", (int)n, at);
    at += n;
    if (!*at) return;
  }
  argp_error(state, "--names are at most %d", FILES);
}

static void check(rdf_arguments *a, const struct argp_state *state) {
  if (!a->n) argp_error(state, "--trajectory is missing");
  if (!a->like.n_pairs) argp_error(state, "--pairs is missing, such as O-O,O-H");
  if (a->n_names && a->n_names != a->n)
    argp_error(state, "--names are %d, of %d trajectories", a->n_names, a->n);
  for (int i = 0; i < a->n && !a->n_names; i++) {
    const char *slash = strrchr(a->files[i], '/');
    snprintf(a->names[i], NAME_ROOM, "%.79s", slash ? slash + 1 : a->files[i]);
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  rdf_arguments *a = state->input;
  switch (key) {
    case 't':
    case ARGP_KEY_ARG:
      if (a->n == FILES) argp_error(state, "'%s': there are at most %d trajectories", arg, FILES);
      a->files[a->n++] = arg;
      return 0;
    case PAIRS: read_pairs(state, arg, &a->like); return 0;
    case R_MAX: a->like.r_max = real_number(state, "--r-max", arg, 0.1, 1000); return 0;
    case BINS: a->like.n_bins = (int)whole_number(state, "--bins", arg, 2, RDF_BINS); return 0;
    case SKIP: a->skip = whole_number(state, "--skip", arg, 0, INT32_MAX); return 0;
    case NAMES: read_names(state, arg, a); return 0;
    case TITLE: a->title = arg; return 0;
    case 'c': a->csv = arg; return 0;
    case 'p': a->plot = arg; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_END: check(a, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- what is told ---- */

typedef struct {
  const rdf_arguments *a;
  const rdf_count *of; /* [n] */
} story;

static double middle(const rdf_count *c, int bin) { return c->r_max * (bin + 0.5) / c->n_bins; }

static const char *pair_name(const rdf_pair *p, char text[16]) {
  snprintf(text, 16, "%s-%s", clb_element_symbols[p->of[0]], clb_element_symbols[p->of[1]]);
  return text;
}

static int highest(const rdf_count *c, int pair) {
  int best = 0;
  for (int b = 1; b < c->n_bins; b++)
    if (rdf_value(c, pair, b) > rdf_value(c, pair, best)) best = b;
  return best;
}

/* The mean of |difference| over r, to the first file's. */
static double difference(const story *s, int file, int pair) {
  double sum = 0;
  for (int b = 0; b < s->of->n_bins; b++)
    sum += fabs(rdf_value(&s->of[file], pair, b) - rdf_value(s->of, pair, b));
  return sum / s->of->n_bins;
}

static void print(const story *s) {
  char text[16];
  for (int p = 0; p < s->of->n_pairs; p++)
    for (int i = 0; i < s->a->n; i++) {
      const rdf_count *c = &s->of[i];
      const int peak = highest(c, p);
      printf("%-6s %s: %lld frames, highest %.3f at %.2f A", pair_name(&c->pair[p], text),
             s->a->names[i], (long long)c->frames, rdf_value(c, p, peak), middle(c, peak));
      if (i) printf("; mean difference %.4f", difference(s, i, p));
      puts("");
    }
  if (s->a->csv) printf("written    %s\n", s->a->csv);
  if (s->a->plot) printf("written    %s\n", s->a->plot);
}

static json_t *file_json(const story *s, int i) {
  const rdf_count *c = &s->of[i];
  json_t *o = json_object(), *pairs = json_array();
  char text[16];
  for (int p = 0; p < c->n_pairs; p++) {
    json_t *g = json_array(), *one = json_object();
    for (int b = 0; b < c->n_bins; b++) json_array_add(g, json_number(rdf_value(c, p, b)));
    JSON_ADD(one, {"pair", json_text(pair_name(&c->pair[p], text))},
             {"highest", json_number(rdf_value(c, p, highest(c, p)))},
             {"at", json_number(middle(c, highest(c, p)))},
             {"difference", json_number(difference(s, i, p))}, {"g", g});
    json_array_add(pairs, one);
  }
  JSON_ADD(o, {"trajectory", json_text(s->a->files[i])}, {"name", json_text(s->a->names[i])},
           {"frames", json_count(c->frames)}, {"pairs", pairs});
  return o;
}

static void print_json(const story *s) {
  json_t *o = json_object(), *r = json_array(), *files = json_array();
  for (int b = 0; b < s->of->n_bins; b++) json_array_add(r, json_number(middle(s->of, b)));
  for (int i = 0; i < s->a->n; i++) json_array_add(files, file_json(s, i));
  JSON_ADD(o, {"clebsch", json_text(CLB_VERSION)}, {"r_max", json_number(s->of->r_max)}, {"r", r},
           {"trajectories", files});
  json_print(o);
}

static bool write_csv(FILE *f, const void *user) {
  const story *s = user;
  char text[16];
  fputs("r", f);
  for (int p = 0; p < s->of->n_pairs; p++)
    for (int i = 0; i < s->a->n; i++)
      fprintf(f, ",%s %s", pair_name(&s->of->pair[p], text), s->a->names[i]);
  fputc('\n', f);
  for (int b = 0; b < s->of->n_bins; b++) {
    fprintf(f, "%.17g", middle(s->of, b));
    for (int p = 0; p < s->of->n_pairs; p++)
      for (int i = 0; i < s->a->n; i++) fprintf(f, ",%.17g", rdf_value(&s->of[i], p, b));
    fputc('\n', f);
  }
  return !ferror(f);
}

static bool write_plot(const story *s) {
  const rdf_arguments *a = s->a;
  const size_t n = (size_t)s->of->n_bins;
  double *x = allocate(n, (1 + RDF_PAIRS * FILES) * sizeof *x), *y = x + n;
  plot_panel panels[RDF_PAIRS] = {0};
  char titles[RDF_PAIRS][32], subtitle[64], text[16];
  for (size_t b = 0; b < n; b++) x[b] = middle(s->of, (int)b);
  for (int p = 0; p < s->of->n_pairs; p++) {
    snprintf(titles[p], sizeof titles[p], "%s", pair_name(&s->of->pair[p], text));
    panels[p] = (plot_panel){.title = titles[p], .n_curves = a->n};
    for (int i = 0; i < a->n; i++, y += n) {
      for (size_t b = 0; b < n; b++) y[b] = rdf_value(&s->of[i], p, (int)b);
      panels[p].y[i] = y;
      panels[p].names[i] = a->names[i];
    }
  }
  snprintf(subtitle, sizeof subtitle, "g(r) of %lld frames", (long long)s->of->frames);
  const bool good = file_replace(a->plot, plot_write,
                                 &(plot){a->title ? a->title : "Radial distribution", subtitle,
                                         "r (Angstrom)", (int)n, x, s->of->n_pairs, panels});
  free(x);
  return good;
}

/* ---- the command ---- */

static bool ready(const rdf_arguments *a) {
  named_file all[FILES + 2];
  for (int i = 0; i < a->n; i++)
    all[i] = (named_file){"a trajectory (--trajectory)", a->files[i], FILE_INPUT};
  all[a->n] = (named_file){"the table (--csv)", a->csv, FILE_WHOLE};
  all[a->n + 1] = (named_file){"the picture (--plot)", a->plot, FILE_WHOLE};
  return outputs_ready(all, a->n + 2);
}

static bool count_all(const rdf_arguments *a, rdf_count *of) {
  bool good = ready(a);
  for (int i = 0; i < a->n && good; i++) {
    of[i] = a->like;
    if (i) of[i].r_max = of[0].r_max;
    good = rdf_add_file(&of[i], a->files[i], a->skip);
  }
  return good;
}

int rdf_main(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .args_doc = "--trajectory FILE [FILE...] --pairs A-B[,C-D...]",
      .doc = "Radial distribution functions of trajectories, side by side.\v"
             "g(r) of A-B is the mean density of B at distance r from an A over its density in the "
             "cell, in shells of equal widths; images of atoms count. Of each pair and file it "
             "prints the highest value and, from the second file on, the mean over r of the "
             "difference to the first."};
  rdf_arguments *a = allocate(1, sizeof *a);
  rdf_count *of = allocate(FILES, sizeof *of);
  a->like.n_bins = 100;
  parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, a);
  const story s = {a, of};
  bool good = count_all(a, of) && (!a->csv || file_replace(a->csv, write_csv, &s)) &&
              (!a->plot || write_plot(&s));
  if (good && a->json) print_json(&s);
  else if (good) print(&s);
  free(of);
  free(a);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
