/* kernels/convolution/host/frames.h - the frames of a convolution's edges
   (kernels/convolution/frame.h), from their vectors, and gradients of vectors from torques. */
#ifndef CLB_KERNELS_CONVOLUTION_HOST_FRAMES_H
#define CLB_KERNELS_CONVOLUTION_HOST_FRAMES_H

#include "src/runtime/context.h"

typedef struct clb_convolution_frames clb_convolution_frames;

/* For the convolution's passes that work in the frame (schedules say so); NULL if there are none.
   adds: gradients of vectors are added to. With the frames come harmonics of degrees below
   `degrees`, unless frames have fewer, and lengths, if they are asked for. */
clb_status clb_convolution_frames_create(const clb_op *convolution, bool adds, int degrees,
                                         bool lengths, clb_convolution_frames **frames);
void clb_convolution_frames_destroy(clb_convolution_frames **frames);

/* Whether this pass of a convolution works in the frame. */
bool clb_convolution_in_frame(const clb_op *convolution, clb_pass pass);

/* Elements of an edge's row, of arithmetic precision. */
int64_t clb_convolution_frames_columns(const clb_convolution_frames *f);
/* Whether harmonics come with them. */
bool clb_convolution_frames_harmonics(const clb_convolution_frames *f);
/* Makes the rows of n edges; NULL: what does not come with the frames. */
clb_status clb_convolution_frames_run(const clb_convolution_frames *f, int64_t n,
                                      const clb_rows *vectors, const clb_rows *out,
                                      const clb_rows *harmonics, const clb_rows *lengths);
/* Makes the rows of tangents of these vectors, of CLB_TANGENT_SIZE elements. */
clb_status clb_convolution_frames_tangents(const clb_convolution_frames *f, int64_t n,
                                           const clb_rows *vectors, const clb_rows *tangents,
                                           const clb_rows *out);
/* What roles left of edges: `columns` numbers of each edge, one edge's after the other's, the first
   role's from element `at` of memory on, and `pitch` elements further for each role after it. So
   what a role writes at one time is whole lines of memory: numbers of several convolutions side by
   side for each edge were written to memory piece by piece. */
typedef struct {
  const clb_memory *memory;
  int64_t at, pitch;
  int32_t roles, columns;
} clb_torques;
/* Gradients of the vectors of edges e0 ... e1 - 1, of which the first is that of the torques. */
clb_status clb_convolution_frames_torques(const clb_convolution_frames *f, int64_t e0, int64_t e1,
                                          const clb_rows *vectors, const clb_torques *torques,
                                          const clb_rows *gradient);

#endif
