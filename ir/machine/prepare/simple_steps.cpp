// Expansions; see simple_steps.h. The PTX ISA manual defines the instructions in 9.7.1 (bfe, bfi, prmt) and 9.7.8
// (lop3, shf).
#include "ir/machine/prepare/simple_steps.h"

#include <array>
#include <map>
#include <optional>

namespace ptxrewrite::ir {

namespace {

using Steps = std::vector<SimpleStep>;

uint32_t add_step(Steps& steps, std::string_view mnemonic, StepOperand a, StepOperand b) {
  steps.push_back({mnemonic, a, b});
  return static_cast<uint32_t>(steps.size() - 1);
}

std::optional<int64_t> literal(std::span<const Operand> sources, size_t index) {
  if (index >= sources.size() || !sources[index].is(OperandKind::integer)) return std::nullopt;
  return sources[index].immediate;
}

// --- three-input logic ---

// The cheapest way to compute each of the 256 functions of three inputs with two-input operations, as a tree.
struct Cheapest {
  uint8_t cost = UINT8_MAX;
  std::string_view mnemonic; // empty: an input, or a constant
  uint8_t left = 0, right = 0;
};

constexpr std::array<uint8_t, 3> input_tables = {0xf0, 0xcc, 0xaa};

uint8_t apply(std::string_view mnemonic, uint8_t a, uint8_t b) {
  if (mnemonic == "and.b32") return a & b;
  if (mnemonic == "or.b32") return a | b;
  return a ^ b;
}

const std::array<Cheapest, 256>& cheapest_functions() {
  static const std::array<Cheapest, 256> table = [] {
    std::array<Cheapest, 256> made;
    made.fill(Cheapest()); // by hand: GCC 12 leaves the last third of the array zero
    std::vector<std::vector<uint8_t>> of_cost(1);
    for (uint8_t start : {input_tables[0], input_tables[1], input_tables[2], uint8_t(0x00), uint8_t(0xff)}) {
      made[start].cost = 0;
      of_cost[0].push_back(start);
    }
    for (uint8_t cost = 1; of_cost.size() == cost; ++cost) {
      std::vector<uint8_t> found;
      for (uint8_t left_cost = 0; left_cost < cost; ++left_cost)
        for (uint8_t left : of_cost[left_cost])
          for (uint8_t right : of_cost[cost - 1 - left_cost])
            for (std::string_view mnemonic : {"and.b32", "or.b32", "xor.b32"}) {
              uint8_t value = apply(mnemonic, left, right);
              if (made[value].cost != UINT8_MAX) continue;
              made[value] = {cost, mnemonic, left, right};
              found.push_back(value);
            }
      if (!found.empty()) of_cost.push_back(std::move(found));
    }
    return made;
  }();
  return table;
}

StepOperand build_logic(uint8_t function, Steps& steps) {
  for (uint32_t i = 0; i < input_tables.size(); ++i)
    if (function == input_tables[i]) return StepOperand::input(i);
  if (function == 0x00 || function == 0xff) return StepOperand::number(function == 0 ? 0 : -1);
  const Cheapest& way = cheapest_functions()[function];
  StepOperand left = build_logic(way.left, steps);
  StepOperand right = build_logic(way.right, steps);
  if (left.kind == StepOperand::Kind::literal) std::swap(left, right);
  return StepOperand::step(add_step(steps, way.mnemonic, left, right));
}

Steps logic_steps(std::span<const Operand> sources) {
  std::optional<int64_t> table = literal(sources, 3);
  Steps steps;
  if (table && sources.size() == 4) build_logic(static_cast<uint8_t>(*table), steps);
  return steps;
}

// --- funnel shifts ---

// The upper word of a pair shifted left, or the lower one shifted right, with bits from the other word.
Steps funnel_steps(const Form& form, std::span<const Operand> sources) {
  Steps steps;
  std::optional<int64_t> amount = literal(sources, 2);
  if (!amount || sources.size() != 3) return steps;
  int64_t count = form.has(Modifier::wrap) ? *amount & 31 : *amount;
  if (count <= 0 || count >= 32) return steps;
  int64_t low_right = form.has(Modifier::l) ? 32 - count : count;
  uint32_t high = add_step(steps, "shl.b32", StepOperand::input(1), StepOperand::number(32 - low_right));
  uint32_t low = add_step(steps, "shr.u32", StepOperand::input(0), StepOperand::number(low_right));
  add_step(steps, "or.b32", StepOperand::step(high), StepOperand::step(low));
  return steps;
}

// --- byte permutations ---

// Bytes that move from one source by the same distance are moved together.
Steps permute_steps(const Form& form, std::span<const Operand> sources) {
  Steps steps;
  std::optional<int64_t> selector = literal(sources, 2);
  if (!selector || sources.size() != 3 || form.modifiers.size() != 1) return steps;
  std::map<std::pair<uint32_t, int>, uint32_t> pieces; // (source, bytes to the left) -> mask of bytes
  for (int place = 0; place < 4; ++place) {
    auto nibble = static_cast<uint32_t>(*selector >> (4 * place)) & 0xf;
    if (nibble & 8) return {}; // replicates the byte's sign
    pieces[{nibble >> 2, place - static_cast<int>(nibble & 3)}] |= 0xffu << (8 * place);
  }
  std::optional<StepOperand> sum;
  for (const auto& [key, mask] : pieces) {
    auto [source, left] = key;
    StepOperand moved = StepOperand::input(source);
    uint32_t natural = UINT32_MAX;
    if (left > 0) {
      moved = StepOperand::step(add_step(steps, "shl.b32", moved, StepOperand::number(8 * left)));
      natural <<= 8 * left;
    } else if (left < 0) {
      moved = StepOperand::step(add_step(steps, "shr.u32", moved, StepOperand::number(-8 * left)));
      natural >>= -8 * left;
    }
    if (mask != natural) moved = StepOperand::step(add_step(steps, "and.b32", moved, StepOperand::number(mask)));
    sum = sum ? StepOperand::step(add_step(steps, "or.b32", *sum, moved)) : moved;
  }
  return steps;
}

// --- bit fields ---

struct Field {
  int64_t position, length;
};
std::optional<Field> field(std::span<const Operand> sources, size_t at) {
  std::optional<int64_t> position = literal(sources, at), length = literal(sources, at + 1);
  if (!position || !length) return std::nullopt;
  Field result{*position & 0xff, *length & 0xff};
  if (result.position >= 32 || result.length == 0) return std::nullopt;
  if (result.position + result.length > 32) result.length = 32 - result.position;
  return result;
}

Steps extract_steps(const Form& form, std::span<const Operand> sources) {
  Steps steps;
  std::optional<Field> bits = field(sources, 1);
  if (!bits) return steps;
  bool is_signed = form.type() == ScalarType::s32;
  if (bits->position == 0 && bits->length == 32) return steps;
  if (!is_signed && bits->position == 0) {
    add_step(steps, "and.b32", StepOperand::input(0), StepOperand::number((int64_t(1) << bits->length) - 1));
    return steps;
  }
  StepOperand moved = StepOperand::input(0);
  int64_t above = 32 - bits->position - bits->length;
  if (above > 0) moved = StepOperand::step(add_step(steps, "shl.b32", moved, StepOperand::number(above)));
  add_step(steps, is_signed ? "shr.s32" : "shr.u32", moved, StepOperand::number(32 - bits->length));
  return steps;
}

Steps insert_steps(std::span<const Operand> sources) {
  Steps steps;
  std::optional<Field> bits = field(sources, 2);
  if (!bits || bits->length == 32) return steps;
  auto mask = static_cast<int64_t>(((uint64_t(1) << bits->length) - 1) << bits->position);
  StepOperand moved = StepOperand::input(0);
  if (bits->position > 0)
    moved = StepOperand::step(add_step(steps, "shl.b32", moved, StepOperand::number(bits->position)));
  if (bits->position + bits->length < 32)
    moved = StepOperand::step(add_step(steps, "and.b32", moved, StepOperand::number(mask)));
  uint32_t rest = add_step(steps, "and.b32", StepOperand::input(1), StepOperand::number(~mask & 0xffffffff));
  add_step(steps, "or.b32", moved, StepOperand::step(rest));
  return steps;
}

} // namespace

std::vector<SimpleStep> simple_steps(const Form& form, std::span<const Operand> sources) {
  if (form.opaque || form.definitions != 1) return {};
  switch (form.opcode) {
  case Opcode::lop3:
    return form.type() == ScalarType::b32 && form.modifiers.size() == 1 ? logic_steps(sources) : Steps();
  case Opcode::shf:
    return funnel_steps(form, sources);
  case Opcode::prmt:
    return permute_steps(form, sources);
  case Opcode::bfe:
    return bit_width(form.type()) == 32 ? extract_steps(form, sources) : Steps();
  case Opcode::bfi:
    return bit_width(form.type()) == 32 ? insert_steps(sources) : Steps();
  default:
    return {};
  }
}

} // namespace ptxrewrite::ir
