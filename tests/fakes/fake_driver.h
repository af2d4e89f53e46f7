/* tests/fakes/fake_driver.h - what a test tells a stand-in for a driver, and what that reports. */
#ifndef CLB_TESTS_FAKES_FAKE_DRIVER_H
#define CLB_TESTS_FAKES_FAKE_DRIVER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  int left;           /* successful calls before one fails; -1: all succeed */
  const char *only;   /* not NULL: every call of this function fails after `left` successful ones */
  int code;           /* how it fails */
  const char *failed; /* which function last failed, or NULL */
  int alive;          /* objects made and not yet released */
  char mistake[300];  /* the first wrong use of the interface */
  bool idle;          /* OpenCL and Level Zero: nothing is compiled or run, and objects are the
                         stand-in's own; set before any is made */
  /* Called in place of the device (OpenCL, Level Zero: while idle): the kernel's text, the numbers
     of groups and work-items, pointers to the values of the parameters (memory: host pointers). */
  void (*launch)(void *user, const char *text, unsigned groups, unsigned threads, void **params);
  void *user;
  void (*called)(const char *function); /* not NULL: told of every call that can fail */
  /* ---- NVIDIA and AMD ---- */
  int devices;         /* that the drivers count */
  size_t memory;       /* bytes that each device has; 0: 1 GiB */
  bool refuse;         /* the compilers refuse every program, with a log */
  void *context;       /* CUDA: current */
  int device;          /* HIP: current */
  unsigned local;      /* bytes of dynamic local memory per group of the last launch */
  int parameters;      /* of every kernel that a stream captures; at most 64 */
  int graphs, updates; /* graphs launched, and updated */
  int pinned;          /* copies from or to page-locked memory */
  bool garbles;        /* copies from one device to another are wrong */
  bool alone;          /* no device reads memory of another one of the process */
  unsigned reached[4]; /* by device: bits of those whose memory it reads */
} fake_driver;

static inline bool fake_fails(fake_driver *f, const char *function) {
  if (f->called) f->called(function);
  if ((f->only && strcmp(f->only, function)) || f->left < 0 || f->left-- > 0) return false;
  f->failed = function;
  if (f->only) f->left = 0; /* again and again */
  return true;
}

__attribute__((format(printf, 3, 4))) static inline int fake_mistake(fake_driver *f, int code,
                                                                     const char *format, ...) {
  va_list values;
  va_start(values, format);
  if (!f->mistake[0]) vsnprintf(f->mistake, sizeof f->mistake, format, values);
  va_end(values);
  return code;
}

#endif
