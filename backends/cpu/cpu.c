/* backends/cpu/cpu.c - the backend for CPUs: the system's C compiler, or the interpreter if there
   is none. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/dl.h"
#include "backends/cpu/cpu.h"

enum { MAX_ARGUMENTS = 64, CHUNK_INSTRUCTIONS = 1 << 15, TURNS = 1024, LOCAL_BYTES = 1 << 16 };

typedef struct {
  clb_device head;
  clb_cpu_compiler compiler; /* no name: use the interpreter */
  clb_cpu_threads *threads;
  clb_cpu_blas blas;
  clb_cpu_stream stream;
  int64_t cache_bytes;
  char name[24], vendor[64], description[256], driver[192], note[480];
} cpu;

/* Either a library or a kernel for the interpreter. */
struct clb_module {
  clb_cpu_function *f;
  clb_cpu_library *library;
  int64_t chunk; /* number of groups worth giving to a thread at a time; fixed, so that results do
                    not depend on the number of threads */
  double stored; /* bytes stored by one group, as far as loop bounds are known */
  uint64_t streamed; /* bit n: data written through argument n need not stay in caches */
  ir_kernel kernel;
};

/* ---- open, close, list ---- */

/* Size of the last-level cache available to a launch: virtual machines report a cache that they
   share with others. */
static int64_t cache_bytes(void) {
  const int64_t min = 1 << 20, max = 64 << 20;
  long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes < min ? 32 << 20 : bytes > max ? max : bytes;
}

void clb_cpu_set_stream(clb_device *device, clb_cpu_stream when) { ((cpu *)device)->stream = when; }

/* Where kernels run on the interpreter although nobody asked for it. */
static void note_interpreter(cpu *d) {
  snprintf(
      d->note, sizeof d->note,
      "%s on the interpreter, thousands of times slower than compiled: %s; put a C compiler on "
      "PATH, or run once where there is one, on such a processor and with the same "
      "CLB_CACHE_DIR",
      d->compiler.name ? "kernels that were not compiled earlier run" : "cpu runs",
      d->compiler.why);
  d->head.note = d->note;
}

static void describe(cpu *d, bool asked_for_interpreter, int cores) {
  char model[96], how[160] = "";
  clb_cpu_info("model name", model, sizeof model);
  clb_cpu_info("vendor_id", d->vendor, sizeof d->vendor);
  if (asked_for_interpreter) snprintf(how, sizeof how, ", interpreter");
  else if (!d->compiler.runs)
    snprintf(how, sizeof how, ", %s (%s)",
             d->compiler.name ? "kernels compiled earlier" : "interpreter only", d->compiler.why);
  snprintf(d->description, sizeof d->description, "%s, %d cores%s", model, cores, how);
  if (d->compiler.name)
    snprintf(d->driver, sizeof d->driver, "%s %s", d->compiler.name, d->compiler.version);
  else snprintf(d->driver, sizeof d->driver, "interpreter %s", CLB_VERSION);
}

static void fill_head(cpu *d, const char *rest, int cores, clb_error_sink *error) {
  const bool asked_for_interpreter = !strcmp(rest, ":interpreter");
  clb_device *h = &d->head;
  int lanes = d->compiler.vector_bytes / 4;
  bool compiled = d->compiler.name;
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  snprintf(d->name, sizeof d->name, "cpu%s", rest);
  describe(d, asked_for_interpreter, cores);
  h->backend = &clb_backend_cpu;
  h->error = error;
  h->info = (clb_device_info){.name = d->name,
                              .backend = "cpu",
                              .vendor = d->vendor,
                              .description = d->description,
                              .driver = d->driver,
                              .runs = 1,
                              .memory_bytes =
                                  pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0,
                              .f64 = 1,
                              .sub_group_sizes = {lanes / 2, lanes}};
  h->limits = (clb_limits){.lanes = {[CLB_F64] = lanes / 2, [CLB_F32] = lanes},
                           .max_subgroups = 1,
                           .local_bytes = LOCAL_BYTES,
                           .registers = 32,
                           .units = cores,
                           .simd = true,
                           .subgroups = true,
                           .f64 = true};
  h->dialect.language = compiled ? CLB_LANGUAGE_CPU : CLB_LANGUAGE_IR;
  if (compiled)
    snprintf(h->key, sizeof h->key, "%s %.100s %s", d->compiler.name, d->compiler.version,
             d->compiler.features);
  else snprintf(h->key, sizeof h->key, "interpreter");
}

static void cpu_close(clb_device *device) {
  cpu *d = (cpu *)device;
  if (!d) return;
  clb_cpu_threads_destroy(d->threads);
  free(d);
}

/* The number of ":threads=4"; 0: rest is something else. */
static int threads_of(const char *rest) {
  static const char key[] = ":threads=";
  const size_t n = sizeof key - 1;
  if (strncmp(rest, key, n) || strlen(rest) > n + 4 || rest[n] == '0' ||
      strspn(rest + n, "0123456789") != strlen(rest + n))
    return 0;
  return atoi(rest + n);
}

static clb_status cpu_open(const char *name, const char *rest, const clb_native *adopt,
                           clb_error_sink *error, clb_device **device) {
  bool interpreter = !strcmp(rest, ":interpreter");
  const int threads = threads_of(rest), cores = threads ? threads : clb_cpu_cores();
  if (*rest && !interpreter && !threads)
    return clb_fail(error, CLB_ERROR_DEVICE,
                    "no device '%s': there are cpu, cpu:threads=N with N from 1 to 9999, and "
                    "cpu:interpreter",
                    name);
  if (adopt)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "cpu has no queue of the caller's to adopt");
  cpu *d = calloc(1, sizeof *d);
  if (d) d->threads = clb_cpu_threads_create(cores);
  if (!d || !d->threads) {
    free(d);
    return clb_fail(error, CLB_ERROR_MEMORY, "cpu: no memory");
  }
  const clb_status s = interpreter ? CLB_OK : clb_cpu_compiler_find(&d->compiler, error);
  if (interpreter) d->compiler.vector_bytes = 32;
  if (s) {
    cpu_close(&d->head);
    return s;
  }
  d->cache_bytes = cache_bytes();
  fill_head(d, rest, cores, error);
  if (!interpreter && !d->compiler.name) note_interpreter(d);
  *device = &d->head;
  return CLB_OK;
}

static void cpu_list(void (*each)(const clb_device_info *info, void *user), void *user) {
  static const char *const rests[] = {"", ":interpreter"};
  for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
    clb_error_sink error = {0};
    clb_device *d = NULL;
    if (cpu_open("cpu", rests[i], NULL, &error, &d) == CLB_OK) each(&d->info, user);
    cpu_close(d);
    clb_text_free(&error.text);
  }
}

/* ---- memory ---- */

static clb_status cpu_alloc(clb_device *device, uint64_t bytes, clb_memory *memory) {
  return clb_cpu_alloc(device, bytes, !((cpu *)device)->compiler.name, memory);
}

static clb_status cpu_alloc_ipc(clb_device *device, uint64_t bytes, clb_ipc_bytes *handle,
                                clb_memory *memory) {
  return clb_cpu_alloc_ipc(device, bytes, !((cpu *)device)->compiler.name, handle, memory);
}

/* All memory is the process's. */
static clb_status cpu_reach(clb_device *device, clb_device *owner) {
  (void)device;
  (void)owner;
  return CLB_OK;
}

/* ---- build, load ---- */

static clb_status build_interpreted(clb_device *device, const ir_kernel *k, clb_text *binary) {
  size_t bytes = ir_write(k, NULL, 0);
  void *ir = malloc(bytes);
  if (ir) {
    ir_write(k, ir, bytes);
    clb_text_bytes(binary, ir, bytes);
  }
  free(ir);
  return ir && !binary->failed
             ? CLB_OK
             : clb_fail(device->error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
}

static clb_status cpu_build(clb_device *device, const ir_kernel *k, const clb_text *text,
                            clb_text *binary) {
  const cpu *d = (cpu *)device;
  if (!d->compiler.runs) return build_interpreted(device, k, binary);
  return clb_cpu_compile(&d->compiler, k->name, text, binary, device->error);
}

static void cpu_unload(clb_device *device, clb_module *m) {
  (void)device;
  if (!m) return;
  clb_cpu_library_close(m->library);
  ir_free(&m->kernel);
  free(m);
}

/* Instructions of one group; a loop whose bounds are not constant is assumed to have TURNS
   iterations. */
static int64_t work_of(const ir_kernel *k) {
  int64_t work = 1;
  for (int32_t v = 0; v < k->n; v++) {
    int64_t times = 1;
    for (int32_t s = k->ins[v].scope; s != IR_NONE && times < CHUNK_INSTRUCTIONS;
         s = k->ins[s].scope) {
      const ir_ins *i = &k->ins[s];
      if (i->op != IR_LOOP) continue;
      int64_t first = ir_int_value(k, i->arg[0], -1), end = ir_int_value(k, i->arg[1], -1),
              step = ir_int_value(k, i->arg[2], 0);
      times *= first >= 0 && end >= first && step > 0 ? (end - first) / step + 1 : TURNS;
    }
    work += times;
  }
  return work;
}

static uint64_t streamed_of(const ir_kernel *k) {
  uint64_t streamed = 0;
  int n = 0;
  for (int32_t v = 0; v < k->n; v++)
    if (k->ins[v].op == IR_BUFFER || k->ins[v].op == IR_SCALAR)
      streamed |= (uint64_t)(k->ins[v].op == IR_BUFFER && k->ins[v].imm == 2 && n < MAX_ARGUMENTS)
                  << n % MAX_ARGUMENTS,
          n++;
  return streamed;
}

static clb_status cpu_load(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                           clb_module **module) {
  cpu *d = (cpu *)device;
  /* Where the compiler does not run, kernels of the interpreter may have its key. */
  const bool compiled =
      d->compiler.runs || (d->compiler.name && bytes > SELFMAG && !memcmp(binary, ELFMAG, SELFMAG));
  clb_module *m = calloc(1, sizeof *m);
  clb_status s = CLB_OK;
  if (!m) return clb_fail(device->error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
  m->chunk = CHUNK_INSTRUCTIONS / work_of(k) + 1;
  m->stored = ir_count(k).bytes_stored * k->rows;
  m->streamed = streamed_of(k);
  if (!compiled && d->compiler.name) note_interpreter(d);
  if (compiled) {
    s = clb_cpu_library_open(k->name, binary, bytes, &m->library, device->error);
    if (!s) m->f = clb_cpu_library_function(m->library);
  } else if (!ir_read(&m->kernel, binary, bytes))
    s = clb_fail(device->error,
                 strstr(m->kernel.error, "no memory") ? CLB_ERROR_MEMORY : CLB_ERROR_DRIVER,
                 "%s: its binary does not load: %s", k->name, m->kernel.error);
  if (s) cpu_unload(device, m);
  else *module = m;
  return s;
}

/* ---- launch ---- */

bool clb_cpu_streams(const clb_device *device, const clb_module *m, int64_t groups) {
  const cpu *d = (const cpu *)device;
  return d->stream == CLB_CPU_STREAM_AUTO ? m->stored * (double)groups > (double)d->cache_bytes
                                          : d->stream == CLB_CPU_STREAM_ALWAYS;
}

/* The number of edges is only known from the size of the results' memory. */
static bool outgrows(const cpu *d, const clb_module *m, const clb_arg *args, int n_args) {
  uint64_t bytes = 0;
  for (int i = 0; i < n_args; i++)
    if (args[i].type == IR_VOID && m->streamed >> i & 1) bytes += args[i].memory->bytes;
  return d->stream == CLB_CPU_STREAM_AUTO && bytes > (uint64_t)d->cache_bytes;
}

static clb_status cpu_launch(clb_device *device, clb_module *m, int64_t groups, const clb_arg *args,
                             int n_args) {
  ir_arg values[MAX_ARGUMENTS + 2];
  ir_memory memory[MAX_ARGUMENTS];
  char mistake[1024] = "";
  if (n_args > MAX_ARGUMENTS)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED,
                    "cpu: a kernel with %d arguments; at most %d", n_args, MAX_ARGUMENTS);
  for (int i = 0; i < n_args; i++) {
    values[i] = (ir_arg){.i64 = args[i].i64};
    if (args[i].type != IR_VOID) continue;
    values[i].p = args[i].memory->handle;
    memory[i] = (ir_memory){args[i].memory->bytes, args[i].memory->written};
  }
  values[n_args].i64 = groups;
  values[n_args + 1].i64 =
      clb_cpu_streams(device, m, groups) || outgrows((cpu *)device, m, args, n_args);
  if (m->f) clb_cpu_threads_run(((cpu *)device)->threads, m->f, values, groups, m->chunk);
  else if (!ir_run(&m->kernel, values, memory, 0, groups, mistake, sizeof mistake))
    return clb_fail(device->error, CLB_ERROR_DRIVER, "interpreter: %s: %s", m->kernel.name,
                    mistake);
  return CLB_OK;
}

/* Nothing to do: a launch returns when it has finished. */
static clb_status cpu_wait(clb_device *device) {
  (void)device;
  return CLB_OK;
}

static clb_status cpu_open_blas(clb_device *device, clb_dtype type, bool *partly) {
  (void)type;
  *partly = false;
  device->blas = clb_cpu_blas_open(&((cpu *)device)->blas);
  return device->blas
             ? CLB_OK
             : clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "cpu: no CBLAS is installed");
}

static clb_status cpu_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *product) {
  const cpu *d = (cpu *)device;
  const clb_status s = clb_cpu_track_product(device, type, product);
  return s ? s : clb_cpu_blas_multiply(&d->blas, d->threads, type, product, device->error);
}

static clb_status cpu_can_multiply(clb_device *device, clb_dtype type,
                                   const clb_gemm_desc *product) {
  (void)type;
  return clb_cpu_blas_can(&((cpu *)device)->blas, product, device->error);
}

const clb_backend clb_backend_cpu = {.name = "cpu",
                                     .list = cpu_list,
                                     .open = cpu_open,
                                     .close = cpu_close,
                                     .alloc = cpu_alloc,
                                     .free = clb_cpu_free,
                                     .write = clb_cpu_write,
                                     .read = clb_cpu_read,
                                     .alloc_ipc = cpu_alloc_ipc,
                                     .open_ipc = clb_cpu_open_ipc,
                                     .free_ipc = clb_cpu_free_ipc,
                                     .reach = cpu_reach,
                                     .copy = clb_cpu_copy,
                                     .build = cpu_build,
                                     .load = cpu_load,
                                     .unload = cpu_unload,
                                     .launch = cpu_launch,
                                     .wait = cpu_wait,
                                     .open_blas = cpu_open_blas,
                                     .gemm = cpu_gemm,
                                     .can_gemm = cpu_can_multiply};
