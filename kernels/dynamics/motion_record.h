/* kernels/dynamics/motion_record.h - atoms in motion: what a launch does to them, and what it sees.

   In this order, of each atom: v += kick f / m; x = grow x + reach v and v /= grow; v = keep v,
   and with noise + sqrt(width / m) times a normal deviate (noise.h; the counter is the atom's
   number and the step); then the second drift, like the first. The parameters are units of work
   (i64), number of atoms and of those of a unit (i64), x and v ([n][3]), forces (buffer, offset,
   stride), masses, the places for which neighbours were found ([n][3]), with noise the seed and the
   step (two i32 each, the lower one first), kick, grow, reach, keep, width, grow, reach (f64), what
   to do with those places (i32), whether heat is added to the record's (i32), out the record,
   numbers that are copied to its beginning: buffer, offset (i64), how many (i32), whether the first
   of them must be 0 or more for atoms to move (i32), and what it is at most. All numbers are f64.
 */
#ifndef CLB_KERNELS_DYNAMICS_MOTION_RECORD_H
#define CLB_KERNELS_DYNAMICS_MOTION_RECORD_H

#define CLB_LARGEST_DEVIATE 6.8 /* above sqrt(-2 log 2^-33) */

/* Passes. */
enum { CLB_MOTION_QUIET, CLB_MOTION_NOISY };

/* Places are not read; compared with x afterwards; become x before. */
enum { CLB_PLACES_IDLE, CLB_PLACES_COMPARED, CLB_PLACES_SET };

/* A record: numbers that were copied, then a row of each unit: sums of m v^2, and of how much of it
   friction and noise have taken; the largest v^2 and its atom, the same of f^2; the square of the
   longest way from the places. */
enum {
  CLB_RECORD_COPIED = 11,
  CLB_SEEN_MOTION = 0,
  CLB_SEEN_HEAT,
  CLB_SEEN_SPEED,
  CLB_SEEN_FASTEST,
  CLB_SEEN_FORCE,
  CLB_SEEN_STRONGEST,
  CLB_SEEN_WAY,
  CLB_SEEN
};

#endif
