#include "tests/coverage/table_statements.h"

#include "ir/isa/isa_operands.h"
#include "ir/isa/isa_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

namespace ptxrewrite::tests {
namespace {

using namespace ptxrewrite::ir;

struct RegisterClass {
  ScalarType type;
  char letter;
  unsigned count;
};
constexpr RegisterClass register_classes[] = {
    {ScalarType::b32, 'r', 400}, {ScalarType::b64, 'l', 300}, {ScalarType::b16, 'h', 200}, {ScalarType::b8, 'c', 100},
    {ScalarType::b128, 'q', 50}, {ScalarType::pred, 'p', 50}, {ScalarType::f32, 'f', 300}, {ScalarType::f64, 'd', 50},
};

// Writes operands by their patterns, the first alternative of each; `choice` selects the lengths of vectors: a number
// whose digits are the vectors' choices.
class OperandWriter {
public:
  explicit OperandWriter(unsigned choice) : choice_(choice) {}
  // Number of choices.
  static unsigned choices(const OperandShape& shape) {
    OperandWriter writer(0);
    (void)writer.list(shape);
    return writer.choices_;
  }

  std::string list(const OperandShape& shape) {
    std::string text;
    for (const OperandPattern& operand : shape.operands)
      text += (text.empty() ? " " : ", ") + write(operand);
    return text;
  }

private:
  std::string write(const OperandPattern& pattern) {
    if (pattern.alternatives.empty()) return "_";
    std::vector<const Alternative*> vectors;
    for (const Alternative& alternative : pattern.alternatives)
      if (alternative.kind == SummaryKind::vector) vectors.push_back(&alternative);
    if (pattern.alternatives.front().kind != SummaryKind::vector) return write(pattern.alternatives.front());
    const auto count = static_cast<unsigned>(vectors.size());
    const unsigned chosen = choice_ / choices_ % count;
    choices_ *= count;
    return write(*vectors[chosen]);
  }

  std::string write(const Alternative& alternative) {
    switch (alternative.kind) {
    case SummaryKind::register_:
      return (alternative.minus_required ? "-" : "") + register_of(alternative.types, alternative.type);
    case SummaryKind::integer_immediate:
      return alternative.values && !alternative.values->empty() ? std::to_string(alternative.values->front()) : "1";
    case SummaryKind::float_immediate:
      return alternative.type == ScalarType::f64 ? "0d3ff0000000000000" : "0f3f800000";
    case SummaryKind::address:
      return address(alternative);
    case SummaryKind::vector:
      return vector(alternative);
    case SummaryKind::predicate_pair:
      return write(alternative.elements[0]) + "|" + write(alternative.elements[1]);
    case SummaryKind::list:
      return "()";
    case SummaryKind::symbol:
      return "gvar";
    case SummaryKind::label:
      return "LABEL";
    case SummaryKind::special_register:
      return "%tid.x";
    case SummaryKind::sink:
    case SummaryKind::string:
      break;
    }
    return "_";
  }

  // Returns a register of a type in the pattern's set, of the type's width if it names one.
  std::string register_of(uint64_t types, ScalarType type) {
    const auto takes = [&](ScalarType which) { return (types >> static_cast<unsigned>(which) & 1) != 0; };
    const RegisterClass* found = nullptr;
    for (const RegisterClass& kind : register_classes) {
      if (!takes(kind.type)) continue;
      if (!found) found = &kind;
      if (type != ScalarType::none && bit_width(kind.type) == bit_width(type)) {
        found = &kind;
        break;
      }
    }
    if (!found) return "%none";
    unsigned& next = next_[found - register_classes];
    return fmt::format("%{}{}", found->letter, next++ % found->count);
  }

  std::string address(const Alternative& alternative) {
    std::string text = "[";
    constexpr auto b64 = uint64_t(1) << static_cast<unsigned>(ScalarType::b64);
    text += register_of((alternative.types & b64) != 0 ? b64 : alternative.types, ScalarType::none);
    for (const OperandPattern& element : alternative.elements)
      text += ", " + write(element);
    return text + (alternative.unified ? "].unified" : "]");
  }

  std::string vector(const Alternative& alternative) {
    std::string text = "{";
    for (unsigned i = 0; i < alternative.count; ++i)
      text += (i == 0 ? "" : ", ") + write(alternative.elements[alternative.repeated ? 0 : i]);
    return text + "}";
  }

  unsigned choice_, choices_ = 1;
  unsigned next_[std::size(register_classes)] = {};
};

// "sm_70+", "sm_70..sm_72" or a list of "sm_100a@8.6".
std::string target_of(std::string_view targets) {
  std::string_view first = targets.substr(0, targets.find(' '));
  if (first.ends_with('+')) { // architectures without special features have all of it
    const std::string_view number = first.substr(3, first.size() - 4);
    return number.size() < 3 ? "sm_90" : std::string(first.substr(0, first.size() - 1));
  }
  return std::string(first.substr(0, std::min(first.find('@'), first.find(".."))));
}

using Words = std::vector<std::string>; // "", or several words with their dots

// Visits all products of a row's slots.
void for_each_product(const table::Row& row, const std::function<void(const std::string&)>& visit) {
  std::function<void(size_t, const std::string&)> extend = [&](size_t slot, const std::string& words) {
    if (slot == row.slots.size()) return visit(words);
    for (const auto& alternative : row.slots[slot].alternatives) {
      std::string more = words;
      for (Modifier word : alternative)
        more.append(".").append(spelling(word));
      extend(slot + 1, more);
    }
    if (row.slots[slot].optional) extend(slot + 1, words);
  };
  extend(0, "");
}

// Completes a load or store whose modifiers describe only one aspect.
std::string completed(const std::string& mnemonic) {
  for (const char* rest : {"", ".b32", ".v8.b32", ".v4.b64"})
    if (auto id = resolve_form(mnemonic + rest); id && !form(*id).opaque) return mnemonic + rest;
  return {};
}

class StatementList {
public:
  void add(const std::string& mnemonic, const table::Row& row) {
    if (!seen_.insert(mnemonic).second) return;
    auto id = resolve_form(mnemonic);
    if (!id || form(*id).opaque) return; // words of one slot may exclude words of another
    for (const OperandShape& shape : form(*id).shapes) {
      std::vector<std::string> texts;
      for (unsigned choice = 0; choice < OperandWriter::choices(shape); ++choice)
        texts.push_back(mnemonic + OperandWriter(choice).list(shape) + ";");
      if (mnemonic.starts_with("call")) texts = {mnemonic + " function;"};
      if (mnemonic.starts_with("brx")) texts = {mnemonic + " %r0, LABELS;"};
      statements_.push_back({mnemonic, std::move(texts), std::string(row.text->version), target_of(row.text->targets)});
      if (mnemonic.starts_with("call")) break;
    }
  }
  std::vector<TableStatement> take() { return std::move(statements_); }

private:
  std::set<std::string> seen_;
  std::vector<TableStatement> statements_;
};

} // namespace

std::vector<TableStatement> table_statements(std::string_view opcode) {
  StatementList list;
  for (const table::Row& row : table::rows_of(*table::find_opcode(opcode)).rows)
    for_each_product(row, [&](const std::string& words) {
      std::string mnemonic = std::string(opcode) + words;
      if (row.aspect != table::Aspect::whole) mnemonic = completed(mnemonic);
      if (!mnemonic.empty()) list.add(mnemonic, row);
    });
  return list.take();
}

std::string register_declarations() {
  std::string text;
  for (const RegisterClass& kind : register_classes)
    text += fmt::format(".reg .{} %{}<{}>; ", spelling(kind.type), kind.letter, kind.count);
  return text;
}

std::string module_declarations() {
  return ".global .align 16 .b8 gvar[256];\n.func function() { ret; }\n";
}

std::string label_statements() {
  return "LABELS: .branchtargets LABEL;\nLABEL:\n";
}

} // namespace ptxrewrite::tests
