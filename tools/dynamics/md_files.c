/* tools/dynamics/md_files.c - frames of extended XYZ. */
#include "tools/dynamics/md_files.h"

#include <math.h>

#include "tools/dynamics/md_motion.h"

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
