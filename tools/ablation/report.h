/* tools/ablation/report.h - the results of `clebsch ablation`: file and table. */
#ifndef CLB_TOOLS_ABLATION_REPORT_H
#define CLB_TOOLS_ABLATION_REPORT_H

#include "tools/ablation/ablation.h"

typedef enum { FORMAT_TEXT, FORMAT_CSV, FORMAT_MARKDOWN, FORMATS } ablation_format;

typedef struct {
  const char *path;                 /* NULL: none is written */
  json_t *root, *devices, *results; /* members of root */
} ablation_file;

/* The following print a message when they return false. Reads the file if it exists, or starts a
   new one; `force`: always starts a new one. */
bool ablation_file_open(ablation_file *f, const char *path, bool suites, bool quick, bool force);
/* Adds a device; if the file has one of that name, it must be the same. */
bool ablation_file_device(ablation_file *f, const clb_device_info *info);
bool ablation_file_has(const ablation_file *f, const char *device, const ablation_case *c);
/* Adds what was measured and writes the file. */
bool ablation_file_add(ablation_file *f, const char *device, const ablation_case *c, const work *w);
void ablation_file_close(ablation_file *f);

/* A table of optimisations by device, or of a file with suites by device and suite: geometric means
   over cases, and the numbers of cases. */
void ablation_print(const ablation_file *f, ablation_format format);

#endif
