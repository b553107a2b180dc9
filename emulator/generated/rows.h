// The table of operations that the generator can build: one row per operation, named by the pattern of its row in
// emulator/operations. Operations without a row are called.
//
//   table.row("add.{u32|s32}", [](Ir& ir, const Operands& x) { return ir.add(x.a, x.b); });
//
// A row builds scalars and vectors alike. Operands have the lane type's width as integers (predicates: one bit), and so
// have results. Lanes that do not execute may hold anything: no operation may trap.
//
// f32 results are canonical where their bits are visible. A row that only uses numbers accepts `open` NaNs, with
// any payload, and a row with leaves_open_nans returns them: a chain of fma makes its NaN canonical once.
#pragma once

#include "emulator/core/operation.h"
#include "emulator/generated/ir_builder.h"

#include <unordered_map>

namespace ptxrewrite::emulator::generated {

struct Operands {
  Value a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  uint32_t flags = 0; // ModifierFlag, or the row's own flags instead
};
struct Results {
  Value first = nullptr, second = nullptr;
  Results(Value only) : first(only) {}
  Results(Value one, Value two) : first(one), second(two) {}
};
using Build = Results (*)(Ir& ir, const Operands& operands);

enum RowTrait : uint8_t {
  takes_open_nans = 1,
  leaves_open_nans = 2,
  is_sum = 4, // a + b, a - b: the parts common to all lanes stay separate
  is_difference = 8,
  is_scaling = 16, // a << b, a * b: likewise, by a number common to all lanes
  is_copy = 32,
  takes_extra = 64, // Operands::flags is MicroOp::extra
  of_two = 128,     // of the operations with this pattern, those with two sources
};

struct LaneWidths {
  uint8_t source_count = 0, destination_count = 0;
  uint8_t source_bits[4] = {}, destination_bits[2] = {};
};

// The generator's knowledge about a handler.
struct Recipe {
  Build build = nullptr; // nullptr: the handler is called
  uint8_t traits = 0;
  LaneWidths widths;
};

class RowTable {
public:
  // `function`: a lambda without captures.
  template <class Function> void row(std::string_view pattern, Function, unsigned traits = 0) {
    add(
        pattern, [](Ir& ir, const Operands& x) -> Results { return Function{}(ir, x); }, traits);
  }
  // Adds a handler that has no row in OperationTable.
  void handler(Handler handler, LaneWidths widths, Build build, unsigned traits = 0);

  // Returns nullptr if the handler is unknown.
  const Recipe* find(Handler handler) const;
  // Patterns that no row of OperationTable has; a test requires that there are none.
  const std::vector<std::string_view>& unknown_patterns() const { return unknown_; }
  size_t built() const { return built_; }

  static const RowTable& get();

private:
  RowTable();
  void add(std::string_view pattern, Build build, unsigned traits);

  std::unordered_map<Handler, Recipe> recipes_;
  std::unordered_map<std::string_view, std::vector<Handler>> by_pattern_;
  std::vector<std::string_view> unknown_;
  size_t built_ = 0;
};

void add_integer_rows(RowTable& table);
void add_bit_rows(RowTable& table);
void add_comparison_rows(RowTable& table);
void add_float_rows(RowTable& table);
void add_conversion_rows(RowTable& table);
void add_copies(RowTable& table);

// Replaces any NaN of an f32 by the canonical one.
Value canonical_f32(Ir& ir, Value bits);

} // namespace ptxrewrite::emulator::generated
