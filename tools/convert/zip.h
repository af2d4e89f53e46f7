/* tools/convert/zip.h - the entries of a zip archive in memory, stored or deflated. */
#ifndef CLB_TOOLS_CONVERT_ZIP_H
#define CLB_TOOLS_CONVERT_ZIP_H

#include "tools/convert/convert.h"

typedef struct {
  const char *name;                     /* not terminated by a 0 byte */
  size_t name_bytes, packed, bytes, at; /* at: offset of the data */
  size_t local;                         /* offset of its header */
  unsigned method;
  uint32_t crc;
  unsigned char *unpacked; /* NULL until first requested; owned */
} zip_entry;

typedef struct {
  const source_file *in;
  zip_entry *entries; /* by offset */
  int n;
  size_t top;      /* the length of the folder that was entered, with its slash */
  size_t unpacked; /* bytes, of all entries */
} zip;

/* Checks the directory: every entry within the file, no overlaps, no name twice. Refuses the file
   otherwise. */
void zip_open(zip *z, const source_file *in);
void zip_close(zip *z);
/* For archives of PyTorch, whose entries all lie in one folder: names are below it from now on. */
void zip_enter(zip *z);
/* The bytes of the entry with this name, verified by checksum; valid until zip_close. NULL: no such
   entry. */
const unsigned char *zip_find(zip *z, const char *name, size_t *bytes);

#endif
