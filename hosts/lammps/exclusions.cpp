/* exclusions.cpp - atoms and pairs that LAMMPS leaves out of its neighbour lists: neigh_modify
   exclude and include, types that pair_style hybrid gives to other styles, special_bonds.

   An atom without pairs may be far from all others, and then it has the energy of a single atom; or
   all its pairs are excluded, as fix gcmc does with an atom that it tries to delete, and then it is
   not there. The list looks the same, so the rules decide. */
#include "exclusions.h"

#include "atom.h"
#include "group.h"
#include "neigh_list.h"
#include "neighbor.h"

#include <algorithm>
#include <tuple>

using namespace LAMMPS_NS;

enum { ALL = 0 }; /* LAMMPS' number of the group `all` */

bool Exclusions::Kind::operator<(const Kind &k) const
{
  return std::tie(type, mask, molecule) < std::tie(k.type, k.mask, k.molecule);
}

/* Bits of the groups that rules name; `all` is every atom, whatever its bits: fix gcmc takes them. */
int Exclusions::group_bits() const
{
  int bits = 0;
  for (int m = 0; m < neighbor->nex_group; m++)
    bits |= group->bitmask[neighbor->ex1_group[m]] | group->bitmask[neighbor->ex2_group[m]];
  for (int m = 0; m < neighbor->nex_mol; m++) bits |= group->bitmask[neighbor->ex_mol_group[m]];
  if (neighbor->includegroup) bits |= group->bitmask[neighbor->includegroup];
  return bits;
}

bool Exclusions::rules() const
{
  return neighbor->nex_type || neighbor->nex_group || neighbor->nex_mol || neighbor->includegroup;
}

bool Exclusions::any() const { return rules() || (list && list->ijskip); }

bool Exclusions::in(const Kind &k, int g) const { return g == ALL || k.mask & group->bitmask[g]; }

/* ---- pairs ---- */

bool Exclusions::excluded(const Kind &a, const Kind &b) const
{
  bool out = list && list->ijskip && (list->ijskip[a.type][b.type] || list->ijskip[b.type][a.type]);
  for (int m = 0; m < neighbor->nex_type; m++) {
    const int s = neighbor->ex1_type[m], t = neighbor->ex2_type[m];
    out |= (a.type == s && b.type == t) || (a.type == t && b.type == s);
  }
  for (int m = 0; m < neighbor->nex_group; m++) {
    const int g = neighbor->ex1_group[m], h = neighbor->ex2_group[m];
    out |= (in(a, g) && in(b, h)) || (in(a, h) && in(b, g));
  }
  return out;
}

/* Within a molecule, or between two. */
bool Exclusions::excluded_in_molecules(const Kind &a, const Kind &b, bool within) const
{
  bool out = false;
  for (int m = 0; m < neighbor->nex_mol; m++) {
    const int g = neighbor->ex_mol_group[m];
    out |= !!neighbor->ex_mol_intra[m] == within && in(a, g) && in(b, g);
  }
  return out;
}

/* ---- atoms ---- */

/* Whether rules exclude all pairs that an atom could have, whichever other atoms there are. */
bool Exclusions::never(const Kind &a, const std::vector<int> &species_of_type) const
{
  bool types = true;
  if (neighbor->includegroup && !in(a, neighbor->includegroup)) return true;
  for (int m = 0; m < neighbor->nex_group; m++) {
    const int g = neighbor->ex1_group[m], h = neighbor->ex2_group[m];
    if ((g == ALL && in(a, h)) || (h == ALL && in(a, g))) return true;
  }
  for (int t = 1; t <= atom->ntypes; t++)
    types &= species_of_type[t] < 0 || excluded(a, Kind{t, 0, 0, 0});
  return types;
}

/* The other atoms: with which pairs are not excluded, and with which they are. */
Exclusions::Partners Exclusions::partners(const Kind &a) const
{
  Partners p = {0, 0};
  for (const Kind &b : groups) {
    const auto found = std::lower_bound(kinds.begin(), kinds.end(), Kind{b.type, b.mask, a.molecule, 0});
    const bool own = a.type == b.type && a.mask == b.mask,
               some = found != kinds.end() && found->type == b.type && found->mask == b.mask &&
        found->molecule == a.molecule,
               out = excluded(a, b);
    const bigint same = (some ? found->n : 0) - own, others = b.n - own - same;
    (out || excluded_in_molecules(a, b, true) ? p.excluded : p.seen) += same;
    (out || excluded_in_molecules(a, b, false) ? p.excluded : p.seen) += others;
  }
  return p;
}

/* Sorts, and adds up the numbers of equal kinds. */
void Exclusions::merge(std::vector<Kind> &k)
{
  size_t n = 0;
  std::sort(k.begin(), k.end());
  for (size_t i = 0; i < k.size(); i++)
    if (n && !(k[n - 1] < k[i])) k[n - 1].n += k[i].n;
    else k[n++] = k[i];
  k.resize(n);
}

void Exclusions::take(const std::vector<Kind> &all)
{
  kinds = all;
  merge(kinds);
  groups = kinds;
  for (Kind &k : groups) k.molecule = 0;
  merge(groups);
}

/* All processes' kinds, from those of this one. */
void Exclusions::gather(std::vector<Kind> mine)
{
  int processes;
  merge(mine);
  MPI_Comm_size(world, &processes);
  std::vector<int> bytes(processes), first(processes, 0);
  const int own = static_cast<int>(mine.size() * sizeof(Kind));
  MPI_Allgather(&own, 1, MPI_INT, bytes.data(), 1, MPI_INT, world);
  for (int p = 1; p < processes; p++) first[p] = first[p - 1] + bytes[p - 1];
  std::vector<Kind> all((first.back() + bytes.back()) / sizeof(Kind));
  MPI_Allgatherv(mine.data(), own, MPI_BYTE, all.data(), bytes.data(), first.data(), MPI_BYTE, world);
  take(all);
}

bool Exclusions::leave_out(const NeighList *pairs, const std::vector<int> &species_of_type,
                           std::vector<int32_t> &species)
{
  list = pairs;
  if (!any()) return false;
  const int bits = group_bits(), n = atom->nlocal;
  const auto kind = [&](int i) {
    return Kind{atom->type[i], atom->mask[i] & bits, neighbor->nex_mol ? atom->molecule[i] : 0, 1};
  };
  std::vector<Kind> there;
  for (int i = 0; i < n; i++) {
    if (species[i] >= 0 && never(kind(i), species_of_type)) species[i] = -1;
    if (species[i] >= 0) there.push_back(kind(i));
  }
  gather(there);

  std::vector<Kind> lost, rest;
  for (const Kind &k : kinds) {
    const Partners p = partners(k);
    (p.excluded && !p.seen ? lost : rest).push_back(k);
  }
  for (int i = 0; i < n; i++)
    if (species[i] >= 0 && std::binary_search(lost.begin(), lost.end(), kind(i))) species[i] = -1;
  take(rest);
  return std::any_of(kinds.begin(), kinds.end(), [&](const Kind &k) { return partners(k).excluded; });
}

/* ---- bonds ---- */

bool Exclusions::hide(const std::vector<int32_t> &species, tagint (&pair)[2]) const
{
  for (int i = 0; i < atom->nlocal && atom->molecular == Atom::MOLECULAR; i++)
    for (int k = 0; k < 3 && species[i] >= 0; k++)
      for (int s = k ? atom->nspecial[i][k - 1] : 0; s < atom->nspecial[i][k]; s++) {
        const int j = neighbor->special_flag[k + 1] ? -1 : atom->map(atom->special[i][s]);
        if (j < 0 || species[j] < 0) continue;
        pair[0] = atom->tag[i], pair[1] = atom->special[i][s];
        return true;
      }
  return false;
}
