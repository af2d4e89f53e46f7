/* tools/convert/maps.c - e3nn's linear maps: from flat weights to one matrix per irrep. */
#include "tools/convert/maps.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

const double silu_scale = 1.6791767923989418;

double moment_scale(const char *name) {
  const struct {
    const char *name;
    double scale;
  } all[] = {{"silu", silu_scale},         {"tanh", 1.5937334472592695},
             {"abs", 1.001110600838467},   {"ssp", 1.878204668541552},
             {"relu", 1.4163393446331365}, {"sigmoid", 1.8467055342154763}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(all[i].name, name)) return all[i].scale;
  return 0;
}

static bool starts(const irreps *list, int i) { /* the first term of its irrep */
  for (int k = 0; k < i; k++)
    if (same_irrep(list->term[k], list->term[i])) return false;
  return true;
}

void put_part(model *out, const weights *w, int64_t first, double factor, int rank,
              const int64_t *shape, const char *name) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  if (n > w->count - first)
    fail_model(out->from, "'%s' has %lld weights, which are too few", name, (long long)w->count);
  if (factor == 1) {
    put_tensor(out, w->data + first * (w->f64 ? 8 : 4), w->f64, rank, shape, "%s", name);
    return;
  }
  double *x = allocate((size_t)n, sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = factor * element(w, first + i);
  put_shaped(out, x, rank, shape, name);
  free(x);
}

int64_t map_numbers(const irreps *in, const irreps *to, int64_t inner) {
  int64_t n = 0;
  for (int i = 0; i < in->n; i++) n += in->term[i].mul * channels_of(to, in->term[i]);
  return inner ? inner * n : n;
}

void put_map(model *out, const weights *w, const irreps *in, const irreps *to, int64_t inner,
             const double *factor, const char *prefix) {
  int64_t first = 0;
  for (int i = 0; i < in->n; i++) {
    const int64_t from = channels_of(in, in->term[i]), columns = channels_of(to, in->term[i]),
                  shape[3] = {from, inner ? inner : columns, columns};
    char label[LABEL_BYTES];
    int k = 0;
    if (!starts(in, i) || !columns) continue;
    while (!same_irrep(to->term[k], in->term[i])) k++;
    put_part(out, w, first, factor ? factor[k] : 1, inner ? 3 : 2, shape,
             named("%s.%s", prefix, irrep_label(in->term[i], label)).text);
    first += from * columns * (inner ? inner : 1);
  }
}

void put_columns(model *out, const weights *w, const int64_t shape[2], const double *factor,
                 const char *name) {
  double *x = allocate((size_t)w->count, sizeof *x);
  for (int64_t i = 0; i < w->count; i++) x[i] = factor[i % shape[1]] * element(w, i);
  put_shaped(out, x, 2, shape, name);
  free(x);
}
