/* tools/dynamics/md_system.h - a model and the atoms of a file: what `clebsch energy` and `clebsch
   md` begin with. */
#ifndef CLB_TOOLS_DYNAMICS_MD_SYSTEM_H
#define CLB_TOOLS_DYNAMICS_MD_SYSTEM_H

#include <clebsch/model.h>

#include "tools/common/structure.h"
#include "tools/cli/tool.h"

typedef struct {
  const char *model, *structure, *device; /* device: NULL is the default one */
  clb_model_options options;
  bool checksum; /* of the model's file is wanted */
} md_choice;
extern const struct argp
    md_choice_argp; /* --model, --structure, --device, --dtype, --knots; input: md_choice */

/* A number in [low, high]; otherwise the usage error of `option`. */
double real_number(const struct argp_state *state, const char *option, const char *text, double low,
                   double high);

typedef struct {
  const char *name, *from; /* the files of the model and of the atoms */
  uint64_t checksum;       /* of the model's, or of what it was converted to; 0: not asked for */
  clb_context *ctx;
  clb_device_info device;
  clb_model *model;
  clb_model_info info;
  structure atoms;
  int32_t *species;                              /* [n], of the model */
  double energy, *e_atom, *forces, stress[3][3]; /* of the last md_system_compute; eV, Angstrom */
  bool has_stress;                               /* periodic in all directions */
} md_system;

/* The following return false after a sentence on standard error.  Opens the device and the model;
 *y starts as zeros, and md_system_close is due whatever comes. */
bool md_system_open(md_system *y, const md_choice *choice);
/* Takes the atoms, which then are the system's to free; `from` is the file they are of. */
bool md_system_place(md_system *y, structure *atoms, const char *from);
/* Energy, forces and stress at positions[n][3], NULL: those of the atoms. */
bool md_system_compute(md_system *y, const double *positions);
int64_t md_system_edges(const md_system *y); /* of the last compute */
void md_system_close(md_system *y);

#endif
