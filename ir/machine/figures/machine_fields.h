// The figures of a machine by name, with unit and limits, for machine files and lists of figures (machine_fields.def).
// All figures except name and chip.
#pragma once

#include "ir/machine/figures/machine.h"

#include <span>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

// added_figure: like optional_figure, but files written before it was added lack it, which says that there is none.
enum class FieldKind : uint8_t { capability, count, flag, register_unit, figure, optional_figure, added_figure };

struct MachineField {
  std::string_view name;    // "latency.dram"
  std::string_view section; // "latency"; "": the top level of the file
  std::string_view key;     // "dram"
  FieldKind kind;
  std::string_view unit; // "": none
  double least, most;    // limits of values; a register unit is 0 (block) or 1 (warp), a flag 0 or 1
  std::string_view about;
  Figure (*read)(const Machine&);
  void (*write)(Machine&, const Figure&);

  bool may_be_none() const { return kind == FieldKind::optional_figure || kind == FieldKind::added_figure; }
  bool may_be_guess() const { return kind == FieldKind::figure || may_be_none(); }
};

std::span<const MachineField> machine_fields();
const MachineField* find_machine_field(std::string_view section, std::string_view key);

// A value of a field as people write it: "9.0", "warp", "true", "562".
std::string value_text(const MachineField& field, double value);
// Integers without a decimal point, other numbers with the fewest digits that read back as the same number.
std::string number_text(double value);

// Describes a contradiction between figures, which no real machine can have; "" if there is none.
std::string contradiction(const Machine& machine);

} // namespace ptxrewrite::ir
