/* tools/optimizer/optimizer_tool.h - optimizers as the command sees them: they are no ops, whose
   passes go over rows, but have lists of tensors. */
#ifndef CLB_TOOLS_OPTIMIZER_OPTIMIZER_TOOL_H
#define CLB_TOOLS_OPTIMIZER_OPTIMIZER_TOOL_H

#include "tools/cli/tool.h"

/* How a list is trained. */
typedef struct {
  const char *name;
  clb_optimizer_group group;
  clb_dtype parameters, gradients;
  bool copies;
  clb_dtype copy;
  clb_clip clip;
  double max_norm;
  clb_ema ema;
  double ema_decay;
} tool_training;

/* The optimizer of a training, but for tensors and groups. */
static inline clb_optimizer_desc training_desc(const tool_training *t) {
  return (clb_optimizer_desc){.parameters = t->parameters,
                              .gradients = t->gradients,
                              .copy = t->copy,
                              .clip = t->clip,
                              .max_norm = t->max_norm,
                              .ema = t->ema,
                              .ema_decay = t->ema_decay};
}

/* ---- clebsch check ---- */

extern const tool_training optimizer_checks[];
extern const int n_optimizer_checks;
/* The error after STEPS steps, relative to how far parameters have come; and what it may be. */
clb_status optimizer_check(clb_context *ctx, const tool_training *t, double *error);
double optimizer_tolerance(const tool_training *t);
/* A step of Muon, counted from 1, on a matrix with momentum m and parameters p. */
void reference_muon(const clb_optimizer_group *g, int step, int64_t rows, int64_t columns,
                    const double *gradient, double *m, double *p);
/* The same of SOAP with longest_side SOAP_LONGEST, for matrices of which one side at most is not
   longer; side: its sum of products of gradients and its basis. */
enum { SOAP_LONGEST = 32 };
typedef struct {
  double sum[SOAP_LONGEST][SOAP_LONGEST], basis[SOAP_LONGEST][SOAP_LONGEST];
} soap_side;
void reference_soap(const clb_optimizer_group *g, int step, int64_t rows, int64_t columns,
                    const double *gradient, soap_side *side, double *m, double *v, double *p);

/* ---- clebsch bench optimizer ---- */

bool bench_optimizer_asked(int argc, char **argv);
int bench_optimizer_main(int argc, char **argv);

#endif
