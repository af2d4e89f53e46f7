/* tools/common/append.h - files that grow by whole records, and continuing them after a
   restart. */
#ifndef CLB_TOOLS_COMMON_APPEND_H
#define CLB_TOOLS_COMMON_APPEND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
  int64_t bytes; /* < 1: the file did not exist */
  uint64_t sum;  /* checksum of its first and last bytes up to there */
} file_mark;

typedef struct {
  const char *path; /* NULL: nothing is written, and all functions below do nothing */
  FILE *f;
  file_mark mark; /* end of the last complete record */
  bool plain;     /* a regular file: it can be truncated and locked */
  bool flushed;   /* its directory entry is on the disk */
} append_file;

/* What a run may do with an existing file. */
typedef struct {
  const file_mark *before; /* mark of the run that is continued; NULL: a new run */
  bool force;              /* overwrite a file of another run */
} append_rule;

/* The following print a message when they return false. Whether append_open would succeed; changes
   nothing. */
bool append_check(const char *path, append_rule rule);
/* Opens the file and truncates it at the mark. */
bool append_open(append_file *a, const char *path, append_rule rule);
/* Ends a record: passes the records so far to the system and, if `flush`, flushes them to the disk
   and updates the mark. On failure the file ends with the previous record, and is closed. */
bool append_record(append_file *a, bool flush);
bool append_close(append_file *a);

#endif
