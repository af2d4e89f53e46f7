/* tests/tools/failing_malloc.c - malloc and its relatives, for tests in which one allocation fails.
 */
#include "tests/tools/failing_malloc.h"

#include <errno.h>
#include <execinfo.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The functions that we replace. */
#ifdef OVER_ADDRESS_SANITIZER
#define GENUINE(name) __interceptor_##name
#else
#define GENUINE(name) __libc_##name
#endif
void *GENUINE(malloc)(size_t), *GENUINE(calloc)(size_t, size_t), *GENUINE(realloc)(void *, size_t),
    *GENUINE(memalign)(size_t, size_t);

/* Its own prototypes: those of <stdlib.h> promise that no argument is NULL. */
void *malloc(size_t bytes), *calloc(size_t n, size_t size), *realloc(void *p, size_t bytes),
    *memalign(size_t alignment, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
int posix_memalign(void **p, size_t alignment, size_t bytes);

static failing_plan *plan;

/* Our own kernels are opened by path; libraries opened by name are not ours. The loader itself may
   crash where it has no memory for a namespace (glibc 2.36). */
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__real_dlmopen(long space, const char *name, int flags);
void *__wrap_dlmopen(long space, const char *name, int flags);

void *__wrap_dlopen(const char *name, int flags) {
  failing_plan *mine = plan;
  if (mine && (mine->spares_loader || (name && !strchr(name, '/')))) plan = NULL;
  void *library = __real_dlopen(name, flags);
  plan = mine;
  return library;
}

void *__wrap_dlmopen(long space, const char *name, int flags) {
  failing_plan *mine = plan;
  plan = NULL;
  void *library = __real_dlmopen(space, name, flags);
  plan = mine;
  return library;
}

void failing_follow(failing_plan *to) { plan = to; }

static void tell(void) {
  failing_plan *mine = plan;
  void *callers[24];
  plan = NULL;
  backtrace_symbols_fd(callers, backtrace(callers, 24), STDERR_FILENO);
  plan = mine;
}

static bool fails(void) {
  if (!plan) return false;
  const long now = __atomic_add_fetch(&plan->count, 1, __ATOMIC_RELAXED);
  if (!plan->k || now < plan->k || (now > plan->k && !plan->from_then_on)) return false;
  if (now == plan->k && plan->tells) tell();
  errno = ENOMEM;
  return true;
}

void *malloc(size_t bytes) { return fails() ? NULL : GENUINE(malloc)(bytes); }

void *calloc(size_t n, size_t size) { return fails() ? NULL : GENUINE(calloc)(n, size); }

void *realloc(void *p, size_t bytes) { return fails() ? NULL : GENUINE(realloc)(p, bytes); }

void *memalign(size_t alignment, size_t bytes) {
  return fails() ? NULL : GENUINE(memalign)(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **p, size_t alignment, size_t bytes) {
  void *made = memalign(alignment, bytes);
  if (!made) return ENOMEM;
  *p = made;
  return 0;
}

#ifdef OVER_ADDRESS_SANITIZER
/* The sanitizer's own would not come here. */
char *strndup(const char *s, size_t max), *strdup(const char *s);

char *strndup(const char *s, size_t max) {
  const size_t n = strnlen(s, max);
  char *copy = malloc(n + 1);
  if (copy) memcpy(copy, s, n), copy[n] = 0;
  return copy;
}

char *strdup(const char *s) { return strndup(s, SIZE_MAX - 1); }
#endif
