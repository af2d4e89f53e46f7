/* tools/convert/sevennet/tensors.c - tensors of SevenNet's checkpoints, under the names that they
   have had. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

static bool find_equflash(const sevennet *q, const char *key, weights *w) {
  static const char *const prefixes[] = {"", "module.", "model.", "module.model."};
  char name[FILE_NAME_BYTES];
  for (int i = 0; i < 8; i++) {
    equflash_name(key, prefixes[i / 2], name);
    if (i % 2) strncat(name, "s.0", sizeof name - strlen(name) - 1); /* the only one of a list */
    if (pickle_entry(q->state, name)) return *w = tensor_of(q->t, q->state, name), true;
  }
  return false;
}

bool find_tensor(const sevennet *q, const char *key, weights *w) {
  char blank[NAME_BYTES];
  if (q->equflash) return find_equflash(q, key, w);
  if (pickle_entry(q->state, key)) return *w = tensor_of(q->t, q->state, key), true;
  snprintf(blank, sizeof blank, "%s", key);
  for (char *s = blank; *s && *s != '.'; s++)
    if (*s == '_') *s = ' ';
  return pickle_entry(q->state, blank) && (*w = tensor_of(q->t, q->state, blank), true);
}

weights tensor(const sevennet *q, const char *key, const char *old, int64_t count) {
  weights w;
  if (!find_tensor(q, key, &w) && !(old && find_tensor(q, old, &w)))
    fail_model(q->t->path, "there is no tensor '%s': not a SevenNet model of a supported kind",
               key);
  if (w.count != count)
    fail_model(q->t->path, "tensor '%s' has %lld numbers, not %lld", key, (long long)w.count,
               (long long)count);
  return w;
}

weights layer_tensor(const sevennet *q, int layer, const char *what, int64_t count) {
  return tensor(q, named("%d_%s", layer, what).text, NULL, count);
}

void put_by_species(const sevennet *q, const weights *w, int64_t outer, int64_t inner,
                    double factor, const char *name) {
  const int64_t shape[3] = {outer, q->n_species, inner};
  const int rank = outer == 1 ? 2 : 3;
  if (q->n_species == q->n_all) {
    put_part(q->out, w, 0, factor, rank, shape + 3 - rank, name);
    return;
  }
  double *x = allocate((size_t)(outer * q->n_species * inner), sizeof *x), *to = x;
  for (int64_t o = 0; o < outer; o++)
    for (int s = 0; s < q->n_species; s++)
      for (int64_t i = 0; i < inner; i++)
        *to++ = factor * element(w, (o * q->n_all + q->species[s]) * inner + i);
  put_shaped(q->out, x, rank, shape + 3 - rank, name);
  free(x);
}

bool added(const sevennet *q, const char *module, const weights *w, int64_t first, bool modal,
           int64_t inputs, int64_t n, double *sum) {
  const bool biased = !q->v2 && is_true(q, "use_bias_in_linear", false);
  const double scale = 1 / sqrt((double)inputs);
  for (int64_t i = 0; i < n; i++)
    sum[i] = modal ? scale * element(w, first + q->modality * n + i) : 0;
  if (biased) {
    const weights b = tensor(q, named("%s.linear.bias", module).text, NULL, n);
    for (int64_t i = 0; i < n; i++) sum[i] += element(&b, i);
  }
  return modal || biased;
}
