/* tools/common/output.h - files that subcommands write: never an input or another output, tried
   before any work. */
#ifndef CLB_TOOLS_COMMON_OUTPUT_H
#define CLB_TOOLS_COMMON_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef enum { FILE_INPUT, FILE_WHOLE, FILE_GROWING } file_use; /* whole: by file_replace */
typedef struct {
  const char *what; /* in a sentence: "the trajectory (--trajectory)" */
  const char *path; /* NULL: not asked for */
  file_use use;
} named_file;

/* Whether two paths are one file: by links, in another spelling, or yet to come.  Devices and pipes
   are nobody's own. */
bool same_file(const char *a, const char *b);
/* Inputs first.  false after a sentence: an output is the file of an input, of another output or of
   standard output, or it cannot be written.  What is there stays as it is, and nothing comes to be.
 */
bool outputs_ready(const named_file *files, int n);

/* Writes a file under a temporary name, flushes it to the disk and renames it: `path` is the old
   file or the whole new one.  write() returns false where it could not.  false after a sentence. */
bool file_replace(const char *path, bool (*write)(FILE *f, const void *user), const void *user);
/* A new file's folder to the disk; where that cannot be, a loss of power may lose the file. */
void folder_flush(const char *path);

/* Of bytes [from, to) of a file: FNV-1a, which one changed byte always changes.  false: they cannot
   be read. */
bool file_checksum(int fd, off_t from, off_t to, uint64_t *sum);

#endif
