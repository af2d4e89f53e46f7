/* backends/cuda_hip/peer.c - memory of another GPU of the process, which kernels read where it is.
 */
#include <string.h>
#include <sys/random.h>

#include "backends/cuda_hip/gpu.h"

enum { ALREADY_ENABLED = 704 }; /* the same in both */

static clb_status refuse(clb_gpu *g, const clb_gpu *owner, const char *why) {
  return clb_fail(g->head.error, CLB_ERROR_UNSUPPORTED, "%s cannot read memory of %s: %s", g->name,
                  owner->name, why);
}

static clb_status enable(clb_gpu *g, const clb_gpu *owner) {
  const clb_gpu_driver *d = &g->driver;
  clb_gpu_guard t;
  int can = 0, code = 0;
  if (!d->peer_can || !(d->cuda_peer || d->hip_peer))
    return refuse(g, owner, "the driver has no calls for it");
  clb_status s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, peer_can, &can, g->ordinal, owner->ordinal);
  if (!s && !can) s = refuse(g, owner, "there is no peer access between the two");
  if (!s) code = d->cuda_peer ? d->cuda_peer(owner->context, 0) : d->hip_peer(owner->ordinal, 0);
  if (!s && code != ALREADY_ENABLED)
    s = clb_gpu_check_named(g, d->cuda_peer ? "cuCtxEnablePeerAccess" : "hipDeviceEnablePeerAccess",
                            code);
  clb_gpu_leave(g, &t);
  return s;
}

enum { PROOF = 32 };

/* Between some GPUs copies are wrong: random bytes must come over as they are. */
static clb_status prove(clb_gpu *g, clb_gpu *owner) {
  unsigned char sent[PROOF], found[PROOF];
  clb_memory there = {0}, here = {0};
  clb_error_sink *const kept = owner->head.error;
  if (getrandom(sent, PROOF, 0) != PROOF) return refuse(g, owner, "no random bytes to try it");
  owner->head.error = g->head.error;
  clb_status s = clb_gpu_alloc(&owner->head, PROOF, &there);
  if (!s) s = clb_gpu_write(&owner->head, &there, 0, sent, PROOF);
  if (!s) s = clb_gpu_alloc(&g->head, PROOF, &here);
  if (!s) s = clb_gpu_copy(&g->head, &here, 0, &there, 0, PROOF);
  if (!s) s = clb_gpu_read(&g->head, &here, 0, found, PROOF);
  if (!s && memcmp(sent, found, PROOF) != 0) s = refuse(g, owner, "copies from there are wrong");
  if (here.handle) clb_gpu_free(&g->head, &here);
  if (there.handle) clb_gpu_free(&owner->head, &there);
  owner->head.error = kept;
  return s;
}

clb_status clb_gpu_reach(clb_device *device, clb_device *of) {
  clb_gpu *g = (clb_gpu *)device, *owner = (clb_gpu *)of;
  const void *key = owner->context ? owner->context : (const void *)owner->vendor;
  if (g->ordinal == owner->ordinal)
    return g->context == owner->context ? CLB_OK : refuse(g, owner, "it is another context's");
  if (owner->ordinal < CLB_GPU_PEERS && g->reached[owner->ordinal] == key) return CLB_OK;
  clb_status s = enable(g, owner);
  if (!s) s = prove(g, owner);
  if (!s && owner->ordinal < CLB_GPU_PEERS) g->reached[owner->ordinal] = key;
  return s;
}
