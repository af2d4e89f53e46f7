/* models/arch/messages.c - messages along the paths of a block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/arch/arch_parts.h"

typedef clb_model_reader reader;

/* Checks path q: the product must contain the irrep that it goes to, and that as many channels as
   the features. */
static void check_path(reader *r, const char *key, const clb_arch_product *y, int q,
                       const char *words) {
  const clb_instruction *p = &y->path[q];
  const clb_term *x = &y->in.term[p->in1], *z = &y->out.term[p->out];
  const int l2 = y->sh->term[p->in2].l, y_parity = y->sh->term[p->in2].parity;
  const int words_n = (int)strcspn(words, " ");
  if (z->l < abs(x->l - l2) || z->l > x->l + l2 || z->parity != x->parity * y_parity)
    clb_model_refuse(r, "'%s': path %d, \"%.*s\": %d%c times %d%c holds no %d%c", key, q, words_n,
                     words, (int)x->l, x->parity > 0 ? 'e' : 'o', l2, y_parity > 0 ? 'e' : 'o',
                     (int)z->l, z->parity > 0 ? 'e' : 'o');
  if (z->mul != x->mul)
    clb_model_refuse(
        r,
        "'%s': path %d, \"%.*s\": its message has %d channels; they must be the %d of its features",
        key, q, words_n, words, (int)z->mul, (int)x->mul);
}

void clb_arch_read_paths(reader *r, int n, const char *paths, const char *out, clb_mode mode,
                         clb_arch_product *y) {
  char key[CLB_MODEL_KEY];
  const char *text = clb_model_text(r, clb_arch_key(key, n, paths));
  for (int used = 0; !r->status && *text; text += used) {
    clb_instruction *q = &y->path[y->n_paths];
    if (y->n_paths == CLB_MAX_PATHS ||
        sscanf(text, "%9d,%9d,%9d%n", &q->in1, &q->in2, &q->out, &used) != 3 ||
        (text[used] && text[used] != ' ') || q->in1 < 0 || q->in1 >= y->in.n || q->in2 < 0 ||
        q->in2 >= y->sh->n || q->out < 0 || q->out >= y->out.n)
      clb_model_refuse(r,
                       "'%s' must be X,Y,Z for each path, terms of the two factors and of "
                       "%s; it is not where it says \"%.20s\"",
                       key, out, text);
    if (r->status) return;
    q->mode = mode, q->has_weight = 1, q->path_weight = 1;
    check_path(r, key, y, y->n_paths, text);
    y->n_weights += y->in.term[q->in1].mul;
    y->n_paths++;
    used += text[used] == ' ';
  }
  if (!y->n_paths) clb_model_refuse(r, "'%s' is empty", key);
}

void clb_arch_check_paths(reader *r, int n, const char *paths, const char *out,
                          const clb_arch_product *y) {
  char key[CLB_MODEL_KEY];
  clb_arch_key(key, n, paths);
  for (int q = 0; q < y->n_paths && !r->status; q++)
    for (int i = 0; i < q; i++)
      if (y->path[i].out == y->path[q].out)
        clb_model_refuse(r,
                         "'%s': paths %d and %d make one message; each path must have a term of "
                         "%s to itself",
                         key, i, q, out);
  if (y->n_paths < y->out.n)
    clb_model_refuse(r, "'%s' has %d paths, but layers.%d.%s %d terms; it must be one for each",
                     key, y->n_paths, n, out, y->out.n);
}

void clb_arch_paths(reader *r, int n, clb_arch_product *y) {
  clb_arch_read_paths(r, n, "paths", "irreps_message", CLB_UVU, y);
  clb_arch_check_paths(r, n, "paths", "irreps_message", y);
}

int clb_arch_convolution(reader *r, int block, const clb_arch_product *m, double scale, int x,
                         int harmonics, int weights) {
  const int message = clb_model_array(r, CLB_PER_LOCAL, false, &m->out);
  clb_layer *y = clb_model_layer(r, &clb_convolution_kind, sizeof(clb_convolution_layer), block,
                                 "convolution", x, message);
  clb_convolution_layer *p = y ? y->parameters : NULL;
  if (!y) return message;
  p->message = m->out;
  p->n_paths = m->n_paths;
  memcpy(p->path, m->path, sizeof p->path);
  p->n_weights = m->n_weights;
  p->scale = scale;
  y->in[CLB_CONVOLUTION_HARMONICS] = harmonics;
  y->in[CLB_CONVOLUTION_WEIGHTS] = weights;
  y->gradients = (1U << CLB_CONVOLUTION_INS) - 1;
  if (x >= 0) return message;
  p->ones = m->in;
  p->ones_at = clb_model_reserve(r, m->in.dim);
  for (int i = 0; i < m->in.dim && !r->status; i++) r->out->weights[p->ones_at + i] = 1;
  return message;
}
