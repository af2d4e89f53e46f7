/* tools/reference/reference_irreps.h - irreps, Wigner 3j symbols and the named products, written
   independently of the library. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_IRREPS_H
#define CLB_TOOLS_REFERENCE_REFERENCE_IRREPS_H

#include <clebsch/clebsch.h>

enum { REFERENCE_MAX_TERMS = 512, REFERENCE_MAX_L = 12 };

typedef struct {
  int mul, l, parity, at; /* at: its offset in a row */
} reference_irrep;

typedef struct {
  int n, dim;
  reference_irrep term[REFERENCE_MAX_TERMS];
} reference_irreps;

/* Returns 0 if the text is invalid. */
int reference_irreps_read(const char *text, reference_irreps *irreps);

/* Counterparts of clb_channel_wise and so on. They return 0 if a text is invalid, something does
   not fit or there is no memory (errno is ENOMEM). */
int reference_channel_wise(const char *x, const char *y, const char *filter, clb_path_order order,
                           clb_instructions *found);
int reference_fully_connected(const char *x, const char *y, const char *z, clb_instructions *found);
int reference_full(const char *x, const char *y, const char *filter, clb_instructions *found);
int reference_elementwise(const char *x, const char *y, const char *filter,
                          clb_instructions *found);

/* Wigner 3j symbols in the real basis, C[2 l1 + 1][2 l2 + 1][2 l3 + 1]. */
void reference_3j(int l1, int l2, int l3, double *C);

#endif
