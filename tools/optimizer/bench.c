/* tools/optimizer/bench.c - `clebsch bench optimizer`: steps on lists of parameters beside a copy
   that moves as many bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/random.h"
#include "tools/measure/timing.h"
#include "tools/optimizer/optimizer_tool.h"
#include "tools/optimizer/parameter_lists.h"

#define F32_ONLY .parameters = CLB_F32, .gradients = CLB_F32
#define WHOLE .clip = CLB_CLIP_TORCH, .max_norm = 10, .ema = CLB_EMA_WARM_UP, .ema_decay = 0.99
static const tool_training trainings[] = {
    {.name = "sgd", .group = {.rule = CLB_SGD, .lr = 1e-3, .momentum = 0.9}, F32_ONLY},
    {.name = "adam", .group = {.rule = CLB_ADAM, .lr = 1e-3}, F32_ONLY},
    {.name = "adamw", .group = {.rule = CLB_ADAMW, .lr = 1e-3, .weight_decay = 1e-2}, F32_ONLY},
    {.name = "amsgrad", .group = {.rule = CLB_ADAM, .lr = 1e-3, .amsgrad = 1}, F32_ONLY},
    {.name = "muon", .group = {.rule = CLB_MUON, .lr = 1e-2, .weight_decay = 1e-3}, F32_ONLY},
    {.name = "soap", .group = {.rule = CLB_SOAP, .lr = 3e-3, .weight_decay = 1e-2}, F32_ONLY},
    {.name = "bf16",
     .group = {.rule = CLB_ADAMW, .lr = 1e-3},
     .parameters = CLB_F32,
     .gradients = CLB_BF16,
     .copies = true,
     .copy = CLB_BF16},
    {.name = "whole",
     .group = {.rule = CLB_ADAMW, .lr = 1e-3, .weight_decay = 1e-2},
     F32_ONLY,
     WHOLE},
    {.name = "whole-amsgrad",
     .group = {.rule = CLB_ADAM, .lr = 1e-3, .amsgrad = 1},
     F32_ONLY,
     WHOLE},
};
enum { TRAININGS = sizeof trainings / sizeof *trainings };

typedef struct {
  device_options devices;
  unsigned lists, trainings; /* bit sets; 0: not given */
  bool scattered;
  json_t *rows; /* NULL: a table */
  table table;
} bench;

/* ---- one list, several times, so that no cache keeps it ---- */

enum { PARAMETERS, GRADIENTS, COPY, AVERAGE, ARRAYS, MAX_SETS = 32 };
typedef struct {
  clb_buffer **buffer[ARRAYS]; /* of each tensor where they are scattered, else one */
  clb_optimizer *optimizer;
} set;

typedef struct {
  clb_context *ctx;
  const parameter_list *list;
  const tool_training *what;
  bool scattered;
  int n_sets;
  set sets[MAX_SETS];
  clb_recording *recording; /* a step of each set */
} trial;

static uint64_t type_bytes(clb_dtype type) { return type == CLB_F64 ? 8 : type == CLB_F32 ? 4 : 2; }

static clb_dtype type_of(const trial *t, int array) {
  return array == GRADIENTS ? t->what->gradients
         : array == COPY    ? t->what->copy
                            : t->what->parameters;
}

static bool has(const trial *t, int array) {
  return array == COPY ? t->what->copies : array != AVERAGE || t->what->ema;
}

/* What a step must read and write of each number, each array once; of the clip's norm, too. */
static double bytes_of_number(const trial *t) {
  const tool_training *w = t->what;
  const double p = (double)type_bytes(w->parameters), g = (double)type_bytes(w->gradients);
  const int states = w->group.rule == CLB_SGD    ? w->group.momentum != 0
                     : w->group.rule == CLB_MUON ? 1
                                                 : 2 + w->group.amsgrad;
  return 2 * p * (1 + states + (w->ema != 0)) + g * (w->clip ? 2 : 1) +
         (w->copies ? (double)type_bytes(w->copy) : 0);
}

/* Tensors start at multiples of 64 elements. */
static int64_t place_after(int64_t at, int64_t n) { return (at + n + 63) / 64 * 64; }

/* Small numbers: zeros would compress, and be slow where they become subnormal. */
static clb_status fill(clb_buffer *b, uint64_t bytes) {
  enum { PIECE = 1 << 20 };
  uint16_t *piece = allocate(PIECE, sizeof *piece); /* in each type about 0.01 */
  uint64_t seed = 1;
  clb_status s = CLB_OK;
  for (int i = 0; i < PIECE; i++)
    piece[i] = (uint16_t)(0x3c00 + (int)(127 * (1 + random_number(&seed)) / 2));
  for (uint64_t at = 0; at < bytes && !s; at += PIECE * sizeof *piece) {
    const uint64_t left = bytes - at;
    s = clb_buffer_write(b, at, piece, left < PIECE * sizeof *piece ? left : PIECE * sizeof *piece);
  }
  free(piece);
  return s;
}

static clb_status make_array(trial *t, set *u, int array) {
  const parameter_list *l = t->list;
  int64_t at = 0;
  clb_status s = CLB_OK;
  u->buffer[array] = allocate((size_t)l->n, sizeof(clb_buffer *));
  for (int64_t i = 0; i < l->n; i++) at = place_after(at, l->shape[i][0] * l->shape[i][1]);
  for (int64_t i = 0; i < (t->scattered ? l->n : 1) && !s; i++) {
    const int64_t n = t->scattered ? l->shape[i][0] * l->shape[i][1] : at;
    const uint64_t bytes = (uint64_t)n * type_bytes(type_of(t, array));
    s = clb_buffer_create(t->ctx, bytes, &u->buffer[array][i]);
    if (!s) s = fill(u->buffer[array][i], bytes);
  }
  return s;
}

/* What Muon has for vectors. */
static const clb_optimizer_group rest = {.rule = CLB_ADAM, .lr = 1e-2, .nesterov = 1};

static clb_status make_set(trial *t, set *u) {
  const parameter_list *l = t->list;
  const tool_training *w = t->what;
  clb_optimizer_tensor *tensor = allocate((size_t)l->n, sizeof *tensor);
  const clb_optimizer_group groups[] = {w->group, rest};
  const bool muon = w->group.rule == CLB_MUON;
  clb_status s = CLB_OK;
  int64_t at = 0;
  for (int a = 0; a < ARRAYS && !s; a++)
    if (has(t, a)) s = make_array(t, u, a);
  for (int64_t i = 0; i < l->n && !s; i++) {
    clb_place *const places[ARRAYS] = {&tensor[i].parameters, &tensor[i].gradients, &tensor[i].copy,
                                       &tensor[i].average};
    tensor[i].rows = l->shape[i][0];
    tensor[i].columns = l->shape[i][1];
    tensor[i].group = muon && l->shape[i][1] == 1;
    for (int a = 0; a < ARRAYS; a++)
      if (has(t, a))
        *places[a] = (clb_place){u->buffer[a][t->scattered ? i : 0], t->scattered ? 0 : at};
    at = place_after(at, tensor[i].rows * tensor[i].columns);
  }
  clb_optimizer_desc desc = training_desc(w);
  desc.tensors = tensor, desc.n_tensors = l->n;
  desc.groups = groups, desc.n_groups = muon ? 2 : 1;
  if (!s) s = clb_optimizer_create(t->ctx, &desc, &u->optimizer);
  free(tensor);
  return s;
}

static void free_set(trial *t, set *u) {
  clb_optimizer_destroy(&u->optimizer);
  for (int a = 0; a < ARRAYS; a++) {
    for (int64_t i = 0; i < t->list->n && u->buffer[a]; i++) clb_buffer_destroy(&u->buffer[a][i]);
    free(u->buffer[a]);
  }
}

static clb_status step(void *user, int i) {
  return clb_optimizer_step(((trial *)user)->sets[i].optimizer);
}

static clb_status replay(void *user, int i) {
  (void)i;
  return clb_replay(((trial *)user)->recording);
}

/* ---- times ---- */

typedef struct {
  double bytes, create, host, submitted, replayed, copy; /* seconds of a step */
} times;

static clb_status record(trial *t) {
  clb_status s = clb_record_begin(t->ctx);
  for (int i = 0; i < t->n_sets && !s; i++) s = step(t, i);
  return s ? s : clb_record_end(t->ctx, &t->recording);
}

static clb_status measure(trial *t, const clb_device_info *info, times *m) {
  const double bytes = bytes_of_number(t) * (double)t->list->all;
  const int wanted = 1 + (int)(2 * (double)cache_bytes(info) / bytes);
  timing all, single;
  clb_status s = CLB_OK;
  *m = (times){.bytes = bytes};
  t->n_sets = wanted < MAX_SETS ? wanted : MAX_SETS;
  for (int i = 0; i < t->n_sets && !s; i++) {
    const double start = seconds_now();
    s = make_set(t, &t->sets[i]);
    if (!i) m->create = seconds_now() - start;
  }
  if (!s) s = record(t);
  if (!s) s = time_launches(t->ctx, replay, t, 1, &all);
  if (!s) s = time_launches(t->ctx, step, t, t->n_sets, &single);
  if (!s)
    m->replayed = all.seconds / t->n_sets, m->submitted = single.seconds, m->host = single.host;
  clb_recording_destroy(&t->recording);
  for (int i = 0; i < t->n_sets; i++) free_set(t, &t->sets[i]);
  return s ? s : clb_measure_copy(t->ctx, (uint64_t)bytes, &m->copy);
}

/* ---- output ---- */

static void add_json(const bench *b, const clb_device_info *info, const trial *t, const times *m) {
  json_t *row = json_array_add(b->rows, json_object());
  JSON_ADD(row, {"parameters", json_text(t->list->name)}, {"training", json_text(t->what->name)},
           {"device", json_text(info->name)}, {"description", json_text(info->description)},
           {"driver", json_text(info->driver)}, {"scattered", json_boolean(t->scattered)},
           {"tensors", json_count(t->list->n)}, {"numbers", json_count(t->list->all)},
           {"bytes", json_number(m->bytes)}, {"seconds", json_number(m->replayed)},
           {"seconds_submitted", json_number(m->submitted)}, {"host_seconds", json_number(m->host)},
           {"copy_seconds", json_number(m->copy)},
           {"copy_fraction", json_number(m->copy / m->replayed)},
           {"create_seconds", json_number(m->create)});
}

enum {
  LIST,
  TRAINING,
  NUMBERS,
  MEGABYTES,
  REPLAYED,
  SUBMITTED,
  HOST,
  COPIED,
  FRACTION,
  CREATED,
  COLUMNS
};

static void add_line(const bench *b, const trial *t, const times *m) {
  const double numbers[COLUMNS] = {[NUMBERS] = (double)t->list->all,
                                   [MEGABYTES] = m->bytes * 1e-6,
                                   [REPLAYED] = m->replayed * 1e6,
                                   [SUBMITTED] = m->submitted * 1e6,
                                   [HOST] = m->host * 1e6,
                                   [COPIED] = m->copy * 1e6,
                                   [FRACTION] = 100 * m->copy / m->replayed,
                                   [CREATED] = m->create};
  static const int digits[COLUMNS] = {
      [REPLAYED] = 1, [SUBMITTED] = 1, [HOST] = 1, [COPIED] = 1, [FRACTION] = 1, [CREATED] = 2};
  char made[COLUMNS][24];
  const char *cells[COLUMNS] = {t->list->name, t->what->name};
  for (int c = NUMBERS; c < COLUMNS; c++) {
    snprintf(made[c], sizeof made[c], "%.*f", digits[c], numbers[c]);
    cells[c] = made[c];
  }
  progress(NULL);
  table_line(&b->table, cells);
  fflush(stdout);
}

static int one(bench *b, clb_context *ctx, const clb_device_info *info, const parameter_list *l,
               const tool_training *what) {
  trial t = {.ctx = ctx, .list = l, .what = what, .scattered = b->scattered};
  times m;
  const double needed = (bytes_of_number(&t) + 8) * (double)l->all;
  if (memory_bytes(info) && needed > 0.9 * (double)memory_bytes(info)) {
    warn("bench optimizer: %s: %s %s needs %.1f GB, which %s does not have", info->name, l->name,
         what->name, needed * 1e-9, info->name);
    return EXIT_GOOD;
  }
  progress("%s: %s, %s", info->name, l->name, what->name);
  const clb_status s = measure(&t, info, &m);
  if (s) warn("bench optimizer: %s: %s", info->name, clb_error(ctx));
  else if (b->rows) add_json(b, info, &t, &m);
  else add_line(b, &t, &m);
  return s ? failure(s) : EXIT_GOOD;
}

static int on_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  bench *b = user;
  int worst = EXIT_GOOD;
  (void)asked;
  if (!info->runs) {
    warn("bench optimizer: %s only compiles", info->name);
    return EXIT_FAILED;
  }
  b->table = (table){.n = COLUMNS,
                     .titles = {"parameters", "training", ">numbers", ">MB", ">step us",
                                ">submitted", ">host us", ">copy us", ">% copy", ">create s"}};
  table_fit(&b->table, LIST, "ghostnet");
  table_fit(&b->table, TRAINING, "whole-amsgrad");
  table_fit(&b->table, NUMBERS, "564463616");
  for (int c = MEGABYTES; c <= COPIED; c++) table_fit(&b->table, c, "12345.6");
  if (!b->rows) printf("%s (%s)\n", info->name, info->description);
  if (!b->rows) table_titles(&b->table);
  for (int i = 0; i < PARAMETER_LISTS && worst < EXIT_USAGE; i++) {
    parameter_list l = parameter_list_make(i);
    for (int k = 0; k < TRAININGS; k++) {
      if (!(b->lists >> i & 1) || !(b->trainings >> k & 1)) continue;
      const int status = one(b, ctx, info, &l, &trainings[k]);
      if (status > worst) worst = status;
    }
    parameter_list_free(&l);
  }
  progress(NULL);
  return worst;
}

/* ---- the command ---- */

bool bench_optimizer_asked(int argc, char **argv) {
  return argc > 1 && !strcmp(argv[1], "optimizer");
}

enum { KEY_LIST = 256, KEY_TRAINING, KEY_SCATTERED };

static error_t parse(int key, char *arg, struct argp_state *state) {
  bench *b = state->input;
  const char *names[TRAININGS];
  for (int i = 0; i < TRAININGS; i++) names[i] = trainings[i].name;
  switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &b->devices; return 0;
    case KEY_LIST:
      b->lists |=
          1u << name_among(state, "--parameters", arg, parameter_list_names, PARAMETER_LISTS);
      return 0;
    case KEY_TRAINING:
      b->trainings |= 1u << name_among(state, "--training", arg, names, TRAININGS);
      return 0;
    case KEY_SCATTERED: b->scattered = true; return 0;
    case ARGP_KEY_ARG: argp_error(state, "bench optimizer takes no '%s'", arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int bench_optimizer_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"parameters", KEY_LIST, "NAME", 0,
       "Those of nequix, mace, dcgan, ghostnet, bert or xglm; may be repeated (default: all)", 0},
      {"training", KEY_TRAINING, "NAME", 0,
       "sgd (with momentum), adam, adamw, amsgrad, muon (with Adam for vectors), soap, bf16 "
       "(AdamW with gradients and a copy in bf16), "
       "whole (AdamW, clipping and a moving average) or whole-amsgrad; may be repeated (default: "
       "all)",
       0},
      {"scattered", KEY_SCATTERED, NULL, 0, "Each tensor in a buffer of its own", 0},
      {0}};
  static const struct argp_child children[] = {{&device_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .doc = "Times steps of optimizers on lists of parameters.\v"
             "MB: what a step reads and writes, each array once. step us: of a step, of which "
             "several, on as many copies of the list as no cache holds, are replayed from a "
             "recording; submitted: the same without a recording; host us: until the call returns; "
             "copy us: of one launch that copies half of these bytes to the other half, measured "
             "in the same way. create s: the optimizer with its buffers, compiled or from the "
             "kernel cache."};
  bench b = {.rows = NULL};
  char title[] = "clebsch bench optimizer";
  argv[1] = title;
  parse_arguments(&argp, argc - 1, argv + 1, 0, &b);
  if (!b.lists) b.lists = ~0u;
  if (!b.trainings) b.trainings = ~0u;
  if (b.devices.json) b.rows = json_array();
  const int status = on_each_device(&b.devices, on_device, &b);
  if (b.rows) json_print(b.rows);
  return status;
}
