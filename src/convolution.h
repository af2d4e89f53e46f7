/* convolution.h - what stands behind an op that is a graph convolution. */
#ifndef CLB_CONVOLUTION_PARTS_H
#define CLB_CONVOLUTION_PARTS_H

#include "context.h"

void clb_convolution_destroy(clb_convolution_parts **parts);

#endif
