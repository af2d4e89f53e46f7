/* training_step.c - the time of one training step of a model, in f32 unless told otherwise: the
   gradient of a loss of energies, forces and stresses, clipping, AdamW, and the parameters back in
   the model; also of many whose losses are read once. 64 structures of 32 atoms: rattled diamond
   and, in turn, rock salt of Na and Cl or, for models without these, of Si and O; labels are
   random. */
#include <clebsch/model.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "usage: training_step --model FILE [--device NAME] [--dtype f32|f64] [--structures N]\n"
    "                     [--warm N] [--repeat N] [--profile] [--workspace MIB]\n"
    "                     [--knots N]\n"
    "Times one training step (gradient, clipping, AdamW) of N structures (64) of 32 atoms: the\n"
    "median and least of --repeat steps (12) after --warm others (3), the mean of as many whose\n"
    "losses are read after the last, the parts of a step, the time of this thread's processor in\n"
    "one, and the memory that the model holds on the device.\n"
    "--knots: of radial networks; 0: as many as the library takes, -1: none.\n"
    "--profile: also one step with every launch timed alone, by kernel.\n";

enum { ATOMS = 32, MAX_KINDS = 256, PARTS = 3 };

typedef struct {
  const char *model, *device;
  clb_dtype dtype;
  int structures, warm, repeat, profile, workspace, knots;
} arguments;

typedef struct {
  int n;
  clb_model_atoms *atoms;
  clb_labels *labels;
  double *positions, *cells, *energies, *forces, *stress;
  int32_t *species;
} batch;

typedef struct {
  clb_context *ctx;
  clb_model *model;
  clb_model_info info;
  clb_optimizer *optimizer;
  clb_buffer *values, *gradients;
} learner;

static void must(clb_status s, clb_context *ctx) {
  if (!s) return;
  fprintf(stderr, "training_step: %s\n", clb_error(ctx));
  exit(1);
}

static void *room(size_t n, size_t size) {
  void *x = calloc(n + 1, size);
  if (x) return x;
  fprintf(stderr, "training_step: no memory\n");
  exit(1);
}

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- arguments ---- */

static arguments read_arguments(int argc, char **argv) {
  arguments a = {.dtype = CLB_F32, .structures = 64, .warm = 3, .repeat = 12};
  const struct {
    const char *name;
    int *number;
    const char **text;
  } options[] = {{"--model", NULL, &a.model},
                 {"--device", NULL, &a.device},
                 {"--structures", &a.structures, NULL},
                 {"--warm", &a.warm, NULL},
                 {"--repeat", &a.repeat, NULL},
                 {"--workspace", &a.workspace, NULL},
                 {"--knots", &a.knots, NULL}};
  for (int i = 1; i < argc; i++) {
    size_t k = 0;
    const size_t all = sizeof options / sizeof *options;
    if (!strcmp(argv[i], "--help")) {
      fputs(help, stdout);
      exit(0);
    }
    if (!strcmp(argv[i], "--profile")) {
      a.profile = 1;
      continue;
    }
    while (k < all && strcmp(argv[i], options[k].name)) k++;
    const int dtype = !strcmp(argv[i], "--dtype");
    if ((k == all && !dtype) || ++i == argc) goto wrong;
    if (dtype) a.dtype = strcmp(argv[i], "f64") ? CLB_F32 : CLB_F64;
    else if (options[k].text) *options[k].text = argv[i];
    else *options[k].number = atoi(argv[i]);
  }
  if (a.model && a.structures > 0 && a.repeat > 0) return a;
wrong:
  fputs(help, stderr);
  exit(2);
}

/* ---- structures ---- */

static double uniform(uint64_t *state) {
  uint64_t x = *state += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return ((double)((x ^ x >> 31) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) {
  const double r = sqrt(-2 * log(uniform(state)));
  return r * cos(6.283185307179586 * uniform(state));
}

/* Two interpenetrating fcc lattices, 2 x 2 x 1 cubes of 8 atoms. */
static void place(batch *b, int i, const int32_t kinds[2], double side, double shift,
                  uint64_t *state) {
  static const double fcc[4][3] = {{0, 0, 0}, {0, .5, .5}, {.5, 0, .5}, {.5, .5, 0}};
  double *x = b->positions + (size_t)i * 3 * ATOMS, *cell = b->cells + 9 * (size_t)i;
  int32_t *s = b->species + (size_t)i * ATOMS;
  for (int cube = 0; cube < 4; cube++)
    for (int k = 0; k < 8; k++, s++) {
      const double at[3] = {cube % 2, cube / 2, 0};
      for (int d = 0; d < 3; d++)
        *x++ = side * (at[d] + fcc[k % 4][d] + (k / 4) * shift) + .05 * normal(state);
      *s = kinds[k / 4];
    }
  cell[0] = cell[4] = 2 * side;
  cell[8] = side;
}

static batch make(const clb_model *m, int n) {
  const size_t atoms = (size_t)n * ATOMS, count = (size_t)n;
  const int salt = clb_model_species(m, 11) >= 0 && clb_model_species(m, 17) >= 0;
  const int32_t carbon = clb_model_species(m, 6), first = clb_model_species(m, salt ? 11 : 14),
                second = clb_model_species(m, salt ? 17 : 8);
  uint64_t state = 0;
  if (carbon < 0 || first < 0 || second < 0) {
    fprintf(stderr, "training_step: the model must have C, and Na and Cl or Si and O\n");
    exit(1);
  }
  batch b = {n,
             room(count, sizeof *b.atoms),
             room(count, sizeof *b.labels),
             room(3 * atoms, sizeof(double)),
             room(9 * count, sizeof(double)),
             room(count, sizeof(double)),
             room(3 * atoms, sizeof(double)),
             room(9, sizeof(double)),
             room(atoms, sizeof(int32_t))};
  for (int i = 0; i < n; i++) {
    const int odd = i % 2;
    place(&b, i, odd ? (const int32_t[]){first, second} : (const int32_t[]){carbon, carbon},
          odd ? 5.64 : 3.57, odd ? .5 : .25, &state);
    b.atoms[i] = (clb_model_atoms){ATOMS,
                                   b.species + (size_t)i * ATOMS,
                                   b.positions + (size_t)i * 3 * ATOMS,
                                   b.cells + (size_t)i * 9,
                                   {1, 1, 1},
                                   .charge = 0};
    b.labels[i] = (clb_labels){b.energies + i, b.forces + (size_t)i * 3 * ATOMS, b.stress, NULL};
    b.energies[i] = normal(&state);
  }
  for (size_t i = 0; i < 3 * atoms; i++) b.forces[i] = normal(&state);
  return b;
}

static void free_batch(batch *b) {
  void *all[] = {b->atoms,    b->labels, b->positions, b->cells,
                 b->energies, b->forces, b->stress,    b->species};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static int64_t count_edges(const batch *b, double r_max) {
  int64_t n = 0;
  for (int i = 0; i < b->n; i++) {
    const double *x = b->positions + (size_t)i * 3 * ATOMS, *cell = b->cells + 9 * (size_t)i;
    const int far = (int)(r_max / cell[8]) + 2;
    for (int j = 0; j < ATOMS * ATOMS; j++)
      for (int k = 0; k < (2 * far + 1) * (2 * far + 1) * (2 * far + 1); k++) {
        const int image[] = {k % (2 * far + 1) - far, k / (2 * far + 1) % (2 * far + 1) - far,
                             k / (2 * far + 1) / (2 * far + 1) - far};
        double square = 0;
        for (int d = 0; d < 3; d++) {
          const double r = x[j / ATOMS * 3 + d] - x[j % ATOMS * 3 + d] + image[d] * cell[4 * d];
          square += r * r;
        }
        n += square < r_max * r_max && square > 0;
      }
  }
  return n;
}

/* ---- a step ---- */

/* Buffers of the model's parameters and of the gradient by them. */
static void put_parameters(learner *l, clb_dtype dtype) {
  const size_t n = (size_t)l->info.parameters, bytes = n * (dtype == CLB_F64 ? 8 : 4);
  double *x = room(n, sizeof *x);
  float *singles = room(n, sizeof *singles);
  must(clb_model_parameters(l->model, x), l->ctx);
  for (size_t i = 0; i < n; i++) singles[i] = (float)x[i];
  must(clb_buffer_create(l->ctx, bytes, &l->values), l->ctx);
  must(clb_buffer_create(l->ctx, bytes, &l->gradients), l->ctx);
  must(clb_buffer_write(l->values, 0, dtype == CLB_F64 ? (void *)x : singles, bytes), l->ctx);
  free(x);
  free(singles);
}

/* All but those that `clebsch train` freezes unless told otherwise. */
static int list(const learner *l, clb_optimizer_tensor *to) {
  clb_tensor_info t;
  int n = 0;
  for (int64_t i = 0; !clb_model_tensor(l->model, i, &t); i++)
    if (!strcmp(t.name, "bessel_frequencies") || !strcmp(t.name, "species_scale") ||
        !strcmp(t.name, "species_shift"))
      must(clb_model_freeze(l->model, i), l->ctx);
    else
      to[n++] = (clb_optimizer_tensor){.rows = t.count,
                                       .columns = 1,
                                       .parameters = {l->values, t.first},
                                       .gradients = {l->gradients, t.first}};
  return n;
}

static learner start(const arguments *a) {
  learner l = {.ctx = NULL};
  must(clb_context_create(a->device, &l.ctx), l.ctx);
  const clb_model_options options = {.dtype = a->dtype,
                                     .knots = a->knots,
                                     .trains = 1,
                                     .workspace_bytes = (uint64_t)a->workspace << 20};
  must(clb_model_open(l.ctx, a->model, &options, &l.model), l.ctx);
  must(clb_model_describe(l.model, &l.info), l.ctx);
  put_parameters(&l, a->dtype);
  clb_optimizer_tensor *tensors = room((size_t)l.info.parameters, sizeof *tensors);
  const clb_optimizer_group group = {.rule = CLB_ADAMW, .lr = 1e-5, .weight_decay = 1e-2};
  const clb_optimizer_desc desc = {.tensors = tensors,
                                   .n_tensors = list(&l, tensors),
                                   .groups = &group,
                                   .n_groups = 1,
                                   .parameters = a->dtype,
                                   .gradients = a->dtype,
                                   .clip = CLB_CLIP_TORCH,
                                   .max_norm = 10};
  must(clb_optimizer_create(l.ctx, &desc, &l.optimizer), l.ctx);
  free(tensors);
  return l;
}

static void stop(learner *l) {
  clb_optimizer_destroy(&l->optimizer);
  clb_buffer_destroy(&l->values);
  clb_buffer_destroy(&l->gradients);
  clb_model_destroy(&l->model);
  clb_context_destroy(&l->ctx);
}

/* at: the times at which the parts ended, of which only the first waits for the device; loss: NULL:
   not even that does. */
static void step(learner *l, const batch *b, double at[PARTS], double *value) {
  static const clb_loss loss = {CLB_LOSS_MSE, 0, 1, 1, .01, 0, 0};
  const clb_gradient_results results = {
      .loss = value, .gradient_buffer = l->gradients, .later = !value};
  must(clb_model_gradient(l->model, b->n, b->atoms, b->labels, &loss, &results), l->ctx);
  at[0] = seconds(CLOCK_MONOTONIC);
  must(clb_optimizer_step(l->optimizer), l->ctx);
  at[1] = seconds(CLOCK_MONOTONIC);
  must(clb_model_take_parameters(l->model, l->values), l->ctx);
  at[2] = seconds(CLOCK_MONOTONIC);
}

/* Seconds of one of n steps whose losses are read after the last, which is *value. */
static double mean_of_steps(learner *l, const batch *b, int n, double *value) {
  double at[PARTS], *losses = room((size_t)n, sizeof *losses);
  const double start = seconds(CLOCK_MONOTONIC);
  for (int i = 0; i < n; i++) step(l, b, at, NULL);
  must(clb_model_losses(l->model, n, losses, NULL, NULL), l->ctx);
  must(clb_wait(l->ctx), l->ctx);
  const double end = seconds(CLOCK_MONOTONIC);
  *value = losses[n - 1];
  free(losses);
  return (end - start) / n;
}

/* ---- results ---- */

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, ascending);
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

typedef struct {
  char kernel[64];
  int64_t launches;
  double seconds;
} share;
typedef struct {
  share of[MAX_KINDS];
  int n;
} shares;

static void take(const clb_profile_entry *entry, void *user) {
  shares *s = user;
  if (s->n == MAX_KINDS) return;
  share *x = &s->of[s->n++];
  snprintf(x->kernel, sizeof x->kernel, "%s", entry->kernel);
  x->launches = entry->launches;
  x->seconds = entry->seconds;
}

static int slowest(const void *a, const void *b) {
  const double x = ((const share *)a)->seconds, y = ((const share *)b)->seconds;
  return (x < y) - (x > y);
}

static void profile(learner *l, const batch *b) {
  shares s = {.n = 0};
  double at[PARTS], sum = 0, loss;
  int64_t launches = 0;
  must(clb_profile_begin(l->ctx), l->ctx);
  step(l, b, at, &loss);
  must(clb_profile_end(l->ctx, take, &s), l->ctx);
  qsort(s.of, (size_t)s.n, sizeof *s.of, slowest);
  for (int i = 0; i < s.n; i++) sum += s.of[i].seconds, launches += s.of[i].launches;
  printf("launches, each alone: %lld in %.2f ms\n", (long long)launches, 1e3 * sum);
  for (int i = 0; i < s.n; i++)
    printf("%10.3f ms %6lld  %s\n", 1e3 * s.of[i].seconds, (long long)s.of[i].launches,
           s.of[i].kernel);
}

int main(int argc, char **argv) {
  static const char *const names[PARTS] = {"gradient", "optimizer", "parameters"};
  const arguments a = read_arguments(argc, argv);
  double begin = seconds(CLOCK_MONOTONIC), at[PARTS], loss = 0;
  learner l = start(&a);
  batch b = make(l.model, a.structures);
  double *times[PARTS + 2]; /* all, of the processor, of parts */
  for (int i = 0; i < PARTS + 2; i++) times[i] = room((size_t)a.repeat, sizeof(double));
  const double opened = seconds(CLOCK_MONOTONIC);
  step(&l, &b, at, &loss);
  const double first = seconds(CLOCK_MONOTONIC) - opened;
  for (int i = 0; i < a.warm; i++) step(&l, &b, at, &loss);
  for (int i = 0; i < a.repeat; i++) {
    const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), now = seconds(CLOCK_MONOTONIC);
    step(&l, &b, at, &loss);
    times[0][i] = at[PARTS - 1] - now;
    times[1][i] = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    for (int p = 0; p < PARTS; p++) times[2 + p][i] = at[p] - (p ? at[p - 1] : now);
  }
  const double middle = median(times[0], a.repeat), least = times[0][0]; /* which it has sorted */
  const double mean = mean_of_steps(&l, &b, a.repeat, &loss);
  clb_device_info device;
  must(clb_context_device(l.ctx, &device), l.ctx);
  printf("%s on %s: %d structures, %d atoms, %lld edges, %lld parameters, loss %.6g\n",
         l.info.architecture, device.description, a.structures, a.structures * ATOMS,
         (long long)count_edges(&b, l.info.r_max), (long long)l.info.parameters, loss);
  printf("step: median %.2f ms, least %.2f; of the processor %.2f; memory %.3f GiB; opened in %.1f "
         "s, first step %.1f s\n",
         1e3 * middle, 1e3 * least, 1e3 * median(times[1], a.repeat),
         (double)device.most_bytes * 0x1p-30, opened - begin, first);
  printf("losses read after the last: mean %.3f ms\n", 1e3 * mean);
  for (int p = 0; p < PARTS; p++)
    printf("%s %.2f ms%s", names[p], 1e3 * median(times[2 + p], a.repeat),
           p == PARTS - 1 ? "\n" : ", ");
  if (a.profile) profile(&l, &b);
  for (int i = 0; i < PARTS + 2; i++) free(times[i]);
  free_batch(&b);
  stop(&l);
  return 0;
}
