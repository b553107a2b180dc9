// The rows of ir/isa/opcodes.def after parsing. Private to ir/isa*.cpp; other code uses ir/isa/isa.h.
#pragma once

#include "ir/isa/isa.h"

#include <array>
#include <bitset>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir::table {

// One row as written.
struct RowText {
  Opcode opcode;
  std::string_view mnemonic; // of the opcode
  std::string_view modifiers;
  std::string_view operands;
  std::string_view version;
  std::string_view targets;
  InstructionClass kind;
  std::string_view effects;
  bool extension;
  Operation operation = Operation::none;
};

// The aspect of `ld` and `st` that a row describes. A mnemonic of these two is legal if it is in each aspect (facts:
// every combination was checked), so that the table needs the sum of their rows and not the product.
enum class Aspect : uint8_t { whole, access, cache, eviction };
constexpr unsigned aspect_count = 4;

// The words of one alternative, stored in place: a process parses hundreds of rows at its start.
class Words {
public:
  size_t size() const { return size_; }
  Modifier front() const { return words_[0]; }
  Modifier operator[](size_t i) const { return words_[i]; }
  const Modifier* begin() const { return words_.data(); }
  const Modifier* end() const { return words_.data() + size_; }
  // False if there are too many.
  [[nodiscard]] bool push_back(Modifier word) {
    if (size_ == words_.size()) return false;
    words_[size_++] = word;
    return true;
  }

private:
  std::array<Modifier, 4> words_{};
  uint8_t size_ = 0;
};

struct Slot {
  std::string_view name; // "" if operands do not refer to it
  bool optional = false;
  bool adjacent = false; // `!`: follows the opcode directly
  std::vector<Words> alternatives;
};

// One alternative for an operand.
struct OperandTerm;
struct OperandText {
  std::vector<OperandTerm> alternatives;
  Modifier condition = Modifier::none; // the operand is present only if this word is spelled
};

enum class ImmediateRule : uint8_t { any, range, set, multiple };

struct OperandTerm {
  SummaryKind kind = SummaryKind::register_;
  // Registers: the type is that of slot `slot`, or `type`.
  std::string_view slot;
  ScalarType type = ScalarType::none;
  bool wider = false;
  bool twice = false;
  bool negatable = false;
  bool minus = false;
  bool minus_required = false;
  bool selector = false;
  // Immediates.
  ImmediateRule rule = ImmediateRule::any;
  std::vector<int64_t> values;
  // Addresses: base is 'a', 'b', 'h', 't' or 'x', see opcodes.def.
  char base = 'a';
  bool constant_base = false;
  bool unified = false;
  // Vectors: `counts` lists the possible numbers of equal elements; otherwise slot `slot` gives the number; if both are
  // empty, exactly `elements`. The number of the slot is multiplied by, divided by (rounded up) or reduced by
  // `count_amount` if `count_operation` is `*`, `/` or `-`.
  std::vector<unsigned> counts;
  char count_operation = ' ';
  unsigned count_amount = 0;
  std::vector<OperandText> elements;
};

struct ShapeText {
  std::vector<OperandText> operands;
  unsigned definitions = 0;
};

using ModifierSet = std::bitset<512 + 256>;

struct Row {
  const RowText* text = nullptr;
  Aspect aspect = Aspect::whole;
  std::vector<Slot> slots;
  Effects effects;
  bool lax = false;
  ModifierSet words;    // of all slots; a mnemonic with others does not match,
  size_t max_words = 0; // and neither does one with more
};

// The modifiers of all rows of one opcode, parsed on first use.
struct OpcodeRows {
  std::vector<Row> rows;
  ModifierSet words;                      // that occur in any row
  ModifierSet aspect_words[aspect_count]; // that occur in the rows of one aspect
  bool has_aspects = false;
};

std::span<const RowText> row_texts();
const OpcodeRows& rows_of(Opcode opcode);
// The operand lists of a row of rows_of(), parsed on first use; forms refer to them.
std::span<const ShapeText> shapes_of(const Row& row);
// "add" or, for extensions, "r2d2.mov".
std::optional<Opcode> find_opcode(std::string_view name);

enum class Ordering : uint8_t { free_order, types, spaces, layouts, formats, evictions };
constexpr unsigned ordering_count = 6;
Ordering ordering(Modifier modifier);

// Describes the error in a row; empty if there is none. For the table's own test.
std::string row_error(const RowText& text);

} // namespace ptxrewrite::ir::table
