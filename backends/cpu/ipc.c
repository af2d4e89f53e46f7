/* backends/cpu/ipc.c - memory that processes of a host share: a file without a name, which others
   open through the owner's folder in /proc. Its number is on a page of its own after the memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

typedef struct {
  int32_t process, file;
} identity;
_Static_assert(sizeof(identity) <= sizeof(clb_ipc_bytes), "it is the handle");

/* Of the file; 0: more than there can be. */
static size_t file_bytes(uint64_t bytes) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  return bytes > INT64_MAX - 2 * page ? 0 : (size_t)((bytes + page - 1) / page * page + page);
}

static identity *identity_of(const clb_memory *m) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (identity *)(void *)((char *)m->handle + file_bytes(m->bytes) - page);
}

static clb_status map(clb_device *device, int file, uint64_t bytes, clb_memory *memory) {
  const size_t all = file_bytes(bytes);
  void *at = all ? mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (at == MAP_FAILED)
    return clb_fail(device->error, CLB_ERROR_MEMORY, "cpu: no memory for %llu bytes",
                    (unsigned long long)bytes);
  *memory = (clb_memory){.handle = at, .kind = CLB_POINTER, .bytes = bytes};
  return CLB_OK;
}

clb_status clb_cpu_alloc_ipc(clb_device *device, uint64_t bytes, bool tracked,
                             clb_ipc_bytes *handle, clb_memory *memory) {
  identity own = {.process = getpid(), .file = memfd_create("clebsch", MFD_CLOEXEC)};
  clb_status s = CLB_OK;
  *memory = (clb_memory){0};
  if (own.file < 0)
    s = clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "cpu: no memory for other processes: %s",
                 strerror(errno));
  else if (ftruncate(own.file, (off_t)file_bytes(bytes)))
    s = clb_fail(device->error, CLB_ERROR_MEMORY, "cpu: no memory for %llu bytes",
                 (unsigned long long)bytes);
  else s = map(device, own.file, bytes, memory);
  if (!s && tracked && !(memory->written = calloc((size_t)bytes, 1)))
    s = clb_fail(device->error, CLB_ERROR_MEMORY, "cpu: no memory for %llu bytes",
                 (unsigned long long)bytes);
  if (!s) {
    *identity_of(memory) = own;
    memcpy(handle->at, &own, sizeof own);
    return CLB_OK;
  }
  if (memory->handle) munmap(memory->handle, file_bytes(bytes));
  if (own.file >= 0) close(own.file);
  *memory = (clb_memory){0};
  return s;
}

clb_status clb_cpu_open_ipc(clb_device *device, uint64_t bytes, const clb_ipc_bytes *handle,
                            clb_memory *memory) {
  identity wanted;
  char path[64];
  struct stat of;
  memcpy(&wanted, handle->at, sizeof wanted);
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)wanted.process, (int)wanted.file);
  *memory = (clb_memory){0};
  const int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  clb_status s = CLB_OK;
  if (file < 0)
    s = clb_fail(device->error, CLB_ERROR_DEVICE, "cpu: memory of another process: %s: %s", path,
                 strerror(errno));
  else if (fstat(file, &of) || !S_ISREG(of.st_mode) || !file_bytes(bytes) ||
           (uint64_t)of.st_size != file_bytes(bytes))
    s = clb_fail(device->error, CLB_ERROR_DEVICE, "cpu: memory of another process: %s is not it",
                 path);
  else s = map(device, file, bytes, memory);
  if (file >= 0) close(file);
  return s;
}

void clb_cpu_free_ipc(clb_device *device, clb_memory *memory, bool opened) {
  const int file = identity_of(memory)->file;
  (void)device;
  munmap(memory->handle, file_bytes(memory->bytes));
  if (!opened) close(file);
  free(memory->written);
  *memory = (clb_memory){0};
}

clb_status clb_cpu_copy(clb_device *device, const clb_memory *to, uint64_t to_offset,
                        const clb_memory *from, uint64_t from_offset, uint64_t bytes) {
  const clb_status s =
      clb_cpu_read(device, from, from_offset, (char *)to->handle + to_offset, bytes);
  if (!s) clb_memory_mark(to, to_offset, bytes);
  return s;
}
