/* src/base/signature.h - the operands of each pass of an op, derived from its inputs and its
   output.

   Each pass is the derivative of the one before it. Of  z = f(x, y):
     forward           x y -> z
     backward          x y, g -> g_x g_y: of s = g . z, the gradients by the inputs
     double backward   x y, g, a b -> d_x d_y d_g: of s = a . g_x + b . g_y
     triple backward   x y, g, a b, p q, s -> e_x e_y e_g e_a e_b: of p . d_x + q . d_y + s . d_g
   Calls, kernels, references and tests have them in this order. */
#ifndef CLB_SRC_BASE_SIGNATURE_H
#define CLB_SRC_BASE_SIGNATURE_H

typedef enum {
  CLB_ROLE_INPUT,     /* of the forward pass */
  CLB_ROLE_INCOMING,  /* a, b: the gradient of g_x, g_y; may be left out */
  CLB_ROLE_COTANGENT, /* g, p, q, s */
  CLB_ROLE_OUTPUT,    /* z */
  CLB_ROLE_GRADIENT   /* may be left out */
} clb_operand_role;
static inline int clb_role_is_written(clb_operand_role role) {
  return role == CLB_ROLE_OUTPUT || role == CLB_ROLE_GRADIENT;
}

enum { CLB_SIGNATURE_INPUTS = 3, CLB_SIGNATURE_OPERANDS = 18 };

/* `of`: the operand whose shape it has, CLB_OPERAND_X, _Y, _W or _Z. */
typedef struct {
  int n;
  struct {
    int of;
    const char *name, *incoming, *second;  /* x, a, p */
    const char *gradient[3], *by_incoming; /* g_x, d_x, e_x; e_a */
  } input[CLB_SIGNATURE_INPUTS];
  struct {
    int of;
    const char *name, *cotangent, *second; /* z, g, s */
    const char *gradient[2];               /* by g: d_g, e_g */
  } output;
} clb_signature;
/* clb_signature_NAME, for each row of signatures.def. */
#define SIGNATURE(name, n, in, out) extern const clb_signature clb_signature_##name;
#include "src/base/signatures.def"
#undef SIGNATURE

typedef struct {
  const char *name;
  int of;
  clb_operand_role role;
} clb_signature_operand;
/* Returns how many there are; pass as clb_pass. */
int clb_signature_operands(const clb_signature *s, int pass,
                           clb_signature_operand operand[CLB_SIGNATURE_OPERANDS]);

#endif
