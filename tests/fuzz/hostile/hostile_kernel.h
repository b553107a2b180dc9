// Hostile kernels: wild addresses, huge declarations, mismatched barriers, calls through bad pointers, registers
// without a value, unusual control flow. Most of the text is legal PTX, so that it passes the reader. The kernel of a
// seed is the same on every machine, for the same material.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

// The material of kernels besides the generator's own features.
struct HostileMaterial {
  std::vector<std::string> statements; // single instructions that ptxas accepts, of every row of the instruction table
  std::vector<std::string> runnable;   // of them: those that are emulated
  std::vector<std::string> pure;       // of those: without an address or an effect
  std::vector<std::string> modules;    // whole files to mutate: samples, hardware forms
};

// Accepted statements of tests/isa/statements.tsv, and `modules` with the hardware and annotated forms of each.
HostileMaterial make_material(std::string_view statement_table, const std::vector<std::string>& modules);

struct HostileKernel {
  uint64_t seed = 0;
  std::string text;
  std::string origin; // "defined", "attack", "mutated" and the like, for the table
  // Words of the command line that launch it; empty: it has a launch template.
  std::vector<std::string> launch;
  // Every register is written before it is read, and threads share no data: a rewritten kernel must have equal results.
  bool is_defined = false;
  std::vector<std::string> features;
};

HostileKernel generate_hostile_kernel(uint64_t seed, const HostileMaterial& material);

// Names of all features, for the test that all occur.
std::vector<std::string> hostile_features();

} // namespace ptxrewrite::fuzz
