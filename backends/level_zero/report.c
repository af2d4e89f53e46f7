/* backends/level_zero/report.c - counts of instructions in the disassembly of a kernel by Intel's
   compiler.

   A message to memory is a line such as
     send.ugm (16|M0)  r18  r16  null:0  0x0  0x04100580  {$4} // wr:2+0, rd:1; load.ugm.d32x4.a64
   ugm is global memory (slm: local).  d32x4: 4 numbers of 32 bits for each of 16 lanes; d16u32: 16
   bits, kept in 32; a t after the width: that many numbers in a row, once for the sub-group, or one
   for each lane if there are as many (the compiler merges at most 8 that all lanes need).
   bti[255] marks the kernel's own arguments, ss[...] and "scratch" scratch memory. */
#define _GNU_SOURCE
#include "backends/level_zero/level_zero.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of one element if it is the same in all buffers, else 0: the compiler may merge narrow
   elements into wide messages. */
static int element_bytes(const ir_kernel *k) {
  int bytes = 0;
  for (int32_t i = 0; i < k->n; i++) {
    if (k->ins[i].op != IR_BUFFER) continue;
    int b = ir_type_bytes((ir_type)k->ins[i].element);
    if (bytes && b != bytes) return 0;
    bytes = b;
  }
  return bytes;
}

typedef struct {
  double elements; /* per active lane, or per sub-group */
  bool once;       /* per sub-group, not per lane */
} access;

/* Reads "d32x4...". false: an unknown kind. */
static bool read_access(const char *data, int executes, int element, access *a) {
  char *at;
  if (*data != 'd') return false;
  long bits = strtol(data + 1, &at, 10), width = 1;
  if (*at == 'u') strtol(at + 1, &at, 10); /* the number of bits in the register */
  if (*at == 'x') width = strtol(at + 1, &at, 10);
  a->once = *at == 't' || executes == 1;
  if (*at == 't') at++;
  a->elements = element ? (double)(bits * width) / (8 * element) : (double)width;
  return bits >= 8 && width >= 1 && *at == '.';
}

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* Position of `words` in the line, or NULL. */
static const char *in_line(const char *from, const char *end, const char *words) {
  return memmem(from, (size_t)(end - from), words, strlen(words));
}

/* Counts one line of assembly. false: an unknown kind of message. */
static bool count_line(const char *line, const char *end, int lanes, int element, double *loads,
                       double *stores) {
  access a;
  const char *send = in_line(line, end, "send"), *comment = in_line(line, end, "//");
  if (!send || (comment && comment < send)) return true;
  if (starts(send, "send.slm") || starts(send, "send.gtwy") || starts(send, "send.ts")) return true;
  if (comment && in_line(comment, end, "scratch")) return true;
  if (comment && in_line(comment, end, "oword aligned block read"))
    return true; /* arguments, on generations before Max */
  const char *bracket = in_line(send, end, "("),
             *what = comment ? in_line(comment, end, "; ") : NULL;
  if (!starts(send, "send.ugm") || !bracket || !what)
    return false; /* generations before Max use other data ports */
  what += 2;
  if (in_line(what, end, "bti[255]") || in_line(what, end, ".ss[") || starts(what, "fence"))
    return true;
  bool load = starts(what, "load."), store = starts(what, "store."),
       atomic = starts(what, "atomic_");
  const char *data = in_line(what, end, ".ugm.");
  int executes = atoi(bracket + 1);
  if (!(load || store || atomic) || !data || !read_access(data + 5, executes, element, &a))
    return false;
  double n = !a.once               ? a.elements * executes / lanes
             : a.elements >= lanes ? a.elements / lanes
                                   : a.elements;
  if (load || atomic) *loads += n;
  if (store || atomic) *stores += n;
  return true;
}

/* Fused multiply-adds of f32 or f64 of one lane in a line such as
     (W)  mad (16|M0)  r12.0<1>:f  acc2.0<1;0>:f  r7.0<1;0>:f  r7.0<1>:f
   whose first type is the result's; madm is used in divisions and square roots. One executed once
   per sub-group counts as one. */
static double fmas_in(const char *line, const char *end, int lanes) {
  const char *comment = in_line(line, end, "//"),
             *mad = in_line(line, comment ? comment : end, "mad");
  const char *bracket = mad ? in_line(mad, end, " (") : NULL,
             *type = bracket ? in_line(bracket, end, ":") : NULL;
  if (!type || bracket > mad + 4 || !(starts(type, ":f ") || starts(type, ":df "))) return 0;
  int executes = atoi(bracket + 2);
  return executes == 1 ? 1 : (double)executes / lanes;
}

/* Not a label, a comment, or one of the illegal instructions behind the last one. */
static bool is_instruction(const char *line, const char *end) {
  const char *at = line;
  while (at < end && (*at == ' ' || *at == '\t')) at++;
  return at < end && *at != '/' && end[-1] != ':' && !starts(at, "illegal") && *at != '.';
}

/* A message to memory; loads of arguments and fences do not count. */
static bool is_access(const char *line, const char *end) {
  const char *send = in_line(line, end, "send."), *comment = in_line(line, end, "//");
  if (!send || !comment || comment < send) return false;
  return !in_line(comment, end, "bti[255]") && !in_line(comment, end, "fence") &&
         !in_line(comment, end, "oword aligned block read") && !starts(send, "send.gtwy") &&
         !starts(send, "send.ts");
}

bool clb_lz_count_messages(const ir_kernel *k, const char *assembly, clb_report *report) {
  double loads = 0, stores = 0, fmas = 0;
  int element = element_bytes(k), instructions = 0, accesses = 0;
  for (const char *line = assembly, *end; *line; line = *end ? end + 1 : end) {
    end = line + strcspn(line, "\n");
    if (!count_line(line, end, k->lanes, element, &loads, &stores)) return false;
    fmas += fmas_in(line, end, k->lanes);
    instructions += is_instruction(line, end);
    accesses += is_access(line, end);
  }
  report->loads = (int)(loads + 0.5);
  report->stores = (int)(stores + 0.5);
  report->fmas = (int)(fmas + 0.5);
  report->instructions = instructions;
  report->accesses = accesses;
  return true;
}

/* The integer after `key` at or after `from`, or -1. */
static int value_of(const char *from, const char *key) {
  const char *at = strstr(from, key);
  return at ? atoi(at + strlen(key)) : -1;
}

/* From .ze_info: registers as Intel counts them, of 64 bytes on a Max GPU, so with 16 lanes also
   32-bit registers of a lane. Compilers that do not report a size for spills count them in the
   scratch buffer. */
static void read_description(const char *description, clb_report *report) {
  int registers = value_of(description, "grf_count:"), spill = value_of(description, "spill_size:");
  const char *scratch = strstr(description, "type:            scratch");
  if (registers > 0) report->registers = registers;
  if (spill < 0) spill = scratch ? value_of(scratch, "size:") : 0;
  if (registers > 0) report->spill_bytes = spill;
}

clb_status clb_lz_report(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                         clb_report *report) {
  lz_device *d = (lz_device *)device;
  clb_text assembly = {0}, description = {0};
  clb_module *module = NULL;
  clb_status s = CLB_OK;
  *report = clb_report_unknown();
  if (clb_lz_ocloc_disassemble(&d->ocloc, d->target, k->name, binary, bytes, &assembly,
                               &description)) {
    clb_lz_count_messages(k, assembly.s, report);
    if (description.s) read_description(description.s, report);
  }
  clb_text_free(&assembly);
  clb_text_free(&description);
  if (d->compiles_only) return CLB_OK;
  s = clb_lz_load(device, k, binary, bytes, &module);
  if (!s) s = clb_lz_spill(d, module, &report->spill_bytes);
  clb_lz_unload(device, module);
  return s;
}
