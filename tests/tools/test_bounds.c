/* tests/tools/test_bounds.c - occupancy and bounds against cases worked out by hand; fused
   multiply-adds in lines of machine code, and against the program's own. */
#include <math.h>

#include <clebsch/clebsch.h>
#include <jansson.h>

#include "backends/backend.h"
#include "backends/cuda_hip/gpu.h"
#include "backends/level_zero/level_zero.h"
#include "tools/measure/vendor_specs.h"
#include "tests/build_kernel.h"
#include "tests/test.h"

/* ---- occupancy ---- */

/* The resident waves of one core, as divisions show. */
static void occupancy_by_hand(void **state) {
  static const struct {
    const char *device;
    int registers, subgroups, local_bytes, waves, max;
  } cases[] = {
      {"cuda@sm_90", 168, 4, 0, 12,
       64}, /* 168 * 32 = 5376 a warp; 16384 / 5376 = 3 on each of four parts: 12 warps, 3 blocks */
      {"cuda@sm_90", 32, 8, 0, 64, 64},
      {"cuda@sm_90", 40, 4, 0, 48, 64}, /* 16384 / 1280 = 12.8 */
      {"cuda@sm_90", 41, 4, 0, 40, 64}, /* rounded up to 48 */
      {"cuda@sm_90", 255, 4, 0, 8, 64},
      {"cuda@sm_90", 168, 5, 0, 10, 64},       /* two blocks of 5, not 12 / 5 */
      {"cuda@sm_90", 16, 1, 0, 32, 64},        /* 32 blocks at most */
      {"cuda@sm_90", 32, 4, 48 << 10, 16, 64}, /* 228 / (48 + 1) = 4.6 blocks */
      {"cuda@sm_90", 32, 4, 75 << 10, 12, 64}, /* 3 blocks of 76 KB are all of it */
      {"cuda@sm_90", 32, 4, (75 << 10) + 1, 8, 64},
      {"cuda@sm_80", 32, 4, 75 << 10, 8, 64}, /* 164 / 76 */
      {"cuda@sm_90", 128, 17, 0, 0, 64},      /* 16 warps at most, so a block of 17 never starts */
      {"hip@gfx90a", 64, 4, 0, 32, 32},       /* 512 / 64 = 8 waves on each of four SIMDs */
      {"hip@gfx90a", 65, 4, 0, 28, 32},       /* rounded up to 72: 7 waves */
      {"hip@gfx942", 128, 4, 0, 16, 32},
      {"hip@gfx942", 129, 4, 0, 12, 32}, /* 136: 3 waves */
      {"hip@gfx942", 512, 1, 0, 4, 32},
      {"hip@gfx90a:sramecc+:xnack-", 24, 1, 6400, 9, 32}, /* 6400 takes 6656; 65536 / 6656 = 9.8 */
      {"hip@gfx942", 24, 4, 32768, 8, 32},
      {"hip@gfx942", 24, 4, 32769, 4, 32},
      {"hip@gfx1100", 96, 1, 0, 64, 64},     /* 1536 / 96 = 16 */
      {"hip@gfx1100", 97, 1, 0, 48, 64},     /* 120: 12.8 */
      {"hip@gfx1100", 24, 4, 40000, 12, 64}, /* 40 KB; 128 / 40 = 3.2 groups */
      {"level_zero@pvc", 128, 1, 0, 64, 64}, /* 8 engines, 8 threads each */
      {"level_zero@pvc", 256, 1, 0, 32, 64}, /* large registers: 4 threads */
      {"level_zero@pvc", 128, 16, 0, 64, 64},
      {"level_zero@pvc", 128, 8, 32 << 10, 32, 64},
      {"level_zero@pvc", 128, 8, (32 << 10) + 1, 16, 64}, /* 48 KB: 2 groups */
      {"level_zero@pvc", 128, 8, 65 << 10, 8, 64},        /* 96 KB: 1 group */
      {"level_zero@pvc", 256, 8, 1000, 32, 64},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const vendor_specs *p = vendor_specs_of(cases[i].device, 0);
    assert_non_null(p);
    const clb_report r = {.registers = cases[i].registers,
                          .subgroups = cases[i].subgroups,
                          .local_bytes = cases[i].local_bytes};
    if (resident_waves(p->core, &r) != cases[i].waves ||
        occupancy(p->core, &r) != (double)cases[i].waves / cases[i].max)
      fail_msg("%s, %d registers, %d waves, %d bytes: %d resident (%g), not %d", cases[i].device,
               r.registers, r.subgroups, r.local_bytes, resident_waves(p->core, &r),
               occupancy(p->core, &r), cases[i].waves);
  }
  const clb_report unknown = {.registers = -1, .subgroups = 4};
  assert_int_equal(resident_waves(vendor_specs_of("cuda@sm_90", 0)->core, &unknown), -1);
  assert_true(isnan(occupancy(vendor_specs_of("cuda@sm_90", 0)->core, &unknown)));
}

/* ---- bounds ---- */

static bool near(double x, double y, double relative) { return fabs(x - y) <= relative * fabs(y); }

static void bounds(void **state) {
  (void)state;
  const vendor_specs *h200 = vendor_specs_of("cuda@sm_90", 0),
                     *h100 = vendor_specs_of("cuda@sm_90", 1);
  assert_string_equal(h200->name, "NVIDIA H200 SXM");
  assert_string_equal(h100->name, "NVIDIA H100 SXM");
  assert_null(vendor_specs_of("cuda@sm_90", 2));
  assert_null(vendor_specs_of("cuda@sm_9", 0));
  assert_null(vendor_specs_of("cuda@sm_900", 0));
  assert_null(vendor_specs_of("cpu", 0));
  time_bound b = bound_of(h200, CLB_F32, 4.8e9, 66e9); /* 1 ms to move, 0.985 ms to compute */
  assert_true(near(b.seconds, 1e-3, 1e-12));
  assert_string_equal(b.limited_by, "bytes");
  b = bound_of(h200, CLB_F32, 4.8e9, 134e9);
  assert_true(near(b.seconds, 2e-3, 1e-12));
  assert_string_equal(b.limited_by, "flops");
  b = bound_of(h200, CLB_F64, 4.8e9, 66e9); /* half the rate */
  assert_true(near(b.seconds, 66.0 / 34e3, 1e-12));
  assert_string_equal(b.limited_by, "flops");
  b = bound_of(h100, CLB_F32, 3.35e9, 0);
  assert_true(near(b.seconds, 1e-3, 1e-12));
  const vendor_specs *one = vendor_specs_of("level_zero@pvc", 0),
                     *both = vendor_specs_of("level_zero@pvc", 1);
  assert_true(near(bound_of(one, CLB_F32, 1e9, 1).seconds,
                   2 * bound_of(both, CLB_F32, 1e9, 1).seconds, 1e-12));
  assert_true(near(bound_of(one, CLB_F64, 1, 1e9).seconds,
                   2 * bound_of(both, CLB_F64, 1, 1e9).seconds, 1e-12));
}

/* A check that figures are plausible: peaks are (clock) x (units) x 2, so a wrong digit makes a row
   far off. */
static void figures(void **state) {
  static const struct {
    const char *device;
    double f32_a_clock, f64_a_clock, clock,
        bytes_per_second; /* of whole devices: operations of all units; Hz; bus width / 8 x
                             transfers */
  } known[] = {{"cuda@sm_90", 132 * 128 * 2, 132 * 64 * 2, 1.98e9, 6 * 1024 / 8 * 6.25e9},
               {"cuda@sm_80", 108 * 64 * 2, 108 * 32 * 2, 1.41e9, 5 * 1024 / 8 * 3.19e9},
               {"hip@gfx942", 304 * 256, 304 * 128, 2.1e9, 8 * 1024 / 8 * 5.2e9},
               {"hip@gfx90a", 110 * 256, 110 * 128, 1.7e9, 4 * 1024 / 8 * 3.2e9},
               {"hip@gfx1100", 96 * 256, 96 * 8, 2.5e9, 384 / 8 * 20e9},
               {"level_zero@pvc", 64 * 256, 64 * 256, 1.6e9, 4 * 1024 / 8 * 3.2e9}};
  (void)state;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const vendor_specs *p = vendor_specs_of(known[i].device, 0);
    assert_true(
        near(p->flops_per_second[CLB_F32] / (known[i].f32_a_clock * known[i].clock), 1, 0.02));
    assert_true(
        near(p->flops_per_second[CLB_F64] / (known[i].f64_a_clock * known[i].clock), 1, 0.02));
    assert_true(near(p->bytes_per_second / known[i].bytes_per_second, 1, 0.02));
  }
}

/* No time measured on an H200 is below its bound. */
static void measurements_keep_to_them(void **state) {
  static const char *const files[] = {"h200_standard", "h200_graphs"};
  const char *data = getenv("CLB_TEST_DATA");
  int measured = 0;
  (void)state;
  assert_non_null(data);
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    char path[4096];
    size_t i;
    json_t *row;
    snprintf(path, sizeof path, "%s/../../bench/results/%s.json", data, files[f]);
    json_t *run = json_load_file(path, 0, NULL);
    assert_non_null(run);
    json_array_foreach(json_object_get(run, "results"), i, row) {
      double seconds = json_number_value(json_object_get(row, "seconds"));
      if (json_is_null(json_object_get(row, "copy_fraction"))) continue; /* from the cache */
      clb_dtype arithmetic =
          strcmp(json_string_value(json_object_get(row, "dtype")), "f64") ? CLB_F32 : CLB_F64;
      time_bound b = bound_of(vendor_specs_of("cuda@sm_90", 0), arithmetic,
                              json_number_value(json_object_get(row, "bytes")),
                              json_number_value(json_object_get(row, "flops")));
      if (!(b.seconds > 0 && b.seconds < seconds))
        fail_msg("%s, row %zu: %g s, and the bound is %g", files[f], i, seconds, b.seconds);
      measured++;
    }
    json_decref(run);
  }
  assert_true(measured > 100);
}

/* ---- lines of machine code ---- */

static int fmas_of_listing(const char *line) {
  clb_gpu_traffic t = {0};
  clb_gpu_count_listing(line, &t);
  return t.fmas;
}

static void amd_lines(void **state) {
  (void)state;
  assert_int_equal(fmas_of_listing("\tv_fma_f32 v1, v2, v3, v4 // 000: D1CB\n"), 1);
  assert_int_equal(
      fmas_of_listing("\tv_fmac_f32_e32 v1, v2, v3\n\tv_fmac_f64_e64 v[2:3], v[4:5], s[0:1]\n"), 2);
  assert_int_equal(
      fmas_of_listing(
          "\tv_fmaak_f32 v1, v2, v3, 0x40400000\n\tv_fmamk_f32 v1, v2, 0x40400000, v3\n"),
      2);
  assert_int_equal(
      fmas_of_listing("\tv_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[0,1,1]\n"), 2);
  assert_int_equal(fmas_of_listing("\tv_dual_fmac_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5\n"),
                   1);
  assert_int_equal(
      fmas_of_listing("\tv_dual_mul_f32 v3, v4, v5 :: v_dual_fmaak_f32 v0, v1, v2, 0x3f\n"), 1);
  assert_int_equal(
      fmas_of_listing("\tv_dual_fmac_f32 v0, v1, v2 :: v_dual_fmamk_f32 v3, v4, 0x3f, v5\n"), 2);
  assert_int_equal(fmas_of_listing("\tv_mul_f32_e32 v0, v1, v2 // v_fma_f32\n\tv_add_f64 v[0:1], "
                                   "v[2:3], v[4:5]\n\tv_div_fmas_f32 v0, v1, v2, v3\n"),
                   0);
  assert_int_equal(
      fmas_of_listing("\tv_mad_u64_u32 v[0:1], s[0:1], v2, v3, v[4:5]\n\tv_mad_i32_i24 v0, v1, v2, "
                      "v3\n\tv_fma_f16 v0, v1, v2, v3\n\tv_pk_fma_f16 v0, v1, v2, v3\n"),
      0);
  clb_gpu_traffic t = {0};
  clb_gpu_count_listing("\ts_load_dwordx4 s[0:3], s[6:7], 0x0\n\tglobal_load_dwordx2 v[0:1], v4, "
                        "s[0:1]\n\tv_fma_f32 v2, v0, v1, v1\n\tglobal_store_dword v4, v2, s[2:3]\n",
                        &t);
  assert_int_equal(t.loaded, 8);
  assert_int_equal(t.stored, 4);
  assert_int_equal(t.fmas, 1);
  clb_gpu_count_listing("k:\n\tds_write_b32 v0, v1\n\tds_bpermute_b32 v0, v1, v2\n\ts_nop 1\n"
                        "\tscratch_load_dword v0, off\n\tv_dual_mul_f32 v3, v4, v5 :: "
                        "v_dual_mov_b32 v0, v1\n\ts_code_end\n",
                        &t);
  assert_int_equal(t.instructions, 4 + 5); /* nothing idle; both of dual ones */
  assert_int_equal(t.accesses, 2 + 2);
}

static void nvidia_words(void **state) {
  /* The low 12 bits of an instruction: its opcode and, in the upper three of them, where its
     operands come from. */
  static const struct {
    int low, width, fmas, loaded, stored;
  } cases[] = {{0x223, 0, 1, 0, 0}, {0x423, 0, 1, 0, 0},
               {0x823, 0, 1, 0, 0}, {0xe23, 0, 1, 0, 0},
               {0x22b, 0, 1, 0, 0}, {0xe2b, 0, 1, 0, 0}, /* FFMA, DFMA */
               {0x249, 0, 2, 0, 0}, {0x221, 0, 0, 0, 0},
               {0x220, 0, 0, 0, 0}, {0x229, 0, 0, 0, 0},
               {0x224, 0, 0, 0, 0}, {0x231, 0, 0, 0, 0}, /* FFMA2; FADD FMUL DADD IMAD HFMA2 */
               {0x981, 4, 0, 4, 0}, {0x981, 6, 0, 16, 0},
               {0x986, 4, 0, 0, 4}, {0x986, 5, 0, 0, 8}, /* LDG, STG */
               {0x984, 4, 0, 0, 0}, {0x387, 4, 0, 0, 0}, /* LDS, STL: neither */
               {0x918, 0, 0, 0, 0}};                     /* NOP */
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint64_t word[2] = {0xabcd000000007000u | (uint64_t)cases[i].low,
                              (uint64_t)cases[i].width << 9};
    clb_gpu_traffic t = {0};
    clb_gpu_count_sass((const unsigned char *)word, sizeof word, &t);
    if (t.fmas != cases[i].fmas || t.loaded != cases[i].loaded || t.stored != cases[i].stored ||
        t.instructions != (cases[i].low != 0x918) || t.accesses != (cases[i].width != 0))
      fail_msg("0x%x: %d, %d, %d; %d, %d", cases[i].low, t.fmas, (int)t.loaded, (int)t.stored,
               t.instructions, t.accesses);
  }
}

static int fmas_of_assembly(const char *assembly, int lanes) {
  ir_kernel k;
  clb_report r = clb_report_unknown();
  ir_begin(&k, "k", lanes, 1, lanes);
  ir_store(&k, ir_buffer(&k, IR_F32, true), ir_lane(&k), IR_NONE, ir_scalar(&k, IR_F32));
  assert_true(ir_finish(&k));
  assert_true(clb_lz_count_messages(&k, assembly, &r));
  ir_free(&k);
  return r.fmas;
}

static void intel_lines(void **state) {
  (void)state;
  assert_int_equal(fmas_of_assembly("        mad (16|M0)              r12.0<1>:f    acc2.0<1;0>:f  "
                                    "   r7.0<1;0>:f       r7.0<1>:f        {Compacted,F@2}\n",
                                    16),
                   1);
  assert_int_equal(
      fmas_of_assembly(
          "        mad (16|M0)   (lt)f0.0   r1.0<1>:f  r2.0<1;0>:f  r3.0<1;0>:f  r4.0<1>:f\n       "
          " mad (16|M16)  r5.0<1>:f  r6.0<1;0>:f  r7.0<1;0>:f  r8.0<1>:f\n",
          32),
      1); /* halves */
  assert_int_equal(fmas_of_assembly("        mad (32|M0)              r1.0<1>:f     r2.0<1;0>:f    "
                                    "   r3.0<1;0>:f       r4.0<1>:f\n",
                                    32),
                   1);
  assert_int_equal(fmas_of_assembly("(W)     mad (1|M0)               r1.0<1>:f     r2.0<0;0>:f    "
                                    "   r3.0<0;0>:f       r4.0<0>:f\n",
                                    16),
                   1);
  assert_int_equal(fmas_of_assembly("        mad (16|M0)              acc0.0<1>:df  acc0.0<1;0>:df "
                                    "   r20.0<1;0>:df     r20.0<1>:df      {Compacted,L@3}\n",
                                    16),
                   1);
  assert_int_equal(fmas_of_assembly("        madm (16|M0)             r4.mme1:df    r26.nomme:df   "
                                    "   r20.nomme:df      r14.mme0:df\n",
                                    16),
                   1);
  assert_int_equal(fmas_of_assembly("        mad (16|M0)              r67.0<1>:d    acc0.0<1;0>:d  "
                                    "   r2.0<0;0>:d       272:w               {I@3}\n",
                                    16),
                   0);
  assert_int_equal(fmas_of_assembly("        mad (16|M0)              r67.0<1>:hf   r1.0<1;0>:hf   "
                                    "   r2.0<1;0>:hf      r3.0<1>:hf\n",
                                    16),
                   0);
  assert_int_equal(fmas_of_assembly("        mul (16|M0)              r1.0<1>:f     r2.0<1;0>:f    "
                                    "   r3.0<1;0>:f // mad (16|M0) r1.0<1>:f\n",
                                    16),
                   0);
  assert_int_equal(
      fmas_of_assembly(
          "        add (16|M0)              r1.0<1>:f     r2.0<1;0>:f       r3.0<1;0>:f\n", 16),
      0);
}

/* ---- compiled ---- */

enum { FMAS = 96 };

/* y = a polynomial of x by Horner's scheme, with coefficients from memory: n multiply-adds, then a
   product and a sum that must not be fused. */
static void horner(ir_kernel *k, ir_type type, int lanes) {
  ir_begin(k, "horner", lanes, 2, 2 * lanes);
  ir_val x = ir_buffer(k, type, false), y = ir_buffer(k, type, true), n = ir_scalar(k, IR_I32),
         array = ir_local(k, type, 300);
  ir_val row =
      ir_add(k,
             ir_mul(k, ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, 2)), ir_subgroup(k)),
                    ir_int(k, IR_I32, lanes)),
             ir_lane(k));
  ir_val inside = ir_2(k, IR_LT, row, n), v = ir_load(k, x, row, inside), sum = v;
  for (int i = 0; i < FMAS; i++)
    sum = ir_fma(k, sum, v,
                 ir_load(k, x, ir_add(k, row, ir_int(k, IR_I32, 1000 * (i % 8 + 1))), inside));
  ir_store(k, array, ir_lane(k), IR_NONE, ir_add(k, ir_mul(k, sum, v), v));
  ir_store(k, y, row, inside, ir_load(k, array, ir_lane(k), IR_NONE));
  if (!ir_finish(k)) fail_msg("%s", k->error);
}

/* Machine code fuses what the program fuses, and nothing else. */
static void compiled(void **state) {
  const char *target = *state;
  clb_error_sink error = {0};
  clb_device *d = NULL;
  skip_where_sanitized(target);
  clb_status s = clb_device_open(target, NULL, &error, &d);
  if (s) {
    char why[300];
    snprintf(why, sizeof why, "%s", error.text.s);
    clb_text_free(&error.text);
    if (s != CLB_ERROR_DEVICE) fail_msg("%s: %s", target, why);
    skip_because("%s", why);
  }
  const vendor_specs *p = vendor_specs_of(d->info.name, 0);
  bool known = true;
  assert_non_null(p);
  for (int i = 0; i < 2; i++) {
    ir_kernel k;
    clb_text binary = {0};
    clb_report r;
    horner(&k, i ? IR_F64 : IR_F32, d->limits.lanes[i ? CLB_F64 : CLB_F32]);
    if (build_kernel(d, &k, &binary) || d->backend->report(d, &k, binary.s, binary.n, &r))
      fail_msg("%s", error.text.s);
    assert_int_equal(ir_local_bytes(&k), 300 * (i ? 8 : 4));
    if (r.fmas >= 0 && r.fmas != FMAS)
      fail_msg("%s: %d fused multiply-adds, the program has %d", target, r.fmas, FMAS);
    r.subgroups = k.subgroups;
    r.local_bytes = ir_local_bytes(&k);
    if (r.registers > 0 && !(occupancy(p->core, &r) > 0 && occupancy(p->core, &r) <= 1))
      fail_msg("%s: occupancy %g", target, occupancy(p->core, &r));
    known &= r.fmas >= 0;
    clb_text_free(&binary);
    ir_free(&k);
  }
  d->backend->close(d);
  clb_text_free(&error.text);
  if (!known) skip_because("%s: the machine code cannot be read: no disassembler", target);
}

/* An op's report has the shape of its group. */
static void of_an_op(void **state) {
  static const int degrees[] = {0, 1, 2};
  const clb_spherical_harmonics_desc desc = {
      .degrees = degrees, .n_degrees = 3, .storage = CLB_F32, .arithmetic = CLB_F32, .passes = 1};
  clb_context *ctx = NULL;
  clb_op *op = NULL;
  clb_report r;
  (void)state;
  if (clb_context_create("cpu:interpreter", &ctx) ||
      clb_spherical_harmonics_create(ctx, &desc, &op) || clb_op_report(op, CLB_FORWARD, &r))
    fail_msg("%s", clb_error(ctx));
  assert_int_equal(r.subgroups, 1); /* a CPU's groups are one sub-group */
  assert_true(r.local_bytes >= 0);
  assert_int_equal(r.fmas, -1);
  assert_int_equal(r.registers, -1);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
}

#define ONE(target)                                                                                \
  { "compiled:" target, compiled, NULL, NULL, (void *)(uintptr_t)target }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(occupancy_by_hand),
                                     cmocka_unit_test(bounds),
                                     cmocka_unit_test(figures),
                                     cmocka_unit_test(amd_lines),
                                     cmocka_unit_test(measurements_keep_to_them),
                                     cmocka_unit_test(nvidia_words),
                                     cmocka_unit_test(intel_lines),
                                     ONE("cuda@sm_80"),
                                     ONE("cuda@sm_90"),
                                     ONE("hip@gfx90a"),
                                     ONE("hip@gfx942"),
                                     ONE("hip@gfx1100"),
                                     ONE("level_zero@pvc"),
                                     cmocka_unit_test(of_an_op)};
  return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
