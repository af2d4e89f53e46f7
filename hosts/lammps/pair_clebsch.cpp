/* pair_clebsch.cpp - LAMMPS' pair style `clebsch`.

   Ghost atoms reach as far as one layer does (the model's cutoff and LAMMPS' skin), not as far as all
   of them. Between layers rows of features travel from each atom's own process to those where it is a
   ghost (ghost_rows.h). Every process computes in every step, also one without atoms. */
#include "pair_clebsch.h"

#include "atom.h"
#include "comm.h"
#include "error.h"
#include "force.h"
#include "memory.h"
#include "neigh_list.h"
#include "neighbor.h"
#include "update.h"
#include "utils.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <unistd.h>

using namespace LAMMPS_NS;

PairClebsch::PairClebsch(LAMMPS *lmp) : Pair(lmp), options(), info()
{
  restartinfo = 0;
  one_coeff = 1;
  manybody_flag = 1;
  single_enable = 0;
  no_virial_fdotr_compute = 1;
  centroidstressflag = CENTROID_NOTAVAIL;
  comm_forward = 2;    // homes of ghosts
}

PairClebsch::~PairClebsch()
{
  clb_model_destroy(&model);
  clb_context_destroy(&ctx);
  if (allocated) {
    memory->destroy(setflag);
    memory->destroy(cutsq);
  }
}

void PairClebsch::fail(const std::string &why) const
{
  error->one(FLERR, "Pair style clebsch: " + why);
}

void PairClebsch::check(clb_status s) const
{
  if (s) fail(clb_error(ctx));
}

/* ---- input ---- */

static const char usage[] =
    "pair_style clebsch takes device NAME ..., precision f32 or f64, and knots N; not ";

void PairClebsch::settings(int narg, char **arg)
{
  auto is_key = [](const std::string &s) { return s == "device" || s == "precision" || s == "knots"; };
  options = clb_model_options();
  options.precision = CLB_F32;
  devices.clear();
  for (int i = 0; i < narg;) {
    const std::string key = arg[i++];
    if (!is_key(key)) error->all(FLERR, "Pair style clebsch: {}{}", usage, key);
    if (i == narg || is_key(arg[i]))
      error->all(FLERR, "Pair style clebsch: {}{} without a value", usage, key);
    const std::string value = arg[i];
    if (key == "device")
      while (i < narg && !is_key(arg[i])) devices.emplace_back(arg[i++]);
    else if (key == "knots") options.knots = utils::inumeric(FLERR, arg[i++], false, lmp);
    else if (value == "f32" || value == "f64") options.precision = arg[i++][1] == '6' ? CLB_F64 : CLB_F32;
    else error->all(FLERR, "Pair style clebsch: {}precision {}", usage, value);
  }
  if (devices.size() == 1 && devices[0] == "auto") devices.clear();
}

/* Cores for each process of a host, unless MPI has bound them. */
static std::string cpu_of(int processes)
{
  cpu_set_t set;
  const int all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (sched_getaffinity(0, sizeof set, &set) || CPU_COUNT(&set) < all) return "cpu";
  return "cpu:threads=" + std::to_string(std::max(1, all / processes));
}

/* The devices named, in turn among a host's processes, which for a backend alone ("cuda") are all of
   that backend's; without names the GPUs of the first backend that has any, else the CPU. */
std::string PairClebsch::choose_device() const
{
  struct found {
    std::string backend;
    int n;
  };
  static const auto count = [](const clb_device_info *d, void *user) {
    for (found &f : *static_cast<std::vector<found> *>(user)) f.n += d->runs && f.backend == d->backend;
  };
  std::vector<found> gpus = {{"cuda", 0}, {"hip", 0}, {"level_zero", 0}};
  MPI_Comm host;
  int rank, processes;
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &rank);
  MPI_Comm_size(host, &processes);
  MPI_Comm_free(&host);
  clb_devices(count, &gpus);
  const char *set = getenv("CLB_DEVICE");
  std::string name = devices.empty() ? set ? set : "" : devices[rank % devices.size()];
  for (const found &f : gpus)
    if (f.n && (name.empty() || name == f.backend)) return f.backend + ":" + std::to_string(rank % f.n);
  return name.empty() || name == "cpu" ? cpu_of(processes) : name;
}

void PairClebsch::open(const char *path)
{
  clb_model_destroy(&model);
  clb_context_destroy(&ctx);
  const std::string name = choose_device();
  const clb_status s = clb_context_create(name.c_str(), &ctx);
  if (s) fail(ctx ? clb_error(ctx) : "no memory");
  check(clb_model_open(ctx, path, &options, &model));
  check(clb_model_describe(model, &info));
  utils::logmesg(lmp, "Clebsch {}: {} model {} on {}\n", clb_version(), info.architecture, path, name);
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

void PairClebsch::init_style()
{
  if (strcmp(update->unit_style, "metal") != 0)
    error->all(FLERR, "Pair style clebsch: units must be metal, not {}", update->unit_style);
  if (utils::strmatch(update->integrate_style, "^respa"))
    error->all(FLERR, "Pair style clebsch: run_style respa would need a part of the forces; use verlet");
  if (!model) error->all(FLERR, "Pair style clebsch: there is no model yet; pair_coeff names it");
  for (int k = 1; k < 4 && atom->molecular != Atom::ATOMIC; k++)
    if (force->special_lj[k] == 0 && force->special_coul[k] == 0 && comm->me == 0)
      error->warning(FLERR, "Pair style clebsch: special_bonds hide pairs of bonded atoms from the model; "
                            "use special_bonds lj/coul 1e-50 1e-50 1e-50");
  neighbor->add_request(this, NeighConst::REQ_FULL);
  listed = false;
}

double PairClebsch::init_one(int, int) { return info.r_max; }

double PairClebsch::memory_usage()
{
  return 4.0 * (species.size() + senders.size() + receivers.size()) +
      8.0 * (forces.size() + e_atom.size() + v_atom.size() + homes.size());
}

/* ---- pairs and ghosts ---- */

/* Two numbers: the process and its row. Ghosts of ghosts have got theirs in an earlier message. */
int PairClebsch::pack_forward_comm(int n, int *list, double *buf, int, int *)
{
  for (int i = 0; i < n; i++) {
    buf[2 * i] = homes[list[i]].rank;
    buf[2 * i + 1] = homes[list[i]].row;
  }
  return 2 * n;
}

void PairClebsch::unpack_forward_comm(int n, int first, double *buf)
{
  for (int i = 0; i < n; i++)
    homes[first + i] = {static_cast<int>(buf[2 * i]), static_cast<int>(buf[2 * i + 1])};
}

void PairClebsch::list_pairs()
{
  const int n_local = atom->nlocal, n_total = n_local + atom->nghost;
  homes.resize(n_total);
  for (int i = 0; i < n_local; i++) homes[i] = {comm->me, i};
  comm->forward_comm(this, 2);

  species.resize(n_total);
  for (int i = 0; i < n_total; i++) species[i] = species_of_type[atom->type[i]];
  senders.clear(), receivers.clear();
  std::vector<char> wanted(n_total, 0);
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
  std::vector<GhostRows::Home> of_ghosts(homes.begin() + n_local, homes.end());
  for (int i = n_local; i < n_total; i++)
    if (!wanted[i]) of_ghosts[i - n_local].rank = -1;
  ghosts.build(world, n_local, of_ghosts);
  forces.resize(3 * static_cast<size_t>(n_total) + 1);
  e_atom.resize(n_local + 1), v_atom.resize(9 * static_cast<size_t>(n_local) + 1);
  listed = true;
}

/* ---- a step ---- */

void PairClebsch::add_results(double energy, const double *virials)
{
  static const int part[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
  const int n = atom->nlocal;
  ghosts.add_home(forces.data());
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
}

void PairClebsch::compute(int eflag, int vflag)
{
  double energy = 0, virials[9] = {0}, nowhere[3] = {0};
  ev_init(eflag, vflag);
  const bool same = listed && neighbor->ago != 0;
  if (!same) list_pairs();
  clb_model_edges e = {};
  clb_model_edge_results r = {};
  e.n_local = atom->nlocal, e.n_total = atom->nlocal + atom->nghost;
  e.n_edges = static_cast<int64_t>(senders.size());
  e.same_graph = same;
  e.species = species.data(), e.senders.host = senders.data(), e.receivers.host = receivers.data();
  e.positions = e.n_total ? atom->x[0] : nowhere;
  e.images = ghosts.images().data();
  if (comm->nprocs > 1) e.exchange = ghosts.exchange();    // one process has images alone
  r.energy = &energy, r.forces = forces.data();
  if (eflag_atom) r.e_atom = e_atom.data();
  if (vflag_global) r.virial = virials;
  if (vflag_atom) r.v_atom = v_atom.data();
  listed = false;    // until it is computed
  check(clb_model_compute_edges(model, &e, &r));
  listed = true;
  add_results(energy, virials);
}
