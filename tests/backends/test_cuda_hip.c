/* tests/backends/test_cuda_hip.c - the CUDA and HIP backends with the real compilers, and on real
   devices where there are any. */
#include "backends/cuda_hip/gpu.h"
#include "kernels/kernel.h"
#include "tests/ir/random_kernel.h"
#include "tests/build_kernel.h"
#include "tests/test.h"

#include <elf.h>
#include <unistd.h>

static const char *const targets[] = {"cuda@sm_90", "hip@gfx90a", "hip@gfx942", "hip@gfx1100"};
enum { TARGETS = sizeof targets / sizeof *targets };

/* NULL if its compiler is missing. */
static clb_device *open_target(const char *name, clb_error_sink *error) {
  clb_device *d = NULL;
  clb_status s = clb_device_open(name, NULL, error, &d);
  if (s == CLB_ERROR_DEVICE) fprintf(stderr, "skipped: %s\n", error->text.s);
  else if (s) fail_msg("%s: %s", name, error->text.s);
  else assert_false(d->info.runs);
  return d;
}

static void close_target(clb_device *d, clb_error_sink *error) {
  if (d) d->backend->close(d);
  clb_text_free(&error->text);
}

static clb_report build_and_report(clb_device *d, const ir_kernel *k, clb_text *binary) {
  clb_report r = {0};
  if (build_kernel(d, k, binary) || d->backend->report(d, k, binary->s, binary->n, &r))
    fail_msg("%s", d->error->text.s);
  return r;
}

/* ---- compilers ---- */

static void random_kernels_compile(void **state) {
  int done = 0;
  (void)state;
  for (int t = 0; t < TARGETS; t++) {
    clb_error_sink error = {0};
    clb_device *d = open_target(targets[t], &error);
    for (int seed = 0; d && seed < 4; seed++) {
      random_kernel r;
      clb_text binary = {0};
      random_kernel_make(&r, (uint64_t)(100 * t + seed), d->limits.lanes[CLB_F32], 1 + seed % 3,
                         RANDOM_ALL);
      assert_string_equal(r.k.error, "");
      clb_report report = build_and_report(d, &r.k, &binary);
      if (report.spill_bytes || report.registers < 1)
        fail_msg("%s, seed %d: %d registers, %d bytes spilled", targets[t], seed, report.registers,
                 report.spill_bytes);
      clb_text_free(&binary);
      random_kernel_free(&r);
    }
    done += d != NULL;
    close_target(d, &error);
  }
  if (!done) skip_because("no compiler for NVIDIA or AMD");
}

static void lower(clb_device *d, int lmax, clb_pass pass, clb_dtype storage, ir_kernel *k) {
  clb_problem p;
  clb_schedule schedule;
  memset(&p, 0, sizeof p);
  p.kind = CLB_SPHERICAL_HARMONICS;
  p.pass = (int32_t)pass;
  p.storage = (int32_t)storage;
  p.arithmetic = storage == CLB_F64 ? CLB_F64 : CLB_F32;
  p.spherical_harmonics.n_degrees = lmax + 1;
  for (int l = 0; l <= lmax; l++) p.spherical_harmonics.degrees[l] = l;
  const clb_kernel_kind *kind = clb_kernel_kinds[p.kind];
  kind->schedule(&p, &d->limits, &schedule);
  kind->lower(&p, &schedule, k);
  assert_string_equal(k->error, "");
}

/* The machine code moves what the IR says, in every type, and nothing is spilled. */
static void machine_code_counts(void **state) {
  int done = 0;
  (void)state;
  for (int t = 0; t < TARGETS; t++) {
    clb_error_sink error = {0};
    clb_device *d = open_target(targets[t], &error);
    for (int i = 0; d && i < 6; i++) {
      static const clb_dtype storages[] = {CLB_F32, CLB_F64, CLB_F16, CLB_BF16, CLB_F32, CLB_F16};
      clb_pass pass = (clb_pass)(i % 3);
      clb_text binary = {0};
      ir_kernel k;
      lower(d, 3, pass, storages[i], &k);
      clb_report r = build_and_report(d, &k, &binary);
      ir_counts n = ir_count(&k);
      if (r.loads >= 0 && (r.loads != n.loads || r.stores != n.stores || r.spill_bytes > 0))
        fail_msg(
            "%s, pass %d, storage %d: %d loads, %d stores, %d bytes spilled; the IR has %g and %g",
            targets[t], (int)pass, (int)storages[i], r.loads, r.stores, r.spill_bytes, n.loads,
            n.stores);
      clb_text_free(&binary);
      ir_free(&k);
    }
    done += d != NULL;
    close_target(d, &error);
  }
  if (!done) skip_because("no compiler for NVIDIA or AMD");
}

/* Uniform elements are loads too: by s_load on AMD. */
static void uniform_loads_count(void **state) {
  (void)state;
  for (int t = 0; t < TARGETS; t++)
    for (int extra = 0; extra < 2; extra++) {
      clb_error_sink error = {0};
      clb_device *d = open_target(targets[t], &error);
      clb_text binary = {0};
      ir_kernel k;
      if (!d) continue;
      ir_begin(&k, "uniform_loads", d->limits.lanes[CLB_F32], 1, 1);
      ir_val x = ir_buffer(&k, IR_F32, false), y = ir_buffer(&k, IR_F32, true),
             at = ir_mul(&k, ir_group(&k), ir_int(&k, IR_I32, 4)), v[4];
      ir_load_wide(&k, x, at, IR_NONE, 4, v);
      ir_val sum = ir_add(&k, ir_add(&k, v[0], v[1]), ir_add(&k, v[2], v[3]));
      if (extra) sum = ir_mul(&k, sum, ir_load(&k, x, ir_lane(&k), IR_NONE));
      ir_store(&k, y, ir_add(&k, at, ir_lane(&k)), IR_NONE, sum);
      assert_true(ir_finish(&k));
      clb_report r = build_and_report(d, &k, &binary);
      if (r.loads >= 0 && (r.loads != 4 + extra || r.stores != 1))
        fail_msg("%s: %d loads, %d stores", targets[t], r.loads, r.stores);
      clb_text_free(&binary);
      ir_free(&k);
      close_target(d, &error);
    }
}

/* y = a b + c, c / a, sqrt(a): three kernels. */
static void build_arithmetic(clb_device *d, int which, clb_text *binary) {
  ir_kernel k;
  ir_begin(&k, "arithmetic", d->limits.lanes[CLB_F32], 1, 1);
  ir_val x = ir_buffer(&k, IR_F32, false), y = ir_buffer(&k, IR_F32, true), lane = ir_lane(&k),
         v[3];
  ir_load_wide(&k, x, ir_mul(&k, lane, ir_int(&k, IR_I32, 3)), IR_NONE, 3, v);
  ir_val r = which == 0   ? ir_add(&k, ir_mul(&k, v[0], v[1]), v[2])
             : which == 1 ? ir_2(&k, IR_DIV, v[2], v[0])
                          : ir_1(&k, IR_SQRT, v[0]);
  ir_store(&k, y, lane, IR_NONE, r);
  assert_true(ir_finish(&k));
  if (build_kernel(d, &k, binary)) fail_msg("%s", d->error->text.s);
  ir_free(&k);
}

/* How often an NVIDIA opcode occurs in the code (12 bits of every 16 bytes, of which the upper
   three are listed separately). */
static int count_sass(const clb_text *cubin, unsigned opcode) {
  Elf64_Ehdr head;
  int n = 0;
  memcpy(&head, cubin->s, sizeof head);
  for (int i = 0; i < head.e_shnum; i++) {
    Elf64_Shdr section;
    memcpy(&section, cubin->s + head.e_shoff + (size_t)i * sizeof section, sizeof section);
    for (size_t at = 0; section.sh_flags & SHF_EXECINSTR && at < section.sh_size; at += 16) {
      uint16_t low;
      memcpy(&low, cubin->s + section.sh_offset + at, sizeof low);
      n += (low & 0x1ff) == opcode;
    }
  }
  return n;
}

/* A product and a sum are rounded separately, and f32 division and square root are refined. */
static void arithmetic_rounds(void **state) {
  enum { FMUL = 0x020, FADD = 0x021, FFMA = 0x023 };
  int done = 0;
  (void)state;
  for (int t = 0; t < TARGETS; t++) {
    clb_error_sink error = {0};
    clb_device *d = open_target(targets[t], &error);
    for (int which = 0; d && which < 3; which++) {
      clb_text binary = {0}, listing = {0};
      build_arithmetic(d, which, &binary);
      if (d->dialect.language == CLB_LANGUAGE_CUDA) {
        int mul = count_sass(&binary, FMUL), add = count_sass(&binary, FADD),
            fma = count_sass(&binary, FFMA);
        if (which ? fma < 3 : mul != 1 || add != 1 || fma)
          fail_msg("%s, %d: %d mul, %d add, %d fma", targets[t], which, mul, add, fma);
        done++;
      } else if (clb_gpu_objdump(binary.s, binary.n, &listing)) {
        bool fused = strstr(listing.s, "v_fma") || strstr(listing.s, "v_mac") ||
                     strstr(listing.s, "v_fmac") || strstr(listing.s, "v_mad_f32") ||
                     strstr(listing.s, "_fmac_f32");
        if (fused != (which > 0)) fail_msg("%s, %d:\n%s", targets[t], which, listing.s);
        if (which == 1 && !strstr(listing.s, "v_div_fixup_f32"))
          fail_msg("%s: division is not refined:\n%s", targets[t], listing.s);
        done++;
      }
      clb_text_free(&binary);
      clb_text_free(&listing);
    }
    close_target(d, &error);
  }
  if (!done) skip_because("no compiler for NVIDIA or AMD, or no disassembler");
}

/* Bytes that NVIDIA's own disassembler sees moved by LDG or STG. */
static int64_t disassembled(FILE *listing, const char *op) {
  static const struct {
    const char *suffix;
    int bytes;
  } widths[] = {{".U8", 1}, {".S8", 1}, {".U16", 2}, {".S16", 2}, {".64", 8}, {".128", 16}};
  int64_t sum = 0;
  char line[512];
  rewind(listing);
  while (fgets(line, sizeof line, listing)) {
    char *s = strstr(line, op), *end = s ? s + strcspn(s, " ") : NULL;
    int bytes = 4;
    if (!s) continue;
    *end = 0;
    for (int i = 0; i < 6; i++)
      if (strstr(s, widths[i].suffix)) bytes = widths[i].bytes;
    sum += bytes;
  }
  return sum;
}

static void disassembler_agrees(void **state) {
  static const int bytes_of[] = {4, 8, 2, 2};
  clb_error_sink error = {0};
  clb_device *d = open_target("cuda@sm_90", &error);
  (void)state;
  if (!d || system("PATH=$PATH:/usr/local/cuda/bin cuobjdump --version > /dev/null 2>&1")) {
    close_target(d, &error);
    skip_because("NVRTC or cuobjdump is not here");
  }
  for (int storage = CLB_F32; storage <= CLB_BF16; storage++) {
    char path[] = "/tmp/clebsch-test-XXXXXX", command[200];
    clb_text binary = {0};
    ir_kernel k;
    FILE *code = fdopen(mkstemp(path), "wb"), *listing = tmpfile();
    assert_true(code && listing);
    lower(d, 4, CLB_DOUBLE_BACKWARD, (clb_dtype)storage, &k);
    clb_report r = build_and_report(d, &k, &binary);
    assert_int_equal(fwrite(binary.s, 1, binary.n, code), binary.n);
    fclose(code);
    snprintf(command, sizeof command, "PATH=$PATH:/usr/local/cuda/bin cuobjdump --dump-sass %s",
             path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    for (int c; (c = fgetc(pipe)) != EOF;) fputc(c, listing);
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(disassembled(listing, "LDG."), (int64_t)r.loads * bytes_of[storage]);
    assert_int_equal(disassembled(listing, "STG."), (int64_t)r.stores * bytes_of[storage]);
    assert_int_equal(disassembled(listing, "FFMA") + disassembled(listing, "DFMA"),
                     4 * r.fmas); /* 4: counted for an instruction without a width */
    fclose(listing);
    unlink(path);
    clb_text_free(&binary);
    ir_free(&k);
  }
  close_target(d, &error);
}

/* ---- local memory ---- */

/* Two arrays of `bytes` together: x in reverse, with other numbers, through the first elements and
   the last of both. */
static void make_local(ir_kernel *k, int lanes, int64_t bytes) {
  int32_t half = (int32_t)(bytes / 8);
  char error[200];
  ir_begin(k, "local_memory", lanes, 1, 1);
  ir_val x = ir_buffer(k, IR_F32, false), y = ir_buffer(k, IR_F32, true),
         a = ir_local(k, IR_F32, half), b = ir_local(k, IR_F32, half), lane = ir_lane(k);
  ir_val back = ir_sub(k, ir_int(k, IR_I32, half - 1), lane), v = ir_load(k, x, lane, IR_NONE);
  ir_store(k, a, lane, IR_NONE, v);
  ir_store(k, a, back, IR_NONE, ir_add(k, v, ir_real(k, IR_F32, 1)));
  ir_store(k, b, lane, IR_NONE, ir_add(k, v, ir_real(k, IR_F32, 2)));
  ir_copy(k, b, back, x, lane, IR_NONE, 1);
  ir_copy_commit(k);
  ir_copy_wait(k, 0);
  ir_barrier(k, true);
  ir_val other = ir_sub(k, ir_int(k, IR_I32, lanes - 1), lane),
         far = ir_add(k, ir_int(k, IR_I32, half - lanes), lane);
  ir_val sum = ir_add(k, ir_load(k, a, other, IR_NONE), ir_load(k, a, far, IR_NONE));
  ir_store(k, y, lane, IR_NONE,
           ir_fma(k, ir_load(k, b, other, IR_NONE), ir_load(k, b, far, IR_NONE), sum));
  assert_true(ir_finish(k));
  if (!ir_verify(k, error, sizeof error)) fail_msg("%s", error);
}

static const struct {
  const char *name;
  int64_t max;
} local_limits[] = {{"cuda@sm_80", 163 << 10},
                    {"cuda@sm_90", 227 << 10},
                    {"cuda@sm_86", 99 << 10},
                    {"hip@gfx90a", 64 << 10}};

/* The most local memory that a group may ask for compiles, with loads and stores known to be local;
   more is refused. */
static void local_memory_compiles(void **state) {
  enum { LD = 0x180, ST = 0x185, LDS = 0x184, STS = 0x188 };
  int done = 0;
  (void)state;
  for (size_t t = 0; t < sizeof local_limits / sizeof *local_limits; t++) {
    clb_error_sink error = {0};
    clb_device *d = open_target(local_limits[t].name, &error);
    for (int more = 0; d && more < 3; more++) {
      const int64_t declared = d->limits.local_bytes,
                    sizes[] = {declared, d->limits.max_local_bytes, d->limits.max_local_bytes + 32};
      clb_text binary = {0};
      ir_kernel k;
      assert_int_equal(d->limits.max_local_bytes, local_limits[t].max);
      make_local(&k, d->limits.lanes[CLB_F32], sizes[more]);
      clb_status s = build_kernel(d, &k, &binary);
      if (!s != (more < 2))
        fail_msg("%s, %d bytes: %d, %s", local_limits[t].name, (int)sizes[more], (int)s,
                 error.text.s ? error.text.s : "");
      if (s && d->dialect.language == CLB_LANGUAGE_CUDA &&
          !strstr(error.text.s, "bytes of local memory; the device has at most "))
        fail_msg("%s", error.text.s);
      if (!s && d->dialect.language == CLB_LANGUAGE_CUDA) {
        int generic = count_sass(&binary, LD) + count_sass(&binary, ST),
            loads = count_sass(&binary, LDS), stores = count_sass(&binary, STS);
        if (generic || !loads || !stores)
          fail_msg("%s, %d bytes: %d generic, %d LDS, %d STS", local_limits[t].name,
                   (int)sizes[more], generic, loads, stores);
      }
      clb_text_free(&binary);
      ir_free(&k);
    }
    done += d != NULL;
    close_target(d, &error);
  }
  if (!done) skip_because("no compiler for NVIDIA or AMD");
}

/* The limits are complete, whatever the backend reported. */
static void limits_complete(void **state) {
  static const char *const opened[] = {"cpu:interpreter", "cuda@sm_90", "hip@gfx90a"};
  (void)state;
  for (int i = 0; i < 3; i++) {
    clb_error_sink error = {0};
    clb_device *d = NULL;
    if (clb_device_open(opened[i], NULL, &error, &d))
      fprintf(stderr, "skipped: %s\n", error.text.s);
    if (d && (d->limits.local_bytes < 1 ||
              d->limits.max_local_bytes != (i == 1 ? 227 << 10 : d->limits.local_bytes)))
      fail_msg("%s: %d and %d bytes", opened[i], (int)d->limits.local_bytes,
               (int)d->limits.max_local_bytes);
    close_target(d, &error);
  }
}

/* On a real device, the most that a group may have. */
static void check_local(clb_device *d, int64_t bytes) {
  enum { MAX_LANES = 64 };
  const clb_backend *b = d->backend;
  float in[MAX_LANES], expected[MAX_LANES] = {0}, found[MAX_LANES] = {0};
  clb_memory x = {0}, y = {0};
  clb_text binary = {0};
  clb_module *module = NULL;
  char error[200];
  ir_kernel k;
  make_local(&k, d->limits.lanes[CLB_F32], bytes);
  for (int i = 0; i < MAX_LANES; i++) in[i] = (float)i;
  if (!ir_run(&k, (const ir_arg[]){{.p = in}, {.p = expected}}, NULL, 0, 1, error, sizeof error))
    fail_msg("%s", error);
  clb_status s = build_kernel(d, &k, &binary);
  if (!s) s = b->load(d, &k, binary.s, binary.n, &module);
  if (!s) s = b->alloc(d, sizeof in, &x);
  if (!s) s = b->alloc(d, sizeof found, &y);
  if (!s) s = b->write(d, &x, 0, in, sizeof in);
  if (!s) s = b->write(d, &y, 0, found, sizeof found);
  if (!s) s = b->launch(d, module, 1, (const clb_arg[]){{.memory = &x}, {.memory = &y}}, 2);
  if (!s) s = b->read(d, &y, 0, found, sizeof found);
  if (s) fail_msg("%s, %d bytes of local memory: %s", d->info.name, (int)bytes, d->error->text.s);
  assert_memory_equal(found, expected, sizeof found);
  b->unload(d, module);
  b->free(d, &x);
  b->free(d, &y);
  clb_text_free(&binary);
  ir_free(&k);
}

/* ---- sentences ---- */

static void refused(const char *name, const clb_native *adopt, clb_status status,
                    const char *word) {
  clb_error_sink error = {0};
  clb_device *d = NULL;
  clb_status s = clb_device_open(name, adopt, &error, &d);
  if (s != status || d || !strstr(error.text.s, word))
    fail_msg("%s: %d, %s", name, (int)s, error.text.s ? error.text.s : "");
  clb_text_free(&error.text);
}

static void names(void **state) {
  const clb_native native = {0};
  clb_error_sink error = {0};
  (void)state;
  refused("cuda:x", NULL, CLB_ERROR_DEVICE,
          "no device \"cuda:x\": write \"cuda\", \"cuda:0\" or \"cuda@sm_80\"");
  refused("cuda:", NULL, CLB_ERROR_DEVICE, "no device \"cuda:\"");
  refused("hip:-1", NULL, CLB_ERROR_DEVICE, "no device \"hip:-1\"");
  refused("cuda:99999999999", NULL, CLB_ERROR_DEVICE, "cuda:99999999999");
  refused("cuda@gfx90a", NULL, CLB_ERROR_DEVICE, "a target of cuda looks like cuda@sm_80");
  refused("hip@sm_90", NULL, CLB_ERROR_DEVICE, "a target of hip looks like hip@gfx90a");
  refused("cuda@sm_90", &native, CLB_ERROR_ARGUMENT,
          "cuda@sm_90 only compiles: it cannot adopt a stream");
  refused("cuda:4321", NULL, CLB_ERROR_DEVICE, "cuda");
  refused("hip:4321", NULL, CLB_ERROR_DEVICE, "hip");
  clb_device *d = open_target("cuda@sm_90", &error);
  close_target(d, &error);
  if (d)
    refused("cuda@sm_12", NULL, CLB_ERROR_DEVICE, "this NVRTC does not know sm_12; it knows sm_");
}

static void noted(const clb_device_info *info, void *user) {
  assert_true(info->name && info->backend && info->vendor && info->description && info->driver &&
              info->sub_group_sizes[0]);
  assert_int_equal(strncmp(info->name, info->backend, strlen(info->backend)), 0);
  *(int *)user += !info->runs;
}

/* Every listed device opens. */
static void lists(void **state) {
  int n = 0, opened = 0;
  (void)state;
  clb_backend_cuda.list(noted, &n);
  clb_backend_hip.list(noted, &n);
  static const char *const all[] = {"cuda@sm_80", "cuda@sm_90", "hip@gfx90a", "hip@gfx942",
                                    "hip@gfx1100"};
  for (int i = 0; i < 5; i++) {
    clb_error_sink error = {0};
    clb_device *d = open_target(all[i], &error);
    opened += d != NULL;
    close_target(d, &error);
  }
  assert_int_equal(n, opened);
}

/* The whole log of a compiler that refuses; a group that does not fit; a target that does not run.
 */
static void compilers_refuse(void **state) {
  int done = 0;
  (void)state;
  for (int t = 0; t < TARGETS; t++) {
    clb_error_sink error = {0};
    clb_device *d = open_target(targets[t], &error);
    clb_text binary = {0};
    clb_module *module = NULL;
    ir_kernel k;
    if (!d) continue;
    ir_begin(&k, "switch", d->limits.lanes[CLB_F32], 1, 1); /* no name in any C */
    ir_store(&k, ir_buffer(&k, IR_F32, true), ir_lane(&k), IR_NONE, ir_real(&k, IR_F32, 1));
    assert_true(ir_finish(&k));
    assert_int_equal(build_kernel(d, &k, &binary), CLB_ERROR_COMPILE);
    if (!strstr(error.text.s, targets[t]) || !strstr(error.text.s, "error") ||
        !strstr(error.text.s, "switch"))
      fail_msg("%s", error.text.s);
    assert_int_equal(binary.n, 0);
    assert_int_equal(d->backend->load(d, &k, "x", 1, &module), CLB_ERROR_UNSUPPORTED);
    k.lanes = 128;
    assert_int_equal(build_kernel(d, &k, &binary), CLB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text.s, "1 sub-groups of 128 lanes"));
    ir_free(&k);
    clb_text_free(&binary);
    close_target(d, &error);
    done++;
  }
  if (!done) skip_because("no compiler for NVIDIA or AMD");
}

/* ---- genuine devices ---- */

static clb_status launch_random(clb_device *d, const random_kernel *r, void *const *data) {
  const clb_backend *b = d->backend;
  clb_memory memory[RANDOM_PARAMETERS] = {0};
  clb_arg args[RANDOM_PARAMETERS];
  clb_text binary = {0};
  clb_module *module = NULL;
  clb_status s = build_kernel(d, &r->k, &binary);
  if (!s) s = b->load(d, &r->k, binary.s, binary.n, &module);
  for (int p = 0; p < r->n && !s; p++) {
    args[p] = (clb_arg){.type = r->parameter[p].type, .memory = &memory[p]};
    if (args[p].type != IR_VOID) args[p].i64 = r->parameter[p].scalar.i64;
    else if (!(s = b->alloc(d, random_kernel_bytes(r, p), &memory[p])))
      s = b->write(d, &memory[p], 0, data[p], random_kernel_bytes(r, p));
  }
  if (!s) s = b->launch(d, module, r->groups, args, r->n);
  for (int p = 0; p < r->n && !s; p++)
    if (memory[p].handle) s = b->read(d, &memory[p], 0, data[p], random_kernel_bytes(r, p));
  for (int p = 0; p < r->n; p++)
    if (memory[p].handle) b->free(d, &memory[p]);
  b->unload(d, module);
  clb_text_free(&binary);
  return s;
}

static void check_random(clb_device *d, uint64_t seed, int lanes, int subgroups) {
  random_kernel r;
  void *expected[RANDOM_PARAMETERS], *found[RANDOM_PARAMETERS];
  char error[300];
  random_kernel_make(&r, seed, lanes, subgroups, RANDOM_ALL);
  for (int p = 0; p < r.n; p++) {
    expected[p] = random_kernel_data(&r, p);
    found[p] = random_kernel_data(&r, p);
  }
  if (!random_kernel_run(&r, &r.k, expected, error, sizeof error))
    fail_msg("seed %d: %s", (int)seed, error);
  if (launch_random(d, &r, found)) fail_msg("seed %d: %s", (int)seed, d->error->text.s);
  if (!random_kernel_agree(&r, expected, found, error, sizeof error))
    fail_msg("%s, seed %d, %d lanes: %s", d->info.name, (int)seed, lanes, error);
  for (int p = 0; p < r.n; p++) {
    free(expected[p]);
    free(found[p]);
  }
  random_kernel_free(&r);
}

/* The caller's stream; memory of another context; an unknown pointer. */
static void check_adoption(clb_device *first) {
  clb_error_sink error = {0};
  clb_device *second = NULL;
  clb_memory memory = {0}, known, unknown = {&known, CLB_POINTER, sizeof known, NULL};
  float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
  const clb_backend *b = first->backend;
  const clb_native native = {.queue = ((clb_gpu *)first)->stream};
  if (b->open(first->info.name, first->info.name + strlen(b->name), &native, &error, &second))
    fail_msg("%s", error.text.s);
  assert_int_equal(b->alloc(first, sizeof in, &memory), CLB_OK);
  known = (clb_memory){memory.handle, CLB_POINTER, memory.bytes, NULL};
  assert_int_equal(b->wrap(second, &known), CLB_OK);
  assert_int_equal(b->write(first, &memory, 0, in, sizeof in), CLB_OK);
  assert_int_equal(b->read(second, &known, 4, out, 12), CLB_OK);
  assert_memory_equal(out, in + 1, 12);
  if (!((clb_gpu *)second)->pageable)
    assert_int_equal(b->wrap(second, &unknown), CLB_ERROR_ARGUMENT);
  check_random(second, 5, first->limits.lanes[CLB_F32], 1);
  b->close(second);
  b->free(first, &memory);
  clb_text_free(&error.text);
}

static void devices(void **state) {
  static const char *const wanted[] = {"cuda", "hip"};
  int done = 0;
  (void)state;
  for (int i = 0; i < 2; i++) {
    clb_error_sink error = {0};
    clb_device *d = NULL;
    if (clb_device_open(wanted[i], NULL, &error, &d))
      fprintf(stderr, "skipped: %s\n", error.text.s);
    for (int seed = 0; d && seed < 40; seed++)
      check_random(d, (uint64_t)seed, d->limits.lanes[CLB_F32] >> (seed % 4), 1 + seed % 4);
    if (d) check_adoption(d);
    if (d) check_local(d, d->limits.local_bytes);
    if (d) check_local(d, d->limits.max_local_bytes);
    done += d != NULL;
    close_target(d, &error);
  }
  if (!done) skip_because("no GPU of NVIDIA or AMD");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_kernels_compile),
                                     cmocka_unit_test(machine_code_counts),
                                     cmocka_unit_test(uniform_loads_count),
                                     cmocka_unit_test(arithmetic_rounds),
                                     cmocka_unit_test(disassembler_agrees),
                                     cmocka_unit_test(local_memory_compiles),
                                     cmocka_unit_test(limits_complete),
                                     cmocka_unit_test(names),
                                     cmocka_unit_test(lists),
                                     cmocka_unit_test(compilers_refuse),
                                     cmocka_unit_test(devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
