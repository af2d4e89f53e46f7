/* tools/energy/all_frames.h - the frames of a file, computed together where they are small. */
#ifndef CLB_TOOLS_ENERGY_ALL_FRAMES_H
#define CLB_TOOLS_ENERGY_ALL_FRAMES_H

#include "tools/dynamics/md_system.h"

/* A file that is read frame by frame. */
typedef struct {
  const char *path;
  structure_frames *frames;
  char error[512];
} frame_file;
/* false, after a message. The arguments are used until frames_close. */
bool frames_open(frame_file *f, const char *path, const structure_options *reading);
/* 1: *atoms is the next frame; 0: there are no more; -1, after a message. */
int frames_next(frame_file *f, structure *atoms);
void frames_close(frame_file *f);

typedef struct {
  int64_t together; /* atoms in structures that are computed together; 0: as many as are useful */
  bool (*use)(const md_system *frame, void *user); /* false, after a message: no more */
  void *user;
} frames_work;
/* Computes all frames of a file with the model of y, and calls `use` for each. false, after a
   message. */
bool frames_compute(const md_system *y, frame_file *from, const frames_work *frames);

typedef struct {
  int64_t frames, atoms;
  double seconds; /* of reading, computing and writing all, without opening the model */
} frame_labels;
/* Opens the model, computes every frame of the chosen structure and writes them to `out` with
   energies, forces and stress. false, after a message: `out` is as it was. *y must be zeroed, and
   md_system_close must be called even on failure. */
bool frames_label(md_system *y, const md_choice *choice, const char *out, frame_labels *l);

#endif
