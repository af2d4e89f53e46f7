/* tools/ablation/naive.h - kernels as one writes them first (naive_kernels.def), compiled for the
   device of a context when they are first run: on the CPU by the C compiler, on CUDA by NVRTC. */
#ifndef CLB_TOOLS_ABLATION_NAIVE_H
#define CLB_TOOLS_ABLATION_NAIVE_H

#include <clebsch/clebsch.h>
#include <stdbool.h>
#include <stddef.h>

/* What all kernels take; pointers are the device's. n: items; X, Y, W, Z: widths of rows. term: 7
   numbers for each of the terms. channels: the most that a term has. scale: one number a row,
   written and read by norms; first, second: moments. */
#define NAIVE_ARGUMENTS                                                                            \
  typedef struct {                                                                                 \
    const float *x, *y, *w, *g, *a, *b, *c;                                                        \
    float *out, *scale, *first, *second;                                                           \
    const int *term, *channel, *start;                                                             \
    const float *coefficient;                                                                      \
    const int *row_start, *edge, *other, *senders, *receivers;                                     \
    long long n, rows, X, Y, W, Z, terms, channels;                                                \
    float epsilon, lr, beta1, beta2;                                                               \
  } naive_arguments;
NAIVE_ARGUMENTS

typedef enum {
#define NAIVE(name, ...) NAIVE_##name,
#include "tools/ablation/naive_kernels.def"
#undef NAIVE
  NAIVE_KERNELS
} naive_kernel;

enum { NAIVE_MESSAGE = 512 };
typedef struct naive naive;
/* NULL: there is no compiler or driver; message says why, and is "" on a device for which there are
   no naive kernels. */
naive *naive_open(const clb_device_info *info, char message[NAIVE_MESSAGE]);
void naive_close(naive *n);
/* Submits all items. false: message says why. Launches run one after another, but are not ordered
   with a context's: wait for it before, and for them after. */
bool naive_run(naive *n, naive_kernel kernel, const naive_arguments *p,
               char message[NAIVE_MESSAGE]);
bool naive_wait(naive *n);
/* Items that share a row of a product: its channels, or 1. */
long long naive_lanes(const naive *n, const naive_arguments *p);

/* ---- of naive_cpu.c and naive_cuda.c ---- */

typedef struct {
  bool one_lane; /* LANES of naive_kernels.def is 1 */
  /* Both return NULL, or false, after writing the message. */
  void *(*open)(const clb_device_info *info, char message[NAIVE_MESSAGE]);
  void *(*load)(void *device, const char *name, const char *body, char message[NAIVE_MESSAGE]);
  bool (*run)(void *device, void *loaded, const naive_arguments *p);
  bool (*wait)(void *device);
  void (*unload)(void *device, void *loaded);
  void (*close)(void *device);
} naive_backend;
extern const naive_backend naive_cpu, naive_cuda;

#define NAIVE_TEXT(...) #__VA_ARGS__
#define NAIVE_EXPANDED(...) NAIVE_TEXT(__VA_ARGS__)

#endif
