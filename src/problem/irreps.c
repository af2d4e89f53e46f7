/* src/problem/irreps.c - "32x0e+16x1o" <-> terms. */
#include "src/problem/irreps.h"

#include <ctype.h>
#include <string.h>

static const char *skip_space(const char *s) {
  while (isspace((unsigned char)*s)) s++;
  return s;
}

/* Reads an integer that fits in 31 bits, and white space around it. */
static bool read_number(const char **s, int64_t *n) {
  const char *c = skip_space(*s);
  if (!isdigit((unsigned char)*c)) return false;
  for (*n = 0; isdigit((unsigned char)*c); c++)
    if ((*n = 10 * *n + (*c - '0')) > INT32_MAX) return false;
  *s = skip_space(c);
  return true;
}

/* [mul "x"] l ("e" | "o" | "y") */
static bool read_term(const char **s, clb_term *term) {
  int64_t mul = 1, l;
  if (!read_number(s, &l)) return false;
  if (**s == 'x') {
    ++*s;
    mul = l;
    if (!read_number(s, &l)) return false;
  }
  char p = **s;
  if (p != 'e' && p != 'o' && p != 'y') return false;
  *s = skip_space(*s + 1);
  term->mul = (int32_t)mul;
  term->l = (int32_t)l;
  term->parity = p == 'e' || (p == 'y' && l % 2 == 0) ? 1 : -1;
  return true;
}

clb_status clb_irreps_read(const char *text, const char *name, clb_irreps *irreps,
                           clb_error_sink *error) {
  memset(irreps, 0, sizeof *irreps);
  if (!text) return clb_fail(error, CLB_ERROR_ARGUMENT, "%s is NULL", name);
  for (const char *s = skip_space(text); *s || irreps->n;) {
    clb_term term = {0};
    const char *start = s;
    if (!read_term(&s, &term) || (*s && *s != '+'))
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "%s is \"%s\"; a term such as 16x1o must stand where it says \"%s\"", name,
                      text, start);
    if (term.l > CLB_MAX_L)
      return clb_fail(error, CLB_ERROR_ARGUMENT, "%s is \"%s\"; l is at most %d", name, text,
                      CLB_MAX_L);
    if (irreps->n == CLB_MAX_TERMS)
      return clb_fail(error, CLB_ERROR_ARGUMENT, "%s has more than %d terms", name, CLB_MAX_TERMS);
    int64_t dim = irreps->dim + (int64_t)term.mul * (2 * term.l + 1);
    if (dim > INT32_MAX)
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "%s is \"%s\"; its dimension is more than 2^31 - 1", name, text);
    term.at = irreps->dim;
    irreps->dim = (int32_t)dim;
    irreps->term[irreps->n++] = term;
    if (!*s) break;
    s++;
  }
  return CLB_OK;
}

void clb_irreps_merge(clb_irreps *irreps) {
  for (int i = 0, n; i < irreps->n; i += n) {
    clb_term *t = &irreps->term[i];
    int32_t all = 0;
    for (n = 0; i + n < irreps->n && t[n].l == t->l && t[n].parity == t->parity; n++)
      all += t[n].mul;
    for (int j = 0, before = 0; j < n; before += t[j++].mul) {
      t[j].at = t->at + before;
      t[j].component_stride = all;
    }
  }
}

void clb_irreps_print(const clb_irreps *irreps, clb_text *out) {
  clb_text_bytes(out, "", 0); /* without terms: an empty string, not NULL */
  for (int i = 0; i < irreps->n; i++) {
    const clb_term *t = &irreps->term[i];
    clb_text_add(out, "%s%dx%d%c", i ? "+" : "", (int)t->mul, (int)t->l, t->parity > 0 ? 'e' : 'o');
  }
}
