/* tools/serve/ipi_session.h - one connection in i-PI's protocol, on the side that computes forces:
   bytes in, bytes out, no sockets.

   A message is a word of 12 bytes, padded with blanks, and for some words data in the machine's own
   byte order: int32 and double in atomic units (bohr, hartree).
     from i-PI                                 answer
     STATUS                                    READY, or HAVEDATA after POSDATA
     INIT     bead, length, bytes              none; the text is ignored
     POSDATA  cell[9], inverse[9], n, x[n][3]  none; the cell's columns are the lattice vectors
     GETFORCE                                  FORCEREADY energy, n, forces[n][3], virial[9], length
   0 EXIT                                      none */
#ifndef CLB_TOOLS_SERVE_IPI_SESSION_H
#define CLB_TOOLS_SERVE_IPI_SESSION_H

#include "tools/serve/serve_engine.h"

typedef enum { IPI_OPEN, IPI_ENDED, IPI_BROKEN } ipi_state;

typedef struct {
  serve_engine *engine; /* sessions share it */
  ipi_state state;
  char error[256];                 /* of IPI_BROKEN: a sentence without the connection's name */
  unsigned char *in, *out, *force; /* the message that has begun; answers; the last FORCEREADY */
  size_t n_in, in_room, n_out, sent, out_room; /* bytes; those of out before `sent` are gone */
  bool have;                                   /* `force` is there to be asked for */
} ipi_session;

/* Starts with an empty session; exits if there is no memory. */
void ipi_session_make(ipi_session *s, serve_engine *engine);
void ipi_session_free(ipi_session *s);

/* Takes bytes of the connection, computes where they ask for it, and appends the answers to `out`.
   Does nothing unless the state is IPI_OPEN. */
void ipi_session_take(ipi_session *s, const void *bytes, size_t n);
/* The other side has closed the connection: an error within a message. */
void ipi_session_close(ipi_session *s);

#endif
