/* src/ops/spherical_harmonics.c - the operands of each pass of the spherical harmonics. */
#include "src/ops/public_op.h"

int clb_spherical_harmonics_operands(const clb_problem *problem, clb_pass pass,
                                     const clb_rows *rows, clb_operand *operands) {
  const clb_spherical_harmonics_problem *p = &problem->spherical_harmonics;
  static const struct {
    int count;
    struct {
      const char *name;
      bool harmonics, written;
    } operand[5];
  } passes[] = {{2, {{"x", false, false}, {"y", true, true}}},
                {3, {{"x", false, false}, {"g_y", true, false}, {"g_x", false, true}}},
                {5,
                 {{"x", false, false},
                  {"g_y", true, false},
                  {"h", false, false},
                  {"d_x", false, true},
                  {"d_g_y", true, true}}}};
  int64_t columns = 0;
  for (int i = 0; i < p->n_degrees; i++) columns += 2 * p->degrees[i] + 1;
  for (int i = 0; i < passes[pass].count; i++)
    operands[i] = (clb_operand){.name = passes[pass].operand[i].name,
                                .rows = rows[i],
                                .columns = passes[pass].operand[i].harmonics ? columns : 3,
                                .written = passes[pass].operand[i].written};
  return passes[pass].count;
}
