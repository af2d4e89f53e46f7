/* tests/fakes/fake_blas.h - between fake_blas.c and the tests that use it. */
#ifndef CLB_TESTS_FAKES_FAKE_BLAS_H
#define CLB_TESTS_FAKES_FAKE_BLAS_H

typedef struct {
  int handles;  /* alive */
  int products; /* done so far */
  void *stream;
  const char *failing; /* the call that fails: "create", "set stream", "gemm"; NULL: none */
  char mistake[128];   /* the first wrong use */
} fake_blas_state;

#endif
