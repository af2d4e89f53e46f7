/* tests/fakes/fake_gpu.h - what a test tells the fake drivers and compilers of NVIDIA and AMD, and
   what it hears back. */
#ifndef CLB_TESTS_FAKES_FAKE_GPU_H
#define CLB_TESTS_FAKES_FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  int devices;         /* that the drivers count */
  size_t memory;       /* bytes that each device has; 0: 1 GiB */
  int left;            /* calls that go well before one fails; -1: all go well */
  const char *only;    /* not NULL: every call of this function fails once `left` have gone well */
  int code;            /* how it fails */
  bool refuse;         /* the compilers refuse every program, with a log */
  char failed[64];     /* which function last failed */
  char mistake[200];   /* the first wrong use of the interface */
  int alive;           /* contexts retained, streams, memory, modules, programs */
  void *context;       /* CUDA: current */
  int device;          /* HIP: current */
  unsigned local;      /* bytes of local memory that the last launch gave each group */
  int parameters;      /* of every kernel that a stream captures; at most 64 */
  int graphs, updates; /* graphs launched, and updated */
  /* Stands for the device: the kernel's text, its groups and their threads, where the values of its
     parameters are. */
  void (*launch)(void *user, const char *text, unsigned groups, unsigned threads, void **params);
  void *user;
} fake_gpu_state;

#endif
