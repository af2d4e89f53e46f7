/* src/codegen/simt_builtins.c - the built-ins in which OpenCL C, CUDA and HIP differ, each defined
   when a text uses it. */
#include "src/codegen/simt_builtins.h"

#include <ctype.h>
#include <string.h>

#include "src/codegen/builtins/builtins.h"

/* A built-in comes after those it uses. space: GLOBAL or LOCAL. */
static const char *const names[] = {
    "double", "KERNEL", /* (threads, lanes, resident groups) */
    "group_index", "thread_index", "subgroup_index", "f32_bits", "bits_f32", "f64_bits", "bits_f64",
    "mul_wide", "f16_to_f32", "f16_bits_to_f32", "f32_to_f16", "bf16_to_f32", "f32_to_bf16",
    "fma_f32", "fma_f64", "fmin_f32", "fmin_f64", "fmax_f32", "fmax_f64", "fabs_f32", "fabs_f64",
    "exp_f32", "exp_f64", "turn_f64", "turn_f32", "sine", "sin_f32", "sin_f64", "cos_f32",
    "cos_f64", "sqrt_f32", "sqrt_f64",
    /* of lanes: (x, lane, lanes of a sub-group) */
    "subgroup_mask", "shuffle_b32", "shuffle_b64", "exchange_b32", "exchange_b64", "shuffle_u32",
    "shuffle_u64", "shuffle_i32", "shuffle_xor_i32", "shuffle_i64", "shuffle_xor_i64",
    "shuffle_f32", "shuffle_xor_f32", "shuffle_f64", "shuffle_xor_f64", "hidden", "negated",
    "group_barrier", "subgroup_barrier",
    /* (space, address, x) */
    "atomic_add_f32", "atomic_add_f64", "atomic_add_f32_2", "atomic_add_f32_4", "native_add_f32",
    /* into local memory: (to, from) of so many bytes, aligned with a constant number of bytes
       behind each */
    "copy_2", "copy_4", "copy_8", "copy_aligned_8", "copy_aligned_16", "copy_commit", "copy_wait",
    "longlong2", "make_int2", "make_int4", "make_longlong2", "make_float2", "make_float4",
    "make_double2"};
enum { N = sizeof names / sizeof *names };

static const char *find(const clb_builtin *b, const char *name) {
  while (b->name && strcmp(b->name, name)) b++;
  return b->text;
}

/* NULL: the language cannot express it. */
static const char *definition(const char *name, const clb_dialect *d) {
  static const clb_builtin *const of[] = {[CLB_LANGUAGE_OPENCL] = clb_builtins_opencl,
                                          [CLB_LANGUAGE_CUDA] = clb_builtins_cuda,
                                          [CLB_LANGUAGE_HIP] = clb_builtins_hip};
  const char *text = NULL;
  if (d->language == CLB_LANGUAGE_OPENCL && d->ptx) text = find(clb_builtins_ptx, name);
  else if (d->language == CLB_LANGUAGE_OPENCL && d->subgroups)
    text = find(clb_builtins_subgroups, name);
  return text ? text : find(of[d->language], name);
}

static bool letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool uses(const char *text, const char *name) {
  size_t n = strlen(name);
  for (const char *s = text; (s = strstr(s, name)); s += n)
    if ((s == text || !letter(s[-1])) && !letter(s[n])) return true;
  return false;
}

const char *clb_builtins(const clb_dialect *dialect, const char *body, clb_text *out) {
  const char *used[N] = {0};
  for (int w = N - 1; w >= 0; w--) {
    bool is = uses(body, names[w]);
    for (int by = w + 1; by < N && !is; by++) is = used[by] && uses(used[by], names[w]);
    if (is && !(used[w] = definition(names[w], dialect))) return names[w];
  }
  for (int w = 0; w < N; w++)
    if (used[w]) clb_text_add(out, "%s", used[w]);
  return NULL;
}
