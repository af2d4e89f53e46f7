/* tools/training/evaluate_files.c - what `clebsch evaluate` writes. */
#include "tools/training/evaluate_files.h"

#include <math.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/common/parity.h"
#include "tools/common/random.h"

/* ---- csv ---- */

static void text_cell(FILE *f, const char *text, size_t n) {
  fputc('"', f);
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '"') fputc('"', f);
    fputc(text[i], f);
  }
  fputs("\",", f);
}

/* Empty where the number is not known. */
static void number_cell(FILE *f, double x) {
  if (isfinite(x)) fprintf(f, ",%.17g", x);
  else fputc(',', f);
}

void frame_row_titles(FILE *f) {
  fputs("frame,config_type,atoms,energy_label,energy,energy_error_per_atom,force_mae,force_rmse,"
        "stress_mae,stress_rmse\n",
        f);
}

void frame_row(FILE *f, const md_system *frame, const labelled_frame *l) {
  const structure_labels *labels = frame->atoms.labels;
  text_cell(f, frame->from, strlen(frame->from));
  if (labels->type) text_cell(f, labels->type, strlen(labels->type));
  else fputc(',', f);
  fprintf(f, "%lld", (long long)frame->atoms.n);
  number_cell(f, labels->energy);
  number_cell(f, frame->energy);
  number_cell(f, l->energy[1] - l->energy[0]);
  for (int kind = LABEL_FORCES; kind < LABELS; kind++) {
    label_error e = {0};
    label_error_add(&e, &l->of[kind]);
    number_cell(f, label_error_mean(&e));
    number_cell(f, label_error_root_mean(&e));
  }
  fputc('\n', f);
}

/* ---- the picture ---- */

static void keep(parity_sample *s, int64_t at, double known, double computed) {
  s->known[at] = known;
  s->computed[at] = computed;
}

void parity_sample_add(parity_sample *s, const label_pairs *p) {
  for (int64_t i = 0; i < p->n; i++) {
    const double known = p->known[i], computed = p->computed[i];
    if (isnan(known)) continue;
    if (!s->seen || fabs(computed - known) > fabs(s->worst[1] - s->worst[0]))
      s->worst[0] = known, s->worst[1] = computed;
    const int64_t at = s->seen < PARITY_POINTS
                           ? s->seen
                           : (int64_t)((random_number(&s->seed) + 1) / 2 * (double)(s->seen + 1));
    if (at < PARITY_POINTS) keep(s, at, known, computed);
    s->seen++;
  }
}

bool parity_samples_write(const char *path, parity_sample s[LABELS], const error_table *t,
                          const char *title, const char *subtitle) {
  static const char *const titles[LABELS] = {"Energy (eV/atom)", "Forces (eV/A)",
                                             "Stress (eV/A^3)"};
  parity_panel panels[LABELS];
  char notes[LABELS][160];
  int n = 0;
  for (int kind = 0; kind < LABELS; kind++) {
    if (!s[kind].seen) continue;
    const label_error *e = &t->all.of[kind];
    const bool some = s[kind].seen > PARITY_POINTS;
    const int64_t shown = some ? PARITY_POINTS + 1 : s[kind].seen;
    if (some) keep(&s[kind], PARITY_POINTS, s[kind].worst[0], s[kind].worst[1]);
    int at = snprintf(notes[n], sizeof notes[n], "MAE %.3g, RMSE %.3g", label_error_mean(e),
                      label_error_root_mean(e));
    if (some)
      snprintf(notes[n] + at, sizeof notes[n] - (size_t)at, "; %d of %lld numbers", PARITY_POINTS,
               (long long)s[kind].seen);
    panels[n] = (parity_panel){titles[kind], notes[n], shown, s[kind].known, s[kind].computed};
    n++;
  }
  return file_replace(path, parity_write,
                      &(parity_plot){title, subtitle, "label", "predicted", n, panels});
}
