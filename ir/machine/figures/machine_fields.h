// The figures of a machine by name, with unit and limits: what machine files and lists of figures are made of
// (machine_fields.def). Every figure but name and chip.
#pragma once

#include "ir/machine/figures/machine.h"

#include <span>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

enum class FieldKind : uint8_t { capability, count, flag, register_unit, figure, optional_figure };

struct MachineField {
  std::string_view name;    // "latency.dram"
  std::string_view section; // "latency"; "": the machine's own
  std::string_view key;     // "dram"
  FieldKind kind;
  std::string_view unit; // "": none
  double least, most;    // of values; a register unit is 0 (block) or 1 (warp), a flag 0 or 1
  std::string_view about;
  Figure (*read)(const Machine&);
  void (*write)(Machine&, const Figure&);

  bool may_be_guess() const { return kind == FieldKind::figure || kind == FieldKind::optional_figure; }
};

std::span<const MachineField> machine_fields();
const MachineField* find_machine_field(std::string_view section, std::string_view key);

// A value of a field as people write it: "9.0", "warp", "true", "562".
std::string value_text(const MachineField& field, double value);
// Whole numbers as such, others with the fewest digits that read back as the same number.
std::string number_text(double value);

// What keeps figures from being those of one machine, in words: "" if nothing does.
std::string contradiction(const Machine& machine);

} // namespace ptxrewrite::ir
