/* tests/models/make_model.c - writes a small model of random numbers for H and O: make_model FILE
 */
#include "tests/models/model_made.h"

int main(int argc, char **argv) {
  if (argc != 2) return 1;
  made_write(&made_models[2], argv[1], NULL, NULL);
  return 0;
}
