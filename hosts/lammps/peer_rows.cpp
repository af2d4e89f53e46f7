/* peer_rows.cpp - device memory in which other processes of the host read rows of their ghosts. */
#include "peer_rows.h"

#include <cstring>

void PeerRows::open(MPI_Comm world, clb_context *context, size_t most)
{
  int n, rank;
  close();
  ctx = context;
  row_bytes = most;
  MPI_Comm_size(world, &n);
  MPI_Comm_rank(world, &rank);
  peers.assign(n, nullptr);
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &n);
  MPI_Comm_rank(host, &me);
  ranks.resize(n), handles.resize(n);
  opened.assign(n, nullptr);
  MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, host);
}

void PeerRows::close_opened()
{
  for (clb_buffer *&b : opened) clb_buffer_destroy(&b);
}

/* Nobody frees what others have open. */
void PeerRows::close()
{
  int over = 0;
  if (host == MPI_COMM_NULL) return;
  close_opened();
  MPI_Finalized(&over);
  if (!over) {
    MPI_Barrier(host);
    MPI_Comm_free(&host);
  }
  host = MPI_COMM_NULL;
  clb_buffer_destroy(&own);
  bytes = 0;
}

void PeerRows::make_room(int64_t rows)
{
  const auto bytes_of = [&](int64_t n) { return 2 * (static_cast<uint64_t>(n) * row_bytes + 256); };
  int grows = bytes_of(rows) > bytes, any;
  MPI_Allreduce(&grows, &any, 1, MPI_INT, MPI_MAX, host);
  if (!any) return;
  close_opened();
  tried.assign(ranks.size(), 0);
  clb_ipc_handle handle = handles[me];
  MPI_Barrier(host);
  if (grows) {
    clb_buffer_destroy(&own);
    bytes = bytes_of(rows + rows / 4);
    none = clb_buffer_create_ipc(ctx, bytes, &handle, &own) ? clb_error(ctx) : "";
  }
  MPI_Allgather(&handle, sizeof handle, MPI_BYTE, handles.data(), sizeof handle, MPI_BYTE, host);
}

/* After it could not be opened, or could not open what is here. */
std::string PeerRows::reason(size_t other) const
{
  static const clb_ipc_handle nothing = {};
  const std::string process = "process " + std::to_string(ranks[other]);
  if (!own) return process + ": " + none;
  if (opened[other]) return process + ", which cannot open the memory of this one";
  if (!memcmp(&handles[other], &nothing, sizeof nothing)) return process + ", whose device has no such memory";
  return process + ": " + clb_error(ctx);
}

const std::vector<clb_buffer *> &PeerRows::connect(const std::vector<char> &neighbours, int64_t rows)
{
  const size_t n = ranks.size();
  if (n == 1) return peers;
  make_room(rows);
  std::vector<int> mine(n, 0), theirs(n);
  why.clear();
  for (size_t h = 0; h < n; h++) {
    if (!neighbours[ranks[h]] || static_cast<int>(h) == me) continue;
    if (own && !tried[h] && clb_buffer_open_ipc(ctx, &handles[h], &opened[h])) why = reason(h);
    tried[h] = 1;
    mine[h] = opened[h] != nullptr;
  }
  MPI_Alltoall(mine.data(), 1, MPI_INT, theirs.data(), 1, MPI_INT, host);
  for (size_t h = 0; h < n; h++) {
    peers[ranks[h]] = mine[h] && theirs[h] ? opened[h] : nullptr;
    const bool messages = neighbours[ranks[h]] && !peers[ranks[h]] && static_cast<int>(h) != me;
    if (messages && why.empty()) why = reason(h);
  }
  return peers;
}
