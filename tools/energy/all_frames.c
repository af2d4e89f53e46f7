/* tools/energy/all_frames.c - the frames of a file, computed together where they are small. */
#include "tools/energy/all_frames.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/dynamics/md_files.h"
#include "tools/measure/timing.h"

bool frames_open(frame_file *f, const char *path, const structure_options *reading) {
  *f = (frame_file){.path = path};
  f->frames = structure_frames_open(path, reading, f->error, sizeof f->error);
  if (!f->frames) warn("%s", f->error);
  return f->frames;
}

int frames_next(frame_file *f, structure *atoms) {
  const int found = structure_frames_next(f->frames, atoms);
  if (found < 0) warn("%s", f->error);
  return found;
}

void frames_close(frame_file *f) { structure_frames_close(f->frames); }

/* ---- computing ---- */

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

/* Computes the frames of the group, and empties it. */
static bool compute_group(frame_group *g, const frames_work *frames) {
  bool good = md_systems_compute(g->system, g->n);
  for (int i = 0; i < g->n && good; i++) good = frames->use(&g->system[i], frames->user);
  empty_group(g);
  return good;
}

/* Takes a frame, and computes the group once it is large. */
static bool take_frame(const md_system *y, frame_group *g, structure *atoms, const char *path,
                       const frames_work *frames) {
  const int64_t most = frames->together ? frames->together : ATOMS_TOGETHER;
  if (g->n && g->atoms + atoms->n > most && !compute_group(g, frames))
    return structure_free(atoms), false;
  md_system *system = &g->system[g->n];
  char *from = g->from[g->n++];
  *system = *y;
  snprintf(from, sizeof g->from[0], "%s, frame %lld", path, (long long)atoms->frame);
  g->atoms += atoms->n;
  progress("%s: %s", y->device.name, from);
  if (!md_system_set_atoms(system, atoms, from)) return false;
  return (g->n < MAX_TOGETHER && g->atoms < most) || compute_group(g, frames);
}

bool frames_compute(const md_system *y, frame_file *from, const frames_work *frames) {
  frame_group *group = allocate(1, sizeof *group);
  structure atoms;
  int found = 1;
  bool good = true;
  while (good && (found = frames_next(from, &atoms)) == 1)
    good = take_frame(y, group, &atoms, from->path, frames);
  good = good && !found && compute_group(group, frames);
  empty_group(group);
  free(group);
  progress(NULL);
  return good;
}

/* ---- writing ---- */

typedef struct {
  FILE *to;
  frame_labels *labels;
} frame_output;

static bool label_frame(const md_system *frame, void *user) {
  frame_output *o = user;
  frame_write(o->to, &(md_frame){.system = frame, .forces = true, .time = NAN});
  o->labels->frames++;
  o->labels->atoms += frame->atoms.n;
  if (!fflush(o->to)) return true;
  warn("%s: the temporary file of frames could not be written: %s", frame->from, strerror(errno));
  return false;
}

bool frames_label(md_system *y, const md_choice *choice, const char *out, frame_labels *l) {
  frame_file file;
  if (!frames_open(&file, choice->structure, &choice->reading)) return false;
  frame_output output = {tmpfile(), l};
  if (!output.to) warn("no temporary file of frames: %s", strerror(errno));
  bool good = output.to && md_system_open(y, choice);
  const double start = seconds_now();
  const frames_work frames = {.use = label_frame, .user = &output};
  good = good && frames_compute(y, &file, &frames);
  l->seconds = seconds_now() - start;
  frames_close(&file);
  good = good && file_replace(out, file_copy, &output.to);
  if (output.to) fclose(output.to);
  return good;
}
