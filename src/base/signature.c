/* src/base/signature.c - the operands of each pass of an op, derived from its inputs and its
 * output. */
#include "src/base/signature.h"

#include <clebsch/clebsch.h>

#define IN(of, x, a, p) {CLB_OPERAND_##of, #x, #a, #p, {"g_" #x, "d_" #x, "e_" #x}, "e_" #a},
#define OUT(of, z, g, s)                                                                           \
  {                                                                                                \
    CLB_OPERAND_##of, #z, #g, #s, { "d_" #g, "e_" #g }                                             \
  }
#define SIGNATURE(name, n, in, out) const clb_signature clb_signature_##name = {n, {in}, out};
#include "src/base/signatures.def"
#undef SIGNATURE

int clb_signature_operands(const clb_signature *s, int pass,
                           clb_signature_operand o[CLB_SIGNATURE_OPERANDS]) {
  int n = 0;
#define EACH(member, role)                                                                         \
  for (int i = 0; i < s->n; i++)                                                                   \
  o[n++] = (clb_signature_operand){s->input[i].member, s->input[i].of, role}
#define ONE(member, role)                                                                          \
  o[n++] = (clb_signature_operand) { s->output.member, s->output.of, role }
  EACH(name, CLB_ROLE_INPUT);
  if (!pass) ONE(name, CLB_ROLE_OUTPUT);
  else ONE(cotangent, CLB_ROLE_COTANGENT);
  if (pass >= 2) EACH(incoming, CLB_ROLE_INCOMING);
  if (pass >= 3) EACH(second, CLB_ROLE_COTANGENT);
  if (pass >= 3) ONE(second, CLB_ROLE_COTANGENT);
  if (pass) EACH(gradient[pass - 1], CLB_ROLE_GRADIENT);
  if (pass >= 2) ONE(gradient[pass - 2], CLB_ROLE_GRADIENT);
  if (pass >= 3) EACH(by_incoming, CLB_ROLE_GRADIENT);
#undef EACH
#undef ONE
  return n;
}
