/* model.h - whole networks: energies, forces and stress of atoms, for simulation codes.  Units: eV
   and Angstrom.

   All inputs and outputs are double, whatever the internal precision. A model belongs to its
   context and is used by one thread at a time. Its memory grows with some headroom: once it has
   seen the largest numbers of atoms and edges, nothing more is allocated. Functions return a
   clb_status; clb_error of the model's context gives the message. Indices and species count from
   0. */
#ifndef CLEBSCH_MODEL_H
#define CLEBSCH_MODEL_H

#include <clebsch/clebsch.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clb_model clb_model;

enum { CLB_NO_KNOTS = -1, CLB_AUTO_SKIN = -1 };

/* All zeros means defaults. */
typedef struct {
  clb_dtype dtype; /* of features, weights and arithmetic: CLB_F32 or CLB_F64. Energies, forces
                          and the virial are summed in f64 where the device has it */
  int knots;       /* Radial networks are replaced by cubic splines through their values at so
                      many distances from r_max / 12 to r_max, closer where distances are small
                      (clb_convolution_desc), computed when the model is opened: faster, and
                      nothing is stored per edge. Atoms that are closer than r_max / 12 (0.5
                      Angstrom in Nequix) have the weights of that distance: energies stay finite
                      and continuous, and forces are the derivatives of that energy. Where the
                      radial network depends on the species of both atoms (MACE with Agnesi's
                      distances), each pair of species has splines of its own, computed when the
                      two first occur together, and their values are stored per edge.
                      0: so many that forces are within 1e-5 (eV / Angstrom) of the networks'
                      (clb_model_info.table_force_error); 4 or more: that many; CLB_NO_KNOTS:
                      the networks themselves are computed at every edge, which takes `weights`
                      numbers per edge (clb_model_info) */
  double skin; /* clb_model_compute only: the neighbour list includes pairs within r_max + skin and
                  is rebuilt when an atom has moved by skin / 2. CLB_AUTO_SKIN: 0 where edges of a
                  skin take more time than a search in every step: on CPUs, and on GPUs for 800
                  atoms and more, in a periodic cell also for fewer that have 393,216 `weights`
                  (clb_model_info) together; else 0.25 in a periodic cell, or 0.5 */
  uint64_t workspace_bytes; /* limit of the workspace for gradients of convolutions, raised to the
                               minimum that they need; 0: 256 MiB, or 1/16 of a GPU's memory where
                               that is more, or less where so much cannot be had */
  int atomics; /* 1: convolutions add up their gradients by features with atomics (as those of
                  clb_convolution_desc): faster, but the last digits of forces differ from call to
                  call. 0: equal calls have equal results, to the bit */
  int64_t block_atoms; /* a system is computed in blocks of at most so many atoms, which takes less
                  memory and more time: `block_bytes_per_atom` below; edges must come in the order
                  of their receivers. 0: only where the whole does not fit, in blocks as large as
                  memory allows */
  int trains; /* 1: clb_model_gradient can be called. Radial networks are trained, not splines: with
                 `knots` they and their slopes are computed at so many distances, and what edges
                 have is interpolated by cubics, with an error below single precision's where there
                 are 2048, which is meant by 0 of a model in f32; of one in f64 it means none.
                 Networks that depend on species are computed at every edge all the same. Works in
                 blocks of atoms, as large as some hundred MiB hold unless block_atoms says how
                 large, and takes more memory */
  /* Dispersion by D3 with rational damping ("D3(BJ)"), in all results of clb_model_compute,
     clb_model_compute_many and clb_dynamics: the name of the functional with which the model's
     labels were computed, such as "pbe", or "pbe-atm" with the energy of triples
     (docs/dispersion.md in the sources). NULL: none. Needs a
     device with f64; clb_model_compute_edges needs `cell`, and no exchange; not of a model that
     trains */
  const char *d3;
  double d3_cutoff;       /* Angstrom: of pairs; 0: 60 Bohr, 31.75 Angstrom */
  double d3_count_cutoff; /* of coordination numbers and triples; 0: 40 Bohr, 21.17 Angstrom, or
                             d3_cutoff where that is less */
} clb_model_options;

/* Reads a model that `clebsch convert` wrote (a safetensors file; docs/model-format.md in the
   sources), compiles its kernels and moves its weights to the device.  path: the file, or a name
   under which `clebsch fetch` keeps a model, such as "sevennet-0".  options: NULL means all
   zeros. CLB_ERROR_ARGUMENT: the file does not exist or is not such a model; CLB_ERROR_UNSUPPORTED:
   f64 on a device without it. The file is not needed afterwards. */
CLB_SIZED clb_status clb_model_open(clb_context *ctx, const char *path,
                                    const clb_model_options *options, clb_model **model);
CLB_API void clb_model_destroy(clb_model **model);

typedef struct {
  const char *architecture; /* "nequip", "nequix", "sevennet", "mace" */
  double r_max;             /* Angstrom */
  int n_layers, l_max, n_species;
  const char *const *symbols;              /* [n_species]: "H", "O", ... */
  const int *atomic_numbers;               /* [n_species] */
  int64_t parameters;                      /* numbers in the file's tensors */
  int64_t weights;                         /* of the radial network, per edge, all layers */
  uint64_t bytes_per_edge, bytes_per_atom; /* of device memory, without a convolution's workspace,
                  of a system that is computed as a whole */
  int exchanges;            /* of ghosts' rows in a forward pass, and as many in a backward pass */
  int64_t exchange_columns; /* of the widest of their rows */
  double table_error, table_slope_error; /* with knots: largest difference between a weight from
                         the splines and from the network, and between their derivatives (per
                         Angstrom), at the worst places of every interval, relative to the layer's
                         largest weight; 0 without knots. Of splines for pairs of species: of the
                         pairs that have occurred so far */
  int knots;                             /* of the splines; 0: there are none */
  double table_force_error; /* where the library chose the knots: how far forces are from the
                               networks', in eV / Angstrom (of forces above 1: relative), estimated
                               on a cluster of 64 atoms of the model's elements; else 0 */
  uint64_t block_bytes_per_edge, block_bytes_per_atom; /* of device memory, without workspaces and
                               the block itself, of a system that is computed in blocks */
  int charges[2], spins[2]; /* the lowest and the highest that the model knows; both 0: it does not
                               read them */
  int parity; /* 1: mirrored structures have the same energy; 0: its features have no parity, as
                 those of SevenNet-0, and mirrored structures may have another one */
} clb_model_info;
/* The strings and arrays are valid as long as the model. */
CLB_SIZED clb_status clb_model_describe(const clb_model *model, clb_model_info *info);
/* The species of an atomic number; -1 if the model does not have that element. */
CLB_API int clb_model_species(const clb_model *model, int atomic_number);

/* ---- atoms ---- */

typedef struct {
  int64_t n;
  const int32_t *species;  /* [n], each 0 ... n_species - 1 */
  const double *positions; /* [n][3]; atoms may lie outside the cell */
  const double *cell; /* [3][3], rows are lattice vectors; may be skewed, and smaller than r_max.
                         NULL if nothing is periodic */
  int periodic[3];  /* 1: periodic along that lattice vector; of the other rows of cell only stress
                       knows, as part of the volume */
  int charge, spin; /* of all atoms: the charge in e, and the multiplicity 2 S + 1 (0: 1), for
                       models that read them (clb_model_info); others ignore them */
} clb_model_atoms;

/* Results that are not wanted are NULL. */
typedef struct {
  double *energy; /* [1] */
  double *e_atom; /* [n] */
  double *forces; /* [n][3]: -dE/dpositions */
  double *stress; /* [3][3]: dE/dstrain / |det(cell)|, eV / Angstrom^3, symmetric: pressure is
                     -trace / 3. It is there for every cell with a volume, whatever is periodic: a
                     slab's third vector is then its thickness with the vacuum. NULL, if cell is
                     NULL or its rows lie in a plane: else the call is refused */
  double *v_atom; /* [n][3][3]: each atom's part of the virial dE/dstrain, symmetric, eV: of an edge
                     it is its receiver's, of dispersion half of each pair. stress is their sum over
                     the volume */
} clb_model_results;

/* Energy and its derivatives; finds the neighbours. Returns when the results are available. */
CLB_SIZED clb_status clb_model_compute(clb_model *model, const clb_model_atoms *atoms,
                                       const clb_model_results *results);

/* The same for n structures at once: atoms[n] and results[n], one for each. Small structures are
   computed together, as one graph without edges between them, which takes about as long as one
   structure of as many atoms. A failure names the structure; results are then undefined. The next
   clb_model_compute makes its neighbour list anew. */
CLB_SIZED clb_status clb_model_compute_many(clb_model *model, int64_t n,
                                            const clb_model_atoms *atoms,
                                            const clb_model_results *results);

/* Neighbour list of the last clb_model_compute: number of directed edges, including those in the
   skin, and how often the list was rebuilt since the model was opened. */
typedef struct {
  int64_t n_edges, rebuilds;
} clb_model_neighbours;
CLB_SIZED clb_status clb_model_last_neighbours(const clb_model *model,
                                               clb_model_neighbours *neighbours);

/* ---- edges: for codes with their own neighbour lists and ghost atoms ----

   A process has n_local atoms of its own, and ghosts: atoms of other processes (or periodic images
   of its own) within r_max of them, no farther, however many layers the model has. Between layers
   the rows of features of ghosts come from their owners, and backward gradients return to them.

   Rules for several processes. Each has a context and a model of its own, of equal options. Every
   process computes in every step, also one that has no atoms (n_local = 0 and no edges are fine),
   and wants the same kinds of results, or some would wait in an exchange that others never enter. A
   process whose call fails leaves the exchanges of that step: the others hear of it only from the
   host, which must end them (MPI_Abort) or let `move` send a word about it along with the rows. */

/* Called clb_model_info.exchanges times forward (backward = 0) and, if derivatives are wanted, as
   often backward (backward = 1), also where n_send and n_receive are 0, with rows of `columns`
   numbers of `type`, the model's dtype, one after the other:
     forward   from[n_send]: rows of atoms `send`; fill to[n_receive], the rows of ghosts `receive`;
     backward  from[n_receive]: gradients of ghosts `receive`; fill to[n_send], the gradients that
               the receivers of rows `send` had: they are added to these atoms'.
   Equal calls that fill equal rows give equal bits. It must neither call Clebsch with this context,
   but for clb_error and the like, nor throw: exceptions of C++ must wait until the call that
   computes has returned. Any status but CLB_OK ends the computation, which returns it. */
typedef clb_status (*clb_model_move)(void *user, int backward, int64_t columns, clb_dtype type,
                                     const void *from, void *to);

/* Of models with d3: rows of all processes' local atoms from those of this one, from[n_local] of
   `columns` numbers each; fills to[n_all], the same on all processes. Called by each of them once
   with positions, where the graph is not the same once before that, and once or, if derivatives are
   wanted, twice in between; also with n_local = 0. What holds for `move` holds for it. */
typedef clb_status (*clb_model_gather)(void *user, int64_t columns, const double *from, double *to);

/* A process of the same host, whose rows are read where they are: on its device. `rows` is its
   `out` (below), opened by clb_buffer_open_ipc. receive_at: forward, where in its list `send` the
   rows for this process begin; send_at: backward, where in its list `receive` the rows of this
   process begin. */
typedef struct {
  clb_buffer *rows;
  int64_t n_send, n_receive; /* rows for it, and rows from it */
  int64_t send_at, receive_at;
} clb_model_peer;

/* Lists of rows that travel. Only these do: they are gathered into contiguous rows, and taken from
   them, on the device. They belong to the graph: in calls with same_graph they are not read. */
typedef struct {
  int64_t n_send, n_receive;
  const int32_t *send;    /* [n_send]: 0 ... n_local - 1, the same one as often as needed */
  const int32_t *receive; /* [n_receive]: n_local ... n_total - 1, each ghost once */
  clb_model_move move;
  void *user;      /* its first argument */
  int device_rows; /* 0: from and to are in host memory; 1: they are device memory as
                      clb_buffer_native gives it, for example for MPI that accepts pointers of GPUs;
                      everything before is finished, and what `move` does must be when it returns */
  /* Peers, whose rows are the first of both lists, in this order: the library copies them from
     peer to peer, and `move` gets what is left, after them in the lists, in host memory; it is
     called also if nothing is. By then this process' rows are in `out`, and `move` must not return
     before each peer, too, has called its own: a word to and from each of them, and no other, is
     what it takes. Rows lie in the halves of `out` in turn, so that a peer has read those of the
     last exchange when it says its word in this one; all processes' models must have had equally
     many exchanges since they were opened, therefore. */
  int64_t n_peers; /* 0: no row travels like this */
  const clb_model_peer
      *peers;      /* [n_peers]: part of the graph, as the lists; buffers must live on */
  clb_buffer *out; /* of clb_buffer_create_ipc: at least 2 (n exchange_columns b + 256) bytes, where
                      n is the larger one of n_send and n_receive, and b the bytes of a number */
  /* Of models with d3, whose pairs reach farther than ghosts do. */
  clb_model_gather gather; /* NULL: such models are refused */
  int64_t n_all, first; /* local atoms of all processes, and those in the rows before this one's */
} clb_model_exchange;

typedef struct {
  int64_t n_local, n_total, n_edges; /* ghosts follow local atoms: n_local ... n_total - 1 */
  /* 1: the three counts, species, senders, receivers, images, counted, search and the lists of the
     exchange are the same as in the last call, and are not read; the model has computed nothing
     else since. Otherwise the call sorts the edges. */
  int same_graph;
  const int32_t *species;   /* [n_total], each 0 ... n_species - 1; with positions also -1: the atom
                               is not there for the model, whose energy of it and forces are 0 */
  clb_index_list senders;   /* int32[n_edges], in any order: 0 ... n_total - 1 */
  clb_index_list receivers; /* int32[n_edges]: 0 ... n_local - 1 */
  /* [n_edges][3]: position of the sender minus that of the receiver. Edges of length r_max or more
     contribute nothing. In host memory, or in a buffer (in the model's dtype, contiguous from
     its start); the other pointer is NULL. */
  const double *vectors;
  clb_buffer *vectors_buffer;
  /* Instead of vectors: positions of all atoms, [n_total][3], in host memory or in a buffer of
     doubles. The list may then include pairs beyond r_max (a skin), which cost little: it stays on
     the device, which finds in every call those nearer than r_max, and these are the edges. A
     device without f64, or atoms that it cannot handle (two nearer than 0.001 Angstrom, more than
     4096 neighbours), leave that to the host. */
  const double *positions;
  clb_buffer *positions_buffer;
  /* With positions: [n_total - n_local], the local atom of which a ghost is a periodic image: then
     it is no more than another place of that atom, which gets its forces, and needs no exchange.
     -1: an atom of another process. NULL: all are -1. */
  const int32_t *images;
  const unsigned char *counted;       /* [n_local]: 0: the atom's energy does not count, though it
                                         shapes that of others; NULL: all count */
  const clb_model_exchange *exchange; /* NULL: no ghosts, or images alone */
  /* With positions: 1: there is no list, and n_edges is 0: every call finds the edges, which are
     all pairs of a local atom, as receiver, and any other atom nearer than r_max. The device does
     so where it can, so that positions are all that goes down. A ghost nearer than r_max to a local
     atom must be an image, or be received in the exchange. */
  int search;
  /* With positions, of models with d3, whose pairs reach farther than ghosts do: the cell, as in
     clb_model_atoms, of which all ghosts are images. All local atoms are there, and count. Several
     processes have the same cell, and an exchange with `gather`. */
  const double *cell;
  int periodic[3];
  int charge, spin; /* as in clb_model_atoms, of all processes' atoms together */
} clb_model_edges;

/* Results that are not wanted are NULL. */
typedef struct {
  double *energy;               /* [1]: of local atoms */
  double *e_atom;               /* [n_local]; 0 where it does not count */
  double *d_vectors;            /* [n_edges][3]: dE/dvectors, in host memory */
  clb_buffer *d_vectors_buffer; /* the same in a buffer (of the model's dtype), instead */
  double *forces; /* [n_total][3]: -dE/dposition; those of ghosts belong to their owners, who add
                     them to their own. With vectors, of positions that have such vectors */
  clb_buffer *forces_buffer; /* the same in a buffer of doubles (floats where clb_device_info.f64 is
                                0), instead or also */
  double *v_atom; /* [n_local][3][3]: each atom's part of the virial, the sum over the edges that it
                     receives of vector (x) dE/dvector, not symmetrised. LAMMPS' stress of an atom,
                     times volume, is minus its symmetric part */
  double *virial; /* [3][3]: sum over edges of vector (x) dE/dvector, symmetrised; virial / volume
                     is the stress above */
  double *seconds; /* [4]: of all the call; of finding edges, until their number is known; of
                      exchanges, copies of their rows included; of copies of positions and results.
                      The rest is the network's */
} clb_model_edge_results;

/* dE/dposition of an atom is the sum of d_vectors over the edges it sends minus the sum over those
   it receives, those of its ghosts included. In a run over several processes, d_vectors is the
   derivative of the sum of all processes' energies. Returns when the results are available. */
CLB_SIZED clb_status clb_model_compute_edges(clb_model *model, const clb_model_edges *edges,
                                             const clb_model_edge_results *results);

/* ---- dynamics: atoms that move on the device ----

   Positions, velocities and forces are on the device in double precision, and the host reads what
   it asks for. A device without it (clb_device_info.f64) computes the forces alone: the rest is on
   the CPU then, and positions and forces travel. A step of velocity Verlet is a move with a kick of
   half a step and a drift, a computation, and a move with the other half of the kick. Equal calls
   have equal results, to the bit. */
typedef struct clb_dynamics clb_dynamics;

/* Atoms as clb_model_compute takes them, masses[n] in a unit in which accelerations are forces /
   masses, and velocities[n][3]. listed[n][3]: positions for which the neighbour list is made at
   first, as those of a run that goes on; NULL: the atoms'. Everything is copied. The model must
   outlive it, and compute nothing else meanwhile: after that clb_dynamics_run is refused, until
   clb_dynamics_compute. */
CLB_SIZED clb_status clb_dynamics_create(clb_model *model, const clb_model_atoms *atoms,
                                         const double *masses, const double *velocities,
                                         const double *listed, clb_dynamics **dynamics);
CLB_API void clb_dynamics_destroy(clb_dynamics **dynamics);

/* What happens to each atom, of mass m, position x, velocity v and force f, in this order. */
typedef struct {
  double kick;        /* v += kick f / m */
  double grow, reach; /* x = grow x + reach v, v /= grow; in a cell that stays: 1, and a time */
  double keep;        /* v = keep v; without friction: 1 */
  double width;       /* above 0: v += sqrt(width / m) times a normal deviate, */
  uint64_t seed;      /* which the device draws: it is a function of the seed, */
  int64_t step;       /* the step and the number of the atom, the same on all devices */
  double grow_again, reach_again; /* like grow and reach */
} clb_dynamics_move;
/* Submits a move; forces are those of the last computation. */
CLB_SIZED clb_status clb_dynamics_run(clb_dynamics *dynamics, const clb_dynamics_move *move);

/* Submits the forces at the positions as they are now, after it has found the neighbours, if an
   atom has moved too far for those it has. cell[3][3]: another one; NULL: as before. stress: 1: it
   is wanted, too. */
CLB_API clb_status clb_dynamics_compute(clb_dynamics *dynamics, const double *cell, int stress);

/* What is seen after the last move, and the results of the last computation. */
typedef struct {
  double energy, stress[9];   /* stress: as in clb_model_results, if it was wanted */
  double kinetic;             /* sum of m v^2 / 2 */
  double heat;                /* how much of it keep and noise have taken since the last view */
  double speed, force;        /* of the fastest atom, and of the one with the strongest force */
  int64_t fastest, strongest; /* their numbers; 0 without atoms */
} clb_dynamics_view;
/* Waits for it. CLB_ERROR_ARGUMENT: a number is not finite. */
CLB_SIZED clb_status clb_dynamics_see(clb_dynamics *dynamics, clb_dynamics_view *view);

/* Reads rows [n][3] that are not NULL; listed: positions at the last search for neighbours. */
CLB_API clb_status clb_dynamics_read(clb_dynamics *dynamics, double *positions, double *velocities,
                                     double *forces, double *listed);

/* ---- training ---- */

/* What is known of a structure. NULL, or NaN among the numbers: not known, and drops out of its
   term. */
typedef struct {
  const double *energy; /* [1]: eV */
  const double *forces; /* [n][3]: eV / Angstrom */
  const double *stress; /* [3][3]: eV / Angstrom^3, symmetric, as in clb_model_results */
  const double *weight; /* [1]: its factor in all terms; NULL: 1 */
} clb_labels;

typedef enum { CLB_LOSS_MSE, CLB_LOSS_MAE, CLB_LOSS_HUBER } clb_loss_function;

/* Of B structures g of N_g atoms, N in all, with weights w_g:
     energy   (1/B)  sum_g w_g f((E_g - E_g*) / N_g)
     forces   (1/3N) sum_i,x w_g f(F_ix - F_ix*), or `force_norm`: (1/N) sum_i w_g |F_i - F_i*|
     stress   (1/9B) sum_g,ab w_g f(k (s_ab - s_ab*))
   f(d): MSE d^2; MAE |d|; Huber d^2 / 2 up to |d| = delta, from there delta (|d| - delta / 2).
   Structures without a label count in B and N, too, and those without atoms in B. Where |d| or
   |F_i - F_i*| is 0 its derivative is 0. */
typedef struct {
  clb_loss_function function;
  double delta;                  /* of Huber: above 0 */
  double energy, forces, stress; /* factors of the terms in the loss */
  int force_norm;
  double stress_unit; /* k: 1602.1766208 for differences in kbar; 0: 1 */
} clb_loss;

/* Results that are not wanted are NULL; atoms of all structures follow each other. */
typedef struct {
  double *loss;     /* [1] */
  double *terms;    /* [3]: energy, forces, stress, before their factors */
  double *gradient; /* [parameters]: dloss / d(number of the file's tensors): clb_model_tensor */
  double *energies; /* [structures] */
  double *forces;   /* [atoms of all][3] */
  double *stresses; /* [structures][9]; 0 without a cell that has a volume */
  double *errors;   /* [3][3]: of energies per atom, components of forces and of stresses, of all
                       structures: how many labels there are, sums of |d| and of d^2 of these */
  clb_buffer *gradient_buffer; /* the same as `gradient`, of the model's dtype on its device, where
                                  it stays: the host waits for losses alone */
  int later; /* 1: all others are NULL but gradient_buffer, and the host waits for nothing, once it
                has seen each structure and their number: clb_model_losses */
} clb_gradient_results;

/* The loss of n structures, all of them in one batch, and its gradient by the model's parameters.
 */
CLB_SIZED clb_status clb_model_gradient(clb_model *model, int64_t n, const clb_model_atoms *atoms,
                                        const clb_labels *labels, const clb_loss *loss,
                                        const clb_gradient_results *results);

/* loss, terms and errors, as in clb_gradient_results, of the first n of the batches whose results
   were to come later, in their order: losses[n], terms[n][3], errors[n][3][3], each of them NULL if
   it is not wanted. They are not told again. Waits. */
CLB_API clb_status clb_model_losses(clb_model *model, int64_t n, double *losses, double *terms,
                                    double *errors);

/* Tensor `index` (0, 1, ...) of the file of a model that trains: its numbers are `count` of the
   parameters, from `first` on. CLB_ERROR_ARGUMENT, without a message: there are no more. */
typedef struct {
  const char *name; /* valid as long as the model */
  int rank;
  int64_t shape[8], first, count;
} clb_tensor_info;
CLB_SIZED clb_status clb_model_tensor(const clb_model *model, int64_t index, clb_tensor_info *info);
/* The parameters of a model that trains, [parameters]; and others, finite, for calls from now on:
   new frequencies of Bessel functions are compiled, all else is only copied. */
CLB_API clb_status clb_model_parameters(const clb_model *model, double *parameters);
CLB_API clb_status clb_model_set_parameters(clb_model *model, const double *parameters);
/* The same from a buffer of the model's dtype on its device, which is copied: the host reads only
   what few numbers it needs. That they are finite is not checked. */
CLB_API clb_status clb_model_take_parameters(clb_model *model, clb_buffer *parameters);
/* to[parameters] += gradient[parameters], of gradient_buffer of clb_gradient_results: of other
   batches, or of other devices (clb_buffer_open_peer). Both are of the model's context and dtype.
   Only submits, but for the first time. */
CLB_API clb_status clb_model_add_gradient(clb_model *model, clb_buffer *gradient, clb_buffer *to);
/* Tensor `index` has the same numbers in all buffers that clb_model_take_parameters takes from now
   on: of frozen tensors alone the host reads nothing but the first time. */
CLB_API clb_status clb_model_freeze(clb_model *model, int64_t index);

/* ---- the sizes of structs ---- */

/* What the functions with CLB_SIZED call, with the sizes that this header gives their structs. */
CLB_API clb_status clb_model_open_sized(clb_context *ctx, const char *path,
                                        const clb_model_options *options, clb_model **model,
                                        size_t options_size);
static inline clb_status clb_model_open(clb_context *ctx, const char *path,
                                        const clb_model_options *options, clb_model **model) {
  return clb_model_open_sized(ctx, path, options, model, sizeof *options);
}
CLB_API clb_status clb_model_describe_sized(const clb_model *model, clb_model_info *info,
                                            size_t info_size);
static inline clb_status clb_model_describe(const clb_model *model, clb_model_info *info) {
  return clb_model_describe_sized(model, info, sizeof *info);
}
CLB_API clb_status clb_model_compute_sized(clb_model *model, const clb_model_atoms *atoms,
                                           const clb_model_results *results, size_t atoms_size,
                                           size_t results_size);
static inline clb_status clb_model_compute(clb_model *model, const clb_model_atoms *atoms,
                                           const clb_model_results *results) {
  return clb_model_compute_sized(model, atoms, results, sizeof *atoms, sizeof *results);
}
CLB_API clb_status clb_model_compute_many_sized(clb_model *model, int64_t n,
                                                const clb_model_atoms *atoms,
                                                const clb_model_results *results, size_t atoms_size,
                                                size_t results_size);
static inline clb_status clb_model_compute_many(clb_model *model, int64_t n,
                                                const clb_model_atoms *atoms,
                                                const clb_model_results *results) {
  return clb_model_compute_many_sized(model, n, atoms, results, sizeof *atoms, sizeof *results);
}
CLB_API clb_status clb_model_last_neighbours_sized(const clb_model *model,
                                                   clb_model_neighbours *neighbours,
                                                   size_t neighbours_size);
static inline clb_status clb_model_last_neighbours(const clb_model *model,
                                                   clb_model_neighbours *neighbours) {
  return clb_model_last_neighbours_sized(model, neighbours, sizeof *neighbours);
}
CLB_API clb_status clb_model_compute_edges_sized(clb_model *model, const clb_model_edges *edges,
                                                 const clb_model_edge_results *results,
                                                 size_t edges_size, size_t exchange_size,
                                                 size_t results_size);
static inline clb_status clb_model_compute_edges(clb_model *model, const clb_model_edges *edges,
                                                 const clb_model_edge_results *results) {
  return clb_model_compute_edges_sized(model, edges, results, sizeof *edges,
                                       sizeof *edges->exchange, sizeof *results);
}

CLB_API clb_status clb_dynamics_create_sized(clb_model *model, const clb_model_atoms *atoms,
                                             const double *masses, const double *velocities,
                                             const double *listed, clb_dynamics **dynamics,
                                             size_t atoms_size);
static inline clb_status clb_dynamics_create(clb_model *model, const clb_model_atoms *atoms,
                                             const double *masses, const double *velocities,
                                             const double *listed, clb_dynamics **dynamics) {
  return clb_dynamics_create_sized(model, atoms, masses, velocities, listed, dynamics,
                                   sizeof *atoms);
}
CLB_API clb_status clb_dynamics_run_sized(clb_dynamics *dynamics, const clb_dynamics_move *move,
                                          size_t move_size);
static inline clb_status clb_dynamics_run(clb_dynamics *dynamics, const clb_dynamics_move *move) {
  return clb_dynamics_run_sized(dynamics, move, sizeof *move);
}
CLB_API clb_status clb_dynamics_see_sized(clb_dynamics *dynamics, clb_dynamics_view *view,
                                          size_t view_size);
static inline clb_status clb_dynamics_see(clb_dynamics *dynamics, clb_dynamics_view *view) {
  return clb_dynamics_see_sized(dynamics, view, sizeof *view);
}
CLB_API clb_status clb_model_gradient_sized(clb_model *model, int64_t n,
                                            const clb_model_atoms *atoms, const clb_labels *labels,
                                            const clb_loss *loss,
                                            const clb_gradient_results *results, size_t atoms_size,
                                            size_t labels_size, size_t loss_size,
                                            size_t results_size);
static inline clb_status clb_model_gradient(clb_model *model, int64_t n,
                                            const clb_model_atoms *atoms, const clb_labels *labels,
                                            const clb_loss *loss,
                                            const clb_gradient_results *results) {
  return clb_model_gradient_sized(model, n, atoms, labels, loss, results, sizeof *atoms,
                                  sizeof *labels, sizeof *loss, sizeof *results);
}
CLB_API clb_status clb_model_tensor_sized(const clb_model *model, int64_t index,
                                          clb_tensor_info *info, size_t info_size);
static inline clb_status clb_model_tensor(const clb_model *model, int64_t index,
                                          clb_tensor_info *info) {
  return clb_model_tensor_sized(model, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif
#endif
