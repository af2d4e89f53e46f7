/* tools/common/stopping.h - SIGINT and SIGTERM ask a long run to end after its current step. */
#ifndef CLB_TOOLS_COMMON_STOPPING_H
#define CLB_TOOLS_COMMON_STOPPING_H

#include <stdbool.h>

/* From now on, and once: a second signal kills. */
void stopping_begin(void);
bool stopping(void); /* a signal came */

#endif
