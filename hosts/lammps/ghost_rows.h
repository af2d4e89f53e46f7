/* ghost_rows.h - rows of ghosts between MPI processes: who sends which, and the messages. */
#ifndef CLEBSCH_GHOST_ROWS_H
#define CLEBSCH_GHOST_ROWS_H

#include <clebsch/model.h>
#include <mpi.h>
#include <vector>

class GhostRows {
 public:
  /* Where an atom is a local one: its process, and its row there. */
  struct Home {
    int rank, row;
  };
  /* Collective. homes: of each ghost, of which there are as many rows after n_local; a rank below
     0: not wanted. Ghosts whose home is this process need no messages. */
  void build(MPI_Comm comm, int n_local, const std::vector<Home> &homes);

  /* For clb_model_compute_edges; valid until the next build. */
  const clb_model_exchange *exchange() const { return &lists; }
  /* Local atoms of which ghosts are images; -1: of another process. */
  const std::vector<int32_t> &images() const { return image; }
  /* Collective. Adds the rows of ghosts, [3], to those of their homes. */
  void add_home(double *x);

 private:
  /* Rows first ... first + n - 1 of a list go to, or come from, this process. */
  struct Peer {
    int rank, first, n;
  };
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<Peer> senders, receivers; /* processes whose atoms are ghosts here, and the others */
  std::vector<int32_t> send, receive, image;
  clb_model_exchange lists = {};

  static clb_status move(void *user, int backward, int64_t columns, clb_dtype type,
                         const void *from, void *to);
  void carry(bool backward, size_t row_bytes, const char *from, char *to);
};

#endif
