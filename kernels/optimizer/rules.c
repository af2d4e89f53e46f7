/* kernels/optimizer/rules.c - what each rule does with an element, in torch's order of operations
   (optax's for Adam with nesterov, facebookresearch/schedule_free's for schedule-free AdamW).

   Powers of betas, and what is computed from them once a step, are sums of two numbers: 1 - beta^t,
   however small, and its square root are then right to the last bit of f32, as torch has them, who
   computes them in f64. */
#include "kernels/optimizer/chunks.h"

/* ---- numbers as sums of two ---- */

static ir_val negative(ir_kernel *k, ir_val x) { return ir_1(k, IR_NEG, x); }

/* |high| >= |low| */
static clb_pair sum(ir_kernel *k, ir_val high, ir_val low) {
  ir_val s = ir_add(k, high, low);
  return (clb_pair){s, ir_add(k, ir_sub(k, high, s), low)};
}

static clb_pair product(ir_kernel *k, clb_pair a, clb_pair b) {
  ir_val p = ir_mul(k, a.high, b.high), rest = ir_fma(k, a.high, b.high, negative(k, p));
  return sum(k, p, ir_fma(k, a.high, b.low, ir_fma(k, a.low, b.high, rest)));
}

/* 1 - a, 0 <= a <= 1; in f64 of the rounded a, as torch computes it. */
static clb_pair one_minus(ir_kernel *k, ir_type t, clb_pair a) {
  if (t == IR_F64) return (clb_pair){ir_sub(k, ir_real(k, t, 1), a.high), ir_real(k, t, 0)};
  clb_pair d = sum(k, ir_real(k, t, 1), negative(k, a.high));
  return sum(k, d.high, ir_sub(k, d.low, a.low));
}

static ir_val quotient(ir_kernel *k, clb_pair a, clb_pair b) {
  ir_val q = ir_2(k, IR_DIV, a.high, b.high), minus = negative(k, q),
         rest = ir_fma(k, minus, b.low, ir_add(k, ir_fma(k, minus, b.high, a.high), a.low));
  return ir_add(k, q, ir_2(k, IR_DIV, rest, b.high));
}

static ir_val root(ir_kernel *k, clb_pair a) {
  ir_val r = ir_1(k, IR_SQRT, a.high),
         rest = ir_add(k, ir_fma(k, negative(k, r), r, a.high), a.low);
  return ir_add(k, r, ir_2(k, IR_DIV, rest, ir_add(k, r, r)));
}

/* ---- parts of several rules ---- */

static clb_pair pair_of(const ir_val *v) { return (clb_pair){v[0], v[1]}; }

/* beta^t of this step, which the chunk keeps: number, of the beta; at, where. */
static clb_pair power(clb_rule_step *s, int number, int at) {
  clb_pair p = product(s->k, pair_of(s->kept + at), pair_of(s->number + number));
  s->kept[at] = p.high;
  s->kept[at + 1] = p.low;
  return p;
}

/* x + factor y */
static ir_val plus(clb_rule_step *s, ir_val x, ir_val factor, ir_val y) {
  return ir_add(s->k, x, ir_mul(s->k, factor, y));
}

static ir_val with_decay(clb_rule_step *s, const clb_rule_element *e) {
  return plus(s, e->gradient, s->number[CLB_NUMBER_WEIGHT_DECAY], e->parameter);
}

/* b v + (1 - b) g^2 */
static ir_val squares(clb_rule_step *s, ir_val v, ir_val g) {
  return plus(s, ir_mul(s->k, v, s->number[CLB_NUMBER_BETA2]),
              ir_mul(s->k, s->number[CLB_NUMBER_ONE_MINUS_BETA2], g), g);
}

/* ---- SGD; its momentum is beta1, and 1 - dampening is ONE_MINUS_BETA1 ---- */

static void prepare_nothing(clb_rule_step *s) { (void)s; }

static void sgd(clb_rule_step *s, clb_rule_element *e) {
  ir_kernel *k = s->k;
  const ir_val momentum = s->number[CLB_NUMBER_BETA1];
  ir_val g = with_decay(s, e), d = g;
  if (s->rule->momentum) {
    ir_val kept = ir_mul(k, e->state[0], momentum);
    e->state[0] = d =
        ir_select(k, s->first, g, plus(s, kept, s->number[CLB_NUMBER_ONE_MINUS_BETA1], g));
    if (s->rule->nesterov) d = plus(s, g, momentum, d);
  }
  e->parameter = ir_sub(k, e->parameter, ir_mul(k, s->number[CLB_NUMBER_LR], d));
}

/* ---- Adam and AdamW ---- */

enum { STEP_SIZE, ROOT, FIRST, NEXT }; /* lr / (1 - b1^t), sqrt(1 - b2^t), 1 - b1^t, 1 - b1^(t+1) */

static void prepare_adam(clb_rule_step *s) {
  ir_kernel *k = s->k;
  clb_pair p1 = power(s, CLB_NUMBER_BETA1, CLB_POWER_BETA1),
           p2 = power(s, CLB_NUMBER_BETA2, CLB_POWER_BETA2), rest1 = one_minus(k, s->t, p1),
           rest2 = one_minus(k, s->t, p2);
  s->scalar[STEP_SIZE] = quotient(k, pair_of(s->number + CLB_NUMBER_LR), rest1);
  s->scalar[ROOT] = s->rule->nesterov ? rest2.high : root(k, rest2);
  s->scalar[FIRST] = rest1.high;
  s->scalar[NEXT] = one_minus(k, s->t, product(k, p1, pair_of(s->number + CLB_NUMBER_BETA1))).high;
}

/* optax: mhat = b1 m / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t) */
static void adam_nesterov(clb_rule_step *s, clb_rule_element *e, ir_val g) {
  ir_kernel *k = s->k;
  const ir_val *number = s->number;
  ir_val m = ir_add(k, ir_mul(k, number[CLB_NUMBER_ONE_MINUS_BETA1], g),
                    ir_mul(k, number[CLB_NUMBER_BETA1], e->state[0])),
         v = squares(s, e->state[1], g);
  ir_val ahead =
      ir_add(k, ir_mul(k, number[CLB_NUMBER_BETA1], ir_2(k, IR_DIV, m, s->scalar[NEXT])),
             ir_mul(k, number[CLB_NUMBER_ONE_MINUS_BETA1], ir_2(k, IR_DIV, g, s->scalar[FIRST])));
  ir_val below =
      ir_add(k, ir_1(k, IR_SQRT, ir_2(k, IR_DIV, v, s->scalar[ROOT])), number[CLB_NUMBER_EPSILON]);
  e->state[0] = m;
  e->state[1] = v;
  e->parameter =
      ir_sub(k, e->parameter, ir_mul(k, number[CLB_NUMBER_LR], ir_2(k, IR_DIV, ahead, below)));
}

static void adam_from(clb_rule_step *s, clb_rule_element *e, ir_val g) {
  ir_kernel *k = s->k;
  if (s->rule->nesterov) {
    adam_nesterov(s, e, g);
    return;
  }
  ir_val m = clb_lerp(k, e->state[0], g, s->number[CLB_NUMBER_ONE_MINUS_BETA1]),
         v = squares(s, e->state[1], g), used = v;
  e->state[0] = m;
  e->state[1] = v;
  if (s->rule->amsgrad) /* a NaN stays one, as torch's maximum does */
    e->state[2] = used = ir_select(k, ir_2(k, IR_LT, v, e->state[2]), e->state[2], v);
  ir_val below = ir_add(k, ir_2(k, IR_DIV, ir_1(k, IR_SQRT, used), s->scalar[ROOT]),
                        s->number[CLB_NUMBER_EPSILON]);
  e->parameter =
      ir_sub(k, e->parameter, ir_2(k, IR_DIV, ir_mul(k, s->scalar[STEP_SIZE], m), below));
}

static void adam(clb_rule_step *s, clb_rule_element *e) { adam_from(s, e, with_decay(s, e)); }

static void adamw(clb_rule_step *s, clb_rule_element *e) {
  e->parameter = ir_mul(s->k, e->parameter, s->number[CLB_NUMBER_KEPT]);
  adam_from(s, e, e->gradient);
}

/* ---- Muon; its momentum is beta1 ---- */

static void prepare_muon(clb_rule_step *s) {
  ir_kernel *k = s->k;
  clb_pair p = power(s, CLB_NUMBER_BETA1, CLB_POWER_BETA1);
  s->scalar[FIRST] = one_minus(k, s->t, p).high;
  s->scalar[NEXT] = one_minus(k, s->t, product(k, p, pair_of(s->number + CLB_NUMBER_BETA1))).high;
}

/* Nesterov's momentum: optax's is corrected as that of Adam, others' is not. */
static void gather_muon(clb_rule_step *s, clb_rule_element *e) {
  ir_kernel *k = s->k;
  const ir_val beta = s->number[CLB_NUMBER_BETA1], rest = s->number[CLB_NUMBER_ONE_MINUS_BETA1];
  const ir_val g = e->gradient;
  if (s->rule->muon != CLB_MUON_OPTAX) {
    e->state[0] = clb_lerp(k, e->state[0], g, rest);
    e->gradient = clb_lerp(k, g, e->state[0], beta);
    return;
  }
  e->state[0] = ir_add(k, ir_mul(k, rest, g), ir_mul(k, beta, e->state[0]));
  e->gradient = ir_add(k, ir_mul(k, beta, ir_2(k, IR_DIV, e->state[0], s->scalar[NEXT])),
                       ir_mul(k, rest, ir_2(k, IR_DIV, g, s->scalar[FIRST])));
}

static void muon(clb_rule_step *s, clb_rule_element *e) {
  ir_kernel *k = s->k;
  e->parameter = ir_sub(k, ir_mul(k, e->parameter, s->number[CLB_NUMBER_KEPT]),
                        ir_mul(k, s->number[CLB_NUMBER_LR], e->gradient));
}

/* ---- SOAP: Adam in the rotated basis; the first step has none ---- */

static void prepare_soap(clb_rule_step *s) {
  ir_kernel *k = s->k;
  ir_val before[CLB_POWERS];
  for (int i = 0; i < CLB_POWERS; i++) before[i] = s->kept[i];
  clb_pair rest1 = one_minus(k, s->t, power(s, CLB_NUMBER_BETA1, CLB_POWER_BETA1)),
           rest2 = one_minus(k, s->t, power(s, CLB_NUMBER_BETA2, CLB_POWER_BETA2));
  s->scalar[STEP_SIZE] =
      ir_mul(k, quotient(k, pair_of(s->number + CLB_NUMBER_LR), rest1), root(k, rest2));
  for (int i = 0; i < CLB_POWERS; i++) s->kept[i] = ir_select(k, s->first, before[i], s->kept[i]);
}

static void gather_soap(clb_rule_step *s, clb_rule_element *e) {
  ir_val m = clb_lerp(s->k, e->state[0], e->gradient, s->number[CLB_NUMBER_ONE_MINUS_BETA1]);
  e->state[0] = ir_select(s->k, s->first, e->state[0], m);
}

void clb_soap_moment(clb_rule_step *s, ir_val gradient, ir_val mean, ir_val *v, ir_val *direction) {
  ir_kernel *k = s->k;
  *v = squares(s, *v, gradient);
  *direction =
      ir_2(k, IR_DIV, mean, ir_add(k, ir_1(k, IR_SQRT, *v), s->number[CLB_NUMBER_EPSILON]));
}

static void soap(clb_rule_step *s, clb_rule_element *e) {
  ir_kernel *k = s->k;
  ir_val p = ir_sub(k, e->parameter, ir_mul(k, s->scalar[STEP_SIZE], e->gradient));
  e->parameter = ir_select(k, s->first, e->parameter, ir_mul(k, p, s->number[CLB_NUMBER_KEPT]));
}

/* ---- schedule-free AdamW: the parameters are y, states v and z ---- */

enum { RATE, REST2, WEIGHT, FACTOR }; /* lr of this step, 1 - b2^t, c, lr (1 - b1 (1 - c)) */

static void prepare_schedule_free(clb_rule_step *s) {
  ir_kernel *k = s->k;
  ir_val one = ir_real(k, s->t, 1), zero = ir_real(k, s->t, 0),
         warm = s->number[CLB_NUMBER_WARM_UP], lr = s->number[CLB_NUMBER_LR];
  ir_val part = ir_2(k, IR_DIV, s->steps, ir_2(k, IR_MAX, warm, one)),
         rate = ir_select(k, ir_2(k, IR_LT, s->steps, warm), ir_mul(k, lr, part), lr),
         largest = ir_2(k, IR_MAX, rate, s->kept[CLB_LARGEST_LR]),
         weight = ir_mul(k, largest, largest);
  clb_pair total = sum(k, weight, s->kept[CLB_WEIGHT_SUM + 1]);
  /* The old sum is 0 or at least as large as the weight was, which may have grown since. */
  ir_val old = s->kept[CLB_WEIGHT_SUM], larger = ir_2(k, IR_MAX, old, total.high),
         smaller = ir_2(k, IR_MIN, old, total.high);
  clb_pair all = sum(k, larger, smaller);
  all = sum(k, all.high, ir_add(k, all.low, total.low));
  ir_val some = ir_2(k, IR_LT, zero, all.high),
         c = ir_select(k, some,
                       quotient(k, (clb_pair){weight, zero},
                                (clb_pair){ir_select(k, some, all.high, one), all.low}),
                       zero);
  s->kept[CLB_LARGEST_LR] = largest;
  s->kept[CLB_WEIGHT_SUM] = all.high;
  s->kept[CLB_WEIGHT_SUM + 1] = all.low;
  s->scalar[RATE] = rate;
  s->scalar[REST2] = one_minus(k, s->t, power(s, CLB_NUMBER_BETA2, CLB_POWER_BETA2)).high;
  s->scalar[WEIGHT] = c;
  s->scalar[FACTOR] =
      ir_mul(k, rate, ir_sub(k, ir_mul(k, s->number[CLB_NUMBER_BETA1], ir_sub(k, one, c)), one));
}

static void schedule_free(clb_rule_step *s, clb_rule_element *e) {
  ir_kernel *k = s->k;
  ir_val y = e->parameter, z = ir_select(k, s->first, y, e->state[1]),
         v = squares(s, e->state[0], e->gradient);
  ir_val below = ir_add(k, ir_1(k, IR_SQRT, ir_2(k, IR_DIV, v, s->scalar[REST2])),
                        s->number[CLB_NUMBER_EPSILON]);
  ir_val d = plus(s, ir_2(k, IR_DIV, e->gradient, below), s->number[CLB_NUMBER_WEIGHT_DECAY], y);
  e->state[0] = v;
  e->state[1] = ir_sub(k, z, ir_mul(k, s->scalar[RATE], d));
  e->parameter = plus(s, clb_lerp(k, y, z, s->scalar[WEIGHT]), s->scalar[FACTOR], d);
}

/* ---- the table ---- */

static const struct {
  int states;
  void (*prepare)(clb_rule_step *s);
  void (*apply)(clb_rule_step *s, clb_rule_element *e);
  void (*gather)(clb_rule_step *s, clb_rule_element *e); /* NULL: not of matrices */
} rules[] = {
    [CLB_SGD] = {0, prepare_nothing, sgd, NULL},
    [CLB_ADAM] = {2, prepare_adam, adam, NULL},
    [CLB_ADAMW] = {2, prepare_adam, adamw, NULL},
    [CLB_SCHEDULE_FREE_ADAMW] = {2, prepare_schedule_free, schedule_free, NULL},
    [CLB_MUON] = {1, prepare_muon, muon, gather_muon},
    [CLB_SOAP] = {2, prepare_soap, soap, gather_soap},
};

int clb_optimizer_states(const clb_optimizer_rule *rule) {
  return rules[rule->rule].states + (rule->momentum != 0) + (rule->amsgrad != 0);
}

bool clb_optimizer_gathers(const clb_optimizer_rule *rule) { return rules[rule->rule].gather; }

void clb_rule_prepare(clb_rule_step *s) { rules[s->rule->rule].prepare(s); }
void clb_rule_apply(clb_rule_step *s, clb_rule_element *e) { rules[s->rule->rule].apply(s, e); }
void clb_rule_gather(clb_rule_step *s, clb_rule_element *e) { rules[s->rule->rule].gather(s, e); }
