/* devices.cpp - which device each process of the pair style takes, and the model on it. */
#include "pair_clebsch.h"

#include "comm.h"
#include "error.h"
#include "utils.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sched.h>
#include <unistd.h>

using namespace LAMMPS_NS;

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

/* Collective: on the first process, the devices of all, and how many use each. */
std::string PairClebsch::devices_of_all(const std::string &own) const
{
  enum { SIZE = 64 };
  char name[SIZE] = "";
  std::vector<char> names(static_cast<size_t>(SIZE) * comm->nprocs);
  snprintf(name, SIZE, "%s", own.c_str());
  MPI_Gather(name, SIZE, MPI_CHAR, names.data(), SIZE, MPI_CHAR, 0, world);
  std::map<std::string, int> processes;
  for (int p = 0; p < comm->nprocs; p++) processes[names.data() + static_cast<size_t>(SIZE) * p]++;
  std::string all;
  for (const auto &[device, n] : processes) {
    all += (all.empty() ? "" : ", ") + device;
    if (n > 1) all += " (" + std::to_string(n) + " processes)";
  }
  return all;
}

void PairClebsch::check(clb_status s) const
{
  if (s) fail(clb_error(ctx));
}

void PairClebsch::open(const char *path)
{
  clb_model_destroy(&model);
  ghosts.close();
  clb_context_destroy(&ctx);
  const std::string name = choose_device();
  check(clb_context_create(name.c_str(), &ctx));
  check(clb_model_open(ctx, path, &options, &model));
  check(clb_model_describe(model, &info));
  ghosts.open(world, ctx,
              static_cast<size_t>(info.exchange_columns) * (options.dtype == CLB_F64 ? 8 : 4),
              p2p != NO);
  const std::string all = devices_of_all(name);
  const char *note = clb_context_note(ctx);
  if (note && comm->me == 0) error->warning(FLERR, "Pair style clebsch: {}", note);
  if (comm->me == 0)
    utils::logmesg(lmp, "Clebsch {}: {} model {} on {}\n", clb_version(), info.architecture, path, all);
}
