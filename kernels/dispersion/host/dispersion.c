/* kernels/dispersion/host/dispersion.c - the dispersion energy of atoms: memory and launches. */
#include "kernels/dispersion/host/dispersion.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/dispersion/dispersion_steps.h"
#include "src/base/reserve.h"

enum {
  ELEMENT_OF, /* of each species */
  RADII,
  ROOTS,
  NUMBERS,
  C6,
  VDW,
  TABLES, /* those before are of elements, those from here on of atoms, by their places */
  ELEMENTS = TABLES,
  WEIGHTS,
  PRODUCTS,
  SLOPES,     /* of places */
  ALL_COUNTS, /* f64, of atoms, as the next */
  ALL_SLOPES,
  SUMS,
  PARTS, /* SUMS of units */
  MEMORIES
};
enum { UNITS = 512, FEW = 256 }; /* of sums: at most, and rows of one at least */

struct clb_dispersion {
  clb_context *ctx;
  clb_dtype type;
  clb_dispersion_damping damping;
  clb_kernel *kernel[CLB_DISPERSION_STEPS];
  clb_cell_list *sorted;
  clb_memory memory[MEMORIES];
  int64_t elements, references; /* of clb_dispersion_set */
  clb_dispersion_atoms atoms;   /* of the last call */
  double *gathered;             /* [n] and then those of rows */
  int64_t capacity;
};

static clb_status no_memory(clb_context *ctx) {
  return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "dispersion: no memory");
}

/* ---- create, destroy ---- */

static clb_status compile(clb_dispersion *d) {
  const clb_kernel_kind *kind = clb_kernel_kinds[CLB_DISPERSION];
  const clb_limits *limits = &d->ctx->device->limits;
  clb_problem *p = calloc(1, sizeof *p);
  clb_status s = p ? CLB_OK : no_memory(d->ctx);
  for (int step = 0; step < CLB_DISPERSION_STEPS && !s; step++) {
    clb_schedule schedule;
    ir_kernel k;
    if (step == CLB_DISPERSION_TRIPLES && d->damping.s9 == 0) continue;
    p->kind = CLB_DISPERSION;
    p->storage = p->arithmetic = (int32_t)d->type;
    p->dispersion.step = step;
    s = kind->check(p, limits, &d->ctx->error);
    if (s) break;
    kind->schedule(p, limits, &schedule);
    kind->lower(p, &schedule, &k);
    s = clb_kernel_get(d->ctx, &k, &d->kernel[step]);
  }
  free(p);
  return s;
}

clb_status clb_dispersion_create(clb_context *ctx, clb_dtype type,
                                 const clb_dispersion_damping *damping,
                                 clb_dispersion **dispersion) {
  clb_dispersion *d = *dispersion = calloc(1, sizeof *d);
  if (!d) return no_memory(ctx);
  d->ctx = clb_context_hold(ctx);
  d->type = type;
  d->damping = *damping;
  clb_status s = compile(d);
  if (!s) s = clb_cell_list_create(ctx, CLB_CELL_SORT, &d->sorted);
  if (s) clb_dispersion_destroy(dispersion);
  return s;
}

static void release(clb_dispersion *d, int i) {
  if (d->memory[i].handle) clb_memory_free(d->ctx, &d->memory[i]);
  d->memory[i] = (clb_memory){0};
}

void clb_dispersion_destroy(clb_dispersion **dispersion) {
  if (!dispersion || !*dispersion) return;
  clb_dispersion *d = *dispersion;
  clb_context *ctx = d->ctx;
  clb_cell_list_destroy(&d->sorted);
  for (int i = 0; i < MEMORIES; i++) release(d, i);
  free(d->gathered);
  free(d);
  *dispersion = NULL;
  clb_context_release(ctx);
}

uint64_t clb_dispersion_bytes(const clb_dispersion *d) {
  uint64_t n = clb_cell_list_bytes(d->sorted);
  for (int i = 0; i < MEMORIES; i++) n += d->memory[i].bytes;
  return n;
}

/* ---- memory ---- */

/* Room for so many bytes; contents are lost where there was less. Submitted work may still use
   memory that is replaced. */
static clb_status reserve(clb_dispersion *d, int i, int64_t bytes) {
  clb_device *device = d->ctx->device;
  if (d->memory[i].handle && d->memory[i].bytes >= (uint64_t)bytes) return CLB_OK;
  const clb_status s = device->backend->wait(device);
  release(d, i);
  return s ? s : clb_device_alloc(device, (uint64_t)(bytes + bytes / 8 + 1), &d->memory[i]);
}

/* Numbers as the kernels' type. */
static clb_status put(clb_dispersion *d, int i, const double *from, int64_t n) {
  clb_device *device = d->ctx->device;
  const int64_t bytes = n * clb_dtype_bytes((int32_t)d->type);
  clb_status s = reserve(d, i, bytes);
  float *singles = !s && d->type == CLB_F32 ? malloc((size_t)bytes + 1) : NULL;
  if (!s && d->type == CLB_F32 && !singles) s = no_memory(d->ctx);
  for (int64_t j = 0; singles && j < n; j++) singles[j] = (float)from[j];
  if (!s)
    s = device->backend->write(device, &d->memory[i], 0, singles ? (const void *)singles : from,
                               (uint64_t)bytes);
  free(singles);
  return s;
}

clb_status clb_dispersion_set(clb_dispersion *d, const clb_dispersion_elements *e) {
  clb_device *device = d->ctx->device;
  const int64_t systems = e->n * e->references, bytes = e->n_species * (int64_t)sizeof(int32_t);
  d->elements = e->n;
  d->references = e->references;
  clb_status s = clb_check_runs(d->ctx);
  if (!s) s = reserve(d, ELEMENT_OF, bytes);
  if (!s && bytes)
    s = device->backend->write(device, &d->memory[ELEMENT_OF], 0, e->element, (uint64_t)bytes);
  if (!s) s = put(d, RADII, e->radius, e->n);
  if (!s) s = put(d, ROOTS, e->root, e->n);
  if (!s) s = put(d, NUMBERS, e->number, systems);
  if (!s) s = put(d, VDW, e->vdw, e->n * e->n);
  return s ? s : put(d, C6, e->c6, systems * systems);
}

static clb_status grow(clb_dispersion *d) {
  const int64_t bytes = clb_dtype_bytes((int32_t)d->type), n = d->atoms.n,
                columns = d->elements * d->references;
  const int64_t rows[MEMORIES] = {[ELEMENTS] = 4,
                                  [WEIGHTS] = bytes * d->references,
                                  [PRODUCTS] = bytes * columns * 2,
                                  [SLOPES] = bytes,
                                  [ALL_COUNTS] = 8,
                                  [ALL_SLOPES] = 8,
                                  [SUMS] = 8 * CLB_DISPERSION_COLUMNS};
  clb_status s = reserve(d, PARTS, (int64_t)UNITS * 8 * CLB_DISPERSION_COLUMNS);
  for (int i = TABLES; i < PARTS && !s; i++) s = reserve(d, i, n * rows[i]);
  for (int i = TABLES; i < MEMORIES && !s; i++) clb_memory_discard(&d->memory[i]);
  return s;
}

/* ---- launches ---- */

static clb_status launch(clb_dispersion *d, clb_call *c, int step) {
  const clb_kernel *kernel = d->kernel[step];
  return clb_call_launch(c, kernel, clb_divide_up(c->arg[0].i64, kernel->ir.rows));
}

static clb_call call_rows(clb_dispersion *d, int64_t units, int64_t n) {
  clb_call c = clb_call_start(d->ctx);
  clb_call_i64(&c, units);
  clb_call_i64(&c, n);
  return c;
}

/* Of a step whose lanes or sub-groups are places. */
static clb_call call_places(clb_dispersion *d, int64_t per_unit) {
  clb_call c = call_rows(d, clb_divide_up(d->atoms.n, per_unit), d->atoms.n);
  clb_call_memory(&c, clb_cell_list_sorted(d->sorted).atoms);
  return c;
}

/* The first arguments of steps whose sub-groups have receivers, with neighbours within a radius. */
static clb_call call_receivers(clb_dispersion *d, double radius) {
  const clb_cell_sorted sorted = clb_cell_list_sorted(d->sorted);
  clb_call c = call_rows(d, d->atoms.n, d->atoms.n);
  clb_call_buffer(&c, d->atoms.positions);
  clb_call_memory(&c, sorted.grids);
  clb_call_memory(&c, sorted.systems);
  clb_call_memory(&c, sorted.atoms);
  clb_call_memory(&c, sorted.x);
  clb_call_memory(&c, sorted.starts);
  clb_call_memory(&c, &d->memory[ELEMENTS]);
  clb_call_real(&c, CLB_F64, radius / d->damping.radius);
  clb_call_real(&c, CLB_F64, radius * radius);
  clb_call_i64(&c, d->atoms.first);
  clb_call_i64(&c, d->atoms.rows);
  return c;
}

static void call_references(clb_dispersion *d, clb_call *c) {
  clb_call_i32(c, d->references);
  clb_call_i64(c, d->elements * d->references);
}

static void call_added(clb_call *c, clb_rows to) {
  clb_call_memory(c, to.buffer ? &to.buffer->memory : NULL);
  clb_call_i64(c, to.buffer ? to.offset : 0);
  clb_call_i32(c, to.buffer != NULL);
}

clb_status clb_dispersion_place(clb_dispersion *d, const clb_dispersion_atoms *a) {
  bool fits = true;
  d->atoms = *a;
  clb_status s = grow(d);
  if (s || !a->n) return s;
  s = clb_cell_list_sort(d->sorted, a->n_systems, a->grids, a->system, a->n, a->positions, &fits);
  if (s || !fits)
    return s ? s
             : clb_fail(&d->ctx->error, CLB_ERROR_UNSUPPORTED,
                        "dispersion: a cell has more bins of %g Angstrom than int32 counts",
                        d->damping.radius);
  clb_call c = call_places(d, d->kernel[CLB_DISPERSION_ELEMENTS]->ir.lanes);
  clb_call_buffer(&c, a->species);
  clb_call_memory(&c, &d->memory[ELEMENT_OF]);
  clb_call_memory(&c, &d->memory[ELEMENTS]);
  return launch(d, &c, CLB_DISPERSION_ELEMENTS);
}

/* Of numbers of atoms, which those of rows have: the others'. */
static clb_status gather(clb_dispersion *d, int i) {
  const clb_dispersion_atoms *a = &d->atoms;
  clb_device *device = d->ctx->device;
  const uint64_t bytes = sizeof *d->gathered;
  if (!a->gather) return CLB_OK;
  if (!clb_reserve(&d->gathered, &d->capacity, a->n + a->rows, sizeof *d->gathered))
    return no_memory(d->ctx);
  double *own = d->gathered + a->n;
  clb_status s = device->backend->wait(device);
  if (!s && a->rows)
    s = device->backend->read(device, &d->memory[i], (uint64_t)a->first * bytes, own,
                              (uint64_t)a->rows * bytes);
  if (!s) s = a->gather(a->user, 1, own, d->gathered);
  return s ? s
           : device->backend->write(device, &d->memory[i], 0, d->gathered, (uint64_t)a->n * bytes);
}

static clb_status count_neighbours(clb_dispersion *d) {
  clb_call c = call_receivers(d, d->damping.count_radius);
  clb_call_memory(&c, &d->memory[RADII]);
  clb_call_memory(&c, &d->memory[ALL_COUNTS]);
  const clb_status s = launch(d, &c, CLB_DISPERSION_COUNTS);
  return s ? s : gather(d, ALL_COUNTS);
}

static clb_status weigh(clb_dispersion *d) {
  clb_call c = call_places(d, 1);
  clb_call_memory(&c, &d->memory[ELEMENTS]);
  clb_call_memory(&c, &d->memory[ALL_COUNTS]);
  call_references(d, &c);
  clb_call_memory(&c, &d->memory[NUMBERS]);
  clb_call_memory(&c, &d->memory[C6]);
  clb_call_memory(&c, &d->memory[WEIGHTS]);
  clb_call_memory(&c, &d->memory[PRODUCTS]);
  return launch(d, &c, CLB_DISPERSION_WEIGHTS);
}

static clb_status add_pairs(clb_dispersion *d, const clb_dispersion_results *r) {
  const double damping[] = {d->damping.s6, d->damping.s8, d->damping.a1, d->damping.a2};
  clb_call c = call_receivers(d, d->damping.radius);
  clb_call_memory(&c, &d->memory[ROOTS]);
  call_references(d, &c);
  clb_call_memory(&c, &d->memory[WEIGHTS]);
  clb_call_memory(&c, &d->memory[PRODUCTS]);
  for (int i = 0; i < 4; i++) clb_call_real(&c, (int32_t)d->type, damping[i]);
  clb_call_memory(&c, &d->memory[ALL_SLOPES]);
  clb_call_memory(&c, &d->memory[SUMS]);
  call_added(&c, r->energies);
  call_added(&c, r->forces);
  call_added(&c, r->virials);
  return launch(d, &c, CLB_DISPERSION_PAIRS);
}

static clb_status add_triples(clb_dispersion *d, const clb_dispersion_results *r) {
  if (d->damping.s9 == 0) return CLB_OK;
  clb_call c = call_receivers(d, d->damping.count_radius);
  call_references(d, &c);
  clb_call_memory(&c, &d->memory[WEIGHTS]);
  clb_call_memory(&c, &d->memory[PRODUCTS]);
  clb_call_i64(&c, d->elements);
  clb_call_memory(&c, &d->memory[VDW]);
  clb_call_real(&c, (int32_t)d->type, d->damping.s9);
  clb_call_memory(&c, &d->memory[ALL_SLOPES]);
  clb_call_memory(&c, &d->memory[SUMS]);
  call_added(&c, r->energies);
  call_added(&c, r->forces);
  call_added(&c, r->virials);
  return launch(d, &c, CLB_DISPERSION_TRIPLES);
}

static clb_status place_slopes(clb_dispersion *d) {
  const clb_status s = gather(d, ALL_SLOPES);
  clb_call c = call_places(d, d->kernel[CLB_DISPERSION_SLOPES]->ir.lanes);
  clb_call_memory(&c, &d->memory[ALL_SLOPES]);
  clb_call_memory(&c, &d->memory[SLOPES]);
  return s ? s : launch(d, &c, CLB_DISPERSION_SLOPES);
}

static clb_status add_chain(clb_dispersion *d, const clb_dispersion_results *r) {
  const clb_status s = place_slopes(d);
  if (s) return s;
  clb_call c = call_receivers(d, d->damping.count_radius);
  clb_call_memory(&c, &d->memory[RADII]);
  clb_call_memory(&c, &d->memory[SLOPES]);
  clb_call_memory(&c, &d->memory[SUMS]);
  call_added(&c, r->forces);
  call_added(&c, r->virials);
  return launch(d, &c, CLB_DISPERSION_CHAIN);
}

/* Sums rows in blocks; of one block the sum is added to the results. */
static clb_status sum_rows(clb_dispersion *d, int64_t n, int64_t block, int from, int to,
                           const clb_dispersion_results *r) {
  static const clb_dispersion_results none;
  clb_call c = call_rows(d, clb_divide_up(n, block), n);
  clb_call_i64(&c, block);
  clb_call_memory(&c, &d->memory[from]);
  clb_call_memory(&c, &d->memory[to]);
  if (block < n) r = &none;
  call_added(&c, r->energy);
  call_added(&c, r->virial);
  return launch(d, &c, CLB_DISPERSION_SUMS);
}

static clb_status add_sums(clb_dispersion *d, const clb_dispersion_results *r) {
  const int64_t n = d->atoms.rows;
  if (!n || (!r->energy.buffer && !r->virial.buffer)) return CLB_OK;
  const int64_t even = clb_divide_up(n, UNITS), block = even > FEW ? even : FEW,
                units = clb_divide_up(n, block);
  const clb_status s = sum_rows(d, n, block, SUMS, PARTS, r);
  return s || units == 1 ? s : sum_rows(d, units, units, PARTS, SUMS, r);
}

clb_status clb_dispersion_add(clb_dispersion *d, const clb_dispersion_results *r) {
  if (!d->atoms.n) return CLB_OK;
  clb_status s = count_neighbours(d);
  if (!s) s = weigh(d);
  if (!s) s = add_pairs(d, r);
  if (!s) s = add_triples(d, r);
  if (!s && (r->forces.buffer || r->virial.buffer || r->virials.buffer)) s = add_chain(d, r);
  return s ? s : add_sums(d, r);
}
