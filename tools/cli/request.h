/* tools/cli/request.h - the arguments of `source` and `bench`: an op, its problem, passes, dtypes,
   devices. */
#ifndef CLB_TOOLS_CLI_REQUEST_H
#define CLB_TOOLS_CLI_REQUEST_H

#include "tools/ops/op.h"

typedef struct {
  const tool_op *op;
  void *problem;
  device_options devices;
  kernel_options kernels;
} request;

/* Parses "OP ..." with the subcommand's own options, whose parser gets `own`.  Exits on a usage
   error. */
void request_parse(request *r, int argc, char **argv, const struct argp *own_argp, void *own,
                   const char *doc);
void request_free(request *r);

#endif
