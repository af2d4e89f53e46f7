/* tools/dynamics/md_append.h - files that grow by whole records, what a restart knows of them, and
   going on there. */
#ifndef CLB_TOOLS_DYNAMICS_MD_APPEND_H
#define CLB_TOOLS_DYNAMICS_MD_APPEND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
  int64_t bytes; /* < 1: there was no such file */
  uint64_t sum;  /* of its first and last bytes up to there */
} file_mark;

typedef struct {
  const char *path; /* NULL: none is written, and all below do nothing */
  FILE *f;
  file_mark mark; /* of the last whole record */
  bool plain;     /* a file on a disk: it can be cut, and locked */
  bool flushed;   /* its folder's entry is on the disk */
} append_file;

/* What a run may do with a file that is there. */
typedef struct {
  const file_mark *before; /* of the run that it goes on with; NULL: it goes on with none */
  bool force;              /* overwrite what is of another run */
} append_rule;

/* The following return false after a sentence.  Whether append_open would do; nothing changes. */
bool append_check(const char *path, append_rule rule);
/* What follows the mark is cut off. */
bool append_open(append_file *a, const char *path, append_rule rule);
/* The records so far are handed to the system and, if `flush`, are on the disk and have their mark.
   Where they cannot be, the file ends with the record before, and is closed. */
bool append_record(append_file *a, bool flush);
bool append_close(append_file *a);

#endif
