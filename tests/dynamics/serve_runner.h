/* tests/dynamics/serve_runner.h - the side of i-PI in a test of `clebsch serve`: listens, and sends
   messages and bytes. */
#ifndef CLB_TESTS_DYNAMICS_SERVE_RUNNER_H
#define CLB_TESTS_DYNAMICS_SERVE_RUNNER_H

#include "tests/dynamics/model_folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

enum { WORD = 12 };
/* Not the library's: 2018 CODATA, Angstrom and eV. */
static const double wire_bohr = 0.529177210903, wire_hartree = 27.211386245988;

static inline int listen_at(int family, const void *address, socklen_t size) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  if (bind(fd, address, size) || listen(fd, 32)) fail_msg("cannot listen: %s", strerror(errno));
  return fd;
}

/* Listens at `./NAME` in the folder of the tests. */
static inline int listen_unix(const char *name) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  snprintf(a.sun_path, sizeof a.sun_path, "%s", name);
  unlink(name);
  return listen_at(AF_UNIX, &a, sizeof a);
}

/* Listens on a free port of the loopback interface. */
static inline int listen_tcp(int *port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof a;
  const int fd = listen_at(AF_INET, &a, sizeof a);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
  *port = ntohs(a.sin_port);
  return fd;
}

/* The next connection; reading from it fails after minutes instead of hanging. */
static inline int accept_one(int listening) {
  const struct timeval patience = {.tv_sec = 300};
  setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) fail_msg("nobody connects: %s", strerror(errno));
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  return fd;
}

static inline void put_bytes(int fd, const void *bytes, size_t n) {
  assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

static inline void get_bytes(int fd, void *bytes, size_t n) {
  const ssize_t got = n ? recv(fd, bytes, n, MSG_WAITALL) : 0;
  if (got != (ssize_t)n) fail_msg("%zd bytes instead of %zu", got, n);
}

static inline void put_word(int fd, const char *word) {
  char padded[WORD + 1];
  snprintf(padded, sizeof padded, "%-12s", word);
  put_bytes(fd, padded, WORD);
}

static inline void expect_word(int fd, const char *word) {
  char got[WORD + 1] = {0};
  get_bytes(fd, got, WORD);
  while (strlen(got) && got[strlen(got) - 1] == ' ') got[strlen(got) - 1] = 0;
  assert_string_equal(got, word);
}

static inline void expect_closed(int fd) {
  char c;
  assert_true(recv(fd, &c, 1, 0) <= 0 && errno != EAGAIN);
}

/* What a POSDATA holds, in Angstrom; rows of the cell are the lattice vectors. */
enum { MAX_ATOMS = 16 };
typedef struct {
  int32_t n;
  double cell[3][3], positions[MAX_ATOMS][3];
} sent_atoms;

/* Writes POSDATA; returns its length. */
static inline size_t posdata(const sent_atoms *a, char *to) {
  double wire[18];
  memset(wire, 0x7f, sizeof wire); /* of the inverse, which nobody reads */
  for (int k = 0; k < 9; k++) wire[k] = a->cell[k % 3][k / 3] / wire_bohr;
  memcpy(to, "POSDATA     ", WORD);
  memcpy(to + WORD, wire, sizeof wire);
  memcpy(to + WORD + sizeof wire, &a->n, sizeof a->n);
  char *at = to + WORD + sizeof wire + sizeof a->n;
  for (int i = 0; i < 3 * a->n; i++, at += sizeof(double))
    memcpy(at, &(double){a->positions[i / 3][i % 3] / wire_bohr}, sizeof(double));
  return (size_t)(at - to);
}

/* The answer to GETFORCE, in eV and Angstrom. */
typedef struct {
  double energy, forces[MAX_ATOMS][3], virial[3][3];
} got_force;

static inline got_force get_force(int fd, int32_t n) {
  got_force f;
  int32_t count, extra;
  memset(&f, 0xff, sizeof f); /* NaN */
  expect_word(fd, "FORCEREADY");
  get_bytes(fd, &f.energy, sizeof f.energy);
  get_bytes(fd, &count, sizeof count);
  assert_int_equal(count, n);
  get_bytes(fd, f.forces, (size_t)n * sizeof f.forces[0]);
  get_bytes(fd, f.virial, sizeof f.virial);
  get_bytes(fd, &extra, sizeof extra);
  assert_int_equal(extra, 0);
  f.energy *= wire_hartree;
  for (int i = 0; i < 3 * n; i++) f.forces[i / 3][i % 3] *= wire_hartree / wire_bohr;
  for (int k = 0; k < 9; k++) f.virial[k / 3][k % 3] *= wire_hartree;
  return f;
}

/* The whole conversation of one step. */
static inline got_force ask_force(int fd, const sent_atoms *a) {
  char message[1024];
  put_word(fd, "STATUS");
  expect_word(fd, "READY");
  put_bytes(fd, message, posdata(a, message));
  put_word(fd, "STATUS");
  expect_word(fd, "HAVEDATA");
  put_word(fd, "GETFORCE");
  return get_force(fd, a->n);
}

#endif
