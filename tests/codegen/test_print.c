/* tests/codegen/test_print.c - the SIMT text: one body for three languages, exact constants in any
   locale, and what cannot be expressed. */
#include <locale.h>
#include <math.h>

#include "src/codegen/codegen.h"
#include "tests/ir/random_kernel.h"
#include "tests/test.h"

static const clb_dialect opencl = {.language = CLB_LANGUAGE_OPENCL},
                         opencl_subgroups = {.language = CLB_LANGUAGE_OPENCL,
                                             .subgroups = true,
                                             .float_atomics = true},
                         cuda = {.language = CLB_LANGUAGE_CUDA, .vector_atomics = true},
                         hip = {.language = CLB_LANGUAGE_HIP};

static char *print(const ir_kernel *k, const clb_dialect *d) {
  clb_text text = {0};
  char error[200] = "";
  if (!clb_print(k, d, &text, error, sizeof error)) fail_msg("%s", error);
  assert_int_equal(strlen(text.s), text.n);
  return text.s;
}

/* From the kernel on; before it are the definitions of words. */
static const char *body(const char *text) {
  const char *s = text;
  for (const char *next; (next = strstr(s + 1, "\nKERNEL("));) s = next;
  assert_true(s != text);
  return s;
}

static void one_body(void **state) {
  (void)state;
  for (int seed = 0; seed < 60; seed++) {
    random_kernel r;
    random_kernel_make(&r, (uint64_t)seed, 32, 1 + seed % 4,
                       RANDOM_ALL & ~(unsigned)(RANDOM_ATOMICS | RANDOM_ALIGNED));
    char *texts[] = {print(&r.k, &cuda), print(&r.k, &hip), print(&r.k, &opencl_subgroups)};
    for (int i = 1; i < 3; i++)
      if (strcmp(body(texts[0]), body(texts[i])))
        fail_msg("seed %d:\n%s\n%s", seed, body(texts[0]), body(texts[i]));
    for (int i = 0; i < 3; i++) free(texts[i]);
    random_kernel_free(&r);
  }
}

/* The number of "v0[i] = NUMBER;" for i = 0, 1, ... */
static const char *stored(const char *text, int i) {
  char want[32];
  snprintf(want, sizeof want, "v0[%d] = ", i);
  const char *s = strstr(text, want);
  if (!s) fail_msg("no %s in\n%s", want, text);
  return s + strlen(want);
}

static void put_reals(ir_kernel *k, ir_type type, const double *x, int n) {
  ir_begin(k, "constants", 1, 1, 1);
  ir_val y = ir_buffer(k, type, true);
  for (int i = 0; i < n; i++) ir_store(k, y, ir_int(k, IR_I32, i), IR_NONE, ir_real(k, type, x[i]));
  assert_true(ir_finish(k));
}

static void exact_constants(void **state) {
  static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "C"};
  double x[64] = {0.0,
                  -0.0,
                  1,
                  -1,
                  0.1,
                  1e300,
                  -5e-324,
                  2.2250738585072014e-308,
                  1.7976931348623157e308,
                  0x1p-1074,
                  0x1.0000000000001p+0,
                  3};
  uint64_t seed = 3;
  (void)state;
  for (int i = 12; i < 64; i++) x[i] = ldexp(test_random(&seed), (int)(600 * test_random(&seed)));
  for (int narrow = 0; narrow < 2; narrow++) {
    ir_kernel k;
    if (narrow)
      for (int i = 0; i < 64; i++)
        x[i] = (float)ldexp(x[i], i < 12 ? 0 : -ilogb(x[i]) + i - 32),
        x[i] = isfinite(x[i]) ? x[i] : 7;
    put_reals(&k, narrow ? IR_F32 : IR_F64, x, 64);
    for (size_t l = 0; l < sizeof locales / sizeof *locales && !setlocale(LC_ALL, locales[l]);
         l++) {
    }
    char *text = print(&k, &cuda);
    setlocale(LC_ALL, "C");
    for (int i = 0; i < 64; i++) {
      const char *s = stored(text, i);
      char *end;
      double y = strtod(s + (*s == '('), &end);
      if (memcmp(&y, &x[i], sizeof y)) fail_msg("%a is %.40s", x[i], s);
      if ((*end == 'f') != narrow) fail_msg("the type of %.40s", s);
    }
    free(text);
    ir_free(&k);
  }
}

static void no_numbers(void **state) {
  const double x[] = {INFINITY, -INFINITY, NAN};
  ir_kernel k;
  (void)state;
  put_reals(&k, IR_F32, x, 3);
  char *text = print(&k, &opencl);
  assert_int_equal(strncmp(stored(text, 0), "bits_f32(0x7f800000u);", 22), 0);
  assert_int_equal(strncmp(stored(text, 1), "bits_f32(0xff800000u);", 22), 0);
  assert_int_equal(strncmp(stored(text, 2), "bits_f32(0x7fc00000u);", 22), 0);
  assert_non_null(strstr(text, "#define bits_f32 as_float\n"));
  free(text);
  ir_free(&k);
  put_reals(&k, IR_F64, x, 3);
  text = print(&k, &hip);
  assert_int_equal(strncmp(stored(text, 0), "bits_f64(0x7ff0000000000000);", 29), 0);
  assert_int_equal(strncmp(stored(text, 2), "bits_f64(0x7ff8000000000000);", 29), 0);
  free(text);
  ir_free(&k);
}

static void integers(void **state) {
  ir_kernel k;
  (void)state;
  ir_begin(&k, "integers", 1, 1, 1);
  ir_val y = ir_buffer(&k, IR_I64, true), z = ir_buffer(&k, IR_I32, true);
  const int64_t x[] = {0, -7, INT64_MAX, INT64_MIN};
  for (int i = 0; i < 4; i++)
    ir_store(&k, y, ir_int(&k, IR_I32, i), IR_NONE, ir_int(&k, IR_I64, x[i]));
  ir_store(&k, z, ir_int(&k, IR_I32, 0), IR_NONE, ir_int(&k, IR_I32, INT32_MIN));
  ir_store(&k, z, ir_int(&k, IR_I32, 1), IR_NONE, ir_add(&k, ir_group(&k), ir_int(&k, IR_I32, -1)));
  assert_true(ir_finish(&k));
  char *text = print(&k, &hip);
  static const char *const words[] = {"v0[0] = 0L;",
                                      "v0[1] = (-7L);",
                                      "v0[2] = 9223372036854775807L;",
                                      "v0[3] = (-9223372036854775807L - 1);",
                                      "v1[0] = (-2147483647 - 1);",
                                      "(int)((u32)",
                                      "(u32)(-1)"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strstr(text, words[i])) fail_msg("no %s in\n%s", words[i], text);
  free(text);
  ir_free(&k);
}

/* A text defines the words that it uses and no others. */
static void few_words(void **state) {
  ir_kernel k;
  (void)state;
  ir_begin(&k, "few_words", 32, 2, 64);
  ir_val x = ir_buffer(&k, IR_F16, false), y = ir_buffer(&k, IR_F32, true),
         at = ir_add(&k, ir_mul(&k, ir_subgroup(&k), ir_int(&k, IR_I32, 32)), ir_lane(&k));
  ir_store(&k, y, at, ir_2(&k, IR_LT, at, ir_int(&k, IR_I32, 40)),
           ir_1(&k, IR_SQRT, ir_load(&k, x, at, IR_NONE)));
  assert_true(ir_finish(&k));
  const clb_dialect *const dialects[] = {&opencl, &opencl_subgroups, &cuda, &hip};
  for (int i = 0; i < 4; i++) {
    char *text = print(&k, dialects[i]);
    static const char *const absent[] = {"double", "fp64", "exp",         "shuffle",  "barrier",
                                         "atomic", "bf16", "two_over_pi", "#include", "v32"};
    static const char *const present[] = {
        "KERNEL(64, 32, 1) few_words(GLOBAL const u16 *restrict v0, GLOBAL float *v1)",
        "f16_to_f32(v0[", "sqrt_f32(", "if (v"};
    for (size_t w = 0; w < sizeof absent / sizeof *absent; w++)
      if (strstr(text, absent[w])) fail_msg("%s in\n%s", absent[w], text);
    for (size_t w = 0; w < sizeof present / sizeof *present; w++)
      if (!strstr(text, present[w])) fail_msg("no %s in\n%s", present[w], text);
    assert_int_equal(!strstr(text, "intel_reqd_sub_group_size"), i != 1);
    free(text);
  }
  ir_free(&k);
}

/* Lane masks are hidden from the compiler where asked; uniform ones are not. */
static void hidden_masks(void **state) {
  static const clb_dialect hides = {.language = CLB_LANGUAGE_OPENCL,
                                    .subgroups = true,
                                    .float_atomics = true,
                                    .quirk_mask_implication = true};
  ir_kernel k;
  (void)state;
  ir_begin(&k, "masks", 32, 1, 64);
  ir_val y = ir_buffer(&k, IR_F32, true), n = ir_scalar(&k, IR_I32), lane = ir_lane(&k),
         below = ir_2(&k, IR_LT, lane, ir_int(&k, IR_I32, 20));
  ir_val mask = ir_2(&k, IR_AND, below, ir_2(&k, IR_EQ, lane, n));
  ir_if(&k, ir_2(&k, IR_LE, n, ir_int(&k, IR_I32, 9)));
  ir_store(&k, y, lane, mask, ir_load(&k, y, lane, below));
  ir_end(&k);
  assert_true(ir_finish(&k));
  char *plain = print(&k, &opencl_subgroups), *text = print(&k, &hides);
  assert_null(strstr(plain, "hidden"));
  static const char *const words[] = {"#define hidden(", "v5 = hidden(v3 < 20);",
                                      "v6 = hidden(v1 == v3);", "v7 = hidden(v5 && v6);",
                                      "v9 = v1 <= 9;"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strstr(text, words[i])) fail_msg("no %s in\n%s", words[i], text);
  free(plain);
  free(text);
  ir_free(&k);
}

/* CUDA declares up to 48 KB of local arrays, each from a multiple of 16 bytes on; beyond that they
   are parts of the launch's dynamic memory. */
static void much_local_memory(void **state) {
  static const clb_dialect *const others[] = {&opencl, &opencl_subgroups, &hip};
  (void)state;
  for (int more = 0; more < 2; more++) {
    ir_kernel k;
    ir_begin(&k, "much_local", 32, 1, 32);
    ir_val y = ir_buffer(&k, IR_F64, true), a = ir_local(&k, IR_F16, 3),
           b = ir_local(&k, IR_F64, 6140 + more), c = ir_local(&k, IR_F32, 1), lane = ir_lane(&k);
    ir_store(&k, a, ir_int(&k, IR_I32, 0), IR_NONE, ir_real(&k, IR_F32, 1));
    ir_store(&k, c, ir_int(&k, IR_I32, 0), IR_NONE, ir_real(&k, IR_F32, 2));
    ir_store(&k, b, lane, IR_NONE, ir_real(&k, IR_F64, 3));
    ir_store(&k, y, lane, IR_NONE, ir_load(&k, b, lane, IR_NONE));
    assert_true(ir_finish(&k));
    assert_int_equal(clb_launch_local_bytes(&k, &cuda), more ? 49168 : 0);
    char *text = print(&k, &cuda);
    static const char *const want[] = {
        "  SHARED u16 v1[3];\n  SHARED double v2[6140];\n  SHARED float v3[1];\n",
        "  extern SHARED unsigned char shared[];\n  u16 *const v1 = (u16 *)(shared + 0);\n"
        "  double *const v2 = (double *)(shared + 16);\n  float *const v3 = (float *)(shared + "
        "49152);\n"};
    if (!strstr(text, want[more]) || strstr(text, want[!more])) fail_msg("%s", text);
    for (int i = 0; i < 3; i++) {
      char *other = print(&k, others[i]);
      assert_int_equal(clb_launch_local_bytes(&k, others[i]), 0);
      if (!strstr(other, "  SHARED u16 v1[3];\n  SHARED double v2[614") ||
          strstr(other, "extern SHARED"))
        fail_msg("%s", other);
      free(other);
    }
    free(text);
    ir_free(&k);
  }
}

/* CUDA's text has these words; the others' have no vector types. */
static void expect_vectors(const ir_kernel *k, const char *const *words, size_t n) {
  static const clb_dialect *const others[] = {&opencl, &opencl_subgroups, &hip};
  static const char *const types[] = {"float2", "float4", "double2"};
  char *text = print(k, &cuda);
  for (size_t i = 0; i < n; i++)
    if (!strstr(text, words[i])) fail_msg("no %s in\n%s", words[i], text);
  free(text);
  for (int i = 0; i < 3; i++) {
    text = print(k, others[i]);
    for (int t = 0; t < 3; t++)
      if (strstr(text, types[t])) fail_msg("%s in\n%s", types[t], text);
    free(text);
  }
}

/* CUDA takes an aligned row at once, the others element by element. */
static void aligned_loads(void **state) {
  static const char *const words[] = {
      "  const float2 q8 = *(const float2 *)(v0 + v7); const float v8_0 = q8.x, v8_1 = q8.y;\n",
      "  float v14_0 = 0, v14_1 = 0, v14_2 = 0, v14_3 = 0;\n"
      "  if (v13) { const float4 q14 = *(const float4 *)(v0 + v11); v14_0 = q14.x, v14_1 = q14.y, "
      "v14_2 = q14.z, v14_3 = q14.w; }\n",
      "= *(const double2 *)(v1 + v7)",
      "= *(const longlong2 *)(v2 + v7)",
      "= *(const int4 *)(v3 + v11)",
      "const int2 q23 = *(const int2 *)(v22 + v11); const float v23_0 = "
      "bf16_to_f32((u16)((u32)q23.x)), v23_1 = bf16_to_f32((u16)((u32)q23.x >> 16)), v23_2 = "
      "bf16_to_f32((u16)((u32)q23.y)), "};
  ir_kernel k;
  ir_val v[4], y[6];
  (void)state;
  ir_begin(&k, "aligned", 32, 1, 32);
  ir_val x[] = {ir_buffer(&k, IR_F32, false), ir_buffer(&k, IR_F64, false),
                ir_buffer(&k, IR_I64, false), ir_local(&k, IR_I32, 128)};
  ir_val lane = ir_lane(&k), two = ir_mul(&k, lane, ir_int(&k, IR_I32, 2)), mask;
  ir_load_aligned(&k, x[0], two, IR_NONE, 2, v);
  y[0] = v[1];
  ir_val four = ir_mul(&k, lane, ir_int(&k, IR_I32, 4));
  mask = ir_2(&k, IR_LT, lane, ir_int(&k, IR_I32, 5));
  ir_load_aligned(&k, x[0], four, mask, 4, v);
  y[1] = v[3];
  for (int i = 1; i < 3; i++) ir_load_aligned(&k, x[i], two, mask, 2, v), y[1 + i] = v[1];
  ir_load_aligned(&k, x[3], four, IR_NONE, 4, v);
  y[4] = v[2];
  ir_load_aligned(&k, ir_buffer(&k, IR_BF16, false), four, IR_NONE, 4, v);
  y[5] = ir_add(&k, ir_add(&k, v[0], v[1]), ir_add(&k, v[2], v[3]));
  ir_val sum = ir_cast(&k, IR_F64, ir_add(&k, y[0], y[1]));
  for (int i = 2; i < 6; i++) sum = ir_add(&k, sum, ir_cast(&k, IR_F64, y[i]));
  ir_store(&k, ir_buffer(&k, IR_F64, true), lane, IR_NONE, sum);
  assert_true(ir_finish(&k));
  expect_vectors(&k, words, sizeof words / sizeof *words);
  ir_free(&k);
}

/* The same of stores, those that are not soon read, and additions of f32. */
static void aligned_stores(void **state) {
  static const char *const words[] = {"  *(float2 *)(v0 + v5) = make_float2(v6, v6);\n",
                                      "  if (v9) __stcs((double2 *)(v1 + v5), make_double2(",
                                      "{ atomic_add_f32_2(p", "{ atomic_add_f64(GLOBAL, p",
                                      "= make_int2((int)((u32)f32_to_f16(v6) | "
                                      "(u32)f32_to_f16(v6) << 16), (int)((u32)"};
  ir_kernel k;
  (void)state;
  ir_begin(&k, "aligned", 32, 1, 32);
  ir_val x[] = {ir_buffer(&k, IR_F32, true), ir_buffer(&k, IR_F64, true)};
  ir_val lane = ir_lane(&k), two = ir_mul(&k, lane, ir_int(&k, IR_I32, 2));
  ir_stream(&k, x[1]);
  ir_val one = ir_cast(&k, IR_F32, lane);
  ir_store_aligned(&k, x[0], two, IR_NONE, 2, (const ir_val[]){one, one});
  ir_val mask = ir_2(&k, IR_LT, lane, ir_int(&k, IR_I32, 5)), wide = ir_cast(&k, IR_F64, lane);
  ir_store_aligned(&k, x[1], two, mask, 2, (const ir_val[]){wide, wide});
  ir_atomic_add_aligned(&k, x[0], two, mask, 2, (const ir_val[]){one, one});
  ir_atomic_add_aligned(&k, x[1], two, mask, 2, (const ir_val[]){wide, wide});
  ir_store_aligned(&k, ir_buffer(&k, IR_F16, true), ir_mul(&k, lane, ir_int(&k, IR_I32, 4)),
                   IR_NONE, 4, (const ir_val[]){one, one, one, one});
  assert_true(ir_finish(&k));
  expect_vectors(&k, words, sizeof words / sizeof *words);
  ir_free(&k);
}

/* NVIDIA's OpenCL has sub-groups, asynchronous copies and additions by PTX, and takes aligned rows
   at once; without PTX the same text has none of it. */
static void with_ptx(void **state) {
  static const clb_dialect ptx = {.language = CLB_LANGUAGE_OPENCL, .subgroups = true, .ptx = true};
  static const char *const words[] = {"shfl.sync.bfly.b32",
                                      "bar.warp.sync",
                                      "red.global.add.f32",
                                      "cp.async.wait_group",
                                      "cp.async.cg.shared.global [%0 + ",
                                      "copy_aligned_16(to",
                                      ", 64, from",
                                      "*(const GLOBAL float4 *)(v",
                                      "*(GLOBAL float2 *)(v",
                                      "typedef long2 longlong2;",
                                      "*(GLOBAL longlong2 *)(v"};
  ir_kernel k;
  (void)state;
  ir_begin(&k, "ptx", 32, 1, 32);
  ir_val x = ir_buffer(&k, IR_F32, true), y = ir_buffer(&k, IR_I64, true),
         local = ir_local(&k, IR_F32, 256), lane = ir_lane(&k), v[4];
  ir_val two = ir_mul(&k, lane, ir_int(&k, IR_I32, 2)), four = ir_add(&k, two, two),
         wide = ir_cast(&k, IR_I64, lane);
  ir_load_aligned(&k, x, four, IR_NONE, 4, v);
  ir_copy_aligned(&k, local, ir_add(&k, four, ir_int(&k, IR_I32, 16)), x, four, IR_NONE, 4);
  ir_copy_commit(&k);
  ir_copy_wait(&k, 0);
  ir_barrier(&k, false);
  ir_val sum = ir_add(&k, ir_reduce_add(&k, v[3]), ir_load(&k, local, lane, IR_NONE));
  ir_store_aligned(&k, x, two, IR_NONE, 2, (const ir_val[]){sum, sum});
  ir_store_aligned(&k, y, two, IR_NONE, 2, (const ir_val[]){wide, wide});
  ir_atomic_add(&k, x, lane, IR_NONE, sum);
  assert_true(ir_finish(&k));
  char *text = print(&k, &ptx), *plain = print(&k, &opencl_subgroups);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!strstr(text, words[i])) fail_msg("no %s in\n%s", words[i], text);
    if (strstr(plain, words[i])) fail_msg("%s in\n%s", words[i], plain);
  }
  assert_null(strstr(text, "intel_"));
  free(text);
  free(plain);
  ir_free(&k);
}

/* Negations, and what a compiler turns into one, are hidden from the compiler where asked; what
   only looks like one stays. */
static void hidden_negation(void **state) {
  static const clb_dialect hides = {
      .language = CLB_LANGUAGE_OPENCL, .subgroups = true, .quirk_negation = true};
  ir_kernel k;
  (void)state;
  ir_begin(&k, "negations", 32, 1, 32);
  ir_val y = ir_buffer(&k, IR_F32, true), z = ir_buffer(&k, IR_F64, true),
         a = ir_scalar(&k, IR_F32), d = ir_scalar(&k, IR_F64), n = ir_scalar(&k, IR_I32),
         lane = ir_lane(&k);
  const ir_val of[] = {
      ir_1(&k, IR_NEG, a),
      ir_mul(&k, a, ir_real(&k, IR_F32, -1)),
      ir_mul(&k, ir_real(&k, IR_F32, -1), ir_add(&k, a, a)),
      ir_2(&k, IR_DIV, ir_sub(&k, a, ir_real(&k, IR_F32, 3)), ir_real(&k, IR_F32, -1)),
      ir_sub(&k, ir_real(&k, IR_F32, -0.0), ir_mul(&k, a, a)),
      ir_sub(&k, ir_real(&k, IR_F32, 0), a),
      ir_mul(&k, a, ir_real(&k, IR_F32, -2)),
      ir_cast(&k, IR_F32, ir_mul(&k, n, ir_int(&k, IR_I32, -1)))};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++)
    ir_store(&k, y, ir_add(&k, lane, ir_int(&k, IR_I32, 32 * (int)i)), IR_NONE, of[i]);
  ir_store(&k, z, lane, IR_NONE, ir_1(&k, IR_NEG, d));
  assert_true(ir_finish(&k));
  char *plain = print(&k, &opencl_subgroups), *text = print(&k, &hides);
  assert_null(strstr(plain, "negated"));
  int found = 0;
  for (const char *s = text; (s = strstr(s, "= negated(")); s++) found++;
  if (found != 6 || !strstr(text, "#define negated(x)"))
    fail_msg("%d negations in\n%s", found, text);
  free(plain);
  free(text);
  ir_free(&k);
}

static void refused(const ir_kernel *k, const clb_dialect *d, const char *word) {
  clb_text text = {0};
  char error[200] = "";
  if (clb_print(k, d, &text, error, sizeof error) || !strstr(error, word))
    fail_msg("%s: \"%s\"", word, error);
  clb_text_free(&text);
}

static void cannot_be_said(void **state) {
  static const int lanes[] = {32, 64, 128, 24};
  (void)state;
  for (int i = 0; i < 4; i++) {
    ir_kernel k;
    ir_begin(&k, "shuffled", lanes[i], 1, 1);
    ir_val lane = ir_lane(&k), y = ir_buffer(&k, IR_I32, true);
    ir_store(&k, y, lane, IR_NONE,
             ir_shuffle(&k, lane, ir_sub(&k, ir_int(&k, IR_I32, lanes[i] - 1), lane)));
    assert_true(ir_finish(&k));
    refused(&k, &opencl, "kernel shuffled: this device has no shuffle_i32: no sub-groups");
    if (lanes[i] > 32 || lanes[i] == 24) refused(&k, &cuda, "SHUFFLE among");
    if (lanes[i] > 64 || lanes[i] == 24) refused(&k, &hip, "SHUFFLE among");
    if (lanes[i] <= 64 && lanes[i] != 24) free(print(&k, &hip));
    free(print(&k, &opencl_subgroups));
    ir_free(&k);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_body),        cmocka_unit_test(exact_constants),
      cmocka_unit_test(no_numbers),      cmocka_unit_test(integers),
      cmocka_unit_test(few_words),       cmocka_unit_test(hidden_masks),
      cmocka_unit_test(hidden_negation), cmocka_unit_test(much_local_memory),
      cmocka_unit_test(aligned_loads),   cmocka_unit_test(aligned_stores),
      cmocka_unit_test(with_ptx),        cmocka_unit_test(cannot_be_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
