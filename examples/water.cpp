// water.cpp - energy, forces and stress of a box of water; the model finds the neighbours:
// c++ water.cpp $(pkg-config --cflags --libs clebsch) && ./a.out MODEL [DEVICE]
#include <clebsch/model.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const char help[] =
    "Usage: water MODEL [DEVICE]\n"
    "MODEL knows H and O and was made by `clebsch convert`; Debian's package cp2k-data brings one to convert:\n"
    "  clebsch convert /usr/share/cp2k/NequIP/water.pth water.safetensors\n"
    "DEVICE is cuda, hip:1, level_zero, opencl:0:0, cpu, ...; without it, the best one here.\n";

// A context and the model on it, destroyed in the right order.
class Model {
 public:
  Model(const char *path, const char *device) {
    clb_context *c = nullptr;
    const clb_status s = clb_context_create(device, &c);
    context.reset(c);
    check(s);
    clb_model *m = nullptr;
    check(clb_model_open(c, path, nullptr, &m));
    model.reset(m);
    check(clb_model_describe(m, &info));
  }
  void compute(const clb_model_atoms &atoms, const clb_model_results &results) { check(clb_model_compute(model.get(), &atoms, &results)); }
  int species(int atomic_number) const {
    const int s = clb_model_species(model.get(), atomic_number);
    if (s < 0) throw std::runtime_error("the model does not know H and O");
    return s;
  }
  double cutoff() const { return info.r_max; }

 private:
  struct Destroy {
    void operator()(clb_context *c) const { clb_context_destroy(&c); }
    void operator()(clb_model *m) const { clb_model_destroy(&m); }
  };
  void check(clb_status s) const {
    if (s) throw std::runtime_error(std::string(clb_status_text(s)) + ": " + clb_error(context.get()));
  }
  std::unique_ptr<clb_context, Destroy> context;
  std::unique_ptr<clb_model, Destroy> model;
  clb_model_info info{};
};

struct Water {
  std::vector<std::int32_t> species;
  std::vector<double> positions;
  double cell[9] = {0};
};

// A lattice of molecules O H H, each moved a little and turned in one of three ways; the box is twice as wide as the cutoff, or wider.
Water make_water(const Model &model) {
  const double spacing = 3.1; // Angstrom: close to water's density
  const double oh[2][3] = {{0.757, 0.587, 0}, {-0.757, 0.587, 0}};
  std::size_t side = 2;
  while (static_cast<double>(side) * spacing < 2 * model.cutoff()) side++;
  const std::size_t molecules = side * side * side;
  Water w;
  w.positions.resize(9 * molecules);
  std::uint32_t random = 1;
  for (std::size_t k = 0; k < molecules; k++) {
    const std::size_t corner[3] = {k % side, k / side % side, k / side / side};
    double *x = &w.positions[9 * k];
    for (std::size_t d = 0; d < 3; d++) {
      random = random * 1664525u + 1013904223u;
      x[d] = static_cast<double>(corner[d]) * spacing + 0.2 * (random / 4294967296.0);
    }
    for (std::size_t h = 0; h < 2; h++)
      for (std::size_t d = 0; d < 3; d++) x[3 + 3 * h + (d + k) % 3] = x[(d + k) % 3] + oh[h][d];
    w.species.insert(w.species.end(), {model.species(8), model.species(1), model.species(1)});
  }
  for (int d = 0; d < 3; d++) w.cell[4 * d] = static_cast<double>(side) * spacing;
  return w;
}

// In decimal, and all bits.
void print_row(const char *what, std::size_t i, int n, const double *x) {
  std::printf("%s %d", what, static_cast<int>(i));
  for (int k = 0; k < n; k++) std::printf(" %.8f", x[k]);
  for (int k = 0; k < n; k++) {
    std::uint64_t bits;
    std::memcpy(&bits, &x[k], sizeof bits);
    std::printf(" %016llX", static_cast<unsigned long long>(bits));
  }
  std::printf("\n");
}

void run(const char *path, const char *device) {
  Model model(path, device);
  const Water w = make_water(model);
  const std::size_t n = w.species.size();
  double energy, stress[9];
  std::vector<double> forces(3 * n);

  clb_model_atoms atoms{};
  atoms.n = static_cast<std::int64_t>(n);
  atoms.species = w.species.data();
  atoms.positions = w.positions.data();
  atoms.cell = w.cell;
  for (int &periodic : atoms.periodic) periodic = 1;
  clb_model_results results{};
  results.energy = &energy;
  results.forces = forces.data();
  results.stress = stress;
  model.compute(atoms, results);

  print_row("atoms: energy (eV)", n, 1, &energy);
  for (std::size_t i = 0; i < n; i++) print_row("atoms: force (eV/Angstrom)", i, 3, &forces[3 * i]);
  for (std::size_t i = 0; i < 3; i++) print_row("atoms: stress (eV/Angstrom^3)", i, 3, &stress[3 * i]);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3 || !std::strcmp(argv[1], "--help")) {
    const bool asked = argc == 2;
    std::fputs(help, asked ? stdout : stderr);
    return !asked;
  }
  try {
    run(argv[1], argc > 2 ? argv[2] : "");
  } catch (const std::exception &e) {
    std::fprintf(stderr, "water: %s\n", e.what());
    return 1;
  }
  return 0;
}
