/* pair_clebsch.cpp - LAMMPS' pair style `clebsch`.

   LAMMPS is asked for ghosts; which of them are neighbours the device finds, unless pairs are left out
   (exclusions.h): then they are those of LAMMPS' list.

   Ghost atoms reach as far as one layer does (the model's cutoff and LAMMPS' skin), not as far as all
   of them. Between layers rows of features travel from each atom's own process to those where it is a
   ghost (ghost_rows.h). Every process computes in every step, also one without atoms. */
#include "pair_clebsch.h"

#include "atom.h"
#include "comm.h"
#include "domain.h"
#include "error.h"
#include "fix.h"
#include "force.h"
#include "memory.h"
#include "modify.h"
#include "neigh_list.h"
#include "neighbor.h"
#include "update.h"
#include "utils.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unistd.h>

using namespace LAMMPS_NS;

PairClebsch::PairClebsch(LAMMPS *lmp) : Pair(lmp), options(), info(), exclusions(lmp)
{
  restartinfo = 0;
  one_coeff = 1;
  manybody_flag = 1;
  single_enable = 0;
  no_virial_fdotr_compute = 1;
  centroidstressflag = CENTROID_NOTAVAIL;
  comm_forward = 3;    // homes and species of ghosts
}

PairClebsch::~PairClebsch()
{
  clb_model_destroy(&model);
  ghosts.close();
  clb_context_destroy(&ctx);
  if (allocated) {
    memory->destroy(setflag);
    memory->destroy(cutsq);
  }
}

/* MPI loses what a process says just before all end. */
void PairClebsch::fail(const std::string &why) const
{
  try {
    error->one(FLERR, "Pair style clebsch: " + why);
  } catch (...) {
    if (comm->nprocs > 1) usleep(200000);
    throw;
  }
}

/* ---- input ---- */

static const char usage[] = "pair_style clebsch takes device NAME ..., dtype f32 or f64, knots N, "
                            "atomics yes or no, guard yes or no, list yes or no, p2p auto, yes or no, d3 FUNCTIONAL, "
                            "d3_cutoff ANGSTROM, charge N and spin N; not ";

static bool is_key(const std::string &s)
{
  for (const char *key : {"device", "dtype", "precision", "knots", "atomics", "guard", "list", "p2p", "d3", "d3_cutoff", "charge",
                          "spin"})
    if (s == key) return true;
  return false;
}

/* `precision` is what `dtype` was called until 0.2. */
void PairClebsch::settings(int narg, char **arg)
{
  options = clb_model_options();
  d3.clear();
  charge = spin = 0;
  options.dtype = CLB_F32;
  guarded = true, lists = false, p2p = AUTO;
  devices.clear();
  for (int i = 0; i < narg;) {
    const std::string key = arg[i++];
    if (!is_key(key)) error->all(FLERR, "Pair style clebsch: {}{}", usage, key);
    if (i == narg || is_key(arg[i]))
      error->all(FLERR, "Pair style clebsch: {}{} without a value", usage, key);
    const std::string value = arg[i];
    if (key == "device") {
      while (i < narg && !is_key(arg[i])) devices.emplace_back(arg[i++]);
      continue;
    }
    const bool answer = value == "yes" || value == "no", type = value == "f32" || value == "f64";
    if (key == "knots") {
      options.knots = utils::inumeric(FLERR, value, false, lmp);
      if (options.knots == 0) options.knots = CLB_NO_KNOTS;
    }
    else if (key == "d3") options.d3 = (d3 = value).c_str();
    else if (key == "charge") charge = utils::inumeric(FLERR, value, false, lmp);
    else if (key == "spin") spin = utils::inumeric(FLERR, value, false, lmp);
    else if (key == "d3_cutoff") options.d3_cutoff = utils::numeric(FLERR, value, false, lmp);
    else if (key == "atomics" && answer) options.atomics = value == "yes";
    else if (key == "guard" && answer) guarded = value == "yes";
    else if (key == "list" && answer) lists = value == "yes";
    else if (key == "p2p" && (answer || value == "auto"))
      p2p = value == "auto" ? AUTO : value == "yes" ? YES : NO;
    else if ((key == "dtype" || key == "precision") && type)
      options.dtype = value == "f64" ? CLB_F64 : CLB_F32;
    else error->all(FLERR, "Pair style clebsch: {}{} {}", usage, key, value);
    i++;
  }
  if (devices.size() == 1 && devices[0] == "auto") devices.clear();
}

void PairClebsch::coeff(int narg, char **arg)
{
  const int n = atom->ntypes;
  if (narg != 3 + n || strcmp(arg[0], "*") != 0 || strcmp(arg[1], "*") != 0)
    error->all(FLERR,
               "Pair style clebsch: pair_coeff must be * * MODEL and {} elements, one for each atom "
               "type, or NULL", n);
  if (!allocated) {
    memory->create(setflag, n + 1, n + 1, "pair:setflag");
    memory->create(cutsq, n + 1, n + 1, "pair:cutsq");
    allocated = 1;
  }
  open(arg[2]);
  species_of_type.assign(n + 1, -1);
  for (int t = 1; t <= n; t++) {
    std::string known;
    if (!strcmp(arg[2 + t], "NULL")) continue;
    for (int s = 0; s < info.n_species; s++) {
      known += std::string(s ? " " : "") + info.symbols[s];
      if (!strcmp(info.symbols[s], arg[2 + t])) species_of_type[t] = s;
    }
    if (species_of_type[t] < 0)
      error->all(FLERR, "Pair style clebsch: {} does not know the element {} of atom type {}; it knows {}",
                 arg[2], arg[2 + t], t, known);
  }
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= n; j++) setflag[i][j] = species_of_type[i] >= 0 && species_of_type[j] >= 0;
}

/* The group to which `comm_modify group` limits ghosts; 0: all. LAMMPS shows it only to kinds of Comm. */
struct Ghosts : public Comm {
  static int group(const Comm *comm) { return comm->*&Ghosts::bordergroup; }
};

void PairClebsch::init_style()
{
  if (strcmp(update->unit_style, "metal") != 0)
    error->all(FLERR, "Pair style clebsch: units must be metal, not {}", update->unit_style);
  if (utils::strmatch(update->integrate_style, "^respa"))
    error->all(FLERR, "Pair style clebsch: run_style respa would need a part of the forces; use verlet");
  if (!model) error->all(FLERR, "Pair style clebsch: there is no model yet; pair_coeff names it");
  if (Ghosts::group(comm))
    error->all(FLERR, "Pair style clebsch: comm_modify group would hide the other atoms from the model");
  if (options.d3) check_dispersion();
  if (needs_list()) neighbor->add_request(this, NeighConst::REQ_FULL);
  else list = nullptr;    // else that of the last run, unless LAMMPS makes another one
  listed = false;
}

/* Dispersion reaches farther than ghosts do: it is computed of all processes' atoms in their cell. */
void PairClebsch::check_dispersion() const
{
  if (needs_list())
    error->all(FLERR, "Pair style clebsch: d3 needs all pairs of atoms, without exclusions, `list yes`, other "
                      "pair styles or fixes that try configurations");
}

void PairClebsch::take_cell(clb_model_edges &e)
{
  const double *h = domain->h, rows[9] = {h[0], 0, 0, h[5], h[1], 0, h[4], h[3], h[2]};
  std::copy(rows, rows + 9, cell);
  std::copy(domain->periodicity, domain->periodicity + 3, e.periodic);
  e.cell = cell;
}

/* Fixes that try configurations exclude atoms only after pair styles have asked for lists. */
bool PairClebsch::needs_list() const
{
  return lists || force->pair != this || exclusions.rules() || trying_fix();
}

double PairClebsch::init_one(int, int) { return info.r_max; }

double PairClebsch::memory_usage()
{
  return 4.0 * (species.size() + senders.size() + receivers.size()) +
      8.0 * (forces.size() + e_atom.size() + v_atom.size() + homes.size());
}

/* ---- pairs and ghosts ---- */

/* Three numbers: the process, its row, and the species. Ghosts of ghosts have got theirs in an
   earlier message. */
int PairClebsch::pack_forward_comm(int n, int *list, double *buf, int, int *)
{
  for (int i = 0; i < n; i++) {
    *buf++ = homes[list[i]].rank;
    *buf++ = homes[list[i]].row;
    *buf++ = species[list[i]];
  }
  return 3 * n;
}

void PairClebsch::unpack_forward_comm(int n, int first, double *buf)
{
  for (int i = first; i < first + n; i++, buf += 3) {
    homes[i] = {static_cast<int>(buf[0]), static_cast<int>(buf[1])};
    species[i] = static_cast<int32_t>(buf[2]);
  }
}

/* Which atoms are there, and what they are. */
void PairClebsch::list_species()
{
  const int n_local = atom->nlocal, n_total = n_local + atom->nghost;
  tagint bonded[2];
  types.assign(atom->type, atom->type + n_total);
  species.resize(n_total), homes.resize(n_total);
  for (int i = 0; i < n_local; i++) {
    homes[i] = {comm->me, i};
    species[i] = species_of_type[types[i]];
  }
  if (exclusions.leave_out(list, species_of_type, species) && !warned) {
    warned = true;
    if (comm->me == 0)
      error->warning(FLERR,
                     "Pair style clebsch: pairs of atoms that have other pairs are excluded; the model is "
                     "computed without them, which is not what it was trained for");
  }
  comm->forward_comm(this, 3);
  if (exclusions.hide(species, bonded))
    fail(fmt::format("special_bonds hide the pair of the bonded atoms {} and {} from the model; use "
                     "special_bonds lj/coul 1e-50 1e-50 1e-50", bonded[0], bonded[1]));
}

/* The pairs of LAMMPS' list of atoms that are there; wanted: ghosts in them, by row. */
void PairClebsch::list_pairs(std::vector<char> &wanted)
{
  for (int ii = 0; ii < list->inum; ii++) {
    const int i = list->ilist[ii];
    if (species[i] < 0) continue;
    for (int jj = 0; jj < list->numneigh[i]; jj++) {
      const int j = list->firstneigh[i][jj] & NEIGHMASK;
      if (species[j] < 0) continue;
      senders.push_back(j), receivers.push_back(i);
      wanted[j] = 1;
    }
  }
}

void PairClebsch::list_atoms()
{
  const int n_local = atom->nlocal, n_total = n_local + atom->nghost;
  searched = !list;
  if (searched && exclusions.rules())
    error->all(FLERR,
               "Pair style clebsch: pairs were excluded after the run was set up; run without `pre no`, "
               "or say `list yes` in pair_style");
  list_species();
  senders.clear(), receivers.clear();
  std::vector<char> wanted(n_total, searched);
  if (!searched) list_pairs(wanted);
  std::vector<GhostRows::Home> of_ghosts(homes.begin() + n_local, homes.end());
  for (int i = n_local; i < n_total; i++)
    if (!wanted[i] || species[i] < 0) of_ghosts[i - n_local].rank = -1;
  ghosts.build(n_local, of_ghosts);
  if (p2p == YES && !ghosts.refusal().empty())
    fail("p2p yes, but rows cannot go from device to device between this process and " + ghosts.refusal());
  forces.resize(3 * static_cast<size_t>(n_total) + 1);
  e_atom.resize(n_local + 1), v_atom.resize(9 * static_cast<size_t>(n_local) + 1);
  builds = neighbor->ncalls;
  listed = true;
}

/* The list holds as long as atoms are those that it was made of. */
void PairClebsch::check_atoms() const
{
  const size_t n = static_cast<size_t>(atom->nlocal) + atom->nghost;
  const bool same = n == types.size() && homes.size() >= n &&
      std::equal(types.begin(), types.end(), atom->type);
  if (!same)
    fail("atoms were created or deleted, or their types changed, after the neighbour list was made; "
         "run without `pre no`");
}

/* ---- a step ---- */

/* Returns the seconds of messages. */
double PairClebsch::add_results(double energy, const double *virials)
{
  static const int part[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
  const int n = atom->nlocal;
  const double start = MPI_Wtime();
  ghosts.add_home(forces.data());
  const double moving = MPI_Wtime() - start;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < 3; k++) atom->f[i][k] += forces[3 * static_cast<size_t>(i) + k];
  if (eflag_global) eng_vdwl += energy;
  for (int i = 0; i < n && eflag_atom; i++) eatom[i] += e_atom[i];
  for (int k = 0; k < 6; k++) {
    const int a = part[k][0], b = part[k][1];
    if (vflag_global) virial[k] -= virials[3 * a + b];
    for (int i = 0; i < n && vflag_atom; i++) {
      const double *w = v_atom.data() + 9 * static_cast<size_t>(i);
      vatom[i][k] -= (w[3 * a + b] + w[3 * b + a]) / 2;
    }
  }
  return moving;
}

/* Two atoms in one place, one of them local; false: there are none. */
bool PairClebsch::find_one_place(int (&pair)[2]) const
{
  static const double shortest = 1e-10;
  double **x = atom->x;
  std::vector<int> order;
  for (size_t i = 0; i < species.size(); i++)
    if (species[i] >= 0 && std::isfinite(x[i][0])) order.push_back(static_cast<int>(i));
  std::sort(order.begin(), order.end(), [&](int a, int b) { return x[a][0] < x[b][0]; });
  for (size_t i = 0; i < order.size(); i++)
    for (size_t j = i + 1; j < order.size(); j++) {
      const double *a = x[pair[0] = order[i]], *b = x[pair[1] = order[j]];
      if (b[0] - a[0] > shortest) break;
      const double d = std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
      if (d <= shortest && std::min(pair[0], pair[1]) < atom->nlocal) return true;
    }
  return false;
}

/* Atoms of a computation that failed, as users know them: by tag. */
std::string PairClebsch::culprit() const
{
  const auto tag = [&](int i) { return std::to_string(atom->tag[i]); };
  int pair[2];
  if (find_one_place(pair)) return fmt::format("atoms {} and {} are in one place: ", tag(pair[0]), tag(pair[1]));
  for (size_t i = 0; i < 3 * static_cast<size_t>(atom->nlocal); i++)
    if (!std::isfinite(forces[i])) return fmt::format("the force on atom {} is {}: ", tag(i / 3), forces[i]);
  return "";
}

/* A fix that tries configurations, which may be as bad as they like: after each change it makes a new
   list; nullptr: there is none. */
const char *PairClebsch::trying_fix() const
{
  for (const Fix *fix : modify->get_fix_list())
    for (const char *style : {"gcmc", "widom", "charge/regulation", "atom/swap", "mol/swap"})
      if (!strcmp(fix->style, style)) return style;
  return nullptr;
}

void PairClebsch::guard() const
{
  static const double most = 1e4; /* eV / Angstrom */
  for (int i = 0; i < atom->nlocal; i++) {
    const double *f = forces.data() + 3 * static_cast<size_t>(i), size = std::hypot(f[0], f[1], f[2]);
    if (!(size <= most))
      fail(fmt::format("step {}: the force on atom {} (type {}) is {:.4g} eV/A, more than {}: look at the "
                       "atoms around it, minimize first or take a shorter timestep; `guard no` goes on",
                       update->ntimestep, atom->tag[i], atom->type[i], size, most));
  }
}

/* Adds the parts of a computation to those of the run; moving: seconds of messages of forces. */
void PairClebsch::spend(double start, double moving, const double *seconds)
{
  if (update->setupflag) return;
  computed++;
  spent[ALL] += MPI_Wtime() - start;
  for (int i = SEARCH; i <= COPIES; i++) spent[i] += seconds[i];
  spent[EXCHANGE] += moving;
  spent[MODEL] += seconds[ALL] - seconds[SEARCH] - seconds[EXCHANGE] - seconds[COPIES];
}

/* After a run: what its computations were made of, the mean of all processes. */
void PairClebsch::finish()
{
  static const char *const name[] = {"all", "search", "exchange", "copies", "model"};
  double mean[PARTS], host = 0;
  MPI_Allreduce(spent, mean, PARTS, MPI_DOUBLE, MPI_SUM, world);
  const int ways[] = {ghosts.n_p2p(), ghosts.n_messages()};
  int all_ways[2];
  MPI_Allreduce(ways, all_ways, 2, MPI_INT, MPI_SUM, world);
  std::string parts, way = all_ways[0] ? " (p2p)" : all_ways[1] ? " (MPI)" : "";
  if (all_ways[0] && all_ways[1]) way = " (p2p and MPI)";
  for (int i : {MODEL, EXCHANGE, SEARCH, COPIES}) {
    parts += fmt::format("{} {:.1f} %{}, ", name[i], 100 * mean[i] / mean[ALL],
                         i == EXCHANGE ? way : "");
    host += mean[i];
  }
  if (computed && comm->me == 0)
    utils::logmesg(lmp, "Clebsch: {:.4g} ms a computation: {}host {:.1f} %\n",
                   1e3 * mean[ALL] / comm->nprocs / static_cast<double>(computed), parts,
                   100 * (1 - host / mean[ALL]));
  std::fill_n(spent, PARTS, 0.0);
  computed = 0;
}

void PairClebsch::compute(int eflag, int vflag)
{
  double energy = 0, virials[9] = {0}, nowhere[3] = {0}, seconds[4] = {0};
  const double start = MPI_Wtime();
  ev_init(eflag, vflag);
  const bool same = listed && neighbor->ago != 0 && neighbor->ncalls == builds;
  if (same) check_atoms();
  else list_atoms();
  clb_model_edges e = {};
  clb_model_edge_results r = {};
  e.n_local = atom->nlocal, e.n_total = atom->nlocal + atom->nghost;
  e.n_edges = static_cast<int64_t>(senders.size());
  e.same_graph = same, e.search = searched;
  e.species = species.data(), e.senders.host = senders.data(), e.receivers.host = receivers.data();
  e.positions = e.n_total ? atom->x[0] : nowhere;
  e.images = ghosts.images().data();
  e.charge = charge, e.spin = spin;
  if (options.d3) take_cell(e);
  if (comm->nprocs > 1) e.exchange = ghosts.exchange();    // one process has images alone
  r.energy = &energy, r.forces = forces.data();
  if (eflag_atom) r.e_atom = e_atom.data();
  if (vflag_global) r.virial = virials;
  if (vflag_atom) r.v_atom = v_atom.data();
  r.seconds = seconds;
  listed = false;    // until it is computed
  if (clb_model_compute_edges(model, &e, &r))
    fail("step " + std::to_string(update->ntimestep) + ": " + culprit() + clb_error(ctx));
  listed = true;
  spend(start, add_results(energy, virials), seconds);
  if (guarded && !(neighbor->ago == 0 && trying_fix())) guard();
}
