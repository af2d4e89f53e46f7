/* tools/reference/reference_activation.h - activations and their derivatives in float64. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_ACTIVATION_H
#define CLB_TOOLS_REFERENCE_REFERENCE_ACTIVATION_H

/* factor f(x), by the function's place in a table. */
typedef struct {
  int function;
  double factor;
} reference_activation;

/* Reads the activation of term t out of n; 0: the text is wrong. */
int reference_activation_read(const char *text, int t, int n, int normalize,
                              reference_activation *a);
/* -1, 1, or 0: none. */
int reference_activation_parity(const reference_activation *a, int parity);
/* Value, slope and second derivative. size: what rounding errors of the value are relative to;
   those of the others are relative to the factor. */
void reference_activate(const reference_activation *a, double x, double f[3], double *size);

#endif
