/* tools/compare/tables.h - the tables of a comparison. */
#ifndef CLB_TOOLS_COMPARE_TABLES_H
#define CLB_TOOLS_COMPARE_TABLES_H

#include "tools/compare/compare.h"
#include "tools/compare/grid.h"

grid devices_table(const comparison *c);
grid results_table(const comparison *c);
grid means_table(const comparison *c);     /* empty if nothing is compared */
grid compilers_table(const comparison *c); /* empty if every result is a measurement */
grid exact_table(const comparison *c);     /* results and means for programs: seconds, with enough
                                              digits to read     back exactly */

#endif
