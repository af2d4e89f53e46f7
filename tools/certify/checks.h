/* tools/certify/checks.h - laws that energies, forces and stress of any model obey, checked at one
   structure. */
#ifndef CLB_TOOLS_CERTIFY_CHECKS_H
#define CLB_TOOLS_CERTIFY_CHECKS_H

#include <clebsch/model.h>

#include <stdbool.h>
#include <stdint.h>

/* What is checked. exact: in f64 with radial networks; else as it is fast. false: it has said why
   not. */
typedef struct {
  bool (*compute)(void *user, bool exact, const clb_model_atoms *atoms,
                  const clb_model_results *results);
  void *user;
  bool parity; /* mirrored structures must have mirrored forces */
} certify_engine;

typedef struct {
  const char *name, *law;
  double error, limit; /* the law holds where error <= limit */
  const char *skipped; /* why it was not checked; NULL: it was */
} certify_line;

enum { CERTIFY_LINES = 11, CERTIFY_STEPS = 200 };

/* Fills all lines; false: a computation failed. masses: in u, of each atom. */
bool certify(const certify_engine *engine, const clb_model_atoms *atoms, const double *masses,
             certify_line lines[CERTIFY_LINES]);
static inline bool certify_holds(const certify_line *l) {
  return l->skipped || l->error <= l->limit;
}

#endif
