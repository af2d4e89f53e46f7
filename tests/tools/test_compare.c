/* tests/tools/test_compare.c - `clebsch compare`: its tables and means, its page, untrusted files.
 */
#include "tests/command_json.h"

#include <ctype.h>

static int make_files(void **state) {
  return make_folder(state) || symlink(data_file("compare_a.json"), "a.json") ||
         symlink(data_file("compare_b.json"), "b.json");
}

/* Cuts out what is from `from` to the end of `to`, and returns it without these; NULL: it is not
   there. */
static char *cut(char *page, const char *from, const char *to) {
  char *at = strstr(page, from), *end = at ? strstr(at, to) : NULL;
  if (!end) return NULL;
  char *found = strndup(at + strlen(from), (size_t)(end - at) - strlen(from));
  assert_non_null(found);
  memmove(at, end + strlen(to), strlen(end + strlen(to)) + 1);
  return found;
}

/* What the script of a page makes of its JSON, in a small JavaScript without a browser. */
static char *charts_of(const char *json, const char *script) {
  FILE *f = fopen("charts.js", "w");
  assert_non_null(f);
  fprintf(f,
          "var shown = {speeds: {}, charts: {}, data: {textContent: JSON.stringify(%s)}};\n"
          "var document = {getElementById: function(id) { return shown[id]; }};\n%s\n"
          "(typeof print === 'function' ? print : console.log)(shown.speeds.innerHTML + "
          "shown.charts.innerHTML);\n",
          json, script);
  assert_int_equal(fclose(f), 0);
  const char *program = !system("command -v duk >/dev/null") ? "duk" : "node";
  if (system(format("command -v %s >/dev/null", program)))
    skip_because("there is no JavaScript (packages duktape, nodejs)");
  assert_int_equal(system(format("%s charts.js >charts", program)), 0);
  return get_text("charts");
}

/* What a browser shows of the page that was written: it, without scripts, then the charts. */
static char *shown_page(void) {
  char *page = get_text("page.html");
  assert_non_null(page);
  char *json = cut(page, "<script type=\"application/json\" id=\"data\">", "</script>"),
       *script = cut(page, "<script>", "</script>"), *none = cut(page, "<noscript>", "</noscript>");
  assert_true(json && script && none);
  if (strchr(json, '<')) fail_msg("the JSON could end its script: %.2000s", json);
  char *charts = charts_of(json, script);
  page = realloc(page, strlen(page) + strlen(charts) + 1);
  assert_non_null(page);
  strcat(page, charts);
  free(json), free(script), free(none), free(charts);
  return page;
}

/* The page for these arguments. */
static char *page_of(const char *files) {
  expect_clebsch(format("compare %s --html page.html", files), 0, NULL);
  return shown_page();
}

/* It prints this file of the tests' data. */
static void expect_golden(const char *arguments, const char *golden) {
  char *expected = get_text(data_file(golden));
  assert_non_null(expected);
  expect_clebsch(arguments, 0, NULL);
  expect_file("out", expected);
  free(expected);
}

static void has(const char *text, const char *part) {
  assert_non_null(text);
  if (!strstr(text, part)) fail_msg("'%s' is not in: %.3000s", part, text);
}

static void lacks(const char *text, const char *part) {
  assert_non_null(text);
  const char *at = strstr(text, part);
  if (at) fail_msg("'%s' is in: ...%.200s", part, at);
}

static int times_in(const char *text, const char *part) {
  int n = 0;
  for (; (text = strstr(text, part)); text += strlen(part)) n++;
  return n;
}

/* ---- tables ---- */

/* By the times in the two files forward has the speeds 8 and 2, whose mean is 4; backward 9, apart
   from one that is incorrect; the convolution by the row (0.01 / 1001) / (0.0025 / 500) = 1.998;
   all four the mean 4.1185.  Every other figure is that of a file. */
static void prints(void **state) {
  (void)state;
  expect_golden("compare a.json b.json --format csv", "compare.csv");
  expect_golden("compare a.json b.json", "compare.txt");
}

static void takes_a_baseline(void **state) {
  (void)state;
  expect_printed("compare a.json --baseline cuda:0 --format csv",
                 "\nmean,tensor_product,,,,forward,f32,,,,,,,,measured,0.25,,2,",
                 "bound,500,launch");
  expect_printed("compare a.json --baseline hip@gfx942", ">=0.00200");
  expect_clebsch("compare a.json b.json --baseline nobody", 2, "no such device");
  expect_clebsch("compare a.json b.json --baseline cpu", 2, "several files have it");
}

static void prints_markdown(void **state) {
  (void)state;
  put_text(
      "odd.json",
      "[{\"op\":\"a|b\",\"problem\":\"*p* "
      "<i>\",\"pass\":\"forward\",\"dtype\":\"f32\",\"device\":\"cpu\",\"rows\":1,\"seconds\":1}]");
  char *out = printed_by("compare odd.json --format markdown");
  has(out, "| a\\|b | \\*p\\* &lt;i> |");
  has(out, "|---|");
  lacks(out, "<i>");
  free(out);
}

/* Numbers of rows: a part of the work where a device has several, otherwise times per row; halving
   rounds. */
static void keeps_rows_apart(void **state) {
  (void)state;
#define SOME "\"op\":\"o\",\"problem\":\"p\",\"pass\":\"forward\",\"dtype\":\"f32\""
  put_text("rows.json", "[{" SOME ",\"device\":\"x\",\"rows\":1000,\"seconds\":1},{" SOME
                        ",\"device\":\"x\",\"rows\":2000,\"seconds\":3},{" SOME
                        ",\"device\":\"y\",\"rows\":2000,\"seconds\":2}]");
  expect_printed("compare rows.json --format csv", "\nresult,o,p,,,forward,f32,1000,1,1000,",
                 "\nmean,,,,,,,,,,,,,,,,,,,,,,,,measured,1.5,,1\n");
  put_text("rows.json",
           "[{" SOME ",\"device\":\"x\",\"rows\":50001,\"seconds\":4},{" SOME
           ",\"device\":\"x\",\"rows\":60000,\"seconds\":4},"
           "{" SOME ",\"device\":\"y\",\"rows\":6250,\"rows_halved\":3,\"seconds\":1}]");
  expect_printed("compare rows.json --format csv", ",measured,0.49999", ",row,\n");
  put_text("twice.json", "[{" SOME ",\"device\":\"x\",\"rows\":10,\"seconds\":4},{" SOME
                         ",\"device\":\"x\",\"rows\":10,\"seconds\":3}]");
  char *out = printed_by("compare twice.json");
  has(out, " 3000");
  lacks(out, " 4000");
  has(out, "1 result is replaced");
  free(out);
}

/* A bound is in no mean with measurements, and is not compared with a ceiling; an error above its
   tolerance is incorrect, whatever the file says. */
static void judges(void **state) {
  (void)state;
#define OTHER "\"op\":\"o\",\"problem\":\"q\",\"pass\":\"forward\",\"dtype\":\"f32\""
  put_text("mixed.json", "[{" SOME ",\"device\":\"x\",\"rows\":10,\"seconds\":4},{" OTHER
                         ",\"device\":\"x\",\"rows\":10,\"seconds\":4},{" SOME
                         ",\"device\":\"y\",\"rows\":10,\"seconds\":2},"
                         "{" OTHER ",\"device\":\"y\",\"rows\":10,\"seconds\":1,\"bound\":true,"
                         "\"bound_seconds\":0.5,\"copy_fraction\":0.5}]");
  expect_printed("compare mixed.json --format csv", ",0.5,10,,,,,bound,8,launch,",
                 "\nmean,,,,,,,,,,,,,,,,,,,,,,,,measured,2,,1\n");
  put_text("mixed.json",
           "[{" SOME ",\"device\":\"x\",\"rows\":10,\"seconds\":4,\"error\":2,\"tolerance\":1,"
           "\"correct\":true},{" OTHER
           ",\"device\":\"x\",\"rows\":10,\"seconds\":4,\"correct\":false},"
           "{" SOME ",\"device\":\"y\",\"rows\":10,\"seconds\":4,\"correct\":true},{" OTHER
           ",\"device\":\"y\",\"rows\":10,\"seconds\":4,\"correct\":true}]");
  expect_printed("compare mixed.json", "INCORRECT: 2 of 4 results",
                 "y has nothing that could be compared with x");
}

/* ---- the page ---- */

/* Every tag is closed in its order; attributes are quoted; nothing is loaded from another server.
 */
static void is_well_formed(const char *page) {
  static const char *const empty[] = {"meta", "!DOCTYPE"};
  char open[64][16];
  int depth = 0;
  for (const char *s = page; (s = strchr(s, '<')); s++) {
    const bool closing = s[1] == '/';
    char name[16] = "";
    int n = 0, quotes = 0;
    for (const char *t = s + 1 + closing; n < 15 && (isalnum((unsigned char)*t) || *t == '!'); t++)
      name[n++] = *t;
    const char *end = strchr(s, '>');
    assert_true(n && end);
    for (const char *t = s; t < end; t++) quotes += *t == '"';
    if (quotes % 2) fail_msg("quotes are not paired: %.80s", s);
    if (closing) {
      assert_true(depth > 0);
      if (strcmp(open[--depth], name)) fail_msg("</%s> closes <%s>: %.80s", name, open[depth], s);
    } else if (end[-1] != '/' && strcmp(name, empty[0]) && strcmp(name, empty[1])) {
      assert_true(depth < 64);
      strcpy(open[depth++], name);
    }
  }
  assert_int_equal(depth, 0);
  lacks(page, "http");
  lacks(page, "src=");
  lacks(page, "href=");
  lacks(page, "<script");
  static const char *const no_numbers[] = {"nan", "inf", "NaN", "Infinity", "undefined"};
  for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++) lacks(page, no_numbers[i]);
}

/* Marks and texts are within their charts, except those moved by a transform. */
static void is_within(const char *page) {
  for (const char *svg = page; (svg = strstr(svg, "<svg ")); svg++) {
    double width, height, x, y;
    assert_int_equal(sscanf(strstr(svg, "viewBox"), "viewBox=\"0 0 %lf %lf\"", &width, &height), 2);
    const char *end = strstr(svg, "</svg>");
    for (const char *s = svg; (s = strpbrk(s + 1, "<")) && s < end;) {
      if (!strncmp(s, "<g ", 3)) s = strstr(s, "</g>");
      if (sscanf(s, "<text x=\"%lf\" y=\"%lf\"", &x, &y) != 2 &&
          (strncmp(s, "<path", 5) || sscanf(strstr(s, " d=\""), " d=\"M%lf %lf", &x, &y) != 2))
        continue;
      if (!(x >= 0 && x <= width && y >= 0 && y <= height))
        fail_msg("outside of %g x %g: %.120s", width, height, s);
    }
  }
}

static void writes_a_page(void **state) {
  (void)state;
  char *page = page_of("a.json b.json");
  is_well_formed(page);
  is_within(page);
  has(page, ">against cpu [a.json]<");
  has(page, "name=\"viewport\"");
  has(page, "prefers-color-scheme:dark");
  has(page, "class=\"one\"");
  has(page, "cuda:0: geometric mean of 4: 4.12<");
  has(page, "cuda:0: one, 1000 rows: 8.00<");
  has(page, "hip@gfx942: geometric mean of 1: ≤4000<");
  has(page, "cuda:0: one, carbon, mul_ir, table, convolution, forward, f64: 5.00 ms for 1001 rows, "
            "from 500 rows");
  has(page, "4.12 times the speed of cpu [a.json] in the geometric mean of 4 results");
  has(page, "Rooflines");
  has(page, "class=\"roof dashed\"");
  has(page, "class=\"cross");
  has(page, ">incorrect<");
  has(page, ">failed<");
  has(page, "published: Sheet");
  assert_int_equal(times_in(page, "<h2>Scaling"), 0);
  free(page);
  page = page_of("b.json"); /* one device without ceilings */
  is_well_formed(page);
  is_within(page);
  lacks(page, "Rooflines");
  lacks(page, "Speed of each device");
  has(page, "Time of every problem");
  free(page);
  expect_clebsch("compare a.json --html nowhere/page.html", 1, "nowhere/page.html");
}

/* Without JavaScript every number of the charts is in a table; --format json has them exactly. */
static void has_numbers_without_scripts(void **state) {
  (void)state;
  expect_clebsch("compare a.json b.json --html page.html", 0, NULL);
  char *page = get_text("page.html"), *script = cut(page, "<script type", "</script>");
  has(page, "<td>all</td><td></td><td></td><td>cuda:0</td><td class=\"right\">4.12</td>");
  has(page, "<td class=\"right\">8.00</td>");
  has(page, ">2.00/row</td>");
  free(script);
  free(page);
  expect_clebsch("compare a.json b.json --format json", 0, NULL);
  json_t *root = json_load_file("out", 0, NULL), *devices = json_object_get(root, "devices"), *line,
         *mean;
  assert_int_equal(json_array_size(devices), 4);
  mean = json_array_get(json_object_get(root, "means"), 1);
  assert_float_equal(json_number_value(json_object_get(mean, "value")),
                     pow(8. * 2 * 9 * (0.01 / 1001) / (0.0025 / 500), 0.25), 1e-12);
  assert_int_equal(json_integer_value(json_object_get(mean, "n")), 4);
  size_t i, cells = 0;
  json_array_foreach(json_object_get(root, "lines"), i, line) cells +=
      json_array_size(json_object_get(line, "cells"));
  assert_int_equal(cells, 24); /* six pieces of work on four devices */
  json_decref(root);
}

/* Long names go on in further lines; without --baseline speeds are against the CPU, or else
   against what is the fastest most often. */
static void chooses_a_baseline(void **state) {
  (void)state;
#define ROW_OF(device, seconds)                                                                    \
  "{" SOME ",\"device\":\"" device "\",\"rows\":10,\"seconds\":" seconds "}"
  put_text("slow.json", "[" ROW_OF("opencl:0:0", "4") "," ROW_OF("cpu", "2") "]");
  expect_printed("compare slow.json", "opencl:0:0 has 0.500 times the speed of cpu");
  put_text("slow.json", "[" ROW_OF("opencl:0:0", "4") "," ROW_OF("cuda:0", "1") "]");
  expect_printed("compare slow.json", "opencl:0:0 has 0.250 times the speed of cuda:0");
  put_text("results_of_a_machine_with_a_name_that_is_very_long_indeed.json",
           "[" ROW_OF("opencl:0:0", "4") "," ROW_OF("cuda:0", "1") "]");
  char *page = page_of("slow.json results_of_a_machine_with_a_name_that_is_very_long_indeed.json");
  is_well_formed(page);
  is_within(page);
  free(page);
}

static void escapes(void **state) {
  (void)state;
  put_text("evil.json",
           "[{\"op\":\"</"
           "title><script>\",\"problem\":\"<b>&\\\"'\\u001b[31m\\u009b\\n\",\"pass\":\"<i>\","
           "\"dtype\":\"\\\">\",\"device\":\"<u>\",\"rows\":10,\"seconds\":1,"
           "\"bytes\":10,\"flops\":10},"
           "{\"op\":\"</"
           "title><script>\",\"problem\":\"<b>&\\\"'\\u001b[31m\\u009b\\n\",\"pass\":\"<i>\","
           "\"dtype\":\"\\\">\",\"device\":\"' onload='x\",\"rows\":10,\"seconds\":1}]");
  char *page = page_of("evil.json");
  is_well_formed(page);
  lacks(page, "<b>");
  lacks(page, "<u>");
  lacks(page, "' onload");
  lacks(page, "\033");
  has(page, "&lt;b&gt;&amp;&quot;&#39;");
  free(page);
  char *out = get_text("out");
  lacks(out, "\033");
  lacks(out, "\xc2\x9b");
  free(out);
}

/* Harmonics of l = 1, 2, 3 and rows 10^3, 10^4, 10^5 on two devices. */
static void draws_scaling(void **state) {
  (void)state;
  FILE *f = fopen("scaling.json", "w");
  assert_non_null(f);
  for (int i = 0; i < 18; i++)
    fprintf(f,
            "%c{\"op\":\"spherical_harmonics\",\"problem\":\"lmax=%d "
            "component\",\"pass\":\"forward\",\"dtype\":\"f32\",\"device\":\"%s\",\"rows\":%.0f,"
            "\"seconds\":%g}",
            i ? ',' : '[', 1 + i / 3 % 3, i / 9 ? "cuda:0" : "cpu", 1000 * pow(10, i % 3),
            (1 + i % 3) * 1e-3);
  fputs("]\n", f);
  fclose(f);
  char *page = page_of("scaling.json");
  is_well_formed(page);
  is_within(page);
  const char *rows = strstr(page, "<h2>Scaling with rows"),
             *l = strstr(page, "<h2>Scaling with l<");
  assert_true(rows && l && rows < l);
  assert_int_equal(times_in(rows, "role=\"img\"") - times_in(l, "role=\"img\""), 3);
  assert_int_equal(times_in(l, "role=\"img\""), 1);
  assert_int_equal(times_in(l, "class=\"curve"), 2);
  assert_int_equal(times_in(l, ", 100000 rows: 30.0 ns"),
                   6); /* 3 ms of 10^5 rows, for each l and device */
  free(page);
  put_text("scaling.json", "[{" SOME ",\"device\":\"x\",\"rows\":10,\"seconds\":4},{" SOME
                           ",\"device\":\"x\",\"rows\":20,\"seconds\":4}]");
  page = page_of("scaling.json"); /* two numbers of rows are no curve */
  lacks(page, "Scaling");
  free(page);
}

/* ---- files ---- */

static void refuses(void **state) {
  (void)state;
#define ROW "\"op\":\"o\",\"problem\":\"p\",\"pass\":\"forward\",\"dtype\":\"f32\",\"device\":\"d\""
#define RUN                                                                                        \
  "{\"format\":\"clebsch run 1\",\"devices\":[{\"name\":\"d\"}],\"results\":[{" ROW ",\"rows\":1,"
  static const char *const files[][2] = {
      {"", "bad.json: line 1"},
      {"[]", "bad.json: has no results"},
      {"3", "bad.json: line 1"},
      {"{\"format\":\"clebsch run 2\"}", "bad.json: format is 'clebsch run 2'"},
      {"{\"devices\":[]}", "bad.json: format is missing"},
      {"{\"format\":\"clebsch run 1\",\"devices\":[],\"results\":[]}",
       "bad.json: results has no results"},
      {"{\"format\":\"clebsch run 1\",\"devices\":7,\"results\":[]}", "devices must be an array"},
      {"{\"format\":\"clebsch run 1\",\"devices\":[3],\"results\":[]}",
       "bad.json: devices[0] must be an object"},
      {"{\"format\":\"clebsch run "
       "1\",\"devices\":[{\"name\":\"d\"},{\"name\":\"d\"}],\"results\":[]}",
       "devices[1].name is 'd' again"},
      {"{\"format\":\"clebsch run "
       "1\",\"devices\":[{\"name\":\"d\",\"published\":{\"bytes_per_second\":\"fast\"}}],"
       "\"results\":[]}",
       "devices[0].published.bytes_per_second"},
      {"{\"format\":\"clebsch run 1\",\"devices\":[],\"results\":[{" ROW ",\"rows\":1}]}",
       "results[0].device is 'd', which is not in devices"},
      {RUN "\"seconds\":\"NaN\"}]}", "bad.json: results[0].seconds must be a number"},
      {RUN "\"seconds\":0}]}", "results[0].seconds must be a number"},
      {RUN "\"seconds\":-1}]}", "results[0].seconds must be a number"},
      {RUN "\"seconds\":NaN}]}", "bad.json: line 1"},
      {RUN "\"seconds\":1e999}]}", "bad.json: line 1"},
      {RUN "\"seconds\":1e308}]}", "results[0].seconds must be a number"},
      {RUN "\"bytes\":99999999999999999999999}]}", "bad.json: line 1"},
      {RUN "\"correct\":\"yes\"}]}", "results[0].correct must be true or false"},
      {RUN "\"graph\":[]}]}", "results[0].graph must be a string"},
      {RUN "\"rows_halved\":1.5}]}", "results[0].rows_halved must be a whole number"},
      {RUN "\"rows\":2}]}", "bad.json: line 1"}, /* a key twice */
      {"[{" ROW ",\"seconds\":1}]", "bad.json: [0].rows is missing"},
      {"[{" ROW ",\"rows\":0,\"seconds\":1}]", "[0].rows must be a number from 1"},
      {"[{\"op\":\"o\",\"rows\":1,\"device\":\"d\"}]", "[0].problem is missing"},
      {"[{\"op\":\"\",\"rows\":1,\"device\":\"d\"}]", "[0].op is empty"},
      {"[7]", "bad.json: [0] must be an object"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    put_text("bad.json", files[i][0]);
    expect_clebsch("compare a.json bad.json --html page.html", 1, files[i][1]);
  }
  expect_clebsch("compare nowhere.json", 1, "nowhere.json: No such file");
  expect_clebsch("compare tmp", 1, "tmp: ");
  expect_clebsch("compare", 2, "name the files");
  expect_clebsch("compare a.json a.json", 2, "named twice");
  expect_clebsch("compare a.json --format pdf", 2, "text, csv, markdown or json");
}

static void fill(const char *name, const char *before, const char *part, int n, const char *after) {
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  fputs(before, f);
  for (int i = 0; i < n; i++) fputs(part, f);
  fputs(after, f);
  assert_int_equal(fclose(f), 0);
}

static void refuses_too_much(void **state) {
  (void)state;
  fill("bad.json", "", "                                                                ",
       (64 << 20) / 64 + 1, "[]");
  expect_clebsch("compare bad.json", 1, "larger than 64 MiB");
  fill("bad.json", "", "[", 100000, "");
  expect_clebsch("compare bad.json", 1, "bad.json: line 1");
  fill("bad.json", "[0", ",0", 100000, "]");
  expect_clebsch("compare bad.json", 1, "more than 100000 results");
  fill("bad.json", "[{\"op\":\"", "0123456789", 50, "\"}]");
  expect_clebsch("compare bad.json", 1, "[0].device is missing");
  fill("bad.json", "[{\"device\":\"", "0123456789", 50, "\"}]");
  expect_clebsch("compare bad.json", 1, "[0].device is longer than 400 bytes");
  fill("bad.json", "[{" ROW ",\"rows\":1,\"failed\":\"", "\xc3\xa4", 5000,
       "\"}]"); /* a compiler's log is cut */
  expect_clebsch("compare bad.json", 0, NULL);
}

/* A file that is cut anywhere, or has a byte changed, is read or refused. */
static void survives(void **state) {
  (void)state;
  char *whole = get_text("a.json");
  const size_t n = strlen(whole);
  uint64_t seed = 7;
  for (size_t i = 0; i < n - 3; i += 97) {
    char *cut = strdup(whole);
    cut[i] = 0;
    put_text("bad.json", cut);
    expect_clebsch("compare bad.json", 1, "bad.json: line");
    free(cut);
  }
  for (int i = 0; i < 200; i++) {
    char *changed = strdup(whole);
    for (int k = 0; k < 3; k++)
      changed[(size_t)((test_random(&seed) + 1) / 2 * (double)(n - 1))] =
          "0e9-\"]}, :x"[(int)((test_random(&seed) + 1) * 5.4)];
    put_text("bad.json", changed);
    const int status = ended(start_clebsch("compare b.json bad.json --html page.html"));
    if (status != 0 && status != 1) fail_msg("exit status %d: %s", status, changed);
    if (!status) {
      char *page = shown_page();
      is_well_formed(page);
      is_within(page);
      free(page);
    }
    free(changed);
  }
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prints),
      cmocka_unit_test(takes_a_baseline),
      cmocka_unit_test(prints_markdown),
      cmocka_unit_test(keeps_rows_apart),
      cmocka_unit_test(judges),
      cmocka_unit_test(writes_a_page),
      cmocka_unit_test(has_numbers_without_scripts),
      cmocka_unit_test(chooses_a_baseline),
      cmocka_unit_test(escapes),
      cmocka_unit_test(draws_scaling),
      cmocka_unit_test(refuses),
      cmocka_unit_test(refuses_too_much),
      cmocka_unit_test(survives),
  };
  return cmocka_run_group_tests(tests, make_files, remove_folder);
}
