/* tools/optimizer/parameter_lists.c - lists of parameters: those of a model for atoms, one like
   another's, and of networks for images and text. */
#include "tools/optimizer/parameter_lists.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

static void add(parameter_list *l, int64_t rows, int64_t columns, int times) {
  for (int i = 0; i < times; i++) {
    if (l->n == l->cap) {
      l->cap = 2 * l->cap + 64;
      l->shape = enlarge(l->shape, (size_t)l->cap, sizeof *l->shape);
    }
    l->shape[l->n][0] = rows;
    l->shape[l->n++][1] = columns;
    l->all += rows * columns;
  }
}

/* A matrix and a bias. */
static void add_layer(parameter_list *l, int64_t rows, int64_t columns, int times) {
  for (int i = 0; i < times; i++) {
    add(l, rows, columns, 1);
    add(l, rows, 1, 1);
  }
}

/* The arrays of the model nequix-mp-1. */
static void nequix(parameter_list *l) {
  static const int64_t first[][2] = {{89, 1},   {8, 64},  {64, 64}, {64, 356}, {89, 89},
                                     {89, 256}, {89, 64}, {89, 32}, {89, 32},  {89, 256}},
                       middle[][2] = {{256, 1},   {64, 1},    {32, 1},    {32, 1},   {8, 64},
                                      {64, 64},   {64, 1312}, {128, 128}, {64, 64},  {32, 32},
                                      {32, 32},   {256, 256}, {352, 64},  {384, 32}, {320, 32},
                                      {128, 256}, {64, 64},   {32, 32},   {32, 32}},
                       last[][2] = {{256, 1}, {64, 1},    {32, 1},    {32, 1},  {8, 64},
                                    {64, 64}, {64, 256},  {128, 128}, {64, 64}, {32, 32},
                                    {32, 32}, {256, 128}, {128, 128}, {128, 1}, {128, 1}};
  for (size_t i = 0; i < sizeof first / sizeof *first; i++) add(l, first[i][0], first[i][1], 1);
  for (size_t i = 0; i < 2 * (sizeof middle / sizeof *middle); i++)
    add(l, middle[i % (sizeof middle / sizeof *middle)][0],
        middle[i % (sizeof middle / sizeof *middle)][1], 1);
  for (size_t i = 0; i < sizeof last / sizeof *last; i++) add(l, last[i][0], last[i][1], 1);
}

/* Sizes as in a model of 128 channels and 89 elements; the last two make up the numbers. */
static void mace(parameter_list *l) {
  add(l, 89, 2944, 6);
  add(l, 89, 512, 6);
  add(l, 89, 128, 6);
  add(l, 128, 128, 40);
  add(l, 64, 64, 8);
  add(l, 8, 64, 2);
  add(l, 64, 1280, 4);
  add(l, 128, 1, 60);
  add(l, 1, 1, 16);
  add(l, 89 * 128, 128, 1);
  add(l, 3479, 128, 1);
}

static void dcgan(parameter_list *l) {
  add(l, 64, 3 * 16, 1);
  for (int64_t c = 64; c < 512; c *= 2) {
    add(l, 2 * c, c * 16, 1);
    add(l, 2 * c, 1, 2);
  }
  add(l, 1, 512 * 16, 1);
}

/* ---- GhostNet ---- */

static void add_convolution(parameter_list *l, int64_t out, int64_t in) {
  add(l, out, in, 1);
  add(l, out, 1, 2); /* of the norm */
}

static void add_ghost(parameter_list *l, int64_t in, int64_t out) {
  add_convolution(l, out / 2, in);
  add_convolution(l, out / 2, 9);
}

static void ghostnet(parameter_list *l) {
  static const struct {
    int64_t kernel, middle, out, squeezed, stride;
  } blocks[] = {
      {3, 16, 16, 0, 1},   {3, 48, 24, 0, 2},     {3, 72, 24, 0, 1},     {5, 72, 40, 20, 2},
      {5, 120, 40, 32, 1}, {3, 240, 80, 0, 2},    {3, 200, 80, 0, 1},    {3, 184, 80, 0, 1},
      {3, 184, 80, 0, 1},  {3, 480, 112, 120, 1}, {3, 672, 112, 168, 1}, {5, 672, 160, 168, 2},
      {5, 960, 160, 0, 1}, {5, 960, 160, 240, 1}, {5, 960, 160, 0, 1},   {5, 960, 160, 240, 1}};
  int64_t in = 16;
  add_convolution(l, 16, 27);
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    const int64_t area = blocks[i].kernel * blocks[i].kernel, middle = blocks[i].middle;
    add_ghost(l, in, middle);
    if (blocks[i].stride > 1) add_convolution(l, middle, area);
    if (blocks[i].squeezed) {
      add_layer(l, blocks[i].squeezed, middle, 1);
      add_layer(l, middle, blocks[i].squeezed, 1);
    }
    add_ghost(l, middle, blocks[i].out);
    if (in != blocks[i].out || blocks[i].stride > 1) {
      add_convolution(l, in, area);
      add_convolution(l, blocks[i].out, in);
    }
    in = blocks[i].out;
  }
  add_convolution(l, 960, 160);
  add_layer(l, 1280, 960, 1);
  add_layer(l, 1000, 1280, 1);
}

/* ---- text ---- */

static void add_blocks(parameter_list *l, int64_t width, int64_t inner, int blocks) {
  for (int i = 0; i < blocks; i++) {
    add_layer(l, width, width, 4);
    add(l, width, 1, 4);
    add_layer(l, inner, width, 1);
    add_layer(l, width, inner, 1);
  }
}

static void bert(parameter_list *l) {
  add(l, 30522, 768, 1);
  add(l, 512, 768, 1);
  add(l, 2, 768, 1);
  add(l, 768, 1, 2);
  add_blocks(l, 768, 3072, 12);
  add_layer(l, 768, 768, 1);
}

static void xglm(parameter_list *l) {
  add(l, 256008, 1024, 1);
  add_blocks(l, 1024, 4096, 24);
  add(l, 1024, 1, 2);
}

/* ---- the table ---- */

static const struct {
  const char *what;
  void (*make)(parameter_list *l);
} lists[PARAMETER_LISTS] = {{"Nequix MP-1", nequix},
                            {"sizes like MACE-MP medium", mace},
                            {"DCGAN's discriminator", dcgan},
                            {"GhostNet 1.0", ghostnet},
                            {"BERT base", bert},
                            {"XGLM 564M", xglm}};
const char *const parameter_list_names[PARAMETER_LISTS] = {"nequix",   "mace", "dcgan",
                                                           "ghostnet", "bert", "xglm"};

parameter_list parameter_list_make(int which) {
  parameter_list l = {.name = parameter_list_names[which], .what = lists[which].what};
  lists[which].make(&l);
  return l;
}

void parameter_list_free(parameter_list *l) {
  free(l->shape);
  *l = (parameter_list){.name = NULL};
}
