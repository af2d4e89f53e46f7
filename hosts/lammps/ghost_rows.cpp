/* ghost_rows.cpp - rows of ghosts between MPI processes. */
#include "ghost_rows.h"

#include <algorithm>
#include <numeric>

enum { TAG = 7119, TAG_PLACES, TAG_WORD };

/* Where each process's rows begin, if they lie in this order of processes; returns their number. */
static int first_rows(const std::vector<int> &counts, const std::vector<int> &order,
                      std::vector<int> &first)
{
  int n = 0;
  first.resize(counts.size());
  for (int p : order) first[p] = n, n += counts[p];
  return n;
}

void GhostRows::open(MPI_Comm world, clb_context *ctx, size_t row_bytes, bool p2p)
{
  comm = world;
  allowed = p2p;
  memory.close();
  if (allowed) memory.open(world, ctx, row_bytes);
}

/* Peers, and the order of processes in all lists: peers come first. */
void GhostRows::connect(const std::vector<int> &wanted, const std::vector<int> &asked,
                        std::vector<int> &order)
{
  const size_t n = wanted.size();
  std::vector<char> neighbours(n);
  const int64_t rows = std::max(std::accumulate(wanted.begin(), wanted.end(), 0),
                                std::accumulate(asked.begin(), asked.end(), 0));
  for (size_t p = 0; p < n; p++) neighbours[p] = wanted[p] || asked[p];
  const std::vector<clb_buffer *> none(n, nullptr),
      &opened = allowed ? memory.connect(neighbours, rows) : none;
  peers.clear(), peer_ranks.clear();
  p2p_rows[0] = p2p_rows[1] = 0;
  order.resize(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](int p) { return opened[p] != nullptr; });
  for (int p : order) {
    if (!opened[p]) break;
    peer_ranks.push_back(p);
    peers.push_back({opened[p], asked[p], wanted[p], 0, 0});
    p2p_rows[0] += asked[p], p2p_rows[1] += wanted[p];
  }
  others = std::count(neighbours.begin(), neighbours.end(), 1) - peers.size();
}

/* Peers tell each other where the rows of the other begin in their lists. */
void GhostRows::meet(const std::vector<int> &wanted_first, const std::vector<int> &asked_first)
{
  const size_t n = peers.size();
  std::vector<int> mine(2 * n), theirs(2 * n);
  std::vector<MPI_Request> requests(2 * n);
  for (size_t i = 0; i < n; i++) {
    const int p = peer_ranks[i];
    mine[2 * i] = asked_first[p], mine[2 * i + 1] = wanted_first[p];
    MPI_Irecv(&theirs[2 * i], 2, MPI_INT, p, TAG_PLACES, comm, &requests[2 * i]);
    MPI_Isend(&mine[2 * i], 2, MPI_INT, p, TAG_PLACES, comm, &requests[2 * i + 1]);
  }
  MPI_Waitall(static_cast<int>(2 * n), requests.data(), MPI_STATUSES_IGNORE);
  for (size_t i = 0; i < n; i++)
    peers[i].receive_at = theirs[2 * i], peers[i].send_at = theirs[2 * i + 1];
}

void GhostRows::build(int n_local, const std::vector<Home> &homes)
{
  int me, n_processes;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &n_processes);

  std::vector<int> wanted(n_processes, 0), asked(n_processes), wanted_first, asked_first, rows, order;
  image.assign(homes.size(), -1);
  receive.clear();
  for (size_t g = 0; g < homes.size(); g++)
    if (homes[g].rank == me) image[g] = homes[g].row;
    else if (homes[g].rank >= 0) {
      receive.push_back(static_cast<int32_t>(n_local + g));
      wanted[homes[g].rank]++;
    }
  MPI_Alltoall(wanted.data(), 1, MPI_INT, asked.data(), 1, MPI_INT, comm);
  connect(wanted, asked, order);
  first_rows(wanted, order, wanted_first);
  send.resize(first_rows(asked, order, asked_first));
  meet(wanted_first, asked_first);

  /* Tell each home which of its rows are wanted here, in this order. */
  auto home = [&](int32_t ghost) -> const Home & { return homes[ghost - n_local]; };
  std::vector<int> place(n_processes);
  for (int i = 0; i < n_processes; i++) place[order[i]] = i;
  std::stable_sort(receive.begin(), receive.end(),
                   [&](int32_t a, int32_t b) { return place[home(a).rank] < place[home(b).rank]; });
  for (int32_t ghost : receive) rows.push_back(home(ghost).row);
  MPI_Alltoallv(rows.data(), wanted.data(), wanted_first.data(), MPI_INT, send.data(), asked.data(),
                asked_first.data(), MPI_INT, comm);

  senders.clear(), receivers.clear();
  for (int i = 0; i < n_processes; i++) {
    const int p = order[i];
    const bool p2p = i < n_p2p();
    if (wanted[p]) senders.push_back({p, wanted_first[p], wanted[p], p2p});
    if (asked[p]) receivers.push_back({p, asked_first[p], asked[p], p2p});
  }
  lists = {};
  lists.n_send = static_cast<int64_t>(send.size()), lists.send = send.data();
  lists.n_receive = static_cast<int64_t>(receive.size()), lists.receive = receive.data();
  lists.n_peers = n_p2p(), lists.peers = peers.data(), lists.out = memory.out();
  lists.move = move, lists.gather = gather, lists.user = this;
  count_all(n_local);
}

/* Local atoms of all processes. */
void GhostRows::count_all(int n_local)
{
  int me, n_processes;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &n_processes);
  counts.resize(n_processes), firsts.resize(n_processes);
  MPI_Allgather(&n_local, 1, MPI_INT, counts.data(), 1, MPI_INT, comm);
  std::partial_sum(counts.begin(), counts.end() - 1, firsts.begin() + 1);
  lists.n_all = static_cast<int64_t>(firsts.back()) + counts.back(), lists.first = firsts[me];
}

clb_status GhostRows::gather(void *user, int64_t columns, const double *from, double *to)
{
  const GhostRows &rows = *static_cast<GhostRows *>(user);
  int me;
  MPI_Datatype row;
  MPI_Comm_rank(rows.comm, &me);
  MPI_Type_contiguous(static_cast<int>(columns), MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  MPI_Allgatherv(from, rows.counts[me], row, to, rows.counts.data(), rows.firsts.data(), row, rows.comm);
  MPI_Type_free(&row);
  return CLB_OK;
}

/* from: the rows of `send`, backward those of `receive`; to: the others. With peers: only the rows
   after theirs; a word to and from each of them. */
void GhostRows::carry(bool backward, size_t row_bytes, const char *from, char *to, bool with_peers)
{
  const std::vector<Peer> &sources = backward ? receivers : senders,
                          &targets = backward ? senders : receivers;
  const int before_from = with_peers ? p2p_rows[backward] : 0,
            before_to = with_peers ? p2p_rows[!backward] : 0;
  MPI_Datatype row;
  std::vector<MPI_Request> requests;
  const auto add = [&] { return requests.emplace_back(), &requests.back(); };
  requests.reserve(sources.size() + targets.size() + 2 * peers.size());
  MPI_Type_contiguous(static_cast<int>(row_bytes), MPI_BYTE, &row);
  MPI_Type_commit(&row);
  for (const Peer &p : sources)
    if (!(with_peers && p.p2p))
      MPI_Irecv(to + (p.first - before_to) * row_bytes, p.n, row, p.rank, TAG, comm, add());
  for (const Peer &p : targets)
    if (!(with_peers && p.p2p))
      MPI_Isend(from + (p.first - before_from) * row_bytes, p.n, row, p.rank, TAG, comm, add());
  for (int i = 0; with_peers && i < n_p2p(); i++) {
    MPI_Irecv(nullptr, 0, MPI_BYTE, peer_ranks[i], TAG_WORD, comm, add());
    MPI_Isend(nullptr, 0, MPI_BYTE, peer_ranks[i], TAG_WORD, comm, add());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  MPI_Type_free(&row);
}

clb_status GhostRows::move(void *user, int backward, int64_t columns, clb_dtype type,
                           const void *from, void *to)
{
  const size_t bytes = static_cast<size_t>(columns) * (type == CLB_F64 ? 8 : 4);
  static_cast<GhostRows *>(user)->carry(backward != 0, bytes, static_cast<const char *>(from),
                                        static_cast<char *>(to), true);
  return CLB_OK;
}

void GhostRows::add_home(double *x)
{
  std::vector<double> out(3 * receive.size()), in(3 * send.size());
  for (size_t i = 0; i < out.size(); i++) out[i] = x[3 * static_cast<size_t>(receive[i / 3]) + i % 3];
  carry(true, 3 * sizeof(double), reinterpret_cast<const char *>(out.data()),
        reinterpret_cast<char *>(in.data()), false);
  for (size_t i = 0; i < in.size(); i++) x[3 * static_cast<size_t>(send[i / 3]) + i % 3] += in[i];
}
