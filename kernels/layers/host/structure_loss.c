/* kernels/layers/host/structure_loss.c - losses of structures: the call. */
#include "kernels/layers/host/structure_loss.h"

#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"

clb_status clb_structure_loss_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_STRUCTURE_LOSS, type, clb_sum_type(ctx)),
                          1, op);
}

static void call_rows(clb_call *c, const clb_loss_operands *o) {
  const clb_dtype type = (clb_dtype)c->op->problem.storage,
                  sum = (clb_dtype)c->op->problem.arithmetic;
  const int64_t n = o->n, atoms = o->n_atoms;
  const struct {
    const char *name;
    clb_rows rows;
    clb_dtype type;
    int64_t n, columns;
    clb_role role;
  } list[] = {{"e_atom", o->e_atom, sum, atoms, 1, CLB_IN},
              {"forces", o->forces, sum, atoms, 3, CLB_IN},
              {"v_atom", o->v_atom, sum, o->v_atom.buffer ? atoms : 0, 9, CLB_IN},
              {"known", o->known, sum, n, CLB_KNOWN_COLUMNS, CLB_IN},
              {"known_forces", o->known_forces, sum, atoms, 3, CLB_IN},
              {"made", o->made, sum, n, CLB_MADE_COLUMNS, CLB_OUT},
              {"by_energy", o->by_energy, type, atoms, 1, CLB_OUT},
              {"moves", o->moves, type, atoms, 3, CLB_OUT},
              {"strains", o->strains, type, n, 9, CLB_OUT}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    c->n = list[i].n;
    clb_call_rows(c, list[i].name, list[i].type, list[i].columns, list[i].rows, list[i].role);
  }
}

clb_status clb_structure_loss_run(clb_op *op, const clb_loss_form *form,
                                  const clb_loss_operands *o) {
  if (!op || !form || !o) return CLB_ERROR_ARGUMENT;
  clb_call c = clb_call_begin(op, CLB_STRUCTURE_LOSS, o->n, o->n);
  if (c.status) return c.status;
  c.n = o->n ? o->n + 2 : 0;
  clb_call_numbers(&c, "first", o->first);
  call_rows(&c, o);
  clb_call_i32(&c, o->v_atom.buffer != NULL);
  clb_call_i32(&c, form->norm);
  const double real[] = {form->least, form->most, form->scale, form->half, form->unit};
  for (int i = 0; i < 5; i++) clb_call_real(&c, op->problem.arithmetic, real[i]);
  for (int i = 0; i < CLB_LOSS_TERMS; i++) clb_call_real(&c, op->problem.arithmetic, form->part[i]);
  for (int i = 0; i < CLB_LOSS_TERMS; i++)
    clb_call_real(&c, op->problem.arithmetic, form->factor[i]);
  return clb_call_run(&c, 0);
}
