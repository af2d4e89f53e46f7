/* backends/cuda_hip/compile.c - text to machine code: NVRTC, hiprtc, or a clang for targets that
   hiprtc does not know. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda_hip/gpu.h"

/* ---- opening ---- */

/* NVRTC is often outside the linker's search path. */
static void *open_beside(const char *const *names) {
  const char *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"},
             *folders[] = {"lib64", "lib"};
  void *library = NULL;
  for (int h = 0; h < 3; h++)
    for (int f = 0; f < 2; f++)
      for (const char *const *name = names; homes[h] && *name && !library; name++) {
        clb_text path = {0};
        clb_text_add(&path, "%s/%s/%s", homes[h], folders[f], *name);
        const char *one[] = {path.s, NULL};
        if (!path.failed) library = clb_dl_open(one);
        clb_text_free(&path);
      }
  return library;
}

/* Without a GPU, HIP's LLVM is isolated from other drivers'. */
static void *open_compiler(const clb_gpu *g, const char *const *names) {
  return g->vendor->language == CLB_LANGUAGE_HIP && !g->driver_library ? clb_dl_open_isolated(names)
                                                                       : clb_dl_open(names);
}

static clb_status open_rtc(clb_gpu *g) {
  const clb_gpu_vendor *v = g->vendor;
  const char *missing = v->compiler_names[0];
  for (const char *const *name = v->compiler_names; *name && missing; name++) {
    const char *one[] = {*name, NULL};
    g->compiler_library = open_compiler(g, one);
    if (g->compiler_library)
      missing = clb_dl_symbols(g->compiler_library, v->compiler_symbols.table,
                               v->compiler_symbols.n, &g->compiler);
  }
  if (!g->compiler_library && v->language == CLB_LANGUAGE_CUDA &&
      (g->compiler_library = open_beside(v->compiler_names)))
    missing = clb_dl_symbols(g->compiler_library, v->compiler_symbols.table, v->compiler_symbols.n,
                             &g->compiler);
  if (!g->compiler_library)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE,
                    "%s: %s (%s) cannot be opened: it compiles the kernels", g->name,
                    v->compiler_name, v->compiler_names[0]);
  if (missing)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: %s has no %s: it is too old", g->name,
                    v->compiler_name, missing);
  return CLB_OK;
}

static clb_status failed(clb_gpu *g, int call, int code) {
  if (!code) return CLB_OK;
  const char *text = g->compiler.error_text(code);
  return clb_fail(g->head.error, CLB_ERROR_COMPILE, "%s: %s: %s (%d)", g->name,
                  g->vendor->compiler_symbols.table[call].name, text ? text : "unknown error",
                  code);
}
#define CALL(g, field, ...) failed(g, CLB_GPU_COMPILER_##field, (g)->compiler.field(__VA_ARGS__))

static clb_status check_nvrtc(clb_gpu *g) {
  int n = 0, number[256] = {0}, wish = atoi(g->target + strlen(g->vendor->target_prefix));
  const char *call = "nvrtcGetNumSupportedArchs";
  int code = g->compiler.n_targets(&n);
  if (!code && n > 0 && n <= 256) {
    call = "nvrtcGetSupportedArchs";
    code = g->compiler.targets(number);
  }
  if (code || n < 1 || n > 256) {
    const char *text = code ? g->compiler.error_text(code) : "of 256 at most";
    return clb_fail(g->head.error, CLB_ERROR_DRIVER,
                    "%s: NVRTC does not say what it compiles for: %s: %s (%d)", g->name, call,
                    text ? text : "unknown error", code ? code : n);
  }
  clb_text known = {0};
  for (int i = 0; i < n; i++) {
    if (number[i] == wish) {
      clb_text_free(&known);
      return CLB_OK;
    }
    clb_text_add(&known, " sm_%d", number[i]);
  }
  clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: this NVRTC does not know %s; it knows%s", g->name,
           g->target, known.s ? known.s : "");
  clb_text_free(&known);
  return CLB_ERROR_DEVICE;
}

/* hiprtc aborts the whole process on an unknown target, so its code object manager is asked
   first. */
static bool hiprtc_knows(const clb_gpu *g) {
  struct {
    int (*count)(size_t *n);
    int (*name)(size_t i, const char **name);
  } comgr;
  static const clb_symbol symbols[] = {{"amd_comgr_get_isa_count", 0, false},
                                       {"amd_comgr_get_isa_name", sizeof(void *), false}};
  const char *const names[] = {"libamd_comgr.so.3", "libamd_comgr.so.2", NULL};
  const char *target = g->target;
  void *library = open_compiler(g, names);
  size_t n = 0, length = strcspn(target, ":");
  bool known = false;
  if (!library) return false;
  if (!clb_dl_symbols(library, symbols, 2, &comgr) && !comgr.count(&n))
    for (size_t i = 0; i < n && !known; i++) {
      const char *name = NULL, *tail;
      if (comgr.name(i, &name) || !name || !(tail = strstr(name, "--"))) continue;
      known = !strncmp(tail + 2, target, length) && !tail[2 + length];
    }
  return known;
}

static clb_status open_hip(clb_gpu *g) {
  clb_status s = CLB_OK;
  if (hiprtc_knows(g) && (s = open_rtc(g)) == CLB_OK) return CLB_OK;
  clb_gpu_clang_find(g->clang, sizeof g->clang);
  if (g->clang[0] && clb_gpu_clang_knows(g)) return CLB_OK;
  if (g->clang[0])
    return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: neither hiprtc nor %s compiles for %s",
                    g->name, g->clang, g->target);
  return s ? s
           : clb_fail(
                 g->head.error, CLB_ERROR_DEVICE,
                 "%s: hiprtc does not know %s (or is not here), and there is no clang on the PATH",
                 g->name, g->target);
}

clb_status clb_gpu_compiler_open(clb_gpu *g) {
  int major = 0, minor = 0;
  char compiler[256];
  clb_status s = g->vendor->language == CLB_LANGUAGE_HIP ? open_hip(g) : open_rtc(g);
  if (!s && !g->clang[0]) s = CALL(g, version, &major, &minor);
  if (!s && g->vendor->language == CLB_LANGUAGE_CUDA) s = check_nvrtc(g);
  if (s) return s;
  snprintf(compiler, sizeof compiler, g->clang[0] ? "%s" : "%s%s %d.%d", g->clang,
           g->vendor->compiler_name, major, minor);
  size_t n = strlen(g->driver_text);
  snprintf(g->driver_text + n, sizeof g->driver_text - n, "%s%s", n ? ", " : "", compiler);
  if (g->clang[0]) clb_gpu_clang_identity(g->clang, compiler, sizeof compiler);
  snprintf(g->head.key, sizeof g->head.key, "%s %s", g->target,
           g->clang[0] ? compiler : g->driver_text);
  return CLB_OK;
}

/* ---- compiling ---- */

static void take_log(clb_gpu *g, void *program, clb_text *log) {
  size_t n = 0;
  if (g->compiler.log_size(program, &n) || !n) return;
  char *text = calloc(n + 1, 1); /* hiprtc does not write an empty log */
  if (text && !g->compiler.log(program, text)) clb_text_add(log, "%s", text);
  free(text);
}

static clb_status take_code(clb_gpu *g, void *program, clb_text *binary) {
  size_t n = 0;
  clb_status s = CALL(g, code_size, program, &n);
  char *code = s ? NULL : calloc(n + 1, 1);
  if (!s && !code)
    s = clb_fail(g->head.error, CLB_ERROR_MEMORY, "%s: no memory for %zu bytes of machine code",
                 g->name, n);
  if (!s) s = CALL(g, code, program, code);
  if (!s) clb_text_bytes(binary, code, n);
  free(code);
  return s;
}

#define MAX_OPTIONS 16

static int rtc_major(const clb_gpu *g) {
  int major = 0, minor = 0;
  return g->compiler.version(&major, &minor) ? 0 : major;
}

static clb_status with_rtc(clb_gpu *g, const char *name, const char *text, bool verbose,
                           clb_text *binary, clb_text *log) {
  const char *option[MAX_OPTIONS];
  char target[160];
  int n = 0;
  void *program = NULL;
  snprintf(target, sizeof target, "--gpu-architecture=%s", g->target);
  option[n++] = target;
  if (verbose) option[n++] = "--ptxas-options=-v";
  if (verbose && rtc_major(g) >= 13)
    option[n++] = "--no-cache"; /* results from NVRTC's cache have no log */
  for (const char *const *o = g->vendor->options; *o && n < MAX_OPTIONS; o++) option[n++] = *o;
  clb_status s = CALL(g, create, &program, text, name, 0, NULL, NULL);
  if (s) return s;
  s = CALL(g, compile, program, n, option);
  take_log(g, program, log);
  if (s) clb_fail_more(g->head.error, s, ", compiling %s:\n%s", name, log->s ? log->s : "");
  if (!s) s = take_code(g, program, binary);
  g->compiler.destroy(&program);
  return s;
}

clb_status clb_gpu_compile(clb_gpu *g, const char *name, const clb_text *text, bool verbose,
                           clb_text *binary, clb_text *log) {
  clb_text own = {0};
  clb_status s = g->clang[0] ? clb_gpu_clang(g, name, text, binary)
                             : with_rtc(g, name, text->s, verbose, binary, log ? log : &own);
  if (!s && binary->failed)
    s = clb_fail(g->head.error, CLB_ERROR_MEMORY, "%s: no memory for the machine code of %s",
                 g->name, name);
  clb_text_free(&own);
  return s;
}

const char *clb_gpu_elf_error(const void *binary, size_t bytes) {
  Elf64_Ehdr head;
  if (bytes < 4) return "it has less than 4 bytes";
  if (memcmp(binary, ELFMAG, SELFMAG)) return NULL;
  if (bytes < sizeof head) return "it is cut short within its ELF header";
  memcpy(&head, binary, sizeof head);
  uint64_t sections = (uint64_t)head.e_shnum * head.e_shentsize,
           segments = (uint64_t)head.e_phnum * head.e_phentsize;
  if (head.e_shoff > bytes || sections > bytes - head.e_shoff)
    return "its table of sections lies behind its end";
  return head.e_phoff > bytes || segments > bytes - head.e_phoff
             ? "its table of segments lies behind its end"
             : NULL;
}
