/* tools/train/train.c - `clebsch train`: trains models on labelled structures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/common/stopping.h"
#include "tools/fetch/known_models.h"
#include "tools/measure/timing.h"
#include "tools/train/model_bytes.h"
#include "tools/train/devices/ranks.h"
#include "tools/train/devices/shares.h"
#include "tools/train/train_report.h"

typedef struct {
  const train_arguments *a;
  train_devices devices;
  label_statistics statistics; /* of --train, for a new network */
  model_bytes file;
  learner learner;
  lr_schedule schedule;
  labelled_batch sets[SETS];
  int64_t replayed; /* the first frame of --replay in sets[TRAINED] */
  train_state state;
  epoch_sums sums;         /* of this epoch, as far as they are seen */
  batch_queue queue;       /* what is not */
  int64_t most_unseen;     /* batches */
  int64_t *order, *ends;   /* [frames to train on]: of this epoch, and of its batches */
  int64_t epochs, batches; /* of the run; of this epoch */
  uint64_t seed;
  double start, told, seen; /* seconds */
  double first;             /* the step at which this run started */
  double timed;             /* the one from which on times are told */
  bool writes;              /* the files: not those of other ranks than the first */
  bool stopped;             /* by a signal */
} train_run;

static train_story story_of(const train_run *r) {
  return (train_story){.a = r->a,
                       .y = r->devices.y,
                       .statistics = r->a->made.name ? &r->statistics : NULL,
                       .learner = &r->learner,
                       .sets = r->sets,
                       .replayed = r->sets[TRAINED].n - r->replayed,
                       .state = &r->state,
                       .epochs = r->epochs,
                       .batches = r->batches,
                       .seconds = seconds_now() - r->start,
                       .timed = r->state.at.step - r->timed};
}

/* ---- start ---- */

static bool name_files(const train_arguments *a) {
  const bool again = a->from && a->restart && same_file(a->from, a->restart);
  const int inputs = 1 + a->train.n + a->valid.n + a->replay.n;
  named_file *all = allocate((size_t)inputs + 5, sizeof *all), *at = all;
  struct stat about;
  *at++ = (named_file){"the model (--model)", a->made.name ? NULL : a->choice.model, FILE_INPUT};
  for (int i = 0; i < a->train.n; i++)
    *at++ = (named_file){"structures (--train)", a->train.names[i], FILE_INPUT};
  for (int i = 0; i < a->valid.n; i++)
    *at++ = (named_file){"structures (--valid)", a->valid.names[i], FILE_INPUT};
  for (int i = 0; i < a->replay.n; i++)
    *at++ = (named_file){"structures (--replay)", a->replay.names[i], FILE_INPUT};
  *at++ =
      (named_file){"the restart to go on from (--continue)", again ? NULL : a->from, FILE_INPUT};
  *at++ = (named_file){"the new model (--out)", a->out, FILE_WHOLE};
  *at++ = (named_file){"the restart (--restart)", a->restart, FILE_WHOLE};
  *at++ = (named_file){"the table (--csv)", a->csv, FILE_WHOLE};
  *at++ = (named_file){"the picture (--plot)", a->plot, FILE_WHOLE};
  const bool good = outputs_ready(all, inputs + 5);
  free(all);
  if (good && a->out == default_out && !a->from && !stat(a->out, &about)) {
    warn("%s: the file exists: name another with --out", a->out);
    return false;
  }
  if (!good || !a->restart || again || stat(a->restart, &about) || !about.st_size) return good;
  warn("%s: the file exists: name another, or --continue goes on from it", a->restart);
  return false;
}

static bool read_set(train_run *r, int set, const name_list *files) {
  bool good = true;
  for (int i = 0; i < files->n && good; i++)
    good = labelled_batch_read(&r->sets[set], r->devices.y, files->names[i], &r->a->choice.reading);
  return good;
}

/* Without --valid, a part of --train becomes that set; which frames it has, the seed decides. */
static void split_sets(train_run *r) {
  labelled_batch *b = &r->sets[TRAINED];
  const int64_t part = (int64_t)(r->a->valid_part * (double)b->n);
  if (!part) return;
  int64_t *order = allocate((size_t)b->n, sizeof *order);
  epoch_order(b->n, r->seed, -1, order);
  labelled_batch_move(b, part, order, &r->sets[VALIDATED]);
  free(order);
}

static clb_loss loss_of_stage(const train_arguments *a, bool second) {
  const double *w = a->second.weights;
  clb_loss loss = a->loss.loss;
  if (second) loss.energy = w[0], loss.forces = w[1], loss.stress = w[2];
  return loss;
}

/* A set whose loss is 0, whatever the model is, chooses nothing. */
static bool counts(const train_arguments *a, const labelled_batch *set) {
  const clb_loss first = loss_of_stage(a, false), second = loss_of_stage(a, a->second.after >= 0);
  return labelled_batch_counts(set, &first) && labelled_batch_counts(set, &second);
}

static bool read_sets(train_run *r) {
  if (!read_set(r, TRAINED, &r->a->train) || !read_set(r, VALIDATED, &r->a->valid)) return false;
  if (!r->a->valid.n) split_sets(r);
  r->replayed = r->sets[TRAINED].n;
  if (!read_set(r, TRAINED, &r->a->replay)) return false;
  for (int set = 0; set < SETS; set++)
    if (r->sets[set].n && !(labelled_batch_end(&r->sets[set]) && counts(r->a, &r->sets[set])))
      return false;
  return true;
}

/* Where several devices share them. */
static void measure_sets(train_run *r) {
  const train_devices *d = &r->devices;
  const rank_numbers ranks = ranks_of_run();
  for (int set = 0; set < SETS && d->parts > 1; set++) {
    labelled_batch *b = &r->sets[set];
    b->sizes = allocate((size_t)b->n, sizeof *b->sizes);
    shares_measure(b->n, b->atoms, d->y->info.r_max, ranks.rank, ranks.n, d->n, b->sizes);
    ranks_sum(b->n, b->sizes);
  }
}

static void begin_epoch(train_run *r) {
  const batch_size most = {r->a->batch, r->a->batch_atoms};
  epoch_order(r->sets[TRAINED].n, r->seed, r->state.n, r->order);
  r->batches = epoch_batches(&r->sets[TRAINED], r->order, most, r->ends);
}

/* As many epochs as have about `steps`. */
static int64_t epochs_of(const train_run *r) {
  enum { LEAST = 10, MOST = 2000 };
  const int64_t n = (r->a->steps + r->batches - 1) / r->batches;
  if (r->a->epochs >= 0) return r->a->epochs;
  return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

/* Whether the restart is of a run like this one. */
static bool same_run(const train_run *r) {
  const train_numbers *at = &r->state.at;
  if ((int64_t)at->frames[TRAINED] != r->sets[TRAINED].n ||
      (int64_t)at->frames[VALIDATED] != r->sets[VALIDATED].n)
    warn("%s: it is of a run with %.0f frames in --train and %.0f in --valid; these are %lld and "
         "%lld",
         r->a->from, at->frames[TRAINED], at->frames[VALIDATED], (long long)r->sets[TRAINED].n,
         (long long)r->sets[VALIDATED].n);
  else if ((int64_t)at->size != r->a->batch || (int64_t)at->atoms != r->a->batch_atoms)
    warn("%s: it is of a run with %s %.0f", r->a->from, at->size > 0 ? "--batch" : "--batch-atoms",
         at->size > 0 ? at->size : at->atoms);
  else if (at->sum != train_sum(r->sets, r->replayed, &r->a->loss.loss))
    warn("%s: it is of a run with other structures, labels or loss, with which losses cannot be "
         "compared: --model %s goes on with these",
         r->a->from, r->a->out);
  else return true;
  return false;
}

static bool begin_state(train_run *r) {
  const train_arguments *a = r->a;
  train_state *s = &r->state;
  s->best = allocate((size_t)r->learner.n, sizeof *s->best);
  if (!a->from) {
    s->at = (train_numbers){.seed = (double)r->seed,
                            .size = (double)a->batch,
                            .atoms = (double)a->batch_atoms,
                            .frames = {(double)r->sets[TRAINED].n, (double)r->sets[VALIDATED].n},
                            .sum = train_sum(r->sets, r->replayed, &a->loss.loss),
                            .best = INFINITY,
                            .plateau = {INFINITY, 1, 0}};
    return true;
  }
  if (!train_restart_read(a->from, r->file.sum, s, &r->learner) || !same_run(r)) return false;
  sums_unpack(s->at.sums, &r->sums);
  r->first = r->timed = s->at.step;
  return true;
}

static bool open_model(train_run *r, const char *at) {
  md_choice choice = r->a->choice;
  choice.at = at;
  return (at || model_is_there(choice.model)) &&
         model_bytes_read(&r->file, at ? at : choice.model) &&
         train_devices_open(&r->devices, &choice);
}

/* A function of --train, the options and the seed: it is made again where a run goes on. */
static bool open_new(train_run *r) {
  const train_arguments *a = r->a;
  const new_network network = new_network_of(&a->made);
  char at[40];
  if (!label_statistics_read(a->train.names, a->train.n, &a->choice.reading, network.c.r_max,
                             &r->statistics))
    return false;
  const int file = new_network_make(&network, &r->statistics, r->seed);
  snprintf(at, sizeof at, "/proc/self/fd/%d", file);
  const bool good = open_model(r, at);
  close(file);
  return good;
}

static bool begin(train_run *r) {
  const train_arguments *a = r->a;
  r->seed = a->seed;
  if ((r->writes && !name_files(a)) || (a->from && !train_restart_seed(a->from, &r->seed)) ||
      !(a->made.name ? open_new(r) : open_model(r, NULL)) || !read_sets(r) ||
      !learner_open(&r->learner, &r->devices, a))
    return false;
  measure_sets(r);
  r->order = allocate((size_t)r->sets[TRAINED].n, sizeof *r->order);
  r->ends = allocate((size_t)r->sets[TRAINED].n, sizeof *r->ends);
  begin_epoch(r);
  r->most_unseen = 1;
  r->epochs = epochs_of(r);
  r->schedule = a->schedule;
  if (a->warm_epochs > 0) r->schedule.warm_up = a->warm_epochs * (double)r->batches;
  return begin_state(r);
}

/* ---- the stage ---- */

static bool second_stage_now(const train_run *r) {
  return r->a->second.after >= 0 && r->state.n >= r->a->second.after;
}

static clb_loss loss_now(const train_run *r) { return loss_of_stage(r->a, second_stage_now(r)); }

/* ---- files during the run ---- */

static bool write_restart(train_run *r) {
  if (!r->a->restart) return true;
  sums_pack(&r->sums, r->state.at.sums);
  return learner_read(&r->learner) &&
         (!r->writes || train_restart_write(r->a->restart, r->file.sum, &r->state, &r->learner));
}

static bool write_best(train_run *r) {
  if (!r->writes) return true;
  for (int i = 0; i < r->learner.n_tensors; i++) {
    const clb_tensor_info *t = &r->learner.tensor[i].info;
    if (t->first < r->learner.n_model) model_bytes_set(&r->file, t, r->state.best + t->first);
  }
  return model_bytes_write(&r->file, r->a->out);
}

/* ---- steps ---- */

/* Whether a signal has come, to the first rank. */
static bool stop_now(train_run *r) {
  double came = stopping();
  ranks_copy(1, &came);
  return r->stopped = came > 0;
}

/* Of a step of this epoch. */
static double rate_of(const train_run *r, double batch) {
  const train_numbers *at = &r->state.at;
  const lr_plateau p = {at->plateau[0], at->plateau[1], (int64_t)at->plateau[2]};
  if (second_stage_now(r)) return r->a->second.lr;
  const lr_time now = {r->state.n, r->epochs, (int64_t)batch, r->batches};
  return schedule_rate(&r->schedule, &p, &now);
}

static void tell(train_run *r) {
  const clb_loss loss = loss_now(r);
  const train_numbers *at = &r->state.at;
  const double now = seconds_now(), all = (double)(r->epochs * r->batches),
               done = (double)(r->state.n * r->batches) + at->batch;
  if (now - r->told < 0.2) return;
  r->told = now;
  const double left = (now - r->start) * (all - done) / (at->step - r->first);
  progress("epoch %lld of %lld, step %.0f of %lld: loss %.6g, %.3g %s left",
           (long long)r->state.n + 1, (long long)r->epochs, at->batch, (long long)r->batches,
           sums_loss(&r->sums, &loss),
           left < 120    ? left
           : left < 7200 ? left / 60
                         : left / 3600,
           left < 120    ? "s"
           : left < 7200 ? "minutes"
                         : "hours");
}

/* Waits for the device, after as many steps as take half a second or so. */
static bool see(train_run *r) {
  const double start = seconds_now(), steps = (double)r->queue.n;
  if (!batches_see(&r->queue, &r->sums, &r->state.at.norms)) return false;
  const double now = seconds_now(), most = steps > 0 ? 0.5 * steps / (now - r->seen) : 1;
  r->devices.spent[SPENT_GRADIENT] += now - start;
  if (learner_stays_on_device(&r->learner))
    r->most_unseen = (int64_t)fmax(1, fmin(most, fmin(2 * (double)r->most_unseen, CLB_NORMS)));
  r->seen = now;
  return true;
}

static bool step(train_run *r) {
  const double start = seconds_now();
  train_numbers *at = &r->state.at;
  const int64_t k = (int64_t)at->batch, first = k ? r->ends[k - 1] : 0;
  const clb_loss loss = loss_now(r);
  const batch_work b = {&r->learner, &loss, &r->sets[TRAINED], r->order + first, r->ends[k] - first,
                        r->replayed, NULL};
  if (!batch_submit(&b, true, &r->queue) || !learner_step(&r->learner, rate_of(r, at->batch)) ||
      (r->queue.n >= r->most_unseen && !see(r)))
    return false;
  at->batch++;
  at->step++;
  const double stepped = seconds_now();
  if (!learner_use(&r->learner, HEAD_TRAINED)) return false;
  const double now = seconds_now();
  r->devices.spent[SPENT_PARAMETERS] += now - stepped;
  r->devices.spent[SPENT_ALL] += now - start;
  if (!r->queue.n) tell(r);
  return true;
}

static bool see_rest(train_run *r) {
  const double start = seconds_now();
  const bool good = see(r);
  r->devices.spent[SPENT_ALL] += seconds_now() - start;
  return good;
}

/* Of a model that knows something, whether labels seem to have another unit. */
static bool check_labels(train_run *r) {
  enum { CHECKED = 32 };
  const labelled_batch *set = &r->sets[TRAINED];
  label_fits fits = {0};
  epoch_sums sums = {0};
  char text[LABEL_UNITS_TEXT];
  bool good = true;
  if (r->a->made.name || r->a->from) return true;
  begin_epoch(r);
  for (int64_t k = 0, first = 0; k < r->batches && first < CHECKED && good; first = r->ends[k++]) {
    const batch_work b = {&r->learner,        &r->a->loss.loss, set,  r->order + first,
                          r->ends[k] - first, r->replayed,      &fits};
    good = batch_compute(&b, &sums);
  }
  for (int kind = 0; kind < LABELS && good && r->writes; kind++)
    if (label_units_wrong(&fits, kind, text)) warn("%s", text);
  return good;
}

/* ---- epochs ---- */

static void record_set(epoch_record *record, int set, const epoch_sums *s, const clb_loss *loss) {
  record->loss[set] = s->structures > 0 ? sums_loss(s, loss) : NAN;
  for (int k = 0; k < LABELS; k++) {
    record->mae[set][k] = label_error_mean(&s->errors[k]);
    record->rmse[set][k] = label_error_root_mean(&s->errors[k]);
  }
}

static bool validate(train_run *r, const clb_loss *loss, epoch_sums *sums) {
  const train_arguments *a = r->a;
  learner *l = &r->learner;
  if (!r->sets[VALIDATED].n) return true;
  return learner_use_result(l) &&
         epoch_evaluate(l, loss, &r->sets[VALIDATED], (batch_size){a->batch, a->batch_atoms},
                        sums) &&
         learner_use(l, HEAD_TRAINED);
}

static bool end_epoch(train_run *r) {
  train_numbers *at = &r->state.at;
  const clb_loss loss = loss_now(r);
  epoch_sums valid = {0};
  epoch_record record = {.lr = rate_of(r, at->batch - 1), .norm = at->norms / at->batch};
  if (!validate(r, &loss, &valid)) return false;
  record_set(&record, TRAINED, &r->sums, &loss);
  record_set(&record, VALIDATED, &valid, &loss);
  const double by = record.loss[r->sets[VALIDATED].n ? VALIDATED : TRAINED];
  lr_plateau p = {at->plateau[0], at->plateau[1], (int64_t)at->plateau[2]};
  plateau_see(&r->schedule, &p, by);
  at->plateau[0] = p.best, at->plateau[1] = p.factor, at->plateau[2] = (double)p.bad;
  record.best = by < at->best || r->state.n == r->a->second.after; /* the first of its stage */
  state_add(&r->state, &record);
  at->batch = at->norms = 0;
  r->sums = (epoch_sums){0};
  if (!(record.best > 0)) return true;
  at->best = by;
  at->best_epoch = (double)r->state.n;
  if (!learner_read(&r->learner)) return false;
  memcpy(r->state.best, learner_result(&r->learner), (size_t)r->learner.n * sizeof(double));
  return write_best(r);
}

/* The first epoch's steps are slower than others: memory is found, and drivers compile. */
static void time_steps(train_run *r) {
  const double now = r->state.at.step;
  if (r->timed > r->first || !(now > r->first)) return;
  r->timed = now;
  memset(r->devices.spent, 0, SPENT * sizeof *r->devices.spent);
}

static bool run_epoch(train_run *r) {
  begin_epoch(r);
  time_steps(r);
  r->seen = seconds_now();
  while ((int64_t)r->state.at.batch < r->batches && !stop_now(r))
    if (!step(r)) return false;
  if (!see_rest(r)) return false;
  if ((int64_t)r->state.at.batch < r->batches) return write_restart(r);
  if (!end_epoch(r) || !write_restart(r)) return false;
  const train_story story = story_of(r);
  if (!r->a->json) report_epoch(&story);
  return !r->writes || report_files(&story);
}

static bool go(train_run *r) {
  const train_story story = story_of(r);
  bool good = !r->epochs || check_labels(r);
  if (good && !r->a->json) report_head(&story);
  if (good && isfinite(r->state.at.best)) good = write_best(r);
  else if (good && !r->epochs && r->writes) good = model_bytes_write(&r->file, r->a->out);
  while (good && r->state.n < r->epochs && !stop_now(r)) good = run_epoch(r);
  if (r->devices.other_failed && r->state.at.step > r->first && ranks_of_run().n == 1)
    write_restart(r);
  progress(NULL);
  return good;
}

static void finish(const train_run *r) {
  const train_story story = story_of(r);
  if (r->a->json) report_json(&story);
  else report_end(&story);
}

int train_main(int argc, char **argv) {
  train_arguments a;
  train_options(argc, argv, &a);
  bool good = !a.mpi || ranks_begin();
  train_run r = {.a = &a, .writes = !ranks_of_run().rank};
  good = good && begin(&r);
  r.start = seconds_now();
  if (good) stopping_begin();
  good = good && go(&r);
  if (good) finish(&r);
  if (good && r.stopped && r.writes)
    warn("stopped by a signal after step %.0f, in epoch %lld", r.state.at.step,
         (long long)r.state.n + 1);
  learner_close(&r.learner);
  state_free(&r.state);
  for (int set = 0; set < SETS; set++) labelled_batch_free(&r.sets[set]);
  train_devices_close(&r.devices);
  model_bytes_free(&r.file);
  free(r.order);
  free(r.ends);
  free(r.queue.batch);
  train_options_free(&a);
  ranks_end(good);
  return good && !r.stopped ? EXIT_GOOD : EXIT_FAILED;
}
