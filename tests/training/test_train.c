/* tests/training/test_train.c - `clebsch train`: its curves against those of original programs
   (CLB_TEST_TRAINING: the folder of curves.json); that losses fall; that a run which was
   interrupted goes on bit for bit; which tensors change; what it refuses. */
#include "tests/training/original_models.h"
#include "tests/training/train_runs.h"
#include "tests/training/training_reference.h"

#include "models/file/safetensors.h"

/* Another folder than that of the tests before. */
static int convert_in_another(void **state) {
  memcpy(work_folder + sizeof work_folder - 7, "XXXXXX", 6);
  return convert_models(state);
}

/* ---- original programs ---- */

static const char *place(const char *name) {
  return format("%s/%s", getenv("CLB_TEST_TRAINING"), name);
}

static double number_in(const json_t *list, size_t i, size_t k) {
  return json_number_value(json_array_get(json_array_get(list, i), k));
}

static void write_row(FILE *f, const json_t *rows, size_t i) {
  for (size_t k = 0; k < 3; k++) fprintf(f, " %.17g", number_in(rows, i, k));
}

static void write_structure(FILE *f, const json_t *s, const json_t *labels, double weight) {
  const json_t *cell = json_object_get(s, "cell"), *z = json_object_get(s, "Z"),
               *forces = json_object_get(labels, "forces"),
               *stress = json_object_get(labels, "stress"),
               *energy = json_object_get(labels, "energy"), *pbc = json_object_get(s, "pbc");
  fprintf(f, "%d\n", (int)json_array_size(z));
  if (!json_is_null(cell)) {
    fputs("Lattice=\"", f);
    for (size_t i = 0; i < 3; i++) write_row(f, cell, i);
    fputs("\" pbc=\"", f);
    for (size_t i = 0; i < 3; i++) fputs(json_is_true(json_array_get(pbc, i)) ? "T " : "F ", f);
    fputs("\" ", f);
  }
  fprintf(f, "Properties=species:S:1:pos:R:3%s", json_is_null(forces) ? "" : ":forces:R:3");
  if (!json_is_null(energy)) fprintf(f, " energy=%.17g", json_number_value(energy));
  if (!json_is_null(stress)) {
    fputs(" stress=\"", f);
    for (size_t i = 0; i < 3; i++) write_row(f, stress, i);
    fputc('"', f);
  }
  fprintf(f, " config_weight=%g\n", weight);
  for (size_t i = 0; i < json_array_size(z); i++) {
    fputs(clb_element_symbols[json_integer_value(json_array_get(z, i))], f);
    write_row(f, json_object_get(s, "pos"), i);
    if (!json_is_null(forces)) write_row(f, forces, i);
    fputc('\n', f);
  }
}

/* The batch of a curve, as reference.xyz. */
static void write_batch(const json_t *curve) {
  json_t *all = read_json(place("reference.json"));
  const json_t *m = json_object_get(json_object_get(all, "models"), text_of(curve, "model")),
               *batch = json_object_get(json_object_get(all, "batches"), text_of(m, "batch")),
               *losses = json_object_get(all, "losses"), *loss = NULL;
  for (size_t i = 0; i < json_array_size(losses) && !loss; i++)
    if (!strcmp(text_of(json_array_get(losses, i), "name"), text_of(curve, "loss")))
      loss = json_array_get(losses, i);
  assert_non_null(loss);
  FILE *f = fopen("reference.xyz", "w");
  assert_non_null(f);
  for (size_t g = 0; g < json_array_size(batch); g++)
    write_structure(
        f, json_array_get(batch, g), json_array_get(json_object_get(m, "labels"), g),
        json_number_value(json_array_get(json_object_get(loss, "structure_weights"), g)));
  fclose(f);
  json_decref(all);
}

/* Losses before each of the steps, each an epoch, and the norms of their gradients; with `ema`, the
   loss of the average after the last step. */
static void expect_curve(const char *name, const char *path, const char *options, size_t steps,
                         bool ema, double most) {
  if (!getenv("CLB_TEST_TRAINING")) skip_because("CLB_TEST_TRAINING names no folder");
  if (!*path) skip_because("there is no model");
  json_t *curves = read_json(place("curves.json"));
  const json_t *curve = NULL;
  for (size_t i = 0; i < json_array_size(curves); i++)
    if (!strcmp(text_of(json_array_get(curves, i), "name"), name))
      curve = json_array_get(curves, i);
  assert_non_null(curve);
  write_batch(curve);
  json_t *o = json_of(format("train --model %s --train reference.xyz%s --out new --batch 3 --exact "
                             "--device cpu --json --epochs %d %s",
                             path, ema ? " --valid reference.xyz" : "", (int)steps, options));
  const json_t *wanted = json_object_get(curve, "steps");
  assert_int_equal(json_array_size(json_object_get(o, "tensors")),
                   json_array_size(json_object_get(curve, "trained")));
  assert_int_equal(json_array_size(json_object_get(o, "epochs")), steps);
  for (size_t i = 0; i < steps; i++) {
    const json_t *w = json_array_get(wanted, i);
    near_to(name, loss_of(o, i, "train_loss"), number_of(w, "loss"), most * number_of(w, "loss"));
    near_to("norm", loss_of(o, i, "gradient_norm"), number_of(w, "gradient_norm"),
            10 * most * number_of(w, "gradient_norm"));
  }
  if (ema && steps + 1 == json_array_size(wanted)) {
    const double last = number_of(curve, "ema_loss");
    near_to("the average's loss", loss_of(o, steps - 1, "valid_loss"), last, most * last);
  }
  json_decref(o);
  json_decref(curves);
}

#define ADAMW                                                                                      \
  "--optimizer adamw --amsgrad --weight-decay 1e-2 --clip 10 --ema 0.99 --schedule constant "
#define MSE "--loss mse --energy-weight 1 --force-weight 1 --stress-unit kbar --stress-weight 0.01 "
#define HUBER "--loss huber --energy-weight 1 --force-weight 10 --stress-weight 10 "

static void mace_adamw(void **state) {
  (void)state;
  expect_curve("tiny_a_adamw_mse_file", original_mace[0].path, ADAMW MSE "--lr 1e-3",
               long_tests() ? 100 : 11, true, 1e-9);
  expect_curve("tiny_a_adamw_huber_file", original_mace[0].path, ADAMW HUBER "--lr 1e-3",
               long_tests() ? 100 : 5, true, 1e-9);
}

/* Its frequencies are trained, too, and compiled in every step. Rounding grows: at this rate 1e-14
   becomes 1e-11 in 10 steps. */
static void sevennet_adamw(void **state) {
  const size_t steps = long_tests() ? 10 : 3;
  (void)state;
  expect_curve("sevennet_0_adamw_mse_file", original_sevennet[0].path,
               ADAMW MSE "--lr 1e-3 --thaw bessel_frequencies", steps, true, 1e-9);
  if (!long_tests()) return;
  expect_curve("sevennet_0_adamw_huber_file_lr0.0001", original_sevennet[0].path,
               ADAMW HUBER "--lr 1e-4 --thaw bessel_frequencies", steps, true, 1e-9);
  expect_curve("sevennet_0_adamw_huber_file", original_sevennet[0].path,
               ADAMW HUBER "--lr 1e-3 --thaw bessel_frequencies", steps, true, 1e-8);
}

/* Muon, its clipping and its average are those of the authors. */
static void nequix_muon(void **state) {
  (void)state;
  expect_curve("nequix_mp1_muon_mae_file", nequix, "--like nequix --lr 3e-3 --schedule constant",
               long_tests() ? 20 : 3, true, 1e-9);
}

/* ---- losses fall ---- */

static void losses_fall(void **state) {
  static const struct {
    const char *options;
    double factor;
  } all[] = {{"adamw --lr 3e-3 --weight-decay 1e-4 --schedule cosine --lr-end 1e-5", 20},
             {"adam --lr 3e-3 --loss huber --huber-delta 0.1 --schedule exponential", 20},
             {"sgd --lr 1e-3 --warm-up 5 --clip 1 --schedule plateau --patience 3", 2},
             {"schedule-free --lr 3e-3 --warm-up 5", 10},
             {"muon --lr 3e-3 --schedule cosine", 5},
             {"soap --lr 3e-3", 5}};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    json_t *o =
        json_of(format(TRAIN "--out new --epochs 30 --optimizer %s --valid p.xyz", all[i].options));
    const double first = loss_of(o, 0, "train_loss"), best = number_of(o, "best_loss");
    if (!(best * all[i].factor < first))
      fail_msg("%s: from %g to %g only", all[i].options, first, best);
    json_t *e =
        json_of(format("gradient --model new --structures p.xyz --device cpu --exact --json "
                       "--out g%s",
                       i == 1 ? " --loss huber --huber-delta 0.1" : ""));
    near_to("the loss of what was written", number_of(e, "loss"), best, 1e-9 * best);
    json_decref(e);
    json_decref(o);
  }
}

/* ---- going on ---- */

static void goes_on(void **state) {
  static const char *const all[] = {
      "adamw --lr 3e-3 --amsgrad --ema 0.9 --schedule exponential --decay 0.9",
      "sgd --lr 1e-4 --schedule plateau --patience 0 --decay 0.5", "schedule-free --lr 3e-3",
      "muon --lr 3e-3 --ema 0.9 --clip 1", "soap --lr 3e-3 --warm-up 20"};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const char *options = format("--seed 7 --restart whole_r --optimizer %s --valid p.xyz --csv "
                                 "whole.csv",
                                 all[i]),
               *first = format("--seed 7 --restart r --optimizer %s --valid p.xyz", all[i]),
               *rest = format("--continue r --restart r --optimizer %s --valid p.xyz --csv c.csv",
                              all[i]);
    json_t *whole = json_of(format(TRAIN "--out whole --epochs 7 %s", options));
    json_decref(json_of(format(TRAIN "--out part --epochs 3 %s", first)));
    unlink("part");
    json_t *o = json_of(format(TRAIN "--out part --epochs 7 %s", rest));
    assert_int_equal(integer_of(o, "steps"), 21);
    expect_same_epochs(o, whole);
    expect_same_file("part", "whole");
    expect_same_file("r", "whole_r");
    expect_same_file("c.csv", "whole.csv");
    json_decref(o);
    json_decref(whole);
    unlink("r");
    unlink("whole_r");
  }
}

/* A signal within an epoch: what was written goes on as if it had not come. */
static void stopped_within_an_epoch(void **state) {
  const char *options = "--ema 0.9 --lr 1e-3 --optimizer adamw --schedule constant";
  long long steps = 0;
  (void)state;
  for (int tries = 0; tries < 20; tries++) {
    unlink("r");
    pid_t pid = start_clebsch(format("train --model other --train p.xyz --device cpu --exact "
                                     "--batch 1 --out part --restart r --epochs 1000000 %s",
                                     options));
    for (struct stat about; stat("r", &about);) usleep(1000);
    usleep(3000 * (useconds_t)tries);
    kill(pid, tries % 2 ? SIGTERM : SIGINT);
    outcome o = end_of(pid);
    const char *said = strstr(o.err, "stopped by a signal after step ");
    assert_int_equal(o.status, 1);
    if (!said) fail_msg("%s", o.err);
    steps = strtoll(said + 31, NULL, 10);
    forget(&o);
    if (steps % FRAMES) break;
  }
  assert_true(steps % FRAMES);
  const int epochs = (int)(steps / FRAMES) + 2;
  json_t *o =
      json_of(format("train --model other --train p.xyz --device cpu --exact --json --batch "
                     "1 --out part --continue r --restart r --epochs %d %s",
                     epochs, options));
  json_t *whole = json_of(format("train --model other --train p.xyz --device cpu --exact --json "
                                 "--batch 1 --out whole --restart whole_r --epochs %d %s",
                                 epochs, options));
  expect_same_epochs(o, whole);
  expect_same_file("part", "whole");
  expect_same_file("r", "whole_r");
  json_decref(o);
  json_decref(whole);
  unlink("whole_r");
}

/* ---- what changes ---- */

static clb_safetensors *open_tensors(const char *path) {
  clb_error_sink e = {0};
  clb_safetensors *file;
  if (clb_safetensors_open(&e, path, &file)) fail_msg("%s", e.text.s);
  return file;
}

/* The header is that of the start; and of the tensors those whose names begin with `frozen`. */
static void expect_frozen(const char *const *frozen) {
  size_t n, m;
  uint64_t header;
  unsigned char *a = get_file("other", &n), *b = get_file("new", &m);
  assert_int_equal(n, m);
  memcpy(&header, a, 8);
  assert_memory_equal(a, b, 8 + header);
  free(a);
  free(b);
  clb_safetensors *from = open_tensors("other"), *to = open_tensors("new");
  for (int i = 0; i < clb_safetensors_size(from); i++) {
    const clb_tensor *x = clb_safetensors_at(from, i), *y = clb_safetensors_find(to, x->name);
    bool stays = false;
    for (const char *const *f = frozen; *f; f++) stays |= !strncmp(x->name, *f, strlen(*f));
    if (stays == (memcmp(x->data, y->data, x->end - x->begin) != 0))
      fail_msg("%s %s", x->name, stays ? "has changed" : "has not changed");
  }
  clb_safetensors_close(&from);
  clb_safetensors_close(&to);
}

static void frozen_tensors(void **state) {
  (void)state;
  json_decref(json_of(TRAIN "--out new --epochs 2 --lr 1e-3 --weight-decay 1e-2"));
  expect_frozen((const char *const[]){"bessel_frequencies", "species_s", NULL});
  json_decref(json_of(TRAIN "--out new --epochs 1 --lr 1e-3 --weight-decay 1e-2 --ema 0.5 --freeze "
                            "layers.0.* --freeze readout.? --thaw species_*"));
  expect_frozen((const char *const[]){"bessel_frequencies", "layers.0.", "readout.", NULL});
  json_decref(json_of(TRAIN "--out new --epochs 1 --lr 1e-4 --thaw bessel_frequencies --thaw "
                            "species_* --weight-decay 1e-2 --dtype f32"));
  expect_frozen((const char *const[]){NULL});
}

/* The order of structures is the seed's. */
static void seeds(void **state) {
  (void)state;
  json_decref(json_of(TRAIN "--out new --epochs 2 --lr 1e-3"));
  json_decref(json_of(TRAIN "--out again --epochs 2 --lr 1e-3 --seed 1"));
  expect_same_file("new", "again");
  json_t *a = json_of(TRAIN "--out new --epochs 2 --lr 1e-3 --seed 2"),
         *b = json_of(TRAIN "--out new --epochs 2 --lr 1e-3 --seed 3");
  assert_true(fabs(loss_of(a, 1, "train_loss") - loss_of(b, 1, "train_loss")) > 1e-12);
  json_decref(a);
  json_decref(b);
}

/* ---- text and pictures ---- */

static void text(void **state) {
  (void)state;
  expect_printed("train --model other --train p.xyz p.xyz --valid p.xyz --out new --epochs 3 --lr "
                 "1e-3 --device cpu --dtype f64 --plot curves.svg --schedule constant",
                 "train      p.xyz and others: 16 frames, 80 atoms\n",
                 "valid      p.xyz: 8 frames, 40 atoms\n",
                 "by adamw with AMSGrad; clip 10, average 0.99\n",
                 "loss       huber: 1 energy, 10 forces, 10 stress\n",
                 "epochs     3, of 2 steps; learning rate 0.001, constant\n", "steps      6, in",
                 "written    new: epoch 3, loss ");
  char *out = get_text("out");
  const char *row = strstr(out, "\n    1      0.001 ");
  assert_non_null(row);
  assert_true(strchr(row, '*') < strchr(row + 1, '\n')); /* the star is on the epoch's line */
  free(out);
  char *svg = get_text("curves.svg");
  assert_non_null(svg);
  assert_true(strstr(svg, "Loss (log10)") && strstr(svg, "Stress") && strstr(svg, ">valid<"));
  free(svg);
}

/* ---- what is refused ---- */

static void refuses(void **state) {
  static const refusal wrong[] = {
      {"train --model other --out x --epochs 1 --lr 1", 2, "--train is missing"},
      {TRAIN "--epochs 1", 1, "trained.safetensors: the file exists: name another with --out"},
      {TRAIN "--out x --valid p.xyz --valid-part 0.1", 2, "--valid-part is of --train"},
      {TRAIN "--out x --like gemnet", 2, "--like"},
      {TRAIN "--out x --schedule step --patience 0", 2, "is 1 or more"},
      {TRAIN "--out x --stage-two-lr 1", 2, "are of --stage-two"},
      {TRAIN "--out x --stage-two 3 --stage-two-weights 1,2", 2, "three numbers"},
      {TRAIN "--out x --huber-delta 0.1", 2, "--huber-delta is of --loss huber"},
      {TRAIN "--out x --epochs 1 --lr 1 --optimizer sgd --amsgrad", 2, "--amsgrad is of"},
      {TRAIN "--out x --epochs 1 --lr 1 --optimizer schedule-free --ema 0.9", 2, "without --ema"},
      {TRAIN "--out x --epochs 1 --lr 1 --decay 0.9", 2, "--decay is of --schedule"},
      {TRAIN "--out x --epochs 1 --lr 1 --continue r --seed 3", 2, "the seed is that of"},
      {TRAIN "--out x --epochs 1 --lr 1 --freeze radial", 1, "--freeze 'radial': the model has no"},
      {TRAIN "--out x --epochs 1 --lr 1 --freeze *", 1, "all tensors of the model are frozen"},
      {TRAIN "--out p.xyz --epochs 1 --lr 1", 1, "p.xyz"},
      {TRAIN "--out other --epochs 1 --lr 1", 1, "other"},
      {"train --model other --train frames.xyz --out x --epochs 1 --lr 1", 1,
       "frames.xyz: no frame has labels, which are energy, forces,"},
      {TRAIN "--out x --epochs 1 --lr 1 --valid none.xyz", 1, "none.xyz, frame 1: the file ends"},
      {TRAIN "--out x --epochs 1 --lr 1 --valid frames.xyz", 1, "frames.xyz: no frame has labels"},
      {TRAIN "--out x --epochs 1 --lr 1 --valid light.xyz", 1, "light.xyz: no label counts in"},
      {TRAIN "--out x --epochs 1 --lr 1 --energy-weight 0 --valid lone.xyz", 1, "lone.xyz: no"},
      {TRAIN "sodium.xyz --out x --epochs 1 --lr 1", 1,
       "sodium.xyz, frame 2: atom 1 is Na, but other knows only H C O"},
      {"train --model p.xyz --train off.xyz --out x --epochs 1 --lr 1", 1,
       "p.xyz: not an output of `clebsch convert`"},
      {TRAIN "--out x --epochs 1 --lr 1 --continue p.xyz", 1, "p.xyz: not a restart of"}};
  (void)state;
  put_text("none.xyz", "");
  put_text("trained.safetensors", "");
  put_text("light.xyz", "1\nenergy=1 config_weight=0\nO 0 0 0\n");
  put_text("lone.xyz", "1\nenergy=1\nO 0 0 0\n");
  put_text("sodium.xyz", "1\nenergy=1\nO 0 0 0\n1\nenergy=1\nNa 0 0 0\n");
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
  assert_int_equal(access("x", F_OK), -1);
}

static void refuses_other_restarts(void **state) {
  size_t n;
  (void)state;
  unlink("r");
  json_decref(json_of(TRAIN "--out new --epochs 1 --lr 1e-3 --restart r"));
  const refusal wrong[] = {
      {TRAIN "--out x --epochs 2 --lr 1e-3 --restart r", 1, "r: the file exists"},
      {TRAIN "--out x --epochs 2 --lr 1e-3 --continue r --ema 0.9", 1, "r: it is of a run without"},
      {TRAIN "--out x --epochs 2 --lr 1e-3 --continue r --batch 2", 1, "a run with --batch 3"},
      {TRAIN "p.xyz --out x --epochs 2 --lr 1e-3 --continue r", 1, "with 8 frames in --train"},
      {"train --model model --train p.xyz --out x --epochs 2 --lr 1 --continue r", 1,
       "began with another model"},
      {TRAIN "--out x --epochs 2 --lr 1e-3 --continue damaged", 1, "damaged: its checksum"},
      {TRAIN "--out x --epochs 2 --lr 1e-3 --continue short", 1, "damaged: "},
      {TRAIN "--out x --epochs 2 --lr 1e-3 --continue r --optimizer sgd", 1, "clebsch: "},
      {TRAIN "--out x --epochs 2 --lr 1e-3 --continue r --force-weight 2", 1, "labels or loss"},
      {"train --model other --train q.xyz --device cpu --exact --json --batch 3 " PLAIN
       "--out x --epochs 2 --lr 1e-3 --continue r",
       1, "it is of a run with other structures, labels or loss"}};
  unsigned char *bytes = get_file("r", &n);
  put_file("short", bytes, n - 9);
  bytes[n / 2] ^= 1;
  put_file("damaged", bytes, n);
  free(bytes);
  bytes = get_file("p.xyz", &n); /* one digit of a label is another one */
  char *label = strchr(strstr((char *)bytes, "energy="), '.');
  label[1] = label[1] == '1' ? '2' : '1';
  put_file("q.xyz", bytes, n);
  free(bytes);
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
}

/* A rate at which losses grow beyond all bounds: the frames are named, and the best model of before
   stays. */
static void not_finite(void **state) {
  (void)state;
  put_text("far.xyz", "1\nenergy=1\nO 0 0 0\n2\nenergy=1e200\nO 0 0 0\nH 0 0 1\n");
  unlink("new");
  expect_clebsch("train --model other --train far.xyz --batch 1 --device cpu --exact --out new "
                 "--epochs 9 --lr 1e-3 --json " PLAIN,
                 1, "the loss is inf, of these frames: far.xyz, frame 2; a smaller --lr");
}

int main(void) {
  const struct CMUnitTest original[] = {
      cmocka_unit_test(mace_adamw),
      {"sevennet_adamw", SANITIZED ? NULL : sevennet_adamw, NULL, NULL, NULL},
      {"nequix_muon", SANITIZED ? NULL : nequix_muon, NULL, NULL, NULL}};
  const struct CMUnitTest tests[] = {cmocka_unit_test(losses_fall),
                                     cmocka_unit_test(goes_on),
                                     cmocka_unit_test(stopped_within_an_epoch),
                                     cmocka_unit_test(frozen_tensors),
                                     cmocka_unit_test(seeds),
                                     cmocka_unit_test(text),
                                     cmocka_unit_test(refuses),
                                     cmocka_unit_test(refuses_other_restarts),
                                     cmocka_unit_test(not_finite)};
  return cmocka_run_group_tests(tests, make_all, remove_predictions) +
         cmocka_run_group_tests_name("original", original, convert_in_another, remove_folder);
}
