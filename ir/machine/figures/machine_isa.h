// The machine instructions of all generations: the rows of isa.def.
#pragma once

#include "ir/machine/figures/machine.h"
#include "ir/machine/figures/pipe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ptxrewrite::ir {

enum class MachineOpcode : uint8_t {}; // by row of isa.def

// The columns of isa.def that name figures of a machine: its members; nullptr: none.
using LatencyField = Figure LatencyFacts::*;
using RateField = Figure ThroughputFacts::*;

struct MachineOpcodeRow {
  std::string_view name;
  Pipe pipe = Pipe::issue;
  LatencyField latency = nullptr;
  RateField rate = nullptr;
  std::string_view slots;   // of source operands: see isa.def
  std::string_view targets; // "sm_20..sm_62 sm_80+"; empty: all
};

struct LatencyNames : LatencyFacts {
  static constexpr std::nullptr_t none = nullptr;
};
struct RateNames : ThroughputFacts {
  static constexpr std::nullptr_t none = nullptr;
};
constexpr auto field_of(std::nullptr_t const*) {
  return nullptr;
}
template <class Field> constexpr auto field_of(Field field) {
  return field;
}

inline constexpr MachineOpcodeRow machine_opcode_rows[] = {
#define MACHINE_OPCODE(name, pipe, latency, rate, slots, targets)                                                      \
  {name, Pipe::pipe, field_of(&LatencyNames::latency), field_of(&RateNames::rate), slots, targets},
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
