/* tools/training/labelled_batch.c - all frames of files with their labels, as the library takes
   them. */
#include "tools/training/labelled_batch.h"

#include <math.h>
#include <stdlib.h>

#include "tools/common/output.h"
#include "tools/energy/all_frames.h"

static md_system *next_system(labelled_batch *b) {
  if (b->n == b->room) {
    b->room = 2 * b->room + 64;
    b->systems = enlarge(b->systems, (size_t)b->room, sizeof *b->systems);
    b->numbers = enlarge(b->numbers, (size_t)b->room, sizeof *b->numbers);
  }
  return &b->systems[b->n];
}

bool labelled_batch_read(labelled_batch *b, const md_system *y, const char *path,
                         const structure_options *reading) {
  frame_file file;
  structure atoms;
  char from[512];
  int found = -1;
  int64_t number = 0;
  bool good = frames_open(&file, path, reading);
  while (good && (found = frames_next(&file, &atoms)) == 1) {
    md_system *system = next_system(b);
    *system = *y;
    snprintf(from, sizeof from, "%s, frame %lld", path, (long long)++number);
    progress("reading %s", from);
    good = md_system_set_atoms(system, &atoms, from);
    system->from = path;
    b->n_atoms += system->atoms.n;
    b->numbers[b->n++] = number;
  }
  progress(NULL);
  frames_close(&file);
  return good && !found;
}

void labelled_batch_move(labelled_batch *from, int64_t n, const int64_t *which,
                         labelled_batch *to) {
  bool *moved = allocate((size_t)from->n, sizeof *moved);
  int64_t left = 0;
  for (int64_t i = 0; i < n; i++) {
    *next_system(to) = from->systems[which[i]];
    to->n_atoms += from->systems[which[i]].atoms.n;
    to->numbers[to->n++] = from->numbers[which[i]];
    moved[which[i]] = true;
  }
  from->n_atoms -= to->n_atoms;
  for (int64_t i = 0; i < from->n; i++) {
    if (moved[i]) continue;
    from->systems[left] = from->systems[i];
    from->numbers[left++] = from->numbers[i];
  }
  from->n = left;
  free(moved);
}

bool labelled_batch_end(labelled_batch *b) {
  bool labelled = false;
  b->atoms = allocate((size_t)b->n, sizeof *b->atoms);
  b->labels = allocate((size_t)b->n, sizeof *b->labels);
  for (int64_t i = 0; i < b->n; i++) {
    const md_system *s = &b->systems[i];
    const structure_labels *l = s->atoms.labels;
    labelled_frame frame;
    label_frame_pairs(s, &frame);
    b->atoms[i] = md_system_atoms(s, NULL);
    b->labels[i] = (clb_labels){.energy = isnan(l->energy) ? NULL : &l->energy,
                                .forces = l->forces,
                                .stress = frame.of[LABEL_STRESS].n ? l->stress : NULL,
                                .weight = &l->weight};
    labelled |= b->labels[i].energy || b->labels[i].forces || b->labels[i].stress;
  }
  if (!labelled) warn_without_labels(b->systems[0].from);
  return labelled;
}

bool labelled_batch_counts(const labelled_batch *b, const clb_loss *loss) {
  for (int64_t i = 0; i < b->n; i++) {
    const clb_labels *l = &b->labels[i];
    if (*l->weight > 0 && ((l->energy && loss->energy > 0) || (l->forces && loss->forces > 0) ||
                           (l->stress && loss->stress > 0)))
      return true;
  }
  warn("%s: no label counts in the loss: their config_weight, or the factor of their term, is 0",
       b->systems[0].from);
  return false;
}

/* NULL is another thing than any numbers. */
static uint64_t add_numbers(uint64_t sum, const void *numbers, size_t bytes) {
  const unsigned char there = numbers != NULL;
  sum = bytes_checksum(sum, &there, 1);
  return numbers ? bytes_checksum(sum, numbers, bytes) : sum;
}

uint64_t labelled_batch_checksum(uint64_t sum, const labelled_batch *b) {
  for (int64_t i = 0; i < b->n; i++) {
    const clb_model_atoms *a = &b->atoms[i];
    const clb_labels *l = &b->labels[i];
    const size_t n = (size_t)a->n, number = sizeof(double);
    sum = add_numbers(sum, &a->n, sizeof a->n);
    sum = add_numbers(sum, a->species, n * sizeof *a->species);
    sum = add_numbers(sum, a->positions, 3 * n * number);
    sum = add_numbers(sum, a->cell, 9 * number);
    sum = add_numbers(sum, a->periodic, sizeof a->periodic);
    sum = add_numbers(sum, &a->charge, sizeof a->charge);
    sum = add_numbers(sum, &a->spin, sizeof a->spin);
    sum = add_numbers(sum, l->energy, number);
    sum = add_numbers(sum, l->forces, 3 * n * number);
    sum = add_numbers(sum, l->stress, 9 * number);
    sum = add_numbers(sum, l->weight, number);
  }
  return sum;
}

void labelled_batch_free(labelled_batch *b) {
  for (int64_t i = 0; i < b->n; i++) md_system_free_atoms(&b->systems[i]);
  free(b->systems);
  free(b->atoms);
  free(b->labels);
  free(b->numbers);
  free(b->sizes);
}
