/* compare_tables.h - the tables of a comparison. */
#ifndef TOOL_COMPARE_TABLES_H
#define TOOL_COMPARE_TABLES_H

#include "compare.h"
#include "compare_grid.h"

grid devices_table(const comparison *c);
grid results_table(const comparison *c);
grid means_table(const comparison *c);     /* no cells: nothing is compared */
grid compilers_table(const comparison *c); /* no cells: every result is a measurement */
grid exact_table(const comparison *c);     /* results and means for programs: seconds, and figures that read back */

#endif
