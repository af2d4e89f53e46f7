/* tools/dynamics/md_system.h - a model and the atoms of a file, used by `clebsch energy` and
   `clebsch md`. */
#ifndef CLB_TOOLS_DYNAMICS_MD_SYSTEM_H
#define CLB_TOOLS_DYNAMICS_MD_SYSTEM_H

#include <clebsch/model.h>

#include "tools/structures/structure.h"
#include "tools/cli/tool.h"
#include "tools/convert/convert.h"

typedef struct {
  const char *model, *structure, *device; /* device: NULL means the default */
  const char *devices[MAX_DEVICES]; /* [n_devices]: all that were named; the last is `device` */
  int n_devices;
  const char *at;    /* where the model's file is; NULL: at `model` */
  model_choice part; /* of a model that is converted first */
  structure_options reading;
  clb_model_options options;
  bool checksum;        /* compute the checksum of the model file */
  bool charged;         /* charge is that of all atoms, whatever the file says */
  int32_t charge, spin; /* spin: the same of the multiplicity, 0: as the file says */
  bool optional;        /* the caller sees to it that there is a model */
} md_choice;
/* Of both the input is an md_choice. */
extern const struct argp md_model_argp;  /* --model, --modality, --head, --device, --dtype, --knots,
                                            --atomics, --exact, --block-atoms, --d3 ... */
extern const struct argp md_choice_argp; /* these, --structure and --elements */

static const double gpa_per_ev_a3 = 160.2176634;

/* A number in [low, high]; otherwise a usage error naming `option`. */
double real_number(const struct argp_state *state, const char *option, const char *text, double low,
                   double high);

typedef struct {
  const char *name, *from; /* names of the model file and of the file of atoms */
  uint64_t checksum;       /* of of the model file, or of the file it was converted to; 0: not
                              requested */
  clb_context *ctx;
  clb_device_info device;
  clb_model *model;
  clb_model_info info;
  clb_dtype dtype;
  const char *d3; /* the functional whose dispersion is added; NULL: none is */
  structure atoms;
  int32_t *species;                              /* [n], species of the model */
  double energy, *e_atom, *forces, stress[3][3]; /* results of the last md_system_compute; eV,
                                                    Angstrom */
  bool charged;                                  /* as in the choice, and so the next two */
  int32_t charge, spin;
  bool without_e_atom; /* they are not computed */
  bool has_stress;     /* the cell has a volume */
} md_system;

/* The following print a message on standard error when they return false. Opens the device and the
   model; *y must be zeroed, and md_system_close must be called even on failure. */
bool md_system_open(md_system *y, const md_choice *choice);
/* Sets the atoms, instead of those before, and takes ownership of them; `from` is the file they
 * were read from. */
bool md_system_set_atoms(md_system *y, structure *atoms, const char *from);
/* Reads the chosen structure, opens the model and sets the atoms. */
bool md_system_start(md_system *y, const md_choice *choice);
/* Says so where the file fixes atoms, all of which move. */
void md_system_warn_of_fixed(const md_system *y);
/* The atoms for clb_model_compute; positions NULL: their own. */
clb_model_atoms md_system_atoms(const md_system *y, const double *positions);
/* Frees the atoms and their results. */
void md_system_free_atoms(md_system *y);
/* Energy, forces and stress at positions[n][3]; NULL: at the atoms' own. */
bool md_system_compute(md_system *y, const double *positions);
/* Energies, forces and stress of n systems of one model, together where they are small. */
bool md_systems_compute(md_system *y, int64_t n);
/* The line about the model. */
void md_system_print_model(const md_system *y);
/* The line about the device, what the model computes with, and how near splines come; format: of
   the line's begin, with two %s. */
void md_system_print_device(const md_system *y, const char *format);
/* For JSON: which program, model, structure, device and options numbers are of, and their units. */
json_t *md_system_described(const md_system *y, const md_choice *choice);
int64_t md_system_edges(const md_system *y); /* edges in the last compute */
void md_system_close(md_system *y);

#endif
