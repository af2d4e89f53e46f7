/* tests/runtime/again.h - a test program that runs itself again with other environment variables.
 */
#ifndef CLB_TESTS_RUNTIME_AGAIN_H
#define CLB_TESTS_RUNTIME_AGAIN_H

#include <unistd.h>

#include "src/base/text.h"
#include "tests/test.h"

/* What `mode` prints with these variables, in a temporary folder of its own; ends with "status 0"
   on success. */
static char *again(const char *variables, const char *mode) {
  clb_text command = {0}, out = {0};
  char folder[] = "/tmp/clebsch-XXXXXX", self[1024] = "", part[512];
  size_t n;
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  assert_non_null(mkdtemp(folder));
  clb_text_add(&command, "cd %s && { %s %s %s; } 2>&1; echo status $?; rm -r %s", folder, variables,
               self, mode, folder);
  FILE *pipe = popen(command.s, "r");
  assert_non_null(pipe);
  while ((n = fread(part, 1, sizeof part, pipe)) > 0) clb_text_bytes(&out, part, n);
  pclose(pipe);
  clb_text_free(&command);
  return out.s;
}

#endif
