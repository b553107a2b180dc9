#include "transforms/packed/short_pairs.h"

#include "ir/core/builder.h"
#include "ir/core/module.h"
#include "ir/flow/def_use.h"
#include "ir/isa/isa_availability.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ptxrewrite::transforms::packed {

namespace {

using ir::InstructionId;
using ir::InstructionKind;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr size_t most_nodes = 32;   // of one pair
constexpr size_t most_steps = 4000; // of its search
constexpr unsigned half_bits = 16, word_bits = 32;

enum class Extension : uint8_t { any, by_sign, by_zero };

// A 16-bit number: a literal, a 16-bit register, or the low half of a word, which `extension` extends (any: the upper
// half does not matter).
struct Half {
  Operand operand;
  Extension extension = Extension::any;
};

struct ShortOperation {
  Opcode opcode = Opcode::add;
  bool is_signed = false; // of minima and maxima
  Half left, right;
};

bool is_register(const ir::Function& function, const Operand& operand, unsigned bits) {
  if (!operand.is(OperandKind::value) || operand.selector != ir::no_selector || operand.has(ir::OperandFlag::negated))
    return false;
  const ir::Value& value = function.values[operand.as_value()];
  return ir::bit_width(value.type) == bits && value.vector_width == 1 && !value.is_undefined;
}

class ShortPairFinder {
public:
  explicit ShortPairFinder(const ir::Function& function) : function_(function), def_use_(function) {
    find_neighbours();
  }

  std::vector<ShortPair> run() {
    std::vector<ShortPair> list;
    if (upper_of_.empty()) return list;
    for (ir::BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        for (size_t place : places(id)) {
          ShortPair pair{id, place, {}};
          const auto operands = function_.operands_of(id);
          steps_ = most_steps;
          if (append_operation(pair.nodes, {operands[place]}, {operands[place + 1]})) list.push_back(std::move(pair));
        }
    return list;
  }

private:
  void find_neighbours();
  std::vector<size_t> places(InstructionId id) const;
  InstructionId definition(const Operand& operand, unsigned bits) const;
  std::optional<ShortOperation> operation_of(const Half& half);
  std::optional<ShortOperation> operation_on_words(const Operand& word, Extension wanted);
  std::optional<Half> half_of(const Operand& word, Extension wanted);
  bool append_operation(std::vector<PairNode>& nodes, const Half& lower, const Half& upper);
  // Appends the pair, as an operation or a leaf; `is_near` is set if it costs no packing.
  bool append(std::vector<PairNode>& nodes, const Half& lower, const Half& upper, bool& is_near);

  const ir::Function& function_;
  ir::DefUse def_use_;
  std::map<ValueId, ValueId> upper_of_; // of two halves that one word brings
  size_t steps_ = 0;                    // left for the current pair
};

// Elements of vector loads, and halves that a move takes from a word.
void ShortPairFinder::find_neighbours() {
  for (ir::BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard) continue;
      const ir::Form& form = function_.form_of(id);
      const auto operands = function_.operands_of(id);
      const bool loads = form.opcode == Opcode::ld && form.vector_width > 1 && ir::bit_width(form.type()) == half_bits;
      const bool splits = form.opcode == Opcode::mov && ir::bit_width(form.type()) == word_bits && operands.size() == 4;
      if (form.opaque || (!loads && !splits) || !operands[0].is(OperandKind::vector)) continue;
      for (size_t i = 1; i + 1 <= operands[0].group_size(); i += 2)
        if (is_register(function_, operands[i], half_bits) && is_register(function_, operands[i + 1], half_bits) &&
            operands[i].is_definition())
          upper_of_[operands[i].as_value()] = operands[i + 1].as_value();
    }
}

// Operand indices of the lower halves of pairs that the instruction reads as words.
std::vector<size_t> ShortPairFinder::places(InstructionId id) const {
  std::vector<size_t> list;
  if (function_.instructions[id].kind != InstructionKind::real) return list;
  const ir::Form& form = function_.form_of(id);
  if (form.opaque) return list;
  const auto operands = function_.operands_of(id);
  const bool stores = form.opcode == Opcode::st && form.vector_width > 1 && ir::bit_width(form.type()) == half_bits;
  const bool joins = form.opcode == Opcode::mov && ir::bit_width(form.type()) == word_bits && operands.size() == 4;
  if (!stores && !joins) return list;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is(OperandKind::vector)) continue;
    for (size_t half = i + 1; half + 1 <= i + operands[i].group_size(); half += 2)
      if (is_register(function_, operands[half], half_bits) && is_register(function_, operands[half + 1], half_bits) &&
          !operands[half].is_definition())
        list.push_back(half);
    break;
  }
  return list;
}

InstructionId ShortPairFinder::definition(const Operand& operand, unsigned bits) const {
  if (!is_register(function_, operand, bits)) return {};
  const InstructionId id = def_use_.definition(operand.as_value()).instruction;
  if (!id || function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard ||
      function_.form_of(id).opaque)
    return {};
  return id;
}

bool is_supported(const ir::Form& form, unsigned bits) {
  return (form.opcode == Opcode::add || form.opcode == Opcode::min || form.opcode == Opcode::max) &&
         form.types.size() == 1 && ir::is_integer(form.type()) && ir::bit_width(form.type()) == bits &&
         !form.has(ir::Modifier::sat) && !form.has(ir::Modifier::relu) && !form.effects.reads_carry &&
         !form.effects.writes_carry;
}

// cvt between integers of these widths.
bool converts(const ir::Form& form, unsigned to, unsigned from) {
  return form.opcode == Opcode::cvt && !form.has(ir::Modifier::sat) && ir::is_integer(form.type()) &&
         ir::is_integer(form.type(1)) && ir::bit_width(form.type()) == to && ir::bit_width(form.type(1)) == from;
}

bool is_in_range(int64_t literal, Extension extension) {
  if (extension == Extension::by_sign) return literal >= INT16_MIN && literal <= INT16_MAX;
  return extension == Extension::any || (literal >= 0 && literal <= UINT16_MAX);
}

// The number whose extension, as wanted, a word is.
std::optional<Half> ShortPairFinder::half_of(const Operand& word, Extension wanted) {
  if (word.is(OperandKind::integer))
    return is_in_range(word.immediate, wanted) ? std::optional(Half{word, wanted}) : std::nullopt;
  const InstructionId id = definition(word, word_bits);
  if (!id) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  const auto operands = function_.operands_of(id);
  const bool extends = converts(form, word_bits, half_bits) && operands.size() == 2;
  const bool loads = form.opcode == Opcode::ld && form.vector_width == 1 && ir::is_integer(form.type()) &&
                     ir::bit_width(form.type()) == half_bits;
  if (extends || loads) {
    const Extension own = ir::is_signed(form.type(extends ? 1 : 0)) ? Extension::by_sign : Extension::by_zero;
    if (wanted != Extension::any && wanted != own) return std::nullopt;
    if (loads) return Half{word, own};
    return is_register(function_, operands[1], half_bits) ? std::optional(Half{operands[1]}) : std::nullopt;
  }
  return operation_on_words(word, wanted) ? std::optional(Half{word, wanted}) : std::nullopt;
}

// Minima and maxima of extended numbers are extended in the same way; the low half of a sum depends on the low halves.
std::optional<ShortOperation> ShortPairFinder::operation_on_words(const Operand& word, Extension wanted) {
  if (steps_ == 0) return std::nullopt;
  --steps_;
  const InstructionId id = definition(word, word_bits);
  if (!id) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  const auto operands = function_.operands_of(id);
  if (!is_supported(form, word_bits) || operands.size() != 3) return std::nullopt;
  const bool adds = form.opcode == Opcode::add;
  for (const Extension extension : {Extension::any, Extension::by_sign, Extension::by_zero}) {
    if (adds != (extension == Extension::any) || (wanted != Extension::any && wanted != extension)) continue;
    // As signed and as unsigned words, extensions by zero have the same order; those by sign only as signed words.
    if (extension == Extension::by_sign && !ir::is_signed(form.type())) continue;
    const std::optional<Half> left = half_of(operands[1], extension);
    const std::optional<Half> right = left ? half_of(operands[2], extension) : std::nullopt;
    if (left && right) return ShortOperation{form.opcode, extension == Extension::by_sign, *left, *right};
  }
  return std::nullopt;
}

std::optional<ShortOperation> ShortPairFinder::operation_of(const Half& half) {
  if (!half.operand.is(OperandKind::value)) return std::nullopt;
  if (is_register(function_, half.operand, word_bits)) return operation_on_words(half.operand, half.extension);
  const InstructionId id = definition(half.operand, half_bits);
  if (!id) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  const auto operands = function_.operands_of(id);
  if (is_supported(form, half_bits) && operands.size() == 3)
    return ShortOperation{form.opcode, ir::is_signed(form.type()), {operands[1]}, {operands[2]}};
  if (converts(form, half_bits, word_bits) && operands.size() == 2)
    return operation_on_words(operands[1], Extension::any);
  return std::nullopt;
}

std::string_view pair_mnemonic(const ShortOperation& operation) {
  if (operation.opcode == Opcode::add) return "add.u16x2";
  if (operation.opcode == Opcode::min) return operation.is_signed ? "min.s16x2" : "min.u16x2";
  return operation.is_signed ? "max.s16x2" : "max.u16x2";
}

bool ShortPairFinder::append_operation(std::vector<PairNode>& nodes, const Half& lower, const Half& upper) {
  const std::optional<ShortOperation> a = operation_of(lower), b = operation_of(upper);
  if (!a || !b || pair_mnemonic(*a) != pair_mnemonic(*b) || nodes.size() >= most_nodes || steps_ == 0) return false;
  const size_t before = nodes.size();
  // All operations are commutative.
  for (const bool swapped : {false, true}) {
    nodes.resize(before);
    bool left_near = false, right_near = false;
    if (!append(nodes, a->left, swapped ? b->right : b->left, left_near)) continue;
    const size_t left = nodes.size() - 1;
    if (!append(nodes, a->right, swapped ? b->left : b->right, right_near)) continue;
    if (!left_near && !right_near) continue;
    const size_t right = nodes.size() - 1;
    nodes.push_back({pair_mnemonic(*a), left, right, {}, {}});
    return true;
  }
  nodes.resize(before);
  return false;
}

bool ShortPairFinder::append(std::vector<PairNode>& nodes, const Half& lower, const Half& upper, bool& is_near) {
  const auto leaf = [&](bool near) {
    is_near = near;
    nodes.push_back({{}, 0, 0, lower.operand, upper.operand});
    return true;
  };
  const bool literals = lower.operand.is(OperandKind::integer) && upper.operand.is(OperandKind::integer);
  if (literals) return leaf(false);
  const auto is_number = [&](const Operand& operand) {
    return is_register(function_, operand, half_bits) || is_register(function_, operand, word_bits);
  };
  if (!is_number(lower.operand) || !is_number(upper.operand)) return false;
  const auto found = upper_of_.find(lower.operand.as_value());
  if (found != upper_of_.end() && found->second == upper.operand.as_value()) return leaf(true);
  if (append_operation(nodes, lower, upper)) return is_near = true;
  return lower.operand == upper.operand && leaf(false);
}

} // namespace

bool has_short_pairs(const ir::Module& module) {
  const ir::PtxVersion version{module.version_major, module.version_minor};
  return !module.targets.empty() && std::ranges::all_of(module.targets, [&](Symbol target) {
    const std::string_view word = module.text(target);
    return !(word.starts_with("sm_") || word.starts_with("compute_")) ||
           ir::why_not_available(ir::form(ir::known_form("max.s16x2")), version, word).empty();
  });
}

std::vector<ShortPair> find_short_pairs(const ir::Function& function) {
  return ShortPairFinder(function).run();
}

std::string description(const ShortPair& pair) {
  std::map<std::string_view, size_t> counts;
  for (const PairNode& node : pair.nodes)
    if (!node.mnemonic.empty()) ++counts[node.mnemonic];
  std::string text;
  for (const auto& [mnemonic, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(mnemonic);
  return text + " for twice as many operations on 16 bits";
}

void replace(ir::Function& function, const ShortPair& pair) {
  ir::Builder builder(function);
  builder.before(pair.root).standing_for(pair.root);
  std::vector<Operand> words;
  for (const PairNode& node : pair.nodes) {
    ValueId word;
    if (!node.mnemonic.empty()) {
      word = builder.emit_value(node.mnemonic, ir::ScalarType::b32, {words[node.left], words[node.right]}, "%r");
    } else if (node.lower.is(OperandKind::integer)) {
      const uint32_t both = static_cast<uint16_t>(node.lower.immediate) |
                            static_cast<uint32_t>(static_cast<uint16_t>(node.upper.immediate)) << half_bits;
      word = builder.emit_value("mov.b32", ir::ScalarType::b32, {Operand::integer(both)}, "%r");
    } else {
      const auto in_half = [&](const Operand& operand) {
        if (is_register(function, operand, half_bits)) return operand;
        return Operand::value(builder.emit_value("cvt.u16.u32", ir::ScalarType::b16, {operand}, "%rs"));
      };
      const Operand low = in_half(node.lower), high = node.lower == node.upper ? low : in_half(node.upper);
      word =
          builder.emit_value("mov.b32", ir::ScalarType::b32, {Operand::group(OperandKind::vector, 2), low, high}, "%r");
    }
    words.push_back(Operand::value(word));
  }
  const ValueId lower = builder.new_value(ir::ScalarType::b16, "%rs"),
                upper = builder.new_value(ir::ScalarType::b16, "%rs");
  builder.emit("mov.b32", {Operand::group(OperandKind::vector, 2), Operand::definition(lower),
                           Operand::definition(upper), words.back()});
  std::vector<Operand> operands(function.operands_of(pair.root).begin(), function.operands_of(pair.root).end());
  operands[pair.place] = Operand::value(lower);
  operands[pair.place + 1] = Operand::value(upper);
  function.set_operands(pair.root, operands);
}

} // namespace ptxrewrite::transforms::packed
