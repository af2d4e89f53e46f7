/* tools/training/labelled.c - a frame's labels beside what a model predicts. */
#include "tools/training/labelled.h"

#include <math.h>

void warn_without_labels(const char *path) {
  warn("%s: no frame has labels, which are energy, forces, stress or virial, also with REF_ before "
       "them",
       path);
}

int64_t labels_known(const label_pairs *p) {
  int64_t known = 0;
  for (int64_t i = 0; i < p->n; i++) known += !isnan(p->known[i]);
  return known;
}

void label_frame_pairs(const md_system *frame, labelled_frame *l) {
  const structure_labels *labels = frame->atoms.labels;
  const int64_t n = frame->atoms.n;
  *l = (labelled_frame){.energy = {labels->energy / (double)n, frame->energy / (double)n}};
  l->of[LABEL_ENERGY] = (label_pairs){n > 0, &l->energy[0], &l->energy[1]};
  l->of[LABEL_FORCES] = (label_pairs){labels->forces ? 3 * n : 0, labels->forces, frame->forces};
  l->of[LABEL_STRESS] =
      (label_pairs){frame->has_stress ? 9 : 0, labels->stress, &frame->stress[0][0]};
  for (int k = 0; k < LABELS; k++)
    if (!labels_known(&l->of[k])) l->of[k].n = 0;
}
