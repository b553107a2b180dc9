// Limits by which ptxas decides: the rows of heuristics.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ptxrewrite::ir {

enum class Heuristic : uint8_t {
#define HEURISTIC(name, ptxas, sm, value, text) name,
#define LATER(name, ptxas, sm, value)
#include "ir/machine/figures/heuristics.def"
#undef HEURISTIC
#undef LATER
  count
};

struct HeuristicRow {
  Heuristic heuristic;
  uint32_t ptxas = 0; // the first release; 13.0: 1300
  uint32_t sm = 0;    // the first compute capability
  uint32_t value = 0;
};

inline constexpr auto heuristic_rows = std::to_array<HeuristicRow>({
#define HEURISTIC(name, ptxas, sm, value, text) {Heuristic::name, ptxas, sm, value},
#define LATER(name, ptxas, sm, value) {Heuristic::name, ptxas, sm, value},
#include "ir/machine/figures/heuristics.def"
#undef HEURISTIC
#undef LATER
});

struct HeuristicInfo {
  std::string_view name, text;
};
inline constexpr std::array<HeuristicInfo, static_cast<size_t>(Heuristic::count)> heuristics = {{
#define HEURISTIC(name, ptxas, sm, value, text) {#name, text},
#define LATER(name, ptxas, sm, value)
#include "ir/machine/figures/heuristics.def"
#undef HEURISTIC
#undef LATER
}};

// The release of ptxas whose code is predicted: the last one that supports the target.
constexpr uint32_t predicted_ptxas(uint32_t compute_capability) {
  return compute_capability < 75 ? 1108 : 1300;
}

// By Heuristic: its first row.
inline constexpr auto first_heuristic_rows = [] {
  std::array<size_t, heuristics.size()> first{};
  for (size_t row = heuristic_rows.size(); row-- > 0;)
    first[static_cast<size_t>(heuristic_rows[row].heuristic)] = row;
  return first;
}();

constexpr uint32_t heuristic_of(Heuristic heuristic, uint32_t compute_capability, uint32_t ptxas) {
  uint32_t value = 0;
  for (size_t row = first_heuristic_rows[static_cast<size_t>(heuristic)];
       row < heuristic_rows.size() && heuristic_rows[row].heuristic == heuristic; ++row)
    if (heuristic_rows[row].ptxas <= ptxas && heuristic_rows[row].sm <= compute_capability)
      value = heuristic_rows[row].value;
  return value;
}

constexpr uint32_t heuristic(uint32_t compute_capability, Heuristic heuristic) {
  return heuristic_of(heuristic, compute_capability, predicted_ptxas(compute_capability));
}

} // namespace ptxrewrite::ir
