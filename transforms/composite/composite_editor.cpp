#include "transforms/composite/composite_editor.h"

#include "transforms/composite/composite_rules.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::transforms::legal::composite {

using ir::InstructionId;
using ir::InstructionKind;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::ValueId;

Editor::Editor(ir::Function& function)
    : function_(function), definitions_(function.values.size()), readers_(function.values.size()),
      converting_readers_(function.values.size()), zero_tests_(function.values.size()) {
  for (ir::BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block)) {
      ir::for_each_definition(function, id, [&](ValueId value) { definitions_[value.index()] = id; });
      count(id, true);
    }
    for (ir::EdgeId edge : function.successors(block))
      for (ValueId argument : function.arguments(edge))
        ++readers_[argument.index()];
  }
}

static bool is_zero_test(const ir::Function& function, InstructionId id) {
  if (!function.is_opcode(id, Opcode::setp)) return false;
  const ir::Form& form = function.form_of(id);
  if (!form.has(ir::Modifier::eq) && !form.has(ir::Modifier::ne)) return false;
  return std::ranges::any_of(function.operands_of(id), [](const Operand& operand) {
    return operand.is(OperandKind::integer) && operand.immediate == 0;
  });
}

void Editor::count(InstructionId id, bool added) {
  const bool converts = function_.is_opcode(id, Opcode::cvt) && ir::is_float(function_.form_of(id).type(0)) &&
                        ir::is_integer(function_.form_of(id).type(1));
  const bool tests = is_zero_test(function_, id);
  ir::for_each_use(function_, id, [&](ValueId value) {
    readers_[value.index()] += added ? 1u : ~0u;
    if (tests) zero_tests_[value.index()] += added ? 1u : ~0u;
    if (converts) converting_readers_[value.index()] += added ? 1u : ~0u;
  });
}

bool Editor::find_computation(InstructionId id) const {
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.kind != InstructionKind::real || instruction.guard || !instruction.block) return false;
  const ir::Form& form = function_.form_of(id);
  if (form.opaque || !form.effects.pure() || form.definitions != 1) return false;
  const std::span<const Operand> operands = function_.operands_of(id);
  if (operands.empty() || !operands[0].is(OperandKind::value) || !operands[0].is_definition()) return false;
  return std::ranges::none_of(operands, [](const Operand& operand) {
    return operand.is_group() || operand.selector != ir::no_selector || operand.has(ir::OperandFlag::old_value) ||
           operand.is(OperandKind::special_register);
  });
}

InstructionId Editor::computation(const Operand& operand) const {
  if (!operand.is(OperandKind::value) || operand.has(ir::OperandFlag::negated)) return {};
  const InstructionId id = definitions_[operand.id];
  return is_computation(id) ? id : InstructionId();
}

std::optional<uint32_t> Editor::literal(const Operand& operand) const {
  if (operand.is(OperandKind::integer) || operand.is(OperandKind::float32))
    return static_cast<uint32_t>(operand.immediate);
  const InstructionId id = computation(operand);
  if (!id || !function_.is_opcode(id, Opcode::mov)) return std::nullopt;
  const Operand& source = sources(id)[0];
  if (!source.is(OperandKind::integer) && !source.is(OperandKind::float32)) return std::nullopt;
  return static_cast<uint32_t>(source.immediate);
}

namespace {

uint32_t high_bits(unsigned count) {
  return count == 0 ? 0 : ~uint32_t(0) << (32 - std::min(count, 32u));
}

// The zero bits of a number that is at most `bits` wide.
uint32_t above(unsigned bits) {
  return bits >= 32 ? 0 : ~uint32_t(0) << bits;
}

// Known zeros by the launch limits (ISA manual, special registers).
uint32_t zeros_of_special(const Operand& operand) {
  const std::string_view name = ir::info(static_cast<ir::SpecialRegister>(operand.id)).name;
  if (name == "%tid") return above(10);
  if (name == "%ntid") return above(11);
  if (name == "%laneid") return above(5);
  return 0;
}

// The result of a load or a conversion from a narrower type: its number of bits, and whether they are sign-extended.
struct Narrow {
  unsigned bits = 32;
  bool is_signed = false;
};
Narrow narrow_result(const ir::Form& form) {
  if (form.opcode != Opcode::ld && form.opcode != Opcode::cvt) return {};
  if (form.vector_width != 1) return {};
  ScalarType type = form.opcode == Opcode::cvt ? form.type(1) : form.type(0);
  // The source is truncated and extended by its own type; a narrower destination truncates again.
  if (form.opcode == Opcode::cvt && form.type(0) != ScalarType::u32 && form.type(0) != ScalarType::s32) return {};
  if (form.opcode == Opcode::cvt && form.modifiers.size() > 2) return {};
  switch (type) {
  case ScalarType::u8:
  case ScalarType::b8:
    return {8, false};
  case ScalarType::u16:
  case ScalarType::b16:
    return {16, false};
  case ScalarType::s8:
    return {8, true};
  case ScalarType::s16:
    return {16, true};
  default:
    return {};
  }
}

} // namespace

// The width of the largest unsigned number that results from the conversion of a float: min.f32 with a literal is the
// upper bound, also for NaN; negative numbers become 0.
unsigned Editor::width_of_largest(const Operand& operand) const {
  const InstructionId id = computation(operand);
  if (!id || mnemonic(id) != "min.f32") return 32;
  unsigned bits = 32;
  for (const Operand& one : sources(id))
    if (const std::optional<uint32_t> number = literal(one)) {
      const float bound = std::bit_cast<float>(*number);
      if (bound >= 0 && bound < 0x1p31f)
        bits = std::min(bits, static_cast<unsigned>(std::bit_width(static_cast<uint32_t>(bound))));
    }
  return bits;
}

// One case for each supported opcode.
// Operations such as `add` ask about both operands, so that without the store a query would double with each level.
uint32_t Editor::known_zeros(const Operand& operand, unsigned depth) const {
  if (!operand.is(OperandKind::value) || operand.flags != ir::OperandFlag::none || depth > zeros_depth)
    return compute_zeros(operand, depth);
  if (operand.id >= zeros_.size()) zeros_.resize(function_.values.size());
  if (const KnownZeros known = zeros_[operand.id][depth]; known.edit == edit_) return known.zeros;
  const uint32_t zeros = compute_zeros(operand, depth);
  zeros_[operand.id][depth] = {edit_, zeros};
  return zeros;
}

uint32_t Editor::compute_zeros(const Operand& operand, unsigned depth) const {
  if (std::optional<uint32_t> number = literal(operand)) return ~*number;
  if (!operand.is(OperandKind::value) || depth == 0) return 0;
  const InstructionId id = definitions_[operand.id];
  if (!id || function_.instructions[id].kind != InstructionKind::real || function_.keeps_old_values(id)) return 0;
  const ir::Form& form = function_.form_of(id);
  if (const Narrow narrow = narrow_result(form); narrow.bits < 32) return narrow.is_signed ? 0 : above(narrow.bits);
  const std::span<const Operand> from = sources(id);
  if (form.opcode == Opcode::mov && from.size() == 1 && from[0].is(OperandKind::special_register))
    return zeros_of_special(from[0]);
  if (!is_computation(id) || function_.values[operand.as_value()].type == ScalarType::none) return 0;
  auto zeros = [&](size_t i) { return known_zeros(from[i], depth - 1); };
  auto number = [&](size_t i) { return literal(from[i]); };
  auto width = [&](size_t i) { return 32 - static_cast<unsigned>(std::countl_one(zeros(i))); };
  const std::string_view mnemonic = canonical(form.mnemonic);
  if (mnemonic == "and.b32") return zeros(0) | zeros(1);
  if (mnemonic == "or.b32" || mnemonic == "xor.b32" || mnemonic == "selp.b32") return zeros(0) & zeros(1);
  if (mnemonic == "shl.b32" && number(1)) return *number(1) >= 32 ? ~0u : zeros(0) << *number(1) | ~(~0u << *number(1));
  if (mnemonic == "shr.u32" && number(1))
    return *number(1) >= 32 ? ~0u : zeros(0) >> *number(1) | high_bits(*number(1));
  if (mnemonic == "bfe.u32" && number(2)) return above(*number(2) & 0xff);
  if (mnemonic == "add.s32") return above(std::max(width(0), width(1)) + 1);
  if (mnemonic == "mul.lo.s32") return above(width(0) + width(1));
  if (mnemonic == "min.u32") return above(std::min(width(0), width(1)));
  if (mnemonic == "max.u32") return above(std::max(width(0), width(1)));
  // For nonnegative numbers signed comparisons give the same result; the maximum of any number and a nonnegative one is
  // nonnegative.
  constexpr unsigned sign_bit = 31;
  // The width of min(any number, nonnegative number), unless the result is negative.
  auto width_if_positive = [&](size_t i) {
    const InstructionId inner = width(i) <= sign_bit ? InstructionId{} : computation(from[i]);
    if (!inner || canonical(function_.form_of(inner).mnemonic) != "min.s32") return width(i);
    unsigned least = 32;
    for (const Operand& source : sources(inner))
      if (const auto bits = 32 - static_cast<unsigned>(std::countl_one(known_zeros(source, depth - 1)));
          bits <= sign_bit)
        least = std::min(least, bits);
    return least;
  };
  if (mnemonic == "max.s32" && std::min(width(0), width(1)) <= sign_bit &&
      std::max(width_if_positive(0), width_if_positive(1)) <= sign_bit)
    return above(std::max(width_if_positive(0), width_if_positive(1)));
  if (mnemonic == "max.s32" && std::max(width(0), width(1)) <= sign_bit) return above(std::max(width(0), width(1)));
  if (mnemonic == "max.s32" && std::min(width(0), width(1)) <= sign_bit) return above(sign_bit);
  if (mnemonic == "min.s32" && std::max(width(0), width(1)) <= sign_bit) return above(std::min(width(0), width(1)));
  if (mnemonic == "cvt.rzi.u32.f32") return above(width_of_largest(from[0]));
  if (mnemonic == "popc.b32" || mnemonic == "clz.b32") return above(6);
  if (mnemonic == "mov.u32" || mnemonic == "mov.b32" || mnemonic == "mov.s32") return zeros(0);
  return 0;
}

bool Editor::fits(const Operand& operand, unsigned bits, unsigned depth) const {
  if (bits >= 32) return true;
  if (bits == 0) return false;
  if (std::optional<uint32_t> number = literal(operand)) {
    const unsigned unused = 32 - bits;
    return static_cast<uint32_t>(static_cast<int32_t>(*number << unused) >> unused) == *number;
  }
  if ((known_zeros(operand) & above(bits - 1)) == above(bits - 1)) return true;
  if (!operand.is(OperandKind::value) || depth == 0) return false;
  const InstructionId id = definitions_[operand.id];
  if (!id || function_.instructions[id].kind != InstructionKind::real || function_.keeps_old_values(id)) return false;
  const ir::Form& form = function_.form_of(id);
  if (const Narrow narrow = narrow_result(form); narrow.bits < 32)
    return narrow.bits + (narrow.is_signed ? 0 : 1) <= bits;
  if (!is_computation(id)) return false;
  const std::span<const Operand> from = sources(id);
  auto both = [&](unsigned narrower) {
    return fits(from[0], narrower, depth - 1) && fits(from[1], narrower, depth - 1);
  };
  const std::string_view mnemonic = canonical(form.mnemonic);
  if (mnemonic == "shr.s32") return literal(from[1]).value_or(0) + bits >= 32;
  if (mnemonic == "bfe.s32") return (literal(from[2]).value_or(255) & 0xff) <= bits;
  if (mnemonic == "add.s32" || mnemonic == "sub.s32") return both(bits - 1);
  if (mnemonic == "min.s32" || mnemonic == "max.s32" || mnemonic == "selp.b32") return both(bits);
  return false;
}

namespace {

unsigned weight(const ir::Form& form) {
  if (form.opcode == Opcode::mov) return 0;
  return ir::bit_width(form.type(0)) == 64 && form.opcode != Opcode::cvt ? 2 : 1;
}

} // namespace

unsigned Editor::weight(std::span<const InstructionId> list) const {
  unsigned sum = 0;
  for (InstructionId id : list)
    sum += composite::weight(function_.form_of(id));
  return sum;
}

unsigned Editor::dying(InstructionId root, std::span<const InstructionId> inside) const {
  std::vector<InstructionId> dead{root};
  std::vector<std::pair<ValueId, uint32_t>> lost;
  unsigned sum = 0;
  for (size_t next = 0; next < dead.size(); ++next) {
    sum += composite::weight(function_.form_of(dead[next]));
    ir::for_each_use(function_, dead[next], [&](ValueId value) {
      const InstructionId id = definitions_[value.index()];
      if (std::ranges::find(inside, id) == inside.end()) return;
      if (function_.instructions[id].block != function_.instructions[root].block) return;
      auto row = std::ranges::find(lost, value, &std::pair<ValueId, uint32_t>::first);
      if (row == lost.end()) row = lost.insert(row, {value, 0});
      if (++row->second == readers(value)) dead.push_back(id);
    });
  }
  return sum;
}

void Editor::begin(InstructionId root) {
  root_ = root;
}

void Editor::put(std::string_view mnemonic, std::span<const Operand> operands) {
  ir::Builder builder(function_);
  builder.before(root_).standing_for(root_);
  const InstructionId id = builder.emit(mnemonic, operands);
  if (id.index() < computations_.size()) computations_[id.index()] = Answer::unknown;
  if (id.index() < mnemonics_.size()) mnemonics_[id.index()] = 0;
  ++edit_;
  definitions_.resize(function_.values.size());
  readers_.resize(function_.values.size());
  converting_readers_.resize(function_.values.size());
  zero_tests_.resize(function_.values.size());
  ir::for_each_definition(function_, id, [&](ValueId value) { definitions_[value.index()] = id; });
  count(id, true);
}

ValueId Editor::emit(std::string_view mnemonic, ScalarType type, std::span<const Operand> from) {
  const ValueId value = ir::Builder(function_).new_value(type);
  std::vector<Operand> operands{Operand::definition(value)};
  operands.insert(operands.end(), from.begin(), from.end());
  put(mnemonic, operands);
  return value;
}

std::pair<ValueId, ValueId> Editor::emit_halves(const Operand& source) {
  ir::Builder builder(function_);
  const ValueId low = builder.new_value(ScalarType::b32), high = builder.new_value(ScalarType::b32);
  const Operand operands[] = {Operand::group(OperandKind::vector, 2), Operand::definition(low),
                              Operand::definition(high), source};
  put("mov.b64", operands);
  return {low, high};
}

void Editor::finish(std::string_view mnemonic, std::span<const Operand> from) {
  std::vector<Operand> operands{Operand::definition(result(root_))};
  operands.insert(operands.end(), from.begin(), from.end());
  const InstructionId old = root_;
  put(mnemonic, operands);
  const InstructionId made = definitions_[operands[0].id];
  remove(old);
  definitions_[operands[0].id] = made;
  ++edit_;
}

void Editor::finish_packed(ValueId low, ValueId high) {
  const Operand packed[] = {Operand::group(OperandKind::vector, 2), Operand::value(low), Operand::value(high)};
  finish("mov.b64", packed);
}

void Editor::remove(InstructionId id) {
  ++edit_;
  std::vector<InstructionId> dead{id};
  for (size_t next = 0; next < dead.size(); ++next) {
    count(dead[next], false);
    ir::for_each_use(function_, dead[next], [&](ValueId value) {
      const InstructionId source = definitions_[value.index()];
      if (readers(value) == 0 && is_computation(source) && std::ranges::find(dead, source) == dead.end())
        dead.push_back(source);
    });
    function_.remove(dead[next]);
    if (dead[next].index() < computations_.size()) computations_[dead[next].index()] = Answer::no;
  }
}

} // namespace ptxrewrite::transforms::legal::composite
