/* tools/convert/mace/states.c - MACE's embedding of a structure's charge and spin: two embeddings
   and the matrix that reads them become a table of each. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/mace/mace.h"

/* What MACE calls them, and the format. */
static const char *const states[][2] = {{"total_charge", "charge"}, {"total_spin", "spin"}};

static void expect_word(const mace *q, value spec, const char *name, const char *key,
                        const char *wanted) {
  value v = pickle_entry(spec, key);
  if (!v || v->kind != PICKLE_TEXT || strcmp(v->text, wanted) != 0)
    fail_model(q->t->path,
               "its embedding of '%s' is of another '%s' than '%s', which is not supported", name,
               key, wanted);
}

/* [classes][channels]: the embedding times its columns, from `first` on, of the matrix. Returns the
   number of these. */
static int64_t put_state(mace *q, value joint, const char *name, value spec, const weights *matrix,
                         int64_t first) {
  int k = 0;
  while (k < 2 && strcmp(states[k][0], name) != 0) k++;
  if (k == 2)
    fail_model(q->t->path, "it embeds '%s'; only total_charge and total_spin are understood", name);
  expect_word(q, spec, name, "type", "categorical");
  expect_word(q, spec, name, "per", "graph");
  value embedder = mace_module(q, joint, named("embedders.%s", name).text, "Embedding"),
        offset = pickle_entry(spec, "offset");
  const weights w = weights_at(q->t, embedder, "weight");
  const int64_t channels = matrix->shape[0], classes = w.shape[0], n = w.shape[1],
                shape[2] = {classes, channels};
  double low = 0;
  if (w.rank != 2 || first + n > matrix->shape[1] || (offset && !plain_number(offset, &low)))
    fail_model(q->t->path, "its embedding of '%s' does not fit the matrix that reads it", name);
  double *to = allocate((size_t)(classes * channels), sizeof *to);
  for (int64_t c = 0; c < classes; c++)
    for (int64_t o = 0; o < channels; o++) {
      to[c * channels + o] = 0;
      for (int64_t i = 0; i < n; i++)
        to[c * channels + o] +=
            element(&w, c * n + i) * element(matrix, o * matrix->shape[1] + first + i);
    }
  put_shaped(q->out, to, 2, shape, named("embedding_%s", states[k][1]).text);
  put_number(q->out, 0 - low, "%s_first", states[k][1]);
  free(to);
  return n;
}

/* Energies of the first features, which are not scaled with the others. */
static void put_readout(mace *q, double scale) {
  const int64_t channels = q->features.term[0].mul, heads = q->n_heads;
  value block = mace_module(q, q->network, "embedding_readout", "LinearReadoutBlock");
  const weights w = mace_linear(q, block, "linear", channels * heads);
  if (scale == 0) fail_model(q->t->path, "its scale is 0, which is not supported here");
  double *to = allocate((size_t)channels, sizeof *to);
  for (int64_t c = 0; c < channels; c++) to[c] = element(&w, c * heads + q->head) / scale;
  put_doubles(q->out, to, channels, "embedding_readout");
  free(to);
}

void mace_states(mace *q, double scale) {
  if (!maybe(q->network, "joint_embedding")) return;
  value joint = mace_module(q, q->network, "joint_embedding", "GenericJointEmbedding"),
        specs = attribute(q->t, joint, "specs", PICKLE_DICT),
        project = mace_module(q, joint, "project", "Sequential"),
        linear = mace_module(q, project, "0", "Linear");
  mace_module(q, project, "1", "SiLU");
  const weights matrix = weights_at(q->t, linear, "weight");
  value bias = maybe(linear, "bias");
  int64_t first = 0;
  if (matrix.rank != 2 || matrix.shape[0] != q->features.term[0].mul ||
      (bias && bias->kind != PICKLE_NONE))
    fail_model(q->t->path,
               "the matrix of its joint embedding has a bias, or not as many outputs as "
               "the first features");
  for (size_t i = 0; i + 1 < specs->n; i += 2) {
    if (specs->items[i]->kind != PICKLE_TEXT)
      fail_model(q->t->path, "its embeddings have no names");
    first += put_state(q, joint, specs->items[i]->text, specs->items[i + 1], &matrix, first);
  }
  if (first != matrix.shape[1])
    fail_model(q->t->path, "its joint embedding reads %lld numbers, not the %lld of its embeddings",
               (long long)matrix.shape[1], (long long)first);
  if (maybe(q->network, "embedding_readout")) put_readout(q, scale);
}
