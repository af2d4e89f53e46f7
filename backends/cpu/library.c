/* backends/cpu/library.c - compiled kernels loaded into this process: each once, however many
   contexts use it, and without a file or a descriptor that stays. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/dl.h"
#include "src/base/hash.h"
#include "backends/cpu/cpu.h"

struct clb_cpu_library {
  clb_cpu_library *next;
  clb_hash key; /* of the binary and the name of the function */
  void *handle;
  clb_cpu_function *f;
  int64_t users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static clb_cpu_library *loaded;

/* A child finds the list whole, and the lock free. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void guard_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

/* Damage for which the loader would crash the whole process; NULL: none. Linkers write the table of
   sections last. */
static const char *damage_of(const char *bytes, size_t n) {
  Elf64_Ehdr h;
  if (n < sizeof h) return "shorter than the head of a shared library";
  memcpy(&h, bytes, sizeof h);
  if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_type != ET_DYN) return "not a shared library";
  return h.e_shoff <= n && (size_t)h.e_shnum * h.e_shentsize <= n - h.e_shoff
             ? NULL
             : "a shared library that is cut short";
}

static bool write_all(int fd, const char *bytes, size_t n) {
  while (n) {
    ssize_t done = write(fd, bytes, n);
    if (done < 0 && errno != EINTR) return false;
    if (done > 0) bytes += done, n -= (size_t)done;
  }
  return true;
}

/* The loader takes two files of one name for the same, even if the first one's descriptor has been
   closed and given to the second. So the name spells the file's inode, which is unique as long as
   the library is mapped: "./" and "/" are the bits, and mean nothing in a path. */
static bool unique_name(int fd, clb_text *name) {
  struct stat about;
  if (fstat(fd, &about)) return false;
  clb_text_add(name, "/proc/self/fd/");
  for (uint64_t bits = about.st_ino; bits; bits >>= 1) clb_text_add(name, bits & 1 ? "./" : "/");
  clb_text_add(name, "%d", fd);
  return !name->failed;
}

static clb_status open_it(clb_cpu_library *y, const char *kernel, const void *binary, size_t bytes,
                          clb_error_sink *error) {
  clb_text name = {0};
  clb_status s = CLB_OK;
  const int fd = memfd_create("clebsch", MFD_CLOEXEC);
  if (fd < 0 || !write_all(fd, binary, bytes) || !unique_name(fd, &name))
    s = clb_fail(error, name.failed ? CLB_ERROR_MEMORY : CLB_ERROR_DRIVER,
                 "%s: a file in memory (memfd_create) for its code: %s", kernel, strerror(errno));
  else if (!(y->handle = dlopen(name.s, RTLD_NOW | RTLD_LOCAL)) ||
           !(*(void **)&y->f = dlsym(y->handle, kernel))) {
    const char *why = dlerror();
    s = clb_fail(error, clb_dl_lacked_memory(why) ? CLB_ERROR_MEMORY : CLB_ERROR_DRIVER,
                 "%s: its binary does not load: %s", kernel, why ? why : "it lacks the kernel");
  }
  if (fd >= 0) close(fd);
  clb_text_free(&name);
  return s;
}

static clb_cpu_library *find(const clb_hash *key) {
  clb_cpu_library *y = loaded;
  while (y && memcmp(&y->key, key, sizeof *key)) y = y->next;
  return y;
}

static clb_status add(const clb_hash *key, const char *kernel, const void *binary, size_t bytes,
                      clb_cpu_library **library, clb_error_sink *error) {
  clb_cpu_library *y = calloc(1, sizeof *y);
  if (!y) return clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory", kernel);
  const clb_status s = open_it(y, kernel, binary, bytes, error);
  if (s) {
    if (y->handle) dlclose(y->handle);
    free(y);
    return s;
  }
  y->key = *key;
  y->next = loaded;
  *library = loaded = y;
  return CLB_OK;
}

clb_status clb_cpu_library_open(const char *kernel, const void *binary, size_t bytes,
                                clb_cpu_library **library, clb_error_sink *error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const char *damage = damage_of(binary, bytes);
  const clb_hash key =
      clb_hash_parts((const void *[]){binary, kernel}, (size_t[]){bytes, strlen(kernel)}, 2);
  clb_status s = CLB_OK;
  if (damage)
    return clb_fail(error, CLB_ERROR_DRIVER, "%s: its binary is damaged: %s", kernel, damage);
  pthread_once(&once, guard_forks);
  pthread_mutex_lock(&lock);
  if (!(*library = find(&key))) s = add(&key, kernel, binary, bytes, library, error);
  if (!s) (*library)->users++;
  pthread_mutex_unlock(&lock);
  return s;
}

clb_cpu_function *clb_cpu_library_function(const clb_cpu_library *y) { return y->f; }

void clb_cpu_library_close(clb_cpu_library *y) {
  if (!y) return;
  pthread_mutex_lock(&lock);
  const bool last = !--y->users;
  clb_cpu_library **link = &loaded;
  while (last && *link != y) link = &(*link)->next;
  if (last) {
    *link = y->next;
    dlclose(y->handle);
  }
  pthread_mutex_unlock(&lock);
  if (last) free(y);
}
