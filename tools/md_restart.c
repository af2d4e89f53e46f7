/* md_restart.c - writes and reads the file that a run goes on from.

     clebsch restart 1
     step STEP time FS seed SEED
     cell 9 NUMBERS periodic 1 1 1
     atoms N
     SYMBOL position velocity listed     N times, 9 numbers each
     end */
#include "md_restart.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md_files.h"

typedef struct {
  const md_system *system;
  const md_state *state;
} whole_state;

static bool write(FILE *f, const void *user) {
  const whole_state *w = user;
  const structure *a = &w->system->atoms;
  const md_state *s = w->state;
  fprintf(f, "clebsch restart 1\nstep %" PRId64 " time %a seed %" PRIu64 "\ncell", s->step, s->time, s->seed);
  for (int k = 0; k < 9; k++) fprintf(f, " %a", a->cell[k / 3][k % 3]);
  fprintf(f, " periodic %d %d %d\natoms %" PRId64 "\n", a->periodic[0], a->periodic[1], a->periodic[2], a->n);
  for (int64_t i = 0; i < a->n; i++) {
    const double *const rows[] = {a->positions + 3 * i, s->velocities + 3 * i, s->listed + 3 * i};
    fputs(clb_element_symbols[a->numbers[i]], f);
    for (int k = 0; k < 9; k++) fprintf(f, " %a", rows[k / 3][k % 3]);
    fputc('\n', f);
  }
  fputs("end\n", f);
  return !ferror(f);
}

bool restart_write(const char *path, const md_system *y, const md_state *s) {
  return file_replace(path, write, &(whole_state){y, s});
}

/* ---- reading ---- */

static bool finite_numbers(FILE *f, int n, double *x) {
  for (int k = 0; k < n; k++)
    if (fscanf(f, "%lf", &x[k]) != 1 || !isfinite(x[k])) return false;
  return true;
}

static bool read_head(FILE *f, structure *a, md_state *s) {
  int version = 0, p[3];
  if (fscanf(f, "clebsch restart %d", &version) != 1 || version != 1) return false;
  if (fscanf(f, " step %" SCNd64 " time %lf seed %" SCNu64 " cell", &s->step, &s->time, &s->seed) != 3 || s->step < 0 || !isfinite(s->time)) return false;
  if (!finite_numbers(f, 9, &a->cell[0][0]) || fscanf(f, " periodic %d %d %d atoms %" SCNd64, &p[0], &p[1], &p[2], &a->n) != 4) return false;
  for (int k = 0; k < 3; k++) a->periodic[k] = p[k] != 0;
  return a->n >= 1 && a->n <= INT32_MAX;
}

/* A line of an atom takes 20 bytes or more: memory goes by what the file has, not by what it says. */
static bool plausible(FILE *f, int64_t n) {
  const long here = ftell(f);
  if (here < 0 || fseek(f, 0, SEEK_END)) return false;
  const long end = ftell(f);
  return !fseek(f, here, SEEK_SET) && (end - here) / 20 >= n;
}

static bool read_atoms(FILE *f, structure *a, md_state *s) {
  const size_t n = (size_t)a->n;
  char symbol[4], end[4] = "";
  a->positions = allocate(n, 3 * sizeof *a->positions);
  a->numbers = allocate(n, sizeof *a->numbers);
  md_state_make(s, a->n);
  for (size_t i = 0; i < n; i++) {
    if (fscanf(f, " %3s", symbol) != 1 || !(a->numbers[i] = clb_element(symbol, strlen(symbol)))) return false;
    if (!finite_numbers(f, 3, a->positions + 3 * i) || !finite_numbers(f, 3, s->velocities + 3 * i) || !finite_numbers(f, 3, s->listed + 3 * i)) return false;
  }
  return fscanf(f, " %3s", end) == 1 && !strcmp(end, "end");
}

bool restart_read(const char *path, structure *atoms, md_state *s) {
  *atoms = (structure){0};
  *s = (md_state){0};
  FILE *f = fopen(path, "r");
  if (!f) return complain("%s: %s", path, strerror(errno)), false;
  const bool good = read_head(f, atoms, s) && plausible(f, atoms->n) && read_atoms(f, atoms, s);
  fclose(f);
  if (good) return true;
  complain("%s: not a restart file of `clebsch md`, or cut short", path);
  structure_free(atoms);
  md_state_free(s);
  *atoms = (structure){0};
  *s = (md_state){0};
  return false;
}
