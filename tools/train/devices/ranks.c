/* tools/train/devices/ranks.c - MPI by dlopen. Handles are numbers of the type int (MPICH),
   pointers that the standard's ABI numbers, or addresses of the library's variables (Open MPI). */
#include "tools/train/devices/ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/tool.h"
#include "tools/common/output.h"

typedef void (*call)(void);
typedef struct {
  int (*init)(int *, char ***);
  int (*finalize)(void);
  call rank, size, reduce, bcast, abort;
} mpi_calls;
static const struct {
  const char *name;
  size_t offset;
} symbols[] = {
    {"MPI_Init", offsetof(mpi_calls, init)},      {"MPI_Finalize", offsetof(mpi_calls, finalize)},
    {"MPI_Comm_rank", offsetof(mpi_calls, rank)}, {"MPI_Comm_size", offsetof(mpi_calls, size)},
    {"MPI_Reduce", offsetof(mpi_calls, reduce)},  {"MPI_Bcast", offsetof(mpi_calls, bcast)},
    {"MPI_Abort", offsetof(mpi_calls, abort)},
};

/* MPI_COMM_WORLD, MPI_DOUBLE and MPI_SUM. */
typedef enum { WORLD, NUMBER, SUM, HANDLES } mpi_handle;
typedef struct {
  const char *names[4]; /* of the library, up to a NULL */
  bool ints;            /* handles are ints */
  uintptr_t handle[HANDLES];
  const char *variables[HANDLES]; /* in place of these */
} mpi_abi;
static const mpi_abi abis[] = {
    {{"libmpi_abi.so.1", "libmpi_abi.so.0"}, false, {0x101, 0x214, 0x21}, {NULL}},
    {{"libmpi.so.12", "libmpi_cray.so.12", "libmpich.so.12"},
     true,
     {0x44000000, 0x4c00080b, 0x58000003},
     {NULL}},
    {{"libmpi.so.40", "libmpi.so.80"},
     false,
     {0},
     {"ompi_mpi_comm_world", "ompi_mpi_double", "ompi_mpi_op_sum"}},
};
enum { ABIS = sizeof abis / sizeof *abis };

static struct {
  mpi_calls of;
  bool ints;
  uintptr_t handle[HANDLES];
  rank_numbers numbers;
} mpi = {.numbers = {1, 0, 1, 0}};

/* ---- calls ---- */

#define INT(h) ((int)mpi.handle[h])
#define POINTER(h) ((void *)mpi.handle[h])

static int ask(call of) {
  int n = 0;
  if (mpi.ints) ((int (*)(int, int *))of)(INT(WORLD), &n);
  else ((int (*)(void *, int *))of)(POINTER(WORLD), &n);
  return n;
}

static void reduce(const double *from, double *to, int n) {
  if (mpi.ints)
    ((int (*)(const void *, void *, int, int, int, int, int))mpi.of.reduce)(
        from, to, n, INT(NUMBER), INT(SUM), 0, INT(WORLD));
  else
    ((int (*)(const void *, void *, int, void *, void *, int, void *))mpi.of.reduce)(
        from, to, n, POINTER(NUMBER), POINTER(SUM), 0, POINTER(WORLD));
}

static void bcast(double *x, int n) {
  if (mpi.ints)
    ((int (*)(void *, int, int, int, int))mpi.of.bcast)(x, n, INT(NUMBER), 0, INT(WORLD));
  else
    ((int (*)(void *, int, void *, int, void *))mpi.of.bcast)(x, n, POINTER(NUMBER), 0,
                                                              POINTER(WORLD));
}

/* ---- the library ---- */

/* Whether the library is of this ABI, and has all calls. */
static bool take(void *library, const mpi_abi *abi) {
  mpi.ints = abi->ints;
  for (int h = 0; h < HANDLES; h++) {
    mpi.handle[h] =
        abi->variables[h] ? (uintptr_t)dlsym(library, abi->variables[h]) : abi->handle[h];
    if (!mpi.handle[h]) return false;
  }
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *found = dlsym(library, symbols[i].name);
    if (!found) return false;
    memcpy((char *)&mpi.of + symbols[i].offset, &found, sizeof found);
  }
  return true;
}

/* The ABI whose library has such a name; of any other name, Open MPI's if it has its variables. */
static const mpi_abi *abi_of(const char *path, void *library) {
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  for (int i = 0; i < ABIS; i++)
    for (const char *const *n = abis[i].names; *n; n++)
      if (!strcmp(name, *n)) return &abis[i];
  return dlsym(library, abis[ABIS - 1].variables[0]) ? &abis[ABIS - 1] : NULL;
}

static bool open_library(void) {
  const char *named = getenv("CLB_MPI");
  if (named && *named) {
    void *library = dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    const mpi_abi *abi = library ? abi_of(named, library) : NULL;
    if (abi && take(library, abi)) return true;
    warn("CLB_MPI: %s is %s", named,
         library ? "not a library of MPI that is known here" : "not a library");
    return false;
  }
  for (int i = 0; i < ABIS; i++)
    for (const char *const *n = abis[i].names; *n; n++) {
      void *library = dlopen(*n, RTLD_NOW | RTLD_GLOBAL);
      if (library && take(library, &abis[i])) return true;
    }
  warn(
      "--mpi: no library of MPI is found, such as libmpi.so.12 or libmpi.so.40; CLB_MPI names one");
  return false;
}

/* By the hosts' names: ranks count those before them of the same. */
static void count_here(rank_numbers *r) {
  char host[256] = "";
  double *all = allocate((size_t)r->n, sizeof *all);
  gethostname(host, sizeof host - 1);
  all[r->rank] = (double)(bytes_checksum(CHECKSUM_START, host, strlen(host)) >> 11);
  ranks_sum(r->n, all);
  r->n_here = r->rank_here = 0;
  for (int k = 0; k < r->n; k++) {
    r->n_here += all[k] == all[r->rank];
    r->rank_here += k < r->rank && all[k] == all[r->rank];
  }
  free(all);
}

/* Whether mpiexec has started other processes, of which this library of MPI knows nothing. */
static bool of_another(int n) {
  static const char *const sizes[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"};
  for (int i = 0; i < 2; i++) {
    const char *size = getenv(sizes[i]);
    if (!size || n > 1 || atoi(size) < 2) continue;
    warn(
        "--mpi: mpiexec started %s processes, but the library of MPI that was found knows this one "
        "alone; CLB_MPI must name that of mpiexec",
        size);
    return true;
  }
  return false;
}

bool ranks_begin(void) {
  if (!open_library()) return false;
  mpi.of.init(NULL, NULL);
  mpi.numbers = (rank_numbers){.n = ask(mpi.of.size), .rank = ask(mpi.of.rank)};
  if (of_another(mpi.numbers.n)) return false;
  count_here(&mpi.numbers);
  return !mpi.numbers.rank || freopen("/dev/null", "w", stdout);
}

rank_numbers ranks_of_run(void) { return mpi.numbers; }

void ranks_sum(int64_t n, double *x) {
  if (mpi.numbers.n == 1) return;
  double *sum = allocate((size_t)n, sizeof *sum);
  for (int64_t at = 0, more; at < n; at += more) {
    more = n - at < INT_MAX ? n - at : INT_MAX;
    reduce(x + at, sum + at, (int)more);
  }
  memcpy(x, sum, (size_t)n * sizeof *sum);
  free(sum);
  ranks_copy(n, x);
}

void ranks_copy(int64_t n, double *x) {
  for (int64_t at = 0, more; at < n && mpi.numbers.n > 1; at += more) {
    more = n - at < INT_MAX ? n - at : INT_MAX;
    bcast(x + at, (int)more);
  }
}

void ranks_end(bool good) {
  if (!mpi.of.init) return;
  if (good || mpi.numbers.n == 1) mpi.of.finalize();
  else if (mpi.ints) ((int (*)(int, int))mpi.of.abort)(INT(WORLD), 1);
  else ((int (*)(void *, int))mpi.of.abort)(POINTER(WORLD), 1);
}
