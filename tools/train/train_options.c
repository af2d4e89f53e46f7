/* tools/train/train_options.c - the options of `clebsch train`. */
#include "tools/train/train_presets.h"

#include <stdlib.h>

enum {
  TRAIN = 256,
  VALID,
  REPLAY,
  MPI,
  VALID_PART,
  LIKE,
  OPTIMIZER,
  LR,
  WEIGHT_DECAY,
  MOMENTUM,
  AMSGRAD,
  CLIP,
  EMA,
  SCHEDULE,
  LR_END,
  DECAY,
  PATIENCE,
  WARM_UP,
  STAGE_TWO,
  STAGE_TWO_WEIGHTS,
  STAGE_TWO_LR,
  BATCH,
  BATCH_ATOMS,
  SEED,
  FREEZE,
  THAW,
  RESTART,
  CONTINUE
};

const char *const rule_names[6] = {"sgd", "adam", "adamw", "schedule-free", "muon", "soap"};

static const struct argp_option options[] = {
    {"train", TRAIN, "FILE", 0,
     "Labelled structures to train on: all frames of extended XYZ; more files may follow", 1},
    {"valid", VALID, "FILE", 0,
     "Labelled structures by which the best epoch is chosen; more files may follow (default: a "
     "part "
     "of --train)",
     1},
    {"valid-part", VALID_PART, "X", 0,
     "Without --valid, so much of --train is not trained on but takes its place, if that is a "
     "frame at least (default: 0.1)",
     1},
    {"out", 'o', "FILE", 0,
     "The new model, of the best epoch so far; written whenever it improves (default: "
     "trained.safetensors, which must not exist)",
     1},
    {"replay", REPLAY, "FILE", 0,
     "Structures like those that the model has learned from, with its own labels or the old ones: "
     "it learns them, too, so that it forgets less; they have a head of their own; more files may "
     "follow",
     1},
    {"like", LIKE, "NAME", 0,
     "Loss, optimizer, schedule, batch and epochs, where options do not say, as the authors of "
     "mace, nequip, nequix or sevennet have them",
     1},
    {"epochs", 'e', "N", 0,
     "How often every structure is seen; 0: --out is the model before training (default: 20,000 "
     "steps of a new network, 5,000 of a model, but from 10 to 2,000 epochs)",
     1},
    {"batch", BATCH, "N", 0, "Structures of a step, at most (default: 8)", 1},
    {"batch-atoms", BATCH_ATOMS, "N", 0, "Atoms of a step, at most, in as many structures as fit",
     1},
    {"seed", SEED, "N", 0, "Seed of the order of structures (default: 1)", 1},
    {"freeze", FREEZE, "PATTERN", 0,
     "Tensors that stay as they are, by their names in the model file, with wildcards as in the "
     "shell: 'layers.0.*'; may be repeated",
     1},
    {"thaw", THAW, "PATTERN", 0,
     "Train these, too: bessel_frequencies, species_scale and species_shift are frozen by default",
     1},
    {"optimizer", OPTIMIZER, "NAME", 0,
     "sgd, adam, adamw (default, with AMSGrad), schedule-free, muon or soap", 2},
    {"lr", LR, "X", 0, "Learning rate (default: 0.01 of a new network, 0.001 of a model)", 2},
    {"weight-decay", WEIGHT_DECAY, "X", 0, "Weight decay (default: 0)", 2},
    {"momentum", MOMENTUM, "X", 0, "Momentum of sgd (default: 0.9) and muon (0.95)", 2},
    {"amsgrad", AMSGRAD, NULL, 0, "AMSGrad, of adam and adamw", 2},
    {"clip", CLIP, "X", 0, "Shorten gradients whose norm is above X (default: 10); 0: none", 2},
    {"ema", EMA, "DECAY", 0,
     "A moving average of the parameters is validated and written (default: 0.99); 0: none", 2},
    {"schedule", SCHEDULE, "NAME", 0,
     "Learning rate: constant; linear and cosine (default), to --lr-end in the last epoch; "
     "exponential, times --decay after each epoch; step, times --decay after every --patience "
     "epochs; plateau, times --decay after more than --patience epochs without a lower loss",
     2},
    {"lr-end", LR_END, "X", 0, "The schedule falls no lower (default: 0; cosine 0.001 --lr)", 2},
    {"decay", DECAY, "X", 0, "Factor of the schedule (default: 0.99, of step and plateau 0.8)", 2},
    {"patience", PATIENCE, "N", 0, "Epochs of a step or a plateau (default: 50)", 2},
    {"warm-up", WARM_UP, "N", 0, "The learning rate grows to its value in N steps (default: 0)", 2},
    {"stage-two", STAGE_TWO, "N", 0,
     "After N epochs a second stage begins, with a loss and a learning rate of its own; the best "
     "epoch is then one of it",
     2},
    {"stage-two-weights", STAGE_TWO_WEIGHTS, "E,F,S", 0,
     "Factors of energies, forces and stresses there (default: 1000,100,10)", 2},
    {"stage-two-lr", STAGE_TWO_LR, "X", 0, "Learning rate there (default: a tenth of --lr)", 2},
    {"mpi", MPI, NULL, 0,
     "Share batches among the processes of mpiexec, and the names of --device among those of a "
     "host",
     1},
    {"restart", RESTART, "FILE", 0, "After each epoch, write all that a later run needs to go on",
     3},
    {"continue", CONTINUE, "FILE", 0,
     "Go on from such a file, with the same model, structures and options", 3},
    {"csv", 'c', "FILE", 0, "Write a line for each epoch", 3},
    {"plot", 'p', "FILE", 0, "Write the curves of loss and errors as SVG", 3},
    {"json", 'j', NULL, 0, "Print one JSON object, nothing else", 3},
    {0}};

const char default_out[] = "trained.safetensors";

static bool given(const train_arguments *a, train_setting s) { return a->given >> s & 1; }

static void check_optimizer(const train_arguments *a, const struct argp_state *state) {
  const optimizer_choice *o = &a->optimizer;
  if (o->amsgrad && o->rule != CLB_ADAM && o->rule != CLB_ADAMW)
    argp_error(state, "--amsgrad is of --optimizer adam and adamw");
  if (given(a, SET_MOMENTUM) && o->rule != CLB_SGD && o->rule != CLB_MUON)
    argp_error(state, "--momentum is of --optimizer sgd and muon");
  if (o->ema > 0 && o->rule == CLB_SCHEDULE_FREE_ADAMW)
    argp_error(state, "--optimizer schedule-free has an average of its own, without --ema");
}

static void check_schedule(const train_arguments *a, const struct argp_state *state) {
  const lr_schedule *s = &a->schedule;
  const bool steps = s->kind == LR_STEP || s->kind == LR_PLATEAU;
  if (given(a, SET_DECAY) && s->kind != LR_EXPONENTIAL && !steps)
    argp_error(state, "--decay is of --schedule exponential, step and plateau");
  if (given(a, SET_PATIENCE) && !steps)
    argp_error(state, "--patience is of --schedule step and plateau");
  if (s->kind == LR_STEP && !s->patience)
    argp_error(state, "--patience of --schedule step is 1 or more");
  if (given(a, SET_LR_END) && s->kind == LR_CONSTANT)
    argp_error(state, "--lr-end is of a --schedule that falls");
  if (s->end > s->lr) argp_error(state, "--lr-end is above --lr");
}

static void check_stages(train_arguments *a, const struct argp_state *state) {
  second_stage *s = &a->second;
  if (s->after < 0 && s->given)
    argp_error(state, "--stage-two-weights and --stage-two-lr are of --stage-two");
  if (!(s->lr > 0)) s->lr = a->schedule.lr / 10;
}

static void check(train_arguments *a, const struct argp_state *state) {
  if (!a->choice.model && !a->made.name)
    argp_error(state, "--model is missing, or --new for a new network");
  if (a->choice.model && a->made.name) argp_error(state, "--new makes a model: it has no --model");
  if (!a->train.n) argp_error(state, "--train is missing");
  if (a->replay.n && a->made.name)
    argp_error(state, "--replay is of a model that has learned, not of --new");
  if (a->from && a->seeded) argp_error(state, "--seed: the seed is that of --continue");
  if (a->valid.n && a->valid_part >= 0)
    argp_error(state, "--valid-part is of --train, without --valid");
  if (a->valid_part < 0) a->valid_part = a->valid.n ? 0 : 0.1;
  if (!a->out) a->out = default_out;
  presets_fill(a);
  loss_check(state, &a->loss);
  check_optimizer(a, state);
  check_schedule(a, state);
  check_stages(a, state);
}

static void add_name(name_list *l, char *name) { l->names[l->n++] = name; }

/* What is a bit of `given`; false: it is something else. */
static bool parse_setting(int key, char *arg, struct argp_state *state, train_arguments *a) {
  static const int keys[] = {[SET_OPTIMIZER] = OPTIMIZER,
                             [SET_LR] = LR,
                             [SET_WEIGHT_DECAY] = WEIGHT_DECAY,
                             [SET_MOMENTUM] = MOMENTUM,
                             [SET_AMSGRAD] = AMSGRAD,
                             [SET_CLIP] = CLIP,
                             [SET_EMA] = EMA,
                             [SET_SCHEDULE] = SCHEDULE,
                             [SET_LR_END] = LR_END,
                             [SET_DECAY] = DECAY,
                             [SET_PATIENCE] = PATIENCE,
                             [SET_WARM_UP] = WARM_UP,
                             [SET_BATCH] = BATCH,
                             [SET_EPOCHS] = 'e'};
  optimizer_choice *o = &a->optimizer;
  lr_schedule *s = &a->schedule;
  for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
    if (keys[i] == key) a->given |= 1U << i;
  switch (key) {
    case OPTIMIZER:
      o->rule = (clb_rule)name_among(state, "--optimizer", arg, rule_names, 6);
      return true;
    case LR: s->lr = real_number(state, "--lr", arg, 1e-30, 1e6); return true;
    case WEIGHT_DECAY:
      o->weight_decay = real_number(state, "--weight-decay", arg, 0, 1e6);
      return true;
    case MOMENTUM: o->momentum = real_number(state, "--momentum", arg, 1e-6, 1); return true;
    case AMSGRAD: o->amsgrad = true; return true;
    case CLIP: o->clip = real_number(state, "--clip", arg, 0, 1e30); return true;
    case EMA: o->ema = real_number(state, "--ema", arg, 0, 1 - 1e-9); return true;
    case SCHEDULE:
      s->kind = (lr_kind)name_among(state, "--schedule", arg, lr_names, LR_SCHEDULES);
      return true;
    case LR_END: s->end = real_number(state, "--lr-end", arg, 0, 1e6); return true;
    case DECAY: s->decay = real_number(state, "--decay", arg, 1e-6, 1); return true;
    case PATIENCE: s->patience = whole_number(state, "--patience", arg, 0, INT32_MAX); return true;
    case WARM_UP: s->warm_up = (double)whole_number(state, "--warm-up", arg, 0, 1e15); return true;
    case BATCH: a->batch = whole_number(state, "--batch", arg, 1, INT32_MAX); return true;
    case 'e': a->epochs = whole_number(state, "--epochs", arg, 0, INT32_MAX); return true;
    default: return false;
  }
}

static void read_weights(const struct argp_state *state, const char *text, double weights[3]) {
  const char *at = text;
  for (int i = 0; i < 3; i++, at++) {
    char *end;
    weights[i] = strtod(at, &end);
    if (end == at || *end != (i < 2 ? ',' : 0) || !(weights[i] >= 0 && weights[i] <= 1e300))
      argp_error(state, "--stage-two-weights are three numbers, such as 1000,100,10; not '%s'",
                 text);
    at = end;
  }
}

static bool parse_stage(int key, char *arg, struct argp_state *state, second_stage *s) {
  if (key == STAGE_TWO) s->after = whole_number(state, "--stage-two", arg, 0, INT32_MAX);
  else if (key == STAGE_TWO_WEIGHTS) read_weights(state, arg, s->weights);
  else if (key == STAGE_TWO_LR) s->lr = real_number(state, "--stage-two-lr", arg, 1e-30, 1e6);
  else return false;
  s->given |= key != STAGE_TWO;
  return true;
}

static error_t parse_rest(int key, char *arg, struct argp_state *state) {
  train_arguments *a = state->input;
  switch (key) {
    case RESTART: a->restart = arg; return 0;
    case CONTINUE: a->from = arg; return 0;
    case 'c': a->csv = arg; return 0;
    case 'p': a->plot = arg; return 0;
    case 'j': a->json = true; return 0;
    case MPI: a->mpi = true; return 0;
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &a->choice;
      state->child_inputs[1] = &a->made;
      state->child_inputs[2] = &a->loss;
      return 0;
    case ARGP_KEY_ARG:
      if (!a->reading)
        argp_error(state, "'%s' is behind none of --train, --valid and --replay", arg);
      add_name(a->reading, arg);
      return 0;
    case ARGP_KEY_END: check(a, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  train_arguments *a = state->input;
  if (parse_setting(key, arg, state, a) || parse_stage(key, arg, state, &a->second)) return 0;
  switch (key) {
    case TRAIN: add_name(a->reading = &a->train, arg); return 0;
    case VALID: add_name(a->reading = &a->valid, arg); return 0;
    case REPLAY: add_name(a->reading = &a->replay, arg); return 0;
    case VALID_PART: a->valid_part = real_number(state, "--valid-part", arg, 0, 0.9); return 0;
    case FREEZE: add_name(&a->freeze, arg); return 0;
    case THAW: add_name(&a->thaw, arg); return 0;
    case LIKE:
      a->like = preset_names[name_among(state, "--like", arg, preset_names, PRESETS)];
      return 0;
    case 'o': a->out = arg; return 0;
    case BATCH_ATOMS:
      a->batch_atoms = whole_number(state, "--batch-atoms", arg, 1, INT32_MAX);
      return 0;
    case SEED:
      a->seed = (uint64_t)whole_number(state, "--seed", arg, 0, (int64_t)1 << 53);
      a->seeded = true;
      return 0;
    default: return parse_rest(key, arg, state);
  }
}

static const struct argp_child children[] = {{&md_model_argp, 0, NULL, 0},
                                             {&new_argp, 0, "A new network:", 0},
                                             {&loss_argp, 0, "The loss:", 0},
                                             {0}};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "--model MODEL --train FILE [FILE...]\n"
                "--new KIND --train FILE [FILE...]",
    .doc =
        "Trains a new network, or a model that is an output of `clebsch convert`, on labelled "
        "structures.\v"
        "Labels are energy, forces, stress or virial of the frames, also with REF_ before them, in "
        "eV and Angstrom; `clebsch gradient --help` has the loss. After each epoch a line tells "
        "the loss and the mean absolute errors: of energies per atom in meV, of forces in meV/A, "
        "of "
        "stresses in meV/A^3. Those of --train are means over the steps of the epoch, those of "
        "--valid are of its end, with the moving average where there is one. An epoch that is the "
        "best so far, by the loss of --valid or else of --train, has a star, and is what --out "
        "contains: the model file with other numbers, in the same types. agnesi_radii and zbl_* "
        "are "
        "never trained. muon is of tensors with two dimensions, the others have adam without "
        "decay. "
        "Ctrl-C (SIGINT, or SIGTERM) ends a run after the current step, with --restart complete "
        "and "
        "exit status 1; a second one kills. A run that goes on from there takes the same steps as "
        "one that was never interrupted, bit for bit, if device and options are the same. --device "
        "may be repeated, or be several names with commas between them, or all of a kind "
        "(cuda:all): each device computes a part of each batch, and gradients are added up in that "
        "order, so that steps are those of one device but for rounding. Where another device than "
        "the first one fails, --restart has all steps before. A loss "
        "or gradient that is not finite ends a run with the names of the frames; --out and "
        "--restart are then of before."};

void train_options(int argc, char **argv, train_arguments *a) {
  const size_t room = (size_t)argc + 1;
  *a = (train_arguments){.epochs = -1,
                         .seed = 1,
                         .valid_part = -1,
                         .second = {.after = -1, .weights = {1000, 100, 10}},
                         .choice = {.reading.labels = true, .optional = true}};
  name_list *const all[] = {&a->train, &a->valid, &a->replay, &a->freeze, &a->thaw};
  for (int i = 0; i < 5; i++) all[i]->names = allocate(room, sizeof(char *));
  parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, a);
  a->choice.options.trains = 1;
  if (!a->made.name) return;
  snprintf(a->new_name, sizeof a->new_name, "a new %s", a->made.name);
  a->choice.model = a->new_name;
}

void train_options_free(train_arguments *a) {
  name_list *const all[] = {&a->train, &a->valid, &a->replay, &a->freeze, &a->thaw};
  for (int i = 0; i < 5; i++) free(all[i]->names);
}
