/* tests/dynamics/test_serve.c - `clebsch serve` as i-PI sees it: its answers, bytes that are not
   the protocol, several connections. Programs that speak the protocol are in tests/hosts. */
#include "tests/command_json.h"
#include "tests/dynamics/model_folder.h"
#include "tests/dynamics/serve_runner.h"

static const char *const served = "serve --model model --exact --structure ";

/* The atoms of atoms.xyz. */
static const sent_atoms box = {6,
                               {{4.3, 0, 0}, {0.2, 4.1, 0}, {0, 0.1, 4.4}},
                               {{0.1, 0.2, 0.3},
                                {1.1, 0.2, 0.1},
                                {-0.2, 1.1, 0.4},
                                {2.2, 2.3, 2.1},
                                {3.1, 2.5, 2.2},
                                {2.0, 2.2, 3.1}}};

static pid_t serve(const char *structure, const char *more) {
  return start_clebsch(format("%s%s %s", served, structure, more));
}

/* It ends with this status and these sentences, and nothing else, on standard error. */
static void expect_end(pid_t pid, int status, const char *said) {
  outcome o = end_of(pid);
  if (o.status != status || strcmp(o.err, said) != 0)
    fail_msg("exit status %d, not %d, and '%s' instead of '%s'", o.status, status, o.err, said);
  forget(&o);
}

static double volume_of(const sent_atoms *a) {
  const double(*c)[3] = a->cell;
  return fabs(c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) -
              c[0][1] * (c[1][0] * c[2][2] - c[1][2] * c[2][0]) +
              c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0]));
}

/* The same energy, forces and stress as those of `clebsch energy`. */
static void expect_like_energy(const char *structure, const sent_atoms *a, const got_force *f) {
  json_t *o = json_of(format("energy --model model --exact --json --structure %s", structure));
  const json_t *forces = json_object_get(o, "forces"), *stress = json_object_get(o, "stress");
  near_to("the energy", f->energy, number_of(o, "energy"), 1e-10);
  assert_int_equal(json_array_size(forces), a->n);
  for (int i = 0; i < a->n; i++)
    for (size_t k = 0; k < 3; k++)
      near_to("a force", f->forces[i][k], at(json_array_get(forces, (size_t)i), k), 1e-10);
  for (size_t k = 0; k < 9; k++)
    near_to("the virial", f->virial[k / 3][k % 3],
            json_is_null(stress) ? 0 : -volume_of(a) * at(stress, k), 1e-10);
  json_decref(o);
}

static void answers(void **state) {
  (void)state;
  const int listening = listen_unix("sock");
  const pid_t pid = serve("atoms.xyz", "--unix ./sock");
  const int fd = accept_one(listening);
  const got_force f = ask_force(fd, &box);
  put_word(fd, "EXIT");
  expect_closed(fd);
  expect_end(pid, 0, "");
  close(fd), close(listening);
  char *out = get_text("out");
  assert_non_null(strstr(out, "connected  1 client to ./sock\n"));
  assert_non_null(strstr(out, "served     1 computations, "));
  free(out);
  double largest = 0;
  for (int i = 0; i < 18; i++) largest = fmax(largest, fabs(f.forces[i / 3][i % 3]));
  assert_true(largest > 1e-3 && fabs(f.virial[0][1]) > 1e-4);
  expect_like_energy("atoms.xyz", &box, &f);
}

/* TCP; a molecule without a cell, which the protocol sends as zeros; the end of the connection
   instead of EXIT. */
static void serves_molecules_over_tcp(void **state) {
  (void)state;
  const sent_atoms pair = {2, {{0}}, {{0, 0, 0}, {0, 0, 1.1}}};
  int port;
  const int listening = listen_tcp(&port);
  const pid_t pid = serve("pair.xyz", format("--host 127.0.0.1 --port %d", port));
  const int fd = accept_one(listening);
  const got_force f = ask_force(fd, &pair);
  close(fd);
  expect_end(pid, 0, "");
  close(listening);
  expect_like_energy("pair.xyz", &pair, &f);
}

/* The cell that is sent is taken, whatever the file says of it, and a sentence says if that is
   another: a structure in the style of i-PI, one without a cell, one with another cell, a slab. */
static void takes_the_cell_that_is_sent(void **state) {
  (void)state;
#define ATOMS                                                                                      \
  "O 0.1 0.2 0.3\nH 1.1 0.2 0.1\nH -0.2 1.1 0.4\nO 2.2 2.3 2.1\nH 3.1 2.5 2.2\nH 2.0 2.2 3.1\n"
  put_text("plain.xyz", "6\n i = 1, E = -3\n" ATOMS);
  put_text("open.xyz", "6\nProperties=species:S:1:pos:R:3 pbc=\"F F F\"\n" ATOMS);
  put_text("large.xyz", "6\nLattice=\"8 0 0 0 8 0 0 0 8\"\n" ATOMS);
  put_text(
      "ipi.xyz",
      "6\n# CELL{GENH}: 4.3 0 0 0.2 4.1 0 0 0.1 4.4 positions{angstrom} cell{angstrom}\n" ATOMS);
#define SENT "4.3 4.10488 4.40114 A, 88.6996 90 87.2073 degrees"
  static const struct {
    const char *file, *said, *like;
  } all[] = {
      {"ipi.xyz", "", "atoms.xyz"},
      {"slab.xyz", "", "slab.xyz"},
      {"plain.xyz",
       "clebsch: plain.xyz has no cell: all directions are periodic in the cell that is sent, " SENT
       "\n",
       "atoms.xyz"},
      {"open.xyz",
       "clebsch: open.xyz has no cell: all directions are periodic in the cell that is sent, " SENT
       "\n",
       "atoms.xyz"},
      {"large.xyz",
       "clebsch: the cell that is sent, " SENT ", is taken, and not that of large.xyz, 8 8 8 A, 90 "
       "90 90 degrees\n",
       "atoms.xyz"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const int listening = listen_unix("sock");
    const pid_t pid = serve(all[i].file, "--unix ./sock");
    const int fd = accept_one(listening);
    const got_force f = ask_force(fd, &box);
    put_word(fd, "EXIT");
    expect_end(pid, 0, all[i].said);
    close(fd), close(listening);
    expect_like_energy(all[i].like, &box, &f);
  }
}

/* Virial and forces are derivatives of the energy; the cell's rows and columns are not mixed up. Of
   a slab, too, which `clebsch energy` gives the same stress. */
static void differentiates(void **state) {
  (void)state;
  const int listening = listen_unix("sock");
  const pid_t pid = serve("slab.xyz", "--unix ./sock");
  const int fd = accept_one(listening);
  const got_force here = ask_force(fd, &box);
  const double h = 1e-4;
  for (int axis = 0; axis < 3; axis++)
    for (int along = 0; along < 3; along++) {
      double energy[2];
      for (int side = 0; side < 2; side++) {
        sent_atoms moved = box;
        const double e = side ? h : -h;
        for (int i = 0; i < 3; i++) moved.cell[i][axis] += e * box.cell[i][along];
        for (int i = 0; i < box.n; i++) moved.positions[i][axis] += e * box.positions[i][along];
        energy[side] = ask_force(fd, &moved).energy;
      }
      near_to("the virial", here.virial[axis][along], -(energy[1] - energy[0]) / (2 * h), 1e-6);
    }
  double energy[2];
  for (int side = 0; side < 2; side++) {
    sent_atoms moved = box;
    moved.positions[4][1] += side ? h : -h;
    energy[side] = ask_force(fd, &moved).energy;
  }
  near_to("a force", here.forces[4][1], -(energy[1] - energy[0]) / (2 * h), 1e-6);
  put_word(fd, "EXIT");
  expect_end(pid, 0, "");
  close(fd), close(listening);
  expect_like_energy("slab.xyz", &box, &here);
  assert_true(fabs(here.virial[2][2]) > 1e-4);
}

/* Bytes come one at a time, all at once, with INIT in between. */
static void takes_bytes_as_they_come(void **state) {
  (void)state;
  char all[2048];
  const int listening = listen_unix("sock");
  const pid_t pid = serve("atoms.xyz", "--unix ./sock");
  const int fd = accept_one(listening);
  const got_force want = ask_force(fd, &box);
  const int32_t init[2] = {3, 5};
  size_t n = 0;
  memcpy(all + n, "INIT        ", WORD), n += WORD;
  memcpy(all + n, init, sizeof init), n += sizeof init;
  memcpy(all + n, "beads", 5), n += 5;
  n += posdata(&box, all + n);
  memcpy(all + n, "GETFORCE    STATUS      ", 2 * WORD), n += 2 * WORD;
  for (int whole = 0; whole < 2; whole++) {
    if (whole) put_bytes(fd, all, n);
    for (size_t i = 0; !whole && i < n; i++) put_bytes(fd, all + i, 1);
    const got_force f = get_force(fd, box.n);
    expect_word(fd, "READY");
    assert_memory_equal(&f, &want, sizeof f);
  }
  put_word(fd, "EXIT");
  expect_end(pid, 0, "");
  close(fd), close(listening);
}

/* ---- bytes that are not the protocol ---- */

typedef struct {
  void (*send)(int fd);
  const char *said; /* NULL: nothing */
} stranger;

static void send_words(int fd) { put_bytes(fd, "GET / HTTP/1.1\r\n\r\n", 18); }
static void send_controls(int fd) { put_bytes(fd, "\x1b[2J\n\0\xff\t    ", WORD); }
static void send_lower_case(int fd) { put_word(fd, "status"); }
static void send_half_a_word(int fd) { put_bytes(fd, "STAT", 4); }
static void send_force_first(int fd) { put_word(fd, "GETFORCE"); }

static void send_atoms(int fd, sent_atoms a, size_t less) {
  char message[1024];
  put_bytes(fd, message, posdata(&a, message) - less);
}

static void send_cut(int fd) { send_atoms(fd, box, 8); }
static void send_twice(int fd) { send_atoms(fd, box, 0), send_atoms(fd, box, 0); }
static void send_fewer(int fd) {
  sent_atoms a = box;
  a.n = 5;
  send_atoms(fd, a, 0);
}
static void send_count(int fd, int32_t n) { /* and no atom */
  char message[1024];
  const size_t head = posdata(&(sent_atoms){0}, message);
  memcpy(message + head - sizeof n, &n, sizeof n);
  put_bytes(fd, message, head);
}
static void send_negative(int fd) { send_count(fd, -1); }
static void send_many(int fd) { send_count(fd, INT32_MAX); }
static void send_nan_cell(int fd) {
  sent_atoms a = box;
  a.cell[1][2] = NAN;
  send_atoms(fd, a, 0);
}
static void send_flat_cell(int fd) {
  sent_atoms a = box;
  memcpy(a.cell[1], a.cell[0], sizeof a.cell[0]);
  send_atoms(fd, a, 0);
}
static void send_infinite_position(int fd) {
  sent_atoms a = box;
  a.positions[5][2] = INFINITY;
  send_atoms(fd, a, 0);
}
static void send_init(int fd, int32_t length) {
  const int32_t init[2] = {0, length};
  put_word(fd, "INIT");
  put_bytes(fd, init, sizeof init);
}
static void send_long_init(int fd) { send_init(fd, 65537); }
static void send_negative_init(int fd) { send_init(fd, -1); }
static void send_nothing(int fd) { shutdown(fd, SHUT_RDWR); }

static const stranger strangers[] = {
    {send_words, "'GET / HTTP/1' is not a message of i-PI's protocol"},
    {send_controls, "'?[2J????    ' is not a message of i-PI's protocol"},
    {send_lower_case, "'status      ' is not a message of i-PI's protocol"},
    {send_half_a_word, "the connection was closed within a message"},
    {send_force_first, "GETFORCE came before POSDATA"},
    {send_cut, "the connection was closed within a message"},
    {send_twice, "POSDATA came before GETFORCE for the last positions"},
    {send_fewer, "POSDATA has 5 atoms, but the structure (--structure) has 6"},
    {send_negative, "POSDATA has -1 atoms, but the structure (--structure) has 6"},
    {send_many, "POSDATA has 2147483647 atoms, but the structure (--structure) has 6"},
    {send_nan_cell, "a number of the cell in POSDATA is not finite"},
    {send_flat_cell,
     "clb_model_compute: cell is singular: its periodic vectors must be finite and span a volume"},
    {send_infinite_position, "a position in POSDATA is not finite"},
    {send_long_init, "INIT has a text of 65537 bytes; 0 to 65536 are allowed"},
    {send_negative_init, "INIT has a text of -1 bytes; 0 to 65536 are allowed"},
    {send_nothing, NULL},
};
enum { STRANGERS = sizeof strangers / sizeof *strangers };

/* Each ends its own connection with its sentence; the first connection is served before, between
   and after them. */
static void strangers_end_alone(void **state) {
  (void)state;
  char said[4096] = "";
  int fd[STRANGERS + 1];
  const int listening = listen_unix("sock");
  const pid_t pid = serve("atoms.xyz", format("--unix ./sock --clients %d", STRANGERS + 1));
  for (int i = 0; i <= STRANGERS; i++) fd[i] = accept_one(listening);
  const got_force before = ask_force(fd[0], &box);
  for (int i = 0; i < STRANGERS; i++) {
    strangers[i].send(fd[i + 1]);
    shutdown(fd[i + 1], SHUT_WR);
    expect_closed(fd[i + 1]);
    close(fd[i + 1]);
    if (strangers[i].said)
      snprintf(said + strlen(said), sizeof said - strlen(said), "clebsch: client %d: %s\n", i + 2,
               strangers[i].said);
    const got_force after = ask_force(fd[0], &box);
    assert_memory_equal(&after, &before, sizeof after);
  }
  put_word(fd[0], "EXIT");
  expect_end(pid, 1, said);
  close(fd[0]), close(listening);
}

/* Who asks without end and reads no answer holds up nobody. */
static void deaf_wait_alone(void **state) {
  (void)state;
  char many[100 * WORD];
  const int listening = listen_unix("sock");
  const pid_t pid = serve("atoms.xyz", "--unix ./sock --clients 2");
  const int deaf = accept_one(listening), good = accept_one(listening);
  const got_force before = ask_force(good, &box);
  for (int i = 0; i < 100; i++) memcpy(many + i * WORD, "STATUS      ", WORD);
  int64_t taken = 0;
  for (ssize_t n; (n = send(deaf, many, sizeof many, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0; taken += n)
    assert_true(taken < 1 << 26); /* it must stop to listen */
  const got_force after = ask_force(good, &box);
  assert_memory_equal(&after, &before, sizeof after);
  close(deaf);
  put_word(good, "EXIT");
  assert_true(ended(pid) >= 0); /* no signal */
  close(good), close(listening);
}

/* Four beads, asked in any order, get the same bits. */
static void serves_beads(void **state) {
  (void)state;
  enum { BEADS = 4 };
  int fd[BEADS];
  got_force first[BEADS];
  sent_atoms bead[BEADS];
  const int listening = listen_unix("sock");
  const pid_t pid = serve("atoms.xyz", "--unix ./sock --clients 4 --knots 64");
  for (int b = 0; b < BEADS; b++) {
    fd[b] = accept_one(listening);
    bead[b] = box;
    bead[b].positions[b][b % 3] += 0.01 * (b + 1);
  }
  for (int b = 0; b < BEADS; b++) first[b] = ask_force(fd[b], &bead[b]);
  for (int b = BEADS; b-- > 0;) {
    const got_force again = ask_force(fd[(b + 1) % BEADS], &bead[b]);
    assert_memory_equal(&again, &first[b], sizeof again);
  }
  assert_true(first[0].energy != first[1].energy);
  for (int b = 0; b < BEADS; b++) put_word(fd[b], "EXIT");
  expect_end(pid, 0, "");
  for (int b = 0; b < BEADS; b++) close(fd[b]);
  close(listening);
}

static void minds_its_arguments(void **state) {
  (void)state;
  static const refusal wrong[] = {
      {"serve --model model --unix ./none", 2, "--structure is missing"},
      {"serve --structure atoms.xyz --unix ./none", 2, "--model is missing"},
      {"serve --model model --structure atoms.xyz", 2,
       "one of --unix, --port and --mdi says where to connect"},
      {"serve --model model --structure atoms.xyz --unix a --port 3", 2,
       "one of --unix, --port and"},
      {"serve --model model --structure atoms.xyz --mdi a --port 3", 2,
       "one of --unix, --port and"},
      {"serve --model model --structure atoms.xyz --mdi a --host b", 2, "--host is for --port"},
      {"serve --model model --structure atoms.xyz --mdi a --clients 2", 2, "--clients is not for"},
      {"serve --model model --structure atoms.xyz --unix a --host b", 2, "--host is for --port"},
      {"serve --model model --structure atoms.xyz --port 0", 2, "--port is a whole number"},
      {"serve --model model --structure atoms.xyz --port 1 --clients 0", 2,
       "--clients is a whole number"},
      {"serve --model model --structure atoms.xyz --port 1 --wait -1", 2, "--wait is a number"},
      {"serve --model model --structure atoms.xyz --unix ./none --wait 0.2", 1,
       "./none: nobody listened within 0.2 s (--wait); i-PI or ASE listens, clebsch connects"},
      {"serve --model model --structure atoms.xyz --unix ./atoms.xyz --wait 0", 1,
       "./atoms.xyz: nobody listened"},
      {"serve --model model --structure atoms.xyz --unix clebsch_nobody --wait 0", 1,
       "/tmp/ipi_clebsch_nobody: nobody listened"},
      {"serve --model model --structure nowhere.xyz --unix ./none", 1, "nowhere.xyz: No such file"},
      {"serve --model nowhere --structure atoms.xyz --unix ./none", 1, "nowhere: No such file"},
  };
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
  char far[256] = "serve --model model --structure atoms.xyz --unix /";
  memset(far + strlen(far), 'a', 120);
  expect_clebsch(far, 1, "the path of a UNIX socket has at most 107 bytes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers),
      cmocka_unit_test(serves_molecules_over_tcp),
      cmocka_unit_test(takes_the_cell_that_is_sent),
      cmocka_unit_test(differentiates),
      cmocka_unit_test(takes_bytes_as_they_come),
      cmocka_unit_test(strangers_end_alone),
      cmocka_unit_test(deaf_wait_alone),
      cmocka_unit_test(serves_beads),
      cmocka_unit_test(minds_its_arguments),
  };
  return cmocka_run_group_tests(tests, make_work, remove_folder);
}
