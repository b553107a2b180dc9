// The table of what the generator can build: one row for an operation, named by the pattern of its row in
// emulator/operations. Operations without a row are called.
//
//   table.row("add.{u32|s32}", [](Ir& ir, const Operands& x) { return ir.add(x.a, x.b); });
//
// A row builds scalars and vectors alike. Operands arrive as integers of the lane type's width (predicates: one bit),
// results are the same. Lanes that do not execute may hold anything: no operation may trap.
//
// f32 results are canonical where somebody can see their bits. A row that only looks at numbers takes `open` NaNs, of
// any payload, and a row that says so leaves them: a chain of fma makes its NaN canonical once.
#pragma once

#include "emulator/core/operation.h"
#include "emulator/generated/ir_builder.h"

#include <unordered_map>

namespace ptxrewrite::emulator::generated {

struct Operands {
  Value a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  uint32_t flags = 0; // ModifierFlag, or what the row takes in its place
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
  is_sum = 4, // a + b, a - b: the parts that all lanes have in common stay apart
  is_difference = 8,
  is_scaling = 16, // a << b, a * b: likewise, by a number that all lanes have in common
  is_copy = 32,
  takes_extra = 64, // Operands::flags is MicroOp::extra
};

struct LaneWidths {
  uint8_t source_count = 0, destination_count = 0;
  uint8_t source_bits[4] = {}, destination_bits[2] = {};
};

// What is known of a handler.
struct Recipe {
  Build build = nullptr; // null: the handler is called
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
  // Of a handler that has no row in OperationTable.
  void handler(Handler handler, LaneWidths widths, Build build, unsigned traits = 0);

  // Null: nothing is known of the handler.
  const Recipe* find(Handler handler) const;
  // Patterns that no row of OperationTable has; a test wants none.
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

// f32 with any NaN as the canonical one.
Value canonical_f32(Ir& ir, Value bits);

} // namespace ptxrewrite::emulator::generated
