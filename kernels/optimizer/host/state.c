/* kernels/optimizer/host/state.c - an optimizer's state as bytes, the same on every device.

     header   8 letters, 7 numbers (i64): type of parameters, tensors, groups, arrays of state,
   steps, steps left out, bytes of the whole tensors  rows, columns, group of each (i64) groups
   rule, momentum, nesterov, amsgrad, variant of Muon of each (i64), then what its chunks keep
   arrays   tensor after tensor, each from a multiple of 4 elements on; the gaps are 0 */
#include "kernels/optimizer/host/optimizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/sizes.h"
#include "src/runtime/call.h"

static const char letters[8] = "clbopt1\n";
enum { TYPE, N_TENSORS, N_GROUPS, N_STATES, STEPS, SKIPPED, BYTES, HEADER };
enum { SHAPE = 3, RULE = 6 }; /* numbers of a tensor, of a group */

static int64_t real_bytes(const clb_optimizer *o) { return clb_dtype_bytes(o->problem.storage); }
static int64_t kept_bytes(const clb_optimizer *o) { return CLB_POWERS * real_bytes(o); }
static int64_t group_bytes(const clb_optimizer *o) {
  return RULE * (int64_t)sizeof(int64_t) + kept_bytes(o);
}

static int64_t head_bytes(const clb_optimizer *o) {
  return (int64_t)sizeof letters + (HEADER + SHAPE * o->desc.n_tensors) * (int64_t)sizeof(int64_t) +
         o->desc.n_groups * group_bytes(o);
}

/* Of the arrays of state and, as the last one, what SOAP keeps of its matrices. */
static int n_arrays(const clb_optimizer *o) { return o->n_states + (o->matrices_kept != 0); }
static const clb_memory *array_at(const clb_optimizer *o, int i) {
  return i < o->n_states ? &o->state[i] : &o->matrix;
}

static int64_t array_bytes(const clb_optimizer *o, int i) {
  return (i < o->n_states ? o->state_elements[i] : o->matrices_kept) * real_bytes(o);
}

static int64_t all_bytes(const clb_optimizer *o) {
  int64_t n = head_bytes(o);
  for (int i = 0; i < n_arrays(o); i++) n += array_bytes(o, i);
  return n;
}

/* ---- the head ---- */

static char *put_numbers(char *to, const int64_t *x, size_t n) {
  memcpy(to, x, n * sizeof *x);
  return to + n * sizeof *x;
}

/* What must be the same in a state that is written; kept: of each group, what its chunks keep. */
static void put_head(const clb_optimizer *o, const clb_progress *at, const char *kept, char *to) {
  const int64_t header[HEADER] = {[TYPE] = o->problem.storage,   [N_TENSORS] = o->desc.n_tensors,
                                  [N_GROUPS] = o->desc.n_groups, [N_STATES] = o->n_states,
                                  [STEPS] = at->steps,           [SKIPPED] = at->skipped,
                                  [BYTES] = all_bytes(o)};
  memcpy(to, letters, sizeof letters);
  to = put_numbers(to + sizeof letters, header, HEADER);
  for (int64_t i = 0; i < o->desc.n_tensors; i++) {
    const clb_optimizer_tensor *t = &o->tensors[i];
    to = put_numbers(to, (const int64_t[SHAPE]){t->rows, t->columns, t->group}, SHAPE);
  }
  for (int i = 0; i < o->desc.n_groups; i++) {
    const clb_optimizer_rule r = clb_optimizer_rule_of(&o->groups[i]);
    to = put_numbers(
        to,
        (const int64_t[RULE]){r.rule, r.momentum, r.nesterov, r.amsgrad, r.muon, r.longest_side},
        RULE);
    memcpy(to, kept + i * kept_bytes(o), (size_t)kept_bytes(o));
    to += kept_bytes(o);
  }
}

static int64_t number_at(const char *from, int64_t i) {
  int64_t x;
  memcpy(&x, from + (size_t)i * sizeof x, sizeof x);
  return x;
}

#define FAIL(...) OPTIMIZER_FAIL(o->ctx, "clb_optimizer_state_write: " __VA_ARGS__)

/* Whether the tensors and rules of a state, of which all bytes are there, are those of the
 * optimizer. */
static clb_status check_head(const clb_optimizer *o, const char *from) {
  const char *at = from + sizeof letters + HEADER * sizeof(int64_t);
  for (int64_t i = 0; i < o->desc.n_tensors; i++, at += SHAPE * sizeof(int64_t)) {
    const clb_optimizer_tensor *t = &o->tensors[i];
    const int64_t rows = number_at(at, 0), columns = number_at(at, 1), group = number_at(at, 2);
    if (rows != t->rows || columns != t->columns || group != t->group)
      return FAIL("tensor %" PRId64 " of the state is %" PRId64 " x %" PRId64 " of group %" PRId64
                  ", that of the optimizer %" PRId64 " x %" PRId64 " of group %d",
                  i, rows, columns, group, t->rows, t->columns, t->group);
  }
  for (int i = 0; i < o->desc.n_groups; i++, at += group_bytes(o)) {
    const clb_optimizer_rule r = clb_optimizer_rule_of(&o->groups[i]);
    const int64_t own[RULE] = {r.rule, r.momentum, r.nesterov, r.amsgrad, r.muon, r.longest_side};
    if (memcmp(at, own, sizeof own))
      return FAIL("group %d of the state is of another rule than that of the optimizer", i);
  }
  return CLB_OK;
}

static clb_status check_state(const clb_optimizer *o, const char *from, uint64_t bytes) {
  const uint64_t least = sizeof letters + HEADER * sizeof(int64_t);
  if (bytes < least || memcmp(from, letters, sizeof letters))
    return FAIL("these %" PRIu64 " bytes are not a state that clb_optimizer_state_read gave",
                bytes);
  const int64_t own[] = {o->problem.storage, o->desc.n_tensors, o->desc.n_groups, o->n_states};
  static const char *const names[] = {"type of parameters", "number of tensors", "number of groups",
                                      "number of arrays"};
  const char *head = from + sizeof letters;
  for (int i = TYPE; i <= N_STATES; i++)
    if (number_at(head, i) != own[i])
      return FAIL("the %s of the state is %" PRId64 ", that of the optimizer %" PRId64, names[i],
                  number_at(head, i), own[i]);
  if (bytes >= (uint64_t)head_bytes(o)) {
    const clb_status s = check_head(o, from);
    if (s) return s;
  }
  if (bytes != (uint64_t)all_bytes(o) || number_at(head, BYTES) != all_bytes(o))
    return FAIL("the state has %" PRIu64 " bytes; it must have %" PRId64, bytes, all_bytes(o));
  if (number_at(head, STEPS) < 0 || number_at(head, STEPS) > INT32_MAX ||
      number_at(head, SKIPPED) < 0 || number_at(head, SKIPPED) > INT32_MAX)
    return FAIL("the state has %" PRId64 " steps and %" PRId64 " left out; both must be 0 ... %d",
                number_at(head, STEPS), number_at(head, SKIPPED), INT32_MAX);
  return CLB_OK;
}

/* ---- the device ---- */

static clb_status check_call(clb_optimizer *o, const char *call) {
  const clb_status s = clb_not_recording(o->ctx, call);
  return s ? s : clb_check_runs(o->ctx);
}

/* Steps, those left out, and the norms of the last n of both. */
static clb_status read_norms(clb_optimizer *o, int64_t n, int32_t counts[CLB_COUNTS],
                             double *norms) {
  clb_device *d = o->ctx->device;
  double wide[CLB_NORMS] = {0};
  float single[CLB_NORMS] = {0};
  const bool is_wide = o->problem.storage == CLB_F64;
  void *all = is_wide ? (void *)wide : single;
  clb_status s = d->backend->read(d, &o->counts, 0, counts, CLB_COUNTS * sizeof *counts);
  if (!s && o->norms.handle)
    s = d->backend->read(d, &o->norms, 0, all, is_wide ? sizeof wide : sizeof single);
  const int64_t first = s ? 0 : (int64_t)counts[0] + counts[1] - n;
  for (int64_t i = 0; i < n && !s; i++) {
    const int64_t at = (first + i) % CLB_NORMS;
    norms[i] = at < 0 ? 0 : is_wide ? wide[at] : (double)single[at];
  }
  return s;
}

clb_status clb_optimizer_progress_sized(clb_optimizer *o, clb_progress *progress, size_t size) {
  int32_t counts[CLB_COUNTS];
  double norm;
  if (!o) return clb_null(__func__, "optimizer");
  if (!progress) return OPTIMIZER_FAIL(o->ctx, "clb_optimizer_progress: progress is NULL");
  clb_status s = check_call(o, "clb_optimizer_progress");
  if (!s) s = read_norms(o, 1, counts, &norm);
  if (s) return s;
  const clb_progress all = {counts[0], counts[1], norm};
  clb_give_struct(&all, sizeof all, progress, size);
  return CLB_OK;
}

clb_status clb_optimizer_norms(clb_optimizer *o, int64_t n, double *norms) {
  int32_t counts[CLB_COUNTS];
  if (!o) return clb_null(__func__, "optimizer");
  if (!norms) return OPTIMIZER_FAIL(o->ctx, "clb_optimizer_norms: norms is NULL");
  if (n < 1 || n > CLB_NORMS)
    return OPTIMIZER_FAIL(o->ctx, "clb_optimizer_norms: n is %" PRId64 "; it must be 1 ... %d", n,
                          CLB_NORMS);
  const clb_status s = check_call(o, __func__);
  return s ? s : read_norms(o, n, counts, norms);
}

/* Of each group, what its chunks keep; 0 of a group without elements. */
static clb_status read_kept(clb_optimizer *o, char *kept) {
  clb_device *d = o->ctx->device;
  clb_status s = CLB_OK;
  for (int i = 0; i < o->desc.n_groups && !s; i++) {
    const int64_t chunk = o->chunk_of_group[i];
    if (chunk >= 0)
      s = d->backend->read(d, &o->powers, (uint64_t)(chunk * kept_bytes(o)),
                           kept + i * kept_bytes(o), (uint64_t)kept_bytes(o));
  }
  return s;
}

clb_status clb_optimizer_state_bytes(clb_optimizer *o, uint64_t *bytes) {
  if (!o) return clb_null(__func__, "optimizer");
  if (!bytes) return OPTIMIZER_FAIL(o->ctx, "clb_optimizer_state_bytes: bytes is NULL");
  *bytes = (uint64_t)all_bytes(o);
  return CLB_OK;
}

clb_status clb_optimizer_state_read(clb_optimizer *o, void *to, uint64_t bytes) {
  clb_progress at;
  if (!o) return clb_null(__func__, "optimizer");
  if (!to || bytes != (uint64_t)all_bytes(o))
    return OPTIMIZER_FAIL(
        o->ctx, "clb_optimizer_state_read: there is %s %" PRIu64 " bytes; the state has %" PRId64,
        to ? "room for" : "no room:", bytes, all_bytes(o));
  clb_device *d = o->ctx->device;
  char *kept = calloc((size_t)o->desc.n_groups, (size_t)kept_bytes(o)), *place = to;
  clb_status s =
      kept ? check_call(o, "clb_optimizer_state_read")
           : clb_fail(&o->ctx->error, CLB_ERROR_MEMORY, "clb_optimizer_state_read: no memory");
  if (!s) s = clb_optimizer_progress_sized(o, &at, sizeof at);
  if (!s) s = read_kept(o, kept);
  if (!s) put_head(o, &at, kept, place);
  place += head_bytes(o);
  for (int i = 0; i < n_arrays(o) && !s; place += array_bytes(o, i++))
    if (array_bytes(o, i))
      s = d->backend->read(d, array_at(o, i), 0, place, (uint64_t)array_bytes(o, i));
  free(kept);
  return s;
}

/* All chunks' counts, and what they keep, by their groups. */
static clb_status write_kept(clb_optimizer *o, const char *groups, int64_t steps, int64_t skipped) {
  const int64_t bytes = kept_bytes(o), n = o->n_chunks;
  int32_t *counts = malloc((size_t)n * CLB_COUNTS * sizeof *counts);
  char *kept = malloc((size_t)(n * bytes));
  clb_device *d = o->ctx->device;
  clb_status s = counts && kept ? CLB_OK
                                : clb_fail(&o->ctx->error, CLB_ERROR_MEMORY,
                                           "clb_optimizer_state_write: no memory");
  for (int64_t i = 0; i < n && !s; i++) {
    const char *from =
        groups + o->group_of_chunk[i] * group_bytes(o) + RULE * (int64_t)sizeof(int64_t);
    memcpy(kept + i * bytes, from, (size_t)bytes);
    counts[CLB_COUNTS * i] = (int32_t)steps;
    counts[CLB_COUNTS * i + 1] = (int32_t)skipped;
  }
  if (!s) s = d->backend->write(d, &o->powers, 0, kept, (uint64_t)(n * bytes));
  if (!s)
    s = d->backend->write(d, &o->counts, 0, counts, (uint64_t)n * CLB_COUNTS * sizeof *counts);
  free(kept);
  free(counts);
  return s;
}

clb_status clb_optimizer_state_write(clb_optimizer *o, const void *from, uint64_t bytes) {
  if (!o) return clb_null(__func__, "optimizer");
  if (!from) return FAIL("from is NULL");
  clb_status s = check_call(o, "clb_optimizer_state_write");
  if (!s) s = check_state(o, from, bytes);
  if (s) return s;
  clb_device *d = o->ctx->device;
  const char *head = (const char *)from + sizeof letters,
             *place = (const char *)from + head_bytes(o),
             *groups = place - o->desc.n_groups * group_bytes(o);
  s = write_kept(o, groups, number_at(head, STEPS), number_at(head, SKIPPED));
  for (int i = 0; i < n_arrays(o) && !s; place += array_bytes(o, i++))
    if (array_bytes(o, i))
      s = d->backend->write(d, array_at(o, i), 0, place, (uint64_t)array_bytes(o, i));
  return s;
}
