/* tools/structures/structure.c - opens files of atoms, and checks their cells. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/structures/structure_labels.h"

typedef structure_reader reader;

static double across(const double a[3], const double b[3],
                     double c[3]) { /* c = a x b; its length */
  for (int k = 0; k < 3; k++)
    c[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
  return sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
}

/* Checks that the periodic vectors span a volume, and that in each direction an atom fits into the
   cell. */
static bool check_cell(reader *r) {
  static const double min = 0.5, flat = 1e-6; /* Angstrom; volume of unit vectors */
  double unit[3][3], length[3], normal[3], volume = 1, area[3] = {1, 1, 1};
  int n = 0, which[3];
  r->line_number = r->cell_line;
  for (int d = 0; d < 3; d++) {
    const double *a = r->s->cell[d];
    if (!r->s->periodic[d]) continue;
    length[n] = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
    if (!(length[n] > 0 && isfinite(length[n])))
      return structure_fail(r, "vector %c of the cell is %g Angstrom long", 'a' + d, length[n]);
    for (int k = 0; k < 3; k++) unit[n][k] = a[k] / length[n];
    which[n++] = d;
  }
  if (n == 2) volume = across(unit[0], unit[1], normal);
  for (int i = 0; i < n && n == 3; i++)
    area[i] = across(unit[(i + 1) % 3], unit[(i + 2) % 3], normal);
  if (n == 3)
    volume = fabs(unit[2][0] * normal[0] + unit[2][1] * normal[1] + unit[2][2] * normal[2]);
  if (!(volume > flat))
    return structure_fail(r, "the cell is singular: its periodic vectors must span a volume");
  for (int i = 0; i < n; i++)
    if (length[i] * volume / area[i] < min)
      return structure_fail(r,
                            "the cell is only %g Angstrom high along vector %c; an atom needs %g",
                            length[i] * volume / area[i], 'a' + which[i], min);
  return true;
}

static bool (*format_of(const char *path))(reader *) {
  static const struct {
    const char *ending;
    bool (*read)(reader *);
  } formats[] = {{".xyz", structure_read_xyz},
                 {".extxyz", structure_read_xyz},
                 {".gro", structure_read_gro},
                 {".pdb", structure_read_pdb},
                 {".ent", structure_read_pdb}};
  const char *dot = strrchr(path, '.');
  for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++)
    if (!strcasecmp(dot, formats[i].ending)) return formats[i].read;
  return NULL;
}

/* A reader of an open file; NULL, with an error, if it cannot be opened. */
static reader *open_reader(const char *path, bool (*read)(reader *),
                           const structure_options *options, char *error, size_t size) {
  static const structure_options none;
  reader *r = calloc(1, sizeof *r);
  if (!r) {
    snprintf(error, size, "%s: out of memory", path);
    return NULL;
  }
  *r = (reader){
      .path = path, .options = options ? options : &none, .unit = 1, .error = error, .size = size};
  if (!read) structure_fail(r, "the name of a structure ends in .xyz, .extxyz, .gro, .pdb or .ent");
  else if (!(r->file = fopen(path, "r"))) structure_fail(r, "%s", strerror(errno));
  if (r->file) return r;
  free(r);
  return NULL;
}

static void close_reader(reader *r) {
  fclose(r->file);
  free(r->line);
  free(r);
}

/* An empty structure, to be filled. */
static bool begin(reader *r, structure *s) {
  *s = (structure){.labels = r->options->labels ? structure_labels_new() : NULL};
  r->s = s;
  r->capacity = r->force_capacity = 0;
  r->unit = 1;
  r->virial = NULL;
  return s->labels || !r->options->labels || structure_fail(r, "out of memory");
}

bool structure_read(const char *path, const structure_options *options, structure *s, char *error,
                    size_t size) {
  bool (*read)(reader *) = format_of(path);
  *s = (structure){0};
  reader *r = open_reader(path, read, options, error, size);
  if (!r) return false;
  const bool good = begin(r, s) && read(r) && check_cell(r);
  close_reader(r);
  if (!good) structure_free(s);
  return good;
}

struct structure_frames {
  reader r;
};

structure_frames *structure_frames_open(const char *path, const structure_options *options,
                                        char *error, size_t size) {
  bool (*read)(reader *) = format_of(path);
  if (read && read != structure_read_xyz) {
    snprintf(error, size, "%s: only files of extended XYZ (.xyz, .extxyz) are read frame by frame",
             path);
    return NULL;
  }
  return (structure_frames *)open_reader(path, read, options, error, size);
}

int structure_frames_next(structure_frames *f, structure *s) {
  reader *r = &f->r;
  r->frame++;
  int found = begin(r, s) ? structure_read_frame(r) : -1;
  const int64_t last = r->line_number;
  if (found == 1 && !check_cell(r)) found = -1;
  r->line_number = last;
  if (found != 1) structure_free(s);
  return found;
}

void structure_frames_close(structure_frames *f) {
  if (f) close_reader(&f->r);
}

void structure_free(structure *s) {
  free(s->positions);
  free(s->numbers);
  structure_labels_free(s->labels);
  *s = (structure){0};
}
