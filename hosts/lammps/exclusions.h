/* exclusions.h - atoms and pairs that LAMMPS leaves out of its neighbour lists. */
#ifndef CLEBSCH_EXCLUSIONS_H
#define CLEBSCH_EXCLUSIONS_H

#include "lmptype.h"
#include "pointers.h"

#include <cstdint>
#include <vector>

namespace LAMMPS_NS {

class NeighList;

class Exclusions : protected Pointers {
 public:
  explicit Exclusions(LAMMPS *lmp) : Pointers(lmp) {}

  /* Whether any rule of neigh_modify leaves atoms or pairs out. */
  bool rules() const;
  /* Collective. The list may be nullptr, if it has all pairs. species: of local atoms; it becomes -1 where an atom is not there, as all its pairs
     are excluded. Returns whether any pairs of atoms that are there are excluded. */
  bool leave_out(const NeighList *, const std::vector<int> &species_of_type,
                 std::vector<int32_t> &species);
  /* Whether special_bonds hide a pair of atoms that are there; then their tags. species: of all. */
  bool hide(const std::vector<int32_t> &species, tagint (&pair)[2]) const;

 private:
  /* Atoms that rules cannot tell apart, and their number; mask: of groups that rules name. */
  struct Kind {
    int type, mask;
    tagint molecule;
    bigint n;
    bool operator<(const Kind &) const;
  };
  struct Partners {
    bigint seen, excluded;
  };
  const NeighList *list = nullptr;
  std::vector<Kind> kinds, groups; /* of all processes, sorted; groups: whichever the molecules */

  int group_bits() const;
  bool any() const;
  bool in(const Kind &, int group) const;
  bool excluded(const Kind &, const Kind &) const;
  bool excluded_in_molecules(const Kind &, const Kind &, bool within) const;
  bool never(const Kind &, const std::vector<int> &species_of_type) const;
  Partners partners(const Kind &) const;
  static void merge(std::vector<Kind> &);
  void take(const std::vector<Kind> &);
  void gather(std::vector<Kind> mine);
};

}    // namespace LAMMPS_NS

#endif
