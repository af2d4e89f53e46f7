/* tests/drivers/negation.c - Intel's OpenCL driver for CPUs loses a negated float across a barrier.

   Each work-item negates a number of its own, which is needed on both sides of barriers. The right
   result is the number's own negation; from the second iteration of the loop on, the result is the
   negation of the sub-group (or vector of work-items) that ran last before the barrier. Other unary
   and binary operations are right, and so is a product with a -1 that the compiler does not know:
   the workaround. */
#include "tests/drivers/driver.h"

enum { GROUP = 48, TURNS = 3 };

static const char text[] =
    "#define plain(x) (-(x))\n"
    "#define hidden(x) ((x) * (float)((int)get_global_offset(0) - 1))\n"
    "__kernel __attribute__((reqd_work_group_size(48, 1, 1))) void negate(__global float *y, "
    "__global const float *x, __global const int *turns) {\n"
    "  const int id = get_local_id(0), n = turns[0];\n"
    "  const float mine = x[id];\n"
    "  for (int i = 0; i < n; i++) {\n"
    "    y[i * 48 + id] = MINUS(mine);\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  }\n"
    "}\n";

/* How many numbers are wrong. */
static int wrong(driver *d, const char *options) {
  float x[GROUP], y[TURNS * GROUP] = {0};
  int turns = TURNS, bad = 0;
  for (int i = 0; i < GROUP; i++) x[i] = (float)(i + 1);
  driver_run(d, text, options, "negate", 1, GROUP,
             (driver_buffer[]){{y, sizeof y}, {x, sizeof x}, {&turns, sizeof turns}}, 3);
  for (int i = 0; i < TURNS * GROUP; i++)
    if (y[i] != -x[i % GROUP] && !bad++)
      printf("%s: work-item %d, turn %d: right is %g, %g came\n", options, i % GROUP, i / GROUP,
             -x[i % GROUP], y[i]);
  printf("%s: %d of %d wrong\n", options, bad, TURNS * GROUP);
  return bad;
}

int main(int n, char **argument) {
  driver d;
  driver_open(&d, n > 1 ? argument[1] : "Intel");
  int plain = wrong(&d, "-DMINUS=plain"), hidden = wrong(&d, "-DMINUS=hidden");
  driver_close(&d);
  return driver_verdict(plain, hidden, n > 2 && strstr(d.version, argument[2]));
}
