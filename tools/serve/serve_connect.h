/* tools/serve/serve_connect.h - connections to a program that listens on a UNIX or TCP socket. */
#ifndef CLB_TOOLS_SERVE_SERVE_CONNECT_H
#define CLB_TOOLS_SERVE_SERVE_CONNECT_H

#include <stdbool.h>

/* i-PI and ASE put the socket of a name without a slash into this folder, with this beginning. */
#define IPI_UNIX_PREFIX "/tmp/ipi_"

typedef struct {
  const char *unix_name; /* a name, or a path with a slash; NULL: TCP */
  const char *host, *port;
} serve_address;

/* "/tmp/ipi_NAME" or "HOST:PORT"; the string is valid until the next call. */
const char *serve_address_text(const serve_address *a);

/* Opens a connection that does not block, and tries again for `wait` seconds while nobody listens
   or nobody accepts. -1, after a message on standard error, on failure. */
int serve_connect(const serve_address *a, double wait);

#endif
