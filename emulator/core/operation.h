// The table of emulated operations: one row per operation.
//
//   table.row<[](uint32_t a, uint32_t b) { return a + b; }>("add.{u32|s32}");
//   table.row<&semantics::copysign_float<float>>("copysign.f32");
//
// A pattern is an opcode followed by words. `.u32` is required; of `{.lo|.hi}` exactly one is required (the dot may be
// omitted inside braces); `[.ftz]` is optional, and of `[.rn|.rz]` at most one may occur. Types (u32, f16x2 ...) are
// matched in order, all other words in any order. An instruction form is emulated by the first row that matches it
// completely. A pattern that ends in `*` allows any further words. Words without effect in an emulator (scopes, cache
// operators) are written as optional. Words that a function needs at run time arrive in `Flags`; ModifierFlag lists
// those that are available.
//
// The function's parameter types are the types of the lane values; wider or narrower registers are truncated or
// extended by the decoder around the operation.
#pragma once

#include "emulator/core/lanes.h"
#include "ir/core/operand.h"
#include "ir/isa/isa.h"

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ptxrewrite::emulator {

// The representation of an operand of a row's function.
enum class LaneKind : uint8_t { predicate, unsigned_integer, signed_integer, floating };
struct LaneType {
  LaneKind kind = LaneKind::unsigned_integer;
  uint8_t bits = 32;
  bool operator==(const LaneType&) const = default;
};

template <class T> constexpr LaneType lane_type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return {LaneKind::predicate, 1};
  else if constexpr (std::is_same_v<T, Bits128>)
    return {LaneKind::unsigned_integer, 128};
  else if constexpr (std::is_floating_point_v<T>)
    return {LaneKind::floating, sizeof(T) * 8};
  else if constexpr (std::is_signed_v<T>)
    return {LaneKind::signed_integer, sizeof(T) * 8};
  else
    return {LaneKind::unsigned_integer, sizeof(T) * 8};
}

class Decoder;
// Turns one instruction into micro-operations, for instructions that are not functions of lane values.
using SpecialDecoder = void (*)(Decoder& decoder, ir::InstructionId instruction);

struct Operation {
  ir::Opcode opcode = ir::Opcode::opaque;
  std::vector<std::vector<ir::ScalarType>> types;  // in order, each one of several
  std::vector<std::vector<ir::Modifier>> required; // one of each list
  std::vector<std::vector<ir::Modifier>> optional; // at most one of each list
  Handler handler = nullptr;                       // a lane operation, or
  SpecialDecoder special = nullptr;                // a decoder for others
  uint8_t destinations = 0;
  uint8_t sources = 0;
  std::array<LaneType, 2> destination_types{};
  std::array<LaneType, 4> source_types{};
  bool open = false; // the pattern ends in `*`: it allows any further words
  std::string_view pattern;
};

class OperationTable {
public:
  // `pattern` must outlive the table (a literal does).
  template <auto function> void row(std::string_view pattern);
  // The same with a handler of its own, which must compute what lane_handler<function> does.
  template <auto function> void row(std::string_view pattern, Handler handler);
  // Every form of the opcode that matches the pattern is decoded by `decoder`.
  void special(std::string_view pattern, SpecialDecoder decoder);

  // Returns nullptr if the form is not emulated.
  // `operands` select between rows that differ in the number of results or sources only (`p` or `p|q`).
  const Operation* find(const ir::Form& form, std::span<const ir::Operand> operands) const;
  const std::vector<Operation>& rows() const { return rows_; }

  // All emulated operations; built on first use, then constant.
  static const OperationTable& get();

private:
  void add(std::string_view pattern, Operation operation);

  std::vector<Operation> rows_;
  std::vector<std::vector<uint32_t>> by_opcode_; // indices of rows_, in the order of addition
};

// The flags of a form's modifiers, for handlers.
uint32_t modifier_flags(const ir::Form& form);

// --- implementation ---

namespace detail {
template <class Handler> struct DescribeOperation;
template <auto function, class R, class... P> struct DescribeOperation<LaneHandler<function, R (*)(P...)>> {
  static void fill(Operation& operation) {
    if constexpr (TwoParts<R>::value) {
      operation.destinations = 2;
      operation.destination_types = {lane_type_of<typename TwoParts<R>::First>(),
                                     lane_type_of<typename TwoParts<R>::Second>()};
    } else {
      operation.destinations = 1;
      operation.destination_types[0] = lane_type_of<R>();
    }
    auto source = [&](LaneType type) { operation.source_types[operation.sources++] = type; };
    (
        [&] {
          if constexpr (!std::is_same_v<std::remove_cvref_t<P>, Flags>) source(lane_type_of<std::remove_cvref_t<P>>());
        }(),
        ...);
  }
};
} // namespace detail

template <auto function> void OperationTable::row(std::string_view pattern) {
  row<function>(pattern, lane_handler<function>);
}

template <auto function> void OperationTable::row(std::string_view pattern, Handler handler) {
  Operation operation;
  operation.handler = handler;
  detail::DescribeOperation<LaneHandlerOf<function>>::fill(operation);
  add(pattern, std::move(operation));
}

// The families, one per file of emulator/operations/ and emulator/special/. A new family is added here and in
// operation_families.cpp. Those of hardware forms come from their machines (emulator/core/machine.h).
void add_move_operations(OperationTable& table);
void add_tensor_copy_operations(OperationTable& table); // before the asynchronous ones: cp
void add_tensor_memory_operations(OperationTable& table);
void add_mbarrier_operations(OperationTable& table); // before the asynchronous ones: cp.async.mbarrier
void add_async_operations(OperationTable& table);    // before the memory operations: st.async
void add_memory_operations(OperationTable& table);
void add_atomic_operations(OperationTable& table);
void add_multimem_operations(OperationTable& table); // after the families whose operations it repeats
void add_control_operations(OperationTable& table);
void add_register_pool_operations(OperationTable& table);
void add_warp_operations(OperationTable& table); // before the barriers: bar.warp
void add_barrier_operations(OperationTable& table);
void add_stack_operations(OperationTable& table);
void add_texture_operations(OperationTable& table);
void add_surface_operations(OperationTable& table);
void add_matrix_operations(OperationTable& table);
void add_matrix_memory_operations(OperationTable& table);
void add_warp_group_operations(OperationTable& table);
void add_arithmetic_operations(OperationTable& table);
void add_carry_operations(OperationTable& table);
void add_bit_operations(OperationTable& table);
void add_logic_operations(OperationTable& table);
void add_comparison_operations(OperationTable& table);
void add_integer_conversions(OperationTable& table);
void add_float_arithmetic(OperationTable& table);
void add_half_arithmetic(OperationTable& table);
void add_float_min_max(OperationTable& table);
void add_float_comparisons(OperationTable& table);
void add_approximations(OperationTable& table);
void add_float_conversions(OperationTable& table);
void add_float_integer_conversions(OperationTable& table);
void add_video_operations(OperationTable& table);
void add_simd_video_operations(OperationTable& table);

} // namespace ptxrewrite::emulator
