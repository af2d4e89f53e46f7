/* tools/inspect/source.c - `clebsch source`: the kernel of an op in a device's language, and the
   compiler's report on it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/cli/request.h"

typedef struct {
  bool stats;
  const char *path;
} source_options;

typedef struct {
  request request;
  source_options options;
  json_t *rows; /* NULL: text */
  int kernels;  /* number requested */
} source;

/* One kernel. */
typedef struct {
  const char *text, *device, *pass, *dtype;
  size_t bytes;
  bool words; /* SPIR-V */
  clb_counts counts;
  clb_report report;
} kernel_text;

enum { STATS = 256 };

static error_t parse(int key, char *arg, struct argp_state *state) {
  source_options *o = state->input;
  switch (key) {
    case STATS: o->stats = true; return 0;
    case 'o': o->path = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static uint32_t word_at(const kernel_text *k, size_t i) {
  uint32_t word;
  memcpy(&word, k->text + 4 * i, 4);
  return word;
}

/* ---- output ---- */

static void add_json(json_t *rows, const source *s, const kernel_text *k, const char *problem) {
  json_t *row = json_array_add(rows, json_object());
  JSON_ADD(row, {"op", json_text(s->request.op->name)}, {"problem", json_text(problem)},
           {"pass", json_text(k->pass)}, {"dtype", json_text(k->dtype)},
           {"device", json_text(k->device)}, {"language", json_text(k->words ? "spirv" : "text")});
  if (k->words) {
    json_t *words = json_array();
    json_add(row, "source", words);
    for (size_t i = 0; i < k->bytes / 4; i++) json_array_add(words, json_count(word_at(k, i)));
  } else json_add(row, "source", json_text(k->text));
  if (!s->options.stats) return;
  json_t *program = json_object(), *compiler = json_object();
  json_add(row, "program", program);
  JSON_ADD(program, {"loads", json_number(k->counts.loads)},
           {"stores", json_number(k->counts.stores)},
           {"bytes_loaded", json_number(k->counts.bytes_loaded)},
           {"bytes_stored", json_number(k->counts.bytes_stored)},
           {"flops", json_number(k->counts.flops)});
  json_add(row, "compiler", compiler);
  JSON_ADD(
      compiler, {"loads", json_count(k->report.loads)}, {"stores", json_count(k->report.stores)},
      {"fmas", json_count(k->report.fmas)}, {"instructions", json_count(k->report.instructions)},
      {"accesses", json_count(k->report.accesses)}, {"registers", json_count(k->report.registers)},
      {"spill_bytes", json_count(k->report.spill_bytes)});
}

static void print_stats(const source *s, const kernel_text *k, const char *problem) {
  const clb_counts *c = &k->counts;
  const struct {
    const char *what;
    int n;
  } said[] = {{"loads", k->report.loads},
              {"stores", k->report.stores},
              {"FMAs", k->report.fmas},
              {"instructions", k->report.instructions},
              {"accesses of memory", k->report.accesses},
              {"registers", k->report.registers},
              {"bytes spilled", k->report.spill_bytes}};
  printf("%s %s, %s, %s, %s\n", s->request.op->name, problem, k->pass, k->dtype, k->device);
  printf("  program, per row:   %g loads (%g bytes), %g stores (%g bytes), %g flops\n", c->loads,
         c->bytes_loaded, c->stores, c->bytes_stored, c->flops);
  printf("  compiler, per lane: ");
  int n = 0;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (said[i].n >= 0) printf("%s%d %s", n++ ? ", " : "", said[i].n, said[i].what);
  puts(n ? "" : "it does not say");
}

static int write_file(const char *path, const kernel_text *k) {
  FILE *f = fopen(path, "wb");
  bool good = f && fwrite(k->text, 1, k->bytes, f) == k->bytes;
  if (f) good &= fclose(f) == 0;
  if (!good) warn("%s: could not be written: %s", path, strerror(errno));
  return good ? EXIT_GOOD : EXIT_FAILED;
}

static void print_source(const source *s, const kernel_text *k) {
  if (s->kernels > 1) printf("%s %s %s %s\n", k->words ? ";" : "//", k->device, k->pass, k->dtype);
  if (!k->words || (s->kernels == 1 && !isatty(STDOUT_FILENO))) {
    fwrite(k->text, 1, k->bytes, stdout);
    if (!k->words && k->bytes && k->text[k->bytes - 1] != '\n') putchar('\n');
  } else
    for (size_t i = 0; i < k->bytes / 4; i++)
      printf("0x%08" PRIx32 "%c", word_at(k, i), i % 8 == 7 || i + 1 == k->bytes / 4 ? '\n' : ' ');
}

static int show(const source *s, const kernel_text *k, const char *problem) {
  int status = s->options.path ? write_file(s->options.path, k) : EXIT_GOOD;
  if (s->rows) add_json(s->rows, s, k, problem);
  else if (s->options.stats) print_stats(s, k, problem);
  else if (!s->options.path) print_source(s, k);
  fflush(stdout);
  return status;
}

/* ---- kernels ---- */

static int one_kernel(source *s, clb_context *ctx, const char *device, clb_pass pass,
                      clb_dtype dtype) {
  const tool_op *op = s->request.op;
  tool_kernel kernel = {
      .problem = s->request.problem, .storage = dtype, .arithmetic = usual_arithmetic(dtype)};
  kernel_text k = {.device = device, .pass = pass_names[pass], .dtype = dtype_names[dtype]};
  char problem[320];
  clb_op *handle = NULL;
  clb_status status = op->create(ctx, &kernel, CLB_PASS_BIT(pass), &handle);
  if (!status) status = clb_op_source(handle, pass, &k.text, &k.bytes);
  if (!status && s->options.stats) status = clb_op_counts(handle, pass, &k.counts);
  if (!status && s->options.stats) status = clb_op_report(handle, pass, &k.report);
  int exit_status = status ? failure(status) : EXIT_GOOD;
  if (status) warn("%s: %s", device, clb_error(ctx));
  else {
    k.words = k.bytes >= 4 && word_at(&k, 0) == 0x07230203; /* SPIR-V's magic number */
    print_kernel(op, &kernel, problem, sizeof problem);
    exit_status = show(s, &k, problem);
  }
  clb_op_destroy(&handle);
  return exit_status;
}

static int on_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  source *s = user;
  int worst = EXIT_GOOD;
  (void)asked;
  for (int dtype = 0; dtype < DTYPES; dtype++)
    for (int pass = 0; pass < PASSES; pass++) {
      if (worst == EXIT_USAGE || !(s->request.kernels.dtypes >> dtype & 1) ||
          !(s->request.kernels.passes >> pass & 1))
        continue;
      int status = one_kernel(s, ctx, info->name, (clb_pass)pass, (clb_dtype)dtype);
      if (status > worst) worst = status;
    }
  return worst;
}

int source_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"stats", STATS, NULL, 0,
       "Print, instead of the source, counts of the kernel's operations per row and the report of "
       "the device's compiler",
       0},
      {"out", 'o', "FILE", 0, "Write the source of one kernel to FILE", 0},
      {0}};
  static const struct argp own = {.options = options, .parser = parse};
  source s = {.rows = NULL};
  request_parse(&s.request, argc, argv, &own, &s.options,
                "Prints the kernel of an op in a device's language. Works for compile-only "
                "devices, too (`clebsch devices`).\v"
                "The pass is forward if --pass is not given. A level_zero device's language is "
                "SPIR-V: the module is written in binary to a file or a pipe, and as hexadecimal "
                "words to a terminal. compiler: loads and "
                "stores are elements of global memory in "
                "the machine code, FMAs its fused multiply-adds, accesses its instructions "
                "that load and store, of local memory and scratch, too.");
  request *r = &s.request;
  if (!r->kernels.passes) r->kernels.passes = CLB_PASS_BIT(CLB_FORWARD);
  s.kernels = r->devices.n_devices * __builtin_popcount(r->kernels.passes) *
              __builtin_popcount(r->kernels.dtypes);
  if (s.options.path && s.kernels > 1) {
    warn("source: --out takes one device, one pass and one dtype");
    request_free(r);
    return EXIT_USAGE;
  }
  const named_file output = {"the source (--out)", s.options.path, FILE_GROWING};
  const bool ready = outputs_ready(&output, 1);
  if (ready && r->devices.json) s.rows = json_array();
  int status = ready ? on_each_device(&r->devices, on_device, &s) : EXIT_FAILED;
  if (s.rows) json_print(s.rows);
  request_free(r);
  return status;
}
