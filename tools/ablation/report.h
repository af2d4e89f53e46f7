/* tools/ablation/report.h - what `clebsch ablation` found: its file, and its table. */
#ifndef CLB_TOOLS_ABLATION_REPORT_H
#define CLB_TOOLS_ABLATION_REPORT_H

#include "tools/ablation/ablation.h"

typedef enum { FORMAT_TEXT, FORMAT_CSV, FORMAT_MARKDOWN, FORMATS } ablation_format;

typedef struct {
  const char *path;                 /* NULL: none is written */
  json_t *root, *devices, *results; /* of root */
} ablation_file;

/* The following return false after a sentence.  Reads the file, if there is one, or starts it;
   `restart`: starts it whatever is there. */
bool ablation_file_open(ablation_file *f, const char *path, bool quick, bool restart);
/* One of that name must be the same that the file has. */
bool ablation_file_device(ablation_file *f, const clb_device_info *info);
bool ablation_file_has(const ablation_file *f, const char *device, const ablation_case *c);
/* Adds what was measured and writes the file. */
bool ablation_file_add(ablation_file *f, const char *device, const ablation_case *c, const work *w);
void ablation_file_close(ablation_file *f);

/* Optimisations by device: geometric means over cases, and how many these are. */
void ablation_print(const ablation_file *f, ablation_format format);

#endif
