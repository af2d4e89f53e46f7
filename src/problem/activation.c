/* src/problem/activation.c - activations: names, parity, normalisation. */
#include "src/problem/activation.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double silu(double x) { return x / (1 + exp(-x)); }
static double identity(double x) { return x; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double relu(double x) { return x > 0 ? x : 0; }
static double ssp(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))) - log(2); }

static double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }
static double tanh_slope(double x) { return (1 - tanh(x)) * (1 + tanh(x)); }
static double abs_slope(double x) { return (x > 0) - (x < 0); }
static double identity_slope(double x) { return (void)x, 1; }
static double sigmoid_slope(double x) { return sigmoid(x) * (1 - sigmoid(x)); }
static double relu_slope(double x) { return x > 0; }

static const struct {
  const char *name;
  double (*function)(double), (*slope)(double);
  int parity; /* 1: even, -1: odd, 0: neither */
} all[CLB_ACTIVATIONS] = {
    [CLB_SILU] = {"silu", silu, silu_slope, 0},
    [CLB_TANH] = {"tanh", tanh, tanh_slope, -1},
    [CLB_ABS] = {"abs", fabs, abs_slope, 1},
    [CLB_IDENTITY] = {"identity", identity, identity_slope, -1},
    [CLB_SIGMOID] = {"sigmoid", sigmoid, sigmoid_slope, 0},
    [CLB_RELU] = {"relu", relu, relu_slope, 0},
    [CLB_SSP] = {"ssp", ssp, sigmoid, 0},
};

const char *clb_activation_name(clb_activation f) { return all[f].name; }

void clb_activation_at(clb_activation f, double x, double *value, double *slope) {
  *value = all[f].function(x);
  *slope = all[f].slope(x);
}

int clb_activation_parity(clb_activation f, int parity) { return parity > 0 ? 1 : all[f].parity; }

/* By the trapezoidal rule, whose error for functions that are analytic near the real axis falls
   exponentially in 1/h; the squares of abs and relu are exact by symmetry. */
static double unit_scale(clb_activation f) {
  const double h = 1. / 64;
  double sum = 0, weights = 0;
  for (int i = -1024; i <= 1024; i++) {
    const double x = i * h, w = exp(-x * x / 2), y = all[f].function(x);
    sum += w * y * y;
    weights += w;
  }
  return sqrt(weights / sum);
}

/* [number "*"] name, up to a comma or the end, in *s. */
static int read_one(const char **s, clb_scaled_activation *a) {
  const char *c = *s + strspn(*s, " ");
  char *end;
  a->scale = 1;
  if (!isalpha((unsigned char)*c)) {
    a->scale = strtod(c, &end);
    if (end == c || !isfinite(a->scale)) return 0;
    c = end + strspn(end, " ");
    if (*c != '*') return 0;
    c++;
    c += strspn(c, " ");
  }
  const size_t length = strcspn(c, ", ");
  *s = c + length + strspn(c + length, " ");
  for (int f = 0; f < CLB_ACTIVATIONS; f++)
    if (strlen(all[f].name) == length && !strncmp(all[f].name, c, length)) {
      a->function = (clb_activation)f;
      return !**s || **s == ',';
    }
  return 0;
}

clb_status clb_activations_read(const char *text, const char *name, int n, int normalize,
                                clb_scaled_activation *list, clb_error_sink *error) {
  int read = 0;
  if (!n && (!text || !*text)) return CLB_OK;
  for (const char *s = text ? text : ""; !read || *s; read++) {
    clb_scaled_activation a;
    s += read > 0; /* the comma */
    if (!read_one(&s, &a))
      return clb_fail(
          error, CLB_ERROR_ARGUMENT,
          "%s is \"%s\"; it must be silu, tanh, sigmoid, relu, abs, ssp or identity, or "
          "a list such as \"silu,1.5*tanh\"",
          name, text ? text : "(NULL)");
    if (normalize) a.scale *= unit_scale(a.function);
    if (read < n) list[read] = a;
  }
  if (read != 1 && read != n)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "%s is \"%s\", %d activations; it must have 1, or %d: one for each term", name,
                    text, read, n);
  for (int i = 1; read == 1 && i < n; i++) list[i] = list[0];
  return CLB_OK;
}
