/* tools/dynamics/md_system.c - a model and the atoms of a file. */
#include "tools/dynamics/md_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/atoms/neighbours.h"
#include "tools/common/dtype.h"
#include "tools/common/output.h"
#include "tools/fetch/known_models.h"

/* ---- options ---- */

double real_number(const struct argp_state *state, const char *option, const char *text, double low,
                   double high) {
  char *end;
  const double x = strtod(text, &end);
  if (end == text || *end || !(x >= low && x <= high))
    argp_error(state, "%s is a number from %g to %g, not '%s'", option, low, high, text);
  return x;
}

enum {
  KEY_ATOMIC = 600,
  KEY_ELEMENTS,
  KEY_EXACT,
  KEY_BLOCK,
  KEY_FRAME,
  KEY_D3,
  KEY_D3_CUTOFF,
  KEY_CHARGE,
  KEY_SPIN
};

static error_t parse_model(int key, char *arg, struct argp_state *state) {
  md_choice *c = state->input;
  switch (key) {
    case 'm': c->model = arg; return 0;
    case 'd':
      if (c->n_devices == MAX_DEVICES) argp_error(state, "--device: at most %d", MAX_DEVICES);
      c->devices[c->n_devices++] = c->device = arg;
      return 0;
    case 'M': c->part.modality = arg; return 0;
    case 'H': c->part.head = arg; return 0;
    case 'k':
      c->options.knots = (int)whole_number(state, "--knots", arg, 0, 1 << 20);
      if (!c->options.knots) c->options.knots = CLB_NO_KNOTS;
      return 0;
    case KEY_ATOMIC: c->options.atomics = 1; return 0;
    case KEY_BLOCK:
      c->options.block_atoms = whole_number(state, "--block-atoms", arg, 1, INT32_MAX);
      return 0;
    case KEY_D3: c->options.d3 = arg; return 0;
    case KEY_D3_CUTOFF:
      c->options.d3_cutoff = real_number(state, "--d3-cutoff", arg, 0.1, 1000);
      return 0;
    case KEY_CHARGE:
      c->charge = (int32_t)whole_number(state, "--charge", arg, -1000, 1000);
      c->charged = true;
      return 0;
    case KEY_SPIN: c->spin = (int32_t)whole_number(state, "--spin", arg, 1, 1000); return 0;
    case KEY_EXACT: c->options.dtype = CLB_F64, c->options.knots = CLB_NO_KNOTS; return 0;
    case 't':
      if (strcmp(arg, "f64") != 0 && strcmp(arg, "f32") != 0)
        argp_error(state, "--dtype is f64 or f32, not '%s'", arg);
      c->options.dtype = arg[1] == '6' ? CLB_F64 : CLB_F32;
      return 0;
    case ARGP_KEY_END:
      if (c->options.d3_cutoff != 0 && !c->options.d3) argp_error(state, "--d3-cutoff is of --d3");
      if (!c->model && !c->optional) argp_error(state, "--model is missing");
      if (c->model) find_model(&c->model);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option model_options[] = {
    {"model", 'm', "MODEL", 0,
     "A name that `clebsch models` shows, output of `clebsch convert`, or a file that it can read: "
     ".pth, .model, .nequip.zip, .ckpt, .nqx",
     0},
    {"modality", 'M', "NAME", 0,
     "Of a .pth file of a model trained on several kinds of data (SevenNet-MF-0: PBE or R2SCAN)",
     0},
    {"head", 'H', "NAME", 0, "Of a .pth or .model file of MACE with several heads", 0},
    {"device", 'd', "DEVICE", 0,
     "A name that `clebsch devices` shows (default: $CLB_DEVICE, else the first that opens)", 0},
    {"dtype", 't', "TYPE", 0, "Precision inside the model: f32 (default) or f64", 0},
    {"knots", 'k', "N", 0,
     "Cubic splines with N knots replace radial networks; 0: the networks are computed at every "
     "edge "
     "(default: as many as keep forces within 1e-5 (eV/A) of the networks')",
     0},
    {"exact", KEY_EXACT, NULL, 0, "For references: --dtype f64 --knots 0", 0},
    {"atomics", KEY_ATOMIC, NULL, 0,
     "Let gradients be added up by atomics: faster on GPUs, but the last digits differ from run to "
     "run",
     0},
    {"block-atoms", KEY_BLOCK, "N", 0,
     "Compute at most N atoms at a time, in less memory (default: all, or where they do not fit, "
     "as "
     "many as do)",
     0},
    {"d3", KEY_D3, "FUNCTIONAL", 0,
     "Add the dispersion D3(BJ) of a functional, such as pbe: that of the model's labels; pbe-atm: "
     "with triples",
     0},
    {"d3-cutoff", KEY_D3_CUTOFF, "A", 0,
     "Distance up to which dispersion acts, in Angstrom (default: 60 Bohr, 31.75)", 0},
    {"charge", KEY_CHARGE, "N", 0,
     "Of all atoms, in e, for a model that reads it (default: what the file of atoms says, else 0)",
     0},
    {"spin", KEY_SPIN, "N", 0,
     "The multiplicity, for a model that reads it (default: what the file says, else 1)", 0},
    {0}};
const struct argp md_model_argp = {.options = model_options, .parser = parse_model};

static error_t parse_choice(int key, char *arg, struct argp_state *state) {
  md_choice *c = state->input;
  char wrong[256];
  switch (key) {
    case 's': c->structure = arg; return 0;
    case KEY_ELEMENTS:
      if (!structure_elements_check(arg, wrong, sizeof wrong))
        argp_error(state, "--elements: %s", wrong);
      c->reading.elements = arg;
      return 0;
    case KEY_FRAME:
      if (!structure_slice_read(arg, &c->reading.frames) || !c->reading.frames.one)
        argp_error(state, "--frame is a number, from 0 or, below 0, from the end, not '%s'", arg);
      return 0;
    case ARGP_KEY_END:
      if (c->reading.frames.chosen && !c->structure) argp_error(state, "--frame is of --structure");
      return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = c; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option choice_options[] = {
    {"structure", 's', "FILE", 0,
     "Atoms: extended XYZ (.xyz, .extxyz; - is standard input), POSCAR (also CONTCAR, .vasp), CIF "
     "(.cif), LAMMPS' data files (.data, .lmp), GROMACS (.gro) or PDB (.pdb, .ent); .gz may "
     "follow",
     0},
    {"frame", KEY_FRAME, "N", 0,
     "Of a file of several frames this one, counted from 0 or, below 0, from the end (default: 0)",
     0},
    {"elements", KEY_ELEMENTS, "NAME=El,...", 0,
     "Elements of atoms whose names do not tell them, such as CL1=Cl; RESIDUE:NAME=El for one kind "
     "of residue",
     0},
    {0}};
static const struct argp_child choice_children[] = {{&md_model_argp, 0, NULL, 0}, {0}};
const struct argp md_choice_argp = {
    .options = choice_options, .parser = parse_choice, .children = choice_children};

/* ---- the model ---- */

static bool sum_model(const char *path, uint64_t *sum) {
  struct stat about;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const bool good = fd >= 0 && !fstat(fd, &about) && file_checksum(fd, 0, about.st_size, sum);
  if (!good) warn("%s: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  return good;
}

/* Whether the model reads what was given. */
static bool take_states(md_system *y, const md_choice *choice) {
  const int *charges = y->info.charges, *spins = y->info.spins;
  const bool both[] = {choice->charged && charges[0] == charges[1],
                       choice->spin && spins[0] == spins[1]};
  y->charged = choice->charged, y->charge = choice->charge, y->spin = choice->spin;
  if (both[0] || both[1])
    warn("%s: it does not read the %s of atoms", choice->model, both[0] ? "charge" : "spin");
  return !both[0] && !both[1];
}

static bool open_model(md_system *y, const md_choice *choice, const char *path) {
  print_note(y->ctx);
  announce("%s: compiling %s, which takes seconds to minutes where its kernels are not kept yet",
           y->device.name, choice->model);
  clb_status status = clb_model_open(y->ctx, path, &choice->options, &y->model);
  y->dtype = choice->options.dtype;
  y->d3 = choice->options.d3;
  if (!status) status = clb_model_describe(y->model, &y->info);
  announce_end();
  if (status) warn("%s", clb_error(y->ctx));
  print_note(y->ctx);
  return !status && take_states(y, choice) && (!choice->checksum || sum_model(path, &y->checksum));
}

bool md_system_open(md_system *y, const md_choice *choice) {
  if (!choice->at && !model_is_there(choice->model)) return false;
  const bool foreign =
      !choice->at && (ends_in(choice->model, ".pth") || ends_in(choice->model, ".model") ||
                      ends_in(choice->model, ".nqx") || convert_knows(choice->model));
  const model_choice *part = &choice->part;
  char memory[40];
  y->name = choice->model;
  if (!foreign && (part->modality || part->head)) {
    warn("%s: its %s was chosen when it was converted; --%s is for %s files", choice->model,
         part->modality ? "modality" : "head", part->modality ? "modality" : "head",
         part->modality ? ".pth" : ".pth and .model");
    return false;
  }
  const int fd = foreign ? convert_in_memory(choice->model, part) : -1;
  snprintf(memory, sizeof memory, "/proc/self/fd/%d", fd);
  clb_status status = clb_context_create(choice->device, &y->ctx);
  if (!status) status = clb_context_device(y->ctx, &y->device);
  if (status) warn("%s", clb_error(y->ctx));
  else if (!y->device.runs)
    warn("%s only compiles: `clebsch devices` shows what runs", y->device.name);
  const bool good = !status && y->device.runs &&
                    open_model(y, choice,
                               foreign      ? memory
                               : choice->at ? choice->at
                                            : choice->model);
  if (foreign) close(fd);
  return good;
}

/* ---- the atoms ---- */

static bool find_species(md_system *y, const char *from) {
  for (int64_t i = 0; i < y->atoms.n; i++) {
    const char *symbol = clb_element_symbols[y->atoms.numbers[i]];
    y->species[i] = (int32_t)clb_model_species(y->model, y->atoms.numbers[i]);
    if (y->species[i] >= 0) continue;
    char known[600] = "";
    for (int s = 0; s < y->info.n_species; s++)
      snprintf(known + strlen(known), sizeof known - strlen(known), " %s", y->info.symbols[s]);
    warn("%s: atom %lld is %s, but %s knows only%s", from, (long long)i + 1, symbol, y->name,
         known);
    return false;
  }
  return true;
}

void md_system_free_atoms(md_system *y) {
  structure_free(&y->atoms);
  free(y->species);
  free(y->e_atom);
  free(y->forces);
}

bool md_system_set_atoms(md_system *y, structure *atoms, const char *from) {
  md_system_free_atoms(y);
  y->from = from;
  y->atoms = *atoms;
  *atoms = (structure){0};
  if (y->charged) y->atoms.charge = y->charge;
  if (y->spin) y->atoms.spin = y->spin;
  const size_t n = (size_t)y->atoms.n;
  y->species = allocate(n, sizeof *y->species);
  y->e_atom = allocate(n, sizeof *y->e_atom);
  y->forces = allocate(n, 3 * sizeof *y->forces);
  y->has_stress = clb_cell_volume(&y->atoms.cell[0][0]) > 0;
  return find_species(y, from);
}

bool md_system_start(md_system *y, const md_choice *choice) {
  structure atoms;
  char error[512];
  if (!structure_read(choice->structure, &choice->reading, &atoms, error, sizeof error))
    return warn("%s", error), false;
  if (!md_system_open(y, choice)) return structure_free(&atoms), false;
  return md_system_set_atoms(y, &atoms, choice->structure);
}

void md_system_warn_of_fixed(const md_system *y) {
  if (y->atoms.fixed)
    warn("%s: %lld atoms are fixed, but here all atoms move", y->from, (long long)y->atoms.fixed);
}

clb_model_atoms md_system_atoms(const md_system *y, const double *positions) {
  const structure *s = &y->atoms;
  const bool *p = s->periodic;
  return (clb_model_atoms){.n = s->n,
                           .species = y->species,
                           .positions = positions ? positions : s->positions,
                           .cell = &s->cell[0][0],
                           .periodic = {p[0], p[1], p[2]},
                           .charge = s->charge,
                           .spin = s->spin};
}

static clb_model_results results_of(md_system *y) {
  return (clb_model_results){.energy = &y->energy,
                             .e_atom = y->without_e_atom ? NULL : y->e_atom,
                             .forces = y->forces,
                             .stress = y->has_stress ? &y->stress[0][0] : NULL};
}

bool md_system_compute(md_system *y, const double *positions) {
  const clb_model_atoms atoms = md_system_atoms(y, positions);
  const clb_model_results results = results_of(y);
  clb_status status = clb_model_compute(y->model, &atoms, &results);
  if (!status) status = clb_model_describe(y->model, &y->info); /* tables by species are new */
  if (status) warn("%s: %s", y->from, clb_error(y->ctx));
  return !status;
}

bool md_systems_compute(md_system *y, int64_t n) {
  clb_model_atoms *atoms = allocate((size_t)n, sizeof *atoms);
  clb_model_results *results = allocate((size_t)n, sizeof *results);
  for (int64_t i = 0; i < n; i++)
    atoms[i] = md_system_atoms(&y[i], NULL), results[i] = results_of(&y[i]);
  bool good = !n || !clb_model_compute_many(y->model, n, atoms, results);
  free(atoms);
  free(results);
  if (good) return true;
  good = true; /* the first one that fails says what is wrong with it */
  for (int64_t i = 0; i < n && good; i++) good = md_system_compute(&y[i], NULL);
  return good;
}

int64_t md_system_edges(const md_system *y) {
  clb_model_neighbours found = {0};
  return clb_model_last_neighbours(y->model, &found) ? -1 : found.n_edges;
}

void md_system_close(md_system *y) {
  clb_model_destroy(&y->model);
  clb_context_destroy(&y->ctx);
  md_system_free_atoms(y);
}

/* ---- what it is ---- */

void md_system_print_model(const md_system *y) {
  const clb_model_info *i = &y->info;
  printf("model      %s: %s, %d layers, l <= %d, r_max %g A, %lld parameters\n", y->name,
         i->architecture, i->n_layers, i->l_max, i->r_max, (long long)i->parameters);
  if (y->atoms.n && (i->charges[0] != i->charges[1] || i->spins[0] != i->spins[1]))
    printf("states     charge %d, multiplicity %d\n", y->atoms.charge,
           y->atoms.spin ? y->atoms.spin : 1);
}

void md_system_print_device(const md_system *y, const char *format) {
  char how[128] = "";
  if (y->info.table_force_error > 0)
    snprintf(how, sizeof how,
             ", splines of %d knots, forces within about %.1g eV/A of the networks", y->info.knots,
             y->info.table_force_error);
  else if (y->info.knots) snprintf(how, sizeof how, ", splines of %d knots", y->info.knots);
  printf(format, y->device.name, y->device.description);
  printf("; %s%s", dtype_names[y->dtype], how);
  printf(y->d3 ? ", D3(BJ) of %s\n" : "\n", y->d3);
}

json_t *md_system_described(const md_system *y, const md_choice *choice) {
  static const char *const units[][2] = {{"length", "Angstrom"},
                                         {"energy", "eV"},
                                         {"force", "eV/Angstrom"},
                                         {"stress", "eV/Angstrom^3"},
                                         {"time", "s"}};
  json_t *o = json_object(), *u = json_object();
  json_add(o, "clebsch", json_text(CLB_VERSION));
  json_add(o, "units", u);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    json_add(u, units[i][0], json_text(units[i][1]));
  JSON_ADD(o, {"model", json_text(choice->model)},
           {"architecture", json_text(y->info.architecture)});
  if (choice->structure) json_add(o, "structure", json_text(choice->structure));
  JSON_ADD(o, {"device", json_text(y->device.name)},
           {"description", json_text(y->device.description)},
           {"driver", json_text(y->device.driver)},
           {"dtype", json_text(dtype_names[choice->options.dtype])},
           {"knots", json_count(y->info.knots)});
  if (y->info.knots) json_add(o, "table_force_error", json_real(y->info.table_force_error));
  json_add(o, "atomics", json_boolean(choice->options.atomics));
  if (choice->options.d3) json_add(o, "d3", json_text(choice->options.d3));
  if (choice->options.d3_cutoff != 0)
    json_add(o, "d3_cutoff", json_real(choice->options.d3_cutoff));
  return o;
}
