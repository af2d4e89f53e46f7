/* tests/amd/assembled.c - test kernels in AMD's assembly, through clang into a loaded code object.
 */
#define _GNU_SOURCE
#include "tests/amd/assembled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_body(FILE *f, const char *body, bool wide) {
  for (const char *s = body; *s; s++)
    if (*s != '$') fputc(*s, f);
    else switch (*++s) {
        case 'v': fputs(wide ? "vcc" : "vcc_lo", f); break;
        case 'e': fputs(wide ? "exec" : "exec_lo", f); break;
        case 'b': fputs(wide ? "b64" : "b32", f); break;
        case 's': fputs(wide ? "s[12:13]" : "s12", f); break;
        default: fputs(wide ? "s[14:15]" : "s14", f); break;
      }
  fputc('\n', f);
}

/* s[8:9] and s[10:11] point to inputs and results; on gfx90a s[0:3] is the scratch buffer. */
static void add_kernel(FILE *f, const char *target, const amd_source *k) {
  bool wide = strncmp(target, "gfx1", 4) != 0, buffer = !strcmp(target, "gfx90a");
  fprintf(f, ".globl %s\n.p2align 8\n.type %s,@function\n%s:\n", k->name, k->name, k->name);
  if (buffer) fputs("s_add_u32 s0, s0, s7\ns_addc_u32 s1, s1, 0\n", f);
  fprintf(
      f,
      "s_load_dwordx4 s[8:11], s[%d:%d], 0x0\nv_lshlrev_b32_e32 v1, 5, v0\ns_waitcnt lgkmcnt(0)\n",
      buffer ? 4 : 0, buffer ? 5 : 1);
  fputs("global_load_dwordx4 v[2:5], v1, s[8:9]\n"
        "global_load_dwordx4 v[6:9], v1, s[8:9] offset:16\nv_lshlrev_b32_e32 v1, 4, v0\n",
        f);
  fputs("v_mov_b32_e32 v10, 0\nv_mov_b32_e32 v11, 0\nv_mov_b32_e32 v12, 0\n"
        "v_mov_b32_e32 v13, 0\ns_waitcnt vmcnt(0)\n",
        f);
  add_body(f, k->body, wide);
  fprintf(
      f,
      "s_mov_%s, -1\ns_waitcnt lgkmcnt(0)\nglobal_store_dwordx4 v1, v[10:13], s[10:11]\ns_endpgm\n",
      wide ? "b64 exec" : "b32 exec_lo");
  fprintf(f,
          ".rodata\n.p2align 6\n.amdhsa_kernel %s\n.amdhsa_group_segment_fixed_size %d\n"
          ".amdhsa_private_segment_fixed_size %d\n",
          k->name, AMD_TEST_LDS, AMD_TEST_SCRATCH);
  fputs(".amdhsa_kernarg_size 16\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
        ".amdhsa_next_free_vgpr 256\n.amdhsa_next_free_sgpr 64\n.amdhsa_ieee_mode 1\n",
        f);
  fputs(".amdhsa_float_denorm_mode_32 3\n.amdhsa_float_denorm_mode_16_64 3\n", f);
  if (buffer)
    fputs(".amdhsa_user_sgpr_private_segment_buffer 1\n"
          ".amdhsa_system_sgpr_private_segment_wavefront_offset 1\n",
          f);
  else fputs(".amdhsa_enable_private_segment 1\n", f);
  fputs(wide ? ".amdhsa_accum_offset 128\n" : ".amdhsa_wavefront_size32 1\n", f);
  fputs(".end_amdhsa_kernel\n.text\n", f);
}

static void add_note(FILE *f, const char *target, const amd_source *sources, int n) {
  fprintf(f,
          ".amdgpu_metadata\n---\namdhsa.version: [ 1, 2 ]\n"
          "amdhsa.target: amdgcn-amd-amdhsa--%s\namdhsa.kernels:\n",
          target);
  for (int k = 0; k < n; k++) {
    fprintf(f,
            "  - .name: %s\n    .symbol: %s.kd\n    .kernarg_segment_size: 16\n"
            "    .kernarg_segment_align: 8\n    .group_segment_fixed_size: %d\n",
            sources[k].name, sources[k].name, AMD_TEST_LDS);
    fprintf(f,
            "    .private_segment_fixed_size: %d\n    .wavefront_size: %d\n    .sgpr_count: 64\n"
            "    .vgpr_count: 256\n    .max_flat_workgroup_size: 256\n    .args:\n",
            AMD_TEST_SCRATCH, strncmp(target, "gfx1", 4) ? 64 : 32);
    for (int a = 0; a < 2; a++)
      fprintf(f,
              "      - .offset: %d\n        .size: 8\n        .value_kind: global_buffer\n"
              "        .address_space: global\n",
              8 * a);
  }
  fputs("...\n.end_amdgpu_metadata\n", f);
}

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  char *bytes = n > 0 ? malloc((size_t)n) : NULL;
  rewind(f);
  if (bytes && fread(bytes, 1, (size_t)n, f) != (size_t)n) {
    free(bytes);
    bytes = NULL;
  }
  fclose(f);
  return bytes;
}

amd_module *amd_assemble(const char *target, const amd_source *sources, int n) {
  char folder[] = "/tmp/amd-assembled-XXXXXX", source[64], code[64], command[512],
       error[512] = "clang-19 refuses it";
  amd_module *m = NULL;
  if (!mkdtemp(folder)) return NULL;
  snprintf(source, sizeof source, "%s/k.s", folder);
  snprintf(code, sizeof code, "%s/k.co", folder);
  FILE *f = fopen(source, "w");
  if (f) {
    fputs(".text\n", f);
    for (int k = 0; k < n; k++) add_kernel(f, target, &sources[k]);
    add_note(f, target, sources, n);
    fclose(f);
    snprintf(command, sizeof command,
             "clang-19 -x assembler --target=amdgcn-amd-amdhsa -mcpu=%s %s -o %s", target, source,
             code);
    char *binary = system(command) ? NULL : read_file(code);
    if (binary) m = amd_load(binary, error, sizeof error);
    free(binary);
  }
  unlink(source);
  unlink(code);
  rmdir(folder);
  if (!m) fprintf(stderr, "%s: %s\n", target, error);
  return m;
}

bool amd_run_assembled(const amd_module *m, const char *name, uint32_t threads, const void *in,
                       void *out, char *error, size_t size) {
  void *params[] = {&in, &out};
  for (int k = 0; k < m->n_kernels; k++)
    if (!strcmp(m->kernels[k].name, name))
      return amd_run_kernel(m, &m->kernels[k], 1, threads, 0, params, error, size);
  return snprintf(error, size, "no kernel %s", name), false;
}
