// Kernels that attack: wild addresses, huge declarations, barriers that do not match, calls through bad pointers,
// registers without a value, control flow that no compiler makes. Most of the text is legal PTX, so that it goes past
// the reader. The same for a seed on every machine, as long as the material is the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

// What kernels are made of besides the generator's own features.
struct HostileMaterial {
  std::vector<std::string> statements; // single instructions that ptxas accepts, of every row of the instruction table
  std::vector<std::string> runnable;   // of them: those that the emulator has
  std::vector<std::string> pure;       // of those: no address, no effect
  std::vector<std::string> modules;    // whole files to mutate: samples, hardware forms
};

// Accepted statements of tests/isa/statements.tsv, and `modules` with the hardware and annotated forms of each.
HostileMaterial make_material(std::string_view statement_table, const std::vector<std::string>& modules);

struct HostileKernel {
  uint64_t seed = 0;
  std::string text;
  std::string origin; // "defined", "attack", "mutated" and the like, for the table
  // Words of the command line that launch it; empty: a launch template says how.
  std::vector<std::string> launch;
  // Every register is written before it is read, no thread reads what another writes: a rewriting must leave the same.
  bool is_defined = false;
  std::vector<std::string> features;
};

HostileKernel generate_hostile_kernel(uint64_t seed, const HostileMaterial& material);

// Names of all features that can occur, for the test that they do.
std::vector<std::string> hostile_features();

} // namespace ptxrewrite::fuzz
