/* tests/structures/test_structure_frames.c - frames of a file, and slices of them. */
#include "tests/structures/structure_runner.h"

static const char *five_frames(void) {
  static char path[64];
  snprintf(path, sizeof path, "/tmp/clebsch-frames-%d.xyz", (int)getpid());
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < 5; i++) {
    fprintf(f, "1\n\nO 0 0 %d\n", i);
    if (i == 1) fputs("VEC1 5 0 0\nVEC2 0 6 0\nVEC3 0 0 7\n", f);
    if (i == 2) fputs(" \n\n", f);
  }
  fclose(f);
  return path;
}

/* The frames of a slice by the z of their atom; their numbers are those in the file. false: error.
 */
static bool frames_of(const char *path, const char *slice, char z[10], char error[600]) {
  structure_options options = {0};
  structure s;
  int found = -1, n = 0;
  assert_true(structure_slice_read(slice, &options.frames));
  structure_frames *f = structure_frames_open(path, &options, error, 600);
  while (f && (found = structure_frames_next(f, &s)) == 1) {
    assert_int_equal(s.n, 1);
    assert_int_equal(s.frame, (int)s.positions[2] + 1);
    assert_int_equal(s.periodic[0], s.positions[2] == 1);
    z[n++] = (char)('0' + (int)s.positions[2]);
    structure_free(&s);
  }
  structure_frames_close(f);
  z[n] = 0;
  return !found;
}

/* Those that Python's list has. */
static void slices(void **state) {
  (void)state;
  static const char *const all[][2] = {
      {"all", "01234"},  {":", "01234"},   {"::", "01234"}, {"0:5", "01234"},     {"1:3", "12"},
      {"::2", "024"},    {"1::2", "13"},   {"3:100", "34"}, {"-2:", "34"},        {":-3", "01"},
      {"-4:-1:2", "13"}, {"-9:2", "01"},   {"4", "4"},      {"-1", "4"},          {"-5", "0"},
      {"0", "0"},        {"0:-1:3", "03"}, {"1", "1"},      {"2:999999:2", "24"}, {"-2", "3"},
  };
  const char *path = five_frames();
  char z[10], error[600];
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!frames_of(path, all[i][0], z, error)) fail_msg("%s: %s", all[i][0], error);
    if (strcmp(z, all[i][1]) != 0) fail_msg("%s: %s", all[i][0], z);
  }
  unlink(path);
}

static void none_chosen(void **state) {
  (void)state;
  static const char *const none[][2] = {
      {"5", "its 5 frames"}, {"-6", "its 5 frames"}, {"7:", "its 5 frames"}, {"3:3", "end before"},
      {"4:2", "end before"}, {":-5", "end before"},  {"-1:0", "end before"}};
  const char *path = five_frames();
  char z[10], error[600];
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (frames_of(path, none[i][0], z, error) || *z || !strstr(error, path) ||
        !strstr(error, none[i][1]))
      fail_msg("%s: '%s', %s", none[i][0], z, error);
  unlink(path);
}

static void no_slices(void **state) {
  (void)state;
  static const char *const wrong[] = {"",        "a",   "1:2:0", "1:2:-1",
                                      "1:2:3:4", "1.5", "--1",   "1:b",
                                      "+1",      "1 ",  "::x",   "1234567890123456"};
  structure_slice s;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (structure_slice_read(wrong[i], &s)) fail_msg("'%s' was read", wrong[i]);
}

/* Frames before the chosen one are only skipped: what is wrong with their atoms is not looked at.
 */
static void skipped_frames(void **state) {
  (void)state;
  static const char text[] = "2\n\nQ a b c\n\n1\n\nO 0 0 1\n";
  structure_options options = {0};
  structure_slice_read("-1", &options.frames);
  structure s = read_well("xyz", text, &options);
  assert_int_equal(s.frame, 2);
  assert_true(s.n == 1 && s.positions[2] == 1);
  structure_free(&s);
  structure_slice_read("0", &options.frames);
  expect_refused("xyz", text, &options, ", frame 1, line 3: 'Q' is not a chemical symbol");
  structure_slice_read("1", &options.frames);
  expect_refused("xyz", "2\n\nQ a b c\n", &options,
                 "frame 1, line 3: the file ends here, before atom 2 of 2");
  structure_slice_read("-1", &options.frames);
  expect_refused("xyz", "1\n\nO 0 0 0\nO 0 0 1\n", &options,
                 "frame 2, line 4: the first line of a frame is the number of atoms");
  expect_refused("xyz", "", &options, "frame 1: the file ends here, before the number of atoms");
  expect_refused("gro", "t\n0\n1 1 1\n", &options, "only files of extended XYZ");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slices),
      cmocka_unit_test(none_chosen),
      cmocka_unit_test(no_slices),
      cmocka_unit_test(skipped_frames),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
