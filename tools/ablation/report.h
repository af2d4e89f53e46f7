/* tools/ablation/report.h - the results of `clebsch bench --without`: in the file, and tables. */
#ifndef CLB_TOOLS_ABLATION_REPORT_H
#define CLB_TOOLS_ABLATION_REPORT_H

#include "tools/ablation/ablation.h"
#include "tools/common/results.h"

/* What a result says of its case. */
json_t *ablation_head(const char *device, const ablation_case *c);
/* Adds what was measured and writes the file; false after a message. */
bool ablation_add(results_file *f, json_t *head, const ablation_case *c, const work *w);

/* Of each device and optimisation (a bit of `wanted`), the geometric mean over cases of the time
   without it divided by that with it, and the number of cases. */
void ablation_print_means(const results_file *f, unsigned wanted);
/* Of each device and suite, with and without each optimisation, the speed over naive kernels. */
void ablation_print_suites(const results_file *f);
/* Case by case, the time and what it is without each optimisation. */
void ablation_print_cases(const results_file *f, unsigned wanted);

#endif
