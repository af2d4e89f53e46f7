/* tests/fakes/staging.h - the host's memory for copies, of a backend on a stand-in for its
 * driver. */
#ifndef CLB_TESTS_FAKES_STAGING_H
#define CLB_TESTS_FAKES_STAGING_H

#include "backends/backend.h"
#include "tests/fakes/fake_driver.h"
#include "tests/test.h"

/* What is written comes back through it. */
static inline void copy_staged(clb_device *d, const clb_memory *on, const clb_host_memory *m,
                               int turn) {
  const clb_backend *b = d->backend;
  unsigned char *x = m->at;
  for (int i = 0; i < 100; i++) x[i] = (unsigned char)(3 * i + turn);
  if (b->write(d, on, 0, x, 100)) fail_msg("%s", d->error->text.s);
  memset(x, 255, 100);
  if (b->read(d, on, 0, x, 100)) fail_msg("%s", d->error->text.s);
  for (int i = 0; i < 100; i++) assert_int_equal(x[i], (unsigned char)(3 * i + turn));
}

/* Page-locked memory that grows; and pageable memory, of which no message tells, where this call of
   the driver fails: from the start, or when it must grow. On a CPU it is pageable. */
static inline void check_staging(clb_device *d, fake_driver *f, const char *pin) {
  const bool simd = d->limits.simd;
  const int alive = f->alive;
  clb_memory on;
  assert_non_null(d->backend->pin);
  assert_int_equal(d->backend->alloc(d, 100, &on), CLB_OK);
  clb_text_free(&d->error->text);
  for (int which = 0; which < 3; which++) {
    static const int failing[] = {-1, 0, 2}; /* turns */
    clb_host_memory m = {0};
    d->limits.simd = false;
    for (int turn = 0; turn < 3; turn++) {
      const void *before = m.at;
      if (turn == failing[which]) f->only = pin, f->left = 0, f->code = 2;
      assert_true(clb_device_stage(d, turn < 2 ? 100 : 100000, &m));
      f->only = NULL, f->left = -1;
      assert_int_equal(m.pinned != NULL, !which || (which == 1) == (turn == 2));
      assert_true(turn != 1 || m.at == before);
      copy_staged(d, &on, &m, turn);
    }
    clb_device_unstage(d, &m);
    assert_null(m.at);
    clb_device_unstage(d, &m);
    assert_true(!d->error->text.s || !d->error->text.s[0]);
  }
  d->limits.simd = true;
  clb_host_memory plain = {0};
  assert_true(clb_device_stage(d, 100, &plain) && !plain.pinned);
  copy_staged(d, &on, &plain, 7);
  clb_device_unstage(d, &plain);
  d->limits.simd = simd;
  d->backend->free(d, &on);
  assert_int_equal(f->alive, alive);
  if (f->mistake[0]) fail_msg("%s", f->mistake);
}

#endif
