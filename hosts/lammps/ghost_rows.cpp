/* ghost_rows.cpp - rows of ghosts between MPI processes. */
#include "ghost_rows.h"

#include <algorithm>
#include <numeric>

/* The peers that exchange any rows, from the number for each process. */
static int first_rows(const std::vector<int> &counts, std::vector<int> &first)
{
  first.assign(counts.size(), 0);
  for (size_t p = 1; p < counts.size(); p++) first[p] = first[p - 1] + counts[p - 1];
  return counts.empty() ? 0 : first.back() + counts.back();
}

void GhostRows::build(MPI_Comm world, int n_local, const std::vector<Home> &homes)
{
  int me, n_processes;
  comm = world;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &n_processes);

  image.assign(homes.size(), -1);
  receive.clear();
  for (size_t g = 0; g < homes.size(); g++)
    if (homes[g].rank == me) image[g] = homes[g].row;
    else if (homes[g].rank >= 0) receive.push_back(static_cast<int32_t>(n_local + g));
  auto home = [&](int32_t ghost) -> const Home & { return homes[ghost - n_local]; };
  std::stable_sort(receive.begin(), receive.end(),
                   [&](int32_t a, int32_t b) { return home(a).rank < home(b).rank; });

  /* Tell each home which of its rows are wanted here, in this order. */
  std::vector<int> wanted(n_processes, 0), asked(n_processes), wanted_first, asked_first, rows;
  for (int32_t ghost : receive) {
    wanted[home(ghost).rank]++;
    rows.push_back(home(ghost).row);
  }
  MPI_Alltoall(wanted.data(), 1, MPI_INT, asked.data(), 1, MPI_INT, comm);
  first_rows(wanted, wanted_first);
  send.resize(first_rows(asked, asked_first));
  MPI_Alltoallv(rows.data(), wanted.data(), wanted_first.data(), MPI_INT, send.data(), asked.data(),
                asked_first.data(), MPI_INT, comm);

  senders.clear(), receivers.clear();
  for (int p = 0; p < n_processes; p++) {
    if (wanted[p]) senders.push_back({p, wanted_first[p], wanted[p]});
    if (asked[p]) receivers.push_back({p, asked_first[p], asked[p]});
  }
  lists = {};
  lists.n_send = static_cast<int64_t>(send.size()), lists.send = send.data();
  lists.n_receive = static_cast<int64_t>(receive.size()), lists.receive = receive.data();
  lists.move = move, lists.user = this;
}

/* from: the rows of `send`, backward those of `receive`; to: the others. */
void GhostRows::carry(bool backward, size_t row_bytes, const char *from, char *to)
{
  const std::vector<Peer> &sources = backward ? receivers : senders,
                          &targets = backward ? senders : receivers;
  enum { TAG = 7119 };
  MPI_Datatype row;
  std::vector<MPI_Request> requests;
  MPI_Type_contiguous(static_cast<int>(row_bytes), MPI_BYTE, &row);
  MPI_Type_commit(&row);
  for (const Peer &p : sources) {
    requests.emplace_back();
    MPI_Irecv(to + p.first * row_bytes, p.n, row, p.rank, TAG, comm, &requests.back());
  }
  for (const Peer &p : targets) {
    requests.emplace_back();
    MPI_Isend(from + p.first * row_bytes, p.n, row, p.rank, TAG, comm, &requests.back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  MPI_Type_free(&row);
}

clb_status GhostRows::move(void *user, int backward, int64_t columns, clb_dtype type,
                           const void *from, void *to)
{
  const size_t bytes = static_cast<size_t>(columns) * (type == CLB_F64 ? 8 : 4);
  static_cast<GhostRows *>(user)->carry(backward != 0, bytes, static_cast<const char *>(from),
                                        static_cast<char *>(to));
  return CLB_OK;
}

void GhostRows::add_home(double *x)
{
  std::vector<double> out(3 * receive.size()), in(3 * send.size());
  for (size_t i = 0; i < out.size(); i++) out[i] = x[3 * static_cast<size_t>(receive[i / 3]) + i % 3];
  carry(true, 3 * sizeof(double), reinterpret_cast<const char *>(out.data()),
        reinterpret_cast<char *>(in.data()));
  for (size_t i = 0; i < in.size(); i++) x[3 * static_cast<size_t>(send[i / 3]) + i % 3] += in[i];
}
