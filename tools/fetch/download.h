/* tools/fetch/download.h - downloads by a program that the machine has. */
#ifndef CLB_TOOLS_FETCH_DOWNLOAD_H
#define CLB_TOOLS_FETCH_DOWNLOAD_H

#include <stdint.h>

/* The bytes at an address, in memory that exists as long as its descriptor, which is returned: what
   is interrupted leaves nothing. name, bytes (0: not known): for the progress. Exits on failure. */
int download(const char *address, const char *name, int64_t bytes);

#endif
