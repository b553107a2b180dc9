// Small random kernels for proofs, and changes of their text. A thread reads a byte chosen by its index and one chosen
// by its block, so that one launch of 256 blocks of 256 threads has every pair of them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ptxrewrite::proofs {

// One instruction or label a line.
using Lines = std::vector<std::string>;

// Parameters: .u64 in (512 bytes: by thread, then by block), .u64 out (slot_bytes for each thread), .u32 n.
inline constexpr uint32_t threads = 256, blocks = 256, slot_bytes = 128;

Lines random_kernel(std::mt19937_64& random);
std::string text_of(const Lines& lines);

struct MutationKind {
  const char* name;
  // Where the line can be changed, what becomes of it; nothing else.
  std::optional<std::string> (*change)(const std::string& line);
};
const std::vector<MutationKind>& mutation_kinds();

struct Mutant {
  Lines lines;
  std::optional<size_t> exchanged; // with the line behind it: two stores
};
// One place of the kernel that the kind knows, by chance; nothing: it has none.
std::optional<Mutant> mutate(const Lines& lines, const MutationKind& kind, std::mt19937_64& random);

} // namespace ptxrewrite::proofs
