/* tests/intel/listed.c - test kernels in Intel's assembly: what stands around their bodies. */
#define _GNU_SOURCE
#include "tests/intel/listed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The thread's inputs begin at 512 times its number, its results at 256 times. */
static const char before[] =
    "(W) and (1|M0) r127.0<1>:ud r0.0<0;1,0>:ud 0xFFFFFFC0:ud\n"
    "(W) send.ugm (1|M0) r1 r127 null:0 0xFF000000 0x6218D500 {A@1,$0}\n"
    "(W) and (1|M0) r2.0<1>:ud r0.2<0;1,0>:ud 0xFF:uw\n"
    "(W) shl (1|M0) r3.0<1>:ud r2.0<0;1,0>:ud 9:w {I@1}\n"
    "(W) shl (1|M0) r4.0<1>:ud r2.0<0;1,0>:ud 8:w\n"
    "(W) sync.nop null {$0.dst}\n"
    "(W) add (1|M0) r5.0<1>:q r1.4<0;1,0>:q r3.0<0;1,0>:ud {I@2}\n"
    "(W) add (1|M0) r6.0<1>:q r1.5<0;1,0>:q r4.0<0;1,0>:ud {I@2}\n"
    "(W) send.ugm (1|M0) r10 r5 null:0 0x0 0x0240F580 {A@1,$1}\n"
    "(W) add (1|M0) r7.0<1>:q r5.0<0;1,0>:q 256:w\n"
    "(W) send.ugm (1|M0) r14 r7 null:0 0x0 0x0240F580 {A@1,$2}\n"
    "(W) mov (16|M0) r20.0<1>:ud 0x0:ud\n(W) mov (16|M0) r21.0<1>:ud 0x0:ud\n"
    "(W) mov (16|M0) r22.0<1>:ud 0x0:ud\n(W) mov (16|M0) r23.0<1>:ud 0x0:ud\n"
    "(W) or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x4C0:uw {A@1}\n"
    "(W) sync.nop null {$1.dst}\n(W) sync.nop null {$2.dst}\n(W) sync.nop null {A@1}\n";
static const char behind[] = "(W) sync.allwr null\n(W) sync.nop null {A@1}\n"
                             "(W) send.ugm (1|M0) null r6 r20:4 0x0 0x0200F584 {A@1,$0}\n"
                             "(W) mov (16|M0) r112.0<1>:f r0.0<1;1,0>:f\n"
                             "(W) send.gtwy (8|M0) null r112 null:0 0x0 0x02000010 {EOT,A@1}\n";

bool intel_can_assemble(void) {
  char error[256];
  size_t bytes;
  void *code = intel_assemble("(W) mov (1|M0) r1.0<1>:ud 0x0:ud\n", &bytes, error, sizeof error);
  free(code);
  return code != NULL;
}

intel_kernel *intel_listed(const char *listing, uint32_t registers, char *error, size_t size) {
  intel_kernel *k = calloc(1, sizeof *k);
  if (!k) return snprintf(error, size, "no memory"), NULL;
  snprintf(k->name, sizeof k->name, "listed");
  k->registers = registers;
  k->lanes = INTEL_SUBGROUP;
  k->local_bytes = INTEL_TEST_LOCAL;
  k->scratch_bytes = INTEL_TEST_SCRATCH;
  k->n_arguments = 2;
  k->arguments[0] = (intel_argument){ARGUMENT, 0, 32, 8};
  k->arguments[1] = (intel_argument){ARGUMENT, 1, 40, 8};
  k->payload_bytes = 64;
  k->listing = strdup(listing);
  if (k->listing && intel_decode(k, error, size)) return k;
  intel_unload(k);
  return NULL;
}

intel_kernel *intel_of_body(const char *body, char *error, size_t size) {
  char *text = NULL;
  size_t bytes;
  intel_kernel *k = NULL;
  if (asprintf(&text, "%s%s\n%s", before, body, behind) < 0) return NULL;
  void *code = intel_assemble(text, &bytes, error, size);
  char *listing = code ? intel_disassemble(code, bytes) : NULL;
  if (listing) k = intel_listed(listing, 128, error, size);
  free(listing);
  free(code);
  free(text);
  return k;
}

bool intel_run_listed(const intel_kernel *k, uint32_t threads, const void *in, void *out,
                      char *error, size_t size) {
  const void *values[] = {&in, &out};
  return intel_run_kernel(k, 1, threads * INTEL_SUBGROUP, values, error, size);
}
