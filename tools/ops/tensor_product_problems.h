/* tools/ops/tensor_product_problems.h - the products of published benchmarks. */
#ifndef CLB_TOOLS_OPS_TENSOR_PRODUCT_PROBLEMS_H
#define CLB_TOOLS_OPS_TENSOR_PRODUCT_PROBLEMS_H

/* m channels of l = 0 ... L, both parities; harmonics up to L. */
#define BOTH1(m) m "x0o+" m "x0e+" m "x1o+" m "x1e"
#define BOTH2(m) BOTH1(m) "+" m "x2o+" m "x2e"
#define BOTH3(m) BOTH2(m) "+" m "x3o+" m "x3e"
#define BOTH4(m) BOTH3(m) "+" m "x4o+" m "x4e"
#define BOTH5(m) BOTH4(m) "+" m "x5o+" m "x5e"
#define SH1 "0e+1o"
#define SH2 SH1 "+2e"
#define SH3 SH2 "+3o"
#define SH4 SH3 "+4e"
#define SH5 SH4 "+5o"
#define NEQUIX "128x0e+64x1o+32x2e+32x3o"
#define EVEN3 "0e+1e+2e+3e"

#define TETRIS "64x0e+24x1e+24x1o+16x2e+16x2o"
#define DIFFDOCK "10x1o+10x1e+48x0e+48x0o"

/* Which constructor of clebsch.h finds the paths; OTHER_PRODUCT: none. */
typedef enum {
  CHANNEL_WISE,
  FULLY_CONNECTED,
  FULL_PRODUCT,
  ELEMENTWISE,
  OTHER_PRODUCT
} product_kind;

static const struct {
  const char *name, *x, *y, *filter; /* FULLY_CONNECTED: the irreps of the output */
  product_kind kind;
  int shared;
} standard[] = {
    {"mace-large", "128x0e+128x1o+128x2e", SH3, SH3, CHANNEL_WISE, 0},
    {"mace-medium", "128x0e+128x1o", SH3, SH2, CHANNEL_WISE, 0},
    {"nequip-lips", BOTH2("32"), SH2, BOTH2("1"), CHANNEL_WISE, 0},
    {"nequip-aspirin", BOTH1("64"), SH1, BOTH1("1"), CHANNEL_WISE, 0},
    {"nequip-toluene", BOTH2("64"), SH2, BOTH2("1"), CHANNEL_WISE, 0},
    {"nequip-benzene", BOTH3("64"), SH3, BOTH3("1"), CHANNEL_WISE, 0},
    {"nequip-water", BOTH1("32"), SH1, BOTH1("1"), CHANNEL_WISE, 0},
    {"nequix-first", "89x0e", SH3, SH3, CHANNEL_WISE, 0},
    {"nequix-main", NEQUIX, SH3, SH3, CHANNEL_WISE, 0},
    {"nequix-last", NEQUIX, SH3, "0e", CHANNEL_WISE, 0},
    {"sevennet-first", "128x0e", EVEN3, EVEN3, CHANNEL_WISE, 0},
    {"sevennet-main", "128x0e+64x1e+32x2e+32x3e", EVEN3, EVEN3, CHANNEL_WISE, 0},
    {"flashtp-l1", BOTH1("32"), SH1, BOTH1("1"), CHANNEL_WISE, 0},
    {"flashtp-l2", BOTH2("32"), SH2, BOTH2("1"), CHANNEL_WISE, 0},
    {"flashtp-l3", BOTH3("32"), SH3, BOTH3("1"), CHANNEL_WISE, 0},
    {"flashtp-l4", BOTH4("32"), SH4, BOTH4("1"), CHANNEL_WISE, 0},
    {"flashtp-l5", BOTH5("32"), SH5, BOTH5("1"), CHANNEL_WISE, 0},
    {"single-1-1-1", "128x1e", "1e", "1e", CHANNEL_WISE, 0},
    {"single-2-1-2", "128x2e", "1e", "2e", CHANNEL_WISE, 0},
    {"single-3-3-3", "128x3e", "3e", "3e", CHANNEL_WISE, 0},
    {"single-5-5-3", "128x5e", "5e", "3e", CHANNEL_WISE, 0},
    {"single-5-3-5", "128x5e", "3e", "5e", CHANNEL_WISE, 0},
    {"single-6-3-6", "128x6e", "3e", "6e", CHANNEL_WISE, 0},
    {"single-7-4-7", "128x7e", "4e", "7e", CHANNEL_WISE, 0},
    {"single-7-7-7", "128x7e", "7e", "7e", CHANNEL_WISE, 0},
    {"tetris-1", "0e+1o+2e+3o", SH3, TETRIS, FULLY_CONNECTED, 1},
    {"tetris-2", TETRIS, SH2, "0o+6x0e", FULLY_CONNECTED, 1},
    {"diffdock-1", DIFFDOCK, SH1, DIFFDOCK, FULLY_CONNECTED, 0},
    {"diffdock-2", DIFFDOCK, SH2, DIFFDOCK, FULLY_CONNECTED, 0},
    {"e3tools-conv", "64x0e+16x1o", SH1, "80x0e+16x1o", FULLY_CONNECTED, 0},
    {"e3tools-transformer", "64x0e+16x1o", SH1, "64x0e+16x1o", FULLY_CONNECTED, 1},
};
enum { STANDARD = sizeof standard / sizeof *standard };

#endif
