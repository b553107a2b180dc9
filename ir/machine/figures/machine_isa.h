// The machine instructions of all generations: the rows of isa.def.
#pragma once

#include "ir/machine/figures/pipe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ptxrewrite::ir {

enum class MachineOpcode : uint8_t {}; // by row of isa.def

struct MachineOpcodeRow {
  std::string_view name;
  Pipe pipe = Pipe::issue;
  std::string_view targets; // "sm_20..sm_62 sm_80+"; empty: all
};

inline constexpr MachineOpcodeRow machine_opcode_rows[] = {
#define MACHINE_OPCODE(name, pipe, targets) {name, Pipe::pipe, targets},
#include "ir/machine/figures/isa.def"
#undef MACHINE_OPCODE
};

constexpr const MachineOpcodeRow& row_of(MachineOpcode opcode) {
  return machine_opcode_rows[static_cast<size_t>(opcode)];
}

// By name.
inline constexpr auto sorted_machine_opcodes = [] {
  std::array<MachineOpcode, std::size(machine_opcode_rows)> sorted{};
  for (size_t i = 0; i < sorted.size(); ++i)
    sorted[i] = static_cast<MachineOpcode>(i);
  std::ranges::sort(sorted, {}, [](MachineOpcode opcode) { return row_of(opcode).name; });
  return sorted;
}();

inline void isa_def_has_no_such_row() {} // not constexpr: a name without a row is an error of the compiler

// The row with the longest name that the instruction's name begins with, up to a dot.
constexpr MachineOpcode machine_opcode(std::string_view name) {
  for (size_t end = name.size(); end != std::string_view::npos; end = name.rfind('.', end - 1)) {
    const std::string_view part = name.substr(0, end);
    const auto found = std::ranges::lower_bound(sorted_machine_opcodes, part, {},
                                                [](MachineOpcode opcode) { return row_of(opcode).name; });
    if (found != sorted_machine_opcodes.end() && row_of(*found).name == part) return *found;
  }
  isa_def_has_no_such_row();
  return {};
}

} // namespace ptxrewrite::ir
