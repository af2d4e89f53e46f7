/* tensor_product_problems.h - the channel-wise products that everybody publishes on. */
#ifndef TENSOR_PRODUCT_PROBLEMS_H
#define TENSOR_PRODUCT_PROBLEMS_H

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

static const struct {
  const char *name, *x, *y, *filter;
} standard[] = {
    {"mace-large", "128x0e+128x1o+128x2e", SH3, SH3},
    {"mace-medium", "128x0e+128x1o", SH3, SH2},
    {"nequip-lips", BOTH2("32"), SH2, BOTH2("1")},
    {"nequip-aspirin", BOTH1("64"), SH1, BOTH1("1")},
    {"nequip-toluene", BOTH2("64"), SH2, BOTH2("1")},
    {"nequip-benzene", BOTH3("64"), SH3, BOTH3("1")},
    {"nequip-water", BOTH1("32"), SH1, BOTH1("1")},
    {"nequix-first", "89x0e", SH3, SH3},
    {"nequix-main", NEQUIX, SH3, SH3},
    {"nequix-last", NEQUIX, SH3, "0e"},
    {"sevennet-first", "128x0e", EVEN3, EVEN3},
    {"sevennet-main", "128x0e+64x1e+32x2e+32x3e", EVEN3, EVEN3},
    {"flashtp-l1", BOTH1("32"), SH1, BOTH1("1")},
    {"flashtp-l2", BOTH2("32"), SH2, BOTH2("1")},
    {"flashtp-l3", BOTH3("32"), SH3, BOTH3("1")},
    {"flashtp-l4", BOTH4("32"), SH4, BOTH4("1")},
    {"flashtp-l5", BOTH5("32"), SH5, BOTH5("1")},
    {"single-1-1-1", "128x1e", "1e", "1e"},
    {"single-2-1-2", "128x2e", "1e", "2e"},
    {"single-3-3-3", "128x3e", "3e", "3e"},
    {"single-5-5-3", "128x5e", "5e", "3e"},
    {"single-5-3-5", "128x5e", "3e", "5e"},
    {"single-6-3-6", "128x6e", "3e", "6e"},
    {"single-7-4-7", "128x7e", "4e", "7e"},
    {"single-7-7-7", "128x7e", "7e", "7e"},
};
enum { STANDARD = sizeof standard / sizeof *standard };

#endif
