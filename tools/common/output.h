/* tools/common/output.h - output files of subcommands: never an input or another output, checked
   before any work. */
#ifndef CLB_TOOLS_COMMON_OUTPUT_H
#define CLB_TOOLS_COMMON_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef enum { FILE_INPUT, FILE_WHOLE, FILE_GROWING } file_use; /* whole: written by file_replace */
typedef struct {
  const char *what; /* for messages: "the trajectory (--trajectory)" */
  const char *path; /* NULL: not requested */
  file_use use;
} named_file;

/* Whether two paths are the same file: through links, in different spelling, or not created yet.
   Devices and pipes never count as the same. */
bool same_file(const char *a, const char *b);
/* Inputs come first. false, after a message: an output is the same file as an input, another output
 or standard output, or it cannot be written. Existing files are unchanged, and none are created. */
bool outputs_ready(const named_file *files, int n);

/* Writes a file under a temporary name, flushes it to the disk and renames it: `path` is always
   either the old file or the complete new one. write() returns false if it fails. false, after a
   message, on failure. */
bool file_replace(const char *path, bool (*write)(FILE *f, const void *user), const void *user);
/* For file_replace: writes all of the open file FILE *, of which `from` is the address. */
bool file_copy(FILE *f, const void *from);
/* Flushes a new file's folder to the disk; if this fails, a loss of power may lose the file. */
void folder_flush(const char *path);

/* A checksum that goes on from h. */
#define CHECKSUM_START 14695981039346656037u
uint64_t bytes_checksum(uint64_t h, const void *bytes, size_t n);
/* Checksum of bytes [from, to) of a file: FNV-1a, in which a single changed byte is always
   detected. false: they cannot be read. */
bool file_checksum(int fd, off_t from, off_t to, uint64_t *sum);

#endif
