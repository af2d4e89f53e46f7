/* tools/structures/structure.c - opens files of atoms, and checks their cells. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "models/atoms/neighbours.h"
#include "tools/structures/structure_labels.h"

typedef structure_reader reader;

/* Checks that the periodic vectors span a volume, and that in each direction an atom fits into the
   cell. */
static bool check_cell(reader *r) {
  static const double min = 0.5; /* Angstrom */
  const structure *s = r->s;
  double height[3];
  r->line_number = r->cell_line;
  for (int d = 0; d < 3; d++) {
    const double *a = s->cell[d], length = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
    if (s->periodic[d] && !(length > 0 && isfinite(length)))
      return structure_fail(r, "vector %c of the cell is %g Angstrom long", 'a' + d, length);
  }
  if (!clb_cell_heights(&s->cell[0][0], s->periodic, height))
    return structure_fail(r, "the cell is singular: its periodic vectors must span a volume");
  for (int d = 0; d < 3; d++)
    if (s->periodic[d] && height[d] < min)
      return structure_fail(r,
                            "the cell is only %g Angstrom high along vector %c; an atom needs %g",
                            height[d], 'a' + d, min);
  return true;
}

/* ---- formats ---- */

typedef bool (*read_function)(reader *);

static bool compressed(const char *name, size_t n) {
  return n > 3 && !strcasecmp(name + n - 3, ".gz");
}

/* By the end of a file's name (in any case, before .gz), else by its start. */
static read_function format_of(const char *path) {
  static const struct {
    const char *ending;
    read_function read;
  } endings[] = {{".xyz", structure_read_xyz},       {".extxyz", structure_read_xyz},
                 {".gro", structure_read_gro},       {".pdb", structure_read_pdb},
                 {".ent", structure_read_pdb},       {".vasp", structure_read_poscar},
                 {".poscar", structure_read_poscar}, {".contcar", structure_read_poscar},
                 {".data", structure_read_lammps},   {".lmp", structure_read_lammps},
                 {".cif", structure_read_cif}};
  static const struct {
    const char *start;
    read_function read;
  } starts[] = {{"POSCAR", structure_read_poscar},
                {"CONTCAR", structure_read_poscar},
                {"data.", structure_read_lammps}};
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t n = strlen(name);
  if (!strcmp(path, "-")) return structure_read_xyz;
  if (compressed(name, n)) n -= 3;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t m = strlen(endings[i].ending);
    if (n > m && !strncasecmp(name + n - m, endings[i].ending, m)) return endings[i].read;
  }
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (!strncmp(name, starts[i].start, strlen(starts[i].start))) return starts[i].read;
  return NULL;
}

/* Compressed files, too; "-" is standard input. */
static bool open_file(reader *r, const char *path) {
  const int input = strcmp(path, "-") != 0 ? -1 : dup(STDIN_FILENO);
  errno = 0;
  r->file = input < 0 ? gzopen(path, "r") : gzdopen(input, "r");
  if (r->file) return true;
  structure_fail(r, "%s", errno ? strerror(errno) : "out of memory");
  if (input >= 0) close(input);
  return false;
}

/* A reader of an open file; NULL, with an error, if it cannot be opened. */
static reader *open_reader(const char *path, read_function read, const structure_options *options,
                           char *error, size_t size) {
  static const structure_options none;
  reader *r = calloc(1, sizeof *r);
  if (!r) {
    snprintf(error, size, "%s: out of memory", path);
    return NULL;
  }
  *r = (reader){.path = strcmp(path, "-") != 0 ? path : "standard input",
                .options = options ? options : &none,
                .unit = 1,
                .error = error,
                .size = size};
  if (read && open_file(r, path)) return r;
  if (!read)
    structure_fail(r,
                   "the name of a structure ends in .xyz, .extxyz, .gro, .pdb, .ent, .vasp, "
                   ".poscar, .cif, .data or .lmp, or begins with POSCAR, CONTCAR or data.; .gz may "
                   "follow");
  free(r);
  return NULL;
}

static void close_reader(reader *r) {
  gzclose(r->file);
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

/* ---- one structure ---- */

/* The first of the frames that are chosen. */
static bool read_chosen(const char *path, const structure_options *options, structure *s,
                        char *error, size_t size) {
  structure_frames *f = structure_frames_open(path, options, error, size);
  const bool good = f && structure_frames_next(f, s) == 1;
  structure_frames_close(f);
  return good;
}

bool structure_read(const char *path, const structure_options *options, structure *s, char *error,
                    size_t size) {
  const read_function read = format_of(path);
  *s = (structure){0};
  if (options && options->frames.chosen) return read_chosen(path, options, s, error, size);
  reader *r = open_reader(path, read, options, error, size);
  if (!r) return false;
  const bool good = begin(r, s) && read(r) && check_cell(r);
  close_reader(r);
  if (!good) structure_free(s);
  return good;
}

/* ---- frames ---- */

struct structure_frames {
  reader r;
  structure_slice slice;
  bool found; /* one of the chosen frames */
};

/* How many frames a file has; -1: an error. */
static int64_t count_frames(const char *path, const structure_options *options, char *error,
                            size_t size) {
  if (!strcmp(path, "-")) {
    snprintf(error, size, "frames of standard input are counted from its start, not from its end");
    return -1;
  }
  reader *r = open_reader(path, structure_read_xyz, options, error, size);
  int found = r ? 1 : -1;
  while (found == 1) r->frame++, found = structure_skip_frame(r);
  const int64_t n = r ? r->frame - 1 : 0;
  if (r) close_reader(r);
  return found < 0 ? -1 : n;
}

static structure_frames *open_frames(const char *path, const structure_options *options,
                                     const structure_slice *slice, char *error, size_t size) {
  reader *r = open_reader(path, structure_read_xyz, options, error, size);
  structure_frames *f = r ? malloc(sizeof *f) : NULL;
  if (f) *f = (structure_frames){*r, *slice, !slice->chosen};
  else if (r) structure_fail(r, "out of memory"), gzclose(r->file);
  free(r);
  return f;
}

structure_frames *structure_frames_open(const char *path, const structure_options *options,
                                        char *error, size_t size) {
  const read_function read = format_of(path);
  structure_slice slice = options ? options->frames : (structure_slice){0};
  if (!read) return open_reader(path, read, options, error, size), NULL;
  if (read != structure_read_xyz) {
    snprintf(error, size, "%s: only files of extended XYZ (.xyz, .extxyz) are read frame by frame",
             path);
    return NULL;
  }
  if (slice.chosen && structure_slice_from_end(&slice)) {
    const int64_t n = count_frames(path, options, error, size);
    if (n < 0) return NULL;
    structure_slice_resolve(&slice, n);
  }
  return open_frames(path, options, &slice, error, size);
}

/* After the last of the n frames, or of those chosen. */
static int end_of_frames(structure_frames *f, int64_t n, bool all) {
  if (f->found) return 0;
  f->r.frame = f->r.line_number = 0;
  if (all)
    structure_fail(&f->r, "none of its %lld frames, counted from 0, is chosen", (long long)n);
  else structure_fail(&f->r, "no frame is chosen: they would end before they start");
  return -1;
}

/* Reads the next frame that is chosen. */
static int next_chosen(structure_frames *f, structure *s) {
  reader *r = &f->r;
  for (;;) {
    const int64_t i = r->frame++;
    const bool wanted = structure_slice_has(&f->slice, i);
    if (f->slice.chosen && i >= f->slice.stop) return end_of_frames(f, i, false);
    if (wanted && !begin(r, s)) return -1;
    const int found = wanted ? structure_read_frame(r) : structure_skip_frame(r);
    if (!found) return end_of_frames(f, i, true);
    f->found = f->found || (wanted && found == 1);
    if (wanted) s->frame = r->frame;
    if (wanted || found < 0) return found;
  }
}

int structure_frames_next(structure_frames *f, structure *s) {
  reader *r = &f->r;
  *s = (structure){0};
  int found = next_chosen(f, s);
  const int64_t last = r->line_number;
  if (found == 1 && !check_cell(r)) found = -1;
  r->line_number = last;
  if (found != 1) structure_free(s);
  return found;
}

void structure_frames_close(structure_frames *f) {
  if (!f) return;
  gzclose(f->r.file);
  free(f->r.line);
  free(f);
}

void structure_free(structure *s) {
  free(s->positions);
  free(s->numbers);
  structure_labels_free(s->labels);
  *s = (structure){0};
}
