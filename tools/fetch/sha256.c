/* tools/fetch/sha256.c - SHA-256 by coreutils' sha256sum. */
#define _GNU_SOURCE /* memfd_create */
#include "tools/fetch/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/cli/tool.h"

sha256_sum sha256(const void *bytes, size_t n) {
  const char *p = bytes;
  const int fd = memfd_create("clebsch_sha256", 0); /* the program inherits it */
  sha256_sum sum = {""};
  char command[64];
  for (ssize_t done; n; p += done, n -= (size_t)done)
    if (fd < 0 || (done = write(fd, p, n)) < 0)
      fatal("no memory for a checksum: %s", strerror(errno));
  snprintf(command, sizeof command, "exec sha256sum /proc/self/fd/%d", fd);
  FILE *f = popen(command, "r");
  const bool good = f && fscanf(f, "%64[0-9a-f]", sum.text) == 1 && strlen(sum.text) == 64;
  if (!f || pclose(f) || !good) fatal("no checksum: coreutils' sha256sum cannot be run");
  close(fd);
  return sum;
}
