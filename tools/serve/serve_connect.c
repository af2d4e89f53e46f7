/* tools/serve/serve_connect.c - connections over UNIX and TCP sockets. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include "tools/serve/serve_connect.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/cli/tool.h"
#include "tools/measure/timing.h"

enum { AGAIN_MS = 50 };

const char *serve_address_text(const serve_address *a) {
  static char text[512];
  if (a->unix_name)
    snprintf(text, sizeof text, "%s%s", strchr(a->unix_name, '/') ? "" : IPI_UNIX_PREFIX,
             a->unix_name);
  else snprintf(text, sizeof text, "%s:%s", a->host, a->port);
  return text;
}

/* One try, until `end`: the connection, or -1 and errno. */
static int try_address(int family, const struct sockaddr *to, socklen_t size, double end) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int error = connect(fd, to, size) ? errno : 0;
  if (error == EINPROGRESS) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    const double left = end - seconds_now();
    socklen_t length = sizeof error;
    if (poll(&p, 1, left > 0 ? (int)(1e3 * left) : 0) == 0) error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length)) error = errno;
  }
  if (!error) {
    if (family != AF_UNIX) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
  }
  close(fd);
  errno = error;
  return -1;
}

static int try_unix(const char *path, double end) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  memcpy(to.sun_path, path, strlen(path) + 1);
  return try_address(AF_UNIX, (const struct sockaddr *)&to, sizeof to, end);
}

static int try_all(const struct addrinfo *list, double end) {
  int fd = -1;
  for (const struct addrinfo *i = list; i && fd < 0; i = i->ai_next)
    fd = try_address(i->ai_family, i->ai_addr, i->ai_addrlen, end);
  return fd;
}

/* Whether another try may do better. */
static bool may_come(int error) {
  return error == ENOENT || error == ECONNREFUSED || error == EAGAIN || error == EINTR;
}

int serve_connect(const serve_address *a, double wait) {
  const char *text = serve_address_text(a);
  const double end = seconds_now() + wait;
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *list = NULL;
  if (a->unix_name && strlen(text) >= sizeof((struct sockaddr_un *)0)->sun_path)
    return warn("%s: the path of a UNIX socket has at most %zu bytes", text,
                sizeof((struct sockaddr_un *)0)->sun_path - 1),
           -1;
  const int unknown = a->unix_name ? 0 : getaddrinfo(a->host, a->port, &hints, &list);
  if (unknown) return warn("%s: %s", text, gai_strerror(unknown)), -1;
  int fd;
  while ((fd = a->unix_name ? try_unix(text, end) : try_all(list, end)) < 0) {
    const int error = errno;
    if (may_come(error) && seconds_now() + 1e-3 * AGAIN_MS < end) {
      progress("waiting for %s", text);
      poll(NULL, 0, AGAIN_MS);
      continue;
    }
    progress(NULL);
    if (may_come(error))
      warn("%s: nobody %s within %g s (--wait); i-PI or ASE listens, clebsch connects", text,
           error == EAGAIN ? "accepted a connection" : "listened", wait);
    else warn("%s: %s", text, strerror(error));
    break;
  }
  if (fd >= 0) progress(NULL);
  if (list) freeaddrinfo(list);
  return fd;
}
