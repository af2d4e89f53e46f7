/* peer_rows.h - device memory in which other processes of the host read rows of their ghosts. */
#ifndef CLEBSCH_PEER_ROWS_H
#define CLEBSCH_PEER_ROWS_H

#include <clebsch/clebsch.h>
#include <mpi.h>
#include <string>
#include <vector>

class PeerRows {
 public:
  PeerRows() = default;
  PeerRows(const PeerRows &) = delete;
  PeerRows &operator=(const PeerRows &) = delete;
  ~PeerRows() { close(); }

  /* Collective, as all that follow. Rows have at most row_bytes. */
  void open(MPI_Comm world, clb_context *ctx, size_t row_bytes);
  void close();
  /* Makes room for so many rows, and opens the memory of neighbours: of a process of this world,
     nullptr where rows go by messages: it is on another host, or one of the two cannot open the
     other's. */
  const std::vector<clb_buffer *> &connect(const std::vector<char> &neighbours, int64_t rows);

  clb_buffer *out() const { return own; }
  /* Which neighbour of this host has messages, and why; empty: none. */
  const std::string &refusal() const { return why; }

 private:
  MPI_Comm host = MPI_COMM_NULL; /* processes of this host */
  clb_context *ctx = nullptr;
  size_t row_bytes = 0;
  int me = 0;
  std::vector<int> ranks; /* in the world, of those of the host */
  clb_buffer *own = nullptr;
  uint64_t bytes = 0; /* of own, or those for which there was none */
  std::vector<clb_ipc_handle> handles;
  std::vector<clb_buffer *> opened, peers; /* by rank of the host, and of the world */
  std::vector<char> tried;
  std::string why, none; /* none: why this process has no memory of its own */

  void close_opened();
  void make_room(int64_t rows);
  std::string reason(size_t other) const;
};

#endif
