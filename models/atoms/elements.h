/* models/atoms/elements.h - chemical symbols by atomic number. */
#ifndef CLB_MODELS_ATOMS_ELEMENTS_H
#define CLB_MODELS_ATOMS_ELEMENTS_H

#include <stddef.h>

enum { CLB_ELEMENTS = 118 };
extern const char *const clb_element_symbols[CLB_ELEMENTS + 1]; /* [0] is "" */

/* "Si" -> 14; 0: no such element. */
int clb_element(const char *symbol, size_t length);

#endif
