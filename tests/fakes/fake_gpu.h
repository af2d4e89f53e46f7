/* tests/fakes/fake_gpu.h - what a test tells the fake drivers and compilers of NVIDIA and AMD, and
   what they report. */
#ifndef CLB_TESTS_FAKES_FAKE_GPU_H
#define CLB_TESTS_FAKES_FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  int devices;       /* that the drivers count */
  size_t memory;     /* bytes that each device has; 0: 1 GiB */
  int left;          /* successful calls before one fails; -1: all succeed */
  const char *only;  /* not NULL: every call of this function fails after `left` successful ones */
  int code;          /* how it fails */
  bool refuse;       /* the compilers refuse every program, with a log */
  char failed[64];   /* which function last failed */
  char mistake[200]; /* the first wrong use of the interface */
  int alive;         /* contexts retained, streams, memory, modules, programs */
  void *context;     /* CUDA: current */
  int device;        /* HIP: current */
  unsigned local;    /* bytes of dynamic local memory per group of the last launch */
  int parameters;    /* of every kernel that a stream captures; at most 64 */
  int graphs, updates; /* graphs launched, and updated */
  /* Called in place of the device: the kernel's text, the numbers of groups and threads, pointers
     to the values of the parameters. */
  void (*launch)(void *user, const char *text, unsigned groups, unsigned threads, void **params);
  void *user;
} fake_gpu_state;

#endif
