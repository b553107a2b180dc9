#include "ir/machine/figures/machine_fields.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace ptxrewrite::ir {
namespace {

Figure as_figure(const Figure& figure) {
  return figure;
}
Figure as_figure(uint32_t value) {
  return Figure(value);
}
Figure as_figure(bool value) {
  return Figure(value ? 1 : 0);
}
Figure as_figure(RegisterUnit unit) {
  return Figure(static_cast<double>(unit));
}

void assign(Figure& to, const Figure& from) {
  to = from;
}
void assign(uint32_t& to, const Figure& from) {
  to = static_cast<uint32_t>(from.value);
}
void assign(bool& to, const Figure& from) {
  to = from.value != 0;
}
void assign(RegisterUnit& to, const Figure& from) {
  to = from.value == 0 ? RegisterUnit::block : RegisterUnit::warp;
}

constexpr std::array fields = {
#define MACHINE_FIELD(section, key, kind, member, unit, least, most, about)                                            \
  MachineField{std::string_view(section "." key).substr(sizeof(section) == 1 ? 1 : 0),                                 \
               section,                                                                                                \
               key,                                                                                                    \
               FieldKind::kind,                                                                                        \
               unit,                                                                                                   \
               least,                                                                                                  \
               most,                                                                                                   \
               about,                                                                                                  \
               [](const Machine& machine) { return as_figure(machine.member); },                                       \
               [](Machine& machine, const Figure& figure) { assign(machine.member, figure); }},
#include "ir/machine/figures/machine_fields.def"
#undef MACHINE_FIELD
};

} // namespace

std::span<const MachineField> machine_fields() {
  return fields;
}

const MachineField* find_machine_field(std::string_view section, std::string_view key) {
  for (const MachineField& field : fields)
    if (field.section == section && field.key == key) return &field;
  return nullptr;
}

std::string number_text(double value) {
  // Extreme values, which no machine has, occur only in messages; written out they would be hundreds of digits long.
  const double size = std::abs(value);
  if (!(size < 1e15) || (size > 0 && size < 1e-6)) return fmt::format("{}", value);
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr;
  return {digits.data(), end};
}

std::string value_text(const MachineField& field, double value) {
  switch (field.kind) {
  case FieldKind::capability: {
    if (!(value >= field.least && value <= field.most)) return number_text(value / 10);
    const auto number = static_cast<uint32_t>(value);
    return std::to_string(number / 10) + '.' + std::to_string(number % 10);
  }
  case FieldKind::flag:
    return value != 0 ? "true" : "false";
  case FieldKind::register_unit:
    return value != 0 ? "warp" : "block";
  default:
    return number_text(value);
  }
}

std::string contradiction(const Machine& machine) {
  const OccupancyFacts& facts = machine.occupancy;
  if (facts.max_shared_bytes_per_block > facts.shared_bytes)
    return "occupancy.max_shared_bytes_per_block is more than occupancy.shared_bytes";
  if (facts.max_threads_per_block > facts.max_warps * 32)
    return "occupancy.max_threads_per_block is more than 32 x occupancy.max_warps";
  if (machine.memory.achieved_dram_gb_per_second.value > machine.memory.dram_gb_per_second.value)
    return "memory.achieved_dram_gb_per_second is more than memory.dram_gb_per_second";
  double nearer = 0;
  for (const Figure* level : {&machine.latency.l1, &machine.latency.l2, &machine.latency.dram}) {
    if (level->known && level->value < nearer) return "latency.l1, latency.l2 and latency.dram do not grow";
    if (level->known) nearer = level->value;
  }
  return {};
}

} // namespace ptxrewrite::ir
