/* tools/reference/reference_activation.c - activations and their derivatives in float64. */
#include "tools/reference/reference_activation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SILU, TANH, SIGMOID, RELU, ABS, SSP, IDENTITY, FUNCTIONS };
static const char *const names[] = {"silu", "tanh", "sigmoid", "relu", "abs", "ssp", "identity"};

static void plain(int function, double x, double f[3]) {
  const double s = x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)), q = 1 / cosh(x / 2),
               ds = q * q / 4, dds = -ds * tanh(x / 2), th = tanh(x), c = 1 / cosh(x);
  const double of[FUNCTIONS][3] = {
      {x * s, s + x * ds, 2 * ds + x * dds},
      {th, c * c, -2 * th * c * c},
      {s, ds, dds},
      {x > 0 ? x : 0, x > 0, 0},
      {fabs(x), (x > 0) - (x < 0), 0},
      {(x > 0 ? x : 0) + log1p((exp(-fabs(x)) - 1) / 2), s, ds},
      {x, 1, 0},
  };
  memcpy(f, of[function], sizeof of[function]);
}

/* 1 / sqrt(mean f^2) over the normal distribution, by Simpson's rule on each half of the axis. */
static double unit(int function) {
  enum { STEPS = 4000 };
  static double found[FUNCTIONS];
  double sum = 0, f[3];
  const double h = 13.0 / STEPS;
  if (found[function] > 0) return found[function];
  for (int side = -1; side <= 1; side += 2)
    for (int i = 0; i <= STEPS; i++) {
      const double x = side * i * h, weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
      plain(function, x, f);
      sum += weight * h / 3 * f[0] * f[0] * exp(-x * x / 2) / sqrt(2 * acos(-1));
    }
  return found[function] = 1 / sqrt(sum);
}

int reference_activation_read(const char *text, int t, int n, int normalize,
                              reference_activation *a) {
  char word[64];
  int commas = 0;
  for (const char *c = text; text && *c; c++) commas += *c == ',';
  if (!text || (commas && commas != n - 1)) return 0;
  for (int skip = commas ? t : 0; skip; text++) skip -= *text == ',';
  const size_t length = strcspn(text, ",");
  if (length >= sizeof word) return 0;
  memcpy(word, text, length);
  word[length] = 0;
  char *star = strchr(word, '*'), *name = star ? star + 1 : word;
  a->factor = star ? strtod(word, NULL) : 1;
  for (a->function = 0; a->function < FUNCTIONS; a->function++)
    if (!strcmp(name, names[a->function])) {
      if (normalize) a->factor *= unit(a->function);
      return 1;
    }
  return 0;
}

int reference_activation_parity(const reference_activation *a, int parity) {
  double plus[3], minus[3];
  if (parity > 0) return 1;
  plain(a->function, 0.7, plus);
  plain(a->function, -0.7, minus);
  return plus[0] == minus[0] ? 1 : plus[0] == -minus[0] ? -1 : 0;
}

void reference_activate(const reference_activation *a, double x, double f[3], double *size) {
  plain(a->function, x, f);
  for (int i = 0; i < 3; i++) f[i] *= a->factor;
  *size = fabs(f[0]) + fabs(a->factor) * (a->function == SSP ? 1 : fmin(1, fabs(x)));
}
