/* tests/fakes/fake_level_zero_module.c - modules and kernels of the test-only driver. */
#include "tests/fakes/fake_level_zero.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a module says about its kernel ---- */

enum {
  OP_ENTRY = 15,
  OP_MODE = 16,
  OP_INT = 21,
  OP_FLOAT = 22,
  OP_POINTER = 32,
  OP_PARAMETER = 55,
  MODE_LOCAL_SIZE = 17,
  MODE_SUBGROUP_SIZE = 35
};

/* Bytes of a parameter's type: 0 a pointer, -1 not found. */
static int type_bytes(const uint32_t *words, size_t n, uint32_t type) {
  for (size_t i = 5; i < n && words[i] >> 16; i += words[i] >> 16) {
    uint32_t op = words[i] & 0xffff;
    if (words[i + 1] != type) continue;
    if (op == OP_POINTER) return 0;
    if (op == OP_INT || op == OP_FLOAT) return (int)words[i + 2] / 8;
  }
  return -1;
}

/* Reads the one kernel of a module.  false: not a module, or not one kernel. */
static bool read_signature(const uint32_t *words, size_t n, fake_signature *s) {
  int kernels = 0;
  memset(s, 0, sizeof *s);
  if (n < 5 || words[0] != 0x07230203 || words[1] > 0x00010200)
    return false; /* the Max driver takes at most 1.2 */
  for (size_t i = 5, length; i < n; i += length) {
    uint32_t op = words[i] & 0xffff;
    if (!(length = words[i] >> 16) || length > n - i) return false;
    if (op == OP_ENTRY)
      snprintf(s->name, sizeof s->name, "%.*s", (int)(4 * (length - 3)),
               (const char *)&words[i + 3]),
          kernels++;
    if (op == OP_MODE && words[i + 2] == MODE_SUBGROUP_SIZE) s->sub_group = words[i + 3];
    if (op == OP_MODE && words[i + 2] == MODE_LOCAL_SIZE) s->local_size = words[i + 3];
    if (op != OP_PARAMETER) continue;
    if (s->n_parameters == FAKE_PARAMETERS ||
        (s->bytes[s->n_parameters++] = type_bytes(words, n, words[i + 1])) < 0)
      return false;
  }
  return kernels == 1;
}

/* ---- modules ---- */

/* A native binary: this head, the words, and what they were compiled to. */
typedef struct {
  char magic[8];
  uint32_t large, registers;
  uint64_t words, bytes, sum; /* words: bytes of them */
} native_head;

static uint64_t sum_of(const uint8_t *bytes, size_t n) {
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < n; i++) sum = (sum ^ bytes[i]) * 1099511628211u;
  return sum;
}

/* Unknown options are refused. */
static bool read_options(object *module, const char *flags, char *log, size_t size) {
  static const char *const known[] = {"-ze-opt-greater-than-4GB-buffer-required",
                                      "-ze-opt-large-register-file",
                                      "-cl-fp32-correctly-rounded-divide-sqrt"};
  for (const char *at = flags ? flags : "", *stop; *at; at = *stop ? stop + 1 : stop) {
    int found = -1;
    stop = at + strcspn(at, " ");
    for (int i = 0; i < 3; i++)
      if (strlen(known[i]) == (size_t)(stop - at) && !strncmp(at, known[i], (size_t)(stop - at)))
        found = i;
    if (found == 0) module->large = true;
    if (found == 1) module->registers = true;
    if (found < 0 && stop != at) {
      snprintf(log, size, "unknown option %.*s", (int)(stop - at), at);
      return false;
    }
  }
  return true;
}

static bool read_native(object *module, const ze_module_desc_t *desc, fake_source *from, char *log,
                        size_t size) {
  native_head head;
  snprintf(log, size, "not a binary of this driver");
  if (desc->inputSize < sizeof head) return false;
  memcpy(&head, desc->pInputModule, sizeof head);
  const uint8_t *behind = desc->pInputModule + sizeof head;
  size_t n = desc->inputSize - sizeof head;
  if (memcmp(head.magic, "FAKE-ZE2", 8) || head.bytes != n || head.words > n ||
      head.sum != sum_of(behind, n))
    return false;
  from->spirv = behind;
  from->bytes = head.words;
  from->binary_bytes = n - head.words;
  from->binary = from->binary_bytes ? behind + head.words : NULL;
  from->options = NULL;
  module->large = head.large;
  module->registers = head.registers;
  return true;
}

static ze_result_t compile(object *module, const ze_module_desc_t *desc, char *log, size_t size) {
  fake_source from = {.spirv = desc->pInputModule,
                      .bytes = desc->inputSize,
                      .options = desc->pBuildFlags ? desc->pBuildFlags : ""};
  const fake_signature *s = &module->signature;
  bool native = desc->format == ZE_MODULE_FORMAT_NATIVE;
  if (native && !read_native(module, desc, &from, log, size))
    return ZE_RESULT_ERROR_INVALID_NATIVE_BINARY;
  if (!native && !read_options(module, desc->pBuildFlags, log, size))
    return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  module->spirv = calloc(from.bytes ? from.bytes : 1, 1);
  if (!module->spirv) abort();
  memcpy(module->spirv, from.spirv, from.bytes);
  from.spirv = module->spirv; /* aligned */
  module->bytes = from.bytes;
  snprintf(log, size, "the words are no module with one kernel");
  if (from.bytes % 4 || !read_signature(from.spirv, from.bytes / 4, &module->signature))
    return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  snprintf(log, size, "sub-groups of %u lanes", s->sub_group);
  if (s->sub_group && s->sub_group != 16 && s->sub_group != 32)
    return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  from.kernel = s->name;
  module->program = fake_program_new(&from, log, size);
  return module->program ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
}

static void module_free(object *m) {
  if (m->program) fake_program_free(m->program);
  free(m->spirv);
  free(m);
}

static ze_result_t ZE_APICALL module_create(ze_context_handle_t c, ze_device_handle_t d,
                                            const ze_module_desc_t *desc, ze_module_handle_t *out,
                                            ze_module_build_log_handle_t *log) {
  char words[2000] = "made to fail";
  ze_result_t r = fake_begin("zeModuleCreate");
  bool injected = r;
  if (!r) r = fake_check(c, CONTEXT);
  if (!r) r = fake_check_device(d);
  if (!r) r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_MODULE_DESC, "module description");
  if (!r) r = fake_check_pointer(desc->pInputModule, "the module's words");
  if (r && !injected) return fake_end(r);
  object *module = fake_made(MODULE, (object *)c, d);
  if (!r) r = compile(module, desc, words, sizeof words);
  if (r) {
    fake_objects = module->next;
    module_free(module);
  }
  if (log) {
    object *o = fake_made(LOG, NULL, NULL);
    snprintf(o->log, sizeof o->log, "%s", r ? words : "");
    *log = (ze_module_build_log_handle_t)o;
  }
  if (!r) *out = (ze_module_handle_t)module;
  return fake_end(r);
}

static ze_result_t ZE_APICALL module_destroy(ze_module_handle_t m) {
  ze_result_t failure = fake_begin("zeModuleDestroy"), r = fake_destroy((object *)m, MODULE);
  if (!r) module_free((object *)m);
  return fake_end(r ? r : failure);
}

static ze_result_t ZE_APICALL log_destroy(ze_module_build_log_handle_t l) {
  return fake_destroy_plain("zeModuleBuildLogDestroy", l, LOG);
}

static ze_result_t ZE_APICALL log_string(ze_module_build_log_handle_t l, size_t *n, char *out) {
  ze_result_t r = fake_begin("zeModuleBuildLogGetString");
  if (!r) r = fake_check(l, LOG);
  if (!r) r = fake_check_pointer(n, "the log's size");
  if (!r && out) snprintf(out, *n, "%s", ((object *)l)->log);
  if (!r && !out) *n = strlen(((object *)l)->log) + 1;
  return fake_end(r);
}

static ze_result_t ZE_APICALL module_native(ze_module_handle_t m, size_t *n, uint8_t *out) {
  const object *module = (object *)m;
  ze_result_t r = fake_begin("zeModuleGetNativeBinary");
  if (!r) r = fake_check(m, MODULE);
  if (!r) r = fake_check_pointer(n, "the binary's size");
  if (r) return fake_end(r);
  size_t compiled_bytes;
  const void *compiled = fake_program_binary(module->program, &compiled_bytes);
  native_head head = {.magic = "FAKE-ZE2",
                      .large = module->large,
                      .registers = module->registers,
                      .words = module->bytes,
                      .bytes = module->bytes + compiled_bytes};
  size_t all = sizeof head + head.bytes;
  if (out && *n < all)
    return fake_end(fake_broken(ZE_RESULT_ERROR_INVALID_SIZE, "no room for the binary"));
  *n = all;
  if (!out) return fake_end(r);
  memcpy(out + sizeof head, module->spirv, module->bytes);
  if (compiled_bytes) memcpy(out + sizeof head + module->bytes, compiled, compiled_bytes);
  head.sum = sum_of(out + sizeof head, head.bytes);
  memcpy(out, &head, sizeof head);
  return fake_end(r);
}

/* ---- kernels ---- */

static ze_result_t ZE_APICALL kernel_create(ze_module_handle_t m, const ze_kernel_desc_t *desc,
                                            ze_kernel_handle_t *out) {
  const object *module = (object *)m;
  ze_result_t r = fake_begin("zeKernelCreate");
  if (!r) r = fake_check(m, MODULE);
  if (!r) r = fake_check_struct(desc, ZE_STRUCTURE_TYPE_KERNEL_DESC, "kernel description");
  if (!r) r = fake_check_pointer(desc->pKernelName, "the kernel's name");
  if (!r && strcmp(desc->pKernelName, module->signature.name) != 0)
    r = ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
  void *run = r ? NULL : fake_kernel_new(module->program, desc->pKernelName);
  if (!r && !run) r = ZE_RESULT_ERROR_UNKNOWN;
  if (r) return fake_end(r);
  object *o = fake_made(KERNEL, (object *)m, NULL);
  o->run = run;
  o->signature = module->signature;
  *out = (ze_kernel_handle_t)o;
  return fake_end(r);
}

static ze_result_t ZE_APICALL kernel_destroy(ze_kernel_handle_t k) {
  ze_result_t failure = fake_begin("zeKernelDestroy"), r = fake_destroy((object *)k, KERNEL);
  if (!r) fake_kernel_free(((object *)k)->run);
  if (!r) free(k);
  return fake_end(r ? r : failure);
}

static ze_result_t ZE_APICALL kernel_size(ze_kernel_handle_t k, uint32_t x, uint32_t y,
                                          uint32_t z) {
  object *kernel = (object *)k;
  ze_result_t r = fake_begin("zeKernelSetGroupSize");
  if (!r) r = fake_check(k, KERNEL);
  if (!r && (!x || x > 1024 || y != 1 || z != 1 ||
             (kernel->signature.local_size && kernel->signature.local_size != x)))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION, "groups of %u x %u x %u", x, y,
                    z);
  if (!r) kernel->size = x;
  return fake_end(r);
}

/* A pointer must lie in an allocation of the kernel's context; a large one needs a module compiled
   for large allocations. */
static ze_result_t check_argument(const object *kernel, uint32_t index, size_t bytes,
                                  const void *value) {
  const fake_signature *s = &kernel->signature;
  if (index >= (uint32_t)s->n_parameters)
    return fake_broken(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX, "argument %u of %d", index,
                       s->n_parameters);
  size_t right = s->bytes[index] ? (size_t)s->bytes[index] : sizeof(void *);
  if (bytes != right)
    return fake_broken(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE,
                       "argument %u has %zu bytes instead of %zu", index, bytes, right);
  if (s->bytes[index]) return ZE_RESULT_SUCCESS;
  void *pointer;
  memcpy(&pointer, value, sizeof pointer);
  const object *m = fake_memory_at(pointer);
  if (!m || m->parent != kernel->parent->parent)
    return fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT,
                       "argument %u is no memory of the kernel's context", index);
  if (m->length > LARGE && !kernel->parent->large)
    return fake_broken(ZE_RESULT_ERROR_INVALID_ARGUMENT,
                       "argument %u is large, its module was not told", index);
  return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL kernel_argument(ze_kernel_handle_t k, uint32_t index, size_t bytes,
                                              const void *value) {
  object *kernel = (object *)k;
  ze_result_t r = fake_begin("zeKernelSetArgumentValue");
  if (!r) r = fake_check(k, KERNEL);
  if (!r) r = fake_check_pointer(value, "an argument's value");
  if (!r) r = check_argument(kernel, index, bytes, value);
  if (!r) memcpy(&kernel->args[index], value, bytes);
  if (!r) kernel->set[index] = true;
  return fake_end(r);
}

static ze_result_t ZE_APICALL kernel_indirect(ze_kernel_handle_t k,
                                              ze_kernel_indirect_access_flags_t flags) {
  ze_result_t r = fake_begin("zeKernelSetIndirectAccess");
  if (!r) r = fake_check(k, KERNEL);
  if (!r && !(flags & ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE))
    r = fake_broken(ZE_RESULT_ERROR_INVALID_ENUMERATION, "indirect access 0x%x", (unsigned)flags);
  return fake_end(r);
}

static ze_result_t ZE_APICALL kernel_properties(ze_kernel_handle_t k, ze_kernel_properties_t *p) {
  ze_result_t r = fake_begin("zeKernelGetProperties");
  if (!r) r = fake_check(k, KERNEL);
  if (!r) r = fake_check_struct(p, ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES, "kernel properties");
  if (r) return fake_end(r);
  const fake_signature *s = &((object *)k)->signature;
  p->numKernelArgs = (uint32_t)s->n_parameters;
  p->requiredSubgroupSize = s->sub_group;
  p->maxSubgroupSize = s->sub_group ? s->sub_group : 32;
  p->spillMemSize = 0;
  return fake_end(r);
}

TABLE(Module, ze_module_dditable_t, .pfnCreate = module_create, .pfnDestroy = module_destroy,
      .pfnGetNativeBinary = module_native)
TABLE(ModuleBuildLog, ze_module_build_log_dditable_t, .pfnDestroy = log_destroy,
      .pfnGetString = log_string)
TABLE(Kernel, ze_kernel_dditable_t, .pfnCreate = kernel_create, .pfnDestroy = kernel_destroy,
      .pfnSetGroupSize = kernel_size, .pfnSetArgumentValue = kernel_argument,
      .pfnSetIndirectAccess = kernel_indirect, .pfnGetProperties = kernel_properties)
