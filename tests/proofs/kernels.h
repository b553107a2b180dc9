// Small random kernels for proofs, and mutations of their text. A thread reads one byte chosen by its index and one
// chosen by its block, so that one launch of 256 blocks of 256 threads covers every pair.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ptxrewrite::proofs {

// One instruction or label per line.
using Lines = std::vector<std::string>;

// Parameters: .u64 in (512 bytes: by thread, then by block), .u64 out (slot_bytes for each thread), .u32 n.
inline constexpr uint32_t threads = 256, blocks = 256, slot_bytes = 128;

Lines random_kernel(std::mt19937_64& random);
std::string text_of(const Lines& lines);

struct MutationKind {
  const char* name;
  // Returns the changed line, or nullopt if the line cannot be changed.
  std::optional<std::string> (*change)(const std::string& line);
};
const std::vector<MutationKind>& mutation_kinds();

struct Mutant {
  Lines lines;
  std::optional<size_t> exchanged; // the line that is exchanged with the next one: two stores
};
// Mutates a random place of the kernel that this kind applies to; returns nullopt if there is none.
std::optional<Mutant> mutate(const Lines& lines, const MutationKind& kind, std::mt19937_64& random);

} // namespace ptxrewrite::proofs
