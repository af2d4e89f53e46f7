/* tests/training/test_train_settings.c - `clebsch train`: learning rates, batches, sets that are
   split, presets, and replay. */
#include "tests/training/train_runs.h"

#include "models/file/safetensors.h"

/* ---- learning rates ---- */

static double cosine(double e) {
  return 1e-5 + (1e-3 - 1e-5) * (1 + cos(3.14159265358979323846 * e / 6)) / 2;
}
static double linear(double e) { return 1e-3 + (1e-5 - 1e-3) * e / 6; }
static double exponential(double e) { return 1e-3 * pow(0.8, e); }
static double each_two(double e) { return 1e-3 * pow(0.5, floor(e / 2)); }
static double warm(double e) { return 1e-3 * fmin(1, (e + 1) / 4); }
/* Of Nequix: from a fifth, in a tenth of an epoch, which is less than a step here. */
static double nequix_rate(double e) {
  const double x = (e - 0.1) / 5.9;
  return e < 0.1 ? 2e-4 : 1e-7 + (1e-3 - 1e-7) * (1 + cos(3.14159265358979323846 * x)) / 2;
}

/* One step an epoch. */
static void rates(void **state) {
  static const struct {
    const char *options;
    double (*rate)(double epoch);
  } all[] = {{"--schedule cosine --lr-end 1e-5", cosine},
             {"--schedule linear --lr-end 1e-5", linear},
             {"--schedule exponential --decay 0.8", exponential},
             {"--schedule step --decay 0.5 --patience 2", each_two},
             {"--schedule constant --warm-up 4", warm},
             {"--like nequix", nequix_rate}};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    json_t *o =
        json_of(format("train --model other --train p.xyz --device cpu --exact --json --out "
                       "new --epochs 6 --lr 1e-3 --batch 8 %s",
                       all[i].options));
    for (size_t e = 0; e < 6; e++)
      near_to(all[i].options, loss_of(o, e, "lr"), all[i].rate((double)e), 1e-12);
    json_decref(o);
  }
}

/* ---- batches and sets ---- */

static void batches(void **state) {
  (void)state; /* frames have 2, 4, 6 and 8 atoms, 40 in all */
  json_t *whole = json_of(TRAIN "--out new --epochs 2 --lr 1e-3 --batch 8"),
         *atoms =
             json_of("train --model other --train p.xyz --device cpu --exact --json --batch-atoms "
                     "40 " PLAIN "--out new --epochs 2 --lr 1e-3"),
         *single =
             json_of("train --model other --train p.xyz --device cpu --exact --json --batch-atoms "
                     "1 " PLAIN "--out new --epochs 2 --lr 1e-3"),
         *some = json_of(
             "train --model other --train p.xyz --device cpu --exact --json --batch-atoms 14 "
             "--batch 3 " PLAIN "--out new --epochs 2 --lr 1e-3");
  expect_same_epochs(whole, atoms);
  assert_int_equal(integer_of(whole, "steps"), 2);
  assert_int_equal(integer_of(single, "steps"), 16);
  assert_in_range(integer_of(some, "steps"), 6, 12);
  json_decref(whole);
  json_decref(atoms);
  json_decref(single);
  json_decref(some);
}

#define FIVE "p.xyz p.xyz p.xyz p.xyz p.xyz "
#define SPLIT                                                                                      \
  "train --model other --train " FIVE "--device cpu --exact --json --epochs 2 --lr 1e-3 "
static void splits(void **state) {
  static const char *const options[] = {"", "--seed 2", "--valid-part 0", "--valid-part 0.3"};
  static const int frames[] = {4, 4, 0, 12};
  double losses[4];
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    json_t *o = json_of(format(SPLIT "--out new --batch-atoms 16 %s", options[i]));
    const json_t *train = json_object_get(o, "train"), *valid = json_object_get(o, "valid");
    assert_int_equal(integer_of(valid, "frames"), frames[i]);
    assert_int_equal(integer_of(train, "frames"), 40 - frames[i]);
    assert_int_equal(integer_of(train, "atoms") + integer_of(valid, "atoms"), 200);
    losses[i] = frames[i] ? loss_of(o, 1, "valid_loss") : 0;
    json_decref(o);
  }
  assert_true(losses[0] != losses[1]);
  unlink("r");
  json_decref(
      json_of(SPLIT "--schedule constant --out part --batch-atoms 16 --seed 2 --restart r"));
  json_t *o = json_of("train --model other --train " FIVE
                      "--device cpu --exact --json --epochs 4 --lr "
                      "1e-3 --schedule constant --out part --batch-atoms 16 --continue r"),
         *w = json_of("train --model other --train " FIVE
                      "--device cpu --exact --json --epochs 4 --lr "
                      "1e-3 --schedule constant --out whole --batch-atoms 16 --seed 2");
  expect_same_epochs(o, w);
  expect_same_file("part", "whole");
  json_decref(o);
  json_decref(w);
  unlink("r");
}

/* Of what was validated last, errors are those that evaluate finds. */
static void errors_of_epochs(void **state) {
  static const char *const names[] = {"energy_per_atom", "forces", "stress"}, *const keys[] = {
                                                                                  "energy", "force",
                                                                                  "stress"};
  (void)state;
  json_t *o = json_of("train --model other --train p.xyz --valid p.xyz --device cpu --exact --json "
                      "--out new --epochs 2 --lr 1e-3"),
         *e = json_of("evaluate --model new --structures p.xyz --device cpu --exact --json");
  const json_t *last = json_array_get(json_object_get(o, "epochs"), 1);
  assert_true(is_true(last, "best"));
  for (size_t i = 0; i < 3; i++) {
    const json_t *wanted = json_object_get(json_object_get(e, "all"), names[i]);
    const double mae = number_of(wanted, "mae"), rmse = number_of(wanted, "rmse");
    near_to(names[i], number_of(last, format("valid_%s_mae", keys[i])), mae, 1e-9 * mae);
    near_to(names[i], number_of(last, format("valid_%s_rmse", keys[i])), rmse, 1e-9 * rmse);
    assert_true(number_of(last, format("train_%s_rmse", keys[i])) >=
                number_of(last, format("train_%s_mae", keys[i])));
  }
  json_decref(o);
  json_decref(e);
}

/* ---- two stages ---- */

/* The second one is a run of its own, but for the optimizer's state, which plain descent has not.
 */
static void two_stages(void **state) {
#define SGD                                                                                        \
  "train --train p.xyz --device cpu --exact --json --batch 3 --optimizer sgd --momentum 1e-6 "     \
  "--clip 0 --ema 0 --loss mse --schedule constant --valid p.xyz --out "
  (void)state;
  json_t *both =
             json_of(SGD "new --model other --lr 1e-4 --energy-weight 1 --force-weight 1 "
                         "--stress-weight 1 --epochs 3 --stage-two 2 --stage-two-weights 3,0.5,2 "
                         "--stage-two-lr 3e-5"),
         *plain = json_of(SGD "again --model other --lr 1e-4 --energy-weight 1 --force-weight 1 "
                              "--stress-weight 1 --epochs 3");
  for (size_t e = 0; e < 2; e++)
    assert_true(json_equal(json_array_get(json_object_get(both, "epochs"), e),
                           json_array_get(json_object_get(plain, "epochs"), e)));
  near_to("lr", loss_of(both, 2, "lr"), 3e-5, 0);
  assert_int_equal(integer_of(both, "best_epoch"), 3); /* its loss is another one: not compared */
  json_t *e = json_of("gradient --model new --structures p.xyz --device cpu --exact --json --out g "
                      "--energy-weight 3 --force-weight 0.5 --stress-weight 2");
  near_to("the loss", loss_of(both, 2, "valid_loss"), number_of(e, "loss"),
          1e-9 * number_of(e, "loss"));
  json_decref(e);
  e = json_of("train --train p.xyz --device cpu --exact --json --model other --epochs 2 --out x "
              "--schedule cosine --lr 1e-3 --stage-two 1");
  near_to("a tenth", loss_of(e, 1, "lr"), 1e-4, 1e-18);
  json_decref(e);
  json_decref(both);
  json_decref(plain);
}

/* ---- labels ---- */

static double in_kbar(const structure *s, int i) { return -1602.1766208 * s->labels->stress[i]; }

static void units_are_noticed(void **state) {
  (void)state;
  write_all("kbar.xyz", &(labelling){same_energy, same_force, in_kbar});
  expect_clebsch("train --model model --train kbar.xyz --device cpu --epochs 1 --out x --json", 0,
                 "stresses of the labels are about -");
  expect_clebsch(
      "train --new nequip --features 2x0e --layers 1 --r-max 3 --radial 4 --train kbar.xyz "
      "--device cpu --epochs 1 --out x --json",
      0, NULL);
}

/* ---- presets ---- */

/* As the authors' programs have them (nothing that was typed here is read from there). */
static void presets(void **state) {
  static const struct {
    const char *like, *optimizer, *schedule, *loss;
    double lr, clip, ema, weight_decay, lr_end, energy, forces, stress, stress_unit;
    int batch;
  } all[] = {{"mace", "adam", "plateau", "mse", 0.01, 10, 0.99, 5e-7, 0, 1, 100, 1, 1, 10},
             {"nequip", "adam", "plateau", "mse", 0.01, 0, 0.999, 0, 1e-6, 1, 1, 1, 1, 5},
             {"nequix", "muon", "cosine", "mae", 3e-3, 100, 0.999, 1e-3, 3e-7, 20, 20, 5, 1, 64},
             {"sevennet", "adamw", "exponential", "huber", 2e-4, 0, 0, 1e-3, 0, 1, 1, 0.01,
              1602.1766208, 4}};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    json_t *o =
        json_of(format("train --model other --train p.xyz --device cpu --exact --json --out new "
                       "--epochs 1 --like %s",
                       all[i].like));
    const json_t *s = json_object_get(o, "settings"), *l = json_object_get(s, "loss");
    expect_text(s, "optimizer", all[i].optimizer);
    expect_text(s, "schedule", all[i].schedule);
    expect_text(l, "function", all[i].loss);
    near_to("lr", number_of(s, "lr"), all[i].lr, 0);
    near_to("clip", number_of(s, "clip"), all[i].clip, 0);
    near_to("ema", number_of(s, "ema"), all[i].ema, 0);
    near_to("weight_decay", number_of(s, "weight_decay"), all[i].weight_decay, 0);
    near_to("lr_end", number_of(s, "lr_end"), all[i].lr_end, 1e-15);
    near_to("energy", number_of(l, "energy"), all[i].energy, 0);
    near_to("forces", number_of(l, "forces"), all[i].forces, 0);
    near_to("stress", number_of(l, "stress"), all[i].stress, 0);
    near_to("stress_unit", number_of(l, "stress_unit"), all[i].stress_unit, 1e-9);
    assert_int_equal(integer_of(s, "batch"), all[i].batch);
    json_decref(o);
  }
  json_t *o =
      json_of("train --model other --train p.xyz --device cpu --exact --json --out new --epochs 1 "
              "--like nequix --optimizer soap --lr 1e-3 --energy-weight 3 --ema 0 --batch 2");
  const json_t *s = json_object_get(o, "settings"), *l = json_object_get(s, "loss");
  expect_text(s, "optimizer", "soap");
  near_to("lr", number_of(s, "lr"), 1e-3, 0);
  near_to("ema", number_of(s, "ema"), 0, 0);
  near_to("energy", number_of(l, "energy"), 3, 0);
  near_to("forces", number_of(l, "forces"), 20, 0);
  json_decref(o);
}

/* ---- replay ---- */

#define ONE_STEP                                                                                   \
  "train --model other --train p.xyz --device cpu --exact --json --loss mse --optimizer sgd "      \
  "--schedule constant --clip 0 --ema 0 --batch 99 --epochs 1 --out new "

/* Largest difference of the tensors of two files; those whose names begin so, or do not. */
static double apart(const char *a, const char *b, bool readouts) {
  clb_error_sink e = {0};
  clb_safetensors *x, *y;
  double most = 0;
  assert_false(clb_safetensors_open(&e, a, &x) || clb_safetensors_open(&e, b, &y));
  for (int i = 0; i < clb_safetensors_size(x); i++) {
    const clb_tensor *t = clb_safetensors_at(x, i), *u = clb_safetensors_find(y, t->name);
    const size_t n = t->end - t->begin;
    assert_int_equal(n, u->end - u->begin);
    for (size_t k = 0; k < n && readouts == !strncmp(t->name, "readout", 7); k += 8) {
      double p, q; /* tensors are not aligned */
      memcpy(&p, (const char *)t->data + k, 8);
      memcpy(&q, (const char *)u->data + k, 8);
      most = fmax(most, fabs(p - q));
    }
  }
  clb_safetensors_close(&x);
  clb_safetensors_close(&y);
  return most;
}

/* The same frames as --train and --replay, in one step.  Before it both heads are the same, so the
   loss is that of the frames alone, and what the heads share gets the same gradient; readouts get
   half of it, as each head is of half of the batch. */
static void replay_has_a_head(void **state) {
  (void)state;
  json_t *plain = json_of(ONE_STEP "--lr 1e-3"), *both = NULL;
  assert_int_equal(rename("new", "plain"), 0);
  json_decref(json_of(ONE_STEP "--lr 5e-4"));
  assert_int_equal(rename("new", "half"), 0);
  both = json_of(ONE_STEP "--lr 1e-3 --replay p.xyz");
  near_to("loss", loss_of(both, 0, "train_loss"), loss_of(plain, 0, "train_loss"), 1e-12);
  assert_true(apart("plain", "other", false) > 1e-6 && apart("plain", "half", true) > 1e-6);
  near_to("what is shared", apart("new", "plain", false), 0, 1e-12);
  near_to("readouts", apart("new", "half", true), 0, 1e-12);
  json_decref(both);
  /* Without readouts of its own it is a part of --train. */
  json_decref(json_of(ONE_STEP "--lr 1e-3 --replay p.xyz --freeze readout*"));
  near_to("all", apart("new", "plain", false), 0, 1e-12);
  near_to("frozen", apart("new", "other", true), 0, 0);
  json_decref(plain);
}

/* Readouts alone learn, so that the heads have nothing in common: of any number of steps --out is
   that of a run without --replay, whose rate is half. */
static void heads_are_apart(void **state) {
  (void)state;
  const char *frozen = "--freeze [!r]*";
  json_decref(json_of(format(ONE_STEP "--epochs 5 --lr 2e-3 --replay p.xyz %s", frozen)));
  assert_int_equal(rename("new", "replayed"), 0);
  json_decref(json_of(format(ONE_STEP "--epochs 5 --lr 1e-3 %s", frozen)));
  assert_true(apart("new", "other", true) > 1e-6);
  near_to("readouts", apart("new", "replayed", true), 0, 1e-12);
  near_to("the rest", apart("new", "replayed", false), 0, 0);
}

/* One frame, the same for both heads, in steps of one of them that change next to nothing: each has
   the norm of a run without --replay, and nothing is left of the other head's. */
static void steps_of_one_head(void **state) {
  static const labelling all = {same_energy, same_force, same_stress};
  const char *run =
      "train --model other --train one.xyz --valid one.xyz --device cpu --exact --json "
      "--loss mse --optimizer sgd --schedule constant --lr 1e-12 --clip 0 --ema 0 "
      "--batch 1 --epochs 2 --out new %s";
  (void)state;
  FILE *f = fopen("one.xyz", "w");
  write_labelled(f, &predicted[1], &all, NULL);
  fclose(f);
  json_t *plain = json_of(format(run, "")), *both = json_of(format(run, "--replay one.xyz"));
  assert_int_equal(integer_of(both, "steps"), 4);
  for (size_t k = 0; k < 2; k++) {
    const double norm = loss_of(plain, k, "gradient_norm");
    near_to("norm", loss_of(both, k, "gradient_norm"), norm, 1e-6 * norm);
  }
  json_decref(plain);
  json_decref(both);
}

static void replay_goes_on(void **state) {
  const char *run =
      "train --model other --train p.xyz --replay p.xyz --device cpu,cpu --exact "
      "--json --batch 3 --valid p.xyz --optimizer adamw --lr 3e-3 --ema 0.9 --schedule constant";
  (void)state;
  unlink("r");
  json_t *whole = json_of(format("%s --epochs 3 --out whole --restart whole_r", run));
  assert_int_equal(integer_of(whole, "steps"), 18);
  json_decref(json_of(format("%s --epochs 2 --out part --restart r", run)));
  json_t *o = json_of(format("%s --epochs 3 --out part --continue r --restart r", run));
  expect_same_epochs(o, whole);
  expect_same_file("part", "whole");
  expect_same_file("r", "whole_r");
  json_decref(o);
  json_decref(whole);
  expect_clebsch("train --new nequip --train p.xyz --replay p.xyz --out x", 2,
                 "--replay is of a model that has learned");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rates),           cmocka_unit_test(batches),
      cmocka_unit_test(splits),          cmocka_unit_test(errors_of_epochs),
      cmocka_unit_test(two_stages),      cmocka_unit_test(units_are_noticed),
      cmocka_unit_test(presets),         cmocka_unit_test(replay_has_a_head),
      cmocka_unit_test(heads_are_apart), cmocka_unit_test(steps_of_one_head),
      cmocka_unit_test(replay_goes_on)};
  return cmocka_run_group_tests(tests, make_all, remove_predictions);
}
