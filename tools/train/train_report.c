/* tools/train/train_report.c - what `clebsch train` prints, and its csv and picture. */
#include "tools/train/train_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/common/plot.h"

static const char *const label_names[LABELS] = {"energy", "force", "stress"},
                         *const set_names[SETS] = {"train", "valid"};

/* ---- text ---- */

enum { CELLS = 11, CELL_BYTES = 24 };

static table columns(void) {
  table t = {
      .n = CELLS,
      .titles = {">epoch", ">lr", ">loss", ">E", ">F", ">S", ">valid", ">E", ">F", ">S", ""}};
  for (int i = 1; i < CELLS - 1; i++)
    table_fit(&t, i, i < 3 || i == 6 ? "1.234e-05" : "1234.5"); /* rates and losses; errors */
  table_fit(&t, 0, "12345");
  table_fit(&t, CELLS - 1, "*");
  return t;
}

static void print_set(const char *title, const name_list *files, const labelled_batch *b) {
  printf("%-10s %s%s: %lld frames, %lld atoms\n", title, files->names[0],
         files->n > 1 ? " and others" : "", (long long)b->n, (long long)b->n_atoms);
}

static void print_statistics(const label_statistics *s) {
  enum { SHOWN = 8 };
  printf("of --train %.3g neighbours of an atom, scale %.4g eV; eV of", s->neighbours, s->scale);
  for (int i = 0; i < s->n_species && i < SHOWN; i++)
    printf("%s %s %.6g", i ? "," : "", clb_element_symbols[s->number[i]], s->shift[i]);
  puts(s->n_species > SHOWN ? ", ..." : "");
}

static void print_settings(const train_story *s) {
  const train_arguments *a = s->a;
  const optimizer_choice *o = &a->optimizer;
  const clb_loss *loss = &a->loss.loss;
  const learner *l = s->learner;
  printf("trained    %lld of %lld parameters, in %d tensors, by %s%s; clip %g, average %g\n",
         (long long)l->n_trained, (long long)l->n, l->n_tensors, rule_names[o->rule],
         o->amsgrad ? " with AMSGrad" : "", o->clip, o->ema);
  printf("loss       %s: %g energy, %g forces%s, %g stress%s\n", loss_names[loss->function],
         loss->energy, loss->forces, loss->force_norm ? " (lengths)" : "", loss->stress,
         loss->stress_unit > 1 ? " (kbar)" : "");
  printf("epochs     %lld, of %lld steps; learning rate %g, %s\n", (long long)s->epochs,
         (long long)s->batches, a->schedule.lr, lr_names[a->schedule.kind]);
}

void report_head(const train_story *s) {
  const train_arguments *a = s->a;
  md_system_print_model(s->y);
  const train_devices *d = s->learner->devices;
  for (int i = 0; i < d->n; i++) md_system_print_device(&d->y[i], "device     %s: %s");
  if (d->parts > d->n) printf("processes  share batches among %d devices\n", d->parts);
  print_set("train", &a->train, &s->sets[TRAINED]);
  if (s->replayed)
    printf("%-10s %s%s: %lld of these frames\n", "replay", a->replay.names[0],
           a->replay.n > 1 ? " and others" : "", (long long)s->replayed);
  if (s->sets[VALIDATED].n)
    print_set("valid", a->valid.n ? &a->valid : &a->train, &s->sets[VALIDATED]);
  if (s->statistics) print_statistics(s->statistics);
  print_settings(s);
  puts("errors     mean absolute: E energy in meV/atom, F forces in meV/A, S stress in meV/A^3");
  table t = columns();
  table_titles(&t);
  fflush(stdout);
}

static void number(char cell[CELL_BYTES], double x) {
  cell[0] = 0;
  if (isfinite(x)) snprintf(cell, CELL_BYTES, "%.4g", x);
}

void report_epoch(const train_story *s) {
  const table t = columns();
  const epoch_record *r = &s->state->records[s->state->n - 1];
  char text[CELLS][CELL_BYTES];
  const char *cells[CELLS];
  for (int i = 0; i < CELLS; i++) cells[i] = text[i];
  snprintf(text[0], CELL_BYTES, "%lld", (long long)s->state->n);
  number(text[1], r->lr);
  for (int k = 0; k < SETS; k++) {
    number(text[2 + 4 * k], r->loss[k]);
    for (int i = 0; i < LABELS; i++) number(text[3 + 4 * k + i], 1e3 * r->mae[k][i]);
  }
  snprintf(text[CELLS - 1], CELL_BYTES, "%s", r->best > 0 ? "*" : "");
  progress(NULL);
  table_line(&t, cells);
  fflush(stdout);
}

void report_end(const train_story *s) {
  const train_numbers *at = &s->state->at;
  printf("steps      %.0f, in %.3g s\n", at->step, s->seconds);
  if (!s->epochs) printf("written    %s: the model before training\n", s->a->out);
  else if (isfinite(at->best))
    printf("written    %s: epoch %.0f, loss %.10g\n", s->a->out, at->best_epoch, at->best);
}

/* ---- for scripts ---- */

/* The columns of the csv: train_energy_mae, of energies per atom, and so on. */
static json_t *epoch_json(const epoch_record *r, int64_t epoch) {
  json_t *o = json_object();
  char key[64];
  JSON_ADD(o, {"epoch", json_count(epoch)}, {"lr", json_number(r->lr)},
           {"gradient_norm", json_number(r->norm)});
  for (int k = 0; k < SETS; k++) {
    snprintf(key, sizeof key, "%s_loss", set_names[k]);
    json_add(o, key, json_number(r->loss[k]));
    for (int i = 0; i < 2 * LABELS; i++) {
      snprintf(key, sizeof key, "%s_%s_%s", set_names[k], label_names[i / 2],
               i % 2 ? "rmse" : "mae");
      json_add(o, key, json_number(i % 2 ? r->rmse[k][i / 2] : r->mae[k][i / 2]));
    }
  }
  json_add(o, "best", json_boolean(r->best > 0));
  return o;
}

static json_t *set_json(const name_list *names, const labelled_batch *b) {
  json_t *o = json_object(), *files = json_array();
  for (int i = 0; i < names->n; i++) json_array_add(files, json_text(names->names[i]));
  JSON_ADD(o, {"files", files}, {"frames", json_count(b->n)}, {"atoms", json_count(b->n_atoms)});
  return o;
}

static json_t *statistics_json(const label_statistics *s) {
  json_t *o = json_object(), *shift = json_object();
  for (int i = 0; i < s->n_species; i++)
    json_add(shift, clb_element_symbols[s->number[i]], json_number(s->shift[i]));
  JSON_ADD(o, {"neighbours", json_number(s->neighbours)}, {"scale", json_number(s->scale)},
           {"shift", shift});
  return o;
}

static json_t *settings_json(const train_story *s) {
  const train_arguments *a = s->a;
  const optimizer_choice *o = &a->optimizer;
  const clb_loss *loss = &a->loss.loss;
  json_t *of = json_object(), *l = json_object();
  JSON_ADD(l, {"function", json_text(loss_names[loss->function])},
           {"energy", json_number(loss->energy)}, {"forces", json_number(loss->forces)},
           {"stress", json_number(loss->stress)}, {"force_norm", json_boolean(loss->force_norm)},
           {"stress_unit", json_number(loss->stress_unit > 0 ? loss->stress_unit : 1)},
           {"huber_delta", json_number(loss->delta)});
  JSON_ADD(of, {"like", a->like ? json_text(a->like) : json_null()},
           {"optimizer", json_text(rule_names[o->rule])}, {"amsgrad", json_boolean(o->amsgrad)},
           {"weight_decay", json_number(o->weight_decay)}, {"clip", json_number(o->clip)},
           {"ema", json_number(o->ema)}, {"lr", json_number(a->schedule.lr)},
           {"schedule", json_text(lr_names[a->schedule.kind])},
           {"lr_end", json_number(a->schedule.end)}, {"batch", json_count(a->batch)},
           {"batch_atoms", json_count(a->batch_atoms)}, {"epochs", json_count(s->epochs)},
           {"loss", l});
  return of;
}

static json_t *devices_json(const train_devices *d) {
  json_t *names = json_array();
  for (int i = 0; i < d->n; i++) json_array_add(names, json_text(d->y[i].device.name));
  return names;
}

/* Of a step. */
static json_t *times_json(const train_story *s) {
  static const char *const parts[SPENT] = {"seconds", "gradient",  "waiting",
                                           "sum",     "optimizer", "parameters"};
  json_t *o = json_object();
  json_add(o, "steps", json_count((int64_t)s->timed));
  for (int i = 0; i < SPENT; i++)
    json_add(o, parts[i], json_number(s->learner->devices->spent[i] / s->timed));
  return o;
}

void report_json(const train_story *s) {
  const train_numbers *at = &s->state->at;
  const learner *l = s->learner;
  json_t *o = md_system_described(s->y, &s->a->choice), *epochs = json_array(),
         *trained = json_array();
  for (int64_t i = 0; i < s->state->n; i++)
    json_array_add(epochs, epoch_json(&s->state->records[i], i + 1));
  for (int i = 0; i < l->n_tensors; i++) json_array_add(trained, json_text(l->tensor[i].info.name));
  JSON_ADD(o, {"train", set_json(&s->a->train, &s->sets[TRAINED])},
           {"valid", set_json(&s->a->valid, &s->sets[VALIDATED])}, {"settings", settings_json(s)},
           {"tensors", trained}, {"parameters", json_count(l->n_trained)}, {"epochs", epochs},
           {"steps", json_count((int64_t)at->step)}, {"seconds", json_number(s->seconds)},
           {"devices", devices_json(l->devices)}, {"of_a_step", times_json(s)},
           {"best_epoch", isfinite(at->best) ? json_count((int64_t)at->best_epoch) : json_null()},
           {"best_loss", json_number(at->best)}, {"out", json_text(s->a->out)});
  if (s->statistics) json_add(o, "statistics", statistics_json(s->statistics));
  json_print(o);
}

/* ---- files ---- */

static void cell(FILE *f, double x) {
  if (isfinite(x)) fprintf(f, ",%.17g", x);
  else fputc(',', f);
}

static bool write_csv(FILE *f, const void *user) {
  const train_state *s = user;
  fputs("epoch,lr,gradient_norm", f);
  for (int k = 0; k < SETS; k++) {
    fprintf(f, ",%s_loss", set_names[k]);
    for (int i = 0; i < LABELS; i++)
      fprintf(f, ",%s_%s_mae,%s_%s_rmse", set_names[k], label_names[i], set_names[k],
              label_names[i]);
  }
  fputs(",best\n", f);
  for (int64_t e = 0; e < s->n; e++) {
    const epoch_record *r = &s->records[e];
    fprintf(f, "%lld", (long long)e + 1);
    cell(f, r->lr);
    cell(f, r->norm);
    for (int k = 0; k < SETS; k++) {
      cell(f, r->loss[k]);
      for (int i = 0; i < LABELS; i++) {
        cell(f, r->mae[k][i]);
        cell(f, r->rmse[k][i]);
      }
    }
    fprintf(f, ",%d\n", r->best > 0);
  }
  return !ferror(f);
}

/* A panel of the loss, and one of each error that is known, on a logarithmic scale. */
typedef struct {
  double *y[1 + LABELS][SETS];
  plot_panel panels[1 + LABELS];
  int n;
} curves;

static double value_of(const epoch_record *r, int panel, int set) {
  return panel ? 1e3 * r->mae[set][panel - 1] : r->loss[set];
}

static bool known(const train_state *s, int panel, int set) {
  for (int64_t e = 0; e < s->n; e++)
    if (!(value_of(&s->records[e], panel, set) > 0)) return false;
  return true;
}

static void add_panel(curves *c, const train_state *s, int panel) {
  static const char *const titles[1 + LABELS] = {"Loss (log10)",
                                                 "Energy, mean absolute error (log10 of meV/atom)",
                                                 "Forces, mean absolute error (log10 of meV/A)",
                                                 "Stress, mean absolute error (log10 of meV/A^3)"};
  plot_panel *p = &c->panels[c->n];
  *p = (plot_panel){.title = titles[panel]};
  for (int set = 0; set < SETS; set++) {
    if (!known(s, panel, set)) continue;
    double *y = c->y[panel][set] = allocate((size_t)s->n, sizeof *y);
    for (int64_t e = 0; e < s->n; e++) y[e] = log10(value_of(&s->records[e], panel, set));
    p->names[p->n_curves] = set_names[set];
    p->y[p->n_curves++] = y;
  }
  c->n += p->n_curves > 0;
}

static bool write_plot(const train_story *s) {
  const train_state *state = s->state;
  const char *slash = strrchr(s->y->name, '/');
  char title[160], subtitle[320];
  curves c = {0};
  double *x = allocate((size_t)state->n, sizeof *x);
  for (int64_t e = 0; e < state->n; e++) x[e] = (double)e + 1;
  for (int panel = 0; panel <= LABELS; panel++) add_panel(&c, state, panel);
  snprintf(title, sizeof title, "Training of %s", slash ? slash + 1 : s->y->name);
  snprintf(subtitle, sizeof subtitle, "%lld frames of %s, %s", (long long)s->sets[TRAINED].n,
           s->a->train.names[0], rule_names[s->a->optimizer.rule]);
  const bool good =
      !c.n || file_replace(s->a->plot, plot_write,
                           &(plot){title, subtitle, "Epoch", (int)state->n, x, c.n, c.panels});
  for (int panel = 0; panel <= LABELS; panel++)
    for (int set = 0; set < SETS; set++) free(c.y[panel][set]);
  free(x);
  return good;
}

bool report_files(const train_story *s) {
  if (s->a->csv && !file_replace(s->a->csv, write_csv, s->state)) return false;
  return !s->a->plot || !s->state->n || write_plot(s);
}
