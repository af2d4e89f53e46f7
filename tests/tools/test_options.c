/* tests/tools/test_options.c - the help of the command, the names of options, and what may be meant
   by unknown words. */
#include "tests/dynamics/model_folder.h"

#include <clebsch/clebsch.h>

static void helps(void **state) {
  (void)state;
  static const char *const asked[][2] = {
      {"--help", "devices"},      {"devices --help", "compile"},
      {"check --help", "--op"},   {"source --help", "--stats"},
      {"bench --help", "--rows"}, {"bench spherical_harmonics --help", "--lmax"},
      {"--version", CLB_VERSION}, {"bench --version", CLB_VERSION}};
  static const char *const same[][2] = {{"-h", "--help"},
                                        {"-?", "--help"},
                                        {"help", "--help"},
                                        {"check -h", "check --help"},
                                        {"help check", "check --help"},
                                        {"help bench launches", "bench launches --help"},
                                        {"help source convolution", "source convolution --help"}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    expect_printed(asked[i][0], asked[i][1]);
  }
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    char *a = printed_by(same[i][0]), *b = printed_by(same[i][1]);
    assert_string_equal(a, b);
    free(a);
    free(b);
  }
}

static void meanings(void **state) {
  (void)state;
  static const refusal unknown[] = {
      {"devcies", 2, "no command 'devcies'; did you mean devices? commands are"},
      {"help enrgy", 2, "no command 'enrgy'; did you mean energy?"},
      {"benchmark", 2, "no command 'benchmark'; did you mean bench?"},
      {"sing", 2, "no command 'sing'; commands are"},
      {"md --temprature=3", 2,
       "clebsch md has no option '--temprature'; did you mean --temperature?"},
      {"md --timestep 1", 2, "clebsch md has no option '--timestep'; did you mean --dt?"},
      {"energy -m --dtypes", 2, "--structure is missing"}, /* the argument of an option */
      {"energy -m x --dtypes f32", 2, "did you mean --dtype?"},
      {"energy --precision f32", 2, "did you mean --dtype?"},
      {"energy --forces f", 2, "did you mean --out?"},
      {"source --output f", 2, "did you mean --out?"},
      {"bench --suite quick --dry-run", 2, "did you mean --list?"},
      {"bench --suite quick --restart", 2, "did you mean --force?"},
      {"check --rosw 3", 2, "did you mean --rows?"},
      {"source convolutoin", 2, "no op 'convolutoin'; did you mean convolution?"},
      {"source convolution --graph foo", 2, "there is no graph 'foo'; there are:"},
      {"tune convolution --graph even:3", 2, "there is no graph 'even:3'; there are:"},
      {"source tensor_product --x 4x0e --y 1o --filter 0e --device cpu:interpreter", 2,
       "no path leads from '4x0e' and '1x1o' to the irreps of the output"},
      {"source tensor_product --x 0e --y 0e --z 1e --device cpu:interpreter", 2, "no path leads"},
      {"check --zz\033z", 2,
       "clebsch check has no option '--zz\\x1bz'; `clebsch check --help` lists"}};
  expect_refusals("", unknown, sizeof unknown / sizeof *unknown);
}

/* Each command that the help lists has a help of its own, and the error of an unknown one names
   it. */
static void commands(void **state) {
  (void)state;
  char *all = printed_by("--help"), *rest = strstr(all, "Commands:\n");
  int n = 0;
  expect_clebsch("sing", 2, "commands are");
  char *err = get_text("err"), *end = rest ? strstr(rest, "\n\n") : NULL;
  assert_non_null(end);
  *end = 0;
  strtok_r(rest, "\n", &rest);
  for (char *line; (line = strtok_r(rest, "\n", &rest)); n++) {
    char name[32];
    assert_int_equal(sscanf(line, " %31s", name), 1);
    const char *usage = format("Usage: clebsch %s ", name);
    char *own = printed_by(format("%s --help", name));
    assert_int_equal(strncmp(own, usage, strlen(usage)), 0);
    assert_non_null(strstr(strstr(err, "commands are"), name));
    free(own);
  }
  assert_true(n >= 10);
  free(all);
  free(err);
}

enum { MAX_OPTIONS = 256, MAX_PAGES = 40 };
typedef struct {
  char letter[4], name[32]; /* the letter may be missing */
  bool argument;
  int page; /* the last one that has it */
} option;

/* Compares the option of a line of help with those before; takes it if it is new. */
static void compare_option(option *all, int *n, int page, const char *arguments, const char *line) {
  option o = {.page = page};
  char next = 0;
  if (strncmp(line, "  -", 3) != 0 && strncmp(line, "      --", 8) != 0) return;
  if (sscanf(line, " -%1[a-zA-Z?], --%31[a-z0-9-]%c", o.letter, o.name, &next) < 2 &&
      sscanf(line, " --%31[a-z0-9-]%c", o.name, &next) < 1)
    return;
  o.argument = next == '=';
  for (int i = 0; i < *n; i++) {
    const bool same_name = !strcmp(o.name, all[i].name),
               same_letter = !strcmp(o.letter, all[i].letter);
    if (same_name ? !same_letter || o.argument != all[i].argument : same_letter && *o.letter)
      fail_msg("%s: -%s, --%s%s, but elsewhere -%s, --%s%s", arguments, o.letter, o.name,
               o.argument ? "=" : "", all[i].letter, all[i].name, all[i].argument ? "=" : "");
    if (!same_name) continue;
    if (all[i].page == page) fail_msg("%s has two options --%s", arguments, o.name);
    all[i].page = page;
    return;
  }
  assert_in_range(*n, 0, MAX_OPTIONS - 1);
  all[(*n)++] = o;
}

/* Each command, and each op after `source`, whose help lists them. */
static int list_pages(char pages[][48]) {
  static const char *const commands[] = {"devices",
                                         "check",
                                         "bench",
                                         "bench launches",
                                         "bench optimizer",
                                         "bench --suite quick",
                                         "compare",
                                         "tune",
                                         "bench --without each",
                                         "convert",
                                         "energy",
                                         "md",
                                         "serve"};
  enum { COMMANDS = sizeof commands / sizeof *commands };
  int n = 0;
  for (; n < COMMANDS; n++) snprintf(pages[n], sizeof *pages, "%s", commands[n]);
  char *help = printed_by("source --help"), *list = strstr(help, "OP is one of"), *end, *rest;
  assert_non_null(list);
  assert_non_null(end = strchr(list, '.'));
  *end = 0;
  for (char *op = strtok_r(list + 12, " ,\n", &rest); op; op = strtok_r(NULL, " ,\n", &rest), n++)
    snprintf(pages[n], sizeof *pages, "source %s", op);
  free(help);
  assert_in_range(n, COMMANDS + 8, MAX_PAGES - 1);
  return n;
}

/* In all commands an option has one name, one letter or none, and an argument or none; and no op
   takes the name of an option of its command. */
static void options_mean_one_thing(void **state) {
  (void)state;
  static option all[MAX_OPTIONS];
  char pages[MAX_PAGES][48];
  const int n_pages = list_pages(pages);
  int n = 0;
  for (int i = 0; i < n_pages; i++) {
    const char *arguments = format("%s --help", pages[i]);
    char *out = printed_by(arguments), *rest = out;
    for (char *line; (line = strtok_r(rest, "\n", &rest));)
      compare_option(all, &n, i, arguments, line);
    free(out);
  }
  assert_true(n > 60);
}

/* Tables are no wider than 100 columns, which is 100 characters of UTF-8. */
static void fits_terminals(void **state) {
  (void)state;
  static const char *const tables[] = {
      "devices",
      "check --device cpu:interpreter --rows 4 --op convolution --part 7/40",
      "check --device cpu:interpreter --rows 4 --op spherical_harmonics",
      "bench spherical_harmonics --rows 50 --device cpu:interpreter",
      ("bench convolution --x 1x0e --y 0e --filter 0e --graph carbon:1 --pass forward --device "
       "cpu:interpreter"),
      "tune spherical_harmonics --lmax 1 --device cpu:interpreter --pass forward",
      "compare a.json b.json"};
  assert_int_equal(symlink(data_file("compare_a.json"), "a.json"), 0);
  assert_int_equal(symlink(data_file("compare_b.json"), "b.json"), 0);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    char *out = printed_by(tables[i]), *rest = out;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
      int columns = 0;
      for (const char *c = line; *c; c++) columns += (*c & 0xc0) != 0x80;
      if (columns > 100) fail_msg("%s: %d columns: %s", tables[i], columns, line);
    }
    free(out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(helps), cmocka_unit_test(meanings), cmocka_unit_test(commands),
      cmocka_unit_test(options_mean_one_thing), cmocka_unit_test(fits_terminals)};
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
