/* pair_clebsch.h - LAMMPS' pair style `clebsch`: docs/lammps.md. */
#ifndef LMP_PAIR_CLEBSCH_H
#define LMP_PAIR_CLEBSCH_H

#include "pair.h"

#include "exclusions.h"
#include "ghost_rows.h"

#include <clebsch/model.h>
#include <string>
#include <vector>

namespace LAMMPS_NS {

class PairClebsch : public Pair {
 public:
  explicit PairClebsch(class LAMMPS *);
  ~PairClebsch() override;

  void settings(int, char **) override;
  void coeff(int, char **) override;
  void init_style() override;
  double init_one(int, int) override;
  void compute(int, int) override;
  double memory_usage() override;
  void finish() override;

  int pack_forward_comm(int, int *, double *, int, int *) override;
  void unpack_forward_comm(int, int, double *) override;

 private:
  std::vector<std::string> devices; /* of the processes of a host, in turn; empty: chosen */
  clb_model_options options;
  std::string d3; /* the functional of options.d3 */
  double cell[9]; /* with d3 */
  int charge, spin; /* of all atoms */
  bool guarded = true;    /* a force beyond its bound ends the run */
  bool lists = false;     /* pairs are always LAMMPS' own */
  enum { AUTO, YES, NO } p2p = AUTO; /* rows of ghosts from device to device */
  clb_context *ctx = nullptr;
  clb_model *model = nullptr;
  clb_model_info info;
  std::vector<int> species_of_type; /* [1 + types]; -1: NULL */
  Exclusions exclusions;
  bool warned = false; /* of pairs that are excluded */

  /* As long as the neighbour list. */
  std::vector<GhostRows::Home> homes; /* of all atoms */
  GhostRows ghosts;
  std::vector<int> types;
  std::vector<int32_t> species, senders, receivers; /* species -1: not there for the model */
  bool searched = false;                            /* without senders and receivers */
  bigint builds = -1;                               /* LAMMPS' number of the list */
  bool listed = false;
  std::vector<double> forces, e_atom, v_atom;

  /* Of a run without its setup: seconds of each part of all computations, and their number. */
  enum { ALL, SEARCH, EXCHANGE, COPIES, MODEL, PARTS };
  double spent[PARTS] = {0};
  bigint computed = 0;

  void fail(const std::string &) const; /* on this process alone: all end */
  void check(clb_status) const;
  void open(const char *path);
  std::string choose_device() const;
  std::string devices_of_all(const std::string &own) const;
  void list_species();
  bool needs_list() const;
  void list_pairs(std::vector<char> &wanted);
  void list_atoms();
  void check_atoms() const;
  void check_dispersion() const;
  void take_cell(clb_model_edges &e);
  double add_results(double energy, const double *virial);
  void spend(double start, double moving, const double *seconds);
  bool find_one_place(int (&pair)[2]) const;
  std::string culprit() const;
  const char *trying_fix() const;
  void guard() const;
};

}    // namespace LAMMPS_NS
#endif
