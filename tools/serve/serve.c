/* tools/serve/serve.c - `clebsch serve`: a model's forces for i-PI, ASE and whoever else speaks
   i-PI's protocol, and for drivers of MDI. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "models/atoms/neighbours.h"
#include "tools/dynamics/md_guard.h"
#include "tools/measure/timing.h"
#include "tools/serve/ipi_session.h"
#include "tools/serve/mdi_session.h"
#include "tools/serve/serve_cell.h"
#include "tools/serve/serve_connect.h"

enum { MAX_CLIENTS = 1024, CHUNK = 1 << 16 };
enum { UNIX_NAME = 256, HOST, PORT, MDI, CLIENTS, WAIT, NO_GUARD };

typedef struct {
  md_choice choice;
  serve_address address;
  const char *mdi; /* options of MDI; NULL: i-PI's protocol */
  int clients;
  double wait;
  bool unguarded;
} serve_arguments;

typedef struct {
  md_system y;
  serve_engine engine;
  ipi_session session[MAX_CLIENTS];
  struct pollfd at[MAX_CLIENTS]; /* fd -1: closed */
  int n, open;
  int64_t computed;
  double seconds; /* of all computations */
  bool broken;    /* a connection ended with an error */
  bool unguarded; /* forces may be of any size */
  bool compared;  /* a cell that was sent, with that of the file */
} server;

static error_t parse(int key, char *arg, struct argp_state *state) {
  serve_arguments *a = state->input;
  switch (key) {
    case UNIX_NAME: a->address.unix_name = arg; return 0;
    case HOST: a->address.host = arg; return 0;
    case PORT:
      whole_number(state, "--port", arg, 1, 65535);
      a->address.port = arg;
      return 0;
    case MDI: a->mdi = arg; return 0;
    case CLIENTS: a->clients = (int)whole_number(state, "--clients", arg, 1, MAX_CLIENTS); return 0;
    case WAIT: a->wait = real_number(state, "--wait", arg, 0, 1e6); return 0;
    case NO_GUARD: a->unguarded = true; return 0;
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->choice; return 0;
    case ARGP_KEY_ARG: argp_error(state, "'%s' is one argument too many", arg); return 0;
    case ARGP_KEY_END:
      if (!a->choice.structure) argp_error(state, "--structure is missing");
      if (!!a->address.unix_name + !!a->address.port + !!a->mdi != 1)
        argp_error(state, "one of --unix, --port and --mdi says where to connect");
      if (!a->address.port && a->address.host) argp_error(state, "--host is for --port");
      if (a->mdi && a->clients > 1) argp_error(state, "--clients is not for --mdi");
      if (!a->address.host) a->address.host = "localhost";
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- computing ---- */

static bool compute(serve_engine *e, char *error, size_t size) {
  server *s = e->user;
  md_system *y = &s->y;
  bool p[3];
  serve_periodic(&y->atoms, &e->cell[0][0], p);
  if (!s->compared) serve_compare_cells(&y->atoms, y->from, &e->cell[0][0]);
  s->compared = true;
  const double volume = clb_cell_volume(&e->cell[0][0]);
  const clb_model_atoms atoms = {.n = e->n,
                                 .species = y->species,
                                 .positions = e->positions,
                                 .cell = &e->cell[0][0],
                                 .periodic = {p[0], p[1], p[2]},
                                 .charge = y->atoms.charge,
                                 .spin = y->atoms.spin};
  const clb_model_results results = {&e->energy, NULL, e->forces,
                                     volume > 0 ? &y->stress[0][0] : NULL, NULL};
  const double start = seconds_now();
  if (clb_model_compute(y->model, &atoms, &results))
    return snprintf(error, size, "%s", clb_error(y->ctx)), false;
  if (!s->unguarded && !md_forces_hold(y, error, size)) return false;
  for (int k = 0; k < 9; k++)
    e->virial[k / 3][k % 3] = volume > 0 ? -volume * y->stress[k / 3][k % 3] : 0;
  s->seconds += seconds_now() - start;
  s->computed++;
  return true;
}

static bool set_elements(serve_engine *e, const int32_t *numbers, char *error, size_t size) {
  md_system *y = &((server *)e->user)->y;
  for (int64_t i = 0; i < e->n; i++) {
    const int species = clb_model_species(y->model, numbers[i]);
    if (species < 0)
      return snprintf(error, size, "the model does not know the element %d of atom %lld",
                      (int)numbers[i], (long long)i + 1),
             false;
    y->species[i] = species;
    e->numbers[i] = numbers[i];
  }
  return true;
}

static bool open_model(server *s, serve_arguments *a) {
  structure atoms;
  char error[512];
  /* With several clients a list would be that of whoever came before, and so would be the order of
     sums: results would depend on who is faster. */
  a->choice.options.skin = a->clients == 1 ? CLB_AUTO_SKIN : 0;
  if (!structure_read(a->choice.structure, &a->choice.reading, &atoms, error, sizeof error))
    return warn("%s", error), false;
  const bool good = atoms.n <= INT32_MAX && md_system_open(&s->y, &a->choice);
  if (atoms.n > INT32_MAX)
    warn("%s: the protocol counts at most %d atoms", a->choice.structure, INT32_MAX);
  if (!good) return structure_free(&atoms), false;
  if (!md_system_set_atoms(&s->y, &atoms, a->choice.structure)) return false;
  s->unguarded = a->unguarded;
  s->engine = (serve_engine){.n = s->y.atoms.n,
                             .numbers = s->y.atoms.numbers,
                             .positions = s->y.atoms.positions,
                             .forces = s->y.forces,
                             .compute = compute,
                             .set_elements = set_elements,
                             .user = s};
  memcpy(s->engine.cell, s->y.atoms.cell, sizeof s->engine.cell);
  return true;
}

/* ---- connections ---- */

static void print_begin(const server *s, const serve_arguments *a) {
  printf("model      %s, %lld atoms of %s\n", a->choice.model, (long long)s->y.atoms.n,
         a->choice.structure);
}

static bool open_connections(server *s, const serve_arguments *a) {
  const char *at = serve_address_text(&a->address);
  for (; s->n < a->clients; s->n++) {
    const int fd = serve_connect(&a->address, a->wait);
    if (fd < 0 && s->n)
      warn("%s: %d of %d connections (--clients) were accepted", at, s->n, a->clients);
    if (fd < 0) return false;
    s->at[s->n] = (struct pollfd){.fd = fd, .events = POLLIN};
    ipi_session_make(&s->session[s->n], &s->engine);
  }
  s->open = s->n;
  print_begin(s, a);
  printf("connected  %d client%s to %s\n", s->n, s->n > 1 ? "s" : "", at);
  fflush(stdout);
  return true;
}

/* Sends what fits; false: the other side is gone. */
static bool send_answers(ipi_session *s, int fd) {
  while (s->sent < s->n_out) {
    const ssize_t n = send(fd, s->out + s->sent, s->n_out - s->sent, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    s->sent += (size_t)n;
  }
  return true;
}

static void receive(ipi_session *s, int fd) {
  static char bytes[CHUNK];
  const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
  if (n > 0) ipi_session_take(s, bytes, (size_t)n);
  else if (n == 0 || (errno != EAGAIN && errno != EINTR)) ipi_session_close(s);
}

static void serve_client(server *s, int i) {
  ipi_session *c = &s->session[i];
  struct pollfd *p = &s->at[i];
  if (c->sent == c->n_out) receive(c, p->fd);
  if (!send_answers(c, p->fd)) ipi_session_close(c);
  /* Who does not read its answers is not heard. */
  p->events = c->sent < c->n_out ? POLLOUT : POLLIN;
  if (c->state == IPI_OPEN) return;
  if (c->state == IPI_BROKEN) {
    warn("client %d: %s", i + 1, c->error);
    s->broken = true;
  }
  close(p->fd);
  p->fd = -1;
  s->open--;
  ipi_session_free(c);
}

static bool serve_clients(server *s) {
  while (s->open) {
    if (poll(s->at, (nfds_t)s->n, -1) < 0 && errno != EINTR)
      return warn("poll: %s", strerror(errno)), false;
    for (int i = 0; i < s->n; i++)
      if (s->at[i].fd >= 0 && s->at[i].revents) serve_client(s, i);
  }
  return true;
}

/* false: there was nobody to serve. */
static bool serve_all(server *s, const serve_arguments *a) {
  if (!a->mdi) return open_connections(s, a) && serve_clients(s);
  print_begin(s, a);
  fflush(stdout);
  s->broken = !mdi_serve(a->mdi, &s->engine);
  return !s->broken || s->computed;
}

static bool serve(server *s, const serve_arguments *a) {
  if (!serve_all(s, a)) return false;
  printf("served     %lld computations", (long long)s->computed);
  if (s->computed) printf(", %.4g ms each", 1e3 * s->seconds / (double)s->computed);
  putchar('\n');
  return !s->broken;
}

static void close_all(server *s) {
  for (int i = 0; i < s->n; i++) {
    if (s->at[i].fd < 0) continue;
    close(s->at[i].fd);
    ipi_session_free(&s->session[i]);
  }
  md_system_close(&s->y);
  free(s);
}

int serve_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"unix", UNIX_NAME, "NAME", 0,
       "Connect to the UNIX socket " IPI_UNIX_PREFIX "NAME; a NAME with a slash is its path", 0},
      {"host", HOST, "NAME", 0, "With --port: the machine (default: localhost)", 0},
      {"port", PORT, "N", 0, "Connect to this TCP port", 0},
      {"mdi", MDI, "OPTIONS", 0,
       "Be an engine of MDI, whose library ($CLB_MDI_LIBRARY, else libmdi.so.1) takes the options: "
       "-role ENGINE -name NAME -method TCP -port N -hostname NAME",
       0},
      {"clients", CLIENTS, "N", 0,
       "Connections to open, such as one for each bead (default: 1); the model is opened once", 0},
      {"wait", WAIT, "SECONDS", 0, "Try to connect for so long (default: 30)", 0},
      {"no-guard", NO_GUARD, NULL, 0, "Send forces above 1e4 (eV/A), too", 0},
      {0}};
  static const struct argp_child children[] = {{&md_choice_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .args_doc = "--model MODEL --structure FILE --unix NAME\n"
                  "--model MODEL --structure FILE [--host NAME] --port N\n"
                  "--model MODEL --structure FILE --mdi OPTIONS",
      .doc = "Energies, forces and virials for i-PI, ASE and others that listen for i-PI's "
             "protocol, or for a driver of MDI.\v"
             "The structure says which elements there are, in the other program's order; positions "
             "and cell come over the connection. A cell is periodic in the directions in which the "
             "structure's is, and in all if the structure has none. Ends when all "
             "connections have ended. What is not i-PI's protocol, a force above 1e4 (eV/A) and "
             "results that are not finite end their connection only, with a sentence; the exit "
             "status is then 1."};
  serve_arguments a = {.clients = 1, .wait = 30};
  parse_arguments(&argp, argc, argv, 0, &a);
  server *s = allocate(1, sizeof *s);
  const bool good = open_model(s, &a) && serve(s, &a);
  close_all(s);
  return good ? EXIT_GOOD : EXIT_FAILED;
}
