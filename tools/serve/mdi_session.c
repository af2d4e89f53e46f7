/* tools/serve/mdi_session.c - the engine's side of MDI. Its library connects and moves bytes; it is
   opened when it is asked for (PyPI's pymdi has one). Energies are computed when results of other
   atoms than the last ones are asked for. All is at one node, @DEFAULT. */
#include "tools/serve/mdi_session.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/neighbours.h"
#include "tools/cli/tool.h"

enum { LENGTH = 256 }; /* of names and commands, most */
static const char node[] = "@DEFAULT";

/* Functions of libmdi: its handles are integers. */
typedef struct {
  int (*init)(int *n, char ***arguments), (*get_role)(int *role), (*accept)(int *driver);
  int (*register_node)(const char *node), (*register_command)(const char *node, const char *name);
  int (*receive_command)(char *command, int driver);
  int (*send)(const void *x, int n, int type, int driver),
      (*receive)(void *x, int n, int type, int driver);
  const int *command_length, *integer, *number, *character, *engine;
} library;

static const struct {
  const char *name;
  size_t offset;
} symbols[] = {{"MDI_Init", offsetof(library, init)},
               {"MDI_Get_role", offsetof(library, get_role)},
               {"MDI_Accept_communicator", offsetof(library, accept)},
               {"MDI_Register_node", offsetof(library, register_node)},
               {"MDI_Register_command", offsetof(library, register_command)},
               {"MDI_Recv_command", offsetof(library, receive_command)},
               {"MDI_Send", offsetof(library, send)},
               {"MDI_Recv", offsetof(library, receive)},
               {"MDI_COMMAND_LENGTH", offsetof(library, command_length)},
               {"MDI_INT", offsetof(library, integer)},
               {"MDI_DOUBLE", offsetof(library, number)},
               {"MDI_CHAR", offsetof(library, character)},
               {"MDI_ENGINE", offsetof(library, engine)}};

typedef struct {
  library of;
  int driver;
  serve_engine *engine;
  double *numbers; /* [3 n], at least 9: on their way */
  int32_t *elements;
  bool computed; /* results are those of the atoms as they are */
  bool ended;
  char error[512];
} session;

static bool broken(session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool broken(session *s, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(s->error, sizeof s->error, format, arguments);
  va_end(arguments);
  return false;
}

/* ---- numbers ---- */

static bool put(session *s, const void *x, int64_t n, const int *type) {
  return !s->of.send(x, (int)n, *type, s->driver) || broken(s, "the driver takes no answer");
}

static bool put_numbers(session *s, const double *x, int64_t n, double unit) {
  for (int64_t i = 0; i < n; i++) s->numbers[i] = x[i] / unit;
  return put(s, s->numbers, n, s->of.number);
}

static bool take_numbers(session *s, double *x, int64_t n, const char *what) {
  if (s->of.receive(s->numbers, (int)n, *s->of.number, s->driver))
    return broken(s, "the driver sent no %s", what);
  s->computed = false;
  return serve_take_numbers(s->numbers, n, bohr, x) ||
         broken(s, "a number of the %s is not finite", what);
}

static bool compute(session *s) {
  if (!s->computed && !serve_engine_compute(s->engine, s->error, sizeof s->error)) return false;
  return s->computed = true;
}

/* ---- commands ---- */

static bool send_natoms(session *s) {
  const int n = (int)s->engine->n;
  return put(s, &n, 1, s->of.integer);
}
static bool send_elements(session *s) {
  return put(s, s->engine->numbers, s->engine->n, s->of.integer);
}
static bool take_elements(session *s) {
  serve_engine *e = s->engine;
  if (s->of.receive(s->elements, (int)e->n, *s->of.integer, s->driver))
    return broken(s, "the driver sent no elements");
  s->computed = false;
  return e->set_elements(e, s->elements, s->error, sizeof s->error);
}
static bool send_cell(session *s) { return put_numbers(s, &s->engine->cell[0][0], 9, bohr); }
static bool take_cell(session *s) { return take_numbers(s, &s->engine->cell[0][0], 9, "cell"); }
static bool send_coords(session *s) {
  return put_numbers(s, s->engine->positions, 3 * s->engine->n, bohr);
}
static bool take_coords(session *s) {
  return take_numbers(s, s->engine->positions, 3 * s->engine->n, "positions");
}
static bool send_energy(session *s) {
  return compute(s) && put_numbers(s, &s->engine->energy, 1, hartree);
}
static bool send_forces(session *s) {
  return compute(s) && put_numbers(s, s->engine->forces, 3 * s->engine->n, hartree / bohr);
}
/* The virial over the volume: positive where the cell wants to grow, as LAMMPS has it. */
static bool send_stress(session *s) {
  const double volume = clb_cell_volume(&s->engine->cell[0][0]);
  return compute(s) && put_numbers(s, &s->engine->virial[0][0], 9,
                                   volume > 0 ? hartree * volume / (bohr * bohr * bohr) : hartree);
}
static bool send_node(session *s) {
  char name[LENGTH] = "";
  memcpy(name, node, sizeof node);
  return put(s, name, *s->of.command_length, s->of.character);
}
static bool stay(session *s) { return s != NULL; }
static bool end(session *s) { return s->ended = true; }

static const struct {
  const char *name;
  bool (*on)(session *s);
} commands[] = {{"<@", send_node},
                {"<NATOMS", send_natoms},
                {"<ELEMENTS", send_elements},
                {">ELEMENTS", take_elements},
                {"<CELL", send_cell},
                {">CELL", take_cell},
                {"<COORDS", send_coords},
                {">COORDS", take_coords},
                {"<ENERGY", send_energy},
                {"<PE", send_energy},
                {"<FORCES", send_forces},
                {"<STRESS", send_stress},
                {"@", stay},
                {"@DEFAULT", stay},
                {"EXIT", end}};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* ---- the library ---- */

static bool open_library(library *of) {
  const char *named = getenv("CLB_MDI_LIBRARY");
  void *from = dlopen(named && *named ? named : "libmdi.so.1", RTLD_NOW);
  if (!from)
    return warn("--mdi: %s; CLB_MDI_LIBRARY names MDI's library (pip install pymdi has it: "
                "mdi/libmdi.so)",
                dlerror()),
           false;
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *found = dlsym(from, symbols[i].name);
    if (!found) return warn("--mdi: MDI's library has no %s; 1.4 has it", symbols[i].name), false;
    memcpy((char *)of + symbols[i].offset, &found, sizeof found);
  }
  return *of->command_length <= LENGTH ||
         (warn("--mdi: commands of MDI's library have %d characters, more than %d",
               *of->command_length, LENGTH),
          false);
}

static bool connect_driver(session *s, const char *options) {
  library *of = &s->of;
  int role;
  char *arguments[] = {(char[]){"clebsch"}, (char[]){"-mdi"}, (char *)(uintptr_t)options, NULL};
  char **at = arguments;
  int n = 3;
  if (of->init(&n, &at)) return broken(s, "MDI's library does not take the options '%s'", options);
  if (of->get_role(&role) || role != *of->engine)
    return broken(s, "the options must have -role ENGINE, not '%s'", options);
  int bad = of->register_node(node);
  for (int i = 0; i < COMMANDS; i++) bad |= of->register_command(node, commands[i].name);
  return (!bad && !of->accept(&s->driver)) || broken(s, "no driver was reached");
}

/* The library answers by itself what is of no program, such as <NAME. */
static bool serve_command(session *s) {
  char name[LENGTH + 1] = "";
  if (s->of.receive_command(name, s->driver)) return broken(s, "the driver is gone, without EXIT");
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(name, commands[i].name)) return commands[i].on(s);
  return broken(s, "the command %s is not served; those of '<COMMANDS' are", name);
}

bool mdi_serve(const char *options, serve_engine *e) {
  session s = {.engine = e};
  if (!open_library(&s.of)) return false;
  const size_t n = (size_t)e->n;
  s.numbers = allocate(3 * n + 9, sizeof *s.numbers);
  s.elements = allocate(n, sizeof *s.elements);
  signal(SIGPIPE, SIG_IGN);
  bool good = connect_driver(&s, options);
  while (good && !s.ended) good = serve_command(&s);
  if (!good) warn("--mdi: %s", s.error);
  free(s.numbers);
  free(s.elements);
  return good;
}
