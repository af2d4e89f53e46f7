/* tests/intel/choose.c - which function runs an instruction, by its name and types. */
#include "tests/intel/registers.h"

bool intel_is_float(const intel_operand *o) { return o->type >= HF; }

static const intel_op *find(const char *name, bool floats) {
  static const intel_op *const tables[] = {intel_integer_ops, intel_float_ops, intel_compare_ops};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const intel_op *op = tables[t]; op->name; op++)
      if (!strcmp(op->name, name) && (floats ? op->floats || op->doubles : op->words || op->longs))
        return op;
  return NULL;
}

/* sel with a condition is a minimum or maximum; mul of integers into acc0 keeps the whole product.
 */
static const char *full_name(const intel_ins *i, bool floats) {
  if (!strcmp(i->name, "sel") && i->condition) return "sel.extreme";
  if (!strcmp(i->name, "mul") && !floats && i->d.acc == 1) return "mul.acc0";
  return i->name;
}

/* Conditions belong to cmp, to minima and maxima, to logic, and to arithmetic of f and df, whose
   result they compare with 0. */
static bool condition_known(const intel_ins *i, const intel_op *op) {
  bool cmp = !strcmp(op->name, "cmp"), extreme = !strcmp(op->name, "sel.extreme"),
       selects = !strcmp(op->name, "sel");
  if (cmp) return i->condition && i->condition != EARLY_OUT && i->flag;
  if (extreme) return (i->condition == GE || i->condition == LT) && !i->predicate;
  if (selects) return i->predicate;
  if (!i->condition) return true;
  if (op->logic) return i->flag && (i->condition == EQ || i->condition == NE);
  return i->flag && i->condition != EARLY_OUT && (op->floats || op->doubles) &&
         (i->d.type == F || i->d.type == DF);
}

static bool integers(intel_ins *i, const intel_op *op) {
  int most = i->d.where == NOTHING ? 4 : intel_type_bytes[i->d.type];
  bool uq = false, q = false, modified_unsigned = false;
  for (int s = 0; s < i->n; s++) {
    const intel_operand *o = &i->s[s];
    if (intel_type_bytes[o->type] > most) most = intel_type_bytes[o->type];
    uq |= o->type == UQ;
    q |= o->type == Q && o->where != NUMBER;
    modified_unsigned |= o->negative && !op->logic && o->where == REGISTER &&
                         (o->type == UB || o->type == UW || o->type == UD);
  }
  bool adds = !strncmp(op->name, "add", 3) || !strcmp(op->name, "mad");
  if ((uq && q && !strcmp(op->name, "cmp")) || (uq && !strcmp(op->name, "sel.extreme")))
    return false;
  if (modified_unsigned && !adds) return false;
  if (i->d.where != NOTHING && intel_is_float(&i->d)) return false;
  if (!strcmp(op->name, "asr") && !(i->s[0].type & 1)) return false;
  if (!strcmp(op->name, "addc") &&
      (i->d.type != UD || i->s[0].type != UD || i->s[1].type != UD || i->d.acc))
    return false;
  if ((!strcmp(op->name, "macl") || !strcmp(op->name, "mach") || !strcmp(op->name, "lzd")) &&
      most > 4)
    return false;
  i->run = most <= 4 && op->words ? op->words : op->longs;
  return i->run;
}

static bool floats_only(intel_ins *i, const intel_op *op) {
  bool doubles = false, others = false;
  for (int s = 0; s < i->n; s++) {
    if (!intel_is_float(&i->s[s])) return false;
    doubles |= i->s[s].type == DF;
    others |= i->s[s].type != DF;
  }
  if (doubles && others) return false;
  bool compares = !strcmp(op->name, "cmp");
  if (i->d.where != NOTHING && !intel_is_float(&i->d) && !compares) return false;
  if (!doubles && i->d.type == DF && i->d.where != NOTHING) return false;
  i->run = doubles ? op->doubles : op->floats;
  return i->run;
}

/* Flags and the control register are operands of logic and of mov only, alone. */
static bool places_known(const intel_ins *i, bool logic) {
  for (int s = 0; s < i->n; s++)
    if ((i->s[s].where == FLAG || i->s[s].where == CONTROL) && !(logic && i->lanes == 1))
      return false;
  return (i->d.where != FLAG && i->d.where != CONTROL) || i->lanes == 1;
}

/* Where floats or 64 bits take part, every channel stays at its place: a source that is no scalar
   begins at the byte of its register at which the result does, and goes on in the same steps. Only
   conversions between hf and f may be packed on one side. */
static bool channels_stay(const intel_ins *i) {
  bool matters = i->d.where == REGISTER && i->d.type >= UQ;
  for (int s = 0; s < i->n; s++) matters |= i->s[s].where == REGISTER && i->s[s].type >= UQ;
  if (!matters || i->lanes == 1 || i->d.where != REGISTER) return true;
  if (!strcmp(i->name, "mov") && (i->d.type == HF) != (i->s[0].type == HF)) return true;
  for (int s = 0; s < i->n; s++) {
    const intel_operand *o = &i->s[s];
    if (o->where != REGISTER || o->step == 0) continue;
    if (o->step != i->d.step || o->at % INTEL_REGISTER != i->d.at % INTEL_REGISTER) return false;
  }
  return true;
}

bool intel_choose(intel_ins *i) {
  bool floats = false;
  for (int s = 0; s < i->n; s++) floats |= intel_is_float(&i->s[s]);
  if (!strcmp(i->name, "sel")) i->flag = 0; /* it is printed, but not written */
  i->breaks_product = i->d.acc == 1 || i->d.acc == 2;
  for (int s = -1; s < i->n; s++)
    if ((s < 0 ? i->d : i->s[s]).extra && strcmp(i->name, "madm") != 0 &&
        strncmp(i->name, "math.", 5) != 0)
      return false;
  if (!channels_stay(i)) return false;
  if (!strcmp(i->name, "madm") || !strcmp(i->name, "math.invm") || !strcmp(i->name, "math.rsqtm"))
    return intel_choose_macro(i);
  if (!strcmp(i->name, "mov")) return i->n == 1 && places_known(i, true) && intel_choose_move(i);
  const intel_op *op = find(full_name(i, floats), floats);
  if (!op || op->sources != i->n || !condition_known(i, op) || !places_known(i, op->logic))
    return false;
  if (i->d.where == NOTHING && !i->flag) return false;
  if (!strcmp(op->name, "mul.acc0")) i->breaks_product = 0;
  return floats ? floats_only(i, op) : integers(i, op);
}
