/* tools/dynamics/md_files.c - frames of extended XYZ. */
#include "tools/dynamics/md_files.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/dynamics/md_motion.h"
#include "tools/measure/timing.h"

static void matrix_write(FILE *f, const char *name, const double m[3][3]) {
  fprintf(f, "%s=\"", name);
  for (int k = 0; k < 9; k++) fprintf(f, "%s%.17g", k ? " " : "", m[k / 3][k % 3]);
  fputs("\" ", f);
}

static void triple_write(FILE *f, const double x[3]) {
  fprintf(f, " %.17g %.17g %.17g", x[0], x[1], x[2]);
}

/* Velocities, and what ASE calculates them from. */
static void motion_write(FILE *f, const md_system *y, int64_t atom, const double velocity[3]) {
  double momentum[3];
  md_momentum(y, atom, velocity, momentum);
  triple_write(f, velocity);
  fprintf(f, " %.17g", atomic_weights[y->atoms.numbers[atom]]);
  triple_write(f, momentum);
}

bool frame_write(FILE *f, const void *user) {
  const md_frame *frame = user;
  const md_system *y = frame->system;
  const structure *s = &y->atoms;
  fprintf(f, "%lld\n", (long long)s->n);
  if (s->periodic[0] || s->periodic[1] || s->periodic[2] || y->has_stress)
    matrix_write(f, "Lattice", s->cell);
  fprintf(f, "Properties=species:S:1:pos:R:3%s%s ",
          frame->velocities ? ":velo:R:3:masses:R:1:momenta:R:3" : "",
          frame->forces ? ":forces:R:3" : "");
  fprintf(f, "energy=%.17g ", y->energy);
  if (y->has_stress) matrix_write(f, "stress", y->stress);
  if (isfinite(frame->time)) fprintf(f, "time=%.17g ", frame->time);
  fprintf(f, "pbc=\"%c %c %c\"\n", s->periodic[0] ? 'T' : 'F', s->periodic[1] ? 'T' : 'F',
          s->periodic[2] ? 'T' : 'F');
  for (int64_t i = 0; i < s->n; i++) {
    fputs(clb_element_symbols[s->numbers[i]], f);
    triple_write(f, s->positions + 3 * i);
    if (frame->velocities) motion_write(f, y, i, frame->velocities + 3 * i);
    if (frame->forces) triple_write(f, y->forces + 3 * i);
    fputc('\n', f);
  }
  return !ferror(f);
}

/* ---- all frames of a file ---- */

enum { MAX_TOGETHER = 1024, ATOMS_TOGETHER = 1 << 15 };

/* Frames that are computed together. */
typedef struct {
  md_system system[MAX_TOGETHER];
  char from[MAX_TOGETHER][512];
  int n;
  int64_t atoms;
} frame_group;

static void empty_group(frame_group *g) {
  while (g->n) md_system_free_atoms(&g->system[--g->n]);
  g->atoms = 0;
}

/* Computes the frames of the group, writes them with their labels, and empties it. */
static bool label_group(frame_group *g, FILE *to) {
  bool good = md_systems_compute(g->system, g->n);
  for (int i = 0; i < g->n && good; i++) {
    frame_write(to, &(md_frame){.system = &g->system[i], .forces = true, .time = NAN});
    if (!fflush(to)) continue;
    warn("%s: the temporary file of frames could not be written: %s", g->from[i], strerror(errno));
    good = false;
  }
  empty_group(g);
  return good;
}

/* Takes a frame, and computes the group once it is large. */
static bool label_frame(const md_system *y, frame_group *g, structure *atoms, FILE *to,
                        frame_labels *l) {
  md_system *system = &g->system[g->n];
  char *from = g->from[g->n++];
  *system = *y;
  snprintf(from, sizeof g->from[0], "%s, frame %lld", y->from, (long long)++l->frames);
  g->atoms += atoms->n;
  l->atoms += atoms->n;
  progress("%s: %s", y->device.name, from);
  if (!md_system_set_atoms(system, atoms, from)) return false;
  return (g->n < MAX_TOGETHER && g->atoms < ATOMS_TOGETHER) || label_group(g, to);
}

static bool copy(FILE *to, const void *user) {
  static char bytes[1 << 16];
  FILE *const *from = user;
  size_t n;
  rewind(*from);
  while ((n = fread(bytes, 1, sizeof bytes, *from)) > 0)
    if (fwrite(bytes, 1, n, to) != n) return false;
  return !ferror(*from);
}

bool frames_label(md_system *y, const md_choice *choice, const char *out, frame_labels *l) {
  char error[512] = "";
  structure atoms;
  structure_frames *frames =
      structure_frames_open(choice->structure, &choice->reading, error, sizeof error);
  if (!frames) return warn("%s", error), false;
  frame_group *group = allocate(1, sizeof *group);
  FILE *labelled = tmpfile();
  int found = -1;
  bool good = labelled && md_system_open(y, choice);
  if (!labelled) warn("no temporary file of frames: %s", strerror(errno));
  const double start = seconds_now();
  y->from = choice->structure;
  while (good && (found = structure_frames_next(frames, &atoms)) == 1)
    good = label_frame(y, group, &atoms, labelled, l);
  good = good && label_group(group, labelled);
  empty_group(group);
  free(group);
  progress(NULL);
  l->seconds = seconds_now() - start;
  if (good && found < 0) warn("%s", error), good = false;
  structure_frames_close(frames);
  good = good && file_replace(out, copy, &labelled);
  if (labelled) fclose(labelled);
  return good;
}
