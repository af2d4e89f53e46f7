/* ghost_rows.h - rows of ghosts, and those of all atoms, between MPI processes: who sends which, and
   the messages. Processes of one host read rows of ghosts from each other's devices where they can
   (peer_rows.h). */
#ifndef CLEBSCH_GHOST_ROWS_H
#define CLEBSCH_GHOST_ROWS_H

#include "peer_rows.h"

#include <clebsch/model.h>
#include <mpi.h>
#include <vector>

class GhostRows {
 public:
  /* Where an atom is a local one: its process, and its row there. */
  struct Home {
    int rank, row;
  };
  /* Collective, before the first build and again before it closes: the context and the widest rows
     of a model. p2p: from device to device where that is possible. */
  void open(MPI_Comm world, clb_context *ctx, size_t row_bytes, bool p2p);
  void close() { memory.close(); }
  /* Collective. homes: of each ghost, of which there are as many rows after n_local; a rank below
     0: not wanted. Ghosts whose home is this process need no messages. */
  void build(int n_local, const std::vector<Home> &homes);

  /* For clb_model_compute_edges; valid until the next build. */
  const clb_model_exchange *exchange() const { return &lists; }
  /* Local atoms of which ghosts are images; -1: of another process. */
  const std::vector<int32_t> &images() const { return image; }
  /* Which neighbour of this host has messages although it is not to, and why; empty: none. */
  const std::string &refusal() const { return memory.refusal(); }
  /* Processes whose rows this one reads on their devices, and those that send theirs. */
  int n_p2p() const { return static_cast<int>(peers.size()); }
  int n_messages() const { return static_cast<int>(others); }
  /* Collective. Adds the rows of ghosts, [3], to those of their homes. */
  void add_home(double *x);

 private:
  /* Rows first ... first + n - 1 of a list go to, or come from, this process. */
  struct Peer {
    int rank, first, n;
    bool p2p;
  };
  MPI_Comm comm = MPI_COMM_NULL;
  bool allowed = false;
  PeerRows memory;
  std::vector<clb_model_peer> peers; /* whose rows are first in all lists */
  std::vector<int> peer_ranks;
  size_t others = 0; /* neighbours that are none */
  int p2p_rows[2] = {0, 0};             /* of `send`, and of `receive` */
  std::vector<Peer> senders, receivers; /* processes whose atoms are ghosts here, and the others */
  std::vector<int32_t> send, receive, image;
  std::vector<int> counts, firsts; /* local atoms of each process, and those of the processes before */
  clb_model_exchange lists = {};

  static clb_status move(void *user, int backward, int64_t columns, clb_dtype type,
                         const void *from, void *to);
  static clb_status gather(void *user, int64_t columns, const double *from, double *to);
  void count_all(int n_local);
  void connect(const std::vector<int> &wanted, const std::vector<int> &asked,
               std::vector<int> &order);
  void meet(const std::vector<int> &wanted_first, const std::vector<int> &asked_first);
  void carry(bool backward, size_t row_bytes, const char *from, char *to, bool with_peers);
};

#endif
