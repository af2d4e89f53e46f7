/* tests/models/test_safetensors.c - reading safetensors: the contents of a good file, and the
   refusal of bad ones. */
#include "tests/test.h"

#include <unistd.h>

#include "models/file/safetensors.h"

/* ---- files ---- */

typedef struct {
  size_t n;
  unsigned char bytes[4096];
} image; /* of a file */

static char path[] = "/tmp/clebsch_safetensors_XXXXXX";
static int fd;

static int make_path(void **state) {
  (void)state;
  fd = mkstemp(path);
  return fd < 0 ? -1 : 0;
}

static int remove_path(void **state) {
  (void)state;
  close(fd);
  return unlink(path);
}

static void put(const void *bytes, size_t n) {
  assert_int_equal(pwrite(fd, bytes, n, 0), n);
  assert_int_equal(ftruncate(fd, (off_t)n), 0);
}

static image compose(const char *header, const void *data, size_t n) {
  image f = {.n = 8 + strlen(header) + n};
  assert_true(f.n <= sizeof f.bytes);
  for (int i = 0; i < 8; i++) f.bytes[i] = (unsigned char)((uint64_t)strlen(header) >> 8 * i);
  memcpy(f.bytes + 8, header, strlen(header));
  memcpy(f.bytes + 8 + strlen(header), data, n);
  return f;
}

static clb_status open_file(clb_error_sink *e, clb_safetensors **file) {
  return clb_safetensors_open(e, path, file);
}

/* Opening fails with a message that names the file and contains `what`. */
static void refused(const char *what) {
  clb_error_sink e = {0};
  clb_safetensors *file = (clb_safetensors *)path;
  assert_int_equal(open_file(&e, &file), CLB_ERROR_ARGUMENT);
  assert_null(file);
  if (!strstr(e.text.s, path) || !strstr(e.text.s, what))
    fail_msg("'%s' is not in '%s'", what, e.text.s);
  if (!clb_text_is_plain(e.text.s)) fail_msg("not one line: '%s'", e.text.s);
  clb_text_free(&e.text);
}

/* ---- a good one ---- */

static const char good_header[] =
    "{\"__metadata__\":{\"r_max\":\"4.5\",\"name\":\"H "
    "O\",\"n\":\"12\",\"e\":\"1e-12\",\"x\":\"1,5\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[16,40]},\"a\":{\"dtype\":\"F64\","
    "\"shape\":[2],\"data_offsets\":[0,16]},"
    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[16,16]},\"one\":{\"dtype\":"
    "\"F32\",\"shape\":[],\"data_offsets\":[40,44]},"
    "\"whole\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[44,48]}}   ";

static image good(void) {
  const double a[2] = {-0.1, 1e300};
  const float b[6] = {1.5f, -2.5f, 0.1f, 3e38f, 0, -0.f}, one = 7;
  const int32_t whole = 5;
  unsigned char data[48];
  memcpy(data, a, 16);
  memcpy(data + 16, b, 24);
  memcpy(data + 40, &one, 4);
  memcpy(data + 44, &whole, 4);
  return compose(good_header, data, sizeof data);
}

static clb_safetensors *open_good(clb_error_sink *e) {
  const image f = good();
  clb_safetensors *file;
  put(f.bytes, f.n);
  if (open_file(e, &file)) fail_msg("%s", e->text.s);
  return file;
}

static void reads_tensors(void **state) {
  (void)state;
  clb_error_sink e = {0};
  clb_safetensors *file = open_good(&e);
  const double wanted[6] = {1.5, -2.5, 0.1f, 3e38f, 0, -0.};
  double out[6] = {9, 9, 9, 9, 9, 9};
  assert_int_equal(clb_safetensors_size(file), 5);
  assert_int_equal(clb_safetensors_read(&e, file, "a", 1, (int64_t[]){2}, out), CLB_OK);
  assert_true(out[0] == -0.1 && out[1] == 1e300 && out[2] == 9);
  assert_int_equal(clb_safetensors_read(&e, file, "b", 2, (int64_t[]){2, 3}, out), CLB_OK);
  assert_memory_equal(out, wanted, sizeof out);
  assert_int_equal(clb_safetensors_read(&e, file, "one", 0, NULL, out), CLB_OK);
  assert_true(out[0] == 7 && out[1] == -2.5);
  assert_int_equal(clb_safetensors_read(&e, file, "none", 2, (int64_t[]){0, 7}, NULL), CLB_OK);
  const clb_tensor *t = clb_safetensors_find(file, "b");
  assert_true(t && t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3 && t->count == 6 &&
              t->end - t->begin == 24 && !strcmp(t->dtype, "F32"));
  assert_string_equal(clb_safetensors_at(file, 0)->name, "a");
  assert_null(clb_safetensors_find(file, "c"));
  assert_null(clb_safetensors_find(file, "__metadata__"));
  clb_safetensors_close(&file);
  assert_null(file);
  clb_safetensors_close(&file);
}

static void expect_sentence(clb_error_sink *e, clb_status status, const char *sentence) {
  char whole[256];
  snprintf(whole, sizeof whole, "%s: %s", path, sentence);
  assert_int_equal(status, CLB_ERROR_ARGUMENT);
  assert_string_equal(e->text.s, whole);
}

static void says_what_does_not_fit(void **state) {
  (void)state;
  clb_error_sink e = {0};
  clb_safetensors *file = open_good(&e);
  double out[6];
  expect_sentence(&e, clb_safetensors_read(&e, file, "c", 1, (int64_t[]){2}, out),
                  "there is no tensor 'c'");
  expect_sentence(&e, clb_safetensors_read(&e, file, "whole", 1, (int64_t[]){1}, out),
                  "tensor 'whole' is I32, not F64 or F32");
  expect_sentence(&e, clb_safetensors_read(&e, file, "b", 2, (int64_t[]){3, 2}, out),
                  "tensor 'b' is [2, 3], not [3, 2]");
  expect_sentence(&e, clb_safetensors_read(&e, file, "b", 1, (int64_t[]){6}, out),
                  "tensor 'b' is [2, 3], not [6]");
  clb_safetensors_close(&file);
  clb_text_free(&e.text);
}

static void reads_metadata(void **state) {
  (void)state;
  clb_error_sink e = {0};
  clb_safetensors *file = open_good(&e);
  const char *text;
  double x;
  int64_t n;
  assert_int_equal(clb_safetensors_text(&e, file, "name", &text), CLB_OK);
  assert_string_equal(text, "H O");
  assert_int_equal(clb_safetensors_number(&e, file, "r_max", &x), CLB_OK);
  assert_true(x == 4.5);
  assert_int_equal(clb_safetensors_number(&e, file, "e", &x), CLB_OK);
  assert_true(x == 1e-12);
  assert_int_equal(clb_safetensors_whole(&e, file, "n", 1, 12, &n), CLB_OK);
  assert_int_equal(n, 12);
  expect_sentence(&e, clb_safetensors_text(&e, file, "nothing", &text),
                  "its metadata lack 'nothing'");
  expect_sentence(&e, clb_safetensors_number(&e, file, "name", &x),
                  "'name' of its metadata is not a number: \"H O\"");
  expect_sentence(&e, clb_safetensors_number(&e, file, "x", &x),
                  "'x' of its metadata is not a number: \"1,5\"");
  expect_sentence(&e, clb_safetensors_whole(&e, file, "n", 0, 11, &n),
                  "'n' of its metadata is not a whole number from 0 to 11");
  expect_sentence(&e, clb_safetensors_whole(&e, file, "n", 13, 20, &n),
                  "'n' of its metadata is not a whole number from 13 to 20");
  expect_sentence(&e, clb_safetensors_whole(&e, file, "r_max", 0, 11, &n),
                  "'r_max' of its metadata is not a whole number from 0 to 11");
  clb_safetensors_close(&file);
  clb_text_free(&e.text);
}

static void no_metadata(void **state) {
  (void)state;
  clb_error_sink e = {0};
  clb_safetensors *file;
  const char *text;
  const image f = compose("{}", "", 0);
  put(f.bytes, f.n);
  assert_int_equal(open_file(&e, &file), CLB_OK);
  assert_int_equal(clb_safetensors_size(file), 0);
  expect_sentence(&e, clb_safetensors_text(&e, file, "name", &text), "its metadata lack 'name'");
  clb_safetensors_close(&file);
  clb_text_free(&e.text);
}

/* ---- bad ones ---- */

static void refuses_headers(void **state) {
  (void)state;
  static const struct {
    const char *header, *what; /* with 8 bytes of data */
  } cases[] = {
      {"[]", "its header is no JSON object"},
      {" {}", "its header is no JSON object"},
      {"{\"a\":", "its header is wrong"},
      {"{}x", "its header is wrong"},
      {"{}", "8 bytes of data belong to no tensor"},
      {"{\"__metadata__\":[],\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
       "__metadata__ is not an object"},
      {"{\"__metadata__\":{\"k\":1},\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}"
       "}",
       "a value is not a string"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F64\","
       "\"shape\":[1],\"data_offsets\":[0,8]}}",
       "duplicate"},
      {"{\"a\":3}", "tensor 'a' has no dtype"},
      {"{\"a\":{\"dtype\":\"F63\",\"shape\":[1],\"data_offsets\":[0,8]}}",
       "tensor 'a' has no dtype, or one that is unknown"},
      {"{\"a\":{\"dtype\":\"F64\",\"data_offsets\":[0,8]}}", "its shape is not a list"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1.0],\"data_offsets\":[0,8]}}",
       "its shape is not a list"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[-1],\"data_offsets\":[0,8]}}",
       "its shape is not a list"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,8]}}",
       "at most 8 whole numbers"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
       "or too large"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693953],\"data_offsets\":[0,8]}}",
       "do not fit its 8 bytes"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,8]}}",
       "do not fit its 8 bytes"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}",
       "do not fit its 8 bytes"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1]}}", "data_offsets are not [begin, end]"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8,8]}}",
       "data_offsets are not [begin, end]"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,0]}}",
       "data_offsets are not [begin, end]"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[-8,0]}}",
       "data_offsets are not [begin, end]"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]}}",
       "tensor 'a' ends at byte 16 of 8 bytes"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
       "4 bytes of data belong to no tensor"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
       "a gap before tensor 'a'"},
      {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\","
       "\"shape\":[1],\"data_offsets\":[4,8]}}",
       "another tensor overlaps tensor 'b'"},
      {"{\"a\\u001b[2J\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
       "control characters"},
      {"{\"a\\nclebsch: b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
       "tensor 'a?clebsch: b' holds control characters"},
      {"{\"__metadata__\":{\"a\\nclebsch: b\":\"c\"}}", "'a?clebsch: b' holds control characters"},
      {"{\"a\":\nclebsch}", "its header is wrong"},
      {"{\"a\":\"b\nclebsch: c\"}", "its header is wrong"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const image f = compose(cases[i].header, "01234567", 8);
    put(f.bytes, f.n);
    refused(cases[i].what);
  }
}

static void refuses_lengths(void **state) {
  (void)state;
  image f = good();
  put(f.bytes, 7);
  refused("shorter than 8 bytes");
  memset(f.bytes, 0xff, 8);
  put(f.bytes, f.n);
  refused("a header of 18446744073709551615 bytes");
  f = good();
  f.bytes[0] = (unsigned char)(f.n - 7), f.bytes[1] = (unsigned char)((f.n - 7) >> 8);
  put(f.bytes, f.n);
  refused("a header of ");
  memset(f.bytes, 0, 8);
  put(f.bytes, f.n);
  refused("its header is no JSON object");
}

/* Checkpoints of PyTorch and of Nequix are known by what they begin with. */
static void names_convert(void **state) {
  (void)state;
  static const char *const heads[] = {"PK\3\4\0\0\10\10", "{\"state_"};
  for (int i = 0; i < 2; i++) {
    image f = good();
    memcpy(f.bytes, heads[i], 8);
    put(f.bytes, f.n);
    refused("clebsch convert ");
  }
}

static void refuses_other_things(void **state) {
  (void)state;
  clb_error_sink e = {0};
  clb_safetensors *file;
  assert_int_equal(clb_safetensors_open(&e, "/nowhere/at all", &file), CLB_ERROR_ARGUMENT);
  assert_string_equal(e.text.s, "/nowhere/at all: No such file or directory");
  assert_int_equal(clb_safetensors_open(&e, "/tmp", &file), CLB_ERROR_ARGUMENT);
  assert_string_equal(e.text.s, "/tmp: not a file");
  clb_text_free(&e.text);
}

/* Whatever the header says: either the file is refused, or every tensor lies in the data. */
static void touch_all(void) {
  clb_error_sink e = {0};
  clb_safetensors *file;
  double out[64];
  if (!open_file(&e, &file)) {
    const clb_tensor *first = clb_safetensors_size(file) ? clb_safetensors_at(file, 0) : NULL;
    for (int i = 0; i < clb_safetensors_size(file); i++) {
      const clb_tensor *t = clb_safetensors_at(file, i);
      assert_true(t->begin <= t->end && t->end <= 48 && t->data == first->data + t->begin);
      if (t->count <= 64) (void)clb_safetensors_read(&e, file, t->name, t->rank, t->shape, out);
    }
  }
  clb_safetensors_close(&file);
  clb_text_free(&e.text);
}

static void every_bit_of_the_header(void **state) {
  (void)state;
  image f = good();
  for (size_t i = 0; i < f.n - 48; i++)
    for (int bit = 0; bit < 8; bit++) {
      f.bytes[i] ^= (unsigned char)(1 << bit);
      put(f.bytes, f.n);
      touch_all();
      f.bytes[i] ^= (unsigned char)(1 << bit);
    }
}

static void every_length(void **state) {
  (void)state;
  const image f = good();
  for (size_t n = 0; n < f.n; n++) {
    put(f.bytes, n);
    refused("");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_tensors),           cmocka_unit_test(says_what_does_not_fit),
      cmocka_unit_test(reads_metadata),          cmocka_unit_test(no_metadata),
      cmocka_unit_test(refuses_headers),         cmocka_unit_test(refuses_lengths),
      cmocka_unit_test(names_convert),           cmocka_unit_test(refuses_other_things),
      cmocka_unit_test(every_bit_of_the_header), cmocka_unit_test(every_length),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
